//! Locks of git's that a killed process left: removed where that is certain, named everywhere else.

use crate::env::TestEnv;
use crate::run::supervision::until;

const LOCK: &str = ".git/index.lock";

/// Makes a lock that has not changed since then.
fn lock(env: &TestEnv, when: &str) {
    env.put(LOCK, "");
    assert_eq!(env.sh(&format!("touch -d '{when}' {LOCK}")).code, 0);
}

fn doctor(env: &TestEnv, code: i32, args: &[&str]) -> serde_json::Value {
    let words: Vec<&str> = ["doctor"].iter().chain(args).copied().collect();
    env.json(code, &words)
}

// A git that an attempt killed leaves its lock: every attempt after it would be spent on that.
#[test]
fn a_lock_that_an_attempt_left_is_removed_before_the_next_one() {
    let env = TestEnv::repo();
    let agent = format!(
        "test -e ../once || {{ touch ../once; touch -d '1 minute ago' {LOCK}; exit 1; }}; git commit -qm done --allow-empty"
    );
    let ran = env.recover(&[
        "run",
        "--run",
        "n",
        "--attempts",
        "2",
        "--no-wait",
        "--",
        "sh",
        "-c",
        &agent,
    ]);
    assert!(ran.stderr.contains("index.lock"), "{}", ran.stderr);
    assert!(!env.exists(LOCK));
    env.recover(&["resume", "--run", "n", "--wait"]).expect(0);
}

#[test]
fn a_lock_that_is_older_than_the_boot_is_removed() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create"]);
    lock(&env, "1 year ago");
    assert_eq!(doctor(&env, 12, &[])["problems"][0]["repairable"], true);
    env.json(0, &["checkpoint", "create"]);
    assert!(!env.exists(LOCK));
}

// It may be a person's, who goes on in a moment.
#[test]
fn any_other_lock_is_named_with_its_age() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create", "--run", "n"]);
    lock(&env, "3 minutes ago");
    let found = doctor(&env, 12, &[]);
    let problem = &found["problems"][0];
    assert_eq!(
        (problem["code"].as_str(), problem["repairable"].as_bool()),
        (Some("git_lock"), Some(false)),
        "{found}"
    );
    assert!(
        problem["message"]
            .as_str()
            .expect("text")
            .contains(".git/index.lock (3 min old)"),
        "{problem}"
    );
    doctor(&env, 12, &["--repair"]);
    assert!(env.exists(LOCK));
    let status = env.json(0, &["status", "--run", "n"]);
    assert_eq!(
        status["git_locked"],
        "git is locked by .git/index.lock (3 min old)"
    );
    assert!(
        env.recover(&["status", "--run", "n"])
            .stdout
            .contains(".git/index.lock (3 min old)")
    );
    let failed = env.recover(&[
        "run",
        "--run",
        "f",
        "--no-wait",
        "--attempts",
        "1",
        "--",
        "git",
        "add",
        "a.txt",
    ]);
    let first = failed
        .stderr
        .lines()
        .find(|line| line.contains("FAILED"))
        .expect("a failure");
    assert!(
        first.contains("git is locked by .git/index.lock"),
        "{first}"
    );
    assert!(env.exists(LOCK));
}

// A commit whose message is being written holds its lock for as long as that takes.
#[test]
fn the_lock_of_a_git_that_works_stays() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create"]);
    let editor = "touch up; while [ ! -e done ]; do sleep 0.05; done; exit 1";
    let mut git = env.command("git");
    git.args(["commit", "-a", "--amend"])
        .env("GIT_EDITOR", format!("sh -c '{editor}'"))
        .stderr(std::process::Stdio::null());
    let mut git = git.spawn().expect("git starts");
    until("git waits", || env.exists("up") && env.exists(LOCK));
    assert_eq!(env.sh(&format!("touch -d '1 year ago' {LOCK}")).code, 0);
    env.json(0, &["checkpoint", "create"]);
    let found = doctor(&env, 12, &["--repair"]);
    assert!(
        found["problems"][0]["message"]
            .as_str()
            .expect("text")
            .contains("is at work"),
        "{found}"
    );
    assert!(env.exists(LOCK));
    env.put("done", "");
    git.wait().expect("git ends");
}

// The mark that says that a lock is ours is not synced.
#[test]
fn an_empty_mark_after_a_power_failure_is_understood() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create", "--run", "n"]);
    env.write("a.txt", "bad\n");
    env.put(".git/recover/holds-index", "");
    std::fs::hard_link(
        env.work().join(".git/recover/holds-index"),
        env.work().join(LOCK),
    )
    .expect("a link");
    assert_eq!(doctor(&env, 12, &[])["problems"][0]["code"], "stale_lock");
    env.json(
        0,
        &["rollback", "--run", "n", "--to", "@1", "--edits", "discard"],
    );
    assert!(!env.exists(LOCK));
    assert_eq!(env.read("a.txt"), "one\n");
}

// A killed git leaves its lock; what an attempt staged would be in the next commit.
#[test]
fn a_rollback_whose_index_is_locked_writes_nothing() {
    let env = TestEnv::repo();
    let agent = "echo evil > evil; git add evil; exit 1";
    let run = ["run", "--run", "r", "--attempts", "1", "--no-wait"];
    env.recover(&[&run[..], &["--", "sh", "-c", agent]].concat());
    lock(&env, "3 minutes ago");
    let back = ["rollback", "--to", "initial", "--run", "r"];
    let refused = env.error(11, &[&["--lock-timeout", "100ms"], &back[..]].concat());
    assert!(
        refused["message"]
            .as_str()
            .expect("text")
            .contains(".git/index.lock"),
        "{refused}"
    );
    assert_eq!(env.read("evil"), "evil\n", "nothing was written");
    env.sh(&format!("rm {LOCK}")).expect(0);
    env.json(0, &back);
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}
