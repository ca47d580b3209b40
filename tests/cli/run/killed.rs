//! `recover` killed in the middle of an attempt: recognised, kept, resumed; nothing of it goes on behind one's back.

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::run::supervision::{kill, lives, until};

/// A run that completed one iteration and is in the middle of the second; `recover` is killed there. Returns the
/// child's pid.
fn killed_in_the_second(env: &TestEnv) -> String {
    env.script(
        "agent.sh",
        "echo $RECOVER_ITERATION.$RECOVER_ATTEMPT >> ../seen\n\
         if [ $RECOVER_ITERATION = 1 ]; then echo one > work; exit 0; fi\n\
         if [ -e ../again ]; then echo two > work; exit 0; fi\n\
         echo half > work; touch half-done; echo $$ > ../pid; sleep 300",
    );
    let mut run = env.start(&["--json", "run", "--iterations", "2", "--", "./agent.sh"]);
    let pid = env.await_line("../pid");
    kill("-KILL", run.id());
    run.wait().expect("it ends");
    env.sh("touch ../again");
    pid
}

/// What took no longer does not grow with each look: the attempt ended with its `recover`.
#[test]
fn a_killed_run_took_no_longer_than_it_lived() {
    let env = quick();
    let pid = killed_in_the_second(&env);
    kill("-KILL", pid.trim().parse().expect("a number"));
    let took = || {
        env.json(0, &["status"])["night"]["duration_ms"]
            .as_u64()
            .expect("a number")
    };
    let first = took();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let then = took();
    assert!(then < first + 1_000, "{first} ms, {then} ms");
}

/// B2 (`crash`): recognised without a word written; the next writing command ends the orphans and keeps
/// their work; the run goes on from the last checkpoint.
#[test]
fn a_killed_run_is_recognised_and_goes_on() {
    let env = quick();
    let pid = killed_in_the_second(&env);
    let before = env.read(".ultraplan/state/events.jsonl");
    let status = env.json(0, &["status"]);
    assert_eq!(
        (&status["failure"]["type"], &status["failure"]["cause"]),
        (&"crash".into(), &"CRASHED".into())
    );
    assert_eq!(
        (
            &status["failure"]["iteration"],
            &status["failure"]["attempt"]
        ),
        (&2.into(), &1.into())
    );
    assert_eq!(status["failure"]["recoverable"], true);
    env.json(0, &["retry-status", "--check"]);
    let goes_on = format!("(pid {pid}) is still running; its recover was killed");
    assert!(
        status["warnings"][0]
            .as_str()
            .is_some_and(|warning| warning.contains(&goes_on)),
        "{}",
        status["warnings"]
    );
    let found = &env.json(0, &["doctor"])["problems"][0];
    assert_eq!(
        (&found["code"], &found["severity"], &found["repairable"]),
        (&"left_running".into(), &"warning".into(), &true.into())
    );
    assert_eq!(
        env.read(".ultraplan/state/events.jsonl"),
        before,
        "looking writes nothing"
    );
    assert!(lives(&pid), "nor does it end anything");

    let resumed = env.json(0, &["resume"]);
    assert!(
        !lives(&pid),
        "the orphan is ended before anything else is done"
    );
    assert_eq!(resumed["outcome"], "complete", "{resumed}");
    assert_eq!(
        resumed["iterations"][1]["attempts"][0]["failure"]["cause"],
        "CRASHED"
    );
    assert_eq!(env.read("work"), "two\n");
    assert_eq!(env.sh("cat ../seen").stdout, "1.1\n2.1\n2.2\n");

    let list = env.json(0, &["checkpoint", "list"]);
    let kept = list["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["trigger"] == "crash")
        .expect("kept");
    let id = kept["id"].as_str().unwrap();
    let shown = env.json(0, &["checkpoint", "show", id]);
    assert!(
        shown["files"]
            .as_array()
            .unwrap()
            .iter()
            .any(|file| file["path"] == "half-done"),
        "nothing is lost"
    );
    assert!(!env.exists("half-done"), "from the last checkpoint");
}

/// Any writing command settles first.
#[test]
fn any_writing_command_records_the_crash() {
    let env = quick();
    let pid = killed_in_the_second(&env);
    let ran = env.recover(&["checkpoint", "create"]).expect(0);
    let said: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.contains("had lost its supervisor"))
        .collect();
    assert!(
        said.len() == 1 && said[0].starts_with("note: attempt 1 of iteration 2 of run "),
        "{ran:?}"
    );
    until("the orphan is gone", || !lives(&pid));
    assert_eq!(env.json(0, &["status"])["failure"]["type"], "crash");
    assert_eq!(
        env.read("work"),
        "half\n",
        "the work tree is left as it was"
    );
    assert_eq!(env.events("attempt_ended").len(), 2);
}

