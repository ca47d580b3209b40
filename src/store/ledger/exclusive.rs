//! The ledger's lock, and appending for who holds it.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::super::second_copy::{self, SecondCopy, Standing};
use super::super::state_cache::StateCache;
use super::super::{StoreError, ledger_line};
use super::{Beyond, CACHE_EVERY, Exclusive, NewEvent, Store};
use crate::durable::{FileLock, Root, Sync, present};
use crate::model::{Event, Payload, State, Timestamp};

/// From this number of bytes in unpacked lines on, older ones are packed.
const PACK_FROM_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of unpacked lines that stay, for who follows the ledger.
const UNPACKED_BYTES: usize = 1024 * 1024;

/// How often, and after which pause, a folder is made again that is removed while it is used.
const REMOVALS: usize = 20;
const REMOVAL: Duration = Duration::from_millis(10);

/// Whether references of checkpoints are removed or set again for an event.
fn concerns_references(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::CheckpointsPruned { .. }
            | Payload::CheckpointReturned { .. }
            | Payload::RunsForgotten { .. }
            | Payload::RunReplaced { .. }
    )
}

impl Drop for Exclusive {
    /// The cache is renewed without the lock, which others wait for: an older one in its place costs them time, no more.
    fn drop(&mut self) {
        drop(self.lock.take());
        tracing::debug!(
            micros = self.held.elapsed().as_micros(),
            "the ledger was locked"
        );
        let Some(cached) = self.cached_before else {
            return;
        };
        let (root, path) = (&self.store.root, self.store.cache_path());
        // Of many who find at once that it is due, one renews it.
        if StateCache::offset(root, &path).is_none_or(|now| now <= cached) {
            let cache = StateCache {
                offset: self.loaded.offset,
                ends_with: self.loaded.ends_with.clone(),
                lines: self.loaded.lines,
                packed: self.loaded.packed,
                state: State::clone(&self.loaded.state),
            };
            cache.write(root, &path);
        }
    }
}

impl Store {
    /// Takes the ledger's lock and folds what is there; a ledger that was set back or damaged is repaired from its second
    /// copy, and the copy from the ledger. A torn last line (an append that a kill cut off) is dropped
    /// with a warning before anything is appended. What is removed meanwhile, as by an attempt's `git clean`, is made again.
    pub fn lock(&self) -> Result<Exclusive, StoreError> {
        for _ in 0..REMOVALS {
            match self.make_and_lock() {
                Err(error) if error.is_not_found() => thread::sleep(REMOVAL),
                locked => return locked,
            }
        }
        self.make_and_lock()
    }

    fn make_and_lock(&self) -> Result<Exclusive, StoreError> {
        let owned = self.create_dirs()?;
        let asked = Instant::now();
        let lock = FileLock::acquire(&self.root, &self.lock_path(), self.lock_timeout)?;
        let held = Instant::now();
        let private = self.private_dir();
        for folder in [&self.dir, &private, &private.join("damaged")] {
            self.root.reap(folder);
        }
        let mut loaded = self.load_for_writing()?;
        let mut is_level = loaded.standing == Standing::Level && loaded.mended.is_none();
        self.put_right(&mut loaded)?;
        if loaded.torn > 0 {
            is_level = false;
            tracing::warn!(bytes = loaded.torn, ledger = %self.ledger_path().display(), "a torn last line is dropped");
            let cut = || -> io::Result<()> {
                let file = self.root.open_to_write(&self.ledger_path())?;
                file.set_len(loaded.offset)?;
                file.sync_all()
            };
            cut().map_err(self.io("repair"))?;
            loaded.torn = 0;
        }
        if loaded.lines > 0 {
            self.root.tighten(&self.ledger_path());
            if !is_level {
                self.copy_follows();
            }
        }
        let store = self.clone();
        Ok(Exclusive {
            store,
            loaded,
            lock: Some(lock),
            asked,
            held,
            cached_before: None,
            _owned: owned,
        })
    }
}

