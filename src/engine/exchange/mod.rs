//! Checkpoints as files that work elsewhere: a patch for `git apply`, a bundle for `git fetch`.
//!
//! Milestones that are removed are kept as files first (S13): a bundle each, from which git takes it back anywhere.
//!
//! `recover checkpoint export`: a checkpoint as a file, or on standard output.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use import::{Imported, ImportedFile, import};
pub(crate) use views::{KeptAside, Synced, sync};

use crate::durable::{reap, sync_dir, temporary_prefix};
use crate::engine::base::context::plain_path;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint::lock;
use crate::engine::record::remote_consent::plain_blobs_of;
use crate::engine::record::storage::patch_of;
use crate::engine::record::{seed_json, select};
use crate::engine::recovery;
use crate::git::Repo;
use crate::git::checkpoint::Unbundled;
use crate::git::remote::Filter;
use crate::git::repo::CheckpointRef;
use crate::model::{Checkpoint, CheckpointId, Hint, ObjectId, PathReason, Selector, State};
use crate::policy::retention::{Limits, Reasoned};

pub(crate) mod import;
pub(crate) mod views;

/// What kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum Format {
    /// From the base commit to the checkpoint's content, for `git apply`.
    Patch,
    /// The checkpoint's commit with all it needs, for `git fetch`.
    Bundle,
    /// The record with the state of every file, in the state recovery's own format (S11).
    SeedJson,
}

/// Writes the file at `path`, whole or not at all. One that is there is replaced only with `force`. Nothing is written in
/// a dry run. Returns the absolute path, and what stays on this machine because git stores it through a filter; nothing does
/// in a `copy` for this machine.
pub(crate) fn to_file(
    context: &Context,
    checkpoint: &Checkpoint,
    format: Format,
    path: &Path,
    force: bool,
    copy: bool,
) -> Result<(PathBuf, Vec<PathReason>)> {
    let path = plain(&context.cwd().join(path))?;
    if !path.starts_with(context.store().dir()) {
        context.check_writes("writing an export")?;
    }
    let there = path.symlink_metadata();
    if there.as_ref().is_ok_and(fs::Metadata::is_dir) {
        let message = format!("{} is a folder", path.display());
        return Err(Error::new(ErrorKind::Usage, message));
    }
    if there.is_ok() && !force {
        let message = format!("{} already exists: --force overwrites it", path.display());
        let hint = context.rerun(&["--force"]);
        return Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint));
    }
    let repo = checked(context, checkpoint)?;
    if context.dry_run() {
        return Ok((path, Vec::new()));
    }
    let failed = |error: io::Error| Error::cannot("write", &path, error);
    let folder = path.parent().unwrap_or(Path::new("/"));
    reap(folder);
    let prefix = temporary_prefix();
    let temporary = tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(failed)?;
    let mut out = BufWriter::new(temporary);
    let withheld = write(context, repo, checkpoint, (format, copy), &mut out)?;
    let temporary = out
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    temporary.as_file().sync_all().map_err(failed)?;
    let moved = if force {
        temporary.persist(&path)
    } else {
        temporary.persist_noclobber(&path)
    };
    moved.map_err(|error| failed(error.error))?;
    sync_dir(folder).map_err(failed)?;
    Ok((path, withheld))
}

