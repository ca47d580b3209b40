//! Reachability: which of some objects something still refers to.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid};

use crate::git::base::error::{Error, Result};
use crate::git::base::modes::TREE;
use crate::git::odb::database::Database;
use crate::git::odb::format::loose_path;
use crate::git::odb::trees::{Tree, TreeEntry};

/// More commits are not examined: the objects are left to `git gc`.
pub(super) const MAX_COMMITS: usize = 50_000;

const GITLINK: u32 = 0o160_000;

/// Walks everything that could refer to some objects, none of which was there before a known moment.
///
/// Whatever was there before it can refer to none of them, and neither can what that refers to.
pub(in crate::git) struct Walk<'w> {
    pub database: &'w Database<'w>,
    /// The objects in question.
    pub asked: &'w HashSet<Oid>,
    /// A commit that was there before, with all that it refers to.
    pub base: Option<Oid>,
    pub older: Older,
    pub seen: HashSet<Oid>,
    pub commits: usize,
}

impl Walk<'_> {
    /// Adds those that the roots need to `needed`. A root that is not there needs nothing; anything else that is missing
    /// or damaged is an error, and so are more than [`MAX_COMMITS`] commits.
    pub(super) fn needed(
        &mut self,
        roots: &BTreeSet<Oid>,
        needed: &mut BTreeSet<Oid>,
    ) -> Result<()> {
        let mut open: Vec<Oid> = roots
            .iter()
            .copied()
            .filter(|oid| self.database.has(*oid))
            .collect();
        while let Some(oid) = open.pop() {
            if self.asked.contains(&oid) {
                needed.insert(oid);
            }
            if self.base == Some(oid) || !self.seen.insert(oid) || self.older.holds(oid)? {
                continue;
            }
            let object = self.database.read(oid)?;
            match object.kind {
                ObjectType::Tree => {
                    for TreeEntry { mode, oid, .. } in Tree::of(oid, object)?.entries() {
                        if mode == TREE {
                            open.push(oid);
                        } else if mode & 0o170_000 != GITLINK && self.asked.contains(&oid) {
                            needed.insert(oid);
                        }
                    }
                }
                ObjectType::Commit | ObjectType::Tag => {
                    self.commits += 1;
                    if self.commits > MAX_COMMITS {
                        return Err(Error::Unsupported {
                            what: format!("more than {MAX_COMMITS} commits to look at"),
                        });
                    }
                    open.extend(targets(&object.data)?);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What a commit or tag refers to: tree and parents, or an object.
fn targets(data: &[u8]) -> Result<Vec<Oid>> {
    let mut targets = Vec::new();
    for line in data
        .split(|byte| *byte == b'\n')
        .take_while(|line| !line.is_empty())
    {
        let Some(space) = line.iter().position(|byte| *byte == b' ') else {
            continue;
        };
        if matches!(&line[..space], b"tree" | b"parent" | b"object") {
            let oid = std::str::from_utf8(&line[space + 1..])
                .ok()
                .and_then(|hex| Oid::from_str(hex).ok());
            targets.push(oid.ok_or_else(|| Error::corrupt("a commit or tag that cannot be read"))?);
        }
    }
    Ok(targets)
}

/// The objects that were in a folder of objects before some moment.
///
/// The time of the last change of a file is asked for, which nobody can set back and which is new after every `git gc`.
pub(super) struct Older {
    objects: PathBuf,
    /// In nanoseconds since the epoch.
    before: u64,
    /// Indexes of packs that were there before.
    packs: Vec<PackIndex>,
}

impl Older {
    pub(super) fn open(objects: &Path, before: u64) -> Self {
        let mut packs = Vec::new();
        for entry in fs::read_dir(objects.join("pack"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let index = entry.path();
            let old = |path: &Path| fs::metadata(path).is_ok_and(|file| is_before(&file, before));
            if index.extension().is_some_and(|end| end == "idx")
                && old(&index)
                && old(&index.with_extension("pack"))
            {
                // One that cannot be read says nothing; its objects are then examined.
                packs.extend(PackIndex::open(&index).ok());
            }
        }
        Self {
            objects: objects.to_owned(),
            before,
            packs,
        }
    }

    fn holds(&self, oid: Oid) -> Result<bool> {
        for pack in &self.packs {
            if pack.holds(oid).map_err(Error::at(&self.objects))? {
                return Ok(true);
            }
        }
        Ok(fs::metadata(loose_path(&self.objects, oid))
            .is_ok_and(|file| is_before(&file, self.before)))
    }
}

fn is_before(file: &fs::Metadata, before: u64) -> bool {
    let changed = i128::from(file.ctime()) * 1_000_000_000 + i128::from(file.ctime_nsec());
    // Clocks of files may lag a little behind.
    changed + 1_000_000_000 < i128::from(before)
}

/// The ids of a pack, from its index of version 2.
pub(super) struct PackIndex {
    file: File,
    fan_out: Vec<u32>,
}

impl PackIndex {
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let mut head = vec![0; 8 + 1024];
        file.read_exact_at(&mut head, 0)?;
        if head[..8] != *b"\xfftOc\0\0\0\x02" {
            return Err(std::io::Error::other("not an index of version 2"));
        }
        let word = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |word, byte| word << 8 | u32::from(*byte))
        };
        Ok(Self {
            file,
            fan_out: head[8..].chunks(4).map(word).collect(),
        })
    }

    /// All of them, sorted.
    pub(super) fn ids(&self) -> std::io::Result<Vec<Oid>> {
        let mut bytes = vec![0; 20 * self.fan_out[255] as usize];
        self.file.read_exact_at(&mut bytes, 8 + 1024)?;
        bytes
            .chunks(20)
            .map(|id| Oid::from_bytes(id).map_err(std::io::Error::other))
            .collect()
    }

    fn holds(&self, oid: Oid) -> std::io::Result<bool> {
        let first = usize::from(oid.as_bytes()[0]);
        let (mut low, mut high) = (
            if first == 0 {
                0
            } else {
                self.fan_out[first - 1]
            },
            self.fan_out[first],
        );
        while low < high {
            let middle = low + (high - low) / 2;
            let mut id = [0; 20];
            self.file
                .read_exact_at(&mut id, 8 + 1024 + 20 * u64::from(middle))?;
            match oid.as_bytes().cmp(&id[..]) {
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Less => high = middle,
                std::cmp::Ordering::Greater => low = middle + 1,
            }
        }
        Ok(false)
    }
}
