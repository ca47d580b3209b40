//! The processes that a child stands for: its group, or itself alone.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use super::table;

/// Whom signals go to. Whoever holds it makes sure that the numbers are still the child's.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// A process group of the child's own.
    Group(Pid),
    /// The child only, because it shares this process's group.
    Process(Pid),
}

impl Target {
    /// Sends `signal`. A stopped process is woken so that it sees it. That nobody is left is no error, and that
    /// somebody may not be signalled changes nothing about the others.
    pub(super) fn signal(self, signal: Signal) {
        for signal in [signal, Signal::CONT] {
            let _ = match self {
                Self::Group(group) => kill_process_group(group, signal),
                Self::Process(process) => kill_process(process, signal),
            };
        }
    }

    /// Whether, after the child itself was reaped, somebody of its group lives. Zombies do not count: where nobody
    /// reaps orphans, as in many containers, they stay for ever.
    pub(super) fn outlived(self) -> bool {
        let Self::Group(group) = self else {
            return false;
        };
        if test_kill_process_group(group) == Err(Errno::SRCH) {
            return false;
        }
        table::members(number(group)).is_none_or(|members| !members.is_empty())
    }
}

/// A process id as a plain number.
pub(super) fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}
