//! The runs of a state directory, and closing those that a person is done with.

pub(crate) mod prune;

pub(crate) use crate::engine::record::limits;
pub(crate) use prune::Pruned;

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::durable::Root;
use crate::engine::attempt::preconditions::reconsider;
use crate::engine::attempt::run_summary::night;
use crate::engine::base::context::place::is_part_of_attempt;
use crate::engine::base::runs::{self, run_of};
use crate::engine::base::{Context, Result};
use crate::engine::record::limits::Hold;
use crate::engine::record::vault::{self, VaultStatus};
use crate::engine::record::{liveness, select, storage};
use crate::engine::recovery;
use crate::model::agent_record::UsageFields;
use crate::model::{
    Checkpoint, IterationStatus, ManualFixStatus, Payload, Run, RunId, RunKey, RunLine, RunStatus,
    State, Timestamp,
};
use crate::policy::report::{Night, run_state};
use crate::policy::retry::ToAccept;
use crate::store::NewEvent;
use crate::store::views::write_views;

/// Runs, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Runs {
    pub runs: Vec<Listed>,
    /// The copy of the repository outside of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vault: Option<VaultStatus>,
}

/// A run in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "listed_run")]
pub(crate) struct Listed {
    #[serde(flatten)]
    pub key: RunKey,
    /// Absolute path of its work tree.
    pub worktree: String,
    pub status: RunStatus,
    /// The same in words: `complete, 2 given up`, `needs you`, `waiting`, …
    pub state: String,
    /// Whether a command that names no run is about it.
    pub chosen: bool,
    pub iterations: IterationCounts,
    pub attempts: usize,
    pub started_at: Timestamp,
    /// `null` while it can go on.
    ended_at: Option<Timestamp>,
    last_event_at: Timestamp,
    pub last_error: Option<String>,
    #[serde(flatten)]
    pub usage: UsageFields,
    /// Bytes of its logs and prompts, and of what its checkpoints hold beyond branches and the runs before it.
    pub size_bytes: u64,
    /// The `recover` that is at work on it.
    pub driver_pid: Option<u32>,
    /// The limit that another run met, and that holds its next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Hold>,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct IterationCounts {
    pub done: usize,
    pub given_up: usize,
    /// `null` without a bound.
    pub total: Option<u32>,
}

impl From<&Run> for Listed {
    /// Size and driver are not in the ledger: they are left empty.
    fn from(run: &Run) -> Self {
        let count = |wanted| {
            let statuses = run.iterations.statuses();
            statuses.filter(|(_, status)| *status == wanted).count()
        };
        let failure = run.failure.as_ref().map(|failure| &failure.message);
        Self {
            key: run.key.clone(),
            worktree: run.worktree.to_string(),
            status: run.status,
            state: run_state(run),
            chosen: false,
            iterations: IterationCounts {
                done: count(IterationStatus::Completed),
                given_up: count(IterationStatus::Skipped),
                total: run.spec.iterations_total,
            },
            attempts: run.iterations.count_attempts(),
            started_at: run.created_at,
            ended_at: run.ended_at,
            last_event_at: run.last_at,
            last_error: run.last_error.as_ref().or(failure).cloned(),
            usage: run.usage().into(),
            size_bytes: 0,
            driver_pid: None,
            limit: None,
        }
    }
}

/// Which runs a list has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Closed and accepted ones too.
    pub all: bool,
    /// Only those with an event since then.
    pub since: Option<Timestamp>,
    /// How many runs at most, the newest first.
    pub limit: Option<usize>,
}

impl Wanted {
    pub(in crate::engine) fn has(self, run: &Run) -> bool {
        let is_decided = matches!(run.status, RunStatus::Closed | RunStatus::Accepted);
        (self.all || !is_decided) && self.since.is_none_or(|since| run.last_at >= since)
    }
}

/// The runs that are wanted, newest first.
pub(crate) fn list(context: &Context, wanted: Wanted) -> Result<Runs> {
    let state = recovery::load_recovered(context)?;
    let chosen = select::find(context, &state)
        .ok()
        .flatten()
        .map(|run| &run.key);
    let shown: Vec<&Run> = state
        .runs
        .iter()
        .rev()
        .filter(|run| wanted.has(run))
        .take(wanted.limit.unwrap_or(usize::MAX))
        .collect();
    let sizes = sizes(context, &state)?;
    let listed = |run: &Run| {
        let mut considered = run.clone();
        reconsider(context, &mut considered);
        let driver = runs::driver(context.store(), run);
        let waits = run.live.is_none() && run.parked.is_none() && !run.status.has_ended();
        let is_driven = || driver.is_some() || liveness::is_driven(context, &run.key);
        Listed {
            limit: limits::hold(context, run).filter(|_| waits && is_driven()),
            chosen: chosen == Some(&run.key),
            size_bytes: sizes.get(&run.key).copied().unwrap_or(0),
            driver_pid: driver.map(|id| id.pid),
            ..Listed::from(&considered)
        }
    };
    Ok(Runs {
        runs: shown.into_iter().map(listed).collect(),
        vault: Some(vault::status(context)),
    })
}

