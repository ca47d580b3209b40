//! Several runs at once that share out a list of tasks: `run --tasks FILE --lanes N`.
//!
//! Each is a `recover run --isolated` of its own, with its own work tree and agent. What one task needs of another is in the
//! work tree of both; limits hold all runs of a machine anyway.

use std::path::Path;
use std::thread;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::{How, requirements};
use crate::engine::base::{Context, Error, ErrorKind, Result, runs};
use crate::engine::run::tasks;
use crate::model::RunId;
use crate::os::own_program;
use crate::policy::tasks::lanes;
use crate::process::{Exit, Program, Show, Supervised};

/// How long one waits for what the others hold: several begin at once.
const PATIENCE: &str = "120s";

/// Runs that were at work at once.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Lanes {
    pub lanes: Vec<Lane>,
}

/// One of them.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "lane_run")]
pub(crate) struct Lane {
    pub run_id: RunId,
    /// The ids of its tasks.
    pub tasks: Vec<String>,
    /// What its `recover run` ended with; `null` in a dry run.
    pub exit_code: Option<i32>,
    /// The last line that it printed as an error, where it did not end well.
    pub said: Option<String>,
}

/// Begins them and waits for them all; in a dry run only says which.
///
/// # Errors
/// The file is no list (2); none can have a work tree of its own; a signal ended them.
pub(crate) fn drive(context: &Context, file: &Path, count: usize) -> Result<Lanes> {
    let list = tasks::of_file(context, file, &[])?;
    let (key, _) = requirements(context, &How::default())?;
    let shared = lanes(&list.tasks, count);
    let mut all: Vec<Lane> = (1..)
        .zip(shared)
        .map(|(number, tasks)| Lane {
            run_id: RunId::from(format!("{}-{number}", key.run_id)),
            tasks,
            exit_code: None,
            said: None,
        })
        .collect();
    let state = context.load()?.state;
    for lane in &all {
        if runs::named(&state, &lane.run_id, None, None).is_ok() {
            let message = format!(
                "run {} already exists: choose another name with --run",
                lane.run_id
            );
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
    }
    if context.dry_run() {
        return Ok(Lanes { lanes: all });
    }
    let program = own_program().context("cannot find the program of recover")?;
    let calls: Vec<Supervised> = all
        .iter()
        .map(|lane| call(context, &program, lane))
        .collect();
    let exits: Vec<_> = thread::scope(|scope| {
        let interrupts = &context.interrupts;
        let begun: Vec<_> = calls
            .iter()
            .map(|call| scope.spawn(move || call.run(interrupts, |_| Ok(()))))
            .collect();
        begun
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect()
    });
    for (lane, exit) in all.iter_mut().zip(exits) {
        let exit: Exit = match exit {
            Ok(exit) => exit.context("cannot run recover run")?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        lane.exit_code = Some(exit.shell_code());
        let said = [exit.stderr.head.as_slice(), &exit.stderr.tail].concat();
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().rfind(|line| !line.trim().is_empty());
        lane.said = line.filter(|_| exit.shell_code() != 0).map(str::to_owned);
    }
    match context.interrupts.pending() {
        Some(signal) => Err(Error::interrupted(
            signal,
            "interrupted; recover resume goes on with each run",
        )),
        None => Ok(Lanes { lanes: all }),
    }
}

fn call(context: &Context, program: &Path, lane: &Lane) -> Supervised {
    let run = lane.run_id.to_string();
    let only: Vec<String> = lane.tasks.iter().map(|id| format!("--only={id}")).collect();
    let mut flags = vec!["--isolated", "--lock-timeout", PATIENCE, "--run", &run];
    flags.extend(only.iter().map(String::as_str));
    let mut argv = vec![program.as_os_str().to_owned()];
    argv.extend(context.rerun(&flags).arguments());
    context.note(format!("run {run}: {}", lane.tasks.join(", ")));
    Supervised {
        show: Show::Nothing,
        // It ends its own child first.
        grace: context.settings().runner.grace.saturating_mul(4),
        ..Supervised::new(Program::Argv(argv), context.cwd())
    }
}
