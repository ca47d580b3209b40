//! Where commands work: folders, worktrees, state directories, inherited variables.

use std::path::Path;

use crate::env::TestEnv;
use crate::seen::{assert_clean, checkpoint, seen, text};

// snapshot.md, S4: without git everything works in a private repository.
#[test]
fn a_folder_without_git() {
    let env = TestEnv::plain();
    env.write("a.txt", "one\n");
    env.write("sub/b.txt", "b\n");
    env.json(10, &["checkpoint", "list"]);
    env.json(10, &["rollback", "--to", "latest"]);
    assert!(!env.exists(".ultraplan"), "reading makes nothing");
    env.json(0, &["--dry-run", "checkpoint", "create"]);
    assert!(!env.exists(".ultraplan"), "a dry run makes nothing");
    let kept = seen(env.work());
    checkpoint(&env);
    assert!(!env.exists(".git"));
    env.sh("echo two > a.txt; rm -r sub; mkdir empty").expect(0);
    let changed = seen(env.work());
    env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    let back: Vec<_> = seen(env.work())
        .into_iter()
        .filter(|(path, _)| path != b".ultraplan")
        .collect();
    assert_eq!(back, kept.into_iter().collect::<Vec<_>>());
    env.json(0, &["undo"]);
    assert_eq!(seen(env.work()), changed);
    // From a folder below, the same place is found.
    env.sh("mkdir below").expect(0);
    let below = env
        .recover(&["-C", "below", "--json", "checkpoint", "list"])
        .expect(0)
        .json();
    assert_eq!(
        below["checkpoints"].as_array().unwrap().len(),
        3,
        "with what undo needs"
    );
    env.json(0, &["checkpoint", "verify"]);
}

// snapshot.md: home, its ancestors and / are refused (13); a bare repository is 10.
#[test]
fn roots_are_refused() {
    let env = TestEnv::plain();
    let home = env.root().join("home");
    for folder in [home.as_path(), env.root().as_path(), Path::new("/")] {
        for args in [["checkpoint", "create"], ["checkpoint", "list"]] {
            let folder = folder.to_string_lossy().into_owned();
            env.json(13, &["-C", &folder, args[0], args[1]]);
        }
        assert!(!folder.join(".ultraplan").exists());
    }
    // A state directory that somebody left in one of them is not taken for a project's.
    std::fs::create_dir(env.root().join(".ultraplan")).unwrap();
    checkpoint(&env);
    assert!(env.exists(".ultraplan/state"));
    env.git(&["init", "-q", "--bare", "bare.git"]);
    env.json(10, &["-C", "bare.git", "checkpoint", "create"]);
}

// cli.md: `-C`, a folder below, hints that work from anywhere.
#[test]
fn from_any_folder() {
    let env = TestEnv::repo();
    env.write("deep/er/x", "x\n");
    env.json(0, &["-C", "deep/er", "checkpoint", "create"]);
    assert!(env.exists(".ultraplan/state/events.jsonl"));
    env.write("a.txt", "two\n");
    let back = env.json(
        0,
        &[
            "-C", "deep/er", "rollback", "--to", "latest", "--edits", "discard",
        ],
    );
    assert_eq!(env.read("a.txt"), "one\n");
    let hint = text(&back["rollback_hint"]);
    let recover = env!("CARGO_BIN_EXE_recover");
    let line = hint.replacen("recover ", &format!("{recover} "), 1);
    let ran = env.sh(&format!("cd / && {line}"));
    assert_eq!(ran.code, 0, "{hint}\n{}{}", ran.stdout, ran.stderr);
}

// snapshot.md: inherited GIT_* variables are ignored.
#[test]
fn inherited_variables_are_ignored() {
    let mut env = TestEnv::repo();
    let other = TestEnv::repo();
    let git = other.work().join(".git");
    env.set("GIT_DIR", &git.to_string_lossy());
    env.set("GIT_INDEX_FILE", "/nonexistent/index");
    env.set("GIT_WORK_TREE", &other.work().to_string_lossy());
    env.set("GIT_OBJECT_DIRECTORY", "/nonexistent/objects");
    env.set("GIT_NAMESPACE", "x");
    let theirs = seen(&git);
    env.write("a.txt", "two\n");
    checkpoint(&env);
    env.write("a.txt", "three\n");
    env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(env.read("a.txt"), "two\n");
    assert_eq!(seen(&git), theirs);
    assert_eq!(seen(other.work()).len(), 1);
}

