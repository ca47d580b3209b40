//! What accepting a run commits, and what it refuses.

use std::collections::BTreeSet;
use std::path::Path;

use super::base::{began_at, begun_at, commits_since, fold, since_rewritten};
use super::choice::{Choice, Chooser, IGNORED, OUTPUT, UNCOMMITTED};
use super::{AcceptResult, EMPTY_TREE, Request, Uncommitted, reasons};
use crate::engine::attempt::look_at::{new_secrets, rewritten};
use crate::engine::attempt::of_runs::{first_to_accept, left_before, left_since};
use crate::engine::attempt::run_summary::{changed_work, outside_of, taken_back};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint;
use crate::engine::record::git_state::abort_of;
use crate::engine::record::lane::OwnCommits;
use crate::engine::record::stored::{self, own_work_back, words_back};
use crate::git::Repo;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::program::CommitJournal;
use crate::git::repo::CheckpointRef;
use crate::git::tree::TreeLookup;
use crate::model::checkpoint::trigger;
use crate::model::{
    Checkpoint, CheckpointId, Entry, EntryKind, Head, Hint, IterationStatus, Named, ObjectId,
    PathReason, RepoPath, Run, State, Verdict,
};
use crate::policy::report::commit_message::{Subject, message};
use crate::policy::report::{ToLookAt, to_look_at as to_look_at_in, unfinished};
use crate::policy::text::count;

/// What one commit is made from.
#[derive(Debug)]
pub(super) struct Step {
    /// The iteration that it is of; `None` for one of everything.
    pub iteration: Option<u32>,
    /// The checkpoint whose content it has; `None` for the last good one's.
    pub stored: Option<StoredCheckpoint>,
}

/// What is committed, and where.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub context: &'a Context,
    pub request: &'a Request,
    pub run: &'a Run,
    /// What the run began with.
    pub initial: StoredCheckpoint,
    /// The commit that it began at, or the one that this was accepted as since.
    pub begun: Option<ObjectId>,
    /// What is accepted.
    pub good: StoredCheckpoint,
    pub good_id: CheckpointId,
    /// The trees of the index as the run left it.
    pub left: Vec<ObjectId>,
    /// What the run began with, as the ledger has it.
    pub first: Checkpoint,
    /// HEAD as it is.
    pub head: Head,
    /// The commit that the new ones come on top of.
    pub base: Option<ObjectId>,
    /// Their subjects, oldest first.
    pub folded_subjects: Vec<String>,
    /// The reference that keeps them.
    pub kept: Option<String>,
    pub new_branch: Option<String>,
    /// The paths that are committed, as far as they differ.
    pub taken: BTreeSet<RepoPath>,
    pub steps: Vec<Step>,
    /// What is not committed, and what a person must look at.
    pub result: AcceptResult,
}

impl<'a> Plan<'a> {
    /// A commit of everything on top of HEAD, of which no path is chosen yet.
    fn new(
        context: &'a Context,
        state: &State,
        run: &'a Run,
        request: &'a Request,
    ) -> Result<Self> {
        let repo = context.repo()?;
        refuse_here(context, run)?;
        let (first, last) = ends(state, run)?;
        let initial = repo.load_checkpoint(&first.commit)?;
        let head = repo.head()?;
        Ok(Self {
            context,
            request,
            run,
            begun: begun_at(context, state, &initial, &head)?,
            initial,
            good: repo.load_checkpoint(&last.commit)?,
            good_id: last.id.clone(),
            left: Vec::new(),
            first: first.clone(),
            base: head.commit.clone(),
            folded_subjects: Vec::new(),
            kept: None,
            new_branch: new_branch(context, request)?,
            taken: BTreeSet::new(),
            steps: vec![Step {
                iteration: None,
                stored: None,
            }],
            result: AcceptResult::nothing(head.clone()),
            head,
        })
    }

    fn chooser(&self, state: &State) -> Result<Chooser<'_>> {
        let (around, between) = ((self.context, state), (&self.initial, &self.good));
        Chooser::new(around, (self.run, self.request), between, &self.first)
    }
}

