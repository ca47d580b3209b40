//! When files were last modified, as far as a manifest keeps it.
//!
//! A tree keeps no times, and a list of all of them would be written anew with every checkpoint. Of a small work tree all
//! are kept: in the order of the paths, each as the difference to the one before, they take next to nothing. Of a
//! larger one those of the files that are not as the last capture found them. What is known of the others is what the
//! last capture of the worktree saw, as long as the content is still that.

use super::tree_builder::stored;
use crate::git::worktree::cache::flag;
use crate::git::worktree::scan::Scan;
use crate::model::manifest::{FileTimes, PathTime};
use crate::model::time::Timestamp;

/// The most times that a manifest keeps.
const MAX_TIMES: usize = 1000;

/// The times of a capture, once all that changed was read. Of more than are kept it is the latest.
pub(in crate::git) fn times(scan: &Scan) -> FileTimes {
    let all = || {
        scan.folders
            .iter()
            .flat_map(|folder| stored(scan, folder).map(move |(item, _)| (folder, item)))
    };
    let is_small = all().nth(MAX_TIMES).is_none();
    let mut times: Vec<_> = all()
        .filter(|(_, item)| is_small || item.flags & flag::SAME == 0)
        .collect();
    if times.len() > MAX_TIMES {
        times.select_nth_unstable_by_key(MAX_TIMES, |(_, item)| std::cmp::Reverse(item.stat.mtime));
        times.truncate(MAX_TIMES);
    }
    let named = times.into_iter().map(|(folder, item)| {
        let modified = Timestamp::from_millis(millis(item.stat.mtime));
        PathTime {
            path: folder.path.join(scan.name(item)),
            modified,
        }
    });
    let mut named: Vec<PathTime> = named.collect();
    named.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    if !is_small {
        return FileTimes::Some(named);
    }
    let mut before = 0;
    let steps = named
        .iter()
        .map(|one| one.modified.millis() - std::mem::replace(&mut before, one.modified.millis()));
    FileTimes::All(steps.collect())
}

pub(super) fn millis(nanos: i64) -> i64 {
    nanos.div_euclid(1_000_000)
}
