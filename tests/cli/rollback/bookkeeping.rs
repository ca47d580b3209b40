//! What a run's bookkeeping says after a rollback (B10): where it stands is where its files are.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::seen::text;

/// A run of six iterations that is stuck at the fifth until there is a file `../fixed`, and at the third while there is a
/// file `../broken`.
fn stuck_at_five() -> TestEnv {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = '0s'\n");
    env.script(
        "agent.sh",
        "echo $RECOVER_ITERATION >> log; touch made-$RECOVER_ITERATION; [ $RECOVER_ITERATION != 3 -o ! -e ../broken ] && [ $RECOVER_ITERATION != 5 -o -e ../fixed ]",
    );
    let args = [
        "run",
        "--run",
        "r",
        "--iterations",
        "6",
        "--attempts",
        "1",
        "--",
        "./agent.sh",
    ];
    assert_eq!(env.json(8, &args)["run"]["current_iteration"], 5);
    env
}

fn statuses(document: &Value) -> Vec<String> {
    document["iterations"]
        .as_array()
        .expect("iterations")
        .iter()
        .map(|one| text(&one["status"]))
        .collect()
}

#[test]
fn a_run_goes_on_from_where_it_was_rolled_back_to() {
    let backs: [(&[&str], u32); 3] = [
        (&["--to", "iteration:2"], 3),
        (&["--iteration", "2"], 2),
        (&["--full"], 1),
    ];
    for (back, next) in backs {
        for strategy in [
            &[][..],
            &["--strategy", "continue_next"],
            &["--strategy", "retry_with_context"],
        ] {
            let env = stuck_at_five();
            let run = env.json(0, &[&["rollback", "--run", "r"], back].concat())["run"].clone();
            assert_eq!(run["current_iteration"], next);
            let status = env.json(0, &["status", "--run", "r"]);
            assert_eq!(
                (&status["failure"], &status["retry"]["can_retry"]),
                (&Value::Null, &json!(true)),
                "{back:?}"
            );
            env.write("../fixed", "");
            let resumed = env.json(0, &[&["resume", "--run", "r"], strategy].concat());
            assert_eq!(
                statuses(&resumed),
                ["completed"; 6],
                "{back:?} {strategy:?}"
            );
            assert_eq!(
                env.read("log"),
                "1\n2\n3\n4\n5\n6\n",
                "{back:?} {strategy:?}"
            );
        }
    }
}

#[test]
fn what_an_iteration_has_used_up_stays_used_up() {
    let env = stuck_at_five();
    env.json(0, &["rollback", "--run", "r", "--iteration", "5"]);
    assert_eq!(
        env.json(0, &["status", "--run", "r"])["failure"]["iteration"],
        5
    );
    env.json(8, &["resume", "--run", "r"]);
    env.json(0, &["rollback", "--run", "r", "--to", "iteration:3"]);
    // 4 passes, and 5 has one attempt behind it.
    let resumed = env.json(8, &["resume", "--run", "r"]);
    assert_eq!(resumed["run"]["current_iteration"], 5);
    assert_eq!(env.read("log"), "1\n2\n3\n4\n5\n");
}

#[test]
fn what_was_rolled_back_is_to_be_done_again_also_in_the_history() {
    let env = stuck_at_five();
    env.json(0, &["rollback", "--run", "r", "--to", "iteration:2"]);
    let history = env.json(0, &["attempt", "list"]);
    let of = |number: u32| history["subtasks"][format!("r/iteration-{number}")]["status"].clone();
    assert_eq!(
        [of(1), of(2), of(3), of(4), of(5)],
        ["completed", "completed", "pending", "pending", "stuck"]
    );
}

#[test]
fn what_was_taken_back_does_not_come_again_unasked() {
    let env = stuck_at_five();
    env.json(0, &["rollback", "--run", "r", "--to", "iteration:2"]);
    env.write("../broken", "");
    env.json(8, &["resume", "--run", "r"]);
    env.remove("../broken");
    env.write("../fixed", "");
    env.json(
        0,
        &["resume", "--run", "r", "--strategy", "rollback_and_retry"],
    );
    assert_eq!(env.read("log"), "1\n2\n3\n4\n5\n6\n");
}

#[test]
fn a_rollback_that_goes_forward_takes_the_bookkeeping_along() {
    let env = stuck_at_five();
    env.json(0, &["rollback", "--run", "r", "--to", "iteration:1"]);
    let forward = env.json(0, &["rollback", "--run", "r", "--to", "iteration:3"]);
    assert_eq!(
        (
            &forward["result"]["restored_to_iteration"],
            &forward["run"]["current_iteration"]
        ),
        (&json!(3), &json!(4))
    );
    let status = env.json(0, &["status", "--run", "r"]);
    assert_eq!(
        statuses(&status),
        [
            "completed",
            "completed",
            "completed",
            "superseded",
            "superseded"
        ]
    );
    env.write("../fixed", "");
    env.json(0, &["resume", "--run", "r"]);
    assert_eq!(env.read("log"), "1\n2\n3\n4\n5\n6\n");
    // Nor does it go beyond what has passed.
    let env = stuck_at_five();
    env.json(0, &["rollback", "--run", "r", "--to", "iteration:1"]);
    assert_eq!(
        env.json(0, &["rollback", "--run", "r", "--to", "iteration:5"])["run"]["current_iteration"],
        5
    );
    env.json(0, &["undo"]);
    assert_eq!(
        env.json(0, &["status", "--run", "r"])["run"]["current_iteration"],
        2
    );
}

#[test]
fn the_iteration_that_failed_is_among_the_latest() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = '0s'\n");
    let record = |iteration: u32, ended: &[&str]| {
        let number = iteration.to_string();
        env.json(
            0,
            &["attempt", "start", "--run", "r", "--iteration", &number],
        );
        env.json(0, &[&["attempt"], ended, &["--run", "r"]].concat());
    };
    for iteration in 1..=24 {
        record(iteration, &["pass"]);
    }
    record(2, &["fail", "--loop", "test", "--message", "FAILED a::b"]);
    let status = env.json(0, &["status", "--run", "r"]);
    let numbers: Vec<u64> = status["iterations"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["number"].as_u64())
        .collect();
    assert_eq!(numbers, [&[2][..], &(5..=24).collect::<Vec<_>>()].concat());
    let shown = env.recover(&["status", "-v", "--run", "r"]).stdout;
    assert!(
        shown.contains("Failed: a::b") && shown.contains("The latest 8 of 25 attempts"),
        "{shown}"
    );
}
