//! Where a run stands, for people: its steps, its failure, the decision on it, and what can be done next.

use std::fmt::Write;
use std::time::Duration;

use itertools::Itertools as _;

use super::super::ui::{Ui, escape};
use super::attempts::latest_iterations;
use super::night::{in_short, look_at_text, named, tasks_text};
use super::{Table, column, moment, time_of_day, when, words};
use crate::agent;
use crate::engine::base::clock;
use crate::engine::{remote, status};
use crate::model::Failure;
use crate::model::agent_record::{Usage, short_count};
use crate::model::decision::{Budget, BudgetScope, Decision, Standing};
use crate::model::hint::{Hint, join};
use crate::model::id::{CheckpointId, RunKey};
use crate::model::run::{IterationStatus, Parked, Run, RunStatus};
use crate::model::step::Step;
use crate::model::time::Timestamp;
use crate::policy::report::{is_over, run_state};
use crate::policy::retry::{OptionCode, next_command};
use crate::policy::text::{count, size};

/// What is said of a wait that nobody is there to end.
const NOT_RUNNING: &str = "Note: recover is not running";

/// How many attempts `status` lists: with the failure and the options it fits a small terminal.
const ATTEMPTS_SHOWN: usize = 8;

/// How many lines of a failure's details are shown.
const DETAIL_LINES: usize = 6;

/// Where a run stands (B1): ten lines; all of it with --verbose, and where nothing has been tried.
pub(crate) fn status_text(ui: &Ui, status: &status::Status, now: Timestamp) -> String {
    match &status.night {
        Some(night) if !ui.verbose => {
            let (first, more) = standing(ui, status, now);
            let run = shown_run(status);
            in_short(ui, &status.run, night, &first, &more, &|command| {
                named(command, run, status.elsewhere.as_ref())
            })
        }
        // Nothing was tried, and what another run met is all there is to say.
        None if !ui.verbose && status.retry.limit.is_some() => {
            let (first, more) = standing(ui, status, now);
            let first = if first.is_empty() {
                run_state(&status.run)
            } else {
                first
            };
            let next = next(status, shown_run(status).is_some());
            let next = next.map(|next| format!("1. Resume:  {}\n", ui.command(&next)));
            format!(
                "Run {}: {first}\n{more}{}",
                status.run.key,
                next.unwrap_or_default()
            )
        }
        _ => whole_text(ui, status, now),
    }
}

/// The run that commands have to name, if they have to.
fn shown_run(status: &status::Status) -> Option<&RunKey> {
    Some(&status.run.key).filter(|_| status.is_named || status.elsewhere.is_some())
}

/// What was interrupted, and what holds git up, a line each.
fn in_the_way(status: &status::Status) -> String {
    let unfinished = status.unfinished_operation.iter().map(|unfinished| {
        format!("A {unfinished} was interrupted: recover doctor --repair finishes it.\n")
    });
    let locked = status.git_locked.iter();
    let locked = locked.map(|why| {
        let why = escape(why);
        format!("Note: {why}; recover doctor says what to do.\n")
    });
    let off = status.vault_off.iter().filter(|off| !off.starts_with('['));
    let off = off.map(|why| {
        let why = escape(why);
        format!("No copy of the repository is kept outside of it: {why}.\n")
    });
    let own = status.isolated.iter().map(|one| {
        let (state, place) = (escape(&one.state), escape(&one.worktree));
        format!("Isolated:   run {} ({state}) in {place}\n", one.key)
    });
    unfinished.chain(off).chain(locked).chain(own).collect()
}

