//! Publishes a writer's objects and verifies afterwards that a concurrent `git gc` took none of them away.
//! Those that were there already are examined before they are relied on.
//!
//! A collection removes objects that nothing refers to, and nothing refers to new ones until the checkpoint's reference
//! is set; nor need anything refer to what was found there and so not written again. Hence:
//!
//! - A pack has a `.keep` file until the reference is set: no `git repack -ad` removes it that saw the pack and not yet the
//!   reference.
//! - While a `git gc` is under way, which removes single objects too, all objects become such a pack, and nothing that is
//!   only found counts as there.
//! - Once the reference is set, [`ObjectWriter::secure`] looks whether a collection is under way that began before, or
//!   whether one took anything. Then all becomes one more pack: a collection removes single objects at any time, but
//!   only packs that it saw when it began.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use git2::{ObjectType, Oid};
use parking_lot::MutexGuard;

use super::streaming::Tools;
use super::{FRESH, ObjectWriter, State};
use crate::git::base::error::{At as _, Error, Result, present};
use crate::git::odb::pack::{self, Pack, PackWriter};
use crate::git::odb::publish::{self, Published, Staged};
use crate::git::odb::{database, format, owned_objects, packing};
use crate::git::repo::health;

/// Bytes of found objects that are kept in memory.
const BACKING: usize = 1 << 20;

/// An object that was found in the real database.
pub(super) struct Relied {
    oid: Oid,
    /// Whether it was in a file of its own.
    loose: bool,
    content: Option<(ObjectType, Vec<u8>)>,
}

/// What the capture needs of the real database until its reference is set.
#[derive(Default)]
pub(super) struct Needs {
    /// Published files: these are their names in the quarantine.
    placed: Vec<Staged>,
    /// Found objects: loose ones, and those whose content is at hand.
    relied: Vec<Relied>,
    /// Others, in packs.
    found: Vec<Oid>,
    /// Bytes of the content at hand.
    bytes: usize,
    /// Whether a pack is kept.
    keeps: bool,
}

impl Needs {
    fn is_empty(&self) -> bool {
        self.placed.is_empty() && self.relied.is_empty() && self.found.is_empty()
    }
}

impl ObjectWriter {
    /// Makes everything written durable and part of the real database. It stays there at the latest from when a
    /// reference holds it and [`Self::secure`] was called.
    pub(crate) fn publish(&self) -> Result<()> {
        self.publish_with(None)
    }

    /// [`Self::publish`], and a reference's draft becomes durable on the way; [`Self::take_draft`] gives it out.
    pub(crate) fn publish_with_draft(&self, commit: Oid, draft: PathBuf) -> Result<()> {
        let path = draft.clone();
        self.state().draft = Some((commit, draft));
        self.publish_with(Some(&path))
    }

    /// The draft of a reference to this commit that was made durable, if there is one.
    pub(crate) fn take_draft(&self, commit: Oid) -> Option<PathBuf> {
        self.state()
            .draft
            .take_if(|(of, _)| *of == commit)
            .map(|(_, draft)| draft)
    }

    fn publish_with(&self, draft: Option<&Path>) -> Result<()> {
        if self.rehearsal {
            return Err(Error::Unsupported(
                "what a rehearsal captured is never published".to_owned(),
            ));
        }
        let mut state = self.state();
        self.stage(&mut state)?;
        let is_new = !state.staged.is_empty();
        if is_new && !self.collected.load(Ordering::Relaxed) {
            self.collected
                .store(health::is_gc_announced(&self.common), Ordering::Relaxed);
        }
        if self.collected.load(Ordering::Relaxed) {
            self.place(&[], draft)?;
            self.pack_again(&mut state, true)?;
            return self.sync_others();
        }
        let mut staged = std::mem::take(&mut state.staged);
        for one in &mut staged {
            let Staged::Pack(pack) = one else { continue };
            if let Some((root, folder)) = self
                .notes
                .as_ref()
                .filter(|_| pack.count() <= packing::SMALL)
            {
                pack.is_small = owned_objects::note_small(root, folder, &pack.name());
            }
            publish::write_keep(pack).inspect_err(|error| state.give_up(error))?;
            state.needs.keeps = true;
        }
        let published = self
            .place(&staged, draft)
            .inspect_err(|error| state.give_up(error))?;
        state.published.add(published);
        state.needs.placed.extend(staged);
        drop(state);
        self.sync_others()
    }

