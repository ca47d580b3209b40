//! Reads what is recorded: checkpoints, attempts, logs, differences (S3), and the report of a run (A6, S13).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::agent;
use crate::durable::{reap, write_atomic};
use crate::engine::accept;
use crate::engine::attempt::run_summary::{changes_of, make_report};
use crate::engine::base::runs::{named, run_of};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::{checkpoint, memory, nested, select, stored};
use crate::engine::recovery;
use crate::git::Repo;
use crate::git::checkpoint::MemoryFile;
use crate::git::tree::{Objects, TreeLookup};
use crate::model::failure::Location as SourceLocation;
use crate::model::{
    Change, ChangeType, Checkpoint, CheckpointId, Entry, EntryKind, Event, EventSource, Failure,
    FolderId, Hint, Named, Nested, ObjectId, Place, RepoPath, Run, RunKey, Selector, Snapshot,
    State, Timestamp,
};
use crate::policy::report::{AttemptRef, MARK, Report, Span, Work, otlp, pull_request, spans};
use crate::policy::restore::Selection;
use crate::policy::text::{places, without_controls};

pub(crate) use crate::engine::record::select::{KnownCheckpoint, found_unnamed};
pub(crate) use crate::engine::recovery::load_recovered;

/// The checkpoints of a run, or of all.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CheckpointList<'a> {
    /// Oldest first.
    pub checkpoints: Vec<&'a Checkpoint>,
    /// The ids of those that a rollback took back.
    pub superseded: BTreeSet<&'a str>,
    /// Other systems' checkpoints: records without content.
    pub imported: Vec<KnownCheckpoint>,
}

/// The newest `limit` checkpoints of the run that a command is about, or of all.
pub(crate) fn checkpoints<'a>(
    context: &Context,
    state: &'a State,
    all_runs: bool,
    limit: Option<usize>,
) -> Result<CheckpointList<'a>> {
    let key = if all_runs {
        None
    } else {
        select::find_captured(context, state, &[])?.map(|run| &run.key)
    };
    let wanted = |one: &&Checkpoint| all_runs || key == Some(&one.run);
    let mut all: Vec<&Checkpoint> = state.checkpoints.values().filter(wanted).collect();
    if let Some(limit) = limit {
        all.drain(..all.len().saturating_sub(limit));
    }
    let superseded = all
        .iter()
        .filter(|one| !one.is_safety() && state.is_superseded(one));
    Ok(CheckpointList {
        superseded: superseded.map(|one| one.id.as_str()).collect(),
        imported: select::foreign(context, state, key),
        checkpoints: all,
    })
}

/// A checkpoint with its files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Shown<'a> {
    pub checkpoint: &'a Checkpoint,
    files: Vec<File>,
    /// The repositories inside, with their own checkpoints.
    pub nested: Vec<Nested>,
    /// What it changed since the run's previous one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

/// A file of a checkpoint.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct File {
    /// Where it is.
    #[serde(flatten)]
    pub path: RepoPath,
    /// As git writes it, in octal.
    pub mode: String,
    /// In bytes; `None` for what is neither a file nor a symbolic link.
    pub size: Option<u64>,
    /// Its content, or the commit of a repository inside.
    pub blob: ObjectId,
}

/// Shows a checkpoint, on request with what it changed.
pub(crate) fn show<'a>(
    context: &Context,
    state: &'a State,
    selector: &Selector,
    patch: bool,
) -> Result<Shown<'a>> {
    let checkpoint = select::checkpoint(context, state, selector)?;
    let repo = context.repo()?;
    let stored = repo.load_checkpoint(&checkpoint.commit)?;
    let patch = patch.then(|| patch_since_previous(context, state, checkpoint));
    let patch = patch.transpose()?.map(|patch| lossy(&patch));
    Ok(Shown {
        checkpoint,
        files: files_of(repo, stored.snapshot(repo)?)?,
        nested: stored.manifest.nested,
        patch,
    })
}

fn lossy(patch: &[u8]) -> String {
    String::from_utf8_lossy(patch).into_owned()
}

fn files_of(repo: &Repo, snapshot: Snapshot) -> Result<Vec<File>> {
    let file = |(path, entry): (RepoPath, Entry)| {
        let mode = match entry.kind {
            EntryKind::File => format!("100{:03o}", entry.mode),
            EntryKind::Symlink => "120000".to_owned(),
            EntryKind::Gitlink => "160000".to_owned(),
            EntryKind::EmptyDir => format!("040{:03o}", entry.mode),
        };
        let size = match entry.kind {
            EntryKind::File | EntryKind::Symlink => Some(repo.blob_size(&entry.oid)?),
            EntryKind::Gitlink | EntryKind::EmptyDir => None,
        };
        Ok(File {
            path,
            mode,
            size,
            blob: entry.oid,
        })
    };
    snapshot.entries.into_iter().map(file).collect()
}

