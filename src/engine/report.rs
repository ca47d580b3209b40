//! The report of a run: gathering what it is made from, and writing it down (A6, S13).

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::durable::{Sync, reap, write_atomic};
use crate::engine::base::runs;
use crate::engine::record::attempt_record::Ended;
use crate::engine::record::liveness;
use crate::engine::record::run_settings::loops_of;
use crate::git::diff::{Objects, changes};
use crate::git::stored::load_checkpoint;
use crate::model::decision::Action;
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::policy::report::{AttemptChanges, MARK, Report, Source, Span, Stuck, markdown, report, spans};
use crate::policy::selection::Selection;
use crate::store::views::attempt_history_of;

use super::context::Context;
use super::error::{Error, ErrorKind, Result};
use super::{retry, select, settle};

/// The name of the report beside a run's logs.
const FILE: &str = "report.md";

/// The report of the run that a command works on; only of one subtask where that is named.
pub fn of_run(context: &Context, subtask: Option<&str>) -> Result<Report> {
    let state = settle::load_settled(context)?;
    let run = select::require(context, &state)?;
    if let Some(subtask) = subtask {
        require_subtask(context, run, subtask)?;
    }
    make(context, &state, run, subtask)
}

fn require_subtask(context: &Context, run: &Run, subtask: &str) -> Result<()> {
    let mut known: Vec<&str> = run.attempts().map(|(_, attempt)| attempt.subtask.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    if known.contains(&subtask) {
        return Ok(());
    }
    let which = if known.is_empty() { "it has no attempts".to_owned() } else { format!("known: {}", known.join(", ")) };
    let message = format!("no subtask '{subtask}' in run {}: {which}", run.key);
    Err(Error::new(ErrorKind::NoSubtask, message).hint(context.hint_command(Some(&run.key), &["attempt", "list"])))
}

fn make(context: &Context, state: &State, run: &Run, subtask: Option<&str>) -> Result<Report> {
    let events = context.store().events_of(&run.key)?;
    let now = context.clock.now();
    let stuck = attempt_history_of(state, run).stuck_subtasks.into_iter().map(|stuck| Stuck {
        subtask_id: stuck.subtask_id.to_owned(),
        reason: stuck.reason.to_owned(),
        escalated_at: stuck.escalated_at,
        attempt_count: stuck.attempt_count,
    });
    Ok(report(&Source {
        state,
        run,
        events: &events,
        retry: &retry::status_of(context, state, run),
        loops: &loops_of(context, run),
        stuck: &stuck.collect::<Vec<_>>(),
        unfinished: liveness::unfinished_operation(context)?.as_deref(),
        changes: &changed(context, state, &spans(state, &events)),
        subtask,
        command: &|words| context.hint_command(Some(&run.key), words),
        now,
    }))
}

/// What attempts changed. A checkpoint that cannot be read is no reason for having no report.
fn changed(context: &Context, state: &State, spans: &[Span]) -> Vec<AttemptChanges> {
    let mut all = Vec::with_capacity(spans.len());
    for span in spans {
        match compare(context, state, span) {
            Ok(Some(changes)) => all.push(changes),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the report does not know what an attempt changed"),
        }
    }
    all
}

fn compare(context: &Context, state: &State, span: &Span) -> Result<Option<AttemptChanges>> {
    let (Some(from), Some(to)) = (state.checkpoint(&span.from), state.checkpoint(&span.to)) else { return Ok(None) };
    let repo = context.repo()?;
    let (before, after) = (load_checkpoint(repo, &from.commit)?, load_checkpoint(repo, &to.commit)?);
    let changes = changes(Objects::Stored(repo), before.side(), after.side(), &Selection::all())?;
    Ok(Some(AttemptChanges { attempt: span.attempt, changes }))
}

/// Keeps the report where a person is to hear of how an attempt ended.
pub fn after(context: &Context, key: &RunKey, ended: Ended) -> Ended {
    let called_for = ended.decision.as_ref().is_some_and(|decision| decision.has(Action::Escalate));
    let report = if called_for { keep(context, key) } else { None };
    Ended { report, ..ended }
}

/// Keeps the report beside the run's logs and says where. Whatever goes wrong with it changes nothing but that.
pub fn keep(context: &Context, key: &RunKey) -> Option<PathBuf> {
    let kept = try_keep(context, key);
    kept.inspect_err(|error| tracing::warn!(%error, run = %key, "the report was not written")).ok()
}

fn try_keep(context: &Context, key: &RunKey) -> Result<PathBuf> {
    let state = context.load()?.state;
    let run = runs::named(&state, &key.run_id, Some(&key.phase), Some(&key.lane))?;
    let text = markdown(&make(context, &state, run, None)?);
    let folder = context.store().run_dir(key);
    let path = folder.join(FILE);
    let failed = |error| Error::io(format!("cannot write {}", path.display()), error);
    let root = context.store().root();
    root.create_dir_all(&folder).map_err(failed)?;
    root.reap(&folder);
    root.write(&path, text.as_bytes(), Sync::All).map_err(failed)?;
    Ok(path)
}

/// Writes a report at `path`, whole or not at all, and returns the absolute path. A file that is no report is replaced
/// only after a yes. Nothing is written in a dry run.
pub fn to_file(context: &Context, path: &Path, text: &str) -> Result<PathBuf> {
    context.check_writes("writing a report")?;
    let path = context.cwd().join(path);
    // Without -o it goes to standard output.
    let hint = "recover report";
    let failed = |error| Error::io(format!("cannot write {}", path.display()), error).hint(hint);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::new(ErrorKind::Usage, format!("{} is a folder", path.display())).hint(hint));
    };
    let folder = fs::canonicalize(folder).map_err(failed)?;
    let path = folder.join(name);
    if let Ok(there) = fs::metadata(&path) {
        if !there.is_file() {
            return Err(Error::new(ErrorKind::Usage, format!("{} is no ordinary file", path.display())).hint(hint));
        }
        if there.len() > 0 && !context.says_yes() && !is_report(&path) {
            let message = format!("{} already exists and is not a report: --yes overwrites it", path.display());
            return Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint));
        }
    }
    if !context.dry_run() {
        reap(&folder);
        write_atomic(&path, text.as_bytes()).map_err(failed)?;
    }
    Ok(path)
}

/// Whether a file is a report that was written before.
fn is_report(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(200).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok()
        && (head.contains(MARK) || (head.contains("\"command\": \"report\"") && head.contains("\"report\": {")))
}
