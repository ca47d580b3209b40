//! The ids of our own state directories, kept where no clone and no archive brings them along.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::durable::{Kind, Refused, Root};

/// Bytes of an id, before they are written as text.
pub(super) const ID_BYTES: usize = 16;

/// Below each place: our own folder, and the one of ids in it.
const OWN: &str = "recover";
const IDS: &str = "recover/states";

/// The places in which the ids of state directories are kept, one file each. New ones go to the first.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    places: Vec<Root>,
}

impl Registry {
    /// The folders in which `recover` has one of its own: a repository's, which is for new ids, and the user's.
    pub fn new(repository: Option<&Path>, user: Option<PathBuf>) -> Self {
        let repository = repository.map(|folder| Root::with_own(folder, OWN));
        let user = user.map(|folder| Root::with_own(folder, OWN).made());
        Self {
            places: repository.into_iter().chain(user).collect(),
        }
    }

    /// Where new ids go; `None` where ids are not kept.
    pub(super) fn first(&self) -> Option<PathBuf> {
        self.places.first().map(|place| place.path().join(IDS))
    }

    /// Whether the id is one of ours.
    pub(super) fn knows(&self, id: &str) -> io::Result<bool> {
        for place in &self.places {
            if is_kept(place, id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the id is in the first folder.
    pub(super) fn holds(&self, id: &str) -> io::Result<bool> {
        self.places
            .first()
            .map_or(Ok(false), |place| is_kept(place, id))
    }

    /// Keeps `id`, of the state directory `dir`, in the first folder, on disk when this returns.
    pub(super) fn add(&self, id: &str, dir: &Path) -> io::Result<()> {
        let Some(place) = self.places.first() else {
            return Ok(());
        };
        let folder = Path::new(IDS);
        place.create_dir_all(folder)?;
        // That it is there is all that counts; whose id it is stands in it for people.
        let mut made = place.open_or_create(&folder.join(id))?;
        made.write_all(format!("{}\n", dir.display()).as_bytes())?;
        made.sync_all()?;
        place.sync_dir(folder)?;
        place.sync_dir(Path::new(OWN))
    }

    /// Forgets an id, wherever it is kept.
    pub(super) fn remove(&self, id: &str) {
        for place in self
            .places
            .iter()
            .filter(|place| is_kept(place, id).unwrap_or(true))
        {
            if let Err(error) = place.remove_file(&Path::new(IDS).join(id)) {
                tracing::debug!(%error, "the id of a state directory is still known");
            }
            // Folders that hold others stay.
            for folder in [IDS, OWN] {
                let _ = place.remove_dir(Path::new(folder));
            }
        }
    }
}

fn is_kept(place: &Root, id: &str) -> io::Result<bool> {
    let kind = unless_absent(place.kind(&Path::new(IDS).join(id)))?;
    Ok(kind.flatten() == Some(Kind::RegularFile))
}

/// `None` where the thing is not there, or is not one that is taken for it; an error only where the system could not look.
pub(super) fn unless_absent<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => {
            Ok(None)
        }
        Err(error) if Refused::of(&error).is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A random id, as text.
pub(crate) fn new_id() -> io::Result<String> {
    let mut bytes = [0; ID_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

/// Whose the state is that a state directory holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// It was made here, or taken over, or there is nothing yet.
    #[default]
    Ours,
    /// It came from elsewhere.
    Foreign(Foreign),
}

/// Why state counts as foreign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    #[error("git tracks it, and it is not what was recorded here")]
    Tracked,
    /// Its id is not known here, or it has none.
    #[error("it was not made here")]
    UnknownId,
}

impl Foreign {
    /// Its word in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tracked => "tracked_by_git",
            Self::UnknownId => "unknown_id",
        }
    }
}
