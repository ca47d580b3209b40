//! List, push and fetch, on each server.

use std::sync::Barrier;
use std::thread;

use recover::testing::git::Error;
use recover::testing::git::{Answer, Missed, Remote};
use recover::testing::model::ObjectId;

use crate::machines::{REMOTE, commit, limits, machine, machine_at, push, remote, repo};
use crate::servers::{Kind, Server, script};

const RUN: &str = "refs/recover-runs/night";

#[test]
fn each_server_compares_and_sets() {
    for server in Server::all() {
        let (one, two) = (machine(&server, "one"), machine(&server, "two"));
        let (here, there) = (repo(&one, &server), repo(&two, &server));
        let kind = server.kind;
        let list = || remote(&here).list(&here, "refs/recover-runs/*", &limits());
        assert!(list().unwrap().is_empty(), "{kind:?}");

        let first = commit(&one, "1", None);
        assert!(
            matches!(push(&here, RUN, None, Some(&first)), Ok(())),
            "{kind:?}"
        );
        assert!(
            matches!(push(&here, RUN, None, Some(&first)), Ok(())),
            "{kind:?}: what is there is done"
        );
        let other = commit(&two, "another", None);
        assert!(
            matches!(push(&there, RUN, None, Some(&other)), Err(Missed::Moved)),
            "{kind:?}"
        );

        let second = commit(&one, "2", Some(&first));
        assert!(
            matches!(push(&here, RUN, Some(&first), Some(&second)), Ok(())),
            "{kind:?}"
        );
        assert_eq!(
            list().unwrap(),
            vec![(RUN.to_owned(), second.clone())],
            "{kind:?}"
        );

        let fetch = |from: &str, to: &str| {
            remote(&there).fetch(&there, &[(from.to_owned(), to.to_owned())], &limits())
        };
        let place = "refs/recover-tracking/origin/night";
        assert!(matches!(fetch(RUN, place), Ok(())), "{kind:?}");
        assert_eq!(two.git(&["rev-parse", place]).trim(), second.0, "{kind:?}");
        assert!(
            matches!(fetch("refs/recover-runs/none", place), Err(Missed::Moved)),
            "{kind:?}"
        );
        assert!(!two.exists(".git/FETCH_HEAD"), "{kind:?}");

        let third = commit(&two, "3", Some(&second));
        assert!(
            matches!(push(&there, RUN, Some(&second), Some(&third)), Ok(())),
            "{kind:?}"
        );
        let late = commit(&one, "late", Some(&second));
        assert!(
            matches!(
                push(&here, RUN, Some(&second), Some(&late)),
                Err(Missed::Moved)
            ),
            "{kind:?}"
        );
        assert_eq!(server.at(RUN), Some(third.0.clone()), "{kind:?}");

        assert!(
            matches!(push(&there, RUN, Some(&second), None), Err(Missed::Moved)),
            "{kind:?}: it is another one by now"
        );
        assert!(
            matches!(push(&there, RUN, Some(&third), None), Ok(())),
            "{kind:?}"
        );
        assert_eq!(server.at(RUN), None, "{kind:?}");
    }
}

