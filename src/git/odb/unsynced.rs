//! What other programs wrote to the object database and did not sync.
//!
//! git does not sync an object in a file of its own, so that a power failure can leave it empty, or take it away, while the
//! index and commits go on naming it.
//!
//! A stamp, `$GIT_DIR/recover/synced`, says what is on disk: loose objects older than a time of the file system's clock, and
//! packs by name. What it does not cover is read when a writer begins, and synced before anything is published that may rely
//! on it; then the stamp covers it too. Whether the machine was started again meanwhile makes no difference. Finding what is
//! new reads the times of the 256 folders of loose objects, and those of the objects in folders that changed.
//!
//! The stamp itself is not synced: where it is lost or damaged, everything is read and synced once more.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::Oid;
use serde::{Deserialize, Serialize};

use super::publish::{self, Staged};
use super::{database, format, pack, packing};
use crate::durable::{Root, Sync};
use crate::git::base::{At as _, Error, Result, SMALL_TASKS, margin, work_queue};
use crate::git::repo::repository::Repo;

const FILE: &str = "synced";
/// What is on disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Stamp {
    /// Loose objects that are older, in nanoseconds of the file system's clock.
    before: i64,
    /// Loose objects that are not older.
    recent: BTreeSet<String>,
    /// Packs by name, for each folder of objects.
    packs: BTreeMap<String, BTreeSet<String>>,
    /// Loose objects that are empty or damaged.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    damaged: BTreeSet<String>,
}

/// What is in a folder of objects and not covered by the stamp.
#[derive(Debug, Default)]
struct Found {
    loose: Vec<Loose>,
    packs: BTreeSet<String>,
}

#[derive(Debug)]
struct Loose {
    oid: Oid,
    path: PathBuf,
    changed: i64,
}

/// The files of an object database that need not be on disk.
#[derive(Debug)]
pub(super) struct Unsynced {
    root: Root,
    file: PathBuf,
    stamp: Stamp,
    /// When the writer began, by the file system's clock.
    began: i64,
    /// The folders of objects, own and borrowed.
    pub folders: Vec<PathBuf>,
    /// Loose objects that are empty or damaged: not to be believed without a look.
    pub damaged: HashSet<Oid>,
    /// Whether anything was not covered by the stamp.
    pub is_any_new: bool,
    /// Whether a new pack does not end as its index says.
    pub has_damaged_pack: bool,
    /// Whether a folder of objects or a pack is gone that was there: what it held may be gone too.
    pub is_any_gone: bool,
    /// What this writer placed, and so synced: names of packs and loose objects.
    own: BTreeSet<String>,
}

impl Unsynced {
    /// Reads what is not known to be on disk. Nothing is written but the file that gives the file system's time, and not
    /// that in a rehearsal.
    pub(super) fn read(repo: &Repo, objects: &Path, rehearsal: bool) -> Result<Self> {
        let (root, file) = (repo.own().clone(), repo.own_folder().join(FILE));
        let began = if rehearsal {
            i64::MAX
        } else {
            repo.file_system_time()?
        };
        let read = root.read_if_possible(&file).at(&file)?.unwrap_or_default();
        let stamp: Stamp = serde_json::from_slice(&read).unwrap_or_default();
        // A clock that was set back orders nothing.
        let stamp = if stamp.before > began {
            Stamp::default()
        } else {
            stamp
        };
        let mut folders = database::folders(objects);
        folders.retain(|folder| folder.is_dir());
        let mut this = Self {
            root,
            file,
            stamp,
            began,
            folders,
            damaged: HashSet::new(),
            is_any_new: false,
            has_damaged_pack: false,
            is_any_gone: false,
            own: BTreeSet::new(),
        };
        let damaged = this.stamp.damaged.iter();
        let mut loose: Vec<(Oid, PathBuf)> = damaged
            .filter_map(|oid| Oid::from_str(oid).ok())
            .flat_map(|oid| this.places(oid).map(move |path| (oid, path)))
            .collect();
        let known = loose.len();
        for folder in &this.folders {
            let found = this.find(folder)?;
            this.is_any_new |= !found.loose.is_empty() || !found.packs.is_empty();
            loose.extend(found.loose.into_iter().map(|loose| (loose.oid, loose.path)));
            for pack in &found.packs {
                this.has_damaged_pack |= packing::is_cut_short(folder, pack)?;
            }
        }
        let names: BTreeMap<String, BTreeSet<String>> = this.packs();
        let is_there = |(folder, packs): (&String, &BTreeSet<String>)| {
            names.get(folder).is_some_and(|now| packs.is_subset(now))
        };
        this.is_any_gone = !this.stamp.packs.iter().all(is_there);
        this.damaged = damaged_of(&loose)?;
        let mut new = loose[known..]
            .iter()
            .filter(|(oid, _)| this.damaged.contains(oid));
        if let Some((oid, _)) = new.next() {
            let others = match new.count() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            tracing::warn!(
                "git's object {oid}{others} is empty or damaged, as a power failure leaves it; what the work tree has of \
                 that is stored again"
            );
        }
        Ok(this)
    }

