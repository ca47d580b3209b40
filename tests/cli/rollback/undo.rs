//! `undo` and `redo`.

use crate::env::TestEnv;
use crate::seen::{assert_clean, checkpoint, seen};

// Promise 1: nothing to undo or redo is 4; undo again goes further back, redo forward.
#[test]
fn undo_goes_back_and_redo_forward() {
    let env = TestEnv::repo();
    env.json(4, &["undo"]);
    for content in ["1\n", "2\n", "3\n"] {
        env.write("a.txt", content);
        checkpoint(&env);
    }
    assert_eq!(env.json(4, &["undo"])["error"]["code"], "nothing_to_undo");
    env.json(4, &["redo"]);
    env.json(0, &["rollback", "--to", "@2"]);
    env.json(0, &["rollback", "--to", "@1"]);
    assert_eq!(env.read("a.txt"), "1\n");
    let expected = [
        ("undo", "2\n"),
        ("undo", "3\n"),
        ("redo", "2\n"),
        ("redo", "1\n"),
        ("undo", "2\n"),
        ("undo", "3\n"),
    ];
    for (command, content) in expected {
        let plan = env.json(0, &["--dry-run", command])["plan"].clone();
        let done = env.json(0, &[command])["result"].clone();
        assert_eq!(plan["written"], done["written"]);
        assert_eq!(env.read("a.txt"), content, "{command}");
    }
    env.json(4, &["undo"]);
    // Something new forgets what could be done again.
    env.json(0, &["rollback", "--to", "@1"]);
    env.json(4, &["redo"]);
    assert_clean(&env);
}

// snapshot.md, hand edits: a folder whose only file came back and is ignored by now looks empty, and nobody emptied it.
#[test]
fn what_is_ignored_by_now_is_no_hand_edit() {
    let env = TestEnv::repo();
    env.write("d/f", "kept\n");
    checkpoint(&env);
    env.sh("rm -r d; mkdir -p .git/info; echo f >> .git/info/exclude")
        .expect(0);
    checkpoint(&env);
    env.json(0, &["rollback", "--to", "@1"]);
    assert_eq!(env.read("d/f"), "kept\n");
    // What the rules of now ignore stays where it is, and is said.
    let undone = env.json(0, &["undo"])["result"].clone();
    assert_eq!(undone["kept"][0]["path"], "d/f", "{undone}");
    assert_eq!(env.read("d/f"), "kept\n");
}

// snapshot.md: undo brings the index back as well, and hand edits made since are refused.
#[test]
fn undo_brings_index_and_edits_back() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "staged\n");
    env.git(&["add", "a.txt"]);
    env.write("a.txt", "worked on\n");
    env.write("n.txt", "n\n");
    env.git(&["add", "-N", "n.txt"]);
    let (before, index) = (
        seen(env.work()),
        env.git(&["ls-files", "-s", "--debug"]).lines().count(),
    );
    let staged = env.git(&["diff", "--cached"]);
    env.json(
        0,
        &[
            "rollback",
            "--to",
            "latest",
            "--edits",
            "discard",
            "--restore-index",
        ],
    );
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    env.write("a.txt", "edited since\n");
    assert_eq!(env.json(13, &["undo"])["error"]["code"], "hand_edits");
    env.json(0, &["undo", "--edits", "discard"]);
    assert_eq!(seen(env.work()), before);
    assert_eq!(env.git(&["diff", "--cached"]), staged);
    assert_eq!(
        env.git(&["ls-files", "-s", "--debug"]).lines().count(),
        index
    );
    env.json(0, &["redo"]);
    assert_eq!(env.read("a.txt"), "edited since\n");
}

// B10: an undo puts the run's bookkeeping back.
#[test]
fn undo_puts_the_bookkeeping_back() {
    let env = TestEnv::repo();
    env.script("agent.sh", "echo $RECOVER_ITERATION > state");
    env.json(
        0,
        &[
            "run",
            "--iterations",
            "2",
            "--feedback",
            "test=true",
            "--",
            "./agent.sh",
        ],
    );
    let before = env.json(0, &["status"])["run"].clone();
    env.json(0, &["rollback", "--full"]);
    env.json(0, &["undo"]);
    assert_eq!(env.json(0, &["status"])["run"], before);
}

// Undo of a rollback of some paths or of the working memory touches nothing else.
#[test]
fn undo_covers_what_was_covered() {
    let env = TestEnv::repo();
    env.write("b.txt", "b1\n");
    env.write(".ultraplan/state/plan.json", "1");
    checkpoint(&env);
    env.write("a.txt", "a2\n");
    env.write("b.txt", "b2\n");
    env.write(".ultraplan/state/plan.json", "2");
    checkpoint(&env);
    env.json(0, &["rollback", "--to", "@1", "--path", "a.txt"]);
    assert_eq!(
        (env.read("a.txt"), env.read("b.txt")),
        ("one\n".into(), "b2\n".into())
    );
    env.write("b.txt", "by hand\n");
    env.json(0, &["undo"]);
    assert_eq!(
        (env.read("a.txt"), env.read("b.txt")),
        ("a2\n".into(), "by hand\n".into())
    );
    env.json(0, &["rollback", "--to", "@1", "--scope", "state"]);
    assert_eq!(env.read(".ultraplan/state/plan.json"), "1");
    assert_eq!(env.read("a.txt"), "a2\n");
    env.json(0, &["undo"]);
    assert_eq!(env.read(".ultraplan/state/plan.json"), "2");
    assert_eq!(env.read("b.txt"), "by hand\n");
}

