//! `bisect`: which checkpoint made a command fail.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::supervision::until;

/// A run of so many iterations, each of which leaves its number.
fn run(env: &TestEnv, iterations: u32) {
    let iterations = iterations.to_string();
    let agent = "echo $RECOVER_ITERATION > n; echo $RECOVER_ITERATION > f$RECOVER_ITERATION";
    env.json(
        0,
        &[
            "run",
            "--run",
            "night",
            "--iterations",
            &iterations,
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
}

/// Everything of the user's: files, HEAD, index, work trees.
fn state(env: &TestEnv) -> String {
    let line = "git rev-parse HEAD; git status --porcelain -uall; git ls-files -s; git worktree list; cat a.txt n; \
                ls .git .git/recover | grep -v index; git for-each-ref";
    env.sh(line).stdout
}

fn temporary(env: &TestEnv) -> Vec<String> {
    let names = fs::read_dir(env.root().join("tmp"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

fn with_temporary() -> TestEnv {
    let mut env = TestEnv::repo();
    let folder = env.root().join("tmp");
    fs::create_dir(&folder).expect("a folder");
    env.set("TMPDIR", &folder.to_string_lossy());
    env
}

/// The checkpoint after an iteration.
fn after(env: &TestEnv, iteration: u32) -> Value {
    let selector = format!("iteration:{iteration}");
    env.json(0, &["checkpoint", "show", &selector])["checkpoint"]["id"].clone()
}

fn bisect(env: &TestEnv, code: i32, args: &[&str], line: &str) -> Value {
    env.json(
        code,
        &[&["bisect"], args, &["--", "sh", "-c", line]].concat(),
    )
}

// Of forty checkpoints at most seven are tested, wherever the first bad one is, and nothing of the user's changes.
#[test]
fn the_first_bad_of_forty_is_found_with_seven_tests() {
    let env = with_temporary();
    run(&env, 39);
    let before = state(&env);
    for first in [1, 17, 39] {
        let found = bisect(&env, 0, &[], &format!("echo said; test ! -e f{first}"));
        assert_eq!(found["first_bad"], after(&env, first), "{found}");
        assert_eq!(found["attempt"], json!({"iteration": first, "attempt": 1}));
        assert_eq!(found["checkpoints"], 40);
        let tested = found["tested"].as_array().expect("tests");
        assert!(tested.len() <= 7, "{found}");
        assert!(
            tested
                .iter()
                .any(|one| one["checkpoint_id"] == found["first_bad"] && one["exit_code"] == 1),
            "{found}"
        );
        assert!(
            tested
                .iter()
                .any(|one| one["checkpoint_id"] == found["last_good"] && one["exit_code"] == 0),
            "{found}"
        );
    }
    assert_eq!(state(&env), before);
    assert_eq!(temporary(&env), [""; 0]);
    let shown = env
        .recover(&[
            "bisect",
            "--",
            "sh",
            "-c",
            "test $(cat n 2> /dev/null || echo 0) -lt 30",
        ])
        .expect(0);
    assert!(
        shown.stdout.contains("iteration 30, attempt 1")
            && shown.stdout.contains("checkpoint diff"),
        "{}",
        shown.stdout
    );
    let plan = env.json(0, &["bisect", "--dry-run", "--", "false"]);
    assert_eq!(
        (&plan["checkpoints"], &plan["tested"]),
        (&json!(40), &json!([]))
    );
}

// The files are those of the checkpoint, byte for byte, with modes and links; what was made there stays.
#[test]
fn each_checkpoint_is_shown_as_it_was() {
    let env = with_temporary();
    env.write(".gitignore", "build\n");
    env.sh("printf 'a\\r\\n' > crlf; echo t > tool; chmod 755 tool; ln -s a.txt link; mkdir d; echo 1 > d/x; echo '* text=auto' > .gitattributes")
        .expect(0);
    let agent = "case $RECOVER_ITERATION in 1) rm -r d; echo file > d; rm link; mkdir link; echo in > link/in;; \
                 2) rm d; mkdir d; ln -s ../tool d/x; chmod 644 tool;; esac";
    env.json(
        0,
        &[
            "run",
            "--run",
            "night",
            "--iterations",
            "3",
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    let line = "ls -lA . d link | grep -v total | cut -c1-10 > ../seen.$RECOVER_CHECKPOINT; cat crlf d/x link/in >> ../seen.$RECOVER_CHECKPOINT 2>&1; \
                mkdir -p build; echo x >> build/log; cp build/log \"$OUT/log\"; cp ../seen.$RECOVER_CHECKPOINT \"$OUT\"; \
                git status --porcelain > \"$OUT/status\"; echo broken > a.txt; test -L link";
    let mut env = env;
    let out = env.root().join("out");
    fs::create_dir(&out).expect("a folder");
    env.set("OUT", &out.to_string_lossy());
    let found = bisect(&env, 0, &[], line);
    assert_eq!(found["first_bad"], after(&env, 1));
    let tests = found["tested"].as_array().expect("tests").len();
    // The build output stayed from one to the next, and git works there.
    let log = fs::read_to_string(out.join("log")).expect("a log");
    assert_eq!(log.lines().count(), tests);
    assert!(
        fs::read_to_string(out.join("status"))
            .expect("a status")
            .contains("crlf")
    );
    let seen = |checkpoint: &Value| {
        let name = format!("seen.{}", checkpoint.as_str().expect("an id"));
        fs::read_to_string(out.join(name)).expect("what was seen")
    };
    let first = seen(&found["last_good"]);
    assert!(
        first.contains("lrwxrwxrwx") && first.contains("-rwxr-xr-x") && first.contains("a\r\n1\n"),
        "{first}"
    );
    assert!(seen(&found["first_bad"]).contains("a\r\n"), "{first}");
    assert_eq!(env.read("a.txt"), "one\n");
}

// The good end has to pass first: what is missing there can be made.
#[test]
fn the_good_end_has_to_pass() {
    let env = with_temporary();
    run(&env, 4);
    let line = "test -e dependency && test ! -e f3";
    let error = bisect(&env, 13, &[], line)["error"].take();
    assert!(
        error["hint"].as_str().unwrap().contains("--prepare"),
        "{error}"
    );
    let found = bisect(&env, 0, &["--prepare", "touch dependency"], line);
    assert_eq!(found["first_bad"], after(&env, 3));
    let error = bisect(&env, 13, &[], "true")["error"].take();
    assert!(
        error["message"].as_str().unwrap().contains("should fail"),
        "{error}"
    );
    let error = bisect(&env, 4, &["--good", "latest"], "true")["error"].take();
    assert_eq!(error["code"], "no_checkpoint");
    bisect(
        &env,
        4,
        &["--good", "iteration:3", "--bad", "iteration:1"],
        "true",
    );
    assert_eq!(
        env.error(2, &["bisect", "--", "no-such-program"])["code"],
        "usage"
    );
    for line in ["exit 130", "kill -9 $$", "kill -TERM $$"] {
        assert_eq!(
            bisect(&env, 1, &[], line)["error"]["code"],
            "failed",
            "{line}"
        );
    }
    let said = |args: &[&str], line: &str| {
        let error = bisect(&env, 13, args, line)["error"].take();
        error["message"].as_str().expect("a message").to_owned()
    };
    assert!(said(&[], "exit 125").contains("the command ends (exit 125)"));
    assert!(said(&["--prepare", "exit 7"], "true").contains("--prepare fails (exit 7)"));
    assert_eq!(temporary(&env), [""; 0]);
}

// What is looked through is the night, as for `accept`; a checkpoint that was taken by hand since is not another course. One
// end that is named by itself says which run the other one is of.
#[test]
fn a_checkpoint_by_hand_is_no_course() {
    let env = with_temporary();
    run(&env, 3);
    let night = after(&env, 2);
    let by_hand = env.json(0, &["checkpoint", "create", "-m", "hand"])["checkpoint"]["id"].take();
    let found = bisect(&env, 0, &[], "test ! -e f2");
    assert_eq!(
        (&found["first_bad"], &found["checkpoints"]),
        (&night, &json!(4))
    );
    let night = night.as_str().expect("an id");
    assert_eq!(
        bisect(&env, 0, &["--good", night], "test ! -e f3")["checkpoints"],
        2
    );
    let error = bisect(
        &env,
        4,
        &["--bad", by_hand.as_str().expect("an id")],
        "true",
    )["error"]
        .take();
    assert_eq!(error["code"], "no_checkpoint", "{error}");
}

// 125 says nothing; where that leaves several, they are listed.
#[test]
fn what_cannot_be_tested_is_skipped() {
    let env = with_temporary();
    run(&env, 6);
    let found = bisect(
        &env,
        0,
        &[],
        "test \"$(cat n)\" != 2 || exit 125; test ! -e f5",
    );
    assert_eq!(found["first_bad"], after(&env, 5));
    let found = bisect(
        &env,
        3,
        &[],
        "case \"$(cat n)\" in 3|4) exit 125;; esac; test ! -e f4",
    );
    assert_eq!(
        (&found["first_bad"], &found["attempt"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        found["candidates"],
        json!([after(&env, 3), after(&env, 4), after(&env, 5)])
    );
    assert_eq!(found["last_good"], after(&env, 2));
}

// What a rollback went back over is not looked at.
#[test]
fn superseded_checkpoints_are_passed_over() {
    let env = with_temporary();
    run(&env, 3);
    env.json(0, &["rollback", "--to", "iteration:1"]);
    let found = bisect(&env, 0, &[], "test ! -e f1");
    assert_eq!(
        (&found["first_bad"], &found["checkpoints"]),
        (&after(&env, 1), &json!(2))
    );
}

// A kill, or Ctrl-C, leaves the user's files alone, and what is left of the work tree goes with the next command.
#[test]
fn what_a_kill_leaves_is_removed() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("KILL", 137)] {
        let env = with_temporary();
        run(&env, 3);
        // What is noted beside a checkpoint is there before, too.
        env.json(0, &["checkpoint", "create"]);
        let before = state(&env);
        let line = format!("touch '{}'; sleep 5", env.root().join("began").display());
        let mut child = env
            .recover_command(&["bisect", "--", "sh", "-c", &line])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("recover starts");
        until("it is at work", || env.root().join("began").exists());
        assert_eq!(temporary(&env).len(), 1);
        env.sh(&format!("kill -{signal} {}", child.id())).expect(0);
        let ended = child.wait().expect("an end");
        let seen = std::os::unix::process::ExitStatusExt::signal(&ended)
            .map_or_else(|| ended.code(), |n| Some(128 + n));
        assert_eq!(seen, Some(code));
        assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
        env.json(0, &["checkpoint", "create"]);
        assert_eq!(temporary(&env), [""; 0], "{signal}");
        let without = |text: &str| {
            text.lines()
                .filter(|line| !line.contains("refs/recover/"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(without(&state(&env)), without(&before), "{signal}");
    }
}

// An accepted run's checkpoints stay, and where some are removed all the same no wrong one is named.
#[test]
fn an_accepted_run_is_looked_through_and_gaps_are_said() {
    let env = TestEnv::repo();
    let agent = "echo $RECOVER_ITERATION > n; [ $RECOVER_ITERATION != 3 ] || echo bad > bad";
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
    let found = |env: &TestEnv, code: i32| {
        env.json(
            code,
            &[
                "bisect",
                "--run",
                "night",
                "--",
                "sh",
                "-c",
                "! test -e bad",
            ],
        )
    };
    let first = found(&env, 0);
    env.json(0, &["accept"]);
    assert_eq!(found(&env, 0)["first_bad"], first["first_bad"]);
    env.json(0, &["checkpoint", "pin", "initial"]);
    env.json(0, &["checkpoint", "prune", "--keep-last", "2"]);
    let gap = found(&env, 3);
    assert_eq!(
        (&gap["first_bad"], gap["removed_between"].as_u64() > Some(0)),
        (&Value::Null, true),
        "{gap}"
    );
    let text = env
        .recover(&[
            "bisect",
            "--run",
            "night",
            "--",
            "sh",
            "-c",
            "! test -e bad",
        ])
        .expect(3)
        .stdout;
    assert!(text.starts_with("The change lies between "), "{text}");
}

// A removed beginning is no end of the search: it begins at the oldest checkpoint that is left.
#[test]
fn a_run_whose_first_checkpoint_was_removed_is_searched() {
    let env = TestEnv::repo();
    let line = "echo $RECOVER_ITERATION >> log; [ $RECOVER_ITERATION != 4 ] || rm good.txt";
    env.write("good.txt", "good\n");
    env.json(
        0,
        &[
            "run",
            "--run",
            "r",
            "--iterations",
            "5",
            "--",
            "sh",
            "-c",
            line,
        ],
    );
    let all = env.json(0, &["checkpoint", "list", "--run", "r"]);
    for one in &all["checkpoints"].as_array().expect("a list")[2..] {
        env.json(
            0,
            &["checkpoint", "pin", one["id"].as_str().expect("an id")],
        );
    }
    env.json(
        0,
        &["checkpoint", "prune", "--keep-last", "1", "--run", "r"],
    );
    let found = env
        .recover(&["bisect", "--run", "r", "--", "test", "-e", "good.txt"])
        .expect(0);
    assert!(found.stdout.contains("iteration 4"), "{}", found.stdout);
    assert!(
        found.stderr.contains("is the oldest that is left"),
        "{}",
        found.stderr
    );
}
