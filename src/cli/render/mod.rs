//! What commands answer with: tables and texts, made from the model and the engine's results.

mod agents;
mod attempts;
mod checkpoints;
mod driven;
mod events;
mod lane;
mod remote;
mod results;
mod runs;
mod status;
mod steps;
mod tables;

pub(super) use agents::{agents_table, hooks_table, hooks_text};
pub(super) use attempts::{attempts_text, conditions_text};
pub(super) use checkpoints::{
    checkpoint_text, checkpoints_table, prune_text, restore_text, superseded_text, unchanged_text,
};
pub(super) use driven::{driven_text, note_report};
pub(super) use events::{event_line, event_line_of_run};
pub(super) use lane::lane;
pub(super) use remote::remote_text;
pub(super) use results::{said, seconds};
pub(super) use runs::runs_table;
pub(super) use status::manual_steps_text;
pub(super) use status::{actions, retry_text, status_text};
pub(super) use steps::crossed_text;
pub(super) use tables::{date_time, in_words, moment, when};
