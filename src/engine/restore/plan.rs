//! What a restore would do: everything that is refused is refused here.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::head;
use super::head::{HeadPlan, Left};
use super::nested::{Grafts, LayerPart, NestedRequest, grafts};
use super::request::{
    BEST_EFFORT, IndexMode, IndexOutcome, Initiator, RestoreRequest, RestoreResult,
};
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::checkpoint::prepare_under;
use crate::engine::record::lane::OwnCommits;
use crate::engine::record::memory::{self, MemoryPlan};
use crate::engine::record::storage::Prepared;
use crate::engine::record::stored::{self, load_latest};
use crate::git::checkpoint::{MemoryFile, StoredCheckpoint};
use crate::git::repo::owner;
use crate::git::restore::IndexPlan;
use crate::git::tree::{TreeIgnores, TreeLookup};
use crate::git::{Error as GitError, Repo, WorktreeLock};
use crate::model::checkpoint::Checkpoint;
use crate::model::hint::Hint;
use crate::model::id::CheckpointId;
use crate::model::manifest::{Entry, EntryKind, Manifest, Snapshot};
use crate::model::operation::{HeadMove, OperationKind, Scope};
use crate::model::path::{PathReason, RepoPath};
use crate::model::run::RunKey;
use crate::model::state::State;
use crate::policy::restore::{
    Baseline, EDITED_BY_HAND, Edits, PlanInput, RestorePlan, Selection, plan as plan_files,
};
use crate::policy::text::escape;

/// A restore that may be carried out.
#[derive(Debug)]
pub(crate) struct Planned {
    /// What is there now, and the work tree's lock.
    pub prepared: Prepared,
    /// The checkpoint to restore.
    pub target: Checkpoint,
    /// It as it is stored, or what it says of this work tree.
    pub stored: StoredCheckpoint,
    /// Whether that is no more than its base commit.
    pub of_base: bool,
    /// What is done to files.
    pub files: RestorePlan,
    /// What is done with nested repositories beside their files.
    pub nested: Grafts,
    /// Paths that stay unlike the checkpoint, as they cannot be replaced; see [`left_of`].
    pub left: Vec<PathReason>,
    /// What is done to the working memory.
    pub memory: MemoryPlan,
    /// What the answer calls the folder of the working memory.
    pub memory_root: RepoPath,
    /// What is done to HEAD.
    pub head: HeadPlan,
    /// What is done to the index.
    pub index: IndexPlan,
}

impl Planned {
    /// Whether nothing would be touched.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.nested.is_empty()
            && self.memory.is_empty()
            && self.head == HeadPlan::Stay
            && self.index.paths.is_empty()
    }

    /// The answer; `safety` once it was carried out.
    pub(crate) fn result(&self, safety: Option<CheckpointId>, verified: bool) -> RestoreResult {
        let before = self.prepared.capture.head.commit.clone();
        let after = match &self.head {
            HeadPlan::Move(to) => to.clone(),
            HeadPlan::Switch(to) => to.commit.clone(),
            HeadPlan::Stay | HeadPlan::Revert => before.clone(),
        };
        let modes = self.files.set_mode.iter().map(|set| set.path.clone());
        let made = self.files.make_dirs.iter().map(|dir| dir.path.clone());
        let removed = self.files.remove_dirs.iter().map(|dir| dir.path.clone());
        let in_memory = |path: &RepoPath| self.memory_root.join(path.as_bytes());
        let remembered = self.memory.write.iter().map(|file| in_memory(&file.path));
        let forgotten = self.memory.delete.iter().map(in_memory);
        let files = self.files.write.iter().map(|write| write.path.clone());
        let mut written: Vec<RepoPath> = files.chain(modes).chain(made).chain(remembered).collect();
        let files = self.files.delete.iter().map(|delete| delete.path.clone());
        let mut deleted: Vec<RepoPath> = files.chain(removed).chain(forgotten).collect();
        written.sort();
        deleted.sort();
        RestoreResult {
            success: self.left.is_empty(),
            restored_to_iteration: self.target.after_iteration,
            checkpoint_id: self.target.id.clone(),
            storage_type: self.target.storage_type,
            safety_checkpoint_id: safety,
            written,
            deleted,
            kept: self.files.kept.clone(),
            left: self.left.clone(),
            precious: Vec::new(),
            missing: Vec::new(),
            nested: self.nested.outcomes.clone(),
            index: IndexOutcome {
                restored: self.index.paths.len(),
                kept: self.index.kept,
            },
            head: HeadMove { before, after },
            verified,
            crossed: Vec::new(),
            compensated: Vec::new(),
            superseded: Vec::new(),
            operation: None,
        }
    }
}

