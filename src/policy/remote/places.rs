//! Places of this machine in what is sent: each becomes a word that stands for it, and is that place of another machine there.

use serde_json::Value;

use super::names::Names;

/// What marks a process of another machine, before the id of that machine's boot.
const ELSEWHERE: &str = "elsewhere:";

/// The places of a machine, each with the word that stands for it.
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
