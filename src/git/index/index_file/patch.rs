//! Changes the file metadata of entries in the bytes of an index.
//! The rest stays the same: extensions, flags and the order of everything are git's own.

use sha1::{Digest as _, Sha1};

use super::{EntryStat, HASH, IndexEntryRef, IndexFile, SPARSE_FOLDER};
use crate::git::base::{Error, GITLINK, Result};

/// The bytes of an index file, to be changed in place.
pub(in crate::git) struct IndexPatch {
    bytes: Vec<u8>,
    file: IndexFile,
    changed: bool,
}

impl IndexPatch {
    /// Parses the bytes of an index file, as [`IndexFile::parse`] does. The entries of a split index lie in another file,
    /// too: that is [`Error::Unsupported`].
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self> {
        let file = IndexFile::parse(&bytes)?;
        if file.is_split() {
            return Err(Error::Unsupported("a split index".to_owned()));
        }
        Ok(Self {
            bytes,
            file,
            changed: false,
        })
    }

    /// The entry of a path that is not in conflict.
    pub(crate) fn entry(&self, path: &[u8]) -> Option<IndexEntryRef<'_>> {
        self.position(path)
            .map(|at| self.file.entry(&self.file.records[at]))
    }

    /// Sets the metadata of a path that has an [`Self::entry`].
    pub(crate) fn set(&mut self, path: &[u8], stat: &EntryStat) {
        let Some(position) = self.position(path) else {
            return;
        };
        let at = self.file.records[position].at as usize;
        let (ctime, mtime) = (stat.ctime, stat.mtime);
        let before = [ctime.0, ctime.1, mtime.0, mtime.1, stat.dev, stat.ino];
        let after = [stat.uid, stat.gid, stat.size];
        // Bytes 24 to 27 are the file mode.
        let places = (0..24).step_by(4).zip(before);
        for (offset, value) in places.chain((28..40).step_by(4).zip(after)) {
            self.bytes[at + offset..at + offset + 4].copy_from_slice(&value.to_be_bytes());
        }
        self.changed = true;
    }

    /// Entries that git takes for unchanged only after a look at the content, as their files are no older than the index,
    /// which was written in this second.
    pub(crate) fn young(&self, written: u32) -> impl Iterator<Item = &[u8]> {
        let young = self.file.records.iter().filter(move |record| {
            let is_file = record.mode != GITLINK && record.mode != SPARSE_FOLDER;
            let stat = record.stat;
            is_file && record.stage() == 0 && stat.size != 0 && stat.mtime.0 >= written
        });
        young.map(|record| self.file.path(record))
    }

    /// Makes git look at the content of a path, as git itself does: by a size of 0. Written with the next [`Self::set`].
    pub(crate) fn doubt(&mut self, path: &[u8]) {
        let Some(position) = self.position(path) else {
            return;
        };
        let at = self.file.records[position].at as usize;
        self.bytes[at + 36..at + 40].fill(0);
    }

    /// The bytes with a checksum that is right, unless git is configured to write none; `None` if nothing was set.
    pub(crate) fn finish(mut self) -> Option<Vec<u8>> {
        let content = self.bytes.len() - HASH;
        if self.bytes[content..].iter().any(|byte| *byte != 0) {
            let checksum = Sha1::digest(&self.bytes[..content]);
            self.bytes[content..].copy_from_slice(&checksum);
        }
        self.changed.then_some(self.bytes)
    }

    fn position(&self, path: &[u8]) -> Option<usize> {
        let key = |record: &super::Record| (self.file.path(record), record.stage());
        self.file
            .records
            .binary_search_by(|record| key(record).cmp(&(path, 0)))
            .ok()
    }
}
