//! Asking a watch something from another thread, while it waits or while the feedback loops run.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::process::{Interrupts, Signal};

/// What ends a watch's wait.
pub(super) enum Wake {
    /// The system reported a change.
    Look,
    /// A signal came.
    Signal,
    /// Somebody asked.
    Asked(char),
}

/// Hands what somebody asks to a watch.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    sender: Sender<Wake>,
    judging: Arc<Mutex<Judging>>,
    interrupts: Interrupts,
}

/// Whether the feedback loops run just now, and whether somebody does not want to wait for them.
#[derive(Debug, Default)]
struct Judging {
    runs: bool,
    cut_short: bool,
}

impl Asker {
    pub(super) fn new(sender: Sender<Wake>, interrupts: Interrupts) -> Self {
        Self {
            sender,
            judging: Arc::default(),
            interrupts,
        }
    }

    /// Asks; answers whether anybody is there to be asked.
    pub(crate) fn ask(&self, what: char) -> bool {
        self.sender.send(Wake::Asked(what)).is_ok()
    }

    /// Asks, and ends the feedback loops where they run: what is asked leaves them behind.
    pub(crate) fn insist(&self, what: char) -> bool {
        let asked = self.ask(what);
        let mut judging = self.judging();
        if judging.runs {
            judging.cut_short = true;
            self.interrupts.request(Signal::Int);
        }
        asked
    }

    /// The feedback loops are about to run.
    pub(super) fn judging_begins(&self) {
        self.judging().runs = true;
    }

    /// They ran; answers whether somebody did not want to wait for them.
    pub(super) fn judging_ended(&self) -> bool {
        std::mem::take(&mut *self.judging()).cut_short
    }

    fn judging(&self) -> MutexGuard<'_, Judging> {
        self.judging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
