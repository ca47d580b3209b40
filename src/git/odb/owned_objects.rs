//! Which objects each checkpoint added, so that they can be taken away with it.
//!
//! A list for each checkpoint, `$GIT_COMMON_DIR/recover/written/<commit>`; once there are many they are merged into one
//! file. A list of its own with `.gone` at its end is that of a checkpoint that is removed.
//!
//! The few objects of a checkpoint are in a pack, which a file in the same folder names, `small-<pack>`, until it becomes
//! part of a larger one (`packing`). The lists name its objects, as they do loose ones.
//!
//! **Power failures.** Lists are not synced when they are written. One that was lost, cut short or damaged (its checksum
//! says so) leaves its objects to `git gc`. A list never decides that an object may go, only that it may be asked for:
//! that nothing needs it is found out anew each time, from what refers to what at that moment. So one that is older than
//! it should be (with objects that were taken off it since, or back although it was removed) asks for too much and gets no
//! more than the others. Two things have to be durable in their order: a checkpoint's reference is gone before its
//! objects are (`refs` syncs that), and a list that was settled does not come back for long, as somebody may write an
//! object of it again that nothing refers to yet; `prune` ends with a sync of the folder for that.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::Oid;

use super::publish::{Published, gone};
use crate::durable::{Root, Sync, has_no_locks};
use crate::git::base::error::{Error, Result};
use crate::git::base::openat::sync_folder;
use crate::git::repo::repository::Repo;

const HEAD: &str = "recover-written 1";
const GONE: &str = ".gone";
/// What a capture holds, so that nothing is removed meanwhile.
const LOCK: &str = "in-use";
/// Who makes one pack of small ones holds it.
const PACKING: &str = "small-packs";
/// A list without a reference may be that of a checkpoint in the making.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The lists of many checkpoints, each after a line that says whose it is and how long, and whether its loose objects
/// were packed (`packing`). At its beginning stands how many may still be loose.
const MERGED: &str = "merged";
/// How the name of a file begins that names a small pack. It says when that was made, in nanoseconds since the epoch.
const SMALL: &str = "small-";
/// How the name of a file begins that names a pack which is being removed.
const GOING: &str = "going-";
/// So many lists of their own are merged.
const MANY: usize = 64;
/// Bytes of a line of a list that says an object.
const OBJECT_LINE: u64 = 47;
/// Bytes of its other lines, at least.
const OTHER_LINES: u64 = 80;

/// What a checkpoint added to the object database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct OwnedObjects {
    /// When, in nanoseconds since the epoch: no file of it was touched later by who wrote it.
    pub at: u64,
    /// When it was begun: none of its objects was there before.
    pub since: u64,
    /// HEAD at the time.
    pub base: Option<Oid>,
    /// Its objects that were written as loose ones or in a small pack (they may have become part of another since), and its
    /// other packs.
    pub files: Published,
}

/// The list of a checkpoint that is gone.
#[derive(Debug)]
pub(in crate::git) struct RemovedCheckpoint {
    pub path: PathBuf,
    pub list: OwnedObjects,
}

pub(in crate::git) fn folder(repo: &Repo) -> PathBuf {
    repo.shared_folder().join("written")
}

/// Keeps objects from being removed as long as it is held: what a capture finds, it need not write again.
pub(super) fn lock_shared(repo: &Repo) -> Result<File> {
    let path = lock_path(repo)?;
    let file = repo
        .shared()
        .open_or_create(&path)
        .map_err(Error::at(&path))?;
    wait_shared(&file).map_err(Error::at(&path))?;
    Ok(file)
}

