//! Git's settings and hooks as they were when an attempt began, and what the attempt changed of them.
//!
//! Of a configuration only keys and salted hashes are stored, as values may be credentials; values only of the keys that a
//! rollback puts back. The file is readable for its owner alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::{Config, ErrorCode, ObjectType, Oid};
use rustix::fs::fchmod;
use serde::{Deserialize, Serialize};

use super::repository::Repo;
use crate::durable::Sync;
use crate::git::base::error::{At as _, Error, Result};
use crate::model::operation::GitChanges;
use crate::os;

const FILE: &str = "settings.json";
/// Larger files are compared and not put back.
const LARGEST_COPY: u64 = 1 << 20;
/// Deeper folders are not examined.
const MAX_DEPTH: usize = 16;
/// The keys that a rollback puts back, and the sections of which it does so with all: what keeps git from working here, or
/// starts programs.
const PUT_BACK: &[&str] = &[
    "core.bare",
    "core.worktree",
    "core.hookspath",
    "core.fsmonitor",
    "core.sshcommand",
];
const PUT_BACK_SECTIONS: &[&str] = &["filter.", "alias."];
/// What belongs to something else that would not follow.
const ONLY_REPORTED: &[&str] = &["info/sparse-checkout", "info/refs"];

/// What is stored of an attempt, and of those before it in the same run.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    run: String,
    iteration: u32,
    salt: String,
    began: Settings,
    changes: Vec<Change>,
}

/// The settings at one moment.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Settings {
    /// `FILE:KEY`, `HEAD`, or the path of a file in the git folder; with what it was.
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    copy: Option<Backup>,
}

impl Entry {
    /// One that is not put back.
    fn only(hash: String) -> Self {
        Self { hash, copy: None }
    }
}

/// What is needed to put an entry back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Backup {
    Values(Vec<String>),
    File { mode: u32, content: String },
}

#[derive(Debug, Serialize, Deserialize)]
struct Change {
    #[serde(default)]
    iteration: u32,
    /// Whether the attempt's own change was put back, and this would make it again.
    #[serde(default)]
    reverse: bool,
    name: String,
    before: Option<Entry>,
    after: Option<Entry>,
}

impl Repo {
    /// Records the settings at the beginning of an attempt.
    pub(crate) fn record_settings(&self, run: &str, iteration: u32) -> Result<()> {
        let mut stored = load(self)
            .filter(|stored| stored.run == run)
            .unwrap_or_default();
        if stored.salt.is_empty() {
            run.clone_into(&mut stored.run);
            stored.salt = format!("{:032x}", fastrand::u128(..));
        }
        stored.iteration = iteration;
        stored.began = read(self, &stored.salt);
        save(self, &stored)
    }

    /// What changed since the beginning of the iteration's latest attempt. What was returned once is not returned again.
    pub(crate) fn changed_settings(&self, run: &str, iteration: u32) -> Result<Vec<String>> {
        let Some(mut stored) =
            load(self).filter(|stored| stored.run == run && stored.iteration == iteration)
        else {
            return Ok(Vec::new());
        };
        let now = read(self, &stored.salt);
        let (then, after) = (&stored.began.entries, &now.entries);
        let names: BTreeSet<&String> = then.keys().chain(after.keys()).collect();
        let change = |name: &String| {
            let (before, after) = (then.get(name).cloned(), after.get(name).cloned());
            (before != after).then(|| Change {
                iteration,
                reverse: false,
                name: name.clone(),
                before,
                after,
            })
        };
        let changes: Vec<Change> = names.into_iter().filter_map(change).collect();
        let shown = changes.iter().map(|change| shown(&change.name)).collect();
        stored.changes.extend(changes);
        stored.began = now;
        save(self, &stored)?;
        Ok(shown)
    }