    /// Makes staged files durable and part of the real database.
    fn place(&self, staged: &[Staged], draft: Option<&Path>) -> Result<Published> {
        let published = publish::publish(&self.objects(), &self.target, staged, draft)?;
        self.others.lock().wrote(staged);
        Ok(published)
    }

    /// Completes a pack, and publishes it unless a collection is under way: then that is left for the end. The other threads
    /// go on meanwhile.
    pub(super) fn end_portion(&self, state: MutexGuard<'_, State>, full: PackWriter) -> Result<()> {
        drop(state);
        let mut pack = full.finish(&self.objects().join("pack"))?;
        if self.collected.load(Ordering::Relaxed) || health::is_gc_announced(&self.common) {
            self.state().staged.push(Staged::Pack(pack));
            return Ok(());
        }
        publish::write_keep(&mut pack)?;
        let pack = Staged::Pack(pack);
        let published = self.place(std::slice::from_ref(&pack), None)?;
        let mut state = self.state();
        state.needs.keeps = true;
        state.published.add(published);
        state.needs.placed.push(pack);
        Ok(())
    }

    /// Publishes everything once more, as a pack that no collection removes before [`Self::secure`]; for when one took
    /// something already.
    pub(crate) fn publish_kept(&self) -> Result<()> {
        self.collected.store(true, Ordering::Relaxed);
        self.publish()
    }

    /// To be called when a reference holds what was published: from here on, no collection takes anything of it away.
    /// Returns whether something had to be published once more.
    ///
    /// It is an error if a collection took an object that was there before and whose content is not at hand; the
    /// reference must then be removed.
    pub(crate) fn secure(&self) -> Result<bool> {
        let mut state = self.state();
        let again = !state.needs.is_empty()
            && (health::is_gc_announced(&self.common) || self.is_any_gone(&state)?);
        if again {
            self.pack_again(&mut state, false)?;
        }
        let keeps = std::mem::take(&mut state.needs).keeps;
        if keeps {
            publish::release(&self.objects(), &self.target)?;
        }
        Ok(again)
    }

    /// Whether the object is there and stays there for what is captured. While a `git gc` is under way, that holds only
    /// for what was written.
    pub(crate) fn holds(&self, oid: Oid) -> Result<bool> {
        if self.state().known.contains(&oid) {
            return Ok(true);
        }
        self.with_tools(|tools| Ok(self.is_sound(tools, oid)? && self.relies_on(oid, None)))
    }

    /// Whether an object that is in the real database may be relied on; else it has to be written. `content` is what it
    /// consists of, where that is at hand.
    pub(super) fn relies_on(&self, oid: Oid, content: Option<(ObjectType, &[u8])>) -> bool {
        if self.collected.load(Ordering::Relaxed) {
            return false;
        }
        let loose = self.refresh(oid);
        let needs = &mut self.state().needs;
        let content = content.filter(|(_, data)| needs.bytes + data.len() <= BACKING);
        needs.bytes += content.map_or(0, |(_, data)| data.len());
        let content = content.map(|(kind, data)| (kind, data.to_vec()));
        if loose || content.is_some() {
            needs.relied.push(Relied {
                oid,
                loose,
                content,
            });
        } else {
            needs.found.push(oid);
        }
        true
    }

