//! The result of a classification step: type, cause and evidence.

use super::api::{self, Reported};
use super::inputs::Inputs;
use super::message;
use super::process::Fact;
use super::scan::Hit;
use super::verdict::Verdict;
use crate::model::agent_record::AgentRecord;
use crate::model::failure::{Evidence, EvidenceSource};
use crate::model::time::Timestamp;
use crate::policy::text::Line;

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
        let evidence = hit.evidence();
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

    /// Nothing explains the failure. A line that happens to be the last is no reason: it is what the failure is recognised by.
    pub(super) fn unexplained(rule: &str, verdict: Verdict, inputs: &Inputs<'_>) -> Self {
        let conclusion = Self::bare(rule, verdict, message::for_want_of_reason(inputs));
        Self { signature_text: Some(message::last_words(inputs)), ..conclusion }
    }

    /// What is left where nothing was said.
    pub(super) fn bare(rule: &str, verdict: Verdict, message: String) -> Self {
        let evidence =
            Evidence { rule: rule.to_owned(), source: EvidenceSource::Process, line: None, text: message.clone() };
        Self::new(verdict, evidence, message)
    }
}
