//! Decides when the times of a file show that it has not changed.
//! File systems' clocks tick, and two changes within a tick leave the same times.

use super::openat::FileStat;

/// Kernel ticks are at most 10 ms; network file systems lag a little more.
pub(super) const MARGIN: i64 = 50_000_000;

/// Where times are whole seconds (or two, on FAT), a tick is that long.
const COARSE_MARGIN: i64 = 2_000_000_000;

/// Whether a change at `moment` or later would show in the times of this file.
pub(in crate::git) fn is_settled(stat: &FileStat, moment: i64) -> bool {
    stat.mtime.max(stat.ctime) < moment.saturating_sub(margin(stat.ctime))
}

/// How much older than a moment a time of a file must be, so that a change after the moment gives another time.
pub(in crate::git) fn margin(time: i64) -> i64 {
    if time % 1_000_000_000 == 0 {
        COARSE_MARGIN
    } else {
        MARGIN
    }
}
