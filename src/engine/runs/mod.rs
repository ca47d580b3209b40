//! The runs of a state directory, and closing those that a person is done with.

pub(crate) mod prune;

pub(crate) use prune::Pruned;

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::durable::Root;
use crate::engine::attempt::preconditions::reconsider;
use crate::engine::base::context::place::is_part_of_attempt;
use crate::engine::base::runs::{self, run_of};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::vault::{self, VaultStatus};
use crate::engine::record::{select, storage};
use crate::engine::recovery;
use crate::model::agent_record::UsageFields;
use crate::model::{
    Checkpoint, Hint, IterationStatus, ManualFixStatus, Payload, Run, RunId, RunKey, RunLine,
    RunStatus, State, Timestamp,
};
use crate::policy::report::run_state;
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
        }
    }
}

/// The runs, newest first, at most `limit`; closed and accepted ones only with `all`.
pub(crate) fn list(context: &Context, all: bool, limit: Option<usize>) -> Result<Runs> {
    let state = recovery::load_recovered(context)?;
    let chosen = select::find(context, &state)
        .ok()
        .flatten()
        .map(|run| &run.key);
    let is_shown =
        |run: &&Run| all || !matches!(run.status, RunStatus::Closed | RunStatus::Accepted);
    let shown: Vec<&Run> = state
        .runs
        .iter()
        .rev()
        .filter(is_shown)
        .take(limit.unwrap_or(usize::MAX))
        .collect();
    let sizes = sizes(context, &state, state.checkpoints.values())?;
    let listed = |run: &Run| {
        let mut considered = run.clone();
        reconsider(context, &mut considered);
        Listed {
            chosen: chosen == Some(&run.key),
            size_bytes: sizes.get(&run.key).copied().unwrap_or(0),
            driver_pid: runs::driver(context.store(), run).map(|id| id.pid),
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
        let commits: Vec<_> = all
            .iter()
            .map(|checkpoint| checkpoint.commit.clone())
            .collect();
        let bases = all
            .iter()
            .filter_map(|checkpoint| checkpoint.base_commit.clone())
            .collect();
        let added = context.repo()?.added_bytes(&commits, &bases)?;
        counts = all
            .iter()
            .map(|checkpoint| checkpoint.id.clone())
            .zip(added)
            .collect();
        storage::replace_sizes(context, counts.iter().map(|(id, bytes)| (id, *bytes)));
    }
    let own = state
        .checkpoints_of(key)
        .filter_map(|checkpoint| counts.get(&checkpoint.id));
    let files = size_below(context.store().root(), &context.store().run_dir(key));
    Ok(own.fold(files, |sum, bytes| sum.saturating_add(*bytes)))
}

/// What each run takes: its files, and what its checkpoints hold beyond branches and what came before. `checkpoints` are all
/// that count, oldest first.
fn sizes<'a>(
    context: &Context,
    state: &'a State,
    checkpoints: impl Iterator<Item = &'a Checkpoint>,
) -> Result<BTreeMap<&'a RunKey, u64>> {
    let store = context.store();
    let files = |run: &'a Run| (&run.key, size_below(store.root(), &store.run_dir(&run.key)));
    let mut sizes: BTreeMap<&RunKey, u64> = state.runs.iter().map(files).collect();
    let checkpoints: Vec<&Checkpoint> = checkpoints.collect();
    if !checkpoints.is_empty() && context.unusable().is_none() {
        let commits: Vec<_> = checkpoints
            .iter()
            .map(|checkpoint| checkpoint.commit.clone())
            .collect();
        let bases = state
            .checkpoints
            .values()
            .filter_map(|checkpoint| checkpoint.base_commit.clone())
            .collect();
        let added = context.repo()?.added_bytes(&commits, &bases)?;
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
    let entries = root.list(folder).unwrap_or_default();
    let size = |name: &std::ffi::OsStr, is_folder: bool| {
        let path = folder.join(name);
        let of_file = || {
            root.open(&path)
                .and_then(|file| file.metadata())
                .map_or(0, |found| found.len())
        };
        if is_folder {
            size_below(root, &path)
        } else {
            of_file()
        }
    };
    entries
        .iter()
        .map(|(name, kind)| {
            if kind.is_symlink() {
                0
            } else {
                size(name, kind.is_dir())
            }
        })
        .sum()
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
    let (key, pid) = (&run.key, driver.pid);
    let message = format!(
        "run {key} is at work (pid {pid}): {}",
        runs::way_to_stop(driver)
    );
    Err(Error::new(ErrorKind::Locked, message).hint(Hint::recover(["status"]).run(key)))
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
    /// In a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Planned>,
}

/// Closes runs; in a dry run only says which.
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
    let planned = open(&state)?;
    if context.dry_run() || planned.is_empty() {
        let changed = !planned.is_empty();
        return Ok(Closed {
            changed: false,
            runs: planned.iter().map(RunLine::from).collect(),
            plan: context.dry_run().then_some(Planned { changed }),
        });
    }
    let mut ledger = context.store().lock()?;
    let to_close = open(ledger.state())?;
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
        plan: None,
    })
}
