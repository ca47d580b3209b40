//! How a failed run can be resumed, and which way is recommended, for `status` and the resume screen (B1, B3, B5, B7).

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::decision::{Action, Strategy};
use crate::model::failure::{Cause, Condition, Failure, FailureType};
use crate::model::hint::Hint;
use crate::model::run::{Attempt, IterationStatus, NO_CHECKPOINT, OnFailure, Run, RunStatus};
use crate::model::state::State;
use crate::model::time::format_duration;

/// The strategy with which a run that failed is best resumed; of an unchecked one nothing can verify a fix.
pub(crate) fn strategy(run: &Run, is_unchecked: bool) -> Strategy {
    let decided = run.decision.as_ref().and_then(|decision| decision.strategy);
    let decided =
        decided.filter(|strategy| *strategy != Strategy::ManualThenContinue || !is_unchecked);
    let iteration = run
        .failure
        .as_ref()
        .and_then(|failure| failure.iteration)
        .unwrap_or(run.current_iteration);
    let is_last = run
        .spec
        .iterations_total
        .is_some_and(|total| run.iteration_after(iteration) > total);
    let is_taken_back = run
        .iterations
        .get(iteration)
        .is_some_and(|one| one.status == IterationStatus::Superseded);
    // Where it was given up already, was taken back, or nothing comes after it, to go on is to accept what failed: a
    // person's own thought.
    let accepts = is_last || is_taken_back || run.given_up().any(|given_up| given_up == iteration);
    // Who has it stop at a failure wants to see to that, not to leave it behind.
    let accepts = accepts || run.spec.on_failure == OnFailure::Stop;
    let decided = decided.filter(|strategy| *strategy != Strategy::ContinueNext || !accepts);
    match &run.failure {
        // Once what stood in the way is out of it, the very same will do.
        Some(failure) if !failure.recoverable => Strategy::RetrySame,
        _ => decided.unwrap_or(Strategy::RetryWithContext),
    }
}

/// What there is to accept of a run that is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ToAccept {
    /// Nothing, or nothing that is committed without its name: it looks like secrets.
    #[default]
    Nothing,
    /// Files that it changed or made, or commits of its own.
    Changes,
}

impl ToAccept {
    /// The words of the command that commits it.
    pub(crate) fn command(self) -> Option<Vec<&'static str>> {
        match self {
            Self::Nothing => None,
            Self::Changes => Some(vec!["accept"]),
        }
    }
}

/// What the record of a run does not say of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// What there is to accept; nothing while it is not over.
    pub to_accept: ToAccept,
    /// Whether another `recover` is at work on it, be it that it waits.
    pub at_work: bool,
    /// Whether other runs of its task have used up the attempts that it would need.
    pub task_spent: bool,
    /// Whether no checks are configured that could verify a person's fix.
    pub unchecked: bool,
}

impl Outlook {
    /// Whether nothing comes before taking the run up by a strategy.
    pub(crate) fn is_open(self) -> bool {
        self.to_accept == ToAccept::Nothing && !self.at_work && !self.task_spent
    }
}

/// The words of the command that goes on with a run, without those that name it; what can be accepted, is. `None` where
/// there is nothing to go on with: it is done, or a user is at work on it.
pub(crate) fn next_command(run: &Run, outlook: Outlook) -> Option<Vec<&'static str>> {
    if run.is_being_fixed() {
        let is_verified = run
            .manual_fix
            .as_ref()
            .is_some_and(|session| session.verified);
        return Some(if is_verified {
            vec!["manual-fix", "continue"]
        } else {
            end_of_fix(outlook.unchecked)
        });
    }
    let has_attempt = run
        .live
        .as_ref()
        .is_some_and(|live| live.supervisor.is_some());
    if has_attempt || outlook.at_work {
        return None;
    }
    if let Some(accept) = outlook.to_accept.command() {
        return Some(accept);
    }
    if run.status.is_done() {
        return None;
    }
    if outlook.task_spent {
        return Some(vec!["retry-status", "--reset"]);
    }
    let waits = run.status == RunStatus::Parked
        || run
            .decision
            .as_ref()
            .is_some_and(|decision| decision.has(Action::Park) && decision.leads_to_attempt());
    let is_loop = run.spec.command.is_empty();
    Some(match (needs_word(run), waits, is_loop) {
        (true, ..) => vec![
            "resume",
            "--strategy",
            strategy(run, outlook.unchecked).as_str(),
        ],
        (false, true, true) => vec!["retry-status", "--wait"],
        (false, true, false) => vec!["resume", "--wait"],
        (false, false, true) => vec!["attempt", "start"],
        (false, false, false) => vec!["resume"],
    })
}

