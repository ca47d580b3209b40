//! The night in one line: what came of a run, at the head of `status`, of bare `recover` and of the report.

use serde_json::Value;

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::run::supervision::{kill, until};
use crate::terminal::Terminal;

/// Breaks what is checked, deletes a test, and does some work, in one iteration each; says what it cost.
const AGENT: &str = r#"
case $RECOVER_ITERATION in
    1) echo broken $RECOVER_ATTEMPT > base ;;
    2) rm tests/test_sum.py ;;
    *) printf 'a\nb\n' > work ;;
esac
echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"done","total_cost_usd":0.5,"usage":{"input_tokens":1000,"output_tokens":500}}'
"#;
const CHECK: &str =
    "test=! grep -q broken base || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";

fn night() -> TestEnv {
    let env = quick();
    env.write("base", "sound\n");
    env.write(
        "tests/test_sum.py",
        "def test_sum():\n    assert add(1, 2) == 3\n",
    );
    env.script("agent", AGENT);
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "base"]);
    let args = [
        "run",
        "--run",
        "n",
        "--iterations",
        "3",
        "--agent",
        "claude",
        "--feedback",
        CHECK,
        "--",
        "./agent",
    ];
    assert_eq!(env.json(8, &args)["outcome"], "escalated");
    env
}

