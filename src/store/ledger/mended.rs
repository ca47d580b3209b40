//! Repairs a ledger that was cut off, emptied, set back or damaged from its second copy, automatically.

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::PathBuf;
use std::sync::{Arc, Once};

use crate::durable::{Refused, Sync, present};

use super::super::error::StoreError;
use super::super::ledger_line::salvage;
use super::super::ledger_line::{decompress_all, whole};
use super::super::registry::Origin;
use super::super::second_copy::{SecondCopy, Standing, standing};
use super::{Loaded, Store};

/// Where lines are read from.
pub(super) trait Lines: Read + Seek {}

impl<T: Read + Seek> Lines for T {}

/// The ledger's own file, how it stands to its second copy, and what counts in its place.
type Opened = (Option<File>, Standing, Option<Vec<u8>>);

impl Store {
    /// Whether the ledger's second copy shows that what it says was recorded here; of one that may be `damaged`, what can be
    /// read of it.
    pub fn is_vouched_for(&self, damaged: bool) -> bool {
        // One that lies in the state directory comes along with it.
        let apart = self
            .copy
            .as_ref()
            .filter(|copy| !copy.path().starts_with(self.private_dir()));
        apart.is_some_and(|copy| copy.vouches_for(&self.root, &self.ledger_path(), damaged))
    }

    /// Sets the second copy aside where it is that of another ledger, whose place this one is about to get; where it is.
    pub fn set_other_copy_aside(&self) -> Result<Option<PathBuf>, StoreError> {
        let Some(copy) = self
            .copy
            .as_ref()
            .filter(|copy| copy.path().is_file() && !self.is_vouched_for(false))
        else {
            return Ok(None);
        };
        let place = self.private_dir().join("before").join("events.jsonl");
        let kept = copy
            .root()
            .read(copy.path())
            .and_then(|bytes| self.root.keep_copy(&place, &bytes));
        let removed = kept.and_then(|kept| copy.root().remove_file(copy.path()).map(|()| kept));
        removed
            .map(Some)
            .map_err(self.io("set aside the second copy of"))
    }

    /// Opens the ledger, and compares it with its second copy. A copy that cannot be read is none; what is in its place and is
    /// no file is an error. State from elsewhere has none: our copy is another ledger's.
    fn open_both(&self) -> Result<(Option<File>, Standing), StoreError> {
        // The copy first: what is appended meanwhile is in the ledger only.
        let copy = match self.copy.as_ref().filter(|_| self.origin() == Origin::Ours) {
            None => None,
            Some(copy) => present(copy.root().open(copy.path())).or_else(|error| {
                if Refused::of(&error).is_some() {
                    return Err(self.io("read the second copy of")(error));
                }
                tracing::debug!(%error, copy = %copy.path().display(), "the ledger's second copy cannot be read");
                Ok(None)
            })?,
        };
        let ledger = present(self.root.open(&self.ledger_path())).map_err(self.io("read"))?;
        let standing = standing(copy.as_ref(), ledger.as_ref()).unwrap_or_else(|error| {
            tracing::debug!(%error, "the ledger's second copy cannot be compared");
            Standing::Alone
        });
        Ok((ledger, standing))
    }

