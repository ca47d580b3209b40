//! The result of the steps: a verdict with its evidence and the one line for people, and the failure that is recorded of it.

use std::time::Duration;

use super::crash;
use super::inputs::{Inputs, complained};
use super::message;
use super::reset_time::{after, local_zones, reset_time};
use super::rules::{Rule, Verdict};
use super::scan::{Hit, evidence, is_wrapper};
use crate::model::agent_record::AgentRecord;
use crate::model::failure::{Cause, Evidence, EvidenceSource, Failure, FailureEvidence, Location};
use crate::model::feedback::CheckKind;
use crate::model::time::Timestamp;
use crate::policy::patterns::{Found, Single};
use crate::policy::secrets::redact;
use crate::policy::text::{
    Line, MAX_EXCERPT_BYTES, Text, checksum, cut, excerpt, places, without_controls,
};

/// How long the text of a piece of evidence is at most, in bytes.
const MAX_EVIDENCE_BYTES: usize = 300;
/// How long a message is at most, in bytes.
const MAX_MESSAGE_BYTES: usize = 200;
/// How many rules that lost are reported.
const MAX_REJECTED: usize = 10;
/// In how many lines after an error its reset is looked for.
const MAX_PARAGRAPH: usize = 12;
/// How many failed tests make up a signature.
const MAX_NAMES: usize = 20;

/// Where runners name a test that failed.
static FAILED_NAME: Single = Single::new(
    r"^(?:test (\S.*?) \.\.\. FAILED|FAILED (\S+::\S[^\n]*?)(?: - .*)?$|ERROR (\S+\.py\S*)|\s*--- FAIL: (\S+?):?(?:\s|$)|not ok \d+ -? ?(.+)|(?:FAIL|ERROR): (\w+ \(.+\))|\s*(?:\xE2\x97\x8F|\xE2\x9C\x95|\xE2\x9C\x97|\xE2\x9C\x98|\xC3\x97) (\S.*)|\xE2\x9C\x96 ([^\d\s][^:]*)$|(\S+#\w+)(?: \[\S+:\d+\])?:$|\s+\d+\) (?:(?:Failure|Error):$|(\S.*))|(\S+ > .+) FAILED$|---- (.+) stdout ----|\[  FAILED  \] (\S+)|rspec (\./\S+)|\s*FAIL \[[^\]]*\] (.+)|\(fail\) (.+))",
);

/// A verdict with its reasons.
pub(super) struct Conclusion {
    pub verdict: Verdict,
    pub evidence: Evidence,
    pub rejected: Vec<Evidence>,
    pub message: String,
    /// What the failure is recognised by, where that is not the message.
    pub signature_text: Option<String>,
}

impl Conclusion {
    /// A verdict from one piece of evidence, which is the message too.
    pub(super) fn new(verdict: Verdict, evidence: Evidence) -> Self {
        Self {
            verdict,
            message: evidence.text.clone(),
            evidence,
            rejected: Vec::new(),
            signature_text: None,
        }
    }

    /// What a line says.
    pub(super) fn of_hit(hit: Hit<'_>) -> Self {
        Self::new(hit.rule.verdict, hit.evidence())
    }

    /// With other rules that matched the same text.
    pub(super) fn rejecting(mut self, rules: impl Iterator<Item = &'static Rule>) -> Self {
        let named = |rule: &Rule| Evidence {
            rule: rule.id.to_owned(),
            ..self.evidence.clone()
        };
        self.rejected = rules.map(named).collect();
        self
    }

    /// What a line shows by its shape.
    pub(super) fn of_line(
        rule: &str,
        verdict: Verdict,
        source: EvidenceSource,
        line: Line<'_>,
    ) -> Self {
        Self::new(verdict, evidence(rule, source, line))
    }

    /// Nothing explains the failure. A line that happens to be the last is no reason: it is what the failure is recognised by.
    pub(super) fn unexplained(rule: &str, verdict: Verdict, inputs: &Inputs<'_>) -> Self {
        let reason = for_want_of_reason(inputs);
        let is_silent = reason == exit_text(inputs.evidence);
        Self {
            signature_text: is_silent.then(|| last_words(inputs)),
            ..Self::bare(rule, verdict, reason)
        }
    }

