//! What a checkpoint knows beside its tree: full modes, empty folders, what was left out, the index, HEAD.
//!
//! It is stored as `manifest.json` in the checkpoint's state commit. A git tree keeps one permission bit a file and
//! no empty folder; what it cannot say stands here, and only that, so that the file stays small.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{PathReason, RepoPath, Timestamp};

/// The version that this program writes; a manifest with a newer one is not read.
pub(crate) const MANIFEST_VERSION: u32 = 1;

/// What a capture takes, and what it leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureRules {
    /// Untracked files over this many bytes are listed, not captured.
    pub max_file_size: u64,
    /// More untracked files than this are refused.
    pub max_untracked_files: u64,
    /// More bytes in untracked files than this are refused.
    pub max_untracked_bytes: u64,
    /// Globs of ignored paths to capture all the same. A pattern also matches everything below what it matches.
    #[serde(default)]
    pub include: Vec<String>,
    /// Globs of paths to leave out, listed in `skipped`.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Globs of untracked paths that come and go while a user edits: as if git ignored them.
    #[serde(rename = "passing", default, skip_serializing_if = "Vec::is_empty")]
    pub editor_temp_globs: Vec<String>,
    /// Absolute folders that are no part of the work tree (the state directory): neither captured nor listed.
    #[serde(skip)]
    pub excluded_dirs: Vec<PathBuf>,
    /// Whether what was read is kept from time to time: whoever captures may be stopped before it is done, and the next
    /// one need not write that again.
    #[serde(skip)]
    pub publish_incrementally: bool,
    /// Only what git tracks is taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tracked_only: bool,
    /// The tree of what was there before a run: of what came since, the largest folders are left out where there is too
    /// much. Without it too much is refused.
    #[serde(skip)]
    pub before: Option<ObjectId>,
}

impl Default for CaptureRules {
    fn default() -> Self {
        Self {
            max_file_size: 50 << 20,
            max_untracked_files: 20_000,
            max_untracked_bytes: 1 << 30,
            include: Vec::new(),
            exclude: Vec::new(),
            editor_temp_globs: Vec::new(),
            excluded_dirs: Vec::new(),
            publish_incrementally: false,
            tracked_only: false,
            before: None,
        }
    }
}

/// Where HEAD points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The commit; `None` while the branch has none.
    pub commit: Option<ObjectId>,
    /// The full name of the branch (`refs/heads/main`), also of an unborn one; `None` when detached.
    pub branch: Option<String>,
}

/// A path and its permission bits (`0o7777`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathMode {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// Permission bits.
    pub mode: u32,
}

/// The permission bits that paths have unless they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultModes {
    /// Of files without the owner's executable bit.
    pub file: u32,
    /// Of files with it.
    pub executable: u32,
    /// Of folders.
    pub folder: u32,
}

impl Default for DefaultModes {
    fn default() -> Self {
        Self {
            file: 0o644,
            executable: 0o755,
            folder: 0o755,
        }
    }
}

/// An entry of the user's index that a tree cannot express.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexExtra {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// 0, or 1–3 for a conflict's base, ours, theirs.
    pub stage: u8,
    /// The git file mode.
    pub mode: u32,
    /// The blob, or the commit of a gitlink.
    pub oid: ObjectId,
    /// Added with `git add --intent-to-add`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub intent_to_add: bool,
    /// Marked with `git update-index --assume-unchanged`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assume_unchanged: bool,
    /// Marked with `git update-index --skip-worktree`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_worktree: bool,
}

impl IndexExtra {
    /// The entry of a path that has neither a conflict nor a mark.
    pub fn unmarked(path: &RepoPath, mode: u32, oid: ObjectId) -> Self {
        let (path, stage) = (path.clone(), 0);
        Self {
            path,
            stage,
            mode,
            oid,
            intent_to_add: false,
            assume_unchanged: false,
            skip_worktree: false,
        }
    }
}

/// A repository inside the work tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nested {
    /// Its folder.
    #[serde(flatten)]
    pub path: RepoPath,
    /// The commit its HEAD is at, where it could be read.
    pub commit: Option<ObjectId>,
    /// The commit of its own checkpoint, in its own object database; `None` where it was not captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<ObjectId>,
    /// The permission bits of its folder, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// A file and when it was last modified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathTime {
    /// The file.
    #[serde(flatten)]
    pub path: RepoPath,
    /// When.
    pub modified: Timestamp,
}

/// When captured files and symlinks were last modified (S2). A time is no change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileTimes {
    /// Of all, in the order of their paths: milliseconds since that of the one before, of the first since 1970.
    All(Vec<i64>),
    /// Of these alone, sorted by path.
    Some(Vec<PathTime>),
}

impl Default for FileTimes {
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

impl FileTimes {
    /// Whether it says of no file when.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::All(times) => times.is_empty(),
            Self::Some(times) => times.is_empty(),
        }
    }
}

