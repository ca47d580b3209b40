//! The journal of a restore of files, `$GIT_DIR/recover/journal.json`.
//! Written before the first change of the work tree, removed after the last. Who finds one finishes or reverts what it
//! describes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::durable::{Sync, is_left_over};
use crate::git::base::error::{Error, Result};
use crate::git::base::openat::{self, sync_folder};
use crate::git::repo::locks::WorktreeLock;
use crate::git::repo::repository::Repo;
use crate::model::id::OperationId;
use crate::model::manifest::{Head, ObjectId};
use crate::model::path::{PathReason, RepoPath};
use crate::policy::restore_plan::RestorePlan;

/// The version that this program writes.
pub const JOURNAL_VERSION: u32 = 1;

const FILE: &str = "journal.json";

/// Everything needed to finish or revert a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreJournal {
    /// [`JOURNAL_VERSION`] of the writer.
    pub version: u32,
    /// The operation, as the ledger will name it.
    pub operation_id: OperationId,
    /// `rollback`, `restore`, `undo`, `redo`, …
    pub kind: String,
    /// The safety checkpoint's commit.
    pub safety_commit: ObjectId,
    /// The target's commit.
    pub target_commit: ObjectId,
    /// The globs that were given.
    #[serde(default)]
    pub selection: Vec<String>,
    /// What is done to the files.
    pub plan: RestorePlan,
    /// What is kept on purpose.
    #[serde(default)]
    pub kept: Vec<PathReason>,
    /// HEAD before.
    pub head_before: Head,
    /// HEAD afterwards, when it is moved.
    #[serde(default)]
    pub head_after: Option<Head>,
    /// Whether the target's index is restored as a whole: only of a journal of an older version.
    #[serde(default)]
    pub restore_index: bool,
    /// Paths of the index that get the target's entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index_paths: Vec<RepoPath>,
    /// Whatever else the caller needs to finish its own part.
    #[serde(default)]
    pub context: serde_json::Value,
}

impl Repo {
    /// Writes the journal durably: temp file, sync, rename, sync of the folder.
    pub fn write_restore_journal(
        &self,
        _lock: &WorktreeLock,
        journal: &RestoreJournal,
    ) -> Result<()> {
        let folder = self.recover_dir()?;
        let path = folder.join(FILE);
        let text = serde_json::to_vec(journal)
            .map_err(|error| Error::corrupt(format!("journal: {error}")))?;
        self.own()
            .write(&path, &text, Sync::All)
            .map_err(Error::at(&path))
    }

    /// Reads the journal; `None` when no restore is under way.
    pub fn restore_journal(&self) -> Result<Option<RestoreJournal>> {
        let path = self.own_folder().join(FILE);
        let Some(text) = self.own().read_present(&path).map_err(Error::at(&path))? else {
            return Ok(None);
        };
        let damaged =
            |error: serde_json::Error| Error::corrupt(format!("{}: {error}", path.display()));
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
        if value
            .get("version")
            .and_then(serde_json::Value::as_u64)
            .is_some_and(|version| version > u64::from(JOURNAL_VERSION))
        {
            return Err(Error::Newer {
                what: path.display().to_string(),
            });
        }
        serde_json::from_value(value).map(Some).map_err(damaged)
    }

    /// Whether there is a journal; no descriptor is needed to know.
    pub(crate) fn has_restore_journal(&self) -> bool {
        !matches!(self.own().kind(&self.own_folder().join(FILE)), Ok(None))
    }

    /// Removes the journal durably: the restore is settled.
    pub fn remove_restore_journal(&self, _lock: &WorktreeLock) -> Result<()> {
        let folder = self.recover_dir()?;
        match self.own().remove_file(&folder.join(FILE)) {
            Ok(()) => sync_folder(&folder),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(Error::io(folder.join(FILE), source)),
        }
    }

    /// Removes temp files that dead processes left in the folders of a plan, and in this worktree's own folder. Returns how many.
    pub fn reap_temp_files(&self, lock: &WorktreeLock, plan: &RestorePlan) -> Result<usize> {
        let root = openat::open_root(self.workdir())?;
        let folders: BTreeSet<RepoPath> = plan
            .write
            .iter()
            .map(|write| write.path.parent().unwrap_or_default())
            .collect();
        let mut count = 0;
        for folder in folders {
            // A folder that is not there holds nothing to remove.
            let Ok(dir) = openat::open_path(&root, &folder) else {
                continue;
            };
            for name in openat::names(&dir)
                .unwrap_or_default()
                .iter()
                .filter(|name| is_left_over(name))
            {
                match rustix::fs::unlinkat(&dir, name.as_slice(), rustix::fs::AtFlags::empty()) {
                    Ok(()) => count += 1,
                    Err(rustix::io::Errno::NOENT) => {}
                    // It would be captured.
                    Err(error) => return Err(openat::io_error(&folder.join(name), error.into())),
                }
            }
        }
        // The worktree's lock is ours, so every other quarantine is a dead process's.
        let own = self.recover_dir()?;
        for (name, _) in self.own().list(&own).map_err(Error::at(&own))? {
            if lock.is_idle() && name.as_encoded_bytes().starts_with(b"quarantine-") {
                count += usize::from(self.own().remove_dir_all(&own.join(name)).is_ok());
            }
        }
        Ok(count)
    }
}
