//! A string that a text must contain.

use std::ops::Deref;

/// Longer strings are cut.
const MAX_LENGTH: usize = 16;

/// The beginning of a string, in lower case: longer ones find no less, and cost more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::policy::patterns) struct Literal {
    bytes: [u8; MAX_LENGTH],
    length: usize,
    /// Whether a word begins with it wherever it is looked for: before it stands no letter of ASCII, no digit and no `_`.
    pub(in crate::policy::patterns) begins_word: bool,
}

impl Literal {
    /// None of it yet, at the beginning of a word or elsewhere.
    pub(super) fn at(begins_word: bool) -> Self {
        Self {
            begins_word,
            ..Self::default()
        }
    }

    /// One byte more.
    pub(super) fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// More bytes.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.push(*byte);
        }
    }
}

impl Deref for Literal {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
