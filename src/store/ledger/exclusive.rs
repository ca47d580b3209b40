//! Appending, for who holds the lock.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::durable::{Root, Sync};
use crate::model::event::Event;
use crate::model::hint::Hint;
use crate::model::state::State;
use crate::model::time::Timestamp;

use super::super::error::StoreError;
use super::super::ledger_line;
use super::super::second_copy;
use super::super::state_cache::StateCache;
use super::super::written::Written;
use super::{CACHE_EVERY, Exclusive, Loaded, NewEvent, Store};

impl Exclusive {
    /// The state as of the last append.
    pub fn state(&self) -> &State {
        &self.loaded.state
    }

    /// The state directory.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The lines that these events will have if `before` others are appended first, all in this hold of the lock.
    pub fn lines_to_come(&self, at: Timestamp, before: u64, events: Vec<NewEvent>) -> Result<String, StoreError> {
        let mut text = String::new();
        for (seq, NewEvent { run, source, payload }) in (self.loaded.lines + before + 1..).zip(events) {
            let event = Event { seq, at, schema: payload.schema(), run, source, payload };
            text.push_str(&self.encoded(&event)?);
        }
        Ok(text)
    }

    /// Appends events as one write and one fsync: after it returns they survive anything. On an error (no space,
    /// say) nothing of them stays.
    pub fn append(&mut self, at: Timestamp, events: Vec<NewEvent>) -> Result<(), StoreError> {
        self.append_dated(events.into_iter().map(|event| (at, event)).collect())
    }

    /// Appends events with times of their own, before they were recorded here.
    pub fn append_dated(&mut self, events: Vec<(Timestamp, NewEvent)>) -> Result<(), StoreError> {
        let mut text = String::new();
        let mut made = Vec::with_capacity(events.len());
        for (at, new) in events {
            let seq = self.loaded.lines + made.len() as u64 + 1;
            let NewEvent { run, source, payload } = new;
            let event = Event { seq, at, schema: payload.schema(), run, source, payload };
            text.push_str(&self.encoded(&event)?);
            made.push(event);
        }
        if made.is_empty() {
            return Ok(());
        }
        self.write(text.as_bytes())?;
        // Given up while the state changes, so that it is not copied for it.
        *self.store.last() = None;
        let state = Arc::make_mut(&mut self.loaded.state);
        for event in &made {
            state.apply(event);
        }
        self.loaded.lines += made.len() as u64;
        self.loaded.extend(text.as_bytes());
        self.loaded.beyond_cache += made.len() as u64;
        self.store.note(self.loaded.lines, &mut self.loaded.files);
        self.renew_cache();
        *self.store.last() = Some(self.loaded.clone());
        Ok(())
    }

