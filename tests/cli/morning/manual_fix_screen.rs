//! Bare `manual-fix`, on a terminal and without one, and `--edit`.

use crate::env::TestEnv;
use crate::morning::manual_fix::failed_run;
use crate::terminal::Terminal;

const QUICK: &str = "[manual_fix]\nquiet_period = \"100ms\"\n[cooldown]\nduration = \"100ms\"\n";
const KEYS: &str = "Keys: v verify now";

fn begun(env: &TestEnv) -> Option<Terminal> {
    env.write(".ultraplan/recover.toml", QUICK);
    let terminal = Terminal::of(env, &["manual-fix"])?;
    terminal.expect(KEYS);
    Some(terminal)
}

// B8: the whole way at a terminal, without a second command.
#[test]
fn a_fix_is_made_at_a_terminal() {
    let env = failed_run();
    let Some(mut terminal) = begun(&env) else {
        return;
    };
    terminal.expect("Issue: ");
    terminal.press("c");
    terminal.expect("Not verified as it is");
    terminal.press("v");
    terminal.expect("FAILED test: 3 passed, 1 failed");
    terminal.expect("All of it: ");
    env.write("state", "good\n");
    terminal.expect("modified state +1 -1");
    terminal.expect("Press c to continue");
    terminal.press("x");
    terminal.press("c");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("Same as: recover manual-fix continue") && said.contains("complete;"),
        "{said}"
    );
    let wide: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("  ") && line.chars().count() > 80)
        .collect();
    assert!(wide.is_empty(), "{wide:?}");
    assert_eq!(env.json(0, &["status"])["run"]["status"], "complete");
    assert!(env.read("prompt-3-1.txt").contains("## Manual Fix Applied"));
}

// B8: when something was last detected is said as long as nothing else is; Enter confirms what is next.
#[test]
fn it_is_said_when_a_change_was_detected() {
    let env = failed_run();
    env.write(".ultraplan/recover.toml", QUICK);
    let Some(mut terminal) = Terminal::with(&env, &["manual-fix"], (80, 24), &[]) else {
        return;
    };
    terminal.expect(KEYS);
    terminal.expect("Last detected: (waiting)");
    env.write("state", "good\n");
    terminal.expect("modified state +1 -1");
    terminal.expect("Last detected: 1s ago");
    terminal.press("\r");
    terminal.expect("Same as: recover manual-fix continue");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("\u{1b}[32mverified\u{1b}[39m"), "{said}");
}

// B8: every way out leaves the terminal and the session as they should be.
#[test]
fn a_fix_can_be_left_open_or_given_up() {
    let env = failed_run();
    for (key, code) in [("\u{3}", 130), ("q", 0), ("\u{4}", 0)] {
        let Some(mut terminal) = begun(&env) else {
            return;
        };
        terminal.press(key);
        let (ended, said) = terminal.end();
        assert_eq!(ended, code, "{key:?}: {said}");
        assert!(said.contains("Same as: recover manual-fix start"), "{said}");
        assert_eq!(
            env.json(0, &["manual-fix", "status"])["session"]["status"],
            "active",
            "{key:?}"
        );
    }
    let Some(mut terminal) = begun(&env) else {
        return;
    };
    terminal.press("a");
    let (code, said) = terminal.end();
    assert!(
        code == 0 && said.contains("Same as: recover manual-fix abort"),
        "{code}: {said}"
    );
    assert_eq!(
        env.json(0, &["manual-fix", "status"])["session"]["status"],
        "aborted"
    );
}

// The contract: without a terminal nothing is asked, and the session is open.
#[test]
fn without_a_terminal_it_is_start_and_status() {
    let env = failed_run();
    assert_eq!(
        env.json(0, &["manual-fix", "--dry-run"])["session"]["status"],
        "active"
    );
    env.json(4, &["manual-fix", "status"]);
    let opened = env.json(0, &["manual-fix"]);
    assert_eq!(
        (&opened["command"], &opened["session"]["status"]),
        (&"manual-fix".into(), &"active".into())
    );
    env.write("state", "good\n");
    let again = env.json(0, &["manual-fix"]);
    assert_eq!(again["session"]["id"], opened["session"]["id"]);
    assert_eq!(
        again["session"]["detected_changes"][0]["path"], "state",
        "{again}"
    );
}

// B8: the editor is opened at the first error that lies in the work tree.
#[test]
fn the_editor_opens_at_the_first_error() {
    let mut env = TestEnv::repo();
    env.write("src/app.py", "a\nb\nc\n");
    let fails =
        "test=echo '/usr/lib/x.py:1: error: not ours'; echo 'src/app.py:3: error: wrong'; exit 1";
    env.json(
        8,
        &[
            "run",
            "--on-failure",
            "manual-fix",
            "--feedback",
            fails,
            "--",
            "true",
        ],
    );
    env.script(
        "../bin/vim",
        "echo \"$@\" > ../edited; echo fixed > src/app.py",
    );
    env.script("../bin/code", "echo \"$@\" > ../edited");
    let bin = env.root().join("bin");
    let error = env.json(2, &["manual-fix", "start", "--edit"]);
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("VISUAL"),
        "{error}"
    );
    assert_eq!(
        env.json(2, &["manual-fix", "--edit", "verify"])["error"]["code"],
        "usage"
    );

    env.set("EDITOR", &bin.join("vim").to_string_lossy());
    let document = env.json(0, &["manual-fix", "start", "--edit"]);
    let file = env.work().join("src/app.py");
    assert_eq!(
        env.read("../edited").trim(),
        format!("+3 {}", file.display())
    );
    assert_eq!(
        document["session"]["detected_changes"][0]["path"], "src/app.py",
        "{document}"
    );

    env.set(
        "VISUAL",
        &format!("'{}' --wait", bin.join("code").display()),
    );
    env.write("src/app.py", "a\nb\nc\n");
    env.json(0, &["manual-fix", "--edit"]);
    assert_eq!(
        env.read("../edited").trim(),
        format!("--wait --goto {}:3", file.display())
    );
}

