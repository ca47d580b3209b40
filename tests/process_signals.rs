//! A supervisor that gets signals, or whose own output is closed.
//!
//! It runs as a process of its own: this test binary, started again for its test `supervisor`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use recover::testing::process::{GroupEnd, Interrupts, ProcessId, Program, Show, Supervised};
use rustix::process::{Pid, Signal, kill_process};

/// What the supervisor does in these tests. Prints `up` when its child runs and a summary at the end, both on stderr.
#[test]
#[ignore = "the other tests start it"]
fn supervisor() {
    let Ok(script) = env::var("SUPERVISED_SCRIPT") else {
        return;
    };
    let interrupts = Interrupts::install().unwrap();
    if script == "sleep" {
        eprintln!("up");
        let start = Instant::now();
        let result = interrupts.sleep(Duration::from_secs(60));
        eprintln!(
            "slept={result:?} soon={}",
            start.elapsed() < Duration::from_secs(10)
        );
        return;
    }
    let mut spec = Supervised::new(Program::Shell(script.into()), "/");
    spec.show = match env::var("SUPERVISED_SHOW").as_deref() {
        Ok("live") => Show::Live,
        Ok("passthrough") => Show::Passthrough,
        _ => Show::Nothing,
    };
    spec.grace = Duration::from_millis(
        env::var("SUPERVISED_GRACE").map_or(20_000, |grace| grace.parse().unwrap()),
    );
    spec.deadline = env::var("SUPERVISED_DEADLINE")
        .ok()
        .map(|limit| Duration::from_millis(limit.parse().unwrap()));
    spec.log = env::var_os("SUPERVISED_LOG").map(|log| std::fs::File::create(log).unwrap().into());
    spec.log_limit = 4000;
    let exit = spec
        .run(&interrupts, |child| {
            // The script needs a moment to set its traps.
            thread::sleep(Duration::from_millis(300));
            eprintln!("child={}", serde_json::to_string(child).unwrap());
            eprintln!("up");
            Ok(())
        })
        .unwrap();
    eprintln!(
        "exit={:?} signal={:?} cancelled={:?} timed_out={} pending={:?} total={}",
        exit.exit_code,
        exit.signal,
        exit.cancelled,
        exit.timed_out,
        interrupts.pending(),
        exit.stdout.total
    );
}

/// Ignores nothing, whatever the tests were started by ignores.
const PLAIN: [&str; 2] = ["env", "--default-signal"];

struct Supervisor {
    process: Child,
    stderr: BufReader<std::process::ChildStderr>,
    child: Option<ProcessId>,
}

impl Supervisor {
    fn start(script: &str, settings: &[(&str, &str)]) -> Self {
        Self::spawn(Self::command(&PLAIN, script, settings))
    }

    /// It, started by a program that becomes it.
    fn command(wrapper: &[&str], script: &str, settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(env::current_exe().unwrap());
        command.args([
            "supervisor",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ]);
        command
            .env("SUPERVISED_SCRIPT", script)
            .envs(settings.iter().copied());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }

