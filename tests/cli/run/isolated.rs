//! Runs in work trees of their own: what the user does meanwhile stays the user's, and what they did is merged.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::run::supervision::until;
use crate::seen::text;

/// The work tree of the only run that has one.
fn place(env: &TestEnv) -> PathBuf {
    let found = env
        .sh("ls -d ../home/.local/state/recover/worktrees/*/*")
        .stdout;
    let line = found.lines().next().expect("a work tree");
    env.work().join(line).canonicalize().expect("it is there")
}

fn has_place(env: &TestEnv) -> bool {
    env.sh("ls -d ../home/.local/state/recover/worktrees/*/*")
        .code
        == 0
}

fn run(env: &TestEnv, flags: &[&str], line: &str) -> Ran {
    let args = [
        &["run", "--isolated", "--run", "night"],
        flags,
        &["--", "sh", "-c", line],
    ];
    env.recover(&args.concat())
}

fn begin(env: &TestEnv, line: &str) -> Child {
    let mut command = env.recover_command(&[
        "run",
        "--isolated",
        "--run",
        "night",
        "--",
        "sh",
        "-c",
        line,
    ]);
    let child = command.spawn().expect("recover starts");
    let begun = Instant::now();
    while !env.exists("../started") {
        assert!(begun.elapsed() < Duration::from_secs(120), "no attempt");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn in_place(env: &TestEnv, path: &str) -> Option<String> {
    std::fs::read_to_string(place(env).join(path)).ok()
}

/// What is uncommitted comes along, and nothing of the run is in the user's work tree, index or branch.
#[test]
fn it_works_beside_the_user() {
    let env = TestEnv::repo();
    env.write("a.txt", "mine\n");
    env.write("new.txt", "new\n");
    let before = (
        env.git(&["status", "--porcelain"]),
        env.git(&["rev-parse", "HEAD"]),
    );
    let ran = run(
        &env,
        &[],
        "cat a.txt new.txt > seen.txt; git add -A; git commit -qm by-agent; echo more > work.txt",
    );
    ran.expect(0);
    assert_eq!(in_place(&env, "seen.txt").as_deref(), Some("mine\nnew\n"));
    assert_eq!(
        before,
        (
            env.git(&["status", "--porcelain"]),
            env.git(&["rev-parse", "HEAD"])
        )
    );
    assert!(!env.exists("seen.txt") && !env.exists("work.txt"));
    let status = env.json(0, &["status"]);
    assert_eq!(status["run"]["run_id"], "night", "{status:#}");
    let list = env.json(0, &["runs"]);
    assert_eq!(
        list["runs"][0]["worktree"],
        place(&env).to_str().expect("text"),
        "{list:#}"
    );
}

#[test]
fn it_begins_at_a_commit_without_what_is_uncommitted() {
    let env = TestEnv::repo();
    env.git(&["tag", "old"]);
    env.write("a.txt", "two\n");
    env.git(&["commit", "-qam", "second"]);
    env.write("new.txt", "new\n");
    run(&env, &["--from", "old"], "cp a.txt seen.txt; ls > list.txt").expect(0);
    assert_eq!(in_place(&env, "seen.txt").as_deref(), Some("one\n"));
    assert_eq!(in_place(&env, "new.txt"), None);
    env.json(0, &["--yes", "discard", "night"]);
    let ran = env.recover(&[
        "run",
        "--isolated",
        "--clean",
        "--run",
        "two",
        "--",
        "sh",
        "-c",
        "cp a.txt seen.txt",
    ]);
    ran.expect(0);
    assert_eq!(in_place(&env, "seen.txt").as_deref(), Some("two\n"));
    assert_eq!(in_place(&env, "new.txt"), None);
    let error = env.error(2, &["run", "--isolated", "--from", "nowhere", "--", "true"]);
    assert!(
        text(&error["message"]).contains("--from nowhere"),
        "{error:#}"
    );
}

/// Files of git's ignored are copied, shared, and made; a link, or a project that nobody trusts, is refused and leaves nothing.
#[test]
fn it_gets_what_is_configured() {
    let env = TestEnv::repo();
    env.write(".gitignore", "deps/\ncache\nmade\n");
    env.write("deps/bin/tool", "tool\n");
    env.sh("ln -s tool deps/bin/link; chmod 755 deps/bin/tool");
    env.write("cache/x", "x\n");
    env.git(&["add", ".gitignore"]);
    env.git(&["commit", "-qm", "ignore"]);
    let config = "[isolated]\ncopy = [\"deps\", \"absent\"]\nshare = [\"cache\"]\nsetup = \"cat deps/bin/link > made\"\n";
    env.put(".ultraplan/recover.toml", config);
    let refused = run(&env, &[], "true").expect(13);
    assert!(
        refused.stderr.contains("isolated.setup"),
        "{}",
        refused.stderr
    );
    assert!(!has_place(&env), "nothing of it stays");
    env.write(".ultraplan/recover.toml", config);
    let line = "test -x deps/bin/tool && test -L deps/bin/link && cp made work.txt && echo y > cache/y && echo z >> deps/bin/tool";
    let ran = run(&env, &[], line).expect(0);
    assert!(
        ran.stderr.contains("cache is shared") && ran.stderr.contains("absent is not there"),
        "{}",
        ran.stderr
    );
    assert_eq!(in_place(&env, "work.txt").as_deref(), Some("tool\n"));
    assert_eq!(
        (
            env.read("cache/y").as_str(),
            env.read("deps/bin/tool").as_str()
        ),
        ("y\n", "tool\n")
    );
    env.json(0, &["accept", "night"]);
    assert_eq!(
        env.git(&["show", "--name-only", "--format=", "HEAD"]),
        "work.txt\n"
    );
    assert_eq!(env.read("cache/x"), "x\n");
    // What leads out of the project is refused.
    env.sh("rm -r deps; ln -s ../home deps");
    let error = env.error(13, &["run", "--isolated", "--run", "out", "--", "true"]);
    assert_eq!(error["code"], "unsafe_path", "{error:#}");
    assert!(!has_place(&env), "nothing of it stays");
    for path in ["../home", "/etc", ".git/hooks", "sub/.GIT"] {
        env.put(
            ".ultraplan/recover.toml",
            format!("[isolated]\ncopy = [\"{path}\"]\n"),
        );
        let error = env.error(2, &["run", "--isolated", "--", "true"]);
        assert_eq!(error["code"], "config", "{error:#}");
    }
    env.write(
        ".ultraplan/recover.toml",
        "[isolated]\nsetup = \"exit 4\"\n",
    );
    let error = env.error(1, &["run", "--isolated", "--run", "out", "--", "true"]);
    assert!(
        text(&error["message"]).contains("setup ended with 4"),
        "{error:#}"
    );
    assert!(!has_place(&env), "nothing of it stays");
    assert_eq!(env.git(&["branch", "--list", "recover/*"]), "");
}

/// The user edits, commits and switches branches while it is at work; in the morning it is merged.
#[test]
fn it_is_merged_onto_the_branch_as_it_is_by_then() {
    for (flags, parents) in [(&[][..], 2), (&["--rebase"][..], 1)] {
        let env = TestEnv::repo();
        let line = "touch ../../../../../../../started; while [ ! -e go ]; do sleep 0.05; done; echo night > work.txt";
        let mut child = begin(&env, line);
        env.write("b.txt", "by hand\n");
        env.git(&["add", "b.txt"]);
        env.git(&["commit", "-qm", "by hand"]);
        env.git(&["switch", "-qc", "other"]);
        env.git(&["config", "alias.mine", "status"]);
        env.git(&["gc", "-q", "--prune=now"]);
        env.git(&["switch", "-q", "main"]);
        env.write("a.txt", "edited\n");
        std::fs::write(place(&env).join("go"), "").expect("written");
        assert!(child.wait().expect("it ends").success());
        let refused = env.error(13, &["accept", "night"]);
        assert!(
            text(&refused["message"]).ends_with("settings: alias.mine"),
            "{refused:#}"
        );
        let accepted = env.json(0, &[&["--yes", "accept", "night"], flags].concat());
        assert_eq!(accepted["branch"], "main", "{accepted:#}");
        assert_eq!(
            accepted["merge"],
            if parents == 2 { "merge" } else { "rebase" }
        );
        assert_eq!(
            env.git(&["log", "-1", "--format=%P"])
                .split_whitespace()
                .count(),
            parents
        );
        assert_eq!(
            (env.read("work.txt").as_str(), env.read("b.txt").as_str()),
            ("night\n", "by hand\n")
        );
        assert_eq!(env.read("a.txt"), "edited\n");
        assert_eq!(env.git(&["status", "--porcelain"]), " M a.txt\n");
        assert!(!has_place(&env), "the work tree is removed");
        assert_eq!(env.git(&["branch", "--list", "recover/*"]), "");
        env.json(0, &["undo"]);
        assert!(!env.exists("work.txt"), "undo takes it back");
        assert_eq!(
            (
                env.git(&["log", "-1", "--format=%s"]).as_str(),
                env.read("a.txt").as_str()
            ),
            ("by hand\n", "edited\n")
        );
        assert_eq!(env.git(&["status", "--porcelain"]), " M a.txt\n");
        env.json(0, &[&["--yes", "accept", "night"], flags].concat());
        assert_eq!(env.read("work.txt"), "night\n");
        env.json(0, &["undo"]);
        env.json(0, &["--yes", "discard", "night"]);
        assert_eq!(env.git(&["config", "alias.mine"]), "status\n");
    }
}

#[test]
fn it_goes_forward_where_nothing_came_between() {
    let env = TestEnv::repo();
    env.write("a.txt", "mine\n");
    run(
        &env,
        &["--feedback", "t=test -e work.txt"],
        "echo night > work.txt; echo two > a.txt",
    )
    .expect(0);
    let error = env.error(13, &["accept", "night"]);
    assert!(
        text(&error["message"]).contains("--uncommitted"),
        "{error:#}"
    );
    let planned = env.json(
        0,
        &["--dry-run", "accept", "night", "--uncommitted", "replace"],
    );
    assert_eq!(planned["plan"]["merge"], "fast_forward", "{planned:#}");
    let accepted = env.json(0, &["accept", "night", "--uncommitted", "replace"]);
    assert_eq!(accepted["merge"], "fast_forward", "{accepted:#}");
    assert_eq!(
        (env.read("work.txt").as_str(), env.read("a.txt").as_str()),
        ("night\n", "two\n")
    );
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(env.git(&["log", "--format=%s"]).lines().count(), 2);
}

/// The branch is on no work tree by now: it moves alone.
#[test]
fn the_branch_that_it_began_on_moves_where_another_is_checked_out() {
    let env = TestEnv::repo();
    run(&env, &[], "echo night > work.txt").expect(0);
    env.git(&["switch", "-qc", "other"]);
    let accepted = env.json(0, &["accept", "night"]);
    assert_eq!(accepted["branch"], "main", "{accepted:#}");
    assert!(!env.exists("work.txt"));
    assert_eq!(env.git(&["show", "main:work.txt"]), "night\n");
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

/// Conflicts, failing checks and uncommitted changes: nothing moves.
#[test]
fn nothing_moves_where_it_cannot_be_merged() {
    let env = TestEnv::repo();
    run(
        &env,
        &["--feedback", "t=test ! -e bad"],
        "echo night > a.txt; echo x > work.txt",
    )
    .expect(0);
    let unmoved = |env: &TestEnv, args: &[&str], reason: &str| {
        let before = (
            env.git(&["rev-parse", "HEAD"]),
            env.git(&["status", "--porcelain"]),
            env.read("a.txt"),
        );
        let error = env.error(13, args);
        assert!(error.to_string().contains(reason), "{error:#}");
        let after = (
            env.git(&["rev-parse", "HEAD"]),
            env.git(&["status", "--porcelain"]),
            env.read("a.txt"),
        );
        assert_eq!(before, after);
        assert_eq!(
            env.json(0, &["status", "night"])["run"]["status"],
            "complete"
        );
        error
    };
    env.write("a.txt", "edited\n");
    unmoved(&env, &["accept", "night"], "has uncommitted changes");
    env.git(&["commit", "-qam", "by hand"]);
    let error = unmoved(&env, &["accept", "night"], "changed by both");
    assert_eq!(error["paths"][0]["path"], "a.txt", "{error:#}");
    unmoved(&env, &["--dry-run", "accept", "night"], "changed by both");
    unmoved(&env, &["accept", "night", "--rebase"], "changed by both");
    env.git(&["reset", "-q", "--hard", "HEAD~1"]);
    env.write("bad", "");
    env.git(&["add", "bad"]);
    env.git(&["commit", "-qm", "bad"]);
    let before = env.git(&["rev-parse", "HEAD"]);
    env.error(100, &["accept", "night"]);
    assert_eq!(env.git(&["rev-parse", "HEAD"]), before);
    // On a branch of its own it is a person's to merge.
    env.json(0, &["accept", "night", "--branch", "later"]);
    assert_eq!(env.git(&["show", "later:a.txt"]), "night\n");
}

/// Typed in the user's work tree, with the run's name; `undo` brings the work tree back.
#[test]
fn the_run_is_reached_by_its_name() {
    let env = TestEnv::repo();
    env.write("a.txt", "mine\n");
    let ran = run(
        &env,
        &["--attempts", "1"],
        "echo night > work.txt; echo agent > a.txt; exit 1",
    );
    assert_ne!(ran.code, 0);
    env.json(
        0,
        &["rollback", "night", "--full"]
            .map(|word| if word == "night" { "--run=night" } else { word }),
    );
    assert_eq!(
        (
            in_place(&env, "work.txt"),
            in_place(&env, "a.txt").as_deref()
        ),
        (None, Some("mine\n"))
    );
    env.json(0, &["undo", "--run", "night"]);
    assert_eq!(in_place(&env, "work.txt").as_deref(), Some("night\n"));
    let resumed = env.json(
        0,
        &[
            "resume",
            "night",
            "--attempts",
            "1",
            "--",
            "sh",
            "-c",
            "echo done >> work.txt",
        ],
    );
    assert_eq!(resumed["run"]["status"], "complete", "{resumed:#}");
    let folder = place(&env);
    env.json(0, &["--yes", "discard", "night"]);
    assert!(!folder.exists(), "the work tree is removed");
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(env.git(&["branch", "--list", "recover/*"]), "");
    assert_eq!(env.read("a.txt"), "mine\n");
    env.json(0, &["undo", "--run", "night"]);
    let back = in_place(&env, "work.txt");
    assert!(
        back.is_some_and(|text| text.ends_with("done\n")),
        "it is back"
    );
    assert_eq!(env.read("a.txt"), "mine\n");
}

/// What was committed on a branch of its own is taken back, with the branch, by the command that is named; what was done there
/// is not what `undo` takes back here.
#[test]
fn what_was_accepted_on_another_branch_is_taken_back_with_it() {
    let env = TestEnv::repo();
    run(&env, &[], "echo w > work.txt").expect(0);
    let accept = ["accept", "night", "--branch", "later"];
    let ran = env.recover(&accept).expect(0);
    assert!(ran.stdout.contains("undo --run night\n"), "{}", ran.stdout);
    let error = env.error(4, &["undo"]);
    let hint = error["hint"].as_str().expect("a hint");
    assert!(hint.ends_with("undo --run night"), "{error}");
    env.json(0, &["undo", "--run", "night"]);
    assert_eq!(env.git(&["branch", "--list", "later"]), "");
    env.json(0, &accept);
    assert_eq!(env.git(&["show", "later:work.txt"]), "w\n");

    // Where a person has it checked out by now it stays.
    env.git(&["switch", "-q", "later"]);
    env.json(0, &["undo", "--run", "night"]);
    assert_eq!(env.read("work.txt"), "w\n");
    env.git(&["switch", "-q", "-"]);

    let ran = env.recover(&["--yes", "discard", "night"]).expect(0);
    let said = "recover undo --run night restores it";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    let error = env.error(4, &["undo"]);
    let hint = error["hint"].as_str().expect("a hint");
    assert!(hint.ends_with("undo --run night"), "{error}");
}

/// New files that are left out stay where they are, and that is said, until they are taken on top of the branch or the run is
/// closed.
#[test]
fn what_is_left_out_stays_until_it_is_taken() {
    for has_moved in [false, true] {
        let env = TestEnv::repo();
        env.write(
            ".ultraplan/recover.toml",
            "[accept]\nmax_new_file = \"1KiB\"\n",
        );
        let line = "echo night > work.txt; echo k > id_rsa; yes | head -c 2000 > big";
        run(&env, &[], line).expect(0);
        if has_moved {
            env.write("b.txt", "by hand\n");
            env.git(&["add", "b.txt"]);
            env.git(&["commit", "-qm", "by hand"]);
        }
        let ran = env.recover(&["accept", "night"]).expect(3);
        let said = format!("what is left out is in {}", place(&env).display());
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
        let head = env.git(&["rev-parse", "HEAD"]);
        let again = env.json(3, &["accept", "night"]);
        assert_eq!(
            again["left_out"].as_array().map(Vec::len),
            Some(2),
            "{again:#}"
        );
        let taken = env.json(3, &["accept", "night", "--include", "id_rsa"]);
        assert_eq!(taken["merge"], "fast_forward", "{taken:#}");
        assert_eq!(env.git(&["rev-parse", "HEAD^"]), head);
        assert_eq!(
            (env.read("id_rsa").as_str(), env.exists("big")),
            ("k\n", false)
        );
        assert_eq!(env.git(&["status", "--porcelain", "*.txt", "id_rsa"]), "");
        env.json(0, &["--yes", "undo"]);
        assert_eq!(
            (env.git(&["rev-parse", "HEAD"]), env.exists("id_rsa")),
            (head, false)
        );
        assert!(in_place(&env, "id_rsa").is_some() && in_place(&env, "big").is_some());
        env.json(3, &["accept", "night", "--all"]);
        env.json(0, &["accept", "night", "--include", "id_rsa"]);
        assert_eq!(env.read("big").len(), 2000);
        assert!(!has_place(&env), "all in it is taken");
    }
    let env = TestEnv::repo();
    run(&env, &[], "echo night > work.txt; echo k > id_rsa").expect(0);
    env.recover(&["accept", "night"]).expect(3);
    env.json(0, &["close", "night"]);
    assert!(!has_place(&env));
}

/// What `accept` ticked in the user's list is open again after `undo`, and ticked after `redo`; so with lanes.
#[test]
fn undo_of_accept_takes_the_ticks_back() {
    for (flags, names) in [
        (["--isolated"], ["n", "n"]),
        (["--lanes=2"], ["n-1", "n-2"]),
    ] {
        let env = TestEnv::repo();
        let list = "- [x] old\n- [ ] one\n- [ ] two\n";
        env.write("TASKS.md", list);
        env.git(&["add", "-A"]);
        env.git(&["commit", "-qm", "list"]);
        let ran = ["run", "--run", "n", "--tasks", "TASKS.md"];
        let agent = ["--", "sh", "-c", "echo x > $RECOVER_TASK.txt"];
        env.json(0, &[&ran[..], &flags, &agent].concat());
        env.json(0, &["accept", names[0]]);
        let first = env.read("TASKS.md");
        assert!(first.contains("- [x] one\n"), "{first}");
        if names[1] != names[0] {
            env.json(0, &["accept", names[1]]);
            assert_eq!(env.read("TASKS.md"), list.replace("[ ]", "[x]"));
            env.json(0, &["undo"]);
            assert_eq!(env.read("TASKS.md"), first);
            assert_eq!(first, list.replace("[ ] one", "[x] one"));
        }
        env.json(0, &["--yes", "undo"]);
        assert_eq!(env.read("TASKS.md"), list);
        env.json(0, &["--yes", "redo"]);
        assert_eq!(env.read("TASKS.md"), first);
    }
}

/// One that holds what no checkpoint has stays.
#[test]
fn a_work_tree_stays_that_is_not_all_in_a_checkpoint() {
    let env = TestEnv::repo();
    run(
        &env,
        &[],
        "git init -q inner; echo x > inner/x; echo night > work.txt",
    )
    .expect(0);
    let ran = env.recover(&["--yes", "discard", "night", "--nested"]);
    assert!(ran.stderr.contains("stays"), "{}", ran.stderr);
    assert!(place(&env).join("inner").exists());
}

/// Killed while the work tree is made, the next command leaves nothing of it; killed at work, the run is resumed.
#[test]
fn a_kill_leaves_something_to_finish() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[isolated]\nsetup = \"touch ../../../../../../../started; exec sleep 17.7\"\n",
    );
    env.json(0, &["checkpoint", "create"]);
    let mut child = begin(&env, "true");
    let setup = env.sh("pgrep -f 'sleep 17.7' | head -1").stdout;
    kill(&child.id().to_string());
    child.wait().expect("it ended");
    kill(setup.trim());
    assert!(has_place(&env));
    env.json(0, &["checkpoint", "create"]);
    assert!(!has_place(&env), "nothing of it stays");
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(env.git(&["branch", "--list", "recover/*"]), "");
    env.remove("../started");
    env.write(".ultraplan/recover.toml", "");
    let mut child = begin(
        &env,
        "echo $$ > pid; touch ../../../../../../../started; [ -e go ] || exec sleep 18",
    );
    let agent = in_place(&env, "pid").expect("a number");
    kill(&child.id().to_string());
    child.wait().expect("it ended");
    kill(agent.trim());
    std::fs::write(place(&env).join("go"), "").expect("written");
    let resumed = env.json(0, &["resume", "night"]);
    assert_eq!(resumed["run"]["status"], "complete", "{resumed:#}");
    let status: Value = env.json(0, &["accept", "night"]);
    assert_eq!(status["branch"], "main", "{status:#}");
}

fn kill(pid: &str) {
    let sent = std::process::Command::new("kill")
        .args(["-KILL", pid])
        .status();
    assert!(sent.is_ok(), "kill starts");
}

/// What the configuration of another is: nothing of git's hooks runs while the work tree is made.
#[test]
fn no_hook_runs_while_it_is_made() {
    let env = TestEnv::repo();
    let hooks = Path::new(".git/hooks");
    for name in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        env.script(
            hooks.join(name).to_str().expect("text"),
            &format!("touch {}/ran-{name}", env.root().display()),
        );
    }
    run(&env, &["--clean"], "true").expect(0);
    for name in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        assert!(!env.exists(&format!("../ran-{name}")), "{name} ran");
    }
}

