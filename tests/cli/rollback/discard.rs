//! `recover discard`: a run is taken back as a whole and closed, and `undo` brings back both.

use serde_json::Value;

use crate::env::TestEnv;
use crate::run::attempts::quick;
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
    assert!(error["hint"].to_string().contains("--run night"), "{error}");
    let named = env.error(13, &["discard", "night"]);
    assert!(!named["hint"].to_string().contains("--run"), "{named}");
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
    // The later one says that it went with it, and is not committed unseen.
    let said = "its work is no longer in the files: it went when run night was taken back; ";
    let status = env.recover(&["status", "later"]).expect(0).stdout;
    assert!(
        status.starts_with(&format!("To look at: {said}recover")),
        "{status}"
    );
    let ways = "undo brings back both, recover close --run later leaves it so";
    assert!(status.contains(ways), "{status}");
    let status = env.json(0, &["status", "later"]);
    assert_eq!(
        status["night"]["to_look_at"][0]["kind"], "taken_back",
        "{status:#}"
    );
    assert!(
        !status["night"].to_string().contains("accept"),
        "{status:#}"
    );
    let refused = env.json(13, &["accept", "later", "--yes"]);
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.contains(said), "{refused:#}");
    assert!(
        refused["error"]["hint"]
            .as_str()
            .is_some_and(|hint| hint.ends_with(" undo")),
        "{refused:#}"
    );
    env.json(0, &["undo"]);
    assert!(env.exists("later.txt"));
    let status = env.recover(&["status", "later"]).expect(0).stdout;
    assert!(
        !status.contains(said) && status.contains("Keep:"),
        "{status}"
    );
    // What brings it back in another way does, too.
    env.json(0, &["discard", "night", "--yes"]);
    env.json(0, &["checkpoint", "restore", "good", "--run", "later"]);
    let status = env.recover(&["status", "later"]).expect(0).stdout;
    assert!(
        env.exists("later.txt") && !status.contains(said),
        "{status}"
    );
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
    terminal.expect("Run night would be closed");
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

/// What it began itself is left where it is, and HEAD goes back to where it was.
#[test]
fn a_branch_of_its_own_or_a_detached_head_is_left() {
    let head = |env: &TestEnv| {
        let said = env.sh("git symbolic-ref -q HEAD || git rev-parse HEAD");
        said.stdout.trim().to_owned()
    };
    for (began, agent, kept) in [
        (
            "true",
            "git switch -qc mine; echo 2 > a.txt; git commit -qam mine",
            Some("mine"),
        ),
        (
            "true",
            "git switch -q --detach; echo 2 > a.txt; git commit -qam mine",
            None,
        ),
        (
            "git switch -q --detach",
            "git switch -qc mine; echo 2 > a.txt; git commit -qam mine",
            Some("mine"),
        ),
        (
            "git branch -q side",
            "echo 2 > a.txt; git switch -q side; git commit -qam mine; git branch -D main",
            Some("side"),
        ),
    ] {
        let env = TestEnv::repo();
        env.sh(began).expect(0);
        let (before, was) = (place(&env), head(&env));
        env.json(0, &["run", "--run", "night", "--", "sh", "-c", agent]);
        let (after, at) = (place(&env), head(&env));
        let tip = env.git(&["rev-parse", "HEAD"]);
        let ran = env.recover(&["discard", "--yes"]).expect(0);
        assert!(!ran.stderr.contains("HEAD"), "{}", ran.stderr);
        assert_eq!(
            (place(&env), head(&env)),
            (before.clone(), was.clone()),
            "{agent}"
        );
        if let Some(branch) = kept {
            assert_eq!(env.git(&["rev-parse", branch]), tip, "{agent}");
        }
        env.json(0, &["undo"]);
        assert_eq!((place(&env), head(&env)), (after, at), "{agent}");
        assert!(
            began != "true"
                || agent.contains("-D")
                || env.sh("git rev-parse -q --verify main").code == 0
        );
        env.json(0, &["redo"]);
        assert_eq!((place(&env), head(&env)), (before, was), "{agent}");
        env.git(&["fsck"]);
    }
}

/// Of what went with an earlier run nothing is decided unseen.
#[test]
fn what_went_with_an_earlier_run_is_not_accepted_unseen() {
    let env = TestEnv::repo();
    env.json(
        0,
        &["run", "--run", "one", "--", "sh", "-c", "echo 1 > one.txt"],
    );
    env.json(
        0,
        &["run", "--run", "two", "--", "sh", "-c", "echo 2 > two.txt"],
    );
    env.json(0, &["discard", "one", "--yes"]);
    let refused = env.error(13, &["accept", "two"]);
    let message = refused["message"].as_str().expect("text");
    assert!(
        message.contains("it went when run one was taken back"),
        "{message}"
    );
    env.json(0, &["undo"]);
    env.json(0, &["accept", "one"]);
    env.json(0, &["accept", "two"]);
    assert_eq!(env.git(&["show", "HEAD:two.txt"]), "2\n");
}

/// A branch that a person switched to is not the run's to leave.
#[test]
fn a_branch_that_somebody_else_switched_to_refuses_it() {
    let env = TestEnv::repo();
    night(&env);
    env.git(&["switch", "-qc", "elsewhere"]);
    let error = env.error(13, &["discard", "--yes"]);
    assert_eq!(error["code"], "head_moved");
    // What a person then types is in the answer: both ways work.
    let message = error["message"].as_str().expect("text");
    assert!(
        message.contains("taken on branch main, and branch elsewhere is checked out"),
        "{message}"
    );
    assert!(message.ends_with("--commits keep"), "{message}");
    let hint = error["hint"].as_str().expect("text");
    assert!(hint.ends_with("switch main"), "{hint}");
    env.json(0, &["--yes", "discard", "--commits", "keep"]);
    env.json(0, &["undo"]);
    env.sh(hint).expect(0);
    env.json(0, &["--yes", "discard"]);
}