/// Plans it; everything that is refused whatever the commits hold is refused here.
pub(super) fn plan<'a>(
    context: &'a Context,
    state: &State,
    run: &'a Run,
    request: &'a Request,
) -> Result<Plan<'a>> {
    let repo = context.repo()?;
    let mut planned = Plan::new(context, state, run, request)?;
    refuse_taken_back(context, state, run)?;
    let (between, head) = ((&planned.initial, &planned.good), &planned.head);
    let begun = planned.begun.as_ref();
    let own = OwnCommits::of(context, state, Some(run), head)?;
    let Edited {
        as_committed,
        by_hand,
    } = edited(context, between, (run, &own), request)?;
    let rewritten = rewritten((context, state), (run, &own), begun, head)?;
    let since = match &rewritten {
        Some(rewritten) => since_rewritten(run, rewritten, request)?,
        None => commits_since(context, begun, head, &began_at(run))?,
    };
    let mut notes = to_look_at((context, state), run, &own, &since)?;
    notes.extend(
        rewritten
            .iter()
            .map(|one| one.to_look_at().text.to_string()),
    );
    notes.extend(left_by_run(context, between, &as_committed)?);
    let (base, folded) = match rewritten {
        Some(_) => (begun.cloned(), since),
        None if request.per_iteration => (head.commit.clone(), Vec::new()),
        None => fold(context, head, begun, &own)?,
    };
    if repo.on_remote_tracking(&folded)? && planned.new_branch.is_none() {
        let message = "the run's own commits were pushed and are not squashed: --per-iteration leaves them as they \
        are, --branch begins another branch";
        return Err(
            Error::new(ErrorKind::HeadMoved, message).hint(context.rerun(&["--per-iteration"]))
        );
    }
    let subjects = folded
        .iter()
        .rev()
        .map(|commit| Ok(repo.about_commit(commit)?.1));
    let folded_subjects = subjects.collect::<Result<Vec<String>>>()?;
    let Choice {
        mut taken,
        mut left_out,
    } = planned.chooser(state)?.changes(head, &mut notes)?;
    taken.retain(|path| !as_committed.contains(path));
    let work = changed_work(context, between.0, between.1, context.dry_run())?;
    // What was committed since is as the run found it.
    let work = repo.unlike_stored(between.0, base.as_ref(), &work, context.dry_run())?;
    let changed_work = repo.unlike_on_disk(between.0, &work)?;
    let earlier = left_before((context, state), run, between.0, &changed_work)?;
    let first = first_to_accept((context, state), &earlier)?;
    refuse_unaccepted(first, &earlier, request)?;
    refuse_undecided(run, &changed_work, request)?;
    for path in work
        .into_iter()
        .filter(|path| request.uncommitted != Uncommitted::Replace || !changed_work.contains(path))
    {
        if taken.remove(&path) {
            left_out.push(PathReason::new(path, UNCOMMITTED));
        }
    }
    let secrets = new_secrets(context, between, |path| taken.contains(path))?;
    notes.extend(ToLookAt::secrets(&secrets).map(|one| one.text.to_string()));
    if request.per_iteration {
        planned.steps = iterations(state, &planned)?;
    }
    let newest = folded.first();
    planned.left = index_left(context, state, run)?;
    planned.kept = newest.map(|newest| CheckpointRef::kept(&run.key.run_id, newest).name);
    planned.result.left_out = left_out;
    let (first, good) = ends(state, run)?;
    note_edits((context, state), (first, good), &taken)?;
    planned.result.of_runs = left_since((context, state), (run, good), &by_hand)?;
    planned.result.hand_edits = by_hand;
    planned.result.changed_work = changed_work;
    planned.result.look_at = notes;
    Ok(Plan {
        base,
        folded_subjects,
        taken,
        ..planned
    })
}

/// The trees of the index as the run's last good attempt and its last one left it.
fn index_left(context: &Context, state: &State, run: &Run) -> Result<Vec<ObjectId>> {
    let good = ends(state, run)?.1.seq;
    let attempts = state.checkpoints_of(&run.key).rev();
    let mut attempts = attempts.filter(|one| one.trigger == trigger::ATTEMPT);
    let last = attempts.next();
    let good = attempts.find(|one| one.seq == good);
    let mut trees = Vec::new();
    for one in last.into_iter().chain(good) {
        let stored = stored::load_undamaged(context.repo()?, one)?;
        trees.extend(stored.and_then(|stored| stored.index_tree));
    }
    Ok(trees)
}

