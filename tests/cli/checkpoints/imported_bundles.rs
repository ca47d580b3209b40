//! Checkpoints that come back from bundles: `recover import FILE`.

use std::path::Path;

use serde_json::Value;

use crate::checkpoints::prune::{DAY, at};
use crate::env::TestEnv;
use crate::seen::text;

/// A project with an old milestone that was archived and is gone, and what the work tree held at it.
struct Archived {
    env: TestEnv,
    id: String,
    bundle: String,
    commit: String,
}

impl Archived {
    fn new() -> Self {
        let mut env = TestEnv::repo();
        at(&mut env, -40 * DAY);
        // What the run began with stays as long as it is open.
        env.json(0, &["checkpoint", "create", "--run", "r"]);
        env.write("a.txt", "milestone\n");
        env.write("new file", b"\x00\x01binary");
        env.write("private", "p\n");
        env.sh("chmod 600 private && mkdir empty").expect(0);
        let made = env.json(
            0,
            &[
                "checkpoint",
                "create",
                "--run",
                "r",
                "--type",
                "phase",
                "-m",
                "the milestone",
            ],
        );
        env.sh("rm -r empty private 'new file'").expect(0);
        env.write("a.txt", "later\n");
        env.json(0, &["checkpoint", "create", "--run", "r"]);
        env.write("a.txt", "now\n");
        at(&mut env, 0);
        env.json(0, &["checkpoint", "create", "--run", "r"]);
        let done = env.json(0, &["checkpoint", "prune", "--archive", "../archive"]);
        let archived = &done["archived"][0];
        let (id, bundle) = (text(&archived["id"]), text(&archived["path"]));
        let commit = text(&made["checkpoint"]["commit"]);
        env.json(4, &["checkpoint", "show", &id]);
        env.git(&["gc", "-q", "--prune=now"]);
        assert_ne!(
            env.sh(&format!("git cat-file -e {commit}")).code,
            0,
            "nothing of it is left"
        );
        Self {
            env,
            id,
            bundle,
            commit,
        }
    }

    fn events(&self) -> String {
        self.env.read(".ultraplan/state/events.jsonl")
    }

    fn refs(&self) -> String {
        self.env
            .git(&["for-each-ref", "refs/recover", "--format=%(refname)"])
    }
}

// S13, snapshot.md (Pruning): what was archived is a checkpoint again, whole, in its place, under its reference, and stays.
#[test]
fn an_archived_milestone_comes_back() {
    let Archived {
        mut env,
        id,
        bundle,
        commit,
    } = Archived::new();
    let before = env.read(".ultraplan/state/events.jsonl");
    let planned = env.json(0, &["--dry-run", "import", &bundle]);
    assert_eq!(
        (
            &planned["changed"],
            env.read(".ultraplan/state/events.jsonl")
        ),
        (&false.into(), before)
    );
    assert_ne!(
        env.sh(&format!("git cat-file -e {commit}")).code,
        0,
        "a dry run takes nothing in"
    );
    // A folder stands for the bundles in it.
    let done = env.json(0, &["import", "../archive"]);
    assert_eq!(
        (&done["changed"], &done["files"]),
        (&true.into(), &planned["plan"]["files"])
    );
    let file = &done["files"][0];
    assert_eq!(
        (&file["kind"], &file["returned"][0], &file["runs_created"]),
        (&"bundle".into(), &id.clone().into(), &0.into())
    );
    let shown = env.json(0, &["checkpoint", "show", &id])["checkpoint"].clone();
    assert_eq!(
        (&shown["commit"], &shown["seq"], &shown["pinned"]),
        (&commit.into(), &2.into(), &true.into())
    );
    assert_eq!(shown["description"], "the milestone");
    env.json(0, &["checkpoint", "verify", &id]);
    assert_eq!(env.json(0, &["doctor"])["problems"], serde_json::json!([]));
    env.git(&["fsck", "--strict"]);
    let latest = env.json(0, &["checkpoint", "show", "latest"])["checkpoint"]["id"].clone();
    assert_ne!(latest.as_str(), Some(id.as_str()), "it is not the latest");

    // The same again adds nothing, and nobody takes it for a leftover or for old.
    let events = env.read(".ultraplan/state/events.jsonl");
    let again = env.json(0, &["import", &bundle]);
    assert_eq!(
        (&again["changed"], &again["files"][0]["message"]),
        (&false.into(), &"what it holds is here".into())
    );
    assert_eq!(env.read(".ultraplan/state/events.jsonl"), events);
    env.json(0, &["checkpoint", "prune", "--max-age", "1d"]);
    env.json(0, &["checkpoint", "show", &id]);
    assert!(env.git(&["for-each-ref", "refs/recover"]).contains(&id));

    // Nobody edited anything by hand: what was written last is what it was before the import.
    env.json(0, &["rollback", "--to", &id]);
    assert_eq!(
        (env.read("a.txt"), env.read("private")),
        ("milestone\n".to_owned(), "p\n".to_owned())
    );
    assert_eq!(
        std::fs::read(env.work().join("new file")).expect("read"),
        b"\x00\x01binary"
    );
    assert_eq!(
        env.sh("stat -c %a private && ls -d empty").expect(0).stdout,
        "600\nempty\n"
    );
    env.json(0, &["undo"]);
    assert_eq!(env.read("a.txt"), "now\n");

    // Folded from its beginning, and put together again, the ledger says the same.
    env.sh("find . -name fold.cache -delete").expect(0);
    env.json(0, &["checkpoint", "show", &id]);
    at(&mut env, 1000);
    env.sh("rm -r .ultraplan/state").expect(0);
    env.json(0, &["doctor", "--rebuild"]);
    env.json(0, &["checkpoint", "show", &id]);
}

