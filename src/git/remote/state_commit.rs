//! The states of a run as commits: a tree of three files; its parents are the state before and the checkpoints that are new.

use std::fs::File;

use git2::{ObjectType, Oid, Signature, Time};

use super::call::{self, Limits, git};
use crate::git::base::error::{Error, Result};
use crate::git::base::object_id::parse_oid;
use crate::git::base::sync::sync_folder;
use crate::git::repo::repository::{IDENTITY, Repo};
use crate::model::manifest::ObjectId;
use crate::model::time::Timestamp;
use crate::policy::remote::{RawFile, RawState, most_of};

/// No tree of a state has more entries than a reader wants to hear of.
const MOST_FILES: usize = 16;

/// A state to write.
#[derive(Clone, Copy, Debug)]
pub struct NewState<'a> {
    /// The state before, and the checkpoints that are new, in that order.
    pub parents: &'a [ObjectId],
    /// Its files, by name.
    pub files: &'a [(&'a str, Vec<u8>)],
    /// For people.
    pub message: &'a str,
    /// The date of the commit.
    pub at: Timestamp,
}

/// Writes a state; no reference names it yet. It is signed where the user's commits are, by a program that may ask a person
/// who is not there: `limits` end it.
pub fn write_state(repo: &Repo, state: &NewState<'_>, limits: &Limits<'_>) -> Result<ObjectId> {
    let failed = || Error::git("write a state");
    let mut tree = repo.inner.treebuilder(None).map_err(failed())?;
    for (name, content) in state.files {
        let blob = repo.inner.blob(content).map_err(failed())?;
        tree.insert(name, blob, 0o100_644).map_err(failed())?;
    }
    let tree = tree.write().map_err(failed())?;
    let signs = repo
        .inner
        .config()
        .and_then(|config| config.get_bool("commit.gpgsign"))
        .unwrap_or(false);
    if signs {
        return signed(repo, tree, state, limits);
    }
    let parents: Vec<git2::Commit<'_>> = state
        .parents
        .iter()
        .map(|parent| repo.inner.find_commit(parse_oid(parent)?).map_err(failed()))
        .collect::<Result<_>>()?;
    let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
    let (name, address) = IDENTITY;
    let who = Signature::new(
        name,
        address,
        &Time::new(state.at.millis().div_euclid(1000), 0),
    )
    .map_err(failed())?;
    let tree = repo.inner.find_tree(tree).map_err(failed())?;
    let commit = repo
        .inner
        .commit(None, &who, &who, state.message, &tree, &parents)
        .map_err(failed())?;
    sync_state(repo, commit)?;
    Ok(ObjectId(commit.to_string()))
}

/// Makes what libgit2 or git wrote of a state durable: what is recorded of it next is.
fn sync_state(repo: &Repo, commit: Oid) -> Result<()> {
    let failed = || Error::git("read a state");
    let tree = repo
        .inner
        .find_commit(commit)
        .and_then(|commit| commit.tree())
        .map_err(failed())?;
    let objects = repo.common_dir().join("objects");
    for oid in tree
        .iter()
        .map(|entry| entry.id())
        .chain([tree.id(), commit])
    {
        let hex = oid.to_string();
        let folder = objects.join(&hex[..2]);
        if let Ok(loose) = File::open(folder.join(&hex[2..])) {
            loose.sync_all().map_err(Error::at(&folder))?;
            sync_folder(&folder)?;
        }
    }
    sync_folder(&objects)
}

/// The commit as the user's own git makes and signs it.
fn signed(repo: &Repo, tree: Oid, state: &NewState<'_>, limits: &Limits<'_>) -> Result<ObjectId> {
    let mut command = git(Some(repo));
    command.args(["commit-tree", &tree.to_string(), "-S"]);
    command.args(
        state
            .parents
            .iter()
            .flat_map(|parent| ["-p", parent.0.as_str()]),
    );
    command.args(["-m", state.message.trim_end()]);
    let ended = call::run(command, false, limits)?;
    let failed = |said: String| Error::Program {
        name: "git commit-tree -S".to_owned(),
        said,
    };
    match ended.status {
        Some(status) if status.success() => {}
        Some(_) => return Err(failed(ended.said)),
        None => {
            return Err(failed(
                "the program that signs commits did not end in time".to_owned(),
            ));
        }
    }
    let id = ObjectId(String::from_utf8_lossy(&ended.stdout).trim().to_owned());
    sync_state(repo, parse_oid(&id)?)?;
    Ok(id)
}

