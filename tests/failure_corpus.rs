//! The classifier against labelled failures of real tools.
//!
//! The records are not part of the repository: they lie in `../shared/failures/cases` beside the checkout.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use recover::model::failure::{Failure, FailureEvidence, LoopKind};
use recover::model::time::Timestamp;
use recover::{agent, policy::classify::classify};
use serde_json::Value;

/// `RECOVER_FAILURE_CASES` names another folder of records.
fn cases() -> PathBuf {
    if let Some(folder) = std::env::var_os("RECOVER_FAILURE_CASES") {
        return folder.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.parent().unwrap_or(root).join("shared/failures/cases")
}

fn bytes(case: &Value, name: &str) -> Vec<u8> {
    let text = case[name].as_str().unwrap_or_default();
    if case["encoding"] == "base64" {
        base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
    } else {
        text.as_bytes().to_vec()
    }
}

fn classified(case: &Value) -> Failure {
    let evidence = FailureEvidence {
        stage: Some(serde_json::from_value::<LoopKind>(case["loop"].clone()).expect("a stage")),
        command: case["command"].as_str().map(str::to_owned),
        exit_code: case["exit_code"].as_i64().map(|code| i32::try_from(code).expect("a status")),
        signal: case["signal"].as_str().map(str::to_owned),
        duration: case["duration_ms"].as_u64().map(Duration::from_millis),
        deadline: case["timeout_ms"].as_u64().map(Duration::from_millis),
        stdout: bytes(case, "stdout"),
        stderr: bytes(case, "stderr"),
        ..FailureEvidence::default()
    };
    let agent = (evidence.stage == Some(LoopKind::Agent))
        .then(|| agent::detect(evidence.command.as_deref(), None, &evidence.stdout))
        .flatten();
    let record = agent.map(|kind| agent::read(kind, &evidence.stdout, &evidence.stderr));
    let now: Timestamp = "2026-11-21T20:30:00Z".parse().expect("a time");
    classify(&evidence, record.as_ref(), &[], now)
}

/// What a failure is taken for, and what it should be, where they differ.
fn difference(case: &Value) -> Option<String> {
    let failure = classified(case);
    let right = failure.kind.as_str() == case["type"]
        && failure.cause.as_str() == case["cause"]
        && Some(failure.retryable) == case["retryable"].as_bool();
    let seen = format!("{} {} {}", failure.kind.as_str(), failure.cause.as_str(), failure.retryable);
    let wanted = format!("{} {} {}", case["type"], case["cause"], case["retryable"]);
    (!right).then(|| format!("{}: {seen}, wanted {wanted}\n  {:?}", case["id"], failure.evidence))
}

/// Failures of other tools, so that rules stay rules for kinds of evidence: `tests/failures/cases.json`.
#[test]
fn failures_of_other_tools_are_understood() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/failures/cases.json");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(cases.len() >= 50);
    let misses: Vec<String> = cases.iter().filter_map(difference).collect();
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn the_labelled_failures_are_understood() {
    let folder = cases();
    let entries = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("the labelled failures are needed in {}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 50, "only {} cases in {}", files.len(), folder.display());
    let (mut right, mut misses) = ([0_usize; 3], String::new());
    for file in &files {
        let case: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let failure = classified(&case);
        let checks = [
            failure.kind.as_str() == case["type"],
            failure.cause.as_str() == case["cause"],
            Some(failure.retryable) == case["retryable"].as_bool(),
        ];
        for (sum, correct) in right.iter_mut().zip(checks) {
            *sum += usize::from(correct);
        }
        if checks != [true; 3] {
            let seen = format!("{} {} {}", failure.kind.as_str(), failure.cause.as_str(), failure.retryable);
            let wanted = format!("{} {} {}", case["type"], case["cause"], case["retryable"]);
            writeln!(misses, "{}: {seen}, wanted {wanted}\n  {:?}", case["id"], failure.evidence).unwrap();
        }
    }
    let [kinds, causes, retries] = right;
    let percent = |right: usize| right as f64 * 100.0 / files.len() as f64;
    let figures =
        format!("type {:.1} %, cause {:.1} %, retryable {:.1} %", percent(kinds), percent(causes), percent(retries));
    println!("{figures}\n{misses}");
    assert!(percent(kinds) >= 97.0 && percent(causes) >= 95.0 && percent(retries) >= 96.0, "{figures}\n{misses}");
}
