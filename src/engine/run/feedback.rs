//! Runs the feedback loops, each in its own process group, with its own deadline and log; also before a run's first attempt.
//!
//! The evidence that any command of a run leaves is made here too.
//!
//! The feedback loops before a run's first attempt (`[checks] baseline`): what fails there is not the attempts' doing.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::{DriveOptions, commands, confine};
use crate::engine::base::progress::ProgressEvent;
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint;
use crate::engine::record::run_settings::{identity, log_name, loops_of, shell_of, start_folder};
use crate::engine::remote::Session;
use crate::model::checkpoint::trigger;
use crate::model::failure::FailureEvidence;
use crate::model::spec::Places;
use crate::model::{
    CheckKind, Checkpoint, FeedbackLoop, FeedbackResult, FeedbackResults, Hint, Payload, Run,
    RunKey, Verdict,
};
use crate::policy::classify::summarize;
use crate::policy::text::plain_text;
use crate::process::{Exit, Program, Show, SpawnErrorKind, Supervised};

/// What the summary of a loop begins with that is missing.
const CANNOT_START: &str = "cannot be started: ";

/// This many characters of an error are enough to know it by.
const LONGEST_LINE: usize = 200;

/// What the loops said.
#[derive(Debug, Default)]
pub(crate) struct LoopReport {
    /// By name.
    pub results: FeedbackResults,
    /// The evidence of the first loop that failed.
    pub first_failure: Option<(FeedbackLoop, FailureEvidence)>,
    /// Exit code of the signal that interrupted them.
    pub interrupted: Option<i32>,
}

impl LoopReport {
    /// Whether every loop passed.
    pub(crate) fn passed(&self) -> bool {
        self.results.values().all(|result| result.passed) && self.interrupted.is_none()
    }
}

/// Around which loops run.
#[derive(Clone, Debug)]
pub(crate) struct LoopSetting<'a> {
    /// Their variables (see [`identity`]).
    pub env: Vec<(OsString, OsString)>,
    /// Where their output is shown.
    pub show: Show,
    /// Where their logs are.
    pub log_dir: &'a Path,
    /// What runs them.
    pub shell: String,
    /// The work tree that they judge.
    pub root: &'a Path,
    /// Where they may write; `None`: wherever their user may.
    pub confined: Option<Places>,
}

impl<'a> LoopSetting<'a> {
    /// For the loops of a run, in its work tree.
    pub(crate) fn new(
        context: &'a Context,
        run: &Run,
        iteration: u32,
        attempt: Option<u32>,
        log_dir: &'a Path,
    ) -> Self {
        Self {
            env: identity(run, iteration, attempt),
            show: Show::Nothing,
            log_dir,
            shell: shell_of(context, &run.spec),
            root: context.worktree(),
            confined: None,
        }
    }
}

/// Runs all of them, also after one has failed: a person wants to see them all. One that fails is run again unchanged
/// before that is believed (`[checks] flaky`).
pub(crate) fn run_loops(
    context: &Context,
    loops: &[FeedbackLoop],
    setting: &LoopSetting<'_>,
) -> Result<LoopReport> {
    let mut report = LoopReport::default();
    for feedback in loops {
        let begun = |again| ProgressEvent::LoopBegun {
            name: &feedback.name,
            deadline: deadline_of(feedback),
            again,
        };
        context.emit(begun(false));
        let mut exit = run_one(context, feedback, setting, "")?;
        let mut flaky = false;
        if may_be_flaky(context, &exit) {
            tracing::info!(
                "the check '{}' failed: it is run again, unchanged",
                feedback.name
            );
            context.emit(begun(true));
            let again = run_one(context, feedback, setting, ".again")?;
            flaky = has_passed(&again);
            // What failed twice is reported as it failed first.
            if flaky || again.cancelled.is_some() {
                exit = again;
            }
        }
        if let Some(signal) = exit.cancelled {
            context.emit(ProgressEvent::LoopsEnded);
            report.interrupted = Some(signal.exit_code());
            return Ok(report);
        }
        let passed = has_passed(&exit);
        let missing = is_missing(&exit);
        let (exit_code, duration) = (exit.exit_code, exit.duration);
        let mut evidence = evidence_of(
            exit,
            Some(feedback.kind),
            Some(feedback.command.clone()),
            deadline_of(feedback),
        );
        evidence.is_check = true;
        let mut output = evidence.stdout.clone();
        output.extend_from_slice(&evidence.stderr);
        let said = last_line(&evidence);
        let (summary, passed_count, failed_count) = summarize(&output, exit_code);
        let result = FeedbackResult {
            passed,
            exit_code,
            duration,
            summary: match () {
                () if evidence.timed_out => "timed out".to_owned(),
                () if missing => format!("{CANNOT_START}{}", said.unwrap_or(summary)),
                () if flaky => {
                    format!("{summary} (flaky: failed first, passed when run again unchanged)")
                }
                () => summary,
            },
            passed_count,
            failed_count,
            flaky,
            missing,
        };
        context.emit(ProgressEvent::LoopEnded {
            name: &feedback.name,
            result: &result,
        });
        report.results.insert(feedback.name.clone(), result);
        if !passed && report.first_failure.is_none() {
            report.first_failure = Some((feedback.clone(), evidence));
        }
    }
    context.emit(ProgressEvent::LoopsEnded);
    Ok(report)
}

