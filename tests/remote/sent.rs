//! What is sent by hand, and what is said of a server that is away.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::machines::{REMOTE, configure, machine, machine_at, push_agent};
use crate::proxy::{Fault, Proxy};
use crate::servers::{Kind, Server, free_port};

const RUN: &str = "refs/recover-runs/night";
const NIGHT: [&str; 5] = ["--run", "night", "--remote", REMOTE, "--yes"];

fn of_night<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    [before, &NIGHT, after].concat()
}

#[test]
fn what_ended_is_sent_and_released_with_one_push() {
    let Some(server) = Server::start(Kind::Daemon) else {
        return;
    };
    let proxy = Proxy::to(server.port);
    push_agent(
        &server,
        "touch ../begun; while :; do sleep 0.1; done",
        "exit 0",
    );
    let a = machine_at(&server, proxy.port, "a", &[]);
    configure(&a, "[remote]\nmode = 'lazy'\n");
    let states = || server.git(&["rev-list", "--first-parent", "--count", RUN]);
    let push = |connections: usize| {
        let before = (proxy.counted().2, states());
        let pushed = a.json(0, &of_night(&["remote", "push"], &[]));
        assert_eq!(pushed["pushed"][0], "night", "{pushed:#}");
        let night = &pushed["runs"][0];
        assert!(
            night["holder"].is_null() && night["ahead"] == 0,
            "{pushed:#}"
        );
        let number = |text: &str| text.trim().parse::<u64>().unwrap();
        assert_eq!(number(&states()), number(&before.1) + 1);
        assert_eq!(proxy.counted().2, before.0 + connections, "connections");
    };
    let mut run = a.recover_command(&of_night(&["run"], &["--", "./agent.sh"]));
    let mut run = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while !a.root().join("begun").exists() {
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "the agent begins"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    // It ends offline: its claim cannot be given back.
    proxy.set(Fault::CutSent(0));
    a.sh(&format!("kill -INT {}", run.id())).expect(0);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    proxy.set(Fault::None);
    // Whether the last word arrived is asked first.
    push(2);
    a.write("later.txt", "x\n");
    a.recover(&["checkpoint", "create", "--run", "night"])
        .expect(0);
    push(1);
    // What was claimed by hand stays so.
    a.json(0, &of_night(&["remote", "claim"], &[]));
    let pushed = a.json(0, &of_night(&["remote", "push"], &[]));
    assert_eq!(pushed["runs"][0]["host"], "a", "{pushed:#}");
    assert!(pushed["runs"][0]["holder"].is_string(), "{pushed:#}");
    a.json(0, &of_night(&["remote", "release"], &[]));
    // What another machine has meanwhile is seen first.
    let b = machine(&server, "b");
    b.json(0, &of_night(&["remote", "claim"], &[]));
    a.write("later.txt", "y\n");
    a.recover(&["checkpoint", "create", "--run", "night"])
        .expect(0);
    let refused = a.error(11, &of_night(&["remote", "push"], &[]));
    assert!(
        refused["message"].as_str().unwrap().contains("held by b"),
        "{refused:#}"
    );
    b.json(0, &of_night(&["remote", "release"], &[]));
    assert_eq!(
        a.error(13, &of_night(&["remote", "push"], &[]))["code"],
        "conflicts"
    );
}

#[test]
fn what_is_not_there_is_not_found() {
    for server in [Kind::Path]
        .into_iter()
        .chain(Kind::STORES)
        .filter_map(Server::start)
    {
        let a = machine(&server, "a");
        for command in ["fetch", "status", "push", "claim", "release", "prune"] {
            let words = [
                "remote", command, "--run", "nope", "--remote", REMOTE, "--yes",
            ];
            let refused = a.error(4, &words);
            assert!(
                refused["hint"].as_str().unwrap().contains("runs"),
                "{refused:#}"
            );
        }
        a.json(0, &["remote", "fetch", "--remote", REMOTE]);
    }
}

#[test]
fn a_server_that_is_away_is_said_to_be() {
    let server = Server::start(Kind::Path).unwrap();
    let a = machine(&server, "a");
    let url = format!("git://127.0.0.1:{}/none.git", free_port());
    a.git(&["remote", "add", "away", &url]);
    let begun = of_begun(&["run"]);
    let mut run = a.recover_command(&[&begun[..], &["--", "true"]].concat());
    let mut run = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Before its first attempt.
    let since = Instant::now();
    let status = loop {
        let status = a.recover(&["status", "--run", "begun", "--json"]);
        if status.code == 0 && status.json()["activity"].is_object() {
            break status.json();
        }
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "{}",
            status.stdout
        );
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(
        (
            status["activity"]["what"].as_str(),
            status["activity"]["pid"].as_u64()
        ),
        (Some("waiting"), Some(u64::from(run.id()))),
        "{status:#}"
    );
    let shown = a.recover(&["status", "--run", "begun"]).stdout;
    assert!(
        shown.contains("waiting for the remote away") && !shown.contains("Next:"),
        "{shown}"
    );
    a.sh(&format!("kill -INT {}", run.id())).expect(0);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(a.json(0, &["status", "--run", "begun"])["activity"].is_null());

    for command in [["remote", "claim"], ["remote", "push"]] {
        let refused = a.error(9, &of_begun(&command));
        let (message, hint) = (
            refused["message"].as_str().unwrap(),
            refused["hint"].as_str(),
        );
        assert!(
            message.contains("cannot be reached") && message.contains("not waited for"),
            "{refused:#}"
        );
        assert!(hint.unwrap().ends_with("--wait"), "{refused:#}");
    }
    let waited = a.error(
        9,
        &[&of_begun(&["remote", "claim"])[..], &["--wait=1s"]].concat(),
    );
    assert!(
        !waited["message"]
            .as_str()
            .unwrap()
            .contains("not waited for"),
        "{waited:#}"
    );
}

fn of_begun<'a>(before: &[&'a str]) -> Vec<&'a str> {
    [before, &["--run", "begun", "--remote", "away", "--yes"]].concat()
}
