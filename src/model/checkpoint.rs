//! Checkpoint records (requirements B13, S1, C1–C3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::lazy_compressed::LazyCompressed;
use super::{
    CheckpointId, FeedbackResults, ObjectId, PathReason, RepoPath, RunKey, TaskId, Timestamp,
};
use crate::model::path::FolderId;

/// The stage of a lane's records of attempts that failed (C2); no position in the order of the stages.
pub(crate) const RETRY: &str = "retry_attempt";

/// What the feedback loops said of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Verdict {
    /// Nothing was run.
    #[default]
    Unverified,
    /// The command and every loop passed: a good checkpoint.
    Passed,
    /// Something failed.
    Failed,
}

/// Where a checkpoint's content is kept (B12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageType {
    /// A hidden commit under `refs/recover/`.
    #[default]
    Snapshot,
    /// Also a real commit on the branch.
    Commit,
    /// Also a portable patch file.
    Patch,
}

/// What kind of moment a checkpoint marks (S1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointType {
    /// A milestone.
    Phase,
    /// A unit of progress.
    #[default]
    Task,
    /// Before or after a single operation.
    Operation,
}

/// Why a checkpoint was taken: one of these, or a caller's own word.
pub(crate) mod trigger {
    use super::CheckpointType;

    /// By a person or a script.
    pub(crate) const MANUAL: &str = "manual";
    /// Before a run's first attempt.
    pub(crate) const INITIAL: &str = "initial";
    /// At an attempt's end.
    pub(crate) const ATTEMPT: &str = "attempt";
    /// Right before a restore.
    pub(crate) const SAFETY: &str = "safety";
    /// At the start or end of a manual fix.
    pub(crate) const MANUAL_FIX: &str = "manual_fix";
    /// What was found after a killed attempt.
    pub(crate) const CRASH: &str = "crash";
    /// Before an atomic step, or after one that completes a stage.
    pub(crate) const STEP: &str = "step";
    /// The latest one was as old as `[checkpoint] interval` (S10).
    pub(crate) const INTERVAL: &str = "interval";
    /// The number of operations recorded since the latest one (S10).
    pub(crate) const OPERATION: &str = "operation";
    /// Before files are modified (S10).
    pub(crate) const BEFORE_EDIT: &str = "before_edit";
    /// Before something is called whose effect is outside the work tree (S10).
    pub(crate) const EXTERNAL: &str = "external";
    /// Before what may destroy work (S10).
    pub(crate) const RISKY: &str = "risky";
    /// Between two phases (S10).
    pub(crate) const PHASE: &str = "phase";
    /// An agent's turn or session is over (S10).
    pub(crate) const SESSION: &str = "session";
    /// What others changed since the run's last checkpoint, found before an attempt.
    pub(crate) const EDITED: &str = "edited";

    /// Whether a checkpoint that was taken for `earlier` says of the same content what one for `later` would. That it comes
    /// before what may destroy work is said by nothing else.
    pub(crate) fn covers(earlier: &str, later: &str) -> bool {
        later != RISKY || earlier == RISKY
    }

    /// What kind of moment a trigger marks where nobody says.
    pub(crate) fn kind_of(trigger: &str) -> CheckpointType {
        match trigger {
            INTERVAL | OPERATION | BEFORE_EDIT | EXTERNAL | RISKY | EDITED | SAFETY => {
                CheckpointType::Operation
            }
            PHASE => CheckpointType::Phase,
            _ => CheckpointType::Task,
        }
    }
}

/// How much was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "totals")]
pub struct CapturedTotals {
    /// Files and links.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// How many paths differ from the previous checkpoint of the run (from HEAD for the first).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeTotals {
    /// In both, different.
    pub modified: u64,
    /// New here.
    pub created: u64,
    /// Gone here.
    pub deleted: u64,
}

/// What the lane contract records beside the rest (C2, C3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaneFields {
    /// `before_lane_start`, `after_lane_start`, `after_lane_tests`, `pre_pr`, `retry_attempt`.
    pub stage: Option<String>,
    /// `ready`, `in_progress`, `failed`, `blocked`, `complete`, `rolled_back`, `retrying`.
    pub status: Option<String>,
    /// Integration branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// Free-form context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The test command that was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_command: Option<String>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// HEAD of the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_sha: Option<String>,
    /// Commits of the lane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commit_shas: Vec<String>,
    /// Where it is to be merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_branch: Option<String>,
    /// The failed attempt's number, at most `max_retries` (C8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_attempt: Option<u32>,
    /// How many retries the lane has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Errors of the attempts so far, each with the end of its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failure_context: Vec<String>,
    /// `retrying` or `failed`: what the record `retry_attempt` says beside that of the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_status: Option<String>,
}

