//! What a restore would do: everything that is refused is refused here.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use super::head::{HeadPlan, Left};
use super::last_written::{Hidden, LastWritten, recorded_outputs};
use super::nested::{Grafts, InnerRules, grafts};
use super::request::{BEST_EFFORT, IndexOutcome, Initiator, RestoreRequest, RestoreResult};
use super::{head, last_written};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint::prepare_under;
use crate::engine::record::lane::OwnCommits;
use crate::engine::record::memory::{self, MemoryPlan};
use crate::engine::record::storage::Prepared;
use crate::engine::record::stored::{self, note_unmatched};
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::restore::IndexPlan;
use crate::git::tree::{TreeIgnores, TreeLookup};
use crate::git::{Error as GitError, WorktreeLock};
use crate::model::{
    Checkpoint, CheckpointId, EntryKind, HeadMove, Named, ObjectId, OperationKind, PathReason,
    RepoPath, Scope, Snapshot, State,
};
use crate::policy::restore::{
    Baseline, EDITED_BY_HAND, Edits, PlanInput, RestorePlan, Selection, plan as plan_files,
};
use crate::policy::text::{escape, first_few};

/// A restore that may be carried out.
#[derive(Debug)]
pub(crate) struct Planned {
    /// What is there now, and the work tree's lock.
    pub prepared: Prepared,
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
    /// What stays of a person's restore where the checkpoint has files, until a person moves it aside.
    pub in_the_way: Vec<RepoPath>,
    /// Edits since the run last wrote them that are overwritten.
    pub edited: Vec<PathReason>,
    /// What is done to the working memory.
    pub memory: MemoryPlan,
    /// What the answer calls the folder of the working memory.
    pub memory_root: RepoPath,
    /// What is done to HEAD.
    pub head: HeadPlan,
    /// The commits that HEAD, and its branch, then has no more, newest first.
    pub commits_left: Vec<ObjectId>,
    /// What is done to the index.
    pub index: IndexPlan,
}

impl Planned {
    /// One that touches nothing yet.
    fn new(context: &Context, prepared: Prepared, stored: StoredCheckpoint, of_base: bool) -> Self {
        Self {
            prepared,
            stored,
            of_base,
            files: RestorePlan::default(),
            nested: Grafts::default(),
            left: Vec::new(),
            in_the_way: Vec::new(),
            edited: Vec::new(),
            memory: MemoryPlan::default(),
            memory_root: memory::named_root(context),
            head: HeadPlan::Stay,
            commits_left: Vec::new(),
            index: IndexPlan::default(),
        }
    }

