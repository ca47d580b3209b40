//! What a rollback does to HEAD and to branches (B17, S4; snapshot.md, HEAD).

use crate::env::TestEnv;
use crate::seen::{assert_clean, checkpoint, seen, text};

fn head(env: &TestEnv) -> String {
    env.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

fn log(env: &TestEnv) -> String {
    env.git(&["log", "--format=%s"])
}

/// A run whose agent commits in each of two iterations.
fn agent_commits() -> TestEnv {
    let env = TestEnv::repo();
    env.script(
        "agent.sh",
        "echo $RECOVER_ITERATION > state; git add -A; git commit -qm \"agent $RECOVER_ITERATION\"",
    );
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "agent script"]);
    env.json(
        0,
        &[
            "run",
            "--iterations",
            "2",
            "--feedback",
            "test=true",
            "--",
            "./agent.sh",
        ],
    );
    env
}

// B17: the log for people names the commits that attempts made, and where a rollback moved HEAD; patches are in colour too.
#[test]
fn the_log_names_commits_and_moves() {
    let env = agent_commits();
    let tip = head(&env);
    env.json(0, &["rollback", "--iteration", "2"]);
    let back = head(&env);
    let said = env.recover(&["log", "--color", "always"]).expect(0).stdout;
    let line = |part: &str| {
        let found = said.lines().rev().find(|line| line.contains(part));
        found.unwrap_or_default().to_owned()
    };
    let ended = line("attempt_ended");
    assert!(
        ended.contains(&format!("commit {}", &tip[..10]))
            && ended.contains("\u{1b}[32mpassed\u{1b}[39m"),
        "{said}"
    );
    let moved = line("restored")
        .replace("\u{1b}[33m", "")
        .replace("\u{1b}[39m", "");
    assert!(
        moved.contains(&format!("HEAD {} -> {}", &tip[..10], &back[..10])),
        "{said}"
    );
    let diff = |color: &str| {
        let args = [
            "checkpoint",
            "diff",
            "@1",
            "@2",
            "--patch",
            "--color",
            color,
        ];
        env.recover(&args).expect(0).stdout
    };
    assert!(diff("always").contains("\u{1b}[32m+1\u{1b}[0m\n"));
    assert!(diff("never").contains("\n+1\n"));
}

// B17: the run's own commits are taken off, stay reachable, and come back with undo.
#[test]
fn the_runs_own_commits_are_taken_off_the_branch() {
    let env = agent_commits();
    let (before, tip) = (seen(env.work()), head(&env));
    let back = env.json(0, &["rollback", "--full"]);
    assert_eq!(back["result"]["head"]["before"], tip.as_str());
    assert_eq!(back["result"]["head"]["after"], head(&env).as_str());
    assert_eq!(log(&env), "agent script\nfirst\n");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert!(
        env.git(&["reflog", "-1", "main"])
            .contains("recover: rollback")
    );
    env.git(&["reflog", "expire", "--expire=now", "--all"]);
    env.git(&["gc", "-q", "--prune=now"]);
    env.git(&["cat-file", "-e", &tip]);
    env.json(0, &["undo"]);
    assert_eq!(
        (head(&env), seen(env.work())),
        (tip.clone(), before.clone())
    );
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    env.json(0, &["redo"]);
    assert_eq!(log(&env), "agent script\nfirst\n");
    env.json(0, &["undo"]);
    assert_eq!((head(&env), seen(env.work())), (tip, before));
    assert_clean(&env);
}

