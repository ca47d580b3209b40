//! The ledger compacts itself (B13): its older lines are packed, and nothing of them is lost.

use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt, fchown};

use crate::durable::Sync;

use super::super::packed_lines;
use super::Exclusive;

/// So many bytes of lines in the open are too many.
const TOO_LONG: u64 = 8 * 1024 * 1024;
/// So many stay, for who follows the ledger.
const STAY: usize = 1024 * 1024;

impl Exclusive {
    /// Packs older lines once there are many. The ledger is replaced as a whole: a kill leaves the one or the other, who
    /// reads meanwhile has the one or the other, and both say the same. A failure costs space, nothing else.
    pub(super) fn compact(&mut self) {
        if self.loaded.offset.saturating_sub(self.loaded.packed) < TOO_LONG {
            return;
        }
        if let Err(error) = self.try_compact() {
            tracing::warn!(%error, ledger = %self.store.ledger_path().display(), "the ledger was not compacted");
        }
    }

    fn try_compact(&mut self) -> io::Result<()> {
        let path = self.store.ledger_path();
        let root = self.store.root();
        let mut file = root.open(&path)?;
        let present = file.metadata()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let index = |offset| usize::try_from(offset).map_err(io::Error::other);
        let (end, begin) = (index(self.loaded.offset)?, index(self.loaded.packed)?);
        let changed = || io::Error::other("it was changed by something else");
        if bytes.len() != end {
            return Err(changed());
        }
        let open = bytes.get(begin..end).ok_or_else(changed)?;
        let Some(stay) = memchr::memrchr(b'\n', &open[..open.len().saturating_sub(STAY)]) else {
            return Ok(());
        };
        let (old, young) = open.split_at(stay + 1);
        let before = self.loaded.lines - memchr::memchr_iter(b'\n', open).count() as u64;
        let packed = packed_lines::pack(before + 1, old);
        let packed = packed.map_err(|flaw| io::Error::other(format!("{flaw:?}")))?;

        let mut all = Vec::with_capacity(begin + packed.len() + young.len());
        all.extend_from_slice(&bytes[..begin]);
        all.extend_from_slice(&packed);
        let end_of_packed = all.len() as u64;
        all.extend_from_slice(young);
        root.write(&path, &all, Sync::All)?;
        // Whose it was, where that is somebody else's and may be said.
        let _ = fchown(root.open(&path)?, Some(present.uid()), Some(present.gid()));
        (self.loaded.offset, self.loaded.packed) = (all.len() as u64, end_of_packed);
        self.store
            .written_anew(self.loaded.lines)
            .map_err(io::Error::other)
    }
}