fn head(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

// The morning: one line says what came of it, what to look at, what it took and changed, and how to go on.
#[test]
fn the_night_is_told_in_one_line_before_all_else() {
    let env = night();
    let status = env.recover(&["status"]).expect(0).stdout;
    let line = head(&status).to_owned();
    assert_eq!(
        line,
        "Run n: complete, 1 given up; 3 iterations: 1 passed, 1 given up, 1 to look at"
    );
    let lines: Vec<&str> = status.lines().skip(1).collect();
    assert_eq!(
        [lines[0], lines[1], lines[2]],
        [
            "Changed:    2 files +2 −2",
            "         2  done",
            "         3  done"
        ],
        "{status}"
    );
    // What a person must look at comes next, with the name of the test that fails.
    assert!(
        lines[3]
            .starts_with("To look at: iteration 2 may have weakened its tests (tests/test_sum.py"),
        "{status}"
    );
    assert!(
        lines[4].starts_with("To look at: iteration 1 was given up: t.py::test_a; recover ")
            && lines[4].contains(" checkpoint diff ckpt_")
            && lines[4].contains(" checkpoint restore ckpt_")
            && lines[4].contains(" --path ")
            && lines[4].ends_with(" brings them back"),
        "{status}"
    );
    assert!(
        lines[5].starts_with("Took:       ") && lines[5].ends_with(", $2.50, 7.5k tokens"),
        "{status}"
    );
    assert_eq!(
        lines[6..],
        [
            "1. Review:  recover diff initial good --patch",
            "2. Keep:    recover accept",
            "3. Fix:     recover resume --strategy retry_with_context",
            "4. Discard: recover discard",
        ],
        "{status}"
    );
    assert_eq!(env.recover(&[]).expect(0).stdout, status);
    let named = env.recover(&["status", "--run", "n"]).stdout;
    assert!(
        named.contains("\n2. Keep:    recover accept --run n\n"),
        "{named}"
    );
    let all = env.recover(&["status", "-v"]).stdout;
    assert!(
        head(&all).starts_with("complete, 1 given up; 3 iterations: 1 passed, 1 given up, 1 to look at (tests removed); ")
            && head(&all).ends_with("; 2 files +2 −2. Next: recover accept"),
        "{all}"
    );

    let document = env.json(0, &["status"]);
    let told = &document["night"];
    let count = |name: &str| told["iterations"][name].as_u64();
    assert_eq!(
        [
            count("total"),
            count("passed"),
            count("given_up"),
            count("to_look_at")
        ],
        [3, 1, 1, 1].map(Some)
    );
    assert_eq!(
        told["files"],
        serde_json::json!({"changed": 2, "added": 2, "deleted": 2})
    );
    assert_eq!(
        (&told["cost_usd"], &told["tokens"]["total"]),
        (&2.5.into(), &7500.into())
    );
    let kinds: Vec<&Value> = told["to_look_at"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["kind"])
        .collect();
    assert_eq!(kinds, ["weakened", "given_up"]);
    // What stands alone works from any folder.
    let next = format!("recover -C {} accept --run n", env.work().display());
    assert_eq!(told["next"], next.as_str());
    let report = env.recover(&["report"]).expect(0).stdout;
    let begins: Vec<&str> = report
        .lines()
        .filter(|line| !line.is_empty())
        .skip(2)
        .take(2)
        .collect();
    assert!(
        begins[0].starts_with("complete, 1 given up; 3 iterations: 1 passed")
            && begins[0].ends_with(&format!("`{next}`")),
        "{report}"
    );
    assert!(
        begins[1].starts_with("- **To look at:** iteration 2"),
        "{report}"
    );
    assert_eq!(env.json(0, &["report"])["report"]["night"], *told);
    assert!(
        env.recover(&["report", "--format", "html"])
            .expect(0)
            .stdout
            .contains("complete, 1 given up; 3 iterations")
    );
}

// What it recommends works, and is the same at all places; once it is accepted nothing is left to do.
#[test]
fn the_way_on_that_the_night_names_works() {
    let env = night();
    let end = env.recover(&["report"]).stdout;
    let accept = format!("recover -C {} accept --run n", env.work().display());
    let recommended = env.json(0, &["report"])["report"]["recommended_actions"].clone();
    let recommended: Vec<&Value> = recommended
        .as_array()
        .expect("actions")
        .iter()
        .filter(|one| one["recommended"] == true)
        .collect();
    assert_eq!(recommended.len(), 1, "{end}");
    assert_eq!(recommended[0]["command"], accept.as_str());
    let status = env.recover(&["status"]).stdout;
    assert!(
        status.contains("\n2. Keep:    recover accept\n"),
        "{status}"
    );
    assert_eq!(env.json(8, &["resume"])["next_actions"][0], accept.as_str());
    // Somebody has to look at it first.
    assert_eq!(env.error(13, &["accept"])["code"], "confirmation_needed");
    env.json(0, &["accept", "--yes", "--all"]);
    let night = env.json(0, &["status"])["night"].clone();
    assert_eq!(
        (&night["next"], &night["files"]["changed"]),
        (&Value::Null, &2.into()),
        "{night:#}"
    );
    let status = env.recover(&["status"]).stdout;
    assert!(
        head(&status).starts_with("Run n: accepted; ") && !status.contains("Keep:"),
        "{status}"
    );
}

#[test]
fn commits_from_outside_are_to_look_at() {
    let env = quick();
    env.recover(&["run", "--run", "r", "--", "sh", "-c", "echo two > a.txt"])
        .expect(0);
    let line = |env: &TestEnv| head(&env.recover(&["status", "-v"]).expect(0).stdout).to_owned();
    assert!(
        line(&env).starts_with("complete; 1 iteration: 1 passed; "),
        "{}",
        line(&env)
    );
    env.write("other", "x\n");
    env.git(&["add", "other"]);
    env.git(&["commit", "-qm", "by hand"]);
    assert!(
        line(&env).contains("1 passed, 1 commit from outside; "),
        "{}",
        line(&env)
    );
    let one = env.json(0, &["status"])["night"]["to_look_at"][0].clone();
    assert_eq!(
        one["commit"].as_str(),
        Some(env.git(&["rev-parse", "HEAD"]).trim())
    );
    assert!(
        one["text"]
            .as_str()
            .is_some_and(|text| text.ends_with("was made outside of the run (by hand)")),
        "{one}"
    );
}

// However many there are: the newest are shown, all are counted.
#[test]
fn many_commits_from_outside_are_bounded() {
    let env = quick();
    env.recover(&["run", "--run", "r", "--", "sh", "-c", "echo two > a.txt"])
        .expect(0);
    env.sh("for n in $(seq 150); do git commit -q --allow-empty -m $n; done")
        .expect(0);
    let night = env.json(0, &["status"])["night"].clone();
    assert!(
        night["summary"]
            .as_str()
            .is_some_and(|line| line.contains(", 150 commits from outside; ")),
        "{night:#}"
    );
    let shown = night["to_look_at"].as_array().expect("a list");
    let last = shown.last().expect("the last");
    assert_eq!((shown.len(), &last["commit"]), (101, &Value::Null));
    assert_eq!(
        last["text"],
        "50 more commits before them, made outside of the run"
    );
    assert_eq!(
        shown[0]["commit"].as_str(),
        Some(env.git(&["rev-parse", "HEAD"]).trim())
    );
}

#[test]
fn many_changed_files_are_counted() {
    let env = quick();
    let many = "mkdir d && for n in $(seq 150); do echo $n > d/$n; done";
    env.recover(&["run", "--run", "many", "--", "sh", "-c", many])
        .expect(0);
    let found = serde_json::json!({"changed": 150, "added": 150, "deleted": 0});
    assert_eq!(env.json(0, &["status"])["night"]["files"], found);
}

#[test]
fn a_run_without_attempts_has_no_night() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create"]);
    assert_eq!(env.json(0, &["status"])["night"], Value::Null);
    assert!(env.recover(&[]).expect(0).stdout.starts_with("Run manual"));
    assert!(
        TestEnv::repo()
            .recover(&[])
            .expect(0)
            .stdout
            .contains("recover run ")
    );
}

