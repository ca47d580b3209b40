//! Cycle detection on sequences of attempts.

use super::*;
use crate::policy::changed::Content;
use proptest::prelude::*;

fn content(text: &str) -> Content {
    Content {
        oid: ObjectId(format!("{:040x}", hash(&text))),
        text: Some(text.to_owned()),
    }
}

fn file(path: &str, before: &str, after: &str) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        before: Some(content(before)),
        after: Some(content(after)),
    }
}

/// An attempt by its tree's name; what it wrote into one file; its approach; how many checks failed.
type Row = (
    &'static str,
    &'static str,
    Option<&'static str>,
    Option<u64>,
);

fn circle(base: Option<&str>, rows: &[Row]) -> bool {
    let ids: Vec<ObjectId> = rows.iter().map(|row| ObjectId(row.0.to_owned())).collect();
    let base = base.map(|name| ObjectId(name.to_owned()));
    let mut tried: Vec<Tried<'_>> = rows
        .iter()
        .zip(&ids)
        .map(|((_, text, approach, failed_checks), tree)| Tried {
            tree,
            lines: base
                .as_ref()
                .map(|_| NetLines::of(&[file("a.rs", "one\ntwo\n", text)])),
            approach: *approach,
            failed_checks: *failed_checks,
        })
        .collect();
    let current = tried.pop().unwrap();
    goes_in_circle(base.as_ref(), &tried, &current)
}

const A: &str = "one\nthree\n";
const B: &str = "four\nfive\nsix\ntwo\nseven\n";
const C: &str = "one\neight\nnine\nten\ntwo\n";

#[test]
fn a_tree_that_comes_back_closes_the_circle_with_the_third_attempt() {
    let plain = |tree, text| (tree, text, None, None);
    assert!(!circle(Some("g"), &[plain("a", A)]));
    assert!(
        !circle(Some("g"), &[plain("a", A), plain("a", A)]),
        "two are not three"
    );
    assert!(circle(
        Some("g"),
        &[plain("a", A), plain("b", B), plain("a", A)]
    ));
    assert!(
        circle(None, &[plain("a", A), plain("b", B), plain("a", A)]),
        "also without a good checkpoint"
    );
    assert!(circle(
        Some("g"),
        &[plain("a", A), plain("a", A), plain("a", A)]
    ));
    assert!(
        !circle(Some("g"), &[plain("a", A), plain("a", A), plain("b", B)]),
        "the current one is another"
    );
    assert!(!circle(
        Some("g"),
        &[plain("a", A), plain("b", B), plain("c", C)]
    ));
}

#[test]
fn attempts_that_change_nothing_have_tried_no_fix() {
    let same = ("g", "one\ntwo\n", None, None);
    assert!(!circle(Some("g"), &[same, same, same, same, same]));
    assert!(
        !circle(None, &[same, same, same]),
        "what they began with is not known"
    );
}

#[test]
fn three_differences_that_are_alike_close_it() {
    let text = |last: &str| -> &'static str {
        Box::leak(format!("a\nb\nc\nd\ne\nf\n{last}\n").into_boxed_str())
    };
    let alike = |tree, last, approach| (tree, text(last), approach, None);
    assert!(circle(
        Some("g"),
        &[
            alike("a", "1", None),
            alike("b", "2", None),
            alike("c", "3", None)
        ]
    ));
    assert!(!circle(
        Some("g"),
        &[
            alike("a", "1", None),
            ("b", A, None, None),
            alike("c", "3", None)
        ]
    ));
    // An approach in the same words counts beside one that is alike, and never alone.
    let (same, other) = (Some("Use the callback pattern"), Some("Try async/await"));
    assert!(circle(
        Some("g"),
        &[
            alike("a", "1", None),
            ("b", A, same, None),
            alike("c", "3", same)
        ]
    ));
    assert!(!circle(
        Some("g"),
        &[
            alike("a", "1", None),
            ("b", A, other, None),
            alike("c", "3", same)
        ]
    ));
    assert!(!circle(
        Some("g"),
        &[
            ("a", A, same, None),
            ("b", B, same, None),
            ("c", C, same, None)
        ]
    ));
}

#[test]
fn two_genuinely_different_approaches_are_not_circular() {
    let (one, two) = ("Using async/await pattern", "Using callback pattern");
    assert!(approach_likeness(one, two) < ALIKE);
    assert!(approach_likeness(one, "using the async await pattern") >= ALIKE);
    assert!(!circle(
        Some("g"),
        &[("a", A, Some(one), None), ("b", B, Some(two), None)]
    ));
    assert!(!circle(
        None,
        &[
            ("a", A, Some(one), None),
            ("b", B, Some(two), None),
            ("c", C, Some(one), None)
        ]
    ));
}

