//! Runs `attempt` and `classify`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use signal_hook::low_level;

use super::super::args::{
    AttemptArgs, AttemptCommand, AttemptFailArgs, AttemptPassArgs, AttemptStartArgs, ClassifyArgs,
    EvidenceArgs,
};
use super::super::render;
use super::super::replies::ExitCode;
use super::super::ui::{Reply, Ui, escape};
use crate::agent;
use crate::engine::base::clock;
use crate::engine::run::own_loop;
use crate::engine::{Context, Error, ErrorKind, Result, answers, inspect};
use crate::model::agent_record::{AgentKind, AgentRecord};
use crate::model::failure::FailureEvidence;
use crate::model::{AttemptEnd, CheckKind, Decision, Failure};
use crate::policy::classify::{classify as judge, guess_stage};
use crate::policy::text::condensed;
use crate::process::Interrupts;
use crate::store::views::attempt_history;

/// Dispatches.
pub(super) fn execute(context: &Context, args: &AttemptArgs, ui: &Ui) -> Result<Reply> {
    match &args.command {
        AttemptCommand::Start(args) => begin(context, args),
        AttemptCommand::Pass(args) => pass(context, args, ui),
        AttemptCommand::Fail(args) => fail(context, args, ui),
        AttemptCommand::List => list(context, ui),
    }
}

fn begin(context: &Context, args: &AttemptStartArgs) -> Result<Reply> {
    let request = own_loop::Begin {
        approach: args.approach.clone(),
        iteration: args.iteration,
        subtask: args.subtask.clone(),
        supervisor: None,
    };
    let started = own_loop::start(context, &request)?;
    let text = format!(
        "Attempt {} of iteration {} of run {}.\n",
        started.attempt, started.iteration, started.run.key
    );
    Ok(Reply::new(started, text))
}

fn pass(context: &Context, args: &AttemptPassArgs, ui: &Ui) -> Result<Reply> {
    let (headline, approach) = (args.message.clone(), args.approach.clone());
    let end = AttemptEnd {
        approach,
        ..AttemptEnd::default()
    };
    let ended = own_loop::finish(
        context,
        own_loop::Ending {
            end,
            headline,
            ..own_loop::Ending::default()
        },
    )?;
    let id = ended
        .checkpoint
        .as_ref()
        .map(|checkpoint| checkpoint.id.clone());
    let text = match (&id, &ended.checkpoint_error) {
        _ if context.dry_run() => "Would record a pass and take a good checkpoint.\n".to_owned(),
        (Some(id), _) => format!(
            "Passed: {} is the last good checkpoint.\n",
            ui.knowing(context).id(id)
        ),
        (None, error) => format!(
            "Passed, without a checkpoint: {}\n",
            error.as_deref().unwrap_or_default()
        ),
    };
    let exit = ExitCode::PARTIAL.unless(id.is_some() || context.dry_run());
    let text = text + &render::conditions_text(&ended.end.conditions, &ended.end.notes);
    Ok(Reply::new(answers::Passed::from(&ended), text).exit(exit))
}

fn fail(context: &Context, args: &AttemptFailArgs, ui: &Ui) -> Result<Reply> {
    let mut evidence = evidence(context, &args.evidence)?;
    // Nothing but which loop failed, as of a check that prints nothing.
    let is_told = [&evidence.stdout, &evidence.stderr]
        .into_iter()
        .any(|said| !said.trim_ascii().is_empty());
    evidence.is_check = !is_told
        && evidence.message.is_none()
        && evidence
            .stage
            .is_some_and(|stage| stage != CheckKind::Agent);
    // A loop's log is its agent's, unless it says what else it ran.
    if evidence.stage.is_none() && evidence.command.is_none() && is_told {
        evidence.stage = Some(CheckKind::Agent);
    }
    let record = record(&args.evidence, &evidence);
    let failure = judge(
        &evidence,
        record.as_ref(),
        &context.settings().rules,
        context.clock.now(),
    );
    let used = record.as_ref().map(AgentRecord::usage).unwrap_or_default();
    let ending = own_loop::Ending {
        end: AttemptEnd {
            failure: Some(failure),
            duration_ms: evidence.duration.map_or(0, clock::millis),
            exit_code: evidence.exit_code,
            signal: evidence.signal.clone(),
            timed_out: evidence.timed_out,
            approach: args.approach.clone(),
            cost_micros: used.cost_micros,
            tokens: used.tokens,
            agent_session: record.and_then(|record| record.session_id),
            ..AttemptEnd::default()
        },
        in_feedback_loop: evidence
            .stage
            .is_some_and(|stage| stage != CheckKind::Agent),
        log_end: log_end(&evidence),
        plan: args.plan,
        keep_state: args.no_rollback,
        ..own_loop::Ending::default()
    };
    let ended = own_loop::finish(context, ending)?;
    let exit = match &ended.end.decision {
        Some(decision) if args.check => {
            ExitCode::of_failed(decision.standing(context.clock.now(), None))
        }
        _ => ExitCode::DONE,
    };
    if let Some(path) = &ended.report {
        ui.note(&format!("report: {}", path.display()));
    }
    let text = failed_text(ended.end.failure.as_ref(), ended.end.decision.as_ref())
        + &render::conditions_text(&ended.end.conditions, &ended.end.notes);
    Ok(Reply::new(answers::Failed::from(&ended), text).exit(exit))
}

