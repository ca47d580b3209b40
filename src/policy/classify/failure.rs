//! Turns the result of a classification into the failure that is recorded.

use super::conclusion::Conclusion;
use super::inputs::Inputs;
use super::verdict::Verdict;
use crate::model::agent_record::AgentRecord;
use crate::model::failure::{Evidence, EvidenceSource, Failure};
use crate::policy::excerpt;
use crate::policy::redact::redact;
use crate::policy::signature::signature;
use crate::policy::text::Text;

/// How long the text of a piece of evidence is at most, in bytes.
const MAX_EVIDENCE_BYTES: usize = 300;
/// How long a message is at most, in bytes.
const MAX_MESSAGE_BYTES: usize = 200;
/// How many rules that lost are reported.
const MAX_REJECTED: usize = 10;

/// The failure that is recorded: redacted, bounded.
pub(super) fn of_conclusion(inputs: &Inputs<'_>, conclusion: Conclusion) -> Failure {
    let message = shorten(&conclusion.message, MAX_MESSAGE_BYTES);
    let details = details(inputs, &conclusion.evidence);
    let recognised_by = conclusion.signature_text.unwrap_or_else(|| message.clone());
    Failure {
        details,
        retry_after: conclusion.retry_after,
        rejected: conclusion.rejected.into_iter().take(MAX_REJECTED).map(shown).collect(),
        ..of_verdict(conclusion.verdict, message, &recognised_by, conclusion.evidence)
    }
}

/// What follows from a verdict.
pub(super) fn of_verdict(verdict: Verdict, message: String, recognised_by: &str, evidence: Evidence) -> Failure {
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

/// What an agent said last, what its last tool that failed said, and what came on stderr: its records are for programs.
fn said_by(record: &AgentRecord, inputs: &Inputs<'_>) -> Option<String> {
    let room = excerpt::MAX_BYTES / 3;
    let bounded = |text: &str| {
        let mut text = redact(text.trim()).into_owned();
        if text.len() > room {
            text = excerpt::of_text(&Text::new(text.as_bytes()), None, room);
        }
        text
    };
    let stderr = (!inputs.stderr.is_empty()).then(|| excerpt::of_text(inputs.stderr, None, room));
    let last = record.final_text.as_deref().filter(|text| !text.trim().is_empty());
    let tool = record.tool_error.as_deref().filter(|text| !text.trim().is_empty());
    let parts = [
        last.map(|text| format!("Last words: {}", bounded(text))),
        tool.map(|text| format!("Last tool error: {}", bounded(text))),
        stderr,
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    (!text.is_empty()).then_some(text)
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
    if let Some(record) = inputs.record.filter(|record| record.structured) {
        return said_by(record, inputs);
    }
    let room = (excerpt::MAX_BYTES / spoken.len().max(1)).saturating_sub(1);
    let parts = spoken.iter().map(|(source, text)| {
        let line = evidence.line.filter(|_| evidence.source == *source);
        excerpt::of_text(text, line, room)
    });
    let text = parts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}
