//! Finds the blob of every file whose content is not known, in several threads, and notices when a file changes meanwhile.
//!
//! git's index knows the blob that git made of a file. Where a filter, an encoding or a conversion of line ends lies between
//! the two, that blob is not what the file holds, and the index is not asked.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::ignore_rules::git_home;
use git2::{ObjectType, Oid};
use rustix::fs::FileType;

use super::cache::{Cache, flag};
use super::scan::{Content, FileEntry, Scan};
use crate::git::base::openat::{self, io_error};
use crate::git::base::{FileStat, Result, work_queue};
use crate::git::index::user_index::UserIndex;
use crate::git::odb::{Database, ObjectWriter};
use crate::git::repo::repository::Repo;
use crate::model::path::{PathReason, RepoPath, UNREADABLE};

/// How many files a thread takes at a time.
const PORTION: usize = 64;

/// A file to look at: the places of its folder and of itself in the scan.
type At = (usize, usize);

/// What became of one.
struct Outcome {
    at: At,
    content: Content,
    stat: FileStat,
    failure: Option<PathReason>,
    unsettled: bool,
}

/// What the names of the files beside a database end with.
const BESIDE: [&[u8]; 3] = [b"-wal", b"-shm", b"-journal"];
/// What the size of a database is a multiple of.
const PAGE: u64 = 512;
/// How often files that do not fit each other are read again.
const AGAIN: usize = 2;

/// [`read_files`], and again what belongs to a database that was written meanwhile: what still does not fit is unsettled.
pub(in crate::git) fn read_all(
    repo: &Repo,
    writer: &ObjectWriter,
    cache: &Cache,
    index: Option<&UserIndex>,
    scan: &mut Scan,
) -> Result<()> {
    let was_read: Vec<bool> = scan
        .items
        .iter()
        .map(|item| !matches!(item.content, Content::Known(_)))
        .collect();
    read_files(repo, writer, cache, index, scan)?;
    for _ in 0..AGAIN {
        let moved = moved_databases(repo, scan, &was_read)?;
        for item in moved.iter().flat_map(|one| &one.items) {
            let item = &mut scan.items[*item];
            (item.content, item.flags) = (Content::Unread, item.flags & !flag::SAME);
        }
        if moved.is_empty() {
            return Ok(());
        }
        read_files(repo, writer, cache, index, scan)?;
    }
    let moved = moved_databases(repo, scan, &was_read)?;
    scan.unsettled
        .extend(moved.into_iter().flat_map(|one| one.paths));
    Ok(())
}

/// A database and the files beside it, which are not what they were when they were read.
struct Moved {
    /// Their places in the scan.
    items: Vec<usize>,
    paths: Vec<RepoPath>,
}

/// The databases of which a file was read that are not as they were read. A database is what a journal lies beside, and what
/// may be one by its size.
fn moved_databases(repo: &Repo, scan: &Scan, was_read: &[bool]) -> Result<Vec<Moved>> {
    let mut moved = Vec::new();
    let root = openat::open_root(repo.workdir())?;
    for folder in &scan.folders {
        let items = || folder.items.clone();
        let base = |item: usize| {
            let name = scan.name(&scan.items[item]);
            BESIDE
                .iter()
                .find_map(|end| name.strip_suffix(*end))
                .filter(|base| !base.is_empty())
        };
        let may_be_one = |item: usize| {
            let size = scan.items[item].stat.size;
            size > 0 && size.is_multiple_of(PAGE)
        };
        let mut bases: Vec<&[u8]> = items()
            .filter(|item| was_read[*item])
            .filter_map(base)
            .collect();
        let read = items().filter(|item| was_read[*item] && may_be_one(*item));
        bases.extend(read.map(|item| scan.name(&scan.items[item])));
        bases.sort_unstable();
        bases.dedup();
        if bases.is_empty() {
            continue;
        }
        let Ok(dir) = openat::open_path(&root, &folder.path) else {
            continue;
        };
        for base in bases {
            let names =
                std::iter::once(base.to_vec()).chain(BESIDE.iter().map(|end| [base, end].concat()));
            let mut one = Moved {
                items: Vec::new(),
                paths: Vec::new(),
            };
            let mut is_moved = false;
            for name in names {
                let now = openat::stat(&dir, &name).ok().flatten();
                let at = folder.items.start
                    + match scan
                        .items(folder)
                        .binary_search_by(|item| scan.name(item).cmp(&name))
                    {
                        Ok(at) => at,
                        // One that is ignored, or no file, is no part of the capture.
                        Err(_)
                            if now.is_none()
                                || scan.others(folder).any(|(other, _)| other == name) =>
                        {
                            continue;
                        }
                        Err(_) => {
                            is_moved = true;
                            one.paths.push(folder.path.join(&name));
                            continue;
                        }
                    };
                let item = &scan.items[at];
                let then = if item.content == Content::Lost {
                    None
                } else {
                    Some(item.stat)
                };
                is_moved |= now != then;
                one.items.push(at);
                one.paths.push(folder.path.join(&name));
            }
            if is_moved {
                moved.push(one);
            }
        }
    }
    Ok(moved)
}

