//! Lends the owner of folders and files the right to read them, so that they can be captured.
//!
//! What they had is written down before it changes (`$GIT_DIR/recover/loan.json`): who finds that file gives it back.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::locks::WorktreeLock;
use super::repository::Repo;
use crate::durable::{Root, Sync};
use crate::git::base::{
    At as _, DirfdCache, Error, FileStat, Result, openat, present, sync_folder,
};
use crate::model::{PathMode, RepoPath};

const FILE: &str = "loan.json";
/// What an owner needs to read a file.
const FILE_RIGHTS: u32 = 0o400;
/// What an owner needs to see what is in a folder.
const FOLDER_RIGHTS: u32 = 0o500;

/// Whether the owner of a path may be lent the right to read it: a file, or (`true`) a folder.
pub(crate) type MayLend<'m> = &'m dyn Fn(&RepoPath, bool) -> Result<bool>;

/// What is lent until it is dropped.
#[derive(Debug)]
pub(crate) struct Loan {
    journal: PathBuf,
    own: Root,
    workdir: PathBuf,
    /// Paths with the permissions that they had.
    lent: BTreeMap<RepoPath, u32>,
}

#[derive(Serialize, Deserialize)]
struct Journal {
    lent: Vec<PathMode>,
}

impl Loan {
    /// Lends what `paths`, which cannot be read, lack, and all that is in them; `None` where nothing can be lent.
    pub(crate) fn lend(
        repo: &Repo,
        _lock: &WorktreeLock,
        paths: &[RepoPath],
        may: MayLend<'_>,
    ) -> Result<Option<Self>> {
        let mut loan = Self::of(repo)?;
        let mut folders = DirfdCache::of(repo.workdir())?;
        let mut opened = Vec::new();
        for path in paths {
            for part in path.ancestors().chain([path.clone()]) {
                let (parent, name) = openat::split(&part);
                let Ok(dir) = folders.open(&parent) else {
                    break;
                };
                match lacking(&dir, name).on(&part)? {
                    Some(stat) if may(&part, stat.kind() == FileType::Directory)? => {
                        loan.give(&dir, vec![(part.clone(), stat)])?;
                        opened.push(part);
                    }
                    Some(_) => break,
                    None => {}
                }
            }
        }
        // What was out of sight lacks rights of its own, maybe.
        while let Some(folder) = opened.pop() {
            let Ok(dir) = folders.open(&folder) else {
                continue;
            };
            let mut lacks = Vec::new();
            for name in openat::names(&openat::open_folder(&dir, b".").on(&folder)?).on(&folder)? {
                let path = folder.join(&name);
                if let Some(stat) = lacking(&dir, &name).on(&folder)? {
                    if !may(&path, stat.kind() == FileType::Directory)? {
                        continue;
                    }
                    lacks.push((path.clone(), stat));
                }
                opened.push(path);
            }
            loan.give(&dir, lacks)?;
        }
        Ok((!loan.lent.is_empty()).then_some(loan))
    }

    /// Gives back what a process that was killed has lent. Returns whether there was anything.
    pub(crate) fn give_back_left(repo: &Repo, _lock: &WorktreeLock) -> Result<bool> {
        let Some(read) = repo.read_journal::<Journal>(FILE, 0)? else {
            return Ok(false);
        };
        let mut loan = Self::of(repo)?;
        loan.lent = read
            .lent
            .into_iter()
            .map(|lent| (lent.path, lent.mode))
            .collect();
        loan.give_back().map(|()| true)
    }

    /// Whether a process that was killed has lent anything.
    pub(crate) fn is_left(repo: &Repo) -> bool {
        repo.has_journal(FILE)
    }

    /// The permissions that a path had, where it was lent any.
    pub(crate) fn mode(&self, path: &RepoPath) -> Option<u32> {
        self.lent.get(path).copied()
    }

    /// What was lent, with the permissions that it had.
    pub(crate) fn lent(&self) -> &BTreeMap<RepoPath, u32> {
        &self.lent
    }

    fn of(repo: &Repo) -> Result<Self> {
        let journal = repo.recover_dir()?.join(FILE);
        Ok(Self {
            journal,
            own: repo.own().clone(),
            workdir: repo.workdir().to_owned(),
            lent: BTreeMap::new(),
        })
    }

    /// Lends to names of one folder what they lack, once that is written down.
    fn give(&mut self, dir: &Rc<OwnedFd>, lacks: Vec<(RepoPath, FileStat)>) -> Result<()> {
        if lacks.is_empty() {
            return Ok(());
        }
        self.lent.extend(
            lacks
                .iter()
                .map(|(path, stat)| (path.clone(), stat.permissions())),
        );
        let lent = self
            .lent
            .iter()
            .map(|(path, mode)| PathMode {
                path: path.clone(),
                mode: *mode,
            })
            .collect();
        let text = serde_json::to_vec(&Journal { lent })
            .map_err(|error| Error::corrupt(format!("loan: {error}")))?;
        self.own
            .write(&self.journal, &text, Sync::All)
            .at(&self.journal)?;
        for (path, stat) in lacks {
            let mode = stat.permissions() | rights(stat.kind());
            openat::chmod(dir, openat::split(&path).1, mode).on(&path)?;
        }
        Ok(())
    }

    /// Gives all of it back; what another program changed meanwhile stays.
    fn give_back(&mut self) -> Result<()> {
        let mut folders = DirfdCache::of(&self.workdir)?;
        // The deepest first: a folder without rights hides what is in it.
        for (path, mode) in self.lent.iter().rev() {
            let (parent, name) = openat::split(path);
            let Ok(dir) = folders.open(&parent) else {
                continue;
            };
            let Some(stat) = openat::stat(&dir, name).on(path)? else {
                continue;
            };
            if stat.permissions() == mode | rights(stat.kind()) {
                openat::chmod(&dir, name, *mode).on(path)?;
            }
        }
        self.lent.clear();
        match present(&self.journal, self.own.remove_file(&self.journal))? {
            Some(()) => self.journal.parent().map_or(Ok(()), sync_folder),
            None => Ok(()),
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if !self.lent.is_empty()
            && let Err(error) = self.give_back()
        {
            tracing::warn!(%error, "the permissions of what was captured are put back by the next command");
        }
    }
}

fn rights(kind: FileType) -> u32 {
    if kind == FileType::Directory {
        FOLDER_RIGHTS
    } else {
        FILE_RIGHTS
    }
}

/// A file or folder of this user that lacks what its owner needs to read it.
fn lacking(dir: &OwnedFd, name: &[u8]) -> io::Result<Option<FileStat>> {
    let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::ACCESS) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
    let seen = FileStat::from(stat);
    let is_content = matches!(seen.kind(), FileType::RegularFile | FileType::Directory);
    Ok(Some(seen).filter(|seen| {
        is_own && is_content && seen.permissions() & rights(seen.kind()) != rights(seen.kind())
    }))
}
