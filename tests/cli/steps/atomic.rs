//! `recover step --atomic`: all or nothing, whatever ends the command or `recover` itself (S6, S12).

use std::process::Child;
use std::time::Duration;

use crate::env::TestEnv;
use crate::run::supervision::{ended, kill, lives};
use crate::seen::{Seen, assert_clean, seen, text};
use crate::steps::once::told;
use crate::terminal::Terminal;

/// Fifty files that a rename goes through, and others beside them.
fn many() -> TestEnv {
    let env = TestEnv::repo();
    for number in 0..50 {
        env.write(
            &format!("src/f{number:02}.rs"),
            format!("struct User{number};\n"),
        );
    }
    env.write("notes.md", "User\n");
    env.sh("ln -s f00.rs src/link; chmod 600 src/f07.rs; mkdir -p src/empty; chmod 755 src/f08.rs")
        .expect(0);
    env
}

/// Renames `User` in every file and the files too, one after the other; fails at the 49th.
const RENAME: &str = "n=0; for f in src/f*.rs; do n=$((n+1)); \
    if [ $n = 49 ]; then rm -rf src/empty src/link; echo new > src/new.rs; exit 9; fi; \
    sed -i s/User/Account/ $f; mv $f $f.new; done";

fn atomic<'a>(more: &[&'a str], line: &'a str) -> Vec<&'a str> {
    [
        &["--run", "r", "step", "rename", "--atomic"][..],
        more,
        &["--", "sh", "-c", line],
    ]
    .concat()
}

// S6: a rename across 50 files that fails at the 49th: every byte, link, mode and folder is back.
#[test]
fn a_rename_that_fails_at_the_49th_file_leaves_nothing() {
    let env = many();
    let before = seen(env.work());
    let document = env.json(9, &atomic(&["--intent", "Rename User to Account"], RENAME));
    assert_eq!(
        (&document["rolled_back"], &document["executed"]),
        (&true.into(), &true.into())
    );
    assert_eq!(
        (&document["step"]["intent"], &document["step"]["status"]),
        (&"Rename User to Account".into(), &"failed".into())
    );
    assert!(document["checkpoint_id"].is_string());
    assert_eq!(seen(env.work()), before);
    assert_clean(&env);
    // What was tried is not lost: it is a restore as any other.
    env.json(0, &["undo"]);
    assert!(env.exists("src/new.rs") && env.exists("src/f47.rs.new"));
    env.json(0, &["redo"]);
    assert_eq!(seen(env.work()), before);
    // The intent is recorded before the command runs.
    let events = env.json(0, &["log"])["events"].clone();
    let started = events
        .as_array()
        .unwrap()
        .iter()
        .position(|e| e["type"] == "step_started")
        .unwrap();
    assert_eq!(
        events[started]["payload"]["atomic"]["intent"],
        "Rename User to Account"
    );
    let ended = events
        .as_array()
        .unwrap()
        .iter()
        .position(|e| e["type"] == "step_ended")
        .unwrap();
    assert!(started < ended);
}

// What succeeds stays, and is not run again.
#[test]
fn what_succeeds_stays() {
    let env = many();
    let document = env.json(0, &atomic(&[], "rm src/f00.rs; echo new > src/new.rs"));
    assert_eq!(document["rolled_back"], false);
    assert!(!env.exists("src/f00.rs") && env.exists("src/new.rs"));
    assert_eq!(env.json(0, &atomic(&[], "false"))["executed"], false);
}

// Without a repository, too.
#[test]
fn it_needs_no_repository() {
    let env = TestEnv::plain();
    env.write("a", "1\n");
    let before = seen(env.work());
    env.recover(&atomic(&[], "echo 2 > a; echo new > b; exit 4"))
        .expect(4);
    assert_eq!(seen(env.work()), before);
}

// Outside the covered files everything stays as others have made it meanwhile.
#[test]
fn files_outside_the_covered_ones_stay() {
    let env = many();
    let line = "echo x > src/f00.rs; echo y > notes.md; echo z > beside; exit 5";
    let shown = env.recover(&atomic(&["--path", "src/**"], line)).expect(5);
    assert!(shown.stderr.contains("restored"), "{}", shown.stderr);
    assert_eq!(env.read("src/f00.rs"), "struct User0;\n");
    assert_eq!(
        (env.read("notes.md").as_str(), env.read("beside").as_str()),
        ("y\n", "z\n")
    );
}

