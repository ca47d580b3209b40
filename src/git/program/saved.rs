//! Files of the work tree as they were before the user's hooks ran.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::git::base::error::{Error, Result};
use crate::model::path::RepoPath;

/// Copies of files and links, by which what changed since is found and put back.
#[derive(Debug)]
pub(crate) struct Saved {
    /// Where the copies are, by the number of their path.
    folder: PathBuf,
    top: PathBuf,
    paths: Vec<RepoPath>,
}

impl Saved {
    /// Copies what is at `paths` below `top` into an empty folder.
    pub(super) fn new(folder: PathBuf, top: &Path, paths: &BTreeSet<RepoPath>) -> Result<Self> {
        let saved = Self {
            folder,
            top: top.to_owned(),
            paths: paths.iter().cloned().collect(),
        };
        saved
            .pairs()
            .try_for_each(|(_, place, copy)| copy_file(&place, &copy))?;
        Ok(saved)
    }

    /// Each path, where it is, and where its copy is.
    fn pairs(&self) -> impl Iterator<Item = (&RepoPath, PathBuf, PathBuf)> {
        let numbered = self.paths.iter().enumerate();
        numbered.map(|(number, path)| {
            (
                path,
                path.below(&self.top),
                self.folder.join(number.to_string()),
            )
        })
    }

    /// Whether this path is one of them.
    pub(crate) fn has(&self, path: &RepoPath) -> bool {
        self.paths.binary_search(path).is_ok()
    }

    /// The paths that are not as they were.
    pub(crate) fn changed(&self) -> Result<BTreeSet<RepoPath>> {
        let mut changed = BTreeSet::new();
        for (path, place, copy) in self.pairs() {
            if content_of(&place)? != content_of(&copy)? {
                changed.insert(path.clone());
            }
        }
        Ok(changed)
    }

    /// Puts back what is not as it was.
    pub(crate) fn put_back(&self) -> Result<()> {
        let changed = self.changed()?;
        self.pairs()
            .filter(|(path, ..)| changed.contains(*path))
            .try_for_each(|(_, place, copy)| {
                if copy.symlink_metadata().is_err() {
                    return fs::remove_file(&place).map_err(Error::at(&place));
                }
                let parent = place.parent().unwrap_or(&self.top);
                fs::create_dir_all(parent).map_err(Error::at(parent))?;
                let beside = tempfile::Builder::new()
                    .prefix(".recover-tmp-")
                    .tempdir_in(parent)
                    .map_err(Error::at(parent))?;
                let new = beside.path().join("file");
                copy_file(&copy, &new)?;
                fs::rename(&new, &place).map_err(Error::at(&place))
            })
    }
}

/// Copies a file with its mode, or a link; anything else is left out.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    match from.symlink_metadata() {
        Ok(found) if found.is_file() => fs::copy(from, to).map(drop).map_err(Error::at(from)),
        Ok(found) if found.is_symlink() => {
            let target = fs::read_link(from).map_err(Error::at(from))?;
            std::os::unix::fs::symlink(target, to).map_err(Error::at(to))
        }
        _ => Ok(()),
    }
}

/// What distinguishes two files: mode and content of a file, target of a link; `None` for anything else.
fn content_of(path: &Path) -> Result<Option<(u32, Vec<u8>)>> {
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::fs::PermissionsExt as _;
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => {
            let content = fs::read(path).map_err(Error::at(path))?;
            Ok(Some((found.permissions().mode(), content)))
        }
        Ok(found) if found.is_symlink() => {
            let target = fs::read_link(path).map_err(Error::at(path))?;
            Ok(Some((0, target.into_os_string().into_vec())))
        }
        _ => Ok(None),
    }
}
