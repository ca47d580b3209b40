//! The message of a checkpoint's commit: for people, and with the whole record for who rebuilds the ledger.

use anyhow::Context as _;

use crate::engine::base::error::Result;
use crate::git::checkpoint::{StoredCheckpoint, trailers};
use crate::model::checkpoint::Checkpoint;
use crate::model::manifest::ObjectId;

/// The trailer that holds the whole record, for those who rebuild the ledger from the references.
pub(in crate::engine) const RECORD: &str = "Record";

/// The message of a checkpoint's commit.
pub(in crate::engine) fn message(checkpoint: &Checkpoint) -> Result<String> {
    let record =
        serde_json::to_string(checkpoint).context("cannot encode the checkpoint's record")?;
    let (seq, iteration) = (
        checkpoint.seq.to_string(),
        checkpoint.after_iteration.to_string(),
    );
    Ok(trailers::format(
        &checkpoint.description,
        &[
            ("Id", checkpoint.id.as_str()),
            ("Seq", &seq),
            ("Run", checkpoint.run.run_id.as_str()),
            ("Phase", &checkpoint.run.phase),
            ("Lane", &checkpoint.run.lane),
            ("Iteration", &iteration),
            ("Trigger", &checkpoint.trigger),
            ("Verdict", checkpoint.verdict.as_str()),
            (RECORD, &record),
        ],
    ))
}

/// The record that a checkpoint's commit carries; `None` for a commit that no `recover` wrote.
pub(crate) fn record_of(stored: &StoredCheckpoint) -> Option<Checkpoint> {
    record_in(&stored.message, &stored.commit)
}

/// The record in the message of a checkpoint's commit.
pub(in crate::engine) fn record_in(message: &str, commit: &ObjectId) -> Option<Checkpoint> {
    let all = trailers::parse(message);
    let record = &all.iter().rfind(|(key, _)| key == RECORD)?.1;
    let mut checkpoint: Checkpoint = serde_json::from_str(record).ok()?;
    checkpoint.commit = commit.clone();
    Some(checkpoint)
}
