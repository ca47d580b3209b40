//! The configuration as a whole: layers, mistakes, presets, the template.

mod template;

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::model::checkpoint::StorageType;
use crate::model::failure::{Cause, CauseDetail, EvidenceSource, FailureType};
use crate::model::feedback::CheckKind;
use crate::policy::settings::{CommandLine, DelayKind, Jitter, OnRunFailure, SafeMode};

fn file() -> &'static Path {
    Path::new(".ultraplan/recover.toml")
}

fn nothing(_: &str) -> Option<String> {
    None
}

/// Reads a project's file with nothing around it but a task.
fn parse(
    file: &Path,
    text: &str,
    env: Environment<'_>,
    task: Option<&TaskId>,
) -> Result<Config, ConfigError> {
    let around = Around {
        env,
        user: &UserConfig::default(),
        task,
        trusts: &|_| true,
    };
    Config::from_document(file, parse::parse(file, text, Owner::Project)?, around)
}

fn load(root: &Root, file: &Path) -> Result<Config, ConfigError> {
    Config::load(
        root,
        file,
        Around {
            env: &nothing,
            user: &UserConfig::default(),
            task: None,
            trusts: &|_| true,
        },
    )
}

fn read(text: &str) -> Settings {
    parse(file(), text, &nothing, None).unwrap().settings
}

fn refused(text: &str) -> ConfigError {
    parse(file(), text, &nothing, None).expect_err(text)
}

fn origin(config: &Config, key: &str) -> String {
    config
        .origins()
        .into_iter()
        .find(|entry| entry.key == key)
        .unwrap()
        .origin
        .to_string()
}

#[test]
fn a_list_that_adds_up_names_all_that_add_to_it() {
    let user = b"[redact]\nvariables = ['MINE']\n".to_vec();
    let user = UserConfig::read(Path::new("/home/config.toml"), user).unwrap();
    let text = "[redact]\n# theirs\nvariables = ['THEIRS']\npatterns = ['x1']\n[task.a.redact]\nvariables = ['TASKS']\n";
    let task = TaskId::from("a".to_owned());
    let around = Around {
        env: &nothing,
        user: &user,
        task: Some(&task),
        trusts: &|_| true,
    };
    let project = parse::parse(file(), text, Owner::Project).unwrap();
    let config = Config::from_document(file(), project, around).unwrap();
    assert_eq!(
        config.settings.redact.variables,
        ["MINE", "THEIRS", "TASKS"]
    );
    let name = file().display();
    let all = format!("user /home/config.toml:2, {name}:3, task a {name}:6");
    assert_eq!(origin(&config, "redact.variables"), all);
    assert_eq!(origin(&config, "redact.patterns"), format!("{name}:4"));
    assert!(config.origin("redact.variables").unwrap().is_explicit());
}

#[test]
fn a_missing_or_empty_file_is_the_default() {
    let missing = load(&Root::shared("/nonexistent"), Path::new("recover.toml")).unwrap();
    assert_eq!(missing.settings, Settings::default());
    assert_eq!(read(""), Settings::default());
    assert_eq!(
        read("\u{feff}# nothing\r\n[retry]\r\nmax_attempts = 3\r\n")
            .retry
            .max_attempts,
        3
    );
}

#[test]
fn a_file_that_is_no_text_or_no_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recover.toml");
    std::fs::write(&path, b"# ok\n# \xff\n").unwrap();
    let error = load(&Root::shared(folder.path()), &path).unwrap_err();
    assert_eq!(
        (error.line(), error.column(), error.file()),
        (Some(2), Some(3), Some(path.as_path()))
    );
    let error = load(&Root::shared(folder.path()), folder.path()).unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[test]
