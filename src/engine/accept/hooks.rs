//! The user's hooks around a commit, as `git commit` runs them.
//!
//! What hooks took away of files that are none of the commit: other uncommitted work.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::Context as _;

use super::choice::is_unchanged_since;
use super::reasons;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint;
use crate::engine::record::stored::words_back;
use crate::git::Repo;
use crate::git::program::{Held, Saved, Staging};
use crate::git::restore::Expect;
use crate::git::tree::TreeLookup;
use crate::model::{Checkpoint, Hint, ObjectId, RepoPath, RunKey};
use crate::policy::restore::{Baseline, Edits, PlanInput, Selection, plan};
use crate::process::{Program, Show, Supervised};

/// Those that run before a commit is made.
const BEFORE: [&str; 3] = ["pre-commit", "prepare-commit-msg", "commit-msg"];

/// Whether one of the hooks that run before a commit is there.
pub(super) fn are_there(context: &Context) -> Result<bool> {
    BEFORE.iter().try_fold(false, |any, name| {
        Ok(any || hook_of(context, name)?.is_some())
    })
}

/// A commit that is about to be made.
pub(super) struct Commit<'a, 'r> {
    pub context: &'a Context,
    pub key: &'a RunKey,
    /// What is staged for it.
    pub staging: &'a Staging<'r>,
    /// The files of the work tree before any hook ran, where they are what is committed.
    pub saved: Option<&'a Saved>,
    /// Those that were edited since, of which the work tree has something else than what is committed.
    pub edits: &'a Saved,
    /// The paths that are committed as the run left them, or as a hook formats that.
    pub taken: &'a BTreeSet<RepoPath>,
    /// The work tree before any hook ran.
    pub as_is: &'a Checkpoint,
    /// The commit that the first of the new ones comes on top of.
    pub base: Option<&'a ObjectId>,
    /// What its parent holds.
    pub before: &'a Held,
    pub parent: Option<&'a ObjectId>,
}

impl Commit<'_, '_> {
    /// Runs the hooks with this message; the message as they leave it. What they change of the files is staged and in the work
    /// tree afterwards.
    ///
    /// # Errors
    /// One refuses also what it changed, takes out of the commit what it was to hold, or adds what it was not to (13). Edits
    /// that it changed are as before then.
    pub(super) fn run(&self, message: &str) -> Result<String> {
        let done = self.run_all(message);
        if done.is_err() {
            self.edits.put_back()?;
        }
        done
    }

    fn run_all(&self, message: &str) -> Result<String> {
        let Self {
            context, staging, ..
        } = *self;
        let environment = staging.hook_environment(self.parent)?;
        let meant = staging.held()?;
        let [pre_commit, prepare_message, check_message] = BEFORE;
        if let Err(error) = run(context, pre_commit, &[], &environment) {
            if error.kind != ErrorKind::NotVerified || self.stage_changed()?.is_empty() {
                return Err(error);
            }
            // It refused because it had to change something, as formatters do: a person stages that and commits again.
            run(context, pre_commit, &[], &environment)?;
        }
        self.stage_changed()?;
        self.refuse_other(pre_commit, &meant)?;
        let text = staging.clean(message)?;
        staging.write_message(&text)?;
        let file = staging.message_file().into_os_string();
        for (name, arguments) in [
            (prepare_message, vec![file.clone(), "message".into()]),
            (check_message, vec![file.clone()]),
        ] {
            run(context, name, &arguments, &environment)?;
            self.refuse_other(name, &meant)?;
        }
        // What a hook formatted in the index alone.
        if let Some(saved) = self.saved {
            let (held, changed) = (staging.held()?, saved.changed()?);
            let formatted = meant.unlike(&held).into_iter();
            let formatted = formatted
                .filter(|path| saved.has(path) && held.has(path) && !changed.contains(path));
            staging.check_out(formatted.collect::<Vec<_>>().iter())?;
        }
        let text = staging.clean(&staging.read_message()?)?;
        match text.trim() {
            "" => Err(Error::new(
                ErrorKind::NotVerified,
                "a hook left the commit without a message",
            )),
            _ => Ok(text),
        }
    }

