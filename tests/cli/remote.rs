//! Runs that lie on a git server, here a bare repository by its path, and machines that are clones with homes of their own.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::{Ran, TestEnv};

mod foreign;
mod holding;
mod team;

/// A server with one commit, and a machine that has cloned it.
fn server() -> (PathBuf, TestEnv) {
    let mut one = TestEnv::repo();
    let server = one.root().join("server.git");
    one.git(&[
        "init",
        "-q",
        "--bare",
        "-b",
        "main",
        &server.to_string_lossy(),
    ]);
    one.git(&["remote", "add", "origin", &server.to_string_lossy()]);
    one.git(&["push", "-q", "origin", "main"]);
    one.set("RECOVER_TEST_HOST", "alpha");
    configure(&one, &server, "");
    (server, one)
}

/// Another machine with a fresh clone.
fn machine(server: &Path, host: &str) -> TestEnv {
    let mut env = TestEnv::plain();
    env.git(&["clone", "-q", &server.to_string_lossy(), "."]);
    env.set("RECOVER_TEST_HOST", host);
    configure(&env, server, "");
    env
}

/// What the user of a machine has agreed to.
fn configure(env: &TestEnv, server: &Path, more: &str) {
    let folder = env.root().join("home/.config/recover");
    fs::create_dir_all(&folder).expect("a place in the test's own folder");
    let text = format!(
        "[remote]\nlease = \"30s\"\nconsent = \"{}\"\n{more}",
        server.display()
    );
    fs::write(folder.join("config.toml"), text).expect("a place in the test's own folder");
}

/// A run of `recover` that is at work in the background.
struct AtWork(Child);

impl AtWork {
    fn start(env: &TestEnv, args: &[&str]) -> Self {
        let mut command = env.recover_command(args);
        Self(
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("a process of the test"),
        )
    }

    fn kill(mut self) {
        self.0.kill().expect("a process of the test");
        self.0.wait().expect("a process of the test");
    }

    fn end(self) -> Ran {
        Ran::of(&self.0.wait_with_output().expect("a process of the test"))
    }
}

/// Waits until something is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The run of a document of `remote`.
#[track_caller]
fn of_run<'a>(document: &'a Value, id: &str) -> &'a Value {
    let runs = document["runs"].as_array().expect("a list");
    runs.iter()
        .find(|run| run["run_id"] == id)
        .unwrap_or_else(|| panic!("{document:#}"))
}

const NAME: &[&str] = &["--remote", "origin", "--run", "night"];

fn with<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    [before, NAME, after].concat()
}

#[test]
fn a_killed_run_goes_on_in_a_fresh_clone() {
    let (server, one) = server();
    one.script(
        "agent.sh",
        "cat > prompt.txt\necho \"$RECOVER_ITERATION.$RECOVER_ATTEMPT fencing $RECOVER_FENCING\" >> log.txt\n\
         [ $RECOVER_ITERATION.$RECOVER_ATTEMPT = 2.1 ] && echo $$ > agent.pid && touch begun && sleep 60\nexit 0",
    );
    let work = with(
        &["run"],
        &[
            "--attempts",
            "3",
            "--iterations",
            "3",
            "--prompt",
            "do it",
            "--",
            "./agent.sh",
        ],
    );
    let run = AtWork::start(&one, &work);
    until("the second iteration begins", || one.exists("begun"));
    run.kill();
    // Nobody supervises the agent any more: it is ended.
    until("the agent ends", || one.sh("pgrep -F agent.pid").code != 0);

    let two = machine(&server, "beta");
    let status = two.json(0, &with(&["remote", "status"], &[]));
    let held = of_run(&status, "night");
    assert_eq!(
        (
            held["host"].as_str(),
            held["fencing"].as_u64(),
            held["ahead"].as_u64()
        ),
        (Some("alpha"), Some(1), Some(0))
    );
    assert!(
        held["holder"].is_string() && held["behind"] == 0,
        "{held:#}"
    );
    assert_eq!(
        two.error(11, &with(&["resume"], &["--trust"]))["code"],
        "claimed"
    );
    // Its command came from there.
    let refused = two.error(13, &with(&["resume"], &["--steal", "--yes"]));
    assert_eq!(refused["code"], "not_trusted");
    assert!(
        refused["message"]
            .as_str()
            .expect("a text")
            .contains("./agent.sh"),
        "{refused:#}"
    );
    assert_eq!(
        of_run(&two.json(0, &with(&["remote", "status"], &[])), "night")["host"],
        "alpha"
    );

    let resumed = two.json(0, &with(&["resume"], &["--steal", "--yes", "--trust"]));
    assert_eq!(
        (
            resumed["outcome"].as_str(),
            resumed["run"]["run_id"].as_str()
        ),
        (Some("complete"), Some("night"))
    );
    let attempts = |iteration: usize| {
        resumed["iterations"][iteration]["attempts"]
            .as_array()
            .expect("a list")
            .len()
    };
    assert_eq!((attempts(0), attempts(1), attempts(2)), (1, 2, 1));
    assert_eq!(
        two.read("log.txt"),
        "1.1 fencing 1\n2.2 fencing 2\n3.1 fencing 2\n"
    );
    assert_eq!(two.read("agent.sh"), one.read("agent.sh"));
    assert_eq!(two.read("prompt.txt"), "do it\n");
    assert_eq!(
        two.git(&["rev-parse", "HEAD"]),
        one.git(&["rev-parse", "HEAD"])
    );
    let status = two.json(0, &with(&["remote", "status"], &[]));
    let ended = of_run(&status, "night");
    assert!(ended["holder"].is_null(), "{ended:#}");
    assert_eq!(
        (
            ended["ahead"].as_u64(),
            ended["behind"].as_u64(),
            ended["fencing"].as_u64()
        ),
        (Some(0), Some(0), Some(2))
    );
    // The first machine sees it.
    let runs = one.json(0, &["runs", "--remote", "origin"]);
    assert_eq!(
        (
            runs["runs"][0]["status"].as_str(),
            runs["runs"][0]["attempts"].as_u64()
        ),
        (Some("complete"), Some(4))
    );
}

