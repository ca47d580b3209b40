//! Any output of any command, to be classified.
//!
//! A verdict of the documented words, the same each time, bounded, without secrets, in a time that grows with the output.

use std::time::Duration;

use recover::testing::agent::{Stream, detect, read};
use recover::testing::model::CheckKind;
use recover::testing::model::Timestamp;
use recover::testing::model::{AgentKind, is_session_id};
use recover::testing::model::{Cause, Failure, FailureEvidence};
use recover::testing::policy::classify;
use recover::testing::policy::redact;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::driver::{Target, seen};

/// What must not be in what is recorded of an output: each stands alone, and is found by its look.
const SECRETS: [&str; 4] = [
    "ghp_0123456789abcdefghij0123",
    "sk-ant-api03-AbCdEfGh12345678",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
];
/// One of so many inputs is played at two lengths.
const LENGTHS: u32 = 200;
/// The two lengths, in bytes, and how much longer the long one may take beyond what its length says.
const SHORT: usize = 64 << 10;
const LONG: usize = 1 << 20;
const SLACK: u32 = 4;

pub struct Classification;

impl Classification {
    pub fn new() -> Self {
        Self
    }
}

/// A record as in `tests/failures`, or bytes that went to stderr.
fn evidence(input: &[u8]) -> FailureEvidence {
    let Ok(Value::Object(case)) = serde_json::from_slice(input) else {
        return FailureEvidence {
            exit_code: Some(1),
            stderr: input.to_vec(),
            ..FailureEvidence::default()
        };
    };
    let case = Value::Object(case);
    let text = |name: &str| case[name].as_str().map(str::to_owned);
    let bytes = |name: &str| text(name).unwrap_or_default().into_bytes();
    FailureEvidence {
        stage: serde_json::from_value::<CheckKind>(case["loop"].clone()).ok(),
        is_check: case["is_check"] == true,
        command: text("command"),
        agent: text("agent"),
        exit_code: case["exit_code"]
            .as_i64()
            .and_then(|code| i32::try_from(code).ok()),
        signal: text("signal"),
        timed_out: case["timed_out"] == true,
        cancelled: case["cancelled"] == true,
        spawn_error: text("spawn_error"),
        duration: case["duration_ms"].as_u64().map(Duration::from_millis),
        deadline: case["timeout_ms"].as_u64().map(Duration::from_millis),
        message: text("message"),
        time_zone: text("time_zone"),
        is_merged: case["is_merged"] == true,
        stdout: bytes("stdout"),
        stderr: bytes("stderr"),
    }
}

fn classified(evidence: &FailureEvidence) -> Failure {
    let kind = detect(
        evidence.command.as_deref(),
        evidence.agent.as_deref(),
        &evidence.stdout,
    );
    let record = kind.map(|kind| read(kind, &evidence.stdout, &evidence.stderr));
    let now: Timestamp = "2026-11-21T20:30:00Z".parse().unwrap();
    classify(evidence, record.as_ref(), &[], now)
}

/// Everything that is kept of a failure as text.
fn texts(failure: &Failure) -> Vec<&str> {
    let evidence = failure
        .evidence
        .iter()
        .chain(&failure.rejected)
        .map(|one| one.text.as_str());
    evidence
        .chain([failure.message.as_str()])
        .chain(failure.details.as_deref())
        .collect()
}

fn is_sound(failure: &Failure, evidence: &FailureEvidence) {
    assert!(Cause::ALL.contains(&failure.cause));
    assert_eq!(failure.severity, failure.kind.severity());
    let document = serde_json::to_value(failure).unwrap();
    assert_eq!(
        serde_json::from_value::<Failure>(document).unwrap(),
        *failure
    );
    assert!(
        failure.message.len() <= 200 && failure.message.lines().count() == 1,
        "{:?}",
        failure.message
    );
    assert!(
        failure
            .details
            .as_ref()
            .is_none_or(|details| details.len() <= 8 << 10)
    );
    assert_eq!(failure.evidence.len(), 1, "one piece of evidence decides");
    assert!(failure.rejected.len() <= 10);
    for one in failure.evidence.iter().chain(&failure.rejected) {
        assert!(one.text.len() <= 300 && !one.rule.is_empty(), "{one:?}");
        let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').count() as u64;
        let most = lines(&evidence.stdout).max(lines(&evidence.stderr));
        assert!(
            one.line.is_none_or(|line| (1..=most).contains(&line)),
            "{one:?}"
        );
    }
    for text in texts(failure) {
        assert!(
            !text
                .chars()
                .any(|c| c.is_control() && !matches!(c, '\n' | '\t')),
            "{text:?}"
        );
        // What was cut may end in a part of a mark.
        if text.len() < 150 {
            assert_eq!(redact(text), text, "masked, and masked again");
        }
    }
}

/// What is added to an output as words of their own does not come out.
fn keeps_secrets(evidence: &FailureEvidence, number: u32) {
    let secret = SECRETS[number as usize % SECRETS.len()];
    let line = match number / 4 % 4 {
        0 => format!("error: token {secret} was refused\n"),
        1 => format!("FAILED {secret}\n"),
        2 => format!("{{\"type\":\"error\",\"message\":\"401 {secret}\"}}\n"),
        _ => format!("fatal: could not read {secret} : permission denied"),
    };
    let mut more = evidence.clone();
    let stream = if (number / 16).is_multiple_of(2) {
        &mut more.stderr
    } else {
        &mut more.stdout
    };
    let at = if (number / 32).is_multiple_of(2) {
        0
    } else {
        stream.len()
    };
    let line = if at > 0 {
        format!("\n{line}")
    } else {
        line + "\n"
    };
    stream.splice(at..at, line.bytes());
    let lines = key_lines(number);
    let key = format!(
        "\n-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
        lines.join("\n")
    );
    stream.splice(at..at, key.bytes());
    let failure = classified(&more);
    for text in texts(&failure) {
        assert!(
            !lines.iter().any(|line| text.contains(line.as_str())),
            "a private key: {text}"
        );
    }
    let contains = |bytes: &[u8]| memchr::memmem::find(bytes, secret.as_bytes()).is_some();
    if contains(&evidence.stdout) || contains(&evidence.stderr) || evidence.message.is_some() {
        return;
    }
    for text in texts(&failure) {
        assert!(!text.contains(secret), "{text}");
    }
}

