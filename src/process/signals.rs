//! Requests to stop: every signal that would end this process.
//!
//! One that means something else has a file of its own, as Ctrl-Z has in `suspend`. SIGINT, SIGTERM and SIGHUP count as
//! themselves, every other one as SIGTERM, so that no child is left without its supervisor; only SIGKILL cannot be had.
//!
//! A thread receives the signals and wakes everybody who waits. A request stays [pending](Interrupts::pending) until it is
//! [taken](Interrupts::take), so that a signal that comes between two children is not lost.
//!
//! SIGHUP stays ignored where it was when the process started (`nohup`). SIGINT and SIGTERM are always taken: a shell
//! starts background jobs of a script with SIGINT ignored, and there it is how a user stops exactly this run.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal as Kill, kill_process};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGIO, SIGPROF, SIGQUIT, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use super::suspend;
use crate::os::since_boot;

/// This many signals that nobody heeds show that something hangs.
const UNHEARD_LIMIT: u32 = 3;

/// What else ends a process by default and may come from outside; each is a request to stop like SIGTERM.
const LIKE_TERM: [i32; 8] = [
    SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGIO,
];

/// A request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Signal {
    /// Ctrl-C.
    #[serde(rename = "SIGINT")]
    Int,
    /// `kill`, a service manager, a CI job's end.
    #[serde(rename = "SIGTERM")]
    Term,
    /// The terminal went away.
    #[serde(rename = "SIGHUP")]
    Hup,
}

impl Signal {
    const ALL: [Self; 3] = [Self::Int, Self::Term, Self::Hup];

    /// `SIGINT`, `SIGTERM` or `SIGHUP`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "SIGINT",
            Self::Term => "SIGTERM",
            Self::Hup => "SIGHUP",
        }
    }

    /// What the system calls it.
    pub(super) fn kind(self) -> Kill {
        match self {
            Self::Int => Kill::INT,
            Self::Term => Kill::TERM,
            Self::Hup => Kill::HUP,
        }
    }

    /// The system's number of it.
    pub fn number(self) -> i32 {
        self.kind().as_raw()
    }

    /// What a process exits with that stopped because of it: 130, 143, 129.
    pub fn exit_code(self) -> i32 {
        128 + self.number()
    }

    /// Sends it to a process that this one started and has not waited for.
    pub(crate) fn send(self, pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        // It may have ended by itself meanwhile.
        let _ = pid.map(|pid| kill_process(pid, self.kind()));
    }

    fn from_number(number: i32) -> Option<Self> {
        let like_term = LIKE_TERM.contains(&number).then_some(Self::Term);
        let mut all = Self::ALL.into_iter();
        all.find(|signal| signal.number() == number).or(like_term)
    }
}

/// The requests to stop that this process got. Clones are handles to the same.
#[derive(Clone, Debug)]
pub struct Interrupts {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many signals came in all.
    count: u64,
    latest: Option<Signal>,
    /// The first one that was not taken.
    pending: Option<Signal>,
    /// How many came while nobody listened, since the last was taken.
    unheard: u32,
    /// How many are at something that must come to an end, and will act on a signal then.
    shields: u32,
    /// How many wait for an answer on the terminal.
    asking: u32,
    /// How many read standard input to its end: nothing has begun then that would have to come to an end.
    reading: u32,
    /// Nobody but those acts on a signal.
    only_asked_for: bool,
    /// Who is to be woken through a byte.
    listeners: Vec<(u64, UnixStream)>,
    next_listener: u64,
}

/// The number of a signal that is named as [`Exit`](super::Exit) names it; 0 for a name that is none.
pub(super) fn number_of(name: &str) -> i32 {
    let plain = || {
        name.strip_prefix("SIG")
            .and_then(|number| number.parse().ok())
    };
    (1..=64)
        .find(|number| low_level::signal_name(*number) == Some(name))
        .or_else(plain)
        .unwrap_or(0)
}

/// Has a write beyond the limit for files (`ulimit -f`) fail with `EFBIG`, where it would end the process. What is started
/// from here gets the signal's default.
pub(crate) fn survive_file_size_limit() {
    // Where that cannot be had, such a write ends the process as before.
    if let Err(error) = flag::register(SIGXFSZ, Arc::default()) {
        tracing::debug!(%error, "a write beyond the file size limit ends this process");
    }
}

impl Interrupts {
    /// Takes over the process's signals. Further calls give handles to the same.
    ///
    /// The third signal that comes while no child is supervised, and that nobody [takes](Self::take), ends the process
    /// as it would have without this: the way out if something takes too long.
    pub fn install() -> io::Result<Self> {
        let installed = Self::started(false)?;
        installed.shared.state.lock().only_asked_for = false;
        Ok(installed)
    }

