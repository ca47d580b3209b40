//! Arguments of `checkpoint`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::restore::PutBackArgs;
use super::{RunName, STAGES, duration, lines, number, size};
use crate::model::checkpoint::{CheckpointType, LaneFields, StorageType};
use crate::model::selector::Selector;

/// Create, list, compare, restore, prune checkpoints.
#[derive(Args, Debug)]
pub(crate) struct CheckpointArgs {
    #[command(subcommand)]
    pub command: CheckpointCommand,
}

// Not deferred: global flags would come before the lane contract's in the help of `create`.
/// What to do with checkpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    Create(CreateArgs),
    List(ListArgs),
    Show(ShowArgs),
    Diff(DiffArgs),
    Restore(RestoreArgs),
    Prune(PruneArgs),
    Pin(PinArgs),
    Unpin(UnpinArgs),
    Verify(VerifyArgs),
    Export(ExportArgs),
}

/// Take a checkpoint.
///
/// Captures the work tree, the index, HEAD and the working memory as a hidden commit under refs/recover/.
#[derive(Args, Debug, Default)]
pub(crate) struct CreateArgs {
    /// Description of the checkpoint
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,

    /// Iteration after which it is taken
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = number::<0>, allow_negative_numbers = true)]
    pub iteration: Option<u32>,

    /// Kind of checkpoint
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    pub kind: Option<CheckpointType>,

    /// Reason: before_edit, external, risky or any other word
    ///
    /// phase and operation count as the loop's own phases and operations.
    #[arg(long, value_name = "NAME")]
    pub trigger: Option<String>,

    /// Additional storage beside the hidden commit [default: as configured]
    #[arg(long, hide_short_help = true, value_name = "HOW", value_enum)]
    pub storage: Option<StorageType>,

    /// Do nothing if nothing changed since the previous one
    #[arg(long)]
    pub if_changed: bool,

    /// Do nothing if none is due
    ///
    /// If the run's previous checkpoint is younger than [checkpoint] interval; with --trigger operation, also if fewer
    /// than every_operations such calls followed it.
    #[arg(long)]
    pub if_due: bool,

    /// Protect it from pruning
    #[arg(long)]
    pub pin: bool,

    #[command(flatten)]
    pub lane: LaneArgs,
}

/// What a lane records with a checkpoint.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Lane contract")]
pub(crate) struct LaneArgs {
    /// Stage of the lane
    #[arg(long, value_name = "S", value_parser = STAGES, hide_short_help = true)]
    pub stage: Option<String>,

    /// Status of the lane
    #[arg(long, value_name = "S", value_parser = ["ready", "in_progress", "failed", "blocked", "complete", "rolled_back", "retrying"], hide_short_help = true)]
    pub status: Option<String>,

    /// Branch the lane is based on
    #[arg(long, value_name = "B", hide_short_help = true)]
    pub base_branch: Option<String>,

    /// Free-form notes
    #[arg(long, value_name = "T", hide_short_help = true)]
    pub notes: Option<String>,

    /// Test command that was run
    #[arg(long, value_name = "C", hide_short_help = true)]
    pub test_command: Option<String>,

    /// Exit code of the test command
    #[arg(
        long,
        value_name = "N",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub exit_code: Option<i32>,

    /// HEAD of the lane
    #[arg(long, value_name = "S", hide_short_help = true)]
    pub head_sha: Option<String>,

    /// Commits of the lane
    #[arg(long, value_name = "S", num_args = 1.., hide_short_help = true)]
    pub commit_sha: Vec<String>,

    /// Branch to merge into
    #[arg(long, value_name = "B", hide_short_help = true)]
    pub target_branch: Option<String>,
}

impl From<LaneArgs> for LaneFields {
    fn from(args: LaneArgs) -> Self {
        Self {
            stage: args.stage,
            status: args.status,
            base_branch: args.base_branch,
            notes: args.notes,
            test_command: args.test_command,
            exit_code: args.exit_code,
            head_sha: args.head_sha,
            commit_shas: args.commit_sha,
            target_branch: args.target_branch,
            ..Self::default()
        }
    }
}

/// List checkpoints, oldest first.
#[derive(Args, Debug, Default)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub run: RunName,

    /// List the checkpoints of every run
    #[arg(long)]
    pub all_runs: bool,

    /// List only the newest N
    #[arg(long, value_name = "N", value_parser = lines, allow_negative_numbers = true)]
    pub limit: Option<usize>,
}

/// Show one checkpoint.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME [default: prompt on a terminal]
    #[arg(value_name = "SEL")]
    pub selector: Option<Selector>,

    /// Show the changes since the run's previous checkpoint as a patch
    #[arg(long)]
    pub patch: bool,
}

