//! Which line is the headline where a closing sentence, a hint or an aftermath comes last, and the cause that it names.

use super::{Case, check, evidence, now, short};
use crate::model::failure::FailureEvidence;
use crate::policy::classify::classify;

const CAUSES: &[Case] = &[
    // Vocabulary of a configuration.
    (
        'b',
        1,
        "2026/11/30 20:08:58 [emerg] 7#7: unknown directive \"lisen\" in ./web.conf:5\nweb: configuration file ./web.conf test failed",
        "f INVALID_INPUT",
    ),
    (
        'l',
        1,
        "app.conf:3: error: expected yes or no.\nread app.conf failed: 1 errors in configuration file",
        "f INVALID_INPUT",
    ),
    (
        'l',
        1,
        "error: ./app.conf:3 bad rotation count 'four'\nstate file /var/lib/x/status does not exist",
        "f INVALID_INPUT",
    ),
    (
        'b',
        3,
        "Error: Unknown configuration variable \"anonymouse\".\nError found at m.conf:2.",
        "f INVALID_INPUT",
    ),
    (
        'b',
        1,
        "a.s:3:1: error: unknown directive\n  .glbl x",
        "f BROKEN_BUILD",
    ),
    // Errors of the system with their number.
    (
        'b',
        1,
        "2026/11/30 20:08:59 [emerg] 7#7: bind() to 0.0.0.0:80 failed (98: Address already in use)",
        "s UNKNOWN+",
    ),
    (
        'b',
        1,
        "initdb: error: cannot be run as root\ninitdb: hint: Please log in as another user",
        "s UNKNOWN",
    ),
    // A part of a file.
    (
        'b',
        1,
        "bill.idl:3:1:imported file does not exist",
        "f BROKEN_BUILD",
    ),
    (
        'b',
        2,
        "tool: a.pdf: unable to find trailer dictionary while recovering damaged file",
        "f BROKEN_BUILD",
    ),
    (
        'b',
        9,
        "  End-of-central-directory signature not found.",
        "f BROKEN_BUILD",
    ),
    // An aftermath.
    (
        'b',
        127,
        "deploy.fish (line 2): Missing end to balance this if statement\nif test $env = prod\n^^",
        "f BROKEN_BUILD",
    ),
    (
        'b',
        127,
        "deploy.sh: line 2: frobnicate: command not found",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        1,
        "tup error: Explicitly named file 'util.o' not found in subdir '.'\nsh: 1: fusermount3: not found",
        "f RESOURCE_NOT_FOUND",
    ),
    (
        't',
        1,
        "./app\n*** Signal 11\n\nStop.\nbmake: stopped in /w",
        "c CRASHED",
    ),
    (
        't',
        1,
        "./app\n*** [check] Segmentation fault\n",
        "c CRASHED",
    ),
    ('t', 1, "./app\n*** Signal 9\n\nStop.", "c CRASHED+"),
    // What is verified, and what is lacking.
    (
        't',
        2,
        "error 10 at 0 depth lookup: certificate has expired\nerror site.pem: verification failed",
        "f VERIFICATION_FAILED",
    ),
    (
        'b',
        1,
        "build.zsh:2: no matches found: src/*.c",
        "f RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        1,
        "current directory is not within an open check-out",
        "f RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        2,
        "gpg: signing failed: No secret key",
        "f RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        1,
        "dpkg: dependency problems prevent configuration of a:\n a depends on b (>= 2.0); however:\n  Package b is not installed.",
        "f BROKEN_BUILD",
    ),
    // A test that fails of a service fails.
    (
        't',
        1,
        "--- FAIL: TestLogin (0.01s)\n    login_test.go:12: dial tcp 127.0.0.1:80: connect: connection refused\nFAIL\nFAIL\texample.com/app\t0.01s",
        "f VERIFICATION_FAILED",
    ),
];

#[test]
fn the_specific_error_decides() {
    check(CAUSES);
}

