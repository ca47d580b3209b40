//! What a resume depends on (S15).

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::Context;
use crate::engine::record::lane::branch_commit;
use crate::engine::record::run_settings::loops_of;
use crate::git::checkpoint::load_checkpoint;
use crate::model::run::Run;
use crate::model::state::State;
use crate::model::step::StepStatus;

use super::ResumeRequest;

/// One thing that was looked at before going on (S15).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Check {
    /// What.
    pub check: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub message: String,
}

/// What a resume depends on, looked at before it goes on.
pub(super) fn validate(context: &Context, state: &State, run: &Run, request: &ResumeRequest) -> Vec<Check> {
    let mut checks = Vec::new();
    let worktree = &run.worktree.path();
    checks.push(Check { check: "worktree", ok: worktree.is_dir(), message: run.worktree.to_string() });
    let command = if request.command.is_empty() { &run.spec.command } else { &request.command };
    if let Some(program) = command.first() {
        let found = find_program(context, program, worktree);
        let message = if found { program.clone() } else { format!("{program}: not found") };
        checks.push(Check { check: "command", ok: found, message });
    }
    for feedback in loops_of(context, run) {
        let words = shlex::split(&feedback.command).unwrap_or_default();
        let program = words.iter().find(|word| !word.contains('=')).cloned().unwrap_or_default();
        let builtin = matches!(program.as_str(), "" | "test" | "[" | "cd" | "true" | "false" | "exit" | "!" | "if");
        let ok = builtin || find_program(context, &program, worktree);
        let message = if ok { feedback.command.clone() } else { format!("{program}: not found") };
        checks.push(Check { check: "feedback", ok, message: format!("{}: {message}", feedback.name) });
    }
    let base = run.initial_checkpoint.as_deref();
    if let Some(id) = base {
        let there = context.load().is_ok_and(|loaded| loaded.state.checkpoint(id).is_some());
        let message = if there { id.to_owned() } else { format!("{id} is gone") };
        checks.push(Check { check: "initial_checkpoint", ok: there, message });
    }
    checks.extend(lane_checks(context, state, run));
    checks
}

/// What a lane depends on beside that: its base branch, its own branch, its latest checkpoint, the commands of its steps.
fn lane_checks(context: &Context, state: &State, run: &Run) -> Vec<Check> {
    let mut checks = Vec::new();
    let Some(record) = state.lane_stands(&run.key) else { return checks };
    if let Some(base) = state.lane_base(&run.key) {
        let ok = branch_commit(context, &base).is_some();
        let message = if ok { base } else { format!("{base} is not there") };
        checks.push(Check { check: "base_branch", ok, message });
    }
    if let Some(checkpoint) = record.checkpoint() {
        let now = context.repo().and_then(|repo| Ok(repo.head()?)).ok().and_then(|head| head.branch);
        // Before its work tree was made, a lane was at home elsewhere.
        if checkpoint.worktree == run.worktree && context.has_git() {
            let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "a detached HEAD".to_owned());
            let ok = now == checkpoint.head_ref;
            let message = if ok {
                name(&now)
            } else {
                format!("{} is checked out, its checkpoint was taken on {}", name(&now), name(&checkpoint.head_ref))
            };
            checks.push(Check { check: "branch", ok, message });
        }
        let read = context.repo().and_then(|repo| Ok(load_checkpoint(repo, &checkpoint.commit)?));
        let message = read.as_ref().map_or_else(ToString::to_string, |_| checkpoint.id.clone());
        checks.push(Check { check: "checkpoint", ok: read.is_ok(), message });
    } else {
        let message = format!("{} was imported: its content is not here", record.stage);
        checks.push(Check { check: "checkpoint", ok: false, message });
    }
    for step in run.steps.iter().filter(|step| step.status != StepStatus::Done) {
        let Some(program) = step.start.command.first() else { continue };
        let ok = find_program(context, program, &step.start.cwd.path());
        let message = if ok { program.clone() } else { format!("{program}: not found") };
        checks.push(Check { check: "step", ok, message: format!("{}: {message}", step.start.name) });
    }
    checks
}

fn find_program(context: &Context, program: &str, worktree: &Path) -> bool {
    if program.contains('/') {
        return worktree.join(program).exists();
    }
    let path = context.env("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
