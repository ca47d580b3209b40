//! `--series`: one name for every night. A positional run, and what two names for one come to. What a loop off a terminal gets.

use std::process::Stdio;

use serde_json::Value;

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::run::supervision::ended;

fn next(env: &TestEnv, code: i32, command: &str) -> Value {
    env.json(
        code,
        &["run", "--series", "night", "--", "sh", "-c", command],
    )
}

fn name(document: &Value) -> &str {
    document["run"]["run_id"].as_str().expect("a name")
}

#[test]
fn a_night_begins_where_the_last_one_ended_well() {
    let env = TestEnv::repo();
    let first = next(&env, 0, "true");
    assert_eq!(
        (name(&first), first["run"]["series"].as_str()),
        ("night", Some("night"))
    );
    // A number that exists is skipped.
    env.json(0, &["run", "--run", "night-2", "--", "true"]);
    let ran = env
        .recover(&["run", "--series", "night", "--", "true"])
        .expect(0);
    assert!(
        ran.stderr.contains("series night: this is run night-3\n"),
        "{}",
        ran.stderr
    );
    // Elsewhere it is the latest.
    assert_eq!(
        name(&env.json(0, &["status", "--series", "night"])),
        "night-3"
    );
    env.json(0, &["close", "--series", "night"]);
    assert_eq!(name(&next(&env, 0, "echo made > made.txt")), "night-4");
    env.json(0, &["accept", "--series", "night"]);
    assert_eq!(name(&next(&env, 0, "true")), "night-5");
    // `--run` names exactly one.
    assert_eq!(
        env.error(13, &["run", "--run", "night-5", "--", "true"])["code"],
        "already_exists"
    );
    assert_eq!(
        env.error(4, &["status", "--series", "day"])["code"],
        "run_not_found"
    );
    let both = env.error(2, &["run", "--run", "a", "--series", "b", "--", "true"]);
    assert_eq!(both["exit_code"], 2);
}

// One begins, the others are told that it is at work.
#[test]
fn of_eight_at_once_one_begins() {
    let env = quick();
    let works = "sleep 1; echo done > made.txt";
    let run = ["run", "--series", "night", "--", "sh", "-c", works];
    let begun: Vec<_> = (0..8)
        .map(|_| {
            let mut command = env.recover_command(&run);
            command.stdout(std::process::Stdio::piped());
            command.stderr(std::process::Stdio::piped());
            command.spawn().expect("recover starts")
        })
        .collect();
    let mut codes = Vec::new();
    for child in begun {
        let output = child.wait_with_output().expect("it ends");
        let ran = crate::env::Ran::of(&output);
        assert!(!ran.stderr.contains(" waits"), "{}", ran.stderr);
        codes.push(ran.code);
    }
    codes.sort_unstable();
    assert_eq!(codes, [0, 11, 11, 11, 11, 11, 11, 11]);
}

// A loop or a cron job gives itself no new budget.
#[test]
fn a_night_that_ended_badly_is_decided_first() {
    let env = quick();
    let fails = "echo 'error: it broke' >&2; exit 1";
    let ended = next(&env, 8, fails);
    assert_eq!(ended["outcome"], "escalated");
    let attempts = env.events("attempt_ended").len();
    let refused = env.error(13, &["run", "--series", "night", "--", "true"]);
    let message = refused["message"].to_string();
    for verb in ["recover resume", "recover discard", "recover close"] {
        assert!(message.contains(verb), "{verb}: {message}");
    }
    assert!(refused["hint"].to_string().contains("resume"), "{refused}");
    assert_eq!(env.events("attempt_ended").len(), attempts);
    env.json(0, &["discard", "--series", "night", "--yes"]);
    assert_eq!(name(&next(&env, 0, "true")), "night-2");
}

