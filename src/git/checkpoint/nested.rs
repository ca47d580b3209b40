//! The files of nested repositories, kept a second time beside the checkpoint of the repository around them.
//! So they come back when the folder, its `.git`, or both are gone: trees and blobs without any history.
//!
//! They stand in the checkpoint's state tree: `nested/<digits of the path's hash>/` holds `tree`, `manifest.json` and, where
//! there are more repositories inside that one, `nested`, which is built alike. So the checkpoint's reference holds them,
//! and whatever verifies, exports or prunes a checkpoint does the same with them.
//!
//! The nested repository itself has `refs/recover/<run>/<checkpoint>-<ten digits of the path's hash>`: it may be a linked worktree
//! of the outer one or of another nested one, and then they share their references.

use std::collections::HashSet;

use git2::{ObjectType, Oid};

use super::stored::{FOLDER, StoredCheckpoint, parse_manifest};
use crate::git::base::{Error, GITLINK, Result, TREE, id_of, parse_oid};
use crate::git::capture::Capture;
use crate::git::odb::{Database, Level, ObjectWriter, Tree, TreeEntry, trees};
use crate::git::repo::{CheckpointRef, Repo};
use crate::git::tree::TreeView;
use crate::model::{CheckpointId, Manifest, ObjectId, RepoPath, RunId};

const MANIFEST: &[u8] = b"manifest.json";
const FILES: &[u8] = b"tree";
const BLOB: u32 = 0o100_644;
/// A loose object of this many bytes is copied as it is and not held in memory.
const LARGE: u64 = 1 << 20;

/// The files of a nested repository, as a checkpoint of the one around it holds them.
#[derive(Clone, Debug)]
pub struct NestedCopy {
    /// Their tree.
    pub tree: ObjectId,
    /// What the tree cannot say.
    pub manifest: Manifest,
    copies: Option<ObjectId>,
}

impl NestedCopy {
    /// What it holds.
    pub fn view(&self) -> TreeView<'_> {
        TreeView::new(&self.tree, None, &self.manifest)
    }

    /// That of a repository inside this one.
    pub fn inner(&self, repo: &Repo, path: &RepoPath) -> Result<Option<Self>> {
        find(repo, self.copies.as_ref(), path)
    }
}

impl StoredCheckpoint {
    /// The files of the nested repository at `path`; `None` where this checkpoint has no copy of them.
    pub fn nested_copy(&self, repo: &Repo, path: &RepoPath) -> Result<Option<NestedCopy>> {
        find(repo, self.copies.as_ref(), path)
    }
}

fn find(repo: &Repo, copies: Option<&ObjectId>, path: &RepoPath) -> Result<Option<NestedCopy>> {
    let Some(copies) = copies else {
        return Ok(None);
    };
    let database = Database::open(repo)?;
    let Some(one) = trees::find(&database, parse_oid(copies)?, digits(path)?.as_bytes())? else {
        return Ok(None);
    };
    let one = Tree::read(&database, one)?;
    let id = |name: &[u8]| one.find(name).map(|entry| entry.oid);
    let (Some(tree), Some(manifest)) = (id(FILES), id(MANIFEST)) else {
        return Err(Error::corrupt(format!(
            "the files of nested repository {path} are not whole"
        )));
    };
    Ok(Some(NestedCopy {
        tree: ObjectId(tree.to_string()),
        manifest: parse_manifest(&database.blob(manifest)?)?,
        copies: id(FOLDER.as_bytes()).map(|oid| ObjectId(oid.to_string())),
    }))
}

/// What was copied.
#[derive(Debug)]
pub(crate) struct Copies {
    /// The tree of all; `None` where there is nothing to copy.
    pub tree: Option<ObjectId>,
    /// The repositories whose objects could not be read.
    pub failed: Vec<(RepoPath, Error)>,
}

/// Where copies come from and go to.
struct Bringing<'a> {
    writer: &'a ObjectWriter,
    /// The nested repository's objects.
    from: Database<'a>,
    /// Those of the one around it, where an earlier checkpoint's trees are read.
    around: Database<'a>,
    seen: HashSet<Oid>,
}

