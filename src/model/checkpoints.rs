//! All checkpoints of a state directory.
//!
//! They are kept in pages, each of one run and of neighbouring sequences in it. A page that nobody reads stays packed: which
//! checkpoints and whose it holds is known without, so that one among a thousand is found by opening one page, and those of
//! a run by opening its own, however many runs go on at the same time.

mod ids;

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use serde::{Deserialize, Serialize};

use super::checkpoint::{Checkpoint, RETRY, Verdict};
use super::id::CheckpointId;
use super::lazy_compressed::{LazyCompressed, Part};
use super::run_key::RunKey;

use ids::Ids;

/// How many checkpoints of a run a page holds. A new one begins a page of its own where the last is packed, until all are
/// packed again.
const PAGE: usize = 16;

/// Checkpoints by sequence.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Checkpoints {
    /// Pages that are not empty, by their first sequence. Those of one run do not overlap.
    pages: Vec<Page>,
    /// The lanes that have records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lanes: Vec<Lane>,
}

/// What is known of a lane without a look at its pages, however many records it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lane {
    run: RunKey,
    /// By stage, the latest checkpoint that is a record of it.
    latest: BTreeMap<String, Latest>,
    /// By stage, the sequence of the latest one that a work tree may go back to.
    safe: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Latest {
    seq: u64,
    /// It alone, by its sequence: what its page has too, with others.
    content: LazyCompressed<BTreeMap<u64, Checkpoint>>,
}

impl Latest {
    fn of(checkpoint: &Checkpoint) -> Self {
        let seq = checkpoint.seq;
        Self {
            seq,
            content: BTreeMap::from([(seq, checkpoint.clone())]).into(),
        }
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

/// Checkpoints of a run, and what is known of them without a look.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Page {
    /// Whose they are.
    run: RunKey,
    /// Their ids.
    ids: Ids,
    /// Whether one of them has passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_passed: bool,
    /// How many of them were taken before restores.
    #[serde(default)]
    safety: usize,
    /// Themselves.
    content: LazyCompressed<BTreeMap<u64, Checkpoint>>,
}

impl Page {
    fn of(run: RunKey) -> Self {
        Self {
            run,
            ids: Ids::default(),
            has_passed: false,
            safety: 0,
            content: LazyCompressed::default(),
        }
    }

    fn first(&self) -> u64 {
        self.ids.first().unwrap_or(0)
    }

    /// Whether a checkpoint of its run that comes after its first one is to be added here.
    fn takes(&self, seq: u64) -> bool {
        let is_within = self.ids.last().is_some_and(|last| seq < last);
        is_within || (self.ids.len() < PAGE && !self.content.is_packed())
    }

    fn add(&mut self, checkpoint: Checkpoint) {
        self.ids.insert(checkpoint.seq, checkpoint.id.as_str());
        self.has_passed |= checkpoint.verdict == Verdict::Passed;
        self.safety += usize::from(checkpoint.is_safety());
        self.content.insert(checkpoint.seq, checkpoint);
    }

    /// Keeps only some of them.
    fn retain(&mut self, keep: impl Fn(&Checkpoint) -> bool) {
        self.content.retain(|_, checkpoint| keep(checkpoint));
        self.ids = Ids::default();
        self.content
            .iter()
            .for_each(|(seq, checkpoint)| self.ids.insert(*seq, checkpoint.id.as_str()));
        self.has_passed = self
            .content
            .values()
            .any(|checkpoint| checkpoint.verdict == Verdict::Passed);
        self.safety = self
            .content
            .values()
            .filter(|checkpoint| checkpoint.is_safety())
            .count();
    }
}

impl PartialEq for Checkpoints {
    fn eq(&self, other: &Self) -> bool {
        self.lanes == other.lanes && self.values().eq(other.values())
    }
}

impl Eq for Checkpoints {}

impl Checkpoints {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.pages.iter().map(|page| page.ids.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The one with this sequence.
    pub fn get(&self, seq: u64) -> Option<&Checkpoint> {
        self.pages.get(self.place(seq)?)?.content.get(&seq)
    }

    /// Whether there is one with this sequence.
    pub fn contains(&self, seq: u64) -> bool {
        self.place(seq).is_some()
    }

    /// The page of the one with this sequence.
    fn place(&self, seq: u64) -> Option<usize> {
        self.pages.iter().rposition(|page| page.ids.contains(seq))
    }

    /// The ids of all, in no order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.numbers().map(|(_, id)| id)
    }

