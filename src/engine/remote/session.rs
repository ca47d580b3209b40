//! Holding a run while it is driven: signs of life, the word before and after each attempt, and what follows when the run is lost.

use std::ffi::OsString;
use std::io;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::claim::{TakeOver, Wish, claim};
use super::push::{leave_aside, sync};
use super::record;
use super::record::{RunThere, remotes_of};
use super::server::{Miss, Reach, Server};
use crate::engine::base::{Context, Error, ErrorKind, Moment, Result, WaitLimit};
use crate::engine::record::run_settings;
use crate::model::{Claim, Hint, RunKey, RunStatus};
use crate::os::since_boot;
use crate::policy::remote::{renewal_after, stop_after};
use crate::policy::settings::RemoteMode;
use crate::process::{Interrupts, ProcessId, Signal, Watchdog};

/// How often it is looked at the clock.
const TICK: Duration = Duration::from_millis(500);
/// How long the last word waits for a server that is away, and where a user waits for the end.
pub(super) const LAST_WORD: Duration = Duration::from_secs(60);
const HURRIED_WORD: Duration = Duration::from_secs(5);

/// A run that this process holds on a remote.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    context: &'a Context,
    mode: RemoteMode,
    /// The number of the claim.
    fencing: u64,
    keeper: Arc<Keeper>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread has that gives signs of life.
#[derive(Debug)]
struct Keeper {
    key: RunKey,
    remote: String,
    lease: Duration,
    /// Ends the agent when the claim is too old, or when this process is gone.
    watchdog: Watchdog,
    interrupts: Interrupts,
    /// The session is over: a call that is under way ends too.
    is_over: Arc<AtomicBool>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whether an agent is at work that has to stop when the claim is too old.
    at_work: bool,
    /// Who has it now.
    lost: Option<Claim>,
    /// The agent was stopped because no sign of life was confirmed for too long.
    overdue: bool,
}

/// The remote that a run lies on or is to lie on: the one that is named, else the one that it was on.
pub(super) fn remote_for(context: &Context, key: &RunKey) -> Option<String> {
    if context.names_remote() {
        return context.remote_name();
    }
    remotes_of(context, key)
        .into_iter()
        .next()
        .or_else(|| context.remote_name())
}

/// Refuses (13) to drive a run that is to lie on a remote without consent to that: before anything is recorded.
pub(crate) fn require_consent_to_drive(context: &Context, key: &RunKey) -> Result<()> {
    remote_for(context, key).map_or(Ok(()), |remote| {
        Server::of(context, &remote)?.with_consent().map(drop)
    })
}

