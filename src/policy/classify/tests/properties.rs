//! What holds of every input.

use std::time::Duration;

use proptest::prelude::*;

use super::{evidence, now, short, stage};
use crate::agent;
use crate::model::agent_record::AgentKind;
use crate::model::failure::{Cause, EvidenceSource, FailureEvidence};
use crate::model::feedback::CheckKind;
use crate::policy::classify::classify;
use crate::policy::settings::UserRule;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_classified_and_always_alike(
        stdout in proptest::collection::vec(any::<u8>(), 0..2000),
        stderr in "(error|FAILED|\\x1b\\[|[\\r\\n]|E   |Permission denied|resets |[0-9]{1,12}|\\{\"type\":|\\PC){0,60}",
        code in any::<i32>(),
        letter in "[abtlc-]",
    ) {
        let evidence = FailureEvidence {
            stage: stage(letter.chars().next().unwrap_or('-')),
            exit_code: Some(code),
            stdout,
            stderr: stderr.into_bytes(),
            ..FailureEvidence::default()
        };
        for kind in [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini, AgentKind::Opencode, AgentKind::Aider] {
            let record = agent::read(kind, &evidence.stdout, &evidence.stderr);
            let first = classify(&evidence, Some(&record), &[], now());
            let second = classify(&evidence, Some(&record), &[], now());
            prop_assert_eq!(&first, &second);
            prop_assert!(first.details.as_ref().is_none_or(|details| details.len() <= 8 << 10));
            prop_assert!(first.message.len() <= 300 && first.rejected.len() <= 10);
        }
    }
}

#[test]
fn a_deadline_beats_everything() {
    let mut evidence = evidence(
        't',
        0,
        "1 failed, 2 passed in 0.1s\nKeyboardInterrupt",
        false,
    );
    evidence.duration = Some(Duration::from_secs(60));
    evidence.deadline = Some(Duration::from_secs(60));
    assert_eq!(
        short(&classify(&evidence, None, &[], now())),
        "t TOOL_TIMEOUT+"
    );
    evidence.deadline = Some(Duration::from_secs(61));
    assert_eq!(short(&classify(&evidence, None, &[], now())), "x CANCELLED");
}

#[test]
fn timeout1_counts_only_when_its_time_was_up() {
    let run = |command: &str, millis| {
        let mut evidence = evidence('t', 124, "", false);
        evidence.command = Some(command.to_owned());
        evidence.duration = Some(Duration::from_millis(millis));
        short(&classify(&evidence, None, &[], now()))
    };
    assert_eq!(run("timeout 4 cargo test", 4033), "t TOOL_TIMEOUT+");
    assert_eq!(run("timeout 60 ./check.sh", 300), "f UNKNOWN");
    assert_eq!(run("./soak.sh", 300), "t TOOL_TIMEOUT+");
}

#[test]
fn what_cannot_start_is_missing_or_refused() {
    let run = |error: &str| {
        let spawn_error = Some(error.to_owned());
        short(&classify(
            &FailureEvidence {
                spawn_error,
                ..FailureEvidence::default()
            },
            None,
            &[],
            now(),
        ))
    };
    assert_eq!(
        run("No such file or directory (os error 2)"),
        "s RESOURCE_NOT_FOUND"
    );
    assert_eq!(
        run("Permission denied (os error 13)"),
        "s PERMISSION_DENIED"
    );
}

#[test]
fn user_rules_come_first() {
    let rule = UserRule {
        id: "mine".to_owned(),
        pattern: "license server".to_owned(),
        source: Some(EvidenceSource::Stderr),
        stage: Some(CheckKind::Build),
        kind: None,
        cause: Cause::NetworkError,
        retryable: None,
    };
    let evidence = evidence('b', 1, "a.c:1:1: error: x\nno license server today", true);
    let failure = classify(&evidence, None, &[rule], now());
    assert_eq!(
        (short(&failure).as_str(), failure.evidence[0].line),
        ("s NETWORK_ERROR+", Some(2))
    );
}

#[test]
fn a_limit_that_a_user_rule_names_resets_when_its_line_says() {
    let rule = UserRule {
        id: "licences".to_owned(),
        pattern: "all licences are in use".to_owned(),
        source: None,
        stage: None,
        kind: None,
        cause: Cause::RateLimited,
        retryable: None,
    };
    let said = |line: &str| {
        classify(
            &evidence('b', 1, line, true),
            None,
            std::slice::from_ref(&rule),
            now(),
        )
    };
    let waits = said("all licences are in use, try again in 90 seconds").retry_after;
    assert_eq!(waits, Some(now().plus(std::time::Duration::from_secs(90))));
    assert_eq!(said("all licences are in use").retry_after, None);
}

#[test]
fn megabytes_of_noise_hide_nothing() {
    let mut output =
        "2026 GET /a/b?c=1 200 connection pool 17 of 20, 3 retries, error rate 0.1 %\n"
            .repeat(40_000);
    output.push_str("--- FAIL: TestX (0.00s)\nFAIL\tx\t0.1s\n");
    let failure = classify(&evidence('t', 1, &output, false), None, &[], now());
    assert_eq!(short(&failure), "f VERIFICATION_FAILED");
}

#[test]
fn verdicts_say_why_and_hide_secrets() {
    let output = "curl: (6) Could not resolve host: x\nerror: https://me:hunter22@x/y failed\n";
    let failure = classify(&evidence('b', 6, output, true), None, &[], now());
    assert_eq!(failure.evidence[0].rule, "network.name");
    assert_eq!(
        (failure.evidence[0].source, failure.evidence[0].line),
        (EvidenceSource::Stderr, Some(1))
    );
    assert!(!failure.details.unwrap().contains("hunter22"));
}
