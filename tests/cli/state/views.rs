//! The views: files derived from the ledger, each in a format of its own.

use crate::env::TestEnv;
use serde_json::{Value, json};

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

// L1: exactly these keys.
#[test]
fn recovery_json_has_exactly_its_keys() {
    let env = TestEnv::repo();
    env.json(
        0,
        &["attempt", "fail", "--message", "boom", "--exit-code", "1"],
    );
    let view = env.state_json("recovery.json");
    assert_eq!(
        keys(&view),
        [
            "isRecovering",
            "lastErrorAt",
            "errorCount",
            "lastError",
            "cooldownUntil"
        ]
    );
    assert_eq!(
        (
            &view["isRecovering"],
            &view["errorCount"],
            &view["lastError"]
        ),
        (&true.into(), &1.into(), &"boom".into())
    );
    for key in ["lastErrorAt", "cooldownUntil"] {
        assert!(view[key].as_str().unwrap().ends_with('Z'), "{view}");
    }
    env.json(0, &["attempt", "pass"]);
    let view = env.state_json("recovery.json");
    assert_eq!(
        (&view["isRecovering"], &view["errorCount"]),
        (&false.into(), &0.into())
    );
    assert!(view["lastError"].is_null() && view["cooldownUntil"].is_null());
}

// A3: attempts by subtask, and what is stuck.
#[test]
fn attempt_history_json_has_the_seeds_form() {
    let env = TestEnv::repo();
    let fail = [
        "attempt",
        "fail",
        "--subtask",
        "s-1",
        "--approach",
        "Using async",
        "--message",
        "boom",
    ];
    env.json(
        0,
        &[
            "attempt",
            "start",
            "--subtask",
            "s-1",
            "--approach",
            "Using async",
        ],
    );
    env.json(0, &[&fail[..2], &fail[4..]].concat());
    let view = env.state_json("attempt_history.json");
    assert_eq!(keys(&view), ["subtasks", "stuck_subtasks"]);
    let subtask = &view["subtasks"]["s-1"];
    assert_eq!(keys(subtask), ["attempts", "status"]);
    let attempt = &subtask["attempts"][0];
    assert_eq!(
        keys(attempt),
        ["session", "timestamp", "approach", "success", "error"]
    );
    assert_eq!(
        (&attempt["session"], &attempt["approach"]),
        (&1.into(), &"Using async".into())
    );
    assert_eq!(
        (&attempt["success"], &attempt["error"]),
        (&false.into(), &"boom".into())
    );
    assert_eq!(view["stuck_subtasks"], serde_json::json!([]));
}

// B1: a check that failed and a time limit are said in the specification's words.
#[test]
fn the_battle_view_names_the_check_and_the_limit() {
    let env = TestEnv::repo();
    let failure =
        |name: &str| env.state_json(&format!("recover/battles/-/{name}.json"))["failure"].take();
    let check = "unit=echo 'FAILED test_login: expected 200, got 404'; exit 1";
    let run = ["run", "--run", "a", "--attempts", "1", "--feedback", check];
    env.recover(&[&run[..], &["--", "touch", "b"]].concat());
    let told = failure("a");
    assert_eq!(
        told["message"],
        "Feedback loop 'unit' failed: FAILED test_login: expected 200, got 404"
    );
    let run = ["run", "--run", "t", "--attempts", "1", "--timeout", "600ms"];
    env.recover(&[&run[..], &["--", "sh", "-c", "echo busy; sleep 20"]].concat());
    let told = failure("t");
    assert_eq!(told["message"], "Iteration timed out");
    assert_eq!(told["details"], "Exceeded 0.01 minutes\nbusy");
}