/// An open hand-over whose loops are these.
fn handed_over(loops: &[&str]) -> TestEnv {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        QUICK.replace("[cooldown]", "verify_on_change = false\n[cooldown]"),
    );
    env.write("state", "bad\n");
    let mut args = vec!["run", "--run", "r", "--on-failure", "manual-fix"];
    args.extend(loops.iter().flat_map(|one| ["--feedback", *one]));
    env.json(8, &[&args[..], &["--", "true"]].concat());
    env
}

// B8: what a feedback loop said is told when it has said it, and a key that leaves ends those that still run.
#[test]
fn results_come_one_by_one_and_a_key_ends_the_rest() {
    for (key, status) in [("q", "active"), ("a", "aborted")] {
        let env = handed_over(&[
            "first=grep -qx good state",
            "second=test -e slow && sleep 60; true",
        ]);
        env.write("slow", "");
        let Some(mut terminal) = Terminal::of(&env, &["manual-fix"]) else {
            return;
        };
        terminal.expect(KEYS);
        terminal.press("v");
        terminal.expect("verifying first, second");
        terminal.expect("FAILED first: ");
        terminal.press(key);
        let (code, said) = terminal.end();
        assert!(
            code == 0 && !said.contains("FAILED second"),
            "{code}: {said}"
        );
        assert_eq!(
            env.json(0, &["manual-fix", "status"])["session"]["status"],
            status,
            "{said}"
        );
    }
}

// B8: what an editor puts beside an open file is nobody's change, and closing it does not undo a verification.
#[test]
fn an_editors_own_files_do_not_count() {
    let env = handed_over(&["test=grep -qx good state"]);
    let Some(mut terminal) = Terminal::of(&env, &["manual-fix"]) else {
        return;
    };
    terminal.expect(KEYS);
    let beside = [".state.swp", "4913", "state~", ".#state", "#state#"];
    for name in beside {
        env.write(name, "not theirs\n");
    }
    env.write("state", "good\n");
    terminal.expect("modified state +1 -1");
    terminal.press("v");
    terminal.expect("\nverified\n");
    for name in beside {
        std::fs::remove_file(env.work().join(name)).unwrap();
    }
    // One that git tracks is a file like any other.
    terminal.press("c");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    for name in beside {
        assert!(!said.contains(name), "{name}\n{said}");
    }
    env.write("kept~", "1\n");
    env.git(&["add", "kept~"]);
    env.git(&["commit", "-q", "-m", "a backup"]);
    let env = handed_over(&["test=false"]);
    env.write("kept~", "1\n");
    env.git(&["add", "kept~"]);
    env.json(0, &["manual-fix", "start"]);
    assert_eq!(
        env.json(0, &["manual-fix", "status"])["session"]["detected_changes"][0]["path"],
        "kept~"
    );
}

// B8: the editor is opened where the last verification failed.
#[test]
fn the_editor_opens_where_it_failed_last() {
    let mut env = handed_over(&["test=cat message; exit 1"]);
    env.write("one.py", "a\n");
    env.write("two.py", "a\nb\n");
    env.write("message", "one.py:1: error: first\n");
    env.json(100, &["manual-fix", "verify"]);
    env.script("../bin/vim", "echo \"$@\" > ../edited");
    env.set("EDITOR", &env.root().join("bin/vim").to_string_lossy());
    env.json(0, &["manual-fix", "--edit"]);
    assert_eq!(
        env.read("../edited").trim(),
        format!("+1 {}", env.work().join("one.py").display())
    );
    env.write("message", "\u{1b}[31mtwo.py:2:1\u{1b}[0m: error: second\n");
    env.json(100, &["manual-fix", "verify"]);
    env.json(0, &["manual-fix", "--edit"]);
    assert_eq!(
        env.read("../edited").trim(),
        format!("+2 {}", env.work().join("two.py").display())
    );
}

// B8: Ctrl-C in the editor is the editor's; who wants to end us while it is open does.
#[test]
fn a_request_to_end_that_comes_while_the_editor_is_open_is_heeded() {
    for (signal, expected) in [("TERM", 143), ("HUP", 129)] {
        let mut env = handed_over(&["test=cat message; exit 1"]);
        env.write("one.py", "a\n");
        env.write("message", "one.py:1: error: first\n");
        env.json(100, &["manual-fix", "verify"]);
        env.script("../bin/vim", &format!("kill -{signal} $PPID"));
        env.set("EDITOR", &env.root().join("bin/vim").to_string_lossy());
        let Some(terminal) = Terminal::of(&env, &["manual-fix", "--edit"]) else {
            return;
        };
        let (code, said) = terminal.end();
        assert_eq!(code, expected, "{said}");
        assert_eq!(
            env.json(0, &["manual-fix", "status"])["session"]["status"],
            "active",
            "{said}"
        );
    }
}
