//! The page about the runs of a team: what waits for a person, and a table of all.

use chrono::{DateTime, FixedOffset};
use maud::{Markup, html};

use super::{Line, badge, command, date_time, fact, mono, none, page, section};
use crate::model::Timestamp;
use crate::policy::report::team::{COLUMNS, TeamReport, TeamRun};
use crate::policy::report::words;

/// Renders the page, with times as they are `local` to whoever reads it.
pub(crate) fn team_html(
    report: &TeamReport,
    local: &dyn Fn(Timestamp) -> DateTime<FixedOffset>,
) -> String {
    let since = date_time(local(report.since));
    let title = format!("Runs on {} since {since}", report.remote);
    let body = html! {
        header {
            p.kind { "Runs since " (since) }
            h1 { (Line(&report.remote)) }
            p.lead { (Line(&report.summary)) }
            (figures(report))
        }
        main {
            (section("waiting", "Waiting for a person", None, waiting(report)))
            (section("runs", "All runs", Some(report.totals.runs.to_string()), table(report)))
        }
        footer { "Made by recover on " (date_time(local(report.generated_at))) "." }
    };
    page(&title, Some(&report.summary), &body)
}

fn figures(report: &TeamReport) -> Markup {
    let totals = &report.totals;
    let cost = totals.usage.cost_usd.map(|cost| format!("${cost:.2}"));
    html! {
        dl.figures {
            (fact("runs", totals.runs))
            (fact("waiting for a person", totals.needs_person))
            (fact("attempts", totals.attempts))
            @if let Some(cost) = cost { (fact("cost", cost)) }
            (fact("of work", words::span(totals.duration_ms)))
        }
    }
}

fn waiting(report: &TeamReport) -> Markup {
    if report.totals.needs_person == 0 {
        return none("Nothing.");
    }
    html! {
        ul.look {
            @for run in report.waiting() {
                li {
                    (mono(&run.key.to_string())) " " (badge(tone(run), &run.night.state))
                    @for line in run.to_look_at() { p { (Line(&line)) } }
                    @if let Some(next) = &run.night.next { (command(&next.to_string())) }
                }
            }
        }
    }
}

fn table(report: &TeamReport) -> Markup {
    if report.runs.is_empty() {
        return none("None.");
    }
    html! {
        div.runs {
            table {
                thead { tr { @for column in COLUMNS { th scope="col" { (column) } } } }
                tbody {
                    @for run in &report.runs {
                        @let [name, state, rest @ ..] = report.cells(run);
                        tr {
                            td { (mono(&name)) }
                            td { (badge(tone(run), &state)) }
                            @for cell in &rest { td { (Line(cell)) } }
                        }
                    }
                }
            }
        }
    }
}

/// What a run's state looks like.
fn tone(run: &TeamRun) -> &'static str {
    match (run.needs_person, run.status.is_done()) {
        (true, true) => "warn",
        (true, false) => "bad",
        (false, true) => "good",
        (false, false) => "calm",
    }
}
