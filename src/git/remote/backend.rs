//! A remote, whatever is behind its name: a git server or an object store.
//!
//! What a run needs of either is small: references that are compared and set, each with all objects that it leads to.

use super::answer::{self, Answer, Missed};
use super::call::Limits;
use super::check::Examined;
#[cfg(feature = "store")]
use super::store::Store;
use super::transport::{GitServer, without_user};
use crate::git::base::{Error, Result};
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;

/// What may be fetched to: nothing of the user's.
const OURS: [&str; 2] = ["refs/recover/", "refs/recover-"];

/// A remote by its name.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Its name.
    pub name: String,
    /// Where is pushed to; without user and password.
    pub url: String,
    backend: Backend,
}

#[derive(Clone, Debug)]
enum Backend {
    Git(GitServer),
    #[cfg(feature = "store")]
    Store(Store),
}

impl Remote {
    /// Where the runs are, one reference each.
    pub(crate) const RUNS: &str = answer::RUNS;
    /// Where the references for the moment are.
    pub const SCRATCH: &str = answer::SCRATCH;

    /// The remote of that name, which `stores` gives the URL of where it is an object store. What is no name but a URL or a
    /// path, or what git does not know, is [`Error::UnknownRemote`]; one that leads elsewhere than to one server of an allowed
    /// protocol is [`Error::RefusedRemote`]; a store that is none, or that git has a remote of its name, [`Error::BadStore`].
    pub fn named(repo: &Repo, name: &str, store: Option<&str>) -> Result<Self> {
        let of_git = GitServer::named(repo, name);
        let Some(url) = store else {
            let server = of_git?;
            return Ok(Self {
                name: name.to_owned(),
                url: server.url.clone(),
                backend: Backend::Git(server),
            });
        };
        if !matches!(of_git, Err(Error::UnknownRemote { .. })) {
            return Err(Error::BadStore {
                name: name.to_owned(),
                reason: "git knows a remote of that name: one of the two needs another name"
                    .to_owned(),
            });
        }
        Self::store(name, url).map_err(|reason| Error::BadStore {
            name: name.to_owned(),
            reason,
        })
    }

    #[cfg(feature = "store")]
    fn store(name: &str, url: &str) -> Result<Self, String> {
        let store = Store::at(url)?;
        Ok(Self {
            name: name.to_owned(),
            url: store.url.clone(),
            backend: Backend::Store(store),
        })
    }

    #[cfg(not(feature = "store"))]
    fn store(_name: &str, _url: &str) -> Result<Self, String> {
        Err(
            "it is an object store, which this recover was built without (the feature store)"
                .to_owned(),
        )
    }

    /// Whether it is an object store, which git knows nothing of.
    pub fn is_store(&self) -> bool {
        !matches!(self.backend, Backend::Git(_))
    }

    /// Whether it lies at this URL; who logs in there aside.
    pub fn is_at(&self, url: &str) -> bool {
        match &self.backend {
            Backend::Git(_) => without_user(url) == self.url,
            #[cfg(feature = "store")]
            Backend::Store(_) => Store::at(url).is_ok_and(|store| store.url == self.url),
        }
    }

    /// References there with what they name: the one of that name, or those that begin with what is before a `*`.
    pub fn list(
        &self,
        repo: &Repo,
        place: &str,
        limits: &Limits<'_>,
    ) -> Answer<Vec<(String, ObjectId)>> {
        match &self.backend {
            Backend::Git(server) => server.list(repo, place, limits),
            #[cfg(feature = "store")]
            Backend::Store(store) => store.list(place, limits),
        }
    }

    /// Changes the reference of this full name there, from exactly the value `old` (`None`: it must not exist) to a descendant of
    /// it (`None`: it is deleted), with all objects that it needs. What is there already is done.
    pub fn push(
        &self,
        repo: &Repo,
        name: &str,
        old: Option<&ObjectId>,
        new: Option<&ObjectId>,
        limits: &Limits<'_>,
    ) -> Answer<()> {
        if let (Some(old), Some(new)) = (old, new)
            && old != new
            && !repo.is_ancestor(old, new)?
        {
            return Err(Missed::Failed(Error::Program {
                name: "push".to_owned(),
                said: format!("{new} does not come after {old}: {name} is not forced"),
            }));
        }
        match &self.backend {
            Backend::Git(server) => server.push(repo, name, (old, new), None, limits),
            #[cfg(feature = "store")]
            Backend::Store(store) => store.push(repo, name, (old, new), limits),
        }
    }

    /// Fetches references, or commits by their ids, each to a reference of ours, which is set to it whatever it was. One that
    /// is not there is [`Missed::Moved`], and none is set then; nor is one where git does not take an object of any, which is
    /// [`Error::Corrupt`].
    pub fn fetch(&self, repo: &Repo, refs: &[(String, String)], limits: &Limits<'_>) -> Answer<()> {
        let is_ours = |name: &str| OURS.iter().any(|ours| name.starts_with(ours));
        if let Some((_, name)) = refs.iter().find(|(_, name)| !is_ours(name)) {
            return Err(Missed::Failed(Error::UnsafePath {
                path: name.into(),
                reason: "not a reference of recover's".to_owned(),
            }));
        }
        match &self.backend {
            Backend::Git(server) => server.fetch(repo, refs, limits),
            #[cfg(feature = "store")]
            Backend::Store(store) => store.fetch(repo, refs, limits),
        }
    }

    /// Fetches what is missing here of a checkpoint's objects, its base aside: a partial clone has only what it was asked for.
    pub fn backfill(&self, repo: &Repo, commit: &ObjectId, limits: &Limits<'_>) -> Answer<()> {
        match &self.backend {
            Backend::Git(server) => server.backfill(repo, commit, limits),
            #[cfg(feature = "store")]
            // The promised objects are the origin's.
            Backend::Store(_) => Ok(()),
        }
    }

    /// Whether a checkpoint that goes there can have its base commit as a parent. In a shallow clone only where the remote
    /// has the history that is missing here.
    pub fn keeps_base(&self, repo: &Repo, base: &ObjectId) -> bool {
        !repo.history().is_shallow()
            || match &self.backend {
                Backend::Git(server) => server.has_history(repo, base),
                #[cfg(feature = "store")]
                Backend::Store(_) => false,
            }
    }

    /// Removes what no run needs any longer where nobody else does: objects that nothing names in a store. A git server has a
    /// collection of its own.
    pub fn sweep(&self, limits: &Limits<'_>) -> Answer<()> {
        match (&self.backend, limits) {
            (Backend::Git(_), _) => Ok(()),
            #[cfg(feature = "store")]
            (Backend::Store(store), limits) => store.sweep(limits),
        }
    }

    /// Whether anybody can read it without a key or password; `None` where that cannot be found out.
    pub fn is_public(&self, limits: &Limits<'_>) -> Result<Option<bool>> {
        match &self.backend {
            Backend::Git(server) => server.is_public(limits),
            #[cfg(feature = "store")]
            Backend::Store(store) => store.is_public(limits),
        }
    }

    /// Finds out what is guaranteed there. `nonce` makes the place for that one of its own; `size` bytes, which nothing
    /// compresses, are sent in one object where that is more than 0.
    ///
    /// A server that is away cannot be examined.
    pub fn examine(
        &self,
        repo: &Repo,
        nonce: &str,
        size: u64,
        limits: &Limits<'_>,
    ) -> Answer<Examined> {
        match &self.backend {
            Backend::Git(server) => server.examine(repo, nonce, size, limits),
            #[cfg(feature = "store")]
            Backend::Store(store) => store.examine(nonce, size, limits),
        }
    }
}
