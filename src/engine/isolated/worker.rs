//! Works through a list of tasks together with other machines: `recover worker`.
//!
//! What needs another task is in the same run as that; each such run lies on the remote by a name that every worker finds for
//! it, so that its claim is the lock. A worker begins the first run that is not there, goes on with one that nobody holds any
//! longer, and puts its files back to how it found them after each: all that was done is in the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::called;
use super::lanes::said;
use crate::durable::{FileLock, Sync, present};
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result, WaitLimit};
use crate::engine::checkpoint;
use crate::engine::forget::forget;
use crate::engine::record;
use crate::engine::record::liveness::is_driven;
use crate::engine::record::run_settings::configured_checks;
use crate::engine::remote::{Queued, Server, TakeOver, claim_run, queued, release};
use crate::engine::restore::request::{Commits, Options, RestoreRequest};
use crate::engine::rollback::on_request::restore;
use crate::engine::run::{Request, tasks};
use crate::engine::runs::{Chosen, refuse_driven};
use crate::engine::trust::agreed::{note_agreed, print};
use crate::model::tasks::{TaskLine, TaskStatus};
use crate::model::time::format_duration;
use crate::model::{
    CheckpointId, Hint, OperationKind, Run, RunId, RunKey, RunStatus, Task, TaskList,
};
use crate::os::since_boot;
use crate::policy::report::run_state;
use crate::policy::restore::Edits;
use crate::policy::tasks::{lanes, run_name};
use crate::process::Show;

/// How the name of the run begins in which files are put back; it stays here.
const OWN: &str = "worker";
/// How often others may be faster in a row.
const MOST_LOST: u32 = 5;
/// How long is waited at least, and at most, before the remote is read again.
const PAUSE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// What a worker is to do.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub file: PathBuf,
    /// What each run begins with; its tasks aside.
    pub request: Request,
    /// The same as words of the command line.
    pub words: Vec<String>,
    /// How long the others are waited for; `None`: not at all.
    pub wait: Option<WaitLimit>,
    pub show: Show,
}

/// What became of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Work {
    pub remote: String,
    /// In the order of the list.
    pub runs: Vec<WorkRun>,
    /// Why the worker stopped before all runs were over.
    pub stopped: Option<String>,
    /// What it ends with.
    #[serde(skip)]
    pub exit_code: i32,
}

/// A run of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkRun {
    pub run_id: RunId,
    /// In words: `complete`, `running`, `needs you`, …
    pub state: String,
    /// The machine that has it, or had it last; `null` where none began it.
    pub host: Option<String>,
    /// Whether this worker brought it to its end.
    pub here: bool,
    pub tasks: Vec<TaskLine>,
}

/// Tasks that one run has.
#[derive(Debug)]
struct Part {
    key: RunKey,
    tasks: Vec<Task>,
}

/// What a worker that was killed leaves to be done.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// The files before the first task.
    checkpoint: CheckpointId,
    /// The run that was at work.
    run: Option<RunId>,
}

/// Works until nothing is left that this worker could do.
///
/// # Errors
/// The file is no list (2); another worker is at work in this work tree (11); the others took too long (9).
pub(crate) fn work(context: &Context, job: &Job) -> Result<Work> {
    let naming = context.naming();
    if naming.phase.is_some() || naming.lane.is_some() || naming.task.is_some() {
        let message =
            "a worker's runs have no phase, lane or task of their own; --run begins their names";
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["worker", "--help"])));
    }
    let list = tasks::of_file(context, &job.file, &[])?;
    let server = Server::named(context)?.with_consent()?;
    job.request.require_trust(context)?;
    let name = naming.run_id.clone().unwrap_or_else(|| {
        run_name(&job.file.file_stem().unwrap_or_default().to_string_lossy()).into()
    });
    let mut worker = Worker {
        context,
        job,
        remote: server.name().to_owned(),
        parts: parts(&list, &name),
        begin: format!("{name}-"),
        known: BTreeMap::new(),
        here: BTreeSet::new(),
    };
    if context.dry_run() {
        worker.look()?;
        return Ok(worker.done(None));
    }
    let store = context.store();
    store.create_dirs()?;
    let place = worker.place().with_extension("lock");
    let _lock = FileLock::acquire(store.root(), &place, Duration::ZERO)?;
    let stopped = worker.drive()?;
    Ok(worker.done(stopped))
}

