//! Whether a repository can be used, and what its vault, the copy outside of it, records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FolderId;

/// Whether the repository that holds a project's checkpoints can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RepositoryState {
    /// It can.
    Ok,
    /// `core.bare` is set, though it has a work tree.
    Bare,
    /// `core.worktree` names another folder.
    Elsewhere,
    /// There is none any more, or none that git finds.
    Missing,
    /// It is not the one in which the checkpoints were recorded.
    Replaced,
    /// Its format cannot be read.
    Unsupported,
}

/// Of which repository a vault is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VaultRecord {
    pub id: String,
    /// The root of the main work tree.
    pub path: FolderId,
    /// The git folder that its work trees share.
    pub git_dir: FolderId,
    pub state_dir: FolderId,
    /// The id of the state directory.
    pub state_id: Option<String>,
    /// The repository is ours, of a folder without git.
    pub private: bool,
    /// It was removed on purpose: nothing misses it.
    #[serde(default)]
    pub detached: bool,
    /// All of the repository was copied once: what comes back is whole.
    #[serde(default)]
    pub complete: bool,
}
