//! `hook …`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::engine::hook::install::Place;
use crate::model::hook::HookAgent;

use super::values::duration;

/// Let an agent, or git, take checkpoints by itself: before edits, risky commands and calls to the outside, and at its end.
///
/// Every session of an agent is a run of its own (claude-SESSION), unless --run or RECOVER_RUN_ID names one. A turn that
/// ends by an error is recorded as a failure, like `recover attempt fail` does. aider has no hooks: `recover run` does for
/// it what can be done.
#[derive(Args, Debug)]
pub struct HookArgs {
    #[command(subcommand)]
    pub command: HookCommand,
}

/// What to do about hooks.
#[derive(Debug, Subcommand)]
pub enum HookCommand {
    Print(HookPrintArgs),
    Install(HookInstallArgs),
    Uninstall(HookUninstallArgs),
    Run(HookRunArgs),
}

/// Print the settings, to be copied.
#[derive(Args, Debug)]
pub struct HookPrintArgs {
    /// Whose
    #[arg(value_enum)]
    pub agent: AgentArg,

    /// How recover is to be called; default: by its name, or by its path where it is not on PATH
    #[arg(long, value_name = "P")]
    pub program: Option<String>,
}

/// Put the hook into the agent's settings or into git's hooks. All else in the files stays; twice is once.
#[derive(Args, Debug)]
pub struct HookInstallArgs {
    /// Whose
    #[arg(value_enum)]
    pub agent: AgentArg,

    #[command(flatten)]
    pub place: PlaceArgs,

    /// How recover is to be called; default: by its name, or by its path where it is not on PATH
    #[arg(long, value_name = "P")]
    pub program: Option<String>,
}

/// Take the hook out again, and nothing else.
#[derive(Args, Debug)]
pub struct HookUninstallArgs {
    /// Whose; all without any
    #[arg(value_enum)]
    pub agent: Option<AgentArg>,

    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Where the settings are.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct PlaceArgs {
    /// In your own settings of this project, which are not committed (Claude Code)
    #[arg(long)]
    pub local: bool,

    /// In your own settings, for all projects
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

/// What the settings call: reads one event as JSON on stdin, does what is due, and ends with 0 whatever happens.
///
/// Nothing is printed on stdout (without --json), so that no agent takes it for an answer, and what goes wrong is one line
/// on stderr.
#[derive(Args, Debug)]
pub struct HookRunArgs {
    /// Who calls
    #[arg(value_enum)]
    pub agent: AgentArg,

    /// git's hook (pre-rebase, pre-push); agents tell theirs on stdin
    #[arg(value_name = "EVENT")]
    pub event: Option<String>,

    /// Give up after this long; the first checkpoint of a session may take six times as long
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "10s")]
    pub deadline: Duration,
}

/// Who calls the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AgentArg {
    /// Claude Code: .claude/settings.json
    Claude,
    /// Codex: .codex/hooks.json
    Codex,
    /// Gemini CLI: .gemini/settings.json
    Gemini,
    /// opencode: .opencode/plugins/recover.js
    Opencode,
    /// git: pre-rebase and pre-push
    Git,
}

impl From<AgentArg> for HookAgent {
    fn from(arg: AgentArg) -> Self {
        match arg {
            AgentArg::Claude => Self::Claude,
            AgentArg::Codex => Self::Codex,
            AgentArg::Gemini => Self::Gemini,
            AgentArg::Opencode => Self::Opencode,
            AgentArg::Git => Self::Git,
        }
    }
}
