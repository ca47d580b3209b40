//! Classifies a failed attempt: from its output, its exit and the agent's record to a cause, with the evidence for it.
//!
//! The questions are asked in a fixed order, and the first that applies decides: a time limit, a cancellation, a dead
//! process, the agent's own error, the machine, and last the project. Within a question the evidence counts by its
//! strength: what the process shows, what records say, stderr, stdout. The words are data: see `rules`.

mod api;
mod check_summary;
mod command_line;
mod complaint;
mod conclusion;
mod crash;
mod feedback;
mod inputs;
mod message;
mod process;
mod reset_time;
mod rules;
mod scan;
mod stage;

pub(crate) use api::lone_error;
pub(crate) use check_summary::summarize;
pub(crate) use stage::{guess_loop, guess_stage, stage_of_command};

use std::cell::OnceCell;

use regex::bytes::Regex;

use super::settings::UserRule;
use super::text::Text;
use crate::model::agent_record::{AgentKind, AgentRecord};
use crate::model::failure::{
    Cause, CauseDetail, Condition, Evidence, EvidenceSource, Failure, FailureEvidence, FailureType,
    SuggestedAction,
};
use crate::model::feedback::CheckKind;
use crate::model::time::Timestamp;
use check_summary::count;
use conclusion::{Conclusion, exit_text};
use inputs::Inputs;
use rules::{AGENT, AGENT_UNKNOWN, BAD_REQUEST, Family, Verdict};
use scan::Scan;

/// Classifies a failed attempt.
///
/// `record` is what the agent's reader found, `user_rules` come before the built-in ones, and `now` resolves reset
/// times. The same arguments always give the same answer; time is linear in the output.
pub fn classify(
    evidence: &FailureEvidence,
    record: Option<&AgentRecord>,
    user_rules: &[UserRule],
    now: Timestamp,
) -> Failure {
    let stage = evidence.stage.or_else(|| stage_of(evidence, record));
    let stdout = Text::new(&evidence.stdout);
    let mut stderr = if evidence.is_merged && stage == Some(CheckKind::Agent) {
        Text::new(&without_records(&evidence.stdout))
    } else {
        Text::new(&evidence.stderr)
    };
    if let Some(message) = &evidence.message {
        stderr.push_note(message);
    }
    let inputs = Inputs {
        evidence,
        record,
        stage,
        stderr: &stderr,
        stdout: &stdout,
        counts: count([&stdout, &stderr]),
        now,
        raised: crash::raised_in([
            (EvidenceSource::Stderr, &stderr),
            (EvidenceSource::Stdout, &stdout),
        ]),
        names: OnceCell::new(),
    };
    decide(user_rules, &inputs).into_failure(&inputs)
}

/// What an agent's program said beside its records, whose line numbers are kept.
fn without_records(output: &[u8]) -> Vec<u8> {
    let lines = output.split_inclusive(|byte| *byte == b'\n');
    lines
        .flat_map(|line| if line.starts_with(b"{") { b"\n" } else { line })
        .copied()
        .collect()
}

fn stage_of(evidence: &FailureEvidence, record: Option<&AgentRecord>) -> Option<CheckKind> {
    let structured = record.is_some_and(|record| record.structured);
    let named = evidence
        .agent
        .as_deref()
        .is_some_and(|name| !matches!(name, "auto" | "none"));
    if structured || named {
        return Some(CheckKind::Agent);
    }
    evidence.command.as_deref().and_then(guess_stage)
}

/// The patterns that lines are matched against.
#[cfg(test)]
pub(super) fn patterns() -> Vec<&'static str> {
    let mut patterns = rules::patterns();
    patterns.extend(scan::PATTERNS.concat());
    patterns.extend([complaint::SHAPES, complaint::RAN].concat());
    patterns.extend(crash::patterns());
    patterns.extend(message::patterns());
    patterns.extend(stage::patterns());
    patterns.extend(check_summary::patterns());
    patterns
}

/// Asks the questions, the user's own rules first.
fn decide(user_rules: &[UserRule], inputs: &Inputs<'_>) -> Conclusion {
    let decided = || {
        if inputs.stage == Some(CheckKind::Agent) {
            decide_agent(inputs)
        } else {
            feedback::decide(inputs)
        }
    };
    let named = apply(user_rules, inputs).or_else(|| feedback::named(inputs));
    named.unwrap_or_else(decided)
}

/// Who refuses its arguments says no more than how it is called.
const USAGE_LINES: usize = 12;

