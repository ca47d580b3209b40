//! All checkpoints of a state directory.
//!
//! They are kept in pages by their sequence. A page that nobody reads stays packed: which checkpoints and whose it
//! holds is known without, so that one among a thousand is found by opening one page.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::checkpoint::{Checkpoint, RETRY, Verdict};
use super::id::CheckpointId;
use super::lazy_compressed::{LazyCompressed, Part};
use super::run_key::RunKey;

/// How many sequence numbers a page spans.
const PAGE: u64 = 64;

/// Checkpoints by sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoints {
    /// Pages that are not empty, by the first sequence divided by [`PAGE`].
    pages: BTreeMap<u64, Page>,
    /// The lanes that have records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lanes: Vec<Lane>,
}

/// A lane, and the sequence of the latest checkpoint that each stage has a record of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lane {
    run: RunKey,
    latest: BTreeMap<String, u64>,
}

/// The stages that a checkpoint is a record of.
fn stages(checkpoint: &Checkpoint) -> impl Iterator<Item = &str> {
    let stage = checkpoint.lane_fields.stage.as_deref();
    let retry = stage.and(checkpoint.lane_fields.retry_status.as_ref()).map(|_| RETRY);
    stage.into_iter().chain(retry)
}

/// Checkpoints with neighbouring sequences, and what is known of them without a look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    /// Their ids, by sequence.
    ids: BTreeMap<u64, CheckpointId>,
    /// Whose they are.
    runs: BTreeSet<RunKey>,
    /// Whether one of them has passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_passed: bool,
    /// Themselves.
    content: LazyCompressed<BTreeMap<u64, Checkpoint>>,
}

impl Page {
    /// Brings what is known without a look up to date.
    fn describe(&mut self) {
        self.ids = self.content.iter().map(|(seq, checkpoint)| (*seq, checkpoint.id.clone())).collect();
        self.runs = self.content.values().map(|checkpoint| checkpoint.run.clone()).collect();
        self.has_passed = self.content.values().any(|checkpoint| checkpoint.verdict == Verdict::Passed);
    }
}

impl Checkpoints {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.pages.values().map(|page| page.ids.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The one with this sequence.
    pub fn get(&self, seq: u64) -> Option<&Checkpoint> {
        self.pages.get(&(seq / PAGE))?.content.get(&seq)
    }

    /// Whether there is one with this sequence.
    pub fn contains(&self, seq: u64) -> bool {
        self.pages.get(&(seq / PAGE)).is_some_and(|page| page.ids.contains_key(&seq))
    }

    /// The ids of all.
    pub fn ids(&self) -> impl Iterator<Item = &CheckpointId> {
        self.pages.values().flat_map(|page| page.ids.values())
    }

    /// The latest with this id.
    pub fn by_id(&self, id: &CheckpointId) -> Option<&Checkpoint> {
        self.get(self.seq_of(id)?)
    }

    fn seq_of(&self, id: &CheckpointId) -> Option<u64> {
        let mut ids = self.pages.values().rev().flat_map(|page| page.ids.iter().rev());
        ids.find(|(_, known)| *known == id).map(|(seq, _)| *seq)
    }

    /// All, oldest first.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Checkpoint> {
        self.pages.values().flat_map(|page| page.content.values())
    }

