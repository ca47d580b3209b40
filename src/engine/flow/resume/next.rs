//! What a person may do after a resume.

use crate::engine::attempt::night::{night, outlook};
use crate::engine::base::context::Context;
use crate::engine::flow::run::Outcome;
use crate::model::decision::Standing;
use crate::model::hint::Hint;
use crate::policy::recommended::{Outlook, ToAccept, next_command};

use super::Resumed;

/// Commands that a person may want next.
pub(crate) fn next_actions(context: &Context, resumed: &Resumed) -> Vec<Hint> {
    let outcome = resumed.driven.as_ref().map(|driven| driven.outcome);
    if resumed.run.status.is_done() || outcome == Some(Outcome::Complete) {
        return Vec::new();
    }
    let Ok(loaded) = context.load() else {
        return ways_on(context, resumed, Outlook::default());
    };
    let night = night(context, &loaded.state, &resumed.run);
    let outlook = outlook(context, &loaded.state, &resumed.run, night.as_ref());
    let mut actions = ways_on(
        context,
        resumed,
        Outlook {
            to_accept: ToAccept::Nothing,
            ..outlook
        },
    );
    // As at all other places, what can be accepted is.
    if outlook.to_accept != ToAccept::Nothing {
        actions.splice(..0, night.and_then(|night| night.next));
    }
    actions
}

fn ways_on(context: &Context, resumed: &Resumed, outlook: Outlook) -> Vec<Hint> {
    let line = |words: Vec<&str>| context.hint_about(&resumed.run, &words);
    let is_fixed = resumed.run.is_being_fixed();
    match resumed.standing {
        Standing::Wait(_) => {
            vec![line(
                ["resume", "--wait"]
                    .into_iter()
                    .chain(resumed.again.iter().map(String::as_str))
                    .collect(),
            )]
        }
        Standing::Exhausted | Standing::NeedsPerson if is_fixed && outlook.unchecked => {
            vec![
                line(vec!["manual-fix", "abort"]),
                line(vec!["resume", "--strategy", "continue_next"]),
            ]
        }
        Standing::Exhausted | Standing::NeedsPerson if is_fixed => {
            vec![
                line(vec!["manual-fix", "verify"]),
                line(vec!["manual-fix", "continue"]),
            ]
        }
        Standing::Exhausted | Standing::NeedsPerson => {
            let recommended = next_command(&resumed.run, outlook);
            let with_context = vec!["resume", "--strategy", "retry_with_context"];
            let mut ways: Vec<_> = recommended.into_iter().collect();
            if !outlook.unchecked {
                ways.push(vec!["manual-fix", "start"]);
            }
            if !ways.contains(&with_context) {
                ways.push(with_context);
            }
            ways.into_iter().map(line).collect()
        }
        Standing::Allowed => vec![line(vec!["resume"])],
    }
}