    /// Whether a collection took anything that the capture needs.
    fn is_any_gone(&self, state: &State) -> Result<bool> {
        let Needs {
            placed,
            relied,
            found,
            ..
        } = &state.needs;
        let is_loose = |oid: Oid| format::loose_path(&self.target, oid).exists();
        let is_there = |staged: &Staged| match staged {
            Staged::Loose { oid, .. } => is_loose(*oid),
            Staged::Pack(pack) => [&pack.file, &pack.index].iter().all(|file| {
                self.target
                    .join("pack")
                    .join(file.file_name().unwrap_or_default())
                    .exists()
            }),
        };
        if !placed.iter().all(is_there) || !relied.iter().all(|one| !one.loose || is_loose(one.oid))
        {
            return Ok(true);
        }
        if self.packs.is_subset(&pack::pack_names(&self.target)) {
            return Ok(false);
        }
        // One that was opened before finds what is there no more.
        let now = Tools::new(&self.target)?.target;
        let mut packed = relied
            .iter()
            .filter(|one| !one.loose)
            .map(|one| one.oid)
            .chain(found.iter().copied());
        Ok(packed.any(|oid| !now.exists(oid)))
    }

    /// Makes one more pack of everything that the capture needs and that is not in a pack of this kind already.
    fn pack_again(&self, state: &mut State, keep: bool) -> Result<()> {
        if state.staged.is_empty() && state.needs.is_empty() {
            return Ok(());
        }
        let result = self.make_pack(state).and_then(|mut pack| {
            if keep {
                publish::write_keep(&mut pack)?;
                state.needs.keeps = true;
            }
            self.place(&[Staged::Pack(pack)], None)
        });
        let published = result.inspect_err(|error| state.give_up(error))?;
        state.published.add(published);
        state.staged.clear();
        state.needs = Needs {
            keeps: state.needs.keeps,
            ..Needs::default()
        };
        Ok(())
    }

    fn make_pack(&self, state: &mut State) -> Result<Pack> {
        let path = self.next_file(state)?;
        let mut pack = PackWriter::create(path)?;
        let mut done = HashSet::new();
        for staged in state.staged.iter().chain(&state.needs.placed) {
            match staged {
                Staged::Loose { oid, path } if done.insert(*oid) => {
                    pack.append_loose(*oid, path)?;
                }
                Staged::Loose { .. } => {}
                Staged::Pack(other) => pack.append_pack(other, &mut done)?,
            }
        }
        let mut tools = Tools::new(&self.target)?;
        let at_hand = state
            .needs
            .relied
            .iter()
            .map(|one| (one.oid, one.content.as_ref()));
        let all = at_hand.chain(state.needs.found.iter().map(|oid| (*oid, None)));
        for (oid, content) in all.filter(|(oid, _)| done.insert(*oid)) {
            let entry = if let Some((kind, data)) = content {
                format::entry(&mut tools.deflate, *kind, data)
            } else {
                let (kind, data) = self.read(&tools, oid)?;
                format::entry(&mut tools.deflate, kind, &data)
            };
            pack.append(oid, &entry.at(&self.quarantine)?)?;
        }
        pack.finish(&self.objects().join("pack"))
    }

    /// Reads an object that was found. libgit2 never returns from a loose one that was cut short.
    fn read(&self, tools: &Tools, oid: Oid) -> Result<(ObjectType, Vec<u8>)> {
        for path in database::folders(&self.target)
            .iter()
            .map(|folder| format::loose_path(folder, oid))
        {
            if path.exists() && !format::is_whole(&path, oid).at(&path)? {
                return Err(Error::corrupt(format!(
                    "object {oid} is cut short or damaged"
                )));
            }
        }
        tools.target.read(oid).ok_or_else(|| self.taken())
    }

    fn taken(&self) -> Error {
        Error::Locked {
            file: self.target.clone(),
            holder: "a git gc, which takes away what is being captured".to_owned(),
        }
    }

