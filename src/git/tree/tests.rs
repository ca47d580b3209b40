//! Views of trees against a plain map.

#![allow(clippy::unwrap_used)]

use git2::ObjectType;
use proptest::prelude::*;

use super::*;
use crate::git::odb::trees::Flat;
use crate::git::repo::repository::Repo;
use crate::model::manifest::{
    CaptureRules, ChangeType, DefaultModes, FileTimes, Head, MANIFEST_VERSION,
};
use crate::policy::restore::{Baseline, Edits, PlanInput, Selection, plan};

/// What stands at a path, with permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    /// With one of several contents.
    File(u8, u32),
    Link(u8),
    Gitlink(u8),
    Empty(u32),
}

type World = BTreeMap<RepoPath, Thing>;

/// Names that git sorts in another order when they are folders.
const NAMES: [&str; 6] = ["a", "a-b", "a.b", "a0", "b", "\u{e9}"];

fn path() -> impl Strategy<Value = RepoPath> {
    prop::collection::vec(0..NAMES.len(), 1..4).prop_map(|names| {
        RepoPath::from(
            names
                .iter()
                .map(|n| NAMES[*n])
                .collect::<Vec<_>>()
                .join("/")
                .as_str(),
        )
    })
}

fn thing() -> impl Strategy<Value = Option<Thing>> {
    prop_oneof![
        6 => (0..3_u8, prop::sample::select(vec![0o644, 0o644, 0o644, 0o600, 0o755, 0o700]))
            .prop_map(|(content, mode)| Some(Thing::File(content, mode))),
        1 => (0..2_u8).prop_map(|target| Some(Thing::Link(target))),
        1 => (0..2_u8).prop_map(|commit| Some(Thing::Gitlink(commit))),
        2 => prop::sample::select(vec![0o755, 0o700]).prop_map(|mode| Some(Thing::Empty(mode))),
        2 => Just(None),
    ]
}

fn changes(most: usize) -> impl Strategy<Value = Vec<(RepoPath, Option<Thing>)>> {
    prop::collection::vec((path(), thing()), 0..most)
}

/// The later change wins: what is in its way goes.
fn apply(world: &mut World, changes: &[(RepoPath, Option<Thing>)]) {
    for (path, thing) in changes {
        world.retain(|other, _| !other.starts_with(path) && !path.starts_with(other));
        world.extend(thing.map(|thing| (path.clone(), thing)));
    }
}

/// Folders that hold something, with their modes.
type FolderModes = BTreeMap<RepoPath, u32>;

/// A work tree as it is stored.
fn stored(
    repo: &Repo,
    world: &World,
    listed: &FolderModes,
    modes: DefaultModes,
) -> (ObjectId, Manifest) {
    let mut manifest = Manifest {
        version: MANIFEST_VERSION,
        modes,
        file_modes: Vec::new(),
        folder_modes: Vec::new(),
        empty_folders: Vec::new(),
        skipped: Vec::new(),
        unsettled: Vec::new(),
        partial: false,
        nested: Vec::new(),
        rules: CaptureRules::default(),
        head: Head::default(),
        operation: None,
        has_index: false,
        index_extras: Vec::new(),
        memory_modes: Vec::new(),
        outputs: Vec::new(),
        times: FileTimes::default(),
    };
    let oid = |kind: &str, number: u8| {
        git2::Oid::hash_object(ObjectType::Blob, format!("{kind} {number}").as_bytes())
    };
    let mut flat = Flat::new();
    for (path, thing) in world {
        let (mode, id) = match *thing {
            Thing::File(content, mode) => {
                if mode != modes.of_file(mode & 0o100 != 0) {
                    manifest.file_modes.push(PathMode {
                        path: path.clone(),
                        mode,
                    });
                }
                (
                    if mode & 0o100 == 0 {
                        0o100_644
                    } else {
                        0o100_755
                    },
                    oid("file", content),
                )
            }
            Thing::Link(target) => (0o120_000, oid("link", target)),
            Thing::Gitlink(commit) => (0o160_000, oid("commit", commit)),
            Thing::Empty(mode) => {
                manifest.empty_folders.push(PathMode {
                    path: path.clone(),
                    mode,
                });
                continue;
            }
        };
        flat.insert(path.clone(), (mode, id.unwrap()));
    }
    // The modes of folders that hold files; of others nothing is listed.
    let folders: BTreeSet<RepoPath> = world
        .keys()
        .flat_map(|path| path.ancestors().collect::<Vec<_>>())
        .collect();
    for (path, mode) in listed
        .iter()
        .filter(|(path, mode)| folders.contains(path) && **mode != modes.folder)
    {
        manifest.folder_modes.push(PathMode {
            path: path.clone(),
            mode: *mode,
        });
    }
    let odb = repo.inner.odb().unwrap();
    let entries: Vec<_> = flat
        .iter()
        .map(|(path, (mode, oid))| (path.as_bytes(), *mode, *oid))
        .collect();
    let tree = trees::build(&entries, &mut |bytes| {
        Ok(odb.write(ObjectType::Tree, bytes).unwrap())
    })
    .unwrap();
    (ObjectId(tree.to_string()), manifest)
}