/// The tasks by the runs that have them, in the order of the list.
fn parts(list: &TaskList, name: &RunId) -> Vec<Part> {
    let mut parts: Vec<Vec<Task>> = lanes(&list.tasks, usize::MAX)
        .into_iter()
        .map(|ids| {
            let tasks = list.tasks.iter().filter(|task| ids.contains(&task.id));
            tasks.cloned().collect()
        })
        .collect();
    let place = |part: &Vec<Task>| {
        list.tasks
            .iter()
            .position(|task| Some(task) == part.first())
    };
    parts.sort_by_key(place);
    let key = |tasks: &[Task]| {
        let id = format!("{name}-{}", run_name(&tasks[0].id));
        RunKey::new(RunId::from(id), None, None)
    };
    let part = |tasks: Vec<Task>| Part {
        key: key(&tasks),
        tasks,
    };
    parts.into_iter().map(part).collect()
}

struct Worker<'a> {
    context: &'a Context,
    job: &'a Job,
    remote: String,
    parts: Vec<Part>,
    /// What the ids of all runs begin with.
    begin: String,
    /// What lay on the remote when it was read last.
    known: BTreeMap<RunKey, Queued>,
    /// The runs that this worker brought to their end.
    here: BTreeSet<RunKey>,
}

impl Worker<'_> {
    /// Reads what lies on the remote.
    fn look(&mut self) -> Result<()> {
        let known = std::mem::take(&mut self.known);
        self.known = queued(self.context, &self.begin, known)?;
        Ok(())
    }

    /// Begins one run after another; why it stopped, where that is not because nothing is left.
    fn drive(&mut self) -> Result<Option<(String, i32)>> {
        let mut note = self.begin()?;
        let (mut failed, mut said) = (BTreeMap::new(), BTreeSet::new());
        let (mut idle, mut lost) = (since_boot(), 0);
        loop {
            let away = match self.look() {
                Err(error) if error.kind == ErrorKind::GaveUpWaiting => Some(error.message),
                looked => looked.map(|()| None)?,
            };
            // What another machine has meanwhile may be tried again.
            failed.retain(|key, _| self.is_open(key));
            let next = self.next(&note).cloned();
            if let Some(key) = next.filter(|_| away.is_none()) {
                if let Some(stopped) = failed.remove(&key) {
                    // It was tried, and nobody else has it.
                    return Ok(Some(stopped));
                }
                if note.run.as_ref() != Some(&key.run_id) {
                    self.put_back(&mut note)?;
                    self.save(&mut note, Some(key.run_id.clone()))?;
                }
                let stopped = self.attend(&key)?;
                self.put_back(&mut note)?;
                let is_lost = stopped.as_ref().is_some_and(|(_, code)| passes(*code));
                lost = if is_lost { lost + 1 } else { 0 };
                if is_lost && lost <= MOST_LOST {
                    self.sleep(PAUSE[0])?;
                } else {
                    failed.extend(stopped.map(|stopped| (key, stopped)));
                }
                idle = since_boot();
                continue;
            }
            let held: Vec<(&Part, &Queued)> = self.held().collect();
            if held.is_empty() && away.is_none() {
                self.put_back(&mut note)?;
                self.forget_note()?;
                return Ok(None);
            }
            let least = held.iter().filter_map(|(_, there)| there.free_in).min();
            let what = away.unwrap_or_else(|| who_holds(&held));
            let Some(wait) = self.job.wait else {
                return Ok(Some((what, 6)));
            };
            if said.insert(what.clone()) {
                self.context.note(format!("waiting: {what}"));
            }
            self.wait(least, (wait, idle), &what)?;
        }
    }

    /// Waits a while before the remote is read again: of what others have something is free in `least`, at the latest.
    ///
    /// # Errors
    /// It was waited `since` then as long as that may take (9); a request to stop came.
    fn wait(
        &self,
        least: Option<Duration>,
        (wait, since): (WaitLimit, Duration),
        what: &str,
    ) -> Result<()> {
        let waited = since_boot().saturating_sub(since);
        let left = wait.longest().map(|most| most.saturating_sub(waited));
        if left.is_some_and(|left| left.is_zero()) {
            let message = format!("gave up waiting: {what}");
            let hint = Hint::recover(["report", "--remote", &self.remote]);
            return Err(Error::new(ErrorKind::GaveUpWaiting, message).hint(hint));
        }
        let pause = least.map_or(PAUSE[1], |least| (least / 60).clamp(PAUSE[0], PAUSE[1]));
        self.sleep(pause.min(left.unwrap_or(pause)))
    }

    fn sleep(&self, pause: Duration) -> Result<()> {
        let slept = self.context.interrupts.sleep(pause);
        slept.map_err(|signal| Error::interrupted(signal, "stopped while others were at work"))
    }

    /// The run that is to be done next: the one that was at work here when a worker was killed, else the first that nobody holds.
    fn next(&self, note: &Note) -> Option<&RunKey> {
        let is_noted = |part: &&Part| note.run.as_ref() == Some(&part.key.run_id);
        let mut open = self.parts.iter().filter(|part| self.is_open(&part.key));
        let first = open.clone().next();
        Some(&open.find(is_noted).or(first)?.key)
    }

    /// Whether this worker may have a run now.
    fn is_open(&self, key: &RunKey) -> bool {
        let there = self.known.get(key);
        !self.here.contains(key)
            && there.is_none_or(|there| !is_over(there) && there.free_in.is_none())
    }

    /// The runs that others have.
    fn held(&self) -> impl Iterator<Item = (&Part, &Queued)> {
        let all = self.parts.iter();
        let all = all.filter_map(|part| Some((part, self.known.get(&part.key)?)));
        all.filter(|(_, there)| !is_over(there) && there.free_in.is_some())
    }

    /// Has a run done here. What it said, and what it ended with, where that was not well.
    fn attend(&mut self, key: &RunKey) -> Result<Option<(String, i32)>> {
        let context = self.context;
        let is_here = context.load()?.state.run(key).is_some();
        let there = self.known.get(key);
        let part = self.parts.iter().find(|part| part.key == *key);
        let part = part.with_context(|| format!("run {key} is of no list"))?;
        let ids: Vec<&str> = part.tasks.iter().map(|task| task.id.as_str()).collect();
        let ids = ids.join("', '");
        let mut words = if there.is_some() || is_here {
            let from = there.filter(|_| !is_here).map(|there| &there.host);
            let from = from.map_or_else(String::new, |host| format!(", which {host} began"));
            context.note(format!("going on with run {key}{from}: '{ids}'"));
            if let Some(stopped) = self.claim(part)? {
                return Ok(Some(stopped));
            }
            ["resume", "--wait"].map(str::to_owned).to_vec()
        } else {
            context.note(format!("beginning run {key}: '{ids}'"));
            let only = part.tasks.iter().map(|task| format!("--only={}", task.id));
            let run = ["run".to_owned()].into_iter().chain(only);
            run.chain(self.job.words.iter().cloned()).collect()
        };
        let end = words.iter().position(|word| word == "--");
        let end = end.unwrap_or(words.len());
        let named = ["--run", key.run_id.as_str(), "--remote", &self.remote];
        let trust = context.trusts_call().then_some("--trust");
        let named = named.into_iter().chain(["--queued", "--yes"]).chain(trust);
        words.splice(end..end, named.map(str::to_owned));
        let failed = self.call(key, words)?;
        if failed.as_ref().is_some_and(|(_, code)| *code == 11) {
            context.note(format!("another machine has run {key} now"));
        }
        if failed.is_some() && !is_driven(context, key) {
            // It was claimed here, and may have ended before it was driven.
            release(context, key, false);
        }
        if failed.is_none() {
            self.here.insert(key.clone());
        } else if !is_here && !self.known.contains_key(key) {
            self.forget_lost(key)?;
        }
        Ok(failed)
    }

    /// Claims a run that lies on the remote, and agrees to what it starts where this worker would begin it just so. Why not, where
    /// another machine has it, or the server is away.
    fn claim(&self, part: &Part) -> Result<Option<(String, i32)>> {
        match claim_run(&self.context.for_run(&part.key)?, TakeOver::default()) {
            Err(error) if passes(i32::from(error.kind.code().1)) => {
                return Ok(Some((error.message, i32::from(error.kind.code().1))));
            }
            claimed => drop(claimed?),
        }
        let agreed = self.agree(part);
        agreed.inspect_err(|_| release(self.context, &part.key, false))?;
        Ok(None)
    }

    /// Forgets a run that was to begin here, where another machine was faster.
    fn forget_lost(&self, key: &RunKey) -> Result<()> {
        let own = self.context.for_run(key)?;
        let is_untouched = |run: &Run| run.attempts().next().is_none() && run.live.is_none();
        let is_lost = own.load()?.state.run(key).is_some_and(is_untouched);
        if is_lost && !is_driven(&own, key) {
            forget(&own, Some(&Chosen::Key(key.clone())))?;
        }
        Ok(())
    }

    /// Runs `recover` about a run.
    fn call(&self, key: &RunKey, words: Vec<String>) -> Result<Option<(String, i32)>> {
        let context = self.context;
        let place = context.place_of(context.cwd());
        let supervised = called(context, &Hint::recover(words).at(place), self.job.show)?;
        let exit = supervised.run(&context.interrupts, |_| Ok(()));
        let exit = exit.context("cannot run recover")?;
        if let Some(signal) = exit.cancelled.or(context.interrupts.pending()) {
            let message = format!("interrupted; run {key} goes on with the next worker");
            return Err(Error::interrupted(signal, message));
        }
        let code = exit.shell_code();
        Ok((code != 0).then(|| {
            let plain = || format!("run {key} ended with exit code {code}");
            (said(&exit).unwrap_or_else(plain), code)
        }))
    }

    /// Agrees to what a run starts, where this worker would begin it just so.
    fn agree(&self, part: &Part) -> Result<()> {
        let context = self.context;
        let request = Request {
            only: part.tasks.iter().map(|task| task.id.clone()).collect(),
            ..self.job.request.clone()
        };
        let mut spec = request.spec(context)?;
        let retry = serde_json::to_value(&context.settings().retry);
        spec.policy = Some(retry.context("cannot encode the budgets")?);
        spec.configured = Some(configured_checks(context));
        let run = run_of(&context.load()?.state, &part.key)?;
        if print(&spec) == print(&run.spec) {
            note_agreed(context, &run)?;
        }
        Ok(())
    }

    /// Where it is noted what a worker of this work tree does.
    fn place(&self) -> PathBuf {
        let tree = crc32fast::hash(self.context.worktree_id().to_string().as_bytes());
        let folder = self.context.store().private_dir();
        folder.join(format!("worker-{tree:08x}.json"))
    }

    /// Notes the files as they are; what a worker that was killed here noted goes before it.
    ///
    /// # Errors
    /// What that worker started is still at work (11).
    fn begin(&self) -> Result<Note> {
        let root = self.context.store().root();
        let bytes = root
            .read_present(&self.place())
            .context("cannot read the worker's note")?;
        let noted = bytes.and_then(|bytes| serde_json::from_slice::<Note>(&bytes).ok());
        let state = self.context.load()?.state;
        let left =
            noted.filter(|note| note.run.is_some() && state.checkpoint(&note.checkpoint).is_some());
        if let Some(note) = left {
            // A worker that was killed leaves the run that it had started, which goes on in these files.
            let mut here = state.runs_of(&self.context.worktree_id());
            here.try_for_each(|run| refuse_driven(self.context, run))?;
            return Ok(note);
        }
        let request = checkpoint::Request {
            description: "Before the first task of a worker".to_owned(),
            ..checkpoint::Request::default()
        };
        let own = self.own()?;
        let taken = checkpoint::create(&own, request, checkpoint::Options::default())?;
        let mut note = Note {
            checkpoint: taken.checkpoint.id,
            run: None,
        };
        self.save(&mut note, None)?;
        Ok(note)
    }

    /// About the run in which files are put back.
    fn own(&self) -> Result<Context> {
        let folder = self.context.worktree().file_name().unwrap_or_default();
        let id = format!("{OWN}-{}", run_name(&folder.to_string_lossy()));
        self.context
            .for_run(&RunKey::new(RunId::from(id), None, None))
    }

    fn save(&self, note: &mut Note, run: Option<RunId>) -> Result<()> {
        note.run = run;
        let text = serde_json::to_vec(note).context("cannot encode the worker's note")?;
        let written = self
            .context
            .store()
            .root()
            .replace(&self.place(), &text, Sync::All);
        Ok(written.context("cannot write the worker's note")?)
    }

    fn forget_note(&self) -> Result<()> {
        let gone = present(self.context.store().root().remove_file(&self.place()));
        gone.context("cannot remove the worker's note")?;
        Ok(())
    }

    /// Puts the files back to how they were before the first task; what a run left in them is in its checkpoints, and in a safety
    /// checkpoint.
    fn put_back(&self, note: &mut Note) -> Result<()> {
        if note.run.is_none() {
            return Ok(());
        }
        let own = self.own()?;
        let state = own.load()?.state;
        let target = state.checkpoint(&note.checkpoint);
        let target = target.with_context(|| format!("checkpoint {} is gone", note.checkpoint))?;
        let repo = own.repo()?;
        if repo.head()?.branch != target.head_ref {
            let lock = record::checkpoint::lock(&own)?;
            repo.name_head(
                &lock,
                target.head_ref.as_deref(),
                target.base_commit.as_ref(),
            )?;
        }
        let options = Options {
            commits: Commits::Drop,
            edits: Edits::Discard,
            restore_index: true,
            here: true,
            ..Options::default()
        };
        let request = RestoreRequest::new(OperationKind::Restore, target, options);
        let restored = restore(&own, &request)?.result;
        if let (false, Some(safety)) = (restored.edited.is_empty(), &restored.safety_checkpoint_id)
        {
            own.note(format!(
                "files are as before the first task again; what was edited since is in checkpoint {safety}"
            ));
        }
        self.save(note, None)
    }

    /// What became of all runs.
    fn done(self, stopped: Option<(String, i32)>) -> Work {
        let (stopped, code) = stopped.unzip();
        let failed = self.parts.iter().any(|part| {
            let there = self.known.get(&part.key);
            there.is_some_and(|there| is_over(there) && !there.run.status.has_ended())
        });
        let runs = self.parts.iter().map(|part| {
            let there = self.known.get(&part.key);
            let pending = |task: &Task| TaskLine {
                id: task.id.clone(),
                iteration: None,
                status: TaskStatus::Pending,
                waits_for: task.needs.clone(),
                attempts: 0,
                reason: None,
            };
            let tasks = match there {
                Some(there) => there.run.task_lines(),
                None => part.tasks.iter().map(pending).collect(),
            };
            let state = there.map_or_else(
                || "not begun".to_owned(),
                |there| match there.free_in {
                    Some(_) if !is_over(there) => "running".to_owned(),
                    _ => run_state(&there.run),
                },
            );
            WorkRun {
                run_id: part.key.run_id.clone(),
                state,
                host: there.map(|there| there.host.clone()),
                here: self.here.contains(&part.key),
                tasks,
            }
        });
        Work {
            runs: runs.collect(),
            remote: self.remote.clone(),
            stopped,
            exit_code: code.unwrap_or(if failed { 8 } else { 0 }),
        }
    }
}

/// `beta holds a, gamma holds b; free when done, or 30m after the last sign of life`.
fn who_holds(held: &[(&Part, &Queued)]) -> String {
    /// How many are named.
    const NAMED: usize = 3;
    let one = |(part, there): &(&Part, &Queued)| format!("{} holds {}", there.host, part.key);
    let named: Vec<String> = held.iter().take(NAMED).map(one).collect();
    let more = match held.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more are held"),
    };
    let lease = held.iter().map(|(_, there)| there.lease).max();
    format!(
        "{}{more}; free when done, or {} after the last sign of life",
        named.join(", "),
        format_duration(lease.unwrap_or_default())
    )
}

/// Whether it is tried again after a run ended with this: another machine has it, or the server was away.
fn passes(exit_code: i32) -> bool {
    matches!(exit_code, 9 | 11)
}

/// Whether no worker goes on with it: it is done, or a person is needed.
fn is_over(there: &Queued) -> bool {
    there.run.status.is_over() || there.run.status == RunStatus::Blocked
}
