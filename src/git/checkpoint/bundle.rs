//! Git bundles (version 2): one file from which `git fetch` takes a checkpoint in any repository.
//!
//! What a bundle names is examined in a folder of its own, and becomes part of a repository only on request.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use git2::{Indexer, ObjectType, Odb, Oid, Repository, TreeWalkMode, TreeWalkResult};
use tempfile::TempDir;

use super::write::{name_written, read_back as read_commit_back};
use crate::git::base::{At as _, Error, Result, parse_oid};
use crate::git::odb::{Database, ObjectWriter};
use crate::git::repo::{CheckpointRef, Repo, WorktreeLock};
use crate::model::manifest::ObjectId;

impl Repo {
    /// Writes a bundle with one reference and everything that its commit needs.
    ///
    /// The history below it is included, so that an empty repository can fetch from it. Only what a shallow clone does not
    /// have itself is a prerequisite. A partial clone lacks parts of its history: there the bundle holds the commit and its
    /// parents whole, and what comes before them is a prerequisite. No program is run.
    pub(crate) fn write_bundle(
        &self,
        reference: &str,
        commit: &ObjectId,
        out: &mut dyn Write,
    ) -> Result<()> {
        let failed = || Error::git(format!("pack commit {commit}"));
        let tip = parse_oid(commit)?;
        let mut header = String::from("# v2 git bundle\n");
        let is_partial = self.is_partial_clone();
        let commits = if is_partial {
            with_parents(self, tip)?
        } else {
            Vec::new()
        };
        let before = commits.iter().flat_map(git2::Commit::parent_ids);
        let before: BTreeSet<Oid> = before
            .filter(|id| commits.iter().all(|commit| commit.id() != *id))
            .collect();
        let missing = if is_partial {
            before.into_iter().collect()
        } else {
            shallow_parents(self, tip)?
        };
        for missing in missing {
            header.push_str(&format!("-{missing}\n"));
        }
        header.push_str(&format!("{commit} {reference}\n\n"));
        let written = |error| Error::io("the bundle", error);
        out.write_all(header.as_bytes()).map_err(written)?;
        let mut pack = self.history().packbuilder().map_err(failed())?;
        if is_partial {
            for commit in &commits {
                pack.insert_commit(commit.id()).map_err(|error| Error::Unsupported(format!(
                    "this partial clone lacks objects of commit {}: git fetch --refetch --no-filter gets them ({})",
                    commit.id(),
                    error.message()
                )))?;
            }
        } else {
            let mut walk = self.history().revwalk().map_err(failed())?;
            walk.push(tip).map_err(failed())?;
            pack.insert_walk(&mut walk).map_err(failed())?;
        }
        let mut stopped = None;
        let packed = pack.foreach(|part| match out.write_all(part) {
            Ok(()) => true,
            Err(error) => {
                stopped = Some(error);
                false
            }
        });
        match stopped {
            Some(error) => Err(written(error)),
            None => packed.map_err(failed()),
        }
    }
}

/// A commit and its parents.
fn with_parents(repo: &Repo, tip: Oid) -> Result<Vec<git2::Commit<'_>>> {
    let failed = || Error::git(format!("read commit {tip}"));
    let tip = repo.inner.find_commit(tip).map_err(failed())?;
    let parents = (0..tip.parent_count())
        .map(|at| tip.parent(at))
        .collect::<std::result::Result<Vec<_>, _>>();
    Ok([vec![tip], parents.map_err(failed())?].concat())
}

/// Parents that the history of a shallow clone names and does not have, as far as `tip` reaches.
fn shallow_parents(repo: &Repo, tip: Oid) -> Result<Vec<Oid>> {
    let Ok(text) = fs::read_to_string(repo.common_dir().join("shallow")) else {
        return Ok(Vec::new());
    };
    let database = Database::open(repo)?;
    let mut missing = Vec::new();
    for boundary in text
        .lines()
        .filter_map(|line| Oid::from_str(line.trim()).ok())
    {
        if tip != boundary
            && !repo
                .history()
                .graph_descendant_of(tip, boundary)
                .unwrap_or(false)
        {
            continue;
        }
        let commit = database.read(boundary)?.data;
        let header = commit
            .split(|byte| *byte == b'\n')
            .take_while(|line| !line.is_empty());
        let parents =
            header.filter_map(|line| std::str::from_utf8(line.strip_prefix(b"parent ")?).ok());
        missing.extend(parents.filter_map(|id| Oid::from_str(id).ok()));
    }
    let odb = repo
        .inner
        .odb()
        .map_err(Error::git("open the object database"))?;
    missing.retain(|oid| !odb.exists(*oid));
    missing.sort();
    missing.dedup();
    Ok(missing)
}

