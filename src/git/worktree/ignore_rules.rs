//! Which paths git ignores: `.gitignore` of each folder, `info/exclude`, and the user's own excludes file.

mod patterns;
mod wildmatch;

use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use git2::{ObjectType, Oid};

use crate::git::base::error::{Error, Result};
use crate::git::base::openat;
use crate::git::repo::repository::Repo;
use crate::model::path::RepoPath;

use patterns::Patterns;

/// The repository's own ignore file, in its git folder.
const EXCLUDE: &str = "info/exclude";

/// The name of the file with a folder's rules.
pub(in crate::git) const FILE: &[u8] = b".gitignore";
/// An ignore file over this size holds no rules, as in git.
const MAX_BYTES: u64 = 100 << 20;

/// The rules in force in a folder: a chain from its own file up to those for the whole tree. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::git) struct Rules(Arc<Link>);

#[derive(Debug)]
struct Link {
    above: Option<Rules>,
    content: Vec<u8>,
    /// Read when a path is first asked about: most folders never need it.
    patterns: OnceLock<Patterns>,
    ignore_case: bool,
    /// The length of the folder's path with its slash.
    start: usize,
    id: Oid,
}

impl Rules {
    /// No rules.
    pub(crate) fn none(ignore_case: bool) -> Result<Self> {
        Self::salted(b"", ignore_case)
    }

    fn salted(salt: &[u8], ignore_case: bool) -> Result<Self> {
        let id = hash(&[salt, &[u8::from(ignore_case)]].concat())?;
        let none = Link {
            above: None,
            content: Vec::new(),
            patterns: OnceLock::new(),
            ignore_case,
            start: 0,
            id,
        };
        Ok(Self(Arc::new(none)))
    }

    /// The rules for the whole tree; a private repository has none of a user's. What `salt` holds goes into their id.
    pub(crate) fn of_tree(repo: &Repo, salt: &[u8]) -> Result<Self> {
        let mut ignore_case = false;
        let mut files = Vec::new();
        if !repo.is_private() {
            let config = repo
                .inner
                .config()
                .map_err(Error::git("read the configuration"))?;
            ignore_case = config.get_bool("core.ignorecase").unwrap_or(false);
            let own = config
                .get_path("core.excludesfile")
                .ok()
                .or_else(default_excludes);
            // git asks from the top of the work tree.
            files.extend(own.map(|own| repo.workdir().join(own)));
            files.push(repo.common_dir().join(EXCLUDE));
        }
        let mut rules = Self::salted(salt, ignore_case)?;
        for path in files {
            if let Some(content) = read(&path) {
                rules = rules.with(&RepoPath::default(), content)?;
            }
        }
        Ok(rules)
    }

    /// These rules and, before them, the content of an ignore file in `folder`.
    pub(crate) fn with(&self, folder: &RepoPath, content: Vec<u8>) -> Result<Self> {
        let length = folder.as_bytes().len();
        let link = Link {
            id: hash(&[self.0.id.as_bytes(), folder.as_bytes(), b"\0", &content].concat())?,
            above: Some(self.clone()),
            content,
            patterns: OnceLock::new(),
            ignore_case: self.0.ignore_case,
            start: if length == 0 { 0 } else { length + 1 },
        };
        Ok(Self(Arc::new(link)))
    }

    /// These rules and those of the `.gitignore` in an open folder.
    pub(crate) fn with_file(&self, dir: &OwnedFd, folder: &RepoPath) -> Result<Self> {
        let Ok(mut file) = openat::open_file(dir, FILE) else {
            return Ok(self.clone());
        };
        let size = file.metadata().map_or(0, |file| file.len().min(MAX_BYTES));
        // One byte more: the end is found without another read.
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        match file.by_ref().take(MAX_BYTES + 1).read_to_end(&mut content) {
            Ok(length) if length as u64 <= MAX_BYTES => self.with(folder, content),
            _ => Ok(self.clone()),
        }
    }

    /// Equal for equal rules: what one of them said of a path, the other says too.
    pub(crate) fn id(&self) -> Oid {
        self.0.id
    }

    /// Whether the path itself matches; its folders are the caller's to ask about first.
    pub(crate) fn matches(&self, path: &[u8], is_folder: bool) -> bool {
        let mut next = Some(self);
        while let Some(Self(link)) = next {
            if !link.content.is_empty() {
                let patterns = link.patterns.get_or_init(|| Patterns::read(&link.content));
                let said = patterns.verdict(
                    &link.content,
                    &path[link.start..],
                    is_folder,
                    link.ignore_case,
                );
                if let Some(ignored) = said {
                    return ignored;
                }
            }
            next = link.above.as_ref();
        }
        false
    }
}

fn hash(bytes: &[u8]) -> Result<Oid> {
    Oid::hash_object(ObjectType::Blob, bytes).map_err(Error::git("hash the ignore rules"))
}

impl Repo {
    /// The content of the repository's own ignore file.
    pub(crate) fn own_ignore_rules(&self) -> Option<Vec<u8>> {
        read(&self.common_dir().join(EXCLUDE))
    }
}

/// The content of an ignore file. A missing or unreadable one holds no rules, as in git.
fn read(path: &Path) -> Option<Vec<u8>> {
    let readable = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
    readable.then(|| fs::read(path).ok()).flatten()
}

/// Where git looks for the user's excludes when `core.excludesFile` is not set.
fn default_excludes() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(base.join("git/ignore"))
}
