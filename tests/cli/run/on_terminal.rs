//! A run on a terminal: the line at the bottom, results as they come, keys, and the terminal as it was afterwards.

use crate::env::TestEnv;
use crate::run::supervision::{kill, until};
use crate::terminal::Terminal;

/// A check that passes from the second attempt on, and a wait of a minute between the two.
fn fails_once() -> TestEnv {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checks]\nbaseline = false\nflaky = false\n[cooldown]\nduration = \"60s\"\n",
    );
    env.script(
        "agent.sh",
        "echo working on $RECOVER_ATTEMPT; test $RECOVER_ATTEMPT = 1 || echo good > state",
    );
    env.script("check.sh", "sleep 0.3; test -e state");
    env
}

const RUN: [&str; 8] = [
    "run",
    "--timeout",
    "1m",
    "--feedback",
    "test=./check.sh",
    "--attempts",
    "3",
    "--",
];

fn started(env: &TestEnv) -> Option<Terminal> {
    let mut args = RUN.to_vec();
    args.push("./agent.sh");
    Terminal::of(env, &args)
}

// The contract's live display: iteration, attempt, deadline, loops as they come, a wait with a countdown that `r` cuts
// short; nothing of it is an escape code where nobody wants any.
#[test]
fn a_run_is_shown_as_it_goes_on() {
    let env = fails_once();
    let Some(mut terminal) = started(&env) else {
        return;
    };
    terminal.expect("Iteration 1 of 1, attempt 1 of 3");
    terminal.expect("working on 1");
    terminal.expect("iteration 1/1 attempt 1/3 | test 0:00");
    terminal.expect("FAILED test: exit 1");
    terminal.expect("FAILED: iteration 1, attempt 1: test: ");
    terminal.expect("waiting, next in ");
    terminal.expect("r now, s stop");
    assert_eq!(
        env.json(6, &["retry-status", "--check"])["can_retry"],
        false
    );
    terminal.press("r");
    terminal.expect("Iteration 1 of 1, attempt 2 of 3");
    terminal.expect("test ok");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("passed test: ") && said.contains("complete;"),
        "{said}"
    );
    let attempts = &env.json(0, &["status"])["iterations"][0]["attempts"];
    assert_eq!(attempts.as_array().map(Vec::len), Some(2), "{attempts}");
    for line in said.split(['\n', '\r']).filter(|line| line.contains(" | ")) {
        assert!(line.chars().count() < 80, "{line}");
    }
}

// `r` cuts a wait short and nothing else: the budget holds.
#[test]
fn a_retry_that_is_asked_for_is_charged_as_any() {
    let env = fails_once();
    let Some(mut terminal) = Terminal::of(
        &env,
        &[
            "run",
            "--feedback",
            "test=exit 1",
            "--attempts",
            "2",
            "--",
            "true",
        ],
    ) else {
        return;
    };
    terminal.press("r");
    terminal.expect("waiting, next in ");
    terminal.press("rr");
    let (code, said) = terminal.end();
    assert_eq!(
        (code, said.matches("Iteration 1 of 1, attempt").count()),
        (8, 2),
        "{said}"
    );
}

// `s` stops after the attempt under way: paused, exit 6, and resume goes on with it. Pressed again it goes on.
#[test]
fn a_run_stops_after_this_attempt() {
    let env = TestEnv::repo();
    let Some(mut terminal) = Terminal::of(
        &env,
        &[
            "run",
            "--iterations",
            "3",
            "--",
            "sh",
            "-c",
            "echo begun; until test -e go; do sleep 0.1; done",
        ],
    ) else {
        return;
    };
    terminal.expect("begun");
    terminal.press("s");
    terminal.expect("stops after this attempt (s: go on)");
    terminal.press("s");
    terminal.expect_after(
        terminal.said().rfind("go on").unwrap(),
        "| s stop after this attempt",
    );
    terminal.press("S");
    let before = terminal.said().len();
    terminal.expect_after(before.saturating_sub(200), "stops after");
    env.write("go", "");
    let (code, said) = terminal.end();
    assert_eq!(code, 6, "{said}");
    let status = env.json(0, &["status"]);
    assert_eq!(
        (
            &status["run"]["status"],
            &status["run"]["current_iteration"]
        ),
        (&"paused".into(), &2.into()),
        "{status}"
    );
    assert_eq!(env.json(0, &["resume"])["outcome"], "complete");
}

