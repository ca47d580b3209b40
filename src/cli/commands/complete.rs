//! `__complete`: what shells complete, a line each. Whatever is wrong, there is just nothing to be completed.

use serde_json::json;

use crate::engine::rollback::{targets_of_all, targets_of_worktree};
use crate::engine::status::status;
use crate::engine::{Context, ErrorKind, Result};
use crate::model::checkpoint::{Checkpoint, Verdict};
use crate::model::decision::Strategy;
use crate::policy::options::label;

use super::super::args::CompleteKind;
use super::super::render::when;
use super::super::ui::{Reply, escape};

/// The words of a kind, the likeliest first.
pub fn complete(context: &Context, kind: CompleteKind) -> Reply {
    let words = match kind {
        CompleteKind::Runs => runs(context),
        CompleteKind::Checkpoints => checkpoints(context),
        CompleteKind::Strategies => Ok(strategies(context)),
    };
    let mut words = words.unwrap_or_default();
    // A line is a word: what would not be one is not offered.
    words.retain(|(word, _)| !word.is_empty() && !word.chars().any(char::is_control));
    let lines: Vec<String> = words.iter().map(|(word, what)| format!("{word}\t{}\n", escape(what))).collect();
    let known: Vec<&String> = words.iter().map(|(word, _)| word).collect();
    Reply::new(json!({"words": known}), lines.concat())
}

type Words = Vec<(String, String)>;

fn runs(context: &Context) -> Result<Words> {
    let (state, now) = (context.load()?.state, context.clock.now());
    let words =
        state.runs.iter().rev().map(|run| {
            (run.key.run_id.clone(), format!("{}, begun {}", run.status.as_str(), when(run.created_at, now)))
        });
    let mut words: Words = words.collect();
    // Lanes share an id.
    words.dedup_by(|one, other| one.0 == other.0);
    Ok(words)
}

fn checkpoints(context: &Context) -> Result<Words> {
    let now = context.clock.now();
    let mut words = Words::new();
    let (all, of_one) = match targets_of_all(context) {
        Ok(all) => {
            let named = [("latest", "the latest"), ("good", "the last good one"), ("initial", "before the run")];
            let is_good = |checkpoint: &Checkpoint| checkpoint.verdict == Verdict::Passed;
            let there = named.into_iter().filter(|(word, _)| *word != "good" || all.iter().any(is_good));
            words.extend(there.map(|(word, what)| (word.to_owned(), what.to_owned())));
            (all, true)
        }
        // Only ids say of which run they are.
        Err(error) if error.kind == ErrorKind::Ambiguous => (targets_of_worktree(context)?, false),
        Err(error) => return Err(error),
    };
    words.extend(all.iter().rev().map(|checkpoint| {
        let (number, verdict) = (checkpoint.after_iteration, checkpoint.verdict.as_str());
        let age = when(checkpoint.created_at, now);
        let of = if of_one { String::new() } else { format!("{}, ", checkpoint.run) };
        (checkpoint.id.clone(), format!("{of}after iteration {number}, {verdict}, {age}: {}", checkpoint.description))
    }));
    Ok(words)
}

/// Those that are possible for the run; all where it is not known which.
fn strategies(context: &Context) -> Words {
    let options = status(context).map(|status| status.options).unwrap_or_default();
    if options.is_empty() {
        return Strategy::ALL.map(|strategy| (strategy.as_str().to_owned(), label(strategy).to_owned())).into();
    }
    let possible = options.into_iter().filter(|option| option.available);
    possible.map(|option| (option.strategy.as_str().to_owned(), option.description)).collect()
}
