//! One attempt: prompt, environment, command, feedback loops, verdict.
//!
//! A command that runs, and its agent's records as they come.
//!
//! Checkpoints while an attempt's command runs (S10), so that a long one has more to go back to than its beginning.
//!
//! A thread of its own takes them: the command's output goes on being read meanwhile. What goes wrong is reported and nothing
//! else; the attempt is none the worse for it.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use super::acp::Terms;
use super::commands::{failure_of, has_changed, may_be_done};
use super::feedback::{LoopReport, LoopSetting, evidence_of, log_file, run_loops};
use super::gate::Pass;
use super::guard::{Guard, usage_of};
use super::watched::{Watched, run_watched};
use super::{Digest, DriveOptions, between_attempts, confine, guard};
use crate::agent;
use crate::durable::present;
use crate::engine::attempt::note_usage;
use crate::engine::base::clock::millis;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::checkpoint::{create_automatic, due};
use crate::engine::record::attempt_record::{Begin, Ending, Started};
use crate::engine::record::run_settings::{attempt_folder, identity, loops_of, start_folder};
use crate::engine::record::{git_state, lane};
use crate::engine::recovery::lost;
use crate::engine::remote::Session;
use crate::engine::trust;
use crate::git::repo::ForeignLock;
use crate::model::agent_record::{AgentKind, AgentRecord};
use crate::model::run::Leftover;
use crate::model::spec::{Launch, PromptMode};
use crate::model::{AttemptEnd, Cause, CheckKind, Failure, FolderId, Run, RunKey, State};
use crate::os::own_program;
use crate::policy::classify::{self, classify, stage_of_command};
use crate::policy::prompt::{PromptParts, prompt};
use crate::policy::retry::Provider;
use crate::policy::secrets::{redact, redact_json};
use crate::policy::settings::{AUTO, Leftovers};
use crate::policy::text::headline;
use crate::process::{Exit, Mark, Program, Signal, SpawnErrorKind, Supervised};

/// This many characters of a command line are enough to know a process by.
const LONGEST_COMMAND: usize = 200;

/// What was executed.
pub(super) struct Executed {
    /// For the record.
    pub ending: Ending,
    /// Exit code of the signal that interrupted it.
    pub interrupted: Option<i32>,
    /// Exit code of the child.
    pub child_exit_code: Option<i32>,
}

impl Executed {
    fn new(end: AttemptEnd, exit: &Exit) -> Self {
        Self {
            ending: Ending {
                end,
                ..Ending::default()
            },
            interrupted: exit.cancelled.map(Signal::exit_code),
            child_exit_code: exit.exit_code,
        }
    }
}

/// How an attempt ends that was not even run: as cancelled, so that nothing is charged for it.
pub(super) fn never_run(message: String) -> Ending {
    let failure = Failure {
        message,
        ..classify::cancelled()
    };
    Ending {
        end: AttemptEnd {
            failure: Some(failure),
            ..AttemptEnd::default()
        },
        ..Ending::default()
    }
}

/// What an attempt of `run` is begun with.
pub(super) fn begin_of(context: &Context, run: &Run) -> Begin {
    Begin {
        approach: run.spec.approach.clone(),
        supervisor: Some(context.supervisor_id()),
        ..Begin::default()
    }
}

/// The prompt of the attempt that comes next; `before` is the run as it stood before the attempt was begun.
pub(crate) fn prompt_of(
    context: &Context,
    state: &State,
    before: &Run,
    subtask: &str,
) -> Option<String> {
    let decided = before
        .decision
        .as_ref()
        .and_then(|decision| decision.strategy);
    let strategy = before.resumed_with.or(decided);
    prompt(&PromptParts {
        run: before,
        checkpoints: &state.checkpoints,
        subtask,
        strategy,
        error_context: before.next_error_context,
        instructions: before.next_instructions.as_deref(),
        limit: usize::try_from(context.settings().run.prompt_limit).unwrap_or(usize::MAX),
    })
}

