//! What people see on a terminal: whole words, short commands, numbers for ids, their own times.

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::terminal::Terminal;

const CHECK: &str = "test=grep -qx good state || { echo 'FAILED tests/test_state.py::test_state - assert 1 == 2'; exit 1; }";

/// Two iterations, of which the first fails once, and the second until nobody may try again; a step and a pin.
fn night() -> TestEnv {
    let env = quick();
    env.write("state", "good\n");
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "base"]);
    let agent = "[ $RECOVER_ITERATION.$RECOVER_ATTEMPT = 1.2 ] && echo good > state || echo bad $RECOVER_ATTEMPT > state";
    let args = [
        "run",
        "--run",
        "nightly-build",
        "--iterations",
        "2",
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        agent,
    ];
    env.recover(&args).expect(8);
    env.recover(&[
        "step",
        "database-migration",
        "--run",
        "nightly-build",
        "--",
        "true",
    ])
    .expect(0);
    let note = "the state before somebody had a look at it";
    env.recover(&[
        "checkpoint",
        "pin",
        "latest",
        "--run",
        "nightly-build",
        "--note",
        note,
    ])
    .expect(0);
    env
}

/// What a command shows on a terminal of so many columns, line by line.
fn shown(env: &TestEnv, args: &[&str], columns: u16) -> Option<Vec<String>> {
    let terminal = Terminal::with(
        env,
        args,
        (columns, 200),
        &[("NO_COLOR", "1"), ("GIT_PAGER", "cat")],
    )?;
    let (_, said) = terminal.end();
    Some(said.lines().map(str::to_owned).collect())
}

fn width(line: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(line)
}

/// Whether a line is a command, behind a number, a label or a list's mark.
fn ends_in_command(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_lead = |word: &&str| word.ends_with([':', '.', ']']) || *word == "-" || *word == "`";
    let first = words.find(|word| !is_lead(word)).unwrap_or_default();
    ["recover", "git", "tail"].contains(&first.trim_start_matches('`'))
}

// Nothing is cut within a word: a line is never wider than the terminal, but for a word that is.
#[test]
fn no_word_is_broken_at_60_80_and_120_columns() {
    let env = night();
    let ids: Vec<String> = env.json(0, &["checkpoint", "list"])["checkpoints"]
        .as_array()
        .expect("checkpoints")
        .iter()
        .map(|one| one["id"].as_str().expect("an id").to_owned())
        .collect();
    for args in [
        &["status"][..],
        &[],
        &["log"],
        &["checkpoint", "list"],
        &["checkpoint", "list", "--all-runs"],
        &["runs", "--all"],
        &["report"],
        &["attempt", "list"],
        &["retry-status"],
        &["checkpoint", "show", "latest"],
        &["rollback", "--to", "nowhere"],
    ] {
        let piped = env.recover(args);
        let piped = format!("{}{}", piped.stdout, piped.stderr);
        for columns in [60, 80, 120] {
            let Some(lines) = shown(&env, args, columns) else {
                return;
            };
            assert!(lines.len() > 1, "{args:?}: {lines:#?}");
            for line in &lines {
                let is_one_word = !line.trim().contains(' ');
                assert!(
                    width(line) <= usize::from(columns) || is_one_word || ends_in_command(line),
                    "{args:?} at {columns}: {line:?}\n{lines:#?}"
                );
            }
            // No id is a part of one, and a run's name is whole.
            let text = lines.join("\n");
            for word in text
                .split_whitespace()
                .filter(|word| word.contains("ckpt_"))
            {
                assert!(
                    ids.iter().any(|id| word.contains(id.as_str())),
                    "{args:?} at {columns}: {word}"
                );
            }
            assert_eq!(
                text.contains("nightly-build"),
                piped.contains("nightly-build"),
                "{args:?} at {columns}: {text}"
            );
        }
    }
}

