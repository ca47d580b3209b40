//! The story, moment by moment.

use crate::policy::report::data::Report;
use crate::policy::report::timeline::{Moment, MomentKind};
use crate::policy::report::words;

use super::attempts::tone;
use super::escape::text;
use super::{mono, section};

/// Every moment, oldest first, with the date where a day begins.
pub fn timeline(report: &Report) -> String {
    let mut out = String::new();
    if report.timeline_omitted > 0 {
        let before = words::count(report.timeline_omitted, "moment");
        out.push_str(&format!("<p class=\"none\">The latest part; {before} came before.</p>\n"));
    }
    out.push_str("<ol class=\"timeline\">\n");
    let mut day = String::new();
    for moment in &report.timeline {
        let date = words::date(moment.at);
        if day != date {
            out.push_str(&format!("<li class=\"day\">{date}</li>\n"));
            day = date;
        }
        out.push_str(&entry(moment));
    }
    out.push_str("</ol>\n");
    section("timeline", "Timeline <small>UTC</small>", &out)
}

fn entry(moment: &Moment) -> String {
    let kind = kind(moment.kind);
    let tone = if moment.kind == MomentKind::Attempt { tone(moment.outcome) } else { kind };
    let took = moment.duration_ms.map(|took| format!(" <small>{}</small>", words::span(took))).unwrap_or_default();
    let detail = moment.detail.as_deref().map(|detail| format!("<p class=\"more\">{}</p>", text(detail)));
    let own = matches!(moment.kind, MomentKind::Checkpoint);
    let id = moment.checkpoint_id.as_deref().filter(|_| own).map(|id| format!(" {}", mono(id)));
    format!(
        "<li class=\"{kind} {tone}\"><time datetime=\"{}\">{}</time><div><p>{}{took}{}</p>{}</div></li>\n",
        moment.at,
        words::time(moment.at),
        text(&moment.title),
        id.unwrap_or_default(),
        detail.unwrap_or_default()
    )
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
