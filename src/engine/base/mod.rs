//! What everything else stands on: errors, the clock, progress and requests of who watches, which run is meant, and the
//! context that a command works in.

pub mod attempt_mark;
pub mod clock;
pub mod context;
pub mod error;
pub mod progress;
pub mod runs;
