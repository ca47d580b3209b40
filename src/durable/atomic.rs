//! Sync before rename, and the folder after it.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::root::{OWN_FILE, Root, create_in, kind_of, regular, stat};
use super::temporary::temporary_prefix;
use crate::os::sync_file;

/// How long a write waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Content and name are there after a crash of the machine.
    All,
    /// A crash of the machine leaves the former content or this one.
    Content,
    /// Not at all: for caches that check themselves when they are read.
    Nothing,
}

impl Root {
    /// Replaces a file by `content`: temporary file in the same folder, fsync, rename, fsync of the folder. The folder
    /// must exist. A file that is not ours alone keeps its permission bits.
    pub fn write(&self, path: &Path, content: &[u8], sync: Sync) -> io::Result<()> {
        self.put(path, content, None, sync, false)
    }

    /// Like [`Self::write`] with exactly these permission bits; at no instant has the content wider ones.
    pub fn write_mode(&self, path: &Path, content: &[u8], mode: u32, sync: Sync) -> io::Result<()> {
        self.put(path, content, Some(mode), sync, false)
    }

    /// Like [`Self::write`]; a link, FIFO, socket or device that stands there makes way.
    pub fn replace(&self, path: &Path, content: &[u8], sync: Sync) -> io::Result<()> {
        self.put(path, content, None, sync, true)
    }

    fn put(
        &self,
        path: &Path,
        content: &[u8],
        exact: Option<u32>,
        sync: Sync,
        any: bool,
    ) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        let found = stat(&dir, name)?;
        if let Some(found) = &found
            && (!any || kind_of(found) == FileType::Directory)
        {
            regular(found, &self.full(path))?;
        }
        let mode = self.file_mode(path);
        let shared =
            found.filter(|found| mode != OWN_FILE && kind_of(found) == FileType::RegularFile);
        #[allow(
            clippy::unnecessary_cast,
            clippy::cast_lossless,
            reason = "a mode has 16 bits on macOS"
        )]
        let exact = exact.or(shared.map(|found| found.st_mode as u32 & 0o7777));
        let first = if exact.is_some() { 0o600 } else { mode };
        let (temporary, mut file) = temporary(&dir, first)?;
        let mut put = || {
            file.write_all(content)?;
            if let Some(mode) = exact {
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            if sync != Sync::Nothing {
                file.sync_all()?;
            }
            Ok(rustix::fs::renameat(&dir, &temporary, &dir, name)?)
        };
        let written = put();
        written.inspect_err(|_: &io::Error| {
            // What cannot be removed now is reaped by a later process.
            let _ = rustix::fs::unlinkat(&dir, &temporary, AtFlags::empty());
        })?;
        if sync == Sync::All {
            Ok(sync_file(&dir)?)
        } else {
            Ok(())
        }
    }

    /// Keeps `content` in a file at `place`, or beside it (`name-2.json`) where another content is kept already; nothing
    /// is ever written over. Returns where it is.
    pub fn keep_copy(&self, place: &Path, content: &[u8]) -> io::Result<PathBuf> {
        if let Some(folder) = place.parent() {
            self.create_dir_all(folder)?;
        }
        let copy = self.place_of_copy(place, content)?;
        // What is there holds just this.
        if self.kind(&copy)?.is_none() {
            self.write(&copy, content, Sync::All)?;
        }
        Ok(copy)
    }

    /// What [`Self::keep_copy`] kept last in a place.
    pub fn latest_copy(&self, place: &Path) -> io::Result<Option<Vec<u8>>> {
        let kept = copies(place).map(|copy| self.read_present(&copy));
        let kept = kept.map_while(io::Result::transpose);
        kept.last().transpose()
    }

    /// Where [`Self::keep_copy`] keeps it, or has kept it.
    pub fn place_of_copy(&self, place: &Path, content: &[u8]) -> io::Result<PathBuf> {
        let fits = |copy: PathBuf| match self.read_present(&copy) {
            Ok(Some(kept)) if kept != content => None,
            read => Some(read.map(|_| copy)),
        };
        let found = copies(place).find_map(fits);
        found.unwrap_or_else(|| Ok(place.to_owned()))
    }
}

/// The places of copies one after the other: `name.json`, `name-2.json`, …
fn copies(place: &Path) -> impl Iterator<Item = PathBuf> {
    let stem = place.file_stem().unwrap_or_default().to_string_lossy();
    let extension = place.extension().map(|ending| ending.to_string_lossy());
    let extension = extension.map_or_else(String::new, |ending| format!(".{ending}"));
    let numbered = move |number: u32| place.with_file_name(format!("{stem}-{number}{extension}"));
    std::iter::once(place.to_owned()).chain((2..).map(numbered))
}

fn temporary(dir: &OwnedFd, mode: u32) -> io::Result<(OsString, File)> {
    loop {
        let letters: String = std::iter::repeat_with(fastrand::alphanumeric)
            .take(8)
            .collect();
        let name = OsString::from(temporary_prefix() + &letters);
        match create_in(dir, &name, mode) {
            Ok(file) => return Ok((name, file)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// [`Root::write`] for a file that the user named: mode 0644 as far as the umask allows, and what is there makes way.
pub(crate) fn write_atomic(path: &Path, content: &[u8]) -> io::Result<()> {
    let (root, name) = Root::of_file(path);
    root.replace(Path::new(name), content, Sync::All)
}

/// Makes names in `folder` survive a crash of the machine.
pub(crate) fn sync_dir(folder: &Path) -> io::Result<()> {
    Root::shared(folder).sync_dir(Path::new(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_replaced_whole_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view.json");
        write_atomic(&path, b"old").unwrap();
        write_atomic(&path, b"new content").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new content");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_atomic(&folder.path().join("missing/view.json"), b"x").is_err());
    }
}
