use recover::git::diff::{Objects, changes, patch_text};
use recover::model::snapshot::ChangeType;
use recover::policy::selection::Selection;

use crate::bench::Bench;

#[test]
fn changes_are_listed_with_lines_and_renames() {
    let bench = Bench::with_commit();
    bench.write("moved", "a\nb\nc\n");
    bench.write("edited", "a\nb\nc\n");
    bench.write("binary", [0, 1, 2]);
    bench.write("gone", "x\ny\n");
    let from = bench.checkpoint();
    std::fs::rename(bench.path("moved"), bench.path("moved here")).unwrap();
    std::fs::remove_file(bench.path("gone")).unwrap();
    bench.write("edited", "a\nB\nc\nd");
    bench.write("binary", [0, 1, 3]);
    bench.write("new", "1\n2\n");
    let captured = bench.capture();
    let list = changes(Objects::Captured(&captured), from.side(), captured.side(), &Selection::all()).unwrap();
    let list: Vec<_> = list
        .iter()
        .map(|change| (change.path.to_lossy().into_owned(), change.kind, change.added, change.deleted))
        .collect();
    assert_eq!(
        list,
        [
            ("binary".to_owned(), ChangeType::Modified, None, None),
            ("edited".to_owned(), ChangeType::Modified, Some(2), Some(1)),
            ("gone".to_owned(), ChangeType::Deleted, Some(0), Some(2)),
            ("moved here".to_owned(), ChangeType::Renamed, Some(0), Some(0)),
            ("new".to_owned(), ChangeType::Created, Some(2), Some(0)),
        ]
    );
}

#[test]
fn patches_can_be_applied() {
    let bench = Bench::with_commit();
    bench.write("text", "a\nb");
    bench.write("binary", [0, 1, 2]);
    bench.write("other", "1\n");
    let from = bench.checkpoint();
    bench.write("text", "a\nc\nd\n");
    bench.write("binary", [0, 1, 3, 255]);
    bench.write("deep/new file", "x\n");
    bench.write("other", "2\n");
    bench.chmod("base", 0o755);
    let to = bench.checkpoint();
    let repo = bench.repo();
    let selection = Selection::globs(&["text", "binary", "deep", "base"]).unwrap();
    let patch = patch_text(Objects::Stored(&repo), &from.tree, &to.tree, &selection).unwrap();
    bench.restore(&from).unwrap();
    let file = bench.folder.path().join("patch");
    std::fs::write(&file, patch).unwrap();
    bench.git(&["apply", file.to_str().unwrap()]);
    bench.write("other", "2\n");
    assert_eq!(bench.capture().tree, to.tree);
}
