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
//! objects are (`refs` syncs that), and a list that was settled does not come back for long, as another process may write an
//! object of it again that nothing refers to yet; `prune` ends with a sync of the folder for that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::Oid;

use super::publish::Published;
use crate::durable::{self, Locked, Root, Sync, has_no_locks};
use crate::git::base::{At as _, Error, Result, present, sync_folder};
use crate::git::repo::repository::{OWN, Repo};

const HEAD: &str = "recover-written 1";
const GONE: &str = ".gone";
/// What a capture holds, so that nothing is removed meanwhile.
const LOCK: &str = "in-use";
/// Who makes one pack of small ones, or one file of lists, holds it.
const PACKING: &str = "small-packs";
/// A list without a reference may be that of a checkpoint in the making.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The lists of many checkpoints, each after a line that says whose it is and how long.
const MERGED: &str = "merged";
/// How the name of a file begins that names a small pack. It says when that was made, in nanoseconds since the epoch.
const SMALL: &str = "small-";
/// How the name of a file begins that names a pack which is being removed.
const GOING: &str = "going-";
/// This number of lists of their own are merged.
const MANY: usize = 64;

/// What a checkpoint added to the object database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct OwnedObjects {
    /// When, in nanoseconds since the epoch: no file of it was touched later by who wrote it.
    pub at: u64,
    /// When it was begun: none of its objects was there before.
    pub since: u64,
    /// HEAD at the time.
    pub base: Option<Oid>,
    /// Its loose objects and those of its small pack (they may have become part of another since), and its other packs.
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
pub(super) fn lock_shared(repo: &Repo) -> Result<Locked> {
    let (path, file) = lock_file(repo, LOCK)?;
    wait_shared(&path, file)
}

/// Takes the shared lock without making its file. `None` where there is none: nothing of ours was ever removed.
pub(super) fn try_lock_shared_readonly(repo: &Repo) -> Result<Option<Locked>> {
    let path = repo.shared_folder().join(LOCK);
    let file = present(&path, repo.shared().open(&path))?;
    file.map(|file| wait_shared(&path, file)).transpose()
}

/// The right to remove objects; `None` while a capture is under way in any worktree.
pub(in crate::git) fn try_lock_exclusive(repo: &Repo) -> Result<Option<Locked>> {
    let (path, file) = lock_file(repo, LOCK)?;
    let tried = file.try_lock();
    taken(&path, file, tried)
}

/// The right to make one pack of small ones and one file of lists, which removes no object; `None` while another process does
/// that, or removes some.
pub(super) fn try_lock_packing(repo: &Repo) -> Result<Option<(Locked, Locked)>> {
    let (path, file) = lock_file(repo, PACKING)?;
    let tried = file.try_lock();
    let Some(packing) = taken(&path, file, tried)? else {
        return Ok(None);
    };
    let (path, file) = lock_file(repo, LOCK)?;
    let tried = file.try_lock_shared();
    Ok(taken(&path, file, tried)?.map(|in_use| (packing, in_use)))
}

fn lock_file(repo: &Repo, name: &str) -> Result<(PathBuf, File)> {
    let (root, folder) = (repo.shared(), repo.shared_folder());
    // The folder is there already, except beside a linked worktree.
    root.create_dir_all(&folder).at(&folder)?;
    let path = folder.join(name);
    let file = root.open_or_create(&path).at(&path)?;
    Ok((path, file))
}

/// Where the file system has no kernel locks nobody removes an object, so that nothing has to be waited for.
fn wait_shared(path: &Path, file: File) -> Result<Locked> {
    match file.lock_shared() {
        Err(error) if !has_no_locks(&error) => Err(Error::io(path, error)),
        _ => Ok(Locked(file)),
    }
}

fn taken(path: &Path, file: File, tried: Result<(), TryLockError>) -> Result<Option<Locked>> {
    match tried {
        Ok(()) => Ok(Some(Locked(file))),
        Err(TryLockError::Error(error)) if !has_no_locks(&error) => Err(Error::io(path, error)),
        Err(_) => Ok(None),
    }
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
    let list = OwnedObjects {
        at: nanos(SystemTime::now()),
        since: nanos(since),
        base,
        files,
    };
    if let Err(error) = list.write(repo, &folder(repo).join(commit.to_string())) {
        tracing::debug!(%error, "the objects of {commit} were not noted");
    }
}

