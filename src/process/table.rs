//! Questions about the system's process table.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use super::table;

pub(super) use crate::os::processes::{
    ProcessEntry as Entry, boot_id, command, cpu_time, entry, folder, has_variable, living, name,
    pid_namespace, variable,
};

/// The living processes of the group `group`; `None` if the table cannot be read.
pub(super) fn members(group: u32) -> Option<Vec<Entry>> {
    Some(
        living()?
            .into_iter()
            .filter(|entry| entry.group == group)
            .collect(),
    )
}

/// The process that started `pid`, or looks after it now.
pub(super) fn parent(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(entry(pid)?.parent).ok()?)
}

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
    /// a process may not be signalled changes nothing about the others.
    pub(super) fn signal(self, signal: Signal) {
        for signal in [signal, Signal::CONT] {
            let _ = match self {
                Self::Group(group) => kill_process_group(group, signal),
                Self::Process(process) => kill_process(process, signal),
            };
        }
    }

    /// Whether, after the child itself was reaped, a process of its group lives. Zombies do not count: where nobody
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_in_the_table() {
        let own = entry(std::process::id()).unwrap();
        assert!(!own.zombie);
        assert!(own.start_time > 0);
        assert!(members(own.group).unwrap().contains(&own));
    }
}