    /// Those of a run, oldest first.
    pub fn of<'a>(&'a self, run: &RunKey) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        self.of_where(run, |_| true)
    }

    /// Those of a run that have passed, oldest first.
    pub fn passed_of<'a>(&'a self, run: &RunKey) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        self.of_where(run, |page| page.has_passed).filter(|checkpoint| checkpoint.verdict == Verdict::Passed)
    }

    fn of_where<'a>(
        &'a self,
        run: &RunKey,
        may: fn(&Page) -> bool,
    ) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        let key = run.clone();
        let pages = self.pages.values().filter({
            let key = key.clone();
            move |page| page.runs.contains(&key) && may(page)
        });
        pages.flat_map(|page| page.content.values()).filter(move |checkpoint| checkpoint.run == key)
    }

    /// Whether one of them is a lane's record (C1).
    pub fn has_stage(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// The latest one of a run that each stage has a record of.
    pub fn latest_of_stages(&self, run: &RunKey) -> impl Iterator<Item = (&str, &Checkpoint)> {
        let lane = self.lanes.iter().find(|lane| lane.run == *run);
        let latest = lane.into_iter().flat_map(|lane| &lane.latest);
        latest.filter_map(|(stage, seq)| Some((stage.as_str(), self.get(*seq)?)))
    }

    /// Notes the stages that a checkpoint is a record of.
    fn add_stages(lanes: &mut Vec<Lane>, checkpoint: &Checkpoint) {
        for stage in stages(checkpoint) {
            let at = lanes.iter().position(|lane| lane.run == checkpoint.run).unwrap_or_else(|| {
                lanes.push(Lane { run: checkpoint.run.clone(), latest: BTreeMap::new() });
                lanes.len() - 1
            });
            let latest = lanes[at].latest.entry(stage.to_owned()).or_default();
            *latest = checkpoint.seq.max(*latest);
        }
    }

    /// Finds the latest of these runs' stages anew.
    fn find_stages(&mut self, runs: &BTreeSet<RunKey>) {
        self.lanes.retain(|lane| !runs.contains(&lane.run));
        let mut lanes = std::mem::take(&mut self.lanes);
        for run in runs {
            self.of(run).for_each(|checkpoint| Self::add_stages(&mut lanes, checkpoint));
        }
        self.lanes = lanes;
    }

    /// Adds one; one with the same sequence goes.
    pub fn insert(&mut self, checkpoint: Checkpoint) {
        let page = self.pages.entry(checkpoint.seq / PAGE).or_default();
        page.ids.insert(checkpoint.seq, checkpoint.id.clone());
        page.runs.insert(checkpoint.run.clone());
        page.has_passed |= checkpoint.verdict == Verdict::Passed;
        Self::add_stages(&mut self.lanes, &checkpoint);
        let run = checkpoint.run.clone();
        if let Some(before) = page.content.insert(checkpoint.seq, checkpoint) {
            page.describe();
            self.find_stages(&BTreeSet::from([before.run, run]));
        }
    }

    /// Changes the latest one with this id, where there is one; its id, sequence, run, stage and whether it was retried stay.
    pub fn change(&mut self, id: &CheckpointId, change: impl FnOnce(&mut Checkpoint)) {
        let Some(seq) = self.seq_of(id) else { return };
        let Some(page) = self.pages.get_mut(&(seq / PAGE)) else { return };
        if let Some(checkpoint) = page.content.get_mut(&seq) {
            change(checkpoint);
            page.has_passed |= checkpoint.verdict == Verdict::Passed;
        }
    }

    /// Takes those with these ids out.
    pub fn remove(&mut self, ids: &[CheckpointId]) {
        let gone: BTreeSet<&CheckpointId> = ids.iter().collect();
        let mut runs = BTreeSet::new();
        self.pages.retain(|_, page| {
            if page.ids.values().any(|id| gone.contains(id)) {
                runs.extend(page.runs.iter().filter(|run| self.lanes.iter().any(|lane| lane.run == **run)).cloned());
                page.content.retain(|_, checkpoint| !gone.contains(&checkpoint.id));
                page.describe();
            }
            !page.ids.is_empty()
        });
        self.find_stages(&runs);
    }

    /// All that may be packed, always in the same order.
    pub fn parts(&mut self) -> impl Iterator<Item = &mut dyn Part> {
        self.pages.values_mut().map(|page| &mut page.content as &mut dyn Part)
    }

    /// Packs what is hardly read any more: all pages but the latest.
    pub fn pack(&mut self) {
        for page in self.pages.values_mut().rev().skip(1) {
            page.content.pack();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::lazy_compressed::Bytes;

    fn some(seq: u64, run: u64, stage: bool) -> Checkpoint {
        let oid = "0".repeat(40);
        let made = json!({
            "id": format!("ckpt_{seq:04}"), "seq": seq, "run_id": format!("run-{run}"), "task_id": null,
            "stage": stage.then_some("pre_pr"), "status": null, "type": "task", "trigger": "manual", "worktree": "/w",
            "state_dir": "/w/.ultraplan/state", "after_iteration": 0, "attempt": null, "verdict": "unverified",
            "storage_type": "snapshot", "commit": oid, "tree": oid, "base_commit": null, "head_ref": null,
            "patch_path": null, "previous": null, "created_at": "2026-01-01T00:00:00Z", "description": "text",
            "pinned": false, "captured": {"files": 0, "bytes": 0},
            "changes": {"modified": 0, "created": 0, "deleted": 0}, "skipped": [], "feedback_results": {},
            "duration_ms": 1,
        });
        serde_json::from_value(made).expect("a checkpoint")
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u64, bool),
        Remove(Vec<u64>),
        Pin(u64),
        Pack,
        Store,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..300_u64, 0..3_u64, any::<bool>()).prop_map(|(seq, run, stage)| Step::Insert(seq, run, stage)),
            1 => prop::collection::vec(0..300_u64, 0..60).prop_map(Step::Remove),
            1 => (0..300_u64).prop_map(Step::Pin),
            1 => Just(Step::Pack),
            1 => Just(Step::Store),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        // Pages, packed or not, are the same as one map.
        #[test]
        fn pages_are_a_map(steps in steps()) {
            let (mut pages, mut map) = (Checkpoints::default(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Insert(seq, run, stage) => {
                        pages.insert(some(seq, run, stage));
                        map.insert(seq, some(seq, run, stage));
                    }
                    Step::Remove(all) => {
                        pages.remove(&all.iter().map(|seq| format!("ckpt_{seq:04}").into()).collect::<Vec<_>>());
                        map.retain(|seq, _| !all.contains(seq));
                    }
                    Step::Pin(seq) => {
                        pages.change(&format!("ckpt_{seq:04}").into(), |checkpoint| checkpoint.pinned = true);
                        map.entry(seq).and_modify(|checkpoint| checkpoint.pinned = true);
                    }
                    Step::Pack => pages.pack(),
                    Step::Store => {
                        let text = serde_json::to_string(&pages).expect("plain data");
                        let mut read: Checkpoints = serde_json::from_str(&text).expect("what was written");
                        for (part, stored) in read.parts().zip(pages.parts()) {
                            if let Some(bytes) = stored.bytes() {
                                part.fill(Bytes { length: bytes.len(), source: Arc::new(bytes), at: 0 });
                            }
                        }
                        pages = read;
                    }
                }
                prop_assert_eq!((pages.len(), pages.is_empty()), (map.len(), map.is_empty()));
                prop_assert!(pages.ids().eq(map.values().map(|checkpoint| &checkpoint.id)));
                prop_assert_eq!(pages.has_stage(), map.values().any(|one| one.lane_fields.stage.is_some()));
            }
            prop_assert!(pages.values().eq(map.values()));
            for run in 0..3 {
                let key = RunKey::new(format!("run-{run}"), None, None);
                prop_assert!(pages.of(&key).eq(map.values().filter(|checkpoint| checkpoint.run == key)));
            }
            for seq in 0..300 {
                prop_assert_eq!(pages.get(seq), map.get(&seq));
                prop_assert_eq!(pages.contains(seq), map.contains_key(&seq));
                prop_assert_eq!(pages.by_id(&format!("ckpt_{seq:04}").into()), map.get(&seq));
            }
        }
    }
}
