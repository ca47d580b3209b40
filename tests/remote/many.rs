//! Many machines want one run: one holds it at a time, and those that are killed lose it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::machines::{REMOTE, machine, push_agent};
use crate::servers::{Kind, Server};

/// Notes when it begins and ends, in nanoseconds.
const AGENT: &str = r#"
note() { echo "$1 $(date +%s%N) $RECOVER_TEST_HOST $RECOVER_FENCING" >> "$NOTES/all"; }
echo $$ > "$NOTES/$RECOVER_TEST_HOST.pid"; note begin; sleep 0.7; note end; exit 1"#;

const LIMIT: usize = 8;

fn on(server: &Server, name: &str, notes: &Path) -> TestEnv {
    let mut env = machine(server, name);
    env.set("NOTES", &notes.display().to_string()).set("RECOVER_COOLDOWN", "0s");
    let folder = env.root().join("home/.config/recover");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), format!("[remote]\nname = '{REMOTE}'\nlease = '30s'\n")).unwrap();
    env
}

fn start(env: &TestEnv, args: &[&str]) -> Child {
    env.recover_command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// What the agents noted: begin or end, when, on which machine, with which number.
fn noted(notes: &Path) -> Vec<(String, u128, String, u64)> {
    let text = fs::read_to_string(notes.join("all")).unwrap_or_default();
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields[0].to_owned(), fields[1].parse().unwrap(), fields[2].to_owned(), fields[3].parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// The machine is gone: what supervises and its agent.
fn destroy(mut recover: Child, name: &str, env: &TestEnv, notes: &Path) {
    recover.kill().unwrap();
    recover.wait().unwrap();
    let pid = fs::read_to_string(notes.join(format!("{name}.pid"))).unwrap();
    env.sh(&format!("kill -KILL {}", pid.trim()));
}

#[test]
fn one_machine_at_a_time_goes_on_with_a_run() {
    let Some(server) = Server::start(Kind::Daemon) else { return };
    server.record_history();
    let notes: PathBuf = server.root().join("notes");
    fs::create_dir(&notes).unwrap();
    push_agent(&server, AGENT, "exit 0");
    let first = on(&server, "m0", &notes);
    let limit = LIMIT.to_string();
    let run = ["run", "--run", "night", "--yes", "--attempts", &limit, "--on-failure", "retry", "--", "./agent.sh"];
    let running = start(&first, &run);
    let begun = Instant::now();
    let wait_for = |what: &str, is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(240), "{what} does not come: {:?}", noted(&notes));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for("an attempt", &|| noted(&notes).len() >= 3);
    destroy(running, "m0", &first, &notes);

    let names = ["m1", "m2", "m3", "m4"];
    let machines: Vec<TestEnv> = names.iter().map(|name| on(&server, name, &notes)).collect();
    let resume = ["resume", "--run", "night", "--remote", REMOTE, "--yes", "--trust", "--wait=4m"];
    let mut all: Vec<(usize, Child)> = machines.iter().enumerate().map(|(at, env)| (at, start(env, &resume))).collect();
    // The next one goes, too.
    let next = || noted(&notes).into_iter().find(|note| note.2 != "m0").map(|note| note.2);
    wait_for("the next machine", &|| next().is_some());
    let holder = next().unwrap();
    let at = names.iter().position(|name| *name == holder).unwrap();
    let place = all.iter().position(|(machine, _)| *machine == at).unwrap();
    destroy(all.remove(place).1, &holder, &machines[at], &notes);
    for (_, mut child) in all {
        wait_for("the end", &|| noted(&notes).iter().any(|note| note.2 != "m0" && note.2 != holder));
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(120), "a machine does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    // No two agents worked at once, and each machine had a higher number than the one before.
    let found = noted(&notes);
    let mut working: Option<(String, u64)> = None;
    let mut last = 0;
    for (what, _, host, fencing) in &found {
        assert!(*fencing >= last, "{found:?}");
        last = *fencing;
        if let Some((who, _)) = &working {
            // One that was killed never ends.
            assert!(who == host || *what == "begin" && (who == "m0" || *who == holder), "{found:?}");
        }
        working = (what == "begin").then(|| (host.clone(), *fencing));
    }
    let begun = found.iter().filter(|note| note.0 == "begin").count();
    assert!((LIMIT..=LIMIT + 2).contains(&begun), "{begun} attempts, and two were killed: {found:?}");
    // The server saw the same: who held it changed only with a higher number.
    let claims: Vec<(String, u64)> = server
        .history()
        .into_iter()
        .filter(|change| {
            change.name == "refs/recover-runs/night" || change.name.starts_with("refs/recover-runs/night+")
        })
        .filter_map(|change| Some((change.claim["nonce"].as_str()?.to_owned(), change.claim["fencing"].as_u64()?)))
        .collect();
    assert!(claims.len() > LIMIT, "{claims:?}");
    for pair in claims.windows(2) {
        assert!(pair[0] == pair[1] || pair[0].1 < pair[1].1, "{claims:?}");
    }
}
