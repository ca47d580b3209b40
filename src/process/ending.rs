//! Who is asked to end, and when: the steps from a running child to an empty group, without doing any of it.

use std::time::{Duration, Instant};

use rustix::process::Signal as Kill;

use super::signals::Signal;

/// How long what a child left behind may take to end by itself, and its pipes to be closed.
pub(super) const SETTLE: Duration = Duration::from_millis(200);
/// Signals that come so close together are one request: `timeout` and terminals send theirs twice.
const ONE_REQUEST: Duration = Duration::from_millis(250);
/// How long killed processes may take to vanish; only the kernel can make it longer.
const VANISH: Duration = Duration::from_secs(5);

/// The state of an ending.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Ending {
    phase: Phase,
    deadline: Option<Instant>,
    grace: Duration,
    first_request: Option<Instant>,
    child_ended: bool,
    /// The deadline passed while the child ran.
    pub(super) timed_out: bool,
    /// Whoever watches over the child had it ended while it ran.
    pub(super) stopped: bool,
    /// The first request to stop that came while the child ran.
    pub(super) cancelled: Option<Signal>,
    /// Processes of the group outlived the child and had to be ended.
    pub(super) leaked: bool,
}

#[derive(Debug)]
enum Phase {
    /// The child runs and may.
    Running,
    /// The child ended by itself; what is left of its group may do the same.
    Settling { until: Instant },
    /// The group was asked to end. `insist_at` is when it gets SIGTERM because another signal did not do.
    Asked {
        insist_at: Option<Instant>,
        kill_at: Instant,
    },
    /// The group was killed.
    Killed { give_up_at: Instant },
}

/// What is to be done now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Wait,
    /// Send this to the group.
    Send(Kill),
    /// Nothing helps.
    GiveUp,
}

impl Ending {
    pub(super) fn new(now: Instant, deadline: Option<Duration>, grace: Duration) -> Self {
        Self {
            phase: Phase::Running,
            deadline: deadline.and_then(|limit| now.checked_add(limit)),
            grace,
            first_request: None,
            child_ended: false,
            timed_out: false,
            stopped: false,
            cancelled: None,
            leaked: false,
        }
    }

    /// A signal came to the supervisor.
    pub(super) fn request(&mut self, now: Instant, signal: Signal) -> Step {
        match self.first_request {
            Some(first) if now.duration_since(first) < ONE_REQUEST => Step::Wait,
            Some(_) => self.kill(now),
            None => {
                self.first_request = Some(now);
                if !self.child_ended {
                    self.cancelled = Some(signal);
                }
                match self.phase {
                    Phase::Running => self.ask(now, signal.kind()),
                    Phase::Settling { .. } => {
                        self.leaked = true;
                        self.ask(now, signal.kind())
                    }
                    Phase::Asked { .. } | Phase::Killed { .. } => Step::Wait,
                }
            }
        }
    }

    /// Whoever watches over the child wants it to end.
    pub(super) fn stop(&mut self, now: Instant) -> Step {
        if !matches!(self.phase, Phase::Running) {
            return Step::Wait;
        }
        self.stopped = true;
        self.ask(now, Kill::TERM)
    }

    /// The deadline comes so much later: this process and the child stood still.
    pub(super) fn postpone(&mut self, by: Duration) {
        self.deadline = self.deadline.and_then(|deadline| deadline.checked_add(by));
    }

    /// The child ended; its group may live on.
    pub(super) fn child_ended(&mut self, now: Instant) {
        self.child_ended = true;
        match &mut self.phase {
            Phase::Running => {
                self.phase = Phase::Settling {
                    until: now + SETTLE,
                }
            }
            // Background jobs of a shell ignore SIGINT, and nobody else will end them.
            Phase::Asked {
                insist_at: Some(at),
                ..
            } => *at = now,
            _ => {}
        }
    }

    /// What the time makes necessary, while the child or something of its group lives.
    pub(super) fn advance(&mut self, now: Instant) -> Step {
        match &mut self.phase {
            Phase::Running if self.deadline.is_some_and(|deadline| now >= deadline) => {
                self.timed_out = true;
                self.ask(now, Kill::TERM)
            }
            Phase::Settling { until } if now >= *until => {
                self.leaked = true;
                self.ask(now, Kill::TERM)
            }
            Phase::Asked { kill_at, .. } if now >= *kill_at => self.kill(now),
            Phase::Asked { insist_at, .. } if insist_at.is_some_and(|at| now >= at) => {
                *insist_at = None;
                Step::Send(Kill::TERM)
            }
            Phase::Killed { give_up_at } if now >= *give_up_at => {
                self.leaked = true;
                Step::GiveUp
            }
            _ => Step::Wait,
        }
    }

