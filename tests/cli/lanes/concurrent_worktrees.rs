//! Many processes in many linked worktrees at once (state.md, Concurrency): nothing is lost, nobody waits for ever.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::env::TestEnv;
use crate::seen::{assert_clean, text};

/// Worktrees beside the main one.
const WORKTREES: usize = 8;
/// Operations of each of the two processes in each worktree.
const ROUNDS: usize = 6;
/// Checkpoints in each of two worktrees while garbage is collected.
const CAPTURES: usize = 25;

fn worktrees(env: &TestEnv) -> Vec<PathBuf> {
    (0..WORKTREES)
        .map(|number| {
            let place = format!("../linked{number}");
            env.git(&[
                "worktree",
                "add",
                "-q",
                "-b",
                &format!("lane{number}"),
                &place,
            ]);
            env.root().join(format!("linked{number}"))
        })
        .collect()
}

/// Runs a command in a worktree: its exit code and its document.
fn at(env: &TestEnv, place: &PathBuf, args: &[&str]) -> (i32, Value) {
    let mut command = env.recover_command(&["--json", "--lock-timeout", "120s"]);
    let output = command
        .current_dir(place)
        .args(args)
        .output()
        .expect("recover starts");
    let text = String::from_utf8_lossy(&output.stderr);
    let document =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"));
    (output.status.code().expect("a code"), document)
}

/// Every checkpoint is there once, with a number of its own, none missing in between, and sound.
fn assert_complete(env: &TestEnv, made: &BTreeSet<String>) {
    let list = env.json(0, &["checkpoint", "list", "--all-runs"])["checkpoints"].clone();
    let list = list.as_array().expect("a list");
    let numbers: Vec<u64> = list
        .iter()
        .map(|one| one["seq"].as_u64().expect("a number"))
        .collect();
    let all = u64::try_from(numbers.len()).expect("few");
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        (1..=all).collect::<Vec<_>>(),
        "numbers without gaps"
    );
    let ids: BTreeSet<String> = list.iter().map(|one| text(&one["id"])).collect();
    assert_eq!(ids.len(), list.len(), "no id twice");
    assert!(
        made.is_subset(&ids),
        "lost: {:?}",
        made.difference(&ids).collect::<Vec<_>>()
    );
    assert_eq!(
        env.git(&["for-each-ref", "refs/recover"]).lines().count(),
        list.len()
    );
    assert_eq!(
        env.json(0, &["checkpoint", "verify"])["checked"],
        list.len()
    );
    assert_clean(env);
}

