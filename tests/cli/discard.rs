//! `recover discard`: a run is taken back as a whole and closed, and `undo` brings back both.

use serde_json::Value;

use crate::env::TestEnv;
use crate::run::quick;
use crate::seen::seen;
use crate::terminal::Terminal;

/// A night of two iterations that commits, stages, and leaves a new file.
fn night(env: &TestEnv) -> Value {
    let agent = "echo $RECOVER_ITERATION >> a.txt; git commit -qam \"by the agent $RECOVER_ITERATION\"; \
                 echo new > made.txt; git add made.txt";
    let run = [
        "run",
        "--run",
        "night",
        "--iterations",
        "2",
        "--",
        "sh",
        "-c",
        agent,
    ];
    env.json(0, &run)
}

fn status_of(env: &TestEnv, run: &str) -> String {
    let status = env.json(0, &["status", run]);
    status["run"]["status"]
        .as_str()
        .expect("a status")
        .to_owned()
}

/// What a person sees of the work tree: files, index, branch.
fn place(env: &TestEnv) -> (crate::seen::Seen, String, String) {
    (
        seen(env.work()),
        env.git(&["status", "--porcelain", "--branch"]),
        env.git(&["rev-parse", "HEAD"]),
    )
}

#[test]
fn files_index_and_branch_go_back_and_the_run_is_closed() {
    let env = TestEnv::repo();
    env.write("mine.txt", "staged by me\n");
    env.git(&["add", "mine.txt"]);
    env.write("notes.txt", "untracked\n");
    let before = place(&env);
    night(&env);
    let after = place(&env);

    // Nothing happens without a word.
    let error = env.error(13, &["discard"]);
    assert_eq!(error["code"], "confirmation_needed", "{error}");
    assert!(error["hint"].to_string().contains("--yes"), "{error}");
    let plan = env.json(0, &["discard", "--dry-run"]);
    assert_eq!(plan["changed"], false);
    assert_eq!(place(&env), after);
    assert_eq!(status_of(&env, "night"), "complete");

    let done = env.json(0, &["discard", "night", "--yes"]);
    assert_eq!(done["changed"], true);
    assert_eq!(done["run"]["status"], "closed");
    for field in ["written", "deleted", "superseded"] {
        assert_eq!(done["result"][field], plan["plan"][field], "{field}");
    }
    assert_eq!(place(&env), before);
    // Once more there is nothing to do.
    assert_eq!(
        env.json(0, &["discard", "night", "--yes"])["changed"],
        false
    );

    let undone = env.json(0, &["undo"]);
    assert_eq!(undone["result"]["operation"]["command"], "discard");
    assert_eq!(undone["run"]["status"], "complete");
    assert_eq!(place(&env), after);
    let text = env.recover(&["redo"]).expect(0).stdout;
    assert!(text.contains("the discard of run night"), "{text}");
    assert_eq!(place(&env), before);
    assert_eq!(status_of(&env, "night"), "closed");
    // What it did can be looked at still.
    assert!(
        env.recover(&["report", "night"])
            .expect(0)
            .stdout
            .contains("Discarded")
    );
}

#[test]
fn what_failed_is_taken_back_with_its_status() {
    let env = quick();
    let run = ["run", "--run", "n", "--attempts", "1", "--", "sh", "-c"];
    env.json(
        8,
        &[
            &run[..],
            &["echo x > a.txt; echo 'error: it broke' >&2; exit 1"],
        ]
        .concat(),
    );
    env.json(0, &["manual-fix", "start"]);
    let before = status_of(&env, "n");
    env.json(0, &["discard", "--yes"]);
    assert_eq!(
        (env.read("a.txt").as_str(), status_of(&env, "n").as_str()),
        ("one\n", "closed")
    );
    assert_eq!(
        env.json(0, &["manual-fix", "status", "--run", "n"])["session"]["status"],
        "aborted"
    );
    env.json(0, &["undo"]);
    assert_eq!(
        (env.read("a.txt"), status_of(&env, "n")),
        ("x\n".to_owned(), before)
    );
}

