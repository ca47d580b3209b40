//! A line below everything that is printed on the terminal, for as long as a user keeps it there.
//!
//! Whatever this process prints on the terminal goes [through](pass) here: the line is taken away, what is to be printed
//! comes in its place, and the line is drawn again below it. No escape codes are needed for that: the line is
//! overwritten with blanks. Only below a line that has not ended yet it needs a terminal that moves its cursor, and is
//! then drawn once nothing came for a moment. The line never fills a row of the terminal, so that it never wraps.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use unicode_width::UnicodeWidthStr;

use crate::policy::secrets::redact;

/// Nothing came for so long: an unfinished line may stay unfinished for a while.
const CALM: Duration = Duration::from_millis(300);

static STATE: Mutex<State> = Mutex::new(State::NEW);

/// The line, kept on the terminal of stderr until this is dropped.
#[derive(Debug)]
pub(crate) struct Footer {
    terminal: File,
}

impl Footer {
    /// `moves` says whether the terminal's cursor may be moved.
    pub(crate) fn new(moves: bool) -> io::Result<Self> {
        let terminal = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        *state() = State {
            moves,
            ..State::NEW
        };
        Ok(Self { terminal })
    }

    /// Columns that the line may have.
    pub(crate) fn width(&self) -> usize {
        width_of(&self.terminal)
    }

    /// Whether others have the terminal while this process goes on in the background: the line would be drawn over a
    /// shell's prompt.
    pub(crate) fn is_others(&self) -> bool {
        tcgetpgrp(&self.terminal).is_ok_and(|group| group != getpgrp())
    }

    /// Shows this line from now on: one line of plain text, already as short as [`Self::width`]. `None` for none.
    pub(crate) fn draw(&self, line: Option<String>) {
        let columns = self.width();
        let mut state = state();
        if state.drawn.is_some() && state.wanted == line {
            return;
        }
        let erased = state.erase(columns);
        state.wanted = line;
        let drawn = state.draw(columns, Instant::now());
        // A terminal that went away shows nothing.
        let _ = (&self.terminal).write_all((erased + &drawn).as_bytes());
    }
}

fn width_of(terminal: &File) -> usize {
    let columns = tcgetwinsize(terminal).map_or(0, |size| size.ws_col);
    usize::from(if columns == 0 { 80 } else { columns }).saturating_sub(1)
}

impl Drop for Footer {
    fn drop(&mut self) {
        self.draw(None);
        *state() = State::NEW;
    }
}

/// Prints `bytes` on a terminal by means of `write`, above the line if there is one.
pub(super) fn pass<R>(terminal: &File, bytes: &[u8], write: impl FnOnce() -> R) -> R {
    let mut state = state();
    let erased = if state.drawn.is_some() {
        state.erase(width_of(terminal))
    } else {
        String::new()
    };
    if !erased.is_empty() {
        let _ = (&mut &*terminal).write_all(erased.as_bytes());
    }
    let result = write();
    state.printed(bytes);
    if state.wanted.is_some() {
        let drawn = state.draw(usize::MAX, Instant::now());
        let _ = (&mut &*terminal).write_all(drawn.as_bytes());
    }
    result
}

