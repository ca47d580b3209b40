//! `status` and bare `recover`: where a run stands and how to go on.

use serde_json::Value;

use crate::env::TestEnv;
use crate::morning::manual_fix::failed_run;

// B1, B3, B7: why it failed, and the ways on with the recommended one marked.
#[test]
fn a_failed_run_is_explained_with_the_ways_on() {
    let env = failed_run();
    let status = env.json(0, &["status"]);
    let failure = &status["failure"];
    for key in [
        "type",
        "severity",
        "iteration",
        "at",
        "message",
        "details",
        "recoverable",
        "suggested_action",
    ] {
        assert!(!failure[key].is_null(), "{key}: {failure}");
    }
    assert_eq!(
        (&failure["severity"], &failure["iteration"]),
        (&"low".into(), &2.into())
    );
    let options = status["options"].as_array().unwrap();
    let named = |name: &str| {
        options
            .iter()
            .find(|option| option["strategy"] == name)
            .unwrap()
    };
    for name in [
        "retry_same",
        "retry_with_context",
        "rollback_and_retry",
        "continue_next",
        "manual_then_continue",
    ] {
        let option = named(name);
        assert_eq!(option["available"], true, "{option}");
        assert!(
            option["label"].is_string()
                && option["description"].is_string()
                && option["reason"].is_null()
        );
    }
    assert_eq!(
        options
            .iter()
            .filter(|option| option["recommended"] == true)
            .count(),
        1
    );
    assert_eq!(named("retry_with_context")["recommended"], true);
    assert_eq!(status["checkpoints"]["count"], 3);
    assert_ne!(
        status["checkpoints"]["latest"],
        status["checkpoints"]["last_good"]
    );
    assert_eq!(
        (
            &status["retry"]["error_count"],
            &status["retry"]["can_retry"]
        ),
        (&1.into(), &false.into())
    );
    assert!(status["manual_fix"].is_null() && status["unfinished_operation"].is_null());

    let text = env.recover(&["status", "-v"]).expect(0).stdout;
    for part in [
        "feedback_failure (VERIFICATION_FAILED)",
        "iteration  2",
        "* retry_with_context",
        "cause",
        "2 of 3",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        env.recover(&[]).expect(0).stdout.lines().count(),
        env.recover(&["status"]).expect(0).stdout.lines().count(),
        "bare `recover` is `status`"
    );
}

// B3: what cannot be taken says why.
#[test]
fn options_that_are_not_there_say_why() {
    let env = TestEnv::repo();
    env.json(
        6,
        &["run", "--no-wait", "--feedback", "t=false", "--", "true"],
    );
    let next = || {
        let status = env.json(0, &["status"]);
        let options = status["options"].as_array().unwrap();
        options
            .iter()
            .find(|option| option["strategy"] == "continue_next")
            .unwrap()
            .clone()
    };
    // Also after the last iteration a person may accept what there is.
    assert_eq!(
        (&next()["available"], &next()["recommended"]),
        (&true.into(), &false.into())
    );
    env.json(0, &["manual-fix", "start"]);
    assert_eq!(
        (&next()["available"], &next()["recommended"]),
        (&false.into(), &false.into())
    );
    assert!(
        next()["reason"].as_str().unwrap().contains("manual fix"),
        "{}",
        next()
    );
}

// B5: nothing automatic helps against a full disk.
#[test]
fn an_unrecoverable_failure_shows_steps_instead_of_options() {
    let env = TestEnv::repo();
    let full = "echo 'write error: No space left on device' >&2; exit 1";
    let run = env.json(8, &["run", "--", "sh", "-c", full]);
    assert_eq!(run["outcome"], "escalated");
    let status = env.json(0, &["status"]);
    assert_eq!(
        (
            &status["failure"]["cause"],
            &status["failure"]["recoverable"]
        ),
        (&"DISK_FULL".into(), &false.into())
    );
    assert_eq!(status["options"], serde_json::json!([]));
    assert!(!status["manual_steps"].as_array().unwrap().is_empty());
    let short = env.recover(&["status"]).expect(0).stdout;
    assert!(
        short.contains("\nFirst:      Free space on the disk"),
        "{short}"
    );
    let text = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(
        text.contains("Manual steps")
            && text.contains("df -h")
            && !text.contains("What you can do next"),
        "{text}"
    );
    env.json(8, &["retry-status", "--check"]);
}

