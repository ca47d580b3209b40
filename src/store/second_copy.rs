//! A second copy of the ledger, in a file of its own.
//! No single file that is cut off, emptied or set back takes counts with it.
//!
//! In a repository it is kept in git's own folder, where no `git checkout`, `reset`, `stash` or `clean` reaches it (L6).
//! Without git it is beside the ledger: that is no protection against removing the state directory, but it is one against
//! a file that was cut off or damaged. Whoever holds the ledger's lock appends to the ledger and syncs it, then to the copy:
//! a kill leaves the copy an earlier part of the ledger, never the other way round. So a copy that has more is right.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::ledger_line::{decompress_all, salvage, whole};
use crate::durable::{Kind, Root, Sync, present};

/// Bytes of the end that are compared: more than the checksum of the last line.
const END_LENGTH: usize = 64;
/// How many bytes are compared at a time, where both are not compared as a whole.
const PART: u64 = 512 << 10;

/// The second copy of a ledger.
#[derive(Clone, Debug)]
pub(super) struct SecondCopy {
    root: Root,
    path: PathBuf,
    /// Whether it is on disk whenever the ledger is.
    synced: bool,
}

/// How a copy and its ledger stand to each other, as far as their lengths and the copy's end show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// There is no copy, or it is another name of the ledger's own file, as version 0.1.0 had it.
    #[default]
    Alone,
    /// Both hold the same.
    Level,
    /// The ledger goes on where the copy ends, after this number of bytes.
    Behind(u64),
    /// The ledger lacks something that the copy has, or one of them was compacted, or they differ.
    Doubtful,
}

impl SecondCopy {
    /// The copy in `recover` in a repository's folder of the ledger of the state directory `dir`. Several state directories
    /// may share a repository.
    pub(super) fn new(repository: &Path, dir: &Path) -> Self {
        let name = format!(
            "ledger-{:08x}.jsonl",
            crc32fast::hash(dir.as_os_str().as_encoded_bytes())
        );
        Self {
            root: Root::with_own(repository, "recover"),
            path: repository.join("recover").join(name),
            synced: true,
        }
    }

    /// The copy beside the ledger, in the folder of what is private in the state directory: it moves with it.
    pub(super) fn beside(root: &Root, private: &Path) -> Self {
        Self {
            root: root.clone(),
            path: private.join("ledger-copy.jsonl"),
            synced: true,
        }
    }

    /// The way to it.
    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    /// Where it is, or would be.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is while another ledger is put in the place of a damaged one.
    pub(super) fn set_aside_path(&self) -> PathBuf {
        self.path.with_extension("before")
    }

    /// Whether what `ledger` says was recorded here: it is part of what its copy holds, or the copy of one that had another
    /// place before. A ledger that is gone is, where it has a copy; one that may be `damaged` is judged by the events that can
    /// be read of it, if any.
    pub(super) fn vouches_for(&self, root: &Root, ledger: &Path, damaged: bool) -> bool {
        let Ok(bytes) = root.read(ledger) else {
            let is_there = matches!(self.root.kind(&self.path), Ok(Some(Kind::RegularFile)));
            return is_there && matches!(root.kind(ledger), Ok(None));
        };
        let whole = |bytes: &[u8]| decompress_all(whole(bytes));
        let part = whole(&bytes);
        let is_copy = |name: &str| {
            name.strip_prefix("ledger-")
                .is_some_and(|rest| rest.contains(".jsonl"))
        };
        let Some(folder) = self.path.parent() else {
            return false;
        };
        let entries = self.root.list(folder).unwrap_or_default();
        entries
            .iter()
            .filter(|(name, _)| name.to_str().is_some_and(is_copy))
            .filter_map(|(name, _)| self.root.read(&folder.join(name)).ok())
            .any(|all| {
                all == bytes
                    || whole(&all).starts_with(&part)
                    || damaged && salvage(&bytes).is_part_of(&salvage(&all))
            })
    }

    /// A third copy, in a file of this name elsewhere.
    pub(super) fn elsewhere(path: PathBuf) -> Self {
        Self {
            root: Root::own(path.parent().unwrap_or(&path)),
            path,
            synced: false,
        }
    }

    /// Appends what the ledger got from `offset` on, without a sync; a copy that does not end there follows it.
    pub(super) fn trail(
        &self,
        (root, ledger): (&Root, &Path),
        offset: u64,
        lines: &[u8],
    ) -> io::Result<()> {
        match present(self.root.open_to_append(&self.path))? {
            Some(file) if append(&file, offset, lines)? => Ok(()),
            _ => self.follow(root, ledger),
        }
    }

    /// Makes the copy hold what `ledger` holds, which is whole and on disk. The caller holds the ledger's lock.
    pub(super) fn follow(&self, root: &Root, ledger: &Path) -> io::Result<()> {
        let copy = present(self.root.open(&self.path))?;
        match standing(copy.as_ref(), present(root.open(ledger))?.as_ref())? {
            Standing::Level => Ok(()),
            Standing::Behind(from) => {
                let (mut source, mut missing) = (root.open(ledger)?, Vec::new());
                source.seek(SeekFrom::Start(from))?;
                source.read_to_end(&mut missing)?;
                let mut file = self.root.open_to_append(&self.path)?;
                file.write_all(&missing)?;
                if self.synced {
                    file.sync_data()
                } else {
                    Ok(())
                }
            }
            Standing::Alone if root.kind(ledger)?.is_none() => Ok(()),
            Standing::Alone | Standing::Doubtful => self.replace(&root.read(ledger)?),
        }
    }

