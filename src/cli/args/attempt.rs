//! Arguments of `attempt`, and the evidence flags it shares with `classify`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::model::agent_record::AgentKind;
use crate::model::feedback::CheckKind;

use super::values::{duration, number};

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

    /// Subtask to list it under in the history
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

    /// File with its output (- for stdin)
    #[arg(long, value_name = "F|-")]
    pub log: Option<PathBuf>,

    /// File with its standard error
    #[arg(long, value_name = "F")]
    pub stderr: Option<PathBuf>,

    /// Agent whose output format to parse [default: auto]
    ///
    /// auto, claude, codex, gemini, opencode, qwen, copilot, aider or none.
    #[arg(long, hide_possible_values = true, value_name = "NAME", value_parser = agent_names())]
    pub agent: Option<String>,
}

/// Whose records can be named.
fn agent_names() -> PossibleValuesParser {
    let agents = AgentKind::ALL.map(AgentKind::as_str);
    PossibleValuesParser::new(["auto"].into_iter().chain(agents).chain(["none"]))
}
