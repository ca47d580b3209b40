//! Arguments of the commands that read what is recorded, set a project up, or exchange files with other programs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::clock;
use crate::model::import::ImportKind;

use super::attempt::EvidenceArgs;
use super::{RunName, duration, lines, number};

/// Show whether and when another attempt is allowed.
#[derive(Args, Debug, Default)]
pub(crate) struct RetryStatusArgs {
    #[command(flatten)]
    pub run: RunName,

    /// Answer for the next attempt of this iteration
    ///
    /// What another one failed of, or was given up for, does not count; a wait, and what every attempt would fail of, does.
    #[arg(long, value_name = "N", value_parser = number::<1>, allow_negative_numbers = true, conflicts_with = "reset")]
    pub iteration: Option<u32>,

    /// Answer for the next attempt of this subtask
    #[arg(long, value_name = "S", conflicts_with = "reset")]
    pub subtask: Option<String>,

    /// Exit with 0 (now), 6 (wait), 7 (exhausted) or 8 (a person is needed)
    #[arg(long)]
    pub check: bool,

    /// Wait until a retry is allowed (at most DUR, then exit 9)
    #[arg(long, value_name = "DUR", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub wait: Option<clock::WaitLimit>,

    /// Clear the run's failures and its cooldown
    ///
    /// With --task alone those of all runs of the task.
    #[arg(long, conflicts_with = "wait")]
    pub reset: bool,
}

/// Show the state of the run and what you can do next.
///
/// The result, the changes, what to look at, time and cost, and the commands that keep, fix and discard it. With
/// --verbose all that is known: attempts, checkpoints, budgets, the failure, and every way to go on. The run is that of --run or
/// of a series, else the one at work in this work tree, else its latest; in a work tree without one the latest of another, as
/// recover alone shows it.
#[derive(Args, Debug, Default)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub run: RunName,

    /// Refresh until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

/// Show the event log.
///
/// The events of all runs, or of RUN only.
#[derive(Args, Debug, Default)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub run: RunName,

    /// Show only the newest N events
    #[arg(long, value_name = "N", value_parser = lines, allow_negative_numbers = true)]
    pub limit: Option<usize>,

    /// Keep printing new events until Ctrl-C
    #[arg(long)]
    pub follow: bool,
}

/// Write a report of the run.
///
/// What went wrong, what was tried, what to do next, and the whole timeline, as Markdown, as one self-contained HTML file, or as JSON. Escalated and failed runs already have a report.md beside
/// their logs.
#[derive(Args, Debug, Default)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub run: RunName,

    /// Output format [default: by the -o file's name, else md]
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,

    /// Include only the attempts of this subtask
    #[arg(long, value_name = "S")]
    pub subtask: Option<String>,

    /// Report on the runs that lie on this remote, on one page
    ///
    /// Each with what it came to, its attempts, who holds it, and why it failed; what waits for a person comes first. With RUN
    /// that run alone.
    #[arg(long, value_name = "NAME", conflicts_with = "subtask")]
    pub remote: Option<String>,

    /// With --remote: only the runs with an event in this time [default: 24h]
    #[arg(long, value_name = "DUR", value_parser = duration, requires = "remote")]
    pub since: Option<Duration>,

    /// Output file, written atomically (- for stdout)
    #[arg(short, long, value_name = "F", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// What a report is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum ReportFormat {
    /// Markdown.
    Md,
    /// One HTML file with everything in it.
    Html,
    /// The JSON document.
    Json,
    /// Title and body of a pull request: the first line is the title.
    Pr,
    /// A trace for an OpenTelemetry collector, as OTLP in JSON.
    Otlp,
}

/// Write a configuration for this project.
///
/// Looks what kind of project this is (Cargo.toml, package.json, pyproject.toml, go.mod, Makefile, justfile, settings of
/// agents) and writes .ultraplan/recover.toml with the checks and the agent that fit. With --full it has every key with
/// its default, as comments.
#[derive(Args, Debug, Default)]
pub(crate) struct InitArgs {
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,

    /// Write every key with its default, as comments
    #[arg(long)]
    pub full: bool,
}

/// Try recover on a small project with an agent that fails.
///
/// Makes the project with git in DIR and runs a night of six iterations there, in ten seconds or so, without a network and
/// without a key. Its agent, a shell script, breaks a test, crashes halfway, hangs, and cannot do one of its tasks.
/// The project stays, for status, browse, report, rollback, undo and accept: on a terminal they are shown one by one,
/// elsewhere the commands to type are printed.
#[derive(Args, Debug, Default)]
pub(crate) struct DemoArgs {
    /// An empty folder, or one that does not exist yet [default: a new temporary folder]
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// Show the configuration.
///
/// What holds here, from the project's .ultraplan/recover.toml, the user's own ~/.config/recover/config.toml, presets and
/// defaults.
#[derive(Args, Debug, Default)]
pub(crate) struct ConfigArgs {
    /// Show where each value comes from
    #[arg(long)]
    pub origins: bool,
}

/// Check the state and its checkpoints, and repair them.
///
/// The hooks that are installed are listed with them: where, what they call, when they were called last.
#[derive(Args, Debug, Default)]
pub(crate) struct DoctorArgs {
    /// Repair what can be repaired
    #[arg(long)]
    pub repair: bool,

