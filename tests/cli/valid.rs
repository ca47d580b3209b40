//! Holds documents against their schema: a validator for what `recover schema` uses, and no more.
//!
//! It is stricter than the schema in one way: what the schema does not know is an error, so that nothing is forgotten in it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

/// Says what is wrong with a document, by the schema of the command that it names.
pub fn problems(document: &Value) -> Vec<String> {
    static SCHEMAS: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
    let Some(command) = document["command"].as_str() else {
        return vec!["it names no command".to_owned()];
    };
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    if !schemas.contains_key(command) {
        // A mistyped command has no schema of its own; its error is one like any other.
        let schema = recover::testing::cli::of(command).unwrap_or_else(recover::testing::cli::all);
        schemas.insert(command.to_owned(), schema);
    }
    let schema = &schemas[command];
    // The last one is the error.
    let mut any = schema["anyOf"].as_array().cloned().unwrap_or_default();
    let error = any.pop().unwrap_or_default();
    // A run that stopped says how it stands, and why it stopped.
    let is_error = document.get("error").is_some() && document.get("outcome").is_none();
    let which = if is_error {
        error
    } else {
        serde_json::json!({"anyOf": any})
    };
    let mut found = Vec::new();
    check(schema, &which, document, "", &mut found);
    if let Some(hint) = document["error"]["hint"].as_str() {
        found.extend(no_command(hint).map(|why| format!("/error/hint: {why}: {hint}")));
    }
    found
}

/// Says why a hint is no command that can be copied: it runs a known program, and `recover` understands all of it.
fn no_command(hint: &str) -> Option<String> {
    let Some(words) = shlex::split(hint) else {
        return Some("the shell does not understand it".to_owned());
    };
    for command in words.split(|word| word == "&&") {
        match command.first().map(String::as_str) {
            Some("recover") => {
                let args = recover::testing::cli::expand_aliases(command.iter().map(Into::into));
                let parsed = recover::testing::cli::command().try_get_matches_from(args);
                if let Err(error) = parsed.map_err(|error| error.kind())
                    && error != clap::error::ErrorKind::DisplayHelp
                {
                    return Some(format!("recover does not understand it ({error})"));
                }
                let anywhere = command
                    .get(1)
                    .is_some_and(|word| word == "-C" || word == "schema");
                if !anywhere && command.last().is_none_or(|last| last != "--help") {
                    return Some("it works in one folder only".to_owned());
                }
            }
            Some("git") if command.get(1).is_some_and(|flag| flag == "-C") => {}
            // The user's own configuration is the same from any folder.
            Some("git")
                if command[1..].starts_with(&["config".to_owned(), "--global".to_owned()]) => {}
            Some("mkdir" | "readlink") => {}
            // What is in the way of ours goes out of it, by its whole path.
            Some("rm" | "mv") if command[1..].iter().all(|word| word.starts_with('/')) => {}
            Some("chmod") if command[1..].starts_with(&["-R".to_owned(), "u+rwX".to_owned()]) => {}
            Some("chmod") if command[1] == "u+rwx" => {}
            _ => return Some("it is no command".to_owned()),
        }
    }
    None
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(path) = schema["$ref"].as_str() {
        let name = path.trim_start_matches("#/$defs/");
        return match root["$defs"].get(name) {
            Some(definition) => check(root, definition, value, at, found),
            None => found.push(format!("{at}: {name} is not defined")),
        };
    }
    if let Some(any) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let tries = any.iter().map(|one| {
            let mut problems = Vec::new();
            check(root, one, value, at, &mut problems);
            problems
        });
        // What comes closest says most.
        let best = tries.min_by_key(Vec::len).unwrap_or_default();
        return found.extend(best);
    }
    if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
        found.push(format!("{at}: {value} is not {wanted}"));
    }
    if let Some(words) = schema["enum"]
        .as_array()
        .filter(|words| !words.contains(value))
    {
        found.push(format!("{at}: {value} is none of {words:?}"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| is_of(value, name)) {
        return found.push(format!("{at}: {value} is no {}", types.join(" or ")));
    }
    if schema["format"] == "date-time" && value.as_str().is_some_and(|text| !is_time(text)) {
        found.push(format!("{at}: {value} is no time"));
    }
    if let (Some(items), Value::Array(list)) = (schema.get("items"), value) {
        for (number, item) in list.iter().enumerate() {
            check(root, items, item, &format!("{at}/{number}"), found);
        }
    }
    if let (true, Value::Object(object)) = (schema["type"] == "object", value) {
        of_object(root, schema, object, at, found);
    }
}

fn of_object(
    root: &Value,
    schema: &Value,
    object: &Map<String, Value>,
    at: &str,
    found: &mut Vec<String>,
) {
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !object.contains_key(name) {
            found.push(format!("{at}/{name} is missing"));
        }
    }
    for (name, value) in object {
        match schema["properties"]
            .get(name)
            .or(schema.get("additionalProperties"))
        {
            Some(schema) => check(root, schema, value, &format!("{at}/{name}"), found),
            None => found.push(format!("{at}/{name} is not in the schema: {value}")),
        }
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// RFC 3339 in UTC, with milliseconds.
fn is_time(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    shape == "0000-00-00T00:00:00.000Z"
}
