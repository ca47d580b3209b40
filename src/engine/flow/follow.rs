//! Noticing that something was recorded, by this process or another.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::watch::Watcher;

/// How often the ledger is examined without a reason.
const TICK: Duration = Duration::from_secs(1);

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noticed {
    /// Something was recorded.
    Recorded,
    /// The time is up.
    Nothing,
    /// A signal came; what to exit with.
    Stopped(i32),
}

/// The ledger of a state directory, followed.
#[derive(Debug)]
pub(crate) struct Follow<'a> {
    context: &'a Context,
    /// What the system reports of the state directory.
    _watcher: Watcher,
    wakes: Receiver<()>,
    length: u64,
}

impl<'a> Follow<'a> {
    /// Follows from now on.
    pub(crate) fn new(context: &'a Context) -> Result<Self> {
        let (sender, wakes) = channel();
        let dir = context.store().dir();
        let told = sender.clone();
        let mut watcher = Watcher::new(dir, move || {
            // Nobody listens any more at the very end.
            let _ = told.send(());
        });
        watcher.follow(BTreeSet::from([dir.to_owned()]));
        on_signal(context, move || {
            let _ = sender.send(());
        })?;
        Ok(Self {
            context,
            _watcher: watcher,
            wakes,
            length: length(context),
        })
    }

    /// Whether something was recorded since this was asked last, or a wait ended.
    pub(crate) fn has_changed(&mut self) -> bool {
        let length = length(self.context);
        std::mem::replace(&mut self.length, length) != length
    }

    /// Waits until something was recorded since the last wait ended, at most for `longest`.
    pub(crate) fn wait(&mut self, longest: Option<Duration>) -> Noticed {
        let begun = Instant::now();
        loop {
            if let Some(signal) = self.context.interrupts.pending() {
                return Noticed::Stopped(signal.exit_code());
            }
            if self.has_changed() {
                return Noticed::Recorded;
            }
            let left = longest.map_or(TICK, |longest| longest.saturating_sub(begun.elapsed()));
            if left.is_zero() {
                return Noticed::Nothing;
            }
            // Woken up or not: the ledger says.
            let _ = self.wakes.recv_timeout(left.min(TICK));
            while self.wakes.try_recv().is_ok() {}
        }
    }
}

/// Has `wake` called when a signal comes.
pub(in crate::engine) fn on_signal(
    context: &Context,
    wake: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let interrupts = context.interrupts.clone();
    let wait = move || {
        while interrupts.sleep(Duration::from_secs(3600)).is_ok() {}
        wake();
    };
    let started = thread::Builder::new()
        .name("on-signal".to_owned())
        .spawn(wait);
    started.context("cannot start a thread")?;
    Ok(())
}

/// The length of the ledger; 0 where there is none.
pub(in crate::engine) fn length(context: &Context) -> u64 {
    context.store().ledger_length()
}
