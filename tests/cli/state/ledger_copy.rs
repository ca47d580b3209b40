//! The ledger cannot be set back by a file: its second copy, and what happens to either.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::env::TestEnv;
use crate::seen::text;

const LEDGER: &str = ".ultraplan/state/events.jsonl";

/// A run that has used up its attempts: a wait, and nothing left.
fn used_up(git: bool) -> TestEnv {
    let mut env = if git {
        TestEnv::repo()
    } else {
        TestEnv::plain()
    };
    env.set("RECOVER_TEST_NOW", "2030-01-01T00:00:00.000Z")
        .set("RECOVER_TEST_SEED", "1");
    env.write("a.txt", "one\n");
    for _ in 0..3 {
        env.json(0, &["attempt", "start", "--run", "r"]);
        env.recover(&[
            "attempt",
            "fail",
            "--run",
            "r",
            "--exit-code",
            "3",
            "--message",
            "boom",
        ]);
    }
    env
}

/// The second copy's path.
fn copy(env: &TestEnv) -> PathBuf {
    let found = env.sh("ls .git/recover/ledger-*.jsonl .ultraplan/state/recover/ledger-copy.jsonl 2>/dev/null || true");
    env.work()
        .join(found.stdout.lines().next().expect("a copy"))
}

fn cut(env: &TestEnv, path: &str, lines: usize) {
    env.sh(&format!(
        "head -n {lines} {path} > cut; cat cut > {path}; rm cut"
    ))
    .expect(0);
}

// The counts stay what they were, whatever becomes of the ledger's own file; and the next command that writes repairs it.
#[test]
fn a_ledger_that_is_cut_off_takes_no_attempt_with_it() {
    for git in [true, false] {
        let env = used_up(git);
        let before = env.json(8, &["retry-status", "--check"]);
        let whole = env.read(LEDGER);
        let half = whole.len() / 2;
        let flip = format!("printf X | dd of={LEDGER} bs=1 seek={half} conv=notrunc 2>/dev/null");
        let first = whole.lines().next().map_or(0, |line| line.len() + 1);
        for damage in [
            format!("truncate -s {first} {LEDGER}"),
            format!("truncate -s {half} {LEDGER}"),
            format!(": > {LEDGER}"),
            format!("rm {LEDGER}"),
            flip,
        ] {
            env.sh(&damage).expect(0);
            let checked = env
                .recover(&["--json", "retry-status", "--check"])
                .expect(8);
            assert!(
                checked.stderr.contains("second copy"),
                "{damage}: {}",
                checked.stderr
            );
            assert_eq!(
                env.json(8, &["retry-status", "--check"])["attempts_left"],
                before["attempts_left"],
                "{damage}"
            );
            env.json(0, &["log"]);
            let found = env.json(12, &["doctor"]);
            assert_eq!(
                found["problems"][0]["code"], "damaged_ledger",
                "{damage}: {found}"
            );
            let ran = env
                .recover(&["checkpoint", "create", "--if-changed"])
                .expect(0);
            assert!(ran.stderr.contains("repaired"), "{damage}: {}", ran.stderr);
            assert!(env.read(LEDGER).starts_with(&whole), "{damage}");
            assert_eq!(
                env.json(0, &["doctor"])["problems"],
                serde_json::json!([]),
                "{damage}"
            );
            env.json(8, &["retry-status", "--check"]);
        }
    }
}

// Every file of the state directory is written over: what cannot be read is damage, and not the state of another place.
#[test]
fn what_was_written_over_comes_back_from_the_copy() {
    let fill = |way: &str| {
        format!("find .ultraplan -type f -exec sh -c 'for f; do {way}; done' sh {{}} +")
    };
    for way in [
        "head -c $(stat -c %s $f) /dev/urandom | dd of=$f conv=notrunc 2>/dev/null",
        "echo written over > $f",
        ": > $f",
    ] {
        let env = used_up(true);
        env.sh(&fill(way)).expect(0);
        env.json(8, &["retry-status", "--check"]);
        env.json(12, &["doctor"]);
        env.json(0, &["doctor", "--repair"]);
        env.json(8, &["retry-status", "--check"]);
        env.json(0, &["checkpoint", "restore", "latest"]);
        assert_eq!(
            env.json(0, &["doctor"])["problems"],
            serde_json::json!([]),
            "{way}"
        );
    }
    // What can be read of it counts: one event of another place, and it is foreign.
    let (env, other) = (used_up(true), used_up(true));
    for (file, content) in [
        (LEDGER, other.read(LEDGER)),
        (".ultraplan/state/recover/identity", "x".to_owned()),
    ] {
        env.write(file, content);
    }
    let error = env.json(13, &["attempt", "start", "--run", "r"])["error"].clone();
    assert!(text(&error["hint"]).contains("trust --state"), "{error}");
}

