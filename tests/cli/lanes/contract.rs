//! The lane contract through the program (C1–C9): stages, hints, resume, rollback, retries, failures, lost work trees.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::seen::text;

const LANE: [&str; 6] = ["--run", "P1-X", "--phase", "P1", "--lane", "SL-1"];

/// A lane in a work tree of its own: before in the main one, after in the lane's. `env.set` has no say in hints, so
/// `recover` is on the path.
pub struct Lane {
    pub env: TestEnv,
    pub place: PathBuf,
}

impl Lane {
    /// A repository with `recover` on the path.
    fn project() -> TestEnv {
        let mut env = TestEnv::repo();
        let folder = PathBuf::from(env!("CARGO_BIN_EXE_recover"))
            .parent()
            .expect("a folder")
            .to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        env.set("PATH", &format!("{}:{path}", folder.display()));
        env
    }

    pub fn begun() -> Self {
        let env = Self::project();
        let place = env.root().join("lane 1");
        let lane = Self { env, place };
        lane.stage(
            lane.env.work(),
            "before_lane_start",
            "ready",
            &["--base-branch", "main"],
        );
        lane.env
            .git(&["worktree", "add", "-q", "-b", "lane-1", "../lane 1"]);
        lane.stage(&lane.place.clone(), "after_lane_start", "complete", &[]);
        lane
    }

    pub fn stage(&self, place: &Path, stage: &str, status: &str, more: &[&str]) -> Value {
        let create = ["checkpoint", "create", "--stage", stage, "--status", status];
        self.at(place, 0, &[&create[..], more].concat())
    }

    /// Runs a command of the lane in a folder.
    pub fn at(&self, place: &Path, code: i32, args: &[&str]) -> Value {
        let mut all = vec!["--json", "-C", place.to_str().expect("UTF-8")];
        let at = args
            .iter()
            .position(|arg| *arg == "--")
            .unwrap_or(args.len());
        all.extend(&args[..at]);
        all.extend(LANE);
        all.extend(&args[at..]);
        self.env.recover(&all).expect(code).json()
    }

    pub fn here(&self, code: i32, args: &[&str]) -> Value {
        self.at(&self.place.clone(), code, args)
    }

    /// Pastes a command into a shell in another folder.
    pub fn paste(&self, hint: &Value) -> Ran {
        self.env.sh(&format!("cd / && {}", text(hint)))
    }

    pub fn records(&self) -> Vec<Value> {
        self.env
            .state_json("checkpoints.json")
            .as_array()
            .expect("a JSON array")
            .clone()
    }

    pub fn record(&self, stage: &str) -> Value {
        let all = self.records();
        let found: Vec<_> = all
            .iter()
            .filter(|record| record["stage"] == stage)
            .collect();
        assert_eq!(found.len(), 1, "{stage}: {all:?}");
        found[0].clone()
    }

    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.place.join(name), content).expect("written");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.place.join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn git(&self, args: &[&str]) -> String {
        let place = self.place.to_string_lossy().into_owned();
        self.env.git(&[&["-C", &place], args].concat())
    }
}

// C7: the recorded hint of a lane on its base branch works as it stands, whoever made a commit there; undo brings it back.
#[test]
fn the_hint_of_a_lane_on_its_base_branch_works_as_it_stands() {
    let env = Lane::project();
    let place = env.work().to_owned();
    let lane = Lane { env, place };
    lane.stage(&lane.place, "before_lane_start", "ready", &[]);
    let begun = lane.git(&["rev-parse", "HEAD"]);
    lane.here(
        0,
        &["step", "a", "--stage", "after_lane_start", "--", "true"],
    );
    lane.env
        .sh("echo x > own.txt; git add -A; git commit -qm own")
        .expect(0);
    let tip = lane.git(&["rev-parse", "HEAD"]);
    lane.paste(&lane.record("after_lane_start")["rollback_hint"])
        .expect(0);
    assert_eq!(lane.git(&["rev-parse", "HEAD"]), begun);
    assert!(!lane.env.exists("own.txt"));
    lane.here(0, &["undo"]);
    assert_eq!(lane.git(&["rev-parse", "HEAD"]), tip);
}

