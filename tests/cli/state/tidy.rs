//! Files of `recover`'s own do not pile up, and `doctor` sees a disk that takes nothing more.

use crate::env::TestEnv;
use crate::seen::assert_clean;

// The file of a step's turn goes with the turn.
#[test]
fn no_lock_of_a_step_stays() {
    let env = TestEnv::repo();
    for step in ["one", "two", "three"] {
        env.json(0, &["step", step, "--run", "r", "--", "true"]);
    }
    env.recover(&["step", "fails", "--run", "r", "--", "false"]);
    let locks = || {
        env.sh("find .ultraplan -name 'step-*.lock' | wc -l")
            .stdout
            .trim()
            .to_owned()
    };
    assert_eq!(locks(), "0");
}

// What each checkpoint added is noted in one file once there are many, and pruning finds it there.
#[test]
fn lists_of_objects_are_merged_and_pruning_finds_them() {
    let env = TestEnv::repo();
    for number in 0..70 {
        env.write("a.txt", format!("{number}\n"));
        env.json(0, &["checkpoint", "create", "--run", "r"]);
    }
    let files: usize = env
        .sh("ls .git/recover/written | wc -l")
        .stdout
        .trim()
        .parse()
        .expect("a number");
    assert!(files < 20, "{files}");
    let objects = || -> usize {
        env.sh("git count-objects -v | awk '/^(count|in-pack):/ {sum += $2} END {print sum}'")
            .stdout
            .trim()
            .parse()
            .expect("a number")
    };
    let before = objects();
    env.json(
        0,
        &[
            "checkpoint",
            "prune",
            "--run",
            "r",
            "--keep-last",
            "2",
            "--yes",
        ],
    );
    let after = objects();
    assert!(after * 4 < before, "{before} objects, then {after}");
    env.json(0, &["checkpoint", "verify"]);
    assert_clean(&env);
}

/// Executes `line` where `.ultraplan/state` is a small file system of its own; `None` where that cannot be had.
fn on_a_small_disk(env: &TestEnv, line: &str) -> Option<crate::env::Ran> {
    let whole = format!(
        "cp -a .ultraplan/state ../state && mount -t tmpfs -o size=2m none .ultraplan/state && cp -a ../state/. .ultraplan/state && {line}"
    );
    if env.sh("unshare -rm mount -t tmpfs none /mnt").code != 0 {
        eprintln!("skipped: no mount in a user namespace");
        return None;
    }
    Some(crate::env::Ran::of(
        &env.command("unshare")
            .args(["-rm", "sh", "-c", &whole])
            .output()
            .expect("unshare"),
    ))
}

#[test]
fn doctor_says_that_the_disk_is_full_or_read_only() {
    let recover = env!("CARGO_BIN_EXE_recover");
    let fill = "dd if=/dev/zero of=.ultraplan/state/full bs=4k 2>/dev/null";
    for (how, code, exit) in [
        (fill, "no_space", 14),
        ("mount -o remount,ro .ultraplan/state", "read_only", 13),
        ("true", "", 0),
    ] {
        let env = TestEnv::repo();
        env.json(0, &["checkpoint", "create"]);
        let Some(ran) = on_a_small_disk(&env, &format!("{{ {how}; {recover} --json doctor; }}"))
        else {
            return;
        };
        assert_eq!(ran.code, exit, "{how}: {ran:?}");
        assert_eq!(
            ran.json()["problems"][0]["code"]
                .as_str()
                .unwrap_or_default(),
            code,
            "{how}: {ran:?}"
        );
    }
}
