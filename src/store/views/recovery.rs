//! `recovery.json` (L1): exactly the loop seed's keys.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::import::ImportKind;
use crate::model::run::Run;
use crate::model::state::State;
use crate::model::time::Timestamp;

/// The loop's view of where recovery stands: that of the run with the latest event.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecoveryState {
    /// Whether an error has not been answered by a success yet.
    pub is_recovering: bool,
    /// When the last error was.
    pub last_error_at: Option<Timestamp>,
    /// Consecutive errors.
    pub error_count: u32,
    /// The last error's message.
    pub last_error: Option<String>,
    /// End of the cooldown.
    pub cooldown_until: Option<Timestamp>,
}

impl RecoveryState {
    /// The view of one run.
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            is_recovering: run.error_count > 0 || run.parked.is_some(),
            last_error_at: run.last_error_at,
            error_count: run.error_count,
            last_error: run.last_error.clone(),
            cooldown_until: run.cooldown_until,
        }
    }
}

/// The view of the run that was heard of last: as it was imported, until the run moves on.
pub fn recovery_state(state: &State) -> Value {
    let run = state.runs.iter().max_by_key(|run| run.last_seq);
    let untouched = run.and_then(|run| run.untouched_import(ImportKind::Recovery));
    untouched
        .cloned()
        .unwrap_or_else(|| json!(run.map(RecoveryState::of).unwrap_or_default()))
}
