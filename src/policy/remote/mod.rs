//! Runs on a git server: who may speak for one, and which places and names of this machine are replaced in what is sent.
//!
//! Everything that was fetched is unverified until [`decode`] and [`follow`] found nothing wrong with it.
//!
//! No machine's clock is believed but the observer's own, and of that only how long it saw nothing change. A holder stops
//! after two thirds of a lease without a confirmed sign of life, counted from when that was *sent*; whoever watches waits for a
//! whole one from when it was *seen*, which is later. So clocks may run apart by a third before two hold a run at once.

mod verify;

pub(crate) use verify::{
    RawFile, RawState, Segment, Standing, base, decode, follow, key_of, most_of,
};

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::model::{CheckpointId, Claim, RunKey};

/// What is wrong with a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) enum Flaw {
    /// A newer version wrote it (15).
    Newer(String),
    /// It is damaged, or made up (12).
    Damaged(String),
}

/// The SHA-256 of bytes, hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Who has a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nobody: whoever had it gave it back, or has shown no sign of life for a whole lease.
    Free,
    /// The observer.
    Ours,
    /// Another machine, which may be at work.
    Held,
}

/// How a claim stands. `ours` is the nonce of the observer's own claim; `unchanged` is for how long the observer has seen this
/// very state.
pub(crate) fn hold(
    claim: &Claim,
    ours: Option<&str>,
    unchanged: Duration,
    lease: Duration,
) -> Hold {
    if claim.released {
        Hold::Free
    } else if ours == Some(claim.nonce.as_str()) {
        Hold::Ours
    } else if unchanged >= lease {
        Hold::Free
    } else {
        Hold::Held
    }
}

/// After what time without a confirmed sign of life the holder stops its agent.
pub(crate) fn stop_after(lease: Duration) -> Duration {
    lease * 2 / 3
}

/// After what time in which nothing was sent the holder gives a sign of life. `spread` (0 to 1) keeps many runs from doing so
/// at the same moment.
pub(crate) fn renewal_after(lease: Duration, spread: f64) -> Duration {
    (lease / 3).mul_f64(1.0 - 0.25 * spread.clamp(0.0, 1.0))
}

impl Claim {
    /// The claim that follows `before`.
    pub(crate) fn after(
        before: Option<&Self>,
        holder: String,
        host: String,
        nonce: String,
    ) -> Self {
        let fencing = before.map_or(0, |before| before.fencing).saturating_add(1);
        Self {
            holder,
            host,
            nonce,
            fencing,
            released: false,
        }
    }

    /// Its last state: the holder is done.
    #[must_use]
    pub(crate) fn released(&self) -> Self {
        Self {
            released: true,
            ..self.clone()
        }
    }
}

/// What marks a process of another machine, before the id of that machine's boot.
const ELSEWHERE: &str = "elsewhere:";

/// The places of a machine, each with the word that represents it.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The longest first, so that what lies in another one is found as itself.
    known: Vec<(String, &'static str)>,
    /// How checkpoints are called there, and here.
    names: Names,
}

impl Places {
    /// Those of a work tree, its state directory and its user's home, as texts. One that is not known is empty.
    pub fn new(worktree: &str, state_dir: &str, home: &str) -> Self {
        let all = [(worktree, "worktree"), (state_dir, "state"), (home, "home")];
        let is_place = |(place, _): &(&str, &str)| place.len() > 1;
        let mut known: Vec<_> = all
            .into_iter()
            .filter(is_place)
            .map(|(place, word)| (place.to_owned(), word))
            .collect();
        known.sort_by_key(|(place, _)| std::cmp::Reverse(place.len()));
        Self {
            known,
            names: Names::default(),
        }
    }

    /// The same, for documents of a run whose checkpoints have these names.
    #[must_use]
    pub fn with(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// A document for others: no text in it names a place of this machine, no process in it is taken for one of theirs.
    pub fn hide(&self, document: Value) -> Value {
        mapped(document, &|text| {
            self.names
                .there(text)
                .map_or_else(|| self.hidden(text), str::to_owned)
        })
    }

    /// A document of others with the places of this machine; its processes are those of another one.
    pub fn show(&self, document: Value) -> Value {
        mapped(document, &|text| {
            self.names.here(text).unwrap_or_else(|| self.shown(text))
        })
    }

    /// A text for others.
    pub fn hidden(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let before = &text[..text.len() - rest.len()];
            let is_here = |place: &str| {
                rest.strip_prefix(place)
                    .is_some_and(|after| is_whole(before, after))
            };
            if let Some((place, word)) = self.known.iter().find(|(place, _)| is_here(place)) {
                out.push_str(&format!("{{{word}}}"));
                rest = &rest[place.len()..];
                continue;
            }
            out.push(first);
            rest = &rest[first.len_utf8()..];
            // What looks like a word of ours is none.
            if first == '{' && (rest.starts_with('=') || word_at(rest).is_some()) {
                out.push('=');
            }
        }
        out
    }

