//! The questions, in their order.

use super::api::{self, Reported};
use super::feedback;
use super::foreign;
use super::process::{self, Fact};
use super::rules::{AGENT, Family};
use super::scan::{Hit, Scan};
use super::summary;
use super::verdict::{AGENT_UNKNOWN, Verdict};
use crate::model::agent_record::{AgentKind, AgentRecord};
use crate::model::failure::{Cause, Evidence, EvidenceSource, FailureEvidence, LoopKind};
use crate::model::time::Timestamp;
use crate::policy::summary::Counts;
use crate::policy::text::{Line, Text};

/// Everything that is known of the attempt.
pub(super) struct Inputs<'a> {
    pub evidence: &'a FailureEvidence,
    pub record: Option<&'a AgentRecord>,
    pub stage: Option<LoopKind>,
    pub stderr: &'a Text,
    pub stdout: &'a Text,
    pub counts: Counts,
    pub now: Timestamp,
}

/// A verdict with its reasons.
pub(super) struct Conclusion {
    pub verdict: Verdict,
    pub evidence: Evidence,
    pub rejected: Vec<Evidence>,
    pub message: String,
    /// What the failure is recognised by, where that is not the message.
    pub signature_text: Option<String>,
    pub retry_after: Option<Timestamp>,
}

impl Conclusion {
    /// A verdict from one piece of evidence.
    pub(super) fn new(verdict: Verdict, evidence: Evidence, message: String) -> Self {
        Self { verdict, evidence, rejected: Vec::new(), message, signature_text: None, retry_after: None }
    }

    /// What the process shows.
    pub(super) fn of_fact(fact: Fact) -> Self {
        let Fact { rule, verdict, text } = fact;
        let source = EvidenceSource::Process;
        Self::new(verdict, Evidence { rule: rule.to_owned(), source, line: None, text: text.clone() }, text)
    }

    /// What a line says.
    pub(super) fn of_hit(hit: Hit<'_>) -> Self {
        let evidence = evidence_of(hit);
        let message = evidence.text.clone();
        Self::new(hit.rule.verdict, evidence, message)
    }

    /// What the agent reported.
    pub(super) fn of_report(reported: Reported, record: Option<&AgentRecord>, now: Timestamp) -> Self {
        let retry_after = api::retry_after(record, &reported, now);
        let Reported { rule, verdict, source, line, text, lost } = reported;
        let named = |rule: &str| Evidence { rule: rule.to_owned(), source, line, text: text.clone() };
        let rejected = lost.iter().map(|rule| named(rule.id)).collect();
        Self { rejected, retry_after, ..Self::new(verdict, named(rule), text.clone()) }
    }

    /// What a line shows by its shape.
    pub(super) fn of_line(rule: &str, verdict: Verdict, source: EvidenceSource, line: Line<'_>) -> Self {
        let text = line.to_text();
        let number = Some(line.number).filter(|number| *number > 0);
        Self::new(verdict, Evidence { rule: rule.to_owned(), source, line: number, text: text.clone() }, text)
    }

    /// What is left where nothing was said.
    pub(super) fn bare(rule: &str, verdict: Verdict, message: String) -> Self {
        let evidence =
            Evidence { rule: rule.to_owned(), source: EvidenceSource::Process, line: None, text: message.clone() };
        Self::new(verdict, evidence, message)
    }
}

/// A match as evidence.
pub(super) fn evidence_of(hit: Hit<'_>) -> Evidence {
    let line = Some(hit.line.number).filter(|number| *number > 0);
    Evidence { rule: hit.rule.id.to_owned(), source: hit.source, line, text: hit.line.to_text() }
}

/// Asks the questions.
pub(super) fn decide(inputs: &Inputs<'_>) -> Conclusion {
    let decided =
        || if inputs.stage == Some(LoopKind::Agent) { decide_agent(inputs) } else { feedback::decide(inputs) };
    summary::named(inputs).unwrap_or_else(decided)
}

