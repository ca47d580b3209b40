//! What a restore would do: everything that is refused is refused here.

use std::collections::BTreeSet;

use crate::git::WorktreeLock;
use crate::git::checkpoint::MemoryFile;
use crate::git::diff::Objects;
use crate::git::ignore_rules::SnapshotIgnores;
use crate::git::left_out;
use crate::git::restore::{Expect, check};
use crate::git::stored::{StoredCheckpoint, load_checkpoint};
use crate::model::checkpoint::Checkpoint;
use crate::model::operation::{HeadMove, OperationKind, Scope};
use crate::model::path::{PathReason, RepoPath};
use crate::model::snapshot::Snapshot;
use crate::model::state::State;
use crate::policy::restore_plan::{Baseline, Edits, PlanInput, RestorePlan, plan as plan_files};
use crate::policy::selection::Selection;

use super::super::checkpoint::{Prepared, prepare_under};
use super::super::context::Context;
use super::super::error::{Error, ErrorKind, Result};
use super::super::memory::{self, MemoryPlan};
use super::head::{self, HeadPlan};
use super::{RestoreRequest, RestoreResult};

/// A restore that may be carried out.
#[derive(Debug)]
pub struct Planned {
    /// What is there now, and the work tree's lock.
    pub prepared: Prepared,
    /// The checkpoint to put back.
    pub target: Checkpoint,
    /// It as it is stored.
    pub stored: StoredCheckpoint,
    /// What is done to files.
    pub files: RestorePlan,
    /// What is done to the working memory.
    pub memory: MemoryPlan,
    /// What is done to HEAD.
    pub head: HeadPlan,
    /// Whether the index becomes the checkpoint's.
    pub index: bool,
}

impl Planned {
    /// Whether nothing would be touched.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.memory.is_empty() && self.head == HeadPlan::Stay && !self.index
    }

    /// The answer; `safety` once it was carried out.
    pub fn result(&self, safety: Option<String>, verified: bool) -> RestoreResult {
        let before = self.prepared.capture.head.commit.clone();
        let after = match &self.head {
            HeadPlan::Move(to) => to.clone(),
            HeadPlan::Stay | HeadPlan::Revert => before.clone(),
        };
        let modes = self.files.set_mode.iter().map(|set| set.path.clone());
        let made = self.files.make_dirs.iter().map(|dir| dir.path.clone());
        let removed = self.files.remove_dirs.iter().map(|dir| dir.path.clone());
        let mut written: Vec<RepoPath> =
            self.files.write.iter().map(|write| write.path.clone()).chain(modes).chain(made).collect();
        let mut deleted: Vec<RepoPath> =
            self.files.delete.iter().map(|delete| delete.path.clone()).chain(removed).collect();
        written.sort();
        deleted.sort();
        RestoreResult {
            success: true,
            restored_to_iteration: self.target.after_iteration,
            checkpoint_id: self.target.id.clone(),
            storage_type: self.target.storage_type,
            safety_checkpoint_id: safety,
            written,
            deleted,
            kept: self.files.kept.clone(),
            head: HeadMove { before, after },
            verified,
        }
    }
}

/// Captures what is there and plans the way to the checkpoint.
pub fn plan(context: &Context, lock: WorktreeLock, state: &State, request: &RestoreRequest) -> Result<Planned> {
    let repo = context.repo()?;
    let target = state.checkpoint(&request.checkpoint_id).cloned().ok_or_else(|| {
        Error::new(ErrorKind::NoCheckpoint, format!("No checkpoint available: {}", request.checkpoint_id))
            .hint("recover checkpoint list --all-runs")
    })?;
    let stored = load_checkpoint(repo, &target.commit)?;
    let snapshot = stored.snapshot(repo)?;
    let selection =
        Selection::globs(&request.paths).map_err(|error| Error::new(ErrorKind::Usage, format!("--path: {error}")))?;
    if request.scope == Scope::State && !selection.is_all() {
        return Err(Error::new(ErrorKind::Usage, "--path selects files: it has no meaning with --scope state"));
    }

    // What the target holds is captured first even where it is ignored now: it would be overwritten.
    let also: BTreeSet<RepoPath> = snapshot.entries.keys().filter(|path| selection.matches(path)).cloned().collect();
    let prepared = prepare_under(context, lock, &also)?;
    let manifest = &prepared.capture.manifest;

    let files = if request.scope.covers_files() {
        head::refuse_operation(manifest, &stored.manifest)?;
        let files = file_plan(context, state, request, &prepared, &snapshot, &selection)?;
        check(repo, &files, Expect::Captured)?;
        files
    } else {
        RestorePlan::default()
    };
    let memory = if request.scope.covers_state() && selection.is_all() {
        let plan = memory_plan(context, &prepared.memory, &stored)?;
        memory::check(context.store().dir(), &plan)?;
        plan
    } else {
        MemoryPlan::default()
    };
    let moves_head = request.scope == Scope::All && selection.is_all() && context.has_git();
    let run = request.run.as_ref().and_then(|key| state.run(key));
    let head = if moves_head {
        head::plan(repo, run, &prepared.capture.head, &stored.manifest.head, request)?
    } else {
        HeadPlan::Stay
    };
    let follows = head != HeadPlan::Stay
        && head::index_is_clean(repo, &prepared.capture.head, prepared.capture.index_tree.as_ref(), manifest);
    // After a commit on top the index follows that commit, else the checkpoint's.
    let index_differs = head == HeadPlan::Revert
        || prepared.capture.index_tree != stored.index_tree
        || prepared.capture.manifest.index_extras != stored.manifest.index_extras;
    let index = (request.restore_index || follows) && index_differs && context.has_git();
    Ok(Planned { prepared, target, stored, files, memory, head, index })
}

