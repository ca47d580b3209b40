//! Counts untracked files against their limit and names the folder that most of them lie in.

use std::collections::BTreeMap;

use crate::git::base::error::{Error, Result};
use crate::model::manifest::CaptureRules;
use crate::model::path::RepoPath;

/// The untracked files seen so far, against their limits.
#[derive(Debug)]
pub(in crate::git) struct UntrackedLimit {
    max_files: u64,
    max_bytes: u64,
    files: u64,
    bytes: u64,
    /// Files and bytes directly in each folder.
    folders: BTreeMap<RepoPath, (u64, u64)>,
}

impl UntrackedLimit {
    /// Without a repository nothing is tracked, so the limits are ten times as high.
    pub fn new(rules: &CaptureRules, private: bool) -> Self {
        let factor = if private { 10 } else { 1 };
        Self {
            max_files: rules.max_untracked_files.saturating_mul(factor),
            max_bytes: rules.max_untracked_bytes.saturating_mul(factor),
            files: 0,
            bytes: 0,
            folders: BTreeMap::new(),
        }
    }

    /// Counts files of one folder; over a limit it is [`Error::UntrackedFlood`], at once rather than after a long walk.
    pub fn add(&mut self, folder: &RepoPath, files: u64, bytes: u64) -> Result<()> {
        if files == 0 {
            return Ok(());
        }
        self.files += files;
        self.bytes = self.bytes.saturating_add(bytes);
        let sum = self.folders.entry(folder.clone()).or_default();
        sum.0 += files;
        sum.1 = sum.1.saturating_add(bytes);
        if self.files > self.max_files || self.bytes > self.max_bytes {
            let folder = self.biggest(self.bytes > self.max_bytes);
            return Err(Error::UntrackedFlood { folder, files: self.files, bytes: self.bytes });
        }
        Ok(())
    }

    /// Follows from the top the folder that holds at least half of it all.
    fn biggest(&self, by_bytes: bool) -> RepoPath {
        let mut sums: BTreeMap<RepoPath, u64> = BTreeMap::new();
        let mut total = 0_u64;
        for (folder, (files, bytes)) in &self.folders {
            let amount = if by_bytes { *bytes } else { *files };
            total = total.saturating_add(amount);
            for ancestor in folder.ancestors().chain([folder.clone()]).filter(|path| !path.as_bytes().is_empty()) {
                let sum = sums.entry(ancestor).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        let big = sums.into_iter().filter(|(_, sum)| sum.saturating_mul(2) >= total);
        // Of those the deepest one; on a path from the top there is only one line of them.
        big.map(|(path, _)| path).max_by_key(|path| path.ancestors().count()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_with_most_of_it_is_named() {
        let rules = CaptureRules { max_untracked_files: 10, ..CaptureRules::default() };
        let mut untracked = UntrackedLimit::new(&rules, false);
        untracked.add(&RepoPath::default(), 1, 1).unwrap();
        let error = (0..20).find_map(|_| untracked.add(&RepoPath::from("a/b"), 1, 1).err()).unwrap();
        let Error::UntrackedFlood { folder, files, .. } = error else { panic!("{error}") };
        assert_eq!((folder, files), (RepoPath::from("a/b"), 11));
    }
}
