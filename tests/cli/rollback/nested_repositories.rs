//! What comes back of nested repositories: of those that are gone, and with `--nested` of those that are there.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::env::TestEnv;
use crate::seen::{Seen, assert_clean, back_to, checkpoint, seen, text};

/// Files with modes and links, one that it ignores by itself, and history, in a repository inside.
fn own(env: &TestEnv) {
    let line = "set -e
        git init -q own; cd own; echo 1 > tracked; mkdir -p deep/er empty; echo 2 > deep/er/file; chmod 640 deep/er/file
        echo '#!/bin/sh' > run; chmod 755 run; ln -s tracked link; git add .; git commit -qm own
        echo ignored > .git/info/exclude; echo i > ignored; echo untracked > 'un tracked'; chmod 700 .";
    env.sh(line).expect(0);
}

/// What a folder holds but for what is git's or ours, at any depth.
fn content(env: &TestEnv, folder: &str) -> Seen {
    let own = |path: &[u8]| {
        path.split(|byte| *byte == b'/')
            .any(|name| name == b".git" || name == b".ultraplan")
    };
    let here = env.work().join(folder);
    if !here.is_dir() {
        return Seen::new();
    }
    seen(&here)
        .into_iter()
        .filter(|(path, _)| !own(path))
        .collect()
}

fn without(mut all: Seen, path: &str) -> Seen {
    all.remove(path.as_bytes());
    all
}

#[track_caller]
fn outcome(document: &Value, path: &str) -> String {
    let part = if document["plan"].is_object() {
        &document["plan"]
    } else {
        &document["result"]
    };
    let all = part["nested"].as_array().expect("a list").iter();
    text(
        &all.clone()
            .find(|one| one["path"] == path)
            .unwrap_or_else(|| panic!("{path}: {document:#}"))["action"],
    )
}

#[track_caller]
fn kept(document: &Value, path: &str) -> String {
    let part = if document["plan"].is_object() {
        &document["plan"]
    } else {
        &document["result"]
    };
    let all = part["kept"].as_array().expect("a list").iter();
    text(
        &all.clone()
            .find(|one| one["path"] == path)
            .unwrap_or_else(|| panic!("{path}: {document:#}"))["reason"],
    )
}

// The folder is gone: its files come back in a plain one, and what does not is said.
#[test]
fn the_files_of_one_whose_folder_is_gone_come_back() {
    let env = TestEnv::repo();
    own(&env);
    let before = without(content(&env, "own"), "ignored");
    let mode = env.mode("own");
    checkpoint(&env);
    env.sh("rm -rf own; git gc -q --prune=now").expect(0);
    env.json(0, &["checkpoint", "verify"]);
    let planned = env.json(
        0,
        &["--dry-run", "rollback", "--to", "@1", "--edits", "discard"],
    );
    assert_eq!(outcome(&planned, "own"), "files_restored");
    assert!(!env.exists("own"));
    let back = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(
        (&back["changed"], &back["result"]["verified"]),
        (&true.into(), &true.into())
    );
    assert!(
        kept(&back, "own").contains("commits, branches and index do not"),
        "{back}"
    );
    assert_eq!(
        (content(&env, "own"), env.mode("own")),
        (before.clone(), mode)
    );
    assert!(!env.exists("own/.git"));
    env.json(0, &["undo"]);
    assert!(!env.exists("own"));
    env.json(0, &["redo"]);
    assert_eq!(content(&env, "own"), before);
    assert_clean(&env);
    // They are files like any other from now on.
    env.remove("own/tracked");
    back_to(&env, "@1");
    assert_eq!(content(&env, "own"), before);
}

// Only its `.git` is gone: what it did not capture stays, what it did comes back.
#[test]
fn the_files_of_one_whose_git_folder_is_gone_come_back() {
    let env = TestEnv::repo();
    own(&env);
    let before = content(&env, "own");
    checkpoint(&env);
    env.sh("cd own; rm -rf .git deep; echo other > tracked; echo new > new")
        .expect(0);
    let refused = env.error(13, &["rollback", "--to", "@1"]);
    assert!(
        text(&refused["message"]).contains("own/tracked"),
        "{refused}"
    );
    let now = content(&env, "own");
    let back = back_to(&env, "@1");
    let mut after = content(&env, "own");
    assert_eq!(
        after.remove(&b"new"[..]).map(|(_, content)| content),
        Some(b"new\n".to_vec())
    );
    assert_eq!(after, before);
    for path in ["own/ignored", "own/new"] {
        assert!(
            kept(&back, path).contains("the repository that was here"),
            "{back}"
        );
    }
    env.json(0, &["undo"]);
    assert_eq!(content(&env, "own"), now);
}

