//! `accept`: what a run did becomes ordinary commits.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::run::supervision::until;

/// An agent that works on a file an iteration, and commits by itself in those that are odd.
const AGENT: &str = "echo $RECOVER_ITERATION >> a.txt; echo $RECOVER_ITERATION > f$RECOVER_ITERATION.txt; \
                     if [ $((RECOVER_ITERATION % 2)) = 1 ]; then git add -A; git commit -q -m \"agent $RECOVER_ITERATION\"; fi";

/// A run of so many iterations.
fn run(env: &TestEnv, iterations: u32, agent: &str) -> Value {
    let iterations = iterations.to_string();
    env.json(
        0,
        &[
            "run",
            "--run",
            "night",
            "--iterations",
            &iterations,
            "--prompt",
            "# Add the parser\nmore",
            "--",
            "sh",
            "-c",
            agent,
        ],
    )
}

fn head(env: &TestEnv) -> String {
    env.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

/// What is staged and what is not, and HEAD with its branch: everything that must stay where nothing is to be changed.
fn state(env: &TestEnv) -> String {
    let line = "git symbolic-ref -q HEAD; git rev-parse -q --verify HEAD; git status --porcelain -uall; git ls-files -s; \
                git for-each-ref refs/heads refs/recover/+kept; git worktree list; ls -A .git/recover | grep tmp";
    env.sh(line).stdout
}

fn paths(list: &Value) -> Vec<&str> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|one| one["path"].as_str().expect("a path"))
        .collect()
}

fn subjects(env: &TestEnv, range: &str) -> Vec<String> {
    env.git(&["log", "--reverse", "--format=%s", range])
        .lines()
        .map(str::to_owned)
        .collect()
}

