//! Whether an attempt weakened its tests, with one table of how tests look in each language.
//!
//! Only files that differ are examined, before and after. Test files are known by their place and name, what is in
//! them by patterns of their language: counts of declarations, skip marks and assertions are compared, and what moved
//! from one file to another counts as still there.

mod commands;

pub(crate) use commands::{Loop, is_of_checks};

use std::collections::BTreeMap;
use std::sync::LazyLock;

use itertools::Itertools as _;

use super::ChangedFile;
use crate::policy::patterns::Single;
use crate::policy::text::count;

/// At most so many notes: they go into the ledger and into prompts.
const MAX_NOTES: usize = 10;

/// What weakens the checks, a line each; empty where nothing does.
pub(crate) fn tampering(files: &[ChangedFile], loops: &[Loop<'_>]) -> Vec<String> {
    let mut notes = weakened_tests(files);
    notes.extend(commands::changed_commands(files, loops));
    if notes.len() > MAX_NOTES {
        let more = notes.len() - (MAX_NOTES - 1);
        notes.truncate(MAX_NOTES - 1);
        notes.push(format!("and {more} more"));
    }
    notes
}

/// What an attempt's notes say of a check whose verdict changed by itself.
pub(crate) const FLAKY: &str = "failed first, passed when run again unchanged";
/// What they say of a check that the attempt did not break.
pub(crate) const FAILING_BEFORE: &str = "was already failing before the first attempt";

/// Of an attempt's notes those of [`tampering`].
pub(crate) fn of_tampering(notes: &[String]) -> impl Iterator<Item = &String> {
    notes
        .iter()
        .filter(|note| !note.ends_with(FLAKY) && !note.ends_with(FAILING_BEFORE))
}

/// These in one text.
pub(crate) fn tampering_text(notes: &[String], between: &str) -> String {
    of_tampering(notes).join(between)
}

/// What an attempt's notes of [`tampering`] are about, in two words each.
pub(crate) fn in_short(notes: &[String]) -> Vec<&'static str> {
    // The name of a file may hold any of these words: what is said of it comes after that.
    let about = |note: &String| {
        let said = note
            .rsplit_once(": ")
            .map_or(note.as_str(), |(_, said)| said);
        match said {
            _ if said.starts_with("the test file was") || said.ends_with("fewer") => {
                "tests removed"
            }
            _ if said.contains("skip mark") || said.starts_with("only some of its tests") => {
                "tests skipped"
            }
            _ if said.ends_with("assertions are gone") => "assertions removed",
            _ => "checks changed",
        }
    };
    let is_more = |note: &&String| note.starts_with("and ") && note.ends_with(" more");
    of_tampering(notes)
        .filter(|note| !is_more(note))
        .map(about)
        .collect()
}

/// A changed file with what its tests were and are.
struct Tests<'a> {
    file: &'a ChangedFile,
    before: Seen,
    after: Seen,
}

fn weakened_tests(files: &[ChangedFile]) -> Vec<String> {
    let all: Vec<Tests<'_>> = files
        .iter()
        .filter(|file| file.is_text())
        .map(|file| Tests {
            file,
            before: see(&file.path, file.old_text()),
            after: see(&file.path, file.new_text()),
        })
        .collect();
    let of = |pick: fn(&Seen) -> &Vec<String>| Moves::of(&all, pick);
    let (declared, skipped, asserted) = (
        of(|seen| &seen.declared),
        of(|seen| &seen.skipped),
        of(|seen| &seen.asserted),
    );
    let mut notes = Vec::new();
    for (at, tests) in all.iter().enumerate() {
        let path = &tests.file.path;
        let fewer = declared.lost(at).saturating_sub(declared.gained(at));
        if tests.file.new_text().trim().is_empty() {
            // A file that is a test as a whole need not declare any.
            let whole = tests.before.declared.is_empty()
                && is_test_name(path)
                && !tests.file.old_text().trim().is_empty();
            if (fewer > 0 || whole) && !has_moved(files, tests.file) {
                let is_gone = tests.file.after.is_none();
                let fate = if is_gone { "deleted" } else { "emptied" };
                notes.push(format!("{path}: the test file was {fate}"));
            }
            continue;
        }
        if fewer > 0 {
            notes.push(format!("{path}: {} fewer", count(fewer, "test")));
        }
        let more = skipped.gained(at).saturating_sub(skipped.lost(at));
        if more > 0 && tests.file.before.is_some() {
            notes.push(format!("{path}: {} more", count(more, "skip mark")));
        }
        if tests.after.focused > tests.before.focused {
            notes.push(format!("{path}: only some of its tests are run"));
        }
        let (had, lost) = (
            tests.before.asserted.len(),
            asserted.lost(at).saturating_sub(asserted.gained(at)),
        );
        // Tests that are gone took theirs along, which is said already.
        if fewer == 0 && lost > 0 && lost * 2 >= had {
            notes.push(format!("{path}: {lost} of {had} assertions are gone"));
        }
    }
    notes
}