/// Checks that a snapshot and another one are without nothing but what is the same in both.
fn check(full: [&Snapshot; 2], few: [&Snapshot; 2]) -> Result<(), TestCaseError> {
    let paths: BTreeSet<_> = full
        .iter()
        .chain(&few)
        .flat_map(|side| side.entries.keys())
        .collect();
    for path in paths {
        let (all, some) = (
            full.map(|side| side.entries.get(path)),
            few.map(|side| side.entries.get(path)),
        );
        prop_assert!(
            some == all || (all[0] == all[1] && some == [None, None]),
            "{}: {:?} of {:?}",
            path,
            some,
            all
        );
        for (few, full) in few
            .iter()
            .zip(full)
            .filter(|(few, _)| few.entries.contains_key(path))
        {
            for above in path.ancestors() {
                prop_assert_eq!(
                    few.dirs.get(&above),
                    full.dirs.get(&above),
                    "{} above {}",
                    above,
                    path
                );
                prop_assert!(few.dirs.contains_key(&above));
            }
        }
    }
    let folders: BTreeSet<_> = full
        .iter()
        .chain(&few)
        .flat_map(|side| side.dirs.keys())
        .collect();
    for path in folders {
        let (all, some) = (
            full.map(|side| side.dirs.get(path)),
            few.map(|side| side.dirs.get(path)),
        );
        prop_assert!(
            some == all || (all[0] == all[1] && some == [None, None]),
            "{}: {:?} of {:?}",
            path,
            some,
            all
        );
    }
    prop_assert_eq!(
        few.map(|side| &side.skipped),
        full.map(|side| &side.skipped)
    );
    Ok(())
}

/// What changed, computed from the worlds alone.
fn told(before: &World, after: &World) -> BTreeMap<RepoPath, ChangeType> {
    let is_folder = |world: &World, path: &RepoPath| {
        world.iter().any(|(other, thing)| {
            if other == path {
                matches!(thing, Thing::Empty(_))
            } else {
                other.starts_with(path)
            }
        })
    };
    let is_new = |world: &World, path: &RepoPath, thing: &Thing| match thing {
        Thing::Empty(_) => !is_folder(world, path),
        _ => true,
    };
    let mut told = BTreeMap::new();
    for path in before.keys().chain(after.keys()) {
        let kind = match (before.get(path), after.get(path)) {
            (Some(old), Some(new)) if old != new => ChangeType::Modified,
            (None, Some(new)) if is_new(before, path, new) => ChangeType::Created,
            (Some(old), None) if is_new(after, path, old) => ChangeType::Deleted,
            _ => continue,
        };
        told.insert(path.clone(), kind);
    }
    told
}

