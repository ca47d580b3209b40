//! Objects that are there already: whether they are whole.

use std::io;
use std::sync::atomic::Ordering;

use git2::Oid;

use super::ObjectWriter;
use super::tools::Tools;
use crate::git::doubt;
use crate::git::error::{Error, Result};
use crate::git::publish;

/// So many objects that are there already are looked at. A capture that meets more of them has no cache.
const READ_BACK: usize = 1000;

impl ObjectWriter {
    /// Whether damage was found in the real database: then what lies there is read before it is believed.
    pub fn doubts(&self) -> bool {
        self.doubted.is_some()
    }

    /// Ends that, when everything of a capture was written or read.
    pub fn end_doubt(&self) -> Result<()> {
        if self.doubts() { self.quarantine.parent().map_or(Ok(()), doubt::settle) } else { Ok(()) }
    }

    /// Whether an object is there and, where damage was found, is what its id says.
    pub(super) fn is_sound(&self, tools: &Tools, oid: Oid) -> Result<bool> {
        Ok(tools.target.exists(oid) && (!self.doubts() || self.is_whole(tools, oid)?))
    }

    /// Whether an object that is there is what its id says. A loose one is read back: a power failure may have cut it
    /// short. After [`READ_BACK`] objects, and with what is packed, that is only done where damage was found.
    pub(super) fn is_whole(&self, tools: &Tools, oid: Oid) -> Result<bool> {
        if !self.doubts() && self.read_back.fetch_add(1, Ordering::Relaxed) >= READ_BACK {
            return Ok(true);
        }
        for folder in self.doubted.as_deref().unwrap_or(std::slice::from_ref(&self.target)) {
            let path = publish::loose_path(folder, oid);
            match publish::is_whole(&path, oid) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                found => return found.map_err(Error::at(&path)),
            }
        }
        Ok(!self.doubts() || tools.target.read(oid).is_some())
    }
}
