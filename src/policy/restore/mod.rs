//! What a restore writes and deletes, and which paths it may touch.
//!
//! Only paths that the safety capture (`now`) holds are ever deleted or overwritten. What one side did not capture, what
//! either side left out as ignored and what lies in a nested repository is kept and listed.

mod plan;

pub use plan::{PlanInput, plan};

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use crate::model::path::Blocked;
use crate::model::{Entry, PathReason, RepoPath};
use plan::{IN_PLACE_OF_FOLDER, reason};

/// What the run last wrote to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// Nothing is known: no change of this path is taken for a hand edit.
    Unknown,
    /// The path was not there.
    Absent,
    /// This.
    Present(Entry),
    /// Something else than what is there now, whatever that is.
    Another,
}

/// What becomes of paths that a person edited since the run last wrote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edits {
    /// The restore is refused: the caller stops when `hand_edits` is not empty.
    #[default]
    Refuse,
    /// They stay as they are and are listed in `kept`.
    Keep,
    /// They are restored over; the safety checkpoint has them.
    Discard,
}

/// Why the file that this program's own output goes to is kept.
pub(crate) const OUTPUT: &str = "recover's own output goes to it";

/// Why a path is kept that a person edited.
pub(crate) const EDITED_BY_HAND: &str = "edited by hand";

/// A change of one path: from what is there now to what shall be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedWrite {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// What is there now; `None` if nothing is.
    pub from: Option<Entry>,
    /// What shall be there; a file or a symlink.
    pub entry: Entry,
}

/// The removal of a file or symlink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedDelete {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// What is there now.
    pub from: Entry,
}

/// New permission bits of a file or folder whose content stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedMode {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// Permission bits now.
    pub from: u32,
    /// Permission bits wanted.
    pub mode: u32,
}

/// A folder to make or remove, with its permission bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedDir {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// Permission bits.
    pub mode: u32,
}

/// Everything a restore does, in the order in which it is done: lend rights, delete, remove folders (deepest first), make
/// folders (outermost first), write, modes. All lists are sorted by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePlan {
    /// Folders whose owner lacks rights, and has them until the restore is done. The work tree's root may be among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lend: Vec<PlannedMode>,
    /// Files and symlinks to delete.
    pub delete: Vec<PlannedDelete>,
    /// Folders to remove, if they are empty by then.
    pub remove_dirs: Vec<PlannedDir>,
    /// Folders to make.
    pub make_dirs: Vec<PlannedDir>,
    /// Files and symlinks to write.
    pub write: Vec<PlannedWrite>,
    /// Files and folders whose permissions change.
    pub set_mode: Vec<PlannedMode>,
    /// What is left as it is on purpose.
    pub kept: Vec<PathReason>,
    /// Those of them that are unlike the target and could not be replaced, as they could not be captured first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<PathReason>,
    /// Paths that a user edited since the run last wrote them.
    pub hand_edits: Vec<RepoPath>,
    /// What stands in the way; a plan with conflicts must not be carried out.
    pub conflicts: Vec<PathReason>,
}

impl RestorePlan {
    /// Whether nothing would be touched.
    pub fn is_empty(&self) -> bool {
        self.delete.is_empty()
            && self.remove_dirs.is_empty()
            && self.make_dirs.is_empty()
            && self.write.is_empty()
            && self.set_mode.is_empty()
    }

    /// What is there now of every path that is overwritten or deleted.
    pub fn overwritten(&self) -> impl Iterator<Item = (&RepoPath, &Entry)> {
        let deleted = self
            .delete
            .iter()
            .map(|delete| (&delete.path, &delete.from));
        deleted.chain(
            self.write
                .iter()
                .filter_map(|write| Some((&write.path, write.from.as_ref()?))),
        )
    }

