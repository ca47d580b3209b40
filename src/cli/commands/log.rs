//! What was recorded: `log` as it is, `report` in sentences (A6, S13, B1).

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, FixedOffset, Local};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::args::{LogArgs, ReportArgs, ReportFormat};
use super::super::render;
use super::super::replies::Document;
use super::super::ui::{Form, Paged, Reply, Ui, escape, verb};
use super::status::ended;
use crate::engine::{Context, Error, ErrorKind, Result, inspect, remote, status};
use crate::model::event::Event;
use crate::model::{Hint, Timestamp};
use crate::policy::report::{Report, TeamReport, html, markdown, team_html};
use crate::policy::secrets::{redact, redact_json, redacted_json_text};

/// `recover log`.
pub(super) fn log(context: &Context, args: &LogArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    if args.follow {
        return follow(context, args, ui);
    }
    let mut text = String::new();
    let log = inspect::EventLog::read(context, args.limit)?;
    // Who reads it sees the name of the only run once; a script has it in each line.
    let only = log.only_run().filter(|_| ui.width.is_some());
    let ui = &ui.knowing(context);
    if let Some(run) = only {
        text.push_str(&format!("Run {}\n", escape(&run.to_string())));
    }
    for (event, line) in &log.lines {
        text.push_str(&match only {
            Some(_) => render::event_line_of_run(ui, event, line),
            None => render::event_line(ui, event, line),
        });
    }
    if log.lines.is_empty() {
        text.push_str("Nothing has been recorded: recover run begins a run.\n");
    }
    Ok(Reply::new(log, text).paged(Paged::Text("log")))
}

/// Tells events as they come, until a signal does; with `--json` one a line, as they are in the document of `log`.
fn follow(context: &Context, args: &LogArgs, ui: &Ui) -> Result<Reply> {
    let mut follow = status::Follow::new(context);
    let mut tail = inspect::Tail::begin(context, args.limit)?;
    loop {
        match tell(context, &tail.lines, ui) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ended(0)),
            written => written.context("cannot write to standard output")?,
        }
        if let status::Noticed::Stopped(code) = follow.wait(None) {
            return Ok(ended(code));
        }
        if tail.read_on(context)? {
            ui.note("The ledger was rebuilt: new events appear from here on.");
        }
    }
}

fn tell(context: &Context, events: &[(Event, String)], ui: &Ui) -> io::Result<()> {
    let ui = &ui.knowing(context);
    let mut out = io::stdout().lock();
    for (event, line) in events {
        if ui.json {
            let document = redact_json(inspect::document_of(event, line)?);
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
    #[serde(flatten)]
    asked: Asked,
}

/// The report on the runs of a remote.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TeamReply<'a> {
    team: &'a TeamReport,
    #[serde(flatten)]
    asked: Asked,
}

/// A report in a form that was asked for.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(inline)]
struct Asked {
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
    if args.remote.is_some() {
        return report_of_team(context, args, ui);
    }
    let is_page = format_of(args) == ReportFormat::Html;
    let report = inspect::report_of_run(context, args.subtask.as_deref(), is_page)?;
    let document = |asked| ReportReply {
        report: &report,
        asked,
    };
    let written = |format| written(context, &report, format);
    answer(context, args, ui, &written, document)
}

/// `recover report --remote`.
fn report_of_team(context: &Context, args: &ReportArgs, ui: &Ui) -> Result<Reply> {
    if matches!(format_of(args), ReportFormat::Pr | ReportFormat::Otlp) {
        let message = "a report on the runs of a remote is md, html or json";
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["report", "--help"])));
    }
    let since = args.since.unwrap_or(A_DAY);
    let report = remote::team_report(context, context.clock.now().minus(since))?;
    let team = &report;
    let document = |asked| TeamReply { team, asked };
    let written = |format| match format {
        ReportFormat::Html => Ok(team_html(team, &local)),
        ReportFormat::Json => as_json(document(Asked::default())),
        _ => Ok(redact(&team.markdown()).into_owned()),
    };
    answer(context, args, ui, &written, document)
}

/// How far back a report on a team goes.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The file that a report is to be written to.
fn file_of(args: &ReportArgs) -> Option<&Path> {
    let file = args.output.as_deref();
    file.filter(|path| *path != Path::new("-"))
}

fn format_of(args: &ReportArgs) -> ReportFormat {
    let by_name = || file_of(args).and_then(by_extension);
    args.format.or_else(by_name).unwrap_or(ReportFormat::Md)
}

/// A report in the form and the place that was asked for.
fn answer<T: Serialize>(
    context: &Context,
    args: &ReportArgs,
    ui: &Ui,
    written: &dyn Fn(ReportFormat) -> Result<String>,
    document: impl FnOnce(Asked) -> T,
) -> Result<Reply> {
    let format = format_of(args);
    if let Some(file) = file_of(args) {
        let path = inspect::report_to_file(context, file, &written(format)?)?;
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
        let asked = Asked {
            format,
            content: format.map(written).transpose()?,
        };
        return Ok(Reply::new(document(asked), ""));
    }
    // Whoever copies it takes it elsewhere; it is masked already.
    let form = if format == ReportFormat::Md {
        Form::Text
    } else {
        Form::Content
    };
    let mut text = written(format)?;
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
        ReportFormat::Html => Ok(html(report, &local)),
        ReportFormat::Pr => Ok(redact(&inspect::pull_request_of(context)?).into_owned()),
        ReportFormat::Otlp => {
            let text = redacted_json_text(&inspect::otlp_of(context)?);
            Ok(text.context("cannot write the trace as JSON")? + "\n")
        }
        ReportFormat::Json => as_json(ReportReply {
            report,
            asked: Asked::default(),
        }),
    }
}

fn as_json(reply: impl Serialize) -> Result<String> {
    let text = redacted_json_text(&Document::new("report", reply, &[]));
    Ok(text.context("cannot write the report as JSON")? + "\n")
}

fn local(at: Timestamp) -> DateTime<FixedOffset> {
    at.datetime().with_timezone(&Local).fixed_offset()
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
