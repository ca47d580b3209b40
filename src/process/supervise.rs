//! The loop around one child.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal as Kill};
use signal_hook::low_level::signal_name;

use super::ending::{Ending, SETTLE, Step};
use super::log::BoundedLog;
use super::oversight::Oversight;
use super::passthrough::Screen;
use super::pty::{self, Link};
use super::signals::{Interrupts, Signal};
use super::spawn::{self, Input, Output, Spawned, timespec};
use super::suspend::{self, Companion};
use super::table::Target;
use super::{Exit, ProcessId, Show, Supervised, Watcher};
use crate::os::end_of_child;

/// How long, after a child was ended by force, its last output may take to be shown.
const LAST_SHOW: Duration = Duration::from_secs(2);
/// How often to look where nothing wakes us up.
const GLANCE: Duration = Duration::from_millis(20);
/// How long to wait at most, so that nothing depends on a wake-up alone.
const LONGEST: Duration = Duration::from_secs(1);

/// See [`Supervised::run`].
pub(super) fn supervise(
    spec: &Supervised,
    interrupts: &Interrupts,
    on_spawn: &mut dyn FnMut(&ProcessId) -> io::Result<()>,
) -> io::Result<Exit> {
    let (woken, wake) = UnixStream::pair()?;
    woken.set_nonblocking(true)?;
    wake.set_nonblocking(true)?;
    // Listening comes before asking, so that no signal falls between the two.
    let _listener = interrupts.listen(wake.try_clone()?);
    let (seen, _) = interrupts.received();
    if let Some(signal) = interrupts.pending() {
        return Ok(Exit {
            cancelled: Some(signal),
            ..Exit::default()
        });
    }
    let log = match &spec.log {
        Some(file) if !spec.show.is_passthrough() => {
            Some(BoundedLog::new(file.try_clone()?, spec.log_limit))
        }
        _ => None,
    };
    spec.oversight.wake_by(wake.try_clone()?);
    let resized = wake.try_clone()?;
    let shown = match spec.show {
        Show::Passthrough if spec.heard() != [false; 2] => Show::Live,
        Show::PassthroughStderr if spec.heard() != [false; 2] => Show::Stderr,
        show => show,
    };
    let passes = shown != spec.show;
    let screen = Screen::start(shown, wake)?;

    let started = Instant::now();
    let Spawned {
        child,
        stdin,
        outputs,
        foreground,
    } = match spawn::spawn(spec)? {
        Ok(spawned) => spawned,
        Err(error) => {
            return Ok(Exit {
                spawn_error: Some(error),
                ..Exit::default()
            });
        }
    };
    let pid = Pid::from_child(&child);
    let link = match (&spec.pty, &outputs[0]) {
        (Some(_), Some(terminal)) => Some(Link::new(
            terminal,
            spec.stdin.is_none() && pty::is_typed_on(),
            resized,
        )),
        _ => None,
    };
    let mut supervision = Supervision {
        link: None,
        companion: (!foreground).then(|| Companion::new(pid)),
        stood_still: suspend::stood_still(),
        target: if foreground {
            Target::Process(pid)
        } else {
            Target::Group(pid)
        },
        end: end_of_child(&child),
        child,
        status: None,
        started,
        duration: Duration::ZERO,
        ending: Ending::new(started, spec.deadline, spec.grace),
        gone: None,
        next_check: started,
        check_pause: Duration::from_millis(1),
        over: false,
        interrupts,
        foreground,
        seen,
        woken,
        input: Input::new(stdin, spec.stdin.as_deref().unwrap_or_default()),
        outputs: outputs.map(|pipe| Output::new(pipe, spec.keep)),
        screen,
        passes,
        watcher: spec.watcher.as_ref(),
        oversight: &spec.oversight,
        log,
        log_error: None,
    };
    supervision.link = link.transpose()?;
    spec.oversight.begin(supervision.child.id());
    on_spawn(&ProcessId::of(supervision.child.id()))?;
    while !supervision.is_over(Instant::now())? {
        supervision.wait_and_pump()?;
    }
    supervision.show_the_rest()?;
    Ok(supervision.into_exit())
}