/// What one run takes, by what the captures of its checkpoints counted, which branches may hold meanwhile; `None` where it
/// cannot be found out. [`list`] has it exactly, which costs the reading of every checkpoint's trees.
pub(crate) fn size_of(context: &Context, state: &State, key: &RunKey) -> Option<u64> {
    let counted = counted_size(context, state, key);
    counted
        .inspect_err(|error| tracing::debug!(%error, "the size of the run is not known"))
        .ok()
}

/// Where counts are missing (an older version took the checkpoints, or some were removed), all are found out once.
fn counted_size(context: &Context, state: &State, key: &RunKey) -> Result<u64> {
    let mut counts = storage::known_sizes(context);
    if !state.checkpoints.ids().all(|id| counts.contains_key(id)) {
        let all: Vec<&Checkpoint> = state.checkpoints.values().collect();
        let ids = all.iter().map(|checkpoint| checkpoint.id.clone());
        counts = ids.zip(added_bytes(context, &all)?).collect();
        storage::replace_sizes(context, counts.iter().map(|(id, bytes)| (id, *bytes)));
    }
    let own = state
        .checkpoints_of(key)
        .filter_map(|checkpoint| counts.get(&checkpoint.id));
    let files = size_below(context.store().root(), &context.store().run_dir(key));
    Ok(own.fold(files, |sum, bytes| sum.saturating_add(*bytes)))
}

/// What each checkpoint adds to those before it in this order, and to the commits that they were taken on.
fn added_bytes(context: &Context, checkpoints: &[&Checkpoint]) -> Result<Vec<u64>> {
    let commits: Vec<_> = checkpoints.iter().map(|one| one.commit.clone()).collect();
    let bases = checkpoints.iter().filter_map(|one| one.base_commit.clone());
    Ok(context.repo()?.added_bytes(&commits, &bases.collect())?)
}

/// What each run takes: its files, and what its checkpoints hold beyond branches and what came before.
fn sizes<'a>(context: &Context, state: &'a State) -> Result<BTreeMap<&'a RunKey, u64>> {
    let store = context.store();
    let files = |run: &'a Run| (&run.key, size_below(store.root(), &store.run_dir(&run.key)));
    let mut sizes: BTreeMap<&RunKey, u64> = state.runs.iter().map(files).collect();
    let checkpoints: Vec<&Checkpoint> = state.checkpoints.values().collect();
    if !checkpoints.is_empty() && context.unusable().is_none() {
        let added = added_bytes(context, &checkpoints)?;
        for (checkpoint, bytes) in checkpoints.iter().zip(added) {
            if let Some(size) = sizes.get_mut(&checkpoint.run) {
                *size = size.saturating_add(bytes);
            }
        }
    }
    Ok(sizes)
}

/// The bytes of the files in a folder; what cannot be read counts nothing.
fn size_below(root: &Root, folder: &Path) -> u64 {
    let size = |path: &Path| {
        let found = root.open(path).and_then(|file| file.metadata());
        found.map_or(0, |found| found.len())
    };
    let entries = root.list(folder).unwrap_or_default().into_iter();
    let sizes = entries.map(|(name, kind)| match folder.join(name) {
        _ if kind.is_symlink() => 0,
        path if kind.is_dir() => size_below(root, &path),
        path => size(&path),
    });
    sizes.sum()
}

/// Which runs are meant.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    /// Those of these ids; without any the one that a command is about.
    Ids(Vec<RunId>),
    /// Those of the work tree that have ended, well or badly.
    Ended,
    /// This one.
    Key(RunKey),
}

