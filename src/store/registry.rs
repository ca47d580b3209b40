//! The ids of our own state directories, kept where no clone and no archive brings them along.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::durable::sync_dir;

/// Bytes of an id, before they are written as text.
pub(super) const ID_BYTES: usize = 16;

/// The folders in which the ids of state directories are kept, one file each. New ones go to the first.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    folders: Vec<PathBuf>,
}

impl Registry {
    /// The folders, the one for new ids first.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    /// Where new ids go; `None` where ids are not kept.
    pub(super) fn first(&self) -> Option<&Path> {
        self.folders.first().map(PathBuf::as_path)
    }

    /// Whether the id is one of ours.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.folders.iter().any(|folder| folder.join(id).is_file())
    }

    /// Keeps `id`, of the state directory `dir`, in the first folder, on disk when this returns.
    pub(super) fn add(&self, id: &str, dir: &Path) -> io::Result<()> {
        let Some(folder) = self.first() else { return Ok(()) };
        let file = folder.join(id);
        if file.is_file() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // That it is there is all that counts; whose id it is stands in it for people.
        let mut made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
        made.write_all(format!("{}\n", dir.display()).as_bytes())?;
        made.sync_all()?;
        sync_dir(folder)?;
        folder.parent().map_or(Ok(()), sync_dir)
    }
}

/// A random id, as text.
pub(super) fn new_id() -> io::Result<String> {
    let mut bytes = [0; ID_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
