//! `recover browse`: runs, iterations, attempts and checkpoints on the left; diff, evidence, log or report on the right.
//!
//! It only reads. What a key does that writes is a command of `recover`, which is shown, asked about and run on the
//! ordinary screen. It is drawn with the escape codes that all terminals know, on stderr, as stdout is the answer's.

mod app;
mod draw;
mod pages;
mod timeline;

use std::io::{self, Write as _};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use app::{App, Outcome, Page, Subject};
use draw::{Paint, Places, draw, fit};
use ratatui_core::{
    backend::{Backend, ClearType, WindowSize},
    buffer::Cell,
    layout::{Position, Rect, Size},
    style::{Color, Modifier},
    terminal::Terminal,
};
use rustix::termios::tcgetwinsize;

use super::super::keys::{Key, Keys};
use super::super::ui::Ui;
use super::Talk;
use crate::engine::{Context, Error, ErrorKind, Result, inspect, status};
use crate::model::hint::Hint;
use crate::process::{Registered, Suspension, on_suspend};

/// How long without a key before a page is made.
const IDLE: Duration = Duration::from_millis(40);
/// How often it is looked whether anything was recorded.
const GLANCE: Duration = Duration::from_millis(250);
/// How often the page of a run at work is made again: times pass.
const AGAIN: Duration = Duration::from_secs(2);

/// Shows it until a user leaves.
///
/// # Errors
/// There is nobody to show it to (2).
pub(crate) fn browse(context: &Context, ui: &Ui) -> Result<()> {
    if !ui.interactive || !ui.redraws {
        let message = "recover browse needs a terminal to show runs and to take keys";
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["status"])));
    }
    let mut app = App::new(inspect::recorded(context)?, context.clock.now());
    while let Some(command) = look(context, ui, &mut app)? {
        run(context, ui, command)?;
        app.update(inspect::recorded(context)?);
    }
    Ok(())
}

/// A page as it was last made, with what it was made of.
#[derive(Default)]
struct Made {
    of: Option<(Subject, Page, u64)>,
    lines: Vec<String>,
    at: Option<Instant>,
    /// The lines as they fit on so many columns.
    fitted: (usize, Vec<String>),
}

/// Shows everything until a command is to be run; `None` where a user leaves.
fn look(context: &Context, ui: &Ui, app: &mut App) -> Result<Option<Hint>> {
    let (_taken, keys) = Keys::channel().context("cannot talk to the terminal")?;
    let mut terminal = Ansi::enter()
        .and_then(Terminal::new)
        .context("cannot draw on the terminal")?;
    let mut follow = status::Follow::new(context);
    let mut made = Made::default();
    let (mut dirty, mut glanced) = (true, Instant::now());
    loop {
        if let Some(signal) = context.interrupts.pending() {
            return Err(super::nothing_changed(signal.exit_code()));
        }
        let size = terminal.size().context("cannot draw on the terminal")?;
        let area = Rect::new(0, 0, size.width, size.height);
        let places = Places::of(area, app.in_page);
        app.beside = Places::of(area, false).page.is_some();
        let columns = places.page.map_or(0, |place| usize::from(place.width));
        let wanted = (app.subject(), app.page, app.recorded.state.last_seq);
        let is_made = made.of.as_ref() == Some(&wanted);
        if is_made && made.fitted.0 != columns {
            made.fitted = (columns, fit(&made.lines, app.page, columns));
        }
        let page: &[String] = if is_made { &made.fitted.1 } else { &[] };
        if dirty {
            app.now = context.clock.now();
            let paint = Paint {
                color: ui.stderr_color,
                unicode: ui.unicode,
            };
            let shown = |frame: &mut ratatui_core::terminal::Frame<'_>| {
                draw(app, page, paint, frame.area(), frame.buffer_mut());
            };
            terminal
                .draw(shown)
                .context("cannot draw on the terminal")?;
            dirty = app.complete();
            if dirty {
                continue;
            }
        }
        let wait = if is_made || columns == 0 {
            GLANCE
        } else {
            IDLE
        };
        match keys.recv_timeout(wait) {
            Ok(Key::Gone | Key::EndOfInput) | Err(RecvTimeoutError::Disconnected) => {
                return Ok(None);
            }
            Ok(Key::Again) => terminal.clear().context("cannot draw on the terminal")?,
            Ok(key) => {
                let most = page.len().saturating_sub(places.height(true));
                match app.press(key, places.height(app.in_page), most) {
                    Outcome::Shown => {}
                    Outcome::Leave => return Ok(None),
                    Outcome::Run(command) => return Ok(Some(command)),
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if !is_made && columns > 0 {
                    let plain = Ui {
                        color: false,
                        width: u16::try_from(columns).ok(),
                        ..ui.numbering(&app.recorded.state)
                    };
                    let lines = pages::lines(context, &plain, &app.recorded, &wanted.0, app.page);
                    made = Made {
                        of: Some(wanted),
                        lines,
                        at: Some(Instant::now()),
                        ..Made::default()
                    };
                } else if glanced.elapsed() < GLANCE && terminal.size().is_ok_and(|now| now == size)
                {
                    continue;
                }
                glanced = Instant::now();
                if follow.has_changed() {
                    app.update(inspect::recorded(context)?);
                } else if made.at.is_some_and(|at| at.elapsed() > AGAIN)
                    && app.page == Page::Overview
                {
                    made.of = None;
                }
            }
        }
        dirty = true;
    }
}

/// Runs a command on the ordinary screen and waits for a key.
fn run(context: &Context, ui: &Ui, asked: Hint) -> Result<()> {
    // With stderr closed there is nobody left to read it.
    let _ = writeln!(io::stderr(), "$ {asked}");
    let program = std::env::current_exe().context("cannot find this program")?;
    let status = Command::new(program)
        .args(context.placed(asked).arguments())
        .status()
        .context("cannot start this program")?;
    let talk = Talk::begin(context, ui)?;
    talk.say("");
    talk.ask(&match status.code() {
        Some(0) => "Done. Any key goes back.".to_owned(),
        Some(code) => format!("It ended with exit code {code}. Any key goes back."),
        None => "It was ended by a signal. Any key goes back.".to_owned(),
    });
    talk.any_key()
}

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
