//! Small files of our own in the state directory that can be lost: what was found out once, and when something was last done.

use std::path::Path;

use super::Context;
use crate::durable::Sync;
use crate::store::Origin;

impl Context {
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
