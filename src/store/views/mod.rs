//! Files derived from the ledger, one file here for each, in the formats of the systems that read them.
//! They are written and never read back as truth.

mod active;
mod attempts;
mod battle;
mod lanes;
mod recovery;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::model::id::TaskId;
use crate::model::path::short_part;
use crate::model::run::{Run, RunKey};

use super::error::StoreError;
use super::ledger::{Exclusive, file_name_of};

pub use active::{ActiveState, active_checkpoint, latest_checkpoint, session_checkpoint};
pub use attempts::{AttemptHistory, attempt_history, attempt_history_of, attempt_view};
pub use battle::{battle, battle_status};
pub use lanes::{has_lane_records, lane_records, resume_hint, rollback_hint};
pub use recovery::{RecoveryState, recovery_state};

/// How many of a run's iterations the views hold, beside those before them that are not completed: they are written at
/// every event, and must not grow for ever. `report` and `attempt list` have all.
const ITERATIONS_IN_VIEW: usize = 100;

/// Writes every view that events about `run` may have changed.
pub fn write_views(ledger: &Exclusive, run: Option<&RunKey>) -> Result<(), StoreError> {
    rewrite_views(ledger, run).map(drop)
}

/// Writes them like [`write_views`]; returns those whose content changed.
pub fn rewrite_views(ledger: &Exclusive, run: Option<&RunKey>) -> Result<Vec<PathBuf>, StoreError> {
    let state = ledger.state();
    let mut views: Vec<(PathBuf, Vec<u8>)> = vec![
        ("recovery.json".into(), encode(&recovery_state(state))?),
        ("attempt_history.json".into(), encode(&attempt_view(state))?),
    ];
    if let Some(active) = active_checkpoint(state, ActiveState::read(ledger.store()).as_ref()) {
        views.push(("active_checkpoint.json".into(), encode(&active)?));
    }
    // Where nobody keeps records yet, what is there may be somebody else's.
    if has_lane_records(state) || !ledger.store().has_lane_file() {
        views.push((ledger.store().lane_file().to_owned(), encode(&lane_records(state, ledger.store()))?));
    }
    if let Some(run) = run.and_then(|key| state.run(key)) {
        views.push((battle_path(run), encode(&battle(state, run))?));
        // Who writes its report next may never come.
        ledger.store().root().reap(&ledger.store().run_dir(&run.key));
    }
    ledger.write_views(views)
}

/// Where a run's battle view is, below the state directory.
pub fn battle_path(run: &Run) -> PathBuf {
    let whole = run.task_id.as_ref().map_or("-", TaskId::as_str);
    let task = short_part(whole.chars().map(plain).collect(), whole);
    let task = if task.starts_with('.') { format!("_{task}") } else { task };
    Path::new("recover/battles").join(task).join(format!("{}.json", file_name_of(&run.key)))
}

fn plain(c: char) -> char {
    if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' }
}

/// A view's bytes: JSON for people, with a newline at its end.
pub fn encode(view: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let failed = |error: serde_json::Error| StoreError::Io {
        action: "encode",
        path: PathBuf::from("a view"),
        source: error.into(),
    };
    let mut bytes = serde_json::to_vec_pretty(view).map_err(failed)?;
    bytes.push(b'\n');
    Ok(bytes)
}
