//! Object stores: what is refused, what lies there, and what is made of answers that are late, doubled or lost.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::machines::{
    LEAVES_A, NIGHT, REMOTE, RESUME, configure, machine, machine_at, push_agent,
};
use crate::servers::{Kind, Server, free_port};

const CHECK: [&str; 5] = ["remote", "check", "--remote", REMOTE, "--yes"];
/// Notes each attempt, and fails.
const AGENT: &str =
    "echo $RECOVER_ATTEMPT >> \"$NOTES\"; echo $RECOVER_ATTEMPT >> work.txt; exit 1";

/// A proxy that answers as a file says.
struct Between {
    port: u16,
    mode: PathBuf,
    child: Child,
}

impl Between {
    fn on(server: &Server) -> Self {
        let (port, mode) = (free_port(), server.root().join("mode"));
        fs::write(&mode, "").unwrap();
        let mut child = server.store_command(server.port, "proxy");
        let child = child.arg(port.to_string()).arg(&mode).spawn().unwrap();
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "the proxy does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { port, mode, child }
    }

    fn set(&self, mode: &str) {
        fs::write(&self.mode, mode).unwrap();
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keys(server: &Server) -> Vec<String> {
    let listed = server.store(server.port, "keys");
    listed.split_whitespace().map(str::to_owned).collect()
}

fn count(server: &Server, begin: &str) -> usize {
    keys(server)
        .iter()
        .filter(|key| key.starts_with(begin))
        .count()
}

#[test]
fn a_store_that_does_not_compare_is_refused() {
    for server in Kind::STORES.into_iter().filter_map(Server::start) {
        let env = machine(&server, "one");
        let found = env.json(0, &CHECK);
        assert_eq!(found["usable"], true, "{:?}: {found:#}", server.kind);
        assert_eq!(
            keys(&server),
            Vec::<String>::new(),
            "{:?}: nothing is left",
            server.kind
        );
    }
    let Some(server) = Server::start(Kind::S3rver) else {
        return;
    };
    push_agent(&server, LEAVES_A, "exit 0");
    let env = machine(&server, "one");
    let found = env.json(13, &CHECK);
    let holds = |name: &str| {
        let all = found["guarantees"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["holds"].clone()
    };
    assert_eq!(
        (holds("create"), holds("compare_and_swap")),
        (false.into(), false.into()),
        "{found:#}"
    );
    let refused = env.error(13, &NIGHT);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("lacks what a run needs there: create (8 of eight"),
        "{message}"
    );
    assert!(!env.exists("who.txt"), "nothing was begun");
}

#[test]
fn a_store_is_the_users_own_to_name() {
    let server = Server::start(Kind::Path).unwrap();
    let mut env = machine(&server, "one");
    env.write(
        ".ultraplan/recover.toml",
        "[store.team]\nurl = 's3://b/x'\n",
    );
    let refused = env.error(2, &["runs", "--remote", "team"]);
    assert!(
        refused["message"].as_str().unwrap().contains("store"),
        "{refused}"
    );
    fs::remove_file(env.work().join(".ultraplan/recover.toml")).unwrap();
    for (name, url, said) in [
        (
            "team",
            "https://b/x",
            "[store.team]: its URL is not of the form",
        ),
        (
            "team",
            "s3://b/x?endpoint=http://me:secret@h",
            "which do not belong there",
        ),
        (REMOTE, "s3://b/x", "git knows a remote of that name"),
    ] {
        configure(&env, &format!("[store.{name}]\nurl = '{url}'\n"));
        let refused = env.error(2, &["runs", "--remote", name]);
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(said), "{url}: {message}");
        fs::remove_file(env.root().join("home/.config/recover/config.toml")).unwrap();
    }
    // Keys are the environment's or a profile's.
    let port = free_port();
    configure(
        &env,
        &format!("[store.team]\nurl = 's3://b/x?endpoint=http://127.0.0.1:{port}'\n"),
    );
    let none = env.error(1, &["runs", "--remote", "team"]);
    assert!(
        none["message"]
            .as_str()
            .unwrap()
            .contains("no keys were found: AWS_ACCESS_KEY_ID"),
        "{none}"
    );
    env.set("AWS_PROFILE", "team");
    let aws = env.root().join("home/.aws");
    fs::create_dir_all(&aws).unwrap();
    fs::write(
        aws.join("credentials"),
        "[team]\naws_access_key_id = A\naws_secret_access_key = B\n",
    )
    .unwrap();
    let away = env.error(9, &["runs", "--remote", "team"]);
    assert!(
        away["message"]
            .as_str()
            .unwrap()
            .contains("cannot be reached"),
        "{away}"
    );
}

#[test]
fn a_history_is_sent_once_and_removed_when_nobody_needs_it() {
    for server in Kind::STORES.into_iter().filter_map(Server::start) {
        let kind = server.kind;
        push_agent(&server, LEAVES_A, "exit 0");
        let between = Between::on(&server);
        let a = machine_at(&server, between.port, "a", &[]);
        a.recover(&NIGHT).expect(143);
        assert_eq!(
            (count(&server, "bases/"), count(&server, "packs/")),
            (1, 1),
            "{kind:?}"
        );
        let second: Vec<&str> = NIGHT
            .map(|word| if word == "night" { "day" } else { word })
            .to_vec();
        a.recover(&second).expect(143);
        assert_eq!(
            (count(&server, "bases/"), count(&server, "packs/")),
            (1, 1),
            "{kind:?}: one for all"
        );

        // A clone that has none of the history gets it from there.
        let mut b = TestEnv::plain();
        for (name, value) in server.login().1 {
            b.set(&name, &value);
        }
        b.set("RECOVER_TEST_HOST", "b");
        b.git(&["init", "-q", "."]);
        configure(
            &b,
            &format!(
                "[store.{REMOTE}]\nurl = '{}'\n",
                server.store_url_at(between.port)
            ),
        );
        b.recover(&RESUME).expect(0);
        assert!(b.read("who.txt").ends_with("b\n"), "{kind:?}");

        // What is new stays, whatever names it.
        let prune = ["remote", "prune", "--remote", REMOTE, "--yes"];
        b.json(0, &["close", "--run", "night", "--yes"]);
        b.recover(&prune).expect(0);
        assert_eq!(server.at("refs/recover-runs/night"), None, "{kind:?}");
        assert_eq!(count(&server, "packs/"), 1, "{kind:?}");
        // A week later the other run still needs it.
        between.set("late");
        b.recover(&prune).expect(0);
        assert_eq!(
            count(&server, "packs/"),
            1,
            "{kind:?}: the other run is based on it"
        );
        between.set("");
        a.json(0, &["close", "--run", "day", "--yes"]);
        between.set("late");
        a.recover(&prune).expect(0);
        assert_eq!(count(&server, "packs/"), 0, "{kind:?}: {:?}", keys(&server));
        // Who begins another run on it sends it again.
        between.set("");
        let third: Vec<&str> = NIGHT
            .map(|word| if word == "night" { "third" } else { word })
            .to_vec();
        a.recover(&third).expect(143);
        assert_eq!(count(&server, "packs/"), 1, "{kind:?}");
    }
}

#[test]
fn answers_that_are_late_doubled_or_lost_change_nothing() {
    for server in Kind::STORES.into_iter().filter_map(Server::start) {
        let kind = server.kind;
        push_agent(&server, AGENT, "exit 0");
        let between = Between::on(&server);
        let mut env = machine_at(&server, between.port, "one", &[]);
        env.set("RECOVER_COOLDOWN", "0s");
        env.recover(&CHECK).expect(0);
        for mode in ["", "503", "429", "412", "twice", "lost"] {
            between.set(mode);
            let run = format!("run-{mode}");
            let notes = server.root().join(&run);
            env.set("NOTES", &notes.display().to_string());
            let args = [
                "run",
                "--run",
                &run,
                "--task",
                &run,
                "--remote",
                REMOTE,
                "--yes",
                "--attempts",
                "2",
                "--on-failure",
                "retry",
                "--",
                "./agent.sh",
            ];
            let mut ran = env.recover(&args);
            // A first claim is not waited for.
            if ran.code == 9 {
                assert!(!notes.exists(), "{kind:?} {mode}: {}", ran.stderr);
                ran = env.recover(&args);
            }
            assert_eq!(
                attempts(&notes),
                "1\n2\n",
                "{kind:?} {mode}: {} {}",
                ran.code,
                ran.stderr
            );
            between.set("");
            let name = format!("refs/recover-runs/{run}");
            let claim = server.git(&["cat-file", "blob", &format!("{name}:claim.json")]);
            let claim: serde_json::Value = serde_json::from_str(&claim).unwrap();
            assert_eq!(
                (&claim["released"], &claim["fencing"]),
                (&true.into(), &1.into()),
                "{kind:?} {mode}"
            );
            assert_eq!(
                server.at(&format!("refs/recover-runs-side/{run}/1")),
                None,
                "{kind:?} {mode}"
            );
        }
    }
}

fn attempts(notes: &Path) -> String {
    fs::read_to_string(notes).unwrap_or_default()
}