/// What else there is to say of a state, and lines of what is going on or in the way.
fn standing(ui: &Ui, status: &status::Status, now: Timestamp) -> (String, String) {
    let run = &status.run;
    let mut more = in_the_way(status) + &tasks_text(run);
    if let Some(step) = status.manual_steps.first() {
        let _ = writeln!(more, "First:      {step}");
    }
    let unsent = |remote: &&remote::RunRemote| remote.ahead > 0 || remote.away.is_some();
    for remote in status.remotes.iter().filter(unsent) {
        let _ = writeln!(more, "Remote:     {}", remote_text(remote));
    }
    if let Some(activity) = &status.activity {
        let _ = writeln!(
            more,
            "{}",
            activity_text(activity, (run, &status.retry), now)
        );
        return (String::new(), more);
    }
    if status.retry.is_abandoned() {
        let way = next(status, false).map(|next| format!(": {} continues it", ui.command(&next)));
        let _ = writeln!(more, "{NOT_RUNNING}{}", way.unwrap_or_default());
    }
    let reason = match (status.retry.standing, &run.parked) {
        (Standing::Wait(until), Some(parked)) => Some(parked_text(parked, until, now)),
        (Standing::Wait(_), None) if status.retry.limit.is_some() => limit_text(&status.retry),
        (Standing::Allowed, Some(parked)) if !run.status.has_ended() => Some(due_text(parked, now)),
        (Standing::Wait(until), None) => {
            let next = format!("next attempt {}", moment(until, now));
            let stopped = run.stopped_for.as_ref();
            let told = |why: &String| format!("{}, {next}", escape(&clock::local_times(why)));
            Some(stopped.map_or(next.clone(), told))
        }
        _ if run.status.has_ended() || is_over(run) => None,
        _ => {
            let decided = run.decision.as_ref().map(|decision| &decision.reason);
            let reason = run.stopped_for.as_ref().or(decided).map(String::as_str);
            let reason = reason.or_else(|| why_it_stopped(&status.retry));
            // What to do then, the commands say.
            reason.map(|reason| escape(&clock::local_times(first_clause(reason))))
        }
    };
    (reason.unwrap_or_default(), more)
}

/// A sentence up to its first semicolon that is not within parentheses.
fn first_clause(sentence: &str) -> &str {
    let mut depth = 0_u32;
    let ends = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ';' && depth == 0
    };
    sentence.split(ends).next().unwrap_or(sentence)
}

/// All that is known. What matters most comes last, where a terminal stands still.
pub(crate) fn whole_text(ui: &Ui, status: &status::Status, now: Timestamp) -> String {
    let run = &status.run;
    let mut text = night_text(ui, status) + &tasks_text(run);
    let iteration = if run.status.has_ended() {
        String::new()
    } else {
        format!(
            ", iteration {}{}",
            run.shown_iteration(),
            run.spec.of_total()
        )
    };
    let is_still = matches!(run.status, RunStatus::Paused | RunStatus::Parked);
    let state = status.night.as_ref().map(|night| night.state.clone());
    let _ = writeln!(
        text,
        "Run {}: {}{iteration}, started {}",
        run.key,
        state.unwrap_or_else(|| run_state(run)),
        when(run.created_at, now)
    );
    if let Some(reason) = run
        .stopped_for
        .as_ref()
        .filter(|_| status.activity.is_none() && is_still)
    {
        let _ = writeln!(text, "Stopped: {}", escape(&clock::local_times(reason)));
    }
    if let Some(change) = run.term_changes.last() {
        let what = escape(&change.changes.join(", "));
        let _ = writeln!(text, "Changed: {what} ({})", when(change.at, now));
    }
    text.push_str(&in_the_way(status));
    let id = |id: &Option<CheckpointId>| {
        id.as_ref()
            .map_or_else(|| "none".to_owned(), |id| ui.id(id))
    };
    let latest = id(&status.latest);
    let good = id(&status.last_good);
    let attempts = run.iterations.count_attempts();
    if attempts > 0 {
        if attempts > ATTEMPTS_SHOWN {
            let _ = writeln!(
                text,
                "The latest {ATTEMPTS_SHOWN} of {attempts} attempts (recover report has all):"
            );
        }
        text.push_str(&latest_iterations(ui, run, ATTEMPTS_SHOWN));
    }
    if !run.steps.is_empty() {
        let _ = write!(text, "\n{}", steps_table(ui, run, now));
    }
    let _ = writeln!(
        text,
        "\nCheckpoints: {} (latest {latest}, last good {good})",
        status.checkpoint_count
    );
    if let Some(bytes) = status.size_bytes {
        let _ = writeln!(text, "Size:        {}", size(bytes));
    }
    for remote in &status.remotes {
        let _ = writeln!(text, "Remote:      {}", remote_text(remote));
    }
    let budgets = status
        .retry
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.budgets);
    let used = budgets
        .iter()
        .filter(|budget| matters(run, budget, budgets))
        .map(used)
        .join(", ");
    if !used.is_empty() {
        let _ = writeln!(text, "Used:        {used}");
    }
    text.push_str(&usage_text(status));
    text.push_str(&failure_text(ui, status, now));
    let stands = match &status.activity {
        Some(activity) => activity_text(activity, (run, &status.retry), now),
        None if run.status.is_done() => {
            let done = run
                .iterations
                .statuses()
                .filter(|(_, stands)| *stands == IterationStatus::Completed)
                .count();
            let iterations = count(
                run.spec
                    .iterations_total
                    .map_or(done, |total| total as usize),
                "iteration",
            );
            let of = if run.spec.iterations_total.is_none() {
                String::new()
            } else {
                format!("{done} of ")
            };
            format!("Done: {of}{iterations} in {}.", count(attempts, "attempt"))
        }
        None if run.status == RunStatus::Closed => {
            "It is closed; recover resume opens it again.".to_owned()
        }
        None => {
            let next = next(status, true).map(|next| format!("\nNext: {}", ui.command(&next)));
            standing_text(&status.retry, now) + &next.unwrap_or_default()
        }
    };
    let _ = writeln!(text, "\n{stands}");
    text
}

