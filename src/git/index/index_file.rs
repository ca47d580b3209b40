//! A reader of git's index file: versions 2, 3 and 4, in one pass, with every field.
//!
//! libgit2 refuses a split index and a sparse one, and copies each name of the others. Here a file is a few flat
//! vectors. What a file refers to, the shared index of a split one and the trees of a sparse one, is read only by
//! [`IndexFile::read`], which completes it. Damaged bytes are an error, never a panic and never a shorter list.

pub(in crate::git) mod patch;

use std::cmp::Ordering;
use std::fs;
use std::path::Path;

use git2::Oid;
use sha1::{Digest as _, Sha1};

use crate::git::base::error::{Error, Result, present};
use crate::git::base::openat::FileStat;
use crate::git::base::work_queue::both;
use crate::git::odb::{Database, trees};
use crate::git::repo::repository::Repo;
use crate::model::{IndexExtra, ObjectId, RepoPath};

/// Bytes of an object id and of the trailing checksum.
const HASH: usize = 20;
/// Bytes of an entry before its flags.
const FIXED: usize = 60;
/// In the flags: extended flags follow.
pub(in crate::git) const EXTENDED: u16 = 0x4000;
/// In the flags: assume unchanged.
pub(in crate::git) const ASSUME_UNCHANGED: u16 = 0x8000;
/// In the flags: the length of the name, all ones if it is longer.
const NAME_LENGTH: u16 = 0x0fff;
/// In the extended flags.
pub(in crate::git) const INTENT_TO_ADD: u16 = 0x2000;
/// In the extended flags.
pub(in crate::git) const SKIP_WORKTREE: u16 = 0x4000;
/// The names of all entries together; version 4 could make far more than memory holds out of a small file.
const MAX_NAMES: usize = 1 << 30;
/// From this many bytes on, the checksum is computed beside the parsing.
const LARGE: usize = 1 << 18;

/// The git file mode of a folder, which only a sparse index has entries of.
pub(super) const SPARSE_FOLDER: u32 = 0o040_000;

/// An index file, in memory.
#[derive(Debug, Default)]
pub(in crate::git) struct IndexFile {
    /// The names, one after the other.
    names: Vec<u8>,
    records: Vec<Record>,
    link: Option<Link>,
    sparse: bool,
}

/// What a split index says of the shared one that it stands on.
#[derive(Debug)]
struct Link {
    /// The name of the shared index; `None` for "none".
    shared: Option<Oid>,
    delete: Bitmap,
    replace: Bitmap,
}

#[derive(Clone, Debug)]
struct Record {
    /// Where it begins in the file that it was read from; 0 if it was made up.
    at: u32,
    start: u32,
    length: u32,
    stat: EntryStat,
    oid: Oid,
    mode: u32,
    flags: u16,
    extended: u16,
}

/// Metadata of a file as an entry has it. Times are seconds and nanoseconds; all numbers are cut to 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct EntryStat {
    pub ctime: (u32, u32),
    pub mtime: (u32, u32),
    pub dev: u32,
    pub ino: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u32,
}

impl EntryStat {
    /// Of a file and its owner.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(super) fn of(stat: &FileStat, (uid, gid): (u32, u32)) -> Self {
        const SECOND: i64 = 1_000_000_000;
        let time = |nanos: i64| {
            let second = nanos.div_euclid(SECOND) as u32;
            (second, nanos.rem_euclid(SECOND) as u32)
        };
        Self {
            ctime: time(stat.ctime),
            mtime: time(stat.mtime),
            dev: stat.dev as u32,
            ino: stat.ino as u32,
            uid,
            gid,
            size: stat.size as u32,
        }
    }

    /// Whether a file's metadata is still the same, as far as git compares it.
    pub(in crate::git) fn matches(&self, stat: &FileStat) -> bool {
        let now = Self::of(stat, (self.uid, self.gid));
        u64::from(self.size) == stat.size
            && Self {
                dev: self.dev,
                ..now
            } == *self
    }
}

/// One entry of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) struct IndexEntryRef<'a> {
    pub path: &'a [u8],
    /// 0, or 1 to 3 for the base, ours and theirs of a conflict.
    pub stage: u8,
    /// The git file mode.
    pub mode: u32,
    pub oid: Oid,
    pub stat: EntryStat,
    pub intent_to_add: bool,
    pub assume_unchanged: bool,
    pub skip_worktree: bool,
}

