//! The list of tasks of a run: read when it begins and again between attempts, and ticked once the run is accepted.
//!
//! What a person adds to the file while no attempt is under way is run after the rest. What an attempt adds is noted for a
//! review, and not run: a list is what a person wants done.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::durable::{Root, Sync, present};
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::trust::agreed::{is_agreed, note_agreed};
use crate::model::failure::CauseDetail;
use crate::model::{
    FolderId, Hint, IterationStatus, Payload, RepoPath, Run, State, Task, TaskList,
};
use crate::policy::checkpoint_events::still_masked;
use crate::policy::tasks::{Listed, line_at, ordered, parse, tick as ticked};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Who may have changed the file since it was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangedBy {
    Attempt,
    Others,
}

/// The list in a file that was typed.
///
/// # Errors
/// The file cannot be read, is none, or has no open task (2).
pub(crate) fn of_file(context: &Context, path: &Path, only: &[String]) -> Result<TaskList> {
    let place = context.cwd().join(path);
    let refused =
        |message| Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"]));
    let listed = read(&place, path).map_err(refused)?;
    let mut tasks = order(path, listed.open, &listed.done).map_err(refused)?;
    tasks.retain(|task| only.is_empty() || only.contains(&task.id));
    if tasks.is_empty() {
        let message = format!(
            "{} has no open task (in Markdown a line that begins with - [ ])",
            path.display()
        );
        return Err(refused(message));
    }
    let within = place.strip_prefix(context.worktree()).unwrap_or(&place);
    Ok(TaskList {
        file: FolderId::of(within),
        tasks,
        to_review: Vec::new(),
        is_part: !only.is_empty(),
    })
}

/// The list of a run with all tasks of a file that a person gives again, what an attempt added to it included; with `only`
/// those alone. Of a part what other lanes have, and what needs that, is left out.
///
/// # Errors
/// The run works through no list, or the file is none (2).
pub(crate) fn again(
    context: &Context,
    run: &Run,
    path: &Path,
    only: &[String],
) -> Result<TaskList> {
    let refused =
        |message| Error::new(ErrorKind::Usage, message).hint(Hint::recover(["resume", "--help"]));
    let Some(list) = &run.spec.tasks else {
        return Err(refused(format!(
            "run {} works through no list of tasks",
            run.key
        )));
    };
    // A run with a work tree of its own reads the list where it was begun.
    let below = context.cwd().strip_prefix(context.worktree()).ok();
    let home = run.spec.isolated.as_ref().map(|isolated| &isolated.home);
    let called_in = home.zip(below).map_or_else(
        || context.cwd().to_owned(),
        |(home, below)| home.path().join(below),
    );
    let place = called_in.join(path);
    let within = place.strip_prefix(context.worktree()).unwrap_or(&place);
    let mut list = TaskList {
        file: FolderId::of(within),
        ..list.clone()
    };
    let to_review = std::mem::take(&mut list.to_review);
    let mut elsewhere = ids_of_other_lanes(&context.load()?.state, run);
    let more = additions(context, &list, ChangedBy::Others).map_err(refused)?;
    list.tasks.extend(more.into_iter().filter(|task| {
        let is_left = elsewhere.contains(&task.id)
            || task.needs.iter().any(|id| elsewhere.contains(id))
            || !only.is_empty() && !only.contains(&task.id);
        if is_left {
            elsewhere.insert(task.id.clone());
        }
        !is_left
    }));
    let is_added = |id: &String| list.tasks.iter().any(|task| task.id == *id);
    list.to_review = to_review.into_iter().filter(|id| !is_added(id)).collect();
    Ok(list)
}

/// The tasks that the lanes have which were begun together with a run, and share its list.
fn ids_of_other_lanes(state: &State, run: &Run) -> BTreeSet<String> {
    let name = |run: &Run| {
        let id = run.key.run_id.as_str();
        id.rsplit_once('-').map(|(name, _)| name.to_owned())
    };
    let is_lane = |other: &&Run| {
        let lists = other.spec.tasks.as_ref().zip(run.spec.tasks.as_ref());
        other.key != run.key
            && name(other) == name(run)
            && lists
                .is_some_and(|(other, own)| own.is_part && other.is_part && other.file == own.file)
    };
    let lanes = state.runs.iter().filter(is_lane);
    let lists = lanes.filter_map(|lane| lane.spec.tasks.as_ref());
    lists
        .flat_map(|list| list.tasks.iter().map(|task| task.id.clone()))
        .collect()
}