    /// What the process itself shows, or what is left where nothing was said.
    pub(super) fn bare(rule: &str, verdict: Verdict, text: impl Into<String>) -> Self {
        let evidence = Evidence {
            rule: rule.to_owned(),
            source: EvidenceSource::Process,
            line: None,
            text: text.into(),
        };
        Self::new(verdict, evidence)
    }

    /// The failure that is recorded: redacted, bounded.
    pub(super) fn into_failure(mut self, inputs: &Inputs<'_>) -> Failure {
        let location = location(inputs, &self.evidence);
        if let Some(named) = self.said_better(inputs) {
            self.message = named;
            self.signature_text = None;
        }
        let short = |text: &str| {
            Some(shorten_chain(text, MAX_MESSAGE_BYTES)).filter(|text| !text.is_empty())
        };
        // An agent may report an error without a word.
        let message = short(&self.message).or_else(|| short(&for_want_of_reason(inputs)));
        let message = message.unwrap_or_else(|| exit_text(inputs.evidence));
        Failure {
            details: details(inputs, &self.evidence),
            location,
            failing: if self.verdict.cause == Cause::VerificationFailed {
                failed_names(inputs).to_vec()
            } else {
                Vec::new()
            },
            retry_after: retry_after(inputs, &self),
            rejected: self
                .rejected
                .into_iter()
                .take(MAX_REJECTED)
                .map(shown)
                .collect(),
            signature: signature(
                self.verdict.cause,
                self.signature_text.as_ref().unwrap_or(&message),
            ),
            ..of_verdict(self.verdict, message, self.evidence)
        }
    }

    /// What says more than the line that decided, where that is the message.
    fn said_better(&self, inputs: &Inputs<'_>) -> Option<String> {
        let (evidence, message) = (&self.evidence, &self.message);
        match evidence.source {
            EvidenceSource::Record => None,
            // A signal, or a status of the shell: why is what was said last.
            EvidenceSource::Process => {
                let ended = ["process.signal", "process.status-12"];
                let dies = ended.iter().any(|rule| evidence.rule.starts_with(rule));
                let raised = || Some(inputs.raised()?.text.clone());
                let last = raised()
                    .filter(|_| dies)
                    .or_else(|| complained(inputs).filter(|_| dies))?;
                Some(format!("{message}: {last}"))
            }
            source => {
                let cause = self.verdict.cause;
                let named = (*message == evidence.text)
                    .then(|| message::instead_of(inputs, source, evidence.line, cause, message));
                named.flatten().or_else(|| {
                    let rest = message::below(inputs.stream(source), evidence.line?)?;
                    let goes_on = message.ends_with(':') || rest.starts_with("- ");
                    goes_on.then(|| format!("{message} {rest}"))
                })
            }
        }
    }

    /// The failure where there is no output to look at.
    pub(super) fn into_failure_without_output(self) -> Failure {
        of_verdict(self.verdict, self.message, self.evidence)
    }
}

/// The place that the evidence is about, else that where the program died.
fn location(inputs: &Inputs<'_>, evidence: &Evidence) -> Option<Location> {
    // What a model quotes is not where its program failed.
    if inputs.stage == Some(CheckKind::Agent) && inputs.record.is_some() {
        return None;
    }
    let died = || {
        let is_of = |raised: &&crash::Raised<'_>| {
            evidence.line.is_none_or(|line| line == raised.line.number)
                || crash::is_around(&evidence.text)
        };
        inputs.raised().filter(is_of)?.location.clone()
    };
    places(&evidence.text).into_iter().next().or_else(died)
}

