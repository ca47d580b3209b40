//! Time limits: of the command itself, and of a test runner on its tests.

use super::{ANY, FEEDBACK, Rule, TEST, TIMEOUT, rule, table};

/// Whatever else was printed, these end the run.
pub(super) const COMMAND: &[Rule] = &table(
    FEEDBACK,
    TIMEOUT,
    [
        rule("limit.make", r"^\S*make(?:\[\d+\])?: \*\*\* \[.*\] \S+ 124$"),
        rule("limit.timeout1", r"^g?timeout: sending signal \S+ to command").at(ANY),
        rule(
            "limit.alarm",
            r"(?:^|[:\]] ?)(?:Alarm clock|Wecker|Minuterie d'alerte)\b|\bSIGALRM\b|signal: alarm clock",
        )
        .at(ANY),
        rule(
            "limit.cpu",
            r"(?i)CPU time limit exceeded|\bSIGXCPU\b|signal: cpu time limit",
        )
        .at(ANY),
        rule(
            "limit.php",
            r"Maximum execution time of \d+(?:\.\d+)?\+?\d* seconds? exceeded",
        )
        .at(ANY),
        rule("limit.python-subprocess", r"^subprocess\.TimeoutExpired: "),
        rule("limit.node-spawn", r"\bspawn(?:Sync)? \S+ ETIMEDOUT\b"),
        rule(
            "limit.golangci",
            r"(?i)timeout exceeded: try increasing it|golangci.*context deadline exceeded",
        ),
        rule("limit.gradle", r"^\W*Timeout has been exceeded"),
        rule("limit.surefire-fork", r"There was a timeout (?:or other error )?in the fork"),
        rule("limit.go-test", r"^panic: test timed out after \S+"),
        rule("limit.go-killed", r"\*\*\* Test killed(?: with \w+)?: ran too long"),
        rule(
            "limit.pytest-session",
            r"^(?:\++ Timeout \++|!+ session-timeout: |Timeout \(\d+:\d\d:\d\d\)!)",
        ),
        rule(
            "limit.bazel-build",
            r"(?:failed|FAILED).*\(Timeout\b|: Timeout after \d+ seconds|error executing .*: timed out",
        ),
        rule(
            "limit.job",
            r"(?i)(?:job|step|command|process|task|script|hook|build|suite|run|execution)\b.{0,60}\b(?:timed out after|exceeded (?:the |its )?(?:maximum |max )?(?:time ?limit|timeout|time of|execution time)|time ?limit exceeded|killed after) ?",
        )
        .at(ANY),
        rule(
            "limit.time-limit",
            r"(?i)^\W*(?:error: )?(?:time limit (?:exceeded|reached)|timed out after \d+)",
        ),
        rule(
            "limit.inactivity",
            r"(?i)\binactivity (?:time|timeout|period|limit)\b.{0,40}\b(?:elapsed|expired|exceeded|reached|passed)\b|\bno output (?:was |has been )?(?:received |seen |produced )?(?:for|in) (?:the last )?\d+ ?(?:s|m|seconds?|minutes?)\b",
        ),
        rule("limit.karma", r"Disconnected.*because no message in \d+ ms"),
        rule(
            "limit.mutation-run",
            r"(?i)\btest run (?:timed out|timeout|was (?:aborted|terminated) .*time)|TestSessionTimeout|blame-hang",
        ),
    ],
);