/// Captures what is there and plans the way to the checkpoint.
pub(crate) fn plan(
    context: &Context,
    lock: WorktreeLock,
    state: &State,
    request: &RestoreRequest,
) -> Result<Planned> {
    let repo = context.repo()?;
    let target = &request.target;
    let run = request.run.as_ref().and_then(|key| state.run(key));
    head::refuse_elsewhere(context, request, run)?;
    let stored = repo.load_checkpoint(&target.commit)?;
    let selection = Selection::globs(&request.paths)
        .map_err(|error| Error::new(ErrorKind::Usage, format!("--path: {error}")))?;
    if request.scope == Scope::State && !selection.is_all() {
        return Err(Error::new(
            ErrorKind::Usage,
            "--path selects files: it has no meaning with --scope state",
        ));
    }

    let of_base = head::means_base(context, request, run)?;
    let FilePlan {
        prepared,
        stored,
        files,
        nested,
        left: left_index,
        unlike,
    } = if request.scope.covers_files() {
        let wanted = Wanted {
            captured: &stored,
            of_base,
            selection: &selection,
        };
        let mut planned = file_plan(context, state, request, lock, &wanted)?;
        let (files, nested) = (&mut planned.files, &planned.nested);
        files
            .kept
            .retain(|kept| !nested.kept.iter().any(|one| one.path == kept.path));
        files.kept.extend(nested.kept.iter().cloned());
        let blocked = repo.leave_blocked(files, planned.prepared.loan.as_ref())?;
        files.kept.extend(blocked.iter().cloned());
        planned.unlike = left_of(request, &planned, blocked);
        let (files, nested) = (&mut planned.files, &planned.nested);
        repo.check_restore(files)
            .map_err(|error| refused(repo, error))?;
        refuse_unlike(request, &planned.unlike)?;
        repo.keep_nonempty_dirs(
            files,
            nested.remove.iter().map(|file| file.path.join(b".git")),
        )?;
        files.kept.sort();
        planned
    } else {
        FilePlan {
            prepared: prepare_under(context, lock, &context.capture_rules(), &BTreeSet::new())?,
            stored,
            files: RestorePlan::default(),
            nested: Grafts::default(),
            left: Left::default(),
            unlike: Vec::new(),
        }
    };
    let memory = if request.scope.covers_state()
        && selection.is_all()
        && !request.leaves_memory(&context.settings().rollback)
    {
        let plan = memory_plan(context, request, &prepared.memory, &stored)?;
        memory::check(context.store(), &plan)?;
        plan
    } else {
        MemoryPlan::default()
    };
    let moves_head = request.scope == Scope::All && selection.is_all() && context.has_git();
    let head = if moves_head {
        let now = &prepared.capture.head;
        let before_lane = of_base || head::is_before_lane(context, state, run, target, now)?;
        let whose = OwnCommits::of(context, state, run, now)?;
        head::plan_head(
            repo,
            &whose,
            now,
            &stored.manifest.head,
            request,
            before_lane,
        )?
    } else {
        HeadPlan::Stay
    };
    let index = if context.has_git() && (request.index == IndexMode::Whole || selection.is_all()) {
        head::plan_for_index(context, request, &prepared, &stored, (&head, &left_index))?
    } else {
        IndexPlan::default()
    };
    let memory_root = memory::named_root(context);
    let target = target.clone();
    Ok(Planned {
        prepared,
        target,
        stored,
        of_base,
        files,
        nested,
        left: unlike,
        memory,
        memory_root,
        head,
        index,
    })
}