#[test]
fn a_night_that_waits_is_resumed() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2035-01-01T00:00:00.000Z");
    let works = "[ -e ../up ] || { echo 'error: it broke' >&2; exit 1; }";
    let run = [
        "run",
        "--series",
        "night",
        "--no-wait",
        "--",
        "sh",
        "-c",
        works,
    ];
    assert_eq!(name(&env.json(6, &run)), "night");
    env.write("../up", "");
    env.set("RECOVER_TEST_NOW", "2035-01-01T01:00:00.000Z");
    let plan = env.recover(&[&["--dry-run"], &run[..]].concat()).expect(0);
    assert!(
        plan.stderr.contains("run night waits, and is resumed"),
        "{}",
        plan.stderr
    );
    let resumed = env.json(0, &run);
    assert_eq!(resumed["command"], "resume");
    assert_eq!(
        (name(&resumed), resumed["outcome"].as_str()),
        ("night", Some("complete"))
    );
}

#[test]
fn a_run_is_named_without_a_flag() {
    let env = quick();
    for run in ["first", "second"] {
        env.json(
            0,
            &[
                "run",
                "--run",
                run,
                "--",
                "sh",
                "-c",
                "echo $RECOVER_RUN_ID > a.txt",
            ],
        );
    }
    for command in ["status", "retry-status"] {
        let positional = env.json(0, &[command, "first"]);
        assert_eq!(
            positional,
            env.json(0, &[command, "--run", "first"]),
            "{command}"
        );
    }
    assert_eq!(name(&env.json(0, &["status", "first"])), "first");
    let log = env.recover(&["log", "first"]).expect(0).stdout;
    assert!(!log.contains("second"), "{log}");
    assert!(
        env.recover(&["report", "first"])
            .expect(0)
            .stdout
            .contains("first")
    );
    let list = env.json(0, &["checkpoint", "list", "first"]);
    assert!(
        list["checkpoints"].as_array().is_some_and(|all| {
            !all.is_empty() && all.iter().all(|one| one["run_id"] == "first")
        })
    );
    assert_eq!(name(&env.json(0, &["resume", "first"])), "first");
    env.json(0, &["close", "first"]);
    assert_eq!(env.error(4, &["status", "none"])["code"], "run_not_found");
    // Both, and the same: fine. Both, and not: nobody knows which.
    env.json(0, &["status", "first", "--run", "first"]);
    for other in [["--run", "second"], ["--series", "second"]] {
        let ran = env
            .recover(&[&["status", "first"], &other[..]].concat())
            .expect(2);
        assert!(ran.stderr.contains("name different runs"), "{}", ran.stderr);
    }
    let ran = env
        .recover(&["accept", "first", "--run", "second"])
        .expect(2);
    assert!(
        ran.stderr.contains("'first' and --run second"),
        "{}",
        ran.stderr
    );
}

const FAILS: &str = "date +%N > tried; echo 'error: it broke' >&2; exit 1";

fn once(env: &TestEnv, code: i32, more: &[&str], command: &str) -> Value {
    let run = ["run", "--attempts", "2"];
    env.json(
        code,
        &[&run[..], more, &["--", "sh", "-c", command]].concat(),
    )
}

