//! What a machine believes of a run on a server, and what it makes of a server that is not as it was.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::machines::{REMOTE, machine, push_agent};
use crate::servers::{Kind, Server, free_port};

const RUN: &str = "refs/recover-runs/night";
const NAMED: [&str; 5] = ["--run", "night", "--remote", REMOTE, "--yes"];

fn of_night<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    [before, &NAMED, after].concat()
}

/// A state of the run that follows the last one in nothing but its parent.
fn damage(server: &Server, env: &TestEnv) {
    let script = format!(
        "set -e; export GIT_DIR='{}'; tip=$(git rev-parse {RUN}); git ls-tree $tip | grep -v events.jsonl > ../tree; \
         blob=$(echo '{{}}' | git hash-object -w --stdin); printf '100644 blob %s\\tevents.jsonl\\n' $blob >> ../tree; \
         git update-ref {RUN} $(git commit-tree $(git mktree < ../tree) -p $tip -m x)",
        server.repository().display()
    );
    env.sh(&script).expect(0);
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{what} does not come"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_there(server: &Server, commit: &str) -> bool {
    server
        .git(&["rev-list", RUN])
        .lines()
        .any(|line| line == commit)
}

#[test]
fn a_damaged_chain_that_was_refused_counts_as_seen_by_nobody() {
    let server = Server::start(Kind::Path).unwrap();
    let a = machine(&server, "a");
    a.recover(&of_night(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let good = server.at(RUN).unwrap();
    damage(&server, &a);
    let bad = server.at(RUN).unwrap();
    let commands: [&[&str]; 4] = [
        &["--dry-run", "resume"],
        &["resume", "--trust"],
        &["remote", "claim"],
        &["--dry-run", "remote", "claim"],
    ];
    for (number, command) in commands.into_iter().enumerate() {
        server.git(&["update-ref", RUN, &bad]);
        let b = machine(&server, &format!("b{number}"));
        b.json(0, &["checkpoint", "create", "--run", "own"]);
        for _ in 0..2 {
            b.recover(&of_night(command, &[])).expect(12);
            b.recover(&of_night(&["remote", "status"], &[])).expect(12);
            b.recover(&of_night(&["remote", "fetch"], &[])).expect(12);
            b.recover(&of_night(&["remote", "prune"], &[])).expect(12);
            let all = b.json(0, &["remote", "status", "--remote", REMOTE]);
            assert_eq!(all["runs"], serde_json::json!([]), "{command:?}");
            assert!(
                all["warnings"].to_string().contains("night"),
                "{command:?}: {all:#}"
            );
        }
        assert_eq!(server.at(RUN).as_ref(), Some(&bad), "{command:?}");
        // Whoever owns the server takes it away: nobody puts it there again.
        server.git(&["update-ref", RUN, &good]);
        b.json(0, &of_night(&["remote", "status"], &[]));
        b.json(0, &of_night(&["remote", "claim"], &[]));
        b.json(0, &of_night(&["remote", "release"], &[]));
        assert!(
            is_there(&server, &good) && !is_there(&server, &bad),
            "{command:?}"
        );
        server.git(&["update-ref", RUN, &good]);
    }
}

/// Notes its machine and attempt, and fails.
const NOTES: &str = "echo \"$RECOVER_TEST_HOST $RECOVER_ATTEMPT\" >> \"$NOTES\"; echo $RECOVER_ATTEMPT >> work.txt; exit 1";

#[test]
fn a_server_that_was_set_back_makes_nobody_forget_an_attempt() {
    let server = Server::start(Kind::Path).unwrap();
    push_agent(&server, NOTES, "exit 0");
    let notes = server.root().join("notes");
    let on = |name: &str| {
        let mut env = machine(&server, name);
        env.set("NOTES", &notes.display().to_string())
            .set("RECOVER_COOLDOWN", "0s");
        env
    };
    let a = on("a");
    a.recover(&of_night(
        &["run"],
        &["--attempts", "2", "--", "./agent.sh"],
    ))
    .expect(8);
    let whole = server.at(RUN).unwrap();
    // The second attempt has not begun.
    let old = server.git(&["rev-parse", &format!("{RUN}~3")]);
    let both = "a 1\na 2\n";
    for has_ledger in [false, true] {
        let k = on("k");
        if has_ledger {
            k.json(0, &["checkpoint", "create", "--run", "own"]);
        }
        k.json(0, &of_night(&["remote", "status"], &[]));
        server.git(&["update-ref", RUN, old.trim()]);
        for _ in 0..2 {
            for command in ["status", "fetch"] {
                let refused = k.error(12, &of_night(&["remote", command], &[]));
                assert!(
                    refused["message"].as_str().unwrap().contains("set back"),
                    "{refused:#}"
                );
                let all = k.json(0, &["remote", command, "--remote", REMOTE]);
                assert!(all["warnings"].to_string().contains("set back"), "{all:#}");
            }
            k.recover(&of_night(&["remote", "prune"], &[])).expect(12);
        }
        // A claim puts back what is missing there; the plan of one says so before.
        let planned = k.json(
            0,
            &of_night(&["--dry-run", "remote", "claim"], &["--steal"]),
        );
        assert_eq!(planned["runs"][0]["run_id"], "night", "{planned:#}");
        assert_eq!(server.at(RUN).unwrap(), old.trim());
        // Its last holder has all of it, and is told what is missing there.
        let status = a.json(0, &of_night(&["remote", "status"], &[]));
        assert!(
            status["warnings"].to_string().contains("set back"),
            "{status:#}"
        );
        assert!(status["runs"][0]["ahead"].as_u64() > Some(0), "{status:#}");
        k.recover(&of_night(&["resume"], &["--steal", "--trust"]))
            .expect(8);
        assert_eq!(std::fs::read_to_string(&notes).unwrap(), both);
        assert!(is_there(&server, &whole));
        server.git(&["update-ref", RUN, &whole]);
    }
    // Nor does another end of the same run.
    let k = on("k");
    k.json(0, &of_night(&["remote", "status"], &[]));
    server.git(&["update-ref", RUN, old.trim()]);
    let b = on("b");
    b.json(0, &of_night(&["remote", "claim"], &["--steal"]));
    let refused = k.error(12, &of_night(&["remote", "status"], &[]));
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("rewritten state"),
        "{refused:#}"
    );
    // It is not there for the taking, held or not, as what was seen is not in it.
    k.recover(&of_night(&["remote", "claim"], &[])).expect(12);
    b.json(0, &of_night(&["remote", "release"], &[]));
    for dry in [&["--dry-run"][..], &[]] {
        k.recover(&of_night(&[dry, &["resume"]].concat(), &["--trust"]))
            .expect(12);
        k.recover(&of_night(&[dry, &["remote", "claim"]].concat(), &[]))
            .expect(12);
    }
    let refused = k.error(12, &of_night(&["remote", "claim"], &[]));
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("continued elsewhere"),
        "{refused:#}"
    );
    let words = refused["hint"]
        .as_str()
        .unwrap()
        .split_once(" remote ")
        .unwrap()
        .1;
    let words: Vec<&str> = ["remote"]
        .into_iter()
        .chain(words.split(' '))
        .chain(["--yes"])
        .collect();
    assert_eq!(
        k.json(0, &words)["runs"][0]["holder"],
        k.json(0, &of_night(&["remote", "status"], &[]))["runs"][0]["holder"]
    );
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), both);
}