/// Takes the shared lock without making its file. `None` where there is none: nothing of ours was ever removed.
pub(super) fn try_lock_shared_readonly(repo: &Repo) -> Result<Option<File>> {
    let path = repo.shared_folder().join(LOCK);
    match repo.shared().open(&path) {
        Ok(file) => wait_shared(&file)
            .map(|()| Some(file))
            .map_err(Error::at(&path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io(path, source)),
    }
}

/// The right to remove objects; `None` while a capture is under way in any worktree.
pub(in crate::git) fn try_lock_exclusive(repo: &Repo) -> Result<Option<File>> {
    try_lock(repo, &lock_path(repo)?)
}

/// The right to make one pack of small ones, which removes no object; `None` while somebody else does that, or removes some.
pub(super) fn try_lock_packing(repo: &Repo) -> Result<Option<(File, File)>> {
    let in_use = lock_path(repo)?;
    let Some(packing) = try_lock(repo, &in_use.with_file_name(PACKING))? else {
        return Ok(None);
    };
    let file = repo
        .shared()
        .open_or_create(&in_use)
        .map_err(Error::at(&in_use))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(Some((packing, file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) if has_no_locks(&error) => Ok(None),
        Err(TryLockError::Error(source)) => Err(Error::io(in_use, source)),
    }
}

/// Where the file system has no kernel locks nobody removes an object, so that nothing has to be waited for.
fn wait_shared(file: &File) -> std::io::Result<()> {
    match file.lock_shared() {
        Err(error) if has_no_locks(&error) => Ok(()),
        locked => locked,
    }
}

fn try_lock(repo: &Repo, path: &Path) -> Result<Option<File>> {
    let file = repo
        .shared()
        .open_or_create(path)
        .map_err(Error::at(path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) if has_no_locks(&error) => Ok(None),
        Err(TryLockError::Error(source)) => Err(Error::io(path, source)),
    }
}

fn lock_path(repo: &Repo) -> Result<PathBuf> {
    let folder = repo.shared_folder();
    // The folder is there already, except beside a linked worktree.
    repo.shared()
        .create_dir_all(&folder)
        .map_err(Error::at(&folder))?;
    Ok(folder.join(LOCK))
}

/// Notes what the checkpoint of this commit added. Without a list, the objects are left to `git gc`.
pub(in crate::git) fn record(
    repo: &Repo,
    commit: Oid,
    base: Option<Oid>,
    since: SystemTime,
    files: Published,
) {
    if files == Published::default() {
        return;
    }
    let nanos = |at: SystemTime| {
        at.duration_since(UNIX_EPOCH)
            .map_or(0, |at| u64::try_from(at.as_nanos()).unwrap_or(0))
    };
    let list = OwnedObjects {
        at: nanos(SystemTime::now()),
        since: nanos(since),
        base,
        files,
    };
    let folder = folder(repo);
    let written = repo
        .shared()
        .create_dir_all(&folder)
        .map_err(Error::at(&folder));
    if let Err(error) = written.and_then(|()| list.write(repo, &folder.join(commit.to_string()))) {
        tracing::debug!(%error, "the objects of {commit} were not noted");
    }
}

/// The lists of checkpoints that are gone: those of `commits`, and what earlier removals left. A checkpoint that some
/// reference still names is not gone.
pub(in crate::git) fn removed(
    repo: &Repo,
    commits: &BTreeSet<String>,
) -> Result<Vec<RemovedCheckpoint>> {
    let folder = folder(repo);
    let (refs, broken) = repo.list_refs()?;
    if let Some(name) = broken.first() {
        return Err(Error::corrupt(format!("{name} cannot be read")));
    }
    let named: BTreeSet<String> = refs.into_iter().map(|found| found.commit.0).collect();
    take_out(repo, |commit, list| {
        !named.contains(commit) && (commits.contains(commit) || is_abandoned(list))
    })?;
    let entries = match repo.shared().list(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::io(folder, source)),
    };
    let mut all = Vec::new();
    for (name, _) in entries {
        let mut path = folder.join(&name);
        let name = name.to_string_lossy().into_owned();
        let commit = name.strip_suffix(GONE).unwrap_or(&name).to_owned();
        if Oid::from_str(&commit).is_err() || commit.len() != 40 || named.contains(&commit) {
            continue;
        }
        if !name.ends_with(GONE) {
            let file = repo.shared().open(&path).map_err(Error::at(&path))?;
            let age = file
                .metadata()
                .and_then(|file| file.modified())
                .ok()
                .and_then(|at| at.elapsed().ok());
            if !commits.contains(&commit) && age.is_none_or(|age| age < ABANDONED) {
                continue;
            }
            let to = folder.join(format!("{commit}{GONE}"));
            repo.shared().rename(&path, &to).map_err(Error::at(&path))?;
            path = to;
        }
        let read = repo
            .shared()
            .read_if_possible(&path)
            .map_err(Error::at(&path))?;
        match read
            .as_deref()
            .and_then(|text| std::str::from_utf8(text).ok())
            .and_then(OwnedObjects::decode)
        {
            Some(list) => all.push(RemovedCheckpoint { path, list }),
            // A damaged one says nothing.
            None => repo.shared().remove_file(&path).map_err(Error::at(&path))?,
        }
    }
    Ok(all)
}

/// A list in the merged file.
#[derive(Debug)]
struct Kept {
    /// Whether its loose objects are examined no more: they became a pack, or are too large for that.
    packed: bool,
    text: String,
}

/// The lists in the merged file, by their checkpoints' commits.
type Merged = BTreeMap<String, Kept>;

/// What is in the folder of lists, read once.
#[derive(Debug, Default)]
pub(super) struct Listing(Vec<OsString>);

impl Listing {
    pub(super) fn read(repo: &Repo) -> Result<Self> {
        let folder = folder(repo);
        match repo.shared().list(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            found => Ok(Self(
                found
                    .map_err(Error::at(&folder))?
                    .into_iter()
                    .map(|(name, _)| name)
                    .collect(),
            )),
        }
    }

    fn after<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter_map(move |name| name.to_str()?.strip_prefix(prefix))
    }

    /// The names of the small packs that are noted; some of them may be gone.
    pub(super) fn small(&self) -> impl Iterator<Item = &str> {
        self.after(SMALL)
    }

    /// The packs whose removal was noted and is not over.
    pub(super) fn going(&self) -> impl Iterator<Item = &str> {
        self.after(GOING)
    }

    /// Whether there are many lists that have to be merged.
    pub(super) fn is_scattered(&self) -> bool {
        self.0
            .iter()
            .filter(|name| is_own(&name.to_string_lossy()))
            .count()
            >= MANY
    }

    /// Whether so many loose objects were never packed: those of lists that were written since `packed`, when objects became
    /// a pack last. The lists are only read where their sizes do not rule it out.
    pub(super) fn are_loose(&self, repo: &Repo, count: u64, packed: Option<SystemTime>) -> bool {
        let by_size = |_: &Path, size: u64| size.saturating_sub(OTHER_LINES) / OBJECT_LINE;
        let read = |path: &Path, _: u64| {
            let text = repo
                .shared()
                .read_present(path)
                .ok()
                .flatten()
                .unwrap_or_default();
            loose_lines(&String::from_utf8_lossy(&text))
        };
        self.loose(repo, packed, by_size) >= count && self.loose(repo, packed, read) >= count
    }

    fn loose(
        &self,
        repo: &Repo,
        packed: Option<SystemTime>,
        of_list: impl Fn(&Path, u64) -> u64,
    ) -> u64 {
        let folder = folder(repo);
        let mut loose = 0;
        for name in &self.0 {
            let path = folder.join(name);
            if name == MERGED {
                loose += loose_of_merged(repo, &path).unwrap_or(0);
                continue;
            }
            let name = name.to_string_lossy();
            if !is_own(&name) && !name.ends_with(GONE) {
                continue;
            }
            let Ok(metadata) = std::fs::symlink_metadata(&path) else {
                continue;
            };
            let is_new =
                packed.is_none_or(|packed| metadata.modified().is_ok_and(|at| at > packed));
            if is_own(&name) || is_new {
                loose += of_list(&path, metadata.len());
            }
        }
        loose
    }
}

