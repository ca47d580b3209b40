//! The lane part of what `resume`, `rollback`, `run` and `step` print (C6).

use std::fmt::Write;

use crate::engine::record::lane::{LaneStanding, standing};
use crate::engine::{Context, Result};
use crate::model::run::RunKey;

use super::super::ui::escape;

/// Where a lane is; empty for a run that is no lane.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// The lines to show.
    pub standing: Option<LaneStanding>,
    /// For people: its stage, its records, and the commands that resume it and roll it back.
    pub prompt: String,
}

/// The lane of a run.
pub(crate) fn lane(context: &Context, key: Option<&RunKey>) -> Result<Lane> {
    let Some(key) = key else {
        return Ok(Lane::default());
    };
    let standing = standing(context, &context.load()?.state, key);
    let prompt = standing.as_ref().map(prompt).unwrap_or_default();
    Ok(Lane { standing, prompt })
}

fn prompt(lane: &LaneStanding) -> String {
    let mut text = String::new();
    let status = lane.status.as_deref().unwrap_or("-");
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "Stage:           {} ({})",
        escape(&lane.stage),
        escape(status)
    );
    let _ = writeln!(text, "Checkpoints:     {}", escape(&lane.path));
    if !lane.done.is_empty() {
        let _ = writeln!(text, "Done, skipped:   {}", escape(&lane.done.join(", ")));
    }
    for command in &lane.next_actions {
        let label = if *command == lane.resume_hint {
            "Resume:"
        } else {
            "Next:"
        };
        let _ = writeln!(text, "{label:<16} {}", escape(command));
    }
    if !lane.next_actions.contains(&lane.resume_hint) {
        let _ = writeln!(text, "Resume:          {}", escape(&lane.resume_hint));
    }
    if let Some(stage) = &lane.back_to {
        let _ = writeln!(
            text,
            "Back to {}: {}",
            escape(stage),
            escape(&lane.rollback_hint)
        );
    }
    text
}
