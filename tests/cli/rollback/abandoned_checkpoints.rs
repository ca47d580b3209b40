//! What may be good: a checkpoint that a rollback went back over counts no more, until it is resumed.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::seen::text;

/// No waits between attempts.
fn quick() -> TestEnv {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = '0s'\n");
    env
}

/// A loop that runs its own commands: three iterations that passed, `1` to `3` in `state`, as checkpoints @1 to @3.
fn three_passes() -> TestEnv {
    let env = quick();
    for number in ["1", "2", "3"] {
        env.write("state", number);
        env.write_state("notes.md", number);
        env.json(0, &["attempt", "pass"]);
    }
    env
}

fn fails(env: &TestEnv) -> Value {
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--message",
            "error[E0425]: cannot find value",
            "--exit-code",
            "101",
        ],
    )
}

#[track_caller]
fn named(env: &TestEnv, selector: &str) -> Value {
    env.json(0, &["checkpoint", "show", selector])["checkpoint"]["seq"].clone()
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|one| text(&one["id"]))
        .collect()
}

fn why(list: &Value, id: &str) -> String {
    let found = list
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["id"] == id);
    found.unwrap_or_else(|| panic!("{id} is not in {list}"))["reasons"].to_string()
}

#[test]
fn what_a_person_threw_away_is_not_good() {
    let env = three_passes();
    env.json(0, &["rollback", "--to", "iteration:2"]);
    assert_eq!(
        (
            named(&env, "good"),
            named(&env, "latest"),
            named(&env, "latest~1")
        ),
        (json!(2), json!(2), json!(1))
    );
    let status = env.json(0, &["status"]);
    assert_eq!(
        status["checkpoints"]["last_good"],
        status["checkpoints"]["latest"]
    );
    assert_eq!(named(&env, "@3"), 3, "by its number it can be named");
    let report = env.json(0, &["report"])["report"]["checkpoints"].clone();
    assert_eq!(
        report["last_good"]["id"], status["checkpoints"]["last_good"],
        "{report}"
    );
    assert_eq!(
        report["latest"]["id"], status["checkpoints"]["last_good"],
        "{report}"
    );
    assert_eq!(
        env.state_json("active_checkpoint.json")["checkpoint_id"],
        status["checkpoints"]["last_good"]
    );
    env.write("state", "broken");
    fails(&env);
    let back = env.json(0, &["rollback", "--to", "good", "--edits", "discard"]);
    assert_eq!(
        (
            env.read("state").as_str(),
            &back["result"]["restored_to_iteration"]
        ),
        ("2", &json!(2))
    );
}

#[test]
fn a_prune_keeps_the_real_last_good_one() {
    let env = three_passes();
    let list = ids(&env.json(0, &["checkpoint", "list"])["checkpoints"]);
    env.json(0, &["rollback", "--to", "iteration:2"]);
    env.write("state", "broken");
    fails(&env);
    let pruned = env.json(0, &["checkpoint", "prune", "--keep-last", "1"]);
    assert!(
        why(&pruned["kept"], &list[1]).contains("last good"),
        "{pruned}"
    );
    assert!(!pruned["kept"].to_string().contains(&list[2]), "{pruned}");
    assert_eq!(named(&env, "good"), 2);
    let resumed = env.json(
        0,
        &[
            "resume",
            "--prepare-only",
            "--strategy",
            "rollback_and_retry",
        ],
    );
    assert_eq!(
        (resumed["strategy"].as_str(), env.read("state").as_str()),
        (Some("rollback_and_retry"), "2")
    );
}

#[test]
fn the_memory_of_what_was_thrown_away_does_not_come_back() {
    let env = three_passes();
    env.json(0, &["rollback", "--to", "iteration:2"]);
    assert_eq!(env.read_state("notes.md"), "2");
    env.json(0, &["attempt", "start"]);
    env.write_state("notes.md", "of the attempt");
    let failed = fails(&env);
    assert_eq!(
        (
            failed["result"]["action"].as_str(),
            env.read_state("notes.md").as_str()
        ),
        (Some("rolled_back"), "2")
    );
}

