//! `doctor --rebuild`: history from the checkpoints, after the ledger was lost or damaged (state.md).

use serde_json::Value;

use crate::env::TestEnv;
use crate::seen::{assert_clean, text};

const LEDGER: &str = ".ultraplan/state/events.jsonl";

/// A run with a good iteration and a second one that failed twice: its cooldown and its counts are known.
fn failed_run() -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2030-01-01T00:00:00.000Z")
        .set("RECOVER_TEST_SEED", "1");
    env.script(
        "agent.sh",
        "echo $RECOVER_ITERATION >> state; test $RECOVER_ITERATION = 1 || { echo boom >&2; exit 3; }",
    );
    let run = [
        "run",
        "--run",
        "r",
        "--task",
        "T",
        "--iterations",
        "2",
        "--attempts",
        "3",
        "--no-wait",
        "--",
    ];
    env.json(6, &[&run[..], &["./agent.sh"]].concat());
    env.set("RECOVER_TEST_NOW", "2030-01-01T01:00:00.000Z");
    env.sh("echo 2 >> state").expect(0);
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "r",
            "--exit-code",
            "3",
            "--message",
            "boom",
        ],
    );
    env
}

/// State directory and second name of the ledger are gone.
fn lose(env: &TestEnv) {
    env.sh("rm -rf .ultraplan/state .git/recover/ledger-*")
        .expect(0);
}

fn standing(env: &TestEnv) -> Vec<Value> {
    let retry = env.json(0, &["retry-status"]);
    let keys = [
        "error_count",
        "attempts_left",
        "max_attempts",
        "retry_after",
        "budgets",
        "last_error",
    ];
    let mut all: Vec<Value> = keys.iter().map(|key| retry[key].clone()).collect();
    let status = env.json(0, &["status"]);
    all.extend([&status["run"], &status["failure"], &status["iterations"]].map(Clone::clone));
    let list = env.json(0, &["checkpoint", "list"]);
    all.push(list["checkpoints"].clone());
    all
}

// state.md: nothing that was checkpointed is lost: attempts, failures, decisions, budgets, checkpoints.
#[test]
fn history_comes_back_from_the_references() {
    let mut env = failed_run();
    let (before, ledger) = (standing(&env), env.read(LEDGER));
    assert_eq!(before[0], 2, "two failures: {before:?}");
    lose(&env);
    let found = env.json(12, &["doctor"]);
    assert_eq!(found["problems"][0]["code"], "lost_ledger", "{found}");
    let planned = env.json(12, &["--dry-run", "doctor", "--rebuild"]);
    assert!(
        !env.exists(LEDGER) && planned["rebuilt"]["changed"] == true,
        "{planned}"
    );
    let done = env.json(0, &["doctor", "--rebuild"]);
    assert_eq!(done["rebuilt"]["checkpoints"], 4, "{done}");
    assert_eq!(
        (&done["rebuilt"]["attempts"], &done["rebuilt"]["failures"]),
        (&3.into(), &2.into())
    );
    let kind = |text: &str| {
        text.lines()
            .filter(|line| line.contains("attempt_ended"))
            .count()
    };
    assert_eq!(kind(&env.read(LEDGER)), kind(&ledger));
    assert_eq!(standing(&env), before);
    assert!(env.exists(".ultraplan/state/recovery.json"));

    env.set("RECOVER_TEST_NOW", "2030-01-01T02:00:00.000Z");
    env.json(0, &["rollback", "--to", "good"]);
    assert_eq!(env.read("state"), "1\n");
    env.json(0, &["undo"]);
    assert_eq!(env.read("state"), "1\n2\n2\n");
    // The budget is not reset: the third failure is the last.
    let last = env.json(8, &["resume", "--strategy", "retry_same", "--wait"]);
    assert_eq!(last["decision"]["attempts_used"], 3, "{last}");
    assert_eq!(
        env.json(0, &["doctor", "--rebuild"])["rebuilt"]["changed"],
        false
    );
    assert_clean(&env);
}

// The same where another ledger was begun while the references were not there.
#[test]
fn history_is_joined_with_what_was_recorded_since() {
    let mut env = failed_run();
    let before = standing(&env);
    lose(&env);
    env.recover(&["checkpoint", "create"]).expect(12);
    env.sh("mv .git/refs/recover ../refs").expect(0);
    env.set("RECOVER_TEST_NOW", "2030-01-01T01:30:00.000Z");
    env.write("other", "1\n");
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    assert_ne!(standing(&env)[0], before[0]);
    env.sh("cp -r ../refs/. .git/refs/recover").expect(0);
    assert!(
        text(&env.json(12, &["checkpoint", "create"])["error"]["hint"])
            .contains("doctor --rebuild")
    );
    let done = env.json(0, &["doctor", "--rebuild"]);
    let kept = text(&done["rebuilt"]["kept_aside"]);
    assert!(
        std::path::Path::new(&kept).exists() && kept.contains("damaged"),
        "{kept}"
    );
    let after = standing(&env);
    assert_eq!(after[..2], before[..2]);
    assert_eq!(
        after[9].as_array().unwrap().len(),
        before[9].as_array().unwrap().len() + 1
    );
}

