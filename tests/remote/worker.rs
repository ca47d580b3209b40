//! Machines that work through one list of tasks, one of which is gone in the middle of a task.
//!
//! What the tasks wrote and the server's own record of its references are the judges: each task is done once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::machines::{REMOTE, configure, machine, push_agent};
use crate::servers::{Kind, Server};

/// Notes its task and machine. On the first machine the first task does not end by itself.
const AGENT: &str = r#"
note() { echo "$1 $RECOVER_TASK $RECOVER_TEST_HOST" >> "$NOTES/all"; }
note begin
if [ "$RECOVER_TASK" = late ] && ! grep -q "^early " did.txt; then exit 7; fi
if [ "$RECOVER_TEST_HOST" = m0 ]; then exec sleep 600; fi
sleep 0.5; echo "$RECOVER_TASK $RECOVER_TEST_HOST" >> did.txt; note end"#;

const TASKS: usize = 12;

fn on(server: &Server, name: &str, notes: &Path) -> TestEnv {
    let mut env = machine(server, name);
    env.set("NOTES", &notes.display().to_string())
        .set("RECOVER_COOLDOWN", "0s");
    configure(
        &env,
        &format!("[remote]\nname = '{REMOTE}'\nlease = '30s'\n"),
    );
    let task = |number: usize| format!("[[task]]\nid = 't{number}'\nprompt = 'Do it.'\n");
    let mut list: String = (2..TASKS).map(task).collect();
    list.push_str("[[task]]\nid = 'early'\nprompt = 'First.'\n");
    list.push_str("[[task]]\nid = 'late'\nprompt = 'Then.'\nneeds = ['early']\n");
    fs::write(env.root().join("list.toml"), list).unwrap();
    env
}

const WORKER: [&str; 9] = [
    "worker",
    "--remote",
    REMOTE,
    "--tasks",
    "../list.toml",
    "--yes",
    "--json",
    "--",
    "./agent.sh",
];

fn start(env: &TestEnv) -> Child {
    let mut command = env.recover_command(&WORKER);
    let log = fs::File::create(env.root().join("log")).unwrap();
    command.stdout(Stdio::piped()).stderr(log).spawn().unwrap()
}

fn noted(notes: &Path) -> Vec<(String, String, String)> {
    let text = fs::read_to_string(notes.join("all")).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let mut next = || words.next().unwrap();
        (next(), next(), next())
    };
    text.lines().map(line).collect()
}

/// Ends a process and all below it at once: the machine is gone.
fn gone(mut child: Child) {
    let listed = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let pairs: Vec<(&str, &str)> = listed
        .lines()
        .filter_map(|line| line.trim().split_once(char::is_whitespace))
        .map(|(pid, parent)| (pid, parent.trim()))
        .collect();
    let own = child.id().to_string();
    let mut all = vec![own.as_str()];
    while let Some(more) = pairs
        .iter()
        .find(|(pid, parent)| all.contains(parent) && !all.contains(pid))
    {
        all.push(more.0);
    }
    assert!(all.len() > 2, "{all:?}");
    Command::new("kill").arg("-9").args(&all).status().unwrap();
    child.wait().unwrap();
}

#[test]
fn four_workers_do_each_task_once_on_a_git_server() {
    four_workers_on(Kind::Path);
}

#[test]
fn four_workers_do_each_task_once_on_a_store() {
    four_workers_on(Kind::Weed);
}

