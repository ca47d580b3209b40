//! What the lane contract's records say beside their checkpoint (C3, C8, C9), and what is reported of a lane (C4, C6).
//!
//! Which commits are a run's own: what goes off a branch unasked, what nobody has to look at, what `accept` folds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::json;

use super::attempt_record::{Ending, Started, head_of};
use super::run_settings;
use super::run_settings::{is_unchecked, loops_of};
use crate::engine::base::{Context, Result};
use crate::model::checkpoint::trigger;
use crate::model::hint::join;
use crate::model::lane::{
    AFTER_START, AFTER_TESTS, BEFORE_START, LaneRecord, PRE_PR, RETRY, is_lane,
};
use crate::model::{
    AttemptOutcome, CheckKind, Checkpoint, Decision, Failure, FeedbackLoop, Head, Hint, LaneFields,
    ObjectId, Run, RunKey, State, Step, StepStatus,
};
use crate::policy::retry::resume_command;
use crate::policy::secrets::redact;
use crate::policy::text::escape;
use crate::store::views::{LaneBack, resume_hint, rollback_hint};

/// What a record says of a stage that went well.
pub(crate) const COMPLETE: &str = "complete";
/// What it says of one that did not.
pub(crate) const FAILED: &str = "failed";
/// What it says while another attempt is to come.
pub(crate) const RETRYING: &str = "retrying";
/// How many of the log's last entries a failure's context has (C8).
const LOG_ENTRIES: usize = 5;
/// How much of a log's end is examined for them.
const LOG_END: u64 = 64 << 10;
/// Characters of a log entry.
const ENTRY_LENGTH: usize = 400;
/// Entries of a failure's context; the oldest go first.
const MAX_CONTEXT: usize = 120;
/// Commits that a record lists.
const MAX_COMMITS: usize = 200;

/// Fills in what a record of a stage says anyway: the lane's base, its HEAD and commits, where it is to be merged. The
/// commits are those on its branch, which says nothing of who made them.
pub(crate) fn fill(
    context: &Context,
    state: &State,
    key: &RunKey,
    mut fields: LaneFields,
) -> LaneFields {
    let Some(reached) = fields.stage.clone() else {
        return fields;
    };
    if fields.base_branch.is_none() {
        fields.base_branch = state.lane_base(key).or_else(|| project_branch(context));
    }
    if !matches!(reached.as_str(), AFTER_TESTS | PRE_PR | RETRY) {
        return fields;
    }
    let Some((repo, head)) = context.git().zip(head_of(context)) else {
        return fields;
    };
    if fields.head_sha.is_none() {
        fields.head_sha = Some(head.0.clone());
    }
    if reached == PRE_PR && fields.target_branch.is_none() {
        fields.target_branch.clone_from(&fields.base_branch);
    }
    if fields.commit_shas.is_empty()
        && let Some(base) = base_commit(context, state, key, fields.base_branch.as_deref())
        && let Ok(commits) = repo.commits_between(Some(&base), &head)
    {
        fields.commit_shas = commits
            .into_iter()
            .take(MAX_COMMITS)
            .map(|commit| commit.0)
            .collect();
    }
    fields
}

/// The branch of the project's work tree, if this is it: what nobody named is to be merged there.
fn project_branch(context: &Context) -> Option<String> {
    let repo = context.git()?;
    let branch = repo
        .head()
        .ok()?
        .branch
        .filter(|_| repo.workdir() == repo.main_worktree())?;
    branch.strip_prefix("refs/heads/").map(str::to_owned)
}

/// Where the lane's own commits begin: at its base branch, unless it is on that itself, else where it stood at its first
/// stage.
fn base_commit(
    context: &Context,
    state: &State,
    key: &RunKey,
    base: Option<&str>,
) -> Option<ObjectId> {
    let first = || {
        let staged = state
            .checkpoints_of(key)
            .find(|checkpoint| checkpoint.lane_fields.stage.is_some());
        staged.and_then(|checkpoint| checkpoint.base_commit.clone())
    };
    let other = base.filter(|base| project_branch(context).as_deref() != Some(base));
    other
        .and_then(|base| branch_commit(context, base))
        .or_else(first)
}

