//! Invented outputs of many tools, each as short as its point, and what they mean.

mod agents;
mod checks;
mod kinds;
mod machine;
mod messages;
mod projects;
mod properties;
mod refused;

use super::classify;
use crate::model::failure::{Failure, FailureEvidence};
use crate::model::feedback::CheckKind;
use crate::model::time::Timestamp;

/// Stage, exit status, output (stdout and stderr alike), `cause` or `cause+` where the same again may succeed.
type Case = (char, i32, &'static str, &'static str);

fn now() -> Timestamp {
    "2026-11-22T14:30:00Z".parse().unwrap()
}

fn stage(letter: char) -> Option<CheckKind> {
    match letter {
        'a' => Some(CheckKind::Agent),
        'b' => Some(CheckKind::Build),
        't' => Some(CheckKind::Test),
        'l' => Some(CheckKind::Lint),
        'c' => Some(CheckKind::Typecheck),
        _ => None,
    }
}

fn evidence(letter: char, code: i32, output: &str, on_stderr: bool) -> FailureEvidence {
    let (stdout, stderr) = if on_stderr {
        ("", output)
    } else {
        (output, "")
    };
    FailureEvidence {
        stage: stage(letter),
        exit_code: Some(code),
        stdout: stdout.into(),
        stderr: stderr.into(),
        ..FailureEvidence::default()
    }
}

fn short(failure: &Failure) -> String {
    let kind = match failure.kind.as_str() {
        "feedback_failure" => "f",
        "system_error" => "s",
        "agent_error" => "a",
        "timeout" => "t",
        "cancellation" => "x",
        _ => "c",
    };
    let retry = if failure.retryable { "+" } else { "" };
    format!("{kind} {}{retry}", failure.cause.as_str())
}

/// Every case on both streams: what is said counts, not where.
fn check(cases: &[Case]) {
    let mut misses = Vec::new();
    for (letter, code, output, wanted) in cases {
        for on_stderr in [false, true] {
            let failure = classify(
                &evidence(*letter, *code, output, on_stderr),
                None,
                &[],
                now(),
            );
            if short(&failure) != *wanted {
                let seen = short(&failure);
                misses.push(format!(
                    "wanted {wanted}, seen {seen} by {:?}\n{output}\n",
                    failure.evidence[0]
                ));
                break;
            }
        }
    }
    assert!(
        misses.is_empty(),
        "{} of {}:\n{}",
        misses.len(),
        cases.len(),
        misses.join("\n")
    );
}
