//! Makes one pack of the small ones of checkpoints, once there are many.
//!
//! The objects of a checkpoint, up to [`SMALL`], are a small pack: three syncs, whatever they are, rather than two for each.
//! [`FEW`] of these become one, with packs that were made here before and are not much larger, so that there are never many:
//! `git gc` would begin by itself at fifty. From [`MOST`] on, where that cannot be done, new objects are loose. What is the
//! user's own, loose or packed, is never examined.
//!
//! `$GIT_COMMON_DIR/recover/written/packs` names the packs, `small-*` beside it the small ones, `going-*` those that are being
//! removed. One that git repacked is gone. Where such a file is lost or damaged, the packs are left to `git gc`, as is one that is damaged itself.
//!
//! **Order.** A pack is named there, then synced and published, then those that it holds a second time are noted to be going,
//! and removed: cut off anywhere, every object is still there, and the next time what is there twice is packed, and a removal
//! finished. Every object that is
//! needed is held by a reference: a collection that begins while this goes on sees it, and one that began before removes no
//! pack that came later. A small pack whose reference is not set yet has a file that keeps it, and is left: captures may go on
//! beside that.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use git2::Oid;

use super::owned_objects::{self, Listing, nanos};
use super::pack::{Pack, PackWriter};
use super::publish::{self, Staged};
use crate::git::base::error::{At as _, Error, Result, present};
use crate::git::repo::{Repo, health};

/// This number of small packs become one.
const FEW: usize = 16;
/// With this many small packs no more are made.
pub(super) const MOST: usize = 32;
/// This many objects are a small pack at most: the list of what a checkpoint added names each of them.
pub(super) const SMALL: usize = 2000;
/// A pack is published at the latest so long after it was noted.
const SOON: Duration = Duration::from_secs(60);
/// A larger pack, in bytes, does not become part of a new one.
const LARGE_PACK: u64 = 64 << 20;
/// How long a touched file is left: git touches an object that it needs, and only afterwards refers to it.
const GRACE: Duration = Duration::from_secs(3600);

const HEAD: &str = "recover-packs 1";
const FILE: &str = "packs";

/// The packs that were made here and are still there.
pub(in crate::git) struct Packs {
    all: Vec<Ours>,
    /// Objects that were touched before they were packed, and until when they are left for that.
    touched: BTreeMap<Oid, u64>,
    /// The notes of small packs, which go when all is done: until then the next capture finds as many as this one.
    notes: Vec<String>,
}

struct Ours {
    pack: Pack,
    /// When it was made, in nanoseconds since the epoch.
    at: u64,
    /// Whether it cannot be read whole: then it is left alone, and not named any more.
    is_damaged: bool,
}

/// What was removed from the packs.
#[derive(Default)]
pub(in crate::git) struct Removed {
    pub objects: HashSet<Oid>,
    /// How much smaller the packs are now.
    pub bytes: u64,
    /// Why something stays, where that is so.
    pub left: Option<String>,
}

/// Merges small packs and lists where there are many. The quarantine is the caller's, and empty before and afterwards. A failure
/// leaves things as they are: nothing depends on it. Returns what is noted now, where that can be read.
pub(super) fn tidy_up(repo: &Repo, quarantine: &Path, objects: &Path) -> Option<Listing> {
    let failed =
        |error: &Error| tracing::debug!(%error, "the objects of checkpoints stay as they are");
    let listing = Listing::read(repo).inspect_err(failed).ok()?;
    match try_tidy_up(repo, &quarantine.join("objects"), objects, &listing).inspect_err(failed) {
        Ok(false) => Some(listing),
        _ => Listing::read(repo).inspect_err(failed).ok(),
    }
}

/// Whether anything was done.
fn try_tidy_up(repo: &Repo, drafts: &Path, objects: &Path, listing: &Listing) -> Result<bool> {
    let mut is_done = false;
    // Removals that were cut off.
    for name in listing.going() {
        is_done = true;
        remove_pack(repo, &objects.join("pack").join(format!("{name}.pack")))?;
    }
    let is_due = listing.small().count() >= FEW
        && !health::is_gc_announced(repo.common_dir())
        && !is_indexed_with_others(objects);
    if !is_due && !listing.is_scattered() {
        return Ok(is_done);
    }
    let Some(_others_wait) = owned_objects::try_lock_packing(repo)? else {
        return Ok(is_done);
    };
    if is_due {
        let done = pack(repo, drafts, objects);
        publish::clear(drafts, objects)?;
        done?;
    }
    if listing.is_scattered() {
        owned_objects::merge(repo)?;
    }
    Ok(true)
}

