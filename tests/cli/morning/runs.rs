//! `runs`, `close` and `forget`: what many nights leave, and how it is tidied up.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::supervision::{NOW, ended, until};

/// A night that ends badly, after a change.
const FAILS: &str = "echo $RECOVER_RUN_ID >> a.txt; exit 3";

fn fails(env: &TestEnv, run: &str) {
    env.json(
        6,
        &[
            "run",
            "--run",
            run,
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            FAILS,
        ],
    );
}

fn passes(env: &TestEnv, run: &str) {
    env.json(
        0,
        &[
            "run",
            "--run",
            run,
            "--",
            "sh",
            "-c",
            "echo $RECOVER_RUN_ID >> a.txt",
        ],
    );
}

fn listed(env: &TestEnv, args: &[&str]) -> Vec<Value> {
    env.json(0, &[&["runs"], args].concat())["runs"]
        .as_array()
        .expect("runs")
        .clone()
}

fn ids(runs: &[Value]) -> Vec<&str> {
    runs.iter()
        .map(|run| run["run_id"].as_str().expect("an id"))
        .collect()
}

// Newest first, with what is known of each and nothing invented; the one that a command takes is marked.
#[test]
fn runs_are_listed_newest_first() {
    let env = TestEnv::repo();
    assert_eq!(listed(&env, &[]), [] as [Value; 0]);
    fails(&env, "monday");
    passes(&env, "tuesday");
    let runs = listed(&env, &[]);
    assert_eq!(ids(&runs), ["tuesday", "monday"]);
    let (tuesday, monday) = (&runs[0], &runs[1]);
    assert_eq!(
        (&tuesday["chosen"], &monday["chosen"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&tuesday["status"], &monday["status"]),
        (&json!("complete"), &json!("failed"))
    );
    assert_eq!(
        tuesday["iterations"],
        json!({"done": 1, "given_up": 0, "total": 1})
    );
    assert_eq!(
        (&monday["attempts"], &monday["last_error"]),
        (&json!(1), &json!("Exit status 3"))
    );
    assert_eq!(tuesday["last_error"], Value::Null);
    for run in &runs {
        assert_eq!(
            (&run["cost_usd"], &run["tokens"], &run["driver_pid"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
        assert!(
            run["size_bytes"].as_u64().is_some_and(|size| size > 0),
            "{run}"
        );
        assert!(
            run["started_at"].as_str() <= run["ended_at"].as_str(),
            "{run}"
        );
        assert!(
            run["ended_at"].as_str() <= run["last_event_at"].as_str(),
            "{run}"
        );
        assert_eq!(run["worktree"], json!(env.work()));
    }
    assert_eq!(ids(&listed(&env, &["--limit", "1"])), ["tuesday"]);
    let table = env.recover(&["runs"]).expect(0).stdout;
    let marked = table
        .lines()
        .find(|line| line.trim_start().starts_with('*'))
        .expect("one is marked");
    assert!(
        marked.contains("tuesday") && marked.contains("complete"),
        "{table}"
    );
}

// A closed run is meant by nobody who does not name it, and stands where it stood once it is resumed.
#[test]
fn a_closed_run_is_out_of_the_way_until_it_is_taken_up() {
    let mut env = TestEnv::repo();
    // The wait before the next attempt is not over by itself.
    env.set("RECOVER_TEST_NOW", NOW);
    fails(&env, "monday");
    fails(&env, "tuesday");
    env.json(0, &["manual-fix", "start"]);
    let plan = env.json(0, &["close", "--dry-run"]);
    assert_eq!(
        (&plan["changed"], &plan["plan"]["changed"]),
        (&json!(false), &json!(true))
    );
    let closed = env.json(0, &["close"]);
    assert_eq!(
        (&closed["runs"][0]["run_id"], &closed["runs"][0]["status"]),
        (&json!("tuesday"), &json!("closed"))
    );
    assert!(
        env.read_state("events.jsonl")
            .contains("\"type\":\"run_closed\"")
    );
    let fix = env.json(0, &["manual-fix", "status", "--run", "tuesday"]);
    assert_eq!(fix["session"]["status"], "aborted");
    assert_eq!(env.json(0, &["close", "tuesday"])["changed"], false);
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "monday");
    assert_eq!(ids(&listed(&env, &[])), ["monday"]);
    assert_eq!(ids(&listed(&env, &["--all"])), ["tuesday", "monday"]);
    env.json(0, &["close", "--all-ended"]);
    assert_eq!(env.error(4, &["status"])["code"], "run_not_found");
    assert_eq!(env.error(4, &["close", "bogus"])["code"], "run_not_found");
    // That it stands again where it stood is a change, also where nothing is run.
    assert_eq!(
        env.json(0, &["resume", "monday", "--dry-run"])["changed"],
        false
    );
    let resumed = env.json(6, &["resume", "monday"]);
    assert_eq!(
        (&resumed["executed"], &resumed["changed"]),
        (&json!(false), &json!(true)),
        "{resumed}"
    );
    assert_eq!(env.json(6, &["resume", "monday"])["changed"], false);
    // It is prepared for another attempt, as an open one would be.
    let resumed = env.json(
        0,
        &[
            "resume",
            "tuesday",
            "--prepare-only",
            "--strategy",
            "retry_same",
        ],
    );
    assert_eq!(
        (&resumed["run"]["status"], &resumed["changed"]),
        (&json!("in_progress"), &json!(true))
    );
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "tuesday");
}

// A driver at work is nobody's to close or to forget; an agent below it neither.
#[test]
fn a_run_at_work_is_neither_closed_nor_forgotten() {
    let env = TestEnv::repo();
    let inside = format!(
        "{0} close --json > ../inside; {0} forget --all --yes --json >> ../inside",
        env!("CARGO_BIN_EXE_recover")
    );
    let line = format!("{inside}; touch ../began; while [ ! -e ../end ]; do sleep 0.02; done");
    let mut first = env
        .recover_command(&["run", "--run", "first", "--", "sh", "-c", &line])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("recover starts");
    until("it is at work", || env.root().join("began").exists());
    for args in [
        &["close"][..],
        &["close", "first"],
        &["forget", "first", "--yes"],
        &["forget", "--all", "--yes"],
    ] {
        let error = env.error(11, args);
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains(&format!("pid {}", first.id())),
            "{error}"
        );
    }
    assert_eq!(env.json(0, &["close", "--all-ended"])["changed"], false);
    assert_eq!(listed(&env, &[])[0]["driver_pid"], first.id());
    fs::write(env.root().join("end"), "").unwrap();
    assert!(first.wait().unwrap().success());
    let told = fs::read_to_string(env.root().join("inside")).unwrap();
    assert_eq!(told.matches("inside_attempt").count(), 2, "{told}");
}

// Asks, and then nothing knows the run: its checkpoints, logs, references and views are gone, another's are not.
#[test]
fn a_forgotten_run_is_gone() {
    let env = TestEnv::repo();
    fails(&env, "monday");
    passes(&env, "tuesday");
    let refs = |run: &str| {
        env.git(&[
            "for-each-ref",
            "--format=%(refname)",
            &format!("refs/recover/{run}"),
        ])
    };
    let error = env.error(13, &["forget", "monday"]);
    assert_eq!(error["code"], "confirmation_needed");
    let plan = env.json(0, &["forget", "monday", "--dry-run"]);
    assert_eq!(
        (&plan["changed"], &plan["forgotten"][0]["run_id"]),
        (&json!(false), &json!("monday"))
    );
    assert!(!refs("monday").is_empty() && env.exists(".ultraplan/state/recover/runs/monday"));
    let text = env.recover(&["forget", "monday", "--yes"]).expect(0).stdout;
    assert!(text.contains("run monday"), "{text}");
    assert!(refs("monday").is_empty() && !refs("tuesday").is_empty());
    assert!(!env.exists(".ultraplan/state/recover/runs/monday"));
    assert_eq!(ids(&listed(&env, &["--all"])), ["tuesday"]);
    env.json(4, &["status", "--run", "monday"]);
    env.json(4, &["forget", "monday", "--yes"]);
    assert_eq!(env.json(0, &["doctor"])["problems"], json!([]));
    // The name is free again.
    fails(&env, "monday");
    env.json(0, &["status", "--run", "monday"]);
}

/// All paths below a folder with what files hold, but for git's objects.
fn everything(root: &Path) -> BTreeSet<(String, Vec<u8>)> {
    let mut found = BTreeSet::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path
                .strip_prefix(root)
                .expect("below")
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                open.push(path);
                found.insert((name, Vec::new()));
            } else {
                found.insert((name, fs::read(&path).expect("a file")));
            }
        }
    }
    found
}

