//! The machine does not fall asleep while a run is at work.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::os::inhibitor;

/// Holds off sleep until it is dropped, or this process ends in whatever way: what holds it reads a pipe of this process's.
#[derive(Debug)]
pub(super) struct Awake(Child);

impl Awake {
    /// Holds it off; `None` where the system has no program for that. A closed lid is not held.
    pub(super) fn hold(why: &str) -> Option<Self> {
        let words = inhibitor(why);
        let (program, args) = words.split_first()?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // What a terminal sends to interrupt the run is not for it.
        let child = command.process_group(0).spawn();
        child
            .inspect_err(|error| tracing::debug!(%error, "sleep is not held off"))
            .ok()
            .map(Self)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        if let Err(error) = self.0.wait() {
            tracing::debug!(%error, "sleep may still be held off");
        }
    }
}
