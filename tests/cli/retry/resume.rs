//! `recover resume`: every strategy, every refusal.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::attempts::{CHECK, quick};
use crate::run::supervision::{NOW, ended, until};

/// An environment in which a cooldown is over when a command waits for it.
fn still() -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    env
}

/// A run of three iterations that stopped in the second, at its first failed verification.
fn failed_in_the_second(env: &TestEnv) -> Value {
    env.script(
        "agent.sh",
        "cat > prompt-$RECOVER_ITERATION-$RECOVER_ATTEMPT.txt; echo $RECOVER_ITERATION.$RECOVER_ATTEMPT >> ../seen\n\
         if [ $RECOVER_ITERATION = 2 ] && [ $RECOVER_ATTEMPT = 1 ]; then echo bad > state; touch junk; else echo good > state; fi",
    );
    let args = [
        "run",
        "--iterations",
        "3",
        "--no-wait",
        "--prompt",
        "Do it.",
        "--feedback",
        CHECK,
        "--",
        "./agent.sh",
    ];
    let document = env.json(6, &args);
    assert_eq!(document["outcome"], "paused");
    document
}

fn seen(env: &TestEnv) -> String {
    env.sh("cat ../seen")
        .stdout
        .replace('\n', " ")
        .trim()
        .to_owned()
}

/// L2, B3: inside a cooldown it is exit 6 with the time; `--wait` takes the wait, `--wait=DUR` gives up.
#[test]
fn a_cooldown_is_respected() {
    let env = still();
    failed_in_the_second(&env);
    let refused = env.json(6, &["resume"]);
    assert_eq!(refused["retry_after"], "2026-03-01T12:00:05.000Z");
    assert_eq!(refused["wait_ms"], 5000);
    assert_eq!(refused["executed"], false);
    assert_eq!(refused["outcome"], "paused");
    assert_eq!(
        env.json(6, &["resume", "--strategy", "retry_same"])["executed"],
        false
    );
    assert_eq!(
        env.json(9, &["resume", "--wait=1s"])["error"]["exit_code"],
        9
    );
    assert_eq!(
        env.json(9, &["retry-status", "--wait=1s"])["error"]["exit_code"],
        9
    );
    assert_eq!(seen(&env), "1.1 2.1");
    let resumed = env.json(0, &["resume", "--wait"]);
    assert_eq!(resumed["executed"], true);
    assert_eq!(seen(&env), "1.1 2.1 2.2 3.1");
}

/// B3: the very same again, without a word about the error.
#[test]
fn retry_same_leaves_the_error_out() {
    let env = still();
    failed_in_the_second(&env);
    let resumed = env.json(0, &["resume", "--wait", "--strategy", "retry_same"]);
    assert_eq!(resumed["strategy"], "retry_same");
    assert_eq!(resumed["outcome"], "complete");
    assert_eq!(env.read("prompt-2-2.txt"), "Do it.\n");
    assert!(env.exists("junk"), "files stay as they are");
}

/// B3, B6: with the error, and with what a person adds.
#[test]
fn retry_with_context_and_instructions() {
    let env = still();
    failed_in_the_second(&env);
    let args = [
        "--json",
        "resume",
        "--wait",
        "--strategy",
        "retry_with_context",
        "--instructions",
        "-",
    ];
    let resumed = env.recover_fed("Mind the gap.\n", &args).expect(0).json();
    let prompt = env.read("prompt-2-2.txt");
    assert_eq!(resumed["prompt"], prompt);
    let parts = [
        "Do it.",
        "## Previous Attempt Failed",
        "assert 1 == 2",
        "## Additional Instructions",
        "Mind the gap.",
    ];
    let at: Vec<_> = parts
        .iter()
        .map(|part| {
            prompt
                .find(part)
                .unwrap_or_else(|| panic!("{part}: {prompt}"))
        })
        .collect();
    assert!(at.is_sorted(), "{prompt}");
    assert_eq!(env.read("prompt-3-1.txt"), "Do it.\n", "said once");
    assert!(
        resumed["validation"]
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["ok"] == true),
        "{resumed}"
    );
}