/// What a checkpoint changed since the run's previous one, or since the one that files went back to after that; everything,
/// for the first.
pub(crate) fn patch_since_previous(
    context: &Context,
    state: &State,
    checkpoint: &Checkpoint,
) -> Result<Vec<u8>> {
    let repo = context.repo()?;
    let from = checkpoint
        .changed_from
        .as_ref()
        .or(checkpoint.previous.as_ref());
    let previous = from.and_then(|id| state.checkpoint(id));
    let from = match previous {
        Some(previous) => previous.tree.clone(),
        None => repo.empty_tree()?,
    };
    Ok(Objects::stored(repo).patch(&from, &checkpoint.tree, &Selection::all())?)
}

/// A difference between two moments.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Difference {
    from: CheckpointId,
    /// `null` for the work tree.
    to: Option<CheckpointId>,
    /// By path.
    pub changes: Vec<Change>,
    /// Changes of the working memory, without line counts.
    pub memory_updates: Vec<Change>,
    /// Where it was requested; what is not UTF-8 is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

/// Compares checkpoints that are named; both are of the same run.
pub(crate) fn diff_named(
    context: &Context,
    (from, to): (&Selector, Option<&Selector>),
    paths: &[String],
    patch: bool,
) -> Result<Difference> {
    let state = recovery::load_recovered(context)?;
    let both: Vec<&Selector> = to.into_iter().chain([from]).collect();
    let named = |selector| select::checkpoint_beside(context, &state, selector, &both);
    let to = to.map(named).transpose()?;
    diff(context, named(from)?, to, paths, patch)
}

/// Compares a checkpoint with another one, or with the work tree.
pub(crate) fn diff(
    context: &Context,
    from: &Checkpoint,
    to: Option<&Checkpoint>,
    paths: &[String],
    patch: bool,
) -> Result<Difference> {
    let repo = context.repo()?;
    let selection = stored::selection(paths)?;
    let before = repo.load_checkpoint(&from.commit)?;
    let difference = |objects: Objects<'_>, after, tree, now, new_memory: &[_]| {
        let mut changes = objects.changes(before.view(), after, &selection)?;
        stored::note_unmatched(context, paths, || {
            let lookup = TreeLookup::new(&objects)?;
            Ok([before.view().snapshot(&lookup)?, after.snapshot(&lookup)?])
        })?;
        let then = &before.manifest.nested;
        nested::changed(context, repo, then, now, &selection, &mut changes);
        let patch = patch.then(|| objects.patch(&from.tree, tree, &selection));
        Ok(Difference {
            from: from.id.clone(),
            to: to.map(|to| to.id.clone()),
            changes,
            memory_updates: memory_updates(&before.memory(repo)?, new_memory),
            patch: patch.transpose()?.map(|patch| lossy(&patch)),
        })
    };
    if let Some(to) = to {
        let after = repo.load_checkpoint(&to.commit)?;
        let (objects, memory) = (Objects::stored(repo), after.memory(repo)?);
        let now = nested::Now::Stored(&after.manifest.nested);
        return difference(objects, after.view(), &to.tree, now, &memory);
    }
    let prepared = checkpoint::prepare(context)?;
    let (capture, memory) = (&prepared.capture, memory::read(context)?);
    let now = nested::Now::Captured(&prepared.nested);
    difference(
        capture.objects(),
        capture.view(),
        &capture.tree,
        now,
        &memory,
    )
}

fn memory_updates(old: &[MemoryFile], new: &[MemoryFile]) -> Vec<Change> {
    let by_path = |files: &'_ [MemoryFile]| -> BTreeMap<RepoPath, Vec<u8>> {
        let files = files.iter();
        files
            .map(|file| (file.path.clone(), file.content.clone()))
            .collect()
    };
    let (old, new) = (by_path(old), by_path(new));
    let paths: BTreeSet<&RepoPath> = old.keys().chain(new.keys()).collect();
    let change = |path: &RepoPath| {
        let kind = match (old.get(path), new.get(path)) {
            (None, _) => ChangeType::Created,
            (_, None) => ChangeType::Deleted,
            (old, new) if old == new => return None,
            _ => ChangeType::Modified,
        };
        Some(Change::new(path.clone(), kind))
    };
    paths.into_iter().filter_map(change).collect()
}

