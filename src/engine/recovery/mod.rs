//! Crash recovery, before every command that writes.
//! It settles restores, steps, attempts and sessions that a kill cut off, and checkpoints whose event was never written.
//! Commands that only read apply the same in memory.

pub(in crate::engine) mod attempts;
pub mod commits;
pub mod crash;
pub mod rebuild;
mod references;
pub mod session;
pub mod silent;
pub mod steps;
