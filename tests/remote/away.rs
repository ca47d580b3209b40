//! Servers that are away, that refuse, and calls that are stopped.

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use recover::testing::git::Error;
use recover::testing::git::{Answer, Limits, Missed, Remote};

use crate::env::TestEnv;
use crate::machines::{commit, limits, machine, machine_at, push, remote, repo};
use crate::proxy::{Fault, Proxy};
use crate::servers::{Kind, Server, free_port};

const RUN: &str = "refs/recover-runs/night";

/// A web server that says the same to everybody; returns its port. It goes on until the process ends.
fn says(status: &'static str, headers: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nDate: Wed, 21 Oct 2026 07:28:00 GMT\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
    });
    port
}

/// Without how long a connection was tried for.
fn untimed(answer: Answer<()>) -> Answer<()> {
    match answer {
        Err(Missed::Away { said, after }) => {
            let mut words: Vec<&str> = said.split(' ').collect();
            if let Some(at) = words
                .windows(3)
                .position(|three| three[0] == "after" && three[2].starts_with("ms"))
            {
                words.remove(at + 1);
            }
            let said = words.join(" ");
            Err(Missed::Away { said, after })
        }
        other => other,
    }
}

#[test]
fn who_is_away_says_how_long() {
    let env = TestEnv::repo();
    let ask = |url: &str| {
        env.sh(&format!("git remote remove x; git remote add x '{url}'"));
        let here = recover::testing::git::Repo::discover(env.work(), None).unwrap();
        let remote = Remote::named(&here, "x", None).unwrap();
        let listed = remote
            .list(&here, "refs/recover-runs/*", &limits())
            .map(drop);
        let new = commit(&env, "1", None);
        let pushed = remote.push(&here, RUN, None, Some(&new), &limits());
        let (listed, pushed) = (untimed(listed), untimed(pushed));
        assert_eq!(format!("{listed:?}"), format!("{pushed:?}"), "{url}");
        pushed
    };
    let seconds = |answer: Answer<()>| match answer {
        Err(Missed::Away { after, .. }) => after.map(|after| after.as_secs()),
        other => panic!("{other:?}"),
    };
    let http = |port: u16| format!("http://127.0.0.1:{port}/x.git");
    assert_eq!(
        seconds(ask(&http(says(
            "503 Service Unavailable",
            "Retry-After: 120\r\n"
        )))),
        Some(120)
    );
    let date = "Retry-After: Wed, 21 Oct 2026 07:29:30 GMT\r\n";
    assert_eq!(
        seconds(ask(&http(says("429 Too Many Requests", date)))),
        Some(90)
    );
    assert_eq!(
        seconds(ask(&http(says("403 Forbidden", "Retry-After: 60\r\n")))),
        Some(60)
    );
    assert_eq!(seconds(ask(&http(says("502 Bad Gateway", "")))), None);
    for port in [free_port(), free_port()] {
        assert_eq!(seconds(ask(&http(port))), None);
        assert_eq!(seconds(ask(&format!("git://127.0.0.1:{port}/x.git"))), None);
        assert_eq!(seconds(ask(&format!("ssh://127.0.0.1:{port}/x.git"))), None);
    }
    for (status, headers) in [
        ("403 Forbidden", ""),
        ("404 Not Found", ""),
        (
            "401 Unauthorized",
            "WWW-Authenticate: Basic realm=\"x\"\r\n",
        ),
    ] {
        let answer = ask(&http(says(status, headers)));
        assert!(
            matches!(&answer, Err(Missed::Refused(said)) if !said.is_empty()),
            "{status}: {answer:?}"
        );
    }
    // One with files alone, which git would ask for one by one.
    let answer = ask(&http(says("200 OK", "Content-Type: text/plain\r\n")));
    assert!(
        matches!(&answer, Err(Missed::Refused(said)) if said.contains("smart protocol is needed")),
        "{answer:?}"
    );
}

#[test]
fn a_server_refuses_in_its_own_words() {
    for server in Server::all() {
        server.hook(
            "pre-receive",
            "echo 'GH013: no state here, ask the owners' >&2; exit 1",
        );
        let env = machine(&server, "one");
        let here = repo(&env, &server);
        let answer = push(&here, RUN, None, Some(&commit(&env, "1", None)));
        let Err(Missed::Refused(said)) = answer else {
            panic!("{:?}: {answer:?}", server.kind)
        };
        assert!(
            said.contains("GH013: no state here, ask the owners"),
            "{:?}: {said}",
            server.kind
        );
        assert!(
            said.contains("pre-receive hook declined"),
            "{:?}: {said}",
            server.kind
        );
    }
}