// Two processes in each of eight worktrees capture, roll back and undo; at the end each worktree still goes back to its
// own first checkpoint, and the ledger has all.
#[test]
fn eight_worktrees_capture_and_roll_back_at_once() {
    let env = TestEnv::repo();
    let places = worktrees(&env);
    let first: Vec<String> = places
        .iter()
        .map(|place| text(&at(&env, place, &["checkpoint", "create"]).1["checkpoint"]["id"]))
        .collect();
    let made: BTreeSet<String> = std::thread::scope(|scope| {
        let work = |number: usize, process: usize| {
            let (env, place, first) = (&env, &places[number], &first[number]);
            move || {
                let mut made = BTreeSet::new();
                for round in 0..ROUNDS {
                    // Each process has files of its own, so that what it wrote can be told apart.
                    let name = format!("p{process}-{round}");
                    std::fs::write(place.join(&name), format!("{number} {name}\n")).unwrap();
                    let args: &[&str] = match (round + process) % 3 {
                        0 => &["rollback", "--to", first, "--edits", "discard"],
                        1 => &["checkpoint", "create"],
                        _ => &["undo", "--edits", "discard"],
                    };
                    let (code, document) = at(env, place, args);
                    // A file that the other process writes in the middle stops a restore before it begins (13), or once it
                    // has, and then stays as it was written (3); nothing to undo is 4.
                    let fits = match code {
                        0 => true,
                        3 => document["error"]["paths"].as_array().is_some_and(|paths| {
                            !paths.is_empty()
                                && paths
                                    .iter()
                                    .all(|one| one["reason"] == "changed while it was restored")
                        }),
                        13 => args[0] != "checkpoint",
                        code => args[0] == "undo" && code == 4,
                    };
                    assert!(fits, "{args:?} in {number}: {code} {document}");
                    if args[0] == "checkpoint" {
                        made.insert(text(&document["checkpoint"]["id"]));
                    }
                    if let Some(safety) = document["result"]["safety_checkpoint_id"].as_str() {
                        made.insert(safety.to_owned());
                    }
                }
                made
            }
        };
        let all: Vec<_> = (0..WORKTREES)
            .flat_map(|number| [(number, 0), (number, 1)])
            .map(|(number, process)| scope.spawn(work(number, process)))
            .collect();
        all.into_iter()
            .flat_map(|thread| thread.join().expect("it ends well"))
            .collect()
    });
    assert!(made.len() > WORKTREES * 2, "{}", made.len());
    assert_complete(&env, &made);
    for (place, first) in places.iter().zip(&first) {
        let (code, document) = at(
            &env,
            place,
            &["rollback", "--to", first, "--edits", "discard"],
        );
        assert_eq!(code, 0, "{document}");
        let left = env.git(&["-C", &place.to_string_lossy(), "status", "--porcelain"]);
        assert_eq!(left, "", "{}", place.display());
    }
}

/// Captures in two worktrees while a shell runs `collect` again and again: each one is made, and sound at the end.
fn capture_beside(collect: &str) {
    let env = TestEnv::repo();
    let places = worktrees(&env);
    let made: BTreeSet<String> = beside(&env, collect, || {
        std::thread::scope(|scope| {
            let captures: Vec<_> = places[..2]
                .iter()
                .map(|place| scope.spawn(|| capture_often(&env, place)))
                .collect();
            captures
                .into_iter()
                .flat_map(|thread| thread.join().expect("it ends well"))
                .collect()
        })
    });
    assert_eq!(made.len(), 2 * CAPTURES);
    assert_eq!(
        env.sh("ls .git/objects/pack | grep keep").stdout,
        "",
        "nothing is kept any more"
    );
    assert_eq!(env.git(&["fsck", "--strict", "--no-dangling"]), "");
    assert_complete(&env, &made);
    env.git(&["gc", "-q", "--prune=now"]);
    assert_complete(&env, &made);
}

