//! Work trees whose names are no text are known by their bytes: two that look alike are two.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::seen::text;

/// Two folders beside the work tree whose names differ in a byte that is no text.
fn twins(env: &TestEnv) -> [PathBuf; 2] {
    [b"tree-\xfe", b"tree-\xff"].map(|name| env.root().join(OsStr::from_bytes(name)))
}

fn recover(env: &TestEnv, place: &Path, args: &[&str]) -> Ran {
    let mut command = env.recover_command(&["--json"]);
    Ran::of(
        &command
            .args(args)
            .current_dir(place)
            .output()
            .expect("recover starts"),
    )
}

fn json(env: &TestEnv, place: &Path, args: &[&str]) -> Value {
    recover(env, place, args).expect(0).json()
}

fn write(place: &Path, content: &str) {
    std::fs::write(place.join("a.txt"), content).expect("written");
}

fn read(place: &Path) -> String {
    std::fs::read_to_string(place.join("a.txt")).expect("read")
}

/// What is captured, shown and restored in each of the two is its own, with one state for both.
fn assert_apart(env: &TestEnv, [one, other]: &[PathBuf; 2]) {
    write(one, "one 1\n");
    let kept = json(env, one, &["checkpoint", "create", "--run", "first"]);
    write(one, "one 2\n");
    json(
        env,
        one,
        &[
            "rollback", "--run", "first", "--to", "latest", "--edits", "discard",
        ],
    );
    write(other, "other 1\n");
    json(env, other, &["checkpoint", "create"]);
    // The run of one is none of the other.
    assert_eq!(json(env, one, &["status"])["run"]["run_id"], "first");
    assert_ne!(json(env, other, &["status"])["run"]["run_id"], "first");
    write(other, "other 2\n");
    json(
        env,
        other,
        &["rollback", "--to", "latest", "--edits", "discard"],
    );
    assert_eq!(
        (read(one).as_str(), read(other).as_str()),
        ("one 1\n", "other 1\n")
    );
    // Undo takes back what was done there.
    json(env, one, &["undo"]);
    assert_eq!(
        (read(one).as_str(), read(other).as_str()),
        ("one 2\n", "other 1\n")
    );
    let id = text(&kept["checkpoint"]["id"]);
    json(env, one, &["checkpoint", "restore", &id]);
    assert_eq!(read(one), "one 1\n");
    assert_eq!(
        json(env, one, &["doctor"])["problems"],
        serde_json::json!([])
    );
}

// Paths in documents are text, whatever the folder is called.
#[test]
fn a_folder_whose_name_is_no_text_is_no_obstacle_to_a_document() {
    let env = TestEnv::plain();
    let place = env.root().join(OsStr::from_bytes(b"tree-\xff"));
    std::fs::create_dir(&place).expect("a folder");
    let git = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(&place)
        .status();
    assert!(git.expect("git starts").success());
    write(&place, "1\n");
    let shown = |document: &Value, at: &str| {
        let path = text(document.pointer(at).expect("a path"));
        assert!(path.contains("/tree-\u{fffd}/"), "{path}");
    };
    let ended = recover(
        &env,
        &place,
        &[
            "run",
            "--run",
            "r",
            "--attempts",
            "1",
            "--no-wait",
            "--",
            "false",
        ],
    )
    .expect(8);
    shown(&ended.json(), "/report_path");
    shown(
        &recover(&env, &place, &["resume", "r", "--strategy", "retry_same"])
            .expect(8)
            .json(),
        "/report_path",
    );
    shown(
        &json(&env, &place, &["report", "--run", "r", "-o", "story.md"]),
        "/path",
    );
    // The ledger is damaged, and every copy of it is gone.
    let damage = "rm -f .git/recover/ledger-* .ultraplan/state/recover/fold.cache && \
                  echo rubbish >.ultraplan/state/events.jsonl";
    let damaged = std::process::Command::new("sh")
        .args(["-c", damage])
        .current_dir(&place)
        .status();
    assert!(damaged.expect("sh starts").success());
    shown(
        &recover(&env, &place, &["doctor", "--rebuild"]).json(),
        "/rebuilt/kept_aside",
    );
}

#[test]
fn two_linked_work_trees_whose_names_are_no_text_are_two() {
    let env = TestEnv::repo();
    let places = twins(&env);
    for (place, branch) in places.iter().zip(["one", "other"]) {
        let added = env
            .command("git")
            .args(["worktree", "add", "-q", "-b", branch])
            .arg(place)
            .status();
        assert!(added.expect("git starts").success());
    }
    assert_apart(&env, &places);
    // The ledger's loss loses none of that.
    env.sh("rm -rf .ultraplan").expect(0);
    env.json(0, &["doctor", "--rebuild"]);
    assert_eq!(
        json(&env, &places[0], &["status"])["run"]["run_id"],
        "first"
    );
    write(&places[1], "other 3\n");
    json(
        &env,
        &places[1],
        &["rollback", "--to", "latest", "--edits", "discard"],
    );
    assert_eq!(
        (read(&places[0]).as_str(), read(&places[1]).as_str()),
        ("one 1\n", "other 1\n")
    );
}

#[test]
fn two_plain_folders_whose_names_are_no_text_are_two() {
    let mut env = TestEnv::plain();
    let places = twins(&env);
    // Each with a state of its own.
    for (place, content) in places.iter().zip(["one", "other"]) {
        std::fs::create_dir(place).expect("a folder");
        write(place, content);
        json(&env, place, &["checkpoint", "create"]);
    }
    write(&places[0], "changed\n");
    json(
        &env,
        &places[0],
        &["rollback", "--to", "latest", "--edits", "discard"],
    );
    assert_eq!(
        (read(&places[0]).as_str(), read(&places[1]).as_str()),
        ("one", "other")
    );
    // And both with one state.
    let state = env.root().join("state").to_string_lossy().into_owned();
    env.set("RECOVER_STATE_DIR", &state);
    assert_apart(&env, &places);
}

// Hints are commands that work from any folder, also there.
#[test]
fn a_hint_names_a_folder_whose_name_is_no_text() {
    let env = TestEnv::plain();
    let [place, _] = twins(&env);
    std::fs::create_dir(&place).expect("a folder");
    write(&place, "one\n");
    json(&env, &place, &["checkpoint", "create"]);
    write(&place, "two\n");
    json(&env, &place, &["attempt", "start"]);
    let run = json(
        &env,
        &place,
        &["rollback", "--to", "@1", "--edits", "discard"],
    );
    assert_eq!(read(&place), "one\n", "{run}");
    write(&place, "three\n");
    let refused = recover(&env, &place, &["rollback", "--to", "@1"])
        .expect(13)
        .json();
    let hint = text(&refused["error"]["hint"]);
    let line = hint.replacen("recover", env!("CARGO_BIN_EXE_recover"), 1);
    let ran = Ran::of(
        &env.command("bash")
            .args(["-c", &line])
            .output()
            .expect("bash starts"),
    );
    assert_eq!(ran.code, 0, "{hint}\n{}", ran.stderr);
}
