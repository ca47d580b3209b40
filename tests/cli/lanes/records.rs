//! A lane's records from its first event on (C1), through retries that end well (C8), and where its work tree is gone.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::lanes::contract::Lane;
use crate::seen::text;

const LANE: [&str; 6] = ["--run", "R", "--phase", "P1", "--lane", "L"];

fn record(env: &TestEnv, stage: &str) -> Value {
    let all = env.state_json("checkpoints.json");
    let found = all
        .as_array()
        .expect("an array")
        .iter()
        .find(|one| one["stage"] == stage);
    found.unwrap_or_else(|| panic!("{stage}: {all}")).clone()
}

// C1: the file is there from the first event on; a file of somebody else's is not touched before there is a record.
#[test]
fn the_file_begins_as_an_empty_array() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create"]);
    assert_eq!(env.read(".ultraplan/state/checkpoints.json"), "[]\n");
    let env = TestEnv::repo();
    env.write(".ultraplan/state/checkpoints.json", "[1]");
    env.json(0, &["checkpoint", "create"]);
    assert_eq!(env.read(".ultraplan/state/checkpoints.json"), "[1]");
}

// C5, S15, snapshot.md: a lane whose work tree is gone is not rolled back in the work tree that somebody happens to be in.
// What is pasted brings the lane's back.
#[test]
fn a_lane_that_is_gone_is_not_rolled_back_elsewhere() {
    for detached in [false, true] {
        let lane = Lane::begun();
        let env = &lane.env;
        if detached {
            lane.git(&["switch", "-q", "--detach"]);
            env.git(&["switch", "-q", "--detach"]);
        }
        lane.write("work.txt", "done\n");
        lane.stage(&lane.place.clone(), "after_lane_tests", "complete", &[]);
        env.git(&["worktree", "remove", "--force", "../lane 1"]);
        env.write("a.txt", "an edit of mine\n");
        env.write("mine.txt", "mine\n");
        for more in [&[][..], &["--commits", "keep", "--edits", "discard"]] {
            let refused = lane.at(env.work(), 13, &[&["--rollback"], more].concat());
            let hint = &refused["error"]["hint"];
            assert!(text(hint).contains("worktree"), "{refused}");
            assert_eq!(
                (env.read("a.txt"), env.read("mine.txt")),
                ("an edit of mine\n".into(), "mine\n".into())
            );
        }
        let hint = lane.at(env.work(), 13, &["--rollback"])["error"]["hint"].clone();
        assert!(
            text(&hint).contains(" checkpoint restore ckpt_"),
            "its stages stand as they are: {hint}"
        );
        lane.paste(&hint).expect(0);
        assert_eq!(lane.read("work.txt"), "done\n");
        // The working memory is the project's.
        lane.at(
            env.work(),
            0,
            &["--rollback", "--to", "latest", "--scope", "state"],
        );
    }
}

// C8: the attempt that passes closes the record of the retries; the next iteration is not told of errors that are over.
#[test]
fn retries_that_end_well_are_complete() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = '0s'\n");
    let line = "echo \"$RECOVER_ITERATION.$RECOVER_ATTEMPT ${RECOVER_FAILURE_CONTEXT:+told}\" >> ../told; \
                [ $RECOVER_ITERATION.$RECOVER_ATTEMPT != 1.1 ] || { echo 'error: no'; exit 1; }";
    let run = [
        &["run"],
        &LANE[..],
        &[
            "--iterations",
            "2",
            "--attempts",
            "3",
            "--",
            "sh",
            "-c",
            line,
        ],
    ]
    .concat();
    env.json(0, &run);
    let retry = record(&env, "retry_attempt");
    assert_eq!(
        (&retry["status"], &retry["retry_attempt"]),
        (&json!("complete"), &json!(1)),
        "{retry}"
    );
    assert!(
        text(&retry["failure_context"][0]).starts_with("Attempt 1: "),
        "{retry}"
    );
    assert_eq!(retry["base_branch"], "main", "{retry}");
    assert_eq!(env.read("../told"), "1.1 \n1.2 told\n2.1 \n");
}

