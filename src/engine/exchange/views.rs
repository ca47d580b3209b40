//! Views for other systems: written anew from the ledger, and the limits that foreign ones in their places impose.
//!
//! `recover sync`: every view anew from the ledger, in its own place or, for the source systems, in a folder.
//!
//! Limits that another system's files in the places of our views impose until they are imported.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::import;
use crate::durable::{Root, Sync};
use crate::engine::attempt::run_summary::{Retry, run_retry_status};
use crate::engine::base::runs::Naming;
use crate::engine::base::{Context, Error, Result};
use crate::engine::record::run_settings::{max_attempts, settings_of};
use crate::engine::record::seed_json;
use crate::engine::recovery;
use crate::model::path::short_part;
use crate::model::run::NONE;
use crate::model::{Hint, ImportKind, Run, Standing, State, Timestamp};
use crate::store::views::{
    active_checkpoint, attempt_view, battle_of, battle_path, encode, has_lane_records,
    lane_records, recovery_state, rewrite_views,
};
use crate::store::{ACTIVE, ATTEMPTS, LANES, Origin, RECOVERY, ViewFingerprints};

/// What was written, or would be.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Synced {
    /// Whether any file held something else.
    pub changed: bool,
    /// Files that were written, absolute.
    pub written: Vec<String>,
    /// Files that held just that already.
    pub unchanged: Vec<String>,
    /// Those among the written ones that were another user's, and where what they said is kept.
    pub kept_aside: Vec<KeptAside>,
}

/// A file of another user's in a view's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct KeptAside {
    /// The file, absolute.
    pub path: String,
    /// Where a copy of it is, or would be, absolute.
    pub copy: String,
}

/// Writes the views again; with `to` into that folder, in the layout of the source systems, session checkpoints included.
pub(crate) fn sync(context: &Context, to: Option<&Path>) -> Result<Synced> {
    let views = views(context, to)?;
    let mut synced = Synced::default();
    if let Some(to) = to {
        // The folder that was named is resolved; nothing is followed in it.
        let root = Root::shared(context.cwd().join(to));
        // What was written in other folders: it is written again, and what is another user's there is kept.
        let noted = context.store().private_dir().join("synced.json");
        let mut ours = ViewFingerprints::read(context.store().root(), &noted);
        for (path, content) in &views {
            let present = root.read_present(path);
            let present = present.with_context(|| format!("cannot read {}", path.display()))?;
            let same = present.as_ref() == Some(content);
            if !same {
                if let Some(foreign) = present.filter(|present| !ours.is(path, present)) {
                    synced
                        .kept_aside
                        .push(keep_aside(context, &root, path, &foreign)?);
                }
                if !context.dry_run() {
                    context.check_writes("writing views elsewhere")?;
                    write(&root, path, content)?;
                }
            }
            ours.add(path, ViewFingerprints::print_of(content));
            tell(&mut synced, path, !same);
        }
        if !context.dry_run() {
            ours.write(context.store().root(), &noted);
        }
        return Ok(synced);
    }
    let store = context.store();
    let written: BTreeSet<PathBuf> = if context.dry_run() {
        let is_same = |(path, content): &(PathBuf, Vec<u8>)| {
            let present = store.view(path);
            present.is_ok_and(|present| present.as_ref() == Some(content))
        };
        let others = views.iter().filter(|view| !is_same(view));
        others.map(|(path, _)| path.clone()).collect()
    } else {
        recovery::recover(context)?;
        let ledger = store.lock()?;
        seed_json::refresh_active(context, ledger.state())?;
        let written = rewrite_views(ledger)?;
        written.iter().map(|view| store.dir().join(view)).collect()
    };
    for (path, _) in &views {
        tell(&mut synced, path, written.contains(path));
    }
    Ok(synced)
}

fn tell(synced: &mut Synced, path: &Path, written: bool) {
    let list = if written {
        &mut synced.written
    } else {
        &mut synced.unchanged
    };
    list.push(path.to_string_lossy().into_owned());
    synced.changed |= written;
}

