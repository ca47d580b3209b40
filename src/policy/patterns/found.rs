//! What a pattern found.

use std::ops::Range;

/// One match, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// All of it.
    pub whole: Range<usize>,
    groups: Vec<Option<Range<usize>>>,
}

impl Found {
    /// A match with so many groups, all of it counted.
    pub(super) fn of(groups: usize, group: impl Fn(usize) -> Option<Range<usize>>) -> Option<Self> {
        Some(Self {
            whole: group(0)?,
            groups: (1..groups).map(group).collect(),
        })
    }

    /// What the group with this number matched (the first is 1), where there is one and it took part.
    pub(crate) fn group(&self, number: usize) -> Option<Range<usize>> {
        self.groups.get(number.checked_sub(1)?)?.clone()
    }

    /// What the first group that took part matched.
    pub(crate) fn first_group(&self) -> Option<Range<usize>> {
        self.groups.iter().flatten().next().cloned()
    }
}