/// The inner lines of a private key, fewer or more than an excerpt holds.
fn key_lines(number: u32) -> Vec<String> {
    let line =
        |at: u32| format!("{:016x}", u64::from(number) * 0x9e37_79b9 + u64::from(at)).repeat(4);
    (0..10 + number / 64 % 140).map(line).collect()
}

/// The processor time of this thread.
fn spent() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// An output that is as much longer takes as much more time, and not much more than that.
fn is_linear(evidence: &FailureEvidence) {
    let cost = |length: usize| {
        let long = |bytes: &[u8]| -> Vec<u8> {
            if bytes.is_empty() {
                Vec::new()
            } else {
                bytes.iter().copied().cycle().take(length).collect()
            }
        };
        let more = FailureEvidence {
            stdout: long(&evidence.stdout),
            stderr: long(&evidence.stderr),
            ..evidence.clone()
        };
        let begun = spent();
        classified(&more);
        spent().saturating_sub(begun)
    };
    let factor = u32::try_from(LONG / SHORT).unwrap() * SLACK;
    // What else the machine does shows in the caches: the best of a few counts.
    let fits = (0..4).any(|_| cost(LONG) <= cost(SHORT).max(Duration::from_millis(2)) * factor);
    assert!(
        fits,
        "{:?} for {SHORT} bytes, {:?} for {LONG}",
        cost(SHORT),
        cost(LONG)
    );
}

/// The agent's records: a session is one plain word, and what a person reads of them does not depend on how they come.
fn reads_records(output: &[u8], cut: usize) {
    for &kind in AgentKind::ALL {
        let record = read(kind, output, output);
        assert!(
            record.session_id.as_deref().is_none_or(is_session_id),
            "{record:?}"
        );
        let streamed = |pieces: &[&[u8]]| {
            let mut stream = Stream::new(Some(kind));
            let mut shown: Vec<u8> = pieces.iter().flat_map(|piece| stream.take(piece)).collect();
            shown.extend(stream.end());
            assert!(
                stream.session().is_none_or(is_session_id),
                "{:?}",
                stream.session()
            );
            shown
        };
        assert_eq!(
            streamed(&[output]),
            streamed(&[&output[..cut], &output[cut..]]),
            "{kind:?} cut at {cut}"
        );
    }
}

impl Target for Classification {
    const NAME: &'static str = "classification";
    const TOKENS: &'static [&'static [u8]] = &[
        b"error: ",
        b"error[E0308]: mismatched types\n",
        b"FAILED tests/test_a.py::test_b - assert 1 == 2\n",
        b"test result: FAILED. 1 passed; 1 failed;\n",
        b"warning: ",
        b"Permission denied\n",
        b"No space left on device\n",
        b"No such file or directory\n",
        b"command not found\n",
        b"Connection refused\n",
        b"429 Too Many Requests",
        b"rate limit",
        b"usage limit reached. Your limit will reset at 3pm (UTC)\n",
        b"retry-after: 30\n",
        b"overloaded_error",
        b"prompt is too long",
        b"Invalid API key",
        b"Killed\n",
        b"Segmentation fault (core dumped)\n",
        b"out of memory",
        b"Traceback (most recent call last):\n",
        b"panicked at src/main.rs:1:1:\n",
        b"npm ERR! ",
        b"make: *** [all] Error 2\n",
        b"\x1b[31m",
        b"\r",
        b"\0",
        b"password=",
        b"Authorization: Bearer ",
        b"[redacted]",
        b"https://user:pass@host/",
        b"api_key: ",
        b"-----BEGIN RSA PRIVATE KEY-----\n",
        b"-----END RSA PRIVATE KEY-----\n",
        b"ghp_0123456789abcdefghij0123",
        b"sk-",
        b"eyJ",
        b"{\"type\":\"result\",\"subtype\":\"error_max_turns\",\"session_id\":\"s\"}\n",
        b"{\"type\":\"error\"}\n",
        b"\xe2\x80\xa6",
        b"\xff",
    ];

    fn play(&mut self, inputs: &[Vec<u8>]) -> Vec<u64> {
        inputs.iter().map(|input| play_one(input)).collect()
    }
}

fn play_one(input: &[u8]) -> u64 {
    let evidence = evidence(input);
    let failure = classified(&evidence);
    assert_eq!(classified(&evidence), failure, "the same each time");
    is_sound(&failure, &evidence);
    let number = crc32fast::hash(input);
    keeps_secrets(&evidence, number);
    if number.is_multiple_of(8) {
        reads_records(
            &evidence.stdout,
            number as usize % (evidence.stdout.len() + 1),
        );
    }
    if number.is_multiple_of(LENGTHS) {
        is_linear(&evidence);
    }
    let rule = failure.evidence.first().map(|one| one.rule.clone());
    let rejected: Vec<&str> = failure
        .rejected
        .iter()
        .map(|one| one.rule.as_str())
        .collect();
    seen(&(
        failure.kind,
        failure.cause,
        failure.retryable,
        rule,
        rejected,
        failure.retry_after.is_some(),
    ))
}
