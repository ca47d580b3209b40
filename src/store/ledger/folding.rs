//! The ledger's lines, in the open and packed, into the state.

use crate::model::event::EVENT_SCHEMA;
use crate::model::state::State;

use super::super::error::StoreError;
use super::super::ledger_line::{self, Line};
use super::super::packed_lines;
use super::{Arc, Beyond, Loaded, Store};

/// How far lines were folded.
struct Progress<'l> {
    /// Events so far.
    lines: u64,
    newer: Option<u32>,
    beyond_cache: &'l mut Beyond,
}

impl Store {
    /// Folds the whole lines of `bytes`, which come after those that `loaded` has.
    pub(super) fn fold(&self, loaded: &mut Loaded, bytes: &[u8]) -> Result<(), StoreError> {
        let mut rest = bytes;
        if !rest.contains(&b'\n') {
            loaded.torn = rest.len() as u64;
            return Ok(());
        }
        let state = Arc::make_mut(&mut loaded.state);
        let mut progress = Progress {
            lines: loaded.lines,
            newer: loaded.newer,
            beyond_cache: &mut loaded.beyond_cache,
        };
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            match packed_lines::packed(&rest[..newline]) {
                None => self.fold_line(state, &mut progress, &rest[..newline])?,
                Some(packed) => {
                    let next = progress.lines + 1;
                    let lines = packed
                        .and_then(|packed| packed.unpack_at(next))
                        .map_err(|flaw| self.flaw(next, flaw))?;
                    for text in packed_lines::lines_of(&lines) {
                        self.fold_line(state, &mut progress, text)?;
                    }
                    loaded.packed = loaded.offset + (bytes.len() - rest.len() + newline + 1) as u64;
                }
            }
            rest = &rest[newline + 1..];
        }
        (loaded.lines, loaded.newer) = (progress.lines, progress.newer);
        loaded.extend(&bytes[..bytes.len() - rest.len()]);
        loaded.torn = rest.len() as u64;
        Ok(())
    }

    fn fold_line(
        &self,
        state: &mut State,
        progress: &mut Progress<'_>,
        text: &[u8],
    ) -> Result<(), StoreError> {
        let number = progress.lines + 1;
        match ledger_line::decode(text).map_err(|reason| self.corrupt(number, reason))? {
            Line::Event(event) if event.seq != number => {
                return Err(self.corrupt(
                    number,
                    format!("sequence {} where {number} belongs", event.seq),
                ));
            }
            Line::Event(event) => {
                if event.schema > EVENT_SCHEMA {
                    progress.newer = Some(event.schema);
                }
                progress.beyond_cache.add(event.run.as_ref());
                state.apply(&event);
            }
            Line::Newer(schema) => {
                progress.newer = Some(schema);
                progress.beyond_cache.add(None);
                state.last_seq = number;
            }
        }
        progress.lines = number;
        Ok(())
    }
}
