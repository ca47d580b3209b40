//! The clap tree, one doc-commented struct a command, with the values as users write them.
//! Completions and man pages are made from it.

#![expect(
    clippy::doc_markdown,
    reason = "help texts are plain text: a terminal shows backticks as they are"
)]
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "help texts name sections of the configuration: [retry]"
)]
#![expect(
    clippy::struct_excessive_bools,
    reason = "flags are what a command line is made of"
)]

mod attempt;
mod checkpoint;
mod examples;
pub(crate) mod help;
mod inspect;
mod restore;
mod run;
mod runs;

use std::ffi::OsString;
use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::engine::accept::Uncommitted;
use crate::engine::base::clock::WaitLimit;
use crate::engine::rollback::Commits;
use crate::model::checkpoint::{CheckpointType, StorageType};
use crate::model::feedback::CheckKind;
use crate::model::hook::HookAgent;
use crate::model::import::ImportKind;
use crate::model::operation::Scope;
use crate::model::run::OnFailure;
use crate::model::time::parse_duration;
use crate::policy::restore::Edits;
use crate::policy::settings::ColorWhen;

use crate::model::lane::STAGES;
pub(crate) use attempt::{
    AttemptArgs, AttemptCommand, AttemptFailArgs, AttemptPassArgs, AttemptStartArgs, EvidenceArgs,
    HookArgs, HookCommand, HookRunArgs, PlaceArgs, PluginArgs, PluginCommand,
};
pub(crate) use checkpoint::{
    CheckpointArgs, CheckpointCommand, CreateArgs, DiffArgs, ExportArgs, ListArgs, PruneArgs,
    RestoreArgs, ShowArgs,
};
pub(crate) use inspect::{
    ClassifyArgs, CompletionsArgs, ConfigArgs, DemoArgs, DoctorArgs, ImportArgs, InitArgs, LogArgs,
    ManArgs, ReportArgs, ReportFormat, RetryStatusArgs, SchemaArgs, StatusArgs, SyncArgs,
    TrustArgs,
};
pub(crate) use restore::{BisectArgs, DiscardArgs, How, RollbackArgs, UndoArgs};
pub(crate) use run::{ManualFixArgs, ManualFixCommand, ResumeArgs, RunArgs, StepArgs, WorkerArgs};
pub(crate) use runs::{
    AcceptArgs, CloseArgs, ForgetArgs, LimitsArgs, RemoteArgs, RemoteCheckArgs, RemoteCommand,
    RestoreProjectArgs, RunsArgs, ServiceArgs, ServiceCommand,
};

