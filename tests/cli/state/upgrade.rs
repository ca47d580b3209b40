//! What another version recorded goes on: repositories of 0.1.0 (`tests/fixtures/v0.1.0`), read and written by this one.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::env::Ran;
use crate::seen::text;

/// Where it was recorded: the ledger holds that place.
const PLACE: &str = "/tmp/recover-upgrade-v0.1.0";
/// The moment at which it was asked.
const NOW: &str = "2026-10-01T13:00:01.000Z";
const LATER: &str = "2026-10-02T13:00:00.000Z";

/// The recorded repositories, unpacked.
struct Recorded {
    place: PathBuf,
    now: &'static str,
    _held: Held,
}

#[expect(dead_code, reason = "held until the test is over")]
enum Held {
    Place(InPlace),
    Elsewhere(TempDir),
}

/// The place is one for every process of the machine.
struct InPlace {
    _lock: File,
}

impl Drop for InPlace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(PLACE);
    }
}

impl Recorded {
    /// Unpacked where it was recorded.
    fn in_place() -> Self {
        let name = format!("{PLACE}.lock");
        let open = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&name);
        let lock = open.or_else(|_| File::open(&name)).expect("the lock");
        lock.lock().expect("locked");
        let _ = fs::remove_dir_all(PLACE);
        fs::create_dir(PLACE).unwrap_or_else(|error| panic!("{PLACE}: {error}"));
        Self::unpacked(PathBuf::from(PLACE), Held::Place(InPlace { _lock: lock }))
    }

    /// Unpacked elsewhere, as a project that was moved.
    fn moved() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = fs::canonicalize(folder.path()).expect("its real path");
        Self::unpacked(place, Held::Elsewhere(folder))
    }

    fn unpacked(place: PathBuf, held: Held) -> Self {
        let archive =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v0.1.0/recorded.tar.gz");
        let status = Command::new("tar")
            .arg("-xzf")
            .arg(archive)
            .arg("-C")
            .arg(&place)
            .status()
            .expect("tar starts");
        assert!(status.success());
        let recorded = Self {
            place,
            now: NOW,
            _held: held,
        };
        // With git the ledger's second name came along; without, no archive can bring what shows that it was made here.
        assert_eq!(
            recorded.json("plain", 13, &["attempt", "start"])["error"]["code"],
            "foreign_state"
        );
        recorded.json("plain", 0, &["trust", "--state", "--yes"]);
        recorded
    }

    /// A command in one of the repositories, with nothing inherited but `PATH`, on which `recover` is this version.
    fn command(&self, at: &str, program: &str) -> Command {
        let own = Path::new(env!("CARGO_BIN_EXE_recover"))
            .parent()
            .expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .current_dir(self.place.join(at))
            .env_clear()
            .envs([
                ("TZ", "UTC"),
                ("LC_ALL", "C.UTF-8"),
                ("RECOVER_TEST_SEED", "1"),
                ("RECOVER_TEST_NOW", self.now),
            ])
            .env("PATH", format!("{}:{path}", own.display()))
            .env("HOME", self.place.join("home"))
            .envs([
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ])
            .envs([
                ("GIT_AUTHOR_NAME", "A"),
                ("GIT_AUTHOR_EMAIL", "a@example.com"),
            ])
            .envs([
                ("GIT_COMMITTER_NAME", "A"),
                ("GIT_COMMITTER_EMAIL", "a@example.com"),
            ])
            .stdin(Stdio::null());
        command
    }

    fn recover(&self, at: &str, args: &[&str]) -> Ran {
        let mut command = self.command(at, env!("CARGO_BIN_EXE_recover"));
        Ran::of(&command.args(args).output().expect("recover starts"))
    }

    #[track_caller]
    fn json(&self, at: &str, code: i32, args: &[&str]) -> Value {
        self.recover(at, &[&["--json"], args].concat())
            .expect(code)
            .json()
    }

    fn sh(&self, at: &str, line: &str) -> Ran {
        Ran::of(
            &self
                .command(at, "sh")
                .args(["-c", line])
                .output()
                .expect("sh starts"),
        )
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.place.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// What 0.1.0 was asked and answered.
    fn questions(&self) -> Vec<Question> {
        let folder = self.place.join("answers");
        let mut all: Vec<PathBuf> = fs::read_dir(folder)
            .expect("the answers")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        all.sort();
        let read =
            |folder: &Path, name: &str| fs::read_to_string(folder.join(name)).expect("readable");
        all.iter()
            .map(|one| Question {
                at: read(one, "at").trim().to_owned(),
                args: read(one, "args").lines().map(str::to_owned).collect(),
                code: read(one, "code").trim().parse().expect("a code"),
                answer: serde_json::from_str(&read(one, "stdout")).expect("a document"),
            })
            .collect()
    }

    /// Asserts that every question has the answer that it had.
    #[track_caller]
    fn answers_as_before(&self) {
        for Question {
            at,
            args,
            code,
            answer,
        } in self.questions()
        {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let now = self.json(&at, code, &args);
            same(&answer, &now, &format!("{at}: recover {}", args.join(" ")));
        }
    }

    #[track_caller]
    fn has_no_problems(&self) {
        for at in ["work", "lane", "plain", "long", "cut"] {
            let doctor = self.recover(at, &["--json", "doctor"]);
            assert_eq!(doctor.code, 0, "{at}: {}{}", doctor.stdout, doctor.stderr);
            assert_eq!(doctor.json()["problems"], serde_json::json!([]), "{at}");
        }
    }

    fn write_everywhere(&self) {
        for at in ["work", "lane", "plain", "long", "cut"] {
            self.json(
                at,
                0,
                &[
                    "checkpoint",
                    "create",
                    "--run",
                    "upgrade",
                    "-m",
                    "by the new version",
                ],
            );
        }
    }
}

