//! What happens after a failure: the decision tree (A2) with budgets, delays, parking and the alternative command (S9, S12).

use std::time::Duration;

use super::budget;
use super::budget::{Account, Counts};
use super::weather;
use super::weather::Provider;
use crate::model::agent_record::Usage;
use crate::model::decision::{Action, Budget, BudgetScope, Decision, Strategy};
use crate::model::failure::{Cause, CauseDetail, Condition, Failure, FailureType, Weather};
use crate::model::id::CheckpointId;
use crate::model::run::{Attempt, OnFailure, Run, Waits};
use crate::model::time::{Timestamp, format_duration};
use crate::policy::settings::{DelayKind, Settings};

/// What the decision depends on beside the failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecisionInput<'a> {
    /// Whose failures count.
    pub account: Account<'a>,
    /// The project's settings, with the run's overrides.
    pub settings: &'a Settings,
    /// What the caller wants to follow a failure.
    pub on_failure: OnFailure,
    /// Whether there is a good checkpoint to go back to.
    pub has_good_checkpoint: bool,
    /// Whether a feedback loop failed rather than the run's own command.
    pub in_feedback_loop: bool,
    /// Whose trouble with a provider it would be.
    pub provider: Provider,
    /// Whether the model gave an answer, where that is known.
    pub answered: Option<bool>,
    /// The earlier session that the agent was to go on in.
    pub resumed: Option<&'a str>,
    /// Whether this is the second fresh session in a row that failed the same way and left the tree as it was.
    pub is_stalled: bool,
    /// What the attempt used up; the ledger does not know it yet.
    pub usage: Usage,
    /// What the fallback has to do with it.
    pub fallback: Fallback<'a>,
    /// The present moment.
    pub now: Timestamp,
    /// In `[0, 1)`: spreads the delays.
    pub random: f64,
}

/// Decides. `failure` is not recorded yet: it counts on top of what the ledger holds.
pub(crate) fn decide(failure: &Failure, input: &DecisionInput<'_>) -> Decision {
    match input.fallback {
        Fallback::Failed {
            exhausted,
            decision,
            before,
        } => after(failure, (exhausted, decision, before), input),
        Fallback::Ready => instead(failure, decide_itself(failure, input), input),
        Fallback::None => decide_itself(failure, input),
    }
}

/// The decision without a fallback.
fn decide_itself(failure: &Failure, input: &DecisionInput<'_>) -> Decision {
    let decider = Decider::new(failure, input);
    let mut decision = decider.decide();
    if let (Some(asked), true) = (failure.retry_after, decision.leads_to_attempt()) {
        // Whatever else was worked out: not before the time that the failure itself names.
        decision.not_before = decision
            .not_before
            .max(Some(asked))
            .filter(|at| *at > input.now);
    }
    decider.within_time(decision)
}

/// Whether a failure uses up an attempt: not when what is waited for is not the agent's doing, when a user stopped it, or when
/// nothing was tried because the agent had lost the session that it was to go on in.
pub(crate) fn is_charged(failure: &Failure, input: &DecisionInput<'_>) -> bool {
    let is_free = input.provider.weather(failure).is_some()
        && !(input.answered == Some(true) && is_its_work(failure, input));
    failure.kind != FailureType::Cancellation
        && !is_session_lost(failure, input.resumed)
        && !is_free
        && !is_first_stall(failure, input)
}

/// Whether it is the work of an agent, rather than its provider, that an answer was cut off: too often, or in a fresh session in
/// the same way as in the one before.
fn is_its_work(failure: &Failure, input: &DecisionInput<'_>) -> bool {
    let waits = waits(failure, input);
    let decided = input.account.run.decision.as_ref();
    let was_tried =
        decided.is_some_and(|before| before.has(Action::Park) && before.has(Action::Continue));
    weather::is_too_often(&waits) || was_tried && weather::is_same_error(failure, &waits)
}

/// What the iteration has waited for until now.
fn waits(failure: &Failure, input: &DecisionInput<'_>) -> Waits {
    let run = input.account.run;
    let waits = run.waits(failure.iteration.unwrap_or(run.current_iteration));
    waits.cloned().unwrap_or_default()
}

