//! Properties of restore plans against a simple oracle: carry the plan out on maps and compare.

use proptest::prelude::*;

use super::*;
use crate::model::manifest::ObjectId;

fn entry(kind: EntryKind, content: u8, mode: u32) -> Entry {
    let mode = if kind == EntryKind::Symlink { 0 } else { mode };
    let content = if kind == EntryKind::EmptyDir {
        0
    } else {
        content
    };
    Entry {
        kind,
        oid: ObjectId(format!("{content:040x}")),
        mode,
    }
}

/// A snapshot from paths; a path below another one that is taken as a file is dropped.
fn snapshot(paths: Vec<(Vec<u8>, u8, u8)>, skipped: &[&str]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (names, kind, content) in paths {
        let text: Vec<String> = names
            .iter()
            .map(|name| format!("{}", char::from(b'a' + name % 3)))
            .collect();
        let path = RepoPath::from(text.join("/").as_str());
        let taken = path
            .ancestors()
            .any(|ancestor| snapshot.entries.contains_key(&ancestor))
            || snapshot.entries.contains_key(&path)
            || below(&snapshot.entries, &path).next().is_some();
        if taken
            || skipped
                .iter()
                .any(|skip| path.starts_with(&RepoPath::from(*skip)))
        {
            continue;
        }
        let kind = [
            EntryKind::File,
            EntryKind::File,
            EntryKind::Symlink,
            EntryKind::EmptyDir,
        ][usize::from(kind % 4)];
        let mode = if content % 2 == 0 { 0o644 } else { 0o600 };
        for ancestor in path.ancestors() {
            snapshot.dirs.insert(ancestor, 0o755);
        }
        snapshot
            .entries
            .insert(path, entry(kind, content / 2, mode));
    }
    let reasons = skipped
        .iter()
        .map(|path| reason(&RepoPath::from(*path), "a FIFO"));
    snapshot.skipped = reasons.collect();
    snapshot
}

/// Carries a plan out on maps of what exists.
fn apply(now: &Snapshot, plan: &RestorePlan) -> Snapshot {
    let mut files: BTreeMap<RepoPath, Entry> = now
        .entries
        .iter()
        .filter(|(_, entry)| entry.is_file())
        .map(|(path, entry)| (path.clone(), entry.clone()))
        .collect();
    let mut folders: BTreeMap<RepoPath, u32> = folder_modes(now)
        .map(|(path, mode)| (path.clone(), mode))
        .collect();
    for delete in &plan.delete {
        assert_eq!(
            files.remove(&delete.path).as_ref(),
            Some(&delete.from),
            "only what was captured is deleted"
        );
    }
    for dir in plan.remove_dirs.iter().rev() {
        let inside = |path: &RepoPath| path.starts_with(&dir.path) && *path != dir.path;
        assert!(
            !files.keys().any(inside) && !folders.keys().any(inside),
            "{:?} is not empty",
            dir.path
        );
        assert!(folders.remove(&dir.path).is_some());
    }
    for dir in &plan.make_dirs {
        assert!(!files.contains_key(&dir.path), "{:?} is a file", dir.path);
        assert!(
            dir.path
                .parent()
                .is_none_or(|parent| folders.contains_key(&parent)),
            "{:?} has no parent",
            dir.path
        );
        assert!(
            folders.insert(dir.path.clone(), dir.mode).is_none(),
            "{:?} is there",
            dir.path
        );
    }
    for write in &plan.write {
        assert!(
            !folders.contains_key(&write.path),
            "{:?} is a folder",
            write.path
        );
        assert!(
            write
                .path
                .parent()
                .is_none_or(|parent| folders.contains_key(&parent)),
            "{:?} has no parent",
            write.path
        );
        assert_eq!(
            files.insert(write.path.clone(), write.entry.clone()),
            write.from
        );
    }
    for set in &plan.set_mode {
        match files.get_mut(&set.path) {
            Some(entry) => entry.mode = set.mode,
            None => *folders.get_mut(&set.path).unwrap() = set.mode,
        }
    }
    let mut after = Snapshot {
        entries: files,
        ..Snapshot::default()
    };
    for (path, mode) in folders {
        let holds = after.entries.keys().any(|inside| inside.starts_with(&path));
        if holds {
            after.dirs.insert(path, mode);
        } else {
            after
                .entries
                .insert(path, entry(EntryKind::EmptyDir, 0, mode));
        }
    }
    // A folder that holds only empty folders holds entries.
    let holding: BTreeSet<_> = after
        .entries
        .keys()
        .flat_map(|path| path.ancestors().collect::<Vec<_>>())
        .collect();
    for path in holding {
        if let Some(empty) = after.entries.remove(&path) {
            after.dirs.insert(path, empty.mode);
        }
    }
    after
}

fn paths() -> impl Strategy<Value = Vec<(Vec<u8>, u8, u8)>> {
    prop::collection::vec(
        (
            prop::collection::vec(any::<u8>(), 1..4),
            any::<u8>(),
            0..8_u8,
        ),
        0..12,
    )
}

fn input<'a>(now: &'a Snapshot, target: &'a Snapshot, selection: &'a Selection) -> PlanInput<'a> {
    const NONE: &BTreeSet<RepoPath> = &BTreeSet::new();
    PlanInput {
        now,
        target,
        baseline: &|_| Baseline::Unknown,
        selection,
        ignored: &|_, _| false,
        left_out: NONE,
        is_output: &|_| false,
        edits: Edits::Refuse,
    }
}