struct Question {
    at: String,
    args: Vec<String>,
    code: i32,
    answer: Value,
}

/// Until when a run waits, and why as a sentence: that was its `reason`, which is a word now, and is its `text`.
fn wait(answer: &Value) -> (&Value, &Value) {
    let parked = &answer["parked"];
    let [text, reason] = ["text", "reason"].map(|key| &parked[key]);
    (&parked["until"], if text.is_null() { reason } else { text })
}

/// The facts of an answer, which no version may tell otherwise.
#[track_caller]
fn same(was: &Value, is: &Value, question: &str) {
    let equal = |was: &Value, is: &Value, keys: &[&str], what: &str| {
        for key in keys {
            assert_eq!(was[key], is[key], "{question}: {what} {key}");
        }
    };
    let budget = [
        "can_retry",
        "retry_after",
        "error_count",
        "max_attempts",
        "attempts_left",
        "cooldown_until",
    ];
    let state = ["last_error", "last_error_at", "budgets"];
    assert_eq!(wait(was), wait(is), "{question}");
    match text(&was["command"]).as_str() {
        "retry-status" => equal(was, is, &[&budget[..], &state].concat(), ""),
        "status" => {
            equal(
                &was["run"],
                &is["run"],
                &["run_id", "phase", "lane", "task_id", "current_iteration"],
                "run",
            );
            // Of a supervisor that is gone one version says failed, another one paused.
            let gone = was["run"]["run_id"] == "interrupted" && is["run"]["status"] == "paused";
            assert!(
                gone || was["run"]["status"] == is["run"]["status"],
                "{question}: {}",
                is["run"]
            );
            equal(
                &was["retry"],
                &is["retry"],
                &["error_count", "max_attempts", "attempts_left"],
                "retry",
            );
            // What an attempt that was interrupted left is captured with the first write.
            if was["run"]["run_id"] != "interrupted" {
                equal(
                    &was["checkpoints"],
                    &is["checkpoints"],
                    &["count", "latest", "last_good"],
                    "checkpoints",
                );
            }
            equal(
                &was["failure"],
                &is["failure"],
                &["type", "cause", "retryable"],
                "failure",
            );
            let lists =
                [was, is].map(|status| status["iterations"].as_array().expect("a list").clone());
            assert_eq!(lists[0].len(), lists[1].len(), "{question}: iterations");
            for (was, is) in lists[0].iter().zip(&lists[1]) {
                equal(was, is, &["number", "status"], "iteration");
                let attempts =
                    [was, is].map(|one| one["attempts"].as_array().expect("a list").clone());
                assert_eq!(attempts[0].len(), attempts[1].len(), "{question}: attempts");
                for (was, is) in attempts[0].iter().zip(&attempts[1]) {
                    equal(
                        was,
                        is,
                        &["number", "outcome", "exit_code", "signal"],
                        "attempt",
                    );
                }
            }
            assert_eq!(
                was["manual_fix"]["id"], is["manual_fix"]["id"],
                "{question}"
            );
        }
        "checkpoint list" => {
            let lists =
                [was, is].map(|list| list["checkpoints"].as_array().expect("a list").clone());
            let more = lists[0]
                .first()
                .is_some_and(|one| one["run_id"] == "interrupted");
            assert!(lists[0].len() == lists[1].len() || more, "{question}: {is}");
            let facts = [
                "id",
                "seq",
                "run_id",
                "commit",
                "tree",
                "base_commit",
                "verdict",
                "after_iteration",
                "stage",
            ];
            for (was, is) in lists[0].iter().zip(&lists[1]) {
                equal(
                    was,
                    is,
                    &[&facts[..], &["pinned", "created_at", "trigger"]].concat(),
                    "checkpoint",
                );
            }
        }
        "checkpoint verify" => {
            assert_eq!(is["problems"], serde_json::json!([]), "{question}");
            assert!(
                is["checked"].as_u64() >= was["checked"].as_u64(),
                "{question}: {is}"
            );
        }
        "log" => {
            let lists = [was, is].map(|log| log["events"].as_array().expect("a list").clone());
            let has = |event: &Value| {
                lists[1]
                    .iter()
                    .any(|one| one["seq"] == event["seq"] && one["type"] == event["type"])
            };
            assert!(lists[0].len() > 3 && lists[0].iter().all(has), "{question}");
        }
        other => panic!("{question}: {other}"),
    }
}

