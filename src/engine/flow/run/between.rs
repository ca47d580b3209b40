//! Checkpoints while an attempt's command runs (S10), so that a long one has more to go back to than its beginning.
//!
//! A thread of its own takes them: the command's output goes on being read meanwhile. What goes wrong is reported and nothing
//! else; the attempt is none the worse for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::flow::checkpoint::{create_automatic, due};
use crate::model::run::RunKey;

/// No look comes sooner after the one before.
const SHORTEST: Duration = Duration::from_millis(50);

/// Does `work`, with a checkpoint of the run whenever one is due.
pub(super) fn with_checkpoints<T>(context: &Context, key: &RunKey, work: impl FnOnce() -> T) -> T {
    let settings = &context.settings().checkpoint;
    let Some(interval) = settings.interval.filter(|_| settings.enabled) else {
        return work();
    };
    let own = match context.for_run(key) {
        Ok(own) => own,
        Err(error) => {
            tracing::warn!(%error, "no checkpoints are taken while the attempt is under way");
            return work();
        }
    };
    thread::scope(|scope| {
        let (running, ended) = channel::<()>();
        scope.spawn(move || keep(&own, key, interval.max(SHORTEST), &ended));
        let result = work();
        drop(running);
        result
    })
}

/// Until the other end is gone.
fn keep(context: &Context, key: &RunKey, interval: Duration, ended: &Receiver<()>) {
    let mut wait = interval;
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = look(context, key, interval).unwrap_or_else(|error| {
            tracing::warn!(%error, "no automatic checkpoint was taken; the attempt continues");
            interval
        });
    }
}

/// Takes one if one is due, and says when to look again.
fn look(context: &Context, key: &RunKey, interval: Duration) -> Result<Duration> {
    let state = context.load()?.state;
    if let Some(why) = due(context, &state, key, 0) {
        create_automatic(context, why)?;
        return Ok(interval);
    }
    // Somebody else took one meanwhile.
    let age = state
        .latest(key)
        .map(|latest| context.clock.now().since(latest.created_at))
        .unwrap_or_default();
    Ok(interval.saturating_sub(age).max(SHORTEST))
}
