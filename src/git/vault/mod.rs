//! A copy of a repository outside of its work tree, from which it comes back whatever became of its folder.
//!
//! A vault is a folder of the user's, `ID` below the folder of all vaults: `vault.json` says of which repository it is,
//! `git` follows that one's git folder, `ledger.jsonl` is a copy of the ledger, which the caller writes. The id is in the
//! repository, too, in `recover/vault` in its git folder: one without it, or with another one, is not the recorded one.
//!
//! Our packs and what is small are copied, as a write in place would ruin both names of one file; the user's large packs are
//! linked, which takes no space. Nothing that is gone in the repository goes here by itself but what git replaces when it
//! works: [`Vault::drop_gone`] says what goes otherwise.

mod mirror;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::Oid;
use rustix::fs::{AtFlags, FileType};

use self::mirror::Mirror;
use crate::durable::{FileLock, Root, Sync, is_temporary, present, temporary_prefix};
use crate::git::base::error::{At as _, Error, Result};
use crate::git::base::openat::{self, FileStat, whole_is_cheaper};
use crate::git::odb::owned_objects;
use crate::git::repo::repository::{OWN, Repo};
use crate::model::{CheckpointId, FolderId, ObjectId, Timestamp, VaultRecord};
use crate::os::processes::boot_id;
use crate::os::{sync_file, sync_file_system};
use crate::policy::secrets::redact;

/// The repository's git folder, in a vault.
const GIT: &str = "git";
/// The name of the file that says of which repository a vault is.
const ABOUT: &str = "vault.json";
/// The copy of the ledger.
const LEDGER: &str = "ledger.jsonl";
/// The names of packs that were made here, one a line.
const OWN_PACKS: &str = "own-packs";
/// Files of packs that the repository no longer has, from which on they are removed between runs, too.
const MANY_PACK_FILES: usize = 128;
/// That the repository is not where it was: for how many milliseconds it has been seen so. The file's time is that of the last
/// time that this was found.
const GONE: &str = "gone";
/// The start of the machine in which it was made durable last; the file's time says when.
const SYNCED: &str = "synced";
/// How the name of a repository ends that is not in its place yet.
const UNFINISHED: &str = "repository";
/// Objects of a pack that are looked up to find out whether they are elsewhere.
const SAMPLE: usize = 64;
/// How long another process may be at work in a vault.
const PATIENCE: Duration = Duration::from_secs(5);

/// A vault.
#[derive(Clone, Debug)]
pub(crate) struct Vault {
    root: Root,
    pub(crate) about: VaultRecord,
}

impl Vault {
    /// All vaults of the user. What cannot be read is none.
    pub(crate) fn all(home: &Path) -> Vec<Self> {
        let names = Root::own(home).list(Path::new("")).unwrap_or_default();
        let folders = names.into_iter().filter(|(_, kind)| kind.is_dir());
        folders
            .filter_map(|(name, _)| Self::open(home, &name.into_string().ok()?))
            .collect()
    }

    /// The vault with this id.
    pub(crate) fn open(home: &Path, id: &str) -> Option<Self> {
        let root = Root::own(home.join(id));
        let bytes = root.read_present(Path::new(ABOUT)).ok()??;
        let about: VaultRecord = serde_json::from_slice(&bytes).ok()?;
        (about.id == id).then_some(Self { root, about })
    }

    /// The vault of the repository that was at this place; of several, the one that was written last.
    pub(crate) fn at(home: &Path, place: &Path) -> Option<Self> {
        let place = FolderId::of(place);
        let its = Self::all(home)
            .into_iter()
            .filter(|vault| vault.about.path == place && !vault.about.detached);
        its.max_by_key(Self::written_at)
    }

    /// The vault that a repository names, where it is there.
    pub(crate) fn of(home: &Path, git_dir: &Path) -> Option<Self> {
        Self::open(home, &Self::id_in(git_dir)?)
    }

    /// The id in a repository's git folder; `None` where there is none that can be read.
    pub(crate) fn id_in(git_dir: &Path) -> Option<String> {
        let bytes = Root::with_own(git_dir, OWN)
            .read_at_most(&marker(git_dir), 64)
            .ok()?;
        let id = String::from_utf8(bytes).ok()?.trim_end().to_owned();
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then_some(id)
    }