const LIST: &str = r#"
[[task]]
id = "parser"
prompt = "p"

[[task]]
id = "docs"
prompt = "p"

[[task]]
id = "port"
needs = ["parser"]
prompt = "p"

[[task]]
id = "impossible"
prompt = "p"
attempts = 1
"#;

/// A list that several runs share out, at once, each in its work tree; what needs another task is beside it.
#[test]
fn lanes_share_out_a_list() {
    let env = TestEnv::repo();
    env.write("../night.toml", LIST);
    // Each waits until another one is at work.
    let agent = "touch ../../../../../../../at-work-$RECOVER_RUN_ID; n=0; \
                 while [ $(ls ../../../../../../../ | grep -c at-work) -lt 3 ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done; \
                 [ $n -lt 600 ] && echo $RECOVER_RUN_ID > $RECOVER_TASK.txt && [ $RECOVER_TASK != impossible ] && \
                 { [ $RECOVER_TASK != port ] || [ -e parser.txt ]; }";
    let args = [
        "run",
        "--run",
        "n",
        "--tasks",
        "../night.toml",
        "--lanes",
        "3",
        "--",
        "sh",
        "-c",
        agent,
    ];
    let planned = env.json(0, &[&["--dry-run"], &args[..]].concat());
    assert_eq!(
        planned["lanes"][0]["tasks"],
        serde_json::json!(["parser", "port"]),
        "{planned:#}"
    );
    assert!(!has_place(&env));
    let ran = env.recover(&[&["--json"], &args[..]].concat());
    assert_ne!(ran.code, 0);
    let done = ran.json();
    let codes: Vec<bool> = (0..3)
        .map(|lane| done["lanes"][lane]["exit_code"] == 0)
        .collect();
    assert_eq!(codes, [true, true, false], "{done:#}");
    assert_eq!(done["lanes"][2]["said"], Value::Null, "{done:#}");
    // Whichever is shown, the others are named.
    let status = env.json(0, &["status"]);
    let others = status["isolated"].as_array().map(Vec::len);
    assert_eq!(others, Some(2), "{status:#}");
    for (run, file) in [("n-1", "port.txt"), ("n-2", "docs.txt")] {
        env.json(0, &["accept", run]);
        assert_eq!(env.read(file), format!("{run}\n"));
    }
    assert_eq!(env.read("parser.txt"), "n-1\n");
    env.json(0, &["--yes", "discard", "n-3"]);
    assert!(!has_place(&env));
    assert_eq!(env.git(&["status", "--porcelain"]), "");
    assert_eq!(env.git(&["worktree", "list"]).lines().count(), 1);
    let error = env.error(13, &args);
    assert!(
        text(&error["message"]).contains("n-1 already exists"),
        "{error:#}"
    );
}