#[test]
fn an_interrupt_puts_everything_back() {
    let env = many();
    let before = seen(env.work());
    let child = begun(&env);
    kill("-INT", child.id());
    let document = ended(child).expect(130).json();
    assert_eq!(document["rolled_back"], true);
    assert_eq!(seen(env.work()), before);
}

/// An atomic step that has changed files and goes on for long.
fn begun(env: &TestEnv) -> Child {
    let line = "rm -f src/f1*; echo half > src/f00.rs; echo $$ > ../pid; sleep 300";
    let child = env.start(&[&["--json"][..], &atomic(&[], line)].concat());
    env.await_line("../pid");
    child
}

fn killed(env: &TestEnv) -> (Seen, String) {
    let before = seen(env.work());
    let mut child = begun(env);
    let pid = env.await_line("../pid");
    kill("-KILL", child.id());
    child.wait().expect("it ends");
    assert_ne!(seen(env.work()), before);
    (before, pid)
}

// Readers say so (16 where a settled tree is needed), the next command that writes puts the files back.
#[test]
fn a_kill_is_settled_by_the_next_command_that_writes() {
    for settling in [
        vec!["--run", "r", "checkpoint", "create"],
        vec!["doctor", "--repair"],
        vec!["--run", "other", "step", "x", "--", "true"],
    ] {
        let env = many();
        env.json(0, &["--run", "r", "checkpoint", "create"]);
        let (before, pid) = killed(&env);
        let between = seen(env.work());
        let status = env.json(0, &["--run", "r", "status"]);
        assert!(
            text(&status["unfinished_operation"]).contains("rename"),
            "{status}"
        );
        env.json(0, &["checkpoint", "list"]);
        for args in [
            vec!["checkpoint", "diff", "initial"],
            vec!["--dry-run", "rollback", "--to", "initial"],
        ] {
            let error = env.json(16, &args)["error"].clone();
            assert!(text(&error["hint"]).contains("doctor --repair"), "{error}");
        }
        assert_eq!(env.json(12, &["doctor"])["problems"][0]["code"], "cut_off");
        assert_eq!(seen(env.work()), between);
        env.recover(&settling).expect(0);
        assert!(!lives(&pid));
        assert_eq!(seen(env.work()), before, "{settling:?}");
        let step = told(&env, "rename");
        assert_eq!(
            (&step["status"], &step["rolled_back"]),
            (&"cut_off".into(), &true.into())
        );
        assert!(env.json(0, &["--run", "r", "status"])["unfinished_operation"].is_null());
        assert_clean(&env);
    }
}

// The step itself is such a command.
#[test]
fn the_step_that_was_killed_begins_from_the_start() {
    let env = many();
    killed(&env);
    let again = env
        .recover(&atomic(&[], "cat src/f00.rs; ls src | wc -l"))
        .expect(0);
    assert_eq!(again.stdout, "struct User0;\n52\n");
    assert!(
        again.stderr.contains("interrupted") && again.stderr.contains("restored"),
        "{}",
        again.stderr
    );
}

// Killed at any moment, before, in and after the command, and while the files are put back: all or nothing.
#[test]
fn a_kill_at_any_moment_leaves_all_or_nothing() {
    for point in 0_u64..12 {
        let env = many();
        let before = seen(env.work());
        let fails = point % 2 == 0;
        let line = format!(
            "for f in src/f*.rs; do sed -i s/User/Account/ $f; done; {}",
            if fails { "exit 9" } else { "true" }
        );
        let mut child = env.start(&atomic(&[], &line));
        std::thread::sleep(Duration::from_millis(10 + point * 25));
        let _ = std::process::Command::new("kill")
            .args(["-KILL", &child.id().to_string()])
            .status();
        child.wait().unwrap();
        env.json(0, &["--run", "r", "checkpoint", "create"]);
        let changed = (0..50)
            .filter(|number| {
                env.read(&format!("src/f{number:02}.rs"))
                    .contains("Account")
            })
            .count();
        let step = told(&env, "rename");
        if step["status"] == "done" {
            assert!(!fails && changed == 50, "point {point}: {step}");
        } else {
            assert_eq!(changed, 0, "point {point}: {step}");
            assert_eq!(seen(env.work()), before, "point {point}");
        }
        assert_clean(&env);
    }
}

