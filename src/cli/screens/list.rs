//! A list of which one is chosen, by arrows or j and k.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use crate::engine::Result;
use crate::policy::redact::redact;

use super::super::keys::Key;
use super::super::live::{cut, cut_at_word};
use super::super::terminal_text::wrapped;
use super::{Talk, nothing_changed, size};

/// What was chosen, or asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Picked {
    /// This one.
    Item(usize),
    /// This key was pressed at this one.
    Asked(char, usize),
}

/// A list on a terminal.
pub(super) struct List<'a> {
    talk: &'a Talk<'a>,
    items: &'a [String],
    /// What can be pressed beside arrows, Enter and q.
    asks: &'a [char],
    help: &'a str,
    at: usize,
    /// Rows that are drawn over, with the size of the terminal that they were drawn for.
    drawn: Option<(usize, (usize, usize))>,
}

impl<'a> List<'a> {
    /// A list that is not empty.
    pub(super) fn new(
        talk: &'a Talk<'a>,
        items: &'a [String],
        asks: &'a [char],
        help: &'a str,
        at: usize,
    ) -> Self {
        Self {
            talk,
            items,
            asks,
            help,
            at: at.min(items.len().saturating_sub(1)),
            drawn: None,
        }
    }

    /// Waits until one is chosen; leaving is an error with exit code 130.
    pub(super) fn pick(mut self) -> Result<Picked> {
        self.draw();
        loop {
            let before = self.at;
            let key = self.talk.key().inspect_err(|_| self.leave())?;
            match key {
                Some(Key::Up | Key::Char('k')) => self.at = self.at.saturating_sub(1),
                Some(Key::Down | Key::Char('j')) => {
                    self.at = (self.at + 1).min(self.items.len() - 1);
                }
                Some(Key::PageUp) => self.at = self.at.saturating_sub(size().1),
                Some(Key::PageDown) => self.at = (self.at + size().1).min(self.items.len() - 1),
                Some(Key::Home | Key::Char('g')) => self.at = 0,
                Some(Key::End | Key::Char('G')) => self.at = self.items.len() - 1,
                Some(Key::Enter) => {
                    self.leave();
                    return Ok(Picked::Item(self.at));
                }
                Some(Key::Char(c)) if self.asks.contains(&c) => {
                    self.leave();
                    return Ok(Picked::Asked(c, self.at));
                }
                Some(Key::Escape | Key::Char('q')) => {
                    self.leave();
                    return Err(nothing_changed(130));
                }
                Some(Key::Again) => self.drawn = None,
                _ => {}
            }
            let resized = self.drawn.is_some_and(|(_, drawn_for)| drawn_for != size());
            if resized && self.talk.ui.moves {
                self.drawn = None;
            }
            if before != self.at || self.drawn.is_none() {
                self.draw();
            }
        }
    }

    /// With stderr closed there is nobody left to see it.
    fn draw(&mut self) {
        let size = size();
        let text = if self.talk.ui.moves {
            self.window(size)
        } else {
            self.line(size)
        };
        let _ = io::stderr().write_all(redact(&text).as_bytes());
    }

    /// The part of the list around what is chosen, drawn over what was drawn before.
    fn window(&mut self, size: (usize, usize)) -> String {
        let (columns, rows) = size;
        let help = wrapped(self.help, columns);
        let help: Vec<&str> = help.lines().collect();
        let shown = self
            .items
            .len()
            .min(rows.saturating_sub(3 + help.len()).max(1));
        let first = self
            .at
            .saturating_sub(shown / 2)
            .min(self.items.len() - shown);
        let mut lines = Vec::new();
        for (number, item) in self.items.iter().enumerate().skip(first).take(shown) {
            let mark = if number == self.at { "> " } else { "  " };
            let line = cut_at_word(&format!("{mark}{item}"), columns);
            let bold = number == self.at && self.talk.ui.stderr_color;
            lines.push(if bold {
                format!("\x1b[1m{line}\x1b[0m")
            } else {
                line
            });
        }
        if shown < self.items.len() {
            lines.push(cut(
                &format!("  {} of {}", self.at + 1, self.items.len()),
                columns,
            ));
        }
        lines.extend(help.iter().map(|line| cut(line, columns)));
        let up = self
            .drawn
            .replace((lines.len(), size))
            .map_or(0, |(rows, _)| rows);
        let mut out = if up > 0 {
            format!("\x1b[{up}A")
        } else {
            String::new()
        };
        for line in lines {
            out.push_str(&format!("\r\x1b[K{line}\n"));
        }
        out
    }

    /// The list once, then a line with what is chosen, which is overwritten.
    fn line(&mut self, size: (usize, usize)) -> String {
        let (columns, rows) = size;
        let mut out = String::new();
        if self.drawn.is_none() {
            let help = wrapped(self.help, columns);
            let help: Vec<&str> = help.lines().collect();
            let shown = self
                .items
                .len()
                .min(rows.saturating_sub(4 + help.len()).max(1));
            for (number, item) in self.items.iter().enumerate().take(shown) {
                out.push_str(&cut_at_word(&format!("{:>3}. {item}", number + 1), columns));
                out.push('\n');
            }
            if shown < self.items.len() {
                out.push_str(&cut(
                    &format!("     and {} more below", self.items.len() - shown),
                    columns,
                ));
                out.push('\n');
            }
            for line in help {
                out.push_str(&format!("{}\n", cut(line, columns)));
            }
        }
        let line = cut(
            &format!("> {}. {}", self.at + 1, self.items[self.at]),
            columns,
        );
        let before = self.drawn.map_or(0, |(columns, _)| columns);
        let blanks = " ".repeat(before.saturating_sub(line.width()));
        self.drawn = Some((line.width(), size));
        format!("{out}\r{line}{blanks}")
    }

    /// What comes next is on a line of its own.
    fn leave(&self) {
        if !self.talk.ui.moves {
            let _ = writeln!(io::stderr());
        }
    }
}
