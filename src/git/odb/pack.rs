//! Writes a pack and its index, so that many new objects do not become as many files.
//!
//! The formats are git's own: a version 2 pack of whole objects (`git gc` finds the deltas) and a version 2 index. The
//! index is made last, and a pack without one is nothing that git would read.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use git2::Oid;
use sha1::{Digest as _, Sha1};

use super::format::{LEVEL, entry_head, read_head};
use crate::durable::{create_dir_all, give_to_sudo_caller};
use crate::git::base::{At as _, Error, Result};

/// The permissions of objects and packs, as far as the umask allows: nobody changes them.
const MODE: u32 = 0o444;
/// Bytes of the head of a pack: `PACK`, the version, the count.
const HEAD: u64 = 12;
/// An offset with this bit stands in the index's table of large offsets.
pub(super) const LARGE_OFFSET: u32 = 1 << 31;
/// What an index of version 2 begins with.
pub(super) const INDEX_HEAD: &[u8; 8] = b"\xfftOc\0\0\0\x02";

/// A pack in the making, a file in the quarantine. About 32 bytes of memory for each object, whatever its size.
#[derive(Debug)]
pub(super) struct PackWriter {
    file: BufWriter<File>,
    path: PathBuf,
    offset: u64,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    id: Oid,
    crc: u32,
    offset: u64,
}

/// A pack and its index, complete and not synced.
#[derive(Clone, Debug)]
pub(in crate::git) struct Pack {
    pub file: PathBuf,
    pub index: PathBuf,
    /// The file that keeps it from being removed, where it has one.
    pub keep: Option<PathBuf>,
    /// Whether it is in the place of loose objects, which become part of a larger one soon.
    pub is_small: bool,
    /// Its objects, sorted by id.
    entries: Vec<Entry>,
}

impl Pack {
    /// One that was written here before and is complete.
    pub(crate) fn open(file: PathBuf) -> Result<Self> {
        let index = file.with_extension("idx");
        let bytes = std::fs::read(&index).at(&index)?;
        let entries = Self::entries(&bytes);
        let entries =
            entries.ok_or_else(|| Error::corrupt(format!("{} cannot be read", index.display())))?;
        Ok(Self {
            file,
            index,
            keep: None,
            is_small: false,
            entries,
        })
    }

    /// What stands in an index of version 2.
    fn entries(index: &[u8]) -> Option<Vec<Entry>> {
        let word = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |word, byte| word << 8 | u32::from(*byte))
        };
        let (fan_out, rest) = index.strip_prefix(INDEX_HEAD)?.split_at_checked(1024)?;
        let count = word(&fan_out[1020..]) as usize;
        let (ids, rest) = rest.split_at_checked(20 * count)?;
        let (sums, rest) = rest.split_at_checked(4 * count)?;
        let (offsets, large) = rest.split_at_checked(4 * count)?;
        let parts = ids.chunks(20).zip(sums.chunks(4)).zip(offsets.chunks(4));
        let entry = |((id, crc), offset)| {
            let mut offset = u64::from(word(offset));
            if offset & u64::from(LARGE_OFFSET) != 0 {
                let at = 8 * usize::try_from(offset & u64::from(!LARGE_OFFSET)).ok()?;
                offset = u64::from_be_bytes(large.get(at..at + 8)?.try_into().ok()?);
            }
            Some(Entry {
                id: Oid::from_bytes(id).ok()?,
                crc: word(crc),
                offset,
            })
        };
        parts.map(entry).collect()
    }

    /// How many objects it holds.
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    /// The ids of its objects, sorted.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Oid> {
        self.entries.iter().map(|entry| entry.id)
    }

    /// Its name without folder and ending.
    pub(crate) fn name(&self) -> String {
        self.file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }
}

