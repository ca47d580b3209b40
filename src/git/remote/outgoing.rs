//! A checkpoint as it may leave this machine: without what looks like a secret, and without what no host takes.
//!
//! What git itself would send, files that a commit or the index has, goes as it is, but for files that are too large.
//! Untracked files, the loop's working memory and the files of nested repositories are looked through. What stays here is
//! listed in the manifest there as skipped, so that a restore there touches it not.
//!
//! The commit that is sent has the one before as its first parent: git leaves out of a push what direct parents of the
//! sent commits hold, so that each push costs what is new.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{ObjectType, Oid};

use crate::git::base::{Error, GITLINK, Result, TREE, oid_of, parse_oid};
use crate::git::capture::Capture;
use crate::git::checkpoint::write::commit;
use crate::git::checkpoint::{
    MEMORY_PLACE, MemoryFile, Moment, StoredCheckpoint, nested_digits, parse_manifest, plain_of,
};
use crate::git::odb::trees::{Sink, child, into_writer, only_ids};
use crate::git::odb::{Database, Level, ObjectWriter, Tree};
use crate::git::repo::{Repo, WorktreeLock};
use crate::model::manifest::FileTimes;
use crate::model::{Manifest, Nested, ObjectId, PathReason, RepoPath, Timestamp};
use crate::policy::secrets::{has_secret, is_secret_path};

/// Why a file stays here.
const TOO_LARGE: &str = "stays on its machine: over [remote] max_object";
const SECRET_NAME: &str = "stays on its machine: by its name perhaps a secret";
const SECRET_CONTENT: &str = "stays on its machine: it holds what looks like a secret";
const UNTRACKED: &str = "stays on its machine: untracked files are not sent";
const FILTERED: &str = "stays on its machine: git stores it through a filter, encrypted perhaps";
const NESTED: &str = "stays on its machine: a nested repository, whose files are not sent";
/// All of these.
const STAYS: [&str; 6] = [
    TOO_LARGE,
    SECRET_NAME,
    SECRET_CONTENT,
    UNTRACKED,
    FILTERED,
    NESTED,
];
/// Why a file goes that git itself would not send.
const SENT: &str = "untracked";

/// A folder of trees in a trap may go on for ever.
const MAX_DEPTH: usize = 4096;
/// The parts of a state tree that are looked through, or replaced.
const EVENTS: &[u8] = b"events.jsonl";
const MANIFEST: &[u8] = b"manifest.json";
const MEMORY: &[u8] = b"memory";
const COPIES: &[u8] = b"nested";
const FILES: &[u8] = b"tree";

/// What may leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Larger files stay here, in bytes.
    pub max_object: u64,
    /// Whether untracked files are sent.
    pub untracked: bool,
    /// What git itself would store through a filter, which stays here ([`Repo::plain_blobs`]); `None` where it is sent.
    pub plain: Option<BTreeSet<ObjectId>>,
    /// Whether everything else is sent as it is, events and what looks like secrets too.
    pub whole: bool,
    /// Whether the base commit is a parent of what is sent ([`Remote::keeps_base`](super::Remote::keeps_base)).
    pub keep_base: bool,
    /// What was sent of the run before: it is not looked through again.
    pub previous: Option<ObjectId>,
}

/// What leaves of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaving {
    /// What stays here, with the reason.
    pub withheld: Vec<PathReason>,
    /// Files that git itself would not send, with their sizes; those of `previous` aside.
    pub untracked: Vec<PathReason>,
}

impl Leaving {
    /// A file that goes, or stays for a reason.
    fn add(&mut self, path: &RepoPath, size: u64, stays: Option<&str>, is_tracked: bool) {
        let listed = |reason: &str| PathReason {
            path: path.clone(),
            reason: reason.to_owned(),
            size: Some(size),
            files: None,
        };
        match stays {
            Some(reason) => self.withheld.push(listed(reason)),
            None if is_tracked => {}
            None => self.untracked.push(listed(SENT)),
        }
    }
}

