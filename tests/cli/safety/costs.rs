//! How much commands ask of the disk, counted: counts do not depend on how busy the machine is.

use serde_json::json;

use crate::env::TestEnv;

/// Calls that wait for the disk, and files opened, of one command (`strace`).
fn costs(env: &TestEnv, args: &str) -> (usize, usize) {
    let recover = env!("CARGO_BIN_EXE_recover");
    let calls = "fsync,fdatasync,syncfs,sync_file_range,openat";
    env.sh(&format!(
        "strace -f -y -qq -o ../calls -e trace={calls} {recover} {args}"
    ))
    .expect(0);
    let log = std::fs::read_to_string(env.root().join("calls")).expect("a log");
    // The ledger's second copy is synced by the clock: the more often, the slower the disk.
    let begins = |line: &&str| {
        line.contains('(') && !line.contains("resumed>") && !line.contains("/recover/ledger-")
    };
    let opened = |line: &&str| line.contains("openat(") && !line.contains(" = -1 ");
    let all = log.lines().filter(begins);
    let (opens, syncs): (Vec<&str>, Vec<&str>) = all.partition(|line| line.contains("openat("));
    (
        syncs.len(),
        opens.iter().filter(|line| opened(line)).count(),
    )
}

// speed: an attempt, a checkpoint and the end of an attempt wait for the disk only where something depends on it.
#[test]
fn commands_sync_what_has_to_be_durable_and_no_more() {
    let mut env = TestEnv::repo();
    // Without the vault, whose syncs at both ends of a run depend on what it lacks.
    env.set("CI", "true");
    if env.sh("command -v strace").code != 0 {
        assert!(
            std::env::var_os("CI").is_none(),
            "strace is missing: nothing can be counted"
        );
        return;
    }
    env.json(0, &["run", "--", "true"]);
    env.json(0, &["checkpoint", "create", "--run", "m"]);
    let mut most = String::new();
    for (args, limit) in [
        // Two of them for the file that says it is at work.
        ("run -- true", 21),
        ("checkpoint create --run m", 7),
        ("attempt start --run m", 2),
        ("attempt fail --run m --message odd --no-rollback", 8),
        // What changed since the failure is in a checkpoint before it begins.
        ("attempt start --run m", 7),
        ("attempt pass --run m", 8),
        ("status --run m", 0),
    ] {
        env.write("a.txt", args);
        env.write("more/b", args);
        let (syncs, _) = costs(&env, args);
        if syncs > limit {
            most += &format!("{args}: {syncs} syncs, not {limit}\n");
        }
    }
    assert_eq!(most, "");
}

// promise (the black box): the vault is synced where a run begins and ends, and nowhere else.
#[test]
fn a_checkpoint_waits_for_no_vault() {
    let env = TestEnv::repo();
    if env.sh("command -v strace").code != 0 {
        return;
    }
    env.json(0, &["run", "--", "true"]);
    env.json(0, &["checkpoint", "create", "--run", "m"]);
    let synced = |args: &str| {
        env.write("a.txt", args);
        let recover = env!("CARGO_BIN_EXE_recover");
        let calls = "fsync,fdatasync,syncfs,sync_file_range";
        env.sh(&format!(
            "strace -f -y -qq -o ../calls -e trace={calls} {recover} {args}"
        ))
        .expect(0);
        let log = std::fs::read_to_string(env.root().join("calls")).expect("a log");
        log.matches("/recover/vault/").count()
    };
    for args in [
        "checkpoint create --run m",
        "attempt start --run m",
        "attempt fail --run m --message odd --no-rollback",
        "status --run m",
    ] {
        assert_eq!(synced(args), 0, "{args}");
    }
    // At a run's begin and end each file that is new, with its folders.
    let at_both_ends = synced("run -- true");
    assert!((1..80).contains(&at_both_ends), "{at_both_ends}");
}

// speed: neither what is opened nor the run's view grows with the checkpoints.
#[test]
fn the_thousandth_checkpoint_costs_what_the_tenth_does() {
    let env = TestEnv::repo();
    let take = |number: usize| {
        env.write("a.txt", number.to_string());
        env.json(0, &["checkpoint", "create", "--run", "m"]);
    };
    let counted = env.sh("command -v strace").code == 0;
    let mut opened = Vec::new();
    for number in 1..=104 {
        // Between two merges of small packs.
        if [10, 104].contains(&number) && counted {
            env.write("a.txt", number.to_string());
            opened.push(costs(&env, "checkpoint create --run m").1);
        } else {
            take(number);
        }
    }
    let grown = opened
        .last()
        .zip(opened.first())
        .map_or(0, |(last, first)| last.saturating_sub(*first));
    assert!(grown < 40, "{opened:?}");
    let view = env.state_json("recover/battles/-/m.json");
    assert_eq!(view["checkpoints"].as_array().map(Vec::len), Some(100));
    assert_eq!(view["checkpointsLeftOut"], json!(4));
    assert_eq!(
        view["checkpoints"][99]["id"],
        env.json(0, &["checkpoint", "show", "latest"])["checkpoint"]["id"]
    );
}