/// B3: the error goes along to an earlier iteration that the run is sent back to, and is said once.
#[test]
fn the_error_goes_along_to_an_earlier_iteration() {
    let env = still();
    failed_in_the_second(&env);
    let back = [
        "resume",
        "--wait",
        "--strategy",
        "retry_with_context",
        "--from-iteration",
        "1",
    ];
    let told = env.json(
        0,
        &[&back[..], &["--prepare-only", "--no-error-context"]].concat(),
    );
    assert_eq!(told["prompt"], "Do it.\n");
    env.json(0, &back);
    let prompt = env.read("prompt-1-2.txt");
    assert!(
        prompt.contains("## Previous Attempt Failed") && prompt.contains("assert 1 == 2"),
        "{prompt}"
    );
    assert_eq!(env.read("prompt-2-2.txt"), "Do it.\n");
}

/// B3: error context can be left out.
#[test]
fn error_context_can_be_left_out() {
    let env = still();
    failed_in_the_second(&env);
    env.json(
        0,
        &[
            "resume",
            "--wait",
            "--no-error-context",
            "--instructions",
            "Again.",
        ],
    );
    let prompt = env.read("prompt-2-2.txt");
    assert!(
        !prompt.contains("Previous Attempt") && prompt.contains("Again."),
        "{prompt}"
    );
}

/// B3, B4: files go back, earlier iterations stay.
#[test]
fn rollback_and_retry_takes_the_failed_work_back() {
    let env = still();
    failed_in_the_second(&env);
    let resumed = env.json(0, &["resume", "--wait", "--strategy", "rollback_and_retry"]);
    assert_eq!(resumed["outcome"], "complete");
    assert!(!env.exists("junk") && env.exists("prompt-1-1.txt"));
    assert!(env.read("prompt-2-2.txt").contains("assert 1 == 2"));
    assert_eq!(
        resumed["iterations"][1]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    env.json(0, &["undo", "--of-run", "--yes"]);
}

/// B3, A7: the state is accepted, the next iteration comes.
#[test]
fn continue_next_goes_on_with_the_next_iteration() {
    let env = still();
    failed_in_the_second(&env);
    let resumed = env.json(0, &["resume", "--wait", "--strategy", "continue_next"]);
    assert_eq!(seen(&env), "1.1 2.1 3.1");
    assert_eq!(resumed["iterations"][1]["status"], "skipped");
    assert!(env.exists("junk"));
}

/// B3, B8: a person's fix is waited for; until then nothing else goes on.
#[test]
fn manual_then_continue_opens_a_fix() {
    let env = still();
    failed_in_the_second(&env);
    let resumed = env.json(
        8,
        &["resume", "--wait", "--strategy", "manual_then_continue"],
    );
    assert_eq!(
        (&resumed["executed"], &resumed["outcome"]),
        (&false.into(), &"paused".into())
    );
    assert_eq!(
        env.json(0, &["manual-fix", "status"])["session"]["status"],
        "active"
    );
    assert_eq!(env.json(8, &["resume"])["error"]["exit_code"], 8);
    env.write("state", "good\n");
    env.json(0, &["manual-fix", "verify"]);
    let continued = env.json(0, &["manual-fix", "continue"]);
    assert_eq!(continued["outcome"], "complete");
    assert_eq!(seen(&env), "1.1 2.1 3.1");
    assert!(env.read("prompt-3-1.txt").contains("## Manual Fix Applied"));
}

/// B3, B15: what is wrong with the request is said.
#[test]
fn refusals_are_clear() {
    let env = quick();
    assert_eq!(env.json(4, &["resume"])["error"]["code"], "run_not_found");
    let unknown = env.json(2, &["resume", "--strategy", "nonsense"]);
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nonsense")
    );
    env.json(0, &["checkpoint", "create", "--run", "fine"]);
    env.json(0, &["attempt", "start", "--run", "fine"]);
    let not_failed = env.json(13, &["resume", "fine"]);
    assert_eq!(not_failed["error"]["code"], "not_failed");
    assert!(
        not_failed["error"]["message"]
            .as_str()
            .unwrap()
            .contains("not in failed state")
    );
    env.json(4, &["resume", "nobody"]);
    env.json(2, &["resume", "--restart", "--strategy", "retry_same"]);
    env.json(2, &["resume", "--from-iteration", "0"]);

    env.json(0, &["run", "--run", "done", "--", "true"]);
    let complete = env.json(0, &["resume", "done"]);
    assert_eq!(
        (&complete["changed"], &complete["outcome"]),
        (&false.into(), &"complete".into())
    );
    let plain = TestEnv::plain();
    assert_eq!(plain.json(10, &["resume"])["error"]["exit_code"], 10);
}

