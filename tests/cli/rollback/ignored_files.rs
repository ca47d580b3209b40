//! What is left out as ignored, and what a restore makes of it.

use crate::env::TestEnv;
use crate::seen::{checkpoint, seen};

// snapshot.md, capture: what git shows as untracked is captured, whatever other programs make of a pattern.
#[test]
fn what_git_shows_as_untracked_comes_back() {
    let env = TestEnv::repo();
    env.write(".gitignore", "*.{log,txt}\nf[[:digit:]]\n");
    env.write("notes.txt", "night\n");
    env.write("f1", "ignored\n");
    assert!(env.git(&["status", "--short"]).contains("?? notes.txt"));
    checkpoint(&env);
    env.write("notes.txt", "clobbered\n");
    env.write("f1", "still mine\n");
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(env.read("notes.txt"), "night\n");
    assert_eq!(env.read("f1"), "still mine\n");
}

fn captured(env: &TestEnv) -> Vec<String> {
    let id = checkpoint(env);
    let commit = env.json(0, &["checkpoint", "show", &id])["checkpoint"]["commit"]
        .as_str()
        .expect("an id")
        .to_owned();
    env.git(&["ls-tree", "-r", "--name-only", &commit])
        .lines()
        .map(str::to_owned)
        .collect()
}

// The user's own excludes, where git finds them: the default place, another base folder, and a path below the home.
#[test]
fn the_users_excludes_are_found_where_git_finds_them() {
    let mut env = TestEnv::repo();
    let home = env.root().join("home");
    let write = |path: &str, rules: &str| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, rules).expect("written");
    };
    write(".config/git/ignore", "by-default\n");
    write("xdg/git/ignore", "by-xdg\n");
    write("own excludes", "by-own\n");
    for name in ["by-default", "by-xdg", "by-own"] {
        env.write(name, "x\n");
    }
    let without = |name: &str| -> Vec<String> {
        ["a.txt", "by-default", "by-own", "by-xdg"]
            .into_iter()
            .filter(|one| *one != name)
            .map(str::to_owned)
            .collect()
    };
    let agree = |env: &TestEnv, name: &str| {
        let by_git = env.git(&["ls-files", "-c", "-o", "--exclude-standard"]);
        let mut by_git: Vec<&str> = by_git
            .lines()
            .filter(|path| !path.starts_with(".ultraplan"))
            .collect();
        by_git.sort_unstable();
        assert_eq!(by_git, without(name), "by git");
        assert_eq!(captured(env), without(name));
    };
    agree(&env, "by-default");
    env.set("XDG_CONFIG_HOME", home.join("xdg").to_str().expect("text"));
    agree(&env, "by-xdg");
    env.git(&["config", "core.excludesFile", "~/own excludes"]);
    agree(&env, "by-own");
}

// A linked work tree has the rules of `info/exclude` of the repository it belongs to.
#[test]
fn a_linked_work_tree_has_the_repositorys_excludes() {
    let env = TestEnv::repo();
    env.sh("mkdir -p .git/info; echo mine > .git/info/exclude; git worktree add -q ../linked")
        .expect(0);
    env.sh("cd ../linked; touch mine other").expect(0);
    let linked = env.root().join("linked");
    let linked = linked.to_str().expect("text");
    let id = env.json(0, &["-C", linked, "checkpoint", "create"])["checkpoint"]["commit"].clone();
    let listing = env.git(&["ls-tree", "-r", "--name-only", id.as_str().expect("an id")]);
    assert!(listing.lines().any(|path| path == "other"), "{listing}");
    assert!(!listing.lines().any(|path| path == "mine"), "{listing}");
}

/// The paths of a list of a document, with the reasons.
fn reasons(list: &serde_json::Value) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    list.as_array()
        .expect("a list")
        .iter()
        .map(|one| (text(&one["path"]), text(&one["reason"])))
        .collect()
}