fn every_section_is_read() {
    let settings = read(
        r#"
        [retry]
        max_retries = 4
        base_delay = "500ms"
        max_delay = 45
        jitter = "none"
        max_wall_time = "2h"
        max_cost_usd = 2.5
        [retry.causes.network_error]
        max_retries = 1
        delay = "delayed"
        base_delay = "2s"
        [cooldown]
        cooldown_ms = 250
        [rollback]
        safe_mode = "read-only"
        [checkpoint]
        auto_commit = true
        max_file_size = "10MB"
        max_untracked_bytes = 4096
        include = ["dist/**"]
        interval = "none"
        [retention]
        max_total_size = "1GiB"
        max_age = "none"
        on_failure = "limits"
        [memory]
        long_term = ["memory/*.md"]
        [runner]
        command = ["claude", "-p"]
        agent = "claude"
        timeout = "10m"
        fallback = "make safe"
        [[feedback]]
        name = "unit"
        command = "cargo test"
        timeout = "10m"
        [[feedback]]
        name = "style"
        command = "x"
        kind = "Lint"
        [[rule]]
        id = "registry"
        pattern = 'registry.*down'
        source = "stderr"
        loop = "build"
        cause = "network-error"
        type = "claude_error"
        retryable = true
        "#,
    );
    assert_eq!(
        (settings.retry.max_attempts, settings.retry.jitter),
        (5, Jitter::None)
    );
    assert_eq!(settings.retry.base_delay, Duration::from_millis(500));
    assert_eq!(settings.retry.max_delay, Duration::from_secs(45));
    assert_eq!(
        (settings.retry.max_wall_time, settings.retry.max_cost_usd),
        (Some(Duration::from_secs(7200)), Some(2.5))
    );
    assert_eq!(settings.retry.limit_for(Cause::NetworkError, None), Some(2));
    let delay = settings.retry.delay_for(Cause::NetworkError, None);
    assert_eq!(
        (delay.kind, delay.base),
        (DelayKind::Delayed, Duration::from_secs(2))
    );
    assert_eq!(settings.cooldown.duration, Duration::from_millis(250));
    assert_eq!(settings.rollback.safe_mode, SafeMode::ReadOnly);
    assert_eq!(settings.checkpoint.effective_storage(), StorageType::Commit);
    assert_eq!(
        (
            settings.checkpoint.max_file_size,
            settings.checkpoint.max_untracked_bytes
        ),
        (10_000_000, 4096)
    );
    assert_eq!(
        (
            settings.checkpoint.include.len(),
            settings.checkpoint.interval
        ),
        (1, None)
    );
    assert_eq!(
        (
            settings.retention.max_total_size,
            settings.retention.max_age
        ),
        (Some(1 << 30), None)
    );
    assert_eq!(settings.retention.on_failure, OnRunFailure::Limits);
    assert_eq!(
        settings.runner.command,
        Some(CommandLine::Argv(vec!["claude".into(), "-p".into()]))
    );
    let fallback = settings.runner.fallback.clone().unwrap();
    assert_eq!(settings.runner.argv(&fallback), ["sh", "-c", "make safe"]);
    assert_eq!(
        (settings.runner.agent.as_str(), settings.runner.timeout),
        ("claude", Some(Duration::from_secs(600)))
    );
    let loops: Vec<_> = settings
        .feedback
        .iter()
        .map(|one| (one.name.as_str(), one.kind, one.timeout_ms))
        .collect();
    assert_eq!(
        loops,
        [
            ("unit", CheckKind::Test, Some(600_000)),
            ("style", CheckKind::Lint, None)
        ]
    );
    let rule = &settings.rules[0];
    assert_eq!(
        (rule.cause, rule.kind, rule.retryable),
        (
            Cause::NetworkError,
            Some(FailureType::AgentError),
            Some(true)
        )
    );
    assert_eq!(
        (rule.source, rule.stage),
        (Some(EvidenceSource::Stderr), Some(CheckKind::Build))
    );
}

