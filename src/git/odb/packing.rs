//! Makes one pack of the loose objects that checkpoints added, once there are many.
//!
//! So there are never more than 500 of them (beside large ones, which are not packed): each is a file, and from some
//! thousands on `git gc` would begin by itself. Packs that were made here before and are not much larger become part of
//! the new one, so that there are few. What is the user's own, loose or packed, is never examined.
//!
//! `$GIT_COMMON_DIR/recover/written/packs` names the packs. One that git repacked is gone. Where that file is lost or
//! damaged, the packs are left to `git gc`.
//!
//! **Order.** A pack is named there, then synced and published, and only then what it holds a second time is removed:
//! cut off anywhere, every object is still there, and what is there twice is packed the next time. No capture is under
//! way meanwhile in any worktree, so that every object that is needed is held by a reference: a collection that begins
//! while this goes on sees it, and one that began before removes no pack that came later.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flate2::read::ZlibDecoder;
use git2::Oid;

use super::format::{self, loose_path, read_head};
use super::owned_objects;
use super::pack::{IN_MEMORY, Pack, PackWriter, UNPACK_LIMIT};
use super::publish::{self, Staged, gone};
use crate::git::base::error::{Error, Result};
use crate::git::repo::gc;
use crate::git::repo::repository::Repo;

/// So many become a pack before a capture adds up to [`UNPACK_LIMIT`] more.
const MANY: u64 = 500 - UNPACK_LIMIT as u64;
/// A larger file, in bytes, stays loose, as does content that is not read into memory.
const LARGE: u64 = 1 << 20;
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
}

struct Ours {
    pack: Pack,
    /// When it was made, in nanoseconds since the epoch.
    at: u64,
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

/// Merges the lists and packs their loose objects where there are many and no capture is under way. The quarantine is
/// the caller's, and empty before and afterwards. A failure leaves things as they are: nothing depends on it.
pub(super) fn tidy_up(repo: &Repo, quarantine: &Path, objects: &Path) {
    if let Err(error) = try_tidy_up(repo, &quarantine.join("objects"), objects) {
        tracing::debug!(%error, "the objects of checkpoints stay as they are");
    }
}

fn try_tidy_up(repo: &Repo, drafts: &Path, objects: &Path) -> Result<()> {
    let is_scattered = owned_objects::is_scattered(repo)?;
    // Where captures never cease there are ever more lists, and nobody is alone to merge them: they are not looked at then.
    let mut alone = if is_scattered { owned_objects::try_lock_exclusive(repo)? } else { None };
    if is_scattered && alone.is_none() {
        return Ok(());
    }
    let packed = repo.shared().open(&path(repo)).and_then(|file| file.metadata()?.modified()).ok();
    let is_due = owned_objects::loose(repo, packed)? >= MANY && !gc::is_announced(repo.common_dir());
    if !is_due && !is_scattered {
        return Ok(());
    }
    if alone.is_none() {
        alone = owned_objects::try_lock_exclusive(repo)?;
    }
    let Some(_alone) = alone else { return Ok(()) };
    owned_objects::merge(repo)?;
    if is_due {
        let done = pack_loose(repo, drafts, objects);
        publish::empty(drafts)?;
        done?;
    }
    Ok(())
}

fn pack_loose(repo: &Repo, drafts: &Path, objects: &Path) -> Result<()> {
    let mut packs = Packs::read(repo, objects)?;
    repo.own().create_dir_all(drafts).map_err(Error::at(drafts))?;
    let mut writer = PackWriter::create(drafts.join("packing"))?;
    let (mut done, mut loose) = (HashSet::new(), Vec::new());
    for list in owned_objects::unpacked(repo)? {
        for oid in &list.files.loose {
            let path = loose_path(objects, *oid);
            if done.contains(oid) || !can_be_packed(&path, *oid).map_err(Error::at(&path))? {
                continue;
            }
            if let Some(until) = touched_until(&path, list.at) {
                packs.touched.insert(*oid, until);
            }
            writer.append_loose(*oid, &path)?;
            done.insert(*oid);
            loose.push(path);
        }
    }
    if loose.is_empty() {
        packs.write(repo, None)?;
        return owned_objects::set_packed(repo);
    }
    let absorbed = packs.absorbed_by(writer.size(), objects)?;
    for one in &absorbed {
        writer.append_pack(&packs.all[*one].pack, &mut done)?;
    }
    let pack = writer.finish(&drafts.join("pack"))?;
    packs.publish(repo, drafts, objects, pack)?;
    loose.iter().try_for_each(|path| gone(fs::remove_file(path)).map_err(Error::at(path)))?;
    // The new one is the last.
    for one in absorbed.into_iter().rev() {
        packs.drop_pack(one)?;
    }
    packs.write(repo, None)?;
    owned_objects::set_packed(repo)
}

/// Whether it is loose, whole and not too large.
fn can_be_packed(path: &Path, oid: Oid) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    if file.metadata()?.len() > LARGE {
        return Ok(false);
    }
    let head = read_head(&mut BufReader::with_capacity(1 << 12, ZlibDecoder::new(file)));
    Ok(head.is_some_and(|(_, size)| size <= IN_MEMORY as u64) && format::is_whole(path, oid)?)
}

