//! What a restore writes and deletes: a pure function of what is there now and what the target holds.
//!
//! Only paths that the safety capture (`now`) holds are ever deleted or overwritten. What one side did not capture, what
//! either side left out as ignored and what lies in a nested repository is kept and listed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::manifest::{Entry, EntryKind, Snapshot};
use crate::model::path::{Blocked, NESTED, PathReason, RepoPath};

use super::path_filter::Selection;

/// What the run last wrote to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// Nothing is known: no change of this path is taken for a hand edit.
    Unknown,
    /// The path was not there.
    Absent,
    /// This.
    Present(Entry),
    /// Something else than what is there now, whatever that is.
    Another,
}

/// What becomes of paths that a person edited since the run last wrote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edits {
    /// The restore is refused: the caller stops when `hand_edits` is not empty.
    #[default]
    Refuse,
    /// They stay as they are and are listed in `kept`.
    Keep,
    /// They are restored over; the safety checkpoint has them.
    Discard,
}

/// Why the file that this program's own output goes to is kept.
pub(crate) const OUTPUT: &str = "recover's own output goes to it";

/// Why a path is kept that a person edited.
pub(crate) const EDITED_BY_HAND: &str = "edited by hand";

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

/// A change of one path: from what is there now to what shall be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedWrite {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// What is there now; `None` if nothing is.
    pub from: Option<Entry>,
    /// What shall be there; a file or a symlink.
    pub entry: Entry,
}

/// The removal of a file or symlink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedDelete {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// What is there now.
    pub from: Entry,
}

/// New permission bits of a file or folder whose content stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedMode {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// Permission bits now.
    pub from: u32,
    /// Permission bits wanted.
    pub mode: u32,
}

/// A folder to make or remove, with its permission bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedDir {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// Permission bits.
    pub mode: u32,
}

/// Everything a restore does, in the order in which it is done: lend rights, delete, remove folders (deepest first), make
/// folders (outermost first), write, modes. All lists are sorted by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestorePlan {
    /// Folders whose owner lacks rights, and has them until the restore is done. The work tree's root may be among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lend: Vec<PlannedMode>,
    /// Files and symlinks to delete.
    pub delete: Vec<PlannedDelete>,
    /// Folders to remove, if they are empty by then.
    pub remove_dirs: Vec<PlannedDir>,
    /// Folders to make.
    pub make_dirs: Vec<PlannedDir>,
    /// Files and symlinks to write.
    pub write: Vec<PlannedWrite>,
    /// Files and folders whose permissions change.
    pub set_mode: Vec<PlannedMode>,
    /// What is left as it is on purpose.
    pub kept: Vec<PathReason>,
    /// Those of them that are unlike the target and could not be replaced, as they could not be captured first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<PathReason>,
    /// Paths that somebody edited since the run last wrote them.
    pub hand_edits: Vec<RepoPath>,
    /// What stands in the way; a plan with conflicts must not be carried out.
    pub conflicts: Vec<PathReason>,
}

impl RestorePlan {
    /// Whether nothing would be touched.
    pub fn is_empty(&self) -> bool {
        self.delete.is_empty()
            && self.remove_dirs.is_empty()
            && self.make_dirs.is_empty()
            && self.write.is_empty()
            && self.set_mode.is_empty()
    }

    /// What is there now of every path that is overwritten or deleted.
    pub fn overwritten(&self) -> impl Iterator<Item = (&RepoPath, &Entry)> {
        let deleted = self
            .delete
            .iter()
            .map(|delete| (&delete.path, &delete.from));
        deleted.chain(
            self.write
                .iter()
                .filter_map(|write| Some((&write.path, write.from.as_ref()?))),
        )
    }

