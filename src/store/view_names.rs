//! The names of the views that all runs share, in the state directory.

/// How the last failure of each run is recovered from.
pub const RECOVERY: &str = "recovery.json";
/// What was tried.
pub const ATTEMPTS: &str = "attempt_history.json";
/// The records of lanes, where the configuration names no other file.
pub const LANES: &str = "checkpoints.json";
/// The checkpoint that a session goes on from.
pub const ACTIVE: &str = "active_checkpoint.json";

/// All of them.
pub const VIEWS: [&str; 4] = [RECOVERY, ATTEMPTS, LANES, ACTIVE];
