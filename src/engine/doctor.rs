//! Finds what is wrong, and repairs what can be.
//!
//! Whether checkpoints can be restored in full.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::durable::{Lack, lack};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::hook;
use crate::engine::hook::status::HookStatus;
use crate::engine::record::stored::mark_suspect;
use crate::engine::record::{git_state, liveness, nested, seed_json, select};
use crate::engine::recovery::{self, lost, rebuild};
use crate::git::repo::CheckpointRef;
use crate::git::{Error as GitError, Repo, WorktreeLock};
use crate::model::checkpoint::{DAMAGED, UNDAMAGED};
use crate::model::{Checkpoint, CheckpointId, Payload, RepositoryState, Selector};
use crate::policy::text::count;
use crate::store::views::rewrite_views;

pub(crate) use crate::engine::recovery::rebuild::RebuildReport;

/// What was found and repaired.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "doctor")]
pub(crate) struct Report {
    /// What is wrong still.
    pub problems: Vec<Problem>,
    /// What was repaired.
    pub repaired: Vec<String>,
    /// The hooks of agents and git that are installed, and whether they are called.
    pub hooks: Vec<HookStatus>,
    /// What became of a ledger that was to be rebuilt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<RebuildReport>,
}

impl Report {
    fn error(
        &mut self,
        code: &'static str,
        path: impl AsRef<Path>,
        message: impl Into<String>,
        repairable: bool,
    ) {
        self.problems.push(Problem {
            code,
            severity: "error",
            path: path.as_ref().to_string_lossy().into_owned(),
            message: message.into(),
            repairable,
        });
    }
}

/// The code of a folder of ours on a file system that is full (exit 14).
pub(crate) const NO_SPACE: &str = "no_space";
/// The code of a folder of ours that cannot be written (exit 13).
pub(crate) const READ_ONLY: &str = "read_only";
/// The code of a ledger that a newer version wrote (exit 15).
pub(crate) const NEWER_LEDGER: &str = "newer_ledger";

/// Something wrong.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// A fixed word.
    pub code: &'static str,
    /// `error` or `warning`.
    #[schemars(extend("enum" = ["error", "warning"]))]
    pub severity: &'static str,
    /// The file, reference or checkpoint it is about.
    pub path: String,
    /// A sentence.
    pub message: String,
    /// Whether `--repair` repairs it.
    pub repairable: bool,
}

/// Looks; with `repair` mends first, with `rebuild` makes the ledger again before that (in a dry run only says how).
pub(crate) fn doctor(context: &Context, repair: bool, rebuild: bool) -> Result<Report> {
    let mut report = Report::default();
    if rebuild {
        let made = rebuild::rebuild(context)?;
        if made.changed && !context.dry_run() {
            report.repaired.push(format!(
                "rebuilt the ledger: {}, {}, {}",
                count(made.runs, "run"),
                count(made.attempts, "attempt"),
                count(made.checkpoints, "checkpoint")
            ));
            recovery::recover_into(context, &mut report.repaired)?;
        }
        report.rebuilt = Some(made);
    }
    repository(context, &mut report)?;
    if context.unusable().is_some() {
        // Everything else is about what is in it.
        return Ok(report);
    }
    locks(context, repair, &mut report)?;
    look_for_room(context, &mut report)?;
    if let Some(left) = context.left_by_another() {
        let message = format!(
            "{} belongs to another user (uid {}), as what sudo leaves does: {}",
            left.path.display(),
            left.owner,
            left.hint(context.cwd())
        );
        report.error("foreign_owner", &left.path, message, false);
    }
    let store = context.store();
    let ledger = store.ledger_path();
    if let Err(error) = look_at_copies(context, repair, &mut report) {
        return corrupt(report, &ledger, error);
    }
    // Every line, not only those behind the cached fold.
    if let Err(error) = store
        .read_lines(0)
        .and_then(|_| store.load_for_writing())
        .map_err(Error::from)
    {
        if error.kind != ErrorKind::ForeignState || repair {
            return corrupt(report, &ledger, error);
        }
        let message = format!("{error}: recover trust --state");
        report.error("foreign_state", &ledger, message, false);
    }
    let lost = rebuild::unrecorded(context)?;
    if lost > 0 && !repair {
        let message = format!(
            "{lost} checkpoints are there and no ledger: recover doctor --rebuild brings it back"
        );
        report.error("lost_ledger", ledger, message, false);
    }
    if let Some(place) = rebuild::recorded_at(context, &context.load()?.state) {
        let message = format!(
            "recorded at {}: recover doctor --rebuild takes its runs over to here",
            place.display()
        );
        report.error("moved_project", context.worktree(), message, false);
    }
    index(context, repair, &mut report)?;
    if repair {
        clean_up(context, &mut report)?;
    }
    for run in &context.load()?.state.runs {
        if let Some(message) = lost::still_running(context, run) {
            report.problems.push(Problem {
                code: "left_running",
                severity: "warning",
                path: run.worktree.to_string(),
                message,
                repairable: run.worktree == context.worktree_id(),
            });
        }
    }
    if let Some(unfinished) = liveness::unfinished_operation(context)? {
        let message = format!("{unfinished} was interrupted");
        report.error("cut_off", context.worktree(), message, true);
    }
    if context.has_private() && !repair {
        let message = "checkpoints were taken before this folder was a git repository: any other command takes them over";
        report.error("private_checkpoints", context.worktree(), message, true);
    } else {
        checkpoints(context, repair, &mut report)?;
    }
    let state = context.load()?.state;
    for lock in git_state::all(context)? {
        let (message, repairable) = git_state::advice(context, &state, &lock)?;
        report.error("git_lock", &lock.path, message, repairable);
    }
    report.hooks = hook::status::installed(context)?;
    Ok(report)
}

