//! `rollback` and `checkpoint restore`.

use crate::env::{Ran, TestEnv};
use crate::seen::{assert_clean, checkpoint, paths, seen, text};

/// A run of three iterations that each write their number, with every one passed.
fn three_iterations() -> TestEnv {
    let env = TestEnv::repo();
    env.script(
        "agent.sh",
        "echo $RECOVER_ITERATION > state; echo $RECOVER_ITERATION >> log.txt; touch made-$RECOVER_ITERATION",
    );
    env.json(
        0,
        &[
            "run",
            "--iterations",
            "3",
            "--feedback",
            "test=true",
            "--",
            "./agent.sh",
        ],
    );
    env
}

fn ledger(env: &TestEnv) -> String {
    env.read(".ultraplan/state/events.jsonl")
}

// B10: one iteration, to a checkpoint, or full; the bookkeeping follows.
#[test]
fn one_iteration_or_all_of_them() {
    let env = three_iterations();
    let back = env.json(0, &["rollback", "--iteration", "3"]);
    assert_eq!(env.read("state"), "2\n");
    assert!(!env.exists("made-3"));
    assert_eq!(back["changed"], true);
    assert_eq!(back["result"]["success"], true);
    assert_eq!(back["result"]["verified"], true);
    assert_eq!(back["result"]["restored_to_iteration"], 2);
    assert_eq!(back["result"]["storage_type"], "snapshot");
    assert_eq!(paths(&back["result"]["deleted"]), ["made-3"]);
    assert_eq!(paths(&back["result"]["written"]), ["log.txt", "state"]);
    assert_eq!(back["run"]["status"], "paused");
    assert_eq!(back["run"]["current_iteration"], 3);
    assert!(
        text(&back["rollback_hint"]).contains("-C")
            && text(&back["resume_hint"]).contains("resume"),
        "{back}"
    );
    let full = env.json(0, &["rollback", "--full"]);
    assert!(!env.exists("state") && env.exists("agent.sh"));
    assert_eq!(full["run"]["status"], "pending");
    assert_eq!(full["run"]["current_iteration"], 1);
    assert!(env.json(0, &["status"])["failure"].is_null());
    env.json(0, &["undo"]);
    assert_eq!(env.read("state"), "2\n");
    assert_clean(&env);
}

// B10, B15: an iteration that was never reached is no target.
#[test]
fn an_iteration_that_was_never_reached_is_refused() {
    let env = three_iterations();
    let before = ledger(&env);
    let error = env.json(4, &["rollback", "--iteration", "9"]);
    assert!(
        text(&error["error"]["message"]).contains("No checkpoint available"),
        "{error}"
    );
    assert_eq!(ledger(&env), before);
}

// B10: every form of a selector.
#[test]
fn every_selector_is_a_target() {
    let env = three_iterations();
    let list = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
    let id = text(&list[1]["id"]);
    for (selector, state) in [
        ("initial", None),
        ("good", Some("3\n")),
        ("latest~1", Some("2\n")),
        ("iteration:1", Some("1\n")),
        ("@1", None),
        (id.as_str(), Some("1\n")),
        ("latest", Some("3\n")),
    ] {
        env.json(0, &["rollback", "--to", selector]);
        let now = env.exists("state").then(|| env.read("state"));
        assert_eq!(now.as_deref(), state, "{selector}");
        // What this went back over would not be good, nor the latest.
        if state != Some("3\n") {
            env.json(0, &["undo"]);
        }
    }
    let good = env.json(0, &["checkpoint", "show", "good"])["checkpoint"]["id"].clone();
    env.write("state", "4\n");
    env.json(13, &["rollback"]);
    assert_eq!(
        env.json(0, &["--rollback", "--edits", "discard"])["result"]["checkpoint_id"],
        good
    );
    assert_eq!(env.read("state"), "3\n");
    env.json(4, &["rollback", "--to", "@99"]);
    assert_eq!(
        env.json(4, &["rollback", "--to", "ckpt_"])["error"]["code"],
        "ambiguous"
    );
}

