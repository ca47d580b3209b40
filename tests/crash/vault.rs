//! The copy of a repository outside of its work tree, killed while it is written and while it is put back.
//!
//! It is whole after the next command.

use crate::env::TestEnv;
use crate::{Case, Fault, Sweep, assert_nothing_left};

const WRITE: Case = Case {
    args: &["run", "--run", "night", "--", "sh", "../attempt"],
    git: true,
    before: |_| {},
};

const PUT_BACK: Case = Case {
    args: &["--yes", "doctor", "--repair"],
    git: true,
    before: |env| {
        env.sh("rm -rf .git").expect(0);
    },
};

/// A repository with commits, a branch, something staged, and a run that was recorded.
fn project() -> TestEnv {
    let env = TestEnv::repo();
    env.git(&["branch", "other"]);
    env.json(0, &["checkpoint", "create"]);
    env.write("b.txt", "staged\n");
    env.git(&["add", "b.txt"]);
    env.write("c.txt", "new\n");
    std::fs::write(
        env.root().join("attempt"),
        "seq 2000 > work.txt && git add work.txt && git commit -qm work && echo more >> work.txt\n",
    )
    .expect("written");
    env
}

/// What git says of references, index and HEAD.
fn of_git(env: &TestEnv) -> String {
    env.sh("git for-each-ref --format='%(refname) %(objectname)'; git ls-files --stage; git symbolic-ref HEAD; git rev-parse HEAD")
        .expect(0)
        .stdout
}

/// Git's folder is removed, and comes back as it was.
fn assert_comes_back(env: &TestEnv, at: &str) {
    let before = of_git(env);
    env.sh("rm -rf .git").expect(0);
    env.json(0, PUT_BACK.args);
    assert_eq!(of_git(env), before, "{at}");
    assert_nothing_left(env, at);
    env.json(0, &["checkpoint", "verify"]);
}

#[test]
fn writing_it_killed_anywhere() {
    let Some(sweep) = Sweep::of("vault", &WRITE, project(), Fault::Kill) else {
        return;
    };
    sweep.each(|env, at, disturb| {
        disturb();
        env.json(0, &["checkpoint", "create"]);
        assert_comes_back(env, at);
    });
}

#[test]
fn putting_it_back_killed_anywhere() {
    let env = project();
    env.recover(WRITE.args).expect(0);
    let before = of_git(&env);
    let Some(sweep) = Sweep::of("vault put back", &PUT_BACK, env, Fault::Kill) else {
        return;
    };
    sweep.each(|env, at, disturb| {
        disturb();
        env.json(0, PUT_BACK.args);
        assert_eq!(of_git(env), before, "{at}");
        assert_nothing_left(env, at);
        env.json(0, &["checkpoint", "verify"]);
    });
}
