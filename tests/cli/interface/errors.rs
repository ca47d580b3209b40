//! Errors: their documents, exit codes and hints.

use crate::env::TestEnv;

// Contract: usage errors are documents too, with the command's name and all of the message.
#[test]
fn wrong_arguments_are_documents() {
    let env = TestEnv::repo();
    let show = env.json(2, &["checkpoint", "show"]);
    assert_eq!(
        (&show["command"], &show["error"]["code"]),
        (&"checkpoint show".into(), &"usage".into())
    );
    assert!(
        show["error"]["message"].as_str().unwrap().contains("<SEL>"),
        "{show}"
    );
    let unknown = env.json(2, &["-C", ".", "bogus"]);
    assert_eq!(
        (&unknown["command"], &unknown["error"]["exit_code"]),
        (&"recover".into(), &2.into())
    );
    assert_eq!(
        env.json(2, &["--run", "status", "checkpoint"])["command"],
        "checkpoint"
    );
    let strategy = env.json(2, &["resume", "--strategy", "hope"]);
    assert_eq!(strategy["command"], "resume");
    let message = strategy["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("hope") && message.contains("retry_with_context"),
        "{message}"
    );
    env.json(2, &["rollback", "--iteration", "x"]);
    env.json(2, &["-C", "/nonexistent", "status"]);
    env.json(2, &["-C", "a.txt", "status"]);
    // Without --json stdout stays empty.
    let text = env.recover(&["checkpoint", "show"]).expect(2);
    assert!(
        text.stdout.is_empty() && text.stderr.starts_with("error: "),
        "{text:?}"
    );
    // What comes after -- is not ours.
    assert!(
        env.recover(&["bogus", "--", "--json"])
            .expect(2)
            .stdout
            .is_empty()
    );
}

// Contract, C7: hints work from any folder, whatever the paths are called.
#[test]
fn hints_can_be_copied_from_any_folder() {
    let env = TestEnv::plain();
    let odd = env.work().join("it's a \"tree\"");
    std::fs::create_dir(&odd).unwrap();
    let path = odd.to_string_lossy().into_owned();
    env.sh("cd \"it's a \\\"tree\\\"\" && git init -q && git commit -q --allow-empty -m x")
        .expect(0);
    let run = [
        "-C",
        &path,
        "run",
        "--run",
        "r'1",
        "--no-wait",
        "--feedback",
        "t=test -e ok",
        "--",
        "true",
    ];
    let document = env.json(6, &run);
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_recover"))
        .parent()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let copy = |hint: &str| env.sh(&format!("cd / && PATH=\"{bin}:$PATH\"; {hint}"));
    let hint =
        |document: &serde_json::Value, name: &str| document[name].as_str().expect(name).to_owned();
    copy(&format!(
        "{} --prepare-only",
        hint(&document, "resume_hint")
    ))
    .expect(0);
    let error = env.json(4, &["-C", &path, "manual-fix", "verify"]);
    copy(&hint(&error["error"], "hint")).expect(0);
    let error = env.json(8, &["-C", &path, "resume"]);
    copy(&hint(&error["error"], "hint")).expect(100);
    let error = env.json(4, &["-C", &path, "checkpoint", "show", "nope"]);
    copy(&hint(&error["error"], "hint")).expect(0);
    copy(&hint(&document, "rollback_hint")).expect(0);
    let init = ["-C", path.as_str(), "init"];
    env.json(0, &init);
    let error = env.json(13, &init);
    copy(&hint(&error["error"], "hint")).expect(0);
}

