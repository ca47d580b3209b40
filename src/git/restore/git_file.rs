//! `.git` files: what leads from the folder of a submodule or linked work tree to its repository elsewhere.
//!
//! The repository survives the folder: in `modules` of the one around it, or in `worktrees`. With the file in its place the
//! folder belongs to it again.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::temp_file;
use crate::durable::temporary_prefix;
use crate::git::base::{At as _, Error, Result, openat};
use crate::git::repo::nested::module_folder;
use crate::git::repo::repository::Repo;
use crate::model::operation::GitFile;
use crate::model::path::{RepoPath, normalized};
use crate::os::sync_file;

const NAME: &[u8] = b".git";
/// Deeper folders of `modules` are not looked through.
const MAX_DEPTH: usize = 16;
/// A longer one is none that git wrote.
const MAX_BYTES: u64 = 1 << 14;

impl Repo {
    /// The file that leads from `path` to the repository that is still kept for it; `None` where there is none.
    pub(crate) fn kept_git_file(&self, path: &RepoPath) -> Option<GitFile> {
        let folder = path.below(self.workdir());
        let leads_here = |found: &PathBuf| {
            let text = fs::read(found.join("gitdir")).unwrap_or_default();
            Path::new(OsStr::from_bytes(text.trim_ascii_end())) == folder.join(".git")
        };
        let bases = [self.git_dir(), self.common_dir()];
        let target = bases
            .into_iter()
            .filter_map(|base| fs::canonicalize(base).ok())
            .find_map(|base| {
                let module = module(&base.join("modules"), &folder, 0);
                let linked = || {
                    folders(&base.join("worktrees"))
                        .into_iter()
                        .find(leads_here)
                };
                module
                    .map(|found| relative(&folder, &found))
                    .or_else(linked)
            });
        Some(GitFile {
            path: path.clone(),
            content: format!("gitdir: {}\n", target?.to_str()?),
        })
    }

    /// Whether it stands in its folder.
    pub(crate) fn has_git_file(&self, file: &GitFile) -> bool {
        let root = openat::open_root(self.workdir());
        root.and_then(|root| read(&root, file))
            .is_ok_and(|found| found == Found::Same)
    }

    /// Puts it into its folder, which is made where it is missing. Something else in its place is a conflict.
    pub(crate) fn write_git_file(&self, file: &GitFile) -> Result<()> {
        let root = openat::open_root(self.workdir())?;
        match read(&root, file)? {
            Found::Same => return Ok(()),
            Found::Other => return Err(Error::conflict(&file.path, "its .git is another one")),
            Found::Nothing => {}
        }
        let mut dir = root;
        for name in file.path.as_bytes().split(|byte| *byte == b'/') {
            match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(openat::io_error(&file.path, error.into())),
            }
            dir = openat::open_folder(&dir, name)
                .map_err(|error| openat::open_error(&file.path, error))?;
        }
        let temp = format!("{}git", temporary_prefix());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let write = || -> io::Result<()> {
            let opened = rustix::fs::openat(&dir, &*temp, flags, Mode::from_raw_mode(0o666))?;
            let mut opened = fs::File::from(opened);
            opened.write_all(file.content.as_bytes())?;
            opened.sync_all()?;
            temp_file::rename(&dir, temp.as_bytes(), NAME, true)
        };
        write().map_err(|error| {
            // The error that led here is the one to report.
            let _ = rustix::fs::unlinkat(&dir, &*temp, AtFlags::empty());
            openat::io_error(&file.path, error)
        })?;
        sync_file(&dir).on(&file.path)
    }

    /// Takes it away where it stands; anything else stays.
    pub(crate) fn remove_git_file(&self, file: &GitFile) -> Result<()> {
        let root = openat::open_root(self.workdir())?;
        if read(&root, file)? != Found::Same {
            return Ok(());
        }
        let dir = openat::open_path(&root, &file.path).on(&file.path)?;
        rustix::fs::unlinkat(&dir, NAME, AtFlags::empty()).on(&file.path)?;
        sync_file(&dir).on(&file.path)
    }
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
            let is_it = module_folder(&found).is_some_and(|back| normalized(&back) == folder);
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

#[derive(PartialEq, Eq)]
enum Found {
    Nothing,
    Same,
    Other,
}

fn read(root: &OwnedFd, file: &GitFile) -> Result<Found> {
    let dir = match openat::open_path(root, &file.path) {
        Ok(dir) => dir,
        Err(error) if openat::is_no_folder(&error) => return Ok(Found::Nothing),
        Err(error) => return Err(openat::io_error(&file.path, error)),
    };
    match openat::stat(&dir, NAME).on(&file.path)? {
        None => Ok(Found::Nothing),
        Some(stat) if stat.kind() == FileType::RegularFile && stat.size <= MAX_BYTES => {
            let mut text = Vec::new();
            let mut opened = openat::open_file(&dir, NAME).on(&file.path)?;
            opened.read_to_end(&mut text).on(&file.path)?;
            Ok(if text == file.content.as_bytes() {
                Found::Same
            } else {
                Found::Other
            })
        }
        Some(_) => Ok(Found::Other),
    }
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
            normalized(Path::new("/w/.git/modules/a/../../../a")),
            Path::new("/w/a")
        );
    }
}
