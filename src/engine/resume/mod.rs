//! Resumes a failed or interrupted run (B3–B7, S15).
//!
//! What a person may do after a resume.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Origin;
use checks::{refuse, validate};
use prepare::{Way, spec_of};

use crate::engine::attempt::preconditions::reconsider;
use crate::engine::attempt::run_summary::{night, outlook, run_retry_status};
use crate::engine::base::progress::WakeReason;
use crate::engine::base::runs::{self, run_of};
use crate::engine::base::{Context, ErrorKind, Result, WaitLimit};
use crate::engine::record::events::apply_speculatively;
use crate::engine::record::liveness::Driving;
use crate::engine::record::select;
use crate::engine::recovery;
use crate::engine::remote::{TakeOver, plan_take_over, release, take_over};
use crate::engine::run::retry::Awaited;
use crate::engine::run::{
    self, AgentChoice, DriveOptions, Driven, Outcome, drive, fix_session, profile_of, prompt_of,
    retry, tasks,
};
use crate::engine::trust;
use crate::engine::trust::agreed::{self, note_agreed};
use crate::model::run::SessionMode;
use crate::model::spec::Launch;
use crate::model::time::format_duration;
use crate::model::{
    Action, FeedbackLoop, FolderId, Hint, Payload, Run, RunId, RunKey, RunStatus, Standing, State,
    Strategy, TaskList,
};
use crate::policy::retry::{Outlook, ToAccept, next_command};
use crate::store::NewEvent;

pub(crate) use checks::Check;
pub(crate) use prepare::Plan;

mod checks;
pub(crate) mod interrupted;
mod prepare;
pub(crate) mod service;

/// How to resume it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResumeRequest {
    /// The run, where it was taken from a remote; else the one that the command is about.
    pub run_id: Option<RunId>,
    /// The strategy; the policy's where it is not named.
    pub strategy: Option<Strategy>,
    /// The iteration to go on from.
    pub from_iteration: Option<u32>,
    /// Leave the error out of the prompt.
    pub no_error_context: bool,
    /// More for the prompt.
    pub instructions: Option<String>,
    /// In which session of the agent attempts go on from now on, where that is said.
    pub session: Option<SessionMode>,
    /// Start fresh from iteration 1.
    pub restart: bool,
    /// Prepare and print, run nothing.
    pub prepare_only: bool,
    /// Wait for the earliest time.
    pub wait: Option<WaitLimit>,
    /// What notifies from now on; `None`: what did.
    pub notify: Option<String>,
    /// Checks in place of the run's own of the same names, or beside them.
    pub feedback: Vec<FeedbackLoop>,
    /// The other terms that hold from now on.
    pub terms: Terms,
    /// A command in place of the recorded one.
    pub command: Vec<String>,
    /// Where that one starts, relative to the work tree.
    pub dir: FolderId,
    /// The profile that it is of; `None` for one that was given.
    pub launch: Option<Launch>,
    /// How it is taken from a remote.
    pub take_over: TakeOver,
}

/// Terms of a run that a resume changes; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Time for one attempt.
    pub timeout: Option<Duration>,
    /// Attempts of an iteration, the first included.
    pub attempts: Option<u32>,
    /// Number of iterations.
    pub iterations: Option<u32>,
    /// The agent that is started, or whose records the command prints.
    pub agent: Option<String>,
    /// The prompt.
    pub prompt: Option<String>,
    /// The file of a list of tasks, all of which are run that the run does not have yet.
    pub tasks: Option<PathBuf>,
    /// Those of its tasks that are run; empty for all.
    pub only: Vec<String>,
    /// The list with those.
    pub list: Option<TaskList>,
}

impl ResumeRequest {
    /// Whether a person says how it goes on: a strategy, or other terms. That grants an attempt where none is left.
    fn says_how(&self) -> bool {
        self.strategy.is_some() || !self.feedback.is_empty() || self.terms != Terms::default()
    }