// Afterwards the repository is as it was, git's objects too; the loop's own files stay.
#[test]
fn forgetting_all_leaves_the_repository_as_it_was() {
    let env = TestEnv::repo();
    env.write(".ultraplan/state/loop.json", "{}\n");
    env.write(".ultraplan/state/recovery.json", "{\"errorCount\": 0}\n");
    env.write(".claude/settings.json", "{\n  \"model\": \"opus\"\n}\n");
    env.git(&["config", "gc.auto", "0"]);
    let before = everything(env.work());
    let home = everything(&env.root().join("home"));
    env.recover(&["init"]).expect(0);
    env.recover(&["hook", "install", "claude"]).expect(0);
    env.recover(&["hook", "install", "git"]).expect(0);
    env.json(
        6,
        &[
            "run",
            "--run",
            "r",
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            "echo new > made.txt; exit 3",
        ],
    );
    env.json(0, &["checkpoint", "create"]);
    env.remove("made.txt");
    assert_ne!(everything(env.work()), before);
    assert_eq!(
        env.error(13, &["forget", "--all"])["code"],
        "confirmation_needed"
    );
    let plan = env.json(0, &["forget", "--all", "--dry-run"]);
    assert!(
        plan["removed"]
            .as_array()
            .unwrap()
            .iter()
            .any(|path| path.as_str().unwrap().ends_with("settings.json")),
        "{plan}"
    );
    env.recover(&["forget", "--all", "--yes"]).expect(0);
    let after = everything(env.work());
    let names = |left: &BTreeSet<(String, Vec<u8>)>, right: &BTreeSet<(String, Vec<u8>)>| {
        left.difference(right)
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&after, &before), names(&before, &after)),
        (Vec::new(), Vec::new()),
        "left and lost"
    );
    assert_eq!(everything(&env.root().join("home")), home);
}

