//! What `accept`, and taking it back, do with what is a person's own: staged, deleted and committed before a run, or since.

use serde_json::json;

use crate::env::TestEnv;

/// A run of one iteration that passes.
fn run(env: &TestEnv, agent: &str) {
    env.json(0, &["run", "--run", "night", "--", "sh", "-c", agent]);
}

fn status(env: &TestEnv) -> String {
    env.git(&["status", "--porcelain", "-uall", "--", ":!.ultraplan"])
}

fn head(env: &TestEnv) -> String {
    env.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

/// What of these kinds there is to look at.
fn to_look_at(env: &TestEnv, kind: &str) -> Vec<String> {
    let status = env.json(0, &["status", "night"]);
    let all = status["night"]["to_look_at"].as_array().expect("a list");
    all.iter()
        .filter(|one| one["kind"] == kind)
        .map(|one| one["text"].as_str().expect("a line").to_owned())
        .collect()
}

/// `mine.txt` with one line in the last commit, another one staged, and a third one not staged.
fn staged_in_part(env: &TestEnv) {
    env.write("mine.txt", "committed\n");
    env.git(&["add", "mine.txt"]);
    env.git(&["commit", "-qm", "mine"]);
    env.write("mine.txt", "committed\nstaged\n");
    env.git(&["add", "mine.txt"]);
    env.write("mine.txt", "committed\nstaged\nnot staged\n");
}

// What an attempt staged is part of what it did: what is not committed is staged as it was before the run.
#[test]
fn what_the_run_staged_of_mine_is_as_it_was() {
    let env = TestEnv::repo();
    staged_in_part(&env);
    env.write("new.txt", "mine\n");
    env.write("edited.txt", "edited\n");
    env.git(&["add", "edited.txt"]);
    env.git(&["commit", "-qm", "edited", "--", "edited.txt"]);
    env.write("edited.txt", "edited\nmine\n");
    let before = status(&env);
    run(&env, "echo run >> a.txt; echo b > b.txt; git add -A");
    let ended = status(&env);
    env.json(0, &["accept"]);
    assert_eq!(
        env.git(&["show", "--format=", "--name-only", "HEAD"]),
        "a.txt\nb.txt\n"
    );
    assert_eq!(status(&env), before);
    assert_eq!(env.git(&["show", ":mine.txt"]), "committed\nstaged\n");
    env.json(0, &["undo"]);
    assert_eq!(status(&env), ended);
    env.json(0, &["redo"]);
    assert_eq!(status(&env), before);
}

// What is brought back is not in the next commit with what the run made of it.
#[test]
fn what_is_brought_back_is_not_staged_as_the_run_left_it() {
    let env = TestEnv::repo();
    env.write("a.txt", "one\nmine\n");
    run(&env, "echo run >> a.txt; echo b > b.txt; git add -A");
    env.json(0, &["accept", "--uncommitted", "keep"]);
    assert_eq!(status(&env), " M a.txt\n?? a.txt.run\n");
    assert_eq!(env.git(&["diff", "--cached"]), "");
}

// Taking an accept back leaves alone what was staged since, and what it never touched.
#[test]
fn what_was_staged_since_stays_when_an_accept_is_taken_back() {
    let env = TestEnv::repo();
    env.write("r.txt", "r\n");
    env.git(&["add", "r.txt"]);
    env.git(&["commit", "-qm", "r"]);
    run(&env, "echo n >> a.txt");
    env.json(0, &["accept"]);
    let accepted = head(&env);
    env.write("r.txt", "r\nstaged\n");
    env.git(&["add", "r.txt"]);
    env.write("r.txt", "r\nstaged\nnot staged\n");
    env.json(0, &["undo"]);
    assert_eq!(status(&env), " M a.txt\nMM r.txt\n");
    assert_eq!(env.git(&["show", ":r.txt"]), "r\nstaged\n");
    env.json(0, &["redo"]);
    assert_eq!(head(&env), accepted);
    assert_eq!(status(&env), "MM r.txt\n");
}

// Where the branch that an accept began is not checked out, nothing is said to be taken back.
#[test]
fn an_accept_on_another_branch_is_taken_back_there() {
    let env = TestEnv::repo();
    run(&env, "echo n >> a.txt; echo b > b.txt");
    env.json(0, &["accept", "--branch", "nb"]);
    env.git(&["switch", "-q", "main"]);
    let error = env.error(13, &["undo"]);
    let hint = error["hint"].as_str().expect("a hint");
    assert!(hint.ends_with(" switch nb"), "{error}");
    assert_eq!((status(&env), env.exists("b.txt")), (String::new(), false));
    env.git(&["switch", "-q", "nb"]);
    env.json(0, &["undo"]);
    assert_eq!(env.git(&["branch", "--format=%(refname:short)"]), "main\n");
    assert_eq!(status(&env), " M a.txt\n?? b.txt\n");
}

// An agent that amended a person's commit has not taken it away: what it made comes on top.
#[test]
fn a_commit_that_the_run_rewrote_comes_back_below() {
    let env = TestEnv::repo();
    env.write("b.txt", "b\n");
    env.git(&["add", "b.txt"]);
    env.git(&["commit", "-qm", "User 2"]);
    let mine = head(&env);
    env.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    run(
        &env,
        "echo x >> a.txt; git commit -qa --amend -m Rewritten; echo y > y.txt",
    );
    let rewritten = head(&env);
    let said = to_look_at(&env, "rewritten");
    assert!(
        said[0].contains("rewrote 1 commit from before it") && said[0].contains("(User 2)"),
        "{said:?}"
    );
    assert!(said[0].contains(&mine[..7]), "{said:?}");
    let error = env.error(13, &["accept"]);
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("(User 2)"), "{error}");
    env.error(13, &["accept", "--per-iteration", "--yes"]);
    assert_eq!(head(&env), rewritten);
    env.json(0, &["accept", "--yes"]);
    assert_eq!(env.git(&["rev-parse", "HEAD^"]).trim(), mine);
    assert_eq!(
        env.git(&["show", "--format=", "--name-only", "HEAD"]),
        "a.txt\ny.txt\n"
    );
    assert_eq!(status(&env), "");
    env.json(0, &["undo"]);
    assert_eq!(head(&env), rewritten);
    env.json(0, &["discard", "--yes"]);
    assert_eq!((head(&env), status(&env)), (mine, String::new()));
}