    /// Whether a complete run gets further iterations.
    fn extends(&self, run: &Run) -> bool {
        let listed = self.terms.list.as_ref().map(TaskList::count);
        run.status == RunStatus::Complete
            && self.terms.iterations.max(listed) > run.spec.iterations_total
    }

    /// The command that is run, and where it starts.
    fn command_of<'a>(&'a self, run: &'a Run) -> (&'a [String], &'a FolderId) {
        if self.command.is_empty() {
            (&run.spec.command, &run.spec.dir)
        } else {
            (&self.command, &self.dir)
        }
    }

    /// Whether it is a person's word for another attempt: of a run that gave up waiting every resume is.
    fn grants(&self, run: &Run) -> bool {
        self.says_how() || run.gave_up_waiting()
    }

    /// What is requested of the next attempt, as it is typed.
    fn words(&self) -> Vec<String> {
        let terms = &self.terms;
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let strategy = self.strategy.map(|strategy| strategy.as_str().to_owned());
        let flags = [
            ("--strategy", strategy),
            ("--from-iteration", number(self.from_iteration)),
            ("--instructions", self.instructions.clone()),
            ("--timeout", terms.timeout.map(format_duration)),
            ("--attempts", number(terms.attempts)),
            ("--iterations", number(terms.iterations)),
            ("--agent", terms.agent.clone()),
            ("--prompt", terms.prompt.clone()),
            (
                "--tasks",
                terms.tasks.as_ref().map(|file| file.display().to_string()),
            ),
        ];
        let mut words = Vec::new();
        for (name, value) in flags {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        if self.no_error_context {
            words.push("--no-error-context".to_owned());
        }
        words
    }
}

/// What a resume did.
#[derive(Debug)]
pub(crate) struct Resumed {
    /// Whether the run was changed, or would be: opened again, prepared for another attempt.
    pub changed: bool,
    /// The run afterwards.
    pub run: Run,
    /// How it was resumed.
    pub strategy: Option<Strategy>,
    /// The prompt of the attempt that came or comes next.
    pub prompt: Option<String>,
    /// What was examined.
    pub validation: Vec<Check>,
    /// What came of it; `None` where nothing was run.
    pub driven: Option<Driven>,
    /// Where it stands when nothing was run.
    pub standing: Standing,
    /// The words that ask for the same again.
    pub again: Vec<String>,
    /// How long it was waited before it was resumed.
    pub waited: Duration,
    /// Whether there is a good checkpoint to go back to.
    pub has_good_checkpoint: bool,
    /// What a dry run says that would be done; `None` where nothing would be.
    pub plan: Option<Plan>,
}

/// Takes the run up; one that lies on a remote is claimed first, and its claim given back at the end.
pub(crate) fn resume(
    context: &Context,
    request: &ResumeRequest,
    drive_options: &DriveOptions,
) -> Result<Resumed> {
    let id = request.run_id.as_ref();
    let (driving, planned) = if context.dry_run() {
        (None, plan_take_over(context, id, request.take_over)?)
    } else {
        (take_over(context, id, request.take_over)?, None)
    };
    let taken = driving.as_ref().map(|driving| driving.key.clone());
    let key = taken
        .clone()
        .or_else(|| planned.as_ref().map(|planned| planned.key.clone()));
    let run_id = key.map(|key| key.run_id).or_else(|| request.run_id.clone());
    let request = ResumeRequest {
        run_id,
        ..request.clone()
    };
    let ready = get_ready(
        context,
        &request,
        driving,
        planned.as_ref().map(|planned| &planned.state),
    );
    // What is driven is released with its last word.
    if let Some(key) = taken.filter(|_| !matches!(ready, Ok((_, Some(_))))) {
        let is_hurried = ready
            .as_ref()
            .is_err_and(|error| matches!(error.kind, ErrorKind::Interrupted(_)));
        release(context, &key, is_hurried);
    }
    let (mut resumed, driving) = ready?;
    if let Some(driving) = driving {
        let longest = drive_options.longest_wait;
        let options = DriveOptions {
            longest_wait: longest.map(|longest| longest.saturating_sub(resumed.waited)),
            ..*drive_options
        };
        let driven = drive(context, &driving, &options)?;
        resumed.run = driven.run.clone();
        resumed.standing = driven.standing;
        resumed.driven = Some(driven);
    }
    Ok(resumed)
}

