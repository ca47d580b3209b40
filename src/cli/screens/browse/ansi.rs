//! Draws on a terminal with the escape codes that all of them know; on stderr, as stdout is the answer's.

use std::io::{self, Write as _};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use rustix::termios::tcgetwinsize;

use crate::process::{Registered, Suspension, on_suspend};

/// Another screen, without a cursor; what was there before stays.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// The screen of its own, until this is dropped, while this process is stopped, or it is ended by a signal.
pub(super) struct Ansi {
    /// What is not written yet.
    pending: Vec<u8>,
    registered: Option<Registered>,
}

impl Ansi {
    pub(super) fn enter() -> io::Result<Self> {
        let registered = on_suspend(|what| {
            let codes = if what == Suspension::Begins {
                LEAVE
            } else {
                ENTER
            };
            // A terminal that went away needs nothing any more.
            let _ = put(codes);
        })?;
        put(ENTER)?;
        Ok(Self {
            pending: Vec::new(),
            registered: Some(registered),
        })
    }

    fn codes(&mut self, codes: &str) {
        self.pending.extend(codes.as_bytes());
    }
}

impl Drop for Ansi {
    fn drop(&mut self) {
        // Nobody comes back to this screen after it is left.
        drop(self.registered.take());
        // As above.
        let _ = put(LEAVE);
    }
}

fn put(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stderr().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// The codes for a colour of the terminal's 16 and for what a text looks like.
fn style(color: Color, modifier: Modifier) -> String {
    let mut codes = String::from("\x1b[0");
    for (set, code) in [
        (Modifier::BOLD, ";1"),
        (Modifier::DIM, ";2"),
        (Modifier::REVERSED, ";7"),
    ] {
        codes.push_str(if modifier.contains(set) { code } else { "" });
    }
    codes.push_str(match color {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Cyan => ";36",
        _ => "",
    });
    codes + "m"
}

impl Backend for Ansi {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> io::Result<()> {
        let mut looks = None;
        let mut next = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                self.codes(&format!("\x1b[{};{}H", y + 1, x + 1));
            }
            // A wide character takes the cell after it, too.
            next =
                (unicode_width::UnicodeWidthStr::width(cell.symbol()) == 1).then_some((x + 1, y));
            let wanted = (cell.fg, cell.modifier);
            if looks.replace(wanted) != Some(wanted) {
                self.codes(&style(cell.fg, cell.modifier));
            }
            self.codes(cell.symbol());
        }
        // Where nothing changed nothing is written.
        if looks.is_some() {
            self.codes("\x1b[0m");
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        // It is, for as long as this screen is there.
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.codes("\x1b[?25h");
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // Nobody asks on a screen that is ours alone.
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        self.codes(&format!("\x1b[{};{}H", y + 1, x + 1));
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, what: ClearType) -> io::Result<()> {
        self.codes(match what {
            ClearType::All => "\x1b[2J",
            ClearType::AfterCursor => "\x1b[J",
            ClearType::BeforeCursor => "\x1b[1J",
            ClearType::CurrentLine => "\x1b[2K",
            ClearType::UntilNewLine => "\x1b[K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(io::stderr())?;
        let or = |given: u16, usual| if given == 0 { usual } else { given };
        Ok(Size::new(or(size.ws_col, 80), or(size.ws_row, 24)))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size()?,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        put(&std::mem::take(&mut self.pending))
    }
}
