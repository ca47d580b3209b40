//! A restore that was cut off: the next command that writes finishes it, one that only reads says so.

use crate::agents_and_hosts::hook_run::edit;
use crate::env::TestEnv;
use crate::seen::{assert_clean, checkpoint, seen, text};

/// A rollback to `@1` that was killed after some of its files; `None` where `strace` is missing.
fn cut_off() -> Option<TestEnv> {
    let env = TestEnv::repo();
    for number in 0..6 {
        env.write(&format!("f{number}"), "old\n");
    }
    checkpoint(&env);
    for number in 0..6 {
        env.write(&format!("f{number}"), "new\n");
    }
    env.write(".ultraplan/state/sub/later.json", "{}\n");
    checkpoint(&env);
    if env.sh("command -v strace").code != 0 {
        assert!(std::env::var_os("CI").is_none(), "strace is missing");
        eprintln!("skipped: strace is missing");
        return None;
    }
    let recover = env!("CARGO_BIN_EXE_recover");
    // Right before the fourth of the six is put in its place.
    let line = format!(
        "strace -f -o /dev/null -P f3 -e inject=rename,renameat,renameat2:signal=SIGKILL:when=1 {recover} rollback --to @1"
    );
    assert_ne!(env.sh(&line).code, 0);
    let old = (0..6)
        .filter(|number| env.read(&format!("f{number}")) == "old\n")
        .count();
    assert!(
        (1..6).contains(&old) && env.exists(".git/recover/journal.json"),
        "{old}"
    );
    Some(env)
}

// state.md: reading says so (16 for what needs a settled state), writing finishes it; then undo takes it back.
#[test]
fn reading_says_so_and_writing_finishes_it() {
    let Some(env) = cut_off() else { return };
    let between = seen(env.work());
    assert!(text(&env.json(0, &["status"])["unfinished_operation"]).starts_with("rollback"));
    env.json(0, &["checkpoint", "list"]);
    env.json(0, &["checkpoint", "show", "@1"]);
    env.json(0, &["checkpoint", "diff", "@1", "@2"]);
    for args in [
        vec!["checkpoint", "diff", "@1"],
        vec!["--dry-run", "rollback", "--to", "@1"],
        vec!["--dry-run", "undo"],
        vec!["--dry-run", "checkpoint", "create"],
    ] {
        let error = env.json(16, &args)["error"].clone();
        assert_eq!(error["code"], "cut_off", "{args:?}");
        assert!(text(&error["hint"]).contains("doctor --repair"), "{error}");
    }
    assert_eq!(seen(env.work()), between);
    env.json(0, &["rollback", "--to", "@1"]);
    assert!((0..6).all(|number| env.read(&format!("f{number}")) == "old\n"));
    assert_clean(&env);
    env.json(0, &["undo"]);
    assert!((0..6).all(|number| env.read(&format!("f{number}")) == "new\n"));
    assert!(env.json(0, &["status"])["unfinished_operation"].is_null());
}

// The second kill came between a file of the working memory and the folder that was empty then.
#[test]
fn an_emptied_folder_of_the_working_memory_goes_too() {
    let Some(env) = cut_off() else { return };
    env.remove(".ultraplan/state/sub/later.json");
    env.recover(&["doctor", "--repair"]).expect(0);
    assert!(!env.exists(".ultraplan/state/sub"), "the folder is left");
    env.json(0, &["undo"]);
    assert_eq!(env.read(".ultraplan/state/sub/later.json"), "{}\n");
}

// cli.md: `undo` finishes it and takes it back.
#[test]
fn undo_takes_it_back() {
    let Some(env) = cut_off() else { return };
    env.json(0, &["undo"]);
    assert!((0..6).all(|number| env.read(&format!("f{number}")) == "new\n"));
    assert_clean(&env);
}

/// The same step again, not the one before it.
#[test]
fn an_undo_that_was_cut_off_is_one_step_when_it_is_repeated() {
    let env = TestEnv::repo();
    for name in ["a", "f3"] {
        env.write(name, "first\n");
    }
    checkpoint(&env);
    env.write("a", "second\n");
    checkpoint(&env);
    env.write("f3", "third\n");
    checkpoint(&env);
    env.json(0, &["rollback", "--to", "@2"]);
    env.json(0, &["rollback", "--to", "@1"]);
    if env.sh("command -v strace").code != 0 {
        assert!(std::env::var_os("CI").is_none(), "strace is missing");
        eprintln!("skipped: strace is missing");
        return;
    }
    let recover = env!("CARGO_BIN_EXE_recover");
    let line = format!(
        "strace -f -o /dev/null -P a -e inject=rename,renameat,renameat2:signal=SIGKILL:when=1 {recover} undo"
    );
    assert_ne!(env.sh(&line).code, 0);
    assert!(env.exists(".git/recover/journal.json"));
    let again = env.recover(&["undo"]).expect(0);
    assert!(
        again.stderr.contains("was interrupted: finished"),
        "{}",
        again.stderr
    );
    assert_eq!(
        (env.read("a").as_str(), env.read("f3").as_str()),
        ("second\n", "first\n")
    );
    env.json(0, &["undo"]);
    assert_eq!(env.read("f3"), "third\n");
}

