//! Connections that are cut after so many bytes, of what is sent and of what is answered.

use std::process::Stdio;
use std::time::{Duration, Instant};

use recover::testing::git::{Answer, Missed};
use recover::testing::model::ObjectId;

use crate::env::Ran;
use crate::machines::{commit, limits, machine_at, push, push_agent, remote, repo};
use crate::proxy::{Fault, Proxy};
use crate::servers::{Kind, Server};

/// So many places of a connection are tried in each direction; `RECOVER_REMOTE_ALL=1` tries every byte.
const SAMPLE: u64 = 6;

/// Places spread over a connection, more of them near its ends, where the answer is.
fn places(length: u64) -> Vec<u64> {
    if std::env::var_os("RECOVER_REMOTE_ALL").is_some() {
        return (1..length).collect();
    }
    let near = [
        1,
        2,
        5,
        length.saturating_sub(1),
        length.saturating_sub(5),
        length.saturating_sub(20),
    ];
    let mut all: Vec<u64> = (1..SAMPLE)
        .map(|step| length * step / SAMPLE)
        .chain(near)
        .collect();
    all.retain(|place| (1..length).contains(place));
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn a_push_that_was_cut_is_done_or_not_and_once_more_is_enough() {
    let (mut lost, mut unknown) = (0, 0);
    for kind in [Kind::Daemon, Kind::Http, Kind::Ssh] {
        let Some(server) = Server::start(kind) else {
            continue;
        };
        let proxy = Proxy::to(server.port);
        server.know_password(proxy.port);
        let env = machine_at(&server, proxy.port, "one", &[]);
        let here = repo(&env, &server);
        let mut number = 0;
        let mut next = |before: Option<&ObjectId>| {
            number += 1;
            commit(&env, &format!("{kind:?} {number}"), before)
        };
        let name = "refs/recover-runs/cut";
        let mut at = next(None);
        assert!(
            matches!(push(&here, name, None, Some(&at)), Ok(())),
            "{kind:?}"
        );
        // As long as every later one is, but for what was cut.
        proxy.set(Fault::None);
        let second = next(Some(&at));
        assert!(
            matches!(push(&here, name, Some(&at), Some(&second)), Ok(())),
            "{kind:?}"
        );
        at = second;
        let (sent, answered, _) = proxy.counted();
        let sent = places(sent).into_iter().map(Fault::CutSent);
        let faults: Vec<Fault> = sent
            .chain(places(answered).into_iter().map(Fault::CutAnswered))
            .collect();
        for fault in faults {
            let new = next(Some(&at));
            proxy.set(fault);
            let answer = push(&here, name, Some(&at), Some(&new));
            proxy.set(Fault::None);
            let listed = remote(&here).list(&here, name, &limits());
            let Ok(listed) = listed else {
                panic!("{kind:?} {fault:?}: {listed:?}")
            };
            let there = listed[0].1.clone();
            match &answer {
                Ok(()) => assert_eq!(there, new, "{kind:?} {fault:?}"),
                Err(Missed::Away { .. }) => assert_eq!(
                    there, at,
                    "{kind:?} {fault:?}: away is before anything was sent"
                ),
                // A server that has all may be at it still.
                Err(Missed::Cut(_)) => {
                    unknown += 1;
                    lost += usize::from(there == new);
                    assert!(there == new || there == at, "{kind:?} {fault:?}: {there}");
                }
                other => panic!("{kind:?} {fault:?}: {other:?}"),
            }
            assert!(
                matches!(push(&here, name, Some(&at), Some(&new)), Ok(())),
                "{kind:?} {fault:?}: once more"
            );
            assert_eq!(server.at(name), Some(new.0.clone()), "{kind:?} {fault:?}");
            at = new;
        }
    }
    // Which of the two a cut is depends on how the bytes came through: with sshd all may be of one kind.
    assert!(
        lost > 0 && unknown > lost,
        "{lost} answers were lost of {unknown} that were cut"
    );
}

#[test]
fn a_fetch_that_was_cut_leaves_nothing_half() {
    for kind in [Kind::Daemon, Kind::Http, Kind::Ssh] {
        let Some(server) = Server::start(kind) else {
            continue;
        };
        let proxy = Proxy::to(server.port);
        server.know_password(proxy.port);
        let writer = machine_at(&server, server.port, "writer", &[]);
        let there = repo(&writer, &server);
        let (name, place) = ("refs/recover-runs/cut", "refs/recover-tracking/origin/cut");
        let env = machine_at(&server, proxy.port, "reader", &[]);
        let here = repo(&env, &server);
        let fetch =
            || remote(&here).fetch(&here, &[(name.to_owned(), place.to_owned())], &limits());
        let mut at = commit(&writer, "0", None);
        assert!(matches!(push(&there, name, None, Some(&at)), Ok(())));
        proxy.set(Fault::None);
        assert!(matches!(fetch(), Ok(())), "{kind:?}");
        let (sent, answered, _) = proxy.counted();
        let some = |length| places(length).into_iter().step_by(3);
        let faults: Vec<Fault> = some(sent)
            .map(Fault::CutSent)
            .chain(some(answered).map(Fault::CutAnswered))
            .collect();
        for (number, fault) in faults.into_iter().enumerate() {
            let new = commit(&writer, &format!("{number}"), Some(&at));
            assert!(matches!(push(&there, name, Some(&at), Some(&new)), Ok(())));
            proxy.set(fault);
            let answer = fetch();
            proxy.set(Fault::None);
            let known = env.git(&["rev-parse", place]).trim().to_owned();
            match answer {
                Ok(()) => assert_eq!(known, new.0, "{kind:?} {fault:?}"),
                Err(Missed::Away { .. }) => assert_eq!(known, at.0, "{kind:?} {fault:?}"),
                other => panic!("{kind:?} {fault:?}: {other:?}"),
            }
            assert!(matches!(fetch(), Ok(())), "{kind:?} {fault:?}: once more");
            assert_eq!(
                env.git(&["rev-parse", place]).trim(),
                new.0,
                "{kind:?} {fault:?}"
            );
            env.git(&["fsck", "--connectivity-only"]);
            at = new;
        }
    }
}

/// After an answer that was cut in its headers git goes on as with a server that has files alone, which answers whole.
#[test]
fn an_answer_that_was_cut_in_its_headers_is_no_word_of_the_servers() {
    let Some(server) = Server::start(Kind::Http) else {
        return;
    };
    let proxy = Proxy::to(server.port);
    server.know_password(proxy.port);
    let env = machine_at(&server, proxy.port, "one", &[]);
    let here = repo(&env, &server);
    let (name, place) = ("refs/recover-runs/cut", "refs/recover-tracking/origin/cut");
    let at = commit(&env, "1", None);
    assert!(matches!(push(&here, name, None, Some(&at)), Ok(())));
    let next = commit(&env, "2", Some(&at));
    // The first answer asks for the password, the second is git's.
    for bytes in places(700) {
        let once = |what: &str, call: &dyn Fn() -> Answer<()>| {
            proxy.cut_once(Fault::CutAnswered(bytes));
            let cuts = proxy.cuts();
            let answer = call();
            let is_known = match &answer {
                Ok(()) => true,
                Err(Missed::Away { .. } | Missed::Cut(_)) => proxy.cuts() > cuts,
                Err(_) => false,
            };
            assert!(is_known, "{what} {bytes}: {answer:?}");
            proxy.set(Fault::None);
            assert!(matches!(call(), Ok(())), "{what} {bytes}: once more");
        };
        once("list", &|| {
            let listed = remote(&here).list(&here, name, &limits());
            listed.map(|listed| assert_eq!(listed, [(name.to_owned(), at.clone())], "{bytes}"))
        });
        once("fetch", &|| {
            remote(&here).fetch(&here, &[(name.to_owned(), place.to_owned())], &limits())
        });
        let fresh = format!("{name}-{bytes}");
        once("push", &|| push(&here, &fresh, None, Some(&next)));
    }
}

#[test]
fn a_cut_answer_after_an_attempt_ends_no_run() {
    let Some(server) = Server::start(Kind::Http) else {
        return;
    };
    push_agent(
        &server,
        "echo $RECOVER_ATTEMPT >> tried.txt; touch ../at-work; while [ -e ../at-work ]; do sleep 0.05; done; exit 1",
        "",
    );
    let proxy = Proxy::to(server.port);
    server.know_password(proxy.port);
    let mut env = machine_at(&server, proxy.port, "one", &[]);
    env.set("RECOVER_COOLDOWN", "0s");
    let args = [
        "run",
        "--run",
        "night",
        "--remote",
        "origin",
        "--yes",
        "--attempts",
        "4",
        "--on-failure",
        "retry",
    ];
    let mut run = env.recover_command(&[&args[..], &["--", "./agent.sh"]].concat());
    let run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for bytes in [30, 60, 200, 400] {
        let at_work = env.root().join("at-work");
        let begun = Instant::now();
        while !at_work.exists() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "no attempt begins after a cut"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        proxy.cut_once(Fault::CutAnswered(bytes));
        std::fs::remove_file(at_work).unwrap();
    }
    Ran::of(&run.wait_with_output().unwrap()).expect(8);
    assert_eq!(env.read("tried.txt"), "1\n2\n3\n4\n");
    assert_eq!(proxy.cuts(), 4);
}
