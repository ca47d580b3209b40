//! Settings of a run and its user: command, agent, restores, notification, remote (B12, B14, S10).

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::model::Cause;
use crate::model::agent_record::AgentKind;
use crate::model::run::OnFailure;
use crate::model::spec::{Launch, PromptMode};

/// The pause after an error (L2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CooldownSettings {
    /// How long nothing is tried again after an error (or `cooldown_ms`, in milliseconds).
    #[serde(with = "super::DurationText")]
    pub duration: Duration,
}

impl Default for CooldownSettings {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(5),
        }
    }
}

/// What mutating commands are allowed to do (S16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SafeMode {
    /// What they are asked for.
    #[default]
    Off,
    /// Nothing: the work tree is never modified.
    ReadOnly,
    /// Report the changes without making them.
    DryRun,
    /// Risky operations need a confirmation, also where none is usual.
    Conservative,
}

/// What may be restored without being asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RollbackSettings {
    /// Roll back without being asked; false also sets `on_error = false`, `max_rollbacks = 0` and
    /// `retry.on_give_up = "keep"`.
    pub enabled: bool,
    /// Put the working memory back to the last checkpoint when an error is recorded; source code is never touched by
    /// that.
    pub on_error: bool,
    /// `read_only`: no file of yours is changed, neither by restores nor exports, settings or a memory rollback, while
    /// recover's own records and checkpoints go on; `dry_run`: every command only reports; conservative: restores,
    /// removals and automatic rollbacks need --yes.
    pub safe_mode: SafeMode,
}

impl Default for RollbackSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            on_error: true,
            safe_mode: SafeMode::Off,
        }
    }
}

/// Watching a person's fix (B8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManualFixSettings {
    /// How long no file may change before the checks run.
    #[serde(with = "super::DurationText")]
    pub quiet_period: Duration,
    /// Run them after each change.
    pub verify_on_change: bool,
    /// How often to compare the work tree where the system does not report changes.
    #[serde(with = "super::DurationText")]
    pub poll_interval: Duration,
}

impl Default for ManualFixSettings {
    fn default() -> Self {
        Self {
            quiet_period: Duration::from_secs(1),
            verify_on_change: true,
            poll_interval: Duration::from_millis(750),
        }
    }
}

/// A command as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CommandLine {
    /// One string, for the shell.
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// The supervised command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunnerSettings {
    /// What run and resume start when no command is given: a string for the shell, or a list; `[]` is none.
    #[schemars(extend("kind" = "command"))]
    pub command: Option<CommandLine>,
    /// The agent that it is, or that is started when no command is given: a profile (recover agents), auto or none.
    pub agent: String,
    /// Time for one attempt.
    #[serde(with = "super::OptionalDuration")]
    pub timeout: Option<Duration>,
    /// What to start instead when no retry is allowed any more; [] is none.
    #[schemars(extend("kind" = "command"))]
    pub fallback: Option<CommandLine>,
    /// Time between SIGTERM and SIGKILL.
    #[serde(with = "super::DurationText")]
    pub grace: Duration,
    /// What runs a command that is one string: SHELL -c COMMAND.
    pub shell: String,
}

/// The [`RunnerSettings::agent`] that nobody named.
pub(crate) const AUTO: &str = "auto";

impl Default for RunnerSettings {
    fn default() -> Self {
        Self {
            command: None,
            agent: AUTO.to_owned(),
            timeout: None,
            fallback: None,
            grace: Duration::from_secs(5),
            shell: "sh".to_owned(),
        }
    }
}

impl RunnerSettings {
    /// `command` as a program and its arguments.
    pub fn argv(&self, command: &CommandLine) -> Vec<String> {
        match command {
            CommandLine::Shell(line) => vec![self.shell.clone(), "-c".to_owned(), line.clone()],
            CommandLine::Argv(argv) => argv.clone(),
        }
    }
}

