//! Which files of a run are committed, and why others are not.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::{Request, reasons};
use crate::engine::attempt::look_at::LOOKED_THROUGH;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint;
use crate::git::Repo;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::tree::TreeLookup;
use crate::model::{
    Checkpoint, CheckpointId, Entry, EntryKind, Head, Hint, ObjectId, PathReason, RepoPath, Run,
    State, Timestamp,
};
use crate::policy::restore::Selection;
use crate::policy::secrets::{has_secret, is_secret_path};

/// Why a file is left out, by its code: a new one that is in no commit.
const NEW: &str = "new";
/// One that looks like a secret.
const SECRET: &str = "secret";
/// A new one over `[accept] max_new_file`.
const LARGE: &str = "too_large";
/// A new one that `[accept] leave_out` names.
const LEAVE_OUT: &str = "leave_out";
/// One that accepting the run left out first, and that changed since.
const CHANGED: &str = "changed";
/// One that was there before the run, which let git see it.
const OLDER: &str = "ignored_before";
/// One that git ignores by now.
pub(super) const IGNORED: &str = "ignored";
/// What recover itself printed.
pub(super) const OUTPUT: &str = "output";
/// One that has a person's uncommitted changes from before the run.
pub(super) const UNCOMMITTED: &str = "uncommitted";
/// One that a rollback could not remove or replace, and that is as it was then.
const LEFT_BEHIND: &str = "left_behind";
/// The codes with what they say, and how such a file is committed.
const REASONS: [(&str, &str); 10] = [
    (
        NEW,
        "new and in no commit; --include PATH or --all takes it",
    ),
    (SECRET, "looks like a secret; only --include PATH takes it"),
    (
        LARGE,
        "new and over [accept] max_new_file; --include PATH or --all takes it",
    ),
    (
        LEAVE_OUT,
        "[accept] leave_out; only --include PATH takes it",
    ),
    (CHANGED, "changed since the run; git add takes it"),
    (
        OLDER,
        "there before the run, and ignored then; only --include PATH takes it",
    ),
    (IGNORED, "ignored by git"),
    (OUTPUT, "the output of recover itself"),
    (UNCOMMITTED, "your uncommitted changes from before the run"),
    (
        LEFT_BEHIND,
        "left by an attempt that was rolled back; only --include PATH takes it",
    ),
];

/// What the code of a path in `left_out` says in a sentence.
pub(crate) fn explained(one: &PathReason) -> &str {
    if !is_captured(one) {
        return "new and over [checkpoint] max_file_size, or excluded there; git add takes it";
    }
    let known = REASONS.iter().find(|(known, _)| *known == one.reason);
    known.map_or(&one.reason, |(_, text)| text)
}

/// Whether a file that is left out is in the checkpoint, so that it can be included. The others have the size that the
/// checkpoint noted.
pub(super) fn is_captured(one: &PathReason) -> bool {
    one.size.is_none()
}

/// Whether a person has to decide about a file that is left out for this reason.
pub(super) fn needs_decision(code: &str) -> bool {
    [NEW, SECRET, LARGE].contains(&code)
}

/// The files that accepting a run commits, and those that it leaves out.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub taken: BTreeSet<RepoPath>,
    pub left_out: Vec<PathReason>,
}

impl Choice {
    fn add(&mut self, path: RepoPath, reason: Option<&str>) {
        match reason {
            Some(reason) => self.left_out.push(PathReason::new(path, reason)),
            None => drop(self.taken.insert(path)),
        }
    }

    fn add_left_behind(&mut self, paths: BTreeSet<&RepoPath>) {
        for path in paths {
            self.add(path.clone(), Some(LEFT_BEHIND));
        }
    }
}

/// What a run did to files.
#[derive(Debug, Default)]
struct Changes {
    /// Deleted ones too.
    changed: BTreeSet<RepoPath>,
    new: BTreeSet<RepoPath>,
    /// What was committed of the first, where files are to be told from those that were there before: the content that is no
    /// more in its place.
    gone: BTreeSet<ObjectId>,
}