    /// The sequences and ids of all, in no order. None of them is opened for that.
    pub fn numbers(&self) -> impl Iterator<Item = (u64, &str)> {
        self.pages.iter().flat_map(|page| page.ids.iter())
    }

    /// The latest with this id.
    pub fn by_id(&self, id: &CheckpointId) -> Option<&Checkpoint> {
        self.get(self.seq_of(id)?)
    }

    /// Whether there is one with this id. It is not opened for that.
    pub fn has(&self, id: &CheckpointId) -> bool {
        self.seq_of(id).is_some()
    }

    /// Whether a run has one with this id. It is not opened for that.
    pub fn has_of(&self, run: &RunKey, id: &CheckpointId) -> bool {
        let mut pages = self.pages.iter().filter(|page| page.run == *run);
        pages.any(|page| page.ids.has(id.as_str()))
    }

    fn seq_of(&self, id: &CheckpointId) -> Option<u64> {
        let mut ids = self
            .pages
            .iter()
            .rev()
            .flat_map(|page| page.ids.iter().rev());
        ids.find(|(_, known)| id == known).map(|(seq, _)| seq)
    }

    /// All, oldest first.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Checkpoint> {
        let ids = self
            .pages
            .iter()
            .flat_map(|page| page.ids.iter().map(move |(seq, _)| (seq, page)));
        let mut all: Vec<(u64, &Page)> = ids.collect();
        all.sort_unstable_by_key(|(seq, _)| *seq);
        all.into_iter()
            .filter_map(|(seq, page)| page.content.get(&seq))
    }

    /// All, newest first. Of a page those are looked for only that come before what was asked for.
    pub fn newest_first(&self) -> impl Iterator<Item = &Checkpoint> {
        // Of each page the newest that was not given yet.
        let mut ids: Vec<_> = self
            .pages
            .iter()
            .map(|page| page.ids.iter().rev().map(|(seq, _)| seq))
            .collect();
        let mut next: BinaryHeap<(u64, usize)> = ids
            .iter_mut()
            .enumerate()
            .filter_map(|(at, ids)| Some((ids.next()?, at)))
            .collect();
        std::iter::from_fn(move || {
            let (seq, at) = next.pop()?;
            next.extend(ids[at].next().map(|before| (before, at)));
            self.pages[at].content.get(&seq)
        })
    }

