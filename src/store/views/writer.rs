//! Writing views: one writer at a time, from what the ledger says when its turn comes.
//!
//! It is done without the ledger's lock, which others wait for to record something. Of several who wait for their turn the
//! first writes what the events of all of them come to, and the others find it written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::durable::{FileLock, LockError, Sync};
use crate::model::{Hint, RunKey, State};

use super::super::error::StoreError;
use super::super::ledger::{Exclusive, Store};
use super::super::view_fingerprints::{ViewFingerprints, is_blank, is_damaged};
use super::{View, of_run, shared};

/// Gives the ledger's lock back and writes every view that events about `runs` may have changed. Returns what was recorded.
/// What came after that is in the views too.
///
/// # Errors
/// A view cannot be written. The events are recorded all the same, and so they are where another writer does not come to
/// an end: that is a warning.
pub(crate) fn write_views(ledger: Exclusive, runs: &[&RunKey]) -> Result<Arc<State>, StoreError> {
    let (store, recorded) = ledger.release();
    let _lock = match FileLock::acquire(
        store.root(),
        &store.views_lock_path(),
        store.lock_timeout(),
    ) {
        Err(LockError::Held { holder, .. }) => {
            tracing::warn!(
                "what is written for others to read is not up to date: {holder} does not finish writing it"
            );
            return Ok(recorded);
        }
        lock => lock?,
    };
    let newest = store.load()?;
    // Who knows more of it writes it.
    if newest.newer.is_some() {
        return Ok(recorded);
    }
    let state = &newest.state;
    let mut views = shared(&store, state)?;
    for run in runs {
        views.extend(of_run(&store, state, run)?);
    }
    write(&store, state, views)?;
    Ok(recorded)
}

/// Writes all views whatever was written before; returns those whose content changed.
pub(crate) fn rewrite_views(ledger: Exclusive) -> Result<Vec<PathBuf>, StoreError> {
    let (store, _) = ledger.release();
    let _lock = FileLock::acquire(store.root(), &store.views_lock_path(), store.lock_timeout())?;
    let state = store.load()?.state;
    let mut views = shared(&store, &state)?;
    for run in &state.runs {
        views.extend(of_run(&store, &state, &run.key)?);
    }
    write(&store, &state, views)
}

/// Writes views but for those that hold exactly that already. What another system wrote in their places is copied to
/// `recover/before` first, what is left of a damaged one to `recover/damaged`. Returns which were written.
fn write(store: &Store, state: &State, views: Vec<View>) -> Result<Vec<PathBuf>, StoreError> {
    let private = store.private_dir();
    let mut outdated = Vec::new();
    let mut shared = Vec::new();
    for mut view in views {
        let path = store.dir().join(&view.place);
        let present = store.view(&path);
        // A new name may be on disk before its content; where another file is replaced file systems see to it.
        if present
            .as_ref()
            .is_ok_and(|present| present.as_deref().is_none_or(is_blank))
        {
            view.sync = Sync::Content;
        }
        let same = present
            .as_ref()
            .is_ok_and(|present| present.as_ref() == Some(&view.content));
        if !path.starts_with(&private) {
            let print = ViewFingerprints::print_of(&view.content);
            shared.push((path.clone(), present, same, print));
        }
        if !same {
            outdated.push((path, view));
        }
    }
    if shared.iter().any(|(_, _, same, _)| !same) {
        let mut written = ViewFingerprints::read(store.root(), &store.fingerprints_path());
        for (path, present, same, print) in shared {
            let present = present.map_err(StoreError::io("read", &path))?;
            let place = place_of(store, &path);
            match present.filter(|present| !same && !written.is(place, present)) {
                Some(damaged) if is_damaged(&damaged) => keep_rest(store, &path, &damaged)?,
                Some(foreign) => keep_foreign(store, state, &path, &foreign)?,
                None => {}
            }
            written.add(place, print);
        }
        written.write(store.root(), &store.fingerprints_path());
    }
    let mut written = Vec::new();
    for (path, view) in outdated {
        write_view(store, &path, &view)?;
        written.push(view.place);
    }
    Ok(written)
}

/// A view's place, as it stays when the project is moved.
fn place_of<'a>(store: &Store, path: &'a Path) -> &'a Path {
    path.strip_prefix(store.dir()).unwrap_or(path)
}

/// Copies what is in a view's place into a folder of ours; returns where to.
fn keep(store: &Store, folder: &str, path: &Path, content: &[u8]) -> Result<PathBuf, StoreError> {
    let place = store
        .private_dir()
        .join(folder)
        .join(path.file_name().unwrap_or_default());
    let kept = store.root().keep_copy(&place, content);
    kept.map_err(StoreError::io("keep a copy of", path))
}

/// Copies what is left of a damaged view, if anything is: it may have been another system's, and nothing is to be lost. Not
/// to what is there again once ours is removed.
fn keep_rest(store: &Store, path: &Path, content: &[u8]) -> Result<(), StoreError> {
    if !is_blank(content) {
        let copy = keep(store, "damaged", path, content)?;
        tracing::info!(
            "{} was damaged and is written again: what was left is kept in {}",
            path.display(),
            copy.display()
        );
    }
    Ok(())
}

/// Copies what another system wrote in a view's place, and says how it is taken over unless it was.
fn keep_foreign(
    store: &Store,
    state: &State,
    path: &Path,
    content: &[u8],
) -> Result<(), StoreError> {
    let copy = keep(store, "before", path, content)?;
    let source = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut imported = state.runs.iter().flat_map(|run| &run.imported);
    if imported.any(|one| Path::new(&one.imported.source) == source) {
        tracing::info!(
            "{} was not written by recover: its content is kept in {}",
            path.display(),
            copy.display()
        );
        return Ok(());
    }
    // For a state directory in its usual place the project is known, too.
    let dir = store.dir();
    let project = dir
        .ancestors()
        .nth(2)
        .filter(|_| dir.ends_with(".ultraplan/state"));
    let (flag, folder) = project.map_or(("--state-dir", dir), |project| ("-C", project));
    let command = Hint::recover([flag]).arg(folder).arg("import").arg(copy);
    tracing::warn!(
        "{} was not written by recover; what it says is not imported: {command}",
        path.display()
    );
    Ok(())
}

fn write_view(store: &Store, path: &Path, view: &View) -> Result<(), StoreError> {
    let root = store.root_of_view(path);
    let write = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            if !root.has(folder)? {
                root.create_dir_all(folder)?;
                store.root().sync_dir(store.dir())?;
            }
            root.reap(folder);
        }
        root.replace(path, &view.content, view.sync)
    };
    write().map_err(StoreError::io("write", path))
}
