//! Why an attempt ended badly (requirements B1, B2, A1, S8).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::{CheckKind, Timestamp};

/// Who failed (B2).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum FailureType {
    /// A build, test, lint or type check reported a problem of the project.
    FeedbackFailure,
    /// A time limit ended the run or a test in it.
    Timeout,
    /// The agent's API or command-line program reported an error; `claude_error` in the battle view.
    #[serde(alias = "claude_error")]
    AgentError,
    /// The machine was the reason: disk, permissions, a missing tool, network.
    SystemError,
    /// A signal or a user interrupted the run.
    Cancellation,
    /// A process died from a signal or ran out of memory.
    Crash,
}

/// The rule that knows a login service which is down.
pub(crate) const LOGIN_SERVICE: &str = "agent.login-service";

impl Failure {
    /// What an agent's run waits for that ended so; `None` where waiting changes nothing.
    pub fn weather(&self) -> Option<Weather> {
        let of_login = |evidence: &Evidence| evidence.rule == LOGIN_SERVICE;
        match (self.cause, self.detail) {
            _ if self.evidence.first().is_some_and(of_login) => Some(Weather::Login),
            (Cause::RateLimited, Some(CauseDetail::UsageLimit)) => Some(Weather::UsageLimit),
            (Cause::NetworkError, _) => Some(Weather::Network),
            (Cause::RateLimited, _) | (Cause::Unknown, Some(CauseDetail::ServiceError)) => {
                Some(Weather::Outage)
            }
            _ => None,
        }
    }

    /// Whether it names the time after `now` at which a usage limit resets.
    pub fn names_reset(&self, now: Timestamp) -> bool {
        self.detail == Some(CauseDetail::UsageLimit) && self.retry_after > Some(now)
    }

    /// What it was in a word or two: the status of the API (`529`), the name of a network error, else what the cause is called.
    pub fn in_short(&self) -> String {
        let is_limit = self.detail == Some(CauseDetail::UsageLimit);
        let word = |word: &&str| {
            let is_status = word.len() == 3 && (*word == "429" || word.starts_with('5'));
            let is_status = is_status && word.bytes().all(|byte| byte.is_ascii_digit());
            let is_errno = word.len() > 4
                && word.starts_with('E')
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            !is_limit && is_status || is_errno && self.cause == Cause::NetworkError
        };
        let mut words = self
            .message
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named = words.find(word);
        let other = match (self.cause, self.detail) {
            (_, Some(CauseDetail::UsageLimit)) => "usage limit",
            (_, Some(CauseDetail::Overloaded)) => "overloaded",
            (_, Some(CauseDetail::ServiceError)) => "server error",
            (Cause::NetworkError, _) => "no connection",
            (Cause::RateLimited, _) => "too many requests",
            _ => self.cause.as_str(),
        };
        named.unwrap_or(other).to_owned()
    }

    /// Whether nobody's work was wrong: a limit, the network or the service of the agent, a time limit, a kill, a crash of
    /// `recover`.
    pub fn is_interruption(&self) -> bool {
        use CauseDetail::{ServiceError, SessionNotFound, SupervisorLost};
        let service = matches!(
            self.detail,
            Some(SupervisorLost | ServiceError | SessionNotFound)
        );
        let network = self.cause == Cause::NetworkError && self.kind == FailureType::AgentError;
        service
            || network
            || self.kind == FailureType::Timeout
            || matches!(
                self.cause,
                Cause::RateLimited | Cause::Cancelled | Cause::Crashed
            )
    }
}

/// What a run waits for that is not its agent's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weather {
    /// The reset of a usage limit or a quota.
    UsageLimit,
    /// The agent's provider: it is down, overloaded, or refuses for now.
    Outage,
    /// The network.
    Network,
    /// The service that the agent logs in at.
    Login,
}

impl Weather {
    /// What is waited for, as the object of a sentence.
    pub fn what(self) -> &'static str {
        match self {
            Self::UsageLimit => "a usage limit to reset",
            Self::Outage => "the provider",
            Self::Network => "the network",
            Self::Login => "the login service",
        }
    }
}

impl FailureType {
    /// How bad it is, as the battle specification's table has it (B2).
    pub fn severity(self) -> Severity {
        match self {
            Self::FeedbackFailure | Self::Cancellation => Severity::Low,
            Self::Timeout | Self::AgentError => Severity::Medium,
            Self::SystemError | Self::Crash => Severity::High,
        }
    }
}

/// How bad a failure is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Severity {
    /// The project has a problem that another attempt may solve.
    Low,
    /// Something around the project did not answer.
    Medium,
    /// The machine or the process is in trouble.
    High,
}

/// What went wrong (A1, S8).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", const_into_str)]
pub enum Cause {
    /// Does not compile, link, parse, load or install.
    BrokenBuild,
    /// Builds, but a test, lint, format or type check fails.
    VerificationFailed,
    /// A wrong flag, option or value; for an agent: a malformed request.
    InvalidInput,
    /// Something named is not there.
    ResourceNotFound,
    /// A time limit struck.
    ToolTimeout,
    /// Too many requests, a usage limit that resets, or overload.
    RateLimited,
    /// The conversation is too long for the model.
    ContextExhausted,
    /// Key, login or credit missing.
    AuthFailed,
    /// No connection.
    NetworkError,
    /// The operating system refused access.
    PermissionDenied,
    /// No space left.
    DiskFull,
    /// No memory left.
    OutOfMemory,
    /// Interrupted by a signal or a user.
    Cancelled,
    /// Ended by a signal.
    Crashed,
    /// None of the others, or the log does not show it.
    Unknown,
}

