//! Completes an index from what it refers to: the shared index of a split one, the trees of a sparse one.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;

use super::{Error, HASH, IndexFile, Record, Result, SKIP_WORKTREE, SPARSE_FOLDER, damaged};
use crate::git::odb::database::Database;
use crate::git::odb::trees;
use crate::git::repo::repository::Repo;

impl IndexFile {
    /// Reads the index file `path` of a repository with everything that it stands on, so that each entry is a file, a
    /// symlink or a gitlink with its whole path. `None` if there is no such file.
    ///
    /// The shared index must be the very one that is named, and the trees must be readable, else it is
    /// [`Error::Corrupt`].
    pub(crate) fn read(repo: &Repo, path: &Path) -> Result<Option<Self>> {
        // Between the two reads, git may write both files anew and remove the old shared one.
        let mut tries = 3;
        let read = loop {
            let bytes = match fs::read(path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(source) => return Err(Error::io(path, source)),
            };
            let index = Self::parse(&bytes)?;
            match index.merged(path.parent().unwrap_or(path)) {
                Err(Error::Corrupt { .. }) if tries > 0 && index.is_split() => tries -= 1,
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
        let bytes = fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => damaged(&format!("{} is missing", path.display())),
            _ => Error::io(&path, error),
        })?;
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
                let (stat, flags, extended) = ([0; 9], 0, SKIP_WORKTREE);
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
