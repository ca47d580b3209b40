//! What a machine believes of a run on a server, and what it makes of a server that is not as it was.

use crate::env::TestEnv;
use crate::machines::{REMOTE, machine};
use crate::servers::{Kind, Server};

const RUN: &str = "refs/recover-runs/night";
const NAMED: [&str; 5] = ["--run", "night", "--remote", REMOTE, "--yes"];

fn of_night<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    [before, &NAMED, after].concat()
}

/// A state of the run that follows the last one in nothing but its parent.
fn damage(server: &Server, env: &TestEnv) {
    let script = format!(
        "set -e; export GIT_DIR='{}'; tip=$(git rev-parse {RUN}); git ls-tree $tip | grep -v events.jsonl > ../tree; \
         blob=$(echo '{{}}' | git hash-object -w --stdin); printf '100644 blob %s\\tevents.jsonl\\n' $blob >> ../tree; \
         git update-ref {RUN} $(git commit-tree $(git mktree < ../tree) -p $tip -m x)",
        server.repository().display()
    );
    env.sh(&script).expect(0);
}

fn is_there(server: &Server, commit: &str) -> bool {
    server.git(&["rev-list", RUN]).lines().any(|line| line == commit)
}

#[test]
fn a_damaged_chain_that_was_refused_counts_as_seen_by_nobody() {
    let server = Server::start(Kind::Path).unwrap();
    let a = machine(&server, "a");
    a.recover(&of_night(&["run"], &["--no-wait", "--attempts", "3", "--", "false"])).expect(6);
    let good = server.at(RUN).unwrap();
    damage(&server, &a);
    let bad = server.at(RUN).unwrap();
    let commands: [&[&str]; 4] =
        [&["--dry-run", "resume"], &["resume", "--trust"], &["remote", "claim"], &["--dry-run", "remote", "claim"]];
    for (number, command) in commands.into_iter().enumerate() {
        server.git(&["update-ref", RUN, &bad]);
        let b = machine(&server, &format!("b{number}"));
        b.json(0, &["checkpoint", "create", "--run", "own"]);
        for _ in 0..2 {
            b.recover(&of_night(command, &[])).expect(12);
            b.recover(&of_night(&["remote", "status"], &[])).expect(12);
            b.recover(&of_night(&["remote", "fetch"], &[])).expect(12);
            b.recover(&of_night(&["remote", "prune"], &[])).expect(12);
            let all = b.json(0, &["remote", "status", "--remote", REMOTE]);
            assert_eq!(all["runs"], serde_json::json!([]), "{command:?}");
            assert!(all["warnings"].to_string().contains("night"), "{command:?}: {all:#}");
        }
        assert_eq!(server.at(RUN).as_ref(), Some(&bad), "{command:?}");
        // Whoever owns the server takes it away: nobody puts it there again.
        server.git(&["update-ref", RUN, &good]);
        b.json(0, &of_night(&["remote", "status"], &[]));
        b.json(0, &of_night(&["remote", "claim"], &[]));
        b.json(0, &of_night(&["remote", "release"], &[]));
        assert!(is_there(&server, &good) && !is_there(&server, &bad), "{command:?}");
        server.git(&["update-ref", RUN, &good]);
    }
}
