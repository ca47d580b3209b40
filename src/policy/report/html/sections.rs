//! The sections of the page, in their order: what became of the run, what to do, its iterations, and the rest, folded.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use maud::{Markup, html};

use super::{Line, Lines, Page, badge, command, fact, folded, mono, none, section, tone};
use crate::model::agent_record::usage_text;
use crate::model::decision::Budget;
use crate::model::{IterationStatus, RepoPath};
use crate::policy::report::data::{
    AttemptLine, AttemptRef, CheckpointLine, ErrorDetails, FailureLine, FileLine, Moment,
    MomentKind, Recommended, Report, Stuck, Work,
};
use crate::policy::report::night::Purpose;
use crate::policy::report::words;
use crate::policy::secrets::redact;
use crate::policy::text::{beginning, escape_lines};

/// How many lines of a patch, or of a log's end, are on the page.
const MAX_LINES: usize = 400;
/// The longest line of them that is shown whole.
const MAX_CHARS: usize = 2_000;

impl Page<'_> {
    pub(super) fn body(&self) -> Markup {
        html! {
            (self.header())
            main {
                (self.to_look_at())
                (self.tasks())
                (self.iterations())
                (self.files())
                (self.other_actions())
                (self.checkpoints())
                (self.facts())
                (self.timeline())
            }
            footer { "Made by recover on " (self.date_time(self.report.generated_at)) "." }
        }
    }

    /// What became of it, what to do now, and the figures.
    fn header(&self) -> Markup {
        let report = self.report;
        let summary = &report.summary;
        let (tone, state) = standing(report);
        html! {
            header {
                p.kind {
                    (report.title())
                    @if let Some(subtask) = &report.subtask { " · subtask " (Line(subtask)) }
                }
                h1 { (Line(summary.run.run_id.as_str())) " " (badge(tone, &state)) }
                // Of a run that is over the figures say it all.
                @if !state.starts_with("complete") { p.lead { (Line(&summary.headline)) } }
                (self.figures())
                (self.next())
            }
        }
    }

    /// What to do with it: what is recommended first.
    fn next(&self) -> Markup {
        let report = self.report;
        let commands = report
            .night
            .as_ref()
            .map_or(&[][..], |night| &night.commands);
        let first = report.recommended_actions.first();
        html! {
            div.best {
                @for one in commands {
                    div {
                        p {
                            (purpose(one.purpose))
                            @if one.recommended { " " (badge("calm", "recommended")) }
                        }
                        (command(&one.command.to_string()))
                    }
                }
                @if commands.is_empty() {
                    @if let Some(action) = first { (way(action)) } @else { p { "Nothing is left to do." } }
                }
            }
        }
    }

    fn figures(&self) -> Markup {
        let summary = &self.report.summary;
        let night = self.report.night.as_ref();
        let passed = html! {
            (summary.iterations.completed)
            " " small { "of " (summary.run.iterations_total.map_or(summary.iterations.begun, |total| total as usize)) }
        };
        let given_up = summary.iterations.skipped;
        let cost = summary.cost_usd.map(|cost| format!("${cost:.2}"));
        let cost = cost.or_else(|| usage_text(None, summary.tokens));
        let files = night.and_then(|night| night.files);
        let took = night.map_or(summary.duration_ms, |night| night.duration_ms);
        let term = format!("since {}", self.date_time(summary.started_at));
        html! {
            dl.figures {
                (fact("iterations passed", passed))
                @if given_up > 0 { (fact("given up", given_up)) }
                (fact("cost", cost.unwrap_or_else(|| "not recorded".to_owned())))
                (fact(&term, words::span(took)))
                @if let Some(files) = files {
                    @let changed = html! {
                        (files.changed) " "
                        @if let (Some(added), Some(deleted)) = (files.added, files.deleted) { (lines_of(added, deleted)) }
                    };
                    (fact("files changed", changed))
                }
            }
        }
    }

    /// What a person should see before anything is accepted, and what the run stopped at.
    fn to_look_at(&self) -> Markup {
        let report = self.report;
        let notes = report
            .night
            .as_ref()
            .map_or(&[][..], |night| &night.to_look_at);
        // What a note says already is not said again.
        let is_noted = |iteration: Option<u32>| {
            iteration.is_some() && notes.iter().any(|note| note.iteration == iteration)
        };
        let failure = report.summary.failure.as_ref();
        let failure = failure.filter(|failure| !is_noted(failure.iteration));
        let stuck_subtasks = match notes {
            [] => &report.stuck_subtasks[..],
            _ => &[],
        };
        if notes.is_empty() && failure.is_none() && stuck_subtasks.is_empty() {
            return Markup::default();
        }
        let content = html! {
            @if !notes.is_empty() {
                ul.look { @for one in notes { li { (Line(&self.local_times(&one.text.to_string()))) } } }
            }
            @if let Some(failure) = failure { (self.failed(failure)) }
            @for subtask in stuck_subtasks { (stuck(subtask)) }
        };
        section("look", "To look at", None, content)
    }

    fn failed(&self, failure: &FailureLine) -> Markup {
        let place = match (failure.iteration, failure.attempt) {
            (Some(iteration), Some(attempt)) => format!("iteration {iteration}, attempt {attempt}"),
            (Some(iteration), None) => format!("iteration {iteration}"),
            _ => String::new(),
        };
        let at = failure.at.map(|at| self.date_time(at)).unwrap_or_default();
        let mut words = vec![failure.cause.as_str().to_owned(), place, at];
        let conditions = failure.conditions.iter();
        words.extend(conditions.map(|condition| words::condition(*condition)));
        words.retain(|word| !word.is_empty());
        html! {
            div.failure {
                p.message { (Line(&failure.message)) }
                (failing(failure))
                p.more { (Line(&words.join(" · "))) }
            }
        }
    }

    /// The tasks of a run that works through a list.
    fn tasks(&self) -> Markup {
        let tasks = &self.report.tasks;
        if tasks.is_empty() {
            return Markup::default();
        }
        let content = html! {
            ul.look { @for one in tasks { li { (Line(&words::task(one))) } } }
        };
        section("tasks", "Tasks", Some(words::tasks_counted(tasks)), content)
    }

    /// Every iteration with its attempts, oldest first: those that passed are folded.
    fn iterations(&self) -> Markup {
        let report = self.report;
        let mut iterations: BTreeMap<u32, Vec<&AttemptLine>> = BTreeMap::new();
        for attempt in &report.attempts {
            iterations
                .entry(attempt.iteration)
                .or_default()
                .push(attempt);
        }
        let content = html! {
            @if iterations.is_empty() { (none("Nothing has been tried yet.")) }
            @if report.attempts_omitted > 0 {
                @let before = words::count(report.attempts_omitted, "attempt");
                (none(&format!("The latest ones; {before} came before.")))
            }
            @for (number, attempts) in &iterations { (self.iteration(*number, attempts)) }
        };
        let count = report.summary.attempts.total;
        section(
            "iterations",
            "Iterations",
            Some(words::count(count, "attempt")),
            content,
        )
    }

    fn iteration(&self, number: u32, attempts: &[&AttemptLine]) -> Markup {
        let Some(last) = attempts.last() else {
            return Markup::default();
        };
        let (tone, word) = (
            tone_of(last.iteration_status),
            words::iteration_state(last.iteration_status),
        );
        let reason = last.failure.as_ref().map(|failure| &failure.message);
        let what = reason.or(last.approach.as_ref());
        let mut more = Vec::new();
        if attempts.len() > 1 {
            more.push(words::count(attempts.len(), "attempt"));
        }
        let took: u64 = attempts
            .iter()
            .filter_map(|attempt| attempt.duration_ms)
            .sum();
        more.push(words::span(took));
        let costs: Vec<f64> = attempts
            .iter()
            .filter_map(|attempt| attempt.cost_usd)
            .collect();
        if !costs.is_empty() {
            more.push(format!("${:.2}", costs.iter().sum::<f64>()));
        }
        html! {
            details class={ "iteration " (tone) } open[tone != "good"] {
                summary {
                    span.name { "Iteration " (number) } " "
                    (badge(tone, word)) " "
                    @if let Some(what) = what { span.what { (Line(&beginning(what, 200))) } " " }
                    small { (more.join(" · ")) }
                }
                @for one in attempts { (self.attempt(one, attempts.len() > 1)) }
            }
        }
    }

    fn attempt(&self, attempt: &AttemptLine, is_named: bool) -> Markup {
        let tone = tone(attempt.outcome);
        let name = AttemptRef {
            iteration: attempt.iteration,
            attempt: attempt.number,
        };
        let mut more = vec![self.date_time(attempt.started_at)];
        more.extend(attempt.duration_ms.map(words::span));
        more.extend(usage_text(attempt.cost_usd, attempt.tokens));
        let output = self
            .report
            .error_details
            .iter()
            .find(|error| error.attempt == name);
        let work = self.report.work.get(&name);
        html! {
            article class={ "attempt " (tone) } {
                @if is_named {
                    h3 { "Attempt " (attempt.number) " " (badge(tone, words::outcome(attempt.outcome))) }
                }
                p.more { (more.join(" · ")) }
                @if let Some(approach) = &attempt.approach { p.approach { (Line(approach)) } }
                @if let Some(failure) = attempt.failure.as_ref().filter(|failure| failure.failing.is_empty()) {
                    p.message { (Line(&failure.message)) }
                }
                (checks(attempt))
                @if let Some(failure) = &attempt.failure { (failing(failure)) }
                @if let Some(output) = output { (output_of(output)) }
                @if let Some(work) = work { (done(attempt, work)) }
                dl.facts { (self.attempt_facts(attempt)) }
            }
        }
    }

    fn attempt_facts(&self, attempt: &AttemptLine) -> Markup {
        let conditions = words::conditions(&attempt.conditions, &attempt.notes);
        html! {
            @if let Some(failure) = &attempt.failure { (fact("Failure", Line(&cause(attempt, failure)))) }
            @if !conditions.is_empty() { (fact(words::conditions_title(&attempt.conditions), Line(&conditions))) }
            @if let Some(decision) = &attempt.decision {
                @let decided = format!("{}: {}", words::actions(&decision.actions), decision.reason);
                (fact("Decision", Line(&self.local_times(&decided))))
            }
            @if let Some(id) = &attempt.checkpoint_id { (fact("Checkpoint", mono(id.as_str()))) }
            @if let Some(log) = &attempt.log_path { (fact("Log file", mono(log))) }
        }
    }

    fn files(&self) -> Markup {
        let files = &self.report.files;
        if files.entries.is_empty() {
            return Markup::default();
        }
        let mut dependencies = files.dependencies.iter().map(RepoPath::to_lossy);
        let list = html! {
            @if !files.dependencies.is_empty() {
                p { "Dependencies: " (dependencies.join(", ")) }
            }
            ul.files {
                @for entry in &files.entries { (file(entry)) }
                @if files.total > files.entries.len() {
                    li.none { "and " (files.total - files.entries.len()) " more" }
                }
            }
        };
        folded("files", "Files involved", &files.total.to_string(), list)
    }

    /// What can be done beside what is recommended.
    fn other_actions(&self) -> Markup {
        let commands = self
            .report
            .night
            .as_ref()
            .map_or(&[][..], |night| &night.commands);
        let is_shown = |command: &String| {
            commands
                .iter()
                .any(|one| one.command.to_string() == *command)
        };
        // Without commands the first one is at the top.
        let actions = self
            .report
            .recommended_actions
            .iter()
            .skip(usize::from(commands.is_empty()));
        let actions: Vec<&Recommended> = actions
            .filter(|action| !action.command.as_ref().is_some_and(is_shown))
            .collect();
        if actions.is_empty() {
            return Markup::default();
        }
        let list = html! { ul.actions { @for action in &actions { li { (way(action)) } } } };
        folded(
            "actions",
            "What else can be done",
            &actions.len().to_string(),
            list,
        )
    }

    /// Where to go back to.
    fn checkpoints(&self) -> Markup {
        let all = &self.report.checkpoints;
        let named = [
            ("Last good", &all.last_good),
            ("Initial", &all.initial),
            ("Latest", &all.latest),
        ];
        let list = html! {
            dl.facts {
                @for (name, checkpoint) in named {
                    (fact(name, html! { @if let Some(checkpoint) = checkpoint { (self.point(checkpoint)) } @else { "none" } }))
                }
            }
        };
        folded("checkpoints", "Checkpoints", &all.count.to_string(), list)
    }

    fn point(&self, checkpoint: &CheckpointLine) -> Markup {
        html! {
            (mono(checkpoint.id.as_str())) " "
            small {
                "@" (checkpoint.seq) " · " (checkpoint.verdict.as_str())
                " · after iteration " (checkpoint.after_iteration) " · " (self.date_time(checkpoint.created_at))
            }
        }
    }

    fn facts(&self) -> Markup {
        let summary = &self.report.summary;
        let run = &summary.run;
        let decision = summary.decision.as_ref().map(|decision| {
            let until = decision.not_before;
            let until = until.map(|until| format!(", not before {}", self.date_time(until)));
            words::actions(&decision.actions) + &until.unwrap_or_default()
        });
        let is_placed = run.phase != "-" || run.lane != "-";
        let place = is_placed.then(|| format!("{} / {}", run.phase, run.lane));
        let content = html! {
            dl.facts {
                (fact("Status", run.status.replace('_', " ")))
                @if let Some(reason) = &summary.stopped_because { (fact("Why it stopped", Line(&self.local_times(reason)))) }
                @if let Some(decision) = decision { (fact("Decision", Line(&decision))) }
                @if let Some(task) = &run.task_id { (fact("Task", Line(task.as_str()))) }
                @if let Some(place) = place { (fact("Phase and lane", Line(&place))) }
                @if let Some(command) = &run.command { (fact("Command", mono(command))) }
                @if let Some(used) = usage_text(summary.cost_usd, summary.tokens) { (fact("Cost", used)) }
                (fact("Work tree", mono(&run.worktree.to_string())))
                (fact("Last event", self.date_time(summary.last_event_at)))
            }
            @if !summary.budgets.is_empty() {
                div.budgets {
                    @for budget in &summary.budgets { (meter(budget, summary.stopped_by == Some(budget.scope))) }
                }
            }
        };
        folded("summary", "About the run", "", content)
    }

    /// Every moment, oldest first, with the date where a day begins.
    fn timeline(&self) -> Markup {
        let report = self.report;
        let same_day = |one: &Moment, next: &Moment| self.date(one.at) == self.date(next.at);
        let content = html! {
            @if report.timeline_omitted > 0 {
                @let before = words::count(report.timeline_omitted, "moment");
                (none(&format!("The latest part; {before} came before.")))
            }
            ol.timeline {
                @for day in report.timeline.chunk_by(same_day) {
                    li.day { (self.date(day[0].at)) " " (self.zone(day[0].at)) }
                    @for moment in day { (self.moment(moment)) }
                }
            }
        };
        folded(
            "timeline",
            "Timeline",
            &report.timeline.len().to_string(),
            content,
        )
    }

    fn moment(&self, moment: &Moment) -> Markup {
        let kind: &str = moment.kind.into();
        let tone = match moment.kind {
            MomentKind::Attempt => tone(moment.outcome),
            _ => kind,
        };
        let id = moment.checkpoint_id.as_ref();
        let id = id.filter(|_| moment.kind == MomentKind::Checkpoint);
        html! {
            li class={ (kind) " " (tone) } {
                time datetime=(moment.at) { (self.time(moment.at)) }
                div {
                    p {
                        (Line(&self.local_times(&moment.title)))
                        @if let Some(took) = moment.duration_ms { " " small { (words::span(took)) } }
                        @if let Some(id) = id { " " (mono(id.as_str())) }
                    }
                    @if let Some(detail) = &moment.detail { p.more { (Line(&self.local_times(detail))) } }
                }
            }
        }
    }
}