/// One supervised run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSettings {
    /// What follows a failed attempt: what the policy decides, or always the same.
    pub on_failure: OnFailure,
    /// How much of an attempt's output is kept, head and tail.
    #[schemars(extend("kind" = "size"))]
    pub log_limit: u64,
    /// How much failure context goes into a prompt at most.
    #[schemars(extend("kind" = "size"))]
    pub prompt_limit: u64,
    /// How long an attempt may stand still: no output, processor time, changed file or open tool call; 0s: as long as it
    /// likes; when absent, 1h for agents.
    #[serde(with = "super::OptionalDuration")]
    pub idle: Option<Duration>,
    /// How often in a row an agent may call a tool with the same input and result within 10s each; 0: as often as it
    /// likes.
    pub max_repeats: u32,
    /// Free space on the disk below which no attempt begins, and one that runs is ended.
    #[schemars(extend("kind" = "size"))]
    pub min_free: u64,
    /// Let an attempt and its checks write only in the work tree, its git folder, for temporary files and the agent's own,
    /// as --confine; the user's own value goes before a project's.
    pub confine: bool,
    /// Where a confined attempt may write, too. Only in your own configuration.
    #[schemars(extend("kind" = "place"))]
    pub confine_write: Vec<String>,
    /// Processes that an attempt left outside its session: end those in the work tree, end all, or keep; all are
    /// reported.
    pub leftovers: Leftovers,
    /// The machine does not fall asleep while a run is at work, nor while it waits unless on battery; by systemd-inhibit or
    /// caffeinate, where they are there. A closed lid is not held.
    pub inhibit_sleep: bool,
}

/// What becomes of processes that an attempt left behind outside its session. All are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Leftovers {
    /// Those that work in the work tree are ended; a daemon elsewhere lives.
    #[default]
    Auto,
    /// All are ended.
    End,
    /// None is ended.
    Keep,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            on_failure: OnFailure::Policy,
            log_limit: 2 << 20,
            prompt_limit: 8 << 10,
            idle: None,
            max_repeats: 12,
            min_free: 256 << 20,
            confine: false,
            confine_write: Vec::new(),
            leftovers: Leftovers::Auto,
            inhibit_sleep: true,
        }
    }
}

/// What a work tree of a run's own gets beside what git has of it, before the run begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IsolatedSettings {
    /// Files and folders that git ignores and that are copied into it, in no time where the file system clones files.
    #[schemars(extend("kind" = "below"), example = ["node_modules", ".venv"])]
    pub copy: Vec<String>,
    /// Those that are links to yours instead: what the run writes there, it writes to yours, and no checkpoint has it.
    #[schemars(extend("kind" = "below"))]
    pub share: Vec<String>,
    /// A shell command that is run in it then, such as the installation of dependencies.
    pub setup: Option<String>,
}

/// What is examined beside the feedback loops' exit codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChecksSettings {
    /// Run a failing loop again unchanged; if it passes, it is flaky.
    pub flaky: bool,
    /// Run the loops before the first attempt; what fails there is not the attempt's doing.
    pub baseline: bool,
    /// Notice an attempt that removes or weakens tests or changes the feedback commands.
    pub tamper: bool,
}

impl Default for ChecksSettings {
    fn default() -> Self {
        Self {
            flaky: true,
            baseline: true,
            tamper: true,
        }
    }
}