impl Filter {
    /// How many of these stay here because git stores them through a filter.
    pub(crate) fn count_filtered(withheld: &[PathReason]) -> usize {
        withheld.iter().filter(|one| one.reason == FILTERED).count()
    }

    /// A path that stays here because git stores it through a filter.
    pub(crate) fn withheld(path: &RepoPath) -> PathReason {
        PathReason::new(path.clone(), FILTERED)
    }
}

/// A checkpoint as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The commit; it is written, and no reference names it yet.
    pub commit: ObjectId,
    /// What stays here, with the reason.
    pub withheld: Vec<PathReason>,
    /// Files that git itself would not send, with their sizes; those of `previous` aside.
    pub untracked: Vec<PathReason>,
}

impl Repo {
    /// Writes the commit that is sent of a checkpoint. The same checkpoint, message and filter make the same commit.
    pub fn write_outgoing(
        &self,
        lock: &WorktreeLock,
        checkpoint: &ObjectId,
        message: &str,
        filter: &Filter,
    ) -> Result<Outgoing> {
        let writer = ObjectWriter::new(self, lock)?;
        let mut sink = into_writer(&writer);
        let blob = |data: &[u8]| writer.write(ObjectType::Blob, data);
        let stored = self.load_checkpoint(checkpoint)?;
        let previous = filter.previous.as_ref();
        let previous = previous.map(|previous| self.load_checkpoint(previous));
        let mut walk = Walk::new(Database::open(self)?, filter, &mut sink, &blob);
        let sent = walk.checkpoint(self, &stored, previous.transpose()?.as_ref())?;
        let leaving = walk.leaving;
        let found = self
            .inner
            .find_commit(parse_oid(checkpoint)?)
            .map_err(Error::git("read a checkpoint"))?;
        let at = Timestamp::from_millis(found.time().seconds().saturating_mul(1000));

        let mut parents = Vec::new();
        parents.extend(oid_of(filter.previous.as_ref())?);
        parents.extend(
            oid_of(stored.manifest.head.commit.as_ref())?.filter(|base| {
                filter.keep_base && found.parent_ids().any(|parent| parent == *base)
            }),
        );
        if let Some(tree) = sent.index {
            parents.push(commit(
                &writer,
                tree,
                &[],
                "recover: index\n",
                Timestamp::default(),
            )?);
        }
        parents.push(commit(&writer, sent.state, &[], "recover: state\n", at)?);
        let id = commit(&writer, sent.files, &parents, message, at)?;
        writer.publish()?;
        Ok(Outgoing {
            commit: ObjectId(id.to_string()),
            withheld: leaving.withheld,
            untracked: leaving.untracked,
        })
    }

    /// What would leave of what was captured, were it a checkpoint and the first one; nothing is written. `nested` are the
    /// repositories inside the work tree, each with its folder, those inside them too.
    pub(crate) fn leaving_now(
        &self,
        capture: &Capture,
        memory: &[MemoryFile],
        nested: &[(&RepoPath, &Capture)],
        filter: &Filter,
    ) -> Result<Leaving> {
        let (mut leaving, top) = (Leaving::default(), RepoPath::default());
        let nested = nested
            .iter()
            .map(|(folder, capture)| (*folder, *capture, Sort::LookedThrough));
        for (folder, capture, sort) in [(&top, capture, Sort::WorkTree)].into_iter().chain(nested) {
            let is_top = sort == Sort::WorkTree;
            if !is_top && !filter.untracked {
                let stays = PathReason::new(folder.clone(), NESTED);
                leaving.withheld.push(stays);
                continue;
            }
            let objects = capture.objects();
            let mut sink = only_ids();
            let mut walk = Walk::new(objects.database()?, filter, &mut sink, &blob_id);
            let files = parse_oid(&capture.tree)?;
            let mut beside = Beside::default();
            if is_top {
                let head = capture.head.commit.as_ref();
                let repository = objects.repository()?;
                beside.base = head.and_then(|commit| tree_of(repository, commit));
                beside.index = oid_of(capture.index_tree.as_ref())?;
            }
            let (base, index) = (beside.base, beside.index);
            let moment = Moment { base, index, files };
            walk.withhold(is_top.then_some(self), moment)?;
            walk.tree(folder, files, beside, sort, 0)?;
            for file in memory.iter().filter(|_| is_top) {
                let path = RepoPath::from(MEMORY_PLACE).join(file.path.as_bytes());
                let size = file.content.len() as u64;
                let entry = (&path, 0o100_644, blob_id(&file.content)?);
                let content = || Ok(file.content.clone());
                let reason = walk.stays(entry, size, false, sort, content)?;
                walk.leaving.add(&path, size, reason, false);
            }
            leaving.withheld.append(&mut walk.leaving.withheld);
            leaving.untracked.append(&mut walk.leaving.untracked);
        }
        leaving.withheld.sort_unstable();
        leaving.withheld.dedup();
        Ok(leaving)
    }
}

