//! Collects what is warned of anywhere in the program, for the `warnings` of the answer's document.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

static WARNED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes each warning of this program once, as it stands on stderr.
#[derive(Debug)]
pub struct Collector;

impl<S: Subscriber> Layer<S> for Collector {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() != Level::WARN || !event.metadata().target().starts_with(env!("CARGO_CRATE_NAME"))
        {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        note(line.text);
    }
}

/// Notes what is said on stderr in another way.
pub fn note(text: String) {
    add(&mut WARNED.lock().unwrap_or_else(PoisonError::into_inner), text);
}

/// What a command noted, and then what was warned of beside it.
pub fn with_others(mut noted: Vec<String>) -> Vec<String> {
    for text in WARNED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        add(&mut noted, text.clone());
    }
    noted
}

fn add(all: &mut Vec<String>, text: String) {
    if !all.contains(&text) {
        all.push(text);
    }
}

/// The message, and after it its fields.
#[derive(Default)]
struct Line {
    text: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.text.insert_str(0, &format!("{value:?}"));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(self.text, " {}={value:?}", field.name());
        }
    }
}