// A submodule's repository survives its folder, and the folder belongs to it again.
#[test]
fn a_submodule_whose_folder_is_gone_belongs_to_its_repository_again() {
    let env = TestEnv::repo();
    submodules(&env, &["module", "libs/deep name"]);
    env.write("module/lib.c", "changed\n");
    env.sh("echo staged > module/staged; git -C module add staged")
        .expect(0);
    let status = || {
        env.sh("git status --short; git -C module status --short; git -C 'libs/deep name' status --short").stdout
    };
    let before = (content(&env, "."), status());
    checkpoint(&env);
    for line in [
        "rm -rf module libs",
        "rm module/.git module/lib.c",
        "rm -rf module/.git module/*",
    ] {
        env.sh(line).expect(0);
        let gone = content(&env, ".");
        env.json(0, &["checkpoint", "verify"]);
        let back = back_to(&env, "@1");
        assert_eq!(outcome(&back, "module"), "relinked", "{line}");
        assert_eq!((content(&env, "."), status()), before, "{line}");
        env.json(0, &["undo"]);
        assert_eq!(content(&env, "."), gone, "{line}");
        env.json(0, &["redo"]);
        assert_eq!((content(&env, "."), status()), before, "{line}");
        // What the repository itself says of it is not that of another place.
        env.git(&["-C", "module", "fsck", "--no-dangling"]);
        env.json(0, &["doctor"]);
    }
    // A plain undo of what was changed in it is not asked for.
    env.sh("rm -rf module .git/modules/module").expect(0);
    let back = back_to(&env, "@1");
    assert_eq!(outcome(&back, "module"), "files_restored");
    assert_eq!(env.read("module/lib.c"), "changed\n");
    env.json(0, &["undo"]);
    assert!(!env.exists("module"));
}

// The submodule's folder came from the rollback: its undo puts the file back without a question, but over no edit since.
#[test]
fn a_file_in_the_place_of_a_submodule_comes_back_with_undo() {
    let env = TestEnv::repo();
    submodules(&env, &["module"]);
    checkpoint(&env);
    env.sh("git rm -q --cached module; rm -rf module; echo file > module")
        .expect(0);
    let status = || env.sh("git status --short; ls -A module").stdout;
    let before = status();
    back_to(&env, "@1");
    let back = status();
    assert!(env.exists("module/lib.c"));
    for _ in 0..2 {
        env.json(0, &["undo"]);
        assert_eq!(
            (status(), env.read("module")),
            (before.clone(), "file\n".to_owned())
        );
        env.json(0, &["redo"]);
        assert_eq!(status(), back);
    }
    for (edit, was) in [
        ("echo mine >> module/lib.c", "file\n"),
        ("rm -rf module; echo mine > module", "file\n"),
        ("rm -rf module", "mine\n"),
    ] {
        env.sh(edit).expect(0);
        let edited = content(&env, ".");
        env.json(13, &["undo"]);
        assert_eq!(content(&env, "."), edited, "{edit}");
        env.json(0, &["undo", "--edits", "discard"]);
        assert_eq!(env.read("module"), was, "{edit}");
        env.json(0, &["redo"]);
        assert_eq!(content(&env, "."), edited, "{edit}");
        back_to(&env, "@1");
    }
}

fn submodules(env: &TestEnv, paths: &[&str]) {
    env.sh(
        "git init -q ../library; cd ../library; echo lib > lib.c; git add .; git commit -qm lib",
    )
    .expect(0);
    for path in paths {
        env.git(&[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            "../library",
            path,
        ]);
    }
    env.git(&["commit", "-qm", "modules"]);
}

// One command for all of them, taken back by one.
#[test]
fn twelve_submodules_come_back_with_one_command() {
    let env = TestEnv::repo();
    let names: Vec<String> = (0..12).map(|number| format!("m{number:02}")).collect();
    submodules(&env, &names.iter().map(String::as_str).collect::<Vec<_>>());
    env.write("m03/lib.c", "kept as it is\n");
    let before = content(&env, ".");
    checkpoint(&env);
    env.sh("for one in m*; do echo changed > $one/lib.c; echo new > $one/new; done; rm m05/lib.c; echo 2 > a.txt")
        .expect(0);
    let changed = content(&env, ".");
    let plan = env.json(
        0,
        &[
            "--dry-run",
            "rollback",
            "--to",
            "@1",
            "--edits",
            "discard",
            "--nested",
        ],
    );
    assert!(
        names.iter().all(|name| outcome(&plan, name) == "restored"),
        "{plan:#}"
    );
    let without = env.json(
        0,
        &["--dry-run", "rollback", "--to", "@1", "--edits", "discard"],
    );
    assert!(
        names.iter().all(|name| outcome(&without, name) == "kept"),
        "{without:#}"
    );
    assert!(kept(&without, "m00").contains("--nested"), "{without:#}");
    let back = env.json(
        0,
        &["rollback", "--to", "@1", "--edits", "discard", "--nested"],
    );
    assert_eq!(content(&env, "."), before);
    assert_eq!(back["result"]["kept"], serde_json::json!([]), "{back:#}");
    assert_eq!(env.sh("git status --short").stdout, " m m03\n");
    env.json(0, &["undo"]);
    assert_eq!(content(&env, "."), changed);
    env.json(0, &["redo"]);
    assert_eq!(content(&env, "."), before);
    let again = env
        .recover(&["rollback", "--to", "@1", "--nested"])
        .expect(0)
        .stdout;
    assert!(again.contains("Nothing to do"), "{again}");
}

