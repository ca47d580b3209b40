//! `report`: what went wrong, what was tried, what to do now, for people, browsers and scripts.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::seen::{paths, text};

/// Text that would break out of a table, a fence, a tag, a terminal or a line, with secrets in it.
const HOSTILE: &str = "FAILED <script>alert('x')</script> | ``` </pre><img src=//evil.example/x> \u{1b}[31m# **b** \
                       password=hunter22secret <!-- \u{202e}";

/// A run whose second iteration fails until it is given up, with approach and task.
fn escalated() -> TestEnv {
    let env = quick();
    env.script(
        "agent.sh",
        "echo $RECOVER_ITERATION.$RECOVER_ATTEMPT >> log.txt; [ $RECOVER_ITERATION = 2 ] && echo bad > state || echo good > state",
    );
    env.script(
        "check.sh",
        "grep -qx good state || { cat hostile.txt; echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }",
    );
    env.write("hostile.txt", format!("{HOSTILE}\n"));
    env.write("state", "good\n");
    let mut args = vec![
        "run",
        "--run",
        "esc",
        "--task",
        "T-1",
        "--iterations",
        "3",
        "--approach",
        "Use <async> | await",
    ];
    args.extend(["--feedback", "test=./check.sh", "--", "./agent.sh"]);
    env.json(8, &args);
    env
}

fn sections(markdown: &str) -> Vec<&str> {
    let mut fence: Option<usize> = None;
    let mut found = Vec::new();
    for line in markdown.lines() {
        let ticks = line.trim_start().chars().take_while(|c| *c == '`').count();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(open) if ticks >= open => fence = None,
            None => found.extend(line.strip_prefix("### ")),
            Some(_) => {}
        }
    }
    assert!(fence.is_none(), "a fence is not closed\n{markdown}");
    found
}

// A6: the sections of an escalation, with attempts, the error, files, commands and the story.
#[test]
fn an_escalated_run_is_reported_in_markdown() {
    let env = escalated();
    let report = env.recover(&["report"]).expect(0).stdout;
    let expected = [
        "Summary",
        "Attempts Made",
        "Error Details",
        "Files Involved",
        "Recommended Actions",
        "Timeline",
    ];
    assert_eq!(sections(&report), expected, "{report}");
    for part in [
        "# Run report: `esc`",
        "## Stuck Subtask: T-1/iteration-2",
        "Attempt 3 of iteration 2: Use \\<async\\> \\| await - FAILED",
        "VERIFICATION_FAILED",
        "skip + escalate",
        "- `state` (modified",
        "retries exhausted",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    assert!(
        report.contains(&format!("(cd {} && ./check.sh)", env.work().display())),
        "{report}"
    );
    assert!(
        report.contains(&format!(
            "recover -C {} manual-fix start --run esc",
            env.work().display()
        )),
        "{report}"
    );
}

// A6: what others wrote ends no table row and no fence, and secrets are nowhere.
#[test]
fn hostile_text_stays_text() {
    let env = escalated();
    let approach = "Line one\n## Not a heading\n| a | b |";
    env.json(
        0,
        &[
            "attempt",
            "start",
            "--run",
            "loop",
            "--subtask",
            HOSTILE,
            "--approach",
            approach,
        ],
    );
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "loop",
            "--message",
            HOSTILE,
            "--exit-code",
            "1",
        ],
    );
    env.write("<b>&\n|`.txt", "x");
    env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "loop",
            "--message",
            HOSTILE,
            "--exit-code",
            "1",
        ],
    );
    for run in ["esc", "loop"] {
        let markdown = env.recover(&["report", "--run", run]).expect(0).stdout;
        assert_eq!(sections(&markdown).len(), 6, "{markdown}");
        assert!(
            !markdown.lines().any(|line| line.starts_with("## Not")),
            "{markdown}"
        );
        let table = markdown.split("### Timeline").nth(1).expect("a timeline");
        for row in table.lines().filter(|line| line.starts_with('|')) {
            let bars = row
                .replace("\\\\", "")
                .replace("\\|", "")
                .matches('|')
                .count();
            assert_eq!(bars, 4, "{row}");
        }
        let html = env
            .recover(&["report", "--run", run, "--format", "html"])
            .expect(0)
            .stdout;
        assert_sound(&html);
        let json = env
            .recover(&["report", "--run", run, "--json"])
            .expect(0)
            .stdout;
        for written in [markdown, html, json] {
            assert!(!written.contains("hunter22secret"), "{written}");
            let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
            assert!(!written.contains(steers), "{written}");
        }
    }
    let loops = env.json(0, &["report", "--run", "loop"]);
    assert!(
        paths(&loops["report"]["files"]["entries"]).contains(&"<b>&\n|`.txt".to_owned()),
        "{loops}"
    );
}

