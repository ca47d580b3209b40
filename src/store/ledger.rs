//! The ledger file: opens and reads it, and takes the lock under which [`exclusive`] appends.

mod exclusive;
mod identity;
mod lines;
mod mended;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::durable::{FileLock, Root, Sync};
use crate::model::path::short_part;
use crate::model::run::NONE;
use crate::model::{Event, EventSource, Payload, RunKey, State, Timestamp};

use super::error::StoreError;
use super::ledger_line::DecodeError;
use super::registry::{Origin, Registry};
use super::second_copy::{SecondCopy, Standing};
use super::state_cache::StateCache;
use crate::store::second_copy::Unsynced;

pub(crate) use identity::Owned;

/// How many events are folded anew at each start before the cache is renewed.
const CACHE_EVERY: u64 = 64;
/// Or events about this number of runs.
const CACHE_EVERY_RUNS: usize = 8;
/// How much of the ledger's end the cache remembers: the last line's checksum and closing.
const END_LENGTH: usize = 11;

/// How the last failure of each run is recovered from.
pub(crate) const RECOVERY: &str = "recovery.json";
/// What was tried.
pub(crate) const ATTEMPTS: &str = "attempt_history.json";
/// The records of lanes, where the configuration names no other file.
pub(crate) const LANES: &str = "checkpoints.json";
/// The checkpoint that a session goes on from.
pub(crate) const ACTIVE: &str = "active_checkpoint.json";

/// The names of the views that all runs share.
pub(crate) const VIEWS: [&str; 4] = [RECOVERY, ATTEMPTS, LANES, ACTIVE];

/// A state directory.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
    /// Where the state directory begins that nothing is followed in, or the project that it lies in.
    root: Root,
    lock_timeout: Duration,
    lane_file: PathBuf,
    /// The root of the lane records, where their place is configured.
    lane_root: Option<Root>,
    copy: Option<SecondCopy>,
    /// Another copy in a vault, once one is followed.
    vault: Arc<OnceLock<SecondCopy>>,
    /// What of the second copy may not be on disk yet.
    unsynced: Arc<Unsynced>,
    registry: Registry,
    origin: Origin,
    /// Whether processes of other machines count as alive.
    others_live: bool,
    /// What this process read last: nothing of it is folded twice while the ledger only grows.
    recent: Arc<Mutex<Option<Loaded>>>,
}

/// The state as it was read.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The fold of all whole lines; shared until it is added to.
    pub state: Arc<State>,
    /// A schema newer than this program's: nothing may be written.
    pub newer: Option<u32>,
    /// Bytes of whole lines.
    offset: u64,
    /// The last of them: another ledger under the same name does not end alike there.
    ends_with: String,
    /// Where those begin that were not taken from the cache, and the end of what is before them.
    begin: u64,
    /// Checksum of all from there to `offset`.
    checksum: u32,
    /// Events in them.
    lines: u64,
    /// Bytes of the packed lines that they begin with.
    packed: u64,
    /// How many bytes of them the cache had, and what was folded beyond it.
    cached: u64,
    beyond_cache: Beyond,
    /// Bytes after the last whole line: an append that was interrupted, or one that is just being made.
    torn: u64,
    /// All lines, where they are not what stands in the ledger's own file.
    mended: Option<Arc<Vec<u8>>>,
    /// How the second copy stood to the ledger.
    standing: Standing,
}

/// Events that were folded and are not in the cache.
#[derive(Clone, Debug, Default)]
struct Beyond {
    count: u64,
    /// The runs that they are about: whoever folds them unpacks what the cache has of each.
    runs: BTreeSet<RunKey>,
}

impl Beyond {
    fn add(&mut self, run: Option<&RunKey>) {
        self.count += 1;
        if let Some(run) = run.filter(|run| !self.runs.contains(*run)) {
            self.runs.insert(run.clone());
        }
    }

    /// Whether the cache is to be renewed.
    fn are_many(&self) -> bool {
        self.count >= CACHE_EVERY || self.runs.len() >= CACHE_EVERY_RUNS
    }
}

/// An event to append.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The run it is about.
    pub run: Option<RunKey>,
    /// Who speaks.
    pub source: EventSource,
    /// What happened.
    pub payload: Payload,
}

impl NewEvent {
    /// An event about a run.
    pub fn about(run: &RunKey, payload: Payload) -> Self {
        Self {
            run: Some(run.clone()),
            source: EventSource::Recover,
            payload,
        }
    }

