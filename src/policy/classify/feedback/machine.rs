//! The question whether the machine refused, as against what a test or a linter only speaks of.

use super::{COMPILERS, Feedback};
use crate::model::failure::EvidenceSource;
use crate::policy::classify::api;
use crate::policy::classify::conclusion::Conclusion;
use crate::policy::classify::process;
use crate::policy::classify::rules::{BUILD, Family, LINT, TYPECHECK};
use crate::policy::classify::scan::Hit;
use crate::policy::classify::verdict::{AUTH, NO_TOOL, UNAUTHORIZED};
use crate::policy::text::Line;

impl<'a> Feedback<'a> {
    /// Step 5: whether the machine refused.
    pub(super) fn machine(&self) -> Option<Conclusion> {
        // Where tests ran and one of them compared values, words of the machine are the subject of a test.
        let tests_failed =
            self.best(Family::TestsFailed).is_some() && self.inputs.counts.failed != Some(0);
        let believable = !(tests_failed && self.asserted());
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
                let hit = self
                    .scan
                    .matches(family, self.stages)
                    .find(|hit| !self.opened_file(*hit))?;
                let answered = matches!(family, Family::Refused | Family::Network);
                // A test may raise what it likes; the operating system's own errors are real.
                let real = !tests_failed || os_error(hit.line.bytes) || !answered;
                let described =
                    found && hit.source == EvidenceSource::Stdout && !os_error(hit.line.bytes);
                let played = tests_failed && self.is_raised(hit);
                let followed = answered && compiler;
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
            return missing
                .or_else(refused)
                .or_else(|| Some(Conclusion::of_fact(fact)));
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
        (reported.verdict == AUTH).then(|| Conclusion::of_report(reported))
    }

    /// Whether Python was to open what is not there, not to start it.
    fn opened_file(&self, hit: Hit<'a>) -> bool {
        let text = if hit.source == EvidenceSource::Stderr {
            self.inputs.stderr
        } else {
            self.inputs.stdout
        };
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

    /// Whether the words of an error are in a printed line of source that raises it: a test plays what it is about.
    fn is_raised(&self, hit: Hit<'a>) -> bool {
        const RAISES: [&str; 3] = ["raise ", "throw ", "die "];
        let said = hit.line.to_text();
        let words = said
            .rsplit_once("] ")
            .or_else(|| said.split_once(": "))
            .map_or(said.as_str(), |(_, words)| words);
        let raises = |line: Line<'_>| {
            let source = line.to_text();
            let printed = matches!(line.bytes.first(), Some(b' ' | b'\t' | b'>'));
            printed && source.contains(words) && RAISES.iter().any(|word| source.contains(word))
        };
        words.len() >= 8
            && self
                .streams()
                .into_iter()
                .any(|(_, text)| text.lines().any(raises))
    }
}

/// Whether a line carries an error of the operating system rather than words alone.
fn os_error(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let marks = [
        "Errno ",
        "os error ",
        "ECONN",
        "ENOTFOUND",
        "EAI_",
        "ETIMEDOUT",
        "EHOST",
        "ENET",
        "EMFILE",
        "ENOSPC",
        "EACCES",
        "EPERM",
        "EROFS",
        "dial tcp",
        "java.",
    ];
    marks.iter().any(|mark| text.contains(mark))
}