/// Whether only a person's word is another attempt; a rollback gives none back.
fn needs_word(run: &Run) -> bool {
    let stands = run.stands_still() || run.status == RunStatus::Escalated;
    run.granted == 0 && stands && !run.gave_up_waiting()
}

/// The words of the command with which a person says that a fix is done; where nothing can verify it, that it is given up
/// as a fix: the files stay.
pub(crate) fn end_of_fix(is_unchecked: bool) -> Vec<&'static str> {
    vec!["manual-fix", if is_unchecked { "abort" } else { "verify" }]
}

/// The words of the command that takes a run up; where a person is at it, that they are done.
pub(crate) fn resume_command(run: &Run, is_unchecked: bool) -> Vec<&'static str> {
    if run.is_being_fixed() {
        end_of_fix(is_unchecked)
    } else if needs_word(run) && !run.status.is_done() {
        vec!["resume", "--strategy", strategy(run, is_unchecked).as_str()]
    } else {
        vec!["resume"]
    }
}

/// The words of the command that goes back where a run did not complete.
pub(crate) fn way_back(has_good_checkpoint: bool) -> &'static [&'static str] {
    if has_good_checkpoint {
        &["rollback", "--to", "good"]
    } else {
        &["rollback", "--full"]
    }
}

/// What an option does: a strategy, or what else helps against a failure (B2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum OptionCode {
    /// The run is resumed by this strategy.
    Strategy(Strategy),
    /// Something else.
    Other(OtherWay),
}

/// What a person can do beside the strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum OtherWay {
    /// Retry with a longer time limit.
    AdjustTimeout,
    /// See whether the service answers again, and when the next attempt is allowed.
    CheckStatus,
    /// Begin again at iteration 1.
    StartFresh,
}

impl OptionCode {
    /// The contract's name of it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Strategy(strategy) => strategy.as_str(),
            Self::Other(OtherWay::AdjustTimeout) => "adjust_timeout",
            Self::Other(OtherWay::CheckStatus) => "check_status",
            Self::Other(OtherWay::StartFresh) => "start_fresh",
        }
    }
}

/// One way to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "option")]
pub(crate) struct ResumeOption {
    /// The strategy, or `adjust_timeout`, `check_status`, `start_fresh`.
    pub strategy: OptionCode,
    /// A short name.
    pub label: &'static str,
    /// What it does, for this run.
    pub description: String,
    /// Whether it is the way on that is recommended.
    pub recommended: bool,
    /// Whether it can be taken now.
    pub available: bool,
    /// Why not.
    pub reason: Option<String>,
    /// The command that does it.
    pub command: Hint,
    /// The time limit that it sets.
    #[serde(skip)]
    pub timeout: Option<Duration>,
}

