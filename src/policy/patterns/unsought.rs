//! The alternatives that need no strings: they would be asked about every line, and hardly a line matches one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use regex::bytes::Regex;

use super::Alternative;
use super::gradual::fast;

/// After how many bytes of text all of them are made one pattern. That costs about as much as asking each about so many.
const FEW_BYTES: usize = 32 << 10;

/// Their numbers, and a pattern that matches where one of them does.
#[derive(Debug, Default)]
pub(super) struct Unsought {
    numbers: Vec<u16>,
    asked: AtomicUsize,
    joined: OnceLock<Option<Regex>>,
}

impl Unsought {
    pub(super) fn new(numbers: Vec<u16>) -> Self {
        Self {
            numbers,
            ..Self::default()
        }
    }

    pub(super) fn numbers(&self) -> &[u16] {
        &self.numbers
    }

    /// Those to be asked about a line: all of them, or none where none matches.
    pub(super) fn of(&self, line: &[u8], alternatives: &[Alternative]) -> &[u16] {
        // A count that is a little off does no harm.
        let asked = self.asked.load(Ordering::Relaxed);
        if asked <= FEW_BYTES {
            self.asked
                .store(asked.saturating_add(line.len()), Ordering::Relaxed);
            return &self.numbers;
        }
        let joined = self.joined.get_or_init(|| {
            let each =
                |number: &u16| format!("(?:{})", alternatives[usize::from(*number)].regex.text());
            fast(&self.numbers.iter().map(each).collect::<Vec<_>>().join("|"))
        });
        if joined.as_ref().is_some_and(|joined| !joined.is_match(line)) {
            &[]
        } else {
            &self.numbers
        }
    }

    #[cfg(test)]
    pub(super) fn is_joined(&self) -> bool {
        self.joined.get().is_some_and(Option::is_some)
    }
}