    /// A text of others.
    pub fn shown(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let place = word_at(after).and_then(|word| {
                let place = self.known.iter().find(|(_, known)| *known == word)?;
                Some((place.0.as_str(), &after[word.len() + 1..]))
            });
            (rest, out) = match place {
                Some((place, after)) => (after, out + place),
                None => (after.strip_prefix('=').unwrap_or(after), out + "{"),
            };
        }
        out + rest
    }
}

/// The word of a place that a text begins with after its brace.
fn word_at(text: &str) -> Option<&str> {
    let (word, _) = text.split_once('}')?;
    ["worktree", "state", "home"]
        .contains(&word)
        .then_some(word)
}

/// Whether a place between these is one, and no part of a longer name.
fn is_whole(before: &str, after: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    !after.chars().next().is_some_and(is_part) && can_end_before_a_path(before)
}

/// Whether an absolute path can begin after this text: at a word's beginning, directly after an option (`-I/usr`), or as the
/// whole of what a URL without a host names (`file:///usr`).
fn can_end_before_a_path(text: &str) -> bool {
    let rest =
        text.trim_end_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
    let word = &text[rest.len()..];
    let is_option = word.starts_with('-') && !word.contains(['.', '/']);
    word.is_empty() || is_option || (word == "//" && rest.ends_with(':'))
}

/// A document with every text changed, and every process that of another machine.
fn mapped(document: Value, text: &dyn Fn(&str) -> String) -> Value {
    match document {
        Value::String(one) => Value::String(text(&one)),
        Value::Array(all) => all.into_iter().map(|one| mapped(one, text)).collect(),
        Value::Object(fields) => {
            let is_process = fields.contains_key("pid") && fields.contains_key("start_time");
            let one = |(name, value): (String, Value)| {
                let value = match name.as_str() {
                    "boot_id" if is_process => elsewhere(value.as_str().unwrap_or_default()).into(),
                    _ => mapped(value, text),
                };
                (name, value)
            };
            let mut fields: serde_json::Map<String, Value> = fields.into_iter().map(one).collect();
            if is_process {
                fields
                    .entry("boot_id")
                    .or_insert_with(|| elsewhere("").into());
            }
            Value::Object(fields)
        }
        other => other,
    }
}

/// Whether the id of a boot is that of another machine.
pub(crate) fn is_elsewhere(boot: &str) -> bool {
    boot.starts_with(ELSEWHERE)
}

/// The id of a boot that is never this machine's.
fn elsewhere(boot: &str) -> String {
    if is_elsewhere(boot) {
        boot.to_owned()
    } else {
        format!("{ELSEWHERE}{boot}")
    }
}

/// What every checkpoint's name begins with.
const BEGIN: &str = "ckpt_";

/// How one run's checkpoints are called here.
///
/// On the server a checkpoint has the name that it was taken with. On a machine where another run has one of that name it is
/// known by a longer one, and what leaves that machine has the first one again.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// What is added to a name that is taken; the same on every machine.
    end: String,
    /// Names on the server that another run's checkpoint has here.
    taken: BTreeSet<String>,
}

impl Names {
    /// Those of a run, none of which is taken.
    pub fn of(key: &RunKey) -> Self {
        let hash = sha256(key.to_string().as_bytes());
        Self {
            end: format!("_{}", &hash[..8]),
            taken: BTreeSet::new(),
        }
    }

    /// With these names, as they are on the server, taken here.
    #[must_use]
    pub fn taken<'a>(mut self, ids: impl IntoIterator<Item = &'a CheckpointId>) -> Self {
        self.taken = ids.into_iter().map(|id| id.as_str().to_owned()).collect();
        self
    }

    /// The name on the server of a checkpoint that has a longer one here.
    pub fn there<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_suffix(&self.end)
            .filter(|name| !self.end.is_empty() && name.starts_with(BEGIN))
    }

    /// The longer name here of a checkpoint on the server, where it has one.
    pub fn here(&self, name: &str) -> Option<String> {
        self.taken
            .contains(name)
            .then(|| format!("{name}{}", self.end))
    }
}

#[cfg(test)]
mod tests;
