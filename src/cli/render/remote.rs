//! Runs on a remote for people.

use std::time::Duration;

use comfy_table::Cell;

use super::super::ui::Ui;
use super::tables::{Table, column};
use crate::engine::remote::RemoteReport;
use crate::model::time::format_duration;
use crate::policy::text::escape;

/// The runs there, and what was done.
pub(crate) fn remote_text(ui: &Ui, report: &RemoteReport, is_plan: bool) -> String {
    let mut text = String::new();
    let (sent, removed) = if is_plan {
        ("Would send", "Would remove")
    } else {
        ("Sent", "Removed")
    };
    for (verb, keys) in [
        (sent, &report.pushed),
        ("Fetched", &report.fetched),
        (removed, &report.pruned),
    ] {
        for key in keys {
            text.push_str(&format!("{verb} run {}.\n", escape(&key.to_string())));
        }
    }
    if report.runs.is_empty() {
        text.push_str(&format!("No runs on {}.\n", escape(&report.remote)));
        return text;
    }
    let mut table = Table::new(
        ui,
        &[
            column("RUN", 0),
            column("HELD BY", 0),
            column("CLAIM", 2),
            column("UNCHANGED", 3),
            column("NOT SENT", 1),
            column("NOT HERE", 1),
            column("FILES", 4),
        ],
    );
    for run in &report.runs {
        let holder = match (&run.holder, &run.host) {
            (Some(_), Some(host)) => escape(host),
            (None, Some(_)) => "nobody".to_owned(),
            (_, None) => "not there".to_owned(),
        };
        let unchanged = run
            .seen_unchanged_ms
            .map(|millis| format_duration(Duration::from_millis(millis / 1000 * 1000)));
        table.add_row([
            Cell::new(escape(&run.key.to_string())),
            Cell::new(holder),
            Cell::new(run.fencing),
            Cell::new(unchanged.unwrap_or_else(|| "-".to_owned())),
            Cell::new(run.ahead),
            Cell::new(run.behind),
            Cell::new(if run.partial { "partial" } else { "all" }),
        ]);
    }
    text + &table.text()
}
