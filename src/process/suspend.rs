//! Ctrl-Z and `fg`: the terminal is as it was while this process stands still, and so does what it supervises.
//!
//! A user who changes the terminal's modes [says](on_suspend) how to put them back and how to set them again. Before
//! this process stops, modes are restored and the supervised groups are stopped; when it goes on, so do they, and the
//! time in between counts against no deadline. The same way back is taken before a signal ends the process at once.

use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, getpgid, getpgrp, getppid, getsid, kill_process_group};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use super::{Supervised, table};

/// What is about to happen to the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspension {
    /// Another process gets the terminal: put it back as it was.
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
    /// The terminal was given back, and did not come back yet.
    away: bool,
    /// This process ends: the terminal does not come back.
    ends: bool,
    stood_still: Duration,
    /// Since when it stands still now.
    stopped_since: Option<Instant>,
}

impl State {
    /// How long this process stood still in all, the stop included that nobody noted as over yet: who asks first after
    /// it may be faster.
    fn stood_still(&self, now: Instant) -> Duration {
        self.stood_still
            + self
                .stopped_since
                .map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn with<R>(act: impl FnOnce(&mut State) -> R) -> R {
    let mut state: MutexGuard<'_, Option<State>> = STATE.lock();
    act(state.get_or_insert_default())
}

/// One after the other: a way out that a stuck terminal held up must not come after the way back.
static TELLING: Mutex<()> = Mutex::new(());

/// Keeps a hook registered. Once this is dropped the hook is called no more.
#[derive(Debug)]
pub(crate) struct Registered(u64);

impl Drop for Registered {
    fn drop(&mut self) {
        let _guard = TELLING.lock();
        with(|state| state.hooks.retain(|(id, _)| *id != self.0));
    }
}

/// Has `hook` called, from another thread, whenever the terminal goes and comes back.
pub(crate) fn on_suspend(
    hook: impl Fn(Suspension) + Send + Sync + 'static,
) -> io::Result<Registered> {
    listen()?;
    Ok(with(|state| {
        state.next += 1;
        let id = state.next;
        state.hooks.push((id, Arc::new(hook)));
        Registered(id)
    }))
}

/// Puts the terminal back, because this process ends now: whoever continues it meanwhile does not change that.
pub(super) fn leave_terminal_at_end() {
    with(|state| state.ends = true);
    leave_terminal();
}

fn leave_terminal() {
    let (done, told) = channel();
    let tell = move || {
        tell(Suspension::Begins);
        let _ = done.send(());
    };
    // A terminal that takes nothing more, because a user pressed Ctrl-S, must not hold the end up.
    if thread::Builder::new().spawn(tell).is_ok() {
        let _ = told.recv_timeout(Duration::from_millis(500));
    }
}

/// How long this process stood still in all.
pub(super) fn stood_still() -> Duration {
    with(|state| state.stood_still(Instant::now()))
}

/// Whether the terminal was given back because this process stops or ends: nobody may take it until it comes back.
/// Who asks this after it registered its hook misses nothing.
pub(super) fn is_away() -> bool {
    with(|state| state.away)
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

impl Supervised {
    /// Stops what this process supervises while `check` runs. It goes on where that returns true, and is ended (SIGTERM)
    /// where not.
    pub(crate) fn hold_all_while(check: impl FnOnce() -> bool) {
        let groups = with(|state| state.groups.clone());
        signal(&groups, Signal::STOP);
        if !check() {
            signal(&groups, Signal::TERM);
        }
        signal(&groups, Signal::CONT);
    }
}

fn tell(what: Suspension) {
    let _guard = TELLING.lock();
    let hooks: Vec<Hook> = with(|state| {
        if state.ends && what == Suspension::Ends {
            return Vec::new();
        }
        state.away = what == Suspension::Begins;
        state
            .hooks
            .iter()
            .map(|(_, hook)| Arc::clone(hook))
            .collect()
    });
    for hook in hooks {
        hook(what);
    }
}

fn listen() -> io::Result<()> {
    static LISTENING: OnceLock<()> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let _guard = STARTING.lock();
    if LISTENING.get().is_some() {
        return Ok(());
    }
    let mut signals = Signals::new([SIGTSTP, SIGCONT])?;
    thread::Builder::new()
        .name("suspend".to_owned())
        .spawn(move || {
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
    with(|state| state.stopped_since = Some(Instant::now()));
    // Returns when another process continues us; SIGCONT comes then.
    let _ = low_level::raise(signal_hook::consts::SIGSTOP);
    with(|state| {
        state.stood_still = state.stood_still(Instant::now());
        state.stopped_since = None;
    });
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
    let (Ok(session), group) = (getsid(None), getpgrp()) else {
        return true;
    };
    let mut parent = getppid();
    for _ in 0..32 {
        let Some(pid) = parent else { return true };
        if getsid(Some(pid)) != Ok(session) {
            return true;
        }
        if getpgid(Some(pid)) != Ok(group) {
            return false;
        }
        parent = table::parent(super::table::number(pid));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_counts_before_it_is_noted_as_over() {
        let begun = Instant::now();
        let mut state = State {
            stood_still: Duration::from_secs(2),
            ..State::default()
        };
        assert_eq!(state.stood_still(begun), Duration::from_secs(2));
        state.stopped_since = Some(begun);
        assert_eq!(
            state.stood_still(begun + Duration::from_secs(5)),
            Duration::from_secs(7)
        );
    }

    #[test]
    fn a_terminal_is_away_until_it_comes_back() {
        tell(Suspension::Begins);
        assert!(is_away());
        tell(Suspension::Ends);
        assert!(!is_away());
    }
}
