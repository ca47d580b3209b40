//! What is warned of anywhere in the program: as a line on stderr, and for the `warnings` of the answer's document.

use std::fmt::{self, Debug, Write as _};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{self, FormatEvent, FormatFields, Writer};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::policy::secrets::redact;
use crate::policy::text::escape_lines;

static WARNED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes each warning of this program once, as it stands on stderr.
#[derive(Debug)]
pub(super) struct Collector;

impl<S: Subscriber> Layer<S> for Collector {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() != Level::WARN
            || !event
                .metadata()
                .target()
                .starts_with(env!("CARGO_CRATE_NAME"))
        {
            return;
        }
        note(Line::of(event).to_string());
    }
}

/// Warnings look like every other line on stderr; what is more detailed is as `tracing` has it.
#[derive(Debug)]
pub(super) struct AsLine(format::Format<format::Full, ()>);

impl AsLine {
    pub(super) fn new() -> Self {
        Self(
            format::Format::default()
                .without_time()
                .with_target(false)
                .with_ansi(false),
        )
    }
}

impl<S, N> FormatEvent<S, N> for AsLine
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let sort = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => return self.0.format_event(context, to, event),
        };
        writeln!(
            to,
            "{sort}: {}",
            escape_lines(&redact(&Line::of(event).to_string()))
        )
    }
}

/// Notes what is said on stderr in another way.
pub(super) fn note(text: String) {
    add(&mut WARNED.lock(), text);
}

/// What a command noted, and then what was warned of beside it.
pub(super) fn with_others(mut noted: Vec<String>) -> Vec<String> {
    for text in WARNED.lock().iter() {
        add(&mut noted, text.clone());
    }
    noted
}

fn add(all: &mut Vec<String>, text: String) {
    if !all.contains(&text) {
        all.push(text);
    }
}

/// A message, what it is about, and why.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
    error: Option<String>,
}

impl Line {
    fn of(event: &Event<'_>) -> Self {
        let mut line = Self::default();
        event.record(&mut line);
        line
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "error" => self.error = Some(format!("{value:?}")),
            // Writing to a string cannot fail.
            name => _ = write!(self.fields, " {name}={value:?}"),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}{}", self.message, self.fields)?;
        self.error
            .as_ref()
            .map_or(Ok(()), |error| write!(to, ": {error}"))
    }
}