/// What the agents used up, where one is at work: unknown is no zero.
fn usage_text(status: &status::Status) -> String {
    let (run, used) = (&status.run, status.run.usage());
    let is_agent = agent::detect(
        Some(&join(&run.spec.command)),
        run.spec.agent.as_deref(),
        b"",
    )
    .is_some();
    if used == Usage::default() && !is_agent {
        return String::new();
    }
    let unknown = || "unknown".to_owned();
    let of_session = status.session.text().filter(|_| status.session != used);
    let of_session = of_session
        .map(|text| format!("; session {}: {text}", escape(&run.session)))
        .unwrap_or_default();
    let cost = used
        .cost_usd()
        .map_or_else(unknown, |cost| format!("${cost:.2}"));
    let tokens = used.tokens.map_or_else(unknown, |tokens| {
        let [input, output, read, written, total] = [
            tokens.input,
            tokens.output,
            tokens.cache_read,
            tokens.cache_write,
            tokens.total,
        ]
        .map(short_count);
        format!("{total} (input {input}, output {output}, from cache {read}, to cache {written})")
    });
    format!("Cost:        {cost}, tokens: {tokens}{of_session}\n")
}

/// How it stands with a remote.
fn remote_text(remote: &remote::RunRemote) -> String {
    let mut text = escape(&remote.remote);
    text.push_str(if remote.held {
        ", held here"
    } else {
        ", not held here"
    });
    if remote.ahead > 0 {
        text.push_str(&format!(
            ", {} not sent",
            count(usize::try_from(remote.ahead).unwrap_or(usize::MAX), "event")
        ));
    }
    if let Some(said) = &remote.away {
        text.push_str(&format!("; it cannot be reached: {}", escape(said)));
    }
    text
}

/// `for the provider since 02:10 (529), next probe 03:25`
fn parked_text(parked: &Parked, until: Timestamp, now: Timestamp) -> String {
    format!(
        "for {} since {} ({}), next probe {}",
        parked.reason.what(),
        time_of_day(parked.since, now),
        escape(&parked.what),
        time_of_day(until, now)
    )
}

/// The same once its time has passed: `for the provider since 02:10 (529), due since 03:25`.
fn due_text(parked: &Parked, now: Timestamp) -> String {
    let (what, since) = (parked.reason.what(), time_of_day(parked.since, now));
    let (of, until) = (escape(&parked.what), time_of_day(parked.until, now));
    format!("for {what} since {since} ({of}), due since {until}")
}

/// `waiting for claude's limit, met by run night in ~/shop, until 03:40`
fn limit_text(retry: &status::Retry) -> Option<String> {
    let limit = retry.limit.as_ref()?;
    Some(escape(&clock::local_times(&limit.text)))
}

fn activity_text(
    activity: &status::Activity,
    (run, retry): (&Run, &status::Retry),
    now: Timestamp,
) -> String {
    let parked = run.parked.as_ref();
    let what = match (activity.what, &activity.check, activity.waiting_until) {
        (_, Some(check), _) => format!("check {}", escape(check)),
        ("waiting", ..) if parked.is_some() => parked.map_or_else(String::new, |parked| {
            format!("waiting {}", parked_text(parked, parked.until, now))
        }),
        ("waiting", ..) if retry.limit.is_some() => limit_text(retry).unwrap_or_default(),
        ("waiting", _, Some(until)) => format!("waiting until {}", moment(until, now)),
        ("waiting", ..) => {
            let what = activity.waiting_for.as_deref().unwrap_or("its claim");
            format!("waiting for {}", escape(what))
        }
        (what, ..) => what.to_owned(),
    };
    let mut text = format!("At work (pid {}): {what}", activity.pid);
    if let (Some(at), Some(elapsed)) = (activity.started_at, activity.elapsed_ms) {
        text.push_str(&format!(
            "; the attempt began {}",
            moment(at, at.plus(Duration::from_millis(elapsed)))
        ));
    }
    if let Some(deadline) = activity.deadline_at {
        text.push_str(&format!("; its time is up {}", moment(deadline, now)));
    }
    if let Some(line) = &activity.last_line {
        text.push_str(&format!("\nLast line: {line}"));
    }
    text
}

