//! What a capture takes of a work tree, and the files of ours outside of it: notes, logs and vaults.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{Context, plain_path};
use crate::durable::{Root, Sync};
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::git::Repo;
use crate::git::vault::Vault;
use crate::model::path::normalized;
use crate::model::{CaptureRules, RepoPath};
use crate::os::passing_file_system;
use crate::policy::restore::glob_of;
use crate::store::Origin;

/// Where in the user's state folder the work trees are that were made for runs.
pub(crate) const WORKTREES: &str = "recover/worktrees";

impl Context {
    /// What a capture takes: the configured rules, and never what is ours: the state directory and the lane records.
    pub(crate) fn capture_rules(&self) -> CaptureRules {
        let settings = &self.settings().checkpoint;
        // Without an index everything is untracked.
        let factor = if self.has_git() { 1 } else { 10 };
        CaptureRules {
            max_file_size: settings.max_file_size.saturating_mul(factor),
            max_untracked_files: settings.max_untracked_files.saturating_mul(factor),
            max_untracked_bytes: settings.max_untracked_bytes.saturating_mul(factor),
            include: settings.include.clone(),
            exclude: settings
                .exclude
                .iter()
                .chain(self.shared())
                .cloned()
                .collect(),
            editor_temp_globs: Vec::new(),
            excluded_dirs: [self.store().dir(), self.store().lane_file()]
                .map(Path::to_owned)
                .into_iter()
                .chain(self.vault_in(self.worktree()))
                .collect(),
            publish_incrementally: false,
            tracked_only: self.setup.allow_home,
            before: None,
        }
    }

    /// What this work tree shares with another one, where it is one that was made for a run.
    fn shared(&self) -> &[String] {
        let shared = &self.settings().isolated.share;
        let is_made = || {
            let made = self.user_state_home()?.join(WORKTREES);
            Some(self.worktree().starts_with(plain_path(&made)))
        };
        if !shared.is_empty() && is_made().unwrap_or(false) {
            shared
        } else {
            &[]
        }
    }

    /// Globs of ignored files that are copied beside the checkpoints; none in CI, where what such files hold is the machine's.
    pub(crate) fn precious(&self) -> Vec<String> {
        if self.env("CI").is_some() {
            Vec::new()
        } else {
            self.settings().capture.precious.clone()
        }
    }

