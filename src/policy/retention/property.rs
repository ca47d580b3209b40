//! Histories at random against a naive model that copies whole lists.
//! What is good, the latest, the initial one, and what an iteration came to; and no prune of an open run takes what these
//! name.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::{Limits, Which, retain};
use crate::model::event::EVENT_SCHEMA;
use crate::model::operation::{NestedPart, Reposition};
use crate::model::state::SelectionError;
use crate::model::{
    Checkpoint, CheckpointId, Event, EventSource, HeadMove, Operation, OperationKind, Payload,
    RunKey, RunSpec, RunStatus, Scope, Selector, State, Timestamp, Verdict,
};
use crate::policy::settings::Settings;

#[derive(Clone, Debug)]
enum Step {
    /// A checkpoint after an iteration, of an attempt or on request.
    Take(u32, Verdict, bool),
    /// A rollback to one of all that are there, those before restores included.
    Rollback(usize),
    /// One by decision: no bookkeeping follows.
    ToGood,
    /// A rollback of some paths, or `checkpoint restore`.
    Look(usize, bool),
    Undo,
    Redo,
    Prune(Limits),
    End,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let verdict = prop_oneof![
        Just(Verdict::Passed),
        Just(Verdict::Failed),
        Just(Verdict::Unverified)
    ];
    let limits = (prop::option::of(0..4_u32), any::<bool>(), any::<bool>());
    let limits = limits.prop_map(|(keep_last, drop_passed, drop_failed)| Limits {
        keep_last,
        drop_failed,
        drop_passed,
        ..Limits::default()
    });
    let step = prop_oneof![
        8 => (0..5_u32, verdict, any::<bool>()).prop_map(|(after, verdict, of)| Step::Take(after, verdict, of)),
        5 => (0..1000_usize).prop_map(Step::Rollback),
        1 => Just(Step::ToGood),
        1 => (0..1000_usize, any::<bool>()).prop_map(|(at, paths)| Step::Look(at, paths)),
        3 => Just(Step::Undo),
        2 => Just(Step::Redo),
        2 => limits.prop_map(Step::Prune),
        1 => Just(Step::End),
    ];
    prop::collection::vec(step, 0..40)
}

/// A checkpoint as the naive model has it.
#[derive(Clone, Debug)]
struct Taken {
    after: u32,
    verdict: Verdict,
    is_initial: bool,
    is_safety: bool,
    is_there: bool,
    /// Everything on the way to it, itself last.
    line: Vec<u64>,
}

/// What the rule says, in the plainest way.
#[derive(Default)]
struct Oracle {
    all: BTreeMap<u64, Taken>,
    /// What counts now.
    line: Vec<u64>,
    /// The lines that were left, last one last; `None` for what left none.
    undo: Vec<Option<Vec<u64>>>,
    redo: Vec<Option<Vec<u64>>>,
    first: Option<u64>,
    seen: bool,
}

impl Oracle {
    fn take(&mut self, one: &Checkpoint) {
        let (is_initial, is_safety) = (one.trigger == "initial", one.is_safety());
        if !is_safety {
            self.line.push(one.seq);
            if !self.seen && (one.attempt.is_none() || one.verdict == Verdict::Passed) {
                self.first = Some(one.seq);
            }
            self.seen = true;
        }
        let (after, verdict, line) = (one.after_iteration, one.verdict, self.line.clone());
        self.all.insert(
            one.seq,
            Taken {
                after,
                verdict,
                is_initial,
                is_safety,
                is_there: true,
                line,
            },
        );
    }

    /// `target` is what a rollback of everything went to.
    fn restored(&mut self, kind: OperationKind, target: Option<u64>) {
        let before = self.line.clone();
        match kind {
            OperationKind::Rollback
            | OperationKind::Restore
            | OperationKind::Accept
            | OperationKind::Discard => {
                self.undo.push(target.map(|_| before));
                self.redo.clear();
                if let Some(target) = target {
                    self.line = self.all[&target].line.clone();
                }
            }
            OperationKind::Undo | OperationKind::Redo => {
                let is_undo = kind == OperationKind::Undo;
                let (from, to) = if is_undo {
                    (&mut self.undo, &mut self.redo)
                } else {
                    (&mut self.redo, &mut self.undo)
                };
                let entry = from.pop().expect("asked for where there is one");
                to.push(entry.as_ref().map(|_| before));
                self.line = entry.unwrap_or_else(|| std::mem::take(&mut self.line));
            }
        }
    }

    fn there(&self) -> Vec<u64> {
        self.line
            .iter()
            .copied()
            .filter(|seq| self.all[seq].is_there)
            .collect()
    }

