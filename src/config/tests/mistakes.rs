//! What is wrong, where, and what was meant.

use super::{file, parse, refused};

#[test]
fn a_bad_variable_is_named() {
    let env = |name: &str| (name == "RECOVER_MAX_ATTEMPTS").then(|| "many".to_owned());
    let error = parse(file(), "", &env, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "environment variable RECOVER_MAX_ATTEMPTS: is 'many': expected a whole number of at least 1"
    );
    let env = |name: &str| (name == "RECOVER_SAFE_MODE").then(|| "readonly".to_owned());
    let error = parse(file(), "", &env, None).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("did you mean 'read_only'?"));
}

#[test]
fn unknown_keys_are_named_with_line_column_and_the_nearest_key() {
    for (text, place, message, near) in [
        (
            "[retry]\nmax_atempts = 3",
            (2, 1),
            "unknown key 'retry.max_atempts'",
            "'retry.max_attempts'",
        ),
        (
            "[retri]\nmax_attempts = 3",
            (1, 2),
            "unknown key 'retri'",
            "'retry'",
        ),
        (
            "max_delay = '1s'",
            (1, 1),
            "unknown key 'max_delay'",
            "'retry.max_delay'",
        ),
        (
            "[retry]\n  duration = 3",
            (2, 3),
            "unknown key 'retry.duration'",
            "'cooldown.duration'",
        ),
        (
            "[retry.causes.NETWORK]\n",
            (1, 15),
            "unknown cause 'NETWORK'",
            "'NETWORK_ERROR'",
        ),
        (
            "[retry.causes.CRASHED]\nmax_rollbacks = 1",
            (2, 1),
            "unknown key 'retry.causes.CRASHED.max_rollbacks'",
            "'retry.causes.BROKEN_BUILD.max_rollbacks'",
        ),
        (
            "[[feedback]]\nnam = 'x'",
            (2, 1),
            "unknown key 'feedback.nam'",
            "'feedback.name'",
        ),
        (
            "[task.a.retry]\nmax_atempts = 3",
            (2, 1),
            "unknown key 'retry.max_atempts'",
            "'retry.max_attempts'",
        ),
        (
            "[task.a]\npreset = 'loop'",
            (2, 1),
            "a task has no 'preset'",
            "'preset'",
        ),
        (
            "# ümläut\n\n[checkpoint]\nä = 1\nlanefile = 'x'",
            (4, 1),
            "",
            "",
        ),
    ] {
        if text.contains('ä') && near.is_empty() {
            // A key that is not ASCII is no key of TOML.
            assert_eq!(refused(text).line(), Some(4));
            continue;
        }
        let error = refused(text);
        assert_eq!(
            (error.line(), error.column()),
            (Some(place.0), Some(place.1)),
            "{error}"
        );
        assert_eq!(error.message, message);
        assert!(
            error.hint.as_deref().unwrap_or_default().contains(near),
            "{text}: {:?}",
            error.hint
        );
        assert!(
            error.to_string().starts_with(".ultraplan/recover.toml:"),
            "{error}"
        );
    }
}

