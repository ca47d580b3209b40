//! What a person understands by "taken back", with real agents.
//!
//! What an attempt staged, whose work it cleaned away, and a run in a process space of its own.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use recover::testing::model::AgentKind;
use serde_json::Value;

use crate::agents::{Agent as _, CHECK, Place, Start, causes, row};
use crate::stub::Answer;

/// Both agents, allowed to run every command.
fn each(judge: impl Fn(AgentKind, &Path) + Sync) {
    std::thread::scope(|scope| {
        for agent in [AgentKind::Claude, AgentKind::Codex] {
            let Some(folder) = agent.installed() else {
                continue;
            };
            let judge = &judge;
            scope.spawn(move || judge(agent, &folder));
        }
    });
}

/// Claude Code skips its permissions as root only in what calls itself a sandbox.
fn unrestricted(agent: AgentKind, folder: &Path, answers: Vec<Answer>) -> Place {
    let mut place = Place::new(agent, folder, |_| answers);
    place.env.set("IS_SANDBOX", "1");
    place
}

/// The options with the permission to run every command; the profile of Codex has it in these tests anyway.
fn options<'a>(agent: AgentKind, options: &[&'a str]) -> Vec<&'a str> {
    let yolo = (agent == AgentKind::Claude).then_some("--yolo");
    options.iter().copied().chain(yolo).collect()
}

#[test]
fn what_a_failed_attempt_staged_is_not_in_the_next_commit() {
    each(|agent, folder| {
        let first = "echo backdoor > evil.txt && echo broken > a.txt && git add evil.txt a.txt";
        let second = "echo good > answer.txt && git add answer.txt && git commit -q -m 'Answer the question'";
        let answers = vec![
            Answer::Runs(first.to_owned()),
            Answer::Says("I believe it is done."),
            Answer::Runs(second.to_owned()),
            Answer::Says("Now it is done."),
        ];
        let place = unrestricted(agent, folder, answers);
        let check = "test=test ! -e evil.txt || { echo 'FAILED: evil.txt is there'; exit 1; }";
        let words = options(
            agent,
            &[
                "--attempts",
                "2",
                "--on-failure",
                "rollback",
                "--feedback",
                check,
            ],
        );
        let run = place.run(Start::Profile, 0, &words);
        row(&place, Start::Profile, "stages, fails", &run);
        assert_eq!(
            causes(&run),
            ["VERIFICATION_FAILED", "-"],
            "{agent:?}: {run:#}"
        );
        let committed = place
            .env
            .git(&["show", "--stat", "--name-only", "--format=", "HEAD"]);
        assert_eq!(committed.trim(), "answer.txt", "{agent:?}");
        assert_eq!(
            place.env.git(&["status", "--porcelain"]).trim(),
            "",
            "{agent:?}"
        );
    });
}

#[test]
fn the_users_work_that_an_agent_cleaned_away_is_named_first() {
    each(|agent, folder| {
        let cleans = "git checkout -q -- . && git clean -q -fd && echo good > answer.txt";
        let answers = vec![Answer::Runs(cleans.to_owned()), Answer::Says("It is done.")];
        let place = unrestricted(agent, folder, answers);
        place.env.write("a.txt", "the morning's work\n");
        place.env.write("wip.txt", "hours of it\n");
        let run = place.run(Start::Profile, 0, &options(agent, &["--feedback", CHECK]));
        row(&place, Start::Profile, "cleans my work", &run);
        let status = place.env.recover(&["status"]).stdout;
        let first: String = status.lines().take(4).collect();
        assert!(
            first.contains("wip.txt") && first.contains("a.txt"),
            "{agent:?}: {status}"
        );
        // Off a terminal it takes a decision, and the branch stays until there is one.
        let head = place.env.git(&["rev-parse", "HEAD"]);
        place.env.json(13, &["accept"]);
        assert_eq!(place.env.git(&["rev-parse", "HEAD"]), head, "{agent:?}");
        place
            .env
            .json(0, &["accept", "--uncommitted", "keep", "--yes"]);
        assert_eq!(place.env.read("wip.txt"), "hours of it\n", "{agent:?}");
        assert_eq!(place.env.read("a.txt"), "the morning's work\n", "{agent:?}");
        let committed = place.env.git(&["show", "--name-only", "--format=", "HEAD"]);
        assert_eq!(committed.trim(), "answer.txt", "{agent:?}");
    });
}