/// The page is balanced, closed, and refers to nothing outside of itself.
#[track_caller]
fn assert_sound(html: &str) {
    let start = html.find("<html").expect("html");
    let mut open: Vec<String> = Vec::new();
    let mut rest = &html[start..];
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest
            .find('>')
            .unwrap_or_else(|| panic!("a tag that does not end: {rest}"));
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        assert!(!name.is_empty(), "no tag: <{tag}>");
        assert!(
            ![
                "script", "img", "link", "iframe", "object", "embed", "a", "form", "input"
            ]
            .contains(&name.as_str())
        );
        if tag.starts_with('/') {
            assert_eq!(
                open.pop().as_deref(),
                Some(name.as_str()),
                "</{tag}> closes another\n{html}"
            );
        } else {
            assert_eq!(tag.matches('"').count() % 2, 0, "a quote is open: <{tag}>");
            for attribute in [" style=", " on", " href", " src"] {
                assert!(!tag.contains(attribute), "<{tag}>");
            }
            if name != "meta" && !tag.ends_with('/') {
                open.push(name.clone());
            }
        }
        rest = if name == "style" && !tag.starts_with('/') {
            &after[after.find("</style>").expect("its end")..]
        } else {
            after
        };
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    let style = html
        .split("<style")
        .nth(1)
        .and_then(|rest| rest.split("</style>").next())
        .expect("a style sheet");
    assert!(
        !style.contains("url(") && !style.contains("@import"),
        "the style sheet loads something"
    );
    let nonce = style.split('"').nth(1).expect("a nonce");
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"
    );
    assert!(html.contains(&policy), "{html}");
    assert!(html.contains("prefers-color-scheme: dark") && html.contains("@media print"));
}

