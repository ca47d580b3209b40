//! The state of a run: in one line, in the report that an attempt's end calls for, and what its budgets allow now.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::given_up;
use super::look_at::{Rewritten, new_secrets, rewritten};
use super::of_runs::{first_to_accept, latest_left, left_before};
use super::preconditions::reconsider;
use crate::engine::base::runs::{self, driver};
use crate::engine::base::{Context, Result};
use crate::engine::record::attempt_record::Ended;
use crate::engine::record::lane::OwnCommits;
use crate::engine::record::limits::Hold;
use crate::engine::record::liveness;
use crate::engine::record::run_settings::{is_unchecked, loops_of, settings_of};
use crate::engine::record::stored::{load_both, outputs_of, own_work_back};
use crate::git::Repo;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::tree::{Objects, TreeLookup};
use crate::model::decision::BudgetScope;
use crate::model::{
    Action, Change, Checkpoint, CheckpointId, Entry, EntryKind, Hint, Named, ObjectId,
    OperationKind, RepoPath, Run, RunKey, RunStatus, Standing, State, Timestamp, Verdict,
};
use crate::policy::report::{
    Around, AttemptChanges, ChangedFiles, LeftInTree, LookAtKind, Night, Outside, Report, Source,
    Span, Stuck, ToLookAt, is_over, markdown, report, spans,
};
use crate::policy::restore::Selection;
use crate::policy::retry::{
    Item, Outlook, RetryStatus, ToAccept, is_from_the_future, item_status, retry_status,
};
use crate::policy::secrets::{is_secret_path, redact};
use crate::store::views::attempt_history_of;

/// Over so many files no line is counted: everyone of them would be read.
const LINES_OF: usize = 5_000;

/// This many commits from outside are read, the newest; the rest is counted.
const OUTSIDE_OF: usize = 100;

/// What came of a run; `None` where it has no attempts. What cannot be found out is left out.
pub(in crate::engine) fn night(context: &Context, state: &State, run: &Run) -> Option<Night> {
    if run.iterations.count_attempts() == 0 {
        return None;
    }
    let unknown =
        |error: &_| tracing::debug!(%error, run = %run.key, "a part of the summary is unknown");
    let changed = changed(context, state, run)
        .inspect_err(unknown)
        .ok()
        .flatten();
    let supervisor = driver(context.store(), run).filter(|driver| !driver.is_own());
    let goes_on = run.live.is_some() || supervisor.is_some();
    let mut outside = outside(context, state, run)
        .inspect_err(unknown)
        .unwrap_or_default();
    let latest = state
        .latest(&run.key)
        .map(|latest| latest.skipped.clone())
        .unwrap_or_default();
    outside.to_look_at.extend(left_behind(context, run));
    outside.to_look_at.extend(ToLookAt::left_out(&latest));
    let lost = lost_work(context, state, run)
        .inspect_err(unknown)
        .unwrap_or_default();
    outside.to_look_at.extend(lost.secrets);
    let in_the_way = outside.in_the_way;
    let around = Around {
        outside,
        files: changed.map(|changed| changed.files),
        now: goes_on.then(|| context.clock.now()),
        waits: goes_on
            && run.live.is_none()
            && waits_until(run).is_some_and(|until| until > context.clock.now()),
        uncommitted: lost.to_look_at,
        left: left_in_tree(context, state, run)
            .inspect_err(unknown)
            .ok()
            .flatten()
            .filter(|_| !goes_on),
    };
    let mut night = Night::new(run, around);
    for one in &mut night.to_look_at {
        given_up::name_work(context, state, run, one);
    }
    let is_taken_back = |one: &ToLookAt| one.kind == LookAtKind::TakenBack;
    // There is nothing to commit of what went with another run.
    let changed = changed.filter(|_| !in_the_way && !night.to_look_at.iter().any(is_taken_back));
    night.to_accept = to_accept(context, run, changed);
    let can_keep =
        context.has_git() && !goes_on && changed.is_some_and(|changed| changed.files.changed > 0);
    let outlook = outlook(context, state, run, Some(&night));
    night.go_on(run, outlook, can_keep, &|words| match lost.accept_first {
        // What it built upon comes first.
        Some(first) if words == ["accept"] => accept_of(context, first),
        _ => context.hint_about(run, words),
    });
    Some(night)
}

/// The command that accepts a run, in any folder.
fn accept_of(context: &Context, run: &Run) -> Hint {
    context.placed(Hint::recover(["accept", run.key.run_id.as_str()]))
}