/// Says what is committed that was not the run's.
fn note_edits(
    (context, state): (&Context, &State),
    (first, good): (&Checkpoint, &Checkpoint),
    taken: &BTreeSet<RepoPath>,
) -> Result<()> {
    let edits = stored::since(context, state, first)?.into_iter();
    for mut edits in edits.filter(|edits| edits.checkpoint.seq <= good.seq) {
        edits.paths = &edits.paths & taken;
        if !edits.paths.is_empty() {
            context.note(format!(
                "{} is committed too, though it was changed from outside during the run (checkpoint @{})",
                edits.names(),
                edits.checkpoint.seq
            ));
        }
    }
    Ok(())
}

/// Plans what accepting a run left out: its new files that are in no commit and stand as the run left them, on top of HEAD.
pub(super) fn rest<'a>(
    context: &'a Context,
    state: &State,
    run: &'a Run,
    request: &'a Request,
) -> Result<Plan<'a>> {
    let repo = context.repo()?;
    let mut planned = Plan::new(context, state, run, request)?;
    let accepted = run.accepted_as.commit.as_ref();
    // Of one that was merged, where it was merged to.
    if let Some(onto) = merged_to(repo, run, &planned.head)? {
        planned.base.clone_from(&onto.commit);
        planned.head = onto;
    }
    let head = &planned.head;
    let what = match accepted {
        Some(_) => format!("what run {} was accepted as", run.key),
        None => began_at(run),
    };
    let since = commits_since(context, accepted.or(planned.begun.as_ref()), head, &what)?;
    // What a user took out of git again since stays out of it.
    let mut committed = repo.differs_between(None, head.commit.as_ref())?;
    for commit in since.iter().chain(accepted) {
        committed.extend(repo.differs_between(None, Some(commit))?);
    }
    let choice = planned.chooser(state)?.rest(&committed)?;
    planned.taken = choice.taken;
    planned.result.left_out = choice.left_out;
    Ok(planned)
}

/// The branch that a run with a work tree of its own was merged onto; `None` where its own HEAD has what it was accepted as.
fn merged_to(repo: &Repo, run: &Run, head: &Head) -> Result<Option<Head>> {
    let onto = run.spec.isolated.as_ref().and_then(|one| one.onto.clone());
    let (Some(branch), Some(accepted)) = (onto, &run.accepted_as.commit) else {
        return Ok(None);
    };
    let has_it = |commit| repo.is_ancestor(accepted, commit);
    if head.commit.as_ref().map(has_it).transpose()? == Some(true) {
        return Ok(None);
    }
    let commit = repo.resolve_ref(&branch);
    Ok(commit.is_some().then_some(Head {
        branch: Some(branch),
        commit,
    }))
}

