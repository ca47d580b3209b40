//! The guard inside an attempt: it ends one that stalls, repeats itself, has spent the run's budget or fills the disk.
//!
//! It works in a thread of its own beside the supervisor, which ends the attempt as a time limit does.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use serde_json::Value;

use crate::agent::Tally;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::run_settings::settings_of;
use crate::model::agent_record::{AgentKind, AgentRecord, Usage};
use crate::model::time::format_duration;
use crate::model::{AttemptEnd, Failure, Hint, Run};
use crate::policy::classify;
use crate::policy::retry::bound_reached;
use crate::policy::settings::{RetrySettings, RunSettings};
use crate::policy::text::size;
use crate::process::Supervised;

/// How long an agent may stall where nothing is configured.
const IDLE: Duration = Duration::from_secs(3600);
/// The longest time between two examinations.
const TICK: Duration = Duration::from_secs(1);
/// The time between two where the disk is nearly full.
const HASTE: Duration = Duration::from_millis(50);
/// With this many times the least free space it is.
const NEARLY: u64 = 8;
/// After a longer pause this process was stopped, and the attempt with it.
const STOPPED: Duration = Duration::from_secs(10);

/// The guard of one attempt.
pub(super) struct Guard<'a> {
    worktree: &'a Path,
    /// Where what `recover` itself writes into the work tree is.
    own: &'a Path,
    disks: Vec<PathBuf>,
    before: &'a Run,
    retry: RetrySettings,
    settings: &'a RunSettings,
    is_agent: bool,
    tally: Arc<Mutex<Tally>>,
    found: Mutex<Found>,
}

/// What it came to.
#[derive(Debug, Default)]
struct Found {
    failure: Option<Failure>,
    used: Usage,
}

impl<'a> Guard<'a> {
    /// That of an attempt of the run `before`; `kind` is whose records are expected, `is_agent` whether an agent was named.
    pub(super) fn new(
        context: &'a Context,
        before: &'a Run,
        (kind, is_agent): (Option<AgentKind>, bool),
    ) -> Self {
        let retry = settings_of(context, before).retry;
        let counts = retry.max_cost_usd.is_some() || retry.max_tokens.is_some();
        Self {
            worktree: context.worktree(),
            own: context.store().dir(),
            disks: disks(context),
            before,
            retry,
            settings: &context.settings().run,
            is_agent,
            tally: Arc::new(Mutex::new(Tally::new(kind, counts))),
            found: Mutex::default(),
        }
    }