    /// The same for as long as a question is asked. After that a signal ends the process as it would have without this,
    /// unless a user installed it.
    pub fn while_asking() -> io::Result<SignalGuard> {
        Ok(Self::started(true)?.guard(|state| &mut state.asking))
    }

    /// For as long as standard input is read to its end, a signal ends the process as it would have without this.
    pub fn while_reading() -> io::Result<SignalGuard> {
        Ok(Self::started(true)?.guard(|state| &mut state.reading))
    }

    fn started(only_asked_for: bool) -> io::Result<Self> {
        static INSTALLED: OnceLock<Interrupts> = OnceLock::new();
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _guard = INSTALLING.lock();
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed.clone());
        }
        let interrupts = Self::disconnected();
        interrupts.shared.state.lock().only_asked_for = only_asked_for;
        let nohup = ignored_signals() >> (SIGHUP - 1) & 1 == 1;
        let wanted = Signal::ALL
            .into_iter()
            .map(Signal::number)
            .filter(|number| !(nohup && *number == SIGHUP));
        let mut signals = Signals::new(wanted.chain(LIKE_TERM))?;
        let handle = interrupts.clone();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for number in signals.forever() {
                    let Some(signal) = Signal::from_number(number) else {
                        continue;
                    };
                    if handle.deliver(signal) == Delivery::Unheard {
                        suspend::leave_terminal_at_end();
                        // Fails only for signals that it does not know.
                        let _ = low_level::emulate_default_handler(signal.number());
                    }
                }
            })?;
        Ok(INSTALLED.get_or_init(|| interrupts).clone())
    }

    /// One that no signal reaches.
    pub fn disconnected() -> Self {
        Self {
            shared: Arc::default(),
        }
    }

    /// Makes a request as if the signal had come to this process.
    pub fn request(&self, signal: Signal) {
        self.deliver(signal);
    }

    /// The first request that was not taken yet.
    pub fn pending(&self) -> Option<Signal> {
        self.shared.state.lock().pending
    }

    /// Takes the request: from now on nothing is pending.
    pub fn take(&self) -> Option<Signal> {
        let mut state = self.shared.state.lock();
        state.unheard = 0;
        state.pending.take()
    }

    /// Takes the request if it is `signal`. Another one that came after it is pending from now on.
    pub fn take_only(&self, signal: Signal) -> bool {
        let mut state = self.shared.state.lock();
        if state.pending != Some(signal) {
            return false;
        }
        state.unheard = 0;
        state.pending = state.latest.filter(|latest| *latest != signal);
        true
    }

    /// Waits for `duration`, or until a request comes; if one is pending already, not at all. Time in which the machine
    /// is suspended counts.
    pub fn sleep(&self, duration: Duration) -> Result<(), Signal> {
        /// So soon after the machine woke up it is noticed that the time is over.
        const SLICE: Duration = Duration::from_secs(2);
        let start = since_boot();
        let mut state = self.shared.state.lock();
        loop {
            if let Some(signal) = state.pending {
                return Err(signal);
            }
            let left = duration.saturating_sub(since_boot().saturating_sub(start));
            if left.is_zero() {
                return Ok(());
            }
            self.shared.changed.wait_for(&mut state, left.min(SLICE));
        }
    }

    /// How many signals came so far, and the latest.
    pub fn received(&self) -> (u64, Option<Signal>) {
        let state = self.shared.state.lock();
        (state.count, state.latest)
    }

    /// Keeps the process alive for something that must come to an end.
    pub fn shield(&self) -> SignalGuard {
        self.guard(|state| &mut state.shields)
    }

    fn guard(&self, count: fn(&mut State) -> &mut u32) -> SignalGuard {
        *count(&mut self.shared.state.lock()) += 1;
        SignalGuard {
            interrupts: self.clone(),
            count,
        }
    }

    /// Has a byte written to `wake` at each signal, until the answer is dropped. `wake` must not block.
    pub(super) fn listen(&self, wake: UnixStream) -> Listener {
        let mut state = self.shared.state.lock();
        let id = state.next_listener;
        state.next_listener += 1;
        state.listeners.push((id, wake));
        Listener {
            interrupts: self.clone(),
            id,
        }
    }

    /// Records that a signal came and wakes who listens.
    pub(super) fn deliver(&self, signal: Signal) -> Delivery {
        let mut state = self.shared.state.lock();
        state.count += 1;
        state.latest = Some(signal);
        state.pending.get_or_insert(signal);
        for (_, listener) in &mut state.listeners {
            // A full buffer means that it will wake up anyway.
            let _ = listener.write(&[0]);
        }
        self.shared.changed.notify_all();
        if !state.listeners.is_empty() || state.shields > 0 {
            return Delivery::Heard;
        }
        if state.reading > 0 || state.only_asked_for && state.asking == 0 {
            return Delivery::Unheard;
        }
        state.unheard += 1;
        if state.unheard < UNHEARD_LIMIT {
            Delivery::Heard
        } else {
            Delivery::Unheard
        }
    }
}