proptest! {
    #[test]
    fn carrying_it_out_gives_the_target_and_the_inverse_gives_it_back(now in paths(), target in paths()) {
        let (now, target) = (snapshot(now, &[]), snapshot(target, &[]));
        let all = Selection::all();
        let plan = plan(&input(&now, &target, &all));
        prop_assert!(plan.conflicts.is_empty() && plan.kept.is_empty() && plan.hand_edits.is_empty());
        let after = apply(&now, &plan);
        prop_assert_eq!(&after, &target);
        prop_assert_eq!(apply(&after, &plan.invert()), now);
    }

    #[test]
    fn what_is_kept_stays_and_the_rest_is_restored(now in paths(), target in paths()) {
        let (now, target) = (snapshot(now, &["a/b"]), snapshot(target, &["c"]));
        let all = Selection::all();
        let ignored = |path: &RepoPath, _: bool| path.as_bytes().ends_with(b"c");
        let baseline = |path: &RepoPath| if path.as_bytes().ends_with(b"a") { Baseline::Absent } else { Baseline::Unknown };
        let input = PlanInput { ignored: &ignored, baseline: &baseline, edits: Edits::Keep, ..input(&now, &target, &all) };
        let plan = plan(&input);
        if !plan.conflicts.is_empty() {
            return Ok(());
        }
        let kept: BTreeSet<_> = plan.kept.iter().map(|kept| &kept.path).collect();
        let after = apply(&now, &plan);
        for path in now.entries.keys().chain(target.entries.keys()) {
            let (was, wanted, is) = (now.entries.get(path), target.entries.get(path), after.entries.get(path));
            if kept.contains(path) {
                prop_assert_eq!(is, was, "{:?}", path);
            } else if is.is_none_or(Entry::is_file) && wanted.is_none_or(Entry::is_file) {
                prop_assert_eq!(is, wanted, "{:?}", path);
            }
            if path.starts_with(&RepoPath::from("c")) || path.starts_with(&RepoPath::from("a/b")) {
                prop_assert_eq!(is.filter(|entry| entry.is_file()), was.filter(|entry| entry.is_file()));
            }
        }
    }

    #[test]
    fn nothing_outside_the_selection_is_touched(now in paths(), target in paths()) {
        let (now, target) = (snapshot(now, &[]), snapshot(target, &[]));
        let selection = Selection::globs(&["a"]).unwrap();
        let plan = plan(&input(&now, &target, &selection));
        if !plan.conflicts.is_empty() {
            return Ok(());
        }
        let after = apply(&now, &plan);
        for path in now.entries.keys().chain(target.entries.keys()) {
            let wanted = if path.starts_with(&RepoPath::from("a")) { &target } else { &now };
            prop_assert_eq!(after.entries.get(path), wanted.entries.get(path), "{:?}", path);
        }
    }
}

#[test]
fn hand_edits_are_listed_kept_or_discarded() {
    let now = snapshot(vec![(vec![0], 0, 2), (vec![1], 0, 4)], &[]);
    let target = snapshot(vec![(vec![0], 0, 6), (vec![1], 0, 6)], &[]);
    let written = snapshot(vec![(vec![0], 0, 2), (vec![1], 0, 2)], &[]);
    let baseline = |path: &RepoPath| {
        written
            .entries
            .get(path)
            .map_or(Baseline::Absent, |entry| Baseline::Present(entry.clone()))
    };
    let all = Selection::all();
    for (edits, writes) in [(Edits::Refuse, 2), (Edits::Keep, 1), (Edits::Discard, 2)] {
        let plan = plan(&PlanInput {
            baseline: &baseline,
            edits,
            ..input(&now, &target, &all)
        });
        assert_eq!(plan.hand_edits, [RepoPath::from("b")]);
        assert_eq!(plan.write.len(), writes);
    }
}

#[test]
fn a_kept_file_where_a_folder_is_wanted_is_a_conflict() {
    let now = snapshot(vec![(vec![2], 0, 0)], &[]);
    let target = snapshot(vec![(vec![2, 0], 0, 0)], &[]);
    let all = Selection::all();
    let plan = plan(&PlanInput {
        ignored: &|path, _| *path == RepoPath::from("c"),
        ..input(&now, &target, &all)
    });
    assert_eq!(plan.conflicts.len(), 1);
    assert_eq!(plan.kept.len(), 1);
}

#[test]
fn what_is_no_part_of_the_work_tree_is_neither_touched_nor_listed() {
    let now = snapshot(vec![(vec![0, 0], 0, 0), (vec![1], 0, 0)], &[]);
    let target = snapshot(vec![(vec![0, 1], 0, 2), (vec![1], 0, 4)], &[]);
    let all = Selection::all();
    let left_out = BTreeSet::from([RepoPath::from("a")]);
    let plan = plan(&PlanInput {
        left_out: &left_out,
        ..input(&now, &target, &all)
    });
    assert_eq!(
        (
            plan.write.len(),
            plan.delete.len(),
            plan.kept.len(),
            plan.make_dirs.len()
        ),
        (1, 0, 0, 0)
    );
}
