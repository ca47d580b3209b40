//! Whether and when another attempt is allowed (L2, L4), and which failures wait for a change by a person first.

mod budget;
mod decide;
mod item;
mod next_step;
mod weather;

pub(crate) use budget::{Account, REPEATED, bound_reached};
pub(crate) use decide::{DecisionInput, Fallback, decide, fallback_of, is_charged};
pub(crate) use item::Item;
pub(crate) use next_step::{
    OptionCode, OtherWay, Outlook, ResumeOption, ToAccept, end_of_fix, label, manual_steps,
    next_command, resume_command, resume_options, way_back,
};
pub(crate) use weather::Provider;

use super::settings::RetrySettings;
use crate::model::agent_record::Usage;
use crate::model::attempt::{Precondition, PreconditionKind, Preconditions};
use crate::model::decision::{Action, Budget, BudgetScope, Decision, Standing, Strategy};
use crate::model::failure::{Cause, Evidence, EvidenceSource, Failure, FailureType};
use crate::model::run::{IterationStatus, Run, RunStatus};
use crate::model::state::State;
use crate::model::time::Timestamp;

/// Whether a decision was made at a time that is still to come: the clock was set back since, or was wrong then. How much
/// of its wait is over cannot be known: it counts from when that was first seen.
pub(crate) fn is_from_the_future(decision: &Decision, now: Timestamp) -> bool {
    decision.decided_at > now && decision.not_before.is_some()
}

/// Where a run stands with its budgets.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryStatus {
    /// What is allowed at this moment.
    pub standing: Standing,
    /// Failed attempts that are allowed in all, by the tightest limit of the failure's own (or the global one).
    pub max_attempts: Option<u32>,
    /// What is left in the tightest budget.
    pub attempts_left: Option<u32>,
    /// All of them.
    pub budgets: Vec<Budget>,
    /// What was decided.
    pub decision: Option<Decision>,
    /// The end of the cooldown, as far ahead as it may be.
    pub cooldown_until: Option<Timestamp>,
}

/// Why no attempt is left over all runs of a task, where that is so.
pub(crate) fn task_spent(
    account: &Account<'_>,
    retry: &RetrySettings,
    now: Timestamp,
) -> Option<String> {
    let counts = account.counts(Cause::Unknown, now, Usage::default());
    let budgets = budget::budgets(retry, None, counts);
    let mut spent = budgets.iter().filter(|budget| budget.left == 0);
    let of_task = spent.find(|budget| budget.scope == BudgetScope::Task)?;
    Some(budget::spent_text(of_task, None))
}

/// Works it out for `run` at `now`.
///
/// No wait is longer than it was decided to be: of a decision that [`is_from_the_future`], it begins at `seen`, when that
/// was first noticed. A cooldown without a decision of ours is waited for as long as a limit's reset at most.
pub fn retry_status(
    state: &State,
    run: &Run,
    retry: &RetrySettings,
    now: Timestamp,
    seen: Option<Timestamp>,
) -> RetryStatus {
    witnessed_status(state, run, retry, (now, seen), |_| Vec::new())
}

/// The status for a supervisor: `witnessed` are the causes of the failures at a subtask that it saw itself.
pub(crate) fn witnessed_status(
    state: &State,
    run: &Run,
    retry: &RetrySettings,
    (now, seen): (Timestamp, Option<Timestamp>),
    witnessed: impl Fn(&str) -> Vec<Cause>,
) -> RetryStatus {
    let last = run.last_attempt();
    // What passed, or was given up, is not what comes next.
    let is_left = run.failure.is_none()
        && last.is_some_and(|(iteration, attempt)| {
            attempt.outcome.is_some() && iteration.number != run.current_iteration
        });
    let standing = run.standing_attempt().filter(|_| !is_left);
    let subtask = standing.map_or_else(
        || run.default_subtask(run.current_iteration),
        |attempt| attempt.subtask.clone(),
    );
    let witnessed = witnessed(&subtask);
    status_of(state, run, retry, (now, seen), (&subtask, &witnessed))
}

