//! Ctrl-Z and `fg`: the terminal is as it was while this process stands still, and so does what it supervises.
//!
//! Somebody who changes the terminal's modes [says](on_suspend) how to put them back and how to set them again. Before
//! this process stops, modes are put back and the supervised groups are stopped; when it goes on, so do they, and the
//! time in between counts against no deadline. The same way back is taken before a signal ends the process at once.

use std::io;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgid, getpgrp, getppid, getsid, kill_process_group};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use super::table;

/// What is about to happen to the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspension {
    /// Somebody else gets the terminal: put it back as it was.
    Begins,
    /// It is ours again.
    Ends,
}

type Hook = Arc<dyn Fn(Suspension) + Send + Sync>;

#[derive(Default)]
struct State {
    hooks: Vec<(u64, Hook)>,
    groups: Vec<Pid>,
    next: u64,
    stood_still: Duration,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn with<R>(act: impl FnOnce(&mut State) -> R) -> R {
    let mut state: MutexGuard<'_, Option<State>> = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    act(state.get_or_insert_default())
}

/// Keeps a hook registered.
#[derive(Debug)]
pub struct Registered(u64);

impl Drop for Registered {
    fn drop(&mut self) {
        with(|state| state.hooks.retain(|(id, _)| *id != self.0));
    }
}

/// Has `hook` called, from another thread, whenever the terminal goes and comes back.
pub fn on_suspend(hook: impl Fn(Suspension) + Send + Sync + 'static) -> io::Result<Registered> {
    listen()?;
    Ok(with(|state| {
        state.next += 1;
        let id = state.next;
        state.hooks.push((id, Arc::new(hook)));
        Registered(id)
    }))
}

/// Puts the terminal back, because this process ends or stops now.
pub(super) fn leave_terminal() {
    let (done, told) = channel();
    let tell = move || {
        tell(Suspension::Begins);
        let _ = done.send(());
    };
    // A terminal that takes nothing more, because somebody pressed Ctrl-S, must not hold the end up.
    if thread::Builder::new().spawn(tell).is_ok() {
        let _ = told.recv_timeout(Duration::from_millis(500));
    }
}

/// How long this process stood still in all.
pub(super) fn stood_still() -> Duration {
    with(|state| state.stood_still)
}

/// A group that stands still while this process does.
pub(super) struct Companion(Pid);

impl Companion {
    pub(super) fn new(group: Pid) -> Self {
        with(|state| state.groups.push(group));
        Self(group)
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        with(|state| {
            if let Some(at) = state.groups.iter().position(|group| *group == self.0) {
                state.groups.remove(at);
            }
        });
    }
}

fn tell(what: Suspension) {
    let hooks: Vec<Hook> = with(|state| state.hooks.iter().map(|(_, hook)| Arc::clone(hook)).collect());
    for hook in hooks {
        hook(what);
    }
}

fn listen() -> io::Result<()> {
    static LISTENING: OnceLock<()> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let _guard = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if LISTENING.get().is_some() {
        return Ok(());
    }
    let mut signals = Signals::new([SIGTSTP, SIGCONT])?;
    thread::Builder::new().name("suspend".to_owned()).spawn(move || {
        for number in signals.forever() {
            match number {
                // As the system has it: nobody could wake up an orphan.
                SIGTSTP if !is_orphan() => stop(),
                SIGCONT => tell(Suspension::Ends),
                _ => {}
            }
        }
    })?;
    LISTENING.get_or_init(|| ());
    Ok(())
}

fn stop() {
    leave_terminal();
    let groups = with(|state| state.groups.clone());
    signal(&groups, Signal::STOP);
    let begun = Instant::now();
    // Returns when somebody continues us; SIGCONT comes then.
    let _ = low_level::raise(signal_hook::consts::SIGSTOP);
    with(|state| state.stood_still += begun.elapsed());
    signal(&groups, Signal::CONT);
}

fn signal(groups: &[Pid], signal: Signal) {
    for group in groups {
        // It may be gone.
        let _ = kill_process_group(*group, signal);
    }
}

/// Whether nobody of our session, outside our group, looks after our group.
fn is_orphan() -> bool {
    let (Ok(session), group) = (getsid(None), getpgrp()) else { return true };
    let mut parent = getppid();
    for _ in 0..32 {
        let Some(pid) = parent else { return true };
        if getsid(Some(pid)) != Ok(session) {
            return true;
        }
        if getpgid(Some(pid)) != Ok(group) {
            return false;
        }
        parent = table::parent(super::group::number(pid));
    }
    true
}