/// Takes the run up as it is recorded here, or for a plan in `there`, as it is on its remote. With the right to drive it, its
/// command is to be run.
fn get_ready(
    context: &Context,
    request: &ResumeRequest,
    driving: Option<Driving>,
    there: Option<&Arc<State>>,
) -> Result<(Resumed, Option<Driving>)> {
    if !context.dry_run() {
        recovery::recover(context)?;
    }
    let load = || match there {
        None => recovery::load_recovered(context),
        Some(there) => Ok(Arc::clone(there)),
    };
    let mut state = load()?;
    let key = chosen(context, &state, request.run_id.as_ref())?;
    let mut run = run_of(&state, &key)?;
    let is_reopened = run.status == RunStatus::Closed;
    if is_reopened {
        reopen(context, &mut state, &run)?;
        run = run_of(&state, &key)?;
    }
    let (mut resumed, driving) = take_up(context, request, driving, &load, (state, run))?;
    resumed.changed |= is_reopened;
    Ok((resumed, driving))
}

/// Takes up a run that is open. `load` reads the state again, after a wait.
fn take_up(
    context: &Context,
    request: &ResumeRequest,
    driving: Option<Driving>,
    load: &dyn Fn() -> Result<Arc<State>>,
    (mut state, run): (Arc<State>, Run),
) -> Result<(Resumed, Option<Driving>)> {
    let key = run.key.clone();
    if request.command.is_empty() && run.spec.command.is_empty() && !request.prepare_only {
        trust::require(context, |key| key == "runner.command")?;
    }
    let typed = request;
    let request = &resolved(context, &run, request)?;
    let lane = || {
        let validation = validated(context, &state, &run, request);
        Resumed {
            validation,
            ..untouched(context, &state, run.clone())
        }
    };
    if run.status.is_done() && !request.restart && !request.extends(&run) {
        let is_lane = is_lane(&state, &key);
        let resumed = is_lane.then(lane);
        return Ok((
            resumed.unwrap_or_else(|| untouched(context, &state, run.clone())),
            None,
        ));
    }
    let driving = match driving {
        None if !context.dry_run() => Some(Driving::take(context, &key)?),
        driving => driving,
    };
    match refuse(context, &state, &run, request) {
        // A lane's place is printed whatever its state (C4, C6).
        Err(error) if error.kind == ErrorKind::NotFailed && is_lane(&state, &key) => {
            return Ok((lane(), None));
        }
        refused => refused?,
    }

    let hands_over = request.strategy == Some(Strategy::ManualThenContinue);
    let starts = !request.prepare_only && !hands_over && !context.dry_run();
    if starts && !request.command_of(&run).0.is_empty() {
        trust::require_to_drive(context, &run)?;
    }
    let begun = context.clock.now();
    if !request.restart
        && let Some(stop) = stop_early(context, &key, typed, &state)?
    {
        return Ok((stop, None));
    }
    let waited = context.clock.now().since(begun);
    state = load()?;
    let mut run = run_of(&state, &key)?;
    // What an attempt needed has changed since: that is as good as a person's word.
    let has_changed = reconsider(context, &mut run);
    let standing = run_retry_status(context, &state, &run).standing;
    let held_up = matches!(standing, Standing::Exhausted | Standing::NeedsPerson);
    // What was granted and not used yet stays.
    let granted = (typed.grants(&run) && held_up)
        || run.granted > 0
        || (has_changed && standing == Standing::Allowed);
    let way = Way {
        context,
        state: &state,
        run: &run,
        request,
        strategy: effective_strategy(&run, typed),
    };
    let mut resumed = Resumed {
        changed: true,
        waited,
        strategy: way.strategy,
        validation: validated(context, &state, &run, request),
        ..untouched(context, &state, run.clone())
    };
    if way.strategy == Some(Strategy::ManualThenContinue) {
        if !context.dry_run() {
            fix_session::open(context, &key)?;
            resumed.run = run_of(&context.load()?.state, &key)?;
        }
        resumed.standing = Standing::NeedsPerson;
        return Ok((resumed, None));
    }
    if !request.prepare_only {
        require_command(context, &run, request)?;
    }
    let task = context.naming().task.as_ref();
    let subtask = |run: &Run| run.next_subtask(run.current_iteration, task);
    let Some(driving) = driving else {
        let plan = way.plan()?;
        if !plan.none_left {
            resumed.prompt = prompt_of(context, &state, &way.planned(), &subtask(&run));
        }
        resumed.plan = Some(plan);
        if request.restart || granted {
            resumed.standing = Standing::Allowed;
        }
        return Ok((resumed, None));
    };
    way.prepare(granted)?;
    let state = context.load()?.state;
    let run = run_of(&state, &key)?;
    if starts {
        // What was typed now needs nobody's word, and the rest was agreed to.
        note_agreed(context, &run)?;
    }
    resumed.prompt = prompt_of(context, &state, &run, &subtask(&run));
    resumed.standing = Standing::Allowed;
    let is_driven = !request.prepare_only && !run.spec.command.is_empty();
    if is_driven {
        run::capture_missed_beginning(context, &run)?;
    }
    resumed.run = run;
    Ok((resumed, is_driven.then_some(driving)))
}