/// Runs the command and the loops of an attempt that was begun. `before` is the run as it stood before.
pub(super) fn execute(
    context: &Context,
    key: &RunKey,
    before: &Run,
    started: &Started,
    (options, session, pass): (&DriveOptions, Option<&Session<'_>>, &Pass),
) -> Result<Executed> {
    let folder = attempt_folder(context, key, started.iteration, started.attempt);
    context.create_state_dir(&folder)?;
    let log = folder.join("output.log");
    put_aside(context, &log, started);
    let text = prompt_of(context, &context.load()?.state, before, &started.subtask);
    let command = Command::of(started);
    let mut supervised = supervised(context, before, started, &folder, text.as_deref(), options)?;
    if !options.show.is_passthrough() {
        supervised.log = Some(log_file(context, &log)?);
    }
    let mark = Mark::new(trust::attempt_places(context));
    let mut marked = vec![(Mark::VARIABLE.into(), mark.value().into())];
    marked.extend(session.map(Session::variable));
    supervised.env_set.extend(marked.iter().cloned());
    let kind = agent::detect(Some(&command.line()), command.agent.as_deref(), b"");
    let is_agent =
        command.stage(before) == CheckKind::Agent && command.agent.as_deref() != Some("none");
    let watched = is_agent.then(|| Watched {
        kind,
        is_read: command.is_read(before, options.digest),
        has_session: !command.is_fallback,
        terms: command.terms(before, text.as_deref()),
    });
    let places = confine::places(context, before, kind);
    supervised.confined.clone_from(&places);
    let is_named = is_agent && (kind.is_some() || command.launch.is_some());
    let guard = Guard::new(context, before, (kind, is_named));
    let locks = git_state::all(context).unwrap_or_default();
    let run = || {
        let agent = (watched.as_ref(), &guard);
        run_watched(context, key, supervised, agent, (session, pass))
    };
    let (mut exit, mut outcome) = with_checkpoints(context, key, run)
        .with_context(|| format!("cannot run {}", command.line()))?;
    if let Some(error) = &exit.spawn_error
        && error.kind != SpawnErrorKind::Other
        && !command.is_fallback
    {
        // It was there when the run began: the attempt is not charged.
        let message = format!("cannot start the command: {}", error.message);
        return Err(Error::new(ErrorKind::Usage, message));
    }
    if command.is_acp() {
        outcome.settle(&mut exit);
    }
    let settle = |leftovers: &mut Vec<_>| settle_strays(context, &mark, leftovers);
    if let Some(end) = between_attempts::ended_by(context, (&exit, &log), settle)? {
        return Ok(Executed::new(end, &exit));
    }
    // What an atomic step left that was killed within the attempt is no part of its result.
    let settled = lost::recover_steps(context).inspect_err(
        |error| tracing::warn!(%error, "a step of the attempt was interrupted and is not resolved"),
    );
    settled
        .into_iter()
        .flatten()
        .for_each(|what| context.note(what));
    if exit.leaked {
        tracing::warn!("processes of the attempt outlived it and were ended");
    }
    if let Some(error) = &exit.log_error {
        tracing::warn!(%error, log = %log.display(), "the attempt's log is incomplete");
    }

    let mut leftovers = Vec::new();
    settle_strays(context, &mark, &mut leftovers);
    settle_locks(context, &locks);
    let was_stopped = exit.stopped;
    let session = before.session_to_resume().filter(|_| !command.is_fallback);
    let end = AttemptEnd {
        duration_ms: millis(exit.duration),
        exit_code: exit.exit_code,
        signal: exit.signal.clone(),
        timed_out: exit.timed_out,
        log_path: Some(log.to_string_lossy().into_owned()),
        ..AttemptEnd::default()
    };
    let mut executed = Executed::new(end, &exit);
    let ending = &mut executed.ending;
    ending.resumed = session.map(str::to_owned);
    let stage = command.stage(before);
    let deadline = before.terms().timeout_ms.map(Duration::from_millis);
    let line = shlex::try_join(command.argv.iter().map(String::as_str));
    let line = line.unwrap_or_else(|_| command.line());
    let mut evidence = evidence_of(exit, Some(stage), Some(line), deadline);
    evidence.time_zone = context.time_zone();
    evidence.agent.clone_from(&command.agent);
    evidence.is_merged = before.spec.pty;
    evidence.is_check = stage != CheckKind::Agent;
    let named = command.agent.as_deref();
    let kind = agent::detect(Some(&command.line()), named, &evidence.stdout);
    ending.provider = command.provider(before, kind.is_some());
    let mut record = kind.map(|kind| agent::read(kind, &evidence.stdout, &evidence.stderr));
    if let Some(record) = record.as_mut().filter(|_| command.is_acp()) {
        outcome.complete(record);
    }
    if let Some(record) = &record {
        take_record(ending, record, before);
        if command.is_fallback {
            // Another agent maybe: the next attempt is the run's own command.
            ending.end.agent_session = None;
        }
    }
    if let Some(places) = &places {
        ending.refused = confine::refused(context, places, &evidence);
    }
    // The work tree is read at most once.
    let changed = OnceCell::new();
    let changed = || *changed.get_or_init(|| has_changed(context, key, &evidence));
    let stopped = was_stopped
        .then(|| guard.failure(&mut ending.end))
        .flatten();
    let is_stopped = stopped.is_some();
    let failure = stopped.or_else(|| {
        failure_of(
            context,
            key,
            (&evidence, record.as_ref()),
            (&command.argv, command.launch.as_ref()),
            &changed,
        )
    });
    let loops = loops_of(context, before);
    let is_judged = |failure: &Failure| {
        !is_stopped
            && !loops.is_empty()
            && may_be_done(failure, (&evidence, record.as_ref()), &changed)
    };
    if !failure.as_ref().is_none_or(is_judged) {
        ending.end.failure = failure;
        ending.end.leftovers = leftovers;
        return Ok(executed);
    }
    let (iteration, attempt) = (started.iteration, Some(started.attempt));
    let mut setting = LoopSetting::new(context, before, iteration, attempt, &folder);
    setting.env.extend(marked);
    setting.show = options.show;
    setting.confined = places;
    let report = run_loops(context, &loops, &setting)?;
    settle_strays(context, &mark, &mut leftovers);
    settle_locks(context, &locks);
    ending.end.leftovers = leftovers;
    executed.interrupted = report.interrupted;
    conclude(context, ending, failure, report);
    Ok(executed)
}

/// Takes over what the checks said of an attempt that may be done although its command ended with `failure`.
fn conclude(context: &Context, ending: &mut Ending, failure: Option<Failure>, report: LoopReport) {
    if report.interrupted.is_some() {
        ending.end.failure = Some(classify::cancelled());
    } else if let Some(failure) = failure {
        if report.first_failure.is_some() {
            ending.end.failure = Some(failure);
        } else {
            let message = &failure.message;
            let note =
                format!("the agent ended with \"{message}\", but what it left passes its checks");
            context.note(note.clone());
            ending.end.notes.push(note);
            let is_limit = failure.cause == Cause::RateLimited;
            ending.end.limit = is_limit.then(|| Box::new(failure));
        }
    } else if let Some((feedback, evidence)) = report.first_failure {
        let (rules, now) = (&context.settings().rules, context.clock.now());
        let mut failure = classify(&evidence, None, rules, now);
        failure.message = format!("{}: {}", feedback.name, failure.message);
        ending.end.failure = Some(failure);
        ending.in_feedback_loop = true;
        ending.provider = Provider::Nobody;
        ending.failed_loop = Some(feedback.name);
    }
    ending.end.feedback_results = report.results;
}

/// The log of an attempt that was cut off stays beside that of the probe which takes its place.
fn put_aside(context: &Context, log: &Path, started: &Started) {
    let waits = started.run.waits(started.iteration);
    let Some(number) = waits
        .map(|waits| waits.cut_off)
        .filter(|number| *number > 0)
    else {
        return;
    };
    let aside = log.with_file_name(format!("output-cut-off-{number}.log"));
    if let Err(error) = present(context.store().root().rename(log, &aside)) {
        tracing::warn!(%error, log = %log.display(), "the log of the attempt that was cut off is lost");
    }
}

/// Deals with what the attempt left behind outside its session, and says so of each process once.
fn settle_strays(context: &Context, mark: &Mark, known: &mut Vec<Leftover>) {
    let policy = context.settings().run.leftovers;
    let is_to_end = |folder: &Path| match policy {
        Leftovers::Auto => folder.starts_with(context.worktree()),
        Leftovers::End => true,
        Leftovers::Keep => false,
    };
    let strays = mark.settle(is_to_end, context.settings().runner.grace);
    let strays = strays.unwrap_or_else(|error| {
        tracing::warn!(%error, "what the attempt left behind is not known");
        Vec::new()
    });
    for mut stray in strays {
        if known.iter().any(|one| one.pid == stray.pid) {
            continue;
        }
        stray.command = redact(&stray.command)
            .chars()
            .take(LONGEST_COMMAND)
            .collect();
        let (pid, command) = (stray.pid, &stray.command);
        let end = if stray.ended { "ended" } else { "left running" };
        tracing::warn!(
            "process {pid} ({command}) left the attempt's session and outlived it: it was {end}"
        );
        known.push(stray);
    }
}

/// What of git's locks the attempt left would be in the way of everything that comes after it.
fn settle_locks(context: &Context, before: &[ForeignLock]) {
    if let Err(error) = git_state::settle(context, before) {
        tracing::warn!(%error, "a lock of git's that the attempt left is still there");
    }
}

/// Takes over what an agent's records say beside its errors.
fn take_record(ending: &mut Ending, record: &AgentRecord, before: &Run) {
    ending.end.agent_session.clone_from(&record.session_id);
    ending.end.limit_left = record.limit_left;
    ending.end.answered = record.structured.then_some(record.answered);
    note_usage(&mut ending.end, record, usage_of(record, before));
    // What it says it did, where it says so and nobody said it for it.
    let said = record
        .final_text
        .as_deref()
        .filter(|_| record.is_success)
        .and_then(headline);
    if before.spec.approach.is_none() {
        ending.end.approach.clone_from(&said);
    }
    ending.headline = said;
}

/// What an attempt runs: the run's command, or the fallback in its place (S9).
struct Command {
    argv: Vec<String>,
    /// `--agent` is about the run's own command.
    agent: Option<String>,
    launch: Option<Launch>,
    dir: FolderId,
    is_fallback: bool,
}

impl Command {
    /// The agent, or a check of the kind that was given or that its programs are.
    fn stage(&self, run: &Run) -> CheckKind {
        let named = self.agent.as_deref().and_then(AgentKind::from_name);
        let is_agent = self.launch.is_some() || named.is_some();
        let given = run.spec.kind.filter(|_| !self.is_fallback);
        given
            .or(is_agent.then_some(CheckKind::Agent))
            .unwrap_or_else(|| stage_of_command(&self.argv))
    }

    /// Whose trouble with a provider its failure would be. `is_known`: its name or its records are those of an agent.
    fn provider(&self, run: &Run, is_known: bool) -> Provider {
        let named = self.agent.as_deref().filter(|name| *name != AUTO);
        let is_agent = self.launch.is_some() || named.is_some() || run.spec.kind.is_some();
        match self.stage(run) {
            CheckKind::Agent if named == Some("none") || self.is_fallback => Provider::Nobody,
            CheckKind::Agent if is_known || is_agent => Provider::Agent,
            CheckKind::Agent => Provider::Loop,
            _ => Provider::Nobody,
        }
    }

    /// Whether it is driven by the Agent Client Protocol.
    fn is_acp(&self) -> bool {
        self.launch.as_ref().is_some_and(|launch| launch.acp)
    }

    /// What is said to it by that.
    fn terms(&self, before: &Run, prompt: Option<&str>) -> Option<Terms> {
        let launch = self.launch.as_ref().filter(|launch| launch.acp)?;
        Some(Terms {
            prompt: prompt.unwrap_or_default().to_owned(),
            session: before.session_to_resume().map(str::to_owned),
            yolo: launch.yolo,
        })
    }

    /// Whether what is shown of its records is text for people.
    fn is_read(&self, run: &Run, digest: Digest) -> bool {
        let is_by_profile = digest == Digest::Profile && self.launch.is_some();
        (digest == Digest::All || is_by_profile) && !run.spec.pty
    }

    fn of(started: &Started) -> Self {
        let spec = &started.run.spec;
        let iteration = started.run.iterations.get(started.iteration);
        let begun = iteration.and_then(|iteration| iteration.attempts.last());
        let is_fallback = begun.is_some_and(|attempt| attempt.fallback);
        let own = Some(spec).filter(|_| !is_fallback);
        Self {
            argv: own.map_or(&spec.fallback, |own| &own.command).clone(),
            agent: own.and_then(|own| own.agent.clone()),
            launch: own.and_then(|own| own.launch.clone()),
            dir: own.map_or(&spec.fallback_dir, |own| &own.dir).clone(),
            is_fallback,
        }
    }

    fn line(&self) -> String {
        self.argv.join(" ")
    }
}

fn supervised(
    context: &Context,
    before: &Run,
    started: &Started,
    folder: &Path,
    prompt: Option<&str>,
    options: &DriveOptions,
) -> Result<Supervised> {
    let command = Command::of(started);
    let mut supervised = Supervised::new(
        Program::Argv(Vec::new()),
        start_folder(context.worktree(), &command.dir)?,
    );
    supervised.env_set = identity(before, started.iteration, Some(started.attempt));
    let mut set = |name: &str, value: &str| supervised.env_set.push((name.into(), value.into()));
    let mut remove = Vec::new();
    let file = folder.join("prompt.md");
    let file = prompt.map(|_| file.to_string_lossy().into_owned());
    match (prompt, &file) {
        (Some(text), Some(path)) => {
            context.write_state_file(Path::new(path), text.as_bytes())?;
            set("RECOVER_PROMPT_FILE", path);
        }
        _ => remove.push("RECOVER_PROMPT_FILE"),
    }
    let entries = lane::context_for_runner(&context.load()?.state, &before.key);
    match failure_context(before, &started.subtask, &entries) {
        Some(json) => {
            let path = folder.join("failure-context.json");
            context.write_state_file(&path, redact_json(json).to_string().as_bytes())?;
            set("RECOVER_FAILURE_CONTEXT", &path.to_string_lossy());
        }
        None => remove.push("RECOVER_FAILURE_CONTEXT"),
    }
    let session = before.session_to_resume().filter(|_| !command.is_fallback);
    match session {
        Some(session) => set("RECOVER_AGENT_SESSION", session),
        None => remove.push("RECOVER_AGENT_SESSION"),
    }
    supervised.env_remove = remove.into_iter().map(Into::into).collect();
    supervised.stdin = match &command.launch {
        Some(launch) if launch.acp => None,
        Some(launch) if launch.prompt == PromptMode::Stdin => prompt.map(Into::into),
        // It takes its prompt elsewhere, and would take what is on its input for more of it.
        Some(_) => prompt.map(|_| Vec::new()),
        None => prompt
            .filter(|_| takes_prompt(before, &command))
            .map(Into::into),
    };
    let argv = match &command.launch {
        Some(launch) => {
            let budget = guard::budget_args(context, before, &launch.budget_args);
            let argv = [command.argv, budget].concat();
            launch.argv(&argv, session, prompt, file.as_deref())
        }
        None => command.argv,
    };
    supervised.program = Program::Argv(argv.into_iter().map(Into::into).collect());
    supervised.deadline = before.terms().timeout_ms.map(Duration::from_millis);
    supervised.grace = context.settings().runner.grace;
    supervised.show = options.show;
    if before.spec.pty {
        let program = own_program().context("cannot find the program of recover")?;
        supervised.pty = Some(program);
    }
    supervised.log_limit = context.settings().run.log_limit;
    Ok(supervised)
}

/// Whether a command gets its prompt on stdin: an agent, and one that a prompt was given for. Any other would take what is
/// said of an earlier attempt for its input.
fn takes_prompt(run: &Run, command: &Command) -> bool {
    run.terms().prompt.is_some()
        || run.spec.reads_prompt
        || run.next_instructions.is_some()
        || agent::detect(Some(&command.line()), command.agent.as_deref(), b"").is_some()
}

/// What the child can read about earlier attempts; absent at a first one.
fn failure_context(before: &Run, subtask: &str, entries: &[String]) -> Option<serde_json::Value> {
    let earlier: Vec<_> = before
        .iterations
        .attempts_on(subtask)
        .filter(|(_, attempt)| attempt.failure.is_some())
        .map(|(iteration, attempt)| {
            serde_json::json!({
                "iteration": iteration.number,
                "attempt": attempt.number,
                "approach": attempt.approach,
                "started_at": attempt.started_at,
                "failure": attempt.failure,
                "feedback_results": attempt.feedback_results,
                "log_path": attempt.log_path,
            })
        })
        .collect();
    if earlier.is_empty() && before.failure.is_none() {
        return None;
    }
    Some(serde_json::json!({
        "schema_version": 1,
        "run_id": before.key.run_id,
        "failure": before.failure,
        "decision": before.decision,
        "attempts": earlier,
        "failure_context": entries,
    }))
}

/// No look comes sooner after the one before.
const SHORTEST: Duration = Duration::from_millis(50);

/// Does `work`, with a checkpoint of the run whenever one is due.
fn with_checkpoints<T>(context: &Context, key: &RunKey, work: impl FnOnce() -> T) -> T {
    let settings = &context.settings().checkpoint;
    let Some(interval) = settings.interval.filter(|_| settings.enabled) else {
        return work();
    };
    let own = match context.for_run(key) {
        Ok(own) => own,
        Err(error) => {
            tracing::warn!(%error, "no checkpoints are taken while the attempt is under way");
            return work();
        }
    };
    thread::scope(|scope| {
        let (running, ended) = channel::<()>();
        scope.spawn(move || keep_checkpoints(&own, key, interval.max(SHORTEST), &ended));
        let result = work();
        drop(running);
        result
    })
}

/// Until the other end is gone.
fn keep_checkpoints(context: &Context, key: &RunKey, interval: Duration, ended: &Receiver<()>) {
    let mut wait = interval;
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = take_if_due(context, key, interval).unwrap_or_else(|error| {
            tracing::warn!(%error, "no automatic checkpoint was taken; the attempt continues");
            interval
        });
    }
}

/// Takes one if one is due, and says when to look again.
fn take_if_due(context: &Context, key: &RunKey, interval: Duration) -> Result<Duration> {
    let state = context.load()?.state;
    if let Some(why) = due(context, &state, key, 0) {
        create_automatic(context, why)?;
        return Ok(interval);
    }
    // Another user took one meanwhile.
    let latest = state.latest(key);
    let age = latest.map(|latest| context.clock.now().since(latest.created_at));
    Ok(interval
        .saturating_sub(age.unwrap_or_default())
        .max(SHORTEST))
}
