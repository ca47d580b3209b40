//! Bringing a repository back from its vault: the folder of git, or a whole project.
//!
//! Only the folder of git goes back where it is all that is gone; what lies in its place then is moved into it, never removed. A
//! project is made in a folder that is empty: repository, ledger, and the work tree of one of its checkpoints.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::plain_path;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::restore::request::{Commits, Options, RestoreRequest};
use crate::engine::rollback::restore;
use crate::engine::runs::Planned;
use crate::git::Repo;
use crate::git::vault::Vault;
use crate::model::{CheckpointId, Hint, OperationKind, Timestamp};
use crate::policy::restore::Edits;
use crate::policy::text::count;
use crate::store::Store;

/// The user's vaults.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Vaults {
    /// The folder that they are in, absolute.
    pub folder: String,
    pub vaults: Vec<VaultLine>,
}

/// A vault in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "listed_vault")]
pub(crate) struct VaultLine {
    pub id: String,
    /// The root of the project, absolute.
    pub path: String,
    /// `there`; `gone`: its repository is not where it was; `given_up`: likewise, and `recover trust --state` said so;
    /// `incomplete`: the repository was never copied whole, and does not come back from it.
    #[schemars(extend("enum" = ["there", "gone", "given_up", "incomplete"]))]
    pub state: &'static str,
    /// When it was written last as a whole.
    pub written_at: Timestamp,
    pub latest_checkpoint: Option<CheckpointId>,
    /// Bytes that it takes beside the repository.
    pub size_bytes: u64,
}

impl From<&Vault> for VaultLine {
    fn from(vault: &Vault) -> Self {
        Self {
            id: vault.about.id.clone(),
            path: vault.about.path.to_string(),
            state: match (&vault.about, vault.has_repository()) {
                (about, _) if about.detached => "given_up",
                (about, _) if !about.complete => "incomplete",
                (_, true) => "there",
                (_, false) => "gone",
            },
            written_at: vault.written_at(),
            latest_checkpoint: vault.latest(),
            size_bytes: vault.size(),
        }
    }
}

fn home(context: &Context) -> Result<PathBuf> {
    let none = || {
        Error::new(
            ErrorKind::VaultNotFound,
            "there is no home folder, and no vault",
        )
    };
    context.all_vaults().ok_or_else(none)
}

/// The vaults, latest first.
pub(crate) fn list(context: &Context) -> Result<Vaults> {
    let folder = home(context)?;
    let mut vaults: Vec<VaultLine> = Vault::all(&folder).iter().map(VaultLine::from).collect();
    vaults.sort_by_key(|vault| std::cmp::Reverse(vault.written_at));
    Ok(Vaults {
        folder: folder.to_string_lossy().into_owned(),
        vaults,
    })
}

/// The vault with this id, or its beginning, or of the project at this path.
///
/// # Errors
/// There is none, or several ids begin so (4).
pub(crate) fn find(context: &Context, wanted: &str) -> Result<Vault> {
    let home = home(context)?;
    if let Some(vault) = Vault::at(&home, &plain_path(&context.cwd().join(wanted))) {
        return Ok(vault);
    }
    let mut found = Vault::all(&home);
    found.retain(|vault| !wanted.is_empty() && vault.about.id.starts_with(wanted));
    let (kind, what) = match found.len() {
        1 => return Ok(found.remove(0)),
        0 => (
            ErrorKind::VaultNotFound,
            "there is no vault with this id or of a project in",
        ),
        _ => (
            ErrorKind::Ambiguous,
            "several vaults have an id that begins with",
        ),
    };
    let hint = Hint::recover(["restore-project"]);
    Err(Error::new(kind, format!("{what} {wanted}")).hint(hint))
}

/// Removes a vault for good; in a dry run only says which.
///
/// # Errors
/// As [`find`]; nobody said yes (13).
pub(crate) fn forget(context: &Context, wanted: &str) -> Result<PathBuf> {
    let vault = find(context, wanted)?;
    let folder = vault.folder().to_owned();
    if context.dry_run() {
        return Ok(folder);
    }
    if !context.says_yes() {
        let message = format!(
            "this would remove the copy of {} for good, which cannot be undone: pass --yes to continue",
            vault.about.path
        );
        return Err(
            Error::new(ErrorKind::ConfirmationNeeded, message).hint(context.rerun(&["--dry-run"]))
        );
    }
    vault.remove()?;
    Ok(folder)
}

/// What `doctor --repair` would do, where the repository is gone or another one is in its place.
pub(crate) fn repair_of(context: &Context) -> Option<String> {
    let vault = context.lost_vault()?;
    Some(format!(
        "put {} back from its copy of {}",
        vault.about.git_dir,
        vault.written_at()
    ))
}

