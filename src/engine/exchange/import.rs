//! `recover import`: takes files of the source systems and bundles of checkpoints into the ledger.
//! All files are read and judged before anything is recorded, and all of it is recorded at once.
//!
//! Importing checkpoints from a bundle: those that `checkpoint prune --archive` wrote, or `checkpoint export`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::durable::Root;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint::lock;
use crate::engine::record::events;
use crate::engine::record::select::{KnownCheckpoint, known};
use crate::engine::record::stored::record_in;
use crate::engine::recovery;
use crate::engine::recovery::rebuild::{take_home, write_patch_if_gone};
use crate::git::checkpoint::Unbundled;
use crate::git::repo::CheckpointRef;
use crate::model::{
    Checkpoint, CheckpointId, FolderId, Hint, ImportKind, Payload, Run, RunKey, State, StorageType,
    Timestamp,
};
use crate::policy::import::{ImportInput, Problem, is_known_history, read, recognise};
use crate::store::views::{RecoveryState, attempt_view, battle_of, recovery_state, write_views};
use crate::store::{NewEvent, Store};

/// More than any of these files has.
const MAX_FILE: u64 = 4 << 20;

/// What came of one file.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ImportedFile {
    /// The file, absolute.
    pub path: String,
    /// Which system's, or `bundle`.
    #[schemars(extend("enum" = ["battle", "attempt_history", "lanes", "session", "recovery", "bundle"]))]
    pub kind: &'static str,
    /// Whether anything of it was new.
    pub changed: bool,
    /// The runs that it is about.
    pub runs: Vec<RunKey>,
    /// Runs that were made for it.
    pub runs_created: usize,
    /// Attempts that were recorded.
    pub attempts: usize,
    /// Records of lanes that were taken over.
    pub records: usize,
    /// Events that were recorded.
    pub events: usize,
    /// Why nothing of it was taken over, where that needs a word.
    pub message: Option<String>,
    /// What of it was left out, and why.
    pub left_out: Vec<Problem>,
    /// The checkpoints that it lists.
    pub checkpoints: Vec<KnownCheckpoint>,
    /// Our own checkpoints that came back from it.
    pub returned: Vec<CheckpointId>,
}

impl ImportedFile {
    fn new(path: &Path, kind: &'static str) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            kind,
            ..Self::default()
        }
    }
}

/// What an import did, or would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Imported {
    /// Whether anything was (or would be) recorded.
    pub changed: bool,
    pub files: Vec<ImportedFile>,
}

/// A file that was read.
struct Document {
    path: PathBuf,
    kind: ImportKind,
    content: Value,
}

/// Imports the files, of folders the JSON files and bundles in them; in a dry run only says what would be recorded. What is of
/// no named `kind` is recognised by its content.
pub(crate) fn import(
    context: &Context,
    files: &[PathBuf],
    kind: Option<ImportKind>,
) -> Result<Imported> {
    let (mut documents, mut bundles) = (Vec::new(), Vec::new());
    for path in expand(context, files)? {
        if kind.is_none() && Unbundled::is_bundle(&path)? {
            bundles.push(inspect_bundle(context, &path)?);
        } else {
            documents.push(load(&path, kind)?);
        }
    }
    documents.sort_by_key(|document| document.kind);
    if context.dry_run() {
        let mut state = recovery::load_recovered(context)?;
        let returning = returning(&bundles, &state)?;
        let (imported, _) = take_over(context, &mut state, &documents)?;
        return Ok(imported.with(returning));
    }
    recovery::recover(context)?;
    let mut ledger = context.store().lock()?;
    let mut state = Arc::new(ledger.state().clone());
    let returning = returning(&bundles, &state)?;
    let (imported, events) = take_over(context, &mut state, &documents)?;
    if imported.changed {
        let keys: BTreeSet<RunKey> = events
            .iter()
            .filter_map(|(_, event)| event.run.clone())
            .collect();
        ledger.append_dated(events)?;
        write_views(ledger, &keys.iter().collect::<Vec<_>>())?;
    } else {
        drop(ledger);
    }
    for bundle in &bundles {
        import_bundle(context, bundle)?;
    }
    Ok(imported.with(returning))
}

/// Applies to the state in memory what an import of the file would record. Returns the runs that it says something new of;
/// none where it cannot be read or nothing is known of its kind.
pub(in crate::engine) fn apply_speculatively(
    context: &Context,
    state: &mut Arc<State>,
    path: &Path,
) -> Vec<RunKey> {
    let read = load(path, None).and_then(|document| take_over(context, state, &[document]));
    let read = read
        .inspect_err(|error| tracing::debug!(%error, "a file in a view's place is passed over"));
    let files = read.into_iter().flat_map(|(imported, _)| imported.files);
    files
        .filter(|file| file.changed)
        .flat_map(|file| file.runs)
        .collect()
}