    fn good(&self) -> Option<u64> {
        let passed = self
            .there()
            .into_iter()
            .rfind(|seq| self.all[seq].verdict == Verdict::Passed);
        let usable = |one: &Taken| one.is_there && one.is_initial && one.verdict != Verdict::Failed;
        passed.or(self.first.filter(|first| usable(&self.all[first])))
    }

    /// `Err`: it was removed.
    fn iteration(&self, number: u32) -> Option<Result<u64, ()>> {
        let of = |on_line: bool| -> Vec<u64> {
            let is_its = |seq: &u64, one: &Taken| {
                one.after == number && !one.is_safety && self.line.contains(seq) == on_line
            };
            self.all
                .iter()
                .filter(|(seq, one)| is_its(seq, one))
                .map(|(seq, _)| *seq)
                .collect()
        };
        let those = if of(true).is_empty() {
            of(false)
        } else {
            of(true)
        };
        let passed = those
            .iter()
            .rfind(|seq| self.all[*seq].verdict == Verdict::Passed);
        let found = *passed.or(those.last())?;
        Some(if self.all[&found].is_there {
            Ok(found)
        } else {
            Err(())
        })
    }
}

/// The state, and the oracle beside it.
struct World {
    state: State,
    oracle: Oracle,
    key: RunKey,
    seconds: u64,
}

