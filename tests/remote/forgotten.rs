//! A run that is removed for good, with what was sent of it.

use crate::machines::{REMOTE, machine, push_agent};
use crate::servers::{Kind, Server, free_port};

const RUN: &str = "refs/recover-runs/night";

#[test]
fn a_run_is_forgotten_with_what_was_sent_of_it() {
    for server in [Kind::Path]
        .into_iter()
        .chain(Kind::STORES)
        .filter_map(Server::start)
    {
        push_agent(&server, "exit 1", "exit 0");
        let (a, b) = (machine(&server, "a"), machine(&server, "b"));
        let url = format!("git://127.0.0.1:{}/none.git", free_port());
        a.git(&["remote", "add", "away", &url]);
        for run in ["night", "other"] {
            let words = [
                "run", "--run", run, "--remote", REMOTE, "--yes", "--", "true",
            ];
            a.recover(&words).expect(0);
        }
        let forget = ["forget", "night", "--remote", REMOTE];
        let is_whole = || {
            assert!(server.at(RUN).is_some());
            a.json(0, &["status", "--run", "night"]);
        };
        let planned = a.json(0, &[&forget[..], &["--dry-run"]].concat());
        assert_eq!(planned["pruned"][0]["run_id"], "night", "{planned:#}");
        let refused = a.error(13, &forget);
        assert_eq!(refused["code"], "confirmation_needed");
        assert!(
            refused["message"].as_str().unwrap().contains("on origin"),
            "{refused:#}"
        );
        is_whole();
        let yes = [&forget[..], &["--yes"]].concat();
        a.error(9, &["forget", "night", "--remote", "away", "--yes"]);
        is_whole();
        b.json(
            0,
            &[
                "remote", "claim", "--run", "night", "--remote", REMOTE, "--yes",
            ],
        );
        let refused = a.error(13, &yes);
        assert!(
            refused["message"].as_str().unwrap().contains("held by b"),
            "{refused:#}"
        );
        is_whole();
        b.json(
            0,
            &[
                "remote", "release", "--run", "night", "--remote", REMOTE, "--yes",
            ],
        );

        let forgotten = a.json(0, &yes);
        assert_eq!(forgotten["pruned"][0]["run_id"], "night", "{forgotten:#}");
        assert_eq!(server.at(RUN), None);
        a.error(4, &["status", "--run", "night"]);
        let listed = a.json(0, &["remote", "status", "--remote", REMOTE]);
        assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed:#}");
        // Without the flag it stays there, which is said.
        let forgotten = a.json(0, &["forget", "other", "--yes"]);
        assert!(
            forgotten["warnings"]
                .to_string()
                .contains("stays on origin"),
            "{forgotten:#}"
        );
        assert!(server.at("refs/recover-runs/other").is_some());
    }
}