/// Whether any other work would fail of it, too.
pub(super) fn is_everybodys(failure: &Failure) -> bool {
    matches!(
        failure.cause,
        Cause::DiskFull | Cause::OutOfMemory | Cause::PermissionDenied | Cause::AuthFailed
    ) || failure.detail == Some(CauseDetail::CostLimit)
}

/// Whether the attempt was ended because it stalled, for the first time in its iteration.
fn is_first_stall(failure: &Failure, input: &DecisionInput<'_>) -> bool {
    let has_stalled = |failure: &Failure| {
        failure.cause == Cause::ToolTimeout && failure.conditions.contains(&Condition::Stalled)
    };
    let run = input.account.run;
    let number = failure.iteration.unwrap_or(run.current_iteration);
    let earlier = run.iterations.get(number).into_iter();
    let mut earlier = earlier.flat_map(|iteration| &iteration.attempts);
    has_stalled(failure) && !earlier.any(|one| one.failure.as_ref().is_some_and(has_stalled))
}

/// Whether the attempt found out no more than that its session is gone. The next one begins a fresh one: it cannot happen
/// twice in a row.
fn is_session_lost(failure: &Failure, resumed: Option<&str>) -> bool {
    resumed.is_some() && failure.detail == Some(CauseDetail::SessionNotFound)
}

/// The budget of the failure itself: its cause's, or what a user asked for.
const OWN: [BudgetScope; 2] = [BudgetScope::Cause, BudgetScope::Global];
/// Budgets that stop whatever failed.
const SHARED: [BudgetScope; 5] = [
    BudgetScope::Task,
    BudgetScope::Session,
    BudgetScope::WallTime,
    BudgetScope::Cost,
    BudgetScope::Tokens,
];

struct Decider<'a> {
    failure: &'a Failure,
    input: &'a DecisionInput<'a>,
    counts: Counts,
    budgets: Vec<Budget>,
}

impl<'a> Decider<'a> {
    fn new(failure: &'a Failure, input: &'a DecisionInput<'a>) -> Self {
        let recorded = input.account.counts(failure.cause, input.now, input.usage);
        let counts = recorded.plus_one();
        let budgets = budget::budgets(&input.settings.retry, Some(failure), counts);
        Self {
            failure,
            input,
            counts,
            budgets,
        }
    }

    fn decide(&self) -> Decision {
        let failure = self.failure;
        if failure.kind == FailureType::Cancellation {
            let reason = "it was interrupted; recover resume continues it";
            return self.uncharged(self.make(Strategy::RetrySame, &[Action::Retry], reason));
        }
        if is_session_lost(failure, self.input.resumed) {
            let reason = "the agent does not know its session any more: a fresh one, and no attempt is charged";
            let fresh = self.make(Strategy::RetryWithContext, &[Action::Retry], reason);
            return self.uncharged(fresh);
        }
        if let Some(weather) = self.input.provider.weather(failure) {
            return self.wait_for(weather);
        }
        if self.input.on_failure == OnFailure::ManualFix {
            let reason = "the run waits for a person's fix";
            return self.make(Strategy::ManualThenContinue, &[Action::ManualFix], reason);
        }
        if let Some(spent) = self
            .spent(&SHARED)
            .filter(|spent| !self.is_given_up_by(spent))
        {
            let exhausted = self.exhausted(spent);
            return if spent.scope == BudgetScope::Task {
                self.or_leave_task(exhausted)
            } else {
                exhausted
            };
        }
        if is_first_stall(failure, self.input) {
            let reason =
                "it stalled for the first time: tried once more, and no attempt is charged";
            return self.uncharged(self.make(Strategy::RetryWithContext, &[Action::Retry], reason));
        }
        if failure.conditions.contains(&Condition::CircularFix) {
            let reason = if failure.conditions.contains(&Condition::Stalled) {
                "the agent repeats itself; given up: a person has to review it"
            } else {
                "the attempts go in a circle; given up: a person has to review it"
            };
            return self.give_up(reason, self.spent(&OWN));
        }
        self.or_leave_task(self.by_cause())
    }