fn blob_id(data: &[u8]) -> Result<Oid> {
    Oid::hash_object(ObjectType::Blob, data).map_err(Error::git("hash an object"))
}

/// The trees of what is sent.
struct Sent {
    files: Oid,
    index: Option<Oid>,
    state: Oid,
}

/// Trees beside the one that is walked, at the same path.
#[derive(Clone, Copy, Default)]
struct Beside {
    /// What is known to the server's git, or will be: the base commit's.
    base: Option<Oid>,
    /// What was sent before.
    sent: Option<Oid>,
    /// The index's: what is in it is tracked.
    index: Option<Oid>,
}

/// What a file is, for the question whether it may leave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// As the base and the index say.
    WorkTree,
    /// Working memory, or a file of a nested repository.
    LookedThrough,
    /// A part of the index that is in no file: tracked.
    Tracked,
}

/// What stayed on its machine of the checkpoint before, and is not in this one: nobody but that machine knows what has become of
/// it, so a restore there is not to touch it.
fn still_elsewhere(
    repo: &Repo,
    stored: &StoredCheckpoint,
    previous: &StoredCheckpoint,
) -> Result<Vec<PathReason>> {
    let tree = |id: &ObjectId| {
        repo.inner
            .find_tree(parse_oid(id)?)
            .map_err(Error::git("read a checkpoint"))
    };
    let files = tree(&stored.tree)?;
    let memory = stored.memory_tree.as_ref().map(tree).transpose()?;
    let has = |tree: &git2::Tree<'_>, path: &[u8]| {
        tree.get_path(Path::new(OsStr::from_bytes(path))).is_ok()
    };
    let is_here = |path: &RepoPath| {
        let path = path.as_bytes();
        let in_memory = path
            .strip_prefix(MEMORY_PLACE.as_bytes())
            .and_then(|path| path.strip_prefix(b"/"));
        has(&files, path)
            || in_memory
                .zip(memory.as_ref())
                .is_some_and(|(path, memory)| has(memory, path))
            || stored
                .manifest
                .nested
                .iter()
                .any(|nested| path.starts_with(nested.path.as_bytes()))
    };
    let stayed = previous
        .manifest
        .skipped
        .iter()
        .filter(|one| STAYS.contains(&one.reason.as_str()));
    Ok(stayed.filter(|one| !is_here(&one.path)).cloned().collect())
}

struct Walk<'a> {
    database: Database<'a>,
    filter: &'a Filter,
    sink: Sink<'a>,
    blob: &'a dyn Fn(&[u8]) -> Result<Oid>,
    leaving: Leaving,
    /// What stays here as git would store it through a filter.
    plain: HashSet<Oid>,
}

impl<'a> Walk<'a> {
    fn new(
        database: Database<'a>,
        filter: &'a Filter,
        sink: Sink<'a>,
        blob: &'a dyn Fn(&[u8]) -> Result<Oid>,
    ) -> Self {
        let plain = filter
            .plain
            .iter()
            .flatten()
            .filter_map(|oid| parse_oid(oid).ok())
            .collect();
        Self {
            database,
            filter,
            sink,
            blob,
            leaving: Leaving::default(),
            plain,
        }
    }

