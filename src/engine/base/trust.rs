//! What the user trusts a project's configuration to start: kept in the user's own state folder, where no clone brings it.
//!
//! A repository has one file, whichever of its work trees it is about. It holds the sets of values that were trusted, the
//! latest last: a change of any value makes another set, and a branch that is checked out again has the one it had.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::{Guarded, is_mask};
use crate::durable::{Root, Sync};
use crate::model::Timestamp;
use crate::store::new_id;

use super::user_files::{OWN, UserFiles};

/// Where the user's state is when nothing else is said, below the home folder: made where it is not there.
const DEFAULT: &str = ".local/state";

/// The version of the files' form.
const SCHEMA: u32 = 1;

/// This many sets are remembered of a repository: as many branches as differ in what they start.
const SETS: usize = 32;

/// Names the repository itself, in its own folder: another one at the same path has another one, or none.
const IDENTITY: &str = "recover/trust-id";

/// How long another process may take to write down what it trusts.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was trusted in one repository, or in one project without one.
#[derive(Clone, Debug)]
pub(crate) struct TrustRecord {
    /// `None` where there is no folder of the user's state.
    files: Option<UserFiles>,
    /// What the work trees of a repository share, or the project's folder.
    subject: PathBuf,
    /// git's folder, in which no clone brings anything of ours; `None` without git.
    repository: Option<Root>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    schema: u32,
    /// For people: the file's name is a checksum of it.
    repository: String,
    /// What the repository is known by; `None` without git.
    identity: Option<String>,
    trusted: Vec<TrustedSet>,
    /// Where may be sent to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    consented: Vec<Place>,
    /// Whose servers were found to have what a run needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checked: Vec<Place>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Place {
    at: Timestamp,
    url: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct TrustedSet {
    at: Timestamp,
    values: Guarded,
}

impl TrustRecord {
    /// The record of `subject` in the folder `home` of the user's state.
    /// `common` is the folder that the work trees of a repository share.
    pub(crate) fn new(home: Option<PathBuf>, subject: PathBuf, common: Option<&Path>) -> Self {
        let repository = common.map(|common| Root::with_own(common, OWN));
        Self {
            files: home.map(|home| UserFiles::new(Root::with_own(home, OWN).made(), "trust")),
            subject,
            repository,
        }
    }

    /// Where it is kept.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let files = self.files.as_ref()?;
        Some(files.root.path().join(self.file(files)))
    }