#[test]
fn budgets_are_those_that_the_run_began_with_wherever_it_goes_on() {
    let (server, one) = server();
    one.write("agent.sh", "#!/bin/sh\necho x >> tries.txt\nexit 1\n");
    one.git(&["add", "."]);
    one.git(&["commit", "-qm", "an agent that fails"]);
    one.git(&["push", "-q", "origin", "main"]);
    let tried = with(
        &["run"],
        &["--no-wait", "--attempts", "2", "--", "sh", "agent.sh"],
    );
    one.recover(&tried).expect(6);
    let two = machine(&server, "beta");
    two.recover(&with(&["resume"], &["--trust", "--wait"]))
        .expect(8);
    assert_eq!(two.read("tries.txt"), "x\nx\n");
    let three = machine(&server, "gamma");
    three
        .recover(&with(&["resume"], &["--trust", "--wait"]))
        .expect(8);
    assert_eq!(three.read("tries.txt"), "x\nx\n");
}

#[test]
fn whoever_loses_the_run_stops_its_agent_and_leaves_its_work_aside() {
    let (server, one) = server();
    one.script("agent.sh", "echo mine > work.txt\ntouch begun\nsleep 100");
    let run = AtWork::start(&one, &with(&["run"], &["--", "./agent.sh"]));
    until("the agent begins", || one.exists("begun"));
    let two = machine(&server, "beta");
    let refused = two.error(13, &with(&["remote", "claim"], &["--steal"]));
    assert_eq!(refused["code"], "confirmation_needed");
    let claimed = two.json(0, &with(&["remote", "claim"], &["--steal", "--yes"]));
    assert_eq!(of_run(&claimed, "night")["fencing"], 2);
    let ran = run.end().expect(11);
    assert!(
        ran.stderr.contains("taken over by beta")
            && ran.stderr.contains("refs/recover-runs-side/night/1"),
        "{}",
        ran.stderr
    );
    let aside = one.git(&["ls-remote", "origin", "refs/recover-runs-side/*"]);
    assert!(aside.contains("refs/recover-runs-side/night/1"), "{aside}");
    // Nothing is charged, and what it did is here.
    let state = one.json(0, &["status"]);
    assert_eq!(state["run"]["status"], "paused");
    assert_eq!(state["retry"]["error_count"], 0);
    assert_eq!(one.read("work.txt"), "mine\n");

    // Writers here need the claim, readers do not.
    for writer in [
        &["rollback", "--to", "initial"][..],
        &["accept", "--yes"],
        &["close"],
        &["manual-fix", "start"],
    ] {
        assert_eq!(one.error(11, writer)["code"], "claimed", "{writer:?}");
    }
    one.json(0, &["report"]);
    assert_eq!(
        two.json(0, &with(&["remote", "release"], &[]))["runs"][0]["holder"],
        Value::Null
    );
    one.json(0, &["rollback", "--to", "initial"]);
}

