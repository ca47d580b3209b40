//! Settings of a run: the command, the pause after an error, what may be restored, a person's fix.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text;
use crate::model::run::OnFailure;

/// The pause after an error (L2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CooldownSettings {
    /// How long nothing is tried again after an error.
    #[serde(with = "text::duration")]
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
    #[serde(with = "text::duration")]
    pub quiet_period: Duration,
    /// Whether they run by themselves after a change.
    pub verify_on_change: bool,
    /// How often the work tree is compared where the system does not report changes.
    #[serde(with = "text::duration")]
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
    #[serde(with = "text::optional")]
    pub timeout: Option<Duration>,
    /// The command of the last attempt, when no retry is allowed any more (S9).
    pub fallback: Option<CommandLine>,
    /// Time between SIGTERM and SIGKILL.
    #[serde(with = "text::duration")]
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
