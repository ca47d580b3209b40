//! What somebody types who does not know the program yet, and what it answers.

use crate::env::TestEnv;
use crate::terminal::Terminal;

#[test]
fn a_command_without_its_dashes_is_said_where_they_go() {
    let env = TestEnv::plain();
    for (typed, meant) in [
        (&["run", "cargo", "test"][..], "recover run -- cargo test"),
        (
            &["run", "--attempts", "3", "cargo", "test", "-q"],
            "recover run --attempts 3 -- cargo test -q",
        ),
        (
            &["step", "build", "make all", "x"],
            "recover step build -- 'make all' x",
        ),
        (
            &["resume", "night", "claude", "-p", "go on"],
            "recover resume night -- claude -p 'go on'",
        ),
    ] {
        let ran = env.recover(typed).expect(2);
        assert!(
            ran.stderr
                .contains(&format!("put the command after --: {meant}\n")),
            "{typed:?}: {}",
            ran.stderr
        );
    }
    let message = env.json(2, &["run", "cargo", "test"])["error"]["message"].to_string();
    assert!(
        message.contains("put the command after --: recover"),
        "{message}"
    );
    // One that stands before the dashes is none.
    let ran = env
        .recover(&["run", "--timeout", "5", "minutes", "--", "true"])
        .expect(2);
    assert!(
        ran.stderr
            .contains("tip: leave out 'minutes': the command begins after --"),
        "{}",
        ran.stderr
    );
    let ran = env
        .recover(&["run", "--feedback", "test", "--", "true"])
        .expect(2);
    assert!(
        ran.stderr
            .contains("'test' is not NAME=CMD, such as test='cargo test'"),
        "{}",
        ran.stderr
    );
    // An option that is not known is no command.
    let ran = env.recover(&["run", "--frobnicate"]).expect(2);
    assert!(!ran.stderr.contains("put the command"), "{}", ran.stderr);
}

#[test]
fn words_of_other_tools_lead_to_the_command() {
    let env = TestEnv::plain();
    for (typed, meant) in [
        ("abort", "recover close"),
        ("history", "recover log"),
        ("stash", "recover checkpoint create"),
    ] {
        let ran = env.recover(&[typed]).expect(2);
        assert!(
            ran.stderr.contains(&format!("'{meant}'")),
            "{typed}: {}",
            ran.stderr
        );
        let message = env.json(2, &[typed])["error"]["message"].to_string();
        assert!(
            message.contains(&format!("'{meant}'")),
            "{typed}: {message}"
        );
    }
    // A program that is none of ours is one to be run.
    let ran = env.recover(&["-q", "sh", "-c", "exit 1"]).expect(2);
    assert!(
        ran.stderr
            .contains("to run 'sh' under supervision: recover -q run -- sh -c 'exit 1'\n"),
        "{}",
        ran.stderr
    );
    assert!(
        !env.recover(&["no-such-program"])
            .expect(2)
            .stderr
            .contains("run --")
    );
    // Near one of ours: what was mistyped.
    assert!(
        env.recover(&["stauts"])
            .expect(2)
            .stderr
            .contains("'status'")
    );
}

#[test]
fn short_names_and_help_of_a_command() {
    let env = TestEnv::repo();
    env.recover(&["checkpoint", "create"]).expect(0);
    for (short, long) in [
        // As documents: how long ago something was is another text a moment later.
        (
            &["list", "--json"][..],
            &["checkpoint", "list", "--json"][..],
        ),
        (
            &["show", "latest", "--json"],
            &["checkpoint", "show", "latest", "--json"],
        ),
        (
            &["diff", "latest", "--json"],
            &["checkpoint", "diff", "latest", "--json"],
        ),
        (&["help", "run"], &["run", "--help"]),
        (
            &["help", "checkpoint", "create"],
            &["checkpoint", "create", "--help"],
        ),
        (&["help"], &["--help"]),
    ] {
        let (short, long) = (env.recover(short).expect(0), env.recover(long).expect(0));
        assert!(
            !long.stdout.contains("[COMMAND]") || long.stdout.contains("man recover-guide"),
            "{}",
            long.stdout
        );
        assert_eq!(short.stdout, long.stdout);
        assert!(!short.stdout.is_empty());
    }
    assert_eq!(env.json(0, &["list"])["command"], "checkpoint list");
}

