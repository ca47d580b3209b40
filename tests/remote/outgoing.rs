//! What leaves of a checkpoint, and what stays.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use recover::testing::git::{Filter, Outgoing};
use recover::testing::git::{Repo, WorktreeLock};
use recover::testing::model::ObjectId;

use crate::env::TestEnv;
use crate::machines::{machine, machine_at, noise, push, repo};
use crate::proxy::{Fault, Proxy};
use crate::servers::{Kind, Server};

fn filter() -> Filter {
    let plain = Some(BTreeSet::new());
    Filter {
        max_object: 1 << 20,
        untracked: true,
        plain,
        whole: false,
        keep_base: true,
        previous: None,
    }
}

/// Takes a checkpoint and returns its commit.
fn checkpoint(env: &TestEnv) -> ObjectId {
    let taken = env.json(0, &["checkpoint", "create"]);
    ObjectId(taken["checkpoint"]["commit"].as_str().unwrap().to_owned())
}

fn sent(repo: &Repo, commit: &ObjectId, filter: &Filter) -> Outgoing {
    let lock = WorktreeLock::acquire(repo, Duration::from_secs(5)).unwrap();
    repo.write_outgoing(&lock, commit, "a checkpoint\n", filter)
        .unwrap()
}

fn paths(all: &[recover::testing::model::PathReason]) -> Vec<String> {
    all.iter().map(|one| one.path.to_string()).collect()
}

/// Everything that a commit reaches, one object a line, with what it is called.
fn reached(env: &TestEnv, commit: &ObjectId) -> String {
    env.git(&["rev-list", "--objects", &commit.0])
}

fn prepare(env: &TestEnv) {
    env.write("tracked.env", "x");
    env.write(".env.production", "TRACKED=yes\n");
    env.git(&["add", "-f", "tracked.env", ".env.production"]);
    env.git(&["commit", "-qm", "more"]);
    env.write("a.txt", "changed\n");
    env.write("notes/new.txt", "new\n");
    env.write(".env", "PASSWORD=hunter22-hunter22\n");
    env.write(
        "deep/id_ed25519",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n",
    );
    env.write("src/client.py", "token = 'ghp_0123456789abcdefghij'\n");
    noise(&env.work().join("large.bin"), 3 << 20);
    env.write("sub/only/.env", "SECRET_KEY=hunter22-hunter22\n");
    env.write("empty/.keep", "");
}

#[test]
fn what_looks_like_a_secret_stays_and_is_listed() {
    let env = TestEnv::repo();
    prepare(&env);
    let commit = checkpoint(&env);
    let here = Repo::discover(env.work(), None).unwrap();
    let sent = sent(&here, &commit, &filter());
    let stays = [
        ".env",
        "deep/id_ed25519",
        "large.bin",
        "src/client.py",
        "sub/only/.env",
    ];
    assert_eq!(paths(&sent.withheld), stays);
    let mut goes = paths(&sent.untracked);
    goes.sort();
    assert_eq!(goes, ["empty/.keep", "notes/new.txt"]);

    let stored = here.load_checkpoint(&sent.commit).unwrap();
    let (before, after) = (
        here.load_checkpoint(&commit).unwrap(),
        stored.snapshot(&here).unwrap(),
    );
    assert!(stored.manifest.partial && !before.manifest.partial);
    for path in stays {
        assert!(!after.entries.contains_key(&path.into()), "{path}");
        assert!(
            stored
                .manifest
                .skipped
                .iter()
                .any(|one| one.path == path.into()),
            "{path}"
        );
    }
    let whole = before.snapshot(&here).unwrap();
    for (path, entry) in &whole.entries {
        if !stays.contains(&path.to_string().as_str())
            && !stays.iter().any(|one| one.starts_with(&format!("{path}/")))
        {
            assert_eq!(after.entries.get(path), Some(entry), "{path}");
        }
    }
    // What is left of the times belongs to the right files.
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) = (
        before.modified(&here).unwrap(),
        stored.modified(&here).unwrap(),
    );
    assert!(
        !new.is_empty() && new.iter().all(|(path, at)| old.get(path) == Some(at)),
        "{old:?} {new:?}"
    );
    assert!(stored.verify(&here).unwrap().is_empty());
    assert!(
        stored.events_jsonl(&here).unwrap().is_empty(),
        "events go another way"
    );

    // None of it is reachable, by no way.
    let all = reached(&env, &sent.commit);
    for path in stays {
        let oid = env.git(&["hash-object", path]);
        assert!(!all.contains(oid.trim()), "{path} is reachable");
    }
    assert_eq!(
        sent,
        self::sent(&here, &commit, &filter()),
        "the same once more"
    );
}

#[test]
fn no_untracked_file_leaves_where_none_is_to() {
    let env = TestEnv::repo();
    prepare(&env);
    env.write_state("plan.json", "{\"plan\": 1}");
    env.write_state("notes.env", "API_TOKEN=abcdefgh-12345678\n");
    let commit = checkpoint(&env);
    let here = Repo::discover(env.work(), None).unwrap();
    let none = sent(
        &here,
        &commit,
        &Filter {
            untracked: false,
            ..filter()
        },
    );
    let stored = here.load_checkpoint(&none.commit).unwrap();
    let names: Vec<String> = stored
        .snapshot(&here)
        .unwrap()
        .entries
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(names, [".env.production", "a.txt", "tracked.env"]);
    assert!(
        paths(&none.withheld).contains(&"notes/new.txt".to_owned()),
        "{none:?}"
    );
    // The loop's own files are known to no git either.
    assert!(stored.memory(&here).unwrap().is_empty());
    assert!(
        paths(&none.withheld).contains(&".ultraplan/state/plan.json".to_owned()),
        "{none:?}"
    );
    let all = sent(&here, &commit, &filter());
    let memory = here
        .load_checkpoint(&all.commit)
        .unwrap()
        .memory(&here)
        .unwrap();
    assert!(
        memory
            .iter()
            .any(|file| file.path.to_string() == "plan.json"),
        "{memory:?}"
    );
    assert!(
        !memory
            .iter()
            .any(|file| file.path.to_string() == "notes.env"),
        "{memory:?}"
    );
}

