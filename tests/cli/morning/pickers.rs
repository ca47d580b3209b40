//! Screens on which something is chosen: a rollback's target, a checkpoint; Ctrl-C at each point changes nothing.

use crate::env::TestEnv;
use crate::terminal::Terminal;

/// Four iterations, of which the fourth failed.
fn failed() -> TestEnv {
    let env = TestEnv::repo();
    env.write(".gitignore", "agent.sh\n");
    env.script(
        "agent.sh",
        "echo $RECOVER_ITERATION > file$RECOVER_ITERATION; test $RECOVER_ITERATION != 4",
    );
    let run = [
        "run",
        "--run",
        "r",
        "--iterations",
        "5",
        "--attempts",
        "1",
        "--feedback",
        "test=true",
        "--",
    ];
    env.json(8, &[&run[..], &["./agent.sh"]].concat());
    env
}

/// A command, keys with what they lead to, and the key that leaves.
type Way = (
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
    &'static str,
);

const HELP: &str = "q leaves";

/// What everything looks like that a screen must not change.
fn everything(env: &TestEnv) -> (String, String, usize) {
    let files = env
        .sh("ls; cat file* 2>/dev/null; git rev-parse HEAD; git status --porcelain")
        .stdout;
    (
        files,
        env.json(0, &["status"])["run"].to_string(),
        env.events("restored").len(),
    )
}

// B11: targets with verdict and age, what will happen, a yes, and the flags that do the same.
#[test]
fn a_rollback_is_chosen_seen_and_confirmed() {
    let env = failed();
    let Some(mut terminal) = Terminal::of(&env, &["rollback"]) else {
        return;
    };
    terminal.expect(HELP);
    terminal.expect("Rollback of run r: needs you, iteration 4 of 5");
    terminal.expect("undo iteration 4 only");
    terminal.expect("after iteration 4  failed");
    terminal.expect("before the run ");
    terminal.expect("undo the entire run");
    // The last good one is proposed.
    terminal.expect("> after iteration 3  passed");
    terminal.press("j");
    terminal.expect("> after iteration 2  passed");
    terminal.press("\u{1b}[B\u{1b}[A\r");
    terminal.expect("What will happen:");
    terminal.expect("The run continues from iteration 3; its history stays.");
    terminal.expect("- would delete file3");
    terminal.expect("- would delete file4");
    terminal.expect("recover undo restores it");
    assert!(env.exists("file3"), "nothing has happened yet");
    terminal.press("xy");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("Same as: recover rollback --to ckpt_") && said.contains("deleted file4"),
        "{said}"
    );
    assert!(env.exists("file2") && !env.exists("file3") && !env.exists("file4"));
    assert_eq!(env.json(0, &["status"])["run"]["current_iteration"], 3);
    // The command that was told does the same: now there is nothing left to do.
    let same = said
        .split("Same as: recover ")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .unwrap();
    assert_eq!(
        env.json(0, &same.split(' ').collect::<Vec<_>>())["changed"],
        false
    );
    env.json(0, &["undo"]);
    assert!(env.exists("file3") && env.exists("file4"));
}

// B11: hand edits and foreign commits are asked about on the screen, and what was answered is told as flags.
#[test]
fn what_is_in_the_way_is_asked_about() {
    let env = failed();
    env.write("file3", "mine\n");
    let Some(mut terminal) = Terminal::of(&env, &["rollback"]) else {
        return;
    };
    terminal.expect(HELP);
    terminal.press("j\r");
    terminal.expect("file3: edited by hand");
    let before = terminal.said().len();
    terminal.press("b");
    terminal.expect_after(before, HELP);
    terminal.press("\r");
    terminal.expect_after(terminal.said().rfind(HELP).unwrap(), "k keep them");
    terminal.press("k");
    terminal.expect("kept file3 (edited by hand)");
    terminal.press("y");
    let (code, said) = terminal.end();
    assert!(code == 0 && said.contains("--edits keep"), "{code}: {said}");
    assert_eq!(env.read("file3"), "mine\n");
    assert!(!env.exists("file4"));

    let env = failed();
    env.git(&["add", "file1"]);
    env.git(&["commit", "-q", "-m", "somebody's"]);
    let Some(mut terminal) = Terminal::of(&env, &["rollback"]) else {
        return;
    };
    terminal.expect(HELP);
    terminal.press("\r");
    terminal.expect("k only the files (HEAD stays)");
    terminal.press("k");
    terminal.expect("What will happen:");
    terminal.press("y");
    let (code, said) = terminal.end();
    assert!(
        code == 0 && said.contains("--commits keep"),
        "{code}: {said}"
    );
    assert_eq!(env.git(&["log", "-1", "--format=%s"]).trim(), "somebody's");
}