// Called in a linked work tree, it is about the whole repository: what others have of ours goes too.
#[test]
fn forgetting_all_takes_the_lines_out_of_every_work_tree() {
    for from in ["linked", "work"] {
        let env = TestEnv::repo();
        let settings = "{\n  \"model\": \"opus\"\n}\n";
        env.git(&["worktree", "add", "-q", "../linked"]);
        let trees = ["../linked", "../work"];
        for tree in trees {
            env.write(&format!("{tree}/.claude/settings.json"), settings);
            env.recover(&["-C", tree, "hook", "install", "claude"])
                .expect(0);
            env.recover(&["-C", tree, "hook", "install", "codex"])
                .expect(0);
            env.recover(&["-C", tree, "checkpoint", "create"]).expect(0);
            assert_ne!(env.read(&format!("{tree}/.claude/settings.json")), settings);
        }
        env.recover(&["init"]).expect(0);
        let from = format!("../{from}");
        let plan = env
            .json(0, &["-C", &from, "forget", "--all", "--dry-run"])
            .to_string();
        assert!(
            trees
                .iter()
                .all(|tree| plan.contains(&format!("{}/.claude", tree.trim_start_matches("../")))),
            "{plan}"
        );
        env.recover(&["-C", &from, "forget", "--all", "--yes"])
            .expect(0);
        for tree in trees {
            assert_eq!(
                env.read(&format!("{tree}/.claude/settings.json")),
                settings,
                "{from}: {tree}"
            );
            for gone in [".codex", ".ultraplan"] {
                assert!(
                    !env.exists(&format!("{tree}/{gone}")),
                    "{from}: {tree}/{gone}"
                );
            }
        }
        let left = env.sh("find .git -path '*recover*'").stdout;
        assert_eq!(left, "", "{from}");
    }
}