// C3, C6, C7: the hints of every record work as they stand, from any folder; --resume says where the lane stands.
#[test]
fn hints_work_as_they_stand() {
    let lane = Lane::begun();
    lane.write("work.txt", "done\n");
    lane.stage(
        &lane.place.clone(),
        "after_lane_tests",
        "complete",
        &["--test-command", "make test", "--exit-code", "0"],
    );
    for record in lane.records() {
        assert_eq!(
            record["worktree_path"],
            lane.place.to_str().unwrap(),
            "{record}"
        );
        let told = lane.paste(&record["resume_hint"]).expect(0).stdout;
        for part in [
            "after_lane_tests (complete)",
            "checkpoints.json",
            "--resume",
            "stage:before_lane_start",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    lane.write("work.txt", "broken\n");
    let told = lane
        .paste(&lane.record("after_lane_tests")["rollback_hint"])
        .expect(0)
        .stdout;
    assert!(told.contains("before_lane_start (ready)"), "{told}");
    assert!(!lane.place.join("work.txt").exists());
    assert_eq!(lane.record("after_lane_tests")["status"], "rolled_back");
}

// C4, S15: --resume rehydrates from the latest record, lists the steps that are done, and looks at what it depends on.
#[test]
fn resume_lists_what_is_done_and_revalidates() {
    let lane = Lane::begun();
    lane.here(
        0,
        &["step", "build", "--", "sh", "-c", "echo built > built.txt"],
    );
    lane.here(
        7,
        &[
            "step",
            "test",
            "--stage",
            "after_lane_tests",
            "--",
            "sh",
            "-c",
            "exit 7",
        ],
    );
    let resumed = lane.here(0, &["--resume"]);
    assert_eq!(
        (&resumed["changed"], &resumed["current_stage"]),
        (&false.into(), &"after_lane_tests".into())
    );
    assert_eq!(
        (&resumed["stage_status"], &resumed["skipped_steps"]),
        (&"failed".into(), &serde_json::json!(["build"]))
    );
    let checks = resumed["validation"].as_array().unwrap();
    for check in ["worktree", "base_branch", "branch", "checkpoint", "step"] {
        assert!(
            checks
                .iter()
                .any(|one| one["check"] == check && one["ok"] == true),
            "{check}: {resumed}"
        );
    }
    // What is left can be pasted: the step runs again, and the done one does not.
    let next = &resumed["next_actions"][0];
    assert!(text(next).contains(" step test "), "{resumed}");
    assert_eq!(lane.paste(next).code, 7);
    assert_eq!(
        lane.here(0, &["step", "build", "--", "false"])["executed"],
        false
    );
    for hint in ["resume_hint", "checkpoint_path", "rollback_hint"] {
        assert!(resumed[hint].is_string(), "{hint}: {resumed}");
    }
    // What is not there any more is said.
    lane.git(&["branch", "-m", "main", "trunk"]);
    lane.git(&["switch", "-q", "-c", "elsewhere"]);
    let resumed = lane.here(0, &["--resume"]);
    let failed: Vec<_> = resumed["validation"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["ok"] == false)
        .map(|one| &one["check"])
        .collect();
    assert_eq!(failed, ["base_branch", "branch"], "{resumed}");
}

// C5: without a target to the safest prior stage; what was gone back past is marked, and an undo takes that back too.
#[test]
fn rollback_goes_to_the_safest_prior_stage() {
    let lane = Lane::begun();
    lane.write("work.txt", "bad\n");
    lane.stage(
        &lane.place.clone(),
        "after_lane_tests",
        "failed",
        &["--test-command", "make test", "--exit-code", "2"],
    );
    let back = lane.here(0, &["--rollback"]);
    assert_eq!(
        (&back["changed"], &back["current_stage"]),
        (&true.into(), &"after_lane_start".into())
    );
    assert!(
        text(&back["rollback_hint"]).contains("stage:before_lane_start"),
        "{back}"
    );
    assert!(!lane.place.join("work.txt").exists());
    let status = |stage: &str| text(&lane.record(stage)["status"]);
    assert_eq!(
        (status("after_lane_tests"), status("after_lane_start")),
        ("rolled_back".into(), "complete".into())
    );
    lane.here(0, &["undo"]);
    assert_eq!(
        (status("after_lane_tests"), lane.read("work.txt")),
        ("failed".into(), "bad\n".into())
    );
    // A record of a stage that is reached again replaces the one that was rolled back.
    lane.here(0, &["--rollback"]);
    lane.stage(&lane.place.clone(), "after_lane_tests", "complete", &[]);
    assert_eq!(status("after_lane_tests"), "complete");
    // Marked as well where no file differs.
    lane.here(0, &["--rollback"]);
    assert_eq!(
        (
            status("after_lane_tests"),
            lane.here(0, &["--resume"])["current_stage"].clone()
        ),
        ("rolled_back".into(), "after_lane_start".into())
    );
    // A run that is no lane, and has no good checkpoint, goes back to where it began.
    let first = lane
        .env
        .json(0, &["checkpoint", "create", "--run", "plain"]);
    let back = lane.env.json(0, &["--rollback", "--run", "plain"]);
    assert_eq!(back["result"]["checkpoint_id"], first["checkpoint"]["id"]);
}

// C5: commits that the lane's steps made go off its branch, and stay reachable; a step whose stage was taken back runs
// again.
#[test]
fn the_lanes_branch_goes_back_too() {
    let lane = Lane::begun();
    let base = lane.git(&["rev-parse", "HEAD"]);
    let work = "echo w > w.txt; git add w.txt; git commit -qm work; echo x >> ../ran";
    lane.here(
        0,
        &[
            "step",
            "work",
            "--stage",
            "after_lane_tests",
            "--",
            "sh",
            "-c",
            work,
        ],
    );
    let made = lane.git(&["rev-parse", "HEAD"]);
    assert_ne!(made, base);
    assert_eq!(
        lane.record("after_lane_tests")["commit_shas"],
        serde_json::json!([made.trim()])
    );
    lane.here(0, &["--rollback", "--to", "stage:before_lane_start"]);
    assert_eq!(
        (
            lane.git(&["rev-parse", "HEAD"]),
            lane.git(&["branch", "--show-current"])
        ),
        (base, "lane-1\n".into())
    );
    assert!(!lane.place.join("w.txt").exists());
    lane.git(&["cat-file", "-e", made.trim()]);
    let again = lane.here(
        0,
        &[
            "step",
            "work",
            "--stage",
            "after_lane_tests",
            "--",
            "sh",
            "-c",
            work,
        ],
    );
    assert_eq!(
        (&again["executed"], lane.read("w.txt")),
        (&true.into(), "w\n".into())
    );
    assert_eq!(
        lane.here(0, &["step", "work", "--", "false"])["executed"],
        false
    );
    assert_eq!(lane.env.read("../ran").lines().count(), 2);
}

// C5, C7: what is committed in a lane between its steps is the lane's, as its record lists it: it goes off its branch
// unasked, and stays reachable. What is on the base branch, or was pushed, does not.
#[test]
fn a_commit_between_the_steps_of_a_lane_is_the_lanes() {
    let lane = Lane::begun();
    let base = lane.git(&["rev-parse", "HEAD"]);
    let commit = |name: &str| {
        lane.write(name, "mine\n");
        lane.git(&["add", name]);
        lane.git(&["commit", "-qm", name]);
        lane.git(&["rev-parse", "HEAD"]).trim().to_owned()
    };
    let first = commit("between.txt");
    lane.here(
        1,
        &["step", "test", "--stage", "after_lane_tests", "--", "false"],
    );
    let record = lane.record("after_lane_tests");
    assert_eq!(
        (&record["commit_shas"], &record["status"]),
        (&serde_json::json!([first]), &"failed".into())
    );
    lane.paste(&record["rollback_hint"]).expect(0);
    assert_eq!(lane.git(&["rev-parse", "HEAD"]), base);
    assert!(!lane.place.join("between.txt").exists());
    lane.git(&["cat-file", "-e", &first]);
    lane.here(0, &["undo"]);
    // Also one that no record knows of yet, and where the ledger is folded from its start.
    commit("later.txt");
    lane.env.sh("find . -name fold.cache -delete").expect(0);
    lane.here(0, &["--rollback", "--edits", "discard"]);
    assert_eq!(lane.git(&["rev-parse", "HEAD"]), base);
    lane.here(0, &["undo"]);

    // What was pushed stays, as others may have it.
    lane.env.git(&["init", "-q", "--bare", "../origin"]);
    lane.git(&["remote", "add", "origin", "../origin"]);
    lane.git(&["push", "-q", "origin", "lane-1"]);
    lane.git(&["fetch", "-q", "origin"]);
    let refused = lane.here(
        13,
        &[
            "--rollback",
            "--to",
            "stage:after_lane_start",
            "--edits",
            "discard",
        ],
    );
    assert!(
        text(&refused["error"]["message"]).contains("remote-tracking"),
        "{refused}"
    );
    assert!(lane.place.join("later.txt").exists());
}

// C5, snapshot.md (HEAD): in a lane that works on its base branch itself a commit is whoever's it is, unless it is named.
#[test]
fn a_commit_by_hand_on_the_base_branch_is_nobody_elses_to_take() {
    let env = TestEnv::repo();
    let create = [
        "checkpoint",
        "create",
        "--run",
        "r",
        "--lane",
        "l",
        "--base-branch",
        "main",
        "--stage",
    ];
    let stage = |stage: &str, more: &[&str]| env.json(0, &[&create[..], &[stage], more].concat());
    stage("after_lane_start", &["--status", "complete"]);
    env.write("hand.txt", "mine\n");
    env.git(&["add", "hand.txt"]);
    env.git(&["commit", "-qm", "by hand"]);
    let by_hand = env.git(&["rev-parse", "HEAD"]);
    stage("pre_pr", &["--status", "ready"]);
    let back = [
        "rollback",
        "--run",
        "r",
        "--lane",
        "l",
        "--to",
        "stage:after_lane_start",
        "--edits",
        "discard",
    ];
    let refused = env.json(13, &back);
    assert!(
        text(&refused["error"]["message"]).starts_with("1 commit "),
        "{refused}"
    );
    assert_eq!(
        (env.git(&["rev-parse", "HEAD"]), env.read("hand.txt")),
        (by_hand.clone(), "mine\n".into())
    );
    stage(
        "pre_pr",
        &["--status", "complete", "--commit-sha", by_hand.trim()],
    );
    env.json(0, &back);
    assert!(!env.exists("hand.txt"));
}

// C4: a lane is resumed from the project's work tree as well, and what is given after `--` is run in it.
#[test]
fn resume_works_from_the_main_work_tree_and_runs_a_command() {
    let lane = Lane::begun();
    lane.here(
        0,
        &["step", "build", "--", "sh", "-c", "echo built > built.txt"],
    );
    let main = lane.env.work().to_owned();
    let told = lane.at(&main, 0, &["--resume"]);
    assert_eq!(
        (&told["current_stage"], &told["executed"]),
        (&"after_lane_start".into(), &false.into())
    );
    assert_eq!(told["skipped_steps"], serde_json::json!(["build"]));
    let ran = lane.at(
        &main,
        0,
        &[
            "--resume",
            "--",
            "sh",
            "-c",
            "pwd > where.txt; echo x >> ran.txt",
        ],
    );
    assert_eq!(
        (&ran["executed"], &ran["outcome"]),
        (&true.into(), &"complete".into()),
        "{ran}"
    );
    assert_eq!(lane.read("where.txt").trim(), lane.place.to_str().unwrap());
    assert!(!lane.env.exists("where.txt"));

    let lane = Lane::begun();
    lane.here(
        1,
        &["step", "test", "--stage", "after_lane_tests", "--", "false"],
    );
    let ran = lane.here(0, &["--resume", "--", "sh", "-c", "echo x >> ran.txt"]);
    assert_eq!(
        (&ran["executed"], lane.read("ran.txt").as_str()),
        (&true.into(), "x\n"),
        "{ran}"
    );
}

// C3, C9: what a stage's record says is its verdict.
#[test]
fn a_stages_exit_code_and_status_are_its_verdict() {
    let lane = Lane::begun();
    let place = lane.place.clone();
    let stage = |status: &str, more: &[&str]| {
        text(&lane.stage(&place, "after_lane_tests", status, more)["checkpoint"]["verdict"])
    };
    assert_eq!(stage("complete", &["--exit-code", "0"]), "passed");
    assert_eq!(stage("complete", &[]), "passed");
    assert_eq!(stage("failed", &[]), "failed");
    assert_eq!(stage("failed", &["--exit-code", "2"]), "failed");
    assert_eq!(stage("in_progress", &[]), "unverified");
    let good = lane.here(
        0,
        &["step", "test", "--stage", "after_lane_tests", "--", "true"],
    )["checkpoint_id"]
        .clone();
    assert_eq!(
        lane.here(0, &["checkpoint", "show", "good"])["checkpoint"]["id"],
        good
    );
}

// C5, snapshot.md (HEAD): a lane goes back in its own work tree; the project's branch is never moved for it.
#[test]
fn a_lane_that_was_merged_takes_nothing_off_main() {
    let lane = Lane::begun();
    let main = lane.env.work().to_owned();
    lane.here(
        0,
        &[
            "step",
            "work",
            "--",
            "sh",
            "-c",
            "echo w > w.txt; git add w.txt; git commit -qm work",
        ],
    );
    lane.stage(&lane.place.clone(), "pre_pr", "ready", &[]);
    lane.env.git(&["merge", "-q", "--ff-only", "lane-1"]);
    let merged = lane.env.git(&["rev-parse", "main"]);
    for stage in ["stage:after_lane_start", "stage:before_lane_start"] {
        for more in [&[][..], &["--commits", "drop"], &["--commits", "keep"]] {
            let back = [&["rollback", "--to", stage, "--edits", "discard"], more].concat();
            let refused = lane.at(&main, 13, &back);
            assert_eq!(
                lane.env.git(&["rev-parse", "HEAD", "main"]),
                [merged.as_str(), &merged].concat(),
                "{refused}"
            );
            assert!(lane.env.exists("w.txt") && lane.place.join("w.txt").exists());
            let hint = text(&refused["error"]["hint"]);
            assert!(hint.contains(" -C ") && hint.contains("lane 1"), "{hint}");
        }
    }
    // The way on that is told goes back in the lane's own, and main stays.
    let hint = lane.at(&main, 13, &["rollback", "--to", "stage:after_lane_start"])["error"]["hint"]
        .clone();
    lane.paste(&hint).expect(0);
    assert!(!lane.place.join("w.txt").exists() && lane.env.exists("w.txt"));
    assert_eq!(lane.env.git(&["rev-parse", "main"]), merged);
    lane.here(0, &["undo"]);
    // With its own gone, the branch here is still not the lane's.
    std::fs::remove_dir_all(&lane.place).unwrap();
    lane.at(
        &main,
        13,
        &[
            "rollback",
            "--to",
            "stage:after_lane_start",
            "--edits",
            "discard",
        ],
    );
    assert_eq!(lane.env.git(&["rev-parse", "main"]), merged);
}

// C5: what lay in the project's work tree when the lane began, not committed, is not the lane's: its first stage is the
// commit it began at. An undo takes the rollback back, and `checkpoint restore` puts back what was captured.
#[test]
fn a_lane_goes_back_to_the_commit_it_began_at() {
    let env = TestEnv::repo();
    let files = [
        ("b.txt", "b\n"),
        ("gone.txt", "g\n"),
        ("run.sh", "#!/bin/sh\n"),
        ("dos.txt", "1\n2\n"),
        ("dir/c", "c\n"),
    ];
    std::fs::create_dir(env.work().join("dir")).unwrap();
    for (name, content) in files {
        env.write(name, content);
    }
    env.write(".gitattributes", "dos.txt text eol=crlf\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "second"]);
    std::fs::remove_file(env.work().join("dos.txt")).unwrap();
    env.git(&["checkout", "dos.txt"]);
    assert_eq!(env.read("dos.txt"), "1\r\n2\r\n");
    env.write("b.txt", "edited in main\n");
    env.write("notes.txt", "a person's\n");
    env.write("staged.txt", "staged in main\n");
    env.git(&["add", "staged.txt"]);
    env.sh(
        "rm gone.txt && chmod +x run.sh && mkdir -p empty && mkdir sub && echo x > sub/x && rm -r dir && echo f > dir",
    )
    .expect(0);
    let place = env.root().join("lane 1");
    let lane = Lane { env, place };
    lane.stage(
        lane.env.work(),
        "before_lane_start",
        "ready",
        &["--base-branch", "main"],
    );
    lane.env
        .git(&["worktree", "add", "-q", "-b", "lane-1", "../lane 1"]);
    lane.stage(&lane.place.clone(), "after_lane_start", "complete", &[]);
    let listing = || {
        lane.env
            .sh("cd '../lane 1' && find . -name .git -prune -o -printf '%p %m %l\\n' | sort")
            .stdout
    };
    let (before, base) = (listing(), lane.git(&["rev-parse", "HEAD"]));
    let main = lane.env.git(&["status", "--porcelain"]);

    let work = "echo w > w.txt; echo w >> b.txt; git add -A; git commit -qm work; echo draft > draft.txt; rm a.txt";
    lane.here(0, &["step", "work", "--", "sh", "-c", work]);
    let back = [
        "--rollback",
        "--to",
        "stage:before_lane_start",
        "--edits",
        "discard",
    ];
    let names = |list: &Value| -> Vec<String> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|one| text(&one["path"]))
            .collect()
    };
    let told = lane.here(0, &[&back[..], &["--dry-run"]].concat());
    assert_eq!(
        names(&told["plan"]["written"]),
        ["a.txt", "b.txt"],
        "{told}"
    );
    assert_eq!(
        names(&told["plan"]["deleted"]),
        ["draft.txt", "w.txt"],
        "{told}"
    );
    let done = lane.here(0, &back);
    for list in ["written", "deleted", "kept"] {
        assert_eq!(done["result"][list], told["plan"][list], "{list}");
    }
    assert_eq!(
        (listing(), lane.git(&["rev-parse", "HEAD"])),
        (before, base.clone())
    );
    assert_eq!(
        lane.git(&["status", "--porcelain"]),
        "",
        "the index is the commit's, too"
    );
    assert_eq!(
        (lane.read("b.txt"), lane.read("dos.txt")),
        ("b\n".into(), "1\r\n2\r\n".into())
    );
    assert_eq!(lane.env.git(&["status", "--porcelain"]), main);
    // There and back again, and nothing of it is taken for an edit by hand.
    lane.here(0, &["undo"]);
    assert_eq!(
        (lane.read("draft.txt"), lane.read("b.txt")),
        ("draft\n".into(), "b\nw\n".into())
    );
    assert!(!lane.place.join("a.txt").exists() && lane.git(&["rev-parse", "HEAD"]) != base);
    assert_eq!(
        lane.here(0, &["step", "work", "--", "false"])["executed"],
        false,
        "its effect is here again"
    );
    lane.here(0, &["redo"]);
    // The stage that was completed counts again; no file differs.
    let forward = lane.here(0, &["--rollback", "--to", "stage:after_lane_start"]);
    assert_eq!(
        (
            names(&forward["result"]["written"]),
            names(&forward["result"]["deleted"])
        ),
        (vec![], vec![])
    );
    assert!(
        text(&lane.here(0, &["--resume"])["next_actions"][0]).contains(" step work "),
        "and now it is not"
    );
    // Only some paths: the same. One commit on top: that of the lane's base, with nothing else in it.
    lane.here(0, &["undo"]);
    lane.here(
        0,
        &[
            "--rollback",
            "--to",
            "stage:before_lane_start",
            "--path",
            "b.txt",
            "--path",
            "notes.txt",
            "--edits",
            "discard",
        ],
    );
    assert_eq!(lane.read("b.txt"), "b\n");
    assert!(!lane.place.join("notes.txt").exists());
    lane.here(0, &[&back[..], &["--commits", "revert"]].concat());
    assert_eq!(
        lane.git(&["rev-parse", "HEAD^{tree}"]),
        lane.git(&["rev-parse", &format!("{}^{{tree}}", base.trim())])
    );
    assert_eq!(lane.git(&["status", "--porcelain"]), "");
    // Whoever wants what was captured asks for that.
    lane.here(0, &["checkpoint", "restore", "stage:before_lane_start"]);
    assert_eq!(
        (lane.read("b.txt"), lane.read("notes.txt")),
        ("edited in main\n".into(), "a person's\n".into())
    );
}

// C5, C7: a lane without a work tree of its own makes its branch where it began. That branch goes back, and `main` stays; one
// of somebody else's is left alone.
#[test]
fn a_lane_that_makes_its_branch_in_the_same_work_tree_goes_back_before_it() {
    let env = TestEnv::repo();
    let place = env.work().to_owned();
    let lane = Lane { env, place };
    lane.stage(
        &lane.place,
        "before_lane_start",
        "ready",
        &["--base-branch", "main"],
    );
    let back = [
        "--rollback",
        "--to",
        "stage:before_lane_start",
        "--edits",
        "discard",
    ];
    let base = lane.git(&["rev-parse", "main"]);
    lane.git(&["switch", "-q", "-c", "lane-1"]);
    lane.here(0, &back);
    lane.stage(&lane.place, "after_lane_start", "complete", &[]);
    let work = |file: &str| {
        lane.env.write(file, "work\n");
        lane.git(&["add", "-A"]);
        lane.git(&["commit", "-qm", file]);
        lane.git(&["rev-parse", "HEAD"])
    };
    let done = work("w.txt");
    lane.git(&["switch", "-q", "-c", "own"]);
    work("own.txt");
    let refused = lane.here(13, &back);
    assert_eq!(refused["error"]["code"], "head_moved", "{refused}");
    // Its commits were there before the lane came.
    lane.stage(&lane.place, "after_lane_tests", "complete", &[]);
    assert_eq!(lane.here(13, &back)["error"]["code"], "head_moved");
    lane.git(&["switch", "-q", "lane-1"]);
    lane.here(0, &back);
    assert_eq!(
        lane.git(&["symbolic-ref", "--short", "HEAD"]).trim(),
        "lane-1"
    );
    assert_eq!(
        (
            lane.git(&["rev-parse", "HEAD"]),
            lane.git(&["rev-parse", "main"])
        ),
        (base.clone(), base)
    );
    assert_eq!(lane.git(&["status", "--porcelain"]), "");
    lane.here(0, &["undo"]);
    assert_eq!(
        (lane.git(&["rev-parse", "HEAD"]), lane.read("w.txt")),
        (done, "work\n".into())
    );
}

// C4, C5: what a lane's steps did in the work tree is gone after a rollback, so they run again, stage or none; one in
// another work tree, which stays, is skipped, and its stage is reached again.
#[test]
fn steps_that_a_lane_goes_back_past_run_again() {
    let lane = Lane::begun();
    let main = lane.env.work().to_owned();
    let made = ["step", "made", "--stage", "after_lane_start", "--", "true"];
    lane.at(&main, 0, &made);
    lane.here(0, &["step", "work", "--", "sh", "-c", "echo w > w.txt"]);
    lane.stage(&lane.place.clone(), "after_lane_tests", "complete", &[]);
    let back = lane.here(0, &["--rollback", "--to", "stage:before_lane_start"]);
    assert!(
        text(&back["next_actions"][0]).contains(" step work "),
        "{back}"
    );
    assert_eq!(lane.record("after_lane_start")["status"], "rolled_back");
    assert_eq!(lane.at(&main, 0, &made)["executed"], false);
    assert_eq!(lane.record("after_lane_start")["status"], "complete");
    assert_eq!(
        lane.here(0, &["step", "work", "--", "sh", "-c", "echo w > w.txt"])["executed"],
        true
    );
    assert_eq!(lane.read("w.txt"), "w\n");
    assert_eq!(
        lane.here(0, &["step", "work", "--", "false"])["executed"],
        false
    );
}

// C4: where a lane's stage failed after the run's work was done, its resume says so, and not that there is nothing to do.
#[test]
fn a_stage_that_failed_after_the_work_is_what_is_left() {
    let lane = Lane::begun();
    lane.here(0, &["--resume", "--", "sh", "-c", "echo work > work.txt"]);
    lane.here(
        1,
        &[
            "step", "pr", "--stage", "pre_pr", "--", "sh", "-c", "exit 1",
        ],
    );
    let resume = lane.here(0, &["--resume"])["resume_hint"].clone();
    let told = lane.paste(&resume).expect(0).stdout;
    assert!(
        told.contains("its lane is not") && told.contains("pre_pr (failed)"),
        "{told}"
    );
    assert!(!told.contains("nothing to do"), "{told}");
    lane.here(0, &["step", "pr", "--", "true"]);
    let told = lane.paste(&resume).expect(0).stdout;
    assert!(told.contains("is complete: nothing to do"), "{told}");
}

// C8: a record for each failed attempt with the error and the last five entries of the log, handed to the runner.
#[test]
fn retries_leave_records_with_their_context() {
    let lane = Lane::begun();
    let agent = "for i in 1 2 3 4 5 6 7; do echo line $i of $RECOVER_ATTEMPT; done; \
        cp \"$RECOVER_FAILURE_CONTEXT\" ../context-$RECOVER_ATTEMPT 2>/dev/null; \
        cp \"$STATE/checkpoints.json\" ../records-$RECOVER_ATTEMPT; exit 3";
    let state = lane.env.work().join(".ultraplan/state");
    let agent = agent.replace("$STATE", &state.to_string_lossy());
    lane.env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\ncooldown_ms = 1\n[retry]\nbase_delay = '1ms'\nmax_delay = '1ms'\n",
    );
    let run = lane.here(8, &["run", "--retries", "2", "--", "sh", "-c", &agent]);
    assert_eq!(run["current_stage"], "retry_attempt", "{run}");
    let read =
        |name: &str| serde_json::from_str::<Value>(&lane.env.read(&format!("../{name}"))).unwrap();
    let second = read("records-2");
    let retry = second
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["stage"] == "retry_attempt")
        .unwrap()
        .clone();
    assert_eq!(
        (
            &retry["status"],
            &retry["retry_attempt"],
            &retry["max_retries"]
        ),
        (&"retrying".into(), &1.into(), &2.into())
    );
    let context: Vec<String> = retry["failure_context"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    assert!(context[0].starts_with("Attempt 1: "), "{context:?}");
    assert_eq!(
        context[1..],
        [
            "line 3 of 1",
            "line 4 of 1",
            "line 5 of 1",
            "line 6 of 1",
            "line 7 of 1"
        ]
    );
    assert!(
        !lane.env.root().join("context-1").exists(),
        "nothing to learn at a first attempt"
    );
    assert_eq!(
        read("context-2")["failure_context"],
        retry["failure_context"]
    );
    // C9: exhausted.
    let last = lane.record("retry_attempt");
    assert_eq!(
        (
            &last["status"],
            &last["retry_attempt"],
            &last["max_retries"]
        ),
        (&"failed".into(), &2.into(), &2.into())
    );
    let all: Vec<String> = last["failure_context"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    assert_eq!(
        all.iter()
            .filter(|entry| entry.starts_with("Attempt "))
            .count(),
        3,
        "{all:?}"
    );
    assert_eq!(all.len(), 18);
    for hint in ["resume_hint", "rollback_hint"] {
        assert!(last[hint].is_string());
    }
    lane.paste(&last["rollback_hint"]).expect(0);
}

// C9: a network failure: failed, with the last command; the way on and the way back work.
#[test]
fn a_network_failure_leaves_the_last_command() {
    let lane = Lane::begun();
    let fail = "echo half > half.txt; echo 'curl: (6) Could not resolve host: api.example.com' >&2; exit 6";
    let run = ["run", "--attempts", "1", "--", "sh", "-c", fail];
    run_fails(&lane, &run);
    let failed = lane.here(0, &["status"]);
    assert_eq!(failed["failure"]["cause"], "NETWORK_ERROR", "{failed}");
    let record = lane.record("retry_attempt");
    assert_eq!(record["status"], "failed");
    assert!(
        text(&record["notes"]).contains("Could not resolve"),
        "{record}"
    );
    let told = lane.paste(&record["resume_hint"]);
    assert!(
        told.stdout.contains("retry_attempt (failed)"),
        "{}",
        told.stdout
    );
    lane.paste(&record["rollback_hint"]).expect(0);
    assert!(!lane.place.join("half.txt").exists());
    assert_eq!(lane.record("retry_attempt")["status"], "rolled_back");
}

// C9: the same of a step that completes no stage; the one that passes later closes the record.
#[test]
fn a_network_failure_in_a_step_without_a_stage_leaves_a_record() {
    let lane = Lane::begun();
    let fetch = "test -e ../online || { echo 'curl: (6) Could not resolve host: api.example.com' >&2; exit 6; }";
    let step = ["step", "fetch", "--", "sh", "-c", fetch];
    let told = lane.here(6, &step);
    assert_eq!(
        (&told["current_stage"], &told["stage_status"]),
        (&"retry_attempt".into(), &"failed".into()),
        "{told}"
    );
    assert!(
        told["resume_hint"].is_string() && told["rollback_hint"].is_string(),
        "{told}"
    );
    let record = lane.record("retry_attempt");
    assert_eq!(record["status"], "failed", "{record}");
    assert!(
        text(&record["notes"]).contains("Could not resolve")
            && text(&record["notes"]).contains("exit code 6")
    );
    let context: Vec<String> = record["failure_context"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    assert_eq!(
        context,
        ["Step fetch: curl: (6) Could not resolve host: api.example.com"]
    );
    let told = lane.paste(&record["resume_hint"]);
    assert!(
        told.stdout.contains("retry_attempt (failed)"),
        "{}",
        told.stdout
    );
    lane.env.write("../online", "");
    lane.here(0, &step);
    assert_eq!(lane.record("retry_attempt")["status"], "complete");
}

// C9: most test runners say on their output what failed; it is shown all the same.
#[test]
fn what_a_step_says_on_its_output_is_noted() {
    let lane = Lane::begun();
    let place = lane.place.to_string_lossy().into_owned();
    let tests = "echo 'FAILED t.py::x - assert 1 == 2'; echo aside >&2; exit 1";
    let step = ["-C", &place, "step", "test", "--stage", "after_lane_tests"];
    let command = ["--", "sh", "-c", tests];
    let ran = lane.env.recover(&[&step[..], &LANE, &command].concat());
    let ran = ran.expect(1);
    assert_eq!(ran.stdout, "FAILED t.py::x - assert 1 == 2\n");
    let record = lane.record("after_lane_tests");
    assert_eq!(record["status"], "failed", "{record}");
    assert!(
        text(&record["notes"]).contains("(exit code 1): Failed: t.py::x: assert 1 == 2"),
        "{record}"
    );
}

// A step of a lane ends as its command alone would, once nobody reads its output any more.
#[test]
fn a_step_whose_output_is_closed_ends() {
    let lane = Lane::begun();
    let place = lane.place.to_string_lossy().into_owned();
    let step = format!("timeout 30 recover step many {} -- yes", LANE.join(" "));
    let ran = lane.env.sh(&format!(
        "cd '{place}' && {{ {step}; echo $? > ../code; }} | head -n 1"
    ));
    assert_eq!(ran.expect(0).stdout, "y\n");
    assert_eq!(lane.env.read("../code"), "141\n");
}

/// A record without its notes, and those.
fn without_notes(mut record: Value) -> (Value, String) {
    let notes = record["notes"].take();
    (record, notes.as_str().unwrap_or_default().to_owned())
}

const UPLOAD: [&str; 5] = ["step", "upload", "--", "sh", "-c"];
const REFUSED: &str =
    "test -e ../quota || { echo 'upload failed: quota exceeded for bucket b1' >&2; exit 3; }";

// C9: what failed is in the notes of the stage at which the lane is, and nothing else of that record changes.
#[test]
fn a_step_that_fails_is_noted_at_the_stage_that_the_lane_is_at() {
    let lane = Lane::begun();
    let stage = "after_lane_start";
    let (before, notes) = without_notes(lane.record(stage));
    assert!(!notes.contains("quota"), "{notes}");
    lane.here(3, &[&UPLOAD[..], &[REFUSED]].concat());
    let (after, notes) = without_notes(lane.record(stage));
    assert_eq!(after, before);
    assert!(
        notes.contains("step upload: upload failed: quota exceeded for bucket b1"),
        "{notes}"
    );
    assert!(text(&lane.record("retry_attempt")["notes"]).contains("quota exceeded"));
}

// C8, C9: what is left of the lane's own attempts is replaced by another attempt or a rollback, by no step.
#[test]
fn an_exhausted_record_outlives_steps() {
    let lane = Lane::begun();
    let fail = "echo 'TypeError: undefined is not a function' >&2; exit 1";
    run_fails(&lane, &["run", "--attempts", "2", "--", "sh", "-c", fail]);
    let (before, _) = without_notes(lane.record("retry_attempt"));
    assert_eq!(before["status"], "failed");
    // C8: it begins with what the failure says.
    let said = text(&lane.here(0, &["status"])["failure"]["message"]);
    let first = text(&before["failure_context"][0]);
    assert_eq!(first, format!("Attempt 1: {said}"));
    for _ in 0..2 {
        lane.here(3, &[&UPLOAD[..], &[REFUSED]].concat());
        let (after, notes) = without_notes(lane.record("retry_attempt"));
        assert_eq!(after, before);
        assert!(notes.contains("quota exceeded"), "{notes}");
    }
    lane.env.write("../quota", "");
    lane.here(0, &[&UPLOAD[..], &[REFUSED]].concat());
    assert_eq!(without_notes(lane.record("retry_attempt")).0, before);
    lane.paste(&before["rollback_hint"]).expect(0);
    assert_eq!(lane.record("retry_attempt")["status"], "rolled_back");
}

// C8: a check that fails is told with what was done before it.
#[test]
fn a_failing_check_is_told_with_the_last_lines_of_the_command() {
    let lane = Lane::begun();
    run_fails(
        &lane,
        &[
            "run",
            "--attempts",
            "1",
            "--feedback",
            "test=echo 1 failed; exit 9",
            "--",
            "echo",
            "did this",
        ],
    );
    let record = lane.record("retry_attempt");
    let context: Vec<String> = record["failure_context"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    assert!(context[0].starts_with("Attempt 1: test: "), "{context:?}");
    assert_eq!(context[1..], ["did this", "1 failed"]);
}

/// Runs a run that ends badly.
fn run_fails(lane: &Lane, args: &[&str]) {
    let place = lane.place.to_string_lossy().into_owned();
    let at = args
        .iter()
        .position(|arg| *arg == "--")
        .unwrap_or(args.len());
    let all = [
        &["--json", "-C", &place],
        &args[..at],
        &LANE[..],
        &args[at..],
    ]
    .concat();
    let ran = lane.env.recover(&all);
    assert!(
        matches!(ran.code, 5 | 7 | 8),
        "{}: {}{}",
        ran.code,
        ran.stdout,
        ran.stderr
    );
}

// C9: failed tests are recorded at their stage with command and exit code, by a step and by a supervised run.
#[test]
fn failed_tests_are_recorded_at_their_stage() {
    let lane = Lane::begun();
    let failed = lane.here(
        5,
        &[
            "step",
            "test",
            "--stage",
            "after_lane_tests",
            "--",
            "sh",
            "-c",
            "exit 5",
        ],
    );
    assert_eq!(
        (&failed["current_stage"], &failed["stage_status"]),
        (&"after_lane_tests".into(), &"failed".into())
    );
    let record = lane.record("after_lane_tests");
    assert_eq!(
        (&record["status"], &record["exit_code"]),
        (&"failed".into(), &5.into())
    );
    assert!(text(&record["test_command"]).contains("exit 5"), "{record}");
    let place = lane.place.to_string_lossy().into_owned();
    let step = [
        &["-C", &place, "step", "test", "--stage", "after_lane_tests"],
        &LANE[..],
        &["--", "false"],
    ]
    .concat();
    let told = lane.env.recover(&step).expect(1).stderr;
    for part in [
        "after_lane_tests (failed)",
        "step test",
        "Resume:",
        "stage:before_lane_start",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // The same by a run, and again with retries: the stage's record and the retry's stand beside each other.
    let run = [
        "run",
        "--attempts",
        "1",
        "--feedback",
        "test=echo no; exit 9",
        "--",
        "true",
    ];
    run_fails(&lane, &run);
    let record = lane.record("after_lane_tests");
    assert_eq!(
        (&record["status"], &record["exit_code"]),
        (&"failed".into(), &9.into())
    );
    assert_eq!(record["test_command"], "echo no; exit 9");
    assert_eq!(lane.record("retry_attempt")["status"], "failed");
}

// C9: a pull request that cannot be made: its target and HEAD are recorded; once it can, only that is done.
#[test]
fn a_pull_request_that_fails_leaves_target_and_head() {
    let lane = Lane::begun();
    lane.here(
        0,
        &[
            "step",
            "work",
            "--",
            "sh",
            "-c",
            "echo w > w; git add w; git commit -qm w",
        ],
    );
    let pr = [
        "step",
        "pr",
        "--stage",
        "pre_pr",
        "--",
        "sh",
        "-c",
        "echo tried >> ../tried; test -e ../allowed",
    ];
    lane.here(1, &pr);
    let record = lane.record("pre_pr");
    assert_eq!(
        (&record["status"], &record["target_branch"]),
        (&"failed".into(), &"main".into())
    );
    assert_eq!(record["head_sha"], lane.git(&["rev-parse", "HEAD"]).trim());
    assert_eq!(record["commit_shas"].as_array().unwrap().len(), 1);
    assert!(text(&record["notes"]).contains("test -e"), "{record}");
    lane.env.write("../allowed", "");
    let next = lane.here(0, &["--resume"])["next_actions"][0].clone();
    lane.paste(&next).expect(0);
    assert_eq!(lane.record("pre_pr")["status"], "complete");
    assert_eq!(lane.env.read("../tried").lines().count(), 2);
    assert_eq!(lane.here(0, &pr)["executed"], false);
}

// A lane whose work tree is gone: --resume and --rollback make nothing, and tell commands that bring it back.
#[test]
fn a_lane_whose_work_tree_is_gone_is_told_how_it_comes_back() {
    let lane = Lane::begun();
    lane.here(
        0,
        &[
            "step",
            "work",
            "--",
            "sh",
            "-c",
            "echo c > c.txt; git add c.txt; git commit -qm c",
        ],
    );
    lane.write("draft.txt", "not committed\n");
    lane.stage(&lane.place.clone(), "after_lane_tests", "failed", &[]);
    let hint = lane.record("after_lane_tests")["resume_hint"].clone();
    std::fs::remove_dir_all(&lane.place).unwrap();
    let refused = lane.at(lane.env.work(), 13, &["--resume"]);
    assert!(
        text(&refused["error"]["hint"]).contains("worktree repair"),
        "{refused}"
    );
    let told = lane.paste(&hint).expect(13).stderr;
    assert!(
        told.contains("is gone") && told.contains("worktree repair"),
        "{told}"
    );
    for asked in [&["--rollback"][..], &["--dry-run", "--resume"]] {
        lane.here(13, asked);
        assert!(!lane.place.exists());
    }
    let bring_back = || {
        let refused = lane.here(13, &["--resume"]);
        lane.paste(&refused["error"]["hint"]).expect(0);
    };
    bring_back();
    assert_eq!(
        (lane.read("draft.txt"), lane.read("c.txt")),
        ("not committed\n".into(), "c\n".into())
    );
    assert_eq!(lane.git(&["status", "--porcelain"]), "?? draft.txt\n");
    assert_eq!(lane.git(&["branch", "--show-current"]), "lane-1\n");
    lane.paste(&hint).expect(0);

    // Its branch gone as well: the commits are still held by the checkpoint.
    std::fs::remove_dir_all(&lane.place).unwrap();
    lane.env.git(&["worktree", "prune"]);
    lane.env.git(&["branch", "-D", "-q", "lane-1"]);
    bring_back();
    assert_eq!(
        (lane.read("draft.txt"), lane.read("c.txt")),
        ("not committed\n".into(), "c\n".into())
    );
    assert_eq!(lane.git(&["branch", "--show-current"]), "lane-1\n");

    // Its branch moved on since: what it holds is newer and stays.
    lane.git(&["add", "draft.txt"]);
    lane.git(&["commit", "-qm", "by hand"]);
    std::fs::remove_dir_all(&lane.place).unwrap();
    bring_back();
    assert_eq!(
        (lane.read("draft.txt"), lane.git(&["status", "--porcelain"])),
        ("not committed\n".into(), String::new())
    );

    // A folder that nobody had is a mistake.
    lane.env.json(2, &["-C", "/nowhere/at/all", "--resume"]);
}

// What git alone still keeps of a work tree that is gone, a detached commit and staged content, outlives all that is told.
#[test]
fn what_only_a_work_tree_that_is_gone_names_is_kept() {
    let lane = Lane::begun();
    lane.write("draft.txt", "draft\n");
    lane.here(0, &["checkpoint", "create"]);
    lane.git(&["checkout", "-q", "--detach"]);
    lane.git(&["commit", "-q", "--allow-empty", "-m", "detached"]);
    let commit = lane.git(&["rev-parse", "HEAD"]);
    lane.write("staged.txt", "staged\n");
    lane.git(&["add", "staged.txt"]);
    let blob = lane.git(&["rev-parse", ":staged.txt"]);
    std::fs::remove_dir_all(&lane.place).unwrap();
    let refused = lane.here(13, &["--rollback"]);
    lane.env.git(&["gc", "-q", "--prune=now"]);
    lane.paste(&refused["error"]["hint"]).expect(0);
    lane.env.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(lane.git(&["rev-parse", "HEAD"]), commit);
    assert_eq!(lane.git(&["cat-file", "-t", commit.trim()]), "commit\n");
    assert_eq!(lane.git(&["cat-file", "-t", blob.trim()]), "blob\n");
    assert_eq!(lane.read("staged.txt"), "staged\n");
}

// C5: what passed in an earlier iteration is not given up for a later one that failed.
#[test]
fn the_safest_stage_is_the_latest_that_did_not_fail() {
    let lane = Lane::begun();
    let agent = "echo $RECOVER_ITERATION >> work.txt";
    let run = [
        "run",
        "--iterations",
        "2",
        "--attempts",
        "1",
        "--feedback",
        "test=test $(wc -l < work.txt) = 1",
    ];
    run_fails(&lane, &[&run[..], &["--", "sh", "-c", agent]].concat());
    assert_eq!(lane.read("work.txt"), "1\n2\n");
    let back = lane.here(0, &["--rollback"]);
    assert_eq!(
        (lane.read("work.txt"), &back["current_stage"]),
        ("1\n".into(), &"after_lane_tests".into()),
        "{back}"
    );
    assert_eq!(back["stage_status"], "complete");
}

// S14: retention leaves an open lane the checkpoints of its stages; once it is over they go as any others.
#[test]
fn an_open_lane_keeps_its_stages() {
    let lane = Lane::begun();
    for number in 0..4 {
        lane.write("work.txt", &number.to_string());
        lane.here(0, &["checkpoint", "create"]);
    }
    let pruned = lane.here(0, &["checkpoint", "prune", "--keep-last", "1"]);
    let kept = pruned["kept"].as_array().unwrap();
    let staged = kept
        .iter()
        .filter(|one| one["reasons"].to_string().contains("stage of an open lane"))
        .count();
    assert_eq!((staged, lane.records().len()), (2, 2), "{pruned}");
    assert_eq!(pruned["removed"].as_array().unwrap().len(), 3);
    lane.paste(&lane.record("after_lane_start")["rollback_hint"])
        .expect(0);
}

// C4: a lane that was imported says where it stood, and how its work tree is made.
#[test]
fn an_imported_lane_is_taken_up() {
    let lane = Lane::begun();
    let place = lane.env.root().join("other");
    let record = serde_json::json!([{"run_id": "R", "phase": "P2", "lane": "SL-2", "stage": "after_lane_start",
        "status": "complete", "base_branch": "main", "worktree_path": place, "timestamp": "2025-12-27T10:00:00Z"}]);
    lane.env.write("../lanes.json", record.to_string());
    lane.env.json(0, &["import", "../lanes.json"]);
    let named = ["--run", "R", "--phase", "P2", "--lane", "SL-2"];
    let resume = |code: i32, place: &str| {
        lane.env
            .json(code, &[&["-C", place, "--resume"], &named[..]].concat())
    };
    let refused = resume(4, ".");
    lane.paste(&refused["error"]["hint"]).expect(0);
    let resumed = resume(0, &place.to_string_lossy());
    assert_eq!(
        (&resumed["current_stage"], &resumed["stage_status"]),
        (&"after_lane_start".into(), &"complete".into())
    );
    let create = [
        "checkpoint",
        "create",
        "--stage",
        "after_lane_start",
        "--status",
        "in_progress",
    ];
    lane.env.json(
        0,
        &[&["-C", &place.to_string_lossy()], &create[..], &named[..]].concat(),
    );
    let records = lane.records();
    let of_lane: Vec<_> = records.iter().filter(|one| one["run_id"] == "R").collect();
    assert_eq!(
        (of_lane.len(), &of_lane[0]["status"]),
        (1, &"in_progress".into())
    );
}

// C5, C7: what is committed between two steps is the lane's in the project's own work tree too: it goes off the branch unasked,
// nobody is told to look at it, and `accept` folds it. What is committed after the last step is not known to be the lane's.
#[test]
fn a_commit_between_steps_on_the_base_branch_is_the_lanes() {
    let env = TestEnv::repo();
    let place = env.work().to_owned();
    let lane = Lane { env, place };
    let commit = |line: &str| format!("echo {line} >> a.txt; git add -A; git commit -qm {line}");
    let begun = lane.git(&["rev-parse", "HEAD"]);
    lane.stage(&lane.place, "before_lane_start", "ready", &[]);
    lane.here(
        0,
        &[
            "step",
            "a",
            "--stage",
            "after_lane_start",
            "--",
            "sh",
            "-c",
            &commit("one"),
        ],
    );
    lane.env.sh(&commit("between")).expect(0);
    lane.here(
        0,
        &["step", "t", "--stage", "after_lane_tests", "--", "true"],
    );
    let record = lane.record("after_lane_tests");
    assert_eq!(
        record["commit_shas"].as_array().map(Vec::len),
        Some(2),
        "{record}"
    );
    let back = [
        "--rollback",
        "--to",
        "stage:before_lane_start",
        "--edits",
        "discard",
    ];
    lane.here(0, &back);
    assert_eq!(lane.git(&["rev-parse", "HEAD"]), begun);
    lane.here(0, &["undo"]);
    let done = lane.here(0, &["--resume", "--", "sh", "-c", "echo three >> a.txt"]);
    assert_eq!(
        lane.here(0, &["status"])["night"]["to_look_at"],
        serde_json::json!([]),
        "{done}"
    );
    let plan = lane.here(0, &["accept", "--dry-run"]);
    assert_eq!(plan["look_at"], serde_json::json!([]), "{plan}");
    lane.env.sh(&commit("later")).expect(0);
    assert_eq!(lane.here(13, &back)["error"]["code"], "head_moved");
}

// C7: the hint of a lane that has no stage to go back to goes to its first checkpoint, and works.
#[test]
fn a_lane_whose_only_record_failed_has_a_hint_that_works() {
    for stage in [&[][..], &["--stage", "after_lane_tests"]] {
        let env = TestEnv::repo();
        let place = env.work().to_owned();
        let mut lane = Lane { env, place };
        let folder = PathBuf::from(env!("CARGO_BIN_EXE_recover"))
            .parent()
            .expect("a folder")
            .to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        lane.env
            .set("PATH", &format!("{}:{path}", folder.display()));
        lane.here(
            3,
            &[&["step", "push"][..], stage, &["--", "sh", "-c", "exit 3"]].concat(),
        );
        lane.env.write("later.txt", "later\n");
        let hint = lane.records()[0]["rollback_hint"].clone();
        let told = lane.paste(&hint).expect(0);
        assert!(
            told.stdout.contains("Back to its first checkpoint: "),
            "{}",
            told.stdout
        );
        assert!(!lane.env.exists("later.txt"));
        let refused = lane.here(4, &["--rollback"]);
        assert!(
            text(&refused["error"]["hint"]).contains("--to initial"),
            "{refused}"
        );
    }
}