/// What became of a run, and what that looks like.
fn standing(report: &Report) -> (&'static str, String) {
    let status = report.summary.run.status;
    let state = report.night.as_ref().map(|night| night.state.clone());
    let state = state.unwrap_or_else(|| status.replace('_', " "));
    let is_whole = report.summary.iterations.skipped == 0;
    let tone = match status {
        _ if state.starts_with("complete") && !is_whole => "warn",
        "complete" | "accepted" => "good",
        "failed" | "escalated" | "blocked" => "bad",
        "cancelled" | "parked" | "paused" | "rolled_back" => "warn",
        _ => "calm",
    };
    (tone, state)
}

/// How what became of an iteration looks.
fn tone_of(status: IterationStatus) -> &'static str {
    match status {
        IterationStatus::Completed => "good",
        IterationStatus::Failed | IterationStatus::Skipped => "bad",
        IterationStatus::Cancelled => "warn",
        _ => "calm",
    }
}

fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Review => "Read what it made",
        Purpose::Keep => "Keep what it made",
        Purpose::Fix => "Have what failed fixed",
        Purpose::Resume => "Go on",
        Purpose::Discard => "Discard what it made",
    }
}

/// Something to do, with its command.
fn way(action: &Recommended) -> Markup {
    html! {
        p {
            (Line(&action.description))
            @if action.by_policy { " " (badge("calm", "recommended")) }
        }
        @if let Some(words) = &action.command { (command(words)) }
    }
}