#[test]
fn limits_a_cause_then_the_general_one_then_the_preset_then_the_default() {
    let general = read("[retry]\nmax_attempts = 5\n[retry.causes.CRASHED]\nmax_attempts = 2").retry;
    for (cause, limit) in [
        (Cause::VerificationFailed, Some(5)),
        (Cause::BrokenBuild, Some(5)),
        (Cause::NetworkError, Some(5)),
        (Cause::Crashed, Some(2)),
        (Cause::DiskFull, Some(0)),
        (Cause::ContextExhausted, None),
    ] {
        assert_eq!(general.limit_for(cause, None), limit, "{cause:?}");
    }
    assert_eq!(
        general.limit_for(Cause::Unknown, Some(CauseDetail::ServiceError)),
        Some(5)
    );
    let unknown = read("[retry.causes.UNKNOWN]\nmax_attempts = 7\ndelay = \"immediate\"").retry;
    assert_eq!(
        unknown.limit_for(Cause::Unknown, Some(CauseDetail::ServiceError)),
        Some(7)
    );
    assert_eq!(
        unknown
            .delay_for(Cause::Unknown, Some(CauseDetail::ServiceError))
            .kind,
        DelayKind::Immediate
    );
    let preset = read("preset = \"loop\"\n[retry]\nmax_attempts = 4").retry;
    assert_eq!(preset.limit_for(Cause::NetworkError, None), Some(4));
    assert_eq!(preset.max_attempts, 4);
    let none = read("[retry.causes.RATE_LIMITED]\nmax_attempts = \"none\"").retry;
    assert_eq!(none.limit_for(Cause::RateLimited, None), None);
}

#[test]
fn flag_environment_task_file_preset_default() {
    let text = r#"
preset = "loop"
[retry]
max_attempts = 4
[cooldown]
duration = "1s"
[runner]
timeout = "1m"
[task."T-1".runner]
timeout = "2m"
[task."T-1".cooldown]
duration = "9s"
[[task."T-1".feedback]]
name = "t"
command = "true"
[task.other.retry]
max_attempts = 9
"#;
    let env = |name: &str| match name {
        "RECOVER_COOLDOWN" => Some("500ms".to_owned()),
        "RECOVER_SAFE_MODE" => Some("conservative".to_owned()),
        "RECOVER_TIMEOUT" => Some(" ".to_owned()),
        _ => None,
    };
    let mut config = parse(file(), text, &env, Some(&"T-1".into())).unwrap();
    assert_eq!(
        config.settings.cooldown.duration,
        Duration::from_millis(500)
    );
    assert_eq!(config.settings.rollback.safe_mode, SafeMode::Conservative);
    assert_eq!(
        config.settings.runner.timeout,
        Some(Duration::from_secs(120))
    );
    assert_eq!(config.settings.feedback.len(), 1);
    assert_eq!(config.settings.retry.max_attempts, 4);
    config
        .set_flag("runner.timeout", "--timeout", "3m")
        .unwrap();
    config.override_attempts("--attempts", 8).unwrap();
    assert_eq!(
        config.settings.runner.timeout,
        Some(Duration::from_secs(180))
    );
    assert_eq!(
        config.settings.retry.limit_for(Cause::NetworkError, None),
        Some(8)
    );
    for (key, from) in [
        ("cooldown.duration", "env RECOVER_COOLDOWN"),
        ("runner.timeout", "flag --timeout"),
        ("retry.max_attempts", ".ultraplan/recover.toml:4"),
        (
            "retry.causes.NETWORK_ERROR.max_attempts",
            ".ultraplan/recover.toml:4",
        ),
        ("retry.causes.NETWORK_ERROR.delay", "preset loop"),
        ("retry.causes.DISK_FULL.max_attempts", "default"),
        ("feedback", "task T-1 .ultraplan/recover.toml:13"),
        ("retry.override_attempts", "flag --attempts"),
        ("preset", ".ultraplan/recover.toml:2"),
    ] {
        assert_eq!(origin(&config, key), from, "{key}");
    }
    let timeout = config
        .origins()
        .into_iter()
        .find(|entry| entry.key == "runner.timeout")
        .unwrap();
    assert_eq!(
        (timeout.value, timeout.toml),
        (json!("3m"), "\"3m\"".to_owned())
    );
    assert!(
        config
            .set_flag("runner.timeout", "--timeout", "soon")
            .unwrap_err()
            .to_string()
            .starts_with("--timeout: ")
    );
    let other = parse(file(), text, &nothing, Some(&"another".into())).unwrap();
    assert_eq!(
        (
            other.settings.retry.max_attempts,
            other.settings.feedback.len()
        ),
        (4, 0)
    );
}

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
            "expected a cause",
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
    for name in preset::PRESETS {
        assert!(!preset::text(name).is_empty(), "{name}");
    }
}

#[test]
fn no_rollback_at_all() {
    let off = read("[rollback]\nenabled = false\non_error = true");
    assert!(!off.rollback.on_error);
    assert_eq!(off.retry.max_rollbacks(), 0);
}