    /// Every path that it touches.
    pub fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        let folders = self
            .remove_dirs
            .iter()
            .chain(&self.make_dirs)
            .map(|dir| &dir.path);
        let files = self
            .delete
            .iter()
            .map(|delete| &delete.path)
            .chain(self.write.iter().map(|write| &write.path));
        folders
            .chain(files)
            .chain(self.set_mode.iter().map(|set| &set.path))
    }

    /// Every path that it touches, and whether a name changes: else it is only its mode.
    pub fn changes(&self) -> BTreeMap<&RepoPath, bool> {
        let modes = self.set_mode.iter().map(|set| (&set.path, false));
        let folders = self
            .remove_dirs
            .iter()
            .chain(&self.make_dirs)
            .map(|dir| &dir.path);
        let files = self
            .delete
            .iter()
            .map(|delete| &delete.path)
            .chain(self.write.iter().map(|write| &write.path));
        modes
            .chain(folders.chain(files).map(|path| (path, true)))
            .collect()
    }

    /// Takes paths out that the system does not let be replaced, with all that depends on them: folders that hold them and
    /// were to go, and what was to be put where they are. Returns all of these, sorted.
    pub fn leave_blocked(&mut self, mut blocked: BTreeMap<RepoPath, Blocked>) -> Vec<PathReason> {
        if blocked.is_empty() {
            return Vec::new();
        }
        let going: BTreeSet<&RepoPath> = self.remove_dirs.iter().map(|dir| &dir.path).collect();
        let deleted: BTreeSet<&RepoPath> = self.delete.iter().map(|delete| &delete.path).collect();
        let staying: Vec<(RepoPath, Blocked)> = blocked
            .iter()
            .filter(|(path, _)| deleted.contains(path) || going.contains(path))
            .flat_map(|(path, why)| {
                path.ancestors()
                    .map(|folder| (folder, *why))
                    .collect::<Vec<_>>()
            })
            .filter(|(folder, _)| going.contains(folder))
            .collect();
        for (folder, why) in staying {
            blocked.entry(folder).or_insert(why);
        }
        let missing: BTreeSet<&RepoPath> = self.make_dirs.iter().map(|dir| &dir.path).collect();
        let unmade = |folder: &RepoPath| {
            blocked
                .get(folder)
                .filter(|_| missing.contains(folder))
                .copied()
        };
        let below: Vec<(RepoPath, Blocked)> = self
            .paths()
            .filter(|path| !blocked.contains_key(path))
            .filter_map(|path| {
                Some((
                    path.clone(),
                    path.ancestors().find_map(|folder| unmade(&folder))?,
                ))
            })
            .collect();
        blocked.extend(below);
        self.delete
            .retain(|delete| !blocked.contains_key(&delete.path));
        self.remove_dirs
            .retain(|dir| !blocked.contains_key(&dir.path));
        self.make_dirs
            .retain(|dir| !blocked.contains_key(&dir.path));
        self.write
            .retain(|write| !blocked.contains_key(&write.path));
        self.set_mode.retain(|set| !blocked.contains_key(&set.path));
        blocked
            .into_iter()
            .map(|(path, why)| reason(&path, why.as_str()))
            .collect()
    }

    /// Lends rights of folders, as they are now, as far as something is changed in them; each ends as the plan says.
    pub fn lend(&mut self, folders: BTreeMap<RepoPath, u32>) {
        if folders.is_empty() {
            return;
        }
        let mut needed: BTreeSet<RepoPath> = self.paths().flat_map(RepoPath::ancestors).collect();
        needed.extend(self.remove_dirs.iter().map(|dir| dir.path.clone()));
        needed.insert(RepoPath::default());
        let wanted = |path: &RepoPath| {
            self.set_mode
                .iter()
                .find(|set| set.path == *path)
                .map(|set| set.mode)
        };
        let lent = folders
            .into_iter()
            .filter(|(path, _)| needed.contains(path));
        let lent = lent
            .map(|(path, from)| PlannedMode {
                mode: wanted(&path).unwrap_or(from),
                from,
                path,
            })
            .collect();
        self.lend = lent;
    }

    /// The plan that takes this one back.
    #[must_use]
    pub fn invert(&self) -> Self {
        let mut inverse = Self::default();
        for write in &self.write {
            match &write.from {
                Some(from) => inverse.write.push(PlannedWrite {
                    path: write.path.clone(),
                    from: Some(write.entry.clone()),
                    entry: from.clone(),
                }),
                None => inverse.delete.push(PlannedDelete {
                    path: write.path.clone(),
                    from: write.entry.clone(),
                }),
            }
        }
        let deleted = self.delete.iter();
        inverse.write.extend(deleted.map(|delete| PlannedWrite {
            path: delete.path.clone(),
            from: None,
            entry: delete.from.clone(),
        }));
        inverse.write.sort_by(|a, b| a.path.cmp(&b.path));
        inverse.make_dirs.clone_from(&self.remove_dirs);
        inverse.remove_dirs.clone_from(&self.make_dirs);
        let back = |set: &PlannedMode| PlannedMode {
            path: set.path.clone(),
            from: set.mode,
            mode: set.from,
        };
        inverse.set_mode = self.set_mode.iter().map(back).collect();
        inverse.lend = self.lend.iter().map(back).collect();
        inverse
    }
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

fn reason(path: &RepoPath, reason: impl Into<String>) -> PathReason {
    PathReason::new(path.clone(), reason)
}

