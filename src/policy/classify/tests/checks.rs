//! What linters, formatters and type checkers say of the project.

use super::{Case, check};

const LINTS: &[Case] = &[
    (
        'l',
        1,
        "./a.yaml\n  2:2  error  syntax error: expected ',' or ']' (syntax)",
        "f BROKEN_BUILD",
    ),
    (
        'l',
        1,
        "a.js:1:9 parse \u{2501}\u{2501}\n\n  \u{d7} Expected an expression but instead found ';'.\nFound 1 error.",
        "f BROKEN_BUILD",
    ),
    (
        'l',
        1,
        ">> Issue: [B102:exec_used] Use of exec detected.\n   Severity: Medium   Confidence: High",
        "f VERIFICATION_FAILED",
    ),
    (
        'c',
        2,
        "nope.py: error: Cannot read file: No such file or directory\nFound 1 error in 1 file",
        "f RESOURCE_NOT_FOUND",
    ),
    (
        'l',
        1,
        "src/a.py:3:80: E501 line too long (92 > 79 characters)",
        "f VERIFICATION_FAILED",
    ),
    (
        'l',
        1,
        "a.py:1:7: E999 SyntaxError: invalid syntax",
        "f BROKEN_BUILD",
    ),
    (
        'l',
        1,
        "would reformat src/a.py\nOh no! 1 file would be reformatted.",
        "f VERIFICATION_FAILED",
    ),
    (
        'l',
        123,
        "error: cannot format a.py: Cannot parse: 1:4: def\nOh no! 1 file failed to reformat.",
        "f BROKEN_BUILD",
    ),
    (
        'l',
        1,
        "Checking formatting...\n[warn] src/a.ts\n[warn] Code style issues found in the above file. Run Prettier with --write to fix.",
        "f VERIFICATION_FAILED",
    ),
    (
        'l',
        1,
        "\n/x/a.js\n  3:9  error  Parsing error: Unexpected token }\n\n✖ 1 problem (1 error, 0 warnings)",
        "f BROKEN_BUILD",
    ),
    (
        'l',
        1,
        "In a.sh line 3:\necho $x\n     ^-- SC2086 (info): Double quote to prevent globbing",
        "f VERIFICATION_FAILED",
    ),
    (
        'l',
        1,
        "main.go:8:2: Error return value is not checked (errcheck)\n1 issues:\n* errcheck: 1",
        "f VERIFICATION_FAILED",
    ),
    (
        'l',
        1,
        "a.rb:1:1: C: Style/Foo: Missing comment.\n1 file inspected, 1 offense detected",
        "f VERIFICATION_FAILED",
    ),
    (
        'l',
        1,
        "a.css\n  3:5  ✖  Unexpected unknown property \"colr\"  property-no-unknown\n\n✖ 1 problem (1 error, 0 warnings)",
        "f VERIFICATION_FAILED",
    ),
    (
        'l',
        1,
        "Dockerfile:3 DL3008 warning: Pin versions in apt get install",
        "f VERIFICATION_FAILED",
    ),
    (
        'l',
        1,
        "./a.yaml\n  3:1  error  wrong indentation: expected 2 but found 3  (indentation)",
        "f VERIFICATION_FAILED",
    ),
    (
        'l',
        2,
        "Oops! Something went wrong! :(\n\nESLint: 9.1.0\n\nESLint couldn't find an eslint.config.(js|mjs|cjs) file.",
        "f INVALID_INPUT",
    ),
    (
        'l',
        2,
        "ruff failed\n  Cause: Failed to parse /x/ruff.toml\n  Cause: TOML parse error at line 2, column 1\nunknown field `lin-length`, expected one of",
        "f INVALID_INPUT",
    ),
    (
        'l',
        101,
        "error[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:3:5\nerror: could not compile `a` (lib) due to 1 previous error",
        "f BROKEN_BUILD",
    ),
    (
        'l',
        1,
        "src/timeout.rs:429: trailing whitespace",
        "f VERIFICATION_FAILED",
    ),
    (
        'c',
        1,
        "a.py:3: error: Incompatible return value type (got \"int\", expected \"str\")  [return-value]\nFound 1 error in 1 file (checked 3 source files)",
        "f VERIFICATION_FAILED",
    ),
    (
        'c',
        2,
        "a.py:3: error: invalid syntax  [syntax]\nFound 1 error in 1 file (errors prevented further checking)",
        "f BROKEN_BUILD",
    ),
    (
        'c',
        1,
        "/x/a.py:3:5 - error: \"foo\" is not defined (reportUndefinedVariable)\n1 error, 0 warnings, 0 informations",
        "f VERIFICATION_FAILED",
    ),
    (
        'c',
        2,
        "a.py:3: error: Too many arguments for \"f\"  [call-arg]\nFound 1 error in 1 file",
        "f VERIFICATION_FAILED",
    ),
    (
        'c',
        2,
        "src/a.ts(3,1): error TS1005: ';' expected.",
        "f BROKEN_BUILD",
    ),
    (
        'c',
        101,
        "error[E0308]: mismatched types\nerror: could not compile `a` (lib) due to 1 previous error",
        "f BROKEN_BUILD",
    ),
    (
        'c',
        2,
        "usage: mypy [-h]\nmypy: error: unrecognized arguments: --strickt",
        "f INVALID_INPUT",
    ),
];

#[test]
fn lints_and_types() {
    check(LINTS);
}
