//! The user's own configuration: what it may hold, whose word counts, and who goes on without it.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::PathBuf;

use crate::env::TestEnv;

const PROJECT: &str = ".ultraplan/recover.toml";

fn file(env: &TestEnv) -> PathBuf {
    env.root().join("home/.config/recover/config.toml")
}

/// Writes the user's file.
fn own(env: &TestEnv, text: &str) -> PathBuf {
    let path = file(env);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, text).expect("the user's file");
    path
}

fn message(env: &TestEnv, args: &[&str]) -> String {
    env.error(2, args)["message"]
        .as_str()
        .expect("a message")
        .to_owned()
}

#[test]
fn the_user_comes_after_the_project_and_before_it_where_rights_are_concerned() {
    let mut env = TestEnv::repo();
    let path = own(
        &env,
        "skip_permissions = false\n[agent.mybot]\nprogram = 'mine'\nargs = ['--mine']\n[notify]\non = ['ended']\n[ui]\ncolor = 'never'\n",
    );
    env.write(
        PROJECT,
        "skip_permissions = true\n[agent.mybot]\nargs = ['--theirs']\n[notify]\non = ['parked']\n",
    );
    env.set("RECOVER_TRUST", "1");
    let config = env.json(0, &["config", "--origins"]);
    let origin = |key: &str| {
        config["origins"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(config["user_path"], path.to_str().expect("a path"));
    assert_eq!(config["config"]["skip_permissions"], false);
    assert_eq!(
        origin("skip_permissions"),
        format!("user {}:1", path.display())
    );
    assert_eq!(config["config"]["notify.on"], serde_json::json!(["ended"]));
    assert_eq!(config["config"]["agent.mybot.program"], "mine");
    assert!(
        origin("agent.mybot.program").starts_with("user "),
        "{config:#}"
    );
    assert_eq!(
        config["config"]["agent.mybot.args"],
        serde_json::json!(["--theirs"])
    );
    assert!(
        origin("agent.mybot.args").contains("recover.toml:3"),
        "{config:#}"
    );
    assert_eq!(origin("ui.color"), format!("user {}:8", path.display()));
    assert_eq!(origin("retry.max_attempts"), "default");
    assert!(
        !config["warnings"].to_string().contains("no effect"),
        "{config:#}"
    );
    // It may lie elsewhere; a relative folder is none.
    env.set(
        "XDG_CONFIG_HOME",
        env.root().join("elsewhere").to_str().expect("text"),
    );
    assert!(env.json(0, &["config"]).get("user_path").is_none());
    env.set("XDG_CONFIG_HOME", "home/.config");
    assert_eq!(
        env.json(0, &["config"])["user_path"],
        path.to_str().expect("a path")
    );
}

#[test]
fn a_broken_file_stops_what_needs_it_and_nobody_who_wants_to_look_or_go_back() {
    let env = TestEnv::repo();
    env.recover(&["run", "--", "sh", "-c", "echo two > a.txt"])
        .expect(0);
    own(
        &env,
        "[notify]\ncommand = 'mail'\n[agent.x]\nprogramm = 'x'\n",
    );
    for args in [
        &["run", "--", "true"][..],
        &["resume"],
        &["config"],
        &["agents"],
    ] {
        let message = message(&env, args);
        assert!(
            message.contains("recover/config.toml:4:1") && message.contains("'agent.x.program'"),
            "{message}"
        );
    }
    for args in [
        &["status"][..],
        &["log"],
        &["doctor"],
        &["rollback", "--to", "initial"],
        &["undo"],
        &["checkpoint", "create"],
    ] {
        let document = env.json(0, args);
        assert!(
            document["warnings"][0]
                .as_str()
                .is_some_and(|text| text.contains("config.toml:4:1")),
            "{document:#}"
        );
    }
    let hook = env
        .recover(&["hook", "run", "git", "post-commit"])
        .expect(0);
    assert!(hook.stderr.contains("config.toml:4:1"), "{}", hook.stderr);
    own(&env, "[notify\n");
    assert!(message(&env, &["run", "--", "true"]).contains("config.toml:1:"));
}

#[test]
fn a_key_in_the_wrong_file_is_refused_with_the_right_one() {
    let env = TestEnv::repo();
    for (text, said) in [
        (
            "[retry]\nmax_attempts = 5\n",
            "'retry' does not belong in the user's own configuration, but in a project's",
        ),
        ("preset = 'loop'\n", "'preset' does not belong"),
        (
            "[task.\"T\".notify]\ncommand = 'x'\n",
            "'task' does not belong",
        ),
        (
            "[[feedback]]\nname = 'x'\ncommand = 'x'\n",
            "'feedback' does not belong",
        ),
        ("[notfy]\ncommand = 'x'\n", "did you mean 'notify'"),
        ("[notify]\non = ['endet']\n", "did you mean 'ended'"),
        ("[ui]\ncolour = 'never'\n", "did you mean 'ui.color'"),
        (
            "skip_permission = true\n",
            "did you mean 'skip_permissions'",
        ),
        ("[remote]\nlease = '29s'\n", "a duration of at least 30 s"),
        (
            "[remote]\nname = 'ext::sh -c id'\n",
            "the name of a git remote",
        ),
        ("[remote]\nname = '../there'\n", "neither a URL nor a path"),
    ] {
        own(&env, text);
        let message = message(&env, &["config"]);
        assert!(
            message.contains(said) && message.contains("config.toml:"),
            "{text}: {message}"
        );
    }
    own(
        &env,
        "[remote]\nname = 'origin'\nlease = 30\nmode = 'lazy'\nsetup = 'make deps'\n",
    );
    let config = env.json(0, &["config"]);
    assert_eq!(config["warnings"], serde_json::Value::Null, "{config:#}");
    let config = config["config"].clone();
    assert_eq!(
        (&config["remote.lease"], &config["remote.name"]),
        (&"30s".into(), &"origin".into())
    );
    fs::remove_file(file(&env)).expect("the user's file");
    for (text, said) in [
        (
            "[ui]\ncolor = 'never'\n",
            "'ui' does not belong in a project's configuration, but in your own",
        ),
        (
            "[remote]\nname = 'origin'\n",
            "'remote' does not belong in a project's",
        ),
        (
            "[remote]\nmode = 'lazy'\n",
            "'remote' does not belong in a project's",
        ),
        (
            "[remote]\nallowed_signers = 'x'\n",
            "'remote' does not belong in a project's",
        ),
        ("[task.\"T\".ui]\ncolor = 'never'\n", "'ui' does not belong"),
    ] {
        env.write(PROJECT, text);
        let message = message(&env, &["config"]);
        assert!(
            message.contains(said) && message.contains("recover.toml:"),
            "{text}: {message}"
        );
    }
}

#[test]
fn a_link_to_a_file_of_the_users_own_is_followed() {
    let env = TestEnv::repo();
    let dotfiles = env.root().join("dotfiles");
    fs::create_dir(&dotfiles).expect("a folder");
    fs::write(dotfiles.join("recover.toml"), "[ui]\ncolor = 'always'\n").expect("a file");
    let path = file(&env);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    symlink(dotfiles.join("recover.toml"), &path).expect("a link");
    assert_eq!(env.json(0, &["config"])["config"]["ui.color"], "always");
    // The folder may be one as well.
    fs::remove_dir_all(path.parent().expect("a folder")).expect("the folder");
    fs::rename(dotfiles.join("recover.toml"), dotfiles.join("config.toml")).expect("another name");
    symlink(&dotfiles, path.parent().expect("a folder")).expect("a link");
    assert_eq!(env.json(0, &["config"])["config"]["ui.color"], "always");
    if chown(dotfiles.join("config.toml"), Some(12_345), None).is_ok() {
        assert!(message(&env, &["config"]).contains("belongs to another user (uid 12345)"));
        env.recover(&["checkpoint", "create"]).expect(0);
    } else {
        eprintln!("skipped: only root can give a file to somebody else");
    }
    fs::remove_file(dotfiles.join("config.toml")).expect("the file");
    env.json(0, &["config"]);
    symlink("nothing", dotfiles.join("config.toml")).expect("a link");
    assert!(message(&env, &["config"]).contains("is a broken symbolic link"));
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let env = TestEnv::repo();
    let path = own(&env, "");
    fs::remove_file(&path).expect("the file");
    assert_eq!(env.sh(&format!("mkfifo '{}'", path.display())).code, 0);
    assert!(message(&env, &["config"]).contains("config.toml"));
    env.recover(&["checkpoint", "create"]).expect(0);
    let without = env
        .command(env!("CARGO_BIN_EXE_recover"))
        .args(["config"])
        .env_remove("HOME")
        .output();
    assert!(
        without.expect("recover starts").status.success(),
        "without HOME there is none"
    );
}

#[test]
fn color_is_as_the_user_wants_it_unless_the_call_says_otherwise() {
    let mut env = TestEnv::repo();
    env.recover(&["checkpoint", "create"]).expect(0);
    own(&env, "[ui]\ncolor = 'always'\n");
    let colored =
        |env: &TestEnv, args: &[&str]| env.recover(args).expect(0).stdout.contains('\x1b');
    assert!(colored(&env, &["checkpoint", "list"]));
    assert!(!colored(&env, &["checkpoint", "list", "--color", "never"]));
    assert!(!colored(&env, &["checkpoint", "list", "--color", "auto"]));
    env.set("NO_COLOR", "1");
    assert!(!colored(&env, &["checkpoint", "list"]));
    assert!(colored(&env, &["checkpoint", "list", "--color", "always"]));
}

#[test]
fn the_users_word_skips_an_agents_permissions_and_a_projects_does_not_overrule_it() {
    let mut env = TestEnv::repo();
    env.script("bot.sh", "echo \"$@\" > args.txt");
    let bot = format!(
        "[agent.bot]\nprogram = '{}'\nedit_args = ['--edit']\nyolo_args = ['--all']\n",
        env.work().join("bot.sh").display()
    );
    let run = |env: &TestEnv, more: &[&str]| {
        env.recover(&[&["run", "--agent", "bot", "--prompt", "x"][..], more].concat())
            .expect(0);
        env.read("args.txt").trim().to_owned()
    };
    own(&env, &bot);
    assert_eq!(run(&env, &[]), "--edit");
    own(&env, &format!("skip_permissions = true\n{bot}"));
    assert_eq!(run(&env, &[]), "--all");
    own(&env, &format!("skip_permissions = false\n{bot}"));
    env.write(PROJECT, "skip_permissions = true\n");
    env.set("RECOVER_TRUST", "1");
    assert_eq!(run(&env, &[]), "--edit");
    assert_eq!(run(&env, &["--yolo"]), "--all");
}
