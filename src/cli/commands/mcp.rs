//! `recover mcp`: a server of the Model Context Protocol on stdin and stdout, for agents that have no shell.
//!
//! One JSON-RPC message a line. Each tool is one command of this program, called as a script calls it: an agent that is
//! supervised may do nothing here that it may not do there.

use std::ffi::OsString;
use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::args::GlobalArgs;
use crate::engine::{Error, ErrorKind, Result};

/// Versions of the protocol in which the messages used here are the same, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Bytes of an answer; a longer one is cut, so that it fits into a conversation.
const MAX_TEXT_BYTES: usize = 60_000;
/// Bytes of an argument.
const MAX_ARGUMENT_BYTES: usize = 4_096;
/// A report of a run, between which its id stands.
const REPORT_URI: (&str, &str) = ("recover://runs/", "/report");

// Codes of JSON-RPC.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;
/// MCP's own: there is no such resource.
const RESOURCE_NOT_FOUND: i32 = -32_002;
const INTERNAL_ERROR: i32 = -32_603;

/// The parameters of all methods that are answered.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Params {
    protocol_version: Option<String>,
    name: Option<String>,
    arguments: Option<Map<String, Value>>,
    uri: Option<String>,
}

#[derive(Serialize)]
struct Failure {
    code: i32,
    message: String,
}

/// What a command printed, in an inner error where it failed.
type Called = std::result::Result<std::result::Result<String, String>, Failure>;

/// A command of this program that is offered as a tool.
struct Tool {
    name: &'static str,
    description: &'static str,
    /// The words of the command.
    command: &'static [&'static str],
    parameters: &'static [Parameter],
    is_read_only: bool,
}

/// A string that a tool takes.
struct Parameter {
    name: &'static str,
    description: &'static str,
    /// What stands before its value; nothing where the value is a word of its own.
    flag: &'static str,
    default: Option<&'static str>,
}

const fn parameter(
    (name, description): (&'static str, &'static str),
    flag: &'static str,
    default: Option<&'static str>,
) -> Parameter {
    Parameter {
        name,
        description,
        flag,
        default,
    }
}

const RUN: Parameter = parameter(("run", "run id [default: the latest here]"), "--run=", None);
/// Its answer is cut out of a document.
const EXPLAIN: &str = "explain";

const TOOLS: [Tool; 5] = [
    Tool {
        name: "status",
        description: "State of the supervised run in this folder: what passed, what failed, what changed, what can be done next.",
        command: &["status"],
        parameters: &[RUN],
        is_read_only: true,
    },
    Tool {
        name: EXPLAIN,
        description: "Why the last attempt failed: message, cause, evidence in its log, the decision and its reason, budgets.",
        command: &["status", "--json"],
        parameters: &[RUN],
        is_read_only: true,
    },
    Tool {
        name: "diff",
        description: "Patch from a checkpoint to another one, or to the work tree.",
        command: &["checkpoint", "diff", "--patch"],
        parameters: &[
            RUN,
            parameter(("path", "glob that limits it"), "--path=", None),
            parameter(
                (
                    "from",
                    "initial, good, latest, @1 or an id [default: latest]",
                ),
                "",
                Some("latest"),
            ),
            parameter(("to", "newer one [default: the work tree]"), "", None),
        ],
        is_read_only: true,
    },
    Tool {
        name: "checkpoint",
        description: "Take a checkpoint of the work tree, to which the user can roll back. Take one before a risky change.",
        command: &["checkpoint", "create"],
        parameters: &[parameter(
            ("description", "what is about to happen"),
            "--message=",
            None,
        )],
        is_read_only: false,
    },
    Tool {
        name: "preview_rollback",
        description: "What a rollback would restore and delete. Changes nothing.",
        command: &["rollback", "--dry-run"],
        parameters: &[
            RUN,
            parameter(
                ("to", "initial, good, latest, @1 or an id [default: good]"),
                "--to=",
                Some("good"),
            ),
        ],
        is_read_only: true,
    },
];

