//! The references of checkpoints, `refs/recover/<run>/<checkpoint>`: they keep the commits from `git gc`.
//! Those of a private repository are taken over by a git repository that was made in its place.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{AutotagOption, FetchOptions, Oid, Reference};

use super::locks::{GitLock, WorktreeLock};
use super::repository::{Repo, private_path};
use crate::durable::{Kind, Root, give_to_sudo_caller, temporary_prefix};
use crate::git::base::{At as _, Error, Result, present, sync_folder};
use crate::model::path::short_part;
use crate::model::{CheckpointId, ObjectId, RunId};

/// Where all of them are.
pub(crate) const PREFIX: &str = "refs/recover/";

/// Where the branches of runs are that have a work tree of their own.
const BRANCHES: &str = "refs/heads/recover/";

/// A reference and the commit it names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckpointRef {
    /// The full name.
    pub name: String,
    /// The commit.
    pub commit: ObjectId,
}

/// Where commits are kept that went off a branch; no run's checkpoints have that place, as no run's component has a `+`.
pub(crate) const KEPT: &str = "refs/recover/+kept/";

impl CheckpointRef {
    /// The name of the reference of a run's checkpoint.
    pub fn name_of(run_id: &RunId, checkpoint: &CheckpointId) -> String {
        let (run, checkpoint) = (run_id.as_str(), checkpoint.as_str());
        format!(
            "{PREFIX}{}/{}",
            Self::component(run),
            Self::component(checkpoint)
        )
    }

    /// The reference that keeps a commit of a run which went off a branch.
    pub(crate) fn kept(run_id: &RunId, commit: &ObjectId) -> Self {
        let run = Self::component(run_id.as_str());
        Self {
            name: format!("{KEPT}{run}/{}", commit.short()),
            commit: commit.clone(),
        }
    }

    /// A text as one component of a reference's name. Different texts give different components.
    ///
    /// Letters, digits, `-` and `_` stay, so does a `.` between two of these; any other byte becomes `%` and two hexadecimal digits.
    /// What gets too long for a file's name is cut, with a checksum at its end.
    pub(crate) fn component(text: &str) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let bytes = text.as_bytes();
        let mut out = String::with_capacity(bytes.len());
        for (at, byte) in bytes.iter().copied().enumerate() {
            let between =
                at > 0 && plain(bytes[at - 1]) && bytes.get(at + 1).copied().is_some_and(plain);
            // `x.lock` would be taken for the lock of `x`.
            let lock = byte == b'.' && &bytes[at + 1..] == b"lock";
            if plain(byte) || (byte == b'.' && between && !lock) {
                out.push(char::from(byte));
            } else {
                let _ = write!(out, "%{byte:02x}");
            }
        }
        if out.is_empty() {
            "%".to_owned()
        } else {
            short_part(out, text)
        }
    }
}

impl Repo {
    /// The references that keep commits which went off a branch: those of a run, or all.
    pub(crate) fn kept_ref_names(&self, run_id: Option<&RunId>) -> Result<Vec<String>> {
        let prefix = run_id.map_or(KEPT.to_owned(), |run_id| {
            format!("{KEPT}{}/", CheckpointRef::component(run_id.as_str()))
        });
        let mut names = all_names(self, |_| false)?;
        names.retain(|name| name.starts_with(&prefix));
        Ok(names.into_iter().collect())
    }

    /// Whether a reference of this name is there, whatever it holds.
    pub fn ref_exists(&self, name: &str) -> bool {
        self.inner.find_reference(name).is_ok()
    }

    /// Sets a new reference of a checkpoint, durably; [`Error::HeadMoved`] if there is one of that name.
    ///
    /// It is written beside and linked into its place, as git's own lock file, cut off by a kill, would stay for ever.
    pub fn set_ref(&self, lock: &WorktreeLock, name: &str, commit: &ObjectId) -> Result<()> {
        set_ref_from(self, lock, name, commit, None)
    }

    /// The names of the references of checkpoints, sorted, but for those with an id that `is_known`: a name ends with it.
    /// None of them is read, as libgit2's own listing does.
    pub fn ref_names(&self, is_known: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut names = all_names(self, is_known)?;
        names.retain(|name| !name.starts_with(KEPT));
        Ok(names.into_iter().collect())
    }

    /// The branch of a run that has a work tree of its own.
    pub(crate) fn branch_of_run(name: &str) -> String {
        format!("{BRANCHES}{name}")
    }