/// Only so many of the latest events are read for the log of a run.
const EVENTS: u64 = 2000;
/// Only so much of the end of an attempt's log is read, in bytes.
const LOG_END: u64 = 256 << 10;

/// Everything that is recorded, and the run that a command is about which names none.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// All runs and checkpoints.
    pub state: Arc<State>,
    /// That run.
    pub chosen: Option<RunKey>,
    /// The other work trees of the repository that runs work in, which commands about these need.
    pub elsewhere: BTreeMap<FolderId, Place>,
}

/// Loads it; nothing is written.
pub(crate) fn recorded(context: &Context) -> Result<Recorded> {
    let state = recovery::load_recovered(context)?;
    let chosen = select::find(context, &state)
        .ok()
        .flatten()
        .map(|run| run.key.clone());
    let mut elsewhere: BTreeMap<FolderId, Option<Place>> = BTreeMap::new();
    for run in &state.runs {
        elsewhere
            .entry(run.worktree.clone())
            .or_insert_with(|| context.elsewhere(run));
    }
    let elsewhere = elsewhere
        .into_iter()
        .filter_map(|(folder, place)| Some((folder, place?)))
        .collect();
    Ok(Recorded {
        state,
        chosen,
        elsewhere,
    })
}

/// The latest events of a run, oldest first, each with its line.
pub(crate) fn events(
    context: &Context,
    state: &State,
    key: &RunKey,
) -> Result<Vec<(Event, String)>> {
    let mut events = context
        .store()
        .read_lines(state.last_seq.saturating_sub(EVENTS))?;
    events.retain(|(event, _)| event.run.as_ref() == Some(key));
    Ok(events)
}

/// What is recorded, an event each as it is in the ledger.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventLog {
    #[schemars(with = "Vec<EventLine>")]
    events: Vec<Value>,
    /// The events with their lines.
    #[serde(skip)]
    pub lines: Vec<(Event, String)>,
}

/// An event of any version.
#[derive(JsonSchema)]
#[schemars(rename = "event")]
#[expect(
    dead_code,
    reason = "events are passed on as they are; only the schema is wanted"
)]
struct EventLine {
    seq: u64,
    at: Timestamp,
    schema: u32,
    #[serde(flatten)]
    run: Option<RunKey>,
    source: EventSource,
    #[serde(rename = "type")]
    kind: String,
    payload: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl EventLog {
    /// The newest `limit` events of the run that is named, else of all.
    pub(crate) fn read(context: &Context, limit: Option<usize>) -> Result<Self> {
        let lines = newest(context, limit)?;
        let document = |(event, line): &(Event, String)| {
            document_of(event, line).map_err(|error| {
                Error::new(ErrorKind::Corrupt, format!("event {}: {error}", event.seq))
            })
        };
        let events = lines.iter().map(document).collect::<Result<_>>()?;
        Ok(Self { events, lines })
    }

    /// The run that all events are of which are of one.
    pub(crate) fn only_run(&self) -> Option<&RunKey> {
        let mut runs = self
            .lines
            .iter()
            .filter_map(|(event, _)| event.run.as_ref());
        let first = runs.next()?;
        runs.all(|run| run == first).then_some(first)
    }
}

/// The events of a log that is followed.
#[derive(Debug)]
pub(crate) struct Tail {
    last: u64,
    /// Those that were read last, with their lines.
    pub lines: Vec<(Event, String)>,
}

impl Tail {
    /// Begins with the newest `limit` events.
    pub(crate) fn begin(context: &Context, limit: Option<usize>) -> Result<Self> {
        let last = context.load()?.state.last_seq;
        let mut lines = newest(context, limit)?;
        lines.retain(|(event, _)| event.seq <= last);
        Ok(Self { last, lines })
    }

