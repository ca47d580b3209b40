//! The ledger, where it is repaired from its second copy, compacted or rebuilt, and cut off in the middle.
//!
//! No attempt and no checkpoint that was recorded is ever forgotten, whatever cuts it off.

use std::collections::BTreeSet;

use super::env::{Ran, TestEnv};
use super::seen::{checkpoint, text};
use super::{
    COMPACT, Case, Fault, MANY, Sweep, assert_nothing_left, everything, listed, refused, start,
};

const LEDGER: &str = ".ultraplan/state/events.jsonl";
/// What the ledger held before it was damaged, outside the work tree.
const WHOLE: &str = "../whole.jsonl";

/// The last of three attempts of a run ends.
const FAIL: [&str; 7] = [
    "attempt",
    "fail",
    "--run",
    "r",
    "--exit-code",
    "3",
    "--message=boom",
];

/// A way to damage the ledger's own file, and the command that comes next.
struct Damage {
    name: &'static str,
    case: Case,
}

const fn damage(name: &'static str, git: bool, before: fn(&TestEnv)) -> Damage {
    Damage {
        name,
        case: Case {
            args: &FAIL,
            git,
            before,
        },
    }
}

/// Set back comes first: what git does to a tracked file.
const DAMAGES: [Damage; 6] = [
    damage("set back", true, |env| {
        damaged(
            env,
            "head -n 6 ../whole.jsonl > .ultraplan/state/events.jsonl",
        );
    }),
    damage("damaged", true, |env| {
        damaged(
            env,
            "printf X | dd of=.ultraplan/state/events.jsonl bs=1 seek=2000 conv=notrunc 2>/dev/null",
        );
    }),
    damage("cut off", true, |env| {
        damaged(env, "truncate -s 2000 .ultraplan/state/events.jsonl");
    }),
    damage("emptied", true, |env| {
        damaged(env, ": > .ultraplan/state/events.jsonl");
    }),
    damage("removed", true, |env| {
        damaged(env, "rm .ultraplan/state/events.jsonl");
    }),
    damage("removed, no git", false, |env| {
        damaged(env, "rm .ultraplan/state/events.jsonl");
    }),
];

/// A run with a failed attempt and one under way, both of which a checkpoint knows.
fn attempts(env: &TestEnv) {
    env.json(0, &["attempt", "start", "--run", "r"]);
    env.recover(&FAIL).expect(0);
    env.json(0, &["attempt", "start", "--run", "r"]);
    checkpoint_of_run(env);
    env.sh(&format!("cp {LEDGER} {WHOLE}")).expect(0);
}

fn checkpoint_of_run(env: &TestEnv) -> String {
    text(&env.json(0, &["checkpoint", "create", "--run", "r"])["checkpoint"]["id"])
}

fn damaged(env: &TestEnv, line: &str) {
    attempts(env);
    env.sh(line).expect(0);
    assert_ne!(
        env.sh(&format!("cmp -s {LEDGER} {WHOLE}")).code,
        0,
        "{line}"
    );
}

/// How many attempts of the run count as failed.
fn failures(env: &TestEnv) -> u64 {
    let status = env.json(0, &["retry-status", "--run", "r"]);
    status["error_count"].as_u64().expect("a number")
}

/// The ledger has all that was in it before, in the same words, its second copy is the same, and `doctor` agrees.
#[track_caller]
fn assert_whole(env: &TestEnv, at: &str) {
    let (whole, now) = (env.read(WHOLE), env.read(LEDGER));
    assert!(now.starts_with(&whole), "{at}: the ledger lost something");
    let copies = env.sh(
        "for copy in .git/recover/ledger-* .ultraplan/state/recover/ledger-copy*; do \
             test ! -e $copy || { cmp $copy .ultraplan/state/events.jsonl && echo $copy; }; done",
    );
    assert_eq!(copies.stdout.lines().count(), 1, "{at}: {copies:?}");
    assert_eq!(
        env.json(0, &["doctor"])["problems"],
        serde_json::json!([]),
        "{at}"
    );
}