    /// The decision, unless it ends a task of a list: that one is given up, and the others go on, where the failure is not one
    /// that they would meet, too.
    fn or_leave_task(&self, decision: Decision) -> Decision {
        let is_of_list = self.input.account.run.spec.tasks.is_some();
        let is_everybodys = is_everybodys(self.failure);
        if !is_of_list || is_everybodys || decision.leads_to_attempt() || decision.has(Action::Skip)
        {
            return decision;
        }
        let reason = format!("{}; given up: the other tasks go on", decision.reason);
        Decision {
            stopped_by: decision.stopped_by,
            ..self.give_up(&reason, None)
        }
    }

    /// Whether a spent budget leaves no more than the iteration behind: its checks have failed as often as they may, and
    /// what comes next has attempts of its own.
    fn is_given_up_by(&self, spent: &Budget) -> bool {
        spent.scope == BudgetScope::Task
            && self.failure.cause == Cause::VerificationFailed
            && self.spent(&OWN).is_some()
    }

    fn by_cause(&self) -> Decision {
        let failure = self.failure;
        match (failure.cause, failure.detail) {
            (Cause::ContextExhausted, _) => self.go_on(
                "the agent's context is full: the work is kept and continues in a fresh session",
            ),
            (_, Some(CauseDetail::MaxTurns)) => self.go_on(
                "the agent used up its turns: the work is kept and continues in a fresh session",
            ),
            (_, Some(CauseDetail::CostLimit)) => {
                self.escalate("the cost limit is reached: a person decides", None)
            }
            (Cause::DiskFull | Cause::OutOfMemory, _) => self.escalate(
                "trying again would fail the same way until the machine is repaired",
                None,
            ),
            (Cause::PermissionDenied | Cause::AuthFailed, _)
                if failure.conditions.contains(&Condition::Confined)
                    && self.spent(&OWN).is_none() =>
            {
                self.retry("it was refused a write (run.confine), and is to do without")
            }
            (Cause::PermissionDenied | Cause::AuthFailed, _) => self.conditional(),
            (Cause::BrokenBuild, _) => self.broken_build(),
            (Cause::VerificationFailed, _) => match self.spent(&OWN) {
                None => self.retry("checks failed and attempts are left"),
                Some(spent) => {
                    let spent_text = self.spent_text(spent);
                    let reason = format!("{spent_text}; given up: a person has to review it");
                    self.give_up(&reason, Some(spent))
                }
            },
            (Cause::Unknown, _) => match self.spent(&OWN) {
                None => self.retry("unknown failure; trying once more"),
                Some(spent) => self.escalate(&self.spent_text(spent), Some(spent.scope)),
            },
            (Cause::Crashed, _) => self.crashed(),
            _ => match self.spent(&OWN) {
                None => self.retry("it may pass when tried again"),
                Some(spent) => self.exhausted(spent),
            },
        }
    }

    /// A broken build is worth one look at another approach, from a state that is known to build.
    fn broken_build(&self) -> Decision {
        let overridden = self.input.settings.retry.override_attempts.is_some();
        let most = self.input.settings.retry.max_rollbacks();
        let may_roll_back = self.input.has_good_checkpoint
            && most > 0
            && self.may_restore()
            && self.input.on_failure != OnFailure::Retry;
        let spent = self.spent(&OWN);
        if overridden {
            return match spent {
                Some(spent) => self.exhausted(spent),
                None if may_roll_back => self.roll_back_and_retry(),
                None => self.retry("the build is broken and attempts are left"),
            };
        }
        if spent.is_none() {
            return self.retry("the build is broken and attempts are left");
        }
        if !self.input.has_good_checkpoint {
            return self.escalate(
                "the build is broken and there is no good checkpoint to go back to",
                None,
            );
        }
        let used = self.input.account.rollbacks();
        if Budget::new(BudgetScope::Rollbacks, used, most).left == 0 {
            let reason = match used {
                0 => "the build is broken, and no rollback is allowed".to_owned(),
                1 => "the build is broken again after a rollback".to_owned(),
                used => format!("the build is broken again after {used} rollbacks"),
            };
            return self.escalate(&reason, Some(BudgetScope::Rollbacks));
        }
        if may_roll_back {
            self.roll_back_and_retry()
        } else {
            self.retry("the build is broken; files are kept")
        }
    }

