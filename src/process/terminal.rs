//! The terminal on stdin, taken for a while: what is typed comes byte by byte.
//!
//! It is only touched while this process is in front of it: in the background a read or a change of modes would stop
//! the process. It is restored when this is dropped (also by a panic), before the process is suspended, and before a
//! signal ends it. Ctrl-C and Ctrl-Z stay signals; Ctrl-\ is none, because it would leave the terminal as it is.

use std::collections::BTreeSet;
use std::io;
use std::os::{fd::OwnedFd, unix::net::UnixStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
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
            Suspension::Begins => hooked.lock().give_back(),
            Suspension::Ends => {
                let mut modes = hooked.lock();
                // Whoever had the terminal meanwhile may have left it in other modes.
                modes.ours = false;
                modes.take();
            }
        })?;
        modes.lock().take();
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
        let mut modes = self.modes.lock();
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
        self.modes.lock().give_back();
    }
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

/// What is typed, without waiting: another process may have taken what `poll` saw.
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
            let mut modes = modes.lock();
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
        if ready.is_err() || seen.is_empty() || !modes.lock().ours || !is_in_front() {
            continue;
        }
        let mut bytes = [0; 256];
        match read_typed(own, &mut bytes) {
            // A terminal that went away has nothing to read without waiting either.
            Err(Errno::AGAIN) if seen.intersects(PollFlags::HUP | PollFlags::ERR) => {
                return Some(Vec::new());
            }
            // Another process was faster.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) if !seen.intersects(PollFlags::HUP | PollFlags::ERR) => {}
            Ok(count) => return Some(bytes[..count].to_vec()),
            Err(_) => return Some(Vec::new()),
        }
    }
}

/// Longer sequences switch nothing.
const LONGEST: usize = 64;
/// Private modes (DECSET) that are on where nobody switched them: wrapping and the cursor.
const ON: [u16; 2] = [7, 25];
/// Private modes that are off: cursor keys, the alternate screens, what reports mouse, focus and pasting, and output
/// that is held back.
const OFF: [u16; 15] = [
    1, 9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1049, 2004, 2026,
];
/// Those of another screen; they are left last.
const SCREENS: [u16; 3] = [47, 1047, 1049];

/// What is switched other than a terminal has it by itself.
#[derive(Debug, Default)]
pub(super) struct TerminalModes {
    modes: BTreeSet<u16>,
    /// Colours and other attributes.
    attributes: bool,
    /// The keypad sends codes of its own.
    keypad: bool,
    /// This many keyboard protocols were pushed.
    keyboards: u32,
    /// The beginning of a sequence that has not ended.
    rest: Vec<u8>,
}

impl TerminalModes {
    /// Takes note of what was printed.
    pub(super) fn printed(&mut self, bytes: &[u8]) {
        let whole = [std::mem::take(&mut self.rest).as_slice(), bytes].concat();
        let mut bytes = whole.as_slice();
        while let Some(at) = bytes.iter().position(|byte| *byte == 0x1b) {
            let sequence = &bytes[at..];
            let Some(length) = self.sequence(&sequence[1..]) else {
                if sequence.len() <= LONGEST {
                    self.rest = sequence.to_vec();
                }
                return;
            };
            bytes = &sequence[1 + length..];
        }
    }

    /// Takes note of a sequence, by what follows its escape, and returns its length; `None` where it has not ended.
    fn sequence(&mut self, bytes: &[u8]) -> Option<usize> {
        match bytes.first()? {
            b'[' => {
                let is_parameter = |byte: &u8| (0x20..=0x3f).contains(byte);
                let length = bytes[1..].iter().position(|byte| !is_parameter(byte))?;
                let end = bytes[1 + length];
                if !(0x40..=0x7e).contains(&end) || length > LONGEST {
                    return Some(1 + length);
                }
                self.control(&bytes[1..=length], end);
                return Some(2 + length);
            }
            0x1b => return Some(0),
            b'=' => self.keypad = true,
            b'>' => self.keypad = false,
            // A full reset.
            b'c' => *self = Self::default(),
            _ => {}
        }
        Some(1)
    }