/// What a resume depends on; what is not as it was is said, before anything is spent on it.
fn validated(context: &Context, state: &State, run: &Run, request: &ResumeRequest) -> Vec<Check> {
    let checks = validate(context, state, run, request);
    for check in checks.iter().filter(|check| !check.ok) {
        context.warn(format!(
            "changed since the run stopped: {}: {}",
            check.name, check.message
        ));
    }
    checks
}

/// Refuses (2) to resume a run whose command cannot be started, or a check of which stopped it by that and still would.
fn require_command(context: &Context, run: &Run, request: &ResumeRequest) -> Result<()> {
    let (argv, dir) = request.command_of(run);
    if argv.is_empty() {
        return Ok(());
    }
    let other = || Hint::recover(["resume", "--prepare-only"]).run(&run.key);
    agreed::require_whole(
        context,
        &run.key,
        &spec_of(run, request, run.current_iteration),
    )?;
    run::require_command(context, argv, dir).map_err(|error| {
        if error.hint.is_some() && !request.command.is_empty() {
            error
        } else {
            error.hint(other())
        }
    })?;
    if request.feedback.is_empty() {
        run::require_checks(context, run)
    } else {
        Ok(())
    }
}

/// The work tree that a lane is at home in which is named from another one of the repository (C4).
pub(crate) fn home_of_lane(context: &Context) -> Result<Option<PathBuf>> {
    if context.naming().run_id.is_none() || !context.has_git() {
        return Ok(None);
    }
    let state = context.load()?.state;
    // Whatever is wrong with the name, the resume itself says it.
    let Some(run) = chosen(context, &state, None)
        .ok()
        .and_then(|key| state.run(&key).cloned())
    else {
        return Ok(None);
    };
    let is_home = run.worktree != context.worktree_id()
        && is_lane(&state, &run.key)
        && state.checkpoints_of(&run.key).next().is_some()
        && context.is_worktree_of_repo(&run.worktree);
    Ok(is_home.then(|| run.worktree.path()))
}

/// A closed run stands again where it stood before.
fn reopen(context: &Context, state: &mut Arc<State>, run: &Run) -> Result<()> {
    let status = run.closed_from.unwrap_or(RunStatus::Failed);
    // Nobody is at work on it any more.
    let status = if status == RunStatus::InProgress {
        RunStatus::Paused
    } else {
        status
    };
    let payload = Payload::RunStatusChanged {
        status,
        reason: "it was closed, and is resumed".to_owned(),
    };
    if context.dry_run() {
        apply_speculatively(
            state,
            context.clock.now(),
            NewEvent::about(&run.key, payload),
        );
        return Ok(());
    }
    context.record(&run.key, vec![payload])?;
    *state = context.load()?.state;
    Ok(())
}

