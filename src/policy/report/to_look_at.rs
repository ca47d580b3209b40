//! What a person must look at before a run is accepted.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::hint::Advice;
use crate::model::path::TOO_MANY;
use crate::model::{
    Failure, Hint, IterationStatus, ObjectId, PathReason, RepoPath, Run, RunKey, RunStatus,
};
use crate::policy::changes::tampering_text;
use crate::policy::text::{beginning, first_few};

use super::words;

/// Paths, or tests, that a line names at most.
const NAMED: usize = 3;
/// How much of a failure's message a line holds, in characters.
const LONGEST_FAILURE: usize = 100;
/// How much of a task's id, in characters.
const LONGEST_ID: usize = 40;

/// Commits that are none of a run's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside {
    /// How many.
    pub commits: usize,
    /// The newest of them, and how many earlier ones there are.
    pub to_look_at: Vec<ToLookAt>,
    /// Whether there is nothing to accept on top of, as the run rewrote that.
    pub in_the_way: bool,
}

/// Why a person must look at something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LookAtKind {
    /// Changes that were uncommitted before the run are not as they were.
    Uncommitted,
    /// An iteration passed and may have weakened its tests.
    Weakened,
    /// An iteration was given up.
    GivenUp,
    /// The run stopped at a failure.
    Failed,
    /// A commit was made by others meanwhile.
    OutsideCommit,
    /// An attempt changed git's settings or hooks.
    GitSettings,
    /// A folder is in no checkpoint because it holds too many files.
    LeftOut,
    /// Files of an attempt that was rolled back could not be removed or replaced.
    LeftBehind,
    /// What the run did went with an earlier run that was taken back.
    TakenBack,
    /// The run's own commands rewrote commits that were there before it.
    Rewritten,
    /// A line that the run added to a file that git knows looks like a secret.
    Secret,
}

/// What a person must look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ToLookAt {
    /// Why.
    pub kind: LookAtKind,
    /// The iteration.
    pub iteration: Option<u32>,
    /// The commit.
    pub commit: Option<ObjectId>,
    /// The tests that fail, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// In a line.
    pub text: Advice,
}

impl ToLookAt {
    fn new(kind: LookAtKind, text: impl Into<Advice>) -> Self {
        Self {
            kind,
            iteration: None,
            commit: None,
            failing: Vec::new(),
            text: text.into(),
        }
    }

    /// A person's uncommitted changes that the run changed or removed; `command` brings them back.
    pub(crate) fn uncommitted(paths: &BTreeSet<RepoPath>, command: Hint) -> Option<Self> {
        let names = first_of(paths.iter().map(RepoPath::to_lossy));
        let what = format!("the run changed or removed uncommitted changes of yours: {names}; ");
        let text = Advice::with(what, command, " brings them back");
        (!paths.is_empty()).then(|| Self::new(LookAtKind::Uncommitted, text))
    }

    /// Work of another run that it built upon; `command` does what is said `after` it.
    pub(crate) fn of_run(
        run: &RunKey,
        paths: &BTreeSet<RepoPath>,
        command: Hint,
        after: &str,
    ) -> Self {
        let names = first_of(paths.iter().map(RepoPath::to_lossy));
        let what =
            format!("the run went on with work of run {run} that is not accepted yet: {names}; ");
        let text = Advice::with(what, command, after);
        Self::new(LookAtKind::Uncommitted, text)
    }

    /// What rollbacks of its attempts could not remove or replace.
    pub(crate) fn left_behind(paths: &BTreeSet<&RepoPath>) -> Option<Self> {
        let text = format!(
            "a rollback could not remove or replace {}; accept leaves it out",
            first_of(paths.iter().map(|path| path.to_lossy()))
        );
        (!paths.is_empty()).then(|| Self::new(LookAtKind::LeftBehind, text))
    }

    /// What it did is in the files no more: that of an earlier run was taken back, on which it built; `command` brings back
    /// both.
    pub(crate) fn taken_back(with: &RunKey, command: Hint, close: &Hint) -> Self {
        let what =
            format!("its work is no longer in the files: it went when run {with} was taken back; ");
        let text = Advice::with(
            what,
            command,
            format!(" brings back both, {close} leaves it so"),
        );
        Self::new(LookAtKind::TakenBack, text)
    }

    /// A commit that the run did not make.
    pub(crate) fn commit(commit: ObjectId, subject: &str) -> Self {
        let text = format!(
            "commit {} was made outside of the run ({})",
            commit.short(),
            words::line(subject)
        );
        Self {
            commit: Some(commit),
            ..Self::new(LookAtKind::OutsideCommit, text)
        }
    }

    /// What it did to commits of before it, newest first.
    pub(crate) fn rewrote(commits: &[(ObjectId, String)]) -> String {
        let name = |(commit, subject): &(ObjectId, String)| {
            format!("{} ({})", commit.short(), words::line(subject))
        };
        let names = first_few(commits.iter().map(name), NAMED, |more| {
            format!("{more} more")
        });
        format!(
            "the run's own commands rewrote {} from before it: {names}",
            words::count(commits.len(), "commit")
        )
    }

    /// That it did so; where all that came instead is its own, what it made can be committed on top of them.
    pub(crate) fn rewritten(commits: &[(ObjectId, String)], is_own: bool) -> Self {
        let mut text = Self::rewrote(commits);
        if is_own {
            text.push_str("; accept commits what it made on top of what was there");
        }
        Self {
            commit: commits.first().map(|(commit, _)| commit.clone()),
            ..Self::new(LookAtKind::Rewritten, text)
        }
    }