/// B3: from an iteration that is not there nothing can go on.
#[test]
fn from_iteration_has_to_be_reachable() {
    let env = still();
    failed_in_the_second(&env);
    assert_eq!(
        env.json(2, &["resume", "--wait", "--from-iteration", "4"])["error"]["exit_code"],
        2
    );
    assert_eq!(seen(&env), "1.1 2.1");
    let resumed = env.json(0, &["resume", "--wait", "--from-iteration", "1"]);
    assert_eq!(seen(&env), "1.1 2.1 1.2 2.2 3.1");
    assert_eq!(
        resumed["iterations"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        2,
        "history is kept"
    );
}

/// B4: everything from the beginning; history and checkpoints stay, the count is cleared.
#[test]
fn restart_begins_anew() {
    let env = still();
    failed_in_the_second(&env);
    let resumed = env.json(0, &["resume", "--restart"]);
    assert_eq!(resumed["outcome"], "complete");
    assert_eq!(seen(&env), "1.1 2.1 1.2 2.2 3.1");
    assert!(
        !env.exists("junk"),
        "the work tree is that of the beginning"
    );
    assert_eq!(env.read("prompt-1-2.txt"), "Do it.\n");
    assert_eq!(env.json(0, &["retry-status"])["error_count"], 0);
}

/// B3: preparing prints the prompt and runs nothing, with and without a recorded command.
#[test]
fn prepare_only_runs_nothing() {
    let env = still();
    failed_in_the_second(&env);
    let prepared = env.json(
        0,
        &[
            "resume",
            "--prepare-only",
            "--strategy",
            "rollback_and_retry",
            "--instructions",
            "More.",
        ],
    );
    assert_eq!(prepared["executed"], false);
    assert_eq!(prepared["outcome"], Value::Null);
    let prompt = prepared["prompt"].as_str().unwrap();
    assert!(
        prompt.contains("assert 1 == 2") && prompt.contains("More."),
        "{prompt}"
    );
    assert!(!env.exists("junk"));
    assert_eq!(seen(&env), "1.1 2.1");
    let ran = env.recover(&["resume", "--prepare-only"]).expect(0);
    assert!(ran.stdout.starts_with("Do it."), "{}", ran.stdout);

    let env = quick();
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--loop",
            "test",
            "--exit-code",
            "1",
            "--message",
            "assert 1 == 2",
        ],
    );
    let prepared = env.json(0, &["resume", "--wait"]);
    assert_eq!(prepared["executed"], false);
    assert!(
        prepared["prompt"]
            .as_str()
            .unwrap()
            .contains("assert 1 == 2")
    );
    let resumed = env.json(
        0,
        &[
            "resume",
            "--strategy",
            "retry_with_context",
            "--",
            "sh",
            "-c",
            "cat > told",
        ],
    );
    assert_eq!(resumed["executed"], true, "a command can be given");
    assert!(env.read("told").contains("assert 1 == 2"));
}

/// A dry run says what it would do.
#[test]
fn a_dry_run_changes_nothing() {
    let env = still();
    failed_in_the_second(&env);
    let before = env.read(".ultraplan/state/events.jsonl");
    let plan = env.json(
        0,
        &[
            "resume",
            "--dry-run",
            "--wait",
            "--strategy",
            "rollback_and_retry",
        ],
    );
    assert_eq!(plan["changed"], false);
    assert!(plan["prompt"].as_str().unwrap().contains("assert 1 == 2"));
    assert_eq!(env.read(".ultraplan/state/events.jsonl"), before);
    assert!(env.exists("junk"));
}

