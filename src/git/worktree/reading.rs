//! Finds the blob of every file whose content is not known, in several threads.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use git2::Oid;

use super::cache::{Cache, flag};
use super::file_io::{self, Read};
use super::index_trust::IndexTrust;
use super::scan::{Content, FileEntry, Scan};
use crate::git::base::error::Result;
use crate::git::base::modes::git_mode;
use crate::git::base::openat::{self, FileStat};
use crate::git::base::work_queue;
use crate::git::index::user_index::UserIndex;
use crate::git::odb::database::Database;
use crate::git::odb::objects::ObjectWriter;
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
        content == Content::Known(item.oid) && git_mode(&item.stat) == git_mode(stat)
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
                outcomes.push(Outcome {
                    at: *at,
                    content: Content::Known(oid),
                    stat: item.stat,
                    failure: None,
                    unsettled: false,
                });
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
                Some((_, Some(dir))) => file_io::store(dir, self.scan.name(item), self.writer)?,
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
    match read {
        Read::Stored(oid, stat) => Outcome {
            at,
            content: Content::Known(oid),
            stat,
            failure: None,
            unsettled: false,
        },
        Read::Unsettled(oid, stat) => Outcome {
            at,
            content: Content::Known(oid),
            stat,
            failure: None,
            unsettled: true,
        },
        Read::Gone => Outcome {
            at,
            content: Content::Lost,
            stat: seen,
            failure: None,
            unsettled: false,
        },
        Read::Failed(reason) => {
            let failure = PathReason {
                path: path(),
                reason,
                size: Some(seen.size),
                files: None,
            };
            Outcome {
                at,
                content: Content::Lost,
                stat: seen,
                failure: Some(failure),
                unsettled: false,
            }
        }
    }
}
