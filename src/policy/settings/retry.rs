//! How often and how fast to try again (requirements S7, S8, A2, L2).

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::failure::{Cause, CauseDetail};

/// How the wait before another attempt is found (S7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DelayKind {
    /// No wait, and no repetition either: the run continues or stops.
    None,
    /// At once; the attempt differs from the one before (another prompt, a fresh session).
    Immediate,
    /// The cooldown of `[cooldown]`.
    Cooldown,
    /// `base_delay` each time.
    Delayed,
    /// `base_delay · 2^(n−1)`, at most `max_delay`.
    Exponential,
    /// As soon as what stood in the way (permissions, credentials) has changed.
    Conditional,
}

/// How a computed delay is spread, so that parallel runs do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// A random time between zero and the delay.
    Full,
    /// The delay itself.
    None,
}

/// What becomes of the files of an iteration that is given up, before the next one begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnGiveUp {
    /// They go back to what they were when it began; its work stays in its checkpoint.
    #[default]
    Rollback,
    /// They stay as it left them.
    Keep,
}

/// The limit and the delay of one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CauseSettings {
    /// Failed attempts until the cause is exhausted (or `max_retries`, one less); none: no limit.
    pub max_attempts: Option<u32>,
    /// none, immediate, cooldown, delayed (by `base_delay`), exponential, conditional (on permissions).
    pub delay: DelayKind,
    /// First delay; none: as in `[retry]`.
    #[serde(with = "super::OptionalDuration")]
    pub base_delay: Option<Duration>,
    /// Longest delay; none: as in `[retry]`.
    #[serde(with = "super::OptionalDuration")]
    pub max_delay: Option<Duration>,
    /// Rollbacks to the last good checkpoint, each with another approach, before it is escalated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("only" = "BROKEN_BUILD"))]
    pub max_rollbacks: Option<u32>,
    /// `max_attempts` where it was the agent's service that failed (500, 502).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("only" = "UNKNOWN"))]
    pub service_max_attempts: Option<u32>,
    /// delay where it was the agent's service that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("only" = "UNKNOWN"))]
    pub service_delay: Option<DelayKind>,
    /// How many times longer the delays are when the service is overloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("only" = "RATE_LIMITED"))]
    pub overload_factor: Option<u32>,
}

impl CauseSettings {
    /// The row of the documented table for `cause`.
    pub fn default_of(cause: Cause) -> Self {
        use DelayKind::{Conditional, Cooldown, Exponential, Immediate};
        let (max_attempts, delay) = match cause {
            Cause::VerificationFailed | Cause::Crashed => (Some(3), Cooldown),
            Cause::BrokenBuild => (Some(1), Cooldown),
            Cause::Unknown => (Some(2), Cooldown),
            Cause::ContextExhausted | Cause::Cancelled => (None, DelayKind::None),
            Cause::NetworkError => (Some(6), Exponential),
            Cause::RateLimited => (Some(11), Exponential),
            Cause::ToolTimeout => (Some(4), Exponential),
            Cause::InvalidInput => (Some(3), Immediate),
            Cause::ResourceNotFound => (Some(2), Immediate),
            Cause::PermissionDenied | Cause::AuthFailed => (Some(2), Conditional),
            Cause::DiskFull | Cause::OutOfMemory => (Some(0), DelayKind::None),
        };
        Self {
            max_attempts,
            delay,
            base_delay: None,
            max_delay: None,
            max_rollbacks: (cause == Cause::BrokenBuild).then_some(2),
            service_max_attempts: (cause == Cause::Unknown).then_some(3),
            service_delay: (cause == Cause::Unknown).then_some(Exponential),
            overload_factor: (cause == Cause::RateLimited).then_some(20),
        }
    }
}

/// How to wait for one failure: a cause's settings with the general ones filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaySettings {
    /// How the wait is found.
    pub kind: DelayKind,
    /// First delay.
    pub base: Duration,
    /// Longest delay.
    pub max: Duration,
    /// How the delay is spread.
    pub jitter: Jitter,
}