    /// Notes that the writer placed these files and synced them.
    pub(super) fn wrote(&mut self, staged: &[Staged]) {
        self.own.extend(staged.iter().map(|one| match one {
            Staged::Loose { oid, .. } => oid.to_string(),
            Staged::Pack(pack) => pack.name(),
        }));
    }

    /// Syncs what other programs wrote, and notes that.
    pub(super) fn sync(&mut self) -> Result<()> {
        let since = self.began.saturating_sub(margin(self.began));
        let (packs, mut recent) = (self.packs(), BTreeSet::new());
        for folder in &self.folders {
            let (mut files, mut folders) = (Vec::new(), BTreeSet::new());
            let found = self.find(folder)?;
            for Loose { oid, path, changed } in found.loose {
                let name = oid.to_string();
                if !self.own.contains(&name) {
                    // That of the objects too: the one that is directly in it may be new.
                    folders.extend([path.parent().unwrap_or(folder).to_owned(), folder.clone()]);
                    files.push(path);
                }
                if changed >= since {
                    recent.insert(name);
                }
            }
            for pack in found.packs.iter().filter(|pack| !self.own.contains(*pack)) {
                let place = folder.join("pack");
                files.extend(["pack", "idx"].map(|end| place.join(format!("{pack}.{end}"))));
                folders.insert(place);
            }
            let all: Vec<&Path> = files.iter().chain(&folders).map(PathBuf::as_path).collect();
            publish::sync(folder, &all, |synced| unless_gone(synced).map(drop))?;
        }
        // Of those that were covered the time says it now.
        if self.stamp.before == self.began {
            recent.append(&mut self.stamp.recent);
        } else {
            let mut known = std::mem::take(&mut self.stamp.recent);
            known.retain(|oid| {
                Oid::from_str(oid).is_ok_and(|oid| {
                    self.places(oid)
                        .any(|path| fs::metadata(path).is_ok_and(|file| changed(&file) >= since))
                })
            });
            recent.append(&mut known);
        }
        let damaged = self.damaged.iter().map(Oid::to_string).collect();
        self.is_any_new = false;
        self.stamp = Stamp {
            before: self.began,
            recent,
            packs,
            damaged,
        };
        let text =
            serde_json::to_vec(&self.stamp).map_err(|error| Error::corrupt(error.to_string()))?;
        self.root
            .write(&self.file, &text, Sync::Nothing)
            .at(&self.file)
    }

    /// Where an object may be loose.
    fn places(&self, oid: Oid) -> impl Iterator<Item = PathBuf> {
        let folders = self.folders.iter();
        folders.map(move |folder| format::loose_path(folder, oid))
    }

    /// The packs that are there, by the folder of objects.
    fn packs(&self) -> BTreeMap<String, BTreeSet<String>> {
        self.folders
            .iter()
            .map(|folder| (key(folder), pack_names(folder)))
            .collect()
    }

    fn find(&self, folder: &Path) -> Result<Found> {
        let known = self.stamp.packs.get(&key(folder));
        let since = known.map(|_| self.stamp.before.saturating_sub(margin(self.stamp.before)));
        let is_new = |file: &Metadata| since.is_none_or(|since| changed(file) >= since);
        let mut found = Found::default();
        for place in entries(folder)? {
            let name = place.file_name();
            let Some(begin) = name
                .to_str()
                .filter(|name| name.len() == 2 && *name != "..")
            else {
                continue;
            };
            let Some(metadata) = unless_gone(fs::metadata(place.path())).at(folder)? else {
                continue;
            };
            if !metadata.is_dir() || !is_new(&metadata) {
                continue;
            }
            for entry in entries(&place.path())? {
                let end = entry.file_name();
                let id = end
                    .to_str()
                    .filter(|end| end.len() == 38)
                    .map(|end| format!("{begin}{end}"));
                let Some(oid) = id.and_then(|id| Oid::from_str(&id).ok()) else {
                    continue;
                };
                let path = entry.path();
                let Some(file) = unless_gone(entry.metadata()).at(&path)? else {
                    continue;
                };
                let is_known = known.is_some() && self.stamp.recent.contains(&oid.to_string());
                if is_new(&file) && !is_known {
                    found.loose.push(Loose {
                        oid,
                        path,
                        changed: changed(&file),
                    });
                }
            }
        }
        found.packs = pack_names(folder);
        found
            .packs
            .retain(|pack| known.is_none_or(|known| !known.contains(pack)));
        Ok(found)
    }
}

