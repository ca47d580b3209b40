//! What comes from another machine: what it may start, what becomes of files, and where anything is sent.

use super::*;
use crate::terminal::Terminal;

/// Recorded elsewhere, a step and its compensation are asked about, whoever made the run.
#[test]
fn a_step_that_was_recorded_elsewhere_starts_nothing_unasked() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "false"],
    ))
    .expect(6);
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &[]));
    let compensation = format!("touch {}", one.root().join("compensated").display());
    let step = [
        "step",
        "deploy",
        "--run",
        "night",
        "--compensate",
        &compensation,
        "--",
        "true",
    ];
    two.recover(&step).expect(0);
    two.recover(&["step", "again", "--run", "night", "--", "false"])
        .expect(1);
    two.json(0, &with(&["remote", "release"], &[]));
    one.json(0, &with(&["remote", "claim"], &[]));
    assert_eq!(
        one.error(13, &["step", "again", "--run", "night"])["code"],
        "not_trusted"
    );
    assert_eq!(
        one.error(
            13,
            &["rollback", "--to", "initial", "--run", "night", "--yes"]
        )["code"],
        "not_trusted"
    );
    assert!(!one.root().join("compensated").exists());
    assert_eq!(
        one.recover(&["step", "again", "--run", "night", "--trust"])
            .code,
        1
    );
}

#[test]
fn a_run_from_elsewhere_stays_so_when_the_remote_has_it_no_more() {
    let (server, one) = server();
    one.recover(&with(
        &["run"],
        &["--attempts", "1", "--", "sh", "-c", "touch ran; exit 1"],
    ))
    .expect(8);
    let two = machine(&server, "beta");
    two.json(0, &with(&["remote", "claim"], &[]));
    let resume: &[&str] = &["resume", "--run", "night", "--strategy", "retry_same"];
    two.error(13, resume);
    two.json(0, &with(&["remote", "release"], &[]));
    two.json(0, &with(&["remote", "prune"], &["--yes"]));
    assert_eq!(two.error(13, resume)["code"], "not_trusted");
    // Neither is it one's own where what is noted of it cannot be read.
    let noted = two.sh("find .ultraplan -name taken-in.json").stdout;
    fs::write(two.work().join(noted.trim()), "{").expect("a file of the test's own");
    assert_eq!(two.error(13, resume)["code"], "not_trusted");
    assert!(!two.exists("ran"));
    let ran = two.recover(&[resume, &["--trust", "--wait"]].concat());
    assert!(two.exists("ran"), "{ran:?}");
}

#[test]
fn signed_states_are_asked_about_and_the_claim_is_not_kept() {
    let (server, one) = server();
    let key = one.root().join("key");
    one.sh(&format!(
        "ssh-keygen -q -t ed25519 -N '' -f '{}'",
        key.display()
    ))
    .expect(0);
    let public = fs::read_to_string(key.with_extension("pub")).expect("a key");
    let public: Vec<&str> = public.split_whitespace().take(2).collect();
    let signers = one.root().join("signers");
    fs::write(
        &signers,
        format!("tester@example.com {}\n", public.join(" ")),
    )
    .expect("a place of the test's own");
    let two = machine(&server, "beta");
    configure(
        &two,
        &server,
        &format!("allowed_signers = \"{}\"\n", signers.display()),
    );
    for env in [&one, &two] {
        env.git(&["config", "gpg.format", "ssh"]);
        env.git(&["config", "user.signingkey", &key.to_string_lossy()]);
        env.git(&["config", "commit.gpgsign", "true"]);
    }
    one.script("agent.sh", "touch ran\nexit 1");
    one.recover(&with(
        &["run"],
        &["--no-wait", "--attempts", "2", "--", "./agent.sh"],
    ))
    .expect(6);
    assert_eq!(
        two.error(13, &with(&["resume"], &["--wait"]))["code"],
        "not_trusted"
    );
    let status = two.json(0, &with(&["remote", "status"], &[]));
    assert!(of_run(&status, "night")["holder"].is_null(), "{status:#}");
    assert!(!two.exists("ran"));
    two.recover(&with(&["resume"], &["--wait", "--trust"]))
        .expect(8);
    assert!(two.exists("ran"));
    // What nobody of them signed is not believed.
    one.git(&["config", "commit.gpgsign", "false"]);
    one.json(0, &with(&["remote", "claim"], &[]));
    two.error(13, &with(&["remote", "claim"], &["--steal", "--yes"]));
}

