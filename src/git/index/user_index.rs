//! The user's index, read only. It is opened as a file, so that a held `index.lock` is no obstacle.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::unix::fs::FileExt as _;
use std::{fs, io};

use git2::Oid;
use serde::{Deserialize, Serialize};

use super::index_file::{EntryStat, IndexFile};
use crate::git::base::{Error, FileStat, GITLINK, Result, openat, present};
use crate::git::odb::trees::{self, Flat, Sink};
use crate::git::repo::repository::Repo;
use crate::model::{IndexExtra, ObjectId, RepoPath};

/// Which index file it is: while it stays the same, so does all that the index says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::git) struct Identity {
    stat: FileStat,
    /// The checksum at its end.
    trailer: Vec<u8>,
}

impl Identity {
    /// Of the index as it is now; `None` where there is none.
    pub(crate) fn of(repo: &Repo) -> Result<Option<Self>> {
        let path = repo.git_dir().join("index");
        if repo.is_private() {
            return Ok(None);
        }
        present(
            &path,
            fs::File::open(&path).and_then(|file| Self::of_file(&file)),
        )
    }

    /// Of an index that is open.
    pub(crate) fn of_file(file: &fs::File) -> io::Result<Self> {
        let stat = openat::stat_open(file)?;
        let from = stat.size.saturating_sub(20);
        let mut trailer = vec![0; usize::try_from(stat.size - from).unwrap_or_default()];
        file.read_exact_at(&mut trailer, from)?;
        Ok(Self { stat, trailer })
    }

    /// When the index was last written, in nanoseconds.
    pub(crate) fn mtime(&self) -> i64 {
        self.stat.mtime
    }
}

/// What the user's index says of a path.
#[derive(Clone, Copy, Debug)]
pub(in crate::git) struct Tracked {
    /// Where its path is.
    start: u32,
    length: u32,
    pub mode: u32,
    pub oid: Oid,
    in_tree: bool,
    stage: u8,
    /// The file's metadata when git last saw that it had this content.
    pub stat: Option<EntryStat>,
}

/// What the user's index holds.
#[derive(Debug, Default)]
pub(in crate::git) struct UserIndex {
    /// Which file it was read from; `None` if there is none.
    pub identity: Option<Identity>,
    names: Vec<u8>,
    /// Every path once, sorted, by the stage that represents it.
    entries: Vec<Tracked>,
    /// For each folder that holds an entry, itself or deeper, the entries directly in it.
    folders: HashMap<Vec<u8>, Vec<u32>>,
    /// What a tree cannot say.
    pub extras: Vec<IndexExtra>,
}

impl UserIndex {
    /// Reads the index; a split or sparse one in full. One with unknown extensions is [`Error::Unsupported`].
    pub(crate) fn read(repo: &Repo) -> Result<Self> {
        if repo.is_private() {
            return Ok(Self::default());
        }
        let path = repo.git_dir().join("index");
        let mut identity = Identity::of(repo)?;
        // git may write it anew meanwhile: what was read must be what the identity is of.
        for _ in 0..3 {
            let Some(file) = IndexFile::read(repo, &path)? else {
                return Ok(Self::default());
            };
            let before = std::mem::replace(&mut identity, Identity::of(repo)?);
            if let Some(same) = identity.as_ref().filter(|_| before == identity) {
                return Ok(Self {
                    identity: Some(same.clone()),
                    ..Self::of_file(&file)
                });
            }
        }
        Err(Error::Locked {
            file: path,
            holder: "another git process, which writes it again and again".to_owned(),
        })
    }

    fn of_file(file: &IndexFile) -> Self {
        let mut result = Self::default();
        // A conflicted path stands in the tree as ours, else theirs, else the base.
        let rank = |stage: u8| [3, 0, 2, 1][usize::from(stage & 3)];
        for entry in file.entries() {
            let usual = entry.stage == 0
                && !entry.intent_to_add
                && !entry.assume_unchanged
                && !entry.skip_worktree;
            if !usual {
                result.extras.push(entry.extra());
            }
            let mut tracked = Tracked {
                start: position(result.names.len()),
                length: position(entry.path.len()),
                mode: entry.mode,
                oid: entry.oid,
                in_tree: !entry.intent_to_add,
                stage: entry.stage,
                stat: usual.then_some(entry.stat),
            };
            match result.entries.last_mut() {
                // The entries of one path stand side by side.
                Some(last) if path_of(&result.names, last) == entry.path => {
                    if rank(entry.stage) > rank(last.stage) {
                        (tracked.start, tracked.length) = (last.start, last.length);
                        *last = tracked;
                    }
                }
                _ => {
                    result.names.extend_from_slice(entry.path);
                    result.entries.push(tracked);
                }
            }
        }
        result.index_folders();
        result.keep_hidden_files();
        result
    }

    /// Beside a conflict in a folder the index may hold a file of the folder's name, for which a tree has no place.
    fn keep_hidden_files(&mut self) {
        let conflicts = self.extras.iter().filter(|extra| extra.stage > 0);
        let folders: BTreeSet<RepoPath> = conflicts
            .flat_map(|extra| extra.path.ancestors().collect::<Vec<_>>())
            .collect();
        for path in folders {
            let found = self
                .entries
                .binary_search_by(|entry| path_of(&self.names, entry).cmp(path.as_bytes()));
            let Some(entry) = found
                .ok()
                .map(|at| self.entries[at])
                .filter(|entry| entry.stat.is_some())
            else {
                continue;
            };
            let oid = ObjectId(entry.oid.to_string());
            self.extras
                .push(IndexExtra::unmarked(&path, entry.mode, oid));
        }
    }