fn decide_agent(inputs: &Inputs<'_>) -> Conclusion {
    let nothing = Text::default();
    let evidence = inputs.evidence;
    let signal = process::signal(evidence, None);
    let signal = signal.as_deref();
    let record = inputs.record;
    if let Some(fact) = process::time_limit(evidence, signal) {
        return Conclusion::of_fact(fact);
    }
    let cancelled = process::cancellation(evidence, signal);
    // "is_error: false" and a final error both beat a late status; an interruption before them does not.
    let ended = record.is_some_and(|record| record.final_error.is_some() || record.is_success);
    if let Some(fact) = cancelled.filter(|_| evidence.cancelled || evidence.signal.is_some() || !ended) {
        return Conclusion::of_fact(fact);
    }
    if let Some(fact) = process::crash(signal) {
        // The transcript quotes what it likes; only the program's own last words on stderr say why it died.
        let scan = Scan::new(inputs.stderr, &nothing, AGENT, false);
        let memory = scan.best(Family::Memory, AGENT).map(Conclusion::of_hit);
        return memory.unwrap_or_else(|| Conclusion::of_fact(fact));
    }
    if let Some(reported) = record.and_then(api::from_record) {
        return Conclusion::of_report(reported, record, inputs.now);
    }
    if let Some(fact) = process::not_started(evidence).or_else(|| process::shell_status(evidence, None)) {
        let scan = Scan::new(inputs.stderr, &nothing, AGENT, false);
        let tool = scan.best(Family::MissingTool, AGENT).map(Conclusion::of_hit);
        return tool.unwrap_or_else(|| Conclusion::of_fact(fact));
    }
    let structured = record.is_some_and(|record| record.structured);
    let stdout = if structured { &nothing } else { inputs.stdout };
    if let Some(foreign) = foreign::last_error(inputs.stdout).filter(|_| !structured)
        && let Some(reported) = api::from_record(&foreign)
    {
        return Conclusion::of_report(reported, Some(&foreign), inputs.now);
    }
    let scan = Scan::new(inputs.stderr, &nothing, AGENT, false);
    let said_scan = Scan::new(inputs.stderr, stdout, AGENT, false);
    let memory_or_machine = || {
        let families = [Family::Memory, Family::Machine, Family::MissingTool];
        let stderr = families.into_iter().find_map(|family| scan.best(family, AGENT));
        let stdout = || said_scan.best(Family::Machine, AGENT).filter(|hit| hit.line.bytes.starts_with(b"Error"));
        stderr.or_else(stdout).map(Conclusion::of_hit)
    };
    let said = said_scan.best(Family::Cancelled, AGENT).map(Conclusion::of_hit);
    if let Some(headed) = summary::headed(inputs) {
        let why = [Family::Memory, Family::Machine].into_iter().find_map(|family| said_scan.best(family, AGENT));
        return said.or_else(|| why.map(Conclusion::of_hit)).or_else(memory_or_machine).unwrap_or(headed);
    }
    if let Some(reported) = api::from_text(inputs.stderr, stdout) {
        // An errno says that the machine refused the program itself, whatever the words resemble.
        let errno = ["EACCES", "EPERM", "EROFS", "ENOSPC", "os error "].iter().any(|name| reported.text.contains(name));
        let vague = matches!(reported.verdict.cause, Cause::ResourceNotFound | Cause::Unknown | Cause::InvalidInput);
        // An interruption tears down connections; another error after it is another matter.
        let torn = matches!(reported.verdict.cause, Cause::NetworkError | Cause::Unknown);
        let later = |said: &Conclusion| reported.source == said.evidence.source && reported.line > said.evidence.line;
        if let Some(cancelled) = said.filter(|said| torn || !later(said)) {
            return cancelled;
        }
        if let Some(machine) = memory_or_machine().filter(|_| errno || vague) {
            return machine;
        }
        return Conclusion::of_report(reported, record, inputs.now);
    }
    if let Some(conclusion) = said.or_else(memory_or_machine) {
        return conclusion;
    }
    let gemini = record.is_some_and(|record| record.kind == AgentKind::Gemini);
    if let Some((rule, verdict)) = evidence.exit_code.filter(|_| gemini).and_then(api::verdict_of_gemini_exit) {
        return Conclusion::bare(rule, verdict, exit_text(evidence));
    }
    Conclusion::bare("agent.no-reason", AGENT_UNKNOWN, last_words(inputs))
}

/// The last thing that was said, for want of a reason.
pub(super) fn last_words(inputs: &Inputs<'_>) -> String {
    let last = inputs.stderr.lines().next_back().or_else(|| inputs.stdout.lines().next_back());
    last.map_or_else(|| exit_text(inputs.evidence), Line::to_text)
}

fn exit_text(evidence: &FailureEvidence) -> String {
    evidence.exit_code.map_or_else(|| "No exit status".to_owned(), |code| format!("Exit status {code}"))
}
