//! The plan of a restore: a pure function of what is there now and what the target holds.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Baseline, EDITED_BY_HAND, Edits, OUTPUT, PlannedDelete, PlannedDir, PlannedMode, PlannedWrite,
    RestorePlan, Selection,
};
use crate::model::path::NESTED;
use crate::model::{Entry, EntryKind, PathReason, RepoPath, Snapshot};

/// What a plan is made from.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    /// The safety capture: what is there now.
    pub now: &'a Snapshot,
    /// What shall be there.
    pub target: &'a Snapshot,
    /// What the run last wrote.
    pub baseline: &'a dyn Fn(&RepoPath) -> Baseline,
    /// Which paths may be touched.
    pub selection: &'a Selection,
    /// Whether now or the target left a path out as ignored, or would have: a file, or (`true`) a folder.
    pub ignored: &'a dyn Fn(&RepoPath, bool) -> bool,
    /// Folders that are no part of the work tree (the state folder): nothing in them is touched, or listed.
    pub left_out: &'a BTreeSet<RepoPath>,
    /// Whether a path is what this program itself says, or said while the run was at work: that is nobody's edit, and
    /// stays.
    pub is_output: &'a dyn Fn(&RepoPath) -> bool,
    /// What becomes of hand edits.
    pub edits: Edits,
}

/// Makes the plan.
pub fn plan(input: &PlanInput<'_>) -> RestorePlan {
    let mut planner = Planner {
        input,
        out: RestorePlan::default(),
        deleted: BTreeSet::new(),
    };
    let paths: BTreeSet<&RepoPath> = input
        .now
        .entries
        .keys()
        .chain(input.target.entries.keys())
        .collect();
    for path in paths {
        planner.path(path);
    }
    planner.folders();
    planner.conflicts();
    planner.not_captured();
    planner.out.kept.sort();
    planner.out.kept.dedup();
    planner.gather_ignored();
    planner.out.conflicts.sort();
    planner.out.conflicts.dedup();
    planner.out
}

struct Planner<'a> {
    input: &'a PlanInput<'a>,
    out: RestorePlan,
    /// Files and empty folders of now that go away.
    deleted: BTreeSet<RepoPath>,
}

/// Whether a path is selected, and part of the work tree.
fn is_concerned(input: &PlanInput<'_>, path: &RepoPath) -> bool {
    let is_out = input.left_out.iter().any(|folder| path.starts_with(folder));
    !is_out && input.selection.matches(path)
}

fn is_empty_folder(entry: Option<&Entry>) -> bool {
    entry.is_some_and(|entry| entry.kind == EntryKind::EmptyDir)
}

pub(super) fn reason(path: &RepoPath, reason: impl Into<String>) -> PathReason {
    PathReason::new(path.clone(), reason)
}

