//! The system's process table: who is alive, since when, in which group.
//!
//! On Linux this is `/proc`; elsewhere it is what `ps` prints.

use rustix::process::Pid;

/// A row of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    pub(super) session: u32,
    /// When it started, in the platform's own unit; grows with time until the machine restarts.
    pub(super) start_time: u64,
    /// It has ended and only waits for its parent to ask.
    pub(super) zombie: bool,
}

pub(crate) use platform::boot_id;
pub(super) use platform::{
    command, entry, folder, has_variable, living, name, pid_namespace, variable,
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

#[cfg(target_os = "linux")]
mod platform {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::PathBuf;
    use std::sync::OnceLock;

    use super::Entry;

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
    pub(in super::super) fn entry(pid: u32) -> Option<Entry> {
        parse(pid, &read(pid, "stat")?)
    }

    /// Every process that is not a zombie; `None` if there is no process table.
    pub(in super::super) fn living() -> Option<Vec<Entry>> {
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

    /// Whether the environment that a process was started with holds `setting` (`NAME=value`).
    pub(in super::super) fn has_variable(pid: u32, setting: &str) -> bool {
        let environment = read(pid, "environ").unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|entry| entry == setting.as_bytes())
    }

    /// The value of a variable in the environment that a process was started with.
    pub(in super::super) fn variable(pid: u32, name: &str) -> Option<String> {
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
    pub(in super::super) fn command(pid: u32) -> Option<String> {
        let words = read(pid, "cmdline")?;
        let words: Vec<_> = words
            .split(|&byte| byte == 0)
            .map(String::from_utf8_lossy)
            .collect();
        let line = words.join(" ").trim().to_owned();
        if line.is_empty() {
            name(pid)
        } else {
            Some(line)
        }
    }

    /// A process's current folder.
    pub(in super::super) fn folder(pid: u32) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{pid}/cwd")).ok()
    }

    /// The name of its program, as far as the table keeps it.
    pub(in super::super) fn name(pid: u32) -> Option<String> {
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
    pub(in super::super) fn pid_namespace() -> Option<u64> {
        static INODE: OnceLock<Option<u64>> = OnceLock::new();
        let inode = || {
            fs::metadata("/proc/self/ns/pid")
                .ok()
                .map(|namespace| namespace.ino())
        };
        *INODE.get_or_init(inode)
    }

    /// Reads `/proc/PID/stat`. The second field is a name that may itself hold blanks and parentheses.
    pub(super) fn parse(pid: u32, stat: &[u8]) -> Option<Entry> {
        let name_end = stat.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Entry {
            pid,
            zombie: matches!(field(3)?, "Z" | "X" | "x"),
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            start_time: field(22)?.parse().ok()?,
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    pub(in super::super) use super::ps::{entry, living};

    /// The environment of another process is not shown here.
    pub(in super::super) fn has_variable(_pid: u32, _setting: &str) -> bool {
        false
    }

    /// Nor a variable of it.
    pub(in super::super) fn variable(_pid: u32, _name: &str) -> Option<String> {
        None
    }

    /// What it was started with is not looked for here.
    pub(in super::super) fn command(_pid: u32) -> Option<String> {
        None
    }

    /// Nor its folder.
    pub(in super::super) fn folder(_pid: u32) -> Option<std::path::PathBuf> {
        None
    }

    /// Its program's name is not looked for here.
    pub(in super::super) fn name(_pid: u32) -> Option<String> {
        None
    }

    /// There is only one.
    pub(in super::super) fn pid_namespace() -> Option<u64> {
        None
    }

    /// Start times are calendar time here, so they stay comparable.
    pub fn boot_id() -> Option<String> {
        None
    }
}

/// The portable way; on Linux it is only tested.
#[cfg(any(test, not(target_os = "linux")))]
mod ps {
    use std::process::{Command, Stdio};

    use chrono::NaiveDateTime;

    use super::Entry;

    /// The row of one process, also of a zombie.
    pub(in super::super) fn entry(pid: u32) -> Option<Entry> {
        all()?.into_iter().find(|entry| entry.pid == pid)
    }

    /// Every process that is not a zombie; `None` if there is no process table.
    pub(in super::super) fn living() -> Option<Vec<Entry>> {
        Some(all()?.into_iter().filter(|entry| !entry.zombie).collect())
    }

    fn all() -> Option<Vec<Entry>> {
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
    fn parse(line: &str) -> Option<Entry> {
        let mut words = line.split_ascii_whitespace();
        let pid = words.next()?.parse().ok()?;
        let parent = words.next()?.parse().ok()?;
        let group = words.next()?.parse().ok()?;
        let session = words.next()?.parse().unwrap_or(0);
        let zombie = words.next()?.starts_with('Z');
        let started: Vec<&str> = words.collect();
        let started =
            NaiveDateTime::parse_from_str(&started.join(" "), "%a %b %d %H:%M:%S %Y").ok()?;
        let start_time = u64::try_from(started.and_utc().timestamp()).ok()?;
        Some(Entry {
            pid,
            parent,
            group,
            session,
            start_time,
            zombie,
        })
    }
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

    #[test]
    fn ps_tells_the_same() {
        let (Some(own), Some(shown)) = (entry(std::process::id()), ps::entry(std::process::id()))
        else {
            return; // There is no `ps` here.
        };
        assert_eq!(
            (own.parent, own.group, own.session),
            (shown.parent, shown.group, shown.session)
        );
        assert_eq!(own.zombie, shown.zombie);
        assert!(shown.start_time > 1_000_000_000);
        assert!(
            ps::living()
                .unwrap()
                .iter()
                .any(|entry| entry.pid == own.pid)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_with_parentheses_is_no_trouble() {
        let stat = b"42 (a) Z (b) S 1 40 39 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3";
        let expected = Entry {
            pid: 42,
            parent: 1,
            group: 40,
            session: 39,
            start_time: 98765,
            zombie: false,
        };
        assert_eq!(platform::parse(42, stat), Some(expected));
        assert_eq!(platform::parse(42, b"42 (short) S 1"), None);
        assert_eq!(platform::parse(42, b""), None);
    }
}