    /// Stages what hooks changed in the work tree; what that is.
    fn stage_changed(&self) -> Result<BTreeSet<RepoPath>> {
        let changed = changed(self.saved)?;
        self.staging.add(&changed)?;
        Ok(changed)
    }

    /// Refuses where a hook made another commit of it than one of what was meant and of what the hook itself formatted or made.
    fn refuse_other(&self, hook: &str, meant: &Held) -> Result<()> {
        let held = self.staging.held()?;
        let (out, added) = (self.taken_out(meant, &held)?, self.added_to(meant, &held)?);
        let refused = |message: String, paths, reason: &str| {
            let reason = format!("{reason} the commit by the hook {hook}");
            Error::new(ErrorKind::NotVerified, message).paths(reasons(paths, &reason))
        };
        if !out.is_empty() {
            let message =
                format!("the hook {hook} takes changes out of the commit; nothing was changed");
            return Err(refused(message, out, "taken out of"));
        }
        if added.is_empty() {
            return Ok(());
        }
        if !added.iter().all(|path| self.edits.has(path)) {
            let message = format!(
                "the hook {hook} adds to the commit what is left out of it or uncommitted; nothing was changed: commit, ignore \
                 or move these files first"
            );
            return Err(refused(message, added, "added to"));
        }
        let back = Hint::recover(words_back("good", &added))
            .args(["--edits", "discard"])
            .run(self.key);
        let message = format!(
            "the hook {hook} adds to the commit what was edited since the run; nothing was changed: restore these files to the \
             last good checkpoint, accept, then restore your edits from the checkpoint that the first restore names"
        );
        Err(refused(message, added, "added to").hint(back))
    }

    /// What a hook left out of what the commit was to hold: what is again as the parent has it. Only a formatter may undo what
    /// was no more than blanks and line ends, as long as something is left to commit.
    fn taken_out(&self, meant: &Held, held: &Held) -> Result<BTreeSet<RepoPath>> {
        let changed = changed(self.saved)?;
        let is_empty = self.before.unlike(held).is_empty();
        let repo = self.context.repo()?;
        let mut out = BTreeSet::new();
        for path in meant.unlike(held) {
            let place = path.below(self.context.worktree());
            let is_there = || place.symlink_metadata().is_ok();
            let is_gone = meant.has(&path) && !held.has(&path) && is_there();
            let is_as_before = held.is_same(self.before, &path);
            let is_formatted = || {
                let may_be = changed.contains(&path) && !is_empty;
                Ok::<_, Error>(may_be && meant.is_formatting(self.before, repo, &path)?)
            };
            if is_gone || is_as_before && !is_formatted()? {
                out.insert(path);
            }
        }
        Ok(out)
    }

    /// What a hook added that was there before it, and is none of the commit: files that are left out, and uncommitted work. Of
    /// a file that was edited since, that is the file as it is, not what the hook made of the committed version alone.
    fn added_to(&self, meant: &Held, held: &Held) -> Result<BTreeSet<RepoPath>> {
        let others = &meant.unlike(held) - self.taken;
        if others.is_empty() {
            return Ok(others);
        }
        let repo = self.context.repo()?;
        let stored = repo.load_checkpoint(&self.as_is.commit)?;
        let mut added = repo.unlike_stored(&stored, self.base, &others, false)?;
        let skipped = &stored.manifest.skipped;
        added.retain(|path| !skipped.iter().any(|one| path.starts_with(&one.path)));
        // What is ignored, or left out of checkpoints, shows by its time that no hook made it.
        let is_older = |path: &&RepoPath| {
            !self.before.has(path) && is_unchanged_since(self.context, path, self.as_is.created_at)
        };
        added.extend(others.iter().filter(is_older).cloned());
        let there = self.staging.as_in_work_tree(self.base, &added)?;
        added.retain(|path| !self.edits.has(path) || held.is_same(&there, path));
        Ok(added)
    }
}

