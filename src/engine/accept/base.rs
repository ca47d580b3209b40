//! The commit that what a run made comes on top of.

use super::Request;
use crate::engine::attempt::look_at::Rewritten;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::lane::OwnCommits;
use crate::git::checkpoint::StoredCheckpoint;
use crate::model::{Head, Hint, ObjectId, Run, State};

/// The commit that a run began at. Where that was another run's, and is folded since, what that run was accepted as has all
/// of it.
pub(super) fn begun_at(
    context: &Context,
    state: &State,
    initial: &StoredCheckpoint,
    head: &Head,
) -> Result<Option<ObjectId>> {
    let repo = context.repo()?;
    let (Some(begun), Some(now)) = (&initial.manifest.head.commit, &head.commit) else {
        return Ok(initial.manifest.head.commit.clone());
    };
    if repo.is_ancestor(begun, now)? {
        return Ok(Some(begun.clone()));
    }
    let folded = state
        .runs
        .iter()
        .filter(|run| run.own_commits.contains(begun));
    for accepted in folded.filter_map(|run| run.accepted_as.commit.as_ref()) {
        if repo.is_ancestor(accepted, now)? {
            return Ok(Some(accepted.clone()));
        }
    }
    Ok(Some(begun.clone()))
}

pub(super) fn began_at(run: &Run) -> String {
    format!("the commit that run {} began at", run.key)
}

/// The commits since one that HEAD has to be on top of, newest first.
pub(super) fn commits_since(
    context: &Context,
    from: Option<&ObjectId>,
    head: &Head,
    what: &str,
) -> Result<Vec<ObjectId>> {
    let repo = context.repo()?;
    let is_on_top = match (from, &head.commit) {
        (Some(from), Some(now)) => repo.commit_exists(from) && repo.is_ancestor(from, now)?,
        (from, _) => from.is_none(),
    };
    if !is_on_top {
        let message = format!("HEAD is not on top of {what}: switch to its branch");
        return Err(Error::new(ErrorKind::HeadMoved, message).hint(Hint::git([
            "log",
            "--oneline",
            "--all",
            "-20",
        ])));
    }
    Ok(head
        .commit
        .as_ref()
        .map_or(Ok(Vec::new()), |now| repo.commits_between(from, now))?)
}

/// The commits since the one that a run began at, newest first, where the run rewrote that.
pub(super) fn since_rewritten(
    run: &Run,
    rewritten: &Rewritten,
    request: &Request,
) -> Result<Vec<ObjectId>> {
    let what = rewritten.what();
    let (message, hint) = match () {
        () if !rewritten.is_own => (
            format!(
                "{what}, and others came on top: there is nothing to accept it on; close leaves the branch as it is"
            ),
            Hint::recover(["close"]).run(&run.key),
        ),
        () if request.per_iteration => (
            format!("{what}: --squash commits what the run made on top of what was there"),
            Hint::recover(["accept", "--squash"]).run(&run.key),
        ),
        () => return Ok(rewritten.since.clone()),
    };
    Err(Error::new(ErrorKind::HeadMoved, message).hint(hint))
}

/// The run's own commits on top of the branch, newest first, and what is below them. Another user's commit and a merge end
/// that.
pub(super) fn fold(
    context: &Context,
    head: &Head,
    begun: Option<&ObjectId>,
    own: &OwnCommits<'_>,
) -> Result<(Option<ObjectId>, Vec<ObjectId>)> {
    let (mut base, mut folded) = (head.commit.clone(), Vec::new());
    while let Some(commit) = base
        .clone()
        .filter(|commit| Some(commit) != begun && own.has(commit))
    {
        let (parents, _) = context.repo()?.about_commit(&commit)?;
        if parents.len() > 1 {
            break;
        }
        base = parents.into_iter().next();
        folded.push(commit);
    }
    Ok((base, folded))
}
