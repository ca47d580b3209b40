//! Where the objects of a comparison are read from.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use git2::Oid;

use crate::git::base::error::Result;
use crate::git::odb::objects::ObjectWriter;
use crate::git::odb::trees::Tree;
use crate::git::repo::repository::Repo;

/// Where the objects of a comparison are read from: a repository, or a writer that has not published them yet.
#[derive(Clone, Copy, Debug)]
pub struct Objects<'a>(Source<'a>);

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Stored(&'a Repo),
    Writer(&'a ObjectWriter, &'a KnownTrees),
}

impl<'a> Objects<'a> {
    /// Those of a repository: both sides are stored.
    pub fn stored(repo: &'a Repo) -> Self {
        Self(Source::Stored(repo))
    }

    /// Those of a writer and of the repository behind it; `known` holds the trees that were read already.
    pub(in crate::git) fn of_writer(writer: &'a ObjectWriter, known: &'a KnownTrees) -> Self {
        Self(Source::Writer(writer, known))
    }

    /// Opens the repository that sees them.
    pub fn open(self) -> Result<Opened<'a>> {
        let (of, trees) = match self.0 {
            Source::Stored(repo) => (Of::Stored(&repo.inner), KnownTrees::default()),
            Source::Writer(writer, known) => (Of::Writer(writer.repository()?), Rc::clone(known)),
        };
        Ok(Opened { of, trees })
    }
}

/// A repository that sees the objects of a comparison.
pub struct Opened<'a> {
    of: Of<'a>,
    /// Those that were read already.
    pub(in crate::git) trees: KnownTrees,
}

enum Of<'a> {
    Stored(&'a git2::Repository),
    Writer(git2::Repository),
}

impl Opened<'_> {
    pub(in crate::git) fn repository(&self) -> &git2::Repository {
        match &self.of {
            Of::Stored(repository) => repository,
            Of::Writer(repository) => repository,
        }
    }
}

/// Trees that were read. What an id stands for never changes, so that several lookups may share them.
pub(in crate::git) type KnownTrees = Rc<RefCell<HashMap<Oid, Rc<Tree>>>>;