/// What a person adds is done by a lane that is free while another is at work, or by the one that has what it needs; what
/// needs tasks of two lanes is left, and said.
#[test]
fn lanes_do_what_is_added_to_the_list() {
    let env = TestEnv::repo();
    let task = |id: &str, needs: &str| {
        format!("[[task]]\nid = \"{id}\"\nneeds = [{needs}]\nprompt = \"p\"\n")
    };
    let mut list = task("parser", "") + &task("docs", "");
    env.write("../night.toml", &list);
    let root = env.root().display().to_string();
    let agent = format!(
        "echo $RECOVER_TASK $RECOVER_RUN_ID >> {root}/seen; echo x > $RECOVER_TASK.txt; \
         n=0; while [ $RECOVER_TASK = parser ] && [ ! -e {root}/go ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done; \
         [ $RECOVER_TASK != port ] || [ -e parser.txt ]"
    );
    let lanes = [
        "--json",
        "run",
        "--run",
        "n",
        "--tasks",
        "../night.toml",
        "--lanes",
        "2",
    ];
    let mut running = env.recover_command(&[&lanes[..], &["--", "sh", "-c", &agent]].concat());
    running.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = running.spawn().expect("works");
    let seen =
        |line: &str| env.exists("../seen") && env.read("../seen").lines().any(|one| one == line);
    until("both are at work", || {
        seen("parser n-1") && seen("docs n-2")
    });
    list += &(task("extra", "\"docs\"")
        + &task("port", "\"parser\"")
        + &task("both", "\"parser\", \"docs\""));
    env.write("../night.toml", &list);
    until("the lane that is free has it", || seen("extra n-2"));
    env.write("../go", "");
    let done = Ran::of(&running.wait_with_output().expect("works")).expect(0);
    let lanes = done.json()["lanes"].clone();
    assert_eq!(
        lanes[0]["tasks"],
        serde_json::json!(["parser", "port"]),
        "{lanes:#}"
    );
    assert_eq!(
        lanes[1]["tasks"],
        serde_json::json!(["docs", "extra"]),
        "{lanes:#}"
    );
    assert!(done.stderr.contains("not run: 'both'"), "{}", done.stderr);
    assert_eq!(env.read("../seen").lines().count(), 4);
    // A person's resume leaves what another lane has, and what needs that.
    env.write("../night.toml", list + &task("late", ""));
    let resumed = env.json(0, &["resume", "n-1", "--tasks", "../night.toml"]);
    assert_eq!(
        resumed["tasks"].as_array().map(Vec::len),
        Some(3),
        "{resumed:#}"
    );
    assert!(env.read("../seen").ends_with("\nlate n-1\n"));
}