/// The path without `..` and links in its folder, which must be there.
fn plain(path: &Path) -> Result<PathBuf> {
    let Some(name) = path.file_name() else {
        let message = format!("{} is a folder", path.display());
        return Err(Error::new(ErrorKind::Usage, message));
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let folder = fs::canonicalize(folder).with_context(|| {
        format!(
            "cannot write {}: its folder cannot be found",
            path.display()
        )
    })?;
    Ok(folder.join(name))
}

/// Writes it to a stream, a standard output say. Returns what stays on this machine.
fn to_stream(
    context: &Context,
    checkpoint: &Checkpoint,
    format: Format,
    out: &mut dyn Write,
) -> Result<Vec<PathReason>> {
    let repo = checked(context, checkpoint)?;
    let withheld = write(context, repo, checkpoint, (format, false), out)?;
    out.flush().context("cannot write the export")?;
    Ok(withheld)
}

/// The repository, once everything that the checkpoint holds was read.
fn checked<'a>(context: &'a Context, checkpoint: &Checkpoint) -> Result<&'a Repo> {
    let repo = context.repo()?;
    let problems = repo.load_checkpoint(&checkpoint.commit)?.verify(repo)?;
    let Some(first) = problems.first() else {
        return Ok(repo);
    };
    let message = format!("{} is damaged: {first}", checkpoint.id);
    Err(Error::new(ErrorKind::Corrupt, message).hint(Hint::recover(["checkpoint", "verify"])))
}

/// Where a session's checkpoint is written that goes nowhere else: its folder is made unless it is a dry run.
fn session_file(context: &Context, checkpoint: &Checkpoint) -> Result<PathBuf> {
    let state = context.load()?.state;
    let session = state
        .run(&checkpoint.run)
        .map_or(checkpoint.run.run_id.as_str(), |run| run.session.as_str());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let session = session.replace(|c| !is_plain(c), "_");
    let folder = context.store().private_dir().join("checkpoints");
    let folder = folder.join(format!("session_{session}"));
    if !context.dry_run() {
        context.create_state_dir(&folder)?;
    }
    Ok(folder.join(format!("{}.json", checkpoint.id)))
}

