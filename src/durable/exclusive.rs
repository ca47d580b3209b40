//! Locks where the file system has no kernel locks (`flock`): a file beside the lock's that only one process can make.
//!
//! It names its holder and the boot, so that what a kill or a power failure left is known and removed.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::root::{Root, create_in, is_one_of};
use super::temporary::{is_dead, temporary_prefix};
use crate::os::processes::boot_id;

/// Older than this, a file that does not name its holder was left by one that was killed before it could write.
const UNNAMED: Duration = Duration::from_secs(10);

/// Whether the file system has no kernel locks.
pub(crate) fn has_no_locks(error: &io::Error) -> bool {
    is_one_of(
        error,
        &[Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL, Errno::NOLCK],
    )
}

/// A lock that is held; removed when dropped.
#[derive(Debug)]
pub(super) struct Exclusive {
    root: Root,
    path: PathBuf,
}

impl Exclusive {
    /// Takes the lock whose kernel lock would be on the file `lock`; `None` while another holder lives.
    pub(super) fn take(root: &Root, lock: &Path) -> io::Result<Option<Self>> {
        let path = beside(lock);
        let (dir, name) = root.parent(&path)?;
        if is_held(root, &path)? {
            return Ok(None);
        }
        let mut file = match create_in(&dir, name, 0o600) {
            Ok(file) => file,
            Err(Errno::EXIST) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let taken = Self {
            root: root.clone(),
            path,
        };
        writeln!(
            file,
            "{} {}",
            std::process::id(),
            boot_id().unwrap_or_default()
        )?;
        Ok(Some(taken))
    }

    /// Whether a process holds it.
    pub(super) fn is_taken(root: &Root, lock: &Path) -> io::Result<bool> {
        is_held(root, &beside(lock))
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        if let Err(error) = self.root.remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the lock's file stays");
        }
    }
}

fn beside(lock: &Path) -> PathBuf {
    let mut name = lock.file_name().unwrap_or_default().to_owned();
    name.push(".held");
    lock.with_file_name(name)
}

/// Whether the file of a lock is there and its holder lives; one that a dead holder left is removed.
fn is_held(root: &Root, path: &Path) -> io::Result<bool> {
    let Some(found) = root.read_present(path)? else {
        return Ok(false);
    };
    if !is_left(root, path, &found)? {
        return Ok(true);
    }
    // Another process may have removed it, and taken the lock, since it was read.
    let aside = path.with_file_name(format!("{}lock", temporary_prefix()));
    match root.rename(path, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        renamed => renamed?,
    }
    if root.read_present(&aside)?.as_deref() != Some(&found) {
        root.rename(&aside, path)?;
        return Ok(true);
    }
    root.remove_file(&aside).map(|()| false)
}

/// Whether whoever made the file is gone.
fn is_left(root: &Root, path: &Path, content: &[u8]) -> io::Result<bool> {
    let text = String::from_utf8_lossy(content);
    let named = text
        .strip_suffix('\n')
        .and_then(|line| line.split_once(' '));
    if let Some((pid, boot)) = named.and_then(|(pid, boot)| Some((pid.parse::<i32>().ok()?, boot)))
    {
        let is_own = u32::try_from(pid) == Ok(std::process::id());
        return Ok(boot != boot_id().unwrap_or_default() || !is_own && is_dead(pid));
    }
    let made = match root.open(path).and_then(|file| file.metadata()?.modified()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        made => made?,
    };
    Ok(SystemTime::now()
        .duration_since(made)
        .is_ok_and(|age| age > UNNAMED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_what_a_living_process_holds_locks_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::own(folder.path());
        let (lock, held) = (folder.path().join("lock"), folder.path().join("lock.held"));
        let first = Exclusive::take(&root, &lock).unwrap().unwrap();
        assert!(
            Exclusive::take(&root, &lock).unwrap().is_none()
                && Exclusive::is_taken(&root, &lock).unwrap()
        );
        drop(first);
        assert!(!held.exists() && !Exclusive::is_taken(&root, &lock).unwrap());
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        for left in [
            format!("{} {}\n", dead.id(), boot_id().unwrap_or_default()),
            format!("{} another boot\n", std::process::id()),
        ] {
            fs::write(&held, left).unwrap();
            drop(Exclusive::take(&root, &lock).unwrap().unwrap());
        }
        // One that is being written.
        fs::write(&held, "").unwrap();
        assert!(Exclusive::take(&root, &lock).unwrap().is_none());
        fs::File::open(&held)
            .unwrap()
            .set_modified(SystemTime::now() - 2 * UNNAMED)
            .unwrap();
        drop(Exclusive::take(&root, &lock).unwrap().unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