// A6, B1: the same content for scripts.
#[test]
fn the_document_holds_the_report() {
    let env = escalated();
    let document = env.json(0, &["report"]);
    let report = &document["report"];
    assert_eq!(
        (&document["command"], &report["kind"]),
        (&"report".into(), &"escalation".into())
    );
    let summary = &report["summary"];
    assert_eq!(
        (&summary["run"]["run_id"], &summary["outcome"]),
        (&"esc".into(), &"escalated".into())
    );
    assert!(
        text(&summary["stopped_because"]).contains("in a circle"),
        "{summary}"
    );
    assert_eq!(summary["stopped_by"], "cause");
    for key in [
        "type",
        "cause",
        "severity",
        "iteration",
        "attempt",
        "at",
        "message",
        "recoverable",
        "suggested_action",
    ] {
        assert!(!summary["failure"][key].is_null(), "{key}: {summary}");
    }
    assert_eq!(
        (
            &summary["attempts"]["total"],
            &summary["attempts"]["failed"]
        ),
        (&5.into(), &3.into())
    );
    assert_eq!(summary["iterations"]["skipped"], 1);
    assert_eq!(summary["budgets"][0]["used"], 3);
    assert_eq!(report["stuck_subtasks"][0]["subtask_id"], "T-1/iteration-2");
    let attempts = report["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 5);
    for key in [
        "iteration",
        "number",
        "started_at",
        "duration_ms",
        "outcome",
        "exit_code",
        "checkpoint_id",
        "log_path",
    ] {
        assert!(!attempts[3][key].is_null(), "{key}: {}", attempts[3]);
    }
    assert_eq!(
        attempts[3]["changes"],
        serde_json::json!({"modified": 1, "created": 0, "deleted": 0})
    );
    let details = text(&report["error_details"][0]["text"]);
    assert!(
        details.contains("assert 1 == 2") && details.len() <= 8 << 10,
        "{details}"
    );
    assert_eq!(paths(&report["files"]["entries"]), ["log.txt", "state"]);
    assert_eq!(
        report["files"]["entries"][0]["attempts"][0],
        serde_json::json!({"iteration": 1, "attempt": 1})
    );
    for key in ["last_good", "initial", "latest"] {
        assert!(
            report["checkpoints"][key]["id"].is_string(),
            "{key}: {report}"
        );
    }
    let recommended = report["recommended_actions"].as_array().unwrap();
    let commands: Vec<String> = recommended
        .iter()
        .filter_map(|action| action["command"].as_str().map(str::to_owned))
        .collect();
    assert!(
        commands
            .iter()
            .any(|command| command.contains("resume --strategy retry_with_context")),
        "{commands:?}"
    );
    let best = |action: &&Value| action["recommended"] == true;
    assert_eq!(
        recommended.iter().filter(best).count(),
        1,
        "{recommended:?}"
    );
    let moments = report["timeline"].as_array().unwrap();
    let times: Vec<&str> = moments
        .iter()
        .map(|moment| moment["at"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let kinds: Vec<&str> = moments
        .iter()
        .map(|moment| moment["kind"].as_str().unwrap())
        .collect();
    for kind in ["run", "attempt", "checkpoint", "decision", "iteration"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    // Read as a command of its own, `--format json` is the same document.
    let plain: Value = serde_json::from_str(
        &env.recover(&["report", "--format", "json"])
            .expect(0)
            .stdout,
    )
    .unwrap();
    assert_eq!(plain["report"]["attempts"], report["attempts"]);
}

// S13: commands that are recommended work as they stand, from any folder.
#[test]
fn recommended_commands_work() {
    let env = escalated();
    let document = env.json(0, &["report"]);
    let bin = env.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_recover"), bin.join("recover")).unwrap();
    let mut tried = 0;
    for action in document["report"]["recommended_actions"]
        .as_array()
        .unwrap()
    {
        let Some(command) = action["command"].as_str() else {
            continue;
        };
        let command = command.replace("recover -C", "recover --dry-run -C");
        let ran = env.sh(&format!("cd / && PATH={}:$PATH; {command}", bin.display()));
        let by_design = if command.contains("check.sh") {
            0
        } else {
            ran.code
        };
        assert!(
            by_design == 0 || command.contains("manual-fix"),
            "{command}\n{ran:?}"
        );
        tried += 1;
    }
    assert!(tried >= 6, "{document}");
}

// A6, S13: a bad end leaves the report beside the logs, and says where.
#[test]
fn a_bad_end_leaves_a_report() {
    let env = escalated();
    let kept = ".ultraplan/state/recover/runs/esc/report.md";
    assert!(env.read(kept).contains("## Stuck Subtask: T-1/iteration-2"));
    let mode = std::fs::metadata(env.work().join(kept))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "it quotes logs");

    // Escalated at once, by a loop that runs its own commands.
    let full = [
        "--message",
        "No space left on device",
        "--stderr",
        "-",
        "--exit-code",
        "1",
    ];
    let failed = env
        .recover(&[&["--json", "attempt", "fail", "--run", "full"], &full[..]].concat())
        .expect(0);
    let path = text(&failed.json()["report_path"]);
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("DISK_FULL"),
        "{path}"
    );
    assert_eq!(
        failed
            .stderr
            .lines()
            .filter(|line| *line == format!("report: {path}"))
            .count(),
        1,
        "{}",
        failed.stderr
    );

    // Failed, and stopped at once.
    let failed = env.recover(&[
        "run",
        "--run",
        "inc",
        "--on-failure",
        "stop",
        "--",
        "sh",
        "-c",
        "exit 3",
    ]);
    let path = env
        .work()
        .join(".ultraplan/state/recover/runs/inc/report.md");
    assert!(
        failed
            .stderr
            .contains(&format!("report: {}\n", path.display())),
        "{}",
        failed.stderr
    );
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains("# Incident report: `inc`")
    );

    // What ends well leaves none.
    let done = env.recover(&["run", "--run", "ok", "--", "true"]).expect(0);
    assert!(
        !done.stderr.contains("report:")
            && !env.exists(".ultraplan/state/recover/runs/ok/report.md")
    );
}

// A6: that the report cannot be written changes nothing about the outcome.
#[test]
fn a_report_that_cannot_be_written_is_only_warned_of() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create", "--run", "other"]);
    env.write(".ultraplan/state/recover/runs/r/report.md/in the way", "x");
    let ran = env.recover(&[
        "--json",
        "run",
        "--run",
        "r",
        "--on-failure",
        "stop",
        "--",
        "sh",
        "-c",
        "exit 3",
    ]);
    let document = ran.json();
    assert_eq!(
        (&document["outcome"], &document["report_path"]),
        (&"failed".into(), &Value::Null)
    );
    assert!(
        ran.stderr.contains("the report was not written"),
        "{}",
        ran.stderr
    );
}

