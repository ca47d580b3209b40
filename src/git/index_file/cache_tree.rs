//! The `TREE` extension: folders of the index whose tree git has written already.

use git2::Oid;

use super::{HASH, Input};

/// Deeper than any path that the system can make.
const MAX_DEPTH: usize = 4096;

/// The valid folders of a cache tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct CacheTree {
    /// Sorted by path.
    folders: Vec<(Vec<u8>, u32, Oid)>,
}

impl CacheTree {
    /// Parses the extension; `None` if it is damaged. git ignores such a one, too: nothing but speed depends on it.
    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let mut input = Input(data);
        let mut folders = Vec::new();
        // The folders that are open: how long their path is, and how many subfolders are still to come.
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut path = Vec::new();
        loop {
            let name = input.name(None).ok()?;
            // Only the root has no name.
            if name.is_empty() != open.is_empty() || open.len() > MAX_DEPTH {
                return None;
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            let entries: i64 = number(&mut input, b' ')?;
            let below: usize = number(&mut input, b'\n')?;
            if let Ok(entries) = u32::try_from(entries) {
                folders.push((path.clone(), entries, Oid::from_bytes(input.take(HASH).ok()?).ok()?));
            }
            open.push((path.len(), below));
            while let Some((_, 0)) = open.last() {
                open.pop();
            }
            let Some((length, below)) = open.last_mut() else { break };
            *below -= 1;
            path.truncate(*length);
        }
        folders.sort_unstable();
        input.0.is_empty().then_some(Self { folders })
    }

    /// Every valid folder with the number of index entries below it and its tree, sorted by path. The root's path is
    /// empty.
    pub fn folders(&self) -> impl ExactSizeIterator<Item = (&[u8], u32, Oid)> {
        self.folders.iter().map(|(path, entries, tree)| (path.as_slice(), *entries, *tree))
    }

    /// The number of index entries below a folder and its tree, if that is valid.
    pub fn get(&self, folder: &[u8]) -> Option<(u32, Oid)> {
        let at = self.folders.binary_search_by(|(path, _, _)| path.as_slice().cmp(folder)).ok()?;
        Some((self.folders[at].1, self.folders[at].2))
    }
}

/// A decimal number and the byte after it.
fn number<T: std::str::FromStr>(input: &mut Input<'_>, end: u8) -> Option<T> {
    let length = input.0.iter().take(24).position(|byte| *byte == end)?;
    let text = input.take(length).ok()?;
    input.take(1).ok()?;
    std::str::from_utf8(text).ok()?.parse().ok()
}
