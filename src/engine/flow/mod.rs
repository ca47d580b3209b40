//! The commands: one file a command, one folder a feature.

pub mod attempt;
pub mod checkpoint;
pub mod fix_session;
pub mod restore;
pub mod rollback_target;