impl LaneFields {
    /// What a record of a stage says of its content: that it failed, or that the stage was completed.
    pub fn verdict(&self) -> Verdict {
        match (self.status.as_deref(), self.exit_code) {
            _ if self.stage.is_none() => Verdict::Unverified,
            (Some("failed"), _) => Verdict::Failed,
            (_, Some(code)) if code != 0 => Verdict::Failed,
            (Some("complete"), _) | (None, Some(_)) => Verdict::Passed,
            _ => Verdict::Unverified,
        }
    }
}

/// The most changed paths that a checkpoint's record has: it is in the ledger, and must stay small.
pub(crate) const MAX_CHANGED_PATHS: usize = 200;

/// One capture of work tree, index, HEAD and state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// What it is named by.
    pub id: CheckpointId,
    /// Position among all checkpoints of the state directory, 1-based.
    pub seq: u64,
    /// The run.
    #[serde(flatten)]
    pub run: RunKey,
    /// What the run works on.
    pub task_id: Option<TaskId>,
    /// The lane contract's fields.
    #[serde(flatten)]
    pub lane_fields: LaneFields,
    /// What kind of moment it marks.
    #[serde(rename = "type")]
    pub kind: CheckpointType,
    /// Why it was taken.
    pub trigger: String,
    /// Absolute path of the work tree that was captured.
    pub worktree: FolderId,
    /// The state directory it is recorded in: several may share one repository.
    pub state_dir: FolderId,
    /// The iteration it was taken after; 0 before the first.
    pub after_iteration: u32,
    /// The attempt it was taken after.
    pub attempt: Option<u32>,
    /// What the feedback loops said.
    pub verdict: Verdict,
    /// Where its content is kept.
    pub storage_type: StorageType,
    /// The checkpoint's commit.
    pub commit: ObjectId,
    /// Its tree: the work tree.
    pub tree: ObjectId,
    /// HEAD when it was taken; with storage `commit`, the commit on the branch that holds it.
    pub base_commit: Option<ObjectId>,
    /// The branch HEAD was on; `None` when detached.
    pub head_ref: Option<String>,
    /// The commit that it made on the branch (storage `commit`); `None` where HEAD held the same content already.
    pub branch_commit: Option<ObjectId>,
    /// Where the patch file is (storage `patch`).
    pub patch_path: Option<String>,
    /// The run's checkpoint before it.
    pub previous: Option<CheckpointId>,
    /// When.
    pub created_at: Timestamp,
    /// The headline.
    pub description: String,
    /// Whether retention must leave it alone.
    pub pinned: bool,
    /// The note of the pin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin_note: Option<String>,
    /// Whether `doctor --repair` found that it cannot be restored in full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// How much was captured.
    pub captured: CapturedTotals,
    /// The checkpoint that its changes are counted from, where files went back to it since the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_from: Option<CheckpointId>,
    /// What changed since the previous one, or since `changed_from`.
    pub changes: ChangeTotals,
    /// The first [`MAX_CHANGED_PATHS`] paths of that, sorted; none for the run's first checkpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_paths: Vec<RepoPath>,
    /// What was left out, and why.
    pub skipped: Vec<PathReason>,
    /// Files that changed while they were captured; each is as it was read last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsettled: Vec<RepoPath>,
    /// Whether something is missing that should have been captured (exit 3).
    #[serde(default)]
    pub partial: bool,
    /// What the feedback loops said, one by one.
    pub feedback_results: FeedbackResults,
    /// How long the capture took.
    pub duration_ms: u64,
}

/// What stays known of a checkpoint that was removed: another one must not be taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The iteration it was taken after.
    pub after_iteration: u32,
    /// What the feedback loops said.
    pub verdict: Verdict,
    /// Whether it was taken around a single operation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_between: bool,
}

impl From<&Checkpoint> for Removed {
    fn from(checkpoint: &Checkpoint) -> Self {
        let Checkpoint {
            after_iteration,
            verdict,
            ..
        } = *checkpoint;
        Self {
            after_iteration,
            verdict,
            in_between: checkpoint.is_in_between(),
        }
    }
}

/// What stands between the labels of a description.
const BETWEEN_LABELS: &str = "; ";

/// The label that marks a checkpoint as damaged.
pub(crate) const DAMAGED: &str = "damaged: it cannot be restored in full";

/// The label that takes [`DAMAGED`] back.
pub(crate) const UNDAMAGED: &str = "no longer damaged";