    fn control(&mut self, parameters: &[u8], end: u8) {
        let numbers = |text: &[u8]| -> Vec<u16> {
            let text = String::from_utf8_lossy(text).into_owned();
            text.split(';')
                .filter_map(|number| number.parse().ok())
                .collect()
        };
        match (parameters, end) {
            ([b'?', modes @ ..], b'h' | b'l') => {
                for mode in numbers(modes) {
                    let switched = match end {
                        b'h' => OFF.contains(&mode),
                        _ => ON.contains(&mode),
                    };
                    if switched {
                        self.modes.insert(mode);
                    } else {
                        self.modes.remove(&mode);
                    }
                }
            }
            ([b'>', ..], b'u') => self.keyboards = self.keyboards.saturating_add(1),
            ([b'<', count @ ..], b'u') => {
                let count = numbers(count).first().map_or(1, |count| u32::from(*count));
                self.keyboards = self.keyboards.saturating_sub(count);
            }
            (b"!", b'p') => *self = Self::default(),
            ([b'0'..=b'9' | b';' | b':', ..] | [], b'm') => {
                // What follows a reset in the same sequence is set again.
                self.attributes = !matches!(numbers(parameters).last(), None | Some(0));
            }
            _ => {}
        }
    }

    /// What switches everything back; from now on nothing is left. Empty where nothing was.
    pub(super) fn take_back(&mut self) -> Vec<u8> {
        let left = std::mem::take(self);
        let mut out = String::new();
        if left.attributes {
            out.push_str("\x1b[0m");
        }
        if left.keyboards > 0 {
            out.push_str(&format!("\x1b[<{}u", left.keyboards));
        }
        if left.keypad {
            out.push_str("\x1b>");
        }
        let (screens, others): (Vec<u16>, Vec<u16>) =
            left.modes.iter().partition(|mode| SCREENS.contains(mode));
        for mode in others.into_iter().chain(screens) {
            out.push_str(&format!(
                "\x1b[?{mode}{}",
                if ON.contains(&mode) { 'h' } else { 'l' }
            ));
        }
        out.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(bytes: &[u8]) -> String {
        let mut left = TerminalModes::default();
        // The same in one piece and in many.
        left.printed(bytes);
        let whole = left.take_back();
        for byte in bytes {
            left.printed(&[*byte]);
        }
        assert_eq!(left.take_back(), whole);
        assert!(left.take_back().is_empty());
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn what_is_still_switched_is_switched_back() {
        assert_eq!(after(b"\x1b[?1049h\x1b[?25lscreen"), "\x1b[?25h\x1b[?1049l");
        assert_eq!(
            after(b"\x1b[?1000;1006h\x1b[?2004h"),
            "\x1b[?1000l\x1b[?1006l\x1b[?2004l"
        );
        assert_eq!(after(b"\x1b[1;31mred"), "\x1b[0m");
        assert_eq!(after(b"\x1b[>1u\x1b[>3u\x1b[<u\x1b="), "\x1b[<1u\x1b>");
        assert_eq!(after(b"\x1b[?25l\x1b\x1b[?1h"), "\x1b[?1l\x1b[?25h");
    }

    #[test]
    fn who_tidies_up_leaves_nothing() {
        assert_eq!(
            after(b"plain \x1b[1mbold\x1b[0m \x1b[31mred\x1b[m \x1b[0;32mgreen\x1b[39;0m"),
            ""
        );
        assert_eq!(after(b"\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l"), "");
        assert_eq!(after(b"\x1b[?25l\x1b[?1049h\x1bc"), "");
        assert_eq!(
            after(b"\x1b[?7h\x1b[?25h\x1b[?12l\x1b[?99999999h\x1b[>4;2m\x1b[?6n"),
            ""
        );
    }

    #[test]
    fn rubbish_does_no_harm() {
        let long = [b"\x1b[?".as_slice(), &[b'1'; 1000], b"h"].concat();
        assert_eq!(after(&long), "");
        assert_eq!(after(b"\x1b[?25\nl \x1b]0;title\x07\xff\x1b["), "");
    }
}
