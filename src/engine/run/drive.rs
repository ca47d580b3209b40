//! The loop: attempts until nothing is left to do, nothing is allowed, or a user says stop.

mod wait;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::awake::{Awake, Beating};
use super::execute::{begin_of, execute};
use super::notify::{Happened, notify, notify_of_error};
use super::otel;
use super::tasks::{self, ChangedBy};
use super::{
    DriveOptions, Driven, Outcome, between_attempts, commands, confine, execute, feedback, gate,
    guard, retry,
};
use crate::engine::attempt;
use crate::engine::attempt::run_summary::{self, night, outlook};
use crate::engine::base::progress::ProgressEvent;
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result, WaitLimit};
use crate::engine::record::attempt_record::{Ended, Ending, Started};
use crate::engine::record::events::resumed;
use crate::engine::record::liveness::Driving;
use crate::engine::record::run_settings::{max_attempts, settings_of};
use crate::engine::record::{at_work, git_state, run_settings, vault};
use crate::engine::remote::{Session, release};
use crate::engine::rollback::{refuse_mixed, restore_checkpoint, rollback_target};
use crate::engine::run::fix_session;
use crate::engine::runs::prune;
use crate::model::run::OnFailure;
use crate::model::{
    Action, Attempt, Cause, Condition, Decision, Failure, FolderId, Hint, IterationStatus, Payload,
    Run, RunKey, RunStatus, Standing, State, Strategy, Timestamp,
};
use crate::policy::changes::of_tampering;
use crate::policy::classify;
use crate::policy::restore::Edits;
use crate::policy::retry::{Fallback, RetryStatus, fallback_of, witnessed_status};
use crate::policy::settings::NotifyEvent;
use crate::process::{Program, Show, Supervised};
use crate::store::views::write_views;

/// Why the loop ends.
enum Halt {
    At(Outcome),
    Failed(Error),
}

impl<E> From<E> for Halt
where
    Error: From<E>,
{
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// A part of the loop: what is not an error goes on.
type Step<T = ()> = std::result::Result<T, Halt>;

/// Drives a run from its present state.
pub(crate) fn drive(
    context: &Context,
    driving: &Driving,
    options: &DriveOptions,
) -> Result<Driven> {
    let key = &driving.key;
    let wait = (!options.no_wait).then(|| {
        options
            .longest_wait
            .map_or(WaitLimit::Forever, WaitLimit::AtMost)
    });
    vault::begin(context);
    let own = at_work::begin(context, key);
    let _beating = Beating::begin(context, key);
    let session = Session::begin(context, key, wait);
    let driven = session.and_then(|session| drive_held(context, key, session.as_ref(), options));
    let is_hurried = match &driven {
        Ok(driven) => driven.interrupted.is_some(),
        Err(error) => matches!(error.kind, ErrorKind::Interrupted(_)),
    };
    // Whatever became of it: nobody has to wait for a claim that is unused.
    release(context, key, is_hurried);
    vault::follow_whole(context);
    let code = match &driven {
        Ok(driven) => driven.interrupted,
        Err(error) => Some(i32::from(error.kind.code().1)),
    };
    at_work::end(context, own, code);
    driven
}

/// Drives it while its claim, where it lies on a remote, is this process's.
fn drive_held(
    context: &Context,
    key: &RunKey,
    session: Option<&Session<'_>>,
    options: &DriveOptions,
) -> Result<Driven> {
    let mut driver = Driver {
        context,
        key,
        options,
        interrupted: None,
        child_exit_code: None,
        missing: BTreeSet::new(),
        unstartable: None,
        stopped: None,
        has_attempted: false,
        parked_since: None,
        waited: Duration::ZERO,
        session,
        witnessed: Vec::new(),
        awake: None,
    };
    driver.stay_awake();
    let ended = match driver.run() {
        // What ended a wait may have been that another process has the run.
        Err(Halt::At(outcome)) => session.map_or(Ok(()), Session::check).map(|()| outcome),
        Err(Halt::Failed(error)) => Err(error),
    };
    let ended = ended.or_else(|error| driver.pause(error));
    let outcome = ended.inspect_err(|error| notify_of_error(context, key, error))?;
    driver.finish(outcome)
}

struct Driver<'a> {
    context: &'a Context,
    key: &'a RunKey,
    options: &'a DriveOptions,
    interrupted: Option<i32>,
    child_exit_code: Option<i32>,
    /// The checks that could not be started before the latest attempt.
    missing: BTreeSet<String>,
    /// Why it stops where one of them still cannot be.
    unstartable: Option<String>,
    /// Why it stops where what is done between attempts failed.
    stopped: Option<Error>,
    /// Whether it has made an attempt.
    has_attempted: bool,
    /// When the wait began that a user was notified of.
    parked_since: Option<Timestamp>,
    /// How long it has waited in all.
    waited: Duration,
    /// The claim of a run that lies on a remote.
    session: Option<&'a Session<'a>>,
    /// Failures that were charged since the subtask's last success.
    witnessed: Vec<(String, Cause)>,
    /// Holds off the machine's sleep.
    awake: Option<Awake>,
}

