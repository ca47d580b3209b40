//! Arguments of the commands that run something and go on: `run`, `resume`, `step`, `manual-fix`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use itertools::Itertools as _;

use super::{RunName, duration, number};
use crate::engine::base::clock;
use crate::model::decision::Strategy;
use crate::model::feedback::CheckKind;
use crate::model::run::{OnFailure, SessionMode};

/// Run a command under supervision.
///
/// Takes checkpoints, runs the checks, retries and rolls back, until the command is done or needs a person. Where no
/// command is given or configured, --agent NAME starts the agent as its profile says, with leave to edit files.
///
/// CMD gets RECOVER_RUN_ID, RECOVER_ITERATION, RECOVER_TASK (with --tasks), RECOVER_ATTEMPT, RECOVER_PROMPT_FILE, RECOVER_FAILURE_CONTEXT (a
/// JSON file; absent at a first attempt) and RECOVER_AGENT_SESSION; of a run that lies on a remote also RECOVER_FENCING, a number
/// that rises each time another machine takes the run over.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Number of iterations [default: 1]
    ///
    /// With --until as many as it takes.
    #[arg(long, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true)]
    pub iterations: Option<u32>,

    /// Stop when this shell command passes
    #[arg(long, value_name = "CMD")]
    pub until: Option<String>,

    /// Maximum attempts per iteration, including the first
    ///
    /// Overrides every configured limit.
    #[arg(long, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true, conflicts_with = "retries")]
    pub attempts: Option<u32>,

    /// Maximum retries per iteration (attempts minus one)
    #[arg(long, value_name = "N", hide_short_help = true, value_parser = number::<0>, allow_negative_numbers = true)]
    pub retries: Option<u32>,

    /// Time limit of an attempt
    ///
    /// After it the process group gets SIGTERM, and SIGKILL after 5 s.
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub timeout: Option<Duration>,

    /// End an attempt that is idle for DUR, such as 20m
    ///
    /// Without output, CPU time, changed files and, as far as the agent's records show, a running tool; 0 for never.
    /// It is tried once more for free, in the agent's session; from the second time on it counts [default: 1h for agents].
    #[arg(long, hide_short_help = true, value_name = "DUR", value_parser = duration)]
    pub idle: Option<Duration>,

    /// End an attempt after N identical tool calls
    ///
    /// In a row, with the same result, each within 10 s of the one before; 0 for never [default: 12].
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = number::<0>, allow_negative_numbers = true)]
    pub max_repeats: Option<u32>,

    /// Let CMD and the checks write in the work tree only [default: off]
    ///
    /// And in its git folder, for temporary files, and where the agent keeps its own files: see the guide. By Landlock or
    /// sandbox-exec; where there is neither, exits with 13, unless that is only to be tried. off is for where the
    /// configuration says so.
    #[arg(long, hide_short_help = true, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "on",
          value_parser = ["on", "try", "off"])]
    pub confine: Option<String>,

    /// Check: a shell command that must pass after CMD
    ///
    /// Repeatable; added to the configured ones.
    #[arg(long, value_name = "NAME=CMD", value_parser = feedback)]
    pub feedback: Vec<(String, String)>,

    /// Prompt for CMD, on stdin and as a file
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// Read the prompt from a file (- for stdin)
    #[arg(long, value_name = "F", hide_short_help = true, value_hint = clap::ValueHint::FilePath)]
    pub prompt_file: Option<PathBuf>,

    /// Work through the tasks of a file, each in an iteration
    ///
    /// A Markdown checklist (- [ ] TEXT, with indented lines below), TOML ([[task]]) or JSON ({"tasks": [...]}), with id, prompt,
    /// needs, feedback, attempts, timeout, done. CMD gets RECOVER_TASK, the task's id, and its prompt. A task begins once those
    /// that it needs have passed. What you add to the file between attempts (with --isolated at any time) is done, too;
    /// accept ticks what passed, and undo of it takes that back.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["iterations", "until"])]
    pub tasks: Option<PathBuf>,

    /// With --tasks: how many runs work at once, each with a part of the tasks and a work tree of its own
    ///
    /// Runs RUN-1, RUN-2 and so on; what needs another task is in the same one. A limit that one of them meets holds all. Each is
    /// accepted, resumed and discarded by its name. What you add to the file meanwhile is done, too, by the next one that is free.
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true,
          requires = "tasks", conflicts_with_all = ["remote", "passthrough", "pty"])]
    pub lanes: Option<u32>,

    /// Only these tasks of the file
    #[arg(long, hide = true, value_name = "ID", requires = "tasks")]
    pub only: Vec<String>,

    /// It is one that a worker shares out: no error where another machine is faster, and nothing is said at the end
    #[arg(long, hide = true, requires = "remote")]
    pub queued: bool,

    /// Begin no task once less than PERCENT of the account's limit is left
    ///
    /// In percent of the tightest limit, as far as the agent's records say it (Claude Code's do as it gets tight): exits with 6,
    /// and resume goes on after the reset.
    #[arg(long, hide_short_help = true, value_name = "PERCENT", value_parser = percent, requires = "tasks")]
    pub reserve: Option<u8>,

    /// Run in a work tree of its own, beside yours
    ///
    /// In your state folder, on a branch recover/RUN, with what is uncommitted here, so that you can edit, commit and switch
    /// branches meanwhile; [isolated] of the configuration says what else it needs. accept RUN, typed here, merges what it did
    /// onto the branch that is checked out now.
    #[arg(long, hide_short_help = true, conflicts_with = "remote")]
    pub isolated: bool,

    /// With --isolated: begin at this commit, without what is uncommitted
    #[arg(
        long,
        hide_short_help = true,
        value_name = "REF",
        requires = "isolated"
    )]
    pub from: Option<String>,

    /// With --isolated: without what is uncommitted
    #[arg(long, hide_short_help = true, requires = "isolated")]
    pub clean: bool,

    /// Agent to start, or whose records CMD prints
    ///
    /// See recover agents; also auto and none [default: auto]. acp:NAME, or acp:'CMD ARG', drives it by the Agent Client Protocol,
    /// with a checkpoint before each edit, deletion and risky command. With CMD it is only the kind of records that CMD prints.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Let the agent do anything without asking
    ///
    /// The agent that --agent starts skips all its permissions.
    #[arg(long, hide_short_help = true)]
    pub yolo: bool,

    #[command(flatten)]
    pub session: SessionArgs,

    /// What CMD is, where its name does not tell
    ///
    /// An agent, or a check that is judged as one.
    #[arg(long, hide_short_help = true, value_name = "KIND", value_enum)]
    pub kind: Option<CheckKind>,

    /// What to do after a failed attempt
    #[arg(long, hide_short_help = true, value_name = "WHAT", value_enum)]
    pub on_failure: Option<OnFailure>,

    /// Shell command to run once when no retry is left
    ///
    /// In place of CMD.
    #[arg(long, hide_short_help = true, value_name = "CMD")]
    pub fallback: Option<String>,

    /// Shell command to run when a person is needed, and at the end
    ///
    /// In place of [notify] command of the configuration: it reads what happened as JSON, and RECOVER_SUMMARY says it in a
    /// line. '' notifies nobody. See recover.toml(5).
    #[arg(long, hide_short_help = true, value_name = "CMD")]
    pub notify: Option<String>,

    /// What the attempt tries
    ///
    /// Recorded in the history and quoted in later prompts.
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    pub approach: Option<String>,

    /// Keep the run on this remote, so that it outlives this machine
    ///
    /// Any clone goes on with it: recover resume --remote NAME --run R. Before the first time you are shown what is sent.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub remote: Option<String>,

    /// Exit with 6 instead of waiting
    ///
    /// When the next attempt has to wait for a cooldown, a limit's reset, an outage of the agent's provider or the network.
    #[arg(long, hide_short_help = true)]
    pub no_wait: bool,

    /// Wait at most DUR in all, then exit with 9 [default: as long as it takes]
    ///
    /// For cooldowns, limits and outages. Where a limit is known to reset later, exits with 6 at once. --no-wait goes before it.
    #[arg(long, hide_short_help = true, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "",
          env = "RECOVER_WAIT", hide_env_values = true)]
    pub wait: Option<clock::WaitLimit>,

    /// Show the agent's records as they are, not as text
    #[arg(long, hide_short_help = true)]
    pub raw: bool,

    /// Connect CMD to our stdin, stdout and stderr
    ///
    /// The exit code is CMD's.
    /// There is no status line, there are no keys, and the output is not logged. On a terminal, one line says why CMD is
    /// retried and how long the wait is.
    #[arg(long, hide_short_help = true, conflicts_with = "json")]
    pub passthrough: bool,

    /// Run CMD in a terminal of its own
    ///
    /// Keys go to it; Ctrl-C still stops the run.
    #[arg(long, hide_short_help = true, conflicts_with = "passthrough")]
    pub pty: bool,

    /// Command to run [default: runner.command of the configuration]
    #[arg(last = true, value_name = "CMD", hide_short_help = true)]
    pub command: Vec<String>,
}

