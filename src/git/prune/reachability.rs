//! Reachability: which of some objects something still refers to, from everything in a git folder that may be a reference.
//!
//! Any 40 hexadecimal digits in any file count as a reference: branches, tags, stashes, notes, `packed-refs`, reflogs, the
//! HEAD of each worktree, `ORIG_HEAD`, `FETCH_HEAD`, merges and rebases in progress. The indexes of all worktrees, with
//! conflicts and resolve-undo, hold ids as raw bytes: there, the ids that are asked about are looked for anywhere.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid};

use crate::git::base::{At as _, Error, Result, TREE, present};
use crate::git::odb::format::loose_path;
use crate::git::odb::pack::PackIndex;
use crate::git::odb::{Database, Tree, TreeEntry};
use crate::git::repo::refs::{KEPT, PREFIX};

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
                        return Err(Error::Unsupported(format!(
                            "more than {MAX_COMMITS} commits to look at"
                        )));
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
            if pack.holds(oid).at(&self.objects)? {
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

/// Folders of a git folder that hold no references into its object database.
const SKIPPED: [&str; 6] = ["objects", "modules", "lfs", "annex", "hooks", "written"];
/// A larger file is not looked through: then nothing can be said.
const MAX_BYTES: u64 = 256 << 20;

/// Objects that something refers to.
#[derive(Debug, Default)]
pub(super) struct Roots {
    /// From checkpoints' references.
    pub checkpoints: BTreeSet<Oid>,
    /// From anything else. Not every one need be there, or be an object at all.
    pub others: BTreeSet<Oid>,
}

/// Looks through a common git folder. `asked` are the ids that are looked for as raw bytes.
pub(in crate::git) fn find_roots(common: &Path, asked: &HashSet<Oid>) -> Result<Roots> {
    let mut roots = Roots::default();
    let prefixes = Prefixes::of(asked);
    let mut open = vec![common.to_owned()];
    while let Some(folder) = open.pop() {
        // Whatever is not there another process removed meanwhile.
        for entry in present(&folder, fs::read_dir(&folder))?
            .into_iter()
            .flatten()
        {
            let entry = entry.at(&folder)?;
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type().at(&path)?;
            let own = folder.ends_with("recover");
            if kind.is_dir() {
                let quarantine = own && name.as_encoded_bytes().starts_with(b"quarantine");
                if !quarantine && !SKIPPED.iter().any(|skipped| name == *skipped) {
                    open.push(path);
                }
                continue;
            }
            // Of our own files only the journal of a restore is needed; the rest are caches and locks.
            if own && name != "journal.json" {
                continue;
            }
            let refused = |why: &str| Error::Unsupported(format!("{} is {why}", path.display()));
            let is_skipped = SKIPPED.iter().any(|skipped| name == *skipped);
            match present(&path, fs::metadata(&path))? {
                Some(found) if found.is_file() && found.len() > MAX_BYTES => {
                    return Err(refused("too large to search"));
                }
                Some(found) if found.is_file() => {}
                Some(found) if found.is_dir() && !is_skipped => {
                    return Err(refused("a link to a folder"));
                }
                _ => continue,
            }
            let Some(content) = present(&path, fs::read(&path))? else {
                continue;
            };
            look_through(common, &path, &content, &mut roots);
            prefixes.find(&content, asked, &mut roots.others);
        }
    }
    Ok(roots)
}

fn look_through(common: &Path, path: &Path, content: &[u8], roots: &mut Roots) {
    let relative = path.strip_prefix(common).unwrap_or(path);
    let is_checkpoint =
        |name: &[u8]| name.starts_with(PREFIX.as_bytes()) && !name.starts_with(KEPT.as_bytes());
    if is_checkpoint(relative.as_os_str().as_bytes()) {
        hexadecimal(content, &mut roots.checkpoints);
    } else if relative == Path::new("packed-refs") {
        for line in content.split(|byte| *byte == b'\n') {
            let own = line.get(41..).is_some_and(is_checkpoint);
            hexadecimal(
                line,
                if own {
                    &mut roots.checkpoints
                } else {
                    &mut roots.others
                },
            );
        }
    } else {
        hexadecimal(content, &mut roots.others);
    }
}

/// Adds all runs of exactly 40 hexadecimal digits.
fn hexadecimal(content: &[u8], found: &mut BTreeSet<Oid>) {
    for run in content
        .split(|byte| !byte.is_ascii_hexdigit())
        .filter(|run| run.len() == 40)
    {
        found.extend(
            std::str::from_utf8(run)
                .ok()
                .and_then(|hex| Oid::from_str(hex).ok()),
        );
    }
}

/// The first two bytes of ids, so that most places in a file are passed over fast.
struct Prefixes(Vec<bool>);

impl Prefixes {
    fn of(asked: &HashSet<Oid>) -> Self {
        let mut all = vec![false; 1 << 16];
        for oid in asked {
            all[Self::at(oid.as_bytes())] = true;
        }
        Self(all)
    }

    fn at(bytes: &[u8]) -> usize {
        usize::from(bytes[0]) << 8 | usize::from(bytes[1])
    }

    fn find(&self, content: &[u8], asked: &HashSet<Oid>, found: &mut BTreeSet<Oid>) {
        for window in content
            .windows(20)
            .filter(|window| self.0[Self::at(window)])
        {
            found.extend(
                Oid::from_bytes(window)
                    .ok()
                    .filter(|oid| asked.contains(oid)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_as_text_and_as_bytes() {
        let oid = |byte| Oid::from_bytes(&[byte; 20]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        write(
            "index",
            &[b"DIRC".as_slice(), &[9; 20], &[1; 20], &[2; 20]].concat(),
        );
        write(
            "logs/HEAD",
            format!("{} {} a <b>\n", oid(3), oid(4)).as_bytes(),
        );
        write(
            "worktrees/w/rebase-merge/onto",
            format!("{}\n", oid(5)).as_bytes(),
        );
        write("objects/x", format!("{}\n", oid(6)).as_bytes());
        write("recover/index-cache", &[2; 20]);
        write("refs/recover/run/one", format!("{}\n", oid(7)).as_bytes());
        write(
            "packed-refs",
            format!(
                "{} refs/recover/run/two\n{} refs/tags/t\n^{}\n",
                oid(8),
                oid(9),
                oid(10)
            )
            .as_bytes(),
        );
        write("sum", format!("{0}{0}\n", oid(11)).as_bytes());
        let roots = find_roots(folder.path(), &HashSet::from([oid(1), oid(2)])).unwrap();
        assert_eq!(roots.checkpoints, BTreeSet::from([oid(7), oid(8)]));
        assert_eq!(roots.others, [1, 2, 3, 4, 5, 9, 10].map(oid).into());
    }
}