/// What [`rest`] finds; nothing once the run's checkpoints are gone.
pub(super) fn still_left_out(
    context: &Context,
    state: &State,
    run: &Run,
) -> Result<Vec<PathReason>> {
    match rest(context, state, run, &Request::default()) {
        Ok(planned) => Ok(planned.result.left_out),
        Err(error) if error.kind == ErrorKind::NoCheckpoint => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Refuses in another work tree, and while git is at something else.
fn refuse_here(context: &Context, run: &Run) -> Result<()> {
    if let Some(operation) = context.repo()?.operation() {
        let abort = abort_of(operation);
        let message =
            format!("a {operation} is in progress: finish it, or give it up with {abort}");
        return Err(Error::new(ErrorKind::OperationInProgress, message).hint(Hint::git(["status"])));
    }
    if run.worktree != context.worktree_id() && context.is_worktree_of_repo(&run.worktree) {
        let message = format!(
            "run {} works in {}, not in {}",
            run.key,
            run.worktree,
            context.worktree_id()
        );
        let again = Hint::recover(["accept"])
            .run(&run.key)
            .at(context.place_of(run.worktree.path()));
        return Err(Error::new(ErrorKind::HeadMoved, message).hint(again));
    }
    Ok(())
}

impl Plan<'_> {
    /// What is written while the commits, which are not made yet, are put on the branch.
    pub(super) fn journal(&self) -> CommitJournal {
        let message = format!("recover accept: run {}", self.run.key.run_id);
        CommitJournal {
            base: self.base.clone(),
            new_branch: self.new_branch.clone(),
            kept: self.kept.clone(),
            index_tree: self.initial.index_tree.clone(),
            begun: self.initial.manifest.head.commit.clone(),
            left: self.left.clone(),
            left_out: self
                .result
                .left_out
                .iter()
                .any(|one| ![IGNORED, OUTPUT].contains(&one.reason.as_str())),
            seen: Some(self.good.index_tree.iter().cloned().collect()),
            ..CommitJournal::new(self.run.key.clone(), self.head.clone(), Vec::new(), message)
        }
    }

    /// Refuses where the run's own commits, which stay, hold what was uncommitted before the run.
    pub(super) fn refuse_uncommitted(&self) -> Result<()> {
        if !self.request.per_iteration || self.run.was_accepted() {
            return Ok(());
        }
        let (context, begun) = (self.context, self.begun.as_ref());
        let repo = context.repo()?;
        let committed = repo.differs_between(begun, self.head.commit.as_ref())?;
        let mine = repo.uncommitted_at(&self.initial, &committed, context.dry_run())?;
        if mine.is_empty() {
            return Ok(());
        }
        let message = "the run's own commits hold files that were uncommitted before it: --squash leaves those out";
        let reason = "uncommitted before the run, and in a commit of it";
        Err(Error::new(ErrorKind::Conflicts, message)
            .paths(reasons(mine, reason))
            .hint(context.rerun(&["--squash"])))
    }

    /// The tree that the first of the commits comes on top of.
    pub(super) fn tree_before(&self) -> Result<ObjectId> {
        Ok(match &self.base {
            Some(base) => self.context.repo()?.tree_of(base)?,
            None => ObjectId(EMPTY_TREE.to_owned()),
        })
    }

    /// The message of a commit.
    pub(super) fn text_of(&self, step: &Step) -> String {
        message(&Subject {
            run: self.run,
            iteration: step.iteration,
            is_rest: self.run.was_accepted(),
            given: self.request.message.as_deref(),
            folded: &self.folded_subjects,
        })
    }
}

/// Refuses where the index would lose what a user staged since the run ended.
pub(super) fn refuse_staged(paths: BTreeSet<RepoPath>) -> Result<()> {
    let Some(first) = paths.first() else {
        return Ok(());
    };
    let message = "what was staged since the run ended is not what would be committed: commit it first, or unstage it \
                   with git restore --staged";
    let list = Hint::git(["diff", "--cached", "--"]).arg(first.below(Path::new("")));
    let reason = "staged since the run ended, otherwise than the run left it";
    Err(Error::new(ErrorKind::Conflicts, message)
        .paths(reasons(paths, reason))
        .hint(list))
}

/// What the run began with, and what it came to.
pub(super) fn ends<'s>(state: &'s State, run: &Run) -> Result<(&'s Checkpoint, &'s Checkpoint)> {
    let none = |message: String| {
        let list = Hint::recover(["checkpoint", "list"]).run(&run.key);
        Error::new(ErrorKind::NoCheckpoint, message).hint(list)
    };
    let initial = state.initial(&run.key).and_then(Named::kept);
    let initial = initial.ok_or_else(|| {
        none(format!(
            "No checkpoint available: what run {} began with was not captured",
            run.key
        ))
    })?;
    let good = state
        .last_good(&run.key)
        .filter(|good| good.verdict == Verdict::Passed && good.id != initial.id);
    let good = good.ok_or_else(|| {
        none(format!(
            "No checkpoint available: run {} has no checkpoint that passed its checks",
            run.key
        ))
    })?;
    Ok((initial, good))
}

/// What a person edited since the last good checkpoint.
struct Edited {
    /// Is as HEAD has it: that counts, not what the run made of it.
    as_committed: BTreeSet<RepoPath>,
    /// Stays uncommitted beside what the run made of it.
    by_hand: BTreeSet<RepoPath>,
}

