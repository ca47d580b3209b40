//! Continues a run here that another machine began.

use std::collections::BTreeSet;
use std::sync::Arc;

use itertools::Itertools as _;

use super::claim::{TakeOver, Waiting, Wish, claim, to_be_claimed};
use super::fetched::fetched_from;
use super::incoming::{at_home, gives_way, planned};
use super::push::places;
use super::record;
use super::record::{Chain, Record, RunThere, misnamed};
use super::server::{Miss, Server};
use super::session::{release, remote_for};
use crate::engine::base::runs::{named, run_of};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::isolated::set_up;
use crate::engine::record::liveness::Driving;
use crate::engine::record::run_settings::shell_of;
use crate::engine::record::select;
use crate::engine::recovery;
use crate::engine::restore::request::{Commits, Options, RestoreRequest};
use crate::engine::rollback::on_request::restore;
use crate::engine::trust::agreed::{not_agreed, note_agreed, print, require_agreed, trusted};
use crate::git::remote::Remote;
use crate::model::remote::ChainedEvent;
use crate::model::{
    Checkpoint, Hint, ObjectId, OperationKind, PathReason, Payload, RepoPath, RunId, RunKey,
    RunSpec, State,
};
use crate::policy::remote::key_of;
use crate::policy::restore::Edits;
use crate::policy::settings::CommandLine;
use crate::process::Show;

/// Claims the run that is meant, where it lies on a remote, and has its events here and its files in place; nobody else in this
/// clone drives it then. `None`: none that is meant lies on a remote.
///
/// # Errors
/// Another machine holds it, or is at work on it here (11); its command was never agreed to here, or files that were edited here
/// stand in the way (13): then the claim is given back.
pub(crate) fn take_over(
    context: &Context,
    id: Option<&RunId>,
    how: TakeOver,
) -> Result<Option<Driving>> {
    let state = context.load()?.state;
    let Some((server, key)) = meant_on(context, &state, id, how)? else {
        return Ok(None);
    };
    let there = RunThere::on(&server, &key);
    let was_there = |record: &Record| {
        record.tip.is_some() || record.seen.is_some() || !record.pending.is_empty()
    };
    let known = record::load(context, &key, server.name())?;
    if !known.as_ref().is_some_and(was_there) && state.run(&key).is_some() {
        // It was never there: it is claimed when it goes on.
        return Ok(None);
    }
    if how.steals && !context.says_yes() {
        return Err(steal_unconfirmed(there));
    }
    // The claim of a run that is at work here is that process's.
    let driving = Driving::take(context, &key)?;
    // Where its files were never in place, what is here is not its own.
    let record = there.record()?;
    let is_known =
        state.run(&key).is_some() && !record.is_unsettled && !gives_way(&state, &key, &record);
    if is_known {
        recovery::recover(context)?;
    }
    let agrees = |chain: &Chain| {
        // Where nobody else has been at it, the files stay as they are.
        if is_known && !chain.states.is_empty() {
            refuse_edited(context, &key)?;
        }
        agree(there, chain)
    };
    // What was claimed by hand before stays so.
    let was_held = there.record()?.nonce.is_some();
    let claimed = claim(there, &Wish::of_user(how, &agrees))?;
    if let Err(error) = go_on_here(there, is_known, claimed.is_unsettled) {
        if !was_held {
            let is_hurried = matches!(error.kind, ErrorKind::Interrupted(_));
            release(context, &key, is_hurried);
        }
        return Err(error);
    }
    Ok(Some(driving))
}

/// The run that is meant, and the server that it lies on or may lie on. `None`: it is to lie nowhere.
fn meant_on<'c>(
    context: &'c Context,
    state: &State,
    id: Option<&RunId>,
    how: TakeOver,
) -> Result<Option<(Server<'c>, RunKey)>> {
    let id = id.or(context.naming().run_id.as_ref());
    let local = local(context, state, id)?;
    let remote = match &local {
        Some(key) => remote_for(context, key),
        None => match (context.remote_name(), id) {
            // Where it was fetched from is where it is.
            (None, Some(id)) => fetched_from(context, id)?,
            (named, _) => named,
        },
    };
    let Some(remote) = remote else {
        return Ok(None);
    };
    let server = Server::of(context, &remote)?.with_consent()?;
    let key = local.map_or_else(|| there(&server, id, how), Ok)?;
    Ok(Some((server, key)))
}

