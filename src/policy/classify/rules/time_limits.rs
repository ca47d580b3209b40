//! Time limits: of the command itself, and of a test runner on its tests.

use super::{ANY, FEEDBACK, Rule, TEST, TIMEOUT, rule};

/// Whatever else was printed, these end the run.
pub(super) const COMMAND: &[Rule] = &[
    rule(
        "limit.make",
        FEEDBACK,
        r"^\S*make(?:\[\d+\])?: \*\*\* \[.*\] \S+ 124$",
        TIMEOUT,
    ),
    rule(
        "limit.timeout1",
        ANY,
        r"^g?timeout: sending signal \S+ to command",
        TIMEOUT,
    ),
    rule(
        "limit.alarm",
        ANY,
        r"(?:^|[:\]] ?)(?:Alarm clock|Wecker|Minuterie d'alerte)\b|\bSIGALRM\b|signal: alarm clock",
        TIMEOUT,
    ),
    rule(
        "limit.cpu",
        ANY,
        r"(?i)CPU time limit exceeded|\bSIGXCPU\b|signal: cpu time limit",
        TIMEOUT,
    ),
    rule(
        "limit.php",
        ANY,
        r"Maximum execution time of \d+(?:\.\d+)?\+?\d* seconds? exceeded",
        TIMEOUT,
    ),
    rule(
        "limit.python-subprocess",
        FEEDBACK,
        r"^subprocess\.TimeoutExpired: ",
        TIMEOUT,
    ),
    rule(
        "limit.node-spawn",
        FEEDBACK,
        r"\bspawn(?:Sync)? \S+ ETIMEDOUT\b",
        TIMEOUT,
    ),
    rule(
        "limit.golangci",
        FEEDBACK,
        r"(?i)timeout exceeded: try increasing it|golangci.*context deadline exceeded",
        TIMEOUT,
    ),
    rule(
        "limit.gradle",
        FEEDBACK,
        r"^\W*Timeout has been exceeded",
        TIMEOUT,
    ),
    rule(
        "limit.surefire-fork",
        FEEDBACK,
        r"There was a timeout (?:or other error )?in the fork",
        TIMEOUT,
    ),
    rule(
        "limit.go-test",
        FEEDBACK,
        r"^panic: test timed out after \S+",
        TIMEOUT,
    ),
    rule(
        "limit.go-killed",
        FEEDBACK,
        r"\*\*\* Test killed(?: with \w+)?: ran too long",
        TIMEOUT,
    ),
    rule(
        "limit.pytest-session",
        FEEDBACK,
        r"^(?:\++ Timeout \++|!+ session-timeout: |Timeout \(\d+:\d\d:\d\d\)!)",
        TIMEOUT,
    ),
    rule(
        "limit.bazel-build",
        FEEDBACK,
        r"(?:failed|FAILED).*\(Timeout\b|: Timeout after \d+ seconds|error executing .*: timed out",
        TIMEOUT,
    ),
    rule(
        "limit.job",
        ANY,
        r"(?i)(?:job|step|command|process|task|script|hook|build|suite|run|execution)\b.{0,60}\b(?:timed out after|exceeded (?:the |its )?(?:maximum |max )?(?:time ?limit|timeout|time of|execution time)|time ?limit exceeded|killed after) ?",
        TIMEOUT,
    ),
    rule(
        "limit.time-limit",
        FEEDBACK,
        r"(?i)^\W*(?:error: )?(?:time limit (?:exceeded|reached)|timed out after \d+)",
        TIMEOUT,
    ),
    rule(
        "limit.inactivity",
        FEEDBACK,
        r"(?i)\binactivity (?:time|timeout|period|limit)\b.{0,40}\b(?:elapsed|expired|exceeded|reached|passed)\b|\bno output (?:was |has been )?(?:received |seen |produced )?(?:for|in) (?:the last )?\d+ ?(?:s|m|seconds?|minutes?)\b",
        TIMEOUT,
    ),
    rule(
        "limit.karma",
        FEEDBACK,
        r"Disconnected.*because no message in \d+ ms",
        TIMEOUT,
    ),
    rule(
        "limit.mutation-run",
        FEEDBACK,
        r"(?i)\btest run (?:timed out|timeout|was (?:aborted|terminated) .*time)|TestSessionTimeout|blame-hang",
        TIMEOUT,
    ),
];