/// When the next attempt is allowed, where that is known.
pub(in crate::engine) fn waits_until(run: &Run) -> Option<Timestamp> {
    let parked = run.parked.as_ref().map(|parked| parked.until);
    parked.or(run.cooldown_until)
}

/// What there is to know for the way on that the record of a run does not say.
pub(in crate::engine) fn outlook(
    context: &Context,
    state: &State,
    run: &Run,
    night: Option<&Night>,
) -> Outlook {
    // At the end of its own work a supervisor says what comes after that.
    let at_work = driver(context.store(), run).is_some_and(|driver| !driver.is_own());
    let shares = run.task_id.is_some() || run.spec.repeats.is_some();
    let may_lack_attempts = shares && run.decision.is_none();
    let task_spent = may_lack_attempts
        && run_retry_status(context, state, run)
            .decision
            .is_some_and(|stop| stop.stopped_by == Some(BudgetScope::Task));
    let to_accept = night.map(|night| night.to_accept).unwrap_or_default();
    Outlook {
        to_accept,
        at_work,
        task_spent,
        unchecked: is_unchecked(context, run),
    }
}

/// What a person can take of what the run made, where it did all that it was to do, or all but what it gave up.
fn to_accept(context: &Context, run: &Run, changed: Option<Changed>) -> ToAccept {
    match changed.filter(|changed| is_over(run) && context.has_git() && changed.files.changed > 0) {
        // What it committed itself is known to git.
        Some(_) if !run.own_commits.is_empty() => ToAccept::Changes,
        Some(changed) => changed.uncommitted,
        None => ToAccept::Nothing,
    }
}

/// Commits since the run began that are none of its own, newest first; none where its work tree is another one, or HEAD left its
/// branch, and none of a run that a person is done with.
fn outside(context: &Context, state: &State, run: &Run) -> Result<Outside> {
    let is_over = run.status.has_ended() && run.status != RunStatus::Complete;
    // What an attempt commits is known to be its own once it ended.
    if is_over || run.live.is_some() || !context.has_git() || run.worktree != context.worktree_id()
    {
        return Ok(Outside::default());
    }
    let Some(initial) = state.initial(&run.key).and_then(Named::kept) else {
        return Ok(Outside::default());
    };
    let (repo, begun) = (context.repo()?, initial.base_commit.as_ref());
    let now = repo.head()?;
    let Some(head) = &now.commit else {
        return Ok(Outside::default());
    };
    let own = OwnCommits::of(context, state, Some(run), &now)?;
    if let Some(begun) = begun
        && !repo.is_ancestor(begun, head)?
    {
        let rewritten = rewritten((context, state), (run, &own), Some(begun), &now)?;
        return Ok(Outside {
            to_look_at: rewritten.iter().map(Rewritten::to_look_at).collect(),
            in_the_way: rewritten.is_some_and(|one| !one.is_own),
            ..Outside::default()
        });
    }
    outside_of((context, state), &own, &repo.commits_between(begun, head)?)
}

/// Those of these commits, newest first, that are none of the run's own, and none that a person accepted another run as.
pub(in crate::engine) fn outside_of(
    (context, state): (&Context, &State),
    own: &OwnCommits<'_>,
    commits: &[ObjectId],
) -> Result<Outside> {
    let accepted: Vec<&Run> = state.runs.iter().filter(|run| run.was_accepted()).collect();
    let is_accepted =
        |commit: &ObjectId| accepted.iter().any(|run| run.own_commits.contains(commit));
    let others: Vec<&ObjectId> = commits
        .iter()
        .filter(|commit| !own.has(commit) && !is_accepted(commit))
        .collect();
    let (read, counted) = others.split_at(others.len().min(OUTSIDE_OF));
    let told = |commit: &&ObjectId| {
        Ok(ToLookAt::commit(
            (*commit).clone(),
            &context.repo()?.about_commit(commit)?.1,
        ))
    };
    let mut to_look_at = read.iter().map(told).collect::<Result<Vec<_>>>()?;
    to_look_at.extend(ToLookAt::earlier_commits(counted.len()));
    Ok(Outside {
        commits: others.len(),
        to_look_at,
        in_the_way: false,
    })
}

