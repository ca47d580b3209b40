//! What another user left where this one is to write: `sudo recover` does, as `sudo git` does.

use std::path::{Path, PathBuf};

use crate::engine::base::error::{Error, ErrorKind};
use crate::git::repo::owner;
use crate::model::hint::Hint;

use super::Context;

/// What a project without git is known by.
const PROJECT: &str = ".ultraplan";

/// How deep our folders are looked into: as deep as a run's logs and references are.
const DEPTH: usize = 5;

/// Places of ours in which something is another user's.
#[derive(Debug)]
pub struct Left {
    places: Vec<PathBuf>,
    /// The first of it.
    pub path: PathBuf,
    /// Whose it is.
    pub owner: u32,
}

impl Left {
    /// Looks in the folders of a project and of git; `None` for root, to whom it makes no difference.
    fn find(folders: impl IntoIterator<Item = PathBuf>) -> Option<Self> {
        let found = folders
            .into_iter()
            .filter_map(|place| Some((owner::left_by_another(&place, DEPTH)?, place)));
        let (found, places): (Vec<_>, Vec<_>) = found.unzip();
        let (path, owner) = found.into_iter().next()?;
        Some(Self {
            places,
            path,
            owner,
        })
    }

    /// The command that makes it the user's again; where it is a project of another user's above the folder `start`, that
    /// makes one of the user's own there.
    pub fn hint(&self, start: &Path) -> Hint {
        if let [own] = self.places.as_slice()
            && own.ends_with(PROJECT)
            && let Some(project) = own
                .parent()
                .filter(|project| *project != start && start.starts_with(project))
            && owner::is_of_another(project)
        {
            return Hint::program("mkdir").arg(start.join(PROJECT));
        }
        let user = rustix::process::geteuid().as_raw();
        Hint::program("sudo")
            .args(["chown", "-R"])
            .arg(user.to_string())
            .args(&self.places)
    }
}

/// Folders of git's that are written to.
fn of_git(common: &Path) -> [PathBuf; 4] {
    ["recover", "refs", "objects", "logs"].map(|name| common.join(name))
}

impl Context {
    /// Looks for it where this project is written to.
    pub fn left_by_another(&self) -> Option<Left> {
        Left::find(self.written_to())
    }

    /// What makes the places writable again that this project is written to and that lack the rights of their owner.
    pub(super) fn closed_hint(&self) -> Option<Hint> {
        closed_hint(self.written_to())
    }

    fn written_to(&self) -> Vec<PathBuf> {
        let state = self.store.dir();
        let above = state
            .parent()
            .filter(|above| above.ends_with(PROJECT))
            .unwrap_or(state);
        let of_git = self
            .repo
            .get()
            .filter(|_| self.has_git)
            .map(|repo| of_git(repo.common_dir()));
        of_git
            .into_iter()
            .flatten()
            .chain([above.to_owned()])
            .collect()
    }
}

fn closed_hint(folders: impl IntoIterator<Item = PathBuf>) -> Option<Hint> {
    // What git made is read-only as a rule, what is ours is not.
    let is_ours = |folder: &Path| {
        !["refs", "objects", "logs"]
            .iter()
            .any(|name| folder.ends_with(name))
    };
    let closed: Vec<PathBuf> = folders
        .into_iter()
        .filter(|folder| owner::is_closed(folder, DEPTH, is_ours(folder)))
        .collect();
    (!closed.is_empty()).then(|| Hint::program("chmod").args(["-R", "u+rwX"]).args(closed))
}

/// The error of who may not even look at a project, with the way out where another user left something there.
pub(super) fn explained(error: Error, start: &Path) -> Error {
    if error.hint.is_some() || !is_denied(&error) {
        return error;
    }
    let folders = start.ancestors().flat_map(|folder| {
        of_git(&folder.join(".git"))
            .into_iter()
            .chain([folder.join(PROJECT)])
    });
    let folders: Vec<PathBuf> = folders.filter(|folder| folder.is_dir()).collect();
    let hint = Left::find(folders.clone())
        .map(|left| left.hint(start))
        .or_else(|| closed_hint(folders));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Whether the system did not let us.
pub(super) fn is_denied(error: &Error) -> bool {
    let mut said = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        said += &cause.to_string();
        source = cause.source();
    }
    error.kind == ErrorKind::Failed && said.to_ascii_lowercase().contains("permission denied")
}
