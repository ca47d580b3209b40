//! The rules of `prune`: which checkpoints are kept, with a reason for each (B14, S13, S14). Protections come first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{Datelike, Timelike};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::checkpoint::trigger;
use crate::model::lane::LaneRecord;
use crate::model::operation::UndoEntry;
use crate::model::time::format_duration;
use crate::model::{
    Checkpoint, CheckpointId, CheckpointType, OperationKind, Run, RunKey, RunStatus, State, Step,
    Timestamp, Verdict,
};

use super::settings::{OnRunFailure, RetentionSettings};

/// What the caller asks for; without any of them the configured retention holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Keep the newest so many of each run.
    pub keep_last: Option<u32>,
    /// Keep what is not older.
    pub keep_within: Option<Duration>,
    /// Keep the last one of each of this many hours.
    pub keep_hourly: Option<u32>,
    /// Keep the last one of each of this many days.
    pub keep_daily: Option<u32>,
    /// Keep the last one of each of this many weeks.
    pub keep_weekly: Option<u32>,
    /// Remove what is older.
    pub max_age: Option<Duration>,
    /// Remove the oldest ones until the others have captured no more bytes than this.
    pub max_total_size: Option<u64>,
    /// Remove those whose feedback loops failed.
    pub drop_failed: bool,
    /// Remove those whose feedback loops passed.
    pub drop_passed: bool,
    /// Archive milestones that are older than this (S13).
    pub archive: Option<Duration>,
}

impl Limits {
    /// Whether they say nothing of what is no milestone.
    fn is_empty(&self) -> bool {
        *self
            == Self {
                archive: self.archive,
                ..Self::default()
            }
    }

    /// Whether these limits say what to keep, and it is nothing.
    pub(crate) fn keeps_nothing(&self) -> bool {
        let none = |count: Option<u32>| count.unwrap_or(0) == 0;
        self.keeps()
            && [
                self.keep_last,
                self.keep_hourly,
                self.keep_daily,
                self.keep_weekly,
            ]
            .into_iter()
            .all(none)
            && self.keep_within.unwrap_or_default().is_zero()
    }

    fn keeps(&self) -> bool {
        let counts = [
            self.keep_last,
            self.keep_hourly,
            self.keep_daily,
            self.keep_weekly,
        ];
        self.keep_within.is_some() || counts.iter().any(Option::is_some)
    }
}

/// A checkpoint and why it is kept or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Reasoned {
    /// The checkpoint.
    pub id: CheckpointId,
    /// Why, at least one.
    pub reasons: Vec<String>,
}

/// What a prune would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RetentionPlan {
    /// Kept, oldest first.
    pub kept: Vec<Reasoned>,
    /// Removed, oldest first.
    pub removed: Vec<Reasoned>,
    /// Milestones that are removed once they are archived, oldest first.
    pub archived: Vec<Reasoned>,
}

/// Whose checkpoints are decided over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which<'a> {
    /// Those of every run.
    All,
    /// Those of one run.
    Run(&'a RunKey),
    /// Those of the runs whose time has come after their end; of the others only `max_total_size` removes any.
    Due,
}

impl<'a> Which<'a> {
    /// One run, if there is one.
    pub(crate) fn run(self) -> Option<&'a RunKey> {
        match self {
            Self::Run(key) => Some(key),
            Self::All | Self::Due => None,
        }
    }
}

/// What the checkpoints are measured with: the bytes that each holds beyond the newer ones and what branches hold.
type Sizes<'a> = &'a dyn Fn(&Checkpoint) -> u64;

