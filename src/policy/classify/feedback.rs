//! Classifies what a check printed: builds, tests, lints and type checks.

mod unknown;

pub(super) use unknown::{headed, named};

use super::conclusion::Conclusion;
use super::inputs::Inputs;
use super::rules::{
    AGENT, ANY, AUTH, BUILD, FAMILIES, FEEDBACK, Family, LINT, NO_TOOL, Rule, TEST, TYPECHECK,
    UNAUTHORIZED,
};
use super::scan::{Hit, Scan};
use super::{api, command_line, conclusion, message, process, rules, scan};
use crate::model::failure::{Cause, EvidenceSource};
use crate::model::feedback::CheckKind;
use crate::policy::patterns::Single;
use crate::policy::text::{Line, Text};

/// Families that compete for the verdict, for the list of those that lost.
const COMPETING: &[Family] = &[
    Family::CommandLimit,
    Family::TestLimit,
    Family::Cancelled,
    Family::Memory,
    Family::Crashed,
    Family::Machine,
    Family::MissingTool,
    Family::Refused,
    Family::Network,
    Family::Load,
    Family::TestsFailed,
    Family::Compile,
    Family::Input,
    Family::Missing,
    Family::LikelyBuild,
    Family::Findings,
];

/// Rules of a compiler about a source, which a lost connection earlier in the log does not explain.
const COMPILERS: &[&str] = &[
    "build.rustc",
    "build.cc",
    "build.linker",
    "build.tsc",
    "build.go",
    "build.java",
];

/// Asks the questions in their order.
pub(super) fn decide(inputs: &Inputs<'_>) -> Conclusion {
    let stages = match inputs.stage {
        Some(CheckKind::Agent) | None => ANY & !AGENT,
        Some(kind) => rules::stage(kind),
    };
    Feedback::of(inputs, stages).decide()
}

/// What only the output of a tool says, of a command of which nobody knows whether it is one: no shapes and no words that
/// anybody may use.
pub(super) fn strong(inputs: &Inputs<'_>) -> Option<Conclusion> {
    const STRONG: [Family; 9] = [
        Family::CommandLimit,
        Family::Memory,
        Family::Crashed,
        Family::Machine,
        Family::MissingTool,
        Family::Refused,
        Family::Network,
        Family::TestsFailed,
        Family::Compile,
    ];
    let feedback = Feedback::of(inputs, ANY & !AGENT);
    let conclusion = feedback.decide();
    let rule = &conclusion.evidence.rule;
    let is_of = |family: &Family| {
        feedback
            .scan
            .matches(*family, feedback.stages)
            .any(|hit| hit.rule.id == *rule)
    };
    // A runner counts what failed.
    let is_counted = inputs.counts.failed.is_some_and(|failed| failed > 0);
    let is_said = conclusion.verdict.cause == Cause::VerificationFailed && !is_counted;
    (!is_said && STRONG.iter().any(is_of)).then_some(conclusion)
}

struct Feedback<'a> {
    inputs: &'a Inputs<'a>,
    scan: Scan<'a>,
    stages: u8,
}

impl<'a> Feedback<'a> {
    fn of(inputs: &'a Inputs<'a>, stages: u8) -> Self {
        Self {
            inputs,
            scan: Scan::new(inputs.stderr, inputs.stdout, stages, stages & TEST != 0),
            stages,
        }
    }

    fn decide(&self) -> Conclusion {
        let mut conclusion = self.conclude();
        self.reject(&mut conclusion);
        conclusion
    }

