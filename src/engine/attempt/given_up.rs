//! The work of iterations that were given up: where it is, and the commands that show it and bring it back.

use std::collections::BTreeSet;

use crate::engine::base::{Context, Result};
use crate::engine::record::stored::{IN_COMMAND, load_both, outputs_of, words_back};
use crate::git::tree::TreeLookup;
use crate::model::hint::Advice;
use crate::model::{Checkpoint, RepoPath, Run, State};
use crate::policy::report::{LookAtKind, ToLookAt};

/// Names the commands that show the work of an iteration that was given up, and bring back what of it is not there any more.
pub(super) fn name_work(context: &Context, state: &State, run: &Run, given_up: &mut ToLookAt) {
    let iteration = given_up
        .iteration
        .filter(|_| given_up.kind == LookAtKind::GivenUp)
        .and_then(|number| run.iterations.get(number));
    let Some(iteration) = iteration else {
        return;
    };
    let mut last = iteration.attempts.iter().rev();
    let began = iteration.began.as_ref().and_then(|id| state.checkpoint(id));
    let began = began.or_else(|| state.before_iteration(run, iteration.number));
    let last = last.find_map(|one| state.checkpoint(one.checkpoint_id.as_ref()?));
    let (Some(began), Some(last)) = (began, last) else {
        return;
    };
    let (from, to) = (began.id.as_str(), last.id.as_str());
    let show = context.hint_about(run, &["checkpoint", "diff", from, to, "--patch"]);
    let back = work_back(context, run, (began, last))
        .inspect_err(
            |error| tracing::debug!(%error, run = %run.key, "what is left of it is unknown"),
        )
        .unwrap_or_default();
    let text = format!("{}; ", given_up.text);
    given_up.text = Advice::with(text, show, format!(" shows its changes{back}"));
}

/// Where an iteration's work is that was given up, as the end of a sentence: still in the work tree, or brought back by a command
/// that takes nothing of what came after it.
fn work_back(
    context: &Context,
    run: &Run,
    (began, last): (&Checkpoint, &Checkpoint),
) -> Result<String> {
    if !context.has_git() || run.worktree != context.worktree_id() || run.live.is_some() {
        return Ok(String::new());
    }
    let repo = context.repo()?;
    let (before, after) = load_both(context, began, last)?;
    let is_output = outputs_of(&before, &after);
    let (one, other) = TreeLookup::stored(repo)?.diff(before.view(), after.view())?;
    let unlike = one.unlike(&other).filter(|(path, ..)| !is_output(path));
    let paths: BTreeSet<RepoPath> = unlike.map(|(path, ..)| path.clone()).collect();
    let gone = repo.unlike_on_disk(&after, &paths)?;
    let taken = &gone - &repo.unlike_on_disk(&before, &gone)?;
    if taken.is_empty() {
        let is_there = gone.len() < paths.len();
        let there = if is_there {
            ", which are still in the work tree"
        } else {
            ""
        };
        return Ok(there.to_owned());
    }
    let command = |paths: &BTreeSet<RepoPath>| {
        let words = words_back(last.id.as_str(), paths);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        context.hint_about(run, &words)
    };
    Ok(if taken.len() > IN_COMMAND {
        format!(
            ", {} --path FILE brings back a file",
            command(&BTreeSet::new())
        )
    } else {
        let which = if taken.len() < gone.len() {
            "those that nothing changed since"
        } else {
            "them"
        };
        format!(", {} brings {which} back", command(&taken))
    })
}