/// The open tasks of a file that `list` does not have yet, in their order.
///
/// # Errors
/// The file is no list, in words.
pub(crate) fn added(context: &Context, list: &TaskList) -> std::result::Result<Vec<Task>, String> {
    additions(context, list, ChangedBy::Others)
}

/// Reads a list; the file is named in errors as in `shown`.
fn read(place: &Path, shown: &Path) -> std::result::Result<Listed, String> {
    let (root, name) = Root::of_file(place);
    let read = present(root.read_at_most(Path::new(name), LARGEST));
    let read = read.map_err(|error| format!("cannot read {}: {error}", shown.display()))?;
    let bytes = read.ok_or_else(|| format!("there is no file {}", shown.display()))?;
    let text = str::from_utf8(&bytes).map_err(|error| {
        let line = line_at(&bytes, error.valid_up_to());
        format!("{}:{line}: this is no UTF-8", shown.display())
    })?;
    parse(&name.to_string_lossy(), text)
        .map_err(|problem| placed(shown, problem.line, &problem.message))
}

fn order(
    shown: &Path,
    open: Vec<(usize, Task)>,
    done: &BTreeSet<String>,
) -> std::result::Result<Vec<Task>, String> {
    ordered(open, done).map_err(|problem| placed(shown, problem.line, &problem.message))
}

/// `FILE:LINE: MESSAGE`.
fn placed(shown: &Path, line: Option<usize>, message: &str) -> String {
    let line = line.map_or_else(String::new, |line| format!("{line}:"));
    format!("{}:{line} {message}", shown.display())
}

fn place_of(context: &Context, list: &TaskList) -> PathBuf {
    context.worktree().join(list.file.path())
}

/// Before an attempt: the run with what was added to its list. `goes_on` says whether this process made an attempt of it: one
/// that was killed meanwhile may have changed the list.
pub(super) fn before_attempt(context: &Context, run: Run, goes_on: bool) -> Result<Run> {
    let last = run
        .standing_attempt()
        .and_then(|attempt| attempt.failure.as_ref());
    let was_killed =
        last.is_some_and(|failure| failure.detail == Some(CauseDetail::SupervisorLost));
    let by = if was_killed && !goes_on {
        ChangedBy::Attempt
    } else {
        ChangedBy::Others
    };
    follow(context, run, by)
}

/// Reads the list of a run again, and records what was added to it.
pub(super) fn follow(context: &Context, mut run: Run, by: ChangedBy) -> Result<Run> {
    let Some(list) = run.spec.tasks.clone().filter(|list| !list.is_part) else {
        return Ok(run);
    };
    // Attempts in a work tree of its own have their own copy: the user's is the user's.
    let by = run.spec.isolated.as_ref().map_or(by, |_| ChangedBy::Others);
    let more = match additions(context, &list, by) {
        Ok(more) if more.is_empty() => return Ok(run),
        Ok(more) => more,
        Err(message) => {
            if by == ChangedBy::Others {
                context.warn(format!("{message}; the tasks of the run stay as they were"));
            }
            return Ok(run);
        }
    };
    let ids: Vec<String> = more.iter().map(|task| task.id.clone()).collect();
    let (names, file) = (ids.join("', '"), list.file.path());
    let was_agreed = is_agreed(context, &run);
    let mut spec = run.spec.clone();
    let list = spec.tasks.insert(list);
    let changes = if by == ChangedBy::Attempt {
        context.warn(format!(
            "an attempt added '{names}' to {0}: not run until you have reviewed it and run recover resume --tasks \
            {0}",
            file.display()
        ));
        list.to_review.extend(ids);
        Vec::new()
    } else {
        context.note(format!("added to the tasks of the run: '{names}'"));
        list.tasks.extend(more);
        ids.into_iter()
            .map(|id| format!("task '{id}' added"))
            .collect()
    };
    spec.iterations_total = Some(list.count());
    spec.masked = still_masked(&spec);
    let spec = Box::new(spec);
    context.record(&run.key, vec![Payload::RunSpecChanged { spec, changes }])?;
    run = run_of(&context.load()?.state, &run.key)?;
    if was_agreed {
        note_agreed(context, &run)?;
    }
    Ok(run)
}