/// A run as it would be resumed.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Which.
    pub key: RunKey,
    /// What its chain says of it.
    pub state: Arc<State>,
}

/// What a take-over would go on with; nothing is claimed or recorded. `None`: what is recorded here.
///
/// # Errors
/// Those of [`take_over`], but for what only a claim finds out.
pub(crate) fn plan_take_over(
    context: &Context,
    id: Option<&RunId>,
    how: TakeOver,
) -> Result<Option<Planned>> {
    let state = context.load()?.state;
    let Some((server, key)) = meant_on(context, &state, id, how)? else {
        return Ok(None);
    };
    let there = RunThere::on(&server, &key);
    let record = there.record()?;
    if record.tip.is_none() && state.run(&key).is_some() && !gives_way(&state, &key, &record) {
        return Ok(None);
    }
    let Some(chain) = to_be_claimed(there, &record, how.steals)? else {
        return Ok(None);
    };
    if record.tip == chain.end().map(|end| end.commit) {
        return Ok(None);
    }
    Ok(Some(Planned {
        state: planned(context, &key, &chain)?,
        key,
    }))
}

/// What was claimed is agreed to, and has its files in place.
fn go_on_here(there: RunThere<'_>, is_known: bool, is_unsettled: bool) -> Result<()> {
    let context = there.context;
    // What was claimed before, and agreed to by nobody, is here as well.
    let run = run_of(&context.load()?.state, there.key)?;
    require_agreed(context, &run)?;
    note_agreed(context, &run)?;
    if is_unsettled {
        settle_here(there, is_known)?;
        let mut locked = there.lock()?;
        locked.record.is_unsettled = false;
        locked.save()?;
    }
    Ok(())
}

/// What is to be confirmed before a living holder's run is taken.
pub(super) fn steal_unconfirmed(there: RunThere<'_>) -> Error {
    let message = format!(
        "run {} on {} may be at work elsewhere; its holder would stop with its next push: --yes takes it",
        there.key,
        there.name()
    );
    Error::new(ErrorKind::ConfirmationNeeded, message).hint(there.context.rerun(&["--yes"]))
}

/// The run that is meant, here or on the server.
pub(super) fn meant(server: &Server<'_>, how: TakeOver) -> Result<RunKey> {
    let context = server.context;
    let id = context.naming().run_id.as_ref();
    match local(context, &context.load()?.state, id)? {
        Some(key) => Ok(key),
        None => there(server, id, how),
    }
}

/// The run of this clone that is meant.
pub(super) fn local(
    context: &Context,
    state: &State,
    id: Option<&RunId>,
) -> Result<Option<RunKey>> {
    let naming = context.naming();
    match id {
        Some(id) => match named(state, id, naming.phase.as_deref(), naming.lane.as_deref()) {
            Ok(run) => Ok(Some(run.key.clone())),
            Err(error) if error.kind == ErrorKind::RunNotFound => Ok(None),
            Err(error) => Err(error),
        },
        None => Ok(select::find_quietly(context, state)?.map(|run| run.key.clone())),
    }
}

/// The run on the server that is meant: of that id, else the only one.
fn there(server: &Server<'_>, id: Option<&RunId>, how: TakeOver) -> Result<RunKey> {
    let mut waiting = Waiting::begin(how, true);
    let found = loop {
        match server.list(id) {
            Ok(found) => break found,
            Err(Miss::Away(away)) => waiting.for_server(server, &away)?,
            Err(missed) => return Err(missed.error()),
        }
    };
    let keys: Vec<RunKey> = keys_of(server, &found, id)?
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    let hint = || Hint::recover(["runs", "--remote", server.name()]);
    match keys.as_slice() {
        [key] => Ok(key.clone()),
        [] => {
            let which = id.map_or_else(|| "no run".to_owned(), |id| format!("no run '{id}'"));
            Err(Error::new(
                ErrorKind::RunNotFound,
                format!("{which}, neither here nor on {}", server.name()),
            )
            .hint(hint()))
        }
        several => {
            let (name, list) = (server.name(), several.iter().join(", "));
            let message = format!("several runs lie on {name}, choose one with --run: {list}");
            Err(Error::new(ErrorKind::Ambiguous, message).hint(hint()))
        }
    }
}

