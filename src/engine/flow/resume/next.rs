//! What a person may do after a resume.

use crate::engine::attempt::night::night;
use crate::engine::base::context::Context;
use crate::engine::flow::run::Outcome;
use crate::model::decision::Standing;
use crate::model::hint::Hint;

use super::Resumed;

/// Commands that a person may want next.
pub fn next_actions(context: &Context, resumed: &Resumed) -> Vec<String> {
    let outcome = resumed.driven.as_ref().map(|driven| driven.outcome);
    if resumed.run.status.is_done() || outcome == Some(Outcome::Complete) {
        return Vec::new();
    }
    let mut actions = ways_on(context, resumed);
    // As at all other places, what can be accepted is.
    if let Ok(loaded) = context.load()
        && let Some(night) = night(context, &loaded.state, &resumed.run)
        && night.acceptable
    {
        actions.splice(..0, night.next);
    }
    actions
}

fn ways_on(context: &Context, resumed: &Resumed) -> Vec<String> {
    let key = Some(&resumed.run.key);
    match resumed.standing {
        Standing::Wait(_) => vec![context.line(Hint::recover(["resume", "--wait"]).run(key))],
        Standing::Exhausted | Standing::NeedsPerson if resumed.run.manual_fix.is_some() => {
            vec![
                context.line(Hint::recover(["manual-fix", "verify"]).run(key)),
                context.line(Hint::recover(["manual-fix", "continue"]).run(key)),
            ]
        }
        Standing::Exhausted | Standing::NeedsPerson => vec![
            context.line(Hint::recover(["manual-fix", "start"]).run(key)),
            context.line(Hint::recover(["resume", "--strategy", "retry_with_context"]).run(key)),
        ],
        Standing::Allowed => vec![context.line(Hint::recover(["resume"]).run(key))],
    }
}