/// What a restore leaves unlike the checkpoint, as it cannot be replaced. Of a person's that is what the system does not let it
/// replace (`blocked`): everything else that stays is listed as kept. Of an automatic rollback it is also what could not be
/// captured first, as an attempt may have made it so. Edits by hand, and what the checkpoint left out too, are none of it.
fn left_of(
    request: &RestoreRequest,
    planned: &FilePlan,
    blocked: Vec<PathReason>,
) -> Vec<PathReason> {
    let (files, nested) = (&planned.files, &planned.nested);
    let is_no_repository =
        |one: &&PathReason| !nested.kept.iter().any(|kept| kept.path == one.path);
    let mut left = blocked;
    if request.initiator == Initiator::Policy {
        left.extend(files.left.iter().filter(is_no_repository).cloned());
        left.extend(nested.left.iter().cloned());
    }
    left.sort();
    left.dedup();
    left
}

/// Refuses a restore that cannot replace all that it would, unless that was asked for.
fn refuse_unlike(request: &RestoreRequest, blocked: &[PathReason]) -> Result<()> {
    if blocked.is_empty() || request.best_effort {
        return Ok(());
    }
    let (count, them) = match blocked.len() {
        1 => ("1 path".to_owned(), "it"),
        count => (format!("{count} paths"), "them"),
    };
    let message = format!(
        "{count} cannot be replaced here: {}; nothing was written, and {BEST_EFFORT} restores everything but {them}",
        listed(blocked)
    );
    let error = Error::new(ErrorKind::Blocked, message).paths(blocked.to_vec());
    Err(as_conflict(
        request,
        error.hint(request.command(&[BEST_EFFORT])),
    ))
}

/// A refusal of what was not begun with.
fn refused(repo: &Repo, error: crate::git::Error) -> Error {
    let is_conflict = matches!(error, GitError::Conflict { .. });
    let mut error = Error::from(error);
    let closed: Option<BTreeSet<PathBuf>> = error
        .paths
        .iter()
        .map(|one| closed_by_owner(repo, one))
        .collect();
    match closed.filter(|closed| !closed.is_empty()) {
        Some(closed) => {
            error
                .message
                .push_str("; nothing was written, make that readable first");
            error.hint = Some(Hint::program("chmod").args(["-R", "u+rwX"]).args(closed));
        }
        None if is_conflict => error
            .message
            .push_str("; nothing was written, move them aside first"),
        None => {}
    }
    error
}

/// The outermost of a path's folders, or itself, that cannot be read and that its owner, this user, may open.
fn closed_by_owner(repo: &Repo, one: &PathReason) -> Option<PathBuf> {
    let parts = one
        .path
        .ancestors()
        .chain([one.path.clone()])
        .filter(|_| one.is_unreadable());
    let mut parts = parts.map(|part| part.below(repo.workdir()));
    parts.find(|part| owner::is_closed(part, 0, true))
}

/// What is done to files, and what it was made from.
struct FilePlan {
    prepared: Prepared,
    stored: StoredCheckpoint,
    files: RestorePlan,
    nested: Grafts,
    left: Left,
    /// What stays unlike the checkpoint.
    unlike: Vec<PathReason>,
}

/// What is to be there.
struct Wanted<'a> {
    /// The checkpoint.
    captured: &'a StoredCheckpoint,
    /// Whether only its base commit is meant.
    of_base: bool,
    /// Which paths.
    selection: &'a Selection,
}

