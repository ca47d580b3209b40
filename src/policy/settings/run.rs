//! Settings of a run and its user: command, agent, checkpoints, restores, notification, remote (B12, B14, S10, S13, S14).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::agent_record::AgentKind;
use crate::model::checkpoint::StorageType;
use crate::model::failure::Cause;
use crate::model::run::OnFailure;
use crate::model::spec::{Launch, PromptMode};

/// The pause after an error (L2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CooldownSettings {
    /// How long nothing is tried again after an error.
    #[serde(with = "super::duration")]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackSettings {
    /// Whether anything is rolled back without being asked.
    pub enabled: bool,
    /// Whether a recorded error rolls back to the last checkpoint (L3).
    pub on_error: bool,
    /// What mutating commands are allowed to do.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualFixSettings {
    /// How long no file may change before the feedback loops run.
    #[serde(with = "super::duration")]
    pub quiet_period: Duration,
    /// Whether they run by themselves after a change.
    pub verify_on_change: bool,
    /// How often the work tree is compared where the system does not report changes.
    #[serde(with = "super::duration")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// One string, for the shell.
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// The supervised command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerSettings {
    /// The command of `run` and `resume` where none is given.
    pub command: Option<CommandLine>,
    /// The agent that it is, or that is started where there is no command: the name of a profile, `auto` (found out by
    /// the command and its output) or `none`.
    pub agent: String,
    /// Time for one attempt.
    #[serde(with = "super::optional")]
    pub timeout: Option<Duration>,
    /// The command of the last attempt, when no retry is allowed any more (S9).
    pub fallback: Option<CommandLine>,
    /// Time between SIGTERM and SIGKILL.
    #[serde(with = "super::duration")]
    pub grace: Duration,
    /// What runs a command that is one string (`SHELL -c COMMAND`).
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    /// What follows a failed attempt.
    pub on_failure: OnFailure,
    /// Bytes kept of an attempt's output, head and tail.
    pub log_limit: u64,
    /// Bytes of failure context in a prompt.
    pub prompt_limit: u64,
    /// What becomes of processes that an attempt left behind outside its session.
    pub leftovers: Leftovers,
}

/// What becomes of processes that an attempt left behind outside its session. All are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
            leftovers: Leftovers::Auto,
        }
    }
}

/// What is examined beside the feedback loops' exit codes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksSettings {
    /// Run a failing loop again unchanged: if it passes, it is flaky.
    pub flaky: bool,
    /// Run the loops at the initial checkpoint: what fails there is not the attempt's doing.
    pub baseline: bool,
    /// Compare tests and feedback commands with those of the initial checkpoint.
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

/// A program that works on a prompt without a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProfile {
    /// The program; without a slash it is looked for on `PATH`.
    pub program: String,
    /// What makes it work without a person and print its records.
    #[serde(default)]
    pub args: Vec<String>,
    /// How it gets the prompt.
    #[serde(default)]
    pub prompt: PromptMode,
    /// Whose records it prints: the name of an [`AgentKind`], or `text` for none.
    #[serde(default = "text")]
    pub output: String,
    /// What goes on in the session `{session}`; empty where it has none.
    #[serde(default)]
    pub resume_args: Vec<String>,
    /// What lets it edit the work tree without asking, and nothing more.
    #[serde(default)]
    pub edit_args: Vec<String>,
    /// What skips all permissions, in place of the former.
    #[serde(default)]
    pub yolo_args: Vec<String>,
    /// What exit codes mean where the records do not say.
    #[serde(default)]
    pub exit_codes: BTreeMap<String, Cause>,
}

fn text() -> String {
    "text".to_owned()
}

