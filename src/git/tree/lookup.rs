//! Single paths of stored trees: only the trees on the way to them are read, each once.

use std::collections::HashSet;
use std::rc::Rc;

use git2::Oid;

use super::objects::{KnownTrees, Opened};
use crate::git::base::error::Result;
use crate::git::base::modes::TREE;
use crate::git::base::object_id::parse_oid;
use crate::git::base::work_queue;
use crate::git::odb::database::Database;
use crate::git::odb::trees::Tree;
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;
use crate::model::path::RepoPath;

/// Looks paths up in the trees of one object database.
pub struct TreeLookup<'r> {
    database: Database<'r>,
    known: KnownTrees,
}

impl<'r> TreeLookup<'r> {
    /// For the trees that a repository sees.
    pub fn new(opened: &'r Opened<'_>) -> Result<Self> {
        Ok(Self {
            database: opened.database()?,
            known: Rc::clone(&opened.trees),
        })
    }

    /// For stored trees.
    pub fn stored(repo: &'r Repo) -> Result<Self> {
        Ok(Self {
            database: Database::open(repo)?,
            known: KnownTrees::default(),
        })
    }

    /// The object database.
    pub(in crate::git) fn database(&self) -> &Database<'r> {
        &self.database
    }

    /// A tree.
    pub(in crate::git) fn tree(&self, oid: Oid) -> Result<Rc<Tree>> {
        if let Some(known) = self.known.borrow().get(&oid) {
            return Ok(Rc::clone(known));
        }
        let tree = Rc::new(Tree::read(&self.database, oid)?);
        self.known.borrow_mut().insert(oid, Rc::clone(&tree));
        Ok(tree)
    }

    /// Reads trees that will be asked for, by several threads where they are many.
    pub(in crate::git) fn read_ahead(&self, trees: impl Iterator<Item = Oid>) -> Result<()> {
        let missing: HashSet<Oid> = trees
            .filter(|oid| !self.known.borrow().contains_key(oid))
            .collect();
        let database = &self.database;
        let threads = work_queue::threads_for(missing.len());
        let read = work_queue::run(
            missing.into_iter().collect(),
            threads,
            |oid, _, read: &mut Vec<_>| {
                read.push((oid, Tree::read(database, oid)?));
                Ok(())
            },
        )?;
        self.known.borrow_mut().extend(
            read.into_iter()
                .flatten()
                .map(|(oid, tree)| (oid, Rc::new(tree))),
        );
        Ok(())
    }

    /// The git file mode and id of a path in a tree; `None` where it has none.
    pub(in crate::git) fn find(
        &self,
        tree: &ObjectId,
        path: &RepoPath,
    ) -> Result<Option<(u32, Oid)>> {
        let mut oid = parse_oid(tree)?;
        let mut names = path.as_bytes().split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            let tree = self.tree(oid)?;
            let Some(entry) = tree.find(name) else {
                return Ok(None);
            };
            if names.peek().is_none() {
                return Ok(Some((entry.mode, entry.oid)));
            }
            if entry.mode != TREE {
                return Ok(None);
            }
            oid = entry.oid;
        }
        Ok(None)
    }

    /// The content of a blob.
    pub(in crate::git) fn blob(&self, oid: Oid) -> Result<Vec<u8>> {
        self.database.blob(oid)
    }
}
