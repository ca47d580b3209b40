//! Writes a checkpoint as a commit, whose tree is the work tree.
//! Its parents are the base HEAD (if any), a commit of the index's tree (if there is an index) and, last, a commit of the
//! state tree.
//!
//! The state tree holds `manifest.json`, `events.jsonl`, `memory/…` (the loop's working memory) and `index-stages/…`
//! (the blobs of conflicted entries, which nothing else keeps from `git gc`). `git diff` and `git show` work on the
//! commit as on any other.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use git2::{ObjectType, Oid};

use super::branch_commit::Committed;
use super::stored::{self, MemoryFile, memory_files};
use crate::git::base::{Error, GITLINK, Result, TREE, parse_oid};
use crate::git::capture::Capture;
use crate::git::odb::{Database, ObjectWriter, trees};
use crate::git::repo::refs::{begin_draft, set_ref_from};
use crate::git::repo::{IDENTITY, Repo, WorktreeLock};
use crate::model::{Manifest, Nested, ObjectId, PathMode, RepoPath, Timestamp};

/// What goes into a checkpoint beside the capture.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointParts<'a> {
    /// The loop's working memory.
    pub memory: &'a [MemoryFile],
    /// The run's events since its previous checkpoint.
    pub events_jsonl: &'a [u8],
    /// What is kept of nested repositories beside their own checkpoints; see [`NestedCopy`](super::NestedCopy).
    pub copies: Option<&'a ObjectId>,
    /// The whole message, trailers included.
    pub message: &'a str,
    /// The date of the commit.
    pub at: Timestamp,
}

/// Writes the commit of a checkpoint and makes it durable. No reference is set: see [`name_checkpoint`](Repo::name_checkpoint).
///
/// After writing, the commit and its trees are read back from the repository.
pub fn write_checkpoint(
    repo: &Repo,
    capture: &Capture,
    parts: &CheckpointParts<'_>,
) -> Result<ObjectId> {
    repo.write_linked(capture, &capture.manifest.nested, None, parts)
}

impl Repo {
    /// [`write_checkpoint`] with links: `nested` are the repositories inside with the checkpoints that were taken of them. After what was captured
    /// became a commit on the branch, HEAD and index are recorded as that left them.
    pub(crate) fn write_linked(
        &self,
        capture: &Capture,
        nested: &[Nested],
        committed: Option<&Committed>,
        parts: &CheckpointParts<'_>,
    ) -> Result<ObjectId> {
        let writer = &capture.writer;
        let commit = |tree: Oid, parents: &[Oid], message: &str| {
            commit(writer, tree, parents, message, parts.at)
        };
        let mut parents = Vec::new();
        let head = committed.map_or(&capture.head, |committed| &committed.head);
        if let Some(base) = &head.commit {
            let base = parse_oid(base)?;
            // What was committed with the capture is about to be published.
            match if committed.is_some() {
                Ok(())
            } else {
                check_head(self, writer, base)
            } {
                Err(Error::Corrupt(what)) => {
                    tracing::warn!(
                        "HEAD's commit is damaged and cannot be part of the checkpoint, which has the files: {what}"
                    );
                }
                checked => checked.map(|()| parents.push(base))?,
            }
        }
        let index_tree = committed.map_or(capture.index_tree.as_ref(), |committed| {
            Some(&committed.index_tree)
        });
        if let Some(tree) = index_tree {
            parents.push(index_commit(writer, tree)?);
        }
        let mut manifest = Manifest {
            nested: nested.to_vec(),
            ..capture.manifest.clone()
        };
        if let Some(committed) = committed {
            manifest.head = committed.head.clone();
            manifest.has_index = true;
            manifest.index_extras.clone_from(&committed.index_extras);
        }
        let state = state_tree(capture, manifest, parts)?;
        parents.push(commit(state, &[], "recover: state\n")?);
        let tree = parse_oid(&capture.tree)?;
        let id = commit(tree, &parents, parts.message)?;
        writer.publish_with_draft(id, begin_draft(self, &format!("{id}\n"))?.0)?;
        let base = capture.base();
        writer.record(self, id, base);
        read_back(self, id, tree, state).or_else(|_| {
            // A `git gc` that began meanwhile may have taken something.
            writer.publish_kept()?;
            writer.record(self, id, base);
            read_back(self, id, tree, state)
        })?;
        Ok(ObjectId(id.to_string()))
    }

    /// Sets the reference of a checkpoint that was written of this capture ([`set_ref`](Repo::set_ref)). From here on a `git gc` that was
    /// under way meanwhile takes none of its objects away; else there is no reference and an error.
    pub(crate) fn name_checkpoint(
        &self,
        lock: &WorktreeLock,
        capture: &Capture,
        name: &str,
        commit: &ObjectId,
    ) -> Result<()> {
        name_written(self, lock, &capture.writer, (name, commit), capture.base())
    }
}

/// Whether HEAD's commit is whole, and, where damage was found in the database, all that is in it.
fn check_head(repo: &Repo, writer: &ObjectWriter, head: Oid) -> Result<()> {
    let database = Database::open(repo)?;
    database.check(head)?;
    if writer.trusts_earlier() || repo.is_partial_clone() {
        return Ok(());
    }
    let tree = repo
        .inner
        .find_commit(head)
        .map_err(Error::git(format!("read commit {head}")))?
        .tree_id();
    let files = trees::read(&database, tree)?;
    let (paths, blobs): (Vec<_>, Vec<_>) = files
        .iter()
        .filter(|(_, (mode, _))| *mode != GITLINK)
        .map(|(path, (_, oid))| (path, *oid))
        .unzip();
    match writer
        .contained(&blobs)?
        .iter()
        .position(|is_there| !is_there)
    {
        Some(at) => Err(Error::corrupt(format!("{} of it is lost", paths[at]))),
        None => Ok(()),
    }
}

