//! Eight machines on one run, with machines that are gone, cut and stalled connections, and clocks apart.
//!
//! The server's own record of its references is the judge: one holder at every instant, as many attempts as the budget has,
//! and everything that any machine recorded.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use recover::testing::model::RunKey;
use recover::testing::model::{Event, Payload};
use recover::testing::policy::masked_payload;
use recover::testing::policy::{Names, Places};
use serde_json::Value;

use crate::env::TestEnv;
use crate::machines::{REMOTE, configure, machine_at, push_agent};
use crate::proxy::{Fault, Proxy};
use crate::servers::{Kind, Server};

const MACHINES: usize = 8;
/// So many attempts each machine begins; in its last one it is disturbed, but for the last machine.
const EACH: usize = 2;
const LIMIT: usize = MACHINES * EACH;
const RUN: &str = "refs/recover-runs/night";

/// Notes when it begins and ends. The last attempt of a machine goes on until somebody ends it.
const AGENT: &str = r#"
note() { echo "$1 $(date +%s%N) $RECOVER_TEST_HOST $RECOVER_FENCING" >> "$NOTES/all"; }
echo $$ > "$NOTES/$RECOVER_TEST_HOST.pid"; note begin
[ -s .ultraplan/state/plan.json ] || echo "{}" > .ultraplan/state/plan.json
echo "$RECOVER_TEST_HOST $RECOVER_ATTEMPT" >> work.txt
begun=$(grep -c "^begin [0-9]* $RECOVER_TEST_HOST " "$NOTES/all")
if [ "$begun" -ge "$EACH" ] && [ "$RECOVER_TEST_HOST" != "$LAST" ]; then exec sleep 600; fi
note end; exit 1"#;

/// What happens to a machine in its last attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is gone: what supervises, and the agent.
    Killed,
    /// The next one takes the run from it while it works.
    Robbed,
    /// The same, while nothing that it sends arrives.
    Stalled,
}

struct Machine {
    name: String,
    env: TestEnv,
    proxy: Proxy,
}

impl Machine {
    fn on(server: &Server, number: usize, notes: &Path) -> Self {
        let proxy = Proxy::to(server.port);
        let name = format!("m{number}");
        let mut env = machine_at(server, proxy.port, &name, &[]);
        env.set("NOTES", &notes.display().to_string())
            .set("RECOVER_COOLDOWN", "0s");
        env.set("EACH", &EACH.to_string())
            .set("LAST", &format!("m{}", MACHINES - 1));
        // Each ten minutes from the one before, back and forth.
        env.set(
            "RECOVER_TEST_NOW",
            &format!("2026-10-21T{:02}:{}0:00Z", 7 + number % 3, number % 6),
        );
        configure(
            &env,
            &format!("[remote]\nname = '{REMOTE}'\nlease = '30s'\n"),
        );
        Self { name, env, proxy }
    }

    fn start(&self, args: &[&str]) -> Child {
        let log = fs::File::create(self.env.root().join("log")).unwrap();
        self.env
            .recover_command(args)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.env.root().join("log")).unwrap_or_default()
    }
}

fn noted(notes: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(notes.join("all")).unwrap_or_default();
    text.lines()
        .map(|line| line.split(' ').map(str::to_owned).collect())
        .collect()
}

fn begun_on(notes: &Path, name: &str) -> usize {
    noted(notes)
        .iter()
        .filter(|note| note[0] == "begin" && note[2] == name)
        .count()
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "{what} does not come"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An event without what each machine has of its own: numbers, places, and the commit that stands for a checkpoint there.
fn said(mut event: Value) -> String {
    without(&mut event);
    event.to_string()
}

fn without(document: &mut Value) {
    match document {
        Value::Object(fields) => {
            let own = [
                "seq",
                "commit",
                "tree",
                "partial",
                "skipped",
                "worktree",
                "state_dir",
                "state_directory",
            ];
            fields.retain(|name, _| !own.contains(&name.as_str()));
            fields.values_mut().for_each(without);
        }
        Value::Array(all) => all.iter_mut().for_each(without),
        _ => {}
    }
}

/// The events of the run that a machine has recorded.
fn recorded(env: &TestEnv) -> Vec<String> {
    let (work, home) = (
        env.work().display().to_string(),
        env.root().join("home").display().to_string(),
    );
    let key = RunKey::new("night", None, None);
    let places =
        Places::new(&work, &format!("{work}/.ultraplan/state"), &home).with(Names::of(&key));
    let text = env.read_state("events.jsonl");
    let mut all = Vec::new();
    for line in text.lines() {
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            continue;
        };
        if event.run.as_ref() == Some(&key) && !matches!(event.payload, Payload::RunReplaced { .. })
        {
            let payload = masked_payload(&event.payload).into_owned();
            all.push(said(
                places.hide(serde_json::to_value(Event { payload, ..event }).unwrap()),
            ));
        }
    }
    assert!(all.len() > 3, "{text}");
    all
}

