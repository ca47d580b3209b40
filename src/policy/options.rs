//! How a failed run can be taken up, for `status` and the resume screen (B1, B3, B5, B7).

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::decision::Strategy;
use crate::model::failure::{Cause, Failure, FailureType};
use crate::model::run::{NO_CHECKPOINT, Run};
use crate::model::state::State;

use super::recommended::{self, Outlook};

/// One way to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "option")]
pub(crate) struct ResumeOption {
    /// The strategy.
    pub strategy: Strategy,
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
}

/// The options of a run that stands at a failure; empty when the failure is not recoverable (see [`manual_steps`]). A run
/// without a good checkpoint may go back to where it began. Where something else is recommended, none of them is.
pub(crate) fn resume_options(state: &State, run: &Run, outlook: Outlook) -> Vec<ResumeOption> {
    let Some(failure) = run.failure.as_ref().filter(|failure| failure.recoverable) else {
        return Vec::new();
    };
    let iteration = failure.iteration.unwrap_or(run.current_iteration);
    let next = Some(run.iteration_after(iteration));
    let next = next.filter(|next| run.spec.iterations_total.is_none_or(|total| *next <= total));
    let recommended =
        Some(recommended::strategy(run, outlook.unchecked)).filter(|_| outlook.is_open());
    let has_good_checkpoint = state.last_good(&run.key).is_some();
    let has_checkpoint = has_good_checkpoint || state.keeps_initial(&run.key);
    Strategy::ALL
        .into_iter()
        .map(|strategy| {
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
                strategy,
                label: label(strategy),
                description: match strategy {
                    Strategy::ManualThenContinue if outlook.unchecked => UNCHECKED.to_owned(),
                    _ => description(strategy, iteration, next, has_good_checkpoint),
                },
                recommended: Some(strategy) == recommended && missing.is_none(),
                available: missing.is_none(),
                reason: missing,
            }
        })
        .collect()
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
    use crate::policy::classify::known;

    #[test]
    fn who_refused_the_credentials_is_who_wants_others() {
        let step = |kind| {
            manual_steps(
                &Failure {
                    kind,
                    cause: Cause::AuthFailed,
                    ..known::cancelled()
                },
                None,
            )
            .swap_remove(0)
        };
        assert!(step(FailureType::SystemError).contains("the server named in the error"));
        assert!(step(FailureType::AgentError).contains("the agent"));
    }
}