/// How many lines of a list say a loose object.
fn loose_lines(text: &str) -> u64 {
    text.lines()
        .filter(|line| line.starts_with("loose "))
        .count() as u64
}

fn is_own(name: &str) -> bool {
    name.len() == 40 && Oid::from_str(name).is_ok()
}

/// Notes, before it is published, that a pack is a small one of ours; whether that could be done. Without that it is left to
/// `git gc`.
pub(super) fn note_small(root: &Root, folder: &Path, pack: &str) -> bool {
    let at = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |at| at.as_nanos());
    let made = root.create_dir_all(folder);
    let path = folder.join(format!("{SMALL}{pack}"));
    let noted = made.and_then(|()| root.create(&path)?.write_all(at.to_string().as_bytes()));
    noted
        .inspect_err(|error| tracing::debug!(%error, "{pack} was not noted"))
        .is_ok()
}

/// The names of the small packs that are noted, and when each was made, in nanoseconds since the epoch: at no time, where
/// that cannot be read.
pub(super) fn small(repo: &Repo) -> Result<Vec<(String, u64)>> {
    let folder = folder(repo);
    let mut small = Vec::new();
    for pack in Listing::read(repo)?.small() {
        let path = folder.join(format!("{SMALL}{pack}"));
        let bytes = repo
            .shared()
            .read_present(&path)
            .map_err(Error::at(&path))?
            .unwrap_or_default();
        let at = std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.parse().ok());
        small.push((pack.to_owned(), at.unwrap_or(0)));
    }
    Ok(small)
}

