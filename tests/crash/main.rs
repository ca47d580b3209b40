//! The real program is killed, or refused by the system, at each call that changes anything: afterwards either the state
//! before or the target is there byte for byte, the next commands work, and nothing is left over (promise 3).
//!
//! `strace` injects the faults. A run of a few dozen points, spread over all, is the default; `RECOVER_CRASH_ALL=1`
//! sweeps every one.

#[path = "../cli/env.rs"]
mod env;
#[path = "../cli/seen.rs"]
#[allow(dead_code)]
mod seen;

use std::collections::BTreeSet;
use std::path::Path;

use env::TestEnv;
use seen::{Seen, assert_clean, checkpoint, seen};

/// Calls that change something on disk.
const CALLS: [&str; 22] = [
    "write",
    "pwrite64",
    "writev",
    "fsync",
    "fdatasync",
    "syncfs",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "link",
    "linkat",
    "symlinkat",
    "ftruncate",
    "fchmod",
    "fchmodat",
    "openat",
    "copy_file_range",
];

/// How many points of each command the default run takes.
const SAMPLE: usize = 9;

/// What is done to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Error(&'static str),
}

/// A command that is cut off, and what it starts from.
struct Case {
    args: &'static [&'static str],
    git: bool,
    before: fn(&TestEnv),
}

fn strace_is_there() -> bool {
    if TestEnv::plain().sh("command -v strace").code == 0 {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "strace is missing: nothing can be proven here");
    eprintln!("skipped: strace is missing");
    false
}

/// Two checkpoints with files, modes, links and folders that differ, and a working memory.
fn start(git: bool) -> TestEnv {
    let env = if git { TestEnv::repo() } else { TestEnv::plain() };
    env.write("a.txt", "one\n");
    env.write("stays.txt", "same\n");
    env.write("old/deep/file", "old\n");
    env.write(".ultraplan/state/plan.json", "1");
    env.sh("ln -s a.txt link; mkdir empty; chmod 640 a.txt").expect(0);
    checkpoint(&env);
    env.sh("rm -r old empty link; mkdir link; echo l > link/l; chmod 600 stays.txt").expect(0);
    env.write("a.txt", "two\n");
    env.write("new/file", "new\n");
    env.write(".ultraplan/state/plan.json", "2");
    env.write(".ultraplan/state/sub/other.json", "2");
    if git {
        env.sh("git add -A").expect(0);
    }
    checkpoint(&env);
    env
}

/// Everything that a restore may change: the work tree, the working memory, HEAD and the index.
fn everything(env: &TestEnv) -> (Seen, Seen, String) {
    let own = ["events.jsonl", "recovery.json", "attempt_history.json", "recover", ".gitignore"];
    let mut memory = seen(&env.work().join(".ultraplan/state"));
    memory.retain(|path, _| {
        let path = String::from_utf8_lossy(path).into_owned();
        !own.iter().any(|own| Path::new(&path).starts_with(own)) && !path.starts_with(".recover-tmp")
    });
    let git = if env.exists(".git") {
        env.sh("git rev-parse HEAD; git ls-files -s -u; git ls-files -s").stdout
    } else {
        String::new()
    };
    (seen(env.work()), memory, git)
}

/// The calls of one undisturbed execution, as `(call, how often)`.
fn count(case: &Case) -> Vec<(&'static str, usize)> {
    let env = start(case.git);
    (case.before)(&env);
    let log = env.root().join("calls");
    let recover = env!("CARGO_BIN_EXE_recover");
    let line = format!("strace -f -o {} -e trace={} {recover} {}", log.display(), CALLS.join(","), case.args.join(" "));
    env.sh(&line).expect(0);
    let text = std::fs::read_to_string(log).expect("a log");
    let of = |call: &'static str| {
        let begins = format!(" {call}(");
        (call, text.lines().filter(|line| line.contains(&begins)).count())
    };
    CALLS.into_iter().map(of).filter(|(_, times)| *times > 0).collect()
}

