//! What a failing check's output amounts to where no rule knows its words.
//! Judged by the words of the command line, by the shape of the output, by the kind of thing that it misses, and at last by
//! the stage alone.

use super::Feedback;
use crate::model::failure::EvidenceSource;
use crate::model::feedback::CheckKind;
use crate::policy::check_summary::Counts;
use crate::policy::classify::conclusion::{self, Conclusion, last_words};
use crate::policy::classify::missing_resource::{self, Kind, Said};
use crate::policy::classify::rules::{BUILD, FAMILIES, Family, LINT, TEST, TRACEBACK, TYPECHECK};
use crate::policy::classify::verdict::{BROKEN, FAILED, INVALID, MISSING, UNCLEAR};
use crate::policy::classify::{api, author_message, command_line, process, shape};
use crate::policy::text::{Line, Text};

impl<'a> Feedback<'a> {
    /// A tool refused an option, or an option's value, in words that no rule knows.
    pub(super) fn refused(&self) -> Option<Conclusion> {
        // What a linter prints beside its findings are its findings.
        let found = self.stages & (LINT | TYPECHECK) != 0 && self.best(Family::Findings).is_some();
        let streams = if found { 1 } else { 2 };
        self.answered(streams, command_line::refused)
    }

    /// A linter or type checker found fault with its own configuration, and with nothing else.
    pub(super) fn own_configuration(&self) -> Option<Conclusion> {
        let command = self
            .inputs
            .evidence
            .command
            .as_deref()
            .filter(|_| self.stages & BUILD == 0)?;
        self.streams().into_iter().find_map(|(source, text)| {
            let line = command_line::own_configuration(command, text)?;
            Some(Conclusion::of_line(
                "shape.configuration",
                INVALID,
                source,
                line,
            ))
        })
    }

