//! A process of its own that ends a child when nobody says in time that it may go on.
//!
//! A machine that was frozen, and thaws, finds its time over by the clock that counts while it sleeps. When whoever began it is
//! gone, killed say, the child is ended too: nobody supervises it any more.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::setsid;

use super::orphan::end_group;
use super::pty::own_program;
use super::signals::since_boot;
use crate::model::run::ProcessId;

/// What the helper is called with.
pub const WATCHDOG: &str = "__watchdog";
/// How often it looks at the clock.
const GLANCE: Duration = Duration::from_millis(500);

/// Ends a child whose time is over.
#[derive(Debug)]
pub struct Watchdog {
    helper: Mutex<Helper>,
}

#[derive(Debug)]
struct Helper {
    child: Child,
    /// Closed at the end.
    tells: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts it. A child gets `grace` between SIGTERM and SIGKILL.
    pub fn start(grace: Duration) -> io::Result<Self> {
        let mut helper = Command::new(own_program()?);
        helper.arg(WATCHDOG).arg(grace.as_millis().to_string());
        helper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = helper.spawn()?;
        let tells = child.stdin.take();
        Ok(Self { helper: Mutex::new(Helper { child, tells }) })
    }

    /// The child to end.
    pub fn guard(&self, child: &ProcessId) -> io::Result<()> {
        let boot = child.boot_id.as_deref().unwrap_or("-");
        self.tell(&format!("guard {} {} {} {boot}", child.pid, child.start_time, child.session))
    }

    /// The child has ended: there is nothing to end.
    pub fn release(&self) -> io::Result<()> {
        self.tell("release")
    }

    /// Until when the child may go on: so long after the machine's start, suspended or not.
    pub fn until(&self, since_boot: Duration) -> io::Result<()> {
        self.tell(&format!("until {}", since_boot.as_millis()))
    }

    fn tell(&self, line: &str) -> io::Result<()> {
        let mut helper = self.helper.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut helper.tells {
            Some(tells) => tells.write_all(format!("{line}\n").as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let helper = self.helper.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut tells) = helper.tells.take() {
            // It may be gone already.
            let _ = tells.write_all(b"release\n");
        }
        let _ = helper.child.wait();
    }
}

/// The helper: reads what it is told on stdin until that closes. `words` are those after [`WATCHDOG`].
pub fn run_watchdog(words: &[OsString]) -> u8 {
    let grace = words.first().and_then(|word| word.to_str()?.parse().ok()).map(Duration::from_millis);
    let Some(grace) = grace else { return 2 };
    // What ends the terminal or the group of whoever started it does not end it.
    let _ = setsid();
    let (told, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(io::stdin()).lines().map_while(Result::ok) {
            if told.send(line).is_err() {
                break;
            }
        }
    });
    let (mut guarded, mut until): (Option<ProcessId>, Option<Duration>) = (None, None);
    loop {
        let wait = match (&guarded, until) {
            (Some(_), Some(until)) => until.saturating_sub(since_boot()).min(GLANCE),
            _ => GLANCE,
        };
        match lines.recv_timeout(wait) {
            Ok(line) => take(&line, &mut guarded, &mut until),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return guarded.map_or(0, |child| u8::from(end_group(&child, grace).is_err()));
            }
        }
        // What was told meanwhile counts.
        for line in lines.try_iter() {
            take(&line, &mut guarded, &mut until);
        }
        if until.is_some_and(|until| since_boot() >= until)
            && let Some(child) = guarded.take()
            && end_group(&child, grace).is_err()
        {
            return 1;
        }
    }
}

fn take(line: &str, guarded: &mut Option<ProcessId>, until: &mut Option<Duration>) {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["guard", pid, start_time, session, boot] => {
            let (Ok(pid), Ok(start_time), Ok(session)) = (pid.parse(), start_time.parse(), session.parse()) else {
                return;
            };
            let boot_id = (*boot != "-").then(|| (*boot).to_owned());
            *guarded = Some(ProcessId { pid, start_time, session, boot_id });
        }
        ["release"] => *guarded = None,
        ["until", millis] => *until = millis.parse().ok().map(Duration::from_millis),
        _ => {}
    }
}
