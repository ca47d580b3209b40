//! What was under way when the agent, recover or its terminal went away goes on in the same conversation.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use recover::testing::model::AgentKind;
use serde_json::Value;

use crate::agents::{Agent as _, Place, Start, causes, row};
use crate::stub::Answer;

/// Where the model has looked at a file, or has written one, and is being waited for.
fn at_work(agent: AgentKind, folder: &Path, has_written: bool) -> Place {
    Place::new(agent, folder, |env| {
        let path = env.work().join("half.txt").display().to_string();
        let first = if has_written {
            Answer::Writes {
                path,
                content: "half",
            }
        } else {
            Answer::Runs("cat a.txt".to_owned())
        };
        vec![
            first,
            Answer::Hangs(Duration::from_secs(120)),
            Answer::Says("Now it is whole."),
        ]
    })
}

/// Ends the agent's programs, which are those that recover started in this place.
fn kill_agent(place: &Place) {
    let home = format!("HOME={}", place.env.root().join("home").display());
    let mut killed = 0;
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let variables = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let has = |wanted: &dyn Fn(&[u8]) -> bool| variables.split(|byte| *byte == 0).any(wanted);
        if has(&|it| it == home.as_bytes()) && has(&|it| it.starts_with(b"RECOVER_ATTEMPT=")) {
            place.env.sh(&format!("kill -9 {pid}"));
            killed += 1;
        }
    }
    assert!(killed > 0, "no program of {:?} is at work", place.agent);
}

/// Both agents; each by name with nothing changed yet and with half of the work done, and from a shell.
fn each(judge: impl Fn(AgentKind, &Path, Start, bool)) {
    for agent in [AgentKind::Claude, AgentKind::Codex] {
        let Some(folder) = agent.installed() else {
            continue;
        };
        for (start, has_written) in [
            (Start::Profile, false),
            (Start::Profile, true),
            (Start::Shell, false),
        ] {
            judge(agent, &folder, start, has_written);
        }
    }
}

/// The last request: in the same conversation where the profile knows how, and not blamed for anything.
#[track_caller]
fn went_on(place: &Place, start: Start, run: &Value, was_restored: bool) {
    assert_eq!(
        run["outcome"], "complete",
        "{:?} {start:?}: {run:#}",
        place.agent
    );
    let asked = place.asked();
    let last = asked.last().expect("a request");
    let kept = start == Start::Profile && !was_restored;
    assert_eq!(
        last.goes_on(),
        kept,
        "{:?} {start:?}: {last:#?}",
        place.agent
    );
    let prompt = place.last_prompt();
    assert_eq!(
        prompt.contains("## Files Were Restored"),
        was_restored,
        "{:?}: {prompt}",
        place.agent
    );
    assert!(
        prompt.contains("You were interrupted") && !prompt.contains("DIFFERENT"),
        "{:?}: {prompt}",
        place.agent
    );
}

#[test]
fn an_agent_that_was_killed_goes_on() {
    each(|agent, folder, start, has_written| {
        let place = at_work(agent, folder, has_written);
        let words = place.words(start, &["--attempts", "3"]);
        let mut command = place.env.recover_command(&["--json"]);
        command
            .args(words)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null());
        let child = command.spawn().expect("recover starts");
        place.wait_for_request(2);
        kill_agent(&place);
        let output = child.wait_with_output().expect("its end");
        let run: Value = serde_json::from_slice(&output.stdout).expect("its document");
        row(&place, start, "agent killed", &run);
        assert_eq!(
            causes(&run),
            ["CRASHED", "-"],
            "{agent:?} {start:?}: {run:#}"
        );
        // After a crash it begins at the last checkpoint.
        went_on(&place, start, &run, has_written);
    });
}

/// recover itself ends so while the agent works, and the run is resumed.
fn recover_ended_by(signal: &str, what: &str, ended: impl Fn(ExitStatus)) {
    each(|agent, folder, start, has_written| {
        let place = at_work(agent, folder, has_written);
        let mut child = place.spawn(start, &["--attempts", "3"]);
        place.wait_for_request(2);
        place.env.sh(&format!("kill -{signal} {}", child.id()));
        ended(child.wait().expect("its end"));
        let run = place.env.json(0, &["resume", "--wait"]);
        row(&place, start, what, &run);
        went_on(&place, start, &run, has_written && signal == "9");
    });
}

#[test]
fn a_run_whose_recover_was_killed_goes_on() {
    recover_ended_by("9", "recover killed", |status| {
        assert_eq!(status.code(), None);
    });
}

#[test]
fn a_run_whose_terminal_was_closed_goes_on() {
    recover_ended_by("HUP", "terminal closed", |status| {
        assert!(!status.success());
    });
}
