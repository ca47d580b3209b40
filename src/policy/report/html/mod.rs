//! The report as one HTML file that needs nothing else, readable on a phone, on paper and in the dark.
//! Nothing in it can be run or loaded: the policy in its head forbids everything but its own style sheet.

mod sections;
mod team;

use std::fmt::Write as _;

use chrono::{DateTime, FixedOffset};
use maud::{DOCTYPE, Escaper, Markup, PreEscaped, Render, html};
use sha1::{Digest, Sha1};

use super::data::Report;
use super::timeline::with_times;
use super::words::MARK;
use crate::model::{AttemptOutcome, Timestamp};
use crate::policy::secrets::redact;
use crate::policy::text::{escape, escape_lines};

pub(crate) use team::team_html;

const STYLE: &str = include_str!("style.css");

/// A report, and the time zone of whoever reads it.
pub(super) struct Page<'a> {
    report: &'a Report,
    local: &'a dyn Fn(Timestamp) -> DateTime<FixedOffset>,
}

impl Page<'_> {
    /// `2026-01-05 04:19:02 UTC+01:00`.
    fn date_time(&self, at: Timestamp) -> String {
        date_time((self.local)(at))
    }

    /// A text of the record with its times as they are here.
    fn local_times(&self, text: &str) -> String {
        with_times(text, &|at| self.date_time(at))
    }

    /// `04:19:02`.
    fn time(&self, at: Timestamp) -> String {
        (self.local)(at).format("%H:%M:%S").to_string()
    }

    /// `2026-01-05`.
    fn date(&self, at: Timestamp) -> String {
        (self.local)(at).format("%Y-%m-%d").to_string()
    }

    /// `UTC+01:00`.
    fn zone(&self, at: Timestamp) -> String {
        zone((self.local)(at))
    }
}

/// `2026-01-05 04:19:02 UTC+01:00`.
fn date_time(at: DateTime<FixedOffset>) -> String {
    format!("{} {}", at.format("%Y-%m-%d %H:%M:%S"), zone(at))
}

/// `UTC+01:00`; `UTC` itself has no offset.
fn zone(at: DateTime<FixedOffset>) -> String {
    match at.offset().local_minus_utc() {
        0 => "UTC".to_owned(),
        _ => at.format("UTC%:z").to_string(),
    }
}

/// Renders the page, with times as they are `local` to whoever reads it.
pub(crate) fn html(report: &Report, local: &dyn Fn(Timestamp) -> DateTime<FixedOffset>) -> String {
    let title = format!("{}: {}", report.title(), report.summary.run.run_id);
    let night = report.night.as_ref().map(|night| night.line(None));
    page(&title, night.as_deref(), &Page { report, local }.body())
}

/// A page of this body.
fn page(title: &str, description: Option<&str>, body: &Markup) -> String {
    // A hash of all the text, so that nobody whose text is in it can know the nonce beforehand.
    let nonce = format!("{:x}", Sha1::digest(body.0.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        (PreEscaped(format!("<!-- {MARK} -->")))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                @if let Some(line) = description { meta name="description" content=(Line(line)); }
                title { (Line(title)) }
                style nonce=(nonce) { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string() + "\n"
}

/// A command of which no option is broken in two where a line ends.
fn command(command: &str) -> Markup {
    html! {
        pre.command {
            @for (number, word) in redact(command).split(' ').enumerate() {
                @if number > 0 { " " }
                span { (Line(word)) }
            }
        }
    }
}

/// What an outcome looks like.
fn tone(outcome: Option<AttemptOutcome>) -> &'static str {
    match outcome {
        Some(AttemptOutcome::Passed) => "good",
        Some(AttemptOutcome::Failed) => "bad",
        Some(AttemptOutcome::Cancelled) => "warn",
        None => "calm",
    }
}

/// A section with its heading, and a figure beside it.
fn section(id: &str, heading: &str, figure: Option<String>, content: impl Render) -> Markup {
    html! {
        section id=(id) {
            h2 { (heading) @if let Some(figure) = figure { " " small { (figure) } } }
            (content)
        }
    }
}

/// A section that is folded until it is opened, which takes no script.
fn folded(id: &str, heading: &str, figure: &str, content: impl Render) -> Markup {
    html! {
        details id=(id) {
            summary { h2 { (heading) " " small { (figure) } } }
            (content)
        }
    }
}

/// A term and its description.
fn fact(term: &str, description: impl Render) -> Markup {
    html! { div { dt { (Line(term)) } dd { (description) } } }
}

/// A word in a pill: `tone` is `good`, `bad`, `warn` or `calm`.
fn badge(tone: &str, word: &str) -> Markup {
    html! { span class={ "badge " (tone) } { (Line(word)) } }
}

/// Text in the fixed-width font.
fn mono(content: &str) -> Markup {
    html! { code { (Line(content)) } }
}

/// What stands in a section that has nothing to list.
fn none(text: &str) -> Markup {
    html! { p.none { (text) } }
}

/// One line of text, as content or as the value of an attribute.
struct Line<'a>(&'a str);

/// Text that keeps its line breaks, for `pre`.
struct Lines<'a>(&'a str);

impl Render for Line<'_> {
    fn render_to(&self, out: &mut String) {
        escaped(&escape(&redact(self.0)), out);
    }
}

impl Render for Lines<'_> {
    fn render_to(&self, out: &mut String) {
        escaped(&escape_lines(&redact(self.0)), out);
    }
}

fn escaped(text: &str, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = Escaper::new(out).write_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_markup_and_no_control_character_is_left() {
        let hostile = "</pre><script>x('\"')</script>&amp;";
        let markup = maud::html! { p title=(Line(hostile)) { (Line(hostile)) } }.into_string();
        assert!(
            !markup.contains("<script") && !markup.contains("&amp;amp;amp;"),
            "{markup}"
        );
        assert_eq!(
            markup.matches('"').count(),
            2,
            "the quotes of the attribute itself: {markup}"
        );
        assert_eq!(
            Line("a\nb\u{0}\u{1b}[0m\u{202e}").render().into_string(),
            "a\\nb\\u{0}\\u{1b}[0m\\u{202e}"
        );
        let masked = "{&quot;password&quot;:&quot;[redacted]&quot;}";
        assert_eq!(
            Line(r#"{"password":"p<hunter22>"}"#).render().into_string(),
            masked
        );
        assert_eq!(
            Lines(r#"{"password":"p<hunter22>"}"#)
                .render()
                .into_string(),
            masked
        );
        assert_eq!(Lines("a\n\tb\u{0}").render().into_string(), "a\n\tb\\u{0}");
    }
}
