//! Makes names durable, and says how many files are made so in the cheapest way.

use std::path::Path;

use super::error::{Error, Result};
use crate::os::{SYNCS_FILE_SYSTEMS, dirty_bytes};

/// Syncs a folder, so that the names in it are durable.
pub(in crate::git) fn sync_folder(folder: &Path) -> Result<()> {
    crate::durable::sync_dir(folder).map_err(Error::at(folder))
}

/// Fewer files are synced each by itself, whatever else waits for the disk.
pub(in crate::git) const MANY: usize = 16;
/// So many bytes the disk takes in the time of one sync more, about.
const BYTES_A_SYNC: u64 = 256 << 10;

/// Whether one sync of the whole file system, which waits for everybody's data, is cheaper than one for each of so many
/// files or folders: not where a build has just written a gigabyte.
pub(in crate::git) fn whole_is_cheaper(count: usize) -> bool {
    let is_cheaper = |dirty: u64| dirty <= count as u64 * BYTES_A_SYNC;
    SYNCS_FILE_SYSTEMS && count >= MANY && dirty_bytes().is_none_or(is_cheaper)
}
