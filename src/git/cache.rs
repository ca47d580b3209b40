//! What the last recorded capture saw: for each folder its entries with their metadata and blobs, and its tree.
//!
//! One file a worktree, `$GIT_DIR/recover/index-cache`: a header, the folders in the order of a walk, a checksum. A damaged or
//! foreign file is the same as none. It is written by temp file and rename but not synced: losing it costs time only.
//!
//! **When an entry is trusted.** Size, mtime, ctime, inode, device and mode must all be as they were. The ctime notices
//! an mtime that was set back. Two writes within one tick of the file system's clock leave the same times, so the
//! metadata of an entry counts only when its times are older than the moment, by that same clock, at which the capture
//! began to read, by a margin of several ticks; else the file is read again.
//!
//! **When an object is trusted.** The cache names the checkpoint that it was stored with. While that one's reference is
//! there, so are the objects that its trees hold; else each is looked for.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use git2::Oid;
use serde::{Deserialize, Serialize};

use super::dirs::FileStat;
use super::error::{Error, Result};
use super::repository::Repo;
use super::user_index::Identity;
use crate::durable::write_atomic_unsynced;
use crate::model::manifest::{IndexExtra, Nested};
use crate::model::path::RepoPath;
use crate::model::snapshot::ObjectId;

const MAGIC: &[u8; 8] = b"RCVCACH4";
const FILE: &str = "index-cache";
/// Kernel ticks are at most 10 ms; network file systems lag a little more.
pub(super) const MARGIN: i64 = 50_000_000;
/// Where times are whole seconds (or two, on FAT), a tick is that long.
const COARSE_MARGIN: i64 = 2_000_000_000;
/// Bytes of an item beside its name.
const ITEM: usize = 58;

/// What holds for the cache as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Header {
    /// The reference of the checkpoint that it was stored with, and the commit.
    pub reference: String,
    pub commit: String,
    /// The checkpoint's tree.
    pub tree: String,
    /// The user's index at the time, and what was made of it.
    pub index: Option<Identity>,
    pub index_tree: Option<ObjectId>,
    pub index_extras: Vec<IndexExtra>,
    /// Paths of submodules in the index, with their commits.
    pub gitlinks: Vec<Nested>,
    /// Paths in the index that were no file at the time: one that comes back is tracked.
    pub absent: Vec<RepoPath>,
    /// The repositories inside that have an entry in a tree.
    pub nested: Vec<Nested>,
}

/// Bits of an item or folder.
pub(super) mod flag {
    /// The path is in the user's index.
    pub const TRACKED: u8 = 1;
    /// The metadata can be trusted.
    pub const SETTLED: u8 = 2;
    /// The rules took it, not a request for this one path.
    pub const BY_RULES: u8 = 4;
    /// The folder is ignored, and with it all that is not tracked or included.
    pub const IGNORED: u8 = 8;
    /// The folder counts by itself, not only for what is in it.
    pub const WANTED: u8 = 16;
    /// The cached tree of its folder has the file with this content and git file mode. Not stored.
    pub const SAME: u8 = 32;
    /// Something in the folder is no part of the capture: it is not empty, and cannot stand for itself. Not stored.
    pub const HIDDEN: u8 = 64;
    /// The folder is the root of a repository of its own. Not stored.
    pub const NESTED: u8 = 128;
    /// The folder is not all that the cache says of it. Not stored.
    pub const CHANGED: u8 = 4;
    /// The folder holds nothing else than its items, its folders and what the rules left out.
    pub const COMPLETE: u8 = 1;
}

/// An entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedItem<'a> {
    pub name: &'a [u8],
    pub stat: FileStat,
    pub oid: Oid,
    pub flags: u8,
}

/// A folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CachedFolder<'a> {
    pub path: &'a [u8],
    /// The id of the ignore rules in force in it.
    pub rules: Oid,
    /// Its tree; `None` if it has none.
    pub tree: Option<Oid>,
    pub flags: u8,
    /// How many folders in it have a tree.
    pub subtrees: u32,
    /// How many items it has.
    pub count: u32,
    items: &'a [u8],
    names: &'a [u8],
    others: &'a [u8],
    dev: u64,
    ino: u64,
    mtime: i64,
    ctime: i64,
}