impl Capture {
    /// The commit that HEAD was at.
    fn base(&self) -> Option<Oid> {
        self.head
            .commit
            .as_ref()
            .and_then(|base| parse_oid(base).ok())
    }

    /// Makes durable what a checkpoint of this capture holds whatever its message and its events will be: so much less is left for
    /// [`write_checkpoint`], which others may have to wait for.
    pub(crate) fn write_early(&self, memory: &[MemoryFile]) -> Result<()> {
        let writer = &self.writer;
        if let Some(tree) = &self.index_tree {
            index_commit(writer, tree)?;
        }
        // What the links to repositories inside will be is not known yet.
        if self.manifest.nested.is_empty() {
            writer.write(ObjectType::Blob, &encoded(self.manifest.clone(), memory)?.1)?;
        }
        memory_files(writer, memory, b"memory")?;
        writer.publish()
    }
}

/// The commit of the index's tree. It has no time of its own, so that the same index is the same commit.
fn index_commit(writer: &ObjectWriter, tree: &ObjectId) -> Result<Oid> {
    commit(
        writer,
        parse_oid(tree)?,
        &[],
        "recover: index\n",
        Timestamp::default(),
    )
}

/// The manifest with the modes of the working memory, and its bytes.
fn encoded(manifest: Manifest, memory: &[MemoryFile]) -> Result<(Manifest, Vec<u8>)> {
    let unusual = |file: &&MemoryFile| !matches!(file.mode, 0o644 | 0o755);
    let listed = |file: &MemoryFile| PathMode {
        path: file.path.clone(),
        mode: file.mode,
    };
    let memory_modes = memory.iter().filter(unusual).map(listed).collect();
    let manifest = Manifest {
        memory_modes,
        ..manifest
    };
    let bytes = serde_json::to_vec(&manifest).map_err(|error| Error::corrupt(error.to_string()))?;
    Ok((manifest, bytes))
}

/// [`name_checkpoint`](Repo::name_checkpoint) for what any writer has published.
pub(super) fn name_written(
    repo: &Repo,
    lock: &WorktreeLock,
    writer: &ObjectWriter,
    (name, commit): (&str, &ObjectId),
    base: Option<Oid>,
) -> Result<()> {
    let draft = writer.take_draft(parse_oid(commit)?);
    set_ref_from(repo, lock, name, commit, draft)?;
    match writer.secure() {
        Ok(false) => Ok(()),
        Ok(true) => {
            writer.record(repo, parse_oid(commit)?, base);
            Ok(())
        }
        Err(error) => {
            repo.delete_refs(lock, &[name.to_owned()])?;
            Err(error)
        }
    }
}

fn state_tree(capture: &Capture, manifest: Manifest, parts: &CheckpointParts<'_>) -> Result<Oid> {
    let writer = &capture.writer;
    let (manifest, encoded) = encoded(manifest, parts.memory)?;
    let mut flat = memory_files(writer, parts.memory, b"memory")?;
    for (name, data) in [
        ("manifest.json", encoded.as_slice()),
        ("events.jsonl", parts.events_jsonl),
    ] {
        flat.insert(
            RepoPath::from(name),
            (0o100_644, writer.write(ObjectType::Blob, data)?),
        );
    }
    for extra in &manifest.index_extras {
        let oid = parse_oid(&extra.oid)?;
        // A blob that is gone already cannot be kept; the index it stands in is the user's own.
        if extra.mode != GITLINK && writer.contains(oid)? {
            flat.insert(
                RepoPath::from(format!("index-stages/{oid}").as_str()),
                (0o100_644, oid),
            );
        }
    }
    if let Some(copies) = parts.copies {
        flat.insert(RepoPath::from(stored::FOLDER), (TREE, parse_oid(copies)?));
    }
    trees::write(writer, &flat)
}

/// Writes a commit with the fixed identity. The message is taken as it is.
pub(in crate::git) fn commit(
    writer: &ObjectWriter,
    tree: Oid,
    parents: &[Oid],
    message: &str,
    at: Timestamp,
) -> Result<Oid> {
    let mut text = format!("tree {tree}\n");
    let mut seen = BTreeSet::new();
    for parent in parents.iter().filter(|parent| seen.insert(**parent)) {
        let _ = writeln!(text, "parent {parent}");
    }
    let (name, address) = IDENTITY;
    // git refuses dates before 1970.
    let seconds = at.millis().div_euclid(1000).max(0);
    for role in ["author", "committer"] {
        let _ = writeln!(text, "{role} {name} <{address}> {seconds} +0000");
    }
    text.push('\n');
    text.push_str(&message.replace('\0', ""));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    writer.write(ObjectType::Commit, text.as_bytes())
}

/// Reads what was written from the repository itself, as another process would.
/// The commit and its trees are in the repository.
pub(in crate::git) fn read_back(repo: &Repo, id: Oid, tree: Oid, state: Oid) -> Result<()> {
    let database = Database::open(repo)?;
    repo.inner
        .odb()
        .and_then(|odb| odb.refresh())
        .map_err(Error::git("refresh the object database"))?;
    database.check(id)?;
    let commit = repo
        .inner
        .find_commit(id)
        .map_err(Error::git("read the checkpoint back"))?;
    if commit.tree_id() != tree {
        return Err(Error::corrupt(format!(
            "checkpoint {id} reads back with another tree"
        )));
    }
    trees::Tree::read(&database, tree)?;
    trees::Tree::read(&database, state)?;
    Ok(())
}
