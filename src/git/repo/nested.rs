//! Repositories inside the work tree: recognised, never entered.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::git::base::openat;
use crate::model::{Nested, RepoPath};

/// Whether a folder is the root of a repository: its `.git` is a folder with a HEAD, or a file that names one.
pub(in crate::git) fn is_repository(dir: &OwnedFd) -> bool {
    match openat::stat(dir, b".git") {
        Ok(Some(stat)) if stat.kind() == FileType::Directory => {
            let inside = openat::open_folder(dir, b".git");
            inside.is_ok_and(|inside| {
                let has = |name: &[u8]| matches!(openat::stat(&inside, name), Ok(Some(_)));
                has(b"HEAD") && has(b"objects")
            })
        }
        Ok(Some(stat)) if stat.kind() == FileType::RegularFile => {
            let mut beginning = Vec::new();
            let read = openat::open_file(dir, b".git")
                .and_then(|file| file.take(8).read_to_end(&mut beginning));
            read.is_ok() && beginning == b"gitdir: "
        }
        _ => false,
    }
}

/// The work tree that others lie in.
#[derive(Clone, Copy, Debug)]
pub(in crate::git) struct Outer<'a> {
    pub workdir: &'a Path,
    pub git_dir: &'a Path,
    pub common_dir: &'a Path,
}

/// The commit that the HEAD of the repository at a path is at; `None` if it has none, cannot be read or is another
/// project's.
pub(in crate::git) fn head(outer: Outer<'_>, path: &RepoPath) -> Option<git2::Oid> {
    let folder = path.below(outer.workdir);
    let found = git2::Repository::open(&folder).ok()?;
    if stray(outer, &folder, &found).is_some() {
        None
    } else {
        found.head().ok()?.target()
    }
}

/// Why what `.git` in `folder` leads to must not be written to: it is not this folder's own. Work trees hold what others
/// wrote, and a file or link in them may name any repository of the user's.
///
/// Its own are: a `.git` folder; what lies in `modules` of the repository around it; and a repository elsewhere that
/// names this very folder as its work tree (`core.worktree`, or `gitdir` of a linked one).
pub(super) fn stray(outer: Outer<'_>, folder: &Path, found: &git2::Repository) -> Option<String> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let strange = |why: &str| {
        Some(format!(
            "its .git leads to {}, {why}",
            found.path().display()
        ))
    };
    let (Some(folder), Some(git_dir), Some(common)) =
        (real(folder), real(found.path()), real(found.commondir()))
    else {
        return strange("which cannot be followed");
    };
    let outer_dirs = [outer.git_dir, outer.common_dir].map(real);
    let link = folder.join(".git");
    let is_own = match fs::symlink_metadata(&link).map(|found| found.file_type()) {
        Ok(kind) if kind.is_dir() => git_dir == link && common == git_dir,
        Ok(kind) if kind.is_file() => {
            let is_linked = real(&git_dir.join("commondir")).is_some();
            let is_module = || {
                outer_dirs
                    .iter()
                    .flatten()
                    .any(|outer| git_dir.starts_with(outer.join("modules")))
            };
            if is_linked {
                git_dir.parent() == Some(&common.join("worktrees"))
                    && linked_folder(&git_dir).as_ref() == Some(&folder)
            } else {
                is_module()
                    || module_folder(&git_dir)
                        .and_then(|back| real(&back))
                        .as_ref()
                        == Some(&folder)
            }
        }
        _ => false,
    };
    if !is_own {
        return if outer_dirs.iter().flatten().any(|outer| *outer == git_dir) {
            Some("it shares its git folder with another work tree".to_owned())
        } else {
            strange("which does not lead back here")
        };
    }
    let inside = |path: PathBuf| {
        let Ok(place) = fs::canonicalize(&path) else {
            return fs::symlink_metadata(&path).is_err();
        };
        [&git_dir, &common].iter().any(|own| place.starts_with(own))
            || [outer.workdir, outer.common_dir]
                .iter()
                .filter_map(|own| real(own))
                .any(|own| place.starts_with(own))
    };
    let written = [
        common.join("objects"),
        common.join("refs"),
        common.join("recover"),
        git_dir.join("recover"),
    ];
    if written.into_iter().all(inside) {
        None
    } else {
        strange("which keeps its content in another project")
    }
}

/// The folder of a linked work tree, as its git folder names it.
pub(super) fn linked_folder(git_dir: &Path) -> Option<PathBuf> {
    let text = fs::read(git_dir.join("gitdir")).ok()?;
    let link = git_dir.join(OsStr::from_bytes(text.trim_ascii_end()));
    fs::canonicalize(link.parent()?).ok()
}

/// The work tree that the configuration of a git folder names.
pub(in crate::git) fn module_folder(git_dir: &Path) -> Option<PathBuf> {
    let config = git2::Config::open(&git_dir.join("config")).ok()?;
    Some(git_dir.join(config.get_path("core.worktree").ok()?))
}

/// The commit that a link names.
pub(in crate::git) fn commit_of(link: &Nested) -> Option<git2::Oid> {
    link.commit
        .as_ref()
        .and_then(|commit| git2::Oid::from_str(&commit.0).ok())
}
