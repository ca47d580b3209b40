//! Checkpoints as git stores them: the message with the record, damage in the object database, and edits since one was taken.
//!
//! What a person or another run changed in the work tree while a run was under way, as the checkpoints have it.
//! The run goes on from what a person changed, so that a rollback to before that takes it back with the run's own work.
//!
//! `Recover-*: value` lines at the end of a checkpoint's message: what is needed to rebuild the ledger's view of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::tree::TreeLookup;
use crate::git::{Error as GitError, Repo};
use crate::model::checkpoint::trigger;
use crate::model::operation::BaselineLayer;
use crate::model::{
    Checkpoint, Entry, EntryKind, Hint, ObjectId, RepoPath, RunKey, Snapshot, State,
};
use crate::policy::restore::{Selection, glob_of};

/// The trailer that holds the whole record, for those who rebuild the ledger from the references.
pub(super) const RECORD: &str = "Record";

/// The message of a checkpoint's commit.
pub(in crate::engine) fn message(checkpoint: &Checkpoint) -> Result<String> {
    let record =
        serde_json::to_string(checkpoint).context("cannot encode the checkpoint's record")?;
    let (seq, iteration) = (
        checkpoint.seq.to_string(),
        checkpoint.after_iteration.to_string(),
    );
    Ok(format_trailers(
        &checkpoint.description,
        &[
            ("Id", checkpoint.id.as_str()),
            ("Seq", &seq),
            ("Run", checkpoint.run.run_id.as_str()),
            ("Phase", &checkpoint.run.phase),
            ("Lane", &checkpoint.run.lane),
            ("Iteration", &iteration),
            ("Trigger", &checkpoint.trigger),
            ("Verdict", checkpoint.verdict.as_str()),
            (RECORD, &record),
        ],
    ))
}

/// The record that a checkpoint's commit carries; `None` for a commit that no `recover` wrote.
pub(crate) fn record_of(stored: &StoredCheckpoint) -> Option<Checkpoint> {
    record_in(&stored.message, &stored.commit)
}

/// The record in the message of a checkpoint's commit.
pub(in crate::engine) fn record_in(message: &str, commit: &ObjectId) -> Option<Checkpoint> {
    let all = parse_trailers(message);
    let record = &all.iter().rfind(|(key, _)| key == RECORD)?.1;
    let mut checkpoint: Checkpoint = serde_json::from_str(record).ok()?;
    checkpoint.commit = commit.clone();
    Some(checkpoint)
}

/// Marks the object database as suspect: the next captures write again what is damaged and still in the work tree.
pub(in crate::engine) fn mark_suspect(repo: &Repo) {
    if let Err(error) = repo.mark_odb_suspect() {
        tracing::warn!(%error, "the next capture does not know of the damage");
    }
}

/// What this work tree was last written from, layer by layer: edits by hand are compared with it.
pub(crate) fn baseline<'s>(context: &Context, state: &'s State) -> &'s [BaselineLayer] {
    let worktree = state.worktrees.get(&context.worktree_id());
    worktree.map_or(&[], |worktree| &worktree.baseline)
}

/// Two checkpoints as they are stored.
pub(crate) fn load_both(
    context: &Context,
    one: &Checkpoint,
    other: &Checkpoint,
) -> Result<(StoredCheckpoint, StoredCheckpoint)> {
    let repo = context.repo()?;
    let one = repo.load_checkpoint(&one.commit)?;
    Ok((one, repo.load_checkpoint(&other.commit)?))
}

/// A checkpoint as it is stored; `None` where it is damaged.
pub(in crate::engine) fn load_undamaged(
    repo: &Repo,
    checkpoint: &Checkpoint,
) -> Result<Option<StoredCheckpoint>> {
    match repo.load_checkpoint(&checkpoint.commit) {
        Err(GitError::Corrupt(_)) => Ok(None),
        loaded => Ok(Some(loaded?)),
    }
}

