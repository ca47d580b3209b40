//! The process table by `/proc`.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use itertools::Itertools as _;

use crate::os::ProcessEntry;

/// One of a process's files. They say that they are empty: what would be read in small pieces is read at once.
fn read(pid: u32, name: &str) -> Option<Vec<u8>> {
    let mut content = Vec::with_capacity(1 << 12);
    fs::File::open(format!("/proc/{pid}/{name}"))
        .ok()?
        .read_to_end(&mut content)
        .ok()?;
    Some(content)
}

/// The row of one process, also of a zombie.
pub(crate) fn entry(pid: u32) -> Option<ProcessEntry> {
    parse(pid, &read(pid, "stat")?)
}

/// Every process that is not a zombie; `None` if there is no process table.
pub(crate) fn living() -> Option<Vec<ProcessEntry>> {
    entry(std::process::id())?;
    let numbers = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|dir| dir.file_name().to_str()?.parse().ok());
    Some(
        numbers
            .filter_map(entry)
            .filter(|entry| !entry.zombie)
            .collect(),
    )
}

/// Hundredths of a second of processor time that these processes have used, with the children that they waited for.
pub(crate) fn cpu_time(pids: &[u32]) -> u64 {
    let of = |pid: &u32| {
        let stat = read(*pid, "stat")?;
        let name_end = stat.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        // The 14th to the 17th field; the kernel shows them in this unit whatever its own is.
        let times = rest.split_ascii_whitespace().skip(11).take(4);
        Some(
            times
                .filter_map(|time| time.parse::<u64>().ok())
                .sum::<u64>(),
        )
    };
    pids.iter().filter_map(of).sum()
}

/// Whether the environment that a process was started with holds `setting` (`NAME=value`).
pub(crate) fn has_variable(pid: u32, setting: &str) -> bool {
    let environment = read(pid, "environ").unwrap_or_default();
    environment
        .split(|&byte| byte == 0)
        .any(|entry| entry == setting.as_bytes())
}

/// The value of a variable in the environment that a process was started with.
pub(crate) fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = read(pid, "environ")?;
    let value = |entry: &[u8]| {
        entry
            .strip_prefix(name.as_bytes())?
            .strip_prefix(b"=")
            .map(<[u8]>::to_vec)
    };
    String::from_utf8(environment.split(|&byte| byte == 0).find_map(value)?).ok()
}

/// The words that a process was started with, or its program's name where it keeps none.
pub(crate) fn command(pid: u32) -> Option<String> {
    let words = read(pid, "cmdline")?;
    let mut words = words.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let line = words.join(" ").trim().to_owned();
    if line.is_empty() {
        name(pid)
    } else {
        Some(line)
    }
}

/// A process's current folder.
pub(crate) fn folder(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// The name of its program, as far as the table keeps it.
pub(crate) fn name(pid: u32) -> Option<String> {
    Some(
        fs::read_to_string(format!("/proc/{pid}/comm"))
            .ok()?
            .trim_end()
            .to_owned(),
    )
}

/// A name for the time since the machine started; start times of two such times say nothing about each other.
pub(crate) fn boot_id() -> Option<String> {
    static ID: OnceLock<Option<String>> = OnceLock::new();
    let id = || {
        fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .ok()
            .map(|id| id.trim().to_owned())
    };
    ID.get_or_init(id).clone()
}

/// This process's PID namespace, by its inode.
pub(crate) fn pid_namespace() -> Option<u64> {
    static INODE: OnceLock<Option<u64>> = OnceLock::new();
    let inode = || {
        fs::metadata("/proc/self/ns/pid")
            .ok()
            .map(|namespace| namespace.ino())
    };
    *INODE.get_or_init(inode)
}

/// Reads `/proc/PID/stat`. The second field is a name that may itself hold blanks and parentheses.
fn parse(pid: u32, stat: &[u8]) -> Option<ProcessEntry> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some(ProcessEntry {
        pid,
        zombie: matches!(field(3)?, "Z" | "X" | "x"),
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        start_time: field(22)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::ps;

    #[test]
    fn a_name_with_parentheses_is_no_trouble() {
        let stat = b"42 (a) Z (b) S 1 40 39 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";
        let expected = ProcessEntry {
            pid: 42,
            parent: 1,
            group: 40,
            session: 39,
            start_time: 98765,
            zombie: false,
        };
        assert_eq!(parse(42, stat), Some(expected));
        assert_eq!(parse(42, b"42 (short) S 1"), None);
        assert_eq!(parse(42, b""), None);
    }

    #[test]
    fn ps_reports_the_same() {
        let pid = std::process::id();
        let (Some(own), Some(shown)) = (entry(pid), ps::entry(pid)) else {
            return; // There is no `ps` here.
        };
        assert_eq!(
            (own.parent, own.group, own.session, own.zombie),
            (shown.parent, shown.group, shown.session, shown.zombie)
        );
        assert!(shown.start_time > 1_000_000_000);
        assert!(ps::living().unwrap().iter().any(|entry| entry.pid == pid));
    }
}