// Colours take no room: no line goes on where the terminal ends.
#[test]
fn tables_with_colours_fit_as_those_without() {
    let mut env = night();
    env.set("RECOVER_TEST_NOW", "2035-01-01T00:00:00.000Z");
    for args in [
        &["runs", "--all"][..],
        &["checkpoint", "list"],
        &["attempt", "list"],
    ] {
        for columns in [60, 80, 100, 120] {
            let Some(plain) = shown(&env, args, columns) else {
                return;
            };
            let size = (columns, 60);
            let vars = [("GIT_PAGER", "cat")];
            let terminal = Terminal::with(&env, args, size, &vars)
                .expect("a terminal")
                .drawing();
            let last = plain
                .iter()
                .rfind(|line| !line.is_empty())
                .expect("a line")
                .trim_end()
                .to_owned();
            let colored = terminal.expect_shown(size, &last);
            terminal.end();
            let plain: Vec<&str> = plain.iter().map(|line| line.trim_end()).collect();
            assert_eq!(
                colored.trim_end(),
                plain.join("\n").trim_end(),
                "{args:?} at {columns}"
            );
        }
    }
}

#[test]
fn people_have_numbers_and_scripts_have_ids() {
    let env = night();
    let Some(status) = shown(&env, &["status", "-v"], 100) else {
        return;
    };
    let status = status.join("\n");
    assert!(
        !status.contains("ckpt_") && status.contains("last good @"),
        "{status}"
    );
    let list = shown(&env, &["checkpoint", "list"], 120)
        .expect("a terminal")
        .join("\n");
    assert!(
        list.contains('@') && !list.contains("ckpt_") && list.contains("DESCRIPTION"),
        "{list}"
    );
    // What is shown is taken.
    let good = status
        .split("last good ")
        .nth(1)
        .and_then(|rest| rest.split(')').next())
        .expect("a number")
        .to_owned();
    let checkpoint = env.json(0, &["checkpoint", "show", &good])["checkpoint"].clone();
    assert_eq!(
        checkpoint["id"],
        env.json(0, &["status"])["checkpoints"]["last_good"]
    );
    // Its own id is what `show` is about.
    let id = checkpoint["id"].as_str().expect("an id");
    assert!(
        shown(&env, &["checkpoint", "show", &good], 80)
            .expect("a terminal")
            .join("\n")
            .contains(id)
    );
    for args in [&["status", "-v"][..], &["checkpoint", "list"]] {
        assert!(env.recover(args).stdout.contains(id), "{args:?}");
    }
    // What goes to another place stays what it is.
    assert!(
        shown(&env, &["report"], 120)
            .expect("a terminal")
            .join("\n")
            .contains(id)
    );
}

#[test]
fn commands_name_neither_the_place_nor_the_run_that_somebody_is_at() {
    let env = night();
    let Some(status) = shown(&env, &["status"], 120) else {
        return;
    };
    let status = status.join("\n");
    assert!(
        status.contains("\n1. ")
            && status.contains(" recover resume")
            && !status.contains("--run")
            && !status.contains("-C "),
        "{status}"
    );
    let error = shown(&env, &["resume", "--no-input"], 120)
        .expect("a terminal")
        .join("\n");
    assert!(
        !error.contains(" -C ") && !error.contains("--run nightly"),
        "{error}"
    );
    // Another run is named.
    env.recover(&["run", "--run", "other", "--", "true"])
        .expect(0);
    let status = shown(&env, &["status", "--run", "nightly-build"], 120)
        .expect("a terminal")
        .join("\n");
    assert!(status.contains("--run nightly-build"), "{status}");
    // A script has it all.
    let next = env.json(0, &["status", "--run", "nightly-build"])["night"]["next"].clone();
    assert!(
        next.as_str()
            .is_some_and(|next| next.contains(" -C ") && next.contains("--run nightly-build")),
        "{next}"
    );
}

// Times are local and relative for people; documents keep UTC.
#[test]
fn times_are_the_users_own() {
    let mut env = quick();
    env.set("RECOVER_TEST_NOW", "2030-03-01T22:00:00.000Z")
        .set("TZ", "IST-5:30");
    env.recover(&[
        "run",
        "--run",
        "r",
        "--no-wait",
        "--on-failure",
        "retry",
        "--",
        "false",
    ])
    .expect(6);
    let wait = env.recover(&["retry-status"]).stdout;
    assert!(
        wait.starts_with("Wait: the next attempt is allowed at 03:30, "),
        "{wait}"
    );
    let status = env.recover(&["status", "-v"]).stdout;
    assert!(status.contains("  time       03:30, just now"), "{status}");
    let log = env.recover(&["log"]).stdout;
    assert!(log.contains("2030-03-02 03:30:00"), "{log}");
    assert!(
        env.recover(&["checkpoint", "show", "initial"])
            .stdout
            .contains("2030-03-02 03:30:00, just now")
    );
    assert_eq!(
        env.json(0, &["status"])["failure"]["at"],
        "2030-03-01T22:00:00.000Z"
    );
    env.set("RECOVER_TEST_NOW", "2030-03-03T10:00:00.000Z");
    assert!(
        env.recover(&["status", "-v"])
            .stdout
            .contains("  time       2030-03-02 03:30, 1 d ago")
    );
}

