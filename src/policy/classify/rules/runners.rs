//! Test runners: what could not be loaded, what failed, what is flaky.

use super::{ANY, BROKEN, FAILED, FEEDBACK, Rule, TEST, TYPECHECK, rule, table};

/// Marks of a test that failed by what it checks.
pub(super) const ASSERTION: &[Rule] = &table(
    ANY,
    FAILED,
    [
        rule(
            "assertion.any",
            r"(?i)\bassert(?:ion)?[\w.]*(?:error|failed|failure|exception|failederror)\b|assertion `?.*failed|^E\s+assert\b|ERR_ASSERTION|^\s*Difference \(|\bAssertionError\b|\bexpect\(.*\)\.|^\s*(?:Expected|expected)\b.*|^\s*Failure/Error:|ComparisonFailure|\bgot\b.*\bwant\b|, want \S|should (?:be|equal|have|deep)|\bexpected\b.{1,80}\b(?:to (?:be|equal|eq|match|have|contain|include|throw|return)|but (?:got|was|received|found)|got|received)\b",
        ),
        rule("assertion.go", r"^--- FAIL: "),
    ],
);

/// The runner says that it could not collect, load or build tests.
pub(super) const LOAD: &[Rule] = &table(
    FEEDBACK,
    BROKEN,
    [
        rule("load.perl", r"aborted due to compilation errors|^BEGIN failed--compilation aborted"),
        rule("load.shell", r": unbound variable$|: parameter not set$"),
        rule(
            "load.pytest",
            r"^_+ ERROR collecting |errors? during collection|^ImportError while (?:loading conftest|importing test module)|^ERROR \S+\.py(?: - (?:\w+Error)\b.*)?$|conftest\.(?:ConftestImportFailure|py.*ConftestImportFailure)|PytestUsageError.*import|ConftestImportFailure",
        ),
        rule(
            "load.unittest",
            r"unittest\.loader\._FailedTest|^ImportError: Failed to import test module",
        ),
        rule(
            "load.go",
            r"^FAIL\s+\S+ \[(?:build|setup) failed\]|\x22Action\x22:\x22build-fail\x22|\[no test files\].*error|could not import \S+ \(",
        ),
        rule(
            "load.words",
            r"(?i)\b(?:could not|couldn't|cannot|can't|unable to|failed to) (?:import|load|collect|parse) (?:\S+ ){0,2}(?:test|spec)s?(?: |-)?(?:module|file|suite|class)s?\b",
        )
        .at(TEST),
        rule(
            "load.rspec",
            r"An error occurred while loading |errors? occurred outside of examples",
        ),
        rule(
            "load.junit",
            r"Compilation failed; see the compiler|COMPILATION ERROR|:compile\w*(?:Java|Kotlin|Scala|Groovy)\w*'?\.?(?: FAILED)?$|Failed to compile|\(Test / compileIncremental\) Compilation failed|\bcompileIncremental\b.*failed",
        ),
        rule("load.deno", r"^\W*(?:error: )?Type checking failed").at(ANY & !TYPECHECK),
        rule(
            "load.bun",
            r"^error: (?:Unexpected \S+$|Unterminated |Expected \S+ but found |Could not resolve: |Cannot find (?:module|package) )",
        ),
        rule("load.deno-throws", r"\(uncaught error\)"),
        rule(
            "load.dotnet",
            r"^Build FAILED\.|: error (?:(?:CS|FS|BC|NETSDK)\d+|MSB[2-9]\d{3}|NU(?:10\d\d|110[4-9]|11[1-9]\d|12\d\d|1[4-9]\d\d|[2-9]\d{3})):",
        ),
        rule(
            "load.node",
            r"^# (?:SyntaxError|Error: Cannot find module|Error \[ERR_MODULE_NOT_FOUND\])|^\s*error: 'Cannot find (?:module|package)|^\s*code: 'ERR_MODULE_NOT_FOUND'|Uncaught exception in .*\.(?:js|ts|mjs|cjs)|✘ No tests found in .*(?:SyntaxError|make sure to import)|Couldn't (?:load|find) .*test file",
        ),
    ],
);

