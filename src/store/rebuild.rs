//! Replaces a damaged ledger file by one with the events that can still be read (`doctor --rebuild`, the file's part).
//!
//! Nothing is ever thrown away: what stood there is kept aside under a name that says so.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::durable::{FileLock, Root, Sync, present};
use crate::model::{Event, Timestamp};

use super::error::StoreError;
use super::ledger::{Owned, Store};
use super::ledger_line::{self, Salvaged, salvage};

/// The right to put another ledger in the place of one that may be damaged.
#[derive(Debug)]
pub struct Rebuilding {
    store: Store,
    _lock: FileLock,
    _owned: Owned,
}

impl Store {
    /// What can be read of the ledger and of its second copy, each event once.
    pub fn salvage(&self) -> Result<Salvaged, StoreError> {
        let mut found = Salvaged::default();
        let mut seen = BTreeSet::new();
        let aside = self
            .copy()
            .filter(|_| self.load().is_err())
            .map(|copy| (copy.root(), copy.set_aside_path()));
        for (root, path) in self.both().chain(aside) {
            let read = root.read_present(&path);
            let Some(bytes) = read.map_err(StoreError::io("read", path))? else {
                continue;
            };
            let read = salvage(&bytes);
            let first = found.events.is_empty();
            found.unreadable = found.unreadable.max(read.unreadable);
            found.newer = found.newer.or(read.newer);
            for event in read.events {
                if seen.insert(ledger_line::encode(&event).unwrap_or_default()) {
                    found.events.push(event);
                }
            }
            if !first {
                // The two have parted: what is in both stands in the order of its numbers.
                found.events.sort_by_key(|event| event.seq);
            }
        }
        // A line may have held many: the numbers show how many events are missing.
        let numbers: BTreeSet<u64> = found.events.iter().map(|event| event.seq).collect();
        let missing = numbers.last().map_or(0, |last| last - numbers.len() as u64);
        found.unreadable = found.unreadable.max(missing);
        Ok(found)
    }

    /// The ledger and its second copy, with the ways there.
    fn both(&self) -> impl Iterator<Item = (&Root, PathBuf)> {
        let copy = self
            .copy()
            .map(|copy| (copy.root(), copy.path().to_owned()));
        [Some((self.root(), self.ledger_path())), copy]
            .into_iter()
            .flatten()
    }

    /// Takes the ledger's lock without reading the ledger.
    pub fn lock_for_rebuilding(&self) -> Result<Rebuilding, StoreError> {
        let owned = self.create_dirs()?;
        let lock = FileLock::acquire(self.root(), &self.lock_path(), self.lock_timeout())?;
        Ok(Rebuilding {
            store: self.clone(),
            _lock: lock,
            _owned: owned,
        })
    }
}

impl Rebuilding {
    /// Puts a ledger of these events, numbered anew, in the place of the one that is there, which is kept aside. Returns
    /// where; `None` if there was none. A kill leaves either ledger whole.
    pub fn replace(
        self,
        events: &mut [Event],
        now: Timestamp,
    ) -> Result<Option<PathBuf>, StoreError> {
        let path = self.store.ledger_path();
        let mut text = String::new();
        for (seq, event) in (1..).zip(events.iter_mut()) {
            event.seq = seq;
            let line = ledger_line::encode(event);
            text += &line.map_err(StoreError::io("encode an event for", &path))?;
        }
        let aside = self.keep_aside(now)?;
        // It describes another ledger from here on.
        let failed = StoreError::io("replace", &path);
        present(self.store.root().remove_file(&self.store.cache_path())).map_err(&failed)?;
        // It may hold fewer, and the copy would count for more: until the new one is there, it has another name.
        if let Some(copy) = self.store.copy() {
            let renamed = copy.root().rename(copy.path(), &copy.set_aside_path());
            present(renamed).map_err(failed)?;
        }
        self.store.mark(0)?;
        let written = self.store.root().write(&path, text.as_bytes(), Sync::All);
        written.map_err(StoreError::io("write", &path))?;
        self.store.written_anew(events.len() as u64)?;
        Ok(aside)
    }

    /// Keeps the present ledger under another name, and its second copy where that holds something else; where the first is.
    fn keep_aside(&self, now: Timestamp) -> Result<Option<PathBuf>, StoreError> {
        let ledger = self.store.ledger_path();
        let aside = self.keep_one(self.store.root(), &ledger, now)?;
        match self.store.copy() {
            Some(copy)
                if aside.is_none()
                    || !copy.is_same(self.store.root(), &ledger).unwrap_or(false) =>
            {
                Ok(aside.or(self.keep_one(copy.root(), copy.path(), now)?))
            }
            _ => Ok(aside),
        }
    }

    fn keep_one(
        &self,
        from_root: &Root,
        from: &Path,
        now: Timestamp,
    ) -> Result<Option<PathBuf>, StoreError> {
        if matches!(from_root.kind(from), Ok(None)) {
            return Ok(None);
        }
        let root = self.store.root();
        let folder = self.store.private_dir().join("damaged");
        let failed = StoreError::io("keep aside", from);
        root.create_dir_all(&folder).map_err(&failed)?;
        let stamp = now.datetime().format("%Y%m%d-%H%M%S").to_string();
        let names = std::iter::once(format!("events-{stamp}.jsonl"))
            .chain((2..u32::MAX).map(|number| format!("events-{stamp}-{number}.jsonl")));
        for name in names {
            let to = folder.join(name);
            match from_root.hard_link(from, root, &to) {
                Ok(()) => {
                    root.sync_dir(&folder).map_err(&failed)?;
                    return Ok(Some(to));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Another file system, or one without hard links.
                Err(_) => {
                    let bytes = from_root.read(from).map_err(&failed)?;
                    root.write(&to, &bytes, Sync::All).map_err(&failed)?;
                    return Ok(Some(to));
                }
            }
        }
        Ok(None)
    }
}