impl IndexEntryRef<'_> {
    /// What a checkpoint has of an entry that a tree cannot say.
    pub(crate) fn extra(&self) -> IndexExtra {
        IndexExtra {
            path: RepoPath::new(self.path),
            stage: self.stage,
            mode: self.mode,
            oid: ObjectId(self.oid.to_string()),
            intent_to_add: self.intent_to_add,
            assume_unchanged: self.assume_unchanged,
            skip_worktree: self.skip_worktree,
        }
    }
}

impl IndexFile {
    /// Parses the bytes of an index file.
    ///
    /// The checksum at the end must be right, unless it is all zero (`index.skipHash`). An unknown extension whose name
    /// begins with a lower-case letter changes what the entries mean and is [`Error::Unsupported`]; everything else that
    /// is not as git writes it is [`Error::Corrupt`].
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let content = bytes
            .len()
            .checked_sub(HASH)
            .filter(|length| *length >= 12)
            .ok_or_else(|| damaged("too short"))?;
        let (content, checksum) = bytes.split_at(content);
        if checksum.iter().all(|byte| *byte == 0) {
            return Self::content(content);
        }
        let right = || Sha1::digest(content).as_slice() == checksum;
        let (right, parsed) = if content.len() < LARGE {
            (right(), Self::content(content))
        } else {
            let (parsed, right) = both(|| Self::content(content), right);
            (right, parsed)
        };
        if right {
            parsed
        } else {
            Err(damaged("its checksum is wrong"))
        }
    }

    /// The entries, sorted by path and stage. Those of a sparse index may be folders ([`SPARSE_FOLDER`], the path ends in
    /// a slash); those of a split index that stand in place of shared ones have an empty path.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = IndexEntryRef<'_>> {
        self.records.iter().map(|record| self.entry(record))
    }

    /// Whether the entries are only the difference to a shared index.
    pub(crate) fn is_split(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.shared.is_some())
    }

    fn path(&self, record: &Record) -> &[u8] {
        let start = record.start as usize;
        &self.names[start..start + record.length as usize]
    }

    fn entry<'a>(&'a self, record: &Record) -> IndexEntryRef<'a> {
        IndexEntryRef {
            path: self.path(record),
            stage: record.stage(),
            mode: record.mode,
            oid: record.oid,
            stat: record.stat,
            intent_to_add: record.extended & INTENT_TO_ADD != 0,
            assume_unchanged: record.flags & ASSUME_UNCHANGED != 0,
            skip_worktree: record.extended & SKIP_WORKTREE != 0,
        }
    }

    /// Everything before the checksum.
    fn content(content: &[u8]) -> Result<Self> {
        if u32::try_from(content.len()).is_err() {
            return Err(Error::Unsupported("an index of 4 GiB or more".to_owned()));
        }
        let mut input = Input(content);
        if input.take(4)? != b"DIRC" {
            return Err(damaged("it is no index"));
        }
        let version = input.number()?;
        if !(2..=4).contains(&version) {
            return Err(Error::Unsupported(format!("an index of version {version}")));
        }
        let count = input.number()? as usize;
        // No entry is shorter than this, so that a wrong count reserves no more than the file could hold.
        if count > input.0.len() / (FIXED + 2) {
            return Err(damaged("it has fewer entries than it says"));
        }
        let mut index = Self {
            records: Vec::with_capacity(count),
            ..Self::default()
        };
        index.names.reserve(if version == 4 {
            count * 48
        } else {
            input.0.len().saturating_sub(count * (FIXED + 2))
        });
        for _ in 0..count {
            let at = position(content.len() - input.0.len());
            index.push(&mut input, at, version)?;
        }
        while !input.0.is_empty() {
            let name = input.take(4)?;
            let length = input.number()? as usize;
            let data = input.take(length)?;
            match name {
                b"link" => index.link = Some(Link::parse(data)?),
                b"sdir" => index.sparse = true,
                [b'A'..=b'Z', ..] => {}
                _ => {
                    let name = String::from_utf8_lossy(name).into_owned();
                    return Err(Error::Unsupported(format!(
                        "an index with the extension '{name}'"
                    )));
                }
            }
        }
        index.check()?;
        Ok(index)
    }

    /// Reads the entry that begins at `at`.
    fn push(&mut self, input: &mut Input<'_>, at: u32, version: u32) -> Result<()> {
        let before = input.0.len();
        let fixed: &[u8; FIXED] = input.array()?;
        let word = |at: usize| {
            u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        let metadata = EntryStat {
            ctime: (word(0), word(4)),
            mtime: (word(8), word(12)),
            dev: word(16),
            ino: word(20),
            uid: word(28),
            gid: word(32),
            size: word(36),
        };
        let oid = Oid::from_bytes(&fixed[40..]).map_err(|_| damaged("an object id"))?;
        let flags = input.short()?;
        let extended = if flags & EXTENDED == 0 {
            0
        } else {
            input.short()?
        };
        if (version == 2 && flags & EXTENDED != 0)
            || extended & !(INTENT_TO_ADD | SKIP_WORKTREE) != 0
        {
            return Err(damaged("an entry has unknown flags"));
        }
        let begin = self.names.len();
        if version == 4 {
            self.compressed_name(input)?;
        } else {
            let known = usize::from(flags & NAME_LENGTH);
            let name = input.name(if known < usize::from(NAME_LENGTH) {
                Some(known)
            } else {
                None
            })?;
            self.names.extend_from_slice(name);
            // One to eight zeros: the first ends the name and is taken, the others fill up to a multiple of eight.
            let used = before - input.0.len();
            input.take(used.next_multiple_of(8) - used)?;
        }
        let length = self.names.len() - begin;
        let said = usize::from(flags & NAME_LENGTH);
        if length.min(usize::from(NAME_LENGTH)) != said || self.names.len() > MAX_NAMES {
            return Err(damaged("the length of a name"));
        }
        let (Ok(start), Ok(length)) = (u32::try_from(begin), u32::try_from(length)) else {
            return Err(damaged("the length of a name"));
        };
        let record = Record {
            at,
            start,
            length,
            stat: metadata,
            oid,
            mode: word(24),
            flags,
            extended,
        };
        if let Some(last) = self.records.last() {
            let (last, this) = (
                (self.path(last), last.stage()),
                (self.path(&record), record.stage()),
            );
            // Only entries that replace shared ones have no name; they come first.
            if last >= this && !(last.0.is_empty() && this.0.is_empty()) {
                return Err(damaged("its entries are not in order"));
            }
        }
        self.records.push(record);
        Ok(())
    }

    /// A name of version 4: how much of the last name to drop, and what to put in its place.
    fn compressed_name(&mut self, input: &mut Input<'_>) -> Result<()> {
        let drop = input.variable()?;
        let (start, length) = self
            .records
            .last()
            .map_or((0, 0), |last| (last.start as usize, last.length as usize));
        let keep = length
            .checked_sub(drop)
            .ok_or_else(|| damaged("the beginning of a name"))?;
        self.names.extend_from_within(start..start + keep);
        self.names.extend_from_slice(input.name(None)?);
        Ok(())
    }

    /// What can be checked once the extensions are known.
    fn check(&self) -> Result<()> {
        let nameless = self
            .records
            .iter()
            .take_while(|record| record.length == 0)
            .count();
        if nameless > 0 && !self.is_split() {
            return Err(damaged("an entry has no name"));
        }
        for record in &self.records {
            let folder = record.mode == SPARSE_FOLDER;
            if folder && !self.sparse && !self.is_split()
                || folder != self.path(record).ends_with(b"/") && record.length > 0
            {
                return Err(damaged("an entry is a folder"));
            }
        }
        Ok(())
    }

    /// Reads the index file `path` of a repository with everything that it stands on, so that each entry is a file, a
    /// symlink or a gitlink with its whole path. `None` if there is no such file.
    ///
    /// The shared index must be the very one that is named, and the trees must be readable, else it is
    /// [`Error::Corrupt`].
    pub(crate) fn read(repo: &Repo, path: &Path) -> Result<Option<Self>> {
        // Between the two reads, git may write both files anew and remove the old shared one.
        let mut tries = 3;
        let read = loop {
            let Some(bytes) = present(path, fs::read(path))? else {
                return Ok(None);
            };
            let index = Self::parse(&bytes)?;
            match index.merged(path.parent().unwrap_or(path)) {
                Err(Error::Corrupt(_)) if tries > 0 && index.is_split() => tries -= 1,
                other => break other?.unwrap_or(index),
            }
        };
        if read.sparse {
            read.expanded(repo).map(Some)
        } else {
            Ok(Some(read))
        }
    }

    /// A split index with the entries of the shared one in `folder`; `None` if it is not split.
    fn merged(&self, folder: &Path) -> Result<Option<Self>> {
        let Some(link) = &self.link else {
            return Ok(None);
        };
        let Some(shared) = link.shared else {
            return Ok(None);
        };
        let path = folder.join(format!("sharedindex.{shared}"));
        let bytes = present(&path, fs::read(&path))?
            .ok_or_else(|| damaged(&format!("{} is missing", path.display())))?;
        if !bytes.ends_with(shared.as_bytes()) || bytes.len() < HASH {
            return Err(damaged(&format!(
                "{} is another one than its name says",
                path.display()
            )));
        }
        let base = Self::parse(&bytes)?;
        if base.is_split() {
            return Err(damaged("the shared index is split itself"));
        }
        let mut kept: Vec<Option<(&[u8], Record)>> = base
            .records
            .iter()
            .map(|record| Some((base.path(record), record.clone())))
            .collect();
        let replaced = link.replace.positions(kept.len())?;
        for position in link.delete.positions(kept.len())? {
            kept[position] = None;
        }
        let nameless = self
            .records
            .iter()
            .take_while(|record| record.length == 0)
            .count();
        if replaced.len() != nameless {
            return Err(damaged("the link to the shared index"));
        }
        for (position, record) in replaced.into_iter().zip(&self.records) {
            let Some((_, old)) = &mut kept[position] else {
                return Err(damaged("the link to the shared index"));
            };
            *old = record.clone();
        }
        let added = self.records[nameless..]
            .iter()
            .map(|record| (self.path(record), record.clone()));
        let mut merged = Self {
            names: Vec::with_capacity(base.names.len() + self.names.len()),
            records: Vec::with_capacity(kept.len() + self.records.len()),
            link: None,
            sparse: self.sparse || base.sparse,
        };
        merged.merge(kept.into_iter().flatten(), added)?;
        Ok(Some(merged))
    }

    /// Takes over two sorted lists. An entry of the second stands in place of one of the first with the same path and
    /// stage; where it has no conflict, it stands in place of the conflict.
    fn merge<'a>(
        &mut self,
        first: impl Iterator<Item = (&'a [u8], Record)>,
        second: impl Iterator<Item = (&'a [u8], Record)>,
    ) -> Result<()> {
        let (mut first, mut second) = (first.peekable(), second.peekable());
        let mut settled: Option<&[u8]> = None;
        loop {
            let order = match (first.peek(), second.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, left)), Some((b, right))) => (a, left.stage()).cmp(&(b, right.stage())),
            };
            if order.is_le()
                && let Some((path, record)) = first.next()
                && order.is_lt()
                && settled != Some(path)
            {
                self.add(path, record)?;
            }
            if order.is_ge()
                && let Some((path, record)) = second.next()
            {
                if record.stage() == 0 {
                    settled = Some(path);
                }
                self.add(path, record)?;
            }
        }
    }

    /// Appends an entry.
    fn add(&mut self, path: &[u8], mut record: Record) -> Result<()> {
        let long = |_| damaged("the length of a name");
        record.start = u32::try_from(self.names.len()).map_err(long)?;
        record.length = u32::try_from(path.len()).map_err(long)?;
        self.names.extend_from_slice(path);
        self.records.push(record);
        Ok(())
    }

    /// A sparse index with the files of each folder that it only names.
    fn expanded(&self, repo: &Repo) -> Result<Self> {
        let database = Database::open(repo)?;
        // The counts in the cache tree are those of the folded entries.
        let mut expanded = Self::default();
        for record in &self.records {
            let folder = self.path(record);
            if record.mode != SPARSE_FOLDER {
                expanded.add(folder, record.clone())?;
                continue;
            }
            for (path, (mode, oid)) in trees::read(&database, record.oid)? {
                let (stat, flags, extended) = (EntryStat::default(), 0, SKIP_WORKTREE);
                let entry = Record {
                    at: 0,
                    start: 0,
                    length: 0,
                    stat,
                    oid,
                    mode,
                    flags,
                    extended,
                };
                expanded.add(&[folder, path.as_bytes()].concat(), entry)?;
            }
        }
        Ok(expanded)
    }
}

