//! The night of a team on one page: what the runs that lie on a remote came to since a moment, and what waits for a person.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::markdown::{code, text};
use super::night::{ChangedFiles, Night};
use super::summary::stopped_because;
use super::words;
use crate::model::agent_record::{Usage, UsageFields, usage_text};
use crate::model::{Hint, Run, RunKey, RunStatus, Timestamp};

/// What runs on a remote came to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct TeamReport {
    pub remote: String,
    pub generated_at: Timestamp,
    /// Runs without an event since then are left out, by the clocks of the machines that recorded them.
    pub since: Timestamp,
    /// All of them in a line.
    pub summary: String,
    pub totals: TeamTotals,
    /// Those that wait for a person first, each group by its last event, newest first.
    pub runs: Vec<TeamRun>,
}

/// All runs of a report together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct TeamTotals {
    pub runs: usize,
    /// How many came to what: `complete`, `needs you`, `waiting`, `running`, …
    pub states: BTreeMap<String, usize>,
    pub attempts: usize,
    pub given_up: usize,
    /// How many wait for a person.
    pub needs_person: usize,
    /// Of all runs, one after another.
    pub duration_ms: u64,
    #[serde(flatten)]
    pub usage: UsageFields,
}

/// One of the runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct TeamRun {
    #[serde(flatten)]
    pub key: RunKey,
    pub status: RunStatus,
    /// The machine that holds it; `null` where none does.
    pub held_by: Option<String>,
    /// The machine that has it, or had it last.
    pub host: String,
    pub attempts: usize,
    pub started_at: Timestamp,
    pub last_event_at: Timestamp,
    /// Why it does not go on; `null` while it does.
    pub stopped_because: Option<String>,
    /// What failed last, where it did not pass afterwards.
    pub failure: Option<String>,
    /// Whether a person is needed, or has something to look at.
    pub needs_person: bool,
    pub night: Night,
    #[serde(skip)]
    usage: Usage,
    /// How many iterations it has, where that is known.
    #[serde(skip)]
    total: Option<u32>,
}

impl TeamRun {
    /// A run by what its remote has of it. `take_up` is the command that goes on with it in any clone.
    pub(crate) fn new(
        run: &Run,
        mut night: Night,
        host: String,
        is_held: bool,
        take_up: Hint,
    ) -> Self {
        let is_decided = matches!(run.status, RunStatus::Accepted | RunStatus::Closed);
        let needs_person =
            !is_decided && (words::needs_person(run) || !night.to_look_at.is_empty());
        // Whoever holds it goes on with it.
        night.next = Some(take_up).filter(|_| !is_held && !is_decided);
        let failure = run.failure.as_ref();
        Self {
            key: run.key.clone(),
            status: run.status,
            held_by: is_held.then(|| host.clone()),
            host,
            attempts: run.iterations.count_attempts(),
            started_at: run.created_at,
            last_event_at: run.last_at,
            stopped_because: stopped_because(run),
            failure: failure.map(|failure| {
                words::line(&format!("{}: {}", failure.cause.as_str(), failure.message))
            }),
            needs_person,
            night,
            usage: run.usage(),
            total: run.spec.iterations_total,
        }
    }

    /// `9/12, 2 given up`.
    pub(super) fn done(&self) -> String {
        let all = self.night.iterations;
        let passed = all.passed + all.to_look_at;
        let total = self
            .total
            .map_or(all.total, |total| all.total.max(total as usize));
        format!("{passed}/{total}{}", words::given_up(all.given_up))
    }

    /// Why it is not complete.
    pub(super) fn why(&self) -> Option<&str> {
        let why = self.failure.as_ref().or(self.stopped_because.as_ref());
        why.filter(|_| !self.status.is_done()).map(String::as_str)
    }

    /// The lines about it that a person must read.
    pub(super) fn to_look_at(&self) -> Vec<String> {
        let lines = self.night.to_look_at.iter();
        let lines: Vec<String> = lines.map(|one| one.text.to_string()).collect();
        if lines.is_empty() {
            return vec![self.why().unwrap_or(&self.night.state).to_owned()];
        }
        lines
    }
}

impl TeamReport {
    /// Puts the runs in order and adds them up.
    pub(crate) fn new(
        remote: String,
        since: Timestamp,
        generated_at: Timestamp,
        mut runs: Vec<TeamRun>,
    ) -> Self {
        runs.sort_by_key(|run| (!run.needs_person, std::cmp::Reverse(run.last_event_at)));
        let sum = |of: fn(&TeamRun) -> usize| runs.iter().map(of).sum();
        let mut states = BTreeMap::new();
        for run in &runs {
            let state = run.night.state.split(',').next().unwrap_or_default();
            *states.entry(state.to_owned()).or_default() += 1;
        }
        let usage = runs.iter().map(|run| run.usage);
        let usage = usage.fold(Usage::default(), |sum, usage| sum + usage);
        let totals = TeamTotals {
            runs: runs.len(),
            states,
            attempts: sum(|run| run.attempts),
            given_up: sum(|run| run.night.iterations.given_up),
            needs_person: sum(|run| usize::from(run.needs_person)),
            duration_ms: runs.iter().map(|run| run.night.duration_ms).sum(),
            usage: usage.into(),
        };
        Self {
            remote,
            generated_at,
            since,
            summary: totals.told(),
            totals,
            runs,
        }
    }

