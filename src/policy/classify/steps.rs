//! The classification steps, in order of precedence.

use super::api;
use super::author_message;
use super::conclusion::{Conclusion, exit_text};
use super::feedback;
use super::inputs::Inputs;

use super::process;
use super::rules::{AGENT, Family};
use super::scan::Scan;
use super::unknown_agent;
use super::user_rule;
use super::verdict::AGENT_UNKNOWN;
use crate::model::agent_record::AgentKind;
use crate::model::failure::Cause;
use crate::model::feedback::CheckKind;
use crate::policy::settings::UserRule;
use crate::policy::text::Text;

/// Asks the questions, the user's own rules first.
pub(super) fn decide(user_rules: &[UserRule], inputs: &Inputs<'_>) -> Conclusion {
    let decided = || {
        if inputs.stage == Some(CheckKind::Agent) {
            decide_agent(inputs)
        } else {
            feedback::decide(inputs)
        }
    };
    let named = user_rule::apply(user_rules, inputs).or_else(|| author_message::named(inputs));
    named.unwrap_or_else(decided)
}

fn decide_agent(inputs: &Inputs<'_>) -> Conclusion {
    let nothing = Text::default();
    let evidence = inputs.evidence;
    let signal = process::signal(evidence, None);
    let signal = signal.as_deref();
    let record = inputs.record;
    if let Some(fact) = process::time_limit(evidence, signal) {
        return Conclusion::of_fact(fact);
    }
    let cancelled = process::cancellation(evidence, signal);
    // "is_error: false" and a final error both beat a late status; an interruption before them does not.
    let ended = record.is_some_and(|record| record.final_error.is_some() || record.is_success);
    if let Some(fact) =
        cancelled.filter(|_| evidence.cancelled || evidence.signal.is_some() || !ended)
    {
        return Conclusion::of_fact(fact);
    }
    if let Some(fact) = process::crash(signal) {
        // The transcript quotes what it likes; only the program's own last words on stderr say why it died.
        let scan = Scan::new(inputs.stderr, &nothing, AGENT, false);
        let memory = scan.best(Family::Memory, AGENT).map(Conclusion::of_hit);
        return memory.unwrap_or_else(|| Conclusion::of_fact(fact));
    }
    if let Some(reported) = record.and_then(api::from_record) {
        return Conclusion::of_report(reported);
    }
    if let Some(fact) =
        process::not_started(evidence).or_else(|| process::shell_status(evidence, None))
    {
        let scan = Scan::new(inputs.stderr, &nothing, AGENT, false);
        let tool = scan
            .best(Family::MissingTool, AGENT)
            .map(Conclusion::of_hit);
        return tool.unwrap_or_else(|| Conclusion::of_fact(fact));
    }
    let structured = record.is_some_and(|record| record.structured);
    let stdout = if structured { &nothing } else { inputs.stdout };
    if let Some(record) = unknown_agent::last_error(inputs.stdout).filter(|_| !structured)
        && let Some(reported) = api::from_record(&record)
    {
        return Conclusion::of_report(reported);
    }
    let scan = Scan::new(inputs.stderr, &nothing, AGENT, false);
    let said_scan = Scan::new(inputs.stderr, stdout, AGENT, false);
    let memory_or_machine = |errno: bool| {
        let families = [Family::Memory, Family::Machine, Family::MissingTool];
        let stderr = families
            .into_iter()
            .find_map(|family| scan.best(family, AGENT));
        let stdout = || {
            said_scan
                .best(Family::Machine, AGENT)
                .filter(|hit| errno || hit.line.bytes.starts_with(b"Error"))
        };
        stderr.or_else(stdout).map(Conclusion::of_hit)
    };
    let said = said_scan
        .best(Family::Cancelled, AGENT)
        .map(Conclusion::of_hit);
    if let Some(headed) = author_message::headed(inputs) {
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
            .any(|name| reported.text.contains(name));
        let vague = matches!(
            reported.verdict.cause,
            Cause::ResourceNotFound | Cause::Unknown | Cause::InvalidInput
        );
        // An interruption tears down connections; another error after it is another matter.
        let torn = matches!(reported.verdict.cause, Cause::NetworkError | Cause::Unknown);
        let later = |said: &Conclusion| {
            reported.source == said.evidence.source && reported.line > said.evidence.line
        };
        if let Some(cancelled) = said.filter(|said| torn || !later(said)) {
            return cancelled;
        }
        if let Some(machine) = memory_or_machine(errno).filter(|_| errno || vague) {
            return machine;
        }
        return Conclusion::of_report(reported);
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
    // A program that is no agent that we know may be a script around a build: what only a tool prints counts, words do not.
    let is_output = evidence.message.is_none() && record.is_none() && evidence.agent.is_none();
    let tool = || feedback::strong(inputs);
    if let Some(conclusion) = is_output.then(tool).flatten() {
        return conclusion;
    }
    Conclusion::unexplained("agent.no-reason", AGENT_UNKNOWN, inputs)
}
