//! The iterations of a run.
//!
//! A run that goes on for months has thousands. They are kept in pages by their number; a page that nobody reads
//! stays packed, and what is asked of every page is known without a look: what a command pays for hardly grows with the
//! run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, Iteration, IterationStatus};
use super::id::CheckpointId;
use super::lazy_compressed::{LazyCompressed, Part};
use super::usage::Usage;

/// How many numbers a page spans.
const PAGE: u32 = 16;

/// Iterations by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iterations {
    /// Pages that are not empty, by the first number divided by [`PAGE`].
    pages: BTreeMap<u32, Page>,
}

/// Iterations with neighbouring numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Page {
    /// What was known of them when they were packed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<About>,
    /// Themselves.
    content: LazyCompressed<BTreeMap<u32, Iteration>>,
}

/// What is known of the iterations of a page without a look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    /// Where each stands.
    statuses: BTreeMap<u32, IterationStatus>,
    /// How many attempts they have.
    attempts: usize,
    /// Checksums of what these are booked on.
    subtasks: BTreeSet<u32>,
    /// Sequence of the last end of one.
    last_ended: u64,
    /// Those that have not ended: numbers of iteration and attempt.
    unended: Vec<(u32, u32)>,
    /// What they used up.
    usage: Usage,
    /// Whether one passed and may have weakened what judges it, or changed git's settings.
    weakened: bool,
}

impl About {
    fn of(content: &BTreeMap<u32, Iteration>) -> Self {
        let attempts = || content.values().flat_map(|iteration| &iteration.attempts);
        Self {
            statuses: content
                .iter()
                .map(|(number, iteration)| (*number, iteration.status))
                .collect(),
            attempts: attempts().count(),
            subtasks: attempts()
                .map(|attempt| checksum(&attempt.subtask))
                .collect(),
            last_ended: attempts()
                .filter_map(|attempt| attempt.ended_seq)
                .max()
                .unwrap_or(0),
            unended: content.values().flat_map(unended_of).collect(),
            usage: attempts().map(Attempt::usage).sum(),
            weakened: attempts()
                .any(|attempt| attempt.is_weakened() || !attempt.git_changes.is_empty()),
        }
    }

    /// What is known once an attempt begins. Returns whether it could be said without a look.
    fn begin(&mut self, number: u32, attempt: &Attempt) -> bool {
        self.statuses.insert(number, IterationStatus::InProgress);
        self.attempts += 1;
        self.subtasks.insert(checksum(&attempt.subtask));
        let is_new = !self.unended.contains(&(number, attempt.number));
        self.unended.push((number, attempt.number));
        is_new
            && attempt.outcome.is_none()
            && attempt.usage() == Usage::default()
            && !attempt.is_weakened()
    }

    /// [`Self::begin`], once one ends.
    fn end(&mut self, end: &End) -> bool {
        let before = self.unended.len();
        self.unended
            .retain(|one| *one != (end.iteration, end.attempt));
        self.statuses.insert(end.iteration, end.status);
        self.last_ended = self.last_ended.max(end.seq);
        self.usage = self.usage + end.usage;
        self.weakened |= end.weakened;
        before == self.unended.len() + 1
    }
}

/// What an attempt's end says of its iteration without a look.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// Number of the iteration.
    pub iteration: u32,
    /// Number of the attempt in it.
    pub attempt: u32,
    /// Where the iteration stands then.
    pub status: IterationStatus,
    /// Sequence of the event.
    pub seq: u64,
    /// What the attempt used up.
    pub usage: Usage,
    /// Whether it passed and may have weakened what judges it, or changed git's settings.
    pub weakened: bool,
}

/// The attempts of an iteration that have not ended.
fn unended_of(iteration: &Iteration) -> impl Iterator<Item = (u32, u32)> {
    let unended = iteration
        .attempts
        .iter()
        .filter(|attempt| attempt.outcome.is_none());
    unended.map(|attempt| (iteration.number, attempt.number))
}

fn pending(number: u32) -> Iteration {
    Iteration {
        number,
        status: IterationStatus::Pending,
        attempts: Vec::new(),
        reason: None,
        began: None,
    }
}

/// Of a subtask's name: which pages speak of it is known by these.
pub(crate) fn checksum(subtask: &str) -> u32 {
    crc32fast::hash(subtask.as_bytes())
}

impl PartialEq for Page {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl Eq for Page {}

impl Page {
    fn about(&self) -> Cow<'_, About> {
        match &self.about {
            Some(about) if self.content.was_packed() => Cow::Borrowed(about),
            _ => Cow::Owned(About::of(&self.content)),
        }
    }

    fn statuses(&self) -> BTreeMap<u32, IterationStatus> {
        self.about().into_owned().statuses
    }
}