    /// Files that git knows, to which it added what looks like a secret.
    pub(crate) fn secrets(paths: &BTreeSet<RepoPath>) -> Option<Self> {
        let names = first_of(paths.iter().map(RepoPath::to_lossy));
        let text =
            format!("what the run added to {names} looks like a secret, and accept commits it");
        (!paths.is_empty()).then(|| Self::new(LookAtKind::Secret, text))
    }

    /// The folders that a checkpoint leaves out because they hold too many files.
    pub(crate) fn left_out(skipped: &[PathReason]) -> impl Iterator<Item = Self> + '_ {
        skipped.iter().filter(|one| one.reason == TOO_MANY).map(|one| {
            let path = words::line(&one.path.to_lossy());
            let files = one.files.map_or_else(|| "too many files".to_owned(), |files| format!("{files} files"));
            let text = format!(
                "{path}/ ({files}, over [checkpoint] max_untracked_files or max_untracked_bytes) is in no checkpoint; \
                 if it can be made again, add the line /{path}/ to .git/info/exclude"
            );
            Self::new(LookAtKind::LeftOut, text)
        })
    }

    /// This many more commits that the run did not make; `None` for none.
    pub(crate) fn earlier_commits(count: usize) -> Option<Self> {
        let text = format!(
            "{} before them, made outside of the run",
            words::count(count, "more commit")
        );
        (count > 0).then(|| Self::new(LookAtKind::OutsideCommit, text))
    }
}

/// The first of some names, and how many more there are.
fn first_of(all: impl ExactSizeIterator<Item: AsRef<str>>) -> String {
    let names = all.map(|name| words::line(name.as_ref()));
    first_few(names, NAMED, |more| format!("{more} more"))
}

/// What failed: the tests, by their names, else what the failure says.
fn what_failed(failure: &Failure) -> String {
    if failure.failing.is_empty() {
        beginning(&words::line(&failure.message), LONGEST_FAILURE)
    } else {
        first_of(failure.failing.iter())
    }
}

/// The last failure of an iteration.
fn last_failure(run: &Run, iteration: u32) -> Option<&Failure> {
    let attempts = &run.iterations.get(iteration)?.attempts;
    attempts.iter().rev().find_map(|one| one.failure.as_ref())
}

/// `given up: test_total`.
pub(super) fn given_up(run: &Run, iteration: u32) -> String {
    let what = last_failure(run, iteration).map(what_failed);
    format!(
        "given up{}",
        words::between(": ", &what.unwrap_or_default(), "")
    )
}

/// `iteration 4`, with its task where the run works through a list.
fn named(run: &Run, iteration: u32) -> String {
    let task = run.spec.task(iteration);
    let id = task.map(|task| beginning(&words::line(&task.id), LONGEST_ID));
    format!(
        "iteration {iteration}{}",
        words::between(" (", &id.unwrap_or_default(), ")")
    )
}

/// What of a run's own record a person must look at.
pub(crate) fn to_look_at(run: &Run) -> Vec<ToLookAt> {
    let of = |kind, iteration, text: String| ToLookAt {
        iteration: Some(iteration),
        ..ToLookAt::new(kind, text)
    };
    let weakened = run.weakened_attempts().map(|(iteration, attempt)| {
        let notes = words::line(&tampering_text(&attempt.notes, ", "));
        let what = words::between(" (", &notes, ")");
        of(
            LookAtKind::Weakened,
            iteration,
            format!(
                "{} may have weakened its tests{what}",
                named(run, iteration)
            ),
        )
    });
    let skipped = words::with_status(run, IterationStatus::Skipped);
    let given_up = |number| ToLookAt {
        failing: last_failure(run, number)
            .map(|failure| failure.failing.clone())
            .unwrap_or_default(),
        ..of(
            LookAtKind::GivenUp,
            number,
            format!("{} was {}", named(run, number), given_up(run, number)),
        )
    };
    let changed = run
        .iterations
        .with_git_changes()
        .map(|(iteration, attempt)| {
            let names = words::line(&attempt.git_changes.join(", "));
            let text = format!(
                "attempt {} of {} changed git's settings: {names}",
                attempt.number,
                named(run, iteration.number)
            );
            of(LookAtKind::GitSettings, iteration.number, text)
        });
    weakened
        .chain(skipped.map(given_up))
        .chain(changed)
        .collect()
}

/// The failure that a run stopped at, where that is of no iteration that was given up.
pub(super) fn stopped_at(run: &Run) -> Option<ToLookAt> {
    let is_over =
        run.status.has_ended() || words::is_over(run) || run.status == RunStatus::Cancelled;
    let failure = run.failure.as_ref().filter(|_| !is_over)?;
    if failure
        .iteration
        .is_some_and(|number| run.given_up().any(|given_up| given_up == number))
    {
        return None;
    }
    let subject = failure
        .iteration
        .map_or_else(|| "the run".to_owned(), |number| named(run, number));
    let text = format!("{subject} failed: {}", what_failed(failure));
    Some(ToLookAt {
        iteration: failure.iteration,
        failing: failure.failing.clone(),
        ..ToLookAt::new(LookAtKind::Failed, text)
    })
}