// Exit 12: a damaged ledger is kept aside, what can be read of it is taken over; never unasked.
#[test]
fn a_damaged_ledger_is_kept_aside() {
    let env = failed_run();
    env.json(0, &["log"]);
    let before = standing(&env);
    let good = env.read(LEDGER);
    let lines: Vec<&str> = good.split_inclusive('\n').collect();
    let mut flipped = good.clone().into_bytes();
    let at = lines[..4].concat().len() + 30;
    flipped[at] ^= 1;
    for bytes in [flipped, Vec::new(), b"rubbish\n".repeat(100)] {
        env.sh("rm .ultraplan/state/events.jsonl .git/recover/ledger-* .ultraplan/state/recover/fold.cache")
            .stdout
            .clear();
        env.write(LEDGER, &bytes);
        let error = env.json(12, &["status"])["error"].clone();
        assert!(text(&error["hint"]).contains("doctor --rebuild"), "{error}");
        assert_eq!(
            env.json(12, &["--dry-run", "doctor", "--rebuild"])["rebuilt"]["changed"],
            true
        );
        assert_eq!(std::fs::read(env.work().join(LEDGER)).unwrap(), bytes);
        let done = env.json(0, &["doctor", "--rebuild"]);
        let kept = text(&done["rebuilt"]["kept_aside"]);
        assert_eq!(std::fs::read(kept).unwrap(), bytes);
        assert_eq!(standing(&env), before, "{done}");
    }
}

// A project that was moved: the recorded places are gone.
#[test]
fn a_moved_project_is_rebuilt_at_its_new_place() {
    let env = failed_run();
    let before = standing(&env);
    lose(&env);
    env.sh("cd .. && cp -r work moved && mv work gone && mkdir work")
        .expect(0);
    let moved = env.root().join("moved");
    let at = ["-C", moved.to_str().unwrap(), "--state-dir", "elsewhere"];
    env.json(0, &[&at[..], &["doctor", "--rebuild"]].concat());
    let retry = env.json(0, &[&at[..], &["retry-status"]].concat());
    assert_eq!(
        (&retry["error_count"], &retry["attempts_left"]),
        (&before[0], &before[1])
    );
    let back = env.json(
        0,
        &[&at[..], &["rollback", "--to", "good", "--edits", "discard"]].concat(),
    );
    assert_eq!(back["changed"], true);
    assert_eq!(std::fs::read_to_string(moved.join("state")).unwrap(), "1\n");
}

// The same where the state directory moved along: the ledger is whole, only its places are the old ones.
#[test]
fn a_project_that_moved_with_its_ledger_is_found_again() {
    let env = failed_run();
    let before = standing(&env);
    env.sh("cd .. && mv work moved && mkdir work").expect(0);
    let moved = env.root().join("moved");
    taken_over(&env, &moved, &before);
}

// The same for a copy, whose original is there still: both have their own from then on.
#[test]
fn a_copy_of_a_project_has_its_own_history() {
    let env = failed_run();
    let before = standing(&env);
    env.sh("cd .. && cp -r work copy").expect(0);
    taken_over(&env, &env.root().join("copy"), &before);
    assert_eq!(standing(&env), before);
    assert_eq!(
        env.json(0, &["doctor", "--rebuild"])["rebuilt"]["changed"],
        false
    );
    assert_eq!(env.read("state"), "1\n2\n2\n");
}

/// A project that has another place now says so, and after a rebuild all that was recorded is found there.
fn taken_over(env: &TestEnv, place: &std::path::Path, before: &[Value]) {
    let folder = place.to_string_lossy();
    let at = |code, args: &[&str]| env.json(code, &[&["-C", &*folder], args].concat());
    let lost = env.recover(&["-C", &*folder, "status"]).expect(4);
    assert!(
        lost.stderr
            .contains("doctor --rebuild` takes its runs over"),
        "{}",
        lost.stderr
    );
    assert_eq!(at(12, &["doctor"])["problems"][0]["code"], "moved_project");
    assert_eq!(at(0, &["doctor", "--rebuild"])["rebuilt"]["changed"], true);
    let retry = at(0, &["retry-status"]);
    assert_eq!(
        (&retry["error_count"], &retry["attempts_left"]),
        (&before[0], &before[1])
    );
    let report = at(0, &["report", "--format", "json"]);
    let attempts = report["report"]["attempts"].as_array().expect("a list");
    let logs: Vec<&str> = attempts
        .iter()
        .filter_map(|one| one["log_path"].as_str())
        .collect();
    let is_there = |log: &&str| {
        std::path::Path::new(log).starts_with(place) && std::path::Path::new(log).exists()
    };
    assert!(!logs.is_empty() && logs.iter().all(is_there), "{logs:?}");
    at(0, &["rollback", "--to", "good", "--edits", "discard"]);
    assert_eq!(
        std::fs::read_to_string(place.join("state")).expect("it is there"),
        "1\n"
    );
    assert_eq!(at(0, &["doctor", "--rebuild"])["rebuilt"]["changed"], false);
    assert_eq!(at(0, &["doctor"])["problems"], serde_json::json!([]));
}

