//! A terminal of its own for a child that wants one.
//!
//! A terminal becomes a session's own by what the session's first process does, so a helper comes first: this very
//! program, which makes the session, takes the terminal and then becomes the command. It reports through its stdout why
//! it could not, and says nothing if it could.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{grantpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};
use signal_hook::SigId;
use signal_hook::consts::SIGWINCH;
use signal_hook::low_level::{pipe, unregister};

use super::terminal::{Terminal, Typing};
use crate::os::open_pty;

/// What the helper is called with before the command.
pub(crate) const HELPER: &str = "__on-terminal";
/// The size of a terminal that nobody watches.
const USUAL: Winsize = Winsize {
    ws_row: 24,
    ws_col: 80,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// Becomes the command, in a session of its own with the terminal on stderr; `argv` are the words after [`HELPER`].
/// Only returns if that failed, with what to exit with: why is printed on stdout.
pub(crate) fn exec_on_terminal(argv: &[OsString]) -> u8 {
    let Ok(told) = io::stdout().as_fd().try_clone_to_owned() else {
        return 126;
    };
    let Some((program, arguments)) = argv.split_first() else {
        return 126;
    };
    let error = match terminal_of_session() {
        Ok(terminal) => Command::new(program)
            .args(arguments)
            .stdout(Stdio::from(terminal))
            .exec(),
        Err(error) => error,
    };
    let number = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
    // With nobody there to read it, the exit code says it.
    let _ = File::from(told).write_all(&number.to_le_bytes());
    126
}

fn terminal_of_session() -> io::Result<OwnedFd> {
    setsid()?;
    ioctl_tiocsctty(io::stderr())?;
    io::stderr().as_fd().try_clone_to_owned()
}

/// Our side of a child's terminal.
pub(super) struct Pty {
    /// Non-blocking.
    pub(super) ours: OwnedFd,
    told: UnixStream,
}

impl Pty {
    /// Has `command`, the helper's, started on a new terminal. Its stdin is the terminal too where `typed` says so.
    pub(super) fn attach(command: &mut Command, typed: bool) -> io::Result<Self> {
        let ours = open_pty()?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let flags =
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let theirs = rustix::fs::open(&name, flags, rustix::fs::Mode::empty())?;
        tcsetwinsize(&ours, size())?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let (told, tells) = UnixStream::pair()?;
        if typed {
            command.stdin(Stdio::from(theirs.try_clone()?));
        }
        command
            .stdout(Stdio::from(OwnedFd::from(tells)))
            .stderr(Stdio::from(theirs));
        Ok(Self { ours, told })
    }

    /// Waits until the helper became the command; the inner error says why it could not. The [`Command`] must be gone.
    pub(super) fn wait(&mut self) -> io::Result<Result<(), io::Error>> {
        let mut number = Vec::new();
        self.told.read_to_end(&mut number)?;
        Ok(match <[u8; 4]>::try_from(number) {
            Ok(number) => Err(io::Error::from_raw_os_error(i32::from_le_bytes(number))),
            Err(_) => Ok(()),
        })
    }
}

/// The size of the terminal that we have ourselves.
fn size() -> Winsize {
    let (stdout, stderr, stdin) = (io::stdout(), io::stderr(), io::stdin());
    let streams: [BorrowedFd<'_>; 3] = [stdout.as_fd(), stderr.as_fd(), stdin.as_fd()];
    let mut sizes = streams
        .into_iter()
        .filter_map(|stream| tcgetwinsize(stream).ok());
    sizes
        .find(|size| size.ws_col > 0 && size.ws_row > 0)
        .unwrap_or(USUAL)
}

/// What our terminal and the child's have to do with each other while the child runs.
pub(super) struct Link {
    theirs: OwnedFd,
    size: Winsize,
    resized: SigId,
    _typed: Option<Terminal>,
}

impl Link {
    /// What is typed goes to the child's terminal if `typed`; `wake` gets a byte when our own has another size.
    pub(super) fn new(theirs: &OwnedFd, typed: bool, wake: UnixStream) -> io::Result<Self> {
        let resized = pipe::register(SIGWINCH, wake)?;
        let input = theirs.try_clone()?;
        let hand_on = move |bytes: &[u8]| write_all(&input, bytes).is_ok();
        let typed = typed
            .then(|| Terminal::take(Typing::Raw, hand_on))
            .transpose();
        let typed = typed.inspect_err(|_| {
            unregister(resized);
        })?;
        Ok(Self {
            theirs: theirs.try_clone()?,
            size: size(),
            resized,
            _typed: typed,
        })
    }

    /// Gives the child's terminal the size of ours, if that has changed.
    pub(super) fn follow_size(&mut self) {
        let now = size();
        if (now.ws_row, now.ws_col) != (self.size.ws_row, self.size.ws_col) {
            self.size = now;
            // It is gone with the child.
            let _ = tcsetwinsize(&self.theirs, now);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        unregister(self.resized);
    }
}

/// Whether a user types on a terminal here.
pub(super) fn is_typed_on() -> bool {
    io::stdin().is_terminal()
}

/// The helper that becomes the command.
pub(super) fn helper_for(helper: &OsStr, argv: &[OsString]) -> Command {
    let mut command = Command::new(helper);
    command.arg(HELPER).args(argv);
    command
}

fn write_all(terminal: &OwnedFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(terminal, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let pause = rustix::event::Timespec {
                    tv_sec: 1,
                    tv_nsec: 0,
                };
                if poll(&mut [PollFd::new(terminal, PollFlags::OUT)], Some(&pause)) == Ok(0) {
                    // Nobody reads what is typed: it is lost rather than kept for ever.
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
