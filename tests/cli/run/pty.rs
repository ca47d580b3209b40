//! `run --pty`: a command with a terminal of its own.

use crate::env::TestEnv;
use crate::run::supervision::{kill, until};
use crate::terminal::Terminal;

// The command sees a terminal, its output is shown and kept as with pipes, and what it said is understood.
#[test]
fn a_command_gets_a_terminal_and_is_understood() {
    let env = TestEnv::repo();
    let line = "test -t 1 && test -t 2 && echo it is one; echo reached > /dev/tty; exit 3";
    let ran = env
        .recover(&[
            "--json",
            "run",
            "--pty",
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            line,
        ])
        .json();
    let attempt = &ran["iterations"][0]["attempts"][0];
    assert_eq!(attempt["exit_code"], 3, "{ran}");
    let log = std::fs::read_to_string(attempt["log_path"].as_str().unwrap()).unwrap();
    assert!(
        log.contains("it is one") && log.contains("reached"),
        "{log}"
    );

    let env = TestEnv::repo();
    let line = "printf '\\033[1;31mError: connect ECONNREFUSED 127.0.0.1:443\\033[0m\\n'; exit 1";
    let ran = env
        .recover(&[
            "--json",
            "run",
            "--pty",
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            line,
        ])
        .json();
    assert_eq!(
        ran["iterations"][0]["attempts"][0]["failure"]["cause"], "NETWORK_ERROR",
        "{ran}"
    );
}

// As with pipes: what cannot be started says so, in the same words.
#[test]
fn what_cannot_be_started_is_told() {
    let env = TestEnv::repo();
    let failure = |args: &[&str]| {
        let ran = env.recover(&[&["--json", "run", "--on-failure", "stop"], args].concat());
        ran.json()["iterations"][0]["attempts"][0]["failure"].clone()
    };
    for program in ["no-such-program", "./a.txt"] {
        let (with, without) = (
            failure(&["--pty", "--", program]),
            failure(&["--", program]),
        );
        for field in ["type", "cause", "message"] {
            assert_eq!(with[field], without[field], "{program} {field}");
        }
    }
}

// The prompt comes on stdin, without a terminal nothing is waited for, and resume has the terminal too.
#[test]
fn the_prompt_comes_and_resume_remembers() {
    let env = TestEnv::repo();
    let line = "cat > prompt.txt; test -t 1 && echo yes > tty; test -e go";
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\nduration = \"50ms\"\n",
    );
    env.recover(&[
        "run",
        "--pty",
        "--prompt",
        "Do it.",
        "--on-failure",
        "stop",
        "--",
        "sh",
        "-c",
        line,
    ]);
    assert!(env.read("prompt.txt").contains("Do it."));
    std::fs::remove_file(env.work().join("tty")).unwrap();
    env.write("go", "");
    assert_eq!(
        env.json(0, &["resume", "--wait", "--strategy", "retry_same"])["outcome"],
        "complete"
    );
    assert_eq!(env.read("tty"), "yes\n");
    env.json(0, &["run", "--pty", "--", "sh", "-c", "cat"]);
    env.json(2, &["run", "--pty", "--passthrough", "--", "true"]);
}

// The deadline and Ctrl-C end all of it.
#[test]
fn a_deadline_and_ctrl_c_end_it() {
    let env = TestEnv::repo();
    let line = "trap '' HUP; echo $$ > pid; sleep 60 & wait";
    let run = [
        "run",
        "--pty",
        "--timeout",
        "1s",
        "--on-failure",
        "stop",
        "--",
        "sh",
        "-c",
        line,
    ];
    let ran = env.recover(&[&["--json"], &run[..]].concat()).json();
    assert_eq!(
        ran["iterations"][0]["attempts"][0]["timed_out"], true,
        "{ran}"
    );
    let pid = env.read("pid").trim().to_owned();
    until("it is gone", || !crate::run::supervision::lives(&pid));

    std::fs::remove_file(env.work().join("pid")).unwrap();
    let Some(mut terminal) = Terminal::of(&env, &["run", "--pty", "--", "sh", "-c", line]) else {
        return;
    };
    let pid = env.await_line("pid");
    terminal.press("\u{3}");
    let (code, said) = terminal.end();
    assert_eq!(code, 130, "{said}");
    assert!(!crate::run::supervision::lives(&pid));
}

