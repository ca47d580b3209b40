//! What the user trusts a project's configuration to start: kept in the user's own state folder, where no clone brings it.
//!
//! A repository has one file, whichever of its work trees it is about. It holds the sets of values that were trusted, the
//! latest last: a change of any value makes another set, and a branch that is checked out again has the one it had.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::Guarded;
use crate::durable::{Root, Sync};
use crate::model::time::Timestamp;

/// Our own folder in that of the user's state, and the one of trust in it.
const OWN: &str = "recover";
const FOLDER: &str = "recover/trust";

/// Where the user's state is when nothing else is said, below the home folder: made where it is not there.
const DEFAULT: &str = ".local/state";

/// The version of the files' form.
const SCHEMA: u32 = 1;

/// So many sets are remembered of a repository: as many branches as differ in what they start.
const SETS: usize = 32;

/// More than any such file has, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// What was trusted in one repository, or in one project without one.
#[derive(Clone, Debug)]
pub struct TrustRecord {
    /// The folder of the user's state; `None` where there is none to keep anything in.
    root: Option<Root>,
    /// What the work trees of a repository share, or the project's folder.
    subject: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    schema: u32,
    /// For people: the file's name is a checksum of it.
    repository: String,
    trusted: Vec<TrustedSet>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TrustedSet {
    at: Timestamp,
    values: Guarded,
}

impl TrustRecord {
    /// The record of `subject` in the folder `home` of the user's state.
    pub fn new(home: Option<PathBuf>, subject: PathBuf) -> Self {
        Self { root: home.map(|home| Root::with_own(home, OWN)), subject }
    }

    /// Where it is kept.
    pub fn path(&self) -> Option<PathBuf> {
        Some(self.root.as_ref()?.path().join(self.name()))
    }

    fn name(&self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        let digest = Sha256::digest(self.subject.as_os_str().as_bytes());
        Path::new(FOLDER).join(format!("{digest:x}.json"))
    }

    /// Whether these values, all of them and no others, are trusted.
    pub fn holds(&self, values: &Guarded) -> bool {
        self.readable().trusted.iter().any(|set| set.values == *values)
    }

    /// The set that was trusted last.
    pub fn latest(&self) -> Option<Guarded> {
        self.readable().trusted.pop().map(|set| set.values)
    }

    /// Remembers that these values are trusted, on disk when this returns.
    pub fn add(&self, values: &Guarded, now: Timestamp) -> io::Result<()> {
        let root = self.root.as_ref().ok_or_else(no_home)?;
        let mut stored = self.readable();
        stored.schema = SCHEMA;
        stored.repository = self.subject.to_string_lossy().into_owned();
        stored.trusted.retain(|set| set.values != *values);
        stored.trusted.push(TrustedSet { at: now, values: values.clone() });
        let old = stored.trusted.len().saturating_sub(SETS);
        stored.trusted.drain(..old);
        root.create_dir_all(Path::new(FOLDER))?;
        root.write(&self.name(), &serde_json::to_vec_pretty(&stored)?, Sync::All)
    }

    /// Forgets all that was trusted; whether there was anything.
    pub fn revoke(&self) -> io::Result<bool> {
        let Some(root) = &self.root else { return Ok(false) };
        match root.remove_file(&self.name()) {
            Ok(()) => {
                // Folders that hold others stay.
                for folder in [FOLDER, OWN] {
                    let _ = root.remove_dir(Path::new(folder));
                }
                let home = root.path().ancestors().nth(2).filter(|_| root.path().ends_with(DEFAULT));
                if let Some(home) = home.map(Root::shared) {
                    for folder in [DEFAULT, ".local"] {
                        let _ = home.remove_dir(Path::new(folder));
                    }
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What cannot be read is nobody's word any more.
    fn readable(&self) -> Stored {
        self.read().unwrap_or_else(|error| {
            tracing::warn!(%error, "what is trusted here cannot be read: nothing is");
            Stored::default()
        })
    }

    fn read(&self) -> io::Result<Stored> {
        let Some(root) = &self.root else { return Ok(Stored::default()) };
        let bytes = match root.read_at_most(&self.name(), MAX_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::default()),
            Err(error) => return Err(error),
        };
        let stored: Stored = serde_json::from_slice(&bytes)?;
        if stored.schema > SCHEMA {
            return Err(io::Error::other("it was written by a newer version"));
        }
        Ok(stored)
    }
}

fn no_home() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "there is no folder for it: set HOME or XDG_STATE_HOME")
}
