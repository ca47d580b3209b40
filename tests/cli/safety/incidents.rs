//! What checkpointing systems of other tools lost their users' trust with (snapshot.md), one test an incident.

use crate::env::TestEnv;
use crate::seen::{assert_clean, back_to, checkpoint, paths, seen, text};

/// A stale or empty snapshot was put back, and `git clean -fd` removed what it did not hold: the whole repository.
#[test]
fn a_repository_deleted_by_a_stale_or_empty_snapshot() {
    let env = TestEnv::plain();
    env.git(&["init", "-q", "-b", "main"]);
    let empty = checkpoint(&env);
    env.write("src/main.rs", "fn main() {}\n");
    env.write("notes.txt", "never added\n");
    env.write("target/cache", "ignored\n");
    env.write(".gitignore", "target/\n");
    env.sh("mkdir made; git add src; git commit -qm work")
        .expect(0);
    let kept = seen(env.work());
    // Everything there is newer than the checkpoint, and a person's: a refusal, and nothing is gone.
    let error = env.error(13, &["rollback", "--to", &empty]);
    assert!(
        paths(&error["paths"]).contains(&"notes.txt".to_owned()) || error["code"] == "head_moved",
        "{error}"
    );
    env.json(13, &["rollback", "--to", &empty, "--commits", "keep"]);
    assert_eq!(seen(env.work()), kept);
    // Insisted upon, it takes what a checkpoint holds, leaves what none holds, and is taken back in one step.
    env.json(
        0,
        &[
            "rollback",
            "--to",
            &empty,
            "--commits",
            "keep",
            "--edits",
            "discard",
        ],
    );
    assert!(!env.exists("notes.txt") && env.exists(".git") && env.exists("target/cache"));
    env.json(0, &["undo"]);
    assert_eq!(seen(env.work()), kept);
    // A snapshot that cannot be taken is an error, never an older or emptier one under a new name.
    env.sh("mv .git/index ../index; echo broken > .git/index")
        .expect(0);
    assert_ne!(env.recover(&["--json", "checkpoint", "create"]).code, 0);
    assert_ne!(
        env.recover(&["--json", "rollback", "--to", &empty, "--edits", "discard"])
            .code,
        0
    );
    env.sh("mv ../index .git/index").expect(0);
    assert_eq!(seen(env.work()), kept);
    assert_clean(&env);
}

/// A restore removed what the rules ignore: databases, local settings, dependencies.
#[test]
fn ignored_data_deleted() {
    let env = TestEnv::repo();
    env.write(".gitignore", "*.sqlite\n.env\nnode_modules/\n");
    env.write("app/data.sqlite", "rows\n");
    env.write(".env", "SECRET=1\n");
    env.write("node_modules/a/index.js", "x\n");
    checkpoint(&env);
    env.write("app/later.sqlite", "more rows\n");
    env.write("node_modules/b/index.js", "y\n");
    env.write("app/code.rs", "new\n");
    env.write("dist/out.bin", "not ignored yet\n");
    let second = checkpoint(&env);
    // Ignored since: what is there now stays as well.
    env.write(".gitignore", "*.sqlite\n.env\nnode_modules/\ndist/\n");
    let ignored = |env: &TestEnv| {
        seen(env.work()).into_iter().filter(|(path, (mode, _))| {
            let name = String::from_utf8_lossy(path).into_owned();
            mode & 0o100_000 != 0
                && ["sqlite", ".env", "node_modules", "dist"]
                    .iter()
                    .any(|part| name.contains(part))
        })
    };
    let before: Vec<_> = ignored(&env).collect();
    assert_eq!(before.len(), 6);
    back_to(&env, "@1");
    assert!(!env.exists("app/code.rs"));
    assert_eq!(ignored(&env).collect::<Vec<_>>(), before);
    env.json(0, &["undo"]);
    // Ignored by the rules of the checkpoint, though not any more.
    env.write(".gitignore", "");
    back_to(&env, "@1");
    let left: Vec<_> = ignored(&env).collect();
    assert_eq!(left.len(), 5, "what lies in dist/ no rule ignores");
    assert!(left.iter().all(|file| before.contains(file)), "{left:?}");
    env.json(0, &["undo"]);
    back_to(&env, &second);
    assert_eq!(ignored(&env).collect::<Vec<_>>(), before);
}

