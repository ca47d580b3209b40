//! `attempt …`, and the evidence flags it shares with `classify`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::model::failure::LoopKind;

use super::values::duration;

/// Record attempts of a loop that runs its own commands: budgets, cooldown, checkpoints and decisions as for `run`.
#[derive(Args, Debug)]
pub struct AttemptArgs {
    #[command(subcommand)]
    pub command: AttemptCommand,
}

/// What to record.
#[derive(Debug, Subcommand)]
pub enum AttemptCommand {
    Start(AttemptStartArgs),
    Pass(AttemptPassArgs),
    Fail(Box<AttemptFailArgs>),
    /// The history, with what is stuck
    List,
}

/// An attempt begins. Allowed during a cooldown: it only records.
#[derive(Args, Debug, Default)]
pub struct AttemptStartArgs {
    /// What it tries
    #[arg(long, value_name = "T")]
    pub approach: Option<String>,

    /// Its iteration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub iteration: Option<u32>,

    /// What it is booked on in the history
    #[arg(long, value_name = "S")]
    pub subtask: Option<String>,
}

/// The attempt passed: takes a good checkpoint and clears the error count.
#[derive(Args, Debug, Default)]
pub struct AttemptPassArgs {
    /// The headline of its checkpoint
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,

    /// What it tried
    #[arg(long, value_name = "T")]
    pub approach: Option<String>,
}

/// The attempt failed: it is classified, counted and decided on; the working memory goes back to the last checkpoint.
#[derive(Args, Debug, Default)]
pub struct AttemptFailArgs {
    #[command(flatten)]
    pub evidence: EvidenceArgs,

    /// What it tried
    #[arg(long, value_name = "T")]
    pub approach: Option<String>,

    /// The loop's plan number, for its events
    #[arg(long, value_name = "N")]
    pub plan: Option<u64>,

    /// Leave the working memory as it is
    #[arg(long)]
    pub no_rollback: bool,

    /// Exit 5 (retry now), 6 (wait), 7 (exhausted) or 8 (a person) as decided, rather than 0
    #[arg(long)]
    pub check: bool,
}

/// What is known of a failure.
#[derive(Args, Clone, Debug, Default)]
pub struct EvidenceArgs {
    /// What went wrong, in the caller's words
    #[arg(long, value_name = "T")]
    pub message: Option<String>,

    /// Exit status of the command
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub exit_code: Option<i32>,

    /// Name or number of the signal that ended it (SIGKILL, 9)
    #[arg(long, value_name = "NAME")]
    pub signal: Option<String>,

    /// A deadline ended it
    #[arg(long)]
    pub timed_out: bool,

    /// How long it ran
    #[arg(long, value_name = "D", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Which stage failed
    #[arg(long = "loop", value_name = "STAGE", value_enum)]
    pub stage: Option<StageArg>,

    /// Its output (`-` for stdin)
    #[arg(long, value_name = "F|-")]
    pub log: Option<PathBuf>,

    /// Its standard error
    #[arg(long, value_name = "F")]
    pub stderr: Option<PathBuf>,

    /// Whose records the output is read as
    #[arg(long, value_name = "NAME", value_parser = ["auto", "claude", "codex", "gemini", "opencode", "aider", "none"])]
    pub agent: Option<String>,
}

/// `--loop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StageArg {
    /// The agent itself
    Agent,
    /// Building or preparing
    Build,
    /// Tests
    Test,
    /// Lints and formatting
    Lint,
    /// A type checker
    Typecheck,
}

impl From<StageArg> for LoopKind {
    fn from(arg: StageArg) -> Self {
        match arg {
            StageArg::Agent => Self::Agent,
            StageArg::Build => Self::Build,
            StageArg::Test => Self::Test,
            StageArg::Lint => Self::Lint,
            StageArg::Typecheck => Self::Typecheck,
        }
    }
}