#[test]
fn fewer_failing_checks_are_progress() {
    let with = |tree, text, failed| (tree, text, None, Some(failed));
    assert!(!circle(
        Some("g"),
        &[with("a", A, 5), with("b", B, 4), with("a", A, 3)]
    ));
    assert!(
        circle(
            Some("g"),
            &[with("a", A, 3), with("b", B, 5), with("a", A, 3)]
        ),
        "no better than ever"
    );
    assert!(circle(
        Some("g"),
        &[with("a", A, 3), with("b", B, 3), ("a", A, None, None)]
    ));
}

#[test]
fn what_differs_is_counted_line_by_line() {
    let likeness = |one: &str, other: &str| {
        NetLines::of(&[file("a", "x\n", one)]).likeness(&NetLines::of(&[file("a", "x\n", other)]))
    };
    assert!((likeness("x\ny\n", "x\ny\n") - 1.0).abs() < 1e-9);
    assert!(
        (likeness("x\ny\n", "x\n  y\n") - 1.0).abs() < 1e-9,
        "blanks do not count"
    );
    assert!(likeness("x\ny\n", "x\nz\n").abs() < 1e-9);
    assert!(
        (likeness("x\ny\n", "x\ny\ny\n") - 0.5).abs() < 1e-9,
        "a line may be there twice"
    );
    assert!(NetLines::default().likeness(&NetLines::default()).abs() < 1e-9);
    let elsewhere = NetLines::of(&[file("b", "x\n", "x\ny\n")]);
    assert!(
        elsewhere
            .likeness(&NetLines::of(&[file("a", "x\n", "x\ny\n")]))
            .abs()
            < 1e-9,
        "by path"
    );
    let binary = |name: &str| Content {
        oid: ObjectId(name.to_owned()),
        text: None,
    };
    let changed = |name| ChangedFile {
        path: "p".to_owned(),
        before: None,
        after: Some(binary(name)),
    };
    assert!(
        (NetLines::of(&[changed("1")]).likeness(&NetLines::of(&[changed("1")])) - 1.0).abs() < 1e-9
    );
    assert!(
        NetLines::of(&[changed("1")])
            .likeness(&NetLines::of(&[changed("2")]))
            .abs()
            < 1e-9
    );
}

proptest! {
    /// Likeness is symmetric, at most one, and one only for what is the same.
    #[test]
    fn likeness_is_a_likeness(one in prop::collection::vec("[a-d]", 0..8), other in prop::collection::vec("[a-d]", 0..8)) {
        let lines = |text: &[String]| NetLines::of(&[file("a", "", &text.join("\n"))]);
        let (a, b) = (lines(&one), lines(&other));
        prop_assert!((a.likeness(&b) - b.likeness(&a)).abs() < 1e-9);
        prop_assert!((0.0..=1.0).contains(&a.likeness(&b)));
        prop_assert_eq!(a.likeness(&b) > 1.0 - 1e-9, a == b && a != NetLines::default());
    }

    /// Fewer than three attempts, or trees and lines that never meet, are no circle, whatever the words are.
    #[test]
    fn words_alone_are_no_circle(approaches in prop::collection::vec("[a-c]{1,2}( [a-c]{1,2}){0,3}", 1..5)) {
        let ids: Vec<ObjectId> = (0..approaches.len()).map(|at| ObjectId(at.to_string())).collect();
        let mut tried: Vec<Tried<'_>> = ids.iter().zip(&approaches).enumerate().map(|(at, (tree, approach))| {
            let lines = Some(NetLines::of(&[file("a", "", &format!("line {at}"))]));
            Tried { tree, lines, approach: Some(approach), failed_checks: None }
        }).collect();
        let current = tried.pop().unwrap();
        prop_assert!(!goes_in_circle(None, &tried, &current));
    }

    /// However the earlier ones are ordered, the answer is the same; and coming back to any of two others is a circle.
    #[test]
    fn order_does_not_matter(trees in prop::collection::vec(0u8..3, 3..6)) {
        let ids: Vec<ObjectId> = trees.iter().map(|tree| ObjectId(tree.to_string())).collect();
        let make = |tree| Tried { tree, lines: None, approach: None, failed_checks: None };
        let current = make(&ids[0]);
        let earlier: Vec<Tried<'_>> = ids[1..].iter().map(make).collect();
        let reversed: Vec<Tried<'_>> = ids[1..].iter().rev().map(make).collect();
        let found = goes_in_circle(None, &earlier, &current);
        prop_assert_eq!(found, goes_in_circle(None, &reversed, &current));
        let back = ids[1..].contains(&ids[0]);
        let moved = ids[1..].iter().any(|tree| *tree != ids[0]);
        prop_assert_eq!(found, back && moved);
    }
}
