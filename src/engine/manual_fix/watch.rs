//! Watching a person's fix (B8): changes are printed as they come, and verified once it is quiet.
//!
//! The truth is the work tree as a capture sees it; the system's reports only say when to look. A look compares with
//! the session's beginning, so that an atomic save, a rename or a change that comes in several steps is reported once and as
//! what it is, and one that is reverted is reported too. Beside the reports the tree is examined now and then anyway.
//!
//! Asking a watch something from another thread, while it waits or while the feedback loops run.
//!
//! When a watch looks at the work tree and when it runs the loops: soon after a change, and never most of the time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Judged, judge};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::run_settings::loops_of_fix;
use crate::engine::record::select;
use crate::engine::record::storage::Prepared;
use crate::engine::run::fix_session::{Fix, active, changes_with_seen, prepare, status_of};
use crate::engine::{recovery, status, trust};
use crate::git::tree::{Seen, TreeLookup};
use crate::model::{Change, ManualFixSession, ObjectId, RunKey};
use crate::process::{Interrupts, Show, Signal};
use crate::watch::Watcher;

/// How often other things are examined: whether the session is still open, and whether a signal came.
const TICK: Duration = Duration::from_millis(200);
/// What a watch reports.
#[derive(Debug)]
pub(crate) enum Step {
    /// The system does not report changes: why, and how often the work tree is compared instead.
    Polling(String, Duration),
    /// A path differs from the session's beginning, or differs in another way than before.
    Changed(Change),
    /// A path is again as it was when the session began.
    Reverted(Change),
    /// The feedback loops of these names are about to run.
    Verifying(Vec<String>),
    /// What they said. Where it is outdated they run again.
    Judged(Box<Judged>),
    /// Each time they ran, files changed meanwhile: it may be the loops that write them.
    Restless,
    /// A user asked something through an [`Asker`].
    Asked(char),
    /// The session has ended otherwise.
    Ended,
    /// The time is up.
    GaveUp,
    /// A signal came; what to exit with.
    Stopped(i32),
}

/// An open session that is watched.
pub(crate) struct Watch<'a> {
    context: &'a Context,
    key: RunKey,
    session: ManualFixSession,
    show: Show,
    watcher: Watcher,
    wakes: Receiver<Wake>,
    asker: Asker,
    told: VecDeque<Step>,
    /// What differed at the last look, with what is there now.
    known: Seen,
    /// The tree of the last look, and the one that the loops ran on last.
    tree: Option<ObjectId>,
    judged: Option<ObjectId>,
    loops: Vec<String>,
    asked: bool,
    announced: bool,
    pace: Pace,
    ledger_length: u64,
    polls: bool,
}

impl<'a> Watch<'a> {
    /// Watches the open session of the run that a command works on.
    pub(crate) fn new(context: &'a Context, show: Show) -> Result<Self> {
        let state = recovery::load_recovered(context)?;
        let key = select::require(context, &state)?.key.clone();
        let Fix { session, run } = active(&state, &key)?;
        trust::require_for_fix(context, &run)?;
        let (sender, wakes) = channel();
        let looks = sender.clone();
        let watcher = Watcher::new(context.worktree(), move || {
            // Nobody listens any more at the very end.
            let _ = looks.send(Wake::Look);
        });
        let base = state
            .checkpoint(&session.checkpoint_id)
            .map(|base| base.tree.clone());
        Ok(Self {
            context,
            key,
            show,
            watcher,
            wakes,
            asker: Asker::new(sender, context.interrupts.clone()),
            told: VecDeque::new(),
            known: Seen::new(),
            tree: None,
            judged: session.verified_tree.clone().or(base),
            session,
            loops: loops_of_fix(context, &run)
                .into_iter()
                .map(|feedback| feedback.name)
                .collect(),
            asked: false,
            announced: false,
            pace: Pace::new(Instant::now()),
            ledger_length: status::length(context),
            polls: false,
        })
    }

    /// For those who ask while this waits.
    pub(crate) fn asker(&self) -> Asker {
        self.asker.clone()
    }

    /// The names of the feedback loops.
    pub(crate) fn loops(&self) -> &[String] {
        &self.loops
    }

    /// The session as it is now.
    pub(crate) fn fix(&self) -> Result<Fix> {
        status_of(self.context, &self.key)
    }

    /// Runs the feedback loops at the next step, changed or not.
    pub(crate) fn verify(&mut self) {
        self.asked = true;
    }

