//! The fold so far, so that start-up does not grow with the ledger.
//!
//! A cache: it checks itself, it is never the truth, and any doubt means that the ledger is folded from its start. It is
//! a line with the checksum of all that follows it, the length of the state, that of the ledger that is in it, and the
//! format; the state in `MessagePack`; and the packed parts of the state in the order of [`State::parts`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::durable::{Refused, Root, Sync};
use crate::model::lazy_compressed::{Bytes, Source};
use crate::model::state::State;

/// Changes whenever [`State`], the fold or the packing changes.
const FORMAT: &str = concat!(env!("CARGO_PKG_VERSION"), "/36");
/// How long the first line is: twice eight hexadecimal digits and once sixteen, the format, three blanks, a newline.
const HEAD: usize = 36 + FORMAT.len();

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
    /// Lengths of the packed parts.
    parts: Vec<u32>,
    /// What they add up to.
    pub state: State,
}

impl StateCache {
    /// A cache entry for a prefix of the ledger.
    pub(super) fn new(
        offset: u64,
        ends_with: String,
        lines: u64,
        packed: u64,
        state: State,
    ) -> Self {
        Self {
            offset,
            ends_with,
            lines,
            packed,
            parts: Vec::new(),
            state,
        }
    }

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
        Some(Head::read(&root.open(path).ok()?)?.offset)
    }

    fn decode(file: File) -> Option<Self> {
        let size = file.metadata().ok()?.len();
        let Head {
            checksum,
            length,
            offset,
        } = Head::read(&file)?;
        let mut at = (HEAD as u64)
            .checked_add(length.into())
            .filter(|end| *end <= size)?;
        let mut state = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut state, HEAD as u64).ok()?;
        let mut found = crc32fast::Hasher::new();
        found.update(&state);
        add_rest(&mut found, &file, at)?;
        if found.finalize() != checksum {
            return None;
        }
        let mut cache = rmp_serde::from_slice::<Self>(&state).ok()?;
        if cache.offset != offset {
            return None;
        }
        let source: Arc<dyn Source> = Arc::new(CacheFile(file));
        let missing = cache
            .state
            .parts()
            .into_iter()
            .filter(|part| part.is_missing());
        for (part, length) in missing.zip(&cache.parts) {
            part.fill(Bytes {
                source: source.clone(),
                at,
                length: usize::try_from(*length).ok()?,
            });
            at += u64::from(*length);
        }
        let whole = at == size && !cache.state.parts().iter().any(|part| part.is_missing());
        whole.then_some(cache)
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

    fn encode(&mut self) -> io::Result<Vec<u8>> {
        let parts: Vec<Vec<u8>> = self
            .state
            .parts()
            .iter()
            .filter_map(|part| part.bytes())
            .collect();
        let lengths = parts.iter().map(|part| u32::try_from(part.len()));
        self.parts = lengths
            .collect::<Result<_, _>>()
            .map_err(io::Error::other)?;
        let mut body = rmp_serde::to_vec_named(self).map_err(io::Error::other)?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        body.extend(parts.into_iter().flatten());
        let mut all = Head {
            checksum: crc32fast::hash(&body),
            length,
            offset: self.offset,
        }
        .line();
        all.append(&mut body);
        Ok(all)
    }
}

/// The cache's first line.
struct Head {
    /// Of all that follows.
    checksum: u32,
    /// Of the state in the open, in bytes.
    length: u32,
    /// As in the cache.
    offset: u64,
}

impl Head {
    fn line(&self) -> Vec<u8> {
        format!(
            "{:08x} {:08x} {:016x} {FORMAT}\n",
            self.checksum, self.length, self.offset
        )
        .into_bytes()
    }

    /// `None` where another version wrote it.
    fn read(file: &File) -> Option<Self> {
        let mut line = [0; HEAD];
        file.read_exact_at(&mut line, 0).ok()?;
        let numbers = std::str::from_utf8(&line)
            .ok()?
            .strip_suffix('\n')?
            .strip_suffix(FORMAT)?;
        let mut words = numbers.split(' ');
        let (checksum, length, offset) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            checksum: u32::from_str_radix(checksum, 16).ok()?,
            length: u32::from_str_radix(length, 16).ok()?,
            offset: u64::from_str_radix(offset, 16).ok()?,
        })
    }
}

/// The packed parts are in the file, and most of them stay there: all that a command reads it pays for.
#[derive(Debug)]
struct CacheFile(File);

impl Source for CacheFile {
    fn read(&self, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // A cache is put in place whole and never changed, and this one was read to its end a moment ago.
        self.0
            .read_exact_at(&mut bytes, at)
            .expect("the disk gives the cache recover/fold.cache again");
        bytes
    }
}

/// Adds to the checksum what the file holds from `at` on.
fn add_rest(checksum: &mut crc32fast::Hasher, file: &File, mut at: u64) -> Option<()> {
    let mut buffer = [0; 1 << 14];
    loop {
        match file.read_at(&mut buffer, at) {
            Ok(0) => return Some(()),
            Ok(length) => {
                checksum.update(&buffer[..length]);
                at += length as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}