    /// Withholds what git would store through a filter of these trees.
    fn withhold(&mut self, repo: Option<&Repo>, moment: Moment) -> Result<()> {
        if self.filter.plain.is_some() {
            self.plain
                .extend(plain_of(repo, &self.database, &[moment])?);
        }
        Ok(())
    }

    /// The trees of a checkpoint without what stays here.
    fn checkpoint(
        &mut self,
        repo: &Repo,
        stored: &StoredCheckpoint,
        previous: Option<&StoredCheckpoint>,
    ) -> Result<Sent> {
        let base = stored
            .manifest
            .head
            .commit
            .as_ref()
            .and_then(|commit| tree_of(&repo.inner, commit));
        let index = oid_of(stored.index_tree.as_ref())?;
        let sent = oid_of(previous.map(|previous| &previous.tree))?;
        let top = RepoPath::default();
        let files = self.tree(
            &top,
            parse_oid(&stored.tree)?,
            Beside { base, sent, index },
            Sort::WorkTree,
            0,
        )?;
        let gone: Vec<PathReason> = self.leaving.withheld.clone();
        let beside = Beside {
            base,
            sent: oid_of(previous.and_then(|previous| previous.index_tree.as_ref()))?,
            index: None,
        };
        let index = index
            .map(|tree| self.tree(&top, tree, beside, Sort::Tracked, 0))
            .transpose()?;

        let state = Tree::read(&self.database, parse_oid(&stored.state_tree)?)?;
        let before = self.read(oid_of(previous.map(|previous| &previous.state_tree))?)?;
        let sent_part = |name: &[u8]| before.find(name).map(|entry| entry.oid);
        let mut level = Level::default();
        let mut nested_stays = Vec::new();
        for entry in state.entries() {
            let beside = Beside {
                sent: sent_part(entry.name),
                ..Beside::default()
            };
            let oid = match entry.name {
                // Those of a run go there masked, in states of their own.
                EVENTS if !self.filter.whole => (self.blob)(b"")?,
                MANIFEST => continue,
                MEMORY => self.tree(
                    &MEMORY_PLACE.into(),
                    entry.oid,
                    beside,
                    Sort::LookedThrough,
                    0,
                )?,
                COPIES if !self.filter.untracked => {
                    let stays = |nested: &Nested| PathReason::new(nested.path.clone(), NESTED);
                    nested_stays.extend(stored.manifest.nested.iter().map(stays));
                    continue;
                }
                COPIES => self.copies(&top, entry.oid, beside.sent, &stored.manifest.nested, 0)?,
                _ if entry.mode == TREE => self.tree(&top, entry.oid, beside, Sort::Tracked, 0)?,
                _ => entry.oid,
            };
            level.add(entry.name, entry.mode, oid);
        }
        self.leaving.withheld.append(&mut nested_stays);
        if let Some(previous) = previous {
            self.leaving
                .withheld
                .extend(still_elsewhere(repo, stored, previous)?);
        }
        self.leaving.withheld.sort_unstable();
        self.leaving.withheld.dedup();
        let mut manifest = stored.manifest.clone();
        if !gone.is_empty() {
            manifest.times = times_without(repo, stored, &gone)?;
        }
        let stays: Vec<PathReason> = self.leaving.withheld.clone();
        let manifest = self.manifest(manifest, &stays)?;
        level.add(MANIFEST, 0o100_644, manifest);
        let state = (self.sink)(&level.into_bytes())?;
        Ok(Sent {
            files,
            index,
            state,
        })
    }

    /// A tree; an empty one for `None`.
    fn read(&self, tree: Option<Oid>) -> Result<Tree> {
        tree.map_or_else(
            || Ok(Tree::default()),
            |tree| Tree::read(&self.database, tree),
        )
    }

    /// A manifest that says what stays here.
    fn manifest(&self, mut manifest: Manifest, stays: &[PathReason]) -> Result<Oid> {
        if !stays.is_empty() {
            let paths: BTreeSet<&RepoPath> = stays.iter().map(|one| &one.path).collect();
            manifest.file_modes.retain(|one| !paths.contains(&one.path));
            manifest.skipped.retain(|one| !paths.contains(&one.path));
            manifest.skipped.extend(stays.iter().cloned());
            manifest.skipped.sort_unstable();
            manifest.partial = true;
        }
        let text =
            serde_json::to_vec(&manifest).map_err(|error| Error::corrupt(error.to_string()))?;
        (self.blob)(&text)
    }

