//! Lessons of earlier attempts for the next one's prompt (A5); commands to copy are `model::hint`.

use std::fmt::Write;

use crate::model::failure::Condition;
use crate::model::run::{Attempt, AttemptOutcome, Run};
use crate::policy::tamper::tampering_text;

/// The last attempts only: more would push the task itself out of sight.
const SHOWN: usize = 5;

/// The text for the next prompt; `None` before the first failure of this subtask.
pub(crate) fn hints(run: &Run, subtask: &str) -> Option<String> {
    let earlier: Vec<&Attempt> = run
        .iterations
        .attempts_on(subtask)
        .map(|(_, attempt)| attempt)
        .filter(|attempt| {
            attempt.outcome == Some(AttemptOutcome::Failed) && !attempt.was_interrupted()
        })
        .collect();
    if earlier.is_empty() {
        return None;
    }
    let mut text = format!("Previous attempts: {}\n", earlier.len());
    for attempt in &earlier[earlier.len().saturating_sub(SHOWN)..] {
        let approach = attempt
            .approach
            .as_deref()
            .unwrap_or("(approach not recorded)");
        let error = attempt
            .failure
            .as_ref()
            .map_or("(no message)", |failure| failure.message.as_str());
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\nAttempt {}: {approach} - FAILED\n  Error: {error}\n",
            attempt.number
        );
        for remark in remarks(attempt) {
            let _ = writeln!(text, "  Note: {remark}");
        }
    }
    text.push_str("\nIMPORTANT: Try a DIFFERENT approach than previous attempts\n");
    text.push_str("Consider: different library, different pattern, or simpler implementation");
    Some(text)
}

/// What the conditions of an attempt mean for the next one.
fn remarks(attempt: &Attempt) -> Vec<String> {
    let say = |condition: &Condition| match condition {
        Condition::Tampered => Some(format!(
            "tests were weakened ({}); restore them",
            tampering_text(&attempt.notes, "; ")
        )),
        Condition::BaselineFailing => {
            Some("this check was already failing before the first attempt".to_owned())
        }
        Condition::Productive => Some("it was changing files when its time was up".to_owned()),
        _ => None,
    };
    attempt.conditions.iter().filter_map(say).collect()
}

/// What to say after an attempt that passed and weakened what judges it; `None` after any other.
pub(crate) fn weakened(run: &Run) -> Option<String> {
    let last = run.iterations.last_ended()?;
    let passed = last.outcome == Some(AttemptOutcome::Passed);
    if !passed || !last.conditions.contains(&Condition::Tampered) {
        return None;
    }
    let mut text = "The previous iteration passed, but its tests were weakened:\n".to_owned();
    for note in &last.notes {
        let _ = writeln!(text, "- {note}");
    }
    text.push_str("\nRestore what was taken away, unless the task asks for it.");
    Some(text)
}