/// The flight recorder and undo button for unattended coding runs.
///
/// Takes checkpoints of the work tree, explains why an attempt failed, tracks the retry budget and the cooldown, rolls
/// back without losing a byte, hands over to a person, and resumes the run.
#[derive(Debug, Parser)]
#[command(
    name = "recover",
    version,
    max_term_width = 100,
    subcommand_required = false,
    disable_help_subcommand = true,
    styles = help::STYLES
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,

    /// Same as recover resume, with its flags (for shell hooks and the lane contract)
    #[arg(long, hide_short_help = true)]
    pub resume: bool,

    /// Same as recover rollback, with its flags (for shell hooks and the lane contract)
    #[arg(long, hide_short_help = true, conflicts_with = "resume")]
    pub rollback: bool,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Flags that every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Run as if recover was started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true, value_hint = clap::ValueHint::DirPath)]
    pub directory: Option<PathBuf>,

    /// Run to use [default: the current or most recent run here]
    ///
    /// Or the name of the one that is created; also RECOVER_RUN_ID.
    #[arg(long, value_name = "ID", global = true, value_parser = name)]
    pub run: Option<String>,

    /// Series whose latest run to use, such as night for night, night-2, …
    ///
    /// recover run --series NAME begins the next one, or resumes the latest while that waits.
    #[arg(long, hide_short_help = true, value_name = "NAME", global = true, value_parser = name, conflicts_with = "run")]
    pub series: Option<String>,

    /// Phase of the run
    #[arg(long, hide_short_help = true, value_name = "P", global = true, value_parser = name)]
    pub phase: Option<String>,

    /// Lane of the run
    #[arg(long, hide_short_help = true, value_name = "L", global = true, value_parser = name)]
    pub lane: Option<String>,

    /// Task that the run works on
    #[arg(long, hide_short_help = true, value_name = "T", global = true, value_parser = name)]
    pub task: Option<String>,

    /// Print one JSON document on stdout, nothing else
    #[arg(long, global = true)]
    pub json: bool,

    /// Answer yes to every question
    #[arg(short = 'y', long, global = true)]
    pub yes: bool,

    /// Never prompt; what would need an answer is refused with exit code 13
    #[arg(long, hide_short_help = true, global = true)]
    pub no_input: bool,

    /// Trust what the project's configuration starts, for this call
    ///
    /// RECOVER_TRUST=1 in the environment does the same; recover trust is remembered.
    #[arg(long, hide_short_help = true, global = true)]
    pub trust: bool,

    /// Work in the home folder, with the files that git tracks
    ///
    /// Once something is recorded there it is not needed any more. Untracked files are neither captured nor touched.
    #[arg(long, hide_short_help = true, global = true)]
    pub allow_home: bool,

    /// Show what would be done without changing anything
    #[arg(long, global = true)]
    pub dry_run: bool,

    /// Print only errors on stderr
    #[arg(
        short,
        long,
        hide_short_help = true,
        global = true,
        conflicts_with = "verbose"
    )]
    pub quiet: bool,

    /// Print more detail on stderr; repeat for more (also RECOVER_LOG)
    #[arg(short, long, hide_short_help = true, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// When to use color (also NO_COLOR, and ui.color of the user's configuration) [default: auto]
    #[arg(
        long,
        hide_short_help = true,
        value_name = "WHEN",
        global = true,
        value_enum
    )]
    pub color: Option<ColorWhen>,

    /// Print long answers as they are, in no pager
    ///
    /// On a terminal they go through git's: GIT_PAGER, pager.log, pager.diff, core.pager, PAGER.
    #[arg(long, hide_short_help = true, global = true)]
    pub no_pager: bool,

    /// State directory [default: .ultraplan/state in the project root]
    #[arg(long, hide_short_help = true, value_name = "DIR", global = true, env = "RECOVER_STATE_DIR", hide_env_values = true,
          value_hint = clap::ValueHint::DirPath)]
    pub state_dir: Option<PathBuf>,

    /// How long to wait for another process's lock before failing with exit code 11
    #[arg(long, hide_short_help = true, value_name = "DUR", global = true, value_parser = duration, default_value = "5s")]
    pub lock_timeout: Duration,

    /// The runs that a command names without a flag.
    #[arg(skip)]
    pub named_runs: Vec<String>,

    /// The remote that a command names.
    #[arg(skip)]
    pub remote: Option<String>,
}

// No doc comment: it would be the help of the commands that take it alone.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RunName {
    /// Run, as with --run
    #[arg(value_name = "RUN", value_parser = name, hide_short_help = true)]
    pub run_id: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Run(RunArgs),
    Resume(ResumeArgs),
    Rollback(RollbackArgs),
    /// Undo the last rollback, restore or accept of this work tree
    Undo(UndoArgs),
    /// Redo what undo reverted
    Redo(How),
    Checkpoint(CheckpointArgs),
    ManualFix(ManualFixArgs),
    RetryStatus(RetryStatusArgs),
    Attempt(AttemptArgs),
    Classify(ClassifyArgs),
    Step(StepArgs),
    Status(StatusArgs),
    Runs(RunsArgs),
    Limits(LimitsArgs),
    Service(ServiceArgs),
    /// Look through runs, attempts and checkpoints on a terminal.
    ///
    /// A timeline on the left; the difference, the evidence for a failure, the log or the report on the right. It follows a run
    /// at work. Nothing is changed but by a command that is shown and agreed to. The key ? lists the keys.
    Browse(RunName),
    Accept(AcceptArgs),
    Discard(DiscardArgs),
    Bisect(BisectArgs),
    Close(CloseArgs),
    Forget(ForgetArgs),
    RestoreProject(RestoreProjectArgs),
    Remote(RemoteArgs),
    Worker(WorkerArgs),
    Log(LogArgs),
    Report(ReportArgs),
    Import(ImportArgs),
    Sync(SyncArgs),
    Trust(TrustArgs),
    Init(InitArgs),
    Demo(DemoArgs),
    Config(ConfigArgs),
    Doctor(DoctorArgs),
    /// List the agents that run --agent NAME starts.
    ///
    /// Which are installed, and how each is started. A section [agent.NAME] of the configuration adds one, or changes single keys of a built-in one.
    #[command(after_long_help = inspect::AGENTS_HELP)]
    Agents,
    Hook(HookArgs),
    Plugin(PluginArgs),
    /// Serve agents over the Model Context Protocol.
    ///
    /// On stdin and stdout, for an agent's settings to start. The tools status, explain, diff, checkpoint and preview_rollback are commands of
    /// this program; reports of runs are resources. Rolling back and deciding are up to the user.
    Mcp,
    Completions(CompletionsArgs),
    Schema(SchemaArgs),
    #[command(hide = true)]
    Man(ManArgs),
}