// Nothing that was recorded is told otherwise, neither before this version wrote anything nor after it.
#[test]
fn what_0_1_0_recorded_is_told_as_it_was() {
    let recorded = Recorded::in_place();
    recorded.has_no_problems();
    recorded.answers_as_before();
    recorded.write_everywhere();
    recorded.answers_as_before();
    recorded.has_no_problems();
}

/// The statuses that must be among what was recorded.
#[test]
fn every_status_of_0_1_0_is_recorded() {
    let recorded = Recorded::in_place();
    let seen: Vec<String> = recorded
        .questions()
        .iter()
        .filter(|question| question.args[0] == "status")
        .map(|question| text(&question.answer["run"]["status"]))
        .collect();
    for status in [
        "pending",
        "in_progress",
        "paused",
        "parked",
        "failed",
        "cancelled",
        "escalated",
        "complete",
    ] {
        assert!(seen.iter().any(|one| one == status), "{status}: {seen:?}");
    }
    assert!(
        recorded
            .read("long/.ultraplan/state/events.jsonl")
            .contains("\"packed\":")
    );
}

// Each command does its work on what is there.
#[test]
#[expect(clippy::too_many_lines, reason = "one command after the other")]
fn every_command_goes_on_with_what_0_1_0_recorded() {
    let mut recorded = Recorded::in_place();
    let work = |code: i32, args: &[&str]| recorded.json("work", code, args);
    // What was rolled back can be undone, and done again.
    assert_eq!(recorded.read("work/v.txt"), "v1\n");
    work(0, &["undo", "--yes"]);
    assert_eq!(recorded.read("work/v.txt"), "v2\n");
    work(0, &["redo"]);
    assert_eq!(recorded.read("work/v.txt"), "v1\n");
    work(
        0,
        &[
            "--dry-run",
            "rollback",
            "--run",
            "complete",
            "--to",
            "good",
            "--edits",
            "discard",
        ],
    );
    work(
        0,
        &[
            "rollback", "--run", "complete", "--to", "good", "--edits", "discard",
        ],
    );
    assert!(!recorded.place.join("work/v.txt").exists());
    assert_eq!(
        recorded.read("work/work.txt"),
        "complete 1\ncomplete 2\ncomplete 3\ncomplete 4\n"
    );
    work(0, &["undo"]);
    assert_eq!(recorded.read("work/v.txt"), "v1\n");
    work(
        0,
        &[
            "checkpoint",
            "restore",
            "latest",
            "--run",
            "manual",
            "--path",
            "v.txt",
            "--edits",
            "discard",
        ],
    );

    // Looking, and writing elsewhere.
    for args in [
        &["log"][..],
        &["config"],
        &["attempt", "list", "--run", "loop"],
        &["report", "--run", "escalated", "--format", "json"],
        &["checkpoint", "show", "initial", "--run", "complete"],
        &["checkpoint", "diff", "initial", "good", "--run", "complete"],
        &["checkpoint", "verify", "--run", "complete"],
        &[
            "checkpoint",
            "export",
            "good",
            "--run",
            "complete",
            "--patch",
            "../good.patch",
        ],
        &[
            "checkpoint",
            "export",
            "good",
            "--run",
            "complete",
            "--bundle",
            "../good.bundle",
        ],
        &[
            "checkpoint",
            "export",
            "good",
            "--run",
            "complete",
            "--format",
            "seed-json",
            "-o",
            "../good.json",
        ],
        &["manual-fix", "status", "--run", "fixing"],
        &["sync"],
        &["classify", "--exit-code", "1"],
    ] {
        work(0, args);
    }
    work(0, &["checkpoint", "pin", "good", "--run", "complete"]);
    work(0, &["checkpoint", "unpin", "initial", "--run", "complete"]);
    work(
        0,
        &[
            "checkpoint",
            "prune",
            "--run",
            "complete",
            "--keep-last",
            "1",
            "--yes",
        ],
    );
    work(0, &["import", "--run", "imported", "../recovery.json"]);

    // The lane's steps that are done are not done again; its work tree goes back.
    let lane = ["--run", "P1-X", "--phase", "P1", "--lane", "SL-1"];
    let made = recorded.json(
        "lane",
        0,
        &[&["step"], &lane[..], &["make", "--", "false"]].concat(),
    );
    assert_eq!(made["step"]["status"], "done", "{made}");
    recorded.json("lane", 0, &[&["resume"], &lane[..]].concat());
    recorded.json(
        "lane",
        0,
        &[
            &["rollback"],
            &lane[..],
            &["--edits", "discard", "--commits", "keep"],
        ]
        .concat(),
    );
    assert!(!recorded.place.join("lane/lane.txt").exists());
    recorded.json("lane", 0, &["undo"]);
    assert_eq!(recorded.read("lane/lane.txt"), "lane\n");

    // No attempt is given back.
    let used = |recorded: &Recorded, at: &str, run: &str| {
        let status = recorded.json(at, 0, &["retry-status", "--run", run]);
        (
            status["error_count"].as_u64().expect("a count"),
            status["attempts_left"].as_u64().expect("a count"),
        )
    };
    // Its agent is a script: what that says of a scope is nobody's broken build, and a person has to review it.
    recorded.json(
        "work",
        8,
        &[
            "resume",
            "--run",
            "exhausted",
            "--strategy",
            "retry_same",
            "--wait",
        ],
    );
    recorded.json("work", 6, &["resume", "--run", "parked"]);
    recorded.json("work", 6, &["resume", "--run", "waiting"]);
    recorded.now = LATER;
    let before = used(&recorded, "work", "waiting");
    recorded
        .sh("work", "rm -f *.txt; git checkout -q . ")
        .expect(0);
    recorded.recover(
        "work",
        &["resume", "--run", "waiting", "--strategy", "retry_same"],
    );
    let after = used(&recorded, "work", "waiting");
    assert!(
        after.0 > before.0 && after.1 < before.1,
        "{before:?} {after:?}"
    );
    let before = used(&recorded, "plain", "second");
    recorded.json(
        "plain",
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "second",
            "--exit-code",
            "3",
            "--message",
            "boom",
        ],
    );
    assert_eq!(used(&recorded, "plain", "second").0, before.0 + 1);
    recorded.json(
        "plain",
        0,
        &[
            "rollback", "--run", "first", "--to", "@1", "--edits", "discard",
        ],
    );
    assert_eq!(recorded.read("plain/a.txt"), "one\n");
    recorded.json("plain", 0, &["undo"]);
    assert_eq!(recorded.read("plain/a.txt"), "two\n");
    recorded.json("long", 0, &["attempt", "pass", "--run", "long"]);

    // A person's fix ends as it would have.
    recorded.sh("work", "echo good > fix.txt").expect(0);
    recorded.json("work", 0, &["manual-fix", "verify", "--run", "fixing"]);
    let fixed = recorded.json("work", 0, &["manual-fix", "continue", "--run", "fixing"]);
    assert_eq!(fixed["outcome"], "complete", "{fixed}");

    // What was interrupted goes on from what was there.
    recorded.json(
        "cut",
        0,
        &[
            "rollback",
            "--run",
            "interrupted",
            "--to",
            "initial",
            "--edits",
            "discard",
        ],
    );
    assert_eq!(recorded.read("cut/a.txt"), "one\n");
    recorded.json(
        "cut",
        0,
        &[
            "resume",
            "--run",
            "interrupted",
            "--strategy",
            "retry_same",
            "--",
            "true",
        ],
    );
    recorded.has_no_problems();
}