/// How a bundle begins, up to its version.
const MAGIC: &[u8] = b"# v";
/// The one that is written, and read.
const VERSION: &str = "# v2 git bundle";
/// What a bundle's first line ends in, whatever its version.
const KIND: &str = " git bundle";

/// A bundle whose objects were all read, so that their checksums are right. Nothing of it is in any repository.
pub struct Unbundled {
    path: PathBuf,
    /// What it names.
    pub refs: Vec<CheckpointRef>,
    /// Commits that are not in it and that it builds on.
    pub needs: Vec<ObjectId>,
    repository: Repository,
    _folder: TempDir,
}

impl std::fmt::Debug for Unbundled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unbundled")
            .field("path", &self.path)
            .field("refs", &self.refs)
            .finish_non_exhaustive()
    }
}

impl Unbundled {
    /// Whether a file is a bundle, of any version.
    pub fn is_bundle(path: &Path) -> Result<bool> {
        let mut first = Vec::new();
        let file = File::open(path).at(path)?;
        BufReader::new(file.take(64))
            .read_until(b'\n', &mut first)
            .at(path)?;
        Ok(first.starts_with(MAGIC) && String::from_utf8_lossy(&first).trim_end().ends_with(KIND))
    }

    /// Reads a bundle. One that is cut short, or damaged anywhere, is [`Error::Corrupt`].
    pub fn read(path: &Path) -> Result<Unbundled> {
        let unread = |error| Error::io(path, error);
        let damaged = |what: &str| Error::corrupt(format!("{}: {what}", path.display()));
        let mut bundle = BufReader::new(File::open(path).map_err(unread)?);
        let (mut refs, mut needs) = (Vec::new(), Vec::new());
        for at in 0.. {
            let mut line = Vec::new();
            let length = bundle.read_until(b'\n', &mut line).map_err(unread)?;
            if length <= 1 {
                break;
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            let id = |text: &str| {
                let known = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                known
                    .then(|| ObjectId(text.to_owned()))
                    .ok_or_else(|| damaged("it is cut short or no bundle"))
            };
            match (at, line.strip_prefix('-'), line.split_once(' ')) {
                (0, ..) if line == VERSION => {}
                (0, ..) => return Err(damaged("it is no bundle of version 2")),
                (_, Some(need), _) => needs.push(id(need.split(' ').next().unwrap_or_default())?),
                (_, None, Some((commit, name))) => refs.push(CheckpointRef {
                    name: name.to_owned(),
                    commit: id(commit)?,
                }),
                (_, None, None) => return Err(damaged("it is cut short or no bundle")),
            }
        }
        let failed = |error: git2::Error| damaged(error.message());
        let folder = tempfile::tempdir().map_err(unread)?;
        let pack = folder.path().join("pack");
        fs::create_dir(&pack).map_err(unread)?;
        let mut indexer = Indexer::new(None, &pack, 0o600, false).map_err(failed)?;
        io::copy(&mut bundle, &mut indexer).map_err(|error| match error.raw_os_error() {
            Some(_) => unread(error),
            None => damaged(&error.to_string()),
        })?;
        indexer.commit().map_err(failed)?;
        let odb = Odb::new().map_err(failed)?;
        odb.add_disk_alternate(&folder.path().to_string_lossy())
            .map_err(failed)?;
        let repository = Repository::from_odb(odb).map_err(failed)?;
        Ok(Unbundled {
            path: path.to_owned(),
            refs,
            needs,
            repository,
            _folder: folder,
        })
    }

    /// Reads a bundle back: it names the commit and has it whole ([`Unbundled::check`]).
    pub(crate) fn verify(path: &Path, reference: &str, commit: &ObjectId) -> Result<()> {
        let unbundled = Unbundled::read(path)?;
        if !unbundled
            .refs
            .iter()
            .any(|found| found.name == reference && found.commit == *commit)
        {
            return Err(Error::corrupt(format!(
                "{}: it is no bundle of this checkpoint",
                path.display()
            )));
        }
        unbundled.check(commit)
    }

    /// The message of a commit that it names; `None` where that is something else.
    pub fn message(&self, commit: &ObjectId) -> Result<Option<String>> {
        let oid = parse_oid(commit)?;
        if !self.repository.odb().is_ok_and(|odb| odb.exists(oid)) {
            return Err(Error::corrupt(format!(
                "{}: {commit} is not in it",
                self.path.display()
            )));
        }
        let found = self.repository.find_commit(oid).ok();
        Ok(found.map(|commit| String::from_utf8_lossy(commit.message_bytes()).into_owned()))
    }

    /// Every file of a checkpoint's commit and of the commits beside it is in the bundle itself.
    pub fn check(&self, commit: &ObjectId) -> Result<()> {
        let failed = |error: git2::Error| {
            Error::corrupt(format!("{}: {}", self.path.display(), error.message()))
        };
        let tip = self
            .repository
            .find_commit(parse_oid(commit)?)
            .map_err(failed)?;
        let odb = self.repository.odb().map_err(failed)?;
        // A shallow clone's history ends somewhere.
        for commit in std::iter::once(tip.clone()).chain(tip.parents()) {
            let mut missing = None;
            let walked = commit
                .tree()
                .map_err(failed)?
                .walk(TreeWalkMode::PreOrder, |_, entry| {
                    if entry.kind() == Some(ObjectType::Blob) && !odb.exists(entry.id()) {
                        missing = Some(entry.id());
                        return TreeWalkResult::Abort;
                    }
                    TreeWalkResult::Ok
                });
            if let Some(missing) = missing {
                return Err(Error::corrupt(format!(
                    "{}: {missing} is not in it",
                    self.path.display()
                )));
            }
            walked.map_err(failed)?;
        }
        Ok(())
    }

    /// The commits that it builds on and that are not in a repository.
    pub fn missing(&self, repo: &Repo) -> Result<Vec<ObjectId>> {
        let odb = repo
            .inner
            .odb()
            .map_err(Error::git("open the object database"))?;
        let mut missing = self.needs.clone();
        missing.retain(|commit| !parse_oid(commit).is_ok_and(|oid| odb.exists(oid)));
        Ok(missing)
    }

    /// Makes a checkpoint part of a repository under its name: what is not there yet of all that is in the bundle,
    /// durably, then read back in full, then the reference.
    pub fn import(
        &self,
        repo: &Repo,
        lock: &WorktreeLock,
        reference: &str,
        commit: &ObjectId,
    ) -> Result<()> {
        let failed = || Error::git(format!("read {}", self.path.display()));
        let writer = ObjectWriter::new(repo, lock)?;
        let odb = self.repository.odb().map_err(failed())?;
        writer.write_all_of(&odb)?.map_err(failed())?;
        writer.publish()?;
        let id = parse_oid(commit)?;
        let tip = self.repository.find_commit(id).map_err(failed())?;
        let last = tip.parent_count().saturating_sub(1);
        let state = tip.parent(last).map_err(failed())?.tree_id();
        writer.record(repo, id, None);
        read_commit_back(repo, id, tip.tree_id(), state).or_else(|_| {
            // A `git gc` that began meanwhile may have taken something.
            writer.publish_kept()?;
            writer.record(repo, id, None);
            read_commit_back(repo, id, tip.tree_id(), state)
        })?;
        if let Some(problem) = repo
            .load_checkpoint(commit)?
            .verify(repo)?
            .into_iter()
            .next()
        {
            return Err(Error::corrupt(format!(
                "{}: {problem}",
                self.path.display()
            )));
        }
        name_written(repo, lock, &writer, (reference, commit), None)
    }
}
