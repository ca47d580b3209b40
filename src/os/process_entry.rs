//! A row of the process table.

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