/// Finishes what was cut off, writes the views again, removes what was left over.
fn clean_up(context: &Context, report: &mut Report) -> Result<()> {
    recovery::recover_into(context, &mut report.repaired)?;
    if context.store().exists() {
        let guard = context.store().lock()?;
        seed_json::refresh_active(context, guard.state())?;
        let mut written: BTreeSet<_> = rewrite_views(guard)?.into_iter().collect();
        written.extend(context.store().repair_ignore()?);
        report.repaired.extend(
            written
                .iter()
                .map(|view| format!("wrote {} again", view.display())),
        );
    }
    let mut count = context
        .store()
        .root()
        .reap_below(&context.store().private_dir());
    if context.has_git() {
        let repo = context.repo()?;
        count += repo.reap();
        // Who has the lock is at work there.
        if let Ok(lock) = WorktreeLock::acquire(repo, Duration::ZERO)
            && let Err(error) = repo.clear_quarantine(&lock)
        {
            let place = repo.git_dir().join("recover/quarantine");
            let error = Error::from(error);
            let message = format!("what was left there cannot be removed: {error}");
            report.error("quarantine", place, message, false);
        }
        stale_locks(repo, report)?;
    }
    if count > 0 {
        report.repaired.push(format!(
            "removed {count} temporary files that were left over"
        ));
    }
    Ok(())
}

/// A repository that cannot be used, or is not the one that checkpoints were recorded in.
fn repository(context: &Context, report: &mut Report) -> Result<()> {
    let code = match context.repository_state()? {
        RepositoryState::Ok => return Ok(()),
        RepositoryState::Bare => "repository_bare",
        RepositoryState::Elsewhere => "repository_elsewhere",
        RepositoryState::Missing => "repository_missing",
        RepositoryState::Replaced => "repository_replaced",
        RepositoryState::Unsupported => "repository_unsupported",
    };
    let repairable = context.lost_vault().is_some()
        || context
            .unusable()
            .is_some_and(|unusable| unusable.repair().is_some());
    let message = context.repository_problem()?.unwrap_or_default();
    report.error(code, context.worktree(), message, repairable);
    Ok(())
}

/// Locks of git's that a `recover` left which is dead: git does not work until they are gone.
fn locks(context: &Context, repair: bool, report: &mut Report) -> Result<()> {
    if !context.has_git() {
        return Ok(());
    }
    let repo = context.repo()?;
    if repair {
        let removed = repo.remove_left_over_locks(context.lock_timeout())?;
        report.repaired.extend(
            removed
                .iter()
                .map(|lock| format!("removed {}", lock.display())),
        );
        // What is left then is seen at the end: the repair takes locks of its own.
        return Ok(());
    }
    stale_locks(repo, report)
}

fn stale_locks(repo: &Repo, report: &mut Report) -> Result<()> {
    for lock in repo.left_over_locks()? {
        let message = "stale lock of git's, left by a recover process that was killed: git commands fail until it is \
        removed";
        report.error("stale_lock", lock, message, true);
    }
    Ok(())
}

