//! JSON Schema of the documents (`recover schema`), made from the types that are written.
//!
//! The tests hold every document that they see against it, both ways: what is required is there, and what is there is
//! known.

use itertools::Itertools as _;
use schemars::generate::SchemaSettings;
use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value, json};

use super::commands::{demo, hook, log};
use super::replies::{
    CompletionsReply, ConfigReply, NothingReply, PlanReply, Repository, SCHEMA_VERSION, SchemaReply,
};
use crate::engine::run::{self, own_loop};
use crate::engine::{
    accept, answers, bisect, checkpoint, doctor, exchange, forget, hook as engine_hook, init,
    inspect, isolated, manual_fix, remote, resume, runs, status, step, trust, vault,
};
use crate::model::failure::Failure;
use crate::store::views::AttemptHistory;

/// The dialect.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The fields of one document.
type Fields = fn(&mut SchemaGenerator) -> Schema;

macro_rules! documents {
    ($($command:literal => $($document:ty),+;)+) => {
        &[$(($command, &[$(<$document as JsonSchema>::json_schema),+])),+]
    };
}

/// What each command answers with: one document, or one of several (a dry run's plan).
const DOCUMENTS: &[(&str, &[Fields])] = documents! {
    "run" => answers::Ran, PlanReply<run::RunPlan>;
    "resume" => answers::ResumedRun;
    "rollback" => answers::Restored, answers::RestorePlan;
    "undo" => answers::Restored, answers::RestorePlan;
    "redo" => answers::Restored, answers::RestorePlan;
    "checkpoint create" => checkpoint::Created, checkpoint::CreatePlan;
    "checkpoint list" => inspect::CheckpointList;
    "checkpoint show" => inspect::Shown;
    "checkpoint diff" => inspect::Difference;
    "checkpoint restore" => answers::Restored, answers::RestorePlan;
    "checkpoint prune" => runs::Pruned;
    "checkpoint pin" => checkpoint::Pinned;
    "checkpoint unpin" => checkpoint::Pinned;
    "checkpoint verify" => doctor::VerifyReport;
    "checkpoint export" => exchange::Exported;
    "manual-fix" => manual_fix::Fix;
    "manual-fix start" => manual_fix::Fix;
    "manual-fix status" => manual_fix::Fix;
    "manual-fix watch" => manual_fix::Fix;
    "manual-fix verify" => manual_fix::Fix;
    "manual-fix abort" => manual_fix::Fix;
    "manual-fix continue" => answers::ContinuedFix, answers::PreparedFix;
    "retry-status" => status::RetryDocument;
    "attempt start" => own_loop::Started;
    "attempt pass" => answers::Passed;
    "attempt fail" => answers::Failed;
    "attempt list" => AttemptHistory;
    "classify" => Failure;
    "step" => step::StepReport;
    "status" => status::StatusDocument;
    "runs" => runs::Runs;
    "limits" => runs::limits::LimitList;
    "service install" => resume::service::Changes, PlanReply<resume::service::Changes>;
    "service uninstall" => resume::service::Changes, PlanReply<resume::service::Changes>;
    "service status" => resume::service::Status;
    "accept" => accept::Accepted;
    "discard" => answers::Restored, answers::RestorePlan;
    "bisect" => bisect::Found;
    "close" => runs::Closed;
    "forget" => forget::Forgotten;
    "restore-project" => vault::Vaults, vault::RestoredProject;
    "remote status" => remote::RemoteReport;
    "remote push" => remote::RemoteReport;
    "remote fetch" => remote::RemoteReport;
    "remote claim" => remote::RemoteReport;
    "remote release" => remote::RemoteReport;
    "remote prune" => remote::RemoteReport;
    "log" => inspect::EventLog;
    "report" => log::ReportReply, log::TeamReply, log::ReportFileReply;
    "import" => exchange::Imported, PlanReply<exchange::Imported>;
    "sync" => exchange::Synced;
    "worker" => isolated::worker::Work;
    "remote check" => remote::Checked;
    "trust" => trust::ProjectTrust, trust::Trusted;
    "init" => init::Initialised;
    "demo" => demo::Demo;
    "config" => ConfigReply;
    "doctor" => doctor::Report;
    "agents" => engine_hook::status::Agents;
    "hook print" => engine_hook::install::Printed;
    "hook install" => engine_hook::install::Changes, engine_hook::install::ChangesPlan;
    "hook uninstall" => engine_hook::install::Changes, engine_hook::install::ChangesPlan;
    "hook status" => engine_hook::status::Hooks;
    "plugin install" => engine_hook::install::Changes, engine_hook::install::ChangesPlan;
    "plugin uninstall" => engine_hook::install::Changes, engine_hook::install::ChangesPlan;
    "plugin status" => engine_hook::plugin_status::Plugins;
    "hook run" => engine_hook::call::Called, hook::TroubleReply;
    "completions" => CompletionsReply;
    "schema" => SchemaReply;
    "recover" => NothingReply;
    // What run --lanes answers with.
    "lanes" => isolated::lanes::Lanes;
    // What resume --interrupted answers with.
    "interrupted" => resume::interrupted::Interrupted;
    // What [notify] command reads.
    "notify" => run::Notification;
};

