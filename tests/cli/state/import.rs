//! The source systems' files in and out: `import`, `sync`, `checkpoint export --format seed-json`.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::seen::{checkpoint, text};

/// The documents of the five specifications.
fn battle(commit: &str) -> Value {
    json!({
        "id": "battle-7", "taskId": "002-auth-system", "status": "failed", "currentIteration": 2,
        "basePrompt": "Build the auth system.", "config": {"autoCommit": true},
        "iterations": [
            {"number": 1, "status": "completed", "startedAt": "2024-01-15T14:00:00Z", "completedAt": "2024-01-15T14:12:00Z",
             "output": "done", "retryCount": 0, "summary": {"headline": "Set up JWT middleware"},
             "feedbackResults": {"test": {"passed": true, "output": "8 passed", "duration": 2100}}},
            {"number": 2, "status": "failed", "startedAt": "2024-01-15T14:20:00Z", "completedAt": "2024-01-15T14:32:15Z",
             "output": null, "retryCount": 1, "feedbackResults": {"typecheck": {"passed": false, "output": "2 errors"}}}
        ],
        "checkpoints": [
            {"id": "cp-1", "battleId": "battle-7", "afterIteration": 0, "storageType": "commit", "commitHash": commit,
             "timestamp": "2024-01-15T14:00:00Z", "description": "Before battle", "files": [], "feedbackResults": {}},
            {"id": "cp-2", "battleId": "battle-7", "afterIteration": 1, "storageType": "commit",
             "commitHash": "def5678def5678def5678def5678def5678def56", "timestamp": "2024-01-15T14:12:00Z",
             "description": "Set up JWT middleware", "files": ["src/auth.ts"],
             "feedbackResults": {"test": {"passed": true}}}
        ],
        "failure": {"type": "feedback_failure", "timestamp": "2024-01-15T14:32:15Z", "iteration": 2,
            "message": "typecheck failed with 2 errors", "details": "src/auth.ts:23 - Type 'string | undefined' not assignable",
            "recoverable": true, "suggestedAction": "retry_iteration"}
    })
}

fn history() -> Value {
    json!({
        "subtasks": {"subtask-001": {"attempts": [
            {"session": 1, "timestamp": "2026-01-24T10:00:00Z", "approach": "Using async/await pattern", "success": false,
             "error": "Test failed: expected 200 got 404"},
            {"session": 1, "timestamp": "2026-01-24T10:15:00Z", "approach": "Using callback pattern", "success": false,
             "error": "Test failed: expected 200 got 500"}], "status": "failed"},
            "subtask-002": {"attempts": [], "status": "pending"}},
        "stuck_subtasks": []
    })
}

fn lanes() -> Value {
    json!([
        {"run_id": "P1-SL-AUTH-20251227", "phase": "P1", "lane": "SL-AUTH", "stage": "after_lane_start", "status": "complete",
         "base_branch": "main", "worktree_path": "/lanes/auth", "log_path": "/logs/run.jsonl",
         "timestamp": "2025-12-27T10:00:00Z", "notes": "n", "resume_hint": "x --resume", "rollback_hint": "x --rollback"},
        {"run_id": "P1-SL-AUTH-20251227", "phase": "P1", "lane": "SL-AUTH", "stage": "retry_attempt", "status": "retrying",
         "retry_attempt": 2, "max_retries": 3,
         "failure_context": ["Attempt 1: TypeError: undefined is not a function", "Test failed: AuthService.register"],
         "timestamp": "2025-12-27T10:30:00Z"}
    ])
}

/// C8: what a record of retries counts holds before it is imported, from wherever the lane is named, and after that.
#[test]
fn a_lanes_retries_are_not_given_back() {
    const LANE: [&str; 6] = [
        "--run",
        "P1-SL-AUTH-20251227",
        "--phase",
        "P1",
        "--lane",
        "SL-AUTH",
    ];
    let named = |words: &[&'static str]| [words, &LANE[..]].concat();
    for (attempt, status, used, left) in [
        (2, "retrying", 2, Some(2)),
        (3, "retrying", 3, Some(1)),
        (3, "failed", 4, Some(0)),
    ] {
        let env = TestEnv::repo();
        let mut records = lanes();
        records[1]["retry_attempt"] = attempt.into();
        records[1]["status"] = status.into();
        env.write(".ultraplan/state/checkpoints.json", records.to_string());
        let before = env.json(0, &named(&["status"]));
        assert_eq!(before["retry"]["error_count"], used, "{before}");
        let count = env.json(0, &named(&["retry-status"]));
        assert_eq!(
            (&count["error_count"], &count["attempts_left"]),
            (&used.into(), &json!(left)),
            "{count}"
        );
        let imported = env.json(0, &["import", ".ultraplan/state/checkpoints.json"]);
        assert_eq!(imported["files"][0]["attempts"], used, "{imported}");
        let count = env.json(0, &named(&["retry-status"]));
        assert_eq!(
            (&count["error_count"], &count["attempts_left"]),
            (&used.into(), &json!(left)),
            "{count}"
        );
        let code = env.recover(&named(&["retry-status", "--check"])).code;
        assert_eq!(code == 0, left > Some(0), "{code}");
        assert_eq!(
            env.json(0, &named(&["status"]))["retry"]["last_error"],
            "Test failed: AuthService.register"
        );
        // The same file once more gives nothing, and takes nothing.
        env.write("again.json", records.to_string());
        assert_eq!(env.json(0, &["import", "again.json"])["changed"], false);
        // Another lane is not known by it.
        env.error(4, &["status", "--run", "P1-SL-OTHER"]);
    }
}

fn session() -> Value {
    json!({
        "checkpoint_id": "ckpt_20240115_103000", "session_id": "ses_abc123", "timestamp": "2024-01-15T10:30:00Z",
        "phase": "EXECUTE", "task_id": "task_005",
        "state": {"working_memory": {"current_task": "Implementing authentication", "decisions_made": ["Using JWT"]},
            "file_states": {"src/auth.ts": {"checksum": "abc123", "last_modified": "2024-01-15T10:29:00Z", "size_bytes": 4500}}},
        "previous_checkpoint": "ckpt_20240115_102500"
    })
}

fn recovery() -> Value {
    json!({"isRecovering": true, "lastErrorAt": "2026-03-01T11:59:58.000Z", "errorCount": 2, "lastError": "boom",
           "cooldownUntil": "2026-03-01T12:00:03.000Z"})
}

/// An environment with a still clock and the five files beside the work tree.
fn sources() -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", crate::run::supervision::NOW);
    let head = env.git(&["rev-parse", "HEAD"]);
    for (name, document) in [
        ("battle", battle(head.trim())),
        ("attempt_history", history()),
        ("checkpoints", lanes()),
        ("session", session()),
        ("recovery", recovery()),
    ] {
        env.write(&format!("../src/{name}.json"), document.to_string());
    }
    env
}

