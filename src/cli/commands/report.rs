//! `report`: what went wrong, what was tried, what to do now (A6, S13, B1).

use std::path::Path;

use serde_json::{Value, json};

use crate::engine::flow::report::{of_run, to_file};
use crate::engine::{Context, Error, Result};
use crate::policy::report::{Report, html, markdown};

use super::super::args::{ReportArgs, ReportFormat};
use super::super::ui::{Reply, SCHEMA_VERSION, Ui};

/// `recover report`.
pub fn report(context: &Context, args: &ReportArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let made = of_run(context, args.subtask.as_deref())?;
    let file = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let format = args.format.or_else(|| file.and_then(by_extension)).unwrap_or(ReportFormat::Md);
    if let Some(file) = file {
        let path = to_file(context, file, &written(&made, format)?)?;
        let verb = if context.dry_run() { "Would write" } else { "Wrote" };
        let document = json!({"changed": !context.dry_run(), "path": path, "format": name(format)});
        return Ok(Reply::new(document, format!("{verb} {}\n", path.display())));
    }
    if ui.json {
        let mut document = json!({"report": made});
        // Whoever asks for a form gets it, inside of the one document.
        if let Some(format) = args.format.filter(|format| *format != ReportFormat::Json) {
            document["format"] = json!(name(format));
            document["content"] = json!(written(&made, format)?);
        }
        return Ok(Reply::new(document, ""));
    }
    Ok(Reply::new(Value::Null, written(&made, format)?))
}

fn written(report: &Report, format: ReportFormat) -> Result<String> {
    match format {
        ReportFormat::Md => Ok(markdown(report)),
        ReportFormat::Html => Ok(html(report)),
        ReportFormat::Json => {
            let document = json!({"schema_version": SCHEMA_VERSION, "command": "report", "report": report});
            let text = serde_json::to_string_pretty(&document);
            text.map(|text| text + "\n").map_err(|error| Error::failed("cannot write the report as JSON", error))
        }
    }
}

fn name(format: ReportFormat) -> &'static str {
    match format {
        ReportFormat::Md => "md",
        ReportFormat::Html => "html",
        ReportFormat::Json => "json",
    }
}

fn by_extension(path: &Path) -> Option<ReportFormat> {
    match path.extension()?.to_string_lossy().to_ascii_lowercase().as_str() {
        "md" | "markdown" => Some(ReportFormat::Md),
        "html" | "htm" => Some(ReportFormat::Html),
        "json" => Some(ReportFormat::Json),
        _ => None,
    }
}
