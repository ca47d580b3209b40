//! The budgets of a run, and what they allow now.

use std::collections::BTreeMap;

use crate::durable::Sync;
use crate::engine::base::context::Context;
use crate::engine::record::run_settings::settings_of;
use crate::model::decision::Standing;
use crate::model::run::Run;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::policy::retry::{RetryStatus, is_from_the_future, retry_status};
use crate::store::Origin;

/// Where a run stands with its budgets now.
pub(crate) fn status_of(context: &Context, state: &State, run: &Run) -> RetryStatus {
    let now = context.clock.now();
    let settings = settings_of(context, run);
    retry_status(state, run, &settings.retry, now, seen(context, run))
}

/// When it was first noticed that the run's decision was made in the future, where it was.
pub(crate) fn seen(context: &Context, run: &Run) -> Option<Timestamp> {
    let now = context.clock.now();
    let strange = run
        .decision
        .as_ref()
        .filter(|decision| is_from_the_future(decision, now));
    strange.map(|decision| first_seen(context, decision.decided_at, now))
}

/// When somebody first noticed that what was decided at `decided_at` was decided in the future: who asks again and again
/// must not wait from then on each time. Where that cannot be noted, it is now.
fn first_seen(context: &Context, decided_at: Timestamp, now: Timestamp) -> Timestamp {
    let (root, path) = (
        context.store().root(),
        context.store().private_dir().join("clock-set-back.json"),
    );
    let text = root.read(&path).unwrap_or_default();
    let mut seen: BTreeMap<Timestamp, Timestamp> =
        serde_json::from_slice(&text).unwrap_or_default();
    if let Some(at) = seen.get(&decided_at).filter(|at| **at <= now) {
        return *at;
    }
    tracing::warn!(
        "the clock was set back: what was decided at {decided_at} is waited for from now on"
    );
    seen.retain(|decided, _| *decided > now);
    seen.insert(decided_at, now);
    let noted = serde_json::to_vec(&seen).map_err(std::io::Error::from);
    // Nothing is added to what came from elsewhere.
    if context.store().origin() == Origin::Ours
        && let Err(error) = noted.and_then(|noted| root.write(&path, &noted, Sync::Nothing))
    {
        tracing::debug!(%error, "it is not noted since when");
    }
    now
}

/// A run and how it stands.
#[derive(Debug)]
pub(crate) struct Retry {
    /// The run; `None` where nothing has been recorded.
    pub run: Option<Run>,
    /// How it stands.
    pub status: Option<RetryStatus>,
    /// What is allowed.
    pub standing: Standing,
    /// The limit where no failure names its own.
    pub max_attempts: u32,
    /// The `recover` that makes an attempt of it now, by its process id: no other one is allowed meanwhile.
    pub under_way: Option<u32>,
}

impl Retry {
    /// Whether an attempt is allowed now.
    pub(crate) fn is_allowed(&self) -> bool {
        self.standing == Standing::Allowed && self.under_way.is_none()
    }
}
