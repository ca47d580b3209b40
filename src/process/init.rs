//! `recover` as the first process of a PID namespace, a container's for example.
//! Everything whose parent ended becomes its child, and stays as a zombie until it is waited for.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::{io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::os::own_program;

/// Runs this program with the same arguments as a child, forwards signals to it, waits for all processes that become
/// children of this one, and returns the child's exit code (128 + N after signal N) once it ended.
///
/// # Errors
/// The child could not be started.
pub(crate) fn run_as_child(args: &[OsString]) -> io::Result<u8> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
    let mut command = Command::new(own_program()?);
    command.args(args.iter().skip(1));
    if let Some(name) = args.first() {
        command.arg0(name);
    }
    let pid = Pid::from_child(&command.spawn()?);
    thread::spawn(move || {
        for signal in signals.forever().filter_map(Signal::from_named_raw) {
            // It may have ended just now.
            let _ = kill_process(pid, signal);
        }
    });
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == pid => {
                let code = status
                    .exit_status()
                    .or_else(|| Some(128 + status.terminating_signal()?));
                return Ok(code
                    .and_then(|code| u8::try_from(code).ok())
                    .unwrap_or(u8::MAX));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
