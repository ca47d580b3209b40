//! Kernel locks with a bounded wait and a holder's name.
//!
//! Where the file system has no kernel locks (`flock`), a file beside the lock's that only one process can make is the lock. It
//! names its holder and the boot, so that what a kill or a power failure left is known and removed.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use std::{io, thread};

use rustix::io::Errno;

use super::root::{Root, create_in, is_one_of, present};
use super::temporary::{is_dead, temporary_prefix};
use crate::os::processes::boot_id;

/// How often the wait begins anew because the lock was taken by another process meanwhile.
const LONGEST_QUEUE: u32 = 24;

/// How long to sleep between two tries, and after a long wait.
const POLL: Duration = Duration::from_millis(5);
const POLL_AFTER_LONG: Duration = Duration::from_millis(2);
/// How long that is.
const LONG: Duration = Duration::from_millis(500);

/// More than any holder's line: the kernel allows no longer arguments.
const LONGEST_LINE: u64 = 2 << 20;

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it (exit 11).
    #[error("{} is locked by {holder}", file.display())]
    Held {
        /// The lock file.
        file: PathBuf,
        /// Who holds it: pid and command, as written by the holder.
        holder: String,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {}", file.display())]
    Io {
        /// The lock file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<LockError> for io::Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Io { source, .. } => source,
            held @ LockError::Held { .. } => Self::other(held.to_string()),
        }
    }
}

/// A file whose lock ends with this value. Closing it is not enough: a program that another thread is starting has a copy of
/// it until it is executed.
#[derive(Debug)]
pub(crate) struct Locked(pub(crate) File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Without a kernel lock there is nothing to give back.
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "the lock goes with its file");
        }
    }
}

/// An exclusive lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct FileLock {
    file: Locked,
    /// The lock itself, where the file system has no kernel locks.
    exclusive: Option<Box<Exclusive>>,
    /// The file and the way to it, where it is removed with the lock.
    passing: Option<(Root, PathBuf)>,
}

impl FileLock {
    /// Takes the lock, waiting up to `timeout`; writes `pid` and the command into the file for those who wait.
    pub fn acquire(root: &Root, path: &Path, timeout: Duration) -> Result<Self, LockError> {
        let file = root.open_or_create(path).map_err(failed(root, path))?;
        let lock = Self::wait(file, root, path, timeout, false)?;
        // The name is a courtesy: a full disk must not make a lock that is held look like one that is not.
        if let Err(error) = name_holder(&lock.file.0) {
            tracing::debug!(%error, "the lock's holder could not be written down");
        }
        Ok(lock)
    }

    /// Takes the lock like [`Self::acquire`]; the file goes with it. For names of which there are ever new ones.
    pub fn acquire_passing(root: &Root, path: &Path, timeout: Duration) -> Result<Self, LockError> {
        loop {
            let mut lock = Self::acquire(root, path, timeout)?;
            // Whoever had it before removed the file that was waited for: that one locks out nobody any more.
            if root.names(path, &lock.file.0).map_err(failed(root, path))? {
                lock.passing = Some((root.clone(), path.to_owned()));
                return Ok(lock);
            }
        }
    }

    /// Whether the file system has no kernel locks, so that a file beside the lock's names its holder.
    pub fn is_without_kernel(&self) -> bool {
        self.exclusive.is_some()
    }

