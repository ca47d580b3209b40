//! What feedback loops said, in a few words.

use std::time::Duration;

use crate::model::feedback::FeedbackResult;

use super::super::ui::escape;

/// The counts where they are known, and the summary where it says something else.
pub fn said(result: &FeedbackResult) -> String {
    let counts = match (result.passed_count, result.failed_count) {
        (None, None) => return escape(&result.summary),
        (passed, failed) => format!("{} passed, {} failed", passed.unwrap_or(0), failed.unwrap_or(0)),
    };
    if result.flaky || result.exit_code.is_none() { format!("{counts}: {}", escape(&result.summary)) } else { counts }
}

/// `1.2s`.
pub fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}