/// Everything a checkpoint knows beside its trees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`] of the writer.
    pub version: u32,
    /// Modes of paths that are not listed.
    pub modes: DefaultModes,
    /// Files with other modes, by path.
    #[serde(default)]
    pub file_modes: Vec<PathMode>,
    /// Folders with other modes, by path.
    #[serde(default)]
    pub folder_modes: Vec<PathMode>,
    /// Folders that hold no captured path, by path.
    #[serde(default)]
    pub empty_folders: Vec<PathMode>,
    /// What was left out, and why.
    #[serde(default)]
    pub skipped: Vec<PathReason>,
    /// Files that changed while they were captured, however often that was tried: each is as it was read last, and those of
    /// a database do not fit each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsettled: Vec<RepoPath>,
    /// Whether something that should have been captured could not be.
    #[serde(default)]
    pub partial: bool,
    /// Repositories inside.
    #[serde(default)]
    pub nested: Vec<Nested>,
    /// The rules of the capture.
    pub rules: CaptureRules,
    /// Where HEAD was.
    pub head: Head,
    /// `merge`, `rebase`, `cherry-pick`, `revert`, `bisect` or `am`, when one was in progress.
    pub operation: Option<String>,
    /// Whether there was an index; without one the checkpoint has no index commit.
    pub has_index: bool,
    /// Index entries that a tree cannot express.
    #[serde(default)]
    pub index_extras: Vec<IndexExtra>,
    /// Files of the working memory with other modes than 0644 and 0755.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_modes: Vec<PathMode>,
    /// Files that whoever captured wrote its own output to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<RepoPath>,
    /// When files were last modified.
    #[serde(default, skip_serializing_if = "FileTimes::is_empty")]
    pub times: FileTimes,
}

impl DefaultModes {
    /// The mode of a file that is not listed.
    pub fn of_file(self, executable: bool) -> u32 {
        if executable {
            self.executable
        } else {
            self.file
        }
    }
}

/// The object id of a blob, tree or commit, as lower-case hexadecimal.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ObjectId(pub String);

impl ObjectId {
    /// The first characters, for people.
    pub fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link; its content is the target.
    Symlink,
    /// A submodule or nested repository: recorded, never written or deleted.
    Gitlink,
    /// A folder that holds no captured path.
    EmptyDir,
}

/// One captured path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// Its content: blob, or the commit of a gitlink; the empty blob's id for an empty folder.
    pub oid: ObjectId,
    /// Permission bits (`0o7777`); 0 for symlinks and gitlinks.
    pub mode: u32,
}

impl Entry {
    /// Whether it has content of its own: a regular file or a symbolic link.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, EntryKind::File | EntryKind::Symlink)
    }
}

/// Everything captured of a work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Files, links and empty folders by path.
    pub entries: BTreeMap<RepoPath, Entry>,
    /// Permission bits of every folder that holds an entry, by path (the root excluded).
    pub dirs: BTreeMap<RepoPath, u32>,
    /// What was left out, and why.
    pub skipped: Vec<PathReason>,
}

/// A path that is not the same before and after: what it was, and what it is.
pub(crate) type Unlike<'a> = (&'a RepoPath, Option<&'a Entry>, Option<&'a Entry>);

impl Snapshot {
    /// What is not the same in a later one, sorted by path.
    ///
    /// A folder that holds something is no entry, and one that holds nothing is: emptying or filling it makes or removes
    /// no folder, so that only those are reported that were not there at all before, or are not any more.
    pub fn unlike<'a>(&'a self, later: &'a Self) -> impl Iterator<Item = Unlike<'a>> {
        let mut unlike: BTreeMap<&RepoPath, (Option<&Entry>, Option<&Entry>)> = BTreeMap::new();
        for (path, entry) in &later.entries {
            match self.entries.get(path) {
                Some(before) if before == entry => {}
                Some(before) => drop(unlike.insert(path, (Some(before), Some(entry)))),
                None if self.has_folder_of(path, entry) => {}
                None => drop(unlike.insert(path, (None, Some(entry)))),
            }
        }
        let gone = self
            .entries
            .iter()
            .filter(|(path, _)| !later.entries.contains_key(*path));
        let gone = gone.filter(|(path, entry)| !later.has_folder_of(path, entry));
        unlike.extend(gone.map(|(path, entry)| (path, (Some(entry), None))));
        unlike
            .into_iter()
            .map(|(path, (before, after))| (path, before, after))
    }

    /// Whether an empty folder of another snapshot is here, too, with something in it.
    fn has_folder_of(&self, path: &RepoPath, entry: &Entry) -> bool {
        entry.kind == EntryKind::EmptyDir && self.dirs.contains_key(path)
    }
}

/// How one path differs between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum ChangeType {
    /// In both, different.
    Modified,
    /// Only in the newer.
    Created,
    /// Only in the older.
    Deleted,
    /// Same content under another path.
    Renamed,
}

/// One line of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The path (the new one after a rename).
    #[serde(flatten)]
    pub path: RepoPath,
    /// How it differs.
    #[serde(rename = "type")]
    pub kind: ChangeType,
    /// Where it was before a rename.
    pub old_path: Option<String>,
    /// Lines added; `None` for binary content.
    pub added: Option<u64>,
    /// Lines removed; `None` for binary content.
    pub deleted: Option<u64>,
    /// The change as a patch, where it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl Change {
    /// One whose lines are not counted.
    pub(crate) fn new(path: RepoPath, kind: ChangeType) -> Self {
        Self {
            path,
            kind,
            old_path: None,
            added: None,
            deleted: None,
            diff: None,
        }
    }
}
