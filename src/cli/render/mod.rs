//! What commands answer with: tables and texts, made from the model and the engine's results.
//! Here is what all of them share: how a table is laid out, and how a time is shown.

mod attempts;
mod checkpoints;
mod events;
mod night;
mod status;

use chrono::Local;
use comfy_table::{
    Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table as Comfy, Width, presets,
};
use unicode_width::UnicodeWidthStr;

use crate::model::time::Timestamp;

use super::ui::Ui;

pub(super) use attempts::{attempts_text, conditions_text, said, seconds};
pub(super) use attempts::{driven_text, lane_text, note_report};
pub(super) use checkpoints::{
    changes_text, checkpoint_text, checkpoints_table, prune_text, restore_text, unchanged_text,
};
pub(super) use events::{event_line, event_line_of_run};
pub(super) use night::ended_text;
pub(super) use status::{
    actions, failure_lines, manual_steps_text, retry_text, status_text, whole_text,
};

/// Blanks beside a column.
const PADDING: usize = 2;
/// The one behind the last column is cut off.
const EDGE: usize = 1;
/// A column of words is not made narrower than this, unless its words are shorter.
const NARROWEST: usize = 20;

/// `3 min ago`, `in 4 s`.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> String {
    let (span, before) = if now >= at {
        (now.since(at), true)
    } else {
        (at.since(now), false)
    };
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        0 => return "just now".to_owned(),
        1..60 => (seconds, "s"),
        60..3600 => (seconds / 60, "min"),
        3600..86_400 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    if before {
        format!("{count} {unit} ago")
    } else {
        format!("in {count} {unit}")
    }
}

/// `04:19, in 5 s`: the user's own time, with the date where it is another day.
pub(crate) fn moment(at: Timestamp, now: Timestamp) -> String {
    format!("{}, {}", time_of_day(at, now), when(at, now))
}

/// `04:19`, with the date where it is not today's.
pub(crate) fn time_of_day(at: Timestamp, now: Timestamp) -> String {
    let (local, today) = (
        at.datetime().with_timezone(&Local),
        now.datetime().with_timezone(&Local),
    );
    let form = if local.date_naive() == today.date_naive() {
        "%H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    local.format(form).to_string()
}

/// `2026-01-05 04:19:02`, in the user's own time.
pub(crate) fn date_time(at: Timestamp) -> String {
    at.datetime()
        .with_timezone(&Local)
        .format("%Y-%m-%d %H:%M:%S")
        .to_string()
}

/// A status as the screens say it: `in progress`.
pub(crate) fn in_words(status: &str) -> String {
    status.replace('_', " ")
}

/// A line with the first of the words in colour that say how something stands.
pub(super) fn tinted(line: String) -> String {
    const WORDS: [(&str, u8); 12] = [
        ("passed", 32),
        ("complete", 32),
        ("verified", 32),
        ("(recommended)", 32),
        ("failed", 31),
        ("FAILED", 31),
        ("not verified", 31),
        ("escalated", 31),
        ("damaged", 31),
        ("unverified", 33),
        ("(not now", 33),
        ("HEAD ", 33),
    ];
    let found = WORDS
        .iter()
        .filter_map(|(word, color)| Some((line.find(word)?, word, color)))
        .min();
    match found {
        Some((at, word, color)) => {
            let (before, after) = line.split_at(at);
            let after = &after[word.len()..];
            format!("{before}\x1b[{color}m{word}\x1b[39m{after}")
        }
        None => line,
    }
}

/// A patch in colour, as git shows it.
pub(super) fn tinted_patch(patch: &str) -> String {
    let line = |line: &str| {
        let (text, end) = line.split_at(line.trim_end_matches('\n').len());
        let style = match text.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd' | b'i', ..] => "1",
            [b'+', ..] => "32",
            [b'-', ..] => "31",
            [b'@', ..] => "36",
            _ => return line.to_owned(),
        };
        format!("\x1b[{style}m{text}\x1b[0m{end}")
    };
    patch.split_inclusive('\n').map(line).collect()
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    /// Where there is no room, the one with the highest is left out first; never one with 0.
    spare: u8,
    /// Its content may go on in another line.
    has_words: bool,
}

impl Column {
    /// What stands above it.
    pub(super) fn name(self) -> &'static str {
        self.name
    }
}

/// A column whose content stays in one line.
pub(super) const fn column(name: &'static str, spare: u8) -> Column {
    Column {
        name,
        spare,
        has_words: false,
    }
}

/// A column of sentences.
pub(super) const fn words(name: &'static str, spare: u8) -> Column {
    Column {
        name,
        spare,
        has_words: true,
    }
}

/// What an attempt, an iteration, a run or a checkpoint came to, in the colour of its first word.
pub(super) fn toned(ui: &Ui, text: &str) -> Cell {
    let color = match text.split([' ', ',']).next().unwrap_or_default() {
        "passed" | "completed" | "complete" | "accepted" => Color::DarkGreen,
        "failed" | "needs" | "given" => Color::DarkRed,
        "under" | "in" | "in_progress" | "pending" | "paused" | "waiting" | "running"
        | "cancelled" | "interrupted" => Color::DarkYellow,
        _ => return Cell::new(text),
    };
    if ui.color {
        Cell::new(text).fg(color)
    } else {
        Cell::new(text)
    }
}

