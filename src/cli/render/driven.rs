//! How a supervised run ended.

use crate::engine::Context;
use crate::engine::base::clock::local_times;
use crate::engine::flow::run::{Driven, Outcome};
use crate::model::decision::Standing;
use crate::model::hint::Hint;
use crate::policy::recommended::{next_command, way_back};

use super::super::ui::{Ui, escape};
use super::attempts::iterations_text;
use super::status::look_at_text;
use super::tables::moment;

/// Says where the report is that a bad end left (A6, S13).
pub(crate) fn note_report(driven: &Driven, ui: &Ui) {
    if let Some(path) = &driven.report {
        ui.note(&format!("report: {}", path.display()));
    }
}

/// A run for people: how it ended, its attempts, what can be done next.
pub(crate) fn driven_text(context: &Context, driven: &Driven, ui: &Ui) -> String {
    let ui = &ui.knowing(context);
    let line = |words: &[&str]| {
        let hint = Hint::recover(words).run(&driven.run.key);
        ui.command(&context.placed(hint))
    };
    let outcome = match driven.outcome {
        Outcome::Complete => "complete",
        Outcome::Failed => "failed",
        Outcome::Paused => "paused",
        Outcome::Parked => "parked",
        Outcome::Escalated => "escalated: a person is needed",
        Outcome::Cancelled => "cancelled",
    };
    let stopped_for = driven.run.stopped_for.as_ref().map(|reason| escape(reason));
    let mut text = String::new();
    if let Some(reason) = stopped_for.as_ref().filter(|_| driven.stopped.is_some()) {
        text.push_str(&format!("{reason}\n"));
    }
    text += &format!(
        "\nRun {} {outcome}.\n{}",
        driven.run.key,
        iterations_text(ui, &driven.run)
    );
    if let Some(reason) = stopped_for.filter(|_| driven.stopped.is_none()) {
        text.push_str(&format!("Stopped: {reason}\n"));
    }
    // Where a check cannot be started, nothing comes of what was decided.
    if let Some(decision) = driven
        .decision
        .as_ref()
        .filter(|_| driven.unstartable.is_none())
    {
        text.push_str(&format!("Decision: {}\n", local_times(&decision.reason)));
    }
    if let Standing::Wait(until) = driven.standing
        && driven.stopped.is_none()
    {
        text.push_str(&format!(
            "Next attempt: {}.\n",
            moment(until, context.clock.now())
        ));
    }
    text.push_str(
        &driven
            .night
            .as_ref()
            .map(|night| look_at_text(ui, &night.to_look_at))
            .unwrap_or_default(),
    );
    if driven.outcome == Outcome::Complete {
        if let Some(night) = &driven.night {
            text.push_str(&format!("{}\n", night.line(None)));
        }
        if let Some(on) = next_command(&driven.run, driven.outlook) {
            text.push_str(&format!("Continue:  {}\n", line(&on)));
        }
    } else {
        let on = next_command(&driven.run, driven.outlook).unwrap_or_else(|| vec!["resume"]);
        text.push_str(&format!("Continue:  {}\n", line(&on)));
        text.push_str(&format!("Status:    {}\n", line(&["status"])));
        // Why it stopped says what comes before one.
        if driven.stopped.is_none() {
            let back = way_back(driven.has_good_checkpoint);
            text.push_str(&format!("Roll back: {}\n", line(&back)));
        }
    }
    text
}
