//! Copies a child's output to this process's own stdout and stderr.
//!
//! A thread writes, because a terminal that was stopped or a pager that nobody scrolls blocks a write for as long as it
//! likes, and the supervisor must go on watching the clock. The buffers that go back and forth are few: when
//! all are on their way the child is not read from, so a slow reader slows down the child, as it would without us.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::terminal::TerminalModes;
use super::{Show, footer};

/// Bytes in a buffer: large enough that a flood costs few system calls.
const BUFFER: usize = 256 << 10;
/// Buffers in all.
const BUFFERS: usize = 4;

/// Something that was read, on its way to be shown.
struct Piece {
    stream: usize,
    buffer: Vec<u8>,
    length: usize,
}

/// Read buffers, and the thread that shows their content if it is shown at all.
pub(super) struct Screen {
    free: Vec<Vec<u8>>,
    created: usize,
    writer: Option<Writer>,
    /// Which streams nobody reads any more.
    closed: Arc<[AtomicBool; 2]>,
}

struct Writer {
    /// `None` once everything was handed over.
    pieces: Option<Sender<Piece>>,
    returned: Receiver<Vec<u8>>,
    abandoned: Arc<AtomicBool>,
}

impl Screen {
    /// `wake` gets a byte when a buffer is free again, and at the end.
    pub(super) fn start(show: Show, wake: UnixStream) -> io::Result<Self> {
        let mut screen = Self {
            free: Vec::new(),
            created: 0,
            writer: None,
            closed: Arc::default(),
        };
        if matches!(show, Show::Live | Show::Stderr) {
            // What this process printed before comes before.
            let _ = io::stdout().flush();
            let first = match show {
                Show::Live => own(io::stdout()),
                _ => own(io::stderr()),
            };
            let outputs = [first, own(io::stderr())];
            let (pieces, to_show) = mpsc::channel();
            let (give_back, returned) = mpsc::channel();
            let abandoned = Arc::new(AtomicBool::new(false));
            let is_abandoned = Arc::clone(&abandoned);
            let closed = Arc::clone(&screen.closed);
            thread::Builder::new()
                .name("screen".to_owned())
                .spawn(move || {
                    let marks = (&*is_abandoned, &*closed);
                    write_all_pieces(&to_show, give_back, outputs, marks, wake);
                })?;
            screen.writer = Some(Writer {
                pieces: Some(pieces),
                returned,
                abandoned,
            });
        }
        Ok(screen)
    }

    /// A buffer to read into, if one is free.
    pub(super) fn buffer(&mut self) -> Option<Vec<u8>> {
        if let Some(writer) = &self.writer {
            self.free.extend(writer.returned.try_iter());
        }
        if self.free.is_empty() && self.created < BUFFERS {
            self.created += 1;
            self.free.push(vec![0; BUFFER]);
        }
        self.free.pop()
    }

    /// Takes a buffer back unused.
    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        self.free.push(buffer);
    }

    /// Shows the first `length` bytes of a buffer as part of stream 0 (stdout) or 1 (stderr).
    pub(super) fn show(&mut self, stream: usize, buffer: Vec<u8>, length: usize) {
        let piece = Piece {
            stream,
            buffer,
            length,
        };
        let pieces = self
            .writer
            .as_ref()
            .and_then(|writer| writer.pieces.as_ref());
        let sent = match pieces {
            Some(pieces) => pieces.send(piece),
            None => Err(mpsc::SendError(piece)),
        };
        if let Err(mpsc::SendError(piece)) = sent {
            self.free.push(piece.buffer);
        }
    }

    /// Whether nobody reads a stream any more.
    pub(super) fn is_closed(&self, stream: usize) -> bool {
        self.closed[stream].load(Ordering::Relaxed)
    }

    /// Says that nothing more comes; true when all was shown. Ask again after a wake-up.
    pub(super) fn is_finished(&mut self) -> bool {
        let Some(writer) = &mut self.writer else {
            return true;
        };
        writer.pieces = None;
        loop {
            match writer.returned.try_recv() {
                Ok(_) => {}
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }

    /// Shows nothing any more; what was not shown yet will not be.
    pub(super) fn abandon(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.abandoned.store(true, Ordering::Relaxed);
            self.created = self.free.len();
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.abandon();
    }
}

fn own(stream: impl AsFd) -> Option<File> {
    stream.as_fd().try_clone_to_owned().ok().map(File::from)
}

fn write_all_pieces(
    pieces: &Receiver<Piece>,
    give_back: Sender<Vec<u8>>,
    mut outputs: [Option<File>; 2],
    (abandoned, closed): (&AtomicBool, &[AtomicBool; 2]),
    mut wake: UnixStream,
) {
    // Both streams are the same terminal, where they are terminals.
    let mut left = TerminalModes::default();
    let terminals = outputs
        .each_ref()
        .map(|output| output.as_ref().is_some_and(File::is_terminal));
    for piece in pieces {
        let output = &mut outputs[piece.stream];
        let bytes = &piece.buffer[..piece.length];
        let shown = output.as_ref().map(|file| {
            let write = || write_all(file, bytes, abandoned);
            if terminals[piece.stream] {
                left.printed(bytes);
                footer::pass(file, bytes, write)
            } else {
                write()
            }
        });
        if let Some(Err(_)) = shown {
            // Nobody reads it any more. The child goes on; its output is in the log.
            *output = None;
            closed[piece.stream].store(true, Ordering::Relaxed);
        }
        let _ = give_back.send(piece.buffer);
        // A full buffer means that it will wake up anyway.
        let _ = wake.write(&[0]);
    }
    let back = left.take_back();
    let shown = outputs
        .iter()
        .zip(terminals)
        .find_map(|(output, terminal)| output.as_ref().filter(|_| terminal));
    if let Some(file) = shown.filter(|_| !back.is_empty()) {
        // A terminal that went away needs nothing any more.
        let _ = footer::pass(file, &back, || write_all(file, &back, abandoned));
    }
    drop(give_back);
    let _ = wake.write(&[0]);
}

/// As `Write::write_all`, but also for a stream that another process made non-blocking.
fn write_all(file: &File, mut bytes: &[u8], abandoned: &AtomicBool) -> rustix::io::Result<()> {
    while !bytes.is_empty() && !abandoned.load(Ordering::Relaxed) {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(file, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