// Where no whole one is left that is damage, never fewer attempts.
#[test]
fn two_files_that_are_cut_off_are_damage() {
    let env = used_up(true);
    let whole = env.read(LEDGER);
    let copy = copy(&env).to_string_lossy().into_owned();
    cut(&env, LEDGER, 2);
    cut(&env, &copy, 3);
    assert_eq!(
        env.json(12, &["retry-status", "--check"])["error"]["code"],
        "corrupt"
    );
    let error = env.json(12, &["attempt", "start", "--run", "r"])["error"].clone();
    assert!(text(&error["hint"]).contains("doctor --rebuild"), "{error}");
    // The checkpoints know what is missing, also where the count is gone.
    env.sh("rm .ultraplan/state/recover/ledger-created")
        .expect(0);
    assert_eq!(
        env.json(12, &["attempt", "start", "--run", "r"])["error"]["code"],
        "corrupt"
    );
    env.json(0, &["doctor", "--rebuild"]);
    env.json(8, &["retry-status", "--check"]);
    let ended = |text: &str| text.matches("\"attempt_ended\"").count();
    assert_eq!(ended(&env.read(LEDGER)), ended(&whole));
    assert_eq!(env.json(0, &["doctor"])["problems"], serde_json::json!([]));
}

// The copy is a file of its own: a second name of the same one, as version 0.1.0 had, becomes one with the first write.
#[test]
fn the_second_copy_is_a_file_of_its_own_and_made_whole() {
    let env = used_up(true);
    let copy = copy(&env);
    let inode = |path: PathBuf| std::fs::metadata(path).expect("a file").ino();
    let ledger = env.work().join(LEDGER);
    let name = copy.display();
    for way in [
        format!("ln -f {LEDGER} {name}"),
        format!("truncate -s 100 {name}"),
        format!(": > {name}"),
        format!("rm {name}"),
        format!("printf X | dd of={name} bs=1 seek=100 conv=notrunc 2>/dev/null"),
    ] {
        env.sh(&way).expect(0);
        env.json(8, &["retry-status", "--check"]);
        if way.starts_with("printf") {
            assert_eq!(
                env.json(12, &["doctor"])["problems"][0]["path"],
                *copy.to_string_lossy()
            );
            env.json(0, &["doctor", "--repair"]);
        } else {
            env.json(0, &["checkpoint", "create"]);
        }
        assert_ne!(inode(ledger.clone()), inode(copy.clone()), "{way}");
        assert_eq!(
            std::fs::read(&ledger).expect("it"),
            std::fs::read(&copy).expect("its copy"),
            "{way}"
        );
        assert_eq!(
            env.json(0, &["doctor"])["problems"],
            serde_json::json!([]),
            "{way}"
        );
    }
}

// A project that was copied goes on alone: neither takes the other's copy for its own.
#[test]
fn a_copied_project_has_a_copy_of_its_own() {
    let env = used_up(true);
    env.sh("cp -r . ../other").expect(0);
    let other = env.root().join("other");
    let at = |args: &[&str]| {
        let mut all = vec!["-C", other.to_str().expect("a name")];
        all.extend(args);
        env.recover(&all).expect(0)
    };
    at(&["checkpoint", "create", "--run", "elsewhere"]);
    env.json(0, &["checkpoint", "create", "--run", "here"]);
    assert!(!env.read(LEDGER).contains("elsewhere"));
    let theirs = std::fs::read_to_string(other.join(LEDGER)).expect("a ledger");
    assert!(theirs.contains("elsewhere") && !theirs.contains("\"here\""));
    env.json(8, &["retry-status", "--check", "--run", "r"]);
}
