//! `recover step`: a command that runs once (C4), its exit codes, two processes at once, kills.

use std::process::Stdio;

use serde_json::Value;

use crate::env::TestEnv;
use crate::run::supervision::{ended, kill, lives, until};
use crate::seen::text;

/// `recover step NAME -- sh -c LINE` in the run `r`.
pub fn step<'a>(name: &'a str, line: &'a str) -> Vec<&'a str> {
    vec!["--run", "r", "step", name, "--", "sh", "-c", line]
}

fn lines(env: &TestEnv, path: &str) -> usize {
    env.sh(&format!("cat {path} 2>/dev/null"))
        .stdout
        .lines()
        .count()
}

/// The step of that name, as `status` tells it.
pub fn told(env: &TestEnv, name: &str) -> Value {
    let status = env.json(0, &["--run", "r", "status"]);
    let steps = status["steps"].as_array().expect("steps").clone();
    steps
        .into_iter()
        .find(|step| step["name"] == name)
        .unwrap_or(Value::Null)
}

// C4: done before is skipped with 0, also in another process and in another folder of the work tree.
#[test]
fn a_step_runs_once() {
    let env = TestEnv::repo();
    let args = step("build", "echo ran >> ../seen; echo out");
    let first = env.recover(&args).expect(0);
    assert_eq!(first.stdout, "out\n", "the command's output is left alone");
    let second = env.recover(&args).expect(0);
    assert_eq!((second.stdout.as_str(), lines(&env, "../seen")), ("", 1));
    assert!(
        second.stderr.contains("build") && second.stderr.contains("skipped"),
        "{}",
        second.stderr
    );

    let document = env.json(0, &args);
    assert_eq!(document["command"], "step");
    assert_eq!(
        (&document["executed"], &document["exit_code"]),
        (&false.into(), &0.into())
    );
    assert_eq!(
        (&document["step"]["status"], &document["step"]["run_id"]),
        (&"done".into(), &"r".into())
    );
    assert_eq!(
        (&document["step"]["phase"], &document["step"]["lane"]),
        (&"-".into(), &"-".into())
    );
    assert!(document["step"]["started_at"].is_string() && document["step"]["ended_at"].is_string());
    assert_eq!(document["rolled_back"], false);

    // Other names, lanes and phases are other steps.
    env.recover(&step("test", "echo ran >> ../seen")).expect(0);
    for flag in ["--lane", "--phase"] {
        env.recover(&[&[flag, "x"][..], &args].concat()).expect(0);
        env.recover(&[&[flag, "x"][..], &args].concat()).expect(0);
    }
    assert_eq!(lines(&env, "../seen"), 4);
    let log = env.recover(&["log"]).expect(0).stdout;
    assert!(
        log.contains("step_ended") && log.contains("r  build"),
        "{log}"
    );
    let status = env.recover(&["--run", "r", "status"]).expect(0).stdout;
    assert!(
        status.contains("build") && status.contains("done"),
        "{status}"
    );
}

// Without a repository, and without a run: one is made, and the next step belongs to it.
#[test]
fn neither_a_repository_nor_a_run_is_needed() {
    let env = TestEnv::plain();
    for _ in 0..2 {
        env.recover(&["step", "one", "--", "sh", "-c", "echo ran >> ../seen"])
            .expect(0);
        env.recover(&["step", "two", "--", "sh", "-c", "echo ran >> ../seen"])
            .expect(0);
    }
    assert_eq!(lines(&env, "../seen"), 2);
    let run = env.json(0, &["status"])["run"]["run_id"].clone();
    assert!(text(&run).starts_with("manual-"), "{run}");
}