// B11: the dry run is the very plan, and nothing at all changes.
#[test]
fn a_dry_run_is_the_very_plan() {
    let env = three_iterations();
    for target in [
        vec!["--full"],
        vec!["--iteration", "2"],
        vec!["--to", "@1", "--path", "made-*"],
    ] {
        let (before, written) = (seen(env.work()), ledger(&env));
        let mut args = vec!["--dry-run", "rollback"];
        args.extend(&target);
        let plan = env.json(0, &args)["plan"].clone();
        assert_eq!(seen(env.work()), before);
        assert_eq!(ledger(&env), written);
        let done = env.json(0, &args[1..])["result"].clone();
        for field in [
            "written",
            "deleted",
            "kept",
            "head",
            "checkpoint_id",
            "restored_to_iteration",
            "storage_type",
        ] {
            assert_eq!(plan[field], done[field], "{field}");
        }
        env.json(0, &["undo"]);
    }
    // What would be refused is refused in the plan too.
    env.write("state", "mine\n");
    env.json(13, &["--dry-run", "rollback", "--full"]);
    // The preview for people.
    let text = env
        .recover(&["--dry-run", "rollback", "--full", "--edits", "discard"])
        .expect(0)
        .stdout;
    assert!(text.contains("state"), "{text}");
}

// Paths are of the folder that the command is called in, as git's are, and one that selects nothing is named.
#[test]
fn paths_are_of_the_current_folder() {
    let env = TestEnv::repo();
    env.write("sub/f.txt", "1\n");
    env.write("f.txt", "1\n");
    checkpoint(&env);
    let from_sub = |args: &[&str]| {
        let mut command = env.recover_command(args);
        command.current_dir(env.work().join("sub"));
        Ran::of(&command.output().expect("recover starts"))
    };
    let absolute = env.work().join("sub/f.txt");
    let absolute = absolute.to_str().expect("UTF-8");
    for path in ["f.txt", "*.txt", ".", "../sub/./f.txt", absolute] {
        env.write("sub/f.txt", "2\n");
        env.write("f.txt", "2\n");
        let shown = from_sub(&["diff", "@1", "--path", path]).expect(0);
        assert!(
            shown.stdout.contains("sub/f.txt"),
            "{path}: {}",
            shown.stdout
        );
        let edits = ["--edits", "discard", "--path", path];
        from_sub(&[&["rollback", "--to", "@1"][..], &edits].concat()).expect(0);
        assert_eq!(
            (env.read("sub/f.txt"), env.read("f.txt")),
            ("1\n".into(), "2\n".into()),
            "{path}"
        );
        from_sub(&["undo"]).expect(0);
        assert_eq!(env.read("sub/f.txt"), "2\n", "{path}");
    }
    let nothing = from_sub(&["checkpoint", "restore", "@1", "--path", "typo.txt"]).expect(0);
    assert!(
        nothing
            .stderr
            .contains("--path sub/typo.txt selects no file"),
        "{}",
        nothing.stderr
    );
    from_sub(&["rollback", "--to", "@1", "--path", "../../f.txt"]).expect(2);
}

// B11: only some paths; the bookkeeping stays.
#[test]
fn only_the_selected_paths_go_back() {
    let env = three_iterations();
    let back = env.json(
        0,
        &["rollback", "--to", "initial", "--path", "made-*", "log.txt"],
    );
    assert_eq!(
        paths(&back["result"]["deleted"]),
        ["log.txt", "made-1", "made-2", "made-3"]
    );
    assert_eq!(env.read("state"), "3\n");
    assert_eq!(back["run"]["status"], "complete");
    env.json(2, &["rollback", "--to", "initial", "--path", "[broken"]);
    env.json(
        2,
        &[
            "rollback", "--to", "initial", "--scope", "state", "--path", "x",
        ],
    );
}

