//! Restores nested repositories together with the work tree around them.
//! Their files are planned, written and taken back from the copies in the outer object database.
//!
//! One that is gone (its folder, its `.git`, or both) is a folder of the work tree like any other by now: its files come back
//! unasked. One that is there is only touched where that was asked for, and then only its files: its HEAD, index and
//! branches are its own.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::request::{NestedAction, NestedOutcome, RestoreRequest};
use crate::engine::base::{Context, Result};
use crate::engine::record::nested::NestedCapture;
use crate::engine::record::storage::Prepared;
use crate::git::Repo;
use crate::git::checkpoint::{NestedCopy, StoredCheckpoint};
use crate::git::tree::{TreeIgnores, TreeLookup};
use crate::model::operation::GitFile;
use crate::model::path::NESTED;
use crate::model::{
    EntryKind, Head, Hint, Manifest, Nested, ObjectId, PathReason, RepoPath, Snapshot,
};
use crate::policy::restore::Selection;

/// One whose files take part in the plan.
#[derive(Debug)]
struct Graft {
    path: RepoPath,
    /// Whether it is a repository now.
    is_there: bool,
    /// What shall be there; nothing where it goes.
    then: Option<NestedCopy>,
    /// The permissions of its folder then.
    mode: Option<u32>,
}

/// Nested repositories as far as they differ from a checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Grafts {
    all: Vec<Graft>,
    /// What becomes of each, by path.
    pub outcomes: Vec<NestedOutcome>,
    /// What is left as it is.
    pub kept: Vec<PathReason>,
    /// Those of them whose files are unlike the checkpoint's, or that it does not have.
    pub left: Vec<PathReason>,
    /// `.git` files to put there.
    pub place: Vec<GitFile>,
    /// `.git` files to take away.
    pub remove: Vec<GitFile>,
}

/// Compares the nested repositories of `stored` with those that were captured now.
pub(super) fn grafts(
    context: &Context,
    prepared: &Prepared,
    stored: &StoredCheckpoint,
    request: &RestoreRequest,
    selection: &Selection,
) -> Result<Grafts> {
    let outer = context.repo()?;
    let mut finder = Finder {
        outer,
        prepared,
        request,
        selection,
        met: BTreeSet::new(),
        out: Grafts::default(),
    };
    finder.placed(&stored.manifest.nested)?;
    finder.level(&RepoPath::default(), &stored.manifest.nested, &|path| {
        Ok(stored.nested_copy(outer, path)?)
    })?;
    finder.new_ones(&prepared.nested);
    finder.uncaptured(&stored.manifest);
    let mut out = finder.out;
    out.outcomes.sort_by(|a, b| a.path.cmp(&b.path));
    out.kept.sort();
    Ok(out)
}

struct Finder<'a> {
    outer: &'a Repo,
    prepared: &'a Prepared,
    request: &'a RestoreRequest,
    selection: &'a Selection,
    /// Those that the checkpoint has.
    met: BTreeSet<RepoPath>,
    out: Grafts,
}

type CopyOf<'c> = &'c dyn Fn(&RepoPath) -> Result<Option<NestedCopy>>;