fn events(env: &TestEnv) -> String {
    env.read(".ultraplan/state/events.jsonl")
}

// B13, A3, C1, S11, L1: every file comes back from its view with the same content; the same again changes nothing.
#[test]
fn every_source_file_comes_back_from_its_view() {
    let env = sources();
    let imported = env.json(0, &["import", "../src"]);
    assert_eq!(
        (
            &imported["changed"],
            imported["files"].as_array().unwrap().len()
        ),
        (&true.into(), 5)
    );
    let head = env.git(&["rev-parse", "HEAD"]);
    assert_eq!(
        env.state_json("recover/battles/002-auth-system/battle-7.json"),
        battle(head.trim())
    );
    assert_eq!(env.state_json("attempt_history.json"), history());
    assert_eq!(env.state_json("checkpoints.json"), lanes());
    assert_eq!(env.state_json("active_checkpoint.json"), session());
    assert_eq!(env.state_json("recovery.json"), recovery());

    let before = events(&env);
    let again = env.json(0, &["import", "../src"]);
    assert_eq!(again["changed"], false);
    assert_eq!(
        again["files"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|file| file["changed"] == true)
            .count(),
        0
    );
    assert_eq!(events(&env), before);
    assert_eq!(env.json(0, &["sync"])["changed"], false);
    env.json(0, &["doctor"]);
}

// A3: the list tells what was imported just as the view does: session numbers, subtasks without attempts and those that
// were given up, also where that is all that is known of them. An attempt more goes on from there.
#[test]
fn the_list_tells_the_whole_imported_history() {
    let env = TestEnv::repo();
    let attempt = |session: u64, at: &str, success: bool| {
        let error = if success { Value::Null } else { "boom".into() };
        json!({"session": session, "timestamp": format!("2026-01-24T{at}:00.000Z"), "approach": format!("way {at}"),
               "success": success, "error": error})
    };
    let stuck = json!({"subtask_id": "st1", "reason": "circular", "escalated_at": "2026-01-24T12:00:00.000Z", "attempt_count": 7});
    let history = json!({
        "subtasks": {
            "st1": {"attempts": [attempt(2, "10:00", false), attempt(4, "11:00", false)], "status": "stuck"},
            "st2": {"attempts": [attempt(3, "10:30", true)], "status": "completed"},
            "st3": {"attempts": [], "status": "pending"},
        },
        "stuck_subtasks": [stuck, "st9"],
    });
    env.write("../history.json", history.to_string());
    env.json(0, &["import", "../history.json"]);
    assert_eq!(env.state_json("attempt_history.json"), history);
    let list = env.json(0, &["attempt", "list"]);
    assert_eq!(list["subtasks"], history["subtasks"]);
    assert_eq!(list["stuck_subtasks"][0], stuck);
    assert_eq!(
        (
            &list["stuck_subtasks"][1]["subtask_id"],
            &list["stuck_subtasks"][1]["attempt_count"]
        ),
        (&"st9".into(), &0.into())
    );
    let shown = env.recover(&["attempt", "list"]).expect(0).stdout;
    assert!(
        shown.contains("st3") && shown.contains("given up: st1 (circular)"),
        "{shown}"
    );
    env.json(
        0,
        &[
            "attempt",
            "start",
            "--subtask",
            "st1",
            "--approach",
            "another",
        ],
    );
    env.json(0, &["attempt", "pass"]);
    let list = env.json(0, &["attempt", "list"]);
    let sessions: Vec<_> = list["subtasks"]["st1"]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["session"].clone())
        .collect();
    assert_eq!(
        (sessions, &list["subtasks"]["st1"]["status"]),
        (vec![2.into(), 4.into(), 5.into()], &"completed".into())
    );
    assert_eq!(
        (&list["subtasks"]["st2"], &list["subtasks"]["st3"]),
        (&history["subtasks"]["st2"], &history["subtasks"]["st3"])
    );
    assert!(
        !list["stuck_subtasks"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["subtask_id"] == "st1"),
        "{list}"
    );
    assert_eq!(
        env.state_json("attempt_history.json")["subtasks"],
        list["subtasks"]
    );
}

