//! Several runs at once that share out a list of tasks: `run --tasks FILE --lanes N`.
//!
//! Each is a `recover run --isolated` of its own, with its own work tree and agent. What one task needs of another is in the
//! work tree of both; limits hold all runs of a machine anyway.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::{How, called, requirements};
use crate::engine::base::{Context, Error, ErrorKind, Result, WaitLimit, runs};
use crate::engine::run::tasks;
use crate::model::tasks::{TaskLine, TaskStatus};
use crate::model::time::format_duration;
use crate::model::{Hint, Run, RunId, RunKey, RunStatus, Task, TaskList};
use crate::policy::tasks::lanes;
use crate::process::{Exit, Show, Supervised};

/// How long one waits for what the others hold: several begin at once.
const PATIENCE: &str = "120s";
/// How often a lane that is free reads the list.
const PAUSE: Duration = Duration::from_millis(500);

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
    /// The last error that it printed, where it did not end well.
    pub said: Option<String>,
}

/// Begins them and waits for them all; one that is free goes on with what was added to the file. In a dry run only says which.
/// `wait`: how long a run waits for what holds it up.
///
/// # Errors
/// The file is no list (2); none can have a work tree of its own; a signal ended them.
pub(crate) fn drive(
    context: &Context,
    file: &Path,
    count: usize,
    wait: Option<WaitLimit>,
) -> Result<Lanes> {
    let list = tasks::of_file(context, file, &[])?;
    let (key, _) = requirements(context, &How::default())?;
    let shared = lanes(&list.tasks, count);
    let all: Vec<Lane> = (1..)
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
            let status =
                Hint::recover(["status"]).run(&RunKey::new(lane.run_id.clone(), None, None));
            return Err(Error::new(ErrorKind::AlreadyExists, message).hint(status));
        }
    }
    if context.dry_run() {
        return Ok(Lanes { lanes: all });
    }
    let mut work = Work {
        context,
        file: context.cwd().join(file),
        wait,
        lanes: all,
        list,
    };
    work.drive()?;
    if let Some(signal) = context.interrupts.pending() {
        let message = "interrupted; recover resume goes on with each run";
        return Err(Error::interrupted(signal, message));
    }
    let left = tasks::added(context, &work.list).unwrap_or_default();
    if !left.is_empty() {
        let ids: Vec<&str> = left.iter().map(|task| task.id.as_str()).collect();
        context.warn(format!(
            "not run: '{}': no lane has done all the tasks that it needs",
            ids.join("', '")
        ));
    }
    Ok(Lanes { lanes: work.lanes })
}

/// What is done in lanes.
struct Work<'a> {
    context: &'a Context,
    file: PathBuf,
    wait: Option<WaitLimit>,
    lanes: Vec<Lane>,
    /// The tasks that one of them has.
    list: TaskList,
}

impl Work<'_> {
    /// Runs what each lane has, and after that what is added to the list while any of them is at work.
    fn drive(&mut self) -> Result<()> {
        let interrupts = &self.context.interrupts;
        thread::scope(|scope| {
            let begin = |call: Supervised| scope.spawn(move || call.run(interrupts, |_| Ok(())));
            let calls = self.lanes.iter().map(|lane| self.first(lane));
            let calls = calls.collect::<Result<Vec<_>>>()?;
            let mut running: Vec<_> = calls.into_iter().map(|call| Some(begin(call))).collect();
            while running.iter().any(Option::is_some) {
                thread::sleep(PAUSE);
                for (number, at_work) in running.iter_mut().enumerate() {
                    if let Some(ended) = at_work.take_if(|at_work| at_work.is_finished()) {
                        let exit = ended.join();
                        let exit = exit.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                        self.lanes[number].end(&exit.context("cannot run recover run")?);
                    }
                    if at_work.is_none() && interrupts.pending().is_none() {
                        *at_work = self.more(number)?.map(begin);
                    }
                }
            }
            Ok(())
        })
    }

    /// The run of a lane that is free goes on with a task that was added; `None` where there is none for it.
    fn more(&mut self, number: usize) -> Result<Option<Supervised>> {
        let Some(task) = self.added(number)? else {
            return Ok(None);
        };
        let lane = &mut self.lanes[number];
        let (run, id) = (lane.run_id.to_string(), task.id.clone());
        self.context.note(format!("run {run}: '{id}' was added"));
        lane.tasks.push(id.clone());
        self.list.tasks.push(task);
        let mut words = vec!["resume".to_owned(), run, format!("--only={id}")];
        words.extend(["--tasks".to_owned(), self.file.display().to_string()]);
        words.extend(["--lock-timeout".to_owned(), PATIENCE.to_owned()]);
        words.extend(self.wait.map(|wait| match wait.longest() {
            Some(longest) => format!("--wait={}", format_duration(longest)),
            None => "--wait".to_owned(),
        }));
        let call = self.context.placed(Hint::recover(words));
        called(self.context, &call, Show::Nothing).map(Some)
    }

    /// A task that was added, and what it needs is done: by this lane, or before.
    fn added(&self, number: usize) -> Result<Option<Task>> {
        let more = match tasks::added(self.context, &self.list) {
            Ok(more) if more.is_empty() => return Ok(None),
            Ok(more) => more,
            Err(message) => {
                self.context
                    .warn(format!("{message}; nothing is added to the lanes"));
                return Ok(None);
            }
        };
        let state = self.context.load()?.state;
        let id = &self.lanes[number].run_id;
        let run = state.runs.iter().find(|run| run.key.run_id == *id);
        // One that waits, or needs a person, is not free.
        let is_over = |run: &&Run| {
            matches!(run.status, RunStatus::Complete | RunStatus::Escalated)
                && !run.has_iterations_left()
        };
        let Some(run) = run.filter(is_over) else {
            return Ok(None);
        };
        let lines = run.task_lines();
        let is_open = |id: &String| {
            let mut all = self.list.tasks.iter().chain(&more);
            let is_done = |line: &TaskLine| line.id == *id && line.status == TaskStatus::Done;
            all.any(|task| task.id == *id) && !lines.iter().any(is_done)
        };
        let is_ready = |task: &&Task| !task.needs.iter().any(is_open);
        Ok(more.iter().find(is_ready).cloned())
    }

    fn first(&self, lane: &Lane) -> Result<Supervised> {
        let run = lane.run_id.to_string();
        let only: Vec<String> = lane.tasks.iter().map(|id| format!("--only={id}")).collect();
        let mut flags = vec!["--isolated", "--lock-timeout", PATIENCE, "--run", &run];
        flags.extend(only.iter().map(String::as_str));
        self.context
            .note(format!("run {run}: {}", lane.tasks.join(", ")));
        called(self.context, &self.context.rerun(&flags), Show::Nothing)
    }
}

impl Lane {
    fn end(&mut self, exit: &Exit) {
        self.exit_code = Some(exit.shell_code());
        self.said = said(exit).filter(|_| exit.shell_code() != 0);
    }
}

/// The last error that a `recover` printed.
pub(super) fn said(exit: &Exit) -> Option<String> {
    let said = [exit.stderr.head.as_slice(), &exit.stderr.tail].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().rfind(|line| line.starts_with("error: "));
    line.map(str::to_owned)
}
