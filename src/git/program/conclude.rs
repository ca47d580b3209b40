//! Puts commits that were made on a branch: the branch moves once, all or nothing, and the user's index follows.
//!
//! The journal of that, `$GIT_DIR/recover/commit.json`, is written when the commits are all made, and removed once branch and
//! index have followed and that is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use git2::Oid;
use serde::{Deserialize, Serialize};

use super::held::differing;
use super::staging::{Staging, differing_commits, flat_of, flat_of_tree};
use crate::git::base::error::Result;
use crate::git::index::locked_index::LockedIndex;
use crate::git::index::user_index::UserIndex;
use crate::git::odb::trees::Flat;
use crate::git::repo::{Repo, WorktreeLock};
use crate::model::{Head, ObjectId, Operation, RepoPath, RunKey};

impl CommitJournal {
    /// Whether the branch has moved already, so that the rest is to be finished.
    pub(crate) fn has_moved(&self, repo: &Repo) -> Result<bool> {
        let Some(after) = self.commits.last() else {
            return Ok(false);
        };
        let at = tip(
            repo,
            self.new_branch.as_ref().or(self.before.branch.as_ref()),
        )?;
        // A user may have gone on since.
        at.map_or(Ok(false), |at| repo.is_ancestor(after, &at))
    }

    /// Takes back what was begun before the branch moved: nothing but the reference of what is kept, and that only while the
    /// branch has it still.
    pub(crate) fn take_back(&self, repo: &Repo, lock: &WorktreeLock) -> Result<()> {
        let (Some(kept), Some(before)) = (&self.kept, &self.before.commit) else {
            return Ok(());
        };
        let at = tip(repo, self.before.branch.as_ref())?;
        match at.map(|at| repo.is_ancestor(before, &at)).transpose()? {
            Some(true) => repo.delete_refs(lock, std::slice::from_ref(kept)),
            _ => Ok(()),
        }
    }

    /// Moves the branch to the last of the commits, if HEAD still is what it was, and lets the index follow. Done twice it does
    /// nothing more.
    ///
    /// Of the index only those paths change that the commits changed, and those of commits that went off the branch or that the
    /// run staged, which are staged again as they were when the run began. What a user staged since stays staged.
    pub(crate) fn conclude(
        &self,
        repo: &Repo,
        lock: &WorktreeLock,
        timeout: Duration,
    ) -> Result<()> {
        let Some(after) = self.commits.last() else {
            return Ok(());
        };
        let before = &self.before;
        if let (Some(name), Some(commit)) = (&self.kept, &before.commit)
            && repo.resolve_ref(name).as_ref() != Some(commit)
        {
            repo.set_ref(lock, name, commit)?;
        }
        // Before the branch moves: who has it has to be waited for, and what is to change is what they leave there.
        let locked = LockedIndex::acquire(repo, timeout)?;
        let wanted = wanted(repo, self, after)?;
        let locked = Some(locked).filter(|_| !wanted.is_empty());
        if !self.has_moved(repo)? || repo.head()? == *before {
            match &self.new_branch {
                Some(branch) => {
                    let begun = Head {
                        branch: Some(branch.clone()),
                        commit: Some(after.clone()),
                    };
                    repo.switch(lock, before, &begun, &self.message)?;
                }
                None => repo.move_branch(lock, before, Some(after), &self.message)?,
            }
        }
        let Some(locked) = locked.filter(|_| {
            repo.head()
                .is_ok_and(|head| head.commit.as_ref() == Some(after))
        }) else {
            return Ok(());
        };
        locked.change(repo, &wanted)
    }

    /// A journal of this version.
    pub(crate) fn new(run: RunKey, before: Head, commits: Vec<ObjectId>, message: String) -> Self {
        Self {
            version: VERSION,
            run,
            before,
            base: None,
            commits,
            new_branch: None,
            kept: None,
            index_tree: None,
            begun: None,
            left: Vec::new(),
            seen: None,
            left_out: false,
            operation: None,
            message,
        }
    }
}

/// Where a branch is, whichever one is checked out by now; without one HEAD.
fn tip(repo: &Repo, branch: Option<&String>) -> Result<Option<ObjectId>> {
    Ok(match branch {
        Some(branch) => repo.resolve_ref(branch),
        None => repo.head()?.commit,
    })
}

/// A path with what the index is to hold of it.
type Wanted = BTreeMap<RepoPath, Option<(u32, Oid)>>;

