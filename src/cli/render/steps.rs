//! Steps for people.

use std::fmt::Write;

use crate::engine::restore::request::RestoreResult;
use crate::model::run::Run;
use crate::model::step::{Step, ToldStep};
use crate::model::time::Timestamp;

use super::super::ui::{Ui, escape};
use super::tables::{Table, column, when, words};

/// The steps of a run, in the order in which they began.
pub(super) fn steps_table(ui: &Ui, run: &Run, now: Timestamp) -> String {
    let mut table = Table::new(
        ui,
        &[
            column("STEP", 0),
            words("STATUS", 1),
            column("RUNS", 4),
            column("ENDED", 3),
            column("RESULT", 2),
        ],
    );
    for step in &run.steps {
        table.add_row([
            escape(&step.start.name),
            status_of(step),
            step.executions.to_string(),
            when(step.ended_at.unwrap_or(step.started_at), now),
            step.exit_code
                .map(|code| format!("exit {code}"))
                .unwrap_or_default(),
        ]);
    }
    table.text()
}

fn status_of(step: &Step) -> String {
    let more = match () {
        () if step.compensating.is_some() => " (its effect is being undone)",
        () if step.crossed => " (crossed)",
        () if step.rolled_back => " (files restored)",
        () => "",
    };
    format!("{}{more}", step.status.as_str())
}

/// What became of the steps that a restore went back past, or would become of them.
pub(crate) fn crossed_text(result: &RestoreResult, dry_run: bool) -> String {
    let mut text = String::new();
    for one in &result.compensated {
        let command = escape(one.step.compensate.as_deref().unwrap_or_default());
        let (verb, end) = match one.succeeded {
            None if dry_run => ("would undo", String::new()),
            Some(false) => (
                "not undone:",
                format!(" ended with {}", one.compensate_exit_code.unwrap_or(1)),
            ),
            _ => ("took back", String::new()),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{verb} step {}: {command}{end}", named(&one.step));
    }
    let cross = if dry_run { "would cross" } else { "crossed" };
    for one in &result.crossed {
        let _ = writeln!(text, "{cross} step {} ({})", named(&one.step), one.reason);
    }
    text
}

fn named(step: &ToldStep) -> String {
    format!(
        "'{}' of run {}",
        escape(&step.name),
        escape(&step.run.to_string())
    )
}