// Of two ways on one would be wrong: where the work can be accepted, no strategy is recommended beside that.
#[test]
fn what_can_be_accepted_is_all_that_is_recommended() {
    let env = quick();
    let check = "test=test $RECOVER_ITERATION = 2";
    let args = [
        "run",
        "--iterations",
        "2",
        "--attempts",
        "1",
        "--feedback",
        check,
        "--",
        "sh",
        "-c",
        "echo x >> a.txt",
    ];
    env.json(8, &args);
    let status = env.json(0, &["status"]);
    assert!(
        status["night"]["next"]
            .as_str()
            .is_some_and(|next| next.contains(" accept ")),
        "{status}"
    );
    let options = status["options"].as_array().expect("options");
    assert!(
        !options.is_empty() && options.iter().all(|option| option["recommended"] == false),
        "{status}"
    );
    let text = env.recover(&["status"]).expect(0).stdout;
    assert!(
        text.contains("\n1. Keep:    recover accept\n") && !text.contains("\n * "),
        "{text}"
    );
}

// runs.md: `resume` of a run at work is refused, so nothing recommends it while the supervisor waits.
#[test]
fn nothing_is_recommended_while_a_supervisor_waits() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = '300s'\n");
    let mut run = env.start(&["run", "--attempts", "2", "--", "false"]);
    until("it waits", || {
        !env.events("attempt_ended").is_empty()
            && env.json(0, &["status"])["activity"]["what"] == "waiting"
    });
    let status = env.json(0, &["status"]);
    assert_eq!(status["night"]["next"], Value::Null, "{status}");
    let text = env.recover(&["status"]).expect(0).stdout;
    assert!(!text.contains("\n1. "), "{text}");
    let report = env.json(0, &["report"])["report"].clone();
    let actions = report["recommended_actions"].as_array().expect("actions");
    assert!(
        !actions.is_empty() && actions.iter().all(|one| one["recommended"] == false),
        "{actions:?}"
    );
    let resumes = |one: &Value| {
        one["command"]
            .as_str()
            .is_some_and(|command| command.contains(" resume"))
    };
    assert!(!actions.iter().any(resumes), "{actions:?}");
    kill("-KILL", run.id());
    run.wait().expect("it ends");
    let text = env.recover(&["status"]).expect(0).stdout;
    assert!(text.contains("\n1. Resume:  recover resume\n"), "{text}");
}

/// An agent that says what it did; `work` is a shell line.
fn says(env: &TestEnv, work: &str) {
    let said = r#"say() { echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s\",\"result\":\"$1\"}"; }"#;
    env.script("agent", &format!("{said}\n{work}\n"));
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "agent"]);
}