// The difference from the beginning to the last good checkpoint is one commit; what was uncommitted before stays so, the
// agent's own commits are folded and kept, and the run is accepted.
#[test]
fn nine_iterations_become_one_commit() {
    let env = TestEnv::repo();
    env.write("notes.txt", "committed\n");
    env.git(&["add", "notes.txt"]);
    env.git(&["commit", "-q", "-m", "notes"]);
    let before = head(&env);
    env.write("notes.txt", "mine\n");
    env.write(".env", "SECRET=1\n");
    env.write("staged.txt", "staged\n");
    env.git(&["add", "staged.txt"]);
    run(&env, 9, AGENT);
    let own = head(&env);
    let untouched = state(&env);
    let plan = env.json(0, &["accept", "--dry-run"]);
    assert_eq!(
        (&plan["changed"], &plan["plan"]["changed"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(plan["plan"]["commits"][0]["commit"], Value::Null);
    assert_eq!(state(&env), untouched);

    let done = env.json(0, &["accept"]);
    assert_eq!(
        (&done["changed"], &done["branch"], &done["left_out"]),
        (&json!(true), &json!("main"), &json!([]))
    );
    assert_eq!(done["run"]["status"], "accepted");
    assert_eq!(done["head"], json!({"before": own, "after": head(&env)}));
    let commit = &done["commits"][0];
    assert_eq!(
        (&commit["commit"], &commit["subject"]),
        (&json!(head(&env)), &json!("Add the parser"))
    );
    assert_eq!(
        (&commit["iteration"], paths(&commit["files"]).len()),
        (&Value::Null, 10)
    );
    assert_eq!(env.git(&["rev-parse", "HEAD^"]).trim(), before);
    let files = env.git(&["show", "--format=", "--name-only", "HEAD"]);
    let expected: Vec<String> = ["a.txt".to_owned()]
        .into_iter()
        .chain((1..=9).map(|n| format!("f{n}.txt")))
        .collect();
    assert_eq!(files.lines().collect::<Vec<_>>(), expected);
    // As it was before the run: one staged, one changed, one unknown to git.
    let status = env.git(&["status", "--porcelain", "-uall", "--", ":!.ultraplan"]);
    assert_eq!(status, " M notes.txt\nA  staged.txt\n?? .env\n");
    let message = env.git(&["log", "-1", "--format=%B"]);
    assert!(
        message.contains("Recover-Run: night") && message.contains("- agent 9"),
        "{message}"
    );
    // What was folded is still there, and nobody takes it for a checkpoint.
    let kept = done["kept_ref"].as_str().expect("a reference");
    assert!(kept.starts_with("refs/recover/"), "{kept}");
    assert_eq!(env.git(&["rev-parse", kept]).trim(), own);
    assert_eq!(env.json(0, &["doctor"])["problems"], json!([]));
    env.json(0, &["checkpoint", "create"]);
    env.json(0, &["checkpoint", "prune", "--keep-last", "1"]);
    env.git(&["fsck", "--strict"]);
    env.git(&["rev-parse", kept]);

    assert_eq!(env.json(0, &["accept", "night"])["changed"], false);
    assert_eq!(env.json(0, &["resume", "night"])["changed"], false);
    let shown = |args: &[&str]| env.recover(args).expect(0).stdout.contains("night");
    assert!(!shown(&["runs"]) && shown(&["runs", "--all"]));
    env.json(0, &["forget", "night", "--yes"]);
    assert_eq!(env.git(&["for-each-ref", "refs/recover/+kept"]), "");
}

// One commit for each iteration since the agent's last own commit; those stay as they are.
#[test]
fn iterations_become_commits_of_their_own() {
    let env = TestEnv::repo();
    let before = head(&env);
    run(&env, 4, "echo $RECOVER_ITERATION >> a.txt");
    let done = env.json(0, &["accept", "--per-iteration"]);
    let numbers: Vec<&Value> = done["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["iteration"])
        .collect();
    assert_eq!(numbers, [&json!(1), &json!(2), &json!(3), &json!(4)]);
    assert_eq!(done["kept_ref"], Value::Null);
    let range = format!("{before}..HEAD");
    let expected: Vec<String> = (1..=4)
        .map(|n| format!("Add the parser (iteration {n})"))
        .collect();
    assert_eq!(subjects(&env, &range), expected);
    assert_eq!(env.git(&["show", "HEAD~2:a.txt"]), "one\n1\n2\n");
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
}

#[test]
fn own_commits_stay_below_those_of_iterations() {
    let env = TestEnv::repo();
    let before = head(&env);
    run(&env, 4, AGENT);
    let own = head(&env);
    let done = env.json(0, &["accept", "--per-iteration", "--all", "-m", "Work"]);
    assert_eq!(
        subjects(&env, &format!("{before}..HEAD")),
        ["agent 1", "agent 3", "Work (iteration 4)"]
    );
    assert_eq!(env.git(&["rev-parse", "HEAD^"]).trim(), own);
    assert_eq!(done["commits"].as_array().unwrap().len(), 1);
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
}

// The agent's own commits would hold what was a person's: then only folding leaves it alone.
#[test]
fn own_commits_with_uncommitted_work_are_not_kept() {
    let env = TestEnv::repo();
    env.write("mine.txt", "mine\n");
    run(&env, 3, AGENT);
    let before = state(&env);
    let error = env.error(13, &["accept", "--per-iteration"]);
    assert_eq!(paths(&error["paths"]), ["mine.txt"]);
    assert!(
        error["hint"].as_str().unwrap().contains("--squash"),
        "{error}"
    );
    assert_eq!(state(&env), before);
    env.json(0, &["accept", "--per-iteration", "--squash"]);
    assert!(env.git(&["status", "--porcelain"]).contains("?? mine.txt"));
}

// A new branch is begun and switched to; the one before stays where it is.
#[test]
fn a_branch_is_begun_for_it() {
    let env = TestEnv::repo();
    let before = head(&env);
    run(&env, 3, AGENT);
    let own = head(&env);
    assert_eq!(
        env.error(2, &["accept", "--branch", "a..b"])["code"],
        "usage"
    );
    assert_eq!(
        env.error(13, &["accept", "--branch", "main"])["code"],
        "already_exists"
    );
    let done = env.json(0, &["accept", "--branch", "nights/first"]);
    assert_eq!(done["branch"], "nights/first");
    assert_eq!(
        env.git(&["symbolic-ref", "HEAD"]).trim(),
        "refs/heads/nights/first"
    );
    assert_eq!(
        env.git(&["rev-parse", "HEAD^", "main"]),
        format!("{before}\n{own}\n")
    );
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
    assert!(env.git(&["reflog", "-1"]).contains("recover accept"));
}

// An accept on a new branch, in a repository without a commit, leaves a branch that has none: undo goes back there.
#[test]
fn a_branch_without_a_commit_is_gone_back_to() {
    let env = TestEnv::plain();
    env.git(&["init", "-q", "-b", "main"]);
    env.write("a.txt", "a\n");
    env.git(&["add", "a.txt"]);
    run(&env, 1, "echo b > b.txt");
    let before = state(&env);
    env.json(0, &["accept", "--branch", "night"]);
    let accepted = state(&env);
    env.json(0, &["undo"]);
    assert_eq!(state(&env), before);
    env.json(0, &["redo"]);
    assert_eq!(state(&env), accepted);
}

/// What a clone of HEAD says to a command: nothing but what is committed is in it.
fn in_a_clone(env: &TestEnv, line: &str) -> i32 {
    env.sh(&format!(
        "rm -rf ../clone && git clone -q . ../clone && cd ../clone && {{ {line}; }}"
    ))
    .code
}

// New files are committed with what needs them; a clone is the judge. What looks like a secret is committed only by its name.
#[test]
fn new_files_are_committed_and_secrets_left_out() {
    let agent = "echo x >> a.txt; mkdir -p src; echo new > src/new.rs; echo K=v > .env; echo two > 'two words.txt'; \
                 echo ghp_0123456789abcdefghij0123456789abcdef > token.txt";
    let accepted = |code: i32, args: &[&str]| {
        let env = TestEnv::repo();
        run(&env, 1, agent);
        let done = env.json(code, &[&["accept"], args].concat());
        let files = env.git(&["show", "--format=", "--name-only", "HEAD"]);
        let mut left: Vec<String> = paths(&done["left_out"])
            .into_iter()
            .map(str::to_owned)
            .collect();
        left.sort();
        assert!(
            done["left_out"]
                .as_array()
                .unwrap()
                .iter()
                .all(|one| one["reason"] == "secret"),
            "{done}"
        );
        (
            files.lines().map(str::to_owned).collect::<Vec<_>>(),
            left,
            env,
        )
    };
    let (files, left, env) = accepted(3, &[]);
    assert_eq!(
        (files.as_slice(), left.as_slice()),
        (
            ["a.txt", "src/new.rs", "two words.txt"]
                .map(str::to_owned)
                .as_slice(),
            [".env", "token.txt"].map(str::to_owned).as_slice()
        )
    );
    assert_eq!(
        in_a_clone(
            &env,
            "test -e src/new.rs && test -e 'two words.txt' && test ! -e .env"
        ),
        0
    );
    assert!(env.exists(".env"));
    let (files, left, _) = accepted(3, &["--include", "src", "token.txt"]);
    assert_eq!((files.len(), left), (4, vec![".env".to_owned()]));
    let (files, left, _) = accepted(0, &["--include", ".env", "token.txt"]);
    assert_eq!((files.len(), left.len()), (5, 0));
    let env = TestEnv::repo();
    run(&env, 1, agent);
    assert_eq!(
        env.error(2, &["accept", "--include", "nothing"])["code"],
        "usage"
    );
    // From a folder below, as the shell completes it.
    let done = env
        .recover(&["-C", "src", "accept", "--json", "--include", "../.env"])
        .expect(3)
        .json();
    assert_eq!(paths(&done["left_out"]), ["token.txt"], "{done}");
}

// A large new file, and what the project leaves out, is committed only when it is asked for.
#[test]
fn large_files_and_those_of_leave_out_are_left_out() {
    let agent =
        "echo new > new.txt; head -c 2000000 /dev/zero > big.bin; mkdir out; echo o > out/o.txt";
    for (args, code, left, committed) in [
        (
            &["accept"][..],
            3,
            vec!["big.bin", "out/o.txt"],
            "new.txt\n",
        ),
        (
            &["accept", "--all"],
            0,
            vec!["out/o.txt"],
            "big.bin\nnew.txt\n",
        ),
        (
            &["accept", "--include", "out/o.txt"],
            3,
            vec!["big.bin"],
            "new.txt\nout/o.txt\n",
        ),
    ] {
        let env = TestEnv::repo();
        env.write(
            ".ultraplan/recover.toml",
            "[accept]\nleave_out = [\"out\"]\n",
        );
        run(&env, 1, agent);
        let done = env.json(code, args);
        assert_eq!(paths(&done["left_out"]), left, "{args:?}");
        assert_eq!(
            env.git(&["show", "--format=", "--name-only", "HEAD"]),
            committed,
            "{args:?}"
        );
    }
}

// What was uncommitted before is not there in what is committed: the checks judge that, not the work tree.
#[test]
fn checks_run_on_what_is_committed() {
    let env = TestEnv::repo();
    env.write("mine.txt", "mine\n");
    let check = "test=test -e mine.txt && test -e new.txt && pwd >> \"$SEEN\"";
    let seen = env.root().join("seen");
    let mut env = env;
    env.set("SEEN", &seen.to_string_lossy());
    env.json(
        0,
        &[
            "run",
            "--run",
            "night",
            "--feedback",
            check,
            "--",
            "sh",
            "-c",
            "echo new > new.txt",
        ],
    );
    let before = state(&env);
    let error = env.error(100, &["accept"]);
    assert_eq!(error["code"], "checks_failed", "{error}");
    assert!(
        error["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("--prepare")),
        "{error}"
    );
    assert_eq!(state(&env), before);
    assert_ne!(in_a_clone(&env, "test -e mine.txt"), 0);
    env.json(0, &["accept", "--prepare", "touch mine.txt"]);
    let places = fs::read_to_string(&seen).expect("checks ran");
    let last = places.lines().next_back().expect("one ran");
    assert!(
        !Path::new(last).exists() && last != env.work().to_string_lossy(),
        "{places}"
    );
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        "?? mine.txt\n"
    );
}

// What is new is committed, secrets aside.
#[test]
fn new_files_alone_are_committed() {
    let env = TestEnv::repo();
    run(&env, 1, "echo new > new.txt");
    assert_eq!(env.json(0, &["accept"])["changed"], true);
    assert_eq!(env.git(&["show", "HEAD:new.txt"]), "new\n");
}

// The command that is recommended is one that commits something: new files are taken with --all, all but what may be secret.
#[test]
fn what_is_recommended_commits_something() {
    for (agent, next) in [
        ("echo new > new.txt", Some("accept")),
        ("echo new > new.txt; echo K=v > .env", Some("accept")),
        ("echo x >> a.txt; echo new > new.txt", Some("accept")),
        (
            "echo new > new.txt; git add new.txt; git commit -qm own",
            Some("accept"),
        ),
        ("rm a.txt", Some("accept")),
        ("echo K=v > .env", None),
        ("true", None),
    ] {
        let env = TestEnv::repo();
        run(&env, 1, agent);
        let status = env.json(0, &["status"]);
        let recommended = status["night"]["next"].as_str();
        assert_eq!(
            recommended.is_some(),
            next.is_some(),
            "{agent}: {recommended:?}"
        );
        let (Some(next), Some(recommended)) = (next, recommended) else {
            continue;
        };
        let text = env.recover(&["status"]).expect(0).stdout;
        assert!(
            text.contains(&format!("\n1. Keep:    recover {next}\n")),
            "{agent}: {text}"
        );
        let report = env.recover(&["report"]).expect(0).stdout;
        assert!(report.contains(recommended), "{agent}: {report}");
        let code = if agent.contains(".env") { 3 } else { 0 };
        env.sh(&recommended.replacen("recover", env!("CARGO_BIN_EXE_recover"), 1))
            .expect(code);
        assert_eq!(
            env.git(&["log", "-1", "--format=%s"]),
            "Add the parser\n",
            "{agent}"
        );
        assert!(env.git(&["ls-files", ".env"]).is_empty());
    }
}

// What is left out comes first, with how it is committed; a plan lists the files.
#[test]
fn what_is_left_out_is_listed_first() {
    let env = TestEnv::repo();
    run(
        &env,
        1,
        "mkdir -p src; echo new > src/new.rs; echo K=v > .env",
    );
    let plan = env.recover(&["accept", "--dry-run"]).expect(3).stdout;
    assert!(
        plan.contains(
            "  left out:\n    .env  (looks like a secret; only --include PATH takes it)\n"
        ),
        "{plan}"
    );
    assert!(
        plan.contains("  Add the parser\n    src/new.rs\n"),
        "{plan}"
    );
    assert!(plan.find(".env") < plan.find("src/new.rs"), "{plan}");
    let env = TestEnv::repo();
    run(&env, 1, "echo K=v > .env");
    let said = env.recover(&["accept"]).expect(3).stdout;
    assert!(
        said.contains("Nothing to commit") && said.contains("--include PATH"),
        "{said}"
    );
}

/// What makes four new files over this limit, which `accept` leaves out.
const SMALL: &str = "[accept]\nmax_new_file = \"1KB\"\n";
const LARGE: &str = "for n in 1 2 3 4; do head -c 2000 /dev/zero > n$n; done";

// What accepting a run left out is taken by another commit, with what a person goes on with in nobody's way, and after many
// iterations.
#[test]
fn what_was_left_out_is_taken_later() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", SMALL);
    env.write("mine.txt", "mine\n");
    run(
        &env,
        9,
        &format!("echo $RECOVER_ITERATION >> a.txt; {LARGE}; echo K=v > .env"),
    );
    let done = env.json(3, &["accept"]);
    assert_eq!(paths(&done["left_out"]), [".env", "n1", "n2", "n3", "n4"]);
    let first = head(&env);
    env.write("a.txt", "going on\n");
    env.write("n3", "going on\n");
    fs::remove_file(env.work().join("n4")).unwrap();
    let again = env.json(3, &["accept"]);
    assert_eq!(
        (&again["changed"], paths(&again["left_out"])),
        (&json!(false), vec![".env", "n1", "n2", "n3"])
    );
    let said = env.recover(&["accept"]).expect(3).stdout;
    assert!(
        said.starts_with("Nothing to commit of run night but these files.\n"),
        "{said}"
    );
    assert_eq!(
        env.error(2, &["accept", "--include", "mine.txt"])["code"],
        "usage"
    );

    let taken = env.json(3, &["accept", "--include", "n1"]);
    assert_eq!(
        (&taken["changed"], paths(&taken["commits"][0]["files"])),
        (&json!(true), vec!["n1"])
    );
    assert_eq!(taken["run"]["status"], "accepted");
    let plan = env.json(3, &["accept", "--all", "--dry-run"]);
    assert_eq!(paths(&plan["plan"]["commits"][0]["files"]), ["n2"]);
    let taken = env.json(3, &["accept", "--all"]);
    assert_eq!(paths(&taken["left_out"]), [".env", "n3"]);
    assert_eq!(env.json(3, &["accept", "--all"])["changed"], false);
    assert_eq!(
        subjects(&env, &format!("{first}..HEAD")),
        ["Add the parser (new files)", "Add the parser (new files)"]
    );
    assert_eq!(
        env.git(&["log", "--format=", "--name-only", &format!("{first}..HEAD")]),
        "n2\nn1\n"
    );
    let status = env.git(&["status", "--porcelain", "-uall", "--", ":!.ultraplan"]);
    assert_eq!(status, " M a.txt\n?? .env\n?? mine.txt\n?? n3\n");
    let taken = env.json(0, &["accept", "--include", ".env"]);
    assert_eq!(paths(&taken["commits"][0]["files"]), [".env"]);
    assert_eq!(env.json(0, &["doctor"])["problems"], json!([]));
}

// It goes on top of what the run was accepted as and nowhere else, what somebody took out of git again stays out of it, and
// what cannot be told is no "nothing".
#[test]
fn what_was_left_out_goes_where_the_run_was_accepted() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", SMALL);
    env.git(&["branch", "old"]);
    env.write("c.txt", "c\n");
    env.git(&["add", "c.txt"]);
    env.git(&["commit", "-qm", "c"]);
    run(&env, 1, &format!("echo b >> a.txt; {LARGE}; rm n4"));
    env.json(3, &["accept"]);
    env.git(&["checkout", "-q", "old"]);
    for args in [
        &["accept", "--all"][..],
        &["accept", "--all", "--dry-run"],
        &["accept"],
    ] {
        let error = env.error(13, args);
        assert_eq!(error["code"], "head_moved", "{args:?}: {error}");
    }
    env.git(&["checkout", "-q", "main"]);
    env.json(3, &["accept", "--include", "n1"]);
    env.git(&["rm", "-q", "--cached", "n1"]);
    env.git(&["commit", "-qm", "n1 is not for git"]);
    env.write("n2", "mine\n");
    let refused = env.error(13, &["accept", "--include", "n2"]);
    assert_eq!(paths(&refused["paths"]), ["n2"]);
    assert!(
        refused["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("add -- n2")),
        "{refused}"
    );
    // Closed it is no other run.
    env.json(0, &["close", "night"]);
    let taken = env.json(0, &["accept", "--all", "--run", "night"]);
    assert_eq!(paths(&taken["commits"][0]["files"]), ["n3"], "{taken}");
    assert!(
        taken["commits"][0]["subject"]
            .as_str()
            .is_some_and(|subject| subject.ends_with("(new files)")),
        "{taken}"
    );
}

// What git ignored before the run, which took the rule away, is the user's own.
#[test]
fn what_was_ignored_before_the_run_is_not_made_by_it() {
    let env = TestEnv::repo();
    env.write("notes.txt", "private\n");
    env.write(".gitignore", "notes.txt\n");
    env.git(&["add", ".gitignore"]);
    env.git(&["commit", "-qm", "ignore"]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    run(&env, 1, ": > .gitignore; echo 1 > n1");
    let plan = env.json(0, &["accept", "--all", "--dry-run"]);
    assert_eq!(paths(&plan["plan"]["left_out"]), ["notes.txt"], "{plan}");
    let done = env.json(0, &["accept", "--all"]);
    assert_eq!(
        (
            paths(&done["commits"][0]["files"]),
            paths(&done["left_out"])
        ),
        (vec![".gitignore", "n1"], vec!["notes.txt"])
    );
    assert_eq!(
        paths(&env.json(0, &["accept", "--all"])["left_out"]),
        ["notes.txt"]
    );
    let taken = env.json(0, &["accept", "--include", "notes.txt"]);
    assert_eq!(paths(&taken["commits"][0]["files"]), ["notes.txt"]);
}

// A run that changed nothing is accepted all the same.
#[test]
fn nothing_to_accept_is_accepted() {
    let env = TestEnv::repo();
    let before = head(&env);
    run(&env, 1, "true");
    let done = env.json(0, &["accept"]);
    assert_eq!(
        (&done["changed"], &done["run"]["status"], &done["commits"]),
        (&json!(false), &json!("accepted"), &json!([]))
    );
    assert_eq!(head(&env), before);
}

// A person's own work that the run changed or removed is the first thing to look at, with the command that brings it back, and
// needs a decision.
#[test]
fn uncommitted_work_that_the_run_changed_needs_a_decision() {
    let made = || {
        let env = TestEnv::repo();
        env.write("b.txt", "b\n");
        env.git(&["add", "b.txt"]);
        env.git(&["commit", "-qm", "b"]);
        env.write("a.txt", "mine\n");
        env.write("b.txt", "mine\n");
        env.write("new.txt", "mine\n");
        env.write("gone.txt", "mine\n");
        run(
            &env,
            1,
            "echo agent >> a.txt; git checkout -q b.txt; echo agent >> new.txt; rm gone.txt; echo n > n.txt",
        );
        env
    };
    let env = made();
    let before = state(&env);
    let error = env.error(13, &["accept"]);
    assert_eq!(
        paths(&error["paths"]),
        ["a.txt", "b.txt", "gone.txt", "new.txt"]
    );
    assert_eq!(state(&env), before);
    let status = env.json(0, &["status"]);
    let first = &status["night"]["to_look_at"][0];
    assert_eq!(first["kind"], "uncommitted");
    let text = first["text"].as_str().expect("a line");
    assert!(
        text.contains("checkpoint restore initial --path a.txt"),
        "{text}"
    );
    // The command alone, too, is a decision.
    type_hint(&env, &error);
    assert_eq!(env.read("a.txt"), "mine\n");
    assert_eq!(env.json(0, &["status"])["night"]["to_look_at"], json!([]));
    let done = env.json(0, &["accept"]);
    assert_eq!(
        env.git(&["show", "--format=", "--name-only", "HEAD"]),
        "n.txt\n",
        "{done}"
    );

    let env = made();
    let planned = env.json(0, &["accept", "--dry-run"]);
    assert!(
        planned["changed_work"]
            .as_array()
            .is_some_and(|paths| !paths.is_empty()),
        "{planned}"
    );
    let done = env.json(0, &["accept", "--uncommitted", "keep"]);
    assert_eq!(
        env.git(&["show", "--format=", "--name-only", "HEAD"]),
        "n.txt\n"
    );
    let left: Vec<_> = done["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["reason"].as_str().unwrap())
        .collect();
    assert!(left.iter().all(|reason| *reason == "uncommitted"), "{done}");
    for file in ["a.txt", "b.txt", "new.txt", "gone.txt"] {
        assert_eq!(env.read(file), "mine\n", "{file}");
    }
    assert_eq!(
        (
            env.read("a.txt.run").as_str(),
            env.read("new.txt.run").as_str()
        ),
        ("mine\nagent\n", "mine\nagent\n")
    );
    let status = env.git(&["status", "--porcelain", "--", ":!.ultraplan", ":!*.run"]);
    assert_eq!(status, " M a.txt\n M b.txt\n?? gone.txt\n?? new.txt\n");

    let env = made();
    env.json(0, &["accept", "--uncommitted", "replace"]);
    assert_eq!(
        env.git(&["show", "HEAD:a.txt", "HEAD:b.txt", "HEAD:new.txt"]),
        "mine\nagent\nb\nmine\nagent\n"
    );
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
}

// Where nothing is accepted in the end, nothing was put back either.
#[test]
fn what_was_put_back_goes_where_a_check_fails() {
    let env = TestEnv::repo();
    env.write("a.txt", "mine\n");
    let check = "test=grep -q agent a.txt";
    let agent = "echo agent >> a.txt; echo n > n.txt";
    env.json(
        0,
        &[
            "run",
            "--run",
            "night",
            "--feedback",
            check,
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    let before = state(&env);
    env.error(100, &["accept", "--uncommitted", "keep"]);
    assert_eq!(
        (env.read("a.txt").as_str(), state(&env)),
        ("mine\nagent\n", before)
    );
}

// One undo takes back all of an accept: what it put back, and what it wrote beside that.
#[test]
fn what_an_accept_put_back_is_taken_back_with_it() {
    let env = TestEnv::repo();
    env.write("a.txt", "mine\n");
    run(&env, 1, "echo agent >> a.txt; echo n > n.txt");
    let before = state(&env);
    env.json(0, &["accept", "--uncommitted", "keep"]);
    let after = state(&env);
    assert_eq!(
        (env.read("a.txt").as_str(), env.read("a.txt.run").as_str()),
        ("mine\n", "mine\nagent\n")
    );
    env.json(0, &["undo"]);
    assert_eq!(
        (env.read("a.txt").as_str(), state(&env)),
        ("mine\nagent\n", before)
    );
    assert!(!env.exists("a.txt.run"));
    env.json(0, &["redo"]);
    assert_eq!(
        (env.read("a.txt.run").as_str(), state(&env)),
        ("mine\nagent\n", after)
    );
    env.json(0, &["undo"]);
    env.error(4, &["undo"]);
    env.json(0, &["accept", "--uncommitted", "replace"]);
    assert_eq!(env.git(&["show", "HEAD:a.txt"]), "mine\nagent\n");
}

/// Types the hint of an error, as it is.
fn type_hint(env: &TestEnv, error: &Value) {
    let hint = error["hint"].as_str().expect("a hint").replacen(
        "recover",
        env!("CARGO_BIN_EXE_recover"),
        1,
    );
    env.sh(&hint).expect(0);
}

// What a person wrote since the run ended stays uncommitted, whatever it is called and whether the run wrote the same file.
#[test]
fn what_was_edited_since_stays_uncommitted() {
    let env = TestEnv::repo();
    run(&env, 1, "echo agent >> a.txt");
    env.write("a.txt", "one\nagent\nmine\n");
    env.write("no[t]e*.txt", "mine\n");
    let done = env.json(0, &["accept"]);
    assert_eq!(paths(&done["hand_edits"]), ["a.txt", "no[t]e*.txt"]);
    assert_eq!(env.git(&["show", "HEAD:a.txt"]), "one\nagent\n");
    assert_eq!(
        (env.read("a.txt").as_str(), env.read("no[t]e*.txt").as_str()),
        ("one\nagent\nmine\n", "mine\n")
    );
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        " M a.txt\n?? no[t]e*.txt\n"
    );
}

// What a person committed since is in nobody's way; what the run changed and is as HEAD has it is to be looked at.
#[test]
fn what_is_as_head_has_it_is_not_in_the_way() {
    let env = TestEnv::repo();
    env.write("b.txt", "b\n");
    env.git(&["add", "b.txt"]);
    env.git(&["commit", "-qm", "b"]);
    run(&env, 1, "echo agent >> a.txt; echo agent >> b.txt");
    env.write("notes.txt", "mine\n");
    env.git(&["add", "notes.txt"]);
    env.git(&["commit", "-qm", "by hand", "notes.txt"]);
    let error = env.error(13, &["accept"]);
    assert_eq!(error["code"], "confirmation_needed", "{error}");
    env.git(&["checkout", "b.txt"]);
    let error = env.error(13, &["accept"]);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("b.txt is as HEAD has it"),
        "{error}"
    );
    env.json(0, &["accept", "--yes"]);
    assert_eq!(
        env.git(&["show", "--format=%s", "--name-only"]),
        "Add the parser\n\na.txt\n"
    );
}

// What the run itself committed after its last good checkpoint was not judged good: HEAD does not vouch for it.
#[test]
fn own_commits_after_the_last_good_checkpoint_are_not_committed() {
    let env = quick();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "settings"]);
    let agent = "echo $RECOVER_ITERATION >> a.txt; git commit -qam \"agent $RECOVER_ITERATION\"; test $RECOVER_ITERATION != 2";
    env.recover(&[
        "run",
        "--run",
        "night",
        "--iterations",
        "2",
        "--on-failure",
        "stop",
        "--",
        "sh",
        "-c",
        agent,
    ]);
    let error = env.error(13, &["accept", "--yes", "--per-iteration"]);
    assert_eq!(
        (error["code"].as_str(), paths(&error["paths"])),
        (Some("hand_edits"), vec!["a.txt"])
    );
    let done = env.json(0, &["accept", "--yes"]);
    assert_eq!(paths(&done["hand_edits"]), ["a.txt"]);
    assert_eq!(
        (
            env.git(&["show", "HEAD:a.txt"]).as_str(),
            env.read("a.txt").as_str()
        ),
        ("one\n1\n", "one\n1\n2\n")
    );
}

// Two nights on one file are accepted one after the other, in their order.
#[test]
fn two_nights_on_one_file_are_accepted_in_turn() {
    let env = TestEnv::repo();
    for (night, line) in [("mon", "echo 1 >> a.txt"), ("tue", "echo 2 >> a.txt")] {
        env.json(0, &["run", "--run", night, "--", "sh", "-c", line]);
    }
    let error = env.error(13, &["accept", "tue"]);
    assert_eq!(
        (error["code"].as_str(), paths(&error["paths"])),
        (Some("conflicts"), vec!["a.txt"])
    );
    let done = env.json(0, &["accept", "mon"]);
    assert_eq!(paths(&done["hand_edits"]), ["a.txt"]);
    // What is committed by now is no uncommitted work that the second one changed.
    let status = env.recover(&["status"]).expect(0).stdout;
    assert!(!status.contains("To look at"), "{status}");
    // The commit of the first is the program's own, and no one's from outside.
    env.json(0, &["accept", "tue"]);
    assert_eq!(
        env.git(&["log", "-p", "--format=%s", "-1", "-U0"])
            .lines()
            .next_back(),
        Some("+2")
    );
    assert_eq!(env.git(&["show", "HEAD^:a.txt"]), "one\n1\n");
    assert_eq!(env.git(&["status", "--porcelain", "-uno"]), "");
}

// The run to accept first is the one that was built upon, or what that was built upon.
#[test]
fn the_run_that_was_built_upon_comes_first() {
    let env = TestEnv::repo();
    for (night, file) in [
        ("a", "a.txt"),
        ("b", "b.txt"),
        ("c", "b.txt"),
        ("d", "b.txt"),
    ] {
        env.json(
            0,
            &[
                "run",
                "--run",
                night,
                "--",
                "sh",
                "-c",
                &format!("echo {night} >> {file}"),
            ],
        );
    }
    let error = env.error(13, &["accept", "d"]);
    let hint = error["hint"].as_str().expect("a hint");
    assert!(
        hint.contains("accept") && hint.ends_with("--run b"),
        "{error}"
    );
    let status = env.recover(&["status", "d"]).expect(0).stdout;
    assert!(status.contains("recover accept b"), "{status}");
    for night in ["b", "c", "d", "a"] {
        env.json(0, &["accept", night]);
    }
    assert_eq!(env.git(&["log", "--format=%an"]).lines().count(), 5);
}

// What a person writes while a run waits is committed with it, but not without a word.
#[test]
fn edits_from_outside_are_named_when_they_are_committed() {
    let env = TestEnv::repo();
    let check = "t=test -e ok";
    env.recover(&[
        "run",
        "--run",
        "r",
        "--no-wait",
        "--feedback",
        check,
        "--",
        "sh",
        "-c",
        "[ $RECOVER_ATTEMPT = 1 ] || touch ok",
    ]);
    env.write("mine.txt", "my own\n");
    env.json(0, &["resume", "r", "--wait=30s"]);
    let shown = env.recover(&["accept", "r"]).expect(0);
    assert!(
        shown
            .stderr
            .contains("mine.txt is committed too, though it was changed from outside"),
        "{}",
        shown.stderr
    );
}

// The first night's own commit, which the second one began at, is folded where the first is accepted.
#[test]
fn a_night_on_top_of_a_folded_commit_is_accepted() {
    let env = TestEnv::repo();
    let first = "echo 1 >> a.txt; git commit -qam agent; echo 2 >> a.txt";
    for (night, line) in [("mon", first), ("tue", "echo 3 >> a.txt")] {
        env.json(0, &["run", "--run", night, "--", "sh", "-c", line]);
    }
    env.json(0, &["accept", "mon"]);
    env.json(0, &["accept", "tue", "--yes"]);
    assert_eq!(
        env.git(&["log", "-p", "--format=%s", "-1", "-U0"])
            .lines()
            .next_back(),
        Some("+3")
    );
    assert_eq!(env.git(&["show", "HEAD^:a.txt"]), "one\n1\n2\n");
    assert_eq!(env.git(&["rev-list", "--count", "HEAD"]).trim(), "3");
    assert_eq!(env.git(&["status", "--porcelain", "-uno"]), "");
}

// What somebody has git ignore after the run is neither in the way nor committed.
#[test]
fn what_is_ignored_since_is_left_out() {
    for ignore in [".gitignore", ".git/info/exclude"] {
        let env = TestEnv::repo();
        run(&env, 1, "echo 1 >> a.txt; echo x > build.log");
        env.write(ignore, "*.log\n");
        if ignore == ".gitignore" {
            env.git(&["add", ignore]);
            env.git(&["commit", "-qm", "ignore"]);
        }
        let done = env.json(0, &["accept", "--all", "--yes"]);
        assert_eq!(paths(&done["commits"][0]["files"]), ["a.txt"]);
        assert_eq!(paths(&done["left_out"]), ["build.log"]);
        assert_eq!(env.read("build.log"), "x\n");
    }
}

// A person's secret that git does not know is not in the way where the run wrote to it: it stays uncommitted.
#[test]
fn an_untracked_secret_that_the_run_wrote_to_stays_out() {
    let env = TestEnv::repo();
    env.write(".env", "A=1\n");
    env.write("mine.txt", "mine\n");
    run(&env, 1, "echo 1 >> a.txt; echo B=2 >> .env");
    let done = env.json(3, &["accept", "--all", "--yes", "--uncommitted", "replace"]);
    assert_eq!(paths(&done["commits"][0]["files"]), ["a.txt"]);
    assert_eq!(paths(&done["left_out"]), [".env"]);
    assert_eq!(env.read(".env"), "A=1\nB=2\n");
    // Asked for by name, it is a person's uncommitted work like any other.
    let env = TestEnv::repo();
    env.write(".env", "A=1\n");
    run(&env, 1, "echo 1 >> a.txt; echo B=2 >> .env");
    let error = env.error(13, &["accept", "--include", ".env", "--yes"]);
    assert_eq!(paths(&error["paths"]), [".env"], "{error}");
    env.json(
        0,
        &[
            "accept",
            "--include",
            ".env",
            "--yes",
            "--uncommitted",
            "replace",
        ],
    );
}

#[test]
fn what_is_unsafe_is_refused_and_changes_nothing() {
    let env = TestEnv::repo();
    let check = "test=test ! -e ../broken";
    env.json(
        0,
        &[
            "run",
            "--run",
            "night",
            "--feedback",
            check,
            "--",
            "sh",
            "-c",
            "echo x >> a.txt",
        ],
    );
    let before = state(&env);
    let refused = |code: i32, name: &str, args: &[&str]| {
        let error = env.error(code, args);
        assert_eq!(error["code"], name, "{error}");
        error
    };
    // A check fails.
    fs::write(env.root().join("broken"), "").unwrap();
    refused(100, "checks_failed", &["accept"]);
    assert_eq!(state(&env), before);
    // Something of git's is in progress.
    fs::write(env.work().join(".git/MERGE_HEAD"), head(&env)).unwrap();
    refused(13, "operation_in_progress", &["accept"]);
    fs::remove_file(env.work().join(".git/MERGE_HEAD")).unwrap();
    assert_eq!(state(&env), before);
    env.json(0, &["accept", "--no-checks"]);
    assert_eq!(env.git(&["show", "HEAD:a.txt"]), "one\nx\n");

    let env = TestEnv::repo();
    env.json(
        6,
        &[
            "run",
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            "echo x >> a.txt; exit 3",
        ],
    );
    assert_eq!(env.error(4, &["accept"])["code"], "no_checkpoint");
    let error = env.error(4, &["accept", "bogus"]);
    assert_eq!(error["code"], "run_not_found");
    assert!(error["hint"].as_str().unwrap().contains(" runs"), "{error}");
    assert_eq!(
        TestEnv::plain().error(10, &["accept"])["code"],
        "no_repository"
    );
}

#[test]
fn a_run_at_work_is_not_accepted() {
    let env = TestEnv::repo();
    let inside = format!(
        "{} accept --json > ../inside",
        env!("CARGO_BIN_EXE_recover")
    );
    let line = format!("{inside}; touch ../began; while [ ! -e ../end ]; do sleep 0.02; done");
    let mut first = env
        .recover_command(&["run", "--run", "first", "--", "sh", "-c", &line])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("recover starts");
    until("it is at work", || env.root().join("began").exists());
    let error = env.error(11, &["accept"]);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains(&format!("pid {}", first.id())),
        "{error}"
    );
    fs::write(env.root().join("end"), "").unwrap();
    assert!(first.wait().unwrap().success());
    let told = fs::read_to_string(env.root().join("inside")).unwrap();
    assert!(told.contains("inside_attempt"), "{told}");
}

// Skipped iterations, and commits that the run did not make, need a yes. Those of others are never folded.
#[test]
fn what_needs_a_look_needs_a_yes() {
    let env = quick();
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "settings"]);
    let agent = "if [ $RECOVER_ITERATION = 2 ]; then echo bad > bad.txt; else echo $RECOVER_ITERATION >> a.txt; fi";
    let check =
        "test=! grep -q bad bad.txt || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";
    let args = [
        "--json",
        "run",
        "--run",
        "night",
        "--iterations",
        "3",
        "--feedback",
        check,
        "--",
        "sh",
        "-c",
        agent,
    ];
    env.recover(&args).expect(8);
    let error = env.error(13, &["accept"]);
    assert_eq!(error["code"], "confirmation_needed");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("iteration 2 was given up"),
        "{error}"
    );
    env.json(0, &["accept", "--yes"]);

    let env = TestEnv::repo();
    run(&env, 2, AGENT);
    env.git(&["commit", "-q", "--allow-empty", "-m", "by hand"]);
    let by_hand = head(&env);
    let error = env.error(13, &["accept"]);
    assert!(
        error["message"].as_str().unwrap().contains("by hand"),
        "{error}"
    );
    let done = env.json(0, &["accept", "--yes"]);
    assert_eq!(done["kept_ref"], Value::Null);
    assert_eq!(env.git(&["rev-parse", "HEAD^"]).trim(), by_hand);
}

