//! How tests look in each language: one table.

use crate::policy::patterns::Single;

/// What a file's text says about tests.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
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
/// Each is compiled when it is first used: a file that changed is in one language, and mostly no test.
struct Language {
    extensions: &'static [&'static str],
    /// Whether tests are in files of any name.
    anywhere: bool,
    /// What begins a line of comment.
    comment: &'static [&'static str],
    declares: Single,
    skips: Single,
    focuses: Single,
    asserts: Single,
    /// Assertions that say nothing.
    vacuous: Single,
}

const NEVER: &str = r"\A\z.";
const SLASHES: &[&str] = &["//", "/*", "*"];
const HASH: &[&str] = &["#"];

static LANGUAGES: [Language; 12] = [
    Language {
        extensions: &["rs"],
        anywhere: true,
        comment: SLASHES,
        declares: Single::new(
            r"(?m)^[ \t]*#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck|wasm_bindgen_test)\b[^\]\n]*\](?:\s*#\[[^\n]*|\s*//[^\n]*)*\s*(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?fn\s+(\w+)",
        ),
        skips: Single::new(r"^\s*#\[\s*(?:ignore\b|cfg_attr\(.*\bignore\b|cfg\(any\(\)\))"),
        focuses: Single::new(NEVER),
        asserts: Single::new(r"\b\w*assert\w*!\s*[(\[{]"),
        vacuous: Single::new(
            r"\bassert!\(\s*true\s*[,)]|\bassert_eq!\(\s*(?:1\s*,\s*1|true\s*,\s*true)\s*[,)]",
        ),
    },
    Language {
        extensions: &["py"],
        anywhere: false,
        comment: HASH,
        declares: Single::new(r"(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+(test\w*)"),
        skips: Single::new(
            r"@(?:pytest\.mark\.(?:skip|skipif|xfail)|(?:unittest\.)?(?:skip\w*|expectedFailure))\b|\bpytest\.(?:skip|xfail)\(|\.skipTest\(|\bSkipTest\b|^\s*(?:collect_ignore\w*|__test__|pytestmark)\s*=",
        ),
        focuses: Single::new(NEVER),
        asserts: Single::new(
            r"^\s*assert\b|\bself\.(?:assert\w+|fail)\(|\bpytest\.(?:raises|warns)\b|\.assert_\w+\(",
        ),
        vacuous: Single::new(
            r"^\s*assert\s+(?:True|1|not\s+False|1\s*==\s*1)\s*(?:,.*|#.*)?$|\.assertTrue\(\s*True\s*\)|\.assertEqual\(\s*1\s*,\s*1\s*\)",
        ),
    },
    Language {
        extensions: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"],
        anywhere: false,
        comment: SLASHES,
        declares: Single::new(
            r#"(?m)(?:^|[^\w.$])(?:[xf]?it|x?test|x?specify|Deno\.test)(?:\.(?:each|concurrent|serial|failing|fails|skip|only|todo|fixme)\b)*(?:\([^)\n]*\)|`[^`]*`)?\(\s*["'`]([^"'`\n]*)"#,
        ),
        skips: Single::new(
            r"\b(?:it|test|describe|context|suite|specify|Deno\.test)(?:\.\w+)?\.(?:skip|todo|fixme|failing|fails|skipIf|ignore)\b|\b(?:it|test|describe|context|suite)\.(?:skip|todo|fixme|failing|fails|skipIf|ignore)\b|\bx(?:it|test|describe|context|specify)\s*\(|\bthis\.skip\(|\bt\.skip\(|\bignore:\s*true",
        ),
        focuses: Single::new(
            r"\b(?:it|test|describe|context|suite|specify)\.only\b|\bf(?:it|describe)\s*\(",
        ),
        asserts: Single::new(
            r"\bexpect\w*\s*[(.]|\bassert(?:\.\w+)*\s*\(|\.should\b|\bt\.(?:is|not|deepEqual|true|false|truthy|falsy|throws\w*|equal|same|ok|like)\(",
        ),
        vacuous: Single::new(
            r"\bexpect\(\s*(?:true|1)\s*\)\.\w+\(\s*(?:true|1)?\s*\)|\bassert(?:\.ok)?\(\s*true\s*\)",
        ),
    },
    Language {
        extensions: &["go"],
        anywhere: false,
        comment: SLASHES,
        declares: Single::new(
            r#"(?m)^func\s+((?:Test|Benchmark|Fuzz|Example)\w*)\s*\(|\bt\.Run\(\s*"([^"\n]*)""#,
        ),
        skips: Single::new(r"\b[tbf]\.Skip(?:f|Now)?\("),
        focuses: Single::new(NEVER),
        asserts: Single::new(
            r"\b[tbf]\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\b(?:assert|require|is|qt)\.\w+\(",
        ),
        vacuous: Single::new(r"\b(?:assert|require)\.True\(\s*t\s*,\s*true\s*[,)]"),
    },
    Language {
        extensions: &["java", "kt", "kts", "scala", "groovy"],
        anywhere: false,
        comment: SLASHES,
        declares: Single::new(
            r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b(?:[^{;]*?\b(?:void|fun|def)\s+(\w+|`[^`\n]+`))?",
        ),
        skips: Single::new(
            r"@(?:\w+\.)*(?:Disabled\w*|Ignore|EnabledIf\w*)\b|\bassume(?:True|False|That)\(",
        ),
        focuses: Single::new(NEVER),
        asserts: Single::new(r"\b(?:assert\w*|verify|fail|expect\w*)\s*[({<]|\bshould\w*\b"),
        vacuous: Single::new(r"\bassertTrue\(\s*true\s*\)|\bassertEquals\(\s*1\s*,\s*1\s*\)"),
    },
    Language {
        extensions: &["cs", "fs"],
        anywhere: false,
        comment: SLASHES,
        declares: Single::new(
            r"\[(?:Fact|Theory|Test|TestCase|TestMethod|DataTestMethod)\b[^\]\n]*\](?:[^{;]*?\b(\w+)\s*\()?",
        ),
        skips: Single::new(r"\bSkip\s*=|\[Ignore\b|\bAssert\.(?:Ignore|Inconclusive|Skip)\w*\("),
        focuses: Single::new(NEVER),
        asserts: Single::new(r"\bAssert\.\w+|\.Should\w*\("),
        vacuous: Single::new(r"\bAssert\.(?:True|IsTrue)\(\s*true\s*\)|\bAssert\.Pass\("),
    },
    Language {
        extensions: &["rb"],
        anywhere: false,
        comment: HASH,
        declares: Single::new(
            r#"(?m)^\s*(?:x?it|x?specify|x?scenario|test)\b\s*\(?\s*["']([^"'\n]*)|^\s*def\s+(test_\w+)"#,
        ),
        skips: Single::new(
            r"^\s*(?:xit|xdescribe|xcontext|xspecify|xscenario|pending|skip)\b|,\s*:(?:skip|pending)\b|\b(?:skip|pending):\s*\S",
        ),
        focuses: Single::new(r"^\s*f(?:it|describe|context)\b|,\s*:focus\b|\bfocus:\s*true"),
        asserts: Single::new(r"\bexpect\b|\b(?:assert|refute|flunk)\w*\b|\.(?:should|must)\w*\b"),
        vacuous: Single::new(
            r"\bassert\(?\s*true\b|\bexpect\(\s*true\s*\)\.to\s+(?:be|eq)\w*[ (]*true",
        ),
    },
    Language {
        extensions: &["php"],
        anywhere: false,
        comment: SLASHES,
        declares: Single::new(
            r#"(?m)\bfunction\s+(test\w*)\s*\(|^\s*(?:it|test)\(\s*['"]([^'"\n]*)|#\[Test\](?:[^{;]*?\bfunction\s+(\w+))?"#,
        ),
        skips: Single::new(r"\bmarkTest(?:Skipped|Incomplete)\b|->(?:skip|todo)\("),
        focuses: Single::new(r"->only\("),
        asserts: Single::new(r"(?:->|::)(?:assert|expect)\w+\(|\bexpect\("),
        vacuous: Single::new(r"\bassertTrue\(\s*true\s*\)"),
    },
    Language {
        extensions: &["c", "cc", "cpp", "cxx", "h", "hpp", "m", "mm"],
        anywhere: false,
        comment: SLASHES,
        declares: Single::new(
            r"(?m)^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TEST_CASE|SCENARIO|BOOST_AUTO_TEST_CASE|START_TEST)\s*\(\s*([^)\n]*)|^\s*(?:static\s+)?(?:void|int|bool)\s+(test_?\w+)\s*\(",
        ),
        skips: Single::new(
            r"\bGTEST_SKIP\b|\bDISABLED_\w+|\[!(?:mayfail|shouldfail)\]|\[\.\]|\bTEST_IGNORE\w*",
        ),
        focuses: Single::new(NEVER),
        asserts: Single::new(
            r"\b(?:EXPECT|ASSERT|REQUIRE|CHECK|TEST_ASSERT|BOOST|assert|ck_assert)\w*\s*\(",
        ),
        vacuous: Single::new(
            r"\b(?:EXPECT_TRUE|ASSERT_TRUE|REQUIRE|CHECK|assert)\(\s*(?:true|1)\s*\)",
        ),
    },
    Language {
        extensions: &["swift"],
        anywhere: false,
        comment: SLASHES,
        declares: Single::new(r"(?m)\bfunc\s+(test\w*)\s*\(|@Test\b(?:[^{;]*?\bfunc\s+(\w+))?"),
        skips: Single::new(r"\bXCTSkip\w*|\.disabled\("),
        focuses: Single::new(NEVER),
        asserts: Single::new(r"\bXCT(?:Assert|Fail|Unwrap)\w*\(|#(?:expect|require)\("),
        vacuous: Single::new(r"\bXCTAssert(?:True)?\(\s*true\s*\)"),
    },
    Language {
        extensions: &["exs", "dart"],
        anywhere: false,
        comment: &["#", "//"],
        declares: Single::new(r#"(?m)^\s*(?:test|testWidgets|property)\b\s*\(?\s*["']([^"'\n]*)"#),
        skips: Single::new(r"@(?:module)?tag\s*:?skip|\bskip:\s*\S"),
        focuses: Single::new(r"\bsolo:\s*true"),
        asserts: Single::new(r"^\s*(?:assert|refute)\w*\b|\bexpect\w*\("),
        vacuous: Single::new(r"^\s*assert\s+true\s*$"),
    },
    Language {
        extensions: &["sh", "bash", "bats", "zsh"],
        anywhere: false,
        comment: HASH,
        declares: Single::new(
            r#"(?m)^\s*(?:function\s+)?(test\w+)\s*\(\)|^@test\s+["']([^"'\n]*)"#,
        ),
        skips: Single::new(r"^\s*skip\b"),
        focuses: Single::new(NEVER),
        asserts: Single::new(
            r"(?:^|[;&|(!]|\b(?:if|then|do|else|while)\b)\s*(?:test|\[\[?|grep|diff|cmp)\s|\b(?:assert|refute)\w*\b|\bexit\s+[1-9]",
        ),
        vacuous: Single::new(NEVER),
    },
];

const TEST_FOLDERS: &[&str] = &[
    "test",
    "tests",
    "__tests__",
    "spec",
    "specs",
    "e2e",
    "cypress",
    "integration-tests",
    "integration_tests",
];

/// Whether a path is a test's by the conventions of its place or its name.
pub(crate) fn is_test_path(path: &str) -> bool {
    let (folders, _) = path.rsplit_once('/').unwrap_or(("", path));
    let in_folder = |folder: &str| {
        let folder = folder.to_ascii_lowercase();
        // `Shop.Tests` is a folder of its own by the conventions of .NET.
        TEST_FOLDERS.contains(&folder.rsplit('.').next().unwrap_or_default())
    };
    folders.split('/').any(in_folder) || is_test_name(path)
}

/// Whether a file is a test by its own name.
pub(super) fn is_test_name(path: &str) -> bool {
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
pub(super) fn see(path: &str, text: &str) -> Seen {
    let mut seen = Seen::default();
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let known = LANGUAGES
        .iter()
        .find(|language| language.extensions.contains(&extension));
    if let Some(known) = known.filter(|known| known.anywhere || is_test_path(path)) {
        for found in known.declares.all(text) {
            let name = found.first_group().map_or("", |name| &text[name]);
            seen.declared.push(name.trim().to_owned());
        }
        let comment = |line: &&str| {
            known
                .comment
                .iter()
                .any(|mark| line.trim_start().starts_with(mark))
        };
        for line in text.lines().filter(|line| !comment(line)) {
            look_at(known, line, &mut seen);
        }
    }
    seen
}

fn look_at(known: &Language, line: &str, seen: &mut Seen) {
    let is = |pattern: &Single| pattern.first_in(line.as_bytes()).is_some();
    let trimmed = line.trim();
    if is(&known.skips) {
        seen.skipped.push(trimmed.to_owned());
    }
    seen.focused += usize::from(is(&known.focuses));
    if is(&known.asserts) && !is(&known.vacuous) {
        seen.asserted.push(trimmed.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for language in &LANGUAGES {
            let Language {
                declares,
                skips,
                focuses,
                asserts,
                vacuous,
                ..
            } = language;
            for pattern in [declares, skips, focuses, asserts, vacuous] {
                assert!(pattern.compiles(), "{pattern:?}");
            }
        }
    }

    #[test]
    fn tests_are_known_by_their_path() {
        for path in [
            "tests/a.rs",
            "src/test_a.py",
            "a_test.go",
            "web/login.test.tsx",
            "web/__tests__/a.js",
            "spec/a_spec.rb",
            "src/test/java/A.java",
            "src/LoginTest.kt",
            "Shop.Tests/Cart.cs",
            "test.sh",
            "conftest.py",
            "e2e/a.ts",
        ] {
            assert!(is_test_path(path), "{path}");
        }
        for path in [
            "src/latest.rs",
            "src/main.rs",
            "contest.py",
            "src/EDIT.java",
            "src/testing_ground.md",
            "Latest.kt",
        ] {
            assert!(!is_test_path(path), "{path}");
        }
    }
}
