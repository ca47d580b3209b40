//! Differences between trees, compared with `git diff`.

use recover::testing::git::{Objects, Seen};
use recover::testing::model::RepoPath;
use recover::testing::model::{Change, ChangeType};
use recover::testing::policy::Selection;

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
    let list = captured
        .objects()
        .changes(from.view(), captured.view(), &Selection::all())
        .unwrap();
    let list: Vec<_> = list
        .iter()
        .map(|change| {
            (
                change.path.to_lossy().into_owned(),
                change.kind,
                change.added,
                change.deleted,
            )
        })
        .collect();
    assert_eq!(
        list,
        [
            ("binary".to_owned(), ChangeType::Modified, None, None),
            ("edited".to_owned(), ChangeType::Modified, Some(2), Some(1)),
            ("gone".to_owned(), ChangeType::Deleted, Some(0), Some(2)),
            (
                "moved here".to_owned(),
                ChangeType::Renamed,
                Some(0),
                Some(0)
            ),
            ("new".to_owned(), ChangeType::Created, Some(2), Some(0)),
        ]
    );
}

// What an earlier comparison counted is taken from there as long as it is the same change to the same content.
#[test]
fn an_earlier_comparison_is_taken_up_where_nothing_changed() {
    let bench = Bench::with_commit();
    for name in ["same", "edited", "turned", "back"] {
        bench.write(name, "1\n");
    }
    let from = bench.checkpoint();
    for name in ["same", "edited", "turned", "back", "new"] {
        bench.write(name, "2\n3\n");
    }
    let content = bench.capture().snapshot().unwrap().entries[&RepoPath::new("same")].clone();
    let list = |seen: &Seen| {
        let captured = bench.capture();
        let objects = captured.objects();
        objects
            .changes_with(from.view(), captured.view(), &Selection::all(), seen)
            .unwrap()
    };
    // Marked, so that what is taken up can be told from what is counted.
    let marked = |change: Change| Change {
        added: Some(77),
        ..change
    };
    let seen: Seen = list(&Seen::new())
        .into_iter()
        .map(|change| (change.path.clone(), (marked(change), Some(content.clone()))))
        .collect();
    bench.write("edited", "2\n");
    bench.write("back", "1\n");
    std::fs::remove_file(bench.path("turned")).unwrap();
    let counts: Vec<_> = list(&seen)
        .iter()
        .map(|one| {
            (
                one.path.to_lossy().into_owned(),
                one.kind,
                one.added,
                one.deleted,
            )
        })
        .collect();
    assert_eq!(
        counts,
        [
            ("edited".to_owned(), ChangeType::Modified, Some(1), Some(1)),
            ("new".to_owned(), ChangeType::Created, Some(77), Some(0)),
            ("same".to_owned(), ChangeType::Modified, Some(77), Some(1)),
            ("turned".to_owned(), ChangeType::Deleted, Some(0), Some(1)),
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
    let patch = Objects::stored(&repo)
        .patch(&from.tree, &to.tree, &selection)
        .unwrap();
    bench.restore(&from).unwrap();
    let file = bench.folder.path().join("patch");
    std::fs::write(&file, patch).unwrap();
    bench.git(&["apply", file.to_str().unwrap()]);
    bench.write("other", "2\n");
    assert_eq!(bench.capture().tree, to.tree);
}
