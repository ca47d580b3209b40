//! `status` and bare `recover`: where a run stands and how to go on.

use crate::env::TestEnv;
use crate::manual_fix::failed_run;

// B1, B3, B7: why it failed, and the ways on with the recommended one marked.
#[test]
fn a_failed_run_is_explained_with_the_ways_on() {
    let env = failed_run();
    let status = env.json(0, &["status"]);
    let failure = &status["failure"];
    for key in ["type", "severity", "iteration", "at", "message", "details", "recoverable", "suggested_action"] {
        assert!(!failure[key].is_null(), "{key}: {failure}");
    }
    assert_eq!((&failure["severity"], &failure["iteration"]), (&"low".into(), &2.into()));
    let options = status["options"].as_array().unwrap();
    let named = |name: &str| options.iter().find(|option| option["strategy"] == name).unwrap();
    for name in ["retry_same", "retry_with_context", "rollback_and_retry", "continue_next", "manual_then_continue"] {
        let option = named(name);
        assert_eq!(option["available"], true, "{option}");
        assert!(option["label"].is_string() && option["description"].is_string() && option["reason"].is_null());
    }
    assert_eq!(options.iter().filter(|option| option["recommended"] == true).count(), 1);
    assert_eq!(named("retry_with_context")["recommended"], true);
    assert_eq!(status["checkpoints"]["count"], 3);
    assert_ne!(status["checkpoints"]["latest"], status["checkpoints"]["last_good"]);
    assert_eq!((&status["retry"]["error_count"], &status["retry"]["can_retry"]), (&1.into(), &false.into()));
    assert!(status["manual_fix"].is_null() && status["unfinished_operation"].is_null());

    let text = env.recover(&["status"]).expect(0).stdout;
    for part in ["feedback_failure (VERIFICATION_FAILED)", "iteration  2", "* retry_with_context", "cause", "2 of 3"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(env.recover(&[]).expect(0).stdout.lines().count(), text.lines().count(), "bare `recover` is `status`");
}

// B3: what cannot be taken says why.
#[test]
fn options_that_are_not_there_say_why() {
    let env = TestEnv::repo();
    env.json(6, &["run", "--no-wait", "--feedback", "t=false", "--", "true"]);
    let next = || {
        let status = env.json(0, &["status"]);
        let options = status["options"].as_array().unwrap();
        options.iter().find(|option| option["strategy"] == "continue_next").unwrap().clone()
    };
    // Also after the last iteration a person may accept what there is.
    assert_eq!((&next()["available"], &next()["recommended"]), (&true.into(), &false.into()));
    env.json(0, &["manual-fix", "start"]);
    assert_eq!((&next()["available"], &next()["recommended"]), (&false.into(), &false.into()));
    assert!(next()["reason"].as_str().unwrap().contains("manual fix"), "{}", next());
}

// B5: nothing automatic helps against a full disk.
#[test]
fn an_unrecoverable_failure_shows_steps_instead_of_options() {
    let env = TestEnv::repo();
    let full = "echo 'write error: No space left on device' >&2; exit 1";
    let run = env.json(8, &["run", "--", "sh", "-c", full]);
    assert_eq!(run["outcome"], "escalated");
    let status = env.json(0, &["status"]);
    assert_eq!((&status["failure"]["cause"], &status["failure"]["recoverable"]), (&"DISK_FULL".into(), &false.into()));
    assert_eq!(status["options"], serde_json::json!([]));
    assert!(!status["manual_steps"].as_array().unwrap().is_empty());
    let text = env.recover(&["status"]).expect(0).stdout;
    assert!(
        text.contains("Manual steps") && text.contains("df -h") && !text.contains("What you can do next"),
        "{text}"
    );
    env.json(8, &["retry-status", "--check"]);
}

// Contract: exit 4 and 10, and how to begin.
#[test]
fn without_a_run_it_says_how_to_begin() {
    let env = TestEnv::repo();
    let error = env.json(4, &["status"]);
    assert_eq!(error["error"]["code"], "run_not_found");
    assert!(error["error"]["hint"].as_str().unwrap().contains("checkpoint create"), "{error}");
    assert!(env.recover(&[]).expect(0).stdout.contains("recover run"));
    assert!(env.json(0, &[])["run"].is_null());
    assert!(!env.exists(".ultraplan"), "looking makes nothing");
    let plain = TestEnv::plain();
    assert_eq!(plain.json(10, &["status"])["error"]["code"], "no_repository");
    assert!(!plain.exists(".ultraplan"));
}

// Contract: several open runs are ambiguous, and the list is told.
#[test]
fn several_open_runs_have_to_be_told_apart() {
    let env = TestEnv::repo();
    for run in ["a", "b"] {
        env.json(0, &["checkpoint", "create", "--run", run]);
    }
    let error = env.json(4, &["status"]);
    assert_eq!(error["error"]["code"], "ambiguous");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("a [") && message.contains("b ["), "{message}");
    assert_eq!(env.json(0, &["status", "--run", "a"])["run"]["run_id"], "a");
    let mut env = env;
    env.set("RECOVER_RUN_ID", "b");
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "b");
}
