//! The terminal on stdin, taken for a while: what is typed comes byte by byte.
//!
//! It is only touched while this process is in front of it: in the background a read or a change of modes would stop
//! the process. It is restored when this is dropped (also by a panic), before the process is suspended, and before a
//! signal ends it. Ctrl-C and Ctrl-Z stay signals; Ctrl-\ is none, because it would leave the terminal as it is.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

use super::suspend::{Registered, Suspension, is_away, on_suspend};
use crate::os::DISABLED_KEY;

/// For whom the terminal is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typing {
    /// Single keys for this process: without echo, without waiting for a line's end.
    Keys,
    /// Everything for another terminal, which does with it what terminals do.
    Raw,
}

/// The terminal, taken for as long as this lives.
pub(crate) struct Terminal {
    modes: Arc<Mutex<Modes>>,
    /// Dropping it ends the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    registered: Option<Registered>,
}

struct Modes {
    before: Termios,
    wanted: Termios,
    /// They are set.
    ours: bool,
    /// Nobody wants keys just now.
    paused: bool,
}

impl Modes {
    /// Takes the terminal if it may be taken.
    fn take(&mut self) {
        if !self.ours && !self.paused && !is_away() && is_in_front() {
            self.ours = tcsetattr(io::stdin(), OptionalActions::Now, &self.wanted).is_ok();
        }
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.ours) && is_in_front() {
            // A terminal that went away needs nothing any more.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        }
    }
}

impl Terminal {
    /// Has `typed` called with what is typed, from another thread, until it answers false. At the end of the input it
    /// gets nothing.
    pub(crate) fn take(
        typing: Typing,
        mut typed: impl FnMut(&[u8]) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut wanted = before.clone();
        if typing == Typing::Raw {
            wanted.make_raw();
        }
        wanted
            .local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        wanted.local_modes.insert(LocalModes::ISIG);
        // A byte at least: where nothing restores these modes (SIGKILL, SIGSTOP), the next reader is a shell, for which a read
        // of nothing is the end of its input.
        wanted.special_codes[SpecialCodeIndex::VMIN] = 1;
        wanted.special_codes[SpecialCodeIndex::VTIME] = 0;
        wanted.special_codes[SpecialCodeIndex::VQUIT] = DISABLED_KEY;
        let modes = Arc::new(Mutex::new(Modes {
            before,
            wanted,
            ours: false,
            paused: false,
        }));
        let hooked = Arc::clone(&modes);
        let registered = on_suspend(move |what| match what {
            Suspension::Begins => lock(&hooked).give_back(),
            Suspension::Ends => {
                let mut modes = lock(&hooked);
                // Whoever had the terminal meanwhile may have left it in other modes.
                modes.ours = false;
                modes.take();
            }
        })?;
        lock(&modes).take();
        let (stop, stopped) = UnixStream::pair()?;
        let shared = Arc::clone(&modes);
        let own = own_handle();
        let read = move || {
            while let Some(bytes) = next(&shared, &stopped, own.as_ref()) {
                if !typed(&bytes) || bytes.is_empty() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("keys".to_owned()).spawn(read)?;
        Ok(Self {
            modes,
            stop: Some(stop),
            thread: Some(thread),
            registered: Some(registered),
        })
    }

    /// Leaves the terminal alone for a while, or takes it again.
    pub(crate) fn pause(&self, paused: bool) {
        let mut modes = lock(&self.modes);
        modes.paused = paused;
        if paused {
            modes.give_back();
        } else {
            modes.take();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // It only fails if it panicked, and that was reported.
            let _ = thread.join();
        }
        // Nobody takes it again after it is given back.
        drop(self.registered.take());
        lock(&self.modes).give_back();
    }
}

fn lock(modes: &Mutex<Modes>) -> MutexGuard<'_, Modes> {
    modes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the terminal is this process's to read from.
fn is_in_front() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// The terminal by a description of our own, which alone does not wait: that of stdin is shared with the shell and with
/// whatever else was started from it. What is in front of its terminal has it as the controlling one.
fn own_handle() -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open("/dev/tty", flags, Mode::empty()).ok()
}

/// What is typed, without waiting: somebody else may have taken what `poll` saw.
fn read_typed(own: Option<&OwnedFd>, bytes: &mut [u8]) -> rustix::io::Result<usize> {
    // Not through the standard library's buffer: what that holds is seen neither here nor by the next reader.
    match own {
        Some(own) => rustix::io::read(own, bytes),
        None if ioctl_fionread(io::stdin()).is_ok_and(|count| count == 0) => Err(Errno::AGAIN),
        None => rustix::io::read(io::stdin(), bytes),
    }
}

/// Waits for what is typed; `None` once nobody wants it any more, nothing at the end of the input.
fn next(modes: &Mutex<Modes>, stopped: &UnixStream, own: Option<&OwnedFd>) -> Option<Vec<u8>> {
    loop {
        let ours = {
            let mut modes = lock(modes);
            modes.take();
            modes.ours && is_in_front()
        };
        let stdin = io::stdin();
        let mut fds = vec![PollFd::new(stopped, PollFlags::IN)];
        if ours {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
        }
        let pause = Timespec {
            tv_sec: 0,
            tv_nsec: 250_000_000,
        };
        let ready = poll(&mut fds, Some(&pause));
        if !fds[0].revents().is_empty() {
            return None;
        }
        let seen = fds.get(1).map_or(PollFlags::empty(), PollFd::revents);
        if ready.is_err() || seen.is_empty() || !lock(modes).ours || !is_in_front() {
            continue;
        }
        let mut bytes = [0; 256];
        match read_typed(own, &mut bytes) {
            // A terminal that went away has nothing to read without waiting either.
            Err(Errno::AGAIN) if seen.intersects(PollFlags::HUP | PollFlags::ERR) => {
                return Some(Vec::new());
            }
            // Somebody else was faster.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) if !seen.intersects(PollFlags::HUP | PollFlags::ERR) => {}
            Ok(count) => return Some(bytes[..count].to_vec()),
            Err(_) => return Some(Vec::new()),
        }
    }
}