impl PackWriter {
    /// Begins a pack in a new file.
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let file = create(&path)?;
        let mut file = BufWriter::with_capacity(1 << 18, file);
        // The count is written at the end.
        file.write_all(b"PACK\0\0\0\x02\0\0\0\0").at(&path)?;
        Ok(Self {
            file,
            path,
            offset: HEAD,
            entries: Vec::new(),
        })
    }

    /// Its bytes so far.
    pub(super) fn size(&self) -> u64 {
        self.offset
    }

    /// Adds an object as [`entry`](super::format::entry) makes it. The same object must not be added twice.
    pub(super) fn append(&mut self, id: Oid, entry: &[u8]) -> Result<()> {
        self.file.write_all(entry).at(&self.path)?;
        self.entries.push(Entry {
            id,
            crc: crc32fast::hash(entry),
            offset: self.offset,
        });
        self.offset += entry.len() as u64;
        Ok(())
    }

    /// Adds a loose object, without holding it in memory.
    pub(super) fn append_loose(&mut self, id: Oid, path: &Path) -> Result<()> {
        let file = File::open(path).at(path)?;
        let mut source = BufReader::with_capacity(1 << 16, ZlibDecoder::new(file));
        let Some((kind, size)) = read_head(&mut source) else {
            return Err(Error::corrupt(format!(
                "{} is cut short or damaged",
                path.display()
            )));
        };
        let mut out = Summed::new(&mut self.file);
        let mut write = || -> io::Result<()> {
            out.write_all(&entry_head(kind, size))?;
            let mut packed = ZlibEncoder::new(&mut out, Compression::new(LEVEL));
            io::copy(&mut source, &mut packed)?;
            packed.finish().map(drop)
        };
        write().at(&self.path)?;
        let (crc, count) = (out.crc.finalize(), out.count);
        self.entries.push(Entry {
            id,
            crc,
            offset: self.offset,
        });
        self.offset += count;
        Ok(())
    }

    /// Adds the objects of another pack but for those in `done`, to which they are added.
    ///
    /// # Errors
    /// Of one that is damaged, those objects are added that are whole and come before the damage.
    pub(super) fn append_pack(&mut self, pack: &Pack, done: &mut HashSet<Oid>) -> Result<()> {
        let mut file = File::open(&pack.file).at(&pack.file)?;
        let mut ends: Vec<u64> = pack.entries.iter().map(|entry| entry.offset).collect();
        // After the last object comes the checksum.
        ends.push(file.metadata().at(&pack.file)?.len().saturating_sub(20));
        ends.sort_unstable();
        for entry in pack.entries.iter().filter(|entry| done.insert(entry.id)) {
            // Where it is cut short there is no end.
            let end = ends
                .get(ends.partition_point(|end| *end <= entry.offset))
                .copied();
            let count = end.unwrap_or(entry.offset + 1) - entry.offset;
            file.seek(SeekFrom::Start(entry.offset)).at(&pack.file)?;
            let mut out = Summed::new(&mut self.file);
            io::copy(&mut (&file).take(count), &mut out).at(&self.path)?;
            if out.count != count || out.crc.finalize() != entry.crc {
                done.remove(&entry.id);
                self.file
                    .seek(SeekFrom::Start(self.offset))
                    .at(&self.path)?;
                return Err(Error::corrupt(format!(
                    "{} is cut short or damaged",
                    pack.file.display()
                )));
            }
            self.entries.push(Entry {
                offset: self.offset,
                ..entry.clone()
            });
            self.offset += count;
        }
        Ok(())
    }

    /// Completes the pack and its index in `folder`. No other pack has its name, whatever it holds, so that whoever made it
    /// may keep and remove it without asking who else has the same.
    pub(super) fn finish(mut self, folder: &Path) -> Result<Pack> {
        let path = self.path.clone();
        let checksum = self.complete().at(&path)?;
        create_dir_all(folder).at(folder)?;
        let mut id = Sha1::new()
            .chain_update(checksum)
            .chain_update(std::process::id().to_ne_bytes());
        (0..2).for_each(|_| id.update(fastrand::u64(..).to_ne_bytes()));
        let id = Oid::from_bytes(&id.finalize()).map_err(Error::git("name a pack"))?;
        let name = |end: &str| folder.join(format!("pack-{id}.{end}"));
        let (pack, index) = (name("pack"), name("idx"));
        self.entries.sort_unstable_by_key(|entry| entry.id);
        write_index(&index, &self.entries, &checksum)?;
        std::fs::rename(&path, &pack).at(&pack)?;
        Ok(Pack {
            file: pack,
            index,
            keep: None,
            is_small: false,
            entries: self.entries,
        })
    }

    /// Writes the count and the checksum, which covers the count and so needs a second look at everything.
    fn complete(&mut self) -> io::Result<[u8; 20]> {
        self.file.flush()?;
        let file = self.file.get_mut();
        // What was added of a damaged pack and taken back.
        file.set_len(self.offset)?;
        let count = u32::try_from(self.entries.len()).map_err(io::Error::other)?;
        file.seek(SeekFrom::Start(HEAD - 4))?;
        file.write_all(&count.to_be_bytes())?;
        file.seek(SeekFrom::Start(0))?;
        let mut hash = Sha1::new();
        let mut buffer = vec![0; 1 << 18];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                count => hash.update(&buffer[..count]),
            }
        }
        let checksum: [u8; 20] = hash.finalize().into();
        file.write_all(&checksum)?;
        Ok(checksum)
    }
}