impl Chosen {
    /// The runs that are meant, each once.
    pub(in crate::engine) fn of(&self, context: &Context, state: &State) -> Result<Vec<RunKey>> {
        let naming = context.naming();
        let ids = match self {
            Self::Key(key) => return Ok(vec![run_of(state, key)?.key]),
            Self::Ids(ids) if ids.is_empty() => {
                return Ok(vec![select::require(context, state)?.key.clone()]);
            }
            Self::Ids(ids) => ids,
            Self::Ended => return Ok(Self::ended(context, state)),
        };
        let mut keys = Vec::new();
        for id in ids {
            let key = &runs::named(state, id, naming.phase.as_deref(), naming.lane.as_deref())?.key;
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        Ok(keys)
    }

    fn ended(context: &Context, state: &State) -> Vec<RunKey> {
        let has_ended = |run: &&Run| {
            run.status != RunStatus::Closed
                && (run.status.is_over()
                    || matches!(run.status, RunStatus::Cancelled | RunStatus::RolledBack))
                && !run.is_being_fixed()
                && runs::driver(context.store(), run).is_none()
        };
        state
            .runs_of(&context.worktree_id())
            .filter(has_ended)
            .map(|run| run.key.clone())
            .collect()
    }
}

/// Refuses what is not for a run that a `recover` is at work on. What is only planned is shown to that run's own attempt.
pub(in crate::engine) fn refuse_driven(context: &Context, run: &Run) -> Result<()> {
    let Some(driver) = runs::driver(context.store(), run).filter(|driver| !driver.is_own()) else {
        return Ok(());
    };
    if context.dry_run() && is_part_of_attempt(context.store().dir(), context.worktree()) {
        return Ok(());
    }
    Err(runs::driven_by(&run.key, driver))
}

/// What a command that is only planned would do.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Planned {
    /// Whether anything would change.
    pub changed: bool,
}

/// Runs that were closed, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Closed {
    changed: bool,
    pub runs: Vec<RunLine>,
    /// Those that have ended and stay open: a person has not decided on their work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_open: Vec<RunLine>,
    /// In a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Planned>,
}

/// Whether a run's work waits for a person: it can be accepted, or what failed is still there.
fn holds_work(context: &Context, state: &State, run: &Run) -> bool {
    let is_undecided = |night: Night| night.to_accept != ToAccept::Nothing || night.left.is_some();
    run.status != RunStatus::Accepted && night(context, state, run).is_some_and(is_undecided)
}

/// Closes runs; of all that have ended, those whose work waits for a person stay open unless it is confirmed. in a dry run only says which.
///
/// # Errors
/// There is no such run (4); a `recover` is at work on one of them (11): then none is closed.
pub(crate) fn close(context: &Context, chosen: &Chosen) -> Result<Closed> {
    if !context.dry_run() {
        recovery::recover(context)?;
    }
    let state = recovery::load_recovered(context)?;
    let open = |state: &State| -> Result<Vec<Run>> {
        let all: Vec<Run> = chosen
            .of(context, state)?
            .iter()
            .map(|key| run_of(state, key))
            .collect::<Result<_>>()?;
        all.iter().try_for_each(|run| refuse_driven(context, run))?;
        Ok(all
            .into_iter()
            .filter(|run| run.status != RunStatus::Closed)
            .collect())
    };
    let is_asked = !matches!(chosen, Chosen::Ended) || context.says_yes();
    let (left, planned): (Vec<Run>, Vec<Run>) = open(&state)?
        .into_iter()
        .partition(|run| !is_asked && holds_work(context, &state, run));
    let left_open: Vec<RunLine> = left.iter().map(RunLine::from).collect();
    if context.dry_run() || planned.is_empty() {
        let changed = !planned.is_empty();
        return Ok(Closed {
            changed: false,
            runs: planned.iter().map(RunLine::from).collect(),
            left_open,
            plan: context.dry_run().then_some(Planned { changed }),
        });
    }
    let mut ledger = context.store().lock()?;
    let mut to_close = open(ledger.state())?;
    to_close.retain(|run| left.iter().all(|left| left.key != run.key));
    let mut events = Vec::new();
    for run in &to_close {
        let fix = run
            .manual_fix
            .as_ref()
            .filter(|session| session.status == ManualFixStatus::Active);
        let given_up = fix.map(|session| Payload::ManualFixEnded {
            status: ManualFixStatus::Aborted,
            changes: session.detected_changes.clone(),
        });
        let payloads = given_up.into_iter().chain([Payload::RunClosed {}]);
        events.extend(payloads.map(|payload| NewEvent::about(&run.key, payload)));
    }
    ledger.append(context.clock.now(), events)?;
    let keys: Vec<&RunKey> = to_close.iter().map(|run| &run.key).collect();
    let state = write_views(ledger, &keys)?;
    let closed = keys
        .into_iter()
        .map(|key| run_of(&state, key))
        .collect::<Result<Vec<Run>>>()?;
    for run in &closed {
        if let Err(error) = prune::tidy_up(context, &run.key) {
            tracing::warn!(%error, "the checkpoints of {} were not tidied up", run.key);
        }
    }
    Ok(Closed {
        changed: true,
        runs: closed.iter().map(RunLine::from).collect(),
        left_open,
        plan: None,
    })
}
