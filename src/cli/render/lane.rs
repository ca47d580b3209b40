//! What a resume and a rollback tell of a lane (C6).

use std::fmt::Write;

use crate::engine::{Context, Result};
use crate::model::run::RunKey;

use super::super::ui::escape;

/// Where a lane stands.
#[derive(Debug, Default)]
pub struct Lane {
    /// The stage of its latest checkpoint that has one; without one it is no lane.
    pub stage: Option<String>,
    /// The file of its records.
    pub path: Option<String>,
    /// Both, and the ways on and back, for people.
    pub prompt: String,
}

/// The lane of a run. `next` are commands that go on with it.
pub fn lane(context: &Context, key: Option<&RunKey>, next: &[String]) -> Result<Lane> {
    let Some(key) = key else { return Ok(Lane::default()) };
    let state = context.load()?.state;
    let latest = state.checkpoints_of(key).rfind(|checkpoint| checkpoint.lane_fields.stage.is_some());
    let Some(fields) = latest.map(|checkpoint| &checkpoint.lane_fields) else { return Ok(Lane::default()) };
    let path = context.store().lane_file().to_string_lossy().into_owned();
    let current = fields.stage.clone();
    let mut prompt = String::new();
    // Writing to a String cannot fail.
    let status = fields.status.as_deref().unwrap_or("-");
    let _ = writeln!(prompt, "Stage:           {} ({})", escape(current.as_deref().unwrap_or("-")), escape(status));
    let _ = writeln!(prompt, "Checkpoints:     {}", escape(&path));
    for command in next {
        let _ = writeln!(prompt, "Resume:          {}", escape(command));
    }
    let back = context.hint_command(Some(key), &["rollback", "--to", "stage:before_lane_start"]);
    let _ = writeln!(prompt, "Back to before_lane_start: {}", escape(&back));
    Ok(Lane { stage: current, path: Some(path), prompt })
}
