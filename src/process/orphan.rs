//! Children whose supervisor was killed: whether they live, and how to end them.
//!
//! A process number alone says nothing, numbers are used again. Together with the time at which the process started and
//! the machine's current boot it names one process.
//!
//! `recover` as the first process of a PID namespace, a container's for example.
//! Everything whose parent ended becomes its child, and stays as a zombie until it is waited for.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::table::{self, Entry};
use crate::model::run::ProcessId;
use crate::os::{KNOWS_FOLDERS_OF_PROCESSES, own_program};

/// What was found of a recorded group, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEnd {
    /// Nothing of it was alive.
    Gone,
    /// It was alive and is not any more.
    Ended,
    /// Some of it is still alive: it belongs to another process, or the kernel does not let it go.
    Remains,
}

impl ProcessId {
    /// The id of the process `pid` as it is now.
    pub(super) fn of(pid: u32) -> Self {
        Self::of_entry(pid, table::entry(pid))
    }

    /// The id of a process whose row of the table is known; one that is gone has none.
    pub(super) fn of_entry(pid: u32, entry: Option<table::Entry>) -> Self {
        Self {
            pid,
            start_time: entry.map_or(0, |entry| entry.start_time),
            session: entry.map_or(0, |entry| entry.session),
            boot_id: table::boot_id(),
            pid_namespace: table::pid_namespace(),
            heartbeat: None,
        }
    }

    /// Whether its number means something to this process: same boot, same PID namespace as far as that was recorded.
    pub fn is_comparable(&self) -> bool {
        self.start_time > 0 && self.boot_id == table::boot_id() && !self.is_of_other_namespace()
    }

    /// Whether it was recorded in another PID namespace, a container's for example.
    pub fn is_of_other_namespace(&self) -> bool {
        self.pid_namespace.is_some() && self.pid_namespace != table::pid_namespace()
    }

    /// Whether it is a process of this boot whose PID namespace cannot be seen from here.
    pub fn is_out_of_sight(&self) -> bool {
        self.boot_id == table::boot_id() && self.is_of_other_namespace()
    }

    /// Whether it is this process.
    pub fn is_own(&self) -> bool {
        let own = Self::own();
        self.is_comparable() && (self.pid, self.start_time) == (own.pid, own.start_time)
    }

    /// The id of this process, for a lock's or a run's record.
    pub(crate) fn own() -> Self {
        Self::of(std::process::id())
    }

    /// The processes that this one descends from, its parent first.
    pub(crate) fn ancestors() -> Vec<Self> {
        let parent = |entry: Option<Entry>| {
            let pid = entry?.parent;
            (pid > 0).then(|| (pid, table::entry(pid)))
        };
        let first = parent(table::entry(std::process::id()));
        let all = std::iter::successors(first, |(_, entry)| parent(*entry)).take(GENERATIONS);
        all.map(|(pid, entry)| Self::of_entry(pid, entry)).collect()
    }

    /// The process that had this one started: the first of its ancestors that is no shell. `None` where that cannot be known.
    pub(crate) fn caller() -> Option<Self> {
        for ancestor in Self::ancestors() {
            let name = table::name(ancestor.pid).filter(|_| ancestor.pid > 1)?;
            // A login shell has a dash before its name.
            if !SHELLS.contains(&name.trim_start_matches('-')) {
                return Some(ancestor);
            }
        }
        None
    }

    /// Whether exactly this process lives. A zombie does not.
    pub fn is_alive(&self) -> bool {
        self.is_comparable()
            && table::entry(self.pid)
                .is_some_and(|entry| entry.start_time == self.start_time && !entry.zombie)
    }

    /// Whether any process of a recorded child's group lives, the child or what it started.
    pub(crate) fn is_group_alive(&self) -> bool {
        self.start_time > 0
            && self.is_comparable()
            && remaining(self).is_ok_and(|left| !left.is_empty())
    }

    /// Ends what is left of the process group of a child whose supervisor is gone: SIGTERM, after `grace` SIGKILL. Returns
    /// when nothing of it is alive, or 2 seconds after the SIGKILL. The caller must know that no supervisor is at work.
    ///
    /// Nothing foreign is touched: if the number of the child was given to another process then its group had ended, and
    /// a member counts only if it is in the child's session and did not start before the child. A child that had no group
    /// of its own is ended alone. An error means that the process table cannot be read; nothing was done then.
    pub fn end_group(&self, grace: Duration) -> io::Result<GroupEnd> {
        if self.start_time == 0 || !self.is_comparable() {
            return Ok(GroupEnd::Gone);
        }
        end(|| remaining(self), grace)
    }

    /// Ends what a supervisor that is gone has started in its session, as [`Self::end_group`] does: also what it was killed
    /// before it could record. Found by the environment, which only Linux shows; elsewhere nothing is found.
    pub(crate) fn end_children(&self, grace: Duration) -> io::Result<GroupEnd> {
        if self.is_alive() {
            Ok(GroupEnd::Gone)
        } else {
            end_started_by(self, grace)
        }
    }
}

