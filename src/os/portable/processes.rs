//! The process table where only `ps` shows it: without environments, working directories or command lines.

use std::path::PathBuf;

pub(crate) use crate::os::ps::{entry, living};

pub(crate) fn has_variable(_pid: u32, _setting: &str) -> bool {
    false
}

pub(crate) fn variable(_pid: u32, _name: &str) -> Option<String> {
    None
}

pub(crate) fn command(_pid: u32) -> Option<String> {
    None
}

pub(crate) fn folder(_pid: u32) -> Option<PathBuf> {
    None
}

pub(crate) fn name(_pid: u32) -> Option<String> {
    None
}

pub(crate) fn pid_namespace() -> Option<u64> {
    None
}

/// None is needed: start times are calendar time here, so they stay comparable.
pub(crate) fn boot_id() -> Option<String> {
    None
}