/// When a limit resets: what the record says, else what the text says.
fn retry_after(inputs: &Inputs<'_>, conclusion: &Conclusion) -> Option<Timestamp> {
    if conclusion.verdict.cause != Cause::RateLimited {
        return None;
    }
    let by_record = inputs.record.and_then(|record| {
        let epoch = record
            .resets_at
            .map(|seconds| Timestamp::from_millis(seconds.saturating_mul(1000)));
        let wait = record
            .retry_after_seconds
            .map(|seconds| after(Duration::from_secs(seconds), inputs.now));
        epoch.or(wait)
    });
    by_record.or_else(|| {
        let zones = local_zones(inputs.evidence);
        let said = &conclusion.evidence;
        let read = |text: &str| reset_time(text, inputs.now, &zones);
        read(&said.text).or_else(|| read(&with_rest_of_paragraph(inputs, said)?))
    })
}

/// The line of the evidence with what follows in its text, up to an empty line.
fn with_rest_of_paragraph(inputs: &Inputs<'_>, said: &Evidence) -> Option<String> {
    let number = said
        .line
        .filter(|_| said.source != EvidenceSource::Record)?;
    let lines = inputs.stream(said.source).lines();
    let after = lines.skip_while(|line| line.number <= number);
    let rest = after
        .zip(number + 1..)
        .take(MAX_PARAGRAPH)
        .take_while(|(line, next)| line.number == *next);
    let begin = said.text.clone();
    Some(rest.fold(begin, |text, (line, _)| text + " " + &line.to_text()))
}

/// What follows from a verdict.
fn of_verdict(verdict: Verdict, message: String, evidence: Evidence) -> Failure {
    let (recoverable, suggested_action) = verdict.remedy();
    Failure {
        kind: verdict.kind,
        cause: verdict.cause,
        conditions: verdict.condition.into_iter().collect(),
        severity: verdict.kind.severity(),
        retryable: verdict.retryable,
        recoverable,
        suggested_action,
        signature: signature(verdict.cause, &message),
        message,
        details: None,
        retry_after: None,
        location: None,
        failing: Vec::new(),
        evidence: vec![shown(evidence)],
        rejected: Vec::new(),
        detail: verdict.detail,
        iteration: None,
        attempt: None,
        at: None,
    }
}

fn shown(mut evidence: Evidence) -> Evidence {
    evidence.text = shorten(&evidence.text, MAX_EVIDENCE_BYTES);
    evidence
}

/// On one line without control characters, redacted.
fn on_one_line(text: &str) -> String {
    let words = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty());
    redact(&words.collect::<Vec<_>>().join(" ")).into_owned()
}

/// The same, cut.
fn shorten(text: &str, max_bytes: usize) -> String {
    let mut text = on_one_line(text);
    if text.len() > max_bytes {
        cut(&mut text, max_bytes - '…'.len_utf8());
        text.push('…');
    }
    text
}

/// The same, where a chain of causes keeps its end: what comes last is why.
fn shorten_chain(text: &str, max_bytes: usize) -> String {
    /// As many parts make a chain.
    const PARTS: usize = 4;
    let text = on_one_line(text);
    let parts: Vec<usize> = text.match_indices(": ").map(|(at, _)| at + 2).collect();
    let end = parts
        .iter()
        .find(|at| text.len() - **at <= max_bytes / 3 * 2);
    match end.filter(|_| text.len() > max_bytes && parts.len() + 1 >= PARTS) {
        Some(end) => {
            let end = &text[*end..];
            format!("{} {end}", shorten(&text, max_bytes - end.len() - 1))
        }
        None => shorten(&text, max_bytes),
    }
}

/// What an agent said last, what its last tool that failed said, and what came on stderr: its records are for programs.
fn said_by(record: &AgentRecord, inputs: &Inputs<'_>) -> Option<String> {
    let room = MAX_EXCERPT_BYTES / 3;
    let bounded = |text: &str| {
        let mut text = redact(&without_controls(text.trim())).into_owned();
        if text.len() > room {
            text = excerpt(&Text::new(text.as_bytes()), None, room);
        }
        text
    };
    let stderr = (!inputs.stderr.is_empty()).then(|| excerpt(inputs.stderr, None, room));
    let part = |name: &str, text: &Option<String>| {
        let text = text.as_deref().filter(|text| !text.trim().is_empty())?;
        Some(format!("{name}: {}", bounded(text)))
    };
    let parts = [
        part("Last words", &record.final_text),
        part("Last tool error", &record.tool_error),
        stderr,
    ];
    joined(parts.into_iter().flatten(), "\n\n")
}