/// Work through a list of tasks together with other machines.
///
/// Call it on as many machines as you like, each with a clone of its own, the same list and the same command. What needs another
/// task is in one run with that; each run lies on the remote as NAME-TASK (NAME: --run, else the name of the file), and whoever claims
/// it has its tasks. A worker begins the first run that nobody has begun, goes on with one whose machine is gone for a whole
/// lease, puts its files back to how it found them after each, and ends when nothing is left: with 0, or 8 where a person is
/// needed. While others are at work it waits, in case they are gone. What they did is in the runs: recover report --remote NAME
/// says what came of them, and recover resume --remote NAME --run RUN brings the files of one into your clone, for accept.
#[derive(Args, Debug)]
pub(crate) struct WorkerArgs {
    /// File of the tasks, as for run --tasks
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub tasks: PathBuf,

    /// Remote that the runs lie on [default: remote.name of your configuration]
    #[arg(long, value_name = "NAME")]
    pub remote: Option<String>,

    /// Agent to start, or whose records CMD prints
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Let the agent do anything without asking
    #[arg(long, hide_short_help = true)]
    pub yolo: bool,

    /// Maximum attempts per task, including the first
    #[arg(long, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true)]
    pub attempts: Option<u32>,

    /// Time limit of an attempt
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub timeout: Option<Duration>,