/// Does what [`repair_of`] says. Returns what was done.
pub(crate) fn put_back(context: &Context) -> Result<Option<String>> {
    let Some(vault) = context.lost_vault() else {
        return Ok(None);
    };
    let place = (vault.about.git_dir.path(), vault.about.state_dir.path());
    put(context, vault, place).map(Some)
}

/// Puts repository and ledger in place. Returns what was done.
fn put(
    context: &Context,
    vault: &Vault,
    (git_dir, state_dir): (PathBuf, PathBuf),
) -> Result<String> {
    let git_dir = git_dir.as_path();
    let is_there = Vault::id_in(git_dir).as_ref() == Some(&vault.about.id);
    let replaced = if is_there {
        None
    } else {
        vault.put_back(git_dir, context.clock.now())?
    };
    if let Some(ledger) = vault.read_ledger()? {
        let store = Store::new(state_dir, context.lock_timeout())
            .with_copy((!vault.about.private).then_some(git_dir));
        store.put_back(&ledger, vault.about.state_id.as_deref())?;
    }
    let mut text = format!("put {} back", git_dir.display());
    if let Some(replaced) = replaced {
        text.push_str(&format!("; what was there is in {}", replaced.display()));
    }
    Ok(text)
}

/// The vault of the repository that an attempt of this process's run removed, or put another one in place of. One from which
/// only our own folder was removed is noted again.
fn removed(context: &Context) -> Result<Option<Vault>> {
    let Ok(home) = context.vaults() else {
        return Ok(None);
    };
    let git_dir = context.repo()?.common_dir();
    // What was another one before the run is no attempt's doing.
    if Vault::id_in(git_dir).is_some() || context.lost_vault().is_some() {
        return Ok(None);
    }
    let Some(vault) = Vault::at(&home, &context.project()) else {
        return Ok(None);
    };
    if vault.about.git_dir.path() != git_dir || !vault.about.complete {
        return Ok(None);
    }
    // What this process has open of the former one is no proof.
    let now = Repo::discover(context.worktree(), context.home());
    match now
        .ok()
        .filter(|now| now.common_dir() == git_dir && vault.is_of(now))
    {
        Some(repo) => Vault::make(&home, &repo, vault.about)
            .map(|_| None)
            .map_err(Error::from),
        None => Ok(Some(vault)),
    }
}

/// Whether an attempt of this process's run removed the repository, or put another one in its place.
pub(crate) fn is_removed(context: &Context) -> Result<bool> {
    Ok(removed(context)?.is_some())
}

/// Puts the repository back at an attempt's end that removed it, or put another one in its place. Says what the attempt did.
pub(crate) fn put_back_removed(context: &Context) -> Result<Option<String>> {
    let Some(vault) = removed(context)? else {
        return Ok(None);
    };
    let git_dir = vault.about.git_dir.path();
    let what = if git_dir.join("HEAD").exists() {
        "put another git repository in the place of this one"
    } else {
        "removed the git repository"
    };
    let done = put(context, &vault, (git_dir, context.store().dir().to_owned()))?;
    vault.give_objects(context.repo()?)?;
    context.warn(format!("the attempt {what}: recover {done}"));
    Ok(Some(format!("the attempt {what}; recover {done}")))
}

/// Gives the repository what it lost of its objects, or what was damaged. Returns what was done.
pub(crate) fn give_back(context: &Context) -> Result<Vec<String>> {
    let Some(home) = context.all_vaults() else {
        return Ok(Vec::new());
    };
    let repo = context.repo()?;
    let Some(vault) = Vault::of(&home, repo.common_dir()) else {
        return Ok(Vec::new());
    };
    let lost = || {
        let all = vault.references();
        let lost = all.iter().filter(|(_, commit)| !repo.has_object(commit));
        lost.count() as u64
    };
    let before = lost();
    let replaced = vault.give_objects(repo)?;
    let done = [
        (replaced, "replaced", "damaged object file"),
        (before.saturating_sub(lost()), "brought back", "checkpoint"),
    ];
    let done = done.into_iter().filter(|(number, ..)| *number > 0);
    let from = vault.folder().display();
    Ok(done
        .map(|(number, what, things)| format!("{what} {} from {from}", count(number, things)))
        .collect())
}

/// A project that was made again, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RestoredProject {
    pub changed: bool,
    pub vault: VaultLine,
    /// The folder that it is in now, absolute.
    pub into: String,
    /// The checkpoint whose files are in its work tree; `null` where there is none.
    pub checkpoint_id: Option<CheckpointId>,
    /// In a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Planned>,
}