/// Whether the very content of a file that is gone is in a new test file.
fn has_moved(files: &[ChangedFile], gone: &ChangedFile) -> bool {
    let oid = gone.before.as_ref().map(|content| &content.oid);
    let extension = |path: &str| {
        path.rsplit('/')
            .next()
            .and_then(|name| name.rsplit_once('.'))
            .map(|(_, end)| end.to_owned())
    };
    let alike = |path: &str| is_test_path(path) && extension(path) == extension(&gone.path);
    let new = |file: &&ChangedFile| file.before.is_none() && alike(&file.path);
    files
        .iter()
        .filter(new)
        .any(|file| file.after.as_ref().map(|content| &content.oid) == oid)
}

/// What each file lost and gained, without what moved between them.
struct Moves {
    lost: Vec<BTreeMap<String, usize>>,
    gained: Vec<BTreeMap<String, usize>>,
}

impl Moves {
    fn of(all: &[Tests<'_>], pick: fn(&Seen) -> &Vec<String>) -> Self {
        let mut moves = Self {
            lost: Vec::new(),
            gained: Vec::new(),
        };
        for tests in all {
            let (before, after) = (bag(pick(&tests.before)), bag(pick(&tests.after)));
            moves.lost.push(surplus(&before, &after));
            moves.gained.push(surplus(&after, &before));
        }
        for from in 0..moves.lost.len() {
            for to in 0..moves.gained.len() {
                moves.cancel(from, to);
            }
        }
        moves
    }

    /// What one file lost and another gained has moved.
    fn cancel(&mut self, from: usize, to: usize) {
        if from == to || self.lost[from].is_empty() || self.gained[to].is_empty() {
            return;
        }
        for (what, lost) in &mut self.lost[from] {
            if let Some(gained) = self.gained[to].get_mut(what) {
                let moved = (*lost).min(*gained);
                *lost -= moved;
                *gained -= moved;
            }
        }
    }

    fn lost(&self, at: usize) -> usize {
        self.lost[at].values().sum()
    }

    fn gained(&self, at: usize) -> usize {
        self.gained[at].values().sum()
    }
}

fn bag(items: &[String]) -> BTreeMap<String, usize> {
    let mut bag = BTreeMap::new();
    for item in items {
        *bag.entry(item.clone()).or_default() += 1;
    }
    bag
}

fn surplus(
    one: &BTreeMap<String, usize>,
    other: &BTreeMap<String, usize>,
) -> BTreeMap<String, usize> {
    let left = |(what, count): (&String, &usize)| {
        let left = count.saturating_sub(other.get(what).copied().unwrap_or(0));
        (left > 0).then(|| (what.clone(), left))
    };
    one.iter().filter_map(left).collect()
}

/// What a file's text says about tests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Names of the tests it declares.
    pub declared: Vec<String>,
    /// Lines that leave tests out.
    pub skipped: Vec<String>,
    /// How many marks leave all other tests out.
    pub focused: usize,
    /// Lines that assert something.
    pub asserted: Vec<String>,
}

/// One language. Patterns are for one line, declarations for the whole text: the first group that took part is the name.
struct Language {
    extensions: &'static [&'static str],
    /// Whether tests are in files of any name.
    anywhere: bool,
    /// What begins a line of comment.
    comment: &'static [&'static str],
    declares: &'static str,
    skips: &'static str,
    focuses: &'static str,
    asserts: &'static str,
    /// Assertions that say nothing.
    vacuous: &'static str,
}

