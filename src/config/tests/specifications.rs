//! Presets, and keys in the words of the specifications.

use std::time::Duration;

use super::super::*;
use super::{file, nothing, origin, parse, read};
use crate::model::failure::Cause;
use crate::policy::settings::{DelayKind, OnRunFailure, RetrySettings};

/// The configuration block of state recovery, as its specification has it.
const SEED_BLOCK: &str = r#"
[state_recovery.checkpoints]
enabled = true
max_per_session = 20
max_age_hours = 48
[state_recovery.rollback]
enabled = true
default_strategy = "checkpoint_restore"
[state_recovery.retry]
enabled = true
default_strategy = "exponential_backoff"
max_attempts = 3
initial_delay_ms = 1000
max_delay_ms = 30000
[state_recovery.cleanup]
on_success = "keep_last_3"
on_failure = "keep_all"
scheduled_cleanup = true
max_age_days = 30
"#;

#[test]
fn the_specifications_own_keys_say_the_same_s17() {
    for text in [
        SEED_BLOCK.to_owned(),
        SEED_BLOCK.replace("state_recovery.", ""),
    ] {
        let text = text
            .replace("48", "36")
            .replace("1000", "1500")
            .replace("30000", "20000")
            .replace("keep_last_3", "keep_last_5");
        let config = parse(file(), &text, &nothing, None).unwrap();
        let Settings {
            retry, retention, ..
        } = &config.settings;
        assert_eq!(
            (retry.base_delay, retry.max_delay),
            (Duration::from_millis(1500), Duration::from_secs(20))
        );
        for cause in [
            Cause::VerificationFailed,
            Cause::BrokenBuild,
            Cause::Crashed,
            Cause::Unknown,
        ] {
            assert_eq!(
                retry.delay_for(cause, None).kind,
                DelayKind::Exponential,
                "{cause:?}"
            );
        }
        assert_eq!(
            retry.delay_for(Cause::InvalidInput, None).kind,
            DelayKind::Immediate
        );
        assert_eq!(
            (retention.max_per_session, retention.on_success_keep_last),
            (Some(20), Some(5))
        );
        assert_eq!(retention.max_age, Some(Duration::from_secs(36 * 3600)));
        assert_eq!(
            retention.scheduled_max_age,
            Some(Duration::from_secs(30 * 86_400))
        );
        assert_eq!(retention.on_failure, OnRunFailure::KeepAll);
        // Each is shown under the name that it has everywhere.
        let line = 1 + text
            .lines()
            .position(|line| line.starts_with("max_age_hours"))
            .unwrap();
        assert_eq!(
            origin(&config, "retention.max_age"),
            format!(".ultraplan/recover.toml:{line}")
        );
        assert!(
            config
                .origins()
                .iter()
                .all(|entry| !entry.key.contains("cleanup.") && !entry.key.contains("_ms"))
        );
    }
    let off = read("[cleanup]\nscheduled_cleanup = false\non_success = 'keep_all'\n").retention;
    assert_eq!(
        (off.scheduled_max_age, off.on_success_keep_last),
        (None, None)
    );
    assert_eq!(
        read("[retention]\nmax_checkpoints = 4").retention.keep_last,
        4
    );
    let own = read(
        "[retry]\ndefault_strategy = 'delayed'\n[retry.causes.UNKNOWN]\ndelay = 'immediate'\n",
    )
    .retry;
    assert_eq!(
        own.delay_for(Cause::Unknown, None).kind,
        DelayKind::Immediate
    );
    assert_eq!(own.delay_for(Cause::Crashed, None).kind, DelayKind::Delayed);
}

#[test]
fn presets_are_the_defaults_of_their_specifications_s17_l2_b14_a2_c1() {
    let battle = read("preset = 'battle'").retention;
    assert_eq!(
        (battle.keep_last, battle.max_age),
        (10, Some(Duration::from_secs(7 * 86_400)))
    );
    assert!(battle.keep_failed && battle.keep_successful && battle.max_per_session.is_none());

    let looped = read("preset = 'loop'");
    assert_eq!(looped.cooldown.duration, Duration::from_secs(5));
    assert!(looped.rollback.on_error);
    assert_eq!(looped.retry.max_attempts, 3);
    for cause in [
        Cause::NetworkError,
        Cause::BrokenBuild,
        Cause::Unknown,
        Cause::RateLimited,
    ] {
        assert_eq!(looped.retry.limit_for(cause, None), Some(3));
        assert_eq!(
            looped.retry.delay_for(cause, None).kind,
            DelayKind::Cooldown
        );
    }

    let actions = read("preset = 'actions'").retry;
    for (cause, limit) in [
        (Cause::VerificationFailed, 3),
        (Cause::Unknown, 2),
        (Cause::BrokenBuild, 1),
    ] {
        assert_eq!(actions.limit_for(cause, None), Some(limit));
    }

    let state = read("preset = 'state'");
    for (cause, retries) in [
        (Cause::NetworkError, 5),
        (Cause::RateLimited, 10),
        (Cause::ToolTimeout, 3),
        (Cause::InvalidInput, 2),
        (Cause::PermissionDenied, 1),
    ] {
        assert_eq!(state.retry.limit_for(cause, None), Some(retries + 1));
    }
    assert_eq!(
        (
            state.retry.task_max_attempts,
            state.retry.session_max_attempts
        ),
        (6, 21)
    );
    assert_eq!(
        (state.retry.base_delay, state.retry.max_delay),
        (Duration::from_secs(1), Duration::from_secs(30))
    );
    assert_eq!(state.retention.max_per_session, Some(20));
    assert_eq!(
        state.retention.max_age,
        Some(Duration::from_secs(48 * 3600))
    );
    assert_eq!(state.retention.on_success_keep_last, Some(3));
    assert_eq!(
        state.retention.scheduled_max_age,
        Some(Duration::from_secs(30 * 86_400))
    );
    assert_eq!(
        (
            state.checkpoint.every_operations,
            state.memory.max_state_size
        ),
        (Some(10), 102_400)
    );

    let lane = read("preset = 'lane'").checkpoint;
    assert_eq!(
        lane.lane_file,
        ".claude/ai-dev-kit/run-logs/checkpoints.json"
    );
    let known = schema::leaf("preset").unwrap();
    let Kind::Choice(names) = &known.kind else {
        panic!("preset takes names");
    };
    for name in names {
        assert!(!preset::text(name).is_empty(), "{name}");
    }
}

