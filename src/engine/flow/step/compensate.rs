//! Steps that a restore goes back past: their effects outside the work tree are reverted, or listed (S12).

use anyhow::Context as _;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::flow::remote::{renew, require_agreed_step};
use crate::engine::restore::request::{Compensated, CrossedStep, RestoreRequest};
use crate::model::event::Payload;
use crate::model::id::CheckpointId;
use crate::model::operation::{OperationKind, UndoEntry};
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::model::step::{Step, StepRef, StepStatus};
use crate::process::{Exit, Interrupts, Program, Show, Supervised};

use super::lock::StepLock;
use super::variables;

/// The steps that a restore goes back past, the latest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crossing {
    /// Those whose effect can be taken back.
    compensable: Vec<(RunKey, Step)>,
    /// Those whose effect stays.
    crossed: Vec<(RunKey, Step, &'static str)>,
}

impl Crossing {
    /// Finds them. A restore of some paths, or of the working memory alone, is no way back to before a step.
    pub(crate) fn of(context: &Context, state: &State, request: &RestoreRequest) -> Self {
        if !request.scope.covers_files() || !request.paths.is_empty() {
            return Self::default();
        }
        let worktree = context.worktree_id();
        let all = state
            .runs
            .iter()
            .flat_map(|run| run.steps.iter().map(|step| (&run.key, step)));
        let mut steps: Vec<(&RunKey, &Step)> = all
            .filter(|(_, step)| {
                step.start.worktree == worktree && step.is_after(request.target.seq)
            })
            .collect();
        steps.sort_by_key(|(_, step)| std::cmp::Reverse(step.ended_seq));
        let undone = state
            .worktrees
            .get(&worktree)
            .and_then(|worktree| worktree.undo.last());
        let undone = undone.filter(|_| request.kind == OperationKind::Undo);
        let mut crossing = Self::default();
        for (key, step) in steps {
            match reason(request.kind, step) {
                Some(Stays::Compensable) => crossing.compensable.push((key.clone(), step.clone())),
                Some(Stays::Because(why)) => {
                    crossing.crossed.push((key.clone(), step.clone(), why));
                }
                None => {}
            }
        }
        crossing.crossed.extend(
            undone
                .into_iter()
                .flat_map(|entry| compensated_by(state, entry)),
        );
        crossing
    }

    /// Whether there is anything to take back.
    pub(crate) fn compensates(&self) -> bool {
        !self.compensable.is_empty()
    }

    /// Their names, for the restore's record.
    pub(crate) fn refs(&self) -> Vec<StepRef> {
        let crossed = self.crossed.iter().map(|(key, step, _)| (key, step));
        let all = self
            .compensable
            .iter()
            .map(|(key, step)| (key, step))
            .chain(crossed);
        all.map(|(run, step)| StepRef {
            run: run.clone(),
            name: step.start.name.clone(),
        })
        .collect()
    }

    /// Those whose effect stays.
    pub(crate) fn crossed(&self) -> Vec<CrossedStep> {
        let told = |(key, step, why): &(RunKey, Step, &str)| CrossedStep {
            step: step.told(key),
            reason: (*why).into(),
        };
        self.crossed.iter().map(told).collect()
    }

    /// Those whose effect would be taken back.
    pub(crate) fn planned(&self) -> Vec<Compensated> {
        let told = |(key, step): &(RunKey, Step)| Compensated {
            step: step.told(key),
            compensate_exit_code: None,
            succeeded: None,
        };
        self.compensable.iter().map(told).collect()
    }
}

/// Why the effect of a step stays that was rebuilt from checkpoints.
const LACKS_SECRET: &str =
    "its --compensate held a secret, which is not in the checkpoints that it was rebuilt from";