// An agent's hook finishes it too, and takes nothing down that would be in the way again.
#[test]
fn a_hook_finishes_forgetting_all() {
    let env = TestEnv::repo();
    let before = everything(env.work());
    fails(&env, "r");
    env.git(&["checkout", "-q", "--", "a.txt"]);
    env.write(".git/recover/forgetting", "recover forget --all\n");
    let edit = crate::agents_and_hosts::hook_run::edit(&env, "s", "a.txt");
    let told = env
        .recover_fed(edit.to_string(), &["--json", "hook", "run", "claude"])
        .expect(0)
        .json();
    assert_eq!(told["changed"], false, "{told}");
    let left: Vec<String> = everything(env.work())
        .difference(&before)
        .map(|(name, _)| name.clone())
        .collect();
    assert!(left.iter().all(|name| name == ".git/index"), "{left:?}");
}

// git touches what it reads to plan an accept: that stays for `git gc`, and it is said.
#[test]
fn what_forgetting_leaves_to_git_is_said() {
    let env = TestEnv::repo();
    env.recover(&["run", "--run", "r", "--", "sh", "-c", "echo new >> a.txt"])
        .expect(0);
    env.recover(&["accept", "--dry-run"]).expect(0);
    let told = env.json(0, &["forget", "--all", "--yes"])["warnings"].to_string();
    assert!(
        told.contains("objects of the checkpoints are left to git gc: git touched some"),
        "{told}"
    );
    assert!(!env.git(&["fsck", "--unreachable"]).is_empty());
}

// The same size as the list has.
#[test]
fn status_shows_the_size_of_its_run() {
    let env = TestEnv::repo();
    passes(&env, "monday");
    passes(&env, "tuesday");
    for run in listed(&env, &[]) {
        let id = run["run_id"].as_str().expect("an id");
        assert_eq!(
            env.json(0, &["status", "--run", id])["size_bytes"],
            run["size_bytes"],
            "{id}"
        );
    }
    let text = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(
        text.lines()
            .any(|line| line.starts_with("Size: ") && line.ends_with('B')),
        "{text}"
    );
}

// A run that comes to be beside open ones is said to.
#[test]
fn a_new_run_for_checkpoints_is_told_beside_open_ones() {
    let env = TestEnv::repo();
    fails(&env, "monday");
    let created = env.json(0, &["checkpoint", "create"]);
    assert_eq!(created["checkpoint"]["run_id"], "manual");
    let said = "using run manual (new); 1 other run is not closed: recover runs";
    assert_eq!(created["warnings"], json!([said]), "{created}");
}

// Killed at any moment, the next command finishes it, or everything is as it was.
#[test]
fn forgetting_all_survives_a_kill() {
    let env = TestEnv::repo();
    let before = everything(env.work());
    for milliseconds in [5, 15, 25, 35, 45, 50, 55, 60, 70, 80] {
        fails(&env, "r");
        env.git(&["checkout", "-q", "--", "a.txt"]);
        let mut forgetting = env.start(&["forget", "--all", "--yes"]);
        std::thread::sleep(Duration::from_millis(milliseconds));
        forgetting.kill().expect("killed");
        forgetting.wait().expect("it ended");
        let status = env.recover(&["--json", "status"]);
        if status.code == 0 {
            assert_eq!(status.json()["run"]["run_id"], "r", "{milliseconds}");
            env.json(0, &["checkpoint", "verify"]);
            env.recover(&["forget", "--all", "--yes"]).expect(0);
        } else {
            status.expect(4);
            // All that can be left then is an empty folder, and the same command removes it.
            env.recover(&["forget", "--all", "--yes"]).expect(0);
        }
        let left: Vec<String> = everything(env.work())
            .difference(&before)
            .map(|(name, _)| name.clone())
            .collect();
        // Git itself refreshes its index.
        assert!(
            left.iter().all(|name| name == ".git/index"),
            "{milliseconds}: {left:?}"
        );
    }
}

