//! Signals in the middle of a restore: it is taken back or finished, and that is said.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::env::{Ran, TestEnv};
use crate::run::supervision::{ignores_hangups, kill};
use crate::seen::{Seen, assert_clean, checkpoint, seen};

const FILES: usize = 3000;

/// A work tree in which a rollback to `@1` writes, deletes and makes several thousand files; it before and after that.
fn many(git: bool) -> (TestEnv, Seen, Seen) {
    let env = if git {
        TestEnv::repo()
    } else {
        TestEnv::plain()
    };
    let fill = |name: &str, content: &str| {
        for number in 0..FILES / 2 {
            env.write(
                &format!("{name}{}/{number}", number % 40),
                format!("{content} {number}\n"),
            );
        }
    };
    fill("both", "one");
    fill("old", "old");
    checkpoint(&env);
    let target = seen(env.work());
    env.sh("rm -r old*").expect(0);
    fill("both", "two");
    fill("new", "new");
    let before = seen(env.work());
    (env, before, target)
}

fn start(env: &TestEnv, args: &[&str]) -> Child {
    env.recover_command(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("recover starts")
}

/// Waits until a restore has begun to write.
fn await_journal(env: &TestEnv, journal: &str) {
    let begun = Instant::now();
    while !env.exists(journal) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it begins");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const JOURNAL: &str = ".git/recover/journal.json";

/// One of the two states, nothing left over, and one line that says which; returns whether it was finished.
fn settled(
    env: &TestEnv,
    child: Child,
    code: i32,
    (before, target): (&Seen, &Seen),
    journal: &str,
) -> bool {
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.signal(), None, "it ends by itself");
    let ran = Ran::of(&output).expect(code);
    assert!(!env.exists(journal), "{ran:?}");
    let now = seen(env.work());
    let (back, finished) = (
        ran.stderr.contains("reverted"),
        ran.stderr.contains("was finished"),
    );
    let untouched = ran.stderr.contains("nothing was written");
    assert_eq!(
        usize::from(back) + usize::from(finished) + usize::from(untouched),
        1,
        "{ran:?}"
    );
    assert!(
        if finished {
            now == *target
        } else {
            now == *before
        },
        "as it says: {ran:?}"
    );
    let left = env
        .sh("find . -name '.recover-tmp-*' -o -name 'holds-*'")
        .stdout;
    assert_eq!(left, "", "{ran:?}");
    finished
}

#[test]
fn a_signal_in_a_rollback_takes_it_back_or_finishes_it() {
    let (env, before, target) = many(true);
    let mut taken_back = 0;
    let moments = [
        ("-INT", 130, 0),
        ("-TERM", 143, 20),
        ("-HUP", 129, 60),
        ("-INT", 130, 120),
        ("-TERM", 143, 250),
    ];
    for (signal, code, delay) in moments {
        if signal == "-HUP" && ignores_hangups() {
            println!("skipped: SIGHUP is ignored here");
            continue;
        }
        let child = start(&env, &["rollback", "--to", "@1", "--edits", "discard"]);
        await_journal(&env, JOURNAL);
        std::thread::sleep(Duration::from_millis(delay));
        kill(signal, child.id());
        if !env.exists(JOURNAL) {
            // It was over before the signal came.
            child.wait_with_output().expect("it ends");
            assert_eq!(seen(env.work()), target);
            env.json(0, &["undo"]);
            continue;
        }
        if settled(&env, child, code, (&before, &target), JOURNAL) {
            env.json(0, &["undo"]);
        } else {
            taken_back += 1;
        }
        assert_eq!(seen(env.work()), before);
        assert_eq!(
            env.json(0, &["status"])["unfinished_operation"],
            serde_json::Value::Null
        );
    }
    assert!(taken_back > 0, "the first comes early enough");
    assert_clean(&env);
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(seen(env.work()), target);
}

// Whoever presses Ctrl-C again and again gets no other end.
#[test]
fn more_signals_do_not_break_what_the_first_began() {
    for git in [true, false] {
        let journal = if git {
            JOURNAL
        } else {
            ".ultraplan/state/recover/shadow.git/recover/journal.json"
        };
        let (env, before, target) = many(git);
        let child = start(&env, &["rollback", "--to", "@1", "--edits", "discard"]);
        await_journal(&env, journal);
        let pid = child.id();
        for signal in ["-INT", "-INT", "-TERM", "-INT", "-HUP", "-INT", "-INT"] {
            if env.exists(journal) {
                kill(signal, pid);
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        if settled(&env, child, 130, (&before, &target), journal) {
            env.json(0, &["undo"]);
        }
        assert_eq!(seen(env.work()), before);
        // Undo, redo and restore are the same.
        env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
        let child = start(&env, &["undo"]);
        await_journal(&env, journal);
        kill("-TERM", child.id());
        if settled(&env, child, 143, (&target, &before), journal) {
            env.json(0, &["redo"]);
        }
        assert_eq!(seen(env.work()), target);
    }
}

// A rollback inside a run is finished; then the run ends as interrupted.
#[test]
fn a_signal_in_the_rollback_of_a_run_ends_the_run_with_a_whole_tree() {
    let (env, before, _) = many(true);
    let work =
        "for d in both*; do for f in $d/*; do echo broken > $f; done; done; rm -r new*; exit 1";
    let child = start(
        &env,
        &[
            "run",
            "--run",
            "r",
            "--attempts",
            "3",
            "--on-failure",
            "rollback",
            "--",
            "sh",
            "-c",
            work,
        ],
    );
    await_journal(&env, JOURNAL);
    kill("-INT", child.id());
    let ran = Ran::of(&child.wait_with_output().expect("it ends")).expect(130);
    assert!(!env.exists(JOURNAL), "{ran:?}");
    assert_eq!(seen(env.work()), before, "{ran:?}");
    assert!(ran.stderr.contains("was finished"), "{ran:?}");
}
