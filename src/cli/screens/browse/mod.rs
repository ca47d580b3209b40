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
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};
use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthStr as _;

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
        let message = match std::env::var("TERM").unwrap_or_default() {
            term if ui.interactive && ui.width.is_some() => format!(
                "recover browse needs a terminal whose cursor can be moved: TERM is '{term}'"
            ),
            _ => "recover browse needs a terminal to show runs and to take keys".to_owned(),
        };
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["status"])));
    }
    let mut app = App::new(inspect::recorded(context)?, context.clock.now());
    while let Some(command) = look(context, ui, &mut app)? {
        run(context, ui, command)?;
        app.update(inspect::recorded(context)?);
    }
    Ok(())
}

/// A page as it was last made, with what it was made of and for how many columns.
#[derive(Default)]
struct Made {
    of: Option<(Subject, Page, u64, usize)>,
    lines: Vec<String>,
    at: Option<Instant>,
}

/// Shows everything until a command is to be run; `None` where a user leaves.
fn look(context: &Context, ui: &Ui, app: &mut App) -> Result<Option<Hint>> {
    let failed = "cannot draw on the terminal";
    let (_taken, keys) = Keys::channel().context("cannot talk to the terminal")?;
    let mut screen = Screen::enter().context(failed)?;
    let mut follow = status::Follow::new(context);
    let mut made = Made::default();
    let paint = Paint {
        color: ui.stderr_color,
        unicode: ui.unicode,
    };
    loop {
        if let Some(signal) = context.interrupts.pending() {
            return Err(super::nothing_changed(signal.exit_code()));
        }
        let area = area().context(failed)?;
        let places = Places::of(area, app.in_page);
        app.beside = Places::of(area, false).page.is_some();
        app.now = context.clock.now();
        let columns = places.page.map_or(0, |place| usize::from(place.width));
        let wanted = (
            app.subject(),
            app.page,
            app.recorded.state.last_seq,
            columns,
        );
        let is_made = columns == 0 || made.of.as_ref() == Some(&wanted);
        let page: &[String] = if is_made { &made.lines } else { &[] };
        let mut buffer = Buffer::empty(area);
        draw(app, page, paint, area, &mut buffer);
        screen.show(buffer).context(failed)?;
        match keys.recv_timeout(if is_made { GLANCE } else { IDLE }) {
            Ok(Key::Gone | Key::EndOfInput) | Err(RecvTimeoutError::Disconnected) => {
                return Ok(None);
            }
            Ok(Key::Again) => screen.shown = Buffer::default(),
            Ok(key) => {
                let most = page.len().saturating_sub(places.height(true));
                match app.press(key, places.height(app.in_page), most) {
                    Outcome::Shown => {}
                    Outcome::Leave => return Ok(None),
                    Outcome::Run(command) => return Ok(Some(command)),
                }
            }
            Err(RecvTimeoutError::Timeout) if follow.has_changed() => {
                app.update(inspect::recorded(context)?);
            }
            Err(RecvTimeoutError::Timeout) => {
                let is_old =
                    app.page == Page::Overview && made.at.is_some_and(|at| at.elapsed() > AGAIN);
                if columns > 0 && (is_old || !is_made) {
                    let plain = Ui {
                        color: false,
                        width: u16::try_from(columns).ok(),
                        ..ui.numbering(&app.recorded.state)
                    };
                    let lines = pages::lines(context, &plain, &app.recorded, &wanted.0, app.page);
                    made = Made {
                        lines: fit(&lines, app.page, columns),
                        of: Some(wanted),
                        at: Some(Instant::now()),
                    };
                }
            }
        }
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
struct Screen {
    shown: Buffer,
    registered: Option<Registered>,
}

impl Screen {
    fn enter() -> io::Result<Self> {
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
            shown: Buffer::default(),
            registered: Some(registered),
        })
    }

    /// Draws what differs from what is shown.
    fn show(&mut self, next: Buffer) -> io::Result<()> {
        let mut codes = String::new();
        if self.shown.area != next.area {
            codes.push_str("\x1b[0m\x1b[2J");
            self.shown = Buffer::empty(next.area);
        }
        let (mut at, mut looks) = (None, None);
        for (x, y, cell) in self.shown.diff(&next) {
            if at != Some((x, y)) {
                codes.push_str(&format!("\x1b[{};{}H", y + 1, x + 1));
            }
            // A wide character takes the cell after it, too.
            at = (cell.symbol().width() == 1).then_some((x + 1, y));
            let wanted = (cell.fg, cell.modifier);
            if looks.replace(wanted) != Some(wanted) {
                codes.push_str(&style(cell.fg, cell.modifier));
            }
            codes.push_str(cell.symbol());
        }
        if looks.is_some() {
            codes.push_str("\x1b[0m");
        }
        self.shown = next;
        // Where nothing changed nothing is written.
        if codes.is_empty() {
            return Ok(());
        }
        put(codes.as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody comes back to this screen after it is left.
        drop(self.registered.take());
        // As above.
        let _ = put(LEAVE);
    }
}

/// The whole terminal.
fn area() -> io::Result<Rect> {
    let size = tcgetwinsize(io::stderr())?;
    let or = |given: u16, usual| if given == 0 { usual } else { given };
    Ok(Rect::new(0, 0, or(size.ws_col, 80), or(size.ws_row, 24)))
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