/// How a night ends.
const ENDS: [&str; 6] = [
    "complete",
    "failed",
    "escalated",
    "cancelled",
    "killed",
    "parked",
];

/// One night in a work tree, and the status that it leaves.
fn night(env: &TestEnv, tree: &str, run: &str, end: &str) -> &'static str {
    let agent = |line: &str| format!("echo {run} >> a.txt; {line}");
    let through = |code: i32, flags: &[&str], line: &str| {
        let line = agent(line);
        let all = [
            &["-C", tree, "run", "--run", run][..],
            flags,
            &["--", "sh", "-c", &line],
        ]
        .concat();
        env.json(code, &all);
    };
    let stopped = |signal: &str| {
        let line = agent(&format!("touch ../{run}.began; exec sleep 60"));
        let child = env.start(&["-C", tree, "run", "--run", run, "--", "sh", "-c", &line]);
        until("it is at work", || {
            env.root().join(format!("{run}.began")).exists()
        });
        env.sh(&format!("kill -{signal} {}", child.id()));
        ended(child);
    };
    match end {
        "complete" => through(0, &[], "true"),
        "failed" => through(6, &["--on-failure", "stop"], "exit 3"),
        "escalated" => {
            let check = format!("test=test ! -e ../{run}.bad || {{ echo assert 1 == 2; exit 1; }}");
            through(
                8,
                &["--attempts", "1", "--feedback", &check],
                &format!("touch ../{run}.bad"),
            );
        }
        "cancelled" => stopped("INT"),
        "killed" => stopped("KILL"),
        _ => {
            let record = r#"{"type":"result","subtype":"success","is_error":true,"session_id":"s","result":"Claude AI usage limit reached|%s"}"#;
            let line = format!("printf '{record}\\n' $(($(date +%s) + 3600)); exit 1");
            through(6, &["--no-wait", "--agent", "claude"], &line);
        }
    }
    match end {
        "complete" => "complete",
        "failed" => "failed",
        "escalated" => "escalated",
        "cancelled" => "cancelled",
        "killed" => "paused",
        _ => "parked",
    }
}

/// What an agent's hook says before an edit.
fn hook(tree: &Path, session: &str) -> String {
    let input = json!({"file_path": tree.join("a.txt")});
    json!({
        "session_id": session, "cwd": tree, "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": input,
    })
    .to_string()
}