/// The options of a run that stands at a failure; empty when the failure is not recoverable (see [`manual_steps`]). A run
/// without a good checkpoint may go back to where it began. Where something else is recommended, none of them is.
pub(crate) fn resume_options(
    state: &State,
    run: &Run,
    outlook: Outlook,
    command: &dyn Fn(&[&str]) -> Hint,
) -> Vec<ResumeOption> {
    let Some(failure) = run.failure.as_ref().filter(|failure| failure.recoverable) else {
        return Vec::new();
    };
    let iteration = failure.iteration.unwrap_or(run.current_iteration);
    let next = Some(run.iteration_after(iteration));
    let next = next.filter(|next| run.spec.iterations_total.is_none_or(|total| *next <= total));
    let recommended = Some(strategy(run, outlook.unchecked)).filter(|_| outlook.is_open());
    let has_good_checkpoint = state.last_good(&run.key).is_some();
    let has_checkpoint = has_good_checkpoint || state.keeps_initial(&run.key);
    let strategies = Strategy::ALL.into_iter().map(|strategy| {
        let missing = match strategy {
            Strategy::ManualThenContinue => None,
            _ if run.is_being_fixed() => Some("a manual fix is open".to_owned()),
            Strategy::RollbackAndRetry if !has_checkpoint => {
                Some("No checkpoint available".to_owned())
            }
            // A rollback begins with a checkpoint.
            Strategy::RollbackAndRetry => run
                .stopped_for
                .clone()
                .filter(|why| why.starts_with(NO_CHECKPOINT)),
            _ => None,
        };
        ResumeOption {
            strategy: OptionCode::Strategy(strategy),
            command: command(&["resume", "--strategy", strategy.as_str()]),
            timeout: None,
            label: label(strategy),
            description: match strategy {
                Strategy::ManualThenContinue if outlook.unchecked => UNCHECKED.to_owned(),
                _ => description(strategy, iteration, next, has_good_checkpoint),
            },
            recommended: Some(strategy) == recommended && missing.is_none(),
            available: missing.is_none(),
            reason: missing,
        }
    });
    strategies
        .chain(other_ways(run, failure, command))
        .collect()
}

/// What helps beside the strategies against a failure of this kind.
fn other_ways(
    run: &Run,
    failure: &Failure,
    command: &dyn Fn(&[&str]) -> Hint,
) -> Vec<ResumeOption> {
    let missing = run
        .is_being_fixed()
        .then(|| "a manual fix is open".to_owned());
    let way = |way, label, description, words: &[&str]| ResumeOption {
        strategy: OptionCode::Other(way),
        label,
        description,
        recommended: false,
        available: missing.is_none(),
        reason: missing.clone(),
        command: command(words),
        timeout: None,
    };
    let mut ways = Vec::new();
    if failure.kind == FailureType::Timeout {
        let (needed, allowed) = times(run);
        let text = format_duration(allowed);
        let description = match needed {
            Some(needed) => format!(
                "It was not done after {}: retry with a time limit of {text}",
                format_duration(needed)
            ),
            None => format!("Retry with a time limit of {text}"),
        };
        ways.push(ResumeOption {
            timeout: Some(allowed),
            ..way(
                OtherWay::AdjustTimeout,
                "Retry with more time",
                description,
                &["resume", "--timeout", &text],
            )
        });
    }
    let is_outage = matches!(failure.cause, Cause::NetworkError | Cause::RateLimited);
    if failure.kind == FailureType::AgentError || is_outage {
        let description =
            "See when the next attempt is allowed, and whether the service answers again";
        ways.push(ResumeOption {
            available: true,
            reason: None,
            ..way(
                OtherWay::CheckStatus,
                "Check the status",
                description.to_owned(),
                &["retry-status"],
            )
        });
    }
    let description = "Begin again at iteration 1, with the files that the run began with";
    ways.push(way(
        OtherWay::StartFresh,
        "Start fresh",
        description.to_owned(),
        &["resume", "--restart"],
    ));
    ways
}