impl Repo {
    /// Writes what is not there yet of the nested repositories' checkpoints (`path`, repository, commit) and returns the tree
    /// of all copies, for [`CheckpointParts::copies`](super::CheckpointParts::copies). Nothing is published.
    ///
    /// What `before` holds, a checkpoint that its reference keeps, is not examined again; without one that is the last
    /// recorded checkpoint of this work tree. An error of one repository's objects is returned with its path: that one has no
    /// copy then.
    pub(crate) fn copy_nested(
        &self,
        capture: &Capture,
        before: Option<&StoredCheckpoint>,
        nested: &[(&RepoPath, &Repo, &ObjectId)],
    ) -> Result<Copies> {
        let last = || {
            capture
                .last_recorded()
                .and_then(|commit| self.load_checkpoint(&commit).ok())
        };
        let copies = match before {
            Some(before) => before.copies.clone(),
            None => last().and_then(|stored| stored.copies),
        };
        let around = Database::open(self)?;
        let copies = copies.filter(|_| capture.writer.trusts_earlier());
        let before = copies.and_then(|copies| Tree::read(&around, parse_oid(&copies).ok()?).ok());
        let (mut all, mut failed) = (Vec::new(), Vec::new());
        for (path, repo, commit) in nested {
            let name = digits(path)?;
            let known = before
                .as_ref()
                .and_then(|tree| tree.find(name.as_bytes()))
                .map(|entry| entry.oid);
            match copy(self, &capture.writer, (repo, commit), known) {
                Ok(one) => all.push((name, one)),
                // What this repository is to blame for keeps the others from nothing.
                Err(error @ Error::Corrupt(_)) => failed.push(((*path).clone(), error)),
                Err(error) => return Err(error),
            }
        }
        let mut level = Level::default();
        for (name, one) in &all {
            level.add(name.as_bytes(), TREE, *one);
        }
        let written = if level.is_empty() {
            None
        } else {
            Some(
                capture
                    .writer
                    .write(ObjectType::Tree, &level.into_bytes())?,
            )
        };
        Ok(Copies {
            tree: written.map(|oid| ObjectId(oid.to_string())),
            failed,
        })
    }

    /// The references in a nested repository that belong to this checkpoint of an outer one.
    pub(crate) fn nested_refs_of(
        &self,
        run_id: &RunId,
        checkpoint: &CheckpointId,
    ) -> Result<Vec<CheckpointRef>> {
        let outer = CheckpointRef::name_of(run_id, checkpoint);
        let (all, _) = self.list_refs()?;
        Ok(all
            .into_iter()
            .filter(|found| found.outer_name() == Some(outer.as_str()))
            .collect())
    }
}

/// Copies the files of one checkpoint; `known` is the copy that an earlier checkpoint has.
fn copy(
    outer: &Repo,
    writer: &ObjectWriter,
    (repo, commit): (&Repo, &ObjectId),
    known: Option<Oid>,
) -> Result<Oid> {
    let stored = repo.load_checkpoint(commit)?;
    let mut bringing = Bringing {
        writer,
        from: Database::open(repo)?,
        around: Database::open(outer)?,
        seen: HashSet::new(),
    };
    let state = parse_oid(&stored.state_tree)?;
    let manifest = trees::find(&bringing.from, state, MANIFEST)?
        .ok_or_else(|| Error::corrupt("it has no manifest"))?;
    let mut level = Level::default();
    level.add(MANIFEST, BLOB, manifest);
    level.add(FILES, TREE, parse_oid(&stored.tree)?);
    if let Some(inner) = &stored.copies {
        level.add(FOLDER.as_bytes(), TREE, parse_oid(inner)?);
    }
    let bytes = level.into_bytes();
    let id = id_of(ObjectType::Tree, &bytes)?;
    if known == Some(id) && writer.holds(id)? {
        return Ok(id);
    }
    if repo.common_dir() != outer.common_dir() {
        let known = known.and_then(|known| Tree::read(&bringing.around, known).ok());
        bringing.entries(
            &Tree::parse(bytes.clone()).unwrap_or_default(),
            known.as_ref(),
        )?;
    }
    writer.write(ObjectType::Tree, &bytes)
}

