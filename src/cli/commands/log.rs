//! What was recorded: `log` as it is, `report` in sentences (A6, S13, B1).

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::args::{LogArgs, ReportArgs, ReportFormat};
use super::super::render;
use super::super::replies::Document;
use super::super::ui::{Form, Paged, Reply, Ui, escape, verb};
use super::status::ended;
use crate::engine::base::runs;
use crate::engine::inspect::{pull_request_of, report_of_run, report_to_file};
use crate::engine::status::{Follow, Noticed};
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::event::{Event, EventSource};
use crate::model::run::RunKey;
use crate::model::time::Timestamp;
use crate::policy::report::{Report, html, markdown};
use crate::policy::secrets::{redact, redact_json, redacted_json_text};

/// What is recorded, an event each as it is in the ledger.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogReply {
    #[schemars(with = "Vec<EventLine>")]
    events: Vec<Value>,
}

/// An event of any version.
#[derive(JsonSchema)]
#[schemars(rename = "event")]
#[expect(
    dead_code,
    reason = "events are passed on as they are; only the schema is wanted"
)]
struct EventLine {
    seq: u64,
    at: Timestamp,
    schema: u32,
    #[serde(flatten)]
    run: Option<RunKey>,
    source: EventSource,
    #[serde(rename = "type")]
    kind: String,
    payload: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

/// `recover log`.
pub(super) fn log(context: &Context, args: &LogArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    if args.follow {
        return follow(context, args, ui);
    }
    let mut text = String::new();
    let mut documents = Vec::new();
    let events = first(context, args)?;
    // Who reads it sees the name of the only run once; a script has it in each line.
    let only = only_run(&events).filter(|_| ui.width.is_some());
    let ui = &ui.knowing(context);
    if let Some(run) = only {
        text.push_str(&format!("Run {}\n", escape(&run.to_string())));
    }
    for (event, line) in &events {
        let value = document_of(event, line).map_err(|error| {
            Error::new(ErrorKind::Corrupt, format!("event {}: {error}", event.seq))
        })?;
        text.push_str(&match only {
            Some(_) => render::event_line_of_run(ui, event, line),
            None => render::event_line(ui, event, line),
        });
        documents.push(value);
    }
    if documents.is_empty() {
        text.push_str("Nothing has been recorded.\n");
    }
    Ok(Reply::new(LogReply { events: documents }, text).paged(Paged::Text("log")))
}

/// An event as it was recorded; what of that cannot be shown, since another program wrote it, is left out.
fn document_of(event: &Event, line: &str) -> serde_json::Result<Value> {
    serde_json::from_str(line).or_else(|_| serde_json::to_value(event))
}

/// The run that all events are of which are of one.
fn only_run(events: &[(Event, String)]) -> Option<&RunKey> {
    let mut runs = events.iter().filter_map(|(event, _)| event.run.as_ref());
    let first = runs.next()?;
    runs.all(|run| run == first).then_some(first)
}

/// The events that are there, as far as they are asked for.
fn first(context: &Context, args: &LogArgs) -> Result<Vec<(Event, String)>> {
    let naming = context.naming();
    // Without a run the last lines are enough.
    let after = match args.limit.filter(|_| naming.run_id.is_none()) {
        Some(limit) => context.load()?.state.last_seq.saturating_sub(limit as u64),
        None => 0,
    };
    let mut events = chosen(context, context.store().read_lines(after)?);
    if let Some(id) = naming.run_id.as_ref().filter(|_| events.is_empty()) {
        // An error where there is no such run: every run begins with an event.
        runs::named(
            &context.load()?.state,
            id,
            naming.phase.as_deref(),
            naming.lane.as_deref(),
        )?;
    }
    if let Some(limit) = args.limit {
        events.drain(..events.len().saturating_sub(limit));
    }
    Ok(events)
}

/// Those of the run that was named, else all.
fn chosen(context: &Context, mut events: Vec<(Event, String)>) -> Vec<(Event, String)> {
    let naming = context.naming();
    if let Some(id) = &naming.run_id {
        let (phase, lane) = (naming.phase.as_deref(), naming.lane.as_deref());
        let of_run = |run: &RunKey| {
            run.run_id == *id
                && phase.is_none_or(|phase| run.phase == phase)
                && lane.is_none_or(|lane| run.lane == lane)
        };
        events.retain(|(event, _)| event.run.as_ref().is_some_and(of_run));
    }
    events
}

/// Tells events as they come, until a signal does; with `--json` one a line, as they are in the document of `log`.
fn follow(context: &Context, args: &LogArgs, ui: &Ui) -> Result<Reply> {
    let mut follow = Follow::new(context)?;
    let mut last = context.load()?.state.last_seq;
    let mut events = first(context, args)?;
    events.retain(|(event, _)| event.seq <= last);
    loop {
        match tell(context, &events, ui) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ended(0)),
            written => written.context("cannot write to standard output")?,
        }
        if let Noticed::Stopped(code) = follow.wait(None) {
            return Ok(ended(code));
        }
        let new = context.store().read_lines(last)?;
        if let Some((event, _)) = new.last() {
            last = event.seq;
        } else if let Some(now) = Some(context.load()?.state.last_seq).filter(|now| *now < last) {
            ui.note("The ledger was rebuilt: new events appear from here on.");
            last = now;
        }
        events = chosen(context, new);
    }
}

