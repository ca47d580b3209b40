//! Nothing leaves unasked: what is listed, who consents, and where it is refused.

use serde_json::Value;

use crate::env::TestEnv;
use crate::machines::{REMOTE, machine, noise};
use crate::servers::{Kind, PASSWORD, Server, USER};

const CHECK: [&str; 4] = ["remote", "check", "--remote", REMOTE];

fn has_nothing(server: &Server) -> bool {
    server.git(&["for-each-ref", "--format=%(refname)"]).trim() == "refs/heads/main"
        && server.git(&["rev-list", "--all", "--count"]).trim() == "2"
}

fn paths(error: &Value) -> Vec<&str> {
    error["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect()
}

#[test]
fn the_first_time_lists_what_would_leave_and_what_stays() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    for number in 0..12 {
        env.write(&format!("new/{number}.txt"), "x".repeat(10 + number));
    }
    env.write(".env", "PASSWORD=hunter22-hunter22\n");
    env.write(
        "id_rsa",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n",
    );
    noise(&env.work().join("large.bin"), 60 << 20);
    let error = env.error(13, &CHECK);
    assert_eq!(error["code"], "confirmation_needed");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("12 untracked files (186 B)"), "{message}");
    assert!(
        message.contains("new/11.txt (21 B), new/10.txt (20 B)"),
        "the largest first: {message}"
    );
    assert!(
        error["hint"].as_str().unwrap().ends_with("--yes"),
        "{error}"
    );
    let listed = paths(&error);
    assert_eq!(listed[0], "new/11.txt");
    assert_eq!(
        listed
            .iter()
            .filter(|path| path.starts_with("new/"))
            .count(),
        10,
        "the ten largest"
    );
    assert_eq!(&listed[10..], [".env", "id_rsa", "large.bin"]);
    assert!(has_nothing(&server));
    assert!(
        !env.exists(".ultraplan/state/events.jsonl"),
        "nothing was recorded"
    );
}

#[test]
fn what_the_loop_remembers_and_nested_repositories_hold_is_listed_too() {
    let server = Server::start(Kind::Path).unwrap();
    let mut env = machine(&server, "one");
    env.write_state("plan.json", "{\"private-notes\": 1}\n");
    env.write_state("notes.env", "API_TOKEN=abcdefgh-12345678\n");
    env.sh("mkdir inner && cd inner && git init -q && echo secret-plans > f && git add f && git commit -qm inner")
        .expect(0);
    env.write("inner/new.txt", "new\n");
    let error = env.error(13, &CHECK);
    let listed = paths(&error);
    for path in [
        ".ultraplan/state/plan.json",
        "inner/f",
        "inner/new.txt",
        ".ultraplan/state/notes.env",
    ] {
        assert!(listed.contains(&path), "{path}: {error:#}");
    }
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("3 untracked files"),
        "{error}"
    );
    // Where no untracked file is to leave, none of these does.
    let folder = env.root().join("config");
    std::fs::create_dir_all(folder.join("recover")).unwrap();
    std::fs::write(
        folder.join("recover/config.toml"),
        "[remote]\nuntracked = false\n",
    )
    .unwrap();
    env.set("XDG_CONFIG_HOME", &folder.display().to_string());
    let error = env.error(13, &CHECK);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("0 untracked files"),
        "{error}"
    );
    assert!(paths(&error).contains(&"inner"), "{error}");
    env.recover(&[
        "run", "--remote", REMOTE, "--run", "night", "--yes", "--", "true",
    ])
    .expect(0);
    let sent = server.git(&["rev-list", "--objects", "--all"]);
    for line in sent.lines() {
        let id = line.split(' ').next().unwrap();
        if server.git(&["cat-file", "-t", id]) == "blob\n" {
            let found = server.git(&["cat-file", "blob", id]);
            assert!(
                !["private-notes", "secret-plans"]
                    .iter()
                    .any(|one| found.contains(one))
                    && found != "new\n",
                "{line}"
            );
        }
    }
}

#[test]
fn yes_is_remembered_for_the_url_and_revoked_with_trust() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    env.error(13, &CHECK);
    let mut yes = CHECK.to_vec();
    yes.push("--yes");
    let found = env.json(0, &yes);
    assert_eq!(found["usable"], true, "{found}");
    env.json(0, &CHECK);
    let elsewhere = Server::start(Kind::Path).unwrap();
    env.git(&["remote", "set-url", REMOTE, &elsewhere.url()]);
    env.error(13, &CHECK);
    env.git(&["remote", "set-url", REMOTE, &server.url()]);
    env.recover(&["trust", "--revoke"]).expect(0);
    env.error(13, &CHECK);
    let mut rehearsed = yes.clone();
    rehearsed.push("--dry-run");
    env.recover(&rehearsed).expect(0);
    env.error(13, &CHECK);
}

