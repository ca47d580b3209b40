//! Writes objects so that the user's object database never holds a half-written one.
//!
//! New objects are kept in memory while they are few and become a small pack (`packing`), else they are spooled to a pack;
//! large ones are streamed to a file of their own. All files lie in a quarantine, `$GIT_DIR/recover/quarantine`.
//! [`ObjectWriter::publish`] syncs them, and only then links them into place and syncs the folders. A process that dies, or a full disk,
//! leaves objects in the quarantine only; the next writer empties it.
//!
//! Several threads may write at once: an object is hashed, looked up and deflated outside of any lock. Besides what the
//! threads have in hand (at most two deflated objects over 1 MiB at a time), a writer holds 8 MiB of content and about
//! 80 bytes for each new object.

mod publishing;
mod streaming;

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, SystemTime};

use git2::{ObjectType, Odb, Oid};
use parking_lot::{Mutex, MutexGuard};

use super::database::{self, Database};
use super::pack::{self, IN_MEMORY, PackWriter, UNPACK_LIMIT};
use super::publish::{self, Published, Staged};
use super::unsynced::Unsynced;
use super::{format, owned_objects, packing};
use crate::durable::{Locked, Root, create_dir_all, give_to_sudo_caller};
use crate::git::base::{At as _, Error, Result, id_of, present};
use crate::git::repo::locks::Slot;
use crate::git::repo::{Repo, WorktreeLock, health};
use publishing::Needs;
use streaming::{Permits, Tools};

/// A larger object is not kept in memory, and not deflated by more than [`LARGE_AT_ONCE`] threads.
const LARGE: usize = 1 << 20;
const LARGE_AT_ONCE: usize = 2;
/// An object that is older is made young again when it is needed, so that `git gc` does not take it away before
/// something refers to it. git's own limit is two weeks.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// Writes objects of one operation. It may be shared between threads.
pub(in crate::git) struct ObjectWriter {
    quarantine: PathBuf,
    /// The way to the worktree's own folder.
    own: Root,
    /// The real folder of objects.
    target: PathBuf,
    /// What one thread needs for one object, for the next one to take.
    tools: Mutex<Vec<Tools>>,
    state: Mutex<State>,
    large: Permits,
    /// Keeps the quarantine ours, and with it the worktree's lock.
    slot: Slot,
    /// When it began.
    begun: SystemTime,
    /// The names of the real packs when it began.
    packs: BTreeSet<OsString>,
    /// The git folder that linked worktrees share.
    common: PathBuf,
    /// Whether a `git gc` was seen meanwhile.
    collected: AtomicBool,
    /// Where small packs are noted, and the way to it; `None` where there are enough of them.
    notes: Option<(Root, PathBuf)>,
    /// Whether there were small packs when it began.
    has_small: bool,
    /// Keeps what is found in the real database there.
    _held: Option<Locked>,
    /// Nothing may come of it, and nothing real is touched.
    rehearsal: bool,
    /// What other programs wrote and need not have synced.
    others: Mutex<Unsynced>,
    /// The folders of objects, own and borrowed.
    folders: Vec<PathBuf>,
    /// What was stored earlier and need not be whole.
    health: Health,
    /// How many objects that were there already were read back.
    read_back: AtomicUsize,
    /// A pack of this many bytes, or of a quarter of what was published so far, is published before the rest is written: no
    /// more than that is lost, and there are not many packs.
    portion: Option<u64>,
}

/// What is known when writing begins of the objects that were stored earlier.
struct Health {
    /// Loose objects that are empty or damaged.
    damaged: HashSet<Oid>,
    /// Whether packs or alternates are gone that were there.
    is_any_gone: bool,
    /// Whether damage was found among packs or in a checkpoint: every object is read before it is relied on.
    doubts: bool,
}

/// An object that is not in a file yet.
type InMemory = (Oid, database::InMemory);

