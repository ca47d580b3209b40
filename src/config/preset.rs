//! Configuration that comes with the program: presets, and the profiles of agents with the file's own on top.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;

use super::parse;
use super::rights::Owner;
use crate::policy::settings::AgentProfile;

/// Their texts by name, each that of the specification whose defaults they are.
const PRESETS: [(&str, &str); 5] = [
    ("battle", BATTLE),
    ("loop", LOOP),
    ("actions", ACTIONS),
    ("state", STATE),
    ("lane", LANE),
];

/// The text of a preset.
pub(super) fn text(name: &str) -> &'static str {
    let found = PRESETS.iter().find(|(known, _)| *known == name);
    found.map_or("", |(_, text)| *text)
}

/// Ten checkpoints and seven days; no other limit removes any.
const BATTLE: &str = r#"
[retention]
keep_last = 10
max_age = "7d"
keep_failed = true
keep_successful = true
max_per_session = "none"
on_success_keep_last = "none"
scheduled_max_age = "none"
"#;

/// One count for all errors: three attempts, five seconds apart, the state rolled back each time.
const LOOP: &str = r#"
[retry]
max_attempts = 3
[retry.causes]
BROKEN_BUILD = { max_attempts = 3, delay = "cooldown" }
VERIFICATION_FAILED = { max_attempts = 3, delay = "cooldown" }
INVALID_INPUT = { max_attempts = 3, delay = "cooldown" }
RESOURCE_NOT_FOUND = { max_attempts = 3, delay = "cooldown" }
TOOL_TIMEOUT = { max_attempts = 3, delay = "cooldown" }
RATE_LIMITED = { max_attempts = 3, delay = "cooldown" }
AUTH_FAILED = { max_attempts = 3, delay = "cooldown" }
NETWORK_ERROR = { max_attempts = 3, delay = "cooldown" }
PERMISSION_DENIED = { max_attempts = 3, delay = "cooldown" }
CRASHED = { max_attempts = 3, delay = "cooldown" }
UNKNOWN = { max_attempts = 3, delay = "cooldown", service_delay = "cooldown" }
[cooldown]
cooldown_ms = 5000
[rollback]
on_error = true
"#;

/// The thresholds of the recovery actions.
const ACTIONS: &str = r"
[retry.causes]
VERIFICATION_FAILED = { max_attempts = 3 }
UNKNOWN = { max_attempts = 2, service_max_attempts = 2 }
BROKEN_BUILD = { max_attempts = 1 }
";

/// The configuration block and the retry limits of state recovery; its retries are one attempt more.
const STATE: &str = r#"
[retry]
enabled = true
max_attempts = 3
base_delay = "1s"
max_delay = "30s"
task_max_attempts = 6
session_max_attempts = 21
[retry.causes]
NETWORK_ERROR = { max_retries = 5, delay = "exponential" }
RATE_LIMITED = { max_retries = 10, delay = "exponential" }
TOOL_TIMEOUT = { max_retries = 3, delay = "exponential" }
INVALID_INPUT = { max_retries = 2, delay = "immediate" }
RESOURCE_NOT_FOUND = { delay = "immediate" }
PERMISSION_DENIED = { max_retries = 1, delay = "conditional" }
BROKEN_BUILD = { delay = "exponential" }
VERIFICATION_FAILED = { delay = "exponential" }
CRASHED = { delay = "exponential" }
UNKNOWN = { delay = "exponential" }
[rollback]
enabled = true
[checkpoint]
enabled = true
interval = "5m"
every_operations = 10
[retention]
keep_last = 10
max_per_session = 20
max_age = "48h"
after_end = "0s"
on_success_keep_last = 3
on_failure = "keep_all"
scheduled_max_age = "30d"
[memory]
max_state_size = "100KiB"
"#;

/// The lane contract's own place for the records.
const LANE: &str = r#"
[checkpoint]
lane_file = ".claude/ai-dev-kit/run-logs/checkpoints.json"
"#;

/// The built-in ones.
const BUILT_IN: &str = include_str!("agents.toml");

/// All profiles by name; `own` are the values of the file by full key path.
pub(super) fn profiles<'a>(
    own: impl Iterator<Item = (&'a str, &'a Json)>,
) -> Result<BTreeMap<String, AgentProfile>, serde_json::Error> {
    let own = own.map(|(path, value)| (path.to_owned(), value.clone()));
    // The tests see to it that it can be read.
    let built_in = parse::parse(Path::new("agents.toml"), BUILT_IN, Owner::Project)
        .map(|document| document.file)
        .unwrap_or_default();
    let built_in = built_in
        .into_iter()
        .map(|(path, stored)| (path, stored.value));
    let mut all: BTreeMap<String, serde_json::Map<String, Json>> = BTreeMap::new();
    for (path, value) in built_in.chain(own) {
        let mut parts = path.splitn(3, '.').skip(1);
        if let (Some(name), Some(key)) = (parts.next(), parts.next()) {
            all.entry(name.to_owned())
                .or_default()
                .insert(key.to_owned(), value);
        }
    }
    let complete = |(name, mut keys): (String, serde_json::Map<String, Json>)| {
        keys.entry("program")
            .or_insert_with(|| Json::from(name.as_str()));
        Ok((name, serde_json::from_value(Json::Object(keys))?))
    };
    all.into_iter().map(complete).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profiles_are_read_and_the_file_changes_single_keys() {
        parse::parse(Path::new("agents.toml"), BUILT_IN, Owner::Project).unwrap();
        let all = profiles(std::iter::empty()).unwrap();
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "aider", "claude", "codex", "copilot", "gemini", "opencode", "qwen"
            ]
        );
        for (name, profile) in &all {
            assert!(
                profile.kind().is_some_and(|kind| kind.as_str() == name),
                "{name}"
            );
            assert!(!profile.yolo_args.is_empty(), "{name}");
        }
        assert!(!all["aider"].has_sessions());
        let model = serde_json::json!(["-p", "--model", "opus"]);
        let changed = profiles([("agent.claude.args", &model)].into_iter()).unwrap();
        assert_eq!(
            changed["claude"].command(false),
            [
                "claude",
                "-p",
                "--model",
                "opus",
                "--permission-mode",
                "acceptEdits"
            ]
        );
        assert_eq!(changed["codex"], all["codex"]);
    }
}
