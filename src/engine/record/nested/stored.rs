//! Nested checkpoints that are stored: verified, compared, named, taken in, forgotten.

use std::collections::BTreeMap;

use super::NestedCapture;
use crate::engine::base::{Context, Result};
use crate::engine::record::events::adopt_one;
use crate::engine::record::stored::{mark_suspect, record_of};
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::{Error as GitError, Repo, WorktreeLock};
use crate::model::{
    Change, ChangeType, Checkpoint, Nested, ObjectId, OperationKind, RepoPath, Selector,
};
use crate::policy::restore::Selection;

/// What is missing or damaged of the nested checkpoints that one links, as sentences. A repository that is gone takes
/// nothing away of what can be restored: its files are in the outer checkpoint, and verified with it.
pub(crate) fn verify(
    context: &Context,
    outer: &Repo,
    stored: &StoredCheckpoint,
) -> Result<Vec<String>, GitError> {
    let mut problems = Vec::new();
    for link in &stored.manifest.nested {
        let Some(commit) = &link.checkpoint else {
            continue;
        };
        let has_copy = || {
            stored
                .nested_copy(outer, &link.path)
                .is_ok_and(|copy| copy.is_some())
        };
        let found = match Repo::nested(outer, &link.path, context.home()) {
            Ok(repo) if !repo.has_object(commit) && has_copy() => Vec::new(),
            Ok(repo) => verify_one(context, &repo, commit)?,
            Err(GitError::NotARepository(_)) if has_copy() => Vec::new(),
            Err(error) => vec![error.to_string()],
        };
        problems.extend(
            found
                .into_iter()
                .map(|problem| format!("nested repository {}: {problem}", link.path)),
        );
    }
    Ok(problems)
}

fn verify_one(context: &Context, repo: &Repo, commit: &ObjectId) -> Result<Vec<String>, GitError> {
    let found = repo.load_checkpoint(commit).and_then(|stored| {
        let mut inside = stored.verify(repo)?;
        inside.extend(verify(context, repo, &stored)?);
        Ok(inside)
    });
    let problems = match found {
        Err(error @ (GitError::Io { .. } | GitError::Git { .. })) => return Err(error),
        found => found.unwrap_or_else(|error| vec![error.to_string()]),
    };
    if !problems.is_empty() {
        mark_suspect(repo);
    }
    Ok(problems)
}

/// Deletes the references in nested repositories of checkpoints that were pruned. One that cannot be deleted now goes
/// with the next checkpoint.
pub(crate) fn forget(context: &Context, outer: &Repo, gone: &[Checkpoint]) {
    for checkpoint in gone
        .iter()
        .filter(|checkpoint| checkpoint.worktree == context.worktree_id())
    {
        if let Ok(stored) = outer.load_checkpoint(&checkpoint.commit)
            && let Err(error) = forget_one(context, outer, &stored, checkpoint)
        {
            tracing::warn!(%error, "references of {} in a nested repository are left", checkpoint.id);
        }
    }
}

fn forget_one(
    context: &Context,
    outer: &Repo,
    stored: &StoredCheckpoint,
    checkpoint: &Checkpoint,
) -> Result<(), GitError> {
    for link in &stored.manifest.nested {
        let Some(commit) = &link.checkpoint else {
            continue;
        };
        // A repository that is gone has taken its references along.
        let Ok(repo) = Repo::nested(outer, &link.path, context.home()) else {
            continue;
        };
        if let Ok(inside) = repo.load_checkpoint(commit) {
            forget_one(context, &repo, &inside, checkpoint)?;
        }
        let names: Vec<String> = repo
            .nested_refs_of(&checkpoint.run.run_id, &checkpoint.id)?
            .into_iter()
            .map(|found| found.name)
            .collect();
        repo.delete_refs(
            &WorktreeLock::acquire(&repo, context.lock_timeout())?,
            &names,
        )?;
    }
    Ok(())
}