// Ctrl-C, q and Escape at each point: 130, and everything is as it was.
#[test]
fn leaving_changes_nothing() {
    let env = failed();
    let before = everything(&env);
    let ways: [Way; 9] = [
        (&["rollback"], &[], "\u{3}"),
        (&["rollback"], &[], "q"),
        (&["rollback"], &[], "\u{1b}"),
        (&["rollback"], &[("\r", "Continue?")], "\u{3}"),
        (&["rollback"], &[("\r", "Continue?")], "q"),
        (&["rollback"], &[("\r", "Continue?")], "n"),
        (
            &["checkpoint", "restore"],
            &[("jj\r", "Continue?")],
            "\u{3}",
        ),
        (&["checkpoint", "show"], &[("d", "Any key")], "\u{3}"),
        (&["checkpoint", "diff"], &[], "\u{4}"),
    ];
    for (args, steps, leave) in ways {
        let Some(mut terminal) = Terminal::of(&env, args) else {
            return;
        };
        terminal.expect(HELP);
        for (keys, shown) in steps {
            terminal.press(keys);
            terminal.expect(shown);
        }
        terminal.press(leave);
        let (code, said) = terminal.end();
        assert_eq!(code, 130, "{args:?} {steps:?} {leave:?}\n{said}");
        assert!(
            said.contains("error: cancelled; nothing was changed"),
            "{said}"
        );
        assert_eq!(everything(&env), before, "{args:?} {steps:?} {leave:?}");
    }
    // So it is where a target was given, and for whatever else asks.
    for (args, shown) in [
        (&["rollback", "--iteration", "3"][..], "Continue?"),
        (&["rollback", "--full"], "Continue?"),
        (&["forget", "r"], "n leave everything as it is"),
    ] {
        for leave in ["\u{3}", "n"] {
            let Some(mut terminal) = Terminal::of(&env, args) else {
                return;
            };
            terminal.expect(shown);
            terminal.press(leave);
            let (code, said) = terminal.end();
            assert!(
                code != 0 && said.contains("nothing was changed"),
                "{args:?} {leave:?}: {code}\n{said}"
            );
            assert_eq!(everything(&env), before, "{args:?} {leave:?}");
        }
    }
    // So it is with the resume screen, also while a line is typed.
    for (keys, shown) in [("", HELP), ("1\r", "Additional instructions")] {
        let Some(mut terminal) = Terminal::of(&env, &["resume"]) else {
            return;
        };
        terminal.expect(HELP);
        terminal.press(keys);
        terminal.expect(shown);
        terminal.press("\u{3}");
        let (code, said) = terminal.end();
        assert!(
            code == 130 && said.contains("nothing was changed"),
            "{code}: {said}"
        );
        assert_eq!(everything(&env), before);
    }
}

// B7: failure, options with the recommended one first chosen, instructions; Enter confirms, letters and digits choose.
#[test]
fn a_resume_is_chosen_by_the_same_keys() {
    let env = failed();
    let begin = || {
        let terminal = Terminal::with(&env, &["resume"], (100, 40), &[])?;
        terminal.expect(HELP);
        Some(terminal)
    };
    let Some(mut terminal) = begin() else {
        return;
    };
    terminal.expect("\u{1b}[1mRun failed: r\u{1b}[0m");
    terminal.expect("> Fix manually and continue \u{1b}[32m(recommended)\u{1b}[39m");
    terminal.expect("Start fresh");
    terminal.press("2");
    terminal.expect("> Rollback and retry");
    terminal.press("q");
    assert_eq!(terminal.end().0, 130);

    // A fix that passes now: the next attempts take the instructions.
    env.script("agent.sh", "cat > ../prompt; true");
    let Some(mut terminal) = begin() else {
        return;
    };
    terminal.press("1\r");
    terminal.expect("Additional instructions (optional, Enter for none): ");
    terminal.press("mind the gap\n");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("Same as: recover resume --strategy retry_with_context --instructions"),
        "{said}"
    );

    let env = failed();
    let Some(mut terminal) = Terminal::of(&env, &["resume"]) else {
        return;
    };
    terminal.expect(HELP);
    terminal.press("c");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(
        env.json(0, &["status", "--run", "r"])["run"]["status"],
        "closed"
    );
}

