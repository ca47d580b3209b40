//! Lanes: the stages of the lane contract, and where a lane stands (C1–C5).

pub use super::checkpoint::RETRY;
use super::checkpoint::{Checkpoint, Verdict};
use super::import::{ImportKind, ImportedDocument};
use super::run::{NONE, Run, RunKey};
use super::state::State;

/// Before anything of the lane is made.
pub const BEFORE_START: &str = "before_lane_start";
/// Its work tree is there.
pub const AFTER_START: &str = "after_lane_start";
/// Its tests were run.
pub const AFTER_TESTS: &str = "after_lane_tests";
/// Right before it is merged.
pub const PRE_PR: &str = "pre_pr";

/// The stages of the lane contract (C2).
pub const STAGES: [&str; 5] = [BEFORE_START, AFTER_START, AFTER_TESTS, PRE_PR, RETRY];

/// What the contract calls a record that was gone back past.
pub const ROLLED_BACK: &str = "rolled_back";

/// Where a record comes from.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A checkpoint of ours.
    Own(&'a Checkpoint),
    /// The attempt that a checkpoint of ours was taken after: a record beside that of its stage.
    Retry(&'a Checkpoint),
    /// Another system's record.
    Imported(&'a ImportedDocument),
}

/// The latest record of one stage of a lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneRecord<'a> {
    /// The stage.
    pub stage: &'a str,
    /// Where it stands.
    pub status: Option<&'a str>,
    /// Where it comes from.
    pub origin: Origin<'a>,
    order: (u64, u64),
}

impl<'a> LaneRecord<'a> {
    /// Where it stands among all records, by the sequence of checkpoints.
    pub fn order(&self) -> (u64, u64) {
        self.order
    }

    /// The checkpoint of ours.
    pub fn checkpoint(&self) -> Option<&'a Checkpoint> {
        match self.origin {
            Origin::Own(checkpoint) | Origin::Retry(checkpoint) => Some(checkpoint),
            Origin::Imported(_) => None,
        }
    }

    /// Whether the work tree may go back to it: nothing had failed there, and it was not gone back past itself.
    pub fn is_safe(&self) -> bool {
        self.status != Some(ROLLED_BACK) && matches!(self.origin, Origin::Own(checkpoint) if is_safe(checkpoint))
    }
}

impl State {
    /// The latest record of each stage of a lane, in the order in which they were made. Empty: it is no lane.
    pub fn lane_records(&self, key: &RunKey) -> Vec<LaneRecord<'_>> {
        let run = self.run(key);
        let own = self.checkpoints.latest_of_stages(key).filter_map(|(stage, checkpoint)| {
            records_of(checkpoint, run).into_iter().flatten().find(|record| record.stage == stage)
        });
        let mut all: Vec<LaneRecord<'_>> = own.chain(imported(run)).collect();
        all.sort_by_key(|record| record.order);
        let mut latest: Vec<LaneRecord<'_>> = Vec::new();
        for record in all {
            latest.retain(|known| known.stage != record.stage);
            latest.push(record);
        }
        latest
    }

    /// Every record that a lane ever had, in the order in which they were made.
    fn lane_history(&self, key: &RunKey) -> Vec<LaneRecord<'_>> {
        let run = self.run(key);
        let own = self.checkpoints_of(key).flat_map(|checkpoint| records_of(checkpoint, run)).flatten();
        let mut all: Vec<LaneRecord<'_>> = own.chain(imported(run)).collect();
        all.sort_by_key(|record| record.order);
        all
    }

    /// The record that says where a lane stands: the latest that was not gone back past.
    pub fn lane_stands(&self, key: &RunKey) -> Option<LaneRecord<'_>> {
        let latest = self.lane_records(key);
        // What a stage had before its latest record counts only where that was gone back past.
        if latest.iter().all(|record| record.status != Some(ROLLED_BACK)) {
            return latest.last().copied();
        }
        let records = self.lane_history(key);
        let stands = records.iter().rfind(|record| record.status != Some(ROLLED_BACK));
        stands.or(records.last()).copied()
    }

    /// The integration branch of a lane, as its latest record that names one has it.
    pub fn lane_base(&self, key: &RunKey) -> Option<String> {
        let own = self.checkpoints_of(key).rev().find_map(|checkpoint| checkpoint.lane_fields.base_branch.clone());
        own.or_else(|| {
            let run = self.run(key)?;
            run.imported.iter().rev().find_map(|one| one.imported.document["base_branch"].as_str().map(str::to_owned))
        })
    }

    /// The safest prior stage of a lane (C5): the latest earlier checkpoint of a stage that did not fail, of the same stage
    /// only where that has failed since. A lane that stands at its first one goes back to that.
    pub fn lane_safest(&self, key: &RunKey) -> Option<&Checkpoint> {
        let stands = self.lane_stands(key).filter(|record| record.status != Some(ROLLED_BACK))?;
        let failed = !stands.is_safe();
        let at = stands.checkpoint().map_or(u64::MAX, |checkpoint| checkpoint.seq);
        let fits = |checkpoint: &&Checkpoint| {
            let stage = checkpoint.lane_fields.stage.as_deref();
            let other = failed || stage != Some(stands.stage);
            checkpoint.seq < at && other && is_safe(checkpoint)
        };
        let earlier = self.standing(key).rfind(fits);
        earlier.or_else(|| stands.checkpoint().filter(|checkpoint| is_safe(checkpoint)))
    }
}

