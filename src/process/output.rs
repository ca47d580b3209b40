//! What is kept of a stream of any length: its first and its last bytes.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

/// How many bytes of a stream are kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Bytes from the start.
    pub head: usize,
    /// Bytes from the end.
    pub tail: usize,
}

impl Default for Keep {
    /// 256 KiB of head, where a compiler says its first error, and 768 KiB of tail, where a tool says how it ended.
    fn default() -> Self {
        Self {
            head: 256 << 10,
            tail: 768 << 10,
        }
    }
}

/// The kept part of one stream. `head.len() + omitted + tail.len() == total`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, without those that are in `head`.
    pub tail: Vec<u8>,
    /// How many bytes between the two were dropped.
    pub omitted: u64,
    /// How many bytes the stream had.
    pub total: u64,
}

impl Captured {
    /// Head and tail as one text, with a marker line between them if anything was dropped there. The bytes are the
    /// child's own and need not be UTF-8.
    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        if self.omitted > 0 {
            bytes.extend_from_slice(marker(bytes.last().copied(), self.omitted).as_bytes());
        }
        bytes.extend_from_slice(&self.tail);
        bytes
    }
}

/// The line that represents `omitted` dropped bytes; it starts a new line unless `before` ended one.
pub(super) fn marker(before: Option<u8>, omitted: u64) -> String {
    let line_break = if before.is_none_or(|byte| byte == b'\n') {
        ""
    } else {
        "\n"
    };
    format!("{line_break}[recover: {omitted} bytes left out here]\n")
}

/// Takes a stream piece by piece and keeps its head and tail.
#[derive(Debug)]
pub(super) struct Capture {
    head_limit: usize,
    head: Vec<u8>,
    tail: Ring,
}

impl Capture {
    pub(super) fn new(keep: Keep) -> Self {
        Self {
            head_limit: keep.head,
            head: Vec::new(),
            tail: Ring::new(keep.tail),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.push(rest);
    }

    pub(super) fn finish(self) -> Captured {
        let (older, newer) = self.tail.last(self.tail.len());
        let tail = [older, newer].concat();
        Captured {
            total: self.head.len() as u64 + self.tail.total(),
            omitted: self.tail.total() - tail.len() as u64,
            head: self.head,
            tail,
        }
    }
}

/// The last bytes of a stream, in a buffer that grows up to a limit and is then overwritten in a circle.
#[derive(Debug)]
pub(super) struct Ring {
    bytes: Vec<u8>,
    limit: usize,
    /// Where the oldest byte is, once the buffer is full; 0 before.
    oldest: usize,
    total: u64,
}

impl Ring {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            oldest: 0,
            total: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(self.limit)..];
        let room = self.limit - self.bytes.len();
        let (grow, mut rest) = kept.split_at(room.min(kept.len()));
        self.bytes.extend_from_slice(grow);
        while !rest.is_empty() {
            let count = rest.len().min(self.limit - self.oldest);
            self.bytes[self.oldest..self.oldest + count].copy_from_slice(&rest[..count]);
            self.oldest = (self.oldest + count) % self.limit;
            rest = &rest[count..];
        }
    }

    /// How many bytes are held.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// How many bytes went in.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The last `count` bytes that are held, as an older and a newer part.
    pub(super) fn last(&self, count: usize) -> (&[u8], &[u8]) {
        let (newer, older) = self.bytes.split_at(self.oldest);
        let from_older = count.saturating_sub(newer.len()).min(older.len());
        let from_newer = count.min(newer.len());
        (
            &older[older.len() - from_older..],
            &newer[newer.len() - from_newer..],
        )
    }
}

/// Looks at the output of one child. It is asked by the supervisor between two reads: it must not take long.
pub trait Watch: Send {
    /// Takes bytes of stdout, and answers with what is shown in their place; `None`: they are shown as they are.
    fn take(&mut self, bytes: &[u8]) -> Option<Vec<u8>>;

    /// What is shown at the end of stdout.
    fn end(&mut self) -> Vec<u8>;
}

/// A handle to one.
#[derive(Clone)]
pub struct Watcher(Arc<Mutex<dyn Watch>>);

impl Watcher {
    /// A handle to `watch`.
    pub fn new(watch: impl Watch + 'static) -> Self {
        Self(Arc::new(Mutex::new(watch)))
    }

    pub(super) fn take(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().take(bytes)
    }

    pub(super) fn end(&self) -> Vec<u8> {
        self.0.lock().end()
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capture(head: usize, tail: usize, pieces: &[Vec<u8>]) -> Captured {
        let mut capture = Capture::new(Keep { head, tail });
        for piece in pieces {
            capture.push(piece);
        }
        capture.finish()
    }

    #[test]
    fn a_short_stream_is_kept_whole() {
        let captured = capture(4, 4, &[b"abc".to_vec(), b"defgh".to_vec()]);
        assert_eq!((captured.omitted, captured.total), (0, 8));
        assert_eq!(captured.into_bytes(), b"abcdefgh");
    }

    #[test]
    fn the_middle_of_a_long_stream_is_marked() {
        let captured = capture(2, 3, &[b"abcdefghij".to_vec()]);
        assert_eq!((captured.omitted, captured.total), (5, 10));
        assert_eq!(
            captured.into_bytes(),
            b"ab\n[recover: 5 bytes left out here]\nhij"
        );
    }

    #[test]
    fn nothing_at_all_may_be_kept() {
        assert_eq!(
            capture(0, 0, &[b"abc".to_vec()]).into_bytes(),
            b"[recover: 3 bytes left out here]\n"
        );
    }

    proptest! {
        #[test]
        fn head_and_tail_are_the_ends_of_the_stream(
            head in 0_usize..20,
            tail in 0_usize..20,
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..12),
        ) {
            let whole = pieces.concat();
            let captured = capture(head, tail, &pieces);
            let head = head.min(whole.len());
            let tail = tail.min(whole.len() - head);
            prop_assert_eq!(&captured.head, &whole[..head]);
            prop_assert_eq!(&captured.tail, &whole[whole.len() - tail..]);
            prop_assert_eq!(captured.total, whole.len() as u64);
            prop_assert_eq!(captured.omitted, (whole.len() - head - tail) as u64);
        }

        #[test]
        fn a_ring_hands_out_its_last_bytes(
            limit in 0_usize..20,
            count in 0_usize..25,
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..12),
        ) {
            let mut ring = Ring::new(limit);
            for piece in &pieces {
                ring.push(piece);
            }
            let whole = pieces.concat();
            let (older, newer) = ring.last(count);
            let expected = count.min(limit).min(whole.len());
            prop_assert_eq!([older, newer].concat(), &whole[whole.len() - expected..]);
        }
    }
}
