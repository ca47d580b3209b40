//! A work tree whose folder is gone: made again from its branch and from what the checkpoints say it held last.

use std::path::{Path, PathBuf};

use crate::git::linked::add_again;
use crate::model::checkpoint::Checkpoint;
use crate::model::operation::{BaselineLayer, OperationKind, Scope};
use crate::model::run::RunKey;
use crate::model::state::State;
use crate::policy::restore_plan::Edits;

use super::context::{Context, plain_path};
use super::error::{Error, ErrorKind, Result};
use super::restore::{Commits, RestoreRequest, restore};
use super::settle;

/// A work tree that was made again.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// Where it is.
    pub path: PathBuf,
    /// The branch that is checked out in it.
    pub branch: String,
    /// What it held last: checkpoints, each with the paths (globs) that were put back from it, the first one whole.
    pub layers: Vec<BaselineLayer>,
    /// Whether the branch still stands where it stood then, so that the checkpoint's files belong on top of it.
    pub refill: bool,
}

/// Makes the folder `path` a work tree again, if one of the runs that `project` knows had it. `None`: nobody had.
pub fn recreate(project: &Context, path: &Path) -> Result<Option<Salvaged>> {
    let path = plain_path(path);
    let state = settle::load_settled(project)?;
    let Some(latest) = latest_in(project, &state, &path).filter(|_| project.has_git()) else { return Ok(None) };
    let layers = layers(&state, &path);
    let first = layers.first().and_then(|layer| state.checkpoint(&layer.checkpoint_id));
    let base = first.unwrap_or(latest).base_commit.as_ref();
    let gone = format!("the work tree {} is gone", path.display());
    let Some(branch) = latest.head_ref.clone() else {
        let at = base.map_or("HEAD", |commit| commit.0.as_str());
        let words = ["git", "-C", &project.worktree_name(), "worktree", "add", "--detach", &path.to_string_lossy(), at]
            .map(str::to_owned);
        let hint = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
        let message = format!("{gone}, and no branch was checked out in it");
        return Err(Error::new(ErrorKind::RunNotFound, message).hint(hint));
    };
    if project.dry_run() {
        let message = format!("{gone}; it would be made again on {branch}");
        return Err(Error::new(ErrorKind::RunNotFound, message).hint("leave out --dry-run"));
    }
    project.check_safe_mode("making a work tree again")?;
    let repo = project.repo()?;
    add_again(repo, &path, &branch, base)?;
    let tip = crate::git::refs::resolve_ref(repo, &branch);
    let refill = !layers.is_empty() && tip.as_ref() == base;
    Ok(Some(Salvaged { path, branch, layers, refill }))
}

/// What the work tree held last, as far as checkpoints hold it.
fn layers(state: &State, path: &Path) -> Vec<BaselineLayer> {
    let known = state.worktrees.get(&*path.to_string_lossy());
    let all = known.map(|worktree| worktree.baseline.as_slice()).unwrap_or_default();
    let whole = all.iter().rposition(|layer| layer.paths.is_empty());
    let there = |layer: &&BaselineLayer| state.checkpoint(&layer.checkpoint_id).is_some();
    whole.map(|whole| all[whole..].iter().filter(there).cloned().collect()).unwrap_or_default()
}

/// The latest checkpoint that was taken there, of the run that is named where one is.
fn latest_in<'a>(project: &Context, state: &'a State, path: &Path) -> Option<&'a Checkpoint> {
    let naming = project.naming();
    let named = naming.run_id.as_ref().map(|id| RunKey::new(id, naming.phase.as_deref(), naming.lane.as_deref()));
    let there = |checkpoint: &&Checkpoint| Path::new(&checkpoint.worktree) == path;
    let own = named.as_ref().and_then(|key| state.checkpoints_of(key).rfind(there));
    own.or_else(|| state.checkpoints.values().rfind(there))
}

/// Puts back into the work tree that was made again what it held last. Where its branch has moved on meanwhile, the
/// branch's files stay: they are newer.
pub fn refill(context: &Context, salvaged: &Salvaged) -> Result<()> {
    if !salvaged.refill {
        return Ok(());
    }
    let state = context.load()?.state;
    for layer in &salvaged.layers {
        let request = RestoreRequest {
            kind: OperationKind::Restore,
            run: state.checkpoint(&layer.checkpoint_id).map(|checkpoint| checkpoint.run.clone()),
            checkpoint_id: layer.checkpoint_id.clone(),
            scope: Scope::Files,
            paths: layer.paths.clone(),
            commits: Commits::Keep,
            // Nobody was here before: there are no edits.
            edits: Edits::Discard,
            restore_index: layer.paths.is_empty(),
            reposition: None,
            undoes: None,
        };
        restore(context, &request)?;
    }
    Ok(())
}
