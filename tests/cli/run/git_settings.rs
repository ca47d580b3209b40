//! What an attempt does to git's settings and hooks: reported, and put back by an automatic rollback.

use crate::env::{Ran, TestEnv};
use crate::run::attempts::quick;

/// The first of two iterations is given up.
const AGENT: &str = "[ $RECOVER_ITERATION = 1 ] || exit 0; echo bad > a.txt; \
    git config core.hooksPath /tmp/x; git config alias.st '!echo pwned'; git config user.name Agent; \
    printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; echo '*.log' >> .git/info/exclude; \
    git config --unset core.fsmonitor; git config filter.own.clean 'sed s/a/b/'; git config core.bare true; true";
const CHECK: &str =
    "test=! grep -q bad a.txt || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";

fn night(env: &TestEnv) -> Ran {
    env.git(&["config", "core.fsmonitor", "false"]);
    env.recover(&[
        "run",
        "--run",
        "n",
        "--iterations",
        "2",
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        AGENT,
    ])
}

// core.bare alone keeps every git command from working; hooks and filters run in the next commit.
#[test]
fn an_automatic_rollback_puts_back_what_runs_programs_or_stops_git() {
    let env = quick();
    let exclude = env.read(".git/info/exclude");
    let ran = night(&env);
    assert!(
        ran.stderr.contains("git's settings were put back"),
        "{}",
        ran.stderr
    );
    assert_eq!(env.git(&["config", "core.bare"]), "false\n");
    assert_eq!(env.git(&["config", "core.fsmonitor"]), "false\n");
    for key in ["core.hooksPath", "alias.st", "filter.own.clean"] {
        assert_ne!(env.sh(&format!("git config {key}")).code, 0, "{key}");
    }
    assert!(!env.exists(".git/hooks/pre-commit"));
    assert_eq!(env.read(".git/info/exclude"), exclude);
    // It starts nothing, and may be somebody else's meanwhile.
    assert_eq!(env.git(&["config", "user.name"]), "Agent\n");
    assert_eq!(env.read("a.txt"), "one\n");
    let status = env.json(0, &["status", "--run", "n"]);
    let found = status["night"]["to_look_at"].as_array().expect("a list");
    let text = found
        .iter()
        .find(|one| one["kind"] == "git_settings")
        .expect("it is to look at")["text"]
        .to_string();
    for name in [
        "core.bare",
        "core.hookspath",
        "user.name",
        ".git/hooks/pre-commit",
        ".git/info/exclude",
    ] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

// CI puts credentials into the configuration.
#[test]
fn no_value_of_another_key_is_stored() {
    let env = quick();
    env.git(&[
        "config",
        "http.extraheader",
        "AUTHORIZATION: basic c2VjcmV0",
    ]);
    night(&env);
    let stored = env.read(".git/recover/settings.json");
    assert!(
        stored.contains("http.extraheader") && !stored.contains("c2VjcmV0"),
        "{stored}"
    );
    assert_eq!(env.mode(".git/recover/settings.json"), 0o600);
}

// What was changed by hand since then is not the attempt's.
#[test]
fn what_changed_since_the_attempt_stays() {
    let env = TestEnv::repo();
    let agent = "git config alias.st status; echo bad > a.txt; exit 1";
    env.recover(&[
        "run",
        "--run",
        "n",
        "--attempts",
        "1",
        "--no-wait",
        "--",
        "sh",
        "-c",
        agent,
    ]);
    env.git(&["config", "alias.st", "status -sb"]);
    env.recover(&["resume", "--run", "n", "--strategy", "skip"]);
    assert_eq!(env.git(&["config", "alias.st"]), "status -sb\n");
}

// What an attempt hides from git is taken back like everything else.
#[test]
fn what_an_attempt_hid_from_git_is_taken_back() {
    for hide in [
        "echo unt >> .git/info/exclude; echo conftest.py >> .git/info/exclude; echo x > conftest.py",
        "echo '*' > .gitignore",
    ] {
        let env = quick();
        env.write("unt", "mine\n");
        env.script(
            "../agent.sh",
            &format!("[ $RECOVER_ATTEMPT = 2 ] || {{ {hide}; echo bad > unt; false; }}"),
        );
        env.json(
            0,
            &[
                "run",
                "--attempts",
                "2",
                "--on-failure",
                "rollback",
                "--",
                "sh",
                "../agent.sh",
            ],
        );
        assert_eq!(
            (env.read("unt"), env.exists("conftest.py")),
            ("mine\n".into(), false),
            "{hide}"
        );
    }
}
