//! Single paths of stored trees: only the trees on the way to them are read, each once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use git2::Oid;

use super::database::Database;
use super::diff::Opened;
use super::error::Result;
use super::repository::Repo;
use super::trees::{self, TREE, parse_oid};
use crate::model::path::RepoPath;
use crate::model::snapshot::ObjectId;

type Entries = Rc<Vec<(Vec<u8>, u32, Oid)>>;

/// Looks paths up in the trees of one object database.
pub struct TreeLookup<'r> {
    database: Database<'r>,
    read: RefCell<HashMap<Oid, Entries>>,
}

impl<'r> TreeLookup<'r> {
    /// For the trees that a repository sees.
    pub fn new(opened: &'r Opened<'_>) -> Result<Self> {
        Ok(Self { database: Database::open(opened.repository())?, read: RefCell::default() })
    }

    /// For stored trees.
    pub fn stored(repo: &'r Repo) -> Result<Self> {
        Ok(Self { database: repo.database()?, read: RefCell::default() })
    }

    /// The object database.
    pub(super) fn database(&self) -> &Database<'r> {
        &self.database
    }

    /// The entries of a tree, sorted as git sorts them.
    pub(super) fn entries(&self, tree: Oid) -> Result<Entries> {
        if let Some(known) = self.read.borrow().get(&tree) {
            return Ok(Rc::clone(known));
        }
        let entries = Rc::new(trees::entries(&self.database, tree)?);
        self.read.borrow_mut().insert(tree, Rc::clone(&entries));
        Ok(entries)
    }

    /// The git file mode and id of a path in a tree; `None` where it has none.
    pub(super) fn find(&self, tree: &ObjectId, path: &RepoPath) -> Result<Option<(u32, Oid)>> {
        let mut tree = parse_oid(tree)?;
        let mut names = path.as_bytes().split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            let entries = self.entries(tree)?;
            let Some((_, mode, oid)) = entries.iter().find(|(known, _, _)| known == name) else { return Ok(None) };
            if names.peek().is_none() {
                return Ok(Some((*mode, *oid)));
            }
            if *mode != TREE {
                return Ok(None);
            }
            tree = *oid;
        }
        Ok(None)
    }

    /// The content of a blob.
    pub(super) fn blob(&self, oid: Oid) -> Result<Vec<u8>> {
        self.database.blob(oid)
    }
}