    /// An event's line. What could not be read again is no line: it would cost everything that is recorded already.
    fn encoded(&self, event: &Event) -> Result<String, StoreError> {
        let failed = self.store.io("encode an event for");
        let text = ledger_line::encode(event).map_err(io::Error::from).map_err(&failed)?;
        match ledger_line::decode(text.trim_end_matches('\n').as_bytes()) {
            Ok(_) => Ok(text),
            Err(reason) => Err(failed(io::Error::new(io::ErrorKind::InvalidData, reason))),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.store.ledger_path();
        if self.loaded.lines == 0 {
            // The first event comes with the file: an empty ledger is never a valid one.
            self.store.root.write(&path, bytes, Sync::All).map_err(self.store.io("write"))?;
            return self.store.written_anew(0);
        }
        let offset = self.loaded.offset;
        let failed = self.store.io("append to");
        let Some(file) = self.open_to_append(&path).map_err(&failed)? else {
            return self.write_to_copy(bytes).map_err(failed);
        };
        let written = (&*file).write_all(bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // What was written in part, or may not be on disk, must not count later as if it were.
            if let Err(undo) = file.set_len(offset) {
                tracing::warn!(%undo, "a cut-off append stays until the next command drops it");
            }
            return Err(failed(error));
        }
        // From here on the event is recorded, whatever becomes of the copy.
        if self.store.copy.is_some() {
            match self.append_to_copy(bytes) {
                Ok(Some(copy)) => self.store.unsynced.add(copy),
                Ok(None) | Err(_) => self.store.copy_follows(),
            }
        }
        Ok(())
    }

    /// The ledger; `None` where git, which takes a file away before it sets it back, has just taken it.
    fn open_to_append(&mut self, path: &Path) -> io::Result<Option<Arc<File>>> {
        let file = self.loaded.files.ledger_end.current(&self.store.root, path, Root::open_to_append)?;
        let Some(file) = file else { return Ok(None) };
        Ok((file.metadata()?.len() == self.loaded.offset).then_some(file))
    }

    /// Appends to the second copy; the file, which is not synced yet. `None` where it does not end where the ledger did.
    fn append_to_copy(&mut self, bytes: &[u8]) -> io::Result<Option<Arc<File>>> {
        let Some(copy) = self.store.copy() else { return Ok(None) };
        let file = self.loaded.files.copy_end.current(copy.root(), copy.path(), Root::open_to_append)?;
        match file {
            Some(file) if second_copy::append(&file, self.loaded.offset, bytes)? => Ok(Some(file)),
            _ => Ok(None),
        }
    }

    /// Appends to the second copy alone, which has more than the ledger then: the next command puts that right.
    fn write_to_copy(&mut self, bytes: &[u8]) -> io::Result<()> {
        let gone = || io::Error::other("it was taken away or replaced while it was locked");
        self.append_to_copy(bytes)?.ok_or_else(gone)?.sync_data()
    }

    fn renew_cache(&mut self) {
        if self.loaded.beyond_cache < CACHE_EVERY {
            return;
        }
        self.check_copy();
        self.compact();
        let Loaded { offset, lines, packed, ref ends_with, ref state, .. } = self.loaded;
        let cache = StateCache::new(offset, ends_with.clone(), lines, packed, State::clone(state));
        cache.write(&self.store.root, &self.store.cache_path());
        self.loaded.beyond_cache = 0;
        self.loaded.begin_at_end();
    }

    /// Compares the second copy as a whole once in a while, and writes it anew where a byte of it is another one.
    pub(super) fn check_copy(&self) {
        let ledger = self.store.ledger_path();
        if let Some(copy) = self.store.copy()
            && !copy.is_same(&self.store.root, &ledger).unwrap_or(false)
            && let Err(error) = self.store.root.read(&ledger).and_then(|lines| copy.replace(&lines))
        {
            tracing::warn!(%error, copy = %copy.path().display(), "the ledger's second copy could not be written");
        }
    }

    /// Writes views (paths below the state directory, or absolute ones) but for those that hold exactly that already. What
    /// another system wrote in their places is copied to `recover/before` first. Returns which were written.
    pub fn write_views(&self, views: Vec<(PathBuf, Vec<u8>)>) -> Result<Vec<PathBuf>, StoreError> {
        let private = self.store.private_dir();
        let mut stale = Vec::new();
        let mut shared = Vec::new();
        for (relative, content) in views {
            let path = self.store.dir.join(&relative);
            let present = self.store.view(&path);
            let same = present.as_ref().is_ok_and(|present| present.as_ref() == Some(&content));
            if !path.starts_with(&private) {
                shared.push((path.clone(), present, same, content.clone()));
            }
            if !same {
                stale.push((relative, path, content));
            }
        }
        if shared.iter().any(|(_, _, same, _)| !same) {
            let mut written = Written::read(&self.store.root, &self.store.private_dir());
            for (path, present, same, content) in shared {
                let present =
                    present.map_err(|source| StoreError::Io { action: "read", path: path.clone(), source })?;
                if let Some(foreign) = present.filter(|present| !same && !written.is(self.place_of(&path), present)) {
                    self.keep_foreign(&path, &foreign)?;
                }
                written.add(self.place_of(&path), &content);
            }
            written.write(&self.store.root, &self.store.private_dir());
        }
        let mut written = Vec::new();
        for (relative, path, content) in stale {
            self.write_view(&path, &content)?;
            written.push(relative);
        }
        Ok(written)
    }

    /// A view's place, as it stays when the project is moved.
    fn place_of<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.store.dir).unwrap_or(path)
    }

    /// Copies what another system wrote in a view's place, and says how it is taken over unless it was.
    fn keep_foreign(&self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        let place = self.store.private_dir().join("before").join(path.file_name().unwrap_or_default());
        let failed = |source| StoreError::Io { action: "keep a copy of", path: path.to_owned(), source };
        let copy = self.store.root.keep_copy(&place, content).map_err(failed)?;
        let source = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut imported = self.state().runs.iter().flat_map(|run| &run.imported);
        if imported.any(|one| Path::new(&one.imported.source) == source) {
            tracing::info!("{} was not written by recover: its content is kept in {}", path.display(), copy.display());
            return Ok(());
        }
        // For a state directory in its usual place the project is known, too.
        let dir = &self.store.dir;
        let project = dir.ancestors().nth(2).filter(|_| dir.ends_with(".ultraplan/state"));
        let (flag, folder) = project.map_or(("--state-dir", dir.as_path()), |project| ("-C", project));
        let command = Hint::recover([flag]).arg(folder).arg("import").arg(copy);
        tracing::warn!("{} was not written by recover; what it says is not taken over: {command}", path.display());
        Ok(())
    }

    fn write_view(&self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        let failed = |source| StoreError::Io { action: "write", path: path.to_owned(), source };
        let root = self.store.root_of_view(path);
        if let Some(folder) = path.parent() {
            if !root.has(folder).map_err(failed)? {
                root.create_dir_all(folder).and_then(|()| self.store.root.sync_dir(&self.store.dir)).map_err(failed)?;
            }
            root.reap(folder);
        }
        // A crash of the machine may leave the former view in its place: it is whole, and the ledger has the rest.
        root.replace(path, content, Sync::Content).map_err(failed)
    }
}
