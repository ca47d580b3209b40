//! `recover schema`: every document that any test here gets is held against it by `Ran::json`; this is the rest.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::env::TestEnv;

// It works anywhere, with and without --json, for a command and for all.
#[test]
fn the_schema_is_printed() {
    let env = TestEnv::plain();
    let text = env
        .recover(&["schema", "checkpoint", "create"])
        .expect(0)
        .stdout;
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    let required = schema["anyOf"][0]["required"].as_array().expect("a list");
    assert!(
        required.contains(&"checkpoint".into()) && schema["$defs"]["checkpoint"].is_object(),
        "{schema:#}"
    );
    assert_eq!(
        env.json(0, &["schema", "checkpoint", "create"])["schema"],
        schema
    );
    let all: Value =
        serde_json::from_str(&env.recover(&["schema"]).expect(0).stdout).expect("JSON");
    assert!(
        all["anyOf"].as_array().expect("a list").len() > 30 && all["$defs"]["failure"].is_object()
    );
    let refused = env.json(2, &["schema", "checkpoint"]);
    assert!(
        refused["error"]["message"]
            .as_str()
            .expect("a message")
            .contains("checkpoint create"),
        "{refused}"
    );
    env.json(2, &["schema", "nonsense"]);
}

// No command is forgotten: those that the help lists, and those below them.
#[test]
fn every_command_has_a_schema() {
    let mut tree = recover::testing::cli::command();
    tree.build();
    // browse is a screen, and refuses --json; mcp answers in its protocol.
    let mut missing = BTreeSet::new();
    for command in tree
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let below: Vec<_> = command.get_subcommands().collect();
        let names: Vec<String> = match below.as_slice() {
            [] => vec![command.get_name().to_owned()],
            _ => below
                .iter()
                .map(|sub| format!("{} {}", command.get_name(), sub.get_name()))
                .collect(),
        };
        missing.extend(
            names
                .into_iter()
                .filter(|name| !["browse", "mcp"].contains(&name.as_str()))
                .filter(|name| recover::testing::cli::of(name).is_none()),
        );
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// The schemas that one stands for: what it refers to, each of its alternatives.
fn alternatives<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    if let Some(path) = schema["$ref"].as_str() {
        return alternatives(root, &root["$defs"][path.trim_start_matches("#/$defs/")]);
    }
    match schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        Some(any) => any.iter().flat_map(|one| alternatives(root, one)).collect(),
        None => vec![schema],
    }
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

/// What is said below `keyword` by any of them.
fn said<'a>(schemas: &[&'a Value], keyword: &str) -> BTreeSet<&'a str> {
    schemas
        .iter()
        .flat_map(|schema| texts(&schema[keyword]))
        .collect()
}

/// The properties that each of the objects among them has.
fn required<'a>(schemas: &[&'a Value]) -> BTreeSet<&'a str> {
    let objects = schemas.iter().filter(|schema| schema["type"] == "object");
    let all = objects.map(|schema| {
        texts(&schema["required"])
            .into_iter()
            .collect::<BTreeSet<_>>()
    });
    all.reduce(|one, other| &one & &other).unwrap_or_default()
}

/// What they say of what is below: of each property, or of any item.
fn below<'a>(
    root: &'a Value,
    schemas: &[&'a Value],
    keyword: &str,
) -> BTreeMap<&'a str, Vec<&'a Value>> {
    let mut all: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for schema in schemas {
        match (&schema[keyword], keyword) {
            (Value::Object(map), "properties") => {
                map.iter().for_each(|(name, one)| {
                    all.entry(name).or_default().extend(alternatives(root, one));
                });
            }
            (Value::Null, _) => {}
            (one, _) => all.entry("*").or_default().extend(alternatives(root, one)),
        }
    }
    all
}

/// Says what documents by the schemas `new` do not hold any more for those who read them by the schemas `old`.
fn lost(old: (&Value, &[&Value]), new: (&Value, &[&Value]), at: &str, found: &mut Vec<String>) {
    let (was, is) = (said(old.1, "type"), said(new.1, "type"));
    if was != is {
        found.push(format!("{at} is {is:?}, was {was:?}"));
    }
    let (was, is) = (
        said(old.1, "enum"),
        &said(new.1, "enum") | &said(new.1, "const"),
    );
    found.extend(
        was.difference(&is)
            .map(|word| format!("{at} is never {word}")),
    );
    let (was, is) = (required(old.1), required(new.1));
    found.extend(
        was.difference(&is)
            .map(|name| format!("{at}/{name} may be missing")),
    );
    for keyword in ["properties", "items", "additionalProperties"] {
        let (before, after) = (below(old.0, old.1, keyword), below(new.0, new.1, keyword));
        for (name, before) in &before {
            let at = format!("{at}/{name}");
            match after.get(name) {
                Some(after) => lost((old.0, before), (new.0, after), &at, found),
                None => found.push(format!("{at} is gone")),
            }
        }
    }
}

