//! Random work trees: capture and restore, compared with git.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use proptest::prelude::*;

use crate::bench::Bench;

/// One change of a work tree: where, what, and a seed for content and mode.
type Edit = (Vec<u8>, u8, u8);

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(
        (
            prop::collection::vec(0..3_u8, 1..4),
            any::<u8>(),
            any::<u8>(),
        ),
        0..14,
    )
}

/// Makes room for a path: files among its folders are removed.
fn clear(root: &Path, path: &Path) {
    for ancestor in path.ancestors().take_while(|ancestor| *ancestor != root) {
        match ancestor.symlink_metadata() {
            Ok(found) if found.is_dir() && ancestor == path => {
                fs::remove_dir_all(ancestor).unwrap();
            }
            Ok(found) if !found.is_dir() => fs::remove_file(ancestor).unwrap(),
            _ => {}
        }
    }
}

fn apply(bench: &Bench, edits: &[Edit]) {
    for (names, kind, seed) in edits {
        let names: Vec<&str> = names
            .iter()
            .map(|name| ["a", "b c", "\u{e9}"][usize::from(*name)])
            .collect();
        let path = bench.root.join(names.join("/"));
        clear(&bench.root, &path);
        let parent = || fs::create_dir_all(path.parent().unwrap()).unwrap();
        let chmod = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        match kind % 6 {
            0 => {}
            1 => {
                fs::create_dir_all(&path).unwrap();
                chmod([0o755, 0o700, 0o775][usize::from(seed % 3)]);
            }
            2 => {
                parent();
                symlink(["a", "/etc", "nowhere"][usize::from(seed % 3)], &path).unwrap();
            }
            _ => {
                parent();
                fs::write(&path, vec![b'x'; usize::from(seed % 4)]).unwrap();
                chmod([0o644, 0o600, 0o755, 0o664][usize::from(seed / 4 % 4)]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_comes_back_and_undo_gives_back_what_was(first in edits(), second in edits(), stage in any::<bool>()) {
        let bench = Bench::with_commit();
        apply(&bench, &first);
        if stage {
            bench.git(&["add", "-A"]);
        }
        let before = bench.checkpoint();
        apply(&bench, &second);
        let (safety, _, _) = bench.restore(&before).unwrap();
        prop_assert!(bench.capture().same_as(&before, &[]).unwrap());
        let (again, _, _) = bench.restore(&safety).unwrap();
        prop_assert!(bench.capture().same_as(&safety, &[]).unwrap());
        prop_assert_eq!(again.tree, before.tree);
        bench.fsck();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ignore_rules_are_those_of_git(
        top in prop::collection::vec("(!)?(/)?(a|b|[*]|[*][*]/a|a/b|a/[*]|a/[*][*]|[?]|\\[ab\\]|a[*]|#a|b )(/)?", 0..4),
        inner in prop::collection::vec("(!)?(/)?(a|b|[*]|[*]\\.x|b/a)(/)?", 0..3),
        paths in prop::collection::vec("(a|b|c|aa|a\\.x)(/(a|b|b\\.x)){0,2}", 1..10),
    ) {
        let bench = Bench::new();
        for path in paths {
            let path = bench.root.join(path);
            clear(&bench.root, &path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
        }
        bench.write(".gitignore", top.join("\n"));
        if bench.path("a").is_dir() {
            bench.write("a/.gitignore", inner.join("\n"));
        }
        let listing = bench.git(&["ls-files", "-o", "--exclude-standard"]);
        let captured = bench.capture().snapshot().unwrap();
        let files = captured.entries.iter().filter(|(_, entry)| entry.kind == recover::testing::model::EntryKind::File);
        let ours: Vec<_> = files.map(|(path, _)| path.to_lossy().into_owned()).collect();
        prop_assert_eq!(ours, listing.lines().map(str::to_owned).collect::<Vec<_>>());
    }
}
