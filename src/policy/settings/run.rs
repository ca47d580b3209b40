//! Settings of a run and its user: command, agent, checkpoints, restores, notification, remote (B12, B14, S10, S13, S14).

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::agent_record::AgentKind;
use crate::model::run::OnFailure;
use crate::model::spec::{Launch, PromptMode};
use crate::model::{Cause, StorageType};

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
        }
    }
}

/// Where the lane records are by default; it follows the state directory.
pub(crate) const DEFAULT_LANE_FILE: &str = ".ultraplan/state/checkpoints.json";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY: u64 = 86_400;

/// What a checkpoint captures, when, and how it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointSettings {
    /// false: none at an interval, after operations or by hooks. A run's start, its attempts' ends and a restore have
    /// theirs.
    pub enabled: bool,
    /// Commit each successful iteration on the branch.
    pub auto_commit: bool,
    /// snapshot: a hidden commit; commit: also one on the branch; patch: also a patch file.
    pub storage: StorageType,
    /// Where the lane records are, relative to the project root.
    pub lane_file: String,
    /// Untracked files over this are left out and listed.
    #[schemars(extend("kind" = "size"))]
    pub max_file_size: u64,
    /// More untracked files than this are refused (ten times as many without a repository); of what an attempt made,
    /// the largest folders are left out.
    pub max_untracked_files: u64,
    /// More bytes in untracked files than this are refused (ten times as many without a repository); of what an attempt
    /// made, the largest folders are left out.
    #[schemars(extend("kind" = "size"))]
    pub max_untracked_bytes: u64,
    /// Ignored paths to capture all the same.
    #[schemars(extend("kind" = "glob"))]
    pub include: Vec<String>,
    /// Paths to leave out; they are never overwritten or deleted either.
    #[schemars(extend("kind" = "glob"))]
    pub exclude: Vec<String>,
    /// A checkpoint is due when the latest is this old: during attempts, in hooks, --if-due.
    #[serde(with = "super::OptionalDuration")]
    pub interval: Option<Duration>,
    /// One is due after this many operations too: steps, an agent's commands, --if-due --trigger operation.
    #[schemars(range(min = 1))]
    pub every_operations: Option<u32>,
}

impl Default for CheckpointSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            auto_commit: false,
            storage: StorageType::Snapshot,
            lane_file: DEFAULT_LANE_FILE.to_owned(),
            max_file_size: 50 * MIB,
            max_untracked_files: 20_000,
            max_untracked_bytes: GIB,
            include: Vec::new(),
            exclude: Vec::new(),
            interval: Some(Duration::from_secs(300)),
            every_operations: Some(10),
        }
    }
}

/// Which ignored files have copies beside the checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureSettings {
    /// These files, at any depth: up to 1 MiB each, 100 of them; none where CI is set.
    #[schemars(extend("kind" = "glob"))]
    pub precious: Vec<String>,
}

impl Default for CaptureSettings {
    /// What holds a developer's own settings, and secrets, by convention.
    fn default() -> Self {
        Self {
            precious: [".env", ".env.*", "*.local", "*.local.*", ".envrc"]
                .map(str::to_owned)
                .into(),
        }
    }
}

/// The copy of the repository outside of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VaultSettings {
    /// Keep one; there is none where CI is set, or where its folder would be in memory or in an overlay.
    pub enabled: bool,
    /// The folder of all vaults, by default `$XDG_STATE_HOME/recover/vault`.
    #[schemars(extend("kind" = "place"))]
    pub dir: Option<String>,
    /// How long a vault stays whose repository is gone.
    #[serde(with = "super::DurationText")]
    pub keep_gone: Duration,
}

impl Default for VaultSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            dir: None,
            keep_gone: Duration::from_secs(30 * 24 * 3600),
        }
    }
}

impl CheckpointSettings {
    /// The storage that `storage` and `auto_commit` amount to: with `auto_commit`, a snapshot is a commit as well.
    pub fn effective_storage(&self) -> StorageType {
        match self.storage {
            StorageType::Snapshot if self.auto_commit => StorageType::Commit,
            storage => storage,
        }
    }
}