// A failed step is not done; the child's own code comes back, signals as 128 + n, 127 and 126 as a shell has them.
#[test]
fn a_failed_step_runs_again() {
    let env = TestEnv::repo();
    let args = step("flaky", "echo ran >> ../seen; test -e ../fixed || exit 42");
    env.recover(&args).expect(42);
    assert_eq!(told(&env, "flaky")["status"], "failed");
    let document = env.json(42, &args);
    assert_eq!(
        (&document["executed"], &document["exit_code"]),
        (&true.into(), &42.into())
    );
    env.sh("touch ../fixed");
    env.recover(&args).expect(0);
    env.recover(&args).expect(0);
    assert_eq!(lines(&env, "../seen"), 3);
    assert_eq!(told(&env, "flaky")["executions"], 3);

    env.recover(&step("killed", "kill -KILL $$")).expect(137);
    env.recover(&step("term", "kill -TERM $$")).expect(143);
    let missing = env
        .recover(&["--run", "r", "step", "missing", "--", "no-such-program"])
        .expect(127);
    assert!(
        missing.stderr.contains("no-such-program"),
        "{}",
        missing.stderr
    );
    env.write("plain", "");
    env.recover(&["--run", "r", "step", "plain", "--", "./plain"])
        .expect(126);
}

// Input and output are the command's; with `--json` its output goes to stderr.
#[test]
fn streams_are_passed_through() {
    let env = TestEnv::repo();
    let shown = env
        .recover_fed("hello\n", &step("cat", "cat; echo err >&2"))
        .expect(0);
    assert_eq!(
        (shown.stdout.as_str(), shown.stderr.as_str()),
        ("hello\n", "err\n")
    );
    let args = [&["--json"][..], &step("json", "cat; echo err >&2")].concat();
    let shown = env.recover_fed("hello\n", &args).expect(0);
    assert_eq!(shown.json()["executed"], true);
    assert_eq!(shown.stderr, "hello\nerr\n");
}

// What the command knows, and where it runs.
#[test]
fn the_command_knows_its_step() {
    let env = TestEnv::repo();
    env.sh("mkdir sub").expect(0);
    let line = "echo $RECOVER_RUN_ID $RECOVER_PHASE $RECOVER_LANE $RECOVER_STEP; pwd";
    let args = [
        "-C", "sub", "--lane", "l", "--run", "r", "step", "a b", "--", "sh", "-c", line,
    ];
    let shown = env.recover(&args).expect(0).stdout;
    assert_eq!(
        shown,
        format!("r - l a b\n{}\n", env.work().join("sub").display())
    );
}

#[test]
fn names_are_refused_that_would_be_trouble() {
    let env = TestEnv::repo();
    for name in ["", "a\nb", "a\u{1b}[1m", " a", &"x".repeat(201)] {
        let error = env.json(2, &["step", name, "--", "true"])["error"].clone();
        assert!(
            text(&error["message"]).contains("name") && error["hint"].is_string(),
            "{error}"
        );
    }
    env.recover(&["step", "a"]).expect(2);
    env.recover(&["step", "a", "--intent", "x", "--", "true"])
        .expect(2);
    let error =
        env.json(2, &["step", "a", "--atomic", "--path", "a{", "--", "true"])["error"].clone();
    assert!(text(&error["message"]).contains("--path"), "{error}");
    // A step within itself would wait for ever.
    let recover = env!("CARGO_BIN_EXE_recover");
    let inner = format!("{recover} --run r step a -- true");
    let shown = env.recover(&step("a", &inner)).expect(2);
    assert!(shown.stderr.contains("its own command"), "{}", shown.stderr);
    let inner = format!("{recover} --run r step b -- true");
    env.recover(&step("a", &inner)).expect(0);
}

#[test]
fn a_dry_run_changes_nothing() {
    let env = TestEnv::repo();
    let args = [&["--dry-run"][..], &step("a", "touch ../seen")].concat();
    assert!(env.recover(&args).expect(0).stdout.contains("Would run"));
    assert!(!env.exists("../seen") && !env.exists(".ultraplan"));
    env.recover(&step("a", "true")).expect(0);
    assert_eq!(env.json(0, &args)["plan"]["would"], "skip");
}

// C2: the stage's checkpoint comes after the step; a kill between the two is made up for.
#[test]
fn a_stage_is_recorded_at_its_end() {
    let env = TestEnv::repo();
    let args = |line| {
        vec![
            "--run",
            "r",
            "--lane",
            "l",
            "step",
            "tests",
            "--stage",
            "after_lane_tests",
            "--",
            "sh",
            "-c",
            line,
        ]
    };
    env.json(1, &args("echo 1 > out; exit 1"));
    // C9: that it failed is a record as well, and none to go on from.
    let failed = env.state_json("checkpoints.json")[0].clone();
    assert_eq!(
        (&failed["status"], &failed["exit_code"]),
        (&"failed".into(), &1.into())
    );
    let document = env.json(0, &args("echo 2 > out"));
    let id = document["checkpoint_id"].clone();
    let records = env.state_json("checkpoints.json");
    assert_eq!(
        (&records[0]["stage"], &records[0]["checkpoint_id"]),
        (&"after_lane_tests".into(), &id)
    );
    assert_eq!(records[0]["status"], "complete");
    assert_eq!(env.json(0, &args("false"))["checkpoint_id"], id);
    env.json(2, &["step", "x", "--stage", "nonsense", "--", "true"]);
}

