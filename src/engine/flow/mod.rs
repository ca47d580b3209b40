//! What each command does, without arguments and output: one file a command, one folder a feature.
//! What several commands share is in the rooms before this one.

pub mod accept;
pub mod agents;
pub mod archive;
pub mod attempt;
pub mod bisect;
mod bundle_import;
pub mod checkpoint;
pub mod doctor;
pub mod export;
pub mod fix_session;
pub mod follow;
mod foreign_views;
pub mod forget;
pub mod hook;
pub mod import;
pub mod init;
pub mod inside;
pub mod inspect;
pub mod manual_fix;
pub mod missing_worktree;
pub mod project_trust;
pub mod prune;
pub mod report;
pub mod restore;
pub mod resume;
pub mod retry;
pub mod rollback;
pub mod rollback_target;
pub mod run;
pub mod runs;
pub mod status;
pub mod step;
pub mod sync;
pub mod trust;
pub mod undo;
pub mod verify;
