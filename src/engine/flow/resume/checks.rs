//! What a resume depends on (S15).

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::Context;
use crate::engine::flow::run::{Problem, missing_checks, problem_of};
use crate::engine::record::lane::branch_commit;
use crate::engine::record::run_settings::{configured_checks, folder_of, loops_of};
use crate::model::checkpoint::trigger;
use crate::model::manifest::ObjectId;
use crate::model::run::Run;
use crate::model::state::State;
use crate::model::step::StepStatus;

use super::ResumeRequest;

/// One thing that was examined before going on (S15).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Check {
    /// What was examined.
    #[serde(rename = "check")]
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub message: String,
}

/// What a resume depends on, examined before it goes on.
pub(super) fn validate(
    context: &Context,
    state: &State,
    run: &Run,
    request: &ResumeRequest,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let worktree = &run.worktree.path();
    checks.push(Check {
        name: "worktree",
        ok: worktree.is_dir(),
        message: run.worktree.to_string(),
    });
    let (command, dir) = request.command_of(run);
    if let Some(program) = command.first() {
        let problem = problem_of(context, command, &folder_of(context, dir));
        let ok = problem.is_none();
        let message = problem.map_or_else(|| program.clone(), |problem| problem.text());
        checks.push(Check {
            name: "command",
            ok,
            message,
        });
    }
    // It keeps its own, whatever the file says now.
    if run
        .spec
        .configured
        .as_ref()
        .is_some_and(|own| *own != configured_checks(context))
    {
        let message =
            "the checks of the configuration are not those that the run began with, which it keeps; resume --feedback \
                       NAME=CMD gives it others"
                .to_owned();
        checks.push(Check {
            name: "configuration",
            ok: false,
            message,
        });
    }
    let missing = missing_checks(context, run);
    for feedback in loops_of(context, run) {
        let problem = missing.iter().find(|(name, _)| *name == feedback.name);
        let message = problem.map_or(&feedback.command, |(_, why)| why);
        checks.push(Check {
            name: "feedback",
            ok: problem.is_none(),
            message: format!("{}: {message}", feedback.name),
        });
    }
    let base = run.initial_checkpoint.as_ref();
    if let Some(id) = base {
        let there = context
            .load()
            .is_ok_and(|loaded| loaded.state.checkpoint(id).is_some());
        let message = if there {
            id.to_string()
        } else {
            format!("{id} is gone")
        };
        checks.push(Check {
            name: "initial_checkpoint",
            ok: there,
            message,
        });
    }
    checks.extend(lane_checks(context, state, run));
    checks.extend(head_checks(context, state, run));
    checks
}

/// The branch that was checked out and the commit that was HEAD when the run was last at work in this work tree, or when
/// HEAD was last moved for it. A checkpoint of what a killed attempt left shows what was there later on, when that was found.
fn head_checks(context: &Context, state: &State, run: &Run) -> Vec<Check> {
    let here = context.worktree_id();
    let mut taken = state.checkpoints.of(&run.key);
    let latest = taken
        .rfind(|checkpoint| checkpoint.worktree == here && checkpoint.trigger != trigger::CRASH);
    // Before its work tree was made, a lane was at home elsewhere.
    let Some(latest) = latest.filter(|_| context.has_git()) else {
        return Vec::new();
    };
    let Ok(head) = context.repo().and_then(|repo| Ok(repo.head()?)) else {
        return Vec::new();
    };
    let operations = state.worktrees.get(&here);
    let entries = operations
        .iter()
        .flat_map(|worktree| worktree.undo.last().into_iter().chain(worktree.redo.last()));
    let moved = entries
        .filter(|entry| entry.at >= latest.created_at)
        .max_by_key(|entry| entry.at);
    let last = moved
        .and_then(|entry| entry.head.after.as_ref())
        .or(latest.base_commit.as_ref());

    let short_name = |branch: &String| {
        branch
            .strip_prefix("refs/heads/")
            .unwrap_or(branch)
            .to_owned()
    };
    let name = |branch: &Option<String>| {
        branch
            .as_ref()
            .map_or_else(|| "a detached HEAD".to_owned(), short_name)
    };
    let same_branch = head.branch == latest.head_ref;
    let branch = if same_branch {
        name(&head.branch)
    } else {
        format!(
            "{} is checked out, the run was on {}",
            name(&head.branch),
            name(&latest.head_ref)
        )
    };
    let same_commit = head.commit.as_ref() == last;
    let short = |commit: Option<&ObjectId>| {
        commit
            .map_or("no commit", |commit| commit.short())
            .to_owned()
    };
    let commit = if same_commit {
        "as it was".to_owned()
    } else {
        format!(
            "HEAD is {}, it was {} when the run was last at work",
            short(head.commit.as_ref()),
            short(last)
        )
    };
    let mut checks = vec![Check {
        name: "branch",
        ok: same_branch,
        message: branch,
    }];
    // Whoever works in a lane commits there between its steps.
    if state.lane_stands(&run.key).is_none() {
        checks.push(Check {
            name: "head",
            ok: same_commit,
            message: commit,
        });
    }
    checks
}

/// What a lane depends on beside that: its base branch, its own branch, its latest checkpoint, the commands of its steps.
fn lane_checks(context: &Context, state: &State, run: &Run) -> Vec<Check> {
    let mut checks = Vec::new();
    let Some(record) = state.lane_stands(&run.key) else {
        return checks;
    };
    if let Some(base) = state.lane_base(&run.key) {
        let ok = branch_commit(context, &base).is_some();
        let message = if ok {
            base
        } else {
            format!("{base} is not there")
        };
        checks.push(Check {
            name: "base_branch",
            ok,
            message,
        });
    }
    if let Some(checkpoint) = record.checkpoint() {
        let read = context
            .repo()
            .and_then(|repo| Ok(repo.load_checkpoint(&checkpoint.commit)?));
        let message = read
            .as_ref()
            .map_or_else(ToString::to_string, |_| checkpoint.id.to_string());
        checks.push(Check {
            name: "checkpoint",
            ok: read.is_ok(),
            message,
        });
    } else {
        let message = format!("{} was imported: its content is not here", record.stage);
        checks.push(Check {
            name: "checkpoint",
            ok: false,
            message,
        });
    }
    for step in run
        .steps
        .iter()
        .filter(|step| step.status != StepStatus::Done)
    {
        let Some(program) = step.start.command.first() else {
            continue;
        };
        let problem = problem_of(context, &step.start.command, &step.start.cwd.path());
        let message = problem
            .as_ref()
            .map_or_else(|| program.clone(), Problem::text);
        checks.push(Check {
            name: "step",
            ok: problem.is_none(),
            message: format!("{}: {message}", step.start.name),
        });
    }
    checks
}
