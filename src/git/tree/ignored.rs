//! What a capture or checkpoint left out because git ignores it, or its rules exclude it.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use super::lookup::TreeLookup;
use super::view::TreeView;
use crate::git::base::error::Result;
use crate::git::base::globs::Globs;
use crate::git::base::modes::TREE;
use crate::git::repo::repository::Repo;
use crate::git::worktree::ignore_rules::{FILE, Rules};
use crate::model::path::RepoPath;

/// What a capture leaves out as ignored: what its rules exclude, and what the `.gitignore` files in its tree ignore and is
/// neither tracked in its index nor included by its rules. `info/exclude` and the user's excludes are those of now. Files are
/// read when a path needs them.
pub struct TreeIgnores<'a> {
    lookup: &'a TreeLookup<'a>,
    side: TreeView<'a>,
    /// What is tracked and in no tree of an index: conflicts, and what is only to be added.
    extras: BTreeSet<&'a RepoPath>,
    include: Globs,
    exclude: Globs,
    top: Rules,
    folders: RefCell<HashMap<RepoPath, Rules>>,
}

impl<'a> TreeIgnores<'a> {
    /// Of a capture or a checkpoint.
    pub fn new(repo: &Repo, lookup: &'a TreeLookup<'a>, side: TreeView<'a>) -> Result<Self> {
        let extras = side
            .manifest()
            .index_extras
            .iter()
            .filter(|extra| extra.stage > 0 || extra.intent_to_add);
        Ok(Self {
            lookup,
            side,
            extras: extras.map(|extra| &extra.path).collect(),
            include: Globs::new(&side.manifest().rules.include)?,
            exclude: Globs::new(&side.manifest().rules.exclude)?,
            top: Rules::of_tree(repo, b"")?,
            folders: RefCell::default(),
        })
    }

    /// With the rules of an `info/exclude` that is there no more.
    pub fn with_rules(mut self, rules: Option<&[u8]>) -> Result<Self> {
        if let Some(rules) = rules {
            self.top = self.top.with(&RepoPath::default(), rules.to_vec())?;
        }
        Ok(self)
    }

    /// Whether it left out `path`, a file or a folder, or would have: what it has not says nothing then.
    pub fn has(&self, path: &RepoPath, is_folder: bool) -> Result<bool> {
        let by_git = || {
            Ok(self.by_rules(path, is_folder)?
                && !self.include.matches(path)
                && !self.is_tracked(path)?)
        };
        if self.exclude.matches(path) {
            Ok(true)
        } else {
            by_git()
        }
    }

    /// Whether `path` was perhaps not examined: its rules exclude it, or git would ignore it if it was not tracked.
    pub fn says_nothing_of(&self, path: &RepoPath) -> Result<bool> {
        Ok(self.exclude.matches(path)
            || self.by_rules(path, false)?
            || self.by_rules(path, true)?)
    }

    fn is_tracked(&self, path: &RepoPath) -> Result<bool> {
        let found = self
            .side
            .index_tree()
            .map_or(Ok(None), |tree| self.lookup.find(tree, path))?;
        Ok(found.is_some_and(|(mode, _)| mode != TREE) || self.extras.contains(path))
    }

    /// Whether git would ignore it if it was not tracked: itself or one of its folders.
    fn by_rules(&self, path: &RepoPath, is_folder: bool) -> Result<bool> {
        for folder in path.ancestors() {
            if self
                .of(&folder.parent().unwrap_or_default())?
                .matches(folder.as_bytes(), true)
            {
                return Ok(true);
            }
        }
        Ok(self
            .of(&path.parent().unwrap_or_default())?
            .matches(path.as_bytes(), is_folder))
    }

    fn of(&self, folder: &RepoPath) -> Result<Rules> {
        if let Some(known) = self.folders.borrow().get(folder) {
            return Ok(known.clone());
        }
        let is_top = folder.as_bytes().is_empty();
        let above = if is_top {
            self.top.clone()
        } else {
            self.of(&folder.parent().unwrap_or_default())?
        };
        let rules = match self.lookup.find(self.side.tree(), &folder.join(FILE))? {
            Some((mode, oid)) if mode & 0o170_000 == 0o100_000 => {
                above.with(folder, self.lookup.blob(oid)?)?
            }
            _ => above,
        };
        self.folders
            .borrow_mut()
            .insert(folder.clone(), rules.clone());
        Ok(rules)
    }
}