/// Answers until stdin ends.
///
/// # Errors
/// stdin or stdout fails.
pub(super) fn serve(global: &GlobalArgs) -> Result<()> {
    let failed = |error: io::Error| {
        let message = format!("cannot reach the client of recover mcp: {error}");
        Error::new(ErrorKind::Failed, message)
    };
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().split(b'\n') {
        if let Some(answer) = answer(global, &line.map_err(failed)?) {
            writeln!(stdout, "{answer}").map_err(failed)?;
        }
    }
    Ok(())
}

/// The answer to a line; `None` where none is due.
fn answer(global: &GlobalArgs, line: &[u8]) -> Option<Value> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let (id, answered) = match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => {
            let Some(method) = message.get("method").and_then(Value::as_str) else {
                return Some(error_of(None, &failure(INVALID_REQUEST, "no method")));
            };
            // A notification has no id, and no answer.
            let id = message.get("id")?.clone();
            let params = message.get("params").cloned();
            (Some(id), call(global, method, params))
        }
        Ok(_) => (None, Err(failure(INVALID_REQUEST, "not an object"))),
        Err(error) => (None, Err(failure(PARSE_ERROR, &error.to_string()))),
    };
    Some(match answered {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => error_of(id.as_ref(), &error),
    })
}

fn error_of(id: Option<&Value>, error: &Failure) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

fn failure(code: i32, message: &str) -> Failure {
    Failure {
        code,
        message: message.to_owned(),
    }
}

fn call(
    global: &GlobalArgs,
    method: &str,
    params: Option<Value>,
) -> std::result::Result<Value, Failure> {
    let params = params.filter(|params| !params.is_null());
    let params = params.map(serde_json::from_value::<Params>).transpose();
    let params = params.map_err(|error| failure(INVALID_PARAMS, &error.to_string()))?;
    let params = params.unwrap_or_default();
    match method {
        "initialize" => Ok(initialize(params.protocol_version.as_deref())),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": TOOLS.each_ref().map(described)})),
        "tools/call" => {
            let text = tool(
                global,
                &params.name.unwrap_or_default(),
                &params.arguments.unwrap_or_default(),
            )?;
            let (text, is_error) = match text {
                Ok(text) => (text, false),
                Err(text) => (text, true),
            };
            Ok(json!({"content": [{"type": "text", "text": shortened(text)}], "isError": is_error}))
        }
        "resources/list" => resources(global),
        "resources/templates/list" => {
            let (before, after) = REPORT_URI;
            let template = format!("{before}{{run}}{after}");
            Ok(json!({"resourceTemplates": [
                {"uriTemplate": template, "name": "report of a run", "mimeType": "text/markdown"}]}))
        }
        "resources/read" => {
            let (before, after) = REPORT_URI;
            let uri = params.uri.unwrap_or_default();
            let run = uri.strip_prefix(before);
            let run = run.and_then(|rest| rest.strip_suffix(after));
            let run = run.filter(|run| !run.is_empty() && !run.contains('/'));
            let none = || failure(RESOURCE_NOT_FOUND, &format!("no resource {uri}"));
            let report = recover(global, &["report", "--run", run.ok_or_else(none)?])?;
            let text = report.map_err(|error| failure(RESOURCE_NOT_FOUND, &error))?;
            Ok(json!({"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]}))
        }
        other => Err(failure(METHOD_NOT_FOUND, &format!("no method {other}"))),
    }
}

fn initialize(wanted: Option<&str>) -> Value {
    let version = VERSIONS.iter().find(|version| Some(**version) == wanted);
    json!({
        "protocolVersion": version.unwrap_or(&VERSIONS[0]),
        "capabilities": {"tools": {}, "resources": {}},
        "serverInfo": {"name": "recover", "version": env!("CARGO_PKG_VERSION")},
        "instructions": "recover supervises this project: it takes checkpoints and can roll back. Take a checkpoint before a \
            risky change. Rolling back is up to the user.",
    })
}

fn described(tool: &Tool) -> Value {
    let properties: Map<String, Value> = tool
        .parameters
        .iter()
        .map(|parameter| {
            let schema = json!({"type": "string", "description": parameter.description});
            (parameter.name.to_owned(), schema)
        })
        .collect();
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {"type": "object", "properties": properties, "additionalProperties": false},
        "annotations": {"readOnlyHint": tool.is_read_only, "destructiveHint": false, "openWorldHint": false},
    })
}

/// What the tool's command printed; in an inner error where it failed.
fn tool(global: &GlobalArgs, name: &str, arguments: &Map<String, Value>) -> Called {
    let invalid = |message: String| failure(INVALID_PARAMS, &message);
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| invalid(format!("no tool {name}")))?;
    for (argument, value) in arguments {
        if !tool.parameters.iter().any(|known| known.name == argument) {
            return Err(invalid(format!("{name} has no parameter {argument}")));
        }
        match value.as_str() {
            None => return Err(invalid(format!("{argument} is not a string"))),
            Some(text) if text.len() > MAX_ARGUMENT_BYTES => {
                return Err(invalid(format!("{argument} is too long")));
            }
            Some(_) => {}
        }
    }
    let mut line: Vec<String> = tool.command.iter().map(ToString::to_string).collect();
    let mut operands = vec!["--".to_owned()];
    for parameter in tool.parameters {
        let given = arguments.get(parameter.name).and_then(Value::as_str);
        let value = given
            .filter(|value| !value.is_empty())
            .or(parameter.default);
        match value {
            Some(value) if parameter.flag.is_empty() => operands.push(value.to_owned()),
            Some(value) => line.push(format!("{}{value}", parameter.flag)),
            None => {}
        }
    }
    if operands.len() > 1 {
        line.append(&mut operands);
    }
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let printed = recover(global, &line)?;
    Ok(if name == EXPLAIN {
        printed.map(|document| explained(&document))
    } else {
        printed
    })
}

