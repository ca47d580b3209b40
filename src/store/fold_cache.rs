//! The fold so far, so that start-up does not grow with the ledger.
//!
//! A cache: it checks itself, it is never the truth, and any doubt means that the ledger is folded from its start.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::durable::write_atomic_unsynced;
use crate::model::iterations::PACKED;
use crate::model::state::State;

/// Changes whenever [`State`] or the fold changes.
const FORMAT: &str = concat!(env!("CARGO_PKG_VERSION"), "/8");

/// That, and how iterations are packed.
fn version() -> String {
    format!("{FORMAT}/{PACKED}")
}

/// The fold of the ledger's first `offset` bytes.
#[derive(Serialize, Deserialize)]
pub struct FoldCache {
    version: String,
    /// Length of the part of the ledger that is folded in.
    pub offset: u64,
    /// The last bytes before `offset`: another ledger under the same name does not end alike.
    pub ends_with: String,
    /// How many lines that is.
    pub lines: u64,
    /// What they add up to.
    pub state: State,
}

impl FoldCache {
    /// A cache entry for a prefix of the ledger.
    pub fn new(offset: u64, ends_with: String, lines: u64, state: State) -> Self {
        Self { version: version(), offset, ends_with, lines, state }
    }

    /// Reads the cache; anything wrong with it is the same as none.
    pub fn read(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        let newline = bytes.iter().position(|byte| *byte == b'\n')?;
        let checksum = u32::from_str_radix(std::str::from_utf8(&bytes[..newline]).ok()?, 16).ok()?;
        let json = &bytes[newline + 1..];
        if crc32fast::hash(json) != checksum {
            return None;
        }
        serde_json::from_slice::<Self>(json).ok().filter(|cache| cache.version == version())
    }

    /// Writes the cache; a failure costs time later, nothing else.
    pub fn write(&self, path: &Path) {
        let written = serde_json::to_vec(self).map_err(std::io::Error::from).and_then(|json| {
            let mut bytes = format!("{:08x}\n", crc32fast::hash(&json)).into_bytes();
            bytes.extend_from_slice(&json);
            write_atomic_unsynced(path, &bytes)
        });
        if let Err(error) = written {
            tracing::debug!(%error, path = %path.display(), "the fold cache was not written");
        }
    }
}
