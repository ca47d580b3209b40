//! `.git` files: what leads from the folder of a submodule or linked work tree to its repository elsewhere.
//!
//! The repository survives the folder: in `modules` of the one around it, or in `worktrees`. With the file in its place the
//! folder belongs to it again.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::temp_file;
use crate::durable::temporary_prefix;
use crate::git::base::error::{Error, Result};
use crate::git::base::openat;
use crate::git::repo::nested::module_folder;
use crate::git::repo::repository::Repo;
use crate::model::operation::GitFile;
use crate::model::path::RepoPath;
use crate::os::sync_file;

const NAME: &[u8] = b".git";
/// Deeper folders of `modules` are not looked through.
const MAX_DEPTH: usize = 16;
/// A longer one is none that git wrote.
const MAX_BYTES: u64 = 1 << 14;

/// The file that leads from `path` to the repository that is still kept for it; `None` where there is none.
pub(crate) fn find_kept(outer: &Repo, path: &RepoPath) -> Option<GitFile> {
    let folder = path.below(outer.workdir());
    let content = |target: &Path| target.to_str().map(|target| format!("gitdir: {target}\n"));
    for base in [outer.git_dir(), outer.common_dir()] {
        let Ok(base) = fs::canonicalize(base) else {
            continue;
        };
        if let Some(found) = module(&base.join("modules"), &folder, 0) {
            return Some(GitFile {
                path: path.clone(),
                content: content(&relative(&folder, &found))?,
            });
        }
        let linked = folders(&base.join("worktrees")).into_iter().find(|found| {
            let text = fs::read(found.join("gitdir")).unwrap_or_default();
            Path::new(std::ffi::OsStr::from_bytes(text.trim_ascii_end())) == folder.join(".git")
        });
        if let Some(found) = linked {
            return Some(GitFile {
                path: path.clone(),
                content: content(&found)?,
            });
        }
    }
    None
}

/// The repository in or below a folder whose work tree `folder` is.
fn module(base: &Path, folder: &Path, depth: usize) -> Option<PathBuf> {
    folders(base)
        .into_iter()
        .filter(|_| depth < MAX_DEPTH)
        .find_map(|found| {
            if !found.join("HEAD").is_file() {
                // A name with slashes.
                return module(&found, folder, depth + 1);
            }
            let is_it = module_folder(&found).is_some_and(|back| plain(&back) == folder);
            if is_it {
                Some(found)
            } else {
                module(&found.join("modules"), folder, depth + 1)
            }
        })
}

/// The folders in a folder, links aside.
fn folders(base: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// A path without `.` and `..`, which need not be there.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

/// The way from one folder to another, both absolute.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from
        .components()
        .zip(to.components())
        .take_while(|(one, other)| one == other)
        .count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// Whether it stands in its folder.
pub(crate) fn exists(repo: &Repo, file: &GitFile) -> bool {
    let root = openat::open_root(repo.workdir());
    root.and_then(|root| read(&root, file))
        .is_ok_and(|found| found == Found::Same)
}

#[derive(PartialEq, Eq)]
enum Found {
    Nothing,
    Same,
    Other,
}

fn read(root: &std::os::fd::OwnedFd, file: &GitFile) -> Result<Found> {
    let failed = |error| openat::io_error(&file.path, error);
    let dir = match openat::open_path(root, &file.path) {
        Ok(dir) => dir,
        Err(error) if openat::is_no_folder(&error) => return Ok(Found::Nothing),
        Err(error) => return Err(failed(error)),
    };
    match openat::stat(&dir, NAME).map_err(failed)? {
        None => Ok(Found::Nothing),
        Some(stat) if stat.kind() == FileType::RegularFile && stat.size <= MAX_BYTES => {
            let mut text = Vec::new();
            let mut opened = openat::open_file(&dir, NAME).map_err(failed)?;
            std::io::Read::read_to_end(&mut opened, &mut text).map_err(failed)?;
            Ok(if text == file.content.as_bytes() {
                Found::Same
            } else {
                Found::Other
            })
        }
        Some(_) => Ok(Found::Other),
    }
}

/// Puts it into its folder, which is made where it is missing. Something else in its place is a conflict.
pub(crate) fn write(repo: &Repo, file: &GitFile) -> Result<()> {
    let root = openat::open_root(repo.workdir())?;
    let failed = |error| openat::io_error(&file.path, error);
    match read(&root, file)? {
        Found::Same => return Ok(()),
        Found::Other => return Err(Error::conflict(&file.path, "its .git is another one")),
        Found::Nothing => {}
    }
    let mut dir = root.try_clone().map_err(failed)?;
    for name in file.path.as_bytes().split(|byte| *byte == b'/') {
        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(failed(error.into())),
        }
        dir = openat::open_folder(&dir, name)
            .map_err(|error| openat::open_error(&file.path, error))?;
    }
    let temp = format!("{}git", temporary_prefix());
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let written = rustix::fs::openat(&dir, temp.as_str(), flags, Mode::from_raw_mode(0o666))
        .map_err(std::io::Error::from)
        .and_then(|opened| {
            let mut opened = fs::File::from(opened);
            std::io::Write::write_all(&mut opened, file.content.as_bytes())?;
            opened.sync_all()?;
            temp_file::rename(&dir, temp.as_bytes(), NAME, true)
        });
    if let Err(error) = written {
        // The error that led here is the one to report.
        let _ = rustix::fs::unlinkat(&dir, temp.as_str(), AtFlags::empty());
        return Err(failed(error));
    }
    sync_file(&dir).map_err(|error| failed(error.into()))
}

/// Takes it away where it stands; anything else stays.
pub(crate) fn remove(repo: &Repo, file: &GitFile) -> Result<()> {
    let root = openat::open_root(repo.workdir())?;
    let failed = |error| openat::io_error(&file.path, error);
    if read(&root, file)? != Found::Same {
        return Ok(());
    }
    let dir = openat::open_path(&root, &file.path).map_err(failed)?;
    rustix::fs::unlinkat(&dir, NAME, AtFlags::empty()).map_err(|error| failed(error.into()))?;
    sync_file(&dir).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_from_one_folder_to_another() {
        for (from, to, way) in [
            ("/w/sub", "/w/.git/modules/sub", "../.git/modules/sub"),
            (
                "/w/a/b",
                "/w/.git/modules/a/modules/b",
                "../../.git/modules/a/modules/b",
            ),
        ] {
            assert_eq!(relative(Path::new(from), Path::new(to)), Path::new(way));
        }
        assert_eq!(
            plain(Path::new("/w/.git/modules/a/../../../a")),
            Path::new("/w/a")
        );
    }
}
