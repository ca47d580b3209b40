//! Any JSON as a file of another system, and any bytes as a bundle.
//!
//! What is taken over can be read again, is taken over once, and its view can be taken over too; a complaint names its place.

use std::fs;
use std::path::PathBuf;

use recover::testing::git::Unbundled;
use recover::testing::model::FolderId;
use recover::testing::model::ImportKind;
use recover::testing::model::Run;
use recover::testing::model::State;
use recover::testing::model::Timestamp;
use recover::testing::model::{EVENT_SCHEMA, Event, EventSource};
use recover::testing::policy::{ImportInput, Part, Problem, is_known_history, read, recognise};
use recover::testing::store::{attempt_view, battle, recovery_state};
use serde_json::Value;
use tempfile::TempDir;

use crate::driver::{Target, folder, kind_of, seen};

const KINDS: [ImportKind; 5] = [
    ImportKind::Battle,
    ImportKind::AttemptHistory,
    ImportKind::Lanes,
    ImportKind::Session,
    ImportKind::Recovery,
];

pub struct Imports {
    folder: TempDir,
    /// Those bundles of the corpus that were made by a real program.
    bundles: Vec<Vec<u8>>,
}

fn parts(kind: ImportKind, document: &Value, state: &State) -> Result<Vec<Part>, Problem> {
    let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let worktree: FolderId = "/w".into();
    read(
        kind,
        document,
        &ImportInput {
            state,
            source: "/f",
            worktree: &worktree,
            run: None,
            now,
        },
    )
}

/// Adds to the state what a document says; how many events that is.
fn take(state: &mut State, all: Vec<Part>) -> usize {
    let mut made = 0;
    for part in all {
        for (at, payload) in part.events {
            let (seq, run) = (state.last_seq + 1, Some(part.key.clone()));
            let event = Event {
                seq,
                at,
                schema: EVENT_SCHEMA,
                run,
                source: EventSource::Recover,
                payload,
            };
            let line = serde_json::to_string(&event).unwrap();
            let again: Event =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(again, event, "as the ledger reads it");
            state.apply(&event);
            made += 1;
        }
    }
    made
}

/// How many attempts failed.
fn failures(state: &State) -> usize {
    state
        .runs
        .iter()
        .flat_map(Run::attempts)
        .filter(|(_, attempt)| attempt.failure.is_some())
        .count()
}

/// The document that a state's view of this kind is now.
fn views(kind: ImportKind, state: &State) -> Vec<Value> {
    match kind {
        ImportKind::Battle => state
            .runs
            .iter()
            .map(|run| serde_json::to_value(battle(state, run, &|_| None)).unwrap())
            .collect(),
        ImportKind::AttemptHistory => vec![serde_json::to_value(attempt_view(state)).unwrap()],
        ImportKind::Recovery => vec![recovery_state(state)],
        ImportKind::Lanes | ImportKind::Session => Vec::new(),
    }
}

impl Imports {
    pub fn new() -> Self {
        let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/random/corpus/imports");
        let files = fs::read_dir(corpus)
            .unwrap()
            .map(|entry| fs::read(entry.unwrap().path()).unwrap());
        Self {
            folder: folder(),
            bundles: files.filter(|file| file.starts_with(b"# v2")).collect(),
        }
    }

    fn play_bundle(&self, input: &[u8]) -> u64 {
        let path = self.folder.path().join("bundle");
        fs::write(&path, input).unwrap();
        if !Unbundled::is_bundle(&path).unwrap() {
            return seen(&"no bundle");
        }
        let unbundled = match Unbundled::read(&path) {
            Ok(unbundled) => unbundled,
            Err(error) => {
                return seen(&kind_of(
                    &error.to_string().replace(&*path.to_string_lossy(), ""),
                ));
            }
        };
        // The pack has a checksum of its own: one that is accepted is one that was made.
        let pack =
            |bytes: &[u8]| memchr::memmem::find(bytes, b"\n\nPACK").map(|at| bytes[at..].to_vec());
        let is_known = self
            .bundles
            .iter()
            .any(|made| pack(made) == pack(input) && pack(made).is_some());
        assert!(is_known, "a changed pack is accepted");
        let mut said = Vec::new();
        for found in &unbundled.refs {
            let message = unbundled.message(&found.commit);
            let checked = unbundled.check(&found.commit);
            assert!(
                message.is_ok() || checked.is_err(),
                "{:?} has no message and is whole",
                found.commit
            );
            said.push((message.is_ok(), checked.is_ok()));
        }
        seen(&said)
    }

    fn play_document(document: &Value) -> u64 {
        let known = recognise(document);
        let mut led = vec![kind_of(&format!("{known:?}"))];
        for kind in KINDS {
            let mut state = State::default();
            let all = match parts(kind, document, &state) {
                Ok(all) => all,
                Err(problem) => {
                    let place = if problem.place == "/" {
                        ""
                    } else {
                        &problem.place
                    };
                    assert!(
                        document.pointer(place).is_some(),
                        "no such place: {problem}"
                    );
                    assert!(!problem.message.is_empty());
                    led.push(kind_of(&problem.message));
                    continue;
                }
            };
            let made = take(&mut state, all);
            let again = parts(kind, document, &state)
                .unwrap_or_else(|problem| panic!("the second time: {problem}"));
            assert_eq!(take(&mut state, again), 0, "{kind:?} is taken over twice");
            is_known_history(document, &state);
            for view in views(kind, &state) {
                let mut other = State::default();
                let all = parts(kind, &view, &other);
                let all =
                    all.unwrap_or_else(|problem| panic!("the view of {kind:?}: {problem}\n{view}"));
                take(&mut other, all);
                assert_eq!(
                    failures(&other),
                    failures(&state),
                    "{kind:?} by its view has as many failures: {view}"
                );
            }
            led.push(format!("{made} {}", state.runs.len()));
        }
        seen(&led)
    }
}

impl Target for Imports {
    const NAME: &'static str = "imports";
    const TOKENS: &'static [&'static [u8]] = &[
        b"checkpoint_id",
        b"session_id",
        b"subtasks",
        b"attempts",
        b"stuck_subtasks",
        b"errorCount",
        b"cooldownUntil",
        b"isRecovering",
        b"lastErrorAt",
        b"run_id",
        b"stage",
        b"phase",
        b"lane",
        b"pre_pr",
        b"before_lane_start",
        b"after_lane_start",
        b"ready",
        b"failed",
        b"complete",
        b"completed",
        b"running",
        b"cancelled",
        b"superseded",
        b"id",
        b"iterations",
        b"number",
        b"status",
        b"retryCount",
        b"currentIteration",
        b"failure",
        b"claude_error",
        b"timeout",
        b"timestamp",
        b"success",
        b"stuck",
        b"2026-01-24T10:00:00Z",
        b"2026-01-24T10:00:00.123456789+05:30",
        b"9999-12-31T23:59:59-23:59",
        b"0000-01-01T00:00:00+23:59",
        b"-",
        b"# v2 git bundle\n",
        b"# v3 git bundle\n@object-format=sha1\n",
        b"-0123456789012345678901234567890123456789 x\n",
        b"PACK\0\0\0\x02",
        b"refs/recover/",
    ];

    fn play(&mut self, inputs: &[Vec<u8>]) -> Vec<u64> {
        let one = |input: &Vec<u8>| match serde_json::from_slice::<Value>(input) {
            Ok(document) => Self::play_document(&document),
            Err(_) => self.play_bundle(input),
        };
        inputs.iter().map(one).collect()
    }
}
