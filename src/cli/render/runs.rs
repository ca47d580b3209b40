//! Runs for people.

use comfy_table::Cell;

use super::super::ui::Ui;
use super::tables::{Table, column, toned, when, words};
use crate::engine::runs::Listed;
use crate::model::{agent_record::short_count, time::Timestamp};
use crate::policy::text::{escape, size};

/// How much of an error a row holds, in characters.
const ERROR_LENGTH: usize = 60;

/// Runs, newest first; a `*` marks the one that a command is about that names none.
pub(crate) fn runs_table(ui: &Ui, listed: &[Listed], now: Timestamp) -> String {
    if listed.is_empty() {
        return "No runs.\n".to_owned();
    }
    // Where they are of one work tree alone, its name says nothing.
    let several = listed.iter().any(|one| one.worktree != listed[0].worktree);
    let mut columns = vec![column("", 0), column("RUN", 0)];
    columns.extend(several.then(|| column("WORK TREE", 2)));
    columns.extend([
        column("STATUS", 0),
        column("DONE", 1),
        column("ATTEMPTS", 4),
        column("STARTED", 2),
        column("COST", 5),
        column("TOKENS", 6),
        column("SIZE", 7),
        words("LAST ERROR", 3),
    ]);
    let mut table = Table::new(ui, &columns);
    let unknown = || "-".to_owned();
    for run in listed {
        let status = match run.driver_pid {
            Some(pid) => format!("{} (pid {pid})", run.status.as_str()),
            None => run.status.as_str().to_owned(),
        };
        let mut done = run.iterations.done.to_string();
        if let Some(total) = run.iterations.total {
            done.push_str(&format!("/{total}"));
        }
        if run.iterations.given_up > 0 {
            done.push_str(&format!(", {} given up", run.iterations.given_up));
        }
        let error = run.last_error.as_deref().map(escape).unwrap_or_default();
        let mut cells = vec![
            Cell::new(if run.chosen { "*" } else { "" }),
            Cell::new(escape(&run.key.to_string())),
        ];
        cells.extend(several.then(|| Cell::new(escape(&run.worktree))));
        cells.extend([
            toned(ui, &status),
            Cell::new(done),
            Cell::new(run.attempts),
            Cell::new(when(run.started_at, now)),
            Cell::new(
                run.usage
                    .cost_usd
                    .map_or_else(unknown, |cost| format!("${cost:.2}")),
            ),
            Cell::new(
                run.usage
                    .tokens
                    .map_or_else(unknown, |tokens| short_count(tokens.total)),
            ),
            Cell::new(size(run.size_bytes)),
            Cell::new(beginning(&error, ERROR_LENGTH)),
        ]);
        table.add_row(cells);
    }
    table.text()
}

/// The words of a text that so many characters hold.
fn beginning(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    for word in text.split_inclusive(' ') {
        if out.chars().count() + word.trim_end().chars().count() > most {
            break;
        }
        out.push_str(word);
    }
    out.trim_end().to_owned() + " …"
}