// `s` during a wait stops at once; the failure and its wait stay.
#[test]
fn a_run_stops_while_it_waits() {
    let env = fails_once();
    let Some(mut terminal) = started(&env) else {
        return;
    };
    terminal.expect("waiting, next in ");
    terminal.press("s");
    let (code, said) = terminal.end();
    assert_eq!(code, 6, "{said}");
    assert_eq!(env.json(0, &["status"])["run"]["status"], "paused");
    env.json(6, &["resume"]);
}

// Every way out leaves the terminal as it was (`end` looks): Ctrl-C and SIGTERM while the command runs, and in a wait.
#[test]
fn an_interruption_leaves_the_terminal_as_it_was() {
    for waits in [false, true] {
        let env = fails_once();
        if !waits {
            env.script("agent.sh", "echo working on it; sleep 60");
        }
        let Some(mut terminal) = started(&env) else {
            return;
        };
        terminal.expect(if waits {
            "waiting, next in "
        } else {
            "running 0:0"
        });
        terminal.press("\u{3}");
        let (code, said) = terminal.end();
        assert_eq!(code, 130, "{said}");
        let status = env.json(0, &["status"])["run"]["status"].clone();
        assert_eq!(status, if waits { "paused" } else { "cancelled" });

        let env = fails_once();
        env.script("agent.sh", "echo $PPID > pid; echo working on it; sleep 60");
        let Some(terminal) = started(&env) else {
            return;
        };
        terminal.expect("running 0:0");
        kill("-TERM", env.await_line("pid").parse().unwrap());
        assert_eq!(terminal.end().0, 143);
    }
}

// Ctrl-Z: the shell gets its terminal back as it was, the command stands still, and `fg` goes on with all of it.
#[test]
fn a_suspended_run_goes_on() {
    let env = TestEnv::repo();
    env.script(
        "agent.sh",
        "while ! test -e go; do date +%s%N > beat; sleep 0.05; done",
    );
    let recover = env!("CARGO_BIN_EXE_recover");
    let line = format!(
        "{recover} run -- ./agent.sh; stty -a > ../modes; cp beat ../first; sleep 1; cp beat ../second; touch go; fg"
    );
    let words = ["sh", "-m", "-c", &line];
    let Some(mut terminal) = Terminal::running(&env, &words, (80, 24), &[("NO_COLOR", "1")]) else {
        return;
    };
    terminal.expect("running 0:0");
    until("a beat", || env.exists("beat"));
    terminal.press("\u{1a}");
    until("the shell's turn", || env.exists("../second"));
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    let modes = env.read("../modes");
    assert!(
        modes.contains(" icanon") && modes.contains(" echo "),
        "{modes}"
    );
    assert_eq!(
        env.read("../first"),
        env.read("../second"),
        "the command stood still"
    );
    assert!(said.contains("complete;"), "{said}");
}

// What a command prints without a line's end is not torn apart where the terminal can go back, and not covered where it
// cannot.
#[test]
fn an_unfinished_line_stays_whole() {
    let env = TestEnv::repo();
    let line = "printf half; sleep 1; echo ' a line'";
    let Some(terminal) = Terminal::of(&env, &["run", "--", "sh", "-c", line]) else {
        return;
    };
    let (code, said) = terminal.end();
    assert!(code == 0 && said.contains("half a line\n"), "{said:?}");

    let moving = [("TERM", "xterm")];
    let Some(terminal) = Terminal::with(&env, &["run", "--", "sh", "-c", line], (80, 24), &moving)
    else {
        return;
    };
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said:?}");
    assert!(
        said.contains("half\r\niteration 1/1") && said.contains("\u{1b}[A\u{1b}[5G a line\n"),
        "{said:?}"
    );
}

// -q, TERM=dumb and a narrow terminal.
#[test]
fn a_display_is_as_much_as_the_terminal_shows() {
    let env = TestEnv::repo();
    let run = ["run", "--", "sh", "-c", "echo begun; sleep 0.6"];
    let quiet: Vec<&str> = ["-q"].into_iter().chain(run).collect();
    let Some(terminal) = Terminal::of(&env, &quiet) else {
        return;
    };
    let (code, said) = terminal.end();
    assert!(code == 0 && !said.contains(" | "), "{said}");

    let Some(terminal) = Terminal::with(&env, &run, (80, 24), &[("TERM", "dumb")]) else {
        return;
    };
    let (code, said) = terminal.end();
    assert!(
        code == 0 && said.contains("Iteration 1 of 1") && !said.contains(" | "),
        "{said}"
    );

    let Some(terminal) = Terminal::with(&env, &run, (30, 10), &[("NO_COLOR", "1")]) else {
        return;
    };
    let (code, said) = terminal.end();
    assert!(
        code == 0 && said.contains("1/1 #1/3 | running 0:00"),
        "{said}"
    );
    for line in said.split(['\n', '\r']).filter(|line| line.contains(" | ")) {
        assert!(line.chars().count() < 30, "{line}");
    }
}

