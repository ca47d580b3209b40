//! The user's index: its file format, what it records of paths, and the lock under which it is replaced.
//! The index of a checkpoint is restored by [`restore`](super::restore).
//!
//! Here is whether git brought something: what it tracks in the index or in the commit that is checked out.

pub(super) mod index_file;
pub(super) mod locked_index;
pub(super) mod user_index;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use git2::ErrorCode;
use memchr::memmem::Finder;

use super::repo::repository::Repo;
use index_file::IndexFile;
use user_index::Identity;

/// Bytes of an index that are in memory at a time.
const PORTION: usize = 1 << 17;
/// An index with more extensions than this one after the other is not git's.
const MOST_EXTENSIONS: usize = 64;
/// The name of the extension of a split index.
const LINK: &[u8] = b"link";

impl Repo {
    /// Whether git tracks one of `names` (files, or folders with something in them) in the folder `dir`, which may lie in this
    /// work tree or in the main one. What cannot be read tracks nothing: a clone does not bring a broken index.
    pub(crate) fn tracks_any(&self, dir: &Path, names: &[&str]) -> bool {
        if self.is_private() {
            return false;
        }
        let root = self.main_worktree();
        let (inner, below) = match (
            dir.strip_prefix(self.workdir()),
            self.main_repository(),
            dir.strip_prefix(&root),
        ) {
            (Ok(below), ..) => (&self.inner, below),
            (_, Some(main), Ok(below)) => (main, below),
            _ => return false,
        };
        let wanted: Vec<Vec<u8>> = names
            .iter()
            .map(|name| below.join(name).as_os_str().as_bytes().to_vec())
            .collect();
        commit_has_any(self, inner, &wanted)
            || index_has_any(self, &inner.path().join("index"), &wanted)
    }
}

fn commit_has_any(repo: &Repo, inner: &git2::Repository, wanted: &[Vec<u8>]) -> bool {
    let Some((head, commit)) = inner
        .head()
        .ok()
        .and_then(|head| head.target().map(|commit| (head, commit)))
    else {
        return false;
    };
    let lacks_all = || {
        let tree = head.peel_to_tree().ok()?;
        for path in wanted {
            match tree.get_path(OsStr::from_bytes(path).as_ref()) {
                Ok(_) => return Some(false),
                Err(error) if error.code() == ErrorCode::NotFound => {}
                Err(_) => return None,
            }
        }
        Some(true)
    };
    !repo
        .untracked
        .lacks("commit", &commit.to_string(), wanted, lacks_all)
}