/// What the documents of today do not hold that those of 0.1.1 held.
fn lost_since_0_1_1(new: &Value) -> Vec<String> {
    let old: Value =
        serde_json::from_str(include_str!("../../fixtures/schemas-0.1.1.json")).expect("JSON");
    let (before, after) = (by_command(&old), by_command(new));
    assert!(before.len() > 40, "{:?}", before.keys());
    let mut found = Vec::new();
    for (command, before) in &before {
        let after = after.get(command).map(Vec::as_slice).unwrap_or_default();
        lost((&old, before), (new, after), command, &mut found);
    }
    // `trust` without `--state` was a usage error; with it the document is what it was.
    found.retain(|lost| lost != "recover trust/state may be missing");
    found
}

fn by_command(root: &Value) -> BTreeMap<&str, Vec<&Value>> {
    let mut all: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for document in root["anyOf"].as_array().expect("a list") {
        // Errors are one document whatever the command is.
        let command = document["title"].as_str().unwrap_or("error");
        all.entry(command)
            .or_default()
            .extend(alternatives(root, document));
    }
    all
}

// Who reads a document by the schema of 0.1.1 finds every field in it, there and `null` just as before.
#[test]
fn no_field_of_0_1_1_is_lost() {
    let schema = recover::testing::cli::all();
    assert_eq!(lost_since_0_1_1(&schema), Vec::<String>::new());
    for (at, change) in [
        ("/$defs/run/properties", json!({})),
        (
            "/$defs/checkpoint/properties/task_id",
            json!({"type": "string"}),
        ),
        ("/$defs/decision/required", json!([])),
        ("/$defs/run_status/enum", json!(["pending"])),
        ("/anyOf/0/properties/iterations/items", json!({})),
    ] {
        let mut changed = schema.clone();
        *changed.pointer_mut(at).expect("a place") = change;
        assert!(!lost_since_0_1_1(&changed).is_empty(), "{at}");
    }
}

// The fields that the contract lists are required where they are always there.
#[test]
fn what_scripts_rely_on_is_required() {
    for (command, fields) in [
        ("run", &["run", "outcome", "iterations", "decision"][..]),
        (
            "resume",
            &[
                "strategy",
                "prompt",
                "executed",
                "validation",
                "next_actions",
                "current_stage",
                "checkpoint_path",
            ],
        ),
        (
            "resume",
            &[
                "resume_hint",
                "rollback_hint",
                "outcome",
                "iterations",
                "decision",
                "run",
            ],
        ),
        (
            "rollback",
            &["changed", "result", "run", "resume_hint", "rollback_hint"],
        ),
        ("checkpoint list", &["checkpoints"]),
        (
            "checkpoint diff",
            &["from", "to", "changes", "memory_updates"],
        ),
        ("checkpoint prune", &["kept", "removed", "freed_bytes"]),
        ("checkpoint verify", &["checked", "problems"]),
        ("checkpoint export", &["path"]),
        ("manual-fix verify", &["session", "run"]),
        ("manual-fix continue", &["session", "run", "outcome"]),
        (
            "retry-status",
            &[
                "can_retry",
                "retry_after",
                "wait_ms",
                "error_count",
                "max_attempts",
                "attempts_left",
            ],
        ),
        (
            "retry-status",
            &[
                "is_recovering",
                "last_error",
                "last_error_at",
                "cooldown_until",
                "budgets",
                "decision",
            ],
        ),
        (
            "attempt fail",
            &["failure", "decision", "result", "checkpoint_id"],
        ),
        ("attempt list", &["stuck_subtasks"]),
        (
            "classify",
            &[
                "type",
                "cause",
                "conditions",
                "severity",
                "retryable",
                "recoverable",
                "suggested_action",
            ],
        ),
        (
            "classify",
            &[
                "message",
                "details",
                "retry_after",
                "signature",
                "evidence",
                "rejected",
            ],
        ),
        (
            "step",
            &[
                "step",
                "executed",
                "exit_code",
                "checkpoint_id",
                "rolled_back",
            ],
        ),
        (
            "status",
            &[
                "run",
                "failure",
                "options",
                "manual_fix",
                "unfinished_operation",
                "checkpoints",
                "retry",
            ],
        ),
        ("log", &["events"]),
        ("doctor", &["problems", "repaired"]),
    ] {
        let schema = recover::testing::cli::of(command).expect("a schema");
        let required = schema["anyOf"][0]["required"].as_array().expect("a list");
        let missing: Vec<_> = fields
            .iter()
            .filter(|field| !required.contains(&Value::from(**field)))
            .collect();
        assert!(missing.is_empty(), "{command}: {missing:?}");
    }
}