// What is typed goes to the command, its terminal has the size of ours and follows it, and ours is as it was afterwards.
#[test]
fn what_is_typed_goes_to_the_command() {
    let env = TestEnv::repo();
    env.script(
        "agent.sh",
        "stty size; printf 'name? '; read name; echo \"hello $name\"; trap 'stty size > resized' WINCH; \
         while ! test -e resized; do sleep 0.1; done",
    );
    let Some(mut terminal) = Terminal::of(&env, &["run", "--pty", "--", "./agent.sh"]) else {
        return;
    };
    terminal.expect("24 80");
    terminal.expect("name? ");
    terminal.press("s\r");
    terminal.expect("hello s");
    terminal.resize(100, 30);
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert_eq!(env.read("resized").trim(), "30 100");
    assert!(
        said.contains("complete;") && !said.contains("stops after"),
        "{said}"
    );
}

// A paste of any length arrives as it is: nothing waits for the next key.
#[test]
fn a_long_paste_arrives_whole() {
    let env = TestEnv::repo();
    let line = "echo ready; read first; read second; echo got ${#first} and ${#second}";
    let Some(mut terminal) = Terminal::of(&env, &["run", "--pty", "--", "sh", "-c", line]) else {
        return;
    };
    terminal.expect("ready");
    terminal.press(&format!("{}\n{}\n", "x".repeat(700), "y".repeat(600)));
    terminal.expect("got 700 and 600");
    let (code, said) = terminal.end();
    assert_eq!(code, 0, "{said}");
}

// A command may close its terminal and open it again: what it says then is read as before.
#[test]
fn a_terminal_that_is_closed_for_a_while_is_no_end() {
    let env = TestEnv::repo();
    let line = "echo before; exec </dev/null >/dev/null 2>&1; sleep 0.5; exec >/dev/tty; sleep 0.1; echo behind; exit 3";
    let ran = env
        .recover(&[
            "--json",
            "run",
            "--pty",
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            line,
        ])
        .json();
    let attempt = &ran["iterations"][0]["attempts"][0];
    assert_eq!(attempt["exit_code"], 3, "{ran}");
    let log = std::fs::read_to_string(attempt["log_path"].as_str().unwrap()).unwrap();
    assert!(log.contains("before") && log.contains("behind"), "{log}");
}

// What a command that draws the whole screen did not switch back at its end is switched back for it: what comes next is
// read on the screen where the person is, with a cursor.
#[test]
fn a_screen_that_was_left_behind_is_switched_back() {
    let draws = "echo $PPID > pid; printf '\\033[?1049h\\033[?25l\\033[?1000h'; stty raw -echo; echo drawn; ";
    for (how, code) in [("exit 3", 8), ("kill -9 $$", 7), ("sleep 60", 143)] {
        let env = TestEnv::repo();
        let line = format!("{draws}{how}");
        let args = ["run", "--pty", "--attempts", "1", "--", "sh", "-c", &line];
        let Some(terminal) = Terminal::with(&env, &args, (80, 24), &[]) else {
            return;
        };
        terminal.expect("drawn");
        if code == 143 {
            kill("-TERM", env.await_line("pid").parse().unwrap());
        }
        let (ended, said) = terminal.end();
        assert_eq!(ended, code, "{how}: {said}");
        let back = said
            .find("\u{1b}[?25h\u{1b}[?1000l\u{1b}[?1049l")
            .unwrap_or_else(|| panic!("{how}: {said:?}"));
        assert!(said[back..].contains("\n1. "), "{how}: {said}");
    }
}
