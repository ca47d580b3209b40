//! Summarises a check's output in one line: what passed, what failed.

use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Captures, Regex};

use crate::policy::patterns::Patterns;
use crate::policy::text::Text;

/// How runners write their counts, the most telling first: in groups named `passed` and `failed`, else as every `N word` of
/// the line. Of several lines the last one counts.
const FORMATS: &[&str] = &[
    r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed",
    r"^\s+Summary \[\s*[\d.]+s\]\s+\d+(?:/\d+)? tests? run:",
    r"^(?:=+ )?(?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun)(?:, )?)+ in [\d.]+s",
    r"^Tests:\s+.*\d+ total",
    r"^Tests: \d+, Assertions: \d+",
    r"^\s*Tests\s+\d+ (?:failed|passed)",
    r"^Tests run: \d+,?.*|^\[\w+\] Tests run: \d+, Failures: \d+",
    r"^(?:\[ERROR\]|\[WARNING\])?\s*Tests run: \d+, Failures",
    r"^\d+ examples?, \d+ failures?",
    r"^\d+ (?:runs|tests), .*\d+ failures",
    r"^\d+ tests?, \d+ failures?",
    r"^\d+ tests? completed, \d+ failed",
    r"^\d+ failures?, \d+ errors?\.?$",
    r"^\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<total>\d+)",
    r"Failed:\s+(?P<failed>\d+), Passed:\s+(?P<passed>\d+)",
    r"^(?:ok|FAILED) \| \d+ passed",
    r"^Executed \d+ of \d+ .*FAILED",
    r"^\s*(?P<failed>\d+) failing\b",
    r"^\s*(?P<passed>\d+) passing\b",
    r"^(?:#|\xE2\x84\xB9) pass +(?P<passed>\d+)$",
    r"^(?:#|\xE2\x84\xB9) fail +(?P<failed>\d+)$",
    r"^\s*(?P<passed>\d+) pass$",
    r"^\s*(?P<failed>\d+) fail$",
    r"^\s+(?P<failed>\d+) failed$",
    r"^\s+(?P<passed>\d+) passed \([\d.]+m?s\)$",
    r"^FAILED \(",
    // Runners of one's own: a line of nothing but counts, of what passed and of what failed, whatever it is called.
    r"^\s*(?:[A-Za-z][\w ]*:\s*)?(?:\d+ \w+(?:[,;]| and) )*(?P<passed>\d+) passed(?:[,;]| and) (?:\d+ \w+(?:[,;]| and) )*(?P<failed>\d+) failed(?:(?:[,;]| and) \d+ \w+)*\.?$",
    r"^\s*(?:[A-Za-z][\w ]*:\s*)?(?:\d+ \w+(?:[,;]| and) )*(?P<failed>\d+) failed(?:[,;]| and) (?:\d+ \w+(?:[,;]| and) )*(?P<passed>\d+) passed(?:(?:[,;]| and) \d+ \w+)*\.?$",
    r"\xE2\x9C\x96 \d+ problems? \((?P<failed>\d+) errors?",
    r"^Found (?P<failed>\d+) (?:errors?|diagnostics?|offenses?|issues?)\b",
    r"\d+ files? inspected, (?P<failed>\d+) offenses?",
    r"^(?P<failed>\d+) errors?, \d+ warnings?",
];

/// The format whose lines add up: there is one for each test binary.
const ADDS_UP: usize = 0;

/// Lines of which one is one test: Go's, unittest's total, TypeScript's errors.
const COUNTED: &[&str] = &[
    r"^\s*--- PASS: ",
    r"^\s*--- FAIL: ",
    r"^ok  \t",
    r"^FAIL\t",
    r"error TS\d+: ",
    r"^Ran \d+ tests? (?:in|containing)\b",
];

/// The formats, then what is counted.
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(patterns()));
/// The formats whose numbers are in groups.
static GROUPS: [OnceLock<Option<Regex>>; FORMATS.len()] =
    [const { OnceLock::new() }; FORMATS.len()];
static NUMBER_WORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile(
        r"(?P<count>\d+) (?P<word>[a-z]+(?: out)?)|(?P<name>[A-Za-z]+)(?: run)?[:=] ?(?P<number>\d+)",
    )
});

