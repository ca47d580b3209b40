//! The way on that is recommended is one: it does something, leads on from there, and says why in words for people.

use serde_json::json;

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::terminal::Terminal;

const NOW: &str = "2026-03-01T12:00:00.000Z";

/// An agent whose usage limit resets at a time.
fn limited(reset: &str) -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW)
        .set("RECOVER_TEST_SEED", "1");
    let record = format!(
        "{{\"type\":\"result\",\"is_error\":true,\"session_id\":\"s\",\"result\":\"Claude AI usage limit reached|{reset}\"}}"
    );
    env.script("claude", &format!("echo '{record}'; exit 1"));
    env
}

/// Types a hint, as it is.
fn type_line(env: &TestEnv, code: i32, line: &str) -> String {
    let ran = env
        .sh(&line.replacen("recover", env!("CARGO_BIN_EXE_recover"), 1))
        .expect(code);
    ran.stdout + &ran.stderr
}

// Without checks a fix cannot be verified: nothing leads into one, and out of one that is open it says the way.
#[test]
fn without_checks_no_way_ends_at_verify() {
    let env = quick();
    let ran = env.recover(&[
        "run",
        "--run",
        "r",
        "--iterations",
        "3",
        "--",
        "sh",
        "-c",
        "exit 1",
    ]);
    assert!(
        !ran.stdout.contains("manual_then_continue") && !ran.stdout.contains("manual-fix"),
        "{}",
        ran.stdout
    );
    let status = env.json(0, &["status"]);
    let next = status["night"]["next"].as_str().expect("a way on");
    assert!(
        next.contains("resume --strategy retry_with_context"),
        "{next}"
    );
    let report = env.recover(&["report"]).expect(0).stdout;
    assert!(!report.contains("manual-fix"), "{report}");

    let opened = env
        .recover(&["resume", "--strategy", "manual_then_continue"])
        .expect(8)
        .stdout;
    assert!(
        opened.contains("manual-fix abort") && opened.contains("resume --strategy continue_next"),
        "{opened}"
    );
    assert!(!opened.contains("verify"), "{opened}");
    let shown = env.recover(&["manual-fix", "status"]).expect(0).stdout;
    assert!(
        shown.contains("manual-fix abort") && !shown.contains("manual-fix verify"),
        "{shown}"
    );
    for (code, args) in [
        (2, &["manual-fix", "verify"][..]),
        (13, &["manual-fix", "continue"]),
        (8, &["resume", "--strategy", "continue_next"]),
    ] {
        let error = env.error(code, args);
        assert!(
            error["hint"]
                .as_str()
                .is_some_and(|hint| hint.contains("manual-fix abort")),
            "{args:?}: {error}"
        );
    }
    let next = env.json(0, &["status"])["night"]["next"]
        .as_str()
        .expect("a way on")
        .to_owned();
    assert!(next.contains("manual-fix abort"), "{next}");
    let report = env.recover(&["report"]).expect(0).stdout;
    assert!(
        report.contains("manual-fix abort") && report.contains("continue_next"),
        "{report}"
    );
    type_line(&env, 0, &next);
    env.json(8, &["resume", "--strategy", "continue_next"]);
    assert_eq!(env.json(0, &["status"])["run"]["current_iteration"], 2);
}

// With checks it is verified.
#[test]
fn with_checks_a_fix_is_verified() {
    let env = quick();
    env.recover(&[
        "run",
        "--run",
        "r",
        "--feedback",
        "test=test -e done",
        "--",
        "true",
    ]);
    let opened = env
        .recover(&["resume", "--strategy", "manual_then_continue"])
        .expect(8)
        .stdout;
    assert!(
        opened.contains("manual-fix verify") && !opened.contains("manual-fix abort"),
        "{opened}"
    );
    let next = env.json(0, &["status"])["night"]["next"]
        .as_str()
        .expect("a way on")
        .to_owned();
    env.write("done", "");
    assert!(next.contains("manual-fix verify"), "{next}");
    type_line(&env, 0, &next);
}

