//! Which blob a file was when it was last read, so that an unchanged file need not be read again.
//!
//! One file a worktree, `$GIT_DIR/recover/index-cache`: a header, the entries sorted by path, a checksum. A damaged or
//! foreign file is the same as none. It is written by temp file and rename but not synced: losing it costs time only.
//!
//! **When an entry is trusted.** Size, mtime, ctime, inode, device and mode must all be as they were. The ctime notices
//! an mtime that was set back. Two writes within one tick of the file system's clock leave the same times, so an
//! entry is stored only when its times are older than the moment, by that same clock, at which the capture began to
//! read, by a margin of several ticks.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use git2::Oid;

use super::dirs::FileStat;
use super::error::{Error, Result};
use super::repository::Repo;
use crate::durable::write_atomic_unsynced;
use crate::model::path::RepoPath;

const MAGIC: &[u8; 8] = b"RCVCACH1";
const FILE: &str = "index-cache";
/// Kernel ticks are at most 10 ms; network file systems lag a little more.
const MARGIN: i64 = 50_000_000;
/// Where times are whole seconds (or two, on FAT), a tick is that long.
const COARSE_MARGIN: i64 = 2_000_000_000;

/// The cache of one worktree.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    entries: BTreeMap<RepoPath, (FileStat, Oid)>,
    /// The file system's time when the capture began, nanoseconds.
    began: i64,
}

impl Cache {
    /// Reads the cache and notes the file system's present time.
    pub fn open(repo: &Repo) -> Result<Self> {
        let folder = repo.recover_dir()?;
        // A file written now has the present time of the file system's clock, which need not be ours.
        let path = folder.join("cache-stamp");
        let mut stamp = fs::File::create(&path).map_err(Error::at(&path))?;
        stamp.write_all(b"\n").map_err(Error::at(&path))?;
        let began = super::dirs::stat_open(&stamp).map_err(Error::at(&path))?.mtime;
        let entries = fs::read(folder.join(FILE)).ok().and_then(|bytes| parse(&bytes)).unwrap_or_default();
        Ok(Self { folder, entries, began })
    }

    /// The blob of a file that has not changed since it was stored.
    pub fn get(&self, path: &RepoPath, stat: &FileStat) -> Option<Oid> {
        self.entries.get(path).filter(|(known, _)| known == stat).map(|(_, oid)| *oid)
    }

    /// Whether a change after the capture began would show in the times of this file.
    fn settled(&self, stat: &FileStat) -> bool {
        let margin = if stat.ctime % 1_000_000_000 == 0 { COARSE_MARGIN } else { MARGIN };
        stat.mtime.max(stat.ctime) < self.began.saturating_sub(margin)
    }

    /// Replaces the cache by what this capture saw. A failure is told, but no reason to fail a capture.
    pub fn store(&mut self, seen: BTreeMap<RepoPath, (FileStat, Oid)>) -> Result<()> {
        let before = std::mem::take(&mut self.entries);
        self.entries = seen.into_iter().filter(|(_, (stat, _))| self.settled(stat)).collect();
        if before == self.entries {
            return Ok(());
        }
        let path = self.folder.join(FILE);
        write_atomic_unsynced(&path, &format(&self.entries)).map_err(Error::at(&path))
    }
}

fn format(entries: &BTreeMap<RepoPath, (FileStat, Oid)>) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (path, (stat, oid)) in entries {
        let length = u32::try_from(path.as_bytes().len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(&stat.size.to_le_bytes());
        bytes.extend_from_slice(&stat.mtime.to_le_bytes());
        bytes.extend_from_slice(&stat.ctime.to_le_bytes());
        bytes.extend_from_slice(&stat.ino.to_le_bytes());
        bytes.extend_from_slice(&stat.dev.to_le_bytes());
        bytes.extend_from_slice(&stat.mode.to_le_bytes());
        bytes.extend_from_slice(oid.as_bytes());
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Option<BTreeMap<RepoPath, (FileStat, Oid)>> {
    let (body, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut rest = body.strip_prefix(MAGIC.as_slice())?;
    let mut entries = BTreeMap::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(take(&mut rest)?) as usize;
        let (path, after) = rest.split_at_checked(length)?;
        rest = after;
        let stat = FileStat {
            size: u64::from_le_bytes(take(&mut rest)?),
            mtime: i64::from_le_bytes(take(&mut rest)?),
            ctime: i64::from_le_bytes(take(&mut rest)?),
            ino: u64::from_le_bytes(take(&mut rest)?),
            dev: u64::from_le_bytes(take(&mut rest)?),
            mode: u32::from_le_bytes(take(&mut rest)?),
        };
        let oid = Oid::from_bytes(&take::<20>(&mut rest)?).ok()?;
        entries.insert(RepoPath::new(path), (stat, oid));
    }
    Some(entries)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_read_back_and_damage_is_noticed() {
        let stat = FileStat { size: 3, mtime: -5, ctime: 7, ino: 8, dev: 9, mode: 0o100_644 };
        let entries = BTreeMap::from([(RepoPath::new(b"a\xff\n".to_vec()), (stat, Oid::zero()))]);
        let bytes = format(&entries);
        assert_eq!(parse(&bytes), Some(entries));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(parse(&damaged), None, "{at}");
            assert_eq!(parse(&bytes[..at]), None, "{at}");
        }
    }
}
