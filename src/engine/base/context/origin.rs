//! Decides whether a project's state is ours or came with a clone.
//!
//! State that a clone, an archive or a cache brought may hold back what it says (its cooldowns, its counts), but nothing
//! that is recorded in it is run, and nothing is added to it, until somebody takes it over: `recover trust --state`, or
//! `RECOVER_TRUST=1` for one call. The decision is made once, where a [`Context`] is made, and lies in its
//! [`Store`]: one of foreign origin gives out no lock.

use std::path::{Path, PathBuf};

use crate::engine::base::attempt_mark::is_part_of_attempt;
use crate::engine::base::error::{Error, Result};
use crate::git::Repo;
use crate::model::hint::Hint;
use crate::store::{Foreign, Origin, Registry, Store};

use super::{Context, Setup};

/// The variable that takes state over, and trusts what the project's configuration asks for, for one call.
const TRUST: &str = "RECOVER_TRUST";

/// What of a state directory is `recover`'s own and decides whose it is. Its views are shared with other systems.
const OWN: [&str; 2] = ["events.jsonl", "recover"];

/// Where the ids of our state directories are kept: in the folder that the work trees of a repository share, without one in
/// the user's own. What was made before there was a repository stays known.
pub(super) fn registry(common: Option<&Path>, setup: &Setup) -> Registry {
    Registry::new(
        common
            .map(Path::to_owned)
            .into_iter()
            .chain(user_state_home(setup)),
    )
}

/// `$XDG_STATE_HOME`, by default `~/.local/state`.
pub(super) fn user_state_home(setup: &Setup) -> Option<PathBuf> {
    let named = (setup.env)("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let home = || setup.home.clone().or_else(std::env::home_dir);
    let folder = named.or_else(|| Some(home()?.join(".local").join("state")))?;
    folder.is_absolute().then_some(folder)
}

/// Whether the environment trusts what it finds, for this call.
pub(super) fn trusts_for_this_call(setup: &Setup) -> bool {
    (setup.env)(TRUST).is_some_and(|value| value == "1")
}

/// Finds out whose the state is.
///
/// Ours is what has an id that is known here, unless git brought the ledger since; what the ledger's second copy in the
/// repository shows to be recorded here, also before there were ids; and without git what has no id yet and has captured
/// the files of this very place.
///
/// # Errors
/// The system could not look: nothing is said of whose it is then.
pub(super) fn origin(
    store: &Store,
    repo: Option<&Repo>,
    worktree: &Path,
    setup: &Setup,
) -> Result<Origin> {
    // A supervised agent trusts nothing on the user's behalf, also where the variable is set for the whole job.
    let is_trusted = || trusts_for_this_call(setup) && !is_part_of_attempt(store.dir(), worktree);
    if !store.has_content() || is_trusted() {
        return Ok(Origin::Ours);
    }
    let is_tracked = || repo.is_some_and(|repo| repo.tracks_any(store.dir(), &OWN));
    let is_known = store.has_known_id().map_err(|error| {
        let what = format!(
            "cannot find out whose the state in {} is",
            store.dir().display()
        );
        Error::io(what, error)
    })?;
    let is_ours = is_known && !(store.ledger_path().exists() && is_tracked())
        || store.is_vouched_for()
        || repo.is_none()
            && !store.is_named()
            && Repo::was_captured_privately(store.root(), store.dir(), worktree);
    Ok(match is_ours {
        true => Origin::Ours,
        false if is_tracked() => Origin::Foreign(Foreign::Tracked),
        false => Origin::Foreign(Foreign::UnknownId),
    })
}

/// Says that the state is only read, where it is somebody else's.
pub(super) fn warn_if_foreign(context: &Context) {
    if let Origin::Foreign(why) = context.store().origin() {
        let (dir, way) = (
            context.store().dir().display(),
            context.line(Hint::recover(["trust", "--state"])),
        );
        context.warn(format!(
            "the state in {dir} came from elsewhere ({why}): it holds back what it says, and nothing else of it counts; \
             `{way}` takes it over"
        ));
    }
}