impl Packs {
    /// Those that are there. Nothing is known of them where the file that names them is damaged.
    pub fn read(repo: &Repo, objects: &Path) -> Result<Self> {
        let path = path(repo);
        let bytes = repo.shared().read_present(&path).map_err(Error::at(&path))?.unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap_or_default();
        let (named, mut touched) = decode(&text).unwrap_or_default();
        let now = nanos(SystemTime::now());
        touched.retain(|_, until| *until > now);
        let mut all = Vec::new();
        for (name, at) in named {
            let file = objects.join("pack").join(format!("{name}.pack"));
            if !file.exists() {
                continue;
            }
            match Pack::open(file) {
                Ok(pack) => all.push(Ours { pack, at }),
                Err(Error::Corrupt { .. }) => {}
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { all, touched })
    }

    /// The ids of all objects in them.
    pub fn ids(&self) -> impl Iterator<Item = Oid> {
        self.all.iter().flat_map(|ours| ours.pack.ids())
    }

    /// Names those that are there, and one that is going to be.
    fn write(&self, repo: &Repo, new: Option<&Ours>) -> Result<()> {
        let mut text = format!("{HEAD}\n");
        for ours in self.all.iter().chain(new) {
            let _ = writeln!(text, "pack {} {}", ours.pack.name(), ours.at);
        }
        for (oid, until) in &self.touched {
            let _ = writeln!(text, "touched {oid} {until}");
        }
        owned_objects::seal(&mut text);
        owned_objects::put(repo, &path(repo), &text)
    }

    /// Publishes a pack as the last of them.
    fn publish(&mut self, repo: &Repo, drafts: &Path, objects: &Path, pack: Pack) -> Result<()> {
        let new = Ours { pack, at: nanos(SystemTime::now()) };
        self.write(repo, Some(&new))?;
        publish::publish(drafts, objects, &[Staged::Pack(new.pack.clone())])?;
        let pack = Pack::open(objects.join("pack").join(format!("{}.pack", new.pack.name())))?;
        self.all.push(Ours { pack, ..new });
        Ok(())
    }

    /// Forgets a pack, and removes it unless one with the same content was published after it. Returns how many bytes
    /// that were.
    fn drop_pack(&mut self, number: usize) -> Result<u64> {
        let Ours { pack, .. } = self.all.remove(number);
        if self.all.iter().any(|other| other.pack.file == pack.file) { Ok(0) } else { remove_pack(&pack.file) }
    }

    /// Which of them become part of a new one of so many bytes: those that are smaller than what comes together.
    fn absorbed_by(&self, size: u64, objects: &Path) -> Result<Vec<usize>> {
        let mut absorbed = Vec::new();
        if is_indexed_with_others(objects) {
            return Ok(absorbed);
        }
        let mut sizes = Vec::new();
        for (number, ours) in self.all.iter().enumerate() {
            let file = &ours.pack.file;
            let bytes = fs::metadata(file).map_err(Error::at(file))?.len();
            if bytes <= LARGE_PACK && !ours.stays() {
                sizes.push((bytes, number));
            }
        }
        sizes.sort_unstable();
        let mut total = size;
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
    pub fn remove(
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
        let obstacle = if gc::is_announced(repo.common_dir()) {
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
                let hits: Vec<Oid> = ours.pack.ids().filter(|oid| unneeded.contains(oid)).collect();
                let mut grown = 0;
                if partly {
                    repo.own().create_dir_all(drafts).map_err(Error::at(drafts))?;
                    let mut writer = PackWriter::create(drafts.join(format!("packing-{number}")))?;
                    writer.append_pack(&ours.pack, &mut unneeded.clone())?;
                    let pack = writer.finish(&drafts.join("pack"))?;
                    grown = size_of(&pack.file) + size_of(&pack.index);
                    self.publish(repo, drafts, objects, pack)?;
                }
                removed.bytes += self.drop_pack(number)?.saturating_sub(grown);
                removed.objects.extend(hits);
            }
        }
        self.write(repo, None)
    }
}

impl Ours {
    /// Whether somebody keeps it, or needs something of it as it seems.
    fn stays(&self) -> bool {
        self.pack.file.with_extension("keep").exists() || touched_until(&self.pack.file, self.at).is_some()
    }
}

fn path(repo: &Repo) -> PathBuf {
    owned_objects::folder(repo).join(FILE)
}

/// Packs by name, and objects that were touched; each with a time in nanoseconds since the epoch.
type Noted = (Vec<(String, u64)>, BTreeMap<Oid, u64>);

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
    let until = fs::metadata(path).ok()?.modified().ok().filter(|modified| nanos(*modified) > at)? + GRACE;
    (until > SystemTime::now()).then(|| nanos(until))
}

fn nanos(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |at| u64::try_from(at.as_nanos()).unwrap_or(0))
}

/// Whether git found objects in packs by an index of several, which names them.
fn is_indexed_with_others(objects: &Path) -> bool {
    ["multi-pack-index", "multi-pack-index.d"].iter().any(|name| objects.join("pack").join(name).exists())
}

/// Removes a pack and what belongs to it. Returns how many bytes that were.
pub(in crate::git) fn remove_pack(file: &Path) -> Result<u64> {
    let mut bytes = 0;
    // The index first: a pack without one is nothing that git would read.
    for end in ["idx", "rev", "bitmap", "pack"] {
        let path = file.with_extension(end);
        let size = size_of(&path);
        gone(fs::remove_file(&path)).map_err(Error::at(&path))?;
        bytes += size;
    }
    Ok(bytes)
}

fn size_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}
