//! Everything that is known of an attempt that failed.

use std::cell::OnceCell;

use super::check_summary::Counts;
use super::complaint::complaint;
use super::crash;
use super::scan::is_marked;
use crate::model::agent_record::AgentRecord;
use crate::model::failure::{EvidenceSource, FailureEvidence};
use crate::model::feedback::CheckKind;
use crate::model::time::Timestamp;
use crate::policy::patterns::Single;
use crate::policy::text::{Line, Text};

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

/// How near before the last line an error is that was marked as one.
const NEAR: u64 = 3;

/// What a program complained of last, or the error that it had marked as one right before. On stdout, where an agent's words
/// are, only what reports an error counts.
pub(super) fn complained(inputs: &Inputs<'_>) -> Option<String> {
    static REPORTS: Single = Single::new(
        r"(?i)\b(?:error|fail(?:ed|ure|s)?|fatal|cannot|can't|could not|couldn't|unable|denied|refused|invalid|missing|not found|no such|exception|panic)\b",
    );
    let is_transcript = inputs.record.is_some();
    let on_stdout = || {
        let last = complaint(inputs.stdout, false).filter(|_| !is_transcript)?;
        REPORTS.first_in(last.bytes).map(|_| last)
    };
    let last = complaint(inputs.stderr, false)
        .map(|last| marked_near(inputs.stderr, last))
        .or_else(|| Some(marked_near(inputs.stdout, on_stdout()?)))?;
    Some(last.to_text()).filter(|text| !crash::is_around(text))
}

fn marked_near<'a>(text: &'a Text, last: Line<'a>) -> Line<'a> {
    let is_near = |line: &Line<'_>| line.number < last.number && line.number + NEAR >= last.number;
    let mut marked = text.lines().rev().filter(is_near);
    let marked = marked.find(|line| is_marked(line.bytes));
    marked.filter(|_| !is_marked(last.bytes)).unwrap_or(last)
}
