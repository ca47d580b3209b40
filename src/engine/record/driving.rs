//! The right to drive a run: one process has it at a time.

use std::time::Duration;

use crate::durable::{FileLock, LockError};
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::model::hint::Hint;
use crate::model::run::RunKey;

use super::liveness::driving_lock;

/// The right to drive a run, from the first look at it to its last word: one process has it at a time, also while it
/// waits between two attempts. It ends with the process.
#[derive(Debug)]
pub struct Driving {
    /// The run.
    pub key: RunKey,
    _lock: FileLock,
}

impl Driving {
    /// Takes it.
    ///
    /// # Errors
    /// Another process has it (11).
    pub fn take(context: &Context, key: &RunKey) -> Result<Self> {
        let folder = context.store().run_dir(key);
        context.create_state_dir(&folder)?;
        match FileLock::acquire(context.store().root(), &driving_lock(context, key), Duration::ZERO) {
            Ok(lock) => Ok(Self { key: key.clone(), _lock: lock }),
            Err(LockError::Held { holder, .. }) => {
                let message = format!("run {key} is under way: {holder}");
                Err(Error::new(ErrorKind::Locked, message).hint(Hint::recover(["status"]).run(key)))
            }
            Err(error) => Err(error.into()),
        }
    }
}
