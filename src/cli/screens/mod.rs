//! Screens on which a person chooses by keys: a list, what would happen, and a yes.
//!
//! (What `manual-fix` shows while a person works is `commands::manual_fix::screen`.)
//!
//! They go to stderr, so that stdout stays the answer's, and nothing is changed before the yes. Each has a flag that
//! does the same, shown at the end. They work on any terminal: where escape codes are not wanted, what is chosen is
//! shown in a single line that is overwritten.

mod browse;
mod checkpoint;
mod confirm;
mod list;
pub(super) mod resume;
mod rollback;

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context as _;
use rustix::termios::tcgetwinsize;

use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::hint::Hint;
use crate::process::{Asking, Interrupts};

use super::keys::{Key, Keys};
use super::terminal_text::wrapped;
use super::ui::Ui;

pub(super) use browse::browse;
pub(super) use checkpoint::{choose as choose_checkpoint, restore as choose_restore};
pub(super) use confirm::How;
pub(super) use rollback::{choose as choose_rollback, confirm_target as confirm_rollback};

/// How often it is looked whether a signal came or the terminal has another size.
const GLANCE: Duration = Duration::from_millis(100);

/// A conversation by single keys.
struct Talk<'a> {
    context: &'a Context,
    ui: &'a Ui,
    keys: Receiver<Key>,
    _taken: Keys,
    /// While the terminal is taken no signal may end the process at once, whatever the command does with them otherwise.
    asking: Asking,
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

    /// Waits for one of these keys; Escape is the last one.
    fn one_of(&self, wanted: &[char]) -> Result<char> {
        loop {
            match self.key()? {
                Some(Key::Char(c)) if wanted.contains(&c.to_ascii_lowercase()) => {
                    return Ok(c.to_ascii_lowercase());
                }
                Some(Key::Escape) => return Ok(wanted.last().copied().unwrap_or('q')),
                _ => {}
            }
        }
    }

    /// A line that stays, cut to the terminal's width with a sign that there is more.
    fn say(&self, text: &str) {
        let line = super::live::cut_at_word(&self.ui.shown(text), size().0);
        // With stderr closed there is nobody left to report to.
        let _ = writeln!(io::stderr(), "{line}");
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
    let talk = Talk::begin(context, ui)?;
    for line in shown.lines() {
        talk.ask(line);
    }
    talk.say("");
    talk.ask(&format!("{question} y yes, n leave everything as it is"));
    Ok(talk.one_of(&['y', 'n', 'q'])? == 'y')
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
