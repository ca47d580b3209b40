//! Runs in work trees of their own, killed while these are made, merged and removed: the user's work tree is whole all along.

use crate::env::TestEnv;
use crate::{Case, Fault, Sweep, assert_nothing_left};

const BEGIN: Case = Case {
    args: &[
        "run",
        "--isolated",
        "--run",
        "night",
        "--",
        "touch",
        "work.txt",
    ],
    git: true,
    before: |_| {},
};

const ACCEPT: Case = Case {
    args: &["accept", "night"],
    git: true,
    before: |_| {},
};

const DISCARD: Case = Case {
    args: &["--yes", "discard", "night"],
    git: true,
    before: |_| {},
};

/// A user with uncommitted work, and a checkpoint of it.
fn user() -> TestEnv {
    let env = TestEnv::repo();
    env.write("a.txt", "mine\n");
    env.write("new.txt", "new\n");
    env.json(0, &["checkpoint", "create"]);
    env
}

/// The same, and a run that ended, beside which the user committed something.
fn night() -> TestEnv {
    let env = user();
    env.recover(BEGIN.args).expect(0);
    env.write("b.txt", "by hand\n");
    env.git(&["add", "b.txt"]);
    env.git(&["commit", "-qm", "by hand"]);
    env
}

/// What is the user's own.
fn own(env: &TestEnv) -> [String; 3] {
    [
        env.read("a.txt"),
        env.read("new.txt"),
        env.git(&["symbolic-ref", "HEAD"]),
    ]
}

fn status(env: &TestEnv) -> String {
    env.git(&["status", "--porcelain"])
}

/// Nothing is there of any work tree but the user's.
fn assert_removed(env: &TestEnv, at: &str) {
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1, "{at}");
    assert_eq!(env.git(&["branch", "--list", "recover/*"]), "", "{at}");
    let left = env
        .sh("find ../home/.local/state/recover/worktrees -mindepth 2")
        .stdout;
    assert_eq!(left, "", "{at}");
}

/// Kills the case at each point; `settle` gets the environment and the point's name.
fn sweep(name: &str, case: &Case, start: TestEnv, settle: impl Fn(&TestEnv, &str)) {
    let Some(sweep) = Sweep::of(name, case, start, Fault::Kill) else {
        return;
    };
    sweep.each(|env, at, disturb| {
        let before = own(env);
        disturb();
        assert_eq!(own(env), before, "{at}");
        settle(env, at);
        assert_eq!(own(env), before, "{at}");
        assert_nothing_left(env, at);
    });
}

#[test]
fn beginning_it_killed_anywhere() {
    sweep("isolated run", &BEGIN, user(), |env, at| {
        assert_eq!(status(env), " M a.txt\n?? new.txt\n", "{at}");
        env.json(0, &["checkpoint", "create"]);
        if env.recover(&["status", "night"]).code == 0 {
            let ran = env.recover(&["resume", "night"]);
            eprintln!("{}{}", ran.stderr, env.recover(&["log", "night"]).stdout);
            ran.expect(0);
        } else {
            assert_removed(env, at);
            env.recover(BEGIN.args).expect(0);
        }
        env.json(0, &["accept", "night"]);
        assert_eq!(status(env), " M a.txt\n?? new.txt\n", "{at}");
        assert_eq!(
            env.git(&["show", "--format=", "--name-only", "HEAD"]),
            "work.txt\n",
            "{at}"
        );
        assert_removed(env, at);
    });
}

#[test]
fn merging_it_killed_anywhere() {
    sweep("isolated accept", &ACCEPT, night(), |env, at| {
        env.json(0, &["status"]);
        let head = env.git(&["log", "-1", "--format=%s"]);
        assert!(
            ["by hand\n", "Merge run night into main\n"].contains(&head.as_str()),
            "{at}: {head}"
        );
        env.json(0, ACCEPT.args);
        assert_eq!(
            env.git(&["log", "-1", "--format=%s"]),
            "Merge run night into main\n",
            "{at}"
        );
        assert_eq!(
            env.git(&["log", "--format=%s", "--first-parent"])
                .lines()
                .count(),
            3,
            "{at}"
        );
        assert_eq!(status(env), " M a.txt\n?? new.txt\n", "{at}");
        assert!(env.exists("work.txt"), "{at}");
        assert_removed(env, at);
        env.json(0, &["undo"]);
        if env.exists("work.txt") {
            // The files came before the kill, by a restore of their own.
            env.json(0, &["undo"]);
        }
        assert_eq!(env.git(&["log", "-1", "--format=%s"]), "by hand\n", "{at}");
        assert!(!env.exists("work.txt"), "{at}");
    });
}

#[test]
fn removing_it_killed_anywhere() {
    sweep("isolated discard", &DISCARD, night(), |env, at| {
        env.json(0, &["checkpoint", "create"]);
        env.json(0, DISCARD.args);
        assert_removed(env, at);
        env.json(0, &["undo", "--run", "night"]);
        let found = env.sh("cat ../home/.local/state/recover/worktrees/*/night/a.txt; ls ../home/.local/state/recover/worktrees/*/night/work.txt");
        assert!(
            found.code == 0 && found.stdout.starts_with("mine\n"),
            "{at}: {found:?}"
        );
    });
}