// B1, L1, L2, L4: what was imported holds: the battle's failure, the loop's count and cooldown.
#[test]
fn what_was_imported_holds() {
    let env = sources();
    env.json(0, &["import", "../src"]);
    let status = env.json(0, &["status", "--run", "battle-7"]);
    assert_eq!(
        (&status["failure"]["type"], &status["failure"]["iteration"]),
        (&"feedback_failure".into(), &2.into())
    );
    assert_eq!(
        (
            &status["run"]["current_iteration"],
            &status["run"]["task_id"]
        ),
        (&2.into(), &"002-auth-system".into())
    );
    assert_eq!(
        status["iterations"][1]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let retry = env.json(6, &["retry-status", "--check"]);
    assert_eq!(
        (&retry["error_count"], &retry["wait_ms"]),
        (&2.into(), &3000.into())
    );
    assert_eq!(retry["cooldown_until"], "2026-03-01T12:00:03.000Z");
    // The loop goes on counting where it stood.
    env.json(
        0,
        &["attempt", "fail", "--message", "boom", "--exit-code", "1"],
    );
    assert_eq!(env.state_json("recovery.json")["errorCount"], 3);
    // The battle is resumed as any failed run, and its view goes on.
    env.json(
        0,
        &[
            "resume",
            "battle-7",
            "--strategy",
            "retry_same",
            "--",
            "true",
        ],
    );
    let view = env.state_json("recover/battles/002-auth-system/battle-7.json");
    assert_eq!(view["iterations"][1]["status"], "completed");
    assert_eq!(
        view["checkpoints"][0]["id"], "cp-1",
        "its checkpoints of then stay listed"
    );
}

// B13: another system's checkpoint is a record; whether its commit is here is said, and nothing is made up.
#[test]
fn checkpoints_of_other_systems_are_listed_as_what_they_are() {
    let env = sources();
    let imported = env.json(0, &["import", "../src/battle.json"]);
    let told = imported["files"][0]["checkpoints"].as_array().unwrap();
    assert_eq!(
        (
            told[0]["in_repository"].clone(),
            told[1]["in_repository"].clone()
        ),
        (true.into(), false.into())
    );
    let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
    assert_eq!(list["checkpoints"], json!([]));
    assert_eq!(list["imported"].as_array().unwrap().len(), 2);
    for (id, word) in [
        ("cp-1", "is in this repository"),
        ("cp-2", "is not in this repository"),
    ] {
        let error = env.json(4, &["rollback", "--to", id]);
        assert!(text(&error["error"]["message"]).contains(word), "{error}");
    }
    assert!(
        env.recover(&["checkpoint", "list", "--all-runs"])
            .stdout
            .contains("def5678")
    );
}

// A plan says what would be recorded, and nothing is; a file that has grown adds what is new.
#[test]
fn a_dry_run_plans_and_a_file_that_grew_adds_what_is_new() {
    let env = sources();
    let plan = env.json(0, &["--dry-run", "import", "../src/attempt_history.json"]);
    assert_eq!(
        (&plan["changed"], &plan["plan"]["files"][0]["attempts"]),
        (&false.into(), &2.into())
    );
    assert!(!env.exists(".ultraplan/state/events.jsonl"));
    env.json(0, &["import", "../src/attempt_history.json"]);
    let mut grown = history();
    let third = json!({"session": 2, "timestamp": "2026-01-25T10:00:00Z", "approach": "A third way", "success": true});
    grown["subtasks"]["subtask-001"]["attempts"]
        .as_array_mut()
        .unwrap()
        .push(third);
    grown["subtasks"]["subtask-001"]["status"] = "completed".into();
    env.write("../src/attempt_history.json", grown.to_string());
    let added = env.json(0, &["import", "../src/attempt_history.json"]);
    assert_eq!(added["files"][0]["attempts"], 1);
    assert_eq!(env.state_json("attempt_history.json"), grown);
    let listed = env.json(0, &["attempt", "list"]);
    assert_eq!(
        listed["subtasks"]["subtask-001"]["attempts"][2]["timestamp"],
        "2026-01-25T10:00:00.000Z"
    );
}

// Our own views are no news.
#[test]
fn our_own_views_add_nothing() {
    let env = TestEnv::repo();
    env.json(
        0,
        &[
            "checkpoint",
            "create",
            "--run",
            "R",
            "--lane",
            "L",
            "--stage",
            "before_lane_start",
            "--status",
            "ready",
        ],
    );
    let before = events(&env);
    let views = [
        ".ultraplan/state/checkpoints.json",
        ".ultraplan/state/active_checkpoint.json",
    ];
    for view in views {
        assert_eq!(env.json(0, &["import", view])["changed"], false, "{view}");
    }
    assert_eq!(events(&env), before);
}

// A3, L1: an old copy of a view tells what the ledger went through; it is not taken over as somebody else's. Whatever is
// not surely so is.
#[test]
fn old_copies_of_our_own_views_add_nothing() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\ncooldown_ms = 1\n[retry]\nbase_delay = '1ms'\nmax_delay = '1ms'\n",
    );
    let views = ["recovery.json", "attempt_history.json"];
    let mut copies = Vec::new();
    let mut copy = |name: &str| {
        for view in views {
            let path = format!("../copies/{name}-{view}");
            env.write(&path, env.read(&format!(".ultraplan/state/{view}")));
            copies.push(path);
        }
    };
    let start = |approach: &str| {
        env.json(
            0,
            &[
                "attempt",
                "start",
                "--run",
                "R",
                "--subtask",
                "s",
                "--approach",
                approach,
            ],
        )
    };
    start("one");
    copy("under-way");
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--message",
            "first trouble",
            "--exit-code",
            "1",
        ],
    );
    copy("one-failed");
    start("two");
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--message",
            "second trouble",
            "--exit-code",
            "1",
        ],
    );
    copy("two-failed");
    start("three");
    env.json(0, &["attempt", "pass"]);
    copy("passed");
    env.json(0, &["attempt", "start", "--run", "R", "--subtask", "other"]);
    let before = events(&env);
    for path in &copies {
        for args in [&["--dry-run", "import", path][..], &["import", path]] {
            let told = env.json(0, args);
            let file = if args.len() == 3 {
                &told["plan"]["files"][0]
            } else {
                &told["files"][0]
            };
            assert_eq!(
                (&told["changed"], &file["changed"], &file["runs"]),
                (&false.into(), &false.into(), &json!([])),
                "{path}"
            );
            assert!(
                text(&file["message"]).contains("what the ledger holds")
                    || file["message"] == "the ledger has it already",
                "{path}: {file}"
            );
        }
        assert!(
            env.recover(&["import", path])
                .expect(0)
                .stdout
                .contains("Nothing new")
        );
    }
    assert_eq!(events(&env), before);
    // One thing that is not known, and it is not recover's.
    let edit = |view: &str, from: &str, to: &str| {
        let content = env.read(&format!("../copies/two-failed-{view}"));
        assert!(content.contains(from), "{content}");
        env.write("../edited.json", content.replace(from, to));
        let told = env.json(0, &["--dry-run", "import", "../edited.json"]);
        assert_eq!(told["plan"]["changed"], true, "{view}: {from}");
    };
    edit("recovery.json", "second trouble", "another trouble");
    edit("recovery.json", "\"errorCount\": 2", "\"errorCount\": 1");
    edit("attempt_history.json", "first trouble", "another trouble");
    edit("attempt_history.json", "\"one\"", "\"a third\"");
    edit(
        "attempt_history.json",
        "attempts for UNKNOWN",
        "attempts for something else",
    );
    edit("attempt_history.json", "\"s\":", "\"t\":");
    // A run that is named is one to take it over into.
    let into = [
        "--dry-run",
        "import",
        "--run",
        "N",
        "../copies/two-failed-recovery.json",
    ];
    assert_eq!(env.json(0, &into)["plan"]["files"][0]["attempts"], 2);
}