/// Texts that were masked one by one as one: a secret may stand in the one after its name.
fn joined(parts: impl Iterator<Item = String>, between: &str) -> Option<String> {
    let mut text = redact(&parts.collect::<Vec<_>>().join(between)).into_owned();
    cut(&mut text, MAX_EXCERPT_BYTES);
    (!text.is_empty()).then_some(text)
}

/// Of each stream that says something: around the evidence, and the end.
fn details(inputs: &Inputs<'_>, evidence: &Evidence) -> Option<String> {
    let spoken: Vec<_> = inputs
        .streams()
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .collect();
    // The agent's transcript on stdout is no excerpt for people; its error is.
    if evidence.source == EvidenceSource::Record {
        let mut text = redact(&without_controls(&evidence.text)).into_owned();
        cut(&mut text, MAX_EXCERPT_BYTES);
        return Some(text);
    }
    if let Some(record) = inputs.record.filter(|record| record.structured) {
        return said_by(record, inputs);
    }
    let room = (MAX_EXCERPT_BYTES / spoken.len().max(1)).saturating_sub(1);
    let parts = spoken.iter().map(|(source, text)| {
        let line = evidence.line.filter(|_| evidence.source == *source);
        excerpt(text, line, room)
    });
    joined(parts, "\n")
}

/// The failed tests' names, in the order of the output.
pub(super) fn failed_names<'n>(inputs: &'n Inputs<'_>) -> &'n [String] {
    inputs.names.get_or_init(|| names_in(inputs))
}

fn names_in(inputs: &Inputs<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in inputs.stdout.lines().chain(inputs.stderr.lines()) {
        let found = FAILED_NAME.first_in(line.bytes);
        let Some(name) = found.and_then(|found| found.first_group()) else {
            continue;
        };
        let name = String::from_utf8_lossy(&line.bytes[name]).trim().to_owned();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
        if names.len() == MAX_NAMES {
            break;
        }
    }
    names
}

/// "2 failed, 7 passed: first failed test", as far as the output shows.
pub(super) fn of_tests(inputs: &Inputs<'_>, evidence: &Evidence, names: &[String]) -> String {
    let name = names.first().map(String::as_str);
    match (inputs.counts.failed, inputs.counts.passed, name) {
        (Some(failed), passed, name) if failed > 0 => {
            let passed = passed.map_or(String::new(), |passed| format!(", {passed} passed"));
            let name = name.map_or(String::new(), |name| format!(": {name}"));
            format!("{failed} failed{passed}{name}")
        }
        (_, _, Some(name)) => format!("Failed: {name}"),
        _ => evidence.text.clone(),
    }
}

/// The last thing that was said, for want of a reason.
pub(super) fn last_words(inputs: &Inputs<'_>) -> String {
    let mut streams = inputs.streams().into_iter();
    let last = streams.find_map(|(_, text)| text.lines().next_back());
    last.map_or_else(|| exit_text(inputs.evidence), Line::to_text)
}

/// An error that is named by its type.
static TYPED: Single = Single::new(r"^(?:[A-Za-z_]\w*(?:\.|::))*[A-Z]\w*(?:Error|Exception): \S");

/// What the caller says, the error that a program died of, or else the exit status and what was complained of last.
fn for_want_of_reason(inputs: &Inputs<'_>) -> String {
    let given = inputs.evidence.message.clone();
    given
        .filter(|message| !message.trim().is_empty())
        .or_else(|| Some(inputs.raised()?.text.clone()))
        .or_else(|| {
            let last = complained(inputs).or_else(|| repeated(inputs))?;
            let typed = TYPED.first(&last).is_some();
            let status = || format!("{}: {last}", exit_text(inputs.evidence));
            Some(if typed { last.clone() } else { status() })
        })
        .unwrap_or_else(|| exit_text(inputs.evidence))
}