/// What the work tree has otherwise than the last good checkpoint, the output of recover itself and what is ignored by now
/// aside. Refuses where a commit that a person made of such a path since would be undone.
fn edited(
    context: &Context,
    (initial, good): (&StoredCheckpoint, &StoredCheckpoint),
    (run, own): (&Run, &OwnCommits<'_>),
    request: &Request,
) -> Result<Edited> {
    let edited = |as_committed, by_hand| {
        Ok(Edited {
            as_committed,
            by_hand,
        })
    };
    let capture = checkpoint::prepare(context)?.capture;
    if capture.is_same_tree(good) {
        return edited(BTreeSet::new(), BTreeSet::new());
    }
    let objects = capture.objects();
    let (then, now) = TreeLookup::new(&objects)?.diff(good.view(), capture.view())?;
    let outputs = [&good.manifest.outputs, &capture.manifest.outputs];
    let is_file =
        |entry: Option<&Entry>| entry.is_some_and(|entry| entry.kind != EntryKind::EmptyDir);
    let unlike = then.unlike(&now).filter(|(path, was, is)| {
        (is_file(*was) || is_file(*is)) && !outputs.iter().any(|all| all.contains(path))
    });
    let all: BTreeSet<RepoPath> = unlike.map(|(path, ..)| path.clone()).collect();
    let repo = context.repo()?;
    // What is ignored by now is not captured, and not committed either.
    let all = &all - &repo.ignored_now(&all)?;
    let (then, head) = (good.manifest.head.commit.as_ref(), repo.head()?.commit);
    let since = match &head {
        Some(head) if !all.is_empty() => repo.commits_between(then, head)?,
        _ => Vec::new(),
    };
    if since.is_empty() {
        let by_hand = repo.unlike_work_tree(head.as_ref(), &all, context.dry_run())?;
        return edited(&all - &by_hand, by_hand);
    }
    // What the run itself committed after its last good checkpoint was not judged good: HEAD does not vouch for it.
    let (are_own, are_others) = (
        since.iter().any(|one| own.has(one)),
        since.iter().any(|one| !own.has(one)),
    );
    if are_own && !are_others && !request.per_iteration {
        return edited(BTreeSet::new(), all);
    }
    let by_hand = if are_own {
        all.clone()
    } else {
        repo.unlike_work_tree(head.as_ref(), &all, context.dry_run())?
    };
    let committed = &repo.differs_between(then, head.as_ref())? & &by_hand;
    let undone = repo.unlike_stored(initial, head.as_ref(), &committed, context.dry_run())?;
    if undone.is_empty() {
        return edited(&all - &by_hand, by_hand);
    }
    let message = "these files were committed after the last good checkpoint and edited again: restore them to it, \
    accept, then get your edits back with recover undo";
    let back = Hint::recover(words_back("good", &undone))
        .args(["--edits", "discard"])
        .run(&run.key);
    Err(Error::new(ErrorKind::HandEdits, message)
        .paths(reasons(undone, "not as in the last good checkpoint"))
        .hint(back))
}

/// Refuses where the run went on with work of runs that are not accepted, and nobody said that it is committed with this one's.
fn refuse_unaccepted(
    first: Option<&Run>,
    earlier: &[(&Run, BTreeSet<RepoPath>)],
    request: &Request,
) -> Result<()> {
    let (Some((other, _)), Some(first), Uncommitted::Refuse) =
        (earlier.first(), first, request.uncommitted)
    else {
        return Ok(());
    };
    let message = format!(
        "the run went on with work of run {} that is not accepted yet: accept run {} first; --uncommitted replace commits both \
         with this one",
        other.key, first.key
    );
    let paths = earlier
        .iter()
        .flat_map(|(run, paths)| reasons(paths.clone(), &format!("of run {}", run.key)));
    Err(Error::new(ErrorKind::Conflicts, message)
        .paths(paths.collect())
        .hint(Hint::recover(["accept"]).run(&first.key)))
}

/// Refuses where the run changed a person's own work and nobody said which of the two counts.
fn refuse_undecided(run: &Run, paths: &BTreeSet<RepoPath>, request: &Request) -> Result<()> {
    if paths.is_empty() || request.uncommitted != Uncommitted::Refuse {
        return Ok(());
    }
    let message = "the run changed files that had uncommitted changes before it: --uncommitted keep brings those back and \
                   leaves them uncommitted, --uncommitted replace commits what the run made of them";
    let back = own_work_back(&run.key, paths);
    let reason = "uncommitted before the run, and changed by it";
    Err(Error::new(ErrorKind::Conflicts, message)
        .paths(reasons(paths.clone(), reason))
        .hint(back))
}

/// Refuses what went with another run that was discarded or rolled back.
fn refuse_taken_back(context: &Context, state: &State, run: &Run) -> Result<()> {
    let Some(taken_back) = taken_back(context, state, run) else {
        return Ok(());
    };
    let message = format!("run {}: {}", run.key, taken_back.text);
    Err(Error::new(ErrorKind::Conflicts, message).hint(context.placed(Hint::recover(["undo"]))))
}

/// What the run changed and a person has as HEAD has it.
fn left_by_run(
    context: &Context,
    (initial, good): (&StoredCheckpoint, &StoredCheckpoint),
    as_committed: &BTreeSet<RepoPath>,
) -> Result<Vec<String>> {
    if as_committed.is_empty() {
        return Ok(Vec::new());
    }
    let (before, after) = TreeLookup::stored(context.repo()?)?.diff(initial.view(), good.view())?;
    let changed = before
        .unlike(&after)
        .map(|(path, ..)| path)
        .filter(|path| as_committed.contains(path));
    let names: Vec<String> = changed.map(RepoPath::to_string).collect();
    Ok(match names.as_slice() {
        [] => Vec::new(),
        [one] => vec![format!("{one} is as HEAD has it, not as the run left it")],
        [first, others @ ..] => {
            let others = count(others.len(), "other file");
            vec![format!(
                "{first} and {others} are as HEAD has them, not as the run left them"
            )]
        }
    })
}

fn new_branch(context: &Context, request: &Request) -> Result<Option<String>> {
    let Some(name) = request.branch.as_deref() else {
        return Ok(None);
    };
    let Some(full) = Repo::branch_ref(name) else {
        return Err(Error::new(
            ErrorKind::Usage,
            format!("--branch {name}: no name for a branch"),
        ));
    };
    if context.repo()?.ref_exists(&full) {
        let message = format!("there is a branch {name} already: --branch takes a new name");
        return Err(
            Error::new(ErrorKind::AlreadyExists, message).hint(Hint::git(["branch", "--list"]))
        );
    }
    Ok(Some(full))
}

/// What a person must look at before the run is accepted.
fn to_look_at(
    (context, state): (&Context, &State),
    run: &Run,
    own: &OwnCommits<'_>,
    since: &[ObjectId],
) -> Result<Vec<String>> {
    let all = to_look_at_in(run)
        .into_iter()
        .chain(outside_of((context, state), own, since)?.to_look_at);
    Ok(unfinished(run)
        .into_iter()
        .chain(all.map(|one| one.text.to_string()))
        .collect())
}

/// A commit for each iteration since the run's last own commit, the last one as the work tree is.
fn iterations(state: &State, planned: &Plan<'_>) -> Result<Vec<Step>> {
    let (run, head) = (planned.run, &planned.head);
    let repo = planned.context.repo()?;
    let (_, good) = ends(state, run)?;
    let mut steps = Vec::new();
    let done = run
        .iterations
        .statuses()
        .filter(|(_, status)| *status == IterationStatus::Completed);
    let numbers: Vec<u32> = done.map(|(number, _)| number).collect();
    for number in &numbers {
        let Some(end) = state
            .end_of_iteration(&run.key, *number)
            .and_then(Named::kept)
        else {
            continue;
        };
        if end.seq >= good.seq || state.is_superseded(end) {
            continue;
        }
        let stored = repo.load_checkpoint(&end.commit)?;
        // What was changed before an own commit came is in that, or joins what came after it.
        if stored.manifest.head.commit == head.commit {
            steps.push(Step {
                iteration: Some(*number),
                stored: Some(stored),
            });
        }
    }
    let last = if good.after_iteration > 0 {
        Some(good.after_iteration)
    } else {
        numbers.last().copied()
    };
    steps.push(Step {
        iteration: last,
        stored: None,
    });
    Ok(steps)
}
