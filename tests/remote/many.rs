//! Many machines wait for one run: the one that had it is gone, and when its lease is over one of them goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::machines::{REMOTE, configure, machine, push_agent};
use crate::servers::{Kind, Server};

/// Notes when it begins and ends, in nanoseconds. On the first machine the second attempt does not end by itself.
const AGENT: &str = r#"
note() { echo "$1 $(date +%s%N) $RECOVER_TEST_HOST $RECOVER_FENCING" >> "$NOTES/all"; }
echo $$ > "$NOTES/$RECOVER_TEST_HOST.pid"; note begin
if [ "$RECOVER_TEST_HOST" = m0 ] && [ "$(grep -c begin "$NOTES/all")" = 2 ]; then exec sleep 600; fi
sleep 0.5; note end; exit 1"#;

const LIMIT: usize = 4;
const LEASE: Duration = Duration::from_secs(30);

fn on(server: &Server, name: &str, notes: &Path) -> TestEnv {
    let mut env = machine(server, name);
    env.set("NOTES", &notes.display().to_string())
        .set("RECOVER_COOLDOWN", "0s");
    let text = format!(
        "[remote]\nname = '{REMOTE}'\nlease = '{}s'\n",
        LEASE.as_secs()
    );
    configure(&env, &text);
    env
}

fn start(env: &TestEnv, args: &[&str]) -> Child {
    env.recover_command(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What the agents noted: begin or end, when, on which machine, with which number.
fn noted(notes: &Path) -> Vec<(String, u128, String, u64)> {
    let text = fs::read_to_string(notes.join("all")).unwrap_or_default();
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        (
            fields[0].to_owned(),
            fields[1].parse().unwrap(),
            fields[2].to_owned(),
            fields[3].parse().unwrap(),
        )
    };
    text.lines().map(line).collect()
}

#[test]
fn one_machine_at_a_time_goes_on_with_a_run() {
    let Some(server) = Server::start(Kind::Daemon) else {
        return;
    };
    server.record_history();
    let notes: PathBuf = server.root().join("notes");
    fs::create_dir(&notes).unwrap();
    push_agent(&server, AGENT, "exit 0");
    let first = on(&server, "m0", &notes);
    let machines: Vec<TestEnv> = (1..5)
        .map(|number| on(&server, &format!("m{number}"), &notes))
        .collect();
    let limit = LIMIT.to_string();
    let run = [
        "run",
        "--run",
        "night",
        "--yes",
        "--attempts",
        &limit,
        "--on-failure",
        "retry",
        "--",
        "./agent.sh",
    ];
    let mut running = start(&first, &run);
    let begun = Instant::now();
    let wait_for = |what: &str, is_so: &mut dyn FnMut() -> bool| {
        while !is_so() {
            assert!(
                begun.elapsed() < Duration::from_secs(180),
                "{what} does not come: {:?}",
                noted(&notes)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for("the second attempt", &mut || noted(&notes).len() >= 3);
    // The machine is gone: what supervises and its agent.
    running.kill().unwrap();
    running.wait().unwrap();
    let gone = Instant::now();
    let agent = fs::read_to_string(notes.join("m0.pid")).unwrap();
    first.sh(&format!("kill -KILL {}", agent.trim()));

    let resume = [
        "resume",
        "--run",
        "night",
        "--remote",
        REMOTE,
        "--yes",
        "--trust",
        "--wait=4m",
    ];
    let mut all: Vec<Child> = machines.iter().map(|env| start(env, &resume)).collect();
    wait_for("the next machine", &mut || {
        noted(&notes).iter().any(|note| note.2 != "m0")
    });
    assert!(
        gone.elapsed() >= LEASE,
        "a claim is taken before its lease is over: {:?}",
        gone.elapsed()
    );
    for child in &mut all {
        wait_for("the end of a machine", &mut || {
            child.try_wait().unwrap().is_some()
        });
    }

    // No two agents worked at once, and each machine had a higher number than the one before.
    let found = noted(&notes);
    let mut working: Option<&str> = None;
    let mut last = 0;
    for (what, _, host, fencing) in &found {
        assert!(*fencing >= last, "{found:?}");
        last = *fencing;
        // The one that was killed never ends.
        assert!(
            working.is_none_or(|who| who == host || who == "m0"),
            "{found:?}"
        );
        working = (what == "begin").then_some(host);
    }
    let begun = found.iter().filter(|note| note.0 == "begin").count();
    assert_eq!(
        begun, LIMIT,
        "one of them was killed, and counts: {found:?}"
    );
    // The server saw the same: who held it changed only with a higher number.
    let claims: Vec<(String, u64)> = server
        .history()
        .into_iter()
        .filter(|change| change.name == "refs/recover-runs/night")
        .filter_map(|change| {
            Some((
                change.claim["nonce"].as_str()?.to_owned(),
                change.claim["fencing"].as_u64()?,
            ))
        })
        .collect();
    assert!(claims.len() > LIMIT, "{claims:?}");
    for pair in claims.windows(2) {
        assert!(pair[0] == pair[1] || pair[0].1 < pair[1].1, "{claims:?}");
    }
}