/// What a program that only ran another one said last.
fn repeated(inputs: &Inputs<'_>) -> Option<String> {
    let streams = inputs.texts().into_iter().take(1);
    let mut lines = streams.flat_map(|text| text.lines().rev());
    lines
        .find(|line| is_wrapper(line.bytes) && line.bytes.iter().any(u8::is_ascii_digit))
        .map(Line::to_text)
}

/// The exit status, where nothing was said at all.
pub(super) fn exit_text(evidence: &FailureEvidence) -> String {
    evidence.exit_code.map_or_else(
        || "No exit status".to_owned(),
        |code| format!("Exit status {code}"),
    )
}

/// What varies from run to run, and what it becomes; of a path its last name stays. In this order: longer forms first.
static VARYING: [(Single, Option<&str>); 10] = [
    (
        Single::new(
            r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        ),
        Some("<id>"),
    ),
    (
        Single::new(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"),
        Some("<time>"),
    ),
    (
        Single::new(r"\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\s?(?:[ap]m\b)?"),
        Some("<time>"),
    ),
    (Single::new(r"\b0x[0-9a-fA-F]+\b"), Some("<address>")),
    (Single::new(r"\b[a-z]+://\S+"), Some("<url>")),
    (
        Single::new(r"(?:[A-Za-z]:)?(?:[\w.@~+-]*[/\\])+([\w.@+-]*)"),
        None,
    ),
    (
        Single::new(r"\b(?:tmp|temp)[\w.-]*\b|\.tmp\w+"),
        Some("<temporary>"),
    ),
    (Single::new(r"\b[0-9a-f]{7,64}\b"), Some("<hash>")),
    (
        Single::new(
            r"\b\d+(?:\.\d+)?\s?(?:ns|us|\u{b5}s|ms|s|sec|secs|seconds?|min|minutes?|h|hours?)\b",
        ),
        Some("<duration>"),
    ),
    (Single::new(r"\d+"), Some("#")),
];

/// The message without paths, line numbers, times, durations, addresses, hashes and temporary names.
fn normalize(message: &str) -> String {
    let mut text = message.trim().to_owned();
    for (pattern, to) in &VARYING {
        let replacement = |found: &Found| {
            let group = found.group(1).map_or("", |range| &text[range]);
            to.unwrap_or(group).to_owned()
        };
        if let Some(replaced) = pattern.replace(&text, replacement) {
            text = replaced;
        }
    }
    one_space(&text).to_lowercase()
}

/// One space for each run of space.
fn one_space(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_whitespace() {
            spaced.push(c);
        } else if !spaced.ends_with(' ') {
            spaced.push(' ');
        }
    }
    spaced
}

/// Sixteen hexadecimal digits of the cause and the normalised message; the same on every platform and version.
fn signature(cause: Cause, message: &str) -> String {
    let text = format!("{}\n{}", cause.as_str(), normalize(message));
    format!("{:016x}", checksum(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(VARYING.iter().all(|(pattern, _)| pattern.compiles()));
    }

    #[test]
    fn what_varies_does_not_count() {
        let a = "/home/a/x/src/net.rs:12:5: error after 1.2s at 0x7f00 (pid 4711, commit 0c3e936)";
        let b = "C:\\work\\src\\net.rs:99:1: error after 800ms at 0xdead (pid 12, commit fffffff)";
        assert_eq!(normalize(a), normalize(b));
        assert_eq!(
            signature(Cause::BrokenBuild, a),
            signature(Cause::BrokenBuild, b)
        );
        assert_ne!(
            signature(Cause::BrokenBuild, a),
            signature(Cause::Crashed, a)
        );
        assert_ne!(
            signature(Cause::BrokenBuild, "cannot find a"),
            signature(Cause::BrokenBuild, "cannot find b")
        );
    }

    #[test]
    fn space_counts_once() {
        let space = regex::Regex::new(r"\s+").unwrap();
        for text in [
            "",
            " ",
            "a",
            " a \t\u{a0}b\n",
            "a\u{2003}b  c",
            "a\u{b}\u{c}\r\u{85}b\u{1c}c",
        ] {
            assert_eq!(one_space(text), space.replace_all(text, " "), "{text:?}");
        }
    }

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(signature(Cause::Unknown, "x"), "5278224eb71e68e3");
    }
}