/// A table that fits the terminal: it leaves columns out before it breaks a word.
pub(super) struct Table<'a> {
    ui: &'a Ui,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl<'a> Table<'a> {
    /// An empty one.
    pub(super) fn new(ui: &'a Ui, columns: &[Column]) -> Self {
        Self {
            ui,
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// One more row, with a cell for each column.
    pub(super) fn add_row(&mut self, cells: impl IntoIterator<Item: Into<Cell>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// How wide the longest of a column's parts is, by what `parts` makes of a cell.
    fn widest(&self, column: usize, part: impl Fn(&str) -> usize) -> usize {
        let cells = self
            .rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| part(&cell.content()));
        cells
            .max()
            .unwrap_or(0)
            .max(self.columns[column].name.width())
    }

    /// The columns that a column needs.
    fn needed(&self, column: usize) -> usize {
        let widest = self.widest(column, UnicodeWidthStr::width);
        if !self.columns[column].has_words {
            return widest;
        }
        let word = |text: &str| {
            text.split_whitespace()
                .map(UnicodeWidthStr::width)
                .max()
                .unwrap_or(0)
        };
        self.widest(column, word).max(widest.min(NARROWEST))
    }

    /// Whether not all of it fits the terminal as it is, each cell in a line.
    pub(super) fn is_too_wide(&self) -> bool {
        let all = (0..self.columns.len())
            .map(|column| self.widest(column, UnicodeWidthStr::width) + PADDING);
        self.ui
            .width
            .is_some_and(|width| all.sum::<usize>() > usize::from(width) + EDGE)
    }

    /// As text, without trailing blanks.
    pub(super) fn text(self) -> String {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let needed: Vec<usize> = shown.iter().map(|column| self.needed(*column)).collect();
        let width = self.ui.width.map(usize::from);
        let fits = |shown: &[usize]| {
            let total: usize = shown.iter().map(|column| needed[*column] + PADDING).sum();
            width.is_none_or(|width| total <= width + EDGE)
        };
        while !fits(&shown) {
            let spare = shown
                .iter()
                .enumerate()
                .filter(|(_, column)| self.columns[**column].spare > 0);
            let Some((at, _)) = spare.max_by_key(|(_, column)| self.columns[**column].spare) else {
                break;
            };
            shown.remove(at);
        }
        let mut table = Comfy::new();
        table
            .load_preset(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic);
        match width.filter(|_| fits(&shown)) {
            Some(width) => table.set_width(u16::try_from(width + EDGE).unwrap_or(u16::MAX)),
            // Piped output is cut by whoever reads it; what is too wide as it is, by the terminal.
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        let header = shown
            .iter()
            .map(|column| Cell::new(self.columns[*column].name));
        if self.ui.color {
            table
                .enforce_styling()
                .set_header(header.map(|name| name.add_attribute(Attribute::Bold)));
        } else {
            table.force_no_tty().set_header(header);
        }
        for row in &self.rows {
            table.add_row(shown.iter().filter_map(|column| row.get(*column).cloned()));
        }
        for (at, column) in shown.iter().enumerate() {
            if let Some(made) = table.column_mut(at) {
                let least =
                    Width::Fixed(u16::try_from(needed[*column] + PADDING).unwrap_or(u16::MAX));
                made.set_constraint(if self.columns[*column].has_words {
                    ColumnConstraint::LowerBoundary(least)
                } else {
                    ColumnConstraint::ContentWidth
                });
            }
        }
        let lines: Vec<String> = table.to_string().lines().map(trimmed).collect();
        sixteen(&lines.join("\n")) + "\n"
    }
}

/// With the codes of the terminal's 16 colours in place of those of a palette of 256, which looks otherwise.
fn sixteen(text: &str) -> String {
    (0..8).fold(text.to_owned(), |text, color| {
        text.replace(&format!("\x1b[38;5;{color}m"), &format!("\x1b[3{color}m"))
    })
}

/// A line without the blanks at its end, those within its last colour too: they may not fit the terminal any more.
fn trimmed(line: &str) -> String {
    let line = line.trim_end();
    let is_code = |code: &str| {
        code.ends_with('m')
            && code[1..code.len() - 1]
                .chars()
                .all(|c| "[;".contains(c) || c.is_ascii_digit())
    };
    match line.rfind('\x1b').map(|at| line.split_at(at)) {
        Some((colored, code)) if is_code(code) => colored.trim_end().to_owned() + code,
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let texts = [0, 5, 200, 7_300, 200_000].map(|seconds| when(at(0), at(seconds)));
        assert_eq!(
            texts,
            ["just now", "5 s ago", "3 min ago", "2 h ago", "2 d ago"]
        );
        assert_eq!(when(at(5), at(0)), "in 5 s");
        assert!(
            moment(at(5), at(0)).ends_with(":00, in 5 s"),
            "{}",
            moment(at(5), at(0))
        );
        assert!(
            moment(at(0), at(400_000)).starts_with("19"),
            "another day has its date"
        );
    }
}
