//! The state of a run and how to continue it (B1, B5, B7).
//!
//! Noticing that something was recorded, by this process or another.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::attempt::preconditions::reconsider;
use crate::engine::attempt::run_summary::{night, outlook, waits_until};
use crate::engine::base::clock::millis;
use crate::engine::base::{Context, ErrorKind, Result, runs};
use crate::engine::exchange::views;
use crate::engine::record::lane::Hints;
use crate::engine::record::limits::Hold;
use crate::engine::record::run_settings::{attempt_folder, log_name, loops_of};
use crate::engine::record::vault::{self, VaultStatus};
use crate::engine::record::{git_state, liveness, select};
use crate::engine::recovery;
use crate::engine::remote::{RunRemote, run_remotes};
use crate::engine::run::retry;
use crate::engine::runs::size_of;
use crate::model::agent_record::{Usage, UsageFields};
use crate::model::decision::{Budget, Wait};
use crate::model::run::{Parked, TermChange};
use crate::model::run_line::{IterationLine, run_line};
use crate::model::tasks::TaskLine;
use crate::model::{
    CheckpointId, Decision, Failure, FeedbackLoop, FeedbackResults, ManualFixSession,
    ManualFixStatus, Place, ProcessId, Run, RunKey, RunLine, RunStatus, State, Timestamp, ToldStep,
};
use crate::policy::report::{Night, run_state};
use crate::policy::retry::{Outlook, ResumeOption, end_of_fix, manual_steps, resume_options};
use crate::policy::secrets::redact;
use crate::policy::text::escape;

pub(crate) use crate::engine::attempt::run_summary::Retry;

/// Everything a person wants to know first.
#[derive(Debug)]
pub(crate) struct Status {
    /// The run.
    pub run: Run,
    /// Whether it was named, rather than found.
    pub is_named: bool,
    /// The work tree that commands about it need, where that is another one than this.
    pub elsewhere: Option<Place>,
    /// What came of it, where it has attempts.
    pub night: Option<Night>,
    /// What its record does not say of it.
    pub outlook: Outlook,
    /// What a person can do next; empty where the failure is not recoverable.
    pub options: Vec<ResumeOption>,
    /// What to do by hand; empty where it is recoverable.
    pub manual_steps: Vec<String>,
    /// The open manual fix.
    pub manual_fix: Option<ManualFixSession>,
    /// A restore that was interrupted.
    pub unfinished_operation: Option<String>,
    /// What keeps git from working here.
    pub git_locked: Option<String>,
    /// How many checkpoints the run has.
    pub checkpoint_count: usize,
    /// Bytes of its logs and prompts, and of what its checkpoints hold beyond branches and the runs before it.
    pub size_bytes: Option<u64>,
    /// The latest one that is no safety checkpoint.
    pub latest: Option<CheckpointId>,
    /// The last good one.
    pub last_good: Option<CheckpointId>,
    /// Its budgets.
    pub retry: Retry,
    /// What its session used up, over all its runs.
    pub session: Usage,
    /// What is going on, while a `recover` is at work on it.
    pub activity: Option<Activity>,
    /// How it stands with the remotes that it lies on.
    pub remotes: Vec<RunRemote>,
    /// The runs that ended since the last look, where they are asked for.
    pub ended: Vec<EndedRun>,
    /// Other runs that were begun here, have a work tree of their own, and are not decided.
    pub isolated: Vec<IsolatedRun>,
    /// Why no copy of the repository is kept outside of it, where none is.
    pub vault_off: Option<String>,
}

impl Status {
    /// What a script reads.
    pub(crate) fn document(&self, context: &Context) -> StatusDocument<'_> {
        StatusDocument::new(context, self, context.clock.now())
    }
}

impl Retry {
    /// What a script reads.
    pub(crate) fn document(&self, context: &Context) -> RetryDocument<'_> {
        RetryDocument::new(self, context.clock.now())
    }
}

/// Whether another attempt is allowed, and what is left of the budgets.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "retry")]
pub(crate) struct RetryDocument<'a> {
    /// Whether one is allowed now.
    can_retry: bool,
    #[serde(flatten)]
    wait: Wait,
    error_count: u32,
    max_attempts: Option<u32>,
    attempts_left: Option<u32>,
    is_recovering: bool,
    last_error: Option<&'a str>,
    last_error_at: Option<Timestamp>,
    cooldown_until: Option<Timestamp>,
    parked: Option<&'a Parked>,
    /// The limit that another run met, and that holds the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a Hold>,
    budgets: &'a [Budget],
    decision: Option<&'a Decision>,
    run: Option<RunLine>,
}

