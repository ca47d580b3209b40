//! Files derived from the ledger, one file here for each, in the formats of the systems that read them.
//! They are written and never read back as truth.

mod active;
mod attempts;
mod battle;
mod lanes;
mod writer;

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::error::StoreError;
use super::ledger::{ACTIVE, ATTEMPTS, RECOVERY, Store, file_name_of, plain};
use crate::durable::Sync;
use crate::model::import::ImportedDocument;
use crate::model::path::short_part;
use crate::model::{ImportKind, Run, RunKey, RunStatus, State, TaskId, Timestamp};
use crate::policy::secrets::redacted_json_text;

pub use active::active_checkpoint;
pub(crate) use active::{ActiveState, latest_checkpoint, session_checkpoint};
pub use attempts::attempt_view;
pub(crate) use attempts::{AttemptHistory, attempt_history, attempt_history_of};
pub(crate) use battle::BattleView;
pub use battle::battle;
pub use lanes::lane_records;
pub(crate) use lanes::{LaneBack, has_lane_records, resume_hint, rollback_hint};
pub(crate) use writer::{rewrite_views, write_views};

/// How many of a run's iterations the views hold, beside those before them that are not completed: they are written at
/// every event, and must not grow for ever. `report` and `attempt list` have all.
const ITERATIONS_IN_VIEW: usize = 100;

/// How many of a run's latest checkpoints its view goes through, those before restores among them. `checkpoint list` has all.
const CHECKPOINTS_IN_VIEW: usize = 100;

/// Patches up to this size, in bytes, stand in a view.
const MAX_PATCH: u64 = 256 << 10;

/// A view's file.
struct View {
    /// Below the state directory, or absolute.
    place: PathBuf,
    content: Vec<u8>,
    sync: Sync,
}

impl View {
    /// A crash of the machine may leave the former view in its place: it is whole, and the ledger has the rest. As long as
    /// a run goes on that is soon written again, whatever a crash leaves of it: then nothing is waited for, but where no view
    /// was there before.
    fn new(
        place: impl Into<PathBuf>,
        view: &impl Serialize,
        goes_on: bool,
    ) -> Result<Self, StoreError> {
        let sync = if goes_on {
            Sync::Nothing
        } else {
            Sync::Content
        };
        Ok(Self {
            place: place.into(),
            content: encode(view)?,
            sync,
        })
    }
}

/// The views that all runs share.
fn shared(store: &Store, state: &State) -> Result<Vec<View>, StoreError> {
    let goes_on = state
        .runs
        .iter()
        .max_by_key(|run| run.last_seq)
        .is_some_and(goes_on);
    let mut views = vec![
        View::new(RECOVERY, &recovery_state(state), goes_on)?,
        View::new(ATTEMPTS, &attempt_view(state), goes_on)?,
    ];
    let kept = ActiveState::read(store);
    // What is kept of a checkpoint that is being taken: who takes it writes the view once it is recorded.
    let is_ahead = kept.as_ref().is_some_and(|kept| {
        state.checkpoint(&kept.checkpoint_id).is_none()
            && !state.pruned.contains(kept.checkpoint_id.as_str())
    });
    if let Some(active) = active_checkpoint(state, kept.as_ref()).filter(|_| !is_ahead) {
        views.push(View::new(ACTIVE, &active, goes_on)?);
    }
    // Where there are no records yet, what is there may be another system's.
    if has_lane_records(state) || !store.has_lane_file() {
        views.push(View::new(
            store.lane_file(),
            &lane_records(state, store),
            goes_on,
        )?);
    }
    Ok(views)
}

/// Whether more is soon recorded of a run.
fn goes_on(run: &Run) -> bool {
    matches!(run.status, RunStatus::Pending | RunStatus::InProgress)
}

/// A run's own view.
fn of_run(store: &Store, state: &State, key: &RunKey) -> Result<Option<View>, StoreError> {
    let Some(run) = state.run(key) else {
        return Ok(None);
    };
    // Who writes its report next may never come.
    store.root().reap(&store.run_dir(key));
    View::new(
        battle_path(run),
        &battle_of(store, state, run),
        goes_on(run),
    )
    .map(Some)
}

/// A run's view, with the text of its patches.
pub(crate) fn battle_of<'a>(store: &Store, state: &'a State, run: &'a Run) -> BattleView<'a> {
    battle(state, run, &|path| {
        let bytes = store.root().read_at_most(Path::new(path), MAX_PATCH).ok()?;
        String::from_utf8(bytes).ok()
    })
}

/// Where a run's battle view is, below the state directory.
pub(crate) fn battle_path(run: &Run) -> PathBuf {
    let whole = run.task_id.as_ref().map_or("-", TaskId::as_str);
    let task = short_part(whole.chars().map(plain).collect(), whole);
    let task = if task.starts_with('.') {
        format!("_{task}")
    } else {
        task
    };
    Path::new("recover/battles")
        .join(task)
        .join(format!("{}.json", file_name_of(&run.key)))
}

/// A view's bytes: JSON for people, without secrets, with a newline at its end.
pub fn encode(view: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut text = redacted_json_text(view).map_err(StoreError::io("encode", "a view"))?;
    text.push('\n');
    Ok(text.into_bytes())
}

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
    // A checkpoint that is taken beside it, and an agent's hook, say nothing of the loop's errors; where nothing else does, the
    // one that counts some does.
    let is_course = |run: &Run| {
        let imports = |one: &ImportedDocument| one.imported.kind == ImportKind::Recovery;
        run.begun_seq > 0 && !run.is_hook_session() || run.imported.iter().any(imports)
    };
    let rank = |run: &Run| (is_course(run), !is_course(run) && run.error_count > 0);
    let run = state
        .runs
        .iter()
        .max_by_key(|run| (rank(run), run.last_seq));
    let untouched = run.and_then(|run| run.untouched_import(ImportKind::Recovery));
    untouched
        .cloned()
        .unwrap_or_else(|| json!(run.map(RecoveryState::of).unwrap_or_default()))
}