    /// Check: a shell command that must pass after CMD
    ///
    /// Repeatable; added to the configured ones.
    #[arg(long, value_name = "NAME=CMD", value_parser = feedback)]
    pub feedback: Vec<(String, String)>,

    /// What goes before the prompt of each task
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,

    /// Exit with 6 instead of waiting for what others have
    #[arg(long, conflicts_with = "wait")]
    pub no_wait: bool,

    /// Wait at most DUR for what others have, then exit with 9 [default: as long as it takes]
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub wait: Option<clock::WaitLimit>,

    /// Command to run [default: runner.command of the configuration]
    #[arg(last = true, value_name = "CMD", hide_short_help = true)]
    pub command: Vec<String>,
}

fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse();
    let number = number.ok().filter(|number| (1..=99).contains(number));
    number.ok_or_else(|| format!("'{text}' is no percentage from 1% to 99%"))
}

fn feedback(text: &str) -> Result<(String, String), String> {
    let invalid = || format!("'{text}' is not NAME=CMD, such as test='cargo test'");
    let (name, command) = text.split_once('=').ok_or_else(invalid)?;
    if name.trim().is_empty() || command.trim().is_empty() {
        return Err(invalid());
    }
    Ok((name.trim().to_owned(), command.to_owned()))
}

/// In which session of the agent attempts go on.
#[derive(Args, Debug, Default)]
pub(crate) struct SessionArgs {
    /// Always continue the agent's session
    ///
    /// By default an attempt begins a fresh session where files were restored or another iteration begins.
    #[arg(long, hide_short_help = true, conflicts_with = "fresh")]
    pub same_session: bool,

    /// Begin every attempt in a fresh session of the agent
    #[arg(long, hide_short_help = true)]
    pub fresh: bool,
}

impl SessionArgs {
    /// What was asked for; `None` where nothing was.
    pub(crate) fn mode(&self) -> Option<SessionMode> {
        match (self.same_session, self.fresh) {
            (true, _) => Some(SessionMode::Same),
            (_, true) => Some(SessionMode::Fresh),
            _ => None,
        }
    }
}