impl<'a> RetryDocument<'a> {
    fn new(retry: &'a Retry, now: Timestamp) -> Self {
        let status = retry.status.as_ref();
        let run = retry.at();
        Self {
            can_retry: retry.is_allowed(),
            wait: retry.standing.wait(now),
            error_count: run.map_or(0, |run| run.error_count),
            max_attempts: status.map_or(Some(retry.max_attempts), |status| status.max_attempts),
            attempts_left: status.map_or(Some(retry.max_attempts), |status| status.attempts_left),
            is_recovering: run.is_some_and(|run| run.error_count > 0 || run.parked.is_some()),
            last_error: run.and_then(|run| run.last_error.as_deref()),
            last_error_at: run.and_then(|run| run.last_error_at),
            cooldown_until: status.and_then(|status| status.cooldown_until),
            parked: run.and_then(|run| run.parked.as_ref()),
            limit: retry.limit.as_ref(),
            budgets: status.map_or(&[], |status| &status.budgets),
            decision: status.and_then(|status| status.decision.as_ref()),
            run: retry.run.as_ref().map(RunLine::from),
        }
    }
}

/// How many iterations `status` lists; `report` has all.
const LATEST: usize = 20;

/// Where a run stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "status")]
pub(crate) struct StatusDocument<'a> {
    run: RunLine,
    /// Why it stands still, where it is paused or parked for another reason than what was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_for: Option<&'a str>,
    /// The terms that were changed when it was resumed, the latest last.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    term_changes: &'a [TermChange],
    /// What came of it; `null` where it has no attempts.
    night: Option<&'a Night>,
    session: SessionUsage<'a>,
    failure: Option<&'a Failure>,
    /// What a person can do next; empty where the failure is not recoverable.
    options: &'a [ResumeOption],
    manual_steps: &'a [String],
    manual_fix: Option<&'a ManualFixSession>,
    unfinished_operation: Option<&'a str>,
    /// The lock files that keep git from working here, with their ages.
    #[serde(skip_serializing_if = "Option::is_none")]
    git_locked: Option<&'a str>,
    checkpoints: CheckpointCounts<'a>,
    /// Bytes of its logs and prompts, and of what its checkpoints hold beyond branches and the runs before it.
    size_bytes: Option<u64>,
    retry: RetryDocument<'a>,
    /// What is going on; `null` while nobody is at work on it.
    activity: Option<&'a Activity>,
    /// How it stands with the remotes that it lies on, by what is known here.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    remotes: &'a [RunRemote],
    baseline: Option<&'a FeedbackResults>,
    /// The latest 20.
    iterations: Vec<IterationLine<'a>>,
    /// The tasks of a run that works through a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<TaskLine>,
    steps: Vec<ToldStep>,
    /// The copy of the repository outside of it.
    vault: VaultStatus,
    /// The runs that ended since the last look, of all work trees of the repository: of `recover` without a command.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ended: &'a [EndedRun],
    /// Other runs that were begun here, or where this one was, with --isolated, and are not decided.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    isolated: &'a [IsolatedRun],
    #[serde(flatten)]
    hints: Hints,
}

/// The session whose budget the run shares.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SessionUsage<'a> {
    id: &'a str,
    #[serde(flatten)]
    usage: UsageFields,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct CheckpointCounts<'a> {
    count: usize,
    latest: Option<&'a CheckpointId>,
    last_good: Option<&'a CheckpointId>,
}

impl<'a> StatusDocument<'a> {
    fn new(context: &Context, status: &'a Status, now: Timestamp) -> Self {
        let run = &status.run;
        Self {
            run: run.into(),
            stopped_for: run.stopped_for.as_deref(),
            term_changes: &run.term_changes,
            night: status.night.as_ref(),
            session: SessionUsage {
                id: &run.session,
                usage: status.session.into(),
            },
            failure: run.failure.as_ref(),
            options: &status.options,
            manual_steps: &status.manual_steps,
            manual_fix: status.manual_fix.as_ref(),
            unfinished_operation: status.unfinished_operation.as_deref(),
            git_locked: status.git_locked.as_deref(),
            checkpoints: CheckpointCounts {
                count: status.checkpoint_count,
                latest: status.latest.as_ref(),
                last_good: status.last_good.as_ref(),
            },
            size_bytes: status.size_bytes,
            retry: RetryDocument::new(&status.retry, now),
            activity: status.activity.as_ref(),
            remotes: &status.remotes,
            baseline: run.baseline.as_ref(),
            iterations: run
                .latest_iterations(LATEST)
                .into_iter()
                .map(IterationLine::from)
                .collect(),
            tasks: run.task_lines(),
            steps: run.steps.iter().map(|step| step.told(&run.key)).collect(),
            vault: vault::status(context),
            ended: &status.ended,
            isolated: &status.isolated,
            hints: Hints::of(context, run, None),
        }
    }
}

