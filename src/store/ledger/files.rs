//! The ledger's files, opened once for many looks and many appends.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use crate::durable::{Refused, Root};

use super::super::error::StoreError;
use super::super::registry::Origin;
use super::super::second_copy::{Standing, standing};
use super::Store;

/// A file that stays open for as long as its name means it: another process may replace it at any time.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenFile(Option<Arc<File>>);

impl OpenFile {
    /// The file under this name now, opened by `open` unless it is open already; `None` where there is none.
    pub(super) fn current(
        &mut self,
        root: &Root,
        path: &Path,
        open: impl FnOnce(&Root, &Path) -> io::Result<File>,
    ) -> io::Result<Option<Arc<File>>> {
        if let Some(file) = self.0.take()
            && root.is_current(path, &file)?
        {
            self.0 = Some(file);
        } else {
            self.0 = match open(root, path) {
                Ok(file) => Some(Arc::new(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
        }
        Ok(self.0.clone())
    }
}

/// The files as they were opened last.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// The ledger, to read.
    pub ledger: OpenFile,
    /// Its second copy, to read. None for state from elsewhere: our copy is another ledger's.
    pub copy: OpenFile,
    /// The mark of how many events there are, to read.
    pub mark: OpenFile,
    /// The ledger, to append.
    pub ledger_end: OpenFile,
    /// Its second copy, to append.
    pub copy_end: OpenFile,
    /// The mark, to write.
    pub mark_to_write: OpenFile,
}

/// Ledger and copy as one look at the disk found them.
pub(super) struct Look {
    pub ledger: Option<Arc<File>>,
    /// How they stand to each other.
    pub standing: Standing,
}

impl Store {
    /// Looks at the ledger and its second copy. A copy that cannot be read is none; what stands in its place and is no file
    /// is an error.
    pub(super) fn look(&self, files: &mut Files) -> Result<Look, StoreError> {
        // The copy first: what is appended meanwhile is in the ledger only.
        let copy = match self.copy.as_ref().filter(|_| self.origin() == Origin::Ours) {
            None => None,
            Some(copy) => files.copy.current(copy.root(), copy.path(), Root::open).or_else(|error| {
                if Refused::of(&error).is_some() {
                    return Err(self.io("read the second copy of")(error));
                }
                tracing::debug!(%error, copy = %copy.path().display(), "the ledger's second copy cannot be read");
                Ok(None)
            })?,
        };
        let ledger = files
            .ledger
            .current(&self.root, &self.ledger_path(), Root::open)
            .map_err(self.io("read"))?;
        let standing = standing(copy.as_deref(), ledger.as_deref()).unwrap_or_else(|error| {
            tracing::debug!(%error, "the ledger's second copy cannot be compared");
            Standing::Alone
        });
        Ok(Look { ledger, standing })
    }

    /// [`Self::look`] for who keeps no files: with those that were opened for what was read last.
    pub(super) fn look_again(&self) -> Result<Look, StoreError> {
        let mut files = self
            .last()
            .as_ref()
            .map(|last| last.files.clone())
            .unwrap_or_default();
        self.look(&mut files)
    }
}

/// Reads from a place of its own in a file that others read, too.
pub(super) struct Reader<'a> {
    pub file: &'a File,
    pub at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