// Contract: exit 4 and 10, and how to begin.
#[test]
fn without_a_run_it_says_how_to_begin() {
    let env = TestEnv::repo();
    let error = env.json(4, &["status"]);
    assert_eq!(error["error"]["code"], "run_not_found");
    assert!(
        error["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("run --help"),
        "{error}"
    );
    assert!(env.recover(&[]).expect(0).stdout.contains("recover run"));
    assert!(env.json(0, &[])["run"].is_null());
    assert!(!env.exists(".ultraplan"), "looking makes nothing");
    let plain = TestEnv::plain();
    assert_eq!(
        plain.json(10, &["status"])["error"]["code"],
        "no_repository"
    );
    assert!(!plain.exists(".ultraplan"));
}

/// A night that ends badly.
const FAILS: &str = "echo $RECOVER_RUN_ID > a.txt; exit 3";

// Several runs that are not closed: the one that was begun last is meant, and a command that writes says so.
#[test]
fn of_several_open_runs_the_one_begun_last_is_meant() {
    let mut env = TestEnv::repo();
    for night in ["monday", "tuesday"] {
        env.json(
            6,
            &[
                "run",
                "--run",
                night,
                "--on-failure",
                "stop",
                "--",
                "sh",
                "-c",
                FAILS,
            ],
        );
    }
    env.json(0, &["checkpoint", "create", "--run", "bare"]);
    let status = env.json(0, &["status"]);
    assert_eq!(
        (&status["run"]["run_id"], &status["warnings"]),
        (&"tuesday".into(), &Value::Null)
    );
    assert_eq!(env.json(0, &["retry-status"])["run"]["run_id"], "tuesday");
    let ran = env.recover(&["manual-fix", "start", "--json"]).expect(0);
    assert_eq!(ran.json()["run"]["run_id"], "tuesday");
    let said = "using run tuesday (failed); 2 other runs are not closed: recover runs";
    assert_eq!(ran.json()["warnings"], serde_json::json!([said]));
    assert_eq!(ran.stderr, format!("note: {said}\n"));
    // Named, nothing is said.
    let named = env
        .recover(&["manual-fix", "abort", "--run", "tuesday"])
        .expect(0);
    assert_eq!(named.stderr, "");
    env.set("RECOVER_RUN_ID", "monday");
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "monday");
}

// For checkpoints the run is meant that captured something last, and one without the checkpoint asked for is passed over.
#[test]
fn of_several_runs_checkpoints_are_those_of_the_last_captured() {
    let env = TestEnv::repo();
    for night in ["monday", "tuesday"] {
        env.json(
            6,
            &[
                "run",
                "--run",
                night,
                "--on-failure",
                "stop",
                "--",
                "sh",
                "-c",
                FAILS,
            ],
        );
    }
    env.write("a.txt", "mine\n");
    let bare = env.json(0, &["checkpoint", "create"])["checkpoint"].clone();
    assert_eq!(bare["run_id"], "manual");
    assert_eq!(
        env.json(0, &["checkpoint", "create"])["checkpoint"]["run_id"],
        "manual"
    );
    let list = env.json(0, &["checkpoint", "list"]);
    assert!(
        list["checkpoints"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["run_id"] == "manual"),
        "{list}"
    );
    assert_eq!(
        env.json(0, &["checkpoint", "show", "latest"])["checkpoint"]["run_id"],
        "manual"
    );
    assert_eq!(
        env.json(0, &["checkpoint", "show", "good"])["checkpoint"]["run_id"],
        "tuesday"
    );
    let both = env.json(0, &["checkpoint", "diff", "good", "latest"]);
    let of = |id: &Value| {
        env.json(0, &["checkpoint", "show", id.as_str().unwrap()])["checkpoint"]["run_id"].clone()
    };
    assert_eq!(
        (of(&both["from"]), of(&both["to"])),
        ("tuesday".into(), "tuesday".into()),
        "{both}"
    );
    // Tuesday began with what Monday left.
    let back = env.json(0, &["rollback", "--to", "good"]);
    assert_eq!(
        (&back["run"]["run_id"], env.read("a.txt").as_str()),
        (&"tuesday".into(), "monday\n"),
        "{back}"
    );
    // Ids and numbers are looked up in all runs.
    env.json(0, &["rollback", "--to", "@1"]);
    assert_eq!(env.read("a.txt"), "one\n");
}

// A lane's id that several lanes share is the only thing that is ambiguous.
#[test]
fn an_id_that_lanes_share_needs_the_lane() {
    let env = TestEnv::repo();
    for lane in ["a", "b"] {
        env.json(0, &["checkpoint", "create", "--run", "r", "--lane", lane]);
    }
    let error = env.error(4, &["status", "--run", "r"]);
    let message = error["message"].as_str().unwrap();
    assert!(
        error["code"] == "ambiguous" && message.contains("r (-/a)") && message.contains("r (-/b)"),
        "{error}"
    );
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .ends_with(" status --run r --lane b"),
        "{error}"
    );
    assert_eq!(
        env.json(0, &["status", "--run", "r", "--lane", "a"])["run"]["lane"],
        "a"
    );
    assert_eq!(env.json(0, &["status"])["run"]["lane"], "b");
}