#[test]
fn the_users_own_configuration_names_and_consents_and_a_projects_does_not() {
    let server = Server::start(Kind::Path).unwrap();
    let mut env = machine(&server, "one");
    env.put(".ultraplan/recover.toml", "[remote]\nname = 'origin'\n");
    for args in [
        &["run", "--trust", "--", "true"][..],
        &["remote", "check"],
        &["--yes", "remote", "check"],
    ] {
        let error = env.error(2, args);
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("'remote' does not belong"),
            "{error}"
        );
    }
    env.put(
        ".ultraplan/recover.toml",
        format!("[remote]\nconsent = '{}'\n", server.url()),
    );
    env.error(2, &CHECK);
    env.remove(".ultraplan/recover.toml");
    assert!(
        env.error(2, &["remote", "check"])["message"]
            .as_str()
            .unwrap()
            .contains("no remote is named")
    );
    let folder = env.root().join("config");
    std::fs::create_dir_all(folder.join("recover")).unwrap();
    env.set("XDG_CONFIG_HOME", &folder.display().to_string());
    let own = format!(
        "[remote]\nname = '{REMOTE}'\nconsent = '{}'\n",
        server.url()
    );
    std::fs::write(folder.join("recover/config.toml"), own).unwrap();
    let found = env.json(0, &["remote", "check"]);
    assert_eq!(
        (&found["remote"], &found["usable"]),
        (&REMOTE.into(), &true.into()),
        "{found}"
    );
    let strict = "[remote]\nname = 'origin'\nlease = '29s'\n";
    std::fs::write(folder.join("recover/config.toml"), strict).unwrap();
    env.error(2, &["remote", "check"]);
}

#[test]
fn only_a_name_is_taken() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    let url = server.url();
    for name in [
        url.as_str(),
        "ext::touch ran",
        "https://example.com/x.git",
        "../x",
        "nowhere",
    ] {
        let error = env.error(2, &["--yes", "remote", "check", "--remote", name]);
        assert!(
            error["hint"].as_str().unwrap().contains("remote --verbose"),
            "{error}"
        );
    }
    env.git(&["remote", "add", "bad", "ext::touch ran"]);
    let error = env.error(13, &["--yes", "remote", "check", "--remote", "bad"]);
    assert_eq!(error["code"], "remote_refused");
    assert!(!env.exists("ran"));
}

#[test]
fn a_forks_pull_request_sends_nothing() {
    let server = Server::start(Kind::Path).unwrap();
    let mut env = machine(&server, "one");
    let event = env.root().join("event.json");
    let from = |head: &str| {
        format!(
            r#"{{"repository": {{"full_name": "me/x"}}, "pull_request": {{"head": {{"repo": {{"full_name": "{head}"}}}}}}}}"#
        )
    };
    env.set("GITHUB_EVENT_NAME", "pull_request_target")
        .set("GITHUB_EVENT_PATH", &event.display().to_string());
    std::fs::write(&event, from("you/x")).unwrap();
    let mut yes = CHECK.to_vec();
    yes.push("--yes");
    let error = env.error(13, &yes);
    assert_eq!(error["code"], "remote_refused");
    assert!(
        error["message"].as_str().unwrap().contains("you/x"),
        "{error}"
    );
    assert!(has_nothing(&server));
    std::fs::write(&event, from("me/x")).unwrap();
    env.json(0, &yes);
}

#[test]
fn a_public_remote_is_warned_of() {
    let Some(server) = Server::start(Kind::Daemon) else {
        return;
    };
    let env = machine(&server, "one");
    let error = env.error(13, &CHECK);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("anybody can read it without a password"),
        "{error}"
    );
    let mut yes = CHECK.to_vec();
    yes.push("--yes");
    assert!(
        env.json(0, &yes)["warnings"]
            .to_string()
            .contains("anybody can read it")
    );

    let Some(server) = Server::start(Kind::Http) else {
        return;
    };
    let env = machine(&server, "two");
    let error = env.error(13, &CHECK);
    assert!(
        !error["message"].as_str().unwrap().contains("anybody"),
        "it asks for a password: {error}"
    );
    let with_password = server
        .url()
        .replace("http://", &format!("http://{USER}:{PASSWORD}@"));
    env.git(&["remote", "set-url", REMOTE, &with_password]);
    let error = env.error(13, &CHECK);
    assert!(!error.to_string().contains(PASSWORD), "{error}");
    assert!(
        !error["message"].as_str().unwrap().contains("anybody"),
        "{error}"
    );
}

#[test]
fn a_server_that_lacks_something_ends_the_check_with_13() {
    let server = Server::start(Kind::Path).unwrap();
    server.git(&["config", "uploadpack.hideRefs", "refs/recover-runs"]);
    let env = machine(&server, "one");
    let mut yes = CHECK.to_vec();
    yes.push("--yes");
    let found = env.json(13, &yes);
    assert_eq!(found["usable"], false, "{found}");
    let away = TestEnv::repo();
    away.git(&["remote", "add", "origin", "git://127.0.0.1:1/x"]);
    let error = away.error(1, &yes);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("cannot be reached"),
        "{error}"
    );
}
