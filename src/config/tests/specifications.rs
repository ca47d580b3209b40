//! Presets, and keys in the words of the specifications.

use std::time::Duration;

use super::super::*;
use super::{file, nothing, origin, parse, read};
use crate::model::failure::Cause;
use crate::policy::settings::{DelayKind, OnRunFailure};

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
