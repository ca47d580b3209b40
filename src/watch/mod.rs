//! Notices that something in a set of folders changes, as fast as the system reports.
//!
//! What has changed is the caller's to find out by looking: an event only says that a look is worth it. Events that are
//! merged, that come twice or in another order do no harm then, and one that is lost does none for longer than until the
//! caller's next look without a reason. So nothing is made of an event beyond that here, and no event is kept.
//!
//! Folders are watched one by one rather than recursively: those that are ignored would use up the system's watches,
//! and what is built in them would report changes that do not count.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{ModifyKind, RemoveKind};
use parking_lot::Mutex;

use crate::os::network_file_system;
use notify::{
    Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
};

/// The system's reports of changes, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Watcher {
    system: Option<RecommendedWatcher>,
    /// Why there are no reports.
    unavailable: Option<String>,
    watched: BTreeSet<PathBuf>,
    /// Paths that went away: what is there now under such a name is another folder.
    gone: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Watcher {
    /// Has `notice` called, from another thread, whenever something below a folder that is [followed](Self::follow)
    /// changes; `root` is where they are. Where the system does not report it, [`Self::unavailable`] says why.
    pub(crate) fn new(root: &Path, notice: impl Fn() + Send + 'static) -> Self {
        let gone = Arc::default();
        let unwatched = |reason: String| Self {
            system: None,
            unavailable: Some(reason),
            watched: BTreeSet::new(),
            gone: Arc::default(),
        };
        if let Some(name) = network_file_system(root) {
            return unwatched(format!("{name} does not report what others change"));
        }
        match RecommendedWatcher::new(handler(Arc::clone(&gone), notice), Config::default()) {
            Ok(system) => Self {
                system: Some(system),
                unavailable: None,
                watched: BTreeSet::new(),
                gone,
            },
            Err(error) => unwatched(reason_of(&error)),
        }
    }

    /// Why the system does not report changes; `None` while it does.
    pub(crate) fn unavailable(&self) -> Option<&str> {
        self.unavailable.as_deref()
    }

    /// Watches exactly these folders from now on. Answers whether some were not watched before: what changed in them
    /// until now was not reported.
    pub(crate) fn follow(&mut self, folders: BTreeSet<PathBuf>) -> bool {
        let Some(system) = &mut self.system else {
            return false;
        };
        let gone = std::mem::take(&mut *self.gone.lock());
        let still = |path: &PathBuf| !path.ancestors().any(|folder| gone.contains(folder));
        for old in self
            .watched
            .iter()
            .filter(|path| !folders.contains(*path) || !still(path))
        {
            // It may be gone, and its watch with it.
            let _ = system.unwatch(old);
        }
        self.watched
            .retain(|path| folders.contains(path) && still(path));
        let mut added = false;
        for folder in folders {
            if self.watched.contains(&folder) {
                continue;
            }
            match system.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => added |= self.watched.insert(folder),
                Err(error) if has_no_more(&error) => {
                    self.unavailable = Some(reason_of(&error));
                    self.system = None;
                    self.watched.clear();
                    return false;
                }
                // It went away in this moment, or must not be read: the next look says which.
                Err(error) => tracing::debug!(%error, "a folder is not watched"),
            }
        }
        added
    }
}

/// What the system's thread does with an event.
fn handler(
    gone: Arc<Mutex<BTreeSet<PathBuf>>>,
    notice: impl Fn() + Send + 'static,
) -> impl FnMut(notify::Result<Event>) + Send + 'static {
    move |event| {
        if let Ok(event) = &event {
            match event.kind {
                // Who reads changes nothing; our own looks would wake us up again.
                EventKind::Access(_) => return,
                EventKind::Remove(RemoveKind::Folder | RemoveKind::Any | RemoveKind::Other)
                | EventKind::Modify(ModifyKind::Name(_)) => {
                    gone.lock().extend(event.paths.iter().cloned());
                }
                _ => {}
            }
        }
        // An error is a reason to look too: something may have been missed.
        notice();
    }
}

fn has_no_more(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => is_exhausted(error),
        _ => false,
    }
}

fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE, Errno::NOSPC, Errno::NOMEM]
        .iter()
        .any(|no| error.raw_os_error() == Some(no.raw_os_error()))
}

fn reason_of(error: &notify::Error) -> String {
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "the system has no watches left (on Linux: sysctl fs.inotify.max_user_watches)".to_owned()
        }
        ErrorKind::Io(error) if is_exhausted(error) => {
            "the system watches for too many programs already (on Linux: sysctl fs.inotify.max_user_instances)"
                .to_owned()
        }
        _ => format!("the system does not report changes: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;

    fn watched(root: &Path) -> (Watcher, Receiver<()>) {
        let (sender, told) = channel();
        let mut watcher = Watcher::new(root, move || {
            let _ = sender.send(());
        });
        assert_eq!(watcher.unavailable(), None);
        assert!(watcher.follow(BTreeSet::from([root.to_owned()])));
        (watcher, told)
    }

    fn is_told(told: &Receiver<()>) -> bool {
        let heard = told.recv_timeout(Duration::from_millis(500)).is_ok();
        while told.recv_timeout(Duration::from_millis(50)).is_ok() {}
        heard
    }

    #[test]
    fn a_change_is_told_and_a_reader_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (_watcher, told) = watched(folder.path());
        fs::write(folder.path().join("a"), "1").unwrap();
        assert!(is_told(&told));
        fs::read(folder.path().join("a")).unwrap();
        assert!(!is_told(&told));
    }

    #[test]
    fn a_folder_that_comes_again_under_its_name_is_watched_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut watcher, told) = watched(folder.path());
        let inner = folder.path().join("inner");
        let both = BTreeSet::from([folder.path().to_owned(), inner.clone()]);
        for _ in 0..3 {
            fs::create_dir(&inner).unwrap();
            assert!(is_told(&told));
            assert!(watcher.follow(both.clone()));
            fs::write(inner.join("a"), "1").unwrap();
            assert!(is_told(&told));
            assert!(!watcher.follow(both.clone()));
            fs::remove_dir_all(&inner).unwrap();
            assert!(is_told(&told));
        }
    }

    #[test]
    fn a_folder_that_is_not_followed_is_not_told_of() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("ignored")).unwrap();
        let (_watcher, told) = watched(folder.path());
        fs::write(folder.path().join("ignored/a"), "1").unwrap();
        assert!(!is_told(&told));
    }
}