// A3, A6: one subtask only.
#[test]
fn one_subtask_is_reported() {
    let env = escalated();
    let one = env.json(0, &["report", "--subtask", "T-1/iteration-1"]);
    assert_eq!(one["report"]["subtask"], "T-1/iteration-1");
    assert_eq!(
        (
            one["report"]["attempts"].as_array().unwrap().len(),
            &one["report"]["stuck_subtasks"]
        ),
        (1, &serde_json::json!([]))
    );
    let moments = one["report"]["timeline"].as_array().unwrap();
    assert!(
        !moments.iter().any(|moment| moment["iteration"] == 2),
        "{moments:?}"
    );
    assert!(
        env.recover(&["report", "--subtask", "T-1/iteration-1"])
            .expect(0)
            .stdout
            .contains("## Subtask: T-1/iteration-1")
    );
    let error = env.json(4, &["report", "--subtask", "nope"]);
    assert_eq!(error["error"]["code"], "subtask_not_found");
    assert!(
        text(&error["error"]["message"]).contains("T-1/iteration-2"),
        "{error}"
    );
    assert!(
        text(&error["error"]["hint"]).contains("attempt list"),
        "{error}"
    );
}

// Contract: to a file, whole or not at all, in the form that its name says; what is no report stays.
#[test]
fn a_report_is_written_to_a_file() {
    let mut env = escalated();
    // Two reports of the same moment are the same.
    env.set("RECOVER_TEST_NOW", "2040-01-01T00:00:00.000Z");
    let said = env.recover(&["report", "-o", "out.html"]).expect(0).stdout;
    assert_eq!(
        said,
        format!("Wrote {}\n", env.work().join("out.html").display())
    );
    assert_sound(&env.read("out.html"));
    for (name, begins) in [
        ("out.md", "<!-- recover report -->\n# Run report"),
        ("out.json", "{\n  \"schema_version\": 1"),
        ("out", "<!--"),
    ] {
        for _ in 0..2 {
            let document = env.json(0, &["report", "-o", name]);
            assert_eq!(document["path"], env.work().join(name).to_str().unwrap());
            assert!(document.get("report").is_none(), "{document}");
        }
        assert!(env.read(name).starts_with(begins), "{}", env.read(name));
    }
    assert!(
        env.recover(&["report", "--format", "md", "-o", "odd.html"])
            .expect(0)
            .stdout
            .contains("odd.html")
    );
    assert!(env.read("odd.html").contains("### Summary"));
    assert_eq!(
        env.recover(&["report", "-o", "-"]).expect(0).stdout,
        env.recover(&["report"]).expect(0).stdout
    );

    env.write("mine.md", "my own words\n");
    let error = env.json(13, &["report", "-o", "mine.md"]);
    assert_eq!(
        (&error["error"]["code"], env.read("mine.md").as_str()),
        (&"already_exists".into(), "my own words\n")
    );
    env.json(0, &["--yes", "report", "-o", "mine.md"]);
    assert!(env.read("mine.md").contains("### Summary"));

    let planned = env.json(0, &["--dry-run", "report", "-o", "later.md"]);
    assert_eq!(
        (&planned["changed"], env.exists("later.md")),
        (&false.into(), false)
    );
    for (code, target) in [
        (1, "no/such/folder/r.md"),
        (2, "/dev/null"),
        (2, "."),
        (2, "/"),
    ] {
        let error = env.json(code, &["report", "-o", target]);
        assert!(error["error"]["hint"].is_string(), "{target}: {error}");
    }
    assert!(std::fs::metadata("/dev/null").unwrap().permissions().mode() & 0o170_000 != 0o100_000);
}