fn file_plan(
    context: &Context,
    state: &State,
    request: &RestoreRequest,
    lock: WorktreeLock,
    wanted: &Wanted<'_>,
) -> Result<FilePlan> {
    let repo = context.repo()?;
    let Both {
        prepared,
        stored,
        now,
        target,
        mut nested,
        hidden,
    } = capture_both(context, lock, &request.nested, wanted)?;
    let operation = head::refuse_operation(&prepared.capture.manifest, &stored.manifest);
    operation.map_err(|error| as_conflict(request, error))?;
    let opened = prepared.capture.objects().open();
    let lookup = TreeLookup::new(&opened)?;
    let ignored_now = TreeIgnores::new(repo, &lookup, prepared.capture.view())?;
    let ignored_then = TreeIgnores::new(repo, &lookup, stored.view())?;
    let inner_rules = nested.rules(&prepared, &lookup)?;
    let layers = baseline_layers(context, state, &prepared.capture.manifest)?;
    let others = if request.kind == OperationKind::Rollback {
        stored::of_others(context, state, &request.target, request.run.as_ref())?
    } else {
        BTreeMap::new()
    };
    // A plan is a pure function: what cannot be read is reported after it, and nothing is done then.
    let unreadable = RefCell::new(None);
    let hidden = Hidden {
        paths: hidden,
        rules: request.hidden_by.as_deref(),
    };
    let paths = now.entries.keys().chain(target.entries.keys());
    let since_head = edited_since_head(
        context,
        &layers,
        &prepared.capture.manifest,
        paths.cloned().collect(),
    )?;
    let judge = Judge::new(
        repo,
        &lookup,
        (&layers, since_head.as_ref()),
        &others,
        &hidden,
    )?;
    let baseline = |path: &RepoPath| {
        judge.baseline(path).unwrap_or_else(|error| {
            unreadable.replace(Some(error));
            Baseline::Unknown
        })
    };
    let ignored = |path: &RepoPath, is_folder: bool| {
        let either = inner_rules
            .ignore(path, is_folder)
            .and_then(|inner| match inner {
                Some(ignored) => Ok(ignored),
                None => Ok(ignored_now.has(path, is_folder)? || ignored_then.has(path, is_folder)?),
            });
        either.unwrap_or_else(|error| {
            unreadable.replace(Some(error));
            true
        })
    };
    let (own, recorded) = (repo.own_outputs(), recorded_outputs(&stored, &layers));
    let is_output = |path: &RepoPath| {
        now.entries.contains_key(path) && (recorded.contains(path) || own.has(path))
    };
    let left_out = repo
        .left_out(&context.capture_rules())
        .into_iter()
        .chain(nested.left_out())
        .collect();
    let mut plan = plan_files(&PlanInput {
        now: &now,
        target: &target,
        baseline: &baseline,
        selection: wanted.selection,
        ignored: &ignored,
        left_out: &left_out,
        is_output: &is_output,
        edits: request.edits,
    });
    if let Some(error) = unreadable.take() {
        return Err(error);
    }
    let edited = judge.edited.into_inner();
    for kept in plan
        .kept
        .iter_mut()
        .filter(|kept| kept.reason == EDITED_BY_HAND)
    {
        if let Some(why) = edited.get(&kept.path) {
            kept.reason.clone_from(why);
        }
    }
    let is_since_commit = since_head.is_some() && context.has_git();
    refuse_edits(request, &plan, &edited, is_since_commit)?;
    drop(inner_rules);
    drop(lookup);
    drop(opened);
    nested.settle(&plan.paths().collect());
    let whole = layers.into_iter().rfind(|layer| layer.paths.is_all());
    let left = Left {
        index: whole.and_then(|layer| layer.base.or(layer.stored)),
        others: others.into_keys().collect(),
    };
    Ok(FilePlan {
        prepared,
        stored,
        files: plan,
        nested,
        left,
        unlike: Vec::new(),
    })
}

/// What the attempt has hidden from git, and so from the checkpoint at its end: that checkpoint says nothing of it.
struct Hidden<'a> {
    /// Paths that the target has and that git ignores now.
    paths: BTreeSet<RepoPath>,
    /// Rules that were put back since.
    rules: Option<&'a [u8]>,
}

/// Says what the run last wrote.
struct Judge<'a> {
    lookup: &'a TreeLookup<'a>,
    /// The layers; `None` where nothing is known of what one holds.
    layers: Vec<(&'a Layer, Option<(&'a StoredCheckpoint, TreeIgnores<'a>)>)>,
    /// What counts as edited that they do not cover; see [`edited_since_head`].
    since_head: Option<&'a BTreeSet<RepoPath>>,
    others: &'a BTreeMap<RepoPath, &'a RunKey>,
    hidden: &'a Hidden<'a>,
    /// Why paths count as edited that nobody edited by hand, as far as is known.
    edited: RefCell<BTreeMap<RepoPath, String>>,
}