/// What the bundles bring back.
fn returning(bundles: &[Bundle], state: &State) -> Result<Vec<ImportedFile>> {
    let (mut files, mut seen, mut made) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for bundle in bundles {
        let mut file = ImportedFile::new(&bundle.path, "bundle");
        for checkpoint in new_in_bundle(bundle, state)? {
            if !seen.insert(&checkpoint.id) {
                continue;
            }
            let is_new = state.run(&checkpoint.run).is_none() && made.insert(&checkpoint.run);
            file.runs_created += usize::from(is_new);
            file.events += 1 + usize::from(is_new);
            file.returned.push(checkpoint.id.clone());
            if !file.runs.contains(&checkpoint.run) {
                file.runs.push(checkpoint.run.clone());
            }
        }
        file.changed = file.events > 0;
        file.message = (!file.changed).then(|| "what it holds is here".to_owned());
        files.push(file);
    }
    Ok(files)
}

impl Imported {
    fn with(mut self, files: Vec<ImportedFile>) -> Self {
        self.changed |= files.iter().any(|file| file.changed);
        self.files.extend(files);
        self
    }
}

/// What all documents together add; each sees what those before it have added.
fn take_over(
    context: &Context,
    state: &mut Arc<State>,
    documents: &[Document],
) -> Result<(Imported, Vec<(Timestamp, NewEvent)>)> {
    let naming = context.naming();
    let named = naming
        .run_id
        .as_ref()
        .map(|id| RunKey::new(id.clone(), naming.phase.as_deref(), naming.lane.as_deref()));
    let (mut files, mut all) = (Vec::new(), Vec::new());
    for document in documents {
        let source = document.path.to_string_lossy().into_owned();
        let worktree = context.worktree_id();
        let at = ImportInput {
            state,
            source: &source,
            worktree: &worktree,
            run: named.as_ref(),
            now: context.clock.now(),
        };
        let parts = read(document.kind, &document.content, &at)
            .map_err(|problem| damaged(&document.path, &problem))?;
        let mut file = ImportedFile::new(&document.path, document.kind.as_str());
        if is_own_view(document, state, context.store()) {
            file.message = Some("the ledger has it already".to_owned());
        } else if named.is_none() && is_old_view(context, document, state)? {
            file.message = Some("an old copy of what the ledger holds".to_owned());
        }
        let parts = parts.into_iter().filter(|_| file.message.is_none());
        for part in parts.collect::<Vec<_>>() {
            file.left_out.extend(part.left_out);
            for (at, mut payload) in part.events {
                if document.kind == ImportKind::Battle {
                    file.left_out.extend(bring_here(context, &mut payload));
                }
                count(&mut file, &payload);
                let event = NewEvent::about(&part.key, payload);
                events::apply_speculatively(state, at, event.clone());
                all.push((at, event));
            }
            let imported = state
                .run(&part.key)
                .into_iter()
                .flat_map(|run| &run.imported);
            let about = imported
                .filter(|one| one.imported.source == source && one.imported.kind == document.kind);
            let checkpoints = about.flat_map(|one| one.checkpoints(&part.key));
            file.checkpoints
                .extend(checkpoints.map(|one| known(context, one)));
            file.runs.push(part.key);
        }
        file.changed = file.events > 0;
        files.push(file);
    }
    let changed = files.iter().any(|file| file.changed);
    Ok((Imported { changed, files }, all))
}

/// A battle that was fought where no work tree of this repository is, on another machine maybe, is resumed here. Returns
/// what is to be said of that.
fn bring_here(context: &Context, payload: &mut Payload) -> Option<Problem> {
    let Payload::RunCreated { worktree, .. } = payload else {
        return None;
    };
    let here = context.worktree_id();
    let is_gone = |place: &FolderId| {
        let repo = context.repo().ok().filter(|_| context.has_git());
        repo.is_some_and(|repo| matches!(repo.find_linked(&place.path()), Ok(Some(_))))
    };
    if *worktree == here || context.is_worktree_of_repo(worktree) || is_gone(worktree) {
        return None;
    }
    let message =
        format!("{worktree} is no work tree of this repository: the run belongs to {here}");
    *worktree = here;
    Some(Problem {
        place: "/workingDir".to_owned(),
        message,
    })
}

