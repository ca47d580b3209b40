//! Screens on which a person chooses by keys: a list, what would happen, and a yes.
//!
//! (What `manual-fix` shows while a person works is `commands::manual_fix::screen`.)
//!
//! They go to stderr, so that stdout stays the answer's, and nothing is changed before the yes. Each has a flag that
//! does the same, shown at the end. They work on any terminal: where escape codes are not wanted, each choice is shown
//! in a line of its own below the list.

mod browse;
mod choose;
pub(super) mod resume;

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context as _;
use rustix::termios::tcgetwinsize;

use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::hint::Hint;
use crate::policy::secrets::redact;
use crate::process::{Interrupts, SignalGuard};

use super::keys::{Key, Keys};
use super::live::{cut, cut_at_word};
use super::render::tinted;
use super::terminal_text::wrapped;
use super::ui::Ui;

pub(super) use browse::browse;
pub(super) use choose::{choose_checkpoint, choose_restore, choose_rollback, confirm_rollback};

/// How often it is looked whether a signal came or the terminal has another size.
const GLANCE: Duration = Duration::from_millis(100);

/// A conversation by single keys.
struct Talk<'a> {
    context: &'a Context,
    ui: &'a Ui,
    keys: Receiver<Key>,
    _taken: Keys,
    /// While the terminal is taken no signal may end the process at once, whatever the command does with them otherwise.
    asking: SignalGuard,
}

impl<'a> Talk<'a> {
    fn begin(context: &'a Context, ui: &'a Ui) -> Result<Self> {
        let asking = Interrupts::while_asking().context("cannot listen for signals")?;
        let (taken, keys) = Keys::channel().context("cannot talk to the terminal")?;
        Ok(Self {
            context,
            ui,
            keys,
            _taken: taken,
            asking,
        })
    }

