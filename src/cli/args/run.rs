//! `run` and `resume`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::model::decision::Strategy;
use crate::model::run::OnFailure;

use super::values::{Wait, duration};

/// Supervise a command: initial checkpoint, attempts, feedback loops, checkpoints and decisions, until the run is
/// complete, stopped, parked or escalated.
///
/// The child gets RECOVER_RUN_ID, RECOVER_ITERATION, RECOVER_ATTEMPT, RECOVER_PROMPT_FILE, RECOVER_FAILURE_CONTEXT (a
/// JSON file; absent at a first attempt) and RECOVER_AGENT_SESSION.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// How many iterations to make [default: 1; with --until as many as it takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: Option<u32>,

    /// Stop when this shell command passes
    #[arg(long, value_name = "CMD")]
    pub until: Option<String>,

    /// Attempts allowed for an iteration, the first included; overrides every configured limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "retries")]
    pub attempts: Option<u32>,

    /// Retries allowed for an iteration: attempts minus one
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,

    /// Deadline of one attempt: on it the process group gets SIGTERM, after 5 s SIGKILL
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub timeout: Option<Duration>,

    /// A shell command that must pass after CMD (repeatable; adds to the configured ones)
    #[arg(long, value_name = "NAME=CMD", value_parser = feedback)]
    pub feedback: Vec<(String, String)>,

    /// The prompt: given to CMD on stdin and as a file
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// The prompt from a file (`-` for stdin)
    #[arg(long, value_name = "F", value_hint = clap::ValueHint::FilePath)]
    pub prompt_file: Option<PathBuf>,

    /// Whose records the output of CMD is read as
    #[arg(long, value_name = "NAME", value_parser = ["auto", "claude", "codex", "gemini", "opencode", "aider", "none"])]
    pub agent: Option<String>,

    /// What follows a failed attempt
    #[arg(long, value_name = "WHAT", value_enum)]
    pub on_failure: Option<OnFailureArg>,

    /// A shell command that is run once in place of CMD when no retry is allowed any more
    #[arg(long, value_name = "CMD")]
    pub fallback: Option<String>,

    /// What the attempt tries, for the history and for later prompts
    #[arg(long, value_name = "TEXT")]
    pub approach: Option<String>,

    /// Exit 6 rather than sleep when the next attempt has to wait
    #[arg(long)]
    pub no_wait: bool,

    /// Leave the child's stdin and output alone and return its own exit code
    ///
    /// The child has the terminal to itself: there is no live line and there are no keys, its output is in no log. On a
    /// terminal a line says why it is tried again and how long the wait is.
    #[arg(long, conflicts_with = "json")]
    pub passthrough: bool,

    /// Give CMD a terminal of its own; what is typed goes to it, Ctrl-C still stops the run
    #[arg(long, conflicts_with = "passthrough")]
    pub pty: bool,

    /// The command to supervise; runner.command of the settings where none is given
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// `--on-failure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnFailureArg {
    /// What the policy decides
    Policy,
    /// Retry within the budgets, never roll files back
    Retry,
    /// Roll back to the last good checkpoint, then retry within the budgets
    Rollback,
    /// Wait for a person's fix
    ManualFix,
    /// Stop at once
    Stop,
}

impl From<OnFailureArg> for OnFailure {
    fn from(arg: OnFailureArg) -> Self {
        match arg {
            OnFailureArg::Policy => Self::Policy,
            OnFailureArg::Retry => Self::Retry,
            OnFailureArg::Rollback => Self::Rollback,
            OnFailureArg::ManualFix => Self::ManualFix,
            OnFailureArg::Stop => Self::Stop,
        }
    }
}

fn feedback(text: &str) -> Result<(String, String), String> {
    let invalid = || format!("'{text}' is not NAME=CMD");
    let (name, command) = text.split_once('=').ok_or_else(invalid)?;
    if name.trim().is_empty() || command.trim().is_empty() {
        return Err(invalid());
    }
    Ok((name.trim().to_owned(), command.to_owned()))
}

/// Take a failed or interrupted run up again: with its recorded command, prompt, feedback loops, timeout, iterations
/// and limits, through the same engine as `run`.
#[derive(Args, Debug, Default)]
pub struct ResumeArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub run_id: Option<String>,

    /// How to take it up: retry_same, retry_with_context, rollback_and_retry, continue_next or manual_then_continue
    #[arg(long, value_name = "STRATEGY", value_parser = strategy)]
    pub strategy: Option<Strategy>,

    /// Go on from this iteration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub from_iteration: Option<u32>,

    /// Leave the error of the previous attempt out of the prompt
    #[arg(long)]
    pub no_error_context: bool,

    /// More instructions for the prompt (`-` reads them from stdin)
    #[arg(long, value_name = "TEXT|-")]
    pub instructions: Option<String>,

    /// Start fresh from iteration 1; checkpoints and history stay
    #[arg(long, conflicts_with_all = ["strategy", "from_iteration"])]
    pub restart: bool,

    /// Prepare the work tree and print the prompt; run nothing
    #[arg(long)]
    pub prepare_only: bool,

    /// Wait for the cooldown or the reset (at most DUR, then exit 9) rather than exit 6
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub wait: Option<Wait>,

    /// The command, in place of the recorded one; runner.command of the settings where there is neither
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

fn strategy(text: &str) -> Result<Strategy, String> {
    let known = Strategy::ALL.into_iter().find(|strategy| strategy.as_str() == text.replace('-', "_"));
    known.ok_or_else(|| {
        let names: Vec<_> = Strategy::ALL.iter().map(|strategy| strategy.as_str()).collect();
        format!("unknown resume strategy '{text}' (one of {})", names.join(", "))
    })
}
