//! The live display of a run on a terminal, and its story in lines where nobody watches.
//! A line at the bottom says where the run stands, results come above it, and single keys steer it.
//!
//! Everything goes to stderr, and above the line the command's own output comes as it is. The line is ASCII, takes one
//! row whatever the terminal's width, and needs neither colour nor escape codes.

mod github;
mod status_line;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use chrono::{DateTime, Local, SecondsFormat, Utc};
use clap::builder::styling::{AnsiColor, Style};
use parking_lot::Mutex;
use status_line::{Doing, View, What};

use crate::engine::base::{clock, progress};
use crate::engine::{Context, inspect};
use crate::model::{FeedbackResult, RunKey, Timestamp};
use crate::policy::report::markdown;
use crate::process::{Footer, Registered, Stderr, Suspension, on_suspend};

use self::github::Github;
use super::keys::{Key, Keys};
use super::render::{moment, said, seconds};
use super::terminal_text::wrapped;
use super::ui::{Ui, escape};

pub(super) use status_line::{cut, cut_at_word};

/// How often the line is drawn again.
const TICK: Duration = Duration::from_millis(200);

/// Shows a run as it goes on to whoever is there: a display on a terminal, else its story in lines.
#[derive(Default)]
pub(super) struct Watch {
    display: Option<Display>,
    story: Option<Story>,
}

impl Watch {
    /// Shows what `context` does from now on.
    pub(super) fn start(context: &Context, ui: &Ui) -> Self {
        Self {
            display: Display::start(context, ui, false),
            story: Story::start(context, ui, false),
        }
    }

    /// The same beside a command that has the terminal and our streams to itself, `--passthrough`: no line at the bottom and no
    /// keys, for both are the command's, and nothing is said while all goes well; but why it is tried again, and until when
    /// nothing happens.
    pub(super) fn beside(context: &Context, ui: &Ui) -> Self {
        let quiet = Ui {
            redraws: false,
            keys: false,
            ..ui.clone()
        };
        Self {
            display: Display::start(context, &quiet, true),
            story: Story::start(context, ui, true),
        }
    }

    /// Shows nothing any more; `key` is the run that was shown.
    pub(super) fn end(self, context: &Context, key: Option<&RunKey>) {
        drop(self.display);
        if let Some(story) = self.story {
            story.end(context, key);
        }
    }
}

/// The display, until it is dropped.
struct Display {
    shared: Arc<Shared>,
    tick: Option<Sender<()>>,
    ticker: Option<JoinHandle<()>>,
    _registered: Option<Registered>,
}

struct Shared {
    ui: Ui,
    progress: progress::Progress,
    /// What is as it should be is not printed.
    sparing: bool,
    view: Mutex<View>,
    /// `None` on a terminal that cannot overwrite, and once the display is over.
    footer: Mutex<Option<Footer>>,
    keys: Mutex<Option<Keys>>,
}

impl Display {
    /// The display of what `context` does, with `sparing` of what nobody expects alone; `None` where stderr is no terminal, or
    /// nobody wants to see anything.
    fn start(context: &Context, ui: &Ui, sparing: bool) -> Option<Self> {
        if !ui.stderr_terminal || ui.quiet || context.dry_run() {
            return None;
        }
        match Self::open(context, ui, sparing) {
            Ok(display) => Some(display),
            // The run is more important than its display.
            Err(error) => {
                tracing::warn!(%error, "the progress of the run cannot be shown");
                None
            }
        }
    }

    fn open(context: &Context, ui: &Ui, sparing: bool) -> io::Result<Self> {
        let footer = ui.redraws.then(|| Footer::new(ui.moves)).transpose()?;
        let shared = Arc::new(Shared {
            ui: ui.clone(),
            progress: context.progress.clone(),
            sparing,
            view: Mutex::default(),
            footer: Mutex::new(footer),
            keys: Mutex::default(),
        });
        if ui.keys {
            let pressed = Arc::clone(&shared);
            *shared.keys.lock() = Some(Keys::listen(move |key| pressed.pressed(key))?);
            shared.view.lock().keys = true;
        }
        let suspended = Arc::clone(&shared);
        let registered = on_suspend(move |what| suspended.suspended(what))?;
        let (tick, ticks) = channel();
        let drawn = Arc::clone(&shared);
        let redraw = move || {
            while let Err(RecvTimeoutError::Timeout) = ticks.recv_timeout(TICK) {
                drawn.draw();
            }
        };
        let ticker = thread::Builder::new()
            .name("display".to_owned())
            .spawn(redraw)?;
        context
            .progress
            .observe(Arc::new(Told(Arc::clone(&shared))));
        Ok(Self {
            shared,
            tick: Some(tick),
            ticker: Some(ticker),
            _registered: Some(registered),
        })
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.tick = None;
        if let Some(ticker) = self.ticker.take() {
            // It only fails if it panicked, and that was reported.
            let _ = ticker.join();
        }
        let keys = self.shared.keys.lock().take();
        drop(keys);
        let footer = self.shared.footer.lock().take();
        drop(footer);
    }
}