/// What a name in a folder stands for that is no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// The ignore rules left a file out.
    IgnoredFile,
    /// The ignore rules left a folder out.
    IgnoredFolder,
    /// A folder that the walk went into.
    Folder,
}

impl<'a> CachedFolder<'a> {
    /// Whether a folder with these flags stands in the cache with the same ones.
    pub fn is_as(&self, flags: u8) -> bool {
        self.flags & (flag::IGNORED | flag::WANTED) == flags & (flag::IGNORED | flag::WANTED)
    }

    /// Names that are no items, sorted.
    pub fn others(&self) -> impl Iterator<Item = (&'a [u8], Other)> + use<'a> {
        let mut rest = self.others;
        std::iter::from_fn(move || {
            let [length, what] = take(&mut rest)?;
            let (name, after) = rest.split_at_checked(usize::from(length))?;
            rest = after;
            let all = [Other::IgnoredFile, Other::IgnoredFolder, Other::Folder];
            Some((name, *all.get(usize::from(what))?))
        })
    }

    /// Whether the folder holds what it held then: nothing was added, removed or renamed since.
    ///
    /// A file system that keeps the times of folders as POSIX asks is the caller's to make sure of.
    pub fn holds_the_same(&self, stat: &FileStat) -> bool {
        self.flags & (flag::COMPLETE | flag::SETTLED) == flag::COMPLETE | flag::SETTLED
            && (stat.mtime, stat.ctime, stat.ino, stat.dev) == (self.mtime, self.ctime, self.ino, self.dev)
    }

    /// Whether it has an item or an ignored file of this name.
    pub fn has_file(&self, name: &[u8]) -> bool {
        let is = |known: &[u8]| known == name;
        self.items().take_while(|item| item.name <= name).any(|item| is(item.name))
            || self.others().any(|(other, what)| is(other) && what == Other::IgnoredFile)
    }

    /// Its items, sorted by name.
    pub fn items(&self) -> impl Iterator<Item = CachedItem<'a>> + use<'a> {
        let (mut names, dev) = (self.names, self.dev);
        self.items.chunks_exact(ITEM).filter_map(move |item| {
            let mut rest = item;
            let stat = FileStat {
                size: u64::from_le_bytes(take(&mut rest)?),
                mtime: i64::from_le_bytes(take(&mut rest)?),
                ctime: i64::from_le_bytes(take(&mut rest)?),
                ino: u64::from_le_bytes(take(&mut rest)?),
                dev,
                mode: u32::from_le_bytes(take(&mut rest)?),
            };
            let [length, flags] = take(&mut rest)?;
            let oid = Oid::from_bytes(rest).ok()?;
            let (name, after) = names.split_at_checked(usize::from(length))?;
            names = after;
            Some(CachedItem { name, stat, oid, flags })
        })
    }
}

/// The cache of one worktree.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    bytes: Vec<u8>,
    pub header: Header,
    /// Where the folders' records are, in the order of a walk.
    folders: Vec<u32>,
    /// The same by the folders' paths.
    by_path: HashMap<Box<[u8]>, u32>,
    /// The file system's time when the capture began, nanoseconds.
    began: i64,
    /// Whether the checkpoint that it was stored with is still there.
    pub alive: bool,
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
        let bytes = fs::read(folder.join(FILE)).unwrap_or_default();
        let none = Self {
            folder,
            bytes: Vec::new(),
            header: Header::default(),
            folders: Vec::new(),
            by_path: HashMap::new(),
            began,
            alive: false,
        };
        let Some((header, folders, by_path)) = parse(&bytes) else { return Ok(none) };
        let found = repo.inner.refname_to_id(&header.reference).map(|oid| oid.to_string());
        let alive = found.is_ok_and(|commit| commit == header.commit);
        Ok(Self { bytes, header, folders, by_path, alive, ..none })
    }

    /// How many folders it knows.
    pub fn len(&self) -> usize {
        self.folders.len()
    }

    /// A folder as it was.
    pub fn folder(&self, path: &[u8]) -> Option<CachedFolder<'_>> {
        parse_folder(&mut &self.bytes[*self.by_path.get(path)? as usize..])
    }

    /// All folders, in the order of a walk.
    pub fn folders(&self) -> impl Iterator<Item = CachedFolder<'_>> {
        self.folders.iter().filter_map(|record| parse_folder(&mut &self.bytes[*record as usize..]))
    }

    /// Whether a change after the capture began would show in the times of this file.
    pub fn settled(&self, stat: &FileStat) -> bool {
        is_settled(stat, self.began)
    }

    /// Where the cache is.
    pub fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }
}

