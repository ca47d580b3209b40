//! Arguments of the commands for loops and agents of your own: `attempt`, `hook`, `plugin`, and the evidence that `classify` takes too.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

use super::{duration, number};
use crate::engine::hook::{plan, plugin};
use crate::model::agent_record::AgentKind;
use crate::model::feedback::CheckKind;
use crate::model::hook::HookAgent;

/// Record the attempts of a loop of your own.
#[derive(Args, Debug)]
pub(crate) struct AttemptArgs {
    #[command(subcommand)]
    pub command: AttemptCommand,
}

/// What to record.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum AttemptCommand {
    Start(AttemptStartArgs),
    Pass(AttemptPassArgs),
    Fail(Box<AttemptFailArgs>),
    /// List the attempt history and stuck subtasks
    List,
}

/// Record that an attempt begins. Allowed during a cooldown.
#[derive(Args, Debug, Default)]
pub(crate) struct AttemptStartArgs {
    /// What the attempt tries
    #[arg(long, value_name = "T")]
    pub approach: Option<String>,

    /// Iteration of the attempt
    #[arg(long, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true)]
    pub iteration: Option<u32>,

    /// Subtask it counts as, in budgets and history [default: the --task]
    #[arg(long, value_name = "S")]
    pub subtask: Option<String>,
}

/// Record that the attempt passed.
///
/// Takes a good checkpoint and clears the error count.
#[derive(Args, Debug, Default)]
pub(crate) struct AttemptPassArgs {
    /// Description of its checkpoint
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,

    /// What the attempt tried
    #[arg(long, value_name = "T")]
    pub approach: Option<String>,
}

/// Record that the attempt failed.
///
/// Classifies the failure, counts it, decides what is next, and restores the working memory.
#[derive(Args, Debug, Default)]
pub(crate) struct AttemptFailArgs {
    #[command(flatten)]
    pub evidence: EvidenceArgs,

    /// What the attempt tried
    #[arg(long, value_name = "T")]
    pub approach: Option<String>,

    /// Plan number of the loop, for its events
    #[arg(long, hide_short_help = true, value_name = "N")]
    pub plan: Option<u64>,

    /// Do not restore the working memory
    #[arg(long)]
    pub no_rollback: bool,

    /// Exit with the decision: 5, 6, 7 or 8
    ///
    /// 5: retry now, 6: wait, 7: exhausted, 8: a person is needed.
    #[arg(long)]
    pub check: bool,
}

/// What is known of a failure.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct EvidenceArgs {
    /// Error message
    #[arg(long, value_name = "T")]
    pub message: Option<String>,

    /// Exit code of the command
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub exit_code: Option<i32>,

    /// Signal that ended it, by name or number (SIGKILL, 9)
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub signal: Option<String>,

    /// It ran into a time limit
    #[arg(long)]
    pub timed_out: bool,

    /// How long it ran
    #[arg(long, hide_short_help = true, value_name = "D", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Stage that failed
    #[arg(long = "loop", value_name = "STAGE", value_enum)]
    pub stage: Option<CheckKind>,

    /// Command line as it was run [default: the agent's]
    #[arg(long, value_name = "CMD")]
    pub command: Option<String>,

    /// File with its output (- for stdin)
    #[arg(long, value_name = "F|-")]
    pub log: Option<PathBuf>,

    /// File with its standard error
    #[arg(long, hide_short_help = true, value_name = "F")]
    pub stderr: Option<PathBuf>,

    /// Agent whose output format to parse [default: auto]
    ///
    /// auto, claude, codex, gemini, opencode, qwen, copilot, aider or none.
    #[arg(long, hide_possible_values = true, value_name = "NAME", value_parser = agent_names())]
    pub agent: Option<String>,
}

/// Whose records can be named.
fn agent_names() -> PossibleValuesParser {
    let agents = AgentKind::ALL.iter().map(|agent| agent.as_str());
    PossibleValuesParser::new(["auto"].into_iter().chain(agents).chain(["none"]))
}

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
    /// Show where the hook is installed and when it was last called.
    ///
    /// Codex drops hooks that nobody trusted, and Claude Code those of a folder that was never trusted; neither says so. What
    /// counts is whether calls were seen.
    ///
    /// Example: recover hook status --json
    Status,
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

impl From<PlaceArgs> for plan::Place {
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

/// Install commands, a skill and an MCP server beside the hook.
///
/// The commands /recover:undo, /recover:status and /recover:checkpoint, a skill that explains checkpoints to the agent, the entry of
/// recover mcp, and the hook of recover hook install.
#[derive(Args, Debug)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    pub command: PluginCommand,
}

/// What to do about plugins.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum PluginCommand {
    Install(PluginInstallArgs),
    Uninstall(PluginUninstallArgs),
    Status(PluginStatusArgs),
}

/// Install the plugin in the agent's settings.
///
/// Existing settings are preserved; installing twice changes nothing. A file of the plugin that you have edited is left alone.
#[derive(Args, Debug)]
pub(crate) struct PluginInstallArgs {
    /// Agent to configure
    #[arg(value_parser = plugin_agent())]
    pub agent: HookAgent,

    /// Use your own settings for all projects
    #[arg(long)]
    pub user: bool,

    /// Command that calls recover [default: its name or path]
    #[arg(long, value_name = "P")]
    pub program: Option<String>,
}

/// Remove the plugin with its hook, and nothing else.
#[derive(Args, Debug)]
pub(crate) struct PluginUninstallArgs {
    /// Agent to remove it from [default: all]
    #[arg(value_parser = plugin_agent())]
    pub agent: Option<HookAgent>,

    /// Use your own settings for all projects
    #[arg(long)]
    pub user: bool,
}

/// Show what of the plugin is installed.
#[derive(Args, Debug)]
pub(crate) struct PluginStatusArgs {
    /// Agent to show [default: all]
    #[arg(value_parser = plugin_agent())]
    pub agent: Option<HookAgent>,
}

/// Reads an agent that has a plugin.
fn plugin_agent() -> impl TypedValueParser<Value = HookAgent> {
    let words = plugin::AGENTS
        .iter()
        .filter_map(ValueEnum::to_possible_value);
    PossibleValuesParser::new(words)
        .try_map(|name| <HookAgent as ValueEnum>::from_str(&name, false))
}