// snapshot.md, hand edits: refused and listed, kept, or restored over; undo brings them back.
#[test]
fn hand_edits_are_refused_kept_or_discarded() {
    let env = three_iterations();
    env.write("state", "mine\n");
    env.write("notes.txt", "mine too\n");
    std::fs::remove_file(env.work().join("made-2")).unwrap();
    let (before, written) = (seen(env.work()), ledger(&env));
    let error = env.json(13, &["rollback", "--iteration", "2"])["error"].clone();
    assert_eq!(error["code"], "hand_edits");
    let listed = paths(&error["paths"]);
    assert!(
        listed.contains(&"state".to_owned()) && listed.contains(&"notes.txt".to_owned()),
        "{error}"
    );
    assert!(!listed.contains(&"made-3".to_owned()));
    assert_eq!((seen(env.work()), ledger(&env)), (before.clone(), written));
    let kept = env.json(0, &["rollback", "--iteration", "2", "--edits", "keep"]);
    assert_eq!(env.read("state"), "mine\n");
    assert_eq!(env.read("notes.txt"), "mine too\n");
    assert!(!env.exists("made-3"));
    assert!(
        paths(&kept["result"]["kept"]).contains(&"state".to_owned()),
        "{kept}"
    );
    env.json(0, &["undo"]);
    assert_eq!(seen(env.work()), before);
    env.json(0, &["rollback", "--iteration", "2", "--edits", "discard"]);
    assert_eq!(env.read("state"), "1\n");
    assert!(!env.exists("notes.txt"));
    env.json(0, &["undo"]);
    assert_eq!(seen(env.work()), before);
}

// Promise 2: ignored, too large, FIFO, nested: kept and listed; rules of now and of the target both count.
#[test]
fn what_was_not_captured_is_kept() {
    let env = TestEnv::repo();
    env.write(".gitignore", "build/\n*.log\n");
    checkpoint(&env);
    env.write("build/out", "o\n");
    env.write("x.log", "log\n");
    env.write("dir/keep.log", "log\n");
    env.write("dir/new.txt", "n\n");
    env.sh("mkfifo dir/pipe; git init -q nested; echo n > nested/f")
        .expect(0);
    let back = env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert!(!env.exists("dir/new.txt"));
    for path in ["build/out", "x.log", "dir/keep.log", "dir/pipe", "nested/f"] {
        assert!(env.exists(path), "{path}: {back}");
    }
    // The rule comes and goes: what the checkpoint's own rules ignored is not deleted by it.
    env.write(".gitignore", "");
    let back = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert!(env.exists("build/out") && env.exists("x.log"), "{back}");
    assert_eq!(env.read(".gitignore"), "build/\n*.log\n");
    let kept = paths(&back["result"]["kept"]);
    assert!(kept.contains(&"x.log".to_owned()), "{back}");
}

// snapshot.md: rules that changed since the last checkpoint are read as they are now.
#[test]
fn changed_ignore_rules_are_no_obstacle() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write(".gitignore", "*.tmp\n");
    env.write("sub/.gitignore", "*.o\n");
    env.write("sub/x.o", "o");
    env.write("y.tmp", "y");
    env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert!(!env.exists(".gitignore") && env.exists("y.tmp") && env.exists("sub/x.o"));
    env.json(0, &["undo"]);
    assert_eq!(env.read("sub/.gitignore"), "*.o\n");
}