    fn recorded(self, seq: u64, at: Timestamp) -> Event {
        Event {
            seq,
            at,
            schema: self.payload.schema(),
            run: self.run,
            source: self.source,
            payload: self.payload,
        }
    }
}

impl Loaded {
    fn cached(cache: StateCache) -> Self {
        let mut loaded = Self {
            state: Arc::new(cache.state),
            offset: cache.offset,
            ends_with: cache.ends_with,
            lines: cache.lines,
            packed: cache.packed,
            cached: cache.offset,
            ..Self::default()
        };
        loaded.begin_at_end();
        loaded
    }

    /// From now on only the end of what was folded so far is examined again.
    fn begin_at_end(&mut self) {
        self.begin = self.offset.saturating_sub(self.ends_with.len() as u64);
        self.checksum = crc32fast::hash(self.ends_with.as_bytes());
    }

    /// Whole lines come after those that there are.
    fn extend(&mut self, lines: &[u8]) {
        let mut checksum = crc32fast::Hasher::new_with_initial(self.checksum);
        checksum.update(lines);
        self.checksum = checksum.finalize();
        self.offset += lines.len() as u64;
        self.ends_with =
            String::from_utf8_lossy(&lines[lines.len().saturating_sub(END_LENGTH)..]).into_owned();
    }

    /// Whether a file of this length has the bytes still that were folded. What cannot be read is not there.
    fn is_in(&self, file: &File, length: u64) -> bool {
        let mut found = crc32fast::Hasher::new();
        let (mut at, mut buffer) = (self.begin, [0; 1 << 14]);
        while at < self.offset && self.offset <= length {
            let wanted = usize::try_from(self.offset - at)
                .map_or(buffer.len(), |rest| rest.min(buffer.len()));
            if file.read_exact_at(&mut buffer[..wanted], at).is_err() {
                return false;
            }
            found.update(&buffer[..wanted]);
            at += wanted as u64;
        }
        at == self.offset && found.finalize() == self.checksum
    }
}

/// The right to append, for as long as it lives.
#[derive(Debug)]
pub struct Exclusive {
    store: Store,
    loaded: Loaded,
    /// There as long as it lives.
    lock: Option<FileLock>,
    /// When the lock was asked for, and since when it is held.
    asked: Instant,
    held: Instant,
    /// How many bytes the cache had, where so much was folded beyond it that it is to be renewed.
    cached_before: Option<u64>,
    _owned: Owned,
}

impl Store {
    /// The state directory at `dir`, a place that was resolved; nothing is read or made yet.
    pub fn new(dir: PathBuf, lock_timeout: Duration) -> Self {
        Self::at(Root::own(dir.clone()), dir, lock_timeout)
    }

    /// The state directory in its usual place in a project: no folder on the way there may be a link.
    pub fn of_project(project: &Path, lock_timeout: Duration) -> Self {
        let below = Path::new(".ultraplan").join("state");
        Self::at(
            Root::with_own(project, below.clone()).made(),
            project.join(below),
            lock_timeout,
        )
    }

    fn at(root: Root, dir: PathBuf, lock_timeout: Duration) -> Self {
        let lane_file = dir.join(LANES);
        Self {
            dir,
            root,
            lock_timeout,
            lane_file,
            lane_root: None,
            copy: None,
            vault: Arc::default(),
            unsynced: Arc::default(),
            registry: Registry::default(),
            origin: Origin::Ours,
            others_live: false,
            recent: Arc::default(),
        }
    }

    /// With the lane records in this file (C1), which lies in `root`.
    #[must_use]
    pub fn with_lane_file(mut self, root: Root, file: PathBuf) -> Self {
        (self.lane_root, self.lane_file) = (Some(root), file);
        self
    }

    /// The way to everything in the state directory.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The way to a view: they lie in the state directory but for the lane records, whose place the user may have chosen.
    pub(super) fn root_of_view(&self, path: &Path) -> &Root {
        self.lane_root
            .as_ref()
            .filter(|_| path == self.lane_file)
            .unwrap_or(&self.root)
    }

    /// Refuses what is neither file nor folder among what is ours in the state directory.
    pub fn check(&self) -> Result<(), StoreError> {
        let private = self.private_dir();
        let checked = self.root.check(&private, false);
        checked.map_err(StoreError::io("look at", private))
    }

    /// Where the lane records are.
    pub fn lane_file(&self) -> &Path {
        &self.lane_file
    }

