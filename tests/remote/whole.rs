//! Whole runs: on a server that takes neither forced pushes nor deletions, with what they cost, through connections that are cut.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::env::TestEnv;
use crate::machines::{self, LEAVES_A, NIGHT, REMOTE, RESUME, machine, machine_at, push_agent};
use crate::proxy::{Fault, Proxy};
use crate::servers::{Kind, Server};

/// Notes each attempt, and fails.
const AGENT: &str = "echo \"$RECOVER_RUN_ID $RECOVER_ATTEMPT\" >> \"$NOTES/attempts\"; echo $RECOVER_ATTEMPT >> work.txt; exit 1";

fn attempts(notes: &Path, run: &str) -> usize {
    let text = fs::read_to_string(notes.join("attempts")).unwrap_or_default();
    text.lines()
        .filter(|line| line.split(' ').next() == Some(run))
        .count()
}

/// A server whose branch has the agent, and a place for its notes.
fn with_agent(kind: Kind, agent: &str) -> Option<(Server, PathBuf)> {
    let server = Server::start(kind)?;
    let notes = server.root().join("notes");
    fs::create_dir(&notes).unwrap();
    push_agent(&server, agent, "exit 0");
    Some((server, notes))
}

fn on(server: &Server, proxy: &Proxy, name: &str, notes: &Path, more: &str) -> TestEnv {
    let mut env = machine_at(server, proxy.port, name, &[]);
    env.set("NOTES", &notes.display().to_string())
        .set("RECOVER_COOLDOWN", "0s");
    configure(&env, more);
    env
}

fn configure(env: &TestEnv, more: &str) {
    machines::configure(env, &format!("[remote]\n{more}"));
}

/// A task each: what fails again and again would share one budget.
fn command<'a>(run: &'a str, attempts: &'a str) -> [&'a str; 14] {
    let retry = "--on-failure";
    [
        "run",
        "--run",
        run,
        "--task",
        run,
        "--remote",
        REMOTE,
        "--yes",
        "--attempts",
        attempts,
        retry,
        "retry",
        "--",
        "./agent.sh",
    ]
}