/// What doctor names, its repair ends: the command is gone, what it left is a checkpoint, nothing is wrong any more.
#[test]
fn the_command_of_a_killed_run_is_ended_by_a_repair() {
    let env = quick();
    let pid = killed_in_the_second(&env);
    assert!(
        env.recover(&["doctor"])
            .expect(0)
            .stdout
            .contains("doctor --repair"),
        "the way is named"
    );
    let report = env.json(0, &["doctor", "--repair"]);
    assert_eq!(report["problems"], serde_json::json!([]));
    assert!(
        report["repaired"][0]
            .as_str()
            .is_some_and(|done| done.contains("recorded as a crash")),
        "{report}"
    );
    until("the orphan is gone", || !lives(&pid));
    assert!(env.json(0, &["status"])["warnings"].is_null());
}

/// What the command started counts as well, once the command itself has ended.
#[test]
fn what_a_killed_runs_command_started_is_named() {
    let env = quick();
    let wait = "while [ ! -e ../end ]; do sleep 0.1; done";
    env.script(
        "agent.sh",
        &format!("sleep 300 & echo $! > ../pid; echo $$ > ../shell; {wait}"),
    );
    let mut run = env.start(&["run", "--", "./agent.sh"]);
    let (pid, shell) = (env.await_line("../pid"), env.await_line("../shell"));
    kill("-KILL", run.id());
    run.wait().unwrap();
    env.sh("touch ../end");
    until("the command itself has ended", || !lives(&shell));
    assert!(lives(&pid));
    assert_eq!(
        env.json(0, &["doctor"])["problems"][0]["code"],
        "left_running"
    );
    env.json(0, &["doctor", "--repair"]);
    until("what it started is gone", || !lives(&pid));
}

/// Budgets: three crashes and no more.
#[test]
fn crashes_are_counted() {
    let env = quick();
    env.script("agent.sh", "echo $$ > ../pid-$RECOVER_ATTEMPT; sleep 300");
    for attempt in 1..=3 {
        let args: &[&str] = if attempt == 1 {
            &["run", "--", "./agent.sh"]
        } else {
            &["resume"]
        };
        let mut run = env.start(args);
        env.await_line(&format!("../pid-{attempt}"));
        kill("-KILL", run.id());
        run.wait().unwrap();
    }
    env.json(7, &["retry-status", "--check"]);
    env.json(7, &["resume"]);
    env.json(7, &["retry-status", "--check"]);
    assert!(!env.exists("../pid-4"));
}

/// A command that dies by itself is a crash too.
#[test]
fn a_child_that_dies_is_a_crash() {
    let env = quick();
    let document = env.json(
        0,
        &[
            "run",
            "--",
            "sh",
            "-c",
            "[ $RECOVER_ATTEMPT = 2 ] || kill -SEGV $$",
        ],
    );
    let attempt = &document["iterations"][0]["attempts"][0];
    assert_eq!(
        (&attempt["failure"]["type"], &attempt["signal"]),
        (&"crash".into(), &"SIGSEGV".into())
    );
}