// A command is never broken but by the terminal, so that it can be copied.
#[test]
fn commands_can_be_pasted_from_a_narrow_terminal() {
    let nothing = TestEnv::repo();
    let Some(lines) = shown(&nothing, &[], 60) else {
        return;
    };
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("  recover checkpoint create  ")),
        "{lines:#?}"
    );
    assert!(lines.iter().all(|line| width(line) <= 60), "{lines:#?}");

    let env = quick();
    env.recover(&[
        "run",
        "--run",
        "nightly-build",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        "echo 401 Unauthorized; exit 1",
    ]);
    let manual = shown(&env, &["status", "-v"], 60).expect("a terminal");
    let step = manual
        .iter()
        .position(|line| line.contains("`recover resume"))
        .expect("a manual step");
    assert!(
        manual[step].contains("--strategy retry_same`"),
        "{manual:#?}"
    );

    let report = shown(&env, &["report"], 60).expect("a terminal");
    let log = report
        .iter()
        .position(|line| line.contains("tail -n 100 --"))
        .expect("a step");
    assert!(report[log].contains(".log"), "{report:#?}");

    let help = shown(&env, &["run", "--help"], 60)
        .expect("a terminal")
        .join("\n");
    let examples = help.split("Examples:").nth(1).expect("examples");
    let pasted = "  recover run --series night --agent claude --prompt-file task.md";
    assert!(examples.lines().any(|line| line == pasted), "{examples}");
    for line in examples.lines().filter(|line| !line.is_empty()) {
        assert!(
            line.starts_with("  # ") || line.starts_with("  recover "),
            "{examples}"
        );
    }
    let codes = shown(&env, &["--help"], 60).expect("a terminal");
    let begins = codes
        .iter()
        .position(|line| line.starts_with("Exit codes:"))
        .expect("exit codes");
    let last = codes[begins..]
        .iter()
        .position(|line| line.contains("interrupted"))
        .expect("the last")
        + begins;
    assert!(
        codes[begins..last].iter().all(|line| width(line) > 40),
        "{:#?}",
        &codes[begins..=last]
    );
}

#[test]
fn a_list_of_all_runs_says_whose_each_is() {
    let env = night();
    env.recover(&["run", "--run", "other", "--", "true"])
        .expect(0);
    let piped = env
        .recover(&["checkpoint", "list", "--all-runs"])
        .expect(0)
        .stdout;
    assert!(
        piped
            .lines()
            .any(|line| line.contains(" other ") && line.contains("ckpt_")),
        "{piped}"
    );
    for columns in [60, 80, 120] {
        let Some(lines) = shown(&env, &["checkpoint", "list", "--all-runs"], columns) else {
            return;
        };
        assert!(lines[0].contains(" RUN "), "{lines:#?}");
        for run in [" nightly-build ", " other "] {
            assert!(
                lines.iter().any(|line| line.contains(run)),
                "{columns}: {lines:#?}"
            );
        }
    }
    let own = shown(&env, &["checkpoint", "list"], 120).expect("a terminal");
    assert!(!own[0].contains(" RUN "), "{own:#?}");
}

// One word for a thing, each thing once.
#[test]
fn people_read_words() {
    let env = night();
    let show = env
        .recover(&["checkpoint", "show", "good"])
        .expect(0)
        .stdout;
    assert!(show.contains("\ncheck test  passed ("), "{show}");
    let Some(log) = shown(&env, &["log"], 120) else {
        return;
    };
    assert_eq!(log[0], "Run nightly-build");
    assert!(
        log[1..].iter().all(|line| !line.contains("nightly-build")),
        "{log:#?}"
    );
    assert!(
        env.recover(&["log"])
            .stdout
            .lines()
            .all(|line| line.contains("nightly-build"))
    );
    env.recover(&["attempt", "start", "--run", "loop"])
        .expect(0);
    let status = shown(&env, &["status", "--run", "loop"], 80)
        .expect("a terminal")
        .join("\n");
    assert!(
        status.contains("Run loop: running; 1 iteration: 1 under way"),
        "{status}"
    );
}