/// This process's stderr; what is written to it comes above the line, at the beginning of a line of its own, without secrets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::write_as_is(redact(text).as_bytes()),
            Err(_) => Self::write_as_is(redact(&String::from_utf8_lossy(bytes)).as_bytes()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stderr {
    /// Writes what must not be masked: who reads it is told secrets to mask them.
    pub(crate) fn write_as_is(bytes: &[u8]) -> io::Result<()> {
        if !is_open() {
            return io::stderr().write_all(bytes);
        }
        let terminal = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let mut all = Vec::with_capacity(bytes.len() + 1);
        if state().column != Some(0) {
            all.push(b'\n');
        }
        all.extend_from_slice(bytes);
        pass(&terminal, &all, || (&terminal).write_all(&all))
    }
}

fn is_open() -> bool {
    state().wanted.is_some()
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock()
}

/// Where the terminal's cursor is, as far as that matters.
#[derive(Debug)]
struct State {
    /// The line that is to be there.
    wanted: Option<String>,
    /// Columns of the line that is there.
    drawn: Option<usize>,
    /// It is on the row below a line that has not ended.
    below: bool,
    /// Where what was printed ends, from 0; `None` where that is not known.
    column: Option<usize>,
    moves: bool,
    /// When something was printed last.
    last: Option<Instant>,
    /// Where in an escape sequence what was printed ends.
    escape: Escape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    Control,
}

impl State {
    const NEW: Self = Self {
        wanted: None,
        drawn: None,
        below: false,
        column: Some(0),
        moves: false,
        last: None,
        escape: Escape::None,
    };

    /// What takes the line away; the cursor is then where what was printed ends. On a terminal that became narrower,
    /// with now so many `columns`, blanks must not run into the next row.
    fn erase(&mut self, columns: usize) -> String {
        let Some(drawn) = self.drawn.take() else {
            return String::new();
        };
        let mut out = format!("\r{}\r", " ".repeat(drawn.min(columns)));
        if std::mem::take(&mut self.below) {
            out.push_str(&format!("\x1b[A\x1b[{}G", self.column.unwrap_or(0) + 1));
        }
        out
    }

    /// What draws the line, if this is a place and a time for it. `columns` is the terminal's width.
    fn draw(&mut self, columns: usize, now: Instant) -> String {
        let Some(line) = &self.wanted else {
            return String::new();
        };
        let calm = self
            .last
            .is_none_or(|last| now.duration_since(last) >= CALM);
        let below = match self.column {
            Some(0) => false,
            Some(column) if self.moves && calm && column < columns && columns < usize::MAX => true,
            _ => return String::new(),
        };
        self.below = below;
        self.drawn = Some(line.width());
        if below {
            format!("\r\n{line}")
        } else {
            format!("\r{line}")
        }
    }

    /// Notes what was printed.
    fn printed(&mut self, bytes: &[u8]) {
        self.last = Some(Instant::now());
        // What came before the last line's beginning does not matter.
        let begin = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        if begin > 0 {
            (self.column, self.escape) = (Some(0), Escape::None);
        }
        for byte in &bytes[begin..] {
            self.column = match (self.escape, byte) {
                (Escape::Begun, b'[') => {
                    self.escape = Escape::Control;
                    self.column
                }
                (Escape::Control, b'0'..=b'9' | b';' | b':') => self.column,
                (Escape::Control, b'm') => {
                    self.escape = Escape::None;
                    self.column
                }
                (Escape::None, 0x1b) => {
                    self.escape = Escape::Begun;
                    self.column
                }
                // What is on this line is still there, and a user may yet write behind it.
                (Escape::None, b'\r') => self.column.filter(|column| *column == 0),
                (Escape::None, b' '..=b'~') => self.column.map(|column| column + 1),
                // Anything else may have moved the cursor anywhere.
                _ => {
                    self.escape = Escape::None;
                    None
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bytes: &[u8]) -> Option<usize> {
        let mut state = State::NEW;
        state.printed(bytes);
        state.column
    }

    #[test]
    fn the_column_is_known_where_it_is_simple() {
        assert_eq!(after(b"a line\n"), Some(0));
        assert_eq!(after(b"a line\nhalf"), Some(4));
        assert_eq!(after(b"\x1b[1;31mred\x1b[0m"), Some(3));
        assert_eq!(after(b"50%\r"), None);
        assert_eq!(after(b"50%\r60%"), None);
        assert_eq!(after(b"50%\r\n"), Some(0));
        assert_eq!(after(b"\r"), Some(0));
        assert_eq!(after("größer".as_bytes()), None);
        assert_eq!(after(b"\x1b[2Kx"), None);
        assert_eq!(after(b"a\tb"), None);
        assert_eq!(after("größer\n".as_bytes()), Some(0));
    }

    #[test]
    fn the_line_comes_and_goes_below_what_is_printed() {
        let later = Instant::now() + CALM * 2;
        let mut state = State {
            wanted: Some("status".to_owned()),
            ..State::NEW
        };
        assert_eq!(state.draw(79, later), "\rstatus");
        assert_eq!(state.erase(79), "\r      \r");
        assert_eq!(state.draw(79, later), "\rstatus");
        assert_eq!(state.erase(4), "\r    \r", "it became narrower");
        state.printed(b"half");
        assert_eq!(state.draw(79, later), "", "this terminal cannot go back");
        state.moves = true;
        assert_eq!(state.draw(79, Instant::now()), "", "more may come");
        assert_eq!(state.draw(79, later), "\r\nstatus");
        assert_eq!(state.erase(79), "\r      \r\x1b[A\x1b[5G");
        state.printed(b" a line\n");
        assert_eq!(state.draw(79, Instant::now()), "\rstatus");
    }

    #[test]
    fn a_line_that_is_to_be_overwritten_is_its_owners() {
        let later = Instant::now() + CALM * 2;
        let mut state = State {
            wanted: Some("status".to_owned()),
            moves: true,
            ..State::NEW
        };
        state.printed(b"progress 50%\r");
        assert_eq!(state.draw(79, later), "");
        state.printed(b"progress 60%\r");
        assert_eq!(state.draw(79, later), "");
        state.printed(b"done\n");
        assert_eq!(state.draw(79, later), "\rstatus");
    }

    #[test]
    fn an_unfinished_line_that_may_have_wrapped_is_left_alone() {
        let later = Instant::now() + CALM * 2;
        let mut state = State {
            wanted: Some("status".to_owned()),
            moves: true,
            ..State::NEW
        };
        state.printed(&[b'x'; 100]);
        assert_eq!(state.draw(79, later), "");
    }
}
