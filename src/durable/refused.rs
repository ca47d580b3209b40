//! Rejects special files (symbolic links, FIFOs, sockets, devices) where our files belong.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::model::hint::{Hint, Place};

/// What belongs in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A regular file without another name: it serves as a lock, and two locks that are one wait for each other for ever.
    OneName,
    /// A regular file without holes.
    Solid,
}

/// A link, FIFO, socket or device in a place of ours, or a folder in that of a file (exit 13). Nothing was read from it
/// or written to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {}", path.display(), match wanted {
    Wanted::File => format!("is {}, and recover reads and writes only an ordinary file there", name_of(*found)),
    Wanted::Folder => format!("is {}, and recover reads and writes only in a real folder there", name_of(*found)),
    Wanted::OneName => "has another name elsewhere (a hard link): recover locks only a file of its own".to_owned(),
    Wanted::Solid => "is a large file with holes, and recover reads only one that was written throughout".to_owned(),
})]
pub struct Refused {
    /// Where it is.
    pub path: PathBuf,
    found: FileType,
    wanted: Wanted,
}

impl Refused {
    pub(super) fn new(path: &Path, found: FileType, wanted: Wanted) -> Self {
        Self {
            path: path.to_owned(),
            found,
            wanted,
        }
    }

    /// Whether this is why something failed.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Whether it is a folder, which makes way for nothing.
    pub fn is_folder(&self) -> bool {
        self.found == FileType::Directory
    }

    /// Where a link in the state directory's place leads, if state lies there: a user's who put it elsewhere, which is
    /// named with `--state-dir` or `RECOVER_STATE_DIR`.
    pub fn state_elsewhere(&self) -> Option<PathBuf> {
        let is_state = self.found == FileType::Symlink && self.path.ends_with(".ultraplan/state");
        let target = is_state.then(|| self.path.canonicalize().ok()).flatten()?;
        target.join("events.jsonl").is_file().then_some(target)
    }

    /// A command that takes it out of the way, from any folder. Only what holds nothing is removed; where a link leads to
    /// state, the command that uses that state.
    pub fn hint(&self) -> Hint {
        if let Some(target) = self.state_elsewhere() {
            let project = self
                .path
                .ancestors()
                .nth(2)
                .unwrap_or(&self.path)
                .to_owned();
            return Hint::recover(["status"]).at(Place {
                folder: project,
                state_dir: Some(target),
            });
        }
        if !matches!(self.found, FileType::Directory | FileType::RegularFile) {
            return Hint::program("rm").arg(&self.path);
        }
        let numbers = (2..).map(|number: u32| format!("-{number}"));
        let aside = std::iter::once(String::new()).chain(numbers).map(|number| {
            let mut aside = self.path.clone().into_os_string();
            aside.push(format!(".aside{number}"));
            aside
        });
        let mut free = aside.filter(|aside| Path::new(aside).symlink_metadata().is_err());
        Hint::program("mv")
            .arg(&self.path)
            .arg(free.next().unwrap_or_default())
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        Self::new(io::ErrorKind::InvalidInput, refused)
    }
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    }
}
