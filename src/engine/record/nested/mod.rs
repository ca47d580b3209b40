//! Captures the repositories inside the work tree, by the same rules.
//! The checkpoint of each lies in its own object database, linked from the manifest of the one around it.
//!
//! A nested checkpoint and its reference are complete before the outer commit that names it is written. A kill in between
//! leaves a reference without an outer checkpoint; the next checkpoint removes it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::stored::{RECORD, mark_suspect};
use crate::engine::base::{Context, Error, Result};
use crate::engine::record::stored::{format_trailers, parse_trailers};
use crate::git::capture::Capture;
use crate::git::checkpoint::{CheckpointParts, StoredCheckpoint};
use crate::git::repo::CheckpointRef;
use crate::git::{Error as GitError, Repo, WorktreeLock};
use crate::model::path::NESTED;
use crate::model::{
    CaptureRules, Checkpoint, CheckpointId, FolderId, Nested, ObjectId, PathReason, RepoPath,
    RunId, State,
};

pub(crate) use stored::{Now, adopt, changed, forget, verify};

mod stored;

/// More repositories one inside the other than this are not followed.
const MAX_DEPTH: usize = 16;
/// The trailer that names the outer work tree.
const OUTER_WORKTREE: &str = "Outer-Worktree";
/// The trailer that names the outer state directory.
const OUTER_STATE: &str = "Outer-State";

/// A nested repository, captured and not recorded yet, with its lock.
#[derive(Debug)]
pub(crate) struct NestedCapture {
    /// Its folder in the repository around it.
    path: RepoPath,
    /// Its folder in the outermost one.
    pub(in crate::engine) whole: RepoPath,
    pub(in crate::engine) capture: Capture,
    pub(in crate::engine) inner: Vec<NestedCapture>,
    lock: WorktreeLock,
    pub(in crate::engine) repo: Repo,
}

/// Captures every repository inside the work tree of `capture`, which learns what came of it.
pub(super) fn capture_all(
    context: &Context,
    rules: &CaptureRules,
    repo: &Repo,
    capture: &mut Capture,
) -> Result<Vec<NestedCapture>> {
    if capture.manifest.nested.is_empty() {
        return Ok(Vec::new());
    }
    let mut walk = Walk {
        context,
        rules,
        seen: BTreeSet::from([real(repo.git_dir())]),
    };
    walk.below(repo, capture, &RepoPath::default(), 1)
}

struct Walk<'a> {
    context: &'a Context,
    rules: &'a CaptureRules,
    /// The git folders that are in use.
    seen: BTreeSet<PathBuf>,
}

impl Walk<'_> {
    fn below(
        &mut self,
        outer: &Repo,
        capture: &mut Capture,
        whole: &RepoPath,
        depth: usize,
    ) -> Result<Vec<NestedCapture>> {
        let mut captures = Vec::new();
        for nested in capture.manifest.nested.clone() {
            let listed =
                |skipped: &PathReason| skipped.path == nested.path && skipped.reason == NESTED;
            // One that is not checked out holds nothing, and is not listed.
            if !capture.manifest.skipped.iter().any(listed) {
                continue;
            }
            let whole = whole.join(nested.path.as_bytes());
            match self.one(outer, &nested.path, &whole, depth) {
                Ok(one) => {
                    let manifest = &mut capture.manifest;
                    manifest.skipped.retain(|skipped| !listed(skipped));
                    let inside = one.capture.manifest.skipped.iter();
                    let inside = inside.map(|skipped| PathReason {
                        path: nested.path.join(skipped.path.as_bytes()),
                        ..skipped.clone()
                    });
                    manifest.skipped.extend(inside);
                    manifest.skipped.sort();
                    manifest.partial |= one.capture.partial;
                    captures.push(one);
                }
                Err(Refused::Everything(error)) => return Err(error),
                Err(Refused::Here { reason, partial }) => {
                    let reason = format!("{NESTED}: {reason}");
                    let skipped = capture.manifest.skipped.iter_mut();
                    let skipped = skipped.filter(|one| listed(one));
                    skipped.for_each(|one| one.reason.clone_from(&reason));
                    capture.manifest.partial |= partial;
                }
            }
            capture.partial = capture.manifest.partial;
        }
        Ok(captures)
    }

    /// Captures one. A full disk is an error; whatever else is wrong with it is its own affair.
    fn one(
        &mut self,
        outer: &Repo,
        path: &RepoPath,
        whole: &RepoPath,
        depth: usize,
    ) -> Result<NestedCapture, Refused> {
        let refuse = |reason: String, partial| Err(Refused::Here { reason, partial });
        if depth > MAX_DEPTH {
            let reason = format!("more than {MAX_DEPTH} repositories inside one another");
            return refuse(reason, false);
        }
        let repo = Repo::nested(outer, path, self.context.home())?;
        if !self.seen.insert(real(repo.git_dir())) {
            let reason = "it shares its git folder with another work tree";
            return refuse(reason.to_owned(), false);
        }
        let lock = self.context.lock_worktree(&repo)?;
        if let Some(journal) = repo.restore_journal()? {
            let (kind, id) = (journal.kind, journal.operation_id);
            let reason = format!("{kind} {id} in it was interrupted and is not resolved yet");
            return refuse(reason, true);
        }
        let mut capture = repo.capture(&lock, self.rules, &BTreeSet::new())?;
        let inner = self.below(&repo, &mut capture, whole, depth + 1);
        Ok(NestedCapture {
            path: path.clone(),
            whole: whole.clone(),
            inner: inner.map_err(Refused::Everything)?,
            capture,
            lock,
            repo,
        })
    }
}