/// Where attempts at a subtask stand, in the run as [`Item::seen_from`] has it.
pub(crate) fn item_status(
    state: &State,
    run: &Run,
    retry: &RetrySettings,
    moment: (Timestamp, Option<Timestamp>),
    subtask: &str,
) -> RetryStatus {
    status_of(state, run, retry, moment, (subtask, &[]))
}

fn status_of(
    state: &State,
    run: &Run,
    retry: &RetrySettings,
    (now, seen): (Timestamp, Option<Timestamp>),
    (subtask, witnessed): (&str, &[Cause]),
) -> RetryStatus {
    let decided = run.decision.as_ref();
    let since = decided
        .filter(|decision| is_from_the_future(decision, now))
        .map(|_| seen.unwrap_or(now).min(now));
    let cooldown_until = match decided.and_then(|decision| decision.waits_until(since)) {
        Some(until) => run.cooldown_until.map(|recorded| recorded.min(until)),
        None => run
            .cooldown_until
            .map(|recorded| recorded.min(now.plus(retry.max_park))),
    };
    let last = run.standing_attempt();
    let account = Account {
        state,
        run,
        subtask,
        session: last.map_or(&run.session, |attempt| &attempt.session),
        witnessed,
    };
    // An interruption is nobody's failure: what holds is what held before it.
    let failure = run
        .failure
        .as_ref()
        .filter(|failure| failure.kind != FailureType::Cancellation);
    let cause = failure.map_or(Cause::Unknown, |failure| failure.cause);
    let budgets = budget::budgets(retry, failure, account.counts(cause, now, Usage::default()));
    RetryStatus {
        standing: standing(run, &budgets, (now, since), cooldown_until),
        max_attempts: budgets
            .first()
            .filter(|first| is_own(first))
            .map(|first| u32::try_from(first.limit).unwrap_or(u32::MAX)),
        attempts_left: budget::left(&budgets),
        decision: run.decision.clone().or_else(|| stopped(run, &budgets, now)),
        budgets,
        cooldown_until,
    }
}

/// What stops a run that stands at no failure: time or money that is spent, what other runs used up, or a goal that no
/// iteration is left for.
fn stopped(run: &Run, budgets: &[Budget], now: Timestamp) -> Option<Decision> {
    if run.granted > 0 || run.status.has_ended() {
        return None;
    }
    let spent = budgets
        .iter()
        .find(|budget| !is_own(budget) && budget.left == 0);
    let reason = match spent {
        Some(spent) => budget::spent_text(spent, None),
        None => unreached(run)?,
    };
    Some(Decision {
        actions: vec![Action::None],
        strategy: None,
        not_before: None,
        attempts_used: budget::used(budgets),
        attempts_left: Some(0),
        stopped_by: spent.map(|spent| spent.scope),
        reason,
        decided_at: now,
    })
}

/// That every iteration is done, and the goal is not reached.
fn unreached(run: &Run) -> Option<String> {
    let goal = run
        .spec
        .until
        .as_ref()
        .filter(|_| run.status == RunStatus::Failed && run.failure.is_none())?;
    let is_over = run.is_out_of_iterations()
        || run
            .spec
            .iterations_total
            .is_some_and(|all| run.current_iteration > all);
    let done = run
        .iterations
        .statuses()
        .filter(|(_, status)| *status == IterationStatus::Completed)
        .count();
    let iterations = if done == 1 { "iteration" } else { "iterations" };
    is_over.then(|| format!("the goal was not reached in {done} {iterations}: {goal}"))
}

fn standing(
    run: &Run,
    budgets: &[Budget],
    (now, since): (Timestamp, Option<Timestamp>),
    cooldown_until: Option<Timestamp>,
) -> Standing {
    if run.is_being_fixed() {
        return Standing::NeedsPerson;
    }
    if run.granted > 0 {
        return Standing::Allowed;
    }
    if run.status == RunStatus::Escalated {
        return Standing::NeedsPerson;
    }
    let decided = match (&run.decision, cooldown_until) {
        (Some(decision), _) => decision.standing(now, since),
        (None, Some(until)) if until > now => Standing::Wait(until),
        (None, _) => Standing::Allowed,
    };
    // Other runs of the task or the session may have used up what was left when this was decided.
    let spent = budgets
        .iter()
        .any(|budget| holds_up(run, budget) && budget.left == 0);
    match decided {
        Standing::Allowed | Standing::Wait(_) if spent => Standing::Exhausted,
        decided => decided,
    }
}

