//! A string that a text must contain.

use std::ops::Deref;

use crate::policy::patterns::finder;

/// The beginning of a string, in lower case: longer ones find no less, and cost more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::policy::patterns) struct Literal {
    bytes: [u8; finder::MAX_LENGTH],
    length: usize,
}

impl Literal {
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
