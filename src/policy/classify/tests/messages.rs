//! What a loop's author says in one line, by message or as all the output that there is.

use super::{Case, check, evidence, now, short, stage};
use crate::model::failure::FailureEvidence;
use crate::policy::classify::classify;

/// The stages without and with a name (`-`: none), what is said, what it means.
type Said = (&'static str, &'static str, &'static str);

const COMPARISONS: &[Said] = &[
    (
        "-at",
        "Test failed: expected 200 got 404",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "AssertionError: expected 404 to equal 200",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "Test failed: expected 200 got 500",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "expected status 429 but got 200",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "Error: expected status 429 but got 200",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "expected 200 OK, got 503 Service Unavailable",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "expected status code to be 401, received 500",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "login_test.go:12: got 429, want 200",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "AssertionError: expected 3 to equal 4",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "AssertionError [ERR_ASSERTION]: 429 == 200",
        "f VERIFICATION_FAILED",
    ),
    ("-at", "assert 404 == 200", "f VERIFICATION_FAILED"),
    (
        "-at",
        "assertion `left == right` failed",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "assertion failed: status 500 is not 200",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "AssertionError: expected 'No space left on device' to equal 'ok'",
        "f VERIFICATION_FAILED",
    ),
];

const STATUSES: &[Said] = &[
    ("-a", "429 Too Many Requests", "a RATE_LIMITED+"),
    ("-a", "Error: 429 Too Many Requests", "a RATE_LIMITED+"),
    ("-a", "HTTP/1.1 429 Too Many Requests", "a RATE_LIMITED+"),
    ("-a", "HTTP 429", "a RATE_LIMITED+"),
    ("-a", "502 Bad Gateway", "a UNKNOWN+"),
    ("-a", "503 Service Unavailable", "a UNKNOWN+"),
    (
        "-a",
        "We're currently experiencing high demand",
        "a RATE_LIMITED+",
    ),
    (
        "-a",
        "We\u{2019}re currently experiencing high demand, which may cause temporary errors.",
        "a RATE_LIMITED+",
    ),
    (
        "-a",
        "Selected model is at capacity. Please try a different model.",
        "a RATE_LIMITED+",
    ),
    (
        "-a",
        "ERROR: exceeded retry limit, last status: 500 Internal Server Error",
        "a RATE_LIMITED+",
    ),
    (
        "-a",
        "ERROR: exceeded retry limit, last status: 429 Too Many Requests, request id: x",
        "a RATE_LIMITED+",
    ),
    ("-a", "API rate limit exceeded", "a RATE_LIMITED+"),
    ("a", "ETIMEDOUT", "a NETWORK_ERROR+"),
    ("-a", "oauth_org_not_allowed", "a AUTH_FAILED"),
    ("-a", "model_not_found: gpt-9", "a RESOURCE_NOT_FOUND"),
    ("-a", "context_length_exceeded", "a CONTEXT_EXHAUSTED"),
    ("-a", "model_not_found", "a RESOURCE_NOT_FOUND"),
    ("-a", "rate_limit_exceeded", "a RATE_LIMITED+"),
    ("-a", "rate_limit", "a RATE_LIMITED+"),
    ("-a", "rate_limit_error", "a RATE_LIMITED+"),
    ("-a", "Error code: insufficient_quota", "a AUTH_FAILED"),
    ("-a", "invalid_request", "a INVALID_INPUT"),
    ("-a", "invalid_request_error", "a INVALID_INPUT"),
    ("-a", "authentication_error", "a AUTH_FAILED"),
    ("-a", "server_error", "a UNKNOWN+"),
];

const LIMITS: &[Said] = &[
    (
        "-abt",
        "Operation timed out after 10 minutes",
        "t TOOL_TIMEOUT+",
    ),
    (
        "-abt",
        "Error: Timeout of 2000ms exceeded.",
        "t TOOL_TIMEOUT+",
    ),
    (
        "-at",
        "Error: Timeout of 2000ms exceeded. For async tests and hooks, ensure \"done()\" is called.",
        "t TOOL_TIMEOUT+",
    ),
    ("-abtlc", "Command timed out", "t TOOL_TIMEOUT+"),
    ("-a", "agent timed out after 30 minutes", "t TOOL_TIMEOUT+"),
    ("-abt", "deadline exceeded", "t TOOL_TIMEOUT+"),
    ("-abt", "timeout", "t TOOL_TIMEOUT+"),
    ("-abt", "TimeoutError", "t TOOL_TIMEOUT+"),
    ("-abt", "Timeout!", "t TOOL_TIMEOUT+"),
    ("-abt", "cargo test timed out (10m)", "t TOOL_TIMEOUT+"),
    ("-ab", "Build exceeded its time limit", "t TOOL_TIMEOUT+"),
    ("-", "Connection timed out", "s NETWORK_ERROR+"),
    ("-", "request timed out", "s NETWORK_ERROR+"),
    ("a", "request timed out", "a NETWORK_ERROR+"),
    ("a", "Connection timed out", "a NETWORK_ERROR+"),
    (
        "-b",
        "curl: (28) Operation timed out after 30001 milliseconds with 0 bytes received",
        "s NETWORK_ERROR+",
    ),
    (
        "-b",
        "dial tcp 10.0.0.1:443: i/o timeout",
        "s NETWORK_ERROR+",
    ),
];

const CHECKS: &[Said] = &[
    ("-at", "Tests failed", "f VERIFICATION_FAILED"),
    ("-at", "Verification failed", "f VERIFICATION_FAILED"),
    ("-at", "npm test failed", "f VERIFICATION_FAILED"),
    ("-al", "lint failed", "f VERIFICATION_FAILED"),
    ("-al", "clippy: 3 warnings denied", "f VERIFICATION_FAILED"),
    (
        "-at",
        "Test failed: AuthService.register",
        "f VERIFICATION_FAILED",
    ),
    ("-at", "3 of 10 tests failed", "f VERIFICATION_FAILED"),
    ("-at", "Unit tests are failing", "f VERIFICATION_FAILED"),
    (
        "-at",
        "cargo test failed with exit code 101",
        "f VERIFICATION_FAILED",
    ),
    (
        "-at",
        "Tests failed: rate_limit_spec.rb, timeout_spec.rb",
        "f VERIFICATION_FAILED",
    ),
    ("-ac", "mypy found 3 errors", "f VERIFICATION_FAILED"),
    (
        "-t",
        "Tests failed: connect ECONNREFUSED 127.0.0.1:5432",
        "s NETWORK_ERROR+",
    ),
    (
        "-at",
        "Tests failed: No space left on device",
        "s DISK_FULL",
    ),
];

const BUILDS: &[Said] = &[
    (
        "-abt",
        "could not compile `foo` (lib) due to 2 previous errors",
        "f BROKEN_BUILD",
    ),
    (
        "-abt",
        "error: could not compile `foo` (lib) due to 2 previous errors",
        "f BROKEN_BUILD",
    ),
    (
        "-abt",
        "error: could not compile `foo` (bin \"foo\") due to 1 previous error",
        "f BROKEN_BUILD",
    ),
    (
        "-abt",
        "could not compile `foo` (bin \"foo\") due to 1 previous error; 3 warnings emitted",
        "f BROKEN_BUILD",
    ),
    (
        "-abt",
        "fatal error: foo.h: No such file or directory",
        "f BROKEN_BUILD",
    ),
    (
        "-abt",
        "fatal error: 'foo.h' file not found",
        "f BROKEN_BUILD",
    ),
    ("-abt", "Build failed", "f BROKEN_BUILD"),
    ("-abt", "npm run build failed", "f BROKEN_BUILD"),
    ("-abt", "compilation failed", "f BROKEN_BUILD"),
    ("-abt", "Compile error in src/main.rs", "f BROKEN_BUILD"),
    ("-abt", "TS2304: Cannot find name 'x'.", "f BROKEN_BUILD"),
    ("-abt", "The project does not compile", "f BROKEN_BUILD"),
    ("-ab", "Build failed: src/main.rs", "f BROKEN_BUILD"),
    (
        "-ab",
        "Build failed: No space left on device",
        "s DISK_FULL",
    ),
];

const ENDS: &[Said] = &[
    ("-abt", "fatal runtime error: stack overflow", "c CRASHED"),
    ("-abt", "SIGSEGV", "c CRASHED"),
    ("-abt", "Process crashed", "c CRASHED"),
    ("-abt", "node received SIGABRT", "c CRASHED"),
    ("-abt", "SIGKILL", "c CRASHED+"),
    (
        "-abt",
        "Killed process 123 (node) total-vm: Out of memory",
        "c OUT_OF_MEMORY",
    ),
    (
        "-abt",
        "Killed process 123 (node), UID 0, total-vm:4kB, anon-rss:2kB",
        "c OUT_OF_MEMORY",
    ),
    ("-abt", "OOM", "c OUT_OF_MEMORY"),
    ("-a", "Context exhausted", "a CONTEXT_EXHAUSTED"),
    ("-a", "token limit exceeded", "a CONTEXT_EXHAUSTED"),
    ("-a", "Out of context", "a CONTEXT_EXHAUSTED"),
    ("-a", "Context window is full", "a CONTEXT_EXHAUSTED"),
    ("-b", "Invalid input", "f INVALID_INPUT"),
    ("a", "Invalid input", "a INVALID_INPUT"),
    ("-ab", "file not found", "f RESOURCE_NOT_FOUND"),
];

/// What resembles a summary and is none: the stage alone decides, or what it really says.
const HARMLESS: &[Said] = &[
    ("-", "0 tests failed", "f UNKNOWN"),
    ("-", "no tests failed", "f UNKNOWN"),
    ("a", "0 tests failed", "a UNKNOWN+"),
    ("-", "Build failed? no", "f UNKNOWN"),
    ("a", "Build failed? no", "a UNKNOWN+"),
    ("-a", "no timeout", "? UNKNOWN"),
    ("-a", "The operation has not timed out", "? UNKNOWN"),
    ("-a", "nothing timed out", "? UNKNOWN"),
    ("-a", "increase the timeout", "? UNKNOWN"),
    ("-a", "timeout set to 30 s", "? UNKNOWN"),
    ("-a", "Running timeout.rs", "? UNKNOWN"),
    ("a", "I fixed the tests that failed", "? UNKNOWN"),
    ("-a", "the process never crashed", "? UNKNOWN"),
    ("-a", "done with context", "? UNKNOWN"),
    ("-a", "it stops", "? UNKNOWN"),
    ("-a", "200 OK", "? UNKNOWN"),
    ("-a", "processed 429 files", "? UNKNOWN"),
    ("a", "502 files written", "? UNKNOWN"),
    ("-a", "Read 5 specs", "? UNKNOWN"),
    ("-a", "SIGSEGV handler installed", "? UNKNOWN"),
    ("-a", "a test of tokens and timeouts", "? UNKNOWN"),
    ("-a", "wanted: 3 reviewers", "? UNKNOWN"),
    ("-a", "The expected 200 lines were written", "? UNKNOWN"),
    ("a", "0 of 3 tests failed", "? UNKNOWN"),
    ("a", "build is not broken", "? UNKNOWN"),
    (
        "a",
        "API Error: 400 messages.1: expected \"text\" but got \"image\"",
        "a INVALID_INPUT",
    ),
    (
        "a",
        "ERROR: unexpected status 401 Unauthorized",
        "a AUTH_FAILED",
    ),
    ("b", "Error: expected `;`, found `}`", "f BROKEN_BUILD"),
    ("b", "429 Too Many Requests", "s NETWORK_ERROR+"),
    ("b", "502 Bad Gateway", "s NETWORK_ERROR+"),
    (
        "-b",
        "src/a.ts(3,1): error TS2554: Expected 2 arguments, but got 1.",
        "f BROKEN_BUILD",
    ),
    (
        "l",
        "error: could not compile `foo` (lib) due to 2 previous errors",
        "f VERIFICATION_FAILED",
    ),
    (
        "-b",
        "cc1: fatal error: foo.c: No such file or directory",
        "f RESOURCE_NOT_FOUND",
    ),
    ("-", "model trained in 3 s", "f UNKNOWN"),
];

/// More than a message: what stands in a log is no summary.
const LOGS: &[Case] = &[
    (
        'b',
        1,
        "step 1\nstep 2\ntimeout\nstep 3\nerror[E0308]: mismatched types",
        "f BROKEN_BUILD",
    ),
    (
        'a',
        1,
        "thinking\nTests failed\nfixing\nTests passed\nAPI Error: 529 Overloaded",
        "a RATE_LIMITED+",
    ),
    (
        'a',
        1,
        "reading\ntrying\nagain\nError: expected status 429 but got 200",
        "a UNKNOWN+",
    ),
    (
        '-',
        1,
        "Test failed: expected 200 got 404\n    at login (auth.test.js:3:4)",
        "f VERIFICATION_FAILED",
    ),
    (
        '-',
        101,
        "error: oh no\n --> a\nwarning: x\nerror: could not compile `a` (lib) due to 2 previous errors",
        "f BROKEN_BUILD",
    ),
];

fn check_said(said: &[Said]) {
    let mut misses = Vec::new();
    for (letters, text, wanted) in said {
        for letter in letters.chars() {
            let wanted = match (*wanted, letter) {
                ("? UNKNOWN", 'a') => "a UNKNOWN+",
                ("? UNKNOWN", _) => "f UNKNOWN",
                (wanted, _) => wanted,
            };
            let message = FailureEvidence {
                stage: stage(letter),
                message: Some((*text).to_owned()),
                ..FailureEvidence::default()
            };
            for evidence in [
                message,
                evidence(letter, 1, text, false),
                evidence(letter, 1, text, true),
            ] {
                let failure = classify(&evidence, None, &[], now());
                if short(&failure) != wanted {
                    misses.push(format!(
                        "{letter} {text:?}: {}, by {:?}",
                        short(&failure),
                        failure.evidence[0].rule
                    ));
                    break;
                }
            }
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn numbers_that_a_check_compares_are_no_statuses() {
    check_said(COMPARISONS);
}

#[test]
fn a_status_or_a_code_is_an_apis() {
    check_said(STATUSES);
}

#[test]
fn a_time_limit_is_no_connection() {
    check_said(LIMITS);
}

#[test]
fn checks_and_builds_by_name() {
    check_said(CHECKS);
    check_said(BUILDS);
}

#[test]
fn the_name_of_an_end() {
    check_said(ENDS);
}

#[test]
fn what_only_resembles_a_summary() {
    check_said(HARMLESS);
    check(LOGS);
}

#[test]
fn a_message_is_no_header_and_no_property_of_an_error() {
    for (stage, output, message) in [
        (
            'c',
            "Invalid configuration:\n\n  the level is no number\n",
            "Invalid configuration: the level is no number",
        ),
        (
            't',
            "Error: listen EADDRINUSE: address already in use :::4000\n    at Server.setup (node:net:1908:16) {\n  \
             code: 'EADDRINUSE',\n  errno: -98\n}\n\nNode.js v20.20.2\n",
            "Error: listen EADDRINUSE: address already in use :::4000",
        ),
    ] {
        let failure = classify(&evidence(stage, 1, output, true), None, &[], now());
        assert_eq!(failure.message, message, "{output}");
    }
}
