//! Detects a concurrent `git gc`, which removes objects that nothing refers to.
//!
//! `git gc`, also when `git maintenance` calls it, says so in `gc.pid`. A `git prune --expire=now` by itself says nothing: git
//! itself advises against it while anything is written.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// git's own limit: a note that is older is of no collection any more.
const STALE: Duration = Duration::from_secs(12 * 3600);

/// Whether a `git gc` says that it is under way, judged as git does. One that had ended before this call has removed by
/// then what it removes; one that begins after it sees every reference that was set before.
pub(in crate::git) fn is_announced(common: &Path) -> bool {
    let Ok(file) = File::open(common.join("gc.pid")) else {
        return false;
    };
    let age = file
        .metadata()
        .and_then(|found| found.modified())
        .ok()
        .and_then(|at| at.elapsed().ok());
    let mut text = String::new();
    if age.is_some_and(|age| age > STALE) || file.take(1024).read_to_string(&mut text).is_err() {
        return false;
    }
    let mut words = text.split_ascii_whitespace();
    let (Some(pid), Some(host)) = (words.next().and_then(|pid| pid.parse().ok()), words.next())
    else {
        return false;
    };
    let ours = rustix::system::uname();
    ours.nodename().to_bytes() != host.as_bytes() || is_alive(pid)
}

fn is_alive(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid.max(0)) else {
        return false;
    };
    matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_collection_is_announced_as_long_as_its_process_lives() {
        let folder = tempfile::tempdir().unwrap();
        let announced = |text: &str| {
            fs::write(folder.path().join("gc.pid"), text).unwrap();
            is_announced(folder.path())
        };
        let uname = rustix::system::uname();
        let (host, own) = (uname.nodename().to_str().unwrap(), std::process::id());
        assert!(!is_announced(folder.path()));
        assert!(announced(&format!("{own} {host}")));
        // No system gives such a number to a process.
        assert!(!announced(&format!("{} {host}", i32::MAX)));
        assert!(announced(&format!("{} elsewhere.{host}", i32::MAX)));
        for damaged in ["", "x", "12", &format!("-1 {host}"), &format!("0 {host}")] {
            assert!(!announced(damaged), "{damaged}");
        }
        assert!(announced(&format!("{own} {host}")));
        let old = std::time::SystemTime::now() - STALE - Duration::from_secs(60);
        File::open(folder.path().join("gc.pid"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        assert!(!is_announced(folder.path()));
    }
}