fn stuck(stuck: &Stuck) -> Markup {
    html! {
        div.stuck {
            p { (badge("bad", "given up")) " " (mono(&stuck.subtask_id)) }
            p.more { (Line(&stuck.reason)) " · after " (words::count(stuck.attempt_count, "attempt")) }
        }
    }
}

/// `+12 −3`.
fn lines_of(added: u64, deleted: u64) -> Markup {
    html! { small { span.added { "+" (added) } " " span.removed { "−" (deleted) } } }
}

fn file(file: &FileLine) -> Markup {
    html! {
        li {
            (mono(&file.path.to_lossy())) " "
            small {
                (file.kind.as_str()) " · "
                @if let (Some(added), Some(deleted)) = (file.added, file.deleted) { (lines_of(added, deleted)) }
                @else { "binary" }
                " · attempt " (file.attempt_names())
            }
        }
    }
}

/// The tests that fail, by their names.
fn failing(failure: &FailureLine) -> Markup {
    html! {
        @if !failure.failing.is_empty() {
            ul.failing { @for name in &failure.failing { li { (mono(name)) } } }
        }
    }
}

/// What each check said.
fn checks(attempt: &AttemptLine) -> Markup {
    if attempt.feedback.is_empty() {
        return Markup::default();
    }
    html! {
        ul.checks {
            @for check in &attempt.feedback {
                @let (tone, word) = if check.passed { ("good", "passed") } else { ("bad", "failed") };
                li { (badge(tone, word)) " " (mono(&check.name)) " " (Line(&check.summary)) }
            }
        }
    }
}