    /// The copies of nested repositories without what stays here.
    fn copies(
        &mut self,
        outer: &RepoPath,
        copies: Oid,
        sent: Option<Oid>,
        nested: &[Nested],
        depth: usize,
    ) -> Result<Oid> {
        if Some(copies) == sent || depth > MAX_DEPTH {
            return Ok(copies);
        }
        let (all, before) = (Tree::read(&self.database, copies)?, self.read(sent)?);
        let mut level = Level::default();
        let names: Vec<(String, &Nested)> = nested
            .iter()
            .map(|one| Ok((nested_digits(&one.path)?, one)))
            .collect::<Result<_>>()?;
        for (name, nested) in &names {
            let Some(entry) = all.find(name.as_bytes()) else {
                continue;
            };
            let one = Tree::read(&self.database, entry.oid)?;
            let before = self.read(before.find(name.as_bytes()).map(|entry| entry.oid))?;
            let sent_part = |name: &[u8]| before.find(name).map(|entry| entry.oid);
            let place = outer.join(nested.path.as_bytes());
            let mut part = Level::default();
            // A copy without one is not whole.
            let Some(manifest) = one.find(MANIFEST) else {
                continue;
            };
            let mut own = parse_manifest(&self.database.blob(manifest.oid)?)?;
            for entry in one.entries() {
                let oid = match entry.name {
                    MANIFEST => continue,
                    FILES => {
                        let known = self.leaving.withheld.len();
                        let (base, index, files) = (None, None, entry.oid);
                        self.withhold(None, Moment { base, index, files })?;
                        let beside = Beside {
                            sent: sent_part(FILES),
                            ..Beside::default()
                        };
                        let tree = self.tree(&place, entry.oid, beside, Sort::LookedThrough, 0)?;
                        let stays: Vec<PathReason> = self.leaving.withheld[known..]
                            .iter()
                            .filter_map(|one| below(&place, one))
                            .collect();
                        if !stays.is_empty() {
                            own.times = FileTimes::default();
                        }
                        part.add(MANIFEST, 0o100_644, self.manifest(own.clone(), &stays)?);
                        tree
                    }
                    COPIES => {
                        self.copies(&place, entry.oid, sent_part(COPIES), &own.nested, depth + 1)?
                    }
                    _ => entry.oid,
                };
                part.add(entry.name, entry.mode, oid);
            }
            let tree = (self.sink)(&part.into_bytes())?;
            level.add(name.as_bytes(), TREE, tree);
        }
        (self.sink)(&level.into_bytes())
    }

