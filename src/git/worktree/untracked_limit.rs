//! Counts untracked files against their limit and names the folder that most of them lie in.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::base::error::{Error, Result};
use crate::model::{CaptureRules, RepoPath};

/// The untracked files seen so far, against their limits.
#[derive(Debug)]
pub(in crate::git) struct UntrackedLimit {
    max_files: u64,
    max_bytes: u64,
    files: u64,
    bytes: u64,
    /// Files and bytes directly in each folder.
    folders: BTreeMap<RepoPath, (u64, u64)>,
    /// Whether all of them are counted, however many there are.
    counts_all: bool,
}

impl UntrackedLimit {
    /// Without a repository nothing is tracked, so the limits are ten times as high.
    pub(super) fn new(rules: &CaptureRules, private: bool) -> Self {
        let factor = if private { 10 } else { 1 };
        Self {
            max_files: rules.max_untracked_files.saturating_mul(factor),
            max_bytes: rules.max_untracked_bytes.saturating_mul(factor),
            files: 0,
            bytes: 0,
            folders: BTreeMap::new(),
            counts_all: false,
        }
    }

    /// The same, which refuses nothing.
    pub(super) fn counting_all(self) -> Self {
        Self {
            counts_all: true,
            ..self
        }
    }

    /// Counts files of one folder; over a limit it is [`Error::UntrackedFlood`], at once rather than after a long walk.
    pub(super) fn add(&mut self, folder: &RepoPath, files: u64, bytes: u64) -> Result<()> {
        if files == 0 {
            return Ok(());
        }
        self.files += files;
        self.bytes = self.bytes.saturating_add(bytes);
        let sum = self.folders.entry(folder.clone()).or_default();
        sum.0 += files;
        sum.1 = sum.1.saturating_add(bytes);
        if self.counts_all {
            Ok(())
        } else {
            self.check()
        }
    }

    /// Whether what was counted is within the limits.
    pub(super) fn check(&self) -> Result<()> {
        if self.files > self.max_files || self.bytes > self.max_bytes {
            let folders = self
                .folders_to_leave_out(|_| Ok(false))?
                .unwrap_or_default();
            return Err(Error::UntrackedFlood {
                folder: folders.into_keys().next().unwrap_or_default(),
                files: self.files,
                bytes: self.bytes,
            });
        }
        Ok(())
    }