/// An index that git cannot read, as a loss of power leaves it: the latest checkpoint of the work tree has one.
fn index(context: &Context, repair: bool, report: &mut Report) -> Result<()> {
    if !context.has_git() {
        return Ok(());
    }
    let repo = context.repo()?;
    let Err(GitError::Corrupt(what)) = repo.check_index() else {
        return Ok(());
    };
    let state = context.load()?.state;
    if repair {
        report.repaired.extend(git_state::recover(context, &state)?);
    }
    let here = state
        .checkpoints
        .values()
        .rev()
        .filter(|checkpoint| checkpoint.worktree == context.worktree_id());
    let whole = here.map(|checkpoint| (checkpoint, repo.load_checkpoint(&checkpoint.commit)));
    let found = whole
        .into_iter()
        .find_map(|(checkpoint, stored)| Some((checkpoint, stored.ok()?)));
    let path = repo.git_dir().join("index");
    match found {
        Some((checkpoint, stored)) if repair => {
            let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
            repo.restore_index(&lock, &stored, context.lock_timeout())?;
            report.repaired.push(format!(
                "{}: replaced by the index of {} ({what})",
                path.display(),
                checkpoint.id
            ));
        }
        Some((checkpoint, _)) => {
            let message = format!(
                "{what}: recover doctor --repair replaces it by the index of {}",
                checkpoint.id
            );
            report.error("damaged_index", path, message, true);
        }
        None => {
            let message =
                format!("{what}: remove the file, and git reset makes it again from HEAD");
            report.error("damaged_index", path, message, false);
        }
    }
    Ok(())
}

/// Folders of ours where nothing more can be written: everything that is recorded now would fail.
fn look_for_room(context: &Context, report: &mut Report) -> Result<()> {
    let state = context.store().private_dir();
    let mut folders = BTreeSet::from_iter(existing(&state));
    if context.has_git() {
        folders.extend(existing(context.repo()?.common_dir()));
    }
    for folder in folders {
        let (code, what) =
            match lack(&folder).with_context(|| format!("cannot look at {}", folder.display()))? {
                None => continue,
                Some(Lack::Space) => (NO_SPACE, "no space is left for"),
                Some(Lack::Permission) => (READ_ONLY, "nothing can be written in"),
            };
        let message = format!("{what} {}: nothing can be recorded", folder.display());
        report.error(code, folder, message, false);
    }
    Ok(())
}

/// The folder, or the nearest one above it that there is.
fn existing(folder: &Path) -> Option<PathBuf> {
    folder
        .ancestors()
        .find(|above| above.is_dir())
        .map(Path::to_owned)
}

/// What makes every other look pointless.
fn corrupt(mut report: Report, ledger: &Path, error: Error) -> Result<Report> {
    match error.kind {
        ErrorKind::Newer => report.error(NEWER_LEDGER, ledger, error.to_string(), false),
        ErrorKind::Corrupt => {
            let way = "recover doctor --rebuild keeps it aside and brings back what can be read";
            report.error("corrupt_ledger", ledger, format!("{error}; {way}"), false);
        }
        _ => return Err(error),
    }
    Ok(report)
}

/// The ledger and its second copy, where one of them makes up for what is wrong with the other.
fn look_at_copies(context: &Context, repair: bool, report: &mut Report) -> Result<()> {
    let store = context.store();
    let flaws = if repair {
        store.repair()
    } else {
        store.flaws()
    }?;
    for (path, message) in flaws {
        if repair {
            report
                .repaired
                .push(format!("{}: {message}", path.display()));
        } else {
            let message = format!("{message}: recover doctor --repair repairs it");
            report.error("damaged_ledger", path, message, true);
        }
    }
    Ok(())
}