/// Decides over checkpoints.
pub(crate) fn retain(
    state: &State,
    which: Which<'_>,
    limits: &Limits,
    settings: &RetentionSettings,
    now: Timestamp,
    sizes: Sizes<'_>,
) -> RetentionPlan {
    let mut by_run: BTreeMap<&RunKey, Vec<&Checkpoint>> = BTreeMap::new();
    let run = which.run();
    for checkpoint in state
        .checkpoints
        .values()
        .filter(|checkpoint| run.is_none_or(|run| checkpoint.run == *run))
    {
        by_run.entry(&checkpoint.run).or_default().push(checkpoint);
    }
    let in_session = positions_in_session(state);
    let shared = Shared::of(state);
    let mut verdicts: BTreeMap<u64, Sentence> = BTreeMap::new();
    let mut archived = BTreeMap::new();
    for (key, checkpoints) in by_run {
        let kept_for = kept_for(state, key, settings);
        let end = End::of(state.run(key), (settings, kept_for), now);
        let protections = Protections::of(state, key, &shared, end, (settings, now));
        let complete = state.run(key).filter(|_| end == End::Tidied);
        let due = !matches!(which, Which::Due) || matches!(end, End::Tidied | End::Limited);
        let mut results = 0;
        for (position, checkpoint) in checkpoints.iter().rev().enumerate() {
            // What is not decided over is not examined either: runs that are over are packed.
            let on_the_way = !due
                || checkpoint.is_safety()
                || checkpoint.is_in_between()
                || state.is_superseded(checkpoint);
            let result = (checkpoint.verdict != Verdict::Failed && !on_the_way).then_some(results);
            results += usize::from(result.is_some());
            let mut reasons = protections.of_checkpoint(checkpoint);
            let old = limits
                .archive
                .is_some_and(|age| now.since(checkpoint.created_at) > age);
            if old
                && !reasons.is_empty()
                && reasons.iter().all(|why| MILESTONE.contains(&why.as_str()))
            {
                let id = checkpoint.id.clone();
                archived.insert(checkpoint.seq, Reasoned { id, reasons });
                continue;
            }
            if is_fresh_way_back(checkpoint, now) {
                reasons.push(format!(
                    "taken less than {} ago before what may destroy work",
                    format_duration(LEAST)
                ));
            }
            let protected = !reasons.is_empty();
            let (keep, why) = if protected {
                (true, None)
            } else if !due {
                (true, Some("its run is not tidied up yet".to_owned()))
            } else if limits.is_empty() && end == End::Whole {
                let age = format_duration(kept_for);
                (true, Some(format!("its run ended less than {age} ago")))
            } else {
                let (keep, why) = if limits.is_empty() {
                    let position = Position {
                        of_run: position,
                        of_session: in_session.get(&checkpoint.seq).copied().unwrap_or(position),
                        result,
                        complete,
                    };
                    configured(checkpoint, position, settings, now)
                } else {
                    asked(checkpoint, position, &checkpoints, limits, now)
                };
                (keep, Some(why))
            };
            reasons.extend(why);
            let id = checkpoint.id.clone();
            let sentence = Sentence {
                keep,
                protected,
                reasoned: Reasoned { id, reasons },
            };
            verdicts.insert(checkpoint.seq, sentence);
        }
    }
    let (total, why) = match limits.max_total_size {
        None if limits.is_empty() => (settings.max_total_size, "over max_total_size"),
        asked => (asked, "over --max-total-size"),
    };
    if let Some(total) = total {
        let sizes: Sizes<'_> = if limits.is_empty() {
            sizes
        } else {
            &|checkpoint| checkpoint.captured.bytes
        };
        keep_below(state, &mut verdicts, (total, why), sizes);
    }
    let mut plan = RetentionPlan {
        archived: archived.into_values().collect(),
        ..RetentionPlan::default()
    };
    for Sentence { keep, reasoned, .. } in verdicts.into_values() {
        if keep {
            plan.kept.push(reasoned);
        } else {
            plan.removed.push(reasoned);
        }
    }
    plan
}

/// What was decided of one checkpoint.
struct Sentence {
    keep: bool,
    protected: bool,
    reasoned: Reasoned,
}

/// Gives up the oldest ones until the others are within `total`. Protected ones count and stay.
fn keep_below(
    state: &State,
    verdicts: &mut BTreeMap<u64, Sentence>,
    (total, why): (u64, &str),
    sizes: Sizes<'_>,
) {
    let mut used = 0_u64;
    for (seq, sentence) in verdicts
        .iter_mut()
        .rev()
        .filter(|(_, sentence)| sentence.keep)
    {
        used = used.saturating_add(state.checkpoints.get(*seq).map_or(0, sizes));
        if used > total && !sentence.protected {
            sentence.keep = false;
            sentence.reasoned.reasons = vec![why.to_owned()];
        }
    }
}

