//! Restores that neither say what is not so nor lose anything: own output, other names of a file, holes, owners, locks.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use serde_json::Value;

use crate::checkpoints::layout_0_1::loosen;
use crate::env::{Ran, TestEnv};
use crate::seen::{assert_clean, checkpoint, paths, seen, text};

const RECOVER: &str = env!("CARGO_BIN_EXE_recover");

/// Why each path of a list is in it.
fn reasons(list: &Value) -> Vec<(String, String)> {
    let of = |one: &Value| (text(&one["path"]), text(&one["reason"]));
    list.as_array().expect("a list").iter().map(of).collect()
}

const OWN_OUTPUT: &str = "recover's own output goes to it";

// runs.md: the files that stdout and stderr of `recover` itself go to are nobody's edit; they are kept.
#[test]
fn the_log_of_a_run_survives_the_runs_own_rollback() {
    let env = TestEnv::repo();
    // The check passes before the first attempt, fails after it, and passes again once the files are back.
    let work = "cat a.txt; test -e ../again || echo broken >> a.txt; touch ../again";
    let line = format!(
        "{RECOVER} run --run r --attempts 2 --on-failure rollback --feedback 't=! grep -q broken a.txt' -- sh -c '{work}' \
         > out.log 2>&1"
    );
    let ran = env.sh(&line);
    let log = env.read("out.log");
    assert_eq!(ran.code, 0, "{log}");
    // Its beginning, from before the rollback, is there.
    assert!(
        log.lines()
            .next()
            .is_some_and(|line| line.ends_with("Checking before the first attempt.")),
        "{log}"
    );
    assert!(
        log.lines().filter(|line| *line == "one").count() == 2,
        "{log}"
    );
    assert_eq!(env.read("a.txt"), "one\n", "it was rolled back once\n{log}");
    // Nor is what was said after the last checkpoint somebody's edit for whoever rolls back next.
    env.sh("echo 'said later' >> out.log").expect(0);
    let back = env.json(
        0,
        &[
            "rollback", "--run", "r", "--to", "initial", "--path", "out.log",
        ],
    );
    assert!(env.read("out.log").ends_with("said later\n"));
    let kept = reasons(&back["result"]["kept"]);
    assert!(
        kept.contains(&("out.log".to_owned(), OWN_OUTPUT.to_owned())),
        "{back}"
    );
}

// The same of a rollback itself: it neither truncates, replaces nor deletes what it writes to, by any name.
#[test]
fn a_rollback_keeps_the_file_that_it_writes_to() {
    for (before, name) in [
        ("echo old > out.log", "out.log"),
        ("true", "new.log"),
        ("echo l > x; ln x y.log", "y.log"),
    ] {
        let env = TestEnv::repo();
        env.sh(before).expect(0);
        checkpoint(&env);
        env.sh("echo two > a.txt; echo more >> out.log").expect(0);
        let line = format!("{RECOVER} --json rollback --to @1 --edits discard >> {name} 2> {name}");
        let ran = env.sh(&line);
        let said = env.read(name);
        assert_eq!(ran.code, 0, "{said}");
        assert_eq!(env.read("a.txt"), "one\n");
        let start = said.find('{').expect("the document");
        let document: Value = serde_json::from_str(&said[start..]).expect("whole");
        assert_eq!(document["result"]["verified"], true);
        let kept = reasons(&document["result"]["kept"]);
        assert!(
            kept.contains(&(name.to_owned(), OWN_OUTPUT.to_owned())),
            "{document}"
        );
    }
}

// Two names of one file: the one that is replaced first gives the other new times, and that is nobody's edit.
#[test]
fn hard_links_inside_the_tree_are_no_foreign_edit() {
    let env = TestEnv::repo();
    env.sh("echo one > b; ln b c; mkdir d; ln b d/e; ln a.txt f")
        .expect(0);
    checkpoint(&env);
    let kept = seen(env.work());
    env.sh("echo two > b; echo two > a.txt").expect(0);
    let changed = seen(env.work());
    let done = env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(done["result"]["verified"], true);
    assert_eq!(seen(env.work()), kept);
    env.json(0, &["undo"]);
    assert_eq!(seen(env.work()), changed);
    assert_clean(&env);
}

