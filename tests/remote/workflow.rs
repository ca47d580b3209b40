//! The workflow of the guide: a job is thrown away in the middle of an attempt, and the next one goes on.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::env::{Ran, TestEnv};
use crate::machines::{machine, push_agent};
use crate::servers::{Kind, Server};

/// The steps of the workflow that a shell runs, but for the one that installs `recover`.
fn steps() -> Vec<String> {
    let page = include_str!("../../src/cli/guide.md");
    let workflow = page
        .split("```yaml\n")
        .filter_map(|rest| rest.split("```").next())
        .find(|block| block.contains("\njobs:"))
        .expect("a workflow");
    let mut steps: Vec<String> = Vec::new();
    let mut open = false;
    for line in workflow.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if let Some(step) = text.strip_prefix("- run: ") {
            open = step == "|";
            steps.push(if open { String::new() } else { step.to_owned() });
        } else if open && (depth >= 10 || text.is_empty()) {
            let step = steps.last_mut().expect("a step");
            step.push_str(line.get(10..).unwrap_or_default());
            step.push('\n');
        } else {
            open = false;
        }
    }
    steps.retain(|step| !step.starts_with("cargo install "));
    assert_eq!(steps.len(), 5, "{steps:?}");
    steps
}

/// A step as a job's shell runs it. A lease of ten minutes would have to be waited for.
fn step(runner: &TestEnv, text: &str) -> Command {
    let text = text.replace("lease = \"10m\"", "lease = \"30s\"");
    let mut command = runner.command("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &text]);
    command
}

/// A runner with a fresh clone.
fn runner(server: &Server, state: &Server, name: &str, notes: &std::path::Path) -> TestEnv {
    let mut env = machine(server, name);
    let bin = env.root().join("bin");
    fs::create_dir(&bin).expect("a folder for programs");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_recover"), bin.join("recover"))
        .expect("recover on PATH");
    let mut path = vec![bin];
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let path: PathBuf = std::env::join_paths(path).expect("a search path").into();
    env.set("PATH", &path.to_string_lossy());
    for (name, value) in [
        ("CI", "true"),
        ("GITHUB_ACTIONS", "true"),
        ("RECOVER_TRUST", "1"),
    ] {
        env.set(name, value);
    }
    env.set(
        "GITHUB_STEP_SUMMARY",
        &env.root().join("summary.md").display().to_string(),
    );
    env.set("STATE_URL", &state.url())
        .set("NOTES", &notes.display().to_string());
    env
}

#[test]
fn the_next_job_goes_on_where_one_was_thrown_away() {
    let (server, state) = (
        Server::start(Kind::Path).unwrap(),
        Server::start(Kind::Path).unwrap(),
    );
    let notes = server.root().join("notes");
    fs::create_dir(&notes).unwrap();
    // The first runner never comes to the end of its attempt.
    let agent = "echo \"$RECOVER_TEST_HOST $RECOVER_ITERATION.$RECOVER_ATTEMPT\" >> $NOTES/attempts; echo half > app.txt\n\
         if [ $RECOVER_TEST_HOST = runner-1 ]; then echo $$ > $NOTES/pid.new; mv $NOTES/pid.new $NOTES/pid; exec sleep 600; fi\n\
         echo works > app.txt; echo new > found.txt";
    push_agent(&server, agent, "grep -qx works app.txt");
    let [prepare, work, identity, accept, push] = <[String; 5]>::try_from(steps()).unwrap();

    let first = runner(&server, &state, "runner-1", &notes);
    Ran::of(&step(&first, &prepare).output().unwrap()).expect(0);
    let mut job = step(&first, &work)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !notes.join("pid").exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(60) && job.try_wait().unwrap().is_none(),
            "no attempt begins"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    // The machine is gone: shell, recover, agent, at once.
    let agent = fs::read_to_string(notes.join("pid")).unwrap();
    let below = format!("pgrep -P {}", job.id());
    let recover = first.sh(&below).stdout;
    for pid in recover.split_whitespace().chain([agent.trim()]) {
        first.sh(&format!("kill -KILL {pid}")).expect(0);
    }
    let _ = job.kill();
    job.wait().unwrap();

    let second = runner(&server, &state, "runner-2", &notes);
    for text in [&prepare, &work, &identity, &accept, &push] {
        let ran = Ran::of(&step(&second, text).output().unwrap());
        assert_eq!(ran.code, 0, "{text}\n{}\n{}", ran.stdout, ran.stderr);
    }
    let attempts = fs::read_to_string(notes.join("attempts")).unwrap();
    let attempts: Vec<&str> = attempts.lines().collect();
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    assert!(
        attempts[0].starts_with("runner-1 1.") && attempts[1].starts_with("runner-2 1."),
        "{attempts:?}"
    );
    // What it came to outlives this machine too.
    second.git(&["fetch", "-q", "origin"]);
    assert_eq!(
        second.git(&["show", "origin/agent-work:app.txt"]),
        "works\n"
    );
    assert_eq!(
        second.git(&["show", "origin/agent-work:found.txt"]),
        "new\n"
    );
    let run = second.json(0, &["status", "--run", "ci"]);
    assert_eq!(run["run"]["status"], "accepted", "{run:#}");

    // The hours after it have nothing to do.
    for name in ["runner-3", "runner-4"] {
        let later = runner(&server, &state, name, &notes);
        for text in [&prepare, &work, &identity, &accept, &push] {
            let ran = Ran::of(&step(&later, text).output().unwrap());
            assert_eq!(ran.code, 0, "{text}\n{}\n{}", ran.stdout, ran.stderr);
        }
        let run = later.json(0, &["status", "--run", "ci"]);
        assert_eq!(run["run"]["status"], "accepted", "{run:#}");
    }
    assert_eq!(
        fs::read_to_string(notes.join("attempts"))
            .unwrap()
            .lines()
            .count(),
        2
    );
    assert_eq!(
        server.at("agent-work").unwrap(),
        second.git(&["rev-parse", "origin/agent-work"]).trim()
    );
}
