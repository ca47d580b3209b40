//! The report as one HTML file that needs nothing else: no network, no script, readable on a phone, on paper and in the
//! dark. Nothing in it can be run or loaded: the policy in its head forbids everything but its own style sheet.

mod attempts;
mod chart;
mod escape;
mod summary;
mod timeline;

use sha1::{Digest, Sha1};

use super::data::{Files, Recommended, Report, ReportKind};
use super::{MARK, words};
use escape::text;

const STYLE: &str = include_str!("style.css");

/// Writes it.
pub fn html(report: &Report) -> String {
    let title = format!("{}: {}", title(report.kind), report.summary.run.run_id);
    let body = body(report);
    // Whoever gets text into a report cannot know what the report will be in the end.
    let nonce = format!("{:x}", Sha1::digest(body.as_bytes()));
    let policy = format!("default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'");
    format!(
        "<!DOCTYPE html>\n<!-- {MARK} -->\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style nonce=\"{nonce}\">\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        text(&title)
    )
}

fn title(kind: ReportKind) -> &'static str {
    match kind {
        ReportKind::Escalation => "Escalation report",
        ReportKind::Incident => "Incident report",
        ReportKind::Run => "Run report",
    }
}

fn body(report: &Report) -> String {
    let side = [actions(&report.recommended_actions), summary::checkpoints(report), files(&report.files)].concat();
    let main = [chart::chart(report), attempts::attempts(report)].concat();
    let below = [attempts::errors(&report.error_details), timeline::timeline(report)].concat();
    format!(
        "{}<div class=\"columns\">\n<aside>\n{side}</aside>\n<main>\n{main}</main>\n</div>\n{below}\
         <footer>Made by recover on {}.</footer>\n",
        summary::header(report, title(report.kind)),
        words::date_time(report.generated_at)
    )
}

/// A section with its heading.
fn section(id: &str, heading: &str, content: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{content}</section>\n")
}

/// A term and its description; the description is markup.
fn fact(term: &str, description: &str) -> String {
    format!("<div><dt>{term}</dt><dd>{description}</dd></div>\n")
}

/// A word in a pill: `tone` is `good`, `bad`, `warn` or `calm`.
fn badge(tone: &str, word: &str) -> String {
    format!("<span class=\"badge {tone}\">{}</span>", text(word))
}

/// Text in the fixed font.
fn mono(content: &str) -> String {
    format!("<code>{}</code>", text(content))
}

/// A command of which no option is broken in two where a line ends.
fn words_of(command: &str) -> String {
    let words: Vec<String> = command.split(' ').map(|word| format!("<span>{}</span>", text(word))).collect();
    words.join(" ")
}

fn actions(actions: &[Recommended]) -> String {
    if actions.is_empty() {
        return section("actions", "Recommended actions", "<p class=\"none\">Nothing is left to do.</p>\n");
    }
    let mut list = String::from("<ol class=\"actions\">\n");
    for action in actions {
        let class = if action.recommended { " class=\"best\"" } else { "" };
        let mark = if action.recommended { format!(" {}", badge("calm", "recommended")) } else { String::new() };
        let command = action.command.as_deref();
        let command = command.map(|command| format!("<pre class=\"command\">{}</pre>", words_of(command)));
        list.push_str(&format!(
            "<li{class}><p>{}{mark}</p>{}</li>\n",
            text(&action.description),
            command.unwrap_or_default()
        ));
    }
    list.push_str("</ol>\n");
    section("actions", "Recommended actions", &list)
}

fn files(files: &Files) -> String {
    if files.entries.is_empty() {
        return section("files", "Files involved", "<p class=\"none\">None that is known.</p>\n");
    }
    let mut list = String::from("<ul class=\"files\">\n");
    for file in &files.entries {
        let names: Vec<String> =
            file.attempts.iter().map(|name| format!("{}.{}", name.iteration, name.attempt)).collect();
        let lines = match (file.added, file.deleted) {
            (Some(added), Some(deleted)) => {
                format!("<span class=\"added\">+{added}</span> <span class=\"removed\">−{deleted}</span>")
            }
            _ => "binary".to_owned(),
        };
        let (path, kind) = (mono(&file.path.to_lossy()), file.kind.as_str());
        let names = names.join(", ");
        list.push_str(&format!("<li>{path}<small>{kind} · {lines} · attempt {names}</small></li>\n"));
    }
    if files.total > files.entries.len() {
        list.push_str(&format!("<li class=\"none\">… and {} more</li>\n", files.total - files.entries.len()));
    }
    list.push_str("</ul>\n");
    section("files", &format!("Files involved <small>{}</small>", files.total), &list)
}