impl Cause {
    /// Every cause, in the order of the documentation.
    pub const ALL: &[Self] = Self::VARIANTS;
}

/// Something that is true of a failure beside its cause.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Condition {
    /// The attempts go in a circle (A1).
    CircularFix,
    /// No attempt is left.
    RetriesExhausted,
    /// There is nothing to roll back to.
    NoCheckpoint,
    /// The failing loop passed when it was run again unchanged.
    Flaky,
    /// The loop failed at the initial checkpoint already.
    BaselineFailing,
    /// The attempt removed or weakened tests, or changed the feedback commands.
    Tampered,
    /// The attempt changed files before its time was up.
    Productive,
    /// Credit or a plan's monthly quota is used up.
    Quota,
    /// The attempt removed the git repository, or put another one in its place.
    RepositoryRemoved,
    /// Nothing happened any more, or the agent called one tool again and again: the attempt was ended.
    Stalled,
    /// The attempt was refused writes outside of what it may write.
    Confined,
}

/// What a person would do about a failure (B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum SuggestedAction {
    /// Run the iteration again.
    RetryIteration,
    /// Fix it by hand, then go on.
    FixAndContinue,
    /// Go back to a checkpoint.
    Rollback,
    /// Start from the beginning.
    Restart,
    /// Nothing automatic helps.
    ManualResolution,
}

/// Where a piece of evidence comes from, strongest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum EvidenceSource {
    /// What the supervisor saw: deadline, signal, exit code, spawn error.
    Process,
    /// A structured record of the agent's program.
    Record,
    /// A line of standard error.
    Stderr,
    /// A line of standard output.
    Stdout,
}

/// A rule that spoke, and what it spoke about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The rule's id.
    pub rule: String,
    /// Where the text was.
    pub source: EvidenceSource,
    /// 1-based line in that source, where it has lines.
    pub line: Option<u64>,
    /// The text itself, redacted and cut to a few hundred characters.
    pub text: String,
}

/// A classified reason why an attempt ended badly (B1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Who failed.
    #[serde(rename = "type")]
    pub kind: FailureType,
    /// What went wrong.
    pub cause: Cause,
    /// What is true beside the cause.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// How bad it is.
    pub severity: Severity,
    /// Whether the very same again plausibly succeeds.
    pub retryable: bool,
    /// Whether the run can go on at all without repairs to the machine (B5).
    pub recoverable: bool,
    /// What to do about it.
    pub suggested_action: SuggestedAction,
    /// One line for people.
    pub message: String,
    /// The first error and the last lines, redacted, at most 8 KiB.
    pub details: Option<String>,
    /// The first place in a source file that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Names of the tests that failed, in the order of the output, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// The earliest time that the failure itself names (usage limit reset, retry-after).
    pub retry_after: Option<Timestamp>,
    /// How the failure is recognised again: message without paths, numbers, times and addresses, hashed.
    pub signature: String,
    /// Why this verdict.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// Rules that matched and lost.
    #[serde(default)]
    pub rejected: Vec<Evidence>,
    /// A finer name within the cause that the policy needs (a usage limit is parked, a throttle is not).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<CauseDetail>,
    /// The iteration it happened in; absent for a bare `classify`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The attempt it happened in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// A line of a file, as a tool named it; whether there is such a file is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// The file's path.
    pub path: String,
    /// 1-based.
    pub line: u32,
    /// 1-based, where it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// A distinction within a cause that the policy treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseDetail {
    /// A subscription's or plan's usage limit that resets by itself: park.
    UsageLimit,
    /// Too many requests just now: back off.
    Throttled,
    /// The service is overloaded: back off in minutes.
    Overloaded,
    /// The agent's service failed (500, 502).
    ServiceError,
    /// The agent used up its turns: continue in a fresh session.
    MaxTurns,
    /// The agent used up its cost limit: a person decides.
    CostLimit,
    /// The agent's session cannot be resumed: a fresh one can.
    SessionNotFound,
    /// `recover` itself was killed in the middle of the attempt.
    SupervisorLost,
}

/// What a classification is made from. Owned bytes, as captured; they need not be UTF-8.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct FailureEvidence {
    /// The stage that was running, where the caller knows.
    pub stage: Option<CheckKind>,
    /// Whether it is a configured check: that it failed says what is wrong, even where it printed nothing.
    pub is_check: bool,
    /// The command line as it was run.
    pub command: Option<String>,
    /// The name of the agent, where the caller knows (`claude`, `codex`, …).
    pub agent: Option<String>,
    /// Exit status; `None` when a signal ended the process.
    pub exit_code: Option<i32>,
    /// Name of the signal that ended the process (`SIGKILL`, …).
    pub signal: Option<String>,
    /// Whether the supervisor's deadline ended it.
    pub timed_out: bool,
    /// Whether the supervisor was asked to stop.
    pub cancelled: bool,
    /// Why the process could not be started.
    pub spawn_error: Option<String>,
    /// How long it took.
    pub duration: Option<Duration>,
    /// The deadline that was set.
    pub deadline: Option<Duration>,
    /// A message that the caller gives.
    pub message: Option<String>,
    /// The zone of local times, as `TZ` names it; `None` is UTC.
    pub time_zone: Option<String>,
    /// Whether `stdout` holds both streams, as `2>&1` makes them.
    pub is_merged: bool,
    /// Standard output (head and tail where it was long).
    pub stdout: Vec<u8>,
    /// Standard error (head and tail where it was long).
    pub stderr: Vec<u8>,
}
