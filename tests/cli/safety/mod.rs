//! Hostile input, secrets, locks, and many processes at once.

pub mod concurrent;
pub mod costs;
pub mod git_locks;
pub mod hostile;
pub mod incidents;
pub mod secrets;
pub mod survival;