// A fix that was given up is no open one: nothing advises to verify it.
#[test]
fn after_a_fix_was_given_up_the_run_is_taken_up() {
    let env = quick();
    let agent = "echo 'Invalid API key · Please run /login' >&2; exit 1";
    env.script("claude", agent);
    env.recover(&[
        "run",
        "--run",
        "r",
        "--agent",
        "claude",
        "--feedback",
        "test=true",
        "--",
        "./claude",
    ])
    .expect(8);
    env.json(0, &["manual-fix", "start"]);
    let status = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(
        status.contains("Then end the manual fix that is open: `recover manual-fix verify`"),
        "{status}"
    );
    assert!(!status.contains("--strategy retry_same"), "{status}");
    env.json(0, &["manual-fix", "abort"]);
    let status = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(
        status.contains("recover resume --strategy retry_same"),
        "{status}"
    );
    let resumed = env.recover(&["resume"]).expect(8).stdout;
    assert!(
        !resumed.contains("manual-fix verify") && !resumed.contains("manual-fix continue"),
        "{resumed}"
    );
    assert!(
        resumed.contains("Next: ") && resumed.contains("resume --strategy retry_same"),
        "{resumed}"
    );
}

// Where a limit resets too late to wait for it, there is nothing to mend: the same again will do.
#[test]
fn a_limit_that_resets_too_late_is_waited_out() {
    let env = limited("1772456400");
    let document = env.json(
        8,
        &[
            "run",
            "--agent",
            "claude",
            "--feedback",
            "test=true",
            "--",
            "./claude",
        ],
    );
    assert_eq!(document["decision"]["strategy"], "retry_same");
    assert!(
        document["decision"]["reason"]
            .as_str()
            .is_some_and(|why| why.contains("2026-03-02T13:")),
        "{document}"
    );
    let next = env.json(0, &["status"])["night"]["next"].clone();
    assert!(
        next.as_str()
            .is_some_and(|next| next.contains(" resume --run ") && !next.contains("--strategy")),
        "{next}"
    );
    // People read their own time.
    for text in [
        env.recover(&["status"]).expect(0).stdout,
        env.recover(&["resume"]).expect(8).stdout,
    ] {
        assert!(
            text.contains("the limit resets at 2026-03-02 13:0") && !text.contains("T13:"),
            "{text}"
        );
    }
}

// The end of a wait is said once, in the user's own time; scripts have it with the rest of the document.
#[test]
fn the_end_of_a_wait_is_told_once() {
    let env = limited("1772370000");
    let ran = env
        .recover(&["run", "--no-wait", "--agent", "claude", "--", "./claude"])
        .expect(6);
    let all = ran.stdout + &ran.stderr + &env.recover(&["status"]).expect(0).stdout;
    assert!(
        all.contains("Next attempt: 13:0") && !all.contains("T13:0"),
        "{all}"
    );
    let decision = env.json(0, &["retry-status"])["decision"].clone();
    assert!(
        decision["not_before"]
            .as_str()
            .is_some_and(|at| at.starts_with("2026-03-01T13:0")),
        "{decision}"
    );
}

// The end of a run that did all it was to do says what status does.
#[test]
fn a_complete_run_ends_with_the_way_on() {
    let env = quick();
    let ran = env
        .recover(&["run", "--run", "r", "--", "sh", "-c", "echo new > new.txt"])
        .expect(0);
    let end = ran
        .stdout
        .split_once("Run r: complete; ")
        .expect("its end")
        .1;
    assert!(
        end.starts_with("1 iteration: 1 passed\nChanged:    1 file +1 −0\n"),
        "{end}"
    );
    let next = end
        .lines()
        .find_map(|line| line.strip_prefix("1. Keep:    "))
        .expect("a way on");
    assert_eq!(
        Some(next),
        env.json(0, &["status"])["night"]["next"].as_str()
    );
    type_line(&env, 0, next);
    assert_eq!(env.git(&["show", "HEAD:new.txt"]), "new\n");
    // Where there is nothing to accept, there is no way on.
    let ran = env.recover(&["run", "--run", "s", "--", "true"]).expect(0);
    assert!(
        ran.stdout.contains("Run s: complete; ") && !ran.stdout.contains("Keep:"),
        "{}",
        ran.stdout
    );
}

// Who says to wait is not asked.
#[test]
fn waiting_asks_nothing() {
    let mut env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\nduration = \"2s\"\n[retry]\nbase_delay = \"2s\"\n",
    );
    env.script(
        "agent",
        "test -e ready || { echo 'error: connection reset by peer' >&2; exit 1; }",
    );
    env.recover(&["run", "--run", "r", "--no-wait", "--", "./agent"])
        .expect(6);
    env.write("ready", "");
    env.set("TERM", "xterm");
    let Some(terminal) = Terminal::of(&env, &["resume", "--wait"]) else {
        return;
    };
    terminal.expect("Run r: complete; ");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("Choose 1-"), "{said}");
}