#[test]
fn memory_that_was_withheld_is_left_alone_by_a_restore() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    env.write_state("notes.env", "API_TOKEN=abcdefgh-12345678\n");
    env.write_state("plan.json", "1");
    let args = [
        "run", "--remote", "origin", "--run", "night", "--yes", "--", "true",
    ];
    env.recover(&args).expect(0);
    let there = machine(&server, "two");
    there
        .recover(&["remote", "fetch", "--remote", "origin", "--run", "night"])
        .expect(0);
    there.recover(&[
        "resume", "--remote", "origin", "--run", "night", "--yes", "--trust",
    ]);
    there.write_state("notes.env", "of this machine");
    there.write_state("plan.json", "2");
    there
        .recover(&[
            "rollback", "--to", "initial", "--run", "night", "--scope", "state", "--yes",
            "--edits", "discard",
        ])
        .expect(0);
    assert_eq!(there.read_state("plan.json"), "1");
    assert_eq!(there.read_state("notes.env"), "of this machine");
}

#[test]
fn what_was_withheld_is_left_alone_by_a_restore_there() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    env.write(".env", "PASSWORD=hunter22-hunter22\n");
    env.write("new.txt", "new\n");
    let commit = checkpoint(&env);
    let here = repo(&env, &server);
    let sent = sent(&here, &commit, &filter());
    let name = "refs/recover-runs/night";
    assert!(matches!(
        push(&here, name, None, Some(&sent.commit)),
        Ok(())
    ));
    let there = machine(&server, "two");
    there.git(&[
        "fetch",
        "-q",
        "origin",
        &format!("{name}:refs/recover-tracking/x"),
    ]);
    let other = repo(&there, &server);
    let stored = other.load_checkpoint(&sent.commit).unwrap();
    assert!(stored.verify(&other).unwrap().is_empty());
    assert_eq!(paths(&stored.manifest.skipped), [".env"]);
}

#[test]
fn a_nested_repository_is_looked_through() {
    let env = TestEnv::repo();
    env.sh(
        "mkdir inner && cd inner && git init -q && echo 1 > f && git add f && git commit -qm inner",
    )
    .expect(0);
    env.write("inner/.env", "PASSWORD=hunter22-hunter22\n");
    env.write("inner/more.txt", "more\n");
    let commit = checkpoint(&env);
    let here = Repo::discover(env.work(), None).unwrap();
    let secret = env.git(&["hash-object", "inner/.env"]);
    let more = env.git(&["hash-object", "inner/more.txt"]);
    assert!(
        reached(&env, &commit).contains(secret.trim()),
        "the checkpoint itself holds it"
    );
    let one = sent(&here, &commit, &filter());
    assert_eq!(paths(&one.withheld), ["inner/.env"]);
    let all = reached(&env, &one.commit);
    assert!(
        !all.contains(secret.trim()) && all.contains(more.trim()),
        "{all}"
    );
    let stored = here.load_checkpoint(&one.commit).unwrap();
    let copy = stored.nested_copy(&here, &"inner".into()).unwrap().unwrap();
    assert!(copy.manifest.partial);
    assert_eq!(paths(&copy.manifest.skipped), [".env"]);
    let none = sent(
        &here,
        &commit,
        &Filter {
            untracked: false,
            ..filter()
        },
    );
    assert!(paths(&none.withheld).contains(&"inner".to_owned()));
    assert!(!reached(&env, &none.commit).contains(more.trim()));
}

#[test]
fn a_push_costs_what_is_new() {
    let Some(server) = Server::start(Kind::Daemon) else {
        return;
    };
    let proxy = Proxy::to(server.port);
    let env = machine_at(&server, proxy.port, "one", &[]);
    // What the server does not have, and is not compressed.
    noise(&env.work().join("untracked.bin"), 400_000);
    let here = repo(&env, &server);
    let first = checkpoint(&env);
    let name = "refs/recover-runs/night";
    let one = sent(&here, &first, &filter());
    proxy.set(Fault::None);
    assert!(matches!(push(&here, name, None, Some(&one.commit)), Ok(())));
    let (bytes, _, connections) = proxy.counted();
    assert!(
        bytes > 400_000 && connections == 1,
        "{bytes} bytes, {connections} connections"
    );

    env.write("small.txt", "a small change\n");
    let second = checkpoint(&env);
    let two = sent(
        &here,
        &second,
        &Filter {
            previous: Some(one.commit.clone()),
            ..filter()
        },
    );
    assert_eq!(paths(&two.untracked), ["small.txt"], "the rest went before");
    proxy.set(Fault::None);
    assert!(matches!(
        push(&here, name, Some(&one.commit), Some(&two.commit)),
        Ok(())
    ));
    let (bytes, _, connections) = proxy.counted();
    assert!(
        bytes < 20_000 && connections == 1,
        "{bytes} bytes, {connections} connections"
    );
}
