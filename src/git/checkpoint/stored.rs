//! Reads checkpoints back, and knows the layout of their state tree.

use std::collections::{BTreeMap, BTreeSet};

use git2::{ObjectType, Oid};

use crate::git::base::paths::kind_of;
use crate::git::base::{Error, Result, id_of, parse_oid, paths};
use crate::git::capture::Capture;
use crate::git::odb::database::unread;
use crate::git::odb::{Database, Flat, ObjectWriter, trees};
use crate::git::repo::repository::Repo;
use crate::git::tree::{TreeLookup, TreeView};
use crate::model::manifest::{FileTimes, MANIFEST_VERSION};
use crate::model::{Entry, EntryKind, Manifest, ObjectId, RepoPath, Snapshot, Timestamp};

/// What the names of the working memory's files begin with where they are listed among those of the work tree.
pub(in crate::git) const MEMORY_PLACE: &str = ".ultraplan/state";

/// A checkpoint's commit, without the paths it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// The commit itself.
    pub commit: ObjectId,
    /// The tree of the work tree.
    pub tree: ObjectId,
    /// The tree of the index; `None` where there was none.
    pub index_tree: Option<ObjectId>,
    /// The tree of manifest, events and working memory.
    pub state_tree: ObjectId,
    /// The tree of the working memory alone.
    pub memory_tree: Option<ObjectId>,
    /// The tree of what is kept of nested repositories; see [`NestedCopy`](super::NestedCopy).
    pub copies: Option<ObjectId>,
    /// What the trees cannot say.
    pub manifest: Manifest,
    /// The commit's whole message.
    pub message: String,
}

impl Repo {
    /// Reads a checkpoint. Missing or damaged objects are [`Error::Corrupt`], a newer manifest [`Error::Newer`].
    pub fn load_checkpoint(&self, commit: &ObjectId) -> Result<StoredCheckpoint> {
        let damaged = |what: &str| Error::corrupt(format!("checkpoint {commit}: {what}"));
        let about = |error: Error| match error {
            Error::Corrupt(what) => damaged(&what),
            other => other,
        };
        let database = Database::open(self)?;
        let read = |oid: Oid| {
            database.check(oid).map_err(about)?;
            self.inner
                .find_commit(oid)
                .map_err(|error| about(unread(oid, error)))
        };
        let found = read(parse_oid(commit)?)?;
        let last = found
            .parent_count()
            .checked_sub(1)
            .ok_or_else(|| damaged("not a checkpoint's commit"))?;
        let parent = |at: usize| {
            found
                .parent_id(at)
                .map_err(|error| damaged(error.message()))
                .and_then(read)
        };
        let state = parent(last)?.tree_id();
        let database = Database::open(self)?;
        let manifest = trees::find(&database, state, b"manifest.json")?
            .ok_or_else(|| damaged("it has no manifest"))?;
        let manifest = parse_manifest(&database.blob(manifest)?).map_err(about)?;
        let index_tree = if manifest.has_index {
            let at = last
                .checked_sub(1)
                .ok_or_else(|| damaged("it has no index commit"))?;
            Some(ObjectId(parent(at)?.tree_id().to_string()))
        } else {
            None
        };
        let part = |name: &[u8]| -> Result<Option<ObjectId>> {
            Ok(trees::find(&database, state, name)?.map(|oid| ObjectId(oid.to_string())))
        };
        Ok(StoredCheckpoint {
            commit: commit.clone(),
            tree: ObjectId(found.tree_id().to_string()),
            index_tree,
            state_tree: ObjectId(state.to_string()),
            memory_tree: part(b"memory")?,
            copies: part(FOLDER.as_bytes())?,
            manifest,
            message: String::from_utf8_lossy(found.message_bytes()).into_owned(),
        })
    }
}