    /// Reads what is new; whether the ledger was rebuilt meanwhile.
    pub(crate) fn read_on(&mut self, context: &Context) -> Result<bool> {
        let new = context.store().read_lines(self.last)?;
        let before = self.last;
        self.last = match new.last() {
            Some((event, _)) => event.seq,
            None => before.min(context.load()?.state.last_seq),
        };
        self.lines = chosen(context, new);
        Ok(self.last < before)
    }
}

/// An event as it was recorded; what of that cannot be shown, since another program wrote it, is left out.
pub(crate) fn document_of(event: &Event, line: &str) -> serde_json::Result<Value> {
    serde_json::from_str(line).or_else(|_| serde_json::to_value(event))
}

/// The events that are there, as far as they are asked for.
fn newest(context: &Context, limit: Option<usize>) -> Result<Vec<(Event, String)>> {
    let naming = context.naming();
    // Without a run the last lines are enough.
    let after = match limit.filter(|_| naming.run_id.is_none()) {
        Some(limit) => context.load()?.state.last_seq.saturating_sub(limit as u64),
        None => 0,
    };
    let mut events = chosen(context, context.store().read_lines(after)?);
    if let Some(id) = naming.run_id.as_ref().filter(|_| events.is_empty()) {
        // An error where there is no such run: every run begins with an event.
        named(
            &context.load()?.state,
            id,
            naming.phase.as_deref(),
            naming.lane.as_deref(),
        )?;
    }
    if let Some(limit) = limit {
        events.drain(..events.len().saturating_sub(limit));
    }
    Ok(events)
}

/// Those of the run that was named, else all.
fn chosen(context: &Context, mut events: Vec<(Event, String)>) -> Vec<(Event, String)> {
    let naming = context.naming();
    if let Some(id) = &naming.run_id {
        let (phase, lane) = (naming.phase.as_deref(), naming.lane.as_deref());
        let of_run = |run: &RunKey| {
            run.run_id == *id
                && phase.is_none_or(|phase| run.phase == phase)
                && lane.is_none_or(|lane| run.lane == lane)
        };
        events.retain(|(event, _)| event.run.as_ref().is_some_and(of_run));
    }
    events
}

/// The end of an attempt's log as a person reads it: an agent's records as text.
pub(crate) fn log_end(context: &Context, path: &Path) -> Result<String> {
    let end = context.read_end(path, LOG_END);
    let (mut bytes, skipped) = end.map_err(|error| Error::cannot("read", path, error))?;
    if skipped > 0 {
        // The rest of a record is none.
        let line = bytes.iter().position(|byte| *byte == b'\n');
        bytes.drain(..line.map_or(0, |end| end + 1));
    }
    let mut records = agent::Stream::new(None);
    let mut text = records.take(&bytes);
    text.extend(records.end());
    Ok(without_controls(&String::from_utf8_lossy(&text)))
}

/// Between which checkpoints an iteration of a run did its work, where both are known.
pub(crate) fn span_of_iteration<'a>(
    state: &'a State,
    run: &Run,
    number: u32,
) -> Option<(&'a Checkpoint, &'a Checkpoint)> {
    let end = state
        .end_of_iteration(&run.key, number)
        .and_then(Named::kept);
    let end = end.or_else(|| {
        state
            .checkpoints_of(&run.key)
            .rfind(|checkpoint| checkpoint.after_iteration == number)
    })?;
    Some((state.before_iteration(run, number)?, end))
}

/// What a run began with and its latest checkpoint, where both are there.
pub(crate) fn span_of_run<'a>(
    state: &'a State,
    key: &RunKey,
) -> Option<(&'a Checkpoint, &'a Checkpoint)> {
    Some((state.initial(key)?.kept()?, state.latest(key)?))
}

/// The first place in a file of the work tree that texts name, whose paths are relative to one of the folders; with its whole
/// path.
pub(crate) fn place_in<'t>(
    worktree: &Path,
    folders: &[PathBuf],
    texts: impl IntoIterator<Item = &'t str>,
) -> Option<SourceLocation> {
    let git = worktree.join(".git");
    let is_ours =
        |path: &PathBuf| path.is_file() && path.starts_with(worktree) && !path.starts_with(&git);
    texts.into_iter().flat_map(places).find_map(|place| {
        let real = |folder: &PathBuf| fs::canonicalize(folder.join(&place.path)).ok();
        let path = folders.iter().filter_map(real).find(is_ours)?;
        let path = path.to_string_lossy().into_owned();
        Some(SourceLocation { path, ..place })
    })
}

/// What a failure says, in the order in which it is read.
pub(crate) fn texts_of(failure: &Failure) -> impl Iterator<Item = &str> {
    let evidence = failure.evidence.iter().map(|evidence| &evidence.text);
    let message = [Some(&failure.message), failure.details.as_ref()];
    let texts = message.into_iter().flatten().chain(evidence);
    texts.map(String::as_str)
}

/// The report of the run that a command works on; only of one subtask where that is named. On request with what its attempts
/// changed and printed.
pub(crate) fn report_of_run(
    context: &Context,
    subtask: Option<&str>,
    with_work: bool,
) -> Result<Report> {
    let state = recovery::load_recovered(context)?;
    let run = select::require(context, &state)?;
    if let Some(subtask) = subtask {
        require_subtask(run, subtask)?;
    }
    let mut report = make_report(context, &state, run, subtask)?;
    if with_work {
        report.work = work(context, &state, &run.key, &report)?;
    }
    Ok(report)
}