/// B3: an explicit strategy on an exhausted or escalated run grants exactly one attempt.
#[test]
fn an_explicit_strategy_grants_one_attempt() {
    let env = quick();
    let command = [
        "run",
        "--",
        "sh",
        "-c",
        "echo x >> ../tries; echo what; exit 9",
    ];
    let document = env.json(8, &command);
    let made = document["iterations"][0]["attempts"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(made, 2, "UNKNOWN: {document}");
    env.json(8, &["resume"]);
    env.json(8, &["resume", "--wait"]);
    let tries = || env.sh("cat ../tries").stdout.lines().count();
    assert_eq!(tries(), made);
    for more in 1..=2 {
        env.json(8, &["resume", "--strategy", "retry_same"]);
        assert_eq!(tries(), made + more, "exactly one each");
    }
    env.json(8, &["retry-status", "--check"]);
}

/// A2: the iteration that was given up is what is left to do.
#[test]
fn an_iteration_that_was_given_up_can_be_taken_up() {
    let env = quick();
    let agent = "if [ $RECOVER_ITERATION = 1 ] && ! [ -e ../help ]; then echo bad > state; else echo good > state; fi; echo $RECOVER_ITERATION.$RECOVER_ATTEMPT >> ../seen";
    env.json(
        8,
        &[
            "run",
            "--iterations",
            "2",
            "--feedback",
            CHECK,
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    assert_eq!(seen(&env), "1.1 1.2 1.3 2.1");
    env.sh("touch ../help");
    let resumed = env.json(0, &["resume", "--strategy", "retry_with_context"]);
    assert_eq!(
        seen(&env),
        "1.1 1.2 1.3 2.1 1.4",
        "only what is left to do is done: {resumed}"
    );
    assert_eq!(resumed["iterations"][0]["status"], "completed");
    assert_eq!(resumed["run"]["status"], "complete");
}

/// Two claims of the last attempt: exactly one gets it, and only one of them touches the work tree.
#[test]
fn of_two_claims_of_the_last_attempt_one_wins() {
    let env = still();
    let agent = "echo x >> ../tries; [ -e ../slow ] && sleep 1; echo bad > state";
    env.json(
        6,
        &[
            "run",
            "--no-wait",
            "--attempts",
            "2",
            "--feedback",
            CHECK,
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    env.sh("touch ../slow");
    let both: Vec<_> = (0..2)
        .map(|_| env.start(&["--json", "resume", "--wait"]))
        .collect();
    let mut codes: Vec<_> = both
        .into_iter()
        .map(|child| crate::run::supervision::ended(child).code)
        .collect();
    codes.sort_unstable();
    assert!(codes == [8, 11] || codes == [8, 8], "{codes:?}");
    assert_eq!(env.sh("cat ../tries").stdout.lines().count(), 2);
    assert_eq!(
        env.json(8, &["retry-status", "--check"])["attempts_left"],
        0
    );
}

/// A `run` that sleeps out its cooldown is at work: nobody else drives it.
#[test]
fn a_waiting_run_is_under_way() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\nduration = \"30s\"\n",
    );
    let child = env.start(&[
        "--json",
        "run",
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        "echo bad > state",
    ]);
    crate::run::supervision::until("the cooldown", || {
        env.recover(&["retry-status", "--check"]).code == 6
    });
    let error = env.json(11, &["resume", "--wait"]);
    assert_eq!(error["error"]["code"], "locked");
    assert!(
        error["error"]["hint"].as_str().unwrap().contains("status"),
        "{error}"
    );
    crate::run::supervision::kill("-INT", child.id());
    crate::run::supervision::ended(child).expect(130);
    env.json(6, &["resume"]);
}

/// A run belongs to its work tree; a hint names the way.
#[test]
fn a_run_of_another_work_tree_is_named() {
    let env = still();
    env.git(&["worktree", "add", "-q", "../other"]);
    failed_in_the_second(&env);
    let id = env.json(0, &["status"])["run"]["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let error = env.json(4, &["-C", "../other", "resume", "--wait", &id]);
    assert!(
        error["error"]["hint"].as_str().unwrap().contains("-C"),
        "{error}"
    );
}

/// The aliases that shell hooks use.
#[test]
fn top_level_flags_are_aliases() {
    let env = still();
    failed_in_the_second(&env);
    assert_eq!(env.json(0, &["--resume", "--wait"])["command"], "resume");
}

/// B1, B3: `status` offers the strategies, the recommended one marked; every field a script needs is there.
#[test]
fn status_explains_and_offers() {
    let env = still();
    failed_in_the_second(&env);
    let status = env.json(0, &["status"]);
    for field in [
        "type",
        "severity",
        "iteration",
        "at",
        "message",
        "details",
        "recoverable",
        "suggested_action",
    ] {
        assert!(!status["failure"][field].is_null(), "{field}: {status}");
    }
    let options = status["options"].as_array().unwrap();
    let codes: Vec<_> = options.iter().map(|option| &option["strategy"]).collect();
    assert_eq!((codes.len(), codes[5]), (6, &json!("start_fresh")));
    let recommended: Vec<_> = options
        .iter()
        .filter(|option| option["recommended"] == true)
        .map(|o| &o["strategy"])
        .collect();
    assert_eq!(recommended, [&json!("retry_with_context")]);
    assert!(
        options.iter().all(|option| option["available"] == true),
        "{status}"
    );
}

/// B15: nothing to roll back to is said, with another way on; so are edits that a rollback would lose.
#[test]
fn a_rollback_that_cannot_be_made_is_refused() {
    let env = quick();
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--loop",
            "build",
            "--exit-code",
            "101",
            "--message",
            "error: could not compile",
        ],
    );
    let error = env.json(4, &["resume", "--strategy", "rollback_and_retry"]);
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("No checkpoint available"),
        "{error}"
    );
    assert!(
        error["error"]["hint"].as_str().unwrap().contains("resume"),
        "{error}"
    );

    let env = still();
    failed_in_the_second(&env);
    env.write("junk", "a person's work\n");
    let error = env.json(
        13,
        &["resume", "--wait", "--strategy", "rollback_and_retry"],
    );
    assert_eq!(error["error"]["code"], "hand_edits");
    assert_eq!(env.read("junk"), "a person's work\n");
    assert_eq!(seen(&env), "1.1 2.1", "nothing was begun");
}

/// B4, B10: after a full rollback the run begins with its first iteration, history kept.
#[test]
fn a_run_that_was_rolled_back_in_full_can_be_taken_up() {
    let env = still();
    failed_in_the_second(&env);
    let rolled = env.json(0, &["rollback", "--full", "--yes"]);
    assert_eq!(rolled["run"]["status"], "pending");
    assert_eq!(env.json(0, &["status"])["failure"], Value::Null);
    let resumed = env.json(0, &["resume", "--wait"]);
    assert_eq!(resumed["outcome"], "complete");
    assert_eq!(seen(&env), "1.1 2.1 1.2 2.2 3.1");
    assert_eq!(env.read("prompt-1-2.txt"), "Do it.\n");
}

// B3: where nobody said how many iterations there are, the next is the farthest; and nobody waits for a thousand million
// events to be written.
#[test]
fn from_iteration_is_bounded_without_a_total_too() {
    let env = TestEnv::repo();
    let until = [
        "run",
        "--run",
        "u",
        "--until",
        "false",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        "exit 3",
    ];
    env.recover(&until);
    let lines = || env.read(".ultraplan/state/events.jsonl").lines().count();
    let before = lines();
    let asked = [
        "resume",
        "--run",
        "u",
        "--strategy",
        "retry_same",
        "--prepare-only",
        "--from-iteration",
        "4000000000",
    ];
    let refused = env.json(2, &asked);
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("iteration 4000000000") && message.contains("from 2 at most"),
        "{message}"
    );
    assert_eq!(lines(), before, "nothing is written");
    // The hint works as it stands.
    let hint = refused["error"]["hint"].as_str().expect("a hint");
    let line = hint.replacen("recover", env!("CARGO_BIN_EXE_recover"), 1);
    env.sh(&format!("{line} --prepare-only")).expect(0);
    assert_eq!(
        env.json(0, &["status", "--run", "u"])["run"]["current_iteration"],
        2
    );

    let many = [
        "run",
        "--run",
        "m",
        "--iterations",
        "4000000000",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        "exit 3",
    ];
    env.recover(&many);
    let before = lines();
    let refused = env.json(
        2,
        &[
            "resume",
            "--run",
            "m",
            "--prepare-only",
            "--from-iteration",
            "4000000000",
        ],
    );
    assert!(
        refused["error"]["message"]
            .as_str()
            .expect("a message")
            .contains("from 10001 at most"),
        "{refused}"
    );
    assert_eq!(lines(), before, "nothing is written");
    assert!(
        refused["error"]["hint"]
            .as_str()
            .expect("a hint")
            .contains("--from-iteration 10001"),
        "{refused}"
    );
}