/// Makes one pack of the small ones.
fn pack(repo: &Repo, drafts: &Path, objects: &Path) -> Result<()> {
    let mut packs = Packs::read(repo, objects)?;
    let mut absorbed = packs.absorbed()?;
    if absorbed.len() < 2 {
        return packs.settle(repo);
    }
    repo.own().create_dir_all(drafts).at(drafts)?;
    let mut writer = PackWriter::create(drafts.join("packing"))?;
    let mut done = HashSet::new();
    for one in &absorbed {
        let Ours {
            pack,
            at,
            is_damaged,
        } = &mut packs.all[*one];
        match writer.append_pack(pack, &mut done) {
            Err(Error::Corrupt(_)) => *is_damaged = true,
            appended => appended?,
        }
        // git may be about to refer to something of it.
        if let Some(until) = touched_until(&pack.file, *at) {
            packs.touched.extend(pack.ids().map(|oid| (oid, until)));
        }
    }
    absorbed.retain(|one| !packs.all[*one].is_damaged);
    if packs.all.iter().any(|ours| ours.is_damaged) {
        // What it held and still lies in the work tree is written again.
        repo.mark_odb_suspect()?;
    }
    let pack = writer.finish(&drafts.join("pack"))?;
    packs.publish(repo, drafts, objects, pack)?;
    packs.remove_packs(repo, &absorbed)?;
    packs.settle(repo)
}