/// Why a nested repository was not captured.
enum Refused {
    Here {
        reason: String,
        /// Whether it should have been.
        partial: bool,
    },
    Everything(Error),
}

impl From<GitError> for Refused {
    fn from(error: GitError) -> Self {
        match error {
            GitError::NoSpace { .. } => Self::Everything(error.into()),
            error => refusal(&error),
        }
    }
}

fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What policy or the format forbids is listed; what went wrong makes the capture partial.
fn refusal(error: &GitError) -> Refused {
    let partial = !matches!(
        error,
        GitError::NotARepository(_)
            | GitError::Unsupported(_)
            | GitError::Unusable(_)
            | GitError::ForeignOwner { .. }
            | GitError::StrayWorktree { .. }
            | GitError::UnsafePath { .. }
            | GitError::UntrackedFlood { .. }
    );
    let mut reason = match error {
        GitError::NotARepository(_) => "there is no repository that could be read".to_owned(),
        other => other.to_string(),
    };
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason = format!("{reason}: {cause}");
        source = cause.source();
    }
    Refused::Here { reason, partial }
}

/// Whether the nested repositories are as a checkpoint's manifest has them. Their paths and commits are compared with
/// the manifests.
pub(crate) fn unchanged(captures: &[NestedCapture], then: &[Nested]) -> bool {
    let known = |one: &NestedCapture| then.iter().any(|nested| nested.path == one.path);
    captures.iter().all(known)
        && then.iter().all(|nested| {
            let found = captures.iter().find(|one| one.path == nested.path);
            match (found, &nested.checkpoint) {
                (None, None) => true,
                (Some(one), Some(commit)) => one.is(commit),
                _ => false,
            }
        })
}

/// Whether a reference of this checkpoint is in the way.
pub(crate) fn taken(captures: &[NestedCapture], run_id: &RunId, checkpoint: &CheckpointId) -> bool {
    captures.iter().any(|one| {
        let id = CheckpointRef::nested_id(checkpoint, &one.whole);
        id.is_ok_and(|id| one.repo.ref_exists(&CheckpointRef::name_of(run_id, &id)))
            || taken(&one.inner, run_id, checkpoint)
    })
}

/// Removes what a kill left: references of this work tree and state directory without a checkpoint around them.
pub(super) fn remove_strays(
    context: &Context,
    state: &State,
    captures: &[NestedCapture],
) -> Result<()> {
    for one in captures {
        let mut strays = Vec::new();
        for found in one.repo.list_refs()?.0 {
            let Some(outer) = found.outer_name() else {
                continue;
            };
            let id = outer.rsplit('/').next().unwrap_or_default();
            if state.checkpoint(&id.into()).is_none()
                && !context.repo()?.ref_exists(outer)
                && one
                    .repo
                    .load_checkpoint(&found.commit)
                    .is_ok_and(|stored| is_ours(context, &stored.message))
            {
                strays.push(found.name);
            }
        }
        if !strays.is_empty() {
            one.repo.delete_refs(&one.lock, &strays)?;
        }
        remove_strays(context, state, &one.inner)?;
    }
    Ok(())
}

/// Whether a nested checkpoint was made for this work tree from this state directory.
fn is_ours(context: &Context, message: &str) -> bool {
    let all = parse_trailers(message);
    let has = |key: &str, value: &str| {
        all.iter()
            .any(|(known, found)| known == key && found == value)
    };
    has(OUTER_WORKTREE, context.worktree_id().text())
        && has(OUTER_STATE, context.state_dir_id().text())
}

/// What a checkpoint holds of the repositories inside.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The links for its manifest.
    pub links: Vec<Nested>,
    /// The tree of their files.
    pub copies: Option<ObjectId>,
}

