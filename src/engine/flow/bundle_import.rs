//! Importing checkpoints from a bundle: those that `checkpoint prune --archive` wrote, or `checkpoint export`.

use std::path::{Path, PathBuf};

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::adopt;
use crate::engine::record::checkpoint::lock;
use crate::engine::record::message::record_in;
use crate::engine::recovery::rebuild::{take_home, write_patch_if_gone};
use crate::git::checkpoint::Unbundled;
use crate::git::repo::ref_name;
use crate::model::checkpoint::{Checkpoint, StorageType};
use crate::model::event::Payload;
use crate::model::hint::Hint;
use crate::model::state::State;

/// Said of one that would be removed again at once without.
const PIN_NOTE: &str = "came back from a bundle";

/// A bundle that was read, and found to hold checkpoints whole.
#[derive(Debug)]
pub(in crate::engine) struct Bundle {
    /// The file.
    pub path: PathBuf,
    unbundled: Unbundled,
    /// The checkpoints in it, as their commits record them.
    pub checkpoints: Vec<Checkpoint>,
}

/// Reads a bundle. Nothing is changed.
///
/// # Errors
/// One that is damaged or cut short, or that builds on commits that are not here, is corrupt (12); one without a
/// checkpoint is none of the files that can be imported (2).
pub(in crate::engine) fn inspect(context: &Context, path: &Path) -> Result<Bundle> {
    let git = |word| Hint::git(["bundle", word]).arg(path);
    let nothing = |mut error: Error| {
        error.message.push_str("; nothing was imported");
        error.hint(git("verify"))
    };
    let unbundled = Unbundled::read(path).map_err(|error| nothing(error.into()))?;
    let mut checkpoints = Vec::new();
    for found in &unbundled.refs {
        let message = unbundled
            .message(&found.commit)
            .map_err(|error| nothing(error.into()))?;
        let record = message.and_then(|message| record_in(&message, &found.commit));
        if let Some(record) =
            record.filter(|record| ref_name(&record.run.run_id, &record.id) == found.name)
        {
            unbundled
                .check(&found.commit)
                .map_err(|error| nothing(error.into()))?;
            checkpoints.push(record);
        }
    }
    if checkpoints.is_empty() {
        let message = format!(
            "{} is a bundle, but no checkpoint of recover's is in it",
            path.display()
        );
        return Err(Error::new(ErrorKind::Usage, message).hint(git("list-heads")));
    }
    if let Some(missing) = unbundled.missing(context.repo()?)?.first() {
        let why =
            "it comes from a shallow clone, and that is to be fetched first; nothing was imported";
        let message = format!(
            "{} builds on commit {missing}, which is not here: {why}",
            path.display()
        );
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    Ok(Bundle {
        path: path.to_owned(),
        unbundled,
        checkpoints,
    })
}

/// Those that the ledger does not have.
///
/// # Errors
/// Another checkpoint of the same name is there already (13).
pub(in crate::engine) fn new_ones<'a>(
    bundle: &'a Bundle,
    state: &State,
) -> Result<Vec<&'a Checkpoint>> {
    let mut new = Vec::new();
    for checkpoint in &bundle.checkpoints {
        match state.checkpoint(&checkpoint.id) {
            None => new.push(checkpoint),
            Some(known) if known.commit == checkpoint.commit => {}
            Some(known) => {
                let (id, path) = (&known.id, bundle.path.display());
                let message = format!(
                    "{path} holds another checkpoint {id} than the one here; nothing was imported"
                );
                return Err(
                    Error::new(ErrorKind::AlreadyExists, message).hint(Hint::recover([
                        "checkpoint",
                        "show",
                        id.as_str(),
                    ])),
                );
            }
        }
    }
    Ok(new)
}

/// Takes the checkpoints of a bundle in, objects before reference before event, as they were made; what is there is left
/// alone. They are pinned: the next retention would remove them as it did before.
pub(in crate::engine) fn import(context: &Context, bundle: &Bundle) -> Result<()> {
    let repo = context.repo()?;
    // Held until the event is written: a reference of a pruned checkpoint is a leftover until then.
    let lock = lock(context)?;
    let state = context.load()?.state;
    for checkpoint in new_ones(bundle, &state)? {
        let reference = ref_name(&checkpoint.run.run_id, &checkpoint.id);
        context.store().forget_settled();
        bundle
            .unbundled
            .import(repo, &lock, &reference, &checkpoint.commit)?;
        let mut found = checkpoint.clone();
        take_home(context, &mut found);
        if !found.pinned {
            found.pinned = true;
            found.pin_note = Some(PIN_NOTE.to_owned());
        }
        let ledger = context.store().lock()?;
        let returned = |checkpoint| Payload::CheckpointReturned { checkpoint };
        adopt::add(ledger, context.clock.now(), found.clone(), returned)?;
        if found.storage_type == StorageType::Patch {
            write_patch_if_gone(context, &found);
        }
    }
    Ok(())
}