// B2, B13: the battle's own format and its name for an agent's failure.
#[test]
fn the_battle_view_has_the_seeds_form() {
    let env = TestEnv::repo();
    let error = "echo 'API Error: 500 {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Internal server error\"}}' >&2; exit 1";
    env.script("claude", error);
    let run = [
        "run",
        "--run",
        "b",
        "--task",
        "002-auth",
        "--no-wait",
        "--prompt",
        "P",
        "--agent",
        "claude",
    ];
    env.json(6, &[&run[..], &["--", "./claude", "-p"]].concat());
    assert_eq!(env.json(0, &["status"])["failure"]["type"], "agent_error");
    let view = env.state_json("recover/battles/002-auth/b.json");
    assert_eq!(
        (&view["id"], &view["taskId"], &view["basePrompt"]),
        (&"b".into(), &"002-auth".into(), &"P".into())
    );
    assert_eq!(view["currentIteration"], 1);
    let failure = &view["failure"];
    assert_eq!(
        keys(failure),
        [
            "type",
            "timestamp",
            "iteration",
            "message",
            "details",
            "recoverable",
            "suggestedAction"
        ]
    );
    assert_eq!(
        (&failure["type"], &failure["iteration"]),
        (&"claude_error".into(), &1.into())
    );
    let checkpoint = &view["checkpoints"][0];
    for key in [
        "id",
        "battleId",
        "afterIteration",
        "storageType",
        "commitHash",
        "timestamp",
        "description",
        "feedbackResults",
    ] {
        assert!(keys(checkpoint).contains(&key), "{key}: {checkpoint}");
    }
    assert_eq!(
        (&checkpoint["afterIteration"], &checkpoint["battleId"]),
        (&0.into(), &"b".into())
    );
    let iteration = &view["iterations"][0];
    assert_eq!(
        (
            &iteration["number"],
            &iteration["retryCount"],
            &iteration["success"]
        ),
        (&1.into(), &0.into(), &false.into())
    );
}

// B13, B12: what a checkpoint changed, where its patch is, and the commit that is on the branch.
#[test]
fn the_battle_view_names_files_patch_and_commit() {
    let env = TestEnv::repo();
    let view = || env.state_json("recover/battles/t/b.json")["checkpoints"].clone();
    let create = |storage: &str| {
        env.json(
            0,
            &[
                "--run",
                "b",
                "--task",
                "t",
                "checkpoint",
                "create",
                "--storage",
                storage,
            ],
        )["checkpoint"]
            .clone()
    };
    create("snapshot");
    env.write("src/b.txt", "b\n");
    env.sh("rm a.txt").expect(0);
    let commit = create("commit");
    env.write("src/c.txt", "c\n");
    let patch = create("patch");
    assert_eq!(view()[0]["files"], serde_json::json!([]));
    assert_eq!(
        view()[1]["files"],
        serde_json::json!(["a.txt", "src/b.txt"])
    );
    assert_eq!(
        (&view()[1]["commitHash"], &view()[1]["storageType"]),
        (&commit["branch_commit"], &"commit".into())
    );
    assert_eq!(
        view()[1]["commitHash"],
        env.git(&["rev-parse", "HEAD"]).trim()
    );
    assert_eq!(
        (&view()[2]["files"], &view()[2]["patchPath"]),
        (&serde_json::json!(["src/c.txt"]), &patch["patch_path"])
    );
    let file = std::fs::read_to_string(patch["patch_path"].as_str().unwrap()).unwrap();
    assert_eq!(view()[2]["patch"], file);
    assert_eq!(
        (&view()[2]["commitHash"], view()[1].get("patch")),
        (&patch["commit"], None)
    );
    // Nothing was left to commit: it is the branch's commit all the same.
    env.sh("git add -A && git commit -qm theirs").expect(0);
    create("commit");
    assert_eq!(
        view()[3]["commitHash"],
        env.git(&["rev-parse", "HEAD"]).trim()
    );
    // No more than the record may hold.
    env.sh("mkdir many; cd many; for n in $(seq 250); do echo $n > $n; done")
        .expect(0);
    let many = create("snapshot");
    assert_eq!(
        (
            many["changes"]["created"].as_u64(),
            many["changed_paths"].as_array().map(Vec::len)
        ),
        (Some(250), Some(200))
    );
}

// B2: the seed's name is understood where a type is given.
#[test]
fn claude_error_is_an_alias() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[[rule]]\nid = 'mine'\npattern = 'gizmo'\ncause = 'UNKNOWN'\ntype = 'claude_error'\n",
    );
    env.write("err", "gizmo broke\n");
    let failure = env.json(0, &["classify", "--stderr", "err", "--exit-code", "1"]);
    assert_eq!(
        (&failure["type"], &failure["evidence"][0]["rule"]),
        (&"agent_error".into(), &"mine".into())
    );
}