impl<'a> Session<'a> {
    /// Claims the run, or goes on with this clone's claim. `None`: it is to lie nowhere. `wait`: how long a server that is away is
    /// waited for.
    pub(crate) fn begin(
        context: &'a Context,
        key: &RunKey,
        wait: Option<WaitLimit>,
    ) -> Result<Option<Self>> {
        let Some(remote) = remote_for(context, key) else {
            return Ok(None);
        };
        let settings = &context.settings().remote;
        let server = Server::of(context, &remote)?.with_consent()?;
        let agrees = |_: &_| {
            let message = format!("run {key} on {remote} is another one than here");
            let hint = Hint::recover(["resume", "--remote", &remote]).run(key);
            Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint))
        };
        // A run of that name that another machine holds is not waited for: it is another one.
        let wish = Wish {
            how: TakeOver {
                steals: false,
                wait,
            },
            waits_for_holder: false,
            agrees: &agrees,
        };
        let claimed = claim(RunThere::on(&server, key), &wish)?;
        if claimed.is_unsettled {
            release(context, key, false);
            let message = format!(
                "run {key} was taken over from another machine, and its files are not in place here yet"
            );
            let hint = Hint::recover(["resume", "--remote", &remote]).run(key);
            return Err(Error::new(ErrorKind::Conflicts, message).hint(hint));
        }
        if settings.mode == RemoteMode::Lazy {
            context.note(format!(
                "[remote] mode = \"lazy\": events are pushed to {remote} after each attempt; a machine that resumes the run before \
                 that may exceed the budget by one attempt"
            ));
        }
        let watchdog = Watchdog::start(context.settings().runner.grace)
            .map_err(|error| Error::io("cannot start the watchdog of the claim", error))?;
        let keeper = Arc::new(Keeper {
            key: key.clone(),
            remote: remote.clone(),
            lease: settings.lease,
            watchdog,
            interrupts: context.interrupts.clone(),
            is_over: Arc::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut session = Self {
            context,
            mode: settings.mode,
            fencing: claimed.claim.fencing,
            keeper: Arc::clone(&keeper),
            thread: None,
        };
        let own = context.for_run(key)?;
        let spawned = std::thread::Builder::new()
            .name("claim".to_owned())
            .spawn(move || keeper.keep(&own));
        session.thread = Some(spawned.map_err(|error| Error::io("cannot start a thread", error))?);
        Ok(Some(session))
    }

    /// Before an attempt's command is started: in strict mode its event is there when this returns, however long the server is
    /// away. In lazy mode it is only when the last sign of life is so old that the command would not be let go on for long.
    ///
    /// # Errors
    /// The run was lost (11); a request to stop came while the server was away; it may not be waited for (6).
    pub(crate) fn before_attempt(&self, waits: bool) -> Result<()> {
        self.check()?;
        let keeper = &self.keeper;
        let age = keeper.alive(self.context)?.and_then(|alive| alive.age());
        let is_fresh = age.is_some_and(|age| age < renewal_after(keeper.lease, 0.0));
        if self.mode == RemoteMode::Strict || !is_fresh {
            self.reach(waits)?;
        }
        // The keeper looks at the clock only now and then: a command that starts before it does must not be ended for the sign
        // of life that was missing before.
        if let Some(alive) = keeper.alive(self.context)? {
            keeper
                .allow(&alive)
                .and_then(|()| keeper.watchdog.begin())
                .map_err(watchdog_gone)?;
        }
        let mut state = keeper.state.lock();
        (state.overdue, state.at_work) = (false, true);
        Ok(())
    }

    /// Has the attempt's command ended when the claim is too old, or this process is gone.
    pub(crate) fn guard(&self, child: &ProcessId) -> Result<()> {
        self.keeper.watchdog.guard(child).map_err(watchdog_gone)
    }

    /// For systems that can refuse whoever had the run before: the number of the claim, which rises with each claim of a run.
    pub(crate) fn variable(&self) -> (OsString, OsString) {
        run_settings::fencing(self.fencing)
    }

    /// The attempt's command and its checks are over; why they were stopped, where the claim was lost or too old. Then nothing is charged for it.
    pub(crate) fn ends_attempt(&self) -> Option<String> {
        // Without it there is nobody that could end anything.
        let keeper = &self.keeper;
        let _ = keeper.watchdog.release();
        let alive = keeper.alive(self.context).ok().flatten();
        let age = alive.and_then(|alive| alive.age());
        let is_too_old = age.is_some_and(|age| age >= stop_after(keeper.lease));
        let mut state = keeper.state.lock();
        state.at_work = false;
        let is_overdue = state.overdue || is_too_old;
        let why = match &state.lost {
            Some(claim) => Some(format!("stopped: {} took the run over", claim.host)),
            None if is_overdue => Some(format!(
                "stopped: no sign of life reached {} in time",
                keeper.remote
            )),
            None => None,
        };
        if why.is_some() {
            // That request was this session's own.
            self.context.interrupts.take_only(Signal::Term);
        }
        why
    }

    /// After an attempt: its end goes there, if the server can be had. One that is away is no reason to stop.
    ///
    /// # Errors
    /// The run was lost (11).
    pub(crate) fn after_attempt(&self) -> Result<()> {
        self.check()?;
        if self.context.interrupts.pending().is_some() {
            // It goes with the last word, for which there is not much time.
            return Ok(());
        }
        let server = Server::of(self.context, &self.keeper.remote)?;
        let synced = sync(&mut RunThere::on(&server, &self.keeper.key).lock()?, false);
        match synced {
            Ok(_) => Ok(()),
            Err(Miss::Failed(error)) if matches!(error.kind, ErrorKind::Interrupted(_)) => Ok(()),
            Err(Miss::Away(away)) => {
                let later = format!("{}; new events will be sent later", away.error());
                self.context.note(later);
                Ok(())
            }
            Err(Miss::Held(held)) => self.lose(&held.claim),
            Err(missed) => Err(missed.error()),
        }
    }

    /// Sends what is new, however long the server is away.
    pub(crate) fn reach(&self, waits: bool) -> Result<()> {
        let (key, remote) = (&self.keeper.key, &self.keeper.remote);
        let server = Server::of(self.context, remote)?;
        let mut tried = 0;
        loop {
            self.check()?;
            let synced = sync(&mut RunThere::on(&server, key).lock()?, false);
            match synced {
                Ok(_) => return Ok(()),
                Err(Miss::Held(held)) => return self.lose(&held.claim),
                Err(Miss::Away(away)) if !waits => {
                    let again = Hint::recover(["resume"]).run(key);
                    return Err(Error::new(ErrorKind::Wait, away.error().message).hint(again));
                }
                Err(Miss::Away(away)) => {
                    self.context.note(format!(
                        "waiting for the remote {remote}: {}; no attempt is charged for it",
                        away.said
                    ));
                    server.pause(&away, tried, Duration::MAX)?;
                    tried += 1;
                }
                Err(missed) => return Err(missed.error()),
            }
        }
    }

    /// Ends here when another machine has the run.
    pub(crate) fn check(&self) -> Result<()> {
        let lost = self.keeper.state.lock().lost.clone();
        lost.map_or(Ok(()), |claim| self.lose(&claim))
    }

    /// What this clone did that nobody else has seen is kept aside on the server, and the run ends here.
    fn lose(&self, claim: &Claim) -> Result<()> {
        let (context, Keeper { key, remote, .. }) = (self.context, &*self.keeper);
        self.keeper.state.lock().lost = Some(claim.clone());
        context.interrupts.take_only(Signal::Term);
        let reason = format!("{} holds it on {remote}", claim.host);
        context.record_status(key, RunStatus::Paused, reason)?;
        let server = Server::of(context, remote)?;
        let mut locked = RunThere::on(&server, key).lock()?;
        let aside = leave_aside(&locked)
            .map_err(Miss::error)
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "what this machine did last is not on the remote");
                None
            });
        locked.record.nonce = None;
        locked.save()?;
        drop(locked);
        let aside = aside.map_or_else(String::new, |name| {
            format!("; what this machine did last is there as {name}")
        });
        let message = format!(
            "run {key} was taken over by {} on {remote} (claim {}): it stopped here{aside}",
            claim.host, claim.fencing
        );
        Err(Error::new(ErrorKind::Claimed, message).hint(server.hint("status").run(key)))
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.keeper.is_over.store(true, Ordering::Relaxed);
        let state = self.keeper.state.lock();
        self.keeper.changed.notify_all();
        drop(state);
        if let Some(thread) = self.thread.take() {
            // It ends with its next look.
            let _ = thread.join();
        }
    }
}