    /// Counts records as they come.
    pub(super) fn observer(&self) -> impl FnMut(AgentKind, &Value) + Send + 'static {
        let tally = Arc::clone(&self.tally);
        move |kind, record| tally.lock().take(kind, record, Instant::now())
    }

    /// Does `work`, which supervises the attempt as `supervised` says, and watches over it.
    pub(super) fn watch<T>(
        &self,
        supervised: &Supervised,
        work: impl FnOnce(&Supervised) -> T,
    ) -> T {
        thread::scope(|scope| {
            let (running, ended) = channel::<()>();
            scope.spawn(move || self.examine_until(&ended, supervised));
            let result = work(supervised);
            drop(running);
            result
        })
    }

    /// Why it ended the attempt, which used up at least what it counted: that is noted in `end`.
    pub(super) fn failure(&self, end: &mut AttemptEnd) -> Option<Failure> {
        let found = self.found.lock();
        end.cost_micros = end.cost_micros.max(found.used.cost_micros);
        if found.used.tokens.map(|one| one.total) > end.tokens.map(|one| one.total) {
            end.tokens = found.used.tokens;
        }
        found.failure.clone()
    }

    fn examine_until(&self, ended: &Receiver<()>, supervised: &Supervised) {
        let prints = !supervised.show.is_passthrough();
        let mut quiet = Quiet::begin();
        let mut wait = HASTE;
        while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            let idle = self.idle().filter(|_| prints);
            let free = free_space(&self.disks).map(|(free, _)| free);
            let least = self.settings.min_free;
            let failure = free
                .filter(|free| *free < least)
                .map(|free| {
                    classify::disk_filling(format!(
                        "Ended before the disk was full: {}",
                        lack(free, least)
                    ))
                })
                .or_else(|| self.spent())
                .or_else(|| self.repeats())
                .or_else(|| idle.and_then(|idle| self.stalled(&mut quiet, idle, supervised)));
            if let Some(failure) = failure {
                self.found.lock().failure = Some(failure);
                supervised.oversight.end_child();
                return;
            }
            let is_nearly_full = free.is_some_and(|free| free < least.saturating_mul(NEARLY));
            let tick = idle.map_or(TICK, |idle| TICK.min(idle / 16).max(HASTE));
            wait = if is_nearly_full { HASTE } else { tick };
        }
    }

    /// How long the attempt may stall; `None`: as long as it likes.
    fn idle(&self) -> Option<Duration> {
        let typed = self.before.spec.idle_ms.map(Duration::from_millis);
        let is_agent = self.is_agent || self.tally.lock().kind.is_some();
        let given = typed.or(self.settings.idle).or(is_agent.then_some(IDLE));
        given.filter(|idle| !idle.is_zero())
    }

    /// What is used up, once that is a bound on cost or tokens. An agent that is done need not be ended any more.
    fn spent(&self) -> Option<Failure> {
        let record = self.tally.lock().used()?;
        let used = usage_of(&record, self.before);
        self.found.lock().used = used;
        let spent = bound_reached(&self.retry, self.before.usage() + used)?;
        (!record.is_success)
            .then(|| classify::budget_spent(format!("Ended in the middle of its work: {spent}")))
    }

    fn repeats(&self) -> Option<Failure> {
        let most = self
            .before
            .spec
            .max_repeats
            .unwrap_or(self.settings.max_repeats);
        let tally = self.tally.lock();
        let (call, times) = tally
            .repeated()
            .filter(|(_, times)| most > 0 && *times >= most)?;
        let call = call.trim_start_matches("> ");
        let message =
            format!("The same tool call {times} times in a row, with the same result: {call}");
        Some(classify::repeated_itself(message))
    }

    fn stalled(
        &self,
        quiet: &mut Quiet,
        idle: Duration,
        supervised: &Supervised,
    ) -> Option<Failure> {
        let is_calling = self.tally.lock().is_calling();
        let is_changed = |since| is_changed(self.worktree, self.own, since);
        quiet
            .is_over(idle, supervised, is_calling, is_changed)
            .then(|| {
                classify::stalled(format!(
                    "Stalled for {}: no output, no processor time, no changed file",
                    format_duration(idle)
                ))
            })
    }
}

/// Since when nothing happens.
struct Quiet {
    printed: u64,
    since: Instant,
    by_clock: SystemTime,
    cpu: u64,
    sampled: Instant,
    examined: Instant,
}

impl Quiet {
    fn begin() -> Self {
        let now = Instant::now();
        Self {
            printed: 0,
            since: now,
            by_clock: SystemTime::now(),
            cpu: 0,
            sampled: now,
            examined: now,
        }
    }

    /// Whether nothing has happened for `idle`. Files are examined last: that reads the whole work tree.
    fn is_over(
        &mut self,
        idle: Duration,
        supervised: &Supervised,
        is_calling: bool,
        is_changed: impl FnOnce(SystemTime) -> bool,
    ) -> bool {
        let now = Instant::now();
        let printed = supervised.oversight.printed();
        let was_stopped = now - std::mem::replace(&mut self.examined, now) > STOPPED;
        let is_printing = std::mem::replace(&mut self.printed, printed) != printed;
        if is_printing || is_calling || was_stopped || self.is_busy(now, idle, supervised) {
            (self.since, self.by_clock) = (now, SystemTime::now());
        }
        if now - self.since < idle {
            return false;
        }
        let is_over = !is_changed(self.by_clock);
        (self.since, self.by_clock) = (now, SystemTime::now());
        is_over
    }

    /// Whether a hundredth of a processor or more was used: timers and the like of a program that waits need less.
    fn is_busy(&mut self, now: Instant, idle: Duration, supervised: &Supervised) -> bool {
        let time = now - self.sampled;
        if time < idle / 8 {
            return false;
        }
        self.sampled = now;
        let cpu = supervised.oversight.cpu_time().unwrap_or(self.cpu);
        let before = std::mem::replace(&mut self.cpu, cpu);
        // What has ended is not counted any more.
        cpu < before || (cpu - before) as f64 > time.as_secs_f64()
    }
}