impl Planner<'_> {
    fn path(&mut self, path: &RepoPath) {
        let (now, target) = (
            self.input.now.entries.get(path),
            self.input.target.entries.get(path),
        );
        let left_out = self
            .input
            .left_out
            .iter()
            .any(|folder| path.starts_with(folder));
        if now == target || left_out || !self.input.selection.matches(path) {
            return;
        }
        // An empty folder on one side that holds something on the other is no change of its own but, at most, of its mode.
        let folder =
            |entry: Option<&Entry>| entry.is_some_and(|entry| entry.kind == EntryKind::EmptyDir);
        let stays = (folder(now) && self.input.target.dirs.contains_key(path))
            || (folder(target) && self.input.now.dirs.contains_key(path))
            || (folder(now) && folder(target));
        if stays {
            return;
        }
        if let Some(skipped) = self
            .no_folder_above(path)
            .filter(|_| target.is_some_and(Entry::is_file))
        {
            let why = format!("where the checkpoint has a folder: {}", skipped.reason);
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
        let is_folder = now.is_some_and(|entry| entry.kind == EntryKind::EmptyDir);
        (target.is_none() && (self.input.ignored)(path, is_folder)).then(|| IGNORED.to_owned())
    }

    fn is_hand_edit(&self, path: &RepoPath, now: Option<&Entry>) -> bool {
        match (self.input.baseline)(path) {
            Baseline::Unknown => false,
            Baseline::Another => true,
            Baseline::Absent => now.is_some(),
            Baseline::Present(entry) => now != Some(&entry),
        }
    }

    /// Folders that vanish with their last path, folders that writes need, and modes of folders on both sides.
    fn folders(&mut self) {
        let (now, target) = (self.input.now, self.input.target);
        let is_folder = |path: &RepoPath| {
            target.dirs.contains_key(path)
                || target
                    .entries
                    .get(path)
                    .is_some_and(|entry| entry.kind == EntryKind::EmptyDir)
        };
        let mut staying: Vec<&RepoPath> = Vec::new();
        // The deepest first: a folder that stays keeps those above it.
        for (path, mode) in now.dirs.iter().rev() {
            let all_gone =
                below(&now.entries, path).all(|(inside, _)| self.deleted.contains(inside));
            if !all_gone || is_folder(path) {
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
        let exists = |path: &RepoPath| {
            now.dirs.contains_key(path)
                || now
                    .entries
                    .get(path)
                    .is_some_and(|entry| entry.kind == EntryKind::EmptyDir)
        };
        let placed = self
            .out
            .write
            .iter()
            .map(|write| &write.path)
            .chain(self.out.make_dirs.iter().map(|dir| &dir.path));
        let needed: BTreeSet<RepoPath> = placed
            .flat_map(|path| path.ancestors().collect::<Vec<_>>())
            .collect();
        for path in needed.into_iter().filter(|path| !exists(path)) {
            let mode = target.dirs.get(&path).copied().unwrap_or(0o755);
            self.out.make_dirs.push(PlannedDir { path, mode });
        }
        for (path, from) in folder_modes(now) {
            let Some(mode) = folder_mode(target, path).filter(|mode| *mode != from) else {
                continue;
            };
            let left_out = self
                .input
                .left_out
                .iter()
                .any(|folder| path.starts_with(folder));
            if !left_out
                && self.input.selection.matches(path)
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
        let concerns = |path: &RepoPath| {
            let left_out = self
                .input
                .left_out
                .iter()
                .any(|folder| path.starts_with(folder));
            !left_out && self.input.selection.matches(path) && !listed.contains(path)
        };
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
        // Of a nested repository that could not be captured, nobody can tell what is the same.
        let refused =
            |skipped: &&PathReason| skipped.reason.starts_with(NESTED) && skipped.reason != NESTED;
        for skipped in then
            .values()
            .filter(refused)
            .filter(|skipped| concerns(&skipped.path))
        {
            let reason = format!("{NOT_CAPTURED} in the checkpoint: {}", skipped.reason);
            self.out.kept.push(PathReason {
                reason,
                ..skipped.clone()
            });
        }
        // What became of a captured one is known to those who look into it.
        let gone = then
            .values()
            .filter(|skipped| !skipped.reason.starts_with(NESTED) && concerns(&skipped.path));
        let here =
            |path: &RepoPath| now.dirs.contains_key(path) || covering(&now.skipped, path).is_some();
        for skipped in gone.filter(|skipped| !here(&skipped.path)) {
            let reason = format!("{NOT_CAPTURED} in the checkpoint: {}", skipped.reason);
            self.out.kept.push(PathReason {
                reason,
                ..skipped.clone()
            });
        }
    }

    /// Lists a folder in the place of many ignored paths in it.
    fn gather_ignored(&mut self) {
        let mut folders: BTreeMap<RepoPath, usize> = BTreeMap::new();
        let mut tops = Vec::new();
        for kept in &self.out.kept {
            let top = (kept.reason == IGNORED)
                .then(|| {
                    kept.path
                        .ancestors()
                        .find(|folder| (self.input.ignored)(folder, true))
                })
                .flatten();
            if let Some(top) = &top {
                *folders.entry(top.clone()).or_default() += 1;
            }
            tops.push(top);
        }
        folders.retain(|_, count| *count > FEW_IGNORED);
        let mut tops = tops.into_iter();
        self.out.kept.retain(|_| {
            tops.next()
                .flatten()
                .is_none_or(|top| !folders.contains_key(&top))
        });
        self.out
            .kept
            .extend(folders.keys().map(|folder| reason(folder, IGNORED)));
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
                    format!("where the checkpoint has a folder: {}", skipped.reason),
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
#[path = "restore_plan_tests.rs"]
mod tests;
