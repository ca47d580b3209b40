//! Detects that packs came or went since the list of them was read.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::git::base::file_time::margin;

/// The folder of packs as it was at a moment.
#[derive(Debug)]
pub(super) struct PackFolder {
    path: PathBuf,
    /// When it had changed last, in nanoseconds since the epoch; `None` where there was none.
    changed: Option<i64>,
    /// Whether a change after the moment shows in that time.
    settled: bool,
}

impl PackFolder {
    /// Looks at the packs of a folder of objects.
    pub(super) fn of(objects: &Path) -> Self {
        let path = objects.join("pack");
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_nanos());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let changed = changed(&path);
        Self {
            path,
            changed,
            settled: changed.is_none_or(|changed| changed < now.saturating_sub(margin(changed))),
        }
    }

    /// Whether every pack that was there is still there, and no other.
    pub(super) fn is_unchanged(&self) -> bool {
        self.settled && changed(&self.path) == self.changed
    }
}

/// The names of the packs in a folder of objects.
pub(super) fn names(objects: &Path) -> BTreeSet<OsString> {
    let entries = fs::read_dir(objects.join("pack"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.file_name())
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "pack"))
        .collect()
}

fn changed(path: &Path) -> Option<i64> {
    let found = fs::metadata(path).ok()?;
    Some(
        found
            .mtime()
            .saturating_mul(1_000_000_000)
            .saturating_add(found.mtime_nsec()),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_change_is_seen_even_within_one_tick() {
        let folder = tempfile::tempdir().unwrap();
        assert!(PackFolder::of(folder.path()).is_unchanged());
        let pack = folder.path().join("pack");
        fs::create_dir(&pack).unwrap();
        assert!(
            !PackFolder::of(folder.path()).is_unchanged(),
            "it is too young to tell"
        );
        let old = SystemTime::now() - Duration::from_secs(10);
        fs::File::open(&pack).unwrap().set_modified(old).unwrap();
        let before = PackFolder::of(folder.path());
        assert!(before.is_unchanged());
        fs::write(pack.join("new"), "").unwrap();
        assert!(!before.is_unchanged());
    }
}
