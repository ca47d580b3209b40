//! Picks the one way to go on that is recommended for a run.
//! At its end, in `status`, on the resume screen and in the report; all ways there are lists [`options`](super::options).

use crate::model::decision::{Action, Strategy};
use crate::model::run::{IterationStatus, OnFailure, Run, RunStatus};

/// The strategy with which a run that failed is best taken up; of an unchecked one nothing can verify a fix.
pub(crate) fn strategy(run: &Run, is_unchecked: bool) -> Strategy {
    let decided = run.decision.as_ref().and_then(|decision| decision.strategy);
    let decided =
        decided.filter(|strategy| *strategy != Strategy::ManualThenContinue || !is_unchecked);
    let iteration = run
        .failure
        .as_ref()
        .and_then(|failure| failure.iteration)
        .unwrap_or(run.current_iteration);
    let is_last = run
        .spec
        .iterations_total
        .is_some_and(|total| run.iteration_after(iteration) > total);
    let is_taken_back = run
        .iterations
        .get(iteration)
        .is_some_and(|one| one.status == IterationStatus::Superseded);
    // Where it was given up already, was taken back, or nothing comes after it, to go on is to accept what failed: a
    // person's own thought.
    let accepts = is_last || is_taken_back || run.given_up().any(|given_up| given_up == iteration);
    // Who has it stop at a failure wants to see to that, not to leave it behind.
    let accepts = accepts || run.spec.on_failure == OnFailure::Stop;
    let decided = decided.filter(|strategy| *strategy != Strategy::ContinueNext || !accepts);
    match &run.failure {
        // Once what stood in the way is out of it, the very same will do.
        Some(failure) if !failure.recoverable => Strategy::RetrySame,
        _ => decided.unwrap_or(Strategy::RetryWithContext),
    }
}

/// What there is to accept of a run that is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ToAccept {
    /// Nothing, or nothing that is committed without its name: it looks like secrets.
    #[default]
    Nothing,
    /// Files that it changed or made, or commits of its own.
    Changes,
}

impl ToAccept {
    /// The words of the command that commits it.
    pub(crate) fn command(self) -> Option<Vec<&'static str>> {
        match self {
            Self::Nothing => None,
            Self::Changes => Some(vec!["accept"]),
        }
    }
}

/// What the record of a run does not say of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// What there is to accept; nothing while it is not over.
    pub to_accept: ToAccept,
    /// Whether another `recover` is at work on it, be it that it waits.
    pub at_work: bool,
    /// Whether other runs of its task have used up the attempts that it would need.
    pub task_spent: bool,
    /// Whether no checks are configured that could verify a person's fix.
    pub unchecked: bool,
}

impl Outlook {
    /// Whether nothing comes before taking the run up by a strategy.
    pub(crate) fn is_open(self) -> bool {
        self.to_accept == ToAccept::Nothing && !self.at_work && !self.task_spent
    }
}

/// The words of the command that goes on with a run, without those that name it; what can be accepted, is. `None` where
/// there is nothing to go on with: it is done, or somebody is at work on it.
pub(crate) fn next_command(run: &Run, outlook: Outlook) -> Option<Vec<&'static str>> {
    if run.is_being_fixed() {
        let is_verified = run
            .manual_fix
            .as_ref()
            .is_some_and(|session| session.verified);
        return Some(if is_verified {
            vec!["manual-fix", "continue"]
        } else {
            end_of_fix(outlook.unchecked)
        });
    }
    let has_attempt = run
        .live
        .as_ref()
        .is_some_and(|live| live.supervisor.is_some());
    if has_attempt || outlook.at_work {
        return None;
    }
    if let Some(accept) = outlook.to_accept.command() {
        return Some(accept);
    }
    if run.status.is_done() {
        return None;
    }
    if outlook.task_spent {
        return Some(vec!["retry-status", "--reset"]);
    }
    let waits = run.status == RunStatus::Parked
        || run
            .decision
            .as_ref()
            .is_some_and(|decision| decision.has(Action::Park) && decision.leads_to_attempt());
    let is_loop = run.spec.command.is_empty();
    Some(match (needs_word(run), waits, is_loop) {
        (true, ..) => vec![
            "resume",
            "--strategy",
            strategy(run, outlook.unchecked).as_str(),
        ],
        (false, true, true) => vec!["retry-status", "--wait"],
        (false, true, false) => vec!["resume", "--wait"],
        (false, false, true) => vec!["attempt", "start"],
        (false, false, false) => vec!["resume"],
    })
}

/// Whether only a person's word is another attempt; a rollback gives none back.
fn needs_word(run: &Run) -> bool {
    run.granted == 0 && (run.stands_still() || run.status == RunStatus::Escalated)
}

/// The words of the command with which a person says that a fix is done; where nothing can verify it, that it is given up
/// as a fix: the files stay.
pub(crate) fn end_of_fix(is_unchecked: bool) -> Vec<&'static str> {
    vec!["manual-fix", if is_unchecked { "abort" } else { "verify" }]
}

/// The words of the command that takes a run up; where a person is at it, that they are done.
pub(crate) fn resume_command(run: &Run, is_unchecked: bool) -> Vec<&'static str> {
    if run.is_being_fixed() {
        end_of_fix(is_unchecked)
    } else if needs_word(run) && !run.status.is_done() {
        vec!["resume", "--strategy", strategy(run, is_unchecked).as_str()]
    } else {
        vec!["resume"]
    }
}

/// The words of the command that goes back where a run did not complete.
pub(crate) fn way_back(has_good_checkpoint: bool) -> &'static [&'static str] {
    if has_good_checkpoint {
        &["rollback", "--to", "good"]
    } else {
        &["rollback", "--full"]
    }
}