/// Nanoseconds since the epoch.
pub(super) fn nanos(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |at| u64::try_from(at.as_nanos()).unwrap_or(0))
}

/// The lists of checkpoints that are gone: those of `commits`, and what earlier removals left. A checkpoint that some
/// reference still names is not gone.
pub(in crate::git) fn removed(
    repo: &Repo,
    commits: &BTreeSet<String>,
) -> Result<Vec<RemovedCheckpoint>> {
    let (root, folder) = (repo.shared(), folder(repo));
    let (refs, broken) = repo.list_refs()?;
    if let Some(name) = broken.first() {
        return Err(Error::corrupt(format!("{name} cannot be read")));
    }
    let named: BTreeSet<String> = refs.into_iter().map(|found| found.commit.0).collect();
    take_out(repo, |commit, list| {
        !named.contains(commit) && (commits.contains(commit) || is_abandoned(list))
    })?;
    let mut all = Vec::new();
    for name in Listing::read(repo)?.0 {
        let commit = name.strip_suffix(GONE).unwrap_or(&name);
        let mut path = folder.join(&name);
        if !is_own(commit) || named.contains(commit) {
            continue;
        }
        if is_own(&name) {
            let file = root.open(&path).at(&path)?;
            let written = file.metadata().and_then(|file| file.modified());
            let age = written.ok().and_then(|at| at.elapsed().ok());
            if !commits.contains(commit) && age.is_none_or(|age| age < ABANDONED) {
                continue;
            }
            let to = folder.join(format!("{commit}{GONE}"));
            root.rename(&path, &to).at(&path)?;
            path = to;
        }
        let read = root.read_if_possible(&path).at(&path)?;
        match read.and_then(OwnedObjects::decode) {
            Some(list) => all.push(RemovedCheckpoint { path, list }),
            // A damaged one says nothing.
            None => root.remove_file(&path).at(&path)?,
        }
    }
    Ok(all)
}

/// The texts of the lists in the merged file, by their checkpoints' commits.
type Merged = BTreeMap<String, String>;

/// The names in the folder of lists, read once.
#[derive(Debug, Default)]
pub(super) struct Listing(Vec<String>);

impl Listing {
    pub(super) fn read(repo: &Repo) -> Result<Self> {
        let folder = folder(repo);
        let found = present(&folder, repo.shared().list(&folder))?.unwrap_or_default();
        let names = found.into_iter().map(|(name, _)| name.into_string());
        Ok(Self(names.filter_map(Result::ok).collect()))
    }

    fn after<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter_map(move |name| name.strip_prefix(prefix))
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
        self.0.iter().filter(|name| is_own(name)).count() >= MANY
    }
}

fn is_own(name: &str) -> bool {
    name.len() == 40 && Oid::from_str(name).is_ok()
}

/// Notes, before it is published, that a pack is a small one of ours; whether that could be done. Without that it is left to
/// `git gc`.
pub(super) fn note_small(root: &Root, folder: &Path, pack: &str) -> bool {
    let at = nanos(SystemTime::now()).to_string();
    let path = folder.join(format!("{SMALL}{pack}"));
    let made = root.create_dir_all(folder);
    let noted = made.and_then(|()| root.create(&path)?.write_all(at.as_bytes()));
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
        let read = present(&path, repo.shared().read(&path))?.unwrap_or_default();
        let at = std::str::from_utf8(&read).ok();
        let at = at.and_then(|text| text.parse().ok());
        small.push((pack.to_owned(), at.unwrap_or(0)));
    }
    Ok(small)
}

/// The names of the small packs that are noted in a git folder, wherever that is.
pub(in crate::git) fn small_packs(git_dir: &Path) -> io::Result<BTreeSet<String>> {
    let lists = Path::new(OWN).join("written");
    let names = durable::present(Root::with_own(git_dir, OWN).list(&lists))?.unwrap_or_default();
    let small = names
        .iter()
        .filter_map(|(name, _)| name.to_str()?.strip_prefix(SMALL));
    Ok(small.map(str::to_owned).collect())
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
    present(&path, repo.shared().remove_file(&path)).map(drop)
}