#[derive(Default)]
struct State {
    /// Everything that was written and is new.
    known: HashSet<Oid>,
    /// Objects in memory.
    few: Vec<InMemory>,
    /// Their bytes.
    bytes: usize,
    spool: Option<PackWriter>,
    /// Complete files of the quarantine.
    staged: Vec<Staged>,
    /// A draft of the reference that names a commit which was written.
    draft: Option<(Oid, PathBuf)>,
    published: Published,
    needs: Needs,
    /// Whether the quarantine was made a repository that git's library opens.
    is_repository: bool,
    /// Whether anything lies in the quarantine.
    used: bool,
    /// Why an object that is known was not written: nothing may be published any more.
    broken: Option<Broken>,
    /// Bytes of packs that were published before the rest was written.
    kept: u64,
    /// Bytes of all that is new, as they are before they are packed.
    added: u64,
    /// For names of files.
    count: u64,
}

#[derive(Clone)]
enum Broken {
    /// There was no space left for this.
    NoSpace(PathBuf),
    Otherwise,
}

impl State {
    /// Notes that something was not written. The first reason counts.
    fn give_up(&mut self, error: &Error) {
        self.broken.get_or_insert(match error {
            Error::NoSpace { path, .. } => Broken::NoSpace(path.clone()),
            _ => Broken::Otherwise,
        });
    }
}

impl std::fmt::Debug for ObjectWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectWriter")
            .field("quarantine", &self.quarantine)
            .finish_non_exhaustive()
    }
}

impl Repo {
    /// Removes what dead processes left that were writing objects, as each capture does before it writes any.
    pub(crate) fn clear_quarantine(&self, lock: &WorktreeLock) -> Result<()> {
        ObjectWriter::new(self, lock).map(drop)
    }
}

impl ObjectWriter {
    /// Takes one of the worktree's quarantines, emptying it of what a dead process left. Nothing is made yet.
    pub(crate) fn new(repo: &Repo, lock: &WorktreeLock) -> Result<Self> {
        let (own, rehearsal) = (lock.folder(), lock.is_rehearsal());
        let busy = || Error::Locked {
            file: own.join("quarantine"),
            holder: "too many captures of this process".to_owned(),
        };
        let slot = lock.slot().ok_or_else(busy)?;
        let quarantine = own.join(if slot.number == 0 {
            "quarantine".to_owned()
        } else {
            format!("quarantine-{}", slot.number)
        });
        let target = fs::canonicalize(repo.common_dir().join("objects")).at(repo.common_dir())?;
        let (mut notes, mut has_small) = (None, false);
        let others = Unsynced::read(repo, &target, rehearsal)?;
        if others.has_damaged_pack && !rehearsal {
            repo.mark_odb_suspect()?;
        }
        let held = if rehearsal {
            owned_objects::try_lock_shared_readonly(repo)?
        } else {
            // What is there beside objects an earlier process left, or another process planted.
            publish::empty_but_objects(repo.own(), &quarantine).at(&quarantine)?;
            // From here on git's library and others go there by its path.
            for folder in ["", "objects", "objects/pack"] {
                repo.own()
                    .check(&quarantine.join(folder), false)
                    .at(&quarantine)?;
            }
            repo.own().tighten(&quarantine);
            publish::clear(&quarantine.join("objects"), &target)?;
            let listing = packing::tidy_up(repo, &quarantine, &target);
            if listing
                .as_ref()
                .is_some_and(|listing| packing::is_any_cut_short(repo, &target, listing))
            {
                repo.mark_odb_suspect()?;
            }
            let small = listing.map_or(packing::MOST, |listing| listing.small().count());
            has_small = small > 0;
            if small < packing::MOST {
                notes = Some((repo.shared().clone(), owned_objects::folder(repo)));
            }
            Some(owned_objects::lock_shared(repo)?)
        };
        let doubts = others.has_damaged_pack || health::is_suspect(repo.own());
        Ok(Self {
            own: repo.own().clone(),
            quarantine,
            packs: pack::pack_names(&target),
            collected: AtomicBool::new(health::is_gc_announced(repo.common_dir())),
            common: repo.common_dir().to_owned(),
            target,
            tools: Mutex::default(),
            state: Mutex::default(),
            large: Permits::new(LARGE_AT_ONCE),
            slot,
            begun: SystemTime::now(),
            notes,
            has_small,
            _held: held,
            rehearsal,
            folders: others.folders.clone(),
            health: Health {
                damaged: others.damaged.clone(),
                is_any_gone: others.is_any_gone,
                doubts,
            },
            others: Mutex::new(others),
            read_back: AtomicUsize::new(0),
            portion: None,
        })
    }