/// The other side of a comparison.
#[derive(Clone, Copy)]
pub(crate) enum Now<'a> {
    /// A stored checkpoint's links.
    Stored(&'a [Nested]),
    /// The work tree.
    Captured(&'a [NestedCapture]),
}

/// Adds the nested repositories whose content differs to `changes`, where their commit has not brought them there.
pub(crate) fn changed(
    context: &Context,
    outer: &Repo,
    then: &[Nested],
    now: Now<'_>,
    selection: &Selection,
    changes: &mut Vec<Change>,
) {
    let held = |links: &[Nested]| -> Vec<Nested> {
        let held = links.iter().filter(|link| link.checkpoint.is_some());
        held.cloned().collect()
    };
    let then = held(then);
    let before = |path: &RepoPath| then.iter().find(|link| link.path == *path);
    // Those that are there now, and whether they are as they were.
    let now: BTreeMap<RepoPath, bool> = match now {
        Now::Stored(links) => {
            let is_same = |other: &Nested| {
                let repo = Repo::nested(outer, &other.path, context.home());
                let both = before(&other.path).zip(repo.ok());
                both.is_some_and(|(link, repo)| same_content(context, &repo, link, other))
            };
            let links = held(links).into_iter();
            links.map(|one| (one.path.clone(), is_same(&one))).collect()
        }
        Now::Captured(captures) => {
            let is_same = |one: &NestedCapture| {
                let link = before(&one.path).and_then(|link| link.checkpoint.as_ref());
                link.is_some_and(|commit| one.is(commit))
            };
            let captures = captures.iter();
            captures
                .map(|one| (one.path.clone(), is_same(one)))
                .collect()
        }
    };
    let created = now.keys().filter(|path| before(path).is_none());
    let created = created.map(|path| (path.clone(), ChangeType::Created));
    let others = then.iter().filter_map(|link| match now.get(&link.path) {
        None => Some((link.path.clone(), ChangeType::Deleted)),
        Some(false) => Some((link.path.clone(), ChangeType::Modified)),
        Some(true) => None,
    });
    for (path, kind) in created.chain(others) {
        if selection.matches(&path) && !changes.iter().any(|change| change.path == path) {
            changes.push(Change::new(path, kind));
        }
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
}

fn same_content(context: &Context, repo: &Repo, a: &Nested, b: &Nested) -> bool {
    if a.checkpoint == b.checkpoint {
        return true;
    }
    let load = |link: &Nested| repo.load_checkpoint(link.checkpoint.as_ref()?).ok();
    let (Some(a), Some(b)) = (load(a), load(b)) else {
        return false;
    };
    let mut inside = Vec::new();
    let nested = Now::Stored(&b.manifest.nested);
    changed(
        context,
        repo,
        &a.manifest.nested,
        nested,
        &Selection::all(),
        &mut inside,
    );
    a.same_as(&b) && inside.is_empty()
}

/// The checkpoint that is meant: where `selector` is the commit of one that was taken of this repository for one around
/// it, it is imported first.
pub(crate) fn adopt(context: &Context, selector: &Selector) -> Result<Selector> {
    let as_it_is = || Ok(selector.clone());
    let Selector::Id(text) = selector else {
        return as_it_is();
    };
    let is_commit = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_commit || !context.has_git() {
        return as_it_is();
    }
    let Ok(stored) = context.repo()?.load_checkpoint(&ObjectId(text.clone())) else {
        return as_it_is();
    };
    let Some(mut found) = record_of(&stored).filter(|found| found.state_dir.is_empty()) else {
        return as_it_is();
    };
    let id = Selector::Id(found.id.to_string());
    if !context.dry_run() {
        context.check_safe_mode(OperationKind::Restore.as_str())?;
        found.state_dir = context.state_dir_id();
        adopt_one(context, found)?;
    }
    Ok(id)
}