/// Whether a change at `moment` or later would show in the times of this file.
pub(super) fn is_settled(stat: &FileStat, moment: i64) -> bool {
    let margin = if stat.ctime % 1_000_000_000 == 0 { COARSE_MARGIN } else { MARGIN };
    stat.mtime.max(stat.ctime) < moment.saturating_sub(margin)
}

/// The order in which a walk meets folders: each before all that is in it, and nothing else between.
pub(super) fn walk_order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let at = a.iter().zip(b).position(|(a, b)| a != b);
    match at {
        // A slash ends a name, and so comes before every byte that goes on with it.
        Some(at) => (a[at] != b'/').cmp(&(b[at] != b'/')).then(a[at].cmp(&b[at])),
        None => a.len().cmp(&b.len()),
    }
}

/// A cache while it is put together.
pub(super) struct Builder {
    bytes: Vec<u8>,
}

/// What a new cache says of a folder.
pub(super) struct NewFolder<'a> {
    pub path: &'a [u8],
    pub rules: Oid,
    pub tree: Option<Oid>,
    pub flags: u8,
    pub subtrees: u32,
    pub stat: FileStat,
    /// See [`CachedFolder::others`].
    pub others: &'a [(&'a [u8], Other)],
}

impl Builder {
    /// Begins with the header. Folders follow in the order of a walk.
    pub fn new(header: &Header) -> Result<Self> {
        let header = serde_json::to_vec(header).map_err(|error| Error::corrupt(error.to_string()))?;
        let mut bytes = MAGIC.to_vec();
        put_length(&mut bytes, header.len());
        bytes.extend_from_slice(&header);
        Ok(Self { bytes })
    }

    /// Adds a folder and its items, sorted by name.
    pub fn folder<'i>(&mut self, folder: &NewFolder<'_>, items: impl Iterator<Item = CachedItem<'i>> + Clone) {
        let bytes = &mut self.bytes;
        put_length(bytes, folder.path.len());
        bytes.extend_from_slice(folder.path);
        bytes.extend_from_slice(folder.rules.as_bytes());
        bytes.extend_from_slice(folder.tree.unwrap_or_else(Oid::zero).as_bytes());
        bytes.push(folder.flags);
        bytes.extend_from_slice(&folder.subtrees.to_le_bytes());
        for number in [folder.stat.dev, folder.stat.ino] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for time in [folder.stat.mtime, folder.stat.ctime] {
            bytes.extend_from_slice(&time.to_le_bytes());
        }
        put_length(bytes, items.clone().count());
        put_length(bytes, items.clone().map(|item| item.name.len()).sum());
        for item in items.clone() {
            bytes.extend_from_slice(&item.stat.size.to_le_bytes());
            bytes.extend_from_slice(&item.stat.mtime.to_le_bytes());
            bytes.extend_from_slice(&item.stat.ctime.to_le_bytes());
            bytes.extend_from_slice(&item.stat.ino.to_le_bytes());
            bytes.extend_from_slice(&item.stat.mode.to_le_bytes());
            // A file's name has at most 255 bytes.
            bytes.push(u8::try_from(item.name.len()).unwrap_or(u8::MAX));
            bytes.push(item.flags);
            bytes.extend_from_slice(item.oid.as_bytes());
        }
        for item in items {
            bytes.extend_from_slice(item.name);
        }
        put_length(bytes, folder.others.iter().map(|(name, _)| name.len() + 2).sum());
        for (name, what) in folder.others {
            bytes.extend_from_slice(&[u8::try_from(name.len()).unwrap_or(u8::MAX), *what as u8]);
            bytes.extend_from_slice(name);
        }
    }

    /// Replaces the worktree's cache.
    pub fn store(mut self, file: &std::path::Path) -> Result<()> {
        let checksum = crc32fast::hash(&self.bytes);
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        write_atomic_unsynced(file, &self.bytes).map_err(Error::at(file))
    }
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

