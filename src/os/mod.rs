//! What differs between systems, under one signature each: no other room knows which system it is on.
//! What another one reads below `/proc` may be missing.
//!
//! `linux` uses what only its kernel has; `portable` does without (macOS, the BSDs).

#[cfg_attr(target_os = "linux", path = "linux/mod.rs")]
#[cfg_attr(not(target_os = "linux"), path = "portable/mod.rs")]
mod system;

#[cfg(any(test, not(target_os = "linux")))]
mod seatbelt;

/// The portable process table; on Linux its rows are tested.
#[cfg(all(test, target_os = "linux"))]
#[expect(dead_code, reason = "used where there is no other")]
#[path = "portable/processes.rs"]
mod ps;

use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, Mode, RawMode};
use rustix::time::clock_gettime;

pub(crate) use system::{
    DISABLED_KEY, FOLDER_BY_PATH, KNOWS_FOLDERS_OF_PROCESSES, SYNCS_FILE_SYSTEMS, attributes,
    can_confine, confined, dirty_bytes, end_of_child, enlarge_pipe, for_each_name, inhibitor,
    is_on_battery, keeps_folder_times, network_file_system, open_pty, own_program,
    passing_file_system, pipe_size, rename_to_new, sync_file, sync_file_system,
};

/// What is known of a path beside its `stat`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    /// Whether something is mounted there, also of the same file system; `None` where that is not known.
    pub(crate) is_mount: Option<bool>,
    /// Immutable or append-only.
    pub(crate) is_fixed: bool,
}

/// A row of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// When it started, in the system's own unit; grows with time until the machine restarts.
    pub(crate) start_time: u64,
    /// Whether it has ended and its parent has not waited for it yet.
    pub(crate) zombie: bool,
}

/// The process table.
pub(crate) mod processes {
    pub(crate) use super::ProcessEntry;
    pub(crate) use super::system::processes::{
        boot_id, command, cpu_time, entry, folder, has_variable, living, name, pid_namespace,
        variable,
    };
}

/// Time since the machine started, suspended or not; where the system does not count from there, since an earlier moment
/// that is the same for all processes.
pub(crate) fn since_boot() -> Duration {
    let now = clock_gettime(system::BOOT_CLOCK);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// When the machine started; `None` where the system does not report it.
pub(crate) fn boot_time() -> Option<SystemTime> {
    let now = SystemTime::now();
    system::KNOWS_BOOT_TIME
        .then(|| now.checked_sub(since_boot()))
        .flatten()
}

/// Permission bits as the system's calls take them.
// `RawMode` has 16 bits on some systems; those above are none of a mode.
#[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast)]
pub(crate) fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits as RawMode)
}

/// The type of a file, from the bits that git and `stat` have for it.
#[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast)]
pub(crate) fn file_type(bits: u32) -> FileType {
    FileType::from_raw_mode(bits as RawMode)
}