/// Gives the claim of a run back, with all that is not there yet: the run ended here, or stopped, in a hurry on a user's
/// request. Where that cannot be said in time the claim expires by itself.
pub(crate) fn release(context: &Context, key: &RunKey, is_hurried: bool) {
    let is_hurried = is_hurried || context.interrupts.pending().is_some();
    let longest = if is_hurried { HURRIED_WORD } else { LAST_WORD };
    for remote in remotes_of(context, key) {
        if let Err(error) = release_on(context, key, &remote, longest) {
            context
                .warn(format!("the claim of run {key} on {remote} was not given back: {error}; it expires by itself"));
        }
    }
}

/// The same on one remote, in no longer than this.
pub(super) fn release_on(
    context: &Context,
    key: &RunKey,
    remote: &str,
    longest: Duration,
) -> Result<()> {
    if record::load(context, key, remote)?.is_none_or(|record| record.nonce.is_none()) {
        return Ok(());
    }
    let server = Server::of(context, remote)?.for_last_word(longest);
    let (begun, mut tried) = (since_boot(), 0);
    loop {
        let synced = sync(&mut RunThere::on(&server, key).lock()?, true);
        match synced {
            // Who lost it has nothing to give back.
            Ok(_) | Err(Miss::Held(_)) => return Ok(()),
            Err(Miss::Away(away))
                if !server.is_stopped() && since_boot().saturating_sub(begun) < longest =>
            {
                server.pause(&away, tried, Duration::MAX)?;
                tried += 1;
            }
            Err(missed) => return Err(missed.error()),
        }
    }
}