// snapshot.md, restore: "ignored" is what is neither tracked nor included. An undo takes back all that a rollback brought back.
#[test]
fn undo_takes_tracked_and_included_files_back_though_they_are_ignored() {
    let env = TestEnv::repo();
    env.write(".gitignore", "*.log\ndata/\ncache/\n");
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\ninclude = [\"data/**\"]\n",
    );
    env.write("forced/keep.log", "tracked\n");
    env.git(&["add", "-f", ".gitignore", "forced/keep.log"]);
    env.git(&["commit", "-qm", "tracked but ignored"]);
    env.write("data/deep/set", "included\n");
    env.write("cache/x", "neither\n");
    env.write("cache/forced", "tracked in an ignored folder\n");
    env.git(&["add", "-f", "cache/forced"]);
    checkpoint(&env);
    env.sh("rm -r forced data cache/forced").expect(0);
    let before = seen(env.work());
    checkpoint(&env);
    env.json(0, &["rollback", "--to", "@1"]);
    assert_eq!(env.read("forced/keep.log"), "tracked\n");
    assert_eq!(env.read("data/deep/set"), "included\n");
    assert_eq!(env.read("cache/forced"), "tracked in an ignored folder\n");
    let undone = env.json(0, &["undo"])["result"].clone();
    assert_eq!(seen(env.work()), before, "{undone}");
    let cache = [(
        "cache".to_owned(),
        "holds files that were not captured".to_owned(),
    )];
    assert_eq!(reasons(&undone["kept"]), cache, "{undone}");
    let redone = env.json(0, &["redo"])["result"].clone();
    assert_eq!(redone["kept"], serde_json::json!([]), "{redone}");
    assert_eq!(env.read("data/deep/set"), "included\n");
    env.json(0, &["undo"]);
    assert_eq!(seen(env.work()), before);
}

// What a checkpoint did not look at was there for all it knows: a file that is tracked or included only since then stays.
#[test]
fn what_was_ignored_then_is_not_deleted_for_being_tracked_now() {
    let env = TestEnv::repo();
    env.write(".gitignore", ".env\ndata/\n");
    env.write(".env", "SECRET=1\n");
    env.write("data/set", "mine\n");
    env.write(".ultraplan/recover.toml", "[checkpoint]\n");
    checkpoint(&env);
    env.git(&["add", "-f", ".env"]);
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\ninclude = [\"data/**\"]\n",
    );
    env.write("a.txt", "two\n");
    checkpoint(&env);
    let done = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"])["result"].clone();
    assert_eq!(env.read("a.txt"), "one\n");
    assert_eq!(
        (env.read(".env"), env.read("data/set")),
        ("SECRET=1\n".to_owned(), "mine\n".to_owned())
    );
    let ignored = |path: &str| (path.to_owned(), "ignored".to_owned());
    assert_eq!(
        reasons(&done["kept"]),
        [ignored(".env"), ignored("data/set")],
        "{done}"
    );
}

// snapshot.md, restore: `kept` is complete, and "nothing to do" is said only where the tree is the checkpoint's.
#[test]
fn all_that_differs_and_is_kept_is_listed() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nmax_file_size = \"1 KiB\"\nexclude = [\"*.iso\"]\n",
    );
    env.write("old.bin", "x".repeat(2000));
    env.write("gone.bin", "x".repeat(2000));
    env.write("same.iso", "x\n");
    env.json(0, &["checkpoint", "create"]);
    let text = env.recover(&["rollback", "--to", "@1"]).expect(0).stdout;
    assert_eq!(
        text,
        "Nothing to do: the work tree is as the checkpoint has it.\n"
    );
    assert_eq!(
        env.json(0, &["rollback", "--to", "@1"])["result"]["kept"],
        serde_json::json!([])
    );

    env.write("old.bin", "x".repeat(3000));
    env.sh("rm gone.bin; mkfifo pipe; mkdir sub; mkfifo sub/pipe; git init -q sub/fresh; echo x > sub/fresh/f")
        .expect(0);
    env.write("new.bin", "x".repeat(2000));
    env.write("new.iso", "x\n");
    let listener =
        std::os::unix::net::UnixListener::bind(env.work().join("sock")).expect("a socket");
    let expected = [
        (
            "gone.bin",
            "not captured in the checkpoint: over max_file_size",
        ),
        ("new.bin", "not captured: over max_file_size"),
        ("new.iso", "not captured: excluded"),
        ("old.bin", "not captured: over max_file_size"),
        ("pipe", "not captured: a FIFO"),
        ("sock", "not captured: a socket"),
        (
            "sub/fresh",
            "nested repository; it is not in the checkpoint",
        ),
        ("sub/pipe", "not captured: a FIFO"),
    ]
    .map(|(path, reason)| (path.to_owned(), reason.to_owned()));
    for flags in [&["--dry-run"][..], &[]] {
        let document = env.json(0, &[&["rollback", "--to", "@1"], flags].concat());
        assert_eq!(document["changed"], false, "{document}");
        let list = if flags.is_empty() {
            &document["result"]["kept"]
        } else {
            &document["plan"]["kept"]
        };
        assert_eq!(reasons(list), expected, "{document}");
    }
    let text = env.recover(&["rollback", "--to", "@1"]).expect(0).stdout;
    assert!(
        text.starts_with("Nothing changed: 8 paths differ from the checkpoint and are kept\n"),
        "{text}"
    );
    assert!(
        text.contains("kept sub/pipe (not captured: a FIFO)\n"),
        "{text}"
    );
    assert!(!text.contains("Nothing to do"), "{text}");
    // The same where something else is done.
    env.write("a.txt", "two\n");
    let done = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"])["result"].clone();
    assert_eq!(reasons(&done["kept"]), expected, "{done}");
    // Of what is not asked for nothing is said.
    let one = env.json(0, &["rollback", "--to", "@1", "--path", "a.txt"])["result"].clone();
    assert_eq!(one["kept"], serde_json::json!([]), "{one}");
    drop(listener);
}

