//! The fold so far, so that start-up does not grow with the ledger.
//!
//! A cache: it checks itself, it is never the truth, and any doubt means that the ledger is folded from its start. It is
//! a line with the checksum of all that follows and the length of the JSON, that JSON, and the packed parts of the state,
//! each after its length (32 bits, little-endian) in the order of [`State::parts`].

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::durable::write_atomic_unsynced;
use crate::model::packed::Bytes;
use crate::model::state::State;

/// Changes whenever [`State`], the fold or the packing changes.
const FORMAT: &str = concat!(env!("CARGO_PKG_VERSION"), "/10");
/// How long the first line is: twice eight hexadecimal digits, a blank, a newline.
const HEAD: usize = 18;

/// The fold of the ledger's first `offset` bytes.
#[derive(Serialize, Deserialize)]
pub struct FoldCache {
    version: String,
    /// Length of the part of the ledger that is folded in.
    pub offset: u64,
    /// The last bytes before `offset`: another ledger under the same name does not end alike.
    pub ends_with: String,
    /// How many events that is.
    pub lines: u64,
    /// How much of it is packed lines.
    pub packed: u64,
    /// What they add up to.
    pub state: State,
}

impl FoldCache {
    /// A cache entry for a prefix of the ledger.
    pub fn new(offset: u64, ends_with: String, lines: u64, packed: u64, state: State) -> Self {
        Self { version: FORMAT.to_owned(), offset, ends_with, lines, packed, state }
    }

    /// Reads the cache; anything wrong with it is the same as none.
    pub fn read(path: &Path) -> Option<Self> {
        let bytes = Arc::new(fs::read(path).ok()?);
        let number = |range| u32::from_str_radix(std::str::from_utf8(bytes.get(range)?).ok()?, 16).ok();
        let (checksum, length) = (number(0..8)?, number(9..HEAD - 1)?);
        if crc32fast::hash(bytes.get(HEAD..)?) != checksum {
            return None;
        }
        let mut at = HEAD.checked_add(usize::try_from(length).ok()?)?;
        let mut cache = serde_json::from_slice::<Self>(bytes.get(HEAD..at)?).ok()?;
        if cache.version != FORMAT {
            return None;
        }
        for part in cache.state.parts().into_iter().filter(|part| part.is_missing()) {
            let (length, _) = bytes.get(at..)?.split_first_chunk()?;
            let begin = at + length.len();
            at = begin.checked_add(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
            part.fill(Bytes::of(&bytes, begin..at)?);
        }
        (at == bytes.len()).then_some(cache)
    }

    /// Packs what is over and writes the cache; a failure costs time later, nothing else.
    pub fn write(mut self, path: &Path) {
        self.state.pack();
        let written = self.encode().and_then(|bytes| write_atomic_unsynced(path, &bytes));
        if let Err(error) = written {
            tracing::debug!(%error, path = %path.display(), "the fold cache was not written");
        }
    }

    fn encode(&mut self) -> std::io::Result<Vec<u8>> {
        let too_long = std::io::Error::other;
        let mut body = serde_json::to_vec(self)?;
        let length = u32::try_from(body.len()).map_err(too_long)?;
        for part in self.state.parts() {
            if let Some(bytes) = part.bytes() {
                body.extend(u32::try_from(bytes.len()).map_err(too_long)?.to_le_bytes());
                body.extend(bytes);
            }
        }
        let mut all = format!("{:08x} {length:08x}\n", crc32fast::hash(&body)).into_bytes();
        all.append(&mut body);
        Ok(all)
    }
}
