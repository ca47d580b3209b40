//! What earlier attempts teach the next one (A5).

use std::fmt::Write;

use crate::model::run::{Attempt, AttemptOutcome, Run};

/// The last attempts only: more would push the task itself out of sight.
const SHOWN: usize = 5;

/// The text for the next prompt; `None` before the first failure of this subtask.
pub fn hints(run: &Run, subtask: &str) -> Option<String> {
    let earlier: Vec<&Attempt> = run
        .attempts()
        .map(|(_, attempt)| attempt)
        .filter(|attempt| attempt.subtask == subtask && attempt.outcome == Some(AttemptOutcome::Failed))
        .collect();
    if earlier.is_empty() {
        return None;
    }
    let mut text = format!("Previous attempts: {}\n", earlier.len());
    for attempt in &earlier[earlier.len().saturating_sub(SHOWN)..] {
        let approach = attempt.approach.as_deref().unwrap_or("(approach not recorded)");
        let error = attempt.failure.as_ref().map_or("(no message)", |failure| failure.message.as_str());
        // Writing to a String cannot fail.
        let _ = write!(text, "\nAttempt {}: {approach} - FAILED\n  Error: {error}\n", attempt.number);
    }
    text.push_str("\nIMPORTANT: Try a DIFFERENT approach than previous attempts\n");
    text.push_str("Consider: different library, different pattern, or simpler implementation");
    Some(text)
}