/// Whether a budget, once spent, holds up what was decided. The fallback is what comes after the task's attempts.
fn holds_up(run: &Run, budget: &Budget) -> bool {
    let falls_back = run
        .decision
        .as_ref()
        .is_some_and(|decision| decision.has(Action::Fallback));
    let excepted = falls_back && budget.scope == BudgetScope::Task;
    !is_own(budget) && !excepted
}

/// Whether a budget is the failure's own rather than shared with other runs or of another kind.
fn is_own(budget: &Budget) -> bool {
    matches!(
        budget.scope,
        BudgetScope::Global | BudgetScope::Cause | BudgetScope::Rollbacks
    )
}

/// How many paths are taken out of a message.
const MAX_CANDIDATES: usize = 64;

/// Whether a failure with this cause depends on something that a user has to change.
pub(crate) fn is_conditional(cause: Cause) -> bool {
    matches!(cause, Cause::PermissionDenied | Cause::AuthFailed)
}

/// What the run waits for to change. `None` where it waits for nothing of that kind, or its budget is used up.
pub(crate) fn awaited(run: &Run) -> Option<&Preconditions> {
    let failure = run
        .failure
        .as_ref()
        .filter(|failure| is_conditional(failure.cause))?;
    let decision = run.decision.as_ref()?;
    let waits = decision.has(Action::ManualFix)
        && decision.has(Action::Escalate)
        && decision.stopped_by.is_none();
    if !waits || run.status.has_ended() || run.is_being_fixed() {
        return None;
    }
    let iteration = run.iterations.get(failure.iteration?)?;
    iteration
        .attempts
        .iter()
        .rfind(|attempt| Some(attempt.number) == failure.attempt)?
        .preconditions
        .as_deref()
}

/// The decision once something changed: the very same again. `None` while all is as it was.
pub(crate) fn reconsidered(
    run: &Run,
    before: &Preconditions,
    after: &[Precondition],
    now: Timestamp,
) -> Option<Decision> {
    let decision = run.decision.as_ref()?;
    let what = changed(&before.seen, after)?;
    Some(Decision {
        actions: vec![Action::Retry],
        strategy: Some(Strategy::RetrySame),
        reason: format!("{what} since it failed: a retry is allowed"),
        decided_at: now,
        ..decision.clone()
    })
}

/// The first thing that is not as it was, as the beginning of a sentence.
fn changed(before: &[Precondition], after: &[Precondition]) -> Option<String> {
    let state_in = |all: &[Precondition], of: &Precondition| {
        let same = |one: &&Precondition| (one.kind, &one.name) == (of.kind, &of.name);
        all.iter().find(same).and_then(|one| one.state.clone())
    };
    let known = |one: &&Precondition| one.kind != PreconditionKind::Unknown;
    before.iter().chain(after).filter(known).find_map(|one| {
        let (was, is) = (state_in(before, one), state_in(after, one));
        // Without a credential nothing passes that failed with it; whoever looks may simply not have it.
        let may_help = is.is_some()
            || !matches!(
                one.kind,
                PreconditionKind::Variable | PreconditionKind::Credentials
            );
        (was != is && may_help).then(|| sentence(one, was.as_deref(), is.as_deref()))
    })
}

fn sentence(of: &Precondition, was: Option<&str>, is: Option<&str>) -> String {
    let name = &of.name;
    match (of.kind, was, is) {
        (PreconditionKind::User, ..) => "the user or a group of the user's changed".to_owned(),
        (PreconditionKind::Permissions, Some(was), Some(is)) => {
            format!("{name} changed ({was}; now {is})")
        }
        (PreconditionKind::Variable, None, _) => format!("{name} was set"),
        (_, None, _) => format!("{name} was created"),
        (_, _, None) => format!("{name} was removed"),
        _ => format!("{name} changed"),
    }
}