// Without a terminal the story is told in lines, nothing is drawn, and keys are not read.
#[test]
fn without_a_terminal_there_is_no_display() {
    let env = TestEnv::repo();
    let ran = env
        .recover(&["run", "--", "sh", "-c", "echo out; echo err >&2"])
        .expect(0);
    let others: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| !line.starts_with(['[', 'n']))
        .collect();
    assert_eq!(others, ["err"], "{}", ran.stderr);
    assert!(ran.stdout.starts_with("out\n"), "{}", ran.stdout);
}

// Where stdout goes to another program, that may use the terminal too: no keys are taken, and no line is drawn.
#[test]
fn a_pipe_to_a_pager_leaves_it_the_terminal() {
    let env = TestEnv::repo();
    let line = format!(
        "{} run -- sh -c 'echo begun; stty -a </dev/tty >modes; sleep 0.6' | cat",
        env!("CARGO_BIN_EXE_recover")
    );
    let Some(terminal) =
        Terminal::running(&env, &["sh", "-c", &line], (80, 24), &[("NO_COLOR", "1")])
    else {
        return;
    };
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("Iteration 1 of 1") && said.contains("begun") && !said.contains(" | "),
        "{said}"
    );
    let modes = env.read("modes");
    assert!(
        modes.contains(" icanon") && modes.contains(" echo "),
        "{modes}"
    );
}

// In the background the terminal is the shell's: nothing is drawn over its prompt.
#[test]
fn a_run_in_the_background_draws_no_line() {
    let env = TestEnv::repo();
    let line = format!(
        "{} run -- sh -c 'echo begun; while ! test -e go; do sleep 0.05; done' & sleep 1; touch go; wait $!",
        env!("CARGO_BIN_EXE_recover")
    );
    let words = ["sh", "-m", "-c", &line];
    let Some(terminal) = Terminal::running(&env, &words, (80, 24), &[("NO_COLOR", "1")]) else {
        return;
    };
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("Iteration 1 of 1") && said.contains("complete;") && !said.contains(" | "),
        "{said}"
    );
}

// Ctrl-D is no key: those that are offered go on working.
#[test]
fn ctrl_d_does_not_end_the_keys() {
    let env = fails_once();
    let Some(mut terminal) = started(&env) else {
        return;
    };
    terminal.expect("r now, s stop");
    terminal.press("\u{4}");
    terminal.press("r");
    terminal.expect("Iteration 1 of 1, attempt 2 of 3");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
}

// The contract: a command with --passthrough has the terminal to itself; that it is tried again, and when, is still told.
#[test]
fn passthrough_says_why_it_waits_and_nothing_else() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\nduration = \"300ms\"\n",
    );
    let args = [
        "run",
        "--passthrough",
        "--attempts",
        "2",
        "--",
        "sh",
        "-c",
        "echo this; test -e again || { touch again; exit 3; }",
    ];
    let Some(terminal) = Terminal::of(&env, &args) else {
        return;
    };
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    let told: Vec<&str> = said.lines().map(str::trim_end).collect();
    assert_eq!(told.first(), Some(&"this"), "{said}");
    assert!(
        said.contains("FAILED: iteration 1, attempt 1: ") && said.contains("Waiting until "),
        "{said}"
    );
    assert!(
        said.contains("Iteration 1 of 1, attempt 2 of 2\nthis\n") && !said.contains("Passed"),
        "{said}"
    );
}

// A terminal that nobody named gets no escape codes.
#[test]
fn a_terminal_without_a_name_gets_plain_lines() {
    for term in ["", "dumb"] {
        let env = TestEnv::repo();
        let args = [
            "run",
            "--feedback",
            "test=true",
            "--",
            "sh",
            "-c",
            "printf half; sleep 1; echo ' a line'",
        ];
        let Some(terminal) = Terminal::with(&env, &args, (80, 24), &[("TERM", term)]) else {
            return;
        };
        let (code, said) = terminal.end();
        assert_eq!(code, 0, "{said}");
        assert!(
            said.contains("passed test") && !said.contains(['\u{1b}', '\r']),
            "{term:?}: {said:?}"
        );
    }
}