/// What lies of a run on the server: its claim, and the kinds of its events.
fn there(server: &Server, run: &str) -> (serde_json::Value, Vec<String>) {
    let name = format!("refs/recover-runs/{run}");
    let claim = server.git(&["cat-file", "blob", &format!("{name}:claim.json")]);
    let mut kinds = Vec::new();
    for commit in server.git(&["rev-list", "--first-parent", &name]).lines() {
        let Some(text) = server.try_git(&["cat-file", "blob", &format!("{commit}:events.jsonl")])
        else {
            break;
        };
        for line in text.lines() {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            kinds.push(event["type"].as_str().unwrap().to_owned());
        }
    }
    (serde_json::from_str(&claim).unwrap(), kinds)
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(90),
            "{what} does not come"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_strict_server_carries_a_whole_run() {
    for server in [Kind::Path, Kind::Http, Kind::Weed, Kind::Moto]
        .into_iter()
        .filter_map(Server::start)
    {
        let kind = server.kind;
        push_agent(&server, LEAVES_A, "exit 0");
        server.make_strict();
        server.record_history();
        let a = machine(&server, "a");
        a.recover(&NIGHT).expect(143);
        let b = machine(&server, "b");
        b.recover(&RESUME).expect(0);
        assert!(b.read("who.txt").ends_with("b\n"), "{kind:?}");
        b.json(0, &["close", "--run", "night", "--yes"]);
        // Each change goes on from the one before, and nothing is removed.
        let mut history = server.history();
        assert!(
            history.iter().all(|change| change.new != "0".repeat(40)),
            "{kind:?}"
        );
        // What was tried first, on a reference of its own, stays.
        history.retain(|change| change.name == "refs/recover-runs/night");
        assert!(history.len() > 5, "{kind:?}");
        for (number, change) in history.iter().enumerate() {
            let before = number
                .checked_sub(1)
                .map_or("0".repeat(40), |before| history[before].new.clone());
            assert_eq!(change.old, before, "{kind:?}: {number}");
        }
        assert_eq!(there(&server, "night").0["released"], true, "{kind:?}");
    }
}

#[test]
fn an_attempt_costs_two_connections_and_a_run_one_reference() {
    let Some((server, notes)) = with_agent(Kind::Daemon, AGENT) else {
        return;
    };
    let proxy = Proxy::to(server.port);
    for (mode, each) in [("strict", 2), ("lazy", 1)] {
        let env = on(&server, &proxy, mode, &notes, &format!("mode = '{mode}'\n"));
        let cost = |attempts: usize| {
            proxy.set(Fault::None);
            let run = format!("{mode}-{attempts}");
            let ran = env.recover(&command(&run, &attempts.to_string()));
            assert_eq!(
                self::attempts(&notes, &run),
                attempts,
                "{mode}: {}",
                ran.stderr
            );
            proxy.counted().2
        };
        // Whatever a run costs once is in both.
        cost(1);
        let (few, many) = (cost(2), cost(6));
        assert_eq!(
            many - few,
            4 * each,
            "{mode}: {few} connections with 2 attempts, {many} with 6"
        );
        eprintln!("{mode}: {few} connections with 2 attempts, {many} with 6: {each} an attempt");
    }
    let refs = server.git(&["for-each-ref", "--format=%(refname)", "refs/recover-runs"]);
    assert_eq!(refs.lines().count(), 6, "{refs}");
}

/// One connection of each run is cut, at a place of all that it says or is answered: the answer of a push is lost among them.
#[test]
fn a_run_whose_connection_is_cut_anywhere_makes_its_attempts() {
    cut_anywhere(Kind::Daemon);
}

#[test]
fn a_run_whose_connection_to_a_store_is_cut_anywhere_makes_its_attempts() {
    cut_anywhere(Kind::Weed);
}

fn cut_anywhere(kind: Kind) {
    let Some((server, notes)) = with_agent(kind, AGENT) else {
        return;
    };
    let proxy = Proxy::to(server.port);
    let env = on(&server, &proxy, "one", &notes, "");
    // The first run finds out what the server guarantees, too.
    env.recover(&command("first", "1"));
    proxy.set(Fault::None);
    let code = env.recover(&command("whole", "2")).code;
    let (sent, answered, _) = proxy.counted();
    assert_eq!(attempts(&notes, "whole"), 2);
    let (_, whole) = there(&server, "whole");
    let sample = if std::env::var_os("RECOVER_REMOTE_ALL").is_some() {
        200
    } else {
        6
    };
    let places =
        |length: u64| (0..sample).map(move |step| length * (2 * step + 1) / (2 * sample) + 1);
    let faults: Vec<Fault> = places(sent)
        .map(Fault::CutSent)
        .chain(places(answered).map(Fault::CutAnswered))
        .collect();
    for (number, fault) in faults.iter().enumerate() {
        let run = format!("cut-{number}");
        proxy.cut_once(*fault);
        let args = command(&run, "2");
        let mut ran = env.recover(&args);
        // A first claim that was cut is not waited for: the same command once more.
        if ran.code == 9 {
            assert_eq!(attempts(&notes, &run), 0, "{fault:?}");
            ran = env.recover(&args);
        }
        assert_eq!(ran.code, code, "{fault:?}: {}", ran.stderr);
        assert_eq!(attempts(&notes, &run), 2, "{fault:?}: {}", ran.stderr);
        let (claim, kinds) = there(&server, &run);
        assert_eq!(claim["released"], true, "{fault:?}");
        assert_eq!(
            (kinds, claim["fencing"].as_u64()),
            (whole.clone(), Some(1)),
            "{fault:?}: all of it, and once"
        );
        assert_eq!(
            server.at(&format!("refs/recover-runs-side/{run}/1")),
            None,
            "{fault:?}"
        );
    }
    assert_eq!(proxy.cuts(), faults.len(), "each was cut once");
    eprintln!(
        "{} runs were cut, at {sample} places of {sent} bytes sent and {sample} of {answered} answered",
        proxy.cuts()
    );
}

fn start(env: &TestEnv, args: &[&str]) -> Child {
    let log = fs::File::create(env.root().join("log")).unwrap();
    env.recover_command(args)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

#[test]
fn a_lazy_run_goes_on_while_its_server_is_away() {
    let agent = "echo \"$RECOVER_RUN_ID $RECOVER_ATTEMPT\" >> \"$NOTES/attempts\"\n\
         while [ $RECOVER_ATTEMPT -gt 1 ] && ! [ -e \"$NOTES/go-$RECOVER_ATTEMPT\" ]; do sleep 0.05; done; exit 1";
    let Some((server, notes)) = with_agent(Kind::Daemon, agent) else {
        return;
    };
    let proxy = Proxy::to(server.port);
    let env = on(&server, &proxy, "one", &notes, "mode = 'lazy'\n");
    let mut run = start(&env, &command("night", "4"));
    wait_for("the second attempt", || attempts(&notes, "night") == 2);
    let known = there(&server, "night").1.len();
    // The network is gone, and comes back.
    proxy.set(Fault::CutSent(0));
    fs::write(notes.join("go-2"), "").unwrap();
    wait_for("the third attempt", || attempts(&notes, "night") == 3);
    assert_eq!(there(&server, "night").1.len(), known, "nothing arrives");
    proxy.set(Fault::None);
    fs::write(notes.join("go-3"), "").unwrap();
    wait_for("the fourth attempt", || attempts(&notes, "night") == 4);
    assert!(
        there(&server, "night").1.len() > known,
        "what was not sent is sent with the next"
    );

    // Nobody else goes on lazily while that claim lives.
    let other = on(&server, &proxy, "two", &notes, "mode = 'lazy'\n");
    let refused = other.error(
        11,
        &[
            "resume", "--run", "night", "--remote", REMOTE, "--yes", "--trust",
        ],
    );
    assert!(
        refused["message"].as_str().unwrap().contains("held by one"),
        "{refused}"
    );
    fs::write(notes.join("go-4"), "").unwrap();
    wait_for("the end", || run.try_wait().unwrap().is_some());
    let log = fs::read_to_string(env.root().join("log")).unwrap();
    assert!(
        log.contains("may exceed the budget by one attempt"),
        "it says so: {log}"
    );
    let (claim, kinds) = there(&server, "night");
    assert_eq!(claim["released"], true, "{log}");
    let begun = kinds
        .iter()
        .filter(|kind| *kind == "attempt_started")
        .count();
    assert_eq!((begun, attempts(&notes, "night")), (4, 4));
}

#[test]
fn set_up_is_run_once_after_a_take_over() {
    let server = Server::start(Kind::Path).unwrap();
    push_agent(&server, LEAVES_A, "exit 0");
    let set_up = |env: &TestEnv, command: &str| configure(env, &format!("setup = '{command}'\n"));
    let a = machine(&server, "a");
    set_up(&a, "echo set up >> ../set-up");
    a.recover(&NIGHT).expect(143);
    assert!(!a.root().join("set-up").exists(), "nothing was taken over");
    let b = machine(&server, "b");
    // Its files are in place when it is run.
    set_up(&b, "cat who.txt >> ../set-up; false");
    let failed = b.error(1, &RESUME);
    assert!(
        failed["message"]
            .as_str()
            .unwrap()
            .contains("[remote] setup"),
        "{failed}"
    );
    assert_eq!(
        b.read("who.txt").lines().last(),
        Some("a"),
        "no attempt was made"
    );
    set_up(&b, "cat who.txt >> ../set-up");
    b.recover(&RESUME).expect(0);
    let ran = fs::read_to_string(b.root().join("set-up")).unwrap();
    assert!(
        ran.lines().all(|line| line == "a") && !ran.is_empty(),
        "{ran}"
    );
    assert!(b.read("who.txt").ends_with("b\n"));
    let attempts = b.json(0, &["status", "--run", "night"]);
    assert_eq!(attempts["run"]["status"], "complete", "{attempts:#}");
    b.recover(&RESUME);
    assert_eq!(
        fs::read_to_string(b.root().join("set-up")).unwrap(),
        ran,
        "once"
    );
}
