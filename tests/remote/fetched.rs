//! A run that another machine holds and that was only fetched here: it is read, and nothing of it is started or changed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::Ran;
use crate::machines::{REMOTE, machine, push_agent};
use crate::servers::{Kind, Server};

const NIGHT: [&str; 5] = ["--run", "night", "--remote", REMOTE, "--yes"];

#[test]
fn a_run_that_another_machine_holds_is_read_where_it_was_fetched() {
    let kinds = [Kind::Path].into_iter().chain(Kind::STORES);
    for server in kinds.filter_map(Server::start) {
        let agent = "echo x >> made.txt; touch ../begun\n\
             while [ \"$RECOVER_TEST_HOST\" = a ] && ! [ -e ../end ]; do sleep 0.1; done; exit 1";
        push_agent(&server, agent, "exit 0");
        let (a, mut b) = (machine(&server, "a"), machine(&server, "b"));
        let rest = ["--no-wait", "--attempts", "2", "--", "./agent.sh"];
        let mut run = a.recover_command(&[&["run"], &NIGHT[..], &rest].concat());
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let begun = Instant::now();
        while !a.root().join("begun").exists() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "the agent begins"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        let temporary = b.root().join("temporary");
        std::fs::create_dir(&temporary).unwrap();
        b.set("TMPDIR", &temporary.display().to_string());
        let fetched = b.json(0, &[&["remote", "fetch"], &NIGHT[..4]].concat());
        assert_eq!(fetched["runs"][0]["behind"], 0, "{fetched:#}");

        let show = |words: &[&str]| b.json(0, &[words, &["--run", "night"]].concat());
        let status = show(&["status"]);
        let held = |document: &Value, by: &str| {
            let said = document["warnings"].to_string();
            assert!(
                said.contains(by) && said.contains("resume --remote"),
                "{document:#}"
            );
        };
        held(&status, "a holds it");
        assert_eq!(
            (
                status["run"]["status"].as_str(),
                status["activity"].is_object()
            ),
            (Some("in_progress"), true),
            "it is at work there: {status:#}"
        );
        let log = show(&["log"]);
        let last = log["events"].as_array().unwrap().last().unwrap();
        assert_eq!(last["type"], "attempt_started");
        assert!(show(&["report"])["report"].is_object());
        let listed = show(&["checkpoint", "list"]);
        assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 1);
        show(&["checkpoint", "diff", "initial"]);
        show(&["retry-status"]);
        // It is not here to be changed.
        for words in [
            &["rollback", "--to", "initial"][..],
            &["close"],
            &["accept"],
        ] {
            b.error(4, &[words, &["--run", "night", "--yes"]].concat());
        }
        // Nothing of it is left here, and a command to copy names no place that is gone.
        assert!(!b.exists(".ultraplan") && !status.to_string().contains("--state-dir"));
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
        // Where it was fetched from is where it is resumed from.
        let resume = ["resume", "--run", "night", "--yes"];
        assert_eq!(b.error(11, &resume)["code"], "claimed");

        std::fs::write(a.root().join("end"), "").unwrap();
        Ran::of(&run.unwrap().wait_with_output().unwrap()).expect(6);
        held(&show(&["status"]), "a holds it");
        b.json(0, &[&["remote", "fetch"], &NIGHT[..4]].concat());
        let status = show(&["status"]);
        held(&status, "nobody holds it");
        assert_eq!(status["run"]["status"], "paused", "{status:#}");
        let diff = show(&["checkpoint", "diff", "initial", "latest"]);
        assert!(diff["changes"].to_string().contains("made.txt"), "{diff:#}");
        // What would be started is shown as a person reads it.
        let refused = b.error(13, &resume);
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("budgets max_attempts = 3, task_max_attempts = 6")
                && !message.contains('{'),
            "{message}"
        );
        b.recover(&[&resume[..], &["--trust", "--wait"]].concat())
            .expect(8);
        assert!(
            b.exists(".ultraplan")
                && !show(&["status"])["warnings"]
                    .to_string()
                    .contains("fetched")
        );
    }
}