impl Capture {
    /// Makes the trees (and no blob) of a capture readable through that of the repository around it.
    pub(crate) fn show_trees(&self, outer: &Repo, inner: &Capture) -> Result<()> {
        let quarantine = inner.writer.repository()?;
        let (from, around) = (Database::of(&quarantine)?, Database::open(outer)?);
        let mut bringing = Bringing {
            writer: &self.writer,
            from,
            around,
            seen: HashSet::new(),
        };
        for tree in [Some(&inner.tree), inner.index_tree.as_ref()]
            .into_iter()
            .flatten()
        {
            bringing.trees_alone(parse_oid(tree)?)?;
        }
        Ok(())
    }
}

impl Bringing<'_> {
    /// Brings everything below a tree but what is in `known`, which is there, and then the tree itself.
    fn tree(&mut self, oid: Oid, known: Option<Oid>) -> Result<()> {
        if known == Some(oid) && self.writer.holds(oid)? || !self.seen.insert(oid) {
            return Ok(());
        }
        let object = self.from.read(oid)?;
        let bytes = object.data.clone();
        let known = known.and_then(|known| Tree::read(&self.around, known).ok());
        self.entries(&Tree::of(oid, object)?, known.as_ref())?;
        self.writer.write(ObjectType::Tree, &bytes).map(drop)
    }

    fn entries(&mut self, tree: &Tree, known: Option<&Tree>) -> Result<()> {
        for TreeEntry { name, mode, oid } in tree.entries() {
            let same = known
                .and_then(|known| known.find(name))
                .filter(|known| known.mode == mode);
            if mode == TREE {
                self.tree(oid, same.map(|known| known.oid))?;
            } else if mode != GITLINK && self.seen.insert(oid) && !self.writer.holds(oid)? {
                self.blob(oid)?;
            }
        }
        Ok(())
    }

    fn blob(&self, oid: Oid) -> Result<()> {
        if let Some(mut file) = self.from.open_file(oid)?
            && file.metadata().is_ok_and(|file| file.len() > LARGE)
        {
            return self.writer.write_loose(oid, &mut file);
        }
        self.writer
            .write(ObjectType::Blob, &self.from.blob(oid)?)
            .map(drop)
    }

    fn trees_alone(&mut self, oid: Oid) -> Result<()> {
        if !self.seen.insert(oid) {
            return Ok(());
        }
        let object = self.from.read(oid)?;
        let bytes = object.data.clone();
        for TreeEntry { mode, oid, .. } in Tree::of(oid, object)?.entries() {
            if mode == TREE {
                self.trees_alone(oid)?;
            }
        }
        self.writer.write(ObjectType::Tree, &bytes).map(drop)
    }
}

/// How many digits of the path's hash stand in the name.
const DIGITS: usize = 10;

/// What represents a path in a name.
pub(in crate::git) fn digits(path: &RepoPath) -> Result<String> {
    let hash =
        Oid::hash_object(ObjectType::Blob, path.as_bytes()).map_err(Error::git("hash a path"))?;
    Ok(hash.to_string()[..DIGITS].to_owned())
}

impl CheckpointRef {
    /// The id of the part of a checkpoint that a nested repository holds. `path` is relative to the outermost work tree.
    pub(crate) fn nested_id(checkpoint: &CheckpointId, path: &RepoPath) -> Result<CheckpointId> {
        Ok(format!("{checkpoint}-{}", digits(path)?).into())
    }

    /// The name of the outer checkpoint's reference that this one of a nested repository belongs to; `None` for others.
    pub(crate) fn outer_name(&self) -> Option<&str> {
        let (outer, hash) = self.name.rsplit_once('-')?;
        (hash.len() == DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(outer)
    }
}