// Rubbish is refused with its place, and nothing of anything is recorded.
#[test]
fn rubbish_is_refused_with_its_place() {
    let env = sources();
    let refused = |code: i32, content: &str, part: &str| {
        env.write("../src/zzz.json", content);
        let error = env.json(code, &["import", "../src"]);
        let message = text(&error["error"]["message"]);
        assert!(
            message.contains("zzz.json") && message.contains(part),
            "{message}"
        );
        assert!(!env.exists(".ultraplan/state/events.jsonl"), "{part}");
    };
    refused(12, "{\"subtasks\": {", "line 1 column");
    refused(12, "", "line 1 column");
    refused(2, "{}", "none of the files");
    refused(2, "[1, 2]", "none of the files");
    refused(12, r#"[{"run_id": "r", "stage": "somewhere"}]"#, "/0/stage");
    refused(12, r#"{"errorCount": "many"}"#, "/errorCount");
    refused(
        12,
        r#"{"id": "b", "iterations": [{"startedAt": "yesterday"}]}"#,
        "/iterations/0/startedAt",
    );
    refused(
        12,
        r#"{"subtasks": {"s": {"attempts": [{"success": 1}]}}}"#,
        "/subtasks/s/attempts/0/success",
    );
    let error = env.json(12, &["import", "../src/recovery.json", "--kind", "battle"]);
    assert!(
        text(&error["error"]["message"]).contains("no 'id'"),
        "{error}"
    );
    env.json(2, &["import", "../src/nowhere.json"]);
    env.json(2, &["import", "../src/recovery.json", "--kind", "nothing"]);
}

// Views are written again from the ledger, and it is told which; into a folder as the other systems have them.
#[test]
fn views_are_synced() {
    let env = sources();
    env.json(0, &["import", "../src"]);
    env.json(0, &["checkpoint", "create", "--run", "own"]);
    env.write(".ultraplan/state/recovery.json", "{");
    std::fs::remove_file(env.work().join(".ultraplan/state/active_checkpoint.json")).unwrap();
    let planned = env.json(0, &["--dry-run", "sync"]);
    assert_eq!(
        (
            &planned["changed"],
            planned["written"].as_array().unwrap().len()
        ),
        (&false.into(), 2)
    );
    let synced = env.json(0, &["sync"]);
    assert_eq!(
        (&synced["changed"], &synced["written"]),
        (&true.into(), &planned["written"])
    );
    assert_eq!(env.json(0, &["sync"])["changed"], false);

    let to = env.json(0, &["sync", "--to", "../out"]);
    assert_eq!(to["changed"], true);
    let read =
        |path: &str| serde_json::from_str::<Value>(&env.read(&format!("../out/{path}"))).unwrap();
    assert_eq!(
        read("checkpoints/session_ses_abc123/ckpt_20240115_103000.json"),
        session()
    );
    assert_eq!(read("attempt_history.json"), history());
    let head = env.git(&["rev-parse", "HEAD"]);
    assert_eq!(
        read("battles/002-auth-system/battle-7.json"),
        battle(head.trim())
    );
    assert_eq!(env.json(0, &["sync", "--to", "../out"])["changed"], false);
    // All of it comes in again elsewhere.
    let other = TestEnv::repo();
    let out = env.root().join("out");
    other.json(0, &["import", &out.to_string_lossy()]);
    assert_eq!(other.state_json("attempt_history.json"), history());
}

// S2, S11: a session's checkpoint with the state of every file and the working memory.
#[test]
fn a_checkpoint_is_exported_in_the_sessions_format() {
    let env = TestEnv::repo();
    env.write(".ultraplan/state/plan.json", "{\"step\": 3}");
    let first = checkpoint(&env);
    env.write("b.txt", "two\n");
    let id = checkpoint(&env);
    let active = env.state_json("active_checkpoint.json");
    let keys: Vec<&str> = active
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let fields = [
        "checkpoint_id",
        "session_id",
        "timestamp",
        "phase",
        "task_id",
        "state",
        "previous_checkpoint",
    ];
    assert_eq!(keys, fields);
    assert_eq!(
        (&active["checkpoint_id"], &active["previous_checkpoint"]),
        (&id.clone().into(), &first.into())
    );

    let exported = env.json(0, &["checkpoint", "export", &id, "--format", "seed-json"]);
    let path = text(&exported["path"]);
    assert!(
        path.contains("/session_") && path.ends_with(&format!("{id}.json")),
        "{path}"
    );
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let keys: Vec<&str> = document
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, fields);
    let file = &document["state"]["file_states"]["b.txt"];
    assert_eq!(file["checksum"], env.git(&["hash-object", "b.txt"]).trim());
    assert_eq!(file["size_bytes"], 4);
    assert_eq!(document["state"]["working_memory"]["plan.json"]["step"], 3);
    let out = env
        .recover(&[
            "checkpoint",
            "export",
            &id,
            "--format",
            "seed-json",
            "-o",
            "-",
        ])
        .expect(0)
        .stdout;
    assert_eq!(
        serde_json::from_str::<Value>(&out).unwrap()["checkpoint_id"],
        id
    );
    // It is no other system's when it comes back.
    assert_eq!(env.json(0, &["import", &path])["changed"], false);
}

// S11, S2: the view of the latest checkpoint holds the working memory and the states of files as the export does, also
// after another one became the latest and after what it was made of is lost.
#[test]
fn the_latest_checkpoint_is_told_with_memory_and_files() {
    let env = TestEnv::repo();
    env.write(".ultraplan/state/plan.json", "{\"step\": 3}");
    env.write(".ultraplan/state/notes.md", "n\n");
    env.write(".ultraplan/state/token", "secret");
    env.sh(
        "chmod 600 .ultraplan/state/token; touch -d 2020-01-01T00:00:00Z a.txt; ln -s a.txt link",
    )
    .expect(0);
    let exported = |selector: &str| -> Value {
        let out = env
            .recover(&[
                "checkpoint",
                "export",
                selector,
                "--format",
                "seed-json",
                "-o",
                "-",
            ])
            .expect(0)
            .stdout;
        serde_json::from_str(&out).expect("JSON")
    };
    let same = || {
        let (active, document) = (env.state_json("active_checkpoint.json"), exported("latest"));
        assert_eq!(active["checkpoint_id"], document["checkpoint_id"]);
        let (told, whole) = (&active["state"], &document["state"]);
        assert_eq!(told["file_states"], whole["file_states"]);
        for file in ["plan.json", "notes.md", "current_task"] {
            assert_eq!(
                told["working_memory"][file], whole["working_memory"][file],
                "{file}"
            );
        }
        assert_eq!(
            (
                told["working_memory"].get("token"),
                &told["memory_left_out"]
            ),
            (None, &1.into()),
            "closed to others"
        );
        assert_eq!(told.get("file_states_left_out"), None);
    };
    let first = checkpoint(&env);
    same();
    assert_eq!(
        env.state_json("active_checkpoint.json")["state"]["working_memory"]["plan.json"]["step"],
        3
    );
    env.write("b/c.txt", "c\n");
    env.write(".ultraplan/state/notes.md", "m\n");
    checkpoint(&env);
    same();
    let whole = env.state_json("active_checkpoint.json");
    env.sh("rm .ultraplan/state/recover/active.json .ultraplan/state/active_checkpoint.json")
        .expect(0);
    env.json(0, &["sync"]);
    assert_eq!(env.state_json("active_checkpoint.json"), whole);
    assert_eq!(env.json(0, &["sync", "--dry-run"])["changed"], false);
    // Neither a safety checkpoint is it, nor one that a rollback went back over.
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(
        env.state_json("active_checkpoint.json")["checkpoint_id"],
        first
    );
    env.json(0, &["undo"]);
    env.sh("rm -rf .ultraplan/state").expect(0);
    env.json(0, &["doctor", "--rebuild"]);
    env.json(0, &["sync"]);
    assert_eq!(
        env.state_json("active_checkpoint.json")["state"]["file_states"],
        whole["state"]["file_states"]
    );
}

// S2: no more than the limit of a state; what changed comes first.
#[test]
fn the_view_of_the_latest_checkpoint_stays_small() {
    let env = TestEnv::repo();
    env.sh("mkdir many; cd many; for n in $(seq 1500); do echo $n > file-$n; done")
        .expect(0);
    env.write("z/last", "1\n");
    checkpoint(&env);
    env.write("z/last", "2\n");
    env.write(".ultraplan/state/big", "x".repeat(60 << 10));
    checkpoint(&env);
    let state = env.state_json("active_checkpoint.json")["state"].clone();
    assert_eq!(state["file_states"]["z/last"]["size_bytes"], 2);
    assert_eq!(
        state["working_memory"]["big"].as_str().map(str::len),
        Some(60 << 10)
    );
    let told = state["file_states"]
        .as_object()
        .map_or(0, serde_json::Map::len) as u64;
    assert!((100..700).contains(&told), "{told}");
    // All of them: the repository's own file, those many and the last.
    assert_eq!(state["file_states_left_out"], 1502 - told);
    assert!(
        state.to_string().len() < 110 << 10,
        "{}",
        state.to_string().len()
    );
}

// A folder of our own views, of runs of our own, is no news either.
#[test]
fn views_of_our_own_runs_add_nothing() {
    let env = TestEnv::repo();
    env.recover(&[
        "run",
        "--run",
        "own",
        "--task",
        "t",
        "--no-wait",
        "--",
        "false",
    ]);
    env.json(0, &["sync", "--to", "../views"]);
    let before = events(&env);
    assert_eq!(env.json(0, &["import", "../views"])["changed"], false);
    assert_eq!(events(&env), before);
}

// C1, L1: the files of the systems before are kept where the views are written over them, and it is told how to take
// them over.
#[test]
fn files_that_were_there_before_are_kept() {
    let env = TestEnv::repo();
    let state = |name: &str| format!(".ultraplan/state/{name}");
    let (loop_state, records) = (recovery().to_string(), lanes().to_string());
    env.write(&state("recovery.json"), &loop_state);
    env.write(&state("checkpoints.json"), &records);
    let args = [
        "checkpoint",
        "create",
        "--stage",
        "before_lane_start",
        "--run",
        "r1",
        "--lane",
        "K",
    ];
    let ran = env.recover(&args).expect(0);
    assert_eq!(env.read(&state("recover/before/recovery.json")), loop_state);
    assert_eq!(env.read(&state("recover/before/checkpoints.json")), records);
    let copy = env.work().join(state("recover/before/checkpoints.json"));
    let told = format!(
        "recover -C {} import {}",
        env.work().display(),
        copy.display()
    );
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    assert_eq!(
        env.state_json("checkpoints.json").as_array().unwrap().len(),
        1
    );
    for name in ["recovery.json", "checkpoints.json"] {
        let copy = env.work().join(state("recover/before")).join(name);
        assert_eq!(
            env.json(0, &["import", &copy.to_string_lossy()])["changed"],
            true,
            "{name}"
        );
    }
    assert_eq!(
        env.state_json("checkpoints.json").as_array().unwrap().len(),
        3
    );
    // Only once: what stands there now is ours.
    assert!(!env.recover(&args).expect(0).stderr.contains(" import "));
}

// C1, L1: a file of another system that comes into a view's place later is kept too, also at the configured path; a view of
// our own that is out of date is not.
#[test]
fn files_that_come_later_are_kept() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nlane_file = \"logs/checkpoints.json\"\n",
    );
    let state = |name: &str| format!(".ultraplan/state/{name}");
    let lane = |stage: &str| {
        let args = [
            "checkpoint",
            "create",
            "--stage",
            stage,
            "--run",
            "r1",
            "--lane",
            "K",
        ];
        env.recover(&args).expect(0).stderr
    };
    env.recover(&["checkpoint", "create", "--run", "other"])
        .expect(0);
    // Nothing of ours was ever written there.
    let records = lanes().to_string();
    env.write("logs/checkpoints.json", &records);
    assert!(lane("before_lane_start").contains(" import "));
    assert_eq!(env.read(&state("recover/before/checkpoints.json")), records);
    // In the place of what was.
    let loop_state = recovery().to_string();
    env.write(&state("recovery.json"), &loop_state);
    let ours = env.read("logs/checkpoints.json");
    env.write("logs/checkpoints.json", "[]");
    let told = lane("after_lane_start");
    assert_eq!(env.read(&state("recover/before/recovery.json")), loop_state);
    assert_eq!(env.read(&state("recover/before/checkpoints-2.json")), "[]");
    assert_eq!(told.matches(" import ").count(), 2, "{told}");
    let now = env.read("logs/checkpoints.json");
    assert!(
        now.contains("before_lane_start") && now.contains("after_lane_start"),
        "{now}"
    );
    // A kill between the event and the view leaves an older view; one that is gone is written again.
    env.write("logs/checkpoints.json", ours);
    std::fs::remove_file(env.work().join(state("recovery.json"))).expect("removed");
    assert!(!lane("after_lane_tests").contains(" import "));
    env.recover(&["sync"]).expect(0);
    let kept = std::fs::read_dir(env.work().join(state("recover/before")))
        .expect("a folder")
        .count();
    assert_eq!(kept, 3);
}