/// One line for each test that was ended.
pub(super) const TEST_LIMIT: &[Rule] = &[
    rule(
        "test-limit.robot",
        FEEDBACK,
        r"^(?:Test|Keyword|Setup) timeout .* exceeded",
        TIMEOUT,
    ),
    rule(
        "test-limit.ava",
        FEEDBACK,
        r"Timed out while running tests|Exited because no new tests completed within",
        TIMEOUT,
    ),
    rule(
        "limit.ruby",
        FEEDBACK,
        r"\bTimeout::(?:Error|ExitException)\b.*execution expired|execution expired \(Timeout::",
        TIMEOUT,
    ),
    rule(
        "test-limit.pytest",
        FEEDBACK,
        r"^E\s+Failed: Timeout (?:\(?>|after)",
        TIMEOUT,
    ),
    rule(
        "test-limit.node",
        FEEDBACK,
        r"failureType: '(?:testTimeoutFailure|hookTimeoutFailure)'|'test timed out after \d+ms'|^\W*Error.*: test timed out after \d+ms",
        TIMEOUT,
    ),
    rule(
        "test-limit.jest",
        FEEDBACK,
        r"^    thrown: .Exceeded timeout of \d+ ?ms for a (?:test|hook)|Async callback was not invoked within the \d+ ?ms timeout",
        TIMEOUT,
    ),
    rule(
        "test-limit.vitest",
        FEEDBACK,
        r"^\s*Error: (?:Test|Hook) timed out in \d+ms",
        TIMEOUT,
    ),
    rule(
        "test-limit.vitest-list",
        FEEDBACK,
        r"^\s*\S+ (?:Test|Hook) timed out in \d+ms",
        TIMEOUT,
    ),
    rule(
        "test-limit.mocha",
        FEEDBACK,
        r"Error: Timeout of \d+ms exceeded",
        TIMEOUT,
    ),
    rule(
        "test-limit.jasmine",
        FEEDBACK,
        r"Async function did not complete within \d+ms",
        TIMEOUT,
    ),
    rule(
        "test-limit.playwright",
        FEEDBACK,
        r"\b(?:Test|Hook|\S*(?:beforeEach|afterEach|beforeAll|afterAll)\S* hook) timeout of \d+ms exceeded",
        TIMEOUT,
    ),
    rule(
        "test-limit.nextest",
        FEEDBACK,
        r"^\s*(?:TRY \d+ )?(?:TIMEOUT|TMT) \[",
        TIMEOUT,
    ),
    rule(
        "test-limit.ctest",
        FEEDBACK,
        r"\*\*\*(?:Timeout|Failed\s+Error regular expression.*timeout)",
        TIMEOUT,
    ),
    rule(
        "test-limit.meson",
        FEEDBACK,
        r"^\s*\d+/\d+ .*\bTIMEOUT\b",
        TIMEOUT,
    ),
    rule(
        "test-limit.bazel",
        FEEDBACK,
        r"^//\S+\s+TIMEOUT in|^TIMEOUT: //",
        TIMEOUT,
    ),
    rule(
        "test-limit.junit4",
        FEEDBACK,
        r"TestTimedOutException: test timed out after",
        TIMEOUT,
    ),
    rule(
        "test-limit.junit5",
        FEEDBACK,
        r"TimeoutException: .*\btimed out after \d+",
        TIMEOUT,
    ),
    rule(
        "test-limit.testng",
        FEEDBACK,
        r"ThreadTimeoutException|didn't finish within the time-out",
        TIMEOUT,
    ),
    rule(
        "test-limit.coroutines",
        FEEDBACK,
        r"UncompletedCoroutinesError: After waiting for",
        TIMEOUT,
    ),
    rule(
        "test-limit.exunit",
        FEEDBACK,
        r"\(?ExUnit\.TimeoutError\)?.* timed out after",
        TIMEOUT,
    ),
    rule(
        "test-limit.bun",
        FEEDBACK,
        r"\bthis test timed out after \d+ ?ms",
        TIMEOUT,
    ),
    rule(
        "test-limit.bats",
        FEEDBACK,
        r"^not ok \d+ .*# timeout after \d+",
        TIMEOUT,
    ),
    rule(
        "test-limit.dotnet",
        FEEDBACK,
        r"(?i)test execution timed out after|exceeded (?:its )?execution timeout period|Test exceeded Timeout value of|\bTest '.*' (?:timed out|exceeded).*\d+ ?m?s",
        TIMEOUT,
    ),
    rule(
        "test-limit.dart",
        FEEDBACK,
        r"TimeoutException after [\d:.]+: Test timed out",
        TIMEOUT,
    ),
    rule(
        "test-limit.phpunit",
        FEEDBACK,
        r"This test was aborted after \d+ seconds?|Execution aborted after \d+ seconds?",
        TIMEOUT,
    ),
    rule(
        "test-limit.tap",
        FEEDBACK,
        r"^\s*not ok \d+ .*\btimeout!|^\s*expired: ",
        TIMEOUT,
    ),
    rule(
        "test-limit.lit",
        FEEDBACK,
        r"^TIMEOUT: \S+ ::|Reached timeout of \d+ seconds",
        TIMEOUT,
    ),
    rule(
        "test-limit.swift",
        FEEDBACK,
        r"Test exceeded execution time allowance|Time limit was exceeded: ",
        TIMEOUT,
    ),
    rule(
        "test-limit.catch",
        FEEDBACK,
        r"^\s*\d+ - .* \(Timeout\)\s*$",
        TIMEOUT,
    ),
    rule(
        "test-limit.hspec",
        FEEDBACK,
        r"^\s*(?:Timed out after|Timeout:? (?:after|expired)) [\d.]+ ?(?:s|ms|seconds)",
        TIMEOUT,
    ),
    // `timed out after` is what the harness says of the test that it ended; an assertion speaks of what it compared.
    rule(
        "test-limit.tap-words",
        FEEDBACK,
        r"^\s*not ok \d+ .*\btimed out (?:after|in) [\d.]+ ?m?s",
        TIMEOUT,
    ),
    rule(
        "test-limit.harnesses",
        TEST,
        r"\[TIMEDOUT\]|\b[Aa] (?:spec|suite|node) timeout occurred|\btimetrap_timeout\b|\bMethod timed out after [\d.]+|(?i:did not complete within [\d.]+ ?(?:m?s|sec|min)\w*)|\btest timed out after [\d.]+ ?\w+|\bstill running at [\d.]+ secs|\bfunction timed out, ensure the promise|: Timed out\. \([\d.]+m?s\)|\bTest timeout expired\b|\bthe function call took \d+ ms\. Max time|\bTimeout [\d.]+ ?m?s expired|reached elapsed time limit|^(?:nose\.\S*)?TimeExpired: |\btest timed out\.$|^\s*Timed out \(\d+ ?ms\)",
        TIMEOUT,
    ),
    rule(
        "test-limit.generic",
        TEST,
        r"(?i)\btimeout during test|\b(?-i:TIMED[- ]OUT) after \d|\bexceeded (?:the )?[\d.]+ ?(?:ms|s|sec\w*) (?:time ?limit|timeout|limit)\b|\btime ?limit of [\d.]+ ?\w+ (?:was )?(?:reached|exceeded|hit|expired)\b|\b(?:killed|aborted|stopped|terminated)\b\W{0,3}(?:by|after|on|due to|because of)?\W{0,2}(?:the |its )?(?:timeout|time ?limit)\b|\bdid(?: not|n't) (?:finish|complete|end) (?:with)?in [\d.]+ ?(?:ms|s|sec\w*|min\w*)\b|\btook (?:longer|more) than [\d.]+ ?(?:ms|s|m)\w*\b.{0,20}\b(?:abort|kill|stopp|cancel|terminat)|\.\.\. ?\W{0,2}(?:timed[- ]out|timeout)\b\W*$|\btests? did(?: not|n't) (?:finish|complete|end) within \d|\b(?:failed|fail|error)\b.{0,60}\((?:timed out|timeout)\b|\b[1-9]\d* (?:tests? )?timed out\b|^\W*(?-i:TIMEOUT)\W+\w|^\W*timeout ?[^\w\s=]\W*(?:\w[\w.]*[^\w.,]|\w+[_./]\w)|\b(?-i:TIMEOUT) after \d|\bpass(?:ed)?\b.*\btime(?:d[- ])?outs?\s*[:= ]\s*[1-9]|\btests? (?:timed out|was killed) after \d|\btest(?: case)? (?:'[^']*' |\S+ )?(?:timed out|exceeded (?:the |its )?time ?(?:out|limit))(?: after| in|:| of|\.|$)",
        TIMEOUT,
    ),
];