// S8: `while :; do recover run …; done` is one task, whatever its runs are called.
#[test]
fn a_command_that_fails_again_and_again_is_one_task() {
    let mut env = quick();
    env.set("RECOVER_TEST_NOW", "2035-01-01T00:00:00.000Z");
    for (pass, code) in [(1, 8), (2, 8), (3, 7)] {
        once(&env, code, &["--run", &format!("pass-{pass}")], FAILS);
    }
    let refused = once(&env, 7, &["--run", "refused"], FAILS);
    assert_eq!(refused["error"]["code"], "exhausted", "{refused}");
    let ran = env.recover(&["run", "--", "sh", "-c", FAILS]).expect(7);
    for part in [
        "6 of 6 attempts of the task",
        "retry-status --reset --run pass-3",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert_eq!(env.events("attempt_ended").len(), 6);
    // Nothing is made of them: what is shown is the run that failed.
    assert_eq!(name(&env.json(0, &["status"])), "pass-3");
    assert_eq!(env.events("run_created").len(), 3);

    // Another command, and an explicit task, are others.
    once(
        &env,
        8,
        &[],
        "echo other > other; echo 'error: it broke' >&2; exit 1",
    );
    once(&env, 8, &["--task", "T"], FAILS);
    assert_eq!(env.events("attempt_ended").len(), 10);
}

#[test]
fn what_gives_a_failing_command_its_attempts_back() {
    let used_up = || {
        let mut env = quick();
        env.set("RECOVER_TEST_NOW", "2035-01-01T00:00:00.000Z");
        for code in [8, 8, 7] {
            once(&env, code, &[], FAILS);
        }
        once(&env, 7, &["--run", "refused"], FAILS);
        assert_eq!(env.events("attempt_ended").len(), 6);
        env
    };
    // A person's reset.
    let env = used_up();
    env.json(0, &["retry-status", "--reset"]);
    once(&env, 8, &[], FAILS);
    assert_eq!(env.events("attempt_ended").len(), 8);
    // A changed file; a commit.
    let env = used_up();
    env.write("a.txt", "two\n");
    once(&env, 8, &[], FAILS);
    assert_eq!(env.events("attempt_ended").len(), 8);
    let env = used_up();
    env.git(&["commit", "-q", "--allow-empty", "-m", "another"]);
    once(&env, 8, &[], FAILS);
    assert_eq!(env.events("attempt_ended").len(), 8);
    // Another time limit, another check: what was wrong may be mended.
    for more in [["--timeout", "9s"], ["--feedback", "test=true"]] {
        let env = used_up();
        once(&env, 8, &more, FAILS);
        assert_eq!(env.events("attempt_ended").len(), 8);
    }
    // A day.
    let mut env = used_up();
    env.set("RECOVER_TEST_NOW", "2035-01-02T00:00:01.000Z");
    once(&env, 8, &[], FAILS);
    assert_eq!(env.events("attempt_ended").len(), 8);
    // A fresh clone, as a CI job has.
    let env = used_up();
    env.sh("git clone -q . ../clone && cp -r .ultraplan/recover.toml ../clone/")
        .expect(0);
    let ran = env.recover(&[
        "-C",
        "../clone",
        "run",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        FAILS,
    ]);
    assert!(ran.expect(8).stderr.contains("it broke"));
}

/// Nights that begin at once in several work trees get a name each.
#[test]
fn each_work_tree_gets_a_night_of_its_own() {
    let env = TestEnv::repo();
    let places = ["work", "linked1", "linked2", "linked3"];
    for place in &places[1..] {
        env.git(&["worktree", "add", "-q", &format!("../{place}")]);
    }
    let night = ["run", "--series", "night", "--", "true"];
    let start = |place: &&str| {
        let mut command = env.recover_command(&night);
        command
            .current_dir(env.work().parent().expect("a folder").join(place))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("recover starts")
    };
    let all: Vec<_> = places.iter().map(start).collect();
    for child in all {
        let ran = ended(child).expect(0);
        assert_eq!(
            ran.stderr.matches("this is run night").count(),
            1,
            "{}",
            ran.stderr
        );
    }
    let runs = env.json(0, &["runs", "--all"])["runs"].clone();
    let mut names: Vec<&str> = runs
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["run_id"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["night", "night-2", "night-3", "night-4"]);
}

/// Nights that nobody decided on, each of which changed `a.txt` and made a file.
fn nights(env: &TestEnv) {
    for number in 1..=3 {
        let command = format!("echo n{number} >> a.txt; echo {number} > n{number}.txt");
        next(env, 0, &command);
    }
}

// What earlier nights left is theirs, not a person's, and they are accepted one after another.
#[test]
fn nights_that_nobody_accepted_are_told_from_a_persons_work() {
    let env = TestEnv::repo();
    nights(&env);
    let shown = env.recover(&[]).expect(0).stdout;
    assert!(
        shown.contains("work of run night-2 that is not accepted yet: a.txt; recover ")
            && shown.contains(" accept night commits that first")
            && shown.contains("\n1. Keep:    recover accept night\n")
            && !shown.contains("changes of yours"),
        "{shown}"
    );
    let refused = env.error(13, &["accept"]);
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("accept run night first"), "{refused}");
    let plan = env
        .recover(&["accept", "night", "--dry-run"])
        .expect(0)
        .stdout;
    assert!(
        plan.contains("    a.txt  (of run night-3)\n    n2.txt  (of run night-2)\n")
            || plan.contains("    n2.txt  (of run night-2)\n"),
        "{plan}"
    );
    assert!(!plan.contains("edited since"), "{plan}");
    for name in ["night", "night-2", "night-3"] {
        let accepted = env.json(0, &["accept", name]);
        assert_eq!(accepted["look_at"], serde_json::json!([]), "{accepted:#}");
    }
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(env.git(&["log", "--format=%s"]).lines().count(), 4);
}

