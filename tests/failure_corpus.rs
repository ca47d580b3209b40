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

/// Whether type, cause, retryable and message are right. A message is when it has the words of the case in it, or those of
/// one of its lines that say the same.
fn right(case: &Value, failure: &Failure) -> [bool; 4] {
    let lines: Vec<&str> = match &case["message"] {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        line => line.as_str().into_iter().collect(),
    };
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = plain(&failure.message);
    [
        failure.kind.as_str() == case["type"],
        failure.cause.as_str() == case["cause"],
        Some(failure.retryable) == case["retryable"].as_bool(),
        lines.is_empty() || lines.iter().any(|line| message.contains(&plain(line))),
    ]
}

/// How many in a hundred are right, of each of the four, and a text that names the others.
fn measured(cases: &[Value]) -> ([f64; 4], String) {
    let (mut sums, mut misses) = ([0_usize; 4], String::new());
    for case in cases {
        let failure = classified(case);
        let checks = right(case, &failure);
        for (sum, correct) in sums.iter_mut().zip(checks) {
            *sum += usize::from(correct);
        }
        if checks != [true; 4] {
            let seen = format!(
                "{} {} {}",
                failure.kind.as_str(),
                failure.cause.as_str(),
                failure.retryable
            );
            let wanted = format!("{} {} {}", case["type"], case["cause"], case["retryable"]);
            writeln!(
                misses,
                "{}: {seen}, wanted {wanted}\n  {:?}\n  {:?}, wanted {}",
                case["id"], failure.evidence, failure.message, case["message"]
            )
            .expect("text takes all");
        }
    }
    let percent = sums.map(|right| right as f64 * 100.0 / cases.len() as f64);
    let [kinds, reasons, retries, messages] = percent;
    let figures = format!(
        "{} cases: type {kinds:.1} %, cause {reasons:.1} %, retryable {retries:.1} %, message {messages:.1} %",
        cases.len()
    );
    eprintln!("{figures}\n{misses}");
    (percent, format!("{figures}\n{misses}"))
}

/// Fails where fewer are right than what is promised.
fn hold(cases: &[Value], promised: [f64; 4]) {
    let (percent, text) = measured(cases);
    assert!(
        percent
            .iter()
            .zip(promised)
            .all(|(seen, least)| *seen >= least),
        "{text}"
    );
}

/// The cases of a file that has all of them in a list.
fn listed(file: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/failures")
        .join(file);
    serde_json::from_slice(&std::fs::read(file).expect("it is there")).expect("a list")
}

/// Failures of other tools, so that rules stay rules for kinds of evidence.
#[test]
fn failures_of_other_tools_are_understood() {
    let cases = listed("cases.json");
    assert!(cases.len() >= 50);
    hold(&cases, [100.0; 4]);
}

#[test]
fn the_labelled_failures_are_understood() {
    hold(&failures::labelled(), [97.0, 95.0, 96.0, 95.0]);
}

/// What a hundred tools print that were run for it before the rules knew them: labels first, rules afterwards.
#[test]
fn tools_that_are_new_are_understood() {
    hold(&listed("tools.json"), [97.0, 95.0, 96.0, 95.0]);
}

/// Some seventy programs that no other case has, labelled before any rule was read.
#[test]
fn programs_of_other_trades_are_understood() {
    hold(&listed("unseen.json"), [97.0, 95.0, 96.0, 95.0]);
}
