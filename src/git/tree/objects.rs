//! Where the objects of a comparison are read from.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use git2::Oid;

use crate::git::base::error::Result;
use crate::git::odb::database::Database;
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

    /// Opens them. What a writer writes after this need not be seen.
    pub fn open(self) -> Opened<'a> {
        let trees = match self.0 {
            Source::Stored(_) => KnownTrees::default(),
            Source::Writer(_, known) => Rc::clone(known),
        };
        Opened {
            source: self.0,
            quarantine: OnceCell::new(),
            trees,
        }
    }
}

/// The objects of a comparison, opened.
pub struct Opened<'a> {
    source: Source<'a>,
    /// The repository that sees what a writer has written.
    quarantine: OnceCell<git2::Repository>,
    /// Those that were read already.
    pub(in crate::git) trees: KnownTrees,
}

impl Opened<'_> {
    /// The database that has them. What a writer holds in memory is read from there.
    pub(in crate::git) fn database(&self) -> Result<Database<'_>> {
        match self.source {
            Source::Stored(repo) => Database::open(repo),
            Source::Writer(writer, _) => match writer.database()? {
                Some(database) => Ok(database),
                None => Database::of(self.repository()?),
            },
        }
    }

    /// A repository that sees them, for what git's library reads by itself.
    pub(in crate::git) fn repository(&self) -> Result<&git2::Repository> {
        match self.source {
            Source::Stored(repo) => Ok(&repo.inner),
            Source::Writer(writer, _) => match self.quarantine.get() {
                Some(repository) => Ok(repository),
                None => writer
                    .repository()
                    .map(|repository| self.quarantine.get_or_init(|| repository)),
            },
        }
    }
}

/// Trees that were read. What an id stands for never changes, so that several lookups may share them.
pub(in crate::git) type KnownTrees = Rc<RefCell<HashMap<Oid, Rc<Tree>>>>;