    /// The lines that count where the ledger's own file lacks some of them; `None` where it has them all. Where neither
    /// file has all that the other one knows of, that is damage: never fewer events.
    pub(super) fn mended(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(copy) = &self.copy else {
            return Ok(None);
        };
        // The copy first: the ledger has all of it, and more only later.
        let (copy, ledger) = self.read_both(copy)?;
        let Some(copy) = copy.map(lines_of_copy) else {
            return Ok(None);
        };
        let (copy, ledger) = (copy.as_slice(), whole(&ledger));
        let folded = |bytes: &[u8]| {
            let mut loaded = Loaded::default();
            self.fold(&mut loaded, bytes).map(|()| loaded.lines)
        };
        match (folded(ledger), folded(copy)) {
            (Ok(own), Ok(other)) if own >= other => Ok(None),
            (Ok(own), Ok(other)) => {
                let first = |lines: &[u8]| {
                    decompress_all(lines)
                        .split(|byte| *byte == b'\n')
                        .next()
                        .map(<[u8]>::to_vec)
                };
                if own > 0 && first(ledger) != first(copy) {
                    let reason = format!(
                        "it ends here, and its second copy has {other} events of another beginning"
                    );
                    return Err(self.corrupt(own + 1, reason));
                }
                Ok(Some(copy.to_vec()))
            }
            (Ok(own), Err(_)) => match last_sound(copy) {
                known if known > own => {
                    let reason = format!(
                        "it ends here, and its second copy, which is damaged, has {known} events"
                    );
                    Err(self.corrupt(own + 1, reason))
                }
                _ => Ok(None),
            },
            (Err(error), Ok(other)) => {
                let (open, known) = (decompress_all(ledger), decompress_all(copy));
                if let Some(more) = open.get(known.len()..).filter(|more| !more.is_empty()) {
                    let joined = [copy, more].concat();
                    if folded(&joined).is_ok() {
                        return Ok(Some(joined));
                    }
                }
                // What came after all that the copy has may be an event that cannot be read any more.
                let has_more = open.starts_with(&known) || last_sound(ledger) > other;
                if has_more {
                    Err(error)
                } else {
                    Ok(Some(copy.to_vec()))
                }
            }
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// What the second copy holds, where it is there, and what the ledger's own file does.
    fn read_both(&self, copy: &SecondCopy) -> Result<(Option<Vec<u8>>, Vec<u8>), StoreError> {
        let held = copy.root().read_present(copy.path());
        let held = held.map_err(self.io("read the second copy of"))?;
        let ledger = self.root.read_present(&self.ledger_path());
        Ok((held, ledger.map_err(self.io("read"))?.unwrap_or_default()))
    }

    /// [`Self::open_both`] and what counts, where it is doubtful that this is the ledger.
    pub(super) fn open_mended(&self) -> Result<Opened, StoreError> {
        let (ledger, standing) = self.open_both()?;
        let mended = match standing {
            Standing::Doubtful => self.mended()?,
            _ => None,
        };
        Ok((ledger, standing, mended))
    }

    /// The fold of lines that are not in the ledger's own file as they are.
    pub(super) fn load_mended(&self, bytes: Vec<u8>) -> Result<Loaded, StoreError> {
        static TOLD: Once = Once::new();
        TOLD.call_once(|| {
            let ledger = self.ledger_path();
            let what = if self.root.has(&ledger).unwrap_or(true) {
                "was truncated, set back or damaged"
            } else {
                "is missing"
            };
            tracing::warn!("{} {what}: its second copy counts", ledger.display());
        });
        let mut loaded = Loaded::default();
        self.fold(&mut loaded, &bytes)?;
        loaded.mended = Some(Arc::new(bytes));
        Ok(loaded)
    }

    /// Has `read` read the ledger's own file, or what counts where that lacks something; `None` where there is none.
    pub(super) fn read_truth<T>(
        &self,
        read: impl Fn(&mut dyn Lines) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let (ledger, standing, mended) = self.open_mended()?;
        if let Some(bytes) = mended {
            return read(&mut Cursor::new(bytes)).map(Some);
        }
        let Some(mut file) = ledger else {
            return Ok(None);
        };
        match read(&mut file) {
            Err(error @ StoreError::Corrupt { .. }) if standing != Standing::Doubtful => self
                .mended()?
                .map_or(Err(error), |bytes| read(&mut Cursor::new(bytes)).map(Some)),
            other => other.map(Some),
        }
    }

    /// What is wrong with the ledger's own file or with its second copy where the other one makes up for it: every byte is
    /// examined.
    pub fn flaws(&self) -> Result<Vec<(PathBuf, &'static str)>, StoreError> {
        let mut flaws = Vec::new();
        let (_, standing) = self.open_both()?;
        let Some(copy) = self.copy.as_ref().filter(|_| standing != Standing::Alone) else {
            return Ok(flaws);
        };
        let (held, ledger) = self.read_both(copy)?;
        let (held, ledger) = (held.unwrap_or_default(), whole(&ledger));
        if (standing == Standing::Doubtful || self.fold(&mut Loaded::default(), ledger).is_err())
            && self.mended()?.is_some()
        {
            flaws.push((
                self.ledger_path(),
                "it was truncated, set back or damaged, and its second copy is whole",
            ));
        } else if !ledger.starts_with(&held)
            && !decompress_all(ledger).starts_with(&decompress_all(&held))
        {
            flaws.push((
                copy.path().to_owned(),
                "the ledger's second copy is damaged, and the ledger is whole",
            ));
        }
        Ok(flaws)
    }

    /// Repairs what [`Self::flaws`] finds; what that was.
    pub fn repair(&self) -> Result<Vec<(PathBuf, &'static str)>, StoreError> {
        let flaws = self.flaws()?;
        if !flaws.is_empty() {
            // Behind it nothing is examined.
            present(self.root.remove_file(&self.cache_path())).map_err(self.io("repair"))?;
            *self.recent.lock() = None;
            self.lock()?.check_copy(SecondCopy::is_same);
        }
        Ok(flaws)
    }

    /// Puts the lines that count in the place of the ledger's; the caller holds the lock. What else stood there is kept
    /// aside.
    pub(super) fn put_right(&self, loaded: &mut Loaded) -> Result<(), StoreError> {
        let Some(lines) = loaded.mended.take() else {
            return Ok(());
        };
        let path = self.ledger_path();
        let failed = self.io("repair");
        let present = self.root.read_present(&path).map_err(&failed)?;
        let present = present.unwrap_or_default();
        if !decompress_all(&lines).starts_with(&decompress_all(whole(&present))) {
            let aside = self.private_dir().join("damaged").join("events.jsonl");
            let aside = self.root.keep_copy(&aside, &present).map_err(&failed)?;
            tracing::warn!(
                "what stood in the damaged ledger is kept in {}",
                aside.display()
            );
        }
        self.root.write(&path, &lines, Sync::All).map_err(&failed)?;
        *self.recent.lock() = None;
        tracing::warn!("{} is repaired from its second copy", path.display());
        Ok(())
    }
}

/// The lines of a copy. Its last one counts without its end as well where it can be read: the ledger had it before.
fn lines_of_copy(mut copy: Vec<u8>) -> Vec<u8> {
    let end = whole(&copy).len();
    let last = salvage(&copy[end..]);
    if last.events.is_empty() || last.unreadable > 0 {
        copy.truncate(end);
    } else {
        copy.push(b'\n');
    }
    copy
}

/// The highest number of an event that can still be read.
fn last_sound(lines: &[u8]) -> u64 {
    salvage(lines)
        .events
        .iter()
        .map(|event| event.seq)
        .max()
        .unwrap_or(0)
}
