//! `recover browse`: runs, iterations, attempts and checkpoints on the left; diff, evidence, log or report on the right.
//!
//! It only reads. What a key does that writes is a command of `recover`, which is shown, asked about and run on the
//! ordinary screen.

mod ansi;
mod app;
mod draw;
mod pages;
mod timeline;

use std::io::{self, Write as _};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;

use crate::engine::flow::browse::recorded;
use crate::engine::flow::follow::Follow;
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::hint::Hint;

use super::super::keys::{Key, Keys};
use super::super::ui::Ui;
use super::Talk;
use ansi::Ansi;
use app::{App, Outcome, Page, Subject};
use draw::{Places, draw, fit};

/// How long without a key before a page is made.
const IDLE: Duration = Duration::from_millis(40);
/// How often it is looked whether anything was recorded.
const GLANCE: Duration = Duration::from_millis(250);
/// How often the page of a run at work is made again: times pass.
const AGAIN: Duration = Duration::from_secs(2);

/// Shows it until somebody leaves.
///
/// # Errors
/// There is nobody to show it to (2).
pub(crate) fn browse(context: &Context, ui: &Ui) -> Result<()> {
    if !ui.interactive || !ui.redraws {
        let message = "recover browse needs a terminal to show runs and to take keys";
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["status"])));
    }
    let mut app = App::new(recorded(context)?, context.clock.now());
    while let Some(command) = look(context, ui, &mut app)? {
        run(context, ui, command)?;
        app.update(recorded(context)?);
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

/// Shows everything until a command is to be run; `None` where somebody leaves.
fn look(context: &Context, ui: &Ui, app: &mut App) -> Result<Option<app::Command>> {
    let (_taken, keys) = Keys::channel().context("cannot talk to the terminal")?;
    let mut terminal = Ansi::enter()
        .and_then(Terminal::new)
        .context("cannot draw on the terminal")?;
    let mut follow = Follow::new(context)?;
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
            let shown = |frame: &mut ratatui_core::terminal::Frame<'_>| {
                draw(app, page, ui.stderr_color, frame.area(), frame.buffer_mut());
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
                    app.update(recorded(context)?);
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
fn run(context: &Context, ui: &Ui, asked: app::Command) -> Result<()> {
    let shown = asked.to_string();
    let place = asked.place.unwrap_or_else(|| context.place());
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.arg("-C").arg(&place.folder);
    if let Some(state_dir) = &place.state_dir {
        command.arg("--state-dir").arg(state_dir);
    }
    // With stderr closed there is nobody left to read it.
    let _ = writeln!(io::stderr(), "$ {shown}");
    let status = command
        .args(asked.words)
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