/// The commit of a branch, local or of a remote; `None` where it is not there.
pub(crate) fn branch_commit(context: &Context, branch: &str) -> Option<ObjectId> {
    let repo = context.git()?;
    let names = ["refs/heads/", "refs/remotes/", "refs/remotes/origin/", ""];
    names
        .iter()
        .find_map(|prefix| repo.resolve_ref(&format!("{prefix}{branch}")))
}

/// What the checkpoint says that a lane's run begins with: the stage that was not reached yet.
pub(crate) fn of_beginning(state: &State, key: &RunKey) -> LaneFields {
    let reached = |stage: &str| {
        state
            .lane_records(key)
            .iter()
            .any(|record| record.stage == stage)
    };
    let (next, status) = match (
        is_lane(state, key),
        reached(BEFORE_START),
        reached(AFTER_START),
    ) {
        (false, ..) | (true, true, true) => return LaneFields::default(),
        (true, false, _) => (BEFORE_START, "ready"),
        (true, true, false) => (AFTER_START, "in_progress"),
    };
    LaneFields {
        stage: Some(next.to_owned()),
        status: Some(status.to_owned()),
        ..LaneFields::default()
    }
}

/// An attempt that has ended: its run, which it is, and how it ended.
type EndedAttempt<'a> = (&'a Run, &'a Started, &'a Ending);

/// What the checkpoint at an attempt's end says of its lane: that the tests were run, and what a failure leaves for the
/// next attempt (C8, C9).
pub(crate) fn of_attempt(context: &Context, state: &State, about: EndedAttempt<'_>) -> LaneFields {
    let (run, _, ending) = about;
    let outcome = ending.end.outcome;
    if outcome == AttemptOutcome::Cancelled || !is_lane(state, &run.key) {
        return LaneFields::default();
    }
    let mut fields = LaneFields::default();
    if let Some((test, code)) = tests_of(context, run, ending) {
        fields.stage = Some(AFTER_TESTS.to_owned());
        let has_passed = outcome == AttemptOutcome::Passed;
        fields.status = Some(if has_passed { COMPLETE } else { FAILED }.to_owned());
        fields.test_command = Some(test.command);
        fields.exit_code = code;
    }
    match (&ending.end.failure, outcome) {
        (Some(failure), AttemptOutcome::Failed) => {
            failed(context, state, about, failure, &mut fields);
        }
        (_, AttemptOutcome::Passed) => recovered(state, &run.key, &mut fields),
        _ => {}
    }
    fill(context, state, &run.key, fields)
}

/// The feedback loop that speaks for the tests: the one that failed, else the first that is a test, else the first.
fn tests_of(context: &Context, run: &Run, ending: &Ending) -> Option<(FeedbackLoop, Option<i32>)> {
    let loops: Vec<FeedbackLoop> = loops_of(context, run)
        .into_iter()
        .filter(|one| ending.end.feedback_results.contains_key(&one.name))
        .collect();
    let failed = ending
        .failed_loop
        .as_ref()
        .and_then(|name| loops.iter().find(|one| one.name == *name));
    let tests = failed
        .or_else(|| loops.iter().find(|one| one.kind == CheckKind::Test))
        .or(loops.first())?;
    Some((
        tests.clone(),
        ending.end.feedback_results.get(&tests.name)?.exit_code,
    ))
}

