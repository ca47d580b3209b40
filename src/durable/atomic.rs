//! Sync before rename, and the folder after it.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::Builder;

use super::temporary::temporary_prefix;

/// Replaces `path` by `content`: temporary file in the same folder, fsync, rename, fsync of the folder.
///
/// The folder must exist. The file gets mode 0644 as far as the umask allows.
pub fn write_atomic(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, None, true)?;
    sync_dir(folder_of(path))
}

/// Like [`write_atomic`] but for the fsync of the folder: a crash of the machine leaves the former content or this one.
pub fn write_atomic_but_folder(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, None, true)
}

/// Like [`write_atomic`] with exactly these permission bits; at no instant has the content wider ones.
pub fn write_atomic_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    replace(path, content, Some(mode), true)?;
    sync_dir(folder_of(path))
}

/// Like [`write_atomic`] without waiting for the disk: for caches that check themselves when they are read.
pub fn write_atomic_unsynced(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, None, false)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn replace(path: &Path, content: &[u8], exact: Option<u32>, synced: bool) -> io::Result<()> {
    let first = if exact.is_some() { 0o600 } else { 0o644 };
    let mut builder = Builder::new();
    let builder = builder.permissions(Permissions::from_mode(first));
    let mut temporary = builder.prefix(&temporary_prefix()).tempfile_in(folder_of(path))?;
    temporary.write_all(content)?;
    if let Some(mode) = exact {
        temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
    }
    if synced {
        temporary.as_file().sync_all()?;
    }
    temporary.persist(path).map(drop).map_err(|error| error.error)
}

/// Keeps `content` in a file at `place`, or beside it (`name-2.json`) where another content is kept already; nothing
/// is ever written over. Returns where it is.
pub fn keep_copy(place: &Path, content: &[u8]) -> io::Result<PathBuf> {
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    let copy = place_of_copy(place, content)?;
    // What is there holds just this.
    if !copy.exists() {
        write_atomic(&copy, content)?;
    }
    Ok(copy)
}

/// Where [`keep_copy`] keeps it, or has kept it.
pub fn place_of_copy(place: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let stem = place.file_stem().unwrap_or_default().to_string_lossy();
    let extension = place.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    let mut number = 1;
    let mut copy = place.to_owned();
    loop {
        match fs::read(&copy) {
            Ok(kept) if kept == content => return Ok(copy),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(copy),
            Err(error) => return Err(error),
        }
        number += 1;
        copy = place.with_file_name(format!("{stem}-{number}{extension}"));
    }
}

/// Makes names in `folder` (created, renamed or removed ones) survive a crash of the machine.
pub fn sync_dir(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
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