fn decide_agent(inputs: &Inputs<'_>) -> Conclusion {
    let nothing = Text::default();
    let evidence = inputs.evidence;
    let signal = process::signal(evidence, None);
    let signal = signal.as_deref();
    let record = inputs.record;
    // The transcript quotes what it likes; only the program's own last words on stderr say why it died.
    let scan = Scan::new(inputs.stderr, &nothing, AGENT, false);
    let best = |family| scan.best(family, AGENT).map(Conclusion::of_hit);
    // "is_error: false" and a final error both beat a late status; an interruption before them does not.
    let ended = record.is_some_and(|record| record.final_error.is_some() || record.is_success);
    let is_cancelled = evidence.cancelled || evidence.signal.is_some() || !ended;
    let cancelled = || process::cancellation(evidence, signal).filter(|_| is_cancelled);
    let died = || {
        let crash = process::crash(signal)?;
        Some(best(Family::Memory).unwrap_or(crash))
    };
    let not_run = || {
        let status = || process::shell_status(evidence, None);
        let not_run = process::not_started(evidence).or_else(status)?;
        Some(best(Family::MissingTool).unwrap_or(not_run))
    };
    let shown = process::time_limit(evidence, signal)
        .or_else(cancelled)
        .or_else(died)
        .or_else(|| record.and_then(api::from_record))
        .or_else(not_run);
    if let Some(conclusion) = shown {
        return conclusion;
    }
    let structured = record.is_some_and(|record| record.structured);
    let stdout = if structured { &nothing } else { inputs.stdout };
    if let Some(record) = api::last_error(inputs.stdout).filter(|_| !structured)
        && let Some(reported) = api::from_record(&record)
    {
        return reported;
    }
    let said_scan = Scan::new(inputs.stderr, stdout, AGENT, false);
    let memory_or_machine = |errno: bool| {
        let families = [Family::Memory, Family::Machine, Family::MissingTool];
        let stdout = || {
            let hit = said_scan.best(Family::Machine, AGENT)?;
            let counts = errno || hit.line.bytes.starts_with(b"Error");
            counts.then(|| Conclusion::of_hit(hit))
        };
        families.into_iter().find_map(best).or_else(stdout)
    };
    let said = said_scan
        .best(Family::Cancelled, AGENT)
        .map(Conclusion::of_hit);
    if let Some(headed) = feedback::headed(inputs) {
        let why = [Family::Memory, Family::Machine]
            .into_iter()
            .find_map(|family| said_scan.best(family, AGENT));
        return said
            .or_else(|| why.map(Conclusion::of_hit))
            .or_else(|| memory_or_machine(false))
            .unwrap_or(headed);
    }
    if let Some(reported) = api::from_text(inputs.stderr, stdout) {
        // An errno says that the machine refused the program itself, whatever the words resemble.
        let errno = ["EACCES", "EPERM", "EROFS", "ENOSPC", "os error ", "[Errno "]
            .iter()
            .any(|name| reported.evidence.text.contains(name));
        let vague = matches!(
            reported.verdict.cause,
            Cause::ResourceNotFound | Cause::Unknown | Cause::InvalidInput
        );
        // An interruption tears down connections; another error after it is another matter.
        let torn = matches!(reported.verdict.cause, Cause::NetworkError | Cause::Unknown);
        let later = |said: &Conclusion| {
            let (reported, said) = (&reported.evidence, &said.evidence);
            reported.source == said.source && reported.line > said.line
        };
        if let Some(cancelled) = said.filter(|said| torn || !later(said)) {
            return cancelled;
        }
        if let Some(machine) = memory_or_machine(errno).filter(|_| errno || vague) {
            return machine;
        }
        return reported;
    }
    if let Some(conclusion) = said.or_else(|| memory_or_machine(false)) {
        return conclusion;
    }
    let gemini = record.is_some_and(|record| record.kind == AgentKind::Gemini);
    if let Some((rule, verdict)) = evidence
        .exit_code
        .filter(|_| gemini)
        .and_then(api::verdict_of_gemini_exit)
    {
        return Conclusion::bare(rule, verdict, exit_text(evidence));
    }
    // What it was called with it refused, whichever program it is.
    let refused = scan.best(Family::Input, AGENT);
    let did_nothing = inputs.stdout.is_empty() && inputs.stderr.lines().len() <= USAGE_LINES;
    if let Some(hit) = refused.filter(|_| did_nothing) {
        return Conclusion::of_line(hit.rule.id, BAD_REQUEST, hit.source, hit.line);
    }
    // A program that is no agent that we know may be a script around a build: what only a tool prints counts, words do not.
    let is_output = evidence.message.is_none() && record.is_none() && evidence.agent.is_none();
    let tool = || feedback::strong(inputs);
    if let Some(conclusion) = is_output.then(tool).flatten() {
        return conclusion;
    }
    Conclusion::unexplained("agent.no-reason", AGENT_UNKNOWN, inputs)
}

