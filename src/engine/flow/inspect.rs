//! Looking into checkpoints: files, differences, patches (S3).

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::{checkpoint, memory, nested};
use crate::git::checkpoint::MemoryFile;
use crate::git::tree::Objects;
use crate::model::checkpoint::Checkpoint;
use crate::model::id::CheckpointId;
use crate::model::manifest::Nested;
use crate::model::manifest::{Change, ChangeType, Entry, EntryKind, ObjectId};
use crate::model::path::RepoPath;
use crate::model::state::State;
use crate::policy::path_filter::Selection;

/// A file of a checkpoint.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct File {
    /// Where it is.
    #[serde(flatten)]
    pub path: RepoPath,
    /// As git writes it, in octal.
    pub mode: String,
    /// In bytes; `None` for what is neither a file nor a symbolic link.
    pub size: Option<u64>,
    /// Its content, or the commit of a repository inside.
    pub blob: ObjectId,
}

/// The files of a checkpoint.
pub(crate) fn show(context: &Context, checkpoint: &Checkpoint) -> Result<Vec<File>> {
    let repo = context.repo()?;
    let snapshot = repo.load_checkpoint(&checkpoint.commit)?.snapshot(repo)?;
    let file = |(path, entry): (RepoPath, Entry)| {
        let mode = match entry.kind {
            EntryKind::File => format!("100{:03o}", entry.mode),
            EntryKind::Symlink => "120000".to_owned(),
            EntryKind::Gitlink => "160000".to_owned(),
            EntryKind::EmptyDir => format!("040{:03o}", entry.mode),
        };
        let size = match entry.kind {
            EntryKind::File | EntryKind::Symlink => Some(repo.blob_size(&entry.oid)?),
            EntryKind::Gitlink | EntryKind::EmptyDir => None,
        };
        Ok(File {
            path,
            mode,
            size,
            blob: entry.oid,
        })
    };
    snapshot.entries.into_iter().map(file).collect()
}

/// The repositories inside, with their own checkpoints.
pub(crate) fn show_nested(context: &Context, checkpoint: &Checkpoint) -> Result<Vec<Nested>> {
    Ok(context
        .repo()?
        .load_checkpoint(&checkpoint.commit)?
        .manifest
        .nested)
}

/// What a checkpoint changed since the run's previous one, or since the one that files went back to after that; everything,
/// for the first.
pub(crate) fn patch_since_previous(
    context: &Context,
    state: &State,
    checkpoint: &Checkpoint,
) -> Result<Vec<u8>> {
    let repo = context.repo()?;
    let from = checkpoint
        .changed_from
        .as_ref()
        .or(checkpoint.previous.as_ref());
    let previous = from.and_then(|id| state.checkpoint(id));
    let from = match previous {
        Some(previous) => previous.tree.clone(),
        None => repo.empty_tree()?,
    };
    Ok(Objects::stored(repo).patch(&from, &checkpoint.tree, &Selection::all())?)
}

/// A difference between two moments.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Difference {
    from: CheckpointId,
    /// `null` for the work tree.
    to: Option<CheckpointId>,
    /// By path.
    pub changes: Vec<Change>,
    /// Changes of the working memory, without line counts.
    pub memory_updates: Vec<Change>,
    /// Where it was requested; what is not UTF-8 is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

/// Compares a checkpoint with another one, or with the work tree.
pub(crate) fn diff(
    context: &Context,
    from: &Checkpoint,
    to: Option<&Checkpoint>,
    paths: &[String],
    patch: bool,
) -> Result<Difference> {
    let repo = context.repo()?;
    let lossy = |patch: Vec<u8>| String::from_utf8_lossy(&patch).into_owned();
    let selection = Selection::globs(paths)
        .map_err(|error| Error::new(ErrorKind::Usage, format!("--path: {error}")))?;
    let before = repo.load_checkpoint(&from.commit)?;
    let old_memory = before.memory(repo)?;
    if let Some(to) = to {
        let after = repo.load_checkpoint(&to.commit)?;
        let objects = Objects::stored(repo);
        let mut changes = objects.changes(before.view(), after.view(), &selection)?;
        let now = nested::Now::Stored(&after.manifest.nested);
        nested::changed(
            context,
            repo,
            &before.manifest.nested,
            now,
            &selection,
            &mut changes,
        );
        return Ok(Difference {
            from: from.id.clone(),
            to: Some(to.id.clone()),
            changes,
            memory_updates: memory_updates(&old_memory, &after.memory(repo)?),
            patch: if patch {
                Some(lossy(objects.patch(&from.tree, &to.tree, &selection)?))
            } else {
                None
            },
        });
    }
    let prepared = checkpoint::prepare(context)?;
    let objects = prepared.capture.objects();
    let mut changes = objects.changes(before.view(), prepared.capture.view(), &selection)?;
    let now = nested::Now::Captured(&prepared.nested);
    nested::changed(
        context,
        repo,
        &before.manifest.nested,
        now,
        &selection,
        &mut changes,
    );
    Ok(Difference {
        from: from.id.clone(),
        to: None,
        changes,
        memory_updates: memory_updates(&old_memory, &memory::read(context)?),
        patch: if patch {
            Some(lossy(objects.patch(
                &from.tree,
                &prepared.capture.tree,
                &selection,
            )?))
        } else {
            None
        },
    })
}

fn memory_updates(old: &[MemoryFile], new: &[MemoryFile]) -> Vec<Change> {
    let change = |file: &MemoryFile, kind| Change {
        path: file.path.clone(),
        kind,
        old_path: None,
        added: None,
        deleted: None,
    };
    let find = |files: &[MemoryFile], file: &MemoryFile| {
        files.iter().position(|other| other.path == file.path)
    };
    let mut updates = Vec::new();
    for file in new {
        match find(old, file) {
            None => updates.push(change(file, ChangeType::Created)),
            Some(at) if old[at].content != file.content => {
                updates.push(change(file, ChangeType::Modified));
            }
            Some(_) => {}
        }
    }
    updates.extend(
        old.iter()
            .filter(|file| find(new, file).is_none())
            .map(|file| change(file, ChangeType::Deleted)),
    );
    updates.sort_by(|a, b| a.path.cmp(&b.path));
    updates
}