/// `reset --hard` moved the branch, and a person's commits were off it.
#[test]
fn commits_knocked_off_a_branch() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.sh("echo mine > mine.txt; git add mine.txt; git commit -qm mine")
        .expect(0);
    let tip = env.git(&["rev-parse", "main"]);
    let before = seen(env.work());
    for args in [
        vec!["rollback", "--to", "@1"],
        vec!["rollback", "--to", "@1", "--edits", "discard"],
    ] {
        let error = env.error(13, &args);
        assert!(
            ["head_moved", "hand_edits"].contains(&text(&error["code"]).as_str()),
            "{error}"
        );
    }
    assert_eq!(
        (env.git(&["rev-parse", "main"]), seen(env.work())),
        (tip.clone(), before.clone())
    );
    env.json(
        0,
        &[
            "rollback",
            "--to",
            "@1",
            "--edits",
            "discard",
            "--commits",
            "keep",
        ],
    );
    assert_eq!(env.git(&["rev-parse", "main"]), tip);
    env.json(0, &["undo"]);
    // Dropped on demand, they survive any garbage collection and come back.
    env.json(
        0,
        &[
            "rollback",
            "--to",
            "@1",
            "--edits",
            "discard",
            "--commits",
            "drop",
        ],
    );
    assert_ne!(env.git(&["rev-parse", "main"]), tip);
    env.sh("git reflog expire --all --expire=now; git gc -q --prune=now")
        .expect(0);
    env.json(0, &["undo"]);
    assert_eq!(
        (env.git(&["rev-parse", "main"]), seen(env.work())),
        (tip, before)
    );
}

/// A snapshot went through the user's index, and with it went what was staged.
#[test]
fn staged_work_lost() {
    let env = TestEnv::repo();
    env.write("staged.txt", "staged, and then changed\n");
    env.sh(
        "git add staged.txt; echo later > staged.txt; echo new > intent.txt; git add -N intent.txt",
    )
    .expect(0);
    let index = || std::fs::read(env.work().join(".git/index")).unwrap();
    let (staged, bytes) = (env.git(&["ls-files", "-s"]), index());
    checkpoint(&env);
    assert_eq!(index(), bytes, "not a byte of it changes");
    env.write("a.txt", "two\n");
    checkpoint(&env);
    env.json(0, &["rollback", "--to", "@1"]);
    assert_eq!(
        env.git(&["diff", "--cached", "--name-only"]),
        "staged.txt\n"
    );
    assert_eq!(
        env.git(&["show", ":staged.txt"]),
        "staged, and then changed\n"
    );
    // Even where the index is lost, the checkpoint has it: content that was only staged is in no file.
    env.remove(".git/index");
    env.json(
        0,
        &[
            "rollback",
            "--to",
            "@1",
            "--edits",
            "discard",
            "--restore-index",
        ],
    );
    assert_eq!(env.git(&["ls-files", "-s"]), staged);
    assert_eq!(
        env.git(&["diff", "--cached", "--name-only"]),
        "staged.txt\n",
        "what is only intended is not staged"
    );
    assert_eq!(
        env.git(&["show", ":staged.txt"]),
        "staged, and then changed\n"
    );
    assert_eq!(env.git(&["stash", "list"]), "");
}

/// A rollback wrote over what a person had edited meanwhile, and nothing held it.
#[test]
fn hand_edits_overwritten_with_no_way_back() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.write("a.txt", "the agent's\n");
    env.write("b.txt", "the agent's\n");
    checkpoint(&env);
    env.write("a.txt", "mine\n");
    env.sh("rm b.txt; echo new > c.txt").expect(0);
    let mine = seen(env.work());
    let error = env.error(13, &["rollback", "--to", "@1"]);
    assert_eq!(error["code"], "hand_edits");
    // The one that was removed is not there in the checkpoint either.
    assert_eq!(paths(&error["paths"]), ["a.txt", "c.txt"]);
    assert_eq!(seen(env.work()), mine);
    back_to(&env, "@1");
    assert_eq!(env.read("a.txt"), "one\n");
    env.json(0, &["undo"]);
    assert_eq!(seen(env.work()), mine);
}