/// The commands that do without the repository, and whose documents say how it is.
const READS: [&str; 9] = [
    "status",
    "log",
    "runs",
    "report",
    "checkpoint list",
    "retry-status",
    "attempt list",
    "doctor",
    "hook status",
];

/// The commands that answer with a document.
pub(crate) fn commands() -> impl Iterator<Item = &'static str> {
    DOCUMENTS.iter().map(|(command, _)| *command)
}

/// The schema of what `recover COMMAND --json` prints: the command's document, or an error.
pub fn of(command: &str) -> Option<Value> {
    let (name, fields) = DOCUMENTS.iter().find(|(name, _)| *name == command)?;
    Some(schema(
        &format!("recover {name} --json"),
        fields.iter().map(|fields| (*name, *fields)),
    ))
}

/// The schema of any document.
pub fn all() -> Value {
    let documents = DOCUMENTS
        .iter()
        .flat_map(|(command, several)| several.iter().map(|fields| (*command, *fields)));
    schema("recover … --json", documents)
}

/// For people: of each command the fields of its document with their types, and the objects that several of them hold.
pub(crate) fn fields() -> Vec<(String, Vec<(String, String)>)> {
    let all = all();
    let documents = all["anyOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|document| Some((document["title"].as_str()?, document)));
    let objects = all["$defs"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, object)| (name.as_str(), object));
    let described = |(title, object): (&str, &Value)| {
        let fields: Vec<(String, String)> = object["properties"]
            .as_object()?
            .iter()
            .filter(|(name, _)| !["schema_version", "command", "warnings"].contains(&name.as_str()))
            .map(|(name, takes)| (name.clone(), type_text(takes, &all["$defs"])))
            .collect();
        (!fields.is_empty()).then(|| (title.to_owned(), fields))
    };
    documents.chain(objects).filter_map(described).collect()
}

/// A type in words: `string or null`, `list of checkpoint`.
fn type_text(schema: &Value, known: &Value) -> String {
    let text = |schema: &Value| type_text(schema, known);
    if let Some(path) = schema["$ref"].as_str() {
        let name = path.rsplit('/').next().unwrap_or(path);
        // What has no fields of its own is said on the spot.
        return if known[name].get("properties").is_some() {
            name.to_owned()
        } else {
            text(&known[name])
        };
    }
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .map(|word| {
                word.as_str()
                    .map_or_else(|| word.to_string(), str::to_owned)
            })
            .join(", ");
    }
    if schema.get("anyOf").is_some() {
        return schema["anyOf"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .join(" or ");
    }
    let one = |name: &str| match name {
        "array" => format!("list of {}", text(&schema["items"])),
        "object" => match schema["properties"].as_object() {
            Some(fields) => format!("{{{}}}", fields.keys().join(", ")),
            None => "object".to_owned(),
        },
        _ if schema["format"] == "date-time" && name == "string" => "time".to_owned(),
        name => name.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(one).join(" or "),
        _ => "any".to_owned(),
    }
}