// B8: a manual fix that was carried on with is over after a rebuild too.
#[test]
fn a_completed_manual_fix_stays_completed() {
    let env = crate::morning::manual_fix::failed_run();
    let run = env.json(0, &["manual-fix", "start"])["run"]["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    env.json(0, &["checkpoint", "create", "--run", &run]);
    let before = env.json(0, &["status"])["manual_fix"].clone();
    lose(&env);
    env.json(0, &["doctor", "--rebuild"]);
    assert_eq!(env.json(0, &["status"])["manual_fix"], before);
}

// Complete runs are complete again, so that the next command knows which run is meant; patches are written again.
#[test]
fn complete_runs_are_complete_again() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nstorage = \"patch\"\n",
    );
    for run in ["a", "b"] {
        env.json(
            0,
            &[
                "run",
                "--run",
                run,
                "--",
                "sh",
                "-c",
                &format!("echo {run} > a.txt"),
            ],
        );
    }
    lose(&env);
    env.json(0, &["doctor", "--rebuild"]);
    let status = env.json(0, &["status"]);
    assert_eq!(
        (&status["run"]["run_id"], &status["run"]["status"]),
        (&"b".into(), &"complete".into())
    );
    let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
    for one in list["checkpoints"].as_array().unwrap() {
        assert!(
            std::path::Path::new(&text(&one["patch_path"])).exists(),
            "{one}"
        );
    }
}

// Nothing to rebuild from is an error; a ledger that is whole stays as it is.
#[test]
fn what_is_whole_is_left_alone() {
    let env = TestEnv::repo();
    assert_eq!(
        env.json(4, &["doctor", "--rebuild"])["error"]["code"],
        "no_checkpoint"
    );
    let env = failed_run();
    let ledger = env.read(LEDGER);
    let done = env.json(0, &["doctor", "--rebuild"]);
    assert_eq!(
        (&done["rebuilt"]["changed"], env.read(LEDGER)),
        (&false.into(), ledger)
    );
}

// What is recorded at the new place does not hide that there is more to be taken over, and the views stay ours.
#[test]
fn a_moved_project_is_told_of_until_its_runs_are_taken_over() {
    let env = failed_run();
    env.sh("cd .. && mv work moved && mkdir work").expect(0);
    let at = |code, args: &[&str]| {
        env.recover(&[&["-C", "../moved"], args].concat())
            .expect(code)
    };
    let first = at(0, &["checkpoint", "create", "--run", "new"]);
    assert!(
        !first.stderr.contains("was not written by recover"),
        "{}",
        first.stderr
    );
    assert!(at(0, &["status"]).stderr.contains("takes its runs over"));
    assert!(at(12, &["doctor"]).stdout.contains("moved_project"));
    at(0, &["doctor", "--rebuild"]);
    assert_eq!(at(0, &["doctor"]).stdout, "No problems.\n");
    assert!(
        at(0, &["checkpoint", "list", "--run", "r"])
            .stdout
            .contains("initial")
    );
}

// The same for a linked work tree that git moved.
#[test]
fn a_linked_work_tree_that_git_moved_is_found_again() {
    let env = TestEnv::repo();
    env.git(&["worktree", "add", "-q", "-b", "lane", "../lane"]);
    let at = |place: &str, code, args: &[&str]| {
        env.recover(&[&["-C", place], args].concat()).expect(code)
    };
    env.sh("echo one > ../lane/l.txt").expect(0);
    at("../lane", 0, &["checkpoint", "create", "--run", "r"]);
    env.sh("echo two > ../lane/l.txt").expect(0);
    env.git(&["worktree", "move", "../lane", "../elsewhere"]);
    assert!(
        at("../elsewhere", 4, &["status"])
            .stderr
            .contains("takes its runs over")
    );
    assert!(
        at("../elsewhere", 12, &["doctor"])
            .stdout
            .contains("moved_project")
    );
    at("../elsewhere", 0, &["doctor", "--rebuild"]);
    at(
        "../elsewhere",
        0,
        &["rollback", "--to", "initial", "--edits", "discard"],
    );
    env.sh("test $(cat ../elsewhere/l.txt) = one").expect(0);
    assert_eq!(at("../elsewhere", 0, &["doctor"]).stdout, "No problems.\n");
    // From the project's own work tree nothing is said: the lane may just have been removed.
    env.git(&["worktree", "move", "../elsewhere", "../further"]);
    assert_eq!(at(".", 0, &["doctor"]).stdout, "No problems.\n");
}
