//! Steps that a restore goes back past: their effects outside the work tree are reverted, or listed (S12).
//!
//! The lock of a step: one process runs it at a time, the others wait.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Context as _;

use super::variables;
use crate::durable::{FileLock, LockError};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::run_settings::fencing;
use crate::engine::remote::renew;
use crate::engine::restore::request::{Compensated, CrossedStep, RestoreRequest};
use crate::engine::trust::agreed::require_agreed_step;
use crate::model::operation::UndoEntry;
use crate::model::step::StepRef;
use crate::model::{CheckpointId, OperationKind, Payload, Run, RunKey, State, Step, StepStatus};
use crate::process::{Exit, Interrupts, Program, Show, Supervised};

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
        if !request.options.scope.covers_files() || !request.options.paths.is_empty() {
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
        (StepStatus::Done, Some(_)) if kind.is_rollback() => Some(Stays::Compensable),
        (StepStatus::Done, Some(_)) => Some(Stays::Because("only a rollback undoes its effect")),
        (StepStatus::Done, None) => Some(Stays::Because("it has no --compensate")),
        (StepStatus::CutOff, _) if !step.rolled_back => {
            Some(Stays::Because("it was interrupted: its effect is unknown"))
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
        let _lock = StepLock::take(context, key, name)?;
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
    let number = renew(context, key)?;
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
    supervised.env_set = variables(of, &name);
    supervised.env_set.extend(number.map(fencing));
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

/// How often a step that another process has is asked for again: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// Names the turns that the processes above this one have.
const TURNS: &str = "RECOVER_STEP_TURNS";

/// The right to run a step. It is released when the process ends.
#[derive(Debug)]
pub(super) struct StepLock {
    mark: String,
    _lock: FileLock,
}

impl StepLock {
    /// Takes it, after as long a wait as it takes: a signal ends that.
    pub(super) fn take(context: &Context, key: &RunKey, step: &str) -> Result<Self> {
        let folder = context.store().run_dir(key);
        context.create_state_dir(&folder)?;
        if is_ancestor_step(context, key, step) {
            let message =
                format!("step '{step}' is run by its own command: give the inner one another name");
            return Err(Error::new(ErrorKind::Usage, message));
        }
        let path = folder.join(file_name(key, step));
        let mut pause = PAUSES.0;
        loop {
            match FileLock::acquire_passing(context.store().root(), &path, Duration::ZERO) {
                Ok(lock) => {
                    return Ok(Self {
                        mark: mark_of(context, key, step),
                        _lock: lock,
                    });
                }
                Err(LockError::Held { holder, .. }) => {
                    if pause == PAUSES.0 {
                        context.note(format!("step '{step}': waiting for {holder}"));
                    }
                    context.interrupts.sleep(pause).map_err(|signal| {
                        let message = format!(
                            "interrupted by {} while another process ran the step",
                            signal.name()
                        );
                        Error::interrupted(signal, message)
                    })?;
                    pause = (pause * 2).min(PAUSES.1);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The variable by which the step's command, and all that it starts, know that this turn is taken.
    pub(super) fn variable(&self, context: &Context) -> (OsString, OsString) {
        let above = context
            .env(TURNS)
            .map(|above| above + ":")
            .unwrap_or_default();
        (TURNS.into(), (above + &self.mark).into())
    }
}

/// Whether this process was started, on whatever way, by the step's command.
pub(crate) fn is_ancestor_step(context: &Context, key: &RunKey, step: &str) -> bool {
    let mark = mark_of(context, key, step);
    context
        .env(TURNS)
        .is_some_and(|above| above.split(':').any(|held| held == mark))
}

/// The lock's name: lanes share the folder, and a step's name may hold anything.
fn file_name(key: &RunKey, step: &str) -> String {
    let key = crc32fast::hash(key.to_string().as_bytes());
    format!(
        "step-{key:08x}-{:08x}-{}.lock",
        crc32fast::hash(step.as_bytes()),
        step.len()
    )
}

/// Names a turn among those of all state directories.
fn mark_of(context: &Context, key: &RunKey, step: &str) -> String {
    let folder = crc32fast::hash(context.store().run_dir(key).as_os_str().as_encoded_bytes());
    format!("{folder:08x}-{}", file_name(key, step))
}