#[test]
fn a_program_that_signs_and_hangs_is_stopped_with_the_run() {
    let (_, one) = server();
    let sign = one.root().join("sign");
    fs::write(&sign, "#!/bin/sh\ntouch ../signing\nexec sleep 1000\n")
        .expect("a place of the test's own");
    one.sh("chmod +x ../sign").expect(0);
    one.git(&["config", "commit.gpgsign", "true"]);
    one.git(&["config", "gpg.program", &sign.to_string_lossy()]);
    let run = AtWork::start(&one, &with(&["run"], &["--", "true"]));
    until("it is about to sign", || {
        one.root().join("signing").exists()
    });
    let begun = Instant::now();
    one.sh(&format!("kill -TERM {}", run.0.id())).expect(0);
    run.end().expect(143);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn nothing_is_sent_without_consent_whatever_the_command() {
    let (server, one) = server();
    one.script("agent.sh", "exit 1");
    let work = [
        "run",
        "--run",
        "night",
        "--attempts",
        "1",
        "--iterations",
        "2",
        "--feedback",
        "t=test -e fixed",
        "--",
    ];
    one.recover(&[&work[..], &["./agent.sh"]].concat())
        .expect(8);
    // From here on every run is to lie there; nobody has consented to that.
    let config = one.root().join("home/.config/recover/config.toml");
    fs::write(&config, "[remote]\nname = \"origin\"\nlease = \"30s\"\n")
        .expect("a place of the test's own");
    one.recover(&["manual-fix", "start", "--run", "night"])
        .expect(0);
    one.put("fixed", "");
    one.recover(&["manual-fix", "verify", "--run", "night"])
        .expect(0);
    for _ in 0..2 {
        assert_eq!(
            one.error(13, &["manual-fix", "continue", "--run", "night"])["code"],
            "confirmation_needed"
        );
    }
    assert!(!one.git(&["ls-remote", "origin"]).contains("refs/recover"));

    // The same name, another place.
    configure(&one, &server, "");
    one.recover(&[
        "run",
        "--remote",
        "origin",
        "--run",
        "day",
        "--attempts",
        "1",
        "--",
        "false",
    ])
    .expect(8);
    one.json(
        0,
        &["remote", "claim", "--remote", "origin", "--run", "day"],
    );
    let other = one.root().join("other.git");
    one.git(&["init", "-q", "--bare", &other.to_string_lossy()]);
    one.git(&["remote", "set-url", "origin", &other.to_string_lossy()]);
    for consents in [false, true] {
        if consents {
            configure(&one, &other, "");
        }
        one.recover(&["step", "deploy", "--run", "day", "--", "touch", "deployed"])
            .expect(13);
        one.recover(&["remote", "push", "--remote", "origin", "--run", "day"])
            .expect(13);
        one.recover(&["--yes", "close", "day", "--dry-run"])
            .expect(0);
        assert_eq!(one.git(&["ls-remote", "origin"]), "");
    }
    assert!(!one.exists("deployed"));
    // The place that it lies at may have another URL.
    let moved = format!("file://{}", server.display());
    one.git(&["remote", "set-url", "origin", &moved]);
    configure(&one, Path::new(&moved), "");
    one.recover(&["step", "deploy", "--run", "day", "--", "touch", "deployed"])
        .expect(0);
    assert!(one.exists("deployed"));
}

#[test]
fn who_does_not_consent_hears_that_in_a_line() {
    let (_, one) = server();
    let config = one.root().join("home/.config/recover/config.toml");
    fs::write(&config, "[remote]\nlease = \"30s\"\n").expect("a place of the test's own");
    one.put("notes.txt", "mine\n");
    let Some(mut terminal) = Terminal::of(&one, &with(&["run"], &["--", "true"])) else {
        return;
    };
    terminal.expect("notes.txt");
    terminal.expect("y yes, n leave");
    terminal.press("n");
    let (code, said) = terminal.end();
    let after = said.rsplit_once("y yes, n leave").expect("the question").1;
    assert!(
        code == 13 && after.contains("cancelled; nothing was sent"),
        "{said}"
    );
    assert!(
        !after.contains("notes.txt") && after.contains("--yes"),
        "{said}"
    );
}

#[test]
fn files_that_stayed_are_there_when_the_run_comes_back() {
    let (server, one) = server();
    configure(&one, &server, "max_object = \"100 KiB\"\n");
    one.write("agent.sh", "echo $RECOVER_TEST_HOST >> log.txt\nexit 1\n");
    one.git(&["add", "."]);
    one.git(&["commit", "-qm", "an agent"]);
    one.git(&["push", "-q", "origin", "main"]);
    one.put(".env", "PASSWORD=hunter22-hunter22\n");
    one.put("big.bin", "x".repeat(200_000));
    one.recover(&with(
        &["run"],
        &["--attempts", "1", "--", "sh", "agent.sh"],
    ))
    .expect(8);
    let two = machine(&server, "beta");
    let ran = two.recover(&with(
        &["resume"],
        &["--strategy", "retry_same", "--trust", "--prepare-only"],
    ));
    assert_eq!(two.read("log.txt"), "alpha\n", "{ran:?}");
    two.put("log.txt", "alpha\nbeta\n");
    two.json(0, &["checkpoint", "create", "--run", "night"]);
    two.json(0, &with(&["remote", "push"], &[]));
    assert!(!two.exists(".env"));
    let ran = one.recover(&with(
        &["resume"],
        &["--strategy", "retry_same", "--prepare-only"],
    ));
    assert_eq!(one.read("log.txt"), "alpha\nbeta\n", "{ran:?}");
    assert!(
        one.exists(".env") && one.exists("big.bin"),
        "{}",
        one.sh("ls -A").stdout
    );
    // Nor does going back to what the other machine left take them.
    let listed = one.json(0, &["checkpoint", "list", "--run", "night"]);
    let of_other = listed["checkpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .rev()
        .nth(1)
        .expect("another one");
    one.recover(&[
        "rollback",
        "--to",
        of_other["id"].as_str().expect("an id"),
        "--run",
        "night",
        "--yes",
        "--edits",
        "discard",
    ]);
    assert!(
        one.exists(".env") && one.exists("big.bin"),
        "{}",
        one.sh("ls -A").stdout
    );
}