/// The first rule that matches, if one does: the record first, then stderr, then stdout, last lines first.
fn apply(rules: &[UserRule], inputs: &Inputs<'_>) -> Option<Conclusion> {
    let at_stage = |rule: &&UserRule| rule.stage.is_none() || rule.stage == inputs.stage;
    rules.iter().filter(at_stage).find_map(|rule| {
        find(rule, inputs).map(|evidence| Conclusion::new(verdict_of(rule), evidence))
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
        condition: None,
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

fn find(rule: &UserRule, inputs: &Inputs<'_>) -> Option<Evidence> {
    let regex = Regex::new(&rule.pattern).ok()?;
    let reads = |source| rule.source.is_none_or(|wanted| wanted == source);
    let error = inputs.record.and_then(|record| record.final_error.as_ref());
    if let Some(error) = error
        .filter(|error| reads(EvidenceSource::Record) && regex.is_match(error.message.as_bytes()))
    {
        return Some(Evidence {
            rule: rule.id.clone(),
            source: EvidenceSource::Record,
            line: Some(error.line),
            text: error.message.clone(),
        });
    }
    let mut streams = inputs.streams().into_iter();
    streams.find_map(|(source, text)| {
        let mut lines = text.lines().rev().filter(|_| reads(source));
        let line = lines.find(|line| regex.is_match(line.bytes))?;
        Some(scan::evidence(&rule.id, source, line))
    })
}

/// What is said of an attempt whose `recover` was killed.
const SUPERVISOR_LOST: &str = "recover was killed in the middle of the attempt";

/// The attempt was stopped by whoever ran it.
pub(crate) fn cancelled() -> Failure {
    process::cancelled().into_failure_without_output()
}

/// The attempt removed the repository, which was put back, as `message` says: the same may be tried once more.
pub(crate) fn repository_removed(message: String) -> Failure {
    let removed = (FailureType::SystemError, Cause::Unknown);
    Failure {
        conditions: vec![Condition::RepositoryRemoved],
        ..seen("process.repository-removed", removed, message)
    }
}

/// The guard ended an attempt in which nothing happened any more.
pub(crate) fn stalled(message: String) -> Failure {
    let timed_out = (FailureType::Timeout, Cause::ToolTimeout);
    Failure {
        conditions: vec![Condition::Stalled],
        ..seen("guard.idle", timed_out, message)
    }
}

/// The guard ended an attempt whose agent called a tool again and again.
pub(crate) fn repeated_itself(message: String) -> Failure {
    Failure {
        conditions: vec![Condition::Stalled, Condition::CircularFix],
        retryable: false,
        suggested_action: SuggestedAction::FixAndContinue,
        ..seen(
            "guard.repeats",
            (FailureType::AgentError, Cause::Unknown),
            message,
        )
    }
}

/// The guard ended an attempt in which the run's bound on cost or tokens was reached.
pub(crate) fn budget_spent(message: String) -> Failure {
    Failure {
        detail: Some(CauseDetail::CostLimit),
        retryable: false,
        suggested_action: SuggestedAction::ManualResolution,
        ..seen(
            "guard.budget",
            (FailureType::AgentError, Cause::Unknown),
            message,
        )
    }
}

/// The guard ended an attempt before the disk was full.
pub(crate) fn disk_filling(message: String) -> Failure {
    Failure {
        retryable: false,
        recoverable: false,
        suggested_action: SuggestedAction::ManualResolution,
        ..seen(
            "guard.min-free",
            (FailureType::SystemError, Cause::DiskFull),
            message,
        )
    }
}

/// What the supervisor itself saw, rather than read; the same may be tried again.
fn seen(rule: &str, (kind, cause): (FailureType, Cause), message: String) -> Failure {
    let evidence = Evidence {
        rule: rule.to_owned(),
        source: EvidenceSource::Process,
        line: None,
        text: message.clone(),
    };
    Failure {
        signature: evidence.rule.clone(),
        evidence: vec![evidence],
        kind,
        severity: kind.severity(),
        cause,
        details: Some(message.clone()),
        message,
        retryable: true,
        recoverable: true,
        suggested_action: SuggestedAction::RetryIteration,
        ..cancelled()
    }
}

/// The `recover` that supervised the attempt was killed: the same may be tried again from where it was.
pub(crate) fn supervisor_lost() -> Failure {
    Failure {
        detail: Some(CauseDetail::SupervisorLost),
        message: SUPERVISOR_LOST.to_owned(),
        details: Some(SUPERVISOR_LOST.to_owned()),
        retryable: true,
        recoverable: true,
        suggested_action: SuggestedAction::RetryIteration,
        ..process::died("SIGKILL").into_failure_without_output()
    }
}

#[cfg(test)]
mod tests;