/// Whether a pack that was made here does not end as its index says, which a few bytes of both show: it was cut short, or
/// another one lies there. What is damaged in its middle is found by whoever reads it, as is what cannot be read here.
pub(super) fn is_any_cut_short(repo: &Repo, objects: &Path, listing: &Listing) -> bool {
    let find = || -> Result<bool> {
        let (named, _) = read_noted(repo)?;
        let named = named.iter().map(|(name, _)| name.as_str());
        for name in named.chain(listing.small()) {
            if is_cut_short(objects, name)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    find().unwrap_or_else(|error| {
        tracing::debug!(%error, "the packs of checkpoints are not examined");
        false
    })
}

/// Whether a pack does not end as its index says. Without an index it was collected, or is about to be published.
pub(super) fn is_cut_short(objects: &Path, name: &str) -> Result<bool> {
    let file = |ending: &str| objects.join("pack").join(format!("{name}.{ending}"));
    let Some(index) = end_of(&file("idx"), 40)? else {
        return Ok(false);
    };
    Ok(end_of(&file("pack"), 20)?.is_none_or(|end| !index.starts_with(&end) || end.is_empty()))
}

/// The last `count` bytes of a file, or what there is; `None` where it is not there.
fn end_of(path: &Path, count: u64) -> Result<Option<Vec<u8>>> {
    let read = || {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let at = size.saturating_sub(count);
        let mut end = vec![0; usize::try_from(size - at).map_err(io::Error::other)?];
        file.read_exact_at(&mut end, at)?;
        Ok(end)
    };
    present(path, read())
}

impl Packs {
    /// Those that are there. Nothing is known of them where the file that names them is damaged.
    pub(crate) fn read(repo: &Repo, objects: &Path) -> Result<Self> {
        let (named, mut touched) = read_noted(repo)?;
        let now = nanos(SystemTime::now());
        touched.retain(|_, until| *until > now);
        let known: HashSet<String> = named.iter().map(|(name, _)| name.clone()).collect();
        let small = owned_objects::small(repo)?;
        // One that is not there was collected, or is about to be published.
        let is_known = |(name, at): &&(String, u64)| {
            objects.join("pack").join(format!("{name}.idx")).exists()
                || *at < nanos(SystemTime::now() - SOON)
        };
        let notes = small
            .iter()
            .filter(is_known)
            .map(|(name, _)| name.clone())
            .collect();
        // A kill may have come between the file that names all and the removal of a note.
        let small = small.into_iter().filter(|(name, _)| !known.contains(name));
        let named = named.into_iter().map(|named| (named, false));
        let mut all = Vec::new();
        for ((name, at), is_small) in named.chain(small.map(|small| (small, true))) {
            let file = objects.join("pack").join(format!("{name}.pack"));
            if !file.exists() {
                continue;
            }
            match Pack::open(file) {
                Ok(mut pack) => {
                    pack.is_small = is_small;
                    all.push(Ours {
                        pack,
                        at,
                        is_damaged: false,
                    });
                }
                Err(Error::Corrupt(_)) => {}
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            all,
            touched,
            notes,
        })
    }

    /// The ids of all objects in them.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Oid> {
        self.all.iter().flat_map(|ours| ours.pack.ids())
    }

    /// Names those that are there, and one that is going to be.
    fn write(&self, repo: &Repo, new: Option<&Ours>) -> Result<()> {
        let mut text = format!("{HEAD}\n");
        for ours in self.all.iter().chain(new).filter(|ours| !ours.is_damaged) {
            let _ = writeln!(text, "pack {} {}", ours.pack.name(), ours.at);
        }
        for (oid, until) in &self.touched {
            let _ = writeln!(text, "touched {oid} {until}");
        }
        owned_objects::seal(&mut text);
        owned_objects::put(repo, &path(repo), &text)
    }

    /// Names those that are there at last. None is a small one from here on.
    fn settle(&mut self, repo: &Repo) -> Result<()> {
        self.write(repo, None)?;
        self.notes
            .drain(..)
            .try_for_each(|name| owned_objects::forget_small(repo, &name))
    }

    /// Publishes a pack as the last of them.
    fn publish(&mut self, repo: &Repo, drafts: &Path, objects: &Path, pack: Pack) -> Result<()> {
        let new = Ours {
            pack,
            at: nanos(SystemTime::now()),
            is_damaged: false,
        };
        self.write(repo, Some(&new))?;
        publish::publish(drafts, objects, &[Staged::Pack(new.pack.clone())], None)?;
        let pack = Pack::open(
            objects
                .join("pack")
                .join(format!("{}.pack", new.pack.name())),
        )?;
        self.all.push(Ours { pack, ..new });
        Ok(())
    }

    /// Removes packs by their numbers, which are sorted. Returns how many bytes that were.
    fn remove_packs(&mut self, repo: &Repo, numbers: &[usize]) -> Result<u64> {
        let mut bytes = 0;
        for number in numbers.iter().rev() {
            let Ours { pack, .. } = self.all.remove(*number);
            bytes += remove_pack(repo, &pack.file)?;
            self.notes.retain(|name| *name != pack.name());
            owned_objects::forget_small(repo, &pack.name())?;
        }
        Ok(bytes)
    }

    /// Which of them become part of a new one, sorted: the small ones, and those that are smaller than what comes together.
    fn absorbed(&self) -> Result<Vec<usize>> {
        let (mut absorbed, mut sizes, mut total) = (Vec::new(), Vec::new(), 0);
        for (number, ours) in self.all.iter().enumerate() {
            let file = &ours.pack.file;
            let bytes = fs::metadata(file).at(file)?.len();
            if bytes > LARGE_PACK || ours.is_kept() {
                continue;
            }
            if ours.pack.is_small {
                total += bytes;
                absorbed.push(number);
            } else if touched_until(file, ours.at).is_none() {
                sizes.push((bytes, number));
            }
        }
        sizes.sort_unstable();
        for (bytes, number) in sizes {
            if bytes / 2 > total {
                break;
            }
            total += bytes;
            absorbed.push(number);
        }
        absorbed.sort_unstable();
        Ok(absorbed)
    }

    /// Removes objects that nothing needs: a pack of nothing else goes, another one is written again without them. Those
    /// that git may be about to refer to stay. Only for who holds off captures; `drafts` is an empty quarantine's folder of objects.
    pub(crate) fn remove(
        &mut self,
        repo: &Repo,
        drafts: &Path,
        objects: &Path,
        mut unneeded: HashSet<Oid>,
        removed: &mut Removed,
    ) -> Result<()> {
        unneeded.retain(|oid| !self.touched.contains_key(oid));
        let hit = |ours: &Ours| ours.pack.ids().any(|oid| unneeded.contains(&oid));
        if !self.all.iter().any(hit) {
            return Ok(());
        }
        let obstacle = if health::is_gc_announced(repo.common_dir()) {
            Some("a git gc is under way")
        } else {
            is_indexed_with_others(objects).then_some("their packs are part of a multi-pack-index")
        };
        if let Some(obstacle) = obstacle {
            removed.left = Some(obstacle.to_owned());
            return Ok(());
        }
        // First those that need no room.
        for partly in [false, true] {
            for number in (0..self.all.len()).rev() {
                let ours = &self.all[number];
                let needs_some = ours.pack.ids().any(|oid| !unneeded.contains(&oid));
                if !hit(ours) || ours.stays() || needs_some != partly {
                    continue;
                }
                let hits: Vec<Oid> = ours
                    .pack
                    .ids()
                    .filter(|oid| unneeded.contains(oid))
                    .collect();
                let mut grown = 0;
                if partly {
                    repo.own().create_dir_all(drafts).at(drafts)?;
                    let mut writer = PackWriter::create(drafts.join(format!("packing-{number}")))?;
                    writer.append_pack(&ours.pack, &mut unneeded.clone())?;
                    let pack = writer.finish(&drafts.join("pack"))?;
                    grown = size_of(&pack.file) + size_of(&pack.index);
                    self.publish(repo, drafts, objects, pack)?;
                }
                removed.bytes += self.remove_packs(repo, &[number])?.saturating_sub(grown);
                removed.objects.extend(hits);
            }
        }
        self.settle(repo)?;
        if self.all.is_empty() && self.touched.is_empty() {
            let path = path(repo);
            present(&path, repo.shared().remove_file(&path))?;
        }
        Ok(())
    }
}

impl Ours {
    fn is_kept(&self) -> bool {
        self.pack.file.with_extension("keep").exists()
    }

    /// Whether a process keeps it, or needs something of it as it seems.
    fn stays(&self) -> bool {
        self.is_kept() || touched_until(&self.pack.file, self.at).is_some()
    }
}

fn path(repo: &Repo) -> PathBuf {
    owned_objects::folder(repo).join(FILE)
}

/// Packs by name, and objects that were touched; each with a time in nanoseconds since the epoch.
type Noted = (Vec<(String, u64)>, BTreeMap<Oid, u64>);

/// What is noted; nothing where that is damaged.
fn read_noted(repo: &Repo) -> Result<Noted> {
    let path = path(repo);
    let read = present(&path, repo.shared().read(&path))?.unwrap_or_default();
    let text = String::from_utf8(read).unwrap_or_default();
    Ok(decode(&text).unwrap_or_default())
}

fn decode(text: &str) -> Option<Noted> {
    let lines = owned_objects::unsealed(text, HEAD)?;
    let (mut named, mut touched) = (Vec::new(), BTreeMap::new());
    for line in lines {
        let (kind, rest) = line.split_once(' ')?;
        let (what, at) = rest.split_once(' ')?;
        match kind {
            "pack" => named.push((what.to_owned(), at.parse().ok()?)),
            "touched" => drop(touched.insert(Oid::from_str(what).ok()?, at.parse().ok()?)),
            _ => return None,
        }
    }
    Some((named, touched))
}

/// Until when a file is left, in nanoseconds since the epoch; `None` unless it was touched after it was written, and not
/// long ago.
pub(in crate::git) fn touched_until(path: &Path, at: u64) -> Option<u64> {
    let until = fs::metadata(path)
        .ok()?
        .modified()
        .ok()
        .filter(|modified| nanos(*modified) > at)?
        + GRACE;
    (until > SystemTime::now()).then(|| nanos(until))
}

/// Whether git found objects in packs by an index of several, which names them.
fn is_indexed_with_others(objects: &Path) -> bool {
    ["multi-pack-index", "multi-pack-index.d"]
        .iter()
        .any(|name| objects.join("pack").join(name).exists())
}

/// Removes a pack and what belongs to it; what a kill leaves of it is noted. Returns how many bytes that were.
pub(in crate::git) fn remove_pack(repo: &Repo, file: &Path) -> Result<u64> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    owned_objects::note_going(repo, &name);
    let mut bytes = 0;
    // The index first: a pack without one is nothing that git would read.
    for end in ["idx", "rev", "bitmap", "pack"] {
        let path = file.with_extension(end);
        let size = size_of(&path);
        present(&path, fs::remove_file(&path))?;
        bytes += size;
    }
    owned_objects::forget_going(repo, &name)?;
    Ok(bytes)
}

fn size_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}