// Ten lines at most, however much there is: the first iterations are named, the others counted.
#[test]
fn a_long_night_is_told_in_ten_lines() {
    let env = quick();
    env.write("base", "sound\n");
    says(
        &env,
        "case $RECOVER_ITERATION in 2|4|6) echo broken > base ;; \
         *) echo x > f$RECOVER_ITERATION; say \"Wrote part $RECOVER_ITERATION\" ;; esac",
    );
    let args = [
        "run",
        "--run",
        "n",
        "--iterations",
        "9",
        "--attempts",
        "1",
        "--agent",
        "claude",
        "--feedback",
        CHECK,
        "--",
        "./agent",
    ];
    env.recover(&args).expect(8);
    let status = env.recover(&["status"]).expect(0).stdout;
    let lines: Vec<&str> = status.lines().collect();
    assert!(lines.len() <= 10, "{status}");
    assert_eq!(
        lines[..4],
        [
            "Run n: complete, 3 given up; 9 iterations: 6 passed, 3 given up",
            "Changed:    6 files +6 −0",
            "         1  Wrote part 1",
            "         3  Wrote part 3 (+4 more)",
        ],
        "{status}"
    );
    for (line, iteration) in lines[4..6].iter().zip([2, 4]) {
        let begins = format!("To look at: iteration {iteration} was given up: t.py::test_a; ");
        assert!(line.starts_with(&begins), "{status}");
    }
    assert!(lines[5].ends_with(" (+1 more)"), "{status}");
    let night = env.json(0, &["status"])["night"].clone();
    assert_eq!(
        (
            &night["state"],
            &night["done"][1]["summary"],
            &night["done"][5]["iteration"]
        ),
        (
            &"complete, 3 given up".into(),
            &"Wrote part 3".into(),
            &9.into()
        )
    );
    assert_eq!(night["to_look_at"][0]["failing"][0], "t.py::test_a");
    assert_eq!(
        (
            &night["commands"][0]["purpose"],
            &night["commands"][0]["recommended"]
        ),
        (&"keep".into(), &true.into())
    );
    // The end of the run said the same.
    let table = env.recover(&["runs"]).expect(0).stdout;
    assert!(
        !table.contains("escalated") && table.contains("complete, 3 given up"),
        "{table}"
    );
}

// A run that stopped for a person says what failed, and how to mend it first.
#[test]
fn a_run_that_needs_a_person_names_the_test_that_fails() {
    let env = quick();
    env.write("base", "sound\n");
    says(
        &env,
        "echo x > f; test $RECOVER_ITERATION = 1 || echo broken > base; say Tried",
    );
    let args = [
        "run",
        "--run",
        "n",
        "--iterations",
        "3",
        "--attempts",
        "1",
        "--on-failure",
        "stop",
        "--agent",
        "claude",
        "--feedback",
        CHECK,
        "--",
        "./agent",
    ];
    env.recover(&args).expect(8);
    let status = env.recover(&["status"]).expect(0).stdout;
    assert!(
        status.starts_with("Run n: needs you (")
            && status.contains("; 2 iterations: 1 passed, 1 failed\n"),
        "{status}"
    );
    let end: Vec<&str> = status.lines().skip(1).collect();
    assert_eq!(
        end[..3],
        [
            "Changed:    1 file +1 −0; not rolled back: 1 file of iteration 2",
            "         1  Tried",
            "To look at: iteration 2 failed: t.py::test_a"
        ],
        "{status}"
    );
    assert!(
        end[4].starts_with("1. Fix:     recover resume") && end[5] == "2. Keep:    recover accept",
        "{status}"
    );
}

// What is waited for is no failure.
#[test]
fn a_run_that_waits_says_so() {
    let env = quick();
    env.script(
        "agent",
        r#"echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"session_id":"s","result":"API Error: 529 overloaded_error"}'; exit 1"#,
    );
    env.recover(&[
        "run",
        "--run",
        "n",
        "--no-wait",
        "--agent",
        "claude",
        "--",
        "./agent",
    ])
    .expect(6);
    let status = env.recover(&["status"]).expect(0).stdout;
    assert!(
        status.starts_with("Run n: waiting for the provider since ")
            && head(&status).ends_with("; 1 iteration: 1 under way")
            && status.contains("\n1. Resume:  recover resume --wait\n")
            && !status.contains("failed"),
        "{status}"
    );
    assert_eq!(env.json(0, &["status"])["night"]["state"], "waiting");
}

