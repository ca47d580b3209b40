//! A run that was removed from the server, and another one of its name that lies there since.

use crate::env::TestEnv;
use crate::machines::{REMOTE, machine, push_agent};
use crate::servers::{Kind, Server};

const RUN: &str = "refs/recover-runs/night";
const NIGHT: [&str; 5] = ["--run", "night", "--remote", REMOTE, "--yes"];

fn of_night<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    [before, &NIGHT, after].concat()
}

/// How many attempts of the run a machine knows of.
fn attempts(env: &TestEnv) -> u64 {
    let listed = env.json(0, &["runs", "--all"]);
    let mut runs = listed["runs"].as_array().unwrap().iter();
    let night = runs.find(|run| run["run_id"] == "night").unwrap();
    night["attempts"].as_u64().unwrap()
}

/// What a machine has of the run in its ledger.
fn ledger(env: &TestEnv) -> usize {
    env.read(".ultraplan/state/events.jsonl").lines().count()
}

#[test]
fn another_run_of_its_name_takes_nothing_from_a_run() {
    let kinds = [Kind::Path].into_iter().chain(Kind::STORES);
    for server in kinds.filter_map(Server::start) {
        push_agent(&server, "echo x >> tries.txt; exit 1", "exit 0");
        let (a, b) = (machine(&server, "a"), machine(&server, "b"));
        let begin = of_night(
            &["run"],
            &["--no-wait", "--attempts", "3", "--", "./agent.sh"],
        );
        a.recover(&begin).expect(6);
        a.json(0, &of_night(&["remote", "claim"], &[]));
        a.json(0, &of_night(&["remote", "release"], &[]));
        let known = server.at(RUN).unwrap();
        server.git(&["update-ref", "-d", RUN]);
        b.recover(&begin).expect(6);
        let other = server.at(RUN).unwrap();
        let (before, tried) = (ledger(&a), attempts(&a));

        let refused = a.error(13, &of_night(&["remote", "fetch"], &[]));
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("another run night") && message.contains("recover forget night"),
            "{refused:#}"
        );
        let commands = [
            of_night(&["remote", "status"], &[]),
            of_night(&["remote", "push"], &[]),
            of_night(&["remote", "claim"], &[]),
            of_night(&["remote", "claim"], &["--steal"]),
            of_night(&["--dry-run", "remote", "claim"], &[]),
            of_night(&["remote", "prune"], &[]),
            of_night(&["resume"], &["--trust", "--wait"]),
            of_night(&["--dry-run", "resume"], &["--trust"]),
            of_night(&["resume"], &["--trust", "--steal"]),
        ];
        for command in commands {
            assert_eq!(
                a.error(13, &command)["code"],
                "already_exists",
                "{command:?}"
            );
        }
        // The other runs there are none the worse for it.
        let all = a.json(0, &["remote", "fetch", "--remote", REMOTE]);
        assert!(
            all["warnings"].to_string().contains("another run night"),
            "{all:#}"
        );
        assert_eq!(
            (ledger(&a), attempts(&a)),
            (before, tried),
            "{:?}",
            server.kind
        );
        assert_eq!(server.at(RUN).unwrap(), other);
        // What was sent of the first one is still whole here.
        a.git(&["rev-parse", "--verify", &format!("{known}^{{tree}}")]);
        assert!(
            a.git(&["for-each-ref", "refs/recover-tracking"])
                .contains(&known)
        );
        // What only concerns this machine goes on, and says what it does not know.
        let closed = a.json(0, &["close", "night"]);
        assert!(
            closed["warnings"].to_string().contains("another run night"),
            "{closed:#}"
        );

        // The ways on that the error names: another remote, or the run here makes way for the other one.
        let elsewhere = Server::start(Kind::Path).unwrap();
        a.git(&["remote", "add", "elsewhere", &elsewhere.url()]);
        let sent = [
            "remote",
            "push",
            "--run",
            "night",
            "--remote",
            "elsewhere",
            "--yes",
        ];
        assert_eq!(a.json(0, &sent)["pushed"][0], "night");
        assert!(elsewhere.at(RUN).is_some());
        a.recover(&["forget", "night", "--yes"]).expect(0);
        a.json(0, &of_night(&["remote", "claim"], &[]));
        assert_eq!(attempts(&a), attempts(&b));
    }
}

/// Who holds the run and finds another one in its place stops; nothing of either is mixed.
#[test]
fn a_holder_finds_another_run_in_its_place() {
    let server = Server::start(Kind::Path).unwrap();
    let agent = "echo x >> tries.txt\n\
         if [ \"$RECOVER_TEST_HOST\" = a ]; then touch ../begun; while ! [ -e ../end ]; do sleep 0.1; done; fi\nexit 1";
    push_agent(&server, agent, "exit 0");
    let (a, b) = (machine(&server, "a"), machine(&server, "b"));
    let begin = of_night(
        &["run"],
        &["--no-wait", "--attempts", "3", "--", "./agent.sh"],
    );
    let mut command = a.recover_command(&begin);
    let first = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !a.root().join("begun").exists() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    server.git(&["update-ref", "-d", RUN]);
    b.recover(&begin).expect(6);
    let other = server.at(RUN).unwrap();
    std::fs::write(a.root().join("end"), "").unwrap();
    let ran = crate::env::Ran::of(&first.wait_with_output().unwrap()).expect(8);
    assert!(
        ran.stdout.contains("another run night") && !ran.stderr.contains("not given back"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert_eq!((attempts(&a), server.at(RUN).unwrap()), (1, other));
    assert_eq!(
        a.json(0, &["status", "--run", "night"])["run"]["status"],
        "paused"
    );
}
