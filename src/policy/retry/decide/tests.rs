//! The decision tree case by case.

use std::collections::BTreeMap;

use Action::{Continue, Escalate, Fallback, ManualFix, Park, Retry, Rollback, Skip};
use proptest::prelude::*;
use proptest::strategy::Strategy as AnyOf;

use super::*;
use crate::model::agent_record::Tokens;
use crate::model::decision::Standing;
use crate::model::event::{AttemptEnd, EVENT_SCHEMA, Event, EventSource, Payload};
use crate::model::failure::{Severity, SuggestedAction};
use crate::model::run::{AttemptOutcome, RunKey, RunSpec};
use crate::model::state::State;
use crate::policy::retry::retry_status;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_790_000_000_000 + seconds * 1000)
}

fn failure(cause: Cause) -> Failure {
    let kind = match cause {
        Cause::Cancelled => FailureType::Cancellation,
        Cause::Crashed | Cause::OutOfMemory => FailureType::Crash,
        Cause::RateLimited | Cause::ContextExhausted | Cause::AuthFailed => FailureType::AgentError,
        Cause::ToolTimeout => FailureType::Timeout,
        Cause::NetworkError | Cause::DiskFull | Cause::PermissionDenied => FailureType::SystemError,
        _ => FailureType::FeedbackFailure,
    };
    Failure {
        kind,
        cause,
        conditions: Vec::new(),
        severity: Severity::Low,
        retryable: false,
        recoverable: true,
        suggested_action: SuggestedAction::RetryIteration,
        message: "it failed".to_owned(),
        details: None,
        location: None,
        failing: Vec::new(),
        retry_after: None,
        signature: "s".to_owned(),
        evidence: Vec::new(),
        rejected: Vec::new(),
        detail: None,
        iteration: Some(1),
        attempt: None,
        at: None,
    }
}

/// A loop that records its failures and does what is decided, as a run would.
struct Simulation {
    state: State,
    events: Vec<Event>,
    settings: Settings,
    good: bool,
    in_feedback_loop: bool,
    attempts: u32,
    on_failure: OnFailure,
    resumed: Option<&'static str>,
    provider: Provider,
    answered: Option<bool>,
    seconds: i64,
    is_stalled: bool,
    cost_micros: Option<u64>,
    tokens: Option<Tokens>,
}

impl Simulation {
    fn new() -> Self {
        let mut simulation = Self {
            state: State::default(),
            events: Vec::new(),
            settings: Settings::default(),
            good: true,
            in_feedback_loop: true,
            attempts: 0,
            on_failure: OnFailure::Policy,
            resumed: None,
            provider: Provider::Loop,
            answered: None,
            seconds: 0,
            is_stalled: false,
            cost_micros: None,
            tokens: None,
        };
        let spec = Box::new(RunSpec {
            command: vec!["agent".to_owned()],
            ..RunSpec::default()
        });
        let (task_id, session, worktree) = (None, "s".to_owned(), "/w".into());
        simulation.record(Payload::RunCreated {
            task_id,
            session,
            worktree,
            spec,
        });
        simulation
    }

    fn key() -> RunKey {
        RunKey::new("r", None, None)
    }

    fn record(&mut self, payload: Payload) {
        let (seq, source) = (self.state.last_seq + 1, EventSource::Recover);
        self.events.push(Event {
            seq,
            at: at(self.seconds),
            schema: EVENT_SCHEMA,
            run: Some(Self::key()),
            source,
            payload,
        });
        self.state.apply(&self.events[self.events.len() - 1]);
    }

    /// What another process makes of the ledger.
    fn folded(&self) -> State {
        let mut state = State::default();
        self.events.iter().for_each(|event| state.apply(event));
        state
    }

    fn decide(&self, failure: &Failure) -> Decision {
        self.with_input(|input| decide(failure, input))
    }

    /// Whether the attempt that ended last was charged.
    fn charged(&self) -> bool {
        let iteration = self.state.runs[0].iterations.get(1);
        iteration.is_some_and(|one| one.attempts.last().is_some_and(|last| last.charged))
    }

