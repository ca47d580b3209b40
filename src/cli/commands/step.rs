//! Runs `step`.

use super::super::args::StepArgs;
use super::super::render;
use super::super::replies::ExitCode;
use super::super::ui::{Reply, Ui};
use crate::engine::{Context, Result, answers, step};
use crate::model::hint::join;
use crate::model::step::{StepStatus, ToldStep};
use crate::process::Show;

/// `recover step`.
pub(super) fn step(context: &Context, args: &StepArgs, ui: &Ui) -> Result<Reply> {
    let request = step::StepRequest {
        name: args.name.clone(),
        command: args.command.clone(),
        dir: context.cwd().to_owned(),
        stage: args.stage.clone(),
        target_branch: args.target_branch.clone(),
        atomic: args.atomic,
        intent: args.intent.clone(),
        paths: context.globs_in_work_tree(&args.path)?,
        compensate: args.compensate.clone(),
        // With --json our stdout belongs to the document.
        show: if ui.json {
            Show::PassthroughStderr
        } else {
            Show::Passthrough
        },
    };
    let request = step::as_recorded(context, request)?;
    let mut report = step::step(context, &request)?;
    if let Some(plan) = &report.plan {
        let text = plan_text(plan, report.step.as_ref());
        return Ok(Reply::new(report, text));
    }
    told(&request, &report, ui);
    let exit = match report.exit_code {
        Some(code) if code != 0 => ExitCode::other(code),
        _ if report.stage_error.is_some() => ExitCode::PARTIAL,
        _ => ExitCode::DONE,
    };
    // A lane's record says of any step that it failed.
    let is_told = |step: &&ToldStep| step.stage.is_some() || exit != ExitCode::DONE;
    let key = report.step.as_ref().filter(is_told).map(|step| &step.run);
    let lane = answers::lane(context, key)?;
    if exit != ExitCode::DONE && !ui.quiet {
        // The commands that resume and roll back, beside the command's own output (C9).
        let text = render::lane_text(lane.as_ref(), ui);
        text.lines().for_each(|line| ui.note(line));
    }
    report.hints = lane.as_ref().map(|lane| lane.hints.clone());
    report.lane = lane;
    Ok(Reply::new(report, "").exit(exit))
}

/// What comes after it.
fn told(request: &step::StepRequest, report: &step::StepReport, ui: &Ui) {
    let name = &request.name;
    if let Some(error) = &report.spawn_error {
        Ui::warn(&format!("step '{name}' could not be started: {error}"));
    }
    match report.rolled_back {
        Some(0) => ui.note(&format!(
            "step '{name}' failed: the files it covers are as they were"
        )),
        Some(paths) => ui.note(&format!(
            "step '{name}' failed: {} restored (recover undo brings its changes back)",
            match paths {
                1 => "1 path was".to_owned(),
                paths => format!("{paths} paths were"),
            }
        )),
        None => {}
    }
    if let Some(error) = &report.stage_error {
        Ui::warn(&format!(
            "step '{name}' is done, but the checkpoint of its stage was not taken: {error}"
        ));
    }
}

fn plan_text(plan: &step::StepPlan, step: Option<&ToldStep>) -> String {
    let step::StepPlan { would, request } = plan;
    let name = crate::policy::text::escape(&request.name);
    let mut text = match would {
        step::Would::Skip => return format!("Step '{name}' is done: it would be skipped.\n"),
        step::Would::Wait => {
            return format!(
                "Step '{name}' is under way: would wait for it, and run it only if it fails.\n"
            );
        }
        step::Would::Run if step.is_some_and(|step| step.status == StepStatus::CutOff) => {
            format!("Step '{name}' was interrupted. Would run it again: ")
        }
        step::Would::Run => "Would run: ".to_owned(),
    };
    text.push_str(&format!("{}\n", join(&request.command)));
    if request.atomic {
        let covered = if request.paths.is_empty() {
            "the whole work tree".into()
        } else {
            request.paths.join(" ")
        };
        text.push_str(&format!("Unless it succeeds, would restore: {covered}\n"));
    }
    text
}