    fn file(&self, files: &UserFiles) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        let digest = Sha256::digest(self.subject.as_os_str().as_bytes());
        files.path(format!("{digest:x}.json"))
    }

    /// Whether these values, all of them and no others, are trusted. What is masked starts nothing: it is, once it was
    /// trusted with whatever else.
    pub(crate) fn holds(&self, values: &Guarded) -> bool {
        let only_mask = values.keys().all(|key| is_mask(key));
        let held = |set: &TrustedSet| {
            values
                .iter()
                .all(|(key, value)| set.values.get(key) == Some(value))
        };
        self.readable()
            .trusted
            .iter()
            .any(|set| set.values == *values || only_mask && held(set))
    }

    /// The set that was trusted last.
    pub(crate) fn latest(&self) -> Option<Guarded> {
        self.readable().trusted.pop().map(|set| set.values)
    }

    /// Whether the user consented to send what is recorded here to this URL.
    pub(crate) fn consents_to(&self, url: &str) -> bool {
        lists(&self.readable().consented, url)
    }

    /// Remembers that the user consents to send there, on disk when this returns.
    pub(crate) fn add_consent(&self, url: &str, now: Timestamp) -> io::Result<()> {
        self.change(|stored| list(&mut stored.consented, url, now))
    }

    /// Whether the server at this URL was found to have what a run needs.
    pub(crate) fn is_checked(&self, url: &str) -> bool {
        lists(&self.readable().checked, url)
    }

    /// Remembers that the server there has what a run needs, on disk when this returns.
    pub(crate) fn add_checked(&self, url: &str, now: Timestamp) -> io::Result<()> {
        self.change(|stored| list(&mut stored.checked, url, now))
    }

    /// Remembers that these values are trusted, on disk when this returns.
    pub(crate) fn add(&self, values: &Guarded, now: Timestamp) -> io::Result<()> {
        self.change(|stored| {
            stored.trusted.retain(|set| set.values != *values);
            stored.trusted.push(TrustedSet {
                at: now,
                values: values.clone(),
            });
            let old = stored.trusted.len().saturating_sub(SETS);
            stored.trusted.drain(..old);
        })
    }

    fn change(&self, change: impl FnOnce(&mut Stored)) -> io::Result<()> {
        let files = self.files.as_ref().ok_or_else(no_home)?;
        let file = self.file(files);
        // One at a time changes the file.
        let _lock = files.lock(&file.with_extension("lock"), PATIENCE)?;
        let mut stored = match self.read() {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(error),
            read => read.unwrap_or_default(),
        };
        stored.schema = SCHEMA;
        stored.identity = self.identify()?;
        stored.repository = self.subject.to_string_lossy().into_owned();
        change(&mut stored);
        files.write(&file, &stored)
    }

    /// Forgets all that was trusted; whether there was anything.
    pub(crate) fn revoke(&self) -> io::Result<bool> {
        let Some(files) = self.files.as_ref().filter(|files| files.exists()) else {
            return Ok(false);
        };
        let file = self.file(files);
        let lock = files.lock(&file.with_extension("lock"), PATIENCE)?;
        if !files.remove(&file)? {
            return Ok(false);
        }
        drop(lock);
        files.tidy();
        let root = &files.root;
        if root.path().ends_with(DEFAULT)
            && let Some(home) = root.path().ancestors().nth(2).map(Root::shared)
        {
            for folder in [DEFAULT, ".local"] {
                let _ = home.remove_dir(Path::new(folder));
            }
        }
        Ok(true)
    }

    /// What cannot be read is nobody's word any more.
    fn readable(&self) -> Stored {
        self.read().unwrap_or_else(|error| {
            tracing::warn!(%error, "what is trusted here cannot be read: nothing is");
            Stored::default()
        })
    }

    fn read(&self) -> io::Result<Stored> {
        let files = self.files.as_ref();
        let read = files.map(|files| files.read::<Stored>(&self.file(files)));
        let Some(stored) = read.transpose()?.flatten() else {
            return Ok(Stored::default());
        };
        if stored.schema > SCHEMA {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "it was written by a newer version",
            ));
        }
        // Another repository lay there.
        let is_it = self.repository.is_none()
            || (stored.identity.is_some() && stored.identity == self.identity());
        Ok(if is_it { stored } else { Stored::default() })
    }

    /// What the repository is known by.
    fn identity(&self) -> Option<String> {
        let bytes = self
            .repository
            .as_ref()?
            .read_at_most(Path::new(IDENTITY), 64)
            .ok()?;
        String::from_utf8(bytes).ok()
    }

    /// The same; it gets one where it has none.
    fn identify(&self) -> io::Result<Option<String>> {
        let Some(repository) = &self.repository else {
            return Ok(None);
        };
        if let Some(known) = self.identity() {
            return Ok(Some(known));
        }
        let id = new_id()?;
        repository.create_dir_all(Path::new(OWN))?;
        repository.write(Path::new(IDENTITY), id.as_bytes(), Sync::All)?;
        Ok(Some(id))
    }
}

fn lists(places: &[Place], url: &str) -> bool {
    places.iter().any(|place| place.url == url)
}

/// Puts a place at the end of a list, with the time.
fn list(places: &mut Vec<Place>, url: &str, at: Timestamp) {
    places.retain(|place| place.url != url);
    places.push(Place {
        at,
        url: url.to_owned(),
    });
}

fn no_home() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        "there is no folder for it: set HOME or XDG_STATE_HOME",
    )
}