impl World {
    fn new() -> Self {
        let (key, oracle) = (RunKey::new("r", None, None), Oracle::default());
        let mut world = Self {
            state: State::default(),
            oracle,
            key,
            seconds: 0,
        };
        let spec = Box::new(RunSpec::default());
        world.event(Payload::RunCreated {
            task_id: None,
            session: "r".into(),
            worktree: "/w".into(),
            spec,
        });
        world
    }

    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        start.plus(std::time::Duration::from_secs(self.seconds))
    }

    fn event(&mut self, payload: Payload) {
        self.seconds += 1;
        let (seq, at, run) = (self.state.last_seq + 1, self.now(), Some(self.key.clone()));
        let event = Event {
            seq,
            at,
            schema: EVENT_SCHEMA,
            run,
            source: EventSource::Recover,
            payload,
        };
        self.state.apply(&event);
    }

    fn take(
        &mut self,
        trigger: &str,
        after: u32,
        verdict: Verdict,
        attempt: Option<u32>,
    ) -> CheckpointId {
        let (oid, seq) = ("0".repeat(40), self.state.last_checkpoint_seq + 1);
        let id = format!("ckpt_{seq:04}");
        let made = json!({
            "id": id, "seq": seq, "run_id": "r", "phase": "-", "lane": "-", "task_id": null, "stage": null,
            "status": null, "type": "task", "trigger": trigger, "worktree": "/w", "state_dir": "/w/.ultraplan/state",
            "after_iteration": after, "attempt": attempt, "verdict": verdict, "storage_type": "snapshot",
            "commit": oid, "tree": oid, "base_commit": null, "head_ref": null, "patch_path": null, "previous": null,
            "created_at": self.now(), "description": "text", "pinned": false, "captured": {"files": 0, "bytes": 0},
            "changes": {"modified": 0, "created": 0, "deleted": 0}, "skipped": [], "feedback_results": {},
            "duration_ms": 1,
        });
        let checkpoint: Box<Checkpoint> = serde_json::from_value(made).expect("a checkpoint");
        self.oracle.take(&checkpoint);
        self.event(Payload::CheckpointCreated {
            checkpoint,
            adopted: false,
            own_commits: Vec::new(),
        });
        id.into()
    }

    /// As every restore is recorded: what there was before it, then that it was done.
    fn restore(
        &mut self,
        kind: OperationKind,
        target: &CheckpointId,
        paths: &[String],
        reposition: Option<Reposition>,
    ) {
        let whole = kind == OperationKind::Rollback && paths.is_empty();
        let target_seq = self
            .state
            .checkpoint(target)
            .map(|one| one.seq)
            .filter(|_| whole);
        let safety = self.take("safety", 0, Verdict::Unverified, None);
        self.oracle.restored(kind, target_seq);
        let operation = Operation {
            id: format!("op_{}", self.seconds).into(),
            kind,
            worktree: "/w".into(),
            safety_checkpoint_id: safety,
            checkpoint_id: target.clone(),
            scope: Scope::All,
            paths: paths.to_vec(),
            head: HeadMove::default(),
            written: 0,
            deleted: 0,
            changed_paths: Vec::new(),
            kept: Vec::new(),
            left: Vec::new(),
            reposition,
            index_restored: false,
            steps: Vec::new(),
            nested: NestedPart::default(),
            of_run: false,
        };
        self.event(Payload::Restored {
            operation: Box::new(operation),
        });
    }

    fn some(&self, at: usize) -> Option<CheckpointId> {
        let all: Vec<&Checkpoint> = self.state.checkpoints_of(&self.key).collect();
        (!all.is_empty()).then(|| all[at % all.len()].id.clone())
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Take(after, verdict, of_attempt) => {
                let (trigger, attempt) = match (of_attempt, self.oracle.seen) {
                    (true, _) => ("attempt", Some(1)),
                    (false, true) => ("manual", None),
                    (false, false) => ("initial", None),
                };
                self.take(trigger, *after, *verdict, attempt);
            }
            Step::Rollback(at) => {
                let Some(id) = self.some(*at) else { return };
                let to = Reposition {
                    current_iteration: 1,
                    status: RunStatus::Paused,
                    clear_failure: false,
                };
                self.restore(OperationKind::Rollback, &id, &[], Some(to));
            }
            Step::ToGood => {
                let good = self.state.last_good(&self.key).map(|good| good.id.clone());
                if let Some(id) = good {
                    self.restore(OperationKind::Rollback, &id, &[], None);
                }
            }
            Step::Look(at, paths) => {
                let Some(id) = self.some(*at) else { return };
                if *paths {
                    self.restore(OperationKind::Rollback, &id, &["a".to_owned()], None);
                } else {
                    self.restore(OperationKind::Restore, &id, &[], None);
                }
            }
            Step::Undo | Step::Redo => {
                let is_undo = matches!(step, Step::Undo);
                let worktree = self.state.worktrees.get(&"/w".to_owned().into());
                let entry = worktree.and_then(|one| {
                    if is_undo {
                        one.undo.last()
                    } else {
                        one.redo.last()
                    }
                });
                let Some(entry) = entry.cloned() else { return };
                let kind = if is_undo {
                    OperationKind::Undo
                } else {
                    OperationKind::Redo
                };
                self.restore(kind, &entry.checkpoint_id, &entry.paths, None);
            }
            Step::Prune(limits) => self.prune(limits),
            Step::End => self.event(Payload::RunStatusChanged {
                status: RunStatus::Complete,
                reason: String::new(),
            }),
        }
    }

    fn prune(&mut self, limits: &Limits) {
        let named = |world: &Self| {
            let of = |selector| {
                world
                    .state
                    .select(&selector, Some(&world.key))
                    .ok()
                    .map(|one| one.seq)
            };
            [of(Selector::Good), of(Selector::Initial)]
        };
        let (before, is_open) = (
            named(self),
            !self.state.run(&self.key).expect("it").status.has_ended(),
        );
        let plan = retain(
            &self.state,
            Which::All,
            limits,
            &Settings::default().retention,
            self.now(),
            &|_| 0,
        );
        let ids: Vec<CheckpointId> = plan.removed.into_iter().map(|one| one.id).collect();
        for id in &ids {
            let seq = self.state.checkpoint(id).expect("known").seq;
            self.oracle.all.get_mut(&seq).expect("taken").is_there = false;
        }
        self.event(Payload::CheckpointsPruned { ids });
        if is_open {
            assert_eq!(
                named(self),
                before,
                "what an open run may go back to was removed"
            );
        }
    }

    fn check(&self) {
        let seq = |selector: Selector| match self.state.select(&selector, Some(&self.key)) {
            Ok(found) => Some(Ok(found.seq)),
            Err(SelectionError::Removed { .. }) => Some(Err(())),
            Err(_) => None,
        };
        let (oracle, there) = (&self.oracle, self.oracle.there());
        assert_eq!(seq(Selector::Good), oracle.good().map(Ok), "good");
        for back in 0..=there.len() {
            let expected = there.iter().rev().nth(back).copied();
            assert_eq!(
                seq(Selector::Latest(back)),
                expected.map(Ok),
                "latest~{back}"
            );
        }
        let first = oracle.first.map(|first| {
            if oracle.all[&first].is_there {
                Ok(first)
            } else {
                Err(())
            }
        });
        assert_eq!(seq(Selector::Initial), first, "initial");
        for number in 0..6 {
            assert_eq!(
                seq(Selector::Iteration(number)),
                oracle.iteration(number),
                "iteration:{number}"
            );
        }
    }
}

proptest! {
    #[test]
    fn what_counts_is_what_a_naive_model_says(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            world.step(&step);
            world.check();
        }
        // Nor does it depend on what is packed.
        world.state.pack();
        world.check();
    }
}
