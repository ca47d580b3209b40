//! What is wrong with a state that was fetched.

/// What is wrong with a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A newer version wrote it (15).
    Newer(String),
    /// It is damaged, or made up (12).
    Damaged(String),
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Newer(what) | Self::Damaged(what)) = self;
        f.write_str(what)
    }
}
