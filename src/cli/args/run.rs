//! Arguments of `run` and `resume`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::model::decision::Strategy;
use crate::model::id::RunId;
use crate::model::loop_kind::LoopKind;
use crate::model::run::{OnFailure, SessionMode};

use super::values::{Wait, duration};

/// Run a command under supervision: checkpoints, checks, retries and rollbacks, until it is done or needs a person.
///
/// Example: recover run --iterations 3 --feedback test='cargo test' -- claude -p "Make the tests pass"
///
/// Where no command is given or configured, --agent NAME starts the agent as its profile says, with leave to edit files:
/// recover run --agent claude --feedback test='cargo test' --prompt "Make the tests pass"
///
/// CMD gets RECOVER_RUN_ID, RECOVER_ITERATION, RECOVER_ATTEMPT, RECOVER_PROMPT_FILE, RECOVER_FAILURE_CONTEXT (a
/// JSON file; absent at a first attempt) and RECOVER_AGENT_SESSION.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Number of iterations [default: 1; with --until as many as it takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: Option<u32>,

    /// Stop when this shell command passes
    #[arg(long, value_name = "CMD")]
    pub until: Option<String>,

    /// Maximum attempts per iteration, including the first; overrides every configured limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "retries")]
    pub attempts: Option<u32>,

    /// Maximum retries per iteration (attempts minus one)
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,

    /// Time limit of an attempt; then its process group gets SIGTERM, and SIGKILL after 5 s
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub timeout: Option<Duration>,

    /// Check: a shell command that must pass after CMD (repeatable; added to the configured ones)
    #[arg(long, value_name = "NAME=CMD", value_parser = feedback)]
    pub feedback: Vec<(String, String)>,

    /// Prompt for CMD, passed on stdin and as a file
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// Read the prompt from a file (- for stdin)
    #[arg(long, value_name = "F", value_hint = clap::ValueHint::FilePath)]
    pub prompt_file: Option<PathBuf>,

    /// Agent to start when no CMD is given, else whose records CMD prints (see recover agents; auto, none) [default: auto]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Let the agent that --agent starts do anything without asking: it skips all its permissions
    #[arg(long)]
    pub yolo: bool,

    #[command(flatten)]
    pub session: SessionArgs,

    /// What CMD is, where its name does not tell: an agent, or a check that is judged as one
    #[arg(long, value_name = "KIND", value_enum)]
    pub kind: Option<LoopKind>,

    /// What to do after a failed attempt
    #[arg(long, value_name = "WHAT", value_enum)]
    pub on_failure: Option<OnFailure>,

    /// Shell command to run once in place of CMD when no retry is left
    #[arg(long, value_name = "CMD")]
    pub fallback: Option<String>,

    /// What the attempt tries; recorded in the history and quoted in later prompts
    #[arg(long, value_name = "TEXT")]
    pub approach: Option<String>,

    /// Exit with 6 instead of sleeping when the next attempt has to wait
    #[arg(long)]
    pub no_wait: bool,

    /// Show the agent's records as they are, not as text
    #[arg(long)]
    pub raw: bool,

    /// Connect CMD to our stdin, stdout and stderr, and exit with its exit code
    ///
    /// There is no status line, there are no keys, and the output is not logged. On a terminal, one line says why CMD is
    /// retried and how long the wait is.
    #[arg(long, conflicts_with = "json")]
    pub passthrough: bool,

    /// Run CMD in a terminal of its own; keys go to it, Ctrl-C still stops the run
    #[arg(long, conflicts_with = "passthrough")]
    pub pty: bool,

    /// Command to run [default: runner.command of the configuration]
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

fn feedback(text: &str) -> Result<(String, String), String> {
    let invalid = || format!("'{text}' is not NAME=CMD");
    let (name, command) = text.split_once('=').ok_or_else(invalid)?;
    if name.trim().is_empty() || command.trim().is_empty() {
        return Err(invalid());
    }
    Ok((name.trim().to_owned(), command.to_owned()))
}

/// In which session of the agent attempts go on.
#[derive(Args, Debug, Default)]
pub struct SessionArgs {
    /// Go on in the agent's session also where files were restored or another iteration begins [default: only where neither is so]
    #[arg(long, conflicts_with = "fresh")]
    pub same_session: bool,

    /// Begin every attempt in a fresh session of the agent
    #[arg(long)]
    pub fresh: bool,
}

impl SessionArgs {
    /// What was asked for; `None` where nothing was.
    pub fn mode(&self) -> Option<SessionMode> {
        match (self.same_session, self.fresh) {
            (true, _) => Some(SessionMode::Same),
            (_, true) => Some(SessionMode::Fresh),
            _ => None,
        }
    }
}

/// Resume a failed or interrupted run, with its recorded command, prompt, checks, timeout, iterations and limits.
///
/// Example: recover resume --strategy retry_with_context --instructions "Leave the tests alone."
#[derive(Args, Debug, Default)]
pub struct ResumeArgs {
    /// Run to resume
    #[arg(value_name = "RUN")]
    pub run_id: Option<RunId>,

    /// How to resume: retry_same, retry_with_context, rollback_and_retry, continue_next or manual_then_continue
    #[arg(long, value_name = "STRATEGY", value_parser = strategy)]
    pub strategy: Option<Strategy>,

    /// Continue from this iteration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub from_iteration: Option<u32>,

    /// Leave the previous attempt's error out of the prompt
    #[arg(long)]
    pub no_error_context: bool,

    /// Additional instructions for the prompt (- for stdin)
    #[arg(long, value_name = "TEXT|-")]
    pub instructions: Option<String>,

    #[command(flatten)]
    pub session: SessionArgs,

    /// Start again from iteration 1; checkpoints and history are kept
    #[arg(long, conflicts_with_all = ["strategy", "from_iteration"])]
    pub restart: bool,

    /// Prepare the work tree and print the prompt without running anything
    #[arg(long)]
    pub prepare_only: bool,

    /// Wait for the cooldown or the limit's reset (at most DUR, then exit 9) instead of exiting with 6
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub wait: Option<Wait>,

    /// Command to run instead of the recorded one
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
