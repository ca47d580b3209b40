//! Checkpoints while an attempt is under way, and what they must not change (S10, L3, B10).

use crate::env::TestEnv;

fn checkpoints(env: &TestEnv, run: &str) -> Vec<(String, String)> {
    let list = env.json(0, &["checkpoint", "list", "--run", run]);
    let text = |value: &serde_json::Value| value.as_str().expect("a word").to_owned();
    let all = list["checkpoints"].as_array().expect("a list").iter();
    all.map(|one| (text(&one["trigger"]), text(&one["verdict"])))
        .collect()
}

/// An agent that goes on when it sees a checkpoint of the run with its work in it, so that nothing here is a matter of time.
/// `recover checkpoint list` is what it looks at.
fn patient_agent(env: &TestEnv, then: &str) {
    env.script(
        "agent.sh",
        &format!(
            "echo half > work.txt\n\
             for try in $(seq 600); do\n\
               {} --json checkpoint list | grep -q '\"trigger\": \"interval\"' && break\n\
               sleep 0.1\n\
             done\n{then}",
            env!("CARGO_BIN_EXE_recover")
        ),
    );
}

// S10: every interval during execution, if anything has changed; unverified, and no end of an iteration.
#[test]
fn a_long_attempt_has_checkpoints_on_the_way() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\ninterval = \"100ms\"\n[retention]\non_success_keep_last = \"none\"\n",
    );
    patient_agent(&env, "sleep 1\necho whole > work.txt");
    let done = env.json(0, &["run", "--run", "r", "--", "./agent.sh"]);
    assert_eq!(done["outcome"], "complete", "{done}");
    let all = checkpoints(&env, "r");
    // A second and more went by without a change after it: it is the only one of that, and at most one more of the end.
    assert!((3..=4).contains(&all.len()), "{all:?}");
    assert_eq!(
        (all[0].0.as_str(), all[all.len() - 1].0.as_str()),
        ("initial", "attempt")
    );
    let between = &all[1..all.len() - 1];
    assert!(
        between
            .iter()
            .all(|one| (one.0.as_str(), one.1.as_str()) == ("interval", "unverified")),
        "{all:?}"
    );
    let shown = env.json(0, &["checkpoint", "show", "@2"]);
    assert_eq!(
        (
            &shown["checkpoint"]["type"],
            &shown["checkpoint"]["after_iteration"]
        ),
        (&"operation".into(), &0.into())
    );
    env.json(0, &["rollback", "--to", "@2"]);
    assert_eq!(env.read("work.txt"), "half\n");
    env.json(0, &["rollback", "--iteration", "1"]);
    assert!(
        !env.exists("work.txt"),
        "before the iteration is before what was on its way"
    );
}

// L3: after an error the memory goes back to before the attempt, not to the middle of it.
#[test]
fn what_was_on_the_way_is_no_way_back_for_the_memory() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\ninterval = \"100ms\"\n[retry]\nmax_attempts = 1\n",
    );
    env.write(".ultraplan/state/loop.json", "{\"n\": 1}\n");
    patient_agent(
        &env,
        "echo '{\"n\": 3}' > .ultraplan/state/loop.json\necho boom >&2\nexit 3",
    );
    let agent = env.read("agent.sh").replace(
        "echo half",
        "echo '{\"n\": 2}' > .ultraplan/state/loop.json\necho half",
    );
    env.write("agent.sh", agent);
    env.recover(&["run", "--run", "r", "--no-wait", "--", "./agent.sh"]);
    let all = checkpoints(&env, "r");
    assert!(
        all.iter().any(|(trigger, _)| trigger == "interval"),
        "{all:?}"
    );
    assert_eq!(env.read(".ultraplan/state/loop.json"), "{\"n\": 1}\n");
}