// A hint fits what is missing.
#[test]
fn what_is_missing_is_hinted_at() {
    let env = TestEnv::repo();
    for args in [
        &["rollback"][..],
        &["resume"],
        &["accept"],
        &["checkpoint", "diff", "good"],
    ] {
        let error = env.error(4, args);
        let hint = error["hint"].as_str().unwrap_or_default();
        assert!(
            hint.contains("recover") && hint.contains("run --help"),
            "{args:?}: {error}"
        );
    }
    let plain = TestEnv::plain();
    for args in [&["undo"][..], &["resume"], &["accept"]] {
        let error = plain.error(10, args);
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|said| said.contains("-C DIR")),
            "{args:?}: {error}"
        );
        assert!(
            error["hint"]
                .as_str()
                .is_some_and(|hint| hint.ends_with("run --help")),
            "{args:?}: {error}"
        );
    }
}

// A wrong argument is told in words that are not the parser's.
#[test]
fn wrong_arguments_say_what_is_right() {
    let env = TestEnv::repo();
    for (args, said) in [
        (
            &["run", "--check", "test=true", "--", "true"][..],
            "--feedback NAME=CMD",
        ),
        (
            &["run", "--attempts", "x", "--", "true"],
            "a number from 1 up is expected",
        ),
        (
            &["run", "--iterations", "0", "--", "true"],
            "a number from 1 up is expected",
        ),
        (
            &["run", "--retries", "x", "--", "true"],
            "a number from 0 up is expected",
        ),
        (&["log", "--limit", "x"], "a number from 0 up is expected"),
        (
            &["log", "--limit", "99999999999999999999"],
            "the largest number is 18446744073709551615",
        ),
        (
            &["run", "--attempts", "4294967296", "--", "true"],
            "the largest number is 4294967295",
        ),
        (
            &["run", "--attempts", "-1", "--", "true"],
            "a number from 1 up is expected",
        ),
    ] {
        let error = env.error(2, args);
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| message.contains(said)),
            "{args:?}: {error}"
        );
        let shown = env.recover(args).expect(2).stderr;
        assert!(
            shown.contains(said)
                && !shown.contains("invalid digit")
                && !shown.contains("-- --check"),
            "{shown}"
        );
    }
    assert_eq!(
        env.error(2, &["run", "--feedback", "test", "--", "true"])["code"],
        json!("usage")
    );
    for (args, said) in [
        (&["rollback", "1"][..], "recover rollback --to @1"),
        (
            &["rollback", "initial", "--dry-run"],
            "recover rollback --to initial --dry-run",
        ),
        (
            &["run", "./agent.sh --fast"],
            "recover run -- sh -c './agent.sh --fast'",
        ),
        (
            &["run", "./agent.sh", "--fast"],
            "recover run -- ./agent.sh --fast",
        ),
    ] {
        let shown = env.recover(args).expect(2).stderr;
        assert!(shown.contains(said), "{args:?}: {shown}");
    }
}

#[test]
fn a_command_that_is_not_found_is_named_as_it_can_be_started() {
    let mut env = TestEnv::repo();
    env.script("agent.sh", "exit 0");
    let error = env.error(2, &["run", "--", "agent.sh"]);
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("did you mean './agent.sh'?")),
        "{error}"
    );
    env.set("PATH", "/usr/bin:/bin");
    let error = env.error(2, &["run", "--", "codex", "exec", "x"]);
    assert!(
        error["hint"]
            .as_str()
            .is_some_and(|hint| hint.ends_with("agents")),
        "{error}"
    );
}

/// B3: who has a run stop at a failure is recommended to see to that, not to leave it behind. An attempt that a person grants is
/// none of the limit's.
#[test]
fn a_run_that_stops_at_a_failure_is_recommended_to_retry() {
    let env = quick();
    let check = "test=[ $RECOVER_ITERATION = 1 ] || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";
    let run = [
        "run",
        "--iterations",
        "3",
        "--attempts",
        "1",
        "--on-failure",
        "stop",
        "--feedback",
        check,
    ];
    env.recover(&[&run[..], &["--", "true"]].concat()).expect(8);
    let status = env.json(0, &["status"]);
    let options = status["options"].as_array().expect("options");
    let recommended: Vec<_> = options
        .iter()
        .filter(|one| one["recommended"] == true)
        .map(|one| one["strategy"].clone())
        .collect();
    assert_eq!(recommended, ["retry_with_context"], "{status}");
    let told = env
        .recover(&["resume", "--strategy", "retry_with_context"])
        .stderr;
    assert!(
        told.contains("attempt 2") && !told.contains("attempt 2 of 1"),
        "{told}"
    );
}
