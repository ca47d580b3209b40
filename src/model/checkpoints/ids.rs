//! The ids of a page, in two pieces of memory however many there are: every command reads those of all pages.

use serde::{Deserialize, Serialize};

/// Ids by sequence.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ids {
    /// Sequences in order, each with where its id ends in `text`.
    ends: Vec<(u64, u32)>,
    /// The ids, one after the other.
    text: String,
}

impl Ids {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.ends.first().map(|(seq, _)| *seq)
    }

    pub(super) fn last(&self) -> Option<u64> {
        self.ends.last().map(|(seq, _)| *seq)
    }

    pub(super) fn contains(&self, seq: u64) -> bool {
        self.ends
            .binary_search_by_key(&seq, |(seq, _)| *seq)
            .is_ok()
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.iter().any(|(_, known)| known == id)
    }

    /// Those that there are, in the order of their sequences.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &str)> {
        self.ends.iter().enumerate().map(|(at, (seq, end))| {
            let start = at.checked_sub(1).map_or(0, |before| self.ends[before].1);
            (*seq, &self.text[start as usize..*end as usize])
        })
    }

    /// Adds one; one with the same sequence goes.
    pub(super) fn insert(&mut self, seq: u64, id: &str) {
        if self.last().is_none_or(|last| last < seq) {
            self.push(seq, id);
            return;
        }
        let before = std::mem::take(self);
        before
            .iter()
            .filter(|(other, _)| *other < seq)
            .for_each(|(seq, id)| self.push(seq, id));
        self.push(seq, id);
        before
            .iter()
            .filter(|(other, _)| *other > seq)
            .for_each(|(seq, id)| self.push(seq, id));
    }

    fn push(&mut self, seq: u64, id: &str) {
        self.text.push_str(id);
        self.ends.push((
            seq,
            u32::try_from(self.text.len()).expect("a page of ids is small"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_a_map(added in prop::collection::vec((0..20_u64, "[a-cé]{0,3}"), 0..30)) {
            let (mut ids, mut map) = (Ids::default(), BTreeMap::new());
            for (seq, id) in &added {
                ids.insert(*seq, id);
                map.insert(*seq, id.as_str());
                prop_assert!(ids.iter().eq(map.iter().map(|(seq, id)| (*seq, *id))));
                prop_assert!(ids.iter().rev().eq(map.iter().rev().map(|(seq, id)| (*seq, *id))));
            }
            prop_assert_eq!((ids.len(), ids.is_empty()), (map.len(), map.is_empty()));
            prop_assert_eq!((ids.first(), ids.last()), (map.keys().next().copied(), map.keys().next_back().copied()));
            for seq in 0..21 {
                prop_assert_eq!(ids.contains(seq), map.contains_key(&seq));
            }
            prop_assert!(!ids.has("x") && map.values().all(|id| ids.has(id)));
        }
    }
}