// L1: files in a folder of the source systems are kept once; what was written here is simply written again.
#[test]
fn files_in_another_folder_are_kept() {
    let env = sources();
    env.json(0, &["import", "../src/recovery.json"]);
    env.write("../out/recovery.json", "{\"errorCount\": 7}");
    let planned = env.json(0, &["--dry-run", "sync", "--to", "../out"]);
    let copy = env.root().join("out/recovery.json.before");
    let kept = &planned["kept_aside"];
    assert!(kept.as_array().expect("a list").len() == 1, "{planned}");
    assert!(
        kept[0]["copy"]
            .as_str()
            .expect("a path")
            .ends_with("out/recovery.json.before"),
        "{planned}"
    );
    assert!(!copy.exists(), "a dry run writes nothing");
    let done = env.json(0, &["sync", "--to", "../out"]);
    assert_eq!(
        (&done["kept_aside"], &done["written"]),
        (kept, &planned["written"]),
        "the very plan"
    );
    assert_eq!(
        env.read("../out/recovery.json.before"),
        "{\"errorCount\": 7}"
    );
    env.json(0, &["import", "../src/attempt_history.json"]);
    assert_eq!(env.json(0, &["sync", "--to", "../out"])["changed"], true);
    assert!(!env.exists("../out/attempt_history.json.before"));
    env.write("../out/recovery.json", "{\"errorCount\": 8}");
    env.recover(&["sync", "--to", "../out"]).expect(0);
    assert_eq!(
        env.read("../out/recovery.json-2.before"),
        "{\"errorCount\": 8}"
    );
    assert_eq!(
        env.read("../out/recovery.json.before"),
        "{\"errorCount\": 7}"
    );
}