/// Creates a file of an object or pack; one that is there already is an error.
pub(in crate::git) fn create(path: &Path) -> Result<File> {
    let made = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path);
    made.and_then(|file| give_to_sudo_caller(path).map(|()| file))
        .at(path)
}

/// Writes the index of a pack: `entries` are sorted by id.
fn write_index(path: &Path, entries: &[Entry], checksum: &[u8; 20]) -> Result<()> {
    let mut bytes = INDEX_HEAD.to_vec();
    for first in 0..=u8::MAX {
        let count = entries.partition_point(|entry| entry.id.as_bytes()[0] <= first);
        bytes.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
    }
    bytes.extend(entries.iter().flat_map(|entry| entry.id.as_bytes()));
    bytes.extend(entries.iter().flat_map(|entry| entry.crc.to_be_bytes()));
    let mut large = Vec::new();
    for entry in entries {
        let small = u32::try_from(entry.offset).ok();
        let small = small.filter(|offset| offset & LARGE_OFFSET == 0);
        let offset = small.unwrap_or_else(|| {
            large.extend(entry.offset.to_be_bytes());
            LARGE_OFFSET | u32::try_from(large.len() / 8 - 1).unwrap_or(u32::MAX)
        });
        bytes.extend(offset.to_be_bytes());
    }
    bytes.append(&mut large);
    bytes.extend(checksum);
    let own = Sha1::digest(&bytes);
    bytes.extend(own);
    create(path)?.write_all(&bytes).at(path)
}

/// Sums up what is written through it, as the index of a pack does.
struct Summed<W> {
    inner: W,
    crc: crc32fast::Hasher,
    count: u64,
}

