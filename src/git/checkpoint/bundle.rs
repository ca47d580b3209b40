//! A checkpoint as a git bundle (version 2): one file from which `git fetch` takes it in any repository.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;

use git2::Oid;

use crate::git::base::error::{Error, Result};
use crate::git::base::object_id::parse_oid;
use crate::git::odb::database::Database;
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;

impl Repo {
    /// Writes a bundle with one reference and everything that its commit needs.
    ///
    /// The history below it is included, so that an empty repository can fetch from it. Only what a shallow clone does not
    /// have itself is a prerequisite. A partial clone lacks parts of its history: there the bundle holds the commit and its
    /// parents whole, and what comes before them is a prerequisite. No program is run.
    pub(crate) fn write_bundle(
        &self,
        reference: &str,
        commit: &ObjectId,
        out: &mut dyn Write,
    ) -> Result<()> {
        let failed = || Error::git(format!("pack commit {commit}"));
        let tip = parse_oid(commit)?;
        let mut header = String::from("# v2 git bundle\n");
        let is_partial = self.is_partial_clone();
        let commits = if is_partial {
            with_parents(self, tip)?
        } else {
            Vec::new()
        };
        let before = commits.iter().flat_map(git2::Commit::parent_ids);
        let before: BTreeSet<Oid> = before
            .filter(|id| commits.iter().all(|commit| commit.id() != *id))
            .collect();
        let missing = if is_partial {
            before.into_iter().collect()
        } else {
            shallow_parents(self, tip)?
        };
        for missing in missing {
            header.push_str(&format!("-{missing}\n"));
        }
        header.push_str(&format!("{commit} {reference}\n\n"));
        let written = |error| Error::io("the bundle", error);
        out.write_all(header.as_bytes()).map_err(written)?;
        let mut pack = self.inner.packbuilder().map_err(failed())?;
        if is_partial {
            for commit in &commits {
                pack.insert_commit(commit.id()).map_err(|error| Error::Unsupported {
                what: format!(
                    "this partial clone lacks objects of commit {}: git fetch --refetch --no-filter gets them ({})",
                    commit.id(),
                    error.message()
                ),
            })?;
            }
        } else {
            let mut walk = self.inner.revwalk().map_err(failed())?;
            walk.push(tip).map_err(failed())?;
            pack.insert_walk(&mut walk).map_err(failed())?;
        }
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
}

/// A commit and its parents.
fn with_parents(repo: &Repo, tip: Oid) -> Result<Vec<git2::Commit<'_>>> {
    let failed = || Error::git(format!("read commit {tip}"));
    let tip = repo.inner.find_commit(tip).map_err(failed())?;
    let parents = (0..tip.parent_count())
        .map(|at| tip.parent(at))
        .collect::<std::result::Result<Vec<_>, _>>();
    Ok([vec![tip], parents.map_err(failed())?].concat())
}

/// Parents that the history of a shallow clone names and does not have, as far as `tip` reaches.
fn shallow_parents(repo: &Repo, tip: Oid) -> Result<Vec<Oid>> {
    let Ok(text) = fs::read_to_string(repo.common_dir().join("shallow")) else {
        return Ok(Vec::new());
    };
    let database = Database::open(repo)?;
    let mut missing = Vec::new();
    for boundary in text
        .lines()
        .filter_map(|line| Oid::from_str(line.trim()).ok())
    {
        if tip != boundary
            && !repo
                .inner
                .graph_descendant_of(tip, boundary)
                .unwrap_or(false)
        {
            continue;
        }
        let commit = database.read(boundary)?.data;
        let header = commit
            .split(|byte| *byte == b'\n')
            .take_while(|line| !line.is_empty());
        let parents =
            header.filter_map(|line| std::str::from_utf8(line.strip_prefix(b"parent ")?).ok());
        missing.extend(parents.filter_map(|id| Oid::from_str(id).ok()));
    }
    let odb = repo
        .inner
        .odb()
        .map_err(Error::git("open the object database"))?;
    missing.retain(|oid| !odb.exists(*oid));
    missing.sort();
    missing.dedup();
    Ok(missing)
}