// What others committed on top of it cannot be moved.
#[test]
fn a_rewritten_commit_with_others_on_top_is_refused() {
    let env = TestEnv::repo();
    run(&env, "echo x >> a.txt; git commit -qa --amend -m Rewritten");
    env.git(&["commit", "-q", "--allow-empty", "-m", "on top"]);
    let before = head(&env);
    assert_eq!(to_look_at(&env, "rewritten").len(), 1);
    let shown = env.recover(&["status", "night"]).expect(0).stdout;
    assert!(!shown.contains("accept"), "{shown}");
    let error = env.error(13, &["accept", "--yes"]);
    let (message, hint) = (&error["message"], &error["hint"]);
    assert!(
        message
            .as_str()
            .is_some_and(|text| text.contains("rewrote 1 commit")),
        "{error}"
    );
    assert!(
        hint.as_str().is_some_and(|hint| hint.contains("close")),
        "{error}"
    );
    assert_eq!(head(&env), before);
}

// A deletion that is not committed is a person's work like any other change.
#[test]
fn a_deletion_that_the_run_undid_needs_a_decision() {
    let made = || {
        let env = TestEnv::repo();
        env.write("b.txt", "b\n");
        env.git(&["add", "b.txt"]);
        env.git(&["commit", "-qm", "b"]);
        env.remove("b.txt");
        run(&env, "echo other > b.txt; echo z > z.txt");
        env
    };
    let env = made();
    let error = env.error(13, &["accept"]);
    assert_eq!(error["paths"][0]["path"], "b.txt", "{error}");
    assert_eq!(to_look_at(&env, "uncommitted").len(), 1);
    let done = env.json(0, &["accept", "--uncommitted", "keep"]);
    assert_eq!(done["left_out"][0]["path"], "b.txt", "{done}");
    assert_eq!(status(&env), " D b.txt\n?? b.txt.run\n");
    assert_eq!(env.read("b.txt.run"), "other\n");

    let env = made();
    env.json(0, &["accept", "--uncommitted", "replace"]);
    assert_eq!(env.git(&["show", "HEAD:b.txt"]), "other\n");
}

// What a sparse checkout leaves out was not deleted.
#[test]
fn what_a_sparse_checkout_leaves_out_is_no_deletion() {
    let env = TestEnv::repo();
    env.write("out/b.txt", "b\n");
    env.git(&["add", "out/b.txt"]);
    env.git(&["commit", "-qm", "b"]);
    env.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/out/"]);
    assert!(!env.exists("out/b.txt"));
    run(&env, "git sparse-checkout disable; echo other > out/b.txt");
    // That it changed git's settings is to be looked at.
    env.json(0, &["accept", "--yes"]);
    assert_eq!(env.git(&["show", "HEAD:out/b.txt"]), "other\n");
}

// A secret in a file that git knows cannot be left out of the commit, and is not committed unseen.
#[test]
fn a_secret_in_a_file_that_git_knows_is_to_be_looked_at() {
    let env = TestEnv::repo();
    let old = "old = ghp_0123456789abcdefghijABCDEFGHIJ012346\n";
    env.write("old.txt", old);
    env.git(&["add", "old.txt"]);
    env.git(&["commit", "-qm", "old"]);
    run(
        &env,
        "echo 't = \"ghp_0123456789abcdefghijABCDEFGHIJ012345\"' >> a.txt; cp a.txt b.txt; echo more >> old.txt",
    );
    let said = to_look_at(&env, "secret");
    assert!(
        said.len() == 1
            && said[0].contains("a.txt looks like a secret")
            && !said[0].contains("ghp_"),
        "{said:?}"
    );
    let before = head(&env);
    let error = env.error(13, &["accept"]);
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("a.txt looks like a secret"), "{error}");
    assert_eq!(head(&env), before);
    let done = env.json(3, &["accept", "--yes"]);
    assert_eq!(
        done["left_out"],
        json!([{"path": "b.txt", "reason": "secret"}])
    );
    assert_eq!(
        env.git(&["show", "--format=", "--name-only", "HEAD"]),
        "a.txt\nold.txt\n"
    );
}

// What `accept` captured of a person's own work is not what the run left.
#[test]
fn what_an_accept_put_back_is_not_of_the_run() {
    let env = TestEnv::repo();
    env.write("notes.txt", "mine\n");
    run(&env, "echo run >> notes.txt; echo b > b.txt");
    env.json(0, &["accept", "--uncommitted", "keep"]);
    env.json(0, &["undo"]);
    let restore = ["checkpoint", "restore", "initial", "--path", "notes.txt"];
    env.json(0, &restore);
    let shown = env.recover(&["status", "night"]).expect(0).stdout;
    assert!(!shown.contains("not rolled back"), "{shown}");
    let plan = env.json(0, &["accept", "--dry-run"]);
    assert_eq!(plan.get("of_runs"), None, "{plan}");
}