/// The end of what the command said: of its output, else of its errors.
fn log_end(evidence: &FailureEvidence) -> String {
    const LONGEST: usize = 64 << 10;
    let said = if evidence.stdout.is_empty() {
        &evidence.stderr
    } else {
        &evidence.stdout
    };
    String::from_utf8_lossy(&said[said.len().saturating_sub(LONGEST)..]).into_owned()
}

fn failed_text(failure: Option<&Failure>, decision: Option<&Decision>) -> String {
    let mut text = String::new();
    if let Some(failure) = failure {
        let (kind, cause) = (failure.kind.as_str(), failure.cause.as_str());
        text.push_str(&format!("{kind} ({cause}): {}\n", escape(&failure.message)));
    }
    if let Some(decision) = decision {
        text.push_str(&format!(
            "Decision: {} ({})\n",
            render::actions(decision),
            clock::local_times(&decision.reason)
        ));
    }
    text
}

fn list(context: &Context, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let state = inspect::load_recovered(context)?;
    let history = attempt_history(&state);
    let text = ui.text(|| render::attempts_text(ui, &history));
    Ok(Reply::new(history, text))
}

/// `recover classify`.
pub(super) fn classify(context: &Context, args: &ClassifyArgs) -> Result<Reply> {
    let mut evidence = evidence(context, &args.evidence)?;
    if let Some(path) = &args.stdout {
        evidence.stdout = read(path)?;
        evidence.is_merged = false;
    }
    evidence.deadline = args.deadline;
    let record = record(&args.evidence, &evidence);
    let mut failure = judge(
        &evidence,
        record.as_ref(),
        &context.settings().rules,
        context.clock.now(),
    );
    if !args.explain {
        failure.rejected.clear();
    }
    let again = if failure.retryable {
        ", may pass when tried again"
    } else {
        ""
    };
    let (kind, cause) = (failure.kind.as_str(), failure.cause.as_str());
    let mut text = format!("{kind} ({cause}{again}): {}\n", escape(&failure.message));
    for (what, all) in [("because", &failure.evidence), ("not", &failure.rejected)] {
        for evidence in all {
            let line = evidence
                .line
                .map(|line| format!(" line {line}"))
                .unwrap_or_default();
            text.push_str(&format!(
                "  {what} {}{line}: {}\n",
                evidence.rule,
                escape(&evidence.text)
            ));
        }
    }
    Ok(Reply::new(failure, text))
}

/// What the agent's program recorded, where it is one.
fn record(args: &EvidenceArgs, evidence: &FailureEvidence) -> Option<AgentRecord> {
    let kind = agent::detect(
        evidence.command.as_deref(),
        args.agent.as_deref(),
        &evidence.stdout,
    )?;
    Some(agent::read(kind, &evidence.stdout, &evidence.stderr))
}

fn evidence(context: &Context, args: &EvidenceArgs) -> Result<FailureEvidence> {
    Ok(FailureEvidence {
        // Whose records it prints, whatever the command is called.
        stage: args
            .stage
            .or_else(|| {
                let named = args.agent.as_deref().and_then(AgentKind::from_name);
                named.map(|_| CheckKind::Agent)
            })
            .or_else(|| args.command.as_deref().and_then(guess_stage)),
        command: args.command.clone(),
        agent: args.agent.clone(),
        exit_code: args.exit_code,
        signal: args.signal.as_deref().map(signal_name).transpose()?,
        timed_out: args.timed_out,
        duration: args.duration,
        message: args.message.clone(),
        time_zone: context.time_zone(),
        is_merged: args.log.is_some() && args.stderr.is_none(),
        stdout: args
            .log
            .as_deref()
            .map(read)
            .transpose()?
            .unwrap_or_default(),
        stderr: args
            .stderr
            .as_deref()
            .map(read)
            .transpose()?
            .unwrap_or_default(),
        ..FailureEvidence::default()
    })
}

/// A log may be larger than the memory.
fn read(path: &Path) -> Result<Vec<u8>> {
    read_file(path, condensed)
}

/// Reads a file that the user names; `-` is standard input.
pub(super) fn read_file<T>(
    path: &Path,
    read: impl FnOnce(Box<dyn Read>) -> io::Result<T>,
) -> Result<T> {
    let read = || {
        if path == Path::new("-") {
            let _signals = Interrupts::while_reading()?;
            read(Box::new(io::stdin()))
        } else {
            read(Box::new(File::open(path)?))
        }
    };
    read().map_err(|error| {
        let path = path.display();
        let message = format!("cannot read {path}: {error}; - is standard input");
        Error::new(ErrorKind::Usage, message)
    })
}

/// `SIGKILL`, `KILL` and `9` are the same.
fn signal_name(text: &str) -> Result<String> {
    let upper = text.to_ascii_uppercase();
    let known = (1..=64).find_map(|number| {
        let name = low_level::signal_name(number)?;
        let is_meant = name == upper
            || name.strip_prefix("SIG") == Some(upper.as_str())
            || upper.parse() == Ok(number);
        is_meant.then_some(name)
    });
    match known {
        Some(name) => Ok(name.to_owned()),
        None if upper.starts_with("SIG") => Ok(upper),
        None => Err(Error::new(
            ErrorKind::Usage,
            format!("'{text}' is no signal (write SIGKILL, KILL or 9)"),
        )),
    }
}