/// The runner counts failed tests, or names one.
pub(super) const TESTS_FAILED: &[Rule] = &table(
    FEEDBACK,
    FAILED,
    [
        rule("tests.bats-mark", r"^ ✗ \S").at(TEST),
        rule(
            "tests.behave",
            r"^\d+ (?:features?|scenarios?|steps?) passed, .*\b[1-9]\d* (?:failed|errors?|error|undefined)|^Errored scenarios:|^Failing scenarios:",
        ),
        rule(
            "tests.cargo",
            r"^test result: FAILED|^error: (?:test|doctest) failed, to rerun|^error: \d+ targets? failed",
        ),
        rule(
            "tests.nextest",
            r"^error: test run failed|^\s+Summary \[.*\b[1-9]\d* failed|^\s*(?:TRY \d+ )?FAIL \[",
        ),
        rule(
            "tests.pytest",
            r"^(?:=+ )?(?:[1-9]\d* (?:failed|errors?)\b.* in [\d.]+s|.*\b[1-9]\d* failed, .* in [\d.]+s)|^(?:FAILED|ERROR) \S+::",
        ),
        rule(
            "tests.unittest",
            r"^FAILED \((?:failures|errors|unexpected successes)=|^(?:FAIL|ERROR): \w+ \(",
        ),
        rule(
            "tests.jest",
            r"^Tests:\s+[1-9]\d* failed|^\s*Tests\s+[1-9]\d* failed|^Snapshots?:?\s+[1-9]\d* (?:failed|obsolete)|\x22numFailedTests\x22:\s*[1-9]",
        ),
        rule(
            "tests.mocha",
            r"^\s*[1-9]\d* failing\b|^\s*(?:[1-9]\d*) (?:of \d+ )?failed\s*(?:\(|$)",
        ),
        rule(
            "tests.tap",
            r"^# (?:fail|failed) +[1-9]\d*|^\s*not ok \d+\b|^# Looks like you failed \d+|^Result: FAIL|^Failed \d+/\d+ (?:subtests|test programs)|^ℹ fail [1-9]\d*|^# failed [1-9]\d* (?:of|test)|^# time=.*\n?# fail [1-9]",
        ),
        rule(
            "tests.go",
            r"^\s*--- FAIL: |^FAIL\t\S+\t[\d.]+s|\x22Action\x22:\x22fail\x22|^FAIL\s+\S+\s+[\d.]+s$|^FAIL$|^=== FAIL|^DONE \d+ tests.* [1-9]\d* failures?|^WARNING: DATA RACE|testing.go:\d+: race detected",
        ),
        rule(
            "tests.junit",
            r"Tests run: \d+, (?:Failures: [1-9]|Failures: 0, Errors: [1-9])|There are test failures|There were failing tests|^\d+ tests? completed, [1-9]\d* failed|> .*\(\) FAILED$|^\S+ > .* FAILED$|\[ *[1-9]\d* tests? failed *\]|^Failed tests?:|Tests in error:|^\[error\] (?:Failed tests|Failed: Total)|\*\*\* FAILED \*\*\*|\*\*\* [1-9]\d* (?:TESTS?|SUITES?) (?:FAILED|ABORTED)",
        ),
        rule(
            "tests.ruby",
            r"\b\d+ examples?, [1-9]\d* failures?|\b\d+ (?:runs|tests), .*(?:[1-9]\d* failures|[1-9]\d* errors)|^rspec \./\S+:\d+|^\d+ scenarios? \(.*[1-9]\d* failed",
        ),
        rule(
            "tests.php",
            r"^(?:FAILURES|ERRORS)!$|^Tests: \d+, Assertions: \d+, (?:Failures|Errors): [1-9]|^\s*Tests:\s+[1-9]\d* failed",
        ),
        rule(
            "tests.ctest",
            r"^\d+% tests passed, [1-9]\d* tests? failed|\*\*\*Failed\b|^The following tests FAILED:|^Errors while running CTest",
        ),
        rule(
            "tests.gtest",
            r"^\[  FAILED  \]|^ ?\d+ FAILED TESTS?$|: Failure$|^test cases: .*[1-9]\d* failed|^\[doctest\] .*FAILURE|^\*\*\* [1-9]\d* failures? (?:is|are) detected|error: in \x22[^\x22]+\x22: check |^# of unexpected failures\s+[1-9]|^# (?:FAIL|ERROR):\s+[1-9]",
        ),
        rule(
            "tests.meson",
            r"^Fail:\s+[1-9]|^Unexpected Pass:\s+[1-9]|^\s*\d+/\d+ .*\s(?:FAIL|ERROR)\s+[\d.]+s",
        ),
        rule(
            "tests.bazel",
            r"^//\S+\s+(?:FAILED|TIMEOUT|FLAKY)\b.* in |^Executed \d+ out of \d+ tests?: .*fails? locally|^FAIL: //",
        ),
        rule("tests.bats", r"^\d+ tests?, [1-9]\d* failures?|\(in test file \S+, line \d+\)"),
        rule(
            "tests.dotnet",
            r"^(?:\s*)Failed!\s+- Failed:|^\s*Failed:\s+[1-9]|^Test Run Failed|\bFailed:\s+[1-9]\d*, Passed:|^\s*Failed \S+ \[\d+",
        ),
        rule(
            "tests.exunit",
            r"\b\d+ (?:tests?|doctests?|properties),.* [1-9]\d* failures?|^\d+ tests?, [1-9]\d* failures?",
        ),
        rule(
            "tests.playwright",
            r"^\s+[1-9]\d* failed$|^\s+[1-9]\d* flaky$|✖\s+[1-9]\d* of \d+ failed|\(Run Finished\)[\s\S]*failed|^\s*│ Failing:\s+[1-9]",
        ),
        rule(
            "tests.deno-bun",
            r"^FAILED \| \d+ passed|^\s*[1-9]\d* fail$|^error: Test failed$|^\(fail\) |^ok \| \d+ passed.*\| [1-9]\d* failed|^FAILED \|",
        ),
        rule(
            "tests.haskell",
            r"\b\d+ examples?, [1-9]\d* failures?|^[1-9]\d* out of \d+ tests failed|^Test suite \S+: FAIL|Falsifiable|^\*\*\* Failed!",
        ),
        rule(
            "tests.swift",
            r"Executed \d+ tests?, with [1-9]\d* failures?|Test (?:Suite|Case) '.*' failed|^✘ Test run with|error: -\[\S+ \S+\] :|\*\* TEST FAILED \*\*",
        ),
        rule("tests.dart", r"^\d\d:\d\d \+\d+.* -[1-9]\d*: Some tests failed|Some tests failed\."),
        rule(
            "tests.ava",
            r"^\s+[1-9]\d* tests? failed|^\s*✘ \[fail\]|^\s*[1-9]\d* uncaught exceptions?|✖ [1-9]\d* tests? failed",
        ),
        rule(
            "tests.karma",
            r"Executed \d+ of \d+ \([1-9]\d* FAILED\)|\bFAILED \([\d.]+ secs|^\d+ specs?, [1-9]\d* failures?",
        ),
        rule(
            "tests.lit",
            r"^FAIL: \S+|^Failed Tests \(\d+\)|^\s*(?:Failed|Unexpected Failures)\s*:\s*[1-9]|^Failed\s+: [1-9]",
        ),
        rule(
            "tests.zig",
            r"^\d+ passed; \d+ skipped; [1-9]\d* failed\.|run test.*\b[1-9]\d* failed|^test \x22.*\x22\.\.\. FAIL",
        ),
        rule(
            "tests.robot",
            r"^\d+ tests?, \d+ passed, [1-9]\d* failed|^\d+ critical tests?.*[1-9]\d* failed|^[1-9]\d* (?:features?|scenarios?|steps?) (?:failed|passed, [1-9]\d* failed)|\b\d+ passed, [1-9]\d* failed\b|Failing scenarios:",
        ),
        rule(
            "tests.doctest",
            r"^\*\*\*Test Failed\*\*\* [1-9]\d* failures?|^[1-9]\d* (?:items?|tests?) had failures",
        ),
        rule(
            "tests.clojure",
            r"^(?:[1-9]\d* failures?, \d+ errors?|\d+ failures?, [1-9]\d* errors?)\.?$|^(?:FAIL|ERROR) in \(\S+\) \(",
        ),
        rule(
            "tests.generic",
            r"(?i)^\W*(?:total |tests? )?(?:fail(?:ed|ures?|s)?)(?: (?:tests?|files?|cases?|suites?|specs?|checks?|assertions?))?\s*[:=]\s*[1-9]|\bpass(?:ed)?\s*[:=]\s*\d+\W+fail(?:ed|ures?|s)?\s*[:=]\s*[1-9]|\b[1-9]\d* (?:\w+ )?(?:tests?|specs?|examples?|assertions?|scenarios?|cases?|checks?|suites?) (?:have |has )?fail(?:ed|ing|ures?)\b|\bfinal status: fail|\b(?:total|tests?|run|pass(?:ed)?)\s*[:=]\s*\d+\W+(?:\w+\s*[:=]\s*\d+\W+)?fail(?:ed|ures?|s)?\s*[:=]\s*[1-9]|\b(?:pass(?:ed)?|ok)\W+\d+\W+(?:fail(?:ed)?|not ok)\W+[1-9]|^\W*\d+ (?:run|tests?|total|passed|ok|succeeded)\b.{0,30}\b[1-9]\d* (?:failed|failing|failures?)\b|^\W*[1-9]\d* failed\b.{0,20}\b\d+ (?:passed|ok|succeeded)\b",
        )
        .at(TEST),
        // What a sanitizer reports is about the program under test, unless it ended it.
        rule(
            "tests.sanitizer",
            r"^WARNING: ThreadSanitizer: |^==\d+==ERROR: LeakSanitizer: |^\S+:\d+:\d+: runtime error: \S|^SUMMARY: (?:UndefinedBehavior|Thread)Sanitizer: |^==\d+== ERROR SUMMARY: [1-9]",
        )
        .at(TEST),
        rule(
            "tests.coverage",
            r"(?i)(?:coverage (?:failure|threshold|for \S+ \([\d.]+%\) does not meet)|required (?:test )?coverage of|coverage .*(?:below|less than|under|does not meet|not met|not reached|lower than|is insufficient|dropped|minimum)|does not meet (?:the )?(?:global|required|minimum) |Coverage checks have not been met|expected minimum is|fail-under|failed coverage|minimum coverage)",
        )
        .at(ANY),
        rule("tests.certificate", r"^error \d+ at \d+ depth lookup: ").at(TEST),
        rule(
            "tests.mutation",
            r"(?i)mutation score .*(?:below|under|less)|[1-9]\d* missed(?:,| mutant)|threshold.*mutation",
        ),
    ],
);

/// The log itself declares a failed test flaky.
pub(super) const FLAKY: &[Rule] = &table(
    FEEDBACK,
    FAILED,
    [
        rule(
            "flaky.count",
            r"(?i)\bflak(?:y|es)(?: tests?)?\s*[:=]\s*[1-9]|^\s*[1-9]\d* flaky\b|\b[1-9]\d* (?:tests? (?:is|are|was|were) )?flaky\b|\(\d+ flaky\)",
        ),
        rule(
            "flaky.mark",
            r"^\s*FLAKY(?:[: ]|$)|\bFLAKY,? failed in|\bFLAKY \d+/\d+|^\[?FLAKY\]?\b",
        ),
        rule(
            "flaky.declared",
            r"(?i)\b(?:known|marked|detected|reported|quarantined|declared|considered|probably|likely|suspected)(?: as| to be| a| an)* (?:flaky|flake|intermittent|non-?deterministic)\b|\bflaky tests? (?:detected|found|failed)|\bis (?:a )?(?:known )?(?:flaky|intermittent)\b|passed on (?:retry|attempt [2-9]|re-?run|the second)|failed on attempt 1 and passed|passed after (?:retry|\d+ retr|re-?run)",
        ),
    ],
);
