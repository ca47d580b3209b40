//! Qwen Code. Its records are those of Claude Code; earlier versions have those of Gemini CLI, from which it comes.

use super::{claude, gemini};
use crate::model::agent_record::Tokens;
use crate::model::agent_record::{AgentKind, AgentRecord};

/// Reads the stream; where it has none, the one document.
pub(super) fn read(stdout: &[u8], stderr: &[u8]) -> AgentRecord {
    let read = claude::read(stdout);
    let mut record = if read.structured {
        read
    } else {
        gemini::read(stdout, stderr)
    };
    if record.kind == AgentKind::Claude {
        // Of the input some came from the cache.
        // Without a result they are the sum of this attempt's answers.
        record.is_of_session = record.own_tokens.is_some();
        record.own_tokens = None;
        record.tokens = record.tokens.map(|tokens| {
            let input = tokens.input.saturating_sub(tokens.cache_read);
            Tokens::new(input, tokens.output, tokens.cache_read, tokens.cache_write)
        });
    }
    record.kind = AgentKind::Qwen;
    record
}