// B5: what a resume names next is what the end and `status` name, with what a person does by hand.
#[test]
fn what_a_resume_names_next_is_what_status_names() {
    let env = TestEnv::repo();
    let full = "echo 'cp: write error: No space left on device' >&2; exit 1";
    env.recover(&["run", "--run", "full", "--", "sh", "-c", full])
        .expect(8);
    let next = "resume --strategy retry_same --run full";
    let status = env.recover(&["status", "--run", "full"]).expect(0).stdout;
    assert!(status.contains(next), "{status}");
    let named = env.json(8, &["resume", "--run", "full"])["next_actions"].clone();
    assert!(
        named[0].as_str().is_some_and(|first| first.ends_with(next)),
        "{named}"
    );
    let said = env.recover(&["resume", "--run", "full"]).expect(8).stdout;
    assert!(
        said.contains("Manual steps\n  1. Free space on the disk"),
        "{said}"
    );
}

#[test]
fn a_resume_that_has_to_wait_repeats_what_was_asked_for() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = '1h'\n");
    env.recover(&[
        "run",
        "--run",
        "r",
        "--no-wait",
        "--feedback",
        "test=exit 1",
        "--",
        "true",
    ])
    .expect(6);
    let asked = [
        "resume",
        "--run",
        "r",
        "--strategy",
        "rollback_and_retry",
        "--instructions",
        "Keep the tests.",
    ];
    let next = env.json(6, &asked)["next_actions"][0].clone();
    let words =
        "resume --wait --strategy rollback_and_retry --instructions 'Keep the tests.' --run r";
    assert!(
        next.as_str().is_some_and(|next| next.ends_with(words)),
        "{next}"
    );
}