// `recover` alone tells of every run that ended since the last look, of all work trees; only a look on a terminal counts.
#[test]
fn what_ended_since_the_last_look_is_told_of_all_work_trees() {
    let mut env = quick();
    says(
        &env,
        "echo $RECOVER_RUN_ID > f; say \"Did $RECOVER_RUN_ID\"",
    );
    for lane in ["a", "b"] {
        let place = env.root().join(lane);
        let place = place.to_str().expect("a path");
        env.git(&["worktree", "add", "-q", place]);
        env.recover(&[
            "-C", place, "run", "--run", lane, "--agent", "claude", "--", "./agent",
        ])
        .expect(0);
    }
    let first = env.recover(&[]).expect(0).stdout;
    let place = env.root().join("b");
    assert!(
        first.starts_with("Run b: complete; 1 iteration: 1 passed\n")
            && first.contains("\n         1  Did b\n")
            && first.contains(&format!(
                "\n1. Keep:    recover -C {} accept --run b\n",
                place.display()
            ))
            && first.contains("\nAlso ended, not accepted or closed yet:\nRun a: complete; "),
        "{first}"
    );
    assert_eq!(env.recover(&[]).expect(0).stdout, first);
    let ended = env.json(0, &[])["ended"].clone();
    assert_eq!(
        (
            &ended[0]["run_id"],
            &ended[1]["run_id"],
            &ended[1]["night"]["state"]
        ),
        (&"b".into(), &"a".into(), &"complete".into())
    );
    env.set("TERM", "xterm");
    let Some(terminal) = Terminal::of(&env, &[]) else {
        return;
    };
    assert_eq!(terminal.end().0, 0);
    let seen = env.recover(&[]).expect(0).stdout;
    assert!(
        seen.starts_with("Run b: complete; ") && !seen.contains("Also ended"),
        "{seen}"
    );
}

// Whatever is recorded of a run later, it took as long as its attempts.
#[test]
fn a_run_ends_with_its_last_attempt() {
    let mut env = quick();
    env.set("RECOVER_TEST_NOW", "2030-01-01T12:00:00Z");
    env.recover(&["run", "--run", "r", "--", "sh", "-c", "echo two > a.txt"])
        .expect(0);
    let took = |env: &TestEnv| {
        env.json(0, &["status", "--run", "r"])["night"]["duration_ms"]
            .as_u64()
            .expect("a number")
    };
    let before = took(&env);
    env.set("RECOVER_TEST_NOW", "2030-01-01T12:10:00Z");
    env.recover(&["checkpoint", "create", "--run", "r"])
        .expect(0);
    env.recover(&["close", "r"]).expect(0);
    assert!(before < 60_000 && took(&env) < 60_000, "{before}");
    let report = env.json(0, &["report", "--run", "r"])["report"].clone();
    let reported = report["summary"]["duration_ms"].as_u64();
    assert!(reported.is_some_and(|took| took < 60_000), "{report:#}");
}

// What nobody worked at is no part of what it took.
#[test]
fn a_pause_is_not_what_a_run_took() {
    let mut env = quick();
    env.set("RECOVER_TEST_NOW", "2030-01-01T12:00:00Z");
    let agent = "test -e ../again || { touch ../again; echo 'FAIL' >&2; exit 1; }";
    env.recover(&[
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        agent,
    ]);
    env.set("RECOVER_TEST_NOW", "2030-01-01T20:00:00Z");
    env.json(0, &["resume", "--strategy", "retry_same"]);
    let night = env.json(0, &["status"])["night"].clone();
    let took = night["duration_ms"].as_u64();
    assert!(took.is_some_and(|took| took < 60_000), "{night}");
}

// A check that failed before the first attempt and passed since is as good as any other.
#[test]
fn a_check_that_passed_since_did_not_fail_before() {
    let env = quick();
    env.write("base", "broken\n");
    env.script(
        "agent",
        "case $RECOVER_ITERATION in 1) echo sound > base ;; *) echo broken > base ;; esac",
    );
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "base"]);
    let args = [
        "run",
        "--run",
        "r",
        "--iterations",
        "2",
        "--attempts",
        "1",
        "--feedback",
        CHECK,
        "--",
        "./agent",
    ];
    let iterations = env.json(8, &args)["iterations"].clone();
    let conditions = iterations[1]["attempts"][0]["conditions"]
        .as_array()
        .expect("a list")
        .clone();
    assert!(
        !conditions.contains(&"baseline_failing".into()),
        "{iterations:#}"
    );
}

