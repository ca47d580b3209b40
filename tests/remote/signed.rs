//! Signed states: who signs, whose word is taken, and a program that does not come to an end.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use recover::testing::git::Error;
use recover::testing::git::{Limits, NewState};
use recover::testing::model::Timestamp;

use crate::env::TestEnv;
use crate::machines::{LEAVES_A, NIGHT, REMOTE, RESUME, machine, push_agent, repo};
use crate::servers::{Kind, Server, script};

/// A key of ssh's; `None`, and a line about it, where nothing makes one.
fn key(env: &TestEnv) -> Option<String> {
    let path = env.root().join("key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&path)
        .status();
    if made.is_ok_and(|status| status.success()) {
        return Some(path.display().to_string());
    }
    eprintln!("skipped: ssh-keygen is missing");
    None
}

fn signs_with(env: &TestEnv, key: &str) {
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("user.signingkey", key),
        ("commit.gpgsign", "true"),
    ] {
        env.git(&["config", name, value]);
    }
}

fn demands(env: &TestEnv, signers: &str) {
    let folder = env.root().join("home/.config/recover");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        format!("[remote]\nallowed_signers = '{signers}'\n"),
    )
    .unwrap();
}

#[test]
fn only_the_word_of_allowed_signers_is_taken() {
    let server = Server::start(Kind::Path).unwrap();
    push_agent(&server, LEAVES_A, "exit 0");
    let a = machine(&server, "a");
    let Some(key) = key(&a) else { return };
    let public = fs::read_to_string(format!("{key}.pub")).unwrap();
    let signers = a.root().join("signers").display().to_string();
    fs::write(&signers, format!("* {public}")).unwrap();
    signs_with(&a, &key);
    a.recover(&NIGHT).expect(143);
    assert!(
        server
            .git(&["cat-file", "commit", "refs/recover-runs/night"])
            .contains("BEGIN SSH SIGNATURE")
    );

    // Whoever demands signatures takes up what the key signed.
    let b = machine(&server, "b");
    let other = self::key(&b).unwrap();
    signs_with(&b, &key);
    demands(&b, &signers);
    b.recover(&RESUME).expect(0);
    assert!(b.read("who.txt").ends_with("b\n"));

    // What another key signed is nobody's word, for readers and for who would take it up.
    let c = machine(&server, "c");
    signs_with(&c, &other);
    c.json(
        0,
        &[
            "remote", "claim", "--run", "night", "--remote", REMOTE, "--yes", "--steal",
        ],
    );
    let d = machine(&server, "d");
    demands(&d, &signers);
    let refused = d.error(13, &RESUME);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("signed by none of"),
        "{refused}"
    );
    assert!(!d.exists("who.txt"));
}

#[test]
fn a_program_that_signs_and_does_not_end_is_ended() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    let program = env.root().join("sign");
    let begun = env.root().join("begun");
    script(
        &program,
        &format!("touch {}; exec sleep 600", begun.display()),
    );
    env.git(&["config", "gpg.program", &program.display().to_string()]);
    env.git(&["config", "commit.gpgsign", "true"]);

    let here = repo(&env, &server);
    let files = [("claim.json", b"{}".to_vec())];
    let state = NewState {
        parents: &[],
        files: &files,
        message: "x\n",
        at: Timestamp::default(),
    };
    let started = Instant::now();
    let never = || false;
    let answer = here.write_run_state(&state, &Limits::new(Duration::from_secs(1), &never));
    assert!(
        matches!(&answer, Err(Error::Program { said, .. }) if said.contains("did not end in time")),
        "{answer:?}"
    );
    let stopped = || begun.exists();
    fs::remove_file(&begun).unwrap();
    let answer = here.write_run_state(&state, &Limits::new(Duration::from_secs(60), &stopped));
    assert!(matches!(answer, Err(Error::Stopped)), "{answer:?}");
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );

    // The same of a whole run: a request to stop is heard.
    fs::remove_file(&begun).unwrap();
    let mut run = env.recover_command(&["run", "--remote", REMOTE, "--yes", "--", "true"]);
    let mut run = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let wait = |what: &str, is_so: &mut dyn FnMut() -> bool| {
        while !is_so() {
            assert!(started.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait("it signs", &mut || begun.exists());
    env.sh(&format!("kill -TERM {}", run.id())).expect(0);
    let asked = Instant::now();
    wait("it ends", &mut || run.try_wait().unwrap().is_some());
    assert!(
        asked.elapsed() < Duration::from_secs(30),
        "{:?}",
        asked.elapsed()
    );
}

#[test]
fn a_signature_is_not_taken_for_missing_when_it_was_not_looked_at() {
    let server = Server::start(Kind::Path).unwrap();
    let env = machine(&server, "one");
    let Some(key) = key(&env) else { return };
    signs_with(&env, &key);
    let public = fs::read_to_string(format!("{key}.pub")).unwrap();
    let signers = env.root().join("signers").display().to_string();
    fs::write(&signers, format!("* {public}")).unwrap();
    let here = repo(&env, &server);
    let files = [("claim.json", b"{}".to_vec())];
    let state = NewState {
        parents: &[],
        files: &files,
        message: "x\n",
        at: Timestamp::default(),
    };
    let limits = crate::machines::limits();
    let commit = here.write_run_state(&state, &limits).unwrap();
    assert!(here.is_signed(&commit, &signers, &limits).unwrap());
    fs::write(&signers, "").unwrap();
    assert!(!here.is_signed(&commit, &signers, &limits).unwrap());
    let slow = env.root().join("slow");
    script(&slow, "exec sleep 600");
    env.git(&["config", "gpg.ssh.program", &slow.display().to_string()]);
    let stopped = || true;
    let answer = here.is_signed(
        &commit,
        &signers,
        &Limits::new(Duration::from_secs(60), &stopped),
    );
    assert!(matches!(answer, Err(Error::Stopped)), "{answer:?}");
}
