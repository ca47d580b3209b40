//! The budget of a task over all its runs: what uses it up, and what gives it back.

use crate::env::TestEnv;
use crate::run::quick;

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

/// Its six attempts are used up, and the next run is refused.
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