impl Driver<'_> {
    fn run(&mut self) -> Step<Infallible> {
        confine::require(self.context, self.load()?.spec.confine)?;
        guard::require_space(self.context)?;
        if let Some(code) =
            feedback::verify_baseline(self.context, self.key, self.options, self.session)?
        {
            return Err(self.interrupted_by(code));
        }
        self.missing = self.missing_checks()?;
        loop {
            self.go_on()?;
        }
    }

    /// Makes one attempt, with what comes before and after it.
    fn go_on(&mut self) -> Step {
        let run = tasks::before_attempt(self.context, self.load()?, self.has_attempted)?;
        // Nothing is complete, and nothing is rolled back, of which there is no checkpoint.
        let last = run.attempts().next_back();
        if last.is_some_and(|(_, attempt)| attempt.checkpoint_id.is_none()) {
            self.capture()?;
        }
        self.stop_if_done(&run)?;
        if let Some(why) = tasks::is_reserved(self.context, &run) {
            self.set_status(RunStatus::Paused, why)?;
            return Err(Halt::At(Outcome::Paused));
        }
        if let Some(why) = between_attempts::roll_back(self.context, &run)? {
            self.set_status(RunStatus::Escalated, why)?;
            return Err(Halt::At(Outcome::Escalated));
        }
        self.wait(&run)?;
        let pass = gate::pass(self.context, &run, |awaited| self.wait_for(awaited))?;
        self.capture()?;
        let Some((before, started)) = self.claim()? else {
            return Ok(());
        };
        if let Some(session) = self.session
            && let Err(error) = session.before_attempt(!self.options.no_wait)
        {
            return Err(self.abandon(&started, error).into());
        }
        git_state::note_settings(self.context, self.key, started.iteration);
        let executed = execute(
            self.context,
            self.key,
            &before,
            &started,
            (self.options, self.session, &pass),
        );
        self.context.refuse_replaced(self.key)?;
        let ended_by = self.session.and_then(Session::ends_attempt);
        let is_stopped = ended_by.is_some();
        let mut executed = match executed {
            Ok(executed) => executed,
            Err(error) => return Err(self.abandon(&started, error).into()),
        };
        if let Some(message) = ended_by {
            executed.ending.end.failure = Some(Failure {
                message,
                ..classify::cancelled()
            });
            executed.interrupted = None;
        }
        if let Some(failure) = &mut executed.ending.end.failure
            && let Some(locked) = git_state::in_the_way(self.context)
        {
            failure.message.insert_str(0, &format!("{locked}: "));
        }
        self.has_attempted = true;
        self.interrupted = executed.interrupted;
        self.child_exit_code = executed.child_exit_code;
        let ended = self.end(&started, executed.ending)?;
        pass.end(self.context, &ended);
        tasks::follow(self.context, ended.run.clone(), ChangedBy::Attempt)?;
        if self.interrupted.is_none() && !is_stopped {
            self.unstartable = self.still_missing(&ended);
        }
        self.tell(&ended, &started);
        if let Some(session) = self.session {
            if is_stopped {
                session.reach(!self.options.no_wait)?;
                return Ok(self.resume_after(&ended)?);
            }
            session.after_attempt()?;
        }
        self.follow(&ended, &started)?;
        if self.context.progress.is_to_stop() {
            let run = self.load()?;
            self.stop_if_done(&run)?;
            return Err(Halt::At(stopped(&run)));
        }
        Ok(())
    }

    /// It ends because of a signal.
    fn interrupted_by(&mut self, code: i32) -> Halt {
        self.interrupted = Some(code);
        Halt::At(Outcome::Cancelled)
    }

    /// Takes a checkpoint of what others changed since the last attempt; where that fails, the run stops.
    fn capture(&mut self) -> Step {
        between_attempts::capture_edits(self.context, self.key).map_err(|error| match error.kind {
            ErrorKind::Interrupted(code) => self.interrupted_by(code),
            _ => error.into(),
        })
    }

    /// What is done after an attempt failed or was refused: the run stops here, and says why. Not where a user
    /// interrupted it or another process has it now, where its command cannot be started, or where the ledger cannot take it: then that is
    /// how it ended.
    fn pause(&mut self, mut error: Error) -> Result<Outcome> {
        let is_no_failure = matches!(
            error.kind,
            ErrorKind::Interrupted(_)
                | ErrorKind::Claimed
                | ErrorKind::GaveUpWaiting
                | ErrorKind::Usage
        );
        let is_captured = error.kind != ErrorKind::NotCaptured;
        if is_no_failure
            || is_captured && !self.has_attempted
            || self.context.refuse_replaced(self.key).is_err()
            // Where the record of the run is lost, nothing is written that would look like a new one.
            || self.load().is_err()
        {
            return Err(error);
        }
        error.message = error.explained();
        let mut reason = error.message.clone();
        // Whatever is to be done about a missing checkpoint, taking the run up again comes after it.
        if let Some(hint) = error.hint.clone().filter(|_| is_captured) {
            reason += &format!("; {}", self.context.line(hint));
        }
        if let Err(unrecorded) = self.set_status(RunStatus::Paused, reason) {
            tracing::error!(error = %unrecorded, "the end of the run was not recorded");
            return Err(error);
        }
        if is_captured {
            error.kind = ErrorKind::NeedsPerson;
        }
        self.stopped = Some(error);
        Ok(Outcome::Paused)
    }

    /// Where the run stands, counting at least the failures that this supervisor saw.
    fn status(&self, state: &State, run: &Run) -> RetryStatus {
        let settings = settings_of(self.context, run);
        let seen = run_summary::decision_seen(self.context, run);
        let moment = (self.context.clock.now(), seen);
        witnessed_status(state, run, &settings.retry, moment, |subtask| {
            self.witnessed_at(subtask)
        })
    }

    /// Records the end of an attempt. The failures that are charged count for what this supervisor does until the subtask
    /// succeeds, whatever becomes of the ledger meanwhile.
    fn end(&mut self, started: &Started, mut ending: Ending) -> Result<Ended> {
        let subtask = &started.subtask;
        ending.witnessed = self.witnessed_at(subtask);
        let ended = attempt::end(self.context, self.key, started, ending)?;
        match &ended.end.failure {
            None => self.witnessed.retain(|(of, _)| of != subtask),
            Some(failure) if ended.end.charged => {
                self.witnessed.push((subtask.clone(), failure.cause));
            }
            Some(_) => {}
        }
        Ok(ended)
    }

    /// The causes of the failures of a subtask that it saw.
    fn witnessed_at(&self, subtask: &str) -> Vec<Cause> {
        let of = self.witnessed.iter().filter(|(of, _)| of == subtask);
        of.map(|(_, cause)| *cause).collect()
    }

    fn load(&self) -> Result<Run> {
        run_of(&self.context.load()?.state, self.key)
    }

    /// Stops where no iteration is left, or the goal is reached.
    fn stop_if_done(&mut self, run: &Run) -> Step {
        let ended = if run.given_up().next().is_some() {
            Outcome::Escalated
        } else {
            Outcome::Complete
        };
        let until = run.spec.until.as_ref();
        if run.failure.is_none()
            && run.current_iteration > 1
            && let Some(until) = until
            && self.passes(run, until, &run.spec.until_dir)?
        {
            return Err(Halt::At(ended));
        }
        if run.has_iterations_left() {
            return Ok(());
        }
        let is_missed = until.is_some() && ended == Outcome::Complete;
        Err(Halt::At(if is_missed { Outcome::Failed } else { ended }))
    }

    fn passes(&mut self, run: &Run, command: &str, dir: &FolderId) -> Step<bool> {
        let shell = run_settings::shell_of(self.context, &run.spec);
        let program = Program::Argv(vec![shell.into(), "-c".into(), command.into()]);
        let folder = run_settings::start_folder(self.context.worktree(), dir)?;
        let mut supervised = Supervised::new(program, folder);
        supervised.show = Show::Nothing;
        let exit = supervised.run(&self.context.interrupts, |_| Ok(()));
        let exit = exit.with_context(|| format!("cannot run --until '{command}'"))?;
        match exit.cancelled {
            Some(signal) => Err(self.interrupted_by(signal.exit_code())),
            None => Ok(exit.exit_code == Some(0)),
        }
    }

    /// Claims the next attempt under the ledger's lock: of two that want the last one, exactly one gets it. `None` when
    /// it is not allowed any more.
    fn claim(&self) -> Result<Option<(Run, Started)>> {
        self.context.refuse_replaced(self.key)?;
        let mut ledger = self.context.store().lock()?;
        let before = run_of(ledger.state(), self.key)?;
        let status = self.status(ledger.state(), &before);
        match status.standing {
            Standing::Allowed => {}
            // The user who watches did not want to wait for that.
            Standing::Wait(until) if self.context.progress.skips_wait(until) => {}
            _ => return Ok(None),
        }
        if before.granted == 0 {
            retry::leave_to_others(self.context, ledger.state(), &before, &status)?;
        }
        let begin = begin_of(self.context, &before);
        let started = attempt::begin(self.context, &mut ledger, self.key, &begin)?;
        write_views(ledger, &[self.key])?;
        let settings = settings_of(self.context, &before);
        let default = max_attempts(&settings.retry);
        // A probe is of no cause: what was waited for has its own limit.
        let probes = before.standing_attempt().is_some_and(Attempt::is_waiting);
        let limit = status.max_attempts.filter(|_| !probes).unwrap_or(default);
        self.context.emit(ProgressEvent::Attempt {
            run: &started.run,
            iteration: started.iteration,
            attempt: started.attempt,
            // One that was granted is beyond it.
            limit: (started.attempt <= limit).then_some(limit),
            deadline: before
                .terms()
                .timeout_ms
                .map(std::time::Duration::from_millis),
        });
        Ok(Some((before, started)))
    }

    /// The run goes on after an attempt that was stopped for its claim, as if it had been resumed.
    fn resume_after(&self, ended: &Ended) -> Result<()> {
        let resumed = resumed(Strategy::RetrySame, ended.end.iteration, None);
        self.context.record(self.key, vec![resumed])
    }

    /// The attempt could not even be run: it is recorded as cancelled, so that nothing is charged for it.
    fn abandon(&self, started: &Started, error: Error) -> Error {
        let ending = Ending {
            witnessed: self.witnessed_at(&started.subtask),
            ..execute::never_run(error.explained())
        };
        match attempt::end(self.context, self.key, started, ending) {
            Ok(_) => error,
            // What is wrong with the run itself is why it ends.
            Err(damage) if damage.kind == ErrorKind::Corrupt => {
                tracing::error!(%error, "the attempt was given up");
                damage
            }
            Err(second) => {
                tracing::error!(error = %second, "the attempt's end was not recorded");
                error
            }
        }
    }

    fn tell(&self, ended: &Ended, started: &Started) {
        let decision = ended.end.decision.as_ref();
        self.context.emit(ProgressEvent::Ended {
            iteration: started.iteration,
            attempt: started.attempt,
            failure: ended.end.failure.as_ref(),
            // Where the run stops here, nothing comes of what was decided.
            decision: decision.filter(|_| self.unstartable.is_none()),
            used: ended.end.usage(),
            in_all: ended.run.usage(),
        });
        if !ended.end.git_changes.is_empty() {
            tracing::warn!(
                "the attempt changed git's settings: {}",
                ended.end.git_changes.join(", ")
            );
        }
        // Weakened tests may make an attempt pass: whoever watches is notified at once.
        if ended.end.conditions.contains(&Condition::Tampered) {
            for note in of_tampering(&ended.end.notes) {
                tracing::warn!("the attempt may have weakened the tests: {note}");
            }
        }
    }

    /// The checks that cannot be started now, as far as that is known; those that were not reported yet are reported.
    fn missing_checks(&self) -> Result<BTreeSet<String>> {
        let run = self.load()?;
        let looked = commands::missing_checks(self.context, &run);
        let is_told = run.baseline.is_some() || run.attempts().next().is_some();
        for (name, why) in looked.iter().filter(|_| !is_told) {
            self.context.warn(commands::told(name, why));
        }
        Ok(commands::last_missing(&run)
            .cloned()
            .chain(looked.into_iter().map(|(name, _)| name))
            .collect())
    }

    /// A check that could not be started before the attempt and still cannot: another attempt would be paid for nothing.
    fn still_missing(&mut self, ended: &Ended) -> Option<String> {
        let results = &ended.end.feedback_results;
        self.missing
            .retain(|name| results.get(name).is_none_or(|result| result.missing));
        let mut results = results.iter();
        let (name, result) = results.find(|(name, _)| self.missing.contains(*name))?;
        Some(format!(
            "stopped before another attempt: the check '{name}' still {}",
            result.summary
        ))
    }

    /// What follows an attempt: another one, or the end.
    fn follow(&mut self, ended: &Ended, started: &Started) -> Step {
        let stop = |outcome| Err(Halt::At(outcome));
        between_attempts::take_back(self.context, self.key, ended)?;
        if self.interrupted.is_some() {
            return stop(Outcome::Cancelled);
        }
        if let Some(why) = &self.unstartable {
            self.context.warn(why.clone());
            return stop(Outcome::Failed);
        }
        if let Some(why) = &ended.checkpoint_error {
            let hint = Hint::recover(["resume"]).run(self.key);
            return Err(between_attempts::not_captured(why, hint).into());
        }
        let Some(decision) = &ended.end.decision else {
            return Ok(());
        };
        let failure = ended.end.failure.as_ref();
        if failure.is_some_and(|failure| failure.cause == Cause::Cancelled) {
            return stop(Outcome::Cancelled);
        }
        tracing::info!(actions = ?decision.actions, reason = %decision.reason, "decided");
        if ended.run.spec.on_failure == OnFailure::Stop && !decision.has(Action::Park) {
            return stop(Outcome::Failed);
        }
        // Who stops it here wants to see what the attempt left; taking the run up again does what was decided.
        let stays = decision.leads_to_attempt() && self.context.progress.is_to_stop();
        if decision.has(Action::Rollback) && !stays {
            self.roll_back(&ended.run, started.attempt, decision)?;
        }
        if decision.has(Action::Skip) {
            return Ok(self.skip(started.iteration, &decision.reason)?);
        }
        if decision.has(Action::Escalate) {
            return stop(Outcome::Escalated);
        }
        if decision.has(Action::ManualFix) {
            fix_session::open(self.context, self.key)?;
            return stop(Outcome::Paused);
        }
        if decision.leads_to_attempt() {
            Ok(())
        } else {
            stop(Outcome::Failed)
        }
    }

    fn skip(&self, iteration: u32, reason: &str) -> Result<()> {
        let payload = Payload::IterationChanged {
            iteration,
            status: IterationStatus::Skipped,
            reason: Some(reason.to_owned()),
        };
        self.context.record(self.key, vec![payload])?;
        let happened = Happened {
            iteration: Some(iteration),
            ..Happened::new(NotifyEvent::GaveUp, Some(reason.to_owned()))
        };
        notify(self.context, self.key, happened, None);
        Ok(())
    }

    /// Puts the files of the way back in place: after a fallback what was there before it (S12), else the checkpoint
    /// that the cause asks for. Hand edits made meanwhile stay, and so does HEAD where moving it is not the run's to do.
    ///
    /// # Errors
    /// It was refused, or not everything could be replaced that the run must not go on with.
    fn roll_back(&self, run: &Run, attempt: u32, decision: &Decision) -> Result<()> {
        let state = self.context.load()?.state;
        let failure = run.failure.as_ref();
        let iteration = failure
            .and_then(|failure| failure.iteration)
            .unwrap_or(run.current_iteration);
        let target = match fallback_of(run, iteration, attempt) {
            Fallback::Failed { before, .. } => before.and_then(|id| state.checkpoint(id)),
            Fallback::Ready | Fallback::None => {
                rollback_target(&state, self.key, failure.map(|failure| failure.cause))
            }
        };
        let Some(target) = target else {
            return Ok(());
        };
        if let Err(refused) = self.context.check_safe_mode("a rollback by decision") {
            tracing::warn!(checkpoint = %target.id, "not rolled back: {refused}");
            return Ok(());
        }
        tracing::info!(checkpoint = %target.id, reason = %decision.reason, "rolling back");
        self.context.emit(ProgressEvent::RollingBack {
            checkpoint: &target.id,
        });
        let restored = restore_checkpoint(self.context, self.key, target, Edits::Keep)?;
        refuse_mixed(self.context, run, target, &restored)
    }

    fn ensure_status(&self, status: RunStatus) -> Result<()> {
        if self.load()?.status == status {
            return Ok(());
        }
        self.set_status(status, status.unexplained())
    }

    fn set_status(&self, status: RunStatus, reason: String) -> Result<()> {
        self.context.record_status(self.key, status, reason)
    }

    /// Tells whoever is away that it ended, and why where it is not complete.
    fn notify_of_end(
        &self,
        outcome: Outcome,
        run: &Run,
        decided: Option<&Decision>,
        report: Option<&Path>,
    ) {
        let needs_person =
            outcome == Outcome::Escalated || run.is_being_fixed() || self.stopped.is_some();
        let event = if needs_person {
            NotifyEvent::NeedsPerson
        } else {
            NotifyEvent::Ended
        };
        let stopped = self.stopped.as_ref().map(|error| &error.message);
        let reason = self.unstartable.as_ref().or(stopped);
        let reason = reason.or(decided.map(|decided| &decided.reason)).cloned();
        notify(self.context, self.key, Happened::new(event, reason), report);
    }

    fn finish(&mut self, outcome: Outcome) -> Result<Driven> {
        // Whatever ended it: what was given up is for a person to look at. But where a check cannot be started, the last
        // iteration was not given up, whatever was decided about it.
        let gave_up = self.unstartable.is_none() && self.load()?.given_up().next().is_some();
        let outcome = if gave_up && outcome == Outcome::Failed {
            Outcome::Escalated
        } else {
            outcome
        };
        let status = outcome.status();
        self.ensure_status(status)?;
        if status.is_over() {
            prune::tidy_up_due(self.context);
        }
        let is_bad = matches!(status, RunStatus::Failed | RunStatus::Escalated);
        let report = is_bad
            .then(|| run_summary::write_report(self.context, self.key))
            .flatten();
        let state = self.context.load()?.state;
        let run = run_of(&state, self.key)?;
        let stands = self.status(&state, &run);
        let decision = stands.decision.filter(|_| outcome != Outcome::Complete);
        self.notify_of_end(outcome, &run, decision.as_ref(), report.as_deref());
        if status.is_over() {
            otel::send(self.context, &run);
        }
        let night = night(self.context, &state, &run);
        Ok(Driven {
            outcome,
            outlook: outlook(self.context, &state, &run, night.as_ref()),
            night,
            decision,
            run,
            standing: stands.standing,
            interrupted: self.interrupted,
            unstartable: self.unstartable.clone(),
            stopped: self.stopped.take(),
            child_exit_code: self.child_exit_code,
            report,
        })
    }
}

/// A run that stops and can go on.
fn stopped(run: &Run) -> Outcome {
    if run.parked.is_some() {
        Outcome::Parked
    } else {
        Outcome::Paused
    }
}