/// Forgets that a pack is a small one.
pub(super) fn forget_small(repo: &Repo, pack: &str) -> Result<()> {
    forget(repo, &format!("{SMALL}{pack}"))
}

/// Notes that a pack is being removed, as all that it holds is elsewhere or needed by nobody. On a full disk that is left out:
/// only a kill half-way leaves something then.
pub(super) fn note_going(repo: &Repo, pack: &str) {
    let (root, folder) = (repo.shared(), folder(repo));
    let path = folder.join(format!("{GOING}{pack}"));
    // Most are small: one more name for a file costs less than another file.
    let linked = root.hard_link(&folder.join(format!("{SMALL}{pack}")), root, &path);
    if let Err(error) = linked.or_else(|_| root.create(&path).map(drop)) {
        tracing::debug!(%error, "the removal of {pack} was not noted");
    }
}

/// The removal of a pack is over.
pub(super) fn forget_going(repo: &Repo, pack: &str) -> Result<()> {
    forget(repo, &format!("{GOING}{pack}"))
}

fn forget(repo: &Repo, name: &str) -> Result<()> {
    let path = folder(repo).join(name);
    gone(repo.shared().remove_file(&path)).map_err(Error::at(&path))
}

/// Merges all lists of their own. Only for who holds off removals, and others who merge.
pub(in crate::git) fn merge(repo: &Repo) -> Result<()> {
    let folder = folder(repo);
    let mut merged = read_merged(repo.shared(), &folder)?;
    let mut own = Vec::new();
    for name in Listing::read(repo)?.0 {
        let path = folder.join(&name);
        let name = name.to_string_lossy().into_owned();
        if !is_own(&name) {
            continue;
        }
        let bytes = repo.shared().read(&path).map_err(Error::at(&path))?;
        // A damaged one says nothing.
        if let Some(text) = String::from_utf8(bytes)
            .ok()
            .filter(|text| OwnedObjects::decode(text).is_some())
        {
            merged.insert(
                name,
                Kept {
                    packed: false,
                    text,
                },
            );
        }
        own.push(path);
    }
    write_merged(repo, &folder, &merged)?;
    // The merged file first: a list that is there twice asks for nothing more.
    own.iter()
        .try_for_each(|path| repo.shared().remove_file(path).map_err(Error::at(path)))
}

/// The merged lists with objects that may still be loose, and those of checkpoints that are gone.
pub(super) fn unpacked(repo: &Repo) -> Result<Vec<OwnedObjects>> {
    let folder = folder(repo);
    let mut texts: Vec<String> = read_merged(repo.shared(), &folder)?
        .into_values()
        .filter(|kept| !kept.packed)
        .map(|kept| kept.text)
        .collect();
    for name in Listing::read(repo)?
        .0
        .into_iter()
        .filter(|name| name.to_string_lossy().ends_with(GONE))
    {
        let path = folder.join(name);
        let bytes = repo
            .shared()
            .read_present(&path)
            .map_err(Error::at(&path))?;
        texts.extend(bytes.and_then(|bytes| String::from_utf8(bytes).ok()));
    }
    Ok(texts
        .iter()
        .filter_map(|text| OwnedObjects::decode(text))
        .collect())
}