// Edits made since are said, and are in the safety checkpoint.
#[test]
fn edits_made_since_are_listed_and_come_back() {
    let env = TestEnv::repo();
    night(&env);
    env.write("a.txt", "my own words\n");
    let refused = env.error(13, &["discard"]);
    let message = refused["message"].to_string();
    assert!(message.contains("the edits made since"), "{message}");
    assert_eq!(refused["paths"][0]["path"], "a.txt", "{refused}");
    let done = env.json(0, &["discard", "--yes"]);
    assert_eq!(done["result"]["edited"][0]["path"], "a.txt", "{done}");
    assert_eq!(env.read("a.txt"), "one\n");
    env.json(0, &["undo"]);
    assert_eq!(env.read("a.txt"), "my own words\n");
    // Or they stay.
    let env = TestEnv::repo();
    night(&env);
    env.write("a.txt", "my own words\n");
    env.json(0, &["discard", "--yes", "--edits", "keep"]);
    assert_eq!(env.read("a.txt"), "my own words\n");
    assert!(!env.exists("made.txt"));
}

// The rules of `rollback --full`: only the run's own commits are taken off a branch, and none that others have.
#[test]
fn what_is_not_the_runs_refuses_it() {
    let env = TestEnv::repo();
    night(&env);
    env.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    let error = env.error(13, &["discard", "--yes"]);
    assert_eq!(error["code"], "head_moved", "{error}");
    assert!(error["hint"].to_string().contains("discard"), "{error}");

    let env = TestEnv::repo();
    env.sh("git init -q --bare ../origin.git && git remote add origin ../origin.git")
        .expect(0);
    night(&env);
    env.git(&["push", "-q", "-u", "origin", "main"]);
    assert_eq!(env.error(13, &["discard", "--yes"])["code"], "head_moved");

    let env = TestEnv::repo();
    env.git(&["checkout", "-q", "-b", "other"]);
    env.write("a.txt", "theirs\n");
    env.git(&["commit", "-qam", "theirs"]);
    env.git(&["checkout", "-q", "main"]);
    night(&env);
    env.git(&["commit", "-q", "--allow-empty", "-m", "made"]);
    env.sh("git rebase other").expect(1);
    let error = env.error(13, &["discard", "--yes"]);
    assert_eq!(error["code"], "operation_in_progress", "{error}");
    assert_eq!(status_of(&env, "night"), "complete");
}

#[test]
fn work_of_later_runs_is_named() {
    let env = TestEnv::repo();
    night(&env);
    env.json(
        0,
        &[
            "run",
            "--run",
            "later",
            "--",
            "sh",
            "-c",
            "echo l > later.txt",
        ],
    );
    let ran = env.recover(&["discard", "night"]).expect(13);
    assert!(
        ran.stderr.contains("1 attempt of run later"),
        "{}",
        ran.stderr
    );
    assert!(env.exists("later.txt"));
    env.json(0, &["discard", "night", "--yes"]);
    assert!(!env.exists("later.txt"));
    env.json(0, &["undo"]);
    assert!(env.exists("later.txt"));
}

#[test]
fn a_run_at_work_is_left_alone() {
    let env = TestEnv::repo();
    let waits = "echo x > a.txt; touch ../begun; while [ ! -e ../stop ]; do sleep 0.02; done";
    let mut run = env
        .recover_command(&["run", "--run", "long", "--", "sh", "-c", waits])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("recover starts");
    while !env.exists("../begun") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let error = env.error(11, &["discard", "--yes"]);
    assert!(error["message"].to_string().contains("long"), "{error}");
    env.write("../stop", "");
    assert!(run.wait().expect("it ends").success());
    assert_eq!(env.read("a.txt"), "x\n");
}