fn schema(title: &str, documents: impl Iterator<Item = (&'static str, Fields)>) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut any: Vec<Value> = documents
        .map(|(command, fields)| {
            let mut document = begun(fields(&mut generator), json!({"const": command}));
            if READS.contains(&command)
                && let Some(Value::Object(properties)) = document.get_mut("properties")
            {
                properties.insert(
                    "repository".to_owned(),
                    generator.subschema_for::<Repository>().to_value(),
                );
            }
            document.insert("title".to_owned(), json!(format!("recover {command}")));
            Value::Object(document)
        })
        .collect();
    any.push(json!({"$ref": "#/$defs/error_document"}));
    let error = begun(
        answers::ErrorDocument::json_schema(&mut generator),
        json!({"type": "string"}),
    );
    let mut definitions = generator.take_definitions(true);
    definitions.insert("error_document".to_owned(), Value::Object(error));
    let mut definitions: Map<String, Value> = definitions
        .into_iter()
        .map(|(name, definition)| (snake_case(&name), definition))
        .collect();
    definitions.sort_keys();
    let schema = json!({"$schema": DIALECT, "title": title, "anyOf": any, "$defs": definitions});
    // It is an object.
    let Ok(mut schema) = Schema::try_from(schema) else {
        return Value::Null;
    };
    RecursiveTransform(plain).transform(&mut schema);
    schema.to_value()
}

/// A document with what each begins with, and the warnings that each may have.
fn begun(schema: Schema, command: Value) -> Map<String, Value> {
    let mut schema = match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    let mut all = Map::new();
    all.insert(
        "schema_version".to_owned(),
        json!({"const": SCHEMA_VERSION}),
    );
    all.insert("command".to_owned(), command);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        all.append(properties);
        all.insert(
            "warnings".to_owned(),
            json!({"type": "array", "items": {"type": "string"}}),
        );
        *properties = all;
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.splice(..0, [json!("schema_version"), json!("command")]);
    }
    schema
}

/// Leaves what documents are held to: neither the source's comments nor the widths of its numbers.
fn plain(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    for noise in [
        "description",
        "default",
        "minimum",
        "maximum",
        "uniqueItems",
    ] {
        schema.remove(noise);
    }
    if schema
        .get("format")
        .is_some_and(|format| format != "date-time")
    {
        schema.remove("format");
    }
    if let Some(Value::String(path)) = schema.get_mut("$ref") {
        *path = snake_case(path);
    }
    // One list of words, where each of them is described on its own.
    if let Some(words) = schema.get("oneOf").and_then(words) {
        *schema = Map::from_iter([
            ("type".to_owned(), json!("string")),
            ("enum".to_owned(), words),
        ]);
    }
    // What may be absent is not there at all where it is nothing.
    let required = schema.get("required").cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let is_required = |name: &String| {
            required
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == name))
        };
        properties
            .iter_mut()
            .filter(|(name, _)| !is_required(name))
            .for_each(|(_, property)| never_null(property));
    }
    // A time or `null`.
    if schema.contains_key("format")
        && let Some(Value::Array(types)) = schema.get("type")
    {
        let any = types.iter().map(|name| match name.as_str() {
            Some("string") => json!({"type": "string", "format": "date-time"}),
            _ => json!({"type": name}),
        });
        *schema = Map::from_iter([("anyOf".to_owned(), any.collect())]);
    }
}

/// The words of a choice of constants.
fn words(choice: &Value) -> Option<Value> {
    let one = |schema: &Value| match (schema.get("const"), schema.get("enum")) {
        (Some(word), None) => Some(vec![word.clone()]),
        (None, Some(Value::Array(words))) => Some(words.clone()),
        _ => None,
    };
    let all = choice
        .as_array()?
        .iter()
        .map(one)
        .collect::<Option<Vec<_>>>()?;
    Some(Value::Array(all.into_iter().flatten().collect()))
}

