//! What this program wrote last in the places that other systems share (C1, L1).
//! So a file of theirs is known from a view that is simply out of date, and is never written over without a copy.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ledger::{RECOVERY, Store};
use crate::durable::{Kind, Refused, Root, Sync};

/// More bytes than a list without lane records has, whatever a crash leaves of one.
const LONGEST_EMPTY: u64 = 4 << 10;

/// The last contents of each place, the latest last. Two of them: a kill may come between the note and the view.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ViewFingerprints {
    by_place: BTreeMap<String, Vec<String>>,
}

impl ViewFingerprints {
    /// What was noted in this file. Without it every file counts as another system's: it is copied once too often.
    pub(crate) fn read(root: &Root, file: &Path) -> Self {
        let read = root.read(file).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    /// What distinguishes two contents.
    pub(crate) fn print_of(content: &[u8]) -> String {
        format!("{:x}-{:08x}", content.len(), crc32fast::hash(content))
    }

    /// Whether `content` is what was written there.
    pub(crate) fn is(&self, place: &Path, content: &[u8]) -> bool {
        let known = self.by_place.get(&*place.to_string_lossy());
        known.is_some_and(|known| known.contains(&Self::print_of(content)))
    }

    /// The places, below the state directory or absolute.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        self.by_place.keys().map(PathBuf::from).collect()
    }

    /// Whether anything was ever written there.
    pub(super) fn knows(&self, place: &Path) -> bool {
        self.by_place.contains_key(&*place.to_string_lossy())
    }

    /// What has this [`Self::print_of`] is about to be written there.
    pub(crate) fn add(&mut self, place: &Path, print: String) {
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
    pub(crate) fn write(&self, root: &Root, file: &Path) {
        let written = serde_json::to_vec(self).map_err(io::Error::from);
        if let Err(error) = written.and_then(|bytes| root.write(file, &bytes, Sync::Nothing)) {
            tracing::debug!(%error, "what the views hold was not noted");
        }
    }
}

impl Store {
    /// Where it is noted what was written in the places of the views.
    pub(super) fn fingerprints_path(&self) -> PathBuf {
        self.private_dir().join("views.json")
    }

    fn fingerprints(&self) -> ViewFingerprints {
        ViewFingerprints::read(self.root(), &self.fingerprints_path())
    }

    /// A view's content; `None` where there is none, or something that makes way for it and is not followed.
    pub fn view(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match self.root_of_view(path).read_present(path) {
            Err(error)
                if Refused::of(&error)
                    .is_some_and(|refused| refused.path == path && !refused.is_folder()) =>
            {
                tracing::warn!("{error}: it makes way for the view");
                Ok(None)
            }
            read => read,
        }
    }

    /// Whether a file of lane records is there. What makes way for one is none, nor is what a crash left of one.
    pub(super) fn has_lane_file(&self) -> bool {
        let (root, path) = (self.root_of_view(self.lane_file()), self.lane_file());
        if !matches!(root.kind(path), Ok(Some(Kind::RegularFile))) {
            return false;
        }
        // Elsewhere than in our folder whatever can be read may be another system's.
        let is_gone = if path.starts_with(self.dir()) {
            is_damaged
        } else {
            is_blank
        };
        // What cannot be read, or is longer than a list of nothing ever is, is there.
        root.read_at_most(path, LONGEST_EMPTY)
            .map_or(true, |content| !is_gone(&content))
    }

    /// Whether the place of the lane records, where the user chose it, holds something else than a list, and none of ours
    /// has ever been there: a file that must not be written over.
    pub fn lane_file_is_foreign(&self) -> bool {
        if self.lane_file().starts_with(self.dir()) {
            return false;
        }
        let is_list = |bytes: &[u8]| {
            bytes.trim_ascii().is_empty()
                || serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(bytes).is_ok()
        };
        let is_ours = || self.fingerprints().knows(self.lane_file());
        let read = self.root_of_view(self.lane_file()).read(self.lane_file());
        read.is_ok_and(|bytes| !is_list(&bytes)) && !is_ours()
    }

    /// Files in the places of the views that are shared with other systems (L1, C1) which this program did not write.
    pub fn foreign_views(&self) -> Vec<PathBuf> {
        let written = self.fingerprints();
        let is_foreign = |path: &PathBuf| {
            let place = path.strip_prefix(self.dir()).unwrap_or(path);
            let read = self.root_of_view(path).read(path);
            read.is_ok_and(|bytes| !written.is(place, &bytes) && !is_damaged(&bytes))
        };
        [self.dir().join(RECOVERY), self.dir().join(self.lane_file())]
            .into_iter()
            .filter(is_foreign)
            .collect()
    }

    /// The views in places that other systems share which hold what was written there last.
    pub fn own_views(&self) -> Vec<PathBuf> {
        let written = self.fingerprints();
        let is_own = |place: &PathBuf| {
            let path = self.dir().join(place);
            self.root_of_view(&path)
                .read(&path)
                .is_ok_and(|bytes| written.is(place, &bytes))
        };
        written
            .places()
            .into_iter()
            .filter(is_own)
            .map(|place| self.dir().join(place))
            .collect()
    }

    /// Removes them. Where another system's file was in the place of one, that is there again.
    pub fn remove_own_views(&self) -> io::Result<()> {
        let before = self.private_dir().join("before");
        for path in self.own_views() {
            let kept = self
                .root()
                .latest_copy(&before.join(path.file_name().unwrap_or_default()))?;
            match kept {
                Some(content) => self
                    .root_of_view(&path)
                    .replace(&path, &content, Sync::All)?,
                None => self.root_of_view(&path).remove_file(&path)?,
            }
        }
        Ok(())
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
        let (root, noted) = (Root::own(folder.path()), folder.path().join("views.json"));
        let mut written = ViewFingerprints::read(&root, &noted);
        for content in [b"1", b"2", b"2", b"3"] {
            written.add(place, ViewFingerprints::print_of(content));
        }
        written.write(&root, &noted);
        let written = ViewFingerprints::read(&root, &noted);
        let ours = |content: &[u8]| written.is(place, content);
        assert_eq!((ours(b"1"), ours(b"2"), ours(b"3")), (false, true, true));
        assert!(!written.is(Path::new("/b/recovery.json"), b"3"));
    }
}