// Hand edits in them are hand edits, what they ignore stays, and so does what is left to itself.
#[test]
fn with_nested_the_same_rules_hold_inside() {
    let env = TestEnv::repo();
    own(&env);
    env.sh("echo '*.log' > own/.gitignore; echo log > own/a.log; echo sub > own/deep/.gitignore")
        .expect(0);
    let before = content(&env, "own");
    checkpoint(&env);
    env.sh("cd own; echo by hand > tracked; rm run; echo new > deep/new; echo sub > deep/sub; echo b > b.log")
        .expect(0);
    let refused = env.error(13, &["rollback", "--to", "@1", "--nested"]);
    assert!(
        text(&refused["message"]).contains("own/tracked"),
        "{refused}"
    );
    assert!(text(&refused["hint"]).contains("--nested"), "{refused}");
    let back = env.json(
        0,
        &["rollback", "--to", "@1", "--nested", "--edits", "discard"],
    );
    let mut after = content(&env, "own");
    assert!(
        after.remove(&b"b.log"[..]).is_some() && after.remove(&b"deep/sub"[..]).is_some(),
        "ignored: {back}"
    );
    assert_eq!(after, before);
    assert_eq!(env.git(&["-C", "own", "log", "--format=%s"]), "own\n");
    // Without the flag nothing of it is touched, and it is said what to do.
    env.write("own/tracked", "2\n");
    env.write("a.txt", "2\n");
    let kept_one = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(
        (
            env.read("own/tracked").as_str(),
            outcome(&kept_one, "own").as_str()
        ),
        ("2\n", "kept")
    );
    // What it left alone is nobody's hand edit.
    env.json(0, &["rollback", "--to", "@1", "--nested"]);
    assert_eq!(env.read("own/tracked"), "1\n");
    // Part of it.
    env.sh("echo 3 > own/tracked; rm own/link").expect(0);
    env.json(
        0,
        &[
            "checkpoint",
            "restore",
            "@1",
            "--nested",
            "--edits",
            "discard",
            "--path",
            "own/link",
        ],
    );
    assert_eq!(
        (env.read("own/tracked"), env.exists("own/link")),
        ("3\n".to_owned(), true)
    );
}

// Two levels, a commit made meanwhile, one without any, and one made since.
#[test]
fn what_is_left_of_nested_repositories_is_listed() {
    let env = TestEnv::repo();
    own(&env);
    env.sh("git init -q own/inner; echo i > own/inner/file; git init -q unborn; echo u > unborn/u")
        .expect(0);
    let before = content(&env, ".");
    checkpoint(&env);
    env.sh("echo 2 > own/inner/file; echo 2 > unborn/u; git init -q since; echo s > since/s")
        .expect(0);
    env.sh("cd own && echo 2 > tracked && git commit -qam later")
        .expect(0);
    let text_of = env
        .recover(&["rollback", "--to", "@1", "--edits", "discard"])
        .expect(0)
        .stdout;
    for path in ["own", "unborn", "since"] {
        assert!(text_of.contains(path), "{text_of}");
    }
    let back = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert!(
        kept(&back, "since").contains("not in the checkpoint"),
        "{back}"
    );
    let back = env.json(
        0,
        &["rollback", "--to", "@1", "--edits", "discard", "--nested"],
    );
    assert!(kept(&back, "own").contains("its HEAD stays at"), "{back}");
    assert_eq!(env.read("since/s"), "s\n");
    env.sh("rm -r since").expect(0);
    assert_eq!(content(&env, "."), before);
    // Both levels at once.
    env.sh("rm -rf own").expect(0);
    let back = back_to(&env, "@1");
    assert_eq!(env.read("own/inner/file"), "i\n");
    assert!(kept(&back, "own/inner").contains("do not"), "{back}");
    env.json(0, &["undo"]);
    assert!(!env.exists("own"));
}

