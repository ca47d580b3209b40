//! What each checkpoint added to the repository, as its capture counted it: bytes of new objects, uncompressed.
//!
//! A cache, a line a checkpoint: what is not in it is found out again by reading every checkpoint's trees.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use crate::durable::Sync;
use crate::engine::base::context::Context;
use crate::model::id::CheckpointId;
use crate::store::Origin;

fn path(context: &Context) -> PathBuf {
    context.store().private_dir().join("sizes")
}

/// Notes a checkpoint's bytes. The caller holds the ledger's lock.
pub(in crate::engine) fn note(context: &Context, id: &CheckpointId, bytes: u64) {
    let add = || -> io::Result<()> {
        let file = context.store().root().open_or_create(&path(context))?;
        let end = file.metadata()?.len();
        file.write_all_at(line(id, bytes).as_bytes(), end)
    };
    if let Err(error) = add() {
        tracing::debug!(%error, "the size of {id} was not noted");
    }
}

/// What is known, by id. A line that says nothing is none.
pub(in crate::engine) fn known(context: &Context) -> BTreeMap<CheckpointId, u64> {
    let bytes = context
        .store()
        .root()
        .read(&path(context))
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .filter_map(|(id, bytes)| Some((CheckpointId::from(id.to_owned()), bytes.parse().ok()?)))
        .collect()
}

/// Puts these in the place of what was noted, unless nothing may be written here.
pub(in crate::engine) fn replace<'a>(
    context: &Context,
    all: impl Iterator<Item = (&'a CheckpointId, u64)>,
) {
    if context.dry_run() || context.store().origin() != Origin::Ours {
        return;
    }
    let text: String = all.map(|(id, bytes)| line(id, bytes)).collect();
    if let Err(error) = context
        .store()
        .root()
        .write(&path(context), text.as_bytes(), Sync::Nothing)
    {
        tracing::debug!(%error, "the sizes of checkpoints were not noted");
    }
}

/// Forgets all: what one checkpoint added and another one needs is that one's once the first is gone.
pub(in crate::engine) fn forget(context: &Context) {
    match context.store().root().remove_file(&path(context)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::debug!(%error, "the sizes of checkpoints are still those of before");
        }
        _ => {}
    }
}

fn line(id: &CheckpointId, bytes: u64) -> String {
    format!("{id} {bytes}\n")
}
