//! How it looks: the list on the left, a page on the right; on a narrow terminal one of them.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use strum::VariantArray as _;
use unicode_width::UnicodeWidthStr as _;

use super::super::super::live::{cut, cut_at_word};
use super::super::super::terminal_text::wrapped;
use super::app::{App, Page, Prompt};
use super::timeline::{Label, Pieces, Tone, label, width_of_names};

/// Below so many columns there is room for one of both only.
const BOTH: u16 = 72;

const HELP: &[(&str, &str)] = &[
    (
        "arrows, hjkl",
        "move; right opens a run, or goes to the page",
    ),
    ("PgUp, PgDn, g, G", "a page, to the top, to the end"),
    ("Tab, 1-5", "overview, diff, evidence, log, report"),
    ("/, n, N", "search, the next one, the one before"),
    ("d", "mark a checkpoint; d on another one: their difference"),
    ("p", "pin or unpin the checkpoint: it is never pruned"),
    ("r", "roll back to it: what will happen, then yes or no"),
    ("u", "undo the last rollback"),
    ("a", "accept: the run's work becomes commits"),
    ("c", "close the run"),
    ("m", "fix by hand what the run needs a person for"),
    ("q", "leave; Esc forgets a mark"),
];

/// What is drawn where.
pub(super) struct Places {
    pub list: Option<Rect>,
    pub page: Option<Rect>,
}

impl Places {
    /// Both are within their frames.
    pub(super) fn of(area: Rect, in_page: bool) -> Self {
        // A line below with keys.
        let body = Rect {
            height: area.height.saturating_sub(1),
            ..area
        };
        if area.width < BOTH {
            let (list, page) = (
                Some(within(body)).filter(|_| !in_page),
                Some(within(body)).filter(|_| in_page),
            );
            return Self { list, page };
        }
        let left = (area.width * 2 / 5).clamp(36, 60);
        let list = Rect {
            width: left,
            ..body
        };
        let page = Rect {
            x: area.x + left,
            width: area.width - left,
            ..body
        };
        Self {
            list: Some(within(list)),
            page: Some(within(page)),
        }
    }

    /// Rows for what is listed or paged through.
    pub(super) fn height(&self, in_page: bool) -> usize {
        let place = if in_page { self.page } else { self.list };
        place.map_or(1, |place| usize::from(place.height)).max(1)
    }
}

/// What is left of a place within its frame, with a blank at each side.
fn within(place: Rect) -> Rect {
    Rect {
        x: place.x + 2,
        y: place.y + 1,
        width: place.width.saturating_sub(4),
        height: place.height.saturating_sub(2),
    }
}