type Parsed = (Header, Vec<u32>, HashMap<Box<[u8]>, u32>);

fn parse(bytes: &[u8]) -> Option<Parsed> {
    let (body, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut rest = body.strip_prefix(MAGIC.as_slice())?;
    let header = serde_json::from_slice(take_slice(&mut rest)?).ok()?;
    let (mut folders, mut by_path) = (Vec::new(), HashMap::new());
    while !rest.is_empty() {
        let record = u32::try_from(body.len() - rest.len()).ok()?;
        by_path.insert(parse_folder(&mut rest)?.path.into(), record);
        folders.push(record);
    }
    Some((header, folders, by_path))
}

/// Reads a folder's record and goes past it.
fn parse_folder<'a>(rest: &mut &'a [u8]) -> Option<CachedFolder<'a>> {
    let path = take_slice(rest)?;
    let rules = Oid::from_bytes(&take::<20>(rest)?).ok()?;
    let tree = Oid::from_bytes(&take::<20>(rest)?).ok()?;
    let [flags] = take(rest)?;
    let subtrees = u32::from_le_bytes(take(rest)?);
    let (dev, ino) = (u64::from_le_bytes(take(rest)?), u64::from_le_bytes(take(rest)?));
    let (mtime, ctime) = (i64::from_le_bytes(take(rest)?), i64::from_le_bytes(take(rest)?));
    let count = u32::from_le_bytes(take(rest)?);
    let names = u32::from_le_bytes(take(rest)?);
    let (items, after) = rest.split_at_checked(count as usize * ITEM)?;
    let (names, after) = after.split_at_checked(names as usize)?;
    *rest = after;
    let others = take_slice(rest)?;
    let tree = (!tree.is_zero()).then_some(tree);
    Some(CachedFolder { path, rules, tree, flags, subtrees, count, items, names, others, dev, ino, mtime, ctime })
}

fn take_slice<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let (slice, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(slice)
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
        let items = [
            CachedItem { name: b"a\xff\n", stat, oid: Oid::zero(), flags: flag::TRACKED },
            CachedItem { name: b"b", stat, oid: Oid::zero(), flags: flag::SETTLED },
        ];
        let header = Header { reference: "refs/x".to_owned(), ..Header::default() };
        let mut builder = Builder::new(&header).unwrap();
        for path in [b"".as_slice(), b"sub"] {
            let others: &[(&[u8], Other)] = &[(b"target", Other::IgnoredFolder), (b"x.o", Other::IgnoredFile)];
            let folder =
                NewFolder { path, rules: Oid::zero(), tree: None, flags: flag::WANTED, subtrees: 1, stat, others };
            builder.folder(&folder, items.iter().copied());
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cache");
        builder.store(&file).unwrap();
        let bytes = fs::read(&file).unwrap();
        let (read, folders, by_path) = parse(&bytes).unwrap();
        assert_eq!((read.reference.as_str(), folders.len()), ("refs/x", 2));
        assert_eq!(by_path[b"sub".as_slice()], folders[1]);
        let sub = parse_folder(&mut &bytes[folders[1] as usize..]).unwrap();
        assert_eq!((sub.path, sub.flags, sub.subtrees, sub.count), (b"sub".as_slice(), flag::WANTED, 1, 2));
        assert!(sub.others().eq([(b"target".as_slice(), Other::IgnoredFolder), (b"x.o", Other::IgnoredFile)]));
        assert!(sub.items().eq(items));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(parse(&damaged).is_none(), "{at}");
            assert!(parse(&bytes[..at]).is_none(), "{at}");
        }
    }

    #[test]
    fn a_walk_meets_a_folder_before_what_is_in_it() {
        let mut paths: Vec<&[u8]> = vec![b"a-b", b"a/c/d", b"a", b"", b"a/c", b"ab", b"a/b"];
        paths.sort_by(|a, b| walk_order(a, b));
        assert_eq!(paths, [b"".as_slice(), b"a", b"a/b", b"a/c", b"a/c/d", b"a-b", b"ab"]);
    }
}