    /// With a second copy of the ledger in `recover` in a repository's folder, out of the reach of what may set the state
    /// directory back; without a repository beside the ledger.
    #[must_use]
    pub fn with_copy(self, repository: Option<&Path>) -> Self {
        let copy = match repository {
            Some(folder) => SecondCopy::new(folder, &self.dir),
            None => SecondCopy::beside(&self.root, &self.private_dir()),
        };
        Self {
            copy: Some(copy),
            ..self
        }
    }

    /// From now on another copy, which is no one's but the vault's, follows the ledger. It is never read here.
    pub fn follow_in_vault(&self, copy: PathBuf) {
        let copy = self.vault.get_or_init(|| SecondCopy::elsewhere(copy));
        vault_follows(|| copy.follow(&self.root, &self.ledger_path()));
    }

    /// Gives a state directory the ledger of a vault as its second copy, from which it is repaired like from any, and its id
    /// where it has none. One with another id is of another place.
    pub fn put_back(&self, ledger: &[u8], id: Option<&str>) -> Result<(), StoreError> {
        let path = self.ledger_path();
        let failed = || StoreError::io("put back", &path);
        let own = self.id().map_err(failed())?;
        let Some(copy) = self
            .copy()
            .filter(|_| own.is_none() || own.as_deref() == id)
        else {
            return Ok(());
        };
        let held = copy.root().read_present(copy.path()).map_err(failed())?;
        if held.is_none_or(|held| ledger.starts_with(&held)) {
            copy.replace(ledger).map_err(failed())?;
        }
        // Last: with its id, and without the copy, it would be new.
        if let Some(id) = id.filter(|_| own.is_none()) {
            let file = self.private_dir().join(identity::FILE);
            let text = format!("{id}\n");
            self.root
                .create_dir_all(&self.private_dir())
                .map_err(failed())?;
            self.root
                .write(&file, text.as_bytes(), Sync::All)
                .map_err(failed())?;
        }
        Ok(())
    }

    /// The state directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What is `recover`'s own in it: logs, prompts, caches, locks.
    pub fn private_dir(&self) -> PathBuf {
        self.dir.join("recover")
    }

    /// The folder of a run: its logs and prompts. Lanes of one run have folders of their own.
    pub fn run_dir(&self, key: &RunKey) -> PathBuf {
        self.private_dir().join("runs").join(file_name_of(key))
    }

    /// The ledger's path.
    pub fn ledger_path(&self) -> PathBuf {
        self.dir.join("events.jsonl")
    }

    /// How many bytes the ledger has; none where it cannot be read.
    pub fn ledger_length(&self) -> u64 {
        let file = self
            .root
            .open(&self.ledger_path())
            .and_then(|file| file.metadata());
        file.map_or(0, |file| file.len())
    }

    /// Whether anything was ever recorded here.
    pub fn exists(&self) -> bool {
        // What stands there and is no file will be refused by whoever reads it.
        let is_there = |root: &Root, path: &Path| !matches!(root.kind(path), Ok(None));
        let copy = self
            .copy
            .as_ref()
            .is_some_and(|copy| is_there(copy.root(), copy.path()));
        copy || [self.ledger_path(), self.created_marker()]
            .iter()
            .any(|path| is_there(&self.root, path))
    }

    /// The ledger's second copy, where it may have one.
    pub(super) fn copy(&self) -> Option<&SecondCopy> {
        self.copy.as_ref()
    }

    pub(super) fn lock_path(&self) -> PathBuf {
        self.private_dir().join("ledger.lock")
    }

    /// The lock of who writes views.
    pub(super) fn views_lock_path(&self) -> PathBuf {
        self.private_dir().join("views.lock")
    }

    pub(super) fn lock_timeout(&self) -> Duration {
        self.lock_timeout
    }

    /// A ledger was put in its place: its second copy follows, and the mark that there is one is set. Fewer events than
    /// `at_least` are damage from now on: no append that was interrupted takes away what came before it.
    pub(super) fn written_anew(&self, at_least: u64) -> Result<(), StoreError> {
        self.copy_follows();
        self.mark(at_least)
    }

    /// Makes the second copy what the ledger is. That there is none is no reason to stop: the ledger is whole.
    fn copy_follows(&self) {
        if let Some(copy) = &self.copy
            && let Err(error) = copy.follow(&self.root, &self.ledger_path())
        {
            tracing::warn!(%error, copy = %copy.path().display(), "the ledger's second copy could not be written");
        }
        if let Some(copy) = self.vault.get() {
            vault_follows(|| copy.follow(&self.root, &self.ledger_path()));
        }
    }