/// A checkpoint as it is stored, or where it is damaged the latest of its work tree before it that is not; `None` where
/// all are.
pub(in crate::engine) fn load_latest<'s>(
    context: &Context,
    state: &'s State,
    checkpoint: &'s Checkpoint,
) -> Result<Option<(&'s Checkpoint, StoredCheckpoint)>> {
    let repo = context.repo()?;
    let is_earlier = |one: &&Checkpoint| {
        one.seq < checkpoint.seq && one.worktree == checkpoint.worktree && !one.is_safety()
    };
    for one in
        std::iter::once(checkpoint).chain(state.checkpoints.values().rev().filter(is_earlier))
    {
        if let Some(stored) = load_undamaged(repo, one)? {
            return Ok(Some((one, stored)));
        }
        tracing::warn!(
            "checkpoint {} is damaged: edits are compared with an earlier one",
            one.id
        );
    }
    Ok(None)
}

/// Paths that a message names at most.
const NAMED: usize = 6;

/// Files that others changed, and the checkpoint that has them.
#[derive(Debug)]
pub(crate) struct Edits<'a> {
    /// The checkpoint.
    pub checkpoint: &'a Checkpoint,
    /// The files that are not in it as they were before.
    pub paths: BTreeSet<RepoPath>,
}

impl Edits<'_> {
    /// The files by name, the first ones.
    pub(crate) fn names(&self) -> String {
        let names = self.paths.iter().take(NAMED).map(ToString::to_string);
        let mut names: Vec<String> = names.collect();
        let others = self.paths.len().saturating_sub(NAMED);
        if others > 0 {
            names.push(format!("{others} more"));
        }
        match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => "files".to_owned(),
        }
    }

    /// The command that puts these files, and nothing else, in place again.
    pub(crate) fn brought_back(&self) -> Hint {
        let words = words_back(self.checkpoint.id.as_str(), &self.paths);
        Hint::recover(words).run(&self.checkpoint.run)
    }
}

/// Whether a path is one that this program's own output went to when one of two checkpoints was taken.
pub(in crate::engine) fn outputs_of(
    before: &StoredCheckpoint,
    after: &StoredCheckpoint,
) -> impl Fn(&RepoPath) -> bool {
    move |path| {
        [before, after]
            .iter()
            .any(|one| one.manifest.outputs.contains(path))
    }
}

/// Paths that a command names at most, where another one means the same.
pub(in crate::engine) const IN_COMMAND: usize = 20;

/// The command that brings a person's own uncommitted work back which a run changed.
pub(in crate::engine) fn own_work_back(run: &RunKey, paths: &BTreeSet<RepoPath>) -> Hint {
    let words = if paths.len() > IN_COMMAND {
        ["accept", "--uncommitted", "keep"]
            .map(str::to_owned)
            .into()
    } else {
        words_back("initial", paths)
    };
    Hint::recover(words).run(run)
}

/// Says which of the globs that a user gave select nothing on either side.
///
/// # Errors
/// A tree cannot be read, or a glob is none.
pub(in crate::engine) fn note_unmatched(
    context: &Context,
    globs: &[String],
    sides: impl FnOnce() -> Result<[Snapshot; 2]>,
) -> Result<()> {
    if globs.is_empty() {
        return Ok(());
    }
    let sides = sides()?;
    for glob in globs {
        let selection = selection(std::slice::from_ref(glob))?;
        // A folder that is a repository of its own is all that these know of it.
        let selects = |path: &RepoPath, entry: &Entry| {
            selection.matches(path)
                || entry.kind == EntryKind::Gitlink
                    && Path::new(glob).starts_with(path.below(Path::new("")))
        };
        if !sides.iter().any(|side| {
            side.entries
                .iter()
                .any(|(path, entry)| selects(path, entry))
        }) {
            context.note(format!(
                "--path {glob} selects no file, neither of the checkpoint nor of the work tree"
            ));
        }
    }
    Ok(())
}

/// The paths that `--path` selects.
///
/// # Errors
/// A glob is none (2).
pub(in crate::engine) fn selection(globs: &[String]) -> Result<Selection> {
    Selection::globs(globs)
        .map_err(|error| Error::new(ErrorKind::Usage, format!("--path: {error}")))
}

