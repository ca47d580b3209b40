//! What a vault records of the repository that it is a copy of.

use serde::{Deserialize, Serialize};

use super::FolderId;

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
}