/// Killed between two attempts: the run goes on where it stood.
#[test]
fn killed_in_a_cooldown() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = \"1s\"\n");
    let check = "test=test -e fixed || { echo 'assert 1 == 2'; exit 1; }";
    let mut run = env.start(&[
        "run",
        "--feedback",
        check,
        "--",
        "sh",
        "-c",
        "echo x >> ../tries",
    ]);
    until("the cooldown", || {
        env.recover(&["retry-status", "--check"]).code == 6
    });
    kill("-KILL", run.id());
    run.wait().unwrap();
    env.write("fixed", "");
    let resumed = env.json(0, &["resume", "--wait"]);
    assert_eq!(resumed["outcome"], "complete");
    assert_eq!(env.sh("cat ../tries").stdout.lines().count(), 2);
}

/// A feedback loop that was under way is ended too, and so is a command that had just been started.
#[test]
fn orphans_that_were_not_recorded_are_ended() {
    let env = quick();
    let mut run = env.start(&[
        "run",
        "--feedback",
        "test=echo $$ > ../pid; sleep 300; true",
        "--",
        "true",
    ]);
    let pid = env.await_line("../pid");
    kill("-KILL", run.id());
    run.wait().unwrap();
    assert!(lives(&pid));
    env.json(0, &["checkpoint", "create"]);
    assert!(!lives(&pid));

    for attempt in 0..5 {
        let mut run = env.start(&[
            "run",
            "--run",
            &format!("r{attempt}"),
            "--",
            "sh",
            "-c",
            &format!("echo $$ > ../early-{attempt}; sleep 300; true"),
        ]);
        let pid = env.await_line(&format!("../early-{attempt}"));
        kill("-KILL", run.id());
        run.wait().unwrap();
        env.json(
            0,
            &["checkpoint", "create", "--run", &format!("r{attempt}")],
        );
        assert!(!lives(&pid), "attempt {attempt}");
    }
}

/// Killed after a decision to give an iteration up, before that is recorded: the next one is what comes.
#[test]
fn killed_before_an_iteration_is_given_up() {
    for (iterations, code, outcome, statuses) in [
        ("2", 8, "escalated", &["skipped", "completed"][..]),
        ("1", 8, "escalated", &["skipped"]),
    ] {
        let env = quick();
        let check = "test=test $RECOVER_ITERATION = 2 || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";
        let args = [
            "run",
            "--run",
            "r",
            "--iterations",
            iterations,
            "--feedback",
            check,
            "--",
        ];
        let script = "echo $RECOVER_ITERATION.$RECOVER_ATTEMPT >> ../seen";
        env.json(8, &[&args[..], &["sh", "-c", script]].concat());
        // The ledger as it was then.
        let ledger = env.read_state("events.jsonl");
        let skip = ledger
            .lines()
            .position(|line| line.contains("\"iteration_changed\""))
            .expect("given up");
        let lines: Vec<&str> = ledger.lines().take(skip).collect();
        let cut = lines.join("\n") + "\n";
        env.write_state("events.jsonl", &cut);
        env.sh(
            "rm .ultraplan/state/recover/ledger-created .git/recover/ledger-*; rm -f .ultraplan/state/recover/*.cache",
        )
        .expect(0);
        for id in env
            .git(&["for-each-ref", "--format=%(refname)", "refs/recover"])
            .lines()
        {
            if !cut.contains(id.rsplit('/').next().expect("an id")) {
                env.git(&["update-ref", "-d", id]);
            }
        }
        env.sh("git reset -q --hard; git clean -qfd -e .ultraplan")
            .expect(0);

        let status = env.json(0, &["status"]);
        assert_eq!(status["run"]["status"], "paused", "{status:#}");
        assert_eq!(env.json(0, &["retry-status", "--check"])["can_retry"], true);
        let resumed = env.recover(&["--json", "resume"]).expect(code);
        assert!(
            resumed.stderr.contains("iteration 1 of run r is given up"),
            "{}",
            resumed.stderr
        );
        let resumed = resumed.json();
        assert_eq!(resumed["outcome"], outcome, "{resumed:#}");
        let all: Vec<&str> = resumed["iterations"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["status"].as_str())
            .collect();
        assert_eq!(all, statuses);
        env.json(8, &["resume"]);
    }
}