    fn best(&self, family: Family) -> Option<Hit<'a>> {
        self.scan.best(family, self.stages)
    }

    fn conclude(&self) -> Conclusion {
        let evidence = self.inputs.evidence;
        let failed = self.inputs.counts.failed;
        let signal = process::signal(evidence, failed);
        let signal = signal.as_deref();
        let cancelled = || {
            let mut hits = self.scan.matches(Family::Cancelled, self.stages);
            hits.find(|hit| !self.is_of_program_under_test(*hit))
        };
        let died = |family| {
            let mut hits = self.scan.matches(family, self.stages);
            hits.find(|hit| !self.names_failed_test(*hit) && !self.is_played(*hit))
        };
        // 1. A time limit.
        process::time_limit(evidence, signal)
            .or_else(|| self.time_limit_in_words().map(Conclusion::of_hit))
            // 2. A cancellation.
            .or_else(|| process::cancellation(evidence, signal))
            .or_else(|| cancelled().map(Conclusion::of_hit))
            .or_else(|| self.cancelled_in_log())
            // 3. A dead process: memory explains a signal, other words only repeat it.
            .or_else(|| died(Family::Memory).map(Conclusion::of_hit))
            .or_else(|| process::crash(signal))
            .or_else(|| died(Family::Crashed).map(Conclusion::of_hit))
            // 5. The machine.
            .or_else(|| process::not_started(evidence))
            .or_else(|| self.machine())
            // 6. The project.
            .unwrap_or_else(|| self.project())
    }

    fn time_limit_in_words(&self) -> Option<Hit<'a>> {
        // Go ends the whole binary at the limit, and lists the tests that had failed before.
        let go_failed = self.scan.count(Family::Assertion, "assertion.go") > 0;
        if let Some(hit) = self
            .best(Family::CommandLimit)
            .filter(|hit| hit.rule.id != "limit.go-test" || !go_failed)
        {
            return Some(hit);
        }
        let hit = self.best(Family::TestLimit)?;
        let limits = self
            .scan
            .matches(Family::TestLimit, self.stages)
            .map(|hit| hit.count)
            .max()
            .unwrap_or(0);
        let others = match self.inputs.counts.failed {
            // Node counts a test that it ended as cancelled, not as failed.
            Some(failed) if failed > 0 && hit.rule.id != "test-limit.node" => {
                failed > u64::from(limits)
            }
            _ => self.asserted(),
        };
        // What a test is called may speak of time, too; then there is something that it compared.
        let compared = hit.rule.id == "test-limit.tap-words"
            && self.inputs.streams().iter().any(|(_, text)| {
                text.lines()
                    .any(|line| line.bytes.trim_ascii_start().starts_with(b"expected:"))
            });
        (!others && !compared).then_some(hit)
    }

    /// Whether tests were counted as failed and one of them compared values.
    fn compared_in_vain(&self) -> bool {
        self.inputs.counts.failed.is_some_and(|failed| failed > 0) && self.asserted()
    }

    /// Whether words of a signal are what the program under test said: the runner went on and counted.
    fn is_of_program_under_test(&self, hit: Hit<'a>) -> bool {
        const WORDS: [&str; 4] = [
            "cancel.signal-word",
            "cancel.by-user",
            "cancel.user-did",
            "cancel.shutdown",
        ];
        let counted = self.scan.last_line(Family::TestsFailed, hit.source);
        let went_on = counted.is_some_and(|line| line.number > hit.line.number);
        WORDS.contains(&hit.rule.id) && went_on && self.compared_in_vain()
            || self.names_failed_test(hit)
    }

    /// Whether a line is about a test that failed by what it checks, so that its words may be the test's name.
    fn names_failed_test(&self, hit: Hit<'a>) -> bool {
        if !self.compared_in_vain() {
            return false;
        }
        let said = hit.line.to_text();
        conclusion::failed_names(self.inputs)
            .iter()
            .any(|name| name.len() >= 6 && said.contains(name.as_str()))
    }

    /// The program's log ends with a signal that it received, and nothing failed before.
    fn cancelled_in_log(&self) -> Option<Conclusion> {
        const LAST_LINES: usize = 4;
        let failures = [Family::TestsFailed, Family::Load, Family::Compile];
        if self.asserted()
            || failures
                .into_iter()
                .any(|family| self.best(family).is_some())
        {
            return None;
        }
        let rules = &FAMILIES[Family::Cancelled as usize];
        self.inputs
            .streams()
            .into_iter()
            .find_map(|(source, text)| {
                let mut logged = text
                    .lines()
                    .rev()
                    .take(LAST_LINES)
                    .filter(|line| scan::is_log(line.bytes));
                let (line, rule) = logged.find_map(|line| {
                    let of_signal =
                        |rule: &&Rule| matches!(rule.id, "cancel.signal-word" | "cancel.by-user");
                    rules
                        .matches(line.bytes)
                        .into_iter()
                        .find(of_signal)
                        .map(|rule| (line, rule))
                })?;
                Some(Conclusion::of_line(rule.id, rule.verdict, source, line))
            })
    }

    /// Whether a test failed by what it checks.
    fn asserted(&self) -> bool {
        self.scan.count(Family::Assertion, "assertion.any") > 0
    }

    fn project(&self) -> Conclusion {
        if let Some(hit) = self.best(Family::Load) {
            return Conclusion::of_hit(hit);
        }
        // A runner that refused an option ran nothing, whatever it counts.
        let counted = self.inputs.counts.failed.is_some();
        let refused = self.best(Family::Input).is_some() && (!counted || self.explains_usage());
        if let Some(hit) = self.best(Family::TestsFailed).filter(|_| !refused) {
            return self.tests_failed(hit);
        }
        let families = [Family::Compile, Family::Input, Family::Missing];
        let strong = families
            .into_iter()
            .find_map(|family| self.about_tool(family));
        let likely = || self.best(Family::LikelyBuild).or_else(|| self.findings());
        strong
            .map(|hit| self.missing_configuration(hit).unwrap_or(hit))
            .map(|hit| self.of_hit(hit))
            .or_else(|| self.refused())
            .or_else(|| self.own_configuration())
            .or_else(|| likely().map(|hit| self.of_hit(hit)))
            .unwrap_or_else(|| self.weak())
    }

    /// What is missing, where a configuration cannot be used which the command line names.
    fn missing_configuration(&self, unusable: Hit<'a>) -> Option<Hit<'a>> {
        let command = self.inputs.evidence.command.as_deref().unwrap_or_default();
        let mut missing = self.scan.matches(Family::Missing, self.stages);
        missing.find(|hit| {
            unusable.rule.id == "input.config-file"
                && command_line::names_file_of(command, &hit.line.to_text())
        })
    }

    /// A check's findings. What a compiler counts of its own errors is none, where nobody says that a linter ran.
    fn findings(&self) -> Option<Hit<'a>> {
        let found = self.best(Family::Findings)?;
        let built = self
            .best(Family::WeakBuild)
            .filter(|hit| hit.rule.id == "build.could-not-compile");
        let counted = found.rule.id == "lint.count" && self.inputs.stage.is_none();
        built.filter(|_| counted).or(Some(found))
    }

    /// The strongest match of a family that is not about a place in a file that the command line names: that is no matter
    /// of the tool's options, and nothing that the tool misses.
    fn about_tool(&self, family: Family) -> Option<Hit<'a>> {
        let command = self.inputs.evidence.command.as_deref().unwrap_or_default();
        let of_source = |hit: &Hit<'a>| {
            let said = hit.line.to_text();
            let own = [rules::IN_CONFIGURATION, rules::NO_MATCH].contains(&hit.rule.id);
            matches!(family, Family::Input | Family::Missing)
                && self.stages & BUILD != 0
                && !own
                && (command_line::is_about_argument(command, &said)
                    || family == Family::Missing && is_at_column(&said))
        };
        self.scan
            .matches(family, self.stages)
            .find(|hit| !of_source(hit))
    }

    fn of_hit(&self, hit: Hit<'a>) -> Conclusion {
        let mut conclusion = Conclusion::of_hit(hit);
        self.consider_flaky(&mut conclusion);
        conclusion
    }

    /// Whether it explained how it is called, in place of tests that it named.
    fn explains_usage(&self) -> bool {
        let usage = |line: Line<'_>| {
            line.bytes
                .get(..5)
                .is_some_and(|start| start.eq_ignore_ascii_case(b"usage"))
        };
        let explained = self
            .inputs
            .streams()
            .into_iter()
            .any(|(_, text)| text.lines().any(usage));
        explained && !self.asserted() && conclusion::failed_names(self.inputs).is_empty()
    }

    fn tests_failed(&self, hit: Hit<'a>) -> Conclusion {
        let mut conclusion = Conclusion::of_hit(hit);
        let names = conclusion::failed_names(self.inputs);
        let tests = conclusion::of_tests(self.inputs, &conclusion.evidence, names);
        let says = tests != conclusion.evidence.text;
        // Its line may begin with the test's name.
        let without_name = |reason: String| match names.first() {
            Some(name) => match reason.strip_prefix(name.as_str()) {
                Some(rest) => rest.trim_start_matches([' ', '-', ':']).to_owned(),
                None => reason,
            },
            None => reason,
        };
        // Else what was raised.
        let raised = || Some(self.inputs.raised()?.text.clone()).filter(|_| says);
        let reason = message::reason(self.inputs)
            .map(without_name)
            .or_else(raised);
        conclusion.message = match reason {
            Some(reason) if says && !tests.contains(&reason) => format!("{tests}: {reason}"),
            Some(reason) if !says => reason,
            _ => tests,
        };
        // Which tests fail is what recurs; how many passed is not.
        conclusion.signature_text = (!names.is_empty()).then(|| names.join("\n"));
        self.consider_flaky(&mut conclusion);
        conclusion
    }

    /// A failure that the log itself calls flaky is worth another run, unless others failed beside it.
    fn consider_flaky(&self, conclusion: &mut Conclusion) {
        let declared: u32 = self
            .scan
            .matches(Family::Flaky, self.stages)
            .map(|hit| hit.count)
            .sum();
        let all = self
            .inputs
            .counts
            .failed
            .is_none_or(|failed| failed <= u64::from(declared));
        if conclusion.verdict.cause == Cause::VerificationFailed && declared > 0 && all {
            conclusion.verdict.retryable = true;
        }
    }

    /// Notes what else matched.
    fn reject(&self, conclusion: &mut Conclusion) {
        let won = conclusion.evidence.rule.clone();
        let losers = COMPETING
            .iter()
            .flat_map(|family| self.scan.matches(*family, self.stages).take(2));
        let losers = losers
            .filter(|hit| hit.rule.id != won)
            .map(Hit::evidence)
            .take(10);
        conclusion.rejected.extend(losers);
    }
}