/// The other blocks of the same specification.
const OTHER_BLOCKS: &str = r#"
[retry_strategy.types.immediate]
description = "Retry right away"
use_for = ["INVALID_INPUT", "RESOURCE_NOT_FOUND"]
[retry_strategy.types.delayed]
description = "Wait before retry"
use_for = ["RATE_LIMITED", "NETWORK_ERROR"]
initial_delay_ms = 1000
[retry_strategy.types.exponential_backoff]
description = "Increasing delays"
use_for = ["TOOL_TIMEOUT", "NETWORK_ERROR"]
formula = "delay = base * (2 ^ attempt)"
max_delay_ms = 30000
[retry_strategy.types.conditional]
description = "Retry only if condition met"
use_for = ["PERMISSION_DENIED"]
condition = "permissions_changed"
[retry_limits]
global_max_retries = 3
session_max_total_retries = 20
task_max_total_retries = 5
[retry_limits.per_exception_max]
NETWORK_ERROR = 5
RATE_LIMITED = 10
TOOL_TIMEOUT = 3
INVALID_INPUT = 2
PERMISSION_DENIED = 1
[checkpoint_triggers]
automatic = [
    "Before file modifications",
    "Before external calls",
    "Before risky operations",
    "On phase transitions",
]
manual = ["User request", "Session save"]
interval = ["Every 5 minutes during execution", "Every 10 operations minimum"]
"#;

#[test]
fn the_specifications_blocks_are_taken_one_to_one_s17() {
    for text in [
        format!("{OTHER_BLOCKS}{SEED_BLOCK}"),
        format!("{SEED_BLOCK}{OTHER_BLOCKS}"),
    ] {
        let config = parse(file(), &text, &nothing, None).unwrap();
        let retry = &config.settings.retry;
        let own = RetrySettings::default();
        // What they say is what holds by default: no limit is lower, and none higher.
        for cause in Cause::ALL {
            let limit = retry.limit_for(*cause, None);
            assert_eq!(limit, own.limit_for(*cause, None), "{cause:?}");
        }
        let delay = |cause| {
            let delay = retry.delay_for(cause, None);
            (delay.kind, delay.base.as_millis())
        };
        assert_eq!(delay(Cause::NetworkError), (DelayKind::Exponential, 1000));
        assert_eq!(delay(Cause::RateLimited), (DelayKind::Delayed, 1000));
        assert_eq!(delay(Cause::ToolTimeout).0, DelayKind::Exponential);
        assert_eq!(
            (retry.task_max_attempts, retry.session_max_attempts),
            (6, 21)
        );
    }
    // Other values than the default ones.
    let text = format!("{OTHER_BLOCKS}{SEED_BLOCK}")
        .replace("NETWORK_ERROR = 5", "NETWORK_ERROR = 8")
        .replace("= 20\n", "= 30\n")
        .replace("_ms = 1000", "_ms = 2500")
        .replace("5 minutes", "2 minutes")
        .replace("10 operations", "4 operations")
        .replace("global_max_retries = 3", "global_max_retries = 1");
    let settings = read(&text);
    let retry = &settings.retry;
    assert_eq!(retry.limit_for(Cause::NetworkError, None), Some(9));
    assert_eq!(retry.limit_for(Cause::RateLimited, None), Some(11));
    assert_eq!(retry.limit_for(Cause::VerificationFailed, None), Some(3));
    assert_eq!((retry.max_attempts, retry.session_max_attempts), (2, 31));
    let network = retry.delay_for(Cause::NetworkError, None);
    assert_eq!(network.base, Duration::from_millis(2500));
    assert_eq!(
        (
            settings.checkpoint.interval,
            settings.checkpoint.every_operations
        ),
        (Some(Duration::from_secs(120)), Some(4))
    );
}

#[test]
fn mistakes_in_the_specifications_blocks_are_named() {
    for (text, named) in [
        ("[retry_limits]\nglobal_max = 3", "global_max"),
        ("[retry_limits.per_exception_max]\nNETWORK = 3", "NETWORK"),
        (
            "[retry_strategy.types.sometimes]\nuse_for = []",
            "sometimes",
        ),
        (
            "[retry_strategy.types.delayed]\nuse_for = ['NET']",
            "use_for",
        ),
        (
            "[checkpoint_triggers]\ninterval = ['Now and then']",
            "now and then",
        ),
        (
            "[checkpoint_triggers]\nautomatic = ['At noon']",
            "automatic",
        ),
    ] {
        let error = parse(file(), text, &nothing, None).unwrap_err().to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}