    /// Those that wait for a person.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &TeamRun> {
        self.runs.iter().filter(|run| run.needs_person)
    }

    /// The page as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut out = format!(
            "<!-- {} -->\n# Runs on {} since {}\n\n{}\n\n",
            words::MARK,
            code(&self.remote),
            words::date_time(self.since),
            text(&self.summary)
        );
        if self.totals.needs_person > 0 {
            out.push_str("## Waiting for a person\n\n");
        }
        for run in self.waiting() {
            let next = run.night.next.as_ref();
            let next = next.map(|next| format!(". Next: {}", code(&next.to_string())));
            let lines = run.to_look_at();
            let lines = lines.iter().map(|line| text(line));
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "- **{}** {}{}",
                code(&run.key.to_string()),
                lines.format("; "),
                next.unwrap_or_default()
            );
        }
        if self.runs.is_empty() {
            return out;
        }
        out.push_str(if self.totals.needs_person > 0 {
            "\n"
        } else {
            ""
        });
        out.push_str("## All runs\n\n| ");
        out.push_str(&COLUMNS.join(" | "));
        out.push_str(" |\n|");
        out.push_str(&" --- |".repeat(COLUMNS.len()));
        out.push('\n');
        for run in &self.runs {
            let [name, cells @ .., why] = self.cells(run);
            let (name, why) = (code(&name).replace('|', "\\|"), text(&why));
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(out, "| {name} | {} | {why} |", cells.join(" | "));
        }
        out
    }

    /// What the table says of a run, by [`COLUMNS`].
    pub(super) fn cells(&self, run: &TeamRun) -> [String; COLUMNS.len()] {
        let ago = words::millis(run.last_event_at, self.generated_at);
        [
            run.key.to_string(),
            run.night.state.clone(),
            words::line(&run.host)
                + if run.held_by.is_some() {
                    ", holds it"
                } else {
                    ""
                },
            run.done(),
            run.attempts.to_string(),
            run.night.took(),
            format!("{} ago", words::span(ago)),
            run.night.files.map(ChangedFiles::told).unwrap_or_default(),
            run.why().unwrap_or_default().to_owned(),
        ]
    }
}

/// The columns of the table.
pub(super) const COLUMNS: [&str; 9] = [
    "Run",
    "State",
    "Machine",
    "Iterations",
    "Attempts",
    "Took",
    "Last event",
    "Files",
    "Why",
];

impl TeamTotals {
    /// `12 runs: 9 complete, 2 needs you; 31 attempts; 52 h 3 min, $14.20, 1.9M tokens`.
    fn told(&self) -> String {
        let states = self.states.iter();
        let mut states = states.map(|(state, count)| format!("{count} {state}"));
        let given_up = match self.given_up {
            0 => String::new(),
            count => format!(", {} given up", words::count(count, "iteration")),
        };
        let used = usage_text(self.usage.cost_usd, self.usage.tokens).unwrap_or_default();
        format!(
            "{}{}; {}{given_up}; {}{}",
            words::count(self.runs, "run"),
            words::between(": ", &states.join(", "), ""),
            words::count(self.attempts, "attempt"),
            words::span(self.duration_ms),
            words::between(", ", &used, "")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::run::RunDetails;
    use crate::policy::report::Around;

    fn run(id: &str, status: RunStatus, at: i64) -> TeamRun {
        let details = RunDetails {
            created_at: Timestamp::from_millis(0),
            ..RunDetails::default()
        };
        let run = Run {
            key: RunKey::new(id, None, None),
            status,
            last_at: Timestamp::from_millis(at),
            details: details.into(),
            ..Run::default()
        };
        let night = Night::new(&run, Around::default());
        let take_up = Hint::recover(["resume", id]);
        TeamRun::new(&run, night, "build|7".to_owned(), true, take_up)
    }

    #[test]
    fn what_waits_for_a_person_comes_first_and_nothing_breaks_the_table() {
        let runs = vec![
            run("done", RunStatus::Complete, 9_000),
            run("st|uck", RunStatus::Escalated, 1_000),
        ];
        let (since, now) = (Timestamp::from_millis(0), Timestamp::from_millis(60_000));
        let report = TeamReport::new("origin".to_owned(), since, now, runs);
        let summary = "2 runs: 1 complete, 1 needs you; 0 attempts; 0 ms";
        assert_eq!(report.summary, summary);
        let page = report.markdown();
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}\n{page}"));
        assert!(at("## Waiting for a person") < at("- **`st|uck`** needs you\n"));
        assert!(
            at("| `st\\|uck` | needs you | build\\|7, holds it |") < at("| `done` | complete |")
        );
        for row in page.lines().filter(|line| line.starts_with('|')) {
            let plain = row.replace("\\|", "");
            assert_eq!(plain.matches('|').count(), COLUMNS.len() + 1, "{row}");
        }
    }
}
