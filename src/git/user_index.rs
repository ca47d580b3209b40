//! The user's index, read only. It is opened as a file, so that a held `index.lock` is no obstacle.

use std::collections::BTreeMap;

use git2::Oid;

use super::error::{Error, Result};
use super::repository::Repo;
use crate::model::manifest::IndexExtra;
use crate::model::path::RepoPath;
use crate::model::snapshot::ObjectId;

/// `CE_VALID` of the index format: assume unchanged.
pub(super) const ASSUME_UNCHANGED: u16 = 0x8000;
/// `CE_INTENT_TO_ADD` among the extended flags.
pub(super) const INTENT_TO_ADD: u16 = 1 << 13;
/// `CE_SKIP_WORKTREE` among the extended flags.
pub(super) const SKIP_WORKTREE: u16 = 1 << 14;
/// The git file mode of a submodule.
pub(super) const GITLINK: u32 = 0o160_000;

/// What the user's index holds.
#[derive(Debug, Default)]
pub(super) struct UserIndex {
    /// Whether there is an index file.
    pub exists: bool,
    /// Every path once, with the mode and id of the stage that stands for it.
    tracked: BTreeMap<RepoPath, (u32, Oid)>,
    /// Entries of the index's tree.
    pub tree: BTreeMap<RepoPath, (u32, Oid)>,
    /// What a tree cannot say.
    pub extras: Vec<IndexExtra>,
}

impl UserIndex {
    /// Reads the index. One that libgit2 cannot read in full (split, sparse) is [`Error::Unsupported`].
    pub fn read(repo: &Repo) -> Result<Self> {
        let path = repo.git_dir().join("index");
        if repo.is_private() || !path.exists() {
            return Ok(Self::default());
        }
        let index = open_index(&path)?;
        let mut result = Self { exists: true, ..Self::default() };
        // A conflicted path stands in the tree as ours, else theirs, else the base.
        let rank = |stage: u8| [3, 0, 2, 1][usize::from(stage & 3)];
        let mut ranks: BTreeMap<RepoPath, u8> = BTreeMap::new();
        for entry in index.iter() {
            let stage = ((entry.flags >> 12) & 3) as u8;
            let extra = IndexExtra {
                path: RepoPath::new(entry.path),
                stage,
                mode: entry.mode,
                oid: ObjectId(entry.id.to_string()),
                intent_to_add: entry.flags_extended & INTENT_TO_ADD != 0,
                assume_unchanged: entry.flags & ASSUME_UNCHANGED != 0,
                skip_worktree: entry.flags_extended & SKIP_WORKTREE != 0,
            };
            let path = extra.path.clone();
            let better = ranks.get(&path).is_none_or(|known| rank(stage) > *known);
            if better {
                ranks.insert(path.clone(), rank(stage));
                result.tracked.insert(path.clone(), (entry.mode, entry.id));
                if !extra.intent_to_add {
                    result.tree.insert(path, (entry.mode, entry.id));
                }
            }
            if stage != 0 || extra.intent_to_add || extra.assume_unchanged || extra.skip_worktree {
                result.extras.push(extra);
            }
        }
        Ok(result)
    }

    /// Whether the path is tracked.
    pub fn contains(&self, path: &RepoPath) -> bool {
        self.tracked.contains_key(path)
    }

    /// Whether something below the folder is tracked.
    pub fn has_below(&self, folder: &RepoPath) -> bool {
        let first = folder.join(b"");
        self.tracked.range(&first..).next().is_some_and(|(path, _)| path.as_bytes().starts_with(first.as_bytes()))
    }

    /// The commit of a submodule at this path.
    pub fn gitlink(&self, path: &RepoPath) -> Option<Oid> {
        self.tracked.get(path).filter(|(mode, _)| *mode == GITLINK).map(|(_, oid)| *oid)
    }
}

/// Opens an index file and reads it.
pub(super) fn open_index(path: &std::path::Path) -> Result<git2::Index> {
    git2::Index::open(path).and_then(|mut index| index.read(true).map(|()| index)).map_err(|source| {
        // Lower-case extensions change what the entries mean: `link` is a split index, `sdir` a sparse one.
        if source.message().contains("mandatory extension") {
            let kind = match source.message() {
                message if message.contains("link") => "a split index (git update-index --no-split-index undoes it)",
                message if message.contains("sdir") => {
                    "a sparse index (git sparse-checkout set --no-sparse-index undoes it)"
                }
                message => message,
            };
            return Error::Unsupported { what: kind.to_owned() };
        }
        if source.class() == git2::ErrorClass::Index {
            return Error::corrupt(format!("{}: {}", path.display(), source.message()));
        }
        Error::Git { action: format!("read {}", path.display()), source }
    })
}