// B15: something in the way that was not captured: refused before anything is written.
#[test]
fn a_file_in_the_way_is_refused() {
    let env = TestEnv::repo();
    env.write(".gitignore", "*.log\nout\n");
    env.write("thing/inside.txt", "i\n");
    env.write("b.txt", "b\n");
    checkpoint(&env);
    env.sh("rm -rf thing; mkfifo thing; echo changed > b.txt")
        .expect(0);
    let (before, written) = (env.read("b.txt"), ledger(&env));
    let error =
        env.json(13, &["rollback", "--to", "latest", "--edits", "discard"])["error"].clone();
    assert_eq!(error["code"], "conflicts");
    assert!(
        text(&error["message"]).contains("Rollback failed - conflicts"),
        "{error}"
    );
    assert_eq!(paths(&error["paths"]), ["thing"]);
    assert_eq!((env.read("b.txt"), ledger(&env)), (before, written));
    env.sh("rm thing; mkdir b; rm b.txt; mkdir b.txt; echo l > b.txt/x.log")
        .expect(0);
    let error =
        env.json(13, &["rollback", "--to", "latest", "--edits", "discard"])["error"].clone();
    assert!(env.exists("b.txt/x.log") && !env.exists("thing"), "{error}");
    // An ignored file where the target has one is captured first.
    env.sh("rm -rf b.txt b; echo b > b.txt; mkdir thing; echo i > thing/inside.txt")
        .expect(0);
    env.write("out", "tracked by include\n");
    env.sh("git add -f out").expect(0);
    checkpoint(&env);
    env.sh("git rm -q --cached out; echo mine > out").expect(0);
    env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(env.read("out"), "tracked by include\n");
    env.json(0, &["undo"]);
    assert_eq!(env.read("out"), "mine\n");
}

// a parent turned into a symlink: nothing outside is touched.
#[test]
fn a_symlink_in_the_way_leads_nowhere() {
    let env = TestEnv::repo();
    env.write("dir/f.txt", "f\n");
    checkpoint(&env);
    let outside = env.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f.txt"), "theirs\n").unwrap();
    env.sh("rm -rf dir; ln -s ../outside dir").expect(0);
    env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(
        std::fs::read_to_string(outside.join("f.txt")).unwrap(),
        "theirs\n"
    );
    assert_eq!(env.read("dir/f.txt"), "f\n");
    env.json(0, &["undo"]);
    assert!(env.work().join("dir").is_symlink());
    assert_eq!(
        std::fs::read_to_string(outside.join("f.txt")).unwrap(),
        "theirs\n"
    );
}

// cli.md: `checkpoint restore` leaves the run's bookkeeping as it is.
#[test]
fn a_checkpoint_is_restored_without_the_bookkeeping() {
    let env = three_iterations();
    let back = env.json(0, &["checkpoint", "restore", "initial"]);
    assert!(!env.exists("state"));
    assert_eq!(back["run"]["status"], "complete");
    env.json(0, &["undo"]);
    assert_eq!(env.read("state"), "3\n");
    let again = env.json(0, &["rollback", "--to", "latest"]);
    assert_eq!(again["result"]["written"], serde_json::json!([]));
}