#[test]
fn nothing_to_undo_leads_to_what_the_run_began_with() {
    let env = TestEnv::repo();
    let ran = env.recover(&["undo"]).expect(4);
    assert!(
        ran.stderr.ends_with(" log\n"),
        "nothing was captured yet: {}",
        ran.stderr
    );
    env.recover(&["run", "--", "true"]).expect(0);
    let ran = env.recover(&["undo"]).expect(4);
    assert!(
        ran.stderr.contains("rollback --to initial"),
        "{}",
        ran.stderr
    );
    assert!(
        env.json(4, &["undo"])["error"]["hint"]
            .to_string()
            .contains("rollback --to initial")
    );
}

/// On a terminal a command to copy is as short as it can be here; in pipes it works from any folder.
#[test]
fn hints_on_a_terminal_leave_out_the_folder_one_is_in() {
    let env = TestEnv::repo();
    env.recover(&["run", "--", "true"]).expect(0);
    let piped = env.recover(&["undo"]).expect(4);
    assert!(
        piped.stderr.contains("hint: recover -C "),
        "{}",
        piped.stderr
    );
    let Some(terminal) = Terminal::of(&env, &["undo"]) else {
        return;
    };
    let (code, said) = terminal.end();
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("recover rollback --to initial"), "{said}");
    // From elsewhere it is needed.
    let work = env.work().display().to_string();
    let Some(terminal) = Terminal::running(
        &env,
        &[
            "sh",
            "-c",
            &format!(
                "cd / && '{}' -C '{work}' undo",
                env!("CARGO_BIN_EXE_recover")
            ),
        ],
        (100, 30),
        &[],
    ) else {
        return;
    };
    let (_, said) = terminal.end();
    assert!(said.contains("recover -C "), "{said}");
}