// Nobody is blamed for the program's own deletions: an attempt is compared with what it began with.
#[test]
fn an_attempt_after_a_rollback_changed_only_what_it_did() {
    let env = night();
    let attempt = env.json(0, &["status"])["iterations"][2]["attempts"][0]["checkpoint_id"].clone();
    let shown = env
        .recover(&[
            "checkpoint",
            "show",
            attempt.as_str().expect("an id"),
            "--patch",
        ])
        .expect(0)
        .stdout;
    assert!(
        shown.contains("+++ b/work") && !shown.contains("/base"),
        "{shown}"
    );
    let files = env.json(0, &["report"])["report"]["files"]["entries"].clone();
    let of_third = |one: &&Value| {
        let attempts = one["attempts"].as_array().into_iter().flatten();
        attempts.clone().any(|attempt| attempt["iteration"] == 3)
    };
    let paths: Vec<&Value> = files
        .as_array()
        .expect("files")
        .iter()
        .filter(of_third)
        .map(|one| &one["path"])
        .collect();
    assert_eq!(paths, ["work"], "{files:#}");
}

/// The line to look at about an iteration that was given up.
fn given_up(env: &TestEnv) -> String {
    let status = env.recover(&["status"]).expect(0).stdout;
    let mut lines = status.lines();
    let line = lines.find(|line| line.contains(" was given up: "));
    line.unwrap_or_else(|| panic!("{status}")).to_owned()
}

// The commands named for the work of an iteration that was given up show all of it, and bring it back beside what came after it.
#[test]
fn given_up_work_is_brought_back_beside_what_passed() {
    let env = quick();
    let run = ["run", "--run", "n", "--iterations", "2", "--attempts", "2"];
    let check = ["--feedback", "test=! [ -e bad ]", "--", "sh", "-c"];
    let agent = "if [ $RECOVER_ITERATION = 2 ]; then echo ok > two; else echo 1 > one-$RECOVER_ATTEMPT; touch bad; fi";
    env.json(8, &[&run[..], &check, &[agent]].concat());
    assert!(!env.exists("one-1") && env.exists("two"));
    let line = given_up(&env);
    let (_, commands) = line.split_once("; recover ").expect("commands");
    let (show, back) = commands
        .split_once(" shows its changes, recover ")
        .expect("two commands");
    let back = back
        .strip_suffix(" brings them back")
        .expect("what it does");
    let words = |command: &str| -> Vec<String> { command.split(' ').map(str::to_owned).collect() };
    let typed = |command: &str| {
        let words = words(command);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        env.recover(&words).expect(0).stdout
    };
    let shown = typed(show);
    assert!(
        shown.contains("one-1") && shown.contains("one-2"),
        "{shown}"
    );
    typed(back);
    assert!(env.exists("one-1") && env.exists("one-2") && env.exists("two"));
    // What is there again is not offered.
    assert!(given_up(&env).ends_with(" shows its changes, which are still in the work tree"));
}

// A loop of one's own restores no files: nothing is to be brought back there.
#[test]
fn given_up_work_that_was_left_is_not_brought_back() {
    let env = quick();
    for (iteration, file) in [("1", "one"), ("1", "one"), ("1", "one"), ("2", "two")] {
        env.json(
            0,
            &["attempt", "start", "--run", "r", "--iteration", iteration],
        );
        env.write(file, "x\n");
        if file == "two" {
            env.json(0, &["attempt", "pass", "--run", "r"]);
        } else {
            let fail = ["attempt", "fail", "--run", "r", "--loop", "test"];
            env.json(0, &[&fail[..], &["--message", "FAIL"]].concat());
        }
    }
    let line = given_up(&env);
    assert!(
        line.ends_with(" shows its changes, which are still in the work tree"),
        "{line}"
    );
}