#[test]
fn long_runs_of_zeros_come_back_as_holes() {
    let env = TestEnv::repo();
    // Holes, with something before, between and after them, not at the ends of blocks.
    env.sh("truncate -s 24M sparse && printf begin | dd of=sparse conv=notrunc status=none && \
         printf middle | dd of=sparse bs=1 seek=10000001 conv=notrunc status=none && printf end >> sparse; \
         truncate -s 3000 small; truncate -s 4M empty; cp sparse ../copy")
        .expect(0);
    checkpoint(&env);
    env.sh("rm sparse small; echo x > empty").expect(0);
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    env.sh("cmp sparse ../copy && cmp -n 3000 small /dev/zero && cmp -n 4194304 empty /dev/zero")
        .expect(0);
    let sizes = |name: &str| {
        let found = std::fs::metadata(env.work().join(name)).expect("there");
        (found.len(), found.blocks() * 512)
    };
    let (length, used) = sizes("sparse");
    assert!(
        length > 24 << 20 && used < 1 << 20,
        "{length} bytes in {used}"
    );
    assert_eq!(sizes("empty").0, 4 << 20);
    assert!(sizes("empty").1 < 1 << 20 && sizes("small").0 == 3000);
}

fn is_root(env: &TestEnv) -> bool {
    let root = env.sh("id -u").stdout.trim() == "0";
    if !root {
        eprintln!("skipped: only root may give files away");
    }
    root
}

// sudo: what is replaced stays its owner's, and what is new belongs to whom its folder belongs.
#[test]
fn a_rollback_by_root_keeps_owners() {
    let mut env = TestEnv::repo();
    if !is_root(&env) {
        return;
    }
    env.set("SUDO_UID", "1234");
    env.sh("mkdir -p gone/deep; echo g > gone/deep/g; echo s > s; ln -s a.txt link")
        .expect(0);
    env.sh("chown -hR 1234:1234 . && chown 4321:77 a.txt && chown -h 11:12 link && chmod 4755 s")
        .expect(0);
    checkpoint(&env);
    env.sh("echo two > a.txt; rm -r gone; echo t > s; ln -sfn b.txt link; chown -h 11:12 link")
        .expect(0);
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    let owners = env
        .sh("stat -c '%n %u:%g %a' a.txt gone gone/deep gone/deep/g s; stat -c '%n %u:%g' link")
        .expect(0)
        .stdout;
    assert_eq!(
        owners,
        "a.txt 4321:77 644\ngone 1234:1234 755\ngone/deep 1234:1234 755\ngone/deep/g 1234:1234 644\ns 1234:1234 4755\n\
         link 11:12\n"
    );
}

// The hint is the command that helps, also where the folder has to be quoted.
#[test]
fn a_repository_of_somebody_else_says_how_it_is_declared_safe() {
    let env = TestEnv::repo();
    if !is_root(&env) {
        return;
    }
    env.sh("mv ../work '../it is'\"'\"'s' && mkdir ../work && chown -R 1234 '../it is'\"'\"'s'")
        .expect(0);
    let recover = |env: &TestEnv, args: &[&str]| {
        let mut command = env.recover_command(args);
        command.current_dir(env.root().join("it is's"));
        Ran::of(&command.output().expect("recover starts"))
    };
    let refused = recover(&env, &["--json", "checkpoint", "create"])
        .expect(13)
        .json()["error"]
        .take();
    assert_eq!(refused["code"], "foreign_owner");
    let hint = text(&refused["hint"]);
    assert!(
        hint.starts_with("git config --global --add safe.directory "),
        "{hint}"
    );
    let mut shell = env.command("sh");
    shell.args(["-c", &hint]);
    Ran::of(&shell.output().expect("a shell")).expect(0);
    recover(&env, &["checkpoint", "create"]).expect(0);
    recover(&env, &["checkpoint", "create"]).expect(0);
}

