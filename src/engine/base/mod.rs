//! What everything else stands on: errors, the clock, who watches, which run is meant, where a command works.

pub mod attempt_mark;
pub mod runs;
