//! Restores: what comes back, what stays, and what interrupts them.

pub mod abandoned_checkpoints;
pub mod blocked_paths;
pub mod bookkeeping;
pub mod discard;
pub mod dry_run;
pub mod fidelity;
pub mod head_and_branches;
pub mod ignored_files;
pub mod index;
pub mod interrupted;
pub mod nested_repositories;
pub mod targets;
pub mod undo;
pub mod unfinished;