// What a run that was stopped has not done is said before it is accepted, and afterwards that nothing of it goes on.
#[test]
fn a_run_that_was_stopped_is_not_accepted_unseen() {
    let env = TestEnv::repo();
    let agent = "echo $RECOVER_ITERATION >> a.txt; if [ $RECOVER_ITERATION = 3 ]; then touch ../began; sleep 20; fi";
    let mut child = env
        .recover_command(&[
            "run",
            "--run",
            "night",
            "--iterations",
            "6",
            "--",
            "sh",
            "-c",
            agent,
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("recover starts");
    until("it is at work", || env.root().join("began").exists());
    env.sh(&format!("kill -INT {}", child.id())).expect(0);
    assert_eq!(child.wait().expect("an end").code(), Some(130));
    env.json(0, &["rollback", "--to", "good"]);
    let before = state(&env);
    let plan = env.json(0, &["accept", "--dry-run"]);
    let note = plan["plan"]["look_at"][0].as_str().unwrap_or_default();
    assert!(note.contains("to 6 did not run"), "{plan}");
    let error = env.error(13, &["accept"]);
    assert_eq!(error["code"], "confirmation_needed");
    assert_eq!(state(&env), before);
    env.json(0, &["accept", "--yes"]);
    assert_eq!(env.read("a.txt"), "one\n1\n2\n");
    let resumed = env.recover(&["resume"]).expect(0);
    assert!(
        resumed.stdout.contains("was accepted: nothing to do"),
        "{}",
        resumed.stdout
    );
}

// Where git is not told who commits, nothing is begun, not even a check.
#[test]
fn who_commits_has_to_be_known() {
    let env = TestEnv::repo();
    let check = "test=echo x >> ../checked";
    env.json(
        0,
        &[
            "run",
            "--run",
            "night",
            "--feedback",
            check,
            "--",
            "sh",
            "-c",
            "echo x >> a.txt",
        ],
    );
    fs::remove_file(env.root().join("checked")).expect("a check ran");
    let nobody = env.root().join("nobody");
    fs::write(&nobody, "[user]\nuseConfigOnly = true\n").expect("a configuration");
    let accept = || {
        let mut command = env.recover_command(&["--json", "accept"]);
        for name in [
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_COMMITTER_EMAIL",
        ] {
            command.env_remove(name);
        }
        let output = command
            .env("GIT_CONFIG_GLOBAL", &nobody)
            .output()
            .expect("recover starts");
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        (output.status.code(), document)
    };
    let before = state(&env);
    for key in ["user.email", "user.name"] {
        let (code, document) = accept();
        let error = &document["error"];
        assert_eq!(
            (code, error["code"].as_str()),
            (Some(13), Some("no_identity")),
            "{error}"
        );
        // What is advised helps when it is typed.
        let hint = error["hint"].as_str().expect("a hint").to_owned();
        assert!(hint.contains(key), "{error}");
        env.sh(&hint).expect(0);
    }
    assert_eq!(state(&env), before);
    assert!(!env.root().join("checked").exists());
    assert_eq!(accept().0, Some(0));
}

#[test]
fn an_empty_message_is_refused() {
    let env = TestEnv::repo();
    run(&env, 1, "echo x >> a.txt");
    let before = state(&env);
    for message in ["", " \n"] {
        assert_eq!(env.error(2, &["accept", "-m", message])["code"], "usage");
    }
    assert_eq!(state(&env), before);
}

fn hook(env: &TestEnv, name: &str, body: &str) {
    let path = env.work().join(".git/hooks").join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("hooks");
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a hook");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a hook that runs");
}

// The user's hooks run as in git commit: one that refuses leaves everything as it was, one that edits the message is heard,
// and what they print is no part of the document.
#[test]
fn hooks_run_as_in_git_commit() {
    for agent in ["echo x >> a.txt", "echo x >> a.txt; git commit -qam agent"] {
        let env = TestEnv::repo();
        run(&env, 1, agent);
        hook(
            &env,
            "pre-commit",
            "echo looked; git diff --cached --name-only > ../staged; exit 1",
        );
        let before = state(&env);
        let error = env.error(13, &["accept"]);
        assert!(
            error["message"].as_str().unwrap().contains("pre-commit"),
            "{error}"
        );
        assert_eq!(state(&env), before);
        assert_eq!(
            fs::read_to_string(env.root().join("staged")).unwrap(),
            "a.txt\n"
        );
        hook(&env, "pre-commit", "echo looked");
        hook(
            &env,
            "commit-msg",
            "echo read; echo 'Signed-off-by: A' >> \"$1\"; git symbolic-ref -q HEAD",
        );
        hook(
            &env,
            "post-commit",
            "git log -1 --format=%s > ../after; exit 3",
        );
        if agent.contains("commit") {
            // HEAD is at what the commit comes on top of.
            hook(
                &env,
                "commit-msg",
                "echo read; echo 'Signed-off-by: A' >> \"$1\"; test $(git rev-parse HEAD) = $(git rev-parse main^)",
            );
        }
        let done = env.json(0, &["accept"]);
        assert_eq!(done["changed"], true);
        assert!(
            env.git(&["log", "-1", "--format=%B"])
                .trim()
                .ends_with("Signed-off-by: A")
        );
        assert_eq!(
            fs::read_to_string(env.root().join("after")).unwrap(),
            "Add the parser\n"
        );
        assert_eq!(
            env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
            ""
        );
    }
}

// A hook that formats what is staged is heard too.
#[test]
fn a_hook_may_change_what_is_committed() {
    let env = TestEnv::repo();
    run(&env, 1, "echo x >> a.txt");
    hook(&env, "pre-commit", "echo formatted >> a.txt; git add a.txt");
    env.json(0, &["accept"]);
    assert_eq!(env.git(&["show", "HEAD:a.txt"]), "one\nx\nformatted\n");
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
}

/// A hook that appends to what is staged, and refuses where it had to.
const FORMATTER: &str = "rc=0; for f in $(git diff --cached --name-only --diff-filter=AM); do grep -q 'x$' $f || \
                         { sed -i 's/$/ x/' $f; echo \"reformatted $f\"; rc=1; }; done; exit $rc";

// A formatter that refuses once is run again on what it changed; that is committed, checked, and in the work tree.
#[test]
fn a_formatter_that_refuses_is_run_again() {
    let env = TestEnv::repo();
    hook(&env, "pre-commit", FORMATTER);
    let check = "test=test ! -e n.txt || test ! -e .git/checked || grep -q x n.txt";
    let agent = "echo two > a.txt; echo new > n.txt";
    env.json(
        0,
        &[
            "run",
            "--run",
            "night",
            "--feedback",
            check,
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    env.write(".git/checked", "");
    env.json(0, &["accept"]);
    assert_eq!(
        env.git(&["show", "HEAD:a.txt", "HEAD:n.txt"]),
        "two x\nnew x\n"
    );
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
    assert_eq!(in_a_clone(&env, "grep -q x n.txt"), 0);
}

// One that refuses again has changed nothing in the end; neither has a check that fails on what it made.
#[test]
fn what_a_hook_formatted_is_put_back_where_it_is_refused() {
    for (body, check, code) in [
        ("sed -i 's/$/ x/' a.txt; exit 1", "true", 13),
        (
            "sed -i 's/$/ x/' a.txt; git add a.txt",
            "! grep -q x a.txt",
            100,
        ),
    ] {
        let env = TestEnv::repo();
        let check = format!("test={check}");
        env.json(
            0,
            &[
                "run",
                "--run",
                "night",
                "--feedback",
                &check,
                "--",
                "sh",
                "-c",
                "echo two > a.txt",
            ],
        );
        hook(&env, "pre-commit", body);
        let before = state(&env);
        env.error(code, &["accept"]);
        assert_eq!(
            (env.read("a.txt").as_str(), state(&env)),
            ("two\n", before),
            "{body}"
        );
    }
}

// A hook that takes what the run did out of the commit is refused by its name; the branch stays.
#[test]
fn a_hook_that_takes_changes_out_is_refused() {
    for body in [
        "git stash -q -u; git stash pop -q",
        "git stash -q -u",
        "git stash -q",
        "git reset -q --hard",
        "git rm -q -f newfile",
        "rm -f \"$GIT_INDEX_FILE\"",
        "git reset -q",
    ] {
        let env = TestEnv::repo();
        env.write("gone.txt", "gone\n");
        env.write("noted.txt", "noted\n");
        env.git(&["add", "gone.txt", "noted.txt"]);
        env.git(&["commit", "-qm", "more"]);
        env.write("mine.txt", "mine\n");
        run(&env, 1, "echo good > a.txt; echo n > newfile; rm gone.txt");
        hook(&env, "pre-commit", body);
        env.write("noted.txt", "edited since\n");
        let before = head(&env);
        let error = env.error(13, &["accept"]);
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains("the hook pre-commit")),
            "{body}: {error}"
        );
        assert_eq!(
            (head(&env), env.read("a.txt")),
            (before, "good\n".to_owned()),
            "{body}"
        );
        assert_eq!(
            (env.read("newfile").as_str(), env.read("mine.txt").as_str()),
            ("n\n", "mine\n"),
            "{body}"
        );
        assert_eq!(env.read("noted.txt"), "edited since\n", "{body}");
        assert!(!env.exists("gone.txt"), "{body}");
        assert_eq!(env.json(0, &["status"])["run"]["status"], "complete");
    }
}

// A hook that adds what is none of the commit is refused by its name: what is left out, and a person's own uncommitted work.
#[test]
fn a_hook_that_adds_what_is_left_out_is_refused() {
    for (body, own, added) in [
        ("git add -A", "echo pw > private.txt", "private.txt"),
        ("git add .env", "true", ".env"),
        ("git add -f x.ignored", "true", "x.ignored"),
        ("git add -u", "echo mine >> noted.txt", "noted.txt"),
        ("git add -u", "rm noted.txt", "noted.txt"),
        (
            "git add -A; git add n.txt",
            "echo pw > private.txt",
            "private.txt",
        ),
    ] {
        let env = TestEnv::repo();
        env.write(".gitignore", "*.ignored\n");
        env.write("noted.txt", "noted\n");
        env.git(&["add", "."]);
        env.git(&["commit", "-qm", "more"]);
        env.write("x.ignored", "mine\n");
        env.sh(own).expect(0);
        run(&env, 1, "echo x >> a.txt; echo n > n.txt; echo K=v > .env");
        hook(&env, "pre-commit", body);
        let before = state(&env);
        let error = env.error(13, &["accept"]);
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains("the hook pre-commit adds")),
            "{body}: {error}"
        );
        assert!(paths(&error["paths"]).contains(&added), "{body}: {error}");
        assert_eq!(state(&env), before, "{body}");
    }
}