#[test]
fn of_many_at_once_one_wins() {
    for server in Server::all() {
        server.record_history();
        let env = machine(&server, "one");
        let here = repo(&env, &server);
        let first = commit(&env, "1", None);
        assert!(matches!(push(&here, RUN, None, Some(&first)), Ok(())));
        let all: Vec<ObjectId> = (0..6)
            .map(|number| commit(&env, &format!("of {number}"), Some(&first)))
            .collect();
        let barrier = Barrier::new(all.len());
        let answers: Vec<Answer<()>> = thread::scope(|scope| {
            let start = |new: &ObjectId| {
                let (here, new, first, barrier) =
                    (repo(&env, &server), new.clone(), first.clone(), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    push(&here, RUN, Some(&first), Some(&new))
                })
            };
            let threads: Vec<_> = all.iter().map(start).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let winners: Vec<&ObjectId> = answers
            .iter()
            .zip(&all)
            .filter(|(answer, _)| answer.is_ok())
            .map(|(_, commit)| commit)
            .collect();
        assert_eq!(winners.len(), 1, "{:?}: {answers:?}", server.kind);
        assert_eq!(
            server.at(RUN).as_ref(),
            Some(&winners[0].0),
            "{:?}",
            server.kind
        );
        let history = server.history();
        assert_eq!(history.len(), 2, "{:?}: {history:?}", server.kind);
        assert_eq!(
            (&history[1].old, &history[1].new),
            (&first.0, &winners[0].0),
            "{:?}",
            server.kind
        );
        assert!(
            history[1].name == RUN && history[1].at > history[0].at && history[1].claim.is_null()
        );
        let is_known = |answer: &Answer<()>| {
            matches!(answer, Ok(()) | Err(Missed::Moved | Missed::Away { .. }))
        };
        assert!(
            answers.iter().all(is_known),
            "{:?}: {answers:?}",
            server.kind
        );
    }
}

#[test]
fn nothing_is_forced() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    let here = repo(&env, &server);
    let (first, other) = (commit(&env, "1", None), commit(&env, "2", None));
    assert!(matches!(push(&here, RUN, None, Some(&first)), Ok(())));
    let error = remote(&here)
        .push(&here, RUN, Some(&first), Some(&other), &limits())
        .unwrap_err();
    assert!(format!("{error:?}").contains("is not forced"), "{error:?}");
    assert_eq!(server.at(RUN), Some(first.0));
}

#[test]
fn only_what_is_named_is_touched() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    let here = repo(&env, &server);
    // What would do more than was asked.
    for (name, value) in [
        ("remote.origin.mirror", "true"),
        ("remote.origin.push", "+refs/heads/*:refs/heads/*"),
        ("remote.origin.tagOpt", "--tags"),
        ("push.followTags", "true"),
        ("push.recurseSubmodules", "on-demand"),
        ("fetch.prune", "true"),
        ("push.gpgSign", "true"),
        ("push.pushOption", "something"),
        ("core.fsmonitor", "./monitor"),
    ] {
        env.git(&["config", name, value]);
    }
    for hook in ["pre-push", "reference-transaction", "post-merge"] {
        script(
            &env.work().join(".git/hooks").join(hook),
            "echo ran >> ../ran; echo ran >> ran; exit 1",
        );
    }
    script(&env.work().join("monitor"), "echo ran >> ran");
    env.sh("git -c core.hooksPath=/dev/null branch local && git -c core.hooksPath=/dev/null tag -m t tagged").expect(0);
    server.git(&["tag", "theirs", "main"]);
    server.git(&["branch", "other", "main"]);
    let before = env.git(&["for-each-ref"]);

    let first = commit(&env, "1", None);
    assert!(matches!(push(&here, RUN, None, Some(&first)), Ok(())));
    let place = "refs/recover-tracking/origin/night".to_owned();
    let fetched = remote(&here).fetch(&here, &[(RUN.to_owned(), place.clone())], &limits());
    assert!(matches!(fetched, Ok(())));

    let there = server.git(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(
        there.lines().collect::<Vec<_>>(),
        [
            "refs/heads/main",
            "refs/heads/other",
            RUN,
            "refs/tags/theirs"
        ]
    );
    let after = env.git(&["for-each-ref"]);
    let new: Vec<&str> = after
        .lines()
        .filter(|line| !before.contains(line))
        .collect();
    assert_eq!(new.len(), 1, "{new:?}");
    assert!(new[0].ends_with(&place), "{new:?}");
    assert!(
        !env.exists("ran") && !env.exists(".git/ran"),
        "a program was run"
    );

    let refused = remote(&here).fetch(
        &here,
        &[(RUN.to_owned(), "refs/heads/main".to_owned())],
        &limits(),
    );
    assert!(
        matches!(refused, Err(Missed::Failed(Error::UnsafePath { .. }))),
        "{refused:?}"
    );
}

