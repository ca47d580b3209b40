//! `checkpoint …`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::model::checkpoint::{CheckpointType, StorageType};
use crate::model::selector::Selector;

use super::restore::{CommitsArg, EditsArg};
use super::values::{STAGES, duration, size};

/// Create, list, inspect, compare, restore, pin, prune and export checkpoints.
#[derive(Args, Debug)]
pub struct CheckpointArgs {
    #[command(subcommand)]
    pub command: CheckpointCommand,
}

/// What to do with checkpoints.
#[derive(Debug, Subcommand)]
pub enum CheckpointCommand {
    Create(CreateArgs),
    /// List checkpoints, oldest first
    List(ListArgs),
    /// Show one checkpoint
    Show(ShowArgs),
    /// Compare two checkpoints, or one with the work tree
    Diff(DiffArgs),
    Restore(RestoreArgs),
    Prune(PruneArgs),
    /// Keep a checkpoint whatever the limits say
    Pin(PinArgs),
    /// Let the limits apply to a checkpoint again
    Unpin(UnpinArgs),
    Verify(VerifyArgs),
    Export(ExportArgs),
}

/// Capture the work tree, the index, HEAD and the working memory as a hidden commit under `refs/recover/`.
#[derive(Args, Debug, Default)]
pub struct CreateArgs {
    /// The headline
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,

    /// The iteration it is taken after
    #[arg(long, value_name = "N")]
    pub iteration: Option<u32>,

    /// What kind of moment it marks
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    pub kind: Option<TypeArg>,

    /// Why it is taken: before_edit, external, risky, phase, operation, or a word of your own
    #[arg(long, value_name = "NAME")]
    pub trigger: Option<String>,

    /// How to keep it beside the hidden commit; else as configured
    #[arg(long, value_name = "HOW", value_enum)]
    pub storage: Option<StorageArg>,

    /// Nothing when nothing changed since the run's previous checkpoint
    #[arg(long)]
    pub if_changed: bool,

    /// Nothing while the run's previous checkpoint is younger than `[checkpoint] interval`, and with --trigger operation
    /// while fewer than `every_operations` such calls came after it
    #[arg(long)]
    pub if_due: bool,

    /// Keep it whatever the limits say
    #[arg(long)]
    pub pin: bool,

    /// The lane's stage
    #[arg(long, value_name = "S", value_parser = STAGES, help_heading = "Lane contract")]
    pub stage: Option<String>,

    /// The lane's status
    #[arg(long, value_name = "S", value_parser = ["ready", "in_progress", "failed", "blocked", "complete", "rolled_back", "retrying"], help_heading = "Lane contract")]
    pub status: Option<String>,

    /// The integration branch
    #[arg(long, value_name = "B", help_heading = "Lane contract")]
    pub base_branch: Option<String>,

    /// Free-form context
    #[arg(long, value_name = "T", help_heading = "Lane contract")]
    pub notes: Option<String>,

    /// The test command that was run
    #[arg(long, value_name = "C", help_heading = "Lane contract")]
    pub test_command: Option<String>,

    /// Its exit code
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Lane contract")]
    pub exit_code: Option<i32>,

    /// HEAD of the lane
    #[arg(long, value_name = "S", help_heading = "Lane contract")]
    pub head_sha: Option<String>,

    /// Commits of the lane
    #[arg(long, value_name = "S", num_args = 1.., help_heading = "Lane contract")]
    pub commit_sha: Vec<String>,

    /// Where it is to be merged
    #[arg(long, value_name = "B", help_heading = "Lane contract")]
    pub target_branch: Option<String>,
}

/// `--type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TypeArg {
    /// A milestone
    Phase,
    /// A unit of progress
    Task,
    /// Before or after a single operation
    Operation,
}

impl From<TypeArg> for CheckpointType {
    fn from(arg: TypeArg) -> Self {
        match arg {
            TypeArg::Phase => Self::Phase,
            TypeArg::Task => Self::Task,
            TypeArg::Operation => Self::Operation,
        }
    }
}

/// `--storage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StorageArg {
    /// The hidden commit alone
    Snapshot,
    /// Also a commit on the branch
    Commit,
    /// Also a patch file against HEAD
    Patch,
}

impl From<StorageArg> for StorageType {
    fn from(arg: StorageArg) -> Self {
        match arg {
            StorageArg::Snapshot => Self::Snapshot,
            StorageArg::Commit => Self::Commit,
            StorageArg::Patch => Self::Patch,
        }
    }
}

/// List checkpoints, oldest first.
#[derive(Args, Debug, Default)]
pub struct ListArgs {
    /// Those of every run
    #[arg(long)]
    pub all_runs: bool,