/// What the attempts of a report changed, each since what it began with, and printed. What cannot be read is left out.
fn work(
    context: &Context,
    state: &State,
    key: &RunKey,
    report: &Report,
) -> Result<BTreeMap<AttemptRef, Work>> {
    let mut all: BTreeMap<AttemptRef, Work> = BTreeMap::new();
    for span in spans(state, &context.store().events_of(key)?) {
        let patch = patch_of_span(context, state, &span);
        all.entry(span.attempt).or_default().patch = patch
            .inspect_err(|error| tracing::warn!(%error, "the report lacks what an attempt changed"))
            .ok();
    }
    for line in &report.attempts {
        let Some(path) = &line.log_path else { continue };
        let attempt = AttemptRef {
            iteration: line.iteration,
            attempt: line.number,
        };
        all.entry(attempt).or_default().log = log_end(context, Path::new(path))
            .inspect_err(|error| tracing::debug!(%error, "the report lacks a log"))
            .ok();
    }
    Ok(all)
}

/// What an attempt changed since what it began with.
fn patch_of_span(context: &Context, state: &State, span: &Span) -> Result<String> {
    let tree = |id| state.checkpoint(id).map(|checkpoint| &checkpoint.tree);
    let (Some(from), Some(to)) = (tree(&span.from), tree(&span.to)) else {
        return Ok(String::new());
    };
    let objects = Objects::stored(context.repo()?);
    Ok(lossy(&objects.patch(from, to, &Selection::all())?))
}

/// Title and body of a pull request for the run that a command works on.
pub(crate) fn pull_request_of(context: &Context) -> Result<String> {
    let state = recovery::load_recovered(context)?;
    let run = select::require(context, &state)?;
    let mut changes = changes_of(context, &state, run)?;
    // Where it cannot be accepted now, as on another commit, nothing is known to be left out.
    let left_out = accept::left_out(context, &state, run).unwrap_or_default();
    changes.retain(|change| !left_out.contains(&change.path));
    Ok(pull_request(run, &changes))
}

/// A trace for an `OpenTelemetry` collector of the run that a command works on.
pub(crate) fn otlp_of(context: &Context) -> Result<serde_json::Value> {
    let state = recovery::load_recovered(context)?;
    Ok(otlp(select::require(context, &state)?, context.clock.now()))
}

/// The report of this run.
pub(crate) fn report_of_key(context: &Context, key: &RunKey) -> Result<Report> {
    let state = context.load()?.state;
    let run = run_of(&state, key)?;
    make_report(context, &state, &run, None)
}

fn require_subtask(run: &Run, subtask: &str) -> Result<()> {
    let mut known: Vec<&str> = run
        .attempts()
        .map(|(_, attempt)| attempt.subtask.as_str())
        .collect();
    known.sort_unstable();
    known.dedup();
    if known.contains(&subtask) {
        return Ok(());
    }
    let which = if known.is_empty() {
        "it has no attempts".to_owned()
    } else {
        format!("known: {}", known.join(", "))
    };
    let message = format!("no subtask '{subtask}' in run {}: {which}", run.key);
    Err(Error::new(ErrorKind::NoSubtask, message)
        .hint(Hint::recover(["attempt", "list"]).run(&run.key)))
}

/// Writes a report at `path`, whole or not at all, and returns the absolute path. A file that is no report is replaced
/// only after a yes. Nothing is written in a dry run.
pub(crate) fn report_to_file(context: &Context, path: &Path, text: &str) -> Result<PathBuf> {
    context.check_writes("writing a report")?;
    let path = context.cwd().join(path);
    // Without -o it goes to standard output.
    let hint = || Hint::recover(["report"]);
    let failed = |error| Error::cannot("write", &path, error).hint(hint());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        let message = format!("{} is a folder", path.display());
        return Err(Error::new(ErrorKind::Usage, message).hint(hint()));
    };
    let folder = fs::canonicalize(folder).map_err(failed)?;
    let path = folder.join(name);
    if let Ok(there) = fs::metadata(&path) {
        if !there.is_file() {
            let message = format!("{} is no ordinary file", path.display());
            return Err(Error::new(ErrorKind::Usage, message).hint(hint()));
        }
        if there.len() > 0 && !context.says_yes() && !is_report(&path) {
            let message = format!(
                "{} already exists and is not a report: --yes overwrites it",
                path.display()
            );
            return Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint()));
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
        && (head.contains(MARK)
            || (head.contains("\"command\": \"report\"") && head.contains("\"report\": {")))
}
