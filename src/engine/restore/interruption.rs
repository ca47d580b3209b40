//! Handles a request to stop that comes while a restore is under way.
//! It is taken back, or finished where that is nearly done anyway. Either way the work tree is one of the two, however many
//! signals come.

use anyhow::Context as _;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::model::operation::OperationKind;
use crate::process::{Interrupts, Shield};

/// What a restore does about a request to stop.
#[derive(Debug)]
pub(crate) struct Interruption {
    shield: Shield,
    takes_back: bool,
}

impl Interruption {
    /// From here on no signal ends the process. With `takes_back` a request takes back what was done; else the restore
    /// comes to its end, and whoever asked for it acts on the request then.
    pub(crate) fn new(takes_back: bool) -> Result<Self> {
        Ok(Self {
            shield: listen()?.shield(),
            takes_back,
        })
    }

    /// Whether to stop now.
    pub(crate) fn stops(&self) -> bool {
        self.takes_back && self.shield.pending().is_some()
    }

    /// Refuses to begin.
    pub(crate) fn refuse(&self, kind: OperationKind) -> Result<()> {
        match self.shield.pending().filter(|_| self.takes_back) {
            Some(signal) => {
                let message = format!(
                    "{}: the {} was not begun, nothing was written",
                    signal.name(),
                    kind.as_str()
                );
                Err(Error::new(
                    ErrorKind::Interrupted(signal.exit_code()),
                    message,
                ))
            }
            None => Ok(()),
        }
    }

    /// The error of a restore that stopped, by the signal that stopped it.
    pub(crate) fn explained(&self, kind: OperationKind, error: Error) -> Error {
        match (error.kind, self.shield.pending()) {
            (ErrorKind::Interrupted(_), Some(signal)) => {
                let message = format!("{}: the {} was stopped", signal.name(), kind.as_str());
                Error::new(ErrorKind::Interrupted(signal.exit_code()), message)
            }
            _ => error,
        }
    }

    /// Says that it was finished although somebody asked to stop. The program ends with that signal's code.
    pub(crate) fn tell_finished(&self, context: &Context, kind: OperationKind) {
        if let Some(signal) = self.shield.pending() {
            let (name, done, back) = (signal.name(), kind.as_str(), kind.taken_back_by());
            tracing::error!("{name}: the {done} was finished first; recover {back} takes it back");
            context.stopped_late.set(Some(signal));
        }
    }

    /// Refuses what comes after a restore that was finished although somebody asked to stop.
    pub(crate) fn go_on(&self) -> Result<()> {
        match self.shield.pending() {
            Some(signal) => {
                let message = format!("{}: nothing else was done", signal.name());
                Err(Error::new(
                    ErrorKind::Interrupted(signal.exit_code()),
                    message,
                ))
            }
            None => Ok(()),
        }
    }
}

/// From here on a request to stop is noted and asked for, instead of ending the process.
pub(crate) fn listen() -> Result<Interrupts> {
    Ok(Interrupts::install().context("cannot listen for signals")?)
}