/// As in a container whose folder the host shares: what is called on the host sees none of its processes.
#[test]
fn a_run_in_another_process_space_is_left_to_work() {
    let isolates = std::process::Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "true"])
        .status();
    if !isolates.is_ok_and(|status| status.success()) {
        eprintln!("skipped: unshare makes no PID namespace here");
        return;
    }
    each(|agent, folder| {
        let writes = "echo good > answer.txt";
        let answers = vec![
            Answer::Runs("echo half > half.txt".to_owned()),
            Answer::Hangs(Duration::from_secs(8)),
            Answer::Runs(writes.to_owned()),
            Answer::Says("It is done."),
        ];
        let place = unrestricted(agent, folder, answers);
        let words = place.words(
            Start::Profile,
            &options(agent, &["--attempts", "2", "--feedback", CHECK]),
        );
        let inside = place.env.recover_command(&["--json"]);
        let mut command = std::process::Command::new("unshare");
        command
            .args(["--pid", "--fork", "--mount-proc"])
            .arg(inside.get_program())
            .args(inside.get_args())
            .args(words);
        command.current_dir(place.env.work()).env_clear();
        command.envs(
            inside
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("unshare starts");
        place.wait_for_request(2);
        let status = place.env.json(0, &["status"]);
        assert_eq!(
            status["run"]["status"], "in_progress",
            "{agent:?}: {status:#}"
        );
        place.env.json(0, &["checkpoint", "create"]);
        let hook = r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{"command":"rm x"}}"#;
        place.env.sh(&format!(
            "echo '{hook}' | {} hook run claude",
            env!("CARGO_BIN_EXE_recover")
        ));
        place.env.json(11, &["resume"]);
        let output = child.wait_with_output().expect("its end");
        let run: Value = serde_json::from_slice(&output.stdout).expect("its document");
        row(&place, Start::Profile, "PID namespace", &run);
        assert_eq!(run["outcome"], "complete", "{agent:?}: {run:#}");
        let log = place.env.recover(&["log"]).stdout;
        assert!(!log.contains("crash"), "{agent:?}: {log}");
    });
}

/// The folder of git, another repository in its place, all that git does not track, the whole project.
#[test]
fn what_an_agent_removed_is_back_before_the_next_attempt() {
    let removals = [
        // Codex refuses rm -rf.
        ("find .git -delete", true),
        (
            "find .git -delete && git init -q && git add -A && git commit -q -m fresh",
            true,
        ),
        ("git clean -q -f -d -x", false),
        ("find . -mindepth 1 -delete", true),
    ];
    each(|agent, folder| {
        for (removal, repository) in removals {
            let answers = vec![
                Answer::Runs(removal.to_owned()),
                Answer::Says("I believe it is done."),
                Answer::Runs("echo good > answer.txt".to_owned()),
                Answer::Says("Now it is done."),
            ];
            let place = unrestricted(agent, folder, answers);
            let env = &place.env;
            env.git(&["branch", "other"]);
            env.write("wip.txt", "hours of it\n");
            let before = env.git(&["for-each-ref", "refs/heads"]);
            let words = [
                "--attempts",
                "3",
                "--on-failure",
                "rollback",
                "--feedback",
                CHECK,
            ];
            let run = place.run(Start::Profile, 0, &options(agent, &words));
            row(&place, Start::Profile, removal, &run);
            let first = &run["iterations"][0]["attempts"][0]["failure"];
            if repository {
                assert_eq!(
                    first["conditions"][0], "repository_removed",
                    "{agent:?}: {run:#}"
                );
            } else {
                // Nothing is rolled back where the check failed before the run, too.
                let restore = ["checkpoint", "restore", "initial", "--path", "wip.txt"];
                env.json(0, &restore);
            }
            assert_eq!(
                env.git(&["for-each-ref", "refs/heads"]),
                before,
                "{agent:?}: {removal}"
            );
            assert_eq!(env.read("wip.txt"), "hours of it\n", "{agent:?}: {removal}");
            env.git(&["fsck", "--strict", "--no-dangling"]);
        }
    });
}
