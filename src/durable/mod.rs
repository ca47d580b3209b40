//! Files that survive a kill: written whole or not at all, and locks that die with their holder.
//!
//! Everything that is ours is reached through a [`Root`]: no link is followed below it.
//!
//! The guarantee of [`Root::write`]: after it returns, the new content is on disk under the name; if the process or
//! the machine dies before, the old content is still there. Locks are kernel locks (`flock`), so a dead holder never
//! blocks anybody and no age is ever judged; where the file system has none, a file names the holder.

mod atomic;
mod lock;
mod refused;
mod root;
mod sudo;
mod temporary;

use std::io;
use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

pub(crate) use atomic::{Sync, sync_dir, write_atomic};
pub use lock::FileLock;
pub(crate) use lock::{LockError, Locked, has_no_locks};
pub(crate) use refused::Refused;
pub use root::Root;
pub(crate) use root::{FILE, FOLDER, cannot_link, is_one_of, present};
pub(crate) use rustix::fs::FileType as Kind;
pub(crate) use sudo::{create_dir_all, give_to_sudo_caller, sudo_caller};
pub(crate) use temporary::{TemporaryFolder, is_left_over, is_temporary, reap, temporary_prefix};

/// With fewer bytes than these nothing can be relied on.
const LEAST: u64 = 64 * 1024;

/// Why nothing more can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// No bytes, or no files, are left.
    Space,
    /// It is read-only, or may not be written.
    Permission,
}

