//! What the last recorded capture saw: for each folder its entries with their metadata and blobs, and its tree.
//!
//! One file a worktree, `$GIT_DIR/recover/index-cache`: the folders in the order of a walk, a header, a checksum. A damaged or
//! foreign file is the same as none. It is not synced, and a small one is written over: losing it costs time only.
//!
//! **When an entry is trusted.** Size, mtime, ctime, inode, device and mode must all be as they were. The ctime notices
//! an mtime that was set back. Two writes within one tick of the file system's clock leave the same times, so the
//! metadata of an entry counts only when its times are older than the moment, by that same clock, at which the capture
//! began to read, by a margin of several ticks; else the file is read again.
//!
//! **When an object is trusted.** The cache names the checkpoint that it was stored with. While that one's reference is
//! there, so are the objects that its trees hold; else each is looked for. Damage that was found (`repo::health`) ends that.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use git2::Oid;
use serde::{Deserialize, Serialize};

use crate::durable::{Root, Sync};
use crate::git::base::{At as _, Error, FileStat, Result, is_settled};
use crate::git::index::user_index::Identity;
use crate::git::repo::repository::Repo;
use crate::model::{IndexExtra, Nested, ObjectId, RepoPath};

const FILE: &str = "index-cache";

/// What holds for the cache as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::git) struct Header {
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

/// The cache of one worktree.
#[derive(Debug)]
pub(in crate::git) struct Cache {
    /// The way to the file.
    own: Root,
    file: PathBuf,
    bytes: Vec<u8>,
    pub header: Header,
    /// Where the folders' records are, in the order of a walk.
    folders: Vec<u32>,
    /// Indices into `folders` by path.
    by_path: HashMap<Box<[u8]>, u32>,
    /// The file system's time when the capture began, nanoseconds.
    began: i64,
    /// Whether the checkpoint that it was stored with is still there, and nothing speaks against its objects.
    pub alive: bool,
}

impl Cache {
    /// Reads the cache and notes the file system's present time. What it says of objects is not believed with `doubted`.
    pub(crate) fn open(repo: &Repo, doubted: bool) -> Result<Self> {
        let began = repo.file_system_time()?;
        Ok(Self {
            began,
            ..Self::open_readonly(repo, doubted)
        })
    }

    /// Reads the cache for a rehearsal, which writes nothing: it cannot know the file system's time, so it cannot make a cache.
    pub(crate) fn open_readonly(repo: &Repo, doubted: bool) -> Self {
        let read = Self::read(repo);
        let found = repo
            .inner
            .refname_to_id(&read.header.reference)
            .map(|oid| oid.to_string());
        let alive = !doubted && found.is_ok_and(|commit| commit == read.header.commit);
        Self { alive, ..read }
    }

    /// Reads the cache for what it says of files. No object is taken for stored, and no time for settled.
    pub(crate) fn read(repo: &Repo) -> Self {
        Self::of_file(repo.own().clone(), repo.own_folder().join(FILE))
    }

    fn of_file(own: Root, file: PathBuf) -> Self {
        let bytes = own.read(&file).unwrap_or_default();
        let (header, folders, by_path, bytes) = match parse(&bytes) {
            Some((header, folders, by_path)) => (header, folders, by_path, bytes),
            None => (Header::default(), Vec::new(), HashMap::new(), Vec::new()),
        };
        Self {
            own,
            file,
            bytes,
            header,
            folders,
            by_path,
            began: i64::MIN,
            alive: false,
        }
    }

    /// How many folders it knows.
    pub(crate) fn len(&self) -> usize {
        self.folders.len()
    }

    /// A folder as it was.
    pub(crate) fn folder(&self, path: &[u8]) -> Option<CachedFolder<'_>> {
        parse_folder(&mut &self.bytes[*self.by_path.get(path)? as usize..])
    }

    /// All folders, in the order of a walk.
    pub(crate) fn folders(&self) -> impl Iterator<Item = CachedFolder<'_>> {
        self.folders
            .iter()
            .filter_map(|record| parse_folder(&mut &self.bytes[*record as usize..]))
    }

    /// Whether a change after the capture began would show in the times of this file.
    pub(crate) fn settled(&self, stat: &FileStat) -> bool {
        is_settled(stat, self.began)
    }

    /// Where the cache is.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The way there.
    pub(crate) fn root(&self) -> &Root {
        &self.own
    }
}

/// This many files are examined to find out whether a cache is of this place.
const LOOKED_AT: usize = 10_000;

