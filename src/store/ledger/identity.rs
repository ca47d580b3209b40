//! The state directory's random id, and whether it is registered on this machine.
//!
//! A state directory has a random id, in it and in a folder of the user's or the repository's that no clone and no archive
//! brings along. One whose id is not known there came from elsewhere: it may be read, and hold back what it says, but
//! nothing is added to it. The right to add is an [`Owned`], which only a state directory of our own gives out.

use std::io;

use crate::durable::{Sync, is_temporary};

use super::super::error::StoreError;
use super::super::registry::{ID_BYTES, Origin, Registry, new_id, unless_absent};
use super::Store;

/// The name of the file in the state directory's private folder that holds its id.
pub(super) const FILE: &str = "identity";

/// The right to add to a state directory: it is ours, it is there, and it has its id.
#[derive(Debug)]
pub struct Owned(());

impl Store {
    /// With the places where the ids of our own state directories are kept.
    #[must_use]
    pub fn with_registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// With what was found out about whose it is.
    #[must_use]
    pub fn of_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Of a run that another machine holds: its processes there count as alive.
    #[must_use]
    pub(crate) fn of_holder(mut self, holds: bool) -> Self {
        self.others_live = holds;
        self
    }

    /// Whether processes of other machines count as alive.
    pub(crate) fn others_live(&self) -> bool {
        self.others_live
    }

    /// Whose the state is.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Its id; `None` where it has none that can be read, or no valid one.
    ///
    /// # Errors
    /// The system could not look (no descriptors, a failing disk): that says nothing of whose the state is.
    pub fn id(&self) -> io::Result<Option<String>> {
        let path = self.private_dir().join(FILE);
        let bytes = match self.root().read_at_most(&path, 2 * ID_BYTES as u64 + 1) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(None),
            read => unless_absent(read)?,
        };
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let id = String::from_utf8(bytes).map(|text| text.trim_end().to_owned());
        let is_id = |id: &String| {
            id.len() == 2 * ID_BYTES
                && id
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        Ok(id.ok().filter(is_id))
    }

    /// Whether its id is one that is known here.
    ///
    /// # Errors
    /// As for [`id`](Self::id).
    pub fn has_known_id(&self) -> io::Result<bool> {
        self.id()?.map_or(Ok(false), |id| self.registry.knows(&id))
    }

    /// Forgets an id of a state directory of ours that is gone. One that stays known is no harm.
    pub fn forget_id(&self, id: Option<&str>) {
        if let Some(id) = id {
            self.registry.remove(id);
        }
    }

    /// Whether there is a file for its id, whatever that holds: state that versions before ids made has none.
    pub fn is_named(&self) -> bool {
        !matches!(self.root().kind(&self.private_dir().join(FILE)), Ok(None))
    }

    /// Whether anything of `recover`'s own is there, the ledger's lock and temporary files aside.
    pub fn has_content(&self) -> bool {
        if !matches!(self.root().kind(&self.ledger_path()), Ok(None)) {
            return true;
        }
        let Ok(entries) = self.root().list(&self.private_dir()) else {
            return false;
        };
        let is_content = |name: &std::ffi::OsStr| {
            name != "ledger.lock" && !is_temporary(name.as_encoded_bytes())
        };
        entries.iter().any(|(name, _)| is_content(name))
    }

    /// What says that it may be added to; a foreign state directory is refused.
    pub(in crate::store) fn owned(&self) -> Result<Owned, StoreError> {
        match self.origin {
            Origin::Ours => Ok(Owned(())),
            Origin::Foreign(why) => Err(StoreError::Foreign {
                dir: self.dir().to_owned(),
                why,
            }),
        }
    }

    /// Gives the state directory an id that is known here, unless it has one. One that is known nowhere is replaced: whoever
    /// made it knows it too. Where no place can be written to that keeps it, there is none, with a warning.
    pub(in crate::store) fn name(&self) -> Result<(), StoreError> {
        let Some(folder) = self.registry.first() else {
            return Ok(());
        };
        let file = self.private_dir().join(FILE);
        let mut known = self.id().map_err(StoreError::io("read", &file))?;
        if let Some(id) = &known {
            let look_up = StoreError::io("look up", &file);
            if self.registry.holds(id).map_err(&look_up)? {
                return Ok(());
            }
            if !self.registry.knows(id).map_err(look_up)? {
                known = None;
            }
        }
        let id = match &known {
            Some(id) => id.clone(),
            None => new_id().map_err(StoreError::io("make an id for", &file))?,
        };
        // Known before it is there: a kill in between leaves an id that nobody has.
        if let Err(error) = self.registry.add(&id, self.dir()) {
            tracing::warn!(
                "whose the state is cannot be kept in {} ({error}): set XDG_STATE_HOME to a folder of yours",
                folder.display()
            );
            return Ok(());
        }
        if known.is_none() {
            let written = self
                .root()
                .write(&file, format!("{id}\n").as_bytes(), Sync::All);
            written.map_err(StoreError::io("write", &file))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::super::super::registry::Foreign;
    use super::*;

    #[test]
    fn an_id_counts_only_where_it_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let registry = {
            let ids = folder.path().join("ids");
            std::fs::create_dir_all(&ids).unwrap();
            Registry::new(Some(&ids), Some(folder.path().join("older")))
        };
        let store =
            Store::new(folder.path().join("state"), Duration::ZERO).with_registry(registry.clone());
        assert!(!store.has_content() && !store.has_known_id().unwrap());
        store.create_dirs().unwrap();
        let first = store.id().unwrap().unwrap();
        assert!(store.has_known_id().unwrap());
        store.create_dirs().unwrap();
        assert_eq!(store.id().unwrap().unwrap(), first, "it keeps its id");

        // One that is known elsewhere goes with it; one that is known nowhere is replaced.
        let place = |name: &str| folder.path().join(name).join("recover/states");
        fs::create_dir_all(place("older")).unwrap();
        fs::rename(place("ids").join(&first), place("older").join(&first)).unwrap();
        store.create_dirs().unwrap();
        assert!(store.id().unwrap().unwrap() == first && place("ids").join(&first).is_file());
        for wrong in [
            "0123456789abcdef0123456789abcdef\n",
            "../older",
            "",
            "0123456789ABCDEF0123456789ABCDEF",
            "0123456789abcdef0123456789abcdef0123456789abcdef",
        ] {
            fs::write(store.private_dir().join(FILE), wrong).unwrap();
            assert!(!store.has_known_id().unwrap(), "{wrong}");
            store.create_dirs().unwrap();
            assert!(
                store.has_known_id().unwrap() && store.id().unwrap().unwrap() != wrong.trim_end(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn foreign_state_is_read_and_never_locked() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("state"), Duration::ZERO)
            .of_origin(Origin::Foreign(Foreign::Tracked));
        assert!(store.load().is_ok());
        assert!(matches!(store.lock(), Err(StoreError::Foreign { .. })));
        assert!(matches!(
            store.lock_for_rebuilding(),
            Err(StoreError::Foreign { .. })
        ));
        assert!(matches!(
            store.load_for_writing(),
            Err(StoreError::Foreign { .. })
        ));
        assert!(matches!(
            store.create_dirs(),
            Err(StoreError::Foreign { .. })
        ));
        assert!(!store.dir().exists());
    }
}
