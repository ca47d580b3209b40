//! What goes where: stdout is the answer, stderr is everything else; colour, pipes, control characters, secrets.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::env::TestEnv;
use crate::morning::manual_fix::failed_run;

const ESCAPE: char = '\u{1b}';

// Contract: piped tables have no colour; --color always does; NO_COLOR and --json never.
#[test]
fn colour_is_for_terminals_and_on_request() {
    let mut env = failed_run();
    for args in [
        &["checkpoint", "list"][..],
        &["status"],
        &["attempt", "list"],
        &["checkpoint", "prune", "--dry-run"],
    ] {
        assert!(
            !env.recover(args).expect(0).stdout.contains(ESCAPE),
            "{args:?}"
        );
    }
    let list = ["checkpoint", "list", "--color", "always"];
    let colored = env.recover(&list).expect(0).stdout;
    // The terminal's own 16, which its user chose, and no palette.
    assert!(
        colored.contains("\u{1b}[31m") && !colored.contains("38;5"),
        "{colored:?}"
    );
    assert!(
        !env.recover(&[&list[..], &["--json"]].concat())
            .expect(0)
            .stdout
            .contains(ESCAPE)
    );
    env.set("NO_COLOR", "1");
    assert!(
        !env.recover(&["checkpoint", "list"])
            .expect(0)
            .stdout
            .contains(ESCAPE)
    );
    assert!(
        !env.recover(&["checkpoint", "list", "--color", "never"])
            .expect(0)
            .stdout
            .contains(ESCAPE)
    );
}

// Contract: a closed pipe ends quietly.
#[test]
fn a_closed_pipe_ends_quietly() {
    let env = failed_run();
    for _ in 0..40 {
        env.json(0, &["checkpoint", "create"]);
    }
    for args in [
        &["log"][..],
        &["log", "--json"],
        &["completions", "bash"],
        &["checkpoint", "list", "--json"],
        &["--help"],
    ] {
        let mut child = env
            .recover_command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut first = String::new();
        BufReader::with_capacity(1, child.stdout.take().unwrap())
            .read_line(&mut first)
            .unwrap();
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        let status = child.wait().unwrap();
        assert!(
            status.success() && said.is_empty() && !first.is_empty(),
            "{args:?}: {status}: {said}"
        );
    }
}

// Contract: control characters in messages and paths are escaped, a path is one line.
#[test]
fn control_characters_cannot_steer_the_terminal() {
    let env = TestEnv::repo();
    env.json(
        0,
        &["checkpoint", "create", "-m", "red \u{1b}[31m\u{202e}back"],
    );
    env.write("evil\n\u{1b}]0;x\u{7}.txt", "x");
    for args in [
        &["checkpoint", "list"][..],
        &["checkpoint", "show", "latest"],
        &["checkpoint", "diff", "latest"],
        &["checkpoint", "show", "a\u{1b}[2Jb"],
        &["attempt", "fail", "--message", "boom \u{1b}[2J"],
        &["status"],
        &["retry-status"],
        &["log"],
        &["rollback", "--to", "latest~1", "--dry-run"],
    ] {
        let ran = env.recover(args);
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            !text.contains(ESCAPE) && !text.contains('\u{7}') && !text.contains('\u{202e}'),
            "{args:?}: {text:?}"
        );
    }
    let diff = env.recover(&["checkpoint", "diff", "@1"]).expect(0).stdout;
    assert!(diff.lines().any(|line| line.contains("evil\\n")), "{diff}");
    // JSON has them as they are.
    let changes = env.json(0, &["checkpoint", "diff", "@1"]);
    assert!(
        changes["changes"][0]["path"]
            .as_str()
            .unwrap()
            .starts_with("evil\n")
    );
}

// Contract: tracing goes to stderr, -q leaves errors only.
#[test]
fn details_go_to_stderr() {
    let mut env = failed_run();
    let loud = env
        .recover(&["-vv", "--json", "checkpoint", "create"])
        .expect(0);
    loud.json();
    env.set("RECOVER_LOG", "debug");
    env.recover(&["--json", "doctor", "--repair"])
        .expect(0)
        .json();
    env.set("RECOVER_LOG", "");
    let quiet = env.recover(&[
        "-q",
        "--json",
        "resume",
        "--strategy",
        "retry_same",
        "--wait",
    ]);
    quiet.json();
    assert!(quiet.stderr.is_empty(), "{}", quiet.stderr);
    assert!(
        env.recover(&["-q", "status", "--run", "nope"])
            .expect(4)
            .stderr
            .starts_with("error: ")
    );
    env.recover(&["-q", "-v", "status"]).expect(2);
}

