//! How a supervised run ended, and where its lane stands (C6).

use std::fmt::Write;

use super::super::ui::{Ui, escape};
use super::attempts::iterations_text;
use super::moment;
use super::status::look_at_text;
use crate::engine::base::clock;
use crate::engine::{Context, answers, run};
use crate::model::{Hint, Standing};
use crate::policy::retry::{next_command, way_back};

/// Says where the report is that a bad end left (A6, S13).
pub(crate) fn note_report(driven: &run::Driven, ui: &Ui) {
    if let Some(path) = &driven.report {
        ui.note(&format!("report: {}", path.display()));
    }
}

/// A run for people: how it ended, its attempts, what can be done next.
pub(crate) fn driven_text(context: &Context, driven: &run::Driven, ui: &Ui) -> String {
    let ui = &ui.knowing(context);
    let line = |words: &[&str]| {
        let hint = Hint::recover(words).run(&driven.run.key);
        ui.command(&context.placed(hint))
    };
    let outcome = match driven.outcome {
        run::Outcome::Complete => "complete",
        run::Outcome::Failed => "failed",
        run::Outcome::Paused => "paused",
        run::Outcome::Parked => "parked",
        run::Outcome::Escalated => "escalated: a person is needed",
        run::Outcome::Cancelled => "cancelled",
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
        text.push_str(&format!(
            "Decision: {}\n",
            clock::local_times(&decision.reason)
        ));
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
    if driven.outcome == run::Outcome::Complete {
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
            text.push_str(&format!("Roll back: {}\n", line(back)));
        }
    }
    text
}

/// For people: the stage of a lane, its records, and the commands that resume it and roll it back.
pub(crate) fn lane_text(lane: Option<&answers::LaneStanding>, ui: &Ui) -> String {
    let Some(lane) = lane else {
        return String::new();
    };
    let mut text = String::new();
    let answers::LaneStanding {
        stage,
        details,
        hints,
        back_to,
    } = lane;
    let text_of = |text: &Option<String>| escape(text.as_deref().unwrap_or("-"));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "Stage:           {} ({})",
        text_of(&stage.current_stage),
        text_of(&details.stage_status)
    );
    let _ = writeln!(text, "Checkpoints:     {}", text_of(&stage.checkpoint_path));
    if !details.skipped_steps.is_empty() {
        let skipped = details.skipped_steps.join(", ");
        let _ = writeln!(text, "Done, skipped:   {}", escape(&skipped));
    }
    let next_actions = details.next_actions.as_deref().unwrap_or_default();
    for command in next_actions {
        let label = if *command == hints.resume_hint {
            "Resume:"
        } else {
            "Next:"
        };
        let _ = writeln!(text, "{label:<16} {}", escape(&ui.command(command)));
    }
    if !next_actions.contains(&hints.resume_hint) {
        let _ = writeln!(
            text,
            "Resume:          {}",
            escape(&ui.command(&hints.resume_hint))
        );
    }
    if let Some(stage) = back_to {
        let _ = writeln!(
            text,
            "Back to {}: {}",
            escape(stage),
            escape(&ui.command(&hints.rollback_hint))
        );
    }
    text
}