/// The output of what failed.
fn output_of(error: &ErrorDetails) -> Markup {
    html! {
        @if let Some(output) = &error.text { pre.output tabindex="0" { (Lines(output)) } }
        @if !error.evidence.is_empty() {
            p.more {
                "Recognised by "
                @for (number, evidence) in error.evidence.iter().enumerate() {
                    @if number > 0 { ", " }
                    (mono(&evidence.rule))
                }
            }
        }
    }
}

/// The patch and the log, both folded.
fn done(attempt: &AttemptLine, work: &Work) -> Markup {
    let changes = attempt.changes.map(words::changes).unwrap_or_default();
    html! {
        @if let Some(patch) = work.patch.as_deref().filter(|patch| !patch.is_empty()) {
            details.work { summary { "Diff " small { (changes) } } (diff(patch)) }
        }
        @if let Some(log) = work.log.as_deref().filter(|log| !log.trim().is_empty()) {
            details.work { summary { "Log" } (log_end(log)) }
        }
    }
}

fn diff(patch: &str) -> Markup {
    // As a whole first: what is secret can be more than a line.
    let patch = escape_lines(&redact(patch));
    let looks = |line: &str| match line.as_bytes().first() {
        Some(b'+') if !line.starts_with("+++ ") => "added",
        Some(b'-') if !line.starts_with("--- ") => "removed",
        Some(b'@') => "hunk",
        _ if line.starts_with("diff ") => "file",
        _ => "",
    };
    let left = patch.lines().count().saturating_sub(MAX_LINES);
    html! {
        pre.diff tabindex="0" {
            @for line in patch.lines().take(MAX_LINES).map(|line| beginning(line, MAX_CHARS)) {
                @let class = looks(&line);
                @if class.is_empty() { (line) "\n" } @else { span class=(class) { (line) "\n" } }
            }
        }
        @if left > 0 { (none(&format!("{} more", words::count(left, "line")))) }
    }
}