fn file_plan(
    context: &Context,
    state: &State,
    request: &RestoreRequest,
    prepared: &Prepared,
    target: &Snapshot,
    selection: &Selection,
) -> Result<RestorePlan> {
    let repo = context.repo()?;
    let now = &prepared.capture.snapshot;
    let by_now = SnapshotIgnores::read(repo, Objects::Captured(&prepared.capture), now)?;
    let by_target = SnapshotIgnores::read(repo, Objects::Stored(repo), target)?;
    let layers = baseline_layers(context, state)?;
    let baseline = |path: &RepoPath| {
        for (layer, paths) in layers.iter().rev() {
            if paths.matches(path) {
                return match layer {
                    Some(snapshot) => snapshot.entries.get(path).cloned().map_or(Baseline::Absent, Baseline::Present),
                    None => Baseline::Unknown,
                };
            }
        }
        Baseline::Unknown
    };
    let ignored = |path: &RepoPath| by_now.is_ignored(path) || by_target.is_ignored(path);
    let plan = plan_files(&PlanInput {
        now,
        target,
        baseline: &baseline,
        selection,
        ignored: &ignored,
        left_out: &left_out(repo, &context.capture_rules()),
        edits: request.edits,
    });
    if request.edits == Edits::Refuse && !plan.hand_edits.is_empty() {
        let reason =
            |path: &RepoPath| PathReason { path: path.clone(), reason: "edited by hand".to_owned(), size: None };
        let paths: Vec<PathReason> = plan.hand_edits.iter().map(reason).collect();
        let message = format!("{} path(s) were edited since the run last wrote them: {}", paths.len(), listed(&paths));
        let how = if matches!(request.kind, OperationKind::Undo) { "undo" } else { request.kind.as_str() };
        return Err(Error::new(ErrorKind::HandEdits, message).paths(paths).hint(format!(
            "{how} --edits keep leaves them; --edits discard restores over them (undo brings them back)"
        )));
    }
    Ok(plan)
}

fn listed(paths: &[PathReason]) -> String {
    let mut names: Vec<String> = paths.iter().take(5).map(|reason| reason.path.to_string()).collect();
    if paths.len() > 5 {
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// What the run last wrote in this work tree, layer by layer. A layer whose checkpoint is gone says nothing.
fn baseline_layers(context: &Context, state: &State) -> Result<Vec<(Option<Snapshot>, Selection)>> {
    let repo = context.repo()?;
    let Some(worktree) = state.worktrees.get(&context.worktree_name()) else { return Ok(Vec::new()) };
    let mut layers = Vec::new();
    for layer in &worktree.baseline {
        let snapshot = match state.checkpoint(&layer.checkpoint_id) {
            Some(checkpoint) => Some(load_checkpoint(repo, &checkpoint.commit)?.snapshot(repo)?),
            None => None,
        };
        let paths = Selection::globs(&layer.paths)
            .map_err(|error| Error::new(ErrorKind::Corrupt, format!("a recorded path is no glob: {error}")))?;
        layers.push((snapshot, paths));
    }
    Ok(layers)
}

fn memory_plan(context: &Context, now: &[MemoryFile], stored: &StoredCheckpoint) -> Result<MemoryPlan> {
    let then = stored.memory(context.repo()?)?;
    memory::plan(now, &then, &context.settings().memory)
}