/// The tasks of the file that are not known yet, in their order.
fn additions(
    context: &Context,
    list: &TaskList,
    by: ChangedBy,
) -> std::result::Result<Vec<Task>, String> {
    let place = place_of(context, list);
    let shown = list.file.path();
    let Listed { mut open, mut done } = read(&place, &shown)?;
    let known =
        |id: &String| list.tasks.iter().any(|task| task.id == *id) || list.to_review.contains(id);
    open.retain(|(_, task)| !known(&task.id));
    if by == ChangedBy::Attempt {
        return Ok(open.into_iter().map(|(_, task)| task).collect());
    }
    done.extend(list.tasks.iter().map(|task| task.id.clone()));
    order(&shown, open, &done)
}

/// Why no other task is begun: the account's limit has less left than the run's reserve, and is not whole again yet.
pub(super) fn is_reserved(context: &Context, run: &Run) -> Option<String> {
    let reserve = run.spec.reserve?;
    let is_begun = run
        .iterations
        .get(run.current_iteration)
        .is_some_and(|iteration| {
            iteration.status != IterationStatus::Superseded && !iteration.attempts.is_empty()
        });
    let left = run.iterations.last_ended()?.limit_left?;
    let holds = left.percent < reserve && context.clock.now() < left.resets_at;
    (holds && !is_begun).then(|| {
        format!(
            "{} % of the account's limit are left, less than the reserve of {reserve} %: the next task begins after its reset \
             at {}",
            left.percent, left.resets_at
        )
    })
}

/// A list in the work tree, as it is now: a rollback leaves it so where a person added to it.
pub(in crate::engine) struct List {
    place: PathBuf,
    path: RepoPath,
    bytes: Vec<u8>,
}

impl List {
    /// `None` where the run has none that can be read, or has it elsewhere.
    pub(super) fn of(context: &Context, run: &Run) -> Option<Self> {
        let file = run.spec.tasks.as_ref()?.file.path();
        let place = context.worktree().join(&file);
        let (root, name) = Root::of_file(&place);
        let bytes = root.read_at_most(Path::new(name), LARGEST).ok()?;
        file.is_relative().then(|| Self {
            path: RepoPath::new(file.as_os_str().as_bytes()),
            place,
            bytes,
        })
    }

    /// The same where tasks were added to it.
    pub(in crate::engine) fn of_added(context: &Context, run: &Run) -> Option<Self> {
        let list = run.spec.tasks.as_ref()?;
        let more = additions(context, list, ChangedBy::Attempt).ok()?;
        Self::of(context, run).filter(|_| !more.is_empty())
    }

    /// Whether it is all of these paths.
    pub(super) fn is_all_of(&self, paths: &BTreeSet<RepoPath>) -> bool {
        paths.iter().all(|path| *path == self.path)
    }

    /// Makes it what it was.
    pub(in crate::engine) fn put_back(&self) -> Result<()> {
        let (root, name) = Root::of_file(&self.place);
        let written = root.write(Path::new(name), &self.bytes, Sync::All);
        written.map_err(|error| Error::cannot("write", &self.place, error))
    }
}

/// Ticks the tasks of an accepted run that passed, in a Markdown list, or takes the ticks back where its accept was undone;
/// returns them. The change is left uncommitted.
///
/// # Errors
/// The list is there and cannot be read or written.
pub(crate) fn tick(context: &Context, run: &Run) -> Result<Vec<String>> {
    let Some(list) = &run.spec.tasks else {
        return Ok(Vec::new());
    };
    let passed = (1..)
        .zip(&list.tasks)
        .filter(|(number, _)| run.iterations.status(*number) == Some(IterationStatus::Completed));
    let done = passed.map(|(_, task)| task.id.clone()).collect();
    let place = place_of(context, list);
    if place
        .extension()
        .is_some_and(|end| end == "toml" || end == "json")
    {
        return Ok(Vec::new());
    }
    let (root, name) = Root::of_file(&place);
    let read = present(root.read_at_most(Path::new(name), LARGEST));
    let Some(bytes) = read.map_err(|error| Error::cannot("read", &place, error))? else {
        return Ok(Vec::new());
    };
    let text = str::from_utf8(&bytes)
        .map_err(|error| Error::cannot("read", &place, std::io::Error::other(error)))?;
    let (text, ticks) = ticked(text, &done, run.was_accepted());
    if !ticks.is_empty() {
        let written = root.write(Path::new(name), text.as_bytes(), Sync::All);
        written.map_err(|error| Error::cannot("write", &place, error))?;
    }
    Ok(ticks)
}
