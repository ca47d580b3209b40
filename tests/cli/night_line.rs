//! The night in one line: what came of a run, at the head of `status`, of bare `recover` and of the report.

use serde_json::Value;

use crate::env::TestEnv;
use crate::live::{kill, until};
use crate::run::quick;

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
    assert!(
        line.starts_with(
            "night: 3 iterations: 1 passed, 1 given up, 1 to look at (tests removed); "
        ),
        "{status}"
    );
    assert!(
        line.ends_with("; 2 files +2 −2. Next: recover accept"),
        "{status}"
    );
    assert!(line.contains(", $2.50, 7.5 k tokens; "), "{status}");
    // What a person must look at comes next.
    let look: Vec<&str> = status.lines().skip(1).take(3).collect();
    assert!(
        look[0].starts_with(
            "To look at: iteration 2 may have weakened what judges it (tests/test_sum.py"
        ),
        "{status}"
    );
    assert_eq!(
        look[1..],
        ["To look at: iteration 1 was given up", ""],
        "{status}"
    );
    assert_eq!(head(&env.recover(&[]).expect(0).stdout), line);
    assert_eq!(
        head(&env.recover(&["status", "--run", "n"]).stdout),
        format!("{line} --run n")
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
        begins[0].starts_with("night: 3 iterations: 1 passed")
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
            .contains("night: 3 iterations")
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
        status.contains("\nNext: recover accept --run n\n"),
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
    assert!(!head(&env.recover(&["status"]).stdout).contains("Next"));
}

#[test]
fn commits_from_outside_are_to_look_at() {
    let env = quick();
    env.recover(&["run", "--run", "r", "--", "sh", "-c", "echo two > a.txt"])
        .expect(0);
    let line = |env: &TestEnv| head(&env.recover(&["status"]).expect(0).stdout).to_owned();
    assert!(
        line(&env).starts_with("night: 1 iteration: 1 passed; "),
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

// Many files are compared once.
#[test]
fn what_a_run_changed_is_found_out_once() {
    let env = quick();
    let many = "mkdir d && for n in $(seq 150); do echo $n > d/$n; done";
    env.recover(&["run", "--run", "many", "--", "sh", "-c", many])
        .expect(0);
    let files = || env.json(0, &["status"])["night"]["files"].clone();
    let found = serde_json::json!({"changed": 150, "added": 150, "deleted": 0});
    assert_eq!(files(), found);
    let noted = env
        .sh("find .ultraplan/state -name changed")
        .stdout
        .trim()
        .to_owned();
    let text = env.read(&noted);
    assert!(text.ends_with(" 150 150 0 changes\n"), "{text}");
    env.put(&noted, text.replace(" 150 150 0 ", " 150 7 0 "));
    assert_eq!(files()["added"], 7, "it is not found out again");
    // Another good checkpoint is another comparison.
    env.put(
        &noted,
        text.replacen(|c: char| c.is_ascii_hexdigit(), "g", 1),
    );
    assert_eq!(files(), found);
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
        text.contains("Next: recover accept") && !text.contains("\n * "),
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
    assert!(!text.contains("Next:"), "{text}");
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
    assert!(text.contains("Next: recover resume"), "{text}");
}