impl Record {
    fn stage(&self) -> u8 {
        ((self.flags >> 12) & 3) as u8
    }
}

impl Link {
    fn parse(data: &[u8]) -> Result<Self> {
        let mut input = Input(data);
        let shared = Oid::from_bytes(input.take(HASH)?).map_err(|_| damaged("an object id"))?;
        let shared = (!shared.is_zero()).then_some(shared);
        if input.0.is_empty() {
            return Ok(Self {
                shared,
                delete: Bitmap::default(),
                replace: Bitmap::default(),
            });
        }
        let delete = Bitmap::parse(&mut input)?;
        let replace = Bitmap::parse(&mut input)?;
        if !input.0.is_empty() {
            return Err(damaged("the link to the shared index"));
        }
        Ok(Self {
            shared,
            delete,
            replace,
        })
    }
}

/// The bytes that are left. Every way to take some checks that they are there.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32> {
        self.array().map(|bytes| u32::from_be_bytes(*bytes))
    }

    fn long(&mut self) -> Result<u64> {
        self.array().map(|bytes| u64::from_be_bytes(*bytes))
    }

    fn short(&mut self) -> Result<u16> {
        self.array().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// A name and the zero after it; `length` is a first guess that must be right.
    fn name(&mut self, length: Option<usize>) -> Result<&'a [u8]> {
        let within = length
            .map_or(Some(self.0), |length| self.0.get(..=length))
            .ok_or_else(cut_short)?;
        let end = within
            .iter()
            .position(|byte| *byte == 0)
            .ok_or_else(|| damaged("a name does not end"))?;
        let name = self.take(end)?;
        self.take(1)?;
        Ok(name)
    }

    /// A number of git's variable width: seven bits a byte, the highest first, each further byte adding one.
    fn variable(&mut self) -> Result<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            let shifted = value
                .checked_add(1)
                .and_then(|value| value.checked_mul(128));
            value = shifted.ok_or_else(|| damaged("a number"))? + usize::from(byte & 0x7f);
        }
        Ok(value)
    }
}