fn is_lane(state: &State, key: &RunKey) -> bool {
    state.lane_stands(key).is_some()
}

fn chosen(context: &Context, state: &State, run_id: Option<&RunId>) -> Result<RunKey> {
    let naming = context.naming();
    let Some(id) = run_id else {
        return Ok(select::require(context, state)?.key.clone());
    };
    let run = runs::named(state, id, naming.phase.as_deref(), naming.lane.as_deref())?;
    Ok(run.key.clone())
}

fn untouched(context: &Context, state: &State, run: Run) -> Resumed {
    Resumed {
        changed: false,
        standing: run_retry_status(context, state, &run).standing,
        has_good_checkpoint: state.last_good(&run.key).is_some(),
        run,
        strategy: None,
        prompt: None,
        validation: Vec::new(),
        driven: None,
        again: Vec::new(),
        waited: Duration::ZERO,
        plan: None,
    }
}

/// The request with what the configuration says: a command where the run has none of its own and none was given, how the
/// agent is started that is named, a time limit that was not typed.
fn resolved(context: &Context, run: &Run, request: &ResumeRequest) -> Result<ResumeRequest> {
    let mut request = request.clone();
    let origin = context.config().origin("runner.timeout");
    let is_new = |origin: &Origin| match origin {
        Origin::Environment(_) => true,
        origin => origin.is_explicit() && !run.spec.timeout_typed,
    };
    if request.terms.timeout.is_none() && origin.is_some_and(is_new) {
        request.terms.timeout = context.settings().runner.timeout;
    }
    let file = request.terms.tasks.as_ref();
    request.terms.list = file
        .map(|file| tasks::again(context, run, file, &request.terms.only))
        .transpose()?;
    let terms = run.terms();
    let prompt = request.terms.prompt.as_ref().or(terms.prompt.as_ref());
    if let Some(name) = &request.terms.agent {
        trust::require(context, |key| {
            let rest = key.strip_prefix("agent.");
            rest.and_then(|rest| rest.strip_prefix(profile_of(name)))
                .is_some_and(|rest| rest.starts_with('.'))
        })?;
        let agent = AgentChoice::of(context, Some(name))?;
        // With a command of its own the name says only whose records that prints.
        let is_started = run.spec.launch.is_some() || run.spec.command.is_empty();
        if request.command.is_empty() && is_started {
            let yolo = run.spec.launch.as_ref().is_some_and(|launch| launch.yolo);
            let skips_permissions = yolo || context.settings().skip_permissions;
            let (launch, command) = agent.start(prompt.map(String::as_str), skips_permissions)?;
            (request.launch, request.command) = (Some(launch), command);
            request.dir = FolderId::default();
        }
        request.terms.agent = Some(agent.records.unwrap_or_else(|| name.clone()));
    }
    let runner = &context.settings().runner;
    if let Some(command) = runner
        .command
        .as_ref()
        .filter(|_| request.command.is_empty() && run.spec.command.is_empty())
    {
        request.command = runner.argv(command);
        request.dir = FolderId::default();
    }
    Ok(request)
}

/// Cooldown, exhausted budgets and decisions that need a person end a resume before it begins; a wait that is asked
/// for is taken here.
fn stop_early(
    context: &Context,
    key: &RunKey,
    request: &ResumeRequest,
    state: &State,
) -> Result<Option<Resumed>> {
    let mut run = run_of(state, key)?;
    reconsider(context, &mut run);
    match run_retry_status(context, state, &run).standing {
        Standing::Allowed => Ok(None),
        // Handing over is no attempt: a person need not wait.
        Standing::Wait(_) if request.strategy == Some(Strategy::ManualThenContinue) => Ok(None),
        Standing::Wait(_) if request.prepare_only || context.dry_run() => Ok(None),
        Standing::Wait(until) if context.progress.skips_wait(until) => Ok(None),
        Standing::Wait(until) => match request.wait {
            None => Ok(Some(Resumed {
                again: request.words(),
                ..untouched(context, state, run)
            })),
            Some(limit) => {
                // What a person can mend is said before the wait, and again should it still hold after it.
                validated(context, state, &run, request);
                let deadline = limit
                    .longest()
                    .map(|longest| context.clock.now().plus(longest));
                let awaited = Awaited::of(Some(&run), until, &|| false);
                if awaited.is_futile(deadline) {
                    return Ok(Some(untouched(context, state, run)));
                }
                match retry::sleep(context, &awaited, deadline)? {
                    WakeReason::InTime | WakeReason::Now => Ok(None),
                    WakeReason::Stop => Ok(Some(untouched(context, state, run))),
                }
            }
        },
        // An explicit strategy grants one attempt, and so do other terms.
        Standing::Exhausted | Standing::NeedsPerson if request.grants(&run) => Ok(None),
        Standing::Exhausted | Standing::NeedsPerson => Ok(Some(untouched(context, state, run))),
    }
}

