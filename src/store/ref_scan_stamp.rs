//! Whether all references of checkpoints are known to have their event, without reading each of them.
//!
//! A kill may come between a reference and its event; the next command that writes imports such a checkpoint. Where there
//! are thousands of them, to list the references takes longer than all the rest of a short command. So it is noted, before
//! a reference is set, whose that is, and when all of them were found to be recorded: as long as the noted one is recorded
//! and that was a moment ago, none of ours can lack its event. What others bring is found a minute later.
//!
//! Not synced, and no more than a hint: after a crash of the machine it counts for nothing.

use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use super::ledger::{Exclusive, Store};
use crate::durable::present;
use crate::model::{CheckpointId, State, Timestamp};

/// How long a scan of the references counts, in milliseconds.
const SCAN_VALID_MILLIS: i64 = 60_000;
/// Bytes of the line of the reference that is about to be set.
const REFERENCE_LINE_BYTES: usize = 128;

/// When all references had their events, and how many events there were.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    at: i64,
    events: u64,
    boot: String,
}

impl Store {
    fn settled_path(&self) -> PathBuf {
        self.private_dir().join("references")
    }

    /// Whether a reference may be there that has no event. `boot` names this run of the machine.
    pub fn may_lack_events(&self, state: &State, now: Timestamp, boot: &str) -> bool {
        let (setting, found) = self.read_settled();
        let counts = found.is_some_and(|found| {
            let age = now.millis().saturating_sub(found.at);
            (0..SCAN_VALID_MILLIS).contains(&age)
                && found.boot == boot
                && state.last_seq >= found.events
        });
        !counts || !is_recorded(state, &setting)
    }

    /// Whose reference was about to be set last, and what was found.
    fn read_settled(&self) -> (String, Option<Found>) {
        let bytes = self.root().read(&self.settled_path()).unwrap_or_default();
        let (setting, found) = bytes.split_at(bytes.len().min(REFERENCE_LINE_BYTES));
        let setting = String::from_utf8_lossy(setting)
            .trim_matches(['\0', ' ', '\n'])
            .to_owned();
        let found = std::str::from_utf8(found).ok().and_then(|text| {
            let mut parts = text.strip_suffix('\n')?.split(' ');
            let (at, events) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(Found {
                at,
                events,
                boot: parts.next()?.to_owned(),
            })
        });
        (setting, found)
    }

    /// Notes that all references had their events at the event `events`.
    pub fn note_settled(&self, now: Timestamp, events: u64, boot: &str) {
        self.write_settled(
            &format!("{:020} {events:020} {boot}\n", now.millis()),
            REFERENCE_LINE_BYTES as u64,
        );
    }

    /// From now on a reference may be there that has no event.
    pub fn forget_settled(&self) {
        if let Err(error) = present(self.root().remove_file(&self.settled_path())) {
            tracing::debug!(%error, "the references are still held to be recorded");
        }
    }

    fn write_settled(&self, text: &str, at: u64) {
        let file = self.root().open_or_create(&self.settled_path());
        if let Err(error) = file.and_then(|file| file.write_all_at(text.as_bytes(), at)) {
            tracing::debug!(%error, "it is not noted which references are recorded");
            self.forget_settled();
        }
    }
}

fn is_recorded(state: &State, setting: &str) -> bool {
    setting.is_empty() || state.checkpoints.has(&setting.into())
}

impl Exclusive {
    /// Notes whose reference is about to be set, for a checkpoint that is recorded in this hold of the lock.
    pub fn note_reference(&self, id: &CheckpointId) {
        let store = self.store();
        // A kill came between the reference that was noted last and its event, since the references were listed.
        if !is_recorded(self.state(), &store.read_settled().0) {
            store.forget_settled();
        }
        let id = if id.as_str().len() < REFERENCE_LINE_BYTES {
            id.as_str()
        } else {
            "?"
        };
        store.write_settled(
            &format!("{id:<width$}\n", width = REFERENCE_LINE_BYTES - 1),
            0,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::event::Payload;
    use crate::model::run::{RunKey, RunSpec};
    use crate::store::NewEvent;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_790_000_000_000 + millis)
    }

    #[test]
    fn references_are_listed_where_one_may_lack_its_event() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("state"), Duration::from_secs(5));
        let (task_id, session, spec) = (None, "s".to_owned(), Box::new(RunSpec::default()));
        let created = Payload::RunCreated {
            task_id,
            session,
            worktree: "/w".into(),
            spec,
        };
        let mut ledger = store.lock().unwrap();
        ledger
            .append(
                at(0),
                vec![NewEvent::about(&RunKey::new("a", None, None), created)],
            )
            .unwrap();
        let state = ledger.state().clone();
        assert!(
            store.may_lack_events(&state, at(0), "b"),
            "nothing was read yet"
        );

        store.note_settled(at(0), 1, "b");
        let may = |now, boot: &str| store.may_lack_events(&state, at(now), boot);
        assert_eq!((may(0, "b"), may(59_999, "b")), (false, false));
        assert!(may(60_000, "b") && may(-1, "b") && may(0, "c"));
        assert!(
            store.may_lack_events(&State::default(), at(0), "b"),
            "the ledger was set back"
        );

        // A kill right after this leaves the reference of a checkpoint that nobody knows.
        ledger.note_reference(&"ckpt_1".into());
        assert!(may(0, "b"));
        // Another process that did not see that sets another one: what was found counts no more, and is found again.
        ledger.note_reference(&"ckpt_2".into());
        assert!(may(0, "b") && store.read_settled().1.is_none());
        store.note_settled(at(0), 1, "b");
        assert!(may(0, "b"), "the second one has no event yet");
        store.forget_settled();
        store.note_settled(at(0), 1, "b");
        assert!(!may(0, "b"));
    }
}