#[test]
fn bad_values_say_what_is_expected() {
    for (text, line, said) in [
        (
            "[retry]\nmax_attempts = -1",
            2,
            "'retry.max_attempts' is -1: expected a whole number of at least 1",
        ),
        ("[retry]\nmax_attempts = 0", 2, "at least 1"),
        (
            "[retry]\nmax_attempts = '3'",
            2,
            "is '3': expected a whole number",
        ),
        (
            "[retry]\nmax_attempts = 99999999999",
            2,
            "expected a whole number",
        ),
        (
            "[retry]\nbase_delay = 'soon'",
            2,
            "is 'soon': expected a duration",
        ),
        ("[retry]\nbase_delay = -5", 2, "is -5: expected a duration"),
        ("[retry]\nmax_cost_usd = -0.5", 2, "not negative"),
        ("[retry]\nmax_cost_usd = nan", 2, "not negative"),
        ("[retry]\nmax_wall_time = true", 2, "or \"none\""),
        (
            "[checkpoint]\nmax_file_size = '5 potatoes'",
            2,
            "expected a size",
        ),
        ("[checkpoint]\nexclude = ['a[']", 2, "glob"),
        ("[checkpoint]\nlane_file = ''", 2, "not empty"),
        (
            "[checkpoint]\nstorage = 'tape'",
            2,
            "one of \"snapshot\", \"commit\", \"patch\"",
        ),
        (
            "[rollback]\nsafe_mode = false",
            2,
            "is false: expected one of \"off\"",
        ),
        ("[rollback]\non_error = 'yes'", 2, "expected true or false"),
        ("[runner]\ncommand = [1]", 2, "expected a shell command"),
        ("preset = 'lop'", 1, "one of \"battle\""),
        ("retry = 3", 1, "'retry' is not a value but a table"),
        (
            "[feedback]\nname = 'x'",
            1,
            "list of tables: write [[feedback]]",
        ),
        (
            "[[feedback]]\nname = 'x'",
            1,
            "[[feedback]] has no 'command'",
        ),
        (
            "[[feedback]]\nname='a'\ncommand='b'\n[[feedback]]\nname='a'\ncommand='b'",
            5,
            "'feedback.name' is 'a' twice",
        ),
        (
            "[[rule]]\nid='a'\npattern='('\ncause='UNKNOWN'",
            3,
            "unclosed group",
        ),
        (
            "[[rule]]\nid='a'\npattern='x'\ncause='UNKNOW'",
            4,
            "expected one of \"BROKEN_BUILD\"",
        ),
        (
            "[retry]\nmax_attempts = 3\nmax_retries = 2",
            3,
            "'retry.max_retries' and 'retry.max_attempts' (line 2)",
        ),
        (
            "[cooldown]\nduration = '1s'\ncooldown_ms = 2",
            3,
            "say the same thing",
        ),
        (
            "[retry.causes.UNKNOWN]\nmax_attempts=1\n[retry.causes.unknown]\nmax_attempts=1",
            4,
            "say the same thing",
        ),
        (
            "[task.a.retry]\nmax_attempts = 'x'",
            2,
            "expected a whole number",
        ),
        ("[retry\n", 1, ""),
        (
            "[retry]\nmax_attempts = 1\nmax_attempts = 2",
            3,
            "duplicate key",
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.line(), Some(line), "{text}: {error}");
        assert!(error.message.contains(said), "{text}: {error}");
    }
    assert_eq!(
        refused("preset = 'lop'").hint.as_deref(),
        Some("did you mean 'loop'?")
    );
}

#[test]
fn the_first_mistake_is_the_one_reported() {
    assert_eq!(
        refused("[runner]\nzzz = 1\n[checkpoint]\naaa = 1").line(),
        Some(2)
    );
}

#[test]
fn a_value_of_the_specifications_keys_that_is_out_of_range_is_named() {
    for (text, said) in [
        (
            "[checkpoints]\nmax_age_hours = 0\n",
            "2:17: 'checkpoints.max_age_hours' is 0: expected a whole number of hours",
        ),
        (
            "[checkpoints]\nmax_age_hours = 99999999999\n",
            "is 99999999999: expected a whole number of hours of at least 1 and at most",
        ),
        (
            "[checkpoints]\nmax_per_session = 0\n",
            "is 0: expected a whole number of at least 1",
        ),
        (
            "[cleanup]\nmax_age_days = -1\n",
            "'cleanup.max_age_days' is -1: expected a whole number of days",
        ),
        (
            "[cleanup]\non_success = 'keep_last_x'\n",
            "is 'keep_last_x': expected \"keep_last_3\" (or another number), or \"keep_all\"",
        ),
        (
            "[retry]\ninitial_delay_ms = -5\n",
            "'retry.initial_delay_ms' is -5: expected a whole number of milliseconds",
        ),
        (
            "[retry]\ndefault_strategy = 'exponential'\n",
            "expected one of \"immediate\", \"delayed\", \"exponential_backoff\"",
        ),
        (
            "[rollback]\ndefault_strategy = 'git_reset'\n",
            "expected one of \"checkpoint_restore\"",
        ),
        (
            "[retry]\nbase_delay = '1s'\ninitial_delay_ms = 1000\n",
            "'retry.initial_delay_ms' and 'retry.base_delay' (line 2) say the same thing",
        ),
        (
            "[retention]\nmax_age = '2d'\n[checkpoints]\nmax_age_hours = 48\n",
            "'checkpoints.max_age_hours' and 'retention.max_age' (line 2) say the same thing",
        ),
        (
            "[state_recovery.cleanups]\n",
            "unknown section 'state_recovery.cleanups'",
        ),
        (
            "[state_recovery]\nenabled = true\n",
            "unknown section 'state_recovery.enabled'",
        ),
    ] {
        let error = refused(text);
        assert!(error.to_string().contains(said), "{text}: {error}");
    }
}