/// Notes that the objects of all merged lists were packed.
pub(super) fn set_packed(repo: &Repo) -> Result<()> {
    let folder = folder(repo);
    let mut merged = read_merged(repo.shared(), &folder)?;
    for kept in merged.values_mut() {
        kept.packed = true;
    }
    write_merged(repo, &folder, &merged)
}

/// Gives merged lists files of their own again, as those of checkpoints that are gone.
fn take_out(repo: &Repo, is_gone: impl Fn(&str, &OwnedObjects) -> bool) -> Result<()> {
    let folder = folder(repo);
    let mut merged = read_merged(repo.shared(), &folder)?;
    let mut gone = Vec::new();
    merged.retain(|commit, kept| {
        let list = OwnedObjects::decode(&kept.text).filter(|list| is_gone(commit, list));
        let is_gone = list.is_some();
        gone.extend(list.map(|list| (format!("{commit}{GONE}"), list)));
        !is_gone
    });
    if gone.is_empty() {
        return Ok(());
    }
    for (name, list) in gone {
        list.write(repo, &folder.join(name))?;
    }
    write_merged(repo, &folder, &merged)
}

/// The lists that were merged. After a damage the rest is left to `git gc`.
fn read_merged(root: &Root, folder: &Path) -> Result<Merged> {
    let path = folder.join(MERGED);
    let Some(bytes) = root.read_present(&path).map_err(Error::at(&path))? else {
        return Ok(Merged::new());
    };
    let text = String::from_utf8(bytes).unwrap_or_default();
    let mut merged = Merged::new();
    let mut rest = text
        .strip_prefix("loose ")
        .and_then(|text| text.split_once('\n'))
        .map_or(&*text, |(_, rest)| rest);
    while let Some((commit, kept, after)) = next_merged(rest) {
        merged.insert(commit.to_owned(), kept);
        rest = after;
    }
    Ok(merged)
}

fn next_merged(text: &str) -> Option<(&str, Kept, &str)> {
    let (head, rest) = text.split_once('\n')?;
    let (kind, head) = head.split_once(' ')?;
    let packed = match kind {
        "of" => false,
        "packed" => true,
        _ => return None,
    };
    let (commit, length) = head.split_once(' ')?;
    let (list, after) = rest.split_at_checked(length.parse().ok()?)?;
    Some((
        commit,
        Kept {
            packed,
            text: list.to_owned(),
        },
        after,
    ))
}

fn write_merged(repo: &Repo, folder: &Path, merged: &Merged) -> Result<()> {
    let open = merged.values().filter(|kept| !kept.packed);
    let loose: u64 = open.map(|kept| loose_lines(&kept.text)).sum();
    let mut text = format!("loose {loose}\n");
    for (commit, kept) in merged {
        let kind = if kept.packed { "packed" } else { "of" };
        let _ = write!(text, "{kind} {commit} {}\n{}", kept.text.len(), kept.text);
    }
    put(repo, &folder.join(MERGED), &text)
}

/// How many objects of merged lists may still be loose.
fn loose_of_merged(repo: &Repo, path: &Path) -> Option<u64> {
    let mut head = String::new();
    repo.shared()
        .open(path)
        .ok()?
        .take(32)
        .read_to_string(&mut head)
        .ok()?;
    head.strip_prefix("loose ")?
        .split_once('\n')?
        .0
        .parse()
        .ok()
}

pub(in crate::git) fn put(repo: &Repo, path: &Path, text: &str) -> Result<()> {
    // What a kill left of an earlier one.
    repo.shared().reap(&folder(repo));
    repo.shared()
        .write(path, text.as_bytes(), Sync::Nothing)
        .map_err(Error::at(path))
}

/// Whether a list without a reference is too old for a checkpoint in the making.
fn is_abandoned(list: &OwnedObjects) -> bool {
    (UNIX_EPOCH + Duration::from_nanos(list.at))
        .elapsed()
        .is_ok_and(|age| age >= ABANDONED)
}

