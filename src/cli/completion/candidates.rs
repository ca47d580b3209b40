//! What only the state knows at this moment: runs, checkpoints, strategies; the likeliest first.
//!
//! Whatever is wrong (no state, a broken configuration), there is nothing to be completed, and nothing is printed.

use std::ffi::OsStr;

use clap::{CommandFactory, FromArgMatches};
use clap_complete::CompletionCandidate;

use super::super::{
    args::{Cli, GlobalArgs, expand_aliases},
    render::when,
    setup::context,
    ui::escape,
};
use crate::engine::{
    Context, ErrorKind, Result,
    rollback::{targets, targets_of_worktree},
    status::status,
};
use crate::model::decision::Strategy;
use crate::policy::retry::label;

/// A word with its help.
type Word = (String, String);

/// Ids of runs.
pub(super) fn runs(typed: &OsStr) -> Vec<CompletionCandidate> {
    offered(typed, known_runs)
}

/// Agents that can be started.
pub(super) fn agents(typed: &OsStr) -> Vec<CompletionCandidate> {
    offered(typed, known_agents)
}

/// Checkpoints as selectors name them.
pub(super) fn checkpoints(typed: &OsStr) -> Vec<CompletionCandidate> {
    offered(typed, known_checkpoints)
}

/// Strategies that the run may be resumed with; all where it is not known which run.
pub(super) fn strategies(typed: &OsStr) -> Vec<CompletionCandidate> {
    offered(typed, |context| Ok(known_strategies(context)))
}

fn offered(typed: &OsStr, known: fn(&Context) -> Result<Vec<Word>>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let words = place()
        .and_then(|global| known(&context(&global, None)?))
        .unwrap_or_default();
    let fitting = words
        .into_iter()
        .filter(|(word, _)| word.starts_with(&*typed));
    let candidate = |(order, (word, help)): (usize, Word)| {
        CompletionCandidate::new(word)
            .help(Some(escape(&help).into()))
            .display_order(Some(order))
    };
    fitting.enumerate().map(candidate).collect()
}

/// What the line says so far of where to look: `-C`, `--state-dir`, `--run` and the like.
fn place() -> Result<GlobalArgs> {
    let mut words: Vec<_> = std::env::args_os()
        .skip_while(|word| word != "--")
        .skip(1)
        .collect();
    // The word that is being completed says nothing yet.
    words.pop();
    let line = Cli::command()
        .ignore_errors(true)
        .try_get_matches_from(expand_aliases(words));
    let found = line.and_then(|line| GlobalArgs::from_arg_matches(&line));
    found.map_err(|error| crate::engine::Error::new(ErrorKind::Usage, error.to_string()))
}

fn known_agents(context: &Context) -> Result<Vec<Word>> {
    let profiles = context.config().agents()?;
    let words = profiles
        .into_iter()
        .map(|(name, profile)| (name, format!("starts {}", profile.program)));
    let others = [
        ("auto", "found out by the command"),
        ("none", "an ordinary program"),
    ];
    Ok(words
        .chain(others.map(|(word, help)| (word.to_owned(), help.to_owned())))
        .collect())
}

fn known_runs(context: &Context) -> Result<Vec<Word>> {
    let (state, now) = (context.load()?.state, context.clock.now());
    let words = state.runs.iter().rev().map(|run| {
        (
            run.key.run_id.to_string(),
            format!(
                "{}, started {}",
                run.status.as_str(),
                when(run.created_at, now)
            ),
        )
    });
    let mut words: Vec<Word> = words.collect();
    // Lanes share an id.
    words.dedup_by(|one, other| one.0 == other.0);
    Ok(words)
}

fn known_checkpoints(context: &Context) -> Result<Vec<Word>> {
    let now = context.clock.now();
    let mut words = Vec::new();
    let (all, of_one) = match targets(context) {
        Ok(targets) => {
            let named = [
                ("latest", "the latest", !targets.checkpoints.is_empty()),
                ("good", "the last good one", targets.last_good.is_some()),
                ("initial", "before the run", targets.initial.is_some()),
            ];
            let there = named.into_iter().filter(|(.., there)| *there);
            words.extend(there.map(|(word, what, _)| (word.to_owned(), what.to_owned())));
            (targets.checkpoints, true)
        }
        // Only ids say of which run they are.
        Err(error) if error.kind == ErrorKind::Ambiguous => (targets_of_worktree(context)?, false),
        Err(error) => return Err(error),
    };
    words.extend(all.iter().rev().map(|checkpoint| {
        let (number, verdict) = (checkpoint.after_iteration, checkpoint.verdict.as_str());
        let age = when(checkpoint.created_at, now);
        let of = if of_one {
            String::new()
        } else {
            format!("{}, ", checkpoint.run)
        };
        (
            checkpoint.id.to_string(),
            format!(
                "{of}after iteration {number}, {verdict}, {age}: {}",
                checkpoint.description
            ),
        )
    }));
    Ok(words)
}

/// Those that are possible for the run; all where it is not known which.
fn known_strategies(context: &Context) -> Vec<Word> {
    let options = status(context)
        .map(|status| status.options)
        .unwrap_or_default();
    if options.is_empty() {
        return Strategy::ALL
            .map(|strategy| (strategy.as_str().to_owned(), label(strategy).to_owned()))
            .into();
    }
    let possible = options.into_iter().filter(|option| option.available);
    possible
        .map(|option| (option.strategy.as_str().to_owned(), option.description))
        .collect()
}