#[test]
fn a_rollback_forward_an_undo_and_a_redo_take_it_up_again() {
    let env = three_passes();
    env.json(0, &["rollback", "--to", "iteration:1"]);
    env.write("state", "other");
    env.json(0, &["attempt", "pass"]);
    assert_eq!(
        (named(&env, "good"), named(&env, "iteration:2")),
        (json!(5), json!(5))
    );
    // By its number; what came to be meanwhile is what is gone back over now.
    env.json(0, &["rollback", "--to", "@3"]);
    assert_eq!(
        (
            named(&env, "good"),
            named(&env, "latest~1"),
            named(&env, "iteration:2")
        ),
        (json!(3), json!(2), json!(2))
    );
    env.json(0, &["undo"]);
    assert_eq!(
        (
            named(&env, "good"),
            named(&env, "latest~1"),
            env.read("state")
        ),
        (json!(5), json!(1), "other".into())
    );
    env.json(0, &["redo"]);
    assert_eq!(
        (
            named(&env, "good"),
            named(&env, "latest~2"),
            env.read("state")
        ),
        (json!(3), json!(1), "3".into())
    );
    // An iteration that only stands superseded is still that iteration.
    env.json(0, &["rollback", "--to", "initial"]);
    env.json(0, &["rollback", "--to", "iteration:3"]);
    assert_eq!(
        (named(&env, "good"), env.read("state")),
        (json!(3), "3".into())
    );
}

#[test]
fn looking_at_a_checkpoint_gives_nothing_up() {
    let env = three_passes();
    for restored in [
        &["checkpoint", "restore", "@1"][..],
        &["rollback", "--to", "@1", "--path", "state"],
    ] {
        env.json(0, restored);
        assert_eq!(
            (env.read("state").as_str(), named(&env, "good")),
            ("1", json!(3))
        );
        env.json(0, &["undo"]);
        assert_eq!(
            (env.read("state").as_str(), named(&env, "good")),
            ("3", json!(3))
        );
    }
}

#[test]
fn a_run_s_own_rollback_counts_as_well() {
    let env = quick();
    let body = "echo $RECOVER_ATTEMPT > state; [ $RECOVER_ATTEMPT = 3 ] || { echo 'error: could not compile'; exit 101; }";
    let args = [
        "run",
        "--run",
        "r",
        "--feedback",
        "build=true",
        "--",
        "sh",
        "-c",
        body,
    ];
    env.json(0, &args);
    let list = env.json(0, &["checkpoint", "list", "--run", "r"])["checkpoints"].clone();
    let failed = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["verdict"] == "failed")
        .count();
    let safety = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["trigger"] == "safety")
        .count();
    assert!(failed == 2 && safety > 0, "{list}");
    let before =
        env.json(0, &["checkpoint", "show", "latest~1", "--run", "r"])["checkpoint"]["seq"]
            .as_u64();
    // The first failure was kept to be retried, the second went back to the beginning.
    assert_eq!(before, Some(1), "{list}");
}

