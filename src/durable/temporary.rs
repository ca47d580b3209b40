//! Temporary files: named after their process, so that what a dead one left is known from what is being written.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;

use parking_lot::Mutex;
use rustix::fs::FileType;
use tempfile::TempDir;

use super::root::Root;

/// What their names begin with; then the process id, a dash, and letters, digits or dots.
const PREFIX: &str = ".recover-tmp-";

/// What the names of this process's temporary files begin with.
pub(crate) fn temporary_prefix() -> String {
    format!("{PREFIX}{}-", std::process::id())
}

/// Whether a name is that of a temporary file of some process.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    owner(name).is_some()
}

/// Whether a name is that of a temporary file that nobody writes any more. This process itself counts as gone: it holds
/// none between operations.
pub(crate) fn is_left_over(name: &[u8]) -> bool {
    owner(name).is_some_and(is_dead)
}

fn owner(name: &[u8]) -> Option<i32> {
    let (pid, rest) = std::str::from_utf8(name)
        .ok()?
        .strip_prefix(PREFIX)?
        .split_once('-')?;
    let plain = !rest.is_empty()
        && rest
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    pid.parse().ok().filter(|_| plain)
}

pub(super) fn is_dead(pid: i32) -> bool {
    let Some(id) = rustix::process::Pid::from_raw(pid) else {
        return true;
    };
    id == rustix::process::getpid()
        || rustix::process::test_kill_process(id) == Err(rustix::io::Errno::SRCH)
        || has_ended(pid)
}

/// Whether a process has ended and only waits for its parent to notice, where the system reports it.
fn has_ended(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The program's name, in parentheses, may hold anything.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

impl Root {
    /// Removes what dead processes left in a folder: once in the life of a process, for each process that writes there
    /// looks. What cannot be removed now is tried again another time.
    pub fn reap(&self, folder: &Path) {
        static LOOKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        if LOOKED.lock().insert(self.full(folder)) {
            self.remove_left_over(folder, false);
        }
    }

    /// Removes the temporary files of dead processes below `folder`, at any depth. Returns how many.
    pub fn reap_below(&self, folder: &Path) -> usize {
        self.remove_left_over(folder, true)
    }

    fn remove_left_over(&self, folder: &Path, below: bool) -> usize {
        let remove = |(name, kind): (OsString, FileType)| {
            let path = folder.join(&name);
            match kind {
                FileType::Directory if is_left_over(name.as_encoded_bytes()) => {
                    usize::from(self.remove_dir_all(&path).is_ok())
                }
                FileType::Directory if below => self.remove_left_over(&path, true),
                _ => usize::from(
                    is_left_over(name.as_encoded_bytes()) && self.remove_file(&path).is_ok(),
                ),
            }
        };
        self.list(folder)
            .unwrap_or_default()
            .into_iter()
            .map(remove)
            .sum()
    }
}

/// [`Root::reap`] for a folder that the user named.
pub(crate) fn reap(folder: &Path) {
    Root::shared(folder).reap(Path::new(""));
}

/// A folder in the place for temporary files, for what is only tried out: it goes when this is dropped.
///
/// Others share that place who are not seen from here, as the containers of a machine: by a kernel lock they know that it is
/// in use.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    /// Released after the folder is gone; `None` where the file system has no locks, so that nobody else gets one either.
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// A new one; what killed processes left of theirs goes now.
    pub(crate) fn new() -> io::Result<Self> {
        static REAPED: Once = Once::new();
        let place = std::env::temp_dir();
        REAPED.call_once(|| {
            let count = reap_folders(&place);
            tracing::debug!(count, "temporary folders of dead processes were removed");
        });
        Self::new_in(&place)
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        loop {
            let folder = tempfile::Builder::new()
                .prefix(&temporary_prefix())
                .tempdir_in(place)?;
            let open = File::open(folder.path())?;
            match open.try_lock() {
                // Whoever reaps may have had it for a moment, and removed it.
                Ok(()) if Root::shared(place).names(folder.path(), &open)? => {
                    return Ok(Self {
                        folder,
                        _lock: Some(open),
                    });
                }
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    tracing::debug!(%error, "temporary folders cannot be locked here");
                    return Ok(Self {
                        folder,
                        _lock: None,
                    });
                }
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the temporary folders in a place that everybody shares that nobody uses any more: those of this user that can be
/// locked. What cannot be removed now is tried again another time. Returns how many.
fn reap_folders(place: &Path) -> usize {
    let root = Root::shared(place);
    let reap = |name: &OsStr| -> io::Result<()> {
        let path = Path::new(name);
        let open = File::from(root.folder(path)?);
        if rustix::fs::fstat(&open)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        open.try_lock()?;
        root.remove_dir_all(path)
    };
    let left = |(name, kind): &(OsString, FileType)| {
        *kind == FileType::Directory && is_left_over(name.as_encoded_bytes()) && reap(name).is_ok()
    };
    root.list(Path::new(""))
        .unwrap_or_default()
        .iter()
        .filter(|found| left(found))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let left = format!("{PREFIX}{}-aB3", dead.id());
        let living = format!("{PREFIX}1-aB3");
        for name in [
            left.as_str(),
            living.as_str(),
            ".recover-tmp-x",
            ".recover-tmp-1-",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(Root::shared(folder.path()).reap_below(Path::new("")), 1);
        assert!(!folder.path().join(left).exists() && folder.path().join(living).exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    // Whoever has a folder may be in another container, where it has a process id that nobody has here.
    #[test]
    fn a_folder_that_is_in_use_stays_whoever_is_dead() {
        let place = tempfile::tempdir().unwrap();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let [used, left, strange] = ["used", "left", "strange"].map(|name| {
            let path = place.path().join(format!("{PREFIX}{}-{name}", dead.id()));
            fs::create_dir_all(path.join("git")).unwrap();
            path
        });
        let lock = File::open(&used).unwrap();
        lock.try_lock().unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(&strange, Some(65_534), None).unwrap();
        }
        assert_eq!(reap_folders(place.path()), 1 + usize::from(!is_root));
        assert!(used.join("git").exists() && !left.exists() && strange.exists() == is_root);
        lock.unlock().unwrap();
        assert_eq!(reap_folders(place.path()), 1);
        let own = TemporaryFolder::new_in(place.path()).unwrap();
        assert_eq!(reap_folders(place.path()), 0);
        let path = own.path().to_owned();
        drop(own);
        assert!(!path.exists());
    }

    #[test]
    fn who_has_ended_and_was_not_waited_for_is_dead() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let name = format!("{PREFIX}{}-a", child.id());
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while Path::new("/proc/self").exists() && !is_left_over(name.as_bytes()) {
            assert!(std::time::Instant::now() < end, "it is a zombie by now");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.wait().unwrap();
    }
}
