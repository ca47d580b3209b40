//! aider writes no records. It exits with 0 whatever the model did, so its text and the feedback loops have to judge.

use crate::model::agent_record::{AgentKind, AgentRecord};

/// Takes the session's cost from the last `Cost:` line, which is all that can be known.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Aider);
    for line in stdout.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        if let Some((_, after)) = line.split_once("message, $")
            && line.contains("Cost:")
        {
            record.cost_usd = after.split_whitespace().next().and_then(|cost| cost.parse().ok());
        }
    }
    record
}
