//! Objects that are there already: whether they are whole.

use std::fs::{self, File};
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use git2::Oid;

use super::tools::Tools;
use super::{FRESH, ObjectWriter};
use crate::git::base::error::{Error, Result};
use crate::git::odb::format;
use crate::git::repo::corruption_marker;

/// So many objects that are there already are examined. A capture that meets more of them has no cache.
const READ_BACK: usize = 1000;

impl ObjectWriter {
    /// Whether the object is there: written before, or in the real database or one that it borrows from.
    ///
    /// A pack that another process made meanwhile may be overlooked; the object is then written once more.
    pub(crate) fn contains(&self, oid: Oid) -> Result<bool> {
        if self.state().known.contains(&oid) {
            return Ok(true);
        }
        self.with_tools(|tools| self.is_sound(tools, oid))
    }

    /// Which of many objects are there.
    pub(crate) fn contained(&self, oids: &[Oid]) -> Result<Vec<bool>> {
        let known: Vec<bool> = {
            let state = self.state();
            oids.iter().map(|oid| state.known.contains(oid)).collect()
        };
        let there = |tools: &mut Tools, (oid, known): (&Oid, bool)| {
            Ok(known || self.is_sound(tools, *oid)?)
        };
        self.with_tools(|tools| {
            oids.iter()
                .zip(known)
                .map(|one| there(tools, one))
                .collect()
        })
    }

    /// Whether damage was found in the real database: then what lies there is read before it is believed.
    pub(crate) fn doubts(&self) -> bool {
        self.health.doubts
    }

    /// Whether what an earlier capture stored is there without a look for it.
    pub(crate) fn trusts_earlier(&self) -> bool {
        !self.health.doubts && self.health.damaged.is_empty() && !self.health.is_any_gone
    }

    /// Makes what other programs wrote durable, so that what was captured may rely on it.
    pub(crate) fn sync_others(&self) -> Result<()> {
        self.others
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .sync()
    }

    /// Whether other programs had written anything that need not be durable.
    pub(crate) fn has_unsynced(&self) -> bool {
        self.others
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_any_new
    }

    /// Ends that, when everything of a capture was written or read.
    pub(crate) fn end_doubt(&self) -> Result<()> {
        if self.doubts() && !self.rehearsal {
            corruption_marker::clear(&self.own)
        } else {
            Ok(())
        }
    }

    /// Whether an object is there and, where damage was found, is what its id says.
    pub(super) fn is_sound(&self, tools: &Tools, oid: Oid) -> Result<bool> {
        Ok(tools.target.exists(oid) && (!self.doubts_one(oid) || self.is_whole(tools, oid)?))
    }

    /// Whether an object that is there is what its id says. It is read back: a power failure may have cut the file short that
    /// it is in. After [`READ_BACK`] objects that is only done where damage was found, and with what is packed only then or
    /// where checkpoints have small packs.
    pub(super) fn is_whole(&self, tools: &Tools, oid: Oid) -> Result<bool> {
        let doubts = self.doubts_one(oid);
        if !doubts && self.read_back.fetch_add(1, Ordering::Relaxed) >= READ_BACK {
            return Ok(true);
        }
        for folder in if doubts {
            self.folders.as_slice()
        } else {
            std::slice::from_ref(&self.target)
        } {
            let path = format::loose_path(folder, oid);
            match format::is_whole(&path, oid) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                found => return found.map_err(Error::at(&path)),
            }
        }
        Ok(!(doubts || self.has_small) || tools.target.read(oid).is_some())
    }

    fn doubts_one(&self, oid: Oid) -> bool {
        self.health.doubts || self.health.damaged.contains(&oid)
    }

    /// Makes an old loose object young: something is about to refer to it. One in a pack is left to git's own care: `git
    /// gc` unpacks what nothing refers to before it is removed. Returns whether it is loose.
    pub(super) fn refresh(&self, oid: Oid) -> bool {
        let path = format::loose_path(&self.target, oid);
        let Ok(modified) = fs::metadata(&path).and_then(|file| file.modified()) else {
            return false;
        };
        if !self.rehearsal
            && SystemTime::now()
                .duration_since(modified)
                .is_ok_and(|age| age > FRESH)
        {
            // Another user's file may be kept by its owner only; that is git's own limit as well.
            let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        true
    }
}