/// The command that repairs the ledger is disturbed.
fn repair(damage: &Damage, fault: Fault) {
    let (name, case) = (format!("ledger {}", damage.name), &damage.case);
    let Some(sweep) = Sweep::of(&name, case, start(case.git), fault) else {
        return;
    };
    sweep.each(|env, at, disturb| {
        let (known, tree) = (listed(env), everything(env));
        let ran = disturb();
        assert_fits(env, fault, &ran, at);
        // It can be read at once, and nothing of it is gone. What was said to be done is.
        let count = failures(env);
        assert!(
            count == 2 || (count == 1 && ran.code != 0),
            "{at}: {count} failures, {ran:?}"
        );
        checkpoint_of_run(env);
        assert_eq!(failures(env), count, "{at}");
        assert_whole(env, at);
        assert!(listed(env).is_superset(&known), "{at}");
        assert_eq!(everything(env), tree, "{at}");
        if count == 1 {
            env.recover(&FAIL).expect(0);
            assert_eq!(failures(env), 2, "{at}");
        }
        assert_nothing_left(env, at);
    });
}

/// A command that was not killed ends as it should.
#[track_caller]
fn assert_fits(env: &TestEnv, fault: Fault, ran: &Ran, at: &str) {
    let calls = refused(env);
    let is_answer = calls.iter().any(|call| call.contains(" write(1, "));
    let only_reads = calls
        .iter()
        .any(|call| call.contains(" openat(") && !call.contains("O_CREAT"));
    let fits = match fault {
        Fault::Kill => true,
        // The work is done, and its answer is lost too.
        Fault::Error("ENOSPC") if is_answer => [1, 14].contains(&ran.code),
        // What `doctor` only reads is reported as unreadable.
        Fault::Error("ENOSPC" | "EIO") if only_reads && ran.code == 12 => {
            ran.stdout.contains("cannot be read")
        }
        Fault::Error("ENOSPC") => [0, 14].contains(&ran.code),
        _ => [0, 1, 14].contains(&ran.code),
    };
    assert!(fits, "{at}: {calls:?}: {ran:?}");
}

fn repairs(damages: &[Damage], errno: &'static str) {
    for damage in damages {
        repair(damage, Fault::Error(errno));
    }
}

// state.md: a ledger that is shorter than what its second copy knows is repaired from it.
#[test]
fn a_repair_of_the_ledger_that_is_killed() {
    for damage in &DAMAGES {
        repair(damage, Fault::Kill);
    }
}

#[test]
fn a_full_disk_under_a_repair_of_the_ledger() {
    repairs(&DAMAGES[..2], "ENOSPC");
}

#[test]
fn a_failing_disk_under_a_repair_of_the_ledger() {
    repairs(&DAMAGES[..2], "EIO");
}

#[test]
fn nothing_can_be_removed_under_a_repair_of_the_ledger() {
    repairs(&DAMAGES[..2], "EPERM");
}

/// Ledger and second copy are gone; the references still know.
const REBUILDS: [(&str, Case); 2] = [
    (
        "both gone",
        Case {
            args: &["doctor", "--rebuild"],
            git: true,
            before: |env| lost(env, LEDGER),
        },
    ),
    (
        "all gone",
        Case {
            args: &["doctor", "--rebuild"],
            git: true,
            before: |env| lost(env, ".ultraplan/state"),
        },
    ),
];

fn lost(env: &TestEnv, what: &str) {
    attempts(env);
    // Kept where the test finds it: nothing can be read from here on.
    let ids: Vec<String> = listed(env).into_iter().collect();
    std::fs::write(env.root().join("ids"), ids.join("\n")).expect("written");
    env.sh(&format!("rm -r {what} .git/recover/ledger-*"))
        .expect(0);
}