    /// Starts it and waits until its child is up.
    fn spawn(mut command: Command) -> Self {
        let mut process = command.spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let mut supervisor = Self {
            process,
            stderr,
            child: None,
        };
        let mut line = String::new();
        while line != "up\n" {
            line.clear();
            assert!(
                supervisor.stderr.read_line(&mut line).unwrap() > 0,
                "the supervisor ended early"
            );
            if let Some(id) = line.strip_prefix("child=") {
                supervisor.child = Some(serde_json::from_str(id).unwrap());
            }
        }
        supervisor
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    fn stdout(&mut self) -> ChildStdout {
        self.process.stdout.take().unwrap()
    }

    /// Its summary, after it ended; nothing of the child's group is left then.
    fn finish(mut self) -> String {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        self.process.wait().unwrap();
        if let Some(child) = &self.child {
            assert_eq!(child.end_group(Duration::ZERO).unwrap(), GroupEnd::Gone);
        }
        rest.lines()
            .find(|line| line.contains('='))
            .unwrap_or_default()
            .to_owned()
    }
}

const WAITING: &str = "sleep 1000 & wait";
const DEAF: &str = "trap '' INT TERM HUP; while :; do sleep 0.1; done";

#[test]
fn a_signal_is_handed_on() {
    for (signal, name, short) in [
        (Signal::INT, "SIGINT", "Int"),
        (Signal::TERM, "SIGTERM", "Term"),
        (Signal::HUP, "SIGHUP", "Hup"),
    ] {
        let supervisor = Supervisor::start("trap - INT; sleep 1000", &[]);
        supervisor.send(signal);
        let summary = supervisor.finish();
        let expected = format!(
            "exit=None signal=Some({name:?}) cancelled=Some({short}) timed_out=false pending=Some({short}) total=0"
        );
        assert_eq!(summary, expected);
    }
}

#[test]
fn background_jobs_that_ignore_sigint_end_too() {
    let start = Instant::now();
    let supervisor = Supervisor::start(WAITING, &[]);
    supervisor.send(Signal::INT);
    assert!(supervisor.finish().contains("cancelled=Some(Int)"));
    assert!(start.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_child_may_clean_up_on_a_signal() {
    let supervisor = Supervisor::start(
        "trap 'sleep 0.5; echo bye; exit 3' INT; while :; do sleep 0.1; done",
        &[],
    );
    supervisor.send(Signal::INT);
    supervisor.send(Signal::INT);
    let summary = supervisor.finish();
    assert!(
        summary.starts_with("exit=Some(3) signal=None cancelled=Some(Int)"),
        "{summary}"
    );
    assert!(summary.ends_with("total=4"), "{summary}");
}

#[test]
fn a_deaf_child_is_killed_after_the_grace() {
    let supervisor = Supervisor::start(DEAF, &[("SUPERVISED_GRACE", "300")]);
    supervisor.send(Signal::TERM);
    assert!(
        supervisor
            .finish()
            .contains(r#"signal=Some("SIGKILL") cancelled=Some(Term)"#)
    );
}

#[test]
fn a_second_signal_kills_at_once() {
    let start = Instant::now();
    let supervisor = Supervisor::start(DEAF, &[]);
    supervisor.send(Signal::INT);
    thread::sleep(Duration::from_millis(500));
    supervisor.send(Signal::INT);
    assert!(
        supervisor
            .finish()
            .contains(r#"signal=Some("SIGKILL") cancelled=Some(Int)"#)
    );
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_signal_ends_a_sleep() {
    let supervisor = Supervisor::start("sleep", &[]);
    supervisor.send(Signal::TERM);
    assert_eq!(supervisor.finish(), "slept=Err(Term) soon=true");
}

#[test]
fn nohup_is_respected() {
    let supervisor = Supervisor::spawn(Supervisor::command(&["nohup"], "sleep 0.8", &[]));
    supervisor.send(Signal::HUP);
    let summary = supervisor.finish();
    assert!(
        summary.starts_with("exit=Some(0) signal=None cancelled=None"),
        "{summary}"
    );
}

#[test]
fn closed_output_does_not_disturb_the_child() {
    let mut supervisor =
        Supervisor::start("head -c 3000000 /dev/zero", &[("SUPERVISED_SHOW", "live")]);
    drop(supervisor.stdout());
    let summary = supervisor.finish();
    assert!(
        summary.starts_with("exit=Some(0) signal=None cancelled=None"),
        "{summary}"
    );
    assert!(summary.ends_with("total=3000000"), "{summary}");
}

#[test]
fn output_is_shown_whole_to_a_slow_reader() {
    let mut supervisor = Supervisor::start(
        "head -c 3000000 /dev/zero; echo end",
        &[("SUPERVISED_SHOW", "live")],
    );
    thread::sleep(Duration::from_secs(1));
    let mut shown = Vec::new();
    supervisor.stdout().read_to_end(&mut shown).unwrap();
    assert!(supervisor.finish().ends_with("total=3000004"));
    let shown = String::from_utf8(shown).unwrap();
    assert_eq!(shown.matches('\0').count(), 3_000_000);
    assert!(shown.contains("\0end\n"));
}

#[test]
fn a_reader_that_does_not_read_cannot_stop_the_clock() {
    let settings = [("SUPERVISED_SHOW", "live"), ("SUPERVISED_DEADLINE", "500")];
    let mut supervisor = Supervisor::start("yes", &settings);
    let mut stdout = supervisor.stdout();
    let start = Instant::now();
    // Its own last words on stdout block as well; its summary comes before them.
    let mut line = String::new();
    supervisor.stderr.read_line(&mut line).unwrap();
    assert!(
        line.contains(r#"signal=Some("SIGTERM") cancelled=None timed_out=true"#),
        "{line}"
    );
    assert!(start.elapsed() < Duration::from_secs(10));
    std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    supervisor.finish();
}

#[test]
fn passthrough_touches_nothing() {
    let mut command = Supervisor::command(
        &PLAIN,
        "cat; echo err >&2",
        &[("SUPERVISED_SHOW", "passthrough")],
    );
    command.stdin(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process
        .stdin
        .take()
        .unwrap()
        .write_all(b"from our own input\n")
        .unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("from our own input\n")
    );
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("err\n") && stderr.contains("exit=Some(0)") && stderr.contains("total=0"),
        "{stderr}"
    );
}

#[test]
fn a_killed_supervisor_leaves_a_log_and_an_orphan_that_can_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = "trap '' PIPE HUP; head -c 9000 /dev/zero | tr '\\0' x; echo; echo so far; sleep 1000 & wait";
    let mut supervisor = Supervisor::start(script, &[("SUPERVISED_LOG", log.to_str().unwrap())]);
    let end = Instant::now() + Duration::from_secs(10);
    while !log_says(&log, "so far\n") && Instant::now() < end {
        thread::sleep(Duration::from_millis(20));
    }
    supervisor.send(Signal::KILL);
    supervisor.process.wait().unwrap();
    assert!(log_says(&log, "so far\n") && log_says(&log, "[recover: "));
    let child = supervisor.child.clone().unwrap();
    assert_eq!(
        child.end_group(Duration::from_secs(10)).unwrap(),
        GroupEnd::Ended
    );
    assert_eq!(child.end_group(Duration::ZERO).unwrap(), GroupEnd::Gone);
}

fn log_says(log: &Path, text: &str) -> bool {
    fs::read_to_string(log).is_ok_and(|log| log.contains(text))
}