/// Resume a failed or interrupted run.
///
/// With its recorded command, prompt, checks, timeout, iterations and limits, or those given here, which hold from then
/// on and grant an attempt where none is left. On a terminal and without either it offers the strategies to choose from;
/// elsewhere the policy decides.
#[derive(Args, Debug, Default)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub run: RunName,

    /// How to resume, such as retry_with_context
    ///
    /// retry_same, retry_with_context, rollback_and_retry, continue_next or manual_then_continue.
    #[arg(long, value_name = "STRATEGY", value_parser = strategy)]
    pub strategy: Option<Strategy>,

    /// Continue from this iteration
    #[arg(long, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true)]
    pub from_iteration: Option<u32>,

    /// Leave the previous error out of the prompt
    #[arg(long)]
    pub no_error_context: bool,

    /// More instructions for the prompt (- for stdin)
    #[arg(long, value_name = "TEXT|-")]
    pub instructions: Option<String>,

    /// Time limit of an attempt from now on
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub timeout: Option<Duration>,

    /// Maximum attempts per iteration from now on, including the first
    #[arg(long, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true, conflicts_with = "retries")]
    pub attempts: Option<u32>,

    /// Maximum retries per iteration from now on (attempts minus one)
    #[arg(long, value_name = "N", hide_short_help = true, value_parser = number::<0>, allow_negative_numbers = true)]
    pub retries: Option<u32>,

    /// Number of iterations in all
    ///
    /// More of them than it had take a complete run up again.
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true)]
    pub iterations: Option<u32>,

    /// Agent to go on with, or whose records CMD prints
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub agent: Option<String>,

    /// Prompt in place of the recorded one
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    pub prompt: Option<String>,

    /// Also run the tasks of this file that the run does not have
    ///
    /// What an attempt added to the list, too; a complete run is resumed.
    #[arg(long, hide_short_help = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "iterations")]
    pub tasks: Option<PathBuf>,

    /// Only these of them
    #[arg(long, hide = true, value_name = "ID", requires = "tasks")]
    pub only: Vec<String>,

    #[command(flatten)]
    pub session: SessionArgs,

    /// Check in place of the run's own of that name, or a new one
    ///
    /// Repeatable. A run keeps the checks of the configuration that it began with: this gives it others.
    #[arg(long, hide_short_help = true, value_name = "NAME=CMD", value_parser = feedback)]
    pub feedback: Vec<(String, String)>,

    /// Start again from iteration 1
    ///
    /// Checkpoints and history are kept.
    #[arg(long, conflicts_with_all = ["strategy", "from_iteration"])]
    pub restart: bool,

    /// Print the prompt without running anything
    ///
    /// The work tree is prepared for the attempt.
    #[arg(long)]
    pub prepare_only: bool,

    /// Wait instead of exiting with 6
    ///
    /// For cooldowns, limits and outages, at most DUR in all (then exit 9). Where a limit is known to reset later, exits with 6
    /// at once.
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "",
          env = "RECOVER_WAIT", hide_env_values = true)]
    pub wait: Option<clock::WaitLimit>,

    /// Take up the runs that ended with the machine, one after the other
    ///
    /// Those that were at work when it went down, of this work tree; never those that ended by a signal or an error while it ran
    /// on, and none more than twice without progress.
    #[arg(long, hide_short_help = true, conflicts_with_all = ["strategy", "from_iteration", "restart", "prepare_only"])]
    pub interrupted: bool,

    /// With --interrupted: those of all repositories
    #[arg(long, hide_short_help = true, requires = "interrupted")]
    pub all_repos: bool,

    /// Take the run up from this remote
    ///
    /// It is claimed, and the files of its latest checkpoint are put in place; HEAD stays. Without --run it is the only one there.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub remote: Option<String>,

    /// It is one that a worker shares out: no error where another machine is faster, and nothing is said at the end
    #[arg(long, hide = true, requires = "remote")]
    pub queued: bool,

    /// Take the run from a machine that may be at work on it
    #[arg(long, hide_short_help = true)]
    pub steal: bool,

    /// Shell command to run when a person is needed, and at the end
    ///
    /// In place of [notify] command of the configuration: it reads what happened as JSON, and RECOVER_SUMMARY says it in a
    /// line. '' notifies nobody. See recover.toml(5).
    #[arg(long, hide_short_help = true, value_name = "CMD")]
    pub notify: Option<String>,

    /// Show the agent's records as they are, not as text
    #[arg(long, hide_short_help = true)]
    pub raw: bool,

    /// Command to run instead of the recorded one
    #[arg(last = true, value_name = "CMD", hide_short_help = true)]
    pub command: Vec<String>,
}

