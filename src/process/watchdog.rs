//! A process of its own that ends a child when nobody says in time that it may go on.
//!
//! A machine that was frozen, and thaws, finds its time over by the clock that counts while it sleeps. When whoever began it is
//! gone, killed say, the child is ended too: nobody supervises it any more.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::setsid;

use super::orphan::end_started_by;
use crate::model::run::ProcessId;
use crate::os::{own_program, since_boot};

/// What the helper is called with.
pub(crate) const WATCHDOG: &str = "__watchdog";
/// How often it looks at the clock.
const GLANCE: Duration = Duration::from_millis(500);

/// Ends a child whose time is over.
#[derive(Debug)]
pub(crate) struct Watchdog {
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
    pub(crate) fn start(grace: Duration) -> io::Result<Self> {
        let mut helper = Command::new(own_program()?);
        helper
            .arg(WATCHDOG)
            .arg(grace.as_millis().to_string())
            .arg(serde_json::to_string(&ProcessId::own())?)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = helper.spawn()?;
        let tells = child.stdin.take();
        Ok(Self {
            helper: Mutex::new(Helper { child, tells }),
        })
    }

    /// From now on there is something to end: whatever this process starts as its children, before it is known which those are.
    pub(crate) fn begin(&self) -> io::Result<()> {
        self.tell("begin")
    }

    /// The child to end.
    pub(crate) fn guard(&self, child: &ProcessId) -> io::Result<()> {
        self.tell(&format!("guard {}", serde_json::to_string(child)?))
    }

    /// The child has ended: there is nothing to end.
    pub(crate) fn release(&self) -> io::Result<()> {
        self.tell("release")
    }

    /// Until when the child may go on: so long after the machine's start, suspended or not.
    pub(crate) fn until(&self, since_boot: Duration) -> io::Result<()> {
        self.tell(&format!("until {}", since_boot.as_millis()))
    }

    fn tell(&self, line: &str) -> io::Result<()> {
        let mut helper = self.helper.lock();
        match &mut helper.tells {
            Some(tells) => tells.write_all(format!("{line}\n").as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let helper = self.helper.get_mut();
        if let Some(mut tells) = helper.tells.take() {
            // It may be gone already.
            let _ = tells.write_all(b"release\n");
        }
        let _ = helper.child.wait();
    }
}

/// The helper: reads what it is told on stdin until that closes. `words` are those after [`WATCHDOG`].
pub(crate) fn run_watchdog(words: &[OsString]) -> u8 {
    let mut words = words.iter().filter_map(|word| word.to_str());
    let grace = words.next().and_then(|word| word.parse().ok());
    let supervisor = words
        .next()
        .and_then(|word| serde_json::from_str::<ProcessId>(word).ok());
    let (Some(grace), Some(supervisor)) = (grace.map(Duration::from_millis), supervisor) else {
        return 2;
    };
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
    let mut told_of = Told::default();
    loop {
        let until = told_of.until.filter(|_| told_of.at_work);
        let left = until.map(|until| until.saturating_sub(since_boot()));
        let wait = left
            .filter(|left| !left.is_zero())
            .map_or(GLANCE, |left| left.min(GLANCE));
        match lines.recv_timeout(wait) {
            Ok(line) => told_of.take(&line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return told_of.end(&supervisor, grace),
        }
        // What was told meanwhile counts.
        for line in lines.try_iter() {
            told_of.take(&line);
        }
        if told_of.until.is_some_and(|until| since_boot() >= until)
            && told_of.end(&supervisor, grace) != 0
        {
            return 1;
        }
    }
}

/// What the helper knows.
#[derive(Debug, Default)]
struct Told {
    at_work: bool,
    child: Option<ProcessId>,
    until: Option<Duration>,
}

impl Told {
    fn take(&mut self, line: &str) {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("begin", _) => self.at_work = true,
            ("guard", id) => (self.at_work, self.child) = (true, serde_json::from_str(id).ok()),
            ("release", _) => (self.at_work, self.child) = (false, None),
            ("until", millis) => self.until = millis.parse().ok().map(Duration::from_millis),
            _ => {}
        }
    }

    /// Ends what is at work, if anything is; also what is started after that, until it is released.
    fn end(&self, supervisor: &ProcessId, grace: Duration) -> u8 {
        if !self.at_work {
            return 0;
        }
        let of_child = self
            .child
            .as_ref()
            .map(|child| child.end_group(grace))
            .transpose();
        let of_others = end_started_by(supervisor, grace);
        u8::from(of_child.is_err() || of_others.is_err())
    }
}
