//! A log file that stays small whatever is written to it.
//!
//! The first quarter of the limit is written as it comes. What follows goes through a ring in memory to the rest of
//! the file: it is appended until the file has its full size, then the ring's content takes the place of all that
//! was appended, behind a line that says how much is missing. So the file is a readable log at any time, also if
//! the supervisor is killed: what can be missing then is what a flooding child printed in the last quarter of a
//! second. Nothing is synced: a log is evidence, not state.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use super::output::{Ring, marker};

/// How old bytes in memory may get while the child prints without a pause.
const MAX_AGE: Duration = Duration::from_millis(250);

/// An open log.
#[derive(Debug)]
pub(super) struct BoundedLog {
    file: File,
    head_limit: u64,
    head: u64,
    head_end: Option<u8>,
    ring: Ring,
    /// Size of the ring; the file holds up to twice as much behind its head.
    ring_limit: u64,
    /// The ring's total when it was last written out.
    flushed: u64,
    /// Bytes behind the head and the marker in the file.
    tail: u64,
    last_flush: Instant,
}

impl BoundedLog {
    /// Begins a log in an empty file. It will have at most `limit` bytes and one marker line.
    pub(super) fn new(file: File, limit: u64) -> Self {
        let ring_limit = limit / 8 * 3;
        let head_limit = limit - 2 * ring_limit;
        Self {
            file,
            head_limit,
            head: 0,
            head_end: None,
            ring: Ring::new(usize::try_from(ring_limit).unwrap_or(usize::MAX)),
            ring_limit,
            flushed: 0,
            tail: 0,
            last_flush: Instant::now(),
        }
    }

    /// Takes bytes; the file gets them at once, at the next [`flush`](Self::flush), or never if they are in the middle
    /// of too many.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.head_limit - self.head).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        if !head.is_empty() {
            self.file.write_all(head)?;
            self.head += head.len() as u64;
            self.head_end = head.last().copied();
        }
        if self.ring_limit == 0 {
            self.ring.push(rest);
        } else {
            for piece in rest.chunks(usize::try_from(self.ring_limit).unwrap_or(usize::MAX)) {
                let pending = self.pending();
                if pending + piece.len() as u64 > self.ring_limit && self.fits(pending) {
                    self.flush()?;
                }
                self.ring.push(piece);
            }
        }
        if self.is_dirty() && self.last_flush.elapsed() >= MAX_AGE {
            self.flush()?;
        }
        Ok(())
    }

    /// Whether bytes wait in memory.
    pub(super) fn is_dirty(&self) -> bool {
        self.pending() > 0
    }

    /// Brings the file up to date.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let pending = self.pending();
        if pending == 0 {
            return Ok(());
        }
        if pending <= self.ring.len() as u64 && self.fits(pending) {
            self.append(usize::try_from(pending).unwrap_or(usize::MAX))?;
            self.tail += pending;
        } else {
            self.file.seek(SeekFrom::Start(self.head))?;
            let omitted = self.ring.total() - self.ring.len() as u64;
            self.file
                .write_all(marker(self.head_end, omitted).as_bytes())?;
            self.append(self.ring.len())?;
            let end = self.file.stream_position()?;
            self.file.set_len(end)?;
            self.tail = self.ring.len() as u64;
        }
        self.flushed = self.ring.total();
        self.last_flush = Instant::now();
        Ok(())
    }

    fn append(&mut self, count: usize) -> io::Result<()> {
        let (older, newer) = self.ring.last(count);
        self.file.write_all(older)?;
        self.file.write_all(newer)
    }

    fn pending(&self) -> u64 {
        self.ring.total() - self.flushed
    }

    fn fits(&self, more: u64) -> bool {
        self.tail + more <= 2 * self.ring_limit
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Splits a log at its marker and checks what the marker says.
    fn check(whole: &[u8], log: &[u8], limit: u64) {
        let text = String::from_utf8_lossy(log);
        let Some(at) = text.find("[recover: ") else {
            assert_eq!(log, whole, "a log without a marker is complete");
            assert!(log.len() as u64 <= limit);
            return;
        };
        let end = at + text[at..].find('\n').unwrap() + 1;
        let omitted: usize = text[at + 10..].split(' ').next().unwrap().parse().unwrap();
        let tail = &log[end..];
        let head = whole.len() - omitted - tail.len();
        assert_eq!(log[..head], whole[..head]);
        assert_eq!(tail, &whole[whole.len() - tail.len()..]);
        assert!((head + tail.len()) as u64 <= limit);
        assert!(
            omitted > 0 && (whole.len() as u64) > limit,
            "nothing is dropped from a log that fits"
        );
        assert!(
            tail.len() as u64 >= limit / 8 * 3,
            "the tail has at least the ring's size"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn the_file_is_bounded_and_says_what_is_missing(
            limit in 0_u64..300,
            pieces in prop::collection::vec((0_usize..150, any::<bool>()), 0..20),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            let mut log = BoundedLog::new(File::create(&path).unwrap(), limit);
            let mut whole = Vec::new();
            for (length, flush) in pieces {
                let start = whole.len();
                whole.extend((start..start + length).map(|n| b'a' + u8::try_from(n % 26).unwrap()));
                log.write(&whole[start..]).unwrap();
                if flush {
                    log.flush().unwrap();
                    check(&whole, &std::fs::read(&path).unwrap(), limit);
                }
            }
            log.flush().unwrap();
            check(&whole, &std::fs::read(&path).unwrap(), limit);
        }
    }
}
