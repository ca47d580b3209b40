//! Failures that only pass once a permission or a login has changed: nothing but that allows a retry.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::env::TestEnv;
use crate::state::foreign_state::is_root;

const DENIED: &str = "cat: secret: Permission denied";
const LOGGED_OUT: &str = "Invalid API key · Please run /login";

fn chmod(env: &TestEnv, path: &str, mode: u32) {
    std::fs::set_permissions(env.work().join(path), Permissions::from_mode(mode))
        .expect("its mode is set");
}

/// Fails with these words on stderr.
fn fail(env: &TestEnv, words: &str) -> Value {
    env.write("../stderr", words);
    env.json(
        8,
        &[
            "attempt",
            "fail",
            "--check",
            "--loop",
            "agent",
            "--exit-code",
            "1",
            "--stderr",
            "../stderr",
        ],
    )
}

fn check(env: &TestEnv, code: i32) -> Value {
    env.json(code, &["retry-status", "--check"])
}

fn reason(document: &Value) -> String {
    document["decision"]["reason"]
        .as_str()
        .expect("a reason")
        .to_owned()
}

// S7: permissions changed.
#[test]
fn a_mode_that_changed_allows_a_retry() {
    let env = TestEnv::repo();
    env.write("secret", "x\n");
    chmod(&env, "secret", 0);
    fail(&env, DENIED);
    assert_eq!(check(&env, 8)["can_retry"], false);
    // Its content is not its permission.
    env.write("other", "x\n");
    check(&env, 8);
    chmod(&env, "secret", 0o644);
    let allowed = check(&env, 0);
    assert_eq!(
        (&allowed["can_retry"], &allowed["decision"]["actions"][0]),
        (&true.into(), &"retry".into())
    );
    let reason = reason(&allowed);
    assert!(
        reason.contains("secret changed (mode 0000") && reason.contains("now mode 0644"),
        "{reason}"
    );
    let status = env.json(0, &["status"]);
    assert_eq!(status["retry"]["can_retry"], true);
    assert_eq!(status["retry"]["run"]["status"], "paused", "{status}");
    assert!(
        env.recover(&["status", "-v"])
            .stdout
            .contains("An attempt is allowed now.")
    );
    assert_eq!(env.json(0, &["runs"])["runs"][0]["status"], "paused");
    let report = env.recover(&["report"]).stdout;
    assert!(report.contains("a retry is allowed"), "{report}");
    // Back to what it was.
    chmod(&env, "secret", 0);
    check(&env, 8);
    // What failed again is judged anew: the limit is two attempts.
    chmod(&env, "secret", 0o644);
    check(&env, 0);
    fail(&env, DENIED);
    check(&env, 8);
    chmod(&env, "secret", 0);
    check(&env, 8);
}

#[test]
fn a_folder_that_may_be_written_to_now_allows_a_retry() {
    let env = TestEnv::repo();
    env.write("out/keep", "x\n");
    chmod(&env, "out", 0o555);
    fail(
        &env,
        "cp: cannot create regular file 'out/new': Permission denied",
    );
    check(&env, 8);
    chmod(&env, "out", 0o755);
    assert!(reason(&check(&env, 0)).starts_with("out changed"));
}

#[test]
fn resume_goes_on_once_a_mode_changed() {
    let env = TestEnv::repo();
    env.write("secret", "x\n");
    chmod(&env, "secret", 0);
    // Root may read everything.
    let command = "if test -n \"$(find secret -perm 644)\"; then cat secret; else echo 'cat: secret: Permission denied' >&2; exit 1; fi";
    let document = env.json(8, &["run", "--", "sh", "-c", command]);
    assert_eq!(
        document["iterations"][0]["attempts"][0]["failure"]["cause"], "PERMISSION_DENIED",
        "{document}"
    );
    let held = env.json(8, &["resume"]);
    assert_eq!(held["executed"], false, "{held}");
    chmod(&env, "secret", 0o644);
    let planned = env.json(0, &["--dry-run", "resume"]);
    assert_eq!(planned["strategy"], "retry_same", "{planned}");
    let resumed = env.json(0, &["resume"]);
    assert_eq!(
        (&resumed["executed"], &resumed["outcome"]),
        (&true.into(), &"complete".into()),
        "{resumed}"
    );
}

#[test]
fn resume_of_another_user_reads_a_file_once_it_may() {
    if !is_root("resume_of_another_user_reads_a_file_once_it_may") {
        return;
    }
    let env = TestEnv::repo();
    let recover = env!("CARGO_BIN_EXE_recover");
    env.write("secret", "x\n");
    chmod(&env, "secret", 0);
    env.sh(&format!(
        "cp {recover} ../recover; chmod 755 .. ../recover; chown -R 65534:65534 . ../home"
    ))
    .expect(0);
    let by = |args: &str| {
        env.sh(&format!(
            "setpriv --reuid=65534 --regid=65534 --clear-groups ../recover {args}"
        ))
    };
    if by("--version").code != 0 {
        println!("skipped, another user cannot look into the temporary folder");
        return;
    }
    by("run -- cat secret").expect(8);
    by("retry-status --check").expect(8);
    chmod(&env, "secret", 0o644);
    by("retry-status --check").expect(0);
    by("resume").expect(0);
}

// S7: credentials changed.
#[test]
fn credentials_that_changed_allow_a_retry() {
    let mut env = TestEnv::repo();
    env.set("ANTHROPIC_API_KEY", "first-of-all-keys");
    fail(&env, LOGGED_OUT);
    check(&env, 8);
    // A login writes a file.
    env.write("../home/.claude/.credentials.json", "{}");
    assert!(reason(&check(&env, 0)).starts_with("~/.claude/.credentials.json was created"));
    std::fs::remove_file(env.root().join("home/.claude/.credentials.json")).expect("removed");
    check(&env, 8);
    // A variable has another value, or there is one more.
    env.set("NIGHTLY_SERVICE_TOKEN", "a");
    assert!(reason(&check(&env, 0)).starts_with("NIGHTLY_SERVICE_TOKEN was set"));
    env.set("NIGHTLY_SERVICE_TOKEN", "");
    check(&env, 8);
    env.set("ANTHROPIC_API_KEY", "second-of-all-keys");
    assert!(reason(&check(&env, 0)).starts_with("ANTHROPIC_API_KEY changed"));
}

#[test]
fn values_of_variables_are_recorded_nowhere() {
    let mut env = TestEnv::repo();
    env.set("OPENAI_API_KEY", "hunter22");
    fail(&env, LOGGED_OUT);
    fail(&env, LOGGED_OUT);
    let ledger = env.read_state("events.jsonl");
    assert!(!ledger.contains("hunter22"));
    // The same value has another checksum each time.
    let states: Vec<&str> = ledger
        .split("\"name\":\"OPENAI_API_KEY\",\"state\":\"")
        .skip(1)
        .collect();
    assert_eq!(states.len(), 2, "{ledger}");
    assert_ne!(states[0][..64], states[1][..64]);
}

// S7: a command that could not be run is named by its shell, not by its exit status.
#[test]
fn a_run_bit_that_was_missing_allows_a_retry() {
    let env = TestEnv::repo();
    env.script("tool", "echo done");
    chmod(&env, "tool", 0o644);
    let line = "echo begun; ./tool";
    env.json(8, &["run", "--run", "r", "--", "sh", "-c", line]);
    check(&env, 8);
    chmod(&env, "tool", 0o755);
    assert!(reason(&check(&env, 0)).contains("tool"));
    env.json(0, &["resume", "r"]);
}