/// Whether the document is what its view says anyway: no news, however it came to be.
fn is_own_view(document: &Document, state: &State, store: &Store) -> bool {
    let view = match document.kind {
        ImportKind::Recovery => Some(recovery_state(state)),
        ImportKind::AttemptHistory => Some(json!(attempt_view(state))),
        ImportKind::Battle => {
            let id = document.content["id"].as_str().unwrap_or_default();
            state
                .runs
                .iter()
                .filter(|run| run.key.run_id == id)
                .map(|run| json!(battle_of(store, state, run)))
                .find(|one| *one == document.content)
        }
        // Records know the checkpoints that they are about.
        ImportKind::Lanes | ImportKind::Session => None,
    };
    !state.runs.is_empty() && view.is_some_and(|view| view == document.content)
}

/// Whether the document is an old copy of its view: the ledger went through what it records, and imported it would count
/// once more. A run that is named is one to import it into, whatever else holds it.
fn is_old_view(context: &Context, document: &Document, state: &State) -> Result<bool> {
    match document.kind {
        ImportKind::AttemptHistory => Ok(is_known_history(&document.content, state)),
        ImportKind::Recovery => was_recovery_state(context, &document.content, state),
        ImportKind::Battle | ImportKind::Lanes | ImportKind::Session => Ok(false),
    }
}