fn rebuild((name, case): &(&str, Case), fault: Fault) {
    let name = format!("rebuild, {name}");
    let Some(sweep) = Sweep::of(&name, case, start(case.git), fault) else {
        return;
    };
    sweep.each(|env, at, disturb| {
        let ids = std::fs::read_to_string(env.root().join("ids")).expect("ids");
        let known: BTreeSet<String> = ids.lines().map(str::to_owned).collect();
        let ran = disturb();
        assert_fits(env, fault, &ran, at);
        // The next command that writes works, with all that was counted, or says what to do. It never begins anew.
        let next = env.recover(&["checkpoint", "create", "--run", "r"]);
        if next.code == 0 {
            assert_eq!(failures(env), 1, "{at}: {ran:?}");
        } else {
            assert!(ran.code != 0 && next.code == 12, "{at}: {ran:?} {next:?}");
            assert!(next.stderr.contains("doctor --rebuild"), "{at}: {next:?}");
        }
        env.json(0, case.args);
        assert_eq!(failures(env), 1, "{at}");
        assert!(listed(env).is_superset(&known), "{at}");
        assert_eq!(
            env.json(0, &["doctor"])["problems"],
            serde_json::json!([]),
            "{at}"
        );
        assert_eq!(env.json(0, case.args)["rebuilt"]["changed"], false, "{at}");
        env.recover(&FAIL).expect(0);
        assert_eq!(failures(env), 2, "{at}");
        assert_eq!(
            env.json(0, &["checkpoint", "verify"])["checked"],
            listed(env).len(),
            "{at}"
        );
        assert_nothing_left(env, at);
    });
}

// Both are gone: the references bring back what they know, however often that is cut off.
#[test]
fn a_rebuild_that_is_killed() {
    for lost in &REBUILDS {
        rebuild(lost, Fault::Kill);
    }
}

#[test]
fn a_full_disk_under_a_rebuild() {
    rebuild(&REBUILDS[0], Fault::Error("ENOSPC"));
}

#[test]
fn a_failing_disk_under_a_rebuild() {
    rebuild(&REBUILDS[0], Fault::Error("EIO"));
}

#[test]
fn nothing_can_be_removed_under_a_rebuild() {
    rebuild(&REBUILDS[0], Fault::Error("EPERM"));
}

/// A compaction is disturbed, and then one of the two files is damaged as well: the other has all of it.
fn compaction(fault: Fault) {
    let Some(sweep) = Sweep::of("compaction, damage", &COMPACT, start(true), fault) else {
        return;
    };
    let mut number = 0;
    sweep.each(|env, at, disturb| {
        number += 1;
        let ran = disturb();
        assert_fits(env, fault, &ran, at);
        // What was said not to be there is not asked for, nor where nothing could be said.
        let unheard = refused(env).iter().any(|call| call.contains(" write(2, "));
        let alone = unheard || ran.stderr.contains("second copy could not be written");
        let file = ["ledger-", "events.jsonl"][usize::from(number % 2 == 0 && !alone)];
        let way = ["truncate -s 20000", "rm", "truncate -s 0"][number % 3];
        env.sh(&format!(
            "{way} $(ls -d .ultraplan/state/{file}* .git/recover/{file}* 2>/dev/null)"
        ))
        .expect(0);
        let at = format!("{at}, then {way} {file}");
        checkpoint(env);
        let events = env.json(0, &["log", "--limit", "1000"])["events"]
            .as_array()
            .map_or(0, Vec::len);
        assert!(events > MANY, "{at}: {events}");
        let whole = env.sh("cmp .ultraplan/state/events.jsonl .git/recover/ledger-*");
        assert_eq!(whole.code, 0, "{at}: {whole:?}");
        assert_eq!(
            env.json(0, &["doctor"])["problems"],
            serde_json::json!([]),
            "{at}"
        );
        assert_nothing_left(env, &at);
    });
}

#[test]
fn a_compaction_that_is_killed_before_a_file_is_damaged() {
    compaction(Fault::Kill);
}

#[test]
fn a_full_disk_under_a_compaction() {
    compaction(Fault::Error("ENOSPC"));
}

#[test]
fn a_failing_disk_under_a_compaction() {
    compaction(Fault::Error("EIO"));
}
