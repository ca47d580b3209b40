//! `recover accept`: what a run did becomes ordinary commits of the user's, made with the user's own `git`.
//!
//! Everything is planned, and what is unsafe refused, before anything is written. The commits are then made beside HEAD and
//! the index, with the user's hooks, and put on the branch at once (`recovery`).

mod base;
mod check;
mod choice;
mod hooks;
mod make;
mod merge;
mod plan;

use std::collections::BTreeSet;

use make::{Around, Made, make};
use merge::{Onto, Way};
use plan::{Plan, Step};
use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::runs::{self, run_of};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint;
use crate::engine::record::liveness::Driving;
use crate::engine::record::storage::Request as Captured;
use crate::engine::recovery;
use crate::engine::run::tasks;
use crate::engine::runs::{Chosen, prune, refuse_driven};
use crate::git::program::{CommitJournal, Staging};
use crate::git::tree::Objects;
use crate::model::checkpoint::trigger;
use crate::model::run_line::run_line;
use crate::model::{
    Checkpoint, Head, HeadMove, Hint, ObjectId, Operation, OperationKind, PathReason, RepoPath,
    Run, RunId, RunKey, RunLine, State,
};
use crate::policy::restore::{Selection, glob_of};
use crate::process::Show;

pub(crate) use choice::explained;

/// The id of the tree without anything.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// This many of a run's latest checkpoints are read for what the run had in the index.
const LOOKED_AT: usize = 200;

/// What counts of files that had uncommitted changes before the run, and that it changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Uncommitted {
    /// Nothing is decided: where there are such files, nothing is committed.
    #[default]
    Refuse,
    /// Nothing is decided yet: a dry run lists such files for the prompt.
    Prompt,
    /// Those changes: they are put back, uncommitted; the run's version is left beside them as `FILE.run`.
    Keep,
    /// What the run made of them, which is committed.
    Replace,
}

/// How a run is accepted.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Request {
    /// The run; `None` for the one that a command is about.
    pub run_id: Option<RunId>,
    /// One commit an iteration, on top of the run's own, rather than one of everything.
    pub per_iteration: bool,
    /// The branch that is begun for it.
    pub branch: Option<String>,
    /// Of a run with a work tree of its own: its commits are made again on top of the branch, rather than merged onto it.
    pub rebase: bool,
    /// The message.
    pub message: Option<String>,
    /// New files, or folders with new files, that are taken.
    pub include: Vec<RepoPath>,
    /// All new files are taken that do not look like secrets.
    pub all: bool,
    /// Whether the run's checks are run on what is committed.
    pub checks: bool,
    /// A shell line to run before them, where the work tree has something else.
    pub prepare: Option<String>,
    /// What counts of a person's own work that the run changed.
    pub uncommitted: Uncommitted,
    /// Where the output of checks is shown.
    pub show: Show,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct AcceptedCommit {
    /// `null` in a dry run.
    pub commit: Option<ObjectId>,
    /// The first line of its message.
    pub subject: String,
    /// `null` for a commit of everything.
    pub iteration: Option<u32>,
    /// The files that it changes.
    pub files: BTreeSet<RepoPath>,
}

impl AcceptedCommit {
    fn new(commit: Option<ObjectId>, text: &str, step: &Step, files: BTreeSet<RepoPath>) -> Self {
        Self {
            commit,
            subject: text.lines().next().unwrap_or_default().to_owned(),
            iteration: step.iteration,
            files,
        }
    }
}

/// What accepting did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Accepted {
    /// Whether commits were made.
    pub changed: bool,
    #[serde(serialize_with = "run_line")]
    #[schemars(with = "RunLine")]
    pub run: Run,
    /// What was committed, or would be.
    #[serde(flatten)]
    pub result: AcceptResult,
    /// The same, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<AcceptPlan>,
}

/// What accepting would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct AcceptPlan {
    /// Whether commits would be made.
    pub changed: bool,
    #[serde(flatten)]
    result: AcceptResult,
}

