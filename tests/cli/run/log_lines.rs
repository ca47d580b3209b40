//! A run that nobody watches tells its story in lines, and a job of GitHub what it understands.

use regex::Regex;

use crate::env::TestEnv;
use crate::terminal::Terminal;

const CHECK: &str = "test=grep -qx good state";

fn fixed() -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2026-03-01T02:14:05Z");
    env
}

// Own lines are told from the agent's: by a mark and the time on a terminal, by the time with its offset elsewhere.
#[test]
fn own_lines_have_a_time_where_the_user_is() {
    let mut env = fixed();
    env.set("TZ", "Asia/Kolkata");
    let run = [
        "run",
        "--iterations",
        "1",
        "--",
        "echo",
        "said by the agent",
    ];
    let ran = env.recover(&run).expect(0);
    let begun = "[2026-03-01T07:44:05.000+05:30] Iteration 1 of 1";
    assert!(ran.stderr.contains(begun), "{}", ran.stderr);
    let codes = Regex::new("\u{1b}\\[[0-9;]*[A-Za-z]").unwrap();
    for (locale, mark) in [("C.UTF-8", "▸"), ("C", ">")] {
        for vars in [
            &[("LC_ALL", locale)][..],
            &[("LC_ALL", locale), ("NO_COLOR", "1")],
        ] {
            let Some(terminal) = Terminal::with(&env, &run, (80, 24), vars) else {
                return;
            };
            let (code, said) = terminal.end();
            assert_eq!(code, 0, "{said}");
            let said = codes.replace_all(&said, "");
            assert!(
                said.contains(&format!("{mark} 07:44:05 Iteration 1 of 1")),
                "{said}"
            );
            assert!(
                said.contains("\nsaid by the agent\n") || said.contains("\rsaid by the agent"),
                "{said}"
            );
        }
    }
}

/// Iteration, attempt, verdict, decision, wait and rollback are told with their time; `-q` silences them.
#[test]
fn the_story_of_a_night_is_told_with_its_times() {
    let env = fixed();
    env.write("state", "good\n");
    let agent =
        "test $RECOVER_ATTEMPT = 2 && echo good > state || { echo bad > state; touch junk; }";
    let run = [
        "run",
        "--iterations",
        "1",
        "--on-failure",
        "rollback",
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        agent,
    ];
    let ran = env.recover(&[&["--json"], &run[..]].concat()).expect(0);
    ran.json();
    let story: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with('['))
        .collect();
    let timed = Regex::new(r"^\[2026-03-01T02:14:[0-9.]+Z\] \S").unwrap();
    assert!(
        story.iter().all(|line| timed.is_match(line)),
        "{}",
        ran.stderr
    );
    let text = story.join("\n");
    let mut from = 0;
    for part in [
        "Checking before the first attempt",
        "Iteration 1 of 1, attempt 1 of 3",
        "Check test FAILED",
        "FAILED: iteration 1, attempt 1: test",
        "Decision: ",
        "Rolling back to ckpt_",
        "Waiting until 2026-03-01T02:14:",
        "Iteration 1 of 1, attempt 2 of 3",
        "Check test passed",
        "Passed: iteration 1, attempt 2",
    ] {
        let at = text[from..]
            .find(part)
            .unwrap_or_else(|| panic!("no '{part}' after {}:\n{}", &text[..from], ran.stderr));
        from += at;
    }
    let quiet = fixed().recover(&[&["-q"], &run[..]].concat());
    assert!(
        !quiet.stderr.contains("Iteration") && !quiet.stderr.contains("2026-03-01"),
        "{}",
        quiet.stderr
    );
}

/// A check that is run again because it may be flaky is labelled: its output comes twice.
#[test]
fn a_flaky_check_is_labelled() {
    let env = fixed();
    let check = "test=test -e ../seen || { touch ../seen; echo boom >&2; exit 1; }";
    env.write(".ultraplan/recover.toml", "[checks]\nbaseline = false\n");
    let ran = env
        .recover(&["run", "--feedback", check, "--", "true"])
        .expect(0);
    let label = ran
        .stderr
        .find("Check test failed and is run again, unchanged")
        .expect("a label");
    assert!(
        ran.stderr.find("boom").is_some_and(|at| at < label),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("flaky: failed first, passed when run again"),
        "{}",
        ran.stderr
    );
}

