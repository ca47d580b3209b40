//! The mark by which processes of an attempt are recognised.

use std::path::Path;

use crate::process;

/// Whether this process is part of an attempt that is about this state directory or this work tree, by its marks alone.
pub(in crate::engine) fn is_part_of_attempt(state_dir: &Path, worktree: &Path) -> bool {
    let [state, tree] = numbers(state_dir, worktree);
    let is_here =
        |marked: &process::Marked| marked.mark.places[0] == state || marked.mark.places[1] == tree;
    process::marks().iter().any(is_here)
}

pub(in crate::engine) fn numbers(state_dir: &Path, worktree: &Path) -> [u32; 2] {
    use std::os::unix::ffi::OsStrExt;
    [state_dir, worktree].map(|place| {
        let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
        crc32fast::hash(place.as_os_str().as_bytes())
    })
}