/// Budgets and delays. The limits of the causes are effective ones: what a general limit overrides is already in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetrySettings {
    /// Try again without being asked; false: one attempt, then it is over to a person.
    pub enabled: bool,
    /// Attempts (or `max_retries`, one less); set here, it replaces the default limits of the causes.
    #[schemars(range(min = 1))]
    pub max_attempts: u32,
    /// Failed attempts of one subtask (an iteration, where none is named) over all runs of its task, whatever their causes;
    /// always wins.
    #[schemars(range(min = 1))]
    pub task_max_attempts: u32,
    /// Failed attempts of one session (`RECOVER_SESSION`, else the run), whatever their causes; always wins.
    #[schemars(range(min = 1))]
    pub session_max_attempts: u32,
    /// What takes the place of the causes' cooldown where no delay of theirs is set (or `default_strategy`); none:
    /// nothing.
    pub delay: Option<DelayKind>,
    /// First delay of a growing one: `base_delay` · 2^(n−1) (or `initial_delay_ms`, in milliseconds).
    #[serde(with = "super::DurationText")]
    pub base_delay: Duration,
    /// Longest delay (or `max_delay_ms`, in milliseconds).
    #[serde(with = "super::DurationText")]
    pub max_delay: Duration,
    /// full: a random time between zero and the delay; none: the delay itself.
    pub jitter: Jitter,
    /// Time from the start of a run after which no further attempt starts.
    #[serde(with = "super::OptionalDuration")]
    pub max_wall_time: Option<Duration>,
    /// Cost, as the agent's records give it, after which no further attempt starts.
    pub max_cost_usd: Option<f64>,
    /// Tokens of all kinds, as the agent's records give them, after which no further attempt starts.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// How long an iteration waits in all for limits, outages and the network; then a person decides.
    #[serde(with = "super::DurationText")]
    pub max_park: Duration,
    /// Files of an iteration that is given up, before the next begins: rollback (its work stays in its checkpoint) or
    /// keep.
    pub on_give_up: OnGiveUp,
    /// `--attempts` of this run: stands above every configured limit but those of the task and the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub override_attempts: Option<u32>,
    /// The same for one cause of failure.
    #[schemars(with = "CauseSettings")]
    pub causes: BTreeMap<Cause, CauseSettings>,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_attempts: 3,
            override_attempts: None,
            task_max_attempts: 6,
            session_max_attempts: 21,
            delay: None,
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            jitter: Jitter::Full,
            max_wall_time: None,
            max_cost_usd: None,
            max_tokens: None,
            max_park: Duration::from_secs(12 * 3600),
            on_give_up: OnGiveUp::Rollback,
            causes: Cause::ALL
                .iter()
                .map(|&cause| (cause, CauseSettings::default_of(cause)))
                .collect(),
        }
    }
}

/// Waiting for what is not the agent's doing: a usage limit, an outage of its provider, the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WeatherSettings {
    /// Waits before each next attempt, a probe that uses up no attempt; the last one, up to a tenth shorter or longer, before
    /// all further ones.
    #[serde(with = "super::DurationList")]
    #[schemars(length(min = 1))]
    pub probes: Vec<Duration>,
    /// What one run meets holds every run on this machine that uses the same account, in any repository.
    pub shared: bool,
    /// Once one of those that waited has an answer of the model, the others begin so far apart; three times as long an agent
    /// without records has to be alive for that, and is waited after a limit's reset.
    #[serde(with = "super::DurationText")]
    pub gap: Duration,
}

impl Default for WeatherSettings {
    fn default() -> Self {
        Self {
            probes: [30, 60, 120, 300, 600, 900].map(Duration::from_secs).into(),
            shared: true,
            gap: Duration::from_secs(20),
        }
    }
}

impl RetrySettings {
    /// The settings of `cause`.
    pub fn cause(&self, cause: Cause) -> CauseSettings {
        self.causes
            .get(&cause)
            .cloned()
            .unwrap_or_else(|| CauseSettings::default_of(cause))
    }

    /// Failed attempts until `cause` is exhausted, the first included; `None` is no limit.
    ///
    /// The caps of the task and the session are not in it: they are budgets of their own and win over this one.
    /// [`Self::override_attempts`] replaces a limit, and gives one to what goes on without (a full context, turns that are
    /// used up); it takes no 0 away (a full disk is never retried into).
    pub fn limit_for(&self, cause: Cause, detail: Option<CauseDetail>) -> Option<u32> {
        let settings = self.cause(cause);
        let own = match (cause, detail) {
            (_, Some(CauseDetail::MaxTurns)) => return self.override_attempts,
            (Cause::ContextExhausted, _) if settings.max_attempts.is_none() => {
                return self.override_attempts;
            }
            (_, Some(CauseDetail::CostLimit)) => Some(0),
            (Cause::Unknown, Some(CauseDetail::ServiceError)) => {
                settings.service_max_attempts.or(settings.max_attempts)
            }
            _ => settings.max_attempts,
        }?;
        match self.override_attempts {
            _ if own == 0 => Some(0),
            Some(attempts) => Some(attempts),
            None if self.enabled => Some(own),
            None => Some(1),
        }
    }

