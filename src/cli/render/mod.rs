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

pub use agents::{agents_table, hooks_table, hooks_text};
pub use attempts::{attempts_text, conditions_text};
pub use checkpoints::{
    checkpoint_text, checkpoints_table, prune_text, restore_text, superseded_text, unchanged_text,
};
pub use driven::{driven_text, note_report};
pub use events::{event_line, event_line_of_run};
pub use lane::lane;
pub use remote::remote_text;
pub use results::{said, seconds};
pub use runs::runs_table;
pub(super) use status::manual_steps_text;
pub use status::{actions, retry_text, status_text};
pub use steps::crossed_text;
pub use tables::{date_time, in_words, moment, when};