/// Checkpoints without reference or objects. A reference whose commit is still there can be set again.
fn checkpoints(context: &Context, repair: bool, report: &mut Report) -> Result<()> {
    let state = context.load()?.state;
    if !context.has_git() && state.checkpoints.is_empty() {
        return Ok(());
    }
    let repo = context.repo()?;
    let (refs, unreadable) = repo.list_refs()?;
    for name in unreadable {
        let message = format!("{name} cannot be read");
        report.error("broken_reference", &name, message, false);
    }
    for checkpoint in state.checkpoints.values() {
        let name = CheckpointRef::name_of(&checkpoint.run.run_id, &checkpoint.id);
        let stored = repo.load_checkpoint(&checkpoint.commit);
        let found = refs.iter().find(|reference| reference.name == name);
        let repairable = found.is_none() && stored.is_ok();
        if repairable && repair {
            let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
            repo.set_ref(&lock, &name, &checkpoint.commit)?;
            report
                .repaired
                .push(format!("set the reference of {} again", checkpoint.id));
            continue;
        }
        let (code, message) = match found {
            None if !repairable && (repair || checkpoint.damaged) => {
                let why = "it has no reference, and its commit is gone";
                damaged(context, repair, report, checkpoint, why)?;
                continue;
            }
            None => (
                "missing_reference",
                format!("{} has no reference", checkpoint.id),
            ),
            Some(found) if found.commit != checkpoint.commit => (
                "moved_reference",
                format!("{name} does not name the commit of {}", checkpoint.id),
            ),
            Some(_) => match stored {
                Ok(_) if checkpoint.damaged && repair => {
                    if verify(context, &[Selector::Id(checkpoint.id.clone().into())])?
                        .problems
                        .is_empty()
                    {
                        label(context, checkpoint, UNDAMAGED)?;
                        report
                            .repaired
                            .push(format!("{} is {UNDAMAGED}", checkpoint.id));
                    }
                    continue;
                }
                Ok(_) => continue,
                Err(error) => {
                    damaged(context, repair, report, checkpoint, &error.to_string())?;
                    continue;
                }
            },
        };
        let repairable = repairable || found.is_none();
        report.error(code, checkpoint.id.as_str(), message, repairable);
    }
    // Reading every object takes too long to do it each time.
    if repo.is_damage_known() {
        for found in verify(context, &[])?.problems {
            let state = context.load()?.state;
            let checkpoint = state.checkpoint(&found.checkpoint_id);
            let id = found.checkpoint_id.as_str();
            let is_new = report.problems.iter().all(|known| known.path != id)
                && !report.repaired.iter().any(|done| done.contains(id));
            if let Some(checkpoint) = checkpoint.filter(|_| is_new) {
                damaged(context, repair, report, checkpoint, &found.message)?;
            }
        }
    }
    Ok(())
}

/// A checkpoint that cannot be restored in full. It hinders no other: the repair marks it, and a marked one is only
/// mentioned.
fn damaged(
    context: &Context,
    repair: bool,
    report: &mut Report,
    checkpoint: &Checkpoint,
    why: &str,
) -> Result<()> {
    let id = checkpoint.id.to_string();
    let is_marked = checkpoint.damaged;
    if repair && !is_marked {
        label(context, checkpoint, DAMAGED)?;
        report
            .repaired
            .push(format!("marked {id} as damaged: {why}"));
    } else {
        report.problems.push(Problem {
            code: "damaged_checkpoint",
            severity: if is_marked { "warning" } else { "error" },
            message: format!("{id}: {why}"),
            path: id,
            repairable: !is_marked,
        });
    }
    Ok(())
}

fn label(context: &Context, checkpoint: &Checkpoint, label: &str) -> Result<()> {
    let (checkpoint_id, label) = (checkpoint.id.clone(), label.to_owned());
    context.record(
        &checkpoint.run,
        vec![Payload::CheckpointLabelled {
            checkpoint_id,
            label,
        }],
    )
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VerifyReport {
    /// How many checkpoints were read.
    pub checked: usize,
    /// What is missing or damaged.
    pub problems: Vec<VerifyProblem>,
}

/// Something missing or damaged.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "damage")]
pub(crate) struct VerifyProblem {
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// What is wrong with it.
    pub message: String,
}

/// Reads every object of the named checkpoints; of all without any name.
pub(crate) fn verify(context: &Context, selectors: &[Selector]) -> Result<VerifyReport> {
    let state = recovery::load_recovered(context)?;
    let chosen: Vec<&Checkpoint> = if selectors.is_empty() {
        state.checkpoints.values().collect()
    } else {
        selectors
            .iter()
            .map(|selector| select::checkpoint(context, &state, selector))
            .collect::<Result<_>>()?
    };
    let mut problems = Vec::new();
    if !chosen.is_empty() {
        let repo = context.repo()?;
        for checkpoint in &chosen {
            let found = repo.load_checkpoint(&checkpoint.commit).and_then(|stored| {
                let mut problems = stored.verify(repo)?;
                problems.extend(nested::verify(context, repo, &stored)?);
                Ok(problems)
            });
            let messages = match found {
                Ok(messages) => messages,
                // What cannot be read now may be whole.
                Err(error @ (GitError::Io { .. } | GitError::Git { .. })) => {
                    return Err(error.into());
                }
                Err(error) => vec![error.to_string()],
            };
            let named = |message| VerifyProblem {
                checkpoint_id: checkpoint.id.clone(),
                message,
            };
            problems.extend(messages.into_iter().map(named));
        }
    }
    if !problems.is_empty() {
        mark_suspect(context.repo()?);
    } else if selectors.is_empty() && context.has_git() {
        context.repo()?.end_damage();
    }
    Ok(VerifyReport {
        checked: chosen.len(),
        problems,
    })
}
