//! Which checkpoints are on the run's current history after rollbacks, and which are superseded.
//!
//! A rollback goes back over what came after its target, or forward to what another one went back over. Checkpoints are a
//! tree by that: each one comes after the one that the files were at when it was taken. What lies between the root and where
//! the files are now stands; everything else is superseded. That is never good, nor the latest, nor what anything goes back
//! to by itself, until an undo, a redo or a rollback takes it up again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where a run's line of checkpoints goes on from another place than the checkpoint before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Line {
    /// By the first sequence after a turn, the sequence of what it turned to, which is smaller.
    turns: BTreeMap<u64, u64>,
}

/// What stands: ranges of sequences from the first to the last, the newest range first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing(Vec<(u64, u64)>);

impl Standing {
    /// Whether the checkpoint with this sequence is on the line.
    pub fn holds(&self, seq: u64) -> bool {
        let at = self.0.partition_point(|(first, _)| *first > seq);
        self.0.get(at).is_some_and(|(_, last)| seq <= *last)
    }
}

impl Line {
    /// Whether nothing was ever gone back over.
    pub fn is_straight(&self) -> bool {
        self.turns.is_empty()
    }

    /// Whether the checkpoint with this sequence is on the line.
    pub fn holds(&self, seq: u64) -> bool {
        self.is_straight() || self.standing().holds(seq)
    }

    /// The files went to those of checkpoint `to`; `last` is the highest sequence so far.
    pub fn turn(&mut self, last: u64, to: u64) {
        self.turns.insert(last.saturating_add(1), to.min(last));
    }

    /// Where the line ends, to be turned to again: at `last`, the highest sequence so far, or where the latest turn went.
    pub fn end(&self, last: u64) -> u64 {
        self.turns
            .last_key_value()
            .filter(|(first, _)| **first > last)
            .map_or(last, |(_, to)| *to)
    }

    /// What stands now.
    pub fn standing(&self) -> Standing {
        let mut ranges = Vec::new();
        let mut last = u64::MAX;
        while let Some((first, to)) = self.turns.range(..=last).next_back() {
            ranges.push((*first, last));
            last = *to;
        }
        ranges.push((0, last));
        Standing(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_back_and_forward() {
        let mut line = Line::default();
        let standing = |line: &Line| {
            (1..=9)
                .filter(|seq| line.standing().holds(*seq))
                .collect::<Vec<u64>>()
        };
        assert_eq!(standing(&line), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // Three of them; 4 is taken before the rollback.
        line.turn(4, 2);
        assert_eq!(
            (standing(&line), line.end(4)),
            (vec![1, 2, 5, 6, 7, 8, 9], 2)
        );
        assert_eq!(line.end(5), 5);
        // 5 came after it; forward to 3, over 5.
        line.turn(6, 3);
        assert_eq!(standing(&line), [1, 2, 3, 7, 8, 9]);
        // And to 5 again.
        line.turn(7, 5);
        assert_eq!(standing(&line), [1, 2, 5, 8, 9]);
        // A turn with nothing in between takes the place of the one before.
        line.turn(7, 1);
        assert_eq!((standing(&line), line.end(7)), (vec![1, 8, 9], 1));
    }
}
