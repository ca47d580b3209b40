//! The main job once: a run fails, is understood, rolled back, undone, resumed.

use crate::env::TestEnv;

#[test]
fn a_run_fails_is_understood_rolled_back_and_resumed() {
    let env = TestEnv::repo();
    env.script(
        "agent.sh",
        "cat > prompt-$RECOVER_ITERATION-$RECOVER_ATTEMPT.txt\n\
         if [ $RECOVER_ITERATION = 2 ] && [ $RECOVER_ATTEMPT = 1 ]; then echo bad > state; else echo good > state; fi",
    );
    let test =
        "test=grep -qx good state || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";
    let run = [
        "run",
        "--iterations",
        "3",
        "--no-wait",
        "--prompt",
        "Do it.",
        "--feedback",
        test,
        "--",
        "./agent.sh",
    ];
    let document = env.json(6, &run);
    assert_eq!(document["outcome"], "paused");
    assert_eq!(document["iterations"][0]["status"], "completed");
    assert_eq!(
        document["iterations"][1]["attempts"][0]["failure"]["cause"],
        "VERIFICATION_FAILED"
    );

    let status = env.json(0, &["status"]);
    assert_eq!(status["failure"]["type"], "feedback_failure");
    assert_eq!(env.json(6, &["retry-status", "--check"])["error_count"], 1);
    assert_eq!(env.state_json("recovery.json")["errorCount"], 1);

    env.json(0, &["rollback", "--to", "good"]);
    assert_eq!(env.read("state"), "good\n");
    assert!(!env.exists("prompt-2-1.txt"));
    env.json(0, &["undo"]);
    assert_eq!(env.read("state"), "bad\n");

    let resumed = env.json(0, &["resume", "--strategy", "retry_with_context", "--wait"]);
    assert_eq!(resumed["outcome"], "complete");
    let prompt = env.read("prompt-2-2.txt");
    assert!(
        prompt.contains("## Previous Attempt Failed") && prompt.contains("assert 1 == 2"),
        "{prompt}"
    );
}