impl Finder<'_> {
    /// The repositories that one, or the work tree itself, holds in the checkpoint.
    fn level(&mut self, above: &RepoPath, links: &[Nested], copy: CopyOf<'_>) -> Result<()> {
        for link in links {
            let path = above.join(link.path.as_bytes());
            self.met.insert(path.clone());
            let now = find(&self.prepared.nested, &path);
            match (&link.checkpoint, now) {
                (None, None) => {}
                (None, Some(_)) if self.takes_part(&path) => {}
                (None, Some(_)) => self.keep(&path, "it was not captured in the checkpoint"),
                (Some(commit), Some(one)) if one.is(commit) => {}
                (Some(commit), Some(one)) if one.has_files_of(commit) => {
                    self.keep(
                        &path,
                        "its files are as the checkpoint has them, its HEAD or its index is not",
                    );
                }
                (Some(commit), Some(one)) => self.differing(&path, link, (commit, one), copy)?,
                (Some(commit), None) => self.missing(&path, link, commit, copy)?,
            }
        }
        Ok(())
    }

    fn differing(
        &mut self,
        path: &RepoPath,
        link: &Nested,
        (commit, one): (&ObjectId, &NestedCapture),
        copy: CopyOf<'_>,
    ) -> Result<()> {
        let copied = if self.request.options.nested {
            copy(&link.path)?
        } else {
            None
        };
        let Some(copied) = copied else {
            let command = self.own_command(path, commit);
            let all = if self.request.options.nested {
                ""
            } else {
                "--nested restores it too; "
            };
            self.leave(
                path,
                &format!("{all}its own part of the checkpoint comes back with: {command}"),
            );
            return Ok(());
        };
        let (now, then) = (&one.capture.head, &copied.manifest.head);
        let stays = (now != then).then(|| {
            format!(
                "its HEAD stays at {}; the checkpoint has it at {}",
                at(now),
                at(then)
            )
        });
        if let Some(stays) = &stays {
            self.kept(path, &format!("{NESTED}; its files are restored, {stays}"));
        }
        self.prepared.capture.show_trees(self.outer, &one.capture)?;
        self.tell(path, NestedAction::Restored, stays);
        self.graft_all(path, true, copied, link.mode)
    }

    /// One whose files take part, with those inside it.
    fn graft_all(
        &mut self,
        path: &RepoPath,
        is_there: bool,
        then: NestedCopy,
        mode: Option<u32>,
    ) -> Result<()> {
        let (outer, inner) = (self.outer, then.clone());
        self.graft(path, is_there, Some(then), mode);
        self.level(path, &inner.manifest.nested, &|path| {
            Ok(inner.inner(outer, path)?)
        })
    }

    /// One that was not captured now: it is gone, or it is out of reach.
    fn missing(
        &mut self,
        path: &RepoPath,
        link: &Nested,
        commit: &ObjectId,
        copy: CopyOf<'_>,
    ) -> Result<()> {
        if self.outer.has_nested(path) {
            let mut skipped = self.prepared.capture.manifest.skipped.iter();
            let skipped = skipped.find(|skipped| skipped.path == *path);
            let why = skipped.map_or("it is not captured now", |skipped| skipped.reason.as_str());
            let rest = why.strip_prefix(NESTED);
            self.leave(path, rest.map_or(why, |rest| rest.trim_start_matches(": ")));
            return Ok(());
        }
        let Some(copied) = copy(&link.path)? else {
            if let Some(file) = self
                .outer
                .kept_git_file(path)
                .filter(|_| self.selection.matches(path))
            {
                self.out.place.push(file);
                let command = self.own_command(path, commit);
                let reason =
                    format!("{NESTED}; its own part of the checkpoint comes back with: {command}");
                self.kept(path, &reason);
                self.left(path, &reason);
                self.tell(path, NestedAction::Relinked, None);
                return Ok(());
            }
            let why = format!(
                "the repository was deleted, and its part of the checkpoint ({commit}) with it"
            );
            self.leave(path, &why);
            return Ok(());
        };
        if let Some(file) = self.outer.kept_git_file(path) {
            if self.selection.matches(path) {
                self.out.place.push(file);
                self.tell(path, NestedAction::Relinked, None);
            }
        } else {
            let why = "its own .git is gone: its files come back from the checkpoint, its commits, branches and index do not";
            self.kept(path, why);
            self.tell(path, NestedAction::FilesRestored, Some(why.to_owned()));
        }
        self.graft_all(path, false, copied, link.mode)
    }

    /// What the operation that is taken back has made a repository's folder again.
    fn placed(&mut self, then: &[Nested]) -> Result<()> {
        let undone = self.request.undoes.as_ref();
        for file in undone.iter().flat_map(|entry| &entry.nested.placed) {
            let Some(one) = find(&self.prepared.nested, &file.path) else {
                continue;
            };
            let was_there = then
                .iter()
                .any(|link| link.path == file.path && link.checkpoint.is_some());
            if was_there || !self.outer.has_git_file(file) {
                continue;
            }
            self.met.insert(file.path.clone());
            self.prepared.capture.show_trees(self.outer, &one.capture)?;
            self.graft(&file.path, true, None, None);
            self.out.remove.push(file.clone());
            self.tell(&file.path, NestedAction::Removed, None);
        }
        Ok(())
    }

    /// Repositories that the checkpoint does not have. What lies in one that is left alone is left alone with it.
    fn new_ones(&mut self, captures: &[NestedCapture]) {
        for one in captures {
            if !self.met.contains(&one.whole) {
                self.leave(&one.whole, "it is not in the checkpoint");
            } else if self.takes_part(&one.whole) {
                self.new_ones(&one.inner);
            }
        }
    }

    /// Repositories that could not be captured, and were not skipped in the checkpoint: listed as kept.
    fn uncaptured(&mut self, then: &Manifest) {
        let prepared = self.prepared;
        let manifest = &prepared.capture.manifest;
        for nested in &manifest.nested {
            let skipped = manifest
                .skipped
                .iter()
                .find(|skipped| skipped.path == nested.path);
            if let Some(skipped) = skipped.filter(|skipped| !then.skipped.contains(skipped))
                && !self.met.contains(&nested.path)
            {
                self.kept(&nested.path, &skipped.reason);
                if then.skipped.iter().all(|one| one.path != nested.path) {
                    self.left(&nested.path, &skipped.reason);
                }
                self.tell(
                    &nested.path,
                    NestedAction::Kept,
                    Some(skipped.reason.clone()),
                );
            }
        }
    }

    /// The command that restores the part that it has itself.
    fn own_command(&self, path: &RepoPath, commit: &ObjectId) -> Hint {
        let words = ["checkpoint", "restore", &commit.0, "--edits", "discard"];
        Hint::recover(words).at(path.below(self.outer.workdir()))
    }

    fn takes_part(&self, path: &RepoPath) -> bool {
        self.out.all.iter().any(|graft| graft.path == *path)
    }

    fn graft(
        &mut self,
        path: &RepoPath,
        is_there: bool,
        then: Option<NestedCopy>,
        mode: Option<u32>,
    ) {
        self.out.all.push(Graft {
            path: path.clone(),
            is_there,
            then,
            mode,
        });
    }

    /// Keeps one that is not as the checkpoint has it.
    fn leave(&mut self, path: &RepoPath, why: &str) {
        self.keep(path, why);
        self.left(path, &format!("{NESTED}; {why}"));
    }

    fn left(&mut self, path: &RepoPath, reason: &str) {
        if self.selection.matches(path) {
            self.out.left.push(PathReason::new(path.clone(), reason));
        }
    }

    fn keep(&mut self, path: &RepoPath, why: &str) {
        let reason = format!("{NESTED}; {why}");
        self.kept(path, &reason);
        self.tell(path, NestedAction::Kept, Some(reason));
    }

    fn kept(&mut self, path: &RepoPath, reason: &str) {
        if self.selection.matches(path) {
            self.out.kept.push(PathReason::new(path.clone(), reason));
        }
    }

    fn tell(&mut self, path: &RepoPath, action: NestedAction, reason: Option<String>) {
        if self.selection.matches(path) || action != NestedAction::Kept && !self.selection.is_all()
        {
            self.out.outcomes.push(NestedOutcome {
                path: path.clone(),
                action,
                reason,
            });
        }
    }
}