    /// What a reference names; `None` if it is not there or cannot be read.
    pub(crate) fn resolve_ref(&self, name: &str) -> Option<ObjectId> {
        self.inner
            .refname_to_id(name)
            .ok()
            .map(|oid| ObjectId(oid.to_string()))
    }

    /// All references of checkpoints, sorted. One that cannot be read is left out with its name in the second list.
    pub fn list_refs(&self) -> Result<(Vec<CheckpointRef>, Vec<String>)> {
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        for name in self.ref_names(|_| false)? {
            match self.resolve_ref(&name) {
                Some(commit) => found.push(CheckpointRef { name, commit }),
                None => broken.push(name),
            }
        }
        Ok((found, broken))
    }

    /// Deletes references of checkpoints, or branches of runs. One that is not there is deleted already.
    ///
    /// They are nobody's but ours, so that only `packed-refs` needs a lock of git's.
    pub fn delete_refs(&self, lock: &WorktreeLock, names: &[String]) -> Result<()> {
        let is_own = |name: &&String| name.starts_with(PREFIX) || name.starts_with(BRANCHES);
        if let Some(foreign) = names.iter().find(|name| !is_own(name)) {
            return Err(Error::UnsafePath {
                path: foreign.into(),
                reason: "neither a checkpoint's reference nor a run's branch".to_owned(),
            });
        }
        remove_packed(self, lock, &names.iter().map(String::as_str).collect())?;
        let mut folders = BTreeSet::new();
        for name in names {
            let path = self.common_dir().join(name);
            present(&path, folder_of_refs(self).remove_file(&path))?;
            folders.extend(path.parent().map(Path::to_owned));
            if name.starts_with(BRANCHES) {
                let log = self.common_dir().join("logs").join(name);
                let logs = Root::shared(self.common_dir().join("logs"));
                present(&log, logs.remove_file(&log))?;
            }
        }
        for folder in &folders {
            sync_refs_folder(self, folder)?;
            // One that holds other references stays.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    /// Takes over the checkpoints of the private repository, and removes that. Returns how many there were. A kill on the way
    /// leaves the private one, and the next call begins again.
    pub fn take_over_private(
        &self,
        lock: &WorktreeLock,
        root: &Root,
        state_dir: &Path,
    ) -> Result<usize> {
        let path = private_path(state_dir);
        let text = path
            .to_str()
            .ok_or_else(|| Error::Unsupported(format!("{} is no text", path.display())))?;
        let mut remote = self
            .inner
            .remote_anonymous(text)
            .map_err(Error::git(format!("read {text}")))?;
        let private = Self::private(root, state_dir, self.workdir(), None)?;
        let (found, _) = private.list_refs()?;
        let names: Vec<String> = found
            .iter()
            .map(|one| format!("+{0}:{0}", one.name))
            .collect();
        if !names.is_empty() {
            let mut options = FetchOptions::new();
            options.download_tags(AutotagOption::None);
            remote
                .download(&names, Some(&mut options))
                .map_err(Error::git(format!("copy the objects of {text}")))?;
        }
        // On disk before anything refers to them, and before the private ones go.
        rustix::fs::sync();
        for one in &found {
            if !self.ref_exists(&one.name) {
                self.set_ref(lock, &one.name, &one.commit)?;
            }
        }
        root.remove_dir_all(&path).at(&path)?;
        Ok(found.len())
    }
}

/// [`set_ref`](Repo::set_ref) with a draft of it that is durable, where there is one.
pub(in crate::git) fn set_ref_from(
    repo: &Repo,
    lock: &WorktreeLock,
    name: &str,
    commit: &ObjectId,
    draft: Option<PathBuf>,
) -> Result<()> {
    let exists = || Error::HeadMoved {
        reference: name.to_owned(),
        expected: "nothing".to_owned(),
        found: repo
            .inner
            .refname_to_id(name)
            .map_or_else(|_| "something".to_owned(), |oid| oid.to_string()),
    };
    // It may be packed.
    if repo.ref_exists(name) {
        return Err(exists());
    }
    let (refs, path) = (folder_of_refs(repo), repo.common_dir().join(name));
    let draft = draft.map_or_else(|| write_draft(repo, lock, &format!("{commit}\n")), Ok)?;
    let folder = path.parent().unwrap_or(&path);
    // The lowest folder that is there: it gets a new name, and so does each that is made below it.
    let (mut there, top) = (folder, repo.common_dir().join("refs"));
    let mut tries = 3;
    loop {
        while there != top && !refs.has(there).at(there)? {
            there = there.parent().unwrap_or(&top);
        }
        let made = refs.create_dir_all(folder).map_err(|error| (error, false));
        match made.and_then(|()| {
            repo.own()
                .link_or_move(&draft, &refs, &path)
                .map_err(|error| (error, true))
        }) {
            Ok(()) => break,
            // What is left of the draft is reaped with the next lock.
            Err((error, true)) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(exists());
            }
            // `git pack-refs` removes folders that are empty.
            Err((error, _)) if error.kind() == io::ErrorKind::NotFound && tries > 0 => tries -= 1,
            Err((source, _)) => return Err(Error::io(path, source)),
        }
    }
    if repo
        .own()
        .remove_file(&draft)
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    {
        repo.say_once(
            "without-links",
            "the file system has no hard links: what is recorded is copied or moved into its place, which takes longer",
        );
    }
    // The draft was synced, so that only names are new.
    let mut changed = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(there));
    changed
        .try_for_each(|folder| sync_refs_folder(repo, folder))
        .inspect_err(|_| {
            // A reference that may not last is no reference: the caller is notified that there is none.
            let _ = refs.remove_file(&path);
        })
}

