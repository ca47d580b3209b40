//! Documents and tables made from the model.

mod documents;
mod lane;
mod results;
mod steps;
mod tables;

pub use documents::{iterations, latest_iterations, restore, retry, run, wait_fields};
pub use lane::lane;
pub use results::{said, seconds};
pub use steps::crossed_text;
pub use tables::{
    actions, attempts_text, checkpoint_text, checkpoints_table, conditions_text, iterations_text, prune_text,
    restore_text, retry_text, status_text, when,
};
