//! Limits that another system's files in the places of our views impose until they are imported.

use std::path::Path;

use crate::engine::attempt::budgets::{Retry, status_of};
use crate::engine::base::context::Context;
use crate::engine::record::run_settings::settings_of;
use crate::model::decision::Standing;
use crate::model::hint::Hint;
use crate::model::run::Run;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::policy::retry::RetryStatus;
use crate::store::Origin;

use super::import;

/// What a file of another system's says of a run here, as an import would record it.
struct Held {
    run: Run,
    status: RetryStatus,
    max_attempts: u32,
}

/// How a run stands, held back further where a file of another system's says so: its cooldown and its count hold as they
/// would if it were imported. Each such file is named.
pub(in crate::engine) fn hold_back(context: &Context, state: &State, own: Retry) -> Retry {
    let mut retry = own;
    for (path, held) in all(context, state) {
        let is_tighter = strictness(held.status.standing) > strictness(retry.standing);
        if retry.run.is_some() && !is_tighter {
            continue;
        }
        warn(context, &path, &held);
        if is_tighter {
            retry.standing = held.status.standing;
        }
        if retry.run.is_none() {
            (retry.run, retry.status, retry.max_attempts) =
                (Some(held.run), Some(held.status), held.max_attempts);
        }
    }
    retry
}

/// The run that such a file describes, for views where nothing is recorded.
pub(in crate::engine) fn run(context: &Context, state: &State) -> Option<Run> {
    all(context, state)
        .into_iter()
        .next()
        .map(|(_, held)| held.run)
}

fn all(context: &Context, state: &State) -> Vec<(std::path::PathBuf, Held)> {
    let mut all = Vec::new();
    // A ledger that came from elsewhere holds back by itself.
    if context.store().origin() != Origin::Ours {
        return all;
    }
    for path in context.store().foreign_views() {
        let mut assumed = state.clone();
        for key in import::apply_speculatively(context, &mut assumed, &path) {
            let Some(run) = assumed
                .run(&key)
                .filter(|run| run.worktree == context.worktree_id())
            else {
                continue;
            };
            let settings = settings_of(context, run);
            let mut status = status_of(context, &assumed, run);
            let may_go_on = matches!(status.standing, Standing::Allowed | Standing::Wait(_));
            if may_go_on && status.attempts_left == Some(0) {
                status.standing = Standing::Exhausted;
            }
            let max_attempts = settings
                .retry
                .override_attempts
                .unwrap_or(settings.retry.max_attempts);
            all.push((
                path.clone(),
                Held {
                    run: run.clone(),
                    status,
                    max_attempts,
                },
            ));
        }
    }
    all
}

/// What allows less is greater.
fn strictness(standing: Standing) -> (u8, Option<Timestamp>) {
    match standing {
        Standing::Allowed => (0, None),
        Standing::Wait(until) => (1, Some(until)),
        Standing::Exhausted => (2, None),
        Standing::NeedsPerson => (3, None),
    }
}

fn warn(context: &Context, path: &Path, held: &Held) {
    let what = match held.status.standing {
        Standing::Allowed => "an attempt is allowed now".to_owned(),
        Standing::Wait(until) => format!("the next attempt is allowed at {until}"),
        Standing::Exhausted => "no attempt is left".to_owned(),
        Standing::NeedsPerson => "a person is needed".to_owned(),
    };
    let way = context.line(Hint::recover(["import"]).arg(path));
    context.warn(format!(
        "{} was not written by recover, and counts until something is recorded: {} errors, {what}; `{way}` takes it over",
        path.display(),
        held.run.error_count
    ));
}
