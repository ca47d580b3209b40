//! What an agent may do that asks by the Agent Client Protocol, and which of its calls a checkpoint comes before.

use serde_json::Value;

use super::hook::{ToolCallRisk, occasion};
use crate::model::hook::ToolCall;

/// Whether a call is permitted; `is_inside`: it names files, and each is in the work tree.
pub(crate) fn permits(kind: &str, is_inside: bool, yolo: bool) -> bool {
    match kind {
        "read" | "search" | "think" => true,
        "edit" | "delete" | "move" => is_inside || yolo,
        _ => yolo,
    }
}

/// The option to choose of those that are offered: only ever one that holds for this call alone.
pub(crate) fn choice(options: &Value, is_permitted: bool) -> Option<&str> {
    let wanted = if is_permitted {
        "allow_once"
    } else {
        "reject_once"
    };
    let mut options = options.as_array()?.iter();
    let option = options.find(|option| option["kind"] == wanted)?;
    option["optionId"].as_str()
}

/// What a call of this kind is to the work tree.
pub(crate) fn risk(kind: &str, call: &ToolCall) -> ToolCallRisk {
    match kind {
        "delete" => ToolCallRisk::Risky,
        "move" => ToolCallRisk::Edit,
        "execute" => occasion(&ToolCall {
            name: "bash".to_owned(),
            ..call.clone()
        }),
        _ => occasion(&ToolCall {
            name: kind.to_owned(),
            ..call.clone()
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stays_in_the_work_tree_is_permitted_and_no_more() {
        for kind in ["read", "search", "think"] {
            assert!(permits(kind, false, false), "{kind}");
        }
        for kind in ["edit", "delete", "move"] {
            assert!(permits(kind, true, false), "{kind}");
            assert!(!permits(kind, false, false), "{kind}");
        }
        for kind in ["execute", "fetch", "switch_mode", "other", "new"] {
            assert!(!permits(kind, true, false), "{kind}");
            assert!(permits(kind, false, true), "{kind}");
        }
    }

    #[test]
    fn only_an_option_for_this_call_is_chosen() {
        let options = json!([
            {"optionId": "always", "kind": "allow_always"},
            {"optionId": "once", "kind": "allow_once"},
            {"optionId": "never", "kind": "reject_always"},
            {"optionId": "no", "kind": "reject_once"},
        ]);
        assert_eq!(choice(&options, true), Some("once"));
        assert_eq!(choice(&options, false), Some("no"));
        let always = json!([{"optionId": "always", "kind": "allow_always"}]);
        assert_eq!(choice(&always, true), None);
        assert_eq!(choice(&json!("allow_once"), true), None);
    }

    #[test]
    fn a_deletion_and_a_command_that_destroys_are_risky() {
        let call = |command: Option<&str>| ToolCall {
            command: command.map(str::to_owned),
            ..ToolCall::default()
        };
        assert_eq!(risk("delete", &call(None)), ToolCallRisk::Risky);
        assert_eq!(risk("edit", &call(None)), ToolCallRisk::Edit);
        let removes = call(Some("rm -rf build"));
        assert_eq!(risk("execute", &removes), ToolCallRisk::Risky);
        assert_eq!(risk("execute", &call(Some("ls"))), ToolCallRisk::Operation);
        for kind in ["read", "search", "think", "fetch", "switch_mode", "other"] {
            assert_eq!(risk(kind, &call(None)), ToolCallRisk::Nothing, "{kind}");
        }
    }
}