/// What came of it, and what a person must look at.
fn night_text(ui: &Ui, status: &status::Status) -> String {
    let Some(night) = &status.night else {
        return String::new();
    };
    // Who named no run means this one again.
    let next = next(status, status.is_named);
    ui.plain(&night.line(next.map(|next| ui.command(&next)).as_deref()))
        + "\n"
        + &look_at_text(ui, &night.to_look_at)
        + "\n"
}

/// The command to go on with, here; it names the run where that has to be.
fn next(status: &status::Status, is_named: bool) -> Option<Hint> {
    let words = next_command(&status.run, status.outlook)?;
    let hint = Hint::recover(words)
        .run(Some(&status.run.key).filter(|_| is_named || status.elsewhere.is_some()));
    Some(match &status.elsewhere {
        Some(place) => hint.at(place.clone()),
        None => hint,
    })
}

/// Whether a budget may be what stops the run: a limit that a user set, or the one that is reached first.
fn matters(run: &Run, budget: &Budget, all: &[Budget]) -> bool {
    match budget.scope {
        BudgetScope::WallTime | BudgetScope::Cost | BudgetScope::Tokens | BudgetScope::Waiting => {
            true
        }
        _ if run.status.is_done() => false,
        // What is never tried again by itself is not counted: the failure says so.
        BudgetScope::Global | BudgetScope::Cause | BudgetScope::Rollbacks => budget.limit > 0,
        BudgetScope::Task | BudgetScope::Session => {
            let own = all
                .iter()
                .find(|own| matches!(own.scope, BudgetScope::Global | BudgetScope::Cause));
            own.is_none_or(|own| budget.left < own.left)
        }
    }
}

/// `1 of 3 attempts for this cause`.
fn used(budget: &Budget) -> String {
    let what = match budget.scope {
        BudgetScope::Global => " for the iteration",
        BudgetScope::Cause => " for this cause",
        BudgetScope::Task => " for the task",
        BudgetScope::Session => " for the session",
        BudgetScope::Rollbacks
        | BudgetScope::WallTime
        | BudgetScope::Cost
        | BudgetScope::Tokens
        | BudgetScope::Waiting => "",
    };
    format!(
        "{} of {} {}{what}",
        budget.used,
        budget.limit,
        budget.scope.unit()
    )
}

/// What failed, a line for each thing that is known of it.
pub(in crate::cli) fn failure_lines(failure: &Failure, now: Timestamp) -> String {
    let mut text = String::new();
    let severity = failure.severity.as_str();
    let kind = (failure.kind.as_str(), failure.cause.as_str());
    let _ = writeln!(
        text,
        "  type       {} ({}), severity {severity}",
        kind.0, kind.1
    );
    if let Some(number) = failure.iteration {
        let _ = writeln!(
            text,
            "  iteration  {number}, attempt {}",
            failure.attempt.unwrap_or(1)
        );
    }
    if let Some(at) = failure.at {
        let _ = writeln!(text, "  time       {}", moment(at, now));
    }
    let _ = writeln!(text, "  error      {}", escape(&failure.message));
    let details = failure
        .details
        .iter()
        .flat_map(|details| details.lines())
        .filter(|line| !line.trim().is_empty());
    for line in details
        .filter(|line| !failure.message.contains(line.trim()))
        .take(DETAIL_LINES)
    {
        let _ = writeln!(text, "             {}", escape(line));
    }
    let recoverable = if failure.recoverable {
        "recoverable"
    } else {
        "not recoverable"
    };
    let _ = writeln!(
        text,
        "  suggested  {} ({recoverable})",
        failure.suggested_action.as_str()
    );
    text
}

/// Why it failed, what was decided, and what can be done next.
fn failure_text(ui: &Ui, status: &status::Status, now: Timestamp) -> String {
    let run = &status.run;
    let mut text = String::new();
    if let Some(failure) = &run.failure {
        text += &format!("\nFailure\n{}", failure_lines(failure, now));
    }
    if let Some(decision) = &run.decision {
        let _ = writeln!(
            text,
            "  decision   {}: {}",
            actions(decision),
            escape(&clock::local_times(&decision.reason))
        );
    }
    if !status.options.is_empty() {
        let _ = writeln!(text, "\nWhat you can do next");
        for option in &status.options {
            let mark = if option.recommended { "*" } else { " " };
            let reason = option
                .reason
                .as_ref()
                .map(|reason| format!(" (not now: {reason})"))
                .unwrap_or_default();
            // That of a strategy is known by its name.
            let command = match option.strategy {
                OptionCode::Strategy(_) => String::new(),
                OptionCode::Other(_) => format!(": {}", ui.command(&option.command)),
            };
            let _ = writeln!(
                text,
                " {mark} {:<22}{}{reason}{command}",
                option.strategy.as_str(),
                option.description
            );
        }
    }
    if !status.manual_steps.is_empty() {
        text.push('\n');
        text.push_str(&manual_steps_text(&status.manual_steps));
    }
    text
}