    /// The folders to leave out so that the rest is within the limits, each with how many files it holds: the largest first,
    /// and of one whose files are mostly in a folder within it, only that. A folder of which `is_kept` is true is not left
    /// out, nor is anything above it; `None` where the rest is still too much.
    pub(super) fn folders_to_leave_out(
        &self,
        mut is_kept: impl FnMut(&RepoPath) -> Result<bool>,
    ) -> Result<Option<BTreeMap<RepoPath, u64>>> {
        let mut free: BTreeMap<RepoPath, (u64, u64)> = BTreeMap::new();
        for (folder, (files, bytes)) in &self.folders {
            for path in folder
                .ancestors()
                .chain([folder.clone()])
                .filter(|path| !path.as_bytes().is_empty())
            {
                let sum = free.entry(path).or_default();
                *sum = (sum.0 + files, sum.1.saturating_add(*bytes));
            }
        }
        let mut kept = BTreeSet::new();
        for path in free.keys() {
            if is_kept(path)? {
                kept.insert(path.clone());
            }
        }
        free.retain(|path, _| !kept.contains(path));
        let all = free.clone();
        let (mut files, mut bytes) = (self.files, self.bytes);
        let mut out = BTreeMap::new();
        while files > self.max_files || bytes > self.max_bytes {
            let by_bytes = bytes > self.max_bytes;
            let amount = |sum: (u64, u64)| if by_bytes { sum.1 } else { sum.0 };
            // Of folders as large as each other the outermost, which comes first.
            let largest = |one: Option<(RepoPath, (u64, u64))>,
                           (path, sum): (&RepoPath, &(u64, u64))| {
                match one {
                    Some(one) if amount(one.1) >= amount(*sum) => Some(one),
                    _ => Some((path.clone(), *sum)),
                }
            };
            let Some((mut path, mut sum)) = free.iter().fold(None, largest) else {
                return Ok(None);
            };
            let within = |path: &RepoPath| {
                let inside = free
                    .iter()
                    .filter(|(inside, _)| inside.parent().as_ref() == Some(path));
                inside.fold(None, largest)
            };
            // Not the outermost of folders that hold the same: what is made beside it later would be left out with it.
            while let Some((inside, part)) =
                within(&path).filter(|(_, part)| amount(*part) * 3 >= amount(sum))
            {
                (path, sum) = (inside, part);
            }
            if amount(sum) == 0 {
                return Ok(None);
            }
            (files, bytes) = (files - sum.0, bytes.saturating_sub(sum.1));
            free.retain(|other, _| !other.starts_with(&path));
            for above in path.ancestors() {
                if let Some(left) = free.get_mut(&above) {
                    *left = (left.0 - sum.0, left.1.saturating_sub(sum.1));
                }
            }
            out.retain(|inside: &RepoPath, _| !inside.starts_with(&path));
            let held = all.get(&path).map_or(sum.0, |sum| sum.0);
            out.insert(path, held);
        }
        Ok(Some(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(max_files: u64, folders: &[(&str, u64)]) -> UntrackedLimit {
        let rules = CaptureRules {
            max_untracked_files: max_files,
            ..CaptureRules::default()
        };
        let mut untracked = UntrackedLimit::new(&rules, false).counting_all();
        for (folder, files) in folders {
            untracked
                .add(&RepoPath::from(*folder), *files, *files)
                .unwrap();
        }
        untracked
    }

    #[test]
    fn the_largest_folders_are_left_out_until_the_rest_fits() {
        let out = |max, folders: &[(&str, u64)], kept: &[&str]| {
            let is_kept = |path: &RepoPath| {
                Ok(kept
                    .iter()
                    .any(|kept| RepoPath::from(*kept).starts_with(path)))
            };
            let found = counted(max, folders).folders_to_leave_out(is_kept).unwrap();
            found.map(|all| {
                all.iter()
                    .map(|(path, files)| format!("{path}: {files}"))
                    .collect::<Vec<_>>()
            })
        };
        let some = |all: &[&str]| Some(all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        let app = [
            ("", 3),
            ("app", 5),
            ("app/src", 20),
            ("app/modules/a", 30),
            ("app/modules/b", 30),
            ("app/modules/c", 31),
            ("app/modules/d", 30),
        ];
        assert_eq!(
            out(100, &app, &[]),
            some(&["app/modules: 121"]),
            "what was made beside it stays"
        );
        assert_eq!(
            out(100, &app, &["app/modules/a"]),
            some(&["app/modules/b: 30", "app/modules/c: 31"])
        );
        assert_eq!(out(200, &app, &[]), some(&[]));
        let env = [
            ("env/bin", 4),
            ("env/lib/python/site/a", 20),
            ("env/lib/python/site/b", 20),
            ("env/lib/python/site/c", 20),
            ("env/lib/python/site/d", 20),
        ];
        assert_eq!(out(50, &env, &[]), some(&["env/lib/python/site: 80"]));
        assert_eq!(out(2, &app, &[]), None, "files at the top are not left out");
        let two = [("dist", 60), ("modules", 70), ("src", 10)];
        assert_eq!(out(20, &two, &[]), some(&["dist: 60", "modules: 70"]));
        assert_eq!(out(20, &two, &["dist", "modules"]), None);
    }

    #[test]
    fn whatever_is_left_out_the_rest_fits_and_nothing_kept_is_in_it() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2000 {
            let name = |random: &mut fastrand::Rng| {
                let depth = random.usize(1..4);
                (0..depth)
                    .map(|_| random.choice(["a", "b", "c"]).unwrap())
                    .collect::<Vec<_>>()
                    .join("/")
            };
            let folders: Vec<(String, u64)> = (0..random.usize(1..12))
                .map(|_| (name(&mut random), random.u64(0..30)))
                .collect();
            let folders: Vec<(&str, u64)> = folders
                .iter()
                .map(|(path, files)| (path.as_str(), *files))
                .collect();
            let kept = name(&mut random);
            let max = random.u64(0..120);
            let untracked = counted(max, &folders);
            let is_kept = |path: &RepoPath| Ok(RepoPath::from(kept.as_str()).starts_with(path));
            let Some(out) = untracked.folders_to_leave_out(is_kept).unwrap() else {
                continue;
            };
            let is_out = |path: &RepoPath| out.keys().any(|folder| path.starts_with(folder));
            let left: u64 = folders
                .iter()
                .filter(|(path, _)| !is_out(&RepoPath::from(*path)))
                .map(|(_, files)| files)
                .sum();
            assert!(left <= max, "{folders:?} {out:?}");
            assert!(!is_out(&RepoPath::from(kept.as_str())), "{kept} {out:?}");
            for (folder, files) in &out {
                let inside = folders
                    .iter()
                    .filter(|(path, _)| RepoPath::from(*path).starts_with(folder));
                assert_eq!(inside.map(|(_, files)| files).sum::<u64>(), *files);
                assert!(
                    out.keys()
                        .all(|other| other == folder || !other.starts_with(folder)),
                    "{out:?}"
                );
            }
        }
    }

    #[test]
    fn the_folder_with_most_of_it_is_named() {
        let rules = CaptureRules {
            max_untracked_files: 10,
            ..CaptureRules::default()
        };
        let mut untracked = UntrackedLimit::new(&rules, false);
        untracked.add(&RepoPath::default(), 1, 1).unwrap();
        let error = (0..20)
            .find_map(|_| untracked.add(&RepoPath::from("a/b"), 1, 1).err())
            .unwrap();
        let Error::UntrackedFlood { folder, files, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((folder, files), (RepoPath::from("a/b"), 11));
    }
}
