//! Work trees whose folder is missing: the commands that restore one from what git still has of it, its branch and its checkpoints.
//!
//! Only shown, not done: what git keeps of such a work tree (a detached `HEAD`, the index, the reflog, the journal of a
//! restore) may be the last name of somebody's work. The commands that are printed take nothing of it away.

use std::path::Path;

use crate::engine::base::context::{Context, plain_path};
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::recovery::crash;
use crate::model::checkpoint::Checkpoint;
use crate::model::hint::Hint;
use crate::model::path::FolderId;
use crate::model::run::{Run, RunKey};
use crate::model::state::State;

/// The refusal to work in the folder `path`, which is gone, with the commands that bring it back, if one of the runs that
/// `project` knows had its work tree there. `None`: nobody had.
pub(crate) fn refuse_gone(project: &Context, path: &Path) -> Result<Option<Error>> {
    refusal(project, &*crash::load_recovered(project)?, path)
}

/// The refusal to roll a run back here whose own work tree, a linked one of this repository, is gone: what is here is
/// somebody else's. `None`: its folder is there, or it is this one that was moved.
pub(crate) fn refuse_for_gone(
    context: &Context,
    state: &State,
    run: &Run,
) -> Result<Option<Error>> {
    let (place, state_dir) = (run.worktree.path(), context.store().dir());
    if run.worktree == context.worktree_id() || place.exists() || state_dir.starts_with(&place) {
        return Ok(None);
    }
    // Where the project was moved, its checkpoints name another state directory.
    let same = |checkpoint: &Checkpoint| checkpoint.state_dir.path() == state_dir;
    if !state.checkpoints_of(&run.key).any(same) {
        return Ok(None);
    }
    refusal(context, state, &place)
}

fn refusal(project: &Context, state: &State, path: &Path) -> Result<Option<Error>> {
    let path = plain_path(path);
    let Some(latest) = latest_in(project, state, &path).filter(|_| project.has_git()) else {
        return Ok(None);
    };
    let held = held_last(state, &path, latest);
    let repo = project.repo()?;
    let base = held
        .base_commit
        .as_ref()
        .map_or("HEAD", |commit| commit.0.as_str());
    let tip = held
        .head_ref
        .as_deref()
        .and_then(|branch| repo.resolve_ref(branch));
    let short = held
        .head_ref
        .as_deref()
        .map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch));
    let kept = repo.find_linked(&path)?;
    let add = || Hint::git(["worktree", "add"]);
    let back = match (&kept, short) {
        // `add --force` and `prune` would throw away what git keeps.
        (Some(_), _) => Hint::program("mkdir")
            .arg("-p")
            .arg(&path)
            .and(Hint::git(["worktree", "repair"])),
        (None, Some(branch)) if tip.is_some() => add().arg(&path).arg(branch),
        (None, Some(branch)) => add().args(["-b", branch]).arg(&path).arg(base),
        (None, None) => add().arg("--detach").arg(&path).arg(base),
    };
    let mut commands = back.at(project.place());
    let stands_at = match &kept {
        Some(kept) => kept.head.as_ref(),
        None => tip.as_ref().or(held.base_commit.as_ref()),
    };
    let there = project.place_of(&path);
    if stands_at == held.base_commit.as_ref() {
        let back = [
            "checkpoint",
            "restore",
            held.id.as_str(),
            "--edits",
            "discard",
        ];
        commands = commands.and(Hint::recover(back).run(&held.run).at(there));
    } else {
        // What is committed there is newer than the checkpoint; what was not committed then is in there still.
        if kept.is_some() {
            commands = commands.and(Hint::git(["checkout-index", "--all"]).at(&path));
        }
        commands = commands.and(
            Hint::recover(["checkpoint", "diff", held.id.as_str()])
                .run(&held.run)
                .at(there),
        );
    }
    let moved = if stands_at == held.base_commit.as_ref() {
        ""
    } else {
        ", and its HEAD has moved on since"
    };
    let message = format!(
        "the work tree {} of run {} is gone; {} is what it held last{moved}",
        path.display(),
        held.run,
        held.id
    );
    Ok(Some(
        Error::new(ErrorKind::UnsafePath, message).hint(commands),
    ))
}

/// The checkpoint of what the work tree held last: the one that its run last wrote it from, unless that was another run's
/// or taken on another branch, or parts of others lie on top of it.
fn held_last<'a>(state: &'a State, path: &Path, latest: &'a Checkpoint) -> &'a Checkpoint {
    let known = state.worktrees.get(&FolderId::of(path));
    let layer = known
        .and_then(|worktree| worktree.baseline.last())
        .filter(|layer| layer.paths.is_empty());
    let written = layer.and_then(|layer| state.checkpoint(&layer.checkpoint_id));
    written
        .filter(|written| written.run == latest.run && written.head_ref == latest.head_ref)
        .unwrap_or(latest)
}

/// The latest checkpoint that was taken there, of the run that is named where one is.
fn latest_in<'a>(project: &Context, state: &'a State, path: &Path) -> Option<&'a Checkpoint> {
    let naming = project.naming();
    let named = naming
        .run_id
        .as_ref()
        .map(|id| RunKey::new(id.clone(), naming.phase.as_deref(), naming.lane.as_deref()));
    let there = |checkpoint: &&Checkpoint| checkpoint.worktree.path() == path;
    let own = named
        .as_ref()
        .and_then(|key| state.checkpoints_of(key).rfind(there));
    own.or_else(|| state.checkpoints.values().rfind(there))
}