impl StoredCheckpoint {
    /// What it holds.
    pub fn view(&self) -> TreeView<'_> {
        TreeView::new(&self.tree, self.index_tree.as_ref(), &self.manifest)
    }

    /// It as if all its files were committed: nothing else is in the index then.
    #[must_use]
    pub fn committed(&self) -> Self {
        let manifest = Manifest {
            index_extras: Vec::new(),
            ..self.manifest.clone()
        };
        Self {
            index_tree: Some(self.tree.clone()),
            manifest,
            ..self.clone()
        }
    }

    /// Every path it holds.
    pub fn snapshot(&self, repo: &Repo) -> Result<Snapshot> {
        self.view().snapshot(&TreeLookup::stored(repo)?)
    }

    /// The working memory it holds.
    pub fn memory(&self, repo: &Repo) -> Result<Vec<MemoryFile>> {
        let Some(tree) = &self.memory_tree else {
            return Ok(Vec::new());
        };
        let database = Database::open(repo)?;
        let files = trees::read(&database, parse_oid(tree)?)?.into_iter();
        let modes = &self.manifest.memory_modes;
        let load = |(path, (mode, oid)): (RepoPath, (u32, Oid))| {
            let listed = modes
                .iter()
                .find(|listed| listed.path == path)
                .map(|listed| listed.mode);
            Ok(MemoryFile {
                content: database.blob(oid)?,
                mode: listed.unwrap_or(mode & 0o777),
                path,
            })
        };
        files.map(load).collect()
    }

    /// Files of the working memory that it does not hold because they stayed on another machine: a restore leaves what is in
    /// their places.
    pub fn withheld_memory(&self) -> BTreeSet<RepoPath> {
        let inside = |path: &RepoPath| {
            let rest = path
                .as_bytes()
                .strip_prefix(MEMORY_PLACE.as_bytes())?
                .strip_prefix(b"/")?;
            Some(RepoPath::new(rest))
        };
        self.manifest
            .skipped
            .iter()
            .filter_map(|skipped| inside(&skipped.path))
            .collect()
    }

    /// The run's events since its previous checkpoint.
    pub fn events_jsonl(&self, repo: &Repo) -> Result<Vec<u8>> {
        let database = Database::open(repo)?;
        let found = trees::find(&database, parse_oid(&self.state_tree)?, b"events.jsonl")?;
        found.map_or_else(|| Ok(Vec::new()), |oid| database.blob(oid))
    }

    /// Files and symlinks, no more than `most`: these, as far as it holds them, then others.
    pub fn files_from(
        &self,
        repo: &Repo,
        first: &[RepoPath],
        most: usize,
    ) -> Result<Vec<(RepoPath, Entry)>> {
        self.view()
            .files_from(&TreeLookup::stored(repo)?, first, most)
    }

    /// When its files and symlinks were last modified, as far as it keeps that.
    pub fn modified(&self, repo: &Repo) -> Result<BTreeMap<RepoPath, Timestamp>> {
        match &self.manifest.times {
            FileTimes::Some(times) => Ok(times
                .iter()
                .map(|one| (one.path.clone(), one.modified))
                .collect()),
            FileTimes::All(steps) => {
                // One more would be one too many.
                let files = self.files_from(repo, &[], steps.len() + 1)?;
                if files.len() != steps.len() {
                    return Ok(BTreeMap::new());
                }
                let sum = |at: &mut i64, step: &i64| {
                    *at = at.saturating_add(*step);
                    Some(Timestamp::from_millis(*at))
                };
                Ok(files
                    .into_iter()
                    .map(|(path, _)| path)
                    .zip(steps.iter().scan(0, sum))
                    .collect())
            }
        }
    }

    /// Objects of this checkpoint that are missing or damaged, as sentences; empty when all is well. Reads everything: what
    /// the system refuses to read is an error.
    pub fn verify(&self, repo: &Repo) -> Result<Vec<String>> {
        let database = Database::open(repo)?;
        let (odb, partial_clone) = (
            repo.inner
                .odb()
                .map_err(Error::git("open the object database"))?,
            repo.is_partial_clone(),
        );
        let mut problems = Vec::new();
        let mut seen = BTreeSet::new();
        for tree in [
            Some(&self.tree),
            self.index_tree.as_ref(),
            Some(&self.state_tree),
        ]
        .into_iter()
        .flatten()
        {
            let flat = match trees::read(&database, parse_oid(tree)?) {
                Ok(flat) => flat,
                Err(error @ Error::Corrupt(_)) => {
                    problems.push(error.to_string());
                    continue;
                }
                Err(error) => return Err(error),
            };
            for (path, (mode, oid)) in flat {
                if kind_of(mode)? == EntryKind::Gitlink || !seen.insert(oid) {
                    continue;
                }
                // Nothing needs the content of a file that was left out of a checkout and never fetched.
                if Some(tree) == self.index_tree.as_ref() && partial_clone && !odb.exists(oid) {
                    continue;
                }
                match database.blob(oid) {
                    Ok(_) => {}
                    Err(Error::Corrupt(_)) => {
                        problems.push(format!("{path}: object {oid} is missing or damaged"));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(problems)
    }

    /// Whether another checkpoint of the same repository holds the same, nested repositories and working memory aside.
    pub fn same_as(&self, other: &Self) -> bool {
        self.tree == other.tree
            && self.index_tree == other.index_tree
            && same_manifest(&self.manifest, &other.manifest)
    }
}

/// Whether modes and empty folders are equal.
fn same_modes(now: &Manifest, then: &Manifest) -> bool {
    now.modes == then.modes
        && now.file_modes == then.file_modes
        && now.folder_modes == then.folder_modes
        && now.empty_folders == then.empty_folders
}

/// Whether the manifests are equal but for what was skipped. Of nested repositories only the commits are compared: what else they hold is
/// compared by their own checkpoints.
fn same_manifest(now: &Manifest, then: &Manifest) -> bool {
    let commits = |manifest: &Manifest| {
        manifest
            .nested
            .iter()
            .map(|one| (one.path.clone(), one.commit.clone()))
            .collect::<Vec<_>>()
    };
    same_modes(now, then)
        && now.index_extras == then.index_extras
        && now.head == then.head
        && commits(now) == commits(then)
}

impl Capture {
    /// Whether a checkpoint holds the same paths with the same content and modes.
    pub fn is_same_tree(&self, previous: &StoredCheckpoint) -> bool {
        self.tree == previous.tree && same_modes(&self.manifest, &previous.manifest)
    }

    /// Whether a checkpoint holds the same: content, modes, empty folders, index, HEAD and working memory. Of nested
    /// repositories only the commits are compared.
    pub fn same_as(&self, previous: &StoredCheckpoint, memory: &[MemoryFile]) -> Result<bool> {
        let (now, then) = (&self.manifest, &previous.manifest);
        let same = self.tree == previous.tree
            && self.index_tree == previous.index_tree
            && same_manifest(now, then);
        let memory = memory_tree(&self.writer, memory)?.map(|oid| ObjectId(oid.to_string()));
        Ok(same && memory == previous.memory_tree)
    }
}

/// A file of the loop's working memory, relative to the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// Its path.
    pub path: RepoPath,
    /// Its content.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
}

impl MemoryFile {
    /// The id of its content.
    pub fn blob(&self) -> Result<ObjectId> {
        Ok(ObjectId(
            id_of(ObjectType::Blob, &self.content)?.to_string(),
        ))
    }
}

/// The tree of the working memory, as it would stand in a checkpoint; `None` without any file.
pub(super) fn memory_tree(writer: &ObjectWriter, memory: &[MemoryFile]) -> Result<Option<Oid>> {
    let flat = memory_files(writer, memory, b"")?;
    if flat.is_empty() {
        Ok(None)
    } else {
        trees::write(writer, &flat).map(Some)
    }
}

pub(super) fn memory_files(
    writer: &ObjectWriter,
    memory: &[MemoryFile],
    below: &[u8],
) -> Result<Flat> {
    let mut flat = Flat::new();
    for file in memory {
        if let Some(reason) = paths::unsafe_path(&file.path) {
            return Err(Error::unsafe_path(&file.path, reason));
        }
        let mode = if file.mode & 0o100 == 0 {
            0o100_644
        } else {
            0o100_755
        };
        let oid = writer.write(ObjectType::Blob, &file.content)?;
        flat.insert(RepoPath::new(below).join(file.path.as_bytes()), (mode, oid));
    }
    Ok(flat)
}

/// The folder of the copies of nested repositories in the state tree.
pub(in crate::git) const FOLDER: &str = "nested";

/// Reads a manifest, refusing a newer one.
pub(in crate::git) fn parse_manifest(bytes: &[u8]) -> Result<Manifest> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: u32,
    }
    let unreadable = |error: serde_json::Error| Error::corrupt(format!("manifest: {error}"));
    let Version { version } = serde_json::from_slice(bytes).map_err(unreadable)?;
    if version > MANIFEST_VERSION {
        return Err(Error::Newer(format!(
            "a checkpoint's manifest (version {version})"
        )));
    }
    let mut manifest: Manifest = serde_json::from_slice(bytes).map_err(unreadable)?;
    // They are written so; what looks paths up relies on it, whoever wrote them.
    for list in [
        &mut manifest.file_modes,
        &mut manifest.folder_modes,
        &mut manifest.empty_folders,
    ] {
        list.sort_unstable();
    }
    Ok(manifest)
}
