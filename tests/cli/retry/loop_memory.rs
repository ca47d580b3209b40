//! The loop's working memory in the state directory (S2, S5, L6).

use crate::env::TestEnv;
use crate::seen::{back_to, checkpoint, paths, text};

// S2, S5, L6: captured and restored with scope state and all; the bookkeeping and long-term memory never.
#[test]
fn memory_goes_back_and_bookkeeping_does_not() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[memory]\nlong_term = [\"lessons/**\"]\n",
    );
    env.write_state("plan.json", "1");
    env.write_state("lessons/a.md", "1");
    env.write_state("deep/er/x", "1");
    checkpoint(&env);
    env.write_state("plan.json", "2");
    env.write_state("lessons/a.md", "2");
    env.write_state("new.json", "n");
    env.sh("rm -r .ultraplan/state/deep").expect(0);
    env.write("a.txt", "two\n");
    env.json(
        0,
        &["attempt", "fail", "--message", "boom", "--no-rollback"],
    );
    let events = env.read_state("events.jsonl");
    env.json(
        0,
        &[
            "rollback", "--to", "@1", "--scope", "files", "--edits", "discard",
        ],
    );
    assert_eq!(
        (env.read_state("plan.json"), env.read("a.txt")),
        ("2".into(), "one\n".into())
    );
    env.json(0, &["undo"]);
    env.json(0, &["rollback", "--to", "@1", "--scope", "state"]);
    assert_eq!(env.read_state("plan.json"), "1");
    assert_eq!(env.read_state("deep/er/x"), "1");
    assert_eq!(env.read_state("lessons/a.md"), "2");
    assert!(!env.exists(".ultraplan/state/new.json"));
    assert_eq!(env.read("a.txt"), "two\n");
    assert_eq!(env.state_json("recovery.json")["errorCount"], 1);
    assert!(env.read_state("events.jsonl").starts_with(&events));
    env.json(0, &["undo"]);
    assert_eq!(env.read_state("new.json"), "n");
    back_to(&env, "@1");
    assert_eq!(
        (env.read_state("plan.json"), env.read("a.txt")),
        ("1".into(), "one\n".into())
    );
}

// B11, S5: a plan and the answer name the files of the working memory as they name those of the work tree; outside of it
// they are absolute.
#[test]
fn what_goes_back_in_the_memory_is_listed() {
    for (scope, files) in [("state", false), ("all", true)] {
        let env = TestEnv::repo();
        env.write(".ultraplan/state/deep/plan.json", "1");
        env.write(".ultraplan/state/same", "1");
        checkpoint(&env);
        env.write(".ultraplan/state/deep/plan.json", "2");
        env.write(".ultraplan/state/new", "n");
        env.write("a.txt", "two\n");
        let written = if files {
            vec![".ultraplan/state/deep/plan.json", "a.txt"]
        } else {
            vec![".ultraplan/state/deep/plan.json"]
        };
        let command = [
            "rollback", "--to", "@1", "--edits", "discard", "--scope", scope,
        ];
        let plan = env.json(0, &[&command[..], &["--dry-run"]].concat())["plan"].clone();
        assert_eq!(
            (paths(&plan["written"]), paths(&plan["deleted"])),
            (strings(&written), strings(&[".ultraplan/state/new"]))
        );
        let shown = env
            .recover(&[&command[..], &["--dry-run"]].concat())
            .expect(0)
            .stdout;
        assert!(
            shown.contains("would delete .ultraplan/state/new\n"),
            "{shown}"
        );
        let result = env.json(0, &command)["result"].clone();
        assert_eq!(
            (&result["written"], &result["deleted"]),
            (&plan["written"], &plan["deleted"]),
            "{scope}"
        );
        let undone = env.json(0, &["undo"])["result"].clone();
        assert_eq!(paths(&undone["deleted"]), strings(&[]));
        assert_eq!(
            paths(&undone["written"]).last().map(String::as_str),
            Some(if files {
                "a.txt"
            } else {
                ".ultraplan/state/new"
            })
        );
    }
    let env = TestEnv::repo();
    let state = env.root().join("elsewhere");
    let dir = state.display().to_string();
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("plan"), "1").unwrap();
    env.json(0, &["--state-dir", &dir, "checkpoint", "create"]);
    std::fs::write(state.join("plan"), "2").unwrap();
    let result = env.json(
        0,
        &[
            "--state-dir",
            &dir,
            "rollback",
            "--to",
            "@1",
            "--scope",
            "state",
        ],
    )["result"]
        .clone();
    assert_eq!(
        paths(&result["written"]),
        [format!(
            "{}/plan",
            std::fs::canonicalize(&state).unwrap().display()
        )]
    );
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