/// B13: an agent's own headline is the checkpoint's, and the approach of an attempt that nobody named one for.
#[test]
fn an_agents_headline_describes_the_checkpoint_b13() {
    let env = TestEnv::repo();
    let record = r###"{"type":"result","subtype":"success","is_error":false,"result":"## Set up JWT middleware\n\nMore.","session_id":"s1"}"###;
    env.write("../record", record);
    env.script("../claude", "cat ../record; echo x > made");
    let run = [
        "run",
        "--run",
        "r",
        "--feedback",
        "test=true",
        "--agent",
        "claude",
        "--",
        "../claude",
    ];
    env.json(0, &run);
    let list = env.json(0, &["checkpoint", "list"]);
    let taken = list["checkpoints"].as_array().unwrap().last().unwrap();
    assert_eq!(taken["description"], "Set up JWT middleware", "{taken}");
    let history = env.json(0, &["attempt", "list"]);
    assert!(
        history
            .to_string()
            .contains("\"approach\":\"Set up JWT middleware\""),
        "{history}"
    );
    // What was named stays.
    env.json(
        0,
        &[
            &["run", "--run", "s", "--approach", "With a library"],
            &run[3..],
        ]
        .concat(),
    );
    assert!(
        env.json(0, &["attempt", "list", "--run", "s"])
            .to_string()
            .contains("\"With a library\"")
    );
}

/// B1: severity, details and the suggested action are told as well.
#[test]
fn status_tells_severity_details_and_the_suggested_action_b1() {
    let env = TestEnv::repo();
    let check = "typecheck=printf 'src/auth.ts(23,5): error TS2322: not assignable\nsrc/auth.ts(45,1): error TS2339: no such property\n'; exit 2";
    env.json(
        8,
        &["run", "--attempts", "1", "--feedback", check, "--", "true"],
    );
    let status = env.recover(&["status", "-v"]).expect(0).stdout;
    for part in [
        "severity low",
        "TS2339",
        "suggested  retry_iteration (recoverable)",
    ] {
        assert!(status.contains(part), "{part}: {status}");
    }
}

// Of a run at work it says what goes on now, and nothing of what could be done if nobody were.
#[test]
fn a_run_at_work_tells_what_it_does() {
    let env = TestEnv::repo();
    let agent =
        "echo first; echo second; touch ../began; while [ ! -e ../end ]; do sleep 0.02; done";
    let check = "test=echo checking; touch ../checked; [ ! -e ../began ] || while [ ! -e ../over ]; do sleep 0.02; done";
    let run = env.start(&[
        "run",
        "--run",
        "r",
        "--timeout",
        "1h",
        "--feedback",
        check,
        "--",
        "sh",
        "-c",
        agent,
    ]);
    // What it printed may come a moment after it went on.
    crate::run::supervision::until("it is at work", || {
        env.root().join("began").exists()
            && env.json(0, &["status"])["activity"]["last_line"] == "second"
    });
    let status = env.json(0, &["status"]);
    let activity = &status["activity"];
    assert_eq!(
        (&activity["what"], &activity["pid"]),
        (&"agent".into(), &run.id().into()),
        "{activity}"
    );
    assert_eq!(
        (&activity["check"], &activity["waiting_until"]),
        (&Value::Null, &Value::Null)
    );
    assert!(
        activity["deadline_at"].as_str() > activity["started_at"].as_str(),
        "{activity}"
    );
    assert!(
        activity["elapsed_ms"].is_u64() && activity["last_line"] == "second",
        "{activity}"
    );
    assert_eq!(
        (&status["options"], &status["run"]["status"]),
        (&serde_json::json!([]), &"in_progress".into())
    );
    let text = env.recover(&["status"]).expect(0).stdout;
    assert!(
        text.contains(&format!("At work (pid {}): agent", run.id()))
            && !text.contains("allowed now"),
        "{text}"
    );
    std::fs::remove_file(env.root().join("checked")).unwrap();
    std::fs::write(env.root().join("end"), "").unwrap();
    crate::run::supervision::until("it is checked", || env.root().join("checked").exists());
    let activity = env.json(0, &["status"])["activity"].clone();
    assert_eq!(
        (&activity["what"], &activity["check"]),
        (&"check".into(), &"test".into()),
        "{activity}"
    );
    std::fs::write(env.root().join("over"), "").unwrap();
    crate::run::supervision::ended(run).expect(0);
    assert_eq!(env.json(0, &["status"])["activity"], Value::Null);
    let text = env.recover(&["status"]).expect(0).stdout;
    assert!(
        text.starts_with("Run r: complete; 1 iteration: 1 passed\n"),
        "{text}"
    );
}