/// Which of these loose objects are there and not what their ids say.
fn damaged_of(loose: &[(Oid, PathBuf)]) -> Result<HashSet<Oid>> {
    let damaged = work_queue::each(loose, SMALL_TASKS, |(oid, path)| {
        let is_whole = unless_gone(format::is_whole(path, *oid)).at(path)?;
        Ok((is_whole == Some(false)).then_some(*oid))
    })?;
    Ok(damaged.into_iter().collect())
}

fn pack_names(folder: &Path) -> BTreeSet<String> {
    let stem = |name: &std::ffi::OsString| {
        Path::new(name)
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
    };
    pack::pack_names(folder).iter().filter_map(stem).collect()
}

/// How the stamp calls a folder of objects.
fn key(folder: &Path) -> String {
    folder.to_string_lossy().into_owned()
}

/// When a file or folder was changed last, its names included.
fn changed(file: &Metadata) -> i64 {
    file.ctime()
        .saturating_mul(1_000_000_000)
        .saturating_add(file.ctime_nsec())
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>> {
    let read = fs::read_dir(folder).and_then(Iterator::collect);
    Ok(unless_gone(read).at(folder)?.unwrap_or_default())
}

/// A `git gc` may take anything away at any time, and what may not be read is not relied on.
fn unless_gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(None)
        }
        done => done.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use git2::ObjectType;

    use super::*;
    use crate::git::odb::objects::ObjectWriter;
    use crate::git::repo::WorktreeLock;

    struct Place {
        folder: tempfile::TempDir,
        repo: Repo,
        lock: WorktreeLock,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            git2::Repository::init(folder.path()).unwrap();
            let repo = Repo::discover(folder.path(), None).unwrap();
            let lock = WorktreeLock::acquire(&repo, Duration::ZERO).unwrap();
            Self { folder, repo, lock }
        }

        fn objects(&self) -> PathBuf {
            fs::canonicalize(self.folder.path().join(".git/objects")).unwrap()
        }

        fn read(&self) -> Unsynced {
            Unsynced::read(&self.repo, &self.objects(), false).unwrap()
        }

        /// Writes an object as git does.
        fn others(&self, text: &str) -> Oid {
            self.repo
                .inner
                .odb()
                .unwrap()
                .write(ObjectType::Blob, text.as_bytes())
                .unwrap()
        }

        /// Publishes as a capture does, which may rely on anything.
        fn publish(&self, texts: &[&str]) {
            let writer = ObjectWriter::new(&self.repo, &self.lock).unwrap();
            for text in texts {
                writer.write(ObjectType::Blob, text.as_bytes()).unwrap();
            }
            writer.publish().unwrap();
        }
    }

    #[test]
    fn only_what_others_wrote_since_the_last_time_is_new() {
        let place = Place::new();
        assert!(!place.read().is_any_new);
        place.others("one");
        assert!(place.read().is_any_new);
        place.publish(&[]);
        assert!(!place.read().is_any_new, "it is synced");
        place.publish(&["alone"]);
        place.publish(&["a pack", "of two"]);
        assert!(!place.read().is_any_new, "what a writer writes it syncs");
        place.others("two");
        assert!(place.read().is_any_new);
        place.publish(&["three"]);
        assert!(!place.read().is_any_new);
        fs::write(place.repo.own_folder().join(FILE), "{\"before\":").unwrap();
        assert!(place.read().is_any_new, "without a stamp everything is");
        let later = Stamp {
            before: i64::MAX,
            ..Stamp::default()
        };
        fs::write(
            place.repo.own_folder().join(FILE),
            serde_json::to_vec(&later).unwrap(),
        )
        .unwrap();
        assert!(
            place.read().is_any_new,
            "a clock that was set back orders nothing"
        );
    }

    #[test]
    fn what_is_damaged_stays_so_until_it_is_whole() {
        let place = Place::new();
        place.publish(&["first"]);
        let oid = place.others("lost");
        let path = format::loose_path(&place.objects(), oid);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        for _ in 0..2 {
            assert_eq!(place.read().damaged, HashSet::from([oid]));
            place.publish(&["second"]);
        }
        place.publish(&["lost"]);
        assert!(place.read().damaged.is_empty());
        assert!(format::is_whole(&path, oid).unwrap());
    }

    #[test]
    fn packs_and_folders_that_are_gone_are_noticed() {
        let place = Place::new();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.objects().join("info")).unwrap();
        let line = format!("{}\n", elsewhere.path().display());
        fs::write(place.objects().join("info/alternates"), line).unwrap();
        place.publish(&["a pack", "of two"]);
        assert!(!place.read().is_any_gone);
        fs::remove_dir_all(elsewhere.path()).unwrap();
        assert!(place.read().is_any_gone);
        place.publish(&["three"]);
        assert!(!place.read().is_any_gone);
        fs::remove_dir_all(place.objects().join("pack")).unwrap();
        assert!(place.read().is_any_gone);
    }
}
