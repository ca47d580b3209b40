//! Whether an attempt weakened what judges it.
//! Tests that are gone, skipped or say less, checks that run something else.
//!
//! Only files that differ are examined, before and after. Test files are known by their place and name, what is in
//! them by patterns of their language: counts of declarations, skip marks and assertions are compared, and what moved
//! from one file to another counts as still there.

mod commands;
mod languages;

use std::collections::BTreeMap;

use super::changed::ChangedFile;
use languages::{Seen, is_test_name, see};

pub(crate) use commands::{Loop, is_of_checks};
pub(crate) use languages::is_test_path;

/// At most so many notes: they go into the ledger and into prompts.
const MAX_NOTES: usize = 10;

/// What weakens the checks, a line each; empty where nothing does.
pub(crate) fn tampering(files: &[ChangedFile], loops: &[Loop<'_>]) -> Vec<String> {
    let mut notes = weakened_tests(files);
    notes.extend(commands::changed_commands(files, loops));
    if notes.len() > MAX_NOTES {
        let more = notes.len() - (MAX_NOTES - 1);
        notes.truncate(MAX_NOTES - 1);
        notes.push(format!("and {more} more"));
    }
    notes
}

/// What an attempt's notes say of a check whose verdict changed by itself.
pub(crate) const FLAKY: &str = "failed first, passed when run again unchanged";
/// What they say of a check that the attempt did not break.
pub(crate) const FAILING_BEFORE: &str = "was already failing before the first attempt";

/// Of an attempt's notes those of [`tampering`].
pub(crate) fn of_tampering(notes: &[String]) -> impl Iterator<Item = &String> {
    notes
        .iter()
        .filter(|note| !note.ends_with(FLAKY) && !note.ends_with(FAILING_BEFORE))
}

/// These in one text.
pub(crate) fn tampering_text(notes: &[String], between: &str) -> String {
    of_tampering(notes)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(between)
}

/// What an attempt's notes of [`tampering`] are about, in two words each.
pub(crate) fn in_short(notes: &[String]) -> Vec<&'static str> {
    // The name of a file may hold any of these words: what is said of it comes after that.
    let about = |note: &String| {
        let said = note
            .rsplit_once(": ")
            .map_or(note.as_str(), |(_, said)| said);
        match said {
            _ if said.starts_with("the test file was") || said.ends_with("fewer") => {
                "tests removed"
            }
            _ if said.contains("skip mark") || said.starts_with("only some of its tests") => {
                "tests skipped"
            }
            _ if said.ends_with("assertions are gone") => "assertions removed",
            _ => "checks changed",
        }
    };
    let is_more = |note: &&String| note.starts_with("and ") && note.ends_with(" more");
    of_tampering(notes)
        .filter(|note| !is_more(note))
        .map(about)
        .collect()
}

/// A changed file with what its tests were and are.
struct Tests<'a> {
    file: &'a ChangedFile,
    before: Seen,
    after: Seen,
}

