//! Whether checkpoints can be restored in full.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::record::damage::mark_suspect;
use crate::engine::record::{nested, select};
use crate::engine::recovery::crash;
use crate::git;
use crate::model::checkpoint::Checkpoint;
use crate::model::id::CheckpointId;
use crate::model::selector::Selector;

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VerifyReport {
    /// How many checkpoints were read.
    pub checked: usize,
    /// What is missing or damaged.
    pub problems: Vec<VerifyProblem>,
}

/// Something missing or damaged.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "damage")]
pub(crate) struct VerifyProblem {
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// What is wrong with it.
    pub message: String,
}

/// Reads every object of the named checkpoints; of all without any name.
pub(crate) fn verify(context: &Context, selectors: &[Selector]) -> Result<VerifyReport> {
    let state = crash::load_recovered(context)?;
    let chosen: Vec<&Checkpoint> = if selectors.is_empty() {
        state.checkpoints.values().collect()
    } else {
        selectors
            .iter()
            .map(|selector| select::checkpoint(context, &state, selector))
            .collect::<Result<_>>()?
    };
    let mut problems = Vec::new();
    if !chosen.is_empty() {
        let repo = context.repo()?;
        for checkpoint in &chosen {
            let found = repo.load_checkpoint(&checkpoint.commit).and_then(|stored| {
                let mut problems = stored.verify(repo)?;
                problems.extend(nested::verify(context, repo, &stored)?);
                Ok(problems)
            });
            let messages = match found {
                Ok(messages) => messages,
                // What cannot be read now may be whole.
                Err(error @ (git::Error::Io { .. } | git::Error::Git { .. })) => {
                    return Err(error.into());
                }
                Err(error) => vec![error.to_string()],
            };
            let named = |message| VerifyProblem {
                checkpoint_id: checkpoint.id.clone(),
                message,
            };
            problems.extend(messages.into_iter().map(named));
        }
    }
    if !problems.is_empty() {
        mark_suspect(context.repo()?);
    } else if selectors.is_empty() && context.has_git() {
        context.repo()?.end_damage();
    }
    Ok(VerifyReport {
        checked: chosen.len(),
        problems,
    })
}
