//! `recover` as a process that is watched, signalled and killed while it runs.

use std::io::{ErrorKind, Write as _};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::env::{Ran, TestEnv};

/// The moment at which tests with a clock that stands begin.
pub const NOW: &str = "2026-03-01T12:00:00.000Z";

/// How long anything may take that should happen soon.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `holds`; panics when it does not within [`PATIENCE`].
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Waits until a process has ended whose output is piped, and tells what it said.
#[track_caller]
pub fn ended(child: Child) -> Ran {
    Ran::of(&child.wait_with_output().expect("it ends"))
}

impl TestEnv {
    /// Starts `recover` with its output piped.
    pub fn start(&self, args: &[&str]) -> Child {
        self.recover_command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("recover starts")
    }

    /// Runs `recover` with variables of its own.
    pub fn recover_with(&self, vars: &[(&str, &str)], args: &[&str]) -> Ran {
        Ran::of(
            &self
                .recover_command(args)
                .envs(vars.iter().copied())
                .output()
                .expect("recover starts"),
        )
    }

    /// Runs `recover` with this on stdin.
    #[track_caller]
    pub fn recover_fed(&self, stdin: impl AsRef<[u8]>, args: &[&str]) -> Ran {
        let mut child = self
            .recover_command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("recover starts");
        let fed = child
            .stdin
            .take()
            .expect("a pipe")
            .write_all(stdin.as_ref());
        // It may have ended without reading: what it said tells.
        assert!(
            fed.as_ref()
                .err()
                .is_none_or(|error| error.kind() == ErrorKind::BrokenPipe),
            "{fed:?}"
        );
        ended(child)
    }

    /// Waits for a file of the work tree that holds a whole line.
    #[track_caller]
    pub fn await_line(&self, path: &str) -> String {
        let read = || std::fs::read_to_string(self.work().join(path)).unwrap_or_default();
        until(path, || read().ends_with('\n'));
        read().trim().to_owned()
    }

    /// The events of `recover log`, of one type.
    #[track_caller]
    pub fn events(&self, kind: &str) -> Vec<Value> {
        let log = self.json(0, &["log"]);
        log["events"]
            .as_array()
            .expect("events")
            .iter()
            .filter(|event| event["type"] == kind)
            .cloned()
            .collect()
    }
}

/// Sends a signal to one process.
pub fn kill(signal: &str, pid: u32) {
    let sent = std::process::Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .expect("kill starts");
    assert!(sent.success(), "kill {signal} {pid}");
}

/// Whether a hang-up is ignored here, and so by whatever is started: the tests were started with `nohup`.
pub fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}

/// Whether a process lives (a zombie does not).
pub fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next())
        .is_some_and(|state| !matches!(state, 'Z' | 'X'))
}
