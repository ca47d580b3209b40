//! Runs `service`.

use super::super::args::{ServiceArgs, ServiceCommand};
use super::super::replies::PlanReply;
use super::super::ui::{Reply, Ui, escape, verb};
use crate::engine::{Context, Result, resume};

/// `recover service`.
pub(super) fn execute(context: &Context, args: &ServiceArgs, ui: &Ui) -> Result<Reply> {
    let changes = match args.command {
        ServiceCommand::Install => resume::service::install(context)?,
        ServiceCommand::Uninstall => resume::service::uninstall(context)?,
        ServiceCommand::Status => {
            let status = resume::service::status(context)?;
            let text = ui.text(|| status_text(&status));
            return Ok(Reply::new(status, text));
        }
    };
    let text = changes_text(context, &changes);
    Ok(if context.dry_run() {
        Reply::new(PlanReply::of(changes), text)
    } else {
        Reply::new(changes, text)
    })
}

fn changes_text(context: &Context, changes: &resume::service::Changes) -> String {
    let mut text = String::new();
    for file in &changes.files {
        let path = escape(&file.path.to_string_lossy());
        let would = match file.change {
            "unchanged" => "",
            _ => verb(context, "would be ", ""),
        };
        text.push_str(&format!("{path}: {would}{}\n", file.change));
    }
    for command in &changes.commands {
        let called = verb(context, "would call", "called");
        text.push_str(&format!("{called} {}\n", escape(command)));
    }
    if text.is_empty() {
        text.push_str("It is not installed.\n");
    }
    for note in &changes.notes {
        text.push_str(&format!("note: {}\n", escape(note)));
    }
    text
}

fn status_text(status: &resume::service::Status) -> String {
    let manager = status.manager.unwrap_or("nothing");
    let mut text = match (status.installed, status.complete, status.active) {
        (false, ..) => "not installed\n".to_owned(),
        (_, true, true) => format!("installed: {manager} starts it\n"),
        (_, true, false) => {
            format!("installed, but {manager} does not start it: install it again\n")
        }
        (_, false, _) => "installed in part: install it again\n".to_owned(),
    };
    for file in &status.files {
        let path = escape(&file.path.to_string_lossy());
        text.push_str(&format!("  {path}: {}\n", file.state));
    }
    if status.lingering == Some(false) {
        text.push_str("without lingering: it starts when you log in (loginctl enable-linger)\n");
    }
    text
}
