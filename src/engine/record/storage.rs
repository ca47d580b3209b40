//! What a checkpoint is made from, how it is stored beside its hidden commit, and what it added.
//!
//! How a checkpoint is stored beside its hidden commit: snapshot, commit on the branch, or patch file (B12).
//! A snapshot is nothing more than the hidden commit.
//!
//! The hidden commit is always there and is what restores use. What is asked for and cannot be done is an error; what is
//! only configured is left out with a warning, and the checkpoint's record says so.
//!
//! What each checkpoint added to the repository, as its capture counted it: bytes of new objects, uncompressed.
//!
//! A cache, a line a checkpoint: what is not in it is found out again by reading every checkpoint's trees.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Instant;

use super::nested::NestedCapture;
use super::stored;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::git_state::abort_of;
use crate::git::capture::Capture;
use crate::git::checkpoint::{Committed, MemoryFile};
use crate::git::remote::Filter;
use crate::git::repo::Loan;
use crate::git::tree::Objects;
use crate::git::{Repo, WorktreeLock};
use crate::model::checkpoint::trigger;
use crate::model::{
    ChangeTotals, Checkpoint, CheckpointId, CheckpointType, FeedbackResults, Hint, LaneFields,
    ObjectId, PathReason, RepoPath, RunKey, StorageType, TaskId, Verdict,
};
use crate::policy::settings::SafeMode;

/// Keeps what was captured as it is requested or configured, and says so in the checkpoint. The caller writes the hidden
/// commit afterwards, with HEAD and index as the commit on the branch, which is returned, left them.
pub(super) fn store(
    context: &Context,
    prepared: &Prepared,
    request: &Request,
    checkpoint: &mut Checkpoint,
) -> Result<Option<Committed>> {
    let wanted = request
        .storage
        .unwrap_or_else(|| configured(context, request));
    let stored = match wanted {
        StorageType::Snapshot => Ok(None),
        StorageType::Commit => commit(context, prepared, request, checkpoint),
        StorageType::Patch => patch(context, prepared, checkpoint).map(|()| None),
    };
    match stored {
        Err(error) if request.storage.is_none() => {
            tracing::warn!(%error, "{} is kept as a hidden commit only", checkpoint.id);
            Ok(None)
        }
        stored => stored,
    }
}

/// What the configuration makes of a checkpoint. A commit on the branch is for what is good, for progress that goes on
/// in another session (A8) and for what a person asks for: neither for failures nor for what was there before the run.
fn configured(context: &Context, request: &Request) -> StorageType {
    let storage = context.settings().checkpoint.effective_storage();
    match request.trigger.as_str() {
        trigger::SAFETY => StorageType::Snapshot,
        _ if storage != StorageType::Commit => storage,
        // There is no branch: not worth a warning each time.
        _ if !context.has_git() => StorageType::Snapshot,
        // Nor is what the mode says.
        _ if context.settings().rollback.safe_mode == SafeMode::ReadOnly => StorageType::Snapshot,
        trigger::INITIAL | trigger::CRASH => StorageType::Snapshot,
        trigger::ATTEMPT | trigger::MANUAL_FIX
            if request.verdict != Verdict::Passed && !request.saves_progress =>
        {
            StorageType::Snapshot
        }
        _ => StorageType::Commit,
    }
}