// What was taken back is tried again; to skip it is a person's own thought.
#[test]
fn after_a_rollback_the_iteration_is_not_skipped() {
    let env = quick();
    let work = "echo $RECOVER_ITERATION >> a.txt; [ $RECOVER_ITERATION != 2 ] || echo bad >> a.txt";
    let run = [
        "run",
        "--run",
        "n",
        "--iterations",
        "3",
        "--attempts",
        "1",
        "--feedback",
        "test=! grep -q bad a.txt",
    ];
    env.recover(&[&run[..], &["--", "sh", "-c", work]].concat());
    env.json(0, &["rollback", "--iteration", "2"]);
    let next = env.json(0, &["status"])["night"]["next"].clone();
    assert!(
        next.as_str()
            .is_some_and(|next| next.ends_with("resume --strategy retry_with_context --run n")),
        "{next}"
    );
}

// A strategy that is asked for grants one attempt, also where it is only prepared: what was prepared is what is run.
#[test]
fn what_was_prepared_is_gone_on_with() {
    for then in [
        &["resume"][..],
        &["resume", "--strategy", "retry_with_context"],
        &["resume", "--restart"],
    ] {
        let env = TestEnv::repo();
        let agent = "echo $RECOVER_ATTEMPT >> tries; cat > said";
        let args = [
            "run",
            "--run",
            "r",
            "--attempts",
            "1",
            "--feedback",
            "test=test -f fixed",
            "--",
            "sh",
            "-c",
            agent,
        ];
        env.json(8, &args);
        let strategy = [
            "resume",
            "--prepare-only",
            "--strategy",
            "retry_with_context",
            "--instructions",
            "use b",
        ];
        let prepared = env.json(0, &strategy);
        let hint = prepared["next_actions"][0]
            .as_str()
            .expect("a way on")
            .to_owned();
        assert!(hint.ends_with(" resume --run r"), "{hint}");
        env.write("fixed", "");
        let resumed = env.json(0, then);
        assert_eq!(
            (&resumed["outcome"], &resumed["executed"]),
            (&json!("complete"), &json!(true)),
            "{then:?}"
        );
        assert_eq!(
            env.read("tries").lines().count(),
            if then.contains(&"--restart") { 1 } else { 2 },
            "{then:?}"
        );
        assert_eq!(resumed["iterations"][0]["status"], "completed", "{resumed}");
        assert_eq!(
            env.read("said").contains("use b"),
            then.len() == 1,
            "{then:?}"
        );
    }
}

