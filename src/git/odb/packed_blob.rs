//! A blob out of a pack, without holding it in memory: where it stands there as a whole, not as a difference to another.
//!
//! git's library has no stream for that. Whatever cannot be read here is left to it: it says what is wrong.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use git2::Oid;

use super::format::{Inflated, whole_blob};
use super::pack::{INDEX_HEAD, LARGE};
use super::pack_folder;

/// Bytes of the table of how many ids begin with up to which byte.
const FAN_OUT: u64 = 4 * 256;

/// Opens a blob of the packs in these folders of objects, and says its size in bytes. `None` where none of them has it as a
/// whole, and undamaged as far as its pack can tell.
pub(super) fn open(folders: &[PathBuf], oid: Oid) -> Option<(Inflated, u64)> {
    let mut packs = folders.iter().flat_map(|folder| {
        let names = pack_folder::names(folder).into_iter();
        names.map(|name| folder.join("pack").join(name))
    });
    packs.find_map(|pack| open_in(&pack, oid).ok().flatten())
}

fn open_in(pack: &Path, oid: Oid) -> io::Result<Option<(Inflated, u64)>> {
    let index = pack.with_extension("idx");
    if !(fs::metadata(&index)?.is_file() && fs::metadata(pack)?.is_file()) {
        return Ok(None);
    }
    let Some(offset) = offset_of(&File::open(index)?, oid)? else {
        return Ok(None);
    };
    let mut file = File::open(pack)?;
    file.seek(SeekFrom::Start(offset))?;
    let Some(size) = whole_blob(&mut file)? else {
        return Ok(None);
    };
    // Once to nowhere: what was written of a damaged one could not be taken back, and another pack may have it.
    let begin = file.stream_position()?;
    let is_whole = io::copy(
        &mut ZlibDecoder::new(&file).take(size.saturating_add(1)),
        &mut io::sink(),
    )? == size;
    file.seek(SeekFrom::Start(begin))?;
    Ok(is_whole.then(|| {
        (
            BufReader::with_capacity(1 << 16, ZlibDecoder::new(file)),
            size,
        )
    }))
}

/// Where an object begins in the pack that this is the index of.
fn offset_of(index: &File, oid: Oid) -> io::Result<Option<u64>> {
    if read_at::<8>(index, 0)? != *INDEX_HEAD {
        return Ok(None);
    }
    let fan_out = INDEX_HEAD.len() as u64;
    let up_to = |byte: u8| word_at(index, fan_out + 4 * u64::from(byte));
    let first = oid.as_bytes()[0];
    let (mut low, mut high) = (first.checked_sub(1).map_or(Ok(0), up_to)?, up_to(first)?);
    let (ids, count) = (fan_out + FAN_OUT, u64::from(up_to(u8::MAX)?));
    while low < high {
        let middle = low + (high - low) / 2;
        match read_at::<20>(index, ids + 20 * u64::from(middle))?
            .as_slice()
            .cmp(oid.as_bytes())
        {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => {
                // After the ids come a checksum and an offset of each, then those offsets that are large.
                let offset = word_at(index, ids + 24 * count + 4 * u64::from(middle))?;
                let large = ids + 28 * count + 8 * u64::from(offset & !LARGE);
                let is_large = offset & LARGE != 0;
                return Ok(Some(if is_large {
                    u64::from_be_bytes(read_at(index, large)?)
                } else {
                    offset.into()
                }));
            }
        }
    }
    Ok(None)
}

fn word_at(file: &File, at: u64) -> io::Result<u32> {
    read_at(file, at).map(u32::from_be_bytes)
}

fn read_at<const N: usize>(file: &File, at: u64) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, at).map(|()| bytes)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn git(folder: &Path, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=t", "-c", "user.email=t@t"])
            .args(args)
            .current_dir(folder)
            .stderr(Stdio::null());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
        {
            command.env_remove(name);
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{args:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    #[test]
    fn what_git_packed_as_a_whole_is_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q"]);
        let mut text: Vec<u8> = (0..200_000).map(|_| fastrand::u8(..)).collect();
        // Versions of one file become differences; the sizes need one byte in the pack, and more.
        for size in [0, 1, 15, 16, 2047, 2048, 262_143, 262_144, 700_000] {
            std::fs::write(folder.path().join("large"), &text).unwrap();
            std::fs::write(
                folder.path().join(size.to_string()),
                fastrand::u64(..).to_ne_bytes().repeat(size),
            )
            .unwrap();
            text.truncate(199_000 - size / 10);
            git(folder.path(), &["add", "-A"]);
            git(folder.path(), &["commit", "-q", "-m", "a"]);
        }
        git(folder.path(), &["repack", "-adfq"]);
        let objects = folder.path().join(".git/objects");
        let pack = objects
            .join("pack")
            .join(pack_folder::names(&objects).first().unwrap());
        let (mut whole, mut others) = (0, 0);
        for line in git(
            folder.path(),
            &["verify-pack", "-v", pack.to_str().unwrap()],
        )
        .lines()
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            // id, kind, size, size in the pack, offset; of a difference also how deep and of what.
            let &[id, kind, size, _, _, ref base @ ..] = words.as_slice() else {
                continue;
            };
            let Ok(oid) = Oid::from_str(id).map_err(drop) else {
                continue;
            };
            let opened = open(&[folder.path().to_owned(), objects.clone()], oid);
            if kind == "blob" && base.is_empty() {
                let (mut reader, said) = opened.unwrap();
                let mut content = Vec::new();
                reader.read_to_end(&mut content).unwrap();
                assert_eq!(
                    (said.to_string().as_str(), content.len() as u64),
                    (size, said)
                );
                assert_eq!(
                    crate::git::base::object_id::id_of(git2::ObjectType::Blob, &content).unwrap(),
                    oid
                );
                whole += 1;
            } else {
                assert!(opened.is_none(), "{line}");
                others += 1;
            }
        }
        assert!(whole >= 9 && others >= 20, "{whole} {others}");
        // Of two packs that have it, one is damaged: whichever comes first.
        let oid = Oid::from_str(git(folder.path(), &["rev-parse", "HEAD:700000"]).trim()).unwrap();
        let copied = |name: &str| {
            let copy = objects.join("pack").join(name);
            for end in ["pack", "idx"] {
                std::fs::copy(pack.with_extension(end), copy.with_extension(end)).unwrap();
            }
            copy
        };
        let all = std::fs::read(&pack).unwrap();
        let at = usize::try_from(
            offset_of(&File::open(pack.with_extension("idx")).unwrap(), oid)
                .unwrap()
                .unwrap(),
        )
        .unwrap();
        let damaged = [&all[..at + 8], &[0; 8], &all[at + 16..]].concat();
        for (name, bytes) in [
            ("pack-0.pack", &all[..at + 20]),
            ("pack-z.pack", &all[..at + 20]),
            ("pack-0.pack", &damaged),
        ] {
            let copy = copied(name);
            std::fs::remove_file(&copy).unwrap();
            std::fs::write(&copy, bytes).unwrap();
            assert!(open_in(&copy, oid).ok().flatten().is_none(), "{name}");
            assert_eq!(
                open(std::slice::from_ref(&objects), oid).unwrap().1,
                5_600_000,
                "{name}"
            );
            std::fs::remove_file(&copy).unwrap();
        }
        assert!(open(&[objects], Oid::from_bytes(&[7; 20]).unwrap()).is_none());
    }
}
