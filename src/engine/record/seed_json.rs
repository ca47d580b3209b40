//! A checkpoint in the format of the state recovery specification (S2, S11).
//! Whole as an export, and the part of it that the view of the latest one holds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::engine::base::{Context, Result};
use crate::git::capture::{Capture, FileState};
use crate::git::checkpoint::{MemoryFile, StoredCheckpoint};
use crate::git::remote::Filter;
use crate::model::{Checkpoint, Entry, ObjectId, PathReason, RepoPath, State};
use crate::store::views::{ActiveState, latest_checkpoint, session_checkpoint};

/// How many bytes of working memory and file states the view of the latest checkpoint holds (S2).
const MOST_BYTES: usize = 100 << 10;
/// About what a file's state takes beside its path.
const STATE_BYTES: usize = 120;

/// The document: file states by path, and the working memory with its files as JSON where they are, else as text.
///
/// `checksum` is the id of the content's blob. `last_modified` is the time that the file had when it was captured; null
/// where that is not known. Files whose content is one of `plain` are left out, and returned.
pub(crate) fn document(
    context: &Context,
    state: &State,
    checkpoint: &Checkpoint,
    plain: &BTreeSet<ObjectId>,
) -> Result<(Value, Vec<PathReason>)> {
    let repo = context.repo()?;
    let stored = repo.load_checkpoint(&checkpoint.commit)?;
    let snapshot = stored.snapshot(repo)?;
    let files = snapshot
        .entries
        .into_iter()
        .filter(|(_, entry)| entry.is_file());
    let (withheld, files): (Vec<_>, Vec<_>) =
        files.partition(|(_, entry)| plain.contains(&entry.oid));
    let mut withheld: Vec<PathReason> = withheld
        .iter()
        .map(|(path, _)| Filter::withheld(path))
        .collect();
    let states = file_states(context, checkpoint, &stored, files)?;
    let files = states
        .iter()
        .map(|file| (file.path.to_lossy().into_owned(), told(file)))
        .collect();
    let mut memory = Map::new();
    for kept in stored.memory(repo)? {
        if plain.contains(&kept.blob()?) {
            withheld.push(Filter::withheld(&kept.path));
            continue;
        }
        memory.insert(kept.path.to_lossy().into_owned(), remembered(&kept));
    }
    let run = state.run(&checkpoint.run);
    Ok((
        session_checkpoint(checkpoint, run, &memory, &Value::Object(files)),
        withheld,
    ))
}

/// A file of the working memory: as JSON where it is that, else as text.
fn remembered(file: &MemoryFile) -> Value {
    let text = || Value::String(String::from_utf8_lossy(&file.content).into_owned());
    serde_json::from_slice(&file.content).unwrap_or_else(|_| text())
}

fn told(file: &FileState) -> Value {
    json!({"checksum": file.blob, "last_modified": file.modified, "size_bytes": file.size})
}

/// The states of files of a checkpoint; when they were last modified, as far as it or the last capture of the worktree
/// knows that.
fn file_states(
    context: &Context,
    checkpoint: &Checkpoint,
    stored: &StoredCheckpoint,
    files: Vec<(RepoPath, Entry)>,
) -> Result<Vec<FileState>> {
    let repo = context.repo()?;
    let mut modified = stored.modified(repo)?;
    let is_unknown = |path: &&RepoPath| !modified.contains_key(*path);
    let unknown: BTreeSet<_> = files
        .iter()
        .map(|(path, _)| path)
        .filter(is_unknown)
        .collect();
    let is_here = checkpoint.worktree == context.worktree_id();
    let seen = if is_here && !unknown.is_empty() {
        repo.last_seen_times(&unknown)
    } else {
        BTreeMap::new()
    };
    let state = |(path, entry): (RepoPath, Entry)| {
        // The same content with a time from before the checkpoint was the same then.
        let was = seen
            .get(&path)
            .filter(|(blob, at)| *blob == entry.oid && *at <= checkpoint.created_at);
        let modified = modified.remove(&path).or(was.map(|(_, at)| *at));
        Ok(FileState {
            size: repo.blob_size(&entry.oid)?,
            path,
            blob: entry.oid,
            modified,
        })
    };
    files.into_iter().map(state).collect()
}

/// Keeps what the view of the latest checkpoint holds, while the capture still knows all of it. It can be made again: a
/// failure is reported and no more.
pub(super) fn write_active(
    context: &Context,
    checkpoint: &Checkpoint,
    memory: &[MemoryFile],
    capture: &Capture,
) {
    if checkpoint.is_safety() {
        return;
    }
    let files = capture.file_states(&checkpoint.changed_paths, MOST_BYTES / STATE_BYTES);
    let active = bounded(checkpoint, memory, files, capture.stats.files);
    if let Err(error) = active.keep(context.store()) {
        tracing::warn!(%error, "active_checkpoint.json does not list the files of {}", checkpoint.id);
    }
}

/// What the view of the latest checkpoint holds: what is kept of it, or else what its commit says. What cannot be read is
/// reported and left out.
pub(crate) fn active_state(context: &Context, state: &State) -> Option<ActiveState> {
    let latest = latest_checkpoint(state)?;
    let kept = ActiveState::read(context.store()).filter(|kept| kept.checkpoint_id == latest.id);
    kept.or_else(|| {
        let made = made_again(context, latest);
        made.inspect_err(
            |error| tracing::warn!(%error, "the files of {} cannot be listed", latest.id),
        )
        .ok()
    })
}

/// Sees to it that what is kept is the latest checkpoint's: that may have changed without one being taken.
pub(crate) fn refresh_active(context: &Context, state: &State) -> Result<()> {
    match active_state(context, state) {
        Some(active) if ActiveState::read(context.store()).as_ref() != Some(&active) => {
            Ok(active.keep(context.store())?)
        }
        _ => Ok(()),
    }
}

fn made_again(context: &Context, checkpoint: &Checkpoint) -> Result<ActiveState> {
    let repo = context.repo()?;
    let stored = repo.load_checkpoint(&checkpoint.commit)?;
    let files = stored.files_from(repo, &checkpoint.changed_paths, MOST_BYTES / STATE_BYTES)?;
    let files = file_states(context, checkpoint, &stored, files)?;
    Ok(bounded(
        checkpoint,
        &stored.memory(repo)?,
        files,
        checkpoint.captured.files,
    ))
}

/// The working memory first, then the states of files in their order, up to the limit. A file of the memory that is closed
/// to others stays so: the view is for all to read.
fn bounded(
    checkpoint: &Checkpoint,
    memory: &[MemoryFile],
    files: Vec<FileState>,
    all_files: u64,
) -> ActiveState {
    let mut active = ActiveState {
        checkpoint_id: checkpoint.id.clone(),
        ..ActiveState::default()
    };
    let mut left = MOST_BYTES;
    for file in memory {
        if file.mode & 0o044 == 0 || file.content.len() > left {
            active.memory_left_out += 1;
            continue;
        }
        left -= file.content.len();
        active
            .working_memory
            .insert(file.path.to_lossy().into_owned(), remembered(file));
    }
    for file in files {
        let path = file.path.to_lossy();
        let Some(rest) = left.checked_sub(path.len() + STATE_BYTES) else {
            break;
        };
        left = rest;
        active.file_states.insert(path.into_owned(), told(&file));
    }
    active.file_states_left_out = all_files.saturating_sub(active.file_states.len() as u64);
    active
}