/// Corners, from the top left to the bottom right, and lines of a frame.
#[derive(Clone, Copy)]
struct Frame {
    corners: [&'static str; 4],
    across: &'static str,
    down: &'static str,
}

const UNICODE: Frame = Frame {
    corners: ["┌", "┐", "└", "┘"],
    across: "─",
    down: "│",
};

const ASCII: Frame = Frame {
    corners: ["+", "+", "+", "+"],
    across: "-",
    down: "|",
};

impl Frame {
    /// Draws it around a place.
    fn around(self, place: Rect, style: Style, buffer: &mut Buffer) {
        let (left, right) = (place.x - 2, place.right() + 1);
        let (top, bottom) = (place.y - 1, place.bottom());
        let line = self.across.repeat(usize::from(right - left - 1));
        for (y, corners) in [(top, &self.corners[..2]), (bottom, &self.corners[2..])] {
            buffer.set_string(
                left,
                y,
                format!("{}{line}{}", corners[0], corners[1]),
                style,
            );
        }
        for y in place.y..place.bottom() {
            buffer.set_string(left, y, self.down, style);
            buffer.set_string(right, y, self.down, style);
        }
    }
}

/// Lines of a page, broken so that they fit: all but those of a diff between words.
pub(super) fn fit(lines: &[String], page: Page, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let words = |line: &String| match page {
        Page::Diff => line.clone(),
        _ => wrapped(line, columns),
    };
    lines
        .iter()
        .flat_map(|line| {
            words(line)
                .split('\n')
                .flat_map(|line| pieces(line, columns))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// As many columns as there are, then the rest.
fn pieces(line: &str, columns: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let (mut rest, mut left) = (line, line.width());
    while left > columns {
        let fits = cut(rest, columns).len();
        let at = if fits == 0 {
            rest.chars().next().map_or(rest.len(), char::len_utf8)
        } else {
            fits
        };
        left -= rest[..at].width();
        pieces.push(rest[..at].to_owned());
        rest = &rest[at..];
    }
    pieces.push(rest.to_owned());
    pieces
}

/// Draws everything.
pub(super) fn draw(app: &App, page: &[String], paint: Paint, area: Rect, buffer: &mut Buffer) {
    if area.height < 4 || area.width < 6 {
        return;
    }
    if app.help {
        return help(paint, area, buffer);
    }
    let places = Places::of(area, app.in_page);
    if let Some(place) = places.list {
        paint.frame(place, !app.in_page, buffer);
        list(app, paint, place, buffer);
    }
    if let Some(place) = places.page {
        paint.frame(place, app.in_page, buffer);
        right(app, paint, page, place, buffer);
    }
    bottom(app, paint, area, buffer);
}

/// What the terminal can show.
#[derive(Clone, Copy)]
pub(super) struct Paint {
    pub color: bool,
    /// More than ASCII.
    pub unicode: bool,
}

impl Paint {
    fn frame(self, place: Rect, is_active: bool, buffer: &mut Buffer) {
        let frame = if self.unicode { UNICODE } else { ASCII };
        let tone = if is_active { Tone::Plain } else { Tone::Faint };
        frame.around(place, self.tone(tone), buffer);
    }

    fn tone(self, tone: Tone) -> Style {
        let faint = if tone == Tone::Faint {
            Modifier::DIM
        } else {
            Modifier::empty()
        };
        let color = match tone {
            _ if !self.color => Color::Reset,
            Tone::Good => Color::Green,
            Tone::Bad => Color::Red,
            Tone::Waiting => Color::Yellow,
            Tone::Name => Color::Cyan,
            Tone::Plain | Tone::Faint => Color::Reset,
        };
        Style::new().fg(color).add_modifier(faint)
    }

    fn line(self, pieces: Pieces) -> Line<'static> {
        pieces
            .into_iter()
            .map(|(text, tone)| Span::styled(text, self.tone(tone)))
            .collect()
    }

    /// A line of a page: what was added and deleted, and headings.
    fn paged(self, line: &str, page: Page) -> Style {
        let tone = match (page, line.chars().next()) {
            (Page::Diff, Some('+')) => Tone::Good,
            (Page::Diff, Some('-')) => Tone::Bad,
            (Page::Diff, Some('@')) => Tone::Name,
            _ => Tone::Plain,
        };
        let heading = page == Page::Report && line.starts_with('#')
            || page == Page::Diff && line.starts_with("diff ");
        let bold = if heading {
            Modifier::BOLD
        } else {
            Modifier::empty()
        };
        self.tone(tone).add_modifier(bold)
    }
}

/// What is above the list, in its frame.
fn title(app: &App) -> String {
    let runs = app.recorded.state.runs.len();
    let marked = if app.rows.iter().any(|row| app.is_marked(row)) {
        "; one is marked"
    } else {
        ""
    };
    let plural = if runs == 1 { "" } else { "s" };
    format!(" recover browse: {runs} run{plural}{marked} ")
}

fn list(app: &App, paint: Paint, place: Rect, buffer: &mut Buffer) {
    let bold = paint.tone(Tone::Plain).add_modifier(Modifier::BOLD);
    let columns = usize::from(place.width);
    buffer.set_stringn(place.x - 1, place.y - 1, title(app), columns + 2, bold);
    let height = usize::from(place.height);
    let first = app
        .at
        .saturating_sub(height / 2)
        .min(app.rows.len().saturating_sub(height));
    let state = &app.recorded.state;
    let open = app.open.iter().filter_map(|key| state.run(key));
    let names = open.map(width_of_names).max().unwrap_or(0);
    for (y, (number, row)) in (place.y..).zip(app.rows.iter().enumerate().skip(first).take(height))
    {
        let label = label(state, row, app.open.contains(&row.run), app.now);
        let line = paint.line(arranged(label, names, columns));
        buffer.set_line(place.x, y, &line, place.width);
        if app.is_marked(row) {
            buffer.set_string(place.x - 1, y, "*", paint.tone(Tone::Waiting));
        }
        if number == app.at {
            // The whole row, up to the frame, in one colour.
            let row = Rect {
                x: place.x - 1,
                y,
                width: place.width + 2,
                height: 1,
            };
            let looks = if app.in_page {
                Modifier::BOLD
            } else {
                Modifier::REVERSED
            };
            let style = Style::new().fg(Color::Reset).remove_modifier(Modifier::DIM);
            buffer.set_style(row, style.add_modifier(looks));
            buffer.set_string(row.x, y, ">", Style::new());
        }
    }
    if app.rows.is_empty() {
        let faint = paint.tone(Tone::Faint);
        buffer.set_stringn(place.x, place.y, "nothing yet", columns, faint);
    }
}

/// The fewest columns in which a detail is begun.
const DETAIL: usize = 8;

/// A row by its columns: the name in `names` columns, the state, what fits of the details, and the time at the right.
fn arranged(label: Label, names: usize, columns: usize) -> Pieces {
    let width = |pieces: &Pieces| pieces.iter().map(|(text, _)| text.width()).sum::<usize>();
    let pad = |row: &mut Pieces, to: usize| {
        let blanks = " ".repeat(to.saturating_sub(width(row)).max(1));
        row.push((blanks, Tone::Plain));
    };
    let mut row = label.name;
    pad(&mut row, if label.is_free { 0 } else { names + 1 });
    row.extend(label.state);
    let time = label
        .time
        .filter(|time| width(&row) + 1 + time.width() <= columns);
    let right = columns - time.as_ref().map_or(0, |time| time.width() + 1);
    let left = right.saturating_sub(width(&row) + 1);
    if left >= DETAIL && !label.details.is_empty() {
        pad(&mut row, 0);
        row.push((cut_at_word(&label.details.join(", "), left), Tone::Plain));
    }
    if let Some(time) = time {
        pad(&mut row, columns - time.width());
        row.push((time, Tone::Faint));
    }
    row
}

fn right(app: &App, paint: Paint, page: &[String], place: Rect, buffer: &mut Buffer) {
    let mut x = place.x - 1;
    for &one in Page::VARIANTS {
        let looks = if one == app.page {
            Modifier::REVERSED
        } else {
            Modifier::empty()
        };
        let name = format!(" {} ", one.into_str());
        let left = usize::from((place.right() + 1).saturating_sub(x));
        let style = paint.tone(Tone::Plain).add_modifier(looks);
        (x, _) = buffer.set_stringn(x, place.y - 1, name, left, style);
        x += 1;
    }
    for (y, line) in (place.y..place.bottom()).zip(page.iter().skip(app.scroll)) {
        let style = paint.paged(line, app.page);
        buffer.set_stringn(place.x, y, line, place.width.into(), style);
    }
}

/// What can be pressed; a narrow terminal cuts the rest.
const KEYS: &str = "? help, q leave, Tab page, / search, d diff, r roll back, u undo";

fn bottom(app: &App, paint: Paint, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let (text, tone) = match &app.prompt {
        Prompt::None => (KEYS.to_owned(), Tone::Faint),
        Prompt::Search(typed) => (format!("/{typed}"), Tone::Plain),
        Prompt::Agree(command) => (
            format!("y runs: {command}   any other key does not"),
            Tone::Waiting,
        ),
        Prompt::Note(text) => (text.clone(), Tone::Plain),
    };
    let rows = match app.prompt {
        // Whoever agrees to a command sees all of it.
        Prompt::Agree(_) => pieces(&text, columns),
        _ => vec![cut_at_word(&text, columns)],
    };
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    let top = area.bottom().saturating_sub(height).max(area.y);
    for (y, row) in (top..area.bottom()).zip(rows) {
        let line = format!("{row:columns$}");
        buffer.set_stringn(area.x, y, line, columns, paint.tone(tone));
    }
}

/// The keys, over all else.
fn help(paint: Paint, area: Rect, buffer: &mut Buffer) {
    let place = within(Rect {
        height: area.height - 1,
        ..area
    });
    buffer.reset();
    paint.frame(place, true, buffer);
    let columns = usize::from(place.width);
    let keys = HELP.iter().map(|(keys, _)| keys.len()).max().unwrap_or(0);
    let lines = HELP
        .iter()
        .map(|(key, what)| wrapped(&format!("{key:keys$}  {what}"), columns))
        .collect::<Vec<_>>()
        .join("\n");
    for (y, line) in (place.y..place.bottom()).zip(lines.lines()) {
        buffer.set_stringn(place.x, y, line, columns, Style::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_columns_and_whole_names() {
        let row = |columns: usize, names: &[&str]| {
            let label = Label {
                name: vec![("    attempt 1".to_owned(), Tone::Plain)],
                state: vec![("failed".to_owned(), Tone::Bad)],
                details: names.iter().map(|name| (*name).to_owned()).collect(),
                ..Label::default()
            };
            let pieces = arranged(label, 18, columns).into_iter();
            pieces.map(|(text, _)| text).collect::<String>()
        };
        let names = ["test_sum", "test_total", "test_x"];
        assert_eq!(
            row(60, &names),
            "    attempt 1      failed test_sum, test_total, test_x"
        );
        assert_eq!(row(42, &names), "    attempt 1      failed test_sum, ...");
        assert_eq!(row(30, &names), "    attempt 1      failed");
        let label = Label {
            name: vec![("- night".to_owned(), Tone::Name)],
            state: vec![("complete".to_owned(), Tone::Good)],
            time: Some("5 s ago".to_owned()),
            is_free: true,
            ..Label::default()
        };
        let text: String = arranged(label, 18, 30)
            .into_iter()
            .map(|(text, _)| text)
            .collect();
        assert_eq!(text, "- night complete       5 s ago");
    }

    #[test]
    fn prose_is_broken_at_blanks_and_everything_fits() {
        let lines = vec![
            "one two three".to_owned(),
            "averyverylongword".to_owned(),
            String::new(),
        ];
        assert_eq!(
            fit(&lines, Page::Overview, 8),
            ["one two", "  three", "averyver", "ylongwor", "d", ""]
        );
        assert_eq!(fit(&lines[..1], Page::Diff, 8), ["one two ", "three"]);
        let log = vec!["   12 attempt_started  iteration 1, attempt 1".to_owned()];
        let expected = [
            "   12 attempt_started",
            "               iteration 1,",
            "               attempt 1",
        ];
        assert_eq!(fit(&log, Page::Log, 30), expected);
        let wide = vec!["日本語日本語".to_owned()];
        assert!(
            fit(&wide, Page::Log, 5)
                .iter()
                .all(|line| line.width() <= 5)
        );
        assert_eq!(fit(&wide, Page::Log, 5).concat(), wide[0]);
    }
}
