//! The modes that git gives to the entries of a tree.

use rustix::fs::FileType;

use super::error::{Error, Result};
use super::openat::FileStat;
use crate::model::manifest::EntryKind;

/// The git file mode of a tree.
pub(in crate::git) const TREE: u32 = 0o040_000;

/// The git file mode of a submodule.
pub(in crate::git) const GITLINK: u32 = 0o160_000;

/// The mode that git gives to a file or symlink.
pub(in crate::git) fn git_mode(stat: &FileStat) -> u32 {
    match stat.kind() {
        FileType::Symlink => 0o120_000,
        _ if stat.mode & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}

/// The kind of an entry with this git file mode.
pub(in crate::git) fn kind_of(mode: u32) -> Result<EntryKind> {
    match mode & 0o170_000 {
        0o100_000 => Ok(EntryKind::File),
        0o120_000 => Ok(EntryKind::Symlink),
        0o160_000 => Ok(EntryKind::Gitlink),
        _ => Err(Error::corrupt(format!("file mode {mode:o} in a tree"))),
    }
}
