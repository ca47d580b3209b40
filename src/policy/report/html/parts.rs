//! What the sections of the page are made of.

use maud::{Markup, Render, html};

use super::escape::Line;
use crate::model::run::AttemptOutcome;

/// What an outcome looks like.
pub(super) fn tone(outcome: Option<AttemptOutcome>) -> &'static str {
    match outcome {
        Some(AttemptOutcome::Passed) => "good",
        Some(AttemptOutcome::Failed) => "bad",
        Some(AttemptOutcome::Cancelled) => "warn",
        None => "calm",
    }
}

/// A section with its heading, and a figure beside it.
pub(super) fn section(
    id: &str,
    heading: &str,
    figure: Option<String>,
    content: impl Render,
) -> Markup {
    html! {
        section id=(id) {
            h2 { (heading) @if let Some(figure) = figure { " " small { (figure) } } }
            (content)
        }
    }
}

/// A term and its description.
pub(super) fn fact(term: &str, description: impl Render) -> Markup {
    html! { div { dt { (Line(term)) } dd { (description) } } }
}

/// A word in a pill: `tone` is `good`, `bad`, `warn` or `calm`.
pub(super) fn badge(tone: &str, word: &str) -> Markup {
    html! { span class={ "badge " (tone) } { (Line(word)) } }
}

/// Text in the fixed-width font.
pub(super) fn mono(content: &str) -> Markup {
    html! { code { (Line(content)) } }
}

/// What stands in a section that has nothing to list.
pub(super) fn none(text: &str) -> Markup {
    html! { p.none { (text) } }
}