// A secret stays as closed as it was; a rollback with nothing to do finds nothing to do.
#[test]
fn modes_of_memory_files_are_kept() {
    let env = TestEnv::repo();
    env.write_state("token", "secret");
    env.sh("chmod 600 .ultraplan/state/token").expect(0);
    checkpoint(&env);
    assert_eq!(
        env.json(0, &["rollback", "--to", "latest"])["changed"],
        false
    );
    env.write_state("token", "other");
    env.json(0, &["rollback", "--to", "latest", "--scope", "state"]);
    assert_eq!(env.mode(".ultraplan/state/token"), 0o600);
    env.sh("rm .ultraplan/state/token").expect(0);
    env.json(0, &["rollback", "--to", "latest", "--scope", "state"]);
    assert_eq!(
        (env.read_state("token"), env.mode(".ultraplan/state/token")),
        ("secret".into(), 0o600)
    );
}

// S2: over the limit is an error that names the file.
#[test]
fn too_much_memory_is_refused_by_name() {
    let env = TestEnv::repo();
    env.write_state("dump.bin", vec![1; 101 * 1024]);
    let error = env.json(14, &["checkpoint", "create"]);
    assert!(
        text(&error["error"]["message"]).contains("dump.bin"),
        "{error}"
    );
    env.write_state("dump.bin", vec![1; 100 * 1024]);
    checkpoint(&env);
}

// Promise 2: what was not captured (a link, a folder) is not written over.
#[test]
fn something_else_in_the_place_of_a_memory_file_is_refused() {
    let env = TestEnv::repo();
    env.write_state("plan.json", "1");
    checkpoint(&env);
    let outside = env.root().join("outside");
    std::fs::write(&outside, "theirs").unwrap();
    env.write("a.txt", "two\n");
    env.sh("cd .ultraplan/state; rm plan.json; ln -s ../../../outside plan.json")
        .expect(0);
    env.json(13, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert!(env.work().join(".ultraplan/state/plan.json").is_symlink());
    assert_eq!(env.read("a.txt"), "two\n", "nothing was written");
    env.sh("cd .ultraplan/state; rm plan.json; mkdir plan.json; ln -s x plan.json/x")
        .expect(0);
    env.json(13, &["rollback", "--to", "latest", "--edits", "discard"]);
    assert_eq!(env.read("a.txt"), "two\n", "nothing was written");
    env.json(
        0,
        &[
            "rollback", "--to", "latest", "--edits", "discard", "--scope", "files",
        ],
    );
    // A folder with nothing but captured files makes way, and comes back.
    env.sh("cd .ultraplan/state; rm plan.json/x; mkdir plan.json/y; echo x > plan.json/y/z")
        .expect(0);
    back_to(&env, "@1");
    assert_eq!(env.read_state("plan.json"), "1");
    env.json(0, &["undo"]);
    assert_eq!(env.read_state("plan.json/y/z"), "x\n");
}

// S3, L3: what changed in the working memory between two checkpoints is told, in the document and to people; the loop's
// own state is cleared after an error.
#[test]
fn memory_updates_are_part_of_a_difference() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[memory]\nloop_state = [\"loop.json\"]\n",
    );
    env.write_state("plan.json", "1");
    env.write_state("gone.json", "1");
    checkpoint(&env);
    env.write_state("plan.json", "2");
    env.write_state("loop.json", "{}");
    env.remove(".ultraplan/state/gone.json");
    checkpoint(&env);
    let updates = env.json(0, &["checkpoint", "diff", "@1", "@2"])["memory_updates"].clone();
    let told: Vec<(String, String)> = updates
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["path"]), text(&one["type"])))
        .collect();
    let expected = [
        ("gone.json", "deleted"),
        ("loop.json", "created"),
        ("plan.json", "modified"),
    ];
    assert_eq!(
        told,
        expected.map(|(path, kind)| (path.to_owned(), kind.to_owned()))
    );
    let shown = env
        .recover(&["checkpoint", "diff", "@1", "@2"])
        .expect(0)
        .stdout;
    assert!(
        shown.contains("plan.json (memory)") && !shown.contains("No differences"),
        "{shown}"
    );
    env.json(0, &["attempt", "fail", "--message", "boom"]);
    assert!(!env.exists(".ultraplan/state/loop.json"));
}