// snapshot.md: unchanged files keep their times; a second rollback to the same place changes nothing.
#[test]
fn unchanged_files_are_not_touched() {
    let env = TestEnv::repo();
    env.write("same.txt", "s\n");
    env.sh("touch -d 2001-01-01 same.txt").expect(0);
    checkpoint(&env);
    env.write("a.txt", "two\n");
    env.json(0, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(
        env.sh("stat -c %Y same.txt").stdout,
        env.sh("date -d 2001-01-01 +%s").stdout
    );
    let written = ledger(&env);
    assert_eq!(env.json(0, &["rollback", "--to", "@1"])["changed"], false);
    assert_eq!(ledger(&env), written);
}

// S16: safe modes.
#[test]
fn safe_modes_hold() {
    let mut env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "two\n");
    env.set("RECOVER_SAFE_MODE", "read_only");
    assert_eq!(
        env.json(13, &["rollback", "--to", "latest", "--edits", "discard"])["error"]["code"],
        "safe_mode"
    );
    env.set("RECOVER_SAFE_MODE", "conservative");
    env.json(13, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(env.read("a.txt"), "two\n");
    env.json(
        0,
        &["--yes", "rollback", "--to", "latest", "--edits", "discard"],
    );
    assert_eq!(env.read("a.txt"), "one\n");
}

// S16: in `read_only` nothing of the user's is changed, by whatever command; recover's own records go on. What `conservative`
// asks about it does not do unasked either.
#[test]
fn read_only_changes_nothing_of_the_users() {
    let mut env = TestEnv::repo();
    env.write(".ultraplan/state/working.md", "good\n");
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    env.set("RECOVER_SAFE_MODE", "read_only");
    env.write(".ultraplan/state/working.md", "bad\n");
    let fail = ["attempt", "fail", "--run", "r", "--exit-code", "1"];
    for mode in ["read_only", "conservative"] {
        env.set("RECOVER_SAFE_MODE", mode);
        let planned = env.json(0, &[&["--dry-run"], &fail[..]].concat());
        let failed = env.json(0, &fail);
        assert_eq!(
            failed["result"]["action"], "cooldown_set",
            "{mode}: {failed}"
        );
        assert_eq!(
            planned["result"]["action"], "cooldown_set",
            "{mode}: {planned}"
        );
        assert_eq!(env.read(".ultraplan/state/working.md"), "bad\n", "{mode}");
        env.json(0, &["checkpoint", "create", "--run", "r"]);
        env.json(0, &["retry-status", "--reset", "--run", "r"]);
    }
    env.set("RECOVER_SAFE_MODE", "read_only");
    for args in [
        &["init"][..],
        &["hook", "install", "claude"],
        &["hook", "install", "git"],
        &["checkpoint", "export", "@1", "--patch", "x.patch"],
        &["checkpoint", "create", "--storage", "commit"],
        &["report", "-o", "x.md"],
        &["sync", "--to", "views"],
        &["undo"],
        &["checkpoint", "prune", "--keep-last", "1"],
    ] {
        assert_eq!(env.json(13, args)["error"]["code"], "safe_mode", "{args:?}");
    }
    env.json(0, &["checkpoint", "export", "@1", "--format", "seed-json"]);
    assert_eq!(
        env.git(&["status", "--short", "--ignored"]),
        "!! .ultraplan/\n"
    );
    // A run goes on without the rollback that was decided.
    let run = [
        "run",
        "--run",
        "s",
        "--attempts",
        "2",
        "--on-failure",
        "rollback",
        "--feedback",
        "t=grep -q 22 made",
    ];
    let work = ["--", "sh", "-c", "printf 2 >> made"];
    env.json(0, &[&run[..], &work].concat());
    assert_eq!(env.read("made"), "22");
}

/// `recover` as somebody whom permissions bind: root without the right to pass them over, who can still reach a temporary
/// folder of root's own.
pub fn bound(env: &TestEnv, args: &str) -> crate::env::Ran {
    let root = env.sh("id -u").stdout.trim() == "0";
    let without = if root {
        "setpriv --bounding-set=-dac_override,-dac_read_search "
    } else {
        ""
    };
    env.sh(&format!(
        "{without}{} {args}",
        env!("CARGO_BIN_EXE_recover")
    ))
}

// A cache that another program closed is replaced: it would be of no use for ever.
#[test]
fn a_cache_that_is_closed_to_its_owner_is_made_anew() {
    let env = TestEnv::repo();
    let cache = env.work().join(".git/recover/index-cache");
    bound(&env, "checkpoint create").expect(0);
    let before = std::fs::read(&cache).expect("a cache");
    env.write("a.txt", "another\n");
    env.sh("chmod 400 .git/recover/index-cache").expect(0);
    bound(&env, "checkpoint create").expect(0);
    assert_ne!(std::fs::read(&cache).expect("a cache"), before);
}

// What cannot be captured is not written over; a file elsewhere blocks nothing; 3 lists it.
#[test]
fn an_unreadable_file_is_not_written_over() {
    let env = TestEnv::repo();
    env.write("b.txt", "b\n");
    bound(&env, "checkpoint create").expect(0);
    env.write("other", "o\n");
    env.sh("chmod 000 other b.txt; echo two > a.txt").expect(0);
    let made = bound(&env, "--json checkpoint create").expect(3).json();
    assert!(
        paths(&made["checkpoint"]["skipped"]).contains(&"other".to_owned()),
        "{made}"
    );
    let error = bound(&env, "--json rollback --to @1 --edits discard")
        .expect(13)
        .json()["error"]
        .clone();
    assert_eq!(paths(&error["paths"]), ["b.txt"]);
    assert_eq!(env.read("a.txt"), "two\n");
    env.sh("chmod 644 b.txt").expect(0);
    bound(&env, "--json rollback --to @1 --edits discard").expect(0);
    assert_eq!(env.read("a.txt"), "one\n");
    assert!(env.exists("other"));
}

// A read-only folder is its owner's to open; a state directory that cannot be written to can be read.
#[test]
fn a_read_only_folder_is_opened_for_a_restore() {
    let env = TestEnv::repo();
    env.write("ro/f", "f\n");
    bound(&env, "checkpoint create").expect(0);
    env.sh("echo g > ro/f; chmod 555 ro; echo two > a.txt")
        .expect(0);
    bound(&env, "rollback --to @1 --edits discard").expect(0);
    assert_eq!(
        (env.read("a.txt"), env.read("ro/f"), env.mode("ro")),
        ("one\n".into(), "f\n".into(), 0o755)
    );
    env.sh("chmod -R a-w .ultraplan").expect(0);
    bound(&env, "status").expect(0);
    bound(&env, "checkpoint list").expect(0);
    bound(&env, "checkpoint show @1").expect(0);
    env.sh("chmod -R u+w .ultraplan ro").expect(0);
}

// snapshot.md: under a live run's attempt nothing is put back (11, naming its pid).
#[test]
fn a_live_attempt_is_not_rolled_back_under() {
    let env = TestEnv::repo();
    let recover = env!("CARGO_BIN_EXE_recover");
    env.script(
        "agent.sh",
        &format!(
            "echo two > a.txt; {recover} rollback --to @1 2> said; echo $? > code; cat a.txt > a"
        ),
    );
    env.json(0, &["run", "--feedback", "test=true", "--", "./agent.sh"]);
    assert_eq!(
        (env.read("code"), env.read("a")),
        ("11\n".into(), "two\n".into())
    );
    assert!(env.read("said").contains("pid"), "{}", env.read("said"));
}

// cli.md: a folder that stays because something in it was not captured is kept, and not called deleted.
#[test]
fn a_folder_that_has_to_stay_is_not_called_deleted() {
    let env = TestEnv::repo();
    env.write(".gitignore", "*.o\n");
    checkpoint(&env);
    env.write("made/deep/file", "x\n");
    env.write("made/deep/build.o", "o\n");
    env.write("made/gone/file", "x\n");
    checkpoint(&env);
    let before = seen(env.work());
    let planned = env.json(0, &["--dry-run", "rollback", "--to", "@1"])["plan"].clone();
    let done = env.json(0, &["rollback", "--to", "@1"])["result"].clone();
    for result in [&planned, &done] {
        assert_eq!(
            paths(&result["deleted"]),
            ["made/deep/file", "made/gone", "made/gone/file"],
            "{result}"
        );
        assert_eq!(paths(&result["kept"]), ["made", "made/deep"], "{result}");
    }
    assert_eq!(env.read("made/deep/build.o"), "o\n");
    env.json(0, &["undo"]);
    assert_eq!(seen(env.work()), before);
}

// B15: what a person has to settle first is called a conflict; where nothing is left to go back to, the way is to start
// afresh.
#[test]
fn conflicts_and_missing_checkpoints_name_the_way_out() {
    let env = three_iterations();
    let refused =
        |args: &[&str]| env.error(13, &[&["rollback", "--to", "iteration:1"], args].concat());
    env.write("a.txt", "by hand\n");
    let error = refused(&[]);
    assert!(
        text(&error["message"])
            .starts_with("Rollback failed - conflicts: 1 file was edited by hand"),
        "{error}"
    );
    assert_eq!(error["code"], "hand_edits");
    env.git(&["checkout", "-q", "-b", "side"]);
    env.git(&["commit", "-qam", "side"]);
    env.git(&["checkout", "-q", "-"]);
    env.git(&["checkout", "-q", "main"]);
    env.write("a.txt", "mine\n");
    env.git(&["commit", "-qam", "mine"]);
    env.sh("git merge side").expect(1);
    let error = refused(&["--edits", "discard", "--commits", "keep"]);
    assert!(
        text(&error["message"]).starts_with("Rollback failed - conflicts: a merge is in progress"),
        "{error}"
    );
    assert_eq!(error["code"], "operation_in_progress");

    let env = three_iterations();
    let run = text(&env.json(0, &["status"])["run"]["run_id"]).clone();
    env.json(
        0,
        &[
            "checkpoint",
            "prune",
            "--keep-last",
            "0",
            "--drop-passed",
            "--drop-failed",
            "--run",
            &run,
            "--yes",
        ],
    );
    let error = env.error(4, &["rollback", "--iteration", "2"]);
    assert!(
        text(&error["message"]).starts_with("No checkpoint available"),
        "{error}"
    );
    assert!(text(&error["hint"]).contains("resume --restart"), "{error}");
}

// runs.md: a bare rollback after a night without a good checkpoint is about that night, not about an older one; what was made
// between the two stays. `--to good` passes it over. One note names the run.
#[test]
fn a_bare_rollback_is_about_the_last_night() {
    let env = TestEnv::repo();
    env.json(
        0,
        &["run", "--run", "monday", "--", "sh", "-c", "echo m > m.txt"],
    );
    env.write("own.txt", "a person's\n");
    let fails = [
        "run",
        "--run",
        "tuesday",
        "--attempts",
        "1",
        "--on-failure",
        "stop",
        "--feedback",
        "build=false",
    ];
    env.recover(&[&fails[..], &["--", "sh", "-c", "echo t > t.txt"]].concat())
        .expect(7);
    let good = env.json(0, &["rollback", "--to", "good", "--dry-run"]);
    assert_eq!(good["run"]["run_id"], "monday");
    let back = env.json(0, &["--rollback"]);
    assert_eq!(
        (&back["run"]["run_id"], &back["run"]["status"]),
        (&"tuesday".into(), &"paused".into()),
        "{back}"
    );
    assert_eq!(
        (
            env.exists("own.txt"),
            env.exists("m.txt"),
            env.exists("t.txt")
        ),
        (true, true, false)
    );
    let notes = back["warnings"].as_array().expect("notes");
    assert_eq!(
        notes
            .iter()
            .filter(|note| text(note).contains("using run"))
            .count(),
        1,
        "{notes:?}"
    );
    assert_eq!(
        env.json(0, &["status", "--run", "monday"])["run"]["status"],
        "complete"
    );
    // Checkpoints of a person's own are no night.
    env.json(0, &["undo"]);
    env.json(0, &["checkpoint", "create", "-m", "mine"]);
    assert_eq!(
        env.json(0, &["--rollback", "--dry-run"])["run"]["run_id"],
        "tuesday"
    );
}

// B10, B11: a plan says over which iterations it goes.
#[test]
fn a_plan_says_what_is_superseded() {
    let env = three_iterations();
    let plan = env.json(0, &["rollback", "--to", "iteration:1", "--dry-run"]);
    assert_eq!(plan["plan"]["superseded"], serde_json::json!([2, 3]));
    let told = env
        .recover(&["rollback", "--to", "iteration:1", "--dry-run"])
        .expect(0)
        .stdout;
    assert!(
        told.contains("iterations 2 to 3 would be rolled back; their history stays"),
        "{told}"
    );
    assert_eq!(
        env.json(0, &["rollback", "--iteration", "3"])["result"]["superseded"],
        serde_json::json!([3])
    );
    assert_eq!(
        env.json(0, &["undo"])["result"]["superseded"],
        serde_json::json!([])
    );
}
