//! Hints are commands: each is pasted into a shell in `/`, does something, and loses nothing.
//!
//! Contract: "`hint: …` with a command to copy"; "self-contained: `-C`, ids, shell-quoted; they work from any folder".

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::env::{Ran, TestEnv};

/// A work tree with a name that a shell trips over where it is not quoted.
fn odd(env: &TestEnv) -> String {
    let tree = env.work().join("it's a tree");
    std::fs::create_dir(&tree).expect("a work tree");
    let path = tree.to_string_lossy().into_owned();
    env.git(&["-C", &path, "init", "-q", "-b", "main"]);
    env.write("it's a tree/a.txt", "one\n");
    env.git(&["-C", &path, "add", "-A"]);
    env.git(&["-C", &path, "commit", "-q", "-m", "first"]);
    path
}

/// Runs a hint as it was printed, from another folder.
pub fn paste(env: &TestEnv, hint: &str) -> Ran {
    let bin = Path::new(env!("CARGO_BIN_EXE_recover"))
        .parent()
        .expect("its folder")
        .to_string_lossy()
        .into_owned();
    env.sh(&format!("cd / && PATH=\"{bin}:$PATH\"; {hint}"))
}

/// The files of a work tree without what is `recover`'s and git's own.
fn files(root: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut open = vec![PathBuf::from(root)];
    while let Some(folder) = open.pop() {
        for entry in folder.read_dir().expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with(".git") && !path.ends_with(".ultraplan/state") {
                open.push(path);
            } else if path.is_file() {
                all.insert(path.clone(), std::fs::read(path).expect("a file"));
            }
        }
    }
    all
}

/// What the error of a command hints at, which goes well and loses nothing. `own` are files that it writes or puts back.
#[track_caller]
fn hinted(env: &TestEnv, tree: &str, code: i32, args: &[&str], own: &[&str]) -> String {
    let error = env.json(code, &[&["-C", tree], args].concat())["error"].clone();
    let hint = error["hint"]
        .as_str()
        .unwrap_or_else(|| panic!("{args:?} has no hint: {error}"))
        .to_owned();
    let before = files(tree);
    let ran = paste(env, &hint);
    assert!(
        ![2, 70, 101, 126, 127].contains(&ran.code),
        "{args:?}: {hint}\n{}\n{}{}",
        ran.code,
        ran.stdout,
        ran.stderr
    );
    let mut after = files(tree);
    for path in own {
        let path = Path::new(tree).join(path);
        after.remove(&path);
        if let Some(was) = before.get(&path) {
            after.insert(path, was.clone());
        }
    }
    assert!(before == after, "{args:?}: {hint} changed the work tree");
    hint
}

/// A run of two iterations with checkpoints, whose last attempt failed.
fn failed_run(env: &TestEnv, tree: &str) {
    let work = ["sh", "-c", "echo $RECOVER_ITERATION > made"];
    let run = [
        "-C",
        tree,
        "run",
        "--run",
        "r 1",
        "--iterations",
        "2",
        "--retries",
        "0",
        "--on-failure",
        "stop",
    ];
    let checked = ["--feedback", "t=grep -q 1 made || test ! -e made", "--"];
    let ran = env.recover(&[&run[..], &checked, &work].concat());
    assert!((5..=8).contains(&ran.code), "{ran:?}");
}

#[test]
fn where_nothing_is_recorded() {
    for (code, args) in [
        (4, &["undo"][..]),
        (4, &["redo"]),
        (4, &["status"]),
        (4, &["resume"]),
        (4, &["rollback", "--full"]),
        (4, &["rollback", "--to", "good"]),
        (4, &["rollback", "--iteration", "9"]),
        (4, &["checkpoint", "show", "nope"]),
        (4, &["status", "--run", "nope"]),
        (4, &["manual-fix", "verify"]),
        (4, &["doctor", "--rebuild"]),
        (4, &["rollback"]),
        (2, &["rollback", "--too", "x"]),
        (2, &["resume", "--strategy", "hope"]),
        (2, &["bogus"]),
        (2, &["checkpoint", "show"]),
        (2, &["schema", "bogus"]),
        (2, &["step", "", "--", "true"]),
        (2, &["manual-fix", "verify", "--edit"]),
        (2, &["status", "--watch"]),
    ] {
        let env = TestEnv::repo();
        hinted(&env, &odd(&env), code, args, &[]);
    }
    let env = TestEnv::repo();
    // Nothing that could be done is no hint.
    for args in [
        &["-C", "/nonexistent", "status"][..],
        &["import", "missing.json"],
        &["-C", "/", "status"],
    ] {
        let ran = env.recover(&[&["--json"], args].concat());
        assert!(
            ran.code != 0 && ran.json()["error"]["hint"].is_null(),
            "{ran:?}"
        );
    }
}