// The command that `kept` names works as it is, from any folder, also for the second time.
#[test]
fn the_command_for_one_works_as_it_is_named() {
    let env = TestEnv::repo();
    own(&env);
    checkpoint(&env);
    for content in ["2\n", "3\n"] {
        env.write("own/tracked", content);
        let back = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
        let reason = kept(&back, "own");
        let (_, command) = reason
            .split_once("comes back with: ")
            .unwrap_or_else(|| panic!("{reason}"));
        let command = command.strip_prefix("recover ").expect("a command");
        env.sh(&format!(
            "cd / && {} {command}",
            env!("CARGO_BIN_EXE_recover")
        ))
        .expect(0);
        assert_eq!(env.read("own/tracked"), "1\n");
    }
}

// A checkpoint without a copy of their files, as 0.1.0 took them: the submodule's own repository has its part.
#[test]
fn a_submodule_of_a_checkpoint_without_copies_is_led_to_its_repository_again() {
    let env = TestEnv::repo();
    submodules(&env, &["module"]);
    env.write("module/lib.c", "changed\n");
    checkpoint(&env);
    strip_copies(&env);
    env.sh("rm -rf module").expect(0);
    let back = back_to(&env, "@1");
    assert_eq!(outcome(&back, "module"), "relinked");
    let reason = kept(&back, "module");
    let (_, command) = reason
        .split_once("comes back with: ")
        .unwrap_or_else(|| panic!("{reason}"));
    let command = command.strip_prefix("recover ").expect("a command");
    env.sh(&format!(
        "cd / && {} {command}",
        env!("CARGO_BIN_EXE_recover")
    ))
    .expect(0);
    assert_eq!(env.read("module/lib.c"), "changed\n");
}

/// Makes of the only checkpoint one that 0.1.0 could have made: its state commit has no `nested`.
fn strip_copies(env: &TestEnv) {
    let line = r#"set -e; ref=$(git for-each-ref --format='%(refname)' refs/recover); old=$(git rev-parse $ref)
        set -- $(git show -s --format=%P $old); for last; do :; done
        tree=$(git ls-tree $last | awk '$4 != "nested"' | git mktree)
        state=$(git commit-tree -m state $tree); parents=$(git cat-file commit $old | sed -n 's/^parent //p' | sed '$d')
        new=$(for one in $parents; do echo $one; done | sed 's/^/-p /' | tr '\n' ' ')
        commit=$(git show -s --format=%B $old | git commit-tree $new -p $state $old^{tree}); git update-ref $ref $commit
        rm -rf .ultraplan .git/recover"#;
    env.sh(line).expect(0);
}

// What leads elsewhere is captured by nobody, so nothing can be said of it but that: neither that it is the same nor that
// nothing is to be done.
#[test]
fn what_could_not_be_captured_is_listed_as_kept() {
    let env = TestEnv::repo();
    env.write("sub/.git", "gitdir: /nowhere/.git\n");
    env.write("sub/s", "s\n");
    env.json(0, &["checkpoint", "create"]);
    for change in ["echo other > sub/s", "rm -rf sub"] {
        env.sh(change).expect(0);
        let done = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
        let kept = done["result"]["kept"].as_array().expect("a list");
        let listed = kept.iter().filter(|kept| kept["path"] == "sub").count();
        assert_eq!(
            (&done["changed"], listed),
            (&false.into(), 1),
            "{change}: {done}"
        );
        let text = env
            .recover(&["rollback", "--to", "@1", "--edits", "discard"])
            .expect(0)
            .stdout;
        assert!(
            !text.contains("Nothing to do") && text.contains("kept sub"),
            "{text}"
        );
    }
}

// As long as a restore is at work in it, nobody else is.
#[test]
fn the_lock_of_a_nested_repository_is_held_until_it_is_restored() {
    let env = TestEnv::repo();
    own(&env);
    checkpoint(&env);
    env.write("own/tracked", "2\n");
    env.write("a.txt", "2\n");
    // The restore waits for this when all files are written.
    env.write(".git/index.lock", "");
    let arguments = [
        "--lock-timeout",
        "60s",
        "rollback",
        "--to",
        "@1",
        "--nested",
        "--edits",
        "discard",
    ];
    let mut restore = env
        .recover_command(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while env.read("own/tracked") != "1\n" {
        assert_eq!(restore.try_wait().unwrap(), None, "it has not waited");
        std::thread::sleep(Duration::from_millis(5));
    }
    let refused = env.error(
        11,
        &["-C", "own", "--lock-timeout", "0s", "checkpoint", "create"],
    );
    std::fs::remove_file(env.work().join(".git/index.lock")).unwrap();
    assert!(restore.wait().unwrap().success(), "{refused}");
    env.json(0, &["-C", "own", "checkpoint", "create"]);
}