/// The events of all states that the server has, in the run's chain and aside.
fn on_the_server(server: &Server) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let refs = server.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/recover-runs",
        "refs/recover-runs-side",
    ]);
    for name in refs.lines() {
        for commit in server.git(&["rev-list", "--first-parent", name]).lines() {
            let Some(text) =
                server.try_git(&["cat-file", "blob", &format!("{commit}:events.jsonl")])
            else {
                break;
            };
            for line in text.lines() {
                let mut fields: serde_json::Map<String, Value> =
                    serde_json::from_str(line).unwrap();
                fields.retain(|name, _| !["run_seq", "previous", "id"].contains(&name.as_str()));
                fields.insert("seq".to_owned(), 0.into());
                let event: Event = serde_json::from_value(Value::Object(fields)).unwrap();
                all.insert(said(serde_json::to_value(event).unwrap()));
            }
        }
    }
    all
}

/// Ends what looks at it, however the test ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Cuts connections at sampled places, of what is sent and of what is answered; they go through in between.
fn cut(machines: &[Machine], is_over: &AtomicBool) {
    let places = [1, 40, 200, 400, 700, 1100, 1600, 2500, 4000];
    for (number, place) in (0..).zip(places.iter().cycle()) {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        for (at, machine) in machines
            .iter()
            .enumerate()
            .filter(|(at, _)| at % 2 == number % 2)
        {
            if !matches!(machine.proxy.fault(), Fault::StallSent(_)) {
                machine.proxy.set(if at % 4 < 2 {
                    Fault::CutSent(*place)
                } else {
                    Fault::CutAnswered(*place)
                });
            }
        }
        std::thread::sleep(Duration::from_millis(250));
        for machine in machines
            .iter()
            .filter(|machine| !matches!(machine.proxy.fault(), Fault::StallSent(_)))
        {
            machine.proxy.set(Fault::None);
        }
        std::thread::sleep(Duration::from_millis(750));
    }
}

/// One holder at every instant, and as many attempts as the budget has; returns how many.
fn judge(server: &Server, notes: &Path) -> usize {
    let found = noted(notes);
    let begun = found.iter().filter(|note| note[0] == "begin").count();
    assert_eq!(begun, LIMIT, "{found:?}");
    let claims: Vec<(String, u64)> = server
        .history()
        .into_iter()
        .filter(|change| change.name == RUN)
        .map(|change| {
            (
                change.claim["nonce"].as_str().unwrap().to_owned(),
                change.claim["fencing"].as_u64().unwrap(),
            )
        })
        .collect();
    assert!(claims.len() > LIMIT, "{claims:?}");
    for pair in claims.windows(2) {
        assert!(
            pair[0] == pair[1] || pair[0].1 < pair[1].1,
            "one holder at a time: {claims:?}"
        );
    }
    let fencings: BTreeSet<u64> = claims.iter().map(|claim| claim.1).collect();
    assert!(fencings.len() >= MACHINES, "{claims:?}");
    for pair in found.windows(2) {
        let fencing = |note: &[String]| note[3].parse::<u64>().unwrap();
        assert!(
            pair[1][0] == "end" || fencing(&pair[0]) <= fencing(&pair[1]),
            "{found:?}"
        );
    }
    begun
}

#[test]
fn eight_machines_make_as_many_attempts_as_one() {
    eight_machines_on(Kind::Daemon);
}

#[test]
fn eight_machines_make_as_many_attempts_as_one_on_a_store() {
    eight_machines_on(Kind::Weed);
}

#[test]
fn eight_machines_make_as_many_attempts_as_one_on_another_store() {
    eight_machines_on(Kind::Moto);
}

