//! What is a person's to set rather than a project's: notification, the remote that keeps runs, how text looks.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::run::CommandLine;
use super::text;

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
    #[serde(with = "text::duration")]
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