fn index_has_any(repo: &Repo, index: &Path, wanted: &[Vec<u8>]) -> bool {
    if File::open(index).map_or(true, |file| lacks_all(repo, &file, wanted)) {
        return false;
    }
    let Ok(Some(index)) = IndexFile::read(repo, index) else {
        return false;
    };
    let is_wanted = |path: &[u8]| {
        let mut rests = wanted
            .iter()
            .filter_map(|name| path.strip_prefix(name.as_slice()));
        rests.any(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    index.entries().any(|entry| is_wanted(entry.path))
}

/// Whether an index surely has none of `wanted`, as may be noted of a large one. One that cannot be read has none.
fn lacks_all(repo: &Repo, index: &File, wanted: &[Vec<u8>]) -> bool {
    let look = || may_hold(index, wanted).ok().map(|may| !may);
    match Identity::of_file(index) {
        Ok(identity) if identity.size() > PORTION as u64 => {
            repo.untracked
                .lacks("index", &identity.to_string(), wanted, look)
        }
        Ok(_) => look().unwrap_or(true),
        Err(_) => true,
    }
}

/// Whether one of `wanted` may stand in an index: it is somewhere in the file, or names need not stand there as they are, as in
/// version 4 and in an index that is split. The file is not in memory as a whole: every command looks here.
fn may_hold(index: &File, wanted: &[Vec<u8>]) -> io::Result<bool> {
    let length = index.metadata()?.len();
    let mut version = [0; 8];
    index.read_exact_at(&mut version, 0)?;
    if !matches!(version[4..], [0, 0, 0, 2 | 3]) {
        return Ok(true);
    }
    let finders: Vec<Finder<'_>> = wanted.iter().map(Finder::new).collect();
    let link = Finder::new(LINK);
    // What begins in one portion may end in the next one.
    let most = wanted.iter().map(Vec::len).fold(LINK.len(), usize::max) - 1;
    let size = usize::try_from(length).map_or(PORTION, |length| length.clamp(1, PORTION));
    let (mut portion, mut from, mut kept) = (vec![0; size + most], 0, 0);
    loop {
        let count = read_some(index, &mut portion[kept..], from + kept as u64)?;
        let bytes = &portion[..kept + count];
        if finders.iter().any(|name| name.find(bytes).is_some()) {
            return Ok(true);
        }
        for at in link.find_iter(bytes) {
            if is_extension(index, from + at as u64, length)? {
                return Ok(true);
            }
        }
        if count == 0 {
            return Ok(false);
        }
        let ended = bytes.len();
        kept = most.min(ended);
        portion.copy_within(ended - kept..ended, 0);
        from += (ended - kept) as u64;
    }
}

/// Reads what comes next; nothing at the end of the file.
fn read_some(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Whether an extension begins at `at` in an index of `length` bytes: from there on extensions, each with its size, reach the
/// checksum at the end. Names of files hold the word as well.
fn is_extension(index: &File, mut at: u64, length: u64) -> io::Result<bool> {
    for _ in 0..MOST_EXTENSIONS {
        let rest = length.saturating_sub(at);
        if matches!(rest, 20 | 32) {
            return Ok(true);
        }
        if rest < 8 {
            return Ok(false);
        }
        let mut size = [0; 4];
        index.read_exact_at(&mut size, at + 4)?;
        at += 8 + u64::from(u32::from_be_bytes(size));
    }
    // Git writes a handful: what has more is read with care.
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::git::repo::locks::WorktreeLock;

    #[test]
    fn a_large_index_is_searched_again_once_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let inner = git2::Repository::init(folder.path()).unwrap();
        let mut index = inner.index().unwrap();
        let mut add = |paths: &[String]| {
            for path in paths {
                std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
                std::fs::write(folder.path().join(path), "x").unwrap();
                index.add_path(path.as_ref()).unwrap();
            }
            index.write().unwrap();
        };
        add(&(0..1000)
            .map(|number| format!("{number:0200}"))
            .collect::<Vec<_>>());
        let state = folder.path().canonicalize().unwrap().join("state");
        let is_tracked = || {
            let repo = Repo::discover(folder.path(), None).unwrap();
            let found = repo.tracks_any(&state, &["events", "recover"]);
            WorktreeLock::acquire(&repo, Duration::ZERO).unwrap();
            found
        };
        let note =
            || std::fs::read_to_string(folder.path().join(".git/recover/untracked")).unwrap();
        assert!(!is_tracked());
        let first = note();
        assert!(!is_tracked());
        assert_eq!(note(), first);
        add(&["b".to_owned()]);
        assert!(!is_tracked());
        assert_ne!(note(), first);
        add(&["state/recover/x".to_owned()]);
        assert!(is_tracked());
    }

    #[test]
    fn a_file_called_link_splits_no_index() {
        let holds = |bytes: &[u8], wanted: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            may_hold(file.as_file(), &[wanted.as_bytes().to_vec()])
        };
        let index =
            |extension: &[u8]| [b"DIRC\0\0\0\x02 a/link.c link/b ", extension, &[7; 20]].concat();
        assert!(!holds(&index(b""), "c/d").unwrap());
        assert!(!holds(&index(b"TREE\0\0\0\x04abcd"), "c/d").unwrap());
        assert!(holds(&index(b"link\0\0\0\x04abcd"), "c/d").unwrap());
        assert!(holds(&index(b"link\0\0\0\x04abcdTREE\0\0\0\0"), "c/d").unwrap());
        assert!(
            holds(b"DIRC\0\0\0\x04", "c/d").unwrap(),
            "names are cut short there"
        );
        assert!(holds(b"link", "c/d").is_err());
        assert!(
            holds(&index(&b"link\0\0\0\0".repeat(99)), "c/d").unwrap(),
            "no endless chain is followed"
        );
        // Wherever it stands, also where one portion ends and another begins.
        for at in (PORTION - 9..PORTION + 9)
            .chain(2 * PORTION - 9..2 * PORTION + 9)
            .chain([8, 3 * PORTION - 8])
        {
            let mut bytes = [&b"DIRC\0\0\0\x03"[..], &vec![b'.'; 3 * PORTION - 8]].concat();
            assert!(!holds(&bytes, "a/file").unwrap());
            bytes.splice(at..(at + 6).min(3 * PORTION), *b"a/file");
            assert!(holds(&bytes, "a/file").unwrap(), "{at}");
        }
    }
}
