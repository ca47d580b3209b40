//! An iteration that is given up: its files go back before the next one begins, and a person hears of it.

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv};
use crate::run::attempts::quick;
use crate::run::supervision::{self, ended};

/// The first of its iterations breaks what all others build on.
const AGENT: &str = "if [ $RECOVER_ITERATION = 1 ]; then echo broken $RECOVER_ATTEMPT > base; echo mine > hopeless; \
                     else echo done > work-$RECOVER_ITERATION; fi";
/// Fails as long as that is there.
const CHECK: &str =
    "test=! grep -q broken base || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";

fn project() -> TestEnv {
    let env = quick();
    env.write("base", "sound\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "base"]);
    env
}

fn three(env: &TestEnv, agent: &str) -> Ran {
    env.recover(&[
        "--json",
        "run",
        "--run",
        "r",
        "--iterations",
        "3",
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        agent,
    ])
}

fn statuses(document: &Value) -> Vec<&str> {
    let all = document["iterations"]
        .as_array()
        .unwrap_or_else(|| panic!("{document}"));
    all.iter()
        .filter_map(|one| one["status"].as_str())
        .collect()
}

/// The command that a note about an iteration that was given up prints.
fn printed(document: &Value) -> String {
    let notes = document["warnings"]
        .as_array()
        .unwrap_or_else(|| panic!("{document}"));
    let note = notes
        .iter()
        .filter_map(Value::as_str)
        .find(|note| note.contains("was given up"))
        .expect("a note");
    let (_, command) = note
        .split_once("get its work back: ")
        .unwrap_or_else(|| panic!("{note}"));
    command.replacen("recover", env!("CARGO_BIN_EXE_recover"), 1)
}

// A2, A7: what follows is tried on what was there before it.
#[test]
fn the_next_iteration_begins_where_the_one_given_up_began() {
    let env = project();
    let ran = three(&env, AGENT).expect(8);
    let document = ran.json();
    assert_eq!(document["outcome"], "escalated");
    assert_eq!(
        statuses(&document),
        ["skipped", "completed", "completed"],
        "{document:#}"
    );
    assert_eq!(env.read("base"), "sound\n");
    assert!(!env.exists("hopeless") && env.exists("work-2") && env.exists("work-3"));
    // Its work is had back with the printed command.
    assert!(
        ran.stderr.contains("iteration 1 was given up"),
        "{}",
        ran.stderr
    );
    let back = env.sh(&format!("cd / && {}", printed(&document)));
    assert_eq!(
        (back.code, env.read("base").as_str()),
        (0, "broken 3\n"),
        "{back:?}"
    );
    assert_eq!(env.read("hopeless"), "mine\n");
    assert!(
        env.exists("work-2") && env.exists("work-3"),
        "what came after it stays"
    );
    env.json(0, &["undo"]);
    assert!(env.exists("work-3") && !env.exists("hopeless"));
}

// What was tried and failed before is said by name, with the command that judges it; the next iteration hears what was left.
#[test]
fn prompts_say_what_was_tried_and_what_was_given_up() {
    let env = project();
    env.write("prompt.md", "Do it.\n");
    let agent = format!("cat > ../prompt.$RECOVER_ITERATION.$RECOVER_ATTEMPT; {AGENT}");
    let all = [
        "run",
        "--run",
        "r",
        "--iterations",
        "2",
        "--prompt-file",
        "prompt.md",
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        &agent,
    ];
    env.recover(&all).expect(8);
    let check = CHECK.strip_prefix("test=").unwrap();
    let again = env.read("../prompt.1.2");
    for part in [
        &format!("Failing checks:\n- test: {check}\n"),
        "  Files: base, hopeless\n",
        "DIFFERENT approach",
    ] {
        assert!(again.contains(part), "{part}: {again}");
    }
    assert!(!again.contains("## Given Up"), "{again}");
    let next = env.read("../prompt.2.1");
    assert!(
        next.starts_with(
            "Do it.\n\n## Given Up\n\nIteration 1 was given up after 3 attempts.\nFiles: base"
        ),
        "{next}"
    );
    assert!(
        next.contains("Error: test: Failed: t.py::test_a") && !next.contains("DIFFERENT"),
        "{next}"
    );
}

// A time limit is no wrong approach.
#[test]
fn an_attempt_that_ran_out_of_time_was_interrupted() {
    let env = quick();
    env.write("prompt.md", "Do it.\n");
    let agent = "cat > ../prompt.$RECOVER_ATTEMPT; [ $RECOVER_ATTEMPT != 1 ] || sleep 60";
    let all = [
        "run",
        "--prompt-file",
        "prompt.md",
        "--timeout",
        "2s",
        "--",
        "sh",
        "-c",
        agent,
    ];
    env.recover(&all).expect(0);
    let again = env.read("../prompt.2");
    assert!(
        again.starts_with("Do it.\n\n## Interrupted\n\nYou were interrupted; go on."),
        "{again}"
    );
    assert!(!again.contains("DIFFERENT"), "{again}");
}

#[test]
fn after_the_last_iteration_nothing_goes_back() {
    let env = project();
    let agent = "[ $RECOVER_ITERATION = 3 ] && echo broken > base; true";
    let document = three(&env, agent).expect(8).json();
    assert_eq!(statuses(&document), ["completed", "completed", "skipped"]);
    assert_eq!(env.read("base"), "broken\n");
    let none: &[Value] = &[];
    assert_eq!(env.events("restored"), none);
}

#[test]
fn files_are_kept_where_that_is_configured() {
    for config in [
        "[retry]\non_give_up = \"keep\"\n",
        "[rollback]\nenabled = false\n",
    ] {
        let env = project();
        env.write(
            ".ultraplan/recover.toml",
            format!("cooldown.duration = \"10ms\"\n{config}"),
        );
        let document = three(&env, AGENT).expect(8).json();
        // Each fails for what the first one left until its own attempts used.
        assert_eq!(document["outcome"], "escalated", "{config}");
        assert_eq!(
            statuses(&document),
            ["skipped", "skipped", "skipped"],
            "{config}: {document:#}"
        );
        assert_eq!(env.read("base"), "broken 3\n");
    }
}

/// Commits of the run go, other people's and hand edits stop it.
#[test]
fn commits_of_the_run_are_rolled_back_with_it() {
    let env = project();
    let agent = "if [ $RECOVER_ITERATION = 1 ]; then echo broken $RECOVER_ATTEMPT > base; git commit -qam wip; else echo done > work-$RECOVER_ITERATION; git add work-*; git commit -qam fine; fi";
    let document = three(&env, agent).expect(8).json();
    assert_eq!(
        statuses(&document),
        ["skipped", "completed", "completed"],
        "{document:#}"
    );
    assert_eq!(env.read("base"), "sound\n");
    assert!(!env.git(&["log", "--format=%s"]).contains("wip"));
}

// A7: nothing of a person is ever taken back unasked.
#[test]
fn edits_by_hand_meanwhile_stop_the_run_and_nothing_is_touched() {
    // Between the last attempt and the next iteration, and between two attempts.
    for (cooldown, until) in [("10ms", "echo hand >> a.txt; false"), ("2s", "false")] {
        let env = project();
        env.write(
            ".ultraplan/recover.toml",
            format!("cooldown.duration = \"{cooldown}\"\n"),
        );
        let args = [
            "--json",
            "run",
            "--run",
            "r",
            "--iterations",
            "3",
            "--until",
            until,
            "--feedback",
            CHECK,
        ];
        let child = env.start(&[&args[..], &["--", "sh", "-c", AGENT]].concat());
        if until == "false" {
            let ledger = env.work().join(".ultraplan/state/events.jsonl");
            let ends = || {
                std::fs::read_to_string(&ledger)
                    .unwrap_or_default()
                    .matches("\"attempt_ended\"")
                    .count()
            };
            supervision::until("a failed attempt", || ends() == 1);
            env.write("a.txt", "one\nhand\n");
        }
        let ran = ended(child).expect(8);
        let document = ran.json();
        assert_eq!(document["outcome"], "escalated", "{document:#}");
        assert_eq!(statuses(&document), ["skipped"], "{document:#}");
        assert_eq!(
            (env.read("base").as_str(), env.read("hopeless").as_str()),
            ("broken 3\n", "mine\n")
        );
        assert!(env.read("a.txt").contains("hand"));
        assert!(ran.stderr.contains("its files stay"), "{}", ran.stderr);
        if until == "false" {
            // What is recommended says what becomes of the person's line, and how it comes again.
            assert!(
                ran.stderr
                    .contains("a.txt changed from outside during the attempt"),
                "{}",
                ran.stderr
            );
            let back = env.json(0, &["rollback", "--to", "initial"]);
            let notes: Vec<&str> = back["warnings"]
                .as_array()
                .expect("notes")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            let note = notes
                .iter()
                .find(|note| note.contains("a.txt is restored too"))
                .expect("a note");
            assert!(!env.read("a.txt").contains("hand"));
            let (_, again) = note
                .split_once("get that change back: ")
                .expect("a command");
            env.sh(&again.replacen("recover", env!("CARGO_BIN_EXE_recover"), 1))
                .expect(0);
            assert_eq!(
                (env.read("a.txt").as_str(), env.read("base").as_str()),
                ("one\nhand\n", "sound\n")
            );
            env.json(0, &["undo"]);
            env.json(0, &["undo"]);
            let plan = ["resume", "--strategy", "rollback_and_retry", "--dry-run"];
            assert!(
                env.recover(&plan)
                    .expect(0)
                    .stderr
                    .contains("a.txt is restored too")
            );
        }
        let status = env.json(0, &["status"]);
        assert_eq!(status["run"]["status"], "escalated");
        let options = status["options"]
            .as_array()
            .unwrap_or_else(|| panic!("{status}"));
        let accept = options
            .iter()
            .find(|one| one["strategy"] == "continue_next")
            .expect("an option");
        assert_eq!(
            (&accept["available"], &accept["recommended"]),
            (&true.into(), &false.into()),
            "{status}"
        );
        assert_eq!(env.json(8, &["resume"])["executed"], false);
    }
}

#[test]
fn commits_of_others_stop_the_run() {
    let env = project();
    let until = "git -c user.name=Other commit -q --allow-empty -m theirs; false";
    let args = [
        "--json",
        "run",
        "--iterations",
        "3",
        "--until",
        until,
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        AGENT,
    ];
    let ran = env.recover(&args).expect(8);
    assert_eq!(statuses(&ran.json()), ["skipped"]);
    assert!(env.git(&["log", "--format=%s"]).contains("theirs"));
    assert_eq!(env.read("base"), "broken 3\n");
}

#[test]
fn what_was_there_when_an_iteration_began_stays_there() {
    let env = project();
    // A person's edit between the first and the second iteration is no part of the second one's work.
    let agent = "[ $RECOVER_ITERATION = 2 ] && echo broken > base; echo $RECOVER_ITERATION > work";
    let until = "[ -e ../once ] || { touch ../once; echo hand > by-hand; }; false";
    let args = [
        "--json",
        "run",
        "--iterations",
        "3",
        "--until",
        until,
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        agent,
    ];
    let document = env.recover(&args).expect(8).json();
    assert_eq!(
        statuses(&document),
        ["completed", "skipped", "completed"],
        "{document:#}"
    );
    assert_eq!(
        (env.read("by-hand").as_str(), env.read("base").as_str()),
        ("hand\n", "sound\n")
    );
}

/// A7, B3: the outcome is escalated until what was given up is fixed, or a person accepts it.
#[test]
fn what_was_given_up_is_a_persons_until_it_is_accepted() {
    let env = project();
    let agent = "[ $RECOVER_ITERATION = 2 ] || echo broken > base; true";
    let document = three(&env, agent).expect(8).json();
    assert_eq!(
        statuses(&document),
        ["skipped", "completed", "skipped"],
        "{document:#}"
    );
    // The last one is fixed by hand: the first is still given up.
    env.json(0, &["manual-fix", "start"]);
    env.write("base", "sound again\n");
    env.json(0, &["manual-fix", "verify"]);
    let continued = env.json(8, &["manual-fix", "continue"]);
    assert_eq!(continued["outcome"], "escalated", "{continued:#}");
    assert_eq!(env.json(8, &["resume"])["run"]["status"], "escalated");
    let status = env.json(0, &["status"]);
    let accept = status["options"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["strategy"] == "continue_next")
        .unwrap();
    assert_eq!(
        (&accept["available"], &accept["reason"]),
        (&true.into(), &Value::Null)
    );
    let resumed = env.json(0, &["resume", "--strategy", "continue_next"]);
    assert_eq!(
        (&resumed["outcome"], &resumed["run"]["status"]),
        (&json!("complete"), &json!("complete"))
    );
    assert_eq!(env.read("base"), "sound again\n");
}

// A7: who takes the run up begins with that.
#[test]
fn a_kill_before_the_files_go_back_is_made_up_for() {
    let env = project();
    // The goal's check runs between the two: there the supervisor is killed, once.
    let until = "[ -e ../once ] || { touch ../once; kill -9 $PPID; sleep 5; }; false";
    let args = [
        "run",
        "--run",
        "r",
        "--iterations",
        "3",
        "--until",
        until,
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        AGENT,
    ];
    assert_eq!(env.recover(&args).code, 128 + 9);
    assert_eq!(env.read("base"), "broken 3\n");
    let document = env.json(8, &["resume", "r"]);
    assert_eq!(
        statuses(&document),
        ["skipped", "completed", "completed"],
        "{document:#}"
    );
    assert!(!env.exists("hopeless"));
}

#[test]
fn a_kill_while_the_files_go_back_is_finished() {
    let env = project();
    if env.sh("command -v strace").code != 0 {
        assert!(std::env::var_os("CI").is_none(), "strace is missing");
        eprintln!("skipped: strace is missing");
        return;
    }
    env.write("agent", AGENT);
    let recover = env!("CARGO_BIN_EXE_recover");
    let kill =
        "strace -f -o /dev/null -P base -e inject=rename,renameat,renameat2:signal=SIGKILL:when=1";
    let check = CHECK.replace('\'', "'\\''");
    let run =
        format!("{kill} {recover} run --run r --iterations 3 --feedback '{check}' -- sh agent");
    assert_ne!(env.sh(&run).code, 0);
    assert!(env.exists(".git/recover/journal.json"));
    // The next command that writes finishes it, whatever it is.
    env.json(0, &["checkpoint", "create", "--run", "other"]);
    assert_eq!(env.read("base"), "sound\n");
    let document = env.json(8, &["resume", "r"]);
    assert_eq!(
        statuses(&document),
        ["skipped", "completed", "completed"],
        "{document:#}"
    );
    assert!(!env.exists("hopeless") && env.exists("work-3"));
}

/// L3: after an error the loop's own state is cleared, after each of them; the rest of the memory goes back.
#[test]
fn the_loops_state_stays_cleared_error_after_error() {
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[memory]\nloop_state = [\"loop.json\"]\n[cooldown]\nduration = \"10ms\"\n",
    );
    env.write_state("loop.json", "{}");
    env.write_state("notes.md", "one\n");
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    for _ in 0..3 {
        env.write_state("notes.md", "two\n");
        env.json(
            0,
            &[
                "attempt",
                "fail",
                "--run",
                "r",
                "--message",
                "an error",
                "--exit-code",
                "1",
            ],
        );
        assert_eq!(env.read_state("notes.md"), "one\n");
        assert!(!env.exists(".ultraplan/state/loop.json"));
    }
}

// What a run rolled back by itself is the run's: undo passes over it, and takes it back only where that is asked for and
// confirmed. The run stands where it did.
#[test]
fn undo_passes_over_what_the_run_did_by_itself() {
    let env = project();
    three(&env, AGENT).expect(8);
    let status = |env: &TestEnv| env.json(0, &["status"])["run"]["status"].clone();
    let before = status(&env);
    let error = env.error(4, &["undo"]);
    assert!(
        error["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("--of-run")),
        "{error}"
    );
    assert_eq!(env.read("base"), "sound\n");
    let error = env.error(13, &["undo", "--of-run"]);
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.contains("rollback of run") && message.contains("2 attempts"),
        "{message}"
    );
    assert!(env.exists("work-3"));
    env.json(0, &["undo", "--of-run", "--dry-run"]);
    env.json(0, &["undo", "--of-run", "--yes"]);
    assert_eq!(
        (
            env.read("base").as_str(),
            env.exists("work-3"),
            status(&env)
        ),
        ("broken 3\n", false, before.clone())
    );
    env.json(0, &["redo"]);
    assert_eq!(
        (
            env.read("base").as_str(),
            env.exists("work-3"),
            status(&env)
        ),
        ("sound\n", true, before)
    );
    // What a script asked for goes back unasked.
    env.json(0, &["rollback", "--full"]);
    env.json(0, &["undo"]);
    assert!(env.exists("work-3"));
}

// An undo over what was done since needs a yes; a rollback and its undo, one after the other, need none.
#[test]
fn an_undo_over_later_work_needs_a_yes() {
    let env = project();
    for name in ["one", "two"] {
        let line = format!("echo {name} > {name}");
        env.json(0, &["run", "--run", name, "--", "sh", "-c", &line]);
    }
    env.json(0, &["rollback", "--run", "one", "--full"]);
    assert!(!env.exists("one") && !env.exists("two"));
    env.json(0, &["undo"]);
    assert!(env.exists("one") && env.exists("two"));
    env.json(0, &["rollback", "--run", "two", "--full"]);
    env.json(
        0,
        &[
            "run",
            "--run",
            "three",
            "--",
            "sh",
            "-c",
            "echo three > three",
        ],
    );
    let error = env.error(13, &["undo"]);
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("1 attempt of run three")),
        "{error}"
    );
    env.json(0, &["undo", "--yes"]);
    assert!(env.exists("two") && !env.exists("three"));
}

// What the program itself took back is nobody's change: an attempt is compared with what it began with.
#[test]
fn an_attempt_is_not_blamed_for_what_was_rolled_back_before_it() {
    let env = project();
    three(&env, AGENT).expect(8);
    let checkpoints = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
    let of = |iteration: u64| {
        let mut all = checkpoints.as_array().expect("a list").iter();
        all.rfind(|one| one["after_iteration"] == iteration && one["attempt"] == 1)
            .expect("one")
            .clone()
    };
    let second = of(2);
    assert_eq!(
        (
            &second["changes"]["deleted"],
            &second["changes"]["modified"]
        ),
        (&0.into(), &0.into()),
        "{second:#}"
    );
    let shown = env
        .recover(&[
            "checkpoint",
            "show",
            second["id"].as_str().unwrap(),
            "--patch",
        ])
        .expect(0)
        .stdout;
    assert!(
        shown.contains("work-2") && !shown.contains("hopeless"),
        "{shown}"
    );
}