fn folder_modes() -> impl Strategy<Value = FolderModes> {
    prop::collection::btree_map(path(), prop::sample::select(vec![0o700, 0o750]), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_two_trees_share_makes_no_difference(
        base in changes(24),
        edits in changes(8),
        listed in folder_modes(),
        relisted in prop::option::weighted(0.4, folder_modes()),
        other_usual in prop::bool::weighted(0.1),
        skipped in prop::collection::vec((path(), any::<bool>(), any::<bool>()), 0..2),
        mask in any::<u32>(),
        edit in prop::sample::select(vec![Edits::Refuse, Edits::Keep, Edits::Discard]),
        selected in prop::option::weighted(0.3, path()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path()).unwrap();
        let repo = Repo::discover(folder.path(), None).unwrap();
        let mut world = World::new();
        apply(&mut world, &base);
        let usual = DefaultModes::default();
        let (tree_a, mut manifest_a) = stored(&repo, &world, &listed, usual);
        let before = world.clone();
        apply(&mut world, &edits);
        let modes = if other_usual { DefaultModes { file: 0o600, ..usual } } else { usual };
        let (tree_b, mut manifest_b) = stored(&repo, &world, relisted.as_ref().unwrap_or(&listed), modes);
        // What is skipped is no folder of the same tree, but may be above what the other one has.
        let is_folder = |world: &World, path: &RepoPath| world.keys().any(|other| other.starts_with(path));
        for (path, in_a, is_large) in skipped {
            if is_folder(if in_a { &before } else { &world }, &path) {
                continue;
            }
            let one = PathReason { path, reason: "too large".to_owned(), size: is_large.then_some(1), files: None };
            if in_a { manifest_a.skipped.push(one) } else { manifest_b.skipped.push(one) }
        }
        let a = TreeView::new(&tree_a, None, &manifest_a);
        let b = TreeView::new(&tree_b, None, &manifest_b);
        let lookup = TreeLookup::stored(&repo).unwrap();
        let full = [a.snapshot(&lookup).unwrap(), b.snapshot(&lookup).unwrap()];
        let first: Vec<RepoPath> = edits.iter().map(|(path, _)| path.clone()).collect();
        let files = full[1].entries.iter().filter(|(_, entry)| entry.is_file());
        let (mut chosen, others): (Vec<_>, Vec<_>) = files.partition(|(path, _)| first.contains(path));
        chosen.extend(others);
        for most in [0, 1, first.len(), chosen.len()] {
            let found = b.files_from(&TreeLookup::stored(&repo).unwrap(), &first, most).unwrap();
            prop_assert_eq!(found.iter().map(|(path, entry)| (path, entry)).collect::<Vec<_>>(), &chosen[..most.min(chosen.len())]);
        }
        let lookup = TreeLookup::stored(&repo).unwrap();
        let few = lookup.diff(a, b).unwrap();
        check([&full[0], &full[1]], [&few.0, &few.1])?;
        let expected = told(&before, &world);
        for (from, to) in [(&full[0], &full[1]), (&few.0, &few.1)] {
            let unlike: BTreeMap<RepoPath, ChangeType> = from.unlike(to).map(|(path, before, after)| {
                let kind = match (before, after) {
                    (None, _) => ChangeType::Created,
                    (_, None) => ChangeType::Deleted,
                    _ => ChangeType::Modified,
                };
                (path.clone(), kind)
            }).collect();
            prop_assert_eq!(&unlike, &expected);
        }

        let hash = |path: &RepoPath| crc32fast::hash(path.as_bytes());
        let ignored = |path: &RepoPath, _: bool| hash(path) & mask & 0x7 == 0x7;
        let baseline = |path: &RepoPath| match hash(path) & 0x18 {
            0x08 => Baseline::Absent,
            0x10 => Baseline::Present(empty_folder(0o755)),
            _ => Baseline::Unknown,
        };
        let globs: Vec<String> = selected.iter().map(|path| path.to_lossy().into_owned()).collect();
        let selection = Selection::globs(&globs).unwrap();
        let left_out = (mask & 0x20 != 0).then(|| RepoPath::from("a/b")).into_iter().collect();
        let plan_of = |now, target| plan(&PlanInput {
            now, target, baseline: &baseline, selection: &selection, ignored: &ignored, left_out: &left_out, is_output: &|_| false, edits: edit,
        });
        prop_assert_eq!(plan_of(&few.0, &few.1), plan_of(&full[0], &full[1]));
        prop_assert_eq!(plan_of(&few.1, &few.0), plan_of(&full[1], &full[0]), "the other way");
    }
}
