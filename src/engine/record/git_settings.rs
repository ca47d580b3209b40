//! What attempts do to git's settings and hooks: reported, and put back by an automatic rollback.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, Result};
use crate::engine::base::runs;
use crate::git::Repo;
use crate::model::run::{Run, RunKey};

/// Records them at the beginning of an attempt.
pub(crate) fn begin(context: &Context, key: &RunKey, iteration: u32) {
    if !context.has_git() {
        return;
    }
    let recorded = context
        .repo()
        .and_then(|repo| Ok(repo.record_settings(&key.to_string(), iteration)?));
    if let Err(error) = recorded {
        tracing::warn!(%error, "git's settings are not recorded: what the attempt changes of them is not put back");
    }
}

/// What the attempt that ended changed of them.
pub(crate) fn end(context: &Context, key: &RunKey, iteration: u32) -> Vec<String> {
    if !context.has_git() {
        return Vec::new();
    }
    let changed = context
        .repo()
        .and_then(|repo| Ok(repo.changed_settings(&key.to_string(), iteration)?));
    changed.unwrap_or_else(|error: Error| {
        tracing::warn!(%error, "what the attempt changed of git's settings is not known");
        Vec::new()
    })
}

/// Puts back what the run's latest iteration changed of those that keep git from working or start programs. All work trees
/// share them: nothing is done while another run is at work. Returns the rules of `info/exclude` as the attempt had them,
/// where they were put back: what they hid was not captured.
pub(crate) fn put_back(context: &Context, key: &RunKey) -> Option<Vec<u8>> {
    if !context.has_git() || context.dry_run() {
        return None;
    }
    let rules = || context.repo().ok().and_then(Repo::own_ignore_rules);
    let before = rules();
    let is_other = |run: &&Run| {
        run.key != *key && !run.status.has_ended() && runs::driver(context.store(), run).is_some()
    };
    let put_back = || -> Result<Vec<String>> {
        if context.load()?.state.runs.iter().any(|run| is_other(&run)) {
            return Ok(Vec::new());
        }
        Ok(context.repo()?.put_settings_back(&key.to_string())?)
    };
    match put_back() {
        Ok(done) if done.is_empty() => {}
        Ok(done) => context.note(format!(
            "git's settings that the attempt changed are as before: {}",
            done.join(", ")
        )),
        Err(error) => {
            context.warn(format!(
                "git's settings that the attempt changed are not all as before: {error}"
            ));
        }
    }
    let now = rules();
    before.filter(|before| now.as_ref() != Some(before))
}