// What was taken of another copy of the project comes into one that knows nothing of it, as a checkpoint of the work tree here.
#[test]
fn a_bundle_comes_into_a_repository_that_knows_nothing_of_it() {
    let archived = Archived::new();
    let elsewhere = archived.env.root().join("elsewhere");
    let elsewhere = elsewhere.to_str().expect("text");
    archived.env.git(&["clone", "-q", ".", elsewhere]);
    let there = |code: i32, args: &[&str]| {
        archived
            .env
            .json(code, &[&["-C", elsewhere], args].concat())
    };
    let done = there(0, &["import", &archived.bundle]);
    assert_eq!(
        (
            &done["files"][0]["runs_created"],
            &done["files"][0]["events"]
        ),
        (&1.into(), &2.into())
    );
    let shown = there(0, &["checkpoint", "show", &archived.id])["checkpoint"].clone();
    assert_eq!(shown["commit"], archived.commit.clone());
    there(0, &["rollback", "--to", &archived.id, "--run", "r"]);
    assert_eq!(archived.env.read("../elsewhere/a.txt"), "milestone\n");
    there(0, &["undo"]);
    there(0, &["doctor"]);
    // Here nothing happened.
    archived.env.json(4, &["checkpoint", "show", &archived.id]);
}

// A bundle that is damaged anywhere, cut short, or nobody's checkpoint is refused, and nothing of anything is taken in.
#[test]
fn a_bundle_that_is_no_checkpoint_is_refused() {
    let archived = Archived::new();
    let env = &archived.env;
    let (events, refs) = (archived.events(), archived.refs());
    let refused = |code: i32, path: &str| -> Value {
        let error = env.json(code, &["import", path, "../archive"]);
        assert_eq!(
            (archived.events(), archived.refs()),
            (events.clone(), refs.clone()),
            "{error}"
        );
        error
    };
    let whole = std::fs::read(&archived.bundle).expect("read");
    for at in [20, whole.len() / 2, whole.len() - 10] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        env.write("../damaged", &damaged);
        refused(12, "../damaged");
        env.write("../damaged", &whole[..at]);
        refused(12, "../damaged");
    }
    env.git(&["bundle", "create", "-q", "../plain", "main"]);
    let error = refused(2, "../plain");
    assert!(
        text(&error["error"]["message"]).contains("no checkpoint"),
        "{error}"
    );
    assert!(Path::new(&archived.bundle).exists());
    // Other files beside it come in with it.
    env.write(
        "../archive/recovery.json",
        r#"{"errorCount": 1, "lastError": "x", "lastErrorAt": "2026-01-01T00:00:00Z"}"#,
    );
    let done = env.json(0, &["import", "../archive"]);
    let kinds: Vec<String> = done["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| text(&file["kind"]))
        .collect();
    assert_eq!(kinds, ["recovery", "bundle"]);
}
