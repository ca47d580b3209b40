//! What was taken over from the source systems' own files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use super::{RunKey, Timestamp};

/// Which system's file it is; in the order in which several are imported, so that the loop's own state comes last and is
/// what `recovery.json` records.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum ImportKind {
    /// A battle (`battles/<task>/<id>.json`).
    Battle,
    /// Attempts by subtask (`attempt_history.json`).
    AttemptHistory,
    /// The lane contract's records (`checkpoints.json`).
    Lanes,
    /// A session's checkpoint (`session_<id>/ckpt_….json`, `active_checkpoint.json`).
    Session,
    /// The loop's cooldown (`recovery.json`).
    Recovery,
}

/// What an imported attempt's session is called: this, and its number in the document.
pub(crate) const IMPORTED_SESSION: &str = "imported session ";

/// A document that was taken over, word for word: until the run moves on, its view says just the same again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Which system's.
    pub kind: ImportKind,
    /// What it is within the run: a lane's stage, a checkpoint's id; empty where a run has one only.
    pub id: String,
    /// The file it was read from, absolute.
    pub source: String,
    /// The document.
    pub document: Value,
}

/// An imported document in the state, compressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedDocument {
    /// What was taken over.
    #[serde(flatten)]
    pub imported: Imported,
    /// Ledger sequence of the import.
    pub seq: u64,
    /// When it was imported.
    pub at: Timestamp,
    /// The highest checkpoint sequence then: later ones are newer than the document.
    pub after_checkpoint: u64,
}

/// A checkpoint of another system: its record, without content that could be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ForeignCheckpoint {
    /// Its id there.
    pub id: String,
    /// The run it was taken over into.
    #[serde(flatten)]
    pub run: RunKey,
    /// Which system's.
    pub kind: ImportKind,
    /// The iteration it was taken after.
    pub after_iteration: Option<u64>,
    /// `commit` or `patch`, where it says.
    pub storage_type: Option<String>,
    /// Its commit, or the commit that its patch is against.
    pub commit: Option<String>,
    /// Whether it carries a patch.
    pub has_patch: bool,
    /// When it was taken, as written there.
    pub timestamp: Option<String>,
    /// Its headline.
    pub description: Option<String>,
    /// The file it was read from.
    pub source: String,
}

impl ImportedDocument {
    /// The checkpoints that the document lists.
    pub fn checkpoints(&self, run: &RunKey) -> Vec<ForeignCheckpoint> {
        let one = |record: &Value, id: &str| {
            let text = |name: &str| record[name].as_str().map(str::to_owned);
            Some(ForeignCheckpoint {
                id: text(id)?,
                run: run.clone(),
                kind: self.imported.kind,
                after_iteration: record["afterIteration"].as_u64(),
                storage_type: text("storageType"),
                commit: text("commitHash").or_else(|| text("baseCommitHash")),
                has_patch: record["patch"].is_string(),
                timestamp: text("timestamp"),
                description: text("description"),
                source: self.imported.source.clone(),
            })
        };
        let document = &self.imported.document;
        match self.imported.kind {
            ImportKind::Battle => {
                let all = document["checkpoints"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                all.iter().filter_map(|record| one(record, "id")).collect()
            }
            ImportKind::Session => one(document, "checkpoint_id").into_iter().collect(),
            _ => Vec::new(),
        }
    }
}
