//! Everything that is known of an attempt that failed.

use std::cell::OnceCell;

use super::check_summary::Counts;
use super::complaint::complaint;
use super::crash;
use crate::model::agent_record::AgentRecord;
use crate::model::failure::{EvidenceSource, FailureEvidence};
use crate::model::feedback::CheckKind;
use crate::model::time::Timestamp;
use crate::policy::patterns::Single;
use crate::policy::text::Text;

/// Everything that is known of the attempt.
pub(super) struct Inputs<'a> {
    pub evidence: &'a FailureEvidence,
    pub record: Option<&'a AgentRecord>,
    pub stage: Option<CheckKind>,
    pub stderr: &'a Text,
    pub stdout: &'a Text,
    pub counts: Counts,
    pub now: Timestamp,
    /// The error that a program died of, as its runtime names it.
    pub raised: Option<(EvidenceSource, crash::Raised<'a>)>,
    /// The names of the tests that failed, once they are asked for.
    pub names: OnceCell<Vec<String>>,
}

impl<'a> Inputs<'a> {
    /// What was printed, the stronger evidence first.
    pub(super) fn streams(&self) -> [(EvidenceSource, &'a Text); 2] {
        [
            (EvidenceSource::Stderr, self.stderr),
            (EvidenceSource::Stdout, self.stdout),
        ]
    }

    /// The error that a program died of.
    pub(super) fn raised(&self) -> Option<&crash::Raised<'a>> {
        self.raised.as_ref().map(|(_, raised)| raised)
    }

    /// The same without their names.
    pub(super) fn texts(&self) -> [&'a Text; 2] {
        [self.stderr, self.stdout]
    }

    /// What was printed to one of them.
    pub(super) fn stream(&self, source: EvidenceSource) -> &'a Text {
        match source {
            EvidenceSource::Stderr => self.stderr,
            _ => self.stdout,
        }
    }
}

/// What a program complained of last. On stdout, where an agent's words are, only what reports an error counts.
pub(super) fn complained(inputs: &Inputs<'_>) -> Option<String> {
    static REPORTS: Single = Single::new(
        r"(?i)\b(?:error|fail(?:ed|ure|s)?|fatal|cannot|can't|could not|couldn't|unable|denied|refused|invalid|missing|not found|no such|exception|panic)\b",
    );
    let is_transcript = inputs.record.is_some();
    let on_stdout = || {
        let last = complaint(inputs.stdout, false).filter(|_| !is_transcript)?;
        REPORTS.first_in(last.bytes).map(|_| last)
    };
    let last = complaint(inputs.stderr, false).or_else(on_stdout)?;
    Some(last.to_text()).filter(|text| !crash::is_around(text))
}
