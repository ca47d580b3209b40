//! What feedback loops said, in a few words.

use std::time::Duration;

use crate::model::feedback::FeedbackResult;

use super::super::ui::escape;

/// The counts where they are known, and the summary where it says something else.
pub(crate) fn said(result: &FeedbackResult) -> String {
    let counts = match (result.passed_count, result.failed_count) {
        (None, None) => return escape(&result.summary),
        (Some(passed), Some(failed)) => format!("{passed} passed, {failed} failed"),
        (Some(passed), None) => format!("{passed} passed"),
        // What counts errors alone, as a compiler does, says nothing of what is well.
        (None, Some(failed)) => format!("{failed} failed"),
    };
    if result.flaky || result.exit_code.is_none() {
        format!("{counts}: {}", escape(&result.summary))
    } else {
        counts
    }
}

/// `1.2s`.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}
