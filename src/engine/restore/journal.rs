//! What the journal of a restore holds beside the file plan.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::git::restore::RestoreJournal;
use crate::model::operation::{GitFile, Operation};
use crate::model::run::RunKey;
use crate::model::state::State;

/// What the engine needs beside the file plan to finish a restore that was cut off.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own"
)]
pub(super) struct JournalContext {
    /// The run that the event is about.
    pub run: Option<RunKey>,
    /// The operation as the ledger will record it.
    pub operation: Operation,
    /// Whether the loop's own state files are cleared (L3).
    pub clear_loop_state: bool,
    /// Whether the working memory stays as it is.
    #[serde(default)]
    pub leave_memory: bool,
    /// Whether a commit with the checkpoint's tree came on top, which the index then follows.
    #[serde(default)]
    pub on_top: bool,
    /// Whether the checkpoint's base commit is meant and not what was captured.
    #[serde(default)]
    pub of_base: bool,
    /// `.git` files that are taken away before the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlink: Vec<GitFile>,
}

pub(in crate::engine) fn encode(journaled: &JournalContext) -> Result<serde_json::Value> {
    Ok(serde_json::to_value(journaled).context("cannot encode the restore's journal")?)
}

pub(super) fn decode(journal: &RestoreJournal) -> Result<JournalContext> {
    JournalContext::deserialize(&journal.context).map_err(|error| {
        Error::new(
            ErrorKind::Corrupt,
            format!("the restore's journal is damaged: {error}"),
        )
    })
}

/// Whether the restore's event is in the ledger.
pub(super) fn is_recorded(state: &State, journal: &RestoreJournal) -> bool {
    state
        .worktrees
        .values()
        .any(|worktree| worktree.last_operation.as_ref() == Some(&journal.operation_id))
}