// Each row says what the agent did, when, and in which commit; colour is one of the sixteen.
#[test]
fn a_row_has_summary_time_and_commit() {
    let env = TestEnv::repo();
    env.script(
        "claude",
        "echo $RECOVER_ITERATION > file$RECOVER_ITERATION; echo '{\"type\":\"result\",\"subtype\":\"success\",\
         \"is_error\":false,\"session_id\":\"s\",\"result\":\"Set up the middleware '$RECOVER_ITERATION'\"}'",
    );
    env.json(
        0,
        &[
            "run",
            "--run",
            "r",
            "--iterations",
            "2",
            "--",
            "./claude",
            "-p",
        ],
    );
    let list = env.json(0, &["checkpoint", "list"]);
    let of_first = list["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["description"] == "Set up the middleware 1")
        .expect("a checkpoint with the agent's summary");
    let commit = &of_first["commit"].as_str().unwrap()[..10];
    let Some(mut terminal) = Terminal::with(&env, &["rollback"], (100, 40), &[]) else {
        return;
    };
    terminal.expect(HELP);
    terminal.expect("undo iteration 2 only: Set up the middleware 2");
    terminal.expect(commit);
    terminal.expect("Set up the middleware 1");
    terminal.expect("\u{1b}[32mpassed\u{1b}[39m");
    terminal.press("3");
    terminal.expect("> after iteration 1");
    terminal.press("\r");
    terminal.expect("iteration 2 would be rolled back; its history stays");
    terminal.expect("Continue? Enter or y yes");
    terminal.press("\r");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    let row = said
        .lines()
        .find(|line| line.contains(commit))
        .unwrap_or_default();
    assert!(
        regex::Regex::new(r" \d\d:\d\d ").unwrap().is_match(row),
        "{row}"
    );
    assert!(!said.contains("38;5"), "{said}");
    assert!(!env.exists("file2"));
}

// Each key does what the question says of it.
#[test]
fn what_is_left_out_is_asked_about_with_what_each_key_does() {
    for (key, code, committed) in [
        ("y", 0, Some(".env\na.txt\n")),
        ("n", 3, Some("a.txt\n")),
        ("q", 130, None),
        ("\u{1b}", 130, None),
        ("\u{3}", 130, None),
    ] {
        let env = TestEnv::repo();
        let agent = "echo x >> a.txt; echo K=v > .env; mkfifo pipe";
        env.json(0, &["run", "--run", "r", "--", "sh", "-c", agent]);
        let before = env.git(&["rev-parse", "HEAD"]);
        let Some(mut terminal) = Terminal::of(&env, &["accept"]) else {
            return;
        };
        terminal.expect("Commit these files too? y yes, n commit without them, q cancel");
        terminal.press(key);
        let (ended, said) = terminal.end();
        assert_eq!(ended, code, "{key:?}: {said}");
        match committed {
            Some(files) => assert_eq!(
                env.git(&["show", "--format=", "--name-only", "HEAD"]),
                files,
                "{key:?}"
            ),
            None => assert_eq!(env.git(&["rev-parse", "HEAD"]), before, "{key:?}"),
        }
    }
}

// One question about work from before the run, too.
#[test]
fn which_version_counts_is_one_question() {
    for (key, code, content) in [
        ("k", 0, "mine\n"),
        ("r", 0, "agent\n"),
        ("q", 130, "agent\n"),
    ] {
        let env = TestEnv::repo();
        env.write("a.txt", "mine\n");
        let agent = "echo agent > a.txt; echo n > n.txt";
        env.json(0, &["run", "--run", "r", "--", "sh", "-c", agent]);
        let before = env.git(&["rev-parse", "HEAD"]);
        let Some(mut terminal) = Terminal::of(&env, &["accept"]) else {
            return;
        };
        terminal.expect("q cancel");
        terminal.press(key);
        let (ended, said) = terminal.end();
        assert_eq!(ended, code, "{key:?}: {said}");
        assert_eq!(env.read("a.txt"), content, "{key:?}: {said}");
        assert_eq!(env.git(&["rev-parse", "HEAD"]) == before, key == "q");
    }
}

// A yes is no reason to go on whatever comes: while it waits for others, Ctrl-C still ends it.
#[test]
fn after_a_yes_a_signal_still_ends_it() {
    let env = failed();
    let lock = env.root().join("work/.ultraplan/state/recover/ledger.lock");
    let holder = std::fs::File::open(lock).expect("the ledger's lock");
    holder.lock().expect("locked");
    let Some(mut terminal) = Terminal::of(&env, &["forget", "r", "--lock-timeout", "60s"]) else {
        return;
    };
    terminal.expect("n leave everything as it is");
    terminal.press("y");
    std::thread::sleep(std::time::Duration::from_millis(300));
    terminal.press("\u{3}");
    let (code, said) = terminal.end();
    assert_ne!(code, 0, "{said}");
    drop(holder);
    assert_eq!(env.json(0, &["status", "--run", "r"])["run"]["run_id"], "r");
}

// A checkpoint is chosen where none is named; what changed since is shown before.
#[test]
fn a_checkpoint_is_chosen_with_a_look_at_what_changed() {
    let env = failed();
    let Some(mut terminal) = Terminal::of(&env, &["checkpoint", "show"]) else {
        return;
    };
    terminal.expect(HELP);
    terminal.press("jjd");
    terminal.expect("created file4 +1 -0");
    terminal.expect("Any key");
    terminal.press(" ");
    terminal.expect_after(
        terminal.said().rfind("Any key").unwrap(),
        "> after iteration 2",
    );
    terminal.press("p");
    terminal.expect("+++ b/file4");
    terminal.expect_after(terminal.said().rfind("+++ b/file4").unwrap(), "Any key");
    terminal.press(" ");
    terminal.expect_after(
        terminal.said().rfind("Any key").unwrap(),
        "> after iteration 2",
    );
    terminal.press("\r");
    let (code, said) = terminal.end();
    assert!(
        code == 0 && said.contains("Same as: recover checkpoint show ckpt_"),
        "{code}: {said}"
    );
    assert!(said.contains("iteration   after 2"), "{said}");

    let Some(mut terminal) = Terminal::of(&env, &["checkpoint", "restore"]) else {
        return;
    };
    terminal.expect(HELP);
    terminal.press("jj\r");
    terminal.expect("- would delete file3");
    terminal.expect("- would delete file4");
    terminal.press("y");
    let (code, said) = terminal.end();
    assert!(
        code == 0 && said.contains("Same as: recover checkpoint restore ckpt_"),
        "{code}: {said}"
    );
    assert!(!env.exists("file3"));
}

// Small, wide, without more than ASCII, and with escape codes: what is chosen is the same.
#[test]
fn a_screen_fits_its_terminal() {
    let mut env = failed();
    env.json(
        0,
        &[
            "checkpoint",
            "create",
            "--run",
            "r",
            "-m",
            "größer als zuvor",
        ],
    );
    env.set("LC_ALL", "C");
    for size in [(40, 10), (200, 50), (80, 24), (20, 5)] {
        let Some(mut terminal) = Terminal::with(&env, &["rollback"], size, &[("NO_COLOR", "1")])
        else {
            return;
        };
        terminal.expect("leaves");
        terminal.press("gjq");
        let (code, said) = terminal.end();
        assert_eq!(code, 130, "{said}");
        assert!(said.is_ascii(), "{said}");
        let rows = said
            .split(['\n', '\r'])
            .filter(|row| !row.starts_with("error") && !row.starts_with("hint"));
        let widest = rows.map(str::len).max().unwrap_or(0);
        assert!(widest < usize::from(size.0), "{size:?}: {widest}\n{said}");
    }
    let Some(mut terminal) = Terminal::with(&env, &["rollback"], (80, 24), &[]) else {
        return;
    };
    terminal.expect(HELP);
    terminal.press("G");
    terminal.expect("\u{1b}[K\u{1b}[1m> undo the entire run\u{1b}[0m");
    terminal.press("q");
    assert_eq!(terminal.end().0, 130);
}

// The contract: without a terminal nothing is asked; the missing flag is named.
#[test]
fn without_a_terminal_the_missing_word_is_named() {
    let env = failed();
    for what in ["show", "restore"] {
        let error = env.json(2, &["checkpoint", what]);
        assert_eq!(error["error"]["code"], "usage", "{error}");
        let hint = error["error"]["hint"].as_str().unwrap();
        assert!(hint.ends_with(" checkpoint list"), "{hint}");
    }
}

// B11: a target that was given is shown and asked about as well; --yes and a script are not asked.
#[test]
fn a_given_target_is_shown_and_asked_about_b11() {
    let env = failed();
    let before = everything(&env);
    let Some(mut terminal) = Terminal::of(&env, &["rollback", "--iteration", "3"]) else {
        return;
    };
    terminal.expect("What will happen:");
    terminal.expect("- would delete file3");
    terminal.expect("- would delete file4");
    terminal.expect("Continue? Enter or y yes, q leaves everything as it is");
    terminal.press("n");
    let (code, said) = terminal.end();
    assert_eq!(code, 130, "{said}");
    assert_eq!(everything(&env), before, "{said}");

    let Some(mut terminal) = Terminal::of(&env, &["rollback", "--to", "good"]) else {
        return;
    };
    terminal.expect("- would delete file4");
    terminal.press("y");
    let (code, said) = terminal.end();
    assert!(code == 0 && said.contains("deleted file4"), "{said}");

    // A person's edit is asked about too.
    env.write("file2", "mine");
    let Some(mut terminal) = Terminal::of(&env, &["rollback", "--iteration", "2"]) else {
        return;
    };
    terminal.expect("k keep them, d discard them");
    terminal.press("d");
    terminal.expect("Continue?");
    terminal.press("y");
    assert_eq!(terminal.end().0, 0);
    assert!(!env.exists("file2"));

    let Some(terminal) = Terminal::of(&env, &["rollback", "--full", "--yes"]) else {
        return;
    };
    let (code, said) = terminal.end();
    assert!(code == 0 && !said.contains("Continue?"), "{said}");
}