    fn crashed(&self) -> Decision {
        match self.spent(&OWN) {
            Some(spent) => self.exhausted(spent),
            // A crash in a check says nothing against the work; one of the command may have left half of it.
            None if self.input.in_feedback_loop
                || self.input.on_failure == OnFailure::Retry
                || !self.may_restore() =>
            {
                self.retry("a process died; attempts are left")
            }
            None => {
                let reason =
                    "a process was killed at work: resume restarts from the last checkpoint";
                self.roll_back(reason)
            }
        }
    }

    /// Trying again helps only when a user changed something first.
    fn conditional(&self) -> Decision {
        let what = match self.failure.cause {
            _ if self.failure.conditions.contains(&Condition::Quota) => "credit or credentials",
            Cause::AuthFailed => "credentials",
            _ => "permissions",
        };
        let reason = format!("it can only pass after {what} have changed; then resume");
        let actions = [Action::ManualFix, Action::Escalate];
        Decision {
            stopped_by: self.spent(&OWN).map(|spent| spent.scope),
            ..self.make(Strategy::ManualThenContinue, &actions, &reason)
        }
    }

    /// Whether files may be restored without a person's word.
    fn may_restore(&self) -> bool {
        self.input.settings.rollback.enabled
    }

    fn roll_back_and_retry(&self) -> Decision {
        self.roll_back(
            "the build is broken: back to the last good checkpoint, then a different approach",
        )
    }

    fn roll_back(&self, reason: &str) -> Decision {
        let actions = [Action::Rollback, Action::Retry];
        self.delayed(Strategy::RollbackAndRetry, &actions, reason)
    }

    /// The iteration is skipped, and a person is told.
    fn give_up(&self, reason: &str, spent: Option<&Budget>) -> Decision {
        let actions = [Action::Skip, Action::Escalate];
        Decision {
            stopped_by: spent.map(|spent| spent.scope),
            ..self.make(Strategy::ContinueNext, &actions, reason)
        }
    }

    fn retry(&self, reason: &str) -> Decision {
        if self.input.on_failure == OnFailure::Rollback
            && self.input.has_good_checkpoint
            && self.may_restore()
        {
            return self.roll_back(reason);
        }
        self.delayed(Strategy::RetryWithContext, &[Action::Retry], reason)
    }

    /// In a fresh session, unless that has been tried to no avail.
    fn go_on(&self, reason: &str) -> Decision {
        if let Some(spent) = self.spent(&OWN) {
            return self.exhausted(spent);
        }
        if self.input.is_stalled {
            return self.escalate(
                "two fresh sessions failed the same way and changed nothing: a person decides",
                None,
            );
        }
        self.make(Strategy::RetryWithContext, &[Action::Continue], reason)
    }

    fn escalate(&self, reason: &str, stopped_by: Option<BudgetScope>) -> Decision {
        Decision {
            stopped_by,
            ..self.make(Strategy::ManualThenContinue, &[Action::Escalate], reason)
        }
    }

    fn exhausted(&self, spent: &Budget) -> Decision {
        let reason = self.spent_text(spent);
        Decision {
            stopped_by: Some(spent.scope),
            ..self.make(Strategy::ManualThenContinue, &[Action::None], &reason)
        }
    }

    fn spent_text(&self, spent: &Budget) -> String {
        budget::spent_text(spent, Some(self.failure.cause))
    }

    /// The first of these budgets that is used up.
    fn spent(&self, scopes: &[BudgetScope]) -> Option<&Budget> {
        self.budgets
            .iter()
            .find(|budget| scopes.contains(&budget.scope) && budget.left == 0)
    }

    /// No attempt begins after the run's time is up: that is said now rather than after a wait.
    fn within_time(&self, decision: Decision) -> Decision {
        let Some(longest) = self.input.settings.retry.max_wall_time else {
            return decision;
        };
        let end = budget::begun(self.input.account.run, self.input.now).plus(longest);
        let now = self.input.now;
        let next = decision.not_before.unwrap_or(now).max(now);
        let stays = !decision.leads_to_attempt()
            || self.failure.kind == FailureType::Cancellation
            || next < end;
        let mut budgets = self.budgets.iter();
        let spent = budgets.find(|budget| budget.scope == BudgetScope::WallTime);
        match spent.filter(|_| !stays) {
            Some(spent) => self.exhausted(spent),
            None => decision,
        }
    }