#[test]
fn uncommitted_files_refuse_the_take_over_and_the_claim_is_given_back() {
    let (server, one) = server();
    one.script(
        "agent.sh",
        "echo theirs > new.txt\necho two >> a.txt\nexit 1",
    );
    one.recover(&with(
        &["run"],
        &["--attempts", "2", "--no-wait", "--", "./agent.sh"],
    ))
    .expect(6);
    let two = machine(&server, "beta");
    two.write("new.txt", "mine\n");
    let refused = two.error(13, &with(&["resume"], &["--trust", "--wait"]));
    assert_eq!(
        (
            refused["code"].as_str(),
            refused["paths"][0]["path"].as_str()
        ),
        (Some("hand_edits"), Some("new.txt"))
    );
    assert_eq!(
        (two.read("new.txt"), two.read("a.txt")),
        ("mine\n".to_owned(), "one\n".to_owned())
    );
    let status = two.json(0, &with(&["remote", "status"], &[]));
    assert!(of_run(&status, "night")["holder"].is_null(), "{status:#}");
    two.remove("new.txt");
    two.recover(&with(&["resume"], &["--trust", "--wait"]))
        .expect(8);
    assert_eq!(two.read("a.txt"), "one\ntwo\ntwo\n");
}

#[test]
fn what_lies_there_has_neither_places_nor_secrets_of_this_machine() {
    let (server, one) = server();
    one.script(
        "agent.sh",
        "echo \"failed in $PWD with ghp_abcdefghijklmnopqrstuvwxyz0123456789\" >&2\nexit 1",
    );
    let agent = one.work().join("agent.sh").to_string_lossy().into_owned();
    one.recover(&with(
        &["run"],
        &["--attempts", "1", "--", &agent, "--token=abcd-1234-efgh"],
    ))
    .expect(8);
    let states = one.git(&[
        "-C",
        &server.to_string_lossy(),
        "rev-list",
        "refs/recover-runs/night",
    ]);
    let root = one.root().to_string_lossy().into_owned();
    let mut seen = 0;
    for commit in states.lines() {
        let text = one.git(&["-C", &server.to_string_lossy(), "cat-file", "-p", commit]);
        assert!(!text.contains(&root), "{text}");
        for file in ["events.jsonl", "meta.json", "claim.json"] {
            let shown = one.sh(&format!(
                "git -C '{}' show {commit}:{file}",
                server.display()
            ));
            seen += usize::from(shown.code == 0);
            for secret in [root.as_str(), "ghp_abc", "abcd-1234"] {
                assert!(!shown.stdout.contains(secret), "{file}: {}", shown.stdout);
            }
        }
    }
    assert!(seen > 6, "{states}");
    // It is a command of this machine there.
    let two = machine(&server, "beta");
    let refused = two.error(
        13,
        &with(&["resume"], &["--wait", "--strategy", "retry_same"]),
    );
    assert_eq!(refused["code"], "not_trusted");
}

/// Pushes a state that is not as recover writes it.
fn tamper(env: &TestEnv, edit: &str) {
    let script = format!(
        "set -e; git fetch -q origin +refs/recover-runs/night:refs/t; tip=$(git rev-parse refs/t); mkdir ../t; cd ../t; \
         for f in claim.json events.jsonl meta.json; do git -C '{work}' show $tip:$f > $f; done; {edit}; \
         export GIT_DIR='{work}/.git' GIT_INDEX_FILE=$PWD/../index GIT_WORK_TREE=$PWD; rm -f $GIT_INDEX_FILE; git add -A .; \
         new=$(git commit-tree $(git write-tree) -p $tip -m x); git push -q origin $new:refs/recover-runs/night; cd ..; rm -rf t",
        work = env.work().display()
    );
    env.sh(&script).expect(0);
}

