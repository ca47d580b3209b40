//! Lanes: the stages of the lane contract, and where a lane stands (C1–C5).

pub(crate) use super::checkpoint::RETRY;
use super::import::ImportedDocument;
use super::run::NONE;
use super::{Checkpoint, ImportKind, Run, RunKey, State, Verdict};

/// Before anything of the lane is made.
pub(crate) const BEFORE_START: &str = "before_lane_start";
/// Its work tree is there.
pub(crate) const AFTER_START: &str = "after_lane_start";
/// Its tests were run.
pub(crate) const AFTER_TESTS: &str = "after_lane_tests";
/// Right before it is merged.
pub(crate) const PRE_PR: &str = "pre_pr";

/// The stages of the lane contract (C2).
pub(crate) const STAGES: [&str; 5] = [BEFORE_START, AFTER_START, AFTER_TESTS, PRE_PR, RETRY];

/// What the contract calls a record that was gone back past.
pub(crate) const ROLLED_BACK: &str = "rolled_back";

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
        self.status != Some(ROLLED_BACK)
            && matches!(self.origin, Origin::Own(checkpoint) if checkpoint.is_safe_stage())
    }
}

impl State {
    /// The latest record of each stage of a lane, in the order in which they were made. Empty: it is no lane.
    pub fn lane_records(&self, key: &RunKey) -> Vec<LaneRecord<'_>> {
        let mut latest: Vec<LaneRecord<'_>> = Vec::new();
        for record in self.lane_history(key) {
            latest.retain(|known| known.stage != record.stage);
            latest.push(record);
        }
        latest
    }

    /// The checkpoints of a run that are records of a stage, oldest first.
    fn staged(&self, run: &Run) -> impl DoubleEndedIterator<Item = &Checkpoint> {
        run.staged
            .iter()
            .filter_map(|seq| self.checkpoints.get(*seq))
            .filter(|checkpoint| checkpoint.run == run.key)
    }

    /// Every record that a lane ever had, in the order in which they were made.
    fn lane_history(&self, key: &RunKey) -> Vec<LaneRecord<'_>> {
        let run = self.run(key);
        let staged = run.into_iter().flat_map(|run| self.staged(run));
        let own = staged
            .flat_map(|checkpoint| records_of(checkpoint, run))
            .flatten();
        let mut all: Vec<LaneRecord<'_>> = own.chain(imported(run)).collect();
        all.sort_by_key(|record| record.order);
        all
    }

    /// The record that says where a lane stands: the latest that was not gone back past.
    pub fn lane_stands(&self, key: &RunKey) -> Option<LaneRecord<'_>> {
        let latest = self.lane_records(key);
        // What a stage had before its latest record counts only where that was gone back past.
        if latest
            .iter()
            .all(|record| record.status != Some(ROLLED_BACK))
        {
            return latest.last().copied();
        }
        let records = self.lane_history(key);
        let stands = records
            .iter()
            .rfind(|record| record.status != Some(ROLLED_BACK));
        stands.or(records.last()).copied()
    }

    /// The record that was the lane's latest when the checkpoint numbered `seq` was.
    pub(crate) fn lane_at(&self, key: &RunKey, seq: u64) -> Option<LaneRecord<'_>> {
        let mut records = self.lane_history(key).into_iter();
        records.rfind(|record| record.order.0 <= seq)
    }

    /// The integration branch of a lane, as its latest record that names one has it.
    pub fn lane_base(&self, key: &RunKey) -> Option<String> {
        let own = self
            .checkpoints_of(key)
            .rev()
            .find_map(|checkpoint| checkpoint.lane_fields.base_branch.clone());
        own.or_else(|| {
            let run = self.run(key)?;
            run.imported.iter().rev().find_map(|one| {
                one.imported.document["base_branch"]
                    .as_str()
                    .map(str::to_owned)
            })
        })
    }

    /// The safest prior stage of a lane (C5): the latest earlier checkpoint of a stage that did not fail, of the same stage
    /// only where that has failed since. A lane that stands at its first one goes back to that.
    pub fn lane_safest(&self, key: &RunKey) -> Option<&Checkpoint> {
        let stands = self
            .lane_stands(key)
            .filter(|record| record.status != Some(ROLLED_BACK))?;
        let failed = !stands.is_safe();
        let at = stands
            .checkpoint()
            .map_or(u64::MAX, |checkpoint| checkpoint.seq);
        let fits = |checkpoint: &&Checkpoint| {
            let stage = checkpoint.lane_fields.stage.as_deref();
            let other = failed || stage != Some(stands.stage);
            checkpoint.seq < at && other && checkpoint.is_safe_stage()
        };
        let earlier = self.standing(key).rfind(fits);
        earlier.or_else(|| {
            stands
                .checkpoint()
                .filter(|checkpoint| checkpoint.is_safe_stage())
        })
    }
}