    /// The next attempt finds out whether it is over, and uses up nothing unless it is.
    fn wait_for(&self, weather: Weather) -> Decision {
        let (failure, now) = (self.failure, self.input.now);
        let waits = waits(failure, self.input);
        let settings = self.input.settings;
        let spread = (now, self.input.random);
        let of = (self.input.provider, failure);
        let wait = weather::next_probe(of, &waits, &settings.weather, spread);
        let longest = settings.retry.max_park;
        let left = longest.saturating_sub(waits.waited());
        let (what, of) = (weather.what(), failure.in_short());
        if left.is_zero() || failure.names_reset(now) && wait > left {
            let most = format_duration(longest);
            let reason = match failure.retry_after.filter(|_| failure.names_reset(now)) {
                Some(at) => format!(
                    "the limit resets at {at}, later than max_park ({most}): take the run up then"
                ),
                None => format!(
                    "waited {most} for {what} ({of}; max_park): once that is over, resume goes on"
                ),
            };
            // There is nothing to mend: once it is over, the very same will do.
            return self.uncharged(Decision {
                strategy: Some(Strategy::RetrySame),
                ..self.escalate(&reason, Some(BudgetScope::Waiting))
            });
        }
        let not_before = self.after(Some(wait.min(left)));
        if is_charged(failure, self.input) {
            if let Some(spent) = self.spent(&SHARED).or_else(|| self.spent(&OWN)) {
                return self.exhausted(spent);
            }
            let reason =
                format!("cut off again in the middle of its work ({of}): it counts as an attempt");
            return Decision {
                not_before,
                ..self.make(Strategy::RetrySame, &[Action::Retry], &reason)
            };
        }
        let another =
            self.input.resumed.is_some() && weather::tries_another_session(failure, &waits);
        let (actions, session): (&[Action], _) = if another {
            (
                &[Action::Park, Action::Continue],
                ", then trying a fresh session",
            )
        } else {
            (&[Action::Park], "")
        };
        let reason = format!("waiting for {what} ({of}){session}; no attempt is charged");
        self.uncharged(Decision {
            not_before,
            ..self.make(Strategy::RetrySame, actions, &reason)
        })
    }

    /// A failure that is not charged: the counts are those before it.
    fn uncharged(&self, decision: Decision) -> Decision {
        let before = Counts {
            cause: self.counts.cause - 1,
            subtask: self.counts.subtask - 1,
            task: self.counts.task - 1,
            session: self.counts.session - 1,
            ..self.counts
        };
        let budgets = budget::budgets(&self.input.settings.retry, Some(self.failure), before);
        Decision {
            attempts_used: budget::used(&budgets),
            attempts_left: budget::left(&budgets),
            ..decision
        }
    }

    fn delay(&self) -> Option<Duration> {
        if self.failure.detail == Some(CauseDetail::SupervisorLost) {
            // Nothing has run since, and nobody knows since when.
            return None;
        }
        let settings = self.input.settings;
        let (cause, detail) = (self.failure.cause, self.failure.detail);
        let mut delay = settings.retry.delay_for(cause, detail);
        let is_first = cause == Cause::NetworkError && self.counts.cause == 1;
        if is_first && delay.kind == DelayKind::Exponential {
            // The first retry after a network error is delayed, later ones are spread (requirements, contradictions).
            delay.kind = DelayKind::Delayed;
        }
        let cooldown = settings.cooldown.duration;
        budget::delay(&delay, self.counts.cause, cooldown, self.input.random)
    }

    fn make(&self, strategy: Strategy, actions: &[Action], reason: &str) -> Decision {
        Decision {
            actions: actions.to_vec(),
            strategy: Some(strategy),
            not_before: None,
            attempts_used: budget::used(&self.budgets),
            attempts_left: budget::left(&self.budgets),
            stopped_by: None,
            reason: reason.to_owned(),
            decided_at: self.input.now,
        }
    }

    /// The same after the cause's delay.
    fn delayed(&self, strategy: Strategy, actions: &[Action], reason: &str) -> Decision {
        Decision {
            not_before: self.after(self.delay()),
            ..self.make(strategy, actions, reason)
        }
    }