impl Repo {
    /// Whether the private repository of a state directory has captured this very folder: at least one file has the inode and
    /// the time of change, to the nanosecond, that the cache has. No archive brings those along, and nobody can set them.
    pub(crate) fn was_captured_privately(root: &Root, state_dir: &Path, workdir: &Path) -> bool {
        let file = crate::git::repo::repository::private_path(state_dir)
            .join(crate::git::repo::repository::OWN)
            .join(FILE);
        let cache = Cache::of_file(root.clone(), file);
        let Ok(root) = crate::git::base::openat::open_root(workdir) else {
            return false;
        };
        let mut left = LOOKED_AT;
        cache.folders().any(|folder| {
            if left == 0
                || folder
                    .path
                    .split(|byte| *byte == b'/')
                    .any(|name| name == b"..")
            {
                return false;
            }
            let Ok(dir) = crate::git::base::openat::open_path(&root, &RepoPath::new(folder.path))
            else {
                return false;
            };
            let items = folder
                .items()
                .take(left)
                .filter(|item| !item.name.contains(&b'/'));
            left = left.saturating_sub(folder.count as usize);
            items.into_iter().any(|item| {
                let found = crate::git::base::openat::stat(&dir, item.name)
                    .ok()
                    .flatten();
                found.is_some_and(|found| {
                    (found.ino, found.ctime) == (item.stat.ino, item.stat.ctime)
                        && found.ctime % 1_000_000_000 != 0
                })
            })
        })
    }
}

/// The order in which a walk meets folders: each before all that is in it, and nothing else between.
pub(in crate::git) fn walk_order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let at = a.iter().zip(b).position(|(a, b)| a != b);
    match at {
        // A slash ends a name, and so comes before every byte that goes on with it.
        Some(at) => (a[at] != b'/')
            .cmp(&(b[at] != b'/'))
            .then(a[at].cmp(&b[at])),
        None => a.len().cmp(&b.len()),
    }
}

const MAGIC: &[u8; 8] = b"RCVCACH5";
/// Bytes of an item beside its name.
const ITEM: usize = 58;

/// Bits of an item or folder.
pub(in crate::git) mod flag {
    /// The path is in the user's index.
    pub(crate) const TRACKED: u8 = 1;
    /// The metadata can be trusted.
    pub(crate) const SETTLED: u8 = 2;
    /// The rules took it, not a request for this one path.
    pub(crate) const BY_RULES: u8 = 4;
    /// The folder is ignored, and with it all that is not tracked or included.
    pub(crate) const IGNORED: u8 = 8;
    /// The folder counts by itself, not only for what is in it.
    pub(crate) const WANTED: u8 = 16;
    /// The cached tree of its folder has the file with this content and git file mode. Not stored.
    pub(crate) const SAME: u8 = 32;
    /// Something in the folder is no part of the capture: it is not empty, and cannot stand for itself. Not stored.
    pub(crate) const HIDDEN: u8 = 64;
    /// The folder is the root of a repository of its own. Not stored.
    pub(crate) const NESTED: u8 = 128;
    /// The folder is not all that the cache says of it. Not stored.
    pub(crate) const CHANGED: u8 = 4;
    /// The folder holds nothing else than its items, its folders and what the rules left out.
    pub(crate) const COMPLETE: u8 = 1;
}

/// An entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) struct CachedEntry<'a> {
    pub name: &'a [u8],
    pub stat: FileStat,
    pub oid: Oid,
    pub flags: u8,
}

/// A folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) struct CachedFolder<'a> {
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

/// What a name in a folder represents that is no item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) enum Other {
    /// The ignore rules left a file out.
    IgnoredFile,
    /// The ignore rules left a folder out.
    IgnoredFolder,
    /// A folder that the walk went into.
    Folder,
}

impl<'a> CachedFolder<'a> {
    /// Whether a folder with these flags stands in the cache with the same ones.
    pub(crate) fn is_as(&self, flags: u8) -> bool {
        self.flags & (flag::IGNORED | flag::WANTED) == flags & (flag::IGNORED | flag::WANTED)
    }

    /// Names that are no items, sorted.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&'a [u8], Other)> + use<'a> {
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
    pub(crate) fn holds_the_same(&self, stat: &FileStat) -> bool {
        self.flags & (flag::COMPLETE | flag::SETTLED) == flag::COMPLETE | flag::SETTLED
            && (stat.mtime, stat.ctime, stat.ino, stat.dev)
                == (self.mtime, self.ctime, self.ino, self.dev)
    }

    /// Whether it has an item or an ignored file of this name.
    pub(crate) fn has_file(&self, name: &[u8]) -> bool {
        let is = |known: &[u8]| known == name;
        self.items()
            .take_while(|item| item.name <= name)
            .any(|item| is(item.name))
            || self
                .others()
                .any(|(other, what)| is(other) && what == Other::IgnoredFile)
    }

    /// Its items, sorted by name.
    pub(crate) fn items(&self) -> impl Iterator<Item = CachedEntry<'a>> + use<'a> {
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
            Some(CachedEntry {
                name,
                stat,
                oid,
                flags,
            })
        })
    }
}

/// A cache while it is put together.
pub(in crate::git) struct Builder {
    bytes: Vec<u8>,
}