fn strategy(text: &str) -> Result<Strategy, String> {
    let known = Strategy::ALL
        .into_iter()
        .find(|strategy| strategy.as_str() == text.replace('-', "_"));
    known.ok_or_else(|| {
        let names = Strategy::ALL
            .iter()
            .map(|strategy| strategy.as_str())
            .join(", ");
        format!("unknown resume strategy '{text}' (one of {names})")
    })
}

/// Run CMD once per run.
///
/// A step that has succeeded is skipped with exit code 0 the next time. Steps are identified by run, phase, lane and name. A failed step runs again; one that was interrupted says so before it
/// runs again. Without CMD it runs as it was recorded, with its flags. If two processes run the same step, the second waits for the first. The exit code is CMD's own (128 + n
/// for signal n). CMD gets RECOVER_RUN_ID, RECOVER_PHASE, RECOVER_LANE and RECOVER_STEP.
#[derive(Args, Debug)]
pub(crate) struct StepArgs {
    /// Name of the step
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Record this stage of the lane when CMD ends
    ///
    /// Complete if it succeeded, else failed.
    #[arg(long, hide_possible_values = true, value_name = "S", value_parser = super::STAGES)]
    pub stage: Option<String>,

    /// Branch to merge the lane into [default: its base]
    #[arg(long, value_name = "B", requires = "stage")]
    pub target_branch: Option<String>,

    /// Restore the files unless CMD succeeds
    ///
    /// Whoever changed them meanwhile; files that are ignored, over the size limit or in a nested repository are not
    /// covered.
    #[arg(long)]
    pub atomic: bool,

    /// What CMD will do; recorded before it runs
    #[arg(long, value_name = "T", requires = "atomic")]
    pub intent: Option<String>,

    /// Files covered by --atomic (globs) [default: all]
    ///
    /// From the current folder.
    #[arg(long, value_name = "GLOB", num_args = 1.., requires = "atomic")]
    pub path: Vec<String>,

    /// Shell command that reverts the step's effects
    ///
    /// Those outside the work tree; a rollback past the step runs it.
    #[arg(long, value_name = "CMD2")]
    pub compensate: Option<String>,

    /// Command to run [default: the recorded one]
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// Fix a failed run by hand: edit, verify, continue.
#[derive(Args, Debug)]
pub(crate) struct ManualFixArgs {
    #[command(subcommand)]
    pub command: Option<ManualFixCommand>,

    /// Open $VISUAL or $EDITOR at the first error
    #[arg(long)]
    pub edit: bool,
}

/// What to do about a manual fix.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ManualFixCommand {
    /// Start a session, or return the open one
    Start {
        /// Open $VISUAL or $EDITOR at the first error
        #[arg(long)]
        edit: bool,
    },
    /// Show the session and the changes since it began
    Status,
    /// Report changes, and run the checks once the tree is idle
    ///
    /// Ends on a signal; the session stays open.
    Watch {
        /// Exit with 0 once the fix is verified (with 9 after DUR)
        #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
        wait: Option<clock::WaitLimit>,
    },
    /// Run the checks on the work tree; exits with 0 or 100
    Verify,
    /// Record the verified fix, and go on with the next iterations
    Continue {
        /// Wait instead of exiting with 6
        ///
        /// For the cooldown or the limit's reset, at most DUR (then exit 9).
        #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
        wait: Option<clock::WaitLimit>,
        /// Print the next prompt without running anything
        #[arg(long)]
        prepare_only: bool,
    },
    /// Abort the session; files stay as they are
    Abort,
}