// What a hook makes or changes by itself is part of the commit, and goes with undo.
#[test]
fn what_a_hook_made_is_committed_and_taken_back() {
    for args in [&["accept"][..], &["accept", "--per-iteration"]] {
        let env = TestEnv::repo();
        env.write("VERSION", "1\n");
        env.git(&["add", "VERSION"]);
        env.git(&["commit", "-qm", "version"]);
        env.write("mine.txt", "mine\n");
        run(&env, 2, "echo x >> a.txt; echo n > n$RECOVER_ITERATION");
        hook(
            &env,
            "pre-commit",
            "wc -l < a.txt > COUNT; echo 2 > VERSION; git add COUNT VERSION",
        );
        let before = state(&env);
        env.json(0, args);
        assert_eq!(env.git(&["show", "HEAD:VERSION"]), "2\n");
        assert_eq!(env.git(&["show", "HEAD:COUNT"]).trim(), "3");
        assert_eq!(
            env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
            "?? mine.txt\n"
        );
        env.json(0, &["undo"]);
        assert_eq!((env.read("VERSION").as_str(), state(&env)), ("1\n", before));
        assert!(!env.exists("COUNT"), "{args:?}");
    }
}

// An edit made since the run is not committed by a hook that stages files again, formatted or not; what a hook makes of the
// committed version alone is.
#[test]
fn hooks_do_not_commit_edits_made_since() {
    const AGAIN: &str = "for f in $(git diff --cached --name-only); do FORMAT git add $f; done";
    for format in ["", "sed -i 's/$/ x/' $f;"] {
        let env = TestEnv::repo();
        run(&env, 1, "echo agent >> a.txt; echo n > n.txt");
        hook(&env, "pre-commit", &AGAIN.replace("FORMAT", format));
        env.write("a.txt", "one\nagent\nmine\n");
        let before = state(&env);
        let error = env.error(13, &["accept"]);
        assert_eq!(paths(&error["paths"]), ["a.txt"], "{error}");
        assert!(error.to_string().contains("pre-commit"), "{error}");
        assert_eq!(
            (env.read("a.txt").as_str(), state(&env)),
            ("one\nagent\nmine\n", before)
        );
        assert_eq!(env.read("n.txt"), "n\n");
    }
    let env = TestEnv::repo();
    run(&env, 1, "echo agent >> a.txt");
    let index_alone = "git show :a.txt | sed 's/$/ x/' > .git/new; \
                       git update-index --cacheinfo 100644,$(git hash-object -w .git/new),a.txt; sed -i '1s/$/ x/' a.txt";
    hook(&env, "pre-commit", index_alone);
    env.write("a.txt", "one\nagent\nmine\n");
    let before = state(&env);
    env.json(0, &["accept"]);
    assert_eq!(env.git(&["show", "HEAD:a.txt"]), "one x\nagent x\n");
    assert_eq!(env.read("a.txt"), "one x\nagent\nmine\n");
    env.json(0, &["undo"]);
    assert_eq!(
        (env.read("a.txt").as_str(), state(&env)),
        ("one\nagent\nmine\n", before)
    );
}