fn never_null(schema: &mut Value) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_slice() {
            schema["type"] = one.clone();
        }
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let other = schema
        .get("anyOf")
        .and_then(Value::as_array)
        .and_then(|any| match any.as_slice() {
            // What is but a text or nothing would be one type: it is written so where it may be `null` all the same.
            [other, null]
                if *null == json!({"type": "null"}) && *other != json!({"type": "string"}) =>
            {
                Some(other.clone())
            }
            _ => None,
        });
    if let Some(other) = other {
        *schema = other;
    }
}

/// Definitions are named as fields are.
fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase()
            && out.ends_with(|last: char| last.is_ascii_lowercase() || last.is_ascii_digit())
        {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::policy::secrets::may_hold_secret;

    /// What a schema says, and the definitions that it refers to.
    fn found(schema: &Value, keywords: &mut BTreeSet<String>, references: &mut BTreeSet<String>) {
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            keywords.insert(keyword.clone());
            match (keyword.as_str(), value) {
                ("properties" | "$defs", Value::Object(named)) => {
                    named
                        .values()
                        .for_each(|schema| found(schema, keywords, references));
                }
                ("$ref", Value::String(path)) => {
                    references.extend(path.strip_prefix("#/$defs/").map(str::to_owned));
                }
                (_, Value::Array(list)) => list
                    .iter()
                    .for_each(|schema| found(schema, keywords, references)),
                (_, value) => found(value, keywords, references),
            }
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_definition_is_used() {
        let schema = all();
        let (mut keywords, mut references) = (BTreeSet::new(), BTreeSet::new());
        found(&schema, &mut keywords, &mut references);
        let there: BTreeSet<String> = schema["$defs"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(references, there);
        // Two types of one name would be distinguished by a number.
        assert!(
            !there
                .iter()
                .any(|name| name.ends_with(|last: char| last.is_ascii_digit())),
            "{there:?}"
        );
        // What the tests' validator knows.
        let known = "$defs $ref $schema additionalProperties anyOf const enum format items oneOf properties required \
                     title type";
        assert_eq!(
            keywords,
            known.split_whitespace().map(str::to_owned).collect()
        );
    }

    #[test]
    fn a_commands_schema_holds_only_what_it_needs() {
        let schema = of("checkpoint pin").unwrap();
        let document = &schema["anyOf"][0];
        assert_eq!(
            document["required"],
            json!(["schema_version", "command", "checkpoint"])
        );
        assert_eq!(
            document["properties"]["command"],
            json!({"const": "checkpoint pin"})
        );
        assert!(
            schema["$defs"].get("checkpoint").is_some()
                && schema["$defs"].get("decision").is_none()
        );
        assert_eq!(of("checkpoint"), None);
    }

    #[test]
    fn what_may_be_absent_is_never_null() {
        let schema = all();
        let optional = &schema["$defs"]["checkpoint"]["properties"]["pin_note"];
        assert_eq!(optional, &json!({"type": "string"}));
        let nullable = &schema["$defs"]["checkpoint"]["properties"]["task_id"];
        assert_eq!(nullable, &json!({"type": ["string", "null"]}));
    }

    /// The names of the fields that a schema describes.
    fn names<'s>(schema: &'s Value, all: &mut BTreeSet<&'s str>) {
        let object = schema.as_object();
        all.extend(
            schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str()),
        );
        let inner = object.into_iter().flatten().map(|(_, value)| value);
        inner
            .chain(schema.as_array().into_iter().flatten())
            .for_each(|value| names(value, all));
    }

    // One that is looked at for a secret by its fields' names alone would be made into values for nothing.
    #[test]
    fn no_field_looks_like_that_of_a_secret() {
        let (schema, mut all) = (all(), BTreeSet::new());
        names(&schema, &mut all);
        assert!(all.len() > 200, "{}", all.len());
        for name in all {
            for value in [
                "\"a1b2c3d4e5f60718293a4b5c6d7e8f9001122334\"",
                "12345678",
                "{",
                "[\"a/b.c-d_e: 7 + 8, \\\"f\\\"\"]",
            ] {
                let line = format!("  \"{name}\": {value},");
                assert!(!may_hold_secret(&line), "{line}");
            }
        }
    }
}
