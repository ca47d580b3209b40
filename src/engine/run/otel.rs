//! Sends the trace of a run that has ended to the user's OpenTelemetry receiver.
//!
//! Plain HTTP is spoken here; `https` is left to `curl`, which gets the URL, the headers and the trace on its stdin.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
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

type Sent = Result<(), String>;

/// Sends the trace where the user's configuration names a receiver. What goes wrong is a warning, and changes nothing else.
pub(super) fn send(context: &Context, run: &Run) {
    let otel = &context.settings().otel;
    let Some(endpoint) = &otel.endpoint else {
        return;
    };
    let base = endpoint.trim_end_matches('/');
    let url = format!("{}{PATH}", base.strip_suffix(PATH).unwrap_or(base));
    let trace = redact_json(otlp(run, context.clock.now())).to_string();
    let sent = if url.starts_with("https://") {
        by_curl(context, &url, &otel.headers, &trace)
    } else {
        by_hand(url.clone(), otel.headers.clone(), trace)
    };
    if let Err(error) = sent {
        tracing::warn!("the trace was not sent to {}: {error}", escape(&url));
    }
}

/// Sends it over plain HTTP. A name that is looked up for long, or a receiver that says nothing, is waited for no longer
/// than the limit.
fn by_hand(url: String, headers: Vec<String>, trace: String) -> Sent {
    let (done, answer) = mpsc::channel();
    thread::spawn(move || done.send(post(&url, &headers, &trace)));
    answer
        .recv_timeout(LIMIT)
        .unwrap_or_else(|_| Err(format!("no answer within {} s", LIMIT.as_secs())))
}

fn post(url: &str, headers: &[String], trace: &str) -> Sent {
    let rest = url
        .strip_prefix("http://")
        .ok_or("the URL has to begin with http:// or https://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
    let address = if has_port {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(&address).map_err(failed)?;
    stream.set_read_timeout(Some(LIMIT)).map_err(failed)?;
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n",
        trace.len()
    );
    for header in headers {
        if header.chars().any(char::is_control) {
            return Err("a header has a control character".to_owned());
        }
        request += &format!("{header}\r\n");
    }
    stream
        .write_all((request + "\r\n" + trace).as_bytes())
        .map_err(failed)?;
    let mut status = String::new();
    BufReader::new(stream)
        .read_line(&mut status)
        .map_err(failed)?;
    match status.split(' ').nth(1) {
        Some(code) if code.starts_with('2') => Ok(()),
        _ => Err(format!("it answered {}", escape(status.trim()))),
    }
}

/// Sends it by `curl`, whose configuration on stdin no list of processes shows.
fn by_curl(context: &Context, url: &str, headers: &[String], trace: &str) -> Sent {
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
        deadline: Some(LIMIT),
        ..Supervised::new(
            Program::Argv(words.map(OsString::from).into()),
            Path::new("/").to_owned(),
        )
    };
    let exit = curl
        .run(&context.interrupts, |_| Ok(()))
        .map_err(|error| format!("https needs curl: {error}"))?;
    if exit.exit_code == Some(0) {
        return Ok(());
    }
    if exit.spawn_error.is_some() {
        return Err("https needs curl, which cannot be started".to_owned());
    }
    let said = String::from_utf8_lossy(&exit.stderr.into_bytes()).into_owned();
    Err(escape(said.trim()))
}