fn four_workers_on(kind: Kind) {
    let Some(server) = Server::start(kind) else {
        return;
    };
    server.record_history();
    let notes = server.root().join("notes");
    fs::create_dir(&notes).unwrap();
    push_agent(&server, AGENT, "exit 0");
    let first = on(&server, "m0", &notes);
    let lost = start(&first);
    let begun = Instant::now();
    while noted(&notes).is_empty() {
        let said = || fs::read_to_string(first.root().join("log"));
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", said());
        std::thread::sleep(Duration::from_millis(20));
    }
    let machines: Vec<TestEnv> = (1..4)
        .map(|number| on(&server, &format!("m{number}"), &notes))
        .collect();
    let workers: Vec<Child> = machines.iter().map(start).collect();
    gone(lost);
    let ran: Vec<Ran> = workers
        .into_iter()
        .map(|worker| Ran::of(&worker.wait_with_output().unwrap()))
        .collect();
    for (ran, env) in ran.iter().zip(&machines) {
        let log = fs::read_to_string(env.root().join("log")).unwrap();
        assert_eq!(ran.code, 0, "{}\n{log}", ran.stdout);
        assert_eq!(env.git(&["status", "--short"]), "", "{log}");
        let runs = &ran.json()["runs"];
        let runs = runs.as_array().unwrap();
        assert_eq!(runs.len(), TASKS - 1, "{runs:#?}");
        let tasks = runs.iter().flat_map(|run| run["tasks"].as_array().unwrap());
        assert!(tasks.clone().all(|task| task["status"] == "done"));
        assert_eq!(tasks.count(), TASKS);
    }
    judge(&server, &notes);
    let mut shared: Vec<usize> = ran.iter().map(|ran| own(&ran.json())).collect();
    assert_eq!(shared.iter().sum::<usize>(), TASKS - 1, "{shared:?}");
    shared.retain(|count| *count > 0);
    assert!(shared.len() > 1, "more than one worked: {shared:?}");

    // The machine that was gone finds nothing left, and has its files as they were.
    let again = Ran::of(&start(&first).wait_with_output().unwrap());
    assert_eq!(again.code, 0, "{}", again.stdout);
    assert_eq!(own(&again.json()), 0, "{}", again.stdout);
    assert_eq!(first.git(&["status", "--short"]), "");

    let reader = on(&server, "reader", &notes);
    let report = reader.json(0, &["report", "--remote", REMOTE]);
    let totals = &report["team"]["totals"];
    assert_eq!(totals["runs"], TASKS - 1, "{report:#}");
    assert_eq!(totals["states"]["complete"], TASKS - 1, "{report:#}");
    assert_eq!(totals["attempts"], TASKS + 1, "{report:#}");
    for run in report["team"]["runs"].as_array().unwrap() {
        assert_eq!(run["night"]["files"]["changed"], 1, "{run:#}");
    }
    let resume = ["resume", "--remote", REMOTE, "--run", "list-early"];
    reader
        .recover(&[&resume[..], &["--trust", "--yes"]].concat())
        .expect(0);
    let did = reader.read("did.txt");
    let did: Vec<&str> = did.lines().map(|line| &line[..line.len() - 3]).collect();
    assert_eq!(did, ["early", "late"]);
    reader.recover(&["accept", "--yes"]).expect(0);
}

/// How many runs a worker brought to their end.
fn own(work: &Value) -> usize {
    let runs = work["runs"].as_array().unwrap();
    runs.iter().filter(|run| run["here"] == true).count()
}

/// Each task was done once, and each run had one holder at every instant.
fn judge(server: &Server, notes: &Path) {
    let found = noted(notes);
    let with = |what: &str| -> Vec<&str> {
        let those = found.iter().filter(|note| note.0 == what);
        those.map(|note| note.1.as_str()).collect()
    };
    let ended = with("end");
    let once: BTreeSet<&str> = ended.iter().copied().collect();
    assert_eq!((ended.len(), once.len()), (TASKS, TASKS), "{found:?}");
    assert_eq!(
        with("begin").len(),
        TASKS + 1,
        "one of them twice: {found:?}"
    );
    let mut holders: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
    for change in server.history() {
        // What the server guarantees was tried first.
        let Some(host) = change.claim["host"].as_str() else {
            continue;
        };
        let claim = (host.to_owned(), change.claim["fencing"].as_u64().unwrap());
        let all = holders.entry(change.name).or_default();
        if let Some(last) = all.last() {
            assert!(*last == claim || last.1 < claim.1, "{all:?} {claim:?}");
        }
        if all.last() != Some(&claim) {
            all.push(claim);
        }
    }
    assert_eq!(holders.len(), TASKS - 1, "{holders:?}");
    let moved: Vec<_> = holders.values().filter(|all| all.len() > 1).collect();
    let hosts = moved.iter().flat_map(|all| all.iter());
    let hosts: Vec<&str> = hosts.map(|(host, _)| host.as_str()).collect();
    assert!(
        moved.len() == 1 && hosts[0] == "m0" && hosts.len() == 2,
        "{holders:?}"
    );
}