// Contract: a deleted or damaged view is written again by the next command that writes.
#[test]
fn views_are_written_again() {
    let env = TestEnv::repo();
    env.json(0, &["run", "--run", "r", "--task", "t", "--", "true"]);
    let views = [
        "recovery.json",
        "attempt_history.json",
        "recover/battles/t/r.json",
    ];
    let read = |view: &str| env.read(&format!(".ultraplan/state/{view}"));
    std::fs::remove_file(env.work().join(".ultraplan/state/recovery.json")).unwrap();
    env.write(".ultraplan/state/attempt_history.json", [0xff, 0]);
    env.write(".ultraplan/state/recover/battles/t/r.json", "[]");
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    for view in views {
        assert!(
            serde_json::from_str::<Value>(&read(view))
                .unwrap()
                .is_object(),
            "{view}"
        );
    }
}

// C1, C2, C3, C7: the lane's records, the latest of each stage.
#[test]
fn lane_records_are_replaced_by_stage() {
    let env = TestEnv::repo();
    env.json(
        0,
        &[
            "checkpoint",
            "create",
            "--run",
            "P1-X",
            "--phase",
            "P1",
            "--lane",
            "SL-1",
        ],
    );
    assert_eq!(
        env.state_json("checkpoints.json"),
        serde_json::json!([]),
        "no stage, no record"
    );
    let stage = |stage: &str, status: &str, more: &[&str]| {
        let create = [
            "checkpoint",
            "create",
            "--run",
            "P1-X",
            "--phase",
            "P1",
            "--lane",
            "SL-1",
            "--stage",
            stage,
            "--status",
            status,
        ];
        env.json(0, &[&create[..], more].concat());
    };
    stage(
        "before_lane_start",
        "ready",
        &["--base-branch", "main", "--notes", "n"],
    );
    stage(
        "after_lane_tests",
        "failed",
        &["--test-command", "make test", "--exit-code", "2"],
    );
    stage(
        "after_lane_tests",
        "complete",
        &["--test-command", "make test", "--exit-code", "0"],
    );
    let view = env.state_json("checkpoints.json");
    let records = view.as_array().expect("a JSON array");
    assert_eq!(records.len(), 2);
    let record = &records[0];
    for key in [
        "run_id",
        "phase",
        "lane",
        "stage",
        "status",
        "base_branch",
        "worktree_path",
        "log_path",
        "timestamp",
        "notes",
        "resume_hint",
        "rollback_hint",
    ] {
        assert!(!record[key].is_null(), "{key}: {record}");
    }
    assert_eq!(
        (&records[1]["status"], &records[1]["exit_code"]),
        (&"complete".into(), &0.into())
    );
    assert!(record["resume_hint"].as_str().unwrap().contains("--resume"));
    // C4, C6: a lane is told where it stands whatever its state, in text and in the document.
    let lane = [
        "--resume", "--run", "P1-X", "--phase", "P1", "--lane", "SL-1",
    ];
    let resumed = env.json(0, &lane);
    assert_eq!(
        (&resumed["changed"], &resumed["current_stage"]),
        (&false.into(), &"after_lane_tests".into())
    );
    assert!(std::path::Path::new(resumed["checkpoint_path"].as_str().unwrap()).exists());
    let told = env.recover(&lane).expect(0).stdout;
    assert!(
        told.contains("Stage:") && told.contains("stage:before_lane_start"),
        "{told}"
    );
    // C5, C6: what a rollback tells, and that its hint works from anywhere.
    env.write("a.txt", "broken\n");
    let back = record["rollback_hint"].as_str().unwrap().replacen(
        "recover",
        env!("CARGO_BIN_EXE_recover"),
        1,
    );
    let told = env
        .sh(&format!("cd / && {back} --edits discard"))
        .expect(0)
        .stdout;
    assert_eq!(env.read("a.txt"), "one\n");
    for part in [
        "Stage:",
        "before_lane_start (ready)",
        ".ultraplan/state/checkpoints.json",
        "Resume:",
        "stage:before_lane_start",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

// C1: the records' file is configurable.
#[test]
fn the_lane_file_is_configurable() {
    let env = TestEnv::repo();
    let file = ".claude/ai-dev-kit/run-logs/checkpoints.json";
    env.write(
        ".ultraplan/recover.toml",
        format!("[checkpoint]\nlane_file = '{file}'\n"),
    );
    env.json(
        0,
        &[
            "checkpoint",
            "create",
            "--stage",
            "before_lane_start",
            "--status",
            "ready",
        ],
    );
    assert_eq!(
        serde_json::from_str::<Value>(&env.read(file))
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(!env.exists(".ultraplan/state/checkpoints.json"));
    // It is ours, not the run's: a rollback neither takes it for a person's edit nor puts it back.
    env.write("a.txt", "two\n");
    env.json(
        0,
        &[
            "checkpoint",
            "create",
            "--stage",
            "pre_pr",
            "--status",
            "ready",
        ],
    );
    env.json(0, &["rollback", "--to", "stage:before_lane_start"]);
    assert_eq!(env.read("a.txt"), "one\n");
    assert_eq!(
        serde_json::from_str::<Value>(&env.read(file))
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

// Lanes of one run keep logs and views of their own.
#[test]
fn lanes_of_one_run_do_not_share_files() {
    let env = TestEnv::repo();
    for lane in ["a", "b"] {
        let run = [
            "run",
            "--run",
            "r",
            "--lane",
            lane,
            "--",
            "sh",
            "-c",
            "echo out-$RECOVER_LANE-$0",
            lane,
        ];
        env.json(0, &run);
    }
    let log = |lane: &str| {
        let status = env.json(0, &["status", "--run", "r", "--lane", lane]);
        std::fs::read_to_string(
            status["iterations"][0]["attempts"][0]["log_path"]
                .as_str()
                .unwrap(),
        )
        .unwrap()
    };
    assert!(
        log("a").contains("-a") && log("b").contains("-b"),
        "{} {}",
        log("a"),
        log("b")
    );
    let views = std::fs::read_dir(env.work().join(".ultraplan/state/recover/battles/-"))
        .unwrap()
        .count();
    assert_eq!(views, 2);
}

// A3: a subtask that is in the view is there whole, however many runs have ended since it was worked on first.
#[test]
fn a_subtask_in_the_view_has_all_its_attempts() {
    let env = TestEnv::repo();
    let history = json!({"subtasks": {"T1": {"status": "completed", "attempts": [
        {"session": 1, "timestamp": "2026-01-01T00:00:00Z", "approach": "OLD-a", "success": false, "error": "x"},
        {"session": 1, "timestamp": "2026-01-01T00:01:00Z", "approach": "OLD-b", "success": true, "error": null},
    ]}}, "stuck_subtasks": []});
    env.write("../ah.json", history.to_string());
    env.json(0, &["import", "../ah.json"]);
    let run = |id: &str, task: &str, code: i32, command: &str| {
        env.recover(&[
            "--run",
            id,
            "--task",
            task,
            "run",
            "--iterations",
            "1",
            "--attempts",
            "1",
            "--",
            "sh",
            "-c",
            command,
        ])
        .expect(code);
    };
    run("first", "T9", 0, "true");
    for number in 0..10 {
        run(
            &format!("between-{number}"),
            &format!("other-{number}"),
            0,
            "true",
        );
    }
    run("again", "T9", 0, "true");
    for _ in 0..2 {
        env.json(
            0,
            &[
                "--run",
                "new",
                "attempt",
                "start",
                "--subtask",
                "T1",
                "--approach",
                "NEW",
            ],
        );
        env.json(
            0,
            &[
                "--run",
                "new",
                "attempt",
                "fail",
                "--no-rollback",
                "--message",
                "no",
            ],
        );
    }
    let (view, list) = (
        env.state_json("attempt_history.json"),
        env.json(0, &["attempt", "list"]),
    );
    for subtask in ["T1", "T9/iteration-1"] {
        assert_eq!(
            view["subtasks"][subtask], list["subtasks"][subtask],
            "{subtask}"
        );
    }
    assert_eq!(
        view["subtasks"]["T1"]["attempts"].as_array().map(Vec::len),
        Some(4),
        "{view}"
    );
    assert_eq!(
        view["subtasks"]["T9/iteration-1"]["attempts"]
            .as_array()
            .map(Vec::len),
        Some(2),
        "{view}"
    );
    assert_eq!(view["stuck_subtasks"], list["stuck_subtasks"]);
    assert!(view["subtasks"]["other-0/iteration-1"].is_null(), "{view}");
}

// C1: a file that holds something else stays what it is; a view that was damaged is written again.
#[test]
fn a_file_in_the_place_of_the_lane_records_is_not_written_over() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nlane_file = 'a.txt'\n",
    );
    let create = [
        "checkpoint",
        "create",
        "--lane",
        "L",
        "--stage",
        "pre_pr",
        "--status",
        "ready",
    ];
    let refused = env.json(2, &create);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("holds no lane records"),
        "{refused}"
    );
    assert_eq!(env.read("a.txt"), "one\n");
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nlane_file = 'records.json'\n",
    );
    for there in ["", "[]\n", "[{\"damaged\":"] {
        env.write("records.json", there);
        env.json(0, &create);
        assert_eq!(
            serde_json::from_str::<Value>(&env.read("records.json"))
                .unwrap()
                .as_array()
                .unwrap()
                .len(),
            1
        );
    }
}

// What is left out is what would be listed: the checkpoints before restores never are.
#[test]
fn the_battle_view_counts_only_what_it_would_list() {
    let env = TestEnv::repo();
    let create = |content: &str| {
        env.write("a.txt", content);
        env.json(0, &["checkpoint", "create", "--run", "m"]);
    };
    create("first");
    for _ in 0..3 {
        env.write("a.txt", "edited");
        env.json(
            0,
            &[
                "rollback", "--run", "m", "--to", "latest", "--edits", "discard",
            ],
        );
    }
    (1..=101).for_each(|number| create(&number.to_string()));
    let all = env.json(0, &["checkpoint", "list", "--run", "m"]);
    let all = all["checkpoints"].as_array().unwrap();
    let listed = all.iter().filter(|one| one["trigger"] != "safety").count();
    assert!(listed < all.len(), "{listed} of {}", all.len());
    let view = env.state_json("recover/battles/-/m.json");
    let shown = view["checkpoints"].as_array().unwrap().len();
    assert_eq!(
        shown + usize::try_from(view["checkpointsLeftOut"].as_u64().unwrap_or(0)).unwrap(),
        listed
    );
}

// A power cut may leave a view empty, or full of zeros: that is damage, and nobody else's file.
#[test]
fn what_a_power_cut_leaves_of_a_view_is_written_again() {
    let env = TestEnv::repo();
    env.json(0, &["attempt", "start", "--run", "m", "--phase", "p"]);
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "m",
            "--message",
            "odd",
            "--no-rollback",
        ],
    );
    env.json(0, &["attempt", "start", "--run", "m"]);
    env.json(0, &["sync"]);
    for view in [
        "recovery.json",
        "attempt_history.json",
        "checkpoints.json",
        "active_checkpoint.json",
    ] {
        for left in [&b""[..], b"\n", &[0; 64]] {
            env.write_state(view, left);
            let status = env.recover(&["status", "--run", "m"]).expect(0);
            assert!(
                !status.stderr.contains("not written by recover"),
                "{view}: {}",
                status.stderr
            );
            let synced = env.recover(&["sync"]).expect(0);
            assert!(
                !synced.stderr.contains("not written by recover"),
                "{view}: {}",
                synced.stderr
            );
            assert!(
                env.state_json(view).is_object() || view == "checkpoints.json",
                "{view}"
            );
            assert!(
                !env.exists(".ultraplan/state/recover/damaged"),
                "{view}: nothing is there to be kept"
            );
        }
        // What cannot be read may have been somebody's all the same.
        env.write_state(view, "{\"torn");
        let synced = env.recover(&["sync"]).expect(0);
        assert!(
            !synced.stderr.contains("taken over"),
            "{view}: {}",
            synced.stderr
        );
        assert!(
            env.state_json(view).is_object() || view == "checkpoints.json",
            "{view}"
        );
        assert_eq!(
            env.read_state(&format!("recover/damaged/{view}")),
            "{\"torn"
        );
        env.sh("rm -r .ultraplan/state/recover/damaged").expect(0);
    }
    assert_eq!(env.read_state("checkpoints.json").trim(), "[]");
    assert!(
        !env.exists(".ultraplan/state/recover/before"),
        "nobody else wrote there"
    );
}

// The same by the next event: nobody has to ask for it.
#[test]
fn an_empty_file_of_lane_records_does_not_stay() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create", "--run", "m"]);
    env.write_state("checkpoints.json", "");
    env.write("a.txt", "two\n");
    env.json(0, &["checkpoint", "create", "--run", "m"]);
    assert_eq!(env.read_state("checkpoints.json").trim(), "[]");
}
