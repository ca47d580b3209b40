//! Imports of each system's documents.

use serde_json::json;

use super::*;
use crate::model::event::{EVENT_SCHEMA, Event, EventSource};
use crate::model::run::{RunKey, RunStatus};
use crate::model::state::State;
use crate::model::time::Timestamp;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

/// Takes a document over into the state; returns how many events that were.
fn take(state: &mut State, kind: ImportKind, document: &Value) -> usize {
    let before = state.clone();
    let at = ImportInput {
        state: &before,
        source: "/f",
        worktree: &"/w".into(),
        run: None,
        now: now(),
    };
    let mut made = 0;
    for part in read(kind, document, &at).unwrap() {
        for (at, payload) in part.events {
            let (seq, run) = (state.last_seq + 1, Some(part.key.clone()));
            state.apply(&Event {
                seq,
                at,
                schema: EVENT_SCHEMA,
                run,
                source: EventSource::Recover,
                payload,
            });
            made += 1;
        }
    }
    made
}

fn problem(kind: ImportKind, document: &Value) -> Problem {
    let state = State::default();
    let at = ImportInput {
        state: &state,
        source: "/f",
        worktree: &"/w".into(),
        run: None,
        now: now(),
    };
    read(kind, document, &at).unwrap_err()
}

fn history(attempts: usize) -> Value {
    let attempt = |number: usize| {
        json!({"session": 1, "timestamp": format!("2026-01-24T10:{number:02}:00Z"), "approach": format!("Way {number}"),
               "success": false, "error": "Test failed: expected 200 got 404"})
    };
    let attempts: Vec<Value> = (0..attempts).map(attempt).collect();
    json!({"subtasks": {"subtask-001": {"attempts": attempts, "status": "failed"}}, "stuck_subtasks": []})
}

#[test]
fn documents_are_recognised_by_what_only_they_have() {
    for (document, kind) in [
        (history(1), ImportKind::AttemptHistory),
        (json!([]), ImportKind::Lanes),
        (
            json!([{"run_id": "r", "stage": "pre_pr"}]),
            ImportKind::Lanes,
        ),
        (json!({"errorCount": 0}), ImportKind::Recovery),
        (json!({"id": "b", "iterations": []}), ImportKind::Battle),
        (
            json!({"checkpoint_id": "c", "session_id": "s"}),
            ImportKind::Session,
        ),
    ] {
        assert_eq!(recognise(&document), Some(kind), "{document}");
    }
    for rubbish in [
        json!({}),
        json!([1]),
        json!("x"),
        json!(null),
        json!({"id": 1}),
    ] {
        assert_eq!(recognise(&rubbish), None, "{rubbish}");
    }
}

// A3: attempts become attempts, a file that has grown adds what is new, the same again adds nothing.
#[test]
fn a_history_is_taken_over_once() {
    let mut state = State::default();
    assert!(take(&mut state, ImportKind::AttemptHistory, &history(2)) > 4);
    let attempts = |state: &State| state.runs[0].attempts().count();
    assert_eq!(attempts(&state), 2);
    assert_eq!(take(&mut state, ImportKind::AttemptHistory, &history(2)), 0);
    take(&mut state, ImportKind::AttemptHistory, &history(3));
    assert_eq!((attempts(&state), state.runs.len()), (3, 1));
    let run = &state.runs[0];
    assert_eq!(run.iterations.get(1).unwrap().attempts[2].number, 3);
    assert_eq!(run.error_count, 3);
}

// A success forgives what failed before it, not what failed after it: whichever subtask stands first in the file.
#[test]
fn a_history_is_taken_over_in_the_order_of_its_times() {
    let attempt = |hour: u32, success: bool| json!({"timestamp": format!("2026-01-24T{hour}:00:00Z"), "success": success});
    let mut state = State::default();
    let document = json!({"subtasks": {
        "a": {"attempts": [attempt(11, false), attempt(12, false)]},
        "b": {"attempts": [attempt(10, true)]}}});
    take(&mut state, ImportKind::AttemptHistory, &document);
    assert_eq!(state.runs[0].error_count, 2);
    assert_eq!(take(&mut state, ImportKind::AttemptHistory, &document), 0);
}

// L1: the count and the cooldown go on where the loop stood, and come down when it did.
#[test]
fn a_cooldown_is_taken_over() {
    let mut state = State::default();
    let document = |count: u32| {
        json!({"isRecovering": true, "lastErrorAt": "2026-03-01T11:59:58Z", "errorCount": count, "lastError": "boom",
               "cooldownUntil": "2026-03-01T12:00:03Z"})
    };
    take(&mut state, ImportKind::Recovery, &document(2));
    let run = &state.runs[0];
    assert_eq!(
        (run.error_count, run.last_error.as_deref()),
        (2, Some("boom"))
    );
    assert_eq!(
        run.cooldown_until.unwrap().to_string(),
        "2026-03-01T12:00:03.000Z"
    );
    assert_eq!(take(&mut state, ImportKind::Recovery, &document(2)), 0);
    take(&mut state, ImportKind::Recovery, &document(1));
    assert_eq!(state.runs[0].error_count, 1);
}