/// The keys of runs that a server has and the command may be about, by what they say of themselves, each with what it has of the run: fetched, where that is
/// not here yet, and not verified. One that git does not take, or that does not say what it is, keeps nobody from the others.
///
/// # Errors
/// It is of the run that is meant (12, or 15 where it is newer).
pub(super) fn keys_of(
    server: &Server<'_>,
    found: &[(String, ObjectId)],
    meant: Option<&RunId>,
) -> Result<Vec<(RunKey, ObjectId)>> {
    let repo = server.repo()?;
    let obtain = |found: &[(String, ObjectId)]| server.obtain(found).map_err(Miss::error);
    let mut refused = BTreeSet::new();
    match obtain(found) {
        Err(error) if error.kind == ErrorKind::Corrupt && meant.is_none() => {
            for one in found {
                match obtain(std::slice::from_ref(one)) {
                    Err(error) if error.kind == ErrorKind::Corrupt => {
                        server.context.warn(error.to_string());
                        refused.insert(&one.0);
                    }
                    obtained => drop(obtained?),
                }
            }
        }
        obtained => drop(obtained?),
    }
    let naming = server.context.naming();
    let mut keys = Vec::new();
    let is_run =
        |(name, _): &&(String, ObjectId)| name.starts_with(Remote::RUNS) && !refused.contains(name);
    for (name, commit) in found.iter().filter(is_run) {
        let Some(tip) = server.obtained(name, commit) else {
            continue;
        };
        let raw = repo.read_run_state(&tip);
        let key = raw
            .as_ref()
            .ok()
            .and_then(key_of)
            .filter(|key| Remote::run_ref(key) == *name);
        match (key, meant) {
            (Some(key), _) => keys.push((key, tip)),
            (None, None) => server.context.warn(format!(
                "{name} on {} is no run of recover's",
                server.name()
            )),
            (None, Some(id)) => {
                let key = RunKey::new(id.as_str(), naming.phase.as_deref(), naming.lane.as_deref());
                return Err(misnamed(&key, server.name(), name, &raw?));
            }
        }
    }
    keys.retain(|(key, _)| naming.fits(key));
    Ok(keys)
}

/// What a run executes, by the last word in its chain, with the places of this machine.
fn spec_in(context: &Context, chain: &Chain) -> Result<Option<RunSpec>> {
    let has_spec = |one: &&ChainedEvent| {
        matches!(
            one.event.payload,
            Payload::RunCreated { .. } | Payload::RunSpecChanged { .. }
        )
    };
    let mut events = chain.states.iter().flat_map(|state| &state.events);
    let Some(last) = events.rfind(has_spec) else {
        return Ok(None);
    };
    Ok(match at_home(&places(context), &last.event)?.payload {
        Payload::RunCreated { spec, .. } | Payload::RunSpecChanged { spec, .. } => Some(*spec),
        _ => None,
    })
}

/// Whoever may push to that repository may have written what would be run here: it is shown once.
fn agree(there: RunThere<'_>, chain: &Chain) -> Result<()> {
    let context = there.context;
    let Some(spec) = spec_in(context, chain)? else {
        return Ok(());
    };
    if trusted(context, there.key)?.as_ref() == Some(&print(&spec)) || context.trusts_call() {
        return Ok(());
    }
    Err(not_agreed(context, there.key, there.name(), &spec))
}

/// The latest checkpoint of what counts of a run.
fn latest(state: &State, key: &RunKey) -> Option<Checkpoint> {
    state
        .standing(key)
        .rfind(|checkpoint| !checkpoint.is_safety())
        .cloned()
}

/// The files of a checkpoint, HEAD stays.
fn files_of(key: &RunKey, checkpoint: &Checkpoint, edits: Edits) -> RestoreRequest {
    let options = Options {
        commits: Commits::Keep,
        edits,
        here: true,
        ..Options::default()
    };
    RestoreRequest {
        run: Some(key.clone()),
        ..RestoreRequest::new(OperationKind::Restore, checkpoint, options)
    }
}