/// Agents that run --agent NAME starts; a section named like a built-in one (recover agents) changes its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentProfile {
    /// What is started; NAME itself when absent.
    #[serde(default)]
    #[schemars(example = &"mybot")]
    pub program: String,
    /// What makes it work without a person; with `{prompt}` or `{prompt_file}` where it belongs.
    #[serde(default)]
    #[schemars(extend("kind" = "word"), example = ["--batch", "--task", "{prompt_file}"])]
    pub args: Vec<String>,
    /// How it gets the prompt; stdin when absent.
    #[serde(default)]
    #[schemars(example = &"file")]
    pub prompt: PromptMode,
    /// Whose records it prints; text, which is none, when absent.
    #[serde(default = "text")]
    #[schemars(extend("enum" = OUTPUTS), example = &"text")]
    pub output: String,
    /// What goes on in the session `{session}`; none when absent.
    #[serde(default)]
    #[schemars(extend("kind" = "word"), example = ["--continue", "{session}"])]
    pub resume_args: Vec<String>,
    /// What ends it when it has spent `{usd}` dollars, for `retry.max_cost_usd`; none when absent.
    #[serde(default)]
    #[schemars(extend("kind" = "word"), example = ["--max-dollars", "{usd}"])]
    pub budget_args: Vec<String>,
    /// Where it keeps its own files, which a confined attempt may write; also `$VARIABLE`.
    #[serde(default)]
    #[schemars(extend("kind" = "word"), example = ["~/.mybot", "$MYBOT_HOME"])]
    pub folders: Vec<String>,
    /// What lets it edit the work tree without asking, and nothing more.
    #[serde(default)]
    #[schemars(extend("kind" = "word"), example = ["--allow-edits"])]
    pub edit_args: Vec<String>,
    /// What skips all permissions: taken in place of `edit_args` with --yolo.
    #[serde(default)]
    #[schemars(extend("kind" = "word"), example = ["--allow-everything"])]
    pub yolo_args: Vec<String>,
    /// The whole command that speaks the Agent Client Protocol, for `--agent acp:NAME`; none when absent.
    #[serde(default)]
    #[schemars(extend("kind" = "word"), example = ["mybot", "--acp"])]
    pub acp: Vec<String>,
    /// What exit codes mean where the output does not tell.
    #[serde(default)]
    #[schemars(extend("kind" = "exit_codes"), extend("examples" = [{"3": "RATE_LIMITED", "4": "AUTH_FAILED"}]))]
    pub exit_codes: BTreeMap<String, Cause>,
}

/// What [`AgentProfile::output`] can be.
const OUTPUTS: [&str; 8] = [
    "text", "claude", "codex", "gemini", "opencode", "qwen", "copilot", "aider",
];

fn text() -> String {
    "text".to_owned()
}

impl AgentProfile {
    /// Whose records it prints.
    pub fn kind(&self) -> Option<AgentKind> {
        AgentKind::from_name(&self.output)
    }

    /// Whether it can go on in an earlier session.
    pub fn has_sessions(&self) -> bool {
        !self.resume_args.is_empty()
    }

    /// The command for a fresh session, in which `{prompt}` and `{prompt_file}` are not filled in yet.
    pub fn command(&self, yolo: bool) -> Vec<String> {
        let permissions = if yolo {
            &self.yolo_args
        } else {
            &self.edit_args
        };
        std::iter::once(&self.program)
            .chain(&self.args)
            .chain(permissions)
            .cloned()
            .collect()
    }

    /// What is recorded of a start under `name`.
    pub fn launch(&self, name: &str, yolo: bool) -> Launch {
        Launch {
            agent: name.to_owned(),
            prompt: self.prompt,
            resume_args: self.resume_args.clone(),
            budget_args: self.budget_args.clone(),
            exit_codes: self.exit_codes.clone(),
            edit_args: self.edit_args.clone(),
            yolo,
            acp: false,
        }
    }
}

/// What a person is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NotifyEvent {
    /// A run stands until a person does something.
    NeedsPerson,
    /// A run waits for a known time.
    Parked,
    /// An iteration was given up.
    GaveUp,
    /// A run ended, and needs nobody.
    Ended,
}

/// What is started when something happens in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotifySettings {
    /// What is started, for 10 s at most: a string for the shell, or a list; `[]` is none.
    #[schemars(extend("kind" = "command"))]
    pub command: Option<CommandLine>,
    /// What it is started for: a run stands until a person does something; waits for a known time; gave an iteration
    /// up; ended otherwise.
    pub on: Vec<NotifyEvent>,
    /// A dead man's switch: whoever hears no more of it knows that the machine or the run is gone.
    pub heartbeat: HeartbeatSettings,
}