/// What the run reports.
struct Told(Arc<Shared>);

impl progress::Observer for Told {
    fn on_event(&self, now: Timestamp, event: progress::ProgressEvent<'_>) {
        let shared = &self.0;
        let lines = shared.view.lock().take(&event, |at| moment(at, now));
        let told = !(shared.sparing && is_usual(&event));
        if told {
            for line in &lines {
                shared.say(now, line);
            }
        }
        if let progress::ProgressEvent::LoopEnded { name, result } = event
            && told
        {
            shared.say_result(now, name, result);
        }
        if let progress::ProgressEvent::Attempt { run, .. } = event
            && run.spec.pty
        {
            // The command has the terminal to itself.
            shared.leave(true);
        } else if matches!(
            event,
            progress::ProgressEvent::LoopBegun { .. } | progress::ProgressEvent::Ended { .. }
        ) {
            shared.leave(false);
        }
        shared.draw();
    }
}

/// Whether this is what everybody expects.
fn is_usual(progress: &progress::ProgressEvent<'_>) -> bool {
    match progress {
        progress::ProgressEvent::Attempt { attempt, .. } => *attempt == 1,
        progress::ProgressEvent::LoopEnded { result, .. } => result.passed,
        progress::ProgressEvent::Ended { failure, .. } => failure.is_none(),
        progress::ProgressEvent::Baseline { .. } => true,
        _ => false,
    }
}

impl Shared {
    fn draw(&self) {
        if let Some(footer) = &*self.footer.lock() {
            let width = footer.width();
            let shown = |line: String| cut(&self.ui.shown(&line), width);
            let line = self
                .view
                .lock()
                .line(width, Instant::now(), Timestamp::new(Utc::now()));
            footer.draw(line.filter(|_| !footer.is_others()).map(shown));
        }
    }

    /// A line that stays, behind a mark and the time that tell it from the command's output; in the colour of its first word.
    fn say(&self, now: Timestamp, text: &str) {
        let mark = if self.ui.unicode { "▸" } else { ">" };
        let time = local(now).format("%H:%M:%S");
        let text = self.ui.shown(text);
        if !self.ui.stderr_color {
            return self.print(&format!("{mark} {time} {text}"));
        }
        let first = text.split([':', ' ']).next().unwrap_or_default();
        let style = match first {
            "passed" | "Passed" => AnsiColor::Green.on_default(),
            "FAILED" => AnsiColor::Red.on_default(),
            "Waiting" | "Parked" => AnsiColor::Yellow.on_default(),
            _ => Style::new(),
        };
        let (ours, rest) = (AnsiColor::Cyan.on_default(), &text[first.len()..]);
        self.print(&format!(
            "{ours}{mark} {time}{ours:#} {style}{first}{style:#}{rest}"
        ));
    }

    /// With stderr closed there is nobody left to report to.
    fn print(&self, line: &str) {
        let width = self
            .footer
            .lock()
            .as_ref()
            .map(Footer::width)
            .or(self.ui.stderr_width.map(usize::from));
        let text = width.map_or_else(|| line.to_owned(), |width| wrapped(line, width));
        let _ = Stderr.write_all(format!("{text}\n").as_bytes());
    }

    fn say_result(&self, now: Timestamp, name: &str, result: &FeedbackResult) {
        let verdict = if result.passed { "passed" } else { "FAILED" };
        let (said, took) = (said(result), seconds(result.duration));
        self.say(now, &format!("{verdict} {name}: {said} ({took})"));
    }

    /// Leaves the terminal to the command, or takes it again.
    fn leave(&self, left: bool) {
        self.view.lock().left = left;
        if let Some(keys) = &*self.keys.lock() {
            keys.pause(left);
        }
    }