    /// Makes a vault, and notes its id in the repository.
    pub(crate) fn make(home: &Path, repo: &Repo, about: VaultRecord) -> Result<Self> {
        let root = Root::own(home.join(&about.id));
        root.create_dir_all(&root.path().join(GIT))
            .at(root.path())?;
        let vault = Self { root, about };
        vault.write_about()?;
        let marker = marker(repo.common_dir());
        repo.shared()
            .create_dir_all(&repo.shared_folder())
            .at(&marker)?;
        let id = format!("{}\n", vault.about.id);
        repo.shared()
            .write(&marker, id.as_bytes(), Sync::All)
            .at(&marker)?;
        Ok(vault)
    }

    /// Changes what it says of its repository.
    pub(crate) fn set_about(&mut self, about: VaultRecord) -> Result<()> {
        self.about = about;
        self.write_about()
    }

    fn write_about(&self) -> Result<()> {
        let path = self.root.path().join(ABOUT);
        let text = serde_json::to_vec_pretty(&self.about)
            .map_err(io::Error::from)
            .at(&path)?;
        self.root.write(&path, &text, Sync::All).at(&path)
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        self.root.path()
    }

    /// Where its copy of the ledger is, or would be.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder().join(LEDGER)
    }

    fn git(&self) -> PathBuf {
        self.folder().join(GIT)
    }

    /// When it was written last as a whole.
    pub(crate) fn written_at(&self) -> Timestamp {
        from_nanos(self.synced_at())
    }

    /// When it was made durable last, in nanoseconds since the epoch; 0 before the first time.
    fn synced_at(&self) -> i64 {
        let found = self
            .root
            .open(Path::new(SYNCED))
            .and_then(openat::stat_open);
        found.map_or(0, |found| found.mtime)
    }

    /// Whether it was made durable in this start of the machine.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        let read = self.root.read_if_possible(Path::new(SYNCED));
        read.is_ok_and(|read| read.is_some_and(|boot| boot == this_boot().as_bytes()))
    }

    /// Whether its repository is where it was.
    pub(crate) fn has_repository(&self) -> bool {
        Self::id_in(&self.about.git_dir.path()).as_ref() == Some(&self.about.id)
    }

    /// Makes it follow the repository; with `whole` in everything. One that lacks what makes it a repository is not followed.
    /// After another start of the machine, what was not durable is copied again: a loss of power leaves the name of a file, and
    /// not its content.
    pub(crate) fn follow(&self, repo: &Repo, whole: bool) -> Result<()> {
        let _lock = self.lock()?;
        let from = openat::open_root(repo.common_dir())?;
        for name in ["HEAD", "objects", "refs"] {
            if openat::stat(&from, name.as_bytes())
                .at(repo.common_dir())?
                .is_none()
            {
                return Err(Error::io(
                    repo.common_dir().join(name),
                    io::ErrorKind::NotFound,
                ));
            }
        }
        if self
            .root
            .kind(Path::new(ABOUT))
            .at(self.folder())?
            .is_none()
        {
            // It was removed meanwhile.
            return Ok(());
        }
        self.is_back()?;
        let own = owned_objects::small_packs(repo.common_dir()).at(repo.common_dir())?;
        let to = openat::open_root(&self.git())?;
        if !self.is_of_this_boot() {
            mirror::drop_since(&from, &to, self.synced_at()).at(self.folder())?;
        }
        let mut mirror = Mirror {
            whole,
            ..Mirror::whole(&own)
        };
        mirror.folder(&from, &to, b"").at(self.folder())?;
        if whole {
            self.note_own(own)?;
        }
        Ok(())
    }

    /// Makes everything durable that was written since the last time.
    pub(crate) fn sync(&self) -> Result<()> {
        let _lock = self.lock()?;
        let (path, since) = (self.folder().join(SYNCED), self.synced_at());
        sync_since(&openat::open_root(self.folder())?, since).at(self.folder())?;
        // Last: what is older counts as durable from now on.
        self.root
            .write(&path, this_boot().as_bytes(), Sync::All)
            .at(&path)
    }

    fn lock(&self) -> Result<FileLock> {
        let home = self.folder().parent().unwrap_or(self.folder());
        let path = self.folder().with_extension("lock");
        Ok(FileLock::acquire(&Root::own(home), &path, PATIENCE)?)
    }

    /// Whether it has far more packs than the repository, which merges its small ones.
    pub(crate) fn has_many_packs(&self, repo: &Repo) -> bool {
        let count = |root: &Root, folder: &Path| root.list(folder).map_or(0, |all| all.len());
        let folder = Path::new("objects/pack");
        let own = count(&Root::shared(repo.common_dir()), folder);
        count(&self.root, &Path::new(GIT).join(folder)) > 2 * own + MANY_PACK_FILES
    }

    fn note_own(&self, own: BTreeSet<String>) -> Result<()> {
        let (path, before) = (self.folder().join(OWN_PACKS), self.own_packs());
        let packs = Path::new(GIT).join("objects/pack");
        let mut all = before.clone();
        all.retain(|name| {
            self.root
                .has(&packs.join(format!("{name}.idx")))
                .unwrap_or(true)
        });
        all.extend(own);
        if all == before {
            return Ok(());
        }
        let lines = all.into_iter().map(|name| name + "\n");
        let text: String = lines.collect();
        self.root
            .write(&path, text.as_bytes(), Sync::Content)
            .at(&path)
    }

    fn own_packs(&self) -> BTreeSet<String> {
        let read = self.root.read_if_possible(Path::new(OWN_PACKS));
        let text = read.ok().flatten().unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().map(str::to_owned).collect()
    }

    /// The references of checkpoints: folder, name and commit.
    fn checkpoints(&self) -> Vec<(PathBuf, OsString, Option<ObjectId>)> {
        let top = Path::new(GIT).join("refs").join(OWN);
        let mut found = Vec::new();
        for (run, _) in self.root.list(&top).unwrap_or_default() {
            let folder = top.join(run);
            for (name, kind) in self.root.list(&folder).unwrap_or_default() {
                if kind == FileType::RegularFile {
                    let read = self.root.read_present(&folder.join(&name)).ok().flatten();
                    let commit = read.and_then(|bytes| String::from_utf8(bytes).ok());
                    let commit = commit.map(|text| ObjectId(text.trim_end().to_owned()));
                    found.push((folder.clone(), name, commit));
                }
            }
        }
        found
    }

    /// The latest checkpoint.
    pub(crate) fn latest(&self) -> Option<CheckpointId> {
        let names = self.checkpoints().into_iter().map(|(_, name, _)| name);
        let latest = names.max()?.into_string().ok()?;
        Some(CheckpointId::from(latest))
    }

    /// Whether a repository is the one that it follows: it has the latest checkpoint, by its reference, as a clone may have
    /// the objects.
    pub(crate) fn is_of(&self, repo: &Repo) -> bool {
        let mut all = self.checkpoints();
        all.sort_by(|one, other| one.1.cmp(&other.1));
        all.pop().is_none_or(|(folder, name, _)| {
            let reference = folder.strip_prefix(GIT).unwrap_or(&folder).join(name);
            repo.ref_exists(&reference.to_string_lossy())
        })
    }

    /// Removes what is not needed any more: references of checkpoints whose id is not `known`, and packs that the repository
    /// has not, where their objects are elsewhere in it or were only of such checkpoints. Nothing of packs while the
    /// repository lacks a checkpoint.
    pub(crate) fn drop_gone(&self, repo: &Repo, known: impl Fn(&str) -> bool) -> Result<()> {
        let _lock = self.lock()?;
        let mut is_whole = true;
        for (folder, name, commit) in self.checkpoints() {
            // Another state directory of the repository may know it.
            let reference = folder.strip_prefix(GIT).unwrap_or(&folder).join(&name);
            if known(&name.to_string_lossy()) || repo.ref_exists(&reference.to_string_lossy()) {
                is_whole &= commit.is_some_and(|commit| repo.has_object(&commit));
            } else {
                let path = folder.join(name);
                self.root.remove_file(&path).at(&path)?;
            }
        }
        if !is_whole {
            return Ok(());
        }
        let (own, folder) = (self.own_packs(), Path::new(GIT).join("objects/pack"));
        let there = Root::shared(repo.common_dir()).list(Path::new("objects/pack"));
        let there: BTreeSet<OsString> = there
            .unwrap_or_default()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        for (name, _) in present(self.root.list(&folder))
            .at(&folder)?
            .unwrap_or_default()
        {
            let index = Path::new(&name);
            if index.extension().is_none_or(|ending| ending != "idx") || there.contains(&name) {
                continue;
            }
            let stem = index.file_stem().unwrap_or_default().to_string_lossy();
            if own.contains(&*stem) || self.is_elsewhere(&folder.join(&name), repo)? {
                for ending in ["idx", "pack", "rev", "bitmap", "mtimes"] {
                    let path = folder.join(index.with_extension(ending));
                    present(self.root.remove_file(&path)).at(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the repository has most of the objects that a pack's index names.
    fn is_elsewhere(&self, index: &Path, repo: &Repo) -> Result<bool> {
        let bytes = self.root.read(index).at(index)?;
        let ids = indexed(&bytes, SAMPLE);
        let found = ids
            .iter()
            .filter(|id| repo.has_object(&ObjectId(id.to_string())));
        Ok(2 * found.count() >= ids.len())
    }

    /// Gives a repository the objects of the vault that it lacks. Returns how many of its files were damaged, and replaced.
    pub(crate) fn give_objects(&self, repo: &Repo) -> Result<u64> {
        let own = self.own_packs();
        let from = openat::open_root(&self.git().join("objects"))?;
        let to = openat::open_root(&repo.common_dir().join("objects"))?;
        let given = mirror::replace_damaged(&from, &to, b"").and_then(|replaced| {
            Mirror::whole(&own).fixed(&from, &to, b"objects", true)?;
            Ok(replaced)
        });
        repo.inner
            .odb()
            .and_then(|odb| odb.refresh())
            .map_err(Error::git("refresh the object database"))?;
        given.at(repo.common_dir())
    }

    /// The references of its checkpoints with their commits, by full name.
    pub(crate) fn references(&self) -> Vec<(String, ObjectId)> {
        let name = |folder: PathBuf, name: OsString| {
            let below = folder.strip_prefix(GIT).ok()?.join(name);
            below.to_str().map(str::to_owned)
        };
        self.checkpoints()
            .into_iter()
            .filter_map(|(folder, id, commit)| Some((name(folder, id)?, commit?)))
            .collect()
    }

    /// Puts a copy of the repository at `target`, its git folder. What was in its place is moved into `recover/replaced` in
    /// it; where that is, is returned. Cut off in the middle, it is finished by the next call.
    pub(crate) fn put_back(&self, target: &Path, now: Timestamp) -> Result<Option<PathBuf>> {
        let _lock = self.lock()?;
        let parent = target.parent().unwrap_or(target);
        let root = Root::shared(parent);
        root.create_dir_all(parent).at(parent)?;
        let replaced = Path::new(OWN).join("replaced");
        for (name, _) in root.list(Path::new("")).at(parent)? {
            if !Self::is_unfinished(&name) {
                continue;
            }
            let left = parent.join(name);
            if root.kind(target).at(target)?.is_none()
                && root.has(&left.join(&replaced)).at(&left)?
            {
                root.rename(&left, target).at(target)?;
                return Ok(Some(target.join(replaced)));
            }
            root.remove_dir_all(&left).at(&left)?;
        }
        let made = parent.join(temporary_prefix() + UNFINISHED);
        root.create_dir_all(&made).at(&made)?;
        let own = self.own_packs();
        let to = openat::open_root(&made)?;
        let from = openat::open_root(&self.git())?;
        Mirror::whole(&own).folder(&from, &to, b"").at(&made)?;
        for folder in ["refs/heads", "refs/tags", "objects/info", "objects/pack"] {
            root.create_dir_all(&made.join(folder)).at(&made)?;
        }
        let mut aside = None;
        if root.kind(target).at(target)?.is_some() {
            let place = replaced.join(now.datetime().format("%Y%m%d_%H%M%S").to_string());
            Root::with_own(&made, OWN)
                .create_dir_all(&made.join(&replaced))
                .at(&made)?;
            sync_since(&to, 0).at(&made)?;
            root.rename(target, &made.join(&place)).at(target)?;
            aside = Some(target.join(place));
        } else {
            sync_since(&to, 0).at(&made)?;
        }
        root.rename(&made, target).at(target)?;
        root.sync_dir(parent).at(parent)?;
        Ok(aside)
    }

    /// Whether a name is that of a repository that was not put in its place in the end.
    pub(crate) fn is_unfinished(name: &OsStr) -> bool {
        is_temporary(name.as_encoded_bytes())
            && name.as_encoded_bytes().ends_with(UNFINISHED.as_bytes())
    }

    /// Its copy of the ledger.
    pub(crate) fn read_ledger(&self) -> Result<Option<Vec<u8>>> {
        let path = self.ledger();
        self.root.read_present(&path).at(&path)
    }

    /// Bytes that it takes alone: what is linked is the repository's, too.
    pub(crate) fn size(&self) -> u64 {
        let folder = openat::open_root(self.folder());
        folder.map_or(0, |folder| size(&folder).unwrap_or(0))
    }

    /// For how long its repository has been seen gone; `None` while it is there. Of the time since the last call at most `most`
    /// counts: a clock may have jumped meanwhile.
    pub(crate) fn gone_for(&self, now: Timestamp, most: Duration) -> Result<Option<Duration>> {
        let path = self.folder().join(GONE);
        if self.has_repository() && !self.about.detached {
            self.is_back()?;
            return Ok(None);
        }
        let mut gone = Duration::ZERO;
        if let Some(before) = self.root.read_present(&path).at(&path)? {
            let file = self.root.open(&path).at(&path)?;
            let seen = from_nanos(openat::stat_open(&file).at(&path)?.mtime);
            let before = String::from_utf8(before).ok();
            let before = before.and_then(|text| text.trim_end().parse().ok());
            gone = Duration::from_millis(before.unwrap_or(0)) + now.since(seen).min(most);
        }
        let text = format!("{}\n", gone.as_millis());
        self.root
            .write(&path, text.as_bytes(), Sync::Nothing)
            .at(&path)?;
        let file = self.root.open_to_write(&path).at(&path)?;
        file.set_modified(now.datetime().into()).at(&path)?;
        Ok(Some(gone))
    }

    /// Notes that its repository is there.
    fn is_back(&self) -> Result<()> {
        let path = self.folder().join(GONE);
        present(self.root.remove_file(&path)).at(&path).map(drop)
    }

    /// Removes it for good.
    pub(crate) fn remove(&self) -> Result<()> {
        let lock = self.lock()?;
        let home = self.folder().parent().unwrap_or(self.folder());
        // Whoever comes after a kill finds none that could be believed.
        present(self.root.remove_file(Path::new(ABOUT))).at(self.folder())?;
        Root::own(home)
            .remove_dir_all(self.folder())
            .at(self.folder())?;
        let path = self.folder().with_extension("lock");
        present(Root::own(home).remove_file(&path)).at(&path)?;
        drop(lock);
        // Others may have theirs there.
        let _ = Root::shared(home.parent().unwrap_or(home)).remove_dir(home);
        Ok(())
    }
}

/// Names this start of the machine; nothing where the system has no name for it.
fn this_boot() -> String {
    boot_id().unwrap_or_default()
}

fn from_nanos(nanos: i64) -> Timestamp {
    Timestamp::from_millis(nanos / 1_000_000)
}

/// Where a repository has its vault's id.
fn marker(git_dir: &Path) -> PathBuf {
    git_dir.join(OWN).join("vault")
}

/// Some of the objects that an index of version 2 names, spread over it.
fn indexed(bytes: &[u8], most: usize) -> Vec<Oid> {
    const HEAD: usize = 8 + 256 * 4;
    let count = bytes
        .get(HEAD - 4..HEAD)
        .and_then(|last| last.try_into().ok());
    let count = count.map_or(0, u32::from_be_bytes) as usize;
    let step = count.div_ceil(most).max(1);
    let ids = (0..count).step_by(step);
    ids.filter_map(|at| Oid::from_bytes(bytes.get(HEAD + 20 * at..HEAD + 20 * (at + 1))?).ok())
        .collect()
}

/// Makes what was written since a moment durable; what has another name elsewhere was there before.
fn sync_since(dir: &OwnedFd, since: i64) -> io::Result<()> {
    let mut count = 0;
    written_since(dir, since, &mut |_, _| {
        count += 1;
        Ok(())
    })?;
    if whole_is_cheaper(count) {
        return Ok(sync_file_system(dir)?);
    }
    written_since(dir, since, &mut |dir, name| match name {
        Some(name) => Ok(sync_file(&openat::open_file(dir, name)?)?),
        None => Ok(sync_file(dir)?),
    })
}

/// What is done with a file of a folder, or with the folder.
type Visit<'a> = dyn FnMut(&OwnedFd, Option<&[u8]>) -> io::Result<()> + 'a;

/// Visits the files that were written since, and the folders that they are in.
fn written_since(dir: &OwnedFd, since: i64, visit: &mut Visit<'_>) -> io::Result<()> {
    let mut is_any = false;
    for name in openat::names(&openat::open_folder(dir, b".")?)? {
        let found = rustix::fs::statat(dir, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW);
        // The copy of the ledger is written by whoever records.
        let Some(found) = present(found.map_err(io::Error::from))? else {
            continue;
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                written_since(&openat::open_folder(dir, &name)?, since, visit)?;
            }
            FileType::RegularFile
                if found.st_nlink == 1 && FileStat::from(found).ctime >= since =>
            {
                is_any = true;
                visit(dir, Some(&name))?;
            }
            _ => {}
        }
    }
    if is_any { visit(dir, None) } else { Ok(()) }
}

fn size(dir: &OwnedFd) -> io::Result<u64> {
    let mut bytes = 0;
    for name in openat::names(&openat::open_folder(dir, b".")?)? {
        let found = rustix::fs::statat(dir, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => bytes += size(&openat::open_folder(dir, &name)?)?,
            _ if found.st_nlink == 1 => bytes += u64::try_from(found.st_blocks).unwrap_or(0) * 512,
            _ => {}
        }
    }
    Ok(bytes)
}

/// A configuration of git's without what it says of credentials: in addresses, headers and the like.
fn without_credentials(config: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(config) else {
        return config.to_vec();
    };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let key = line
            .split('=')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let is_secret = ["extraheader", "password", "passwd", "token", "secret"]
            .iter()
            .any(|word| key.ends_with(word));
        if is_secret && line.contains('=') {
            out.push_str(&format!("\t{key} =\n"));
        } else {
            out.push_str(&redact(&without_user(line)));
        }
    }
    out.into_bytes()
}

/// A line whose http addresses have no user any more.
fn without_user(line: &str) -> String {
    let Some((scheme, rest)) = line.split_once("://") else {
        return line.to_owned();
    };
    let end = rest.find(['/', '"', ' ', '\n']).unwrap_or(rest.len());
    let is_http = ["http", "https", "ftp"]
        .iter()
        .any(|name| scheme.ends_with(name));
    let kept = match rest[..end].rfind('@') {
        Some(at) if is_http => &rest[at + 1..],
        _ => rest,
    };
    format!("{scheme}://{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_left_out_of_a_configuration() {
        let config = "[remote \"o\"]\n\turl = https://u:hunter22@h.example/x.git\n\tpushurl = git@h:x.git\n\
                      [url \"https://ghp_x@h/\"]\n[http]\n\textraHeader = AUTHORIZATION: basic eA==\n";
        let blank = String::from_utf8(without_credentials(config.as_bytes())).unwrap();
        let expected = "[remote \"o\"]\n\turl = https://h.example/x.git\n\tpushurl = git@h:x.git\n\
                        [url \"https://h/\"]\n[http]\n\textraheader =\n";
        assert_eq!(blank, expected);
    }
}