impl Exclusive {
    /// The state as of the last append.
    pub fn state(&self) -> &State {
        &self.loaded.state
    }

    /// The state directory.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Gives the lock back. The state is that of the last append.
    pub(in crate::store) fn release(self) -> (Store, Arc<State>) {
        (self.store.clone(), self.loaded.state.clone())
    }

    /// The lines that these events will have if `before` others are appended first, all in this hold of the lock.
    pub fn lines_to_come(
        &self,
        at: Timestamp,
        before: u64,
        events: Vec<NewEvent>,
    ) -> Result<String, StoreError> {
        let mut text = String::new();
        for (seq, new) in (self.loaded.lines + before + 1..).zip(events) {
            text.push_str(&self.encoded(&new.recorded(seq, at))?);
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
            let event = new.recorded(seq, at);
            text.push_str(&self.encoded(&event)?);
            made.push(event);
        }
        if made.is_empty() {
            return Ok(());
        }
        self.store.keep_known_secrets()?;
        // Their references go or come after this, and a kill may come before that.
        if made.iter().any(|event| concerns_references(&event.payload)) {
            self.store.forget_settled();
        }
        self.write(text.as_bytes())?;
        tracing::debug!(
            micros = self.asked.elapsed().as_micros(),
            "recorded since the ledger's lock was asked for"
        );
        // Given up while the state changes, so that it is not copied for it.
        *self.store.recent.lock() = None;
        let state = Arc::make_mut(&mut self.loaded.state);
        for event in &made {
            self.loaded.beyond_cache.add(event.run.as_ref());
            state.apply(event);
        }
        self.loaded.lines += made.len() as u64;
        self.loaded.extend(text.as_bytes());
        self.store.note(self.loaded.lines);
        self.look_after_files();
        *self.store.recent.lock() = Some(self.loaded.clone());
        Ok(())
    }

