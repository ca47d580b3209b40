//! Makes names durable.

use std::path::Path;

use super::error::{Error, Result};

/// Syncs a folder, so that the names in it are durable.
pub(in crate::git) fn sync_folder(folder: &Path) -> Result<()> {
    crate::durable::sync_dir(folder).map_err(Error::at(folder))
}