/// What is started again and again while a run is at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatSettings {
    /// What is started while a run is at work or waits, for 10 s at most: a string for the shell, or a list; `[]` is none.
    #[schemars(extend("kind" = "command"))]
    pub command: Option<CommandLine>,
    /// The time between two starts; the first is at the run's begin.
    #[serde(with = "super::DurationText")]
    #[schemars(extend("minimum" = 1))]
    pub every: Duration,
}

impl Default for HeartbeatSettings {
    fn default() -> Self {
        Self {
            command: None,
            every: Duration::from_secs(5 * 60),
        }
    }
}

impl Default for NotifySettings {
    fn default() -> Self {
        use NotifyEvent::{Ended, GaveUp, NeedsPerson, Parked};
        Self {
            command: None,
            on: vec![NeedsPerson, Parked, GaveUp, Ended],
            heartbeat: HeartbeatSettings::default(),
        }
    }
}

/// When what happens is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemoteMode {
    /// Before an attempt begins.
    #[default]
    Strict,
    /// When it ends.
    Lazy,
}

/// What becomes of files that git stores through a filter, encrypted say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilteredFiles {
    /// They stay on this machine.
    #[default]
    Withhold,
    /// They are sent and exported as they are in the work tree.
    Send,
}

/// An object store that keeps runs beyond this machine, for --remote NAME: a bucket of S3, or of what speaks its protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoreSettings {
    /// Where it is: `s3://BUCKET/PREFIX`, with `?endpoint=URL&region=NAME` where it is not Amazon's. Keys come from
    /// `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or the profile `AWS_PROFILE` of ~/.aws.
    #[schemars(example = &"s3://team-runs/recover?region=eu-central-1")]
    pub url: String,
}

/// The remote that keeps a run beyond this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteSettings {
    /// The remote, by the name that git knows it by, or of a [store.NAME]; none: nothing is sent.
    #[schemars(extend("kind" = "remote_name"))]
    pub name: Option<String>,
    /// strict: an attempt begins only once its record is there; lazy: sent when an attempt ends.
    pub mode: RemoteMode,
    /// How long a claim holds without a sign of life.
    #[serde(with = "super::DurationText")]
    #[schemars(extend("minimum" = 30))]
    pub lease: Duration,
    /// The URL that may be sent to without a question.
    pub consent: Option<String>,
    /// Files over this stay here.
    #[schemars(extend("kind" = "size"))]
    pub max_object: u64,
    /// Send untracked files.
    pub untracked: bool,
    /// Files that git stores through a filter other than lfs (git-crypt, say): withhold: they stay here, in exports
    /// too; send: they go as they are in the work tree.
    pub filtered: FilteredFiles,
    /// What is run once after a run was taken over from another machine; [] is none.
    #[schemars(extend("kind" = "command"))]
    pub setup: Option<CommandLine>,
    /// A file of keys in ssh's format: only what they signed is believed.
    pub allowed_signers: Option<String>,
}

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            name: None,
            mode: RemoteMode::Strict,
            lease: Duration::from_secs(30 * 60),
            consent: None,
            max_object: 50 << 20,
            untracked: true,
            filtered: FilteredFiles::Withhold,
            setup: None,
            allowed_signers: None,
        }
    }
}

/// When colour is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where the trace of a run is sent when it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtelSettings {
    /// The URL of an OTLP/HTTP receiver (JSON), to which /v1/traces is added; https needs curl.
    #[schemars(example = "http://localhost:4318")]
    pub endpoint: Option<String>,
    /// Headers of the request, each NAME: VALUE.
    #[schemars(example = ["Authorization: Bearer TOKEN"])]
    pub headers: Vec<String>,
}

/// How text looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UiSettings {
    /// When to use color, as --color.
    pub color: ColorWhen,
}