/// What a rebase left behind, given up by a person, is the run's still.
#[test]
fn a_rebase_that_was_given_up_leaves_the_runs_own_commit() {
    let env = TestEnv::repo();
    env.sh("git switch -qc other; echo theirs > a.txt; git commit -qam theirs; git switch -q main")
        .expect(0);
    let before = place(&env);
    let agent = "echo mine > a.txt; git commit -qam mine; git rebase -q other || true";
    env.json(0, &["run", "--", "sh", "-c", agent]);
    env.git(&["rebase", "--abort"]);
    env.json(0, &["discard", "--yes"]);
    assert_eq!(place(&env), before);
}

/// A run whose first files are not all back stays open, with its checkpoints, and the commands that bring them back are named.
#[test]
fn a_run_stays_open_while_something_is_in_the_way_of_what_was_there() {
    for (agent, path) in [
        ("rm a.txt; mkfifo a.txt; exit 1", "a.txt"),
        ("git init -q d; echo agents > d/b; exit 1", "d"),
        ("rm -r d; mkfifo d; exit 1", "d"),
    ] {
        let env = TestEnv::repo();
        env.write("d/b", "one\n");
        env.sh("git add d; git commit -qm d; echo mine >> a.txt; echo mine >> d/b; echo mine > c")
            .expect(0);
        let before = seen(env.work());
        let agent = format!("rm c; {agent}");
        let args = ["--attempts", "1", "--no-wait", "--", "sh", "-c", &agent];
        let ran = env.recover(&[&["run", "--run", "n"], &args[..]].concat());
        assert_ne!(ran.code, 0, "{}", ran.stderr);
        let done = env.json(3, &["discard", "--yes"]);
        assert_eq!(env.read("c"), "mine\n", "everything else is back");
        assert_eq!(done["result"]["success"], false, "{done}");
        assert_ne!(status_of(&env, "n"), "closed", "{path}");
        let warnings = done["warnings"].as_array().expect("warnings");
        let mut warnings = warnings.iter().filter_map(Value::as_str);
        let said = warnings.find(|one| one.starts_with("run n is not closed: "));
        let (_, way) = said
            .expect("it is said")
            .split_once(": mv ")
            .expect("commands");
        let program = concat!(env!("CARGO_BIN_EXE_recover"), " ");
        env.sh(&format!("mv {}", way.replace("recover ", program)))
            .expect(0);
        env.sh(&format!("rm -rf {path}.aside")).expect(0);
        assert_eq!(seen(env.work()), before, "{path}");
        assert_eq!(status_of(&env, "n"), "closed", "{path}");
    }
}

/// A merge that the run concluded is no merge any more for git: who commits next is told.
#[test]
fn a_merge_that_the_run_ended_does_not_come_back_unsaid() {
    let env = TestEnv::repo();
    env.sh("git switch -qc other; echo theirs > a.txt; git commit -qam theirs; git switch -q main; echo mine > a.txt; \
            git commit -qam mine; git merge -q other; test -e .git/MERGE_HEAD")
        .expect(0);
    let conflict = (seen(env.work()), env.git(&["ls-files", "-s"]));
    let agent = "echo both > a.txt; git commit -qam merged";
    env.json(0, &["run", "--", "sh", "-c", agent]);
    let ran = env.recover(&["discard", "--yes"]).expect(0);
    assert!(
        ran.stderr.contains("a merge was in progress"),
        "{}",
        ran.stderr
    );
    assert_eq!((seen(env.work()), env.git(&["ls-files", "-s"])), conflict);
    let ran = env.recover(&["undo"]).expect(0);
    assert!(!ran.stderr.contains("in progress"), "{}", ran.stderr);
}

#[test]
fn gits_settings_and_hooks_go_back_with_it() {
    let env = TestEnv::repo();
    env.git(&["config", "alias.old", "status"]);
    let agent = "git config alias.i$RECOVER_ITERATION '!true'; git config alias.old log; git config user.nick $RECOVER_ITERATION; \
                 printf '#!/bin/sh\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout";
    let run = ["run", "--iterations", "2", "--", "sh", "-c", agent];
    env.json(0, &run);
    let aliases = |env: &TestEnv| env.sh("git config --get-regexp '^alias'").stdout;
    let (changed, hook) = (aliases(&env), ".git/hooks/post-checkout");
    let ran = env.recover(&["discard", "--yes"]).expect(0);
    for named in [
        "alias.i1",
        "alias.i2",
        "were put back: .git/hooks/post-checkout",
        "user.nick",
        "git config --edit",
    ] {
        assert!(ran.stderr.contains(named), "{named}: {}", ran.stderr);
    }
    assert_eq!(aliases(&env), "alias.old status\n");
    assert!(!env.exists(hook));
    env.json(0, &["undo"]);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&aliases(&env)), sorted(&changed));
    assert_eq!(env.mode(hook) & 0o777, 0o755);
    env.json(0, &["redo"]);
    assert_eq!(aliases(&env), "alias.old status\n");
    // What a user changed since stays.
    env.json(0, &["undo"]);
    env.git(&["config", "alias.old", "diff"]);
    env.recover(&["discard", "--yes"]).expect(0);
    assert_eq!(aliases(&env), "alias.old diff\n");
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