/// What the files of a run are chosen from.
pub(super) struct Chooser<'a> {
    context: &'a Context,
    repo: &'a Repo,
    run: &'a Run,
    request: &'a Request,
    initial: &'a StoredCheckpoint,
    good: &'a StoredCheckpoint,
    /// When the run began.
    began: Timestamp,
    lookup: TreeLookup<'a>,
    /// The checkpoints that tell what rollbacks left behind, as far as they were not removed.
    of_rollbacks: BTreeMap<&'a CheckpointId, StoredCheckpoint>,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(
        (context, state): (&'a Context, &State),
        (run, request): (&'a Run, &'a Request),
        (initial, good): (&'a StoredCheckpoint, &'a StoredCheckpoint),
        first: &Checkpoint,
    ) -> Result<Self> {
        let repo = context.repo()?;
        let ids: BTreeSet<_> = run
            .left_behind
            .iter()
            .flat_map(|left| [&left.before, &left.target])
            .collect();
        let stored = ids
            .into_iter()
            .filter_map(|id| Some((id, state.checkpoint(id)?)))
            .map(|(id, checkpoint)| Ok((id, repo.load_checkpoint(&checkpoint.commit)?)));
        Ok(Self {
            context,
            repo,
            run,
            request,
            initial,
            good,
            began: first.created_at,
            lookup: TreeLookup::stored(repo)?,
            of_rollbacks: stored.collect::<Result<_>>()?,
        })
    }

    /// What of the run's changes is committed.
    pub(super) fn changes(&self, head: &Head, notes: &mut Vec<String>) -> Result<Choice> {
        let (repo, request) = (self.repo, self.request);
        let Changes {
            mut changed,
            new,
            gone,
        } = self.files()?;
        let known = repo.known_to_git(head.commit.as_ref(), &new)?;
        for asked in &request.include {
            let is_there = new.iter().any(|path| path.starts_with(asked));
            if !is_there && !changed.contains(asked) {
                let message = format!(
                    "--include {asked}: the run made no new file there; git commit commits one of your own"
                );
                let plan = Hint::recover(["accept", "--dry-run"]).run(&self.run.key);
                return Err(Error::new(ErrorKind::Usage, message).hint(plan));
            }
        }
        changed.retain(|path| !self.is_output(path));
        // A person's own secret stays as unknown to git as it was.
        let unknown = &changed - &repo.known_to_git(head.commit.as_ref(), &changed)?;
        let (mut choice, mut left_behind) = (Choice::default(), BTreeSet::new());
        for path in changed {
            if let Some(left) = self.left_behind(&path)? {
                left_behind.insert(left);
                continue;
            }
            let is_unasked = unknown.contains(&path) && !self.is_named(&path);
            let reason = (is_unasked && self.is_secret(&path)?).then_some(SECRET);
            choice.add(path, reason);
        }
        let ignored = repo.ignored_now(&new)?;
        for path in new {
            let is_ignored = ignored.contains(&path);
            if !is_ignored && let Some(left) = self.left_behind(&path)? {
                left_behind.insert(left);
                continue;
            }
            let reason = match () {
                () if is_ignored => Some(IGNORED),
                () if self.is_named(&path) => None,
                () if self.is_output(&path) => Some(OUTPUT),
                () if self.is_secret(&path)? => {
                    if request.per_iteration && known.contains(&path) {
                        notes.push(format!(
                            "{path} looks like a secret, and is in a commit of the run"
                        ));
                    }
                    Some(SECRET)
                }
                () if known.contains(&path) => None,
                () => self.why_not_new(&path, &gone)?,
            };
            choice.add(path, reason);
        }
        choice.add_left_behind(left_behind);
        // What a checkpoint leaves out for its size is in no commit made from it; what is no file is in none of git's.
        let skipped = &self.initial.manifest.skipped;
        let was_skipped = |path: &RepoPath| skipped.iter().any(|one| one.path == *path);
        let is_file = |path: &RepoPath| {
            let found = path.below(self.context.worktree()).symlink_metadata();
            found.is_ok_and(|found| found.is_file())
        };
        let large = self
            .good
            .manifest
            .skipped
            .iter()
            .filter(|one| one.size.is_some() && !was_skipped(&one.path) && is_file(&one.path));
        choice.left_out.extend(large.map(|one| PathReason {
            reason: LARGE.to_owned(),
            ..one.clone()
        }));
        Ok(choice)
    }

    /// What of the new files that are not `committed` is committed, where the run was accepted before.
    pub(super) fn rest(&self, committed: &BTreeSet<RepoPath>) -> Result<Choice> {
        let capture = checkpoint::prepare(self.context)?.capture;
        let objects = capture.objects();
        let lookup = TreeLookup::new(&objects)?;
        let (then, now) = lookup.diff(self.good.view(), capture.view())?;
        let unlike: BTreeMap<&RepoPath, bool> = then
            .unlike(&now)
            .map(|(path, _, is)| (path, is.is_some()))
            .collect();
        let include = &self.request.include;
        let (mut choice, mut left_behind) = (Choice::default(), BTreeSet::new());
        let (mut found, mut changed) = (Vec::new(), BTreeSet::new());
        let Changes { new, gone, .. } = self.files()?;
        for path in new {
            if committed.contains(&path)
                || self.is_output(&path)
                || unlike.get(&path) == Some(&false)
            {
                continue;
            }
            found.extend(include.iter().filter(|asked| path.starts_with(asked)));
            if let Some(left) = self.left_behind(&path)? {
                left_behind.insert(left);
                continue;
            }
            let reason = match () {
                () if unlike.contains_key(&path) => {
                    if self.is_named(&path) {
                        changed.insert(path.clone());
                    }
                    Some(CHANGED)
                }
                () if self.is_named(&path) => None,
                () if self.is_secret(&path)? => Some(SECRET),
                () if self.is_included(&path) || self.request.all => {
                    self.why_not_new(&path, &gone)?
                }
                () => Some(self.why_not_new(&path, &gone)?.unwrap_or(NEW)),
            };
            choice.add(path, reason);
        }
        choice.add_left_behind(left_behind);
        if let Some(asked) = include.iter().find(|asked| !found.contains(asked)) {
            let message =
                format!("--include {asked}: no new file of the run there is still to be committed");
            let plan = Hint::recover(["accept", "--dry-run"]).run(&self.run.key);
            return Err(Error::new(ErrorKind::Usage, message).hint(plan));
        }
        if let Some(one) = changed.first() {
            let add = Hint::git(["add", "--"]).arg(one.below(Path::new("")));
            let message = "what is named changed since the run: it is not what the run made";
            return Err(Error::new(ErrorKind::HandEdits, message)
                .paths(reasons(changed, CHANGED))
                .hint(add));
        }
        Ok(choice)
    }

    /// The files that the run changed, deleted and made.
    fn files(&self) -> Result<Changes> {
        let (before, after) = self.lookup.diff(self.initial.view(), self.good.view())?;
        let is_file = |entry: &&Entry| entry.kind != EntryKind::EmptyDir;
        let (mut changes, mut was_there) = (Changes::default(), BTreeMap::new());
        for (path, was, is) in before.unlike(&after) {
            if let Some(was) = was.filter(is_file) {
                was_there.insert(path, was.oid.clone());
                changes.changed.insert(path.clone());
            } else if is.as_ref().is_some_and(is_file) {
                changes.new.insert(path.clone());
            }
        }
        let is_older = |path: &RepoPath| is_unchanged_since(self.context, path, self.began);
        if changes.new.iter().any(is_older) {
            let (head, all) = (&self.initial.manifest.head.commit, &changes.changed);
            let is_rehearsal = self.context.dry_run();
            let own = self
                .repo
                .unlike_stored(self.initial, head.as_ref(), all, is_rehearsal)?;
            was_there.retain(|path, _| !own.contains(*path));
            changes.gone = was_there.into_values().collect();
        }
        Ok(changes)
    }

    /// Why a new file is left out for what it is, unless it is asked for.
    fn why_not_new(
        &self,
        path: &RepoPath,
        gone: &BTreeSet<ObjectId>,
    ) -> Result<Option<&'static str>> {
        // Files keep their times where the folder around them is moved.
        let is_moved = || -> Result<bool> {
            let entry = self.good.view().entry(&self.lookup, path)?;
            Ok(entry.is_some_and(|entry| gone.contains(&entry.oid)))
        };
        let is_older = is_unchanged_since(self.context, path, self.began);
        Ok(match () {
            // The run's first checkpoint does not have it: git ignored it then.
            () if is_older && !is_moved()? => Some(OLDER),
            () if self.is_configured_out(path)? => Some(LEAVE_OUT),
            () if self.request.all || self.is_included(path) => None,
            () if self.is_large(path)? => Some(LARGE),
            () => None,
        })
    }

    /// Whether `--include` names this very file.
    fn is_named(&self, path: &RepoPath) -> bool {
        self.request.include.contains(path)
    }

    /// Whether `--include` names the file or a folder that it is in.
    fn is_included(&self, path: &RepoPath) -> bool {
        let mut include = self.request.include.iter();
        include.any(|asked| path.starts_with(asked))
    }

    fn is_output(&self, path: &RepoPath) -> bool {
        [self.initial, self.good]
            .iter()
            .any(|stored| stored.manifest.outputs.contains(path))
    }

    /// The path that a rollback left, where the file is at or below it, as it was left, and `--include` does not name it.
    fn left_behind(&self, path: &RepoPath) -> Result<Option<&'a RepoPath>> {
        // What is left in a folder is why the folder is left.
        let nearest = self
            .run
            .left_behind
            .iter()
            .filter(|left| path.starts_with(&left.path))
            .max_by_key(|left| &left.path);
        let Some(left) = nearest.filter(|_| !self.is_included(path)) else {
            return Ok(None);
        };
        let is = self.good.view().entry(&self.lookup, path)?;
        let is_as_in = |id: &CheckpointId| -> Result<bool> {
            let Some(stored) = self.of_rollbacks.get(id) else {
                return Ok(false);
            };
            let was = stored.view().entry(&self.lookup, path)?;
            Ok(was.is_some() && was == is)
        };
        // What the rollback went back to is the run's own.
        let is_left = !is_as_in(&left.target)?
            && (is_as_in(&left.before)? || is_unchanged_since(self.context, path, left.at));
        Ok(is_left.then_some(&left.path))
    }

    /// Whether `[accept] leave_out` names a file.
    fn is_configured_out(&self, path: &RepoPath) -> Result<bool> {
        let selection = Selection::globs(&self.context.settings().accept.leave_out)
            .map_err(|error| Error::new(ErrorKind::Config, error.to_string()))?;
        Ok(!selection.is_all() && selection.matches(path))
    }

    /// Whether a file is over `[accept] max_new_file`.
    fn is_large(&self, path: &RepoPath) -> Result<bool> {
        let size = self
            .file(path)?
            .map(|entry| self.repo.blob_size(&entry.oid))
            .transpose()?;
        Ok(size.is_some_and(|size| size > self.context.settings().accept.max_new_file))
    }

    fn is_secret(&self, path: &RepoPath) -> Result<bool> {
        if is_secret_path(path) {
            return Ok(true);
        }
        let content = self
            .file(path)?
            .map(|entry| self.repo.small_blob(&entry.oid, LOOKED_THROUGH))
            .transpose()?
            .flatten();
        Ok(content.is_some_and(|content| has_secret(&content)))
    }

    /// What the last good checkpoint has of a file; `None` for a symlink.
    fn file(&self, path: &RepoPath) -> Result<Option<Entry>> {
        let entry = self.good.view().entry(&self.lookup, path)?;
        Ok(entry.filter(|entry| entry.kind == EntryKind::File))
    }
}

/// Whether a file was not changed since then, by its inode's time, which nobody sets back.
pub(super) fn is_unchanged_since(context: &Context, path: &RepoPath, then: Timestamp) -> bool {
    let found = path.below(context.worktree()).symlink_metadata();
    found.is_ok_and(|found| found.ctime() * 1000 + found.ctime_nsec() / 1_000_000 < then.millis())
}