    /// Puts these lines in the copy's place, which is a file of its own from then on.
    pub(super) fn replace(&self, lines: &[u8]) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or_else(|| Path::new("."));
        self.root.create_dir_all(folder)?;
        self.root.reap(folder);
        let sync = if self.synced {
            Sync::All
        } else {
            Sync::Nothing
        };
        self.root.write(&self.path, lines, sync)?;
        present(self.root.remove_file(&self.set_aside_path())).map(drop)
    }

    /// Whether every byte is the ledger's.
    pub(super) fn is_same(&self, root: &Root, ledger: &Path) -> io::Result<bool> {
        Ok(self.root.read(&self.path)? == root.read(ledger)?)
    }

    /// Whether every byte of one part is the ledger's, however long both are. With each `number` it is the next part.
    pub(super) fn is_same_in_part(
        &self,
        root: &Root,
        ledger: &Path,
        number: u64,
    ) -> io::Result<bool> {
        let (own, other) = (self.root.open(&self.path)?, root.open(ledger)?);
        let length = other.metadata()?.len();
        if own.metadata()?.len() != length {
            return Ok(false);
        }
        let begin = number % length.div_ceil(PART).max(1) * PART;
        let (mut ours, mut theirs) = ([0; 1 << 14], [0; 1 << 14]);
        for at in (begin..length.min(begin + PART)).step_by(ours.len()) {
            let count =
                usize::try_from(length - at).map_or(ours.len(), |rest| rest.min(ours.len()));
            own.read_exact_at(&mut ours[..count], at)?;
            other.read_exact_at(&mut theirs[..count], at)?;
            if ours[..count] != theirs[..count] {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The two files' standing, without reading either as a whole. What is appended meanwhile is no doubt where the ledger was
/// opened after the copy, as its length is asked for after the copy's.
pub(super) fn standing(copy: Option<&File>, ledger: Option<&File>) -> io::Result<Standing> {
    let Some(copy) = copy else {
        return Ok(Standing::Alone);
    };
    let own = copy.metadata()?;
    let Some(ledger) = ledger else {
        return Ok(Standing::Doubtful);
    };
    let other = ledger.metadata()?;
    if (own.dev(), own.ino()) == (other.dev(), other.ino()) {
        return Ok(Standing::Alone);
    }
    let (end, length) = (own.len(), other.len());
    if end == 0 || end > length || !ends_alike(copy, ledger, end)? {
        return Ok(Standing::Doubtful);
    }
    Ok(if end < length {
        Standing::Behind(end)
    } else {
        Standing::Level
    })
}

/// Appends to an open copy lines that begin at `offset` in the ledger, without a sync; `false` where the copy does not end
/// there.
pub(super) fn append(mut copy: &File, offset: u64, lines: &[u8]) -> io::Result<bool> {
    if copy.metadata()?.len() != offset {
        return Ok(false);
    }
    if let Err(error) = copy.write_all(lines) {
        // A part of a line is no harm, but not to have it is better.
        let _ = copy.set_len(offset);
        return Err(error);
    }
    Ok(true)
}

/// Whether both have the same bytes before `end`, the end of a line.
fn ends_alike(copy: &File, ledger: &File, end: u64) -> io::Result<bool> {
    let mut ends = [[0; END_LENGTH]; 2];
    let length = usize::try_from(end).map_or(END_LENGTH, |end| end.min(END_LENGTH));
    let from = end - length as u64;
    for (file, bytes) in [copy, ledger].into_iter().zip(&mut ends) {
        file.read_exact_at(&mut bytes[..length], from)?;
    }
    let [own, other] = ends;
    Ok(own[..length] == other[..length] && own[length - 1] == b'\n')
}

/// In a process that goes on, later appends than this since the last sync are synced at once.
const LONGEST: Duration = Duration::from_secs(1);

/// The second copy's file as long as it may not be on disk. The ledger itself always is: a crash of the machine before
/// the sync costs nothing but another copy. Synced at the end of the process, and in between at most once a second.
#[derive(Debug)]
pub(super) struct Unsynced(Mutex<Pending>);

#[derive(Debug)]
struct Pending {
    file: Option<File>,
    synced: Instant,
}

impl Default for Unsynced {
    fn default() -> Self {
        Self(Mutex::new(Pending {
            file: None,
            synced: Instant::now(),
        }))
    }
}

impl Unsynced {
    /// Something was written to the copy.
    pub(super) fn add(&self, file: File) {
        let mut pending = self.0.lock();
        pending.file = Some(file);
        if pending.synced.elapsed() >= LONGEST {
            pending.sync();
        }
    }
}

impl Pending {
    fn sync(&mut self) {
        if let Some(file) = self.file.take()
            && let Err(error) = file.sync_data()
        {
            tracing::warn!(%error, "the ledger's second copy may not survive a crash of the machine");
        }
        self.synced = Instant::now();
    }
}

impl Drop for Unsynced {
    fn drop(&mut self) {
        self.0.get_mut().sync();
    }
}