#[test]
fn a_remote_is_a_name_that_git_knows() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    let here = repo(&env, &server);
    let path = server.url();
    for name in [
        "https://h/x",
        path.as_str(),
        "../x",
        ".",
        "ext::sh -c true",
        "git@h:x",
        "-x",
        "--upload-pack=x",
        "",
        "nowhere",
        "a b",
    ] {
        let found = Remote::named(&here, name, None);
        assert!(
            matches!(found, Err(Error::UnknownRemote { .. })),
            "{name}: {found:?}"
        );
    }
    env.git(&["remote", "add", "bad", "ext::sh -c 'touch ran'"]);
    env.git(&["remote", "add", "helped", "https://127.0.0.1:1/x"]);
    env.git(&["config", "remote.helped.vcs", "hg"]);
    env.git(&["remote", "add", "two", &path]);
    env.git(&["remote", "set-url", "--add", "--push", "two", &path]);
    env.git(&["remote", "set-url", "--add", "--push", "two", "/elsewhere"]);
    env.git(&["remote", "add", "turned", "https://h/x"]);
    env.git(&["config", "url.ext::sh -c x .insteadOf", "https://h/"]);
    for name in ["bad", "helped", "two", "turned"] {
        let found = Remote::named(&here, name, None);
        assert!(
            matches!(found, Err(Error::RefusedRemote { .. })),
            "{name}: {found:?}"
        );
    }
    assert_eq!(Remote::named(&here, REMOTE, None).unwrap().url, path);
    env.git(&["remote", "add", "secret", "https://me:hunter22@h2/x"]);
    let secret = Remote::named(&here, "secret", None).unwrap();
    assert_eq!(secret.url, "https://h2/x");
    assert!(secret.is_at("https://h2/x") && !secret.is_at("https://h2/y"));
    assert!(!env.exists("ran"));
}

#[test]
fn what_a_shallow_clone_lacks_is_not_sent() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine_at(&server, 0, "shallow", &["--depth=1"]);
    let here = repo(&env, &server);
    let head = ObjectId(env.git(&["rev-parse", "HEAD"]).trim().to_owned());
    assert!(remote(&here).keeps_base(&here, &head), "the server has it");
    env.git(&["init", "-q", "--bare", "../empty.git"]);
    env.git(&["remote", "add", "state", "../empty.git"]);
    let state = Remote::named(&here, "state", None).unwrap();
    assert!(!state.keeps_base(&here, &head), "nobody knows");
    // That is what it is about.
    let answer = state.push(
        &here,
        RUN,
        None,
        Some(&commit(&env, "1", Some(&head))),
        &limits(),
    );
    assert!(
        matches!(&answer, Err(Missed::Refused(said)) if said.contains("shallow update not allowed")),
        "{answer:?}"
    );
}

#[test]
fn a_partial_clone_gets_what_it_lacks() {
    for kind in [Kind::Path, Kind::Daemon] {
        let Some(server) = Server::start(kind) else {
            continue;
        };
        let whole = machine(&server, "whole");
        let head = ObjectId(whole.git(&["rev-parse", "HEAD"]).trim().to_owned());
        let here = repo(&whole, &server);
        let state = whole.git(&["commit-tree", "HEAD^{tree}", "-p", &head.0, "-m", "state"]);
        let state = ObjectId(state.trim().to_owned());
        assert!(matches!(push(&here, RUN, None, Some(&state)), Ok(())));

        let env = machine_at(
            &server,
            server.port,
            "partial",
            &["--filter=blob:none", "--no-checkout"],
        );
        let here = repo(&env, &server);
        let place = "refs/recover-tracking/origin/night".to_owned();
        assert!(matches!(
            remote(&here).fetch(&here, &[(RUN.to_owned(), place)], &limits()),
            Ok(())
        ));
        let missing = "GIT_NO_LAZY_FETCH=1 git rev-list --objects --no-walk --missing=print %s | grep -c '^?'";
        let missing = || {
            env.sh(&missing.replace("%s", &state.0))
                .stdout
                .trim()
                .to_owned()
        };
        assert_ne!(missing(), "0", "{kind:?}: there is something to get");
        assert!(matches!(
            remote(&here).backfill(&here, &state, &limits()),
            Ok(())
        ));
        assert_eq!(missing(), "0", "{kind:?}");
    }
}