// C8, C9: an attempt that another loop made tells the last entries of its log too, and is closed by the one that passes.
#[test]
fn attempts_of_another_loop_tell_their_log() {
    let env = TestEnv::repo();
    let lines: Vec<String> = (1..=9).map(|number| format!("line {number}")).collect();
    env.write("../nine.log", lines.join("\n"));
    let fail = [
        "attempt",
        "fail",
        "--message",
        "boom",
        "--exit-code",
        "1",
        "--log",
        "../nine.log",
    ];
    env.json(0, &[&fail[..], &LANE].concat());
    let retry = record(&env, "retry_attempt");
    let told = json!([
        "Attempt 1: boom",
        "line 5",
        "line 6",
        "line 7",
        "line 8",
        "line 9"
    ]);
    assert_eq!(
        (&retry["status"], &retry["failure_context"]),
        (&json!("retrying"), &told)
    );
    assert!(retry["notes"].is_null(), "{retry}");
    env.json(0, &[&["attempt", "pass"][..], &LANE].concat());
    assert_eq!(record(&env, "retry_attempt")["status"], "complete");
}

// C7: the way on of a lane whose attempts used grants another.
#[test]
fn the_way_on_of_an_exhausted_lane_goes_on() {
    let env = TestEnv::repo();
    let line = "[ -e ok ] || { echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6; }";
    let run = [
        &["run"],
        &LANE[..],
        &["--attempts", "1", "--", "sh", "-c", line],
    ]
    .concat();
    env.json(7, &run);
    env.write("ok", "");
    let hint = text(&record(&env, "retry_attempt")["resume_hint"]);
    let recover = env!("CARGO_BIN_EXE_recover");
    let pasted = hint.replacen("recover", recover, 1);
    env.sh(&format!("cd / && {pasted}")).expect(0);
    assert_eq!(
        env.json(0, &[&["status"][..], &LANE].concat())["run"]["status"],
        "complete"
    );
}

// C1: a stage that was reached is recorded though nothing changed since the latest checkpoint.
#[test]
fn a_stage_is_recorded_though_nothing_changed() {
    let env = TestEnv::repo();
    let stage = |name| {
        [
            &[
                "checkpoint",
                "create",
                "--if-changed",
                "--status",
                "ready",
                "--stage",
                name,
            ][..],
            &LANE,
        ]
        .concat()
    };
    env.json(0, &stage("before_lane_start"));
    assert_eq!(env.json(0, &stage("after_lane_start"))["changed"], true);
    assert_eq!(record(&env, "after_lane_start")["status"], "ready");
}

// C2: a record has a status, also where nobody gave one.
#[test]
fn a_record_has_a_status() {
    let env = TestEnv::repo();
    for (stage, more, status) in [
        ("before_lane_start", &[][..], "ready"),
        ("after_lane_start", &[], "in_progress"),
        ("after_lane_tests", &["--exit-code", "1"], "failed"),
        ("after_lane_tests", &["--exit-code", "0"], "complete"),
        ("pre_pr", &[], "ready"),
        ("pre_pr", &["--status", "blocked"], "blocked"),
    ] {
        env.json(
            0,
            &[&["checkpoint", "create", "--stage", stage], more, &LANE].concat(),
        );
        assert_eq!(record(&env, stage)["status"], status, "{stage} {more:?}");
    }
}

// C4: what is left of a lane is told in the order in which it was first begun.
#[test]
fn next_actions_keep_their_order() {
    let lane = Lane::begun();
    let step = |name: &str| lane.here(0, &["step", name, "--", "true"]);
    step("impl");
    step("tests");
    lane.here(0, &["--rollback", "--to", "stage:before_lane_start"]);
    step("impl");
    lane.here(0, &["--rollback", "--to", "stage:before_lane_start"]);
    let next = lane.here(0, &["--resume"])["next_actions"].clone();
    assert!(
        text(&next[0]).contains(" step impl ") && text(&next[1]).contains(" step tests "),
        "{next}"
    );
}