    /// Every path that it touches.
    pub fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.names()
            .chain(self.set_mode.iter().map(|set| &set.path))
    }

    /// Every path that comes, goes or is replaced.
    fn names(&self) -> impl Iterator<Item = &RepoPath> {
        let folders = self.remove_dirs.iter().chain(&self.make_dirs);
        folders
            .map(|dir| &dir.path)
            .chain(self.delete.iter().map(|delete| &delete.path))
            .chain(self.write.iter().map(|write| &write.path))
    }

    /// Every path that it touches, and whether a name changes: else it is only its mode.
    pub fn changes(&self) -> BTreeMap<&RepoPath, bool> {
        let modes = self.set_mode.iter().map(|set| (&set.path, false));
        modes.chain(self.names().map(|path| (path, true))).collect()
    }

    /// Leaves what was not captured where the target has a folder: it is no conflict then, as nothing below it is planned.
    pub fn leave_in_place_of_folders(&mut self) {
        let stays = |one: &PathReason| one.reason.starts_with(IN_PLACE_OF_FOLDER);
        self.conflicts.retain(|one| !stays(one));
    }

    /// Takes paths out that the system does not let be replaced, with all that depends on them: folders that hold them and
    /// were to go, and what was to be put where they are. Returns all of these, sorted.
    pub fn leave_blocked(&mut self, mut blocked: BTreeMap<RepoPath, Blocked>) -> Vec<PathReason> {
        if blocked.is_empty() {
            return Vec::new();
        }
        let going: BTreeSet<&RepoPath> = self.remove_dirs.iter().map(|dir| &dir.path).collect();
        let deleted: BTreeSet<&RepoPath> = self.delete.iter().map(|delete| &delete.path).collect();
        let staying: Vec<(RepoPath, Blocked)> = blocked
            .iter()
            .filter(|(path, _)| deleted.contains(path) || going.contains(path))
            .flat_map(|(path, why)| {
                path.ancestors()
                    .map(|folder| (folder, *why))
                    .collect::<Vec<_>>()
            })
            .filter(|(folder, _)| going.contains(folder))
            .collect();
        for (folder, why) in staying {
            blocked.entry(folder).or_insert(why);
        }
        let missing: BTreeSet<&RepoPath> = self.make_dirs.iter().map(|dir| &dir.path).collect();
        let unmade = |folder: &RepoPath| {
            blocked
                .get(folder)
                .filter(|_| missing.contains(folder))
                .copied()
        };
        let below: Vec<(RepoPath, Blocked)> = self
            .paths()
            .filter(|path| !blocked.contains_key(path))
            .filter_map(|path| {
                Some((
                    path.clone(),
                    path.ancestors().find_map(|folder| unmade(&folder))?,
                ))
            })
            .collect();
        blocked.extend(below);
        let stays = |path: &RepoPath| !blocked.contains_key(path);
        self.delete.retain(|delete| stays(&delete.path));
        self.remove_dirs.retain(|dir| stays(&dir.path));
        self.make_dirs.retain(|dir| stays(&dir.path));
        self.write.retain(|write| stays(&write.path));
        self.set_mode.retain(|set| stays(&set.path));
        blocked
            .into_iter()
            .map(|(path, why)| reason(&path, why.as_str()))
            .collect()
    }

    /// Lends rights of folders, as they are now, as far as something is changed in them; each ends as the plan says.
    pub fn lend(&mut self, folders: BTreeMap<RepoPath, u32>) {
        if folders.is_empty() {
            return;
        }
        let mut needed: BTreeSet<RepoPath> = self.paths().flat_map(RepoPath::ancestors).collect();
        needed.extend(self.remove_dirs.iter().map(|dir| dir.path.clone()));
        needed.insert(RepoPath::default());
        let wanted = |path: &RepoPath| {
            self.set_mode
                .iter()
                .find(|set| set.path == *path)
                .map(|set| set.mode)
        };
        let lent = folders
            .into_iter()
            .filter(|(path, _)| needed.contains(path));
        let lent = lent
            .map(|(path, from)| PlannedMode {
                mode: wanted(&path).unwrap_or(from),
                from,
                path,
            })
            .collect();
        self.lend = lent;
    }

    /// The plan that takes this one back.
    #[must_use]
    pub fn invert(&self) -> Self {
        let mut inverse = Self::default();
        for write in &self.write {
            match &write.from {
                Some(from) => inverse.write.push(PlannedWrite {
                    path: write.path.clone(),
                    from: Some(write.entry.clone()),
                    entry: from.clone(),
                }),
                None => inverse.delete.push(PlannedDelete {
                    path: write.path.clone(),
                    from: write.entry.clone(),
                }),
            }
        }
        let deleted = self.delete.iter();
        inverse.write.extend(deleted.map(|delete| PlannedWrite {
            path: delete.path.clone(),
            from: None,
            entry: delete.from.clone(),
        }));
        inverse.write.sort_by(|a, b| a.path.cmp(&b.path));
        inverse.make_dirs.clone_from(&self.remove_dirs);
        inverse.remove_dirs.clone_from(&self.make_dirs);
        let back = |set: &PlannedMode| PlannedMode {
            path: set.path.clone(),
            from: set.mode,
            mode: set.from,
        };
        inverse.set_mode = self.set_mode.iter().map(back).collect();
        inverse.lend = self.lend.iter().map(back).collect();
        inverse
    }
}