/// The capture of the repository at a path of the outermost work tree.
pub(super) fn find<'c>(
    captures: &'c [NestedCapture],
    path: &RepoPath,
) -> Option<&'c NestedCapture> {
    captures.iter().find_map(|one| {
        if one.whole == *path {
            Some(one)
        } else {
            find(&one.inner, path)
        }
    })
}

fn at(head: &Head) -> String {
    let commit = head.commit.as_ref().map_or("no commit", ObjectId::short);
    match &head.branch {
        Some(branch) => format!("{commit} ({})", branch.trim_start_matches("refs/heads/")),
        None => commit.to_owned(),
    }
}

/// A path in a folder, seen from that folder.
pub(super) fn inside(path: &RepoPath, folder: &RepoPath) -> RepoPath {
    RepoPath::new(
        path.as_bytes()
            .get(folder.as_bytes().len() + 1..)
            .unwrap_or_default(),
    )
}

pub(super) fn is_below(path: &RepoPath, folder: &RepoPath) -> bool {
    path != folder && path.starts_with(folder)
}

/// Adds what a nested repository's snapshot has, below its folder.
fn add(snapshot: &mut Snapshot, folder: &RepoPath, inner: Snapshot) {
    let whole = |path: RepoPath| folder.join(path.as_bytes());
    let entries = inner.entries.into_iter();
    snapshot
        .entries
        .extend(entries.map(|(path, entry)| (whole(path), entry)));
    let dirs = inner.dirs.into_iter();
    snapshot
        .dirs
        .extend(dirs.map(|(path, mode)| (whole(path), mode)));
    let skipped = inner.skipped.into_iter().map(|skipped| PathReason {
        path: whole(skipped.path.clone()),
        ..skipped
    });
    snapshot.skipped.extend(skipped);
    snapshot.skipped.sort();
    snapshot.skipped.dedup();
}