fn has_passed(exit: &Exit) -> bool {
    exit.exit_code == Some(0)
        && !exit.timed_out
        && exit.cancelled.is_none()
        && exit.spawn_error.is_none()
}

/// What a command that could not be started leaves: the error, else the shell's last word.
fn last_line(evidence: &FailureEvidence) -> Option<String> {
    let text = evidence
        .spawn_error
        .clone()
        .unwrap_or_else(|| plain_text(&evidence.stderr));
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    line.map(|line| line.chars().take(LONGEST_LINE).collect())
}

/// Whether the command, or what it starts, could not be started: so a shell says that something is not there or may not be
/// executed.
fn is_missing(exit: &Exit) -> bool {
    exit.spawn_error.is_some() || (matches!(exit.exit_code, Some(126 | 127)) && !exit.timed_out)
}

/// Whether a loop's failure is worth a second look: it ran, and nobody ended it.
fn may_be_flaky(context: &Context, exit: &Exit) -> bool {
    let ended_by_us = exit.timed_out || exit.cancelled.is_some();
    context.settings().checks.flaky && !has_passed(exit) && !ended_by_us && !is_missing(exit)
}

fn deadline_of(feedback: &FeedbackLoop) -> Option<Duration> {
    feedback.timeout_ms.map(Duration::from_millis)
}

/// An empty log in the place of the one that may be there. Its folder may have been removed by the attempt, with all that git
/// ignores.
pub(super) fn log_file(context: &Context, path: &Path) -> Result<Arc<File>> {
    let root = context.store().root();
    let folder = path.parent().unwrap_or(path);
    let made = root.create_dir_all(folder).and_then(|()| root.create(path));
    Ok(made
        .map(Arc::new)
        .with_context(|| format!("cannot write {}", path.display()))?)
}

fn run_one(
    context: &Context,
    feedback: &FeedbackLoop,
    setting: &LoopSetting<'_>,
    which: &str,
) -> Result<Exit> {
    let program = Program::Argv(vec![
        setting.shell.clone().into(),
        "-c".into(),
        feedback.command.clone().into(),
    ]);
    let log = setting.log_dir.join(log_name(&feedback.name, which));
    let supervised = Supervised {
        deadline: deadline_of(feedback),
        grace: context.settings().runner.grace,
        // A loop's output is not the answer of the command that runs it.
        show: if setting.show.is_passthrough() {
            Show::Stderr
        } else {
            setting.show
        },
        env_set: setting.env.clone(),
        confined: setting.confined.clone(),
        log: Some(log_file(context, &log)?),
        log_limit: context.settings().run.log_limit,
        ..Supervised::new(program, start_folder(setting.root, &feedback.dir)?)
    };
    let ended = supervised.run(&context.interrupts, |_| Ok(()));
    Ok(ended.with_context(|| format!("cannot run the check '{}'", feedback.name))?)
}