/// Every view with its place.
fn views(context: &Context, to: Option<&Path>) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let state = recovery::load_recovered(context)?;
    let store = context.store();
    if state.runs.is_empty() {
        return Ok(Vec::new());
    }
    let root = to.map_or_else(|| store.dir().to_owned(), |to| context.cwd().join(to));
    let is_elsewhere = to.is_some();
    let lanes = if is_elsewhere {
        root.join(LANES)
    } else {
        store.lane_file().to_owned()
    };
    let mut all = vec![
        (root.join(RECOVERY), encode(&recovery_state(&state))?),
        (root.join(ATTEMPTS), encode(&attempt_view(&state))?),
    ];
    if has_lane_records(&state) {
        all.push((lanes, encode(&lane_records(&state, store))?));
    }
    let active = seed_json::active_state(context, &state);
    if let Some(active) = active_checkpoint(&state, active.as_ref()) {
        let folder = root.join(if is_elsewhere { "checkpoints" } else { "" });
        all.push((folder.join(ACTIVE), encode(&active)?));
    }
    for run in &state.runs {
        let mut imported = run.imported.iter();
        let is_battle =
            run.imported.is_empty() || imported.any(|one| one.imported.kind == ImportKind::Battle);
        if is_elsewhere && !is_battle {
            continue;
        }
        let own = battle_path(run);
        let elsewhere = own.strip_prefix("recover").unwrap_or(&own);
        let place = root.join(if is_elsewhere { elsewhere } else { &own });
        all.push((place, encode(&battle_of(context.store(), &state, run))?));
    }
    if is_elsewhere {
        all.extend(sessions(context, &state, &root)?);
    }
    all.sort();
    Ok(all)
}

/// `checkpoints/session_<id>/<checkpoint>.json` (S11): what was imported word for word, ours with the state of every file.
fn sessions(context: &Context, state: &State, root: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let place = |session: &str, id: &str| {
        let folder = format!("session_{}", plain(session));
        root.join("checkpoints")
            .join(folder)
            .join(format!("{}.json", plain(id)))
    };
    let mut all = Vec::new();
    for run in &state.runs {
        for imported in run.imported.iter().map(|one| &one.imported) {
            if imported.kind == ImportKind::Session {
                let place = place(run.key.run_id.as_str(), &imported.id);
                all.push((place, encode(&imported.document)?));
            }
        }
    }
    for checkpoint in state
        .checkpoints
        .values()
        .filter(|checkpoint| !checkpoint.is_safety())
    {
        let session = state
            .run(&checkpoint.run)
            .map_or(NONE, |run| run.session.as_str());
        let (document, _) = seed_json::document(context, state, checkpoint, &BTreeSet::new())?;
        all.push((place(session, checkpoint.id.as_str()), encode(&document)?));
    }
    Ok(all)
}

/// A name for a file.
fn plain(whole: &str) -> String {
    let name: String = whole
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '_'
            }
        })
        .collect();
    let name = short_part(name, whole);
    if name.starts_with('.') {
        format!("_{name}")
    } else {
        name
    }
}

/// Keeps a file that is not ours beside what is written in its place; a dry run only says where.
fn keep_aside(context: &Context, root: &Root, path: &Path, said: &[u8]) -> Result<KeptAside> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".before");
    let keep = if context.dry_run() {
        Root::place_of_copy
    } else {
        Root::keep_copy
    };
    let kept = keep(root, Path::new(&aside), said)
        .with_context(|| format!("cannot keep a copy of {}", path.display()))?;
    if !context.dry_run() {
        tracing::warn!(
            "{} was not written by recover: its content is kept in {}",
            path.display(),
            kept.display()
        );
    }
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok(KeptAside {
        path: text(path),
        copy: text(&kept),
    })
}