// What cannot be taken on the way is told, and the attempt ends as if nothing had been tried.
#[test]
fn trouble_on_the_way_is_a_warning() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\ninterval = \"50ms\"\nmax_untracked_files = 3\n",
    );
    // More files than may be captured until the agent has seen the warning.
    env.script(
        "agent.sh",
        "for n in 1 2 3 4 5 6 7 8; do echo $n > flood$n; done\n\
         for try in $(seq 600); do grep -q 'no automatic checkpoint' ../stderr && break; sleep 0.1; done\nrm flood?\necho done > a.txt",
    );
    let line = format!(
        "{} run --run r -- ./agent.sh 2> ../stderr",
        env!("CARGO_BIN_EXE_recover")
    );
    let ran = env.sh(&line);
    let stderr = std::fs::read_to_string(env.work().join("../stderr")).expect("stderr");
    assert_eq!(ran.code, 0, "{stderr}");
    assert!(
        stderr.contains("no automatic checkpoint was taken"),
        "{stderr}"
    );
    assert_eq!(
        checkpoints(&env, "r")
            .last()
            .map(|(trigger, _)| trigger.clone())
            .as_deref(),
        Some("attempt")
    );
}

// S10: steps, and calls of a loop's own, are operations.
#[test]
fn so_many_operations_make_a_checkpoint() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nevery_operations = 3\n",
    );
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    for name in ["one", "two", "three"] {
        env.json(
            0,
            &[
                "step",
                name,
                "--run",
                "r",
                "--",
                "sh",
                "-c",
                "echo x >> a.txt",
            ],
        );
    }
    let all = checkpoints(&env, "r");
    assert_eq!(
        all.iter()
            .map(|(trigger, _)| trigger.as_str())
            .collect::<Vec<_>>(),
        ["manual", "operation"]
    );
    let due = [
        "checkpoint",
        "create",
        "--run",
        "r",
        "--if-due",
        "--trigger",
        "operation",
    ];
    for taken in [false, false, true, false] {
        env.write(
            "a.txt",
            format!("{taken} {}\n", checkpoints(&env, "r").len()),
        );
        assert_eq!(env.json(0, &due)["changed"], taken);
    }
    // Named moments are of the kind that they mark.
    for (trigger, kind) in [
        ("before_edit", "operation"),
        ("external", "operation"),
        ("phase", "phase"),
        ("mine", "task"),
    ] {
        let made = env.json(
            0,
            &["checkpoint", "create", "--run", "r", "--trigger", trigger],
        );
        assert_eq!(
            (&made["checkpoint"]["trigger"], &made["checkpoint"]["type"]),
            (&trigger.into(), &kind.into())
        );
    }
}

// S10, S17: with checkpoints turned off nothing is captured by itself, but for what a way back needs.
#[test]
fn turned_off_only_a_way_back_is_kept() {
    let env = TestEnv::repo();
    let config = |enabled| {
        format!("[checkpoint]\nenabled = {enabled}\ninterval = \"50ms\"\nevery_operations = 1\n")
    };
    let triggers = |run| {
        checkpoints(&env, run)
            .into_iter()
            .map(|(trigger, _)| trigger)
            .collect::<Vec<_>>()
    };
    env.write(".ultraplan/recover.toml", config(true));
    env.json(0, &["checkpoint", "create", "--run", "on"]);
    env.json(
        0,
        &[
            "step",
            "one",
            "--run",
            "on",
            "--",
            "sh",
            "-c",
            "echo on >> a.txt",
        ],
    );
    assert_eq!(
        triggers("on"),
        ["manual", "operation"],
        "what is to be turned off is there"
    );

    env.write(".ultraplan/recover.toml", config(false));
    env.json(0, &["checkpoint", "create", "--run", "off"]);
    env.json(
        0,
        &[
            "step",
            "one",
            "--run",
            "off",
            "--",
            "sh",
            "-c",
            "echo off >> a.txt",
        ],
    );
    assert_eq!(triggers("off"), ["manual"]);
    // What is asked for is taken.
    let asked = [
        "checkpoint",
        "create",
        "--run",
        "off",
        "--if-due",
        "--trigger",
        "operation",
    ];
    assert_eq!(env.json(0, &asked)["changed"], true);
    // A run has its beginning and the ends of its attempts, and every restore can be undone.
    env.json(
        0,
        &[
            "run",
            "--run",
            "r",
            "--",
            "sh",
            "-c",
            "echo half > b.txt; sleep 1; echo whole > b.txt",
        ],
    );
    assert_eq!(triggers("r"), ["initial", "attempt"]);
    env.json(0, &["rollback", "--run", "r", "--full"]);
    assert!(!env.exists("b.txt"));
    assert_eq!(triggers("r"), ["initial", "attempt", "safety"]);
    env.json(0, &["undo"]);
    assert_eq!(env.read("b.txt"), "whole\n");
}