#[test]
fn what_was_tampered_with_is_neither_believed_nor_claimed() {
    let next = "sed -i 's/\"state\": [0-9]*/\"state\": 99/' meta.json";
    let tricks: &[(&str, i32, &str)] = &[
        (next, 12, "another number"),
        (
            "sed -i 's/\"schema\": 1/\"schema\": 2/' meta.json",
            15,
            "newer version",
        ),
        ("sed -i 's/night/day/' meta.json", 12, "about run day"),
        (
            "rm claim.json; ln -s /etc/passwd claim.json",
            12,
            "no ordinary file",
        ),
        ("echo hi > hooks", 12, "no state has"),
        ("printf '{}\\n' > events.jsonl", 12, ""),
    ];
    let (server, one) = server();
    one.script("agent.sh", "touch ran\nexit 1");
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "2", "--", "./agent.sh"],
    ))
    .expect(6);
    let good = one.git(&["ls-remote", "origin", "refs/recover-runs/night"]);
    let good = good.split_whitespace().next().expect("an id");
    for (edit, code, said) in tricks {
        tamper(&one, edit);
        let bad = one.git(&["ls-remote", "origin", "refs/recover-runs/night"]);
        let two = machine(&server, "beta");
        let refused = two.recover(&with(&["resume"], &["--trust", "--yes", "--steal"]));
        assert_eq!(refused.code, *code, "{edit}: {}", refused.stderr);
        assert!(refused.stderr.contains(said), "{edit}: {}", refused.stderr);
        assert!(!two.exists("ran"), "{edit}");
        assert_eq!(
            one.git(&["ls-remote", "origin", "refs/recover-runs/night"]),
            bad,
            "claimed: {edit}"
        );
        one.git(&[
            "push",
            "-q",
            "-f",
            "origin",
            &format!("{good}:refs/recover-runs/night"),
        ]);
    }
}

#[test]
fn a_run_is_sent_claimed_and_released_by_hand() {
    let (server, one) = server();
    one.recover(&["run", "--run", "night", "--", "true"])
        .expect(0);
    let pushed = one.json(0, &with(&["remote", "push"], &[]));
    assert_eq!(
        (pushed["remote"].as_str(), pushed["pushed"][0].as_str()),
        (Some("origin"), Some("night"))
    );
    assert_eq!(of_run(&pushed, "night")["ahead"], 0);
    assert_eq!(
        one.json(0, &with(&["remote", "push"], &[]))["pushed"]
            .as_array()
            .expect("a list")
            .len(),
        0
    );
    let two = machine(&server, "beta");
    let fetched = two.json(0, &["remote", "fetch", "--remote", "origin"]);
    assert_eq!(fetched["fetched"][0], "night");
    assert!(!two.exists(".ultraplan/state/events.jsonl"));
    let claimed = two.json(0, &with(&["remote", "claim"], &[]));
    assert_eq!(
        (
            of_run(&claimed, "night")["host"].as_str(),
            of_run(&claimed, "night")["behind"].as_u64()
        ),
        (Some("beta"), Some(0))
    );
    let held = one.error(11, &with(&["remote", "claim"], &[]));
    assert!(
        held["message"]
            .as_str()
            .expect("a text")
            .contains("held by beta"),
        "{held:#}"
    );
    let gave_up = one.error(9, &with(&["remote", "claim"], &["--wait=1s"]));
    assert!(
        gave_up["message"]
            .as_str()
            .expect("a text")
            .contains("held by beta"),
        "{gave_up:#}"
    );
    one.error(11, &with(&["remote", "release"], &[]));
    assert_eq!(
        one.error(13, &with(&["remote", "release"], &["--force"]))["code"],
        "confirmation_needed"
    );
    let released = one.json(0, &with(&["remote", "release"], &["--force", "--yes"]));
    assert!(
        of_run(&released, "night")["holder"].is_null(),
        "{released:#}"
    );
    assert_eq!(of_run(&released, "night")["fencing"], 3);
    // Names only, and only what git knows.
    assert_eq!(
        one.error(
            2,
            &["remote", "status", "--remote", &server.to_string_lossy()]
        )["exit_code"],
        2
    );
    one.error(2, &["remote", "status"]);
    one.error(
        4,
        &["remote", "claim", "--remote", "origin", "--run", "other"],
    );
}

