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
        let path = self.known_secrets_path();
        let read = self.root().read_present(&path).and_then(|bytes| match bytes {
            Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
            None => Ok(Fingerprints::default()),
        });
        read.unwrap_or_else(|error| {
            tracing::warn!(%error, file = %path.display(), "secrets of earlier runs may be shown");
            Fingerprints::default()
        })
    }

    /// Keeps what is to be known of this process's secrets before something is recorded that may hold one, with the
    /// ledger's lock.
    pub(super) fn keep_known_secrets(&self) -> Result<(), StoreError> {
        let redactor = Redactor::current();
        if redactor.texts().next().is_none() {
            return Ok(());
        }
        let path = self.known_secrets_path();
        let failed = |source: io::Error| StoreError::Io { action: "write", path: path.clone(), source };
        let mut known = self.known_secrets();
        if known.is_empty() {
            known = Fingerprints::new(new_id().map_err(failed)?);
        }
        if known.add(redactor.texts()) {
            let text = serde_json::to_vec(&known).map_err(io::Error::from).map_err(failed)?;
            self.root().write(&path, &text, Sync::All).map_err(failed)?;
        }
        Ok(())
    }
}