    /// From now on what was written becomes part of the real database whenever it is a pack of this many bytes. Should the
    /// process end before the rest is written, the next one finds that; nothing refers to it, so that git removes it in
    /// time where it is not wanted any more.
    pub(crate) fn publish_from(&mut self, bytes: u64) {
        self.portion = Some(bytes);
    }

    /// The repository that sees everything written so far and the real database; for diffs over objects that are not
    /// published. What is written later on need not be in it.
    pub(crate) fn repository(&self) -> Result<git2::Repository> {
        let objects = self.objects();
        let mut state = self.state();
        self.end_spool(&mut state)?;
        self.begin(&mut state)?;
        for staged in &mut state.staged {
            staged.move_into(&objects)?;
        }
        self.show_few(&state)
            .inspect_err(|error| state.give_up(error))?;
        self.borrow(&objects.join("info"))?;
        if !state.is_repository {
            // All that libgit2 asks of a repository; what it would make itself is a dozen files more.
            let (refs, head) = (self.quarantine.join("refs"), self.quarantine.join("HEAD"));
            create_dir_all(&refs).at(&refs)?;
            let written = fs::write(&head, "ref: refs/heads/none\n")
                .and_then(|()| give_to_sudo_caller(&head));
            written.at(&head)?;
            state.is_repository = true;
        }
        git2::Repository::open_bare(&self.quarantine).map_err(Error::git("open the quarantine"))
    }