// Whoever may push there may have written what would be run: a claim by hand agrees to nothing.
#[test]
fn what_was_claimed_by_hand_starts_nothing_that_was_not_agreed_to() {
    let (server, one) = server();
    one.script("agent.sh", "touch ran\nexit 1");
    let work = [
        "--no-wait",
        "--attempts",
        "3",
        "--feedback",
        "test=touch checked",
        "--",
        "./agent.sh",
    ];
    one.recover(&with(&["run"], &work)).expect(6);
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &[]));
    let resume: &[&str] = &[
        "resume",
        "--run",
        "night",
        "--strategy",
        "retry_with_context",
    ];
    for _ in 0..2 {
        let refused = two.error(13, resume);
        assert_eq!(refused["code"], "not_trusted");
        assert!(
            refused["message"]
                .as_str()
                .expect("a text")
                .contains("./agent.sh"),
            "{refused:#}"
        );
    }
    assert!(!two.exists("ran") && !two.exists("checked"));
    let agreed = two.recover(&[resume, &["--trust", "--wait"]].concat());
    assert!(two.exists("ran"), "{agreed:?}");
    // It was agreed to, until it changes.
    two.sh("rm ran");
    assert_ne!(two.recover(resume).code, 13);
    // Its checks are not run for a person's fix either.
    let three = machine(&server, "gamma");
    three.json(0, &with(&["remote", "claim"], &["--steal", "--yes"]));
    three
        .recover(&["manual-fix", "start", "--run", "night"])
        .expect(0);
    assert_eq!(
        three.error(13, &["manual-fix", "verify", "--run", "night"])["code"],
        "not_trusted"
    );
    assert!(!three.exists("checked"));
}

// A chain tells of its own run: what another run has here is none of its business, also where both have a checkpoint of the
// same second and number.
#[test]
fn a_run_from_elsewhere_does_nothing_to_the_others() {
    let (server, mut one) = server();
    one.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    one.json(0, &["checkpoint", "create", "--run", "night"]);
    one.json(0, &with(&["remote", "push"], &[]));
    let mut two = machine(&server, "beta");
    two.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    let own = two.json(0, &["checkpoint", "create", "--run", "local"])["checkpoint"]["id"].clone();
    let before = two.json(0, &["checkpoint", "list", "--run", "local"]);
    let refs = two.git(&["for-each-ref", "refs/recover/local"]);
    two.json(0, &with(&["remote", "claim"], &["--steal", "--yes"]));
    assert_eq!(
        two.json(0, &["checkpoint", "list", "--run", "local"]),
        before
    );
    assert_eq!(two.git(&["for-each-ref", "refs/recover/local"]), refs);
    let theirs =
        two.json(0, &["checkpoint", "list", "--run", "night"])["checkpoints"][0]["id"].clone();
    let (theirs, own) = (
        theirs.as_str().expect("an id"),
        own.as_str().expect("an id"),
    );
    assert!(theirs != own && theirs.starts_with(own), "{theirs}");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .expect("a free port")
        .port()
}

/// A server of git's own protocol, ended when dropped.
struct Daemon(Child);

impl Daemon {
    fn start(env: &TestEnv, port_number: u16) -> Self {
        let mut daemon = env.command("git");
        daemon.args([
            "daemon",
            "--reuseaddr",
            "--listen=127.0.0.1",
            "--export-all",
            "--enable=receive-pack",
        ]);
        let (port, base) = (
            format!("--port={port_number}"),
            format!("--base-path={}", env.root().display()),
        );
        daemon
            .args([port, base])
            .stderr(Stdio::null())
            .process_group(0);
        let daemon = Self(daemon.spawn().expect("a process of the test"));
        until("the server listens", || {
            TcpStream::connect(("127.0.0.1", port_number)).is_ok()
        });
        daemon
    }
}

/// A machine that reaches its server through a daemon, which may go away and come back at that port.
fn behind_daemon(more: &str) -> (TestEnv, u16, Daemon) {
    let (_, one) = server();
    let port = free_port();
    let url = format!("git://127.0.0.1:{port}/server.git");
    one.git(&["remote", "set-url", "origin", &url]);
    configure(&one, Path::new(&url), more);
    let daemon = Daemon::start(&one, port);
    (one, port, daemon)
}

