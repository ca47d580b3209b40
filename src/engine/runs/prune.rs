//! Removes what `policy::retention` chose: the event first, then the references, then the objects that only they held.
//! A leftover reference is removed at the next start, leftover objects by the next prune.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::added_bytes;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::exchange::{Archived, archive, archive_age};
use crate::engine::record::{nested, seed_json, select, storage, vault};
use crate::engine::recovery;
use crate::git::WorktreeLock;
use crate::git::repo::CheckpointRef;
use crate::model::{Checkpoint, CheckpointId, EventSource, Payload, RunKey, State};
use crate::policy::retention::{Limits, Reasoned, RetentionPlan, Which, retain};
use crate::policy::text::count;
use crate::store::NewEvent;
use crate::store::views::write_views;

/// What a prune did or would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Pruned {
    /// Whether anything was removed.
    pub changed: bool,
    /// Kept, with reasons.
    pub kept: Vec<Reasoned>,
    /// Removed, with reasons.
    pub removed: Vec<Reasoned>,
    /// Milestones that were written to the archive and removed then.
    pub archived: Vec<Archived>,
    /// Bytes of the files that were removed from disk. In a dry run an estimate, and mostly far too high: the content that
    /// only those to be removed hold, not compressed, whether git has packed it or not.
    pub freed_bytes: u64,
    /// Objects whose files were removed. The rest, if any, is git's to collect: what it has packed, or what was touched
    /// less than an hour ago.
    pub objects_removed: u64,
    /// Why no object was removed, where something could not be looked through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects_left: Option<String>,
}

/// Plans and, unless it is a dry run, removes. One run's with `--run`, else every run's of this state directory. With a
/// folder as `archive`, milestones as old as the limits say go there.
pub(crate) fn prune(
    context: &Context,
    mut limits: Limits,
    folder: Option<&Path>,
) -> Result<Pruned> {
    if folder.is_some() {
        limits.archive = Some(archive_age(context, &limits)?);
    }
    let limits = &limits;
    if !context.dry_run() {
        context.check_safe_mode("removing checkpoints")?;
        recovery::recover(context)?;
    }
    let named = context.naming().run_id.is_some();
    let state = recovery::load_recovered(context)?;
    let run = named
        .then(|| select::require(context, &state))
        .transpose()?;
    let which = run.map_or(Which::All, |run| Which::Run(&run.key));
    let mut plan = decide(context, &state, which, limits)?;
    let empties = !plan.removed.is_empty() && (plan.kept.is_empty() || limits.keeps_nothing());
    let allowed = context.dry_run() || (named && context.says_yes());
    if empties && !allowed {
        let why = if plan.kept.is_empty() {
            "this would leave none"
        } else {
            "these limits keep nothing"
        };
        let removed = count(plan.removed.len(), "checkpoint");
        let message =
            format!("{why}: {removed} would be removed; --run ID --yes does it for one run");
        return Err(
            Error::new(ErrorKind::ConfirmationNeeded, message).hint(context.rerun(&["--dry-run"]))
        );
    }
    // Milestones are in the archive, and were read back, before anything is removed.
    let mut archived = BTreeMap::new();
    if let Some(folder) = folder {
        let outcome = archive(context, &state, &plan.archived, folder)?;
        archived = outcome.archived;
        plan.kept.extend(outcome.kept);
        plan.kept
            .sort_by_key(|kept| state.checkpoint(&kept.id).map(|checkpoint| checkpoint.seq));
    }
    if (plan.removed.is_empty() && archived.is_empty()) || context.dry_run() {
        let (kept, doomed) = split(&state, &plan, &archived);
        let freed_bytes = freed(context, &kept, &doomed)?;
        return Ok(Pruned {
            changed: false,
            kept: plan.kept,
            removed: plan.removed,
            archived: archived.into_values().collect(),
            freed_bytes,
            objects_removed: 0,
            objects_left: None,
        });
    }
    remove(context, which, limits, archived)
}

fn decide(
    context: &Context,
    state: &State,
    which: Which<'_>,
    limits: &Limits,
) -> Result<RetentionPlan> {
    let retention = &context.settings().retention;
    let sizes = sizes(context, state)?;
    let size = |checkpoint: &Checkpoint| sizes.get(&checkpoint.seq).copied().unwrap_or(0);
    Ok(retain(
        state,
        which,
        limits,
        retention,
        context.clock.now(),
        &size,
    ))
}

/// How much each checkpoint holds beyond the newer ones and what branches hold, by its sequence. None where all of them as a
/// whole are within `max_total_size`: then nobody need look.
fn sizes(context: &Context, state: &State) -> Result<BTreeMap<u64, u64>> {
    let captured = state
        .checkpoints
        .values()
        .map(|checkpoint| checkpoint.captured.bytes)
        .fold(0, u64::saturating_add);
    if context
        .settings()
        .retention
        .max_total_size
        .is_none_or(|limit| captured <= limit)
    {
        return Ok(BTreeMap::new());
    }
    let newest_first: Vec<&Checkpoint> = state.checkpoints.values().rev().collect();
    let sizes = added_bytes(context, &newest_first)?;
    let numbers = newest_first.iter().map(|checkpoint| checkpoint.seq);
    Ok(numbers.zip(sizes).collect())
}