/// Executes the command with a fault at the given occurrence of a call, and returns how it ended.
fn disturbed(env: &TestEnv, case: &Case, call: &str, when: usize, fault: Fault) -> env::Ran {
    let injected = match fault {
        Fault::Kill => "signal=SIGKILL".to_owned(),
        // A full disk stays full for a while.
        Fault::Error(errno) => format!("error={errno}"),
    };
    let more = if fault == Fault::Kill { "" } else { "+" };
    let recover = env!("CARGO_BIN_EXE_recover");
    env.sh(&format!(
        "exec strace -f -o /dev/null -e trace={call} -e inject={call}:{injected}:when={when}{more} {recover} {}",
        case.args.join(" ")
    ))
}

/// All points, or some spread over all of them.
fn points(calls: &[(&'static str, usize)], keep: impl Fn(&str) -> bool) -> Vec<(&'static str, usize)> {
    let all: Vec<_> = calls
        .iter()
        .filter(|(call, _)| keep(call))
        .flat_map(|(call, times)| (1..=*times).map(|when| (*call, when)))
        .collect();
    if std::env::var_os("RECOVER_CRASH_ALL").is_some() {
        return all;
    }
    let step = all.len().div_ceil(SAMPLE).max(1);
    all.into_iter().step_by(step).collect()
}

/// Kills the command at each point. `after` is what it leads to when nothing disturbs it.
fn sweep_kills(name: &str, case: &Case) {
    if !strace_is_there() {
        return;
    }
    let undisturbed = start(case.git);
    (case.before)(&undisturbed);
    undisturbed.recover(case.args).expect(0);
    let (after, ..) = everything(&undisturbed);
    let points = points(&count(case), |call| call != "openat");
    for (call, when) in &points {
        let env = start(case.git);
        (case.before)(&env);
        let before = everything(&env);
        let at = format!("{name} killed at {call} {when}");
        disturbed(&env, case, call, *when, Fault::Kill);
        // Reading works at once, and does not change anything.
        let between = everything(&env);
        let status = env.json(0, &["status"]);
        env.json(0, &["checkpoint", "list", "--all-runs"]);
        assert_eq!(everything(&env), between, "{at}");
        // The next command that writes settles it, one way or the other.
        let kept = env.json(0, &["checkpoint", "create"]);
        let now = everything(&env);
        assert!(now == before || now.0 == after, "{at}: neither before nor after\n{status}\n{kept}");
        assert_nothing_left(&env, &at);
        let report = env.json(0, &["checkpoint", "verify"]);
        let ids: BTreeSet<String> = listed(&env);
        assert_eq!(report["checked"], ids.len(), "{at}: a checkpoint is listed twice");
        if case.args.contains(&"prune") {
            env.json(0, case.args);
            let references = env.git(&["for-each-ref", "refs/recover"]).lines().count();
            assert_eq!(references, listed(&env).len(), "{at}");
            env.git(&["pack-refs", "--all"]);
        }
        // What was asked for is still possible, and can be taken back.
        if case.args[0] == "rollback" {
            env.json(0, case.args);
            assert_eq!(everything(&env).0, after, "{at}");
            env.json(0, &["undo"]);
            assert_eq!(everything(&env), before, "{at}: undone");
            assert_nothing_left(&env, &at);
        }
    }
    eprintln!("{name}: {} points", points.len());
}

fn listed(env: &TestEnv) -> BTreeSet<String> {
    let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
    list["checkpoints"].as_array().expect("a list").iter().map(|one| seen::text(&one["id"])).collect()
}

#[track_caller]
fn assert_nothing_left(env: &TestEnv, at: &str) {
    eprintln!("{at}");
    if env.exists(".git") {
        assert_clean(env);
    } else {
        env.sh("git --git-dir=.ultraplan/state/recover/shadow.git fsck --strict --no-dangling").expect(0);
    }
    let left = env.sh(
        "find . -name '.recover-tmp-*' -o -name '*.tmp' -o -name 'tmp_obj*' -o -name journal.json -o -name 'holds-*' \
         -o -path '*/quarantine/objects/??'",
    );
    assert_eq!(left.stdout, "", "{at}");
}

/// Refuses each call with an error, from that one on: the command fails with the right code and changes nothing.
fn sweep_errors(name: &str, case: &Case, errno: &'static str, code: i32) {
    if !strace_is_there() {
        return;
    }
    // A full disk does not hinder removing; cutting a file down and permissions take no space.
    let takes_space = |call: &str| {
        matches!(
            call,
            "write"
                | "pwrite64"
                | "writev"
                | "fsync"
                | "fdatasync"
                | "mkdir"
                | "mkdirat"
                | "linkat"
                | "link"
                | "symlinkat"
        )
    };
    let points = points(&count(case), takes_space);
    let mut failed = 0;
    let restores = case.args[0] != "checkpoint";
    for (call, when) in &points {
        let env = start(case.git);
        (case.before)(&env);
        let before = everything(&env);
        let at = format!("{name}: {errno} at {call} {when}");
        let ran = disturbed(&env, case, call, *when, Fault::Error(errno));
        // Where only a cache or the answer itself could not be written, the work is done.
        if ran.code == 0 {
            if restores {
                env.json(0, &["undo"]);
            }
        } else {
            assert!(restores || everything(&env) == before, "{at}: {ran:?}");
            failed += 1;
            assert!([code, 1, 11, 14, 16].contains(&ran.code), "{at}: {ran:?}");
        }
        env.json(0, &["checkpoint", "create"]);
        if everything(&env) != before && restores {
            // A view, or the answer, was all that could not be written.
            env.json(0, &["undo"]);
        }
        assert_eq!(everything(&env), before, "{at}: {ran:?}");
        assert_nothing_left(&env, &at);
    }
    eprintln!("{name}, {errno}: {} points, {failed} of them failed", points.len());
}

const CREATE: Case = Case {
    args: &["checkpoint", "create"],
    git: true,
    before: |env| {
        env.write("a.txt", "three\n");
        env.write("more/b", "b\n");
    },
};
/// Moves the branch and puts the index back as well.
const ROLLBACK: Case = Case {
    args: &["rollback", "--to", "@1", "--restore-index", "--commits", "drop"],
    git: true,
    before: |env| {
        env.git(&["commit", "-qm", "more"]);
    },
};
const ROLLBACK_PLAIN: Case = Case { args: &["rollback", "--to", "@1"], git: false, before: |_| {} };
const UNDO: Case = Case {
    args: &["undo"],
    git: true,
    before: |env| {
        env.git(&["commit", "-qm", "more"]);
        env.json(0, &["rollback", "--to", "@1", "--restore-index", "--commits", "drop"]);
    },
};

/// Some of what is removed is packed.
const PRUNE: Case = Case {
    args: &["--yes", "checkpoint", "prune", "--keep-last", "1"],
    git: true,
    before: |env| {
        for content in ["4", "5", "6"] {
            env.write("a.txt", content);
            checkpoint(env);
        }
        env.git(&["pack-refs", "--all"]);
    },
};

// faults.md: … in prune: what is protected survives, and git itself can go on.
#[test]
fn a_prune_that_is_killed() {
    sweep_kills("prune", &PRUNE);
}

// faults.md: SIGKILL at each write, fsync, rename, unlink of a capture.
#[test]
fn a_capture_that_is_killed() {
    sweep_kills("checkpoint create", &CREATE);
}

// faults.md: … at each restored file.
#[test]
fn a_rollback_that_is_killed() {
    sweep_kills("rollback", &ROLLBACK);
}

// The same without git.
#[test]
fn a_rollback_without_git_that_is_killed() {
    sweep_kills("rollback without git", &ROLLBACK_PLAIN);
}

// faults.md: … in undo.
#[test]
fn an_undo_that_is_killed() {
    sweep_kills("undo", &UNDO);
}

// faults.md: no space in a restore: reverted, or finished where only the answer could not be given.
#[test]
fn a_full_disk() {
    sweep_errors("rollback", &ROLLBACK, "ENOSPC", 14);
}

// faults.md: ENOSPC in a capture: 14, the tree untouched, temp files gone.
#[test]
fn a_full_disk_under_a_capture() {
    sweep_errors("checkpoint create", &CREATE, "ENOSPC", 14);
}

// faults.md: EIO is a failure, never a later success.
#[test]
fn a_failing_disk() {
    sweep_errors("rollback", &ROLLBACK, "EIO", 1);
}
