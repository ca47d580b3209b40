//! The one line for people.

use super::inputs::Inputs;
use crate::model::failure::{Evidence, FailureEvidence};
use crate::policy::patterns::Single;
use crate::policy::text::Line;

/// How many failed tests make up a signature.
const MAX_NAMES: usize = 20;

/// Where runners name a test that failed.
static FAILED_NAME: Single = Single::new(
    r"^(?:test (\S.*?) \.\.\. FAILED|FAILED (\S+::\S[^\n]*?)(?: - .*)?$|ERROR (\S+\.py\S*)|\s*--- FAIL: (\S+)|not ok \d+ -? ?(.+)|(?:FAIL|ERROR): (\w+ \(.+\))|\s*(?:\xE2\x97\x8F|\xE2\x9C\x95|\xE2\x9C\x97|\xE2\x9C\x98|\xC3\x97) (\S.*)|\s+\d+\) (\S.*)|(\S+ > .+) FAILED$|---- (.+) stdout ----|\[  FAILED  \] (\S+)|rspec (\./\S+)|\s*FAIL \[[^\]]*\] (.+)|\(fail\) (.+))",
);

/// The failed tests' names, in the order of the output.
pub(super) fn failed_names(inputs: &Inputs<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in inputs.stdout.lines().chain(inputs.stderr.lines()) {
        let Some(name) = FAILED_NAME.first_in(line.bytes).and_then(|found| found.first_group()) else { continue };
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
    let last = inputs.stderr.lines().next_back().or_else(|| inputs.stdout.lines().next_back());
    last.map_or_else(|| exit_text(inputs.evidence), Line::to_text)
}

/// What the caller says, the error of a Python traceback, which is its last line, or else the exit status.
pub(super) fn for_want_of_reason(inputs: &Inputs<'_>) -> String {
    let traceback = [inputs.stderr, inputs.stdout].into_iter().find_map(|text| {
        let mut lines = text.lines().skip_while(|line| !line.bytes.starts_with(b"Traceback (most recent call last)"));
        lines.next()?;
        lines.find(|line| !line.bytes.starts_with(b" ")).map(Line::to_text)
    });
    let given = inputs.evidence.message.clone().filter(|message| !message.trim().is_empty());
    given.or(traceback).unwrap_or_else(|| exit_text(inputs.evidence))
}

/// The exit status, where nothing was said at all.
pub(super) fn exit_text(evidence: &FailureEvidence) -> String {
    evidence.exit_code.map_or_else(|| "No exit status".to_owned(), |code| format!("Exit status {code}"))
}