    /// Whether nothing would be touched.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.nested.is_empty()
            && self.memory.is_empty()
            && self.head == HeadPlan::Stay
            && self.index.paths.is_empty()
    }

    /// The answer; `safety` once it was carried out.
    pub(crate) fn result(
        &self,
        target: &Checkpoint,
        safety: Option<CheckpointId>,
        verified: bool,
    ) -> RestoreResult {
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
            restored_to_iteration: target.after_iteration,
            checkpoint_id: target.id.clone(),
            storage_type: target.storage_type,
            safety_checkpoint_id: safety,
            written,
            deleted,
            kept: self.files.kept.clone(),
            edited: self.edited.clone(),
            left: self.left.clone(),
            precious: Vec::new(),
            missing: Vec::new(),
            nested: self.nested.outcomes.clone(),
            index: IndexOutcome {
                restored: self.index.paths.len(),
                kept: self.index.kept,
            },
            head: HeadMove { before, after },
            commits_left: self.commits_left.clone(),
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
    let (scope, restore_index) = (request.options.scope, request.options.restore_index);
    let run = request.run.as_ref().and_then(|key| state.run(key));
    head::refuse_elsewhere(context, request, run)?;
    let captured = repo.load_checkpoint(&target.commit)?;
    let selection = stored::selection(&request.options.paths)?;
    if scope == Scope::State && !selection.is_all() {
        return Err(Error::new(
            ErrorKind::Usage,
            "--path selects files: it has no meaning with --scope state",
        ));
    }

    let of_base = head::means_base(context, request, run)?;
    let (mut planned, last_index) = if scope.covers_files() {
        let wanted = Wanted {
            captured: &captured,
            of_base,
            selection: &selection,
        };
        file_plan(context, state, request, lock, &wanted)?
    } else {
        let prepared = prepare_under(
            context,
            lock,
            &context.capture_rules(),
            &BTreeSet::new(),
            false,
        )?;
        let planned = Planned::new(context, prepared, captured, of_base);
        (planned, Left::default())
    };
    if scope.covers_state()
        && selection.is_all()
        && !request.leaves_memory(&context.settings().rollback)
    {
        let (now, then) = (&planned.prepared.memory, planned.stored.memory(repo)?);
        let plan = match request.initiator {
            Initiator::Policy => memory::plan_after_error,
            Initiator::User => memory::plan,
        };
        planned.memory = plan(now, &then, &context.settings().memory)?;
        planned.memory.leave(&planned.stored.withheld_memory());
        memory::check(context.store(), &planned.memory)?;
    }
    let (prepared, stored) = (&planned.prepared, &planned.stored);
    if scope == Scope::All && selection.is_all() && context.has_git() {
        let now = &prepared.capture.head;
        let before_lane = of_base || head::is_before_lane(context, state, run, target, now)?;
        let whose = OwnCommits::of(context, state, run, now)?;
        let then = &stored.manifest.head;
        let switched = head::switch_back(repo, (state, run), (now, then), request);
        planned.head = if let Some(switched) = switched.filter(|_| !before_lane) {
            switched
        } else {
            let undone = request.undoes.as_ref();
            let restored = undone.and_then(|undone| state.checkpoint(undone.restored.as_ref()?));
            let request = (request, restored);
            head::plan_head(repo, &whose, now, then, request, before_lane)?
        };
        if let (HeadPlan::Move(to), Some(now)) = (&planned.head, &now.commit) {
            planned.commits_left = repo.commits_between(to.as_ref(), now)?;
        }
    }
    if context.has_git() && (restore_index || selection.is_all()) {
        let around = (&planned.head, &last_index);
        planned.index = head::plan_for_index(context, request, prepared, stored, around)?;
    }
    Ok(planned)
}

/// What a restore leaves unlike the checkpoint, as it cannot be replaced. Of a person's that is what the system does not let it
/// replace (`blocked`): everything else that stays is listed as kept; where the whole run is discarded, or everything else was
/// asked for, also what is in the way of the checkpoint's files. Of an automatic rollback it is also what could not be
/// captured first, as an attempt may have made it so. Edits by hand, and what the checkpoint left out too, are none of it.
fn left_of(
    request: &RestoreRequest,
    (files, nested): (&RestorePlan, &Grafts),
    blocked: Vec<PathReason>,
    in_the_way: &[PathReason],
) -> Vec<PathReason> {
    let is_no_repository =
        |one: &&PathReason| !nested.kept.iter().any(|kept| kept.path == one.path);
    let mut left = blocked;
    if request.initiator == Initiator::Policy {
        left.extend(files.left.iter().filter(is_no_repository).cloned());
        left.extend(nested.left.iter().cloned());
    } else if leaves_what_is_in_the_way(request) {
        left.extend_from_slice(in_the_way);
    }
    left.sort();
    left.dedup();
    left
}

/// Whether something in the way of the checkpoint's files hinders no other file from being restored.
fn leaves_what_is_in_the_way(request: &RestoreRequest) -> bool {
    request.options.best_effort || request.kind == OperationKind::Discard
}

/// What could not be captured, so that it stays, where the checkpoint has files: the outermost paths.
fn in_the_way(target: &Snapshot, files: &RestorePlan, nested: &Grafts) -> Vec<PathReason> {
    let has_files = |left: &&PathReason| {
        let mut all = target.entries.iter();
        all.any(|(path, entry)| entry.kind != EntryKind::Gitlink && path.starts_with(&left.path))
    };
    let all = nested.left.iter().chain(&files.left).filter(has_files);
    let mut outermost: Vec<PathReason> = Vec::new();
    for one in all {
        if !outermost
            .iter()
            .any(|other| one.path.starts_with(&other.path))
        {
            outermost.retain(|other| !other.path.starts_with(&one.path));
            outermost.push(one.clone());
        }
    }
    outermost
}