    /// A tree without what stays here. What the base has, or was sent before, is taken as it is.
    fn tree(
        &mut self,
        folder: &RepoPath,
        tree: Oid,
        beside: Beside,
        sort: Sort,
        depth: usize,
    ) -> Result<Oid> {
        if Some(tree) == beside.base || Some(tree) == beside.sent {
            return Ok(tree);
        }
        if depth > MAX_DEPTH {
            return Err(Error::corrupt(format!("tree {tree} is nested too deeply")));
        }
        let entries = Tree::read(&self.database, tree)?;
        let base = self.read(beside.base)?;
        let (sent, index) = (self.read(beside.sent)?, self.read(beside.index)?);
        let mut level = Level::default();
        let mut is_changed = false;
        for entry in entries.entries() {
            let path = child(folder, entry.name);
            let there = |tree: &Tree| tree.find(entry.name).map(|entry| (entry.mode, entry.oid));
            let known = [&base, &sent].map(there);
            if entry.mode == GITLINK || known.contains(&Some((entry.mode, entry.oid))) {
                level.add(entry.name, entry.mode, entry.oid);
                continue;
            }
            if entry.mode == TREE {
                let folder_of = |tree: &Tree| {
                    there(tree)
                        .filter(|(mode, _)| *mode == TREE)
                        .map(|(_, oid)| oid)
                };
                let below = Beside {
                    base: folder_of(&base),
                    sent: folder_of(&sent),
                    index: folder_of(&index),
                };
                let oid = self.tree(&path, entry.oid, below, sort, depth + 1)?;
                is_changed |= oid != entry.oid;
                let is_empty = oid != entry.oid
                    && Tree::read(&self.database, oid)
                        .is_ok_and(|tree| tree.entries().next().is_none());
                if !is_empty {
                    level.add(entry.name, entry.mode, oid);
                }
                continue;
            }
            let is_file = |tree: &Tree| there(tree).is_some_and(|(mode, _)| mode != TREE);
            let is_tracked = match sort {
                Sort::WorkTree => is_file(&base) || is_file(&index),
                Sort::LookedThrough => false,
                Sort::Tracked => true,
            };
            let size = self.database.size(entry.oid)?;
            let content = || self.database.blob(entry.oid);
            let named = (&path, entry.mode, entry.oid);
            let reason = self.stays(named, size, is_tracked, sort, content)?;
            self.leaving.add(&path, size, reason, is_tracked);
            match reason {
                Some(_) => is_changed = true,
                None => level.add(entry.name, entry.mode, entry.oid),
            }
        }
        if is_changed {
            (self.sink)(&level.into_bytes())
        } else {
            Ok(tree)
        }
    }

    /// Why a file stays here; `None` where it may leave.
    fn stays(
        &self,
        (path, mode, oid): (&RepoPath, u32, Oid),
        size: u64,
        is_tracked: bool,
        sort: Sort,
        content: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Option<&'static str>> {
        if self.plain.contains(&oid) {
            return Ok(Some(FILTERED));
        }
        if self.filter.whole {
            return Ok(None);
        }
        if size > self.filter.max_object {
            return Ok(Some(TOO_LARGE));
        }
        if is_tracked {
            return Ok(None);
        }
        if sort != Sort::Tracked && !self.filter.untracked {
            return Ok(Some(UNTRACKED));
        }
        if mode & 0o170_000 != 0o100_000 {
            return Ok(None);
        }
        if is_secret_path(path) {
            return Ok(Some(SECRET_NAME));
        }
        Ok(has_secret(&content()?).then_some(SECRET_CONTENT))
    }
}

/// The tree of a commit, where that is here.
fn tree_of(repository: &git2::Repository, commit: &ObjectId) -> Option<Oid> {
    let found = repository.find_commit(parse_oid(commit).ok()?).ok()?;
    Some(found.tree_id())
}

/// A reason about a path in this folder, with the path relative to it.
fn below(folder: &RepoPath, reason: &PathReason) -> Option<PathReason> {
    let rest = reason
        .path
        .as_bytes()
        .strip_prefix(folder.as_bytes())?
        .strip_prefix(b"/")?;
    Some(PathReason {
        path: RepoPath::new(rest),
        ..reason.clone()
    })
}

/// When the files were last modified that are sent.
fn times_without(repo: &Repo, stored: &StoredCheckpoint, gone: &[PathReason]) -> Result<FileTimes> {
    let gone: BTreeSet<&RepoPath> = gone.iter().map(|one| &one.path).collect();
    if let FileTimes::Some(times) = &stored.manifest.times {
        return Ok(FileTimes::Some(
            times
                .iter()
                .filter(|one| !gone.contains(&one.path))
                .cloned()
                .collect(),
        ));
    }
    let (snapshot, modified) = (stored.snapshot(repo)?, stored.modified(repo)?);
    let kept = snapshot
        .entries
        .iter()
        .filter(|(path, entry)| entry.is_file() && !gone.contains(path));
    let mut before = 0;
    let steps: Option<Vec<i64>> = kept
        .map(|(path, _)| {
            let at = modified.get(path)?.millis();
            let step = at.saturating_sub(before);
            before = at;
            Some(step)
        })
        .collect();
    Ok(steps.map_or_else(FileTimes::default, FileTimes::All))
}
