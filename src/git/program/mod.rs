//! The user's own `git`, for what only it does: clean filters, signing, the author of a commit, and its pager.
//!
//! [`Staging`] makes commits beside HEAD and the index: in an index of its own, with objects that nobody sees before they are
//! published. [`CommitJournal::conclude`] then moves the branch and lets the user's index follow, and the journal says what was
//! meant meanwhile, so that a kill leaves either everything as it was or something to finish.
//!
//! This room and [`remote`](super::remote) are the ones that start a program.

mod compared;
mod conclude;
mod held;
mod linked;
mod merge;
mod scratch;
mod staging;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::base::{At as _, Error, Result, parse_oid};
use super::odb::database::Database;
use super::repo::repository::Repo;
use crate::model::{Entry, EntryKind, RepoPath};

pub(crate) use conclude::CommitJournal;
pub(crate) use held::Held;
pub(crate) use scratch::Scratch;
pub(crate) use staging::Staging;

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

impl Repo {
    /// The variables of git's in this process's environment that would lead it elsewhere.
    pub(crate) fn misleading_variables() -> Vec<OsString> {
        let misleads = |name: &OsString| {
            let name = name.as_encoded_bytes();
            name.starts_with(b"GIT_") && !KEPT.iter().any(|kept| name.starts_with(kept.as_bytes()))
        };
        std::env::vars_os()
            .map(|(name, _)| name)
            .filter(misleads)
            .collect()
    }

    /// Whether the user's commits are signed.
    pub(in crate::git) fn signs_commits(&self) -> bool {
        self.config()
            .is_ok_and(|config| config.get_bool("commit.gpgsign").unwrap_or(false))
    }