// snapshot.md: others' commits are refused; keep, drop and revert say what becomes of them; each can be undone and redone.
#[test]
fn commits_of_others_are_refused_kept_dropped_or_reverted() {
    for choice in ["keep", "drop", "revert"] {
        let env = agent_commits();
        env.sh("echo mine > mine.txt; git add -A; git commit -qm mine")
            .expect(0);
        let (before, tip) = (seen(env.work()), head(&env));
        let error = env.json(13, &["rollback", "--full", "--edits", "discard"])["error"].clone();
        assert_eq!(error["code"], "head_moved");
        assert!(text(&error["hint"]).contains("--commits keep"), "{error}");
        assert_eq!(
            (head(&env), seen(env.work())),
            (tip.clone(), before.clone())
        );
        let plan = env.json(
            0,
            &[
                "--dry-run",
                "rollback",
                "--full",
                "--edits",
                "discard",
                "--commits",
                choice,
            ],
        );
        assert_eq!(head(&env), tip, "{plan}");
        let back = env.json(
            0,
            &[
                "rollback",
                "--full",
                "--edits",
                "discard",
                "--commits",
                choice,
            ],
        );
        assert!(!env.exists("mine.txt") && !env.exists("state"));
        let after = head(&env);
        assert_eq!(back["result"]["head"]["after"], after.as_str());
        match choice {
            "keep" => assert_eq!(after, tip),
            "drop" => assert_eq!(log(&env), "agent script\nfirst\n"),
            _ => {
                assert_eq!(env.git(&["rev-parse", "HEAD^"]).trim(), tip);
                assert_eq!(env.git(&["status", "--porcelain"]), "");
            }
        }
        env.json(0, &["undo"]);
        assert_eq!(
            (head(&env), seen(env.work())),
            (tip.clone(), before),
            "{choice}"
        );
        assert_eq!(env.git(&["status", "--porcelain"]), "", "{choice}");
        env.json(0, &["redo"]);
        assert_eq!(head(&env), after, "{choice}");
        assert!(!env.exists("mine.txt"));
        env.json(0, &["undo"]);
        assert_eq!(head(&env), tip, "{choice}");
        assert_clean(&env);
    }
}

// snapshot.md: a commit made after the rollback is not knocked off by an undo.
#[test]
fn a_commit_made_since_the_rollback_is_not_undone() {
    let env = agent_commits();
    env.json(0, &["rollback", "--full"]);
    env.sh("echo new > new.txt; git add -A; git commit -qm new")
        .expect(0);
    let tip = head(&env);
    assert_eq!(
        env.json(13, &["undo", "--edits", "discard"])["error"]["code"],
        "head_moved"
    );
    assert_eq!(head(&env), tip);
    env.json(0, &["undo", "--edits", "discard", "--commits", "keep"]);
    assert_eq!(head(&env), tip);
    assert!(env.exists("state"));
}

// snapshot.md: a switched branch, a detached HEAD, commits on a remote-tracking branch.
#[test]
fn another_branch_or_pushed_commits_are_refused() {
    let env = agent_commits();
    env.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    assert_eq!(
        env.json(13, &["rollback", "--full"])["error"]["code"],
        "head_moved"
    );
    env.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    env.git(&["switch", "-qc", "side"]);
    let error = env.json(13, &["rollback", "--full"])["error"].clone();
    assert!(text(&error["hint"]).ends_with(" switch main"), "{error}");
    env.git(&["switch", "-q", "main"]);
    env.git(&["checkout", "-q", "--detach"]);
    env.json(13, &["rollback", "--full"]);
    let tip = head(&env);
    env.json(0, &["rollback", "--full", "--commits", "keep"]);
    assert_eq!(head(&env), tip);
    assert!(!env.exists("state"));
}

// While HEAD is where the rollback left it, undo and redo go back and forth, whoever else has the commits; but what the rollback
// itself committed stays once others may have it.
#[test]
fn pushed_commits_that_a_rollback_came_back_to_are_left_by_undo() {
    let env = TestEnv::repo();
    env.sh("echo 2 > a.txt; git commit -qam 2; git update-ref refs/remotes/origin/main HEAD")
        .expect(0);
    checkpoint(&env);
    let tip = head(&env);
    env.git(&["reset", "-q", "--hard", "HEAD~1"]);
    env.write("b.txt", "b\n");
    let reset = head(&env);
    let back = ["rollback", "--to", "@1", "--edits", "discard"];
    env.json(0, &back);
    assert_eq!(head(&env), tip);
    env.json(0, &["undo"]);
    assert_eq!(
        (head(&env), env.read("b.txt")),
        (reset.clone(), "b\n".into())
    );
    env.json(0, &["redo"]);
    assert_eq!(head(&env), tip);
    env.json(0, &["undo"]);
    assert_eq!(head(&env), reset);

    env.json(0, &[&back[..], &["--commits", "revert"]].concat());
    env.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let refused = env.json(13, &["undo"]);
    assert_eq!(refused["error"]["code"], "head_moved");
}

