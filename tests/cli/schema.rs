//! `recover schema`: every document that any test here gets is held against it by `Ran::json`; this is the rest.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::env::TestEnv;

// It works anywhere, with and without --json, for a command and for all.
#[test]
fn the_schema_is_printed() {
    let env = TestEnv::plain();
    let text = env.recover(&["schema", "checkpoint", "create"]).expect(0).stdout;
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let required = schema["anyOf"][0]["required"].as_array().expect("a list");
    assert!(required.contains(&"checkpoint".into()) && schema["$defs"]["checkpoint"].is_object(), "{schema:#}");
    assert_eq!(env.json(0, &["schema", "checkpoint", "create"])["schema"], schema);
    let all: Value = serde_json::from_str(&env.recover(&["schema"]).expect(0).stdout).expect("JSON");
    assert!(all["anyOf"].as_array().expect("a list").len() > 30 && all["$defs"]["failure"].is_object());
    let refused = env.json(2, &["schema", "checkpoint"]);
    assert!(refused["error"]["message"].as_str().expect("a message").contains("checkpoint create"), "{refused}");
    env.json(2, &["schema", "nonsense"]);
}

// No command is forgotten: those that the help lists, and those below them.
#[test]
fn every_command_has_a_schema() {
    let mut tree = recover::cli::command();
    tree.build();
    let mut missing = BTreeSet::new();
    for command in tree.get_subcommands().filter(|command| !command.is_hide_set()) {
        let below: Vec<_> = command.get_subcommands().collect();
        let names: Vec<String> = match below.as_slice() {
            [] => vec![command.get_name().to_owned()],
            _ => below.iter().map(|sub| format!("{} {}", command.get_name(), sub.get_name())).collect(),
        };
        missing.extend(names.into_iter().filter(|name| recover::cli::schema::of(name).is_none()));
    }
    assert!(missing.is_empty(), "{missing:?}");
}

// The fields that the contract lists are required where they are always there.
#[test]
fn what_scripts_rely_on_is_required() {
    for (command, fields) in [
        ("run", &["run", "outcome", "iterations", "decision"][..]),
        (
            "resume",
            &["strategy", "prompt", "executed", "validation", "next_actions", "current_stage", "checkpoint_path"],
        ),
        ("resume", &["resume_hint", "rollback_hint", "outcome", "iterations", "decision", "run"]),
        ("rollback", &["changed", "result", "run", "resume_hint", "rollback_hint"]),
        ("checkpoint list", &["checkpoints"]),
        ("checkpoint diff", &["from", "to", "changes", "memory_updates"]),
        ("checkpoint prune", &["kept", "removed", "freed_bytes"]),
        ("checkpoint verify", &["checked", "problems"]),
        ("checkpoint export", &["path"]),
        ("manual-fix verify", &["session", "run"]),
        ("manual-fix continue", &["session", "run", "outcome"]),
        ("retry-status", &["can_retry", "retry_after", "wait_ms", "error_count", "max_attempts", "attempts_left"]),
        ("retry-status", &["is_recovering", "last_error", "last_error_at", "cooldown_until", "budgets", "decision"]),
        ("attempt fail", &["failure", "decision", "result", "checkpoint_id"]),
        ("attempt list", &["stuck_subtasks"]),
        ("classify", &["type", "cause", "conditions", "severity", "retryable", "recoverable", "suggested_action"]),
        ("classify", &["message", "details", "retry_after", "signature", "evidence", "rejected"]),
        ("step", &["step", "executed", "exit_code", "checkpoint_id", "rolled_back"]),
        ("status", &["run", "failure", "options", "manual_fix", "unfinished_operation", "checkpoints", "retry"]),
        ("log", &["events"]),
        ("doctor", &["problems", "repaired"]),
    ] {
        let schema = recover::cli::schema::of(command).expect("a schema");
        let required = schema["anyOf"][0]["required"].as_array().expect("a list");
        let missing: Vec<_> = fields.iter().filter(|field| !required.contains(&Value::from(**field))).collect();
        assert!(missing.is_empty(), "{command}: {missing:?}");
    }
}
