//! What a person must look at before a run's work is committed: new secrets in tracked files, and commits that it rewrote.

use std::collections::{BTreeSet, HashSet};

use crate::engine::base::{Context, Result};
use crate::engine::record::lane::OwnCommits;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::tree::TreeLookup;
use crate::model::checkpoint::trigger;
use crate::model::{Entry, EntryKind, Head, Named, ObjectId, RepoPath, Run, State};
use crate::policy::report::ToLookAt;
use crate::policy::secrets::has_secret;

/// A larger file is not looked through for secrets.
pub(in crate::engine) const LOOKED_THROUGH: u64 = 1 << 20;

/// The files that git knows, and that a run changed, with a line that looks like a secret and was not there before.
pub(in crate::engine) fn new_secrets(
    context: &Context,
    (initial, good): (&StoredCheckpoint, &StoredCheckpoint),
    is_about: impl Fn(&RepoPath) -> bool,
) -> Result<BTreeSet<RepoPath>> {
    let repo = context.repo()?;
    let (before, after) = TreeLookup::stored(repo)?.diff(initial.view(), good.view())?;
    let read = |entry: &Entry| repo.small_blob(&entry.oid, LOOKED_THROUGH);
    let mut found = BTreeSet::new();
    for (path, was, is) in before.unlike(&after) {
        let (Some(was), Some(is)) = (was, is) else {
            continue;
        };
        let are_files = [was, is].iter().all(|one| one.kind == EntryKind::File);
        if !are_files || was.oid == is.oid || !is_about(path) {
            continue;
        }
        let Some(is) = read(is)?.filter(|is| has_secret(is)) else {
            continue;
        };
        let Some(was) = read(was)? else {
            continue;
        };
        let known: HashSet<&[u8]> = was.split(|byte| *byte == b'\n').collect();
        let lines = is.split(|byte| *byte == b'\n');
        let added: Vec<&[u8]> = lines.filter(|line| !known.contains(line)).collect();
        if has_secret(&added.join(&b'\n')) {
            found.insert(path.clone());
        }
    }
    if found.is_empty() {
        return Ok(found);
    }
    let head = repo.head()?.commit;
    Ok(repo.known_to_git(head.as_ref(), &found)?)
}

/// That a run's own commands took commits of before it off its branch, by an amend or the like.
#[derive(Debug)]
pub(in crate::engine) struct Rewritten {
    /// What was taken off, with the subjects; the newest first.
    gone: Vec<(ObjectId, String)>,
    /// What the branch has instead, the newest first.
    pub since: Vec<ObjectId>,
    /// Whether all of that is the run's own.
    pub is_own: bool,
}

impl Rewritten {
    /// In a clause.
    pub(in crate::engine) fn what(&self) -> String {
        ToLookAt::rewrote(&self.gone)
    }

    pub(in crate::engine) fn to_look_at(&self) -> ToLookAt {
        ToLookAt::rewritten(&self.gone, self.is_own)
    }
}

/// Whether that is so of the branch as it is, where the run began at `begun`; `None` where it was left since.
pub(in crate::engine) fn rewritten(
    (context, state): (&Context, &State),
    (run, own): (&Run, &OwnCommits<'_>),
    begun: Option<&ObjectId>,
    head: &Head,
) -> Result<Option<Rewritten>> {
    let first = state.initial(&run.key).and_then(Named::kept);
    let mut all = state.checkpoints_of(&run.key);
    let last = all.rfind(|one| one.trigger == trigger::ATTEMPT);
    let (Some(begun), Some(now), Some(first), Some(last)) = (begun, &head.commit, first, last)
    else {
        return Ok(None);
    };
    let repo = context.repo()?;
    let is_there = first.head_ref == head.branch && last.head_ref == head.branch;
    let Some(left) = last.base_commit.as_ref().filter(|_| is_there) else {
        return Ok(None);
    };
    if repo.is_ancestor(begun, now)? || !repo.is_ancestor(left, now)? {
        return Ok(None);
    }
    let gone = repo.commits_between(Some(now), begun)?.into_iter();
    let gone = gone.map(|commit| {
        let subject = repo.about_commit(&commit)?.1;
        Ok((commit, subject))
    });
    let since = repo.commits_between(Some(begun), now)?;
    Ok(Some(Rewritten {
        gone: gone.collect::<Result<_>>()?,
        is_own: since.iter().all(|commit| own.has(commit)),
        since,
    }))
}
