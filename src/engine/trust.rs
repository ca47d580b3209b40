//! Whose the state of a project is, and taking over what came from elsewhere.
//!
//! State that a clone, an archive or a cache brought may hold back what it says (its cooldowns, its counts), but nothing
//! that is recorded in it is run, and nothing is added to it, until somebody takes it over: `recover trust --state`, or
//! `RECOVER_TRUST=1` for one call. The decision is made once, where a [`Context`] is made, and lies in its
//! [`Store`]: one of foreign origin gives out no lock.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::git::tracked::tracks_any;
use crate::git::{Repo, saw_files_of};
use crate::model::run::{Run, RunKey};
use crate::store::{Foreign, Origin, Registry, Store, StoreError};

use super::context::{Context, Setup};
use super::error::{Error, ErrorKind, Result};
use super::{inside, settle};

/// The variable that takes state over for one call.
const TRUST: &str = "RECOVER_TRUST";

/// What of a state directory is `recover`'s own and decides whose it is. Its views are shared with other systems.
const OWN: [&str; 2] = ["events.jsonl", "recover"];

/// A state directory, as `recover trust --state` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct StateReport {
    /// The id that it has here; `None` while it has none that is known.
    pub id: Option<String>,
    /// The state directory, absolute.
    pub path: String,
    /// Whether it still counts as somebody else's.
    pub foreign: bool,
    /// Why it does, or did.
    pub reason: Option<&'static str>,
    /// Runs in it.
    pub runs: usize,
    /// Their attempts.
    pub attempts: usize,
    /// Checkpoints in it.
    pub checkpoints: usize,
    /// What is run where one of its runs is taken up or rolled back.
    pub commands: Vec<RecordedCommand>,
}

/// A command that a run would start.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedCommand {
    /// The run.
    #[serde(flatten)]
    pub run: RunKey,
    /// `command`, `fallback`, `until`, `feedback`, `compensate`, or `prompt`, which is no command but given to one.
    pub kind: &'static str,
    /// The command as a line for a shell, or the prompt.
    pub text: String,
}

/// What taking over did, or would do.
#[derive(Clone, Debug)]
pub struct Trusted {
    /// Whether anything changed (or would).
    pub changed: bool,
    /// The state.
    pub state: StateReport,
}

/// Where the ids of our state directories are kept: in the folder that the work trees of a repository share, without one in
/// the user's own. What was made before there was a repository stays known.
pub(super) fn registry(repo: Option<&Repo>, setup: &Setup) -> Registry {
    let of_repo = repo.map(|repo| repo.common_dir().join("recover"));
    let folders = of_repo.into_iter().chain(user_folder(setup)).map(|folder| folder.join("states"));
    Registry::new(folders.collect())
}