/// Refuses a restore that cannot replace all that it would, unless that was asked for.
fn refuse_unlike(request: &RestoreRequest, blocked: &[PathReason]) -> Result<()> {
    if blocked.is_empty() || request.options.best_effort {
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
fn refused(error: GitError) -> Error {
    let is_conflict = matches!(error, GitError::Conflict { .. });
    let mut error = Error::from(error);
    if is_conflict {
        error
            .message
            .push_str("; nothing was written, move them aside first");
    }
    error
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

/// What is done to files, and how the run left the index.
fn file_plan(
    context: &Context,
    state: &State,
    request: &RestoreRequest,
    lock: WorktreeLock,
    wanted: &Wanted<'_>,
) -> Result<(Planned, Left)> {
    let repo = context.repo()?;
    let (prepared, compared, hidden) = capture_both(context, state, lock, request, wanted)?;
    let Compared {
        stored,
        now,
        target,
        mut nested,
    } = compared;
    let here = &prepared.capture.manifest;
    head::refuse_operation(context, here, &stored.manifest)
        .map_err(|error| as_conflict(request, error))?;
    let layers = last_written::layers(context, state, here)?;
    let others = if request.kind.is_rollback() {
        stored::of_others(context, state, &request.target, request.run.as_ref())?
    } else {
        BTreeMap::new()
    };
    let left_out: BTreeSet<RepoPath> = repo
        .left_out(&context.capture_rules())
        .into_iter()
        .chain(nested.left_out())
        .collect();
    let is_concerned = |path: &&RepoPath| {
        now.entries.get(path) != target.entries.get(path)
            && wanted.selection.matches(path)
            && !left_out.iter().any(|folder| path.starts_with(folder))
    };
    let all = now.entries.keys().chain(target.entries.keys());
    let paths: BTreeSet<&RepoPath> = all.filter(is_concerned).collect();
    let (own, recorded) = (repo.own_outputs(), recorded_outputs(&stored, &layers));
    let (mut files, written) = {
        let objects = prepared.capture.objects();
        let lookup = TreeLookup::new(&objects)?;
        let hidden = Hidden {
            paths: &hidden,
            rules: request.hidden_by.as_deref(),
        };
        let written = LastWritten::of(context, &lookup, (&layers, here), &others, &hidden, &paths)?;
        let rules = Rules {
            now: TreeIgnores::new(repo, &lookup, prepared.capture.view())?,
            then: TreeIgnores::new(repo, &lookup, stored.view())?,
            inner: nested.rules(&prepared, &lookup)?,
        };
        let ignored = rules.ignored(&paths, &now, &target)?;
        let files = plan_files(&PlanInput {
            now: &now,
            target: &target,
            baseline: &|path| {
                let known = written.baselines.get(path);
                known.cloned().unwrap_or(Baseline::Unknown)
            },
            selection: wanted.selection,
            ignored: &|path, is_folder| ignored.contains(&(path.clone(), is_folder)),
            left_out: &left_out,
            is_output: &|path| {
                now.entries.contains_key(path) && (recorded.contains(path) || own.has(path))
            },
            edits: request.options.edits,
        });
        (files, written)
    };
    for kept in files
        .kept
        .iter_mut()
        .filter(|kept| kept.reason == EDITED_BY_HAND)
    {
        if let Some(why) = written.edited.get(&kept.path) {
            kept.reason.clone_from(why);
        }
    }
    refuse_edits(request, &files, &written, context.has_git())?;
    nested.settle(&files.paths().collect());
    files
        .kept
        .retain(|kept| !nested.kept.iter().any(|one| one.path == kept.path));
    files.kept.extend(nested.kept.iter().cloned());
    let blocked = repo.leave_blocked(&mut files, prepared.loan.as_ref())?;
    files.kept.extend(blocked.iter().cloned());
    let mut edited = edits_of(&files, &written);
    edited.retain(|edit| {
        let is_kept = blocked.iter().any(|one| one.path == edit.path);
        request.options.edits == Edits::Discard && !is_kept
    });
    let in_the_way = if request.initiator == Initiator::User {
        in_the_way(&target, &files, &nested)
    } else {
        Vec::new()
    };
    if leaves_what_is_in_the_way(request) {
        files.leave_in_place_of_folders();
    }
    let removed = nested.remove.iter().map(|file| file.path.join(b".git"));
    let removed: Vec<RepoPath> = removed.collect();
    repo.check_restore(&files, &removed).map_err(refused)?;
    refuse_unlike(request, &blocked)?;
    let left = left_of(request, (&files, &nested), blocked, &in_the_way);
    repo.keep_nonempty_dirs(&mut files, removed)?;
    files.kept.sort();
    let whole = layers.into_iter().rfind(|layer| layer.paths.is_all());
    let index = match before_accept(context, state, request)? {
        Some(begun) => Some(begun),
        None => whole.and_then(|layer| layer.base.or(layer.stored)),
    };
    let last_index = Left {
        index,
        others: others.into_keys().collect(),
    };
    let planned = Planned::new(context, prepared, stored, wanted.of_base);
    let planned = Planned {
        files,
        nested,
        left,
        in_the_way: in_the_way.into_iter().map(|one| one.path).collect(),
        edited,
        ..planned
    };
    Ok((planned, last_index))
}

/// What is ignored now, and what was at the checkpoint.
struct Rules<'a> {
    now: TreeIgnores<'a>,
    then: TreeIgnores<'a>,
    inner: InnerRules<'a>,
}

impl Rules<'_> {
    /// The paths without a target that either ignores, each with the outermost of its folders that is ignored; `true` for a
    /// folder.
    fn ignored(
        &self,
        paths: &BTreeSet<&RepoPath>,
        now: &Snapshot,
        target: &Snapshot,
    ) -> Result<BTreeSet<(RepoPath, bool)>> {
        let mut found = BTreeSet::new();
        for path in paths
            .iter()
            .filter(|path| !target.entries.contains_key(**path))
        {
            let entry = now.entries.get(*path);
            let is_folder = entry.is_some_and(|entry| entry.kind == EntryKind::EmptyDir);
            if !self.ignore(path, is_folder)? {
                continue;
            }
            found.insert(((*path).clone(), is_folder));
            for folder in path.ancestors().map(|folder| (folder, true)) {
                if found.contains(&folder) || self.ignore(&folder.0, true)? {
                    found.insert(folder);
                    break;
                }
            }
        }
        Ok(found)
    }

    fn ignore(&self, path: &RepoPath, is_folder: bool) -> Result<bool> {
        match self.inner.ignore(path, is_folder)? {
            Some(ignored) => Ok(ignored),
            None => Ok(self.now.has(path, is_folder)? || self.then.has(path, is_folder)?),
        }
    }
}

/// The edits that a plan would overwrite, and who made each.
fn edits_of(plan: &RestorePlan, written: &LastWritten) -> Vec<PathReason> {
    let reason = |path: &RepoPath| {
        let why = written.edited.get(path);
        PathReason::new(path.clone(), why.map_or(EDITED_BY_HAND, String::as_str))
    };
    plan.hand_edits.iter().map(reason).collect()
}

/// Refuses to restore over edits that nobody decided about.
fn refuse_edits(
    request: &RestoreRequest,
    plan: &RestorePlan,
    written: &LastWritten,
    has_git: bool,
) -> Result<()> {
    if request.options.edits != Edits::Refuse || plan.hand_edits.is_empty() {
        return Ok(());
    }
    let paths = edits_of(plan, written);
    let (count, them) = if paths.len() == 1 {
        ("1 file was".to_owned(), "it")
    } else {
        (format!("{} files were", paths.len()), "them")
    };
    let since = if written.is_since_head && has_git {
        "the last commit".to_owned()
    } else {
        format!("the run last wrote {them}")
    };
    let message = format!(
        "{count} {} since {since}: {}; keep {them} with --edits keep, or overwrite {them} with --edits \
         discard (undo brings {them} back)",
        paths
            .iter()
            .map(|one| one.reason.as_str())
            .sorted()
            .dedup()
            .format(" or "),
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

/// What is there and what shall be, as far as they differ.
struct Compared {
    /// What the checkpoint says of this work tree.
    stored: StoredCheckpoint,
    now: Snapshot,
    target: Snapshot,
    nested: Grafts,
}

/// Captures what is there, and says where it and the checkpoint differ; with what the checkpoint has, or the operation that is
/// taken back has made, and an ordinary capture does not take, as git ignores it by now: it would be overwritten, or stay
/// without a word, so it is captured too.
fn capture_both(
    context: &Context,
    state: &State,
    lock: WorktreeLock,
    request: &RestoreRequest,
    wanted: &Wanted<'_>,
) -> Result<(Prepared, Compared, BTreeSet<RepoPath>)> {
    let rules = context.capture_rules();
    let prepared = prepare_under(context, lock, &rules, &BTreeSet::new(), false)?;
    note_unmatched(context, &request.options.paths, || {
        let objects = prepared.capture.objects();
        let lookup = TreeLookup::new(&objects)?;
        let captured = wanted.captured.view().snapshot(&lookup)?;
        Ok([prepared.capture.view().snapshot(&lookup)?, captured])
    })?;
    let compared = compare(context, request, wanted, &prepared)?;
    let Compared { now, target, .. } = &compared;
    let missing = |then: &Snapshot| -> BTreeSet<RepoPath> {
        let missing = then.entries.iter().filter(|(path, entry)| {
            entry.kind != EntryKind::Gitlink
                && !now.entries.contains_key(path)
                && !now.dirs.contains_key(path)
                && wanted.selection.matches(path)
                && path.below(context.worktree()).symlink_metadata().is_ok()
        });
        missing.map(|(path, _)| path.clone()).collect()
    };
    let mut hidden = missing(target);
    if let Some(undone) = undone(context, state, request)? {
        let objects = prepared.capture.objects();
        let lookup = TreeLookup::new(&objects)?;
        let (_, then) = lookup.diff(prepared.capture.view(), undone.view())?;
        hidden.extend(missing(&then));
    }
    if hidden.is_empty() {
        return Ok((prepared, compared, hidden));
    }
    let (lock, nested) = prepared.into_locks();
    drop(nested);
    let prepared = prepare_under(context, lock, &rules, &hidden, false)?;
    let compared = compare(context, request, wanted, &prepared)?;
    Ok((prepared, compared, hidden))
}

/// What the operation that is taken back had restored, where that can be read.
fn undone(
    context: &Context,
    state: &State,
    request: &RestoreRequest,
) -> Result<Option<StoredCheckpoint>> {
    let restored = request.undoes.as_ref().and_then(|of| of.restored.as_ref());
    let checkpoint = restored.and_then(|id| state.checkpoint(id));
    Ok(checkpoint
        .map(|one| stored::load_undamaged(context.repo()?, one))
        .transpose()?
        .flatten())
}

/// Where an accept is taken back, what its run began with: beside the entries of what it committed, accepting put back those
/// of the index as it was then.
fn before_accept(
    context: &Context,
    state: &State,
    request: &RestoreRequest,
) -> Result<Option<StoredCheckpoint>> {
    let accept = request.undoes.as_ref();
    let accept = accept.filter(|undone| {
        request.kind == OperationKind::Undo && undone.kind == OperationKind::Accept
    });
    let run = accept.and_then(|undone| undone.run.as_ref());
    let begun = run
        .and_then(|run| state.initial(run))
        .and_then(Named::kept)
        .filter(|begun| begun.worktree == context.worktree_id());
    Ok(begun
        .map(|one| stored::load_undamaged(context.repo()?, one))
        .transpose()?
        .flatten())
}

fn compare(
    context: &Context,
    request: &RestoreRequest,
    wanted: &Wanted<'_>,
    prepared: &Prepared,
) -> Result<Compared> {
    let (repo, captured) = (context.repo()?, wanted.captured);
    let here = &prepared.capture.manifest;
    let base = if wanted.of_base {
        captured.base(repo, here)?
    } else {
        None
    };
    let mut nested = if wanted.of_base {
        Grafts::default()
    } else {
        grafts(context, prepared, captured, request, wanted.selection)?
    };
    // What is opened from here on has the trees of nested repositories too.
    let objects = prepared.capture.objects();
    let lookup = TreeLookup::new(&objects)?;
    let stored = base.as_ref().unwrap_or(captured);
    let (mut now, mut target) = lookup.diff(prepared.capture.view(), stored.view())?;
    if base.is_some() {
        repo.as_checked_out(&lookup, captured, here, &now, &mut target)?;
    } else {
        nested.merge(repo, prepared, captured, (&mut now, &mut target))?;
    }
    Ok(Compared {
        stored: stored.clone(),
        now,
        target,
        nested,
    })
}

fn listed(paths: &[PathReason]) -> String {
    let names = paths.iter().map(|one| escape(&one.path.to_lossy()));
    first_few(names, 5, |_| "…".to_owned())
}
