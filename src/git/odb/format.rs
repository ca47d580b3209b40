//! How objects stand in files: loose ones, and the entries of a pack.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use git2::{ObjectType, Oid};
use sha1::{Digest as _, Sha1};

use crate::git::base::paths::object_header;

/// How much is done to deflate an object: it becomes as small as what `git add` makes of it with its level of 1.
pub(super) const LEVEL: u32 = 2;

/// The number of a blob in a pack.
const BLOB: u8 = 3;

/// Deflates one object after the other.
pub(in crate::git) type Deflate = ZlibEncoder<Vec<u8>>;

/// A new [`Deflate`].
pub(in crate::git) fn deflate() -> Deflate {
    ZlibEncoder::new(Vec::new(), Compression::new(LEVEL))
}

/// An object as it stands in a pack: kind and size, then the deflated content.
pub(in crate::git) fn entry(
    deflate: &mut Deflate,
    kind: ObjectType,
    data: &[u8],
) -> io::Result<Vec<u8>> {
    // What is deflated comes behind it.
    deflate
        .get_mut()
        .extend(entry_head(kind, data.len() as u64));
    deflate.write_all(data)?;
    deflate.reset(Vec::new())
}

/// What an object in a pack begins with.
pub(super) fn entry_head(kind: ObjectType, mut size: u64) -> Vec<u8> {
    let number = match kind {
        ObjectType::Commit => 1,
        ObjectType::Tree => 2,
        ObjectType::Tag => 4,
        _ => BLOB,
    };
    let mut out = Vec::new();
    // Four bits of the size beside the kind, then seven a byte; the highest bit says that more follow.
    let mut byte = (number << 4) | (size.to_le_bytes()[0] & 0xf);
    size >>= 4;
    while size > 0 {
        out.push(byte | 0x80);
        byte = size.to_le_bytes()[0] & 0x7f;
        size >>= 7;
    }
    out.push(byte);
    out
}

/// An object as it stands in a file of its own: kind and size as text, then the content, all deflated.
pub(in crate::git) fn loose(
    deflate: &mut Deflate,
    kind: ObjectType,
    data: &[u8],
) -> io::Result<Vec<u8>> {
    deflate.write_all(object_header(kind, data.len() as u64).as_bytes())?;
    deflate.write_all(data)?;
    deflate.reset(Vec::new())
}

pub(super) type Inflated = BufReader<ZlibDecoder<File>>;

/// Reads what a loose object begins with: kind and size.
pub(super) fn read_head(reader: &mut Inflated) -> Option<(ObjectType, u64)> {
    let mut head = Vec::new();
    reader.take(32).read_until(0, &mut head).ok()?;
    let (kind, size) = std::str::from_utf8(head.strip_suffix(&[0])?)
        .ok()?
        .split_once(' ')?;
    Some((ObjectType::from_str(kind)?, size.parse().ok()?))
}

/// Reads what an entry of a pack begins with: the size of a blob that stands there as a whole, `None` of anything else.
pub(super) fn whole_blob(reader: &mut impl Read) -> io::Result<Option<u64>> {
    let mut byte = || -> io::Result<u8> {
        let mut byte = [0];
        reader.read_exact(&mut byte).map(|()| byte[0])
    };
    let first = byte()?;
    let (mut size, mut shift, mut more) = (u64::from(first & 0xf), 4, first & 0x80 != 0);
    while more && shift < u64::BITS {
        let next = byte()?;
        size |= u64::from(next & 0x7f) << shift;
        (shift, more) = (shift + 7, next & 0x80 != 0);
    }
    Ok((first >> 4 & 7 == BLOB && !more).then_some(size))
}

/// Whether a loose object is what its id says. One that may not be read is not: it is no use to whoever asks.
pub(super) fn is_whole(path: &Path, oid: Oid) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
        opened => opened?,
    };
    let mut content = ZlibDecoder::new(file);
    let mut hash = Sha1::new();
    let mut buffer = vec![0; 1 << 15];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(hash.finalize()[..] == *oid.as_bytes()),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error().is_some() => return Err(error),
            Err(_) => return Ok(false),
        }
    }
}

/// Where an object of its own lies below a folder of objects.
pub(in crate::git) fn loose_path(objects: &Path, oid: Oid) -> PathBuf {
    let hex = oid.to_string();
    objects.join(&hex[..2]).join(&hex[2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_deflated_one_after_the_other() {
        let mut deflate = deflate();
        for size in [0, 1, 15, 16, 2047, 2048, 1 << 17] {
            let data: Vec<u8> = (0..size).map(|_| fastrand::u8(..)).collect();
            let inflated = |packed: &[u8]| {
                let mut back = Vec::new();
                ZlibDecoder::new(packed).read_to_end(&mut back).unwrap();
                back
            };
            let packed = loose(&mut deflate, ObjectType::Blob, &data).unwrap();
            let header = object_header(ObjectType::Blob, size);
            assert_eq!(inflated(&packed), [header.as_bytes(), &data].concat());
            let packed = entry(&mut deflate, ObjectType::Blob, &data).unwrap();
            let head = entry_head(ObjectType::Blob, size);
            assert!(packed.starts_with(&head));
            assert_eq!(inflated(&packed[head.len()..]), data);
        }
    }
}