/// What rollbacks of a run could not remove or replace and is still there; `None` once the run was accepted or closed.
fn left_behind(context: &Context, run: &Run) -> Option<ToLookAt> {
    let is_decided = matches!(run.status, RunStatus::Accepted | RunStatus::Closed);
    if is_decided || run.worktree != context.worktree_id() {
        return None;
    }
    let is_there = |path: &&RepoPath| path.below(context.worktree()).symlink_metadata().is_ok();
    // A folder is left for what is left in it.
    let holds_others = |path: &RepoPath| {
        let mut all = run.left_behind.iter().map(|left| &left.path);
        all.any(|other| other != path && other.starts_with(path))
    };
    let paths = run.left_behind.iter().map(|left| &left.path);
    let paths = paths.filter(|path| !holds_others(path));
    ToLookAt::left_behind(&paths.filter(is_there).collect())
}

/// That what a run did went with an earlier one, which was discarded or rolled back since.
pub(in crate::engine) fn taken_back(
    context: &Context,
    state: &State,
    run: &Run,
) -> Option<ToLookAt> {
    let (first, good) = first_and_good(state, run)?;
    let undo = &state.worktrees.get(&run.worktree)?.undo;
    let seq = |id: &CheckpointId| state.checkpoint(id).map(|one| one.seq);
    // Accepting changes no files.
    let whole = undo.iter().rev().filter(|entry| {
        let is_whole = entry.scope.covers_files() && entry.paths.is_empty();
        is_whole && entry.kind != OperationKind::Accept
    });
    // The last that went back or forth over it.
    let last = whole
        .filter(|entry| seq(&entry.checkpoint_id) > Some(good.seq))
        .find_map(|entry| Some((entry, seq(entry.restored.as_ref()?)?)));
    let (entry, restored) = last?;
    let other = entry.run.as_ref().filter(|other| **other != run.key)?;
    let back = context.placed(Hint::recover(["undo"]));
    let close = Hint::recover(["close"]).run(&run.key);
    (restored < first.seq).then(|| ToLookAt::taken_back(other, back, &close))
}

/// What was uncommitted before a run, and is not as it was.
#[derive(Default)]
struct LostWork<'s> {
    /// What of it a person must look at.
    to_look_at: Vec<ToLookAt>,
    /// What looks like a secret and would be committed.
    secrets: Option<ToLookAt>,
    /// The run to accept first, where it is the work of one.
    accept_first: Option<&'s Run>,
}

/// What of a person's own work, or of other runs' that is not accepted, a run changed; nothing once that was decided.
fn lost_work<'s>(context: &Context, state: &'s State, run: &Run) -> Result<LostWork<'s>> {
    let is_decided =
        matches!(run.status, RunStatus::Accepted | RunStatus::Closed) || run.live.is_some();
    let Some((first, good)) = first_and_good(state, run).filter(|_| !is_decided) else {
        return Ok(LostWork::default());
    };
    if !context.has_git() || run.worktree != context.worktree_id() || first.tree == good.tree {
        return Ok(LostWork::default());
    }
    if let Some(taken) = taken_back(context, state, run) {
        return Ok(LostWork {
            to_look_at: vec![taken],
            ..LostWork::default()
        });
    }
    let (initial, good) = load_both(context, first, good)?;
    let repo = context.repo()?;
    let mut work = changed_work(context, &initial, &good, true)?;
    let head = repo.head()?.commit;
    if head
        .as_ref()
        .is_none_or(|head| !run.own_commits.contains(head))
    {
        // What was committed since is as the run found it.
        work = repo.unlike_stored(&initial, head.as_ref(), &work, true)?;
    }
    let mut lost = repo.unlike_on_disk(&initial, &work)?;
    let of_runs = left_before((context, state), run, &initial, &lost)?;
    for (_, paths) in &of_runs {
        lost = &lost - paths;
    }
    let accept_first = first_to_accept((context, state), &of_runs)?;
    let back = context.placed(own_work_back(&run.key, &lost));
    let own = ToLookAt::uncommitted(&lost, back);
    let secrets = new_secrets(context, (&initial, &good), |_| true)?;
    let of_run = |(other, paths): &(&Run, BTreeSet<RepoPath>)| {
        let both = Hint::recover(["accept", "--uncommitted", "replace"]).run(&run.key);
        let (command, what) = accept_first.map_or_else(
            || (context.placed(both), " commits both"),
            |first| (accept_of(context, first), " commits that first"),
        );
        ToLookAt::of_run(&other.key, paths, command, what)
    };
    Ok(LostWork {
        to_look_at: own.into_iter().chain(of_runs.iter().map(of_run)).collect(),
        secrets: ToLookAt::secrets(&secrets),
        accept_first,
    })
}