/// What a new cache says of a folder.
pub(in crate::git) struct NewFolder<'a> {
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
    /// Begins one. Folders follow in the order of a walk.
    pub(crate) fn new() -> Self {
        Self {
            bytes: MAGIC.to_vec(),
        }
    }

    /// Adds a folder and its items, sorted by name.
    pub(crate) fn folder<'i>(
        &mut self,
        folder: &NewFolder<'_>,
        items: impl Iterator<Item = CachedEntry<'i>> + Clone,
    ) {
        let bytes = &mut self.bytes;
        put_length(bytes, folder.path.len());
        bytes.extend_from_slice(folder.path);
        bytes.extend_from_slice(folder.rules.as_bytes());
        bytes.extend_from_slice(folder.tree.unwrap_or(Oid::ZERO_SHA1).as_bytes());
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
        put_length(
            bytes,
            folder.others.iter().map(|(name, _)| name.len() + 2).sum(),
        );
        for (name, what) in folder.others {
            bytes.extend_from_slice(&[u8::try_from(name.len()).unwrap_or(u8::MAX), *what as u8]);
            bytes.extend_from_slice(name);
        }
    }

    /// Ends with the header, and replaces the worktree's cache.
    pub(crate) fn store(
        mut self,
        header: &Header,
        root: &Root,
        file: &std::path::Path,
    ) -> Result<()> {
        let header =
            serde_json::to_vec(header).map_err(|error| Error::corrupt(error.to_string()))?;
        self.bytes.extend_from_slice(&header);
        put_length(&mut self.bytes, header.len());
        let checksum = crc32fast::hash(&self.bytes);
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        root.write(file, &self.bytes, Sync::Nothing).at(file)
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
    let (rest, length) = body.split_last_chunk::<4>()?;
    let (folders_end, header) = rest.split_at_checked(
        rest.len()
            .checked_sub(u32::from_le_bytes(*length) as usize)?,
    )?;
    let header = serde_json::from_slice(header).ok()?;
    let mut rest = folders_end.strip_prefix(MAGIC.as_slice())?;
    let (mut folders, mut by_path) = (Vec::new(), HashMap::new());
    while !rest.is_empty() {
        let record = u32::try_from(folders_end.len() - rest.len()).ok()?;
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
    let (dev, ino) = (
        u64::from_le_bytes(take(rest)?),
        u64::from_le_bytes(take(rest)?),
    );
    let (mtime, ctime) = (
        i64::from_le_bytes(take(rest)?),
        i64::from_le_bytes(take(rest)?),
    );
    let count = u32::from_le_bytes(take(rest)?);
    let names = u32::from_le_bytes(take(rest)?);
    let (items, after) = rest.split_at_checked(count as usize * ITEM)?;
    let (names, after) = after.split_at_checked(names as usize)?;
    *rest = after;
    let others = take_slice(rest)?;
    let tree = (!tree.is_zero()).then_some(tree);
    Some(CachedFolder {
        path,
        rules,
        tree,
        flags,
        subtrees,
        count,
        items,
        names,
        others,
        dev,
        ino,
        mtime,
        ctime,
    })
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
    use git2::Oid;

    use super::*;

    #[test]
    fn a_cache_is_read_back_and_damage_is_noticed() {
        let stat = FileStat {
            size: 3,
            mtime: -5,
            ctime: 7,
            ino: 8,
            dev: 9,
            mode: 0o100_644,
        };
        let items = [
            CachedEntry {
                name: b"a\xff\n",
                stat,
                oid: Oid::ZERO_SHA1,
                flags: flag::TRACKED,
            },
            CachedEntry {
                name: b"b",
                stat,
                oid: Oid::ZERO_SHA1,
                flags: flag::SETTLED,
            },
        ];
        let header = Header {
            reference: "refs/x".to_owned(),
            ..Header::default()
        };
        let mut builder = Builder::new();
        for path in [b"".as_slice(), b"sub"] {
            let others: &[(&[u8], Other)] = &[
                (b"target", Other::IgnoredFolder),
                (b"x.o", Other::IgnoredFile),
            ];
            let folder = NewFolder {
                path,
                rules: Oid::ZERO_SHA1,
                tree: None,
                flags: flag::WANTED,
                subtrees: 1,
                stat,
                others,
            };
            builder.folder(&folder, items.iter().copied());
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cache");
        builder
            .store(&header, &Root::own(folder.path()), &file)
            .unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let (read, folders, by_path) = parse(&bytes).unwrap();
        assert_eq!((read.reference.as_str(), folders.len()), ("refs/x", 2));
        assert_eq!(by_path[b"sub".as_slice()], folders[1]);
        let sub = parse_folder(&mut &bytes[folders[1] as usize..]).unwrap();
        assert_eq!(
            (sub.path, sub.flags, sub.subtrees, sub.count),
            (b"sub".as_slice(), flag::WANTED, 1, 2)
        );
        assert!(sub.others().eq([
            (b"target".as_slice(), Other::IgnoredFolder),
            (b"x.o", Other::IgnoredFile)
        ]));
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
        assert_eq!(
            paths,
            [
                b"".as_slice(),
                b"a",
                b"a/b",
                b"a/c",
                b"a/c/d",
                b"a-b",
                b"ab"
            ]
        );
    }
}
