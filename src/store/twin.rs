//! A second name of the ledger, where no `git checkout`, `reset`, `stash` or `clean` reaches it.
//!
//! A state directory that is committed to git goes back with everything else when a loop resets its work tree, and the
//! retry counts would go back with it (L6). Git replaces files rather than writing into them: a hard link in the
//! repository's own folder keeps the whole ledger, at no cost for appends. A ledger that is gone, or an earlier part of
//! what its twin holds, was set back, and the twin is the truth. Best effort: on another file system there is no twin.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::durable::{reap, temporary_prefix};

use super::packed_lines::in_the_open;

/// The second name of a ledger.
#[derive(Clone, Debug)]
pub struct Twin {
    path: PathBuf,
}

impl Twin {
    /// The twin in `folder` of the ledger of the state directory `dir`. Several state directories may share a repository.
    pub fn new(folder: &Path, dir: &Path) -> Self {
        let name = format!("ledger-{:08x}.jsonl", crc32fast::hash(dir.as_os_str().as_encoded_bytes()));
        Self { path: folder.join(name) }
    }

    /// Where it is, or would be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The twin's path, if `ledger` is an earlier part of what it holds, or is gone.
    pub fn ahead_of(&self, ledger: &Path) -> Option<&Path> {
        let own = fs::metadata(&self.path).ok()?;
        let other = match fs::metadata(ledger) {
            Ok(other) => other,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(self.path.as_path()),
            Err(_) => return None,
        };
        let same = (own.dev(), own.ino()) == (other.dev(), other.ino());
        if same || other.len() == 0 {
            return None;
        }
        // One of the two may be compacted, the other cut off in a line: what their whole lines say counts.
        let read = |path: &Path| {
            let bytes = fs::read(path)?;
            let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
            Ok::<_, io::Error>(in_the_open(&bytes[..whole]))
        };
        let (all, part) = (read(&self.path).ok()?, read(ledger).ok()?);
        (all.len() > part.len() && all.starts_with(&part)).then_some(self.path.as_path())
    }

    /// Whether what `ledger` says was recorded here: it is part of what its twin holds, or the twin of one that had another
    /// place before. A ledger that is gone is, where it has a twin.
    pub fn vouches_for(&self, ledger: &Path) -> bool {
        let Ok(bytes) = fs::read(ledger) else { return self.path.is_file() && !ledger.exists() };
        let whole = |bytes: &[u8]| in_the_open(&bytes[..memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1)]);
        let part = whole(&bytes);
        let is_twin = |name: &str| name.strip_prefix("ledger-").is_some_and(|rest| rest.contains(".jsonl"));
        let entries = self.path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_str().is_some_and(is_twin)).any(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_file())
                && fs::read(entry.path()).is_ok_and(|all| all == bytes || whole(&all).starts_with(&part))
        })
    }

    /// Makes the twin another name of `ledger`. The caller holds the ledger's lock.
    pub fn follow(&self, ledger: &Path) {
        let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        let linked = fs::metadata(&self.path).and_then(|own| Ok(same(own, fs::metadata(ledger)?)));
        if !linked.unwrap_or(false)
            && let Err(error) = link(ledger, &self.path)
        {
            tracing::debug!(%error, twin = %self.path.display(), "the ledger has no twin");
        }
    }

    /// Puts the twin in the place of a ledger that was set back. The caller holds the ledger's lock.
    pub fn put_back(&self, ledger: &Path) -> io::Result<()> {
        link(&self.path, ledger)
    }
}

/// Makes `to` another name of `from`, in one step where `to` exists.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    // What a dead process left, and a leftover of one that had the same number.
    reap(folder);
    let temporary = folder.join(format!("{}link", temporary_prefix()));
    let _ = fs::remove_file(&temporary);
    fs::hard_link(from, &temporary)?;
    let moved = fs::rename(&temporary, to);
    // Renaming onto another name of the same file leaves both.
    let _ = fs::remove_file(&temporary);
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_that_was_recorded_here_is_told_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, git) = (folder.path().join("events.jsonl"), folder.path().join("git"));
        let moved = Twin::new(&git, folder.path());
        let twin = Twin::new(&git, Path::new("/elsewhere"));
        assert!(!twin.vouches_for(&ledger));
        fs::write(&ledger, "one\ntwo\n").unwrap();
        assert!(!twin.vouches_for(&ledger));
        moved.follow(&ledger);
        assert!(twin.vouches_for(&ledger), "it had another place");
        fs::remove_file(&ledger).unwrap();
        assert!(moved.vouches_for(&ledger) && !twin.vouches_for(&ledger), "gone");
        for (content, expected) in [("one\n", true), ("one\ntw", true), ("one\ntwo\n3\n", false), ("two\n", false)] {
            fs::write(&ledger, content).unwrap();
            assert_eq!(twin.vouches_for(&ledger), expected, "{content:?}");
        }
    }

    #[test]
    fn a_ledger_that_was_set_back_is_noticed_and_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("events.jsonl");
        let twin = Twin::new(&folder.path().join("git"), folder.path());
        fs::write(&ledger, "one\n").unwrap();
        twin.follow(&ledger);
        assert_eq!(twin.ahead_of(&ledger), None);
        io::Write::write_all(&mut fs::OpenOptions::new().append(true).open(&ledger).unwrap(), b"two\n").unwrap();
        assert_eq!(twin.ahead_of(&ledger), None, "the same file");

        let replace = |content: &str| {
            fs::remove_file(&ledger).unwrap();
            fs::write(&ledger, content).unwrap();
        };
        for other in ["", "something else\n", "one\ntwo\nthree\n"] {
            replace(other);
            assert_eq!(twin.ahead_of(&ledger), None, "{other:?}");
        }
        replace("one\n");
        assert!(twin.ahead_of(&ledger).is_some());
        twin.put_back(&ledger).unwrap();
        assert_eq!(fs::read_to_string(&ledger).unwrap(), "one\ntwo\n");
        assert_eq!(twin.ahead_of(&ledger), None);
        replace("anew\n");
        twin.follow(&ledger);
        replace("one\n");
        assert_eq!(twin.ahead_of(&ledger), None, "a ledger that was begun anew has a twin of its own");
    }
}