fn tell(context: &Context, events: &[(Event, String)], ui: &Ui) -> io::Result<()> {
    let ui = &ui.knowing(context);
    let mut out = io::stdout().lock();
    for (event, line) in events {
        if ui.json {
            let document = redact_json(document_of(event, line)?);
            writeln!(out, "{document}")?;
            continue;
        }
        out.write_all(
            ui.fitted(render::event_line(ui, event, line).into(), Form::Text)
                .as_bytes(),
        )?;
    }
    out.flush()
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReportReply<'a> {
    report: &'a Report,
    /// The format of `content`, where one was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<ReportFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

/// A report that was written to a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReportFileReply<'a> {
    changed: bool,
    path: Cow<'a, str>,
    format: ReportFormat,
}

/// `recover report`.
pub(super) fn report(context: &Context, args: &ReportArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let report = report_of_run(context, args.subtask.as_deref())?;
    let file = args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"));
    let format = args
        .format
        .or_else(|| file.and_then(by_extension))
        .unwrap_or(ReportFormat::Md);
    if let Some(file) = file {
        let path = report_to_file(context, file, &written(context, &report, format)?)?;
        let verb = verb(context, "Would write", "Wrote");
        let document = ReportFileReply {
            changed: !context.dry_run(),
            path: path.to_string_lossy(),
            format,
        };
        return Ok(Reply::new(document, format!("{verb} {}\n", path.display())));
    }
    if ui.json {
        // Whoever asks for a form gets it, inside of the one document.
        let format = args.format.filter(|format| *format != ReportFormat::Json);
        let asked = format
            .map(|format| written(context, &report, format))
            .transpose()?;
        return Ok(Reply::new(
            ReportReply {
                report: &report,
                format,
                content: asked,
            },
            "",
        ));
    }
    // Whoever copies it takes it elsewhere; it is masked already.
    let form = if format == ReportFormat::Md {
        Form::Text
    } else {
        Form::Content
    };
    let mut text = written(context, &report, format)?;
    // The mark is for whoever looks for the report among other texts.
    if ui.width.is_some() && format == ReportFormat::Md && text.starts_with("<!--") {
        text = text.split_off(text.find('\n').map_or(0, |end| end + 1));
    }
    Ok(Reply::text(text).form(form).paged(Paged::Text("show")))
}

fn written(context: &Context, report: &Report, format: ReportFormat) -> Result<String> {
    match format {
        ReportFormat::Md => Ok(redact(&markdown(report)).into_owned()),
        // It is masked as it is written: what is escaped looks otherwise.
        ReportFormat::Html => Ok(html(report)),
        ReportFormat::Pr => Ok(redact(&pull_request_of(context)?).into_owned()),
        ReportFormat::Json => {
            let document = Document::new(
                "report",
                ReportReply {
                    report,
                    format: None,
                    content: None,
                },
                &[],
            );
            let text = redacted_json_text(&document);
            Ok(text.context("cannot write the report as JSON")? + "\n")
        }
    }
}

fn by_extension(path: &Path) -> Option<ReportFormat> {
    match path
        .extension()?
        .to_string_lossy()
        .to_ascii_lowercase()
        .as_str()
    {
        "md" | "markdown" => Some(ReportFormat::Md),
        "html" | "htm" => Some(ReportFormat::Html),
        "json" => Some(ReportFormat::Json),
        _ => None,
    }
}
