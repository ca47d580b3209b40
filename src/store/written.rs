//! What this program wrote last in the places that it shares with other systems (C1, L1).
//! So a file of theirs is known from a view that is simply out of date, and is never written over without a copy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::durable::{Root, Sync};

/// The last contents of each place, the latest last. Two of them: a kill may come between the note and the view.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Written {
    by_place: BTreeMap<String, Vec<String>>,
}

impl Written {
    fn file(private: &Path) -> PathBuf {
        private.join("views.json")
    }

    /// What was noted in the private folder of a state directory. Without it every file is somebody else's: kept once too often.
    pub(super) fn read(root: &Root, private: &Path) -> Self {
        let read = root.read(&Self::file(private)).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    /// Whether `content` is what was written there.
    pub(super) fn is(&self, place: &Path, content: &[u8]) -> bool {
        let known = self.by_place.get(&*place.to_string_lossy());
        known.is_some_and(|known| known.contains(&print_of(content)))
    }

    /// The places, below the state directory or absolute.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        self.by_place.keys().map(PathBuf::from).collect()
    }

    /// Whether anything was ever written there.
    pub(super) fn knows(&self, place: &Path) -> bool {
        self.by_place.contains_key(&*place.to_string_lossy())
    }

    /// What has this [`print_of`] is about to be written there.
    pub(super) fn add(&mut self, place: &Path, print: String) {
        let known = self
            .by_place
            .entry(place.to_string_lossy().into_owned())
            .or_default();
        known.retain(|other| *other != print);
        known.push(print);
        let old = known.len().saturating_sub(2);
        known.drain(..old);
    }

    /// A note that a crash of the machine takes away costs a copy too many, not a view.
    pub(super) fn write(&self, root: &Root, private: &Path) {
        let written = serde_json::to_vec(self).map_err(std::io::Error::from);
        if let Err(error) =
            written.and_then(|bytes| root.write(&Self::file(private), &bytes, Sync::Nothing))
        {
            tracing::debug!(%error, "what the views hold was not noted");
        }
    }
}

/// Whether a file holds nothing: a crash of the machine leaves one without content, or with zeros, where its name was on
/// disk before its content was.
pub(super) fn is_blank(content: &[u8]) -> bool {
    content
        .iter()
        .all(|byte| *byte == 0 || byte.is_ascii_whitespace())
}

/// Whether a file holds what no system writes in a view's place: then it is a view that was damaged, and nobody's record.
pub(super) fn is_damaged(content: &[u8]) -> bool {
    is_blank(content) || serde_json::from_slice::<serde::de::IgnoredAny>(content).is_err()
}

/// What distinguishes two contents.
pub(crate) fn print_of(content: &[u8]) -> String {
    format!("{:x}-{:08x}", content.len(), crc32fast::hash(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_document_is_damage() {
        for blank in [&b""[..], b"\n \0", &[0; 9]] {
            assert!(is_blank(blank) && is_damaged(blank), "{blank:?}");
        }
        for (content, damaged) in [
            (&b"{\"a\":"[..], true),
            (b"[]\n\0", true),
            (b"[]\n", false),
            (b"{}", false),
        ] {
            assert!(!is_blank(content), "{content:?}");
            assert_eq!(is_damaged(content), damaged, "{content:?}");
        }
    }

    #[test]
    fn the_last_two_contents_are_ours() {
        let folder = tempfile::tempdir().unwrap();
        let place = Path::new("/a/recovery.json");
        let root = Root::own(folder.path().to_owned());
        let mut written = Written::read(&root, folder.path());
        for content in [b"1", b"2", b"2", b"3"] {
            written.add(place, print_of(content));
        }
        written.write(&root, folder.path());
        let written = Written::read(&root, folder.path());
        let ours = |content: &[u8]| written.is(place, content);
        assert_eq!((ours(b"1"), ours(b"2"), ours(b"3")), (false, true, true));
        assert!(!written.is(Path::new("/b/recovery.json"), b"3"));
    }
}
