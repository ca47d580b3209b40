//! Classifies a failed attempt: from its output, its exit and the agent's record to a cause, with the evidence for it.
//!
//! The questions are asked in a fixed order, and the first that applies decides: a time limit, a cancellation, a dead
//! process, the agent's own error, the machine, and last the project. Within a question the evidence counts by its
//! strength: what the process shows, what records say, stderr, stdout. The words are data: see `rules`.

mod api;
mod author_message;
mod command_line;
mod conclusion;
mod feedback;
mod inputs;
pub(crate) mod known;
mod lone_error;
mod missing_resource;
mod process;
mod quoted;
mod reset_time;
mod rules;
mod scan;
mod shape;
mod stage;
mod steps;
mod unknown_agent;
mod user_rule;
mod verdict;

#[cfg(test)]
mod tests;

pub(crate) use lone_error::lone_error;
pub(crate) use stage::{guess_loop, guess_stage, stage_of_command};

use inputs::Inputs;

use super::check_summary::count;
use super::settings::UserRule;
use super::text::Text;
use crate::model::agent_record::AgentRecord;
use crate::model::failure::{Failure, FailureEvidence};
use crate::model::feedback::CheckKind;
use crate::model::time::Timestamp;

/// Classifies a failed attempt.
///
/// `record` is what the agent's reader found, `user_rules` come before the built-in ones, and `now` resolves reset
/// times. The same arguments always give the same answer; time is linear in the output.
pub fn classify(
    evidence: &FailureEvidence,
    record: Option<&AgentRecord>,
    user_rules: &[UserRule],
    now: Timestamp,
) -> Failure {
    let stage = evidence.stage.or_else(|| stage_of(evidence, record));
    let stdout = Text::new(&evidence.stdout);
    let mut stderr = if evidence.is_merged && stage == Some(CheckKind::Agent) {
        Text::new(&without_records(&evidence.stdout))
    } else {
        Text::new(&evidence.stderr)
    };
    if let Some(message) = &evidence.message {
        stderr.push_note(message);
    }
    let counts = count([&stdout, &stderr]);
    let inputs = Inputs {
        evidence,
        record,
        stage,
        stderr: &stderr,
        stdout: &stdout,
        counts,
        now,
    };
    steps::decide(user_rules, &inputs).into_failure(&inputs)
}

/// What an agent's program said beside its records, whose line numbers are kept.
fn without_records(output: &[u8]) -> Vec<u8> {
    let lines = output.split_inclusive(|byte| *byte == b'\n');
    lines
        .flat_map(|line| if line.starts_with(b"{") { b"\n" } else { line })
        .copied()
        .collect()
}

fn stage_of(evidence: &FailureEvidence, record: Option<&AgentRecord>) -> Option<CheckKind> {
    let structured = record.is_some_and(|record| record.structured);
    let named = evidence
        .agent
        .as_deref()
        .is_some_and(|name| !matches!(name, "auto" | "none"));
    if structured || named {
        return Some(CheckKind::Agent);
    }
    evidence.command.as_deref().and_then(guess_stage)
}

/// The patterns that lines are matched against.
#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    let mut patterns = rules::patterns();
    patterns.extend(quoted::PATTERNS.concat());
    patterns.extend([shape::SHAPES, shape::RAN].concat());
    patterns.extend(stage::patterns());
    patterns
}