fn weakened_tests(files: &[ChangedFile]) -> Vec<String> {
    let all: Vec<Tests<'_>> = files
        .iter()
        .filter(|file| file.is_text())
        .map(|file| Tests {
            file,
            before: see(&file.path, file.old_text()),
            after: see(&file.path, file.new_text()),
        })
        .collect();
    let of = |pick: fn(&Seen) -> &Vec<String>| Moves::of(&all, pick);
    let (declared, skipped, asserted) = (
        of(|seen| &seen.declared),
        of(|seen| &seen.skipped),
        of(|seen| &seen.asserted),
    );
    let mut notes = Vec::new();
    for (at, tests) in all.iter().enumerate() {
        let path = &tests.file.path;
        let fewer = declared.lost(at).saturating_sub(declared.gained(at));
        if tests.file.new_text().trim().is_empty() {
            // A file that is a test as a whole need not declare any.
            let whole = tests.before.declared.is_empty()
                && is_test_name(path)
                && !tests.file.old_text().trim().is_empty();
            if (fewer > 0 || whole) && !has_moved(files, tests.file) {
                let fate = if tests.file.after.is_none() {
                    "deleted"
                } else {
                    "emptied"
                };
                notes.push(format!("{path}: the test file was {fate}"));
            }
            continue;
        }
        if fewer > 0 {
            notes.push(format!("{path}: {fewer} {} fewer", plural(fewer, "test")));
        }
        let more = skipped.gained(at).saturating_sub(skipped.lost(at));
        if more > 0 && tests.file.before.is_some() {
            notes.push(format!("{path}: {more} {} more", plural(more, "skip mark")));
        }
        if tests.after.focused > tests.before.focused {
            notes.push(format!("{path}: only some of its tests are run"));
        }
        let (had, lost) = (
            tests.before.asserted.len(),
            asserted.lost(at).saturating_sub(asserted.gained(at)),
        );
        // Tests that are gone took theirs along, which is said already.
        if fewer == 0 && lost > 0 && lost * 2 >= had {
            notes.push(format!("{path}: {lost} of {had} assertions are gone"));
        }
    }
    notes
}

/// Whether the very content of a file that is gone is in a new test file.
fn has_moved(files: &[ChangedFile], gone: &ChangedFile) -> bool {
    let oid = gone.before.as_ref().map(|content| &content.oid);
    let extension = |path: &str| {
        path.rsplit('/')
            .next()
            .and_then(|name| name.rsplit_once('.'))
            .map(|(_, end)| end.to_owned())
    };
    let alike = |path: &str| is_test_path(path) && extension(path) == extension(&gone.path);
    let new = |file: &&ChangedFile| file.before.is_none() && alike(&file.path);
    files
        .iter()
        .filter(new)
        .any(|file| file.after.as_ref().map(|content| &content.oid) == oid)
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}

/// What each file lost and gained, without what moved between them.
struct Moves {
    lost: Vec<BTreeMap<String, usize>>,
    gained: Vec<BTreeMap<String, usize>>,
}

impl Moves {
    fn of(all: &[Tests<'_>], pick: fn(&Seen) -> &Vec<String>) -> Self {
        let mut moves = Self {
            lost: Vec::new(),
            gained: Vec::new(),
        };
        for tests in all {
            let (before, after) = (bag(pick(&tests.before)), bag(pick(&tests.after)));
            moves.lost.push(surplus(&before, &after));
            moves.gained.push(surplus(&after, &before));
        }
        for from in 0..moves.lost.len() {
            for to in 0..moves.gained.len() {
                moves.cancel(from, to);
            }
        }
        moves
    }

    /// What one file lost and another gained has moved.
    fn cancel(&mut self, from: usize, to: usize) {
        if from == to || self.lost[from].is_empty() || self.gained[to].is_empty() {
            return;
        }
        for (what, lost) in &mut self.lost[from] {
            if let Some(gained) = self.gained[to].get_mut(what) {
                let moved = (*lost).min(*gained);
                *lost -= moved;
                *gained -= moved;
            }
        }
    }

    fn lost(&self, at: usize) -> usize {
        self.lost[at].values().sum()
    }

    fn gained(&self, at: usize) -> usize {
        self.gained[at].values().sum()
    }
}

fn bag(items: &[String]) -> BTreeMap<String, usize> {
    let mut bag = BTreeMap::new();
    for item in items {
        *bag.entry(item.clone()).or_default() += 1;
    }
    bag
}

fn surplus(
    one: &BTreeMap<String, usize>,
    other: &BTreeMap<String, usize>,
) -> BTreeMap<String, usize> {
    let left = |(what, count): (&String, &usize)| {
        let left = count.saturating_sub(other.get(what).copied().unwrap_or(0));
        (left > 0).then(|| (what.clone(), left))
    };
    one.iter().filter_map(left).collect()
}

#[cfg(test)]
mod tests;