fn log_end(log: &str) -> Markup {
    let log = escape_lines(&redact(log));
    let left = log.lines().count().saturating_sub(MAX_LINES);
    html! {
        @if left > 0 { (none(&format!("The last {MAX_LINES} lines; {left} came before."))) }
        pre.output tabindex="0" { @for line in log.lines().skip(left) { (beginning(line, MAX_CHARS)) "\n" } }
    }
}

fn cause(attempt: &AttemptLine, failure: &FailureLine) -> String {
    let kind = failure.kind.as_str().replace('_', " ");
    let mut parts = vec![failure.cause.as_str().to_owned(), kind];
    let signal = attempt.signal.as_deref();
    parts.extend(words::ending(attempt.exit_code, signal, attempt.timed_out));
    parts.join(" · ")
}

/// A bar of used and left attempts, with the numbers beside it.
fn meter(budget: &Budget, stopped: bool) -> Markup {
    #[allow(clippy::cast_precision_loss, reason = "the length of a bar")]
    let share = (budget.used as f64 / budget.limit.max(1) as f64 * 100.0).min(100.0);
    let status_tone = if budget.left == 0 { "bad" } else { "calm" };
    html! {
        div class={ "budget " (status_tone) } {
            p {
                (budget.scope.as_str()) " budget "
                small { (budget.used) " of " (budget.limit) " used" @if stopped { " · stopped it" } }
            }
            svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                rect.track width="100" height="4" {}
                rect.fill width=(format!("{share:.1}")) height="4" {}
            }
        }
    }
}