// The restore itself is cut off: its journal is finished, then the step is settled.
#[test]
fn a_kill_while_the_files_are_put_back_is_finished() {
    let env = many();
    if env.sh("command -v strace").code != 0 {
        assert!(std::env::var_os("CI").is_none(), "strace is missing");
        return;
    }
    let before = seen(env.work());
    let recover = env!("CARGO_BIN_EXE_recover");
    env.write("../fail.sh", RENAME);
    for file in ["f03.rs", "f40.rs"] {
        let line = format!(
            "strace -o /dev/null -P {file} -e inject=rename,renameat,renameat2:signal=SIGKILL:when=1 \
             {recover} --run r step rename --atomic -- sh ../fail.sh"
        );
        assert_ne!(env.sh(&line).code, 9);
        assert!(env.exists(".git/recover/journal.json"));
        env.json(0, &["doctor", "--repair"]);
        assert_eq!(seen(env.work()), before);
        assert_eq!(told(&env, "rename")["status"], "cut_off");
        assert_clean(&env);
    }
}

// What the rules leave out could not be put back, which is said; where nothing may be, nothing is begun.
#[test]
fn what_could_not_be_put_back_is_said() {
    let env = many();
    env.write(
        ".ultraplan/recover.toml",
        "[checkpoint]\nmax_file_size = \"1KiB\"\n",
    );
    env.write("src/big", "x".repeat(5000));
    let shown = env.recover(&atomic(&["--path", "src"], "exit 3")).expect(3);
    assert!(shown.stderr.contains("src/big"), "{}", shown.stderr);
    let shown = env
        .recover(&atomic(&["--path", "notes.md"], "exit 3"))
        .expect(3);
    assert!(!shown.stderr.contains("src/big"), "{}", shown.stderr);
    env.write(
        ".ultraplan/recover.toml",
        "[rollback]\nsafe_mode = \"read_only\"\n",
    );
    env.json(13, &atomic(&[], "touch ../ran"));
    assert!(!env.exists("../ran"));
}

// A rollback is refused while a step is under way, but for the step's own command.
#[test]
fn nothing_is_rolled_back_under_a_step() {
    let env = many();
    env.json(0, &["--run", "r", "checkpoint", "create"]);
    let mut child = begun(&env);
    let error = env.json(
        11,
        &["rollback", "--run", "r", "--to", "@1", "--edits", "discard"],
    )["error"]
        .clone();
    assert!(text(&error["message"]).contains("rename"), "{error}");
    kill("-INT", child.id());
    child.wait().unwrap();
    let recover = env!("CARGO_BIN_EXE_recover");
    let line = format!("echo x > notes.md; {recover} --run r rollback --to @1 --edits discard");
    env.recover(&["--run", "r", "step", "back", "--", "sh", "-c", &line])
        .expect(0);
    assert_eq!(env.read("notes.md"), "User\n");
}

// Nobody is asked about what is refused while something is under way.
#[test]
fn a_person_is_not_asked_under_a_step() {
    let env = many();
    env.json(0, &["--run", "r", "checkpoint", "create"]);
    let mut child = begun(&env);
    if let Some(terminal) = Terminal::of(&env, &["rollback", "--run", "r", "--to", "@1"]) {
        let (code, said) = terminal.end();
        assert_eq!(code, 11, "{said}");
        assert!(
            said.contains("is under way") && !said.contains("Continue?"),
            "{said}"
        );
    }
    kill("-INT", child.id());
    child.wait().unwrap();
}

// Within an attempt of `recover run`: the attempt goes on from what the step left, which is nothing.
#[test]
fn within_an_attempt() {
    let env = many();
    let recover = env!("CARGO_BIN_EXE_recover");
    env.script(
        "agent.sh",
        &format!("{recover} step rename --atomic -- sh -c 'echo x > src/f00.rs; exit 9' || echo $? > code"),
    );
    env.json(0, &["run", "--run", "r", "--", "./agent.sh"]);
    assert_eq!(
        (env.read("code").as_str(), env.read("src/f00.rs").as_str()),
        ("9\n", "struct User0;\n")
    );
}