/// What is to change in the index.
fn wanted(repo: &Repo, journal: &CommitJournal, after: &ObjectId) -> Result<Wanted> {
    let (base, head) = (journal.base.as_ref(), journal.before.commit.as_ref());
    let new = differing_commits(repo, base, Some(after))?;
    let staged = UserIndex::read(repo)?.flat();
    let others = staged_otherwise(repo, journal, &flat_of(repo, Some(after))?)?;
    let mut wanted: Wanted = new
        .into_iter()
        .map(|(path, [_, new])| (path, new))
        .collect();
    wanted.retain(|path, _| !others.contains(path));
    // What was staged since stays staged.
    let mut of_run = BTreeSet::new();
    for (path, [_, head]) in differing_commits(repo, base, head)? {
        if staged.get(&path) == head.as_ref() {
            of_run.insert(path);
        }
    }
    let begun = flat_of_tree(repo, journal.index_tree.as_ref())?;
    for tree in &journal.left {
        let left = flat_of_tree(repo, Some(tree))?;
        let changed = differing(&left, &begun).into_iter();
        of_run.extend(changed.filter(|path| staged.get(path) == left.get(path)));
    }
    of_run.retain(|path| !wanted.contains_key(path) && !others.contains(path));
    let since = differing_commits(repo, journal.begun.as_ref(), base)?;
    for path in of_run {
        let was = begun.get(&path).copied();
        let entry = match since.get(&path) {
            // What was not staged then, or is committed since, is as in that commit.
            Some([then, now]) if was == *then || staged.get(&path) == now.as_ref() => *now,
            _ => was,
        };
        wanted.insert(path, entry);
    }
    wanted.retain(|path, entry| staged.get(path) != entry.as_ref());
    Ok(wanted)
}

impl Repo {
    /// The paths of the commits that were staged with other content since the run had the index; of commits that are not
    /// made yet, those of what is staged for them. None where it is not known what the run had there.
    pub(crate) fn staged_since(
        &self,
        journal: &CommitJournal,
        planned: Option<&Staging<'_>>,
    ) -> Result<BTreeSet<RepoPath>> {
        let new =
            planned.map_or_else(|| flat_of(self, journal.commits.last()), Staging::entries)?;
        staged_otherwise(self, journal, &new)
    }

    /// Writes the journal durably.
    pub(crate) fn write_commit_journal(
        &self,
        _lock: &WorktreeLock,
        journal: &CommitJournal,
    ) -> Result<()> {
        self.write_journal(FILE, journal)
    }

    /// Whether there is one.
    pub(crate) fn has_commit_journal(&self) -> bool {
        self.has_journal(FILE)
    }

    /// Reads the journal; `None` when nothing is under way.
    pub(crate) fn read_commit_journal(&self) -> Result<Option<CommitJournal>> {
        self.read_journal(FILE, VERSION)
    }

    /// Removes the journal durably: it is settled.
    pub(crate) fn remove_commit_journal(&self, _lock: &WorktreeLock) -> Result<()> {
        self.remove_journal(FILE)
    }
}

fn staged_otherwise(
    repo: &Repo,
    journal: &CommitJournal,
    new: &Flat,
) -> Result<BTreeSet<RepoPath>> {
    let Some(seen) = &journal.seen else {
        return Ok(BTreeSet::new());
    };
    let (base, staged) = (
        flat_of(repo, journal.base.as_ref())?,
        UserIndex::read(repo)?.flat(),
    );
    let mut others = differing(&base, new);
    let mut keep = |known: &Flat| others.retain(|path| staged.get(path) != known.get(path));
    keep(new);
    keep(&base);
    keep(&flat_of(repo, journal.before.commit.as_ref())?);
    for tree in journal.index_tree.iter().chain(seen) {
        keep(&flat_of_tree(repo, Some(tree))?);
    }
    Ok(others)
}

/// The version that this program writes.
const VERSION: u32 = 1;

const FILE: &str = "commit.json";

/// Everything that is needed to finish it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitJournal {
    /// The version of the writer.
    pub version: u32,
    /// The run that is accepted.
    #[serde(flatten)]
    pub run: RunKey,
    /// HEAD before.
    pub before: Head,
    /// The commit on which the new ones begin; `None` where they begin a history.
    pub base: Option<ObjectId>,
    /// The new commits, oldest first.
    pub commits: Vec<ObjectId>,
    /// The full name of the branch that is begun; `None` where they go on the current one.
    pub new_branch: Option<String>,
    /// The reference that keeps the commits that go off the branch.
    pub kept: Option<String>,
    /// The tree of the index as the run began.
    pub index_tree: Option<ObjectId>,
    /// The commit that the run began at.
    #[serde(default)]
    pub begun: Option<ObjectId>,
    /// The trees of the index as the run left it: what is staged as in one of them no user staged since.
    #[serde(default)]
    pub left: Vec<ObjectId>,
    /// Trees that hold what the run had in the index, and what is committed before hooks change it: what is staged otherwise
    /// a user staged since. `None` where that is not known.
    pub seen: Option<Vec<ObjectId>>,
    /// Whether new files of the run are left out, which can be asked for still.
    #[serde(default)]
    pub left_out: bool,
    /// How it is taken back.
    pub operation: Option<Box<Operation>>,
    /// For the logs of the references.
    pub message: String,
}