/// The checks find in the temporary work tree what the configuration puts into the run's own.
#[test]
fn what_is_merged_is_checked_with_what_is_configured() {
    let env = TestEnv::repo();
    env.write(".gitignore", "deps\n");
    env.git(&["add", ".gitignore"]);
    env.git(&["commit", "-qm", "ignore"]);
    env.write("deps", "here\n");
    env.write(".ultraplan/recover.toml", "[isolated]\ncopy = [\"deps\"]\n");
    run(
        &env,
        &["--feedback", "t=grep here deps"],
        "echo night > work.txt",
    )
    .expect(0);
    env.write("b.txt", "by hand\n");
    env.git(&["add", "b.txt"]);
    env.git(&["commit", "-qm", "by hand"]);
    let accepted = env.json(0, &["accept", "night"]);
    assert_eq!(accepted["merge"], "merge", "{accepted:#}");
    assert_eq!(
        env.git(&[
            "show",
            "--format=",
            "--name-only",
            "-m",
            "--first-parent",
            "HEAD"
        ]),
        "work.txt\n"
    );
}

/// A ledger that was set back does not know the run, nor does a repository that took the old one's place.
#[test]
fn a_work_tree_that_may_hold_work_stays_though_its_run_is_unknown() {
    let recover = env!("CARGO_BIN_EXE_recover");
    let killed = || {
        let mut env = TestEnv::repo();
        // Without a vault nothing brings the ledger back.
        env.set("CI", "true");
        env.json(0, &["checkpoint", "create"]);
        env.sh(&format!(
            "cp -a .ultraplan ../state; cp -a .git/recover ../own; \
             {recover} run --isolated --run night -- sh -c 'echo work > w.txt; exec sleep 5' & \
             until cat ../home/.local/state/recover/worktrees/*/night/w.txt; do sleep 0.05; done; kill -9 $!; wait"
        ))
        .expect(0);
        env
    };
    let work = |env: &TestEnv| {
        env.sh("cat ../home/.local/state/recover/worktrees/*/night/w.txt")
            .stdout
    };
    let env = killed();
    env.sh("rm -rf .ultraplan .git/recover; cp -a ../state .ultraplan; cp -a ../own .git/recover")
        .expect(0);
    // It says that the ledger was cut off.
    assert_ne!(env.recover(&["checkpoint", "create"]).code, 0);
    assert_eq!(work(&env), "work\n");
    let env = killed();
    env.sh("rm -rf .ultraplan .git; git init -q; git add -A; git commit -qm again")
        .expect(0);
    for _ in 0..2 {
        env.json(0, &["checkpoint", "create"]);
        assert_eq!(work(&env), "work\n");
    }
}

/// What an attempt may not do in its own work tree it may not do to a run by that run's name, either.
#[test]
fn an_attempt_elsewhere_does_not_decide_about_it() {
    let env = TestEnv::repo();
    run(&env, &[], "echo work > work.txt").expect(0);
    let recover = env!("CARGO_BIN_EXE_recover");
    for line in [
        "--yes discard night",
        "--yes rollback --to initial --run night",
        "--yes undo --run night",
        "resume night --iterations 2",
        "accept night",
    ] {
        let called = format!("{recover} {line} 2>&1 | tee ../said");
        let ran = env.recover(&["run", "--attempts", "1", "--", "sh", "-c", &called]);
        let said = env.read("../said");
        assert!(
            said.contains("is refused inside an attempt"),
            "{line}: {said} {ran:?}"
        );
        assert_eq!(
            in_place(&env, "work.txt").as_deref(),
            Some("work\n"),
            "{line}"
        );
    }
}
