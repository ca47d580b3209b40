//! A checkpoint in the state recovery's own format, with the state of every file (S2, S11).

use serde_json::{Map, Value, json};

use crate::git::file_states::last_seen;
use crate::git::stored::{blob_size, load_checkpoint};
use crate::model::checkpoint::Checkpoint;
use crate::model::path::RepoPath;
use crate::model::snapshot::{Entry, EntryKind};
use crate::model::state::State;
use crate::store::views::session_checkpoint;

use super::context::Context;
use super::error::Result;

/// The document: file states by path, and the working memory with its files as JSON where they are, else as text.
///
/// `checksum` is the id of the content's blob. `last_modified` is the time that the file had when it was captured; null
/// where that is not known.
pub fn document(context: &Context, state: &State, checkpoint: &Checkpoint) -> Result<Value> {
    let repo = context.repo()?;
    let stored = load_checkpoint(repo, &checkpoint.commit)?;
    let snapshot = stored.snapshot(repo)?;
    let all = snapshot.entries.iter().filter(|(_, entry)| matches!(entry.kind, EntryKind::File | EntryKind::Symlink));
    let all: Vec<_> = all.collect();
    let mut modified = stored.modified(&snapshot);
    if modified.len() < all.len() && checkpoint.worktree == context.worktree_name() {
        let seen = last_seen(repo)?;
        // The same content with a time from before the checkpoint was the same then.
        let was = |path: &RepoPath, entry: &Entry| {
            let (blob, at) = seen.get(path)?;
            (*blob == entry.oid && *at <= checkpoint.created_at).then_some(*at)
        };
        for (path, entry) in &all {
            if let (false, Some(at)) = (modified.contains_key(*path), was(path, entry)) {
                modified.insert((*path).clone(), at);
            }
        }
    }
    let mut files = Map::new();
    for (path, entry) in all {
        let file = json!({
            "checksum": entry.oid,
            "last_modified": modified.get(path),
            "size_bytes": blob_size(repo, &entry.oid)?,
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