// Contract: exit codes where there is nothing to report.
#[test]
fn without_a_run_there_is_no_report() {
    let env = TestEnv::repo();
    let error = env.json(4, &["report"]);
    assert_eq!(error["error"]["code"], "run_not_found");
    assert!(
        text(&error["error"]["hint"]).contains("run --help"),
        "{error}"
    );
    assert!(!env.exists(".ultraplan"), "looking makes nothing");
    TestEnv::plain().json(10, &["report"]);
    env.recover(&["report", "--format", "pdf"]).expect(2);
    env.json(0, &["checkpoint", "create"]);
    env.json(4, &["report", "--run", "nope"]);
}

// S12, S13: every run has its story: without attempts, complete, waiting, without git.
#[test]
fn every_run_has_a_report() {
    let env = TestEnv::repo();
    env.json(0, &["checkpoint", "create", "--run", "bare"]);
    let bare = env.json(0, &["report", "--run", "bare"]);
    assert_eq!(
        (
            &bare["report"]["kind"],
            &bare["report"]["summary"]["attempts"]["total"]
        ),
        (&"run".into(), &0.into())
    );
    env.json(
        0,
        &["run", "--run", "done", "--iterations", "2", "--", "true"],
    );
    let done = env.json(0, &["report", "--run", "done"]);
    assert_eq!(
        (
            &done["report"]["summary"]["outcome"],
            &done["report"]["recommended_actions"]
        ),
        (&"complete".into(), &serde_json::json!([]))
    );
    env.json(
        6,
        &[
            "run",
            "--run",
            "wait",
            "--no-wait",
            "--feedback",
            "t=false",
            "--",
            "true",
        ],
    );
    let wait = env.json(0, &["report", "--run", "wait"]);
    assert_eq!(wait["report"]["summary"]["outcome"], "paused");
    let ways = wait["report"]["recommended_actions"]
        .as_array()
        .expect("ways");
    assert!(
        ways.iter().any(|way| way["command"]
            .as_str()
            .is_some_and(|way| way.contains("resume --wait"))),
        "{wait}"
    );
    // What is recommended is first.
    let recommended = |way: &serde_json::Value| way["recommended"] == true;
    assert!(
        recommended(&ways[0]) && !ways[1..].iter().any(recommended),
        "{wait}"
    );
    assert!(
        text(&bare["report"]["recommended_actions"][0]["command"]).contains("attempt start"),
        "{bare}"
    );
    env.json(0, &["attempt", "start", "--run", "live"]);
    let live = env.json(0, &["report", "--run", "live"]);
    assert_eq!(
        (
            &live["report"]["summary"]["outcome"],
            &live["report"]["attempts"][0]["outcome"]
        ),
        (&Value::Null, &Value::Null)
    );
    for run in ["bare", "done", "wait", "live"] {
        assert_sound(
            &env.recover(&["report", "--run", run, "--format", "html"])
                .expect(0)
                .stdout,
        );
        assert_eq!(
            sections(&env.recover(&["report", "--run", run]).expect(0).stdout).len(),
            6
        );
    }
    let plain = TestEnv::plain();
    plain.recover(&[
        "run",
        "--run",
        "p",
        "--on-failure",
        "stop",
        "--",
        "sh",
        "-c",
        "echo x > f; exit 1",
    ]);
    let report = plain.json(0, &["report", "--run", "p"]);
    assert_eq!(paths(&report["report"]["files"]["entries"]), ["f"]);
}

// B10, B17: rollbacks and what took them back are in the story; what a rollback put back is no attempt's work.
#[test]
fn rollbacks_and_undos_are_told() {
    let env = escalated();
    env.json(0, &["rollback", "--run", "esc", "--to", "iteration:1"]);
    env.json(0, &["undo"]);
    let report = env.json(0, &["report", "--run", "esc"]);
    let moments = report["report"]["timeline"].as_array().unwrap();
    let kinds: Vec<&str> = moments
        .iter()
        .map(|moment| moment["kind"].as_str().unwrap())
        .collect();
    let of = |kind: &str| {
        kinds
            .iter()
            .position(|found| *found == kind)
            .unwrap_or_else(|| panic!("{kind}: {kinds:?}"))
    };
    assert!(of("rollback") < of("undo"), "{kinds:?}");

    let env = quick();
    env.script(
        "check.sh",
        "test $RECOVER_ATTEMPT != 1 || { echo 'error[E0425]: cannot find value'; echo 'error: could not compile'; exit 101; }",
    );
    let body = "echo $RECOVER_ATTEMPT > only-$RECOVER_ATTEMPT";
    env.json(
        0,
        &[
            "run",
            "--run",
            "b",
            "--feedback",
            "build=./check.sh",
            "--",
            "sh",
            "-c",
            body,
        ],
    );
    let report = env.json(0, &["report", "--run", "b"]);
    let attempts = report["report"]["attempts"].as_array().unwrap();
    assert_eq!(
        attempts[1]["changes"],
        serde_json::json!({"modified": 0, "created": 1, "deleted": 0}),
        "{report}"
    );
}