    /// When to look again.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => self.deadline,
            Phase::Settling { until } => Some(until),
            Phase::Asked { insist_at, kill_at } => {
                Some(insist_at.map_or(kill_at, |at| at.min(kill_at)))
            }
            Phase::Killed { give_up_at } => Some(give_up_at),
        }
    }

    fn ask(&mut self, now: Instant, signal: Kill) -> Step {
        let insist_at = (signal != Kill::TERM).then(|| now + self.grace / 2);
        self.phase = Phase::Asked {
            insist_at,
            kill_at: now + self.grace,
        };
        Step::Send(signal)
    }

    fn kill(&mut self, now: Instant) -> Step {
        if matches!(self.phase, Phase::Killed { .. }) {
            return Step::Wait;
        }
        self.leaked |= self.child_ended;
        self.phase = Phase::Killed {
            give_up_at: now + VANISH,
        };
        Step::Send(Kill::KILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(4);

    fn at(start: Instant, seconds: f64) -> Instant {
        start + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_deadline_terminates_then_kills_then_gives_up() {
        let t = Instant::now();
        let mut ending = Ending::new(t, Some(Duration::from_secs(10)), GRACE);
        assert_eq!(ending.advance(at(t, 9.9)), Step::Wait);
        assert_eq!(ending.next(), Some(at(t, 10.0)));
        assert_eq!(ending.advance(at(t, 10.0)), Step::Send(Kill::TERM));
        assert!(ending.timed_out);
        assert_eq!(ending.advance(at(t, 13.9)), Step::Wait);
        assert_eq!(ending.advance(at(t, 14.0)), Step::Send(Kill::KILL));
        assert!(!ending.leaked, "the child itself was still there");
        assert_eq!(ending.advance(at(t, 18.9)), Step::Wait);
        assert_eq!(ending.advance(at(t, 19.0)), Step::GiveUp);
        assert!(ending.leaked);
    }

    #[test]
    fn what_a_watcher_wants_to_end_is_ended_once_as_by_a_deadline() {
        let t = Instant::now();
        let mut ending = Ending::new(t, None, GRACE);
        assert_eq!(ending.stop(t), Step::Send(Kill::TERM));
        assert_eq!(ending.stop(at(t, 1.0)), Step::Wait);
        assert_eq!(ending.advance(at(t, 4.0)), Step::Send(Kill::KILL));
        assert!(ending.stopped && !ending.timed_out);
        let mut ended = Ending::new(t, None, GRACE);
        ended.child_ended(t);
        assert_eq!(ended.stop(t), Step::Wait);
        assert!(!ended.stopped, "it had ended by itself");
    }

    #[test]
    fn a_request_is_handed_on_then_insisted_on() {
        let t = Instant::now();
        let mut ending = Ending::new(t, None, GRACE);
        assert_eq!(ending.request(t, Signal::Int), Step::Send(Kill::INT));
        assert_eq!(ending.cancelled, Some(Signal::Int));
        assert_eq!(
            ending.request(at(t, 0.1), Signal::Int),
            Step::Wait,
            "one request, sent twice"
        );
        assert_eq!(ending.advance(at(t, 2.0)), Step::Send(Kill::TERM));
        assert_eq!(ending.advance(at(t, 2.1)), Step::Wait);
        assert_eq!(ending.advance(at(t, 4.0)), Step::Send(Kill::KILL));
    }

    #[test]
    fn a_second_request_kills() {
        let t = Instant::now();
        let mut ending = Ending::new(t, None, GRACE);
        assert_eq!(ending.request(t, Signal::Term), Step::Send(Kill::TERM));
        assert_eq!(
            ending.request(at(t, 0.5), Signal::Term),
            Step::Send(Kill::KILL)
        );
        assert_eq!(ending.request(at(t, 1.0), Signal::Term), Step::Wait);
    }

    #[test]
    fn background_jobs_get_sigterm_when_the_child_is_gone() {
        let t = Instant::now();
        let mut ending = Ending::new(t, None, GRACE);
        ending.request(t, Signal::Int);
        ending.child_ended(at(t, 0.1));
        assert_eq!(ending.advance(at(t, 0.1)), Step::Send(Kill::TERM));
        assert!(
            !ending.leaked,
            "it was told at the same time and is only slower"
        );
    }

    #[test]
    fn what_outlives_the_child_is_a_leak() {
        let t = Instant::now();
        let mut ending = Ending::new(t, Some(GRACE), GRACE);
        ending.child_ended(t);
        assert_eq!(ending.advance(at(t, 0.1)), Step::Wait);
        assert_eq!(ending.advance(at(t, 0.2)), Step::Send(Kill::TERM));
        assert!(ending.leaked && !ending.timed_out);
        assert_eq!(ending.request(at(t, 0.3), Signal::Int), Step::Wait);
        assert_eq!(ending.cancelled, None, "the child had ended by itself");
    }

    #[test]
    fn an_endless_deadline_is_none() {
        assert_eq!(
            Ending::new(Instant::now(), Some(Duration::MAX), GRACE).next(),
            None
        );
    }
}