fn commit(
    context: &Context,
    prepared: &Prepared,
    request: &Request,
    checkpoint: &mut Checkpoint,
) -> Result<Option<Committed>> {
    context.check_writes("a commit on the branch")?;
    let (repo, manifest) = (context.repo()?, &prepared.capture.manifest);
    if !context.has_git() {
        let message = "a folder without git has no branch to commit on";
        return Err(Error::new(ErrorKind::NoRepository, message).hint(Hint::git(["init"])));
    }
    if let Some(operation) = &manifest.operation {
        let abort = abort_of(operation);
        let message = format!(
            "a {operation} is in progress: no commit is made in the middle of it; finish it, or give it up with {abort}"
        );
        return Err(Error::new(ErrorKind::OperationInProgress, message).hint(Hint::git(["status"])));
    }
    if manifest.index_extras.iter().any(|extra| extra.stage > 0) {
        let message =
            "there are conflicts in the index: no commit is made before they are resolved";
        return Err(Error::new(ErrorKind::Conflicts, message).hint(Hint::git(["status"])));
    }
    let headline = headline(request, checkpoint);
    let (id, run) = (checkpoint.id.as_str(), checkpoint.run.run_id.as_str());
    let message = stored::format_trailers(&headline, &[("Id", id), ("Run", run)]);
    let reflog = format!("recover: commit for checkpoint {id}: {headline}");
    let committed = repo.commit_on_branch(
        &prepared.lock,
        &prepared.capture,
        &message,
        &reflog,
        context.lock_timeout(),
    )?;
    checkpoint.storage_type = StorageType::Commit;
    if let Some(committed) = &committed {
        checkpoint.base_commit.clone_from(&committed.head.commit);
        checkpoint.branch_commit = Some(committed.commit.clone());
    }
    Ok(committed)
}

/// The subject line of the commit: the caller's words, else which iteration of what it is.
fn headline(request: &Request, checkpoint: &Checkpoint) -> String {
    if !request.description.is_empty() {
        return request.description.clone();
    }
    let task = checkpoint.task_id.as_ref().map(TaskId::as_str);
    let what = task.unwrap_or(checkpoint.run.run_id.as_str());
    match checkpoint.after_iteration {
        0 => format!("recover: {what}"),
        number => format!("recover: {what} iteration {number}"),
    }
}

fn patch(context: &Context, prepared: &Prepared, checkpoint: &mut Checkpoint) -> Result<()> {
    let path = write_patch_file(context, &prepared.capture.objects(), checkpoint)?;
    checkpoint.storage_type = StorageType::Patch;
    checkpoint.patch_path = Some(path.to_string_lossy().into_owned());
    Ok(())
}

/// Writes the patch file of a checkpoint whose objects are stored again; for a state directory that was lost.
pub(crate) fn write_patch_again(context: &Context, checkpoint: &Checkpoint) -> Result<()> {
    write_patch_file(context, &Objects::stored(context.repo()?), checkpoint).map(drop)
}

/// Where the patch file of a checkpoint is.
pub(crate) fn patch_file(context: &Context, key: &RunKey, id: &CheckpointId) -> PathBuf {
    let folder = context.store().run_dir(key).join("patches");
    folder.join(format!("{id}.patch"))
}

fn write_patch_file(
    context: &Context,
    objects: &Objects<'_>,
    checkpoint: &Checkpoint,
) -> Result<PathBuf> {
    let path = patch_file(context, &checkpoint.run, &checkpoint.id);
    let mut bytes = Vec::new();
    let base = checkpoint.base_commit.as_ref();
    objects.write_patch(base, &checkpoint.tree, &BTreeSet::new(), &mut bytes)?;
    context.write_state_file(&path, &bytes)?;
    Ok(path)
}

/// Removes the patch files of checkpoints that are gone. Only what lies where they are written is touched. Returns the
/// bytes of what was removed.
pub(crate) fn remove_patches(context: &Context, gone: &[Checkpoint]) -> u64 {
    let mut bytes = 0;
    for checkpoint in gone {
        let path = patch_file(context, &checkpoint.run, &checkpoint.id);
        let root = context.store().root();
        let size = root.open(&path).and_then(|file| file.metadata());
        let removed = size.and_then(|file| root.remove_file(&path).map(|()| file.len()));
        match removed {
            Ok(size) => bytes += size,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "a patch file was not removed");
            }
        }
    }
    bytes
}

/// The patch of a checkpoint from its base commit, for an export; without the files whose content is one of `plain`, which
/// are returned.
pub(crate) fn patch_of(
    repo: &Repo,
    checkpoint: &Checkpoint,
    plain: &BTreeSet<ObjectId>,
    out: &mut dyn std::io::Write,
) -> Result<Vec<PathReason>> {
    let withheld = Objects::stored(repo).write_patch(
        checkpoint.base_commit.as_ref(),
        &checkpoint.tree,
        plain,
        out,
    )?;
    Ok(withheld.iter().map(Filter::withheld).collect())
}

