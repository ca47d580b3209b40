//! What runs that were removed on purpose leave behind where a kill came: their folders and views.

use std::io;
use std::path::PathBuf;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, Result};
use crate::model::run::RunKey;
use crate::model::state::State;

/// The files of a run in the state directory: its logs and prompts, and its views.
pub(crate) fn files_of(context: &Context, key: &RunKey) -> Vec<PathBuf> {
    let (store, root) = (context.store(), context.store().root());
    let folder = store.run_dir(key);
    let Some(name) = folder.file_name().map(ToOwned::to_owned) else {
        return Vec::new();
    };
    let battles = store.private_dir().join("battles");
    let tasks = root.list(&battles).unwrap_or_default();
    let mut view = name;
    view.push(".json");
    let views = tasks.iter().map(|(task, _)| battles.join(task).join(&view));
    views
        .chain([folder])
        .filter(|path| root.has(path).unwrap_or(false))
        .collect()
}

/// Removes the files of runs that are gone from the ledger, unless another run has the same place.
pub(crate) fn sweep(context: &Context, state: &State) -> Result<()> {
    let root = context.store().root();
    for key in &state.forgotten {
        let place = context.store().run_dir(key);
        if state
            .runs
            .iter()
            .any(|run| context.store().run_dir(&run.key) == place)
        {
            continue;
        }
        for path in files_of(context, key) {
            let removed = if path == place {
                root.remove_dir_all(&path)
            } else {
                root.remove_file(&path)
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io(
                        format!("cannot remove {}", path.display()),
                        error,
                    ));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