// libgit2 reads the list of borrowed databases line by line.
#[test]
fn a_project_whose_path_has_a_line_end() {
    for git in [true, false] {
        let env = if git {
            TestEnv::repo()
        } else {
            TestEnv::plain()
        };
        env.sh("mkdir ../up && mv ../work '../up/two\nlines' && ln -s '../home' ../work")
            .expect(0);
        let place = env.root().join("up/two\nlines");
        let recover = |args: &[&str]| {
            let mut command = env.recover_command(&["--json"]);
            Ran::of(
                &command
                    .args(args)
                    .current_dir(&place)
                    .output()
                    .expect("recover starts"),
            )
        };
        let write = |content: &str| std::fs::write(place.join("a.txt"), content).expect("written");
        write("one\n");
        recover(&["checkpoint", "create"]).expect(0);
        write("two\n");
        let planned = recover(&["--dry-run", "rollback", "--to", "@1", "--edits", "discard"])
            .expect(0)
            .json();
        assert_eq!(planned["plan"]["written"][0]["path"], "a.txt", "{planned}");
        let done = recover(&["rollback", "--to", "@1", "--edits", "discard"])
            .expect(0)
            .json();
        assert_eq!(done["result"]["verified"], true);
        assert_eq!(
            std::fs::read_to_string(place.join("a.txt")).expect("read"),
            "one\n"
        );
        recover(&["undo"]).expect(0);
        assert_eq!(
            std::fs::read_to_string(place.join("a.txt")).expect("read"),
            "two\n"
        );
        recover(&["checkpoint", "diff", "@1", "--patch"]).expect(0);
        recover(&["checkpoint", "verify"]).expect(0);
        recover(&["doctor"]).expect(0);
    }
}

// A lock of git's that a killed recover left keeps git from working: doctor says so, and removes only that.
#[test]
fn doctor_tells_of_a_lock_of_ours_and_leaves_a_foreign_one() {
    let env = TestEnv::repo();
    checkpoint(&env);
    env.git(&["worktree", "add", "-q", "../linked"]);
    env.json(0, &["-C", "../linked", "checkpoint", "create"]);
    // What a kill leaves: the mark, and the lock that is a link to it.
    for own in [".git/recover", ".git/worktrees/linked/recover"] {
        let lock = env.work().join(own).with_file_name("index.lock");
        std::fs::write(
            env.work().join(own).join("holds-index"),
            lock.as_os_str().as_encoded_bytes(),
        )
        .unwrap();
        std::fs::hard_link(env.work().join(own).join("holds-index"), &lock).unwrap();
    }
    env.write(".git/HEAD.lock", "");
    assert_ne!(env.sh("git add a.txt").code, 0);
    let report = env.json(12, &["doctor"]);
    let problems = report["problems"].as_array().unwrap();
    let found: Vec<_> = problems
        .iter()
        .map(|one| (one["code"].as_str().unwrap(), one["repairable"] == true))
        .collect();
    assert_eq!(
        found,
        [
            ("stale_lock", true),
            ("stale_lock", true),
            ("git_lock", false)
        ],
        "{report}"
    );
    let repaired = env.json(12, &["doctor", "--repair"]);
    assert_eq!(
        repaired["problems"].as_array().map(Vec::len),
        Some(1),
        "{repaired}"
    );
    assert!(
        repaired["repaired"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| text(one).contains("index.lock")),
        "{repaired}"
    );
    assert!(!env.exists(".git/index.lock") && !env.exists(".git/worktrees/linked/index.lock"));
    assert!(env.exists(".git/HEAD.lock"), "it is not recover's");
    env.git(&["add", "a.txt"]);
    // While a process of ours is alive, its lock is its own.
    env.sh("rm .git/HEAD.lock").expect(0);
    env.json(0, &["doctor"]);
    let mark = env.work().join(".git/recover/holds-index");
    let lock = env.work().join(".git/index.lock");
    std::fs::write(&mark, lock.as_os_str().as_encoded_bytes()).unwrap();
    std::fs::hard_link(&mark, &lock).unwrap();
    let held = recover::testing::durable::FileLock::acquire(
        &recover::testing::durable::Root::own(env.work()),
        std::path::Path::new(".git/recover/lock"),
        Duration::from_secs(5),
    )
    .unwrap();
    let problems = env.json(0, &["doctor"])["problems"].take();
    drop(held);
    assert_eq!(problems, serde_json::json!([]));
    assert!(lock.exists());
}

