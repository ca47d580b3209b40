//! What is not the agent's doing, in the words of the real programs.
//!
//! Outages, limits in the time zone of the machine, and crashes of the program itself.

use std::process::Stdio;

use recover::testing::model::AgentKind;
use serde_json::Value;

use crate::agents::{Agent as _, Place, Start, causes, each, now, row};
use crate::stub::Answer;

/// Where the night begins, by recover's clock: it passes its waits at once.
const EVENING: &str = "2030-03-01T22:00:00.000Z";

/// The ends of the attempts, as they are recorded.
fn ends(place: &Place) -> Vec<Value> {
    let ledger = place.env.read_state("events.jsonl");
    let events = ledger
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let ended = events.filter(|event| event["type"] == "attempt_ended");
    ended
        .map(|mut event| {
            let at = event["at"].take();
            let mut end = event["payload"].take();
            end["at"] = at;
            end
        })
        .collect()
}

#[test]
fn an_outage_of_the_provider_uses_no_attempt() {
    let agents = [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini];
    each(&agents, &[Start::Profile], |agent, folder, start| {
        let mut place = Place::new(agent, folder, |env| {
            let path = env.work().join("answer.txt").display().to_string();
            // Each program repeats a request by itself before it gives up.
            let mut answers = vec![agent.server_error(); 12];
            answers.extend([
                Answer::Writes {
                    path,
                    content: "good",
                },
                Answer::Says("It is done."),
            ]);
            answers
        });
        place.env.set("RECOVER_TEST_NOW", EVENING);
        let run = place.run(start, 0, &["--attempts", "1"]);
        row(&place, start, "outage", &run);
        let ends = ends(&place);
        let (last, probes) = ends.split_last().expect("attempts");
        assert!(
            probes.len() > 1 && probes.iter().all(|end| end["charged"] == false),
            "{agent:?}: {ends:#?}"
        );
        assert_eq!(last["outcome"], "passed", "{agent:?}: {last:#}");
        assert_eq!(place.env.read("answer.txt").trim_end(), "good", "{agent:?}");
        eprintln!(
            "| {:<8} | away from {EVENING} until {} | {} probes |",
            agent.as_str(),
            last["at"].as_str().unwrap_or("?"),
            probes.len(),
        );
    });
}

/// The programs print the time of the machine's zone, without its name or with it.
#[test]
fn a_limits_reset_is_read_in_the_zone_of_the_machine() {
    const ZONES: [&str; 5] = [
        "Europe/Berlin",
        "Asia/Kolkata",
        "America/New_York",
        "America/Los_Angeles",
        "Asia/Tokyo",
    ];
    let lines = [
        (AgentKind::Claude, "claude -p"),
        (
            AgentKind::Codex,
            "codex exec --skip-git-repo-check --sandbox danger-full-access",
        ),
    ];
    for (agent, line) in lines {
        let Some(folder) = agent.installed() else {
            continue;
        };
        for zone in ZONES {
            let reset = now() + 2 * 3600;
            let mut place = Place::new(agent, &folder, |_| vec![agent.usage_limit(reset)]);
            place.env.set("TZ", zone);
            let words = ["run", "--attempts", "1", "--no-wait", "--prompt", "Do it."];
            let run = place
                .env
                .json(6, &[&words[..], &["--", "sh", "-c", line]].concat());
            assert_eq!(causes(&run), ["RATE_LIMITED"], "{agent:?} {zone}: {run:#}");
            let status = place.env.json(0, &["status"]);
            let until = status["retry"]["parked"]["until"].as_str().expect("a time");
            let until = u64::try_from(
                chrono::DateTime::parse_from_rfc3339(until)
                    .expect("a time")
                    .timestamp(),
            )
            .expect("after 1970");
            eprintln!(
                "| {:<8} | {zone:<19} | {} | {:+} s |",
                agent.as_str(),
                run["iterations"][0]["attempts"][0]["failure"]["message"],
                i128::from(until) - i128::from(reset),
            );
            // Minutes are printed, and a minute is waited beyond.
            assert!(
                until.abs_diff(reset + 30) <= 180,
                "{agent:?} {zone}: {status:#}"
            );
        }
    }
}

/// An error of the program's own code in the middle of its work, of those that Node runs.
#[test]
fn a_crash_of_the_program_is_called_by_its_error() {
    let agents = [AgentKind::Codex, AgentKind::Gemini];
    each(
        &agents,
        &[Start::Bare, Start::Profile],
        |agent, folder, start| {
            let mut place = Place::new(agent, folder, |_| {
                vec![Answer::Hangs(std::time::Duration::from_secs(60))]
            });
            let fault = place.env.root().join("fault.cjs");
            let throws =
                "setTimeout(() => { const session = null; session.entries(); }, 4000).unref();\n";
            std::fs::write(&fault, throws).expect("a file");
            place
                .env
                .set("NODE_OPTIONS", &format!("--require={}", fault.display()));
            let words = place.words(start, &["--attempts", "1"]);
            let mut command = place.env.recover_command(&["--json"]);
            let output = command
                .args(words)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .output()
                .expect("recover starts");
            let run: Value = serde_json::from_slice(&output.stdout).expect("its document");
            row(&place, start, "crash", &run);
            let failure = &run["iterations"][0]["attempts"][0]["failure"];
            let message = failure["message"].as_str().unwrap_or_default();
            eprintln!("| {:<8} | {message} |", agent.as_str());
            assert!(
                message.contains("TypeError: Cannot read properties of null (reading 'entries')"),
                "{agent:?} {start:?}: {failure:#}"
            );
        },
    );
}
