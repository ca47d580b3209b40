//! What an output or a short message amounts to where no rule knows its words.
//!
//! Judged by the words of the command line, by the shape of the output, by the kind of thing that it misses, and at last by
//! the stage alone; a message of a few lines is read as one that a loop's author wrote.

use super::Feedback;
use crate::model::failure::EvidenceSource;
use crate::model::feedback::CheckKind;
use crate::policy::classify::api::is_of_api;
use crate::policy::classify::check_summary::Counts;
use crate::policy::classify::complaint::{Kind, Said};
use crate::policy::classify::conclusion::{Conclusion, last_words};
use crate::policy::classify::inputs::Inputs;
use crate::policy::classify::rules::{
    ANY, BROKEN, BUILD, FAILED, FAMILIES, Family, INVALID, LINT, MISSING, Rule, TEST, TYPECHECK,
    UNCLEAR,
};
use crate::policy::classify::{api, command_line, complaint, message, process, rules, scan};
use crate::policy::patterns::Single;
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
        self.inputs
            .streams()
            .into_iter()
            .find_map(|(source, text)| {
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
        self.inputs
            .streams()
            .into_iter()
            .find_map(|(source, text)| {
                let line = text.lines().rev().find(warns)?;
                let families = [Family::Input, Family::Missing].into_iter();
                let rules =
                    families.flat_map(|family| FAMILIES[family as usize].matches(line.bytes));
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
        self.inputs
            .streams()
            .into_iter()
            .take(streams)
            .find_map(|(source, text)| {
                let answer = ask(command, text).filter(|_| !complaint::tests_ran(text))?;
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
        complaint::complaint(self.inputs.stream(source), self.stages & TEST != 0)
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
        let lack = complaint::find(&said)?;
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
        self.inputs
            .streams()
            .into_iter()
            .filter(|_| build && !ran)
            .find_map(|(source, text)| {
                let line = complaint::diagnostic(text).filter(|_| !complaint::tests_ran(text))?;
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
        self.inputs
            .streams()
            .into_iter()
            .take(streams)
            .find_map(|(source, text)| {
                // Frames come last, and say nothing.
                let raised = self.inputs.raised.as_ref();
                let raised = raised.filter(|(of, _)| *of == source);
                // A linter's first finding, and otherwise what was said last.
                let finding = || complaint::located(text).filter(|_| streams == 2);
                let last = || {
                    let last = complaint::complaint(text, self.stages & TEST != 0)?;
                    self.marked_before(source, last).or(Some(last))
                };
                let line = raised
                    .map(|(_, raised)| raised.line)
                    .or_else(finding)
                    .or_else(last)?;
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
        let inputs = self.inputs;
        let usage = || {
            let status = process::usage_status(inputs.evidence, inputs.stage, inputs.counts.failed);
            status.map(|status| Conclusion {
                message: last_words(inputs),
                ..status
            })
        };
        process::bare_124(inputs.evidence)
            .or_else(|| self.message_without_stage())
            .or_else(|| self.not_there())
            .or_else(usage)
            .or_else(|| self.diagnostic())
            .or_else(|| self.word_of_failure())
            .or_else(|| self.complaint())
            .or_else(|| self.warned())
            .or_else(|| self.table())
            .unwrap_or_else(|| self.by_stage())
    }

    /// A bare message may well be an agent's.
    fn message_without_stage(&self) -> Option<Conclusion> {
        let inputs = self.inputs;
        let agents = || api::from_text(inputs.stderr, inputs.stdout);
        let found = inputs
            .stage
            .is_none()
            .then(|| headed(inputs).or_else(agents));
        found.flatten()
    }

    /// Whether nothing was printed.
    fn is_silent(&self) -> bool {
        let evidence = self.inputs.evidence;
        evidence.stdout.trim_ascii().is_empty() && evidence.stderr.trim_ascii().is_empty()
    }

    fn word_of_failure(&self) -> Option<Conclusion> {
        if self.is_silent() && self.inputs.stage.is_none() {
            return None;
        }
        let families = [Family::WeakBuild, Family::WeakCheck];
        let mut hit = families.into_iter().find_map(|family| self.best(family))?;
        // What a runtime names, or what was marked as an error before, says more than words that anybody may use.
        if let Some((source, raised)) = &self.inputs.raised {
            (hit.source, hit.line) = (*source, raised.line);
        } else if let Some(line) = self.marked_before(hit.source, hit.line) {
            hit.line = line;
        }
        let last = || {
            let line = self.complained(hit.source)?;
            self.lacking(hit.source, line)
        };
        let lacking = self.lacking(hit.source, hit.line).or_else(last);
        Some(lacking.unwrap_or_else(|| self.unless_carried(self.of_hit(hit))))
    }

    /// The first line that was marked as an error, where it comes before one that is not.
    fn marked_before(&self, source: EvidenceSource, line: Line<'a>) -> Option<Line<'a>> {
        let marked = message::marked(self.inputs.stream(source), self.stages & TEST != 0)?;
        (marked.number < line.number && !scan::is_marked(line.bytes)).then_some(marked)
    }

    /// The findings of a linter that prints them as a table.
    fn table(&self) -> Option<Conclusion> {
        let found = |line| Conclusion::of_line("shape.row", FAILED, EvidenceSource::Stdout, line);
        let lints = self.stages & BUILD == 0 && self.stages & (LINT | TYPECHECK) != 0;
        complaint::row(self.inputs.stdout)
            .filter(|_| lints)
            .map(found)
    }

    fn by_stage(&self) -> Conclusion {
        use CheckKind::{Agent, Build};
        let inputs = self.inputs;
        let message = inputs.evidence.message.as_deref().unwrap_or_default();
        let told = !message.trim().is_empty() && self.is_silent();
        let is_check = inputs.evidence.is_check;
        match inputs.stage {
            Some(Build) if told => Conclusion::bare("message.build", BROKEN, last_words(inputs)),
            Some(kind) if told && kind != Agent => {
                Conclusion::bare("message.check", FAILED, last_words(inputs))
            }
            Some(Build) if is_check => Conclusion::unexplained("check.failed", BROKEN, inputs),
            Some(_) if is_check => Conclusion::unexplained("check.failed", FAILED, inputs),
            _ => Conclusion::unexplained("none", UNCLEAR, inputs),
        }
    }
}

/// More lines are a log.
const MAX_LINES: usize = 3;

/// What the one line that was said names, where the process shows nothing.
pub(in super::super) fn named(inputs: &Inputs<'_>) -> Option<Conclusion> {
    let (source, line, alone) = only(inputs)?;
    if !alone || !is_plain(inputs) {
        return None;
    }
    let families = [Family::SummaryAssertion, Family::SummaryWhole];
    families
        .into_iter()
        .find_map(|family| by_rules(inputs, family, source, line))
        .or_else(|| by_api(inputs, line))
}

/// What the first of a few lines is about, where nothing in them says more.
pub(in super::super) fn headed(inputs: &Inputs<'_>) -> Option<Conclusion> {
    let (source, line, _) = only(inputs).filter(|_| is_plain(inputs))?;
    let families = [
        Family::SummaryAssertion,
        Family::SummaryWhole,
        Family::SummaryHead,
    ];
    families
        .into_iter()
        .find_map(|family| by_rules(inputs, family, source, line))
}

/// The first line of a few, and whether it is the only one.
fn only<'a>(inputs: &Inputs<'a>) -> Option<(EvidenceSource, Line<'a>, bool)> {
    let streams = inputs.streams();
    let count: usize = streams
        .iter()
        .map(|(_, text)| text.lines().take(MAX_LINES + 1).count())
        .sum();
    let (source, line) = streams
        .into_iter()
        .find_map(|(source, text)| text.lines().next().map(|line| (source, line)))?;
    (count <= MAX_LINES).then_some((source, line, count == 1))
}

/// Whether neither the process nor the agent's record says what happened.
fn is_plain(inputs: &Inputs<'_>) -> bool {
    /// The least status that says more than that it failed.
    const TELLING: i32 = 124;
    let evidence = inputs.evidence;
    let recorded = inputs
        .record
        .is_some_and(|record| record.structured || record.final_error.is_some());
    let told = evidence
        .exit_code
        .is_none_or(|code| (0..TELLING).contains(&code));
    let ended = evidence.cancelled || evidence.signal.is_some() || evidence.spawn_error.is_some();
    told && !ended && !recorded && process::time_limit(evidence, None).is_none()
}

fn by_rules(
    inputs: &Inputs<'_>,
    family: Family,
    source: EvidenceSource,
    line: Line<'_>,
) -> Option<Conclusion> {
    // A message without a stage may be of any.
    let stages = inputs.stage.map_or(ANY, rules::stage);
    let rules = FAMILIES[family as usize].matches(line.bytes).into_iter();
    let rule = rules
        .filter(|rule| rule.stages & stages != 0)
        .find(|rule| !is_of_connection(rule, line.bytes))?;
    let asserted = family == Family::SummaryAssertion;
    if asserted && is_of_api(line.bytes) || !asserted && is_denied(line.bytes) {
        return None;
    }
    let conclusion = Conclusion::of_line(rule.id, rule.verdict, source, line);
    // The rules about longer outputs that the line resembles.
    let longer = FAMILIES.iter().take(Family::WeakBuild as usize);
    let lost = longer.flat_map(|family| family.matches(line.bytes));
    Some(conclusion.rejecting(lost.filter(|rule| rule.stages & stages != 0)))
}

/// What an API answered, where nobody says that it was a tool's: a code or a status, and hardly a word.
fn by_api(inputs: &Inputs<'_>, line: Line<'_>) -> Option<Conclusion> {
    if !matches!(inputs.stage, None | Some(CheckKind::Agent)) {
        return None;
    }
    let reported = api::from_code(inputs.stderr, inputs.stdout).or_else(|| {
        static STATUS: Single = Single::new(
            r"(?i)^\W*(?:(?:error|fatal|failed|http(?:/[\d.]+)?|status(?: code)?|code|exceeded retry limit|last)\W+){0,4}(?:429|5\d\d)\b(?:[:,]? [a-z][a-z -]{0,30})?(?:[,:]? .*)?$",
        );
        STATUS.first_in(line.bytes)?;
        api::from_text(inputs.stderr, inputs.stdout)
    })?;
    Some(reported)
}

/// Whether the line says, before any colon, that it did not happen, or only might.
fn is_denied(line: &[u8]) -> bool {
    static DENIED: Single = Single::new(
        r"(?i)\b(?:no|0(?: of \d+)? (?:\w+ )?(?:tests?|checks?|specs?|builds?|suites?|errors?|failures?)|zero|never|nothing|none|without|if|when|unless|until|should|would|might|may|fixed|resolved|passed)\b|\b(?:not|n't) (?:yet |have |been |be )*(?:fail|time|crash|run|any|a|an|the|broken|red|out|exceed|reach)|\?",
    );
    let head = line.split(|byte| *byte == b':').next().unwrap_or_default();
    DENIED.first_in(head).is_some()
}

/// Whether what timed out is a connection: that is the network's.
fn is_of_connection(rule: &Rule, line: &[u8]) -> bool {
    static CONNECTION: Single = Single::new(
        r"(?i)\b(?:connect(?:ion|ing|or)?s?|requests?|sockets?|network|https?|fetch(?:ing)?|downloads?|downloading|api|dns|lookup|tls|ssl|handshake|read|write|gateway|proxy|servers?|hosts?|streams?|i/o|io|port|urls?|curl|ping|response|upstream|registry|query|client|websocket)\b|://",
    );
    rule.id == "summary.timeout" && CONNECTION.first_in(line).is_some()
}