// A run's id may be as long as any name: files and references are named by its beginning and a checksum.
#[test]
fn a_long_run_id_has_files_of_its_own() {
    let env = TestEnv::repo();
    let ids = ["a", "b"].map(|last| format!("{}{last}", "r".repeat(299)));
    for id in &ids {
        let mut document = battle("abc");
        document["id"] = json!(id);
        document["taskId"] = json!("t".repeat(300));
        env.write("../battle.json", document.to_string());
        assert_eq!(env.json(0, &["import", "../battle.json"])["changed"], true);
        assert_eq!(env.json(0, &["import", "../battle.json"])["changed"], false);
        env.json(0, &["status", "--run", id]);
        env.json(0, &["checkpoint", "create", "--run", id]);
        env.json(
            0,
            &[
                "checkpoint",
                "create",
                "--run",
                id,
                "--lane",
                &"l".repeat(300),
            ],
        );
        env.json(0, &["sync"]);
        env.json(0, &["sync", "--to", "../out"]);
        env.json(0, &["doctor"]);
    }
    let folder = env.root().join("out/battles").join(format!(
        "{}-{:08x}",
        "t".repeat(100),
        crc32fast::hash("t".repeat(300).as_bytes())
    ));
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 2);
}

// What is nested deeper than the ledger could read again never gets into it.
#[test]
fn a_document_that_is_too_deep_is_refused() {
    let env = TestEnv::repo();
    let deep = |levels: usize| {
        let inner = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"id": "b", "iterations": [], "more": {inner}}}"#)
    };
    for levels in [64, 90, 110, 123, 126] {
        env.write("../deep.json", deep(levels));
        let error = env.json(12, &["import", "../deep.json"]);
        assert!(
            text(&error["error"]["message"]).contains("at /more/0/0"),
            "{error}"
        );
        env.json(12, &["--dry-run", "import", "../deep.json"]);
    }
    assert!(!env.exists(".ultraplan/state/events.jsonl"));
    env.write("../deep.json", deep(63));
    env.json(0, &["import", "../deep.json"]);
    assert_eq!(env.json(0, &["import", "../deep.json"])["changed"], false);
    env.json(0, &["status"]);
}

