//! Files with holes: what is all zeros takes no room.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;

/// File systems leave out whole blocks of this size, or multiples of it.
const BLOCK: usize = 4096;

static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Writes an empty file from its beginning and leaves out the zeros: what is not written reads as zeros.
pub(super) struct SparseWriter<'f> {
    file: &'f File,
    /// How long the content is so far, and how long the file.
    at: u64,
    written: u64,
}

impl<'f> SparseWriter<'f> {
    pub(super) fn new(file: &'f File) -> Self {
        Self {
            file,
            at: 0,
            written: 0,
        }
    }

    /// Gives the file its length, where it ends with zeros.
    pub(super) fn end(self) -> io::Result<()> {
        if self.written < self.at {
            self.file.set_len(self.at)
        } else {
            Ok(())
        }
    }

    fn put(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        if !bytes.is_empty() {
            self.file.write_all_at(bytes, at)?;
            self.written = at + bytes.len() as u64;
        }
        Ok(())
    }
}

impl Write for SparseWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is to be written at once: pieces of blocks with something in them, one behind the other.
        let (mut from, mut to) = (0, 0);
        while to < bytes.len() {
            let in_block = usize::try_from((self.at + to as u64) % BLOCK as u64).unwrap_or(0);
            let end = bytes.len().min(to + BLOCK - in_block);
            let piece = &bytes[to..end];
            if *piece == ZEROS[..piece.len()] {
                self.put(&bytes[from..to], self.at + from as u64)?;
                from = end;
            }
            to = end;
        }
        self.put(&bytes[from..], self.at + from as u64)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Runs of zeros and of other bytes, written in pieces of any size.
        #[test]
        fn every_byte_is_as_it_was(
            runs in prop::collection::vec((any::<bool>(), 0_usize..9000), 0..6), piece in 1_usize..10_000
        ) {
            let content: Vec<u8> =
                runs.iter().flat_map(|(zero, length)| vec![if *zero { 0 } else { 7 }; *length]).collect();
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut writer = SparseWriter::new(file.as_file());
            for part in content.chunks(piece) {
                writer.write_all(part).unwrap();
            }
            writer.end().unwrap();
            prop_assert_eq!(std::fs::read(file.path()).unwrap(), content);
        }
    }
}
