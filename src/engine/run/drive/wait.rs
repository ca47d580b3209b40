//! Waits before an attempt: for the time that was decided, or for a limit that another run met.

use super::super::awake::Awake;
use super::super::notify::{Happened, notify};
use super::super::retry::{self, Awaited};
use super::super::{Outcome, gate};
use super::{Driver, Halt, Step};
use crate::engine::base::ErrorKind;
use crate::engine::base::progress::WakeReason;
use crate::model::{Run, RunStatus, Standing};
use crate::os::is_on_battery;
use crate::policy::settings::NotifyEvent;

impl Driver<'_> {
    /// Waits for the earliest time, or says that the run stops here.
    pub(super) fn wait(&mut self, run: &Run) -> Step {
        let state = self.context.load()?.state;
        match self.status(&state, run).standing {
            Standing::Allowed => Ok(()),
            Standing::Exhausted => Err(Halt::At(Outcome::Failed)),
            Standing::NeedsPerson => Err(Halt::At(Outcome::Escalated)),
            Standing::Wait(until) if self.context.progress.skips_wait(until) => Ok(()),
            Standing::Wait(until) => {
                let is_over = gate::through(self.context, run);
                let awaited = Awaited::of(Some(run), until, &is_over);
                self.wait_for(&awaited)?;
                // Another run found out that it is over.
                if self.context.clock.now() < until && is_over() {
                    self.context.progress.waive(until);
                }
                Ok(())
            }
        }
    }

    pub(super) fn wait_for(&mut self, awaited: &Awaited<'_>) -> Step {
        let until = awaited.until;
        let outcome = awaited.since.map_or(Outcome::Paused, |_| Outcome::Parked);
        if awaited.since.is_some() && self.parked_since != awaited.since {
            self.parked_since = awaited.since;
            let happened = Happened {
                until: Some(until),
                ..Happened::new(NotifyEvent::Parked, Some(awaited.reason.clone()))
            };
            notify(self.context, self.key, happened, None);
        }
        let begun = self.context.clock.now();
        let longest = self.options.longest_wait;
        let deadline = longest.map(|longest| begun.plus(longest.saturating_sub(self.waited)));
        if self.options.no_wait || awaited.is_futile(deadline) {
            if awaited.is_shared {
                self.set_status(outcome.status(), awaited.reason.clone())?;
            }
            return Err(Halt::At(outcome));
        }
        tracing::info!(%until, "waiting for the next attempt");
        self.awake = self.awake.take().filter(|_| !is_on_battery());
        let slept = retry::sleep(self.context, awaited, deadline);
        self.waited += self.context.clock.now().since(begun);
        self.stay_awake();
        match slept {
            Ok(WakeReason::InTime | WakeReason::Now) => Ok(()),
            Ok(WakeReason::Stop) => Err(Halt::At(outcome)),
            Err(error) => {
                let ErrorKind::Interrupted(code) = error.kind else {
                    self.ensure_status(RunStatus::Paused)?;
                    return Err(error.into());
                };
                self.interrupted = Some(code);
                self.set_status(outcome.status(), error.message)?;
                Err(Halt::At(outcome))
            }
        }
    }

    pub(super) fn stay_awake(&mut self) {
        if self.awake.is_none() && self.context.settings().run.inhibit_sleep {
            self.awake = Awake::hold(&format!("run {} is at work", self.key.run_id));
        }
    }
}
