//! The process table where only `ps` shows it: without environments, working directories or command lines.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use chrono::NaiveDateTime;

use crate::os::ProcessEntry;

/// The row of one process, also of a zombie.
pub(crate) fn entry(pid: u32) -> Option<ProcessEntry> {
    all()?.into_iter().find(|entry| entry.pid == pid)
}

/// Every process that is not a zombie; `None` if there is no process table.
pub(crate) fn living() -> Option<Vec<ProcessEntry>> {
    Some(all()?.into_iter().filter(|entry| !entry.zombie).collect())
}

fn all() -> Option<Vec<ProcessEntry>> {
    let output = Command::new("ps")
        .args(["-A", "-o", "pid=,ppid=,pgid=,sess=,stat=,lstart="])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().filter_map(parse).collect())
}

/// `  812     1   812   812 Ss   Sat Nov 21 21:53:58 2026`. Where a session is shown as an address it counts as 0.
fn parse(line: &str) -> Option<ProcessEntry> {
    let mut words = line.split_ascii_whitespace();
    let pid = words.next()?.parse().ok()?;
    let parent = words.next()?.parse().ok()?;
    let group = words.next()?.parse().ok()?;
    let session = words.next()?.parse().unwrap_or(0);
    let zombie = words.next()?.starts_with('Z');
    let started: Vec<&str> = words.collect();
    let started = NaiveDateTime::parse_from_str(&started.join(" "), "%a %b %d %H:%M:%S %Y").ok()?;
    let start_time = u64::try_from(started.and_utc().timestamp()).ok()?;
    Some(ProcessEntry {
        pid,
        parent,
        group,
        session,
        start_time,
        zombie,
    })
}

/// Hundredths of a second of processor time that these processes have used.
pub(crate) fn cpu_time(pids: &[u32]) -> u64 {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let output = Command::new("ps")
        .args(["-o", "time=", "-p", &pids.join(",")])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .filter_map(hundredths)
        .sum()
}

/// `12:03.45`, `1-02:03:04`.
fn hundredths(time: &str) -> Option<u64> {
    let (days, time) = time.trim().split_once('-').unwrap_or(("0", time.trim()));
    let (whole, part) = time.split_once('.').unwrap_or((time, "0"));
    let mut seconds = days.parse::<u64>().ok()? * 24;
    let count = whole.split(':').count();
    for (at, word) in whole.split(':').enumerate() {
        // Without hours, days count for nothing.
        let unit = if at == 0 && count == 3 { 1 } else { 60 };
        seconds = seconds * unit + word.parse::<u64>().ok()?;
    }
    Some(seconds * 100 + part.parse::<u64>().ok()?)
}

pub(crate) fn has_variable(_pid: u32, _setting: &str) -> bool {
    false
}

pub(crate) fn variable(_pid: u32, _name: &str) -> Option<String> {
    None
}

pub(crate) fn command(_pid: u32) -> Option<String> {
    None
}

pub(crate) fn folder(_pid: u32) -> Option<PathBuf> {
    None
}

pub(crate) fn name(_pid: u32) -> Option<String> {
    None
}

pub(crate) fn pid_namespace() -> Option<u64> {
    None
}

/// None is needed: start times are calendar time here, so they stay comparable.
pub(crate) fn boot_id() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn processor_time_is_read_in_each_form_of_ps() {
        for (time, expected) in [
            ("0:00.07", Some(7)),
            ("  12:03.45", Some(72_345)),
            ("01:00:00", Some(360_000)),
            ("1-02:03:04", Some(9_378_400)),
            ("-", None),
        ] {
            assert_eq!(super::hundredths(time), expected, "{time}");
        }
    }
}