    /// Puts back changes of a run where all is still as they left it. Returns what was put back.
    pub(crate) fn put_settings_back(&self, run: &str, which: GitChanges) -> Result<Vec<String>> {
        let Some(mut stored) =
            load(self).filter(|stored| stored.run == run && !stored.changes.is_empty())
        else {
            return Ok(Vec::new());
        };
        let is_meant = |change: &Change| match which {
            GitChanges::OfIteration => !change.reverse && change.iteration == stored.iteration,
            GitChanges::OfRun => !change.reverse,
            GitChanges::PutBack => change.reverse,
        };
        let all = std::mem::take(&mut stored.changes).into_iter();
        let meant: Vec<Change>;
        (meant, stored.changes) = all.partition(is_meant);
        let mut done = Vec::new();
        for change in meant.into_iter().rev() {
            let now = read(self, &stored.salt);
            if now.entries.get(&change.name) == change.after.as_ref() && put_back(self, &change)? {
                done.push(shown(&change.name));
                if which != GitChanges::OfIteration {
                    stored.changes.push(change.inverted());
                }
            }
        }
        stored.began = read(self, &stored.salt);
        save(self, &stored)?;
        done.sort_unstable();
        done.dedup();
        Ok(done)
    }
}

impl Change {
    fn inverted(self) -> Self {
        Self {
            reverse: !self.reverse,
            before: self.after,
            after: self.before,
            ..self
        }
    }
}

fn put_back(repo: &Repo, change: &Change) -> Result<bool> {
    let Some((file, key)) = change.name.split_once(':') else {
        return put_file_back(repo, change);
    };
    if !is_put_back(key) {
        return Ok(false);
    }
    let values = match &change.before {
        None => &Vec::new(),
        Some(Entry {
            copy: Some(Backup::Values(values)),
            ..
        }) => values,
        Some(_) => return Ok(false),
    };
    let failed = || Error::git(format!("put {key} back"));
    let mut config = Config::open(&config_file(repo, file)).map_err(failed())?;
    if let Err(error) = config.remove_multivar(key, ".*")
        && error.code() != ErrorCode::NotFound
    {
        return Err(failed()(error));
    }
    for value in values {
        // A pattern that nothing matches adds a value.
        config.set_multivar(key, "$^", value).map_err(failed())?;
    }
    Ok(true)
}

fn put_file_back(repo: &Repo, change: &Change) -> Result<bool> {
    let path = Path::new(&change.name);
    let full = repo.common_dir().join(path);
    if change.name == "HEAD" || ONLY_REPORTED.contains(&change.name.as_str()) {
        return Ok(false);
    }
    let root = repo.shared().for_all();
    match &change.before {
        None => root.remove_file(path).at(&full)?,
        Some(Entry {
            copy: Some(Backup::File { mode, content }),
            ..
        }) => {
            let write = || -> std::io::Result<()> {
                if let Some(folder) = path.parent() {
                    root.create_dir_all(folder)?;
                }
                if root.kind(path)?.is_some_and(|kind| !kind.is_file()) {
                    root.remove_file(path)?;
                }
                let mut file = root.create(path)?;
                file.write_all(content.as_bytes())?;
                Ok(fchmod(&file, os::mode(*mode))?)
            };
            write().at(&full)?;
        }
        Some(_) => return Ok(false),
    }
    Ok(true)
}

fn is_put_back(key: &str) -> bool {
    PUT_BACK.contains(&key)
        || PUT_BACK_SECTIONS
            .iter()
            .any(|section| key.starts_with(section))
}

/// How an entry is named in messages.
fn shown(name: &str) -> String {
    match name.split_once(':') {
        Some(("config", key)) => key.to_owned(),
        Some((file, key)) => format!("{key} ({file})"),
        None if name == "HEAD" => name.to_owned(),
        None => format!(".git/{name}"),
    }
}

fn config_file(repo: &Repo, name: &str) -> PathBuf {
    if name == "config" {
        repo.common_dir().join(name)
    } else {
        repo.git_dir().join(name)
    }
}

