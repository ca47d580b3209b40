//! The user's own `git`, for what only it does: clean filters, signing, and the author of a commit.
//!
//! [`Staging`] makes commits beside HEAD and the index: in an index of its own, with objects that nobody sees before they are
//! published. [`conclude()`] then moves the branch and lets the user's index follow, and a [`CommitJournal`] says what was
//! meant meanwhile, so that a kill leaves either everything as it was or something to finish.
//!
//! This room and [`remote`](super::remote) are the ones that start a program.

mod conclude;
mod journal;
mod pager;
mod saved;
mod scratch;
mod staging;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::base::error::{Error, Result};
use super::repo::repository::Repo;

pub(crate) use conclude::{Kept, conclude, has_moved, kept_ref, take_back};
pub(crate) use journal::CommitJournal;
pub(crate) use pager::pager;
pub(crate) use saved::Saved;
pub(crate) use scratch::Scratch;
pub(crate) use staging::{Held, Staging, write_beside};

/// Variables of git's that say nothing of where it works: who commits, which configuration is the user's, how to connect.
const KEPT: [&str; 9] = [
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_ASKPASS",
    "GIT_TRACE",
];

/// The variables of git's in this process's environment that would lead it elsewhere.
pub(crate) fn misleading_variables() -> Vec<OsString> {
    let misleads = |name: &OsStr| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"GIT_") && !KEPT.iter().any(|kept| name.starts_with(kept.as_bytes()))
    };
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| misleads(name))
        .collect()
}

/// The full name of a branch; `None` where that is no name for one.
pub(crate) fn branch_ref(name: &str) -> Option<String> {
    let full = format!("refs/heads/{name}");
    let is_name = !name.starts_with('-') && name != "HEAD" && git2::Reference::is_valid_name(&full);
    is_name.then_some(full)
}

/// A call of git's in `folder`, with these variables alone of those that say where it works.
pub(in crate::git) struct Call<'a> {
    pub folder: &'a Path,
    pub env: &'a [(OsString, OsString)],
}

/// What every call is configured with: nothing that starts a daemon, or that keeps a part of a temporary index elsewhere.
const CONFIGURED: [&str; 8] = [
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.splitIndex=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "advice.addEmbeddedRepo=false",
];

impl Call<'_> {
    /// Runs git to its end; what it prints on stdout, or an error with what it says.
    pub(super) fn run<S: AsRef<OsStr>>(&self, words: &[S], input: &[u8]) -> Result<Vec<u8>> {
        let what = words
            .iter()
            .map(AsRef::as_ref)
            .find(|word| !word.as_encoded_bytes().starts_with(b"-"));
        let name = || format!("git {}", what.unwrap_or_default().to_string_lossy());
        let mut command = Command::new("git");
        command
            .args(CONFIGURED)
            .args(words)
            .current_dir(self.folder);
        for name in misleading_variables() {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let failed = |error: std::io::Error| {
            let is_missing = error.kind() == std::io::ErrorKind::NotFound && self.folder.is_dir();
            let said = if is_missing {
                "there is no program git on PATH".to_owned()
            } else {
                error.to_string()
            };
            Error::Program { name: name(), said }
        };
        let mut child = command.spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // A program that does not read its input says why.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        });
        let output = output.map_err(failed)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = if said.trim().is_empty() {
            output.status.to_string()
        } else {
            said.trim().to_owned()
        };
        Err(Error::Program { name: name(), said })
    }
}

/// The variables that say where git works: this repository, with another index.
pub(in crate::git) fn place(
    repo: &Repo,
    workdir: &Path,
    index: &Path,
) -> Vec<(OsString, OsString)> {
    vec![
        ("GIT_DIR".into(), repo.git_dir().into()),
        ("GIT_WORK_TREE".into(), workdir.into()),
        ("GIT_INDEX_FILE".into(), index.into()),
    ]
}
