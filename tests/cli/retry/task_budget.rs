//! The budget of a task over all its runs: what uses it up, and what gives it back.

use crate::env::TestEnv;
use crate::run::attempts::quick;

/// A run of the task `T` whose command says how it ends.
fn run(env: &TestEnv, name: &str, code: i32, command: &str) {
    let run = [
        "run",
        "--run",
        name,
        "--task",
        "T",
        "--iterations",
        "9",
        "--on-failure",
        "retry",
    ];
    env.json(
        code,
        &[&run[..], &["--attempts", "6", "--", "sh", "-c", command]].concat(),
    );
}

/// Its six attempts used, and the next run is refused.
fn used_up() -> TestEnv {
    let env = quick();
    run(&env, "first", 7, "echo 'error: it broke' >&2; exit 1");
    run(&env, "refused", 7, "touch ../ran");
    assert!(!env.exists("../ran"));
    env
}

/// What is left of the task's attempts, as a run has it.
fn left(env: &TestEnv, run: &str) -> u64 {
    let status = env.json(0, &["retry-status", "--run", run]);
    let budgets = status["budgets"]
        .as_array()
        .unwrap_or_else(|| panic!("{status}"));
    let task = budgets
        .iter()
        .find(|budget| budget["scope"] == "task")
        .unwrap_or_else(|| panic!("{status}"));
    task["left"].as_u64().expect("a number")
}

#[test]
fn a_success_of_the_task_gives_its_attempts_back() {
    let env = used_up();
    env.json(0, &["attempt", "pass", "--run", "by-hand", "--task", "T"]);
    assert_eq!(left(&env, "refused"), 6);
    run(&env, "second", 0, "echo $RECOVER_ITERATION > ../ran");
    assert_eq!(env.read("../ran"), "9\n");
    // The success of another task gives nothing back.
    let env = used_up();
    env.json(0, &["attempt", "pass", "--run", "other", "--task", "U"]);
    run(&env, "second", 7, "touch ../ran");
}

#[test]
fn a_person_resets_the_task() {
    let env = used_up();
    let reset = env.json(0, &["retry-status", "--reset", "--task", "T"]);
    assert_eq!(reset["can_retry"], true, "{reset}");
    assert_eq!(left(&env, "first"), 6);
    run(&env, "second", 0, "true");
    assert_eq!(
        env.json(4, &["retry-status", "--reset", "--task", "none"])["error"]["exit_code"],
        4
    );
}

#[test]
fn a_reset_of_the_refused_run_lets_it_go_on() {
    let env = used_up();
    env.json(7, &["resume", "refused"]);
    env.json(0, &["retry-status", "--reset", "--run", "refused"]);
    env.json(0, &["resume", "refused"]);
    assert!(env.exists("../ran"));
}

// The way on that is named works: no resume helps where the task has no attempts left.
#[test]
fn a_refused_run_names_the_reset_of_its_task() {
    let env = used_up();
    let refused = env
        .recover(&["run", "--run", "again", "--task", "T", "--", "true"])
        .expect(7)
        .stdout;
    assert!(
        refused.contains(" retry-status --reset --run again\n"),
        "{refused}"
    );
    let status = env.recover(&["status", "--run", "again"]).expect(0).stdout;
    assert!(
        status.contains("Next: recover retry-status --reset --run again\n"),
        "{status}"
    );
    let resumed = env.json(7, &["resume", "again"]);
    assert!(
        resumed["next_actions"][0]
            .as_str()
            .is_some_and(|next| next.contains("retry-status --reset")),
        "{resumed}"
    );
    env.json(0, &["retry-status", "--reset", "--run", "again"]);
    let status = env.recover(&["status", "--run", "again"]).expect(0).stdout;
    assert!(status.contains("Next: recover resume"), "{status}");
}

/// Fails as a test does while the iteration is one of those in `../failing`.
const CHECK: &str = "test=! grep -qw $RECOVER_ITERATION ../failing || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";

fn night(env: &TestEnv, code: i32, failing: &str, more: &[&str]) -> Vec<String> {
    env.write("../failing", failing);
    let run = ["run", "--run", "n", "--feedback", CHECK];
    let command = ["--", "sh", "-c", "echo $RECOVER_ITERATION >> log"];
    let document = env.json(code, &[&run[..], more, &command].concat());
    statuses(&document)
}

fn statuses(document: &serde_json::Value) -> Vec<String> {
    let all = document["iterations"].as_array().expect("iterations");
    let status = |one: &serde_json::Value| one["status"].as_str().map(str::to_owned);
    all.iter().filter_map(status).collect()
}

/// The subtasks that are stuck, as the command and the file have them.
fn stuck(env: &TestEnv) -> Vec<String> {
    let list = env.json(0, &["attempt", "list"])["stuck_subtasks"].clone();
    assert_eq!(
        env.state_json("attempt_history.json")["stuck_subtasks"],
        list
    );
    let all = list.as_array().expect("a list").iter();
    all.filter_map(|one| one["subtask_id"].as_str().map(str::to_owned))
        .collect()
}

