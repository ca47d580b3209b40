//! Lines of the ledger without secrets, for what may leave the machine.

use std::borrow::Cow;

use super::ledger_line::{self, Line};
use super::packed_lines::lines_of;
use crate::model::event::Event;
use crate::policy::masked_event::masked_payload;

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
