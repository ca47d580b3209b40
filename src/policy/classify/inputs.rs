//! The classifier's input: output, exit status, agent record, stage.

use crate::model::agent_record::AgentRecord;
use crate::model::failure::FailureEvidence;
use crate::model::feedback::CheckKind;
use crate::model::time::Timestamp;
use crate::policy::check_summary::Counts;
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
}