// Policy: secrets stay out of prompts, details, evidence and views.
#[test]
fn secrets_are_redacted() {
    let env = TestEnv::repo();
    let secret = "hunter2hunter2";
    let script = format!(
        "cat > prompt-$RECOVER_ATTEMPT.txt; echo 'fatal: unable to access https://me:{secret}@example.com/x.git' >&2; \
         echo 'OPENAI_API_KEY={secret}' >&2; exit 1"
    );
    env.script("agent.sh", &script);
    let run = [
        "run",
        "--run",
        "r",
        "--attempts",
        "2",
        "--prompt",
        "P",
        "--no-wait",
        "--",
        "./agent.sh",
    ];
    let ran = env.recover(&[&["--json"], &run[..]].concat());
    assert!(!ran.stdout.contains(secret), "{}", ran.stdout);
    let resumed = env.recover(&[
        "--json",
        "resume",
        "--strategy",
        "retry_with_context",
        "--wait",
    ]);
    assert!(!resumed.stdout.contains(secret), "{}", resumed.stdout);
    let prompt = env.read("prompt-2.txt");
    assert!(
        prompt.contains("## Previous Attempt Failed") && prompt.contains("[redacted]"),
        "{prompt}"
    );
    assert!(!prompt.contains(secret));
    for args in [
        &["status"][..],
        &["status", "--json"],
        &["log", "--json"],
        &["attempt", "list"],
        &["retry-status"],
    ] {
        assert!(!env.recover(args).stdout.contains(secret), "{args:?}");
    }
    for view in [
        "recovery.json",
        "attempt_history.json",
        "recover/battles/-/r.json",
        "events.jsonl",
    ] {
        assert!(
            !env.read(&format!(".ultraplan/state/{view}"))
                .contains(secret),
            "{view}"
        );
    }
}

// Contract: paths that are not UTF-8 never end in a panic.
#[test]
fn folders_that_are_not_utf_8_are_taken() {
    use std::os::unix::ffi::OsStrExt;
    let env = TestEnv::repo();
    let odd = env.work().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    std::fs::create_dir(&odd).unwrap();
    env.command("git")
        .args(["init", "-q"])
        .current_dir(&odd)
        .status()
        .unwrap();
    for args in [
        &["init"][..],
        &["config"],
        &["checkpoint", "create"],
        &["status"],
        &["doctor"],
        &["run", "--run", "x", "--", "true"],
        &["resume", "--run", "x"],
    ] {
        let output = env
            .recover_command(&[&["--json"], args].concat())
            .current_dir(&odd)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {text}");
    }
}

// Contract: what a shell's startup file needs, anywhere; the program itself registers and completes.
#[test]
fn completions_need_no_repository() {
    let env = TestEnv::plain();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = env.recover(&["completions", shell]).expect(0).stdout;
        assert!(
            script.contains("COMPLETE") && script.contains(shell),
            "{script}"
        );
        let asked = env
            .recover_command(&[])
            .env("COMPLETE", shell)
            .output()
            .unwrap();
        assert!(
            asked.status.success() && !asked.stdout.is_empty(),
            "{shell}"
        );
    }
    assert_eq!(
        env.recover_command(&[])
            .env("COMPLETE", "tcsh")
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
    env.json(2, &["completions", "tcsh"]);
    assert!(env.json(0, &["completions", "bash"])["script"].is_string());
}

// Contract: `log` tells the newest events, of one run where it is named.
#[test]
fn log_is_limited_to_the_newest() {
    let env = TestEnv::repo();
    env.json(0, &["run", "--run", "a", "--", "true"]);
    env.json(0, &["run", "--run", "b", "--", "true"]);
    let all = env.json(0, &["log"]);
    let events = all["events"].as_array().unwrap();
    let numbers: Vec<u64> = events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(
        events
            .iter()
            .all(|event| event["type"].is_string() && event["at"].is_string())
    );
    let two = env.json(0, &["log", "--limit", "2"]);
    assert_eq!(
        two["events"].as_array().unwrap()[..],
        events[events.len() - 2..]
    );
    let of_a = env.json(0, &["log", "--run", "a"]);
    assert!(
        of_a["events"]
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event["run_id"] == "a")
    );
    assert_eq!(
        env.json(4, &["log", "--run", "nope"])["error"]["code"],
        "run_not_found"
    );
    assert_eq!(
        env.recover(&["log"]).expect(0).stdout.lines().count(),
        events.len()
    );
}

// Scriptable : an answer that is lost is no success.
#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let env = TestEnv::repo();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let mut command = env.recover_command(&["checkpoint", "create", "--json"]);
    assert_eq!(
        command
            .stdout(full)
            .status()
            .expect("recover starts")
            .code(),
        Some(1)
    );
}

/// A word of another program that is like one of ours is not in colour.
#[test]
fn the_log_colours_only_what_is_its_own() {
    let env = TestEnv::repo();
    env.recover(&["step", "passed", "--", "true"]).expect(0);
    let said = env.recover(&["log", "--color", "always"]).expect(0).stdout;
    assert!(said.contains("passed"), "{said}");
    assert!(!said.contains("\u{1b}[32mpassed"), "{said}");
}