/// The cleanup of a run that was accepted or closed (S13). Nobody is asked, so everything of it is never removed.
pub(crate) fn tidy_up(context: &Context, run: &RunKey) -> Result<()> {
    tidy(context, Which::Run(run))
}

/// Cleans up the runs whose retention time after their end is over, and warns of what all checkpoints take. Called whenever
/// a run ends; an error is only logged.
pub(crate) fn tidy_up_due(context: &Context) {
    if let Err(error) = tidy(context, Which::Due) {
        tracing::warn!(%error, "checkpoints of runs that are over were not tidied up");
    }
}

fn tidy(context: &Context, which: Which<'_>) -> Result<()> {
    // Nothing is removed by defaults where the project says otherwise.
    if context.is_config_left_out() {
        return Ok(());
    }
    let state = context.load()?.state;
    let limits = Limits::default();
    let plan = decide(context, &state, which, &limits)?;
    if plan.kept.is_empty() || plan.removed.is_empty() {
        return Ok(());
    }
    let done = remove(context, which, &limits, BTreeMap::new())?;
    tracing::info!(
        removed = done.removed.len(),
        kept = done.kept.len(),
        "checkpoints were tidied up"
    );
    Ok(())
}

fn remove(
    context: &Context,
    which: Which<'_>,
    limits: &Limits,
    mut archived: BTreeMap<CheckpointId, Archived>,
) -> Result<Pruned> {
    let run = which.run();
    // Decided again under the lock: what another process needs meanwhile is protected then.
    let mut ledger = context.store().lock()?;
    let mut plan = decide(context, ledger.state(), which, limits)?;
    archived.retain(|id, _| plan.archived.iter().any(|reasoned| reasoned.id == *id));
    // What became old enough only now, or is not in the archive whole, stays.
    plan.kept.extend(
        std::mem::take(&mut plan.archived)
            .into_iter()
            .filter(|one| !archived.contains_key(&one.id)),
    );
    let (_, doomed) = split(ledger.state(), &plan, &archived);
    let ids = doomed.iter().map(|gone| gone.id.clone()).collect();
    let event = NewEvent {
        run: run.cloned(),
        source: EventSource::Recover,
        payload: Payload::CheckpointsPruned { ids },
    };
    ledger.append(context.clock.now(), vec![event])?;
    seed_json::refresh_active(context, ledger.state())?;
    write_views(ledger, &run.into_iter().collect::<Vec<_>>())?;
    let repo = context.repo()?;
    let references: Vec<_> = doomed
        .iter()
        .map(|gone| CheckpointRef::name_of(&gone.run.run_id, &gone.id))
        .collect();
    let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
    repo.delete_refs(&lock, &references)?;
    nested::forget(context, repo, &doomed);
    repo.forget_ignored(doomed.iter().map(|gone| &gone.id))?;
    let patches = storage::remove_patches(context, &doomed);
    let commits: Vec<_> = doomed.into_iter().map(|gone| gone.commit).collect();
    let discarded = repo.discard_objects(&lock, &commits);
    storage::forget_sizes(context);
    vault::drop_gone(context, &context.load()?.state)?;
    Ok(Pruned {
        changed: true,
        kept: plan.kept,
        removed: plan.removed,
        archived: archived.into_values().collect(),
        freed_bytes: discarded.bytes + patches,
        objects_removed: discarded.objects,
        objects_left: discarded.left,
    })
}

/// The state's checkpoints: those that stay (of other runs as well), and those that go.
fn split(
    state: &State,
    plan: &RetentionPlan,
    archived: &BTreeMap<CheckpointId, Archived>,
) -> (Vec<Checkpoint>, Vec<Checkpoint>) {
    let removed = plan.removed.iter().map(|reasoned| &reasoned.id);
    let doomed: BTreeSet<&CheckpointId> = removed.chain(archived.keys()).collect();
    state
        .checkpoints
        .values()
        .cloned()
        .partition(|checkpoint| !doomed.contains(&checkpoint.id))
}

fn freed(context: &Context, kept: &[Checkpoint], doomed: &[Checkpoint]) -> Result<u64> {
    if doomed.is_empty() {
        return Ok(0);
    }
    let commits = |all: &[Checkpoint]| {
        all.iter()
            .map(|checkpoint| checkpoint.commit.clone())
            .collect::<Vec<_>>()
    };
    let bases = kept
        .iter()
        .chain(doomed)
        .filter_map(|checkpoint| checkpoint.base_commit.clone())
        .collect();
    Ok(context
        .repo()?
        .exclusive_bytes(&commits(doomed), &commits(kept), &bases)?)
}