/// Does `work` while a shell runs `collect` again and again.
fn beside<T>(env: &TestEnv, collect: &str, work: impl FnOnce() -> T) -> T {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let collecting = scope.spawn(|| {
            let mut times = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                // References that others write meanwhile may hold one collection up, not break anything.
                env.sh(collect);
                times += 1;
            }
            times
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(collecting.join().expect("it ends") > 1);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn capture_often(env: &TestEnv, place: &PathBuf) -> BTreeSet<String> {
    let name = place.to_string_lossy().into_owned();
    let capture = |round| {
        std::fs::write(place.join("file"), format!("{name} {round}\n")).expect("written");
        if round % 2 == 0 {
            // An object that is there already, and that nothing refers to. git fails where its folder is removed meanwhile.
            env.sh(&format!("git -C '{name}' hash-object -w file"));
        }
        let (code, document) = at(env, place, &["checkpoint", "create"]);
        assert_eq!(code, 0, "{round}: {document}");
        text(&document["checkpoint"]["id"])
    };
    (0..CAPTURES).map(capture).collect()
}

// `git gc --prune=now` drops what nothing refers to: a checkpoint whose objects were just written must not be among it.
#[test]
fn garbage_collection_meanwhile_loses_no_checkpoint() {
    capture_beside("git gc -q --prune=now");
}

// The same with what a collection consists of, by programs that do not say that they are under way.
#[test]
fn repacking_meanwhile_loses_no_checkpoint() {
    capture_beside("git repack -adq; git prune-packed; git pack-refs --all");
}

// A pack that is open is gone a moment later, and what was in it is in another one.
#[test]
fn repacking_meanwhile_stops_no_rollback() {
    let env = TestEnv::repo();
    let place = env.root().join("linked0");
    worktrees(&env);
    let ids: Vec<String> = (0..4)
        .map(|round| {
            for file in 0..20 {
                std::fs::write(
                    place.join(format!("file{file}")),
                    format!("{round} {file}\n"),
                )
                .unwrap();
            }
            text(&at(&env, &place, &["checkpoint", "create"]).1["checkpoint"]["id"])
        })
        .collect();
    beside(&env, "git repack -adq; git prune-packed -q", || {
        for round in 0..CAPTURES / 2 {
            let number = round % ids.len();
            let (code, document) = at(
                &env,
                &place,
                &["rollback", "--to", &ids[number], "--edits", "discard"],
            );
            assert_eq!(code, 0, "{round}: {document}");
            assert_eq!(
                std::fs::read_to_string(place.join("file7")).unwrap(),
                format!("{number} 7\n")
            );
            let (code, document) = at(&env, &place, &["checkpoint", "verify"]);
            assert_eq!(code, 0, "{round}: {document}");
        }
    });
    assert_complete(&env, &ids.into_iter().collect());
}

// A checkpoint of a run that works elsewhere holds the files here: it is taken, and whoever asked is told.
#[test]
fn a_checkpoint_in_another_work_tree_than_the_runs_is_told_of() {
    let env = TestEnv::repo();
    env.recover(&["run", "--run", "r", "--", "true"]).expect(0);
    env.git(&["worktree", "add", "-q", "-b", "other", "../other"]);
    let taken = |place: &str, args: &[&str]| {
        let ran = env
            .recover(&[&["-C", place, "checkpoint", "create", "--run", "r"], args].concat())
            .expect(0);
        ran.stderr.contains("run r works in ")
    };
    assert!(!taken(".", &[]));
    assert!(taken("../other", &[]));
    // A lane goes on in a work tree of its own.
    assert!(!taken(
        "../other",
        &["--lane", "a", "--stage", "after_lane_start"]
    ));
}

// git knows a linked work tree at one place. A copy of its folder leads to the same index and the same HEAD: whatever was
// done there would be done to the other one.
#[test]
fn a_copied_or_moved_linked_work_tree_is_refused() {
    let env = TestEnv::repo();
    env.git(&["worktree", "add", "-q", "-b", "lane", "../lane"]);
    env.sh("echo one > ../lane/l.txt").expect(0);
    env.recover(&["-C", "../lane", "checkpoint", "create", "--run", "r"])
        .expect(0);
    env.sh("echo two > ../lane/l.txt && cp -r ../lane ../copy && mkdir ../copy/below")
        .expect(0);
    for place in ["../copy", "../copy/below"] {
        for args in [
            &[
                "rollback", "--run", "r", "--to", "initial", "--edits", "discard",
            ][..],
            &["status"],
            &["step", "s", "--atomic", "--", "false"],
            &["run", "--", "sh", "-c", "echo agent > l.txt"],
        ] {
            let refused = env.json(13, &[&["-C", place], args].concat());
            assert!(
                text(&refused["error"]["message"]).contains("this is a copy of it"),
                "{refused}"
            );
        }
    }
    env.sh("test $(cat ../lane/l.txt) = two && test $(cat ../copy/l.txt) = two")
        .expect(0);
    env.sh("rm -r ../copy && mv ../lane ../moved").expect(0);
    let refused = env.json(13, &["-C", "../moved", "status"]);
    assert!(
        text(&refused["error"]["message"]).contains("from where this was moved"),
        "{refused}"
    );
    env.sh(&text(&refused["error"]["hint"])).expect(0);
    env.recover(&["-C", "../moved", "checkpoint", "create", "--run", "s"])
        .expect(0);
}