/// What the messages of a failure may name as a path, and whether it is nothing else: a word may be just a word.
pub(crate) fn named_paths(failure: &Failure) -> Vec<(&str, bool)> {
    let texts = failure
        .evidence
        .iter()
        .map(|evidence| evidence.text.as_str())
        .chain([failure.message.as_str()]);
    // An exit status names nothing; what was said with it may.
    let is_bare = |one: &Evidence| one.source == EvidenceSource::Process;
    let said = failure.details.as_deref().unwrap_or_default().lines();
    let texts = texts.chain(said.filter(|_| failure.evidence.iter().all(is_bare)));
    let mut found: Vec<(&str, bool)> = Vec::new();
    for text in texts {
        let quoted = text
            .split(['\'', '"', '`', '‘', '’', '“', '”'])
            .skip(1)
            .step_by(2)
            .map(|name| (name, true));
        let parts = text
            .split(": ")
            .map(str::trim)
            .map(|part| (part, part.contains('/') && !part.contains(' ')));
        let is_end = |c: char| {
            matches!(
                c,
                ',' | ';' | ':' | '(' | ')' | '[' | ']' | '<' | '>' | '\'' | '"' | '`'
            )
        };
        let words = text
            .split_whitespace()
            .map(|word| word.trim_matches(is_end))
            .map(|word| (word, word.contains('/')));
        for (name, is_explicit) in quoted.chain(parts).chain(words) {
            let is_new = found.iter().all(|(known, _)| *known != name);
            if is_new && !name.is_empty() && !name.contains('\0') && found.len() < MAX_CANDIDATES {
                found.push((name, is_explicit && !name.contains("://")));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::classify;

    fn one(kind: PreconditionKind, name: &str, state: Option<&str>) -> Precondition {
        Precondition {
            kind,
            name: name.to_owned(),
            state: state.map(str::to_owned),
        }
    }

    #[test]
    fn the_first_thing_that_changed_is_named() {
        use PreconditionKind::{Credentials, Permissions, Unknown, User, Variable};
        let before = [
            one(Permissions, "secret", Some("mode 0000, owner 1:1")),
            one(User, "user", Some("1:1")),
            one(Credentials, "~/.netrc", None),
            one(Variable, "A_TOKEN", Some("aa")),
            one(Unknown, "x", Some("y")),
        ];
        let with = |number: usize, state: Option<&str>| {
            let mut after = before[..4].to_vec();
            after[number].state = state.map(str::to_owned);
            changed(&before, &after)
        };
        assert_eq!(
            changed(&before, &before[..4]),
            None,
            "what is not known is not looked at"
        );
        assert_eq!(
            with(0, Some("mode 0644, owner 1:1")).as_deref(),
            Some("secret changed (mode 0000, owner 1:1; now mode 0644, owner 1:1)")
        );
        assert_eq!(
            with(2, Some("1:2:3:4")).as_deref(),
            Some("~/.netrc was created")
        );
        assert_eq!(with(3, Some("bb")).as_deref(), Some("A_TOKEN changed"));
        // Whoever looks may not have what the attempt had.
        assert_eq!(with(3, None), None);
        let more = [&before[..4], &[one(Variable, "B_TOKEN", Some("cc"))]].concat();
        assert_eq!(changed(&before, &more).as_deref(), Some("B_TOKEN was set"));
    }

    #[test]
    fn paths_are_found_in_messages() {
        for (message, name, is_explicit) in [
            ("cat: secret: Permission denied", "secret", false),
            ("cat: my secret: Permission denied", "my secret", false),
            (
                "cp: cannot create regular file '/usr/bin/x y': Permission denied",
                "/usr/bin/x y",
                true,
            ),
            (
                "PermissionError: [Errno 13] Permission denied: 'out/a.txt'",
                "out/a.txt",
                true,
            ),
            ("sh: 1: ./run.sh: Permission denied", "./run.sh", true),
            (
                "Error: EACCES: permission denied, open '/srv/x'",
                "/srv/x",
                true,
            ),
        ] {
            let failure = Failure {
                message: message.to_owned(),
                ..classify::cancelled()
            };
            let found = named_paths(&failure);
            assert!(found.contains(&(name, is_explicit)), "{message}: {found:?}");
        }
    }
}