fn read(repo: &Repo, salt: &str) -> Settings {
    let hash = |bytes: &[u8]| {
        let salted = [salt.as_bytes(), bytes].concat();
        Oid::hash_object(ObjectType::Blob, &salted)
            .map_or_else(|_| String::new(), |oid| oid.to_string())
    };
    let mut entries = BTreeMap::new();
    for file in ["config", "config.worktree"] {
        for (key, values) in values_of(&config_file(repo, file)) {
            let copy = is_put_back(&key).then(|| Backup::Values(values.clone()));
            let hash = hash(values.join("\n").as_bytes());
            entries.insert(format!("{file}:{key}"), Entry { hash, copy });
        }
    }
    // Only its form: which branch it names changes with every checkout.
    let head = repo
        .own()
        .read(&repo.git_dir().join("HEAD"))
        .unwrap_or_default();
    let is_branch = head.starts_with(b"ref: ");
    let form = if is_branch { "branch" } else { "detached" };
    entries.insert("HEAD".to_owned(), Entry::only(form.to_owned()));
    let mut files = Vec::new();
    for folder in ["hooks", "info", "modules"] {
        list(repo, Path::new(folder), 0, &mut files);
    }
    for path in files {
        if let (Some(name), Some(entry)) = (path.to_str(), file_entry(repo, &path, &hash)) {
            entries.insert(name.to_owned(), entry);
        }
    }
    Settings { entries }
}

/// The values of each key of one file, without what it includes.
fn values_of(file: &Path) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if !file.exists() {
        return found;
    }
    let Ok(config) = Config::open(file) else {
        found.insert("(cannot be read)".to_owned(), Vec::new());
        return found;
    };
    if let Ok(mut entries) = config.entries(None) {
        while let Some(Ok(entry)) = entries.next() {
            if entry.include_depth() == 0 {
                let value = if entry.has_value() {
                    entry.value_bytes()
                } else {
                    b"true".as_slice()
                };
                let values = found
                    .entry(String::from_utf8_lossy(entry.name_bytes()).into_owned())
                    .or_default();
                values.push(String::from_utf8_lossy(value).into_owned());
            }
        }
    }
    found
}

/// The files of a folder of the git folder, those below `modules` only where they are hooks; not git's samples.
fn list(repo: &Repo, folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let is_watched = !folder.starts_with("modules")
        || folder.components().any(|part| part.as_os_str() == "hooks");
    for (name, kind) in repo.shared().list(folder).unwrap_or_default() {
        let path = folder.join(&name);
        if kind.is_dir() {
            // Those of objects and references are many and hold none.
            let is_skipped = ["objects", "refs", "logs"]
                .iter()
                .any(|skipped| name == *skipped);
            if depth < MAX_DEPTH && !is_skipped {
                list(repo, &path, depth + 1, files);
            }
        } else if is_watched
            && path
                .extension()
                .is_none_or(|extension| extension != "sample" && extension != "lock")
        {
            files.push(path);
        }
    }
}

fn file_entry(repo: &Repo, path: &Path, hash: &impl Fn(&[u8]) -> String) -> Option<Entry> {
    if !repo.shared().kind(path).ok()??.is_file() {
        return Some(Entry::only("no file".to_owned()));
    }
    let mut file = repo.shared().open(path).ok()?;
    let found = file.metadata().ok()?;
    let mode = found.mode() & 0o7777;
    if found.len() > LARGEST_COPY {
        let stamp = format!("{} {} {}", found.len(), found.mtime(), found.mtime_nsec());
        return Some(Entry::only(format!("{mode:o} {stamp}")));
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content).ok()?;
    let hash = format!("{mode:o} {}", hash(&content));
    Some(Entry {
        hash,
        copy: String::from_utf8(content)
            .ok()
            .map(|content| Backup::File { mode, content }),
    })
}

fn load(repo: &Repo) -> Option<Stored> {
    let bytes = repo.own().read(&repo.own_folder().join(FILE)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn save(repo: &Repo, stored: &Stored) -> Result<()> {
    let path = repo.recover_dir()?.join(FILE);
    let write = || {
        repo.own()
            .write(&path, &serde_json::to_vec(stored)?, Sync::Nothing)
    };
    write().at(&path)
}
