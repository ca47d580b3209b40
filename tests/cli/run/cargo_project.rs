//! The main job on a real project: an agent that breaks a test in its second iteration.

use crate::env::TestEnv;
use crate::run::supervision::NOW;

/// B1, B3, B6, B10, B12, L2: fails, is understood, waits, is rolled back, put back, resumed with the test's own error.
#[test]
fn a_cargo_project_whose_test_breaks() {
    let mut env = TestEnv::repo();
    let cargo = std::path::PathBuf::from(std::env::var_os("CARGO").expect("run by cargo"));
    let path = format!(
        "{}:{}",
        cargo.parent().expect("a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    env.set("PATH", &path)
        .set("RECOVER_TEST_NOW", NOW)
        .set("CARGO_NET_OFFLINE", "true");
    env.write(
        "Cargo.toml",
        "[package]\nname = \"sum\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    env.write(".gitignore", "target\n");
    let library = "pub fn sum(a: i32, b: i32) -> i32 { BODY }\n#[test]\nfn adds() { assert_eq!(sum(2, 2), 4, \"two and two\"); }\n";
    env.write("src/lib.rs", library.replace("BODY", "0"));
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "project"]);
    env.write("good", library.replace("BODY", "a + b"));
    env.write("broken", library.replace("BODY", "a - b"));
    env.script(
        "agent.sh",
        "cat > prompt-$RECOVER_ITERATION-$RECOVER_ATTEMPT\n\
         if [ $RECOVER_ITERATION.$RECOVER_ATTEMPT = 2.1 ]; then cp broken src/lib.rs; else cp good src/lib.rs; fi",
    );
    let run = [
        "run",
        "--iterations",
        "3",
        "--no-wait",
        "--prompt",
        "Make it add.",
        "--feedback",
        "test=cargo test -q",
        "--",
        "./agent.sh",
    ];
    let document = env.json(6, &run);
    let attempt = &document["iterations"][1]["attempts"][0];
    assert_eq!(
        attempt["failure"]["cause"], "VERIFICATION_FAILED",
        "{attempt}"
    );
    assert_eq!(attempt["feedback_results"]["test"]["failed_count"], 1);
    assert_eq!(
        document["iterations"][0]["attempts"][0]["feedback_results"]["test"]["passed_count"],
        1
    );

    let status = env.json(0, &["status"]);
    assert_eq!(
        (&status["failure"]["type"], &status["failure"]["iteration"]),
        (&"feedback_failure".into(), &2.into())
    );
    assert_eq!(env.json(6, &["retry-status", "--check"])["wait_ms"], 5000);

    let broken = env.read("src/lib.rs");
    let resumed = env.json(0, &["resume", "--strategy", "retry_with_context", "--wait"]);
    assert_eq!(resumed["outcome"], "complete");
    let prompt = env.read("prompt-2-2");
    for part in [
        "Make it add.",
        "## Previous Attempt Failed",
        "two and two",
        "left: 0",
        "adds",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    assert!(env.read("src/lib.rs").contains("a + b"));
    env.json(0, &["rollback", "--to", "iteration:1"]);
    assert!(!env.exists("prompt-2-2"));
    env.json(0, &["undo"]);
    assert!(env.exists("prompt-3-1"));
    assert_ne!(env.read("src/lib.rs"), broken);
}
