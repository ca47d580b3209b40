//! What changed from one checkpoint to the next.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git;
use crate::git::capture::Capture;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::tree::TreeLookup;
use crate::model::checkpoint::{ChangeTotals, Checkpoint, MAX_CHANGED_PATHS};

use super::request::Changes;

/// What changed since the run's previous checkpoint. For the first, and after one that cannot be read, everything is created.
pub(super) fn changes_since(
    context: &Context,
    previous: Option<&Checkpoint>,
    capture: &Capture,
) -> Result<Changes> {
    let created = (
        ChangeTotals {
            created: capture.entry_count(),
            ..ChangeTotals::default()
        },
        Vec::new(),
    );
    let Some(previous) = previous else {
        return Ok(created);
    };
    let repo = context.repo()?;
    match repo
        .load_checkpoint(&previous.commit)
        .and_then(|before| changes_from(&before, capture))
    {
        Ok(changes) => Ok(changes),
        Err(error) if cannot_be_read(&error) => {
            tracing::warn!(%error, "{} cannot be read: what changed since is not known", previous.id);
            Ok(created)
        }
        Err(error) => Err(error.into()),
    }
}

/// What no later try will read either: no reason not to take the next checkpoint.
fn cannot_be_read(error: &git::Error) -> bool {
    match error {
        git::Error::Corrupt { .. } => true,
        git::Error::Io { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
        _ => false,
    }
}

fn changes_from(before: &StoredCheckpoint, capture: &Capture) -> git::Result<Changes> {
    let (mut totals, mut paths) = (ChangeTotals::default(), Vec::new());
    if capture.is_same_tree(before) {
        return Ok((totals, paths));
    }
    let opened = capture.objects().open();
    let (before, now) = TreeLookup::new(&opened)?.diff(before.view(), capture.view())?;
    for (path, before, now) in before.unlike(&now) {
        if paths.len() < MAX_CHANGED_PATHS {
            paths.push(path.clone());
        }
        match (before, now) {
            (None, _) => totals.created += 1,
            (_, None) => totals.deleted += 1,
            _ => totals.modified += 1,
        }
    }
    Ok((totals, paths))
}
