//! Objects on their way to a store and from it: packs, made and read by the user's git.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use git2::Repository;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::durable::temporary_prefix;
use crate::git::base::error::{At as _, Error, Result};
use crate::git::remote::answer::{Answer, Missed};
use crate::git::remote::call::{self, Ended, Limits, git};
use crate::git::remote::transport::{FETCH, fetched};
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;

/// How long a call may take that reaches no server.
const LOCAL: Duration = Duration::from_secs(30 * 60);
/// No pack is larger: a store takes no more in one request.
const LARGEST: &str = "--max-pack-size=2g";

/// A pack in a folder for the moment.
pub(super) struct PackFile {
    pub path: PathBuf,
    pub sha256: String,
    pub size: u64,
}

/// A folder for the moment, beside what is recorded of this repository.
pub(super) fn folder(repo: &Repo) -> Result<TempDir> {
    let parent = repo.recover_dir()?;
    let prefix = format!("{}store", temporary_prefix());
    tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(&parent)
        .at(&parent)
}

/// Runs git on what is here; what it prints.
fn run(mut command: Command, limits: &Limits<'_>) -> Result<String> {
    command.env("GIT_NO_LAZY_FETCH", "1");
    call::run(command, false, &limits.lasting(LOCAL))?.printed("git, for a store")
}

/// The commits of the user's own history that a commit leads to, where that history begins.
pub(super) fn bases(repo: &Repo, commit: &ObjectId, limits: &Limits<'_>) -> Result<Vec<ObjectId>> {
    let mut command = git(Some(repo));
    command.args(["rev-list", "--boundary", &commit.0]);
    command.args(["--not", "--branches", "--remotes", "--tags"]);
    let head = repo.inner.head().ok().and_then(|head| head.target());
    command.args(head.map(|head| head.to_string()));
    let listed = run(command, limits)?;
    let ends = listed.lines().filter_map(|line| line.strip_prefix('-'));
    Ok(ends.map(|id| ObjectId(id.to_owned())).collect())
}

/// The nearest of some commits that one comes after.
pub(super) fn nearest(
    repo: &Repo,
    commit: &ObjectId,
    of: &[ObjectId],
    limits: &Limits<'_>,
) -> Result<Option<ObjectId>> {
    if of.is_empty() {
        return Ok(None);
    }
    let mut command = git(Some(repo));
    command.args(["rev-list", "--topo-order", &commit.0]);
    let listed = run(command, limits)?;
    let mut before = listed.lines().map(|id| ObjectId(id.to_owned()));
    Ok(before.find(|id| of.contains(id)))
}

/// Packs of what a commit has that others have not, in a folder. Each is whole by itself: none has a delta to another's object.
pub(super) fn pack(
    repo: &Repo,
    folder: &Path,
    commit: &ObjectId,
    without: &[ObjectId],
    limits: &Limits<'_>,
) -> Result<Vec<PackFile>> {
    let mut revisions = format!("{commit}\n");
    for known in without {
        revisions.push_str(&format!("^{known}\n"));
    }
    let input = folder.join("revisions");
    fs::write(&input, revisions).at(&input)?;
    let mut command = git(Some(repo));
    command.args([
        "pack-objects",
        "--revs",
        "--quiet",
        "--delta-base-offset",
        LARGEST,
    ]);
    if repo.is_partial_clone() {
        command.arg("--exclude-promisor-objects");
    }
    command.arg(folder.join("new"));
    command.stdin(fs::File::open(&input).at(&input)?);
    let names = run(command, limits)?;
    let packs = names.lines().map(|name| {
        let path = folder.join(format!("new-{name}.pack"));
        let (sha256, size) = digest(&path)?;
        Ok(PackFile { path, sha256, size })
    });
    packs.collect()
}

/// The SHA-256 of a file and its size.
pub(super) fn digest(path: &Path) -> Result<(String, u64)> {
    let mut hash = Sha256::new();
    let mut file = fs::File::open(path).at(path)?;
    let size = io::copy(&mut file, &mut hash).at(path)?;
    Ok((format!("{:x}", hash.finalize()), size))
}

/// A repository for the moment with what came from a store, which nothing here sees before git has taken it.
pub(super) struct Quarantine {
    folder: TempDir,
}

impl Quarantine {
    /// An empty one, which knows all objects that are here.
    pub(super) fn new(repo: &Repo) -> Result<Self> {
        let folder = folder(repo)?;
        Repository::init_bare(folder.path())
            .map_err(Error::git("make a repository for the moment"))?;
        let known = repo.common_dir().join("objects");
        let alternates = folder.path().join("objects/info/alternates");
        let line = [known.as_os_str().as_encoded_bytes(), b"\n"].concat();
        fs::write(&alternates, line).at(&alternates)?;
        // What a shallow clone does not have is not missing.
        let shallow = repo.common_dir().join("shallow");
        if shallow.exists() {
            fs::copy(&shallow, folder.path().join("shallow")).at(&shallow)?;
        }
        Ok(Self { folder })
    }

    /// Where a pack is to be put.
    pub(super) fn place(&self, sha256: &str) -> PathBuf {
        self.folder
            .path()
            .join(format!("objects/pack/pack-{sha256}.pack"))
    }

    /// Takes a pack that was put in its place, if it is the one.
    pub(super) fn take(&self, sha256: &str, limits: &Limits<'_>) -> Result<()> {
        let path = self.place(sha256);
        let (found, _) = digest(&path)?;
        if found != sha256 {
            return Err(Error::corrupt(format!(
                "pack {sha256} of the store has other content: {found}"
            )));
        }
        let mut command = git(None);
        command
            .env("GIT_DIR", self.folder.path())
            .arg("index-pack")
            .arg(&path);
        run(command, limits).map(drop).map_err(|error| match error {
            Error::Program { said, .. } => {
                Error::corrupt(format!("pack {sha256} of the store: {said}"))
            }
            other => other,
        })
    }

    /// Has git fetch commits from here to references of the repository, as from any server: it verifies them all. Why not, where
    /// it does not take them.
    pub(super) fn hand_over(
        &self,
        repo: &Repo,
        commits: &[(ObjectId, String)],
        limits: &Limits<'_>,
    ) -> Answer<Option<String>> {
        let mut command = git(Some(repo));
        // It is our own folder, whatever the user allows of others.
        command
            .env("GIT_ALLOW_PROTOCOL", "file")
            .args(FETCH)
            .args(["--no-filter", "--"]);
        command.arg(self.folder.path());
        for (number, (commit, to)) in commits.iter().enumerate() {
            let name = format!("refs/wanted/{number}");
            let place = self.folder.path().join(&name);
            fs::create_dir_all(self.folder.path().join("refs/wanted")).at(&place)?;
            fs::write(&place, format!("{commit}\n")).at(&place)?;
            command.arg(format!("+{name}:{to}"));
        }
        let ended: Ended = call::run(command, false, &limits.lasting(LOCAL))?;
        match fetched(&ended) {
            Ok(()) => Ok(None),
            Err(failed @ Missed::Failed(_)) => Err(failed),
            Err(_) => Ok(Some(ended.said)),
        }
    }
}
