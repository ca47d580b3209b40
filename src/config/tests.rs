//! The configuration as a whole: layers, mistakes, presets, the template.

mod mistakes;
mod specifications;
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
fn environment_task_file_preset_default() {
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
    let config = parse(file(), text, &env, Some(&"T-1".into())).unwrap();
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
    for (key, from) in [
        ("cooldown.duration", "env RECOVER_COOLDOWN"),
        ("runner.timeout", "task T-1 .ultraplan/recover.toml:10"),
        ("retry.max_attempts", ".ultraplan/recover.toml:4"),
        (
            "retry.causes.NETWORK_ERROR.max_attempts",
            ".ultraplan/recover.toml:4",
        ),
        ("retry.causes.NETWORK_ERROR.delay", "preset loop"),
        ("retry.causes.DISK_FULL.max_attempts", "default"),
        ("feedback", "task T-1 .ultraplan/recover.toml:13"),
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
        (json!("2m"), "\"2m\"".to_owned())
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
fn no_rollback_at_all() {
    let off = read("[rollback]\nenabled = false\non_error = true");
    assert!(!off.rollback.on_error);
    assert_eq!(off.retry.max_rollbacks(), 0);
}