fn failed(
    context: &Context,
    state: &State,
    about: EndedAttempt<'_>,
    failure: &Failure,
    fields: &mut LaneFields,
) {
    let (run, started, ending) = about;
    let settings = run_settings::settings_of(context, run);
    let max = settings
        .retry
        .limit_for(failure.cause, failure.detail)
        .map(|attempts| attempts.saturating_sub(1));
    let before = run.charged_to(&started.subtask).count();
    let number = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
    let goes_on = ending
        .end
        .decision
        .as_ref()
        .is_some_and(Decision::leads_to_attempt);
    let status = if goes_on { RETRYING } else { FAILED };
    fields.max_retries = max;
    fields.retry_attempt =
        Some(max.map_or(number, |max| number.min(max))).filter(|number| *number > 0);
    fields.failure_context = failure_context(context, state, about, failure);
    let command = last_command(context, run, ending);
    let code = ending
        .end
        .exit_code
        .map(|code| format!(" (exit code {code})"));
    fields.notes = (!command.is_empty()).then(|| {
        format!(
            "last command: {}{}: {}",
            join(&command),
            code.filter(|_| ending.failed_loop.is_none())
                .unwrap_or_default(),
            failure.message
        )
    });
    fields.retry_status = Some(status.to_owned());
    if fields.stage.is_none() {
        fields.stage = Some(RETRY.to_owned());
        fields.status = Some(status.to_owned());
    }
}

/// The attempt that passed is what the lane was retrying for.
fn recovered(state: &State, key: &RunKey, fields: &mut LaneFields) {
    let records = state.lane_records(key);
    let retried = records
        .iter()
        .find(|record| record.stage == RETRY && record.status == Some(RETRYING));
    let Some(before) = retried
        .and_then(LaneRecord::checkpoint)
        .map(|checkpoint| &checkpoint.lane_fields)
    else {
        return;
    };
    (fields.max_retries, fields.retry_attempt) = (before.max_retries, before.retry_attempt);
    fields.failure_context.clone_from(&before.failure_context);
    fields.retry_status = Some(COMPLETE.to_owned());
    if fields.stage.is_none() {
        (fields.stage, fields.status) = (Some(RETRY.to_owned()), Some(COMPLETE.to_owned()));
    }
}

/// The command that was attempted last.
fn last_command(context: &Context, run: &Run, ending: &Ending) -> Vec<String> {
    let failed = ending.failed_loop.as_ref();
    let found = failed.and_then(|name| {
        loops_of(context, run)
            .into_iter()
            .find(|one| one.name == *name)
    });
    found.map_or_else(
        || run.spec.command.clone(),
        |feedback| vec!["sh".into(), "-c".into(), feedback.command],
    )
}

/// The errors of the attempts so far, each with the last entries of its log.
fn failure_context(
    context: &Context,
    state: &State,
    about: EndedAttempt<'_>,
    failure: &Failure,
) -> Vec<String> {
    let (run, started, ending) = about;
    let last = last_attempt(state, &run.key);
    let same = last.filter(|checkpoint| checkpoint.after_iteration == started.iteration);
    let mut all = same
        .filter(|checkpoint| has_failed(checkpoint))
        .map(|checkpoint| checkpoint.lane_fields.failure_context.clone())
        .unwrap_or_default();
    all.push(redact(&format!("Attempt {}: {}", started.attempt, failure.message)).into_owned());
    let log = ending.end.log_path.as_ref().map(PathBuf::from);
    // The command's first: what a check says comes after what was done, and neither means much without the other.
    let check = ending.failed_loop.as_ref().zip(log.as_ref());
    let of_check = check.map(|(name, log)| log.with_file_name(run_settings::log_name(name, "")));
    if log.is_none() {
        all.extend(entries(&ending.log_end));
    }
    let logs = log.iter().chain(&of_check);
    all.extend(logs.flat_map(|log| end_of(context, log)));
    let surplus = all.len().saturating_sub(MAX_CONTEXT);
    all.drain(..surplus);
    all
}

/// Whether the attempt that it was taken after failed.
fn has_failed(checkpoint: &Checkpoint) -> bool {
    checkpoint.lane_fields.retry_status.as_deref() != Some(COMPLETE)
}

/// The last entries of a log.
fn end_of(context: &Context, log: &Path) -> Vec<String> {
    match context.read_end(log, LOG_END) {
        Ok((bytes, _)) => entries(&String::from_utf8_lossy(&bytes)),
        Err(error) => {
            tracing::debug!(%error, log = %log.display(), "the log's last entries are not known");
            Vec::new()
        }
    }
}