/// What was committed, or would be, and what was not.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct AcceptResult {
    /// The branch's short name; `null` where HEAD is detached.
    pub branch: Option<String>,
    /// Oldest first.
    pub commits: Vec<AcceptedCommit>,
    /// What of the run's files is not committed: `reason` is `secret`, `too_large`, `leave_out`, `output`, `ignored`,
    /// `ignored_before` (the run), `uncommitted` (before it), `left_behind` (by an attempt that was rolled back; also a
    /// whole folder), `new` or `changed` (since the run was accepted first).
    pub left_out: Vec<PathReason>,
    /// Files that were edited since the run's last good checkpoint; the edits stay uncommitted.
    pub hand_edits: BTreeSet<RepoPath>,
    /// Those of them that are as another run left them, or this one in an iteration that was given up; `reason` is the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_runs: Vec<PathReason>,
    /// Files with uncommitted changes of before the run that it changed.
    pub changed_work: BTreeSet<RepoPath>,
    /// The run's versions of those, where the changes were put back.
    pub beside: Vec<RepoPath>,
    /// How the commits of a run that had a work tree of its own got onto the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["fast_forward", "merge", "rebase"]))]
    pub merge: Option<&'static str>,
    /// As before in a dry run.
    pub head: HeadMove,
    /// The reference that retains commits of the run that were folded.
    pub kept_ref: Option<String>,
    /// What a person must look at.
    pub look_at: Vec<String>,
    /// The tasks that were ticked in the run's list, which is left uncommitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ticked: Vec<String>,
}

impl Accepted {
    fn new(context: &Context, run: Run, changed: bool, mut result: AcceptResult) -> Self {
        let short = |branch: String| match branch.strip_prefix("refs/heads/") {
            Some(short) => short.to_owned(),
            None => branch,
        };
        result.branch = result.branch.map(short);
        let plan = context.dry_run().then(|| AcceptPlan {
            changed,
            result: result.clone(),
        });
        Self {
            changed: changed && plan.is_none(),
            run,
            result,
            plan,
        }
    }
}

impl AcceptResult {
    /// Nothing committed at this HEAD.
    fn nothing(head: Head) -> Self {
        Self {
            branch: head.branch,
            head: HeadMove {
                before: head.commit.clone(),
                after: head.commit,
            },
            ..Self::default()
        }
    }

    /// What is left out of it until a person decides.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = &PathReason> {
        self.left_out
            .iter()
            .filter(|one| choice::needs_decision(&one.reason))
    }

    /// Those of them that `--include` takes.
    pub(crate) fn includable(&self) -> impl Iterator<Item = &PathReason> {
        self.undecided().filter(|one| choice::is_captured(one))
    }
}

/// The files of a run that accepting it leaves out.
pub(in crate::engine) fn left_out(
    context: &Context,
    state: &State,
    run: &Run,
) -> Result<BTreeSet<RepoPath>> {
    let left_out = if run.was_accepted() {
        plan::still_left_out(context, state, run)?
    } else {
        plan::plan(context, state, run, &Request::default())?
            .result
            .left_out
    };
    Ok(left_out.into_iter().map(|one| one.path).collect())
}