enum Stays {
    Compensable,
    Because(&'static str),
}

/// What becomes of the effect of a step that is gone back past; `None` where it has none.
fn reason(kind: OperationKind, step: &Step) -> Option<Stays> {
    match (step.status, &step.start.compensate) {
        (StepStatus::Done, Some(_))
            if step.start.masked.iter().any(|field| field == "compensate") =>
        {
            Some(Stays::Because(LACKS_SECRET))
        }
        (StepStatus::Done, Some(_)) if kind == OperationKind::Rollback => Some(Stays::Compensable),
        (StepStatus::Done, Some(_)) => {
            Some(Stays::Because("only a rollback takes its effect back"))
        }
        (StepStatus::Done, None) => Some(Stays::Because("it has no --compensate")),
        (StepStatus::CutOff, _) if !step.rolled_back => {
            Some(Stays::Because("it was cut off: its effect is not known"))
        }
        _ => None,
    }
}

/// What is recorded of a step.
fn recorded<'a>(state: &'a State, key: &RunKey, name: &str) -> Option<&'a Step> {
    state.run(key)?.step(name)
}

/// Steps whose effects the operation took back that is undone now.
fn compensated_by(state: &State, entry: &UndoEntry) -> Vec<(RunKey, Step, &'static str)> {
    let steps = entry.steps.iter().filter_map(|name| {
        let step = recorded(state, &name.run, &name.name)?;
        let why = "its effect was undone, and is not repeated";
        (step.status == StepStatus::Compensated).then(|| (name.run.clone(), step.clone(), why))
    });
    steps.collect()
}

/// Takes the effects back, the latest first. One that fails keeps none of the others from it.
pub(crate) fn compensate(
    context: &Context,
    crossing: &Crossing,
    checkpoint_id: &CheckpointId,
) -> Result<Vec<Compensated>> {
    let mut done = Vec::new();
    if !crossing.compensates() {
        return Ok(done);
    }
    let interrupts = Interrupts::install().context("cannot listen for signals")?;
    for (key, step) in &crossing.compensable {
        let name = &step.start.name;
        let _lock = StepLock::take(context, key, name, &|_| {})?;
        let now = context.load()?.state;
        let waits = now.run(key).filter(|run| {
            run.step(name)
                .is_some_and(|now| now.status == StepStatus::Done)
        });
        let Some(of) = waits else {
            // Another rollback was faster.
            continue;
        };
        let exit = run(context, of, step, checkpoint_id, &interrupts)?;
        let succeeded = exit.exit_code == Some(0) && exit.cancelled.is_none();
        let code = exit.shell_code();
        if !succeeded {
            tracing::warn!(
                "the effect of step '{name}' was not undone: its compensation ended with {code}"
            );
        }
        let payload = Payload::StepCompensated {
            name: name.clone(),
            succeeded,
            exit_code: Some(code),
        };
        context.record(key, vec![payload])?;
        let now = context.load()?.state;
        done.extend(recorded(&now, key, name).map(|step| Compensated {
            step: step.told(key),
            compensate_exit_code: Some(code),
            succeeded: Some(succeeded),
        }));
    }
    Ok(done)
}

fn run(
    context: &Context,
    of: &Run,
    step: &Step,
    checkpoint_id: &CheckpointId,
    interrupts: &Interrupts,
) -> Result<Exit> {
    let key = &of.key;
    require_agreed_step(context, key, step.start.supervisor.boot_id.as_deref())?;
    renew(context, key)?;
    let name = step.start.name.clone();
    let line = step.start.compensate.clone().unwrap_or_default();
    let shell = context.settings().runner.shell.clone();
    let program = Program::Argv(vec![shell.into(), "-c".into(), line.clone().into()]);
    // Its folder may have gone with the rollback.
    let folder = step.start.cwd.path();
    let folder = if folder.is_dir() {
        folder
    } else {
        context.worktree().to_owned()
    };
    let mut supervised = Supervised {
        show: Show::Stderr,
        ..Supervised::new(program, folder)
    };
    supervised.env_set = variables(context, of, &name);
    supervised.env_set.push((
        "RECOVER_CHECKPOINT_ID".into(),
        checkpoint_id.as_str().into(),
    ));
    supervised.grace = context.settings().runner.grace;
    context.record(
        key,
        vec![Payload::StepCompensating {
            name,
            supervisor: context.supervisor_id(),
        }],
    )?;
    Ok(supervised
        .run(interrupts, |_| Ok(()))
        .with_context(|| format!("cannot run '{line}'"))?)
}
