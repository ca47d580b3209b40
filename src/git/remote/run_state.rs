//! The runs on a server: their references, and their states as commits.
//!
//! A state is a tree of three files; its parents are the state before and the checkpoints that are new. git looks at the names in
//! trees in a transfer, and only there: objects that were here before, as a clone by path and a fetch of the user's own bring
//! them, are looked through by [`FetchedNames`].

use std::collections::HashSet;

use git2::{ObjectType, Oid, Signature, Time};

use super::answer::SIDE;
use super::backend::Remote;
use super::call::{self, Limits, git};
use crate::git::base::{Error, Result, TREE, parse_oid, sync_folder, unsafe_name};
use crate::git::odb::publish::sync_loose;
use crate::git::odb::trees::child;
use crate::git::odb::{Database, Tree};
use crate::git::repo::{CheckpointRef, IDENTITY, Repo};
use crate::model::id::NONE;
use crate::model::{ObjectId, RepoPath, RunId, RunKey, Timestamp};
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

impl Repo {
    /// Writes a state; no reference names it yet. It is signed where the user's commits are, by a program that may ask a person
    /// who is not there: `limits` end it.
    pub fn write_run_state(&self, state: &NewState<'_>, limits: &Limits<'_>) -> Result<ObjectId> {
        let failed = || Error::git("write a state");
        let mut tree = self.inner.treebuilder(None).map_err(failed())?;
        for (name, content) in state.files {
            let blob = self.inner.blob(content).map_err(failed())?;
            tree.insert(name, blob, 0o100_644).map_err(failed())?;
        }
        let tree = tree.write().map_err(failed())?;
        if self.signs_commits() {
            return signed(self, tree, state, limits);
        }
        let parents: Vec<git2::Commit<'_>> = state
            .parents
            .iter()
            .map(|parent| self.inner.find_commit(parse_oid(parent)?).map_err(failed()))
            .collect::<Result<_>>()?;
        let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
        let when = Time::new(state.at.millis().div_euclid(1000), 0);
        let who = Signature::new(IDENTITY.0, IDENTITY.1, &when).map_err(failed())?;
        let tree = self.inner.find_tree(tree).map_err(failed())?;
        let commit = self
            .inner
            .commit(None, &who, &who, state.message, &tree, &parents)
            .map_err(failed())?;
        sync_state(self, commit)?;
        Ok(ObjectId(commit.to_string()))
    }

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