/// Accepts a run; in a dry run only says how.
///
/// # Errors
/// There is no such run, or no good checkpoint of it (4); a `recover` is at work (11); the work tree is not as the checkpoint,
/// a check or a hook fails, a person's own work is in the way, or something has to be looked at and nobody said yes (13).
pub(crate) fn accept(context: &Context, request: &Request) -> Result<Accepted> {
    if !context.has_git() {
        let message = format!(
            "there is no git repository in {} to commit to",
            context.worktree().display()
        );
        return Err(Error::new(ErrorKind::NoRepository, message).hint(Hint::git(["init"])));
    }
    if !context.dry_run() {
        context.check_writes("making commits")?;
        recovery::recover(context)?;
    }
    let mut state = recovery::load_recovered(context)?;
    let ids = Chosen::Ids(request.run_id.iter().cloned().collect()).of(context, &state)?;
    let Some(key) = ids.first() else {
        return Err(Error::new(ErrorKind::RunNotFound, "no run"));
    };
    let mut run = run_of(&state, key)?;
    if !context.dry_run() && run.spec.isolated.is_some() {
        merge::settle(context, &run)?;
        state = recovery::load_recovered(context)?;
        run = run_of(&state, key)?;
    }
    refuse_driven(context, &run)?;
    if let Some(other) = state
        .runs_of(&context.worktree_id())
        .find(|other| runs::driver(context.store(), other).is_some())
    {
        refuse_driven(context, other)?;
    }
    let repo = context.repo()?;
    let is_rest = run.was_accepted();
    // On another machine it may be: what it left out stands beside that commit, not here.
    let is_elsewhere = run
        .accepted_as
        .commit
        .as_ref()
        .is_some_and(|commit| !repo.commit_exists(commit));
    let has_rest = run.accepted_as.left_out && !is_elsewhere;
    if is_rest && !(has_rest && request.all || !request.include.is_empty()) {
        let left_out = if has_rest {
            plan::still_left_out(context, &state, &run)?
        } else {
            Vec::new()
        };
        let result = AcceptResult {
            left_out,
            ..AcceptResult::nothing(repo.head()?)
        };
        return Ok(Accepted::new(context, run, false, result));
    }
    let is_done = !context.dry_run();
    let _driving = is_done.then(|| Driving::take(context, key)).transpose()?;
    let mut onto = if request.branch.is_some() {
        None
    } else {
        Onto::of(context, &state, &run, request.rebase)?
    };
    if request.rebase && (onto.is_none() || is_rest) {
        let message = "--rebase is for a run that was begun with --isolated, on a branch";
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["accept", "--help"])));
    }
    let planned = if is_rest {
        plan::rest(context, &state, &run, request)?
    } else {
        plan::plan(context, &state, &run, request)?
    };
    onto = onto.filter(|onto| !is_rest || planned.base.as_ref() == Some(&onto.tip));
    let Rehearsed {
        commits,
        trees,
        mut has_new,
        mut journal,
        how,
    } = rehearse(&state, &planned, onto.as_ref())?;
    if let Some(onto) = &onto {
        has_new |= onto.lacks(planned.head.commit.as_ref())?;
    }
    let mut result = planned.result.clone();
    result.merge = how.filter(|_| has_new);
    if context.dry_run() {
        let changed = has_new;
        let branch = planned.new_branch.clone().or(result.branch);
        result.branch = onto.map(|onto| onto.branch).or(branch);
        result.commits = commits;
        result.kept_ref = planned.kept.clone().filter(|_| changed);
        return Ok(Accepted::new(context, run, changed, result));
    }
    if !result.look_at.is_empty() && !context.says_yes() {
        let message = format!(
            "needs review: --yes accepts it anyway: {}",
            result.look_at.join("; ")
        );
        return Err(
            Error::new(ErrorKind::ConfirmationNeeded, message).hint(context.rerun(&["--yes"]))
        );
    }
    if has_new {
        require_identity(context)?;
    }
    // What undo goes back to: before anything is put back, too.
    let safety = has_new
        .then(|| take(context, key, "Before accept", trigger::SAFETY))
        .transpose()?;
    let own_work = check::PutBack::of(&planned)?;
    result.beside.clone_from(&own_work.beside);
    let Some(safety) = safety else {
        // What is left out can be asked for still.
        if !result.left_out.is_empty() || is_rest {
            return Ok(Accepted::new(context, run, false, result));
        }
        let run = recovery::record_empty(context, key)?;
        result.ticked = tidy_up(context, &run);
        return Ok(Accepted::new(context, run, false, result));
    };
    let as_is = own_work.done.as_ref().unwrap_or(&safety);
    let concluded = conclude(
        &planned,
        (&safety, as_is),
        (&trees, onto.as_ref()),
        &mut journal,
    );
    if concluded.is_err() && !repo.has_commit_journal() {
        own_work.take_back(context)?;
    }
    let (commits, run) = concluded?;
    if let Err(error) = hooks::run(context, "post-commit", &[], &[]) {
        context.warn(error.to_string());
    }
    result.ticked = tidy_up(context, &run);
    result.branch = repo.head()?.branch;
    result.commits = commits;
    if let Some(onto) = onto {
        (result.branch, result.head.before) = (Some(onto.branch), Some(onto.tip));
    }
    result.head.after = journal.commits.last().cloned();
    result.kept_ref = journal.kept;
    Ok(Accepted::new(context, run, true, result))
}