/// The patterns in that order.
pub(super) fn patterns() -> Vec<&'static str> {
    [FORMATS, COUNTED].concat()
}

fn compile(pattern: &str) -> Option<Regex> {
    regex::bytes::RegexBuilder::new(pattern)
        .unicode(false)
        .build()
        .ok()
}

/// What the counts of a run are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Checks that passed.
    pub passed: Option<u64>,
    /// Checks that failed.
    pub failed: Option<u64>,
}

/// Sums up a feedback loop's output: a line for people ("8 passed, 0 failed"), passed and failed checks where the
/// output tells. Without counts the line is the exit status.
pub(crate) fn summarize(
    output: &[u8],
    exit_code: Option<i32>,
) -> (String, Option<u64>, Option<u64>) {
    let counts = count([&Text::new(output)]);
    let line = match (counts.passed, counts.failed) {
        (None, None) => exit_code.map_or_else(
            || "no exit status".to_owned(),
            |code| format!("exit {code}"),
        ),
        (Some(passed), failed) => format!("{passed} passed, {} failed", failed.unwrap_or(0)),
        (None, Some(failed)) => format!("{failed} failed"),
    };
    (line, counts.passed, counts.failed)
}

/// Reads the counts of several streams.
pub(super) fn count<'a>(streams: impl IntoIterator<Item = &'a Text>) -> Counts {
    let mut found = vec![Counts::default(); FORMATS.len()];
    let mut counted = [0_u64; COUNTED.len()];
    let mut ran = None;
    for line in streams.into_iter().flat_map(Text::lines) {
        for index in PATTERNS
            .matches(line.bytes)
            .iter()
            .map(|number| usize::from(*number))
        {
            if let Some(index) = index.checked_sub(FORMATS.len()) {
                counted[index] += 1;
                if index == COUNTED.len() - 1 {
                    ran = ran_in(line.bytes);
                }
            } else if let Some(seen) = numbers(index, line.bytes) {
                let sum = &mut found[index];
                *sum = if index == ADDS_UP {
                    add(*sum, seen)
                } else {
                    seen
                };
            }
        }
    }
    let mut counts = found
        .into_iter()
        .fold(Counts::default(), |sum, next| Counts {
            passed: sum.passed.or(next.passed),
            failed: sum.failed.or(next.failed),
        });
    if counts == Counts::default() {
        let [passes, failures, packages, failed_packages, type_errors, _] = counted;
        if passes + failures > 0 {
            counts = Counts {
                passed: Some(passes),
                failed: Some(failures),
            };
        } else if packages + failed_packages > 0 {
            counts = Counts {
                passed: Some(packages),
                failed: Some(failed_packages),
            };
        } else if type_errors > 0 {
            counts.failed = Some(type_errors);
        }
    }
    if let Some(ran) = ran {
        counts.passed = Some(ran.saturating_sub(counts.failed.unwrap_or(0)));
        counts.failed = counts.failed.or(Some(0));
    }
    counts
}

/// The numbers of a line in the format `index`.
fn numbers(index: usize, line: &[u8]) -> Option<Counts> {
    if !FORMATS[index].contains("(?P<") {
        return Some(words(line));
    }
    let regex = GROUPS[index].get_or_init(|| compile(FORMATS[index]));
    regex
        .as_ref()?
        .captures(line)
        .map(|captures| groups(&captures))
}

/// The number in `Ran 3 tests in`.
fn ran_in(line: &[u8]) -> Option<u64> {
    number(line.split(|byte| *byte == b' ').nth(1)?)
}

