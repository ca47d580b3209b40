//! Whether the object database can be relied on: damage that was found in it, and a concurrent `git gc`.
//!
//! From then on that damage is found, neither a worktree's cache nor the user's index is believed: its next capture reads every
//! object that it does not write, and writes again what is damaged or missing and still lies in the work tree. The first checkpoint
//! of the worktree after that ends it. The note is not synced: whoever finds the damage once more writes it again.
//!
//! `git gc` removes objects that nothing refers to, and says so in `gc.pid`, also when `git maintenance` calls it. A
//! `git prune --expire=now` by itself says nothing: git itself advises against it while anything is written.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::repository::{OWN, Repo};
use crate::durable::{Kind, Root};
use crate::git::base::error::{At as _, Result, present};

const FILE: &str = "doubt";
/// Beside it, for all worktrees: damage was found, and nothing since then says that all checkpoints are whole.
const FOUND: &str = "damage-found";

impl Repo {
    /// Notes for every worktree of the repository that objects are damaged.
    pub(crate) fn mark_odb_suspect(&self) -> Result<()> {
        let worktrees = self.common_dir().join("worktrees");
        let mut roots = vec![self.shared().clone()];
        let linked = present(&worktrees, self.shared().list(&worktrees))?;
        for (name, kind) in linked.into_iter().flatten() {
            if kind == Kind::Directory {
                roots.push(self.shared().inside(&worktrees.join(name)));
            }
        }
        let found = self.shared_folder().join(FOUND);
        if self.shared().has(Path::new(OWN)).at(&found)? {
            self.shared().create(&found).at(&found)?;
        }
        for root in roots {
            let path = note(&root);
            // One without a folder of ours was never captured: it has nothing to be believed.
            if root.has(Path::new(OWN)).at(&path)? {
                root.create(&path).at(&path)?;
            }
        }
        Ok(())
    }

    /// Whether damage was found in a checkpoint of any worktree, and [`end_damage`](Repo::end_damage) did not end that.
    pub(crate) fn is_damage_known(&self) -> bool {
        !matches!(
            self.shared().kind(&self.shared_folder().join(FOUND)),
            Ok(None)
        )
    }

    /// All checkpoints were read, and are whole. A note that stays costs the reading once more.
    pub(crate) fn end_damage(&self) {
        let path = self.shared_folder().join(FOUND);
        if let Err(error) = present(&path, self.shared().remove_file(&path)) {
            tracing::debug!(%error, "{} stays", path.display());
        }
    }
}

/// Whether damage was found since the last checkpoint of the worktree whose git folder this is.
pub(in crate::git) fn is_suspect(own: &Root) -> bool {
    !matches!(own.kind(&note(own)), Ok(None))
}

/// Ends it, after a capture that began with it was recorded.
pub(in crate::git) fn clear(own: &Root) -> Result<()> {
    present(&note(own), own.remove_file(&note(own))).map(drop)
}

fn note(own: &Root) -> PathBuf {
    own.path().join(OWN).join(FILE)
}

/// git's own limit: a note that is older is of no collection any more.
const STALE: Duration = Duration::from_secs(12 * 3600);

/// Whether a `git gc` says that it is under way, judged as git does. One that had ended before this call has removed by
/// then what it removes; one that begins after it sees every reference that was set before.
pub(in crate::git) fn is_gc_announced(common: &Path) -> bool {
    let Ok(file) = File::open(common.join("gc.pid")) else {
        return false;
    };
    let age = file
        .metadata()
        .and_then(|found| found.modified())
        .ok()
        .and_then(|at| at.elapsed().ok());
    let mut text = String::new();
    if age.is_some_and(|age| age > STALE) || file.take(1024).read_to_string(&mut text).is_err() {
        return false;
    }
    let mut words = text.split_ascii_whitespace();
    let (Some(pid), Some(host)) = (words.next().and_then(|pid| pid.parse().ok()), words.next())
    else {
        return false;
    };
    let ours = rustix::system::uname();
    ours.nodename().to_bytes() != host.as_bytes() || is_alive(pid)
}

fn is_alive(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid.max(0)) else {
        return false;
    };
    matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_collection_is_announced_as_long_as_its_process_lives() {
        let folder = tempfile::tempdir().unwrap();
        let announced = |text: &str| {
            fs::write(folder.path().join("gc.pid"), text).unwrap();
            is_gc_announced(folder.path())
        };
        let uname = rustix::system::uname();
        let (host, own) = (uname.nodename().to_str().unwrap(), std::process::id());
        assert!(!is_gc_announced(folder.path()));
        assert!(announced(&format!("{own} {host}")));
        // No system gives such a number to a process.
        assert!(!announced(&format!("{} {host}", i32::MAX)));
        assert!(announced(&format!("{} elsewhere.{host}", i32::MAX)));
        for damaged in ["", "x", "12", &format!("-1 {host}"), &format!("0 {host}")] {
            assert!(!announced(damaged), "{damaged}");
        }
        assert!(announced(&format!("{own} {host}")));
        let old = std::time::SystemTime::now() - STALE - Duration::from_secs(60);
        File::open(folder.path().join("gc.pid"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        assert!(!is_gc_announced(folder.path()));
    }
}
