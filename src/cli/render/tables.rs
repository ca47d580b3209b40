//! What every table and text shares: how a table is laid out, and how a time is shown.

use comfy_table::{Attribute, Cell, ContentArrangement, Table, presets};

use crate::model::time::Timestamp;

use super::super::ui::Ui;

/// "3 minutes ago", "in 4 seconds".
pub fn when(at: Timestamp, now: Timestamp) -> String {
    let (span, before) = if now >= at { (now.since(at), true) } else { (at.since(now), false) };
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        0 => return "just now".to_owned(),
        1..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    if before { format!("{count} {unit}{plural} ago") } else { format!("in {count} {unit}{plural}") }
}

/// An empty table that fits the terminal.
pub(super) fn table(ui: &Ui, header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    match ui.width {
        Some(width) => table.set_width(width),
        // Piped output is cut by whoever reads it.
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    if ui.color {
        table.enforce_styling().set_header(header.iter().map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
    } else {
        table.force_no_tty().set_header(header);
    }
    table
}

/// A table as text without trailing blanks.
pub(super) fn finish(table: &Table) -> String {
    let lines: Vec<String> = table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}
