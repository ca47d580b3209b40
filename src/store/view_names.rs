//! The names of the views that all runs share, in the state directory.

/// How the last failure of each run is recovered from.
pub(crate) const RECOVERY: &str = "recovery.json";
/// What was tried.
pub(crate) const ATTEMPTS: &str = "attempt_history.json";
/// The records of lanes, where the configuration names no other file.
pub(crate) const LANES: &str = "checkpoints.json";
/// The checkpoint that a session goes on from.
pub(crate) const ACTIVE: &str = "active_checkpoint.json";

/// All of them.
pub(crate) const VIEWS: [&str; 4] = [RECOVERY, ATTEMPTS, LANES, ACTIVE];