/// A place in an index file, which is smaller than 4 GiB.
fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn damaged(what: &str) -> Error {
    Error::corrupt(format!("the index: {what}"))
}

fn cut_short() -> Error {
    damaged("it is cut short")
}

/// A bitmap as it is stored: runs of equal words and literal words.
#[derive(Debug, Default)]
struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    fn parse(input: &mut Input<'_>) -> Result<Self> {
        let _bits = input.number()?;
        let count = input.number()? as usize;
        if count > input.0.len() / 8 {
            return Err(damaged("a bitmap is cut short"));
        }
        let words = (0..count).map(|_| input.long()).collect::<Result<_>>()?;
        let _position_of_the_last_run = input.number()?;
        Ok(Self { words })
    }

    /// The positions of the bits that are set, ascending. One that is not below `limit` is an error, before any memory is
    /// spent on it.
    fn positions(&self, limit: usize) -> Result<Vec<usize>> {
        let beyond = || damaged("a bitmap is longer than what it is about");
        let mut positions = Vec::new();
        let mut base = 0_usize;
        let mut words = self.words.iter().copied();
        while let Some(run) = words.next() {
            // One bit for the value, 32 for how many words have it, 31 for how many literal words follow.
            let length = usize::try_from((run >> 1) & 0xffff_ffff).map_err(|_| beyond())?;
            let end = length
                .checked_mul(64)
                .and_then(|bits| base.checked_add(bits))
                .ok_or_else(beyond)?;
            if run & 1 == 1 {
                if end > limit {
                    return Err(beyond());
                }
                positions.extend(base..end);
            }
            base = end;
            for _ in 0..run >> 33 {
                let mut word = words
                    .next()
                    .ok_or_else(|| damaged("a bitmap is cut short"))?;
                while word != 0 {
                    let position = base + word.trailing_zeros() as usize;
                    if position >= limit {
                        return Err(beyond());
                    }
                    positions.push(position);
                    word &= word - 1;
                }
                base = base.checked_add(64).ok_or_else(beyond)?;
            }
        }
        Ok(positions)
    }
}

#[cfg(test)]
mod tests;
