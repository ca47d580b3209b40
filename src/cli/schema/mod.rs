//! JSON Schema of the documents (`recover schema`).
//!
//! `documents.json` says in short what each command answers with; this makes the schema of it. The tests hold every
//! document that they see against it, both ways: what is required is there, and what is there is known.
//!
//! A shape is an object of properties (`name?` may be absent, `*` is any other name) or a text: `string`, `integer`,
//! `number`, `boolean`, `null`, `time`, `any`, `@NAME` for a definition, `SHAPE[]` for a list, `A|B` for either, and
//! `=a|b` for one of these words.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::ui::SCHEMA_VERSION;

/// The dialect.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

#[derive(serde::Deserialize)]
struct Shapes {
    documents: Map<String, Value>,
    definitions: Map<String, Value>,
}

// A file that cannot be read is a schema without commands, which the tests below would see.
static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let empty = || Shapes { documents: Map::new(), definitions: Map::new() };
    serde_json::from_str(include_str!("documents.json")).unwrap_or_else(|_| empty())
});

/// The commands that answer with a document.
pub fn commands() -> impl Iterator<Item = &'static str> {
    SHAPES.documents.keys().map(String::as_str)
}

/// The schema of what `recover COMMAND --json` prints: the command's document, or an error.
pub fn of(command: &str) -> Option<Value> {
    let title = format!("recover {command} --json");
    SHAPES.documents.contains_key(command).then(|| schema(&title, documents(command)))
}

/// The schema of any document.
pub fn all() -> Value {
    schema("recover … --json", commands().flat_map(documents).collect())
}

fn schema(title: &str, mut any: Vec<Value>) -> Value {
    any.push(json!({"$ref": "#/$defs/error_document"}));
    let mut schema = json!({"$schema": DIALECT, "title": title, "anyOf": any});
    schema["$defs"] = definitions(&schema);
    schema
}

/// What a command answers with: one document, or one of several (a dry run's plan).
fn documents(command: &str) -> Vec<Value> {
    let shapes = match SHAPES.documents.get(command) {
        Some(Value::Array(several)) => several.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    // Commands that answer alike share a shape.
    let shared = |shape: &'static Value| {
        let name = shape.as_str().and_then(|text| text.strip_prefix('@'));
        name.and_then(|name| SHAPES.definitions.get(name)).unwrap_or(shape)
    };
    let document = |shape: &'static Value| {
        let mut schema = expanded(shared(shape));
        begin(&mut schema, &json!({"const": command}));
        schema["title"] = json!(format!("recover {command}"));
        schema
    };
    shapes.iter().map(document).collect()
}

/// What every document begins with.
fn begin(schema: &mut Value, command: &Value) {
    let (Some(properties), Some(required)) =
        (schema["properties"].take().as_object().cloned(), schema["required"].take().as_array().cloned())
    else {
        return;
    };
    let mut all = Map::new();
    all.insert("schema_version".to_owned(), json!({"const": SCHEMA_VERSION}));
    all.insert("command".to_owned(), command.clone());
    all.extend(properties);
    all.insert("warnings".to_owned(), of_text("string[]"));
    schema["properties"] = Value::Object(all);
    schema["required"] =
        Value::Array([json!("schema_version"), json!("command")].into_iter().chain(required).collect());
}

/// The definitions that a schema refers to, and those that these refer to.
fn definitions(schema: &Value) -> Value {
    let mut found = Map::new();
    let mut open = BTreeSet::new();
    references(schema, &mut open);
    while let Some(name) = open.pop_first() {
        let Some(shape) = SHAPES.definitions.get(&name) else { continue };
        let mut definition = expanded(shape);
        if name == "error_document" {
            begin(&mut definition, &json!({"type": "string"}));
        }
        let mut more = BTreeSet::new();
        references(&definition, &mut more);
        found.insert(name, definition);
        open.extend(more.into_iter().filter(|name| !found.contains_key(name)));
    }
    found.sort_keys();
    Value::Object(found)
}