    /// Only the newest N
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Show one checkpoint: its record and its files.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME; on a terminal it is asked for
    #[arg(value_name = "SEL")]
    pub selector: Option<Selector>,

    /// What it changed since the run's previous checkpoint, as a patch
    #[arg(long)]
    pub patch: bool,
}

/// Compare two checkpoints, or one with the work tree.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// The older one; on a terminal it is asked for
    #[arg(value_name = "A")]
    pub from: Option<Selector>,

    /// The newer one; without it the work tree
    #[arg(value_name = "B")]
    pub to: Option<Selector>,

    /// As a patch that `git apply` takes
    #[arg(long)]
    pub patch: bool,

    /// Only these paths (globs)
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub path: Vec<String>,
}

/// Put the files of a checkpoint back; the run's bookkeeping stays as it is. Undoable like a rollback.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME; on a terminal it is asked for
    #[arg(value_name = "SEL")]
    pub selector: Option<Selector>,

    /// Only these paths (globs)
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub path: Vec<String>,

    /// What to do about commits made since [default: keep]
    #[arg(long, value_enum)]
    pub commits: Option<CommitsArg>,

    /// What to do about paths that a person edited since the run last wrote
    #[arg(long, value_enum, default_value_t = EditsArg::Refuse)]
    pub edits: EditsArg,

    /// Put the captured index back too
    #[arg(long)]
    pub restore_index: bool,
}

/// Remove checkpoints by policy, with a reason for each. Pinned ones, milestones, undo targets, and the initial and
/// last good one of runs that have not ended are never removed; with --archive old milestones are kept as files instead.
#[derive(Args, Clone, Debug, Default)]
pub struct PruneArgs {
    /// Keep the newest N of each run
    #[arg(long, value_name = "N")]
    pub keep_last: Option<u32>,

    /// Keep what is not older than this
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub keep_within: Option<Duration>,

    /// Keep the last one of each of the newest N hours
    #[arg(long, value_name = "N")]
    pub keep_hourly: Option<u32>,

    /// Keep the last one of each of the newest N days
    #[arg(long, value_name = "N")]
    pub keep_daily: Option<u32>,

    /// Keep the last one of each of the newest N weeks
    #[arg(long, value_name = "N")]
    pub keep_weekly: Option<u32>,

    /// Remove what is older than this
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub max_age: Option<Duration>,

    /// Remove the oldest ones until the others have captured no more than this (100MiB, 2GB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_total_size: Option<u64>,

    /// Remove those whose feedback loops failed
    #[arg(long)]
    pub drop_failed: bool,

    /// Remove those whose feedback loops passed
    #[arg(long)]
    pub drop_passed: bool,

    /// Write milestones and pinned ones that are older than --max-age (else `[retention] scheduled_max_age`) into this
    /// folder as git bundles, and remove them once each was read back
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub archive: Option<PathBuf>,
}

/// Keep a checkpoint whatever the limits say.
#[derive(Args, Debug)]
pub struct PinArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME
    #[arg(value_name = "SEL")]
    pub selector: Selector,

    /// Why
    #[arg(long, value_name = "T")]
    pub note: Option<String>,
}

/// Let the limits apply to a checkpoint again.
#[derive(Args, Debug)]
pub struct UnpinArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME
    #[arg(value_name = "SEL")]
    pub selector: Selector,
}

/// Check that checkpoints can be restored in full; exit 12 names what is missing.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// Which; all without any
    #[arg(value_name = "SEL")]
    pub selectors: Vec<Selector>,
}

/// Write a checkpoint to a file that works elsewhere: a patch against its base commit, a bundle with its commit, or a
/// document with the state of every file.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("how").required(true).args(["patch", "bundle", "format"]))]
pub struct ExportArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME
    #[arg(value_name = "SEL")]
    pub selector: Selector,

    /// As a patch that `git apply` takes on a clean checkout of the base commit; - for standard output
    #[arg(long, value_name = "F", value_hint = clap::ValueHint::FilePath)]
    pub patch: Option<PathBuf>,

    /// As a git bundle from which `git fetch` takes the checkpoint in any repository; - for standard output
    #[arg(long, value_name = "F", value_hint = clap::ValueHint::FilePath)]
    pub bundle: Option<PathBuf>,

    /// As a document: seed-json is a session's checkpoint with the state of every file
    #[arg(long, value_name = "FORMAT", value_parser = ["seed-json"])]
    pub format: Option<String>,

    /// Where the document goes; - for standard output [default: the session's folder below the state directory]
    #[arg(short, long, value_name = "F", requires = "format", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Replace the file that is there
    #[arg(long)]
    pub force: bool,
}