impl AgentProfile {
    /// The `output` of a program that prints no records.
    pub const TEXT: &str = "text";

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointSettings {
    /// Whether the automatic triggers of S10 take checkpoints: the interval, operations, the hooks of agents and git. Those at
    /// a run's start, at an attempt's end and before a restore or an atomic step are always taken: a rollback, a decision
    /// and an undo need them. So is what is asked for, `--if-due` too.
    pub enabled: bool,
    /// Whether a successful iteration becomes a commit on the branch.
    pub auto_commit: bool,
    /// How a checkpoint is kept; see [`Self::effective_storage`].
    pub storage: StorageType,
    /// Where the lane records are, relative to the project root (C1).
    pub lane_file: String,
    /// Bytes over which an untracked file is left out.
    pub max_file_size: u64,
    /// Untracked files over which a capture is refused.
    pub max_untracked_files: u64,
    /// Bytes of untracked files over which a capture is refused.
    pub max_untracked_bytes: u64,
    /// Globs of ignored paths that are captured all the same.
    pub include: Vec<String>,
    /// Globs of paths that are left out.
    pub exclude: Vec<String>,
    /// How old the latest checkpoint gets before another is due (S10).
    #[serde(with = "super::optional")]
    pub interval: Option<Duration>,
    /// After how many recorded operations a checkpoint is due (S10).
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureSettings {
    /// Globs of those files, at any depth. The copies are never part of a checkpoint.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptSettings {
    /// Bytes over which a new file is committed only by its own name.
    pub max_new_file: u64,
    /// Globs of new files that are never committed unasked.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRunFailure {
    /// All of them stay.
    #[default]
    KeepAll,
    /// The other limits apply.
    Limits,
}

/// Which checkpoints are removed by `prune` and when a run ends. Protected ones (S14) come before any limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionSettings {
    /// The newest ones that always stay.
    pub keep_last: u32,
    /// Age from which the others go.
    #[serde(with = "super::optional")]
    pub max_age: Option<Duration>,
    /// Checkpoints of one session.
    pub max_per_session: Option<u32>,
    /// Whether younger ones with a failed verdict stay.
    pub keep_failed: bool,
    /// Whether younger ones with a passed verdict stay.
    pub keep_successful: bool,
    /// How long after its end a run that ended well keeps all of them.
    #[serde(with = "super::duration")]
    pub after_end: Duration,
    /// How many of a run that ended well stay then, milestones aside.
    pub on_success_keep_last: Option<u32>,
    /// What happens to those of a run that failed.
    pub on_failure: OnRunFailure,
    /// How long after its end even a run that failed keeps all of them.
    #[serde(with = "super::optional")]
    pub scheduled_max_age: Option<Duration>,
    /// Whether that happens at all; the age says so too.
    pub scheduled_cleanup: bool,
    /// Bytes that all of them together may hold beyond what branches hold, uncompressed.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySettings {
    /// Never rolled back.
    pub long_term: Vec<String>,
    /// Cleared after an error, so that the loop starts afresh.
    pub loop_state: Vec<String>,
    /// Bytes of state in a checkpoint over which it is an error (S2).
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifySettings {
    /// What is started.
    pub command: Option<CommandLine>,
    /// For what.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteMode {
    /// Before an attempt begins.
    #[default]
    Strict,
    /// When it ends.
    Lazy,
}

/// What becomes of files that git stores through a filter, encrypted say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilteredFiles {
    /// They stay on this machine.
    #[default]
    Withhold,
    /// They are sent and exported as they are in the work tree.
    Send,
}

/// The git remote that keeps a run beyond this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteSettings {
    /// Its name; `None`: nothing is sent.
    pub name: Option<String>,
    /// When what happens is sent.
    pub mode: RemoteMode,
    /// How long a claim holds without a sign of life.
    #[serde(with = "super::duration")]
    pub lease: Duration,
    /// The URL that may be sent to without a question.
    pub consent: Option<String>,
    /// Bytes over which a file stays here.
    pub max_object: u64,
    /// Whether untracked files are sent.
    pub untracked: bool,
    /// What becomes of files that git stores through a filter.
    pub filtered: FilteredFiles,
    /// What is run once after a take-over.
    pub setup: Option<CommandLine>,
    /// A file of keys: only what they signed is believed.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// How text looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UiSettings {
    /// When colour is used.
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
