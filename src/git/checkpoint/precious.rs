//! Ignored files that matter (`.env` and its like), beside the checkpoints and never in a commit.
//!
//! `recover/precious` in the folder that all work trees share holds contents by their hash, and a list for each checkpoint:
//! which ignored names were there, and which of them have a copy. All of it is for the user alone.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::PathBuf;

use git2::{ObjectType, Oid};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use crate::durable::{Kind, Root, Sync, is_temporary, temporary_prefix};
use crate::git::base::{At as _, Error, Globs, Result, openat, present};
use crate::git::capture::Capture;
use crate::git::repo::repository::Repo;
use crate::model::{CheckpointId, RepoPath};

/// A larger file, in bytes, has no copy.
const LARGEST: u64 = 1 << 20;
/// Files of a checkpoint that have a copy at most.
const MOST: usize = 100;
/// Names that are recorded at most.
const NAMES: usize = 1000;

/// What a checkpoint's list says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IgnoredPaths {
    /// Ignored files and folders that were there, in folders that were examined.
    pub names: Vec<RepoPath>,
    /// Files among them that have a copy.
    pub copies: Vec<PreciousFile>,
}

/// An ignored file and its copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreciousFile {
    /// The file.
    #[serde(flatten)]
    pub path: RepoPath,
    /// Its permission bits.
    pub mode: u32,
    /// The hash of its content, and the copy's name.
    pub hash: String,
}

fn folder(repo: &Repo) -> PathBuf {
    repo.shared_folder().join("precious")
}

fn list_of(repo: &Repo, id: &CheckpointId) -> PathBuf {
    folder(repo).join(format!("{id}.json"))
}

impl Repo {
    /// Notes which ignored names a capture came by, and copies files among them that match one of the globs: their path, or
    /// where a glob has no `/`, their name.
    pub(crate) fn note_ignored(
        &self,
        capture: &Capture,
        id: &CheckpointId,
        globs: &[String],
    ) -> Result<()> {
        let ignored = capture.ignored();
        if ignored.is_empty() || capture.manifest.rules.tracked_only {
            return Ok(());
        }
        let globs = Globs::new(globs)?;
        let is_precious = |path: &RepoPath| {
            globs.matches(path)
                || globs.matches(&RepoPath::new(
                    path.as_bytes()
                        .rsplit(|byte| *byte == b'/')
                        .next()
                        .unwrap_or_default(),
                ))
        };
        let (place, root) = (folder(self), openat::open_root(self.workdir())?);
        let mut copies = Vec::new();
        for path in ignored
            .iter()
            .filter(|(path, is_folder)| !is_folder && is_precious(path))
            .map(|(path, _)| path)
        {
            if copies.len() == MOST {
                break;
            }
            // What cannot be read, went away or is no file has no copy, and is named as gone later on.
            let Ok(Some((content, mode))) = read(&root, path) else {
                continue;
            };
            let failed = || Error::git("name a copy");
            let hash = Oid::hash_object(ObjectType::Blob, &content)
                .map_err(failed())?
                .to_string();
            let copy = place.join(&hash);
            if !self.shared().has(&copy).at(&copy)? {
                self.shared().create_dir_all(&place).at(&place)?;
                self.shared().write(&copy, &content, Sync::All).at(&copy)?;
            }
            copies.push(PreciousFile {
                path: path.clone(),
                mode,
                hash,
            });
        }
        let sync = if copies.is_empty() {
            Sync::Nothing
        } else {
            Sync::Content
        };
        let names = ignored
            .into_iter()
            .take(NAMES)
            .map(|(path, _)| path)
            .collect();
        let (list, file) = (IgnoredPaths { names, copies }, list_of(self, id));
        let text =
            serde_json::to_vec(&list).map_err(|error| Error::io(&file, io::Error::from(error)))?;
        self.shared().create_dir_all(&place).at(&place)?;
        self.shared().write(&file, &text, sync).at(&file)
    }

