//! JSON files in a folder of ours in the user's state folder, where no clone brings them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::durable::{FileLock, LockError, Root, Sync, present};

/// Our own folder in that of the user's state.
pub(super) const OWN: &str = "recover";

/// More than any such file has, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// The files of one folder.
#[derive(Clone, Debug)]
pub(crate) struct UserFiles {
    pub(crate) root: Root,
    folder: PathBuf,
}

impl UserFiles {
    /// Those in the folder `recover/NAME` of `root`.
    pub(crate) fn new(root: Root, name: &str) -> Self {
        let folder = Path::new(OWN).join(name);
        Self { root, folder }
    }

    /// The path of a file below the root.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether the folder is there.
    pub(crate) fn exists(&self) -> bool {
        matches!(self.root.has(&self.folder), Ok(true))
    }

    /// Takes a lock whose file is removed with it; makes the folder.
    pub(crate) fn lock(&self, path: &Path, wait: Duration) -> Result<FileLock, LockError> {
        let made = self.root.create_dir_all(&self.folder);
        made.map_err(|source| LockError::Io {
            file: self.root.path().join(path),
            source,
        })?;
        FileLock::acquire_passing(&self.root, path, wait)
    }

    /// What a file holds; `None` where it is not there.
    pub(crate) fn read<T: DeserializeOwned>(&self, path: &Path) -> io::Result<Option<T>> {
        let bytes = present(self.root.read_at_most(path, MAX_FILE))?;
        let read = bytes.map(|bytes| serde_json::from_slice(&bytes));
        Ok(read.transpose()?)
    }

    /// Writes a file and its folder, on disk when this returns.
    pub(crate) fn write<T: Serialize>(&self, path: &Path, value: &T) -> io::Result<()> {
        self.root.create_dir_all(&self.folder)?;
        let text = serde_json::to_vec_pretty(value)?;
        self.root.write(path, &text, Sync::All)
    }

    /// The paths of the files, sorted.
    pub(crate) fn list(&self) -> io::Result<Vec<PathBuf>> {
        let listed = present(self.root.list(&self.folder))?.unwrap_or_default();
        let paths = listed.into_iter().map(|(name, _)| self.path(name));
        let is_file = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        let mut paths: Vec<PathBuf> = paths.filter(is_file).collect();
        paths.sort();
        Ok(paths)
    }

    /// Removes a file; whether it was there.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<bool> {
        Ok(present(self.root.remove_file(path))?.is_some())
    }

    /// Removes the folders; those that hold something stay.
    pub(crate) fn tidy(&self) {
        for folder in [self.folder.as_path(), Path::new(OWN)] {
            let _ = self.root.remove_dir(folder);
        }
    }
}