/// Whether one of our own runs once stood as the document says, to the millisecond.
fn was_recovery_state(context: &Context, document: &Value, state: &State) -> Result<bool> {
    let is_own = |run: &&Run| {
        run.imported
            .iter()
            .all(|one| one.imported.kind != ImportKind::Recovery)
    };
    // What begins records nothing yet; what was imported may have to begin anew.
    if *document == json!(RecoveryState::default()) {
        return Ok(!state.runs.is_empty() && state.runs.iter().all(|run| is_own(&run)));
    }
    let Some(last) = document["lastError"].as_str() else {
        return Ok(false);
    };
    let failed_so = |run: &&Run| {
        let mut failures = run
            .attempts()
            .filter_map(|(_, attempt)| attempt.failure.as_ref());
        failures.any(|failure| failure.message == last)
    };
    for run in state.runs.iter().filter(is_own).filter(failed_so) {
        let mut then = State::default();
        for event in context.store().events_of(&run.key)? {
            then.apply(&event);
            if then
                .run(&run.key)
                .is_some_and(|run| json!(RecoveryState::of(run)) == *document)
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn count(file: &mut ImportedFile, payload: &Payload) {
    file.events += 1;
    match payload {
        Payload::RunCreated { .. } => file.runs_created += 1,
        Payload::AttemptEnded(_) => file.attempts += 1,
        Payload::Imported(imported) if imported.kind == ImportKind::Lanes => file.records += 1,
        _ => {}
    }
}

/// The files; folders with their JSON files and bundles, below them too. Our own private files are none.
fn expand(context: &Context, given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in given {
        let path = context.cwd().join(path);
        let path = fs::canonicalize(&path)
            .map_err(|error| usage(format!("cannot read {}: {error}", path.display())))?;
        if path.is_dir() {
            let before = all.len();
            walk(context.store(), &path, &mut all)?;
            if all.len() == before {
                let place = path.display();
                return Err(usage(format!(
                    "there is no JSON file and no bundle in {place}"
                )));
            }
        } else if path.is_file() {
            all.push(path);
        } else {
            // A FIFO may never say anything, a device never end.
            let place = path.display();
            return Err(usage(format!(
                "{place} is no ordinary file: nothing else is imported"
            )));
        }
    }
    all.sort();
    all.dedup();
    Ok(all)
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

fn walk(store: &Store, folder: &Path, all: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |error| Error::cannot("read", folder, error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if kind.is_dir() {
            if path != store.private_dir() {
                walk(store, &path, all)?;
            }
        } else if kind.is_file()
            && path
                .extension()
                .is_some_and(|end| end == "json" || end == "bundle")
        {
            all.push(path);
        }
    }
    Ok(())
}

fn load(path: &Path, kind: Option<ImportKind>) -> Result<Document> {
    let (root, name) = Root::of_file(path);
    let bytes = root.read_at_most(Path::new(name), MAX_FILE);
    let bytes = bytes.map_err(|error| Error::cannot("read", path, error))?;
    let place = path.display();
    let content: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("{place} is no JSON: {error}; nothing was imported");
        Error::new(ErrorKind::Corrupt, message)
    })?;
    let Some(kind) = kind.or_else(|| recognise(&content)) else {
        return Err(usage(format!(
            "{place} is none of the files that can be imported; say which it is: --kind battle, attempt_history, lanes, \
             session or recovery"
        )));
    };
    Ok(Document {
        path: path.to_owned(),
        kind,
        content,
    })
}

fn damaged(path: &Path, problem: &Problem) -> Error {
    let message = format!(
        "{}: at {}: {}; nothing was imported",
        path.display(),
        problem.place,
        problem.message
    );
    Error::new(ErrorKind::Corrupt, message)
}

/// Said of one that would be removed again at once without.
const PIN_NOTE: &str = "came back from a bundle";

/// A bundle that was read, and found to hold checkpoints whole.
#[derive(Debug)]
pub(in crate::engine) struct Bundle {
    /// The file.
    pub path: PathBuf,
    unbundled: Unbundled,
    /// The checkpoints in it, as their commits record them.
    pub checkpoints: Vec<Checkpoint>,
}

/// Reads a bundle. Nothing is changed.
///
/// # Errors
/// One that is damaged or cut short, or that builds on commits that are not here, is corrupt (12); one without a
/// checkpoint is none of the files that can be imported (2).
fn inspect_bundle(context: &Context, path: &Path) -> Result<Bundle> {
    let git = |word| Hint::git(["bundle", word]).arg(path);
    let nothing = |error| {
        let mut error = Error::from(error);
        error.message.push_str("; nothing was imported");
        error.hint(git("verify"))
    };
    let unbundled = Unbundled::read(path).map_err(nothing)?;
    let mut checkpoints = Vec::new();
    for found in &unbundled.refs {
        let message = unbundled.message(&found.commit).map_err(nothing)?;
        let record = message.and_then(|message| record_in(&message, &found.commit));
        if let Some(record) = record
            .filter(|record| CheckpointRef::name_of(&record.run.run_id, &record.id) == found.name)
        {
            unbundled.check(&found.commit).map_err(nothing)?;
            checkpoints.push(record);
        }
    }
    if checkpoints.is_empty() {
        let message = format!(
            "{} is a bundle, but no checkpoint of recover's is in it",
            path.display()
        );
        return Err(Error::new(ErrorKind::Usage, message).hint(git("list-heads")));
    }
    if let Some(missing) = unbundled.missing(context.repo()?)?.first() {
        let message = format!(
            "{} builds on commit {missing}, which is not here: it comes from a shallow clone, and that is to be fetched first; \
             nothing was imported",
            path.display()
        );
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    Ok(Bundle {
        path: path.to_owned(),
        unbundled,
        checkpoints,
    })
}

/// Those that the ledger does not have.
///
/// # Errors
/// Another checkpoint of the same name is there already (13).
fn new_in_bundle<'a>(bundle: &'a Bundle, state: &State) -> Result<Vec<&'a Checkpoint>> {
    let mut new = Vec::new();
    for checkpoint in &bundle.checkpoints {
        let Some(known) = state.checkpoint(&checkpoint.id) else {
            new.push(checkpoint);
            continue;
        };
        if known.commit != checkpoint.commit {
            let (id, path) = (&known.id, bundle.path.display());
            let message = format!(
                "{path} holds another checkpoint {id} than the one here; nothing was imported"
            );
            let hint = Hint::recover(["checkpoint", "show", id.as_str()]);
            return Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint));
        }
    }
    Ok(new)
}

/// Takes the checkpoints of a bundle in, objects before reference before event, as they were made; what is there is left
/// alone. They are pinned: the next retention would remove them as it did before.
fn import_bundle(context: &Context, bundle: &Bundle) -> Result<()> {
    let repo = context.repo()?;
    // Held until the event is written: a reference of a pruned checkpoint is a leftover until then.
    let lock = lock(context)?;
    let state = context.load()?.state;
    for checkpoint in new_in_bundle(bundle, &state)? {
        let reference = CheckpointRef::name_of(&checkpoint.run.run_id, &checkpoint.id);
        context.store().forget_settled();
        bundle
            .unbundled
            .import(repo, &lock, &reference, &checkpoint.commit)?;
        let mut found = checkpoint.clone();
        take_home(context, &mut found);
        if !found.pinned {
            found.pinned = true;
            found.pin_note = Some(PIN_NOTE.to_owned());
        }
        let ledger = context.store().lock()?;
        let returned = |checkpoint| Payload::CheckpointReturned { checkpoint };
        events::adopt(ledger, context.clock.now(), found.clone(), returned)?;
        if found.storage_type == StorageType::Patch {
            write_patch_if_gone(context, &found);
        }
    }
    Ok(())
}
