//! The loop's working memory: every file below the state directory that is not `recover`'s own (S2, S5, L6).

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::durable::{Kind, Sync, is_temporary};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::git::checkpoint::MemoryFile;
use crate::model::{PathReason, RepoPath};
use crate::policy::settings::MemorySettings;
use crate::store::{Store, VIEWS};

/// Names at the top of the state directory that are `recover`'s own, as the views are: rolling them back would roll the budgets back.
const OWN: [&str; 3] = [".gitignore", "events.jsonl", "recover"];

/// Reads the working memory. Over `max_state_size` bytes it is an error that names the largest file (S2).
pub(crate) fn read(context: &Context) -> Result<Vec<MemoryFile>> {
    let mut files = Vec::new();
    walk(context.store(), &RepoPath::default(), &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let total: u64 = files.iter().map(|file| file.content.len() as u64).sum();
    let limit = context.settings().memory.max_state_size;
    if total > limit {
        let largest = files.iter().max_by_key(|file| file.content.len());
        let named = largest
            .map(|file| format!("{} ({} bytes)", file.path, file.content.len()))
            .unwrap_or_default();
        let message = format!(
            "the working memory has {total} bytes, over the limit of {limit}; largest: {named}; move it out of the state \
             directory, or raise [memory] max_state_size"
        );
        return Err(Error::new(ErrorKind::NoSpace, message));
    }
    Ok(files)
}

fn walk(store: &Store, relative: &RepoPath, files: &mut Vec<MemoryFile>) -> Result<()> {
    let folder = on_disk(store, relative);
    let entries = match store.root().list(&folder) {
        Ok(entries) => entries,
        // The loop removes its files as it likes.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::cannot("read", &folder, error)),
    };
    for (name, kind) in entries {
        if is_temporary(name.as_bytes())
            || (relative.as_bytes().is_empty() && OWN.iter().chain(&VIEWS).any(|own| name == *own))
        {
            continue;
        }
        let path = relative.join(&name.into_vec());
        // A link, FIFO, socket or device is no part of it.
        match kind {
            Kind::Directory => walk(store, &path, files)?,
            Kind::RegularFile => {
                let shown = on_disk(store, &path);
                match read_file(store, &shown, path) {
                    Ok(file) => files.push(file),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(Error::cannot("read", &shown, error)),
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_file(store: &Store, shown: &Path, path: RepoPath) -> io::Result<MemoryFile> {
    let mut file = store.root().open(shown)?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(MemoryFile {
        path,
        content,
        mode: file.metadata()?.permissions().mode() & 0o7777,
    })
}

/// The state directory as answers name it: relative to the work tree where it lies inside, else absolute.
pub(crate) fn named_root(context: &Context) -> RepoPath {
    let dir = context.store().dir();
    let named = dir.strip_prefix(context.worktree()).unwrap_or(dir);
    RepoPath::new(named.as_os_str().as_bytes())
}

/// How the working memory would change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryPlan {
    /// Files to write, with content and mode.
    pub write: Vec<MemoryFile>,
    /// Files to delete.
    pub delete: Vec<RepoPath>,
}

impl MemoryPlan {
    /// Leaves out, and returns, what is there now and is in none of `known`: it was written meanwhile.
    pub(crate) fn leave_changed(
        &mut self,
        now: &[MemoryFile],
        known: &[&[MemoryFile]],
    ) -> Vec<PathReason> {
        let is_known = |file: &&MemoryFile| {
            let is_it = |one: &MemoryFile| one.path == file.path && one.content == file.content;
            known.iter().copied().flatten().any(is_it)
        };
        let changed = now.iter().filter(|file| !is_known(file));
        let changed: Vec<&RepoPath> = changed.map(|file| &file.path).collect();
        let (mut left, reason) = (Vec::new(), "changed while it was restored");
        let mut leave = |path: &RepoPath| {
            let stays = changed.contains(&path);
            if stays {
                left.push(PathReason::new(path.clone(), reason));
            }
            !stays
        };
        self.write.retain(|file| leave(&file.path));
        self.delete.retain(leave);
        left
    }

    /// Leaves these files as they are.
    pub(crate) fn leave(&mut self, paths: &BTreeSet<RepoPath>) {
        self.write.retain(|file| !paths.contains(&file.path));
        self.delete.retain(|path| !paths.contains(path));
    }

    /// Whether nothing is to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.write.is_empty() && self.delete.is_empty()
    }
}

/// What has to change to get from `now` to `target`. Long-term memory is never rolled back (S5).
pub(crate) fn plan(
    now: &[MemoryFile],
    target: &[MemoryFile],
    settings: &MemorySettings,
) -> Result<MemoryPlan> {
    let long_term = globs(&settings.long_term)?;
    let covered = |file: &&MemoryFile| !long_term.is_match(Path::new(&*file.path.to_lossy()));
    let write = target
        .iter()
        .filter(covered)
        .filter(|file| !now.contains(file))
        .cloned()
        .collect();
    let gone = |file: &&MemoryFile| !target.iter().any(|kept| kept.path == file.path);
    let delete = now
        .iter()
        .filter(covered)
        .filter(gone)
        .map(|file| file.path.clone())
        .collect();
    Ok(MemoryPlan { write, delete })
}

/// [`plan`] after an error: the loop's own state is cleared, whatever `target` has of it (L3).
pub(crate) fn plan_after_error(
    now: &[MemoryFile],
    target: &[MemoryFile],
    settings: &MemorySettings,
) -> Result<MemoryPlan> {
    let loop_state = globs(&settings.loop_state)?;
    let is_cleared = |path: &RepoPath| loop_state.is_match(Path::new(&*path.to_lossy()));
    let mut plan = plan(now, target, settings)?;
    plan.write.retain(|file| !is_cleared(&file.path));
    let there = now
        .iter()
        .map(|file| &file.path)
        .filter(|path| is_cleared(path));
    let new = there.filter(|path| !plan.delete.contains(path)).cloned();
    plan.delete.extend(new.collect::<Vec<_>>());
    Ok(plan)
}

/// Refuses a plan where something that was not captured (a link, a folder with something in it) stands in the place of
/// a file or of one of its folders. Nothing is changed.
pub(crate) fn check(store: &Store, plan: &MemoryPlan) -> Result<()> {
    let kind = |path: &RepoPath| {
        let path = on_disk(store, path);
        let found = store.root().kind(&path);
        found.map_err(|error| Error::cannot("read", &path, error))
    };
    for path in plan.write.iter().map(|file| &file.path).chain(&plan.delete) {
        // From the top: what is below something that is no folder is not there.
        for folder in path
            .ancestors()
            .filter(|folder| !folder.as_bytes().is_empty())
        {
            match kind(&folder)? {
                None => break,
                Some(Kind::Directory) => {}
                Some(_) if plan.delete.contains(&folder) => break,
                Some(_) => return Err(in_the_way(store, &folder, "is not a folder any more")),
            }
        }
    }
    for file in &plan.write {
        // What is below one that goes is not there.
        let mut above = file.path.ancestors();
        if above.any(|folder| plan.delete.contains(&folder)) {
            continue;
        }
        match kind(&file.path)? {
            Some(Kind::Directory) => refuse_staying(store, &file.path, plan)?,
            None | Some(Kind::RegularFile) => {}
            Some(_) => return Err(in_the_way(store, &file.path, "is not a file any more")),
        }
    }
    Ok(())
}

/// Refuses a folder that has to make way and holds something that the plan does not take away.
fn refuse_staying(store: &Store, folder: &RepoPath, plan: &MemoryPlan) -> Result<()> {
    let shown = on_disk(store, folder);
    let entries = store.root().list(&shown);
    let entries = entries.with_context(|| format!("cannot read {}", shown.display()))?;
    for (name, kind) in entries {
        let path = folder.join(&name.into_vec());
        if kind == Kind::Directory {
            refuse_staying(store, &path, plan)?;
        } else if !plan.delete.contains(&path) {
            let why = "is where the checkpoint has a file";
            return Err(in_the_way(store, &path, why));
        }
    }
    Ok(())
}

fn in_the_way(store: &Store, path: &RepoPath, why: &str) -> Error {
    let message = format!(
        "Rollback failed - conflicts: {} {why}; move it aside first",
        on_disk(store, path).display()
    );
    let reason = PathReason::new(path.clone(), why);
    Error::new(ErrorKind::Conflicts, message).paths(vec![reason])
}

/// Carries a plan out. Each file is replaced as a whole; folders that become empty go.
pub(crate) fn apply(store: &Store, plan: &MemoryPlan) -> Result<()> {
    check(store, plan)?;
    for path in &plan.delete {
        let target = on_disk(store, path);
        match store.root().remove_file(&target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::cannot("remove", &target, error));
            }
            _ => remove_empty_folders(store, path),
        }
    }
    for file in &plan.write {
        write(store, file).map_err(|error| {
            // A folder that was made for it would be left: whoever takes this back knows of files only.
            remove_empty_folders(store, &file.path);
            Error::cannot("write", &on_disk(store, &file.path), error)
        })?;
    }
    Ok(())
}

fn write(store: &Store, file: &MemoryFile) -> io::Result<()> {
    // They are the loop's, not ours alone.
    let (root, target) = (store.root().for_all(), on_disk(store, &file.path));
    if let Some(folder) = target.parent() {
        root.create_dir_all(folder)?;
        root.reap(folder);
    }
    if root.kind(&target)? == Some(Kind::Directory) {
        remove_empty(store, &target)?;
    }
    root.write_mode(&target, &file.content, file.mode, Sync::All)
}

/// Removes the folders of a path that hold nothing, the deepest first.
fn remove_empty_folders(store: &Store, path: &RepoPath) {
    for folder in path.ancestors().collect::<Vec<_>>().into_iter().rev() {
        // One that holds something stays, and so do those above it.
        if store.root().remove_dir(&on_disk(store, &folder)).is_err() {
            break;
        }
    }
}

/// Removes a folder that holds nothing but folders.
fn remove_empty(store: &Store, folder: &Path) -> io::Result<()> {
    for (name, _) in store.root().list(folder)? {
        remove_empty(store, &folder.join(name))?;
    }
    store.root().remove_dir(folder)
}

fn on_disk(store: &Store, path: &RepoPath) -> PathBuf {
    store
        .dir()
        .join(std::ffi::OsStr::from_bytes(path.as_bytes()))
}

fn globs(patterns: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    let built = patterns.iter().try_for_each(|pattern| {
        set.add(GlobBuilder::new(pattern).literal_separator(true).build()?);
        Ok(())
    });
    let built = built.and_then(|()| set.build());
    built.map_err(|error: globset::Error| Error::new(ErrorKind::Config, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_made_for_a_file_goes_with_it() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::new(root.path().to_owned(), std::time::Duration::ZERO);
        let path = format!("new/deep/{}", "n".repeat(256));
        let file = MemoryFile {
            path: RepoPath::from(path.as_str()),
            content: b"x".to_vec(),
            mode: 0o644,
        };
        let plan = MemoryPlan {
            write: vec![file],
            delete: Vec::new(),
        };
        assert!(
            apply(&store, &plan).is_err(),
            "no file system takes such a name"
        );
        assert!(!root.path().join("new").exists());
    }
}