/// What a run that is at work does now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Activity {
    /// `agent`, `check`, `waiting`, or `recover` for what comes between these.
    #[schemars(extend("enum" = ["agent", "check", "waiting", "recover"]))]
    pub what: &'static str,
    /// The check's name.
    pub check: Option<String>,
    /// The `recover` that drives it.
    pub pid: u32,
    /// When the attempt began.
    pub started_at: Option<Timestamp>,
    /// How long ago that was.
    pub elapsed_ms: Option<u64>,
    /// When the attempt's time is up.
    pub deadline_at: Option<Timestamp>,
    /// When the next attempt is allowed.
    pub waiting_until: Option<Timestamp>,
    /// The remote that it waits for, and why it cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The last line of output.
    pub last_line: Option<String>,
}

/// How much of a log's end is examined for its last line.
const LOG_END: u64 = 16 << 10;

fn activity_of(
    context: &Context,
    run: &Run,
    limit: Option<&Hold>,
    remotes: &[RunRemote],
) -> Option<Activity> {
    let away = remotes.iter().find_map(|remote| {
        let said = remote.away.as_ref()?;
        Some(format!("the remote {}: {said}", remote.remote))
    });
    let pid = match runs::driver(context.store(), run) {
        Some(driver) => driver.pid,
        // Before its claim nothing of it is recorded.
        None if away.is_some() && !run.status.is_over() => liveness::driven_by(context, &run.key)?,
        None => return None,
    };
    let attempt = run.live.as_ref().and_then(|live| {
        run.iterations
            .get(live.iteration)?
            .attempts
            .iter()
            .rfind(|attempt| attempt.number == live.attempt)
    });
    let log = run.live.as_ref().map(|live| {
        attempt_folder(context, &run.key, live.iteration, live.attempt).join("output.log")
    });
    let agent = run
        .live
        .as_ref()
        .and_then(|live| live.child.as_ref())
        .is_some_and(ProcessId::is_alive);
    let checks = log
        .as_ref()
        .filter(|_| !agent)
        .map(|log| checks_of(context, run, log))
        .unwrap_or_default();
    let check = checks.into_iter().max_by_key(|(_, _, at)| *at);
    let now = context.clock.now();
    let waiting_until = waits_until(run).max(limit.and_then(|limit| limit.until));
    let waiting_until = waiting_until.filter(|until| attempt.is_none() && *until > now);
    let is_between = attempt.is_none() && waiting_until.is_none();
    let waiting_for = away.filter(|_| is_between);
    let what = match (agent, &check, waiting_until) {
        (true, ..) => "agent",
        (_, Some(_), _) => "check",
        (_, _, Some(_)) => "waiting",
        _ if waiting_for.is_some() => "waiting",
        _ => "recover",
    };
    let read = check.as_ref().map(|(_, path, _)| path.clone()).or(log);
    let started_at = attempt.map(|attempt| attempt.started_at);
    let limit = run.spec.timeout_ms.map(Duration::from_millis);
    Some(Activity {
        what,
        check: check.map(|(name, ..)| name),
        pid,
        started_at,
        elapsed_ms: started_at.map(|at| millis(now.since(at))),
        deadline_at: started_at.zip(limit).map(|(at, limit)| at.plus(limit)),
        waiting_until,
        waiting_for,
        last_line: read.and_then(|log| last_line(context, &log)),
    })
}

/// The checks that ran after the attempt whose log this is, each with its log and when that was written.
fn checks_of(context: &Context, run: &Run, log: &Path) -> Vec<(String, PathBuf, SystemTime)> {
    let of_check = |check: FeedbackLoop| {
        let path = log.with_file_name(log_name(&check.name, ""));
        let written = context
            .store()
            .root()
            .open(&path)
            .and_then(|file| file.metadata()?.modified())
            .ok()?;
        Some((check.name, path, written))
    };
    loops_of(context, run)
        .into_iter()
        .filter_map(of_check)
        .collect()
}

/// The last line of a log that says something, without secrets.
fn last_line(context: &Context, log: &Path) -> Option<String> {
    let (bytes, _) = context.read_end(log, LOG_END).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().rev().map(str::trim);
    Some(escape(&redact(lines.find(|line| !line.is_empty())?)))
}

/// Looks at the run that a command works on.
pub(crate) fn status(context: &Context) -> Result<Status> {
    look(context, true)
}