// Hooks that 0.1.0 installed call this version, and it takes them out again.
#[test]
fn hooks_that_0_1_0_installed_go_on() {
    let recorded = Recorded::in_place();
    let settings: Value =
        serde_json::from_str(&recorded.read("work/.claude/settings.json")).expect("JSON");
    let called = text(&settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]);
    let count = |recorded: &Recorded| {
        let list = recorded.json("work", 0, &["checkpoint", "list", "--run", "claude-s1"]);
        list["checkpoints"].as_array().expect("a list").len()
    };
    let before = count(&recorded);
    let event = serde_json::json!({
        "session_id": "s1", "transcript_path": "/t.jsonl", "cwd": recorded.place.join("work"),
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "rm -rf src"}
    });
    fs::write(recorded.place.join("event.json"), event.to_string()).expect("written");
    recorded
        .sh("work", &format!("{{ {called}; }} < ../event.json"))
        .expect(0);
    assert_eq!(count(&recorded), before + 1, "the session of 0.1.0 goes on");
    recorded
        .sh("work", "echo new > new.txt; git init -q --bare ../remote.git && git push -q ../remote.git main")
        .expect(0);
    let list = recorded.json("work", 0, &["checkpoint", "list", "--all-runs"]);
    let mut all = list["checkpoints"].as_array().expect("a list").iter();
    assert!(
        all.any(|one| one["description"] == "Before git push"),
        "{list}"
    );
    for agent in ["claude", "git"] {
        recorded.json(
            "work",
            0,
            &["hook", "install", agent, "--program", "recover"],
        );
        assert_eq!(
            recorded.json("work", 0, &["hook", "uninstall", agent])["changed"],
            true,
            "{agent}"
        );
    }
    assert!(!recorded.place.join("work/.git/hooks/pre-push").exists());
}

