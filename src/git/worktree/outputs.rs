//! The files that this process itself writes to: what was said so far is on its stdout and stderr.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{FileType, fstat};

use crate::git::base::openat::{self, FileStat};
use crate::git::repo::repository::Repo;
use crate::model::path::RepoPath;

/// The regular files that stdout and stderr of this process are open on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outputs(Vec<FileStat>);

impl Outputs {
    /// Those of this process.
    pub(crate) fn own() -> Self {
        let open = [fstat(io::stdout()), fstat(io::stderr())];
        let files = open.into_iter().flatten().map(FileStat::from);
        Self(
            files
                .filter(|stat| stat.kind() == FileType::RegularFile)
                .collect(),
        )
    }

    /// Whether a path of the work tree is one of them, by whatever name.
    pub(crate) fn has(&self, repo: &Repo, path: &RepoPath) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let (parent, name) = openat::split(path);
        let folder = openat::open_root(repo.workdir())
            .ok()
            .and_then(|root| openat::open_path(&root, &parent).ok());
        let stat = folder.and_then(|folder| openat::stat(&folder, name).ok().flatten());
        stat.is_some_and(|stat| {
            self.0
                .iter()
                .any(|open| (open.dev, open.ino) == (stat.dev, stat.ino))
        })
    }

    /// The paths of the work tree that they were opened by, as far as the system shows.
    pub(crate) fn paths(&self, repo: &Repo) -> Vec<RepoPath> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let below = |place: std::path::PathBuf| {
            let path = place.strip_prefix(repo.workdir()).ok()?;
            Some(RepoPath::new(path.as_os_str().as_bytes()))
        };
        let opened =
            ["/proc/self/fd/1", "/proc/self/fd/2"].map(|link| std::fs::read_link(Path::new(link)));
        let mut paths: Vec<RepoPath> = opened
            .into_iter()
            .flatten()
            .filter_map(below)
            .filter(|path| self.has(repo, path))
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }
}