    /// Waits for the next thing to report, at most until `deadline`.
    pub(crate) fn next(&mut self, deadline: Option<Instant>) -> Result<Step> {
        loop {
            self.hear(None);
            if let Some(signal) = self.context.interrupts.pending() {
                return Ok(Step::Stopped(signal.exit_code()));
            }
            if let Some(step) = self.told.pop_front() {
                return Ok(step);
            }
            let now = Instant::now();
            if self.look_at() <= now {
                self.look()?;
            } else if self.verify_at().is_some_and(|at| at <= now) {
                if let Some(step) = self.judge()? {
                    return Ok(step);
                }
            } else if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(Step::GaveUp);
            } else if self.has_ended()? {
                return Ok(Step::Ended);
            } else {
                self.wait(now, deadline);
            }
        }
    }

    /// Waits for a report, a question, a signal, or the next thing to do.
    fn wait(&mut self, now: Instant, deadline: Option<Instant>) {
        let times = [Some(self.look_at()), self.verify_at(), deadline];
        let until = times
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(now)
            .min(now + TICK);
        let first = match self
            .wakes
            .recv_timeout(until.saturating_duration_since(now))
        {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        };
        self.hear(Some(first));
    }

    /// Takes what came meanwhile, after `first`.
    fn hear(&mut self, first: Option<Wake>) {
        let now = Instant::now();
        for wake in first.into_iter().chain(self.wakes.try_iter()) {
            match wake {
                Wake::Look => self.pace.report(now),
                Wake::Asked(what) => self.told.push_back(Step::Asked(what)),
            }
        }
    }

    fn look_at(&self) -> Instant {
        self.pace
            .look_at(self.context.settings().manual_fix.poll_interval, self.polls)
    }

    /// When to run the loops, if nothing changes until then.
    fn verify_at(&self) -> Option<Instant> {
        if self.pace.reported.is_some() {
            // It is looked first.
            return None;
        }
        if self.asked {
            return Some(self.pace.looked.0);
        }
        let settings = &self.context.settings().manual_fix;
        let due = settings.verify_on_change && !self.loops.is_empty() && self.tree != self.judged;
        due.then(|| self.pace.quiet_at(settings.quiet_period))
    }

    fn look(&mut self) -> Result<()> {
        let begun = Instant::now();
        // What is reported from here on may be too late for it.
        self.pace.reported = None;
        match prepare(self.context) {
            Ok(prepared) => self.compare(&prepared)?,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        let now = Instant::now();
        self.pace.looked = (now, now - begun);
        Ok(())
    }

    fn compare(&mut self, prepared: &Prepared) -> Result<()> {
        let found = self.differences(prepared)?;
        let sources: BTreeSet<&str> = found
            .values()
            .filter_map(|(change, _)| change.old_path.as_deref())
            .collect();
        let mut told = Vec::new();
        for (path, (change, _)) in &self.known {
            if !found.contains_key(path) && !sources.contains(&*path.to_lossy()) {
                told.push(Step::Reverted(change.clone()));
            }
        }
        let new = found
            .iter()
            .filter(|(path, seen)| self.known.get(*path) != Some(*seen));
        told.extend(new.map(|(_, (change, _))| Step::Changed(change.clone())));
        let tree = Some(prepared.capture.tree.clone());
        if !told.is_empty() || self.tree != tree {
            self.pace.changed(Instant::now());
            self.announced = false;
        }
        self.told.extend(told);
        self.known = found;
        self.tree = tree;
        let root = self.context.worktree();
        let folders = prepared
            .capture
            .folders()
            .iter()
            .map(|folder| folder.below(root))
            .collect();
        if self.watcher.follow(folders) {
            // What changed in the new ones before they were watched is seen now.
            self.pace.report(Instant::now());
        }
        if let Some(reason) = self.watcher.unavailable().filter(|_| !self.polls) {
            let interval = self.context.settings().manual_fix.poll_interval;
            self.told
                .push_front(Step::Polling(reason.to_owned(), interval));
            self.polls = true;
        }
        Ok(())
    }

    /// What differs from the session's beginning.
    fn differences(&self, prepared: &Prepared) -> Result<Seen> {
        let state = self.context.load()?.state;
        let changes =
            changes_with_seen(self.context, &state, &self.session, prepared, &self.known)?;
        let objects = prepared.capture.objects();
        let lookup = TreeLookup::new(&objects)?;
        let side = prepared.capture.view();
        let seen = |change: Change| -> Result<_> {
            let entry = side.entry(&lookup, &change.path)?;
            Ok((change.path.clone(), (change, entry)))
        };
        changes.into_iter().map(seen).collect()
    }

    /// Says that the loops are about to run, then runs them; `None` where another process is in the way.
    fn judge(&mut self) -> Result<Option<Step>> {
        if !self.announced {
            self.announced = true;
            return Ok(Some(Step::Verifying(self.loops.clone())));
        }
        self.announced = false;
        self.asker.judging.lock().runs = true;
        let judged = judge(self.context, &self.key, self.show);
        let now = Instant::now();
        if self.asker.judging_ended() {
            // The request came from who asked, who is answered next.
            self.context.interrupts.take();
            let is_interrupted = |error: &Error| matches!(error.kind, ErrorKind::Interrupted(_));
            if judged.as_ref().is_err_and(is_interrupted) {
                (self.judged, self.asked) = (None, false);
                return Ok(None);
            }
        }
        self.pace.report(now);
        let judged = match judged {
            Ok(judged) => judged,
            Err(error) => match error.kind {
                ErrorKind::Locked => {
                    self.judged = None;
                    self.pace.changed(now);
                    return Ok(None);
                }
                ErrorKind::Interrupted(code) => return Ok(Some(Step::Stopped(code))),
                ErrorKind::NoSession => return Ok(Some(Step::Ended)),
                _ => return Err(error),
            },
        };
        self.asked = false;
        self.ledger_length = status::length(self.context);
        if judged.outdated {
            self.judged = None;
            if self.pace.outdated(now) {
                self.told.push_back(Step::Restless);
            }
        } else {
            self.judged = Some(judged.tree.clone());
            self.pace.judged();
        }
        Ok(Some(Step::Judged(Box::new(judged))))
    }

    /// Whether another process ended the session.
    fn has_ended(&mut self) -> Result<bool> {
        let length = status::length(self.context);
        if std::mem::replace(&mut self.ledger_length, length) == length {
            return Ok(false);
        }
        let state = self.context.load()?.state;
        match active(&state, &self.key) {
            Ok(fix) => Ok(fix.session.id != self.session.id),
            Err(error) if error.kind == ErrorKind::NoSession => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// Whether another process is in the way, for a moment.
fn is_passing(error: &Error) -> bool {
    error.kind == ErrorKind::Locked
}

/// What ends a watch's wait.
pub(crate) enum Wake {
    /// The system reported a change.
    Look,
    /// A user asked.
    Asked(char),
}

/// Hands what a user asks to a watch.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    sender: Sender<Wake>,
    judging: Arc<Mutex<Judging>>,
    interrupts: Interrupts,
}

/// Whether the feedback loops run just now, and whether a user does not want to wait for them.
#[derive(Debug, Default)]
struct Judging {
    runs: bool,
    cut_short: bool,
}

impl Asker {
    pub(crate) fn new(sender: Sender<Wake>, interrupts: Interrupts) -> Self {
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
        let mut judging = self.judging.lock();
        if judging.runs {
            judging.cut_short = true;
            self.interrupts.request(Signal::Int);
        }
        asked
    }

    /// They ran; answers whether a user did not want to wait for them.
    fn judging_ended(&self) -> bool {
        std::mem::take(&mut *self.judging.lock()).cut_short
    }
}

/// Reports that come so shortly after each other belong together.
const CALM: Duration = Duration::from_millis(80);
/// But no look waits longer for calm.
const RESTLESS: Duration = Duration::from_millis(300);
/// The tree is examined without a reason after this many times the poll interval.
const SELDOM: u32 = 12;
/// After a look there is a pause of this many times as long as it took.
const SHARE: u32 = 3;
/// But where something changed a pause is no longer than this, or than the look was.
const PAUSE: Duration = Duration::from_millis(500);
/// This many results in a row were outdated when they came: a note is printed about it.
const SUSPICIOUS: u32 = 3;
/// The longest pause before the loops run again after that.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What happened last, and what follows from it for the next time.
struct Pace {
    /// The first and the last report since the last look.
    reported: Option<(Instant, Instant)>,
    /// When the last look ended, and how long it took.
    looked: (Instant, Duration),
    changed_at: Instant,
    /// How many results in a row were outdated.
    outdated: u32,
}

impl Pace {
    /// Begins with a look.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            reported: Some((now, now)),
            looked: (now, Duration::ZERO),
            changed_at: now,
            outdated: 0,
        }
    }

    /// Something may have changed.
    pub(crate) fn report(&mut self, now: Instant) {
        self.reported = Some((self.reported.map_or(now, |(first, _)| first), now));
    }

    /// Something changed, or has to be quiet anew.
    pub(crate) fn changed(&mut self, now: Instant) {
        self.changed_at = now;
    }

    /// The loops' results hold.
    pub(crate) fn judged(&mut self) {
        self.outdated = 0;
    }

    /// The loops' results were outdated when they came; answers whether that is suspicious by now, once.
    pub(crate) fn outdated(&mut self, now: Instant) -> bool {
        self.changed_at = now;
        self.outdated += 1;
        self.outdated == SUSPICIOUS
    }

    /// When to look next: soon after a report, else seldom; at the poll interval where nothing is reported.
    pub(crate) fn look_at(&self, poll_interval: Duration, polls: bool) -> Instant {
        let (ended, took) = self.looked;
        let seldom = poll_interval
            .saturating_mul(SELDOM)
            .max(took.saturating_mul(20));
        let interval = if polls { poll_interval } else { seldom };
        let seldom = ended + interval.max(took.saturating_mul(SHARE)).min(LONGEST_PAUSE);
        let calm = self
            .reported
            .map(|(first, last)| (last + CALM).min(first + RESTLESS));
        let pause = took.saturating_mul(SHARE).min(took.max(PAUSE));
        calm.map_or(seldom, |calm| seldom.min(calm.max(ended + pause)))
    }

    /// When it was quiet for long enough; that takes the longer, the more results were outdated in a row.
    fn quiet_at(&self, quiet_period: Duration) -> Instant {
        let longer = 1 << self.outdated.saturating_sub(1).min(16);
        self.changed_at
            + quiet_period
                .saturating_mul(longer)
                .min(LONGEST_PAUSE.max(quiet_period))
    }
}