    /// The last bytes of a file in the state directory, at most `most`, and how many come before them.
    pub(in crate::engine) fn read_end(&self, path: &Path, most: u64) -> io::Result<(Vec<u8>, u64)> {
        let mut file = self.store().root().open(path)?;
        let skipped = file.metadata()?.len().saturating_sub(most);
        file.seek(SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok((bytes, skipped))
    }

    /// Writes such a file, with its folder, unless nothing may be written here. What cannot be written is only logged.
    pub(in crate::engine) fn write_note(&self, path: &Path, bytes: &[u8]) {
        if self.dry_run() || self.store().origin() != Origin::Ours {
            return;
        }
        let root = self.store().root();
        let folder = path.parent().unwrap_or(path);
        let made = root.create_dir_all(folder);
        if let Err(error) = made.and_then(|()| root.write(path, bytes, Sync::Nothing)) {
            tracing::debug!(%error, path = %path.display(), "a note was not written");
        }
    }

    /// Writes a file in the state directory, with its folder, on disk when this returns.
    pub(in crate::engine) fn write_state_file(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let root = self.store().root();
        let folder = path.parent().unwrap_or(path);
        let made = root.create_dir_all(folder);
        let written = made.and_then(|()| {
            root.reap(folder);
            root.write(path, bytes, Sync::All)
        });
        written.map_err(|error| Error::cannot("write", path, error))
    }

    /// The user's state folder, of which `recover` in it is ours; `None` where it would be in a home that is missing.
    pub(crate) fn user_state(&self) -> Option<Root> {
        let home = self.setup.home.as_ref().filter(|home| !home.is_dir());
        let state = self.user_state_home()?;
        let is_missing = home.is_some_and(|home| state.starts_with(home));
        (!is_missing).then(|| Root::with_own(state, "recover").made())
    }

    /// The folder of all vaults of the user.
    pub(crate) fn all_vaults(&self) -> Option<PathBuf> {
        match &self.settings().vault.dir {
            None => Some(self.user_state_home()?.join("recover").join("vault")),
            Some(dir) => match dir.strip_prefix("~/") {
                Some(below) => Some(self.setup.home.as_ref()?.join(below)),
                None => Some(PathBuf::from(dir)),
            },
        }
    }

    /// The folder of all vaults, where one is kept of this repository; else why there is none.
    pub(crate) fn vaults(&self) -> Result<PathBuf, String> {
        let home = self.all_vaults().ok_or("there is no home folder")?;
        if !self.settings().vault.enabled {
            return Err("[vault] enabled = false".to_owned());
        }
        if self.env("CI").is_some() {
            return Err("CI is set".to_owned());
        }
        let is_missing = |user: &PathBuf| home.starts_with(user) && !user.is_dir();
        if self.setup.home.as_ref().is_some_and(is_missing) {
            return Err("the home folder is missing".to_owned());
        }
        // Whoever names a folder knows what it is.
        let passes = || {
            let there = home.ancestors().find(|folder| folder.is_dir())?;
            let how = passing_file_system(there)?;
            let named =
                self.settings().vault.dir.is_some() || self.env("RECOVER_TEST_VAULT").is_some();
            (!named).then(|| format!("{} is {how}", home.display()))
        };
        passes().map_or(Ok(home), Err)
    }

    /// The root of the main work tree.
    pub(in crate::engine) fn project(&self) -> PathBuf {
        let main = self.git().map(Repo::main_worktree);
        main.unwrap_or_else(|| match self.unusable() {
            Some(unusable) => unusable.project(),
            None => self.worktree().to_owned(),
        })
    }

    /// The git folder that this project's repository has, or had: the user's, else our own.
    pub(in crate::engine) fn git_folder(&self) -> PathBuf {
        let unusable = self
            .unusable()
            .and_then(|unusable| unusable.common_dir.clone());
        match self.git() {
            Some(repo) => repo.common_dir().to_owned(),
            None => unusable.unwrap_or_else(|| self.store().private_dir().join("shadow.git")),
        }
    }

    /// The vault of the repository that was here, where it is gone or another one is in its place.
    pub(crate) fn lost_vault(&self) -> Option<&Vault> {
        self.lost_vault.get_or_init(|| self.find_lost()).as_ref()
    }

    fn find_lost(&self) -> Option<Vault> {
        if self.setup.settings_only || self.vaults().is_err() {
            return None;
        }
        if Vault::id_in(&self.git_folder()).is_some() {
            return None;
        }
        let vault = Vault::at(&self.all_vaults()?, &self.project())?;
        if !vault.about.complete {
            return None;
        }
        // A folder without git that becomes a repository has lost nothing.
        let is_there = |repo: &Repo| vault.about.private || vault.is_of(repo);
        (!self.git().is_some_and(is_there)).then_some(vault)
    }

    /// Whether a folder is one of the vaults, or the folder of all.
    pub(super) fn vault_in(&self, worktree: &Path) -> Option<PathBuf> {
        self.all_vaults()
            .map(|home| plain_path(&home))
            .filter(|home| home.starts_with(worktree))
    }
}

impl Context {
    /// A path of the work tree, as `option` gives it from the folder that the command was called in.
    ///
    /// # Errors
    /// It is not in the work tree (2).
    pub(crate) fn in_work_tree(&self, option: &str, path: &Path) -> Result<RepoPath> {
        let whole = normalized(&self.cwd().join(path));
        let inside = whole.strip_prefix(self.worktree()).map_err(|_| {
            let (path, worktree) = (path.display(), self.worktree().display());
            let message = format!("{option} {path}: not in the work tree {worktree}");
            Error::new(ErrorKind::Usage, message)
        })?;
        Ok(RepoPath::new(inside.as_os_str().as_bytes()))
    }

    /// Globs of the work tree, as `--path` gives them from the folder that the command was called in.
    ///
    /// # Errors
    /// One is not in the work tree (2).
    pub(crate) fn globs_in_work_tree(&self, globs: &[String]) -> Result<Vec<String>> {
        // Where the command is about another work tree, they are of that one.
        let Ok(below) = self.cwd().strip_prefix(self.worktree()) else {
            return Ok(globs.to_vec());
        };
        let below = glob_of(&RepoPath::new(below.as_os_str().as_bytes()));
        let here = self.worktree().join(below);
        let inside = |glob: &String| {
            let whole = normalized(&here.join(glob));
            let inside = whole.strip_prefix(self.worktree()).map_err(|_| {
                let message = format!(
                    "--path {glob}: not in the work tree {}",
                    self.worktree().display()
                );
                Error::new(ErrorKind::Usage, message)
            })?;
            let inside = inside.to_string_lossy().into_owned();
            Ok(if inside.is_empty() {
                ".".to_owned()
            } else {
                inside
            })
        };
        globs.iter().map(inside).collect()
    }
}