/// The same without its size, for which every checkpoint is looked at: for a screen that is made again and again.
pub(crate) fn glance(context: &Context) -> Result<Status> {
    look(context, false)
}

fn look(context: &Context, with_size: bool) -> Result<Status> {
    let state = recovery::load_recovered(context)?;
    let mut run = match select::find_for_loop(context, &state) {
        Ok(Some(run)) => run.clone(),
        // Nothing is recorded of it: what another system's files say, counts.
        found => match views::foreign_run(context, &state) {
            Some(run) => run,
            None => found
                .and_then(|_| select::require(context, &state))?
                .clone(),
        },
    };
    reconsider(context, &mut run);
    let good = state
        .last_good(&run.key)
        .map(|checkpoint| checkpoint.id.clone());
    let retry = retry::look_at(context, &state, &retry::About::default())?;
    // Not worth failing for.
    let remotes = run_remotes(context, &run).unwrap_or_else(|error| {
        tracing::warn!(%error, "what its remotes lack is not known");
        Vec::new()
    });
    let activity = activity_of(context, &run, retry.limit.as_ref(), &remotes);
    let night = night(context, &state, &run);
    let outlook = outlook(context, &state, &run, night.as_ref());
    let ends_by = run.is_being_fixed().then(|| end_of_fix(outlook.unchecked));
    let unrecoverable = run.failure.as_ref().filter(|failure| !failure.recoverable);
    Ok(Status {
        vault_off: context.vaults().err(),
        options: if activity.is_some() {
            Vec::new()
        } else {
            resume_options(&state, &run, outlook, &|words| {
                context.hint_about(&run, words)
            })
        },
        manual_steps: unrecoverable
            .map(|failure| manual_steps(failure, ends_by.as_deref()))
            .unwrap_or_default(),
        manual_fix: run
            .manual_fix
            .clone()
            .filter(|session| session.status == ManualFixStatus::Active),
        unfinished_operation: liveness::unfinished_operation(context)?,
        git_locked: git_state::in_the_way(context),
        checkpoint_count: state.checkpoints.count_of(&run.key),
        size_bytes: with_size
            .then(|| size_of(context, &state, &run.key))
            .flatten(),
        latest: state.latest(&run.key).map(|c| c.id.clone()),
        last_good: good,
        retry,
        activity,
        remotes,
        session: state.session_usage(&run),
        night,
        outlook,
        ended: Vec::new(),
        isolated: isolated_runs(context, &state, &run),
        is_named: context.naming().run_id.is_some(),
        elsewhere: context.elsewhere(&run),
        run,
    })
}

/// A run that has a work tree of its own.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IsolatedRun {
    #[serde(flatten)]
    pub key: RunKey,
    /// `complete`, `running`, `needs you`, …
    pub state: String,
    /// Absolute path of its work tree.
    pub worktree: String,
}

/// Those that were begun here, or where `shown` was, but that, and are neither accepted nor closed.
fn isolated_runs(context: &Context, state: &State, shown: &Run) -> Vec<IsolatedRun> {
    let home = |run: &Run| {
        run.spec
            .isolated
            .as_ref()
            .map(|isolated| isolated.home.clone())
    };
    let here = home(shown).unwrap_or_else(|| context.worktree_id());
    let is_begun_here = |run: &&Run| home(run).as_ref() == Some(&here) && run.key != shown.key;
    let is_open = |run: &&Run| !matches!(run.status, RunStatus::Accepted | RunStatus::Closed);
    let all = state.runs.iter().filter(is_begun_here).filter(is_open);
    all.map(|run| IsolatedRun {
        key: run.key.clone(),
        state: run_state(run),
        worktree: run.worktree.to_string(),
    })
    .collect()
}

/// A run that came to a stop, and that nobody decided on yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EndedRun {
    #[serde(serialize_with = "run_line", flatten)]
    #[schemars(with = "RunLine")]
    pub run: Run,
    /// Absolute path of its work tree.
    pub worktree: String,
    /// The work tree that commands about it need, where that is another one than this.
    #[serde(skip)]
    pub elsewhere: Option<Place>,
    /// When its last attempt ended.
    pub ended_at: Timestamp,
    /// What came of it.
    pub night: Night,
}

/// How many runs are examined, the latest ones.
const ENDED: usize = 20;