/// Makes what was done to the lists durable.
pub(in crate::git) fn sync(repo: &Repo) -> Result<()> {
    let folder = folder(repo);
    if folder.is_dir() {
        sync_folder(&folder)
    } else {
        Ok(())
    }
}

impl RemovedCheckpoint {
    /// Keeps what is left for the next time, or removes the list.
    pub(crate) fn leave(self, repo: &Repo, files: Published) -> Result<()> {
        if files == Published::default() {
            return repo
                .shared()
                .remove_file(&self.path)
                .map_err(Error::at(&self.path));
        }
        OwnedObjects { files, ..self.list }.write(repo, &self.path)
    }
}

impl OwnedObjects {
    fn write(&self, repo: &Repo, path: &Path) -> Result<()> {
        put(repo, path, &self.encode())
    }

    fn encode(&self) -> String {
        let mut text = format!("{HEAD}\nat {}\nsince {}\n", self.at, self.since);
        if let Some(base) = &self.base {
            let _ = writeln!(text, "base {base}");
        }
        for oid in &self.files.loose {
            let _ = writeln!(text, "loose {oid}");
        }
        for oid in &self.files.small {
            let _ = writeln!(text, "small {oid}");
        }
        for name in &self.files.packs {
            let _ = writeln!(text, "pack {name}");
        }
        seal(&mut text);
        text
    }

    fn decode(text: &str) -> Option<Self> {
        let lines = unsealed(text, HEAD)?;
        let mut list = Self::default();
        for line in lines {
            match line.split_once(' ')? {
                ("at", at) => list.at = at.parse().ok()?,
                ("since", since) => list.since = since.parse().ok()?,
                ("base", oid) => list.base = Some(Oid::from_str(oid).ok()?),
                ("loose", oid) => drop(list.files.loose.insert(Oid::from_str(oid).ok()?)),
                ("small", oid) => drop(list.files.small.insert(Oid::from_str(oid).ok()?)),
                ("pack", name) => drop(list.files.packs.insert(name.to_owned())),
                _ => return None,
            }
        }
        Some(list)
    }
}

/// Ends a text with its checksum.
pub(super) fn seal(text: &mut String) {
    let sum = crc32fast::hash(text.as_bytes());
    let _ = writeln!(text, "end {sum:08x}");
}

/// The lines of a sealed text after the first, which must be `head`; `None` where it is damaged or of another kind.
pub(super) fn unsealed<'a>(text: &'a str, head: &str) -> Option<std::str::Lines<'a>> {
    let body = &text[..text.rfind("end ")?];
    if text[body.len()..] != format!("end {:08x}\n", crc32fast::hash(body.as_bytes())) {
        return None;
    }
    let mut lines = body.lines();
    (lines.next() == Some(head)).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_back_and_damage_is_noticed() {
        let oid = |byte| Oid::from_bytes(&[byte; 20]).unwrap();
        let (loose, small) = ([oid(1), oid(2)].into(), [oid(6)].into());
        let files = Published {
            loose,
            small,
            packs: ["pack-ab".to_owned()].into(),
        };
        let list = OwnedObjects {
            at: 7,
            since: 5,
            base: Some(oid(3)),
            files,
        };
        let text = list.encode();
        assert_eq!(OwnedObjects::decode(&text), Some(list));
        assert_eq!(OwnedObjects::decode(&text.replace("at 7", "at 8")), None);
        assert!((0..text.len()).all(|cut| OwnedObjects::decode(&text[..cut]).is_none()));
        // Merged, what stands before a damage is read still.
        let folder = tempfile::tempdir().unwrap();
        let merged = format!(
            "of {} {}\n{text}of {} {}\n{text}",
            oid(4),
            text.len(),
            oid(5),
            text.len()
        );
        for cut in 0..=merged.len() {
            std::fs::write(folder.path().join(MERGED), &merged[..cut]).unwrap();
            let read = read_merged(&Root::own(folder.path()), folder.path()).unwrap();
            assert_eq!(read.len(), cut / (merged.len() / 2), "cut at {cut}");
            assert!(read.values().all(|kept| kept.text == text && !kept.packed));
        }
    }
}