fn eight_machines_on(kind: Kind) {
    let Some(server) = Server::start(kind) else {
        return;
    };
    server.record_history();
    let notes: PathBuf = server.root().join("notes");
    fs::create_dir(&notes).unwrap();
    push_agent(&server, AGENT, "exit 0");
    let machines: Vec<Machine> = (0..MACHINES)
        .map(|number| Machine::on(&server, number, &notes))
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
    let resume = [
        "resume", "--run", "night", "--remote", REMOTE, "--yes", "--trust", "--steal",
    ];
    let ends = [
        End::Killed,
        End::Robbed,
        End::Stalled,
        End::Robbed,
        End::Stalled,
        End::Robbed,
        End::Killed,
    ];
    let mut left: Vec<(usize, Child)> = Vec::new();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| cut(&machines[1..], &is_over));
        for (number, machine) in machines.iter().enumerate() {
            let mut recover = machine.start(if number == 0 { &run } else { &resume });
            let name = &machine.name;
            let enough = if number == MACHINES - 1 {
                usize::MAX
            } else {
                EACH
            };
            let mut tries = 0;
            wait_for(&format!("the last attempt of {name}"), || {
                if let Some(status) = recover.try_wait().unwrap() {
                    if number == MACHINES - 1 && begun_on(&notes, name) > 0 {
                        return true;
                    }
                    // A take-over that was interrupted does not wait by itself.
                    tries += 1;
                    assert!(
                        status.code() == Some(9) && tries < 30,
                        "{name} ends with {status}: {}",
                        machine.log()
                    );
                    recover = machine.start(&resume);
                }
                begun_on(&notes, name) >= enough
            });
            match ends.get(number) {
                Some(End::Killed) => {
                    recover.kill().unwrap();
                    recover.wait().unwrap();
                    let pid = fs::read_to_string(notes.join(format!("{name}.pid"))).unwrap();
                    machine.env.sh(&format!("kill -KILL {}", pid.trim()));
                }
                Some(End::Robbed) => left.push((number, recover)),
                Some(End::Stalled) => {
                    machine.proxy.set(Fault::StallSent(1));
                    left.push((number, recover));
                }
                None => assert!(!recover.wait().unwrap().success(), "{}", machine.log()),
            }
        }
    });
    for machine in &machines {
        machine.proxy.set(Fault::None);
    }
    // Whoever was robbed notices by itself.
    for (number, mut recover) in left {
        let machine = &machines[number];
        let status = std::cell::Cell::new(None);
        wait_for(&format!("the end of {}", machine.name), || {
            status.set(recover.try_wait().unwrap());
            status.get().is_some()
        });
        assert_eq!(
            status.get().unwrap().code(),
            Some(11),
            "{}: {}",
            machine.name,
            machine.log()
        );
    }

    let begun = judge(&server, &notes);

    // Those that could not say it come back, and what they recorded that nobody has seen is kept.
    let has_said = |machine: &&Machine| {
        machine
            .log()
            .contains("is there as refs/recover-runs-side/")
    };
    for machine in machines
        .iter()
        .take(ends.len())
        .filter(|machine| !has_said(machine))
    {
        let back = machine.env.recover(&[
            "resume", "--run", "night", "--remote", REMOTE, "--yes", "--trust",
        ]);
        assert!(
            ![9, 12, 16].contains(&back.code),
            "{}: {} {}",
            machine.name,
            back.code,
            back.stderr
        );
    }
    let there = on_the_server(&server);
    let (mut all, mut lost) = (0, Vec::new());
    for machine in &machines {
        for event in recorded(&machine.env) {
            all += 1;
            if !there.contains(&event) {
                lost.push(format!("{}: {event}\n{}", machine.name, machine.log()));
            }
        }
    }
    assert!(
        lost.is_empty(),
        "{} of {all} events are lost, the first: {}",
        lost.len(),
        lost[0]
    );
    assert_eq!(
        noted(&notes)
            .iter()
            .filter(|note| note[0] == "begin")
            .count(),
        LIMIT,
        "nothing more was begun"
    );
    let cuts: usize = machines.iter().map(|machine| machine.proxy.cuts()).sum();
    eprintln!(
        "eight machines: {begun} attempts of {LIMIT}, {cuts} connections cut, {all} events recorded, {} on the server, none lost",
        there.len()
    );
}
