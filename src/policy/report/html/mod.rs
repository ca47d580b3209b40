//! The report as one HTML file that needs nothing else, readable on a phone, on paper and in the dark.
//! Nothing in it can be run or loaded: the policy in its head forbids everything but its own style sheet.

mod attempts;
mod chart;
mod escape;
mod parts;
mod summary;
mod timeline;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha1::{Digest, Sha1};

use super::data::{FileLine, Files, Recommended, Report, ReportKind};
use super::words::{self, MARK};
use crate::policy::redact::redact;
use escape::Line;
use parts::{badge, mono, none, section};

const STYLE: &str = include_str!("style.css");

/// Renders the page.
pub(crate) fn html(report: &Report) -> String {
    let title = format!("{}: {}", title(report.kind), report.summary.run.run_id);
    let body = body(report);
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
                title { (Line(&title)) }
                style nonce=(nonce) { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string() + "\n"
}

fn title(kind: ReportKind) -> &'static str {
    match kind {
        ReportKind::Escalation => "Escalation report",
        ReportKind::Incident => "Incident report",
        ReportKind::Run => "Run report",
    }
}

fn body(report: &Report) -> Markup {
    html! {
        (summary::header(report, title(report.kind)))
        div.columns {
            aside {
                (actions(&report.recommended_actions))
                (summary::checkpoints(report))
                (files(&report.files))
            }
            main {
                (chart::chart(report))
                (attempts::attempts(report))
            }
        }
        (attempts::errors(&report.error_details))
        (timeline::timeline(report))
        footer { "Made by recover on " (words::date_time(report.generated_at)) "." }
    }
}

/// A command of which no option is broken in two where a line ends.
fn words_of(command: &str) -> Markup {
    html! {
        @for (number, word) in redact(command).split(' ').enumerate() {
            @if number > 0 { " " }
            span { (Line(word)) }
        }
    }
}

fn actions(actions: &[Recommended]) -> Markup {
    let list = html! {
        @if actions.is_empty() { (none("Nothing is left to do.")) }
        @else {
            ol.actions {
                @for action in actions {
                    li.best[action.by_policy] {
                        p {
                            (Line(&action.description))
                            @if action.by_policy { " " (badge("calm", "recommended")) }
                        }
                        @if let Some(command) = &action.command { pre.command { (words_of(command)) } }
                    }
                }
            }
        }
    };
    section("actions", "Recommended actions", None, list)
}

fn files(files: &Files) -> Markup {
    if files.entries.is_empty() {
        return section("files", "Files involved", None, none("None that is known."));
    }
    let list = html! {
        ul.files {
            @for entry in &files.entries { (file(entry)) }
            @if files.total > files.entries.len() {
                li.none { "… and " (files.total - files.entries.len()) " more" }
            }
        }
    };
    section(
        "files",
        "Files involved",
        Some(files.total.to_string()),
        list,
    )
}

fn file(file: &FileLine) -> Markup {
    let names: Vec<String> = file
        .attempts
        .iter()
        .map(|name| format!("{}.{}", name.iteration, name.attempt))
        .collect();
    html! {
        li {
            (mono(&file.path.to_lossy()))
            small {
                (file.kind.as_str()) " · "
                @if let (Some(added), Some(deleted)) = (file.added, file.deleted) {
                    span.added { "+" (added) } " " span.removed { "−" (deleted) }
                } @else { "binary" }
                " · attempt " (names.join(", "))
            }
        }
    }
}