    fn pressed(&self, key: Key) -> bool {
        match key {
            Key::Char('r' | 'R') if self.view.lock().is_waiting() => self.progress.retry_now(),
            Key::Char('s' | 'S') => {
                let stops = self.progress.toggle_stop();
                self.view.lock().stops = stops;
            }
            Key::Gone => self.view.lock().keys = false,
            _ => return true,
        }
        self.draw();
        key != Key::Gone
    }

    fn suspended(&self, what: Suspension) {
        self.view
            .lock()
            .suspended(what == Suspension::Begins, Instant::now());
        self.draw();
    }
}

/// A time in the zone of whoever reads it.
fn local(at: Timestamp) -> DateTime<Local> {
    at.datetime().with_timezone(&Local)
}

/// `2026-01-05T04:19:02.150+01:00`; `Z` for UTC.
fn with_offset(at: Timestamp) -> String {
    local(at)
        .fixed_offset()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

impl Doing {
    fn now(what: What) -> Self {
        Self {
            what,
            since: Instant::now(),
        }
    }
}

impl View {
    /// Takes note; the answer is what stays to be read, with times as `shown` has them.
    fn take(
        &mut self,
        progress: &progress::ProgressEvent<'_>,
        shown: impl Fn(Timestamp) -> String,
    ) -> Vec<String> {
        match *progress {
            progress::ProgressEvent::Baseline { run } => {
                self.run = escape(&run.key.to_string());
                vec!["Checking before the first attempt.".to_owned()]
            }
            progress::ProgressEvent::Attempt {
                run,
                iteration,
                attempt,
                limit,
                deadline,
            } => {
                let of = |total: Option<u32>| {
                    total.map_or_else(String::new, |total| format!(" of {total}"))
                };
                // What a person grants comes on top of the limit.
                let limit = limit.filter(|limit| attempt <= *limit);
                self.run = escape(&run.key.to_string());
                self.iteration = format!(
                    "{iteration}{}",
                    of(run.spec.iterations_total).replace(" of ", "/")
                );
                self.attempt = format!("{attempt}{}", of(limit).replace(" of ", "/"));
                self.results.clear();
                self.usage = run.usage().text().unwrap_or_default();
                self.doing = Some(Doing::now(What::Command { deadline }));
                let iterations = of(run.spec.iterations_total);
                let task = run.spec.task(iteration);
                let task = task.map_or_else(String::new, |task| format!(" ({})", escape(&task.id)));
                vec![format!(
                    "Iteration {iteration}{iterations}{task}, attempt {attempt}{}",
                    of(limit)
                )]
            }
            progress::ProgressEvent::LoopBegun {
                name,
                deadline,
                again,
            } => {
                self.doing = Some(Doing::now(What::Loop {
                    name: escape(name),
                    deadline,
                    again,
                }));
                // Its output comes twice.
                let label =
                    format!("Check {name} failed and is run again, unchanged: it may be flaky");
                if again { vec![label] } else { Vec::new() }
            }
            progress::ProgressEvent::LoopEnded { name, result } => {
                self.results.push((escape(name), result.passed));
                Vec::new()
            }
            progress::ProgressEvent::Ended {
                iteration,
                attempt,
                failure,
                decision,
                used,
                in_all,
            } => {
                self.doing = Some(Doing::now(What::Recording));
                self.usage = in_all.text().unwrap_or_default();
                let used = used
                    .text()
                    .map(|used| format!(" ({used})"))
                    .unwrap_or_default();
                let mut lines = vec![match failure {
                    None => format!("Passed: iteration {iteration}, attempt {attempt}{used}"),
                    Some(failure) => {
                        format!(
                            "FAILED: iteration {iteration}, attempt {attempt}{used}: {}",
                            failure.message
                        )
                    }
                }];
                lines.extend(
                    decision.map(|decision| {
                        format!("Decision: {}", clock::local_times(&decision.reason))
                    }),
                );
                self.reason = decision
                    .map(|decision| escape(&clock::local_times(&decision.reason)))
                    .unwrap_or_default();
                lines
            }
            progress::ProgressEvent::Waiting {
                until,
                parked,
                reason,
            } => {
                self.doing = Some(Doing::now(What::Waiting { until, parked }));
                let reason = clock::local_times(reason);
                let what = if parked { "Parked" } else { "Waiting" };
                // What was said just now need not be said again.
                let told = std::mem::replace(&mut self.reason, escape(&reason)) == self.reason;
                let until = shown(until);
                vec![if told {
                    format!("{what} until {until}")
                } else {
                    format!("{what} until {until}: {reason}")
                }]
            }
            progress::ProgressEvent::LoopsEnded | progress::ProgressEvent::Waited => {
                self.doing = Some(Doing::now(What::Recording));
                Vec::new()
            }
            progress::ProgressEvent::RollingBack { checkpoint } => {
                self.doing = Some(Doing::now(What::RollingBack));
                vec![format!("Rolling back to {checkpoint}")]
            }
        }
    }
}

/// The story of a run, printed as it goes on.
#[derive(Debug)]
pub(super) struct Story(Arc<StoryLines>);

#[derive(Debug)]
struct StoryLines {
    view: Mutex<View>,
    github: Option<Github>,
    /// What is as it should be is not printed.
    sparing: bool,
}

impl Story {
    /// Tells what `context` does from now on, or with `sparing` only what nobody expects; `None` where a user watches,
    /// or nobody wants to know.
    pub(super) fn start(context: &Context, ui: &Ui, sparing: bool) -> Option<Self> {
        if ui.stderr_terminal || ui.quiet || context.dry_run() {
            return None;
        }
        let github = Github::of(context);
        if github.is_some() {
            // With stderr closed there is nobody left to report to.
            let _ = Stderr::write_as_is(Github::masks().as_bytes());
        }
        let told = Arc::new(StoryLines {
            view: Mutex::default(),
            github,
            sparing,
        });
        context.progress.observe(Arc::<StoryLines>::clone(&told));
        Some(Self(told))
    }

    /// What a job of GitHub wants of a run that is over: its report in the job's summary.
    pub(super) fn end(&self, context: &Context, key: Option<&RunKey>) {
        let Some(github) = &self.0.github else { return };
        write(github.end_group());
        match key
            .map(|key| inspect::report_of_key(context, key))
            .transpose()
        {
            Ok(Some(report)) => github.summarize(context, &markdown(&report)),
            Ok(None) => {}
            Err(error) => context.warn(format!(
                "the run has no report for the job's summary: {error}"
            )),
        }
    }
}

impl progress::Observer for StoryLines {
    fn on_event(&self, now: Timestamp, progress: progress::ProgressEvent<'_>) {
        let mut lines = self.view.lock().take(&progress, with_offset);
        if let progress::ProgressEvent::LoopEnded { name, result } = progress {
            let verdict = if result.passed { "passed" } else { "FAILED" };
            lines.push(format!(
                "Check {name} {verdict}: {} ({})",
                said(result),
                seconds(result.duration)
            ));
        }
        let (before, after) = self
            .github
            .as_ref()
            .map(|github| github.around(&progress))
            .unwrap_or_default();
        write(&before);
        if !(self.sparing && is_usual(&progress)) {
            // A line each, whatever others said.
            let timed: Vec<String> = lines
                .iter()
                .map(|line| format!("[{}] {}\n", with_offset(now), escape(line)))
                .collect();
            write(&timed.concat());
        }
        write(&after);
    }
}

/// With stderr closed there is nobody left to report to.
fn write(text: &str) {
    if !text.is_empty() {
        let _ = Stderr.write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::base::progress::ProgressEvent;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn what_others_said_is_fitted_as_it_is_shown() {
        let mut view = View::default();
        let until = Timestamp::from_millis(90_000);
        let iso = |at: Timestamp| at.to_string();
        view.take(
            &ProgressEvent::LoopBegun {
                name: "te\tst\u{1b}",
                deadline: None,
                again: false,
            },
            iso,
        );
        let line = |view: &View, width| {
            view.line(width, Instant::now(), Timestamp::from_millis(0))
                .unwrap()
        };
        assert!(
            line(&view, 79).contains("te\\tst\\u{1b} 0:0"),
            "{}",
            line(&view, 79)
        );
        let said = view.take(
            &ProgressEvent::Waiting {
                until,
                parked: false,
                reason: "a\u{1b}[2J\nb",
            },
            iso,
        );
        assert_eq!(said.len(), 1);
        for width in 0..100 {
            let line = line(&view, width);
            assert!(
                line.width() <= width && !line.contains(char::is_control),
                "{line:?}"
            );
        }
    }
}
