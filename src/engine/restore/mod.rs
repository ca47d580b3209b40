//! Restores a checkpoint: plan, safety checkpoint, journal, files, working memory, HEAD, index, event.
//! Knows neither crash recovery nor the steps that it goes back past.
//!
//! Nothing is written before everything that can be refused has been refused, and nothing is overwritten that the safety
//! checkpoint does not hold.

pub(crate) mod automatic;
pub(crate) mod execute;
mod head;
mod last_written;
pub(crate) mod nested;
pub(crate) mod plan;
pub(crate) mod request;
