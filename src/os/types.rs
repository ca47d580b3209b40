//! What the functions of every system return.

/// What is known of a path beside its `stat`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    /// Whether something is mounted there, also of the same file system; `None` where that is not known.
    pub(crate) is_mount: Option<bool>,
    /// Immutable or append-only.
    pub(crate) is_fixed: bool,
}

/// A row of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// When it started, in the system's own unit; grows with time until the machine restarts.
    pub(crate) start_time: u64,
    /// Whether it has ended and its parent has not waited for it yet.
    pub(crate) zombie: bool,
}