    pub(super) fn mark(&self, at_least: u64) -> Result<(), StoreError> {
        let marker = self.created_marker();
        let written = self
            .root
            .write(&marker, at_least.to_string().as_bytes(), Sync::All);
        written.map_err(StoreError::io("write", marker))
    }

    /// Notes how many events there are, so that a ledger that was truncated at a line's end is noticed even where its copy was
    /// too. In place and without waiting for the disk: the ledger itself is there already.
    fn note(&self, lines: u64) {
        let mark = self.root.open_or_create(&self.created_marker());
        let text = format!("{lines:020}");
        if let Err(error) = mark.and_then(|mark| mark.write_all_at(text.as_bytes(), 0)) {
            tracing::debug!(%error, "the number of events was not noted");
        }
    }

    /// The number of events that there are at least.
    fn at_least(&self) -> Result<u64, StoreError> {
        let path = self.created_marker();
        let read = self.root.read_if_possible(&path);
        let bytes = read.map_err(StoreError::io("read", path))?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.and_then(|text| text.trim().parse().ok()).unwrap_or(0))
    }

    pub(super) fn cache_path(&self) -> PathBuf {
        self.private_dir().join("fold.cache")
    }

    /// Written after the ledger came to be, so that a ledger that is gone is noticed rather than begun anew.
    fn created_marker(&self) -> PathBuf {
        self.private_dir().join("ledger-created")
    }

    fn corrupt(&self, line: u64, reason: impl Into<String>) -> StoreError {
        StoreError::Corrupt {
            path: self.ledger_path(),
            line,
            reason: reason.into(),
        }
    }

    fn flaw(&self, line: u64, flaw: DecodeError) -> StoreError {
        match flaw {
            DecodeError::Damaged(reason) => self.corrupt(line, reason),
            DecodeError::Newer(schema) => StoreError::Newer {
                path: self.ledger_path(),
                schema,
            },
        }
    }

    fn io<E: Into<io::Error>>(&self, action: &'static str) -> impl Fn(E) -> StoreError + use<E> {
        StoreError::io(action, self.ledger_path())
    }

    /// Folds the ledger without a lock. An append that is just being made is not seen yet. Where the ledger was truncated, set
    /// back or damaged and its second copy is whole, that is folded, with a warning.
    pub fn load(&self) -> Result<Loaded, StoreError> {
        let recent = self.recent.lock().take();
        // Before the ledger is looked for and its length is read: it came to be before the marker, and only grows.
        let at_least = self.at_least()?;
        let was_created = self.root.has(&self.created_marker());
        let was_created = was_created.map_err(self.io("look beside"))?;
        let (ledger, standing, mended) = self.open_mended()?;
        let loaded = match mended {
            Some(bytes) => Some(self.load_mended(bytes)?),
            None => self
                .load_own(ledger.as_ref(), was_created, recent)
                .or_else(|error| match (&error, standing) {
                    (StoreError::Corrupt { .. }, Standing::Level | Standing::Behind(_)) => self
                        .mended()?
                        .map(|bytes| self.load_mended(bytes))
                        .ok_or(error)?
                        .map(Some),
                    _ => Err(error),
                })?,
        };
        let Some(mut loaded) = loaded else {
            return Ok(Loaded::default());
        };
        if loaded.lines < at_least.max(1) {
            let reason = format!(
                "it ends here, and there were {} events at least",
                at_least.max(1)
            );
            return Err(self.corrupt(loaded.lines + 1, reason));
        }
        loaded.standing = standing;
        *self.recent.lock() = Some(loaded.clone());
        Ok(loaded)
    }

    /// The fold of the ledger's own file; `None` where nothing was ever recorded.
    fn load_own(
        &self,
        file: Option<&File>,
        was_created: bool,
        recent: Option<Loaded>,
    ) -> Result<Option<Loaded>, StoreError> {
        let Some(file) = file else {
            if was_created {
                return Err(self.corrupt(0, "the file is missing"));
            }
            return Ok(None);
        };
        let length = file.metadata().map_err(self.io("read"))?.len();
        if length == 0 {
            return Err(self.corrupt(1, "the file is empty"));
        }
        // What was read before, where the file still has it.
        let is_usable = |recent: &Loaded| {
            !recent.beyond_cache.are_many() && recent.mended.is_none() && recent.is_in(file, length)
        };
        let mut loaded = match recent.filter(is_usable) {
            Some(recent) => recent,
            None => self.cached(file, length)?,
        };
        let mut bytes = Vec::new();
        let mut rest = file;
        rest.seek(SeekFrom::Start(loaded.offset))
            .and_then(|_| rest.read_to_end(&mut bytes))
            .map_err(self.io("read"))?;
        self.fold(&mut loaded, &bytes)?;
        Ok(Some(loaded))
    }

    /// For a process that is about to end: what it read is left to the system rather than freed piece by piece.
    pub fn leave(&self) {
        std::mem::forget(self.recent.lock().take());
    }

    /// What the cache says, where it is about this file; nothing otherwise.
    fn cached(&self, file: &File, length: u64) -> Result<Loaded, StoreError> {
        let path = self.cache_path();
        let read = StateCache::read(&self.root, &path);
        let cached = read
            .map_err(StoreError::io("read", &path))?
            .map(Loaded::cached);
        // One that cannot be used is no newer than this, whatever it says: it is to be renewed.
        let none = || Loaded {
            cached: StateCache::offset(&self.root, &path).unwrap_or(0),
            ..Loaded::default()
        };
        Ok(cached
            .filter(|cached| cached.is_in(file, length))
            .unwrap_or_else(none))
    }

    /// [`Self::load`] for commands that write: what a newer version wrote, or another user did, is refused before anything
    /// is touched.
    pub fn load_for_writing(&self) -> Result<Loaded, StoreError> {
        self.owned()?;
        let loaded = self.load()?;
        match loaded.newer {
            Some(schema) => Err(StoreError::Newer {
                path: self.ledger_path(),
                schema,
            }),
            None => Ok(loaded),
        }
    }

    /// Makes the state directory with its own `.gitignore`, so that no `git add` takes it in, and its id.
    pub fn create_dirs(&self) -> Result<Owned, StoreError> {
        let owned = self.owned()?;
        let private = self.private_dir();
        let made = self.root.create_dir_all(&private);
        made.map_err(StoreError::io("create", &private))?;
        // Versions before this one let everybody in.
        self.root.tighten(&private);
        let ignore = self.ignore_path();
        if !self
            .root
            .has(&ignore)
            .map_err(StoreError::io("write", &ignore))?
        {
            self.write_ignore()?;
        }
        self.name()?;
        Ok(owned)
    }

    fn ignore_path(&self) -> PathBuf {
        self.dir.join(".gitignore")
    }

    fn write_ignore(&self) -> Result<(), StoreError> {
        let path = self.ignore_path();
        let written = self.root.write(&path, b"*\n", Sync::All);
        written.map_err(StoreError::io("write", &path))
    }

    /// Writes its `.gitignore` again where no line of it leaves everything out; returns the path then. What a user added stays.
    pub fn repair_ignore(&self) -> Result<Option<PathBuf>, StoreError> {
        let path = self.ignore_path();
        let read = self.root.read_if_possible(&path);
        let text = read.map_err(StoreError::io("read", &path))?;
        let is_rule = |line: &[u8]| line.trim_ascii() == b"*";
        if text.is_some_and(|text| text.split(|&byte| byte == b'\n').any(is_rule)) {
            return Ok(None);
        }
        self.write_ignore()?;
        Ok(Some(path))
    }
}