impl Repo {
    /// Whether one of the keys in `signers`, a file as ssh and git know it, signed a commit. Where that was not found out it is an
    /// error.
    pub fn is_signed(&self, commit: &ObjectId, signers: &str, limits: &Limits<'_>) -> Result<bool> {
        let mut command = git(Some(self));
        // A format of one's own would take another program's word for it.
        command.args([
            "-c",
            &format!("gpg.ssh.allowedSignersFile={signers}"),
            "-c",
            "gpg.format=ssh",
        ]);
        command.args(["verify-commit", &commit.0]);
        let ended = call::run(command, false, limits)?;
        let Some(status) = ended.status else {
            let said = "the program that verifies signatures did not end in time".to_owned();
            return Err(Error::Program {
                name: "git verify-commit".to_owned(),
                said,
            });
        };
        if !status.success() {
            tracing::debug!(
                said = ended.said,
                "the state is not signed by an allowed key"
            );
        }
        Ok(status.success())
    }
}

/// Reads a commit as a state, without believing anything of it. What is larger than a state's files is not read.
pub(crate) fn read_state(repo: &Repo, commit: &ObjectId) -> Result<RawState> {
    let failed =
        |error: git2::Error| Error::corrupt(format!("state {commit}: {}", error.message()));
    let found = repo.inner.find_commit(parse_oid(commit)?).map_err(failed)?;
    let parents = found
        .parent_ids()
        .map(|parent| ObjectId(parent.to_string()))
        .collect();
    let odb = repo.inner.odb().map_err(failed)?;
    let mut files = Vec::new();
    for entry in found.tree().map_err(failed)?.iter().take(MOST_FILES) {
        let (mode, name) = (
            u32::try_from(entry.filemode()).unwrap_or(0),
            entry.name_bytes().to_vec(),
        );
        let size = match entry.kind() {
            Some(ObjectType::Blob) => odb.read_header(entry.id()).map_err(failed)?.0,
            _ => 0,
        };
        let most = most_of(&name);
        let is_read = entry.kind() == Some(ObjectType::Blob) && size <= most;
        let content = if is_read {
            Some(odb.read(entry.id()).map_err(failed)?.data().to_vec())
        } else {
            None
        };
        files.push(RawFile {
            name,
            mode,
            size,
            content,
        });
    }
    Ok(RawState {
        commit: commit.clone(),
        parents,
        files,
    })
}

/// Whether `ancestor` is a state before `commit`, or that one itself: along the first parents.
pub(crate) fn is_before(repo: &Repo, ancestor: &ObjectId, commit: &ObjectId) -> Result<bool> {
    let (ancestor, mut at) = (parse_oid(ancestor)?, parse_oid(commit)?);
    loop {
        if at == ancestor {
            return Ok(true);
        }
        let Ok(found) = repo.inner.find_commit(at) else {
            return Ok(false);
        };
        match found.parent_id(0) {
            Ok(parent) => at = parent,
            Err(_) => return Ok(false),
        }
    }
}

impl Repo {
    /// Sets the reference of what was seen last, or moves it. It is a note: a commit that is there again after the next fetch.
    pub(crate) fn set_tracking(&self, name: &str, commit: &ObjectId) -> Result<()> {
        self.inner
            .reference(name, parse_oid(commit)?, true, "recover")
            .map(drop)
            .map_err(Error::git(format!("set {name}")))
    }

    /// Removes such a reference, where it is there.
    pub(crate) fn remove_tracking(&self, name: &str) -> Result<()> {
        match self.inner.find_reference(name) {
            Ok(mut found) => found.delete().map_err(Error::git(format!("remove {name}"))),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(()),
            Err(source) => Err(Error::Git {
                action: format!("read {name}"),
                source,
            }),
        }
    }
}