/// Why it failed and what was decided, out of the document of `recover status`.
fn explained(document: &str) -> String {
    let mut status: Value = serde_json::from_str(document).unwrap_or_default();
    let mut retry = status["retry"].take();
    let explained = json!({
        "run": status["run"].take(),
        "failure": status["failure"].take(),
        "decision": retry["decision"].take(),
        "budgets": retry["budgets"].take(),
        "parked": retry["parked"].take(),
    });
    format!("{explained:#}")
}

/// A resource for the report of each run.
fn resources(global: &GlobalArgs) -> std::result::Result<Value, Failure> {
    let listed = recover(global, &["runs", "--json"])?;
    let document: Value = listed
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let runs = document["runs"].as_array().map_or(&[][..], Vec::as_slice);
    let resources = runs.iter().filter_map(|run| {
        let id = run["run_id"].as_str()?;
        let (before, after) = REPORT_URI;
        let name = format!("report of run {id}");
        Some(json!({"uri": format!("{before}{id}{after}"), "name": name, "mimeType": "text/markdown"}))
    });
    Ok(json!({"resources": resources.collect::<Vec<_>>()}))
}

/// Calls a command of this program; its errors and hints where it fails.
fn recover(global: &GlobalArgs, words: &[&str]) -> Called {
    let internal = |error: io::Error| {
        let message = format!("cannot start recover {}: {error}", words.join(" "));
        failure(INTERNAL_ERROR, &message)
    };
    let mut command = Command::new(std::env::current_exe().map_err(internal)?);
    command.args(["--color=never", "--no-pager", "--no-input"]);
    if global.dry_run {
        command.arg("--dry-run");
    }
    let paths = [
        ("-C", &global.directory),
        ("--state-dir", &global.state_dir),
    ];
    for (flag, path) in paths {
        if let Some(path) = path {
            command.args([OsString::from(flag), path.clone().into()]);
        }
    }
    let output = command
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(internal)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(Ok(text(&output.stdout)));
    }
    let code = output.status.code();
    let code = code.map_or_else(
        || output.status.to_string(),
        |code| format!("exit code {code}"),
    );
    Ok(Err(format!(
        "{}{}({code})",
        text(&output.stdout),
        text(&output.stderr)
    )))
}

/// The text up to [`MAX_TEXT_BYTES`].
fn shortened(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let begin = String::from_utf8_lossy(&text.as_bytes()[..MAX_TEXT_BYTES]);
    format!("{begin}\n... ({} bytes in all)\n", text.len())
}
