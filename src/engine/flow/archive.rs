//! Milestones that are removed are kept as files first (S13): a bundle each, from which git takes it back anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::git::checkpoint::read_back;
use crate::git::repo::ref_name;
use crate::model::checkpoint::Checkpoint;
use crate::model::hint::Hint;
use crate::model::id::CheckpointId;
use crate::model::state::State;
use crate::policy::retention::{Limits, Reasoned};

use super::export::{Format, to_file};

/// A milestone that was archived, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Archived {
    /// The checkpoint.
    pub id: CheckpointId,
    /// What makes it a milestone.
    pub reasons: Vec<String>,
    /// The bundle, absolute.
    pub path: String,
    /// How git takes it back under `refs/archived/`.
    pub hint: Hint,
}

/// What came of the milestones that are old enough.
#[derive(Debug, Default)]
pub(in crate::engine) struct Outcome {
    /// Those that are in the archive, by id.
    pub archived: BTreeMap<CheckpointId, Archived>,
    /// Those that stay where they are, because a bundle would not hold them whole.
    pub kept: Vec<Reasoned>,
}

/// The age from which milestones are archived: what is asked for, else what is configured.
pub(crate) fn age(context: &Context, limits: &Limits) -> Result<Duration> {
    let retention = &context.settings().retention;
    limits
        .max_age
        .or(retention.scheduled_max_age)
        .or(retention.max_age)
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Usage,
                "no age is configured from which milestones are archived: --max-age names one",
            )
            .hint(context.rerun(&["--max-age", "30d", "--dry-run"]))
        })
}

/// Writes the milestones into the folder and reads each back. One that is there from a prune that was cut off is taken as
/// it is, once it was read. A dry run only says where.
pub(in crate::engine) fn archive(
    context: &Context,
    state: &State,
    milestones: &[Reasoned],
    folder: &Path,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let folder = real(&context.cwd().join(folder));
    for Reasoned { id, reasons } in milestones {
        let Some(checkpoint) = state.checkpoint(id) else {
            continue;
        };
        let stored = context.repo()?.load_checkpoint(&checkpoint.commit)?;
        if stored
            .manifest
            .nested
            .iter()
            .any(|nested| nested.checkpoint.is_some())
        {
            let mut reasons = reasons.clone();
            reasons
                .push("not archived: a bundle does not hold the repositories inside it".to_owned());
            outcome.kept.push(Reasoned {
                id: id.clone(),
                reasons,
            });
            continue;
        }
        let path = write(context, checkpoint, &folder)?;
        let name = ref_name(&checkpoint.run.run_id, &checkpoint.id);
        let hint = context.placed(
            Hint::git(["fetch"])
                .arg(&path)
                .arg(format!("{name}:refs/archived/{id}")),
        );
        let path = path.to_string_lossy().into_owned();
        outcome.archived.insert(
            id.clone(),
            Archived {
                id: id.clone(),
                reasons: reasons.clone(),
                path,
                hint,
            },
        );
    }
    Ok(outcome)
}

/// A folder that may have to be made, without `..` and links on the way to it.
fn real(folder: &Path) -> PathBuf {
    let there = |at: &Path| {
        Some(
            fs::canonicalize(at)
                .ok()?
                .join(folder.strip_prefix(at).ok()?),
        )
    };
    folder
        .ancestors()
        .find_map(there)
        .unwrap_or_else(|| folder.to_owned())
}

fn write(context: &Context, checkpoint: &Checkpoint, folder: &Path) -> Result<PathBuf> {
    let run = context.store().run_dir(&checkpoint.run);
    let folder = folder.join(run.file_name().unwrap_or_default());
    let path = folder.join(format!("{}.bundle", checkpoint.id));
    if context.dry_run() {
        return Ok(path);
    }
    let name = ref_name(&checkpoint.run.run_id, &checkpoint.id);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let written = match to_file(context, checkpoint, Format::Bundle, &path, false, true) {
        Err(error) if error.kind == ErrorKind::AlreadyExists => path,
        written => written?.0,
    };
    read_back(&written, &name, &checkpoint.commit)?;
    Ok(written)
}