impl Keeper {
    fn keep(&self, context: &Context) {
        let mut spread = fastrand::f64();
        let mut not_before = Duration::ZERO;
        let mut told = None;
        loop {
            {
                let mut state = self.state.lock();
                let goes_on = |_: &mut State| !self.is_over();
                self.changed.wait_while_for(&mut state, goes_on, TICK);
                if self.is_over() || state.lost.is_some() {
                    return;
                }
            }
            let Ok(Some(alive)) = self.alive(context) else {
                continue;
            };
            if told.as_ref() != Some(&alive) {
                if let Err(error) = self.allow(&alive) {
                    tracing::warn!(%error, "the watchdog of the claim is gone");
                }
                told = Some(alive.clone());
            }
            // After another start of the machine this process would not be there.
            let age = alive.age().unwrap_or_default();
            if age >= stop_after(self.lease) {
                let mut state = self.state.lock();
                // An attempt that has begun meanwhile began with a sign of life.
                let now = self.alive(context).ok().flatten();
                let now = now.and_then(|alive| alive.age()).unwrap_or_default();
                if state.at_work && !state.overdue && now >= stop_after(self.lease) {
                    state.overdue = true;
                    tracing::warn!(
                        "no sign of life reached {} for too long: the attempt is stopped",
                        self.remote
                    );
                    self.stop();
                }
            }
            if age < renewal_after(self.lease, spread) || since_boot() < not_before {
                continue;
            }
            spread = fastrand::f64();
            match self.renew(context) {
                Err(Miss::Held(held)) => {
                    let mut state = self.state.lock();
                    state.lost = Some(held.claim);
                    self.stop();
                    return;
                }
                Ok(_) => {}
                Err(Miss::Away(away)) => {
                    tracing::debug!(said = away.said, "no sign of life");
                    not_before =
                        since_boot() + away.after.unwrap_or(self.lease / 30).min(self.lease / 10);
                }
                Err(_) if self.is_over() => return,
                Err(missed) => {
                    let error = missed.error();
                    tracing::warn!(%error, "no sign of life could be sent to {}", self.remote);
                    not_before = since_boot() + self.lease / 10;
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Stops what runs.
    fn stop(&self) {
        self.interrupts.request(Signal::Term);
    }

    /// When the last confirmed sign of life was sent.
    fn alive(&self, context: &Context) -> Result<Option<Moment>> {
        let record = record::load(context, &self.key, &self.remote)?;
        Ok(record.and_then(|record| record.alive))
    }

    /// Has what works under the claim go on until the last confirmed sign of life is too old.
    fn allow(&self, alive: &Moment) -> io::Result<()> {
        let until = Duration::from_millis(alive.millis) + stop_after(self.lease);
        self.watchdog.until(until)
    }

    fn renew(&self, context: &Context) -> Reach<usize> {
        let server = Server::of(context, &self.remote)?.stopped_by(Arc::clone(&self.is_over));
        let mut locked = RunThere::on(&server, &self.key).lock()?;
        sync(&mut locked, false)
    }
}

fn watchdog_gone(error: io::Error) -> Error {
    Error::io("the watchdog of the run's claim is gone", error)
}