/// The words of the command that brings files, and nothing else, back to a checkpoint.
pub(in crate::engine) fn words_back(selector: &str, paths: &BTreeSet<RepoPath>) -> Vec<String> {
    let words = ["checkpoint", "restore", selector].map(str::to_owned);
    let paths = paths
        .iter()
        .flat_map(|path| ["--path".to_owned(), glob_of(path)]);
    words.into_iter().chain(paths).collect()
}

/// What others changed since a checkpoint of a run, of which that has not the same; the latest first.
pub(crate) fn since<'a>(
    context: &Context,
    state: &'a State,
    target: &Checkpoint,
) -> Result<Vec<Edits<'a>>> {
    let after: Vec<&Checkpoint> = state
        .standing(&target.run)
        .filter(|one| one.seq > target.seq)
        .collect();
    if after.iter().all(|one| one.trigger != trigger::EDITED) {
        return Ok(Vec::new());
    }
    let repo = context.repo()?;
    let goal = repo.load_checkpoint(&target.commit)?;
    let lookup = TreeLookup::stored(repo)?;
    let mut found = Vec::new();
    for (at, edited) in after
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, one)| one.trigger == trigger::EDITED)
    {
        let before = at.checked_sub(1).map_or(target, |before| after[before]);
        // What cannot be read cannot be brought back either.
        let (Some(before), Some(edited_tree)) =
            (load_undamaged(repo, before)?, load_undamaged(repo, edited)?)
        else {
            continue;
        };
        // What a rollback in between restored is as the target has it.
        let changed = unlike(&lookup, &before, &edited_tree)?;
        let paths: BTreeSet<RepoPath> = &changed & &unlike(&lookup, &goal, &edited_tree)?;
        if !paths.is_empty() {
            found.push(Edits {
                checkpoint: edited,
                paths,
            });
        }
    }
    Ok(found)
}

/// Paths that differ between two checkpoints, without what this program's own output went to.
fn unlike(
    lookup: &TreeLookup<'_>,
    one: &StoredCheckpoint,
    other: &StoredCheckpoint,
) -> Result<BTreeSet<RepoPath>> {
    let (one_tree, other_tree) = lookup.diff(one.view(), other.view())?;
    let outputs = [&one.manifest.outputs, &other.manifest.outputs];
    let paths = one_tree.unlike(&other_tree).map(|(path, ..)| path);
    Ok(paths
        .filter(|path| !outputs.iter().any(|all| all.contains(path)))
        .cloned()
        .collect())
}

/// Paths that other runs changed in this work tree after a checkpoint, and which run did so last, as checkpoints have it.
/// A run that began when this one had ended comes after it: what it changed goes back with what it is built on.
///
/// What changed between two of them is the later one's, if that was taken after something was done, and the earlier one's,
/// if that was taken right before an agent's tool was called. A damaged one says nothing.
pub(crate) fn of_others<'a>(
    context: &Context,
    state: &'a State,
    target: &'a Checkpoint,
    run: Option<&RunKey>,
) -> Result<BTreeMap<RepoPath, &'a RunKey>> {
    let here = context.worktree_id();
    let is_own = |key: &RunKey| {
        key.run_id == target.run.run_id || run.is_some_and(|run| run.run_id == key.run_id)
    };
    let ended = state
        .run(run.unwrap_or(&target.run))
        .and_then(|own| own.ended_at);
    let is_later = |key: &RunKey| {
        ended
            .zip(state.run(key))
            .is_some_and(|(ended, other)| other.created_at >= ended)
    };
    let is_own = |key: &RunKey| is_own(key) || is_later(key);
    let later = state
        .checkpoints
        .values()
        .rev()
        .take_while(|one| one.seq > target.seq);
    let mut later: Vec<&Checkpoint> = later.filter(|one| one.worktree == here).collect();
    let mut found = BTreeMap::new();
    if later.iter().all(|one| one.is_safety() || is_own(&one.run)) {
        return Ok(found);
    }
    later.reverse();
    let repo = context.repo()?;
    let lookup = TreeLookup::stored(repo)?;
    let undo = state
        .worktrees
        .get(&here)
        .map_or(&[][..], |worktree| &worktree.undo);
    let mut before = if target.worktree == here {
        load_undamaged(repo, target)?
    } else {
        None
    };
    let mut acts = calls_tool(state, target).then_some(&target.run);
    for one in later {
        if one.is_safety() {
            // What a whole restore put there is no change of the run whose checkpoint is next.
            let operation = undo
                .iter()
                .find(|entry| entry.checkpoint_id == one.id && entry.paths.is_empty());
            let restored = operation.and_then(|entry| state.checkpoint(entry.restored.as_ref()?));
            if let Some(restored) = restored
                .map(|one| load_undamaged(repo, one))
                .transpose()?
                .flatten()
            {
                (before, acts) = (Some(restored), None);
            }
            continue;
        }
        let Some(stored) = load_undamaged(repo, one)? else {
            continue;
        };
        let first = state
            .checkpoints_of(&one.run)
            .find(|first| !first.is_safety());
        let calls_tool = calls_tool(state, one);
        let found_there =
            calls_tool || [trigger::INITIAL, trigger::EDITED].contains(&one.trigger.as_str());
        let did = Some(&one.run)
            .filter(|_| !found_there && first.is_some_and(|first| first.id != one.id));
        if let Some(other) = did.into_iter().chain(acts).find(|run| !is_own(run))
            && let Some(before) = &before
        {
            found.extend(
                unlike(&lookup, before, &stored)?
                    .into_iter()
                    .map(|path| (path, other)),
            );
        }
        (before, acts) = (Some(stored), calls_tool.then_some(&one.run));
    }
    Ok(found)
}