/// One line for each test that was ended.
pub(super) const TEST_LIMIT: &[Rule] = &table(
    FEEDBACK,
    TIMEOUT,
    [
        rule("test-limit.robot", r"^(?:Test|Keyword|Setup) timeout .* exceeded"),
        rule(
            "test-limit.ava",
            r"Timed out while running tests|Exited because no new tests completed within",
        ),
        rule(
            "limit.ruby",
            r"\bTimeout::(?:Error|ExitException)\b.*execution expired|execution expired \(Timeout::",
        ),
        rule("test-limit.pytest", r"^E\s+Failed: Timeout (?:\(?>|after)"),
        rule(
            "test-limit.node",
            r"failureType: '(?:testTimeoutFailure|hookTimeoutFailure)'|'test timed out after \d+ms'|^\W*Error.*: test timed out after \d+ms",
        ),
        rule(
            "test-limit.jest",
            r"^    thrown: .Exceeded timeout of \d+ ?ms for a (?:test|hook)|Async callback was not invoked within the \d+ ?ms timeout",
        ),
        rule("test-limit.vitest", r"^\s*Error: (?:Test|Hook) timed out in \d+ms"),
        rule("test-limit.vitest-list", r"^\s*\S+ (?:Test|Hook) timed out in \d+ms"),
        rule("test-limit.mocha", r"Error: Timeout of \d+ms exceeded"),
        rule("test-limit.jasmine", r"Async function did not complete within \d+ms"),
        rule(
            "test-limit.playwright",
            r"\b(?:Test|Hook|\S*(?:beforeEach|afterEach|beforeAll|afterAll)\S* hook) timeout of \d+ms exceeded",
        ),
        rule("test-limit.nextest", r"^\s*(?:TRY \d+ )?(?:TIMEOUT|TMT) \["),
        rule("test-limit.ctest", r"\*\*\*(?:Timeout|Failed\s+Error regular expression.*timeout)"),
        rule("test-limit.meson", r"^\s*\d+/\d+ .*\bTIMEOUT\b"),
        rule("test-limit.bazel", r"^//\S+\s+TIMEOUT in|^TIMEOUT: //"),
        rule("test-limit.junit4", r"TestTimedOutException: test timed out after"),
        rule("test-limit.junit5", r"TimeoutException: .*\btimed out after \d+"),
        rule("test-limit.testng", r"ThreadTimeoutException|didn't finish within the time-out"),
        rule("test-limit.coroutines", r"UncompletedCoroutinesError: After waiting for"),
        rule("test-limit.exunit", r"\(?ExUnit\.TimeoutError\)?.* timed out after"),
        rule("test-limit.bun", r"\bthis test timed out after \d+ ?ms"),
        rule("test-limit.bats", r"^not ok \d+ .*# timeout after \d+"),
        rule(
            "test-limit.dotnet",
            r"(?i)test execution timed out after|exceeded (?:its )?execution timeout period|Test exceeded Timeout value of|\bTest '.*' (?:timed out|exceeded).*\d+ ?m?s",
        ),
        rule("test-limit.dart", r"TimeoutException after [\d:.]+: Test timed out"),
        rule(
            "test-limit.phpunit",
            r"This test was aborted after \d+ seconds?|Execution aborted after \d+ seconds?",
        ),
        rule("test-limit.tap", r"^\s*not ok \d+ .*\btimeout!|^\s*expired: "),
        rule("test-limit.lit", r"^TIMEOUT: \S+ ::|Reached timeout of \d+ seconds"),
        rule(
            "test-limit.swift",
            r"Test exceeded execution time allowance|Time limit was exceeded: ",
        ),
        rule("test-limit.catch", r"^\s*\d+ - .* \(Timeout\)\s*$"),
        rule(
            "test-limit.hspec",
            r"^\s*(?:Timed out after|Timeout:? (?:after|expired)) [\d.]+ ?(?:s|ms|seconds)",
        ),
        // `timed out after` is what the harness says of the test that it ended; an assertion speaks of what it compared.
        rule("test-limit.tap-words", r"^\s*not ok \d+ .*\btimed out (?:after|in) [\d.]+ ?m?s"),
        rule(
            "test-limit.harnesses",
            r"\[TIMEDOUT\]|\b[Aa] (?:spec|suite|node) timeout occurred|\btimetrap_timeout\b|\bMethod timed out after [\d.]+|(?i:did not complete within [\d.]+ ?(?:m?s|sec|min)\w*)|\btest timed out after [\d.]+ ?\w+|\bstill running at [\d.]+ secs|\bfunction timed out, ensure the promise|: Timed out\. \([\d.]+m?s\)|\bTest timeout expired\b|\bthe function call took \d+ ms\. Max time|\bTimeout [\d.]+ ?m?s expired|reached elapsed time limit|^(?:nose\.\S*)?TimeExpired: |\btest timed out\.$|^\s*Timed out \(\d+ ?ms\)",
        )
        .at(TEST),
        rule(
            "test-limit.generic",
            r"(?i)\btimeout during test|\b(?-i:TIMED[- ]OUT) after \d|\bexceeded (?:the )?[\d.]+ ?(?:ms|s|sec\w*) (?:time ?limit|timeout|limit)\b|\btime ?limit of [\d.]+ ?\w+ (?:was )?(?:reached|exceeded|hit|expired)\b|\b(?:killed|aborted|stopped|terminated)\b\W{0,3}(?:by|after|on|due to|because of)?\W{0,2}(?:the |its )?(?:timeout|time ?limit)\b|\bdid(?: not|n't) (?:finish|complete|end) (?:with)?in [\d.]+ ?(?:ms|s|sec\w*|min\w*)\b|\btook (?:longer|more) than [\d.]+ ?(?:ms|s|m)\w*\b.{0,20}\b(?:abort|kill|stopp|cancel|terminat)|\.\.\. ?\W{0,2}(?:timed[- ]out|timeout)\b\W*$|\btests? did(?: not|n't) (?:finish|complete|end) within \d|\b(?:failed|fail|error)\b.{0,60}\((?:timed out|timeout)\b|\b[1-9]\d* (?:tests? )?timed out\b|^\W*(?-i:TIMEOUT)\W+\w|^\W*timeout ?[^\w\s=]\W*(?:\w[\w.]*[^\w.,]|\w+[_./]\w)|\b(?-i:TIMEOUT) after \d|\bpass(?:ed)?\b.*\btime(?:d[- ])?outs?\s*[:= ]\s*[1-9]|\btests? (?:timed out|was killed) after \d|\btest(?: case)? (?:'[^']*' |\S+ )?(?:timed out|exceeded (?:the |its )?time ?(?:out|limit))(?: after| in|:| of|\.|$)",
        )
        .at(TEST),
    ],
);