// snapshot.md: undo brings back the index wherever the restore replaced it, also one of some paths or of files only.
#[test]
fn undo_brings_back_an_index_that_was_replaced() {
    for how in [["--path", "a.txt"], ["--scope", "files"]] {
        let env = TestEnv::repo();
        checkpoint(&env);
        env.write("a.txt", "two\n");
        env.write("staged.txt", "staged\n");
        env.git(&["add", "staged.txt"]);
        env.write("staged.txt", "changed since\n");
        checkpoint(&env);
        let staged = env.git(&["ls-files", "-s"]);
        env.json(
            0,
            &["rollback", "--to", "@1", "--restore-index", how[0], how[1]],
        );
        assert_ne!(env.git(&["ls-files", "-s"]), staged);
        env.json(0, &["undo"]);
        assert_eq!(env.git(&["ls-files", "-s"]), staged, "{how:?}");
        env.json(0, &["redo"]);
        assert_ne!(env.git(&["ls-files", "-s"]), staged, "{how:?}");
    }
}

// An undo whose files are there already moves on to what was before, and takes the run along.
#[test]
fn an_undo_that_has_nothing_to_write_is_no_end() {
    let env = TestEnv::repo();
    for version in ["1", "2", "3"] {
        env.write("f", version);
        env.json(0, &["checkpoint", "create", "--run", "r"]);
    }
    for to in ["@2", "@1"] {
        env.json(0, &["rollback", "--run", "r", "--to", to]);
    }
    env.write("f", "2");
    assert_eq!(env.json(0, &["undo"])["changed"], true);
    assert_eq!(env.read("f"), "2");
    env.json(0, &["undo"]);
    assert_eq!(env.read("f"), "3");
    env.json(4, &["undo"]);
    for _ in 0..2 {
        env.json(0, &["redo"]);
        assert_eq!(env.read("f"), "2");
    }
    env.json(4, &["redo"]);
}

// runs.md: after the undo of a rollback that the policy made, nothing says that anybody is at work.
#[test]
fn undo_of_an_automatic_rollback_leaves_nobody_at_work() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = '0s'\n");
    let agent =
        "if [ $RECOVER_ATTEMPT = 1 ]; then echo bad > a.txt; exit 0; else exec sleep 300; fi";
    let build = "build=! grep -q bad a.txt || { echo 'src/a.c:1:1: error: no'; exit 1; }";
    let args = [
        "run",
        "--attempts",
        "3",
        "--feedback",
        build,
        "--",
        "sh",
        "-c",
        agent,
    ];
    let mut run = env.start(&args);
    crate::run::supervision::until("the second attempt", || {
        !env.events("restored").is_empty() && env.events("attempt_started").len() == 2
    });
    assert_eq!(env.read("a.txt"), "one\n");
    crate::run::supervision::kill("-KILL", run.id());
    run.wait().expect("it ends");
    env.json(0, &["undo", "--of-run", "--yes", "--edits", "discard"]);
    assert_eq!(env.read("a.txt"), "bad\n");
    let status = env.json(0, &["status"]);
    assert_eq!(
        (&status["run"]["status"], &status["activity"]),
        (&"paused".into(), &serde_json::Value::Null),
        "{status:#}"
    );
}

// face.md: undo and redo say what they took back, and name the command that goes the other way, which works.
#[test]
fn undo_and_redo_say_what_they_took_back() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "two\n");
    checkpoint(&env);
    let rolled = env.json(0, &["rollback", "--to", "@1"]);
    let target = rolled["result"]["checkpoint_id"].as_str().expect("an id");
    assert_eq!(
        rolled["result"]["operation"],
        serde_json::Value::Null,
        "{rolled}"
    );
    let operation = serde_json::json!({"command": "rollback", "checkpoint_id": target});
    assert_eq!(
        env.json(0, &["--dry-run", "undo"])["plan"]["operation"],
        operation
    );
    for (command, other) in [("undo", " redo"), ("redo", " undo")] {
        let done = env.json(0, &[command]);
        assert_eq!(done["result"]["operation"], operation, "{done}");
        assert!(
            done["rollback_hint"]
                .as_str()
                .is_some_and(|hint| hint.ends_with(other)),
            "{done}"
        );
    }
    let undone = env.recover(&["undo"]).expect(0).stdout;
    assert!(
        undone.contains(&format!("Took back the rollback to {target}")),
        "{undone}"
    );
    assert!(undone.contains(": recover redo restores it."), "{undone}");
    let redone = env.recover(&["redo"]).expect(0).stdout;
    assert!(
        redone.contains(&format!("Did the rollback to {target} again")),
        "{redone}"
    );
    assert!(redone.contains(": recover undo restores it."), "{redone}");
    env.json(0, &["checkpoint", "restore", "@2"]);
    assert_eq!(
        env.json(0, &["undo"])["result"]["operation"]["command"],
        "restore"
    );
}
