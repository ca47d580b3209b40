//! What agents' hooks get on stdin, read by one reader for all.
//! They have settled on much the same fields; what is not known is passed over.

use itertools::Itertools as _;
use serde_json::Value;

use crate::model::hook::{HookEvent, Moment, ToolCall, TurnFailure};

/// Reads one call of a hook.
pub fn read(input: &[u8]) -> Result<HookEvent, String> {
    let value: Value =
        serde_json::from_slice(input).map_err(|error| format!("no JSON on stdin: {error}"))?;
    let text = |names: &[&str]| first_text(&value, names);
    let event = text(&["hook_event_name"]).ok_or("the JSON on stdin has no hook_event_name")?;
    let moment = match event.as_str() {
        "PreToolUse" | "BeforeTool" => Moment::BeforeTool(tool_call(&value)),
        "UserPromptSubmit" | "BeforeAgent" => Moment::Prompt,
        "Stop" | "AfterAgent" => Moment::TurnEnded {
            stop_hook_active: value["stop_hook_active"].as_bool().unwrap_or(false),
        },
        "StopFailure" => Moment::TurnFailed(TurnFailure {
            error: text(&["error_type", "error"]),
            details: text(&["error_details", "error_message"]),
            last_message: text(&["last_assistant_message"]),
        }),
        "PreCompact" => Moment::Compacting,
        "SessionEnd" => Moment::SessionEnded,
        _ => Moment::Other { event },
    };
    Ok(HookEvent {
        session_id: text(&["session_id"]),
        cwd: text(&["cwd"]),
        moment,
    })
}

fn first_text(value: &Value, names: &[&str]) -> Option<String> {
    let texts = names
        .iter()
        .filter_map(|name| value.get(name).and_then(Value::as_str));
    texts
        .map(str::trim)
        .find(|text| !text.is_empty())
        .map(str::to_owned)
}

fn tool_call(value: &Value) -> ToolCall {
    let input = &value["tool_input"];
    let command = match &input["command"] {
        Value::String(line) => Some(line.clone()),
        // A program and its arguments; the last word of `bash -lc …` is a line itself.
        Value::Array(words) => Some(words.iter().filter_map(Value::as_str).join(" ")),
        _ => None,
    };
    ToolCall {
        name: first_text(value, &["tool_name"]).unwrap_or_default(),
        command: command.filter(|line| !line.trim().is_empty()),
        path: first_text(
            input,
            &[
                "file_path",
                "notebook_path",
                "absolute_path",
                "filePath",
                "path",
            ],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(json: &str) -> Moment {
        read(json.as_bytes()).unwrap().moment
    }

    #[test]
    fn calls_of_every_agent_are_read() {
        let edit = r#"{"session_id":"s","transcript_path":"/t","cwd":"/w","permission_mode":"default",
            "hook_event_name":"PreToolUse","tool_name":"Edit","tool_use_id":"u",
            "tool_input":{"file_path":"/w/a.rs","old_string":"a","new_string":"b"}}"#;
        let event = read(edit.as_bytes()).unwrap();
        assert_eq!(
            (event.session_id.as_deref(), event.cwd.as_deref()),
            (Some("s"), Some("/w"))
        );
        let call = ToolCall {
            name: "Edit".into(),
            command: None,
            path: Some("/w/a.rs".into()),
        };
        assert_eq!(event.moment, Moment::BeforeTool(call));
        let shell = r#"{"hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{"command":"rm -rf x"}}"#;
        let Moment::BeforeTool(call) = moment(shell) else {
            panic!()
        };
        assert_eq!(call.command.as_deref(), Some("rm -rf x"));
        let argv = r#"{"hook_event_name":"PreToolUse","tool_name":"shell","tool_input":{"command":["bash","-lc","ls"]}}"#;
        let Moment::BeforeTool(call) = moment(argv) else {
            panic!()
        };
        assert_eq!(call.command.as_deref(), Some("bash -lc ls"));
    }

    #[test]
    fn failures_and_ends_are_read() {
        let failed = r#"{"hook_event_name":"StopFailure","error":"rate_limit","error_details":"429 Too Many Requests",
            "last_assistant_message":"You've hit your session limit"}"#;
        let Moment::TurnFailed(failure) = moment(failed) else {
            panic!()
        };
        assert_eq!(
            (failure.error.as_deref(), failure.details.as_deref()),
            (Some("rate_limit"), Some("429 Too Many Requests"))
        );
        assert_eq!(
            moment(r#"{"hook_event_name":"Stop","stop_hook_active":true}"#),
            Moment::TurnEnded {
                stop_hook_active: true
            }
        );
        assert_eq!(
            moment(r#"{"hook_event_name":"AfterAgent"}"#),
            Moment::TurnEnded {
                stop_hook_active: false
            }
        );
        assert_eq!(
            moment(r#"{"hook_event_name":"PreCompact","trigger":"auto"}"#),
            Moment::Compacting
        );
        // Gemini CLI's comes before each request, whether anything is shortened or not; earlier versions installed it.
        for other in ["Notification", "PreCompress"] {
            assert_eq!(
                moment(&format!(
                    r#"{{"hook_event_name":"{other}","trigger":"auto"}}"#
                )),
                Moment::Other {
                    event: other.into()
                }
            );
        }
        for wrong in ["", "{", "[]", "{}", "3"] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