/// Syncs a folder of references. Where `git pack-refs` removed it, what it held is in `packed-refs`: that is synced instead.
fn sync_refs_folder(repo: &Repo, folder: &Path) -> Result<()> {
    match sync_folder(folder) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let packed = repo.common_dir().join("packed-refs");
            let synced = fs::File::open(&packed).and_then(|file| file.sync_all());
            present(&packed, synced)?;
            sync_folder(repo.common_dir())
        }
        synced => synced,
    }
}

/// The way to the references of checkpoints: nothing is followed in git's folder of references, wherever that is.
fn folder_of_refs(repo: &Repo) -> Root {
    Root::shared(repo.common_dir().join("refs"))
}

/// The text of a reference, durably, in a file of the worktree's own folder: to be renamed or linked into its place.
pub(in crate::git) fn write_draft(
    repo: &Repo,
    _lock: &WorktreeLock,
    text: &str,
) -> Result<PathBuf> {
    let (draft, file) = begin_draft(repo, text)?;
    file.sync_all().at(&draft)?;
    Ok(draft)
}

/// [`write_draft`] that is not durable yet. The worktree's lock is held.
pub(in crate::git) fn begin_draft(repo: &Repo, text: &str) -> Result<(PathBuf, fs::File)> {
    let (draft, mut file) = new_file(&repo.recover_dir()?, "ref")?;
    file.write_all(text.as_bytes()).at(&draft)?;
    Ok((draft, file))
}

/// Makes a temporary file that was not there. One that is there could not be removed: it may be a name of a reference.
fn new_file(folder: &Path, name: &str) -> Result<(PathBuf, fs::File)> {
    let mut number = 0_u32;
    loop {
        let path = folder.join(format!("{}{name}.{number}", temporary_prefix()));
        match fs::File::create_new(&path).and_then(|file| give_to_sudo_caller(&path).map(|()| file))
        {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(source) => return Err(Error::io(path, source)),
        }
    }
}

/// Syncs the folders above a reference, which may be new. What it holds was synced as a draft.
pub(in crate::git) fn sync_ref(repo: &Repo, name: &str) -> Result<()> {
    // Everything but HEAD is shared between linked worktrees.
    if name == "HEAD" {
        return sync_folder(repo.git_dir());
    }
    let path = repo.common_dir().join(name);
    let top = repo.common_dir().join("refs");
    let mut folders = path
        .ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(&top));
    folders.try_for_each(|folder| sync_refs_folder(repo, folder))
}