/// The records that a checkpoint is of its run: of its stage, and of the attempt that it was taken after.
fn records_of<'a>(checkpoint: &'a Checkpoint, run: Option<&'a Run>) -> [Option<LaneRecord<'a>>; 2] {
    let fields = &checkpoint.lane_fields;
    let gone = run.is_some_and(|run| run.rolled_back.contains(&checkpoint.seq));
    let told = |status| if gone { Some(ROLLED_BACK) } else { status };
    let Some(stage) = fields.stage.as_deref() else {
        return [None, None];
    };
    let (order, status) = (
        (checkpoint.seq, 0),
        told(Some(
            fields
                .status
                .as_deref()
                .unwrap_or_else(|| unsaid_status(stage, checkpoint)),
        )),
    );
    let own = LaneRecord {
        stage,
        status,
        origin: Origin::Own(checkpoint),
        order,
    };
    let retry = (stage != RETRY && fields.retry_status.is_some()).then(|| {
        let (order, status) = ((checkpoint.seq, 1), told(fields.retry_status.as_deref()));
        LaneRecord {
            stage: RETRY,
            status,
            origin: Origin::Retry(checkpoint),
            order,
        }
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
    all.iter()
        .filter(|one| one.imported.kind == ImportKind::Lanes)
        .map(|one| {
            let status = one.imported.document["status"].as_str();
            let order = (one.after_checkpoint, one.seq.saturating_add(2));
            LaneRecord {
                stage: &one.imported.id,
                status,
                origin: Origin::Imported(one),
                order,
            }
        })
}

/// Whether records are kept of this run: it is named as a lane, or has them already.
pub(crate) fn is_lane(state: &State, key: &RunKey) -> bool {
    key.lane != NONE || !state.lane_records(key).is_empty()
}

/// Checkpoints of a lane's stages that came after the one numbered `seq`.
pub(crate) fn stages_after(state: &State, run: &Run, seq: u64) -> Vec<u64> {
    state
        .staged(run)
        .map(|checkpoint| checkpoint.seq)
        .filter(|staged| *staged > seq)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::event::{EVENT_SCHEMA, Event, EventSource, Payload};
    use crate::model::run::RunSpec;
    use crate::model::time::Timestamp;

    /// A lane with these checkpoints: each with its stage, whether it failed, and whether it is a record of a retry too.
    fn lane(key: &RunKey, checkpoints: &[(u8, bool, bool)]) -> State {
        let oid = "0".repeat(40);
        let (task_id, session, spec) = (None, "s".to_owned(), Box::new(RunSpec::default()));
        let mut events = vec![Payload::RunCreated {
            task_id,
            session,
            worktree: "/w".into(),
            spec,
        }];
        for (seq, (stage, failed, retried)) in (1_u64..).zip(checkpoints) {
            let stage = [None, Some(AFTER_TESTS), Some(PRE_PR), Some(RETRY)][usize::from(*stage)];
            let made = json!({
                "id": format!("ckpt_{seq:04}"), "seq": seq, "run_id": key.run_id, "phase": key.phase, "lane": key.lane,
                "task_id": null, "stage": stage,
                "status": failed.then_some("failed"), "retry_status": retried.then_some("retrying"), "type": "task",
                "trigger": "manual", "worktree": "/w", "state_dir": "/s", "after_iteration": 0, "attempt": null,
                "verdict": "unverified", "storage_type": "snapshot", "commit": oid, "tree": oid, "base_commit": null,
                "head_ref": null, "patch_path": null, "previous": null, "created_at": "2026-01-01T00:00:00Z",
                "description": "text", "pinned": false, "captured": {"files": 0, "bytes": 0}, "skipped": [],
                "changes": {"modified": 0, "created": 0, "deleted": 0}, "feedback_results": {}, "duration_ms": 1,
            });
            let checkpoint = serde_json::from_value(made).expect("a checkpoint");
            events.push(Payload::CheckpointCreated {
                checkpoint,
                adopted: false,
                own_commits: Vec::new(),
            });
        }
        let mut state = State::default();
        for (seq, payload) in (1..).zip(events) {
            let (at, run) = (Timestamp::default(), Some(key.clone()));
            state.apply(&Event {
                seq,
                at,
                schema: EVENT_SCHEMA,
                run,
                source: EventSource::Recover,
                payload,
            });
        }
        state
    }

    proptest! {
        #[test]
        fn records_are_those_of_all_checkpoints_of_a_stage(
            checkpoints in prop::collection::vec((0..4_u8, any::<bool>(), any::<bool>()), 0..12),
            removed in prop::collection::btree_set(1..12_u64, 0..3),
        ) {
            let key = RunKey::new("r", None, Some("l"));
            let mut state = lane(&key, &checkpoints);
            let ids: Vec<_> = removed.iter().map(|seq| format!("ckpt_{seq:04}").into()).collect();
            state.checkpoints.remove(&ids);
            let run = state.run(&key).expect("the lane's run");
            let of_stage = |one: &&Checkpoint| one.lane_fields.stage.is_some();
            let expected: Vec<_> = state.checkpoints_of(&key).filter(of_stage).collect();
            prop_assert_eq!(state.staged(run).collect::<Vec<_>>(), expected);
        }
    }
}
