//! Our ends of a child's pipes.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::output::{Capture, Captured, Keep};
use crate::os::{enlarge_pipe, pipe_size};

/// What the child can still read from its input.
pub(super) struct Input<'a> {
    /// `None` once it got everything, or does not want more.
    pub(super) pipe: Option<OwnedFd>,
    left: &'a [u8],
}

impl<'a> Input<'a> {
    /// `pipe` must not block.
    pub(super) fn new(pipe: Option<OwnedFd>, bytes: &'a [u8]) -> Self {
        Self {
            pipe: pipe.filter(|_| !bytes.is_empty()),
            left: bytes,
        }
    }

    /// Gives the child as much as it takes just now.
    pub(super) fn feed(&mut self) {
        while let Some(pipe) = &self.pipe {
            match rustix::io::write(pipe, self.left) {
                Ok(count) => self.left = &self.left[count..],
                Err(Errno::AGAIN | Errno::INTR) => return,
                // It closed its end.
                Err(_) => self.pipe = None,
            }
            if self.left.is_empty() {
                self.pipe = None;
            }
        }
    }
}

/// One of the child's output streams.
pub(super) struct Output {
    /// `None` once it ended.
    pub(super) pipe: Option<OwnedFd>,
    capture: Capture,
    /// Bytes that may still be read.
    allowance: usize,
    /// The child has no descriptor of its terminal open just now.
    hung_up: bool,
}

impl Output {
    pub(super) fn new(pipe: Option<OwnedFd>, keep: Keep) -> Self {
        if let Some(pipe) = &pipe {
            enlarge_pipe(pipe);
        }
        Self {
            pipe,
            capture: Capture::new(keep),
            allowance: usize::MAX,
            hung_up: false,
        }
    }

    /// Says that nobody of the group lives: what the pipe can hold by now may be theirs, more is not.
    pub(super) fn limit_to_pipe(&mut self) {
        self.allowance = self.pipe.as_ref().map_or(0, pipe_size);
    }

    /// The pipe, if there may be something to read and waiting for it makes sense.
    pub(super) fn open(&self) -> Option<&OwnedFd> {
        self.pipe
            .as_ref()
            .filter(|_| self.allowance > 0 && !self.hung_up)
    }

    /// Whether it is to be read at each look: the child may open its terminal again, and no wait tells when.
    pub(super) fn is_hung_up(&self) -> bool {
        self.hung_up && self.pipe.is_some()
    }

    /// Whether, when nobody of the group lives, everything that the group wrote was read.
    pub(super) fn is_drained(&self) -> bool {
        self.open().is_none_or(|pipe| {
            let mut fds = [PollFd::new(pipe, PollFlags::IN)];
            !matches!(poll(&mut fds, Some(&timespec(Duration::ZERO))), Ok(1..))
        })
    }

    /// Reads once from a pipe that is ready, or [hung up](Self::is_hung_up); 0 if there was nothing, or it ended.
    /// `lives` says that the child's end is not known.
    pub(super) fn read(&mut self, buffer: &mut [u8], lives: bool) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        let limit = buffer.len().min(self.allowance);
        let read = rustix::io::read(pipe, &mut buffer[..limit]);
        // Of a child's terminal that nobody has open a read fails.
        self.hung_up = lives && read == Err(Errno::IO);
        match read {
            Err(Errno::IO) if lives => Ok(0),
            Ok(0) | Err(Errno::IO) => {
                self.pipe = None;
                Ok(0)
            }
            Ok(count) => {
                if self.allowance < usize::MAX {
                    self.allowance -= count;
                }
                self.capture.push(&buffer[..count]);
                Ok(count)
            }
            Err(Errno::INTR | Errno::AGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands out what was kept.
    pub(super) fn finish(&mut self) -> Captured {
        std::mem::replace(&mut self.capture, Capture::new(Keep { head: 0, tail: 0 })).finish()
    }
}

/// A duration as `poll` takes it.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
