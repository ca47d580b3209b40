//! The entries in agents' settings and git's hooks that call `recover hook`.
//! How they are put into a file that is there and taken out again; nothing else in the file changes.

pub mod script;
pub mod text;

use serde_json::{Map, Value, json};

use crate::model::hook::HookAgent;

/// What calls the hook. Nothing that it does may stand in an agent's way: whatever becomes of it, the answer is 0.
pub fn command(program: &str, agent: HookAgent) -> String {
    format!("{program}{}", tail(agent))
}

/// What our commands end with, and nobody else's.
fn tail(agent: HookAgent) -> String {
    format!("{} || true", call_of(agent))
}

fn call_of(agent: HookAgent) -> String {
    format!(" hook run {}", agent.as_str())
}

/// An event that the hook is called for.
struct Entry {
    event: &'static str,
    /// The tools that it is about; empty where the event knows none.
    matcher: &'static str,
    /// Seconds after which the agent gives up on the hook. It gives up on itself before.
    timeout: u64,
}

const fn entry(event: &'static str, matcher: &'static str) -> Entry {
    Entry { event, matcher, timeout: 75 }
}

const CLAUDE: &[Entry] = &[
    entry("PreToolUse", "Edit|Write|MultiEdit|NotebookEdit|Bash|mcp__.*"),
    entry("PreCompact", ""),
    entry("Stop", ""),
    entry("StopFailure", ""),
    entry("SessionEnd", ""),
];

const CODEX: &[Entry] =
    &[entry("PreToolUse", "Bash|apply_patch|Edit|Write|mcp__.*"), entry("PreCompact", ""), entry("Stop", "")];

const GEMINI: &[Entry] = &[
    entry("BeforeTool", "write_file|replace|run_shell_command|mcp_.*"),
    entry("PreCompress", ""),
    entry("AfterAgent", ""),
    entry("SessionEnd", ""),
];

fn entries(agent: HookAgent) -> &'static [Entry] {
    match agent {
        HookAgent::Claude => CLAUDE,
        HookAgent::Codex => CODEX,
        HookAgent::Gemini => GEMINI,
        HookAgent::Opencode | HookAgent::Git => &[],
    }
}

/// The settings of an agent that is set up by JSON.
pub fn settings(agent: HookAgent, program: &str) -> Value {
    let mut hooks = Map::new();
    for Entry { event, matcher, timeout } in entries(agent) {
        // Gemini CLI counts milliseconds.
        let timeout = if agent == HookAgent::Gemini { timeout * 1000 } else { *timeout };
        let mut hook = json!({"type": "command", "command": command(program, agent), "timeout": timeout});
        if agent == HookAgent::Gemini {
            hook["name"] = json!("recover");
        }
        let mut group = Map::new();
        if !matcher.is_empty() {
            group.insert("matcher".to_owned(), json!(matcher));
        }
        group.insert("hooks".to_owned(), json!([hook]));
        hooks.insert((*event).to_owned(), json!([group]));
    }
    json!({"hooks": hooks})
}

/// A file that does not look as the agent's settings must; says what is wrong.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct NotSettings(String);

/// The settings with ours in them: added at the end of each event's list, in place of what an earlier version put there.
pub fn with_ours(mut existing: Value, agent: HookAgent, program: &str) -> Result<Value, NotSettings> {
    let Value::Object(ours) = settings(agent, program)["hooks"].take() else { return Ok(existing) };
    let hooks = hooks_of(&mut existing)?;
    let events: Vec<String> = hooks.keys().chain(ours.keys()).cloned().collect();
    for event in events {
        let wanted = ours.get(&event).and_then(Value::as_array).and_then(|groups| groups.first());
        // What is no list cannot hold ours.
        if wanted.is_none() && !hooks.get(&event).is_some_and(Value::is_array) {
            continue;
        }
        let list = hooks.entry(event.clone()).or_insert_with(|| json!([]));
        let groups = list.as_array_mut().ok_or_else(|| NotSettings(format!("hooks.{event} is no list")))?;
        if wanted.is_some_and(|wanted| groups.contains(wanted)) {
            continue;
        }
        let taken = without(groups, agent);
        if let Some(wanted) = wanted {
            groups.push(wanted.clone());
        } else if taken && groups.is_empty() {
            hooks.shift_remove(&event);
        }
    }
    Ok(existing)
}

/// The settings without ours. What is empty then because of that goes too.
pub fn without_ours(mut existing: Value, agent: HookAgent) -> Result<Value, NotSettings> {
    if existing.is_object() && existing.get("hooks").is_none() {
        return Ok(existing);
    }
    let hooks = hooks_of(&mut existing)?;
    let mut taken = false;
    let events: Vec<String> = hooks.keys().cloned().collect();
    for event in events {
        // What is no list cannot hold ours.
        let Some(groups) = hooks.get_mut(&event).and_then(Value::as_array_mut) else { continue };
        if without(groups, agent) {
            taken = true;
            if groups.is_empty() {
                hooks.shift_remove(&event);
            }
        }
    }
    let empty = hooks.is_empty();
    if taken
        && empty
        && let Some(settings) = existing.as_object_mut()
    {
        settings.shift_remove("hooks");
    }
    Ok(existing)
}

