//! Findings of linters, formatters and type checkers.

use super::rule::{BUILD, LINT, Rule, TEST, TYPECHECK, rule};
use crate::policy::classify::verdict::FAILED;

const CHECK: u8 = LINT | TYPECHECK;
const FEEDBACK: u8 = BUILD | TEST | LINT | TYPECHECK;

pub(super) const RULES: &[Rule] = &[
    rule(
        "lint.rustc-denied",
        LINT,
        r"implied by `-D |#\[deny\(",
        FAILED,
    ),
    rule(
        "lint.clippy",
        LINT | BUILD | TEST,
        r"clippy::|rust-clippy",
        FAILED,
    ),
    rule(
        "lint.eslint",
        FEEDBACK,
        r"\xE2\x9C\x96 \d+ problems? \(|ESLint found too many warnings|^\s+\d+:\d+\s+(?:error|warning)\s+\S|^\d+ problems?\b|\xE2\x9A\xA0 \d+ problems?|\x22errorCount\x22:\s*[1-9]",
        FAILED,
    ),
    rule(
        "lint.format",
        FEEDBACK,
        r"^Diff in |would (?:be )?reformat(?:ted)?\b|would be left unchanged|Code style issues (?:found|in)|imports are incorrectly sorted|Run Prettier|^\[warn\] \S|not (?:properly |correctly )?formatted|(?i)\bformatting (?:issues?|errors?|differences|violations)|need(?:s|ed)? (?:re)?formatting|The following files (?:had|have|are not|need)|File content differs from formatting|Formatter would have printed|code should be clang-formatted|\[-Wclang-format-violations\]|is not formatted|[Ff]ound \d+ not formatted|unformatted|requires formatting|--- \S+\.orig|^diff -u \S+ |^diff \S+\.orig|mix format failed|not gofmt|gofumpt|goimports",
        FAILED,
    ),
    rule(
        "lint.ruff",
        CHECK,
        r"^Found [1-9]\d* (?:errors?|diagnostics?|issues?|problems?|warnings?|offenses?)|^[A-Z]{1,4}\d{3,5} ",
        FAILED,
    ),
    rule(
        "lint.python",
        CHECK,
        r"^\S+\.pyi?:\d+(?::\d+)?: (?:\[?[A-Z]\d{3,5}\b|error: |warning: |note: |[EWFCRN]\d)|Your code has been rated|^\*{5,} Module |^Found \d+ errors? in \d+ files?|^Success: no issues",
        FAILED,
    ),
    rule(
        "lint.pyright",
        CHECK,
        r"^\s*\S+:\d+:\d+ - (?:error|warning)|^[1-9]\d* errors?, \d+ warnings?|ERROR \S+:\d+:\d+-|error\[[a-z-]+\]",
        FAILED,
    ),
    rule(
        "lint.tsc",
        TYPECHECK,
        r"error TS\d+:|^Found \d+ errors?",
        FAILED,
    ),
    rule(
        "lint.go",
        CHECK,
        r"^\S+\.go:\d+(?::\d+)?: .+| \([a-z]+\)$|^\d+ issues?:?$",
        FAILED,
    ),
    rule(
        "lint.shell",
        CHECK,
        r"\bSC\d{4}\b|DL\d{4}|^In \S+ line \d+:",
        FAILED,
    ),
    rule(
        "lint.ruby",
        CHECK,
        r"\b\d+ files? inspected, [1-9]\d* offenses?|: [CWEFR]: (?:\[Correctable\] )?\w+/\w+|offenses? detected",
        FAILED,
    ),
    rule(
        "lint.java",
        FEEDBACK,
        r"You have \d+ (?:Checkstyle|PMD) violations?|[1-9]\d* (?:Checkstyle|PMD|SpotBugs|CPD) (?:violations?|errors?|rule)|Checkstyle (?:rule )?violations were found|SpotBugs (?:violations were found|ended with)|PMD rule violations|ktlint|KtLint found|detekt|Analysis failed with \d+ weighted issues|SpotlessCheck|spotless|Lint found \d+ errors|The following files had format violations",
        FAILED,
    ),
    rule(
        "lint.biome",
        CHECK,
        r"\blint/\w+/\w+|Found \d+ (?:errors?|warnings?|lint)|Some errors were emitted while running checks|\(deno-lint\)|error\[[\w-]+\]:|Found \d+ problems?",
        FAILED,
    ),
    rule(
        "lint.location",
        CHECK,
        r"^\S+:\d+(?::\d+)?:? +\S|^\S+\(\d+,\d+\): |^\s+\d+:\d+\s+\S|^\S+ \d+:\d+ |line \d+,? col(?:umn)? \d+|^\S+:\d+:\d+$",
        FAILED,
    ),
    rule(
        "lint.count",
        CHECK,
        r"(?i)\b[1-9]\d* (?:\w+ )?(?:errors?|findings?|violations?|offenses?|misspellings?|diagnostics?|failures?)\b|\b(?:leaks?|secrets?|issues?|problems?|violations?|findings?|vulnerabilities|offenses?|warnings?)(?: \w+)? ?: *[1-9]",
        FAILED,
    ),
    rule(
        "lint.docs",
        CHECK,
        r"MD\d{3}(?:/|\b)|\bL\d{3}\b|warnings? treated as errors?|[1-9]\d* (?:lint|style|spelling|type|format(?:ting)?) (?:errors?|warnings?|issues?|violations?|problems?)|Unknown word \(|^error: .* ==> |vulnerabilit(?:y|ies) found|[1-9]\d* vulnerabilit|found [1-9]\d* (?:leaks|secrets|vulnerabilities|warnings|errors|issues)|unused (?:dependencies|exports|files)|RUSTSEC-\d",
        FAILED,
    ),
];