// Only blanks may go again: a hook that takes the whole change of a file away is none that formats.
#[test]
fn a_hook_that_stashes_one_file_is_refused() {
    let env = TestEnv::repo();
    run(&env, 1, "echo good > a.txt; echo b > b.txt");
    hook(&env, "pre-commit", "git stash -q -- a.txt");
    let before = head(&env);
    let error = env.error(13, &["accept"]);
    assert_eq!(paths(&error["paths"]), ["a.txt"], "{error}");
    assert_eq!(
        (head(&env), env.read("a.txt"), env.read("b.txt")),
        (before, "good\n".to_owned(), "b\n".to_owned())
    );

    let env = TestEnv::repo();
    run(&env, 1, "echo 'one  ' > a.txt; echo b > b.txt");
    hook(&env, "pre-commit", "sed -i 's/ *$//' a.txt; git add a.txt");
    env.json(0, &["accept"]);
    assert_eq!(
        env.git(&["show", "--format=", "--name-only", "HEAD"]),
        "b.txt\n"
    );
}

// Undo takes an accept back, hooks, index and branch included, and redo does it again; it walks over nothing else.
#[test]
fn an_accept_is_taken_back() {
    for args in [
        &["accept"][..],
        &["accept", "--branch", "nights/first"],
        &["accept", "--per-iteration"],
    ] {
        let env = TestEnv::repo();
        env.write("mine.txt", "mine\n");
        env.write("staged.txt", "staged\n");
        env.git(&["add", "staged.txt"]);
        run(
            &env,
            3,
            "echo $RECOVER_ITERATION >> a.txt; echo n > n$RECOVER_ITERATION; git add a.txt",
        );
        hook(
            &env,
            "pre-commit",
            "git diff --cached --name-only | grep -q n3 || exit 0; echo formatted >> n3; git add n3",
        );
        let (files, before) = (env.read("n3"), state(&env));
        env.json(0, args);
        let after = state(&env);
        assert_eq!(env.read("n3"), "n\nformatted\n");
        assert_eq!(env.json(0, &["resume", "night"])["changed"], false);
        let undone = env.json(0, &["undo"]);
        assert_eq!(
            undone["result"]["operation"]["command"], "accept",
            "{undone}"
        );
        assert_eq!((env.read("n3"), state(&env)), (files, before), "{args:?}");
        assert_eq!(env.json(0, &["status"])["run"]["status"], "complete");
        env.json(0, &["redo"]);
        assert_eq!(
            (env.read("n3").as_str(), state(&env)),
            ("n\nformatted\n", after),
            "{args:?}"
        );
        assert_eq!(
            env.json(0, &["status", "--run", "night"])["run"]["status"],
            "accepted"
        );
        env.json(0, &["undo"]);
        env.json(0, args);
        assert_eq!(in_a_clone(&env, "test -e n3 && test ! -e mine.txt"), 0);
    }
}

