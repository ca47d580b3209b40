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
//! there, so are the objects that its trees hold; else each is looked for. Damage that was found (`corruption_marker`) ends that.

mod record;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::durable::Root;
use crate::git::base::error::Result;
use crate::git::base::file_time::is_settled;
use crate::git::base::openat::FileStat;
use crate::git::index::user_index::Identity;
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;
use crate::model::manifest::{IndexExtra, Nested};
use crate::model::path::RepoPath;

pub(in crate::git) use record::{Builder, CachedEntry, CachedFolder, NewFolder, Other, flag};
use record::{parse, parse_folder};

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
            ..Self::of_objects(repo, doubted)
        })
    }

    /// Reads the cache for a rehearsal, which writes nothing: it cannot know the file system's time, so it cannot make a cache.
    pub(crate) fn open_readonly(repo: &Repo, doubted: bool) -> Self {
        Self::of_objects(repo, doubted)
    }

    fn of_objects(repo: &Repo, doubted: bool) -> Self {
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

/// So many files are examined to find out whether a cache is of this place.
const LOOKED_AT: usize = 10_000;

/// Whether the private repository of a state directory has captured this very folder: at least one file has the inode and
/// the time of change, to the nanosecond, that the cache has. No archive brings those along, and nobody can set them.
pub(crate) fn saw_files_of(root: &Root, state_dir: &Path, workdir: &Path) -> bool {
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
