//! How it looks: the list on the left, a page on the right; on a narrow terminal one of them.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use strum::VariantArray as _;
use unicode_width::UnicodeWidthStr as _;

use super::super::super::live::{cut, cut_at_word};
use super::super::super::terminal_text::{between_words, wrapped};
use super::app::{App, Page, Prompt};
use super::timeline::{Pieces, Tone, label};

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
    pub(super) fn of(area: Rect, in_page: bool) -> Self {
        // A line above with the title, one below with keys.
        let body = Rect {
            y: area.y + 1,
            height: area.height.saturating_sub(2),
            ..area
        };
        if area.width < BOTH {
            let (list, page) = (
                Some(body).filter(|_| !in_page),
                Some(body).filter(|_| in_page),
            );
            return Self { list, page };
        }
        let left = (area.width * 2 / 5).clamp(30, 60);
        let list = Rect {
            width: left,
            ..body
        };
        let page = Rect {
            x: area.x + left + 3,
            width: area.width - left - 3,
            ..body
        };
        Self {
            list: Some(list),
            page: Some(page),
        }
    }

    /// Rows for what is listed or paged through: the page has a line with its names.
    pub(super) fn height(&self, in_page: bool) -> usize {
        let place = if in_page { self.page } else { self.list };
        place
            .map_or(1, |place| usize::from(place.height))
            .saturating_sub(usize::from(in_page))
            .max(1)
    }
}

