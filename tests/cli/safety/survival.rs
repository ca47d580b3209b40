//! What people and other tools do to a repository, and that checkpoints outlive it; and that nothing they set up runs.

use crate::env::TestEnv;
use crate::seen::{assert_clean, checkpoint, seen, text};

/// Two checkpoints of trees that only they hold, and what the trees were.
fn two_checkpoints(env: &TestEnv) -> Vec<(String, crate::seen::Seen)> {
    let mut all = Vec::new();
    for content in ["2\n", "3\n"] {
        env.write("a.txt", content);
        env.write(&format!("only/{}", content.trim()), content);
        env.sh(&format!(
            "ln -sfn {} link; mkdir -p empty; chmod 640 a.txt",
            content.trim()
        ))
        .expect(0);
        all.push((checkpoint(env), seen(env.work())));
    }
    all
}

/// Each checkpoint is listed, sound, and comes back byte for byte.
fn assert_all_come_back(env: &TestEnv, all: &[(String, crate::seen::Seen)], after: &str) {
    env.json(0, &["checkpoint", "create"]);
    env.json(0, &["checkpoint", "verify"]);
    for (id, tree) in all {
        env.json(
            0,
            &[
                "rollback",
                "--to",
                id,
                "--edits",
                "discard",
                "--commits",
                "keep",
            ],
        );
        assert_eq!(seen(env.work()), *tree, "{after}: {id}");
    }
    assert_clean(env);
}

// gc, clean, reflog expire, stash, worktree prune, a lost state directory, one by one.
#[test]
fn checkpoints_outlive_what_is_done_to_a_repository() {
    for line in [
        "git gc -q --prune=now --aggressive",
        "git clean -qffdx",
        "rm -rf .ultraplan",
        "git reflog expire --all --expire=now && git gc -q --prune=now",
        "git stash -q -u",
        "git worktree prune --expire=now",
        "git repack -adq && git prune --expire=now && git pack-refs --all --prune",
        "git checkout -qf --orphan other && git rm -rqf . && git gc -q --prune=now",
    ] {
        let env = TestEnv::repo();
        let all = two_checkpoints(&env);
        env.sh(line).expect(0);
        assert_all_come_back(&env, &all, line);
    }
}

// The same one after the other, which leaves nothing but the references.
#[test]
fn checkpoints_outlive_all_of_it_at_once() {
    let env = TestEnv::repo();
    let all = two_checkpoints(&env);
    env.sh("git stash -q -u; git stash drop -q; git clean -qffdx; rm -rf .ultraplan .git/recover")
        .expect(0);
    env.sh("git reflog expire --all --expire=now; git worktree prune; git gc -q --prune=now --aggressive").expect(0);
    assert_all_come_back(&env, &all, "all of it");
}

// A linked worktree that was removed takes none of its checkpoints along.
#[test]
fn checkpoints_of_a_removed_worktree_stay() {
    let env = TestEnv::repo();
    env.git(&["worktree", "add", "-q", "../linked"]);
    std::fs::write(env.root().join("linked/a.txt"), "linked\n").unwrap();
    let made = env
        .recover(&["-C", "../linked", "--json", "checkpoint", "create"])
        .expect(0)
        .json();
    let commit = text(&made["checkpoint"]["commit"]);
    env.sh("rm -rf ../linked; git worktree prune; git reflog expire --all --expire=now; git gc -q --prune=now")
        .expect(0);
    assert_eq!(env.git(&["show", &format!("{commit}:a.txt")]), "linked\n");
    let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
    assert!(list.to_string().contains(&commit), "{list}");
    env.json(0, &["checkpoint", "verify"]);
}

// hooks, fsmonitor, filters, signing, a pager, an editor: nothing runs, whatever is done and undone.
#[test]
fn nothing_that_is_set_up_ever_runs() {
    let env = TestEnv::repo();
    let trap = env.root().join("trap.sh");
    let ran = env.root().join("ran");
    env.write(
        "../trap.sh",
        format!(
            "#!/bin/sh\necho \"$0 $*\" >> {}\ncat\nexit 0\n",
            ran.display()
        ),
    );
    let trap = trap.display();
    env.sh(&format!("chmod +x {trap}")).expect(0);
    for hook in [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "post-checkout",
        "post-merge",
        "pre-rebase",
        "post-rewrite",
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
        "pre-auto-gc",
        "update",
    ] {
        env.sh(&format!(
            "mkdir -p hooks .git/hooks; cp {trap} .git/hooks/{hook}; cp {trap} hooks/{hook}"
        ))
        .expect(0);
    }
    checkpoint(&env);
    for (key, value) in [
        ("core.hooksPath", "hooks"),
        ("core.fsmonitor", "TRAP"),
        ("core.editor", "TRAP"),
        ("core.pager", "TRAP"),
        ("core.sshCommand", "TRAP"),
        ("gpg.program", "TRAP"),
        ("gpg.ssh.program", "TRAP"),
        ("commit.gpgSign", "true"),
        ("filter.x.process", "TRAP"),
        ("filter.x.clean", "TRAP"),
        ("filter.x.smudge", "TRAP"),
        ("filter.x.required", "true"),
        ("diff.x.textconv", "TRAP"),
        ("diff.x.command", "TRAP"),
        ("diff.external", "TRAP"),
        ("merge.x.driver", "TRAP"),
        ("core.alternateRefsCommand", "TRAP"),
        ("credential.helper", "!TRAP"),
    ] {
        env.git(&["config", key, &value.replace("TRAP", &trap.to_string())]);
    }
    env.write(".gitattributes", "* filter=x diff=x merge=x\n");
    env.write("a.txt", "two\n");
    let kept = seen(env.work());
    let second = checkpoint(&env);
    env.write("a.txt", "three\n");
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    env.json(0, &["undo"]);
    env.json(0, &["redo"]);
    env.json(0, &["rollback", "--to", &second, "--commits", "revert"]);
    env.json(0, &["checkpoint", "diff", "@1", "--patch"]);
    env.json(0, &["checkpoint", "show", "latest", "--patch"]);
    env.json(0, &["--yes", "checkpoint", "prune", "--keep-last", "1"]);
    env.json(0, &["doctor"]);
    assert!(
        !ran.exists(),
        "{}",
        std::fs::read_to_string(&ran).unwrap_or_default()
    );
    assert_eq!(seen(env.work()), kept);
    // The traps do work.
    env.sh("git add a.txt; git status");
    assert!(ran.exists());
}
