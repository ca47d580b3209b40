//! Shared basics of the engine: errors, clock, progress, the context of a command, which run it is about.

pub mod attempt_mark;
pub mod clock;
pub mod context;
pub mod error;
pub mod heartbeat;
pub mod progress;
pub mod runs;
pub mod trust;