impl<W: Write> Summed<W> {
    fn new(inner: W) -> Self {
        let (crc, count) = (crc32fast::Hasher::new(), 0);
        Self { inner, crc, count }
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.crc.update(&bytes[..count]);
        self.count += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The ids of a pack, from its index of version 2: what is read of it is read where it is needed.
pub(in crate::git) struct PackIndex {
    file: File,
    fan_out: Vec<u32>,
}

impl PackIndex {
    /// Bytes before the ids.
    const IDS: u64 = INDEX_HEAD.len() as u64 + 4 * 256;

    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let head: [u8; INDEX_HEAD.len() + 4 * 256] = read_at(&file, 0)?;
        let Some(fan_out) = head.strip_prefix(INDEX_HEAD) else {
            return Err(io::Error::other("not an index of version 2"));
        };
        let word = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |word, byte| word << 8 | u32::from(*byte))
        };
        Ok(Self {
            file,
            fan_out: fan_out.chunks(4).map(word).collect(),
        })
    }

    /// All of them, sorted.
    pub(crate) fn ids(&self) -> io::Result<Vec<Oid>> {
        let mut bytes = vec![0; 20 * self.fan_out[255] as usize];
        self.file.read_exact_at(&mut bytes, Self::IDS)?;
        let ids = bytes.chunks(20).map(Oid::from_bytes);
        ids.collect::<Result<_, _>>().map_err(io::Error::other)
    }

    /// Which one in their order an id is.
    fn position(&self, oid: Oid) -> io::Result<Option<u64>> {
        let first = usize::from(oid.as_bytes()[0]);
        let low = first
            .checked_sub(1)
            .map_or(0, |before| self.fan_out[before]);
        let (mut low, mut high) = (u64::from(low), u64::from(self.fan_out[first]));
        while low < high {
            let middle = low + (high - low) / 2;
            let id: [u8; 20] = read_at(&self.file, Self::IDS + 20 * middle)?;
            match id.as_slice().cmp(oid.as_bytes()) {
                Ordering::Equal => return Ok(Some(middle)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    /// Whether the pack has an object.
    pub(crate) fn holds(&self, oid: Oid) -> io::Result<bool> {
        self.position(oid).map(|found| found.is_some())
    }

    /// Where an object begins in the pack.
    pub(crate) fn offset(&self, oid: Oid) -> io::Result<Option<u64>> {
        let Some(position) = self.position(oid)? else {
            return Ok(None);
        };
        // After the ids come a checksum and an offset of each, then those offsets that are large.
        let count = u64::from(self.fan_out[255]);
        let at = Self::IDS + 24 * count + 4 * position;
        let offset = u32::from_be_bytes(read_at(&self.file, at)?);
        if offset & LARGE_OFFSET == 0 {
            return Ok(Some(offset.into()));
        }
        let large = Self::IDS + 28 * count + 8 * u64::from(offset & !LARGE_OFFSET);
        read_at(&self.file, large).map(|offset| Some(u64::from_be_bytes(offset)))
    }
}

fn read_at<const N: usize>(file: &File, at: u64) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, at).map(|()| bytes)
}

/// Below this many objects write loose objects, above it a pack (git: `transfer.unpackLimit`).
pub(super) const UNPACK_LIMIT: usize = 100;

/// Content that is kept in memory, in bytes.
pub(super) const IN_MEMORY: usize = 8 << 20;

/// The names of the packs in a folder of objects.
pub(super) fn pack_names(objects: &Path) -> BTreeSet<OsString> {
    let entries = fs::read_dir(objects.join("pack"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.file_name())
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "pack"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_offsets_stand_in_their_own_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.idx");
        let id = |byte: u8| Oid::from_bytes(&[byte; 20]).unwrap();
        let entries = [
            Entry {
                id: id(1),
                crc: 1,
                offset: 12,
            },
            Entry {
                id: id(2),
                crc: 2,
                offset: 1 << 31,
            },
            Entry {
                id: id(9),
                crc: 3,
                offset: 5 << 32,
            },
        ];
        write_index(&path, &entries, &[7; 20]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let after = 8 + 1024 + 3 * 24;
        let words: Vec<u32> = bytes[after..after + 12]
            .chunks(4)
            .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [12, LARGE_OFFSET, LARGE_OFFSET | 1]);
        assert_eq!(
            bytes[after + 12..after + 28],
            [(1_u64 << 31).to_be_bytes(), (5_u64 << 32).to_be_bytes()].concat()
        );
        assert_eq!(bytes.len(), after + 28 + 40);
        let read = Pack::entries(&bytes).unwrap();
        assert!(
            read.iter()
                .zip(&entries)
                .all(|(a, b)| (a.id, a.crc, a.offset) == (b.id, b.crc, b.offset))
        );
        assert_eq!(read.len(), 3);
        assert!(Pack::entries(&bytes[..after]).is_none());
    }
}