// state.md: a linked worktree shares the main one's state and has a lock of its own.
#[test]
fn linked_worktrees_share_the_state() {
    let env = TestEnv::repo();
    env.git(&["worktree", "add", "-q", "../linked"]);
    checkpoint(&env);
    let linked = env.root().join("linked");
    let at = |args: &[&str], code: i32| {
        let mut all = vec!["-C", "../linked", "--json"];
        all.extend(args);
        env.recover(&all).expect(code).json()
    };
    at(&["checkpoint", "create"], 0);
    assert!(!linked.join(".ultraplan").exists());
    assert_eq!(
        env.json(0, &["checkpoint", "list", "--all-runs"])["checkpoints"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    std::fs::write(linked.join("a.txt"), "linked\n").unwrap();
    env.write("a.txt", "main\n");
    at(&["rollback", "--to", "latest", "--edits", "discard"], 0);
    assert_eq!(
        std::fs::read_to_string(linked.join("a.txt")).unwrap(),
        "one\n"
    );
    assert_eq!(env.read("a.txt"), "main\n");
    env.json(4, &["undo"]);
    at(&["undo"], 0);
    assert_eq!(
        std::fs::read_to_string(linked.join("a.txt")).unwrap(),
        "linked\n"
    );
    assert_clean(&env);
}

// cli.md: the state directory may be anywhere, named in any way.
#[test]
fn the_state_directory_may_be_anywhere() {
    let env = TestEnv::repo();
    let absolute = env.root().join("outside").to_string_lossy().into_owned();
    for dir in [absolute.as_str(), "inside/state", "../beside"] {
        env.json(0, &["--state-dir", dir, "checkpoint", "create"]);
        env.write("a.txt", "two\n");
        let back = env.json(
            0,
            &[
                "--state-dir",
                dir,
                "rollback",
                "--to",
                "latest",
                "--edits",
                "discard",
            ],
        );
        assert_eq!(env.read("a.txt"), "one\n");
        assert_eq!(
            crate::seen::paths(&back["result"]["written"]),
            ["a.txt"],
            "{dir}"
        );
        let undone = env.json(0, &["--state-dir", dir, "undo"]);
        assert_eq!(env.read("a.txt"), "two\n", "{undone}");
        env.write("a.txt", "one\n");
    }
    assert!(!env.exists(".ultraplan"));
    // The same directory by another name is the same: nothing is taken in twice, nothing is lost with it.
    env.sh("rm -rf inside/state; mkdir sub").expect(0);
    env.json(
        0,
        &[
            "-C",
            "sub",
            "--state-dir",
            "../inside/state",
            "checkpoint",
            "create",
        ],
    );
    let list = env.json(
        0,
        &[
            "--state-dir",
            "inside/state",
            "checkpoint",
            "list",
            "--all-runs",
        ],
    );
    assert!(list["checkpoints"].as_array().unwrap().len() > 1, "{list}");
}

// L6: a state directory that was committed to git is never rolled back.
#[test]
fn a_committed_ledger_is_never_rolled_back() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.sh("rm .ultraplan/state/.gitignore; git add -f .ultraplan; git commit -qm state")
        .expect(0);
    env.write("a.txt", "two\n");
    let second = checkpoint(&env);
    let before = env.read(".ultraplan/state/events.jsonl");
    env.json(
        0,
        &[
            "rollback",
            "--to",
            "@1",
            "--edits",
            "discard",
            "--commits",
            "drop",
        ],
    );
    assert!(
        env.read(".ultraplan/state/events.jsonl")
            .starts_with(&before)
    );
    env.json(0, &["undo"]);
    assert!(
        env.read(".ultraplan/state/events.jsonl")
            .starts_with(&before)
    );
    assert_eq!(
        env.json(0, &["checkpoint", "show", &second])["checkpoint"]["id"],
        second.as_str()
    );
    env.json(
        0,
        &[
            "rollback",
            "--to",
            "@1",
            "--edits",
            "discard",
            "--commits",
            "revert",
        ],
    );
    assert!(
        env.read(".ultraplan/state/events.jsonl")
            .starts_with(&before)
    );
}