/// A run's name for files and folders. Keys that differ only in what cannot be part of a name keep names of their own.
pub(super) fn file_name_of(key: &RunKey) -> String {
    let of_lane = key.phase != NONE || key.lane != NONE;
    let text = if of_lane {
        format!("{}_{}_{}", key.run_id, key.phase, key.lane)
    } else {
        key.run_id.to_string()
    };
    let name: String = text.chars().map(plain).collect();
    if key.run_id == *name && !name.starts_with('.') {
        return short_part(name, &text);
    }
    let whole = if of_lane {
        format!("{}\0{}\0{}", key.run_id, key.phase, key.lane)
    } else {
        text
    };
    let name = name.replace('.', "_");
    let short = short_part(name.clone(), &whole);
    // A name that was cut has its checksum already.
    if short == name {
        format!("{name}-{:08x}", crc32fast::hash(whole.as_bytes()))
    } else {
        short
    }
}

/// A character of a file's name, `_` for what is better not in one.
pub(super) fn plain(c: char) -> char {
    if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
        c
    } else {
        '_'
    }
}

/// Has the vault's copy follow; where that fails, the ledger itself is whole.
fn vault_follows(follow: impl FnOnce() -> io::Result<()>) {
    if let Err(error) = follow() {
        tracing::warn!(%error, "the copy of the ledger in the vault could not be written");
    }
}

#[cfg(test)]
mod tests;
