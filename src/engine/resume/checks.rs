//! What a resume depends on (S15).

use std::path::Path;

use serde::Serialize;

use crate::model::run::Run;

use super::super::context::Context;
use super::super::run::loops_of;
use super::ResumeRequest;

/// One thing that was looked at before going on (S15).
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What.
    pub check: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub message: String,
}

/// What a resume depends on, looked at before it goes on.
pub(super) fn validate(context: &Context, run: &Run, request: &ResumeRequest) -> Vec<Check> {
    let mut checks = Vec::new();
    let worktree = Path::new(&run.worktree);
    checks.push(Check { check: "worktree", ok: worktree.is_dir(), message: run.worktree.clone() });
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
    checks
}

fn find_program(context: &Context, program: &str, worktree: &Path) -> bool {
    if program.contains('/') {
        return worktree.join(program).exists();
    }
    let path = context.env("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