/// How long the last attempt took until its time was up, and twice the time that the longest one had.
fn times(run: &Run) -> (Option<Duration>, Duration) {
    let seconds = |millis: u64| Duration::from_secs(millis.div_ceil(1000));
    let timed_out = |attempt: &Attempt| attempt.duration_ms.filter(|_| attempt.failure.is_some());
    let needed = run.standing_attempt().and_then(timed_out);
    let longest = needed.max(run.spec.timeout_ms);
    // Where nobody knows how long it took, what most agents need for a turn.
    let longest = longest
        .filter(|millis| *millis > 0)
        .unwrap_or(10 * 60 * 1000);
    (
        needed.filter(|millis| *millis > 0).map(seconds),
        seconds(longest.saturating_mul(2)),
    )
}

/// What a fix by hand is where nothing can verify it.
const UNCHECKED: &str = "Make changes yourself; to continue, add checks that verify them";

/// A strategy's short name.
pub(crate) fn label(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::RetrySame => "Retry iteration",
        Strategy::RetryWithContext => "Retry iteration with error context",
        Strategy::RollbackAndRetry => "Rollback and retry",
        Strategy::ContinueNext => "Skip to next iteration",
        Strategy::ManualThenContinue => "Fix manually and continue",
    }
}

fn description(
    strategy: Strategy,
    iteration: u32,
    next: Option<u32>,
    has_good_checkpoint: bool,
) -> String {
    match strategy {
        Strategy::RetrySame => format!("Re-run iteration {iteration} with the same prompt"),
        Strategy::RetryWithContext => {
            format!("Re-run iteration {iteration} with the error in the prompt")
        }
        Strategy::RollbackAndRetry => {
            let from = if has_good_checkpoint {
                "the last good checkpoint"
            } else {
                "where the run began"
            };
            format!("Undo the changes of iteration {iteration}, then retry from {from}")
        }
        Strategy::ContinueNext => match next {
            Some(next) => format!("Accept the current state and continue with iteration {next}"),
            None => "Accept the current state: no iteration is left, the run is complete then"
                .to_owned(),
        },
        Strategy::ManualThenContinue => {
            "Make changes yourself, verify them, then continue".to_owned()
        }
    }
}

/// What a person does about a failure that nothing automatic helps against (B5). `ends_by` are the words that end a fix that
/// is open.
pub(crate) fn manual_steps(failure: &Failure, ends_by: Option<&[&str]>) -> Vec<String> {
    let specific: &[&str] = match failure.cause {
        Cause::DiskFull => &[
            "Free space on the disk (`df -h`, `df -i`)",
            "Remove old checkpoints: `recover checkpoint prune`",
        ],
        Cause::OutOfMemory => &[
            "Give the process more memory, or let it do less at once",
            "Look for a leak in what it ran",
        ],
        Cause::PermissionDenied => &["Give the user access to the path named in the error"],
        Cause::AuthFailed if failure.kind == FailureType::SystemError => &[
            "Log in to the server named in the error, or give it the credentials that it asks for",
        ],
        Cause::AuthFailed if failure.conditions.contains(&Condition::Quota) => {
            &["Add credit or change the plan, or give the agent another key"]
        }
        Cause::AuthFailed => &[
            "Log the agent in again, or set its key",
            "Check plan and billing",
        ],
        Cause::ResourceNotFound => &["Install what is missing, or correct its name"],
        Cause::NetworkError => &["Check the network connection"],
        _ => &["Read the error and the attempt's log (`recover status`)"],
    };
    let mut steps: Vec<String> = specific.iter().map(|step| (*step).to_owned()).collect();
    let again = "Then take the run up again: `recover resume --strategy retry_same`".to_owned();
    steps.push(ends_by.map_or(again, |words| {
        format!(
            "Then end the manual fix that is open: `recover {}`",
            words.join(" ")
        )
    }));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::classify;

    #[test]
    fn who_refused_the_credentials_is_who_wants_others() {
        let step = |kind| {
            manual_steps(
                &Failure {
                    kind,
                    cause: Cause::AuthFailed,
                    ..classify::cancelled()
                },
                None,
            )
            .swap_remove(0)
        };
        assert!(step(FailureType::SystemError).contains("the server named in the error"));
        assert!(step(FailureType::AgentError).contains("the agent"));
    }
}