// Thirty nights in three work trees, however they end, with sessions and bare checkpoints between them: the commands of a
// day work without a name and are about the last night of their work tree. `--nocapture` shows the table.
#[test]
fn a_month_of_nights() {
    let env = TestEnv::repo();
    let trees: Vec<_> = ["work", "second", "third"]
        .map(|name| env.root().join(name))
        .into();
    for name in ["second", "third"] {
        env.git(&["worktree", "add", "-q", "-b", name, &format!("../{name}")]);
    }
    let in_tree = &|(at, tree): (usize, &PathBuf)| {
        let place = tree.to_str().expect("a path");
        let mut table = String::new();
        for number in 0..10 {
            let (run, end) = (
                format!("night-{at}-{number}"),
                ENDS[(number + 2 * at) % ENDS.len()],
            );
            let stands = night(&env, place, &run, end);
            let mut between = "";
            match number % 3 {
                1 => {
                    between = "session";
                    env.recover_fed(
                        hook(tree, &format!("s{at}{number}")),
                        &["-C", place, "hook", "run", "claude"],
                    )
                    .expect(0);
                    let over = json!({"session_id": format!("s{at}{number}"), "cwd": tree, "hook_event_name": "SessionEnd"});
                    env.recover_fed(over.to_string(), &["-C", place, "hook", "run", "claude"])
                        .expect(0);
                }
                2 => {
                    between = "checkpoint";
                    let bare = env.json(0, &["-C", place, "checkpoint", "create", "--if-changed"]);
                    assert!(
                        bare["checkpoint"]["run_id"]
                            .as_str()
                            .unwrap()
                            .starts_with("manual"),
                        "{bare}"
                    );
                }
                _ => {}
            }
            let about = |args: &[&str]| {
                let ran = env.recover(&[&["--json", "-C", place][..], args].concat());
                assert!(
                    ran.code != 4 || args.contains(&"manual-fix"),
                    "{args:?} after {end}: {}",
                    ran.stdout
                );
                let document = ran.json();
                let run = [
                    &document["run"]["run_id"],
                    &document["report"]["summary"]["run"]["run_id"],
                    &document["checkpoints"][0]["run_id"],
                ];
                (
                    document.clone(),
                    run.into_iter()
                        .find_map(Value::as_str)
                        .unwrap_or("-")
                        .to_owned(),
                )
            };
            let (status, taken) = about(&["status"]);
            assert_eq!(
                (taken.as_str(), &status["run"]["status"]),
                (run.as_str(), &json!(stands)),
                "after {end}"
            );
            let (_, retried) = about(&["retry-status"]);
            let (_, reported) = about(&["report", "--format", "json"]);
            let (_, resumed) = about(&["resume", "--dry-run", "--prepare-only"]);
            let (_, captured) = about(&["checkpoint", "list"]);
            let (back, _) = about(&[
                "rollback",
                "--to",
                "good",
                "--edits",
                "discard",
                "--dry-run",
            ]);
            let good =
                env.json(0, &["-C", place, "checkpoint", "show", "good"])["checkpoint"]["run_id"]
                    .clone();
            assert_eq!(
                (retried.as_str(), reported.as_str(), resumed.as_str()),
                (run.as_str(), run.as_str(), run.as_str())
            );
            assert!(back["plan"].is_object(), "{back}");
            let expected = if between.is_empty() {
                run.as_str()
            } else {
                captured.as_str()
            };
            assert_eq!(captured, expected);
            table += &format!(
                "{run:<12} {end:<10} {between:<11} status {taken:<12} list {captured:<14} good {}\n",
                good.as_str().unwrap()
            );
        }
        table
    };
    let tables: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = trees
            .iter()
            .enumerate()
            .map(|one| scope.spawn(move || in_tree(one)))
            .collect();
        all.into_iter()
            .map(|one| one.join().expect("a month"))
            .collect()
    });
    println!("{}", tables.concat());
    let runs = listed(&env, &["--all"]);
    assert_eq!(
        ids(&runs)
            .iter()
            .filter(|id| id.starts_with("night-"))
            .count(),
        30
    );
    assert_eq!(runs.iter().filter(|run| run["chosen"] == true).count(), 1);
    assert!(
        runs.iter().all(|run| run["status"] != "in_progress"),
        "{runs:#?}"
    );
    env.json(0, &["close", "--all-ended"]);
    assert_eq!(env.json(0, &["doctor"])["problems"], json!([]));
}

// Where runs of several work trees are listed, each is named with its own.
#[test]
fn runs_of_several_work_trees_are_told_apart() {
    let env = TestEnv::repo();
    env.git(&["worktree", "add", "-q", "-b", "second", "../second"]);
    passes(&env, "here");
    assert!(
        !env.recover(&["runs"])
            .expect(0)
            .stdout
            .contains("WORK TREE")
    );
    let second = env.root().join("second");
    let second = second.to_str().expect("a path");
    env.json(0, &["-C", second, "run", "--run", "there", "--", "true"]);
    let told = env.recover(&["runs"]).expect(0).stdout;
    assert!(
        told.contains("WORK TREE") && told.contains(second),
        "{told}"
    );
}

// A killed run is resumed with one note about it, as it stands then.
#[test]
fn one_note_says_which_run_is_taken_up() {
    let env = TestEnv::repo();
    passes(&env, "first");
    let child = env.start(&[
        "run",
        "--run",
        "second",
        "--",
        "sh",
        "-c",
        "touch ../began; exec sleep 60",
    ]);
    until("it is at work", || env.root().join("began").exists());
    env.sh(&format!("kill -KILL {}", child.id()));
    ended(child);
    for args in [&["resume", "--dry-run"][..], &["resume", "--", "true"]] {
        let told = env.recover(args).expect(0).stderr;
        assert_eq!(told.matches("using run").count(), 1, "{told}");
        assert!(told.contains("using run second (paused)"), "{told}");
    }
}