/// The last lines that say something.
fn entries(log: &str) -> Vec<String> {
    // A private key has many lines.
    let log = redact(log);
    let lines: Vec<&str> = log
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LOG_ENTRIES)..];
    last.iter()
        .map(|line| escape(line).chars().take(ENTRY_LENGTH).collect())
        .collect()
}

/// What the latest failed attempt of a lane left for the next one.
pub(crate) fn context_for_runner(state: &State, key: &RunKey) -> Vec<String> {
    let failed = last_attempt(state, key).filter(|checkpoint| has_failed(checkpoint));
    failed
        .map(|checkpoint| checkpoint.lane_fields.failure_context.clone())
        .unwrap_or_default()
}

/// The checkpoint that was taken last at an attempt's end.
fn last_attempt<'a>(state: &'a State, key: &RunKey) -> Option<&'a Checkpoint> {
    let mut all = state.checkpoints_of(key);
    all.rfind(|checkpoint| checkpoint.trigger == trigger::ATTEMPT)
}

/// Commands to copy, which work from any folder.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Hints {
    pub resume_hint: Hint,
    /// Of a lane: back to its beginning, else to its safest prior stage, else to its first checkpoint.
    pub rollback_hint: Hint,
}

impl Hints {
    /// The lane's own, where the run is one.
    pub(crate) fn of(context: &Context, run: &Run, lane: Option<&LaneStanding>) -> Self {
        let command = |words: &[&str]| context.placed(Hint::recover(words).run(&run.key));
        lane.map_or_else(
            || Self {
                resume_hint: command(&resume_command(run, is_unchecked(context, run))),
                rollback_hint: command(&["rollback", "--full"]),
            },
            |lane| lane.hints.clone(),
        )
    }
}

/// The stage of a lane; both are `null` for a run that is none.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Stage {
    #[schemars(transform = nullable)]
    pub current_stage: Option<String>,
    /// The file of its records.
    #[schemars(transform = nullable)]
    pub checkpoint_path: Option<String>,
}

/// What else there is to report of a lane.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct LaneDetails {
    #[schemars(transform = nullable)]
    pub stage_status: Option<String>,
    /// Commands that go on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub next_actions: Option<Vec<Hint>>,
    /// Steps that are done and are not run again.
    pub skipped_steps: Vec<String>,
}

/// A text or `null`, also where its group may be left out.
fn nullable(schema: &mut Schema) {
    schema.remove("type");
    schema.insert(
        "anyOf".to_owned(),
        json!([{"type": "string"}, {"type": "null"}]),
    );
}

/// The state of a lane, and the commands that resume it and roll it back (C6).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct LaneStanding {
    #[serde(flatten)]
    pub stage: Stage,
    #[serde(flatten)]
    pub details: LaneDetails,
    #[serde(skip)]
    pub hints: Hints,
    /// The stage that it would be rolled back to; `None` where there is none.
    #[serde(skip)]
    pub back_to: Option<String>,
}

/// What there is to say of a lane; `None` for a run that is none.
pub(crate) fn standing(context: &Context, state: &State, key: &RunKey) -> Option<LaneStanding> {
    let (run, store) = (state.run(key)?, context.store());
    let record = state.lane_stands(key)?;
    let resume_hint = resume_hint(run, store);
    let mut left: Vec<&Step> = run.steps.iter().filter(|step| is_left(key, step)).collect();
    left.sort_by_key(|step| step.first_seq);
    let mut next_actions: Vec<Hint> = left
        .into_iter()
        .map(|step| again(context, key, step))
        .collect();
    if next_actions.is_empty() || !run.spec.command.is_empty() {
        next_actions.push(resume_hint.clone());
    }
    let done = run
        .steps
        .iter()
        .filter(|step| step.status == StepStatus::Done && !step.runs_again(key));
    Some(LaneStanding {
        stage: Stage {
            current_stage: Some(record.stage.to_owned()),
            checkpoint_path: Some(store.lane_file().to_string_lossy().into_owned()),
        },
        details: LaneDetails {
            stage_status: record.status.map(str::to_owned),
            next_actions: Some(next_actions),
            skipped_steps: done.map(|step| step.start.name.clone()).collect(),
        },
        hints: Hints {
            resume_hint,
            rollback_hint: rollback_hint(state, run, store),
        },
        back_to: LaneBack::of(state, key).map(|back| match back {
            LaneBack::Beginning => BEFORE_START.to_owned(),
            LaneBack::Stage(name) => name,
            LaneBack::Initial => "its first checkpoint".to_owned(),
        }),
    })
}