    /// Whether the object is there: written before, or in the real database or one that it borrows from.
    ///
    /// A pack that another process made meanwhile may be overlooked; the object is then written once more.
    pub(crate) fn contains(&self, oid: Oid) -> Result<bool> {
        if self.state().known.contains(&oid) {
            return Ok(true);
        }
        self.with_tools(|tools| self.is_sound(tools, oid))
    }

    /// Which of many objects are there.
    pub(crate) fn contained(&self, oids: &[Oid]) -> Result<Vec<bool>> {
        let known: Vec<bool> = {
            let state = self.state();
            oids.iter().map(|oid| state.known.contains(oid)).collect()
        };
        let there = |tools: &mut Tools, (oid, known): (&Oid, bool)| {
            Ok(known || self.is_sound(tools, *oid)?)
        };
        self.with_tools(|tools| {
            oids.iter()
                .zip(known)
                .map(|one| there(tools, one))
                .collect()
        })
    }

    /// Whether damage was found in the real database: then what lies there is read before it is believed.
    pub(crate) fn doubts(&self) -> bool {
        self.health.doubts
    }

    /// Whether what an earlier capture stored is there without a look for it.
    pub(crate) fn trusts_earlier(&self) -> bool {
        !self.health.doubts && self.health.damaged.is_empty() && !self.health.is_any_gone
    }

    /// Makes what other programs wrote durable, so that what was captured may rely on it.
    pub(crate) fn sync_others(&self) -> Result<()> {
        self.others.lock().sync()
    }

    /// Whether other programs had written anything that need not be durable.
    pub(crate) fn has_unsynced(&self) -> bool {
        self.others.lock().is_any_new
    }

    /// Ends that, when everything of a capture was written or read.
    pub(crate) fn end_doubt(&self) -> Result<()> {
        if self.doubts() && !self.rehearsal {
            health::clear(&self.own)
        } else {
            Ok(())
        }
    }

    /// Whether an object is there and, where damage was found, is what its id says.
    pub(super) fn is_sound(&self, tools: &Tools, oid: Oid) -> Result<bool> {
        Ok(tools.target.exists(oid) && (!self.doubts_one(oid) || self.is_whole(tools, oid)?))
    }

    /// Whether an object that is there is what its id says. It is read back: a power failure may have cut the file short that
    /// it is in. After [`READ_BACK`] objects that is only done where damage was found, and with what is packed only then or
    /// where checkpoints have small packs.
    pub(super) fn is_whole(&self, tools: &Tools, oid: Oid) -> Result<bool> {
        let doubts = self.doubts_one(oid);
        if !doubts && self.read_back.fetch_add(1, Ordering::Relaxed) >= READ_BACK {
            return Ok(true);
        }
        for folder in if doubts {
            self.folders.as_slice()
        } else {
            std::slice::from_ref(&self.target)
        } {
            let path = format::loose_path(folder, oid);
            if let Some(is_whole) = present(&path, format::is_whole(&path, oid))? {
                return Ok(is_whole);
            }
        }
        Ok(!(doubts || self.has_small) || tools.target.read(oid).is_some())
    }

    fn doubts_one(&self, oid: Oid) -> bool {
        self.health.doubts || self.health.damaged.contains(&oid)
    }

    /// Makes an old loose object young: something is about to refer to it. One in a pack is left to git's own care: `git
    /// gc` unpacks what nothing refers to before it is removed. Returns whether it is loose.
    pub(super) fn refresh(&self, oid: Oid) -> bool {
        let path = format::loose_path(&self.target, oid);
        let Ok(modified) = fs::metadata(&path).and_then(|file| file.modified()) else {
            return false;
        };
        if !self.rehearsal
            && SystemTime::now()
                .duration_since(modified)
                .is_ok_and(|age| age > FRESH)
        {
            // Another user's file may be kept by its owner only; that is git's own limit as well.
            let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        true
    }
}

/// This many objects that are there already are examined. A capture that meets more of them has no cache.
const READ_BACK: usize = 1000;
