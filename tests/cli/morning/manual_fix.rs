//! `manual-fix`: a person's fix between two attempts.

use crate::env::TestEnv;
use serde_json::Value;

/// A run whose second of three iterations keeps failing, stopped at its cooldown.
pub fn failed_run() -> TestEnv {
    let env = TestEnv::repo();
    env.script(
        "agent.sh",
        "cat > \"prompt-$RECOVER_ITERATION-$RECOVER_ATTEMPT.txt\"\n\
         if [ $RECOVER_ITERATION = 2 ]; then echo bad > state; fi; [ -e state ] || echo good > state",
    );
    let test = "test=grep -qx good state || { echo '1 failed, 3 passed in 0.12s'; exit 1; }";
    let run = [
        "run",
        "--run",
        "r 1",
        "--iterations",
        "3",
        "--no-wait",
        "--prompt",
        "Do it.",
        "--feedback",
        test,
    ];
    env.json(6, &[&run[..], &["--", "./agent.sh"]].concat());
    env
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

// B8, B9, B15, B16: the whole way, each step a process of its own.
#[test]
fn a_fix_is_told_verified_and_built_upon() {
    let env = failed_run();
    let started = env.json(0, &["manual-fix", "start"]);
    let session = &started["session"];
    for key in [
        "id",
        "run_id",
        "task_id",
        "started_at",
        "issue",
        "detected_changes",
        "verification_results",
    ] {
        assert!(keys(session).contains(&key), "{key}: {session}");
    }
    assert_eq!(
        (session["run_id"].as_str(), session["status"].as_str()),
        (Some("r 1"), Some("active"))
    );
    assert_eq!(
        (
            session["verified"].as_bool(),
            session["verified_tree"].is_null()
        ),
        (Some(false), true)
    );
    assert_eq!(session["issue"]["cause"], "VERIFICATION_FAILED");
    assert_eq!(started["run"]["status"], "paused");
    assert_eq!(
        env.json(0, &["manual-fix", "start"])["session"]["id"],
        session["id"],
        "a second start is the open one"
    );
    assert_eq!(env.json(0, &["status"])["manual_fix"]["id"], session["id"]);

    // Nothing automatic goes on meanwhile.
    assert_eq!(
        env.json(8, &["resume", "--wait"])["error"]["code"],
        "needs_person"
    );
    env.json(8, &["retry-status", "--check"]);
    assert_eq!(
        env.json(13, &["manual-fix", "continue"])["error"]["code"],
        "not_verified"
    );

    let failed = env.recover(&["manual-fix", "verify"]).expect(100);
    assert!(
        failed.stdout.contains("Verification failed"),
        "{}",
        failed.stdout
    );
    env.write("state", "good\n");
    env.write("new.txt", "1\n2\n");
    std::fs::remove_file(env.work().join("prompt-1-1.txt")).unwrap();
    let status = env.json(0, &["manual-fix", "status"]);
    let changes = status["session"]["detected_changes"]
        .as_array()
        .unwrap()
        .clone();
    let change = |path: &str| {
        changes
            .iter()
            .find(|change| change["path"] == path)
            .unwrap_or(&Value::Null)
    };
    assert_eq!(change("state")["type"], "modified");
    // As the specification has it, with the difference, and when the last was made.
    let diff = change("state")["diff"].as_str().unwrap_or_default();
    assert!(diff.contains("\n-bad\n+good\n"), "{status}");
    assert!(status["session"]["last_detected_at"].is_string());
    let told = env.recover(&["manual-fix", "status"]).expect(0).stdout;
    assert!(told.contains("Last detected: "), "{told}");
    assert_eq!(
        (&change("state")["added"], &change("state")["deleted"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&change("new.txt")["type"], &change("new.txt")["added"]),
        (&"created".into(), &2.into())
    );
    assert_eq!(change("prompt-1-1.txt")["type"], "deleted");

    let verified = env.json(0, &["manual-fix", "verify"]);
    let result = &verified["session"]["verification_results"]["test"];
    assert_eq!(
        (&result["passed"], &result["exit_code"]),
        (&true.into(), &0.into())
    );
    for key in ["duration_ms", "summary", "passed_count", "failed_count"] {
        assert!(keys(result).contains(&key), "{key}: {result}");
    }
    assert!(verified["session"]["verified_tree"].is_string());

    // What was verified is this very tree.
    env.write("late.txt", "x");
    assert_eq!(
        env.json(0, &["manual-fix", "status"])["session"]["verified"],
        false
    );
    let refused = env.json(13, &["manual-fix", "continue"]);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("files changed since"),
        "{refused}"
    );
    std::fs::remove_file(env.work().join("late.txt")).unwrap();

    let document = env.json(0, &["manual-fix", "continue"]);
    assert_eq!(
        (&document["outcome"], &document["run"]["status"]),
        (&"complete".into(), &"complete".into())
    );
    assert_eq!(document["session"]["status"], "completed");
    assert_eq!(document["iterations"][1]["status"], "completed");
    let prompt = env.read("prompt-3-1.txt");
    assert!(prompt.starts_with("Do it."), "{prompt}");
    for part in [
        "## Manual Fix Applied",
        "- modified: state",
        "- created: new.txt",
        "- deleted: prompt-1-1.txt",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert_eq!(prompt.matches("## ").count(), 1, "{prompt}");
    let list = env.json(0, &["checkpoint", "list"]);
    let fix = |checkpoint: &&Value| {
        checkpoint["trigger"] == "manual_fix" && checkpoint["verdict"] == "passed"
    };
    let good = list["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .find(fix)
        .expect("the fix is a good checkpoint");
    assert_eq!(
        (
            &good["after_iteration"],
            &good["feedback_results"]["test"]["passed"]
        ),
        (&2.into(), &true.into())
    );
    assert_eq!(env.state_json("recovery.json")["errorCount"], 0);
    env.json(4, &["manual-fix", "verify"]);
}

// B8: the loop's counts are told.
#[test]
fn counts_of_the_feedback_loops_are_told() {
    let env = failed_run();
    env.json(0, &["manual-fix", "start"]);
    let result =
        &env.json(100, &["manual-fix", "verify"])["session"]["verification_results"]["test"];
    assert_eq!(
        (&result["passed_count"], &result["failed_count"]),
        (&3.into(), &1.into()),
        "{result}"
    );
    assert_eq!(
        (&result["passed"], &result["exit_code"]),
        (&false.into(), &1.into())
    );
}

// B8: every end cleans up; the run can be resumed otherwise.
#[test]
fn an_aborted_fix_leaves_the_files_and_the_run_as_they_are() {
    let env = failed_run();
    env.json(0, &["manual-fix", "start"]);
    env.write("mine.txt", "x");
    let aborted = env.json(0, &["manual-fix", "abort"]);
    assert_eq!(
        (&aborted["session"]["status"], &aborted["run"]["status"]),
        (&"aborted".into(), &"failed".into())
    );
    assert!(env.exists("mine.txt"));
    assert!(env.json(0, &["status"])["manual_fix"].is_null());
    assert_eq!(
        env.json(4, &["manual-fix", "verify"])["error"]["code"],
        "no_session"
    );
    assert_eq!(
        env.json(4, &["manual-fix", "abort"])["error"]["code"],
        "no_session"
    );
    assert!(env.json(0, &["manual-fix", "start"])["session"]["id"] != aborted["session"]["id"]);
}

// B3: a strategy that hands over opens a session.
#[test]
fn resume_can_hand_over() {
    let env = failed_run();
    let resumed = env.json(8, &["resume", "--strategy", "manual_then_continue"]);
    assert_eq!(
        (&resumed["strategy"], &resumed["executed"]),
        (&"manual_then_continue".into(), &false.into())
    );
    let open = env.json(0, &["manual-fix", "status"]);
    assert_eq!(open["session"]["status"], "active");
    env.json(8, &["resume", "--strategy", "retry_same"]);
    env.json(8, &["resume", "--strategy", "manual_then_continue"]);
    assert_eq!(
        env.json(0, &["manual-fix", "start"])["session"]["id"],
        open["session"]["id"]
    );
}

// B8: without feedback loops nothing can be verified.
#[test]
fn verifying_needs_feedback_loops() {
    let env = TestEnv::repo();
    env.json(6, &["run", "--no-wait", "--", "sh", "-c", "exit 3"]);
    env.json(0, &["manual-fix", "start"]);
    let error = env.json(2, &["manual-fix", "verify"]);
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("[[feedback]]"),
        "{error}"
    );
}

// The contract of --dry-run: nothing is written, the answer has the same form.
#[test]
fn dry_runs_change_nothing() {
    let env = failed_run();
    let before = env.read(".ultraplan/state/events.jsonl");
    let planned = env.json(0, &["manual-fix", "start", "--dry-run"]);
    assert_eq!(planned["session"]["status"], "active");
    assert_eq!(env.read(".ultraplan/state/events.jsonl"), before);
    env.json(0, &["manual-fix", "start"]);
    env.write("state", "good\n");
    env.json(0, &["manual-fix", "verify"]);
    let before = env.read(".ultraplan/state/events.jsonl");
    for what in ["verify", "continue", "abort", "start"] {
        assert_eq!(
            env.json(0, &["manual-fix", what, "--dry-run"])["session"]["status"],
            "active",
            "{what}"
        );
    }
    assert_eq!(env.read(".ultraplan/state/events.jsonl"), before);
    assert!(!env.exists("prompt-3-1.txt"));
}

// B8: a run that stands at no failure has nothing to fix.
#[test]
fn a_run_that_did_not_fail_has_nothing_to_fix() {
    let env = TestEnv::repo();
    env.json(4, &["manual-fix", "start"]);
    env.json(0, &["run", "--", "true"]);
    assert_eq!(
        env.json(13, &["manual-fix", "start"])["error"]["code"],
        "not_failed"
    );
    env.json(4, &["manual-fix", "status"]);
}

// B8: the last iteration's fix ends the run; `--on-failure manual-fix` opens the session by itself.
#[test]
fn a_fix_of_the_last_iteration_completes_the_run() {
    let env = TestEnv::repo();
    let run = [
        "run",
        "--on-failure",
        "manual-fix",
        "--feedback",
        "t=test -e ok",
        "--",
        "true",
    ];
    let paused = env.json(8, &run);
    assert_eq!(paused["outcome"], "paused");
    let status = env.json(0, &["status"]);
    assert_eq!(status["resume_hint"], paused["resume_hint"]);
    let open: Vec<&Value> = status["options"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["available"] == true)
        .collect();
    assert!(
        open.iter()
            .all(|one| one["strategy"] == "manual_then_continue")
            && !open.is_empty(),
        "{open:?}"
    );
    env.write("ok", "");
    // What goes on is the fix, not another attempt.
    let words = shlex::split(paused["resume_hint"].as_str().unwrap()).unwrap();
    env.recover(&words[1..].iter().map(String::as_str).collect::<Vec<_>>())
        .expect(0);
    let text = env.recover(&["manual-fix", "continue"]).expect(0).stdout;
    assert!(text.contains("complete;"), "{text}");
    assert_eq!(env.json(0, &["status"])["run"]["status"], "complete");
}
