//! Checks, and the machine that they run on.

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

const MACHINE: &[Case] = &[
    (
        'b',
        1,
        "write /x/out.o: no space left on device",
        "s DISK_FULL",
    ),
    (
        'b',
        1,
        "tar: x/y: Cannot write: No space left on device\ntar: Exiting with failure status",
        "s DISK_FULL",
    ),
    (
        'b',
        1,
        "npm error code ENOSPC\nnpm error nospc ENOSPC: no space left on device, write",
        "s DISK_FULL",
    ),
    (
        'b',
        1,
        "Error: ENOSPC: System limit for number of file watchers reached, watch '/x/src'",
        "s UNKNOWN",
    ),
    (
        't',
        1,
        "E       OSError: [Errno 28] No space left on device\n=========== short test summary info ====\nFAILED a.py::test_w - OSError: [Errno 28] No space left\n1 failed in 0.1s",
        "s DISK_FULL",
    ),
    (
        'b',
        1,
        "cp: error writing 'a': Disk quota exceeded",
        "s DISK_FULL",
    ),
    (
        'b',
        1,
        "cp: cannot create regular file '/opt/a': Permission denied",
        "s PERMISSION_DENIED",
    ),
    (
        'b',
        1,
        "npm error code EACCES\nnpm error syscall mkdir\nnpm error path /usr/lib/node_modules",
        "s PERMISSION_DENIED",
    ),
    (
        'b',
        1,
        "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/usr/lib/x'",
        "s PERMISSION_DENIED",
    ),
    (
        'a',
        1,
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nPermissionError: [Errno 13] Permission denied: '/x/y'",
        "s PERMISSION_DENIED",
    ),
    (
        'b',
        1,
        "mkdir: das Verzeichnis »/opt/x« kann nicht angelegt werden: Keine Berechtigung",
        "s PERMISSION_DENIED",
    ),
    (
        'b',
        1,
        "touch: cannot touch 'x': Read-only file system",
        "s PERMISSION_DENIED",
    ),
    (
        'b',
        1,
        "java.nio.file.AccessDeniedException: /x/build/libs",
        "s PERMISSION_DENIED",
    ),
    (
        'b',
        128,
        "error: insufficient permission for adding an object to repository database .git/objects",
        "s PERMISSION_DENIED",
    ),
    ('b', 127, "sh: 1: cmake: not found", "s RESOURCE_NOT_FOUND"),
    (
        't',
        127,
        "bash: Zeile 1: pytest: Kommando nicht gefunden.",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        't',
        1,
        "/usr/bin/python3: No module named pytest",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        't',
        126,
        "./run.sh: /bin/foosh: bad interpreter: No such file or directory",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        2,
        "make: gcc: No such file or directory\nmake: *** [Makefile:2: a] Error 127",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        101,
        "error: linker `cc` not found\n  |\n  = note: No such file or directory (os error 2)",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        't',
        1,
        "./app: error while loading shared libraries: libfoo.so.1: cannot open shared object file: No such file or directory",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        1,
        "go: exec: \"gcc\": executable file not found in $PATH",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        1,
        "git: 'lfs' is not a git command. See 'git --help'.",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        'b',
        1,
        "fatal: unable to access 'https://x/y.git/': Could not resolve host: x",
        "s NETWORK_ERROR+",
    ),
    (
        'b',
        1,
        "go: example.com/x@v1.0.0: Get \"https://proxy/x\": dial tcp: lookup proxy on 1.1.1.1:53: no such host",
        "s NETWORK_ERROR+",
    ),
    (
        'b',
        1,
        "[ERROR] Failed to execute goal: Could not transfer artifact a:b:jar:1 from central: Connect to repo:443 failed: Connection timed out",
        "s NETWORK_ERROR+",
    ),
    (
        'b',
        100,
        "W: Failed to fetch http://d/InRelease  Temporary failure resolving 'd'\nE: Unable to locate package jq",
        "s NETWORK_ERROR+",
    ),
    (
        'b',
        1,
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError': /simple/x/\nERROR: Could not find a version that satisfies the requirement x (from versions: none)\nERROR: No matching distribution found for x",
        "s NETWORK_ERROR+",
    ),
    (
        'b',
        4,
        "wget: unable to resolve host address 'x'",
        "s NETWORK_ERROR+",
    ),
    (
        'b',
        28,
        "curl: (28) Operation timed out after 5000 milliseconds with 0 bytes received",
        "s NETWORK_ERROR+",
    ),
    (
        'b',
        255,
        "ssh: connect to host git.example.com port 22: Connection refused\nfatal: Could not read from remote repository.",
        "s NETWORK_ERROR+",
    ),
    ('b', 1, "accept: too many open files", "s UNKNOWN"),
    (
        'b',
        1,
        "bash: fork: retry: Resource temporarily unavailable\nbash: fork: Resource temporarily unavailable",
        "s UNKNOWN+",
    ),
    (
        'b',
        100,
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 12 (apt)",
        "s UNKNOWN+",
    ),
    ('b', 1, "Error: database is locked", "s UNKNOWN+"),
    (
        'b',
        1,
        "sh: 1: cannot create out/x: Permission denied\nerror: could not compile `a`",
        "s PERMISSION_DENIED",
    ),
];

