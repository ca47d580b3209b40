//! What a person may do after a resume.

use crate::engine::base::context::Context;
use crate::engine::flow::run::Outcome;
use crate::model::decision::Standing;
use crate::model::run::RunStatus;

use super::Resumed;

/// Commands that a person may want next.
pub fn next_actions(context: &Context, resumed: &Resumed) -> Vec<String> {
    let key = Some(&resumed.run.key);
    let outcome = resumed.driven.as_ref().map(|driven| driven.outcome);
    if resumed.run.status == RunStatus::Complete || outcome == Some(Outcome::Complete) {
        return Vec::new();
    }
    match resumed.standing {
        Standing::Wait(_) => vec![context.hint_command(key, &["resume", "--wait"])],
        Standing::Exhausted | Standing::NeedsPerson if resumed.run.manual_fix.is_some() => {
            vec![
                context.hint_command(key, &["manual-fix", "verify"]),
                context.hint_command(key, &["manual-fix", "continue"]),
            ]
        }
        Standing::Exhausted | Standing::NeedsPerson => vec![
            context.hint_command(key, &["manual-fix", "start"]),
            context.hint_command(key, &["resume", "--strategy", "retry_with_context"]),
        ],
        Standing::Allowed => vec![context.hint_command(key, &["resume"])],
    }
}