    /// Those of a run, oldest first.
    pub fn of<'a>(
        &'a self,
        run: &RunKey,
    ) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        self.of_where(run, |_| true)
    }

    /// How many a run has. None of them is opened for that.
    pub fn count_of(&self, run: &RunKey) -> usize {
        self.pages
            .iter()
            .filter(|page| page.run == *run)
            .map(|page| page.ids.len())
            .sum()
    }

    /// How many a run has, those before restores aside. None of them is opened for that.
    pub fn count_listed_of(&self, run: &RunKey) -> usize {
        self.pages
            .iter()
            .filter(|page| page.run == *run)
            .map(|page| page.ids.len() - page.safety)
            .sum()
    }

    /// Those of a run that have passed, oldest first.
    pub fn passed_of<'a>(
        &'a self,
        run: &RunKey,
    ) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        self.of_where(run, |page| page.has_passed)
            .filter(|checkpoint| checkpoint.verdict == Verdict::Passed)
    }

    fn of_where<'a>(
        &'a self,
        run: &RunKey,
        may: fn(&Page) -> bool,
    ) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        let key = run.clone();
        self.pages
            .iter()
            .filter(move |page| page.run == key && may(page))
            .flat_map(|page| page.content.values())
    }

    /// Whether one of them is a lane's record (C1).
    pub fn has_stage(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// The latest one of a run that each stage has a record of.
    pub fn latest_of_stages(&self, run: &RunKey) -> impl Iterator<Item = (&str, &Checkpoint)> {
        let latest = self.lane(run).into_iter().flat_map(|lane| &lane.latest);
        latest
            .filter_map(|(stage, latest)| Some((stage.as_str(), latest.content.get(&latest.seq)?)))
    }

    /// The sequence of the latest one of a run in each stage that a work tree may go back to. None is opened for that.
    pub fn latest_safe_of_stages(&self, run: &RunKey) -> impl Iterator<Item = (&str, u64)> {
        let safe = self.lane(run).into_iter().flat_map(|lane| &lane.safe);
        safe.map(|(stage, seq)| (stage.as_str(), *seq))
    }

    fn lane(&self, run: &RunKey) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.run == *run)
    }

    /// Notes the stages that a checkpoint is a record of.
    fn add_stages(lanes: &mut Vec<Lane>, checkpoint: &Checkpoint) {
        for stage in stages(checkpoint) {
            let at = lanes
                .iter()
                .position(|lane| lane.run == checkpoint.run)
                .unwrap_or_else(|| {
                    lanes.push(Lane {
                        run: checkpoint.run.clone(),
                        latest: BTreeMap::new(),
                        safe: BTreeMap::new(),
                    });
                    lanes.len() - 1
                });
            let Lane { latest, safe, .. } = &mut lanes[at];
            if latest
                .get(stage)
                .is_none_or(|known| known.seq <= checkpoint.seq)
            {
                latest.insert(stage.to_owned(), Latest::of(checkpoint));
            }
            if stage != RETRY && checkpoint.is_safe_stage() && !checkpoint.is_safety() {
                let latest = safe.entry(stage.to_owned()).or_default();
                *latest = checkpoint.seq.max(*latest);
            }
        }
    }

    /// Finds the latest of these runs' stages anew.
    fn find_stages(&mut self, runs: &BTreeSet<RunKey>) {
        self.lanes.retain(|lane| !runs.contains(&lane.run));
        let mut lanes = std::mem::take(&mut self.lanes);
        for run in runs {
            self.of(run)
                .for_each(|checkpoint| Self::add_stages(&mut lanes, checkpoint));
        }
        self.lanes = lanes;
    }

    /// Adds one; one with the same sequence goes.
    pub fn insert(&mut self, checkpoint: Checkpoint) {
        let (seq, run) = (checkpoint.seq, checkpoint.run.clone());
        let before = self.place(seq).map(|at| {
            let page = &mut self.pages[at];
            page.retain(|other| other.seq != seq);
            page.run.clone()
        });
        if before.is_some() {
            self.put_in_order();
        }
        Self::add_stages(&mut self.lanes, &checkpoint);
        match self
            .pages
            .iter_mut()
            .rfind(|page| page.run == run && page.first() < seq)
        {
            Some(page) if page.takes(seq) => page.add(checkpoint),
            _ => {
                let mut page = Page::of(run.clone());
                page.add(checkpoint);
                let at = self.pages.partition_point(|page| page.first() < seq);
                self.pages.insert(at, page);
            }
        }
        if let Some(before) = before {
            self.find_stages(&BTreeSet::from([before, run]));
        }
    }

    /// After something was taken out.
    fn put_in_order(&mut self) {
        self.pages.retain(|page| !page.ids.is_empty());
        self.pages.sort_by_key(Page::first);
    }

    /// Changes the latest one with this id, where there is one; its id, sequence, run, stage and whether it was retried stay.
    pub fn change(&mut self, id: &CheckpointId, change: impl FnOnce(&mut Checkpoint)) {
        let Some(seq) = self.seq_of(id) else { return };
        let Some(page) = self.place(seq).and_then(|at| self.pages.get_mut(at)) else {
            return;
        };
        let Some(checkpoint) = page.content.get_mut(&seq) else {
            return;
        };
        let was_safe = checkpoint.is_safe_stage();
        change(checkpoint);
        page.has_passed |= checkpoint.verdict == Verdict::Passed;
        let Some(lane) = self.lanes.iter_mut().find(|lane| lane.run == page.run) else {
            return;
        };
        for latest in lane.latest.values_mut().filter(|latest| latest.seq == seq) {
            *latest = Latest::of(checkpoint);
        }
        if checkpoint.is_safe_stage() != was_safe {
            let run = page.run.clone();
            self.find_stages(&BTreeSet::from([run]));
        }
    }

    /// Takes those with these ids out.
    pub fn remove(&mut self, ids: &[CheckpointId]) {
        let gone: BTreeSet<&str> = ids.iter().map(CheckpointId::as_str).collect();
        let mut runs = BTreeSet::new();
        for page in self
            .pages
            .iter_mut()
            .filter(|page| page.ids.iter().any(|(_, id)| gone.contains(id)))
        {
            if self.lanes.iter().any(|lane| lane.run == page.run) {
                runs.insert(page.run.clone());
            }
            page.retain(|checkpoint| !gone.contains(checkpoint.id.as_str()));
        }
        self.put_in_order();
        self.find_stages(&runs);
    }

    /// All that may be packed, always in the same order.
    pub fn parts(&mut self) -> impl Iterator<Item = &mut dyn Part> {
        let pages = self
            .pages
            .iter_mut()
            .map(|page| &mut page.content as &mut dyn Part);
        let latest = self
            .lanes
            .iter_mut()
            .flat_map(|lane| lane.latest.values_mut());
        pages.chain(latest.map(|latest| &mut latest.content as &mut dyn Part))
    }

    /// Packs all. Pages of a run that are small become one.
    pub fn pack(&mut self) {
        let mut last = BTreeMap::new();
        for mut page in std::mem::take(&mut self.pages) {
            let at = last.entry(page.run.clone()).or_insert(usize::MAX);
            match self.pages.get_mut(*at) {
                Some(before) if before.ids.len() + page.ids.len() <= PAGE => {
                    for checkpoint in std::mem::take(&mut *page.content).into_values() {
                        before.add(checkpoint);
                    }
                }
                _ => {
                    *at = self.pages.len();
                    self.pages.push(page);
                }
            }
        }
        self.parts().for_each(Part::pack);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::lazy_compressed::{Bytes, Source};

    fn some(seq: u64, run: u64, stage: bool) -> Checkpoint {
        let oid = "0".repeat(40);
        let made = json!({
            "id": format!("ckpt_{seq:04}"), "seq": seq, "run_id": format!("run-{run}"), "task_id": null,
            "stage": stage.then_some(if seq.is_multiple_of(3) { "pre_pr" } else { "after_lane_tests" }),
            "status": seq.is_multiple_of(5).then_some("failed"), "type": "task", "trigger": "manual", "worktree": "/w",
            "state_dir": "/w/.ultraplan/state", "after_iteration": 0, "attempt": null, "verdict": "unverified",
            "storage_type": "snapshot", "commit": oid, "tree": oid, "base_commit": null, "head_ref": null,
            "patch_path": null, "previous": null, "created_at": "2026-01-01T00:00:00Z", "description": "text",
            "pinned": false, "captured": {"files": 0, "bytes": 0},
            "changes": {"modified": 0, "created": 0, "deleted": 0}, "skipped": [], "feedback_results": {},
            "duration_ms": 1,
        });
        serde_json::from_value(made).expect("a checkpoint")
    }

    /// What counts how often it is read.
    #[derive(Debug)]
    struct Counted(Vec<u8>, Arc<AtomicUsize>);

    impl Source for Counted {
        fn read(&self, at: u64, length: usize) -> Vec<u8> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.read(at, length)
        }
    }

    // Many runs that go on at once: what one of them took is found without a look at the others'.
    #[test]
    fn the_checkpoints_of_a_run_are_found_in_its_own_pages() {
        let mut pages = Checkpoints::default();
        for seq in 0..640 {
            pages.insert(some(seq, seq % 64, false));
        }
        pages.pack();
        let reads = Arc::new(AtomicUsize::new(0));
        for part in pages.parts() {
            let bytes = part.bytes().expect("it is packed");
            let length = bytes.len();
            part.fill(Bytes {
                source: Arc::new(Counted(bytes, reads.clone())),
                at: 0,
                length,
            });
        }
        let key = RunKey::new("run-7", None, None);
        assert_eq!(pages.of(&key).count(), 10);
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        // One more is added without a look at those before it.
        pages.insert(some(1000, 8, false));
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        assert_eq!(
            pages
                .of(&RunKey::new("run-8", None, None))
                .next_back()
                .map(|last| last.seq),
            Some(1000)
        );
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        assert_eq!(pages.values().next_back().map(|last| last.seq), Some(1000));
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u64, bool),
        Remove(Vec<u64>),
        Pin(u64),
        Judge(u64, bool),
        Pack,
        Store,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..300_u64, 0..3_u64, any::<bool>()).prop_map(|(seq, run, stage)| Step::Insert(seq, run, stage)),
            1 => prop::collection::vec(0..300_u64, 0..60).prop_map(Step::Remove),
            1 => (0..300_u64).prop_map(Step::Pin),
            1 => (0..300_u64, any::<bool>()).prop_map(|(seq, failed)| Step::Judge(seq, failed)),
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
                    Step::Judge(seq, failed) => {
                        let verdict = if failed { Verdict::Failed } else { Verdict::Passed };
                        pages.change(&format!("ckpt_{seq:04}").into(), |checkpoint| checkpoint.verdict = verdict);
                        map.entry(seq).and_modify(|checkpoint| checkpoint.verdict = verdict);
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
                let ids: BTreeSet<_> = pages.ids().collect();
                prop_assert_eq!(ids, map.values().map(|checkpoint| checkpoint.id.as_str()).collect());
                let of_runs = (0..3).map(|run| pages.of(&RunKey::new(format!("run-{run}"), None, None)).count());
                prop_assert_eq!(of_runs.sum::<usize>(), map.len());
                prop_assert_eq!(pages.has_stage(), map.values().any(|one| one.lane_fields.stage.is_some()));
            }
            prop_assert!(pages.newest_first().eq(map.values().rev()));
            prop_assert!(pages.values().eq(map.values()));
            for run in 0..3 {
                let key = RunKey::new(format!("run-{run}"), None, None);
                prop_assert_eq!(pages.count_of(&key), pages.of(&key).count());
                prop_assert!(pages.of(&key).eq(map.values().filter(|checkpoint| checkpoint.run == key)));
                let (mut latest, mut safe) = (BTreeMap::new(), BTreeMap::new());
                for checkpoint in map.values().filter(|checkpoint| checkpoint.run == key) {
                    let Some(stage) = checkpoint.lane_fields.stage.as_deref() else { continue };
                    latest.insert(stage, checkpoint);
                    if checkpoint.is_safe_stage() {
                        safe.insert(stage, checkpoint.seq);
                    }
                }
                prop_assert_eq!(pages.latest_of_stages(&key).collect::<BTreeMap<_, _>>(), latest);
                prop_assert_eq!(pages.latest_safe_of_stages(&key).collect::<BTreeMap<_, _>>(), safe);
            }
            for seq in 0..300 {
                prop_assert_eq!(pages.get(seq), map.get(&seq));
                prop_assert_eq!(pages.contains(seq), map.contains_key(&seq));
                prop_assert_eq!(pages.by_id(&format!("ckpt_{seq:04}").into()), map.get(&seq));
            }
        }
    }
}