impl<'a> Judge<'a> {
    fn new(
        repo: &'a Repo,
        lookup: &'a TreeLookup<'a>,
        (layers, since_head): (&'a [Layer], Option<&'a BTreeSet<RepoPath>>),
        others: &'a BTreeMap<RepoPath, &'a RunKey>,
        hidden: &'a Hidden<'a>,
    ) -> Result<Self> {
        let mut known = Vec::new();
        for layer in layers {
            let ignored = layer.stored.as_ref().map(|stored| {
                TreeIgnores::new(repo, lookup, stored.view())?.with_rules(hidden.rules)
            });
            let found = match ignored {
                None | Some(Err(GitError::Corrupt { .. })) => None,
                Some(ignored) => layer.stored.as_ref().zip(Some(ignored?)),
            };
            known.push((layer, found));
        }
        Ok(Self {
            lookup,
            layers: known,
            since_head,
            others,
            hidden,
            edited: RefCell::default(),
        })
    }

    /// What the run last wrote to a path. What another run changed since, and what only a damaged checkpoint knows, counts
    /// as edited.
    fn baseline(&self, path: &RepoPath) -> Result<Baseline> {
        let edited = |why: String| {
            self.edited.borrow_mut().insert(path.clone(), why);
            Ok(Baseline::Another)
        };
        if let Some(run) = self.others.get(path) {
            return edited(format!("changed by run {run}"));
        }
        let Some((layer, known)) = self
            .layers
            .iter()
            .rfind(|(layer, _)| layer.paths.matches(path))
        else {
            let is_edited = self.since_head.is_some_and(|edited| edited.contains(path));
            return Ok(if is_edited {
                Baseline::Another
            } else {
                Baseline::Unknown
            });
        };
        if layer.left.iter().any(|left| path.starts_with(left)) {
            return Ok(Baseline::Unknown);
        }
        let Some((stored, ignored)) = known else {
            let is_damaged = layer.damaged || layer.stored.is_some();
            return if is_damaged {
                edited(UNCERTAIN.to_owned())
            } else {
                Ok(Baseline::Unknown)
            };
        };
        match self.known(layer, stored, ignored, path) {
            Err(error) if error.kind == ErrorKind::Corrupt => edited(UNCERTAIN.to_owned()),
            known => known,
        }
    }

    fn known(
        &self,
        layer: &Layer,
        stored: &StoredCheckpoint,
        ignored: &TreeIgnores<'_>,
        path: &RepoPath,
    ) -> Result<Baseline> {
        if let Some(known) = LayerPart::baseline(&layer.nested, self.lookup, path)? {
            return Ok(known);
        }
        Ok(match stored.view().entry(self.lookup, path)? {
            // Which of the two was restored is not recorded: only where they agree is it known.
            entry if let Some(base) = &layer.base => {
                let committed = base.view().entry(self.lookup, path)?;
                let what = |entry: &Entry| (entry.kind, entry.oid.clone());
                let agree = committed.as_ref().map(what) == entry.as_ref().map(what);
                committed
                    .filter(|_| agree)
                    .map_or(Baseline::Unknown, Baseline::Present)
            }
            Some(entry) => Baseline::Present(entry),
            // A folder whose content is ignored by now looks empty: that is nobody's edit.
            None if stored.view().is_folder(self.lookup, path)? => Baseline::Unknown,
            // What was left out then was not examined.
            None if self.hidden.paths.contains(path) => Baseline::Unknown,
            None if ignored.says_nothing_of(path)? => Baseline::Unknown,
            None => Baseline::Absent,
        })
    }
}

/// Why a path counts as edited of which a damaged checkpoint does not say whether it is.
const UNCERTAIN: &str = "changed, by whom a damaged checkpoint does not say";

/// Of `paths`, those that count as edited where no layer covers everything, as nothing was recorded of this work tree then:
/// those that HEAD does not have as they are, and those that git is not to compare. Without git, all that are there.
fn edited_since_head(
    context: &Context,
    layers: &[Layer],
    here: &Manifest,
    paths: BTreeSet<RepoPath>,
) -> Result<Option<BTreeSet<RepoPath>>> {
    if layers.iter().any(|layer| layer.paths.is_all()) {
        return Ok(None);
    }
    let repo = context.repo()?;
    let not_compared: BTreeSet<&RepoPath> = here
        .index_extras
        .iter()
        .filter(|extra| extra.assume_unchanged || extra.skip_worktree)
        .map(|extra| &extra.path)
        .collect();
    let (mut edited, compared): (BTreeSet<_>, BTreeSet<_>) = paths
        .into_iter()
        .partition(|path| !context.has_git() || not_compared.contains(path));
    edited.retain(|path| {
        let there = path.below(repo.workdir()).symlink_metadata();
        there.is_ok_and(|there| !there.is_dir())
    });
    if context.has_git() {
        edited.extend(repo.uncommitted(&compared)?);
    }
    Ok(Some(edited))
}