/// The names of all references of ours.
fn all_names(repo: &Repo, is_known: impl Fn(&str) -> bool) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let packed = repo.common_dir().join("packed-refs");
    let text = present(&packed, fs::read(&packed))?.unwrap_or_default();
    for line in text.split(|byte| *byte == b'\n') {
        // `commit SP name`; other lines say more about the one before.
        let name = line
            .split(|byte| *byte == b' ')
            .nth(1)
            .filter(|name| name.starts_with(PREFIX.as_bytes()));
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        names.extend(
            name.filter(|name| !is_known(name.rsplit('/').next().unwrap_or_default()))
                .map(str::to_owned),
        );
    }
    let mut open = vec![PREFIX.trim_end_matches('/').to_owned()];
    while let Some(name) = open.pop() {
        let folder = repo.common_dir().join(&name);
        // One that went away while they are listed is no reason to hide the others.
        let Some(entries) = present(&folder, folder_of_refs(repo).list(&folder))? else {
            continue;
        };
        for (last, kind) in entries {
            let Some(last) = last.to_str() else { continue };
            let is_folder = kind == Kind::Directory;
            if !is_folder && is_known(last) {
                continue;
            }
            let below = format!("{name}/{last}");
            // Locks and what other programs leave (`.x`) are no references.
            match Reference::is_valid_name(&below) {
                true if is_folder => open.push(below),
                true => drop(names.insert(below)),
                false => {}
            }
        }
    }
    Ok(names)
}

/// How long a reference that git holds is waited for.
pub(in crate::git) const GIT_WAIT: Duration = Duration::from_secs(2);

/// Takes references out of `packed-refs`, under git's lock of it.
pub(in crate::git) fn remove_packed(
    repo: &Repo,
    _lock: &WorktreeLock,
    names: &BTreeSet<&str>,
) -> Result<()> {
    let own = repo.recover_dir()?;
    let path = repo.common_dir().join("packed-refs");
    let without = || -> Result<Option<Vec<u8>>> {
        let packed = present(&path, fs::read(&path))?;
        Ok(packed.and_then(|packed| without_names(&packed, names)))
    };
    if without()?.is_none() {
        return Ok(());
    }
    let _held = GitLock::acquire(repo, "packed-refs", &path, GIT_WAIT)?;
    let Some(kept) = without()? else {
        return Ok(());
    };
    let (draft, mut file) = new_file(&own, "packed")?;
    let written = file.write_all(&kept).and_then(|()| file.sync_all());
    written.at(&draft)?;
    fs::rename(&draft, &path).at(&path)?;
    sync_folder(repo.common_dir())
}

/// What is left of `packed-refs`; `None` where it names none of them.
fn without_names(packed: &[u8], names: &BTreeSet<&str>) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(packed.len());
    let mut dropped = false;
    for line in packed.split_inclusive(|byte| *byte == b'\n') {
        // A line that begins with `^` belongs to the one before it.
        if !line.starts_with(b"^") {
            let name = std::str::from_utf8(line)
                .ok()
                .and_then(|line| line.trim_end().split_once(' '));
            dropped = !line.starts_with(b"#") && name.is_some_and(|(_, name)| names.contains(name));
        }
        if !dropped {
            kept.extend_from_slice(line);
        }
    }
    (kept.len() < packed.len()).then_some(kept)
}

/// The commit of a reference or revision of the user's (`HEAD`, a branch, an id).
pub fn resolve(repo: &Repo, revision: &str) -> Result<ObjectId> {
    let object = repo
        .inner
        .revparse_single(revision)
        .and_then(|object| object.peel_to_commit());
    let oid: Oid = object
        .map_err(Error::git(format!("find '{revision}'")))?
        .id();
    Ok(ObjectId(oid.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_references_are_taken_out_with_what_they_peel_to() {
        let packed =
            b"# pack-refs with: peeled fully-peeled sorted \n11 refs/heads/a\n22 refs/tags/t\n^33\n44 refs/x\n";
        let without = |name| without_names(packed, &BTreeSet::from([name]));
        let kept = without("refs/tags/t").unwrap();
        assert_eq!(
            kept,
            b"# pack-refs with: peeled fully-peeled sorted \n11 refs/heads/a\n44 refs/x\n"
        );
        assert_eq!(without("refs/heads"), None);
    }

    #[test]
    fn any_run_id_makes_a_valid_name() {
        let ids = [
            "a", "", ".", "..", "a..b", "a.lock", "a b", "a/b", "a~1", "@{", "%61", "é", "a.b",
            "-x", "a\n", "x.",
        ];
        let mut seen = std::collections::BTreeSet::new();
        for id in ids {
            let name = CheckpointRef::name_of(&id.into(), &"ckpt".into());
            assert!(git2::Reference::is_valid_name(&name), "{name}");
            assert!(seen.insert(name), "{id} collides");
        }
        assert_eq!(CheckpointRef::component("run-2026.01_a"), "run-2026.01_a");
    }
}