    /// What the list of a checkpoint says; nothing where there is none that can be read.
    pub(crate) fn ignored_at(&self, id: &CheckpointId) -> IgnoredPaths {
        let read = self.shared().read_if_possible(&list_of(self, id));
        let list = read
            .ok()
            .flatten()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        list.unwrap_or_default()
    }

    /// Forgets the lists of checkpoints that are gone, and the copies that no list names any more.
    pub(crate) fn forget_ignored<'a>(
        &self,
        gone: impl IntoIterator<Item = &'a CheckpointId>,
    ) -> Result<()> {
        let (root, place) = (self.shared(), folder(self));
        let remove = |path: PathBuf| present(&path, root.remove_file(&path)).map(drop);
        gone.into_iter()
            .try_for_each(|id| remove(list_of(self, id)))?;
        let found = present(&place, root.list(&place))?.unwrap_or_default();
        let (mut named, mut copies) = (BTreeSet::new(), Vec::new());
        for (name, _) in found.iter().filter(|(name, kind)| {
            *kind == Kind::RegularFile && !is_temporary(name.as_encoded_bytes())
        }) {
            match name.to_str().and_then(|name| name.strip_suffix(".json")) {
                Some(id) => {
                    named.extend(
                        self.ignored_at(&CheckpointId::from(id.to_owned()))
                            .copies
                            .into_iter()
                            .map(|file| file.hash),
                    );
                }
                None => copies.push(name),
            }
        }
        let unnamed = copies
            .into_iter()
            .filter(|name| !name.to_str().is_some_and(|name| named.contains(name)));
        unnamed.map(|name| place.join(name)).try_for_each(remove)
    }
}

/// The content and mode of a file that is not too large; `None` for anything else.
fn read(root: &std::os::fd::OwnedFd, path: &RepoPath) -> io::Result<Option<(Vec<u8>, u32)>> {
    let (parent, name) = openat::split(path);
    let dir = openat::open_path(root, &parent)?;
    let Some(found) =
        openat::stat(&dir, name)?.filter(|found| found.kind() == FileType::RegularFile)
    else {
        return Ok(None);
    };
    let mut content = Vec::new();
    openat::open_file(&dir, name)?
        .take(LARGEST + 1)
        .read_to_end(&mut content)?;
    Ok((content.len() as u64 <= LARGEST).then(|| (content, found.permissions())))
}

impl IgnoredPaths {
    /// What is not there now: files that have a copy, and other names.
    pub(crate) fn missing(self, repo: &Repo) -> (Vec<PreciousFile>, Vec<RepoPath>) {
        let is_gone = |path: &RepoPath| {
            path.below(repo.workdir())
                .symlink_metadata()
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let copies: Vec<PreciousFile> = self
            .copies
            .into_iter()
            .filter(|file| is_gone(&file.path))
            .collect();
        let others = self.names.into_iter().filter(is_gone);
        let others = others
            .filter(|path| copies.iter().all(|file| file.path != *path))
            .collect();
        (copies, others)
    }
}

impl PreciousFile {
    /// Puts a copy back where nothing has its name. Returns whether nothing had.
    pub(crate) fn put_back(&self, repo: &Repo) -> Result<bool> {
        let copy = folder(repo).join(&self.hash);
        let content = repo.shared().read(&copy).at(&copy)?;
        if Oid::hash_object(ObjectType::Blob, &content)
            .map_err(Error::git("read a copy"))?
            .to_string()
            != self.hash
        {
            return Err(Error::corrupt(copy.display().to_string()));
        }
        let (tree, path) = (
            Root::shared(repo.workdir()),
            self.path.below(repo.workdir()),
        );
        let failed = || Error::at(&path);
        let beside = path.with_file_name(format!("{}precious", temporary_prefix()));
        path.parent()
            .map_or(Ok(()), |parent| tree.create_dir_all(parent))
            .map_err(failed())?;
        tree.write_mode(&beside, &content, self.mode, Sync::Content)
            .map_err(failed())?;
        let linked = tree.link_or_move(&beside, &tree, &path);
        let _ = tree.remove_file(&beside);
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            linked => linked.map(|()| true).map_err(failed()),
        }
    }
}