/// What stands in the way of writing in `folder`; nothing is tried.
pub(crate) fn lack(folder: &Path) -> io::Result<Option<Lack>> {
    let found = statvfs(folder)?;
    if found.f_flag.contains(StatVfsMountFlags::RDONLY) || access(folder, Access::WRITE_OK).is_err()
    {
        return Ok(Some(Lack::Permission));
    }
    let full = found.f_bavail.saturating_mul(found.f_frsize) < LEAST
        || (found.f_files > 0 && found.f_ffree == 0);
    Ok(full.then_some(Lack::Space))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use super::*;

    /// A folder of ours and one outside of it, with a victim in it.
    struct Place {
        _folder: tempfile::TempDir,
        root: Root,
        inside: PathBuf,
        outside: PathBuf,
    }

    fn place() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("inside"), folder.path().join("outside"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "precious").unwrap();
        Place {
            root: Root::own(inside.clone()),
            _folder: folder,
            inside,
            outside,
        }
    }

    impl Place {
        fn victim_is_whole(&self) {
            assert_eq!(
                fs::read_to_string(self.outside.join("victim")).unwrap(),
                "precious"
            );
            assert_eq!(fs::read_dir(&self.outside).unwrap().count(), 1);
        }
    }

    fn is_refused<T: std::fmt::Debug>(result: std::io::Result<T>, at: &Path) {
        let error = result.unwrap_err();
        let refused = Refused::of(&error).unwrap_or_else(|| panic!("{error}"));
        assert_eq!(refused.path, at);
    }

    #[test]
    fn nothing_but_a_file_is_opened_in_a_files_place() {
        let place = place();
        let at = place.inside.join("own");
        let tricks: [&dyn Fn(); 5] = [
            &|| symlink(place.outside.join("victim"), &at).unwrap(),
            &|| symlink("/nowhere", &at).unwrap(),
            &|| symlink("own", &at).unwrap(),
            &|| {
                rustix::fs::mknodat(rustix::fs::CWD, &at, Kind::Fifo, rustix::fs::Mode::RUSR, 0)
                    .unwrap();
            },
            &|| drop(std::os::unix::net::UnixListener::bind(&at).unwrap()),
        ];
        for trick in tricks {
            trick();
            let root = &place.root;
            is_refused(root.open(&at), &at);
            is_refused(root.read_if_possible(&at), &at);
            is_refused(root.open_or_create(&at), &at);
            is_refused(root.open_to_append(&at), &at);
            is_refused(root.create(&at), &at);
            is_refused(root.write(&at, b"x", Sync::All), &at);
            is_refused(root.check(Path::new(""), false), &at);
            is_refused(root.has(&at), &at);
            is_refused(root.create_dir_all(&at.join("deeper")), &at);
            assert!(FileLock::acquire(root, &at, Duration::ZERO).is_err());
            assert!(FileLock::acquire_unnoticed(root, &at, Duration::ZERO).is_err());
            root.replace(&at, b"ours", Sync::Nothing).unwrap();
            assert_eq!(root.read(&at).unwrap(), b"ours");
            place.victim_is_whole();
            root.remove_file(&at).unwrap();
        }
    }

    #[test]
    fn no_link_is_followed_on_the_way() {
        let place = place();
        let link = place.inside.join("folder");
        symlink(&place.outside, &link).unwrap();
        let (root, below) = (&place.root, link.join("victim"));
        is_refused(root.read(&below), &link);
        is_refused(root.create(&below), &link);
        is_refused(root.replace(&below, b"x", Sync::All), &link);
        is_refused(root.remove_file(&below), &link);
        is_refused(root.list(&link), &link);
        is_refused(root.remove_dir_all(&link), &link);
        assert_eq!(root.kind(&place.inside).unwrap(), Some(Kind::Directory));
        assert_eq!(root.kind(&place.inside.join("none/none")).unwrap(), None);
        is_refused(root.rename(&below, &place.inside.join("taken")), &link);
        root.reap(&link);
        place.victim_is_whole();
        for outside in [
            place.inside.join("../outside/victim"),
            place.outside.join("victim"),
        ] {
            root.read(&outside).unwrap_err();
        }
    }

    #[test]
    fn a_file_with_another_name_keeps_its_content_there() {
        let place = place();
        let at = place.inside.join("log");
        fs::hard_link(place.outside.join("victim"), &at).unwrap();
        drop(place.root.create(&at).unwrap());
        assert_eq!(fs::read(&at).unwrap(), b"");
        place.victim_is_whole();
    }

    #[test]
    fn removing_a_folder_takes_links_and_not_what_they_lead_to() {
        let place = place();
        fs::create_dir_all(place.inside.join("a/b")).unwrap();
        symlink(&place.outside, place.inside.join("a/b/link")).unwrap();
        is_refused(
            place.root.check(Path::new("a"), true),
            &place.inside.join("a/b/link"),
        );
        place.root.remove_dir_all(Path::new("a")).unwrap();
        assert!(!place.inside.join("a").exists());
        place.victim_is_whole();
    }

    #[test]
    fn what_is_ours_is_for_the_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().mode() & 0o777;
        let root = Root::with_own(folder.path(), ".ultraplan/state");
        root.create_dir_all(Path::new(".ultraplan/state/recover"))
            .unwrap();
        root.write(Path::new(".ultraplan/state/view"), b"x", Sync::Nothing)
            .unwrap();
        root.write(Path::new(".ultraplan/recover.toml"), b"x", Sync::Nothing)
            .unwrap();
        assert_eq!(
            (mode(".ultraplan/state"), mode(".ultraplan/state/recover")),
            (0o700, 0o700)
        );
        assert_eq!(mode(".ultraplan/state/view"), 0o600);
        assert_ne!(mode(".ultraplan"), 0o700);
        assert_ne!(mode(".ultraplan/recover.toml"), 0o600);
        for (path, wide, tight) in [
            (".ultraplan/state", 0o755, 0o700),
            (".ultraplan/state/view", 0o644, 0o600),
        ] {
            fs::set_permissions(folder.path().join(path), fs::Permissions::from_mode(wide))
                .unwrap();
            root.tighten(Path::new(path));
            assert_eq!(mode(path), tight);
        }
        let anew = Root::own(folder.path().join("new/state"));
        anew.create_dir_all(Path::new("")).unwrap();
        assert_eq!(mode("new/state"), 0o700);
    }

    #[test]
    fn a_file_that_is_too_large_is_said_so() {
        let place = place();
        place
            .root
            .write(Path::new("big"), &[b'x'; 100], Sync::Nothing)
            .unwrap();
        assert_eq!(
            place
                .root
                .read_at_most(Path::new("big"), 100)
                .unwrap()
                .len(),
            100
        );
        let error = place.root.read_at_most(Path::new("big"), 99).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    }

    /// A lock that goes from hand to hand is waited for longer than one that a process keeps.
    #[test]
    fn whoever_waits_for_a_lock_that_changes_hands_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::own(folder.path());
        let path = folder.path().join("lock");
        let timeout = Duration::from_millis(300);
        let held = FileLock::acquire(&root, &path, timeout).unwrap();
        let other = std::thread::spawn({
            let (root, path) = (root.clone(), path.clone());
            move || FileLock::acquire(&root, &path, timeout).map(drop)
        });
        // Another process has it by what the file says.
        for number in 1..=6 {
            std::thread::sleep(Duration::from_millis(120));
            std::fs::write(&path, format!("{number} another recover\n")).unwrap();
        }
        drop(held);
        other.join().unwrap().unwrap();

        let held = FileLock::acquire(&root, &path, timeout).unwrap();
        let begun = Instant::now();
        assert!(matches!(
            FileLock::acquire(&root, &path, timeout),
            Err(LockError::Held { .. })
        ));
        assert!(begun.elapsed() < Duration::from_secs(2));
        drop(held);
    }
}
