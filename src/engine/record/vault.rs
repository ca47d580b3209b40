//! Keeps the vault of a repository: a copy of it outside of its work tree, for when an agent removes the folder.
//!
//! Written at each checkpoint, as far as something changed; as a whole, synced, at the begin and the end of a run and at the first
//! checkpoint of each start of the machine. Nothing of it fails a checkpoint: what could not be written is said.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::{Context, Error, Result};
use crate::git::Repo;
use crate::git::vault::Vault;
use crate::model::{FolderId, State, VaultRecord};
use crate::store::{Origin, new_id};

/// The vault of a repository.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "vault")]
pub(crate) struct VaultStatus {
    /// Its id; `null` while nothing was written.
    pub id: Option<String>,
    /// Why nothing is written; `null` where it is.
    pub off: Option<String>,
    /// Bytes that it takes beside the repository.
    pub size_bytes: u64,
}

/// Whether there is one, and how large it is.
pub(crate) fn status(context: &Context) -> VaultStatus {
    let vault = its_vault(context);
    VaultStatus {
        off: context.vaults().err(),
        size_bytes: vault.as_ref().map_or(0, Vault::size),
        id: vault.map(|vault| vault.about.id),
    }
}

/// Has the vault follow the repository after a checkpoint's reference was set; `has_earlier` where others were recorded before.
pub(crate) fn follow(context: &Context, has_earlier: bool) {
    warn_of(context, try_follow(context, has_earlier, false));
}

/// Has it follow in everything, and forgets what is not needed any more: at the begin and the end of a run.
pub(crate) fn follow_whole(context: &Context) {
    warn_of(context, try_follow(context, true, true));
}

/// [`follow_whole`] at a run's begin, when vaults go whose repository has been gone for long. Whether this repository is the
/// recorded one is found out before an attempt can change that.
pub(crate) fn begin(context: &Context) {
    context.lost_vault();
    follow_whole(context);
    if let Err(error) = expire(context) {
        context.warn(format!(
            "vaults of projects that are gone stay: {}",
            error.explained()
        ));
    }
}

fn expire(context: &Context) -> Result<()> {
    let Ok(home) = context.vaults() else {
        return Ok(());
    };
    let kept = context.settings().vault.keep_gone;
    // A clock that jumps once does not end the time of any.
    let most = kept / 2;
    for vault in Vault::all(&home) {
        if vault
            .gone_for(context.clock.now(), most)?
            .is_some_and(|gone| gone >= kept)
        {
            vault.remove()?;
        }
    }
    Ok(())
}

/// A checkpoint or a run does not fail where its copy does.
fn warn_of(context: &Context, done: Result<()>) {
    if let Err(error) = done {
        context.warn(format!(
            "the copy outside of the project is not complete: {}",
            error.explained()
        ));
    }
}

fn try_follow(context: &Context, has_earlier: bool, whole: bool) -> Result<()> {
    let Ok(home) = context.vaults() else {
        return Ok(());
    };
    if context.dry_run() || context.store().origin() != Origin::Ours {
        return Ok(());
    }
    let repo = context.repo()?;
    let Some(mut vault) = vault_of(context, &home, repo, has_earlier)? else {
        return Ok(());
    };
    let drops = whole || vault.has_many_packs(repo);
    let whole = whole || !vault.about.complete || !vault.is_of_this_boot();
    vault.follow(repo, whole)?;
    if !vault.about.complete {
        let complete = true;
        vault.set_about(VaultRecord {
            complete,
            ..vault.about.clone()
        })?;
    }
    context.store().follow_in_vault(vault.ledger());
    if whole {
        vault.sync()?;
    }
    if drops {
        drop_gone(context, &context.load()?.state)?;
    }
    Ok(())
}

/// The vault of the repository, made where there is none. `None` where it may be that another repository is in its place.
fn vault_of(
    context: &Context,
    home: &Path,
    repo: &Repo,
    has_earlier: bool,
) -> Result<Option<Vault>> {
    if let Some(mut vault) = Vault::of(home, repo.common_dir()) {
        let about = VaultRecord {
            complete: vault.about.complete,
            ..about(context, repo, vault.about.id.clone())?
        };
        if vault.about == about {
            return Ok(Some(vault));
        }
        let is_moved = vault.about.git_dir == about.git_dir || !vault.has_repository();
        if is_moved {
            vault.set_about(about)?;
            return Ok(Some(vault));
        }
        // A copy of a project that is still there has a vault of its own.
    } else if let Some(vault) = Vault::at(home, &context.project()) {
        if vault.is_of(repo) {
            let about = about(context, repo, vault.about.id)?;
            return Ok(Some(Vault::make(home, repo, about)?));
        }
        if has_earlier {
            return Ok(None);
        }
    }
    let id = new_id().map_err(|error| Error::io("cannot make an id", error))?;
    let about = about(context, repo, id)?;
    Ok(Some(Vault::make(home, repo, about)?))
}

/// What a vault says of this repository before anything was copied.
fn about(context: &Context, repo: &Repo, id: String) -> Result<VaultRecord> {
    let state_id = context.store().id();
    Ok(VaultRecord {
        id,
        complete: false,
        path: FolderId::of(&context.project()),
        // Without the slash at its end.
        git_dir: FolderId::of(&repo.common_dir().components().collect::<PathBuf>()),
        state_dir: context.state_dir_id(),
        state_id: state_id.map_err(|error| Error::io("cannot read the state's id", error))?,
        private: repo.is_private(),
        detached: false,
    })
}

fn its_vault(context: &Context) -> Option<Vault> {
    let its = Vault::of(&context.all_vaults()?, &context.git_folder());
    its.or_else(|| context.lost_vault().cloned())
}

/// The folder of the vault of this project, where it has one.
pub(crate) fn folder(context: &Context) -> Option<PathBuf> {
    its_vault(context).map(|vault| vault.folder().to_owned())
}

/// Removes the vault of this project for good.
pub(crate) fn remove(context: &Context) -> Result<()> {
    its_vault(context).map_or(Ok(()), |vault| Ok(vault.remove()?))
}

/// The repository that the vault misses was removed on purpose.
pub(crate) fn detach(context: &Context) -> Result<()> {
    let Some(mut vault) = context.lost_vault().cloned() else {
        return Ok(());
    };
    let about = VaultRecord {
        detached: true,
        ..vault.about.clone()
    };
    Ok(vault.set_about(about)?)
}

/// Removes from the vault what was only of checkpoints that are gone on purpose, and packs that git replaced.
pub(crate) fn drop_gone(context: &Context, state: &State) -> Result<()> {
    let Ok(home) = context.vaults() else {
        return Ok(());
    };
    let repo = context.repo()?;
    let vault = Vault::of(&home, repo.common_dir());
    if let Some(vault) = vault.filter(|_| !context.dry_run()) {
        let known: BTreeSet<&str> = state
            .checkpoints
            .values()
            .map(|checkpoint| checkpoint.id.as_str())
            .collect();
        vault.drop_gone(repo, |id| known.contains(id))?;
    }
    Ok(())
}