// What was edited since stays, and a commit that others have, or that has others on top, is not taken off its branch.
#[test]
fn an_accept_that_is_built_upon_is_not_taken_back() {
    let env = TestEnv::repo();
    run(&env, 1, "echo x >> a.txt");
    env.json(0, &["accept"]);
    env.write("mine.txt", "mine\n");
    env.json(0, &["undo"]);
    assert_eq!(
        (env.read("mine.txt").as_str(), env.read("a.txt").as_str()),
        ("mine\n", "one\nx\n")
    );
    env.json(0, &["accept"]);
    let accepted = head(&env);
    env.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let error = env.error(13, &["undo"]);
    assert!(
        error["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains(" revert ")),
        "{error}"
    );
    env.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    env.git(&["commit", "-q", "--allow-empty", "-m", "on top"]);
    let error = env.error(13, &["undo"]);
    assert!(
        error["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains(" revert ")),
        "{error}"
    );
    assert_eq!(env.git(&["rev-parse", "HEAD^"]).trim(), accepted);
    env.sh(&error["hint"]
        .as_str()
        .unwrap()
        .replace("revert", "revert --no-edit"))
        .expect(0);
    assert_eq!(env.git(&["show", "HEAD:a.txt"]), "one\n");
}

// A run's own accept is no commit of others: the run can be begun again after it.
#[test]
fn an_accepted_run_can_be_begun_again() {
    let env = TestEnv::repo();
    run(&env, 1, "echo x >> a.txt");
    env.json(0, &["accept"]);
    let resumed = env.recover(&["resume", "night", "--restart"]).expect(0);
    assert!(
        !resumed.stderr.contains("made outside"),
        "{}",
        resumed.stderr
    );
    let shown = env.json(0, &["status", "--run", "night"]);
    assert_eq!(
        (&shown["run"]["status"], &shown["night"]["to_look_at"]),
        (&json!("complete"), &json!([]))
    );
}

// Commits are signed where the user's are.
#[test]
fn commits_are_signed_as_configured() {
    let env = TestEnv::repo();
    if env.sh("ssh-keygen -q -t ed25519 -N '' -f ../key").code != 0 {
        return;
    }
    let key = env.root().join("key.pub");
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("user.signingkey", key.to_str().unwrap()),
        ("commit.gpgsign", "true"),
    ] {
        env.git(&["config", name, value]);
    }
    run(&env, 1, "echo x >> a.txt");
    env.json(0, &["accept"]);
    assert!(
        env.git(&["cat-file", "commit", "HEAD"])
            .contains("BEGIN SSH SIGNATURE")
    );
}

// Line ends and filters are git's: what is stored is what git add would have stored, also of an iteration's checkpoint.
#[test]
fn attributes_hold() {
    let env = TestEnv::repo();
    env.write(".gitattributes", "*.crlf text eol=crlf\n*.up filter=up\n");
    env.write("b.crlf", "one\r\n");
    env.write("c.up", "big\n");
    env.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    env.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    env.git(&["add", "."]);
    env.git(&["commit", "-q", "-m", "filtered"]);
    env.remove("c.up");
    env.git(&["checkout", "-q", "c.up"]);
    assert_eq!(env.read("c.up"), "BIG\n");
    run(
        &env,
        2,
        "printf '%s\\r\\n' $RECOVER_ITERATION >> b.crlf; echo N$RECOVER_ITERATION >> c.up",
    );
    env.json(0, &["accept", "--per-iteration"]);
    assert_eq!(
        env.git(&["show", "HEAD^:b.crlf", "HEAD:b.crlf"]),
        "one\n1\none\n1\n2\n"
    );
    assert_eq!(
        env.git(&["show", "HEAD^:c.up", "HEAD:c.up"]),
        "big\nn1\nbig\nn1\nn2\n"
    );
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
}

// Any name, and any kind of change.
#[test]
fn odd_names_modes_and_links_are_committed() {
    let env = TestEnv::repo();
    env.sh(
        "mkdir dir; echo 1 > dir/x; echo 1 > file; echo 1 > tool; echo 1 > ':(top)q'; git add .; git commit -qm more",
    )
    .expect(0);
    let agent = "printf x > 'a b\nc'; printf x > \"$(printf 'n\\377')\"; rm -r dir; echo d > dir; rm file; mkdir file; echo y > file/y; \
                 chmod +x tool; ln -s a.txt link; echo 2 >> ':(top)q'; printf x > '*.txt'";
    run(&env, 1, agent);
    let done = env.json(0, &["accept", "--all"]);
    assert_eq!(done["left_out"], json!([]));
    let files = env.git(&[
        "show",
        "--format=",
        "--name-status",
        "-z",
        "--no-renames",
        "HEAD",
    ]);
    for name in [
        "a b\nc",
        "n\u{fffd}",
        "dir\0",
        "D\0dir/x",
        "D\0file",
        "file/y",
        "tool",
        "link",
        ":(top)q",
        "A\0*.txt",
    ] {
        assert!(files.contains(name), "{name:?}: {files:?}");
    }
    assert!(!files.contains("a.txt\0"), "{files:?}");
    assert!(env.git(&["ls-files", "-s", "tool"]).starts_with("100755"));
    assert!(env.git(&["ls-files", "-s", "link"]).starts_with("120000"));
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
}

// Files keep their times where the folder around them is moved: they are the run's all the same, and so is a link in its place.
#[test]
fn moved_folders_are_committed() {
    for (agent, check, committed) in [
        ("mv d e", "test -f e/f", "D\td/f\nA\te/f\n"),
        ("mv d e; ln -s e d", "test -f d/f", "A\td\nD\td/f\nA\te/f\n"),
        ("rm to; mv d to", "test -f to/f", "D\td/f\nD\tto\nA\tto/f\n"),
    ] {
        let env = TestEnv::repo();
        env.write("d/f", "1\n");
        env.sh("ln -s d to; git add .; git commit -qm d").expect(0);
        let check = format!("test={check}");
        let args = [
            "run",
            "--run",
            "night",
            "--feedback",
            &check,
            "--",
            "sh",
            "-c",
            agent,
        ];
        env.json(0, &args);
        let done = env.json(0, &["accept"]);
        let shown = env.git(&["show", "--format=", "--name-status", "--no-renames"]);
        assert_eq!(shown, committed, "{agent}: {done}");
        assert_eq!(
            env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
            "",
            "{agent}"
        );
    }
}

// What was uncommitted before the run stays so, also where it went along with its folder.
#[test]
fn uncommitted_files_of_a_moved_folder_stay_so() {
    let env = TestEnv::repo();
    env.write("d/f", "1\n");
    env.git(&["add", "d"]);
    env.git(&["commit", "-qm", "d"]);
    env.write("d/mine.txt", "mine\n");
    run(&env, 1, "mv d e");
    env.json(0, &["accept", "--uncommitted", "keep"]);
    assert_eq!(
        env.git(&["show", "--format=", "--name-status", "--no-renames"]),
        "D\td/f\nA\te/f\n"
    );
    assert_eq!(env.read("d/mine.txt"), "mine\n");
}

// What a run made outside of what is checked out is committed as anything else.
#[test]
fn a_sparse_checkout_is_no_hindrance() {
    let env = TestEnv::repo();
    env.write("x/a", "1\n");
    env.write("y/b", "2\n");
    env.git(&["add", "."]);
    env.git(&["commit", "-qm", "b"]);
    env.git(&["sparse-checkout", "set", "x"]);
    run(&env, 1, "echo n >> x/a; mkdir -p y; echo z > y/z");
    let before = state(&env);
    env.json(0, &["accept"]);
    assert_eq!(
        env.git(&["show", "--format=", "--name-status"]),
        "M\tx/a\nA\ty/z\n"
    );
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
    env.json(0, &["undo"]);
    assert_eq!(state(&env), before);
}

// A repository that a run made inside is committed as git add does it, which says what a clone lacks.
#[test]
fn a_repository_inside_is_said() {
    let env = TestEnv::repo();
    let inner = "git init -q lib; cd lib; echo 1 > f; git add f; git commit -qm f";
    run(&env, 1, inner);
    let done = env.recover(&["accept"]).expect(0);
    assert!(
        done.stderr.contains("lib is a repository of its own")
            && done.stderr.contains("git submodule add"),
        "{}",
        done.stderr
    );
    assert!(env.git(&["ls-files", "-s", "lib"]).starts_with("160000"));
}

// What can be in no commit is not offered for one, and the hint works as it is.
#[test]
fn what_cannot_be_included_is_not_offered() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nmax_file_size = \"1 KiB\"\n",
    );
    env.write("helper.py", "mine\n");
    run(
        &env,
        1,
        "echo x >> a.txt; mkfifo pipe; head -c 2000 /dev/zero > big.bin",
    );
    let done = env.json(3, &["accept", "--dry-run"]);
    assert_eq!(paths(&done["left_out"]), ["big.bin"], "{done}");
    let text = env.recover(&["accept", "--dry-run"]).expect(3).stdout;
    assert!(
        text.contains("max_file_size") && !text.contains("--include"),
        "{text}"
    );
    let error = env.error(2, &["accept", "--include", "helper.py", "--dry-run"]);
    let hint = error["hint"].as_str().expect("a hint");
    assert!(!hint.contains("helper.py"), "{hint}");
    let again = hint.replacen("recover", env!("CARGO_BIN_EXE_recover"), 1);
    env.sh(&again).expect(3);
}

