//! The trait of those who follow a child's output live: the display, an agent's record reader.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Looks at the output of one child. It is asked by the supervisor between two reads: it must not take long.
pub trait Watch: Send {
    /// Takes bytes of stdout, and answers with what is shown in their place; `None`: they are shown as they are.
    fn take(&mut self, bytes: &[u8]) -> Option<Vec<u8>>;

    /// What is shown at the end of stdout.
    fn end(&mut self) -> Vec<u8>;
}

/// A handle to one.
#[derive(Clone)]
pub struct Watcher(Arc<Mutex<dyn Watch>>);

impl Watcher {
    /// A handle to `watch`.
    pub fn new(watch: impl Watch + 'static) -> Self {
        Self(Arc::new(Mutex::new(watch)))
    }

    pub(super) fn take(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(bytes)
    }

    pub(super) fn end(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).end()
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}