fn hooks_of(settings: &mut Value) -> Result<&mut Map<String, Value>, NotSettings> {
    let all = settings.as_object_mut().ok_or_else(|| NotSettings("it holds no JSON object".to_owned()))?;
    let hooks = all.entry("hooks").or_insert_with(|| json!({}));
    hooks.as_object_mut().ok_or_else(|| NotSettings("its hooks are no JSON object".to_owned()))
}

/// Takes our hooks out of an event's list, with the groups that held nothing else; whether there were any.
fn without(groups: &mut Vec<Value>, agent: HookAgent) -> bool {
    let is_ours = |hook: &Value| hook["command"].as_str().is_some_and(|command| is_ours(command, agent));
    let mut taken = false;
    groups.retain_mut(|group| {
        let Some(hooks) = group.get_mut("hooks").and_then(Value::as_array_mut) else { return true };
        let before = hooks.len();
        hooks.retain(|hook| !is_ours(hook));
        taken |= hooks.len() < before;
        hooks.len() == before || !hooks.is_empty()
    });
    taken
}

/// Whether a command is one of ours, also where somebody gave it a flag or took the `|| true` off.
fn is_ours(command: &str, agent: HookAgent) -> bool {
    let Some((program, rest)) = command.split_once(&call_of(agent)) else { return false };
    let edited = || program.contains("recover") && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
    command.ends_with(&tail(agent)) || edited()
}

/// Whether a file may hold one of our commands at all.
pub fn may_hold_ours(text: &str, agent: HookAgent) -> bool {
    text.contains(&call_of(agent))
}

/// What a file's lines are indented by, so that it keeps its look; two spaces where nothing is indented.
pub fn indent_of(text: &str) -> &str {
    let indented = text.lines().skip(1).find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    indented.map_or("  ", |line| &line[..line.len() - line.trim_start().len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_can_be_taken_away_again() {
        let theirs = json!({
            "permissions": {"allow": ["Bash(ls)"]},
            "hooks": {
                "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}],
                "Notification": [{"hooks": [{"type": "command", "command": "notify-send"}]}]
            },
            "model": "opus"
        });
        for agent in [HookAgent::Claude, HookAgent::Codex, HookAgent::Gemini] {
            let added = with_ours(theirs.clone(), agent, "recover").unwrap();
            assert_eq!(added["hooks"]["PreToolUse"][0], theirs["hooks"]["PreToolUse"][0]);
            assert_eq!(added["hooks"]["Notification"], theirs["hooks"]["Notification"]);
            let keys: Vec<&String> = added.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["permissions", "hooks", "model"]);
            assert_eq!(with_ours(added.clone(), agent, "recover").unwrap(), added, "installing twice changes nothing");
            let moved = with_ours(added.clone(), agent, "/opt/recover").unwrap();
            assert_eq!(moved.to_string().matches(" hook run ").count(), entries(agent).len(), "in place of the old");
            assert_eq!(without_ours(moved, agent).unwrap(), theirs);
        }
        let alone = with_ours(json!({}), HookAgent::Claude, "recover").unwrap();
        assert_eq!(alone, settings(HookAgent::Claude, "recover"));
        assert_eq!(without_ours(alone, HookAgent::Claude).unwrap(), json!({}));
        // Another agent's, and what somebody wrote by hand, are not ours to take.
        let hand = json!({"hooks": {"Stop": [{"hooks": [{"command": "recover checkpoint create"}]}], "Empty": []}});
        assert_eq!(without_ours(hand.clone(), HookAgent::Claude).unwrap(), hand);
        assert_eq!(without_ours(json!({"a": 1}), HookAgent::Claude).unwrap(), json!({"a": 1}));
    }

    #[test]
    fn a_group_of_theirs_keeps_their_hooks() {
        let ours = command("recover", HookAgent::Claude);
        let mixed = json!({"hooks": {"Stop": [{"hooks": [{"command": "theirs"}, {"command": ours}]}]}});
        let left = without_ours(mixed, HookAgent::Claude).unwrap();
        assert_eq!(left, json!({"hooks": {"Stop": [{"hooks": [{"command": "theirs"}]}]}}));
    }

    #[test]
    fn what_is_no_settings_file_is_told() {
        for wrong in [json!([]), json!(3), json!({"hooks": []}), json!({"hooks": {"Stop": {}}})] {
            assert!(with_ours(wrong.clone(), HookAgent::Claude, "recover").is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_below_hooks_and_no_event_of_ours_stays() {
        let theirs = json!({"hooks": {"enabled": true, "Notification": {"a": 1}}});
        for agent in [HookAgent::Claude, HookAgent::Codex, HookAgent::Gemini] {
            let added = with_ours(theirs.clone(), agent, "recover").unwrap();
            assert_eq!(added["hooks"]["enabled"], true);
            assert_eq!(added["hooks"]["Notification"], theirs["hooks"]["Notification"]);
            assert_eq!(without_ours(added, agent).unwrap(), theirs);
        }
    }

    #[test]
    fn the_indent_is_the_files_own() {
        for (text, indent) in [("{\n    \"a\": 1\n}", "    "), ("{\n\t\"a\": 1\n}", "\t"), ("{}", "  "), ("", "  ")] {
            assert_eq!(indent_of(text), indent, "{text}");
        }
    }
}