/// More ancestors than this has only a table that changes while it is read.
const GENERATIONS: usize = 256;

/// What programs start others with.
const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "fish", "ash", "ksh", "mksh", "busybox",
];

/// A process of git's at work in one of these folders, or below it, with its command. One whose folder cannot be read counts.
///
/// # Errors
/// The system does not show what processes work on.
pub(crate) fn git_at_work(folders: &[&Path]) -> io::Result<Option<(u32, String)>> {
    if !KNOWS_FOLDERS_OF_PROCESSES {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let is_git = |entry: &Entry| {
        table::name(entry.pid).is_some_and(|name| name == "git" || name.starts_with("git-"))
    };
    let is_inside = |entry: &Entry| match table::folder(entry.pid) {
        Some(at) => folders.iter().any(|folder| at.starts_with(folder)),
        // It has ended meanwhile, or is another user's.
        None => table::entry(entry.pid)
            .is_some_and(|now| now.start_time == entry.start_time && !now.zombie),
    };
    let found = living()?
        .into_iter()
        .find(|entry| is_git(entry) && is_inside(entry));
    Ok(found.map(|entry| (entry.pid, table::command(entry.pid).unwrap_or_default())))
}

/// The variable that names a child's supervisor to the child and all that it starts.
pub(super) const SUPERVISOR: &str = "RECOVER_SUPERVISOR";

/// The value of [`SUPERVISOR`] for the children of `id`.
pub(super) fn mark_of(id: &ProcessId) -> String {
    format!("{}-{}", id.pid, id.start_time)
}

/// Ends what a supervisor started that may be there and do nothing about it: one that is frozen.
pub(super) fn end_started_by(supervisor: &ProcessId, grace: Duration) -> io::Result<GroupEnd> {
    if supervisor.start_time == 0 || !supervisor.is_comparable() {
        return Ok(GroupEnd::Gone);
    }
    let mark = format!("{SUPERVISOR}={}", mark_of(supervisor));
    let started = |entry: &Entry| {
        entry.start_time >= supervisor.start_time
            && (supervisor.session == 0 || entry.session == supervisor.session)
            && table::has_variable(entry.pid, &mark)
    };
    let find = || {
        let mut living = living()?;
        living.retain(started);
        Ok(living)
    };
    end(find, grace)
}

/// SIGTERM, after `grace` SIGKILL, until `find` finds nothing any more.
pub(super) fn end(
    find: impl Fn() -> io::Result<Vec<Entry>>,
    grace: Duration,
) -> io::Result<GroupEnd> {
    let left = find()?;
    if left.is_empty() {
        return Ok(GroupEnd::Gone);
    }
    signal(&left, Signal::TERM);
    if wait(&find, grace)? {
        return Ok(GroupEnd::Ended);
    }
    // Members that were forked in the meantime get it too.
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        signal(&find()?, Signal::KILL);
        if wait(&find, Duration::from_millis(100))? {
            return Ok(GroupEnd::Ended);
        }
    }
    Ok(GroupEnd::Remains)
}

/// The living processes that certainly belong to the recorded child.
fn remaining(id: &ProcessId) -> io::Result<Vec<Entry>> {
    if table::entry(id.pid).is_some_and(|entry| entry.start_time != id.start_time) {
        return Ok(Vec::new());
    }
    let mut living = living()?;
    living.retain(|entry| is_part_of(entry, id));
    Ok(living)
}

pub(super) fn living() -> io::Result<Vec<Entry>> {
    let unreadable = || {
        io::Error::new(
            io::ErrorKind::Unsupported,
            "the process table cannot be read",
        )
    };
    table::living().ok_or_else(unreadable)
}

fn is_part_of(entry: &Entry, id: &ProcessId) -> bool {
    if entry.pid == id.pid {
        return entry.start_time == id.start_time;
    }
    entry.group == id.pid
        && entry.start_time >= id.start_time
        && (id.session == 0 || entry.session == id.session)
}