    fn after(&self, wait: Option<Duration>) -> Option<Timestamp> {
        wait.filter(|wait| !wait.is_zero())
            .map(|wait| self.input.now.plus(wait))
    }
}

/// What the fallback has to do with a failure.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Fallback<'a> {
    /// There is none, or the iteration has used it.
    #[default]
    None,
    /// It can be run.
    Ready,
    /// It is what failed.
    Failed {
        /// The failure after which nothing else was left.
        exhausted: &'a Failure,
        /// What was decided about that one: to run the fallback.
        decision: &'a Decision,
        /// The checkpoint of what was there before the fallback, if it was taken.
        before: Option<&'a CheckpointId>,
    },
}

/// What is decided about the failure of attempt `number`, which has not ended in the ledger yet.
pub(crate) fn fallback_of(run: &Run, iteration: u32, number: u32) -> Fallback<'_> {
    let known = run.iterations.get(iteration);
    let attempts = known.map_or(&[][..], |known| known.attempts.as_slice());
    let is_fallback = |attempt: &Attempt| attempt.number == number && attempt.fallback;
    if attempts.iter().any(is_fallback) {
        // One that was interrupted is no failure; what it came after is.
        let is_before = |one: &&Attempt| one.number < number && !one.fallback;
        let before = attempts.iter().rfind(is_before);
        let judged = before.and_then(|attempt| {
            let before = attempt.checkpoint_id.as_ref();
            Some(Fallback::Failed {
                exhausted: attempt.failure.as_ref()?,
                decision: attempt.decision.as_ref()?,
                before,
            })
        });
        return judged.unwrap_or_default();
    }
    let is_used = |one: &Attempt| one.fallback && one.ended_seq > Some(run.reset_seq);
    if run.spec.fallback.is_empty() || attempts.iter().any(is_used) {
        return Fallback::None;
    }
    Fallback::Ready
}

/// A decision that ends the attempts, with the fallback in its place where an alternative may help.
pub(crate) fn instead(
    failure: &Failure,
    decision: Decision,
    input: &DecisionInput<'_>,
) -> Decision {
    let chosen = matches!(input.on_failure, OnFailure::ManualFix | OnFailure::Stop);
    let mended_first = matches!(failure.cause, Cause::DiskFull | Cause::OutOfMemory);
    let over = [
        BudgetScope::Session,
        BudgetScope::WallTime,
        BudgetScope::Cost,
        BudgetScope::Tokens,
    ];
    let over = decision
        .stopped_by
        .is_some_and(|scope| over.contains(&scope));
    if decision.leads_to_attempt() || chosen || mended_first || over {
        return decision;
    }
    Decision {
        actions: vec![Action::Fallback],
        strategy: Some(Strategy::RetryWithContext),
        not_before: None,
        reason: format!("{}; the fallback is run once instead", decision.reason),
        ..decision
    }
}

/// The fallback failed too: what held before it holds again, and its files go back to what they were before it (S12).
/// One that was interrupted is still to be run.
pub(crate) fn after(
    failure: &Failure,
    (exhausted, decision, before): (&Failure, &Decision, Option<&CheckpointId>),
    input: &DecisionInput<'_>,
) -> Decision {
    if failure.kind == FailureType::Cancellation {
        let reason = "the fallback was interrupted; recover resume continues it".to_owned();
        let decided_at = input.now;
        return Decision {
            reason,
            decided_at,
            ..decision.clone()
        };
    }
    let held = decide_itself(exhausted, input);
    let mut actions = if held.leads_to_attempt() {
        vec![Action::None]
    } else {
        held.actions
    };
    // After a kill nobody is there to put them back; who takes the run up sees what was left.
    let lost = failure.detail == Some(CauseDetail::SupervisorLost);
    let restored = before.is_some() && !lost && input.on_failure != OnFailure::Retry;
    if restored {
        actions.insert(0, Action::Rollback);
        actions.retain(|action| *action != Action::None);
    }
    let what_it_left = " and what it left is rolled back";
    let back = if restored { what_it_left } else { "" };
    Decision {
        actions,
        not_before: None,
        stopped_by: decision.stopped_by.or(held.stopped_by),
        attempts_left: Some(0),
        reason: format!("the fallback failed too{back}: {}", held.reason),
        ..held
    }
}

#[cfg(test)]
mod tests;