    /// Reads a commit as a state, without believing anything of it. What is larger than a state's files is not read.
    pub(crate) fn read_run_state(&self, commit: &ObjectId) -> Result<RawState> {
        let failed =
            |error: git2::Error| Error::corrupt(format!("state {commit}: {}", error.message()));
        let found = self.inner.find_commit(parse_oid(commit)?).map_err(failed)?;
        let parents = found
            .parent_ids()
            .map(|parent| ObjectId(parent.to_string()))
            .collect();
        let odb = self.inner.odb().map_err(failed)?;
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
            let content = is_read.then(|| odb.read(entry.id())).transpose();
            let content = content.map_err(failed)?.map(|blob| blob.data().to_vec());
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
    pub(crate) fn is_earlier_state(&self, ancestor: &ObjectId, commit: &ObjectId) -> Result<bool> {
        let (ancestor, mut at) = (parse_oid(ancestor)?, parse_oid(commit)?);
        loop {
            if at == ancestor {
                return Ok(true);
            }
            let Ok(found) = self.inner.find_commit(at) else {
                return Ok(false);
            };
            match found.parent_id(0) {
                Ok(parent) => at = parent,
                Err(_) => return Ok(false),
            }
        }
    }

    /// Sets the reference of what was seen last, or moves it. It is a note: a commit that is there again after the next fetch.
    pub(crate) fn set_tracking(&self, name: &str, commit: &ObjectId) -> Result<()> {
        self.inner
            .reference(name, parse_oid(commit)?, true, "recover")
            .map(drop)
            .map_err(Error::git(format!("set {name}")))
    }

    /// What was seen last of runs with this id, whatever their phase and lane, each with the remote's name; one whose name is no
    /// plain part of a reference is left out.
    pub(crate) fn tracked(&self, id: &RunId) -> Result<Vec<(String, ObjectId)>> {
        let failed = || Error::git("list what was fetched");
        let begin = format!("{TRACKING}*/{}*", CheckpointRef::component(id.as_str()));
        let mut found = Vec::new();
        for one in self.inner.references_glob(&begin).map_err(failed())? {
            let one = one.map_err(failed())?;
            let place = one.name().ok().and_then(|name| name.strip_prefix(TRACKING));
            let parts = place.and_then(|place| place.split_once('/'));
            if let (Some((remote, run)), Some(commit)) = (parts, one.target())
                && Remote::is_of_run(&format!("{}{run}", Remote::RUNS), id)
                && CheckpointRef::component(remote) == remote
            {
                found.push((remote.to_owned(), ObjectId(commit.to_string())));
            }
        }
        Ok(found)
    }

    /// Removes such a reference, where it is there.
    pub(crate) fn remove_tracking(&self, name: &str) -> Result<()> {
        match self.inner.find_reference(name) {
            Ok(mut found) => found.delete().map_err(Error::git(format!("remove {name}"))),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(()),
            Err(error) => Err(Error::git(format!("read {name}"))(error)),
        }
    }

    /// Looks through the names in the trees of checkpoints.
    pub(crate) fn fetched_names(&self) -> Result<FetchedNames<'_>> {
        Ok(FetchedNames {
            repo: self,
            database: Database::open(self)?,
            seen: HashSet::new(),
        })
    }
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
    let files = tree.iter().map(|entry| entry.id());
    files
        .chain([tree.id(), commit])
        .try_for_each(|oid| sync_loose(&objects, oid))?;
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
    let printed = call::run(command, false, limits)?.printed("git commit-tree -S")?;
    let id = ObjectId(printed.trim().to_owned());
    sync_state(repo, parse_oid(&id)?)?;
    Ok(id)
}

/// Where a clone keeps what it saw last of a server's runs.
const TRACKING: &str = "refs/recover-tracking/";
/// Where what was fetched is named until it is verified.
const INCOMING: &str = "refs/recover-incoming/";
/// Where what is pushed is named until it is there.
const PENDING: &str = "refs/recover-pending/";

/// A run's place below [`Remote::RUNS`].
fn run_component(key: &RunKey) -> String {
    let id = CheckpointRef::component(key.run_id.as_str());
    if key.phase == NONE && key.lane == NONE {
        return id;
    }
    // No component has a `+`.
    format!(
        "{id}+{}+{}",
        CheckpointRef::component(&key.phase),
        CheckpointRef::component(&key.lane)
    )
}

/// The reference here of a run that is called so on a remote.
fn here(folder: &str, remote: &str, component: &str) -> String {
    format!("{folder}{}/{component}", CheckpointRef::component(remote))
}

fn below(folder: &str, remote: &str, there: &str) -> Option<String> {
    let component = there.strip_prefix(Remote::RUNS)?;
    (!component.contains('/')).then(|| here(folder, remote, component))
}

/// The references of runs: on a server, and here, below the name of the remote.
impl Remote {
    /// The run's reference on a server.
    pub(crate) fn run_ref(key: &RunKey) -> String {
        format!("{}{}", Self::RUNS, run_component(key))
    }

    /// Where a server has the runs with this id, whatever their phase and lane, and maybe others, for [`Remote::list`].
    pub(crate) fn runs_of(id: Option<&RunId>) -> String {
        let begin = id.map_or_else(String::new, |id| CheckpointRef::component(id.as_str()));
        format!("{}{begin}*", Self::RUNS)
    }

    /// Where a server has what the holders of claims left that lost this run.
    pub(crate) fn side_folder(key: &RunKey) -> String {
        format!("{SIDE}{}/", run_component(key))
    }

    /// The reference there of what the holder of claim `fencing` left.
    pub(crate) fn side_ref(key: &RunKey, fencing: u64) -> String {
        format!("{}{fencing}", Self::side_folder(key))
    }

    /// The reference here of what was seen last of a run on a remote.
    pub(crate) fn tracking_ref(remote: &str, key: &RunKey) -> String {
        here(TRACKING, remote, &run_component(key))
    }

