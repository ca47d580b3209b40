//! The steps of the GitHub Action, in the order of its file and with bash, as a runner has them.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::env::TestEnv;

const ACTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/action");
/// The second iteration fails until a file outside says how it passes.
const COMMAND: &str = "echo $RECOVER_ITERATION.$RECOVER_ATTEMPT >> log.txt
[ -e ../slow ] && sleep 30
[ $RECOVER_ITERATION = 1 ] || [ ! -e ../pass ] || echo good > a.txt";
const CHECK: &str =
    "test=[ $RECOVER_ITERATION = 1 ] || grep -q good a.txt || { echo FAILED: a is bad; exit 1; }";

/// A workflow run: each try has a checkout of its own at the same place, and what the action saved.
struct Workflow {
    env: TestEnv,
}

impl Workflow {
    fn new() -> Self {
        Self {
            env: TestEnv::repo(),
        }
    }

    fn temp(&self) -> PathBuf {
        self.env.root().join("temp")
    }

    fn checkout(&self) -> PathBuf {
        self.env.root().join("checkout")
    }

    fn step(&self, name: &str) -> Command {
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_recover"));
        let path = std::env::var("PATH").expect("PATH");
        let folder = binary.parent().expect("its folder").display();
        let mut step = self.env.command("bash");
        step.args([format!("{ACTION}/action.sh"), name.to_owned()])
            .current_dir(self.checkout())
            .env("PATH", format!("{folder}:{path}"))
            .env("GITHUB_ACTION_PATH", ACTION)
            .env("GITHUB_OUTPUT", self.temp().join("output"))
            .env("RUNNER_TEMP", self.temp())
            .env("INPUT_RUN", "ci")
            .env("INPUT_COMMAND", COMMAND)
            .env("INPUT_AGENT", "")
            .env("INPUT_PROMPT_FILE", "")
            .env("INPUT_FEEDBACK", CHECK)
            .env("INPUT_ARGS", "--iterations\n2\n--attempts\n4\n")
            .env("INPUT_WAIT", "0s");
        step
    }

    /// One try: the steps that the file names, those after a failure only where they are always due.
    fn tried(&self, run: impl Fn(Command) -> Output) -> Option<i32> {
        std::fs::create_dir_all(self.temp()).expect("a folder");
        drop(std::fs::remove_dir_all(self.checkout()));
        let (from, to) = (self.env.work().to_owned(), self.checkout());
        let line = format!("git clone -q {} {}", from.display(), to.display());
        assert_eq!(self.env.sh(&line).code, 0);
        let file = std::fs::read_to_string(format!("{ACTION}/action.yml")).expect("the action");
        let (_, steps) = file.split_once("  steps:\n").expect("steps");
        let mut code = Some(0);
        for step in steps.split("\n    - ") {
            let Some((_, name)) = step.split_once("action.sh\" ") else {
                continue;
            };
            let name = name.lines().next().unwrap_or_default();
            if code != Some(0) && !step.contains("if: always()") {
                continue;
            }
            let output = if name == "run" {
                run(self.step(name))
            } else {
                self.step(name).output().expect("bash")
            };
            let ended = output.status.code();
            assert!(name == "run" || ended == Some(0), "{name}: {output:?}");
            if name == "run" {
                code = ended;
            }
        }
        code
    }

    fn outputs(&self) -> String {
        std::fs::read_to_string(self.temp().join("output")).expect("outputs")
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.checkout().join(name)).expect(name)
    }
}

fn to_its_end(mut step: Command) -> Output {
    step.output().expect("bash")
}

#[test]
fn a_job_that_is_run_again_goes_on_with_its_files_and_its_budget() {
    let workflow = Workflow::new();
    // Paused for the cooldown, which a job need not wait for.
    assert_eq!(workflow.tried(to_its_end), Some(9));
    assert_eq!(workflow.read("log.txt"), "1.1\n2.1\n");
    std::fs::write(workflow.env.root().join("pass"), "").expect("a file");
    let end = Instant::now() + Duration::from_secs(60);
    while workflow.tried(to_its_end) != Some(0) {
        assert!(Instant::now() < end, "{}", workflow.outputs());
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(workflow.read("log.txt"), "1.1\n2.1\n2.2\n");
    assert_eq!(workflow.read("a.txt"), "good\n");
    let outputs = workflow.outputs();
    assert!(outputs.contains("exit-code=9") && outputs.contains("exit-code=0"));
    let report = outputs
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("report="));
    let report = std::fs::read_to_string(report.expect("a report")).expect("a file");
    assert!(report.contains("<html"), "{report:.200}");
}

#[test]
fn a_job_that_is_cancelled_is_carried_on() {
    let workflow = Workflow::new();
    let slow = workflow.env.root().join("slow");
    std::fs::write(&slow, "").expect("a file");
    let log = workflow.checkout().join("log.txt");
    let code = workflow.tried(|mut step| {
        let child = step.stdout(Stdio::null()).spawn().expect("bash");
        let end = Instant::now() + Duration::from_secs(30);
        while !log.exists() {
            assert!(Instant::now() < end, "it never began");
            std::thread::sleep(Duration::from_millis(50));
        }
        // A runner signals the processes of the step.
        let pids = format!("{} $(pgrep -P {})", child.id(), child.id());
        workflow.env.sh(&format!("kill -INT {pids}"));
        child.wait_with_output().expect("its end")
    });
    assert_ne!(code, Some(0));
    std::fs::remove_file(&slow).expect("a file");
    std::fs::write(workflow.env.root().join("pass"), "").expect("a file");
    assert_eq!(
        workflow.tried(to_its_end),
        Some(0),
        "{}",
        workflow.outputs()
    );
    assert_eq!(workflow.read("log.txt"), "1.1\n1.2\n2.1\n");
}

#[test]
fn a_job_without_a_command_is_refused() {
    let workflow = Workflow::new();
    let code = workflow.tried(|mut step| {
        let output = step.env("INPUT_COMMAND", "").output().expect("bash");
        assert!(String::from_utf8_lossy(&output.stdout).contains("::error::"));
        output
    });
    assert_eq!(code, Some(2));
}