/// What attempts that failed left in the work tree since the last good checkpoint, or since the run began; `None` while it may
/// go on by itself, once a person decided on it, and where all of it was changed since.
fn left_in_tree(context: &Context, state: &State, run: &Run) -> Result<Option<LeftInTree>> {
    use RunStatus::{Blocked, Cancelled, Complete, Escalated, Failed};
    let is_over = matches!(
        run.status,
        Blocked | Cancelled | Complete | Escalated | Failed
    );
    let good = first_and_good(state, run).map(|(_, good)| good);
    let known = good.or_else(|| state.initial(&run.key).and_then(Named::kept));
    let (Some(known), Some(latest)) = (known, latest_left(state, run)) else {
        return Ok(None);
    };
    let is_here = context.has_git() && run.worktree == context.worktree_id();
    if !is_over || !is_here || latest.seq <= known.seq || latest.tree == known.tree {
        return Ok(None);
    }
    let repo = context.repo()?;
    let (before, after) = load_both(context, known, latest)?;
    let changes = changes_between(repo, &before, &after)?;
    let paths = changes.into_iter().map(|change| change.path).collect();
    // What is there only in `after` is new.
    let there = &paths - &repo.unlike_on_disk(&after, &paths)?;
    Ok((!there.is_empty()).then_some(LeftInTree {
        iteration: latest.after_iteration,
        files: there.len(),
    }))
}

/// What was uncommitted when a run began, and is otherwise in its last good checkpoint.
pub(in crate::engine) fn changed_work(
    context: &Context,
    initial: &StoredCheckpoint,
    good: &StoredCheckpoint,
    is_rehearsal: bool,
) -> Result<BTreeSet<RepoPath>> {
    let repo = context.repo()?;
    let is_output = outputs_of(initial, good);
    let (one, other) = TreeLookup::stored(repo)?.diff(initial.view(), good.view())?;
    let is_file = |entry: Option<&Entry>| entry.is_some_and(Entry::is_file);
    // What a sparse checkout, or a checkpoint, leaves out was not deleted.
    let extras = &initial.manifest.index_extras;
    let sparse: BTreeSet<&RepoPath> = extras
        .iter()
        .filter(|one| one.skip_worktree)
        .map(|one| &one.path)
        .collect();
    let skipped = &initial.manifest.skipped;
    let is_left_out = |path: &RepoPath| {
        sparse.contains(path) || skipped.iter().any(|one| path.starts_with(&one.path))
    };
    let work = one.unlike(&other).filter(|(path, was, is)| {
        let may_be_deleted = was.is_none() && is_file(*is) && !is_left_out(path);
        (is_file(*was) || may_be_deleted) && !is_output(path)
    });
    let changed: BTreeSet<RepoPath> = work.map(|(path, ..)| path.clone()).collect();
    Ok(repo.uncommitted_at(initial, &changed, is_rehearsal)?)
}

/// The checkpoint that a run began with, and its last good one, where it has both.
fn first_and_good<'s>(state: &'s State, run: &Run) -> Option<(&'s Checkpoint, &'s Checkpoint)> {
    let good = state.last_good(&run.key)?;
    let first = state.initial(&run.key).and_then(Named::kept)?;
    (good.verdict == Verdict::Passed).then_some((first, good))
}

/// What a run changed.
#[derive(Clone, Copy, Debug)]
struct Changed {
    files: ChangedFiles,
    /// What there is to accept, where the run committed nothing itself.
    uncommitted: ToAccept,
}

/// How much a run changed, from its first to its last good checkpoint; `None` where that cannot be found out.
pub(in crate::engine) fn changed_files(
    context: &Context,
    state: &State,
    run: &Run,
) -> Option<ChangedFiles> {
    let changed = changed(context, state, run);
    let changed = changed
        .inspect_err(|error| tracing::debug!(%error, run = %run.key, "its files are unknown"));
    Some(changed.ok()??.files)
}

/// The files that a run changed, from its first to its last good checkpoint, and what recover itself printed aside; none where
/// it has no good one.
pub(in crate::engine) fn changes_of(
    context: &Context,
    state: &State,
    run: &Run,
) -> Result<Vec<Change>> {
    let Some((first, good)) = first_and_good(state, run) else {
        return Ok(Vec::new());
    };
    let (before, after) = load_both(context, first, good)?;
    changes_between(context.repo()?, &before, &after)
}

