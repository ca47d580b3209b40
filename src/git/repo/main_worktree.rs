//! Where the main worktree is, seen from a linked one.
//!
//! git records it only where the git folder lies in it, or `core.worktree` names it. Of a git folder elsewhere its name is
//! noted when something is written in the main worktree; in a worktree that is a run's own, when that is made: its project
//! may be a linked worktree itself, where the repository is bare.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::repository::{MainWorktree, OWN, Repo, is_same_folder};
use crate::durable::{Root, Sync};
use crate::git::base::{At as _, Error, Result};

/// The name of the note, in a folder of ours in a git folder.
const NOTE: &str = "main-worktree";

impl Repo {
    /// The root of the main worktree; this one's where there is no other (or the main repository is bare).
    pub fn main_worktree(&self) -> PathBuf {
        let main = self
            .main_repository()
            .filter(|_| self.is_linked())
            .and_then(git2::Repository::workdir);
        main.and_then(|main| std::fs::canonicalize(main).ok())
            .unwrap_or_else(|| self.workdir().to_owned())
    }

    /// The repository as it is in the main worktree; `None` where that cannot be opened.
    pub(in crate::git) fn main_repository(&self) -> Option<&git2::Repository> {
        if !self.is_linked() {
            return Some(&self.inner);
        }
        match self.main.get_or_init(|| self.find_main()) {
            MainWorktree::Noted(main) => Some(main),
            MainWorktree::Found => self.shared_repository(),
            MainWorktree::None | MainWorktree::Unknown => None,
        }
    }

    /// The repository for questions about commits and their parents. Git's library finds where a shallow clone ends only where
    /// it opens the folder that all worktrees share.
    pub(in crate::git) fn history(&self) -> &git2::Repository {
        let shared = self.is_linked().then(|| self.shared_repository()).flatten();
        shared.unwrap_or(&self.inner)
    }

    /// The repository as the folder shows it that all worktrees share.
    fn shared_repository(&self) -> Option<&git2::Repository> {
        let shared = || git2::Repository::open(self.common_dir()).ok();
        self.by_common.get_or_init(shared).as_ref()
    }

    fn find_main(&self) -> MainWorktree {
        let own = self.own().read(&self.own_folder().join(NOTE)).ok();
        let is_of_project = own.is_some();
        let shared = self.shared().read(&self.shared_folder().join(NOTE)).ok();
        for noted in own.into_iter().chain(shared) {
            let place = Path::new(OsStr::from_bytes(&noted));
            if let Ok(main) = git2::Repository::open(place)
                && is_same_folder(main.commondir(), self.common_dir())
            {
                return MainWorktree::Noted(main);
            }
        }
        let Some(shared) = self.shared_repository() else {
            return MainWorktree::None;
        };
        let says = |key| shared.config().is_ok_and(|all| all.get_entry(key).is_ok());
        if shared.is_bare() && !is_of_project {
            MainWorktree::None
        } else if !shared.is_bare()
            && (self.common_dir().ends_with(".git") || says("core.worktree"))
        {
            MainWorktree::Found
        } else {
            MainWorktree::Unknown
        }
    }

    /// Refuses a linked worktree whose main one, in which all that is recorded lies, is not known.
    pub(super) fn refuse_unknown_main(&self) -> Result<()> {
        let is_unknown = self.is_linked()
            && matches!(
                self.main.get_or_init(|| self.find_main()),
                MainWorktree::Unknown
            );
        if !is_unknown {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "git does not record which work tree is the main one of {}, where the runs are recorded: \
            'recover checkpoint create' there makes it known",
            self.common_dir()
                .components()
                .collect::<PathBuf>()
                .display()
        )))
    }

    /// Notes where this worktree is, where git does not record it. A link to a git folder records nothing either.
    pub(super) fn note_main(&self) -> Result<()> {
        let is_known = || {
            std::fs::canonicalize(self.git_dir())
                .is_ok_and(|real| real == self.workdir().join(".git"))
                || self
                    .config()
                    .is_ok_and(|all| all.get_entry("core.worktree").is_ok())
        };
        if self.is_linked() || self.is_private() || is_known() {
            return Ok(());
        }
        note(self.own(), &self.own_folder(), self.workdir())
    }

    /// Notes in the git folder of a linked worktree that it is of the same project as this one: where that is a linked one
    /// itself, by its git folder, which git has follow it.
    pub(in crate::git) fn note_project(&self, git_dir: &Path) -> Result<()> {
        let (root, folder) = (Root::with_own(git_dir, OWN), git_dir.join(OWN));
        root.create_dir_all(&folder).at(&folder)?;
        let main = self.main_repository().unwrap_or(&self.inner);
        if main.is_worktree() {
            note(&root, &folder, main.path())
        } else {
            note(&root, &folder, &self.main_worktree())
        }
    }
}

fn note(root: &Root, folder: &Path, place: &Path) -> Result<()> {
    let (file, name) = (folder.join(NOTE), place.as_os_str().as_bytes());
    if root.read(&file).is_ok_and(|noted| noted == name) {
        return Ok(());
    }
    root.write(&file, name, Sync::All).at(&file)
}