    /// An event's line. What could not be read again is no line: it would cost everything that is recorded already.
    fn encoded(&self, event: &Event) -> Result<String, StoreError> {
        let failed = self.store.io("encode an event for");
        let text = ledger_line::encode(event).map_err(io::Error::from);
        let checked = text.and_then(|text| {
            match ledger_line::decode(text.trim_end_matches('\n').as_bytes()) {
                Ok(_) => Ok(text),
                Err(reason) => Err(io::Error::new(io::ErrorKind::InvalidData, reason)),
            }
        });
        checked.map_err(failed)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.store.ledger_path();
        if self.loaded.lines == 0 {
            // The first event comes with the file: an empty ledger is never a valid one.
            self.store
                .root
                .write(&path, bytes, Sync::All)
                .map_err(self.store.io("write"))?;
            return self.store.written_anew(0);
        }
        let offset = self.loaded.offset;
        let failed = self.store.io("append to");
        let Some(file) = self.open_to_append(&path).map_err(&failed)? else {
            return self.write_to_copy(bytes).map_err(failed);
        };
        let written = (&file).write_all(bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // What was written in part, or may not be on disk, must not count later as if it were.
            if let Err(undo) = file.set_len(offset) {
                tracing::warn!(error = %undo, "a cut-off append stays until the next command drops it");
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
        if let Some(copy) = self.store.vault.get() {
            let ledger = (&self.store.root, path.as_path());
            super::vault_follows(|| copy.trail(ledger, offset, bytes));
        }
        Ok(())
    }

    /// The ledger; `None` where git, which takes a file away before it sets it back, has just taken it.
    fn open_to_append(&self, path: &Path) -> io::Result<Option<File>> {
        let Some(file) = present(self.store.root.open_to_append(path))? else {
            return Ok(None);
        };
        Ok((file.metadata()?.len() == self.loaded.offset).then_some(file))
    }

    /// Appends to the second copy; the file, which is not synced yet. `None` where it does not end where the ledger did.
    fn append_to_copy(&self, bytes: &[u8]) -> io::Result<Option<File>> {
        let Some(copy) = self.store.copy() else {
            return Ok(None);
        };
        match present(copy.root().open_to_append(copy.path()))? {
            Some(file) if second_copy::append(&file, self.loaded.offset, bytes)? => Ok(Some(file)),
            _ => Ok(None),
        }
    }

    /// Appends to the second copy alone, which has more than the ledger then: the next command puts that right.
    fn write_to_copy(&self, bytes: &[u8]) -> io::Result<()> {
        let gone = || io::Error::other("it was taken away or replaced while it was locked");
        self.append_to_copy(bytes)?.ok_or_else(gone)?.sync_data()
    }

    fn look_after_files(&mut self) {
        if !self.loaded.beyond_cache.are_many() {
            return;
        }
        // Whole in time, and never for long: others wait for the lock.
        let number = self.loaded.lines / CACHE_EVERY;
        self.check_copy(|copy, root, ledger| copy.is_same_in_part(root, ledger, number));
        self.compact();
        self.cached_before.get_or_insert(self.loaded.cached);
        (self.loaded.cached, self.loaded.beyond_cache) = (self.loaded.offset, Beyond::default());
        self.loaded.begin_at_end();
    }

    /// Writes the second copy anew where it is not the same.
    pub(super) fn check_copy(
        &self,
        is_same: impl FnOnce(&SecondCopy, &Root, &Path) -> io::Result<bool>,
    ) {
        let ledger = self.store.ledger_path();
        if let Some(copy) = self.store.copy()
            && !is_same(copy, &self.store.root, &ledger).unwrap_or(false)
            && let Err(error) = self
                .store
                .root
                .read(&ledger)
                .and_then(|lines| copy.replace(&lines))
        {
            tracing::warn!(%error, copy = %copy.path().display(), "the ledger's second copy could not be written");
        }
    }

    /// Packs older lines once there are many. The ledger is replaced as a whole: a kill leaves the one or the other, who
    /// reads meanwhile has the one or the other, and both say the same. A failure costs space, nothing else.
    pub(super) fn compact(&mut self) {
        if self.loaded.offset.saturating_sub(self.loaded.packed) < PACK_FROM_BYTES {
            return;
        }
        if let Err(error) = self.try_compact() {
            tracing::warn!(%error, ledger = %self.store.ledger_path().display(), "the ledger was not compacted");
        }
    }

    fn try_compact(&mut self) -> io::Result<()> {
        let path = self.store.ledger_path();
        let root = self.store.root();
        let mut file = root.open(&path)?;
        let present = file.metadata()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let index = |offset| usize::try_from(offset).map_err(io::Error::other);
        let (end, begin) = (index(self.loaded.offset)?, index(self.loaded.packed)?);
        let changed = || io::Error::other("it was changed by something else");
        if bytes.len() != end {
            return Err(changed());
        }
        let open = bytes.get(begin..end).ok_or_else(changed)?;
        let Some(stay) = memchr::memrchr(b'\n', &open[..open.len().saturating_sub(UNPACKED_BYTES)])
        else {
            return Ok(());
        };
        let (old, young) = open.split_at(stay + 1);
        let before = self.loaded.lines - memchr::memchr_iter(b'\n', open).count() as u64;
        let packed = ledger_line::pack(before + 1, old);
        let packed = packed.map_err(|flaw| io::Error::other(format!("{flaw:?}")))?;

        let mut all = Vec::with_capacity(begin + packed.len() + young.len());
        all.extend_from_slice(&bytes[..begin]);
        all.extend_from_slice(&packed);
        let end_of_packed = all.len() as u64;
        all.extend_from_slice(young);
        root.write(&path, &all, Sync::All)?;
        // The owner stays as it was, where this process may set it.
        let _ = fchown(root.open(&path)?, Some(present.uid()), Some(present.gid()));
        (self.loaded.offset, self.loaded.packed) = (all.len() as u64, end_of_packed);
        self.store
            .written_anew(self.loaded.lines)
            .map_err(io::Error::other)
    }
}