/// Whether a file or folder of the work tree was changed since, but for git's and our own.
fn is_changed(root: &Path, own: &Path, since: SystemTime) -> bool {
    let since = since
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let is_later = |seconds: i64, nanos: i64| {
        let part = |number: i64| u64::try_from(number).unwrap_or(0);
        Duration::from_secs(part(seconds)) + Duration::from_nanos(part(nanos)) > since
    };
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(found) = entry.metadata() else {
                continue;
            };
            if entry.file_name() == ".git" || path == own {
                continue;
            }
            if is_later(found.ctime(), found.ctime_nsec()) {
                return true;
            }
            if found.is_dir() {
                folders.push(path);
            }
        }
    }
    false
}

/// The flags with which the agent itself ends what costs more than the run may still: what a session has cost that goes on
/// counts for it, too.
pub(super) fn budget_args(context: &Context, before: &Run, args: &[String]) -> Vec<String> {
    let Some(most) = settings_of(context, before).retry.max_cost_usd else {
        return Vec::new();
    };
    let session = before
        .session_to_resume()
        .and(Some(before.agent_session_usage));
    let counted = session.and_then(Usage::cost_usd).unwrap_or_default();
    let left = most - before.usage().cost_usd().unwrap_or_default() + counted;
    let left = format!("{:.2}", left.max(0.01));
    args.iter().map(|arg| arg.replace("{usd}", &left)).collect()
}

/// Refuses to begin where the disk has less than `[run] min_free` left (14).
pub(super) fn require_space(context: &Context) -> Result<()> {
    let least = context.settings().run.min_free;
    match free_space(&disks(context)).filter(|(free, _)| *free < least) {
        None => Ok(()),
        Some((free, place)) => {
            let message = format!(
                "too little space for an attempt at {}: {}",
                place.display(),
                lack(free, least)
            );
            Err(Error::new(ErrorKind::NoSpace, message).hint(Hint::recover([
                "checkpoint",
                "prune",
                "--dry-run",
            ])))
        }
    }
}

fn lack(free: u64, least: u64) -> String {
    format!(
        "{} are free, less than {} (run.min_free)",
        size(free),
        size(least)
    )
}

/// A folder on each disk that a run fills: with its work tree, and with its checkpoints.
fn disks(context: &Context) -> Vec<PathBuf> {
    let git = context.git().map(|repo| repo.common_dir().to_owned());
    std::iter::once(context.worktree().to_owned())
        .chain(git)
        .collect()
}

/// The free bytes of that with the fewest; `None` where no number says anything.
fn free_space(disks: &[PathBuf]) -> Option<(u64, &Path)> {
    let free = |disk: &'_ PathBuf| {
        let found = rustix::fs::statvfs(disk).ok()?;
        // Some file systems say of everything that it is 0.
        (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
    };
    let known = disks
        .iter()
        .filter_map(|disk| Some((free(disk)?, disk.as_path())));
    known.min()
}

/// What an attempt used up by itself. Of records that count from the beginning of a session in which the run was before,
/// that is what came on top. Whether they do is seen by what they count: a session that went on has used more than before,
/// at least by what the attempt says of itself.
pub(super) fn usage_of(record: &AgentRecord, before: &Run) -> Usage {
    let used = record.usage();
    let goes_on = record.session_id.is_some() && record.session_id == before.agent_session;
    let earlier = Some(before.agent_session_usage).filter(|_| goes_on);
    if record.kind == AgentKind::Acp {
        // Its cost is that of the session, its tokens are those of the prompt.
        let before = earlier.and_then(|usage| usage.cost_micros).unwrap_or(0);
        let own = |now: u64| now.checked_sub(before).unwrap_or(now);
        return Usage {
            cost_micros: used.cost_micros.map(own),
            ..used
        };
    }
    let earlier = earlier.filter(|_| record.is_of_session);
    let Some((earlier, now)) = earlier.zip(used.tokens) else {
        return used;
    };
    let own = record.own_tokens.map_or(1, |own| own.total.max(1));
    match earlier.tokens {
        Some(before) if now.total >= before.total.saturating_add(own) => used.since(earlier),
        _ => used,
    }
}
