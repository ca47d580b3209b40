//! Why did it fail? From evidence to a verdict that says why.
//!
//! The questions are asked in a fixed order, and the first that applies decides: a time limit, a cancellation, a dead
//! process, the agent's own error, the machine, and last the project. Within a question the evidence counts by its
//! strength: what the process shows, what records say, stderr, stdout. The words are data: see `rules`.

mod api;
mod command_line;
mod decide;
mod feedback;
mod foreign;
pub mod known;
mod lack;
mod message;
mod process;
mod quoted;
mod reset_time;
mod rules;
mod scan;
mod shape;
mod stage;
mod summary;
mod user_rule;
mod verdict;

#[cfg(test)]
mod tests;

pub use reset_time::reset_time;
pub use stage::{guess_loop, guess_stage};

use decide::{Conclusion, Inputs};
use verdict::Verdict;

use super::excerpt;
use super::redact::redact;
use super::settings::UserRule;
use super::signature::signature;
use super::summary::count;
use super::text::Text;
use crate::model::agent_record::AgentRecord;
use crate::model::failure::{Evidence, EvidenceSource, Failure, FailureEvidence, LoopKind};
use crate::model::time::Timestamp;

/// How long the text of a piece of evidence is at most, in bytes.
const MAX_EVIDENCE_BYTES: usize = 300;
/// How long a message is at most, in bytes.
const MAX_MESSAGE_BYTES: usize = 200;
/// How many rules that lost are reported.
const MAX_REJECTED: usize = 10;

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
    let mut stderr = Text::new(&evidence.stderr);
    let stdout = Text::new(&evidence.stdout);
    if let Some(message) = &evidence.message {
        stderr.push_note(message);
    }
    let stage = evidence.stage.or_else(|| stage_of(evidence, record));
    let counts = count([&stdout, &stderr]);
    let inputs = Inputs { evidence, record, stage, stderr: &stderr, stdout: &stdout, counts, now };
    let conclusion = user_rule::apply(user_rules, &inputs).unwrap_or_else(|| decide::decide(&inputs));
    build(&inputs, conclusion)
}

fn stage_of(evidence: &FailureEvidence, record: Option<&AgentRecord>) -> Option<LoopKind> {
    let structured = record.is_some_and(|record| record.structured);
    let named = evidence.agent.as_deref().is_some_and(|name| !matches!(name, "auto" | "none"));
    if structured || named {
        return Some(LoopKind::Agent);
    }
    evidence.command.as_deref().and_then(guess_stage)
}

fn build(inputs: &Inputs<'_>, conclusion: Conclusion) -> Failure {
    let message = shorten(&conclusion.message, MAX_MESSAGE_BYTES);
    let details = details(inputs, &conclusion.evidence);
    let recognised_by = conclusion.signature_text.unwrap_or_else(|| message.clone());
    Failure {
        details,
        retry_after: conclusion.retry_after,
        rejected: conclusion.rejected.into_iter().take(MAX_REJECTED).map(shown).collect(),
        ..failure_of(conclusion.verdict, message, &recognised_by, conclusion.evidence)
    }
}

/// What follows from a verdict.
fn failure_of(verdict: Verdict, message: String, recognised_by: &str, evidence: Evidence) -> Failure {
    let (recoverable, suggested_action) = verdict.remedy();
    Failure {
        kind: verdict.kind,
        cause: verdict.cause,
        conditions: Vec::new(),
        severity: verdict.kind.severity(),
        retryable: verdict.retryable,
        recoverable,
        suggested_action,
        message,
        details: None,
        retry_after: None,
        signature: signature(verdict.cause, recognised_by),
        evidence: vec![shown(evidence)],
        rejected: Vec::new(),
        detail: verdict.detail,
        iteration: None,
        attempt: None,
        at: None,
    }
}

fn shown(mut evidence: Evidence) -> Evidence {
    evidence.text = shorten(&evidence.text, MAX_EVIDENCE_BYTES);
    evidence
}

/// Redacted, on one line, cut.
fn shorten(text: &str, max_bytes: usize) -> String {
    let mut text = redact(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if text.len() > max_bytes {
        excerpt::cut(&mut text, max_bytes - '…'.len_utf8());
        text.push('…');
    }
    text
}

/// Of each stream that says something: around the evidence, and the end.
fn details(inputs: &Inputs<'_>, evidence: &Evidence) -> Option<String> {
    let streams = [(EvidenceSource::Stderr, inputs.stderr), (EvidenceSource::Stdout, inputs.stdout)];
    let spoken: Vec<_> = streams.into_iter().filter(|(_, text)| !text.is_empty()).collect();
    // The agent's transcript on stdout is no excerpt for people; its error is.
    if evidence.source == EvidenceSource::Record {
        return Some(redact(&evidence.text).into_owned()).map(|mut text| {
            excerpt::cut(&mut text, excerpt::MAX_BYTES);
            text
        });
    }
    let room = (excerpt::MAX_BYTES / spoken.len().max(1)).saturating_sub(1);
    let parts = spoken.iter().map(|(source, text)| {
        let line = evidence.line.filter(|_| evidence.source == *source);
        excerpt::of_text(text, line, room)
    });
    let text = parts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}
