//! A checkpoint in the state recovery's own format, with the state of every file (S2, S11).

use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Map, Value, json};

use crate::git::stored::{blob_size, load_checkpoint};
use crate::model::checkpoint::Checkpoint;
use crate::model::snapshot::EntryKind;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::store::views::session_checkpoint;

use super::context::Context;
use super::error::Result;

/// The document: file states by path, and the working memory with its files as JSON where they are, else as text.
///
/// `checksum` is the id of the content's blob. `last_modified` is that of the file where the work tree still holds this
/// very size, else the checkpoint's own time: a tree keeps no times.
pub fn document(context: &Context, state: &State, checkpoint: &Checkpoint) -> Result<Value> {
    let repo = context.repo()?;
    let stored = load_checkpoint(repo, &checkpoint.commit)?;
    let mut files = Map::new();
    for (path, entry) in &stored.snapshot(repo)?.entries {
        if !matches!(entry.kind, EntryKind::File | EntryKind::Symlink) {
            continue;
        }
        let size = blob_size(repo, &entry.oid)?;
        let on_disk = std::path::Path::new(&checkpoint.worktree).join(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let modified = fs::symlink_metadata(on_disk).ok().filter(|found| found.len() == size);
        let modified = modified.and_then(|found| found.modified().ok());
        let modified = modified.map(|at| Timestamp::new(at.into())).filter(|at| *at <= checkpoint.created_at);
        let file = json!({
            "checksum": entry.oid,
            "last_modified": modified.unwrap_or(checkpoint.created_at),
            "size_bytes": size,
        });
        files.insert(path.to_lossy().into_owned(), file);
    }
    let mut memory = Map::new();
    memory.insert("current_task".to_owned(), json!(checkpoint.description));
    for kept in stored.memory(repo)? {
        let text = || Value::String(String::from_utf8_lossy(&kept.content).into_owned());
        let value = serde_json::from_slice(&kept.content).unwrap_or_else(|_| text());
        memory.insert(kept.path.to_lossy().into_owned(), value);
    }
    let run = state.run(&checkpoint.run);
    Ok(session_checkpoint(checkpoint, run, &Value::Object(memory), &Value::Object(files)))
}