// detached and unborn HEADs work.
#[test]
fn detached_and_unborn_heads_work() {
    let env = TestEnv::repo();
    env.git(&["checkout", "-q", "--detach"]);
    checkpoint(&env);
    env.write("a.txt", "two\n");
    env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(env.read("a.txt"), "one\n");
    let env = TestEnv::plain();
    env.git(&["init", "-q", "-b", "main"]);
    env.write("a.txt", "one\n");
    env.git(&["add", "a.txt"]);
    env.script(
        "agent.sh",
        "echo 2 > a.txt; git add -A; git commit -qm agent",
    );
    env.json(0, &["run", "--feedback", "test=true", "--", "./agent.sh"]);
    let tip = head(&env);
    env.json(0, &["rollback", "--full"]);
    assert_ne!(
        env.sh("git rev-parse -q --verify HEAD").code,
        0,
        "unborn again"
    );
    assert_eq!(env.read("a.txt"), "one\n");
    env.json(0, &["undo"]);
    assert_eq!((head(&env), env.read("a.txt")), (tip, "2\n".into()));
    assert_clean(&env);
}

// snapshot.md: a merge, rebase or cherry-pick that the target did not have is refused with the way out.
#[test]
fn an_operation_in_progress_is_refused_with_the_way_out() {
    for operation in ["merge", "rebase", "cherry-pick"] {
        let env = TestEnv::repo();
        checkpoint(&env);
        env.sh("git switch -qc side; echo s > a.txt; git commit -qam s; git switch -q main; echo m > a.txt; git commit -qam m")
            .expect(0);
        assert_ne!(env.sh(&format!("git {operation} side")).code, 0);
        let before = seen(env.work());
        let error = env.json(
            13,
            &[
                "rollback",
                "--to",
                "latest",
                "--edits",
                "discard",
                "--commits",
                "keep",
            ],
        )["error"]
            .clone();
        assert_eq!(error["code"], "operation_in_progress");
        let way = format!("git {operation} --abort");
        assert!(text(&error["message"]).contains(&way), "{error}");
        assert!(text(&error["hint"]).ends_with(" status"), "{error}");
        assert_eq!(seen(env.work()), before);
        env.sh(&way).expect(0);
        env.json(
            0,
            &[
                "rollback",
                "--to",
                "latest",
                "--edits",
                "discard",
                "--commits",
                "keep",
            ],
        );
        assert_eq!(env.read("a.txt"), "one\n");
    }
}

// promise.md: what a person staged stays; with `--edits discard` or `--restore-index` the captured index is back.
#[test]
fn staged_work_stays_unless_it_is_discarded() {
    let env = TestEnv::repo();
    env.write("a.txt", "staged\n");
    env.git(&["add", "a.txt"]);
    checkpoint(&env);
    env.write("b.txt", "b\n");
    env.git(&["add", "b.txt"]);
    env.json(0, &["rollback", "--to", "latest", "--edits", "keep"]);
    assert_eq!(
        env.git(&["diff", "--cached", "--name-only"]),
        "a.txt\nb.txt\n"
    );
    for how in [["--edits", "discard"], ["--edits=keep", "--restore-index"]] {
        env.json(0, &["rollback", "--to", "latest", how[0], how[1]]);
        assert_eq!(env.git(&["diff", "--cached", "--name-only"]), "a.txt\n");
        env.json(0, &["undo"]);
        assert_eq!(
            env.git(&["diff", "--cached", "--name-only"]),
            "a.txt\nb.txt\n"
        );
    }
}

// somebody's index.lock: what needs the index waits, then 11; it is never deleted; nothing is half done.
#[test]
fn a_foreign_index_lock_is_waited_for() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "two\n");
    env.git(&["add", "a.txt"]);
    env.write(".git/index.lock", "theirs");
    let before = seen(env.work());
    let error = env.json(
        11,
        &[
            "--lock-timeout",
            "100ms",
            "rollback",
            "--to",
            "latest",
            "--edits",
            "discard",
            "--restore-index",
        ],
    );
    assert!(
        text(&error["error"]["message"]).contains("index.lock"),
        "{error}"
    );
    assert_eq!(seen(env.work()), before);
    assert_eq!(env.read(".git/index.lock"), "theirs");
    // What is staged goes back with the files.
    let back = ["rollback", "--to", "latest", "--edits", "discard"];
    let error = env.error(11, &[&["--lock-timeout", "100ms"], &back[..]].concat());
    assert_eq!(error["code"], "locked");
    assert_eq!(seen(env.work()), before);
    std::fs::remove_file(env.work().join(".git/index.lock")).unwrap();
    env.json(0, &back);
    assert_eq!(env.read("a.txt"), "one\n");
    env.write("a.txt", "two\n");
    env.write(".git/index.lock", "theirs");
    env.json(0, &back);
    assert_eq!(env.read("a.txt"), "one\n");
    std::fs::remove_file(env.work().join(".git/index.lock")).unwrap();
    assert_clean(&env);
}
