//! A clock that jumps: no wait beyond the configured one.

use serde_json::Value;

use crate::env::TestEnv;

/// A failure at `at`, whose cooldown is five minutes.
fn failed_at(at: &str) -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", at)
        .set("RECOVER_TEST_SEED", "1");
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = \"5m\"\n");
    env.json(0, &["attempt", "start", "--run", "r"]);
    env.recover(&[
        "attempt",
        "fail",
        "--run",
        "r",
        "--exit-code",
        "1",
        "--message",
        "boom",
    ]);
    env
}

fn wait_ms(status: &Value) -> u64 {
    status["wait_ms"].as_u64().expect("a number")
}

// clock a day off, year 2099: waits are capped, from when it is first seen on.
#[test]
fn a_clock_that_was_ahead_never_waits_longer_than_the_cooldown() {
    for ahead in ["2099-01-01T00:00:00.000Z", "2030-01-02T00:00:00.000Z"] {
        let mut env = failed_at(ahead);
        let whole = wait_ms(&env.json(0, &["retry-status"]));
        assert!(whole > 0 && whole <= 300_000, "{ahead}: {whole}");
        env.set("RECOVER_TEST_NOW", "2030-01-01T00:00:00.000Z");
        let seen = env.json(6, &["retry-status", "--check"]);
        assert!(
            wait_ms(&seen) > 0 && wait_ms(&seen) <= whole,
            "{ahead}: {seen}"
        );
        assert_eq!(
            seen["cooldown_until"], seen["retry_after"],
            "{ahead}: {seen}"
        );
        // Who asks again and again does not begin anew each time.
        env.set("RECOVER_TEST_NOW", "2030-01-01T00:02:00.000Z");
        let later = env.json(6, &["retry-status", "--check"]);
        assert_eq!(later["retry_after"], seen["retry_after"], "{ahead}");
        assert_eq!(
            wait_ms(&env.json(0, &["status"])["retry"]),
            wait_ms(&later),
            "{ahead}"
        );
        env.set("RECOVER_TEST_NOW", "2030-01-01T00:05:01.000Z");
        assert_eq!(
            env.json(0, &["retry-status", "--check"])["can_retry"],
            true,
            "{ahead}"
        );
        env.json(0, &["attempt", "start", "--run", "r"]);
        // What is counted is counted, whenever it was.
        env.recover(&[
            "attempt",
            "fail",
            "--run",
            "r",
            "--exit-code",
            "1",
            "--message",
            "boom",
        ]);
        assert_eq!(env.json(0, &["retry-status"])["error_count"], 2, "{ahead}");
    }
}

#[test]
fn a_clock_that_was_behind_waits_no_longer_either() {
    let mut env = failed_at("2001-01-01T00:00:00.000Z");
    env.set("RECOVER_TEST_NOW", "2030-01-01T00:00:00.000Z");
    assert_eq!(env.json(0, &["retry-status", "--check"])["can_retry"], true);
}

// Who sleeps until an attempt is allowed gets there.
#[test]
fn a_wait_under_a_clock_that_was_set_back_ends() {
    let mut env = failed_at("2099-01-01T00:00:00.000Z");
    env.set("RECOVER_TEST_NOW", "2030-01-01T00:00:00.000Z");
    let waited = env.json(0, &["retry-status", "--wait"]);
    assert_eq!(waited["can_retry"], true, "{waited}");
}