/// What a person does about a failure that nothing automatic helps against, a line each.
pub(in crate::cli) fn manual_steps_text(steps: &[String]) -> String {
    let steps = steps
        .iter()
        .enumerate()
        .map(|(at, step)| format!("  {}. {step}\n", at + 1));
    ["Manual steps\n".to_owned()]
        .into_iter()
        .chain(steps)
        .collect()
}

/// The actions of a decision as words.
pub(crate) fn actions(decision: &Decision) -> String {
    let mut words = decision.actions.iter().map(|action| action.as_str());
    words.join(", ")
}

/// `retry-status`.
pub(crate) fn retry_text(retry: &status::Retry, now: Timestamp) -> String {
    let mut text = standing_text(retry, now) + "\n";
    if let Some(status) = &retry.status {
        for budget in &status.budgets {
            let (scope, unit) = (budget.scope.as_str(), budget.scope.unit());
            let _ = writeln!(
                text,
                "{scope:<12}{} of {} {unit} used",
                budget.used, budget.limit
            );
        }
        if let Some(decision) = &status.decision {
            let _ = writeln!(
                text,
                "decision    {} ({})",
                actions(decision),
                escape(&clock::local_times(&decision.reason))
            );
        }
    }
    if let Some(error) = retry.at().and_then(|run| run.last_error.as_ref()) {
        let _ = writeln!(text, "last error  {}", escape(error));
    }
    text
}

/// Why a run stopped that nothing was decided on: no failure did it.
fn why_it_stopped(retry: &status::Retry) -> Option<&str> {
    retry.at().filter(|run| run.decision.is_none())?;
    Some(retry.status.as_ref()?.decision.as_ref()?.reason.as_str())
}

fn standing_text(retry: &status::Retry, now: Timestamp) -> String {
    if let Some(pid) = retry.under_way {
        return format!("An attempt is under way (pid {pid}).");
    }
    match retry.standing {
        Standing::Allowed => match why_it_stopped(retry) {
            Some(reason) => format!("It stopped: {reason}."),
            None => "An attempt is allowed now.".to_owned(),
        },
        Standing::Wait(until) => {
            let parked = retry.run.as_ref().and_then(|run| run.parked.as_ref());
            let wait = match parked {
                _ if retry.limit.is_some() => {
                    format!("Wait: {}.", limit_text(retry).unwrap_or_default())
                }
                Some(parked) => format!("Wait: waiting {}.", parked_text(parked, until, now)),
                None => format!(
                    "Wait: the next attempt is allowed at {}.",
                    moment(until, now)
                ),
            };
            let gone = retry
                .is_abandoned()
                .then(|| format!("\n{NOT_RUNNING}: recover resume --wait continues it."));
            wait + &gone.unwrap_or_default()
        }
        Standing::Exhausted => "No attempt is left.".to_owned(),
        Standing::NeedsPerson => "A person is needed.".to_owned(),
    }
}

/// The steps of a run, in the order in which they began.
pub(super) fn steps_table(ui: &Ui, run: &Run, now: Timestamp) -> String {
    let mut table = Table::new(
        ui,
        &[
            column("STEP", 0),
            words("STATUS", 1),
            column("RUNS", 4),
            column("ENDED", 3),
            column("RESULT", 2),
        ],
    );
    for step in &run.steps {
        table.add_row([
            escape(&step.start.name),
            status_of(step),
            step.executions.to_string(),
            when(step.ended_at.unwrap_or(step.started_at), now),
            step.exit_code
                .map(|code| format!("exit {code}"))
                .unwrap_or_default(),
        ]);
    }
    table.text()
}

fn status_of(step: &Step) -> String {
    let more = match () {
        () if step.compensating.is_some() => " (its effect is being undone)",
        () if step.crossed => " (crossed)",
        () if step.rolled_back => " (files restored)",
        () => "",
    };
    format!("{}{more}", step.status.as_str())
}