impl Iterations {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.pages
            .values()
            .map(|page| page.about().statuses.len())
            .sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The one with this number.
    pub fn get(&self, number: u32) -> Option<&Iteration> {
        self.pages.get(&(number / PAGE))?.content.get(&number)
    }

    /// A mutable reference to it.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Iteration> {
        self.get(number)?;
        self.pages
            .get_mut(&(number / PAGE))?
            .content
            .get_mut(&number)
    }

    /// The one with this number; a pending one where there is none.
    pub fn get_or_pending(&mut self, number: u32) -> &mut Iteration {
        self.pages
            .entry(number / PAGE)
            .or_default()
            .content
            .entry(number)
            .or_insert_with(|| pending(number))
    }

    /// An attempt begins: its iteration, a pending one where there is none, is under way and gets it by `change`.
    pub fn begin(
        &mut self,
        number: u32,
        attempt: &Attempt,
        change: impl Fn(&mut Iteration) + Send + Sync + 'static,
    ) {
        self.change(number, |about| about.begin(number, attempt), change);
    }

    /// An attempt ends, as `change` notes in its iteration.
    pub fn end(&mut self, end: &End, change: impl Fn(&mut Iteration) + Send + Sync + 'static) {
        self.change(end.iteration, |about| about.end(end), change);
    }

    /// Notes what an iteration began from, unless that is known.
    pub fn note_began(&mut self, number: u32, began: Option<CheckpointId>) {
        let note = move |iteration: &mut Iteration| {
            iteration.began = iteration.began.take().or(began.clone());
        };
        self.change(number, |_| true, note);
    }

    /// Changes an iteration, a pending one where there is none: on a page that nobody looks at, once somebody does. `known`
    /// says at once what is known of it without a look, and whether that could be said.
    fn change(
        &mut self,
        number: u32,
        known: impl FnOnce(&mut About) -> bool,
        change: impl Fn(&mut Iteration) + Send + Sync + 'static,
    ) {
        let page = self.pages.entry(number / PAGE).or_default();
        let is_known = page.content.was_packed() && page.about.as_mut().is_some_and(known);
        let change = move |content: &mut BTreeMap<u32, Iteration>| {
            change(content.entry(number).or_insert_with(|| pending(number)));
        };
        if is_known {
            page.content.change_later(change);
        } else {
            change(&mut page.content);
        }
    }

    /// All, lowest number first.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Iteration> {
        self.pages.values().flat_map(|page| page.content.values())
    }

    /// Those from this number on, lowest number first.
    pub fn since(&self, first: u32) -> impl DoubleEndedIterator<Item = &Iteration> {
        let pages = self.pages.range(first / PAGE..).map(|(_, page)| page);
        pages
            .flat_map(move |page| page.content.range(first..))
            .map(|(_, iteration)| iteration)
    }

    /// The latest `most` and, of those before them, all that are not completed, lowest number first.
    pub fn recent(&self, most: usize) -> Vec<&Iteration> {
        let before = self.len().saturating_sub(most);
        let shown = self
            .statuses()
            .enumerate()
            .filter(|(at, (_, status))| *at >= before || *status != IterationStatus::Completed);
        shown
            .filter_map(|(_, (number, _))| self.get(number))
            .collect()
    }

    /// Those from this number on, to be changed.
    pub fn iter_mut_from(&mut self, first: u32) -> impl Iterator<Item = &mut Iteration> {
        let pages = self.pages.range_mut(first / PAGE..);
        pages
            .flat_map(move |(_, page)| page.content.range_mut(first..))
            .map(|(_, iteration)| iteration)
    }

    /// The attempts that have not ended, to be changed.
    pub fn unended_mut(&mut self) -> impl Iterator<Item = &mut Attempt> {
        let pages = self
            .pages
            .values_mut()
            .filter(|page| !page.about().unended.is_empty());
        let attempts = pages
            .flat_map(|page| page.content.values_mut())
            .flat_map(|iteration| &mut iteration.attempts);
        attempts.filter(|attempt| attempt.outcome.is_none())
    }

    /// Where each stands, lowest number first.
    pub fn statuses(&self) -> impl DoubleEndedIterator<Item = (u32, IterationStatus)> {
        self.pages.values().flat_map(Page::statuses)
    }

    /// Where the one with this number stands.
    pub fn status(&self, number: u32) -> Option<IterationStatus> {
        self.pages
            .get(&(number / PAGE))?
            .about()
            .statuses
            .get(&number)
            .copied()
    }

    /// The highest number.
    pub fn last_number(&self) -> Option<u32> {
        self.statuses().next_back().map(|(number, _)| number)
    }

    /// All attempts, each with its iteration, oldest iteration first.
    pub fn attempts(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts_where(|_| true)
    }

    /// How many attempts there are.
    pub fn count_attempts(&self) -> usize {
        self.pages.values().map(|page| page.about().attempts).sum()
    }

    /// The attempts that are booked on `subtask`.
    pub fn attempts_on(
        &self,
        subtask: &str,
    ) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        let checksum = checksum(subtask);
        let attempts = self.attempts_where(move |about| about.subtasks.contains(&checksum));
        attempts.filter(move |(_, attempt)| attempt.subtask == subtask)
    }

    /// The attempts that passed and may have weakened what judges them.
    pub fn weakened(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts_where(|about| about.weakened)
            .filter(|(_, attempt)| attempt.is_weakened())
    }

    /// The attempts that ended after the event with this sequence.
    pub fn ended_after(&self, seq: u64) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        let attempts = self.attempts_where(move |about| about.last_ended > seq);
        attempts.filter(move |(_, attempt)| attempt.ended_seq > Some(seq))
    }

    /// The attempt that ended last.
    pub fn last_ended(&self) -> Option<&Attempt> {
        let last = self
            .pages
            .values()
            .map(|page| page.about().last_ended)
            .max()?;
        self.ended_after(last.saturating_sub(1))
            .map(|(_, attempt)| attempt)
            .next()
    }

    /// What all attempts used up.
    pub fn usage(&self) -> Usage {
        self.pages.values().map(|page| page.about().usage).sum()
    }

    /// The attempts that changed git's settings.
    pub fn with_git_changes(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts_where(|about| about.weakened)
            .filter(|(_, attempt)| !attempt.git_changes.is_empty())
    }

    fn attempts_where(
        &self,
        may: impl Fn(&About) -> bool,
    ) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        let pages = self.pages.values().filter(move |page| may(&page.about()));
        let iterations = pages.flat_map(|page| page.content.values());
        iterations.flat_map(|iteration| {
            iteration
                .attempts
                .iter()
                .map(move |attempt| (iteration, attempt))
        })
    }

    /// All that may be packed, always in the same order.
    pub fn parts(&mut self) -> impl Iterator<Item = &mut dyn Part> {
        self.pages
            .values_mut()
            .map(|page| &mut page.content as &mut dyn Part)
    }

    /// Packs all pages.
    pub fn pack(&mut self) {
        for page in self.pages.values_mut() {
            page.about = Some(page.about().into_owned());
            page.content.pack();
        }
    }

    /// Takes all out of their packing, so that the whole can be packed as one.
    pub fn unpack(&mut self) {
        for page in self.pages.values_mut() {
            page.about = None;
            page.content.unpack();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::failure::Condition;
    use crate::model::lazy_compressed::Bytes;
    use crate::model::run::AttemptOutcome;

    fn attempt(number: u32, subtask: u32, ended: Option<u64>) -> Attempt {
        let made = json!({
            "number": number, "started_at": "2026-01-01T00:00:00Z", "subtask": format!("s{subtask}"), "session": "one",
            "outcome": ended.map(|_| "failed"), "duration_ms": null, "exit_code": null, "signal": null,
            "timed_out": false, "log_path": null, "checkpoint_id": null, "failure": null, "feedback_results": {},
            "charged": false, "decision": null, "ended_seq": ended, "cost_micros": ended,
        });
        let made: Attempt = serde_json::from_value(made).expect("an attempt");
        match ended {
            Some(seq) if seq % 4 == 0 => Attempt {
                outcome: Some(AttemptOutcome::Passed),
                conditions: vec![Condition::Tampered],
                ..made
            },
            _ => made,
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Attempt(u32, u32, bool),
        Complete(u32),
        Supersede(u32),
        EndAll,
        Pack,
        Unpack,
        Store,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (1..70_u32, 0..4_u32, any::<bool>()).prop_map(|(n, subtask, ended)| Step::Attempt(n, subtask, ended)),
            3 => (1..70_u32).prop_map(Step::Complete),
            1 => (1..90_u32).prop_map(Step::Supersede),
            1 => Just(Step::EndAll),
            2 => Just(Step::Pack),
            1 => Just(Step::Unpack),
            2 => Just(Step::Store),
        ];
        prop::collection::vec(step, 0..60)
    }

    fn stored(pages: &mut Iterations) -> Iterations {
        let text = serde_json::to_string(pages).expect("plain data");
        let mut read: Iterations = serde_json::from_str(&text).expect("what was written");
        for (part, stored) in read.parts().zip(pages.parts()) {
            if let Some(bytes) = stored.bytes() {
                part.fill(Bytes {
                    length: bytes.len(),
                    source: Arc::new(bytes),
                    at: 0,
                });
            }
        }
        read
    }

    proptest! {
        // Pages, packed or not, are the same as one map.
        #[test]
        fn pages_are_a_map(steps in steps()) {
            let (mut pages, mut map) = (Iterations::default(), BTreeMap::<u32, Iteration>::new());
            for (seq, step) in (1..).zip(steps) {
                match step {
                    Step::Attempt(number, subtask, ended) => {
                        let entry = map.entry(number).or_insert_with(|| pending(number));
                        let begun = attempt(u32::try_from(entry.attempts.len()).expect("few") + 1, subtask, None);
                        let begin = move |entry: &mut Iteration| {
                            entry.status = IterationStatus::InProgress;
                            entry.attempts.push(begun.clone());
                        };
                        begin(entry);
                        let begun = entry.attempts.last().expect("just begun").clone();
                        pages.begin(number, &begun, begin);
                        if ended {
                            let ended = attempt(begun.number, subtask, Some(seq));
                            let status = IterationStatus::Failed;
                            let (attempt, usage, weakened) = (begun.number, ended.usage(), ended.is_weakened());
                            let end = move |entry: &mut Iteration| {
                                entry.status = status;
                                *entry.attempts.last_mut().expect("just begun") = ended.clone();
                            };
                            end(entry);
                            pages.end(&End { iteration: number, attempt, status, seq, usage, weakened }, end);
                        }
                    }
                    Step::Complete(number) => {
                        for one in pages.get_mut(number).into_iter().chain(map.get_mut(&number)) {
                            one.status = IterationStatus::Completed;
                        }
                    }
                    Step::Supersede(first) => {
                        pages.iter_mut_from(first).for_each(|one| one.status = IterationStatus::Superseded);
                        map.range_mut(first..).for_each(|(_, one)| one.status = IterationStatus::Superseded);
                    }
                    Step::EndAll => {
                        let mut open: Vec<&mut Attempt> = pages.unended_mut().collect();
                        let all = map.values_mut().flat_map(|one| &mut one.attempts);
                        open.extend(all.filter(|attempt| attempt.outcome.is_none()));
                        for attempt in open {
                            attempt.outcome = Some(AttemptOutcome::Cancelled);
                        }
                    }
                    Step::Pack => pages.pack(),
                    Step::Unpack => pages.unpack(),
                    Step::Store => pages = stored(&mut pages),
                }
                prop_assert_eq!((pages.len(), pages.is_empty()), (map.len(), map.is_empty()));
                prop_assert!(pages.statuses().eq(map.values().map(|one| (one.number, one.status))));
                prop_assert_eq!(pages.last_number(), map.keys().next_back().copied());
                prop_assert_eq!(pages.status(5), map.get(&5).map(|one| one.status));
                let known: BTreeSet<_> = pages.pages.values().flat_map(|page| page.about().into_owned().unended).collect();
                prop_assert_eq!(known, map.values().flat_map(unended_of).collect());
            }
            let attempts = || map.values().flat_map(|one| one.attempts.iter().map(move |attempt| (one, attempt)));
            prop_assert_eq!(pages.count_attempts(), attempts().count());
            prop_assert_eq!(pages.usage(), attempts().map(|(_, attempt)| attempt.usage()).sum());
            prop_assert!(pages.weakened().eq(attempts().filter(|(_, attempt)| attempt.is_weakened())));
            let last = attempts().map(|(_, attempt)| attempt).filter(|attempt| attempt.ended_seq.is_some());
            prop_assert_eq!(pages.last_ended(), last.max_by_key(|attempt| attempt.ended_seq));
            for number in 0..60 {
                prop_assert!(pages.since(number).eq(map.range(number..).map(|(_, one)| one)));
            }
            for seq in 0..60 {
                prop_assert!(pages.ended_after(seq).eq(attempts().filter(|(_, one)| one.ended_seq > Some(seq))));
            }
            for subtask in ["s0", "s1", "s2", "s3", "s4"] {
                prop_assert!(pages.attempts_on(subtask).eq(attempts().filter(|(_, one)| one.subtask == subtask)));
            }
            for most in [0, 1, 20, 100] {
                let before = map.len().saturating_sub(most);
                let recent = map.values().enumerate();
                let recent = recent.filter(|(at, one)| *at >= before || one.status != IterationStatus::Completed);
                prop_assert!(pages.recent(most).into_iter().eq(recent.map(|(_, one)| one)));
            }
            for number in 0..80 {
                prop_assert_eq!(pages.get(number), map.get(&number));
            }
            prop_assert!(pages.attempts().rev().eq(attempts().collect::<Vec<_>>().into_iter().rev()));
            prop_assert!(pages.values().eq(map.values()));
        }
    }
}