/// What stands in the way of a command after the dashes, with the line that works.
#[test]
fn a_command_that_is_a_line_is_said_how_to_write() {
    let env = TestEnv::repo();
    for (command, meant) in [
        (&["ls -l a.txt"][..], "run -- ls -l a.txt\n"),
        (&["cat a.txt | wc -l"], "run -- sh -c 'cat a.txt | wc -l'\n"),
        (&["MODE=fast ls"], "run -- sh -c 'MODE=fast ls'\n"),
        (&["cd", "src"], "run -- sh -c 'cd src && CMD'\n"),
        (&["cd src"], "run -- sh -c 'cd src && CMD'\n"),
        (&["exit 1"], "run -- sh -c 'exit 1'\n"),
        (&["exit", "1"], "run -- sh -c 'exit 1'\n"),
        (
            &["if true; then ls; fi"],
            "run -- sh -c 'if true; then ls; fi'\n",
        ),
        (&["echo $HOME"], "run -- sh -c 'echo $HOME'\n"),
        (&["printf hi"], "run -- printf hi\n"),
        (&["MODE=fast", "ls", "-l"], "run -- env "),
        (&[""], "the command is empty"),
    ] {
        let ran = env.recover(&[&["run", "--"], command].concat()).expect(2);
        assert!(ran.stderr.contains(meant), "{command:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("did you mean"), "{}", ran.stderr);
    }
    // A name that nobody has is no line.
    let ran = env.recover(&["run", "--", "no-such program"]).expect(2);
    assert!(!ran.stderr.contains("quotes"), "{}", ran.stderr);
    assert!(
        env.error(4, &["status"])["code"] == "run_not_found",
        "nothing was run"
    );
}

#[test]
fn an_agents_prompt_and_name() {
    let env = TestEnv::repo();
    for prompt in [&["Make it green"][..], &["Make", "it", "green"]] {
        let ran = env
            .recover(&[&["run", "--agent", "claude"], prompt].concat())
            .expect(2);
        let meant = "run --agent claude --prompt 'Make it green'\n";
        assert!(ran.stderr.contains(meant), "{}", ran.stderr);
    }
    let ran = env
        .recover(&["run", "--agent", "cursor", "--prompt", "x"])
        .expect(2);
    assert!(
        ran.stderr.contains("there are aider, claude, codex"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("did you mean"), "{}", ran.stderr);
    let ran = env
        .recover(&["run", "--agent", "cluade", "--prompt", "x"])
        .expect(2);
    assert!(
        ran.stderr.contains("did you mean 'claude'"),
        "{}",
        ran.stderr
    );
}

#[test]
fn first_mistakes_lead_to_what_is_there() {
    let env = TestEnv::repo();
    env.script("x.sh", "true");
    env.recover(&["run", "--run", "a", "--", "true"]).expect(0);
    let before = env.recover(&["log"]).expect(0).stdout;
    for (code, typed, meant) in [
        (2, &["rm", "a"][..], "'recover forget'"),
        (2, &["delete", "a"], "'recover forget'"),
        (2, &["ls"], "'recover runs'"),
        (2, &["commit"], "'recover accept'"),
        (2, &["version"], "'recover --version'"),
        (
            2,
            &["rollback", "--to", "iteration", "3"],
            "recover rollback --to iteration:3;",
        ),
        (4, &["rollback", "--to", "1"], "is named @1"),
        (4, &["diff", "1", "2"], "diff @1 @2\n"),
        (4, &["show", "1"], "show @1\n"),
        (4, &["show", "HEAD"], "use latest"),
        (2, &["drop", "a"], "'recover discard'"),
        (2, &["keep"], "'recover accept'"),
        (
            2,
            &["--to", "iteration", "3"],
            "recover rollback --to iteration:3\n",
        ),
        (
            2,
            &["rollback", "iteration", "3"],
            "recover rollback --to iteration:3\n",
        ),
        (2, &["rollback", "a"], "recover rollback --run a\n"),
        (2, &["rollback", "good"], "recover rollback --to good\n"),
        (2, &["config", "get", "run.timeout"], "recover.toml"),
        (2, &["classify", "log.txt"], "recover classify < FILE"),
        (2, &["remote", "fetch", "origin"], "--remote NAME"),
        (2, &["accept", "a", "b"], "one run at a time"),
        (2, &["doctor", "--fix"], "'--repair'"),
        (2, &["log", "--since", "monday"], "'--limit N'"),
        (2, &["watch"], "'recover status --watch'"),
        (2, &["run", "--", "nosuchprogram"], "hint: recover"),
        (2, &["reset", "--hard"], "'recover rollback' goes back"),
        (2, &["discard", "--hard"], "leave it out"),
        (2, &["log", "-p"], "'recover diff A B'"),
        (2, &["run", "-i", "3", "--", "true"], "'--iterations N'"),
        (2, &["run", "--name", "x", "--", "true"], "'--run ID'"),
        (2, &["runs", "a"], "recover status a"),
        (2, &["checkpoint", "rm", "@1"], "'recover checkpoint prune'"),
        (2, &["why"], "'recover status -v'"),
        (2, &["tui"], "'recover browse'"),
        (2, &["run", "x.sh", "y"], "recover run -- ./x.sh y\n"),
        (2, &["x.sh", "y"], "recover run -- ./x.sh y\n"),
        (4, &["undo", "--run", "nope"], "no run 'nope'"),
        (4, &["redo", "--run", "nope"], "no run 'nope'"),
        (2, &["rollback", "-n"], "'--dry-run'"),
        (2, &["log", "-n", "5"], "'--limit N'"),
        (2, &["discard", "--force"], "'--yes'"),
        (2, &["--list"], "'recover runs'"),
        (2, &["undo", "3"], "recover rollback --to @N"),
        (2, &["forget", "--run", "a"], "recover forget RUN"),
        (2, &["--run=a", "forget", "--yes"], "recover forget RUN"),
        (
            2,
            &["--run", "a", "forget", "--all", "--yes"],
            "leave out --run",
        ),
    ] {
        let ran = env.recover(typed).expect(code);
        assert!(ran.stderr.contains(meant), "{typed:?}: {}", ran.stderr);
        assert!(
            !ran.stderr.contains("as a value"),
            "{typed:?}: {}",
            ran.stderr
        );
    }
    assert_eq!(env.recover(&["log"]).expect(0).stdout, before, "only tips");
    // What it is told is what it runs.
    let ran = env.recover(&["run", "--attempts", "1", "--", "ls", "|", "wc"]);
    assert!(
        ran.stderr.contains("-- sh -c 'ls | wc'\n"),
        "{}",
        ran.stderr
    );
    let ran = env.recover(&["run", "--", "tr", "|", "a.txt"]);
    assert!(!ran.stderr.contains("sh -c"), "{}", ran.stderr);
}

/// A tip is about the command that it was typed in, and nothing that is only guessed is shown as if it were required.
#[test]
fn a_tip_is_about_the_command_that_was_typed() {
    let env = TestEnv::repo();
    env.script("check.sh", "true");
    for (typed, meant) in [
        (&["log", "-f"][..], "'--follow'"),
        (&["log", "-3"], "'--limit N'"),
        (&["log", "--tail", "3"], "'--limit N'"),
        (&["hook", "add", "claude"], "'recover hook install AGENT'"),
        (&["hook", "claude"], "'recover hook install claude'"),
        (&["remote", "add", "a", "b"], "'git remote add NAME URL'"),
        (&["remote", "list"], "'recover runs --remote NAME'"),
        (&["checkpoint", "add"], "'recover checkpoint create'"),
        (&["checkpoint", "new"], "'recover checkpoint create'"),
        (&["create"], "'recover checkpoint create'"),
        (&["checkpoint", "ls"], "'recover checkpoint list'"),
        (&["config", "--list"], "'recover config'"),
        (&["service", "start"], "'recover service install'"),
        (&["undo", "--list"], "'recover log'"),
        (&["status", "--output", "json"], "'--json'"),
        (&["status", "--format", "json"], "'--json'"),
        (&["run", "--max-cost", "5"], "max_cost_usd"),
        (&["run", "--budget", "5"], "max_cost_usd"),
        (&["run", "--no-retry", "--", "true"], "'--attempts 1'"),
        (&["run", "--jobs", "4"], "'--lanes N'"),
        (&["run", "--parallel", "4"], "'--lanes N'"),
        (&["run", "--worktree"], "'--isolated'"),
        (&["diff", "--stat"], "without --patch"),
        (&["diff", "-p"], "'--patch'"),
        (&["rollback", "--all"], "'--full'"),
        (&["checkpoint", "prune", "--all"], "'--keep-last 0'"),
        (&["report", "--html"], "'--format'"),
        (&["report", "--pr"], "'--format'"),
        (&["claude"], "'recover run --agent claude --prompt TEXT'"),
        (&["--agent", "claude"], "recover run --agent claude\n"),
        (&["worktree"], "'recover run --isolated'"),
        (&["pr"], "'recover report --format pr'"),
        (&["approve"], "'recover accept'"),
        (&["edit"], "'recover manual-fix'"),
        (&["guide"], "'man recover-guide'"),
        (&["help", "guide"], "'man recover-guide'"),
        (&["upgrade"], "README.md"),
        (&["uninstall"], "README.md"),
        (&["bisect", "./check.sh"], "recover bisect -- ./check.sh\n"),
        (
            &["bisect", "run", "./check.sh", "x"],
            "recover bisect -- ./check.sh x\n",
        ),
        (&["bisect", "ls", "a.txt"], "recover bisect -- ls a.txt\n"),
        (
            &["bisect", "night", "ls", "a.txt"],
            "recover bisect night -- ls a.txt\n",
        ),
        (
            &["checkpoint", "create", "some", "words"],
            "recover checkpoint create -m",
        ),
        (
            &["checkpoint", "restore", "latest", "a.txt"],
            "recover checkpoint restore latest --path a.txt\n",
        ),
        (&["diff", "a.txt"], "recover checkpoint diff --path a.txt\n"),
        (
            &["diff", "latest", "--", "a.txt"],
            "recover checkpoint diff latest --path a.txt\n",
        ),
        (&["run", "run"], "recover run -- run\n"),
        (&["run", "--iteration", "2"], "'--iterations'"),
    ] {
        let ran = env.recover(typed).expect(2);
        assert!(ran.stderr.contains(meant), "{typed:?}: {}", ran.stderr);
        let usage = ran.stderr.lines().find(|line| line.starts_with("Usage:"));
        assert!(
            usage.is_none_or(|usage| !usage.contains(" --") || usage.contains("-- <CMD>...")),
            "{typed:?}: {}",
            ran.stderr
        );
    }
    // What resembles nothing is nothing's slip.
    for typed in [
        &["status", "--all"][..],
        &["run", "--no-plan"],
        &["closed-by"],
    ] {
        let ran = env.recover(typed).expect(2);
        assert!(!ran.stderr.contains("tip:"), "{typed:?}: {}", ran.stderr);
    }
    assert_eq!(
        env.error(4, &["status"])["code"],
        "run_not_found",
        "only tips"
    );
}

#[test]
fn an_argument_that_is_no_text_is_named() {
    let env = TestEnv::repo();
    let line = format!(
        "'{}' run -- printf \"$(printf '\\377')\"",
        env!("CARGO_BIN_EXE_recover")
    );
    let ran = env.sh(&line).expect(2);
    assert!(
        ran.stderr.contains(r"the argument '\xff' is not UTF-8"),
        "{}",
        ran.stderr
    );
}