// A rollback gives no attempt back: the way on that is named after one is a person's word, and works.
#[test]
fn the_way_on_after_a_rollback_of_an_exhausted_run_works() {
    for back in [
        &["rollback", "--full"][..],
        &["rollback", "--iteration", "1"],
        &["rollback", "--to", "initial"],
    ] {
        let env = TestEnv::repo();
        let agent = "echo x >> ../tries";
        let args = [
            "run",
            "--run",
            "r",
            "--attempts",
            "1",
            "--feedback",
            "test=test -f fixed",
            "--",
            "sh",
            "-c",
            agent,
        ];
        env.json(8, &args);
        let hint = env.json(0, back)["resume_hint"]
            .as_str()
            .expect("a hint")
            .to_owned();
        let next = env.json(0, &["status"])["night"]["next"]
            .as_str()
            .expect("a way on")
            .to_owned();
        assert!(
            next.ends_with("resume --strategy retry_with_context --run r")
                && hint.ends_with(&next["recover".len()..]),
            "{hint} {next}"
        );
        env.recover(&["resume"]).expect(8);
        env.write("fixed", "");
        env.sh(&hint.replacen("recover", env!("CARGO_BIN_EXE_recover"), 1))
            .expect(0);
        assert_eq!(env.read("../tries").lines().count(), 2, "{back:?}");
    }
}

#[test]
fn an_attempt_beyond_the_budget_is_not_counted_against_it() {
    let env = TestEnv::repo();
    env.recover(&["run", "--attempts", "1", "--", "false"])
        .expect(8);
    let granted = env
        .recover(&["resume", "--strategy", "retry_with_context"])
        .expect(8);
    assert!(
        granted.stderr.contains("Iteration 1 of 1, attempt 2\n"),
        "{}",
        granted.stderr
    );
}

/// B4: a run that only holds checkpoints is no run to begin again; the ways that are named work.
#[test]
fn what_nothing_ran_in_is_not_begun_again() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create"]);
    env.write("work.txt", "a person's\n");
    env.json(0, &["checkpoint", "create"]);
    let refused = env.error(13, &["resume", "--strategy", "retry_same"]);
    let hint = refused["hint"].as_str().expect("a hint");
    assert!(hint.contains("checkpoint list --run manual"), "{hint}");
    let refused = env.error(13, &["resume", "--restart"]);
    assert_eq!(refused["code"], "not_failed");
    assert!(
        refused["hint"]
            .as_str()
            .expect("a hint")
            .contains("rollback --to initial --run manual"),
        "{refused}"
    );
    assert_eq!(env.read("work.txt"), "a person's\n");
}

