//! How checkpoints are kept beside their hidden commit: as a commit on the branch, as a patch file (B12, B13).

use serde_json::Value;

use crate::env::TestEnv;
use crate::seen::{assert_clean, seen, text};

fn head(env: &TestEnv) -> String {
    env.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

fn configure(env: &TestEnv, toml: &str) {
    env.write(".ultraplan/recover.toml", toml);
}

fn create(env: &TestEnv, flags: &[&str]) -> Value {
    env.json(0, &[&["checkpoint", "create"], flags].concat())["checkpoint"].clone()
}

/// A checkout of a commit beside the work tree, to which the patch is applied.
fn applied(env: &TestEnv, base: &str, patch: &str) -> crate::seen::Seen {
    env.sh("rm -rf ../fresh; git worktree prune").expect(0);
    env.git(&["worktree", "add", "-q", "--detach", "../fresh", base]);
    env.sh(&format!(
        "cd ../fresh && git apply --whitespace=nowarn '{patch}'"
    ))
    .expect(0);
    let mut all = seen(&env.root().join("fresh"));
    all.retain(|path, (mode, _)| path != b".git" && *mode & 0o170_000 != 0o040_000);
    all
}

/// What the work tree holds, folders aside.
fn files(env: &TestEnv) -> crate::seen::Seen {
    let mut all = seen(env.work());
    all.retain(|_, (mode, _)| *mode & 0o170_000 != 0o040_000);
    all
}

/// Everything that is hard to say in a patch.
fn difficult(env: &TestEnv) {
    env.write(
        "binary",
        (0..=255_u8).cycle().take(5000).collect::<Vec<_>>(),
    );
    env.write("gone", "x\ny\n");
    env.write("empty-gone", "");
    env.write("crlf.txt", "a\r\nb\r\nc\r\n");
    env.write("becomes a link", "text\n");
    env.write("folder/inside", "1\n");
    env.sh("ln -s gone link; printf no-newline > end; printf '\\000bin' > 'old binary'")
        .expect(0);
    env.script("tool.sh", "true");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "base"]);
    env.write(
        "binary",
        (0..=255_u8).rev().cycle().take(7001).collect::<Vec<_>>(),
    );
    env.write("crlf.txt", "a\r\nB\r\nc\r\nd\n");
    env.write("new/deep er/file with spaces", "1\n2\n");
    env.write("tab\there", "t\n");
    env.write("line\nend \"quoted\\", "n\n");
    env.write("ümläut", "ü\n");
    env.write("empty", "");
    env.write("latin1", b"caf\xe9\nsecond\n");
    env.sh(
        "rm gone empty-gone 'old binary' 'becomes a link' link; rm -r folder; echo file > folder
         ln -s 'a target' link; ln -s elsewhere 'becomes a link'; printf 'more\\nno-newline' > end
         chmod -x tool.sh; chmod +x a.txt; printf 'x\\n' > \"$(printf 'raw\\377name')\"",
    )
    .expect(0);
}

// B12: the patch of a checkpoint gives, on a clean checkout of its base, exactly what was captured.
#[test]
fn a_patch_file_says_everything() {
    let env = TestEnv::repo();
    difficult(&env);
    let before = files(&env);
    let made = create(&env, &["--storage", "patch"]);
    assert_eq!(
        (&made["storage_type"], text(&made["base_commit"])),
        (&"patch".into(), head(&env))
    );
    let path = text(&made["patch_path"]);
    assert!(
        path.starts_with(
            env.work()
                .join(".ultraplan/state/recover/runs")
                .to_str()
                .unwrap()
        ),
        "{path}"
    );
    assert_eq!(applied(&env, &head(&env), &path), before);
    // A patch can be taken back.
    env.sh(&format!(
        "cd ../fresh && git apply -R --whitespace=nowarn '{path}' && git status --porcelain"
    ))
    .expect(0)
    .stdout
    .is_empty()
    .then_some(())
    .expect("clean again");
    assert_eq!(head(&env), text(&made["base_commit"]), "no commit");
    env.write("a.txt", "later\n");
    let back = env.json(0, &["checkpoint", "restore", "@1", "--edits", "discard"]);
    assert_eq!(back["result"]["storage_type"], "patch");
    assert_eq!(files(&env), before);
    // Removed with its checkpoint.
    for number in 0..3 {
        env.write("a.txt", format!("{number}\n"));
        create(&env, &[]);
    }
    env.json(0, &["--yes", "checkpoint", "prune", "--keep-last", "1"]);
    if env
        .sh("recover=1; git for-each-ref refs/recover | grep -c ckpt_")
        .stdout
        .trim()
        == "1"
    {
        assert!(!std::path::Path::new(&path).exists());
    }
}