// S8, A7: the task is the iteration; what one has used up is not missing to the next.
#[test]
fn iterations_that_are_given_up_leave_their_neighbours_their_attempts() {
    let env = quick();
    let twelve = night(&env, 8, "3\n4\n", &["--iterations", "12"]);
    let mut expected = vec!["completed"; 12];
    (expected[2], expected[3]) = ("skipped", "skipped");
    assert_eq!(twelve, expected);
    assert_eq!(env.events("attempt_ended").len(), 10 + 2 * 3);

    // However many attempts each of them has.
    let env = quick();
    let more = ["--iterations", "4", "--task", "T", "--attempts", "7"];
    let four = night(&env, 8, "1\n2\n", &more);
    assert_eq!(four, ["skipped", "skipped", "completed", "completed"]);

    // The session's budget is one for all of them.
    let env = quick();
    let all: Vec<String> = (1..=12).map(|number: u32| number.to_string()).collect();
    let all = all.join("\n");
    let twelve = night(&env, 8, &all, &["--iterations", "12"]);
    assert_eq!(
        env.events("attempt_ended").len(),
        21,
        "the session's: {twelve:?}"
    );
}

#[test]
fn rollbacks_of_a_broken_build_are_counted_by_iteration() {
    let env = quick();
    let fail = |iteration: &str| {
        env.json(0, &["attempt", "start", "--iteration", iteration]);
        let message = "error[E0425]: cannot find value `x` in this scope";
        let failed = ["attempt", "fail", "--loop", "build", "--exit-code", "101"];
        env.json(0, &[&failed[..], &["--message", message]].concat())["decision"]["actions"].clone()
    };
    let back = serde_json::json!(["rollback", "retry"]);
    assert_eq!((fail("1"), fail("1")), (back.clone(), back.clone()));
    assert_eq!(fail("1"), serde_json::json!(["escalate"]));
    assert_eq!(fail("2"), back);
}

// A7: who collects what is stuck finds it until something came of it.
#[test]
fn a_stuck_mark_outlives_a_rollback() {
    let given_up = || {
        let env = quick();
        night(&env, 8, "2\n", &["--iterations", "3"]);
        assert_eq!(stuck(&env), ["n/iteration-2"]);
        env.json(0, &["rollback", "--iteration", "1", "--yes"]);
        assert_eq!(stuck(&env), ["n/iteration-2"]);
        env
    };
    // Until it passes.
    let env = given_up();
    env.write("../failing", "");
    env.json(0, &["resume"]);
    assert_eq!(stuck(&env), [""; 0]);
    // Until the run starts afresh.
    let env = given_up();
    env.json(0, &["resume", "--restart", "--prepare-only"]);
    assert_eq!(stuck(&env), [""; 0]);
    // Until a person accepts it.
    let env = quick();
    night(&env, 8, "2\n3\n", &["--iterations", "3"]);
    assert_eq!(stuck(&env), ["n/iteration-2", "n/iteration-3"]);
    env.json(0, &["resume", "--strategy", "continue_next"]);
    assert_eq!(stuck(&env), [""; 0]);
}

// S8: within one run, too, each task that a loop names pays for its own failures alone.
#[test]
fn the_tasks_of_one_loop_are_counted_apart() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = '0s'\n");
    let start = |iteration: &str, task: &str| {
        let start = ["attempt", "start", "--run", "r", "--iteration", iteration];
        env.json(0, &[&start[..], &["--task", task]].concat());
    };
    let fail = |code: i32, (iteration, task): (&str, &str)| {
        start(iteration, task);
        let message = format!("FAIL {task}");
        let end = ["--loop", "test", "--exit-code", "1", "--message", &message];
        let fail = ["attempt", "fail", "--check", "--run", "r", "--task", task];
        env.json(code, &[&fail[..], &end].concat())
    };
    fail(5, ("1", "one"));
    fail(5, ("1", "one"));
    // Neither the second task nor the first one, after it, is taken for the other.
    assert_eq!(fail(5, ("2", "two"))["decision"]["attempts_used"], 1);
    let third = fail(8, ("1", "one"));
    assert_eq!(third["decision"]["attempts_used"], 3, "{third}");
    start("3", "three");
    env.json(0, &["attempt", "pass", "--run", "r"]);
    let history = env.json(0, &["attempt", "list"]);
    for (task, status, attempts) in [
        ("one", "stuck", 3),
        ("two", "failed", 1),
        ("three", "completed", 1),
    ] {
        let subtask = &history["subtasks"][task];
        assert_eq!(subtask["status"], status, "{history}");
        assert_eq!(subtask["attempts"].as_array().map(Vec::len), Some(attempts));
    }
}
