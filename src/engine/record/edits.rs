//! What somebody else changed in the work tree while a run was under way, as the checkpoints of it have it.
//! The run goes on from those files, so that a rollback to before them takes them back with its own.

use std::collections::BTreeSet;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git::checkpoint::{StoredCheckpoint, load_checkpoint};
use crate::git::tree::{TreeLookup, diff_trees};
use crate::model::checkpoint::{Checkpoint, trigger};
use crate::model::hint::Hint;
use crate::model::path::RepoPath;
use crate::model::state::State;
use crate::policy::path_filter::glob_of;

/// So many paths are named.
const NAMED: usize = 6;

/// Files that somebody else changed, and the checkpoint that has them.
#[derive(Debug)]
pub struct Edits<'a> {
    /// The checkpoint.
    pub checkpoint: &'a Checkpoint,
    /// The files that are not in it as they were before.
    pub paths: BTreeSet<RepoPath>,
}

impl Edits<'_> {
    /// The files by name, the first ones.
    pub fn names(&self) -> String {
        let mut names: Vec<String> = self.paths.iter().take(NAMED).map(ToString::to_string).collect();
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
    pub fn brought_back(&self) -> Hint {
        let words = ["checkpoint", "restore", self.checkpoint.id.as_str()].map(str::to_owned).into_iter();
        let paths = self.paths.iter().flat_map(|path| ["--path".to_owned(), glob_of(path)]);
        Hint::recover(words.chain(paths)).run(&self.checkpoint.run)
    }
}

/// What somebody else changed since a checkpoint of a run, of which that has not the same; the latest first.
pub fn since<'a>(context: &Context, state: &'a State, target: &Checkpoint) -> Result<Vec<Edits<'a>>> {
    let after: Vec<&Checkpoint> = state.standing(&target.run).filter(|one| one.seq > target.seq).collect();
    if after.iter().all(|one| one.trigger != trigger::EDITED) {
        return Ok(Vec::new());
    }
    let repo = context.repo()?;
    let goal = load_checkpoint(repo, &target.commit)?;
    let unlike = |one: &StoredCheckpoint, other: &StoredCheckpoint| -> Result<BTreeSet<RepoPath>> {
        let (one_tree, other_tree) = diff_trees(&TreeLookup::stored(repo)?, one.view(), other.view())?;
        let outputs = [&one.manifest.outputs, &other.manifest.outputs];
        let paths = one_tree.unlike(&other_tree).map(|(path, ..)| path);
        Ok(paths.filter(|path| !outputs.iter().any(|all| all.contains(path))).cloned().collect())
    };
    let mut found = Vec::new();
    for (at, edited) in after.iter().enumerate().rev().filter(|(_, one)| one.trigger == trigger::EDITED) {
        let before = at.checked_sub(1).map_or(target, |before| after[before]);
        let (before, edited_tree) = (load_checkpoint(repo, &before.commit)?, load_checkpoint(repo, &edited.commit)?);
        // What a rollback in between restored is as the target has it.
        let paths: BTreeSet<RepoPath> = &unlike(&before, &edited_tree)? & &unlike(&goal, &edited_tree)?;
        if !paths.is_empty() {
            found.push(Edits { checkpoint: edited, paths });
        }
    }
    Ok(found)
}