/// Hidden copies filled the disk: an untracked flood is refused with its folder, and what did not change costs nothing.
#[test]
fn gigabytes_of_hidden_copies() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nmax_untracked_files = 100\nmax_untracked_bytes = \"1 MiB\"\n",
    );
    let objects = || {
        env.sh("find .git -path '*objects/??/*' -o -name '*.pack' | wc -l; du -sb .git/objects | cut -f1").stdout
    };
    let before = objects();
    env.sh("mkdir -p deps/lib; for n in $(seq 150); do echo $n > deps/lib/$n; done")
        .expect(0);
    let error = env.error(14, &["checkpoint", "create"]);
    assert!(error.to_string().contains("deps/lib"), "{error}");
    env.sh(
        "rm -r deps; mkdir dump; for n in 1 2 3; do head -c 500000 /dev/urandom > dump/$n; done",
    )
    .expect(0);
    let error = env.error(14, &["checkpoint", "create"]);
    assert!(error.to_string().contains("dump"), "{error}");
    assert_eq!(objects(), before, "nothing of it was copied");
    env.sh("rm -r dump").expect(0);
    for number in 0..50 {
        env.write(&format!("src/{number}"), format!("{number}\n").repeat(100));
    }
    checkpoint(&env);
    let listing = |env: &TestEnv| {
        env.sh("git cat-file --batch-all-objects --batch-check='%(objecttype) %(objectname)' | grep -v '^commit'")
            .stdout
    };
    let commits = |env: &TestEnv| {
        env.sh("git cat-file --batch-all-objects --batch-check | grep -c commit")
            .stdout
    };
    let (first, count) = (listing(&env), commits(&env));
    env.json(0, &["checkpoint", "create", "--if-changed"]);
    assert_eq!(
        (listing(&env), commits(&env)),
        (first.clone(), count),
        "no object at all"
    );
    let trees = |env: &TestEnv| env.git(&["for-each-ref", "--format=%(tree)", "refs/recover"]);
    checkpoint(&env);
    let of_trees = trees(&env);
    assert_eq!(
        of_trees
            .lines()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        1,
        "the same tree"
    );
    let new: Vec<String> = listing(&env)
        .lines()
        .filter(|line| !first.contains(*line))
        .map(str::to_owned)
        .collect();
    // Its record beside the commit: what it says of itself, never a copy of the work tree.
    let bytes: u64 = new
        .iter()
        .map(|line| {
            env.git(&["cat-file", "-s", line.rsplit(' ').next().unwrap()])
                .trim()
                .parse::<u64>()
                .unwrap()
        })
        .sum();
    assert!(
        bytes < 4000
            && !new.iter().any(|line| env
                .git(&["ls-tree", "-r", &of_trees[..40]])
                .contains(&line[5..]))
    );
}

/// Every prompt waited a minute for a large tree: what did not change is not read again.
#[test]
fn a_minute_a_prompt_on_large_trees() {
    let env = TestEnv::repo();
    if env.sh("command -v strace").code != 0 {
        assert!(std::env::var_os("CI").is_none(), "strace is missing");
        eprintln!("skipped: strace is missing");
        return;
    }
    for number in 0..300 {
        env.write(
            &format!("part{}/file{number}.txt", number % 7),
            format!("{number}\n"),
        );
    }
    env.git(&["add", "part1"]);
    // What is as young as the cache might have changed since and is read once more.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    checkpoint(&env);
    let log = env.root().join("opened");
    let opened = |env: &TestEnv, args: &str| {
        let recover = env!("CARGO_BIN_EXE_recover");
        env.sh(&format!(
            "strace -f -o {} -e trace=open,openat,openat2 {recover} {args}",
            log.display()
        ))
        .expect(0);
        let text = std::fs::read_to_string(&log).unwrap();
        text.lines()
            .filter(|line| line.contains("file") && line.contains(".txt\""))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for args in ["checkpoint create", "checkpoint create --if-changed"] {
        assert_eq!(opened(&env, args), Vec::<String>::new(), "{args}");
    }
    env.write("part3/file3.txt", "changed\n");
    let read = opened(&env, "checkpoint create");
    assert!(
        !read.is_empty() && read.iter().all(|line| line.contains("file3.txt")),
        "{read:?}"
    );
}

/// A repository inside the work tree was in no snapshot, and nobody said so.
#[test]
fn nested_repositories_silently_left_out() {
    let env = TestEnv::repo();
    env.sh(
        "git init -q inner; echo x > inner/x; git -C inner add x; git -C inner commit -qm inner",
    )
    .expect(0);
    env.sh("git init -q fresh; echo y > fresh/y").expect(0);
    let made = env.json(0, &["checkpoint", "create"]);
    assert_eq!(made["checkpoint"]["skipped"], serde_json::json!([]));
    let shown = env.json(0, &["checkpoint", "show", "@1"]);
    for name in ["inner", "fresh"] {
        let nested = shown["nested"].as_array().unwrap();
        let one = nested.iter().find(|nested| nested["path"] == name);
        assert!(
            one.is_some_and(|one| one["checkpoint"].is_string()),
            "{name}: {shown}"
        );
    }
    env.write("inner/x", "changed\n");
    env.write("fresh/y", "changed\n");
    env.write("a.txt", "two\n");
    checkpoint(&env);
    back_to(&env, "@1");
    assert_eq!(env.read("a.txt"), "one\n");
    assert!(
        env.exists("inner/.git/HEAD") && env.exists("fresh/.git/HEAD") && env.exists("fresh/y")
    );
}