/// Whether it was taken before an edit, or before what may destroy work, not long ago: no limit removes it.
fn is_fresh_way_back(checkpoint: &Checkpoint, now: Timestamp) -> bool {
    [trigger::RISKY, trigger::BEFORE_EDIT].contains(&checkpoint.trigger.as_str())
        && now.since(checkpoint.created_at) <= LEAST
}

/// How long what was taken before an edit or before what may destroy work stays at least: until a user has looked at it.
const LEAST: Duration = Duration::from_secs(24 * 3600);

/// The reasons that make a milestone: nothing needs it, a user wants to have it.
const MILESTONE: [&str; 2] = ["pinned", "milestone"];

/// How long the checkpoints of a run that was discarded stay at least: what it did is nowhere else.
const DISCARDED: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long all checkpoints of a run stay after its end.
fn kept_for(state: &State, key: &RunKey, settings: &RetentionSettings) -> Duration {
    let discards =
        |entry: &UndoEntry| entry.kind == OperationKind::Discard && entry.run.as_ref() == Some(key);
    let mut done = state.worktrees.values().flat_map(|worktree| &worktree.undo);
    if done.any(discards) {
        settings.after_end.max(DISCARDED)
    } else {
        settings.after_end
    }
}

/// What a run's end means for its checkpoints (S13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It goes on, or can be resumed as it is.
    Open,
    /// It ended well, not long ago: all are there to go back to.
    Whole,
    /// It ended badly: all are evidence.
    Failed,
    /// It ended badly, and the other limits are to apply.
    Limited,
    /// Its time is over: no more stays than of a run that ended well.
    Tidied,
}

impl End {
    /// `kept_for`: how long all stay after it ended well, or was closed.
    fn of(
        run: Option<&Run>,
        (settings, kept_for): (&RetentionSettings, Duration),
        now: Timestamp,
    ) -> Self {
        let Some((run, ended_at)) = run.and_then(|run| Some((run, run.ended_at?))) else {
            return Self::Open;
        };
        let age = now.since(ended_at);
        match run.status {
            RunStatus::Failed | RunStatus::Escalated => {
                match (settings.on_failure, settings.scheduled_max_age) {
                    (OnRunFailure::Limits, _) => Self::Limited,
                    (OnRunFailure::KeepAll, Some(longest)) if age > longest => Self::Tidied,
                    (OnRunFailure::KeepAll, _) => Self::Failed,
                }
            }
            RunStatus::Complete if age < kept_for => Self::Whole,
            // As long as an accept can be taken back, and examined, from then on.
            RunStatus::Accepted | RunStatus::Closed if now.since(run.last_at) < kept_for => {
                Self::Whole
            }
            _ => Self::Tidied,
        }
    }
}

/// What is needed whatever run it is of.
struct Shared<'a> {
    undo_targets: BTreeSet<&'a str>,
    /// Steps that are under way are restored to these if they fail.
    steps: BTreeSet<&'a str>,
}

impl<'a> Shared<'a> {
    fn of(state: &'a State) -> Self {
        let entries = state.worktrees.values().flat_map(|worktree| {
            worktree
                .undo
                .iter()
                .chain(&worktree.redo)
                .chain(&worktree.of_runs)
        });
        let layers = state
            .worktrees
            .values()
            .flat_map(|worktree| &worktree.baseline);
        let undo_targets = entries
            .map(|entry| entry.checkpoint_id.as_str())
            .chain(layers.map(|layer| layer.checkpoint_id.as_str()));
        Self {
            undo_targets: undo_targets.collect(),
            steps: state
                .runs
                .iter()
                .flat_map(|run| &run.steps)
                .filter_map(Step::way_back)
                .collect(),
        }
    }
}

/// What no limit reaches.
struct Protections<'a> {
    shared: &'a Shared<'a>,
    initial: Option<&'a CheckpointId>,
    good: Option<&'a str>,
    /// The first and the last good checkpoint of an accepted run whose new files can be asked for still.
    left_out: [Option<&'a str>; 2],
    /// What the iteration under way began with, and the one that is still to be rolled back.
    began: Vec<&'a CheckpointId>,
    run_failed: bool,
    /// The latest checkpoint of each stage of an open lane.
    stages: BTreeSet<&'a str>,
    now: Timestamp,
}