impl<'a> Feedback<'a> {
    /// Step 5: whether the machine refused.
    fn machine(&self) -> Option<Conclusion> {
        // Where tests ran and one of them compared values, words of the machine are the subject of a test.
        let tests_failed =
            self.best(Family::TestsFailed).is_some() && self.inputs.counts.failed != Some(0);
        let played = self
            .scan
            .matches(Family::Machine, self.stages)
            .any(|hit| self.is_played(hit));
        let believable = !(tests_failed && self.asserted() || played);
        // Nor where the program ended with an assertion of its own: what it had printed is its subject.
        let asserted = |hit: &Hit<'a>| {
            let raised = self.inputs.raised();
            raised.is_some_and(|raised| {
                raised.text.starts_with("Assert") && raised.line.bytes != hit.line.bytes
            })
        };
        let families = [
            Family::Machine,
            Family::MissingTool,
            Family::Refused,
            Family::Network,
        ];
        // What a linter finds it describes: its report is about such words.
        let found = self.stages & (LINT | TYPECHECK) != 0 && self.best(Family::Findings).is_some();
        let compiler = self
            .best(Family::Compile)
            .is_some_and(|hit| COMPILERS.contains(&hit.rule.id));
        let said = families
            .into_iter()
            .filter(|_| believable)
            .find_map(|family| {
                let hit = self.scan.matches(family, self.stages).find(|hit| {
                    !self.opened_file(*hit) && !lacks_part(*hit) && !self.came_after(*hit)
                })?;
                let answered = matches!(family, Family::Refused | Family::Network);
                // A test may raise what it likes, and a service that it needs is its own.
                let of_test = self.stages & FEEDBACK == TEST && answered;
                let real = !tests_failed || !of_test && os_error(hit.line.bytes) || !answered;
                let described =
                    found && hit.source == EvidenceSource::Stdout && !os_error(hit.line.bytes);
                let followed = answered && compiler;
                let played = self.is_played(hit) || asserted(&hit);
                (real && !described && !played && !followed).then_some(hit)
            });
        let status = process::shell_status(self.inputs.evidence, self.inputs.counts.failed);
        if let Some(fact) = status.filter(|_| self.best(Family::Load).is_none()) {
            // The words say more than the status: a missing interpreter is 126 in some shells.
            let tools = self.scan.matches(Family::MissingTool, self.stages);
            let missing = tools
                .into_iter()
                .find(|hit| !self.opened_file(*hit))
                .map(Conclusion::of_hit);
            let refused = || {
                self.best(Family::Machine)
                    .filter(|_| fact.verdict != NO_TOOL)
                    .map(Conclusion::of_hit)
            };
            // What an interpreter says of a place in its script is no command that is not found.
            let is_not_found = fact.verdict == NO_TOOL;
            let read = || {
                let lines = self.inputs.texts().into_iter().flat_map(Text::lines);
                is_not_found && lines.map(Line::to_text).any(|said| is_at_column(&said))
            };
            return missing
                .or_else(refused)
                .or_else(|| (!read()).then_some(fact));
        }
        said.map(|hit| {
            self.answer_to_agent(hit)
                .unwrap_or_else(|| Conclusion::of_hit(hit))
        })
    }

    /// Where nobody says who spoke, a server's refusal may be the answer to an agent.
    fn answer_to_agent(&self, hit: Hit<'a>) -> Option<Conclusion> {
        let inputs = self.inputs;
        let open = inputs.stage.is_none() && hit.rule.verdict == UNAUTHORIZED;
        let reported = api::from_text(inputs.stderr, inputs.stdout)
            .filter(|_| open && hit.rule.stages == BUILD)?;
        (reported.verdict.cause == AUTH.cause).then_some(reported)
    }

    /// Whether a tool that is not there was missed after an error of the project that was marked as one.
    fn came_after(&self, hit: Hit<'a>) -> bool {
        let of_project = |line: Line<'_>| {
            [Family::Compile, Family::Input, Family::Missing]
                .into_iter()
                .flat_map(|family| FAMILIES[family as usize].matches(line.bytes))
                .any(|rule| rule.stages & self.stages != 0)
        };
        hit.rule.verdict == NO_TOOL
            && message::marked(self.inputs.stream(hit.source), self.stages & TEST != 0)
                .is_some_and(|line| line.number < hit.line.number && of_project(line))
    }

    /// Whether Python was to open what is not there, not to start it.
    fn opened_file(&self, hit: Hit<'a>) -> bool {
        let text = self.inputs.stream(hit.source);
        let traced = |words: &[&[u8]]| {
            let has = |line: Line<'_>| {
                words
                    .iter()
                    .any(|word| line.bytes.windows(word.len()).any(|part| part == *word))
            };
            text.lines().any(has)
        };
        hit.rule.id == "tool.python-start"
            && traced(&[b"Traceback (most recent call last)"])
            && !traced(&[
                b"subprocess.py\"",
                b"_execute_child",
                b"os.exec",
                b"asyncio/base_events.py",
            ])
    }

    /// Whether tests failed, and the words of an error are in a printed line of source that raises it: a test plays what it
    /// is about.
    fn is_played(&self, hit: Hit<'a>) -> bool {
        const RAISES: [&str; 3] = ["raise ", "throw ", "die "];
        if self.best(Family::TestsFailed).is_none() || self.inputs.counts.failed == Some(0) {
            return false;
        }
        let said = hit.line.to_text();
        let words = said
            .rsplit_once("] ")
            .or_else(|| said.split_once(": "))
            .map_or(said.as_str(), |(_, words)| words);
        // What it was about is an argument of its own.
        let words = [": '", ": \"", " (", " - "]
            .into_iter()
            .filter_map(|end| words.find(end))
            .min()
            .map_or(words, |end| &words[..end]);
        let raises = |line: Line<'_>| {
            let source = line.to_text();
            let printed = matches!(line.bytes.first(), Some(b' ' | b'\t' | b'>'));
            printed && source.contains(words) && RAISES.iter().any(|word| source.contains(word))
        };
        words.len() >= 8
            && self
                .inputs
                .streams()
                .into_iter()
                .any(|(_, text)| text.lines().any(raises))
    }
}

/// Whether a line begins with a place down to the column, which only a reader of source knows.
fn is_at_column(said: &str) -> bool {
    static PLACE: Single = Single::new(r"^\S+\.\w+(?::\d+:\d+| \(line \d+\)): ?\S");
    PLACE.first(said).is_some()
}

/// Whether what is not installed is a part of a tool, which a project names, rather than a program of the machine.
fn lacks_part(hit: Hit<'_>) -> bool {
    const PARTS: [&str; 5] = ["plugin", "extension", "theme", "preset", "reporter"];
    let said = hit.line.to_text().to_ascii_lowercase();
    // So does a package, of another one.
    let is_part = said.trim_start().starts_with("package ");
    hit.rule.id == "tool.hook" && (is_part || PARTS.iter().any(|part| said.contains(part)))
}

/// Whether a line carries an error of the operating system rather than words alone.
fn os_error(line: &[u8]) -> bool {
    static OF_SYSTEM: Single = Single::new(
        r"Errno |os error |ECONN|ENOTFOUND|EAI_|ETIMEDOUT|EHOST|ENET|EMFILE|ENOSPC|EACCES|EPERM|EROFS|dial tcp|java\.",
    );
    OF_SYSTEM.first_in(line).is_some()
}