/// What a checkpoint says beside what it captures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// The headline; made from the rest where it is empty.
    pub description: String,
    /// Why it is taken.
    pub trigger: String,
    /// What kind of moment it marks.
    pub kind: CheckpointType,
    /// The iteration it is taken after; the run's last finished one where it is not named.
    pub after_iteration: Option<u32>,
    /// The attempt it is taken after.
    pub attempt: Option<u32>,
    /// What the feedback loops said.
    pub verdict: Verdict,
    /// One by one.
    pub feedback_results: FeedbackResults,
    /// The lane contract's fields.
    pub lane_fields: LaneFields,
    /// Whether retention must leave it alone.
    pub pinned: bool,
    /// How it is kept, where that was asked for; else as configured.
    pub storage: Option<StorageType>,
    /// Whether it may become a commit on the branch although it is not good: progress that goes on later (A8).
    pub saves_progress: bool,
}

impl Request {
    /// For this reason, of the kind that goes with it. An empty description is made from the rest.
    pub(crate) fn new(why: &str, description: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            trigger: why.to_owned(),
            kind: trigger::kind_of(why),
            ..Self::default()
        }
    }
}

/// A capture that is not recorded yet, and the lock it was made under.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The work tree.
    pub capture: Capture,
    /// The repositories inside it.
    pub nested: Vec<NestedCapture>,
    /// The working memory.
    pub memory: Vec<MemoryFile>,
    /// Rights that are lent as long as this lives.
    pub loan: Option<Loan>,
    /// Nobody else writes in the work tree while this lives.
    pub lock: WorktreeLock,
    pub(in crate::engine) begun: Instant,
}

impl Prepared {
    /// The work tree's lock, and the repositories inside it with theirs; the work tree's capture goes, and what was lent is
    /// given back.
    pub(in crate::engine) fn into_locks(self) -> (WorktreeLock, Vec<NestedCapture>) {
        let Self {
            lock,
            nested,
            capture,
            loan,
            ..
        } = self;
        drop((capture, loan));
        (lock, nested)
    }
}

/// How much changed since the checkpoint before, and what.
pub(super) type Changes = (ChangeTotals, Vec<RepoPath>);

fn sizes_file(context: &Context) -> PathBuf {
    context.store().private_dir().join("sizes")
}

/// Notes a checkpoint's bytes. The caller holds the ledger's lock.
pub(super) fn note_size(context: &Context, id: &CheckpointId, bytes: u64) {
    let add = || -> io::Result<()> {
        let file = context
            .store()
            .root()
            .open_or_create(&sizes_file(context))?;
        let end = file.metadata()?.len();
        file.write_all_at(size_line(id, bytes).as_bytes(), end)
    };
    if let Err(error) = add() {
        tracing::debug!(%error, "the size of {id} was not noted");
    }
}

/// What is known, by id. A line that says nothing is none.
pub(in crate::engine) fn known_sizes(context: &Context) -> BTreeMap<CheckpointId, u64> {
    let bytes = context
        .store()
        .root()
        .read(&sizes_file(context))
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter_map(|(id, bytes)| Some((CheckpointId::from(id.to_owned()), bytes.parse().ok()?)))
        .collect()
}

/// Puts these in the place of what was noted, unless nothing may be written here.
pub(in crate::engine) fn replace_sizes<'a>(
    context: &Context,
    all: impl Iterator<Item = (&'a CheckpointId, u64)>,
) {
    let text: String = all.map(|(id, bytes)| size_line(id, bytes)).collect();
    context.write_note(&sizes_file(context), text.as_bytes());
}

/// Forgets all: what one checkpoint added and another one needs is that one's once the first is gone.
pub(in crate::engine) fn forget_sizes(context: &Context) {
    match context.store().root().remove_file(&sizes_file(context)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::debug!(%error, "the sizes of checkpoints are still those of before");
        }
        _ => {}
    }
}

fn size_line(id: &CheckpointId, bytes: u64) -> String {
    format!("{id} {bytes}\n")
}