/// Reads what has to be read; after it, every item of the scan is `Known` or `Lost`.
fn read_files(
    repo: &Repo,
    writer: &ObjectWriter,
    cache: &Cache,
    index: Option<&UserIndex>,
    scan: &mut Scan,
) -> Result<()> {
    let portions = portions(scan);
    if portions.is_empty() {
        return Ok(());
    }
    let trust = match index {
        Some(index)
            if scan
                .items
                .iter()
                .any(|item| matches!(item.content, Content::FromIndex(_))) =>
        {
            IndexTrust::of(repo, scan, index)?
        }
        _ => IndexTrust::Never,
    };
    let reader = Reader {
        root: openat::open_root(repo.workdir())?,
        writer,
        database: if trust == IndexTrust::SameSize {
            Some(Database::open(repo)?)
        } else {
            None
        },
        trust,
        scan,
    };
    let threads = work_queue::threads().min(portions.len());
    let outcomes = work_queue::run(portions, threads, |portion, _, outcomes| {
        reader.portion(&portion, outcomes)
    })?;
    drop(reader);
    for Outcome {
        at: (folder, item),
        content,
        stat,
        failure,
        unsettled,
    } in outcomes.into_iter().flatten()
    {
        if unsettled {
            let path = scan.folders[folder].path.join(scan.name(&scan.items[item]));
            scan.unsettled.push(path);
        }
        let is_same = cache.alive && is_cached(cache, scan, (folder, item), content, &stat);
        let item = &mut scan.items[item];
        (item.content, item.stat) = (content, stat);
        item.flags |= if is_same { flag::SAME } else { 0 };
        if let Some(failure) = failure {
            scan.partial = true;
            scan.skipped.push(failure);
        }
    }
    Ok(())
}

/// Whether the cached tree has this content and git file mode for the file.
fn is_cached(cache: &Cache, scan: &Scan, at: At, content: Content, stat: &FileStat) -> bool {
    let name = scan.name(&scan.items[at.1]);
    let folder = cache.folder(scan.folders[at.0].path.as_bytes());
    let cached = folder.and_then(|folder| folder.items().find(|item| item.name == name));
    cached.is_some_and(|item| {
        content == Content::Known(item.oid) && item.stat.git_mode() == stat.git_mode()
    })
}

/// What has to be examined; files of one folder stay together.
fn portions(scan: &Scan) -> Vec<Vec<At>> {
    let mut portions: Vec<Vec<At>> = Vec::new();
    if scan
        .items
        .iter()
        .all(|item| matches!(item.content, Content::Known(_)))
    {
        return portions;
    }
    for (at, folder) in scan.folders.iter().enumerate() {
        for item in folder
            .items
            .clone()
            .filter(|item| !matches!(scan.items[*item].content, Content::Known(_)))
        {
            match portions.last_mut() {
                Some(last) if last.len() < PORTION => last.push((at, item)),
                _ => portions.push(vec![(at, item)]),
            }
        }
    }
    portions
}

struct Reader<'a> {
    root: OwnedFd,
    writer: &'a ObjectWriter,
    database: Option<Database<'a>>,
    trust: IndexTrust,
    scan: &'a Scan,
}