    /// The database that sees everything written so far, as long as that is in memory or published: without any file of its
    /// own. `None` where it is not.
    pub(crate) fn database(&self) -> Result<Option<Database<'static>>> {
        let state = self.state();
        let (true, Some(path)) = (
            state.spool.is_none() && state.staged.is_empty(),
            self.target.to_str(),
        ) else {
            return Ok(None);
        };
        let odb = Odb::new().and_then(|odb| odb.add_disk_alternate(path).map(|()| odb));
        let odb = odb.map_err(Error::git("open the object database"))?;
        let memory = state.few.iter().cloned().collect();
        Ok(Some(Database::with_memory(odb, &self.target, memory)))
    }

    /// Has the quarantine see the real objects too, by the file that names them.
    fn borrow(&self, info: &Path) -> Result<()> {
        let (alternates, detour) = (info.join("alternates"), info.join("target"));
        let mut line = self.target.as_os_str().as_bytes().to_vec();
        // libgit2 reads one folder a line: what is named in more than one is reached by another name.
        let is_one_line = !line.contains(&b'\n');
        if !is_one_line {
            line = b"./info/target".to_vec();
        }
        line.push(b'\n');
        create_dir_all(info).at(&alternates)?;
        if !is_one_line {
            present(&detour, fs::remove_file(&detour))?;
            std::os::unix::fs::symlink(&self.target, &detour).at(&detour)?;
        }
        let written = fs::write(&alternates, &line).and_then(|()| give_to_sudo_caller(&alternates));
        written.at(&alternates)
    }

    /// Writes an object from memory, unless it is there.
    pub(crate) fn write(&self, kind: ObjectType, data: &[u8]) -> Result<Oid> {
        let oid = match kind {
            ObjectType::Tree => id_of(kind, data)?,
            _ => Oid::hash_object(kind, data).map_err(Error::git("hash an object"))?,
        };
        self.write_as(oid, kind, data).map(|()| oid)
    }

    /// Writes an object whose id is known already, unless it is there.
    pub(crate) fn write_as(&self, oid: Oid, kind: ObjectType, data: &[u8]) -> Result<()> {
        if self.state().known.contains(&oid) {
            return Ok(());
        }
        self.with_tools(|tools| {
            let is_there = tools.target.exists(oid);
            let damaged = is_there && !self.is_whole(tools, oid)?;
            if is_there && !damaged && self.relies_on(oid, Some((kind, data))) {
                return Ok(());
            }
            let mut state = self.state();
            if !state.known.insert(oid) {
                // Another thread was faster.
                return Ok(());
            }
            state.added += data.len() as u64;
            let object = (oid, kind, data);
            // A loose object is found before a packed one.
            let result = if damaged {
                self.add_loose(state, tools, object)
            } else {
                self.add(state, tools, object)
            };
            result.inspect_err(|error| self.state().give_up(error))
        })
    }

    /// Writes every object of another database. The inner error is that one's.
    pub(crate) fn write_all_of(&self, odb: &Odb<'_>) -> Result<Result<(), git2::Error>> {
        let mut all = Vec::new();
        let listed = odb.foreach(|oid| {
            all.push(*oid);
            true
        });
        if listed.is_err() {
            return Ok(listed);
        }
        for oid in all {
            match odb.read(oid) {
                Ok(object) => self.write(object.kind(), object.data())?,
                Err(error) => return Ok(Err(error)),
            };
        }
        Ok(Ok(()))
    }

    /// Bytes (uncompressed) of the objects that were new; those that another database's files brought are not counted.
    pub(crate) fn added_bytes(&self) -> u64 {
        self.state().added
    }

    /// Whether all that is new and not published is in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        let state = self.state();
        state.spool.is_none() && state.staged.is_empty()
    }

    /// Adds an object that is new: to memory, to a file of its own, or to the pack.
    fn add(
        &self,
        mut state: MutexGuard<'_, State>,
        tools: &mut Tools,
        object: (Oid, ObjectType, &[u8]),
    ) -> Result<()> {
        let (oid, kind, data) = object;
        if state.spool.is_none() {
            let files = state
                .staged
                .iter()
                .filter(|staged| matches!(staged, Staged::Loose { .. }))
                .count();
            if state.few.len() + files < UNPACK_LIMIT {
                if data.len() <= LARGE && state.bytes + data.len() <= IN_MEMORY {
                    state.bytes += data.len();
                    state.few.push((oid, (kind, Arc::new(data.to_vec()))));
                    return Ok(());
                }
                return self.add_loose(state, tools, object);
            }
            let path = self.next_file(&mut state)?;
            state.spool = Some(PackWriter::create(path)?);
        }
        let earlier = std::mem::take(&mut state.few);
        state.bytes = 0;
        drop(state);
        for (oid, (kind, data)) in earlier {
            self.spool(tools, (oid, kind, &data))?;
        }
        self.spool(tools, object)
    }

    /// Adds an object to a file of its own.
    fn add_loose(
        &self,
        mut state: MutexGuard<'_, State>,
        tools: &mut Tools,
        (oid, kind, data): (Oid, ObjectType, &[u8]),
    ) -> Result<()> {
        let path = self.next_file(&mut state)?;
        drop(state);
        let _permit = (data.len() > LARGE).then(|| self.large.take());
        write_loose(tools, &path, kind, data)?;
        self.state().staged.push(Staged::Loose { oid, path });
        Ok(())
    }

    fn spool(&self, tools: &mut Tools, (oid, kind, data): (Oid, ObjectType, &[u8])) -> Result<()> {
        let _permit = (data.len() > LARGE).then(|| self.large.take());
        let entry = format::entry(&mut tools.deflate, kind, data).at(&self.quarantine)?;
        let mut state = self.state();
        if state.spool.is_none() {
            // It was completed meanwhile, for a reader.
            let path = self.next_file(&mut state)?;
            state.spool = Some(PackWriter::create(path)?);
        }
        let Some(spool) = state.spool.as_mut() else {
            return Ok(());
        };
        spool.append(oid, &entry)?;
        let (size, kept) = (spool.size(), state.kept);
        if self
            .portion
            .is_none_or(|portion| size < portion.max(kept / 4))
        {
            return Ok(());
        }
        state.kept += size;
        match state.spool.take() {
            Some(full) => self.end_portion(state, full),
            None => Ok(()),
        }
    }

    /// Notes for the checkpoint of this commit what became part of the real database by this writer and was not there
    /// before. `base` is HEAD, as it was read after the writer was made.
    pub(crate) fn record(&self, repo: &Repo, commit: Oid, base: Option<Oid>) {
        // What was missing may be referred to by what was there all the time: it is not the checkpoint's to take away.
        if self.doubts() {
            return;
        }
        owned_objects::record(
            repo,
            commit,
            base,
            self.begun,
            self.state().published.clone(),
        );
    }

    /// Gives everything written so far the file of the quarantine that is to be published.
    fn stage(&self, state: &mut State) -> Result<()> {
        self.end_spool(state)?;
        let few = std::mem::take(&mut state.few);
        state.bytes = 0;
        let result = self.with_tools(|tools| {
            if self.notes.is_some() && few.len() > 1 {
                let mut pack = PackWriter::create(self.next_file(state)?)?;
                for (oid, (kind, data)) in few {
                    let entry =
                        format::entry(&mut tools.deflate, kind, &data).at(&self.quarantine)?;
                    pack.append(oid, &entry)?;
                }
                let pack = pack.finish(&self.objects().join("pack"))?;
                state.staged.push(Staged::Pack(pack));
                return Ok(());
            }
            for (oid, (kind, data)) in few {
                let path = self.next_file(state)?;
                write_loose(tools, &path, kind, &data)?;
                state.staged.push(Staged::Loose { oid, path });
            }
            Ok(())
        });
        result.inspect_err(|error| state.give_up(error))
    }

    /// Writes what is in memory where git's library finds it in the quarantine. It stays in memory, to be published.
    fn show_few(&self, state: &State) -> Result<()> {
        let objects = self.objects();
        self.with_tools(|tools| {
            for (oid, (kind, data)) in &state.few {
                let path = format::loose_path(&objects, *oid);
                if !path.exists() {
                    path.parent().map_or(Ok(()), create_dir_all).at(&path)?;
                    write_loose(tools, &path, *kind, data)?;
                }
            }
            Ok(())
        })
    }

    /// Completes the pack that is spooled to, where there is one.
    fn end_spool(&self, state: &mut State) -> Result<()> {
        if let Some(broken) = &state.broken {
            return Err(match broken.clone() {
                Broken::NoSpace(path) => Error::NoSpace { path, needed: None },
                Broken::Otherwise => Error::corrupt("an object could not be written before"),
            });
        }
        let objects = self.objects();
        if let Some(spool) = state.spool.take() {
            let made = spool
                .finish(&objects.join("pack"))
                .inspect_err(|error| state.give_up(error))?;
            state.staged.push(Staged::Pack(made));
        }
        Ok(())
    }

    fn objects(&self) -> PathBuf {
        self.quarantine.join("objects")
    }

    /// Makes the quarantine's folder.
    fn begin(&self, state: &mut State) -> Result<()> {
        if !state.used {
            let objects = self.objects();
            let made = if self.rehearsal {
                create_dir_all(&objects)
            } else {
                self.own.create_dir_all(&objects)
            };
            made.at(&objects)?;
            state.used = true;
        }
        Ok(())
    }

    /// A free name in the quarantine.
    fn next_file(&self, state: &mut State) -> Result<PathBuf> {
        self.begin(state)?;
        state.count += 1;
        Ok(self.objects().join(format!("new-{}", state.count)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn with_tools<T>(&self, work: impl FnOnce(&mut Tools) -> Result<T>) -> Result<T> {
        let pooled = self.tools.lock().pop();
        let mut tools = match pooled {
            Some(tools) => tools,
            None => Tools::new(&self.target)?,
        };
        let result = work(&mut tools);
        self.tools.lock().push(tools);
        result
    }
}

/// Writes a new file of a loose object.
fn write_loose(tools: &mut Tools, path: &Path, kind: ObjectType, data: &[u8]) -> Result<()> {
    let packed = format::loose(&mut tools.deflate, kind, data).at(path)?;
    pack::create(path)?.write_all(&packed).at(path)
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some((_, draft)) = self.state().draft.take() {
            let _ = fs::remove_file(draft);
        }
        if !self.state().used {
            return;
        }
        // What is left behind is removed by the next writer.
        let _ = publish::clear(&self.objects(), &self.target);
        // The first one is kept for the next capture; another is rarely needed.
        if self.slot.number > 0 {
            let _ = fs::remove_dir_all(&self.quarantine);
        }
    }
}

#[cfg(test)]
mod tests;