#[test]
fn a_strict_server_takes_states_and_keeps_them() {
    for server in Server::all() {
        server.make_strict();
        let env = machine(&server, "one");
        let here = repo(&env, &server);
        let first = commit(&env, "1", None);
        let second = commit(&env, "2", Some(&first));
        assert!(
            matches!(push(&here, RUN, None, Some(&first)), Ok(())),
            "{:?}",
            server.kind
        );
        assert!(
            matches!(push(&here, RUN, Some(&first), Some(&second)), Ok(())),
            "{:?}",
            server.kind
        );
        let answer = push(&here, RUN, Some(&second), None);
        assert!(
            matches!(&answer, Err(Missed::Refused(said)) if said.contains("prohibited")),
            "{:?}: {answer:?}",
            server.kind
        );
        assert_eq!(server.at(RUN), Some(second.0), "{:?}", server.kind);
    }
}

#[test]
fn a_wrong_password_is_refused_and_not_shown() {
    let Some(server) = Server::start(Kind::Http) else {
        return;
    };
    let env = machine(&server, "one");
    env.git(&["config", "--unset-all", "credential.helper"]);
    let url = server
        .url()
        .replace("http://", "http://runner:hunter33-hunter33@");
    env.git(&["remote", "set-url", "origin", &url]);
    let here = repo(&env, &server);
    let answer = push(&here, RUN, None, Some(&commit(&env, "1", None)));
    let Err(Missed::Refused(said)) = answer else {
        panic!("{answer:?}")
    };
    assert!(!said.contains("hunter33"), "{said}");
    // Without any, nobody is asked.
    env.git(&["remote", "set-url", "origin", &server.url()]);
    let begun = Instant::now();
    let answer = push(
        &repo(&env, &server),
        RUN,
        None,
        Some(&commit(&env, "1", None)),
    );
    assert!(
        matches!(&answer, Err(Missed::Refused(said)) if said.contains("prompts disabled")),
        "{answer:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_call_ends_in_time_and_when_it_is_stopped() {
    for kind in [Kind::Daemon, Kind::Http, Kind::Ssh] {
        let Some(server) = Server::start(kind) else {
            continue;
        };
        let proxy = Proxy::to(server.port);
        server.know_password(proxy.port);
        let env = machine_at(&server, proxy.port, "one", &[]);
        let here = repo(&env, &server);
        let remote = remote(&here);
        let new = commit(&env, "1", None);
        let mut git = std::process::Command::new("pgrep");
        git.args(["-f", &format!("127.0.0.1:{}", proxy.port)]);
        for fault in [Fault::StallSent(1), Fault::StallAnswered(1)] {
            proxy.set(fault);
            let begun = Instant::now();
            let never = || false;
            let limits = Limits::new(Duration::from_secs(2), &never);
            let answer = remote.push(&here, RUN, None, Some(&new), &limits);
            assert!(
                matches!(answer, Err(Missed::Cut(_))),
                "{kind:?} {fault:?}: {answer:?}"
            );
            let listed = remote.list(&here, "refs/recover-runs/*", &limits);
            assert!(
                matches!(listed, Err(Missed::Away { .. })),
                "{kind:?} {fault:?}: {listed:?}"
            );
            assert!(
                begun.elapsed() < Duration::from_secs(12),
                "{kind:?} {fault:?}: {:?}",
                begun.elapsed()
            );

            let asked = Cell::new(0);
            let stopped = || {
                asked.set(asked.get() + 1);
                asked.get() > 10
            };
            let limits = Limits::new(Duration::from_secs(60), &stopped);
            let begun = Instant::now();
            let stopped = remote.push(&here, RUN, None, Some(&new), &limits);
            assert!(
                matches!(stopped, Err(Missed::Failed(Error::Stopped))),
                "{kind:?} {fault:?}: {stopped:?}"
            );
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "{kind:?} {fault:?}: {:?}",
                begun.elapsed()
            );
            let left = String::from_utf8(git.output().unwrap().stdout).unwrap();
            assert_eq!(left, "", "{kind:?} {fault:?}: processes of git are left");
        }
        proxy.set(Fault::None);
        assert!(
            matches!(push(&here, RUN, None, Some(&new)), Ok(())),
            "{kind:?}"
        );
    }
}