/// A trace: the run, its iterations, attempts, checks and waits, each within the one that it is part of.
#[test]
fn a_run_is_a_trace_for_a_collector() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2030-03-01T22:00:00.000Z");
    let check = "test=grep -q good a.txt || { echo 'FAILED: it is not good'; exit 1; }";
    let words = ["run", "--run", "r", "--attempts", "2", "--feedback", check];
    let agent = "[ -e ../second ] && echo good > a.txt; touch ../second";
    env.json(0, &[&words[..], &["--", "sh", "-c", agent]].concat());
    let report = || -> Value {
        let ran = env.recover(&["report", "--format", "otlp"]).expect(0);
        serde_json::from_str(&ran.stdout).expect("JSON")
    };
    let document = report();
    assert_eq!(document, report(), "ids are the same each time");

    let resource = &document["resourceSpans"][0];
    assert_eq!(
        resource["resource"]["attributes"][0]["value"]["stringValue"],
        "recover"
    );
    let spans = resource["scopeSpans"][0]["spans"]
        .as_array()
        .expect("spans");
    let names: Vec<&str> = spans
        .iter()
        .map(|span| span["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        names,
        [
            "run",
            "iteration 1",
            "attempt 1",
            "check test",
            "wait 1",
            "attempt 2",
            "check test"
        ]
    );
    let number = |span: &Value, name: &str| -> u128 {
        span[name]
            .as_str()
            .expect(name)
            .parse()
            .expect("nanoseconds")
    };
    let mut ids: Vec<&Value> = spans.iter().map(|span| &span["spanId"]).collect();
    ids.sort_by_key(|id| id.as_str());
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "{document:#}");
    for span in spans {
        assert_eq!(span["traceId"].as_str().expect("an id").len(), 32);
        assert!(
            number(span, "startTimeUnixNano") <= number(span, "endTimeUnixNano"),
            "{span:#}"
        );
        let parent = spans
            .iter()
            .find(|parent| parent["spanId"] == span["parentSpanId"]);
        assert_eq!(parent.is_none(), span["name"] == "run", "{span:#}");
        if let Some(parent) = parent {
            assert!(
                number(parent, "startTimeUnixNano") <= number(span, "startTimeUnixNano")
                    && number(span, "endTimeUnixNano") <= number(parent, "endTimeUnixNano"),
                "{span:#} in {parent:#}"
            );
        }
    }
    let failed = &spans[2];
    assert_eq!(failed["status"]["code"], 2);
    let message = failed["status"]["message"].as_str().expect("a message");
    assert!(message.contains("it is not good"), "{failed:#}");
    assert_eq!(spans[0]["status"]["code"], 1);
}

/// A run that is done needs nobody, whatever was given up in it; what attempts changed of dependencies is named.
#[test]
fn a_night_that_is_done_is_no_escalation() {
    let env = TestEnv::repo();
    let agent = "echo $RECOVER_ITERATION > a.txt; echo x >> Cargo.lock";
    let run = ["run", "--run", "night", "--iterations", "3"];
    let check = ["--attempts", "1", "--feedback", "test=! grep -qx 2 a.txt"];
    let command = ["--", "sh", "-c", agent];
    env.recover(&[&run[..], &check, &command].concat())
        .expect(8);
    let report = env.recover(&["report"]).expect(0).stdout;
    for part in [
        "# Run report: `night`\n",
        "complete, 1 given up",
        "### Dependencies\n\nChanged: `Cargo.lock`\n",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let document = env.json(0, &["report"]);
    assert_eq!(document["report"]["kind"], "escalation");
    assert_eq!(
        document["report"]["files"]["dependencies"][0]["path"],
        "Cargo.lock"
    );
}