/// A `recover step` that is in the middle of its command, and the command's pid.
fn under_way(env: &TestEnv, name: &str) -> (std::process::Child, String) {
    let _ = std::fs::remove_file(env.work().join("../pid"));
    let child = env.start(&step(
        name,
        "echo ran >> ../seen; echo $$ > ../pid; test -e ../quick || sleep 300",
    ));
    let pid = env.await_line("../pid");
    (child, pid)
}

// A killed supervisor: announced before it runs again, what is left of it is ended first.
#[test]
fn a_cut_off_step_says_so_and_runs_again() {
    let env = TestEnv::repo();
    let (mut child, pid) = under_way(&env, "push");
    kill("-KILL", child.id());
    child.wait().unwrap();
    assert!(lives(&pid));
    let ledger = env.read(".ultraplan/state/events.jsonl");
    assert_eq!(told(&env, "push")["status"], "cut_off");
    assert_eq!(
        env.read(".ultraplan/state/events.jsonl"),
        ledger,
        "looking writes nothing"
    );
    assert!(lives(&pid), "nor does it end anything");
    env.sh("touch ../quick");
    let again = env.recover(&step("push", "echo ran >> ../seen")).expect(0);
    assert!(!lives(&pid));
    assert_eq!(lines(&env, "../seen"), 2);
    for part in ["push", "interrupted", "sleep 300", "may be repeated"] {
        assert!(again.stderr.contains(part), "{part}\n{}", again.stderr);
    }
    let third = env.recover(&step("push", "false")).expect(0);
    assert!(!third.stderr.contains("interrupted"), "{}", third.stderr);
}

// Any command that writes settles it; the announcement is not lost by that.
#[test]
fn another_command_settles_it_first() {
    let env = TestEnv::repo();
    let (mut child, pid) = under_way(&env, "push");
    kill("-KILL", child.id());
    child.wait().unwrap();
    env.json(0, &["--run", "r", "checkpoint", "create"]);
    assert!(!lives(&pid));
    let again = env.recover(&step("push", "true")).expect(0);
    assert!(again.stderr.contains("interrupted"), "{}", again.stderr);
}

// An interrupted step is handed the signal, is not done, and its end is recorded.
#[test]
fn an_interrupted_step_is_not_done() {
    let env = TestEnv::repo();
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let (child, pid) = under_way(&env, "long");
        kill(signal, child.id());
        ended(child).expect(code);
        assert!(!lives(&pid));
        assert_eq!(
            (
                &told(&env, "long")["status"],
                &told(&env, "long")["exit_code"]
            ),
            (&"failed".into(), &code.into())
        );
    }
}

// Two processes on one step: the second waits, then skips it, or runs it where it failed.
#[test]
fn two_processes_run_it_once() {
    let env = TestEnv::repo();
    let line = "echo ran >> ../seen; sleep 0.2";
    let all: Vec<_> = (0..6)
        .map(|_| env.start(&[&["--json"][..], &step("once", line)].concat()))
        .collect();
    let mut executed = 0;
    for child in all {
        let document = ended(child).expect(0).json();
        executed += usize::from(document["executed"] == true);
    }
    assert_eq!((executed, lines(&env, "../seen")), (1, 1));

    let line = "echo ran >> ../failing; sleep 0.1; exit 3";
    let all: Vec<_> = (0..3).map(|_| env.start(&step("failing", line))).collect();
    for child in all {
        ended(child).expect(3);
    }
    assert_eq!(lines(&env, "../failing"), 3);
}