#[test]
fn of_restores_that_are_refused() {
    let env = TestEnv::repo();
    let tree = &odd(&env);
    failed_run(&env, tree);
    hinted(&env, tree, 4, &["rollback", "--iteration", "9"], &[]);
    hinted(
        &env,
        tree,
        13,
        &["run", "--run", "r 1", "--", "true"],
        &["made"],
    );
    // Hand edits: they stay, in whatever way the restore is asked for.
    env.write("it's a tree/made", "by hand\n");
    for args in [
        &["rollback", "--full"][..],
        &[
            "rollback",
            "--to",
            "@1",
            "--scope",
            "files",
            "--commits",
            "keep",
        ],
        &["checkpoint", "restore", "@1", "--path", "made"],
        &["resume", "--strategy", "rollback_and_retry"],
    ] {
        let hint = hinted(&env, tree, 13, args, &[]);
        assert!(hint.contains("--edits keep"), "{hint}");
        assert_eq!(env.read("it's a tree/made"), "by hand\n", "{hint}");
    }
    // Somebody else's commits, and another branch.
    env.git(&["-C", tree, "add", "-A"]);
    env.git(&["-C", tree, "commit", "-q", "-m", "by hand"]);
    let hint = hinted(
        &env,
        tree,
        13,
        &["rollback", "--to", "@1", "--edits", "discard"],
        &["made"],
    );
    assert!(
        hint.contains("--commits keep") && hint.contains("--edits=discard"),
        "{hint}"
    );
    env.json(0, &["-C", tree, "undo"]);
    env.git(&["-C", tree, "switch", "-q", "-c", "other"]);
    let hint = hinted(&env, tree, 13, &["rollback", "--to", "@1"], &[]);
    assert!(
        hint.starts_with("git -C ") && hint.ends_with(" switch main"),
        "{hint}"
    );
    // Several lanes of one run.
    for lane in ["a", "b"] {
        env.json(
            0,
            &[
                "-C",
                tree,
                "checkpoint",
                "create",
                "--run",
                "two",
                "--lane",
                lane,
            ],
        );
    }
    let hint = hinted(&env, tree, 4, &["rollback", "--full", "--run", "two"], &[]);
    assert!(hint.contains("--lane "), "{hint}");
    hinted(&env, tree, 4, &["checkpoint", "show", "ckpt_"], &[]);
}

#[test]
fn of_what_would_remove_or_replace() {
    let mut env = TestEnv::repo();
    let tree = &odd(&env);
    failed_run(&env, tree);
    let count = |env: &TestEnv| {
        env.json(0, &["-C", tree, "checkpoint", "list", "--all-runs"])["checkpoints"]
            .as_array()
            .map(Vec::len)
    };
    for number in ["1", "2", "3"] {
        env.write("it's a tree/a.txt", number);
        env.json(0, &["-C", tree, "checkpoint", "create", "--run", "two"]);
    }
    let before = count(&env);
    hinted(
        &env,
        tree,
        13,
        &["checkpoint", "prune", "--keep-last", "0"],
        &[],
    );
    for flag in ["--patch", "--bundle"] {
        let (file, other) = (format!("an export{flag}"), format!("an export{flag}-2"));
        let export = ["checkpoint", "export", "@1", flag, &file];
        env.json(0, &[&["-C", tree], &export[..]].concat());
        hinted(&env, tree, 13, &export, &[&other]);
    }
    env.write("it's a tree/notes.md", "mine\n");
    hinted(
        &env,
        tree,
        13,
        &["report", "-o", "notes.md", "--run", "r 1"],
        &[],
    );
    env.json(0, &["-C", tree, "init"]);
    hinted(&env, tree, 13, &["init"], &[]);
    for mode in ["conservative", "read_only"] {
        env.set("RECOVER_SAFE_MODE", mode);
        for args in [
            &["rollback", "--to", "@1", "--edits", "discard"][..],
            &["checkpoint", "prune", "--keep-last=0"],
        ] {
            let hint = hinted(&env, tree, 13, args, &[]);
            assert!(hint.contains("--dry-run"), "{hint}");
        }
    }
    assert_eq!(count(&env), before);
}

/// Where a run is named by the environment, and the state directory by a relative path.
#[test]
fn what_the_environment_says_is_part_of_them() {
    let mut env = TestEnv::repo();
    let tree = &odd(&env);
    env.set("RECOVER_RUN_ID", "from outside")
        .set("RECOVER_STATE_DIR", "elsewhere");
    // What an open run began with is not to be removed.
    for _ in 0..3 {
        env.json(0, &["-C", tree, "checkpoint", "create"]);
    }
    let hint =
        env.json(13, &["-C", tree, "checkpoint", "prune", "--keep-last", "0"])["error"]["hint"]
            .clone();
    let hint = hint.as_str().expect("a hint");
    for part in [
        "--state-dir ",
        "elsewhere",
        "'--run=from outside'",
        "--keep-last 0",
        "--dry-run",
    ] {
        assert!(hint.contains(part), "{part}: {hint}");
    }
    paste(&TestEnv::plain(), hint).expect(0);
}