impl<'a> Protections<'a> {
    fn of(
        state: &'a State,
        key: &RunKey,
        shared: &'a Shared<'a>,
        end: End,
        (settings, now): (&RetentionSettings, Timestamp),
    ) -> Self {
        let open = state.run(key).filter(|run| !run.status.has_ended());
        let began = |run: &'a Run| {
            let numbers = [Some(run.current_iteration), run.to_roll_back]
                .into_iter()
                .flatten();
            numbers
                .filter_map(|number| run.iterations.get(number)?.began.as_ref())
                .collect()
        };
        let longest = settings.after_end.max(LEAST);
        let asked_for = state.run(key).filter(|run| {
            run.status == RunStatus::Accepted
                && run.accepted_as.left_out
                && run.ended_at.is_some_and(|at| now.since(at) <= longest)
        });
        let left_out = asked_for.map_or([None, None], |run| {
            let good = state
                .last_good(key)
                .map(|checkpoint| checkpoint.id.as_str());
            [
                run.initial_checkpoint.as_ref().map(CheckpointId::as_str),
                good,
            ]
        });
        Self {
            shared,
            left_out,
            initial: open.and_then(|run| run.initial_checkpoint.as_ref()),
            good: open
                .and_then(|_| state.last_good(key))
                .map(|checkpoint| checkpoint.id.as_str()),
            began: open.map(began).unwrap_or_default(),
            run_failed: end == End::Failed,
            stages: open
                .map(|run| stages_of(state, &run.key))
                .unwrap_or_default(),
            now,
        }
    }

    fn of_checkpoint(&self, checkpoint: &Checkpoint) -> Vec<String> {
        let id = checkpoint.id.as_str();
        let protections = [
            (checkpoint.pinned, MILESTONE[0]),
            (checkpoint.kind == CheckpointType::Phase, MILESTONE[1]),
            (
                self.initial == Some(&checkpoint.id),
                "initial checkpoint of an open run",
            ),
            (self.good == Some(id), "last good checkpoint of an open run"),
            (
                self.left_out.contains(&Some(id)),
                "new files were left out of the commits of an accepted run",
            ),
            (
                self.began.contains(&&checkpoint.id),
                "an iteration of an open run began with it",
            ),
            (self.shared.undo_targets.contains(id), "needed by undo"),
            (self.shared.steps.contains(id), "needed by a step under way"),
            (self.stages.contains(id), "stage of an open lane"),
            (self.run_failed, "the run failed"),
            (checkpoint.created_at > self.now, "dated in the future"),
        ];
        let held = protections.into_iter().filter(|(holds, _)| *holds);
        held.map(|(_, why)| why.to_owned()).collect()
    }
}

fn stages_of<'a>(state: &'a State, key: &RunKey) -> BTreeSet<&'a str> {
    state
        .lane_records(key)
        .iter()
        .filter_map(LaneRecord::checkpoint)
        .map(|one| one.id.as_str())
        .collect()
}

/// Where each checkpoint stands among those of its session, by sequence, the newest first: lanes of a run share one (S14).
fn positions_in_session(state: &State) -> BTreeMap<u64, usize> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut positions = BTreeMap::new();
    for checkpoint in state.checkpoints.values().rev() {
        let session = state
            .run(&checkpoint.run)
            .map_or(checkpoint.run.run_id.as_str(), |run| run.session.as_str());
        let count = counts.entry(session).or_default();
        positions.insert(checkpoint.seq, *count);
        *count += 1;
    }
    positions
}

/// Where a checkpoint stands, counted from the newest.
#[derive(Clone, Copy)]
struct Position<'a> {
    /// Among those of its run.
    of_run: usize,
    /// Among those of its session.
    of_session: usize,
    /// Among those of its run that hold results: neither failures nor what a restore found or went back over, nor what was
    /// taken on the way.
    result: Option<usize>,
    /// Its run, if that is tidied up.
    complete: Option<&'a Run>,
}