/// Refuses where files were edited here since the run last wrote here (13).
fn refuse_edited(context: &Context, key: &RunKey) -> Result<()> {
    let Some(latest) = latest(&context.load()?.state, key) else {
        return Ok(());
    };
    let request = files_of(key, &latest, Edits::Refuse);
    restore(&context.rehearsal()?, &request).map(drop)
}

/// Refuses where what git does not have as it is stands in the way (13): the run has never written here.
fn refuse_uncommitted(context: &Context, key: &RunKey, target: &Checkpoint) -> Result<()> {
    let planned = restore(&context.rehearsal()?, &files_of(key, target, Edits::Refuse))?.result;
    let touched: BTreeSet<RepoPath> = planned.written.into_iter().chain(planned.deleted).collect();
    let edited = context.repo()?.uncommitted(&touched)?;
    if edited.is_empty() {
        return Ok(());
    }
    let reason = |path| PathReason::new(path, "not committed here");
    let paths: Vec<PathReason> = edited.into_iter().map(reason).collect();
    let message = format!(
        "{} files here are not committed, and the run {key} has others in their place: commit or stash them first; the claim is \
         given back",
        paths.len()
    );
    Err(Error::new(ErrorKind::HandEdits, message)
        .paths(paths)
        .hint(Hint::git(["stash", "-u"]).at(context.worktree())))
}

/// Puts the files of the latest checkpoint in place, and prepares what no checkpoint holds.
fn settle_here(there: RunThere<'_>, is_known: bool) -> Result<()> {
    let (context, key) = (there.context, there.key);
    let state = context.load()?.state;
    if let Some(latest) = latest(&state, key) {
        fetch_base(&there, latest.base_commit.as_ref())?;
        there.backfill(&latest.commit).map_err(Miss::error)?;
        if latest.partial {
            let mut paths = latest.skipped.iter().take(10).map(|one| &one.path);
            context.warn(format!(
                "checkpoint {} is partial: {} files stayed where it was taken or were not captured: {}",
                latest.id,
                latest.skipped.len(),
                paths.join(", ")
            ));
        }
        if !is_known {
            refuse_uncommitted(context, key, &latest)?;
        }
        // What was edited here was refused, and what the run left here is kept.
        let request = files_of(key, &latest, Edits::Discard);
        let restored = restore(context, &request)?;
        context.note(format!(
            "run {key} resumed from {}: {} files written, {} deleted, by checkpoint {}",
            there.name(),
            restored.result.written.len(),
            restored.result.deleted.len(),
            latest.id
        ));
    }
    run_setup(context, key)
}

/// The commit that a run began on has to be here; the server may have it.
fn fetch_base(server: &Server<'_>, base: Option<&ObjectId>) -> Result<()> {
    let repo = server.repo()?;
    let Some(base) = base.filter(|base| !repo.commit_exists(base)) else {
        return Ok(());
    };
    match server.fetch_commit(base) {
        Err(Miss::Failed(error)) => return Err(error),
        Ok(true) if repo.commit_exists(base) => return Ok(()),
        _ => {}
    }
    let message = format!(
        "the run began on commit {base}, which is neither here nor on {}: fetch it first",
        server.name()
    );
    Err(Error::new(ErrorKind::HeadMoved, message).hint(Hint::git(["fetch", "--all"])))
}

/// Runs `[remote] setup`, the user's own, once: what no checkpoint holds (dependencies, say) is made anew.
fn run_setup(context: &Context, key: &RunKey) -> Result<()> {
    let Some(setup) = &context.settings().remote.setup else {
        return Ok(());
    };
    let run = run_of(&context.load()?.state, key)?;
    let argv = match setup {
        CommandLine::Shell(line) => {
            vec![shell_of(context, &run.spec), "-c".to_owned(), line.clone()]
        }
        CommandLine::Argv(argv) => argv.clone(),
    };
    set_up(
        context,
        "[remote] setup",
        argv,
        context.worktree(),
        Show::Stderr,
    )
}