/// Makes the commits and puts them on the branch; what hooks changed of the files is taken back where that is refused: the
/// work tree is as in `as_is` then.
fn conclude(
    planned: &Plan<'_>,
    (safety, as_is): (&Checkpoint, &Checkpoint),
    (trees, onto): (&[ObjectId], Option<&Onto<'_>>),
    journal: &mut CommitJournal,
) -> Result<(Vec<AcceptedCommit>, Run)> {
    let (context, key) = (planned.context, &planned.run.key);
    let repo = context.repo()?;
    let staging = Staging::new(repo, false)?;
    let around = Around::of(planned, &staging, as_is)?;
    let mut put = || {
        let Made {
            mut commits,
            without_hooks,
            is_as_planned,
        } = make(planned, trees, &staging, around.as_ref())?;
        journal.commits = commits
            .iter()
            .filter_map(|made| made.commit.clone())
            .collect();
        let last = journal.commits.last().or(planned.base.as_ref());
        let way = onto.zip(last);
        let way = way.map(|(onto, last)| onto.merge(planned.run, &staging, last));
        let way = way.transpose()?;
        if let Some(way) = &way {
            publish(context, &staging)?;
            journal.commits.clone_from(&way.commits);
            commits = merged(context, way, commits)?;
        }
        journal.seen.get_or_insert_default().extend(without_hooks);
        // The rest was checked with what was committed first.
        if planned.request.checks
            && !planned.run.was_accepted()
            && let Some(commit) = journal.commits.last()
        {
            check::check(planned, commit)?;
        }
        // Checks and hooks took their time.
        plan::refuse_staged(repo.staged_since(journal, None)?)?;
        if let Some(signal) = context.interrupts.pending() {
            return Err(Error::interrupted(
                signal,
                "interrupted; nothing was changed",
            ));
        }
        // What hooks changed or made is not a person's edit.
        let changed = around.as_ref().map(Around::changed).transpose()?;
        if !is_as_planned || changed == Some(true) {
            let description = "Accepted, as the commit hooks left it";
            take(context, key, description, trigger::OPERATION)?;
        }
        if let Some((onto, way)) = onto.zip(way.as_ref()) {
            return Ok((commits, onto.put(planned, way)?));
        }
        // By what `undo` takes it back.
        journal.operation = Some(Box::new(Operation {
            head: HeadMove {
                before: planned.head.commit.clone(),
                after: journal.commits.last().cloned(),
            },
            ..Operation::new("op", OperationKind::Accept, safety, &planned.good_id)
        }));
        let lock = checkpoint::lock(context)?;
        Ok((commits, recovery::put_commits(context, &lock, journal)?))
    };
    let concluded = put();
    // What has begun to move is finished by the next command.
    if concluded.is_err()
        && !repo.has_commit_journal()
        && let Some(around) = &around
    {
        around.saved.put_back()?;
        hooks::give_back(context, as_is)?;
    }
    concluded
}

/// What came onto the branch: the run's commits where they are on it, else those that were made of them.
fn merged(
    context: &Context,
    way: &Way,
    mut commits: Vec<AcceptedCommit>,
) -> Result<Vec<AcceptedCommit>> {
    if way.how == "rebase" {
        commits.clear();
    }
    let is_known = |id: &ObjectId| {
        commits
            .iter()
            .any(|known| known.commit.as_ref() == Some(id))
    };
    let mut others = Vec::new();
    for id in way.commits.iter().filter(|id| !is_known(id)) {
        others.push(AcceptedCommit {
            commit: Some(id.clone()),
            subject: context.repo()?.about_commit(id)?.1,
            iteration: None,
            files: BTreeSet::new(),
        });
    }
    match way.how {
        // The run's own come first.
        "fast_forward" => others.extend(commits),
        _ => others.splice(0..0, commits).for_each(drop),
    }
    Ok(others)
}

/// What the run made of a person's own work, as a patch.
///
/// # Errors
/// A checkpoint cannot be read.
pub(crate) fn changed_work_patch(context: &Context, accepted: &Accepted) -> Result<String> {
    let state = context.load()?.state;
    let ends = plan::ends(&state, &accepted.run)?;
    let globs: Vec<String> = accepted.result.changed_work.iter().map(glob_of).collect();
    let selection = Selection::globs(&globs)
        .map_err(|error| Error::new(ErrorKind::Failed, error.to_string()))?;
    let patch = Objects::stored(context.repo()?).patch(&ends.0.tree, &ends.1.tree, &selection)?;
    Ok(String::from_utf8_lossy(&patch).into_owned())
}

/// Captures the work tree as it is.
fn take(context: &Context, key: &RunKey, description: &str, trigger: &str) -> Result<Checkpoint> {
    let prepared = checkpoint::prepare(context)?;
    let request = Captured::new(trigger, description);
    checkpoint::take(
        context,
        &mut context.store().lock()?,
        key,
        &prepared,
        request,
    )
}

/// Cleans up what an accepted run holds; what cannot be removed now is tried again later on. Returns the tasks that it ticks
/// in the run's list.
fn tidy_up(context: &Context, run: &Run) -> Vec<String> {
    if let Err(error) = prune::tidy_up(context, &run.key) {
        tracing::warn!(%error, "the checkpoints of {} were not tidied up", run.key);
    }
    tasks::tick(context, run).unwrap_or_else(|error| {
        context.warn(format!("the tasks that passed are not ticked: {error}"));
        Vec::new()
    })
}

/// What the commits would be.
struct Rehearsed {
    commits: Vec<AcceptedCommit>,
    /// The tree after each step.
    trees: Vec<ObjectId>,
    /// Whether there is anything to commit.
    has_new: bool,
    /// What is to be written of it, without its commits.
    journal: CommitJournal,
    /// How they would get onto the branch of a run that had a work tree of its own.
    how: Option<&'static str>,
}

/// What the commits would be; refuses what would commit a person's own work, or anything that was not accepted.
fn rehearse(state: &State, planned: &Plan<'_>, onto: Option<&Onto<'_>>) -> Result<Rehearsed> {
    let context = planned.context;
    let repo = context.repo()?;
    let staging = Staging::new(repo, context.dry_run())?;
    staging.read(planned.base.as_ref())?;
    let (mut commits, mut trees) = (Vec::new(), Vec::new());
    let mut embedded = BTreeSet::new();
    let (mut last, mut before) = (planned.tree_before()?, staging.held()?);
    for step in &planned.steps {
        step_into(&staging, planned, step)?;
        let tree = staging.write_tree()?;
        if tree != last {
            let text = planned.text_of(step);
            let held = staging.held()?;
            embedded.extend(staging.embedded(&before, &held));
            commits.push(AcceptedCommit::new(None, &text, step, before.unlike(&held)));
            (last, before) = (tree.clone(), held);
        }
        trees.push(tree);
    }
    let new = staging.changed_since(planned.base.as_ref())?;
    if let Some(path) = new.iter().find(|path| !planned.taken.contains(path)) {
        let message = format!("{path} would be committed, though it is none of what is accepted");
        return Err(Error::new(ErrorKind::UnsafePath, message).hint(context.rerun(&["--dry-run"])));
    }
    planned.refuse_uncommitted()?;
    for path in embedded {
        context.note(format!(
            "{path} is a repository of its own: the commit has only its revision, and clones will have none of its files; \
             git submodule add --force URL {path} says where they get them"
        ));
    }
    let mut journal = planned.journal();
    // What one of the run's latest checkpoints has of the index is not lost.
    let mut others = state.checkpoints_of(&planned.run.key).rev().take(LOOKED_AT);
    let mut staged = repo.staged_since(&journal, Some(&staging))?;
    while !staged.is_empty()
        && let Some(other) = others.next()
    {
        let (tree, seen) = (
            repo.load_checkpoint(&other.commit)?.index_tree,
            journal.seen.get_or_insert_default(),
        );
        if let Some(tree) = tree.filter(|tree| !seen.contains(tree)) {
            seen.push(tree);
            staged = repo.staged_since(&journal, Some(&staging))?;
        }
    }
    plan::refuse_staged(staged)?;
    let way = onto.map(|onto| {
        let last = staging.commit(&last, planned.base.as_ref(), "rehearsal")?;
        onto.rehearse(&staging, (&last, planned.base.as_ref()))
    });
    Ok(Rehearsed {
        commits,
        trees,
        has_new: !new.is_empty(),
        journal,
        how: way.transpose()?,
    })
}

/// Takes what a commit is to hold into the index.
fn step_into(staging: &Staging<'_>, planned: &Plan<'_>, step: &Step) -> Result<()> {
    Ok(staging.add_stored(
        step.stored.as_ref().unwrap_or(&planned.good),
        &planned.taken,
    )?)
}

/// Refuses where git does not know who commits, before checks are run for it.
fn require_identity(context: &Context) -> Result<()> {
    let staging = Staging::new(context.repo()?, true)?;
    staging.require_identity().map_err(|error| {
        let said = error.to_string();
        let reason = said.lines().last().unwrap_or_default();
        let message =
            format!("git does not know who commits: set user.name and user.email ({reason})");
        let needs_name = ["ident name", "no name"]
            .iter()
            .any(|words| reason.contains(words));
        let (key, value) = if needs_name {
            ("user.name", "Your Name")
        } else {
            ("user.email", "you@example.com")
        };
        Error::new(ErrorKind::NoIdentity, message).hint(Hint::git(["config", key, value]))
    })
}

fn publish(context: &Context, staging: &Staging<'_>) -> Result<()> {
    let lock = checkpoint::lock(context)?;
    Ok(staging.publish(&lock)?)
}

fn reasons(paths: BTreeSet<RepoPath>, reason: &str) -> Vec<PathReason> {
    paths
        .into_iter()
        .map(|path| PathReason::new(path, reason))
        .collect()
}
