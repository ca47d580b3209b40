//! Events of the ledger, a line each.

use itertools::Itertools as _;
use serde_json::Value;

use super::super::ui::{Ui, escape};
use super::{date_time, tinted};
use crate::model::event::Event;
use crate::policy::secrets::redact;

/// An event for people; `line` is the ledger's.
pub(crate) fn event_line(ui: &Ui, event: &Event, line: &str) -> String {
    let run = event
        .run
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    said(ui, event, line, &run)
}

/// The same where everybody knows of which run it is.
pub(crate) fn event_line_of_run(ui: &Ui, event: &Event, line: &str) -> String {
    said(ui, event, line, "")
}

fn said(ui: &Ui, event: &Event, line: &str, run: &str) -> String {
    // What was read as an event is JSON.
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    let kind = value["type"].as_str().unwrap_or_default();
    let what = about(ui, &value["payload"]);
    let run = escape(&redact(run));
    let parts = [&*run, &what].into_iter().filter(|part| !part.is_empty());
    let text = format!(
        "{:>5} {} {kind:<22} {}",
        event.seq,
        date_time(event.at),
        parts.format("  ")
    );
    format!("{}\n", text.trim_end())
}

/// What an event says, in a few words: which iteration, what came of it, which checkpoint, why.
fn about(ui: &Ui, payload: &Value) -> String {
    const FIELDS: [&str; 17] = [
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
        "/limit/message",
        "/checkpoint/description",
        "/note",
        "/label",
    ];
    // Words of others are never in colour, whatever they say.
    let own = |text: String| if ui.color { tinted(text) } else { text };
    let shown = |text: &str| escape(&redact(text));
    let mut parts: Vec<String> = Vec::new();
    for (name, field) in [("iteration", "/iteration"), ("attempt", "/attempt")] {
        parts.extend(
            payload
                .pointer(field)
                .and_then(Value::as_u64)
                .map(|number| format!("{name} {number}")),
        );
    }
    let trigger = payload
        .pointer("/checkpoint/trigger")
        .and_then(Value::as_str);
    let texts = FIELDS
        .iter()
        .filter_map(|field| Some((*field, payload.pointer(field)?.as_str()?)));
    // One line of each is enough: all of it is in the ledger, and in --json.
    let texts = texts.filter_map(|(field, text)| Some((field, text.lines().next()?)));
    parts.extend(
        texts
            .filter(|(_, text)| !text.is_empty())
            .map(|(field, text)| match field {
                "/checkpoint/id" | "/checkpoint_id" | "/operation/checkpoint_id" => {
                    shown(&ui.word(text))
                }
                "/checkpoint/description" => {
                    shown(&ui.described(trigger.unwrap_or_default(), text))
                }
                "/status" | "/outcome" | "/verdict" => own(shown(text)),
                _ => shown(text),
            }),
    );
    let id = |value: &Value| Some(value.as_str()?.get(..10)?.to_owned());
    let head = |side: &str| {
        payload
            .pointer(&format!("/operation/head/{side}"))
            .and_then(id)
    };
    parts.extend(match (head("before"), head("after")) {
        (Some(before), Some(after)) if before != after => {
            Some(own(format!("HEAD {before} -> {after}")))
        }
        _ => None,
    });
    let commits = payload["commits"].as_array().into_iter().flatten();
    parts.extend(
        commits
            .filter_map(id)
            .map(|commit| format!("commit {commit}")),
    );
    let changes = payload["changes"].as_array().into_iter().flatten();
    parts.extend(changes.filter_map(Value::as_str).map(shown));
    // A reason that is only the status once more is none.
    if let Some(status) = payload["status"].as_str() {
        let again = format!("the run stopped: {status}");
        parts.retain(|part| *part != again);
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::super::super::args::Cli;
    use super::*;

    #[test]
    fn an_event_says_what_it_is_about() {
        let ui = Ui::new(&Cli::parse_from(["recover"]).global);
        for (payload, expected) in [
            (json!({"name": "deploy", "argv": ["x"]}), "deploy"),
            (
                json!({"iteration": 2, "attempt": 1, "approach": null}),
                "iteration 2, attempt 1",
            ),
            (
                json!({"status": "failed", "reason": "checks\nfailed"}),
                "failed, checks",
            ),
            (
                json!({"status": "paused", "reason": "the run stopped: paused"}),
                "paused",
            ),
            (
                json!({"checkpoint": {"id": "ckpt_1", "description": "By hand"}}),
                "ckpt_1, By hand",
            ),
            (
                json!({"operation": {"kind": "rollback", "head": {"before": "a".repeat(40), "after": "b".repeat(40)}}}),
                "rollback, HEAD aaaaaaaaaa -> bbbbbbbbbb",
            ),
            (
                json!({"outcome": "passed", "commits": ["c".repeat(40)]}),
                "passed, commit cccccccccc",
            ),
            (json!({}), ""),
        ] {
            assert_eq!(about(&ui, &payload), expected);
        }
    }
}