// A person's own change beside it is still theirs.
#[test]
fn a_persons_change_between_nights_stays_theirs() {
    let env = TestEnv::repo();
    next(&env, 0, "echo n1 >> a.txt");
    env.write("a.txt", "mine\n");
    next(&env, 0, "echo n2 > a.txt");
    let shown = env.recover(&[]).expect(0).stdout;
    assert!(
        shown.contains("uncommitted changes of yours: a.txt"),
        "{shown}"
    );
}

// What is said of a tree in which the last iteration failed.
#[test]
fn what_a_failed_iteration_left_is_told() {
    let env = quick();
    let run = |name: &str, iterations: &str, check: &str| {
        env.recover(&[
            "run",
            "--run",
            name,
            "--iterations",
            iterations,
            "--attempts",
            "1",
            "--feedback",
            check,
            "--",
            "sh",
            "-c",
            "for file in a b; do echo x > $file$RECOVER_ITERATION.new; done",
        ])
        .expect(8)
        .stdout
    };
    let ended = run("all", "1", "test=false");
    let left = "Changed:    not rolled back: 2 files of iteration 1\n";
    assert!(ended.contains(left), "{ended}");
    let shown = env.recover(&["status"]).expect(0).stdout;
    assert!(shown.contains(left), "{shown}");
    env.json(0, &["discard", "--yes"]);
    let ended = run("last", "2", "test=[ $RECOVER_ITERATION = 1 ]");
    let left = "Changed:    2 files +2 −0; not rolled back: 2 files of iteration 2\n";
    assert!(ended.contains(left), "{ended}");
    let plan = env.recover(&["accept", "--dry-run"]).expect(0).stdout;
    assert!(plan.contains("    a2.new  (of run last)\n"), "{plan}");
    // What is gone is not there.
    env.remove("a2.new");
    env.remove("b2.new");
    let shown = env.recover(&["status"]).expect(0).stdout;
    assert!(!shown.contains("not rolled back"), "{shown}");
}

// `recover` and `recover status` are about the same run, in every work tree.
#[test]
fn alone_and_status_are_about_the_same_run() {
    let env = TestEnv::repo();
    env.git(&["worktree", "add", "-q", "../linked"]);
    let night = ["--series", "night", "--", "true"];
    env.recover(&[&["-C", "../linked", "run"][..], &night].concat())
        .expect(0);
    for args in [&[][..], &["status"]] {
        let shown = env.recover(args).expect(0).stdout;
        assert!(shown.starts_with("Run night: "), "{shown}");
        assert!(shown.contains("linked"), "{shown}");
    }
    next(&env, 0, "true");
    env.recover(&[&["-C", "../linked", "run"][..], &night].concat())
        .expect(0);
    for args in [&[][..], &["status"]] {
        let shown = env.recover(args).expect(0).stdout;
        assert!(shown.starts_with("Run night-2: "), "{shown}");
    }
}