// A repository of 0.1.0 that has another place now is taken over like any other one.
#[test]
fn a_repository_of_0_1_0_that_was_moved_is_taken_over() {
    let recorded = Recorded::moved();
    recorded.sh("work", "rm -rf .git/worktrees").expect(0);
    let doctor = recorded.json("work", 12, &["doctor"]);
    assert_eq!(doctor["problems"][0]["code"], "moved_project", "{doctor}");
    recorded.json("work", 0, &["doctor", "--rebuild"]);
    for Question {
        at,
        args,
        code,
        answer,
    } in recorded.questions()
    {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let whole = at == "work" && args[0] == "retry-status" && !args.contains(&"--check");
        // What has no checkpoint is in the ledger alone, which keeps it under its old place.
        if whole && !args.contains(&"imported") {
            let now = recorded.json("work", code, &args);
            for key in [
                "error_count",
                "attempts_left",
                "max_attempts",
                "cooldown_until",
            ] {
                assert_eq!(answer[key], now[key], "{args:?}: {key}");
            }
            assert_eq!(wait(&answer), wait(&now), "{args:?}");
        }
    }
    recorded.json(
        "work",
        0,
        &[
            "rollback", "--run", "complete", "--to", "good", "--edits", "discard",
        ],
    );
    assert_eq!(
        recorded.read("work/work.txt"),
        "complete 1\ncomplete 2\ncomplete 3\ncomplete 4\n"
    );
    recorded.json("work", 0, &["undo"]);
    assert_eq!(
        recorded.json("work", 0, &["doctor"])["problems"],
        serde_json::json!([])
    );
}
