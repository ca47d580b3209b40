//! Small files of our own in the state directory that can be lost, and the ends of logs.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::Context;
use crate::durable::Sync;
use crate::store::Origin;

impl Context {
    /// The last bytes of a file in the state directory, at most `most`, and how many come before them.
    pub(in crate::engine) fn read_end(&self, path: &Path, most: u64) -> io::Result<(Vec<u8>, u64)> {
        let mut file = self.store().root().open(path)?;
        let skipped = file.metadata()?.len().saturating_sub(most);
        file.seek(SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok((bytes, skipped))
    }

    /// Writes such a file, with its folder, unless nothing may be written here. What cannot be written is only logged.
    pub(in crate::engine) fn write_note(&self, path: &Path, bytes: &[u8]) {
        if self.dry_run() || self.store().origin() != Origin::Ours {
            return;
        }
        let root = self.store().root();
        let folder = path.parent().unwrap_or(path);
        let made = root.create_dir_all(folder);
        if let Err(error) = made.and_then(|()| root.write(path, bytes, Sync::Nothing)) {
            tracing::debug!(%error, path = %path.display(), "a note was not written");
        }
    }
}