/// Words of no tool in particular that a check failed.
pub(super) const WEAK: &[Rule] = &[
    rule(
        "check.difference",
        TEST | CHECK,
        r"^\d+(?:,\d+)?[acd]\d+(?:,\d+)?$|^(?:Binary files|Files) .* differ|^\+\+\+ |^@@ -\d",
        FAILED,
    ),
    // `gofmt -l`, `zig fmt --check`: all that is said is which files.
    rule(
        "check.paths",
        LINT,
        r"^(?:\.{0,2}/)?(?:[\w@.+-]+/)*[\w@.+-]*\w\.[a-z]\w{0,9}$",
        FAILED,
    ),
    rule(
        "check.issue",
        CHECK,
        r"^>> Issue:|(?i)^\W*severity: (?:low|medium|high|error|warning|critical)",
        FAILED,
    ),
    rule(
        "check.words",
        TEST | CHECK,
        r"(?i)\b(?:fail(?:ed|ure|ures|s|ing)?|mismatch(?:es|ed)?|assert\w*|violations?|regressions?|differ(?:s|ent|ence|ences)?|does not match|do not match|not equal|unexpected|not ok|expected .*(?:got|but|found|actual|received|was)|wrong|incorrect|broken|invalid|unexpectedly|too many|exceed(?:s|ed)?|panicked|exception|traceback)\b|\xE2\x9C\x97|\xE2\x9C\x98|\xE2\x9C\x96|\xE2\x9D\x8C|^not ok|^[-+]{3} ",
        FAILED,
    ),
    rule(
        "check.errors",
        TEST | CHECK,
        r"(?i)^\W*\[errors?\]:? \S|(?:^|[^0-9 ] |[^0]\s)\berrors?\b(?:[^:]|:\s*[^0\s]|$)",
        FAILED,
    ),
    rule(
        "check.warnings",
        CHECK,
        r"(?i)\b[1-9]\d* (?:warnings?|issues?|problems?|findings?|hints?)\b|^\W*warning\b",
        FAILED,
    ),
];