    /// The next key; `None` after a glance without one.
    fn key(&self) -> Result<Option<Key>> {
        if let Some(signal) = self.asking.pending() {
            return Err(nothing_changed(signal.exit_code()));
        }
        match self.keys.recv_timeout(GLANCE) {
            Ok(Key::EndOfInput | Key::Gone) | Err(RecvTimeoutError::Disconnected) => {
                Err(nothing_changed(130))
            }
            Ok(key) => Ok(Some(key)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
        }
    }

    /// Waits for one of these keys; Enter is `enter` and Escape the last one.
    fn confirmed(&self, enter: char, wanted: &[char]) -> Result<char> {
        loop {
            match self.key()? {
                Some(Key::Enter) if wanted.contains(&enter) => return Ok(enter),
                Some(Key::Char(c)) if wanted.contains(&c.to_ascii_lowercase()) => {
                    return Ok(c.to_ascii_lowercase());
                }
                Some(Key::Escape) => return Ok(wanted.last().copied().unwrap_or('q')),
                _ => {}
            }
        }
    }

    /// Waits for one of these keys; Escape is the last one.
    fn one_of(&self, wanted: &[char]) -> Result<char> {
        self.confirmed('\0', wanted)
    }

    /// A line that stays, cut to the terminal's width with a sign that there is more.
    fn say(&self, text: &str) {
        let line = cut_at_word(&self.ui.shown(text), size().0);
        // With stderr closed there is nobody left to report to.
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// What stands above what belongs to it, on as many lines as it takes.
    fn title(&self, text: &str) {
        for line in wrapped(&self.ui.shown(text), size().0).split('\n') {
            let line = if self.ui.stderr_color {
                format!("\x1b[1m{line}\x1b[0m")
            } else {
                line.to_owned()
            };
            // With stderr closed there is nobody left to report to.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    /// What can be pressed: on as many lines as it takes.
    fn ask(&self, text: &str) {
        for line in wrapped(text, size().0).split('\n') {
            self.say(line);
        }
    }

    /// Waits for any key.
    fn any_key(&self) -> Result<()> {
        while self.key()?.is_none_or(|key| key == Key::Again) {}
        Ok(())
    }

    /// A line that stays and is as long as it is: commands to copy, errors.
    fn say_all(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{}", self.ui.shown(text));
    }
}

/// Shows what is there and asks whether to go on with it.
pub(super) fn agrees(context: &Context, ui: &Ui, shown: &str, question: &str) -> Result<bool> {
    let question = format!("{question} y yes, n leave everything as it is");
    Ok(asked(context, ui, shown, &question, ('\0', &['y', 'n', 'q']))? == 'y')
}

/// Shows what is there and waits for one of the keys, of which `q` is the last: that, and Escape, is the end (130).
pub(super) fn answer(
    context: &Context,
    ui: &Ui,
    shown: &str,
    question: &str,
    keys: &[char],
) -> Result<char> {
    match asked(context, ui, shown, question, ('\0', keys))? {
        'q' => Err(nothing_changed(130)),
        key => Ok(key),
    }
}

/// Shows what is there and waits for one of the keys; Enter is the first of the pair.
fn asked(
    context: &Context,
    ui: &Ui,
    shown: &str,
    question: &str,
    (enter, keys): (char, &[char]),
) -> Result<char> {
    let talk = Talk::begin(context, ui)?;
    for line in shown.lines() {
        talk.ask(line);
    }
    talk.say("");
    talk.ask(question);
    talk.confirmed(enter, keys)
}

/// The same where a no is the end (130), and a yes counts as `--yes` from then on.
pub(super) fn require_yes(
    context: &mut Context,
    ui: &Ui,
    shown: &str,
    question: &str,
) -> Result<()> {
    if !agrees(context, ui, shown, question)? {
        return Err(nothing_changed(130));
    }
    context.confirm();
    Ok(())
}

/// What comes of a step that is shown before it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Run,
    Skip,
    Leave,
}

/// Shows a step and waits for a key.
pub(super) fn next_step(context: &Context, ui: &Ui, shown: &str) -> Result<NextStep> {
    let question = "Enter runs it, s skips it, q leaves";
    let key = asked(context, ui, shown, question, ('\r', &['\r', 's', 'q']))?;
    Ok(match key {
        '\r' => NextStep::Run,
        's' => NextStep::Skip,
        _ => NextStep::Leave,
    })
}

/// What a person said to a question with three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    /// Yes, from now on.
    Always,
    /// Yes, this time.
    Once,
    /// No.
    No,
}

/// Shows what is there and asks whether it is trusted. What is shown is shown whole: what is masked cannot be judged.
pub(super) fn trusts(context: &Context, ui: &Ui, shown: &str) -> Result<Consent> {
    let talk = Talk::begin(context, ui)?;
    for line in shown.lines() {
        // With stderr closed there is nobody left to see it.
        let _ = writeln!(io::stderr(), "{}", ui.shown_whole(line));
    }
    talk.say("");
    talk.ask("Trust it? y yes, until it changes, o only this time, n no");
    Ok(match talk.one_of(&['y', 'o', 'n', 'q'])? {
        'y' => Consent::Always,
        'o' => Consent::Once,
        _ => Consent::No,
    })
}

/// Columns that may be written to, and rows.
fn size() -> (usize, usize) {
    let size = tcgetwinsize(io::stderr())
        .ok()
        .filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((79, 24), |size| {
        (
            usize::from(size.ws_col).saturating_sub(1).max(1),
            usize::from(size.ws_row),
        )
    })
}

fn nothing_changed(code: i32) -> Error {
    Error::new(
        ErrorKind::Interrupted(code),
        "cancelled; nothing was changed",
    )
}

/// The command that does the same as the screen did.
fn same_as(words: &[String]) -> String {
    format!("Same as: {}", Hint::recover(words))
}

/// What was chosen, or asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Picked {
    /// This one.
    Item(usize),
    /// This key was pressed at this one.
    Asked(char, usize),
}

/// A list on a terminal.
struct List<'a> {
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
    fn new(
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
    fn pick(mut self) -> Result<Picked> {
        self.draw();
        loop {
            let before = self.at;
            match self.talk.key()? {
                Some(Key::Up | Key::Char('k')) => self.at = self.at.saturating_sub(1),
                Some(Key::Down | Key::Char('j')) => {
                    self.at = (self.at + 1).min(self.items.len() - 1);
                }
                Some(Key::PageUp) => self.at = self.at.saturating_sub(size().1),
                Some(Key::PageDown) => self.at = (self.at + size().1).min(self.items.len() - 1),
                Some(Key::Home | Key::Char('g')) => self.at = 0,
                Some(Key::End | Key::Char('G')) => self.at = self.items.len() - 1,
                Some(Key::Enter) => return Ok(Picked::Item(self.at)),
                Some(Key::Char(c @ '1'..='9')) => {
                    let row = (u32::from(c) - u32::from('1')) as usize;
                    self.at = row.min(self.items.len() - 1);
                }
                Some(Key::Char(c)) if self.asks.contains(&c) => {
                    return Ok(Picked::Asked(c, self.at));
                }
                Some(Key::Escape | Key::Char('q')) => return Err(nothing_changed(130)),
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
        let text = if self.talk.ui.moves || self.drawn.is_none() {
            self.window(size)
        } else {
            cut_at_word(&format!("> {}", self.items[self.at]), size.0) + "\n"
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
            lines.push(match (self.talk.ui.stderr_color, number == self.at) {
                (true, true) => format!("\x1b[1m{}\x1b[0m", tinted(line)),
                (true, false) => tinted(line),
                (false, _) => line,
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
        let clear = if self.talk.ui.moves { "\r\x1b[K" } else { "" };
        for line in lines {
            out.push_str(&format!("{clear}{line}\n"));
        }
        out
    }
}