/// A run that was removed and sent again is another one of that name.
#[test]
fn a_run_that_was_removed_and_sent_again_is_seen() {
    let server = Server::start(Kind::Path).unwrap();
    let a = machine(&server, "a");
    a.recover(&of_night(&["run"], &["--", "true"])).expect(0);
    let k = machine(&server, "k");
    k.json(0, &of_night(&["remote", "status"], &[]));
    a.json(0, &of_night(&["remote", "prune"], &[]));
    a.json(0, &of_night(&["remote", "push"], &[]));
    assert_eq!(
        k.json(0, &of_night(&["remote", "status"], &[]))["fetched"][0],
        "night"
    );
    k.json(0, &of_night(&["remote", "claim"], &[]));
}

/// Two machines begin a run of the same name at once: the one that comes too late has nothing in the way of the other's.
#[test]
fn who_comes_too_late_with_a_first_run_can_go_on_with_the_other_one() {
    for steals in [false, true] {
        let server = Server::start(Kind::Path).unwrap();
        let agent = "echo \"$RECOVER_TEST_HOST\" >> who.txt\n\
             if [ \"$RECOVER_TEST_HOST\" = a ]; then touch ../begun; while ! [ -e ../end ]; do sleep 0.1; done; fi\nexit 1";
        push_agent(&server, agent, "exit 0");
        // The push of machine b's first claim waits until machine a has the run.
        let place = server.root().display().to_string();
        let hook = format!(
            "[ \"$RECOVER_TEST_HOST\" = b ] && grep -q {RUN}$ || exit 0\n\
             touch {place}/waits; while ! [ -e {place}/go ]; do sleep 0.1; done"
        );
        server.hook("pre-receive", &hook);
        let at_once = ["--no-wait", "--attempts", "2", "--", "./agent.sh"];
        let start = |env: &TestEnv| {
            let mut command = env.recover_command(&of_night(&["run"], &at_once));
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let (a, mut b) = (machine(&server, "a"), machine(&server, "b"));
        b.set("RECOVER_COOLDOWN", "0s");
        let late = start(&b);
        wait_for("the push of b", || server.root().join("waits").exists());
        let first = start(&a);
        wait_for("the agent of a", || a.root().join("begun").exists());
        std::fs::write(server.root().join("go"), "").unwrap();
        let late = Ran::of(&late.wait_with_output().unwrap()).expect(11);
        assert!(
            late.stderr.contains("held by a") && !late.stderr.contains("given back"),
            "{}",
            late.stderr
        );
        assert_eq!(
            b.json(0, &["status", "--run", "night"])["remotes"],
            Value::Null
        );
        b.recover(&of_night(&["run"], &at_once)).expect(11);
        if steals {
            // As the error says.
            b.json(0, &of_night(&["remote", "claim"], &["--steal"]));
        }
        std::fs::write(a.root().join("end"), "").unwrap();
        Ran::of(&first.wait_with_output().unwrap()).expect(if steals { 11 } else { 6 });
        assert_eq!(
            b.error(13, &of_night(&["run"], &at_once))["code"],
            "already_exists"
        );
        b.recover(&of_night(&["resume"], &["--trust", "--wait"]))
            .expect(8);
        // The attempt that a had begun is one of the two.
        assert_eq!(b.read("who.txt"), if steals { "b\n" } else { "a\nb\n" });
        // What it began with is still there.
        let kept = b.git(&["for-each-ref", "refs/recover/+kept"]);
        assert_eq!(kept.lines().count(), 1, "{kept}");
    }
}

#[test]
fn a_run_that_was_taken_is_not_shown_as_held_here() {
    let server = Server::start(Kind::Path).unwrap();
    let a = machine(&server, "a");
    a.recover(&of_night(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    a.json(0, &of_night(&["remote", "claim"], &[]));
    let held = || a.json(0, &["status", "--run", "night"])["remotes"][0]["held"].as_bool();
    assert_eq!(held(), Some(true));
    let b = machine(&server, "b");
    b.json(0, &of_night(&["remote", "claim"], &["--steal"]));
    a.json(0, &of_night(&["remote", "status"], &[]));
    assert_eq!(held(), Some(false));
    b.json(0, &of_night(&["remote", "release"], &[]));
    a.json(0, &of_night(&["remote", "claim"], &[]));
    assert_eq!(held(), Some(true));
}

#[test]
fn a_server_that_is_away_is_waited_for_no_longer_than_was_asked_for() {
    let server = Server::start(Kind::Path).unwrap();
    let b = machine(&server, "b");
    b.git(&[
        "remote",
        "set-url",
        REMOTE,
        &format!("git://127.0.0.1:{}/x.git", free_port()),
    ]);
    for command in [&["resume", "--trust"][..], &["remote", "claim"]] {
        let begun = Instant::now();
        let ran = b.recover(&of_night(command, &["--wait=3s"])).expect(9);
        let took = begun.elapsed();
        assert!(
            took > Duration::from_secs(2) && took < Duration::from_secs(10),
            "{command:?}: {took:?}"
        );
        assert!(
            ran.stderr.contains("waiting for the remote"),
            "{command:?}: {}",
            ran.stderr
        );
        b.recover(&of_night(command, &[])).expect(9);
    }
}

/// One run with an object that git does not take keeps nobody from the others.
#[test]
fn a_run_that_git_does_not_take_is_damage_of_that_run_alone() {
    let server = Server::start(Kind::Path).unwrap();
    let a = machine(&server, "a");
    let machines = ["b", "c"].map(|name| machine(&server, name));
    a.recover(&of_night(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    a.recover(&[
        "run",
        "--run",
        "good",
        "--remote",
        REMOTE,
        "--attempts",
        "1",
        "--",
        "false",
    ])
    .expect(8);
    let script = format!(
        "set -e; export GIT_DIR='{}'; inner=$(git rev-parse 'main^{{tree}}'); \
         bad=$(printf '040000 tree %s\\t.git\\n' $inner | git mktree); checkpoint=$(git commit-tree $bad -m x); \
         git update-ref {RUN} $(git commit-tree {RUN}^{{tree}} -p {RUN} -p $checkpoint -m x)",
        server.repository().display()
    );
    a.sh(&script).expect(0);
    let [b, c] = machines;
    for command in [
        &["remote", "status"][..],
        &["remote", "fetch"],
        &["remote", "prune"],
        &["runs"],
        &["runs"],
    ] {
        let listed = b.json(0, &[command, &["--remote", REMOTE]].concat());
        let ids: Vec<&str> = listed["runs"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|run| run["run_id"].as_str())
            .collect();
        assert_eq!(ids, ["good"], "{command:?}: {listed:#}");
        assert!(
            listed["warnings"]
                .to_string()
                .contains("recover-runs/night"),
            "{command:?}: {listed:#}"
        );
    }
    for command in [
        &["remote", "status"][..],
        &["remote", "fetch"],
        &["remote", "claim"],
        &["resume", "--trust"],
    ] {
        b.recover(&of_night(command, &[])).expect(12);
    }
    let resumed = c.json(8, &["resume", "--remote", REMOTE, "--yes", "--trust"]);
    assert_eq!(resumed["run"]["run_id"], "good");
}

/// What git looks at in a transfer, it does not look at in objects that are here already.
#[test]
fn names_that_no_file_may_have_are_damage_wherever_their_objects_came_from() {
    let server = Server::start(Kind::Path).unwrap();
    let a = machine(&server, "a");
    a.recover(&of_night(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let good = server.at(RUN).unwrap();
    let raw = |kind: &str, content: &[u8]| {
        let file = a.root().join("object");
        std::fs::write(&file, content).unwrap();
        server
            .git(&[
                "hash-object",
                "-t",
                kind,
                "-w",
                "--literally",
                &file.display().to_string(),
            ])
            .trim()
            .to_owned()
    };
    let tree = |entries: &[(&str, &str, &str)]| {
        let bytes = |id: &str| -> Vec<u8> {
            (0..id.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap())
                .collect()
        };
        let entry = |(mode, name, id): &(&str, &str, &str)| {
            [format!("{mode} {name}\0").into_bytes(), bytes(id)].concat()
        };
        raw("tree", &entries.iter().flat_map(entry).collect::<Vec<u8>>())
    };
    // Before the first state are its checkpoints.
    let states = server.git(&["log", "--first-parent", "--reverse", "--format=%H", RUN]);
    let events = states.lines().filter_map(|state| {
        server.try_git(&["cat-file", "blob", &format!("{state}:events.jsonl")])
    });
    let lines: Vec<Value> = events
        .flat_map(|events| {
            events
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    let taken = lines
        .iter()
        .rfind(|event| event["type"] == "checkpoint_created")
        .unwrap();
    let commit = taken["payload"]["checkpoint"]["commit"].as_str().unwrap();
    // As a machine writes a state, with another tree in its checkpoint.
    let state = |files: &str| {
        let parents = server.git(&["rev-parse", &format!("{commit}^@")]);
        let parents = parents.trim().replace('\n', " -p ");
        let message = server.git(&["log", "-1", "--format=%B", commit]);
        a.write("message", &message);
        let git = format!("GIT_DIR='{}' git", server.repository().display());
        let made = |script: &str| {
            a.sh(&format!("set -e; {script}"))
                .expect(0)
                .stdout
                .trim()
                .to_owned()
        };
        let checkpoint = made(&format!(
            "{git} commit-tree {files} -p {parents} -F message"
        ));
        let json = |name: &str| -> Value {
            serde_json::from_str(&server.git(&["cat-file", "blob", &format!("{good}:{name}")]))
                .unwrap()
        };
        let (mut meta, mut claim, mut event) =
            (json("meta.json"), json("claim.json"), taken.clone());
        event["run_seq"] = (meta["chain"]["run_seq"].as_u64().unwrap() + 1).into();
        event["previous"] = meta["chain"]["sha256"].clone();
        event["id"] = "ab".repeat(16).into();
        let about = &mut event["payload"]["checkpoint"];
        about["commit"] = checkpoint.clone().into();
        about["tree"] = files.into();
        about["id"] = "ckpt_20990101_000000_0099".into();
        let line = event.to_string();
        meta["state"] = (meta["state"].as_u64().unwrap() + 1).into();
        meta["chain"] = serde_json::json!({"run_seq": event["run_seq"], "sha256": recover::testing::policy::sha256(line.as_bytes())});
        (claim["nonce"], claim["fencing"]) = (
            "ee".repeat(16).into(),
            (claim["fencing"].as_u64().unwrap() + 1).into(),
        );
        let blob = |content: String| raw("blob", content.as_bytes());
        let (claim, events, meta) = (
            blob(claim.to_string()),
            blob(format!("{line}\n")),
            blob(meta.to_string()),
        );
        let top = tree(&[
            ("100644", "claim.json", &claim),
            ("100644", "events.jsonl", &events),
            ("100644", "meta.json", &meta),
        ]);
        let bad = made(&format!(
            "{git} commit-tree {top} -p {good} -p {checkpoint} -m x"
        ));
        server.git(&["update-ref", RUN, &bad]);
    };
    let file = raw("blob", b"#!/bin/sh\n");
    let hooks = tree(&[("100755", "post-checkout", &file)]);
    let inner = tree(&[("40000", "hooks", &hooks)]);
    // One that is as it should be is believed.
    state(&inner);
    machine(&server, "fine").json(0, &of_night(&["remote", "fetch"], &[]));
    // git serves no empty name.
    for (number, name) in [".git", ".GIT", "..", ".", "git~1", "a/b"]
        .into_iter()
        .enumerate()
    {
        let is_deep = number % 2 == 1;
        let deep = || tree(&[("40000", "sub", &tree(&[("100755", name, &file)]))]);
        state(&if is_deep {
            deep()
        } else {
            tree(&[("40000", name, &inner)])
        });
        let bad = server.at(RUN).unwrap();
        // Its objects come along with the clone.
        let b = machine(&server, &format!("b{number}"));
        for command in [
            &["remote", "status"][..],
            &["remote", "fetch"],
            &["remote", "claim"],
            &["resume", "--trust"],
            &["--dry-run", "resume", "--trust"],
        ] {
            let refused = b.error(12, &of_night(command, &[]));
            assert!(
                refused["message"]
                    .as_str()
                    .unwrap()
                    .contains("it is ignored"),
                "{refused:#}"
            );
        }
        assert_eq!(server.at(RUN).unwrap(), bad, "{name:?}: nobody claims it");
    }
    let twice = tree(&[("120000", "x", &file), ("40000", "x", &inner)]);
    state(&twice);
    machine(&server, "twice").error(12, &of_night(&["remote", "claim"], &[]));
}

/// Whoever takes "there is no such run" for a reason to begin one would begin it once more.
#[test]
fn a_state_that_does_not_say_what_it_is_is_damage_of_the_run_that_is_meant() {
    let server = Server::start(Kind::Path).unwrap();
    let a = machine(&server, "a");
    a.recover(&of_night(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let good = server.at(RUN).unwrap();
    let meta = server.git(&["cat-file", "blob", &format!("{RUN}:meta.json")]);
    let of_another = meta.replace("\"night\"", "\"other\"");
    assert_ne!(of_another, meta);
    let metas = [
        (format!("{meta}{}", " ".repeat(2 << 20)), "too large"),
        (of_another, "about run other"),
        (
            format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
            "no schema",
        ),
        ("{}".to_owned(), "no schema"),
    ];
    for (number, (meta, what)) in metas.into_iter().enumerate() {
        let file = a.root().join("meta");
        std::fs::write(&file, meta).unwrap();
        let script = format!(
            "set -e; export GIT_DIR='{}'; git ls-tree {good} | grep -v meta.json > ../tree; \
             printf '100644 blob %s\\tmeta.json\\n' $(git hash-object -w '{}') >> ../tree; \
             git update-ref {RUN} $(git commit-tree $(git mktree < ../tree) -p {good} -m x)",
            server.repository().display(),
            file.display()
        );
        a.sh(&script).expect(0);
        let b = machine(&server, &format!("b{number}"));
        for command in [
            &["remote", "status"][..],
            &["remote", "fetch"],
            &["remote", "claim"],
            &["remote", "prune"],
            &["resume", "--trust"],
            &["--dry-run", "resume", "--trust"],
        ] {
            let refused = b.error(12, &of_night(command, &[]));
            assert!(
                refused["message"].as_str().unwrap().contains(what),
                "{command:?}: {refused:#}"
            );
        }
        assert_eq!(
            b.error(
                12,
                &["resume", "night", "--remote", REMOTE, "--yes", "--trust"]
            )["code"],
            "corrupt"
        );
        b.recover(&of_night(&["run"], &["--", "true"])).expect(12);
        // Who names none has the others.
        let all = b.json(0, &["remote", "status", "--remote", REMOTE]);
        assert_eq!(
            (&all["runs"], all["warnings"].to_string().contains(RUN)),
            (&serde_json::json!([]), true),
            "{all:#}"
        );
    }
}
