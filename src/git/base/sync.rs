//! Makes names durable, and says how many files are made so in the cheapest way.

use std::path::Path;

use super::error::{Error, Result};

/// Syncs a folder, so that the names in it are durable.
pub(in crate::git) fn sync_folder(folder: &Path) -> Result<()> {
    crate::durable::sync_dir(folder).map_err(Error::at(folder))
}

/// Fewer files are synced each by itself, whatever else waits for the disk.
#[cfg(target_os = "linux")]
pub(in crate::git) const MANY: usize = 16;
/// So many bytes the disk takes in the time of one sync more, about.
#[cfg(target_os = "linux")]
const BYTES_A_SYNC: u64 = 256 << 10;

/// Whether one sync of the whole file system, which waits for everybody's data, is cheaper than one for each of so many
/// files or folders: not where a build has just written a gigabyte.
#[cfg(target_os = "linux")]
pub(in crate::git) fn whole_is_cheaper(count: usize) -> bool {
    let memory = || std::fs::read_to_string("/proc/meminfo").ok();
    let is_cheaper = |dirty: u64| dirty <= count as u64 * BYTES_A_SYNC;
    count >= MANY && memory().as_deref().and_then(dirty).is_none_or(is_cheaper)
}

/// How many bytes wait for a disk or are on their way to it, as `/proc/meminfo` says it.
#[cfg(target_os = "linux")]
fn dirty(memory: &str) -> Option<u64> {
    let kilobytes = |name| {
        let line = memory.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some((kilobytes("Dirty:")? + kilobytes("Writeback:")?) << 10)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_the_disk_is_read() {
        let memory = "MemTotal:  16384 kB\nDirty:              1540 kB\nWriteback:            60 kB\nWritebackTmp: 9 kB\n";
        assert_eq!(dirty(memory), Some(1600 << 10));
        assert_eq!(dirty("MemTotal:  16384 kB\n"), None);
        assert!(!whole_is_cheaper(MANY - 1));
    }
}