impl Daemon {
    /// From now on it takes connections, and says nothing.
    fn freeze(&self) {
        let group = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process_group(group, rustix::process::Signal::STOP)
            .expect("a process of the test");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Its children too: git is only a wrapper of the daemon.
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_that_is_away_is_waited_for_and_costs_no_attempt() {
    let (one, port, daemon) = behind_daemon("");
    one.script(
        "agent.sh",
        "echo x >> tries.txt\ntouch begun\nwhile ! [ -e gone ]; do sleep 0.1; done\nexit 1",
    );
    let run = AtWork::start(
        &one,
        &with(&["run"], &["--attempts", "2", "--", "./agent.sh"]),
    );
    until("the agent begins", || one.exists("begun"));
    drop(daemon);
    one.put("gone", "");
    std::thread::sleep(Duration::from_secs(9));
    assert_eq!(one.read("tries.txt"), "x\n");
    let status = one.json(0, &with(&["remote", "status"], &[]));
    assert!(
        of_run(&status, "night")["ahead"].as_u64() > Some(0),
        "{status:#}"
    );
    assert!(
        status["warnings"].to_string().contains("cannot be reached"),
        "{status:#}"
    );
    let _daemon = Daemon::start(&one, port);
    let ran = run.end().expect(8);
    assert!(
        ran.stderr.contains("waiting for the remote origin"),
        "{}",
        ran.stderr
    );
    assert_eq!(one.read("tries.txt"), "x\nx\n");
    let status = one.json(0, &with(&["remote", "status"], &[]));
    assert_eq!(of_run(&status, "night")["ahead"], 0);
}

#[test]
fn an_agent_is_stopped_in_time_where_no_sign_of_life_arrives_and_nothing_is_charged() {
    let (one, port, daemon) = behind_daemon("");
    one.script(
        "agent.sh",
        "echo $$ > agent.pid\ntouch begun\n[ -e again ] && sleep 1 && exit 0\nsleep 100",
    );
    let run = AtWork::start(
        &one,
        &with(&["run"], &["--attempts", "1", "--", "./agent.sh"]),
    );
    until("the agent begins", || one.exists("begun"));
    let begun = Instant::now();
    drop(daemon);
    until("the agent is stopped", || {
        one.sh("pgrep -F agent.pid").code != 0
    });
    // The lease is 30 s: nobody may take the run before that.
    let took = begun.elapsed();
    assert!(
        took > Duration::from_secs(10) && took < Duration::from_secs(27),
        "{took:?}"
    );
    one.put("again", "");
    let _daemon = Daemon::start(&one, port);
    let ran = run.end().expect(0);
    assert!(
        ran.stderr
            .contains("no sign of life reached origin in time"),
        "{}",
        ran.stderr
    );
    let status = one.json(0, &["status"]);
    assert_eq!(
        (
            status["run"]["status"].as_str(),
            status["retry"]["error_count"].as_u64()
        ),
        (Some("complete"), Some(0))
    );
}

#[test]
fn a_server_that_was_set_back_is_healed_by_the_holder_and_damage_for_others() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--attempts", "1", "--no-wait", "--", "false"],
    ))
    .expect(8);
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &[]));
    let tip = one.git(&["ls-remote", "origin", "refs/recover-runs/night"]);
    let tip = tip.split_whitespace().next().expect("an id").to_owned();
    let old = one.git(&[
        "-C",
        &server.to_string_lossy(),
        "rev-parse",
        &format!("{tip}~2"),
    ]);
    one.git(&[
        "-C",
        &server.to_string_lossy(),
        "update-ref",
        "refs/recover-runs/night",
        old.trim(),
    ]);
    let healed = two.json(0, &with(&["remote", "push"], &[]));
    assert_eq!(of_run(&healed, "night")["host"], "beta");
    let now = one.git(&[
        "-C",
        &server.to_string_lossy(),
        "merge-base",
        "--is-ancestor",
        &tip,
        "refs/recover-runs/night",
    ]);
    assert_eq!(now, "");
    one.git(&[
        "-C",
        &server.to_string_lossy(),
        "update-ref",
        "refs/recover-runs/night",
        old.trim(),
    ]);
    two.json(0, &with(&["remote", "push"], &[]));
    // A server that lost all of it, for whoever saw that somebody else had it: nobody knows what happened since.
    one.json(0, &with(&["remote", "status"], &[]));
    one.error(11, &with(&["remote", "claim"], &[]));
    let lose = || {
        one.git(&[
            "-C",
            &server.to_string_lossy(),
            "update-ref",
            "-d",
            "refs/recover-runs/night",
        ])
    };
    lose();
    assert_eq!(
        one.error(12, &with(&["remote", "claim"], &[]))["code"],
        "corrupt"
    );
    two.json(0, &with(&["remote", "push"], &[]));
    assert_eq!(
        of_run(&one.json(0, &with(&["remote", "status"], &[])), "night")["host"],
        "beta"
    );
    // Nobody has it: what beta did is there again before anybody goes on.
    two.json(0, &["retry-status", "--reset", "--run", "night"]);
    two.json(0, &with(&["remote", "release"], &[]));
    one.json(0, &with(&["remote", "status"], &[]));
    lose();
    one.json(0, &with(&["remote", "claim"], &[]));
    let events = |env: &TestEnv, kind: &str| env.events(kind).len();
    assert_eq!(
        events(&one, "retry_reset"),
        1,
        "{}",
        one.read_state("events.jsonl")
    );
}