impl Planner<'_> {
    fn path(&mut self, path: &RepoPath) {
        let (now, target) = (
            self.input.now.entries.get(path),
            self.input.target.entries.get(path),
        );
        if now == target || !is_concerned(self.input, path) {
            return;
        }
        // An empty folder on one side that holds something on the other is no change of its own but, at most, of its mode.
        let (from_folder, to_folder) = (is_empty_folder(now), is_empty_folder(target));
        let stays = (from_folder && self.input.target.dirs.contains_key(path))
            || (to_folder && self.input.now.dirs.contains_key(path))
            || (from_folder && to_folder);
        if stays {
            return;
        }
        if let Some(skipped) = self
            .no_folder_above(path)
            .filter(|_| target.is_some_and(Entry::is_file))
        {
            let why = format!("{IN_PLACE_OF_FOLDER}: {}", skipped.reason);
            self.out.conflicts.push(reason(&skipped.path, why));
            return;
        }
        if let Some(skipped) =
            covering(&self.input.now.skipped, path).filter(|skipped| skipped.is_unreadable())
        {
            // What is there cannot be kept first, so it is not written over: the whole restore is refused.
            self.out.conflicts.push(reason(path, &*skipped.reason));
            return;
        }
        if let Some(why) = self.protected(path, now, target) {
            let kept = reason(path, why);
            if covering(&self.input.now.skipped, path).is_some()
                && covering(&self.input.target.skipped, path).is_none()
            {
                self.out.left.push(kept.clone());
            }
            self.out.kept.push(kept);
            return;
        }
        if self.is_hand_edit(path, now) {
            self.out.hand_edits.push(path.clone());
            if self.input.edits == Edits::Keep {
                self.out.kept.push(reason(path, EDITED_BY_HAND));
                return;
            }
        }
        self.change(path, now, target);
    }

    fn change(&mut self, path: &RepoPath, now: Option<&Entry>, target: Option<&Entry>) {
        if let (Some(from), Some(to)) = (now, target)
            && from.is_file()
            && from.kind == to.kind
            && from.oid == to.oid
        {
            self.out.set_mode.push(PlannedMode {
                path: path.clone(),
                from: from.mode,
                mode: to.mode,
            });
            return;
        }
        let overwritten = now.is_some_and(Entry::is_file) && target.is_some_and(Entry::is_file);
        if let Some(from) = now.filter(|_| !overwritten) {
            self.deleted.insert(path.clone());
            if from.is_file() {
                self.out.delete.push(PlannedDelete {
                    path: path.clone(),
                    from: from.clone(),
                });
            } else {
                self.out.remove_dirs.push(PlannedDir {
                    path: path.clone(),
                    mode: from.mode,
                });
            }
        }
        match target {
            Some(entry) if entry.is_file() => {
                let from = now.filter(|_| overwritten).cloned();
                self.out.write.push(PlannedWrite {
                    path: path.clone(),
                    from,
                    entry: entry.clone(),
                });
            }
            Some(entry) => self.out.make_dirs.push(PlannedDir {
                path: path.clone(),
                mode: entry.mode,
            }),
            None => {}
        }
    }

    /// What was not captured and, being no folder, cannot hold the path: it is in the way.
    fn no_folder_above(&self, path: &RepoPath) -> Option<&PathReason> {
        let mut skipped = self.input.now.skipped.iter();
        skipped.find(|skipped| {
            skipped.size.is_some() && skipped.path != *path && path.starts_with(&skipped.path)
        })
    }

    /// Why a path must stay as it is.
    fn protected(
        &self,
        path: &RepoPath,
        now: Option<&Entry>,
        target: Option<&Entry>,
    ) -> Option<String> {
        let gitlink =
            |entry: Option<&Entry>| entry.is_some_and(|entry| entry.kind == EntryKind::Gitlink);
        if gitlink(now) || gitlink(target) {
            return Some("nested repository".to_owned());
        }
        if let Some(skipped) = covering(&self.input.now.skipped, path) {
            return Some(format!("{NOT_CAPTURED}: {}", skipped.reason));
        }
        if let Some(skipped) = covering(&self.input.target.skipped, path) {
            return Some(format!(
                "{NOT_CAPTURED} in the checkpoint: {}",
                skipped.reason
            ));
        }
        if (self.input.is_output)(path) {
            return Some(OUTPUT.to_owned());
        }
        // What the target holds was captured now as well before it is written over; a deletion has no such ground.
        (target.is_none() && (self.input.ignored)(path, is_empty_folder(now)))
            .then(|| IGNORED.to_owned())
    }

    fn is_hand_edit(&self, path: &RepoPath, now: Option<&Entry>) -> bool {
        match (self.input.baseline)(path) {
            Baseline::Unknown => false,
            Baseline::Another => true,
            Baseline::Absent => now.is_some(),
            // The files of a nested repository take its place, each with a baseline of its own.
            Baseline::Present(entry) if entry.kind == EntryKind::Gitlink && now.is_none() => {
                !self.input.now.dirs.contains_key(path)
            }
            Baseline::Present(entry) => now != Some(&entry),
        }
    }

    /// Folders that vanish with their last path, folders that writes need, and modes of folders on both sides.
    fn folders(&mut self) {
        let (now, target) = (self.input.now, self.input.target);
        let has_folder = |snapshot: &Snapshot, path: &RepoPath| {
            snapshot.dirs.contains_key(path) || is_empty_folder(snapshot.entries.get(path))
        };
        let mut staying: Vec<&RepoPath> = Vec::new();
        // The deepest first: a folder that stays keeps those above it.
        for (path, mode) in now.dirs.iter().rev() {
            let all_gone =
                below(&now.entries, path).all(|(inside, _)| self.deleted.contains(inside));
            if !all_gone || has_folder(target, path) {
                continue;
            }
            let hidden = now
                .skipped
                .iter()
                .chain(&target.skipped)
                .any(|skipped| skipped.path.starts_with(path));
            if hidden {
                self.out
                    .kept
                    .push(reason(path, "holds files that were not captured"));
                staying.push(path);
            } else if !staying.iter().any(|inside| inside.starts_with(path)) {
                self.out.remove_dirs.push(PlannedDir {
                    path: path.clone(),
                    mode: *mode,
                });
            }
        }
        let placed = self
            .out
            .write
            .iter()
            .map(|write| &write.path)
            .chain(self.out.make_dirs.iter().map(|dir| &dir.path));
        let needed: BTreeSet<RepoPath> = placed
            .flat_map(|path| path.ancestors().collect::<Vec<_>>())
            .collect();
        for path in needed.into_iter().filter(|path| !has_folder(now, path)) {
            let mode = target.dirs.get(&path).copied().unwrap_or(0o755);
            self.out.make_dirs.push(PlannedDir { path, mode });
        }
        for (path, from) in folder_modes(now) {
            let Some(mode) = folder_mode(target, path).filter(|mode| *mode != from) else {
                continue;
            };
            if is_concerned(self.input, path)
                && self.protected(path, None, Some(&PLACEHOLDER)).is_none()
            {
                self.out.set_mode.push(PlannedMode {
                    path: path.clone(),
                    from,
                    mode,
                });
            }
        }
        self.out.remove_dirs.sort_by(|a, b| a.path.cmp(&b.path));
        self.out.make_dirs.sort_by(|a, b| a.path.cmp(&b.path));
        self.out.set_mode.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// What neither side captured and is not the same on both, as far as can be known.
    fn not_captured(&mut self) {
        let (now, target) = (self.input.now, self.input.target);
        let by_path = |skipped: &'_ [PathReason]| {
            skipped
                .iter()
                .map(|one| (one.path.clone(), one.clone()))
                .collect::<BTreeMap<_, _>>()
        };
        let (here, then) = (by_path(&now.skipped), by_path(&target.skipped));
        let listed: BTreeSet<RepoPath> =
            self.out.kept.iter().map(|kept| kept.path.clone()).collect();
        let input = self.input;
        let concerns = |path: &RepoPath| is_concerned(input, path) && !listed.contains(path);
        for skipped in here.values().filter(|skipped| concerns(&skipped.path)) {
            let nested = skipped.reason.starts_with(NESTED);
            let same = |before: &PathReason| {
                nested || (before.reason == skipped.reason && before.size == skipped.size)
            };
            if !then.get(&skipped.path).is_some_and(same) {
                let why = if nested {
                    NESTED.to_owned()
                } else {
                    format!("{NOT_CAPTURED}: {}", skipped.reason)
                };
                let kept = PathReason {
                    reason: why,
                    ..skipped.clone()
                };
                // Of a nested repository those know more who look into it.
                if !nested && covering(&target.skipped, &skipped.path).is_none() {
                    self.out.left.push(kept.clone());
                }
                self.out.kept.push(kept);
            }
        }
        // Of a nested repository that could not be captured, nobody can tell what is the same. What became of one that was
        // captured is known to those who look into it.
        let here =
            |path: &RepoPath| now.dirs.contains_key(path) || covering(&now.skipped, path).is_some();
        let is_unknown = |skipped: &&PathReason| {
            let is_nested = skipped.reason.starts_with(NESTED);
            skipped.reason != NESTED && (is_nested || !here(&skipped.path))
        };
        let unknown = then.values().filter(is_unknown);
        let unknown = unknown.filter(|skipped| concerns(&skipped.path));
        self.out.kept.extend(unknown.map(|skipped| PathReason {
            reason: format!("{NOT_CAPTURED} in the checkpoint: {}", skipped.reason),
            ..skipped.clone()
        }));
    }

    /// Lists a folder in the place of many ignored paths in it.
    fn gather_ignored(&mut self) {
        let ignored = self.input.ignored;
        let top = |kept: &PathReason| {
            let mut folders = kept.path.ancestors().filter(|_| kept.reason == IGNORED);
            folders.find(|folder| ignored(folder, true))
        };
        let mut folders: BTreeMap<RepoPath, usize> = BTreeMap::new();
        for folder in self.out.kept.iter().filter_map(top) {
            *folders.entry(folder).or_default() += 1;
        }
        folders.retain(|_, count| *count > FEW_IGNORED);
        let kept = &mut self.out.kept;
        kept.retain(|kept| top(kept).is_none_or(|top| !folders.contains_key(&top)));
        kept.extend(folders.keys().map(|folder| reason(folder, IGNORED)));
        self.out.kept.sort();
    }

    /// Paths that stay although something else must stand there.
    fn conflicts(&mut self) {
        let now = self.input.now;
        for path in self.out.make_dirs.iter().map(|dir| &dir.path) {
            if now.entries.get(path).is_some_and(Entry::is_file) && !self.deleted.contains(path) {
                self.out.conflicts.push(reason(
                    path,
                    "a file that stays is where the checkpoint has a folder",
                ));
            }
            let hidden = now.skipped.iter().find(|skipped| skipped.path == *path);
            if let Some(skipped) = hidden {
                self.out.conflicts.push(reason(
                    path,
                    format!("{IN_PLACE_OF_FOLDER}: {}", skipped.reason),
                ));
            }
        }
        for path in self.out.write.iter().map(|write| &write.path) {
            let staying =
                below(&now.entries, path).find(|(inside, _)| !self.deleted.contains(*inside));
            let hidden = now
                .skipped
                .iter()
                .find(|skipped| skipped.path.starts_with(path) && skipped.path != *path);
            let removed = self
                .out
                .remove_dirs
                .binary_search_by(|dir| dir.path.cmp(path))
                .is_ok();
            let folder_stays = now.dirs.contains_key(path) && !removed;
            if staying.is_some() || hidden.is_some() || folder_stays {
                self.out.conflicts.push(reason(
                    path,
                    "a folder with files that stay is where the checkpoint has a file",
                ));
            }
        }
    }
}