impl Reader<'_> {
    fn portion(&self, portion: &[At], outcomes: &mut Vec<Outcome>) -> Result<()> {
        let mut open: Option<(usize, Option<OwnedFd>)> = None;
        let trusted = self.trusted(portion);
        for at in portion {
            let folder = &self.scan.folders[at.0];
            let item = &self.scan.items[at.1];
            let known = match item.content {
                Content::Cached(oid) | Content::Known(oid) => {
                    Some(oid).filter(|oid| self.writer.holds(*oid).unwrap_or(false))
                }
                Content::FromIndex(oid) => Some(oid).filter(|oid| trusted.contains(oid)),
                Content::Unread | Content::Lost => None,
            };
            if let Some(oid) = known {
                let read = Read::Stored(oid, item.stat);
                outcomes.push(outcome(*at, item.stat, read, RepoPath::default));
                continue;
            }
            if open.as_ref().is_none_or(|(known, _)| *known != at.0) {
                let opened = openat::open_path(&self.root, &folder.path);
                let opened = match opened {
                    Err(error) if openat::is_exhausted(&error) => {
                        return Err(openat::io_error(&folder.path, error));
                    }
                    opened => opened.ok(),
                };
                open = Some((at.0, opened));
            }
            let read = match &open {
                Some((_, Some(dir))) => store_file(dir, self.scan.name(item), self.writer)?,
                _ => Read::Failed(format!("{UNREADABLE}: its folder changed meanwhile")),
            };
            let path = || folder.path.join(self.scan.name(item));
            outcomes.push(outcome(*at, item.stat, read, path));
        }
        Ok(())
    }

    /// The blobs of the index that are the content of files whose metadata git knows.
    fn trusted(&self, portion: &[At]) -> HashSet<Oid> {
        let expected = |at: &At| match self.scan.items[at.1] {
            FileEntry {
                content: Content::FromIndex(oid),
                stat,
                ..
            } => Some((oid, stat.size)),
            _ => None,
        };
        let same_size = |(oid, size): &(Oid, u64)| match (self.trust, &self.database) {
            (IndexTrust::Exact, _) => true,
            (IndexTrust::SameSize, Some(database)) => {
                database.size(*oid).is_ok_and(|stored| stored == *size)
            }
            _ => false,
        };
        let oids: Vec<Oid> = portion
            .iter()
            .filter_map(expected)
            .filter(same_size)
            .map(|(oid, _)| oid)
            .collect();
        // The index itself keeps them from `git gc`.
        let there = self
            .writer
            .contained(&oids)
            .unwrap_or_else(|_| vec![false; oids.len()]);
        oids.into_iter()
            .zip(there)
            .filter_map(|(oid, there)| there.then_some(oid))
            .collect()
    }
}

fn outcome(at: At, seen: FileStat, read: Read, path: impl Fn() -> RepoPath) -> Outcome {
    let unsettled = matches!(read, Read::Unsettled(..));
    let (content, stat, failure) = match read {
        Read::Stored(oid, stat) | Read::Unsettled(oid, stat) => (Content::Known(oid), stat, None),
        Read::Gone => (Content::Lost, seen, None),
        Read::Failed(reason) => {
            let failure = PathReason {
                size: Some(seen.size),
                ..PathReason::new(path(), reason)
            };
            (Content::Lost, seen, Some(failure))
        }
    };
    Outcome {
        at,
        content,
        stat,
        failure,
        unsettled,
    }
}

/// Up to this size a file is read at once; a larger one is streamed.
const WHOLE: u64 = 8 << 20;
/// How often a file that changes is read.
const TRIES: usize = 3;

/// What became of a file.
#[derive(Debug)]
pub(in crate::git) enum Read {
    /// Its blob, and its metadata at the time.
    Stored(Oid, FileStat),
    /// The same of one that changes all the time. Two reads of its first bytes, as many as it had when it was opened, were
    /// alike: of a file that only grows it is what was there then.
    Unsettled(Oid, FileStat),
    /// It is gone, or is no file or symlink any more.
    Gone,
    /// It cannot be captured; the reason.
    Failed(String),
}

/// Reads a file or symlink and writes its blob.
pub(in crate::git) fn store_file(
    dir: &OwnedFd,
    name: &[u8],
    writer: &ObjectWriter,
) -> Result<Read> {
    let mut last = None;
    for _ in 0..TRIES {
        match try_store(dir, name, writer) {
            Ok(stored) => match stored? {
                Some((oid, stat, true)) => return Ok(Read::Stored(oid, stat)),
                Some((oid, stat, false)) => last = Some((oid, stat)),
                None => {}
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Read::Gone),
            Err(error) if openat::is_exhausted(&error) => {
                return Err(io_error(&RepoPath::new(name), error));
            }
            Err(error) => return Ok(Read::Failed(format!("{UNREADABLE}: {error}"))),
        }
    }
    Ok(match last {
        Some((oid, stat)) => Read::Unsettled(oid, stat),
        None => Read::Failed(format!("{UNREADABLE}: changed while it was read")),
    })
}