// A refusal says what was written, and that is so.
#[test]
fn a_refusal_before_the_first_write_says_so() {
    let env = TestEnv::repo();
    env.write(".gitignore", "dir\n");
    env.write("x/dir", "tracked before\n");
    env.git(&["add", "-f", "."]);
    checkpoint(&env);
    env.sh("git rm -q --cached x/dir; rm x/dir; mkdir x/dir; echo ignored > x/dir/own; echo two > a.txt").expect(0);
    let error = env.error(13, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert!(
        text(&error["message"]).contains("nothing was written"),
        "{error}"
    );
    assert_eq!(env.read("a.txt"), "two\n");
}

/// Takes the commit of a checkpoint away.
fn lose(env: &TestEnv, id: &str) {
    let name = env.git(&[
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        "refs/recover",
    ]);
    let commit = name
        .lines()
        .find(|line| line.ends_with(id))
        .expect("its reference")[..40]
        .to_owned();
    loosen(env.work());
    env.remove(&format!(".git/objects/{}/{}", &commit[..2], &commit[2..]));
}

// promise.md 4: a damaged checkpoint hinders no other; what it cannot judge counts as edited.
#[test]
fn a_damaged_checkpoint_hinders_no_other() {
    let mut env = TestEnv::repo();
    // Without a vault, from which its objects would come back.
    env.set("CI", "true");
    env.write("wip.txt", "morning work\n");
    checkpoint(&env);
    env.write("a.txt", "two\n");
    env.write("x.txt", "x\n");
    let lost = checkpoint(&env);
    lose(&env, &lost);
    env.remove("wip.txt");
    env.json(12, &["doctor"]);
    let before = seen(env.work());
    for command in [
        ["rollback", "--to", "@1"].as_slice(),
        &["checkpoint", "restore", "@1"],
    ] {
        let refused = env.json(13, command)["error"].clone();
        let paths: Vec<String> = refused["paths"]
            .as_array()
            .expect("paths")
            .iter()
            .map(|one| text(&one["path"]))
            .collect();
        assert_eq!(paths, ["a.txt", "wip.txt", "x.txt"], "{refused}");
        env.json(0, &[command, &["--edits", "discard", "--dry-run"]].concat());
    }
    env.json(0, &["rollback", "--to", "@1", "--edits", "discard"]);
    assert_eq!(
        (env.read("wip.txt"), env.exists("x.txt")),
        ("morning work\n".to_owned(), false)
    );
    env.json(0, &["undo"]);
    assert_eq!(seen(env.work()), before);
    env.json(
        0,
        &[
            "rollback", "--to", "initial", "--path", "wip.txt", "--edits", "discard",
        ],
    );
    assert_eq!(env.read("wip.txt"), "morning work\n");
    // The repair marks it, and all lists say so.
    let repaired = env.json(0, &["doctor", "--repair"]);
    assert!(text(&repaired["repaired"][0]).contains(&lost), "{repaired}");
    let doctor = env.json(0, &["doctor"]);
    assert_eq!(doctor["problems"][0]["severity"], "warning", "{doctor}");
    let listed = env.json(0, &["checkpoint", "list"])["checkpoints"].clone();
    let marked: Vec<&Value> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter(|one| one["damaged"] == true)
        .collect();
    assert_eq!(marked.len(), 1, "{listed}");
    assert_eq!(marked[0]["id"], lost.as_str());
    assert!(
        env.recover(&["checkpoint", "list"])
            .expect(0)
            .stdout
            .contains("(damaged)")
    );
    env.json(0, &["doctor", "--rebuild"]);
    env.json(0, &["checkpoint", "create"]);
    env.json(0, &["rollback", "--to", "initial", "--edits", "discard"]);
    // Its own content is gone, and that is said.
    env.json(12, &["checkpoint", "restore", &lost, "--edits", "discard"]);
}

// promise.md 5: a rollback of one session does not silently take back what another one did in the same tree.
#[test]
fn what_a_parallel_session_changed_is_a_foreign_edit() {
    let env = TestEnv::repo();
    let call = |session: &str, name: &str, path: &str| {
        let event = serde_json::json!({
            "session_id": session, "transcript_path": "/t.jsonl", "permission_mode": "default",
            "hook_event_name": name, "tool_name": "Write", "tool_input": {"file_path": env.work().join(path)}
        });
        env.recover_fed(event.to_string(), &["hook", "run", "claude"])
            .expect(0);
    };
    call("a", "PreToolUse", "a.txt");
    env.write("a.txt", "by a\n");
    call("b", "PreToolUse", "b.txt");
    env.write("b.txt", "by b\n");
    call("b", "Stop", "b.txt");
    let roll_back = ["rollback", "--run", "claude-a", "--to", "initial"];
    let refused = env.json(13, &roll_back)["error"].clone();
    let paths: Vec<String> = refused["paths"]
        .as_array()
        .expect("paths")
        .iter()
        .map(|one| text(&one["path"]))
        .collect();
    assert_eq!(paths, ["b.txt"], "{refused}");
    assert!(
        text(&refused["message"]).contains("changed by run claude-b"),
        "{refused}"
    );
    let kept =
        env.json(0, &[&roll_back[..], &["--edits", "keep"]].concat())["result"]["kept"].clone();
    assert_eq!(
        reasons(&kept),
        [("b.txt".to_owned(), "changed by run claude-b".to_owned())]
    );
    assert_eq!(
        (env.read("a.txt"), env.read("b.txt")),
        ("one\n".to_owned(), "by b\n".to_owned())
    );
    env.json(0, &["undo"]);
    assert_eq!(env.read("a.txt"), "by a\n");
    // What it did itself goes back without a question.
    env.json(0, &["rollback", "--run", "claude-b", "--to", "initial"]);
    assert_eq!(
        (env.read("a.txt"), env.exists("b.txt")),
        ("by a\n".to_owned(), false)
    );
}

// promise.md 5: a checkpoint belongs to its work tree; `--here` takes its files into another one.
#[test]
fn a_checkpoint_of_another_work_tree_is_restored_only_when_asked_for() {
    let env = TestEnv::repo();
    env.git(&["worktree", "add", "-q", "-b", "lane", "../lane"]);
    let lane = env.root().join("lane");
    std::fs::write(lane.join("a.txt"), "lane's\n").expect("written");
    std::fs::write(lane.join("b.txt"), "lane's\n").expect("written");
    let in_lane = [
        "-C",
        lane.to_str().expect("a name"),
        "checkpoint",
        "create",
        "--run",
        "lane",
    ];
    env.json(0, &in_lane);
    env.write("notes.txt", "mine\n");
    checkpoint(&env);
    let before = seen(env.work());
    let restore = ["checkpoint", "restore", "latest", "--run", "lane"];
    for flags in [&[][..], &["--edits", "discard"], &["--dry-run"]] {
        let refused = env.json(13, &[&restore[..], flags].concat())["error"].clone();
        assert!(
            text(&refused["message"]).contains(lane.to_str().expect("a name")),
            "{refused}"
        );
        assert_eq!(seen(env.work()), before);
    }
    let here = [&restore[..], &["--here"]].concat();
    env.json(0, &[&here[..], &["--dry-run"]].concat());
    assert_eq!(seen(env.work()), before);
    env.write("a.txt", "edited\n");
    env.json(13, &here);
    env.json(0, &[&here[..], &["--edits", "discard"]].concat());
    assert_eq!(
        (env.read("a.txt"), env.read("b.txt")),
        ("lane's\n".to_owned(), "lane's\n".to_owned())
    );
    env.json(0, &["undo"]);
    assert_eq!(env.read("a.txt"), "edited\n");
    env.recover(&[
        "checkpoint",
        "restore",
        "latest",
        "--run",
        "lane",
        "-C",
        lane.to_str().expect("a name"),
    ])
    .expect(0);
}

// The same holds for a rollback, of parts of the files too, whichever run it names.
#[test]
fn a_rollback_stays_in_its_work_tree() {
    let env = TestEnv::repo();
    env.write("main.txt", "main's\n");
    env.json(0, &["checkpoint", "create", "--run", "main"]);
    env.git(&["worktree", "add", "-q", "-b", "lane", "../lane"]);
    let lane = env.root().join("lane");
    let lane_name = lane.to_str().expect("a name");
    std::fs::write(lane.join("lane.txt"), "lane's\n").expect("written");
    env.json(
        0,
        &["-C", lane_name, "checkpoint", "create", "--run", "lane"],
    );
    let before = seen(&lane);
    for flags in [
        &["--run", "lane"][..],
        &["--run", "lane", "--edits", "discard", "--commits", "drop"],
        &["--path", "main.txt"],
        &["--run", "main", "--path", "main.txt"],
        &["--run", "main", "--scope", "files", "--dry-run"],
    ] {
        let rollback = ["-C", lane_name, "rollback", "--to", "@1"];
        let refused = env.json(13, &[&rollback[..], flags].concat())["error"].clone();
        assert!(
            text(&refused["message"]).contains(&env.work().display().to_string()),
            "{refused}"
        );
        assert_eq!(seen(&lane), before);
    }
    env.json(0, &["rollback", "--to", "@1", "--run", "main"]);
}

// promise.md 5: what is in a work tree of which nothing was recorded may be the user's own work: what is not as HEAD has it is asked
// about. One that is gone is another work tree still.
#[test]
fn a_work_tree_without_checkpoints_is_compared_with_the_last_commit() {
    let env = TestEnv::repo();
    env.write("b.txt", "b\n");
    env.git(&["add", "b.txt"]);
    env.git(&["commit", "-qm", "b"]);
    env.git(&["worktree", "add", "-q", "-b", "lane", "../lane"]);
    let lane = env.root().join("lane");
    let lane_name = lane.to_str().expect("a name");
    std::fs::write(lane.join("a.txt"), "lane's\n").expect("written");
    env.json(
        0,
        &["-C", lane_name, "checkpoint", "create", "--run", "lane"],
    );
    let restore = ["checkpoint", "restore", "latest", "--run", "lane"];
    let here = [&restore[..], &["--here"]].concat();
    env.write("b.txt", "edited\n");
    env.write("new.txt", "mine\n");
    let edited = |args: &[&str]| {
        let refused = env.json(13, args)["error"].clone();
        assert_eq!(
            (&refused["code"], paths(&refused["paths"])),
            (
                &"hand_edits".into(),
                vec!["b.txt".to_owned(), "new.txt".to_owned()]
            ),
            "{refused}"
        );
        assert!(
            text(&refused["message"]).contains("since the last commit"),
            "{refused}"
        );
        assert_eq!(
            (env.read("a.txt"), env.read("b.txt"), env.read("new.txt")),
            ("one\n".into(), "edited\n".into(), "mine\n".into())
        );
    };
    edited(&here);
    env.git(&["worktree", "remove", "--force", "../lane"]);
    let gone = env.json(13, &restore)["error"].clone();
    assert!(text(&gone["message"]).contains(lane_name), "{gone}");
    assert!(text(&gone["hint"]).contains("--here"), "{gone}");
    edited(&here);
    env.json(0, &[&here[..], &["--edits", "keep"]].concat());
    assert_eq!(
        (env.read("a.txt"), env.read("b.txt"), env.read("new.txt")),
        ("lane's\n".into(), "edited\n".into(), "mine\n".into())
    );
}

// So is a clone that a bundle comes into, and a copy of the project.
#[test]
fn a_clone_and_a_copy_are_compared_with_the_last_commit() {
    for copy in [
        "git clone -q . ../copy && recover -C ../copy import ../it.bundle",
        "cp -a . ../copy",
    ] {
        let env = TestEnv::repo();
        env.write("b.txt", "b\n");
        env.git(&["add", "b.txt"]);
        env.git(&["commit", "-qm", "b"]);
        env.json(
            0,
            &["run", "--run", "r", "--", "sh", "-c", "echo two > a.txt"],
        );
        env.json(
            0,
            &["checkpoint", "export", "latest", "--bundle", "../it.bundle"],
        );
        let copy = copy.replace("recover", env!("CARGO_BIN_EXE_recover"));
        env.sh(&copy).expect(0);
        let at = |name: &str| env.root().join("copy").join(name);
        std::fs::write(at("b.txt"), "edited\n").expect("written");
        std::fs::write(at("new.txt"), "mine\n").expect("written");
        let restore = [
            "-C",
            "../copy",
            "checkpoint",
            "restore",
            "latest",
            "--run",
            "r",
        ];
        let refused = env.json(13, &restore)["error"].clone();
        let listed = paths(&refused["paths"]);
        assert!(
            listed.contains(&"b.txt".to_owned()) && listed.contains(&"new.txt".to_owned()),
            "{refused}"
        );
        std::fs::remove_file(at("new.txt")).expect("removed");
        env.git(&["-C", "../copy", "checkout", "-q", "."]);
        env.json(0, &restore);
        assert_eq!(std::fs::read_to_string(at("a.txt")).expect("read"), "two\n");
    }
}

// Without git nothing says what was there: everything is asked about.
#[test]
fn a_copy_without_git_is_not_overwritten_unasked() {
    let env = TestEnv::plain();
    env.write("f", "one\n");
    env.json(0, &["run", "--run", "r", "--", "sh", "-c", "echo two > f"]);
    env.sh("cp -a . ../copy; echo mine > ../copy/f").expect(0);
    let restore = [
        "-C",
        "../copy",
        "checkpoint",
        "restore",
        "initial",
        "--run",
        "r",
    ];
    let refused = env.json(13, &restore)["error"].clone();
    assert_eq!(
        (&refused["code"], paths(&refused["paths"])),
        (&"hand_edits".into(), vec!["f".to_owned()])
    );
    assert_eq!(env.read("../copy/f"), "mine\n");
    env.json(0, &[&restore[..], &["--edits", "discard"]].concat());
    assert_eq!(env.read("../copy/f"), "one\n");
}

// how deep a folder may lie does not depend on how many files a process may have open.
#[test]
fn a_file_in_deep_folders_comes_back_with_few_descriptors() {
    let env = TestEnv::repo();
    let deep = ["d"; 400].join("/");
    env.write(&format!("{deep}/leaf"), "one\n");
    env.json(0, &["checkpoint", "create"]);
    env.write(&format!("{deep}/leaf"), "two\n");
    let recover = env!("CARGO_BIN_EXE_recover");
    env.sh(&format!(
        "ulimit -n 256; {recover} checkpoint restore latest --edits discard --yes"
    ))
    .expect(0);
    assert_eq!(env.read(&format!("{deep}/leaf")), "one\n");
    env.sh(&format!(
        "rm -r d; ulimit -n 256; {recover} checkpoint restore latest --edits discard --yes"
    ))
    .expect(0);
    assert_eq!(env.read(&format!("{deep}/leaf")), "one\n");
    env.sh(&format!("ulimit -n 256; {recover} undo --yes"))
        .expect(0);
    assert!(!env.exists("d"));
}