// B12: configured, every checkpoint of a run has one; without git it is a patch from nothing.
#[test]
fn patches_are_written_when_configured() {
    let env = TestEnv::repo();
    configure(&env, "[checkpoint]\nstorage = \"patch\"\n");
    env.json(
        0,
        &[
            "run",
            "--feedback",
            "t=true",
            "--",
            "sh",
            "-c",
            "echo 1 > made",
        ],
    );
    let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
    for one in list["checkpoints"].as_array().unwrap() {
        assert_eq!(one["storage_type"], "patch");
        assert!(std::path::Path::new(&text(&one["patch_path"])).exists());
    }
    let shown = env.json(0, &["config"]);
    assert_eq!(shown["config"]["checkpoint.storage"], "patch", "{shown}");
    assert!(!env.recover(&["status"]).stderr.contains("no effect"));
    let plain = TestEnv::plain();
    plain.write("a", "1\n");
    let path = text(&create(&plain, &["--storage", "patch"])["patch_path"]);
    plain
        .sh(&format!(
            "mkdir ../to && cd ../to && git apply '{path}' && cat a"
        ))
        .expect(0);
}

// B12, A4: each good iteration becomes an ordinary commit that a rollback takes off again.
#[test]
fn a_good_iteration_becomes_a_commit() {
    let mut env = TestEnv::repo();
    configure(&env, "[checkpoint]\nauto_commit = true\n");
    env.script(
        "agent.sh",
        "echo $RECOVER_ITERATION > state; rm -f a.txt; chmod +x b 2>/dev/null; true",
    );
    env.write(".gitignore", "ignored\n");
    env.write("ignored", "x\n");
    env.script(".git/hooks/pre-commit", "touch hook-ran; exit 1");
    env.script(".git/hooks/reference-transaction", "touch hook-ran");
    env.set("RECOVER_TEST_SEED", "1");
    let (base, before) = (head(&env), seen(env.work()));
    env.json(
        0,
        &[
            "run",
            "--task",
            "T-1",
            "--iterations",
            "2",
            "--feedback",
            "t=true",
            "--",
            "./agent.sh",
        ],
    );
    assert_eq!(
        env.git(&["log", "--format=%s"]),
        "recover: T-1 iteration 2\nrecover: T-1 iteration 1\nfirst\n"
    );
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(
        env.git(&["ls-files"]),
        ".gitignore\n.ultraplan/recover.toml\nagent.sh\nstate\n"
    );
    assert!(
        env.git(&["reflog", "-1"])
            .contains("recover: commit for checkpoint ckpt_")
    );
    assert!(
        env.git(&["log", "-1", "--format=%B"])
            .contains("Recover-Id: ckpt_")
    );
    assert!(!env.exists("hook-ran"));
    let good = env.json(0, &["checkpoint", "show", "good"])["checkpoint"].clone();
    assert_eq!(good["storage_type"], "commit");
    assert_eq!(
        (text(&good["base_commit"]), text(&good["branch_commit"])),
        (head(&env), head(&env))
    );
    let initial = env.json(0, &["checkpoint", "show", "initial"])["checkpoint"].clone();
    assert_eq!(
        (&initial["storage_type"], &initial["branch_commit"]),
        (&"snapshot".into(), &Value::Null)
    );

    let tip = head(&env);
    let back = env.json(0, &["rollback", "--full"]);
    assert_eq!(
        (text(&back["result"]["head"]["after"]), head(&env)),
        (base.clone(), base)
    );
    assert_eq!(seen(env.work()), before);
    env.json(0, &["undo"]);
    assert_eq!(
        (head(&env), env.git(&["status", "--porcelain"])),
        (tip, String::new())
    );
    // Back to the end of the first iteration: its commit stays.
    env.json(0, &["rollback", "--iteration", "2"]);
    assert_eq!(
        env.git(&["log", "-1", "--format=%s"]),
        "recover: T-1 iteration 1\n"
    );
    assert_eq!(
        (env.read("state"), env.git(&["status", "--porcelain"])),
        ("1\n".into(), String::new())
    );
    assert_clean(&env);
}

