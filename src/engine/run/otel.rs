//! Sends the trace of a run that has ended to the user's OpenTelemetry receiver.
//!
//! `curl` sends it, and gets the URL, the headers and the trace on its stdin, which no list of processes shows.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::engine::base::context::Context;
use crate::model::run::Run;
use crate::policy::report::otlp;
use crate::policy::secrets::redact_json;
use crate::policy::text::escape;
use crate::process::{Program, Show, Supervised};

/// How long sending may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Where traces go below an endpoint.
const PATH: &str = "/v1/traces";

/// Sends the trace where the user's configuration names a receiver. What goes wrong is a warning, and changes nothing else.
pub(super) fn send(context: &Context, run: &Run) {
    let otel = &context.settings().otel;
    let Some(endpoint) = &otel.endpoint else {
        return;
    };
    let base = endpoint.trim_end_matches('/');
    let url = format!("{}{PATH}", base.strip_suffix(PATH).unwrap_or(base));
    let trace = redact_json(otlp(run, context.clock.now())).to_string();
    if let Err(error) = by_curl(context, &url, &otel.headers, &trace) {
        tracing::warn!("the trace was not sent to {}: {error}", escape(&url));
    }
}

fn by_curl(context: &Context, url: &str, headers: &[String], trace: &str) -> Result<(), String> {
    // The escapes of a string in curl's configuration are among JSON's.
    let mut config = format!("url = {}\ndata-binary = {}\n", json!(url), json!(trace));
    let own = "Content-Type: application/json".to_owned();
    for header in headers.iter().chain([&own]) {
        config += &format!("header = {}\n", json!(header));
    }
    let limit = LIMIT.as_secs().to_string();
    let words = [
        "curl",
        "-q",
        "--silent",
        "--show-error",
        "--fail",
        "--proto",
        "=http,https",
        "--max-time",
        &limit,
        "--output",
        "/dev/null",
        "--config",
        "-",
    ];
    let curl = Supervised {
        show: Show::Nothing,
        stdin: Some(config.into_bytes()),
        // It says itself what took too long.
        deadline: Some(2 * LIMIT),
        ..Supervised::new(
            Program::Argv(words.map(OsString::from).into()),
            Path::new("/").to_owned(),
        )
    };
    let exit = curl
        .run(&context.interrupts, |_| Ok(()))
        .map_err(|error| format!("curl cannot be started: {error}"))?;
    if exit.exit_code == Some(0) {
        return Ok(());
    }
    if exit.spawn_error.is_some() {
        return Err("curl cannot be started".to_owned());
    }
    let said = String::from_utf8_lossy(&exit.stderr.into_bytes()).into_owned();
    Err(escape(said.trim()))
}