    /// Removes the file of a passing lock that nobody holds: what a kill left.
    pub fn remove_if_free(root: &Root, path: &Path) -> io::Result<()> {
        let Some(file) = present(root.open(path))? else {
            return Ok(());
        };
        match file.try_lock() {
            Ok(()) => remove(&file, root, path),
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                match Exclusive::take(root, path)? {
                    Some(_held) => remove(&file, root, path),
                    None => Ok(()),
                }
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the lock like [`Self::acquire`] and writes nothing, for whoever must leave no trace. Where the file is not
    /// there, nobody holds it and nothing is made: `None`.
    pub fn acquire_unnoticed(
        root: &Root,
        path: &Path,
        timeout: Duration,
    ) -> Result<Option<Self>, LockError> {
        let file = present(root.open(path)).map_err(failed(root, path))?;
        file.map(|file| Self::wait(file, root, path, timeout, true))
            .transpose()
    }

    /// Waits for the lock up to `timeout`, and on as long as it goes from hand to hand: where many take turns, none of them is
    /// turned away, and only one that holds it for long makes others give up. A process that gives it back and takes it again
    /// does not hold it for long: each time it is taken, the file is written to.
    ///
    /// It is tried again and again rather than queued for: a queue leaves the lock unused until the one whose turn it is has
    /// woken up, which on a busy machine takes longer than what the lock is held for. Who has waited for long tries more
    /// often, so that nobody is always too late.
    ///
    /// For who leaves no trace (`unnoticed`) the lock is only waited for where there are no kernel locks.
    fn wait(
        file: File,
        root: &Root,
        path: &Path,
        timeout: Duration,
        unnoticed: bool,
    ) -> Result<Self, LockError> {
        let mut lock = Self {
            file: Locked(file),
            exclusive: None,
            passing: None,
        };
        let arrived = Instant::now();
        let mut begun = arrived;
        let mut holder: Option<Holder> = None;
        let mut turns = 0;
        loop {
            match lock.file.0.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(error)) if has_no_locks(&error) && unnoticed => {
                    if !Exclusive::is_taken(root, path).map_err(failed(root, path))? {
                        return Ok(lock);
                    }
                }
                Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                    if let Some(held) = Exclusive::take(root, path).map_err(failed(root, path))? {
                        lock.exclusive = Some(Box::new(held));
                        return Ok(lock);
                    }
                }
                Err(TryLockError::Error(source)) => return Err(failed(root, path)(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            if begun.elapsed() < timeout {
                // Who has it now, to know later whether another process does.
                holder.get_or_insert_with(|| Holder::of(&lock.file.0));
                let pause = if arrived.elapsed() < LONG {
                    POLL
                } else {
                    POLL_AFTER_LONG
                };
                thread::sleep(pause.min(timeout.saturating_sub(begun.elapsed())));
                continue;
            }
            let now = Holder::of(&lock.file.0);
            if turns == LONGEST_QUEUE || holder.as_ref().is_none_or(|before| *before == now) {
                return Err(LockError::Held {
                    file: root.full(path),
                    holder: now.name,
                });
            }
            turns += 1;
            begun = Instant::now();
            holder = Some(now);
        }
    }
}

/// A closure for `map_err` on errors of a lock's file.
fn failed(root: &Root, path: &Path) -> impl Fn(io::Error) -> LockError {
    let file = root.full(path);
    move |source| LockError::Io {
        file: file.clone(),
        source,
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Some((root, path)) = &self.passing
            && let Err(error) = remove(&self.file.0, root, path)
        {
            tracing::debug!(%error, path = %path.display(), "the lock's file stays");
        }
    }
}

/// Removes the file that is locked, while it is.
fn remove(file: &File, root: &Root, path: &Path) -> io::Result<()> {
    if root.names(path, file)? {
        root.remove_file(path)
    } else {
        Ok(())
    }
}

/// The holder's line replaces the one before. The file is not emptied first: to free its block and to get another takes
/// a file system longer than all the rest of the lock.
///
/// What is no line of ours is not ours to write to: it serves as a lock as it is.
fn name_holder(file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    if !is_ours(file, found.len())? {
        return Ok(());
    }
    let command: Vec<_> = std::env::args_os()
        .take(6)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    let line = format!("{} {}", std::process::id(), command.join(" ")).replace('\n', " ") + "\n";
    file.write_all_at(line.as_bytes(), 0)?;
    let length = line.len() as u64;
    if found.len() > length {
        file.set_len(length)
    } else {
        Ok(())
    }
}

/// Whether a file of this length holds nothing, or no more than the line of a holder: a process id and a command. A holder
/// that was cut off may have left its line over the end of a longer one.
fn is_ours(file: &File, length: u64) -> io::Result<bool> {
    let begin = beginning(file, 16)?;
    let digits = begin
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    Ok(length == 0 || (digits > 0 && begin.get(digits) == Some(&b' ') && length <= LONGEST_LINE))
}

/// Who has the lock.
#[derive(PartialEq, Eq)]
struct Holder {
    name: String,
    /// When it was taken, where it was written down. The same process may have given it back and taken it again.
    since: Option<SystemTime>,
}

impl Holder {
    fn of(file: &File) -> Self {
        let text = beginning(file, 400).unwrap_or_default();
        let name = match String::from_utf8_lossy(&text)
            .lines()
            .next()
            .unwrap_or_default()
            .split_once(' ')
        {
            Some((pid, command)) => format!("pid {pid} ({command})"),
            None => "another process".to_owned(),
        };
        Self {
            name,
            since: file.metadata().and_then(|found| found.modified()).ok(),
        }
    }
}

/// Up to so many bytes of the file's beginning.
fn beginning(file: &File, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let length = file.read_at(&mut bytes, 0)?;
    bytes.truncate(length);
    Ok(bytes)
}

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

    #[test]
    fn a_second_holder_waits_then_learns_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (Root::own(folder.path()), folder.path().join("lock"));
        let held = FileLock::acquire(&root, &path, Duration::ZERO).unwrap();
        let refused = FileLock::acquire(&root, &path, Duration::from_millis(20)).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains(&format!("pid {}", std::process::id())),
            "{refused}"
        );
        // As a program has it that another thread is starting.
        let _copy = held.file.0.try_clone().unwrap();
        drop(held);
        FileLock::acquire(&root, &path, Duration::ZERO).unwrap();
    }

    // Whoever waits longer than others comes to its turn, however many go on taking it.
    #[test]
    fn nobody_is_always_too_late() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (Root::own(folder.path()), folder.path().join("lock"));
        let served = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        let lock =
                            FileLock::acquire(&root, &path, Duration::from_secs(60)).unwrap();
                        std::thread::sleep(Duration::from_millis(5));
                        drop(lock);
                    }
                    served.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                });
            }
        });
        assert_eq!(served.into_inner(), 8);
    }

    // One process that takes the lock again and again, as a supervisor does for each event, does not turn others away.
    #[test]
    fn a_holder_that_takes_turns_with_itself_turns_nobody_away() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (Root::own(folder.path()), folder.path().join("lock"));
        let held = FileLock::acquire(&root, &path, Duration::ZERO).unwrap();
        std::thread::scope(|scope| {
            let waiter =
                scope.spawn(|| FileLock::acquire(&root, &path, Duration::from_millis(200)));
            let begun = Instant::now();
            let mut held = Some(held);
            while begun.elapsed() < Duration::from_millis(600) && !waiter.is_finished() {
                std::thread::sleep(Duration::from_millis(50));
                drop(held.take());
                held = FileLock::acquire(&root, &path, Duration::ZERO).ok();
            }
            drop(held);
            waiter.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_lock_that_is_taken_unnoticed_holds_and_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (Root::own(folder.path()), folder.path().join("lock"));
        assert!(
            FileLock::acquire_unnoticed(&root, &path, Duration::ZERO)
                .unwrap()
                .is_none()
        );
        assert!(!path.exists());
        std::fs::write(&path, "1 somebody\n").unwrap();
        let held = FileLock::acquire_unnoticed(&root, &path, Duration::ZERO).unwrap();
        assert!(held.is_some());
        FileLock::acquire(&root, &path, Duration::ZERO).unwrap_err();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1 somebody\n");
        drop(held);
        let _held = FileLock::acquire(&root, &path, Duration::ZERO).unwrap();
        FileLock::acquire_unnoticed(&root, &path, Duration::ZERO).unwrap_err();
    }

    // Of many that want it, one has it at a time, however often its file goes.
    #[test]
    fn a_passing_lock_goes_with_its_file_and_locks_all_the_same() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (Root::own(folder.path()), folder.path().join("lock"));
        let (inside, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let lock = FileLock::acquire_passing(&root, &path, Duration::from_secs(60))
                            .unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        FileLock::remove_if_free(&root, &path).unwrap();
                        taken.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        drop(lock);
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), 400);
        assert!(!path.exists());
        std::fs::write(&path, "1 somebody who was killed\n").unwrap();
        FileLock::remove_if_free(&root, &path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn only_the_present_holder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (Root::own(folder.path()), folder.path().join("lock"));
        std::fs::write(&path, format!("1 {}\nmore\n", "long ".repeat(200))).unwrap();
        let _held = FileLock::acquire(&root, &path, Duration::ZERO).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with(&format!("{} ", std::process::id())) && text.ends_with('\n'),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn what_is_no_line_of_a_holder_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::own(folder.path());
        let (path, other) = (folder.path().join("lock"), folder.path().join("other"));
        for text in ["export PATH=/bin\n", "12", "-3 x", " 7 x"] {
            std::fs::write(&path, text).unwrap();
            let held = FileLock::acquire(&root, &path, Duration::ZERO).unwrap();
            FileLock::acquire(&root, &path, Duration::ZERO).unwrap_err();
            drop(held);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::write(&other, "1 a\n").unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&other, &path).unwrap();
        let refused = FileLock::acquire(&root, &path, Duration::ZERO).unwrap_err();
        assert!(
            matches!(refused, LockError::Io { source, .. } if source.to_string().contains("another name"))
        );
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "1 a\n");
    }
}

#[cfg(test)]
mod exclusive_tests {
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
