//! Whose state a state directory holds, as a type: ours, or brought by a clone.

/// Whose the state is that a state directory holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// It was made here, or taken over, or there is nothing yet.
    #[default]
    Ours,
    /// It came from elsewhere.
    Foreign(Foreign),
}

/// Why state counts as somebody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// Git tracks it, and it is not what was recorded here.
    Tracked,
    /// Its id is not known here, or it has none.
    UnknownId,
}

impl Foreign {
    /// Its word in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tracked => "tracked_by_git",
            Self::UnknownId => "unknown_id",
        }
    }
}

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tracked => "git tracks it, and it is not what was recorded here",
            Self::UnknownId => "it was not made here",
        })
    }
}