fn changes_between(
    repo: &Repo,
    before: &StoredCheckpoint,
    after: &StoredCheckpoint,
) -> Result<Vec<Change>> {
    let is_output = outputs_of(before, after);
    let mut changes =
        Objects::stored(repo).changes(before.view(), after.view(), &Selection::all())?;
    changes.retain(|change| !is_output(&change.path));
    Ok(changes)
}

/// What differs between the run's first and its last good checkpoint, without what recover itself printed.
fn changed(context: &Context, state: &State, run: &Run) -> Result<Option<Changed>> {
    let Some((first, good)) = first_and_good(state, run) else {
        return Ok(None);
    };
    if first.id == good.id || first.tree == good.tree {
        let files = ChangedFiles {
            changed: 0,
            added: Some(0),
            deleted: Some(0),
        };
        return Ok(Some(Changed {
            files,
            uncommitted: ToAccept::Nothing,
        }));
    }
    let repo = context.repo()?;
    let (before, after) = load_both(context, first, good)?;
    let is_output = outputs_of(&before, &after);
    let (one, other) = TreeLookup::stored(repo)?.diff(before.view(), after.view())?;
    let mut unlike = 0;
    let mut uncommitted = ToAccept::Nothing;
    for (path, was, is) in one.unlike(&other).filter(|(path, ..)| !is_output(path)) {
        unlike += 1;
        let is_file =
            |entry: Option<&Entry>| entry.is_some_and(|entry| entry.kind != EntryKind::EmptyDir);
        if is_file(was) || (is_file(is) && !is_secret_path(path)) {
            uncommitted = ToAccept::Changes;
        }
    }
    let mut files = ChangedFiles {
        changed: unlike,
        added: None,
        deleted: None,
    };
    if unlike <= LINES_OF {
        let changes = changes_between(repo, &before, &after)?;
        files.changed = changes.len();
        files.added = Some(changes.iter().filter_map(|change| change.added).sum());
        files.deleted = Some(changes.iter().filter_map(|change| change.deleted).sum());
    }
    Ok(Some(Changed { files, uncommitted }))
}

/// The name of the report beside a run's logs.
const FILE: &str = "report.md";

pub(in crate::engine) fn make_report(
    context: &Context,
    state: &State,
    run: &Run,
    subtask: Option<&str>,
) -> Result<Report> {
    let mut run = run.clone();
    reconsider(context, &mut run);
    let run = &run;
    let events = context.store().events_of(&run.key)?;
    let now = context.clock.now();
    let stuck = attempt_history_of(state, run)
        .stuck_subtasks
        .into_iter()
        .map(|stuck| Stuck {
            subtask_id: stuck.subtask_id.to_owned(),
            reason: stuck.reason.to_owned(),
            escalated_at: stuck.escalated_at,
            attempt_count: stuck.attempt_count,
        });
    let night = night(context, state, run);
    Ok(report(&Source {
        state,
        run,
        events: &events,
        retry: &run_retry_status(context, state, run),
        loops: &loops_of(context, run),
        stuck: &stuck.collect::<Vec<_>>(),
        night: night.as_ref(),
        outlook: outlook(context, state, run, night.as_ref()),
        unfinished: liveness::unfinished_operation(context)?.as_deref(),
        changes: &attempt_changes(context, state, &spans(state, &events)),
        subtask,
        command: &|words| context.hint_about(run, words).to_string(),
        now,
    }))
}

/// What attempts changed. A checkpoint that cannot be read is no reason for having no report.
fn attempt_changes(context: &Context, state: &State, spans: &[Span]) -> Vec<AttemptChanges> {
    let unknown =
        |error: &_| tracing::warn!(%error, "the report does not know what an attempt changed");
    let compared = |span| compare(context, state, span).inspect_err(unknown).ok()?;
    spans.iter().filter_map(compared).collect()
}

fn compare(context: &Context, state: &State, span: &Span) -> Result<Option<AttemptChanges>> {
    let (Some(from), Some(to)) = (state.checkpoint(&span.from), state.checkpoint(&span.to)) else {
        return Ok(None);
    };
    let (before, after) = load_both(context, from, to)?;
    let objects = Objects::stored(context.repo()?);
    let changes = objects.changes(before.view(), after.view(), &Selection::all())?;
    let attempt = span.attempt;
    Ok(Some(AttemptChanges { attempt, changes }))
}

/// Keeps the report where a person is to hear of how an attempt ended.
pub(crate) fn report_after(context: &Context, key: &RunKey, ended: Ended) -> Ended {
    let decision = ended.end.decision.as_ref();
    let escalates = decision.filter(|decision| decision.has(Action::Escalate));
    Ended {
        report: escalates.and_then(|_| write_report(context, key)),
        ..ended
    }
}