/// Whether a checkpoint was taken right before an agent called a tool.
fn calls_tool(state: &State, one: &Checkpoint) -> bool {
    match one.trigger.as_str() {
        trigger::BEFORE_EDIT | trigger::RISKY | trigger::EXTERNAL => true,
        // The first of a session is of its first call.
        trigger::INITIAL => state
            .run(&one.run)
            .is_some_and(|run| run.spec.command.is_empty()),
        _ => false,
    }
}

/// What every key begins with.
const PREFIX: &str = "Recover-";

/// A message from a headline for people and trailers, in the given order.
///
/// Keys are given without `Recover-`. A value may hold anything: line ends, control characters and backslashes are escaped.
pub fn format_trailers(headline: &str, trailers: &[(&str, &str)]) -> String {
    // A line of the headline must not be read back as a trailer, so it stays in the first paragraph.
    let headline: String = headline
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let headline = headline.trim();
    let mut message = if headline.is_empty() {
        "checkpoint".to_owned()
    } else {
        headline.to_owned()
    };
    message.push_str("\n\n");
    for (key, value) in trailers {
        let _ = writeln!(message, "{PREFIX}{key}: {}", escape(value));
    }
    message
}

/// The trailers of a message, keys without `Recover-`, in their order.
pub(crate) fn parse_trailers(message: &str) -> Vec<(String, String)> {
    let last = message
        .trim_end_matches('\n')
        .rsplit_once("\n\n")
        .map_or("", |(_, last)| last);
    let lines = last.lines().filter_map(|line| {
        line.strip_prefix(PREFIX)?
            .split_once(": ")
            .or_else(|| Some((line.strip_prefix(PREFIX)?.strip_suffix(':')?, "")))
    });
    lines
        .map(|(key, value)| (key.to_owned(), unescape(value)))
        .collect()
}

fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Besides the control characters, the separators that some readers take for line ends.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let code = chars
                    .as_str()
                    .strip_prefix('{')
                    .and_then(|text| text.split_once('}'));
                let read = code.and_then(|(hex, rest)| {
                    Some((char::from_u32(u32::from_str_radix(hex, 16).ok()?)?, rest))
                });
                if let Some((c, rest)) = read {
                    out.push(c);
                    chars = rest.chars();
                }
            }
            Some(c) => out.push(c),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_read_back(headline in any::<String>(), values in prop::collection::vec(any::<String>(), 1..5)) {
            let keys: Vec<_> = (0..values.len()).map(|n| std::format!("Key-{n}")).collect();
            let pairs: Vec<_> = keys.iter().map(String::as_str).zip(values.iter().map(String::as_str)).collect();
            let message = format_trailers(&headline, &pairs);
            let expected: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            prop_assert_eq!(parse_trailers(&message), expected);
        }
    }
}