    /// What is on its way to a remote.
    pub(crate) fn pending_ref(remote: &str, key: &RunKey) -> String {
        here(PENDING, remote, &run_component(key))
    }

    /// The reference here of what was seen last of the reference of a run there.
    pub(crate) fn tracking_of(remote: &str, there: &str) -> Option<String> {
        below(TRACKING, remote, there)
    }

    /// Where that is fetched to.
    pub(crate) fn incoming_of(remote: &str, there: &str) -> Option<String> {
        below(INCOMING, remote, there)
    }

    /// Whether a reference on a server is that of a run with this id, whatever its phase and lane.
    pub(crate) fn is_of_run(there: &str, id: &RunId) -> bool {
        let component = there.strip_prefix(Self::RUNS).unwrap_or_default();
        component.split('+').next() == Some(CheckpointRef::component(id.as_str()).as_str())
    }
}

/// A path with more parts can be made by no system.
const MAX_DEPTH: usize = 4096;

/// The trees of checkpoints, each looked through once.
pub(crate) struct FetchedNames<'r> {
    repo: &'r Repo,
    database: Database<'r>,
    seen: HashSet<Oid>,
}

impl FetchedNames<'_> {
    /// What is in a checkpoint that no checkpoint has, and why; `None` where nothing is. What is not here is not looked at: it
    /// comes in a transfer.
    pub(crate) fn unsafe_in(
        &mut self,
        checkpoint: &ObjectId,
    ) -> Result<Option<(RepoPath, &'static str)>> {
        let oid = parse_oid(checkpoint)?;
        if !self.database.has(oid) {
            return Ok(None);
        }
        let failed = |error: git2::Error| {
            Error::corrupt(format!("checkpoint {checkpoint}: {}", error.message()))
        };
        let found = self.repo.inner.find_commit(oid).map_err(failed)?;
        let mut trees = vec![found.tree_id()];
        // Those of the index and of the state; before them is the commit that it began on.
        for parent in found.parents().skip(found.parent_count().saturating_sub(2)) {
            trees.push(parent.tree_id());
        }
        for tree in trees {
            if let Some(found) = self.unsafe_below(tree)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn unsafe_below(&mut self, tree: Oid) -> Result<Option<(RepoPath, &'static str)>> {
        let mut open = vec![(RepoPath::default(), tree, 0)];
        while let Some((folder, oid, depth)) = open.pop() {
            if depth > MAX_DEPTH {
                return Ok(Some((folder, "folders that are nested too deeply")));
            }
            if !self.seen.insert(oid) || !self.database.has(oid) {
                continue;
            }
            let tree = Tree::read(&self.database, oid)?;
            let mut names = HashSet::new();
            for entry in tree.entries() {
                let path = child(&folder, entry.name);
                let twice = || (!names.insert(entry.name)).then_some("two entries of one name");
                if let Some(why) = unsafe_name(entry.name).or_else(twice) {
                    return Ok(Some((path, why)));
                }
                if entry.mode == TREE {
                    open.push((path, entry.oid, depth + 1));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_names_of_their_own() {
        let name = |id: &str, phase, lane| Remote::run_ref(&RunKey::new(id, phase, lane));
        assert_eq!(name("night", None, None), "refs/recover-runs/night");
        assert_eq!(name("a/b", Some("p"), None), "refs/recover-runs/a%2fb+p+-");
        assert_ne!(name("a", Some("b"), None), name("a", None, Some("b")));
        assert_ne!(name("a+b+-", None, None), name("a", Some("b"), None));
        let key = RunKey::new("night", None, None);
        assert_eq!(Remote::side_ref(&key, 3), "refs/recover-runs-side/night/3");
        assert_eq!(
            Remote::tracking_of("o/x", &Remote::run_ref(&key)).as_ref(),
            Some(&Remote::tracking_ref("o/x", &key))
        );
        assert_eq!(Remote::tracking_of("o", "refs/heads/main"), None);
        assert!(
            Remote::is_of_run(&name("a", Some("b"), None), &"a".into())
                && !Remote::is_of_run(&name("ab", None, None), &"a".into())
        );
    }
}