/// Merges all lists of their own. Only for who holds off removals, and others who merge.
pub(super) fn merge(repo: &Repo) -> Result<()> {
    let (root, folder) = (repo.shared(), folder(repo));
    let mut merged = read_merged(root, &folder)?;
    let mut own = Vec::new();
    for name in Listing::read(repo)?
        .0
        .into_iter()
        .filter(|name| is_own(name))
    {
        let path = folder.join(&name);
        let read = root.read(&path).at(&path)?;
        // A damaged one says nothing.
        merged.extend(OwnedObjects::decode(read).map(|list| (name, list.encode())));
        own.push(path);
    }
    write_merged(repo, &folder, &merged)?;
    // The merged file first: a list that is there twice asks for nothing more.
    own.iter()
        .try_for_each(|path| root.remove_file(path).at(path))
}

/// Gives merged lists files of their own again, as those of checkpoints that are gone.
fn take_out(repo: &Repo, is_gone: impl Fn(&str, &OwnedObjects) -> bool) -> Result<()> {
    let folder = folder(repo);
    let mut merged = read_merged(repo.shared(), &folder)?;
    let mut gone = Vec::new();
    merged.retain(|commit, text| {
        let list = OwnedObjects::decode(text.clone().into_bytes());
        let list = list.filter(|list| is_gone(commit, list));
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
    let read = present(&path, root.read(&path))?.unwrap_or_default();
    let text = String::from_utf8(read).unwrap_or_default();
    let mut rest = text.as_str();
    // What earlier versions began with.
    if let Some((_, lists)) = rest.split_once('\n').filter(|_| rest.starts_with("loose ")) {
        rest = lists;
    }
    let mut merged = Merged::new();
    while let Some((commit, list, after)) = next_merged(rest) {
        merged.insert(commit.to_owned(), list.to_owned());
        rest = after;
    }
    Ok(merged)
}

fn next_merged(text: &str) -> Option<(&str, &str, &str)> {
    let (head, rest) = text.split_once('\n')?;
    // Earlier versions say `packed` of some.
    let head = head.strip_prefix("of ").or(head.strip_prefix("packed "))?;
    let (commit, length) = head.split_once(' ')?;
    let (list, after) = rest.split_at_checked(length.parse().ok()?)?;
    Some((commit, list, after))
}

fn write_merged(repo: &Repo, folder: &Path, merged: &Merged) -> Result<()> {
    let mut text = String::new();
    for (commit, list) in merged {
        let _ = write!(text, "of {commit} {}\n{list}", list.len());
    }
    put(repo, &folder.join(MERGED), &text)
}

pub(super) fn put(repo: &Repo, path: &Path, text: &str) -> Result<()> {
    let (root, folder) = (repo.shared(), folder(repo));
    root.create_dir_all(&folder).at(&folder)?;
    // What a kill left of an earlier one.
    root.reap(&folder);
    root.write(path, text.as_bytes(), Sync::Nothing).at(path)
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
            return repo.shared().remove_file(&self.path).at(&self.path);
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
        for oid in &self.files.objects {
            let _ = writeln!(text, "small {oid}");
        }
        for name in &self.files.packs {
            let _ = writeln!(text, "pack {name}");
        }
        seal(&mut text);
        text
    }

    fn decode(read: Vec<u8>) -> Option<Self> {
        let text = String::from_utf8(read).ok()?;
        let mut list = Self::default();
        for line in unsealed(&text, HEAD)? {
            match line.split_once(' ')? {
                ("at", at) => list.at = at.parse().ok()?,
                ("since", since) => list.since = since.parse().ok()?,
                ("base", oid) => list.base = Some(Oid::from_str(oid).ok()?),
                ("loose" | "small", oid) => list.files.objects.extend([Oid::from_str(oid).ok()?]),
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
        let files = Published {
            objects: [oid(1), oid(2)].into(),
            packs: ["pack-ab".to_owned()].into(),
        };
        let list = OwnedObjects {
            at: 7,
            since: 5,
            base: Some(oid(3)),
            files,
        };
        let decode = |text: &str| OwnedObjects::decode(text.as_bytes().to_vec());
        let text = list.encode();
        assert_eq!(decode(&text), Some(list));
        assert_eq!(decode(&text.replace("at 7", "at 8")), None);
        assert!((0..text.len()).all(|cut| decode(&text[..cut]).is_none()));
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
            assert!(read.values().all(|list| *list == text));
        }
    }
}