// The way on is the same at a run's end, in status and in the report, whether trying again helps or not.
#[test]
fn one_way_on_is_recommended_everywhere() {
    for (line, attempts) in [
        ("echo 'No space left on device' >&2; exit 1", "3"),
        ("echo 'assert 1 == 2'; exit 1", "1"),
    ] {
        let env = TestEnv::repo();
        let args = [
            "run",
            "--run",
            "r",
            "--no-wait",
            "--attempts",
            attempts,
            "--",
            "sh",
            "-c",
            line,
        ];
        let end = env.recover(&args).stdout;
        let end = end
            .lines()
            .find_map(|line| line.strip_prefix("1. "))
            .and_then(|line| line.split_once(": "))
            .expect("a way on")
            .1
            .trim()
            .to_owned();
        let status = env.recover(&["status", "-v"]).expect(0).stdout;
        let next = status
            .lines()
            .find_map(|line| line.strip_prefix("Next: "))
            .expect("a way on")
            .to_owned();
        let report = env.json(0, &["report", "--format", "json"])["report"].clone();
        let actions = report["recommended_actions"]
            .as_array()
            .expect("actions")
            .clone();
        let recommended: Vec<&Value> = actions
            .iter()
            .filter(|action| action["recommended"] == true)
            .collect();
        assert_eq!(recommended.len(), 1, "{actions:#?}");
        let place = format!("recover -C {} ", env.work().display());
        assert_eq!(recommended[0]["command"], end.as_str(), "{line}");
        assert_eq!(
            end.strip_prefix(&place),
            next.strip_prefix("recover "),
            "{line}"
        );
    }
}

// runs.md: a size is a number also where there are too many checkpoints to read each of them, and after some are gone.
#[test]
fn a_run_of_many_checkpoints_has_a_size() {
    let env = TestEnv::repo();
    for number in 0..103 {
        env.write("a.txt", format!("{number}\n{}", "x".repeat(1000)));
        env.recover(&["-q", "checkpoint", "create"]).expect(0);
    }
    let size = || {
        env.json(0, &["status"])["size_bytes"]
            .as_u64()
            .expect("a number")
    };
    let counted = size();
    assert!((103_000..1_000_000).contains(&counted), "{counted}");
    let listed = env.json(0, &["runs"])["runs"][0]["size_bytes"]
        .as_u64()
        .expect("a number");
    assert!(
        counted.abs_diff(listed) < counted / 10,
        "{counted} counted, {listed} found"
    );
    // What no version before this one noted is found out.
    std::fs::remove_file(env.work().join(".ultraplan/state/recover/sizes")).expect("it was noted");
    assert_eq!(size(), listed);
    assert_eq!(size(), listed);
    env.recover(&[
        "-q",
        "--yes",
        "checkpoint",
        "prune",
        "--keep-last",
        "2",
        "--max-age",
        "0s",
    ])
    .expect(0);
    assert!(size() < listed / 2);
}

/// However much of a person's work it destroyed, one line says so, and one command brings it back.
#[test]
fn the_first_line_of_much_lost_work_is_short() {
    let env = TestEnv::repo();
    for number in 0..60 {
        env.write(&format!("mine/{number}.txt"), "mine\n");
    }
    env.json(
        0,
        &[
            "run",
            "--",
            "sh",
            "-c",
            "for f in mine/*; do echo theirs > $f; done",
        ],
    );
    let said = env.recover(&["status"]).expect(0).stdout;
    let line = said.lines().find(|line| line.contains("of yours"));
    let line = line.expect("it is said");
    assert!(line.len() < 300, "{line}");
    assert!(line.contains("57 more"), "{line}");
    assert!(line.contains("accept --uncommitted keep"), "{line}");
    env.json(0, &["accept", "--uncommitted", "keep"]);
    assert_eq!(env.read("mine/7.txt"), "mine\n");
}

/// Before a full disk has room nothing is worth another attempt: that comes first.
#[test]
fn what_a_machine_lacks_comes_before_another_attempt() {
    let env = TestEnv::repo();
    let fails = "echo 'error: write failed: No space left on device' >&2; exit 1";
    let said = env
        .recover(&["run", "--", "sh", "-c", fails])
        .expect(8)
        .stdout;
    let at = |part: &str| said.find(part).unwrap_or_else(|| panic!("{part}: {said}"));
    assert!(
        at("First:      Free space on the disk") < at("1. Fix:"),
        "{said}"
    );
}