/// The configured retention (B14), and for a run that is tidied up what is said of those (S13): there the newest few results
/// stay and the one it began with, so that it can still be taken back as a whole; failures on the way as everywhere.
fn configured(
    checkpoint: &Checkpoint,
    position: Position<'_>,
    settings: &RetentionSettings,
    now: Timestamp,
) -> (bool, String) {
    let number = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
    let of_run = number(position.of_run);
    let age = now.since(checkpoint.created_at);
    if settings
        .max_per_session
        .is_some_and(|max| number(position.of_session) >= max)
    {
        return (false, "over max_per_session".to_owned());
    }
    if let (Some(run), Some(last)) = (position.complete, settings.on_success_keep_last) {
        let initial = run.initial_checkpoint.as_ref() == Some(&checkpoint.id);
        return match () {
            () if position.result.is_some_and(|result| number(result) < last) => {
                (true, format!("among the newest {last} of a complete run"))
            }
            () if checkpoint.trigger == trigger::RISKY
                && settings.max_age.is_none_or(|max| age <= max) =>
            {
                (true, "taken before what may destroy work".to_owned())
            }
            () if !initial && checkpoint.verdict != Verdict::Failed => (
                false,
                "over on_success_keep_last of a complete run".to_owned(),
            ),
            () if settings.max_age.is_some_and(|max| age > max) => {
                (false, "older than max_age".to_owned())
            }
            () if initial => (true, "what a complete run began with".to_owned()),
            // A killed attempt's work may be nowhere else.
            () => (settings.keep_failed, "failed (keep_failed)".to_owned()),
        };
    }
    if of_run < settings.keep_last {
        return (true, format!("among the newest {}", settings.keep_last));
    }
    if settings.max_age.is_some_and(|max| age > max) {
        return (false, "older than max_age".to_owned());
    }
    match checkpoint.verdict {
        Verdict::Failed => (settings.keep_failed, "failed (keep_failed)".to_owned()),
        Verdict::Passed | Verdict::Unverified => (
            settings.keep_successful,
            "not failed (keep_successful)".to_owned(),
        ),
    }
}

/// What the caller's flags say.
fn asked(
    checkpoint: &Checkpoint,
    position: usize,
    of_run: &[&Checkpoint],
    limits: &Limits,
    now: Timestamp,
) -> (bool, String) {
    let age = now.since(checkpoint.created_at);
    let (failed, passed) = match checkpoint.verdict {
        Verdict::Failed => (true, false),
        verdict => (false, verdict == Verdict::Passed),
    };
    let is_newest = |last: u32| position < last as usize;
    let rules = [
        (
            failed && limits.drop_failed,
            false,
            "failed (--drop-failed)",
        ),
        (
            passed && limits.drop_passed,
            false,
            "passed (--drop-passed)",
        ),
        (
            limits.max_age.is_some_and(|max| age > max),
            false,
            "older than --max-age",
        ),
        (limits.keep_last.is_some_and(is_newest), true, "--keep-last"),
        (
            limits.keep_within.is_some_and(|within| age <= within),
            true,
            "--keep-within",
        ),
    ];
    if let Some((_, keep, why)) = rules.into_iter().find(|(applies, ..)| *applies) {
        return (keep, why.to_owned());
    }
    let at = |c: &Checkpoint| c.created_at.datetime();
    let buckets: [(Option<u32>, &str, Bucket); 3] = [
        (limits.keep_hourly, "--keep-hourly", |c| {
            (c.year(), c.ordinal() * 24 + c.hour())
        }),
        (limits.keep_daily, "--keep-daily", |c| {
            (c.year(), c.ordinal())
        }),
        (limits.keep_weekly, "--keep-weekly", |c| {
            (c.iso_week().year(), c.iso_week().week())
        }),
    ];
    for (count, why, bucket) in buckets {
        let Some(count) = count else { continue };
        let own = bucket(&at(checkpoint));
        let newest_of_own = of_run.iter().rfind(|other| bucket(&at(other)) == own);
        let later: BTreeSet<(i32, u32)> = of_run
            .iter()
            .map(|c| bucket(&at(c)))
            .filter(|b| *b > own)
            .collect();
        if newest_of_own.is_some_and(|newest| newest.id == checkpoint.id)
            && later.len() < count as usize
        {
            return (true, why.to_owned());
        }
    }
    if limits.keeps() {
        (false, "kept by no rule".to_owned())
    } else {
        (true, "no rule removes it".to_owned())
    }
}

type Bucket = fn(&chrono::DateTime<chrono::Utc>) -> (i32, u32);

#[cfg(test)]
mod property;
