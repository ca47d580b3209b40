//! Where the vaults are, and whether the repository here is the one that is recorded in its vault.

use std::path::{Path, PathBuf};

use super::{Context, place};
use crate::durable::Root;
use crate::git::Repo;
use crate::git::vault::Vault;
use crate::os::passing_file_system;

impl Context {
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
            .map(|home| place::plain_path(&home))
            .filter(|home| home.starts_with(worktree))
    }
}
