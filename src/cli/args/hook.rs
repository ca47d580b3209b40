//! Arguments of `hook`.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::engine::hook::install::Place;
use crate::model::hook::HookAgent;

use super::values::duration;

/// Let an agent or git take checkpoints.
///
/// Before edits, risky commands and external calls, and at the end of a turn. Each agent session is a run of its own (claude-SESSION), unless --run or RECOVER_RUN_ID names one. A turn that ends
/// with an error is recorded as by `recover attempt fail`. aider has no hook API; use `recover run`.
#[derive(Args, Debug)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub command: HookCommand,
}

/// What to do about hooks.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum HookCommand {
    Print(HookPrintArgs),
    Install(HookInstallArgs),
    Uninstall(HookUninstallArgs),
    Status(HookStatusArgs),
    Run(HookRunArgs),
}

/// Print the settings to copy.
#[derive(Args, Debug)]
pub(crate) struct HookPrintArgs {
    /// Agent to configure
    #[arg(value_enum)]
    pub agent: HookAgent,

    /// Command that calls recover [default: its name or path]
    #[arg(long, value_name = "P")]
    pub program: Option<String>,
}

/// Install the hook in the agent's settings or in git's hooks.
///
/// Existing settings are preserved; installing twice changes nothing.
#[derive(Args, Debug)]
pub(crate) struct HookInstallArgs {
    /// Agent to configure
    #[arg(value_enum)]
    pub agent: HookAgent,

    #[command(flatten)]
    pub place: PlaceArgs,

    /// Command that calls recover [default: its name or path]
    #[arg(long, value_name = "P")]
    pub program: Option<String>,
}

/// Remove the hook, and nothing else.
#[derive(Args, Debug)]
pub(crate) struct HookUninstallArgs {
    /// Agent to remove it from [default: all]
    #[arg(value_enum)]
    pub agent: Option<HookAgent>,

    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Show where the hook is installed and when it was last called.
///
/// Codex drops hooks that nobody trusted, and Claude Code those of a folder that was never trusted; neither says so. What
/// counts is whether calls were seen.
///
/// Example: recover hook status --json
#[derive(Args, Debug)]
pub(crate) struct HookStatusArgs {}

/// Where the settings are.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct PlaceArgs {
    /// Use your own settings of this project (Claude Code)
    ///
    /// They are not committed.
    #[arg(long)]
    pub local: bool,

    /// Use your own settings for all projects
    #[arg(long, conflicts_with = "local")]
    pub user: bool,
}

impl From<PlaceArgs> for Place {
    fn from(args: PlaceArgs) -> Self {
        match args {
            PlaceArgs { user: true, .. } => Self::User,
            PlaceArgs { local: true, .. } => Self::Local,
            PlaceArgs { .. } => Self::Project,
        }
    }
}

/// Handle one hook event, read as JSON from stdin.
///
/// Always exits with 0. Prints nothing on stdout (without --json), so that no agent takes it for an answer; an error is one line on stderr.
#[derive(Args, Debug)]
pub(crate) struct HookRunArgs {
    /// Agent that calls
    #[arg(value_enum)]
    pub agent: HookAgent,

    /// Name of git's hook (pre-rebase, pre-push)
    ///
    /// Agents send theirs on stdin.
    #[arg(value_name = "EVENT")]
    pub event: Option<String>,

    /// Time limit
    ///
    /// Six times as long for the first checkpoint of a session.
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "10s")]
    pub deadline: Duration,
}