// Contract: an error is said on stderr, `error:` then `hint:`; with --json it is a document as well.
#[test]
fn errors_are_said_on_stderr() {
    let env = TestEnv::repo();
    let text = env.recover(&["checkpoint", "show", "nope"]).expect(4);
    assert!(text.stdout.is_empty());
    let lines: Vec<&str> = text.stderr.lines().collect();
    assert!(
        lines[0].starts_with("error: No checkpoint available"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("hint: recover -C "), "{lines:?}");
    let json = env
        .recover(&["--json", "checkpoint", "show", "nope"])
        .expect(4);
    assert_eq!(json.json()["error"]["exit_code"], 4);
    assert!(json.stderr.starts_with("error: "));
}

// Contract: one exit code a reason.
#[test]
fn each_reason_has_its_code() {
    let env = TestEnv::repo();
    let code = |exit: i32, args: &[&str]| {
        env.json(exit, args)["error"]["code"]
            .as_str()
            .map(str::to_owned)
    };
    assert_eq!(code(4, &["undo"]).as_deref(), Some("nothing_to_undo"));
    assert_eq!(
        code(4, &["rollback", "--to", "good"]).as_deref(),
        Some("no_checkpoint")
    );
    assert_eq!(
        code(4, &["status", "--run", "nope"]).as_deref(),
        Some("run_not_found")
    );
    env.json(0, &["run", "--run", "r", "--", "true"]);
    assert_eq!(
        code(13, &["run", "--run", "r", "--", "true"]).as_deref(),
        Some("already_exists")
    );
    assert_eq!(env.json(0, &["resume"])["changed"], false);
    let plain = TestEnv::plain();
    for args in [
        &["status"][..],
        &["log"],
        &["doctor"],
        &["undo"],
        &["rollback", "--full"],
        &["checkpoint", "list"],
    ] {
        assert_eq!(
            plain.json(10, args)["error"]["code"],
            "no_repository",
            "{args:?}"
        );
    }
}

// Contract: a run, a phase, a lane and a task have names; an empty one is a usage error, and an empty variable is unset.
#[test]
fn empty_names_are_refused() {
    let mut env = TestEnv::repo();
    for flag in ["--run", "--phase", "--lane", "--task"] {
        for args in [vec![flag, ""], vec![]] {
            let equals = format!("{flag}=");
            let args = if args.is_empty() {
                vec![equals.as_str()]
            } else {
                args
            };
            let error = env.json(2, &[&["checkpoint", "create"], &args[..]].concat());
            assert_eq!(error["error"]["code"], "usage", "{error}");
        }
    }
    assert!(!env.exists(".ultraplan"));
    env.set("RECOVER_RUN_ID", "");
    let made = env.json(0, &["checkpoint", "create"])["checkpoint"]["run_id"].clone();
    assert_eq!(made, "manual");
}

// C4, C5: the top-level flags are the subcommands, wherever they stand.
#[test]
fn top_level_flags_are_the_subcommands() {
    let env = TestEnv::repo();
    env.json(
        0,
        &["run", "--run", "r", "--", "sh", "-c", "echo two > a.txt"],
    );
    assert_eq!(
        env.json(0, &["--resume", "--run", "r"])["command"],
        "resume"
    );
    let rolled = env.json(0, &["--full", "--rollback", "--run", "r"]);
    assert_eq!(
        (&rolled["command"], &rolled["changed"]),
        (&"rollback".into(), &true.into())
    );
    assert_eq!(env.read("a.txt"), "one\n");
    env.json(2, &["--resume", "--rollback"]);
}

/// Wrong names of runs have a way on, and so have a list without tasks and a folder without files.
#[test]
fn wrong_names_have_a_way_on() {
    let env = TestEnv::repo();
    for run in ["night", "l-1", "l-2"] {
        env.json(0, &["run", "--run", run, "--", "true"]);
    }
    let said = |code: i32, args: &[&str], words: &str| {
        let ran = env.recover(args).expect(code);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    };
    said(
        4,
        &["status", "nigth"],
        "no run 'nigth'; did you mean 'night'?",
    );
    said(4, &["accept", "l"], "no run 'l'; there is l-1, l-2");
    said(4, &["show", "night"], "a run has that name");
    said(
        13,
        &["run", "--run", "night", "--", "true"],
        "--series in place of --run",
    );
    env.write("plain.md", "nothing\n");
    said(
        2,
        &["run", "--tasks", "plain.md", "--", "true"],
        "begins with - [ ]",
    );
    env.sh("git init -q --bare ../bare.git").expect(0);
    said(10, &["-C", "../bare.git", "status"], "git clone it");
}
