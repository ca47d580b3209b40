//! `recover browse` on a terminal.

use crate::env::TestEnv;
use crate::terminal::Terminal;

const SIZE: (u16, u16) = (120, 30);

/// Three iterations, of which the third failed.
fn night() -> TestEnv {
    let env = TestEnv::repo();
    env.write(".gitignore", "agent.sh\n");
    env.script(
        "agent.sh",
        "echo line $RECOVER_ITERATION > file$RECOVER_ITERATION; test $RECOVER_ITERATION != 3 || { echo error: broken pump >&2; exit 1; }",
    );
    let run = [
        "run",
        "--run",
        "night",
        "--iterations",
        "4",
        "--attempts",
        "1",
        "--feedback",
        "test=true",
        "--",
    ];
    env.json(8, &[&run[..], &["./agent.sh"]].concat());
    env
}

fn browse(env: &TestEnv, size: (u16, u16), vars: &[(&str, &str)]) -> Option<Terminal> {
    Some(Terminal::with(env, &["browse"], size, vars)?.drawing())
}

#[test]
fn the_timeline_and_all_five_pages() {
    let env = night();
    let Some(mut terminal) = browse(&env, SIZE, &[]) else {
        return;
    };
    let shown = terminal.expect_shown(SIZE, "Run night");
    for text in [
        "recover browse: 1 run",
        "- night needs you",
        "iteration 3 of 4 failed",
        "attempt 1      failed",
        "@1 ",
        "? help",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    // To the failed attempt: why, its log, the report of the run.
    terminal.press("/attempt 1 failed\r3");
    terminal.expect_shown(SIZE, "Evidence");
    terminal.press("4");
    terminal.expect_shown(SIZE, "error: broken pump");
    terminal.press("5");
    terminal.expect_shown(SIZE, "# ");
    terminal.press("2");
    terminal.expect_shown(SIZE, "+line 3");
    // Two checkpoints: what differs.
    terminal.press("/@1 \rd/@3 \rd");
    let shown = terminal.expect_shown(SIZE, "+line 2");
    assert!(
        shown.contains("+line 1") && !shown.contains("+line 3"),
        "{shown}"
    );
    terminal.press("?");
    terminal.expect_shown(SIZE, "mark a checkpoint");
    terminal.press("xq");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("\u{1b}[?1049h") && said.ends_with("\u{1b}[?1049l"),
        "the screen is as it was: {said:?}"
    );
}