/// All paths, or those that match one of some globs. `*` does not cross `/`; a glob also selects all below what it matches.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    globs: Option<GlobSet>,
}

impl Selection {
    /// Every path.
    pub fn all() -> Self {
        Self::default()
    }

    /// Paths that match one of the globs; every path if there is none.
    pub fn globs<S: AsRef<str>>(patterns: &[S]) -> Result<Self, globset::Error> {
        if patterns.is_empty() {
            return Ok(Self::all());
        }
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns {
            let trimmed = pattern
                .as_ref()
                .trim_start_matches("./")
                .trim_end_matches('/');
            let everything = trimmed.is_empty() || trimmed == ".";
            let texts = if everything {
                vec!["**".to_owned()]
            } else {
                vec![trimmed.to_owned(), format!("{trimmed}/**")]
            };
            for text in texts {
                builder.add(GlobBuilder::new(&text).literal_separator(true).build()?);
            }
        }
        Ok(Self {
            globs: Some(builder.build()?),
        })
    }

    /// Whether every path is selected.
    pub fn is_all(&self) -> bool {
        self.globs.is_none()
    }

    /// Whether a path is selected.
    pub fn matches(&self, path: &RepoPath) -> bool {
        self.globs
            .as_ref()
            .is_none_or(|globs| globs.is_match(Path::new(OsStr::from_bytes(path.as_bytes()))))
    }
}

/// A glob that selects a path: what would mean something in it represents any one byte.
pub(crate) fn glob_of(path: &RepoPath) -> String {
    let mut glob = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        glob.extend(
            chunk
                .valid()
                .chars()
                .map(|one| if "*?[]{}\\!".contains(one) { '?' } else { one }),
        );
        glob.extend(chunk.invalid().iter().map(|_| '?'));
    }
    glob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_glob_of_a_path_selects_it() {
        for name in [
            &b"src/a.rs"[..],
            b"a[1]*.txt",
            b"{x,y}",
            b"back\\slash",
            "\u{e9}?".as_bytes(),
            b"\xff\xfe.bin",
            b"!a",
        ] {
            let path = RepoPath::new(name);
            assert!(
                Selection::globs(&[glob_of(&path)]).unwrap().matches(&path),
                "{path:?}"
            );
        }
    }

    #[test]
    fn a_glob_selects_what_lies_below() {
        let selection = Selection::globs(&["src", "*.md"]).unwrap();
        for (path, selected) in [
            ("src", true),
            ("src/a/b", true),
            ("srcs", false),
            ("a.md", true),
            ("docs/a.md", false),
        ] {
            assert_eq!(selection.matches(&RepoPath::from(path)), selected, "{path}");
        }
        assert!(Selection::globs::<&str>(&[]).unwrap().is_all());
        assert!(
            Selection::globs(&["."])
                .unwrap()
                .matches(&RepoPath::from("a/b"))
        );
    }
}