/// Keeps the report beside the run's logs and says where. Whatever goes wrong with it changes nothing but that.
pub(crate) fn write_report(context: &Context, key: &RunKey) -> Option<PathBuf> {
    let kept = try_write_report(context, key);
    kept.inspect_err(|error| tracing::warn!(%error, run = %key, "the report was not written"))
        .ok()
}

fn try_write_report(context: &Context, key: &RunKey) -> Result<PathBuf> {
    let state = context.load()?.state;
    let run = runs::named(&state, &key.run_id, Some(&key.phase), Some(&key.lane))?;
    let text = markdown(&make_report(context, &state, run, None)?);
    let text = redact(&text);
    let path = context.store().run_dir(key).join(FILE);
    context.write_state_file(&path, text.as_bytes())?;
    Ok(path)
}

/// Where a run stands with its budgets now.
pub(crate) fn run_retry_status(context: &Context, state: &State, run: &Run) -> RetryStatus {
    let now = context.clock.now();
    let settings = settings_of(context, run);
    retry_status(
        state,
        run,
        &settings.retry,
        now,
        decision_seen(context, run),
    )
}

/// Where attempts of an item stand now, in the run as it finds it.
pub(crate) fn item_retry_status(
    context: &Context,
    state: &State,
    seen: &Run,
    item: &Item,
) -> RetryStatus {
    let moment = (context.clock.now(), decision_seen(context, seen));
    let settings = settings_of(context, seen);
    item_status(state, seen, &settings.retry, moment, &item.subtask)
}

/// When it was first noticed that the run's decision was made in the future, where it was.
pub(crate) fn decision_seen(context: &Context, run: &Run) -> Option<Timestamp> {
    let now = context.clock.now();
    let strange = run
        .decision
        .as_ref()
        .filter(|decision| is_from_the_future(decision, now));
    strange.map(|decision| first_seen(context, decision.decided_at, now))
}

/// When a user first noticed that what was decided at `decided_at` was decided in the future: who asks again and again
/// must not wait from then on each time. Where that cannot be noted, it is now.
fn first_seen(context: &Context, decided_at: Timestamp, now: Timestamp) -> Timestamp {
    let root = context.store().root();
    let path = context.store().private_dir().join("clock-set-back.json");
    let text = root.read(&path).unwrap_or_default();
    let mut seen: BTreeMap<Timestamp, Timestamp> =
        serde_json::from_slice(&text).unwrap_or_default();
    if let Some(at) = seen.get(&decided_at).filter(|at| **at <= now) {
        return *at;
    }
    tracing::warn!(
        "the clock was set back: the wait that was decided at {decided_at} starts over now"
    );
    seen.retain(|decided, _| *decided > now);
    seen.insert(decided_at, now);
    if let Ok(noted) = serde_json::to_vec(&seen) {
        context.write_note(&path, &noted);
    }
    now
}

/// A run and how it stands.
#[derive(Debug)]
pub(crate) struct Retry {
    /// The run; `None` where nothing has been recorded.
    pub run: Option<Run>,
    /// The run as the item finds it that was asked about, where one was.
    pub seen: Option<Run>,
    /// How it stands.
    pub status: Option<RetryStatus>,
    /// What is allowed.
    pub standing: Standing,
    /// The limit where no failure names its own.
    pub max_attempts: u32,
    /// The `recover` that makes an attempt of it now, by its process id: no other one is allowed meanwhile.
    pub under_way: Option<u32>,
    /// Whether a `recover` drives the run, and begins the next attempt by itself.
    pub is_driven: bool,
    /// The limit that another run met, and that holds the next attempt of this one.
    pub limit: Option<Hold>,
}

impl Retry {
    /// The run as what was asked about finds it.
    pub(crate) fn at(&self) -> Option<&Run> {
        self.seen.as_ref().or(self.run.as_ref())
    }

    /// Whether an attempt is allowed now.
    pub(crate) fn is_allowed(&self) -> bool {
        self.standing == Standing::Allowed && self.under_way.is_none()
    }

    /// Whether a run that `recover` started waits, and no `recover` is there to go on when the wait is over.
    pub(crate) fn is_abandoned(&self) -> bool {
        let is_supervised = |run: &Run| !run.spec.command.is_empty();
        matches!(self.standing, Standing::Wait(_))
            && !self.is_driven
            && self.run.as_ref().is_some_and(is_supervised)
    }
}
