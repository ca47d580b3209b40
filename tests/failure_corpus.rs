//! The classifier against labelled failures of real tools: `tests/failures`.

mod failures;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use recover::testing::agent;
use recover::testing::model::CheckKind;
use recover::testing::model::Timestamp;
use recover::testing::model::{Failure, FailureEvidence};
use recover::testing::policy::classify;
use serde_json::Value;

fn bytes(case: &Value, name: &str) -> Vec<u8> {
    let text = case[name].as_str().unwrap_or_default();
    if case["encoding"] == "base64" {
        base64::engine::general_purpose::STANDARD
            .decode(text)
            .expect("base64")
    } else {
        text.as_bytes().to_vec()
    }
}

fn classified(case: &Value) -> Failure {
    let evidence = FailureEvidence {
        stage: Some(serde_json::from_value::<CheckKind>(case["loop"].clone()).expect("a stage")),
        command: case["command"].as_str().map(str::to_owned),
        exit_code: case["exit_code"]
            .as_i64()
            .map(|code| i32::try_from(code).expect("a status")),
        signal: case["signal"].as_str().map(str::to_owned),
        duration: case["duration_ms"].as_u64().map(Duration::from_millis),
        deadline: case["timeout_ms"].as_u64().map(Duration::from_millis),
        stdout: bytes(case, "stdout"),
        stderr: bytes(case, "stderr"),
        ..FailureEvidence::default()
    };
    let agent = (evidence.stage == Some(CheckKind::Agent))
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
    let seen = format!(
        "{} {} {}",
        failure.kind.as_str(),
        failure.cause.as_str(),
        failure.retryable
    );
    let wanted = format!("{} {} {}", case["type"], case["cause"], case["retryable"]);
    (!right).then(|| {
        format!(
            "{}: {seen}, wanted {wanted}\n  {:?}",
            case["id"], failure.evidence
        )
    })
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
    let records = failures::labelled();
    let (mut right, mut misses) = ([0_usize; 3], String::new());
    for case in &records {
        let failure = classified(case);
        let checks = [
            failure.kind.as_str() == case["type"],
            failure.cause.as_str() == case["cause"],
            Some(failure.retryable) == case["retryable"].as_bool(),
        ];
        for (sum, correct) in right.iter_mut().zip(checks) {
            *sum += usize::from(correct);
        }
        if checks != [true; 3] {
            let seen = format!(
                "{} {} {}",
                failure.kind.as_str(),
                failure.cause.as_str(),
                failure.retryable
            );
            let wanted = format!("{} {} {}", case["type"], case["cause"], case["retryable"]);
            writeln!(
                misses,
                "{}: {seen}, wanted {wanted}\n  {:?}",
                case["id"], failure.evidence
            )
            .unwrap();
        }
    }
    let [kinds, causes, retries] = right;
    let percent = |right: usize| right as f64 * 100.0 / records.len() as f64;
    let figures = format!(
        "type {:.1} %, cause {:.1} %, retryable {:.1} %",
        percent(kinds),
        percent(causes),
        percent(retries)
    );
    println!("{figures}\n{misses}");
    assert!(
        percent(kinds) >= 97.0 && percent(causes) >= 95.0 && percent(retries) >= 96.0,
        "{figures}\n{misses}"
    );
}
