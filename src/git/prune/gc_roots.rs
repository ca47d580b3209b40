//! Roots for reachability: everything in a git folder that may refer to an object, found without knowing what each file means.
//!
//! Any 40 hexadecimal digits in any file count as a reference: branches, tags, stashes, notes, `packed-refs`, reflogs, the
//! HEAD of each worktree, `ORIG_HEAD`, `FETCH_HEAD`, merges and rebases in progress. The indexes of all worktrees, with
//! conflicts and resolve-undo, hold ids as raw bytes: there, the ids that are asked about are looked for anywhere.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::Oid;

use crate::git::base::error::{Error, Result};
use crate::git::repo::refs::{KEPT, PREFIX};

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
pub(in crate::git) fn find(common: &Path, asked: &HashSet<Oid>) -> Result<Roots> {
    let mut roots = Roots::default();
    let prefixes = Prefixes::of(asked);
    let mut open = vec![common.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // Another process removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(Error::io(folder, source)),
        };
        for entry in entries {
            let entry = entry.map_err(Error::at(&folder))?;
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type().map_err(Error::at(&path))?;
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
            let size = match fs::metadata(&path) {
                Ok(found) if found.is_file() => found.len(),
                Ok(found) if found.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) => {
                    return Err(Error::Unsupported {
                        what: format!("{} is a link to a folder", path.display()),
                    });
                }
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(Error::io(path, source)),
            };
            if size > MAX_BYTES {
                return Err(Error::Unsupported {
                    what: format!("{} is too large to look through", path.display()),
                });
            }
            let content = match fs::read(&path) {
                Ok(content) => content,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(Error::io(path, source)),
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
        let roots = find(folder.path(), &HashSet::from([oid(1), oid(2)])).unwrap();
        assert_eq!(roots.checkpoints, BTreeSet::from([oid(7), oid(8)]));
        assert_eq!(roots.others, [1, 2, 3, 4, 5, 9, 10].map(oid).into());
    }
}