/// The permissions of a folder on disk; `None` where there is none.
fn mode_of(root: &Path, folder: &RepoPath) -> Option<u32> {
    let found = std::fs::symlink_metadata(folder.below(root))
        .ok()
        .filter(std::fs::Metadata::is_dir)?;
    Some(found.permissions().mode() & 0o7777)
}

/// The ignore rules of those repositories whose files take part.
pub(crate) struct InnerRules<'l>(Vec<(RepoPath, Vec<TreeIgnores<'l>>)>);

impl InnerRules<'_> {
    /// Whether the rules of now or of then, of the repository that holds it, ignore a path; `None` where none holds it.
    pub(crate) fn ignore(&self, path: &RepoPath, is_folder: bool) -> Result<Option<bool>> {
        let of = self.0.iter().filter(|(folder, _)| is_below(path, folder));
        let Some((folder, rules)) = of.max_by_key(|(folder, _)| folder.as_bytes().len()) else {
            return Ok(None);
        };
        let path = inside(path, folder);
        for rules in rules {
            if rules.has(&path, is_folder)? {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }
}

impl Grafts {
    /// Whether no `.git` file is put anywhere or taken away.
    pub(crate) fn is_empty(&self) -> bool {
        self.place.is_empty() && self.remove.is_empty()
    }

    /// Adds what they hold and held to what is there and what shall be there.
    pub(crate) fn merge(
        &mut self,
        outer: &Repo,
        prepared: &Prepared,
        then: &StoredCheckpoint,
        (now, target): (&mut Snapshot, &mut Snapshot),
    ) -> Result<()> {
        let objects = prepared.capture.objects();
        let lookup = TreeLookup::new(&objects)?;
        let root = outer.workdir();
        for graft in &self.all {
            let path = &graft.path;
            let is_link = |snapshot: &Snapshot| {
                snapshot
                    .entries
                    .get(path)
                    .is_some_and(|one| one.kind == EntryKind::Gitlink)
            };
            for snapshot in [&mut *now, &mut *target] {
                if is_link(snapshot) {
                    snapshot.entries.remove(path);
                }
            }
            let mut stays = true;
            match (
                find(&prepared.nested, path).filter(|_| graft.is_there),
                &graft.then,
            ) {
                (Some(one), Some(copy)) => {
                    let (inner, wanted) = lookup.diff(one.capture.view(), copy.view())?;
                    add(now, path, inner);
                    add(target, path, wanted);
                }
                (Some(one), None) => {
                    add(now, path, one.capture.view().snapshot(&lookup)?);
                    let was_linked = then.manifest.nested.iter().any(|link| link.path == *path);
                    stays = was_linked || target.dirs.contains_key(path);
                }
                (None, Some(copy)) => add(target, path, copy.view().snapshot(&lookup)?),
                (None, None) => {}
            }
            for folder in path.ancestors().chain([path.clone()]) {
                let here = mode_of(root, &folder);
                let is_it = folder == *path;
                if let Some(mode) = here.filter(|_| !now.entries.contains_key(&folder)) {
                    now.dirs.entry(folder.clone()).or_insert(mode);
                }
                if !stays {
                    continue;
                }
                let wanted = graft
                    .mode
                    .filter(|_| is_it)
                    .or(here)
                    .unwrap_or(then.manifest.modes.folder);
                target.dirs.entry(folder).or_insert(wanted);
            }
        }
        let grafted = |skipped: &PathReason| {
            skipped.reason.starts_with(NESTED)
                && self.all.iter().any(|graft| graft.path == skipped.path)
        };
        now.skipped.retain(|skipped| !grafted(skipped));
        target.skipped.retain(|skipped| !grafted(skipped));
        let mut kept = Vec::new();
        for graft in self.all.iter().filter(|graft| !graft.is_there) {
            kept.extend(self.leave_others(&graft.path, now, target));
        }
        self.kept.extend(kept);
        self.kept.sort();
        self.kept.dedup();
        Ok(())
    }

    /// In the folder of a repository that is gone may lie what that one ignored: nothing but what stands where its files
    /// belong is taken away.
    fn leave_others(
        &self,
        folder: &RepoPath,
        now: &mut Snapshot,
        target: &Snapshot,
    ) -> Vec<PathReason> {
        let is_here = |path: &RepoPath| {
            let of = self.all.iter().filter(|graft| is_below(path, &graft.path));
            of.max_by_key(|graft| graft.path.as_bytes().len())
                .is_some_and(|graft| graft.path == *folder)
        };
        let is_wanted = |path: &RepoPath| {
            target.entries.contains_key(path)
                || target.dirs.contains_key(path)
                || path
                    .ancestors()
                    .any(|above| is_below(&above, folder) && target.entries.contains_key(&above))
        };
        let others: Vec<RepoPath> = now
            .entries
            .keys()
            .filter(|path| is_here(path) && !is_wanted(path))
            .cloned()
            .collect();
        for path in &others {
            now.entries.remove(path);
            for above in path
                .ancestors()
                .filter(|above| is_below(above, folder) && !target.dirs.contains_key(above))
            {
                now.dirs.remove(&above);
            }
        }
        let why = "not in the part of the checkpoint of the repository that was here";
        let kept = |path| PathReason::new(path, why);
        others.into_iter().map(kept).collect()
    }

    /// The ignore rules of those that are there.
    pub(crate) fn rules<'l>(
        &'l self,
        prepared: &'l Prepared,
        lookup: &'l TreeLookup<'l>,
    ) -> Result<InnerRules<'l>> {
        let mut all = Vec::new();
        for graft in self.all.iter().filter(|graft| graft.is_there) {
            let Some(one) = find(&prepared.nested, &graft.path) else {
                continue;
            };
            let mut rules = vec![TreeIgnores::new(&one.repo, lookup, one.capture.view())?];
            if let Some(then) = &graft.then {
                rules.push(TreeIgnores::new(&one.repo, lookup, then.view())?);
            }
            all.push((graft.path.clone(), rules));
        }
        Ok(InnerRules(all))
    }

    /// What is recover's own inside them is not touched.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = RepoPath> {
        self.all
            .iter()
            .map(|graft| graft.path.join(b".ultraplan/state"))
    }

    /// Tells of those of which nothing is done that only their HEAD or index differ.
    pub(crate) fn settle(&mut self, touched: &BTreeSet<&RepoPath>) {
        let files = [NestedAction::Restored, NestedAction::FilesRestored];
        for outcome in self
            .outcomes
            .iter_mut()
            .filter(|outcome| files.contains(&outcome.action))
        {
            if !touched.iter().any(|path| is_below(path, &outcome.path)) {
                outcome.action = NestedAction::Kept;
            }
        }
    }
}