    fn with_input<T>(&self, judge: impl FnOnce(&DecisionInput<'_>) -> T) -> T {
        let run = self.state.run(&Self::key()).unwrap();
        let subtask = run.default_subtask(1);
        let account = Account {
            state: &self.state,
            run,
            subtask: &subtask,
            session: "s",
            witnessed: &[],
        };
        judge(&DecisionInput {
            account,
            settings: &self.settings,
            on_failure: self.on_failure,
            has_good_checkpoint: self.good,
            in_feedback_loop: self.in_feedback_loop,
            provider: self.provider,
            answered: self.answered,
            resumed: self.resumed,
            is_stalled: self.is_stalled,
            usage: Usage {
                cost_micros: self.cost_micros,
                tokens: self.tokens,
            },
            fallback: fallback_of(run, 1, self.attempts + 1),
            now: at(self.seconds),
            random: 0.999_999,
        })
    }

    fn fail(&mut self, failure: &Failure) -> Decision {
        self.start();
        let decision = self.decide(failure);
        self.attempts += 1;
        self.end(
            AttemptOutcome::Failed,
            Some((failure.clone(), decision.clone())),
        );
        decision
    }

    fn pass(&mut self) {
        self.start();
        self.attempts += 1;
        self.end(AttemptOutcome::Passed, None);
        self.record(Payload::RunResumed {
            strategy: None,
            iteration: 1,
            supersede: false,
            instructions: None,
            error_context: true,
            granted: false,
            restart: false,
        });
    }

    /// As an engine would number it: what waits has no number of its own.
    fn start(&mut self) {
        let last = self.state.runs[0].iterations.get(1);
        let last = last.and_then(|iteration| iteration.attempts.last());
        self.attempts -= u32::from(last.is_some_and(Attempt::is_waiting));
        let decided = self.state.runs[0].decision.as_ref();
        let fallback = decided.is_some_and(|decision| decision.has(Action::Fallback));
        let subtask = self.state.run(&Self::key()).unwrap().default_subtask(1);
        self.record(Payload::AttemptStarted {
            iteration: 1,
            attempt: self.attempts + 1,
            approach: None,
            subtask,
            session: "s".to_owned(),
            head: None,
            supervisor: None,
            log_path: None,
            fallback,
        });
    }

    fn end(&mut self, outcome: AttemptOutcome, failed: Option<(Failure, Decision)>) {
        let is_charged =
            |(failure, _): &(Failure, _)| self.with_input(|input| is_charged(failure, input));
        let charged = failed.as_ref().is_some_and(is_charged);
        let (failure, decision) = failed.unzip();
        self.record(Payload::AttemptEnded(Box::new(AttemptEnd {
            charged,
            duration_ms: 1,
            exit_code: Some(1),
            failure,
            decision,
            answered: self.answered,
            cost_micros: self.cost_micros,
            tokens: self.tokens,
            ..AttemptEnd::new(1, self.attempts, outcome)
        })));
    }

    fn actions(&mut self, failure: &Failure) -> Vec<Action> {
        self.fail(failure).actions
    }
}

#[test]
fn a_full_context_does_not_go_on_for_ever() {
    let full = failure(Cause::ContextExhausted);
    let mut bounded = Simulation::new();
    bounded.settings.retry.override_attempts = Some(2);
    assert_eq!(bounded.actions(&full), [Continue]);
    let second = bounded.fail(&full);
    assert_eq!(
        (second.actions.as_slice(), second.stopped_by),
        (&[Action::None][..], Some(BudgetScope::Global))
    );
    let mut stalled = Simulation::new();
    assert_eq!(stalled.actions(&full), [Continue]);
    stalled.is_stalled = true;
    assert_eq!(stalled.actions(&full), [Escalate]);
}

#[test]
fn the_decision_tree_a2() {
    let mut verification = Simulation::new();
    let failed = failure(Cause::VerificationFailed);
    assert_eq!(verification.actions(&failed), [Retry]);
    assert_eq!(verification.actions(&failed), [Retry]);
    assert_eq!(verification.actions(&failed), [Skip, Escalate]);

    let mut unknown = Simulation::new();
    assert_eq!(unknown.actions(&failure(Cause::Unknown)), [Retry]);
    assert_eq!(unknown.actions(&failure(Cause::Unknown)), [Escalate]);

    let mut broken = Simulation::new();
    let build = failure(Cause::BrokenBuild);
    assert_eq!(broken.actions(&build), [Rollback, Retry]);
    assert_eq!(broken.actions(&build), [Rollback, Retry]);
    let third = broken.fail(&build);
    assert_eq!(
        (third.actions, third.stopped_by),
        (vec![Escalate], Some(BudgetScope::Rollbacks))
    );

    let mut nowhere = Simulation {
        good: false,
        ..Simulation::new()
    };
    assert_eq!(nowhere.actions(&build), [Escalate]);

    let mut circular = failure(Cause::VerificationFailed);
    circular.conditions.push(Condition::CircularFix);
    assert_eq!(Simulation::new().actions(&circular), [Skip, Escalate]);

    assert_eq!(
        Simulation::new().actions(&failure(Cause::ContextExhausted)),
        [Continue]
    );
}

#[test]
fn limits_and_first_delays_by_cause() {
    // Cause, attempts until nothing is allowed any more, first delay in seconds with the jitter at its most.
    for (cause, limit, delay) in [
        (Cause::NetworkError, 6, Some(1)),
        (Cause::RateLimited, 6, Some(1)),
        (Cause::ToolTimeout, 4, Some(1)),
        (Cause::InvalidInput, 3, None),
        (Cause::ResourceNotFound, 2, None),
        (Cause::Crashed, 3, Some(5)),
        (Cause::VerificationFailed, 3, Some(5)),
        (Cause::Unknown, 2, Some(5)),
        (Cause::ContextExhausted, 6, None),
    ] {
        let mut simulation = Simulation::new();
        let first = simulation.fail(&failure(cause));
        let seconds = first
            .not_before
            .map(|until| until.since(at(0)).as_millis().div_ceil(1000));
        assert_eq!(seconds, delay, "{cause:?}");
        let mut used = 1;
        while simulation.state.runs[0]
            .decision
            .as_ref()
            .unwrap()
            .leads_to_attempt()
        {
            simulation.fail(&failure(cause));
            used += 1;
            assert!(used <= 30, "{cause:?} never ends");
        }
        // The task's cap of 6 ends what its own limit would not.
        assert_eq!(used, limit, "{cause:?}");
    }
}

#[test]
fn what_retrying_cannot_mend_needs_a_person() {
    for cause in [Cause::DiskFull, Cause::OutOfMemory] {
        assert_eq!(
            Simulation::new().actions(&failure(cause)),
            [Escalate],
            "{cause:?}"
        );
    }
    for cause in [Cause::PermissionDenied, Cause::AuthFailed] {
        assert_eq!(
            Simulation::new().actions(&failure(cause)),
            [ManualFix, Escalate],
            "{cause:?}"
        );
    }
}

#[test]
fn a_usage_limit_is_parked_and_costs_nothing() {
    let mut simulation = Simulation::new();
    let mut limit = failure(Cause::RateLimited);
    limit.detail = Some(CauseDetail::UsageLimit);
    limit.retry_after = Some(at(3 * 3600));
    for _ in 0..40 {
        let decision = simulation.fail(&limit);
        assert_eq!(decision.actions, [Park]);
        let wait = decision.not_before.unwrap().since(at(3 * 3600)).as_secs();
        assert!((60..=120).contains(&wait), "{wait}");
    }
    assert_eq!(simulation.state.runs[0].error_count, 0);
    limit.retry_after = Some(at(-60));
    assert!(
        simulation
            .fail(&limit)
            .not_before
            .unwrap()
            .since(at(0))
            .as_secs()
            <= 120
    );
    limit.retry_after = None;
    assert_eq!(
        simulation.fail(&limit).not_before,
        Some(at(60)),
        "the second of the schedule"
    );
    limit.retry_after = Some(at(13 * 3600));
    assert_eq!(simulation.actions(&limit), [Escalate]);
}

fn outage() -> Failure {
    Failure {
        detail: Some(CauseDetail::Overloaded),
        message: "API Error: 529 Overloaded".to_owned(),
        ..failure(Cause::RateLimited)
    }
}

/// The provider is away for good: probes for half a day in all, no attempt, then a person.
#[test]
fn an_outage_is_waited_for_until_max_park() {
    let mut simulation = Simulation {
        provider: Provider::Agent,
        ..Simulation::new()
    };
    simulation.settings.retry.override_attempts = Some(1);
    let mut made = 0;
    let last = loop {
        let decision = simulation.fail(&outage());
        assert!(!simulation.charged(), "{decision:?}");
        made += 1;
        match decision.not_before {
            Some(until) => {
                assert_eq!(decision.actions, [Park]);
                let run = &simulation.state.runs[0];
                let parked = run.parked.as_ref().unwrap();
                assert_eq!((parked.since, parked.probes), (at(0), made - 1));
                // A second holds all of its milliseconds.
                simulation.seconds = 1 + i64::try_from(until.since(at(0)).as_secs()).unwrap();
            }
            None => break decision,
        }
    };
    assert_eq!(
        (last.actions.as_slice(), last.stopped_by),
        (&[Escalate][..], Some(BudgetScope::Waiting))
    );
    assert!(
        (12 * 3600..12 * 3600 + 60).contains(&simulation.seconds),
        "{}",
        simulation.seconds
    );
    let run = &simulation.state.runs[0];
    let attempts = &run.iterations.get(1).unwrap().attempts;
    assert_eq!(
        (attempts.len(), attempts[0].number, run.error_count),
        (1, 1, 0)
    );
    assert!(run.gave_up_waiting());
    // A person's word bounds it anew.
    simulation.record(Payload::RunResumed {
        strategy: None,
        iteration: 1,
        supersede: false,
        instructions: None,
        error_context: false,
        granted: true,
        restart: false,
    });
    assert_eq!(simulation.actions(&outage()), [Park]);
}

/// As nothing is charged, a service that asks for a second again and again must not be asked every second for half a day.
#[test]
fn a_service_that_asks_for_a_second_is_not_asked_every_second() {
    for (provider, first) in [(Provider::Loop, 1), (Provider::Agent, 30)] {
        let mut simulation = Simulation {
            provider,
            ..Simulation::new()
        };
        let mut made = 0;
        while made < 200 {
            let mut asks = outage();
            asks.retry_after = Some(at(simulation.seconds + 1));
            let Some(until) = simulation.fail(&asks).not_before else {
                break;
            };
            made += 1;
            if made == 1 {
                assert_eq!(until, at(first));
            }
            simulation.seconds = 1 + i64::try_from(until.since(at(0)).as_secs()).unwrap();
        }
        assert!(made < 100, "{provider:?}: {made}");
    }
}

/// A run whose time ends before the next probe stops there, and nothing is charged for that.
#[test]
fn a_wait_ends_with_the_time_of_the_run() {
    let mut simulation = Simulation {
        provider: Provider::Agent,
        ..Simulation::new()
    };
    simulation.settings.retry.max_wall_time = Some(Duration::from_secs(20));
    let decision = simulation.fail(&outage());
    assert_eq!(decision.stopped_by, Some(BudgetScope::WallTime));
    assert!(!simulation.charged(), "{decision:?}");
}

/// Where a loop runs its own commands, and where a check or another command fails, S8 holds as it is.
#[test]
fn only_an_agents_provider_is_weather() {
    for provider in [Provider::Loop, Provider::Nobody] {
        let mut simulation = Simulation {
            provider,
            ..Simulation::new()
        };
        let network = failure(Cause::NetworkError);
        for number in 1..=6 {
            let decision = simulation.fail(&network);
            assert_eq!(
                (decision.attempts_used, decision.leads_to_attempt()),
                (number, number < 6)
            );
        }
    }
    let nobody = Simulation {
        provider: Provider::Nobody,
        ..Simulation::new()
    };
    assert_eq!(nobody.decide(&usage_limit()).actions, [Retry]);
}

/// An agent that lost its session has tried nothing: it begins a fresh one at once, also where no attempt would be left.
#[test]
fn a_session_that_is_gone_costs_no_attempt() {
    let gone = Failure {
        detail: Some(CauseDetail::SessionNotFound),
        ..failure(Cause::ResourceNotFound)
    };
    let mut simulation = Simulation {
        resumed: Some("s-1"),
        ..Simulation::new()
    };
    simulation.settings.retry.override_attempts = Some(1);
    let decision = simulation.fail(&gone);
    assert_eq!(
        (decision.actions.as_slice(), decision.not_before),
        ([Action::Retry].as_slice(), None),
        "{decision:?}"
    );
    assert_eq!(
        (decision.attempts_used, decision.attempts_left),
        (0, Some(1)),
        "{decision:?}"
    );
    assert_eq!(simulation.state.runs[0].error_count, 0);
    assert!(
        simulation.state.runs[0].fresh_session,
        "the next one asks for none"
    );
    // Where none was asked for, the same words are a failure like any other.
    simulation.resumed = None;
    let decision = simulation.fail(&gone);
    assert!(!decision.leads_to_attempt(), "{decision:?}");
    assert_eq!(simulation.state.runs[0].error_count, 1);
}

#[test]
fn the_latest_of_delay_and_retry_after_holds() {
    let mut service = failure(Cause::Unknown);
    service.detail = Some(CauseDetail::ServiceError);
    service.retry_after = Some(at(42));
    assert_eq!(Simulation::new().fail(&service).not_before, Some(at(42)));
    service.retry_after = Some(at(-42));
    assert!(Simulation::new().fail(&service).not_before.unwrap() <= at(1));
}

#[test]
fn success_forgives_and_attempts_of_the_run_override() {
    let mut simulation = Simulation::new();
    let failed = failure(Cause::VerificationFailed);
    for _ in 0..10 {
        assert_eq!(simulation.actions(&failed), [Retry]);
        assert_eq!(simulation.actions(&failed), [Retry]);
        simulation.pass();
    }
    let mut ten = Simulation::new();
    ten.settings.retry.override_attempts = Some(10);
    for _ in 0..9 {
        assert_eq!(ten.actions(&failed), [Retry]);
    }
    assert!(!ten.fail(&failed).leads_to_attempt());
}

#[test]
fn what_the_caller_wants_comes_first() {
    let with = |on_failure| Simulation {
        on_failure,
        ..Simulation::new()
    };
    let failed = failure(Cause::VerificationFailed);
    assert_eq!(with(OnFailure::Stop).actions(&failed), [Retry]);
    assert_eq!(with(OnFailure::ManualFix).actions(&failed), [ManualFix]);
    assert_eq!(
        with(OnFailure::Rollback).actions(&failed),
        [Rollback, Retry]
    );
    assert_eq!(
        with(OnFailure::Retry).actions(&failure(Cause::BrokenBuild)),
        [Retry]
    );
    assert_eq!(
        with(OnFailure::Stop).actions(&failure(Cause::Cancelled)),
        [Retry]
    );
}

// Whatever else is given: what is switched off is off everywhere.
#[test]
fn without_rollbacks_nothing_is_rolled_back() {
    let without = |attempts, on_failure| {
        let mut simulation = Simulation {
            on_failure,
            good: true,
            ..Simulation::new()
        };
        simulation.settings.retry.override_attempts = attempts;
        simulation.settings.rollback.enabled = false;
        simulation
    };
    for attempts in [None, Some(3)] {
        for on_failure in [OnFailure::Stop, OnFailure::Rollback] {
            for cause in [
                Cause::BrokenBuild,
                Cause::Crashed,
                Cause::VerificationFailed,
            ] {
                for _ in 0..4 {
                    let decision = without(attempts, on_failure).fail(&failure(cause));
                    assert!(
                        !decision.has(Rollback),
                        "{attempts:?} {on_failure:?} {cause:?}: {decision:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_fallback_is_run_once_when_nothing_else_is_left_s9() {
    let with = |fallback: &[&str]| {
        let mut simulation = Simulation::new();
        let fallback = fallback.iter().map(|word| (*word).to_owned()).collect();
        let spec = Box::new(RunSpec {
            command: vec!["agent".to_owned()],
            fallback,
            ..RunSpec::default()
        });
        let changes = Vec::new();
        simulation.record(Payload::RunSpecChanged { spec, changes });
        simulation
    };
    let failed = failure(Cause::VerificationFailed);
    let mut simulation = with(&["other"]);
    assert_eq!(simulation.actions(&failed), [Retry]);
    assert_eq!(simulation.actions(&failed), [Retry]);
    let third = simulation.fail(&failed);
    assert_eq!(
        (third.actions.as_slice(), third.stopped_by),
        (&[Fallback][..], Some(BudgetScope::Cause))
    );
    assert_eq!(
        third.standing(at(0), None),
        crate::model::decision::Standing::Allowed
    );
    // Whatever the fallback fails with: what held before it holds again, and it is not run another time.
    let mut interrupted = simulation.state.clone();
    let fourth = simulation.fail(&failure(Cause::NetworkError));
    assert_eq!(
        (fourth.actions.as_slice(), fourth.stopped_by),
        (&[Skip, Escalate][..], Some(BudgetScope::Cause))
    );
    assert!(
        fourth.reason.starts_with("the fallback failed too"),
        "{}",
        fourth.reason
    );
    let fifth = simulation.decide(&failed);
    assert!(!fifth.leads_to_attempt(), "{fifth:?}");
    // One that was interrupted is still to be run.
    std::mem::swap(&mut simulation.state, &mut interrupted);
    simulation.attempts = 3;
    simulation.start();
    let cancelled = simulation.decide(&failure(Cause::Cancelled));
    assert_eq!(cancelled.actions, [Fallback]);
    // What has to be repaired first is not helped by an alternative; who is out of credentials may be.
    assert_eq!(
        with(&["other"]).actions(&failure(Cause::DiskFull)),
        [Escalate]
    );
    assert_eq!(
        with(&["other"]).actions(&failure(Cause::AuthFailed)),
        [Fallback]
    );
    let mut circular = failed.clone();
    circular.conditions.push(Condition::CircularFix);
    assert_eq!(with(&["other"]).actions(&circular), [Fallback]);
    assert_eq!(with(&[]).actions(&circular), [Skip, Escalate]);
    let mut session = with(&["other"]);
    session.settings.retry.session_max_attempts = 1;
    assert_eq!(session.actions(&failed), [Action::None]);
}

#[test]
fn time_and_money_stop_a_run() {
    let failed = failure(Cause::VerificationFailed);
    let mut late = Simulation::new();
    // The first cooldown would end after the run's time is up.
    late.settings.retry.max_wall_time = Some(Duration::from_secs(4));
    let decision = late.fail(&failed);
    assert_eq!(
        (decision.actions.as_slice(), decision.stopped_by),
        (&[Action::None][..], Some(BudgetScope::WallTime))
    );
    let mut in_time = Simulation::new();
    in_time.settings.retry.max_wall_time = Some(Duration::from_secs(60));
    assert_eq!(in_time.actions(&failed), [Retry]);
    let mut dear = Simulation {
        cost_micros: Some(1_500_000),
        ..Simulation::new()
    };
    dear.settings.retry.max_cost_usd = Some(2.5);
    assert_eq!(dear.actions(&failed), [Retry]);
    let second = dear.fail(&failed);
    assert_eq!(
        (second.stopped_by, second.attempts_left),
        (Some(BudgetScope::Cost), Some(0))
    );
    let mut long = Simulation {
        tokens: Some(Tokens::new(1, 2, 3_000_000_000, 4)),
        ..Simulation::new()
    };
    long.settings.retry.max_tokens = Some(5_000_000_000);
    assert_eq!(long.fail(&failure(Cause::Unknown)).stopped_by, None);
    assert_eq!(
        long.fail(&failure(Cause::Unknown)).stopped_by,
        Some(BudgetScope::Tokens)
    );
}

#[test]
fn a_circle_that_is_exhausted_too_says_both() {
    let mut simulation = Simulation::new();
    let mut failed = failure(Cause::VerificationFailed);
    simulation.fail(&failed);
    simulation.fail(&failed);
    failed.conditions.push(Condition::CircularFix);
    let third = simulation.fail(&failed);
    assert_eq!(
        (third.actions.as_slice(), third.stopped_by),
        (&[Skip, Escalate][..], Some(BudgetScope::Cause))
    );
    assert!(third.reason.contains("circle"), "{}", third.reason);
}

proptest! {
    /// Whatever fails in whatever order, successes aside, the task's cap holds, and deciding twice is deciding once.
    #[test]
    fn no_order_of_failures_exceeds_the_budget(causes in prop::collection::vec(0usize..Cause::ALL.len(), 1..60)) {
        let mut simulation = Simulation::new();
        let mut charged = 0;
        for cause in causes {
            let failure = failure(Cause::ALL[cause]);
            prop_assert_eq!(simulation.decide(&failure), simulation.decide(&failure));
            let decision = simulation.fail(&failure);
            charged += u32::from(simulation.charged());
            let limit = simulation.settings.retry.task_max_attempts;
            if charged >= limit && failure.kind != FailureType::Cancellation {
                prop_assert!(!decision.leads_to_attempt(), "{} failures, {:?}", charged, decision);
            }
            prop_assert!(charged <= limit || !decision.leads_to_attempt() || failure.kind == FailureType::Cancellation);
        }
    }

    /// Failures, waits and killed supervisors in any order, each step by another process: no limit is ever exceeded, a
    /// wait for a usage limit costs nothing, and what one process made of the ledger the next one makes of it too.
    #[test]
    fn no_order_of_crashes_and_restarts_exceeds_a_limit(steps in prop::collection::vec(step(), 1..120)) {
        let mut simulation = Simulation::new();
        let mut charged: BTreeMap<Cause, u32> = BTreeMap::new();
        for step in steps {
            let tomorrow = at(24 * 3600);
            let status = retry_status(&simulation.state, &simulation.state.runs[0], &simulation.settings.retry, tomorrow, None);
            if status.standing != Standing::Allowed {
                break;
            }
            let (failure, costs) = match step {
                Step::Passes => {
                    simulation.pass();
                    charged.clear();
                    continue;
                }
                Step::Fails(cause) => (failure(cause), true),
                Step::Parks => (usage_limit(), false),
                Step::Dies => {
                    // Its own process can say nothing any more: the next one finds the attempt still open.
                    simulation.start();
                    simulation.state = simulation.folded();
                    (Failure { detail: Some(CauseDetail::SupervisorLost), ..failure(Cause::Crashed) }, true)
                }
            };
            let errors = simulation.state.runs[0].error_count;
            let decision = simulation.decide(&failure);
            prop_assert_eq!(&decision, &simulation.decide(&failure));
            if simulation.state.runs[0].live.is_none() {
                simulation.start();
            }
            simulation.attempts += 1;
            simulation.end(AttemptOutcome::Failed, Some((failure.clone(), decision.clone())));
            prop_assert_eq!(simulation.charged(), costs && failure.kind != FailureType::Cancellation);
            if simulation.charged() {
                *charged.entry(failure.cause).or_default() += 1;
            } else {
                prop_assert_eq!(simulation.state.runs[0].error_count, errors);
            }
            let again = simulation.folded();
            prop_assert_eq!(&again, &simulation.state);
            simulation.state = again;

            prop_assert!(charged.values().sum::<u32>() <= simulation.settings.retry.task_max_attempts);
            for (cause, used) in &charged {
                let limit = simulation.settings.retry.limit_for(*cause, failure.detail).unwrap_or(u32::MAX);
                // A broken build may be rolled back and tried again; a limit of none is found out by the first failure.
                let rollbacks = if *cause == Cause::BrokenBuild { simulation.settings.retry.max_rollbacks() } else { 0 };
                prop_assert!(*used <= limit.max(1) + rollbacks, "{:?}: {} of {}", cause, used, limit);
            }
        }
    }
}

proptest! {
    /// Whatever is waited for between failures of the work: those alone are attempts, numbered one after the other, and what
    /// all cost counts; what one process made of the ledger the next one makes of it too.
    #[test]
    fn what_is_waited_for_is_no_attempt(steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0i64..2000), 1..40)) {
        let mut simulation = Simulation {
            provider: Provider::Agent,
            cost_micros: Some(10),
            ..Simulation::new()
        };
        simulation.settings.retry.override_attempts = Some(1000);
        let (mut charged, mut answers) = (0, 0);
        for (number, (is_outage, answered, seconds)) in steps.into_iter().enumerate() {
            let failure = if is_outage { outage() } else { failure(Cause::VerificationFailed) };
            simulation.answered = Some(answered);
            let decision = simulation.fail(&failure);
            prop_assert!(decision.leads_to_attempt(), "{:?}", decision);
            let costs = !is_outage || answered && answers >= 3;
            answers += u32::from(answered && !costs);
            prop_assert_eq!(simulation.charged(), costs);
            charged += u32::from(costs);
            simulation.seconds += seconds;
            prop_assert_eq!(&simulation.folded(), &simulation.state);
            let run = &simulation.state.runs[0];
            prop_assert_eq!(run.error_count, charged);
            let attempts = &run.iterations.get(1).unwrap().attempts;
            let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.number).collect();
            let all = charged + u32::from(!costs);
            prop_assert_eq!(numbers, (1..=all).collect::<Vec<_>>());
            prop_assert_eq!(run.usage().cost_micros, Some(10 * (number as u64 + 1)));
        }
    }
}

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug)]
enum Step {
    Passes,
    Fails(Cause),
    Parks,
    Dies,
}

fn step() -> impl AnyOf<Value = Step> {
    let cause = (0..Cause::ALL.len()).prop_map(|at| Step::Fails(Cause::ALL[at]));
    prop_oneof![2 => Just(Step::Passes), 4 => cause, 2 => Just(Step::Parks), 1 => Just(Step::Dies)]
}

fn usage_limit() -> Failure {
    let detail = Some(CauseDetail::UsageLimit);
    Failure {
        detail,
        retry_after: Some(at(3600)),
        ..failure(Cause::RateLimited)
    }
}