fn add(sum: Counts, next: Counts) -> Counts {
    let plus = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    Counts {
        passed: plus(sum.passed, next.passed),
        failed: plus(sum.failed, next.failed),
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn groups(captures: &Captures<'_>) -> Counts {
    let group = |name: &str| {
        captures
            .name(name)
            .and_then(|found| number(found.as_bytes()))
    };
    let failed = group("failed");
    let passed = group("passed").or_else(|| Some(group("total")?.saturating_sub(failed?)));
    Counts { passed, failed }
}

/// Reads `3 passed`, `1 failed`, `2 errors`, `Failures: 1` wherever they are in the line.
fn words(line: &[u8]) -> Counts {
    let mut counts = Counts::default();
    let mut total = None;
    let Some(regex) = NUMBER_WORD.as_ref() else {
        return counts;
    };
    for captures in regex.captures_iter(line) {
        let pair = [("word", "count"), ("name", "number")]
            .into_iter()
            .find_map(|(word, count)| {
                Some((
                    captures.name(word)?.as_bytes().to_ascii_lowercase(),
                    number(captures.name(count)?.as_bytes())?,
                ))
            });
        let Some((word, number)) = pair else { continue };
        match word.as_slice() {
            b"passed" => counts.passed = Some(number),
            b"failed" | b"failures" | b"failure" | b"errors" | b"error" | b"timed"
            | b"timed out" | b"exec" => {
                counts.failed = Some(counts.failed.unwrap_or(0).saturating_add(number));
            }
            b"tests" | b"test" | b"examples" | b"example" | b"runs" | b"total" => {
                total = total.or(Some(number));
            }
            _ => {}
        }
    }
    counts.passed = counts
        .passed
        .or_else(|| total.map(|total| total.saturating_sub(counts.failed.unwrap_or(0))));
    if counts.passed.is_some() {
        counts.failed = counts.failed.or(Some(0));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::patterns::tests::nothing_is_missed;

    #[test]
    fn every_pattern_is_found_where_it_matches() {
        nothing_is_missed(&patterns());
    }

    #[test]
    fn counts_are_read_from_many_runners() {
        for (output, passed, failed) in [
            (
                "test result: ok. 3 passed; 0 failed; 0 ignored\ntest result: FAILED. 2 passed; 1 failed; 0 ignored",
                Some(5),
                Some(1),
            ),
            (
                "     Summary [   0.1s] 4 tests run: 2 passed, 1 failed, 1 timed out, 0 skipped",
                Some(2),
                Some(2),
            ),
            (
                "==== 1 failed, 8 passed, 2 warnings in 0.51s ====",
                Some(8),
                Some(1),
            ),
            (
                "1 failed, 1 passed in 0.6s\n2 passed in 0.4s",
                Some(2),
                Some(0),
            ),
            (
                "Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1)",
                Some(3),
                Some(2),
            ),
            ("Ran 5 tests in 0.001s\n\nOK", Some(5), Some(0)),
            (
                "Test Suites: 1 failed, 1 total\nTests:       2 failed, 3 passed, 5 total",
                Some(3),
                Some(2),
            ),
            (
                " Test Files  1 failed (1)\n      Tests  1 failed | 3 passed (4)",
                Some(3),
                Some(1),
            ),
            ("  3 passing (10ms)\n  1 failing", Some(3), Some(1)),
            ("# pass 2\n# fail 1", Some(2), Some(1)),
            (
                "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\tx\t0.1s",
                Some(1),
                Some(1),
            ),
            ("\u{2716} 3 problems (2 errors, 1 warning)", None, Some(2)),
            (
                "a.ts(1,2): error TS2322: x\na.ts(3,2): error TS2322: y",
                None,
                Some(2),
            ),
            (
                "75% tests passed, 1 tests failed out of 4",
                Some(3),
                Some(1),
            ),
            ("3 passed, 0 failed", Some(3), Some(0)),
            ("  2 passed, 1 failed, 4 skipped", Some(2), Some(1)),
            ("Tests: 3 passed, 0 failed", Some(3), Some(0)),
            ("unit tests: 1 failed, 3 passed", Some(3), Some(1)),
            ("Results: 5 passed and 2 failed.", Some(5), Some(2)),
            ("3 passed, 0 failed\n1 passed, 2 failed", Some(1), Some(2)),
            ("the docs say that 3 passed, 1 failed of old", None, None),
            ("3 passed", None, None),
            ("nothing", None, None),
        ] {
            let (_, seen_passed, seen_failed) = summarize(output.as_bytes(), Some(1));
            assert_eq!((seen_passed, seen_failed), (passed, failed), "{output}");
        }
        assert_eq!(summarize(b"", Some(7)).0, "exit 7");
        assert_eq!(
            summarize(b"2 passed in 0.1s", Some(0)).0,
            "2 passed, 0 failed"
        );
    }
}
