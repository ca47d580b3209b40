//! `report`: what went wrong, what was tried, what to do now (A6, S13, B1).

use std::borrow::Cow;
use std::path::Path;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::flow::report::{of_run, pull_request_of, to_file};
use crate::engine::{Context, Result};
use crate::policy::redact::{redact, redacted_json_text};
use crate::policy::report::{Report, html, markdown};

use super::super::args::{ReportArgs, ReportFormat};
use super::super::replies::Document;
use super::super::ui::{Form, Paged, Reply, Ui};

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
    let report = of_run(context, args.subtask.as_deref())?;
    let file = args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"));
    let format = args
        .format
        .or_else(|| file.and_then(by_extension))
        .unwrap_or(ReportFormat::Md);
    if let Some(file) = file {
        let path = to_file(context, file, &written(context, &report, format)?)?;
        let verb = if context.dry_run() {
            "Would write"
        } else {
            "Wrote"
        };
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