fn write(
    context: &Context,
    repo: &Repo,
    checkpoint: &Checkpoint,
    (format, copy): (Format, bool),
    out: &mut dyn Write,
) -> Result<Vec<PathReason>> {
    let state = context.load()?.state;
    let plain = if copy {
        None
    } else {
        plain_blobs_of(context, &state, &checkpoint.run)?
    };
    match format {
        Format::SeedJson => {
            let (document, withheld) =
                seed_json::document(context, &state, checkpoint, &plain.unwrap_or_default())?;
            let written =
                serde_json::to_writer_pretty(&mut *out, &document).map_err(io::Error::from);
            written
                .and_then(|()| out.write_all(b"\n"))
                .context("cannot write the export")?;
            Ok(withheld)
        }
        Format::Patch => patch_of(repo, checkpoint, &plain.unwrap_or_default(), out),
        Format::Bundle => {
            let name = CheckpointRef::name_of(&checkpoint.run.run_id, &checkpoint.id);
            let mut withheld = Vec::new();
            let mut commit = checkpoint.commit.clone();
            if plain.is_some() {
                let filter = Filter {
                    max_object: u64::MAX,
                    untracked: true,
                    plain,
                    whole: true,
                    keep_base: true,
                    previous: None,
                };
                let message = repo.load_checkpoint(&commit)?.message;
                let sent = repo.write_outgoing(&lock(context)?, &commit, &message, &filter)?;
                if !sent.withheld.is_empty() {
                    (commit, withheld) = (sent.commit, sent.withheld);
                }
            }
            repo.write_bundle(&name, &commit, out)?;
            Ok(withheld)
        }
    }
}

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
pub(in crate::engine) fn archive_age(context: &Context, limits: &Limits) -> Result<Duration> {
    let retention = &context.settings().retention;
    let age = limits
        .max_age
        .or(retention.scheduled_max_age)
        .or(retention.max_age);
    age.ok_or_else(|| {
        let message =
            "no age is configured from which milestones are archived: --max-age names one";
        Error::new(ErrorKind::Usage, message).hint(context.rerun(&[
            "--max-age",
            "30d",
            "--dry-run",
        ]))
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
    let folder = plain_path(&context.cwd().join(folder));
    for Reasoned { id, reasons } in milestones {
        let Some(checkpoint) = state.checkpoint(id) else {
            continue;
        };
        let stored = context.repo()?.load_checkpoint(&checkpoint.commit)?;
        let mut nested = stored.manifest.nested.iter();
        if nested.any(|nested| nested.checkpoint.is_some()) {
            let why = "not archived: a bundle does not hold the repositories inside it";
            outcome.kept.push(Reasoned {
                id: id.clone(),
                reasons: [reasons.as_slice(), &[why.to_owned()]].concat(),
            });
            continue;
        }
        let path = write_bundle(context, checkpoint, &folder)?;
        let name = CheckpointRef::name_of(&checkpoint.run.run_id, &checkpoint.id);
        let fetch = Hint::git(["fetch"])
            .arg(&path)
            .arg(format!("{name}:refs/archived/{id}"));
        let archived = Archived {
            id: id.clone(),
            reasons: reasons.clone(),
            path: path.to_string_lossy().into_owned(),
            hint: context.placed(fetch),
        };
        outcome.archived.insert(id.clone(), archived);
    }
    Ok(outcome)
}

fn write_bundle(context: &Context, checkpoint: &Checkpoint, folder: &Path) -> Result<PathBuf> {
    let run = context.store().run_dir(&checkpoint.run);
    let folder = folder.join(run.file_name().unwrap_or_default());
    let path = folder.join(format!("{}.bundle", checkpoint.id));
    if context.dry_run() {
        return Ok(path);
    }
    let name = CheckpointRef::name_of(&checkpoint.run.run_id, &checkpoint.id);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let written = match to_file(context, checkpoint, Format::Bundle, &path, false, true) {
        Err(error) if error.kind == ErrorKind::AlreadyExists => path,
        written => written?.0,
    };
    Unbundled::verify(&written, &name, &checkpoint.commit)?;
    Ok(written)
}

/// What is exported, and where to.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub selector: Selector,
    pub format: Format,
    /// `-` is standard output; `None` a view in the session's folder.
    pub path: Option<PathBuf>,
    /// Whether a file that is there is replaced.
    pub force: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Exported {
    checkpoint_id: CheckpointId,
    format: Format,
    base_commit: Option<ObjectId>,
    changed: bool,
    /// `null` where it went to standard output.
    pub path: Option<String>,
    /// What stays on this machine, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<PathReason>,
}

impl Request {
    /// Whether it goes to standard output.
    pub(crate) fn is_stream(&self) -> bool {
        self.path
            .as_ref()
            .is_some_and(|path| path.as_os_str() == "-")
    }

    /// Writes it; a dry run only says where.
    pub(crate) fn carry_out(&self, context: &Context, out: &mut dyn Write) -> Result<Exported> {
        let state = recovery::load_recovered(context)?;
        let checkpoint = select::checkpoint(context, &state, &self.selector)?;
        let (format, is_dry) = (self.format, context.dry_run());
        let (path, withheld) = if self.is_stream() {
            let written = (!is_dry).then(|| to_stream(context, checkpoint, format, out));
            (None, written.transpose()?.unwrap_or_default())
        } else if let Some(path) = &self.path {
            let force = self.force || context.says_yes();
            let (path, withheld) = to_file(context, checkpoint, format, path, force, false)?;
            (Some(path), withheld)
        } else {
            // What is written in a place of our own is a view: it is written anew.
            let path = session_file(context, checkpoint)?;
            let written = (!is_dry)
                .then(|| to_file(context, checkpoint, format, &path, true, false))
                .transpose()?;
            let (path, withheld) = written.unwrap_or((path, Vec::new()));
            (Some(path), withheld)
        };
        Ok(Exported {
            checkpoint_id: checkpoint.id.clone(),
            format: self.format,
            base_commit: checkpoint.base_commit.clone(),
            changed: !context.dry_run() && path.is_some(),
            path: path.map(|path| path.to_string_lossy().into_owned()),
            withheld,
        })
    }
}