// The wait has no limit but a signal; nothing of the step is touched by that.
#[test]
fn a_signal_ends_the_wait() {
    let env = TestEnv::repo();
    let (mut first, pid) = under_way(&env, "long");
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut command =
            env.recover_command(&[&["--lock-timeout", "10ms"][..], &step("long", "true")].concat());
        let said = env.work().join(format!("../said{signal}"));
        let file = std::fs::File::create(&said).unwrap();
        let mut second = command.stderr(file).stdout(Stdio::null()).spawn().unwrap();
        until("it waits", || {
            std::fs::read_to_string(&said)
                .unwrap()
                .contains("waiting for pid")
        });
        kill(signal, second.id());
        assert_eq!(second.wait().unwrap().code(), Some(code));
    }
    assert!(lives(&pid) && first.try_wait().unwrap().is_none());
    // A killed holder frees the one that waits, which tells of it.
    let waits = env.start(&step("long", "true"));
    std::thread::sleep(std::time::Duration::from_millis(200));
    kill("-KILL", first.id());
    first.wait().unwrap();
    let second = ended(waits).expect(0);
    assert!(second.stderr.contains("interrupted"), "{}", second.stderr);
    assert!(!lives(&pid));
}

// C4: a lane of five steps, killed at ten points and resumed each time: what is done is not run again.
#[test]
fn a_lane_that_is_killed_goes_on_where_it_was() {
    let env = TestEnv::repo();
    let recover = env!("CARGO_BIN_EXE_recover");
    let mut body = "set -e\n".to_owned();
    for number in 1..=5 {
        // The end is noted after the step: what was begun again after that would be a step run twice.
        body.push_str(&format!(
            "{recover} --run r step s{number} -- sh -c 'echo s{number} >> ../begun; sleep 0.08; echo s{number} >> ../ran'\n\
             echo s{number} >> ../done\n"
        ));
    }
    env.script("lane.sh", &body);
    for point in 0_u64..10 {
        let mut command = env.command("setsid");
        let mut lane = command
            .arg("./lane.sh")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(40 + point * 23));
        env.sh(&format!("kill -KILL -{}", lane.id()));
        lane.wait().unwrap();
    }
    env.sh("./lane.sh").expect(0);
    for number in 1..=5 {
        let name = format!("s{number}");
        let step = told(&env, &name);
        assert_eq!(step["status"], "done");
        let begun = env.sh(&format!("grep -cx {name} ../begun")).stdout;
        let executions = step["executions"].as_u64().unwrap();
        // Every execution but the last was interrupted.
        let ended: Vec<Value> = env
            .events("step_ended")
            .into_iter()
            .filter(|e| e["payload"]["name"] == *name)
            .collect();
        let done = ended
            .iter()
            .filter(|event| event["payload"]["status"] == "done")
            .count();
        assert_eq!((done, ended.len() as u64), (1, executions), "{ended:?}");
        assert!(begun.trim().parse::<u64>().unwrap() <= executions);
    }
    env.sh("./lane.sh").expect(0);
    let all = env.events("step_started").len();
    env.sh("./lane.sh").expect(0);
    assert_eq!(env.events("step_started").len(), all);
}

// state.md: what was in a checkpoint's events comes back; a step under way then is not taken for done, nor put back.
#[test]
fn finished_steps_survive_the_loss_of_the_ledger() {
    let env = TestEnv::repo();
    env.recover(&step("one", "true")).expect(0);
    env.recover(&[
        "--run", "r", "step", "two", "--stage", "pre_pr", "--", "true",
    ])
    .expect(0);
    let inner = format!(
        "{} --run r checkpoint create",
        env!("CARGO_BIN_EXE_recover")
    );
    env.recover(&[
        "--run",
        "r",
        "step",
        "three",
        "--atomic",
        "--",
        "sh",
        "-c",
        &format!("echo 3 > three; {inner}"),
    ])
    .expect(0);
    env.sh("rm -rf .ultraplan/state .git/recover/ledger-*")
        .expect(0);
    env.json(0, &["doctor", "--rebuild"]);
    for (name, status) in [("one", "done"), ("two", "done"), ("three", "cut_off")] {
        assert_eq!(told(&env, name)["status"], status, "{name}");
    }
    assert_eq!(env.read("three"), "3\n");
    env.recover(&step("one", "false")).expect(0);
}