const DEATHS: &[Case] = &[
    (
        'b',
        1,
        "java.lang.OutOfMemoryError: Java heap space\n\tat A.main(A.java:3)",
        "c OUT_OF_MEMORY",
    ),
    (
        't',
        1,
        "fatal error: runtime: out of memory\n\nruntime stack:",
        "c OUT_OF_MEMORY",
    ),
    (
        'b',
        255,
        "PHP Fatal error:  Allowed memory size of 134217728 bytes exhausted (tried to allocate 20480 bytes)",
        "c OUT_OF_MEMORY",
    ),
    (
        'b',
        137,
        "[12.3] Out of memory: Killed process 99 (ld) total-vm:1kB",
        "c OUT_OF_MEMORY",
    ),
    (
        'b',
        134,
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "c OUT_OF_MEMORY",
    ),
    (
        't',
        101,
        "memory allocation of 8589934592 bytes failed\n(signal: 6, SIGABRT: process abort signal)",
        "c OUT_OF_MEMORY",
    ),
    ('t', 137, "", "c CRASHED+"),
    ('t', 139, "running", "c CRASHED"),
    (
        'b',
        1,
        "# github.com/x/y\n/usr/lib/go/pkg/tool/compile: signal: killed",
        "c CRASHED+",
    ),
    (
        't',
        1,
        "A jest worker process (pid=12) was terminated by another process: signal=SIGSEGV, exitCode=null.\nTests: 1 failed, 1 total",
        "c CRASHED",
    ),
    (
        't',
        1,
        "# A fatal error has been detected by the Java Runtime Environment:\n#  SIGSEGV (0xb) at pc=0x7f",
        "c CRASHED",
    ),
    (
        't',
        1,
        "[gw0] node down: Not properly terminated\nworker 'gw0' crashed while running 't.py::a'",
        "c CRASHED",
    ),
    (
        't',
        2,
        "bash: line 3: 4711 Segmentation fault      (core dumped) ./t",
        "c CRASHED",
    ),
    (
        'b',
        1,
        "g++: internal compiler error: Segmentation fault signal terminated program cc1plus",
        "c CRASHED",
    ),
    ('t', 130, "running 1 test", "x CANCELLED"),
    ('t', 1, "Received SIGINT, stopping\n2 passed", "x CANCELLED"),
    ('b', 2, "ERROR: Operation cancelled by user", "x CANCELLED"),
    (
        't',
        1,
        "RSpec is shutting down and will print the summary report... Interrupt again to force quit.\n1 example, 0 failures",
        "x CANCELLED",
    ),
    ('b', 130, "> Build cancelled.", "x CANCELLED"),
    ('b', 8, "ERROR: build interrupted", "x CANCELLED"),
    (
        't',
        2,
        "Interrupted: 2 errors during collection\nERROR t.py\n2 errors in 0.1s",
        "f BROKEN_BUILD",
    ),
    (
        'b',
        255,
        "PHP Fatal error:  Maximum execution time of 30 seconds exceeded in /x/a.php on line 3",
        "t TOOL_TIMEOUT+",
    ),
    ('b', 142, "Alarm clock", "t TOOL_TIMEOUT+"),
    ('t', 143, "x", "x CANCELLED"),
];

#[test]
fn the_machine() {
    check(MACHINE);
}

#[test]
fn deaths_limits_and_interrupts() {
    check(DEATHS);
}

/// What a failing test raises, compares or has printed is its subject; a part of a tool is none of the machine.
#[test]
fn tests_play_what_the_machine_does() {
    const FAILED: &str = "f VERIFICATION_FAILED";
    check(&[
        (
            't',
            1,
            "ERROR: test_moon (t.M)\nTraceback (most recent call last):\n  File \"t.py\", line 3, in test_moon\n    \
             raise OSError(30, \"Read-only file system\", \"/moon\")\nOSError: [Errno 30] Read-only file system: '/moon'\n\n\
             Ran 2 tests in 0.1s\n\nFAILED (errors=1)",
            FAILED,
        ),
        (
            't',
            1,
            " FAIL  moon.test.js > rises\nError: heap: JavaScript heap out of memory\n      \
             3| it('rises', () => { throw new Error('heap: JavaScript heap out of memory') })\n Tests  1 failed (1)",
            FAILED,
        ),
        (
            't',
            1,
            "  Difference (- actual, + expected):\n\n  - 'EPERM: operation not permitted'\n  + 'ok'\n\n  1 test failed",
            FAILED,
        ),
        (
            't',
            1,
            "log: Too many open files\nTraceback (most recent call last):\n  File \"t.py\", line 2, in <module>\n    \
             assert moon == 1\nAssertionError: moon is late",
            FAILED,
        ),
        (
            'b',
            1,
            "ERROR: Config value 'x': The \"moon\" extension is not installed",
            "f INVALID_INPUT",
        ),
        (
            'b',
            1,
            "\u{2502} Warning: Unable to open the moon file\n\u{2502}\n\u{2502} The moon file at \"/m\" does not exist.\n\u{2575}\n\n\
             Error: Unclosed configuration block",
            "f BROKEN_BUILD",
        ),
        (
            'c',
            1,
            "No `moon.toml` found, using preset `full`\nERROR Could not find name `moon` [unknown-name]\n --> m.py:1:2",
            FAILED,
        ),
        (
            'b',
            2,
            "make: *** Nessuna regola per generare l'obiettivo \u{ab}luna\u{bb}.  Arresto.",
            "f RESOURCE_NOT_FOUND",
        ),
        (
            'b',
            1,
            "m.xml:7: parser error : Premature end of data in tag moon line 2",
            "f BROKEN_BUILD",
        ),
    ]);
}
