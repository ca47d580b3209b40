//! A checkpoint as a git bundle (version 2): one file from which `git fetch` takes it in any repository.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use git2::{Indexer, ObjectType, Odb, Oid, Repository, TreeWalkMode, TreeWalkResult};

use super::error::{Error, Result};
use super::repository::Repo;
use super::trees::parse_oid;
use crate::model::snapshot::ObjectId;

/// Writes a bundle with one reference and everything that its commit needs.
///
/// The history below it is included, so that an empty repository can fetch from it. Only what a shallow clone does not
/// have itself is a prerequisite. No program is run.
pub fn write_bundle(repo: &Repo, reference: &str, commit: &ObjectId, out: &mut dyn Write) -> Result<()> {
    let failed = || Error::git(format!("pack commit {commit}"));
    let tip = parse_oid(commit)?;
    let mut header = String::from("# v2 git bundle\n");
    for missing in shallow_parents(repo, tip)? {
        header.push_str(&format!("-{missing}\n"));
    }
    header.push_str(&format!("{commit} {reference}\n\n"));
    let written = |error| Error::io("the bundle", error);
    out.write_all(header.as_bytes()).map_err(written)?;
    let mut walk = repo.inner.revwalk().map_err(failed())?;
    walk.push(tip).map_err(failed())?;
    let mut pack = repo.inner.packbuilder().map_err(failed())?;
    pack.insert_walk(&mut walk).map_err(failed())?;
    let mut stopped = None;
    let packed = pack.foreach(|part| match out.write_all(part) {
        Ok(()) => true,
        Err(error) => {
            stopped = Some(error);
            false
        }
    });
    match stopped {
        Some(error) => Err(written(error)),
        None => packed.map_err(failed()),
    }
}

/// Reads a bundle back: it names the commit, and every file of the commit and of the index commit beside it is in the
/// bundle itself, as its checksums say. Nothing of it comes into the repository.
pub fn read_back(path: &Path, reference: &str, commit: &ObjectId) -> Result<()> {
    let place = || path.display().to_string();
    let unread = |error| Error::io(place(), error);
    let damaged = |what: &str| Error::corrupt(format!("{}: {what}", path.display()));
    let mut bundle = BufReader::new(File::open(path).map_err(unread)?);
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        let length = bundle.read_until(b'\n', &mut line).map_err(unread)?;
        if length <= 1 {
            break;
        }
        lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
    }
    let wanted = format!("{commit} {reference}");
    if lines.first().is_none_or(|first| first != "# v2 git bundle") || !lines.contains(&wanted) {
        return Err(damaged("it is no bundle of this checkpoint"));
    }
    let failed = || Error::git(format!("read {} back", place()));
    let folder = tempfile::tempdir().map_err(unread)?;
    let pack = folder.path().join("pack");
    fs::create_dir(&pack).map_err(unread)?;
    let mut indexer = Indexer::new(None, &pack, 0o600, false).map_err(failed())?;
    io::copy(&mut bundle, &mut indexer).map_err(unread)?;
    indexer.commit().map_err(failed())?;
    let odb = Odb::new().map_err(failed())?;
    odb.add_disk_alternate(&folder.path().to_string_lossy()).map_err(failed())?;
    let repo = Repository::from_odb(odb).map_err(failed())?;
    let tip = repo.find_commit(parse_oid(commit)?).map_err(failed())?;
    // A shallow clone's history ends somewhere.
    for commit in std::iter::once(tip.clone()).chain(tip.parents()) {
        let odb = repo.odb().map_err(failed())?;
        let mut missing = None;
        let walked = commit.tree().map_err(failed())?.walk(TreeWalkMode::PreOrder, |_, entry| {
            if entry.kind() == Some(ObjectType::Blob) && !odb.exists(entry.id()) {
                missing = Some(entry.id());
                return TreeWalkResult::Abort;
            }
            TreeWalkResult::Ok
        });
        if let Some(missing) = missing {
            return Err(damaged(&format!("{missing} is not in it")));
        }
        walked.map_err(failed())?;
    }
    Ok(())
}

/// Parents that the history of a shallow clone names and does not have, as far as `tip` reaches.
fn shallow_parents(repo: &Repo, tip: Oid) -> Result<Vec<Oid>> {
    let Ok(text) = fs::read_to_string(repo.common_dir().join("shallow")) else { return Ok(Vec::new()) };
    let database = repo.database()?;
    let mut missing = Vec::new();
    for boundary in text.lines().filter_map(|line| Oid::from_str(line.trim()).ok()) {
        if tip != boundary && !repo.inner.graph_descendant_of(tip, boundary).unwrap_or(false) {
            continue;
        }
        let commit = database.read(boundary)?.data;
        let header = commit.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
        let parents = header.filter_map(|line| std::str::from_utf8(line.strip_prefix(b"parent ")?).ok());
        missing.extend(parents.filter_map(|id| Oid::from_str(id).ok()));
    }
    let odb = repo.inner.odb().map_err(Error::git("open the object database"))?;
    missing.retain(|oid| !odb.exists(*oid));
    missing.sort();
    missing.dedup();
    Ok(missing)
}
