//! Commands that look, and those around them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::Shell;

use super::attempt::EvidenceArgs;
use super::values::{Wait, duration};

/// Whether and when another attempt is allowed.
#[derive(Args, Debug, Default)]
pub struct RetryStatusArgs {
    /// Exit 0 (now), 6 (wait), 7 (exhausted) or 8 (a person is needed)
    #[arg(long)]
    pub check: bool,

    /// Sleep until a retry is allowed (at most DUR, then exit 9)
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub wait: Option<Wait>,

    /// Forget the run's failures and its cooldown
    #[arg(long, conflicts_with = "wait")]
    pub reset: bool,
}

/// Where the run stands, why it failed, and how to go on.
#[derive(Args, Debug, Default)]
pub struct StatusArgs {
    /// Show it again whenever it changes, until a signal comes
    #[arg(long)]
    pub watch: bool,
}

/// What has happened, oldest first.
#[derive(Args, Debug, Default)]
pub struct LogArgs {
    /// Only the newest N events
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Then tell what happens as it happens, until a signal comes
    #[arg(long)]
    pub follow: bool,
}

/// Tell what went wrong, what was tried and what to do now, with the run's whole story.
///
/// Markdown, one HTML file that needs nothing else, or JSON. An escalated or failed run has its report in report.md
/// beside its logs already.
#[derive(Args, Debug, Default)]
pub struct ReportArgs {
    /// The form; default: what the name after -o ends with, else md
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,

    /// Only the attempts of this subtask
    #[arg(long, value_name = "S")]
    pub subtask: Option<String>,

    /// Write it to this file, whole or not at all; - for standard output
    #[arg(short, long, value_name = "F", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// What a report is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Markdown.
    Md,
    /// One HTML file with everything in it.
    Html,
    /// The JSON document.
    Json,
}

/// Write a commented `.ultraplan/recover.toml` with every key and its default.
#[derive(Args, Debug, Default)]
pub struct InitArgs {
    /// Replace the file that is there
    #[arg(long)]
    pub force: bool,
}

/// Show the configuration that holds here.
#[derive(Args, Debug, Default)]
pub struct ConfigArgs {
    /// Where each value comes from
    #[arg(long)]
    pub origins: bool,
}

/// Find problems of the state directory, of checkpoints and of operations that were cut off.
#[derive(Args, Debug, Default)]
pub struct DoctorArgs {
    /// Mend what can be mended
    #[arg(long)]
    pub repair: bool,

    /// Make the ledger again, where it is lost or damaged or the project was moved or copied, from the checkpoints and what can be read of it; the old one is kept aside
    #[arg(long)]
    pub rebuild: bool,
}

/// Say why something failed, from its evidence; touches no state.
#[derive(Args, Debug, Default)]
pub struct ClassifyArgs {
    #[command(flatten)]
    pub evidence: EvidenceArgs,

    /// Its standard output
    #[arg(long, value_name = "F", conflicts_with = "log")]
    pub stdout: Option<PathBuf>,

    /// The command line as it was run
    #[arg(long, value_name = "CMD")]
    pub command: Option<String>,

    /// The deadline that was set
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub deadline: Option<Duration>,

    /// Also the rules that matched and lost
    #[arg(long)]
    pub explain: bool,
}

/// Print what a shell's startup file needs for completion.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Print the JSON Schema of what a command answers with --json; without a command that of any answer.
#[derive(Args, Debug, Default)]
pub struct SchemaArgs {
    /// The command (checkpoint create)
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Write the man pages, one a command, into a folder.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The folder
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