const IGNORED: &str = "ignored";
/// How the reason begins of what was not captured and is no folder, where the target has one.
pub(super) const IN_PLACE_OF_FOLDER: &str = "where the checkpoint has a folder";
/// How the reason begins of what a capture left out.
const NOT_CAPTURED: &str = "not captured";
/// More ignored paths in an ignored folder than this are listed as that folder.
const FEW_IGNORED: usize = 20;

/// Stands for a folder where only the path matters.
const PLACEHOLDER: Entry = Entry {
    kind: EntryKind::EmptyDir,
    oid: crate::model::manifest::ObjectId(String::new()),
    mode: 0,
};

/// The skipped path that is, or holds, `path`.
fn covering<'a>(skipped: &'a [PathReason], path: &RepoPath) -> Option<&'a PathReason> {
    skipped
        .iter()
        .find(|skipped| path.starts_with(&skipped.path))
}

/// The entries below a folder, itself excluded.
fn below<'a>(
    entries: &'a BTreeMap<RepoPath, Entry>,
    folder: &RepoPath,
) -> impl Iterator<Item = (&'a RepoPath, &'a Entry)> + use<'a> {
    let start = folder.join(b"");
    let first = start.clone();
    entries
        .range(&first..)
        .take_while(move |(path, _)| path.as_bytes().starts_with(start.as_bytes()))
}

fn folder_mode(snapshot: &Snapshot, path: &RepoPath) -> Option<u32> {
    let empty = || {
        snapshot
            .entries
            .get(path)
            .filter(|entry| entry.kind == EntryKind::EmptyDir)
            .map(|entry| entry.mode)
    };
    snapshot.dirs.get(path).copied().or_else(empty)
}

fn folder_modes(snapshot: &Snapshot) -> impl Iterator<Item = (&RepoPath, u32)> {
    let empty = snapshot
        .entries
        .iter()
        .filter(|(_, entry)| entry.kind == EntryKind::EmptyDir);
    snapshot
        .dirs
        .iter()
        .map(|(path, mode)| (path, *mode))
        .chain(empty.map(|(path, entry)| (path, entry.mode)))
}

#[cfg(test)]
mod tests;
