//! Which of git's settings lead away from a work tree, and how they are mended.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::nested::{linked_folder, module_folder};
use super::repository::is_same_folder;
use crate::durable::write_atomic;
use crate::git::base::error::{At as _, Error, Reason, Result, Unusable, has_state};
use crate::model::{Head, Timestamp};

impl Unusable {
    /// What is wrong with the repository of `place`, whose `.git` is there, after git's library said `message`.
    pub(super) fn examine(place: &Path, message: Option<&str>) -> Option<Self> {
        let common_dir = common_dir(place);
        let reason = match message {
            Some(message) if message.contains("refstorage") => Reason::Reftable,
            Some(message) if message.contains("object format") => Reason::Sha256,
            _ => common_dir
                .as_deref()
                .and_then(|common| misled(place, common))
                .or_else(|| damaged_head(place, common_dir.as_deref()?))
                .or(message.map(said))?,
        };
        Some(Self {
            place: place.to_owned(),
            common_dir,
            reason,
            head: None,
        })
    }

    /// Takes HEAD for what it was at this time, unless its log says that it was moved to something else since.
    pub fn remember(&mut self, head: &Head, at: Timestamp) {
        let Reason::Head(file) = &self.reason else {
            return;
        };
        let log = fs::read(file.with_file_name("logs").join("HEAD")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        self.head = match (&head.branch, &head.commit) {
            (Some(branch), _) => {
                let moved = log.lines().rev().find_map(|line| moved_to(line, at));
                let is_same = moved.is_none_or(|to| branch.strip_prefix("refs/heads/") == Some(to));
                (is_same && git2::Reference::is_valid_name(branch))
                    .then(|| format!("ref: {branch}"))
            }
            (None, Some(commit)) => {
                let last = log.lines().next_back();
                let is_same = last.is_none_or(|line| line.split(' ').nth(1) == Some(&commit.0));
                is_same.then(|| commit.0.clone())
            }
            (None, None) => None,
        };
    }

    /// Does what [`Self::repair`] says.
    pub fn mend(&self) -> Result<()> {
        if let (Reason::Head(file), Some(head)) = (&self.reason, &self.head) {
            return write_atomic(file, format!("{head}\n").as_bytes()).at(file);
        }
        let Some(common) = self
            .common_dir
            .as_deref()
            .filter(|_| self.repair().is_some())
        else {
            return Ok(());
        };
        let failed = || Error::git(format!("change the configuration of {}", common.display()));
        // git reads the second one after the first.
        for file in ["config", "config.worktree"].map(|name| common.join(name)) {
            if !file.is_file() {
                continue;
            }
            let mut config = git2::Config::open(&file).map_err(failed())?;
            match self.reason {
                Reason::Bare if config.get_bool("core.bare").is_ok_and(|bare| bare) => {
                    config.set_bool("core.bare", false).map_err(failed())?;
                }
                Reason::Elsewhere(_) if config.get_entry("core.worktree").is_ok() => {
                    config
                        .remove_multivar("core.worktree", ".*")
                        .map_err(failed())?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// HEAD of the work tree at `place`, where git does not take its folder for a repository because of it.
fn damaged_head(place: &Path, common: &Path) -> Option<Reason> {
    let file = git_dir(place)?.join("HEAD");
    let is_otherwise = ["objects", "refs"]
        .iter()
        .all(|name| common.join(name).is_dir());
    (is_otherwise && !is_head(&file)).then_some(Reason::Head(file))
}

/// Whether a file is what git takes for HEAD: it names a reference, or a commit. What cannot be read is not judged.
fn is_head(file: &Path) -> bool {
    if let Ok(target) = fs::read_link(file) {
        return target.starts_with("refs");
    }
    let text = match fs::read(file) {
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
        Ok(text) => text,
    };
    match text.strip_prefix(b"ref:") {
        Some(name) => std::str::from_utf8(name.trim_ascii())
            .is_ok_and(|name| name.starts_with("refs/") && git2::Reference::is_valid_name(name)),
        None => text
            .get(..40)
            .is_some_and(|id| id.iter().all(u8::is_ascii_hexdigit)),
    }
}

/// The git folder of the work tree at `place`.
fn git_dir(place: &Path) -> Option<PathBuf> {
    let link = place.join(".git");
    if link.symlink_metadata().ok()?.is_dir() {
        return Some(link);
    }
    let text = fs::read_to_string(&link).ok()?;
    fs::canonicalize(place.join(text.strip_prefix("gitdir:")?.trim())).ok()
}

/// What a line of HEAD's log says that it was moved to, where that was at this time or later.
fn moved_to(line: &str, at: Timestamp) -> Option<&str> {
    let (who, what) = line.split_once('\t')?;
    let (_, to) = what
        .strip_prefix("checkout: moving from ")?
        .split_once(" to ")?;
    let seconds: i64 = who.rsplit(' ').nth(1)?.parse().ok()?;
    (seconds >= at.millis() / 1000).then_some(to)
}

fn said(message: &str) -> Reason {
    Reason::Other(message.to_owned())
}

/// Which of git's settings lead away from the work tree beside a git folder.
fn misled(place: &Path, common: &Path) -> Option<Reason> {
    if common != place.join(".git") {
        return None;
    }
    if let Some(folder) = module_folder(common) {
        let is_here = is_same_folder(&folder, place);
        let counts = !folder.is_dir() || has_state(place);
        return (!is_here && counts)
            .then(|| Reason::Elsewhere(fs::canonicalize(&folder).unwrap_or(folder)));
    }
    let is_bare = |name: &str| {
        let config = git2::Config::open(&common.join(name)).ok();
        config.is_some_and(|config| config.get_bool("core.bare").is_ok_and(|bare| bare))
    };
    ["config", "config.worktree"]
        .into_iter()
        .any(is_bare)
        .then_some(Reason::Bare)
}

/// The git folder that the work trees of the repository at `place` share.
fn common_dir(place: &Path) -> Option<PathBuf> {
    let git_dir = git_dir(place)?;
    if git_dir == place.join(".git") {
        return Some(git_dir);
    }
    match fs::read_to_string(git_dir.join("commondir")) {
        Ok(common) => {
            let leads_back =
                linked_folder(&git_dir).is_some_and(|folder| is_same_folder(&folder, place));
            fs::canonicalize(git_dir.join(common.trim()))
                .ok()
                .filter(|_| leads_back)
        }
        Err(_) => module_folder(&git_dir)
            .is_some_and(|folder| is_same_folder(&folder, place))
            .then_some(git_dir),
    }
}