#[test]
fn an_iteration_whose_checkpoint_is_gone_is_no_other() {
    let env = quick();
    let agent = "echo $RECOVER_ITERATION > made-$RECOVER_ITERATION";
    env.json(
        0,
        &[
            "run",
            "--run",
            "r",
            "--iterations",
            "9",
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    env.json(0, &["checkpoint", "pin", "initial"]);
    env.json(
        0,
        &["checkpoint", "prune", "--run", "r", "--keep-last", "3"],
    );
    let before = env.json(0, &["status", "--run", "r"])["run"].clone();
    for to in [&["--iteration", "3"][..], &["--to", "iteration:2"]] {
        let refused = env.json(4, &[&["rollback", "--run", "r"], to].concat());
        assert_eq!(refused["error"]["code"], "no_checkpoint", "{refused}");
        assert!(
            text(&refused["error"]["message"]).contains("No checkpoint available"),
            "{refused}"
        );
    }
    assert_eq!(env.json(0, &["status", "--run", "r"])["run"], before);
    env.json(0, &["rollback", "--run", "r", "--iteration", "9"]);
    env.json(0, &["resume", "--run", "r"]);
    assert!((1..=9).all(|number| env.exists(&format!("made-{number}"))));
}

#[test]
fn an_iteration_is_not_the_failed_attempt_that_outlived_its_good_one() {
    let env = quick();
    for ended in [&["fail", "--message", "x"][..], &["pass"]] {
        env.json(0, &["attempt", "start"]);
        env.write("state", ended[0]);
        env.json(0, &[&["attempt"], ended].concat());
    }
    env.write("state", "2");
    env.json(0, &["attempt", "pass"]);
    assert_eq!(
        (named(&env, "initial"), named(&env, "iteration:1")),
        (json!(1), json!(3))
    );
    env.json(0, &["checkpoint", "prune", "--drop-passed"]);
    for args in [
        ["checkpoint", "show", "iteration:1"],
        ["rollback", "--iteration", "2"],
    ]
    .map(|args| args.to_vec())
    {
        assert_eq!(env.error(4, &args)["code"], "no_checkpoint");
    }
    assert_eq!(
        (named(&env, "good"), env.read("state")),
        (json!(4), "2".into())
    );
}

#[test]
fn the_first_start_of_a_run_takes_what_it_begins_with() {
    let env = quick();
    env.write_state("notes.md", "before");
    let started = env.json(0, &["attempt", "start"]);
    assert_eq!(started["attempt"], 1);
    let list = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
    assert_eq!(
        (list.as_array().unwrap().len(), &list[0]["trigger"]),
        (1, &json!("initial")),
        "{list}"
    );
    assert_eq!(list[0]["after_iteration"], 0);
    env.write("a.txt", "broken\n");
    env.write("new.txt", "broken\n");
    env.write_state("notes.md", "after");
    let failed = fails(&env);
    assert_eq!(
        (
            failed["result"]["action"].as_str(),
            env.read_state("notes.md").as_str()
        ),
        (Some("rolled_back"), "before")
    );
    let full = env.json(0, &["rollback", "--full"]);
    assert_eq!(
        (
            env.read("a.txt").as_str(),
            env.exists("new.txt"),
            &full["run"]["status"]
        ),
        ("one\n", false, &json!("pending"))
    );
    // Only the first.
    env.json(0, &["attempt", "start"]);
    env.json(0, &["attempt", "pass"]);
    env.json(0, &["attempt", "start"]);
    let list = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
    let initial = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["trigger"] == "initial")
        .count();
    assert_eq!(initial, 1, "{list}");
    // A dry run takes nothing.
    let env = quick();
    env.json(0, &["--dry-run", "attempt", "start"]);
    assert!(!env.exists(".ultraplan/state"));
}

#[test]
fn what_a_run_began_with_is_initial_whatever_took_it() {
    let env = quick();
    let first = env.json(0, &["checkpoint", "create"])["checkpoint"]["id"].clone();
    for content in ["1", "2", "3"] {
        env.write("a.txt", content);
        env.json(0, &["attempt", "start"]);
        env.json(0, &["attempt", "pass"]);
    }
    assert_eq!(
        env.json(0, &["checkpoint", "show", "initial"])["checkpoint"]["id"],
        first
    );
    let pruned = env.json(0, &["checkpoint", "prune", "--keep-last", "1"]);
    assert!(
        why(&pruned["kept"], &text(&first)).contains("initial"),
        "{pruned}"
    );
    env.json(0, &["rollback", "--full"]);
    assert_eq!(env.read("a.txt"), "one\n");
}

#[test]
fn an_attempt_that_failed_is_nothing_to_begin_with() {
    let env = quick();
    env.write("a.txt", "broken\n");
    fails(&env);
    for args in [
        &["rollback", "--full"][..],
        &["rollback", "--to", "initial"],
        &["rollback", "--iteration", "1"],
    ] {
        assert_eq!(env.error(4, args)["code"], "no_checkpoint", "{args:?}");
    }
    // Neither is what came after it.
    let run = env.json(0, &["status"])["run"]["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    env.json(0, &["checkpoint", "create", "--run", &run]);
    assert_eq!(
        env.error(4, &["rollback", "--full"])["code"],
        "no_checkpoint"
    );
    env.json(0, &["attempt", "pass"]);
    // After the first iteration is not before it.
    let env = three_passes();
    assert_eq!(
        env.error(4, &["rollback", "--iteration", "1"])["code"],
        "no_checkpoint"
    );
}

// B: prune keeps what a run began with also where an attempt began it.
#[test]
fn a_prune_keeps_what_a_run_of_attempts_began_with() {
    let env = TestEnv::repo();
    for text in ["two", "three", "four", "five"] {
        env.json(0, &["attempt", "start", "--run", "loop"]);
        env.write("a.txt", format!("{text}\n"));
        env.json(0, &["attempt", "pass", "--run", "loop"]);
    }
    let kept = env.json(
        0,
        &[
            "checkpoint",
            "prune",
            "--run",
            "loop",
            "--keep-last",
            "1",
            "--yes",
        ],
    )["kept"]
        .clone();
    let initial =
        env.json(0, &["checkpoint", "show", "initial", "--run", "loop"])["checkpoint"]["id"]
            .clone();
    let reasons = kept
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["id"] == initial)
        .map(|one| one["reasons"].clone());
    assert!(
        reasons
            .as_ref()
            .is_some_and(|reasons| reasons.to_string().contains("initial")),
        "{kept:#}"
    );
    env.recover(&["rollback", "--full", "--run", "loop", "--yes"])
        .expect(0);
    assert_eq!(env.read("a.txt"), "one\n");
}
