//! A user's own rules, which come before the built-in ones.

use regex::bytes::Regex;

use super::conclusion::Conclusion;
use super::inputs::Inputs;
use super::verdict::Verdict;
use crate::model::failure::{Cause, Evidence, EvidenceSource, FailureType};
use crate::policy::settings::UserRule;

/// The first rule that matches, if one does: the record first, then stderr, then stdout, last lines first.
pub(super) fn apply(rules: &[UserRule], inputs: &Inputs<'_>) -> Option<Conclusion> {
    let at_stage = |rule: &&UserRule| rule.stage.is_none() || rule.stage == inputs.stage;
    rules.iter().filter(at_stage).find_map(|rule| {
        let (source, line, text) = find(rule, inputs)?;
        let verdict = verdict_of(rule);
        let evidence = Evidence {
            rule: rule.id.clone(),
            source,
            line,
            text: text.clone(),
        };
        Some(Conclusion::new(verdict, evidence, text))
    })
}

/// What the rule leaves out is filled in from its cause.
fn verdict_of(rule: &UserRule) -> Verdict {
    Verdict {
        kind: rule.kind.unwrap_or_else(|| usual_type(rule.cause)),
        cause: rule.cause,
        retryable: rule
            .retryable
            .unwrap_or_else(|| usually_passes_again(rule.cause)),
        detail: None,
    }
}

fn usual_type(cause: Cause) -> FailureType {
    match cause {
        Cause::BrokenBuild | Cause::VerificationFailed | Cause::InvalidInput | Cause::Unknown => {
            FailureType::FeedbackFailure
        }
        Cause::ToolTimeout => FailureType::Timeout,
        Cause::RateLimited | Cause::ContextExhausted | Cause::AuthFailed => FailureType::AgentError,
        Cause::NetworkError
        | Cause::PermissionDenied
        | Cause::DiskFull
        | Cause::ResourceNotFound => FailureType::SystemError,
        Cause::OutOfMemory | Cause::Crashed => FailureType::Crash,
        Cause::Cancelled => FailureType::Cancellation,
    }
}

fn usually_passes_again(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::ToolTimeout | Cause::RateLimited | Cause::NetworkError
    )
}

fn find(rule: &UserRule, inputs: &Inputs<'_>) -> Option<(EvidenceSource, Option<u64>, String)> {
    let regex = Regex::new(&rule.pattern).ok()?;
    let reads = |source| rule.source.is_none_or(|wanted| wanted == source);
    let error = inputs.record.and_then(|record| record.final_error.as_ref());
    if let Some(error) = error
        .filter(|error| reads(EvidenceSource::Record) && regex.is_match(error.message.as_bytes()))
    {
        return Some((
            EvidenceSource::Record,
            Some(error.line),
            error.message.clone(),
        ));
    }
    let streams = [
        (EvidenceSource::Stderr, inputs.stderr),
        (EvidenceSource::Stdout, inputs.stdout),
    ];
    streams
        .into_iter()
        .filter(|(source, _)| reads(*source))
        .find_map(|(source, text)| {
            let line = text.lines().rev().find(|line| regex.is_match(line.bytes))?;
            Some((
                source,
                Some(line.number).filter(|number| *number > 0),
                line.to_text(),
            ))
        })
}