/// What a classification is made from, of a command that ended.
pub(super) fn evidence_of(
    exit: Exit,
    stage: Option<CheckKind>,
    command: Option<String>,
    deadline: Option<Duration>,
) -> FailureEvidence {
    let spawn_error = exit.spawn_error.map(|error| match error.kind {
        SpawnErrorKind::NotFound => format!("{}: not found", error.message),
        SpawnErrorKind::PermissionDenied => format!("{}: Permission denied", error.message),
        SpawnErrorKind::Other => error.message,
    });
    FailureEvidence {
        stage,
        command,
        exit_code: exit.exit_code,
        signal: exit.signal,
        timed_out: exit.timed_out,
        cancelled: exit.cancelled.is_some(),
        spawn_error,
        duration: Some(exit.duration),
        deadline,
        stdout: exit.stdout.into_bytes(),
        stderr: exit.stderr.into_bytes(),
        ..FailureEvidence::default()
    }
}

/// For errors about a loop that nobody configured.
pub(crate) fn no_loops(key: &RunKey) -> Error {
    let message = "no checks are configured: add [[feedback]] to .ultraplan/recover.toml, or go on unchecked with \
                   manual-fix abort and resume --strategy continue_next";
    Error::new(ErrorKind::Usage, message).hint(Hint::recover(["manual-fix", "abort"]).run(key))
}

/// Runs them, once a run, and records what they said of the initial checkpoint. Returns the exit code of the signal that
/// interrupted them; then nothing is recorded, and whoever takes the run up runs them again.
pub(super) fn verify_baseline(
    context: &Context,
    key: &RunKey,
    options: &DriveOptions,
    session: Option<&Session<'_>>,
) -> Result<Option<i32>> {
    let Some((run, initial)) = baseline_subject(context, key)? else {
        return Ok(None);
    };
    let folder = context.store().run_dir(key).join("baseline");
    context.create_state_dir(&folder)?;
    // No attempt's number: by that the loops know a baseline.
    let mut setting = LoopSetting::new(context, &run, run.current_iteration, Some(0), &folder);
    setting.env.extend(session.map(Session::variable));
    setting.confined = confine::places(context, &run, None);
    // Our stdout is for the attempts.
    setting.show = match options.show {
        Show::Live => Show::Stderr,
        show => show,
    };
    let supervisor = context.supervisor_id();
    context.record(key, vec![Payload::BaselineStarted { supervisor }])?;
    tracing::info!("running the checks before the first attempt");
    context.emit(ProgressEvent::Baseline { run: &run });

    let report = run_loops(context, &loops_of(context, &run), &setting)?;
    if report.interrupted.is_some() {
        return Ok(report.interrupted);
    }
    tell_baseline(context, &report);
    // Good is what an attempt made and the loops passed: the initial checkpoint is no more than not known to fail.
    let verdict = if report.passed() {
        Verdict::Unverified
    } else {
        Verdict::Failed
    };
    let payload = Payload::BaselineVerified {
        checkpoint_id: initial.id,
        verdict,
        results: report.results,
    };
    context.record(key, vec![payload])?;
    Ok(None)
}

fn tell_baseline(context: &Context, report: &LoopReport) {
    for (name, result) in report.results.iter().filter(|(_, result)| !result.passed) {
        if result.missing {
            context.warn(commands::told(
                name,
                result.summary.trim_start_matches(CANNOT_START),
            ));
        } else {
            context.note(format!(
                "before the first attempt the check '{name}' fails already: {}",
                result.summary
            ));
        }
    }
}

/// The run and its initial checkpoint, where there is something to find out: loops, no attempt yet, and the work tree is
/// still the one that was captured.
fn baseline_subject(context: &Context, key: &RunKey) -> Result<Option<(Run, Checkpoint)>> {
    let state = context.load()?.state;
    let run = run_of(&state, key)?;
    let begun = run.baseline.is_some() || run.attempts().next().is_some();
    if begun || !context.settings().checks.baseline || loops_of(context, &run).is_empty() {
        return Ok(None);
    }
    // The run may have had others before it was to be supervised.
    let initial = state
        .standing(key)
        .rfind(|checkpoint| checkpoint.trigger == trigger::INITIAL)
        .cloned();
    let Some(initial) = initial else {
        return Ok(None);
    };
    let same = checkpoint::prepare(context)?.capture.tree == initial.tree;
    Ok(same.then_some((run, initial)))
}