/// The most bytes of a description with several labels.
const LONGEST_DESCRIPTION: usize = 400;

impl Checkpoint {
    /// Whether it holds what a failed attempt left. The initial one never does: what fails there was there before.
    pub fn is_failed_attempt(&self) -> bool {
        self.verdict == Verdict::Failed && self.trigger != trigger::INITIAL
    }

    /// Whether it was taken on the way, around a single operation: nobody says that anything was reached there.
    pub fn is_in_between(&self) -> bool {
        self.kind == CheckpointType::Operation
    }

    /// Whether its description names this already; nothing at all always is.
    pub fn has_label(&self, label: &str) -> bool {
        let ended = |text: &str| format!("{text}{BETWEEN_LABELS}");
        label.is_empty() || ended(&self.description).contains(&ended(label))
    }

    /// Whether its description names this, or is short enough to: where too much comes before the same files, one more
    /// checkpoint is read more easily than a longer line.
    pub fn has_room_for(&self, label: &str) -> bool {
        self.has_label(label)
            || self.description.len() + BETWEEN_LABELS.len() + label.len() <= LONGEST_DESCRIPTION
    }

    /// Names in its description what it comes before as well; the labels of damage mark it instead.
    pub fn add_label(&mut self, label: &str) {
        if [DAMAGED, UNDAMAGED].contains(&label) {
            self.damaged = label == DAMAGED;
            return;
        }
        self.description.push_str(BETWEEN_LABELS);
        self.description.push_str(label);
    }

    /// Whether it was taken right before a restore.
    pub fn is_safety(&self) -> bool {
        self.trigger == trigger::SAFETY
    }

    /// Whether a lane's work tree may go back to it: it is one of a stage, and nothing had failed there.
    pub fn is_safe_stage(&self) -> bool {
        let fields = &self.lane_fields;
        let staged = fields.stage.as_deref().is_some_and(|stage| stage != RETRY);
        let failed = matches!(fields.status.as_deref(), Some("failed" | "blocked"));
        staged && !failed && self.verdict != Verdict::Failed && fields.exit_code.unwrap_or(0) == 0
    }
}

/// How many sequences a page has.
const PAGE: u64 = 128;

/// Checkpoints by sequence, in pages of [`PAGE`]: those before the last are compressed in the cache and unpacked when one of
/// theirs is read, so that a command does not pay for all that were ever taken. A clone shares those that neither of the two
/// changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoints {
    pages: BTreeMap<u64, LazyCompressed<Page>>,
    /// What there is of each run, so that no page is unpacked to count.
    counts: BTreeMap<RunKey, Count>,
}

type Page = BTreeMap<u64, Arc<Checkpoint>>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Count {
    all: usize,
    /// Those before restores.
    safety: usize,
}

impl Checkpoints {
    /// The number of checkpoints.
    pub fn len(&self) -> usize {
        self.counts.values().map(|count| count.all).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Compresses all pages but the last.
    pub fn pack(&mut self) {
        self.pages
            .values_mut()
            .rev()
            .skip(1)
            .for_each(LazyCompressed::pack);
    }

    /// The one with this sequence.
    pub fn get(&self, seq: u64) -> Option<&Checkpoint> {
        self.pages.get(&(seq / PAGE))?.get(&seq).map(Arc::as_ref)
    }

    /// Whether there is one with this sequence.
    pub fn contains(&self, seq: u64) -> bool {
        self.get(seq).is_some()
    }

    /// The ids of all, oldest first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.values().map(|checkpoint| checkpoint.id.as_str())
    }

    /// The one with this id.
    pub fn by_id(&self, id: &CheckpointId) -> Option<&Checkpoint> {
        let has_id = |checkpoint: &&Checkpoint| checkpoint.id == *id;
        // An id ends with the sequence, unless that was taken when the checkpoint was imported.
        let seq = id
            .as_str()
            .rsplit_once('_')
            .and_then(|(_, seq)| seq.parse().ok());
        let named = seq.and_then(|seq| self.get(seq)).filter(has_id);
        named.or_else(|| self.values().rfind(has_id))
    }

    /// Whether there is one with this id.
    pub fn has(&self, id: &CheckpointId) -> bool {
        self.by_id(id).is_some()
    }