// An iteration that nothing can follow would never end.
#[test]
fn iterations_without_end_are_refused() {
    let env = TestEnv::repo();
    let refused = |document: Value, place: &str| {
        env.write("../b.json", document.to_string());
        let error = env.json(12, &["import", "../b.json"]);
        assert!(text(&error["error"]["message"]).contains(place), "{error}");
    };
    refused(
        json!({"id": "b", "iterations": [{"number": u32::MAX}]}),
        "/iterations/0/number",
    );
    refused(
        json!({"id": "b", "iterations": [{"number": 100_001}]}),
        "/iterations/0/number",
    );
    refused(
        json!({"id": "b", "iterations": [], "currentIteration": u32::MAX}),
        "/currentIteration",
    );
    env.write(
        "../b.json",
        json!({"id": "b", "iterations": [{"number": 100_000}]}).to_string(),
    );
    env.json(0, &["import", "../b.json"]);
}

// Numbers come back as they were: the same document is no news.
#[test]
fn odd_numbers_are_the_same_when_they_come_again() {
    let env = TestEnv::repo();
    let mut numbers: Vec<String> = [
        "1e-7",
        "5e-324",
        "1.7976931348623157e308",
        "-0.0",
        "0.30000000000000004",
        "1e23",
    ]
    .map(str::to_owned)
    .to_vec();
    // Bits of every kind, from a fixed beginning.
    let mut bits: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..500 {
        bits = bits
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let number = f64::from_bits(bits);
        if number.is_finite() {
            numbers.push(format!("{number:e}"));
        }
    }
    env.write(
        "../b.json",
        format!(
            r#"{{"id": "b", "iterations": [], "odd": [{}]}}"#,
            numbers.join(",")
        ),
    );
    assert_eq!(env.json(0, &["import", "../b.json"])["changed"], true);
    for _ in 0..2 {
        assert_eq!(env.json(0, &["import", "../b.json"])["changed"], false);
    }
}

/// `last_modified` of every file in a checkpoint's export.
fn times(env: &TestEnv, selector: &str) -> std::collections::BTreeMap<String, Value> {
    let out = env
        .recover(&[
            "checkpoint",
            "export",
            selector,
            "--format",
            "seed-json",
            "-o",
            "-",
        ])
        .expect(0)
        .stdout;
    let document: Value = serde_json::from_str(&out).expect("JSON");
    let files = document["state"]["file_states"]
        .as_object()
        .expect("files")
        .clone();
    files
        .into_iter()
        .map(|(path, file)| (path, file["last_modified"].clone()))
        .collect()
}

// S2: a file's time is the one that it had when it was captured, whatever becomes of the file later.
#[test]
fn the_time_of_a_file_is_that_of_its_capture() {
    let env = TestEnv::repo();
    env.write("b/c.txt", "c\n");
    env.sh("touch -d 2020-01-02T03:04:05.678Z a.txt; touch -d 2021-01-02T03:04:05Z b/c.txt; ln -s b link").expect(0);
    env.sh("touch -h -d 1969-12-31T23:59:58.5Z link").expect(0);
    env.json(0, &["checkpoint", "create"]);
    env.write("a.txt", "two\n");
    env.sh("touch -d 2020-01-02T03:04:05.678Z b/c.txt; rm link; echo three > 3; touch -d 2022-01-01T00:00:00Z 3")
        .expect(0);
    env.json(0, &["checkpoint", "create"]);
    env.write("a.txt", "one\n");
    let first = times(&env, "@1");
    assert_eq!(
        (&first["a.txt"], &first["b/c.txt"]),
        (
            &"2020-01-02T03:04:05.678Z".into(),
            &"2021-01-02T03:04:05.000Z".into()
        )
    );
    assert_eq!(first["link"], "1969-12-31T23:59:58.500Z");
    let second = times(&env, "@2");
    assert_eq!(
        (&second["b/c.txt"], &second["3"]),
        (
            &"2020-01-02T03:04:05.678Z".into(),
            &"2022-01-01T00:00:00.000Z".into()
        )
    );
    assert_eq!(
        env.json(0, &["checkpoint", "create", "--if-changed"])["changed"],
        true
    );
    env.sh("touch -d 2001-01-01 a.txt").expect(0);
    assert_eq!(
        env.json(0, &["checkpoint", "create", "--if-changed"])["changed"],
        false,
        "a time is no change"
    );
}