    /// Nothing was said but a warning, and that says what was refused or not there.
    fn warned(&self) -> Option<Conclusion> {
        let warns = |line: &Line<'_>| {
            line.bytes
                .get(..4)
                .is_some_and(|start| start.eq_ignore_ascii_case(b"warn"))
        };
        self.streams().into_iter().find_map(|(source, text)| {
            let line = text.lines().rev().find(warns)?;
            let families = [Family::Input, Family::Missing].into_iter();
            let rules = families.flat_map(|family| FAMILIES[family as usize].matches(line.bytes));
            let rule = rules
                .into_iter()
                .find(|rule| rule.stages & self.stages != 0)?;
            Some(Conclusion::of_line(rule.id, rule.verdict, source, line))
        })
    }

    /// What the command line asked for is not there, in words that no rule knows.
    fn not_there(&self) -> Option<Conclusion> {
        self.answered(2, command_line::not_there)
    }

    fn answered(
        &self,
        streams: usize,
        ask: impl Fn(&str, &'a Text) -> Option<command_line::Answer<'a>>,
    ) -> Option<Conclusion> {
        let command = self.inputs.evidence.command.as_deref()?;
        self.streams()
            .into_iter()
            .take(streams)
            .find_map(|(source, text)| {
                let answer = ask(command, text).filter(|_| !shape::tests_ran(text))?;
                Some(Conclusion::of_line(
                    answer.rule,
                    answer.verdict,
                    source,
                    answer.line,
                ))
            })
    }

    /// What a stream ended with, where that is a complaint.
    fn complained(&self, source: EvidenceSource) -> Option<Line<'a>> {
        let mut streams = self.streams().into_iter().filter(|(of, _)| *of == source);
        streams.find_map(|(_, text)| shape::complaint(text, self.stages & TEST != 0))
    }

    /// What a complaint in nobody's words says of the kind of thing it names. Findings are about such things, too, so
    /// that a check must say it on stderr.
    fn lacking(&self, source: EvidenceSource, line: Line<'_>) -> Option<Conclusion> {
        let build = self.stages & BUILD != 0;
        if !build && source != EvidenceSource::Stderr || self.inputs.counts != Counts::default() {
            return None;
        }
        // What a place in a source is about is the source's business.
        let said = line.to_text();
        if command_line::is_about_place(&said) {
            return None;
        }
        // A program misses a library in such words, too.
        if said.contains("package called") || said.contains("package named") {
            return None;
        }
        let lack = missing_resource::find(&said)?;
        let (rule, verdict) = match (lack.said, lack.kind?) {
            (Said::Missing, Kind::Thing) => ("lack.thing", MISSING),
            (_, Kind::Setting) | (Said::Missing, Kind::Command) => ("lack.setting", INVALID),
            (Said::Refused, Kind::Thing | Kind::Command) | (_, Kind::Code) => return None,
        };
        Some(Conclusion::of_line(rule, verdict, source, line))
    }

    /// A compiler drew the place of an error: what should be tested was not built, unless tests ran all the same.
    fn diagnostic(&self) -> Option<Conclusion> {
        let build = self.stages & (BUILD | TEST) != 0;
        let ran = self.asserted() || self.inputs.counts != Counts::default();
        self.streams()
            .into_iter()
            .filter(|_| build && !ran)
            .find_map(|(source, text)| {
                let line = shape::diagnostic(text).filter(|_| !shape::tests_ran(text))?;
                Some(Conclusion::of_line(
                    "shape.diagnostic",
                    BROKEN,
                    source,
                    line,
                ))
            })
    }

    /// It ended with a complaint that no rule knows: what failed is what the stage is about. A linter or type checker that
    /// fails speaks of nothing but its findings; others complain on stderr.
    fn complaint(&self) -> Option<Conclusion> {
        let (rule, verdict, streams) = match self.inputs.stage? {
            CheckKind::Build => ("shape.build", BROKEN, 1),
            CheckKind::Test => ("shape.check", FAILED, 1),
            CheckKind::Lint | CheckKind::Typecheck => ("shape.check", FAILED, 2),
            CheckKind::Agent => return None,
        };
        self.streams()
            .into_iter()
            .take(streams)
            .find_map(|(source, text)| {
                let line = shape::complaint(text, self.stages & TEST != 0)?;
                let complains =
                    || self.unless_carried(Conclusion::of_line(rule, verdict, source, line));
                Some(self.lacking(source, line).unwrap_or_else(complains))
            })
    }

    /// That something does not build, unless nothing was built: who only fetches and stores speaks of no source.
    fn unless_carried(&self, mut conclusion: Conclusion) -> Conclusion {
        let carried = self
            .inputs
            .evidence
            .command
            .as_deref()
            .is_some_and(command_line::only_carries);
        if conclusion.verdict == BROKEN && carried {
            conclusion.verdict = UNCLEAR;
        }
        conclusion
    }

    /// Nothing said what it was: the stage and any word of failure decide.
    pub(super) fn weak(&self) -> Conclusion {
        let evidence = self.inputs.evidence;
        if let Some(fact) = process::bare_124(evidence) {
            return Conclusion::of_fact(fact);
        }
        let silent =
            evidence.stdout.trim_ascii().is_empty() && evidence.stderr.trim_ascii().is_empty();
        let told = evidence
            .message
            .as_ref()
            .is_some_and(|message| !message.trim().is_empty());
        if self.inputs.stage.is_none() {
            if let Some(conclusion) = author_message::headed(self.inputs) {
                return conclusion;
            }
            // A bare message may well be an agent's.
            if let Some(reported) = api::from_text(self.inputs.stderr, self.inputs.stdout) {
                return Conclusion::of_report(reported);
            }
        }
        if let Some(conclusion) = self.not_there() {
            return conclusion;
        }
        if let Some(fact) =
            process::usage_status(evidence, self.inputs.stage, self.inputs.counts.failed)
        {
            return Conclusion {
                message: last_words(self.inputs),
                ..Conclusion::of_fact(fact)
            };
        }
        if let Some(conclusion) = self.diagnostic() {
            return conclusion;
        }
        let families = [Family::WeakBuild, Family::WeakCheck];
        if let Some(mut hit) = families.into_iter().find_map(|family| self.best(family))
            && !(silent && self.inputs.stage.is_none())
        {
            let mut streams = self
                .streams()
                .into_iter()
                .filter(|(source, _)| *source == hit.source);
            if let Some(line) = streams
                .find_map(|(_, text)| conclusion::raised(text))
                .filter(|_| hit.rule.id == TRACEBACK)
            {
                hit.line = line;
            }
            let last = || {
                self.complained(hit.source)
                    .and_then(|line| self.lacking(hit.source, line))
            };
            let lacking = self.lacking(hit.source, hit.line).or_else(last);
            return lacking.unwrap_or_else(|| self.unless_carried(self.of_hit(hit)));
        }
        if let Some(conclusion) = self.complaint().or_else(|| self.warned()) {
            return conclusion;
        }
        let message = last_words(self.inputs);
        match self.inputs.stage {
            Some(CheckKind::Build) if told && silent => {
                Conclusion::bare("message.build", BROKEN, message)
            }
            Some(CheckKind::Test | CheckKind::Lint | CheckKind::Typecheck) if told && silent => {
                Conclusion::bare("message.check", FAILED, message)
            }
            Some(CheckKind::Build) if evidence.is_check => {
                Conclusion::unexplained("check.failed", BROKEN, self.inputs)
            }
            Some(_) if evidence.is_check => {
                Conclusion::unexplained("check.failed", FAILED, self.inputs)
            }
            _ => Conclusion::unexplained("none", UNCLEAR, self.inputs),
        }
    }
}