// What writes is a command that is shown, asked about and run; the list is up to date afterwards.
#[test]
fn what_writes_is_a_command_that_asks() {
    let env = night();
    let Some(mut terminal) = browse(&env, SIZE, &[]) else {
        return;
    };
    terminal.expect_shown(SIZE, "Run night");
    terminal.press("/@3 \rp");
    terminal.expect_shown(SIZE, "y runs: recover checkpoint pin ckpt_");
    terminal.press("n");
    terminal.expect_shown(SIZE, "? help");
    assert!(env.events("checkpoint_pinned").is_empty());
    terminal.press("py");
    terminal.expect("Done. Any key goes back.");
    terminal.press(" ");
    terminal.expect_shown(SIZE, "? help");
    terminal.expect_shown(SIZE, "pinned");
    assert!(env.exists("file3"));
    let from = terminal.said().len();
    terminal.press("r");
    terminal.expect_after(from, "What will happen:");
    assert!(env.exists("file3"), "nothing has happened yet");
    terminal.press("y");
    terminal.expect_after(from, "Any key goes back.");
    assert!(!env.exists("file3") && env.exists("file2"));
    terminal.press(" ");
    terminal.expect_shown(SIZE, "? help");
    terminal.expect_shown(SIZE, "@4           rolled back");
    let from = terminal.said().len();
    terminal.press("u");
    terminal.expect_shown(SIZE, "y runs: recover undo");
    terminal.press("y");
    terminal.expect_after(from, "Any key goes back.");
    assert!(env.exists("file3"));
    terminal.press(" ");
    terminal.expect_shown(SIZE, "? help");
    terminal.press("cy");
    terminal.expect_after(from, "Closed run night");
    terminal.press(" ");
    terminal.expect_shown(SIZE, "night closed");
    terminal.press("q");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn it_follows_what_is_recorded_meanwhile() {
    let env = night();
    let Some(mut terminal) = browse(&env, SIZE, &[]) else {
        return;
    };
    terminal.expect_shown(SIZE, "Run night");
    env.json(0, &["run", "--run", "morning", "--", "true"]);
    terminal.expect_shown(SIZE, "- morning complete");
    terminal.press("q");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_signal_leaves_the_terminal_whole() {
    let env = night();
    let words = [
        "sh",
        "-c",
        "echo $$ > pid; exec \"$0\" browse",
        env!("CARGO_BIN_EXE_recover"),
    ];
    let Some(terminal) = Terminal::running(&env, &words, SIZE, &[]) else {
        return;
    };
    terminal.expect_shown(SIZE, "Run night");
    env.sh("kill -TERM $(cat pid)").expect(0);
    let (code, said) = terminal.end();
    assert_eq!(code, 143, "{said:?}");
    assert!(said.contains("\u{1b}[?25h\u{1b}[?1049l"), "{said:?}");
}

// Nothing restores the terminal then; but the shell that is read from next goes on.
#[test]
fn a_shell_survives_that_it_is_killed() {
    let env = night();
    let line = format!(
        "sh -c 'echo $$ > pid; exec {} browse'\n",
        env!("CARGO_BIN_EXE_recover")
    );
    for (signal, further) in [("KILL", ""), ("STOP", "kill -KILL $(cat pid); ")] {
        let Some(mut shell) = Terminal::running(&env, &["sh", "-i"], SIZE, &[]) else {
            return;
        };
        shell.press(&line);
        shell.expect_shown(SIZE, "Run night");
        env.sh(&format!("kill -{signal} $(cat pid)")).expect(0);
        // Only what comes after the prompt does.
        std::thread::sleep(std::time::Duration::from_millis(500));
        shell.press(&format!("{further}echo still-$((40 + 2))\n"));
        shell.expect("still-42");
        // It warns once of jobs that it believes to be stopped.
        shell.press("stty sane\nexit 3\nexit 3\n");
        let (code, said) = shell.end();
        assert_eq!(code, 3, "{signal}: {said:?}");
    }
}

// 40 to 200 columns, with and without colour; no line is wider than the terminal, no id is cut in the middle of its number.
#[test]
fn narrow_and_wide_terminals() {
    let env = night();
    for (columns, rows) in [(40, 12), (60, 20), (80, 24), (200, 50)] {
        let size = (columns, rows);
        for vars in [&[][..], &[("NO_COLOR", "1")]] {
            let Some(mut terminal) = browse(&env, size, vars) else {
                return;
            };
            let shown = terminal.expect_shown(size, "iteration 3 of 4 failed");
            assert!(shown.contains("night needs you"), "{shown}");
            // On a narrow one the page has the whole of it.
            terminal.press("/attempt 1 failed\rl3");
            terminal.expect_shown(size, "Evidence");
            terminal.press("q");
            assert_eq!(terminal.end().0, 0);
        }
    }
}

// The log of a run, at each width: whole words and numbers for ids, as `recover log` shows it.
#[test]
fn the_log_has_whole_words_and_numbers() {
    let env = night();
    let said = env.recover(&["log", "--run", "night"]).expect(0).stdout;
    let words: Vec<&str> = said.split_whitespace().collect();
    for columns in [60, 80, 120] {
        let size = (columns, 100);
        let Some(mut terminal) = browse(&env, size, &[]) else {
            return;
        };
        terminal.expect_shown(size, "night needs you");
        terminal.press("gl4");
        let shown = terminal.expect_shown(size, "checkpoint_created");
        terminal.press("q");
        terminal.end();
        let page = shown.lines().map(|line| {
            let line = line.trim_end_matches('│');
            line.rsplit_once('│').map_or(line, |(_, page)| page)
        });
        let page: Vec<&str> = page
            .skip(1)
            .take(80)
            .flat_map(str::split_whitespace)
            .collect();
        assert!(
            page.contains(&"@1,") && !shown.contains("ckpt_"),
            "{columns}: {shown}"
        );
        let broken: Vec<&&str> = page
            .iter()
            .filter(|word| !word.contains('@') && !words.contains(word))
            .collect();
        assert!(broken.is_empty(), "{columns}: {broken:?}\n{shown}");
    }
}

// Without room for both a page is shown instead of the list; what does not fit has a sign, and the help is whole.
#[test]
fn a_narrow_terminal_shows_pages_and_signs() {
    let env = night();
    let note = "a description that is longer than any narrow terminal has room for it";
    env.json(0, &["checkpoint", "create", "--run", "night", "-m", note]);
    let size = (60, 24);
    let Some(mut terminal) = browse(&env, size, &[]) else {
        return;
    };
    let shown = terminal.expect_shown(size, "night needs you");
    assert!(
        shown
            .lines()
            .any(|line| line.contains("unverified") && line.contains("...")),
        "{shown}"
    );
    assert!(shown.contains("q leave"), "{shown}");
    terminal.press("?");
    let shown = terminal.expect_shown(size, "q                 leave; Esc forgets a mark");
    assert!(
        shown.contains("┌──") && shown.contains("│ arrows"),
        "{shown}"
    );
    terminal.press("x\t");
    terminal.expect_shown(size, "Run night: needs you");
    terminal.press("\t");
    terminal.expect_shown(size, "+line 1");
    terminal.press("q");
    assert_eq!(terminal.end().0, 0);
}

/// The screen as cells.
fn cells(terminal: &Terminal, (columns, rows): (u16, u16)) -> vt100::Parser {
    let mut screen = vt100::Parser::new(rows, columns, 0);
    screen.process(terminal.said().as_bytes());
    screen
}

// Frames, one row selected from side to side, columns, and the terminal's own colours; ASCII where a locale shows no more.
#[test]
fn frames_columns_and_the_selected_row() {
    let env = crate::run::attempts::quick();
    env.script(
        "check.sh",
        "[ $RECOVER_ITERATION != 2 ] || { echo 'FAILED t.py::test_sum - assert 1 == 2'; echo 'FAILED t.py::test_total - assert 3 == 4'; \
         echo 'FAILED t.py::test_order - no'; exit 1; }",
    );
    let run = [
        "run",
        "--run",
        "night",
        "--iterations",
        "3",
        "--attempts",
        "1",
    ];
    let rest = [
        "--feedback",
        "test=./check.sh",
        "--",
        "sh",
        "-c",
        "echo $RECOVER_ITERATION > file",
    ];
    env.recover(&[&run[..], &rest].concat());
    for columns in [60, 80, 120] {
        let size = (columns, 24);
        for (locale, frame) in [
            ("C.UTF-8", ["┌", "┐", "└", "┘", "│"]),
            ("C", ["+", "+", "+", "+", "|"]),
        ] {
            let Some(mut terminal) = browse(&env, size, &[("LC_ALL", locale)]) else {
                return;
            };
            let shown = terminal.expect_shown(size, "iteration 3 of 3");
            let lines: Vec<&str> = shown.lines().collect();
            let [top, bottom] = [lines[0], lines[22]];
            assert!(
                top.starts_with(frame[0]) && top.ends_with(frame[1]),
                "{shown}"
            );
            assert!(
                bottom.starts_with(frame[2]) && bottom.ends_with(frame[3]),
                "{shown}"
            );
            for line in &lines[1..22] {
                assert!(
                    line.starts_with(frame[4]) && line.ends_with(frame[4]),
                    "{line}\n{shown}"
                );
                assert_eq!(line.chars().count(), usize::from(columns), "{shown}");
            }
            assert!(locale != "C" || shown.is_ascii(), "{shown}");
            assert!(columns < 120 || shown.contains("test_sum"), "{shown}");
            // Columns: what came of each is below what came of the others.
            let state = |row: &str, word: &str| {
                let line = lines
                    .iter()
                    .find(|line| line.contains(row))
                    .unwrap_or_else(|| panic!("{row}\n{shown}"));
                line.find(word).map(|at| line[..at].chars().count())
            };
            let at = state("iteration 3 of 3", "passed");
            assert!(
                at.is_some() && at == state("@2 ", "passed") && at == state("attempt 1", "passed"),
                "{shown}"
            );
            let screen = cells(&terminal, size);
            let selected =
                |y: u16, x: u16| screen.screen().cell(y, x).is_some_and(vt100::Cell::inverse);
            let wide = if columns < 72 {
                columns
            } else {
                (columns * 2 / 5).clamp(36, 60)
            };
            assert!(
                (1..wide - 1).all(|x| selected(1, x)),
                "{columns}: not the whole row\n{shown}"
            );
            assert!(
                !selected(1, 0) && !(1..wide - 1).any(|x| selected(2, x)),
                "{shown}"
            );
            terminal.press("q");
            let (_, said) = terminal.end();
            assert!(!said.contains("38;5") && !said.contains("38;2"), "{said:?}");
        }
    }
}

// The log of an agent is what a person reads, not its records; an iteration has what its agent said, and its own changes.
#[test]
fn an_iteration_has_its_summary_its_diff_and_a_log_to_read() {
    let env = crate::run::attempts::quick();
    env.script(
        "agent.sh",
        r#"case $RECOVER_ITERATION in 1) echo kept > base.txt ;; 2) rm base.txt ;; 3) echo three > part3 ;; esac
printf '{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"I look around."}]}}\n'
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"Wrote part %s."}\n' $RECOVER_ITERATION"#,
    );
    let run = [
        "run",
        "--run",
        "night",
        "--iterations",
        "3",
        "--attempts",
        "1",
        "--on-failure",
        "policy",
    ];
    env.recover(
        &[
            &run[..],
            &["--feedback", "test=test -e base.txt", "--", "./agent.sh"],
        ]
        .concat(),
    );
    let Some(mut terminal) = browse(&env, SIZE, &[]) else {
        return;
    };
    let shown = terminal.expect_shown(SIZE, "iteration 3 of 3");
    assert!(shown.contains("Wrote part 3."), "{shown}");
    terminal.press("/iteration 3\r2");
    let shown = terminal.expect_shown(SIZE, "+++ b/part3");
    assert!(
        !shown.contains("--- a/base.txt"),
        "the run's own rollback is no change of the iteration's\n{shown}"
    );
    terminal.press("4");
    let shown = terminal.expect_shown(SIZE, "I look around.");
    assert!(!shown.contains("\"type\""), "{shown}");
    terminal.press("q");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn the_evidence_of_an_iteration_is_that_of_each_attempt() {
    let env = crate::run::attempts::quick();
    let agent = "[ $RECOVER_ATTEMPT = 2 ] || { echo error: broken pump >&2; exit 1; }";
    env.recover(&[
        "run",
        "--run",
        "r",
        "--attempts",
        "2",
        "--on-failure",
        "retry",
        "--",
        "sh",
        "-c",
        agent,
    ])
    .expect(0);
    let Some(mut terminal) = browse(&env, SIZE, &[]) else {
        return;
    };
    terminal.expect_shown(SIZE, "- r complete");
    terminal.press("/iteration 1\r3");
    let shown = terminal.expect_shown(SIZE, "Attempt 1: ");
    assert!(!shown.contains("No failure"), "{shown}");
    terminal.press("q");
    assert_eq!(terminal.end().0, 0);
}

// A terminal of a line or two, a line without an end, and keys all the while.
#[test]
fn tiny_terminals_and_endless_lines() {
    let env = night();
    env.write("min.js", "x".repeat(2 << 20));
    env.json(0, &["checkpoint", "create", "--run", "night"]);
    for size in [(80, 1), (40, 2), (1, 1), (80, 24)] {
        let Some(mut terminal) = browse(&env, size, &[]) else {
            return;
        };
        terminal.expect("\u{1b}[?1049h");
        terminal.press("2jkl2?");
        std::thread::sleep(std::time::Duration::from_millis(300));
        terminal.press("xq");
        let (code, said) = terminal.end();
        assert_eq!(code, 0, "{size:?}: {said:?}");
    }
}

#[test]
fn without_a_terminal_there_is_a_way_on() {
    let env = night();
    let dumb = [("TERM", "dumb"), ("NO_COLOR", "1")];
    if let Some(terminal) = Terminal::with(&env, &["browse"], (100, 24), &dumb) {
        let (code, said) = terminal.end();
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("TERM is 'dumb'"), "{said}");
    }
    for words in [
        &["browse"][..],
        &["--json", "browse"],
        &["--no-input", "browse"],
    ] {
        let done = env.recover(words).expect(2);
        assert!(
            done.stderr.contains("needs a terminal") || done.stdout.contains("needs a terminal"),
            "{words:?}"
        );
    }
    let nothing = TestEnv::plain();
    nothing.recover(&["browse"]).expect(10);
}

// A run of another work tree of the repository is gone on with there.
#[test]
fn commands_about_a_run_of_another_work_tree_go_there() {
    let env = night();
    env.git(&["worktree", "add", "-q", "../linked"]);
    env.recover(&[
        "-C",
        "../linked",
        "run",
        "--run",
        "other",
        "--no-wait",
        "--on-failure",
        "retry",
        "--",
        "false",
    ])
    .expect(6);
    let linked = env.root().canonicalize().expect("a folder").join("linked");
    let next = format!("recover -C {} resume --run other", linked.display());
    let status = env.json(0, &["status", "--run", "other"]);
    assert_eq!(status["night"]["next"], next.as_str());
    let text = env.recover(&["status", "--run", "other"]).expect(0).stdout;
    assert!(text.contains(&format!("\n1. Resume:  {next}\n")), "{text}");
    let report = env.recover(&["report", "--run", "other"]).expect(0).stdout;
    assert!(
        report.contains(&next) && !report.contains(&format!("-C {} ", env.work().display())),
        "{report}"
    );
    let size = (200, 30);
    let Some(mut terminal) = browse(&env, size, &[]) else {
        return;
    };
    terminal.expect_shown(size, "other paused");
    terminal.press("/other paused\rc");
    terminal.expect_shown(
        size,
        &format!("y runs: recover -C {} close --run other", linked.display()),
    );
    terminal.press("y");
    terminal.expect("Closed run other");
    terminal.press(" ");
    terminal.expect_shown(size, "other closed");
    terminal.press("/night\rc");
    terminal.expect_shown(size, "y runs: recover close --run night");
    terminal.press("nq");
    assert_eq!(terminal.end().0, 0);
}