/// Flags before which a value follows, so that `--resume` is not taken for a value.
pub(crate) const VALUE_FLAGS: [&str; 9] = [
    "-C",
    "--run",
    "--series",
    "--phase",
    "--lane",
    "--task",
    "--color",
    "--state-dir",
    "--lock-timeout",
];

/// Turns the top-level `--resume` and `--rollback` into the subcommands that they are the same as (cli.md, C4, C5), and the
/// short names `diff`, `list`, `show` and `help COMMAND` into what they stand for.
pub fn expand_aliases(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let mut at = 1;
    while at < args.len() {
        let text = args[at].to_string_lossy().into_owned();
        match text.as_str() {
            "--resume" | "--rollback" => {
                // Before every other flag: what stood before it may be the subcommand's own.
                args.remove(at);
                args.insert(1, OsString::from(&text[2..]));
                break;
            }
            flag if VALUE_FLAGS.contains(&flag) => at += 2,
            flag if flag.starts_with('-') && flag != "--" => at += 1,
            // git's own names of what `checkpoint` has.
            "diff" | "list" | "show" => {
                args.insert(at, OsString::from("checkpoint"));
                break;
            }
            // What follows are the words of the command that is asked about.
            "help" => {
                args.remove(at);
                args.push(OsString::from("--help"));
                break;
            }
            // A subcommand or its arguments: from here on the words are its own.
            _ => break,
        }
    }
    args
}

/// Reads `90`, `90s`, `10m`, `2h`, `7d`, `500ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// A number that is `LEAST` or more.
pub(super) fn number<const LEAST: u32>(text: &str) -> Result<u32, String> {
    whole(text, LEAST, u32::MAX)
}

/// A number of lines.
pub(super) fn lines(text: &str) -> Result<usize, String> {
    whole(text, 0, usize::MAX)
}

fn whole<N>(text: &str, least: N, most: N) -> Result<N, String>
where
    N: FromStr<Err = ParseIntError> + PartialOrd + Display + Copy,
{
    match text.parse::<N>() {
        Ok(number) if number >= least => Ok(number),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err(format!("the largest number is {most}"))
        }
        _ => Err(format!("a number from {least} up is expected")),
    }
}

/// Reads `100`, `100KiB`, `50MiB`, `10MB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    crate::config::parse_size(text).map_err(|error| error.to_string())
}

/// Reads the name of a run, a phase, a lane or a task: anything but nothing.
pub(crate) fn name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        Err("it is empty".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// A value as it is written on the command line.
pub(crate) fn word_of(value: &impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|word| word.get_name().to_owned())
        .unwrap_or_default()
}

/// Makes an enum of the model the value of a flag: each variant with its word and its help.
macro_rules! values {
    ($($type:ident { $($variant:ident $word:literal: $help:literal,)+ })+) => {$(
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$variant),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let (word, help) = match self {
                    $(Self::$variant => ($word, $help),)+
                };
                Some(PossibleValue::new(word).help(help))
            }
        }
    )+};
}