/// Whether a step was begun and has to be run again.
fn is_left(key: &RunKey, step: &Step) -> bool {
    matches!(
        step.status,
        StepStatus::Failed | StepStatus::CutOff | StepStatus::Compensated
    ) || step.runs_again(key)
}

/// The command that runs a step again, as it is recorded.
fn again(context: &Context, key: &RunKey, step: &Step) -> Hint {
    let place = context.place_of(step.start.cwd.path());
    let words = ["step", step.start.name.as_str()];
    Hint::recover(words).run(key).at(place)
}

/// The commits that the attempts and steps of a run made, and of a lane in its work tree: all that its branch has beyond the
/// base branch, and what came between two of its steps, whatever of the lane's made them.
#[derive(Debug, Default)]
pub(crate) struct OwnCommits<'a> {
    run: Option<&'a Run>,
    of_lane: BTreeSet<ObjectId>,
}

impl<'a> OwnCommits<'a> {
    /// Those of `run`, where HEAD is `now`.
    pub(crate) fn of(
        context: &Context,
        state: &State,
        run: Option<&'a Run>,
        now: &Head,
    ) -> Result<Self> {
        let mut own = Self {
            run,
            of_lane: BTreeSet::new(),
        };
        let here = run.filter(|run| context.has_git() && run.worktree == context.worktree_id());
        let Some(run) = here.filter(|run| is_lane(state, &run.key)) else {
            return Ok(own);
        };
        own.of_lane = between_steps(context, state, run)?;
        let branch = now
            .branch
            .as_deref()
            .and_then(|branch| branch.strip_prefix("refs/heads/"));
        let base = state
            .lane_base(&run.key)
            .filter(|base| branch.is_some_and(|branch| branch != base));
        let base = base.and_then(|base| branch_commit(context, &base));
        if let (Some(base), Some(current)) = (base, &now.commit) {
            own.of_lane
                .extend(context.repo()?.commits_between(Some(&base), current)?);
        }
        Ok(own)
    }

    /// Whether this is one of them.
    pub(crate) fn has(&self, commit: &ObjectId) -> bool {
        self.of_lane.contains(commit)
            || self.run.is_some_and(|run| run.own_commits.contains(commit))
    }
}

/// The commits on top of which the next step of a lane began, without those of other runs.
fn between_steps(context: &Context, state: &State, run: &Run) -> Result<BTreeSet<ObjectId>> {
    let mut begun: Vec<&Step> = run
        .steps
        .iter()
        .filter(|step| step.start.worktree == run.worktree)
        .collect();
    begun.sort_by_key(|step| step.started_at);
    let mut heads: Vec<&ObjectId> = begun
        .iter()
        .filter_map(|step| step.start.head.as_ref())
        .collect();
    heads.dedup();
    let is_others = |commit: &ObjectId| {
        state
            .runs
            .iter()
            .any(|other| other.key != run.key && other.own_commits.contains(commit))
    };
    let repo = context.repo()?;
    let mut found = BTreeSet::new();
    for pair in heads.windows(2) {
        // One that was taken off since, or was left for another branch, is no way from one step to the next.
        let is_way = repo.is_ancestor(pair[0], pair[1]);
        if is_way
            .inspect_err(|error| tracing::debug!(%error, "a step's commit is gone"))
            .unwrap_or(false)
        {
            found.extend(
                repo.commits_between(Some(pair[0]), pair[1])?
                    .into_iter()
                    .filter(|one| !is_others(one)),
            );
        }
    }
    Ok(found)
}
