//! Fingerprints of what was secret where something was recorded.
//!
//! By them it is masked for a reader whose environment lacks the variable. They are as private as the ledger, and never part
//! of what leaves the machine.

use std::io;
use std::path::PathBuf;

use super::error::StoreError;
use super::ledger::Store;
use super::origin::Origin;
use super::registry::new_id;
use crate::durable::Sync;
use crate::policy::fingerprints::Fingerprints;
use crate::policy::redact::Redactor;

impl Store {
    fn known_secrets_path(&self) -> PathBuf {
        self.private_dir().join("secrets.json")
    }

    /// What is known of the secrets of whoever recorded something here. Nothing of a clone's: it could have anything masked.
    pub fn known_secrets(&self) -> Fingerprints {
        if self.origin() != Origin::Ours {
            return Fingerprints::default();
        }
        let read = self
            .read_known_secrets()
            .and_then(|content| content.map_err(io::Error::from));
        read.unwrap_or_else(|error| {
            let file = self.known_secrets_path();
            tracing::warn!(%error, file = %file.display(), "secrets of earlier runs may be shown");
            Fingerprints::default()
        })
    }

    /// What the file says, or why that is nothing; an error where it is there and cannot be read.
    fn read_known_secrets(&self) -> io::Result<serde_json::Result<Fingerprints>> {
        let bytes = self.root().read_present(&self.known_secrets_path())?;
        Ok(bytes.map_or_else(
            || Ok(Fingerprints::default()),
            |bytes| serde_json::from_slice(&bytes),
        ))
    }

    /// Keeps what is to be known of this process's secrets before something is recorded that may hold one, with the
    /// ledger's lock.
    pub(super) fn keep_known_secrets(&self) -> Result<(), StoreError> {
        let redactor = Redactor::current();
        if redactor.texts().next().is_none() {
            return Ok(());
        }
        let path = self.known_secrets_path();
        let failed = |source: io::Error| StoreError::Io {
            action: "write",
            path: path.clone(),
            source,
        };
        // A damaged one says nothing any more; one that cannot be read may, and is not written over.
        let mut known = self
            .read_known_secrets()
            .map_err(failed)?
            .unwrap_or_default();
        if known.is_empty() {
            known = Fingerprints::new(new_id().map_err(failed)?);
        }
        if known.add(redactor.texts()) {
            let text = serde_json::to_vec(&known)
                .map_err(io::Error::from)
                .map_err(failed)?;
            self.root().write(&path, &text, Sync::All).map_err(failed)?;
        }
        Ok(())
    }
}