// A checkpoint is never taken of a tree in between.
#[test]
fn a_checkpoint_is_taken_of_the_finished_tree() {
    let Some(env) = cut_off() else { return };
    checkpoint(&env);
    assert!((0..6).all(|number| env.read(&format!("f{number}")) == "old\n"));
    assert_clean(&env);
}

// A loss of power leaves git's own locks, and its index empty: they are mended first.
#[test]
fn it_is_finished_where_git_is_locked_since_before_the_boot() {
    for (index, args) in [
        (None, ["checkpoint", "create"]),
        (Some(""), ["doctor", "--repair"]),
    ] {
        let Some(env) = cut_off() else { return };
        if let Some(index) = index {
            env.write(".git/index", index);
        }
        env.sh("touch -d '1 year ago' .git/index.lock .git/refs/heads/main.lock")
            .expect(0);
        env.recover(&args).expect(0);
        assert!(!env.exists(".git/index.lock"), "{args:?}");
        assert!(!env.exists(".git/refs/heads/main.lock"), "{args:?}");
        assert!((0..6).all(|number| env.read(&format!("f{number}")) == "old\n"));
        assert_clean(&env);
        env.git(&["status"]);
    }
}

// What was finished without being asked for is said once, beside the answer.
#[test]
fn what_was_finished_is_said_on_stderr() {
    let finished = |line: &str| {
        line.starts_with("rollback op_") && line.ends_with(" was interrupted: finished")
    };
    let Some(env) = cut_off() else { return };
    let ran = env.recover(&["checkpoint", "create"]).expect(0);
    let said: Vec<&str> = ran
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("note: "))
        .collect();
    assert!(
        said.len() == 1 && finished(said[0]) && !ran.stdout.contains("interrupted"),
        "{ran:?}"
    );
    assert_eq!(
        env.recover(&["checkpoint", "create"]).expect(0).stderr,
        "",
        "once"
    );

    let Some(env) = cut_off() else { return };
    let ran = env.recover(&["--json", "checkpoint", "create"]).expect(0);
    assert!(
        finished(&text(&ran.json()["warnings"][0])) && ran.stderr.starts_with("note: rollback"),
        "{ran:?}"
    );

    let Some(env) = cut_off() else { return };
    assert_eq!(
        env.recover(&["--quiet", "checkpoint", "create"])
            .expect(0)
            .stderr,
        ""
    );

    // The answer of a repair has it already.
    let Some(env) = cut_off() else { return };
    let ran = env.recover(&["doctor", "--repair"]).expect(0);
    assert!(
        ran.stdout.contains("was interrupted: finished") && ran.stderr.is_empty(),
        "{ran:?}"
    );

    // An agent's hook stays silent.
    let Some(env) = cut_off() else { return };
    let ran = env
        .recover_fed(
            edit(&env, "s", "f0").to_string(),
            &["hook", "run", "claude"],
        )
        .expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert!((0..6).all(|number| env.read(&format!("f{number}")) == "old\n"));
}

// an edit made after the cut is not lost.
#[test]
fn an_edit_after_the_cut_is_not_lost() {
    let Some(env) = cut_off() else { return };
    env.write("f3", "by hand\n");
    env.json(0, &["checkpoint", "create"]);
    assert_eq!(env.read("f3"), "by hand\n");
    assert_clean(&env);
}

// An error after the journal has got its name: the restore has not begun, and no later command carries it out.
#[test]
fn a_journal_that_may_not_last_is_taken_back() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "two\n");
    checkpoint(&env);
    if env.sh("command -v strace").code != 0 {
        return;
    }
    let recover = env!("CARGO_BIN_EXE_recover");
    let folder = env.work().join(".git/recover");
    let ran = env.sh(&format!(
        "strace -f -o /dev/null -P {} -e trace=fsync -e inject=fsync:error=EIO:when=1 {recover} rollback --to @1",
        folder.display()
    ));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!env.exists(".git/recover/journal.json"), "{ran:?}");
    checkpoint(&env);
    assert_eq!(env.read("a.txt"), "two\n");
}
