//! Runs in work trees of their own, in repositories that `git init` alone does not make.

use crate::env::TestEnv;
use crate::seen::text;

/// A run of this name in a work tree of its own, begun in `folder`.
#[track_caller]
fn run(env: &TestEnv, folder: &str, name: &str, line: &str) {
    env.recover(&[
        "-C",
        folder,
        "run",
        "--isolated",
        "--run",
        name,
        "--",
        "sh",
        "-c",
        line,
    ])
    .expect(0);
}

/// The run is known where it was begun, and what it wrote comes into the files there.
#[track_caller]
fn accept(env: &TestEnv, folder: &str, name: &str) {
    let list = env.json(0, &["-C", folder, "runs"]);
    assert_eq!(list["runs"][0]["run_id"], name, "{list:#}");
    env.json(0, &["-C", folder, "--yes", "accept", name]);
    assert_eq!(env.read(&format!("{folder}/work.txt")), "work\n");
    assert_eq!(env.git(&["-C", folder, "status", "--porcelain"]), "");
    env.git(&["-C", folder, "fsck", "--no-dangling"]);
}

/// Two repositories whose git folders lie beside each other have nothing in common.
#[test]
fn the_git_folder_lies_elsewhere() {
    let env = TestEnv::plain();
    for name in ["one", "two"] {
        env.sh(&format!(
            "mkdir -p ../git && git init -q -b main --separate-git-dir ../git/{name}.git ../{name} && \
             cd ../{name} && echo {name} > a.txt && git add a.txt && git commit -qm {name}"
        ))
        .expect(0);
        run(&env, &format!("../{name}"), "night", "echo work > work.txt");
    }
    assert!(!env.exists("../git/.ultraplan"));
    accept(&env, "../one", "night");
    accept(&env, "../two", "night");
}

/// The same where a link leads to the git folder.
#[test]
fn a_link_leads_to_the_git_folder() {
    let env = TestEnv::repo();
    env.sh("mkdir ../git && mv .git ../git/work.git && ln -s ../git/work.git .git")
        .expect(0);
    run(&env, ".", "night", "echo work > work.txt");
    accept(&env, ".", "night");
    assert!(!env.exists("../git/.ultraplan"));
}

/// git does not record whose a linked work tree of such a repository is: nothing is written anywhere before that is known.
#[test]
fn a_lane_of_a_git_folder_elsewhere() {
    let env = TestEnv::plain();
    env.sh("mkdir ../git && git init -q -b main --separate-git-dir ../git/one.git ../one && cd ../one && git commit -qm first --allow-empty && \
            git worktree add -q ../lane")
        .expect(0);
    let error = env.error(10, &["-C", "../lane", "checkpoint", "create"]);
    let message = text(&error["message"]);
    assert!(message.contains("'recover checkpoint create'"), "{error:#}");
    env.json(0, &["-C", "../one", "checkpoint", "create"]);
    env.json(0, &["-C", "../lane", "checkpoint", "create"]);
    let list = env.json(0, &["-C", "../one", "checkpoint", "list", "--all-runs"]);
    let all = list["checkpoints"].as_array().expect("a list");
    assert_eq!(all.len(), 2, "{list:#}");
    assert!(!env.exists("../lane/.ultraplan") && !env.exists("../git/.ultraplan"));
}

#[test]
fn the_history_ends_somewhere() {
    let env = TestEnv::repo();
    for count in ["2", "3", "4"] {
        env.git(&["commit", "-qm", count, "--allow-empty"]);
    }
    let url = format!("file://{}", env.work().display());
    for depth in ["1", "2"] {
        let folder = format!("../depth-{depth}");
        env.git(&["clone", "-q", "--depth", depth, &url, &folder]);
        let line = "echo work > work.txt; git add work.txt; git commit -qm by-agent";
        run(&env, &folder, "gone", line);
        env.json(0, &["-C", &folder, "--yes", "discard", "gone"]);
        run(&env, &folder, "night", line);
        accept(&env, &folder, "night");
    }
}

#[test]
fn the_index_is_split_or_sparse() {
    for line in [
        "git update-index --split-index",
        "git sparse-checkout set --cone --sparse-index in",
    ] {
        let env = TestEnv::repo();
        env.write("in/b.txt", "b\n");
        env.write("out/c.txt", "c\n");
        env.sh(&format!(
            "git add in out && git commit -qm second && {line}"
        ))
        .expect(0);
        // What was edited meanwhile is not overwritten: the size and the second are the same.
        run(&env, ".", "edits", "echo X > in/b.txt");
        env.write("in/b.txt", "y\n");
        env.error(13, &["--yes", "accept", "edits"]);
        assert_eq!(env.read("in/b.txt"), "y\n");
        env.git(&["checkout", "-q", "in/b.txt"]);
        env.json(0, &["--yes", "discard", "edits"]);
        run(&env, ".", "night", "echo work > work.txt");
        accept(&env, ".", "night");
    }
}

/// A linked work tree of a bare repository is a project of its own, and so is what is recorded.
#[test]
fn the_repository_is_bare() {
    let env = TestEnv::repo();
    env.sh("git clone -q --bare . ../shop.git && git -C ../shop.git worktree add -q -b trunk ../trunk && \
            git -C ../shop.git worktree add -q -b other ../other")
        .expect(0);
    run(&env, "../trunk", "night", "echo work > work.txt");
    let list = env.json(0, &["-C", "../other", "runs"]);
    assert_eq!(list["runs"].as_array().map(Vec::len), Some(0), "{list:#}");
    accept(&env, "../trunk", "night");
}