#[test]
fn a_report_on_a_terminal_begins_with_its_title() {
    let env = night();
    let Some(report) = shown(&env, &["report"], 80) else {
        return;
    };
    assert!(report[0].starts_with("# Escalation report"), "{report:#?}");
    assert!(
        env.recover(&["report"])
            .stdout
            .starts_with("<!-- recover report -->\n")
    );
}

// A note is none of a logger's lines, and is broken between words.
#[test]
fn a_check_that_fails_before_the_first_attempt_is_a_note() {
    let env = quick();
    let run = [
        "run",
        "--run",
        "r",
        "--attempts",
        "1",
        "--feedback",
        "a-check-with-a-name=false",
        "--",
        "true",
    ];
    let Some(lines) = shown(&env, &run, 60) else {
        return;
    };
    let at = lines
        .iter()
        .position(|line| line.contains("note: before the first attempt"))
        .expect("a note");
    assert!(
        lines[at].ends_with("note: before the first attempt the check"),
        "{lines:#?}"
    );
    assert_eq!(
        lines[at + 1],
        "  'a-check-with-a-name' fails already: exit 1"
    );
    assert!(
        lines.iter().all(|line| !line.contains("WARN")),
        "{lines:#?}"
    );
}

#[test]
fn an_iteration_that_there_never_was_is_said_to_be_none() {
    let env = quick();
    env.recover(&["run", "--run", "r", "--", "true"]).expect(0);
    let error = env.json(4, &["rollback", "--iteration", "7"])["error"].clone();
    assert_eq!(
        error["message"],
        "No checkpoint available before iteration 7: the run is at iteration 1"
    );
}

#[test]
fn the_heading_of_a_screen_is_whole() {
    let env = quick();
    let name = "a-run-with-a-name-that-takes-most-of-a-line-of-a-terminal";
    env.recover(&["run", "--run", name, "--attempts", "1", "--", "false"]);
    let Some(mut terminal) = Terminal::of(&env, &["rollback"]) else {
        return;
    };
    terminal.expect("q leaves");
    terminal.press("q");
    let (_, said) = terminal.end();
    let heading = said.split("Nothing is changed").next().unwrap_or_default();
    assert!(
        heading.contains(name) && heading.contains("iteration 1"),
        "{said}"
    );
}

// What others wrote is shown as they wrote it, whatever it looks like.
#[test]
fn texts_of_others_keep_the_ids_and_flags_in_them() {
    let env = quick();
    env.recover(&["checkpoint", "create", "--run", "r1"])
        .expect(0);
    let list = env.json(0, &["checkpoint", "list", "--run", "r1"]);
    let id = list["checkpoints"][0]["id"].as_str().expect("an id");
    let here = env.work().display();
    let said = format!("recover -C {here} log --run r1 {id}");
    env.recover(&["checkpoint", "create", "--run", "r1", "-m", &said])
        .expect(0);
    env.recover(&[
        "checkpoint",
        "pin",
        "latest",
        "--run",
        "r1",
        "--note",
        &said,
    ])
    .expect(0);
    env.recover(&["attempt", "start", "--run", "r1"]).expect(0);
    env.recover(&["attempt", "fail", "--run", "r1", "--message", &said])
        .expect(0);
    for args in [
        &["status", "-v"][..],
        &["retry-status"],
        &["checkpoint", "list"],
        &["log"],
    ] {
        let Some(lines) = shown(&env, args, 400) else {
            return;
        };
        assert!(
            lines.iter().any(|line| line.contains(&said)),
            "{args:?}: {lines:#?}"
        );
    }
    // What recover says itself is short.
    let status = shown(&env, &["status", "-v"], 400).expect("a terminal");
    let own: Vec<&String> = status.iter().filter(|line| !line.contains(&said)).collect();
    assert!(
        own.iter().any(|line| line.starts_with("Next: recover "))
            && own.iter().all(|line| !line.contains("--run")),
        "{status:#?}"
    );
}