#[test]
fn any_program_may_refuse_what_it_is_called_with() {
    for output in [
        "Usage: any [OPTIONS]\nTry 'any --help' for help.\n\nError: No such option: --x\n",
        "usage: any [-h]\nany: error: unrecognized arguments: --x\n",
    ] {
        let failure = classify(&evidence('a', 2, output, true), None, &[], now());
        assert_eq!(short(&failure), "a INVALID_INPUT", "{output}");
        assert!(failure.message.contains("--x"), "{}", failure.message);
    }
}

/// Stage, output, the message.
const HEADLINES: &[(char, &str, &str)] = &[
    (
        'b',
        "2026/11/30 20:08:58 [emerg] 7#7: cannot load certificate \"a.pem\"\nweb: configuration file ./web.conf test failed\n",
        "2026/11/30 20:08:58 [emerg] 7#7: cannot load certificate \"a.pem\"",
    ),
    (
        'l',
        "[ALERT]    (7) : config : parsing [h.cfg:10] : balance only supports 'a', 'b'.\n[ALERT]    (7) : config : Error(s) found in configuration file : h.cfg\n",
        "[ALERT] (7) : config : parsing [h.cfg:10] : balance only supports 'a', 'b'.",
    ),
    (
        'l',
        "rdata: zone.db:4: near '10.0.0.256': bad dotted quad\nzone x/IN: loading from master file zone.db failed: bad dotted quad\nzone x/IN: not loaded due to errors.\n",
        "rdata: zone.db:4: near '10.0.0.256': bad dotted quad",
    ),
    (
        't',
        "psql:m.sql:2: ERROR:  null value in column \"a\"\nDETAIL:  Failing row contains (1, null).\n",
        "psql:m.sql:2: ERROR: null value in column \"a\"",
    ),
    (
        'b',
        " Usage: any bump [OPTIONS]\n\n Try 'any bump -h' for help\n\u{256d}\u{2500} Error \u{2500}\u{256e}\n\u{2502} The working directory is not clean: \u{2502}\n\u{2502}                    \u{2502}\n\u{2570}\u{2500}\u{2500}\u{256f}\n",
        "The working directory is not clean",
    ),
    (
        'l',
        "!!!! Warnings (complexity > 3) !!!!\n  NLOC    CCN  location\n-----\n     7      7  f@1-7@src/a.py\n=====\n     7    7.0    1\n",
        "7 7 f@1-7@src/a.py",
    ),
    (
        't',
        "test_api\n  test_total ... [FAIL]\n[FAIL]\nTraceback (most recent call last):\n  File \"/w/test_api.py\", line 4, in test_total\n    self.assertEqual(3, 4)\ntwisted.trial.unittest.FailTest: 3 != 4\n\nRan 2 tests in 0.009s\n\nFAILED (failures=1, successes=1)\n",
        "1 failed, 1 passed: twisted.trial.unittest.FailTest: 3 != 4",
    ),
    (
        't',
        "TypeError: undefined is not a function\nTest failed: AuthService.register\n",
        "TypeError: undefined is not a function",
    ),
    (
        'a',
        "TypeError: undefined is not a function\nTest failed: AuthService.register\n",
        "TypeError: undefined is not a function",
    ),
    (
        't',
        "FAIL item2.js\nTest failed: expected 200 got 403\n",
        "expected 200 got 403",
    ),
];

#[test]
fn a_closing_sentence_is_no_headline() {
    for (letter, output, message) in HEADLINES {
        let failure = classify(&evidence(*letter, 1, output, false), None, &[], now());
        assert_eq!(failure.message, *message, "{output}");
    }
}

#[test]
fn what_differs_in_the_headline_differs_in_the_signature() {
    let failed = |what: &str| {
        let stderr = format!(
            "2026/11/30 20:08:58 [emerg] 7#7: {what}\nweb: configuration file ./web.conf test failed\n"
        );
        let evidence = FailureEvidence {
            stderr: stderr.into(),
            ..evidence('b', 1, "", true)
        };
        classify(&evidence, None, &[], now()).signature
    };
    assert_ne!(
        failed("cannot load certificate \"a.pem\""),
        failed("no port is given for \"site\"")
    );
}
