//! The commits in the making: each as it is planned, and as the user's hooks leave it.

use std::collections::BTreeSet;

use super::hooks::{self, Commit};
use super::plan::Plan;
use super::{AcceptedCommit, publish, step_into};
use crate::engine::base::{Error, ErrorKind, Result};
use crate::git::program::{Saved, Staging};
use crate::model::{Checkpoint, ObjectId, RepoPath};

/// The work tree before any hook ran.
pub(super) struct Around<'a> {
    /// The files that are committed as the run left them.
    pub saved: Saved,
    /// Those of the commit that were edited since.
    edits: Saved,
    /// The paths of the first.
    taken: BTreeSet<RepoPath>,
    as_is: &'a Checkpoint,
}

impl<'a> Around<'a> {
    /// `None` where there is no hook.
    pub(super) fn of(
        planned: &Plan<'_>,
        staging: &Staging<'_>,
        as_is: &'a Checkpoint,
    ) -> Result<Option<Self>> {
        if !hooks::are_there(planned.context)? {
            return Ok(None);
        }
        let hand_edits = &planned.result.hand_edits;
        let taken = &planned.taken - hand_edits;
        Ok(Some(Self {
            saved: staging.save("saved", &taken)?,
            edits: staging.save("edits", &(&planned.taken & hand_edits))?,
            taken,
            as_is,
        }))
    }

    /// Whether hooks changed any of the files.
    pub(super) fn changed(&self) -> Result<bool> {
        Ok(!self.saved.changed()?.is_empty() || !self.edits.changed()?.is_empty())
    }
}

/// Commits that no reference has yet.
pub(super) struct Made {
    pub commits: Vec<AcceptedCommit>,
    /// What was staged for the last one before the hooks.
    pub without_hooks: Option<ObjectId>,
    /// Whether no hook changed what is committed.
    pub is_as_planned: bool,
}

/// Makes the commits, with the hooks; no reference moves. `trees` are those of the rehearsal: what is committed is what was
/// planned, but for what hooks change.
pub(super) fn make(
    planned: &Plan<'_>,
    trees: &[ObjectId],
    staging: &Staging<'_>,
    around: Option<&Around<'_>>,
) -> Result<Made> {
    let context = planned.context;
    staging.read(planned.base.as_ref())?;
    let (mut commits, mut parent, mut without_hooks) = (Vec::new(), planned.base.clone(), None);
    let (mut last, mut before) = (planned.tree_before()?, staging.held()?);
    let mut is_as_planned = true;
    for (step, planned_tree) in planned.steps.iter().zip(trees) {
        step_into(staging, planned, step)?;
        let staged = staging.write_tree()?;
        if is_as_planned && staged != *planned_tree {
            let message = "files changed while they were being committed; nothing was changed";
            return Err(Error::new(ErrorKind::NotVerified, message).hint(context.rerun(&[])));
        }
        if staged == last {
            continue;
        }
        // Hooks read and write the real objects.
        publish(context, staging)?;
        let text = planned.text_of(step);
        let text = if let Some(around) = around {
            let commit = Commit {
                context,
                key: &planned.run.key,
                staging,
                // What is formatted in the work tree belongs to the last commit.
                saved: Some(&around.saved).filter(|_| step.stored.is_none()),
                edits: &around.edits,
                taken: &around.taken,
                as_is: around.as_is,
                base: planned.base.as_ref(),
                before: &before,
                parent: parent.as_ref(),
            };
            commit.run(&text)?
        } else {
            staging.clean(&text)?
        };
        let tree = staging.write_tree()?;
        is_as_planned &= tree == staged;
        without_hooks = Some(staged);
        let commit = staging.commit(&tree, parent.as_ref(), &text)?;
        publish(context, staging)?;
        let (held, id) = (staging.held()?, Some(commit.clone()));
        commits.push(AcceptedCommit::new(id, &text, step, before.unlike(&held)));
        (parent, last, before) = (Some(commit), tree, held);
    }
    Ok(Made {
        commits,
        without_hooks,
        is_as_planned,
    })
}