/// Writes the nested checkpoints of `checkpoint`, sets their references, and copies their files into the database of the
/// `outer` repository, whose `capture` is written next.
///
/// A repository that is as the `previous` checkpoint of the outer one has it is linked to the same commit again, and
/// nothing is copied of it. `previous` is one that its reference holds.
pub(crate) fn record(
    context: &Context,
    (outer, capture): (&Repo, &Capture),
    captures: &[NestedCapture],
    previous: Option<&StoredCheckpoint>,
    checkpoint: &Checkpoint,
) -> Result<Recorded> {
    let mut links = capture.manifest.nested.clone();
    if captures.is_empty() {
        return Ok(Recorded {
            links,
            copies: None,
        });
    }
    let linked = previous.map_or(&[][..], |stored| stored.manifest.nested.as_slice());
    let mut written = Vec::new();
    for one in captures {
        let before = linked.iter().find(|nested| nested.path == one.path);
        let commit = one.write(
            context,
            before.and_then(|nested| nested.checkpoint.as_ref()),
            checkpoint,
        )?;
        for link in links.iter_mut().filter(|link| link.path == one.path) {
            link.checkpoint = Some(commit.clone());
        }
        written.push((one, commit));
    }
    let all: Vec<_> = written
        .iter()
        .map(|(one, commit)| (&one.path, &one.repo, commit))
        .collect();
    let copied = outer.copy_nested(capture, previous, &all)?;
    for (path, error) in copied.failed {
        tracing::warn!(%error, "{path}: of this nested repository only its own checkpoint has the files");
        written
            .iter()
            .filter(|(one, _)| one.path == path)
            .for_each(|(one, _)| mark_suspect(&one.repo));
    }
    Ok(Recorded {
        links,
        copies: copied.tree,
    })
}

impl NestedCapture {
    /// Whether a stored checkpoint of this repository holds the same.
    pub(crate) fn is(&self, commit: &ObjectId) -> bool {
        self.repo.load_checkpoint(commit).is_ok_and(|stored| {
            self.capture.same_as(&stored, &[]).unwrap_or(false)
                && unchanged(&self.inner, &stored.manifest.nested)
        })
    }

    /// Whether a stored checkpoint has the same files; HEAD and index are not compared, here or in those inside.
    pub(in crate::engine) fn has_files_of(&self, commit: &ObjectId) -> bool {
        let Ok(stored) = self.repo.load_checkpoint(commit) else {
            return false;
        };
        let then = &stored.manifest.nested;
        let same = |one: &Self| {
            let link = then.iter().find(|link| link.path == one.path);
            link.and_then(|link| link.checkpoint.as_ref())
                .is_some_and(|commit| one.has_files_of(commit))
        };
        let held = then.iter().filter(|link| link.checkpoint.is_some()).count();
        self.capture.is_same_tree(&stored)
            && self.inner.len() == held
            && self.inner.iter().all(same)
    }

    fn write(
        &self,
        context: &Context,
        previous: Option<&ObjectId>,
        checkpoint: &Checkpoint,
    ) -> Result<ObjectId> {
        let before = previous.and_then(|commit| self.repo.load_checkpoint(commit).ok());
        let around = (&self.repo, &self.capture);
        let Recorded { links, copies } =
            record(context, around, &self.inner, before.as_ref(), checkpoint)?;
        let id = CheckpointRef::nested_id(&checkpoint.id, &self.whole)?;
        let same = |stored: &StoredCheckpoint| {
            links == stored.manifest.nested
                && copies == stored.copies
                && self.capture.same_as(stored, &[]).unwrap_or(false)
        };
        let commit = if let Some(stored) = before.filter(same) {
            stored.commit
        } else {
            let message = self.message(context, &id, checkpoint)?;
            let (copies, at) = (copies.as_ref(), checkpoint.created_at);
            let parts = CheckpointParts {
                memory: &[],
                events_jsonl: b"",
                copies,
                message: &message,
                at,
            };
            self.repo
                .write_linked(&self.capture, &links, None, &parts)?
        };
        let reference = CheckpointRef::name_of(&checkpoint.run.run_id, &id);
        self.repo
            .name_checkpoint(&self.lock, &self.capture, &reference, &commit)?;
        self.capture.write_cache(&reference, &commit);
        Ok(commit)
    }

    /// The record is that of the outer checkpoint, as seen from here. It names no state directory, so that none takes
    /// it in unasked.
    fn message(
        &self,
        context: &Context,
        id: &CheckpointId,
        checkpoint: &Checkpoint,
    ) -> Result<String> {
        let capture = &self.capture;
        let record = Checkpoint {
            id: id.clone(),
            worktree: FolderId::of(self.repo.workdir()),
            state_dir: FolderId::default(),
            commit: ObjectId(String::new()),
            tree: capture.tree.clone(),
            base_commit: capture.head.commit.clone(),
            head_ref: capture.head.branch.clone(),
            previous: None,
            changed_from: None,
            captured: capture.stats,
            changes: crate::model::checkpoint::ChangeTotals::default(),
            changed_paths: Vec::new(),
            skipped: capture.manifest.skipped.clone(),
            unsettled: capture.manifest.unsettled.clone(),
            partial: capture.partial,
            ..checkpoint.clone()
        };
        let record = serde_json::to_string(&record).context("cannot encode a nested record")?;
        let (outer, state) = (context.worktree_id(), context.state_dir_id());
        let headline = format!("{} (nested in {outer})", checkpoint.description);
        let all = [
            ("Id", id.as_str()),
            ("Run", checkpoint.run.run_id.as_str()),
            (OUTER_WORKTREE, outer.text()),
            (OUTER_STATE, state.text()),
            (RECORD, &record),
        ];
        Ok(format_trailers(&headline, &all))
    }
}
