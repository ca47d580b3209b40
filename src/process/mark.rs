//! What belongs to one supervised attempt, wherever it went: a mark in the environment.
//!
//! A process that leaves its session keeps its environment, and one that clears its environment keeps its ancestors. Linux
//! shows both of every process; elsewhere this process's own environment is all that is known.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::ending::SETTLE;
use super::orphan::{end, living};
use super::table::{self, Entry};
use super::{GroupEnd, ProcessId};
use crate::model::id::RunId;
use crate::model::run::Leftover;

/// The mark of one attempt. No other attempt has the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Who supervises the attempt.
    pub supervisor: ProcessId,
    /// Numbers of the places that the attempt is about, as its supervisor chose them.
    pub places: [u32; 2],
    random: u128,
}

impl Mark {
    /// The variable that holds an attempt's mark.
    pub(crate) const VARIABLE: &str = "RECOVER_ATTEMPT_MARK";

    /// A new one, of an attempt that this process supervises.
    pub(crate) fn new(places: [u32; 2]) -> Self {
        Self {
            supervisor: ProcessId::own(),
            places,
            random: fastrand::u128(..),
        }
    }

    /// The value of [`Self::VARIABLE`].
    pub(crate) fn value(&self) -> String {
        let ProcessId {
            pid,
            start_time,
            pid_namespace,
            ..
        } = self.supervisor;
        let [first, second] = self.places;
        let namespace = pid_namespace.unwrap_or_default();
        format!(
            "{pid}-{start_time}-{first:08x}-{second:08x}-{:032x}-{namespace}",
            self.random
        )
    }

    /// The mark whose value this is. Its supervisor is taken to be of this boot: the environment is no older.
    fn read(value: &str) -> Option<Self> {
        let mut parts = value.split('-');
        let (pid, start_time) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let places =
            [parts.next()?, parts.next()?].map(|place| u32::from_str_radix(place, 16).ok());
        let random = u128::from_str_radix(parts.next()?, 16).ok()?;
        // Older marks do not have it.
        let pid_namespace = parts
            .next()
            .and_then(|part| part.parse().ok())
            .filter(|inode| *inode > 0);
        let boot_id = table::boot_id();
        let supervisor = ProcessId {
            pid,
            start_time,
            session: 0,
            boot_id,
            pid_namespace,
            heartbeat: None,
        };
        Some(Self {
            supervisor,
            places: [places[0]?, places[1]?],
            random,
        })
    }

    /// A supervisor outside of this PID namespace cannot be seen: an attempt that starts a container stays an attempt.
    fn is_under_way(&self) -> bool {
        self.supervisor.is_out_of_sight() || self.supervisor.is_alive()
    }

    /// The marks of the attempts that this process is part of and whose supervisors live, the innermost first, each with the run
    /// that the marked process was started for.
    pub(crate) fn all() -> Vec<(Self, Option<RunId>)> {
        let own = std::env::var(Self::VARIABLE)
            .ok()
            .map(|value| (value, std::env::var("RECOVER_RUN_ID").ok()));
        let of = |id: ProcessId| {
            let value = table::variable(id.pid, Self::VARIABLE)?;
            Some((value, table::variable(id.pid, "RECOVER_RUN_ID")))
        };
        let others = ProcessId::ancestors().into_iter().filter_map(of);
        let mut found: Vec<(Self, Option<RunId>)> = Vec::new();
        for (value, run_id) in own.into_iter().chain(others) {
            let run_id = run_id.map(RunId::from);
            let Some(mark) = Self::read(&value).filter(Self::is_under_way) else {
                continue;
            };
            match found.iter_mut().find(|(known, _)| *known == mark) {
                // The supervisor's own child, which comes last, says it as the supervisor did.
                Some((_, known)) => *known = run_id.or(known.take()),
                None => found.push((mark, run_id)),
            }
        }
        found
    }

    /// What an attempt left behind outside its process group. Those whose current folder `is_to_end` says so of get SIGTERM,
    /// after `grace` SIGKILL; the others are left alone. What ends by itself a moment later is not reported.
    ///
    /// The caller must know that the attempt is over. Where the system does not show environments nothing is found.
    pub(crate) fn settle(
        &self,
        is_to_end: impl Fn(&Path) -> bool,
        grace: Duration,
    ) -> io::Result<Vec<Leftover>> {
        let setting = format!("{}={}", Self::VARIABLE, self.value());
        let own = std::process::id();
        let find = || -> io::Result<Vec<Entry>> {
            let marked = |entry: &Entry| {
                entry.pid != own
                    && entry.start_time >= self.supervisor.start_time
                    && table::has_variable(entry.pid, &setting)
            };
            Ok(living()?.into_iter().filter(marked).collect())
        };
        let until = Instant::now() + SETTLE;
        let mut found = find()?;
        while !found.is_empty() && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
            found.retain(|entry| {
                ProcessId::of(entry.pid).is_alive() && table::has_variable(entry.pid, &setting)
            });
        }
        let goes = |entry: &Entry| {
            table::folder(entry.pid).is_some_and(|folder: PathBuf| is_to_end(&folder))
        };
        let mut strays: Vec<(Entry, Leftover)> = Vec::new();
        for entry in found {
            let stray = Leftover {
                pid: entry.pid,
                command: table::command(entry.pid).unwrap_or_default(),
                ended: goes(&entry),
            };
            strays.push((entry, stray));
        }
        if strays.iter().any(|(_, stray)| stray.ended) {
            let end = end(|| Ok(find()?.into_iter().filter(goes).collect()), grace)?;
            if end == GroupEnd::Remains {
                tracing::warn!("processes that the attempt left behind could not be ended");
            }
        }
        let stray = |(entry, mut stray): (Entry, Leftover)| {
            let id = ProcessId::of_entry(entry.pid, Some(entry));
            stray.ended &= !id.is_alive();
            stray
        };
        Ok(strays.into_iter().map(stray).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_no_other_has_it() {
        let (one, other) = (Mark::new([1, u32::MAX]), Mark::new([1, u32::MAX]));
        assert_ne!(one.value(), other.value());
        let read = Mark::read(&one.value()).unwrap();
        assert_eq!((read.value(), read.places), (one.value(), one.places));
        for rubbish in ["", "1", "1-2", "a-b-c-d-e", "1-2-3-4-", "-1-2-3-4-5"] {
            assert_eq!(Mark::read(rubbish), None, "{rubbish}");
        }
    }

    #[test]
    fn the_ancestors_of_this_process_are_alive() {
        let all = ProcessId::ancestors();
        assert!(!all.is_empty() && all[0].is_alive(), "{all:?}");
    }
}
