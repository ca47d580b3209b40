//! The fold so far, so that start-up does not grow with the ledger.
//!
//! A cache: it checks itself, it is never the truth, and any doubt means that the ledger is folded from its start. It is
//! a line with the checksum of all that follows it, the length of the ledger that is in it, and the format; and the state
//! in `MessagePack`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::durable::{Refused, Root, Sync};
use crate::model::state::State;

/// Changes whenever [`State`], the fold or the packing changes.
const FORMAT: &str = concat!(env!("CARGO_PKG_VERSION"), "/50");
/// Length of the first line: eight and sixteen hexadecimal digits, the format, two blanks, a newline.
const HEAD: usize = 27 + FORMAT.len();

/// The fold of the ledger's first `offset` bytes.
#[derive(Serialize, Deserialize)]
pub(super) struct StateCache {
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

impl StateCache {
    /// Reads the cache; anything wrong with its content is the same as none.
    pub(super) fn read(root: &Root, path: &Path) -> io::Result<Option<Self>> {
        match root.open(path) {
            Ok(file) => Ok(Self::decode(file)),
            Err(error) if Refused::of(&error).is_some() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// How many bytes of the ledger the cache has, as it says itself; it is not examined for that.
    pub(super) fn offset(root: &Root, path: &Path) -> Option<u64> {
        Some(Head::read(&mut root.open(path).ok()?)?.offset)
    }

    fn decode(mut file: File) -> Option<Self> {
        let Head { checksum, offset } = Head::read(&mut file)?;
        let mut body = Vec::new();
        file.read_to_end(&mut body).ok()?;
        if crc32fast::hash(&body) != checksum {
            return None;
        }
        let cache = rmp_serde::from_slice::<Self>(&body).ok()?;
        (cache.offset == offset).then_some(cache)
    }

    /// Packs what is over and writes the cache; a failure costs time later, nothing else.
    pub(super) fn write(mut self, root: &Root, path: &Path) {
        self.state.pack();
        let written = self
            .encode()
            .and_then(|bytes| root.write(path, &bytes, Sync::Nothing));
        if let Err(error) = written {
            tracing::debug!(%error, path = %path.display(), "the fold cache was not written");
        }
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        let mut body = rmp_serde::to_vec_named(self).map_err(io::Error::other)?;
        let head = Head {
            checksum: crc32fast::hash(&body),
            offset: self.offset,
        };
        let mut all = head.line();
        all.append(&mut body);
        Ok(all)
    }
}

/// The cache's first line.
struct Head {
    /// Of all that follows.
    checksum: u32,
    /// As in the cache.
    offset: u64,
}

impl Head {
    fn line(&self) -> Vec<u8> {
        format!("{:08x} {:016x} {FORMAT}\n", self.checksum, self.offset).into_bytes()
    }

    /// `None` where another version wrote it.
    fn read(file: &mut File) -> Option<Self> {
        let mut line = [0; HEAD];
        file.read_exact(&mut line).ok()?;
        let numbers = std::str::from_utf8(&line)
            .ok()?
            .strip_suffix('\n')?
            .strip_suffix(FORMAT)?;
        let (checksum, offset) = numbers.trim_end().split_once(' ')?;
        Some(Self {
            checksum: u32::from_str_radix(checksum, 16).ok()?,
            offset: u64::from_str_radix(offset, 16).ok()?,
        })
    }
}