const NEVER: &str = r"\A\z.";
const SLASHES: &[&str] = &["//", "/*", "*"];
const HASH: &[&str] = &["#"];

const PLAIN: Language = Language {
    extensions: &[],
    anywhere: false,
    comment: SLASHES,
    declares: NEVER,
    skips: NEVER,
    focuses: NEVER,
    asserts: NEVER,
    vacuous: NEVER,
};

const LANGUAGES: [Language; 12] = [
    Language {
        extensions: &["rs"],
        anywhere: true,
        declares: r"(?m)^[ \t]*#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck|wasm_bindgen_test)\b[^\]\n]*\](?:\s*#\[[^\n]*|\s*//[^\n]*)*\s*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?fn\s+(\w+)",
        skips: r"^\s*#\[\s*(?:ignore\b|cfg_attr\(.*\bignore\b|cfg\(any\(\)\))",
        asserts: r"\b\w*assert\w*!\s*[(\[{]",
        vacuous: r"\bassert!\(\s*true\s*[,)]|\bassert_eq!\(\s*(?:1\s*,\s*1|true\s*,\s*true)\s*[,)]",
        ..PLAIN
    },
    Language {
        extensions: &["py"],
        comment: HASH,
        declares: r"(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+(test\w*)",
        skips: r"@(?:pytest\.mark\.(?:skip|skipif|xfail)|(?:unittest\.)?(?:skip\w*|expectedFailure))\b|\bpytest\.(?:skip|xfail)\(|\.skipTest\(|\bSkipTest\b|^\s*(?:collect_ignore\w*|__test__|pytestmark)\s*=",
        asserts: r"^\s*assert\b|\bself\.(?:assert\w+|fail)\(|\bpytest\.(?:raises|warns)\b|\.assert_\w+\(",
        vacuous: r"^\s*assert\s+(?:True|1|not\s+False|1\s*==\s*1)\s*(?:,.*|#.*)?$|\.assertTrue\(\s*True\s*\)|\.assertEqual\(\s*1\s*,\s*1\s*\)",
        ..PLAIN
    },
    Language {
        extensions: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"],
        declares: r#"(?m)(?:^|[^\w.$])(?:[xf]?it|x?test|x?specify|Deno\.test)(?:\.(?:each|concurrent|serial|failing|fails|skip|only|todo|fixme)\b)*(?:\([^)\n]*\)|`[^`]*`)?\(\s*["'`]([^"'`\n]*)"#,
        skips: r"\b(?:it|test|describe|context|suite|specify|Deno\.test)(?:\.\w+)?\.(?:skip|todo|fixme|failing|fails|skipIf|ignore)\b|\b(?:it|test|describe|context|suite)\.(?:skip|todo|fixme|failing|fails|skipIf|ignore)\b|\bx(?:it|test|describe|context|specify)\s*\(|\bthis\.skip\(|\bt\.skip\(|\bignore:\s*true",
        focuses: r"\b(?:it|test|describe|context|suite|specify)\.only\b|\bf(?:it|describe)\s*\(",
        asserts: r"\bexpect\w*\s*[(.]|\bassert(?:\.\w+)*\s*\(|\.should\b|\bt\.(?:is|not|deepEqual|true|false|truthy|falsy|throws\w*|equal|same|ok|like)\(",
        vacuous: r"\bexpect\(\s*(?:true|1)\s*\)\.\w+\(\s*(?:true|1)?\s*\)|\bassert(?:\.ok)?\(\s*true\s*\)",
        ..PLAIN
    },
    Language {
        extensions: &["go"],
        declares: r#"(?m)^func\s+((?:Test|Benchmark|Fuzz|Example)\w*)\s*\(|\bt\.Run\(\s*"([^"\n]*)""#,
        skips: r"\b[tbf]\.Skip(?:f|Now)?\(",
        asserts: r"\b[tbf]\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\b(?:assert|require|is|qt)\.\w+\(",
        vacuous: r"\b(?:assert|require)\.True\(\s*t\s*,\s*true\s*[,)]",
        ..PLAIN
    },
    Language {
        extensions: &["java", "kt", "kts", "scala", "groovy"],
        declares: r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b(?:[^{;]*?\b(?:void|fun|def)\s+(\w+|`[^`\n]+`))?",
        skips: r"@(?:\w+\.)*(?:Disabled\w*|Ignore|EnabledIf\w*)\b|\bassume(?:True|False|That)\(",
        asserts: r"\b(?:assert\w*|verify|fail|expect\w*)\s*[({<]|\bshould\w*\b",
        vacuous: r"\bassertTrue\(\s*true\s*\)|\bassertEquals\(\s*1\s*,\s*1\s*\)",
        ..PLAIN
    },
    Language {
        extensions: &["cs", "fs"],
        declares: r"\[(?:Fact|Theory|Test|TestCase|TestMethod|DataTestMethod)\b[^\]\n]*\](?:[^{;]*?\b(\w+)\s*\()?",
        skips: r"\bSkip\s*=|\[Ignore\b|\bAssert\.(?:Ignore|Inconclusive|Skip)\w*\(",
        asserts: r"\bAssert\.\w+|\.Should\w*\(",
        vacuous: r"\bAssert\.(?:True|IsTrue)\(\s*true\s*\)|\bAssert\.Pass\(",
        ..PLAIN
    },
    Language {
        extensions: &["rb"],
        comment: HASH,
        declares: r#"(?m)^\s*(?:x?it|x?specify|x?scenario|test)\b\s*\(?\s*["']([^"'\n]*)|^\s*def\s+(test_\w+)"#,
        skips: r"^\s*(?:xit|xdescribe|xcontext|xspecify|xscenario|pending|skip)\b|,\s*:(?:skip|pending)\b|\b(?:skip|pending):\s*\S",
        focuses: r"^\s*f(?:it|describe|context)\b|,\s*:focus\b|\bfocus:\s*true",
        asserts: r"\bexpect\b|\b(?:assert|refute|flunk)\w*\b|\.(?:should|must)\w*\b",
        vacuous: r"\bassert\(?\s*true\b|\bexpect\(\s*true\s*\)\.to\s+(?:be|eq)\w*[ (]*true",
        ..PLAIN
    },
    Language {
        extensions: &["php"],
        declares: r#"(?m)\bfunction\s+(test\w*)\s*\(|^\s*(?:it|test)\(\s*['"]([^'"\n]*)|#\[Test\](?:[^{;]*?\bfunction\s+(\w+))?"#,
        skips: r"\bmarkTest(?:Skipped|Incomplete)\b|->(?:skip|todo)\(",
        focuses: r"->only\(",
        asserts: r"(?:->|::)(?:assert|expect)\w+\(|\bexpect\(",
        vacuous: r"\bassertTrue\(\s*true\s*\)",
        ..PLAIN
    },
    Language {
        extensions: &["c", "cc", "cpp", "cxx", "h", "hpp", "m", "mm"],
        declares: r"(?m)^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TEST_CASE|SCENARIO|BOOST_AUTO_TEST_CASE|START_TEST)\s*\(\s*([^)\n]*)|^\s*(?:static\s+)?(?:void|int|bool)\s+(test_?\w+)\s*\(",
        skips: r"\bGTEST_SKIP\b|\bDISABLED_\w+|\[!(?:mayfail|shouldfail)\]|\[\.\]|\bTEST_IGNORE\w*",
        asserts: r"\b(?:EXPECT|ASSERT|REQUIRE|CHECK|TEST_ASSERT|BOOST|assert|ck_assert)\w*\s*\(",
        vacuous: r"\b(?:EXPECT_TRUE|ASSERT_TRUE|REQUIRE|CHECK|assert)\(\s*(?:true|1)\s*\)",
        ..PLAIN
    },
    Language {
        extensions: &["swift"],
        declares: r"(?m)\bfunc\s+(test\w*)\s*\(|@Test\b(?:[^{;]*?\bfunc\s+(\w+))?",
        skips: r"\bXCTSkip\w*|\.disabled\(",
        asserts: r"\bXCT(?:Assert|Fail|Unwrap)\w*\(|#(?:expect|require)\(",
        vacuous: r"\bXCTAssert(?:True)?\(\s*true\s*\)",
        ..PLAIN
    },
    Language {
        extensions: &["exs", "dart"],
        comment: &["#", "//"],
        declares: r#"(?m)^\s*(?:test|testWidgets|property)\b\s*\(?\s*["']([^"'\n]*)"#,
        skips: r"@(?:module)?tag\s*:?skip|\bskip:\s*\S",
        focuses: r"\bsolo:\s*true",
        asserts: r"^\s*(?:assert|refute)\w*\b|\bexpect\w*\(",
        vacuous: r"^\s*assert\s+true\s*$",
        ..PLAIN
    },
    Language {
        extensions: &["sh", "bash", "bats", "zsh"],
        comment: HASH,
        declares: r#"(?m)^\s*(?:function\s+)?(test\w+)\s*\(\)|^@test\s+["']([^"'\n]*)"#,
        skips: r"^\s*skip\b",
        asserts: r"(?:^|[;&|(!]|\b(?:if|then|do|else|while)\b)\s*(?:test|\[\[?|grep|diff|cmp)\s|\b(?:assert|refute)\w*\b|\bexit\s+[1-9]",
        ..PLAIN
    },
];

/// Declarations, skip marks, marks that leave all other tests out, assertions, and those that say nothing. Each is compiled
/// when it is first used: a file that changed is in one language, and mostly no test.
static PATTERNS: LazyLock<[[Single; 5]; 12]> = LazyLock::new(|| {
    LANGUAGES.map(|one| {
        [
            one.declares,
            one.skips,
            one.focuses,
            one.asserts,
            one.vacuous,
        ]
        .map(Single::new)
    })
});

/// Whether a path is a test's by the conventions of its place or its name.
pub(crate) fn is_test_path(path: &str) -> bool {
    let (folders, _) = path.rsplit_once('/').unwrap_or(("", path));
    let in_folder = |folder: &str| {
        let folder = folder.to_ascii_lowercase();
        // `Shop.Tests` is a folder of its own by the conventions of .NET.
        matches!(
            folder.rsplit('.').next().unwrap_or_default(),
            "test"
                | "tests"
                | "__tests__"
                | "spec"
                | "specs"
                | "e2e"
                | "cypress"
                | "integration-tests"
                | "integration_tests"
        )
    };
    folders.split('/').any(in_folder) || is_test_name(path)
}

/// Whether a file is a test by its own name.
fn is_test_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let lower = stem.to_ascii_lowercase();
    let marks = ["test", "tests", "spec"];
    matches!(
        lower.as_str(),
        "test" | "tests" | "conftest" | "runtests" | "run_tests" | "run-tests"
    ) || ["test_", "test-", "tests_", "tests-"]
        .iter()
        .any(|start| lower.starts_with(start))
        || marks.iter().any(|mark| {
            ['_', '-', '.']
                .iter()
                .any(|dot| lower.ends_with(&format!("{dot}{mark}")))
        })
        || ["Test", "Tests", "TestCase", "Spec", "IT"]
            .iter()
            .any(|end| {
                // `LoginTest`, but neither `Latest` nor `EDIT`.
                stem.strip_suffix(end).is_some_and(|rest| {
                    rest.ends_with(|c: char| c.is_lowercase() || c.is_ascii_digit())
                })
            })
}

/// What `text` says about tests.
pub(crate) fn see(path: &str, text: &str) -> Seen {
    let mut seen = Seen::default();
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let mut known = LANGUAGES.iter().zip(&*PATTERNS);
    let Some((language, patterns)) =
        known.find(|(language, _)| language.extensions.contains(&extension))
    else {
        return seen;
    };
    if !language.anywhere && !is_test_path(path) {
        return seen;
    }
    let [declares, skips, focuses, asserts, vacuous] = patterns;
    for found in declares.all(text) {
        let name = found.first_group().map_or("", |name| &text[name]);
        seen.declared.push(name.trim().to_owned());
    }
    let is_comment = |line: &str| language.comment.iter().any(|mark| line.starts_with(mark));
    for line in text.lines().filter(|line| !is_comment(line.trim_start())) {
        let is = |pattern: &Single| pattern.first_in(line.as_bytes()).is_some();
        if is(skips) {
            seen.skipped.push(line.trim().to_owned());
        }
        seen.focused += usize::from(is(focuses));
        if is(asserts) && !is(vacuous) {
            seen.asserted.push(line.trim().to_owned());
        }
    }
    seen
}

#[cfg(test)]
mod tests;