/// B3, B4: the plan of a run that was killed is what is done: what it left goes back, and is nobody's edit.
#[test]
fn the_plan_of_a_killed_run_says_that_its_files_go_back() {
    let env = TestEnv::repo();
    let child = env.start(&[
        "run",
        "--run",
        "r",
        "--",
        "sh",
        "-c",
        "echo half >> a.txt; touch ../began; exec sleep 60",
    ]);
    until("it is at work", || env.root().join("began").exists());
    env.sh(&format!("kill -KILL {}", child.id()));
    ended(child);
    let before = env.read("a.txt");
    let plan = env.json(0, &["resume", "--dry-run"])["plan"].clone();
    assert_eq!(
        plan["restore"]["written"],
        json!([{"path": "a.txt"}]),
        "{plan}"
    );
    assert_eq!(env.read("a.txt"), before, "nothing was done");
    let resumed = env.json(0, &["resume", "--", "true"]);
    assert_eq!(resumed["outcome"], "complete");
    assert!(!env.read("a.txt").contains("half"));
}

/// B3: what a plan says of the last iteration is what is done: nothing is run.
#[test]
fn nothing_is_planned_after_the_last_iteration() {
    let env = TestEnv::repo();
    let fails = [
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--on-failure",
        "stop",
        "--",
        "sh",
        "-c",
    ];
    env.json(8, &[&fails[..], &["echo ran >> ../ran; exit 1"]].concat());
    let resume = ["resume", "r", "--strategy", "continue_next"];
    let plan = env.json(0, &[&resume[..], &["--dry-run"]].concat())["plan"].clone();
    assert_eq!(
        (&plan["iteration"], &plan["command"]),
        (&json!(1), &json!([]))
    );
    let told = env
        .recover(&[&resume[..], &["--dry-run"]].concat())
        .expect(0)
        .stdout;
    assert!(
        told.contains("Plan: continue_next, no iteration is left, and nothing is run\n"),
        "{told}"
    );
    assert_eq!(env.json(0, &resume)["outcome"], "complete");
    assert_eq!(env.sh("cat ../ran").stdout, "ran\n");
}

/// B3, B4: a dry run says what would become of the files, what would be run, and with which prompt; what is refused then is
/// refused in the plan.
#[test]
fn a_dry_run_is_the_plan_of_its_strategy() {
    let env = still();
    failed_in_the_second(&env);
    let plan = |args: &[&str]| {
        env.json(0, &[&["resume", "--dry-run", "--wait"], args].concat())["plan"].clone()
    };
    let kept = plan(&["--strategy", "retry_with_context"]);
    assert_eq!(
        (&kept["iteration"], &kept["error_context"], &kept["restore"]),
        (&2.into(), &true.into(), &Value::Null)
    );
    assert_eq!(kept["command"], json!(["./agent.sh"]));
    assert_eq!(plan(&["--strategy", "retry_same"])["error_context"], false);
    assert_eq!(plan(&["--strategy", "continue_next"])["iteration"], 3);
    let back = plan(&["--strategy", "rollback_and_retry"]);
    let deleted = back["restore"]["deleted"]
        .as_array()
        .expect("paths")
        .clone();
    assert!(deleted.contains(&json!({"path": "junk"})), "{back}");
    let afresh = plan(&["--restart"]);
    assert_eq!(
        (&afresh["iteration"], &afresh["error_context"]),
        (&1.into(), &false.into())
    );
    assert!(
        afresh["restore"]["deleted"]
            .as_array()
            .expect("paths")
            .contains(&json!({"path": "state"})),
        "{afresh}"
    );
    let told = env
        .recover(&[
            "resume",
            "--dry-run",
            "--wait",
            "--strategy",
            "rollback_and_retry",
        ])
        .expect(0)
        .stdout;
    for part in [
        "Plan: rollback_and_retry, iteration 2",
        "would delete junk",
        "Command: ./agent.sh",
        "assert 1 == 2",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // As the resume itself.
    env.write("junk", "by hand\n");
    let refused = ["resume", "--wait", "--strategy", "rollback_and_retry"];
    assert_eq!(
        env.error(13, &[&refused[..], &["--dry-run"]].concat())["code"],
        env.error(13, &refused)["code"]
    );
    assert!(env.exists("junk"));
}