fn signal(processes: &[Entry], signal: Signal) {
    for entry in processes {
        let Some(pid) = i32::try_from(entry.pid).ok().and_then(Pid::from_raw) else {
            continue;
        };
        for signal in [signal, Signal::CONT] {
            // It may have ended by itself, or belong to another user; the caller looks again.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Whether nothing of it is left, at the latest after `limit`.
fn wait(find: &impl Fn() -> io::Result<Vec<Entry>>, limit: Duration) -> io::Result<bool> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(2);
    loop {
        if find()?.is_empty() {
            return Ok(true);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Runs this program with the same arguments as a child, forwards signals to it, waits for all processes that become
/// children of this one, and returns the child's exit code (128 + N after signal N) once it ended.
///
/// # Errors
/// The child could not be started.
pub(crate) fn run_as_child(args: &[OsString]) -> io::Result<u8> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
    let mut command = Command::new(own_program()?);
    command.args(args.iter().skip(1));
    if let Some(name) = args.first() {
        command.arg0(name);
    }
    let pid = Pid::from_child(&command.spawn()?);
    thread::spawn(move || {
        for signal in signals.forever().filter_map(Signal::from_named_raw) {
            // It may have ended just now.
            let _ = kill_process(pid, signal);
        }
    });
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == pid => {
                let code = status
                    .exit_status()
                    .or_else(|| Some(128 + status.terminating_signal()?));
                return Ok(code
                    .and_then(|code| u8::try_from(code).ok())
                    .unwrap_or(u8::MAX));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell in a group of its own that has printed a line, so that its traps and children are in place.
    fn start(script: &str) -> (Child, ProcessId) {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0; 3];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut line)
            .unwrap();
        let id = ProcessId::of(child.id());
        (child, id)
    }

    #[test]
    fn this_process_is_alive_and_its_id_survives_writing() {
        let id = ProcessId::own();
        assert!(id.is_alive());
        let written = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<ProcessId>(&written).unwrap(), id);
    }

    #[test]
    fn another_process_with_the_same_number_is_not_it() {
        let id = ProcessId::own();
        let later = ProcessId {
            start_time: id.start_time + 1,
            ..id.clone()
        };
        let of_another_boot = ProcessId {
            boot_id: Some("another".to_owned()),
            ..id.clone()
        };
        let of_another_namespace = ProcessId {
            pid_namespace: Some(1),
            ..id.clone()
        };
        let unknown = ProcessId {
            start_time: 0,
            ..id
        };
        for other in [later, of_another_boot, of_another_namespace, unknown] {
            assert!(!other.is_alive(), "{other:?}");
        }
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let (mut child, id) = start("echo up; exec sleep 1000");
        assert!(id.is_alive());
        child.kill().unwrap();
        while id.is_alive() {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(table::entry(id.pid).unwrap().zombie);
        child.wait().unwrap();
        assert_eq!(id.end_group(Duration::ZERO).unwrap(), GroupEnd::Gone);
    }

    #[test]
    fn a_group_ends_on_sigterm() {
        let (mut child, id) = start("sleep 1000 & echo up; wait");
        assert_eq!(
            id.end_group(Duration::from_secs(20)).unwrap(),
            GroupEnd::Ended
        );
        assert!(table::members(id.pid).unwrap().is_empty());
        child.wait().unwrap();
    }

    #[test]
    fn members_are_killed_also_when_the_leader_is_gone() {
        let (mut child, id) =
            start("(trap '' TERM; while :; do sleep 1; done) & sleep 0.1; echo up");
        child.wait().unwrap();
        assert!(!id.is_alive());
        assert_eq!(
            id.end_group(Duration::from_millis(100)).unwrap(),
            GroupEnd::Ended
        );
        assert!(table::members(id.pid).unwrap().is_empty());
    }

    #[test]
    fn nothing_foreign_is_touched() {
        let (mut child, id) = start("sleep 1000 & echo up; wait");
        let grace = Duration::from_millis(10);
        for foreign in [
            ProcessId {
                start_time: id.start_time - 1,
                ..id.clone()
            },
            ProcessId {
                start_time: id.start_time + 1,
                ..id.clone()
            },
            ProcessId {
                boot_id: Some("another".to_owned()),
                ..id.clone()
            },
            ProcessId {
                pid_namespace: Some(1),
                ..id.clone()
            },
            ProcessId {
                start_time: 0,
                ..id.clone()
            },
        ] {
            assert_eq!(
                foreign.end_group(grace).unwrap(),
                GroupEnd::Gone,
                "{foreign:?}"
            );
        }
        assert!(id.is_alive());
        id.end_group(grace).unwrap();
        child.wait().unwrap();
    }
    #[test]
    fn a_member_is_in_the_session_and_no_older_than_the_child() {
        let id = ProcessId {
            pid: 500,
            start_time: 100,
            session: 400,
            boot_id: None,
            pid_namespace: None,
            heartbeat: None,
        };
        let member = Entry {
            pid: 501,
            parent: 500,
            group: 500,
            session: 400,
            start_time: 101,
            zombie: false,
        };
        assert!(is_part_of(&member, &id));
        assert!(!is_part_of(
            &Entry {
                group: 501,
                ..member
            },
            &id
        ));
        assert!(!is_part_of(
            &Entry {
                start_time: 99,
                ..member
            },
            &id
        ));
        assert!(!is_part_of(
            &Entry {
                session: 401,
                ..member
            },
            &id
        ));
        // The session's leader is outside this process namespace: every session reads as 0, there is nothing to compare.
        assert!(is_part_of(
            &Entry {
                session: 0,
                ..member
            },
            &ProcessId { session: 0, ..id }
        ));
    }
}