/// What a wait found to do.
struct Ready {
    woken: bool,
    input: bool,
    outputs: [bool; 2],
}

struct Supervision<'a> {
    child: Child,
    target: Target,
    /// What joins our terminal and the child's own.
    link: Option<Link>,
    /// Its group stops when this process is stopped; `None` once the number may be others'.
    companion: Option<Companion>,
    /// How long this process had stood still, the last time that was asked.
    stood_still: Duration,
    /// Becomes readable when the child ends.
    end: Option<File>,
    status: Option<ExitStatus>,
    started: Instant,
    duration: Duration,
    ending: Ending,
    /// When it was noticed that nothing of the group is left.
    gone: Option<Instant>,
    next_check: Instant,
    check_pause: Duration,
    /// Nothing is left to guard.
    over: bool,
    interrupts: &'a Interrupts,
    foreground: bool,
    /// How many signals were heeded.
    seen: u64,
    woken: UnixStream,
    input: Input<'a>,
    outputs: [Output; 2],
    screen: Screen,
    /// The child's streams are to be our own, and only heard on the way.
    passes: bool,
    watcher: Option<&'a Watcher>,
    oversight: &'a Oversight,
    log: Option<BoundedLog>,
    log_error: Option<String>,
}

impl Supervision<'_> {
    /// Does what is due; true when the group is gone and its output read.
    fn is_over(&mut self, now: Instant) -> io::Result<bool> {
        let stood_still = suspend::stood_still();
        self.ending.postpone(
            stood_still.saturating_sub(std::mem::replace(&mut self.stood_still, stood_still)),
        );
        self.heed_signals(now);
        if self.status.is_none()
            && let Some(status) = self.child.try_wait()?
        {
            self.status = Some(status);
            self.duration = now - self.started;
            self.input.pipe = None;
            self.link = None;
            self.ending.child_ended(now);
            self.next_check = now;
        }
        if self.status.is_some() && self.gone.is_none() && now >= self.next_check {
            if self.target.outlived() {
                self.next_check = now + self.check_pause;
                self.check_pause = (self.check_pause * 2).min(Duration::from_millis(50));
            } else {
                self.gone = Some(now);
                self.companion = None;
                self.outputs.iter_mut().for_each(Output::limit_to_pipe);
            }
        }
        let Some(gone) = self.gone else {
            if self.oversight.is_to_end() {
                let step = self.ending.stop(now);
                self.take(&step);
            }
            let step = self.ending.advance(now);
            self.over = step == Step::GiveUp;
            self.take(&step);
            return Ok(self.over);
        };
        // From here on the group's number may be given to others: no more signals.
        if self.is_forced() && now >= gone + LAST_SHOW {
            self.screen.abandon();
        }
        self.over = self.outputs.iter().all(|output| output.pipe.is_none())
            || (now >= gone + SETTLE && self.outputs.iter().all(Output::is_drained));
        Ok(self.over)
    }

    /// Whether the child did not end by itself.
    fn is_forced(&self) -> bool {
        self.ending.timed_out || self.ending.stopped || self.ending.cancelled.is_some()
    }

    fn heed_signals(&mut self, now: Instant) {
        let (count, latest) = self.interrupts.received();
        if count == self.seen {
            return;
        }
        self.seen = count;
        let Some(signal) = latest else { return };
        if self.foreground && signal == Signal::Int {
            // The terminal gave it to the child too, which decides what it means.
            return;
        }
        let step = self.ending.request(now, signal);
        if self.gone.is_none() {
            self.take(&step);
        } else {
            // Only the screen can hold us up now.
            self.screen.abandon();
        }
    }

    fn take(&self, step: &Step) {
        // The number of a child that was reaped is still its group's while a process is in it.
        if let Step::Send(signal) = step
            && (self.status.is_none() || self.target.outlived())
        {
            self.target.signal(*signal);
        }
    }

    /// Waits for something to do, and moves bytes.
    fn wait_and_pump(&mut self) -> io::Result<()> {
        let is_open = self.outputs.iter().any(|output| output.pipe.is_some());
        let mut buffer = is_open.then(|| self.screen.buffer()).flatten();
        let can_read = buffer.is_some();
        let mut ready = None;
        if self.log.as_ref().is_some_and(BoundedLog::is_dirty) {
            ready = self.poll(can_read, Duration::ZERO)?;
            if ready.is_none() {
                // The child pauses: a good time to bring the log up to date.
                self.with_log(BoundedLog::flush);
            }
        }
        if ready.is_none() {
            ready = self.poll(can_read, self.patience())?;
        }
        if let Some(ready) = &ready {
            if ready.woken {
                let _ = (&self.woken).read(&mut [0; 64]);
                if let Some(link) = &mut self.link {
                    link.follow_size();
                }
            }
            if ready.input {
                self.input.feed();
            }
        }
        for stream in 0..self.outputs.len() {
            let is_ready = ready.as_ref().is_some_and(|ready| ready.outputs[stream]);
            if (is_ready || self.outputs[stream].is_hung_up())
                && let Some(free) = buffer.take().or_else(|| self.screen.buffer())
            {
                self.read(stream, free)?;
            }
        }
        if let Some(unused) = buffer {
            self.screen.give_back(unused);
        }
        Ok(())
    }

    /// How long nothing will be due.
    fn patience(&self) -> Duration {
        let now = Instant::now();
        let until = |at: Instant| at.saturating_duration_since(now);
        let mut patience = LONGEST;
        match (self.gone, self.status) {
            (Some(gone), _) => {
                // After that it only waits for the screen.
                let left = until(gone + SETTLE);
                patience = patience.min(if left.is_zero() { GLANCE } else { left });
            }
            (None, Some(_)) => patience = patience.min(until(self.next_check)),
            (None, None) if self.end.is_none() => patience = patience.min(GLANCE),
            (None, None) => {}
        }
        if self.gone.is_none()
            && let Some(next) = self.ending.next()
        {
            patience = patience.min(until(next));
        }
        if self.outputs.iter().any(Output::is_hung_up) {
            patience = patience.min(GLANCE);
        }
        patience
    }

    /// What is ready, at the latest after `limit`.
    fn poll(&self, can_read: bool, limit: Duration) -> io::Result<Option<Ready>> {
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        let end = self.end.as_ref().filter(|_| self.status.is_none());
        if let Some(end) = end {
            fds.push(PollFd::new(end, PollFlags::IN));
        }
        let input = self.input.pipe.as_ref().map(|pipe| {
            fds.push(PollFd::new(pipe, PollFlags::OUT));
            fds.len() - 1
        });
        let outputs = self.outputs.each_ref().map(|output| {
            fds.push(PollFd::new(
                output.open().filter(|_| can_read)?,
                PollFlags::IN,
            ));
            Some(fds.len() - 1)
        });
        match poll(&mut fds, Some(&timespec(limit))) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => {
                let is_ready =
                    |at: Option<usize>| at.is_some_and(|at| !fds[at].revents().is_empty());
                Ok(Some(Ready {
                    woken: is_ready(Some(0)),
                    input: is_ready(input),
                    outputs: outputs.map(is_ready),
                }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a stream once; it is ready.
    fn read(&mut self, stream: usize, mut buffer: Vec<u8>) -> io::Result<()> {
        let count = self.outputs[stream].read(&mut buffer, self.status.is_none())?;
        if count == 0 {
            self.screen.give_back(buffer);
            return Ok(());
        }
        if self.passes && self.screen.is_closed(stream) {
            // It meets the closed stream itself.
            self.outputs[stream].pipe = None;
        }
        self.oversight.add(count);
        self.with_log(|log| log.write(&buffer[..count]));
        // The first stream is stdout.
        let watcher = self.watcher.filter(|_| stream == 0);
        match watcher.and_then(|watcher| watcher.take(&buffer[..count])) {
            None => self.screen.show(stream, buffer, count),
            Some(shown) => self.show_instead(buffer, &shown),
        }
        Ok(())
    }

    /// Shows other bytes on stdout; `buffer` is one that was read into.
    fn show_instead(&mut self, mut buffer: Vec<u8>, shown: &[u8]) {
        if shown.is_empty() {
            return self.screen.give_back(buffer);
        }
        if buffer.len() < shown.len() {
            buffer.resize(shown.len(), 0);
        }
        buffer[..shown.len()].copy_from_slice(shown);
        self.screen.show(0, buffer, shown.len());
    }

    fn with_log(&mut self, write: impl FnOnce(&mut BoundedLog) -> io::Result<()>) {
        if let Some(log) = &mut self.log
            && let Err(error) = write(log)
        {
            // A full disk must not end the child's work; the caller is notified.
            self.log_error = Some(error.to_string());
            self.log = None;
        }
    }

    /// Waits until the output was shown. After a forced end, or if another signal comes, not for ever.
    fn show_the_rest(&mut self) -> io::Result<()> {
        self.with_log(BoundedLog::flush);
        if let Some(rest) = self
            .watcher
            .map(Watcher::end)
            .filter(|rest| !rest.is_empty())
        {
            self.show_instead(Vec::new(), &rest);
        }
        // Of a child that could not be ended nothing more is wanted either.
        self.end = None;
        self.input.pipe = None;
        let limit = self.is_forced().then(|| Instant::now() + LAST_SHOW);
        let seen = self.interrupts.received().0;
        while !self.screen.is_finished() {
            let left = limit.map_or(LONGEST, |limit| {
                limit.saturating_duration_since(Instant::now())
            });
            if left.is_zero() || self.interrupts.received().0 != seen {
                break;
            }
            if self.poll(false, left)?.is_some() {
                let _ = (&self.woken).read(&mut [0; 64]);
            }
        }
        Ok(())
    }

    fn into_exit(mut self) -> Exit {
        let exit_code = self.status.and_then(|status| status.code());
        let signal = match self.status {
            Some(status) => status.signal().map(name),
            // It was killed, and the kernel did not get around to it.
            None => Some(name(Kill::KILL.as_raw())),
        };
        let mut cancelled = self.ending.cancelled;
        if self.foreground && cancelled.is_none() && self.interrupts.pending() == Some(Signal::Int)
        {
            if signal.as_deref() == Some(Signal::Int.name())
                || exit_code == Some(Signal::Int.exit_code())
            {
                cancelled = Some(Signal::Int);
            } else {
                self.interrupts.take();
            }
        }
        let [stdout, stderr] = self.outputs.each_mut().map(Output::finish);
        Exit {
            exit_code,
            signal,
            timed_out: self.ending.timed_out,
            stopped: self.ending.stopped,
            cancelled,
            spawn_error: None,
            duration: self.duration,
            stdout,
            stderr,
            leaked: self.ending.leaked,
            detached: self.gone.is_some()
                && self.outputs.iter().any(|output| output.pipe.is_some()),
            log_error: self.log_error.take(),
        }
    }
}

impl Drop for Supervision<'_> {
    /// Only after an error there is something left to do: nobody will look after the group any more.
    fn drop(&mut self) {
        if !self.over {
            self.target.signal(Kill::KILL);
            let _ = self.child.wait();
        }
    }
}

/// `SIGKILL` and so on; `SIG34` for a signal without a name.
fn name(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("SIG{signal}"), str::to_owned)
}
