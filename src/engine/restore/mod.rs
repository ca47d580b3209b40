//! Restores a checkpoint: plan, safety checkpoint, journal, files, working memory, HEAD, index, event.
//! Knows neither crash recovery nor the steps that it goes back past.
//!
//! Nothing is written before everything that can be refused has been refused, and nothing is overwritten that the safety
//! checkpoint does not hold.

pub mod execute;
mod head;
pub mod ignored;
mod index;
pub mod interruption;
mod journal;
pub mod mixed;
pub mod nested;
pub mod plan;
pub mod request;
mod revert;
pub mod state_rollback;
pub mod step;
