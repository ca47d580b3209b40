//! Whatever happens in whatever order: limits hold, deciding twice is deciding once, and a fold is a fold.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::Strategy as AnyOf;

use super::*;
use crate::model::decision::Standing;
use crate::policy::retry_status::retry_status;

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
            charged += u32::from(is_charged(&failure, &decision, None));
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
            prop_assert_eq!(is_charged(&failure, &decision, None), costs && failure.kind != FailureType::Cancellation);
            if is_charged(&failure, &decision, None) {
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