// S2: of a large work tree those of the files that changed are kept, and nothing is made up about the others.
#[test]
fn a_time_that_is_not_known_is_not_made_up() {
    let env = TestEnv::repo();
    env.sh("mkdir many; cd many; for n in $(seq 1200); do echo $n > $n; done; touch -d 2019-01-01T00:00:00Z *")
        .expect(0);
    env.sh("touch -d 2020-01-01T00:00:00Z many/7 many/8 many/9")
        .expect(0);
    env.json(0, &["checkpoint", "create"]);
    env.sh("echo new > many/7; touch -d 2021-01-01T00:00:00Z many/7")
        .expect(0);
    env.json(0, &["checkpoint", "create"]);
    let second = times(&env, "@2");
    assert_eq!(
        (&second["many/7"], &second["many/8"]),
        (
            &"2021-01-01T00:00:00.000Z".into(),
            &"2020-01-01T00:00:00.000Z".into()
        )
    );
    assert_eq!(second["many/1200"], "2019-01-01T00:00:00.000Z");
    env.sh("echo newer > many/7; echo new > many/1200; echo new > many/8")
        .expect(0);
    env.json(0, &["checkpoint", "create"]);
    let first = times(&env, "@1");
    assert_eq!(
        (&first["many/7"], &first["many/9"]),
        (
            &"2020-01-01T00:00:00.000Z".into(),
            &"2020-01-01T00:00:00.000Z".into()
        )
    );
    let second = times(&env, "@2");
    assert_eq!(
        (&second["many/7"], &second["many/8"]),
        (&"2021-01-01T00:00:00.000Z".into(), &Value::Null),
        "changed since"
    );
    let many = first.iter().filter(|(path, _)| path.starts_with("many/"));
    assert!(
        many.map(|(_, time)| time.as_str())
            .all(|time| time.is_none_or(|time| time < "2021")),
        "{first:?}"
    );
}

// L1, A3: the cooldown of a loop whose history is here already holds, and the history stays.
#[test]
fn a_cooldown_is_taken_over_into_a_run_with_a_history() {
    let env = sources();
    env.json(0, &["import", "--run", "r", "../src/attempt_history.json"]);
    let before = env.json(0, &["attempt", "list", "--run", "r"]);
    env.json(0, &["import", "--run", "r", "../src/recovery.json"]);
    assert_eq!(env.json(0, &["attempt", "list", "--run", "r"]), before);
    assert_eq!(env.state_json("attempt_history.json"), history());
    assert_eq!(env.state_json("recovery.json"), recovery());
    let waits = env.json(6, &["retry-status", "--run", "r", "--check"]);
    assert_eq!(waits["retry_after"], recovery()["cooldownUntil"]);
}

// A battle that was fought elsewhere, on another machine maybe, is reached as any other run here.
#[test]
fn a_battle_of_a_folder_that_is_not_here_is_taken_up_here() {
    let env = TestEnv::repo();
    let mut document = battle("abc");
    document["workingDir"] = json!("/somewhere/else");
    env.write("../battle.json", document.to_string());
    let imported = env.json(0, &["import", "../battle.json"]);
    let left = &imported["files"][0]["left_out"][0];
    assert_eq!(left["place"], "/workingDir", "{imported}");
    assert!(
        text(&left["message"]).contains("/somewhere/else is no work tree of this repository"),
        "{imported}"
    );
    assert_eq!(env.json(0, &["import", "../battle.json"])["changed"], false);
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "battle-7");
    let listed = env.json(0, &["runs", "--all"])["runs"][0].clone();
    assert_eq!(
        (&listed["run_id"], &listed["worktree"]),
        (&json!("battle-7"), &json!(env.work()))
    );
    env.json(0, &["checkpoint", "create", "--run", "battle-7"]);
    let resumed = env.json(
        0,
        &[
            "resume",
            "battle-7",
            "--strategy",
            "retry_same",
            "--",
            "true",
        ],
    );
    assert_eq!(
        (&resumed["executed"], &resumed["outcome"]),
        (&json!(true), &json!("complete")),
        "{resumed}"
    );
    // One of a work tree of this repository stays that one's.
    env.git(&["worktree", "add", "-q", "../linked"]);
    document["id"] = json!("battle-8");
    document["workingDir"] = json!(env.root().join("linked"));
    env.write("../battle.json", document.to_string());
    env.json(0, &["import", "../battle.json"]);
    assert_eq!(
        env.json(0, &["-C", "../linked", "status"])["run"]["run_id"],
        "battle-8"
    );
}

// S11: what was modified and decided is told, in the loop's own words where it has some.
#[test]
fn a_checkpoint_tells_what_was_modified_and_decided() {
    let env = TestEnv::repo();
    env.json(0, &["attempt", "start", "--approach", "Using JWT"]);
    env.write("src/auth.ts", "one\n");
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--loop",
            "test",
            "--exit-code",
            "1",
            "--message",
            "assert 1 == 2",
        ],
    );
    let memory = env.state_json("active_checkpoint.json")["state"]["working_memory"].clone();
    assert_eq!(memory["files_modified"], json!(["src/auth.ts"]), "{memory}");
    assert_eq!(
        memory["decisions_made"],
        json!(["Using JWT", "checks failed and attempts are left"]),
        "{memory}"
    );
    let exported = |id: &str| {
        let out = env
            .recover(&[
                "checkpoint",
                "export",
                id,
                "--format",
                "seed-json",
                "-o",
                "-",
            ])
            .expect(0)
            .stdout;
        serde_json::from_str::<Value>(&out).expect("JSON")["state"]["working_memory"].clone()
    };
    let id = env.state_json("active_checkpoint.json")["checkpoint_id"].clone();
    assert_eq!(
        exported(&text(&id))["decisions_made"],
        memory["decisions_made"]
    );
    env.write_state(
        "memory.json",
        r#"{"current_task": "Implementing authentication", "decisions_made": ["24h expiry"]}"#,
    );
    let id = checkpoint(&env);
    for memory in [
        exported(&id),
        env.state_json("active_checkpoint.json")["state"]["working_memory"].clone(),
    ] {
        assert_eq!(
            memory["current_task"], "Implementing authentication",
            "{memory}"
        );
        assert_eq!(memory["decisions_made"], json!(["24h expiry"]), "{memory}");
    }
}