    /// All, oldest first.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Checkpoint> {
        self.pages
            .values()
            .flat_map(|page| page.values())
            .map(Arc::as_ref)
    }

    /// Those of a run, oldest first.
    pub fn of<'a>(
        &'a self,
        run: &RunKey,
    ) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        let key = run.clone();
        self.values()
            .filter(move |checkpoint| checkpoint.run == key)
    }

    /// The number that a run has.
    pub fn count_of(&self, run: &RunKey) -> usize {
        self.counts.get(run).map_or(0, |count| count.all)
    }

    /// The number that a run has, those before restores aside.
    pub fn ordinary_count_of(&self, run: &RunKey) -> usize {
        let count = self.counts.get(run);
        count.map_or(0, |count| count.all - count.safety)
    }

    /// Adds one; one with the same sequence goes.
    pub fn insert(&mut self, checkpoint: Checkpoint) {
        let count = self.counts.entry(checkpoint.run.clone()).or_default();
        count.all += 1;
        count.safety += usize::from(checkpoint.is_safety());
        let page = self.pages.entry(checkpoint.seq / PAGE).or_default();
        if let Some(replaced) = page.insert(checkpoint.seq, Arc::new(checkpoint)) {
            uncount(&mut self.counts, &replaced);
        }
    }

    /// Changes the latest one with this id, where there is one; its id and sequence stay.
    pub fn change(&mut self, id: &CheckpointId, change: impl FnOnce(&mut Checkpoint)) {
        let Some(seq) = self.by_id(id).map(|checkpoint| checkpoint.seq) else {
            return;
        };
        let page = self.pages.get_mut(&(seq / PAGE));
        if let Some(checkpoint) = page.and_then(|page| page.get_mut(&seq)) {
            change(Arc::make_mut(checkpoint));
        }
    }

    /// Removes those with these ids.
    pub fn remove(&mut self, ids: &[CheckpointId]) {
        let gone: BTreeSet<&CheckpointId> = ids.iter().collect();
        let is_gone = |checkpoint: &Arc<Checkpoint>| gone.contains(&checkpoint.id);
        self.pages.retain(|_, page| {
            if page.values().any(is_gone) {
                for removed in page.values().filter(|one| is_gone(one)) {
                    uncount(&mut self.counts, removed);
                }
                page.retain(|_, checkpoint| !is_gone(checkpoint));
            }
            !page.is_empty()
        });
    }
}

fn uncount(counts: &mut BTreeMap<RunKey, Count>, gone: &Checkpoint) {
    if let Some(count) = counts.get_mut(&gone.run) {
        count.all -= 1;
        count.safety -= usize::from(gone.is_safety());
        if count.all == 0 {
            counts.remove(&gone.run);
        }
    }
}

/// Where a run's line of checkpoints goes on from another place than the checkpoint before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Line {
    /// By the first sequence after a turn, the sequence of what it turned to, which is smaller.
    turns: BTreeMap<u64, u64>,
}

/// What stands: ranges of sequences from the first to the last, the newest range first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing(Vec<(u64, u64)>);

impl Standing {
    /// Whether the checkpoint with this sequence is on the line.
    pub fn holds(&self, seq: u64) -> bool {
        let at = self.0.partition_point(|(first, _)| *first > seq);
        self.0.get(at).is_some_and(|(_, last)| seq <= *last)
    }
}

impl Line {
    /// Whether nothing was ever gone back over.
    pub fn is_straight(&self) -> bool {
        self.turns.is_empty()
    }

    /// Whether the checkpoint with this sequence is on the line.
    pub fn holds(&self, seq: u64) -> bool {
        self.is_straight() || self.standing().holds(seq)
    }

    /// The files went to those of checkpoint `to`; `last` is the highest sequence so far.
    pub fn turn(&mut self, last: u64, to: u64) {
        self.turns.insert(last.saturating_add(1), to.min(last));
    }

    /// Where the line ends, to be turned to again: at `last`, the highest sequence so far, or where the latest turn went.
    pub fn end(&self, last: u64) -> u64 {
        self.turns
            .last_key_value()
            .filter(|(first, _)| **first > last)
            .map_or(last, |(_, to)| *to)
    }