/// The records that a checkpoint is of its run: of its stage, and of the attempt that it was taken after.
fn records_of<'a>(checkpoint: &'a Checkpoint, run: Option<&'a Run>) -> [Option<LaneRecord<'a>>; 2] {
    let fields = &checkpoint.lane_fields;
    let gone = run.is_some_and(|run| run.rolled_back.contains(&checkpoint.seq));
    let told = |status| if gone { Some(ROLLED_BACK) } else { status };
    let Some(stage) = fields.stage.as_deref() else { return [None, None] };
    let (order, status) =
        ((checkpoint.seq, 0), told(Some(fields.status.as_deref().unwrap_or_else(|| unsaid_status(stage, checkpoint)))));
    let own = LaneRecord { stage, status, origin: Origin::Own(checkpoint), order };
    let retry = (stage != RETRY && fields.retry_status.is_some()).then(|| {
        let (order, status) = ((checkpoint.seq, 1), told(fields.retry_status.as_deref()));
        LaneRecord { stage: RETRY, status, origin: Origin::Retry(checkpoint), order }
    });
    [Some(own), retry]
}

/// Where a record stands that nobody gave a status: the contract knows none without (C2).
fn unsaid_status(stage: &str, checkpoint: &Checkpoint) -> &'static str {
    match (stage, checkpoint.lane_fields.exit_code) {
        _ if checkpoint.verdict == Verdict::Failed => "failed",
        (AFTER_TESTS, Some(0)) => "complete",
        (BEFORE_START | PRE_PR, None | Some(0)) => "ready",
        (RETRY, None | Some(0)) => "retrying",
        (_, None | Some(0)) => "in_progress",
        _ => "failed",
    }
}

/// The records of a lane that another system wrote.
fn imported(run: Option<&Run>) -> impl Iterator<Item = LaneRecord<'_>> {
    let all = run.map(|run| run.imported.as_slice()).unwrap_or_default();
    all.iter().filter(|one| one.imported.kind == ImportKind::Lanes).map(|one| {
        let status = one.imported.document["status"].as_str();
        let order = (one.after_checkpoint, one.seq.saturating_add(2));
        LaneRecord { stage: &one.imported.id, status, origin: Origin::Imported(one), order }
    })
}

/// Whether a work tree may go back to a checkpoint: it is one of a stage, and nothing had failed there.
fn is_safe(checkpoint: &Checkpoint) -> bool {
    let fields = &checkpoint.lane_fields;
    let staged = fields.stage.as_deref().is_some_and(|stage| stage != RETRY);
    let failed = matches!(fields.status.as_deref(), Some("failed" | "blocked"));
    staged && !failed && checkpoint.verdict != Verdict::Failed && fields.exit_code.unwrap_or(0) == 0
}

/// Whether records are kept of this run: it is named as a lane, or has them already.
pub fn is_lane(state: &State, key: &RunKey) -> bool {
    key.lane != NONE || !state.lane_records(key).is_empty()
}

/// Checkpoints of a lane's stages that came after the one numbered `seq`.
pub fn stages_after(state: &State, run: &Run, seq: u64) -> Vec<u64> {
    let staged = |checkpoint: &&Checkpoint| checkpoint.seq > seq && checkpoint.lane_fields.stage.is_some();
    state.checkpoints_of(&run.key).filter(staged).map(|checkpoint| checkpoint.seq).collect()
}
