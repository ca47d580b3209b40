//! Which paths git ignores: `.gitignore` of each folder, `info/exclude`, and the user's own excludes file.

use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::database::Database;
use super::diff::Objects;
use super::dirs;
use super::error::{Error, Result};
use super::repository::Repo;
use crate::model::path::RepoPath;
use crate::model::snapshot::{EntryKind, Snapshot};

/// An ignore file over this size is not a list of patterns.
const MAX_BYTES: u64 = 4 << 20;

/// The rules in force: those for the whole tree, and a stack with those of each folder from the root to where a walk is.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    /// Lowest precedence first.
    global: Vec<Gitignore>,
    /// With the length of the folder's path, deepest last.
    folders: Vec<(usize, Gitignore)>,
    ignore_case: bool,
}

impl IgnoreRules {
    /// The rules for the whole tree. A private repository has none of a user's.
    pub fn new(repo: &Repo) -> Result<Self> {
        let mut rules = Self { global: Vec::new(), folders: Vec::new(), ignore_case: false };
        if repo.is_private() {
            return Ok(rules);
        }
        let config = repo.inner.config().map_err(Error::git("read the configuration"))?;
        rules.ignore_case = config.get_bool("core.ignorecase").unwrap_or(false);
        let own = config.get_path("core.excludesfile").ok().or_else(default_excludes);
        for path in own.into_iter().chain([repo.common_dir().join("info/exclude")]) {
            // A missing or unreadable file holds no rules, as in git.
            let readable = fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
            if let Some(content) = readable.then(|| fs::read(&path).ok()).flatten() {
                rules.global.push(parse(&content, rules.ignore_case));
            }
        }
        Ok(rules)
    }

    /// Adds the rules of `folder` from its `.gitignore`, if it has one. Returns whether there is something to [`pop`].
    ///
    /// [`pop`]: Self::pop
    pub fn push(&mut self, dir: &OwnedFd, folder: &RepoPath) -> bool {
        let Ok(mut file) = dirs::open_file(dir, b".gitignore") else { return false };
        let mut content = Vec::new();
        if file.by_ref().take(MAX_BYTES).read_to_end(&mut content).is_err() {
            return false;
        }
        self.push_content(&content, folder);
        true
    }

    fn push_content(&mut self, content: &[u8], folder: &RepoPath) {
        let length = folder.as_bytes().len();
        self.folders.push((if length == 0 { 0 } else { length + 1 }, parse(content, self.ignore_case)));
    }

    /// Drops the rules of the deepest folder.
    pub fn pop(&mut self) {
        self.folders.pop();
    }

    /// Whether the path itself matches; its folders are the caller's to ask about first.
    pub fn matches(&self, path: &RepoPath, is_folder: bool) -> bool {
        let bytes = path.as_bytes();
        let of_folders = self.folders.iter().rev().map(|(start, rules)| (&bytes[*start..], rules));
        let of_tree = self.global.iter().rev().map(|rules| (bytes, rules));
        for (relative, rules) in of_folders.chain(of_tree) {
            match rules.matched(Path::new(std::ffi::OsStr::from_bytes(relative)), is_folder) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

/// The rules that a snapshot's own `.gitignore` files make, asked for any path.
#[derive(Debug)]
pub struct SnapshotIgnores {
    global: IgnoreRules,
    files: std::collections::BTreeMap<RepoPath, Gitignore>,
}

impl SnapshotIgnores {
    /// Reads the `.gitignore` files that `snapshot` holds; `info/exclude` and the user's excludes are those of now.
    ///
    /// A snapshot that was only captured has its objects nowhere but in the capture.
    pub fn read(repo: &Repo, objects: Objects<'_>, snapshot: &Snapshot) -> Result<Self> {
        let global = IgnoreRules::new(repo)?;
        let mut files = std::collections::BTreeMap::new();
        let database = Database::open(objects.repository())?;
        for (path, entry) in &snapshot.entries {
            let (folder, name) = dirs::split(path);
            if name == b".gitignore" && entry.kind == EntryKind::File {
                let oid = git2::Oid::from_str(&entry.oid.0).map_err(Error::git("read an object id"))?;
                let content = database.blob(oid)?;
                files.insert(folder, parse(&content, global.ignore_case));
            }
        }
        Ok(Self { global, files })
    }

    /// Whether git would ignore `path` (a file) by these rules, itself or by one of its folders.
    pub fn is_ignored(&self, path: &RepoPath) -> bool {
        path.ancestors().any(|folder| self.matches(&folder, true)) || self.matches(path, false)
    }

    fn matches(&self, path: &RepoPath, is_folder: bool) -> bool {
        let bytes = path.as_bytes();
        let mut folders: Vec<_> = path.ancestors().collect();
        folders.insert(0, RepoPath::default());
        for folder in folders.iter().rev() {
            let Some(rules) = self.files.get(folder) else { continue };
            let start = if folder.as_bytes().is_empty() { 0 } else { folder.as_bytes().len() + 1 };
            match rules.matched(Path::new(std::ffi::OsStr::from_bytes(&bytes[start..])), is_folder) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        self.global.matches(path, is_folder)
    }
}

/// Where git looks for the user's excludes when `core.excludesFile` is not set.
fn default_excludes() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(base.join("git/ignore"))
}

/// Reads patterns line by line; one that cannot be read matches nothing, as in git.
fn parse(content: &[u8], ignore_case: bool) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    // Only an invalid combination of options fails here, and there is one option.
    let _ = builder.case_insensitive(ignore_case);
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    for line in content.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Ok(line) = std::str::from_utf8(line) {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