// S13: what a discarded run did is nowhere else, whatever the preset.
#[test]
fn its_checkpoints_stay_for_a_week() {
    let count = |env: &TestEnv| {
        let list = env.json(0, &["checkpoint", "list", "night"]);
        let all = list["checkpoints"].as_array().expect("a list");
        all.iter().filter(|one| one["trigger"] == "attempt").count()
    };
    let night = || {
        let mut env = quick();
        env.write(".ultraplan/recover.toml", "preset = \"state\"\n");
        env.set("RECOVER_TEST_NOW", "2035-01-01T00:00:00.000Z");
        let agent = "echo $RECOVER_ITERATION > a.txt";
        env.json(
            0,
            &[
                "run",
                "--run",
                "night",
                "--iterations",
                "6",
                "--",
                "sh",
                "-c",
                agent,
            ],
        );
        env
    };
    let mut env = night();
    let made = count(&env);
    env.json(0, &["discard", "night", "--yes"]);
    env.set("RECOVER_TEST_NOW", "2035-01-07T00:00:00.000Z");
    env.json(0, &["run", "--run", "next", "--", "true"]);
    assert_eq!(count(&env), made);
    env.set("RECOVER_TEST_NOW", "2035-01-09T00:00:00.000Z");
    env.json(0, &["run", "--run", "last", "--", "true"]);
    assert!(count(&env) < made, "{}", count(&env));
}

#[test]
fn it_asks_once_on_a_terminal() {
    let env = TestEnv::repo();
    night(&env);
    let after = place(&env);
    let Some(mut terminal) = Terminal::of(&env, &["discard"]) else {
        return;
    };
    terminal.expect("Run night is closed");
    terminal.expect("y yes");
    terminal.press("q");
    assert_eq!(terminal.end().0, 130);
    assert_eq!(place(&env), after);
    let Some(mut terminal) = Terminal::of(&env, &["discard"]) else {
        return;
    };
    terminal.expect("y yes");
    terminal.press("y");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert_eq!(status_of(&env, "night"), "closed");
}

/// A script that repeats the command, or calls it after a kill, does not discard what came before.
#[test]
fn the_same_command_again_discards_no_older_run() {
    let env = TestEnv::repo();
    let run = |id: &str, line: &str| env.json(0, &["run", "--run", id, "--", "sh", "-c", line]);
    run("good", "echo precious > precious.txt");
    run("bad", "echo bad > bad.txt");
    env.json(0, &["discard", "--yes"]);
    let again = env.recover(&["discard", "--yes"]).expect(0);
    assert!(
        again.stderr.contains("run bad is discarded already"),
        "{}",
        again.stderr
    );
    assert_eq!(status_of(&env, "good"), "complete");
    assert_eq!(env.read("precious.txt"), "precious\n");
    env.json(0, &["discard", "good", "--yes"]);
    assert!(!env.exists("precious.txt"));
    // Nothing is open, but something was recorded.
    let bare = env.recover(&[]).expect(0).stdout;
    assert!(bare.contains("recover undo"), "{bare}");
}

#[test]
fn what_stays_of_gits_settings_is_listed() {
    let env = TestEnv::repo();
    let agent = "git config alias.x '!true'; printf '#!/bin/sh\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout";
    env.json(0, &["run", "--", "sh", "-c", agent]);
    let ran = env.recover(&["discard", "--yes"]).expect(0);
    assert!(
        ran.stderr.contains("alias.x") && ran.stderr.contains("post-checkout"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_nested_repository_goes_back_where_that_is_asked_for() {
    let env = TestEnv::repo();
    env.sh(
        "git init -q sub && cd sub && echo one > s.txt && git add s.txt && git commit -q -m sub",
    )
    .expect(0);
    env.json(0, &["run", "--", "sh", "-c", "echo two > sub/s.txt"]);
    env.json(0, &["discard", "--nested", "--yes"]);
    assert_eq!(env.read("sub/s.txt"), "one\n");
}
