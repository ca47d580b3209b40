//! The journal of commits that are being put on a branch, `$GIT_DIR/recover/commit.json`.
//! Written when they are all made, removed once branch and index have followed and that is recorded.

use serde::{Deserialize, Serialize};

use crate::durable::Sync;
use crate::git::base::error::{Error, Result};
use crate::git::base::sync::sync_folder;
use crate::git::repo::lock::WorktreeLock;
use crate::git::repo::repository::Repo;
use crate::model::id::RunKey;
use crate::model::manifest::Head;
use crate::model::manifest::ObjectId;
use crate::model::operation::Operation;

/// The version that this program writes.
const VERSION: u32 = 1;

const FILE: &str = "commit.json";

/// Everything that is needed to finish it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitJournal {
    /// The version of the writer.
    pub version: u32,
    /// The run that is accepted.
    #[serde(flatten)]
    pub run: RunKey,
    /// HEAD before.
    pub before: Head,
    /// The commit on which the new ones begin; `None` where they begin a history.
    pub base: Option<ObjectId>,
    /// The new commits, oldest first.
    pub commits: Vec<ObjectId>,
    /// The full name of the branch that is begun; `None` where they go on the current one.
    pub new_branch: Option<String>,
    /// The reference that keeps the commits that go off the branch.
    pub kept: Option<String>,
    /// The tree of the index as the run began.
    pub index_tree: Option<ObjectId>,
    /// Trees that hold what the run had in the index, and what is committed before hooks change it: what is staged otherwise
    /// somebody staged since. `None` where that is not known.
    #[serde(default)]
    pub seen: Option<Vec<ObjectId>>,
    /// Whether new files of the run are left out, which can be asked for still.
    #[serde(default)]
    pub left_out: bool,
    /// How it is taken back.
    #[serde(default)]
    pub operation: Option<Box<Operation>>,
    /// For the logs of the references.
    pub message: String,
}

impl CommitJournal {
    /// A journal of this version.
    pub(crate) fn new(run: RunKey, before: Head, commits: Vec<ObjectId>, message: String) -> Self {
        let (base, new_branch, kept, index_tree) = (None, None, None, None);
        let (seen, left_out, operation) = (None, false, None);
        Self {
            version: VERSION,
            run,
            before,
            base,
            commits,
            new_branch,
            kept,
            index_tree,
            seen,
            left_out,
            operation,
            message,
        }
    }
}

impl Repo {
    /// Writes the journal durably.
    pub(crate) fn write_commit_journal(
        &self,
        _lock: &WorktreeLock,
        journal: &CommitJournal,
    ) -> Result<()> {
        let path = self.recover_dir()?.join(FILE);
        let text = serde_json::to_vec(journal)
            .map_err(|error| Error::corrupt(format!("journal: {error}")))?;
        self.own()
            .write(&path, &text, Sync::All)
            .map_err(Error::at(&path))
    }

    /// Whether there is one.
    pub(crate) fn has_commit_journal(&self) -> bool {
        !matches!(self.own().kind(&self.own_folder().join(FILE)), Ok(None))
    }

    /// Reads the journal; `None` when nothing is under way.
    pub(crate) fn read_commit_journal(&self) -> Result<Option<CommitJournal>> {
        let path = self.own_folder().join(FILE);
        let Some(text) = self.own().read_present(&path).map_err(Error::at(&path))? else {
            return Ok(None);
        };
        let damaged =
            |error: serde_json::Error| Error::corrupt(format!("{}: {error}", path.display()));
        let journal: CommitJournal = serde_json::from_slice(&text).map_err(damaged)?;
        if journal.version > VERSION {
            return Err(Error::Newer {
                what: path.display().to_string(),
            });
        }
        Ok(Some(journal))
    }

    /// Removes the journal durably: it is settled.
    pub(crate) fn remove_commit_journal(&self, _lock: &WorktreeLock) -> Result<()> {
        let folder = self.recover_dir()?;
        match self.own().remove_file(&folder.join(FILE)) {
            Ok(()) => sync_folder(&folder),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(Error::io(folder.join(FILE), source)),
        }
    }
}