/// What `accept` leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptSettings {
    /// New files over this are committed only with --include PATH.
    #[schemars(extend("kind" = "size"))]
    pub max_new_file: u64,
    /// New files that are not committed, unless --include names one.
    #[schemars(extend("kind" = "glob"))]
    pub leave_out: Vec<String>,
}

impl Default for AcceptSettings {
    fn default() -> Self {
        Self {
            max_new_file: MIB,
            leave_out: Vec::new(),
        }
    }
}

/// What happens to the checkpoints of a run that failed (S13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRunFailure {
    /// All of them stay.
    #[default]
    KeepAll,
    /// The other limits apply.
    Limits,
}

/// Which checkpoints are removed by `prune` and when a run ends. Protected ones (S14) come before any limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetentionSettings {
    /// The newest checkpoints, which stay whatever their age.
    pub keep_last: u32,
    /// The others go at this age.
    #[serde(with = "super::OptionalDuration")]
    pub max_age: Option<Duration>,
    /// Checkpoints of one session.
    #[schemars(range(min = 1))]
    pub max_per_session: Option<u32>,
    /// Younger ones with a failed verdict stay.
    pub keep_failed: bool,
    /// Younger ones with a passed verdict stay.
    pub keep_successful: bool,
    /// How long after its end, or after it was accepted or closed, a run keeps all of them.
    #[serde(with = "super::DurationText")]
    pub after_end: Duration,
    /// How many stay then of a run that ended well, milestones aside.
    pub on_success_keep_last: Option<u32>,
    /// Those of a run that failed: `keep_all`, or what the other limits say.
    pub on_failure: OnRunFailure,
    /// How long after its end a run that failed keeps all, unless it is closed.
    #[serde(with = "super::OptionalDuration")]
    pub scheduled_max_age: Option<Duration>,
    /// Tidy up runs that failed at that age; false also sets `scheduled_max_age = "none"`.
    pub scheduled_cleanup: bool,
    /// Bytes that all checkpoints may hold beyond what branches hold (before compression).
    #[schemars(extend("kind" = "size"))]
    pub max_total_size: Option<u64>,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self {
            keep_last: 10,
            max_age: Some(Duration::from_secs(7 * DAY)),
            max_per_session: Some(20),
            keep_failed: true,
            keep_successful: true,
            after_end: Duration::from_secs(7 * DAY),
            on_success_keep_last: Some(3),
            on_failure: OnRunFailure::KeepAll,
            scheduled_max_age: Some(Duration::from_secs(30 * DAY)),
            scheduled_cleanup: true,
            max_total_size: Some(5 * GIB),
        }
    }
}

/// The loop's own state files, as globs below the state directory (S5, L3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySettings {
    /// Never rolled back.
    #[schemars(extend("kind" = "glob"))]
    pub long_term: Vec<String>,
    /// Cleared after an error, so that the loop starts afresh.
    #[schemars(extend("kind" = "glob"))]
    pub loop_state: Vec<String>,
    /// More state than this in a checkpoint is an error that names the largest file.
    #[schemars(extend("kind" = "size"))]
    pub max_state_size: u64,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            long_term: Vec::new(),
            loop_state: Vec::new(),
            max_state_size: 100 * KIB,
        }
    }
}

/// What a person is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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
}

impl Default for NotifySettings {
    fn default() -> Self {
        use NotifyEvent::{Ended, GaveUp, NeedsPerson, Parked};
        Self {
            command: None,
            on: vec![NeedsPerson, Parked, GaveUp, Ended],
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

/// The git remote that keeps a run beyond this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemoteSettings {
    /// The remote, by the name that git knows it by; none: nothing is sent.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_commit_makes_a_snapshot_a_commit_b12() {
        let plain = CheckpointSettings::default();
        assert_eq!(plain.effective_storage(), StorageType::Snapshot);
        assert_eq!(
            CheckpointSettings {
                auto_commit: true,
                ..plain.clone()
            }
            .effective_storage(),
            StorageType::Commit
        );
        let patch = CheckpointSettings {
            auto_commit: true,
            storage: StorageType::Patch,
            ..plain
        };
        assert_eq!(patch.effective_storage(), StorageType::Patch);
    }
}