/// The runs of the repository, in all its work trees, that came to a stop after `since` and that nobody decided on yet;
/// newest first.
pub(crate) fn ended_since(context: &Context, since: Option<Timestamp>) -> Result<Vec<EndedRun>> {
    if !context.store().exists() {
        return Ok(Vec::new());
    }
    let state = recovery::load_recovered(context)?;
    let is_stopped = |run: &&Run| {
        let goes_on = run.live.is_some() || runs::driver(context.store(), run).is_some();
        let is_decided = matches!(run.status, RunStatus::Accepted | RunStatus::Closed);
        let is_begun = !matches!(run.status, RunStatus::Pending | RunStatus::InProgress);
        !goes_on && !is_decided && is_begun && since.is_none_or(|since| run.last_at > since)
    };
    let mut stopped: Vec<&Run> = state.runs.iter().filter(is_stopped).collect();
    stopped.sort_by_key(|run| Reverse(run.last_at));
    let ended = stopped.into_iter().take(ENDED).filter_map(|run| {
        let mut run = run.clone();
        let elsewhere = context.elsewhere(&run);
        let there = elsewhere
            .as_ref()
            .and_then(|_| context.at(&run.worktree.path()).ok());
        let there = there.as_ref().unwrap_or(context);
        reconsider(there, &mut run);
        let night = night(there, &state, &run)?;
        let took = Duration::from_millis(night.duration_ms);
        Some(EndedRun {
            worktree: run.worktree.to_string(),
            ended_at: run.created_at.plus(took),
            elsewhere,
            night,
            run,
        })
    });
    let is_new = |one: &EndedRun| since.is_none_or(|since| one.ended_at > since);
    let mut ended: Vec<EndedRun> = ended.filter(is_new).collect();
    ended.sort_by_key(|one| Reverse(one.ended_at));
    Ok(ended)
}

/// Where the run stands that a command works on; where none is named and there is none in this work tree, the latest one of
/// another.
pub(crate) fn status_anywhere(context: &Context) -> Result<Status> {
    let naming = context.naming();
    let is_named = naming.run_id.is_some()
        || naming.lane.is_some()
        || naming.phase.is_some()
        || naming.task.is_some();
    let error = match status(context) {
        Err(error) if error.kind == ErrorKind::RunNotFound && !is_named => error,
        found => return found,
    };
    let state = context.load()?.state;
    let others = state
        .runs
        .iter()
        .filter_map(|run| Some((run, context.elsewhere(run)?)));
    let Some((latest, elsewhere)) = others.max_by_key(|(run, _)| run.last_seq) else {
        return Err(error);
    };
    let mut there = context.at(&latest.worktree.path())?;
    there.name_run(latest.key.run_id.clone());
    Ok(Status {
        elsewhere: Some(elsewhere),
        ..status(&there)?
    })
}

/// Where the last look at what ended is noted.
fn seen(context: &Context) -> PathBuf {
    context.store().private_dir().join("seen")
}

/// When a person looked last at what ended in this repository.
pub(crate) fn last_look(context: &Context) -> Option<Timestamp> {
    let bytes = context.store().root().read_present(&seen(context)).ok()??;
    String::from_utf8_lossy(&bytes).trim().parse().ok()
}

/// Notes that a person looks now.
pub(crate) fn note_look(context: &Context) {
    let now = context.clock.now().to_string();
    context.write_note(&seen(context), now.as_bytes());
}

/// How often the ledger is examined.
const TICK: Duration = Duration::from_millis(100);

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noticed {
    /// Something was recorded.
    Recorded,
    /// The time is up.
    Nothing,
    /// A signal came; what to exit with.
    Stopped(i32),
}

/// The ledger of a state directory, followed.
#[derive(Debug)]
pub(crate) struct Follow<'a> {
    context: &'a Context,
    length: u64,
}

impl<'a> Follow<'a> {
    /// Follows from now on.
    pub(crate) fn new(context: &'a Context) -> Self {
        let length = length(context);
        Self { context, length }
    }

    /// Whether something was recorded since this was asked last, or a wait ended.
    pub(crate) fn has_changed(&mut self) -> bool {
        let length = length(self.context);
        std::mem::replace(&mut self.length, length) != length
    }

    /// Waits until something was recorded since the last wait ended, at most for `longest`.
    pub(crate) fn wait(&mut self, longest: Option<Duration>) -> Noticed {
        let begun = Instant::now();
        loop {
            let left = longest.map_or(TICK, |longest| longest.saturating_sub(begun.elapsed()));
            if let Some(signal) = self.context.interrupts.pending() {
                return Noticed::Stopped(signal.exit_code());
            }
            if self.has_changed() {
                return Noticed::Recorded;
            }
            if left.is_zero() {
                return Noticed::Nothing;
            }
            // A signal ends it, and is seen next.
            let _ = self.context.interrupts.sleep(left.min(TICK));
        }
    }
}

/// The length of the ledger; 0 where there is none.
pub(in crate::engine) fn length(context: &Context) -> u64 {
    context.store().ledger_length()
}