/// Compare two checkpoints, or one with the work tree.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Older checkpoint [default: prompt on a terminal; elsewhere what the run changed, from initial to latest]
    #[arg(value_name = "A")]
    pub from: Option<Selector>,

    /// Newer checkpoint [default: the work tree]
    #[arg(value_name = "B")]
    pub to: Option<Selector>,

    /// Print a patch for git apply
    #[arg(long)]
    pub patch: bool,

    /// Limit to these paths (globs)
    ///
    /// From the current folder.
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub path: Vec<String>,
}

/// Restore the files of a checkpoint.
///
/// The state of the run stays as it is. Can be undone like a rollback.
#[derive(Args, Debug)]
#[command(mut_arg("commits", |arg| arg.help("What to do about commits since [default: keep]")))]
pub(crate) struct RestoreArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME [default: prompt on a terminal]
    #[arg(value_name = "SEL")]
    pub selector: Option<Selector>,

    #[command(flatten)]
    pub files: PutBackArgs,

    /// Restore the files of another work tree's checkpoint here
    ///
    /// Files only: HEAD, the index and the working memory stay. Without it such a checkpoint is refused.
    #[arg(long)]
    pub here: bool,
}

/// Remove old checkpoints, with a reason for each.
///
/// Never removed are pinned ones, milestones, undo targets, and the initial and last good one of runs that have not
/// ended; with --archive, old milestones are kept as bundle files instead.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PruneArgs {
    /// Keep the newest N of each run
    #[arg(long, value_name = "N", value_parser = number::<0>, allow_negative_numbers = true)]
    pub keep_last: Option<u32>,

    /// Keep those younger than this
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub keep_within: Option<Duration>,

    /// Keep the last one of each of the newest N hours
    #[arg(long, value_name = "N", value_parser = number::<0>, allow_negative_numbers = true)]
    pub keep_hourly: Option<u32>,

    /// Keep the last one of each of the newest N days
    #[arg(long, value_name = "N", value_parser = number::<0>, allow_negative_numbers = true)]
    pub keep_daily: Option<u32>,

    /// Keep the last one of each of the newest N weeks
    #[arg(long, value_name = "N", value_parser = number::<0>, allow_negative_numbers = true)]
    pub keep_weekly: Option<u32>,

    /// Remove those older than this
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub max_age: Option<Duration>,

    /// Remove the oldest until at most this much is left
    ///
    /// Of what they have captured, such as 100MiB or 2GB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_total_size: Option<u64>,

    /// Remove those whose checks failed
    #[arg(long)]
    pub drop_failed: bool,

    /// Remove those whose checks passed
    #[arg(long)]
    pub drop_passed: bool,

    /// Move old milestones and pinned ones here, as bundles
    ///
    /// Those older than --max-age (else [retention] scheduled_max_age); each bundle is verified before its checkpoint is
    /// removed.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub archive: Option<PathBuf>,
}

/// Protect a checkpoint from pruning.
#[derive(Args, Debug)]
pub(crate) struct PinArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME
    #[arg(value_name = "SEL")]
    pub selector: Selector,

    /// Note to record with it
    #[arg(long, value_name = "T")]
    pub note: Option<String>,
}

/// Allow a checkpoint to be pruned again.
#[derive(Args, Debug)]
pub(crate) struct UnpinArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME
    #[arg(value_name = "SEL")]
    pub selector: Selector,
}

/// Verify that checkpoints can be restored in full.
///
/// Exits with 12 and lists what is missing.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Checkpoints to verify [default: all]
    #[arg(value_name = "SEL")]
    pub selectors: Vec<Selector>,
}

/// Export a checkpoint as a patch, a bundle or JSON.
#[derive(Args, Debug)]
#[command(
    override_usage = "recover checkpoint export [OPTIONS] SEL (--patch F|--bundle F|--format F)"
)]
#[command(group = clap::ArgGroup::new("how").required(true).args(["patch", "bundle", "format"]))]
pub(crate) struct ExportArgs {
    /// Id, prefix, @SEQ, latest, latest~N, good, initial, iteration:N or stage:NAME
    #[arg(value_name = "SEL")]
    pub selector: Selector,

    /// Write a patch for git apply (- for stdout)
    ///
    /// It applies to a clean checkout of the base commit.
    #[arg(long, value_name = "F", value_hint = clap::ValueHint::FilePath)]
    pub patch: Option<PathBuf>,

    /// Write a git bundle that git fetch can read (- for stdout)
    #[arg(long, value_name = "F", value_hint = clap::ValueHint::FilePath)]
    pub bundle: Option<PathBuf>,

    /// Write JSON with the state of every file (seed-json)
    #[arg(long, hide_possible_values = true, value_name = "FORMAT", value_parser = ["seed-json"])]
    pub format: Option<String>,

    /// Output file of --format (- for stdout)
    ///
    /// [default: in the session's folder below the state directory]
    #[arg(short, long, value_name = "F", requires = "format", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
}
