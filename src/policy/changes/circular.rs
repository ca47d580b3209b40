//! Cycle detection (A1): a fix that was tried and failed is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::ChangedFile;
use crate::model::{Attempt, AttemptOutcome, Failure, FailureType, FeedbackResults, ObjectId, Run};

/// How many attempts are examined, the current one included.
const WINDOW: usize = 5;
/// How many of them make a circle, the current one included.
const CIRCLE: usize = 3;
/// From which likeness on two of them count as the same.
const ALIKE: f64 = 0.6;

/// The lines that an attempt's work adds and removes, each by its path: hashes, because only likeness is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetLines(BTreeSet<u64>);

/// What an attempt that failed left.
#[derive(Clone, Debug)]
pub(crate) struct Tried<'a> {
    /// The work tree.
    pub tree: &'a ObjectId,
    /// What differs from the last good checkpoint; `None` where that is not known.
    pub lines: Option<NetLines>,
    /// What it tried, in the loop's own words.
    pub approach: Option<&'a str>,
    /// How many checks failed, where that is known.
    pub failed_checks: Option<u64>,
}

impl NetLines {
    /// Of the files that differ. A line that is there three times more counts three times.
    pub(crate) fn of(files: &[ChangedFile]) -> Self {
        let mut lines = BTreeSet::new();
        let differs = |file: &&ChangedFile| file.before != file.after;
        for file in files.iter().filter(differs) {
            let mut own = Vec::new();
            if file.is_text() {
                let (old, new) = (counted(file.old_text()), counted(file.new_text()));
                own = more('-', &file.path, &old, &new);
                own.extend(more('+', &file.path, &new, &old));
            }
            // Lines in another order, other blanks, what is no text: that it is this very content is all there is to say.
            if own.is_empty() {
                own.push(hash(&(
                    '~',
                    &file.path,
                    file.after.as_ref().map(|content| &content.oid.0),
                )));
            }
            lines.extend(own);
        }
        Self(lines)
    }

    /// Lines that both have, in proportion to those that either has (Jaccard). Nothing is like nothing.
    fn likeness(&self, other: &Self) -> f64 {
        jaccard(&self.0, &other.0)
    }
}

fn counted(text: &str) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        *lines.entry(line).or_default() += 1;
    }
    lines
}

/// Lines of `one` that the other has not, or not as often.
fn more(
    sign: char,
    path: &str,
    one: &BTreeMap<&str, usize>,
    other: &BTreeMap<&str, usize>,
) -> Vec<u64> {
    let surplus = |(line, count): (&&str, &usize)| {
        let common = other.get(line).copied().unwrap_or(0);
        (common..*count)
            .map(|nth| hash(&(sign, path, line, nth)))
            .collect::<Vec<_>>()
    };
    one.iter().flat_map(surplus).collect()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn jaccard<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>) -> f64 {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    if all == 0 {
        0.0
    } else {
        common as f64 / all as f64
    }
}

/// How alike two descriptions are, by their words.
fn approach_likeness(one: &str, other: &str) -> f64 {
    let words = |text: &str| -> BTreeSet<String> {
        let parts = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        parts.map(str::to_lowercase).collect()
    };
    jaccard(&words(one), &words(other))
}

/// Whether the current attempt closes a circle with `earlier` ones of the same iteration and failure signature.
///
/// Three attempts it takes: the work tree comes back to one that failed before, or the net differences from the last
/// good checkpoint (`base`) are alike. Approaches that are alike count only beside such a likeness. Fewer failing checks
/// than ever before is progress, not a circle; and attempts that left everything as it was have tried no fix at all.
pub(crate) fn goes_in_circle(
    base: Option<&ObjectId>,
    earlier: &[Tried<'_>],
    current: &Tried<'_>,
) -> bool {
    if earlier.len() + 1 < CIRCLE || is_progress(earlier, current) {
        return false;
    }
    let moved = base
        .into_iter()
        .chain(earlier.iter().map(|tried| tried.tree))
        .any(|tree| tree != current.tree);
    if moved && earlier.iter().any(|tried| tried.tree == current.tree) {
        return true;
    }
    let same_lines = |tried: &Tried<'_>| match (&tried.lines, &current.lines) {
        (Some(one), Some(other)) => one.likeness(other) >= ALIKE,
        _ => false,
    };
    let same_approach = |tried: &Tried<'_>| match (tried.approach, current.approach) {
        (Some(one), Some(other)) => approach_likeness(one, other) >= ALIKE,
        _ => false,
    };
    let by_lines = earlier.iter().any(same_lines);
    let alike = earlier
        .iter()
        .filter(|tried| same_lines(tried) || same_approach(tried))
        .count();
    by_lines && alike + 1 >= CIRCLE
}

fn is_progress(earlier: &[Tried<'_>], current: &Tried<'_>) -> bool {
    let fewest = earlier.iter().filter_map(|tried| tried.failed_checks).min();
    matches!((current.failed_checks, fewest), (Some(now), Some(before)) if now < before)
}

/// Whether a failure says something about the work: that a build or a check of the project failed.
pub(crate) fn is_about_the_work(failure: &Failure, in_feedback_loop: bool) -> bool {
    failure.kind == FailureType::FeedbackFailure
        || (in_feedback_loop && failure.kind != FailureType::Cancellation)
}

/// Earlier attempts that may make a circle with one that fails like this: those of its iteration and subtask with the
/// same signature, among the last few since anything was forgiven.
pub(crate) fn same_failures<'a>(
    run: &'a Run,
    iteration: u32,
    subtask: &str,
    signature: &str,
) -> Vec<&'a Attempt> {
    let since = run.counts_since(subtask);
    let Some(iteration) = run.iterations.get(iteration) else {
        return Vec::new();
    };
    let counts = |attempt: &&Attempt| {
        attempt.subtask == subtask
            && attempt.outcome == Some(AttemptOutcome::Failed)
            && attempt.ended_seq > Some(since)
    };
    let alike = |attempt: &&Attempt| {
        attempt
            .failure
            .as_ref()
            .is_some_and(|failure| failure.signature == signature)
    };
    iteration
        .attempts
        .iter()
        .rev()
        .filter(counts)
        .take(WINDOW - 1)
        .filter(alike)
        .collect()
}

/// How many checks failed, as the feedback loops report; a loop that does not say counts as one.
pub(crate) fn failed_checks(results: &FeedbackResults) -> Option<u64> {
    let failed: Vec<u64> = results
        .values()
        .filter(|result| !result.passed)
        .map(|result| result.failed_count.unwrap_or(1).max(1))
        .collect();
    if failed.is_empty() {
        None
    } else {
        Some(failed.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::changes::Content;
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
            NetLines::of(&[file("a", "x\n", one)])
                .likeness(&NetLines::of(&[file("a", "x\n", other)]))
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
            (NetLines::of(&[changed("1")]).likeness(&NetLines::of(&[changed("1")])) - 1.0).abs()
                < 1e-9
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
}