/// Refuses to restore over edits that nobody decided about; `others` are those that were not made by hand, and why.
fn refuse_edits(
    request: &RestoreRequest,
    plan: &RestorePlan,
    others: &BTreeMap<RepoPath, String>,
    is_since_commit: bool,
) -> Result<()> {
    if request.edits != Edits::Refuse || plan.hand_edits.is_empty() {
        return Ok(());
    }
    let why = |path: &RepoPath| others.get(path).map_or(EDITED_BY_HAND, String::as_str);
    let reason = |path: &RepoPath| PathReason::new(path.clone(), why(path));
    let paths: Vec<PathReason> = plan.hand_edits.iter().map(reason).collect();
    let (count, them) = if paths.len() == 1 {
        ("1 file was".to_owned(), "it")
    } else {
        (format!("{} files were", paths.len()), "them")
    };
    let since = if is_since_commit {
        "the last commit".to_owned()
    } else {
        format!("the run last wrote {them}")
    };
    let message = format!(
        "{count} {} since {since}: {}; keep {them} with --edits keep, or overwrite {them} with --edits \
         discard (undo brings {them} back)",
        plan.hand_edits
            .iter()
            .map(why)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
            .join(" or "),
        listed(&paths)
    );
    let again = request.command(&["--edits", "keep"]);
    let refused = Error::new(ErrorKind::HandEdits, message)
        .paths(paths)
        .hint(again);
    Err(as_conflict(request, refused))
}

/// What a person has to settle before a rollback (B15).
fn as_conflict(request: &RestoreRequest, mut error: Error) -> Error {
    if request.kind == OperationKind::Rollback {
        error.message.insert_str(0, "Rollback failed - conflicts: ");
    }
    error
}

/// The files that this program's output went to when the target, and what the run last wrote, were captured.
fn recorded_outputs(target: &StoredCheckpoint, layers: &[Layer]) -> BTreeSet<RepoPath> {
    let layers = layers.iter().filter_map(|layer| layer.stored.as_ref());
    layers
        .chain([target])
        .flat_map(|stored| stored.manifest.outputs.iter().cloned())
        .collect()
}

/// What is there and what shall be, as far as they differ.
struct Both {
    prepared: Prepared,
    /// What the checkpoint says of this work tree.
    stored: StoredCheckpoint,
    now: Snapshot,
    target: Snapshot,
    nested: Grafts,
    /// What the target has and an ordinary capture of what is there does not take: git ignores it by now.
    hidden: BTreeSet<RepoPath>,
}

/// Captures what is there, and says where it and the checkpoint differ.
///
/// What the checkpoint holds and is ignored now would be overwritten, so it is captured too.
fn capture_both(
    context: &Context,
    lock: WorktreeLock,
    request: &NestedRequest,
    wanted: &Wanted<'_>,
) -> Result<Both> {
    let repo = context.repo()?;
    let (captured, selection) = (wanted.captured, wanted.selection);
    let mut prepared = prepare_under(context, lock, &context.capture_rules(), &BTreeSet::new())?;
    let compare = |prepared: &Prepared| -> Result<(StoredCheckpoint, Snapshot, Snapshot, Grafts)> {
        let mut nested = if wanted.of_base {
            Grafts::default()
        } else {
            grafts(context, prepared, captured, request, selection)?
        };
        let opened = prepared.capture.objects().open();
        let lookup = TreeLookup::new(&opened)?;
        let here = &prepared.capture.manifest;
        let base = if wanted.of_base {
            captured.base(repo, here)?
        } else {
            None
        };
        let Some(base) = base else {
            let (mut now, mut target) = lookup.diff(prepared.capture.view(), captured.view())?;
            nested.merge(repo, prepared, captured, (&mut now, &mut target))?;
            return Ok((captured.clone(), now, target, nested));
        };
        let (now, mut target) = lookup.diff(prepared.capture.view(), base.view())?;
        repo.as_checked_out(&lookup, captured, here, &now, &mut target)?;
        Ok((base, now, target, nested))
    };
    let (mut stored, mut now, mut target, mut nested) = compare(&prepared)?;
    let missing = target.entries.iter().filter(|(path, entry)| {
        entry.kind != EntryKind::Gitlink
            && !now.entries.contains_key(path)
            && !now.dirs.contains_key(path)
            && selection.matches(path)
            && is_there(context, path)
    });
    let also: BTreeSet<RepoPath> = missing.map(|(path, _)| path.clone()).collect();
    if !also.is_empty() {
        let Prepared {
            capture,
            nested: inside,
            lock,
            loan,
            ..
        } = prepared;
        drop((capture, inside, loan));
        prepared = prepare_under(context, lock, &context.capture_rules(), &also)?;
        (stored, now, target, nested) = compare(&prepared)?;
    }
    Ok(Both {
        prepared,
        stored,
        now,
        target,
        nested,
        hidden: also,
    })
}

