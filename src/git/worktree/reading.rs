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
}

/// Reads what has to be read; after it, every item of the scan is `Known` or `Lost`.
pub(in crate::git) fn read_files(
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
        Some(index) if scan.items.iter().any(|item| matches!(item.content, Content::FromIndex(_))) => {
            IndexTrust::of(repo, scan, index)?
        }
        _ => IndexTrust::Never,
    };
    let reader = Reader {
        root: openat::open_root(repo.workdir())?,
        writer,
        database: if trust == IndexTrust::SameSize { Some(Database::open(repo)?) } else { None },
        trust,
        scan,
    };
    let threads = work_queue::threads().min(portions.len());
    let outcomes = work_queue::run(portions, threads, |portion, _, outcomes| reader.portion(&portion, outcomes))?;
    drop(reader);
    for Outcome { at: (folder, item), content, stat, failure } in outcomes.into_iter().flatten() {
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
    cached.is_some_and(|item| content == Content::Known(item.oid) && git_mode(&item.stat) == git_mode(stat))
}

/// What has to be examined; files of one folder stay together.
fn portions(scan: &Scan) -> Vec<Vec<At>> {
    let mut portions: Vec<Vec<At>> = Vec::new();
    if scan.items.iter().all(|item| matches!(item.content, Content::Known(_))) {
        return portions;
    }
    for (at, folder) in scan.folders.iter().enumerate() {
        for item in folder.items.clone().filter(|item| !matches!(scan.items[*item].content, Content::Known(_))) {
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
                outcomes.push(Outcome { at: *at, content: Content::Known(oid), stat: item.stat, failure: None });
                continue;
            }
            if open.as_ref().is_none_or(|(known, _)| *known != at.0) {
                let opened = openat::open_path(&self.root, &folder.path);
                let opened = match opened {
                    Err(error) if openat::is_exhausted(&error) => return Err(openat::io_error(&folder.path, error)),
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
            FileEntry { content: Content::FromIndex(oid), stat, .. } => Some((oid, stat.size)),
            _ => None,
        };
        let same_size = |(oid, size): &(Oid, u64)| match (self.trust, &self.database) {
            (IndexTrust::Exact, _) => true,
            (IndexTrust::SameSize, Some(database)) => database.size(*oid).is_ok_and(|stored| stored == *size),
            _ => false,
        };
        let oids: Vec<Oid> = portion.iter().filter_map(expected).filter(same_size).map(|(oid, _)| oid).collect();
        // The index itself keeps them from `git gc`.
        let there = self.writer.contained(&oids).unwrap_or_else(|_| vec![false; oids.len()]);
        oids.into_iter().zip(there).filter_map(|(oid, there)| there.then_some(oid)).collect()
    }
}

fn outcome(at: At, seen: FileStat, read: Read, path: impl Fn() -> RepoPath) -> Outcome {
    match read {
        Read::Stored(oid, stat) => Outcome { at, content: Content::Known(oid), stat, failure: None },
        Read::Gone => Outcome { at, content: Content::Lost, stat: seen, failure: None },
        Read::Failed(reason) => {
            let failure = PathReason { path: path(), reason, size: Some(seen.size) };
            Outcome { at, content: Content::Lost, stat: seen, failure: Some(failure) }
        }
    }
}