// What nobody decided on stays open, and the note counts what `runs` lists.
#[test]
fn closing_all_leaves_open_what_nobody_decided_on() {
    let env = TestEnv::repo();
    next(&env, 0, "true");
    next(&env, 0, "echo two >> a.txt");
    env.json(0, &["accept"]);
    next(&env, 0, "echo three >> a.txt");
    let noted = env.recover(&["accept", "--dry-run"]).expect(0).stderr;
    assert!(
        noted.contains("; 1 other run is not closed: recover runs"),
        "{noted}"
    );
    let closed = env.json(0, &["close", "--all-ended"]);
    let ids = |which: &str| -> Vec<String> {
        let runs = closed[which].as_array().expect("runs");
        runs.iter().map(|run| name_of(run).to_owned()).collect()
    };
    assert_eq!(ids("left_open"), ["night-3"]);
    assert_eq!(ids("runs"), ["night", "night-2"]);
    let said = env.recover(&["close", "--all-ended"]).expect(0).stdout;
    assert!(
        said.starts_with("Left open, as their work is not accepted or discarded: night-3;"),
        "{said}"
    );
    let closed = env.json(0, &["close", "--all-ended", "--yes"]);
    assert_eq!(name_of(&closed["runs"][0]), "night-3");
}

fn name_of(run: &Value) -> &str {
    run["run_id"].as_str().expect("a name")
}

// A discard that takes an accepted run's commit off the branch names it.
#[test]
fn discard_names_the_commits_that_leave_the_branch() {
    let env = TestEnv::repo();
    next(&env, 0, "echo two >> a.txt");
    let accepted = env.recover(&["accept"]).expect(0).stdout;
    assert!(accepted.contains("\nShown by: git show "), "{accepted}");
    let head = env.git(&["rev-parse", "HEAD"]);
    let refused = env.error(13, &["discard"]);
    let message = refused["message"].as_str().expect("a message");
    assert!(
        message.contains("HEAD moves from ") && message.contains(" and 1 commit leaves the branch"),
        "{refused}"
    );
    let plan = env.json(0, &["discard", "--dry-run"]);
    assert_eq!(plan["plan"]["commits_left"][0], head.trim(), "{plan:#}");
    let planned = env.recover(&["discard", "--dry-run"]).expect(0).stdout;
    assert!(
        planned.contains("; 1 commit leaves the branch\n"),
        "{planned}"
    );
    env.json(0, &["discard", "--yes"]);
    env.json(0, &["undo"]);
    assert_eq!(env.git(&["rev-parse", "HEAD"]), head);
}

// Small things that whoever comes in the morning looks for.
#[test]
fn what_comes_next_is_named() {
    let env = quick();
    let run = ["run", "--run", "r", "--iterations", "2", "--attempts", "1"];
    let check = ["--feedback", "test=[ $RECOVER_ITERATION = 2 ]", "--"];
    let command = ["sh", "-c", "echo x > work$RECOVER_ITERATION"];
    env.recover(&[&run[..], &check, &command].concat())
        .expect(8);
    let shown = env.recover(&["status"]).expect(0).stdout;
    let id = env.json(0, &["checkpoint", "list"])["checkpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .rfind(|one| one["verdict"] == "failed")
        .expect("the failed one")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    for words in [
        format!(" {id} --patch"),
        format!("checkpoint restore {id} --path work1"),
        " brings them back".to_owned(),
    ] {
        assert!(shown.contains(&words), "{words}: {shown}");
    }
    let difference = env.recover(&["diff"]).expect(0).stdout;
    assert!(difference.contains("work2"), "{difference}");
    env.json(0, &["discard", "--yes"]);
    let refused = env.error(4, &["resume"])["message"].to_string();
    assert!(
        refused.contains("r, the latest one here, was discarded"),
        "{refused}"
    );
    let none = env.recover(&["runs"]).expect(0).stdout;
    assert!(none.contains("recover runs --all"), "{none}");
}

// Off a terminal a dry run ends as accepting would.
#[test]
fn a_plan_is_refused_as_what_is_planned() {
    let env = TestEnv::repo();
    env.write("a.txt", "mine\n");
    next(&env, 0, "echo two > a.txt; echo new > new.txt");
    env.recover(&["accept"]).expect(13);
    let plan = env.recover(&["accept", "--dry-run"]).expect(0).stdout;
    assert!(
        plan.contains("    a.txt  (your uncommitted changes"),
        "{plan}"
    );
}