/// `$XDG_STATE_HOME/recover`, by default in `~/.local/state`.
fn user_folder(setup: &Setup) -> Option<PathBuf> {
    let named = (setup.env)("XDG_STATE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || setup.home.clone().or_else(std::env::home_dir);
    let folder = named.or_else(|| Some(home()?.join(".local").join("state")))?;
    folder.is_absolute().then(|| folder.join("recover"))
}

/// Finds out whose the state is.
///
/// Ours is what has an id that is known here, unless git brought the ledger since; what the ledger's second copy in the
/// repository shows to be recorded here, also before there were ids; and without git what has captured the files of this
/// very place.
pub(super) fn origin(store: &Store, repo: Option<&Repo>, worktree: &Path, setup: &Setup) -> Origin {
    // A supervised agent trusts nothing on the user's behalf, also where the variable is set for the whole job.
    let is_trusted =
        || (setup.env)(TRUST).is_some_and(|value| value == "1") && !inside::is_part_of_attempt(store.dir(), worktree);
    if !store.has_content() || is_trusted() {
        return Origin::Ours;
    }
    let is_tracked = || repo.is_some_and(|repo| tracks_any(repo, store.dir(), &OWN));
    let is_ours = store.has_known_id() && !(store.ledger_path().exists() && is_tracked())
        || store.is_vouched_for()
        || repo.is_none() && saw_files_of(store.root(), store.dir(), worktree);
    match is_ours {
        true => Origin::Ours,
        false if is_tracked() => Origin::Foreign(Foreign::Tracked),
        false => Origin::Foreign(Foreign::UnknownId),
    }
}

/// Says that the state is only read, where it is somebody else's.
pub(super) fn warn_if_foreign(context: &Context) {
    if let Origin::Foreign(why) = context.store().origin() {
        let (dir, way) = (context.store().dir().display(), context.hint_command(None, &["trust", "--state"]));
        context.warn(format!(
            "the state in {dir} came from elsewhere ({why}): it holds back what it says, and nothing else of it counts; \
             `{way}` takes it over"
        ));
    }
}

/// What the state directory holds.
pub fn look(context: &Context) -> Result<StateReport> {
    let store = context.store();
    let state = match settle::load_settled(context) {
        Err(error) if error.kind == ErrorKind::Corrupt => {
            context.warn(format!(
                "{error}: once it is taken over, `recover doctor --rebuild` brings back what can be read"
            ));
            Arc::default()
        }
        loaded => loaded?,
    };
    let origin = store.origin();
    Ok(StateReport {
        id: store.id().filter(|_| store.has_known_id()),
        path: store.dir().to_string_lossy().into_owned(),
        foreign: matches!(origin, Origin::Foreign(_)),
        reason: match origin {
            Origin::Ours => None,
            Origin::Foreign(why) => Some(why.as_str()),
        },
        runs: state.runs.len(),
        attempts: state.runs.iter().map(|run| run.attempts().count()).sum(),
        checkpoints: state.checkpoints.len(),
        commands: state.runs.iter().flat_map(commands_of).collect(),
    })
}

/// What a run has recorded that would be run, or be said to what is run.
fn commands_of(run: &Run) -> Vec<RecordedCommand> {
    let line = |words: &[String]| shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
    let spec = &run.spec;
    let words = [("command", &spec.command), ("fallback", &spec.fallback)];
    let mut all: Vec<(&'static str, String)> =
        words.into_iter().filter(|(_, words)| !words.is_empty()).map(|(kind, words)| (kind, line(words))).collect();
    all.extend(spec.until.iter().map(|until| ("until", until.clone())));
    all.extend(spec.feedback.iter().map(|check| ("feedback", check.command.clone())));
    all.extend(run.steps.iter().filter_map(|step| step.start.compensate.clone()).map(|undo| ("compensate", undo)));
    all.extend(spec.prompt.iter().map(|prompt| ("prompt", prompt.clone())));
    all.into_iter().map(|(kind, text)| RecordedCommand { run: run.key.clone(), kind, text }).collect()
}

/// Takes the state over whole: it gets an id that is known here, and its ledger its second name. In a dry run only says
/// what it holds.
///
/// # Errors
/// There is no state (10); nobody said yes (13).
pub fn take_over(context: &Context) -> Result<Trusted> {
    let store = context.store();
    if !store.has_content() {
        let message = format!("there is no state in {}", store.dir().display());
        return Err(Error::new(ErrorKind::NoRepository, message).hint("recover status"));
    }
    let state = look(context)?;
    let changed = state.foreign || state.id.is_none();
    if !changed || context.dry_run() {
        return Ok(Trusted { changed, state });
    }
    if state.foreign && !context.says_yes() {
        let message = format!(
            "the state in {} came from elsewhere: {} can be run once it is taken over; --dry-run shows what, --yes allows it",
            state.path,
            if state.commands.is_empty() {
                "what is recorded in it".to_owned()
            } else {
                format!("{} recorded commands", state.commands.len())
            }
        );
        return Err(Error::new(ErrorKind::ConfirmationNeeded, message).hint(context.again(&["--dry-run"])));
    }
    let ours = store.clone().of_origin(Origin::Ours);
    if let Some(kept) = ours.set_other_copy_aside()? {
        context.warn(format!("another ledger was recorded here before: it is kept in {}", kept.display()));
    }
    ours.create_dirs()?;
    match ours.lock() {
        // It was said, and is ours to rebuild from now on.
        Err(StoreError::Corrupt { .. }) => {}
        locked => drop(locked?),
    }
    let state = StateReport { id: ours.id(), foreign: false, ..state };
    Ok(Trusted { changed, state })
}