// B12: a failed attempt is no commit; nothing changed makes none either.
#[test]
fn failures_and_repetitions_make_no_commit() {
    let env = TestEnv::repo();
    configure(&env, "[checkpoint]\nstorage = \"commit\"\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "configured"]);
    let tip = head(&env);
    env.write("a.txt", "broken\n");
    let failed = env.json(
        0,
        &["attempt", "fail", "--exit-code", "1", "--message", "no"],
    );
    let failed =
        env.json(0, &["checkpoint", "show", &text(&failed["checkpoint_id"])])["checkpoint"].clone();
    assert_eq!(
        (&failed["storage_type"], head(&env)),
        (&"snapshot".into(), tip.clone())
    );
    env.write("a.txt", "one\n");
    let same = create(&env, &[]);
    assert_eq!(
        (&same["storage_type"], &same["branch_commit"], head(&env)),
        (&"commit".into(), &Value::Null, tip)
    );
    env.write("a.txt", "two\n");
    let made = create(&env, &["-m", "A word of my own"]);
    assert_eq!(
        (
            text(&made["branch_commit"]),
            env.git(&["log", "-1", "--format=%s"])
        ),
        (head(&env), "A word of my own\n".into())
    );
    assert_eq!(
        env.json(0, &["checkpoint", "create", "--if-changed"])["changed"],
        false
    );
}

// B12: unborn and detached HEADs take a commit; a merge under way, conflicts and folders without git do not.
#[test]
fn commits_are_made_wherever_git_would() {
    let unborn = TestEnv::plain();
    unborn.git(&["init", "-q", "-b", "main"]);
    unborn.write("a.txt", "one\n");
    create(&unborn, &["--storage", "commit", "-m", "begin"]);
    assert_eq!(unborn.git(&["log", "--format=%s", "main"]), "begin\n");
    assert_eq!(unborn.git(&["status", "--porcelain"]), "");

    let detached = TestEnv::repo();
    let main = head(&detached);
    detached.git(&["checkout", "-q", "--detach"]);
    detached.write("a.txt", "two\n");
    create(&detached, &["--storage", "commit"]);
    assert_eq!(
        detached.git(&["rev-parse", "HEAD^", "main"]),
        format!("{main}\n{main}\n")
    );
    assert_eq!(detached.git(&["status", "--porcelain"]), "");

    let merging = TestEnv::repo();
    merging
        .sh("git switch -qc side; echo s > a.txt; git commit -qam s; git switch -q main; echo m > a.txt; git commit -qam m; git merge side")
        .expect(1);
    let tip = head(&merging);
    let error = merging.json(13, &["checkpoint", "create", "--storage", "commit"])["error"].clone();
    assert_eq!(error["code"], "operation_in_progress", "{error}");
    configure(&merging, "[checkpoint]\nstorage = \"commit\"\n");
    let ran = merging
        .recover(&["checkpoint", "create", "--json"])
        .expect(0);
    assert!(
        ran.stderr.contains("merge is in progress"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        (&ran.json()["checkpoint"]["storage_type"], head(&merging)),
        (&"snapshot".into(), tip)
    );

    let plain = TestEnv::plain();
    plain.write("a", "1\n");
    assert_eq!(
        plain.json(10, &["checkpoint", "create", "--storage", "commit"])["error"]["code"],
        "no_repository"
    );
}

// B12: in the commit is what `git add -A` would take: line ends as the attributes say, nothing ignored or excluded.
#[test]
fn a_commit_holds_what_git_would_add() {
    let env = TestEnv::repo();
    env.write(".gitattributes", "*.txt text\n*.id ident\n*.raw -text\n");
    env.write(".gitignore", "*.log\n");
    env.write("kept.secret", "tracked\n");
    env.write("flagged", "tracked\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "attributes"]);
    configure(
        &env,
        "[checkpoint]\ninclude = [\"*.log\"]\nexclude = [\"*.secret\"]\n",
    );
    env.git(&["update-index", "--assume-unchanged", "flagged"]);
    env.write("flagged", "local\n");
    env.write("a.txt", "one\r\ntwo\r\n");
    env.write("v.id", "$Id: abc $\n");
    env.write("b.raw", "x\r\n");
    env.write("run.log", "noise\n");
    env.write("kept.secret", "changed\n");
    env.write("staged", "half\n");
    env.git(&["add", "staged"]);
    env.write("staged", "whole\n");
    env.sh("git init -q inner && cd inner && git commit -q --allow-empty -m inner")
        .expect(0);
    let expected = {
        env.sh("cp -r .git ../copy.git; GIT_DIR=../copy.git GIT_WORK_TREE=. git add -A -- . ':!inner' ':!*.secret' ':!.ultraplan/state' ").expect(0);
        env.sh("GIT_DIR=../copy.git git write-tree")
            .expect(0)
            .stdout
    };
    create(&env, &["--storage", "commit", "-m", "all"]);
    assert_eq!(env.git(&["rev-parse", "HEAD^{tree}"]), expected);
    assert_eq!(env.git(&["show", "HEAD:a.txt"]), "one\ntwo\n");
    assert_eq!(env.read("a.txt"), "one\r\ntwo\r\n");
    assert_eq!(
        env.git(&["status", "--porcelain"]),
        " M kept.secret\n?? inner/\n"
    );
    assert_eq!(env.git(&["ls-files", "-v", "flagged"]), "h flagged\n");
    assert_clean(&env);
}

// B12: content that only a program can make is not committed raw.
#[test]
fn a_filter_that_is_a_program_is_left_to_git() {
    let env = TestEnv::repo();
    env.write(".gitattributes", "*.big filter=big\n");
    env.git(&["config", "filter.big.clean", "touch ran; sed s/x/y/"]);
    env.write("f.big", "x\n");
    let tip = head(&env);
    let error = env.json(10, &["checkpoint", "create", "--storage", "commit"])["error"].clone();
    assert!(text(&error["message"]).contains("f.big"), "{error}");
    assert_eq!((head(&env), env.exists("ran")), (tip, false));
    assert_eq!(env.git(&["diff", "--cached", "--name-only"]), "");
}

// a held index.lock: nothing is half done.
#[test]
fn a_foreign_index_lock_leaves_the_branch_alone() {
    let env = TestEnv::repo();
    env.write("a.txt", "two\n");
    env.write(".git/index.lock", "theirs");
    let tip = head(&env);
    let commit = [
        "--lock-timeout",
        "100ms",
        "checkpoint",
        "create",
        "--storage",
        "commit",
    ];
    assert_eq!(env.json(11, &commit)["error"]["code"], "locked");
    assert_eq!(head(&env), tip);
    configure(&env, "[checkpoint]\nauto_commit = true\n");
    assert_eq!(
        env.json(0, &commit[..4])["checkpoint"]["storage_type"],
        "snapshot"
    );
    assert_eq!(
        (head(&env), env.read(".git/index.lock")),
        (tip, "theirs".into())
    );
}

// What does not change from one checkpoint to the next is not written again: the commit of the index is the same one.
#[test]
fn the_same_index_is_the_same_commit() {
    let env = TestEnv::repo();
    let index = |content: &str| {
        env.write("a.txt", content);
        let checkpoint = create(&env, &[]);
        env.git(&["rev-parse", &format!("{}^2", text(&checkpoint["commit"]))])
    };
    let (first, second) = (index("one\n"), index("two\n"));
    assert_eq!(first, second);
    env.git(&["add", "a.txt"]);
    assert_ne!(index("three\n"), second);
    assert_clean(&env);
}

/// A folder that becomes a git repository has its checkpoints in that from then on.
#[test]
fn checkpoints_from_before_git_init_are_taken_over() {
    let env = TestEnv::plain();
    env.write("a.txt", "one\n");
    env.json(
        0,
        &[
            "run",
            "--run",
            "r",
            "--iterations",
            "2",
            "--",
            "sh",
            "-c",
            "echo $RECOVER_ITERATION >> a.txt",
        ],
    );
    let before = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
    env.git(&["init", "-q", "-b", "main"]);
    let problems = env.json(12, &["doctor"])["problems"].clone();
    assert_eq!(problems[0]["code"], "private_checkpoints", "{problems}");
    assert_eq!(
        env.error(13, &["--dry-run", "rollback", "--to", "initial"])["code"],
        "safe_mode"
    );
    assert_eq!(
        env.recover(&["diff", "initial", "latest", "--patch"])
            .expect(0)
            .stdout
            .matches("\n+")
            .count(),
        3
    );
    assert!(!env.exists(".ultraplan/state/recover/shadow.git"));
    assert_eq!(env.json(0, &["checkpoint", "list"])["checkpoints"], before);
    assert_eq!(
        env.json(0, &["checkpoint", "verify"])["problems"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
    env.json(0, &["doctor"]);
    env.git(&["fsck", "--strict"]);
    env.git(&["gc", "-q", "--prune=now"]);
    env.json(0, &["rollback", "--to", "initial"]);
    assert_eq!(env.read("a.txt"), "one\n");
    env.json(0, &["undo"]);
    assert_eq!(env.read("a.txt"), "one\n1\n2\n");
}
