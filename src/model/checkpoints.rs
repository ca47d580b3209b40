//! All checkpoints of a state directory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::checkpoint::{Checkpoint, RETRY};
use super::id::CheckpointId;
use super::run_key::RunKey;

/// Checkpoints by sequence. A clone shares those that neither of the two changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checkpoints(BTreeMap<u64, Arc<Checkpoint>>);

impl Checkpoints {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one with this sequence.
    pub fn get(&self, seq: u64) -> Option<&Checkpoint> {
        self.0.get(&seq).map(Arc::as_ref)
    }

    /// Whether there is one with this sequence.
    pub fn contains(&self, seq: u64) -> bool {
        self.0.contains_key(&seq)
    }

    /// The ids of all, oldest first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.values().map(|checkpoint| checkpoint.id.as_str())
    }

    /// The latest with this id.
    pub fn by_id(&self, id: &CheckpointId) -> Option<&Checkpoint> {
        self.values().rfind(|checkpoint| checkpoint.id == *id)
    }

    /// Whether there is one with this id.
    pub fn has(&self, id: &CheckpointId) -> bool {
        self.by_id(id).is_some()
    }

    /// All, oldest first.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Checkpoint> {
        self.0.values().map(Arc::as_ref)
    }

    /// Those of a run, oldest first.
    pub fn of<'a>(
        &'a self,
        run: &RunKey,
    ) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        let key = run.clone();
        self.0
            .values()
            .map(Arc::as_ref)
            .filter(move |checkpoint| checkpoint.run == key)
    }

    /// How many a run has.
    pub fn count_of(&self, run: &RunKey) -> usize {
        self.of(run).count()
    }

    /// Whether one of them is a lane's record (C1).
    pub fn has_stage(&self) -> bool {
        self.values()
            .any(|checkpoint| checkpoint.lane_fields.stage.is_some())
    }

    /// The latest one of a run that each stage has a record of.
    pub fn latest_of_stages(&self, run: &RunKey) -> BTreeMap<&str, &Checkpoint> {
        self.of(run)
            .flat_map(|checkpoint| stages(checkpoint).map(move |stage| (stage, checkpoint)))
            .collect()
    }

    /// Adds one; one with the same sequence goes.
    pub fn insert(&mut self, checkpoint: Checkpoint) {
        self.0.insert(checkpoint.seq, Arc::new(checkpoint));
    }

    /// Changes the latest one with this id, where there is one; its id and sequence stay.
    pub fn change(&mut self, id: &CheckpointId, change: impl FnOnce(&mut Checkpoint)) {
        let found = self.0.values_mut().rfind(|checkpoint| checkpoint.id == *id);
        if let Some(checkpoint) = found {
            change(Arc::make_mut(checkpoint));
        }
    }

    /// Takes those with these ids out.
    pub fn remove(&mut self, ids: &[CheckpointId]) {
        let gone: BTreeSet<&CheckpointId> = ids.iter().collect();
        self.0
            .retain(|_, checkpoint| !gone.contains(&checkpoint.id));
    }
}

/// The stages that a checkpoint is a record of.
fn stages(checkpoint: &Checkpoint) -> impl Iterator<Item = &str> {
    let stage = checkpoint.lane_fields.stage.as_deref();
    let retry = stage
        .and(checkpoint.lane_fields.retry_status.as_ref())
        .map(|_| RETRY);
    stage.into_iter().chain(retry)
}
