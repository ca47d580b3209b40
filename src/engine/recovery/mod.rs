//! Crash recovery, before every command that writes.
//! It settles restores, steps, attempts and sessions that a kill cut off, and checkpoints whose event was never written.
//! Commands that only read apply the same in memory.

pub(in crate::engine) mod attempts;
pub(crate) mod commits;
pub(crate) mod crash;
pub(crate) mod rebuild;
mod references;
pub(crate) mod session;
pub(crate) mod silent;
pub(crate) mod steps;