    /// Rebuild a lost or damaged ledger from the checkpoints
    ///
    /// Also that of a moved or copied project; the old one is kept.
    #[arg(long)]
    pub rebuild: bool,
}

/// Explain why something failed, from its output.
///
/// Touches no state.
#[derive(Args, Debug, Default)]
pub(crate) struct ClassifyArgs {
    #[command(flatten)]
    pub evidence: EvidenceArgs,

    /// File with its standard output
    #[arg(long, value_name = "F", conflicts_with = "log")]
    pub stdout: Option<PathBuf>,

    /// Time limit that was set
    #[arg(long, hide_short_help = true, value_name = "DUR", value_parser = duration)]
    pub deadline: Option<Duration>,

    /// Also show the rules that matched and lost
    #[arg(long)]
    pub explain: bool,
}

/// Print a shell's completion script.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell to configure
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Print the JSON Schema of --json output.
///
/// Of the named command, else of all commands.
#[derive(Args, Debug, Default)]
pub(crate) struct SchemaArgs {
    /// Command, such as checkpoint create
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Write the man pages.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Where a program that has no profile here gets one.
pub(super) const AGENTS_HELP: &str = r#"Examples:
  # what is installed, and how each is started
  recover agents
  # the same, for a script
  recover agents --json

A program that recover does not know, say mybot, which takes its task as a file and prints text:

  [agent.mybot]
  args = ["--batch", "--task", "{prompt_file}"]
  prompt = "file"
  edit_args = ["--allow-edits"]
  yolo_args = ["--allow-everything"]
  resume_args = ["--continue", "{session}"]
  exit_codes = { 3 = "RATE_LIMITED", 4 = "AUTH_FAILED" }

recover run --agent mybot --prompt "Make the tests pass" then starts mybot --batch --task FILE --allow-edits. One that speaks
the Agent Client Protocol needs no profile: recover run --agent "acp:mybot --acp"; acp = ["mybot", "--acp"] gives it a name."#;

/// Trust what a project's configuration starts.
///
/// Values of .ultraplan/recover.toml that start programs, widen rights or mask what is shown (checks, [runner] command,
/// fallback, agent and shell, [agent.NAME], [notify], [redact], skip_permissions) came with the project, perhaps with a clone:
/// they count only once they are trusted. recover trust shows them, with what changed since, and remembers them for this repository and all its work
/// trees; any change of one of them ends it. A command that would start an untrusted one asks on a terminal, and is refused
/// elsewhere (13); --trust, or RECOVER_TRUST=1 in the environment, is enough for one call. What is typed on the command line,
/// and what your own configuration says, needs no trust.
///
/// State that came with a clone, an archive or a cache only holds back: its cooldowns and counts are honoured, nothing that
/// is recorded in it is run, and nothing is added to it. --state takes it over whole, as if it had been made here, and on a
/// terminal asks first; with --dry-run it shows what is in it, and which recorded commands could be run then. In CI, where a
/// cache brings the state directory, RECOVER_TRUST=1 in the environment is enough for a call.
#[derive(Args, Debug)]
pub(crate) struct TrustArgs {
    /// Take the state directory over: its runs, checkpoints and recorded commands
    #[arg(long, conflicts_with = "revoke")]
    pub state: bool,

    /// Forget what was trusted of this repository's configuration
    #[arg(long)]
    pub revoke: bool,
}

/// Import files of other tools and archived checkpoints.
///
/// Battles, attempt histories, lane records, session checkpoints and a loop's cooldown. Formats are detected by content. All files are validated before anything is recorded; importing a file again adds only
/// what is new. Checkpoints of other tools become records; git restores their content where their commits are in this
/// repository. --run names the run for attempt histories and cooldowns. A bundle of `checkpoint prune --archive` or
/// `checkpoint export --bundle` restores its checkpoint, pinned.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// Files to import; of a folder, the JSON files and bundles in it
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// Format of the files [default: detected]
    #[arg(long, value_name = "KIND", value_enum)]
    pub kind: Option<ImportKind>,
}

/// Rewrite the exported files from the ledger.
///
/// Those that differed are listed.
#[derive(Args, Debug, Default)]
pub(crate) struct SyncArgs {
    /// Write all of them, including session checkpoints, into this folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub to: Option<PathBuf>,
}