fn effective_strategy(run: &Run, request: &ResumeRequest) -> Option<Strategy> {
    if request.restart {
        return None;
    }
    let by_policy = || {
        let decision = run.decision.as_ref().filter(|_| run.failure.is_some())?;
        if request.says_how() && !decision.leads_to_attempt() {
            // On the terms that were given now it is tried again.
            return None;
        }
        if decision.has(Action::Rollback) && decision.leads_to_attempt() {
            Some(Strategy::RollbackAndRetry)
        } else {
            decision.strategy
        }
    };
    // What was prepared, and granted, is gone on with.
    let prepared = || run.resumed_with.filter(|_| run.granted > 0);
    request
        .strategy
        .or_else(prepared)
        .or_else(by_policy)
        .or(Some(if run.failure.is_some() {
            Strategy::RetryWithContext
        } else {
            Strategy::RetrySame
        }))
}

/// Commands that a person may want next.
pub(crate) fn next_actions(context: &Context, resumed: &Resumed) -> Vec<Hint> {
    let outcome = resumed.driven.as_ref().map(|driven| driven.outcome);
    if resumed.run.status.is_done() || outcome == Some(Outcome::Complete) {
        return Vec::new();
    }
    let Ok(loaded) = context.load() else {
        return ways_on(context, resumed, Outlook::default());
    };
    let night = night(context, &loaded.state, &resumed.run);
    let outlook = outlook(context, &loaded.state, &resumed.run, night.as_ref());
    let mut actions = ways_on(
        context,
        resumed,
        Outlook {
            to_accept: ToAccept::Nothing,
            ..outlook
        },
    );
    // As at all other places, what can be accepted is.
    if outlook.to_accept != ToAccept::Nothing {
        actions.splice(..0, night.and_then(|night| night.next));
    }
    actions
}

fn ways_on(context: &Context, resumed: &Resumed, outlook: Outlook) -> Vec<Hint> {
    let line = |words: &[&str]| context.hint_about(&resumed.run, words);
    let is_fixed = resumed.run.is_being_fixed();
    let ways: &[&[&str]] = match resumed.standing {
        Standing::Wait(_) => {
            let again = resumed.again.iter().map(String::as_str);
            let words: Vec<&str> = ["resume", "--wait"].into_iter().chain(again).collect();
            return vec![line(&words)];
        }
        Standing::Allowed => &[&["resume"]],
        _ if is_fixed && outlook.unchecked => &[
            &["manual-fix", "abort"],
            &["resume", "--strategy", "continue_next"],
        ],
        _ if is_fixed => &[&["manual-fix", "verify"], &["manual-fix", "continue"]],
        Standing::Exhausted | Standing::NeedsPerson => {
            let with_context = vec!["resume", "--strategy", "retry_with_context"];
            let mut ways: Vec<_> = next_command(&resumed.run, outlook).into_iter().collect();
            if !outlook.unchecked {
                ways.push(vec!["manual-fix", "start"]);
            }
            if !ways.contains(&with_context) {
                ways.push(with_context);
            }
            return ways.iter().map(|words| line(words)).collect();
        }
    };
    ways.iter().map(|words| line(words)).collect()
}
