//! A short message, where it is all that is known: the line that a loop's author wrote of what happened.

use super::api::{self, is_of_api};
use super::conclusion::Conclusion;
use super::inputs::Inputs;
use super::process;
use super::rules::{AGENT, ANY, BUILD, FAMILIES, Family, LINT, Rule, TEST, TYPECHECK};
use crate::model::failure::{Evidence, EvidenceSource};
use crate::model::feedback::CheckKind;
use crate::policy::patterns::Single;
use crate::policy::text::Line;

/// More lines are a log.
const MAX_LINES: usize = 3;

/// What the one line that was said names, where the process shows nothing.
pub(super) fn named(inputs: &Inputs<'_>) -> Option<Conclusion> {
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
pub(super) fn headed(inputs: &Inputs<'_>) -> Option<Conclusion> {
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
    let streams = [
        (EvidenceSource::Stderr, inputs.stderr),
        (EvidenceSource::Stdout, inputs.stdout),
    ];
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

/// The stages whose rules are asked: a message without a stage may be of any.
fn stages(inputs: &Inputs<'_>) -> u8 {
    match inputs.stage {
        None => ANY,
        Some(CheckKind::Agent) => AGENT,
        Some(CheckKind::Build) => BUILD,
        Some(CheckKind::Test) => TEST,
        Some(CheckKind::Lint) => LINT,
        Some(CheckKind::Typecheck) => TYPECHECK,
    }
}

fn by_rules(
    inputs: &Inputs<'_>,
    family: Family,
    source: EvidenceSource,
    line: Line<'_>,
) -> Option<Conclusion> {
    let stages = stages(inputs);
    let rules = FAMILIES[family as usize].matches(line.bytes).into_iter();
    let rule = rules
        .filter(|rule| rule.stages & stages != 0)
        .find(|rule| !is_of_connection(rule, line.bytes))?;
    let asserted = family == Family::SummaryAssertion;
    if asserted && is_of_api(line.bytes) || !asserted && is_denied(line.bytes) {
        return None;
    }
    let mut conclusion = Conclusion::of_line(rule.id, rule.verdict, source, line);
    conclusion.rejected = lost(stages, &conclusion.evidence, line);
    Some(conclusion)
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
    Some(Conclusion::of_report(reported))
}

/// The rules about longer outputs that the line resembles.
fn lost(stages: u8, won: &Evidence, line: Line<'_>) -> Vec<Evidence> {
    let families = FAMILIES.iter().take(Family::WeakBuild as usize);
    let rules = families
        .flat_map(|family| family.matches(line.bytes))
        .filter(|rule| rule.stages & stages != 0);
    rules
        .map(|rule| Evidence {
            rule: rule.id.to_owned(),
            ..won.clone()
        })
        .collect()
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