/// Lines of a page, broken so that they fit: all but those of a diff between words.
pub(super) fn fit(lines: &[String], page: Page, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let words = |line: &String| match page {
        Page::Diff => line.clone(),
        // What a command printed is no command to copy.
        Page::Log => between_words(line, columns),
        Page::Overview | Page::Evidence | Page::Report => wrapped(line, columns),
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
pub(super) fn draw(app: &App, page: &[String], color: bool, area: Rect, buffer: &mut Buffer) {
    if area.height < 3 {
        return;
    }
    let paint = Paint { color };
    let places = Places::of(area, app.in_page);
    title(app, &paint, area, buffer);
    if let Some(place) = places.list {
        list(app, &paint, place, buffer);
    }
    if let Some(place) = places.page {
        if places.list.is_some() {
            for y in place.y..place.bottom() {
                buffer.set_string(place.x - 2, y, "|", paint.tone(Tone::Faint));
            }
        }
        right(app, &paint, page, place, buffer);
    }
    bottom(app, &paint, area, buffer);
    if app.help {
        help(&paint, area, buffer);
    }
}

struct Paint {
    color: bool,
}

impl Paint {
    fn tone(&self, tone: Tone) -> Style {
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

    fn line(&self, pieces: Pieces) -> Line<'static> {
        pieces
            .into_iter()
            .map(|(text, tone)| Span::styled(text, self.tone(tone)))
            .collect()
    }

    /// A line of a page: what was added and deleted, and headings.
    fn paged(&self, line: &str, page: Page) -> Style {
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

fn title(app: &App, paint: &Paint, area: Rect, buffer: &mut Buffer) {
    let runs = app.recorded.state.runs.len();
    let marked = if app.rows.iter().any(|row| app.is_marked(row)) {
        "; one is marked"
    } else {
        ""
    };
    let text = format!(
        "recover browse: {runs} run{}{marked}",
        if runs == 1 { "" } else { "s" }
    );
    buffer.set_stringn(
        area.x,
        area.y,
        text,
        area.width.into(),
        paint.tone(Tone::Plain).add_modifier(Modifier::BOLD),
    );
}

fn list(app: &App, paint: &Paint, place: Rect, buffer: &mut Buffer) {
    let height = usize::from(place.height);
    let first = app
        .at
        .saturating_sub(height / 2)
        .min(app.rows.len().saturating_sub(height));
    for (y, (number, row)) in (place.y..).zip(app.rows.iter().enumerate().skip(first).take(height))
    {
        let mut pieces = label(
            &app.recorded.state,
            row,
            app.open.contains(&row.run),
            app.now,
        );
        let mark = match (number == app.at, app.is_marked(row)) {
            (true, _) => ">",
            (false, true) => "*",
            (false, false) => " ",
        };
        pieces.insert(0, (mark.to_owned(), Tone::Plain));
        buffer.set_line(
            place.x,
            y,
            &paint.line(clipped(pieces, usize::from(place.width))),
            place.width,
        );
        if number == app.at && !app.in_page {
            buffer.set_style(
                Rect {
                    y,
                    height: 1,
                    ..place
                },
                Style::new().add_modifier(Modifier::REVERSED),
            );
        }
    }
    if app.rows.is_empty() {
        buffer.set_stringn(
            place.x,
            place.y,
            " nothing yet",
            place.width.into(),
            paint.tone(Tone::Faint),
        );
    }
}

/// Where something was left out.
const MORE: &str = " ...";

/// As many whole words as fit, with a sign where there are more; what is faint, such as a time, as a whole.
fn clipped(pieces: Pieces, columns: usize) -> Pieces {
    let whole: usize = pieces.iter().map(|(text, _)| text.width()).sum();
    // Where there is room for a word or two only, the sign would take it.
    if whole <= columns || columns < 4 * MORE.len() {
        return heads(pieces, columns);
    }
    let mut shown = heads(pieces, columns - MORE.len());
    shown.push((MORE.to_owned(), Tone::Faint));
    shown
}

fn heads(pieces: Pieces, columns: usize) -> Pieces {
    let mut left = columns;
    let mut shown = Pieces::new();
    for (text, tone) in pieces {
        if text.width() > left {
            if tone == Tone::Faint {
                break;
            }
            let head = cut(&text, left);
            // The word ends where the next piece or a blank would be, or in the middle.
            let at = if text[head.len()..].starts_with(' ') {
                head.len()
            } else {
                head.rfind(' ').unwrap_or(0)
            };
            shown.push((head[..at].to_owned(), tone));
            break;
        }
        left -= text.width();
        shown.push((text, tone));
    }
    shown
}

fn right(app: &App, paint: &Paint, page: &[String], place: Rect, buffer: &mut Buffer) {
    let mut x = place.x;
    for &one in Page::VARIANTS {
        let looks = if one == app.page {
            Modifier::REVERSED
        } else {
            Modifier::DIM
        };
        let left = usize::from(place.right().saturating_sub(x));
        (x, _) = buffer.set_stringn(
            x,
            place.y,
            one.into_str(),
            left,
            Style::new().add_modifier(looks),
        );
        x += 2;
    }
    for (y, line) in (place.y + 1..place.bottom()).zip(page.iter().skip(app.scroll)) {
        buffer.set_stringn(
            place.x,
            y,
            line,
            place.width.into(),
            paint.paged(line, app.page),
        );
    }
}

/// What can be pressed, as it is shown where all of it fits.
const KEYS: [&str; 7] = [
    "? help",
    "Tab page",
    "/ search",
    "d diff",
    "r roll back",
    "u undo",
    "q leave",
];

/// The keys that fit; how to leave is among them.
fn keys(columns: usize) -> String {
    let all = KEYS.join(", ");
    if all.width() <= columns {
        return all;
    }
    let order = [0, 6, 1, 2, 3, 4, 5].map(|at| KEYS[at]);
    let fits = (1..=order.len())
        .rev()
        .map(|count| order[..count].join(", "))
        .find(|text| text.width() <= columns);
    fits.unwrap_or_default()
}

fn bottom(app: &App, paint: &Paint, area: Rect, buffer: &mut Buffer) {
    let y = area.bottom().saturating_sub(1);
    let columns = usize::from(area.width);
    let (text, tone) = match &app.prompt {
        Prompt::None => (keys(columns), Tone::Faint),
        Prompt::Search(typed) => (format!("/{typed}"), Tone::Plain),
        Prompt::Agree(command) => (
            format!("y runs: {command}   any other key does not"),
            Tone::Waiting,
        ),
        Prompt::Note(text) => (text.clone(), Tone::Plain),
    };
    if let Prompt::Agree(_) = app.prompt {
        // Whoever agrees to a command sees all of it.
        let text = wrapped(&text, columns);
        let rows: Vec<&str> = text.lines().collect();
        let top = area
            .bottom()
            .saturating_sub(u16::try_from(rows.len()).unwrap_or(u16::MAX))
            .max(area.y);
        for (y, row) in (top..area.bottom()).zip(rows) {
            buffer.set_stringn(
                area.x,
                y,
                " ".repeat(columns),
                columns,
                paint.tone(Tone::Plain),
            );
            buffer.set_stringn(area.x, y, row, columns, paint.tone(tone));
        }
        return;
    }
    // Whole words stay.
    buffer.set_stringn(
        area.x,
        y,
        cut_at_word(&text, columns),
        columns,
        paint.tone(tone),
    );
}

/// The keys in a box, over whatever is below: as wide as they need, or as the terminal is.
fn help(paint: &Paint, area: Rect, buffer: &mut Buffer) {
    let lines = help_lines(
        usize::from(area.width).saturating_sub(4),
        usize::from(area.height).saturating_sub(4),
    );
    let inside = lines.iter().map(|line| line.width()).max().unwrap_or(0);
    let edge = format!("+{}+", "-".repeat(inside + 2));
    let within = lines
        .iter()
        .map(|line| format!("| {line}{} |", " ".repeat(inside - line.width())));
    let rows: Vec<String> = [edge.clone()]
        .into_iter()
        .chain(within)
        .chain([edge])
        .collect();
    let width = u16::try_from(inside + 4)
        .unwrap_or(u16::MAX)
        .min(area.width);
    let x = area.x + (area.width - width) / 2;
    for (y, row) in (area.y + 1..area.bottom()).zip(&rows) {
        buffer.set_stringn(
            x,
            y,
            row,
            usize::from(width),
            paint.tone(Tone::Plain).add_modifier(Modifier::REVERSED),
        );
    }
}

/// The lines of the help for this many columns; where the rows are too few it ends with a sign.
fn help_lines(columns: usize, rows: usize) -> Vec<String> {
    let keys = HELP.iter().map(|(keys, _)| keys.len()).max().unwrap_or(0);
    let all = HELP
        .iter()
        .map(|(key, what)| between_words(&format!("{key:keys$}  {what}"), columns));
    let mut lines: Vec<String> = all
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    if lines.len() > rows.max(1) {
        lines.truncate(rows.saturating_sub(1));
        lines.push(MORE.trim_start().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_whole_words() {
        let row = || {
            vec![
                ("@5 ".to_owned(), Tone::Name),
                ("failed".to_owned(), Tone::Bad),
                (" After it".to_owned(), Tone::Plain),
            ]
        };
        let shown = |columns| {
            clipped(row(), columns)
                .into_iter()
                .map(|(text, _)| text)
                .collect::<String>()
        };
        assert_eq!(
            [
                shown(40),
                shown(18),
                shown(17),
                shown(15),
                shown(9),
                shown(8),
                shown(2)
            ],
            [
                "@5 failed After it",
                "@5 failed After it",
                "@5 failed ...",
                "@5 failed After",
                "@5 failed",
                "@5 ",
                "@5"
            ]
        );
    }

    #[test]
    fn the_help_is_whole_where_it_fits() {
        for columns in [36, 56, 76] {
            let lines = help_lines(columns, 40);
            assert!(
                lines.iter().all(|line| line.width() <= columns),
                "{columns}: {lines:#?}"
            );
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            let all: Vec<String> = HELP
                .iter()
                .flat_map(|(key, what)| words(&format!("{key} {what}")))
                .collect();
            assert_eq!(words(&lines.join(" ")), all, "{columns}");
        }
        assert_eq!(help_lines(56, 3)[2], "...");
    }

    #[test]
    fn how_to_leave_is_said_at_any_width() {
        assert!(keys(80).ends_with(", u undo, q leave"));
        assert_eq!(
            keys(60),
            "? help, q leave, Tab page, / search, d diff, r roll back"
        );
        assert_eq!(keys(15), "? help, q leave");
        assert_eq!([keys(9), keys(3)], ["? help", ""]);
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
        let log = vec![
            "   12 attempt_started  iteration 1, attempt 1".to_owned(),
            "git push a b".to_owned(),
        ];
        let expected = [
            "   12 attempt_started",
            "               iteration 1,",
            "               attempt 1",
            "git push a",
            "  b",
        ];
        assert_eq!(fit(&log, Page::Log, 30)[..3], expected[..3]);
        assert_eq!(fit(&log[1..], Page::Log, 10), expected[3..]);
        let wide = vec!["日本語日本語".to_owned()];
        assert!(
            fit(&wide, Page::Log, 5)
                .iter()
                .all(|line| line.width() <= 5)
        );
        assert_eq!(fit(&wide, Page::Log, 5).concat(), wide[0]);
    }
}
