//! Kills a capture and a restore of the `git` layer at every call that changes something; the next one must recover.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use recover::testing::git::StoredCheckpoint;
use recover::testing::git::{Expect, RestoreJournal};
use recover::testing::model::ObjectId;
use recover::testing::policy::Selection;

use crate::bench::Bench;

/// What changes something in a capture.
const CAPTURE_CALLS: [&str; 5] = ["write", "fsync", "rename", "unlink", "mkdir"];
/// What changes the work tree in a restore.
const RESTORE_CALLS: [&str; 8] = [
    "write",
    "fsync",
    "rename",
    "renameat2",
    "renameat",
    "unlinkat",
    "mkdirat",
    "fchmod",
];

/// Runs one of the `child_…` tests below in a process of its own. Returns whether it came to its end before the kill.
fn child(name: &str, bench: &Bench, target: &str, call: &str, kill_at: u32) -> bool {
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        &format!("trace={call}"),
    ]);
    command.args([
        "-e",
        &format!("inject={call}:signal=SIGKILL:when={kill_at}"),
    ]);
    command.arg(std::env::current_exe().unwrap()).args([
        "--exact",
        name,
        "--ignored",
        "--test-threads=1",
    ]);
    command
        .env("RECOVER_TEST_ROOT", &bench.root)
        .env("RECOVER_TEST_TARGET", target);
    command.output().unwrap().status.success()
}

fn has_strace() -> bool {
    let found = Command::new("strace")
        .arg("-qq")
        .arg("true")
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: strace is not there or may not trace");
    }
    found
}

fn from_parent() -> (Bench, ObjectId) {
    let root = PathBuf::from(std::env::var_os("RECOVER_TEST_ROOT").unwrap());
    (
        Bench::at(root),
        ObjectId(std::env::var("RECOVER_TEST_TARGET").unwrap()),
    )
}

#[test]
#[ignore = "run by a_killed_capture_leaves_nothing_half"]
fn child_capture() {
    from_parent().0.checkpoint();
}

#[test]
#[ignore = "run by a_killed_restore_is_finished_or_reverted"]
fn child_restore() {
    let (bench, target) = from_parent();
    let repo = bench.repo();
    let stored = repo.load_checkpoint(&target).unwrap();
    bench
        .restore_with(&stored, &Selection::all(), &mut |plan, lock| {
            let journal = RestoreJournal {
                version: RestoreJournal::VERSION,
                operation_id: "op".into(),
                kind: "rollback".into(),
                safety_commit: target.clone(),
                target_commit: target.clone(),
                selection: vec![],
                plan: plan.clone(),
                kept: vec![],
                head_before: repo.head().unwrap(),
                head_after: None,
                restore_index: false,
                index_paths: Vec::new(),
                context: serde_json::Value::Null,
            };
            repo.write_restore_journal(lock, &journal).unwrap();
        })
        .unwrap();
    repo.remove_restore_journal(&Bench::lock(&repo)).unwrap();
}

fn no_temp_files(bench: &Bench) {
    let files = bench.git(&["ls-files", "-o", "-c"]);
    assert!(!files.contains(".recover-tmp"), "{files}");
}

#[test]
fn a_killed_capture_leaves_nothing_half() {
    if !has_strace() {
        return;
    }
    let bench = Bench::with_commit();
    let repo = bench.repo();
    for call in CAPTURE_CALLS {
        for kill_at in (1..).step_by(3) {
            bench.write("file", format!("{call} {kill_at}"));
            bench.write(format!("new/{call}"), format!("{kill_at}"));
            let ended = child("faults::child_capture", &bench, "", call, kill_at);
            let (refs, broken) = repo.list_refs().unwrap();
            assert!(broken.is_empty(), "{broken:?}");
            for found in &refs {
                assert_eq!(
                    repo.load_checkpoint(&found.commit)
                        .unwrap()
                        .verify(&repo)
                        .unwrap(),
                    [] as [String; 0]
                );
            }
            if ended {
                break;
            }
        }
    }
    bench.checkpoint();
    bench.fsck();
}

/// Settles what a restore left, and says which of the two states that must give; `None` if either is right.
fn settle<'s>(
    bench: &Bench,
    finish: bool,
    then: &'s StoredCheckpoint,
    now: &'s StoredCheckpoint,
) -> Option<&'s StoredCheckpoint> {
    let repo = bench.repo();
    let lock = Bench::lock(&repo);
    let journal = repo.restore_journal().unwrap()?;
    repo.reap_temp_files(&lock, &journal.plan).unwrap();
    let plan = if finish {
        journal.plan
    } else {
        journal.plan.invert()
    };
    let done = repo
        .execute_restore(&lock, &plan, Expect::CutOff, &|| false)
        .unwrap();
    assert!(done.kept.is_empty(), "{:?}", done.kept);
    repo.remove_restore_journal(&lock).unwrap();
    Some(if finish { then } else { now })
}

#[test]
fn a_killed_restore_is_finished_or_reverted() {
    if !has_strace() {
        return;
    }
    let bench = Bench::with_commit();
    bench.write("a", "1");
    bench.write("kind", "a file");
    bench.write("gone/deep/file", "x");
    symlink("a", bench.path("link")).unwrap();
    let then = bench.checkpoint();
    bench.write("a", "2");
    bench.chmod("a", 0o600);
    fs::remove_file(bench.path("kind")).unwrap();
    bench.write("kind/inside", "a folder");
    fs::remove_dir_all(bench.path("gone")).unwrap();
    fs::remove_file(bench.path("link")).unwrap();
    bench.write("new/file", "x");
    let now = bench.checkpoint();
    let mut cut_off = 0;
    for call in RESTORE_CALLS {
        for kill_at in 1.. {
            let ended = child(
                "faults::child_restore",
                &bench,
                &then.commit.0,
                call,
                kill_at,
            );
            let expected = settle(&bench, kill_at % 2 == 0, &then, &now);
            let captured = bench.capture();
            let is = |stored: &StoredCheckpoint| captured.same_as(stored, &[]).unwrap();
            let settled = match expected {
                Some(expected) => is(expected),
                None if ended => is(&then),
                // It had not begun, or was done but for the removal of the journal's name.
                None => is(&now) || is(&then),
            };
            assert!(
                settled,
                "killed at {call} {kill_at}: {:?}",
                captured.snapshot()
            );
            drop(captured);
            no_temp_files(&bench);
            if ended {
                break;
            }
            cut_off += u32::from(expected.is_some());
            bench.restore(&now).unwrap();
        }
        bench.restore(&now).unwrap();
    }
    assert!(cut_off > 10, "{cut_off}");
    bench.fsck();
}