/// Whether something stands at a path of the work tree.
fn is_there(context: &Context, path: &RepoPath) -> bool {
    let relative = std::path::Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
    context
        .repo()
        .is_ok_and(|repo| std::fs::symlink_metadata(repo.workdir().join(relative)).is_ok())
}

fn listed(paths: &[PathReason]) -> String {
    let mut names: Vec<String> = paths
        .iter()
        .take(5)
        .map(|reason| escape(&reason.path.to_lossy()))
        .collect();
    if paths.len() > 5 {
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// What the run last wrote to some paths.
struct Layer {
    /// `None` where the checkpoint is gone: nothing is known then.
    stored: Option<StoredCheckpoint>,
    /// Its base commit, where that may be what was restored of it.
    base: Option<StoredCheckpoint>,
    paths: Selection,
    /// What it says of nested repositories that take part.
    nested: Vec<LayerPart>,
    /// What was left as it was.
    left: Vec<RepoPath>,
    /// Whether neither the checkpoint nor any before it can be read: everything may be an edit then.
    damaged: bool,
}

/// What the run last wrote in this work tree, layer by layer.
fn baseline_layers(context: &Context, state: &State, here: &Manifest) -> Result<Vec<Layer>> {
    let repo = context.repo()?;
    let Some(worktree) = state.worktrees.get(&context.worktree_id()) else {
        return Ok(Vec::new());
    };
    let mut layers = Vec::new();
    for layer in &worktree.baseline {
        let (mut stored, mut base, mut nested) = (None, None, Vec::new());
        let checkpoint = state.checkpoint(&layer.checkpoint_id);
        let found = checkpoint
            .map(|checkpoint| load_latest(context, state, checkpoint))
            .transpose()?
            .flatten();
        let damaged = checkpoint.is_some() && found.is_none();
        if let Some((checkpoint, loaded)) = found {
            if head::is_beginning_elsewhere(context, checkpoint)? {
                base = loaded.base(repo, here)?;
            }
            nested = match LayerPart::all(repo, &loaded, &layer.left) {
                Err(error) if error.kind == ErrorKind::Corrupt => Vec::new(),
                parts => parts?,
            };
            stored = Some(loaded);
        }
        let paths = Selection::globs(&layer.paths).map_err(|error| {
            Error::new(
                ErrorKind::Corrupt,
                format!("a recorded path is no glob: {error}"),
            )
        })?;
        layers.push(Layer {
            stored,
            base,
            paths,
            nested,
            left: layer.left.clone(),
            damaged,
        });
    }
    Ok(layers)
}

fn memory_plan(
    context: &Context,
    request: &RestoreRequest,
    now: &[MemoryFile],
    stored: &StoredCheckpoint,
) -> Result<MemoryPlan> {
    let then = stored.memory(context.repo()?)?;
    let plan = match request.initiator {
        Initiator::Policy => memory::plan_after_error,
        Initiator::User => memory::plan,
    };
    let mut plan = plan(now, &then, &context.settings().memory)?;
    plan.leave(&stored.withheld_memory());
    Ok(plan)
}
