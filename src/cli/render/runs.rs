//! Runs for people.

use comfy_table::Cell;

use crate::engine::flow::runs::Listed;
use crate::model::run::IterationStatus;
use crate::model::time::Timestamp;
use crate::model::usage::short;
use crate::policy::escape::escape;

use super::super::replies::runs::{iterations_that, last_error};
use super::super::ui::Ui;
use super::tables::{finish, table, when};

/// How much of an error a row holds, in characters.
const ERROR_LENGTH: usize = 60;

/// Runs, newest first; a `*` marks the one that a command is about that names none.
pub fn runs_table(ui: &Ui, listed: &[Listed], now: Timestamp) -> String {
    if listed.is_empty() {
        return "No runs.\n".to_owned();
    }
    let mut table =
        table(ui, &["", "RUN", "STATUS", "DONE", "ATTEMPTS", "STARTED", "COST", "TOKENS", "SIZE", "LAST ERROR"]);
    let unknown = || "-".to_owned();
    for Listed { run, chosen, size_bytes, driver_pid } in listed {
        let status = match driver_pid {
            Some(pid) => format!("{} (pid {pid})", run.status.as_str()),
            None => run.status.as_str().to_owned(),
        };
        let used = run.usage();
        let total = run.spec.iterations_total.map_or_else(String::new, |total| format!("/{total}"));
        let done = format!("{}{total}", iterations_that(run, IterationStatus::Completed));
        let given_up = match iterations_that(run, IterationStatus::Skipped) {
            0 => String::new(),
            count => format!(", {count} given up"),
        };
        let error: String = last_error(run).map(escape).unwrap_or_default().chars().take(ERROR_LENGTH).collect();
        table.add_row([
            Cell::new(if *chosen { "*" } else { "" }),
            Cell::new(escape(&run.key.to_string())),
            Cell::new(status),
            Cell::new(done + &given_up),
            Cell::new(run.iterations.count_attempts()),
            Cell::new(when(run.created_at, now)),
            Cell::new(used.cost_usd().map_or_else(unknown, |cost| format!("${cost:.2}"))),
            Cell::new(used.tokens.map_or_else(unknown, |tokens| short(tokens.total))),
            Cell::new(size(*size_bytes)),
            Cell::new(error),
        ]);
    }
    finish(&table)
}

/// `12.3 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut tenths = u128::from(bytes) * 10;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
    }
}