/// Makes a project again in a folder that is empty, or not there: its own, or another one. Its work tree is that of the
/// latest checkpoint, or of the one `to`. A call that was killed before it wrote files of the work tree is repeated.
///
/// # Errors
/// No such vault or checkpoint (4); something is in the folder, or the vault is not complete (13).
pub(crate) fn restore_project(
    context: &Context,
    wanted: &str,
    into: Option<&Path>,
    to: Option<&str>,
) -> Result<RestoredProject> {
    let vault = find(context, wanted)?;
    let into = into.map_or_else(
        || vault.about.path.path(),
        |into| plain_path(&context.cwd().join(into)),
    );
    let references = vault.references();
    let is_known = |id: &str| {
        references
            .iter()
            .any(|(name, _)| name.ends_with(&format!("/{id}")))
    };
    if let Some(id) = to.filter(|id| !is_known(id)) {
        let message = format!(
            "No checkpoint available: the copy of {} has no {id}",
            vault.about.path
        );
        return Err(Error::new(ErrorKind::NoCheckpoint, message));
    }
    let below = |place: PathBuf| match place.strip_prefix(vault.about.path.path()) {
        Ok(below) => Some(into.join(below)),
        Err(_) => None,
    };
    let git_dir = below(vault.about.git_dir.path()).unwrap_or_else(|| into.join(".git"));
    refuse_used(&vault, &into, &git_dir)?;
    let to = to.map(|id| CheckpointId::from(id.to_owned()));
    let mut restored = RestoredProject {
        changed: !context.dry_run(),
        vault: VaultLine::from(&vault),
        into: into.to_string_lossy().into_owned(),
        checkpoint_id: to.clone().or_else(|| vault.latest()),
        plan: context.dry_run().then_some(Planned { changed: true }),
    };
    if context.dry_run() {
        return Ok(restored);
    }
    context.check_writes("making a project again")?;
    std::fs::create_dir_all(&into).map_err(|error| Error::cannot("create", &into, error))?;
    let state_dir = below(vault.about.state_dir.path()).unwrap_or(vault.about.state_dir.path());
    put(context, &vault, (git_dir, state_dir))?;
    let project = context.at(&into)?;
    restored.checkpoint_id = put_files(&project, &vault, to)?;
    Ok(restored)
}

/// Refuses (13) a vault that is not complete, and a folder with something in it but what an earlier call began.
fn refuse_used(vault: &Vault, into: &Path, git_dir: &Path) -> Result<()> {
    if !vault.about.complete {
        let message = format!(
            "the vault of {} is incomplete: its first copy never finished, so nothing can be restored from it",
            vault.about.path
        );
        let hint = Hint::recover(["restore-project"]);
        return Err(Error::new(ErrorKind::Conflicts, message).hint(hint));
    }
    let is_begun = Vault::id_in(git_dir).as_ref() == Some(&vault.about.id);
    let is_ours = |name: &OsStr| {
        Vault::is_unfinished(name)
            || is_begun && (git_dir.file_name() == Some(name) || name == ".ultraplan")
    };
    let mut inside = std::fs::read_dir(into).into_iter().flatten().flatten();
    if !into.is_file() && inside.all(|one| is_ours(&one.file_name())) {
        return Ok(());
    }
    let what = if is_begun {
        "has this project already: doctor --repair there finishes what was cut off"
    } else {
        "is not empty"
    };
    let message = format!("{} {what}", into.display());
    let hint = Hint::recover(["restore-project", &vault.about.id, "--into", "DIR"]);
    Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint))
}

/// The files of a checkpoint, with its index: of the one `to`, or of what the work tree was last written from, which a safety
/// checkpoint is not.
fn put_files(
    project: &Context,
    vault: &Vault,
    to: Option<CheckpointId>,
) -> Result<Option<CheckpointId>> {
    let state = project.load()?.state;
    let last = state.worktrees.get(&vault.about.path).and_then(|worktree| {
        let mut whole = worktree.baseline.iter().rev();
        whole.find(|layer| layer.paths.is_empty())
    });
    let last = last
        .map(|layer| layer.checkpoint_id.clone())
        .filter(|id| state.checkpoint(id).is_some());
    let Some(id) = &to.or(last).or_else(|| vault.latest()) else {
        return Ok(None);
    };
    let checkpoint = state.checkpoint(id).ok_or_else(|| {
        let message = format!(
            "No checkpoint available: the repository is back, but the ledger does not have {id}"
        );
        Error::new(ErrorKind::NoCheckpoint, message)
            .hint(project.placed(Hint::recover(["doctor", "--rebuild"])))
    })?;
    let options = Options {
        commits: Commits::Keep,
        edits: Edits::Discard,
        restore_index: true,
        nested: true,
        here: true,
        ..Options::default()
    };
    restore(
        project,
        &RestoreRequest::new(OperationKind::Restore, checkpoint, options),
    )?;
    Ok(Some(checkpoint.id.clone()))
}