// Of thousands of files that are kept for being ignored their folder is told.
#[test]
fn a_flood_of_ignored_files_is_told_by_its_folder() {
    let env = TestEnv::repo();
    env.write(".gitignore", "build/\n");
    env.write("few/a", "x\n");
    checkpoint(&env);
    env.write(".gitignore", "\n");
    for file in 0..300 {
        env.write(&format!("build/{}/{file}", file % 3), "x\n");
    }
    checkpoint(&env);
    let done = env.json(0, &["rollback", "--to", "@1"])["result"].clone();
    assert_eq!(
        reasons(&done["kept"]),
        [("build".to_owned(), "ignored".to_owned())],
        "{done}"
    );
    assert_eq!(env.read("build/2/299"), "x\n");
}

// Promise 2: what a checkpoint's rules excluded it says nothing of, also where the rules are others by now.
#[test]
fn what_a_checkpoint_excluded_stays_whatever_is_excluded_now() {
    let env = TestEnv::repo();
    env.put(".git/info/exclude", ".ultraplan/recover.toml\n");
    env.put(
        ".ultraplan/recover.toml",
        "[checkpoint]\nexclude = ['data/**']\n",
    );
    checkpoint(&env);
    env.remove(".ultraplan/recover.toml");
    env.write("data/new", "mine\n");
    env.write("new.txt", "the run's\n");
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(
        (env.read("data/new").as_str(), env.exists("new.txt")),
        ("mine\n", false)
    );
}

// Rules that no checkpoint has, as they ignore themselves, hide from an undo nothing that the rollback has made.
#[test]
fn undo_removes_what_the_rollback_has_made_under_rules_that_hide_themselves() {
    let env = TestEnv::repo();
    env.write("run.sh", "run\n");
    env.write("deep/one.sh", "one\n");
    checkpoint(&env);
    env.sh("rm -r run.sh deep; printf '*\\n!*.txt\\n' > .gitignore; echo mine > mine.sh")
        .expect(0);
    let list =
        || env.sh("find . -path ./.git -prune -o -path ./.ultraplan -prune -o -print | sort");
    let before = list().stdout;
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(env.read("deep/one.sh"), "one\n");
    env.json(0, &["undo"]);
    assert_eq!(list().stdout, before);
    env.json(0, &["redo"]);
    // What was edited since is an edit, and comes back with redo.
    env.write("run.sh", "edited\n");
    let refused = env.json(13, &["undo"]);
    assert_eq!(refused["error"]["paths"][0]["path"], "run.sh", "{refused}");
    env.json(0, &["undo", "--edits", "discard"]);
    assert_eq!(list().stdout, before);
    env.json(0, &["redo"]);
    assert_eq!(env.read("run.sh"), "edited\n");
}

// What was there before a rollback and is ignored is not the rollback's to remove.
#[test]
fn undo_leaves_ignored_files_that_were_there_before() {
    let env = TestEnv::repo();
    env.write("run.sh", "run\n");
    checkpoint(&env);
    env.write(".gitignore", "*\n!*.txt\n");
    env.write("a.txt", "a\n");
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    env.json(0, &["undo"]);
    assert_eq!(env.read("run.sh"), "run\n");
    assert_eq!(env.read("a.txt"), "a\n");
}