    /// How to wait before the next attempt after `cause`.
    pub fn delay_for(&self, cause: Cause, detail: Option<CauseDetail>) -> DelaySettings {
        let settings = self.cause(cause);
        let kind = match (cause, detail) {
            (_, Some(CauseDetail::MaxTurns)) => DelayKind::None,
            (Cause::Unknown, Some(CauseDetail::ServiceError)) => {
                settings.service_delay.unwrap_or(settings.delay)
            }
            _ => settings.delay,
        };
        let overloaded = detail == Some(CauseDetail::Overloaded);
        let factor = settings.overload_factor.filter(|_| overloaded).unwrap_or(1);
        DelaySettings {
            kind,
            base: settings
                .base_delay
                .unwrap_or(self.base_delay)
                .saturating_mul(factor),
            max: settings
                .max_delay
                .unwrap_or(self.max_delay)
                .saturating_mul(factor),
            jitter: self.jitter,
        }
    }

    /// Rollbacks to the last good checkpoint that a broken build may cost before it escalates.
    pub fn max_rollbacks(&self) -> u32 {
        self.cause(Cause::BrokenBuild).max_rollbacks.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_table_s8_a2() {
        let retry = RetrySettings::default();
        let limits = [
            (Cause::VerificationFailed, Some(3)),
            (Cause::BrokenBuild, Some(1)),
            (Cause::ContextExhausted, None),
            (Cause::Unknown, Some(2)),
            (Cause::NetworkError, Some(6)),
            (Cause::RateLimited, Some(11)),
            (Cause::ToolTimeout, Some(4)),
            (Cause::InvalidInput, Some(3)),
            (Cause::ResourceNotFound, Some(2)),
            (Cause::PermissionDenied, Some(2)),
            (Cause::AuthFailed, Some(2)),
            (Cause::DiskFull, Some(0)),
            (Cause::OutOfMemory, Some(0)),
            (Cause::Cancelled, None),
            (Cause::Crashed, Some(3)),
        ];
        for (cause, limit) in limits {
            assert_eq!(retry.limit_for(cause, None), limit, "{cause:?}");
        }
        assert_eq!(
            retry.limit_for(Cause::Unknown, Some(CauseDetail::ServiceError)),
            Some(3)
        );
        assert_eq!(
            retry.limit_for(Cause::Unknown, Some(CauseDetail::MaxTurns)),
            None
        );
        assert_eq!(
            retry.limit_for(Cause::RateLimited, Some(CauseDetail::Throttled)),
            Some(11)
        );
        assert_eq!(retry.max_rollbacks(), 2);
        assert_eq!(
            (retry.task_max_attempts, retry.session_max_attempts),
            (6, 21)
        );
    }

    #[test]
    fn attempts_of_the_run_override_limits_but_not_the_nature_of_a_cause() {
        let retry = RetrySettings {
            override_attempts: Some(5),
            ..RetrySettings::default()
        };
        assert_eq!(retry.limit_for(Cause::BrokenBuild, None), Some(5));
        assert_eq!(retry.limit_for(Cause::RateLimited, None), Some(5));
        assert_eq!(retry.limit_for(Cause::DiskFull, None), Some(0));
        assert_eq!(retry.limit_for(Cause::ContextExhausted, None), Some(5));
        assert_eq!(
            retry.limit_for(Cause::Unknown, Some(CauseDetail::MaxTurns)),
            Some(5)
        );
        assert_eq!(retry.limit_for(Cause::Cancelled, None), None);
    }

    #[test]
    fn switched_off_means_one_attempt() {
        let off = RetrySettings {
            enabled: false,
            ..RetrySettings::default()
        };
        assert_eq!(off.limit_for(Cause::NetworkError, None), Some(1));
        assert_eq!(off.limit_for(Cause::OutOfMemory, None), Some(0));
        let asked = RetrySettings {
            override_attempts: Some(4),
            ..off
        };
        assert_eq!(asked.limit_for(Cause::NetworkError, None), Some(4));
    }

    #[test]
    fn delays_come_from_the_cause_then_from_the_general_ones() {
        let mut retry = RetrySettings::default();
        let network = retry.delay_for(Cause::NetworkError, None);
        assert_eq!(
            (network.kind, network.base),
            (DelayKind::Exponential, Duration::from_secs(1))
        );
        assert_eq!(
            (network.max, network.jitter),
            (Duration::from_secs(30), Jitter::Full)
        );
        retry
            .causes
            .get_mut(&Cause::NetworkError)
            .unwrap()
            .base_delay = Some(Duration::from_secs(7));
        assert_eq!(
            retry.delay_for(Cause::NetworkError, None).base,
            Duration::from_secs(7)
        );
        let service = retry.delay_for(Cause::Unknown, Some(CauseDetail::ServiceError));
        assert_eq!(service.kind, DelayKind::Exponential);
        assert_eq!(
            retry.delay_for(Cause::Unknown, None).kind,
            DelayKind::Cooldown
        );
        let overloaded = retry.delay_for(Cause::RateLimited, Some(CauseDetail::Overloaded));
        assert_eq!(
            (overloaded.base, overloaded.max),
            (Duration::from_secs(20), Duration::from_secs(600))
        );
    }
}