/// What hooks changed in the work tree.
fn changed(saved: Option<&Saved>) -> Result<BTreeSet<RepoPath>> {
    Ok(saved.map_or_else(|| Ok(BTreeSet::new()), Saved::changed)?)
}

/// The hook of this name; git, too, passes over one that may not be executed.
fn hook_of(context: &Context, name: &str) -> Result<Option<PathBuf>> {
    let hook = context.repo()?.hooks_dir()?.join(name);
    let is_run = hook
        .metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    Ok(is_run.then_some(hook))
}

/// Runs a hook, where there is one; what it prints goes to stderr.
///
/// # Errors
/// It ends with another code than 0 (13), or a signal came meanwhile.
pub(super) fn run(
    context: &Context,
    name: &str,
    arguments: &[OsString],
    environment: &[(OsString, OsString)],
) -> Result<()> {
    let Some(hook) = hook_of(context, name)? else {
        return Ok(());
    };
    let argv = std::iter::once(hook.into_os_string())
        .chain(arguments.iter().cloned())
        .collect();
    let is_set = |name: &OsString| environment.iter().any(|(set, _)| set == name);
    let supervised = Supervised {
        env_set: environment.to_vec(),
        env_remove: Repo::misleading_variables()
            .into_iter()
            .filter(|name| !is_set(name))
            .collect(),
        show: Show::PassthroughStderr,
        grace: context.settings().runner.grace,
        ..Supervised::new(Program::Argv(argv), context.worktree())
    };
    let exit = supervised
        .run(&context.interrupts, |_| Ok(()))
        .with_context(|| format!("cannot run the hook {name}"))?;
    if let Some(signal) = exit.cancelled {
        let message = format!("interrupted while the hook {name} ran; nothing was changed");
        return Err(Error::interrupted(signal, message));
    }
    let why = match (&exit.spawn_error, exit.exit_code) {
        (None, Some(0)) => return Ok(()),
        (Some(error), _) => error.message.clone(),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => exit.signal.unwrap_or_default(),
    };
    Err(Error::new(
        ErrorKind::NotVerified,
        format!("the hook {name} refused the commit ({why})"),
    ))
}

/// Restores what a checkpoint has and is gone by now, or is as HEAD has it. Anything else was written meanwhile: it stays, and
/// so do new files.
pub(super) fn give_back(context: &Context, before: &Checkpoint) -> Result<()> {
    let repo = context.repo()?;
    let stored = repo.load_checkpoint(&before.commit)?;
    let prepared = checkpoint::prepare(context)?;
    let plan = {
        let objects = prepared.capture.objects();
        let lookup = TreeLookup::new(&objects)?;
        let (now, target) = lookup.diff(prepared.capture.view(), stored.view())?;
        let head = stored.base(repo, &prepared.capture.manifest)?;
        let there: BTreeSet<RepoPath> = now.entries.keys().cloned().collect();
        // As neither HEAD has it nor the checkpoint.
        let mut others = BTreeSet::new();
        for path in repo.uncommitted(&there)? {
            let Some(entry) = now.entries.get(&path) else {
                continue;
            };
            // As HEAD has it, while the index has something else.
            let committed = head.as_ref().map(|head| head.view().entry(&lookup, &path));
            let committed = committed.transpose()?.flatten();
            if committed.is_none_or(|committed| committed.oid != entry.oid) {
                others.insert(path);
            }
        }
        plan(&PlanInput {
            now: &now,
            target: &target,
            baseline: &|path| {
                if others.contains(path) {
                    Baseline::Another
                } else {
                    Baseline::Unknown
                }
            },
            selection: &Selection::all(),
            // Nothing is deleted.
            ignored: &|_, _| true,
            left_out: &repo
                .left_out(&context.capture_rules())
                .into_iter()
                .collect(),
            is_output: &|_| false,
            edits: Edits::Keep,
        })
    };
    repo.check_restore(&plan, &[])?;
    let (lock, _nested) = prepared.into_locks();
    let restored = repo.execute_restore(&lock, &plan, Expect::Captured, &|| false)?;
    repo.set_last_modes(&lock, &restored)?;
    Ok(())
}
