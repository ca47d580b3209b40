//! Lines of the ledger without secrets, for what may leave the machine.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use super::error::StoreError;
use super::ledger::Store;
use super::ledger_line::{self, Line, lines_of};
use super::registry::{Origin, new_id};
use crate::durable::Sync;
use crate::model::event::Event;
use crate::policy::checkpoint_events::masked_payload;
use crate::policy::secrets::{Fingerprints, Redactor};

/// These lines, each without the secrets in what it says; one that holds none stays as it is, byte for byte.
pub(crate) fn masked(lines: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.len());
    for line in lines_of(lines) {
        match masked_line(line) {
            Some(masked) => text.extend_from_slice(masked.as_bytes()),
            None => text.extend([line, b"\n"].concat()),
        }
    }
    text
}

/// The line without secrets; `None` where it holds none.
fn masked_line(line: &[u8]) -> Option<String> {
    let Ok(Line::Event(event)) = ledger_line::decode(line) else {
        return None;
    };
    let Cow::Owned(payload) = masked_payload(&event.payload) else {
        return None;
    };
    ledger_line::encode(&Event { payload, ..*event }).ok()
}

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
        let keep = || -> io::Result<()> {
            // A damaged one says nothing any more; one that cannot be read may, and is not written over.
            let mut known = self.read_known_secrets()?.unwrap_or_default();
            if known.is_empty() {
                known = Fingerprints::new(new_id()?);
            }
            if known.add(redactor.texts()) {
                self.root()
                    .write(&path, &serde_json::to_vec(&known)?, Sync::All)?;
            }
            Ok(())
        };
        keep().map_err(StoreError::io("write", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::{EVENT_SCHEMA, EventSource, Payload};
    use crate::model::run::{RunKey, RunSpec};
    use crate::model::time::Timestamp;

    fn line(seq: u64, word: &str) -> String {
        let spec = Box::new(RunSpec {
            command: vec!["agent".to_owned(), word.to_owned()],
            ..RunSpec::default()
        });
        let payload = Payload::RunCreated {
            task_id: None,
            session: "r".to_owned(),
            worktree: "/w".into(),
            spec,
        };
        let (run, source) = (Some(RunKey::new("r", None, None)), EventSource::Recover);
        let at = Timestamp::from_millis(1_790_000_000_000);
        ledger_line::encode(&Event {
            seq,
            at,
            schema: EVENT_SCHEMA,
            run,
            source,
            payload,
        })
        .unwrap()
    }

    #[test]
    fn only_lines_with_secrets_change_and_all_are_sound() {
        let (plain, secret) = (line(1, "go on"), line(2, "--token=abcd-1234"));
        let all = format!("{plain}{secret}");
        let shown = String::from_utf8(masked(all.as_bytes())).unwrap();
        assert!(
            shown.starts_with(&plain)
                && !shown.contains("abcd-1234")
                && shown.contains("[redacted]"),
            "{shown}"
        );
        let read: Vec<_> = lines_of(shown.as_bytes())
            .map(ledger_line::decode)
            .collect();
        assert!(read.iter().all(Result::is_ok) && read.len() == 2);
        assert_eq!(masked(shown.as_bytes()), shown.as_bytes());
    }
}