// B1, B2, B13: the battle stands where it stood.
#[test]
fn a_battle_is_taken_over() {
    let mut state = State::default();
    let document = json!({"id": "b1", "taskId": "002-auth", "workingDir": "/w", "status": "failed", "basePrompt": "P",
        "currentIteration": 2, "iterations": [
            {"number": 1, "status": "completed", "startedAt": "2026-01-01T10:00:00Z", "completedAt": "2026-01-01T10:05:00Z",
             "output": "o", "retryCount": 0, "feedbackResults": {"test": {"passed": true, "output": "ok"}}},
            {"number": 2, "status": "failed", "startedAt": "2026-01-01T10:06:00Z", "completedAt": null, "output": null,
             "retryCount": 1}],
        "checkpoints": [{"id": "cp1", "battleId": "b1", "afterIteration": 1, "storageType": "commit",
            "commitHash": "0123456789012345678901234567890123456789", "timestamp": "2026-01-01T10:05:01Z",
            "description": "d", "files": [], "feedbackResults": {}}],
        "failure": {"type": "claude_error", "timestamp": "2026-01-01T10:09:00Z", "iteration": 2, "message": "rate limit",
            "recoverable": true, "suggestedAction": "retry_iteration"}});
    take(&mut state, ImportKind::Battle, &document);
    let run = &state.runs[0];
    assert_eq!((run.status, run.current_iteration), (RunStatus::Failed, 2));
    let failure = run.failure.as_ref().unwrap();
    assert_eq!(
        (failure.kind.as_str(), failure.iteration),
        ("agent_error", Some(2))
    );
    assert_eq!(run.iterations.get(2).unwrap().attempts.len(), 2);
    assert_eq!(run.untouched_import(ImportKind::Battle), Some(&document));
    assert_eq!(run.imported[0].checkpoints(&run.key)[0].id, "cp1");
    assert_eq!(take(&mut state, ImportKind::Battle, &document), 0);
}

// C1–C3: each record belongs to its lane; a stage's record is replaced.
#[test]
fn lane_records_are_taken_over() {
    let mut state = State::default();
    let record = |stage: &str, status: &str| {
        json!({"run_id": "R", "phase": "P1", "lane": "SL-1", "stage": stage, "status": status, "base_branch": "main",
               "worktree_path": "/lanes/1", "timestamp": "2026-01-01T10:00:00Z"})
    };
    let document = json!([
        record("before_lane_start", "ready"),
        record("after_lane_start", "failed")
    ]);
    take(&mut state, ImportKind::Lanes, &document);
    let key = RunKey::new("R", Some("P1"), Some("SL-1"));
    assert_eq!(state.lane_stands(&key).unwrap().stage, "after_lane_start");
    assert_eq!(
        (
            state.runs[0].worktree.text(),
            state.lane_base(&key).as_deref()
        ),
        ("/lanes/1", Some("main"))
    );
    assert_eq!(take(&mut state, ImportKind::Lanes, &document), 0);
    take(
        &mut state,
        ImportKind::Lanes,
        &json!([record("after_lane_start", "complete")]),
    );
    assert_eq!(state.lane_records(&key).len(), 2);
    assert_eq!(state.lane_stands(&key).unwrap().status, Some("complete"));
    // Of two records of one stage the later one stands.
    let both = json!([record("pre_pr", "in_progress"), record("pre_pr", "ready")]);
    take(&mut state, ImportKind::Lanes, &both);
    assert_eq!(state.lane_stands(&key).unwrap().status, Some("ready"));
    assert_eq!(take(&mut state, ImportKind::Lanes, &both), 0);
}

// B2: what the battle calls a timeout is one, whatever its message says.
#[test]
fn the_type_of_a_failure_is_the_battles_own() {
    for (kind, cause) in [
        ("timeout", "TOOL_TIMEOUT"),
        ("crash", "CRASHED"),
        ("feedback_failure", "UNKNOWN"),
    ] {
        let mut state = State::default();
        let document = json!({"id": "b", "status": "failed", "iterations": [
                {"number": 1, "status": "failed", "startedAt": "2026-01-01T10:00:00Z", "retryCount": 0}],
            "failure": {"type": kind, "iteration": 1, "message": "odd"}});
        take(&mut state, ImportKind::Battle, &document);
        let failure = state.runs[0].failure.as_ref().unwrap();
        assert_eq!(
            (failure.kind.as_str(), failure.cause.as_str()),
            (kind, cause)
        );
    }
}

#[test]
fn complaints_name_their_place() {
    let places = [
        (
            ImportKind::Lanes,
            json!([{"run_id": "r", "stage": "nowhere"}]),
            "/0/stage",
        ),
        (ImportKind::Lanes, json!({}), "/"),
        (ImportKind::Lanes, json!([{"stage": "pre_pr"}]), "/0"),
        (
            ImportKind::Recovery,
            json!({"errorCount": -1}),
            "/errorCount",
        ),
        (
            ImportKind::Recovery,
            json!({"errorCount": 1, "cooldownUntil": "soon"}),
            "/cooldownUntil",
        ),
        (
            ImportKind::AttemptHistory,
            json!({"subtasks": {"a/b": {"attempts": [{}]}}}),
            "/subtasks/a~1b/attempts/0",
        ),
        (
            ImportKind::Battle,
            json!({"id": "b", "iterations": [{"number": 0}]}),
            "/iterations/0",
        ),
        (
            ImportKind::Battle,
            json!({"id": "b", "iterations": [], "failure": {"type": "x"}}),
            "/failure/type",
        ),
        (
            ImportKind::Session,
            json!({"checkpoint_id": "c", "session_id": "s", "state": 1}),
            "/state",
        ),
    ];
    for (kind, document, place) in places {
        assert_eq!(problem(kind, &document).place, place, "{document}");
    }
}