#[test]
fn a_history_begins_with_it() {
    let env = TestEnv::plain();
    env.git(&["init", "-q", "-b", "main"]);
    env.write("mine.txt", "mine\n");
    run(&env, 1, "echo x > x.txt");
    let done = env.json(0, &["accept", "--all"]);
    assert_eq!(
        (&done["branch"], &done["head"]["before"]),
        (&json!("main"), &Value::Null)
    );
    assert_eq!(env.git(&["log", "--format=%s %P"]), "Add the parser \n");
    assert_eq!(env.git(&["ls-files"]), "x.txt\n");
}

#[test]
fn a_detached_head_moves() {
    let env = TestEnv::repo();
    env.git(&["checkout", "-q", "--detach"]);
    run(&env, 3, AGENT);
    let plan = env.recover(&["accept", "--dry-run"]).expect(0);
    assert!(plan.stdout.contains("--branch NAME"), "{}", plan.stdout);
    let done = env.json(0, &["accept"]);
    assert_eq!(
        (&done["branch"], &done["head"]["after"]),
        (&Value::Null, &json!(head(&env)))
    );
    assert_eq!(
        env.git(&["rev-parse", "HEAD^", "main"])
            .lines()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        1
    );
}

#[test]
fn a_linked_work_tree_has_its_own_branch() {
    let env = TestEnv::repo();
    let main = head(&env);
    env.git(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let at = |args: &[&str]| {
        env.recover(&[&["-C", "../side", "--json"], args].concat())
            .expect(0)
            .json()
    };
    at(&[
        "run",
        "--run",
        "night",
        "--",
        "sh",
        "-c",
        "echo x >> a.txt; git commit -qam agent; echo y >> a.txt",
    ]);
    let done = at(&["accept", "night"]);
    assert_eq!(done["branch"], "side");
    assert_eq!(env.git(&["show", "side:a.txt"]), "one\nx\ny\n");
    assert_eq!(
        env.git(&["rev-parse", "side^", "main"]),
        format!("{main}\n{main}\n")
    );
    assert_eq!(
        env.git(&["-C", "../side", "status", "--porcelain", "-uno"]),
        ""
    );
}

// Variables that lead git elsewhere lead nowhere.
#[test]
fn the_environment_leads_nowhere_else() {
    let mut env = TestEnv::repo();
    run(&env, 1, "echo x >> a.txt");
    let other = TestEnv::repo();
    for (name, path) in [
        ("GIT_DIR", ".git"),
        ("GIT_WORK_TREE", "."),
        ("GIT_INDEX_FILE", ".git/index"),
    ] {
        env.set(name, &other.work().join(path).to_string_lossy());
    }
    let before = head(&other);
    env.json(0, &["accept"]);
    assert_eq!(head(&other), before);
    let at = Path::new(env.work());
    let shown = other.git(&["-C", &at.to_string_lossy(), "show", "HEAD:a.txt"]);
    assert_eq!(shown, "one\nx\n");
}

// Folding pushed commits would rewrite what others have.
#[test]
fn pushed_commits_are_not_folded() {
    let env = TestEnv::repo();
    run(
        &env,
        1,
        "echo x >> a.txt; git commit -qam agent; git update-ref refs/remotes/origin/main HEAD",
    );
    let error = env.error(13, &["accept"]);
    assert_eq!(error["code"], "head_moved");
    assert!(
        error["hint"].as_str().unwrap().contains("--per-iteration"),
        "{error}"
    );
}

// The record as a pull request: the first line is its title.
#[test]
fn the_record_makes_a_pull_request() {
    let env = TestEnv::repo();
    let agent = "cat > /dev/null; echo x >> a.txt";
    let prompt = "# Add the parser of @name (#12)\nwith key ghp_0123456789abcdefghij0123456789abcdef, closes #7";
    env.json(
        0,
        &[
            "run",
            "--run",
            "night",
            "--prompt",
            prompt,
            "--feedback",
            "test=true",
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    let text = env.recover(&["report", "--format", "pr"]).expect(0).stdout;
    assert!(
        text.starts_with("Add the parser of `@name` (`#12`)\n\nIterations: 1 passed.\n")
            && text.contains(
                "\n```text\n# Add the parser of @name (#12)\nwith key [redacted], closes #7\n```\n"
            ),
        "{text}"
    );
    for part in [
        "\nChecks passed: test.\n",
        "- `a.txt` (+1 −0)",
        "Recover-Run: night",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let document = env.json(0, &["report", "--format", "pr"]);
    assert_eq!(
        (&document["format"], document["content"].as_str()),
        (&json!("pr"), Some(text.as_str()))
    );
    env.json(0, &["accept"]);
    let subject = env.git(&["log", "-1", "--format=%s"]);
    assert_eq!(subject, "Add the parser of `@name` (`#12`)\n");
    assert_eq!(
        env.json(0, &["report"])["report"]["summary"]["outcome"],
        "accepted"
    );
}

// A pull request is about what is to be merged, not about what was tried and taken back.
#[test]
fn a_pull_request_holds_what_the_run_came_to() {
    let env = TestEnv::repo();
    let agent = "if [ $RECOVER_ITERATION = 2 ]; then echo wrong > wrong.txt; echo wrong >> a.txt; else echo x >> a.txt; fi";
    let check = "test=test ! -e wrong.txt";
    let run = [
        "run",
        "--run",
        "night",
        "--iterations",
        "2",
        "--attempts",
        "1",
        "--feedback",
        check,
        "--",
        "sh",
        "-c",
        agent,
    ];
    env.recover(&run).expect(8);
    env.recover(&["rollback", "--to", "good"]).expect(0);
    let text = env.recover(&["report", "--format", "pr"]).expect(0).stdout;
    assert!(
        text.contains("\nChecks passed: test.\n") && text.contains("- `a.txt` (+1 −0)"),
        "{text}"
    );
    assert!(
        !text.contains("wrong.txt") && !text.contains("failed ("),
        "{text}"
    );
}

/// A folder in the place of a tracked file brings nothing along that was not accepted.
#[test]
fn a_folder_in_a_files_place_takes_nothing_along() {
    for form in ["--squash", "--per-iteration"] {
        let env = TestEnv::repo();
        env.write("cfg", "old\n");
        env.write(".gitignore", "ignored.txt\n");
        env.git(&["add", "cfg", ".gitignore"]);
        env.git(&["commit", "-q", "-m", "cfg"]);
        let agent = "rm cfg; mkdir cfg; echo PASSWORD=hunter22x > cfg/.env; echo a > cfg/a.txt; echo i > cfg/ignored.txt";
        run(&env, 1, agent);
        let done = env.json(3, &["accept", form]);
        let committed = env.git(&["show", "--format=", "--name-status", "HEAD"]);
        assert_eq!(committed, "D\tcfg\nA\tcfg/a.txt\n", "{form}: {done}");
        assert_eq!(paths(&done["left_out"]), ["cfg/.env"], "{form}");
        assert_eq!(env.read("cfg/.env"), "PASSWORD=hunter22x\n");
        // Its reasons are said in full.
        assert!(!done.to_string().contains("[redacted]"), "{done}");
    }
}

/// Cut off after the branch moved, and another one checked out since: it is finished, and what was folded is kept.
#[test]
fn what_was_cut_off_is_finished_from_another_branch() {
    let env = TestEnv::repo();
    run(&env, 3, AGENT);
    let (own, before) = (head(&env), state(&env));
    assert!(!before.contains("commit.json"));
    // The journal as it stands while the index follows: the branch has moved, nothing is recorded.
    let tree = env.git(&["write-tree"]).trim().to_owned();
    let new = env
        .git(&["commit-tree", "-p", "HEAD~2", "-m", "Add the parser", &tree])
        .trim()
        .to_owned();
    let kept = format!("refs/recover/+kept/night/{}", &own[..10]);
    let journal = json!({
        "version": 1, "run_id": "night", "phase": "-", "lane": "-", "before": {"commit": own, "branch": "refs/heads/main"},
        "base": env.git(&["rev-parse", "HEAD~2"]).trim(), "commits": [new], "new_branch": null, "kept": kept,
        "index_tree": null, "message": "recover accept: run night",
    });
    env.git(&["branch", "other"]);
    env.git(&["update-ref", &kept, &own]);
    env.git(&["update-ref", "refs/heads/main", &new]);
    env.git(&["checkout", "-q", "-f", "other"]);
    env.write(".git/recover/commit.json", journal.to_string());
    env.recover(&["checkpoint", "create"]).expect(0);
    assert_eq!(
        env.git(&["rev-parse", &kept]).trim(),
        own,
        "what was folded is kept"
    );
    assert_eq!(env.git(&["rev-parse", "main"]).trim(), new);
    assert_eq!(head(&env), own, "the branch that is checked out stays");
    assert_eq!(
        env.json(0, &["status", "--run", "night"])["run"]["status"],
        "accepted"
    );
}

/// Stages other content of a file than it has.
fn stage(env: &TestEnv, path: &str, content: &str) {
    let there = env.read(path);
    env.write(path, content);
    env.git(&["add", path]);
    env.write(path, there);
}

// What somebody staged meanwhile is nowhere else: neither the branch nor the index moves over it.
#[test]
fn what_was_staged_since_is_not_overwritten() {
    for agent in [AGENT, "echo $RECOVER_ITERATION >> a.txt"] {
        let env = TestEnv::repo();
        run(&env, 3, agent);
        stage(&env, "a.txt", "staged by hand\n");
        let before = state(&env);
        for args in [
            &["accept"][..],
            &["accept", "--dry-run"],
            &["accept", "--branch", "other"],
        ] {
            let error = env.error(13, args);
            assert_eq!(
                (&error["code"], paths(&error["paths"])),
                (&json!("conflicts"), vec!["a.txt"]),
                "{error}"
            );
            let hint = error["hint"].as_str().expect("a hint");
            assert!(
                hint.starts_with("git -C ") && hint.ends_with(" diff --cached -- a.txt"),
                "{hint}"
            );
            assert!(env.sh(hint).expect(0).stdout.contains("+staged by hand"));
            assert_eq!(state(&env), before);
        }
        env.git(&["restore", "--staged", "a.txt"]);
        env.json(0, &["accept"]);
        assert_eq!(
            env.git(&["status", "--porcelain", "--", ":!.ultraplan", ":!f*"]),
            ""
        );
    }
}

// While hooks run, too: what they take long for is when somebody goes on.
#[test]
fn what_is_staged_while_hooks_run_is_not_overwritten() {
    let env = TestEnv::repo();
    run(&env, 1, "echo $RECOVER_ITERATION >> a.txt");
    let (before, index) = (head(&env), env.work().join(".git/index"));
    let stage =
        "there=$(cat a.txt); echo mine > a.txt; git add a.txt; printf '%s\\n' \"$there\" > a.txt";
    hook(
        &env,
        "pre-commit",
        &format!("GIT_INDEX_FILE='{}'; {stage}", index.display()),
    );
    let error = env.error(13, &["accept"]);
    assert_eq!(paths(&error["paths"]), ["a.txt"], "{error}");
    assert_eq!(head(&env), before);
    assert_eq!(env.git(&["show", ":a.txt"]), "mine\n");
}

// Somebody who has the index is waited for, also where nothing is to change in it yet: what they leave there decides.
#[test]
fn the_index_follows_whoever_had_it_locked() {
    let env = TestEnv::repo();
    run(&env, 1, "echo $RECOVER_ITERATION >> a.txt");
    env.sh("cp .git/index ../before && git add a.txt && cp .git/index .git/index.lock")
        .expect(0);
    let before = head(&env);
    let error = env.error(11, &["--lock-timeout", "100ms", "accept"]);
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("index.lock")),
        "{error}"
    );
    assert_eq!(head(&env), before, "the branch has not moved");
    let other = env
        .command("sh")
        .args([
            "-c",
            "sleep 1; cp ../before .git/index.lock; mv .git/index.lock .git/index",
        ])
        .spawn();
    env.json(0, &["accept"]);
    other.expect("sh starts").wait().expect("it ends");
    assert_ne!(head(&env), before);
    assert_eq!(
        env.git(&["diff", "--cached", "--name-only"]),
        "",
        "the index follows"
    );
}

// What the run itself left in the index, or somebody staged as it is, follows the commit, whatever a hook made of it.
#[test]
fn what_the_run_staged_is_not_in_the_way() {
    let env = TestEnv::repo();
    let agent = "echo $RECOVER_ITERATION >> a.txt; git add a.txt; [ $RECOVER_ITERATION = 3 ] || echo more >> a.txt";
    run(&env, 3, agent);
    hook(&env, "pre-commit", "echo formatted >> a.txt; git add a.txt");
    env.json(0, &["accept"]);
    assert!(env.git(&["show", "HEAD:a.txt"]).ends_with("formatted\n"));
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
    // What a failed attempt staged is taken back with it.
    let agent =
        "echo $RECOVER_ITERATION >> a.txt; [ $RECOVER_ITERATION = 1 ] || { git add .; exit 1; }";
    let args = [
        "run",
        "--run",
        "second",
        "--iterations",
        "2",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        agent,
    ];
    env.json(8, &args);
    env.json(0, &["rollback", "--to", "good"]);
    assert_eq!(env.git(&["diff", "--cached"]), "");
    env.json(0, &["accept", "--yes"]);
    assert_eq!(
        env.git(&["status", "--porcelain", "--", ":!.ultraplan"]),
        ""
    );
}

// A command that finishes what a kill cut off after the branch moved leaves alone what was staged meanwhile.
#[test]
fn what_was_staged_after_a_kill_stays_staged() {
    let env = TestEnv::repo();
    run(&env, 1, "echo $RECOVER_ITERATION >> a.txt");
    let own = head(&env);
    env.git(&["add", "a.txt"]);
    let tree = env.git(&["write-tree"]).trim().to_owned();
    env.git(&["reset", "-q"]);
    let new = env
        .git(&["commit-tree", "-p", "HEAD", "-m", "Add the parser", &tree])
        .trim()
        .to_owned();
    let journal = json!({
        "version": 1, "run_id": "night", "phase": "-", "lane": "-", "before": {"commit": own, "branch": "refs/heads/main"},
        "base": own, "commits": [new], "new_branch": null, "kept": null, "index_tree": null, "seen": [],
        "message": "recover accept: run night",
    });
    env.git(&["update-ref", "refs/heads/main", &new]);
    stage(&env, "a.txt", "staged by hand\n");
    env.write(".git/recover/commit.json", journal.to_string());
    env.recover(&["checkpoint", "create"]).expect(0);
    assert_eq!(
        env.json(0, &["status", "--run", "night"])["run"]["status"],
        "accepted"
    );
    assert_eq!(env.git(&["show", ":a.txt"]), "staged by hand\n");
}

// A rehearsal lies in the folder for temporary files. What a kill leaves of it goes with the next one.
#[test]
fn what_a_killed_rehearsal_leaves_is_removed_by_the_next() {
    let mut env = TestEnv::repo();
    run(&env, 1, "echo $RECOVER_ITERATION >> a.txt");
    let folder = env.root().join("temporary");
    fs::create_dir(&folder).unwrap();
    env.set("TMPDIR", &folder.to_string_lossy());
    let left = || fs::read_dir(&folder).unwrap().count();
    env.json(0, &["accept", "--dry-run"]);
    assert_eq!(left(), 0);
    // A git that does not come back.
    env.script(
        "../bin/git",
        "touch ../asked; while kill -0 $PPID 2> /dev/null; do sleep 0.05; done",
    );
    let usual = std::env::var("PATH").unwrap();
    env.set(
        "PATH",
        &format!("{}:{usual}", env.root().join("bin").display()),
    );
    let mut child = env
        .recover_command(&["accept", "--dry-run"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("recover starts");
    until("git is called", || env.root().join("asked").exists());
    assert!(left() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(left() > 0, "nothing could remove it");
    env.set("PATH", &usual);
    env.json(0, &["accept", "--dry-run"]);
    assert_eq!(left(), 0);
}

// The message says what was done, in the agent's words, and ends no line within a word; a pull request has the same text.
#[test]
fn messages_say_what_was_done_in_the_agents_words() {
    let env = quick();
    let prompt = "Rewrite the importer so that it reads compressed archives of every kind, and says where they break. Then test it.";
    env.script(
        "agent",
        r#"test $RECOVER_ITERATION != 2 || echo broken > broken
echo $RECOVER_ITERATION > f$RECOVER_ITERATION.txt; head -c 2000000 /dev/zero > large.bin
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s\",\"result\":\"Read archives, part $RECOVER_ITERATION. All tests pass.\"}""#,
    );
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "agent"]);
    let args = [
        "run",
        "--run",
        "night",
        "--iterations",
        "3",
        "--attempts",
        "1",
        "--agent",
        "claude",
        "--prompt",
        prompt,
        "--feedback",
        "test=! test -e broken",
        "--",
        "./agent",
    ];
    env.recover(&args).expect(8);
    let request = env.recover(&["report", "--format", "pr"]).expect(0).stdout;
    env.recover(&["accept", "--yes"]).expect(3);
    let message = env.git(&["log", "-1", "--format=%B"]);
    let (subject, body) = message.split_once("\n\n").expect("a body");
    let kept = subject.strip_suffix('…').expect("it is cut");
    assert!(
        subject.chars().count() <= 72 && prompt.starts_with(&format!("{kept} ")),
        "{subject}"
    );
    let lines: Vec<&str> = body.lines().take(5).collect();
    assert_eq!(
        [lines[0], lines[1], lines[3], lines[4]],
        [
            "Iterations: 2 passed, 1 given up.",
            "- iteration 1: Read archives, part 1. All tests pass.",
            "- iteration 3: Read archives, part 3. All tests pass.",
            "Checks passed: test.",
        ],
        "{message}"
    );
    assert!(
        lines[2].starts_with("- iteration 2: given up: "),
        "{message}"
    );
    assert!(
        body.trim_end().ends_with("\n\nRecover-Run: night"),
        "{message}"
    );
    assert!(
        request.starts_with(&format!("{subject}\n\n{}\n{}\n", lines[0], lines[1])),
        "{request}"
    );
    // Only what is committed is listed.
    assert!(
        request.contains("f3.txt") && !request.contains("large.bin"),
        "{request}"
    );
}

#[test]
fn the_commit_of_an_iteration_says_what_that_did() {
    let env = quick();
    env.script(
        "agent",
        r#"echo x > f$RECOVER_ITERATION.txt
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s\",\"result\":\"Wrote file $RECOVER_ITERATION. It works.\"}""#,
    );
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "agent"]);
    env.recover(&[
        "run",
        "--run",
        "n",
        "--iterations",
        "2",
        "--agent",
        "claude",
        "--prompt",
        "Write files.",
        "--",
        "./agent",
    ])
    .expect(0);
    let before = head(&env);
    env.recover(&["accept", "--per-iteration"]).expect(0);
    assert_eq!(
        subjects(&env, &format!("{before}..HEAD")),
        ["Wrote file 1 (iteration 1)", "Wrote file 2 (iteration 2)"]
    );
}

// A run's own accept is none of others' commits: it can begin again after it.
#[test]
fn an_accepted_run_can_begin_again() {
    let env = quick();
    run(&env, 2, "echo $RECOVER_ITERATION >> a.txt");
    env.recover(&["accept"]).expect(0);
    let resumed = env.json(0, &["resume", "--restart"]);
    assert_eq!(resumed["outcome"], "complete", "{resumed:#}");
}