    /// The full name of a branch; `None` where that is no name for one.
    pub(crate) fn branch_ref(name: &str) -> Option<String> {
        let full = format!("refs/heads/{name}");
        let is_name =
            !name.starts_with('-') && name != "HEAD" && git2::Reference::is_valid_name(&full);
        is_name.then_some(full)
    }
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
        self.run_until(words, input, 0).map(|(_, out)| out)
    }

    /// [`Self::run`] of a command that answers by its exit code, which is at most `most` then.
    pub(super) fn run_until<S: AsRef<OsStr>>(
        &self,
        words: &[S],
        input: &[u8],
        most: i32,
    ) -> Result<(i32, Vec<u8>)> {
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
        for name in Repo::misleading_variables() {
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
        if let Some(code) = output.status.code().filter(|code| *code <= most) {
            return Ok((code, output.stdout));
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
fn place(repo: &Repo, workdir: &Path, index: &Path) -> Vec<(OsString, OsString)> {
    vec![
        ("GIT_DIR".into(), repo.git_dir().into()),
        ("GIT_WORK_TREE".into(), workdir.into()),
        ("GIT_INDEX_FILE".into(), index.into()),
    ]
}

/// Writes a file or link of a checkpoint to a place where nothing is, in a folder that is there.
fn write_entry(database: &Database<'_>, place: &Path, entry: &Entry, mode: u32) -> Result<()> {
    let oid = parse_oid(&entry.oid)?;
    if entry.kind == EntryKind::Symlink {
        let target = database.blob(oid)?;
        return symlink(OsStr::from_bytes(&target), place).at(place);
    }
    let mut file = fs::File::create_new(place).at(place)?;
    database.copy_blob(oid, &mut file).at(place)??;
    file.set_permissions(fs::Permissions::from_mode(mode))
        .at(place)
}

/// What git starts where nobody says anything.
const USUAL: &str = "less";

/// The command that git would show the output of `git KIND` with: `GIT_PAGER`, `pager.KIND`, `core.pager`, `PAGER`, else
/// `less`. `None` where it would print it.
///
/// Only what the user and the system say counts, not what a repository says of itself: that may have come with it, and would
/// be started.
pub(crate) fn pager(kind: &str) -> Option<String> {
    let of_kind = asked(&["config", "--get", &format!("pager.{kind}")]);
    let own = match of_kind.as_deref().map(str::to_ascii_lowercase).as_deref() {
        Some("false" | "no" | "off" | "0" | "") => return None,
        None | Some("true" | "yes" | "on" | "1") => None,
        Some(_) => of_kind,
    };
    let from_env = |name: &str| std::env::var(name).ok();
    let general = || asked(&["config", "--get", "core.pager"]);
    let found = from_env("GIT_PAGER")
        .or(own)
        .or_else(general)
        .or_else(|| from_env("PAGER"));
    let command = found.unwrap_or_else(|| USUAL.to_owned());
    (!matches!(command.trim(), "" | "cat")).then_some(command)
}

/// What git says, asked outside of any repository; `None` where it says nothing, or is not there.
fn asked<S: AsRef<OsStr>>(words: &[S]) -> Option<String> {
    let mut command = Command::new("git");
    command
        .args(words)
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    for place in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
        command.env_remove(place);
    }
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let said = String::from_utf8(output.stdout).ok()?;
    Some(said.trim_end_matches('\n').to_owned())
}

/// Copies of files and links, by which what changed since is found and put back.
#[derive(Debug)]
pub(crate) struct Saved {
    /// Where the copies are, by the number of their path.
    folder: PathBuf,
    top: PathBuf,
    paths: Vec<RepoPath>,
}

impl Saved {
    /// Copies what is at `paths` below `top` into an empty folder.
    fn new(folder: PathBuf, top: &Path, paths: &BTreeSet<RepoPath>) -> Result<Self> {
        let saved = Self {
            folder,
            top: top.to_owned(),
            paths: paths.iter().cloned().collect(),
        };
        saved
            .pairs()
            .try_for_each(|(_, place, copy)| copy_file(&place, &copy))?;
        Ok(saved)
    }

    /// Each path, where it is, and where its copy is.
    fn pairs(&self) -> impl Iterator<Item = (&RepoPath, PathBuf, PathBuf)> {
        let numbered = self.paths.iter().enumerate();
        numbered.map(|(number, path)| {
            (
                path,
                path.below(&self.top),
                self.folder.join(number.to_string()),
            )
        })
    }

    /// Whether this path is one of them.
    pub(crate) fn has(&self, path: &RepoPath) -> bool {
        self.paths.binary_search(path).is_ok()
    }

    /// The paths that are not as they were.
    pub(crate) fn changed(&self) -> Result<BTreeSet<RepoPath>> {
        let mut changed = BTreeSet::new();
        for (path, place, copy) in self.pairs() {
            if content_of(&place)? != content_of(&copy)? {
                changed.insert(path.clone());
            }
        }
        Ok(changed)
    }

    /// Puts back what is not as it was.
    pub(crate) fn put_back(&self) -> Result<()> {
        let changed = self.changed()?;
        self.pairs()
            .filter(|(path, ..)| changed.contains(*path))
            .try_for_each(|(_, place, copy)| {
                if copy.symlink_metadata().is_err() {
                    return fs::remove_file(&place).at(&place);
                }
                let parent = place.parent().unwrap_or(&self.top);
                fs::create_dir_all(parent).at(parent)?;
                let beside = tempfile::Builder::new()
                    .prefix(".recover-tmp-")
                    .tempdir_in(parent)
                    .at(parent)?;
                let new = beside.path().join("file");
                copy_file(&copy, &new)?;
                fs::rename(&new, &place).at(&place)
            })
    }
}

/// Copies a file with its mode, or a link; anything else is left out.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    match from.symlink_metadata() {
        Ok(found) if found.is_file() => fs::copy(from, to).map(drop).at(from),
        Ok(found) if found.is_symlink() => {
            let target = fs::read_link(from).at(from)?;
            symlink(target, to).at(to)
        }
        _ => Ok(()),
    }
}

/// What distinguishes two files: mode and content of a file, target of a link; `None` for anything else.
fn content_of(path: &Path) -> Result<Option<(u32, Vec<u8>)>> {
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => {
            let content = fs::read(path).at(path)?;
            Ok(Some((found.permissions().mode(), content)))
        }
        Ok(found) if found.is_symlink() => {
            let target = fs::read_link(path).at(path)?;
            Ok(Some((0, target.into_os_string().into_vec())))
        }
        _ => Ok(None),
    }
}