values! {
    CheckKind {
        Agent "agent": "The agent itself",
        Build "build": "Building or preparing",
        Test "test": "Tests",
        Lint "lint": "Lints and formatting",
        Typecheck "typecheck": "A type checker",
    }
    ImportKind {
        Battle "battle": "A battle's JSON",
        AttemptHistory "attempt_history": "attempt_history.json",
        Lanes "lanes": "checkpoints.json of the lane contract",
        Session "session": "A session's checkpoint, or active_checkpoint.json",
        Recovery "recovery": "recovery.json",
    }
    ColorWhen {
        Auto "auto": "On a terminal, unless `NO_COLOR` is set",
        Always "always": "Always",
        Never "never": "Never",
    }
    Scope {
        All "all": "Files, working memory, and HEAD where it is the run's own to move",
        Files "files": "Files only",
        State "state": "The working memory below the state directory only",
    }
    Commits {
        Refuse "refuse": "Move HEAD only over the run's own commits, else refuse",
        Keep "keep": "Leave HEAD where it is",
        Drop "drop": "Move HEAD back anyway; the commits stay reachable under refs/recover/",
        Revert "revert": "Add one commit with the checkpoint's content",
    }
    Edits {
        Refuse "refuse": "Refuse and list them",
        Keep "keep": "Leave them as they are",
        Discard "discard": "Overwrite them; undo brings them back",
    }
    HookAgent {
        Claude "claude": "Claude Code: .claude/settings.json",
        Codex "codex": "Codex: .codex/hooks.json",
        Gemini "gemini": "Gemini CLI: .gemini/settings.json",
        Opencode "opencode": "opencode: .opencode/plugins/recover.js",
        Git "git": "git: pre-rebase and pre-push",
    }
    CheckpointType {
        Phase "phase": "A milestone",
        Task "task": "A unit of progress",
        Operation "operation": "Before or after a single operation",
    }
    StorageType {
        Snapshot "snapshot": "The hidden commit alone",
        Commit "commit": "Also a commit on the branch",
        Patch "patch": "Also a patch file against HEAD",
    }
    OnFailure {
        Policy "policy": "Do what the policy decides",
        Retry "retry": "Retry within the budgets, never roll files back",
        Rollback "rollback": "Roll back to the last good checkpoint, then retry within the budgets",
        ManualFix "manual-fix": "Wait for a person's fix",
        Stop "stop": "Stop at once",
    }
}

/// Without the flag it is refused, or prompted for.
impl ValueEnum for Uncommitted {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Keep, Self::Replace]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (word, help) = match self {
            Self::Keep => ("keep", "Your changes"),
            Self::Replace => ("replace", "The run's version"),
            Self::Refuse | Self::Prompt => return None,
        };
        Some(PossibleValue::new(word).help(help))
    }
}

/// `--wait` alone, or with the longest time to wait.
impl FromStr for WaitLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            Ok(Self::Forever)
        } else {
            duration(text).map(Self::AtMost)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn expanded(line: &str) -> String {
        let args = expand_aliases(line.split(' ').map(OsString::from));
        args.iter()
            .map(|arg| arg.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn the_tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn top_level_flags_are_the_subcommands() {
        assert_eq!(expanded("recover --resume --wait"), "recover resume --wait");
        assert_eq!(
            expanded("recover -C d --run --resume --rollback --full"),
            "recover rollback -C d --run --resume --full"
        );
        assert_eq!(
            expanded("recover --json --rollback --to good"),
            "recover rollback --json --to good"
        );
        assert_eq!(
            expanded("recover run -- agent --resume"),
            "recover run -- agent --resume"
        );
        assert_eq!(expanded("recover status"), "recover status");
    }

    #[test]
    fn short_names_are_the_commands_that_they_stand_for() {
        assert_eq!(
            expanded("recover --run list diff good"),
            "recover --run list checkpoint diff good"
        );
        assert_eq!(
            expanded("recover checkpoint list"),
            "recover checkpoint list"
        );
        assert_eq!(
            expanded("recover step list -- show"),
            "recover step list -- show"
        );
        assert_eq!(
            expanded("recover help checkpoint create"),
            "recover checkpoint create --help"
        );
        assert_eq!(expanded("recover help"), "recover --help");
    }

    #[test]
    fn waits_are_read() {
        assert_eq!("".parse(), Ok(WaitLimit::Forever));
        assert_eq!("2s".parse(), Ok(WaitLimit::AtMost(Duration::from_secs(2))));
        assert!("soon".parse::<WaitLimit>().is_err());
    }
}