    /// What stands now.
    pub fn standing(&self) -> Standing {
        let mut ranges = Vec::new();
        let mut last = u64::MAX;
        while let Some((first, to)) = self.turns.range(..=last).next_back() {
            ranges.push((*first, last));
            last = *to;
        }
        ranges.push((0, last));
        Standing(ranges)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn checkpoint(seq: u64) -> Checkpoint {
        let oid = "0".repeat(40);
        serde_json::from_value(json!({
            "id": format!("ckpt_20260101_{seq:04}"), "seq": seq, "run_id": if seq.is_multiple_of(3) { "s" } else { "r" }, "phase": "-", "lane": "-",
            "task_id": null, "stage": null, "status": null, "type": "task",
            "trigger": if seq.is_multiple_of(5) { trigger::SAFETY } else { trigger::MANUAL }, "worktree": "/w", "state_dir": "/s", "after_iteration": 0, "attempt": null, "verdict": "unverified",
            "storage_type": "snapshot", "commit": oid, "tree": oid, "base_commit": null, "head_ref": null,
            "patch_path": null, "previous": null, "created_at": "2026-01-01T00:00:00Z", "description": "text",
            "pinned": false, "captured": {"files": 0, "bytes": 0}, "skipped": [],
            "changes": {"modified": 0, "created": 0, "deleted": 0}, "feedback_results": {}, "duration_ms": 1,
        }))
        .expect("a checkpoint")
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Pin(u64),
        Remove(Vec<u64>),
        Store,
    }

    fn step() -> impl Strategy<Value = Step> {
        let seq = || 1..4 * PAGE;
        prop_oneof![
            6 => seq().prop_map(Step::Insert),
            2 => seq().prop_map(Step::Pin),
            1 => prop::collection::vec(seq(), 0..9).prop_map(Step::Remove),
            1 => Just(Step::Store),
        ]
    }

    proptest! {
        /// Pages that are compressed, stored and read again hold what a map holds.
        #[test]
        fn pages_are_a_map(steps in prop::collection::vec(step(), 0..90)) {
            let (mut pages, mut map) = (Checkpoints::default(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Insert(seq) => {
                        pages.insert(checkpoint(seq));
                        map.insert(seq, checkpoint(seq));
                    }
                    Step::Pin(seq) => {
                        pages.change(&checkpoint(seq).id, |one| one.pinned = true);
                        map.entry(seq).and_modify(|one| one.pinned = true);
                    }
                    Step::Remove(gone) => {
                        let ids: Vec<_> = gone.iter().map(|seq| checkpoint(*seq).id).collect();
                        pages.remove(&ids);
                        map.retain(|seq, _| !gone.contains(seq));
                    }
                    Step::Store => {
                        pages.pack();
                        let stored = rmp_serde::to_vec_named(&pages).expect("plain data");
                        pages = rmp_serde::from_slice(&stored).expect("what was stored");
                    }
                }
            }
            prop_assert_eq!((pages.len(), pages.is_empty()), (map.len(), map.is_empty()));
            prop_assert!(pages.values().eq(map.values()));
            for run in ["r", "s"] {
                let key = RunKey::new(run, None, None);
                let of = || map.values().filter(|one: &&Checkpoint| one.run == key);
                prop_assert_eq!(pages.count_of(&key), of().count());
                prop_assert_eq!(pages.ordinary_count_of(&key), of().filter(|one| !one.is_safety()).count());
            }
            prop_assert!(pages.values().rev().eq(map.values().rev()));
            for seq in [1, PAGE - 1, PAGE, 3 * PAGE] {
                prop_assert_eq!(pages.by_id(&checkpoint(seq).id), map.get(&seq));
                prop_assert_eq!(pages.get(seq), map.get(&seq));
            }
        }
    }

    #[test]
    fn an_imported_checkpoint_is_found_by_its_id_under_another_number() {
        let mut pages = Checkpoints::default();
        let imported = Checkpoint {
            seq: 9,
            ..checkpoint(4)
        };
        pages.insert(checkpoint(3));
        pages.insert(imported.clone());
        assert_eq!(pages.by_id(&imported.id), Some(&imported));
        assert_eq!(pages.by_id(&checkpoint(9).id), None);
    }

    #[test]
    fn a_line_goes_back_and_forward() {
        let mut line = Line::default();
        let standing = |line: &Line| {
            (1..=9)
                .filter(|seq| line.standing().holds(*seq))
                .collect::<Vec<u64>>()
        };
        assert_eq!(standing(&line), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // Three of them; 4 is taken before the rollback.
        line.turn(4, 2);
        assert_eq!(
            (standing(&line), line.end(4)),
            (vec![1, 2, 5, 6, 7, 8, 9], 2)
        );
        assert_eq!(line.end(5), 5);
        // 5 came after it; forward to 3, over 5.
        line.turn(6, 3);
        assert_eq!(standing(&line), [1, 2, 3, 7, 8, 9]);
        // And to 5 again.
        line.turn(7, 5);
        assert_eq!(standing(&line), [1, 2, 5, 8, 9]);
        // A turn with nothing in between takes the place of the one before.
        line.turn(7, 1);
        assert_eq!((standing(&line), line.end(7)), (vec![1, 8, 9], 1));
    }
}
