//! `recover log`: what has happened, and what happens.

use std::io::{self, Write};

use anyhow::Context as _;
use serde_json::Value;

use crate::engine::base::runs;
use crate::engine::flow::follow::{Follow, Noticed};
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::event::Event;
use crate::model::hint::Hint;
use crate::model::run::RunKey;
use crate::policy::redact::redact;

use super::super::args::LogArgs;
use super::super::replies::log::LogReply;
use super::super::ui::{Reply, Ui, escape};
use super::status::ended;

/// `recover log`.
pub fn log(context: &Context, args: &LogArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    if args.follow {
        return follow(context, args, ui);
    }
    let mut text = String::new();
    let mut documents = Vec::new();
    for (event, line) in first(context, args)? {
        let value: Value = serde_json::from_str(&line)
            .map_err(|error| Error::new(ErrorKind::Corrupt, format!("event {}: {error}", event.seq)))?;
        text.push_str(&told(&event, &value));
        documents.push(value);
    }
    if documents.is_empty() {
        text.push_str("Nothing has been recorded.\n");
    }
    Ok(Reply::new(LogReply { events: documents }, text))
}

/// An event for people; `value` is its line.
fn told(event: &Event, value: &Value) -> String {
    let kind = value["type"].as_str().unwrap_or_default();
    let run = event.run.as_ref().map(ToString::to_string).unwrap_or_default();
    let what = about(&value["payload"]);
    let what = if what.is_empty() { what } else { format!("  {what}") };
    format!("{:>5} {} {kind:<22} {}\n", event.seq, event.at, escape(&redact(&(run + &what))))
}

/// What an event says, in a few words: which iteration, what came of it, which checkpoint, why.
fn about(payload: &Value) -> String {
    const FIELDS: [&str; 15] = [
        "/name",
        "/status",
        "/outcome",
        "/strategy",
        "/checkpoint/id",
        "/checkpoint_id",
        "/operation/kind",
        "/operation/checkpoint_id",
        "/session/id",
        "/verdict",
        "/reason",
        "/error",
        "/failure/message",
        "/checkpoint/description",
        "/note",
    ];
    let mut parts: Vec<String> = Vec::new();
    for (name, field) in [("iteration", "/iteration"), ("attempt", "/attempt")] {
        parts.extend(payload.pointer(field).and_then(Value::as_u64).map(|number| format!("{name} {number}")));
    }
    let texts = FIELDS.iter().filter_map(|field| payload.pointer(field)).filter_map(Value::as_str);
    // One line of each is enough: all of it is in the ledger, and in --json.
    parts.extend(texts.filter_map(|text| text.lines().next()).filter(|text| !text.is_empty()).map(str::to_owned));
    parts.join(", ")
}

/// The events that are there, as far as they are asked for.
fn first(context: &Context, args: &LogArgs) -> Result<Vec<(Event, String)>> {
    let naming = context.naming();
    // Without a run the last lines are enough.
    let after = match args.limit.filter(|_| naming.run_id.is_none()) {
        Some(limit) => context.load()?.state.last_seq.saturating_sub(limit as u64),
        None => 0,
    };
    let mut events = chosen(context, context.store().read_lines(after)?);
    if let Some(id) = naming.run_id.as_ref().filter(|_| events.is_empty()) {
        // An error where there is no such run: every run begins with an event.
        runs::named(&context.load()?.state, id, naming.phase.as_deref(), naming.lane.as_deref())?;
    }
    if let Some(limit) = args.limit {
        events.drain(..events.len().saturating_sub(limit));
    }
    Ok(events)
}

/// Those of the run that was named, else all.
fn chosen(context: &Context, mut events: Vec<(Event, String)>) -> Vec<(Event, String)> {
    let naming = context.naming();
    if let Some(id) = &naming.run_id {
        let (phase, lane) = (naming.phase.as_deref(), naming.lane.as_deref());
        let of_run = |run: &RunKey| {
            run.run_id == *id
                && phase.is_none_or(|phase| run.phase == phase)
                && lane.is_none_or(|lane| run.lane == lane)
        };
        events.retain(|(event, _)| event.run.as_ref().is_some_and(of_run));
    }
    events
}

/// Tells events as they come, until a signal does.
///
/// With `--json` stdout is one document, which something without an end cannot be.
fn follow(context: &Context, args: &LogArgs, ui: &Ui) -> Result<Reply> {
    if ui.json {
        return Err(Error::new(ErrorKind::Usage, "--follow has no end, and --json is one document")
            .hint(Hint::recover(["log", "--json", "--limit", "20"])));
    }
    let mut follow = Follow::new(context)?;
    let mut last = context.load()?.state.last_seq;
    let mut events = first(context, args)?;
    events.retain(|(event, _)| event.seq <= last);
    loop {
        match tell(&events) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ended(0)),
            written => written.context("cannot write to standard output")?,
        }
        if let Noticed::Stopped(code) = follow.wait(None) {
            return Ok(ended(code));
        }
        let new = context.store().read_lines(last)?;
        if let Some((event, _)) = new.last() {
            last = event.seq;
        } else if let Some(now) = Some(context.load()?.state.last_seq).filter(|now| *now < last) {
            ui.note("The ledger was rebuilt: new events appear from here on.");
            last = now;
        }
        events = chosen(context, new);
    }
}

fn tell(events: &[(Event, String)]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (event, line) in events {
        let value: Value = serde_json::from_str(line)?;
        out.write_all(told(event, &value).as_bytes())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_says_what_it_is_about() {
        for (payload, expected) in [
            (json!({"name": "deploy", "argv": ["x"]}), "deploy"),
            (json!({"iteration": 2, "attempt": 1, "approach": null}), "iteration 2, attempt 1"),
            (json!({"status": "failed", "reason": "checks\nfailed"}), "failed, checks"),
            (json!({"checkpoint": {"id": "ckpt_1", "description": "By hand"}}), "ckpt_1, By hand"),
            (json!({}), ""),
        ] {
            assert_eq!(about(&payload), expected);
        }
    }
}
