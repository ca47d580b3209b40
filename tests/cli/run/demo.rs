//! `recover demo`: a playground with a night in it.

use std::path::Path;

use crate::env::{Ran, TestEnv};
use crate::terminal::Terminal;

/// A shell line on a machine on which nobody told git who they are.
fn sh(env: &TestEnv, line: &str) -> Ran {
    let mut command = env.command("sh");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env_remove(format!("GIT_{who}_NAME"))
            .env_remove(format!("GIT_{who}_EMAIL"));
    }
    Ran::of(&command.args(["-c", line]).output().expect("sh starts"))
}

/// `recover` in such a line.
const RECOVER: &str = env!("CARGO_BIN_EXE_recover");

#[test]
fn a_night_with_four_failures_is_left_to_play_with() {
    let env = TestEnv::plain();
    let demo = sh(&env, &format!("'{RECOVER}' --json demo play"))
        .expect(0)
        .json();
    let folder = env.work().join("play");
    assert_eq!(
        (&demo["path"], &demo["changed"]),
        (&folder.to_str().into(), &true.into())
    );
    let commands: Vec<&str> = demo["commands"]
        .as_array()
        .expect("commands")
        .iter()
        .filter_map(|step| step["command"].as_str())
        .collect();
    let within = |words: &str| format!("recover -C {} {words}", folder.display());
    let expected = [
        "status",
        "browse",
        "report -o report.html",
        "rollback --iteration 3",
        "undo",
        "accept --yes",
    ];
    assert_eq!(commands, expected.map(within));
    let report = env.json(0, &["-C", "play", "report"])["report"].take();
    let failures: Vec<(u64, &str)> = report["attempts"]
        .as_array()
        .expect("attempts")
        .iter()
        .filter_map(|one| {
            Some((
                one["iteration"].as_u64()?,
                one["failure"]["cause"].as_str()?,
            ))
        })
        .collect();
    let expected = [
        (2, "VERIFICATION_FAILED"),
        (3, "CRASHED"),
        (4, "TOOL_TIMEOUT"),
        (5, "VERIFICATION_FAILED"),
        (5, "VERIFICATION_FAILED"),
    ];
    assert_eq!(failures, expected);
    assert_eq!(report["summary"]["iterations"]["completed"], 5);
    assert!(
        report["summary"]["cost_usd"]
            .as_f64()
            .is_some_and(|cost| cost > 0.3)
    );
    // What is printed works as it stands, whatever this user's git knows.
    for command in commands
        .iter()
        .filter(|command| !command.ends_with("browse"))
    {
        let ran = sh(&env, &command.replacen("recover", RECOVER, 1));
        assert_eq!(ran.code, 0, "{command}\n{}{}", ran.stdout, ran.stderr);
    }
    assert!(env.exists("play/report.html"));
    let text = env.read("play/text.sh");
    assert!(
        text.contains("trim()") && !text.contains("title()"),
        "{text}"
    );
    assert_eq!(
        env.sh("cd play && ./test.sh && git status --porcelain")
            .expect(0)
            .stdout,
        "0 failed, 5 passed\n"
    );
}

/// A signal ends it with all that it started.
#[test]
fn a_signal_is_passed_on() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let env = TestEnv::plain();
        let mut demo = env.recover_command(&["demo", "play"]);
        demo.stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let mut demo = demo.spawn().expect("recover starts");
        let began = std::time::Instant::now();
        while env
            .sh("grep -q attempt_started play/.ultraplan/state/events.jsonl")
            .code
            != 0
        {
            assert!(began.elapsed().as_secs() < 60, "it begins");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        env.sh(&format!("kill -{signal} {}", demo.id())).expect(0);
        assert_eq!(demo.wait().expect("it ends").code(), Some(code));
        let status = env.json(0, &["-C", "play", "status"]);
        assert_eq!(status["run"]["status"], "cancelled", "{status}");
    }
}

#[test]
fn a_folder_with_something_in_it_is_refused() {
    let env = TestEnv::plain();
    env.write("play/mine.txt", "mine\n");
    let error = env.error(13, &["demo", "play"]);
    assert!(
        error["hint"]
            .as_str()
            .is_some_and(|hint| hint.ends_with(" demo")),
        "{error}"
    );
    assert!(!env.exists("play/.git"));
    let planned = env.json(0, &["--dry-run", "demo", "other"]);
    assert_eq!(planned["changed"], false);
    assert!(!env.exists("other"));
}

// On a terminal each step is shown, and run on Enter.
#[test]
fn a_walk_through_the_morning() {
    let mut env = TestEnv::plain();
    let tmp = env.root().join("tmp");
    std::fs::create_dir(&tmp).expect("a folder");
    env.set("TMPDIR", tmp.to_str().expect("UTF-8"));
    let Some(mut terminal) = Terminal::with(&env, &["demo"], (100, 40), &[]) else {
        return;
    };
    terminal.expect(&format!("{}/recover-demo-", tmp.display()));
    terminal.expect("iteration 6, attempt 1");
    terminal.expect("What became of the night:");
    let from = terminal.said().len();
    terminal.press("\r");
    terminal.expect_after(from, "Iterations, diffs, logs and evidence");
    // Without browse and the page, back and forth.
    terminal.press("s");
    terminal.expect_after(from, "page for a browser");
    terminal.press("s");
    terminal.expect_after(from, "where iteration 3 began");
    terminal.press("q");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("recover -C "), "the rest is printed: {said}");
    let made = std::fs::read_dir(&tmp)
        .expect("a folder")
        .next()
        .expect("a playground")
        .expect("its name");
    assert!(Path::new(&made.path()).join("text.sh").is_file());
}