fn write(root: &Root, path: &Path, content: &[u8]) -> Result<()> {
    let failed = |error| Error::cannot("write", path, error);
    if let Some(folder) = path.parent() {
        root.create_dir_all(folder).map_err(failed)?;
        root.reap(folder);
    }
    root.replace(path, content, Sync::All).map_err(failed)
}

/// How a run stands, held back further where a file of another system's says so: its cooldown and its count hold as they
/// would if it were imported. Each such file is named.
pub(in crate::engine) fn hold_back(context: &Context, state: &State, own: Retry) -> Retry {
    let mut retry = own;
    for (path, held) in held_views(context, state) {
        let is_tighter = strictness(held.standing) > strictness(retry.standing);
        if retry.run.is_some() && !is_tighter {
            continue;
        }
        warn_held(context, &path, &held);
        if is_tighter {
            retry.standing = held.standing;
        }
        if retry.run.is_none() {
            retry = Retry {
                standing: retry.standing,
                under_way: retry.under_way,
                ..held
            };
        }
    }
    retry
}

/// The run that such a file describes, the one that is named where one is, for views where nothing is recorded of it.
pub(in crate::engine) fn foreign_run(context: &Context, state: &State) -> Option<Run> {
    let naming = context.naming();
    held_views(context, state)
        .into_iter()
        .filter_map(|(_, held)| held.run)
        .find(|run| naming.run_id.is_none() || is_named(naming, run))
}

/// Whether a command names this run.
fn is_named(naming: &Naming, run: &Run) -> bool {
    naming.run_id.as_ref() == Some(&run.key.run_id) && naming.fits(&run.key)
}

/// What such files say of runs here, as an import would record it.
fn held_views(context: &Context, state: &State) -> Vec<(PathBuf, Retry)> {
    let mut all = Vec::new();
    // A ledger that came from elsewhere holds back by itself.
    if context.store().origin() != Origin::Ours {
        return all;
    }
    for path in context.store().foreign_views() {
        let mut assumed = Arc::new(state.clone());
        for key in import::apply_speculatively(context, &mut assumed, &path) {
            let naming = context.naming();
            let is_meant =
                |run: &&Run| run.worktree == context.worktree_id() || is_named(naming, run);
            let Some(run) = assumed.run(&key).filter(is_meant) else {
                continue;
            };
            let mut status = run_retry_status(context, &assumed, run);
            let may_go_on = matches!(status.standing, Standing::Allowed | Standing::Wait(_));
            if may_go_on && status.attempts_left == Some(0) {
                status.standing = Standing::Exhausted;
            }
            let held = Retry {
                limit: None,
                run: Some(run.clone()),
                seen: None,
                standing: status.standing,
                status: Some(status),
                max_attempts: max_attempts(&settings_of(context, run).retry),
                under_way: None,
                is_driven: false,
            };
            all.push((path.clone(), held));
        }
    }
    let is_other = |held: &Retry| {
        let run = held.run.as_ref();
        run.is_none_or(|run| !is_named(context.naming(), run))
    };
    all.sort_by_key(|(_, held)| is_other(held));
    all
}

/// What allows less is greater.
fn strictness(standing: Standing) -> (u8, Option<Timestamp>) {
    match standing {
        Standing::Allowed => (0, None),
        Standing::Wait(until) => (1, Some(until)),
        Standing::Exhausted => (2, None),
        Standing::NeedsPerson => (3, None),
    }
}

fn warn_held(context: &Context, path: &Path, held: &Retry) {
    let what = match held.standing {
        Standing::Allowed => "an attempt is allowed now".to_owned(),
        Standing::Wait(until) => format!("the next attempt is allowed at {until}"),
        Standing::Exhausted => "no attempt is left".to_owned(),
        Standing::NeedsPerson => "a person is needed".to_owned(),
    };
    let way = context.line(Hint::recover(["import"]).arg(path));
    context.warn(format!(
        "{} was not written by recover, and counts until something is recorded: {} errors, {what}; `{way}` takes it over",
        path.display(),
        held.run.as_ref().map_or(0, |run| run.error_count)
    ));
}