    fn index_folders(&mut self) {
        let mut last: Option<(&[u8], Vec<u32>)> = None;
        for (at, entry) in self.entries.iter().enumerate() {
            let folder = folder_of(path_of(&self.names, entry));
            match &mut last {
                Some((known, inside)) if *known == folder => inside.push(position(at)),
                _ => {
                    if let Some((known, inside)) = last.replace((folder, vec![position(at)])) {
                        self.folders
                            .entry(known.to_vec())
                            .or_default()
                            .extend(inside);
                    }
                    // Those above hold it too, all up to one that is known already.
                    let mut above = folder;
                    while !above.is_empty() {
                        above = folder_of(above);
                        if self.folders.contains_key(above) {
                            break;
                        }
                        self.folders.insert(above.to_vec(), Vec::new());
                    }
                }
            }
        }
        if let Some((known, inside)) = last {
            self.folders
                .entry(known.to_vec())
                .or_default()
                .extend(inside);
        }
    }

    /// How many paths it holds.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries directly in a folder.
    pub(crate) fn folder(&self, folder: &[u8]) -> Inside<'_> {
        Inside {
            index: self,
            entries: self.folders.get(folder).map_or(&[], Vec::as_slice),
        }
    }

    /// Every folder that holds an entry, itself or deeper, with the entries directly in it.
    pub(crate) fn folders(&self) -> impl Iterator<Item = (&[u8], Inside<'_>)> {
        self.folders.iter().map(|(path, entries)| {
            (
                path.as_slice(),
                Inside {
                    index: self,
                    entries,
                },
            )
        })
    }

    /// Whether something below the folder is tracked.
    pub(crate) fn has_below(&self, folder: &[u8]) -> bool {
        self.folders.contains_key(folder)
    }

    /// Whether a path is tracked.
    pub(crate) fn has(&self, path: &[u8]) -> bool {
        self.entries
            .binary_search_by(|entry| path_of(&self.names, entry).cmp(path))
            .is_ok()
    }

    /// The index's tree without the blobs that are `lost`, handed to `sink`; `None` without an index.
    pub(crate) fn tree(&self, lost: &HashSet<Oid>, sink: Sink<'_>) -> Result<Option<Oid>> {
        if self.identity.is_none() {
            return Ok(None);
        }
        let in_tree = self
            .entries
            .iter()
            .filter(|entry| entry.in_tree && !lost.contains(&entry.oid));
        let paths: Vec<_> = in_tree
            .map(|entry| (path_of(&self.names, entry), entry.mode, entry.oid))
            .collect();
        trees::build(&paths, sink).map(Some)
    }

    /// The blobs of the index's tree, with their paths.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = (&[u8], Oid)> {
        let blobs = self
            .entries
            .iter()
            .filter(|entry| entry.in_tree && entry.mode != GITLINK);
        blobs.map(|entry| (path_of(&self.names, entry), entry.oid))
    }

    /// The entries of the index's tree.
    pub(crate) fn flat(&self) -> Flat {
        let in_tree = self.entries.iter().filter(|entry| entry.in_tree);
        in_tree
            .map(|entry| {
                (
                    RepoPath::new(path_of(&self.names, entry)),
                    (entry.mode, entry.oid),
                )
            })
            .collect()
    }

    /// The tracked repositories inside: submodules.
    pub(crate) fn gitlinks(&self) -> impl Iterator<Item = (&[u8], Oid)> {
        let links = self.entries.iter().filter(|entry| entry.mode == GITLINK);
        links.map(|entry| (path_of(&self.names, entry), entry.oid))
    }

    /// Tracked files whose name is `name`.
    pub(crate) fn named(&self, name: &[u8]) -> impl Iterator<Item = &[u8]> {
        let paths = self.entries.iter().map(|entry| path_of(&self.names, entry));
        paths.filter(move |path| {
            path.strip_suffix(name)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with(b"/"))
        })
    }
}

/// The entries directly in one folder.
#[derive(Clone, Copy, Debug)]
pub(in crate::git) struct Inside<'a> {
    index: &'a UserIndex,
    entries: &'a [u32],
}

impl<'a> Inside<'a> {
    /// The entry of a name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&'a Tracked> {
        self.entries
            .binary_search_by(|at| self.name(*at).cmp(name))
            .ok()
            .map(|at| self.entry(self.entries[at]))
    }

    /// Names and git file modes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a [u8], u32)> {
        self.entries
            .iter()
            .map(|at| (self.name(*at), self.entry(*at).mode))
    }

    fn entry(&self, at: u32) -> &'a Tracked {
        &self.index.entries[at as usize]
    }

    fn name(&self, at: u32) -> &'a [u8] {
        let path = path_of(&self.index.names, self.entry(at));
        &path[path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |slash| slash + 1)..]
    }
}

fn path_of<'a>(names: &'a [u8], entry: &Tracked) -> &'a [u8] {
    &names[entry.start as usize..(entry.start + entry.length) as usize]
}

fn folder_of(path: &[u8]) -> &[u8] {
    path.iter()
        .rposition(|byte| *byte == b'/')
        .map_or(&[], |slash| &path[..slash])
}

/// An index over 4 GiB cannot be read: git's own format counts with 32 bits.
fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