fn references(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            let name = map.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
            found.extend(name.map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

fn expanded(shape: &Value) -> Value {
    match shape {
        Value::String(text) => of_text(text),
        Value::Object(map) => of_object(map),
        _ => json!({}),
    }
}

fn of_object(map: &Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut schema = json!({"type": "object"});
    for (key, shape) in map {
        if key == "*" {
            schema["additionalProperties"] = expanded(shape);
        } else if let Some(name) = key.strip_suffix('?') {
            properties.insert(name.to_owned(), expanded(shape));
        } else {
            properties.insert(key.clone(), expanded(shape));
            required.push(json!(key));
        }
    }
    schema["properties"] = Value::Object(properties);
    schema["required"] = Value::Array(required);
    schema
}

fn of_text(text: &str) -> Value {
    if let Some(words) = text.strip_prefix('=') {
        return json!({"type": "string", "enum": words.split('|').map(str::trim).collect::<Vec<_>>()});
    }
    let parts: Vec<Value> = text.split('|').map(str::trim).map(of_word).collect();
    if let [one] = parts.as_slice() {
        return one.clone();
    }
    let plain = |part: &Value| part.as_object().filter(|map| map.len() == 1)?.get("type").cloned();
    match parts.iter().map(plain).collect::<Option<Vec<Value>>>() {
        Some(types) => json!({"type": types}),
        None => json!({"anyOf": parts}),
    }
}

fn of_word(word: &str) -> Value {
    if let Some(item) = word.strip_suffix("[]") {
        return json!({"type": "array", "items": of_word(item)});
    }
    match word {
        "any" => json!({}),
        "time" => json!({"type": "string", "format": "date-time"}),
        word => match word.strip_prefix('@') {
            Some(name) => json!({"$ref": format!("#/$defs/{name}")}),
            None => json!({"type": word}),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::checkpoint::{CheckpointType, StorageType, Verdict};
    use crate::model::decision::{Action, BudgetScope, Strategy};
    use crate::model::failure::{
        Cause, CauseDetail, Condition, EvidenceSource, FailureType, Severity, SuggestedAction,
    };
    use crate::model::manual_fix::ManualFixStatus;
    use crate::model::run::{AttemptOutcome, IterationStatus, RunStatus};
    use crate::model::snapshot::ChangeType;
    use crate::model::step::StepStatus;

    /// The words of a type, as its reader names them when it gets another one.
    fn words<T: serde::de::DeserializeOwned>() -> BTreeSet<String> {
        let error = serde_json::from_str::<T>("\"?\"").err().unwrap().to_string();
        error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
    }

    fn defined(name: &str) -> BTreeSet<String> {
        let definition = expanded(&SHAPES.definitions[name]);
        definition["enum"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn words_are_those_of_the_types() {
        let mut types = words::<FailureType>();
        // Read, not written.
        types.remove("claude_error");
        assert_eq!(defined("failure_type"), types);
        for (name, words) in [
            ("run_status", words::<RunStatus>()),
            ("iteration_status", words::<IterationStatus>()),
            ("attempt_outcome", words::<AttemptOutcome>()),
            ("severity", words::<Severity>()),
            ("cause", words::<Cause>()),
            ("condition", words::<Condition>()),
            ("suggested_action", words::<SuggestedAction>()),
            ("evidence_source", words::<EvidenceSource>()),
            ("cause_detail", words::<CauseDetail>()),
            ("action", words::<Action>()),
            ("strategy", words::<Strategy>()),
            ("budget_scope", words::<BudgetScope>()),
            ("verdict", words::<Verdict>()),
            ("storage_type", words::<StorageType>()),
            ("checkpoint_type", words::<CheckpointType>()),
            ("change_type", words::<ChangeType>()),
            ("step_status", words::<StepStatus>()),
            ("fix_status", words::<ManualFixStatus>()),
        ] {
            assert!(!words.is_empty(), "{name}");
            assert_eq!(defined(name), words, "{name}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_definition_is_used() {
        let schema = all();
        let mut named = BTreeSet::new();
        references(&schema, &mut named);
        let there: BTreeSet<String> = schema["$defs"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(named, there);
        let shapes = SHAPES.documents.values().flat_map(|shape| match shape {
            Value::Array(several) => several.clone(),
            one => vec![one.clone()],
        });
        let shared = shapes.filter_map(|shape| shape.as_str()?.strip_prefix('@').map(str::to_owned));
        let used: BTreeSet<String> = there.into_iter().chain(shared).collect();
        assert_eq!(SHAPES.definitions.keys().cloned().collect::<BTreeSet<_>>(), used);
    }

    #[test]
    fn shapes_become_schemas() {
        assert_eq!(expanded(&json!("string|null")), json!({"type": ["string", "null"]}));
        assert_eq!(expanded(&json!("@run|null")), json!({"anyOf": [{"$ref": "#/$defs/run"}, {"type": "null"}]}));
        assert_eq!(expanded(&json!("=a|b")), json!({"type": "string", "enum": ["a", "b"]}));
        assert_eq!(expanded(&json!("string[]")), json!({"type": "array", "items": {"type": "string"}}));
        let object = expanded(&json!({"a": "integer", "b?": "any", "*": "boolean"}));
        assert_eq!((&object["required"], &object["properties"]["b"]), (&json!(["a"]), &json!({})));
        assert_eq!(object["additionalProperties"], json!({"type": "boolean"}));
    }

    #[test]
    fn a_commands_schema_holds_only_what_it_needs() {
        let schema = of("checkpoint pin").unwrap();
        let document = &schema["anyOf"][0];
        assert_eq!(document["required"], json!(["schema_version", "command", "checkpoint"]));
        assert_eq!(document["properties"]["command"], json!({"const": "checkpoint pin"}));
        assert!(schema["$defs"].get("checkpoint").is_some() && schema["$defs"].get("decision").is_none());
        assert_eq!(of("checkpoint"), None);
    }
}