/// While it exists, a signal does another thing: [`Interrupts::shield`], [`Interrupts::while_asking`],
/// [`Interrupts::while_reading`].
#[derive(Debug)]
pub struct SignalGuard {
    interrupts: Interrupts,
    count: fn(&mut State) -> &mut u32,
}

impl SignalGuard {
    /// The first request that was not taken yet.
    pub fn pending(&self) -> Option<Signal> {
        self.interrupts.pending()
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        *(self.count)(&mut self.interrupts.shared.state.lock()) -= 1;
    }
}

/// Whether anybody will act on a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// A user was woken, or will ask soon.
    Heard,
    /// Nobody seems to ask.
    Unheard,
}

/// Keeps a listener registered.
#[derive(Debug)]
pub(super) struct Listener {
    interrupts: Interrupts,
    id: u64,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.interrupts.shared.state.lock();
        state.listeners.retain(|(id, _)| *id != self.id);
    }
}

/// The signals that this process ignores, bit `n - 1` for signal `n`; 0 where the system does not report it.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn sleep_ends_in_time() {
        let start = Instant::now();
        assert_eq!(
            Interrupts::disconnected().sleep(Duration::from_millis(50)),
            Ok(())
        );
        assert!(start.elapsed() >= Duration::from_millis(50));
    }

    #[test]
    fn a_request_ends_a_sleep_and_stays_until_it_is_taken() {
        let interrupts = Interrupts::disconnected();
        let handle = interrupts.clone();
        let sleeper = thread::spawn(move || handle.sleep(Duration::from_secs(60)));
        thread::sleep(Duration::from_millis(50));
        assert_eq!(interrupts.deliver(Signal::Int), Delivery::Heard);
        interrupts.deliver(Signal::Term);
        assert_eq!(sleeper.join().unwrap(), Err(Signal::Int));
        assert_eq!(interrupts.sleep(Duration::from_secs(60)), Err(Signal::Int));
        assert_eq!(interrupts.pending(), Some(Signal::Int));
        assert_eq!(interrupts.take(), Some(Signal::Int));
        assert_eq!(interrupts.pending(), None);
    }

    #[test]
    fn only_what_is_meant_is_taken() {
        let interrupts = Interrupts::disconnected();
        interrupts.request(Signal::Int);
        interrupts.request(Signal::Int);
        assert!(interrupts.take_only(Signal::Int));
        assert_eq!(interrupts.pending(), None);
        interrupts.request(Signal::Term);
        assert!(!interrupts.take_only(Signal::Int));
        assert_eq!(interrupts.take(), Some(Signal::Term));
        interrupts.request(Signal::Int);
        interrupts.request(Signal::Hup);
        assert!(interrupts.take_only(Signal::Int));
        assert_eq!(interrupts.pending(), Some(Signal::Hup));
    }

    #[test]
    fn the_third_signal_that_nobody_takes_is_noticed() {
        let interrupts = Interrupts::disconnected();
        let listener = interrupts.listen(UnixStream::pair().unwrap().1);
        for _ in 0..5 {
            assert_eq!(interrupts.deliver(Signal::Int), Delivery::Heard);
        }
        drop(listener);
        assert_eq!(interrupts.deliver(Signal::Int), Delivery::Heard);
        interrupts.take();
        assert_eq!(
            [(); 3].map(|()| interrupts.deliver(Signal::Int)),
            [Delivery::Heard, Delivery::Heard, Delivery::Unheard]
        );
    }

    #[test]
    fn a_listener_is_told_while_it_listens() {
        use std::io::Read;
        let interrupts = Interrupts::disconnected();
        let (mut told, wake) = UnixStream::pair().unwrap();
        let listener = interrupts.listen(wake);
        interrupts.deliver(Signal::Hup);
        assert_eq!(told.read(&mut [0; 8]).unwrap(), 1);
        assert_eq!(interrupts.received(), (1, Some(Signal::Hup)));
        drop(listener);
        assert_eq!(told.read(&mut [0; 8]).unwrap(), 0, "closed");
    }

    #[test]
    fn exit_codes_are_the_shells() {
        assert_eq!(Signal::ALL.map(Signal::exit_code), [130, 143, 129]);
    }
}
