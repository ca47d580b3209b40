//! The feedback loops before a run's first attempt (`[checks] baseline`): what fails there is not the attempts' doing.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::base::progress::ProgressEvent;
use crate::engine::base::runs::run_of;
use crate::engine::record::checkpoint;
use crate::engine::record::run_settings::{identity, loops_of, shell_of};
use crate::model::checkpoint::{Checkpoint, Verdict, trigger};
use crate::model::event::Payload;
use crate::model::run::{Run, RunKey};
use crate::process::Show;

use super::feedback::{CANNOT_START, LoopReport, LoopSetting, run_loops};
use super::{DriveOptions, startable};

/// Runs them, once a run, and records what they said of the initial checkpoint. Returns the exit code of the signal that
/// interrupted them; then nothing is recorded, and whoever takes the run up runs them again.
pub(super) fn verify(
    context: &Context,
    key: &RunKey,
    options: &DriveOptions,
) -> Result<Option<i32>> {
    let Some((run, initial)) = subject(context, key)? else {
        return Ok(None);
    };
    let folder = context.store().run_dir(key).join("baseline");
    context.create_state_dir(&folder)?;
    // No attempt's number: by that the loops know a baseline.
    let env = identity(context, &run, run.current_iteration, Some(0));
    // Our stdout is for the attempts.
    let show = if options.show == Show::Live {
        Show::Stderr
    } else {
        options.show
    };
    context.record(
        key,
        vec![Payload::BaselineStarted {
            supervisor: context.supervisor_id(),
        }],
    )?;
    tracing::info!("running the checks before the first attempt");
    context.emit(ProgressEvent::Baseline { run: &run });
    let shell = &shell_of(context, &run.spec);
    let setting = LoopSetting {
        env: &env,
        show,
        log_dir: &folder,
        shell,
        root: context.worktree(),
    };
    let report = run_loops(context, &loops_of(context, &run), &setting)?;
    if report.interrupted.is_some() {
        return Ok(report.interrupted);
    }
    tell(context, &report);
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

fn tell(context: &Context, report: &LoopReport) {
    for (name, result) in report.results.iter().filter(|(_, result)| !result.passed) {
        if result.missing {
            context.warn(startable::told(
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
fn subject(context: &Context, key: &RunKey) -> Result<Option<(Run, Checkpoint)>> {
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
