//! The lane part of what `resume`, `rollback`, `run` and `step` print (C6).

use std::fmt::Write;

use crate::engine::record::lane::{LaneStanding, standing};
use crate::engine::{Context, Result};
use crate::model::run::RunKey;

use super::super::ui::{Ui, escape};

/// Where a lane is; empty for a run that is no lane.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// The lines to show.
    pub standing: Option<LaneStanding>,
    /// For people: its stage, its records, and the commands that resume it and roll it back.
    pub prompt: String,
}

/// The lane of a run.
pub(crate) fn lane(context: &Context, key: Option<&RunKey>, ui: &Ui) -> Result<Lane> {
    let Some(key) = key else {
        return Ok(Lane::default());
    };
    let standing = standing(context, &context.load()?.state, key);
    let prompt = standing
        .as_ref()
        .map(|lane| prompt(lane, ui))
        .unwrap_or_default();
    Ok(Lane { standing, prompt })
}

fn prompt(lane: &LaneStanding, ui: &Ui) -> String {
    let mut text = String::new();
    let LaneStanding {
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
