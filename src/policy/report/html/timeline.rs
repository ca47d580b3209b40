//! The story, moment by moment.

use maud::{Markup, html};

use crate::policy::report::data::Report;
use crate::policy::report::moment::{Moment, MomentKind};
use crate::policy::report::words;

use super::escape::Line;
use super::parts::{mono, none, section, tone};

/// Every moment, oldest first, with the date where a day begins.
pub(super) fn timeline(report: &Report) -> Markup {
    let days = report
        .timeline
        .chunk_by(|one, next| words::date(one.at) == words::date(next.at));
    let content = html! {
        @if report.timeline_omitted > 0 {
            @let before = words::count(report.timeline_omitted, "moment");
            (none(&format!("The latest part; {before} came before.")))
        }
        ol.timeline {
            @for day in days {
                li.day { (words::date(day[0].at)) }
                @for moment in day { (entry(moment)) }
            }
        }
    };
    section("timeline", "Timeline", Some("UTC".to_owned()), content)
}

fn entry(moment: &Moment) -> Markup {
    let kind = kind(moment.kind);
    let tone = if moment.kind == MomentKind::Attempt {
        tone(moment.outcome)
    } else {
        kind
    };
    let id = moment
        .checkpoint_id
        .as_ref()
        .filter(|_| moment.kind == MomentKind::Checkpoint);
    html! {
        li class={ (kind) " " (tone) } {
            time datetime=(moment.at) { (words::time(moment.at)) }
            div {
                p {
                    (Line(&moment.title))
                    @if let Some(took) = moment.duration_ms { " " small { (words::span(took)) } }
                    @if let Some(id) = id { " " (mono(id.as_str())) }
                }
                @if let Some(detail) = &moment.detail { p.more { (Line(detail)) } }
            }
        }
    }
}

fn kind(kind: MomentKind) -> &'static str {
    match kind {
        MomentKind::Run => "run",
        MomentKind::Iteration => "iteration",
        MomentKind::Attempt => "attempt",
        MomentKind::Decision => "decision",
        MomentKind::Park => "park",
        MomentKind::Checkpoint => "checkpoint",
        MomentKind::Step => "step",
        MomentKind::Rollback => "rollback",
        MomentKind::Undo => "undo",
        MomentKind::ManualFix => "fix",
    }
}