/// What others said, told in a line, stays a line.
#[test]
fn a_message_of_several_lines_stays_one() {
    let env = fixed();
    let ran = env.recover(&[
        "run",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        "printf 'error: a\\033[2J\\rb\\n' >&2; exit 1",
    ]);
    let line = ran
        .stderr
        .lines()
        .find(|line| line.contains("FAILED: iteration 1"))
        .expect("the verdict");
    assert!(!line.contains(char::is_control), "{line:?}");
}

/// In a job of GitHub: groups, an annotation at the place, secrets masked, the report in the summary.
#[test]
fn a_job_of_github_is_told_in_its_own_words() {
    let mut env = fixed();
    env.write("sub/src/app.py", "import x\n\n\nraise\n");
    let summary = env.root().join("summary.md");
    std::fs::write(&summary, "# before\n").unwrap();
    env.set("GITHUB_ACTIONS", "true")
        .set("GITHUB_STEP_SUMMARY", &summary.to_string_lossy());
    env.set("DEPLOY_TOKEN", "s3cr3t-value-100%")
        .set("SHORT_TOKEN", "abc")
        .set("TOKENIZERS", "parallel-off");
    env.set("MULTI_SECRET", "first-line\nsecond-line");
    let check = "test=printf 'src/app.py:4:2: error: 50%% wrong, again\\n' >&2; exit 1";
    let run = [
        "--json",
        "run",
        "--attempts",
        "1",
        "--feedback",
        check,
        "--",
        "true",
    ];
    let ran = env
        .recover_command(&run)
        .current_dir(env.work().join("sub"))
        .output()
        .expect("recover starts");
    let ran = crate::env::Ran::of(&ran).expect(7);
    ran.json();
    let lines: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("::"))
        .collect();
    for mask in [
        "::add-mask::s3cr3t-value-100%25",
        "::add-mask::first-line",
        "::add-mask::second-line",
    ] {
        assert!(lines.contains(&mask), "{mask}: {lines:?}");
    }
    assert!(
        !ran.stderr.contains("add-mask::abc") && !ran.stderr.contains("add-mask::parallel"),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"::group::recover: iteration 1, attempt 1"),
        "{lines:?}"
    );
    let error = lines
        .iter()
        .find(|line| line.starts_with("::error "))
        .expect("an annotation");
    assert!(
        error.contains(
            "file=sub/src/app.py,line=4,col=2,title=recover%3A iteration 1%2C attempt 1 failed::"
        ),
        "{error}"
    );
    assert!(error.contains("50%25 wrong"), "{error}");
    let opened = lines
        .iter()
        .filter(|line| line.starts_with("::group::"))
        .count();
    let closed = lines.iter().filter(|line| **line == "::endgroup::").count();
    assert!(opened >= 2 && closed == opened, "{lines:?}");
    let text = std::fs::read_to_string(&summary).unwrap();
    assert!(
        text.starts_with("# before\n") && text.len() < 1 << 20,
        "{text}"
    );
    assert!(
        text.contains("Attempts") && text.contains("50% wrong"),
        "{text}"
    );

    // Elsewhere nothing of it is said.
    let ran = fixed().recover(&run);
    assert!(!ran.stderr.contains("::"), "{}", ran.stderr);
}

/// An attempt that is tried again is a warning: a job that ends well has no errors.
#[test]
fn an_attempt_that_is_tried_again_is_no_error() {
    let mut env = fixed();
    env.set("GITHUB_ACTIONS", "true");
    let agent = "test $RECOVER_ATTEMPT = 2 && echo good > state";
    let ran = env
        .recover(&[
            "run",
            "--feedback",
            CHECK,
            "--",
            "sh",
            "-c",
            &format!("{agent}; true"),
        ])
        .expect(0);
    assert!(
        ran.stderr.contains("\n::warning ") && !ran.stderr.contains("::error"),
        "{}",
        ran.stderr
    );
}