/// A project with files that git ignores: some that a developer cannot make again, and some that a tool makes.
fn with_ignored() -> TestEnv {
    let env = TestEnv::repo();
    env.write(".gitignore", "_notes/\n.env*\n*.local\n*.log\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "ignore"]);
    env.write("_notes/plan.md", "plan\n");
    env.write(".env", "KEY=1\n");
    env.write("web/.env.local", "KEY=2\n");
    env.write("web/page", "page\n");
    env.write("build.log", "log\n");
    env.sh("chmod 600 .env").expect(0);
    env
}

// `git clean -fdx`, or without the `.gitignore`: what git ignores is in no checkpoint.
#[test]
fn what_an_attempt_removes_of_ignored_files_comes_back_or_is_named() {
    let env = with_ignored();
    let line = "rm -rf .env web _notes; exit 1";
    let ran = env.recover(&[
        "run",
        "--run",
        "n",
        "--attempts",
        "2",
        "--on-failure",
        "rollback",
        "--no-wait",
        "--",
        "sh",
        "-c",
        line,
    ]);
    assert_eq!(
        (
            env.read(".env").as_str(),
            env.read("web/.env.local").as_str()
        ),
        ("KEY=1\n", "KEY=2\n"),
        "{ran:?}"
    );
    assert_eq!(env.mode(".env"), 0o600);
    assert!(
        ran.stderr.contains("put back") && ran.stderr.contains("_notes"),
        "{}",
        ran.stderr
    );
    let kept = env.work().join(".git/recover/precious");
    assert_eq!(env.mode(".git/recover/precious"), 0o700);
    for copy in std::fs::read_dir(kept).unwrap() {
        assert_eq!(
            env.mode(
                copy.unwrap()
                    .path()
                    .strip_prefix(env.work())
                    .unwrap()
                    .to_str()
                    .unwrap()
            ),
            0o600
        );
    }
    // In no commit.
    let all = env
        .sh("git rev-list --all --objects | cut -d' ' -f1 | git cat-file --batch")
        .stdout;
    assert!(!all.contains("KEY="), "it is in an object");
}

#[test]
fn a_person_says_whether_ignored_files_come_back() {
    let env = with_ignored();
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    env.sh("rm -r .env web/.env.local _notes && echo new > .env")
        .expect(0);
    let named = |result: &serde_json::Value| {
        let missing = result["missing"].as_array().expect("a list").iter();
        missing
            .map(|one| {
                format!(
                    "{} {}",
                    one["path"].as_str().unwrap(),
                    one["reason"].as_str().unwrap()
                )
            })
            .collect::<Vec<_>>()
    };
    let rolled = env.json(0, &["rollback", "--run", "r", "--to", "initial"]);
    assert_eq!(
        (&rolled["changed"], named(&rolled["result"])),
        (
            &false.into(),
            vec![
                "web/.env.local copied".to_owned(),
                "_notes no_copy".to_owned()
            ]
        )
    );
    assert!(
        env.recover(&["rollback", "--run", "r", "--to", "initial"])
            .expect(0)
            .stdout
            .contains("--precious puts it back")
    );
    let planned = env.json(
        0,
        &[
            "rollback",
            "--run",
            "r",
            "--to",
            "initial",
            "--precious",
            "--dry-run",
        ],
    );
    assert_eq!(
        planned["plan"]["precious"][0]["path"], "web/.env.local",
        "{planned}"
    );
    assert!(!env.exists("web/.env.local"));
    env.json(
        0,
        &["rollback", "--run", "r", "--to", "initial", "--precious"],
    );
    assert_eq!(
        (
            env.read(".env").as_str(),
            env.read("web/.env.local").as_str()
        ),
        ("new\n", "KEY=2\n"),
        "never over a file"
    );
    // With its checkpoints the copies go.
    env.json(0, &["close", "r"]);
    env.json(0, &["forget", "r", "--yes"]);
    assert_eq!(env.sh("find .git/recover/precious -type f").stdout, "");
}

#[test]
fn no_copy_is_kept_in_ci() {
    let mut env = with_ignored();
    env.set("CI", "true");
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    assert!(!env.sh("cat .git/recover/precious/*").stdout.contains("KEY"));
}