#[test]
fn runs_that_ended_are_removed_from_the_server_when_they_are_not_kept_any_longer() {
    let (server, one) = server();
    one.recover(&with(&["run"], &["--", "true"])).expect(0);
    one.recover(&[
        "run",
        "--remote",
        "origin",
        "--run",
        "other",
        "--attempts",
        "1",
        "--",
        "false",
    ])
    .expect(8);
    let kept = one.json(0, &["remote", "prune", "--remote", "origin", "--yes"]);
    assert_eq!(
        (
            kept["pruned"].as_array().expect("a list").len(),
            kept["runs"].as_array().expect("a list").len()
        ),
        (0, 2)
    );
    one.recover(&["close", "night"]).expect(0);
    one.json(0, &with(&["remote", "push"], &[]));
    assert_eq!(
        one.error(13, &["remote", "prune", "--remote", "origin"])["code"],
        "confirmation_needed"
    );
    assert_eq!(
        one.json(0, &["--dry-run", "remote", "prune", "--remote", "origin"])["pruned"][0],
        "night"
    );
    assert!(
        one.git(&["ls-remote", "origin"])
            .contains("refs/recover-runs/night")
    );
    let pruned = one.json(0, &["remote", "prune", "--remote", "origin", "--yes"]);
    assert_eq!(
        (
            pruned["pruned"][0].as_str(),
            pruned["runs"].as_array().expect("a list").len()
        ),
        (Some("night"), 1)
    );
    assert!(
        !one.git(&["ls-remote", "origin"])
            .contains("refs/recover-runs/night")
    );
    // What is here stays, and may go there again.
    assert_eq!(
        one.json(0, &["status", "--run", "night"])["run"]["status"],
        "closed"
    );
    assert_eq!(
        one.json(0, &with(&["remote", "push"], &[]))["pushed"][0],
        "night"
    );
    // One that another machine holds stays.
    let two = machine(&server, "beta");
    two.json(
        0,
        &["remote", "claim", "--remote", "origin", "--run", "other"],
    );
    one.error(
        13,
        &[
            "remote", "prune", "--remote", "origin", "--run", "other", "--yes",
        ],
    );
}

#[test]
fn a_signal_gives_the_claim_back_and_an_expired_one_is_taken_without_force() {
    let (server, one) = server();
    one.script("agent.sh", "touch begun\nsleep 100");
    let run = AtWork::start(&one, &with(&["run"], &["--", "./agent.sh"]));
    until("the agent begins", || one.exists("begun"));
    one.sh(&format!("kill -TERM {}", run.0.id())).expect(0);
    run.end().expect(143);
    let status = one.json(0, &with(&["remote", "status"], &[]));
    assert!(of_run(&status, "night")["holder"].is_null(), "{status:#}");
    one.remove("begun");
    let run = AtWork::start(&one, &with(&["resume"], &[]));
    until("the agent begins again", || one.exists("begun"));
    run.kill();
    // It has to be seen unchanged for a whole lease, by this machine's own clock.
    let two = machine(&server, "beta");
    assert_eq!(
        two.error(9, &with(&["remote", "claim"], &["--wait=5s"]))["code"],
        "gave_up_waiting"
    );
    let claimed = two.json(0, &with(&["remote", "claim"], &["--wait=60s"]));
    let run = of_run(&claimed, "night");
    assert_eq!(
        (run["host"].as_str(), run["fencing"].as_u64()),
        (Some("beta"), Some(3))
    );
}

#[test]
fn a_series_skips_the_numbers_that_lie_on_the_server() {
    let (server, one) = server();
    let two = machine(&server, "beta");
    for (env, name) in [(&one, "night"), (&two, "night-2"), (&one, "night-3")] {
        let run = ["run", "--series", "night", "--remote", "origin"];
        let run = env.json(0, &[&run[..], &["--", "true"]].concat());
        assert_eq!(run["run"]["run_id"], name);
    }
}