/// One try: the blob, the metadata of when it was opened, and whether it is like that still; `None` where what was read may be
/// a mix of several states. The outer error is the file's, the inner one the database's.
fn try_store(
    dir: &OwnedFd,
    name: &[u8],
    writer: &ObjectWriter,
) -> io::Result<Result<Option<(Oid, FileStat, bool)>>> {
    let Some(before) = openat::stat(dir, name)? else {
        return Err(io::ErrorKind::NotFound.into());
    };
    if before.kind() == FileType::Symlink {
        let target = openat::read_link(dir, name)?;
        let same = openat::stat(dir, name)? == Some(before);
        return Ok(writer
            .write(ObjectType::Blob, &target)
            .map(|oid| same.then_some((oid, before, true))));
    }
    if before.kind() != FileType::RegularFile {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut file = openat::open_file(dir, name)?;
    let opened = openat::stat_open(&file)?;
    let read = |file: &mut File| -> io::Result<Result<Option<Oid>>> {
        file.rewind()?;
        let mut file = file.take(opened.size);
        if opened.size > WHOLE {
            return writer.write_stream(&mut file, opened.size);
        }
        let mut data = Vec::with_capacity(usize::try_from(opened.size).unwrap_or(0));
        file.read_to_end(&mut data)?;
        if data.len() as u64 != opened.size {
            return Ok(Ok(None));
        }
        Ok(writer.write(ObjectType::Blob, &data).map(Some))
    };
    let oid = match read(&mut file)? {
        Ok(Some(oid)) => oid,
        Ok(None) => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    if openat::stat_open(&file)? == opened {
        return Ok(Ok(Some((oid, opened, true))));
    }
    // What it was when it was opened is whole where reading it again gives the same.
    Ok(read(&mut file)?.map(|again| (again == Some(oid)).then_some((oid, opened, false))))
}

/// The name of a file with attributes.
pub(in crate::git) const ATTRIBUTES: &[u8] = b".gitattributes";

/// The attribute files outside the work tree: the system's, the user's, the repository's. One that cannot be read is empty.
pub(in crate::git) fn outside_files(repo: &Repo) -> Result<[Vec<u8>; 3]> {
    let configured = repo.config()?.get_path("core.attributesfile").ok();
    let own = configured.or_else(|| git_home("attributes"));
    let files = [
        Some(PathBuf::from("/etc/gitattributes")),
        own,
        Some(repo.common_dir().join("info/attributes")),
    ];
    Ok(files.map(|path| {
        path.and_then(|path| fs::read(path).ok())
            .unwrap_or_default()
    }))
}

/// How far the index's blobs are the files' content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IndexTrust {
    /// Nothing converts anything.
    Exact,
    /// Line ends may be converted: that changes the size, so a blob as large as the file is its content.
    SameSize,
    /// Content may be anything.
    Never,
}

impl IndexTrust {
    /// Looks at every attribute file that the scan met, those outside the work tree, and the configuration.
    pub(super) fn of(repo: &Repo, scan: &Scan, index: &UserIndex) -> Result<Self> {
        let converts = repo
            .config()?
            .get_string("core.autocrlf")
            .is_ok_and(|value| !value.eq_ignore_ascii_case("false"));
        let mut trust = if converts {
            Self::SameSize
        } else {
            Self::Exact
        };
        for text in outside_files(repo)? {
            trust = trust.max(Self::in_text(&text));
        }
        let root = openat::open_root(repo.workdir())?;
        let mut met = 0;
        for folder in &scan.folders {
            for _ in scan
                .items(folder)
                .iter()
                .filter(|item| scan.name(item) == ATTRIBUTES)
            {
                let read = openat::open_path(&root, &folder.path)
                    .and_then(|dir| openat::open_file(&dir, ATTRIBUTES))
                    .and_then(|mut file| {
                        let mut text = Vec::new();
                        file.read_to_end(&mut text).map(|_| text)
                    });
                // What cannot be read may say anything.
                trust = trust.max(read.map_or(Self::Never, |text| Self::in_text(&text)));
                met += usize::from(index.has(folder.path.join(ATTRIBUTES).as_bytes()));
            }
        }
        // git takes one that is only in the index from there.
        Ok(if index.named(ATTRIBUTES).count() > met {
            Self::Never
        } else {
            trust
        })
    }

    /// What the lines of an attribute file allow.
    fn in_text(text: &[u8]) -> Self {
        let words = text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii_start().starts_with(b"#"));
        let words = words.flat_map(|line| line.split(u8::is_ascii_whitespace));
        let one = |word: &[u8]| {
            // A leading `-` or `!` takes an attribute away.
            match word.split(|byte| *byte == b'=').next().unwrap_or_default() {
                b"filter" | b"ident" | b"working-tree-encoding" => Self::Never,
                b"text" | b"crlf" | b"eol" => Self::SameSize,
                _ => Self::Exact,
            }
        };
        words.map(one).max().unwrap_or(Self::Exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_convert_are_found() {
        let of = |text: &str| IndexTrust::in_text(text.as_bytes());
        assert_eq!(
            of("*.c diff=cpp\n# text\n*.png binary -text\n"),
            IndexTrust::Exact
        );
        assert_eq!(of("* text=auto\n"), IndexTrust::SameSize);
        assert_eq!(of("*.bat\teol=crlf\n"), IndexTrust::SameSize);
        assert_eq!(of("* text\n*.bin filter=lfs diff=lfs"), IndexTrust::Never);
        assert_eq!(of("[attr]odd ident\n"), IndexTrust::Never);
        assert_eq!(of("*.txt working-tree-encoding=UTF-16"), IndexTrust::Never);
    }
}
